/** The fields of a job, card by card. */
import { ClassChoice } from '../../parts/class-choice';
import { ConstraintInput, EXCLUSIVE, SwitchFields } from '../../parts/placement';
import { useViewer } from '../../shell/viewer';
import { Code } from '../../ui/code';
import { Check, Choice, Segments, TextInput, Toggle } from '../../ui/controls';
import { megabytes, moment } from '../../ui/format';
import { Card } from '../../ui/show';
import { constraintBefore, type Draft, fieldsOf, type Kinds } from './draft';
import type { Form } from './form';
import type { SubmitChoicesQuery } from './submit.gql';

type Datasets = SubmitChoicesQuery['datasets']['nodes'];
type Reservations = SubmitChoicesQuery['holds']['nodes'];

export function What({ form }: { form: Form }) {
  const { mode, json, setJson, made, touched, changeMode } = form;
  return (
    <Card
      title="What to run"
      actions={
        <Segments
          label="How the job is written"
          value={mode}
          onChange={changeMode}
          options={[
            { value: 'form', label: 'Command' },
            { value: 'script', label: 'Script' },
            { value: 'json', label: 'JSON' },
          ]}
        />
      }
    >
      {mode === 'form' && <Command form={form} />}
      {mode === 'script' && <Script form={form} />}
      {mode === 'json' && (
        <Code
          label="JobInput, as in the GraphQL schema"
          language="json"
          value={json}
          onChange={setJson}
          minLines={18}
          error={touched ? made.problem : null}
        />
      )}
    </Card>
  );
}

function Command({ form: { draft, put, text } }: { form: Form }) {
  return (
    <div className="stack">
      <TextInput
        label="Command"
        mono
        autoFocus
        placeholder="make -j4 && ./simulate --steps 1000"
        {...text('command')}
        onEnter={() => undefined}
      />
      <Toggle on={draft.shell} onChange={put('shell')}>
        Run it in a shell (sh -c)
      </Toggle>
    </div>
  );
}

function Script({ form: { draft, setScript } }: { form: Form }) {
  const { misread, unheeded } = fieldsOf(draft.script).directives;
  return (
    <div className="stack">
      <Code label="Script" language="shell" value={draft.script} onChange={setScript} minLines={10} />
      <p className="faint small">
        Runs with the interpreter of its first line. <code>#SWITCHYARD</code> and <code>#SBATCH</code> lines
        fill in the fields below.
      </p>
      {misread.map(({ line, text, why }) => (
        <p key={line} className="note warn">
          Line {line} is not understood: <code>{text}</code>: {why}
        </p>
      ))}
      {unheeded.length > 0 && <p className="note warn">Ignored: {unheeded.join('; ')}</p>}
    </div>
  );
}

export function Needs({ form, licenses }: { form: Form; licenses: readonly string[] }) {
  const { draft, text } = form;
  return (
    <Card title="Requirements">
      <div className="fields">
        <TextInput label="Tasks" type="number" min={1} {...text('tasks')} />
        <TextInput label="CPUs per task" type="number" min={1} {...text('cpusPerTask')} />
        <TextInput label="Memory per task" type="number" min={0} unit="MB" {...text('memoryMbPerTask')} />
        <TextInput label="Estimated run time" {...text('estimate')} help="90, 10m, 2h or 00:30:00" />
        <TextInput label="Stop it after" {...text('runTimeLimit')} placeholder="never" />
        <TextInput label="Deadline" type="datetime-local" {...text('deadline')} />
        <TextInput
          label="After other jobs"
          {...text('needs')}
          placeholder="at once"
          help="afterok:12:13, afterany:group:prep"
        />
        <TextInput
          label="Licenses"
          {...text('licenses')}
          placeholder="none, or matlab:2"
          list={[...new Set(licenses)]}
        />
        {Number(draft.tasks) > 1 && <Tasks form={form} />}
      </div>
    </Card>
  );
}

