/** Fields of the forms that create and change maintenance windows and reservations. */
import { useViewer } from '../../shell/viewer';
import { Choice, TextInput } from '../../ui/controls';
import { CONFLICTS, type Conflict, type Draft } from './hold-form';

type Put = (field: 'hours' | 'name' | 'reason') => (value: string) => void;

/** How long it lasts, and what it is called. */
export function LengthAndName({
  draft,
  put,
  endless = false,
}: {
  draft: Pick<Draft, 'hours' | 'name'>;
  put: Put;
  /** Without a length it lasts until it is canceled. */
  endless?: boolean;
}) {
  return (
    <>
      <TextInput
        label="Lasts"
        type="number"
        min={0}
        step="any"
        unit="hours"
        value={draft.hours}
        onChange={put('hours')}
        {...(endless && { placeholder: 'until canceled' })}
      />
      <TextInput label="Name" value={draft.name} onChange={put('name')} placeholder="none" />
    </>
  );
}

/** Why it is there, and what becomes of runs in its way. */
export function ReasonAndConflict({
  draft,
  put,
  onConflict,
  setOnConflict,
}: {
  draft: Pick<Draft, 'reason'>;
  put: Put;
  onConflict: Conflict;
  setOnConflict(value: Conflict): void;
}) {
  const operator = useViewer().may('OPERATOR');
  return (
    <>
      <TextInput label="Reason" value={draft.reason} onChange={put('reason')} help="Visible to everyone" />
      <Choice
        label="Jobs that may still be running then"
        value={onConflict}
        onChange={setOnConflict}
        options={operator ? CONFLICTS : CONFLICTS.slice(0, 2)}
      />
    </>
  );
}
