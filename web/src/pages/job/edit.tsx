/** A form for what is not yet decided of a job that waits: only what was written differently is changed. */
import { useState } from 'react';
import {
  licensesWritten,
  needsWritten,
  parseDuration,
  parseLabelNames,
  parseLicenses,
  parseMemory,
  parseNeeds,
  parseRequests,
  parseTasksPerMachine,
  requestsWritten,
  tasksPerMachineWritten,
} from '../../../../src/words/index';
import { ask, Refused } from '../../api/client';
import { useData } from '../../api/data';
import { ChangeJobsDocument, type JobChangesInput } from '../../parts/actions.gql';
import { ClassChoice } from '../../parts/class-choice';
import {
  ConstraintInput,
  EXCLUSIVE,
  faultText,
  SwitchFields,
  sameSwitchOf,
  sameSwitchWritten,
} from '../../parts/placement';
import { useViewer } from '../../shell/viewer';
import { Button, Check, Choice, Dialog, TextInput } from '../../ui/controls';
import { numberOf } from '../../ui/format';
import { Problem } from '../../ui/show';
import { toast } from '../../ui/toast';
import { EditChoicesDocument } from './job.gql';
import type { Job } from './shown';

type Changed = keyof JobChangesInput;

/** Of texts alone; what an advanced one says of machines is folded. */
interface Field {
  advanced?: true;
  label: string;
  of: (job: Job) => string;
  /** Throws on what it does not understand. */
  read: (text: string) => unknown;
  help?: string;
  unit?: string;
  type?: 'number' | 'datetime-local';
  placeholder?: string;
}

const text = (value: string | number | null): string => (value === null ? '' : String(value));
const orNull = (written: string): string | null => written.trim() || null;
const whole = (written: string): number => {
  const value = Number(written);
  if (written.trim() === '' || !Number.isInteger(value)) throw new Error('A whole number.');
  return value;
};
const duration = (written: string): number => parseDuration('', written);
const durationOrNull = (written: string): number | null => (written.trim() === '' ? null : duration(written));
const list = (written: string): string[] => written.split(/[\s,]+/).filter(Boolean);
const amounts = (written: string): { kind: string; amount: number }[] =>
  list(written).map((one) => {
    const [, kind, amount = '1'] = /^([^=]+)(?:=(\d+))?$/.exec(one) ?? [];
    if (kind === undefined) throw new Error('Kinds and amounts, such as gpu=2, tape-drive=1.');
    return { kind, amount: Number(amount) };
  });
const time = (written: string): string | null => {
  if (written === '') return null;
  const at = new Date(written);
  if (Number.isNaN(at.getTime())) throw new Error('A date and time.');
  return at.toISOString();
};
/** As a field of a local time shows it. */
const local = (at: string | null): string => {
  if (at === null) return '';
  const date = new Date(at);
  return new Date(date.getTime() - date.getTimezoneOffset() * 60_000).toISOString().slice(0, 19);
};

/** null: they cannot be said in the words of the field. */
const needsOf = (needs: Job['needs']): string | null =>
  needsWritten(
    needs.map(({ expression, of }) => ({
      expression,
      of: of.map(({ job, jobGroup, group, condition, minDelayS }) => ({
        ...{ condition, minDelayS },
        ...(job && { job: job.id }),
        ...(jobGroup && { jobGroup: jobGroup.id }),
        ...(group !== null && { group }),
      })),
    })),
  );