/** Which machines it may have. `refused`: what the service says of the constraint. */
export function Placement({
  form,
  kinds,
  reservations,
  refused,
}: {
  form: Form;
  kinds: Kinds;
  reservations: Reservations;
  refused: string | null;
}) {
  const { draft, put, text } = form;
  const constraint = text('constraint');
  return (
    <details className="card fold-card">
      <summary>Advanced placement</summary>
      <div className="card-body stack">
        <div className="fields">
          <TextInput
            label="Kind of devices"
            {...text('deviceKind')}
            placeholder="none"
            list={kinds.map(({ name }) => name)}
            help="gpu, or another kind that machines have"
          />
          {asksForDevices(draft) && (
            <>
              <TextInput label="Devices per task" type="number" min={1} {...text('devices')} />
              <TextInput
                label="Model"
                {...text('deviceModel')}
                placeholder="any"
                list={kinds.find(({ name }) => name === draft.deviceKind.trim())?.models ?? []}
                help="a100"
              />
              <TextInput
                label="Least memory of a device"
                {...text('deviceMemory')}
                placeholder="any"
                help="40G; of a divided device, memory of a share"
              />
            </>
          )}
          <TextInput
            label="Devices by what they are"
            {...text('requests')}
            placeholder="none"
            help="gpu:a100:2:mem=40G, gpu:share=1/4: per task, the one that fewer devices satisfy first"
          />
          <TextInput
            label="Other resources per task"
            {...text('resources')}
            placeholder="none"
            help="fpga=2: kinds that operators have declared; those of a site or the grid are for the whole job"
          />
          <Choice
            label="Beside it on its machines"
            value={draft.exclusive}
            onChange={put('exclusive')}
            options={EXCLUSIVE}
          />
          {Number(draft.tasks) > 1 && (
            <TextInput
              label="Tasks per machine"
              {...text('tasksPerMachine')}
              placeholder="as many as fit"
              help="4, 2-4, or 2- for at least 2"
            />
          )}
          <TextInput
            label="The same on all machines"
            {...text('allAlike')}
            placeholder="nothing"
            help="labels, such as rack"
          />
          <SwitchFields {...text('sameSwitch')} />
          <Choice
            label="Reservation"
            value={draft.reservation}
            onChange={put('reservation')}
            options={reservationOptions(reservations, draft.reservation)}
          />
          <TextInput label="Operating system" {...text('os')} placeholder="any" />
          <TextInput label="Architecture" {...text('architecture')} placeholder="any" />
        </div>
        <ConstraintInput
          {...constraint}
          error={constraint.error ?? refused}
          before={constraintBefore(draft)}
        />
        <TextInput
          label="Parts"
          rows={2}
          mono
          placeholder="all tasks are alike"
          help="One part per line, started together: tasks=4,cpus=2,mem=8G,gpus=1,constraint=gen >= 3. What parts ask for is then not given above."
          {...text('parts')}
        />
      </div>
    </details>
  );
}

/** `chosen`: what a script has named need not be among them. */
function reservationOptions(reservations: Reservations, chosen: string) {
  const known = reservations.map(({ id, name, site, times: [next] }) => ({
    value: name ?? id,
    label: name ?? id,
    hint: [site.name, next && `from ${moment(next.from)}`].filter(Boolean).join(', '),
  }));
  const named = chosen === '' || known.some(({ value }) => value === chosen);
  return [{ value: '', label: 'none' }, ...known, ...(named ? [] : [{ value: chosen, label: chosen }])];
}

/** Reservations in which this user may run jobs. */
export const usableBy = ({ id, may }: ReturnType<typeof useViewer>, holds: Reservations): Reservations =>
  holds.filter(
    ({ kind, user, users }) =>
      kind !== 'MAINTENANCE' &&
      (may('OPERATOR') || user?.id === id || users.some((other) => other.id === id)),
  );

const asksForDevices = ({ deviceKind, deviceModel, deviceMemory }: Draft): boolean =>
  (deviceKind + deviceModel + deviceMemory).trim() !== '';

/** Of a job of several. */
function Tasks({ form: { draft, put } }: { form: Form }) {
  return (
    <>
      <Choice
        label="Tasks are started"
        value={draft.launch}
        onChange={put('launch')}
        options={[
          { value: 'EVERY_TASK', label: 'One by one', hint: 'The command runs once per task' },
          { value: 'ONCE', label: 'By the command', hint: 'It runs once, as mpirun does' },
        ]}
      />
      {draft.launch === 'EVERY_TASK' && (
        <Choice
          label="When a task fails"
          value={draft.onTaskFailure}
          onChange={put('onTaskFailure')}
          options={[
            { value: 'END_ALL', label: 'The others are ended' },
            { value: 'CONTINUE', label: 'The others continue' },
          ]}
        />
      )}
    </>
  );
}

