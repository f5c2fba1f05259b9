/** Fields of the forms that create and change maintenance windows and reservations. */
import { useViewer } from '../../shell/viewer';
import { Choice, TextInput } from '../../ui/controls';
import { CONFLICTS, type Conflict, type Draft, type TaskField } from './hold-form';

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

/** What it holds for tasks, or of machines if it may name some. */
export function Amounts({
  draft,
  put,
  ofMachines = false,
}: {
  draft: Pick<Draft, TaskField>;
  put(field: TaskField): (value: string) => void;
  ofMachines?: boolean;
}) {
  return (
    <>
      <TextInput
        label="Tasks"
        type="number"
        min={1}
        value={draft.tasks}
        onChange={put('tasks')}
        help={ofMachines ? 'Instead of machines: on any that have room' : 'On any machines that have room'}
      />
      <TextInput
        label="CPUs of each"
        type="number"
        min={1}
        value={draft.cpus}
        onChange={put('cpus')}
        help={ofMachines ? 'Task or machine; empty: whole machines' : undefined}
      />
      <TextInput
        label="Memory of each"
        type="number"
        min={1}
        unit="MB"
        value={draft.memoryMb}
        onChange={put('memoryMb')}
      />
      <Listed field="resources" value={draft.resources} onChange={put('resources')} />
    </>
  );
}

const LISTS = {
  resources: { label: 'Other resources of each', placeholder: 'gpu=2' },
  shared: {
    label: 'Licenses and shared resources',
    placeholder: 'matlab=2',
    help: 'The site’s own first, then those of the grid',
  },
  users: { label: 'Other users', help: 'All others who may run jobs in it' },
} as const;

/** A list in words, separated by commas. `help`: instead of what is said of the list otherwise. */
export const Listed = ({
  field,
  help,
  ...text
}: {
  field: keyof typeof LISTS;
  value: string;
  onChange(value: string): void;
  help?: string | undefined;
}) => <TextInput {...LISTS[field]} {...(help && { help })} {...text} />;

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