const FIELDS: Readonly<Partial<Record<Changed, Field>>> = {
  name: { label: 'Name', of: ({ name }) => text(name), read: orNull },
  project: { label: 'Project', of: ({ project }) => text(project), read: orNull },
  tasks: { label: 'Tasks', of: ({ tasks }) => text(tasks), read: whole, type: 'number' },
  cpusPerTask: {
    label: 'CPUs per task',
    of: ({ cpusPerTask }) => text(cpusPerTask),
    read: whole,
    type: 'number',
  },
  memoryMbPerTask: {
    label: 'Memory per task',
    of: ({ memoryMbPerTask }) => text(memoryMbPerTask),
    read: (written) => parseMemory('', written),
    unit: 'MB',
  },
  estimateS: {
    label: 'Estimated run time',
    of: ({ estimateS }) => text(estimateS),
    read: duration,
    help: '90, 10m, 2h or 00:30:00',
  },
  runTimeLimitS: {
    label: 'Stop it after',
    of: ({ runTimeLimitS }) => text(runTimeLimitS),
    read: durationOrNull,
    placeholder: 'never',
  },
  warnS: {
    label: 'Warn it before that',
    of: ({ warnS }) => text(warnS),
    read: durationOrNull,
    placeholder: 'never',
  },
  deadline: {
    label: 'Deadline',
    of: ({ deadline }) => local(deadline),
    read: time,
    type: 'datetime-local',
  },
  notBefore: {
    label: 'Not before',
    of: ({ notBefore }) => local(notBefore),
    read: time,
    type: 'datetime-local',
  },
  needs: {
    label: 'After other jobs',
    of: ({ needs }) => needsOf(needs) ?? '',
    read: (written) => (written.trim() === '' ? [] : parseNeeds('', written)),
    placeholder: 'at once',
    help: 'afterok:12:13, afterany:group:prep',
  },
  resourcesPerTask: {
    advanced: true,
    label: 'Resources per task',
    of: ({ resourcesPerTask }) => resourcesPerTask.map(({ kind, amount }) => `${kind}=${amount}`).join(', '),
    read: amounts,
    placeholder: 'none',
    help: 'gpu=2, tape-drive=1',
  },
  devicesPerTask: {
    advanced: true,
    label: 'Devices by what they are',
    of: ({ devicesPerTask }) => requestsWritten(devicesPerTask),
    read: (written) => (written.trim() === '' ? [] : parseRequests('', written)),
    placeholder: 'none',
    help: 'gpu:a100:2:mem=40G, gpu:share=1/4',
  },
  tasksPerMachine: {
    advanced: true,
    label: 'Tasks per machine',
    of: ({ tasksPerMachine }) => (tasksPerMachine === null ? '' : tasksPerMachineWritten(tasksPerMachine)),
    read: (written) => (written.trim() === '' ? null : parseTasksPerMachine('', written)),
    placeholder: 'as many as fit',
    help: '4, 2-4, or 2- for at least 2',
  },
  allAlike: {
    advanced: true,
    label: 'The same on all machines',
    of: ({ allAlike }) => (allAlike ?? []).join(', '),
    read: (written) => (written.trim() === '' ? null : parseLabelNames(written)),
    placeholder: 'nothing',
    help: 'labels, such as rack',
  },
  resources: {
    advanced: true,
    label: 'For the whole job',
    of: ({ resources }) => resources.map(({ kind, amount }) => `${kind}=${amount}`).join(', '),
    read: amounts,
    placeholder: 'none',
    help: 'tape-drive=2: what is counted for a site or the grid',
  },
  licenses: {
    label: 'Licenses',
    of: ({ licenses }) => licensesWritten(licenses),
    read: (written) => parseLicenses('Licenses', written),
    placeholder: 'none',
  },
  os: {
    advanced: true,
    label: 'Operating system',
    of: ({ os }) => text(os),
    read: orNull,
    placeholder: 'any',
  },
  architecture: {
    advanced: true,
    label: 'Architecture',
    of: ({ architecture }) => text(architecture),
    read: orNull,
    placeholder: 'any',
  },
  boost: { label: 'Boost', of: ({ boost }) => text(boost), read: whole, type: 'number' },
};
/** Fields with inputs of their own. */
const OTHERS: Readonly<Partial<Record<Changed, Pick<Field, 'of' | 'read'>>>> = {
  class: { of: (job) => text(job.class), read: orNull },
  exclusive: { of: ({ exclusive }) => exclusive ?? '', read: (written) => written || null },
  sameSwitch: { of: ({ sameSwitch }) => sameSwitchWritten(sameSwitch), read: sameSwitchOf },
  machineConstraint: { of: ({ machineConstraint }) => text(machineConstraint), read: orNull },
};
const shown = Object.entries(FIELDS) as [Changed, Field][];
const fields = [...shown, ...Object.entries(OTHERS)] as [Changed, Pick<Field, 'of' | 'read'>][];

const isField = (name: string): name is Changed => fields.some(([field]) => field === name);
/** What is wrong with a folded field has to be seen. */
const isFaulty = (faults: Faults): boolean =>
  Object.keys(faults).some(
    (name) => (name in OTHERS && name !== 'class') || FIELDS[name as Changed]?.advanced,
  );