export function More({
  form,
  datasets,
  classes,
}: {
  form: Form;
  datasets: Datasets;
  /** Those that the user may use. */
  classes: SubmitChoicesQuery['jobClasses'];
}) {
  const { draft, put, text } = form;
  const viewer = useViewer();
  return (
    <details className="card fold-card">
      <summary>Name, data, environment and more</summary>
      <div className="card-body stack">
        <div className="fields">
          <TextInput label="Name" {...text('name')} />
          <TextInput label="Application" {...text('application')} placeholder="from the command" />
          <TextInput label="Project" {...text('project')} />
          <TextInput label="Group name" {...text('groupName')} />
          <ClassChoice classes={classes} value={draft.class} onChange={put('class')} />
          <TextInput
            label="Working directory"
            {...text('workingDirectory')}
            placeholder="one of its own"
            mono
          />
          <TextInput label="Expected output" type="number" unit="MB" {...text('outputMb')} />
          <TextInput
            label="Boost"
            type="number"
            {...text('boost')}
            help={viewer.may('OPERATOR') ? '−1000 to 1000' : '−1000 to 0'}
          />
          <TextInput
            label="Mail about it"
            {...text('mail')}
            placeholder="as chosen for all jobs"
            help="begin, end, fail, limit_80, waited, group_done; or none"
          />
          <TextInput
            label="Run again if it fails"
            type="number"
            min={0}
            max={100}
            unit="times"
            {...text('retries')}
          />
          {asksForRetries(draft) && (
            <TextInput label="Wait before that" {...text('backoff')} help="Doubles each time, up to 1h" />
          )}
        </div>
        {datasets.length > 0 && <Inputs form={form} datasets={datasets} />}
        <TextInput
          label="Files to keep"
          rows={2}
          mono
          placeholder="results/*.csv"
          help="Paths or patterns in the job’s directory, one per line"
          {...text('outputs')}
        />
        <TextInput
          label="Download from URLs"
          rows={2}
          mono
          placeholder="https://data.example/mesh.dat"
          help="http or https, one per line: fetched before it starts, and found in its directory and at $SWITCHYARD_DOWNLOAD_1, …"
          {...text('downloads')}
        />
        <TextInput
          label="Upload to URLs"
          rows={2}
          mono
          placeholder="result.dat=https://data.example/result.dat"
          help="A path in its directory and where to send it, one per line: sent with PUT when it has succeeded"
          {...text('uploads')}
        />
        {asksForRetries(draft) && (
          <TextInput
            label="Retry rules"
            rows={2}
            mono
            placeholder="any"
            help="One rule per line; the first match decides: exit=75,do=ELSEWHERE, or cause=MEMORY_LIMIT,memory=2, or signal=KILL,do=HOLD"
            {...text('retryRules')}
          />
        )}
        <TextInput label="Environment" rows={3} mono placeholder="NAME=value" {...text('environment')} />
        <div className="row wrap" style={{ gap: 20 }}>
          <Check checked={draft.restartable} onChange={put('restartable')}>
            Restart it if its run is lost
          </Check>
          <Check checked={draft.held} onChange={put('held')}>
            Hold it until released
          </Check>
        </div>
      </div>
    </details>
  );
}

const asksForRetries = ({ retries, retryRules }: Draft): boolean => retries !== '0' || retryRules !== '';

function Inputs({ form: { draft, put }, datasets }: { form: Form; datasets: Datasets }) {
  return (
    <fieldset className="plain-set">
      <legend>Reads these datasets</legend>
      <div className="row wrap">
        {datasets.map(({ id, name, sizeMb }) => (
          <Check
            key={id}
            checked={draft.inputs.includes(id)}
            onChange={(on) =>
              put('inputs')(on ? [...draft.inputs, id] : draft.inputs.filter((other) => other !== id))
            }
          >
            {name} <span className="faint">{megabytes(sizeMb)}</span>
          </Check>
        ))}
      </div>
    </fieldset>
  );
}

export function HowMany({ form: { many, changeMany } }: { form: Form }) {
  return (
    <Card title="How many">
      <div className="stack">
        <Segments
          label="How many"
          value={many.how}
          onChange={(how) => changeMany({ how })}
          options={[
            { value: 'one', label: 'One job' },
            { value: 'count', label: 'Many jobs' },
            { value: 'array', label: 'Array' },
            { value: 'parameters', label: 'One for each row' },
          ]}
        />
        {many.how === 'count' && (
          <div className="fields">
            <TextInput
              label="Jobs"
              type="number"
              min={1}
              max={100_000}
              value={many.count}
              onChange={(count) => changeMany({ count })}
              help="{index} in the command stands for the index of each job, from 0"
            />
          </div>
        )}
        {many.how === 'array' && (
          <div className="fields">
            <TextInput
              label="Indices"
              value={many.array}
              onChange={(array) => changeMany({ array })}
              help="1-10, 0-99:5 or 1,3,5-9:2%4: at most 4 run at a time. A job finds its index in SWITCHYARD_ARRAY_INDEX."
            />
          </div>
        )}
        {many.how === 'parameters' && (
          <TextInput
            label="Parameters"
            rows={6}
            mono
            value={many.rows}
            onChange={(rows) => changeMany({ rows })}
            help="Names in the first line, then a line for each job, separated by commas. {seed} in the command stands for the value."
          />
        )}
      </div>
    </Card>
  );
}
