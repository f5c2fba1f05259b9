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

/** What it holds of machines, or for tasks. */
export function Amounts({
  draft,
  put,
}: {
  draft: Draft;
  put(field: 'tasks' | 'cpus' | 'memoryMb' | 'resources'): (value: string) => void;
}) {
  return (
    <>
      <TextInput
        label="Tasks"
        type="number"
        min={1}
        value={draft.tasks}
        onChange={put('tasks')}
        help="Instead of machines: on any that have room"
      />
      <TextInput
        label="CPUs of each"
        type="number"
        min={1}
        value={draft.cpus}
        onChange={put('cpus')}
        help="Task or machine; empty: whole machines"
      />
      <TextInput
        label="Memory of each"
        type="number"
        min={1}
        unit="MB"
        value={draft.memoryMb}
        onChange={put('memoryMb')}
      />
      <TextInput
        label="Other resources of each"
        value={draft.resources}
        onChange={put('resources')}
        placeholder="gpu=2"
      />
    </>
  );
}

export function Shared({
  draft,
  put,
  help,
}: {
  draft: Pick<Draft, 'shared'>;
  put(field: 'shared'): (value: string) => void;
  help?: string | undefined;
}) {
  return (
    <TextInput
      label="Licenses and shared resources"
      value={draft.shared}
      onChange={put('shared')}
      placeholder="matlab=2"
      help={help ?? 'The site’s own first, then those of the grid'}
    />
  );
}

export function OtherUsers({
  draft,
  put,
}: {
  draft: Pick<Draft, 'users'>;
  put(field: 'users'): (value: string) => void;
}) {
  return (
    <TextInput
      label="Other users"
      value={draft.users}
      onChange={put('users')}
      help="All others who may run jobs in it"
    />
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