type Texts = Readonly<Partial<Record<Changed, string>>>;
interface Faults {
  [field: string]: string;
}

/** What was written differently, and what of it is not understood. */
function read(before: Texts, written: Texts): { set: Record<string, unknown>; faults: Faults } {
  const set: Record<string, unknown> = {};
  const faults: Faults = {};
  for (const [name, field] of fields) {
    if (written[name] === before[name]) continue;
    try {
      set[name] = field.read(written[name] ?? '');
    } catch (error) {
      faults[name] = faultText(error);
    }
  }
  return { set, faults };
}

export function EditDialog({ job, onClose, onDone }: { job: Job; onClose(): void; onDone(): void }) {
  const viewer = useViewer();
  const classes = useData(EditChoicesDocument, {}).data?.jobClasses.filter(({ mayUse }) => mayUse) ?? [];
  const [before] = useState<Texts>(() => Object.fromEntries(fields.map(([name, { of }]) => [name, of(job)])));
  const [written, setWritten] = useState(before);
  const [restartable, setRestartable] = useState(job.restartable);
  const [faults, setFaults] = useState<Faults>({});
  const [error, setError] = useState<string | null>(null);
  const [busy, setBusy] = useState(false);

  async function save(): Promise<void> {
    const { set, faults } = read(before, written);
    setFaults(faults);
    setError(null);
    if (Object.keys(faults).length > 0) return;
    if (restartable !== job.restartable) set.restartable = restartable;
    if (Object.keys(set).length === 0) return onClose();
    setBusy(true);
    try {
      const { updateJobs } = await ask(ChangeJobsDocument, { input: { selection: { ids: [job.id] }, set } });
      const [refused] = updateJobs.unchanged;
      if (refused?.field && isField(refused.field)) return setFaults({ [refused.field]: refused.message });
      if (refused) return setError(refused.message);
      toast(`Job ${numberOf(job.id)} is changed.`);
      onDone();
      onClose();
    } catch (reason) {
      const field = reason instanceof Refused ? reason.field.replace(/^set\./, '') : '';
      if (isField(field)) setFaults({ [field]: (reason as Error).message });
      else setError((reason as Error).message);
    } finally {
      setBusy(false);
    }
  }
  /** What an input of the field shows. */
  const bound = (name: Changed) => ({
    value: written[name] ?? '',
    onChange: (value: string) => setWritten((all) => ({ ...all, [name]: value })),
    error: faults[name] ?? null,
  });
  const inputs = (advanced: boolean) =>
    shown
      .filter(([, field]) => (field.advanced ?? false) === advanced)
      .filter(([name]) => name !== 'needs' || needsOf(job.needs) !== null)
      .map(([name, { of: _, read: __, advanced: ___, ...field }]) => (
        <TextInput
          key={name}
          {...field}
          {...(name === 'boost' && { help: viewer.may('OPERATOR') ? '−1000 to 1000' : '−1000 to 0' })}
          {...bound(name)}
        />
      ));

  return (
    <Dialog
      title={`Edit job ${numberOf(job.id)}`}
      open
      wide
      onClose={onClose}
      footer={
        <>
          <Button onPress={onClose}>Keep unchanged</Button>
          <Button variant="primary" isDisabled={busy} onPress={() => void save()}>
            {busy ? 'Working…' : 'Change it'}
          </Button>
        </>
      }
    >
      <div className="stack">
        {error && <Problem error={error} />}
        {faults.class && <Problem error={faults.class} />}
        <div className="fields">
          {inputs(false)}
          <ClassChoice classes={classes} value={written.class ?? ''} onChange={bound('class').onChange} />
        </div>
        <details className="fold" open={isFaulty(faults)}>
          <summary>Advanced placement</summary>
          <div className="stack">
            <div className="fields">
              {inputs(true)}
              <Choice
                label="Beside it on its machines"
                {...bound('exclusive')}
                value={(written.exclusive ?? '') as (typeof EXCLUSIVE)[number]['value']}
                options={EXCLUSIVE}
              />
              <SwitchFields {...bound('sameSwitch')} />
            </div>
            <ConstraintInput {...bound('machineConstraint')} />
          </div>
        </details>
        <Check checked={restartable} onChange={setRestartable}>
          Restart it if its run is lost
        </Check>
        <p className="faint small">
          The job is dispatched again, unless only its name or this option is changed.
        </p>
      </div>
    </Dialog>
  );
}
