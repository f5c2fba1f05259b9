import './submit.css';
import { useNavigate, useSearch } from '@tanstack/react-router';
import { Compass, Send } from 'lucide-react';
import { type ReactNode, useEffect, useMemo, useRef, useState } from 'react';
import { ask } from '../../api/client';
import { useData } from '../../api/data';
import { Candidates, TermList } from '../../parts/terms';
import type { PlacementPartsFragment } from '../../parts/terms.gql';
import { useViewer } from '../../shell/viewer';
import type { Search } from '../../ui/address';
import { Code } from '../../ui/code';
import { Button, Check, Choice, Segments, TextInput, Toggle } from '../../ui/controls';
import { count, instant, megabytes, moment, numberOf, plural } from '../../ui/format';
import { Badge, Card, Empty, Page, Problem, Skeleton } from '../../ui/show';
import { toast } from '../../ui/toast';
import { againOf, type Draft, directivesOf, EMPTY, inputOf, Wrong } from './draft';
import {
  JobAgainDocument,
  type JobInput,
  PreviewDocument,
  SubmitChoicesDocument,
  SubmitGroupDocument,
  SubmitJobsDocument,
} from './submit.gql';

type Mode = 'form' | 'script' | 'json';
type Many = 'one' | 'count' | 'parameters';

const PREVIEW_MS = 400;

export function Submit() {
  const search = useSearch({ strict: false }) as Search;
  const navigate = useNavigate();
  const viewer = useViewer();
  const [mode, setMode] = useState<Mode>(search.again ? 'json' : 'form');
  const [draft, setDraft] = useState<Draft>(EMPTY);
  const [json, setJson] = useState('');
  const [many, setMany] = useState<Many>('one');
  const [number, setNumber] = useState('10');
  const [rows, setRows] = useState('seed\n1\n2\n3\n');
  const [error, setError] = useState<string | null>(null);
  const [busy, setBusy] = useState(false);
  const [touched, setTouched] = useState(false);
  const choices = useData(SubmitChoicesDocument, {});
  const attempt = useRef({ payload: '', key: '' });

  useEffect(() => {
    if (!search.again) return;
    const stop = new AbortController();
    ask(JobAgainDocument, { id: search.again }, stop.signal).then(
      ({ job }) => {
        if (job) setJson(JSON.stringify(againOf(job), null, 2));
        else setError(`There is no job ${numberOf(search.again!)}, or none that you may see.`);
      },
      (reason: unknown) => !stop.signal.aborted && setError((reason as Error).message),
    );
    return () => stop.abort();
  }, [search.again]);

  const made = useMemo(() => makeInput(mode, draft, json), [mode, draft, json]);
  const wrong = made.wrong;
  const errorOf = (field: keyof Draft): string | null =>
    touched && wrong?.field === field ? wrong.message : null;
  const put =
    <F extends keyof Draft>(field: F) =>
    (value: Draft[F]) =>
      setDraft((before) => ({ ...before, [field]: value }));
  const text = (field: keyof Draft) => ({
    value: draft[field] as string,
    onChange: put(field) as (value: string) => void,
    error: errorOf(field),
  });

  function setScript(script: string): void {
    const { fields, array } = directivesOf(script);
    setDraft((before) => ({ ...before, ...fields, script }));
    const last = array && /^(?:0-)?(\d+)$/.exec(array);
    if (last) {
      setMany('count');
      setNumber(String(Number(last[1]) + (array.includes('-') ? 1 : 0)));
    }
  }

  function changeMode(next: Mode): void {
    if (next === 'json' && made.input) setJson(JSON.stringify(made.input, null, 2));
    if (next === 'script') setScript(draft.script);
    setMode(next);
    setError(null);
  }

  async function submit(): Promise<void> {
    setTouched(true);
    setError(null);
    if (!made.input) return setError(wrong?.message ?? made.problem ?? 'The job is not complete.');
    setBusy(true);
    try {
      const idempotencyKey = keyFor(JSON.stringify([made.input, many, number, rows]));
      if (many === 'one') {
        const { submitJobs } = await ask(SubmitJobsDocument, {
          input: { jobs: [made.input], idempotencyKey },
        });
        const [fault] = submitJobs.errors;
        if (fault) throw new Error(fault.message);
        const id = submitJobs.jobIds[0]!;
        toast(`Job ${numberOf(id)} is submitted.`);
        void navigate({ to: '/jobs/$id', params: { id } });
      } else {
        const { submitJobGroup } = await ask(SubmitGroupDocument, {
          input: {
            name: draft.name.trim() || null,
            template: made.input,
            idempotencyKey,
            ...(many === 'count' ? { count: wholeOf(number) } : { parameters: parametersOf(rows) }),
          },
        });
        const [fault] = submitJobGroup.errors;
        if (fault) throw new Error(fault.message);
        const group = submitJobGroup.jobGroup!;
        toast(`${plural(group.size, 'job')} submitted.`);
        void navigate({ to: '/groups/$id', params: { id: group.id } });
      }
    } catch (reason) {
      setError((reason as Error).message);
    } finally {
      setBusy(false);
    }
  }

  /** The same for the same jobs: when an answer is lost, trying again makes no second ones. */
  function keyFor(payload: string): string {
    if (attempt.current.payload !== payload) attempt.current = { payload, key: randomKey() };
    return attempt.current.key;
  }

  const unknown = mode === 'script' ? directivesOf(draft.script).unknown : [];
  const jobs = many === 'one' ? 1 : many === 'count' ? Number(number) : rowsOf(rows).length;

  return (
    <Page title="Submit" about="A job runs a command on machines that the scheduler chooses.">
      <form
        className="submit-columns"
        onSubmit={(event) => {
          event.preventDefault();
          void submit();
        }}
      >
        <div className="stack">
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
            {mode === 'form' && (
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
            )}
            {mode === 'script' && (
              <div className="stack">
                <Code
                  label="Script"
                  language="shell"
                  value={draft.script}
                  onChange={setScript}
                  minLines={10}
                />
                <p className="faint small">
                  Runs with the interpreter of its first line. <code>#SBATCH</code> lines fill in the fields
                  below.
                </p>
                {unknown.length > 0 && (
                  <p className="note warn">Not understood, and left out: {unknown.join('; ')}</p>
                )}
              </div>
            )}
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
          {mode !== 'json' && (
            <>
              <Card title="Requirements">
                <div className="fields">
                  <TextInput label="Tasks" type="number" min={1} {...text('tasks')} />
                  <TextInput label="CPUs for each task" type="number" min={1} {...text('cpusPerTask')} />
                  <TextInput
                    label="Memory for each task"
                    type="number"
                    min={0}
                    unit="MB"
                    {...text('memoryMbPerTask')}
                  />
                  <TextInput
                    label="Estimated run time"
                    {...text('estimate')}
                    help="90, 10m, 2h or 00:30:00"
                  />
                  <TextInput label="Stop it after" {...text('runTimeLimit')} placeholder="never" />
                  <TextInput label="Deadline" type="datetime-local" {...text('deadline')} />
                  <TextInput
                    label="Resources for each task"
                    {...text('resources')}
                    placeholder="none"
                    help="gpu=2, tape-drive=1: kinds that operators have declared"
                  />
                  <TextInput
                    label="Licenses"
                    {...text('licenses')}
                    placeholder="none"
                    list={[...new Set(choices.data?.licenses.nodes.map(({ kind }) => kind) ?? [])]}
                  />
                  <TextInput label="Operating system" {...text('os')} placeholder="any" />
                  <TextInput label="Architecture" {...text('architecture')} placeholder="any" />
                  {Number(draft.tasks) > 1 && (
                    <Choice
                      label="Tasks are started"
                      value={draft.launch}
                      onChange={put('launch')}
                      options={[
                        { value: 'EVERY_TASK', label: 'One by one', hint: 'The command runs for each' },
                        { value: 'ONCE', label: 'By the command', hint: 'It runs once, as mpirun does' },
                      ]}
                    />
                  )}
                  {Number(draft.tasks) > 1 && draft.launch === 'EVERY_TASK' && (
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
                </div>
              </Card>
              <details className="card fold-card">
                <summary>Name, data, environment and more</summary>
                <div className="card-body stack">
                  <div className="fields">
                    <TextInput label="Name" {...text('name')} />
                    <TextInput label="Application" {...text('application')} placeholder="from the command" />
                    <TextInput label="Project" {...text('project')} />
                    <TextInput label="Group name" {...text('groupName')} />
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
                  </div>
                  {(choices.data?.datasets.nodes.length ?? 0) > 0 && (
                    <fieldset className="plain-set">
                      <legend>Reads these datasets</legend>
                      <div className="row wrap">
                        {choices.data!.datasets.nodes.map(({ id, name, sizeMb }) => (
                          <Check
                            key={id}
                            checked={draft.inputs.includes(id)}
                            onChange={(on) =>
                              put('inputs')(
                                on ? [...draft.inputs, id] : draft.inputs.filter((other) => other !== id),
                              )
                            }
                          >
                            {name} <span className="faint">{megabytes(sizeMb)}</span>
                          </Check>
                        ))}
                      </div>
                    </fieldset>
                  )}
                  <TextInput
                    label="Files to keep"
                    rows={2}
                    mono
                    placeholder="results/*.csv"
                    help="Paths or patterns in the job’s directory, one per line"
                    {...text('outputs')}
                  />
                  <TextInput
                    label="Environment"
                    rows={3}
                    mono
                    placeholder="NAME=value"
                    {...text('environment')}
                  />
                  <div className="row wrap" style={{ gap: 20 }}>
                    <Check checked={draft.restartable} onChange={put('restartable')}>
                      Run it again if its run is lost
                    </Check>
                    <Check checked={draft.held} onChange={put('held')}>
                      Hold it until it is released
                    </Check>
                  </div>
                </div>
              </details>
            </>
          )}
          <Card title="How many">
            <div className="stack">
              <Segments
                label="How many"
                value={many}
                onChange={setMany}
                options={[
                  { value: 'one', label: 'One job' },
                  { value: 'count', label: 'Many jobs' },
                  { value: 'parameters', label: 'One for each row' },
                ]}
              />
              {many === 'count' && (
                <div className="fields">
                  <TextInput
                    label="Jobs"
                    type="number"
                    min={1}
                    max={100_000}
                    value={number}
                    onChange={setNumber}
                    help="{index} in the command stands for the index of each job, from 0"
                  />
                </div>
              )}
              {many === 'parameters' && (
                <TextInput
                  label="Parameters"
                  rows={6}
                  mono
                  value={rows}
                  onChange={setRows}
                  help="Names in the first line, then a line for each job, separated by commas. {seed} in the command stands for the value."
                />
              )}
            </div>
          </Card>
        </div>
        <div className="submit-side">
          <div className="stack">
            {error && <Problem error={error} />}
            <Button
              type="submit"
              variant="primary"
              className="big"
              icon={<Send size={15} />}
              isDisabled={busy}
            >
              {busy
                ? 'Submitting…'
                : many === 'one'
                  ? 'Submit the job'
                  : `Submit ${Number.isFinite(jobs) ? count(jobs) : ''} jobs`}
            </Button>
            <Preview input={made.input} />
          </div>
        </div>
      </form>
    </Page>
  );
}

/** `crypto.randomUUID` is only there over https and on localhost. */
const randomKey = (): string =>
  [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, '0')).join('');

function makeInput(
  mode: Mode,
  draft: Draft,
  json: string,
): { input: JobInput | null; wrong: Wrong | null; problem: string | null } {
  try {
    if (mode !== 'json') return { input: inputOf(draft, mode), wrong: null, problem: null };
    const input: unknown = JSON.parse(json);
    if (typeof input !== 'object' || input === null || typeof (input as JobInput).command !== 'string')
      return { input: null, wrong: null, problem: 'An object with at least a “command”.' };
    return { input: input as JobInput, wrong: null, problem: null };
  } catch (error) {
    if (error instanceof Wrong) return { input: null, wrong: error, problem: null };
    return { input: null, wrong: null, problem: `Not JSON: ${(error as Error).message}` };
  }
}

function wholeOf(text: string): number {
  const value = Number(text);
  if (!Number.isInteger(value) || value < 1)
    throw new Error('How many jobs? A whole number from 1 to 100 000.');
  return value;
}

const rowsOf = (text: string): string[] =>
  text
    .split('\n')
    .slice(1)
    .filter((line) => line.trim() !== '');

function parametersOf(text: string): Record<string, string>[] {
  const names = (text.split('\n')[0] ?? '').split(',').map((name) => name.trim());
  const rows = rowsOf(text);
  if (rows.length === 0) throw new Error('There are no rows of parameters.');
  return rows.map((line, i) => {
    const values = line.split(',').map((value) => value.trim());
    if (values.length !== names.length)
      throw new Error(
        `Row ${i + 1} has ${plural(values.length, 'value')}; there are ${plural(names.length, 'name')}.`,
      );
    return Object.fromEntries(names.map((name, j) => [name, values[j]!]));
  });
}

/** Where it would go, while it is being written. */
function Preview({ input }: { input: JobInput | null }): ReactNode {
  const [place, setPlace] = useState<PlacementPartsFragment | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  const key = input && JSON.stringify({ ...input, held: false });
  useEffect(() => {
    if (key === null) return;
    const stop = new AbortController();
    const timer = setTimeout(() => {
      ask(PreviewDocument, { spec: JSON.parse(key) as JobInput }, stop.signal).then(
        ({ placement }) => {
          setPlace(placement);
          setProblem(null);
        },
        (error: unknown) => {
          if (!stop.signal.aborted) setProblem((error as Error).message);
        },
      );
    }, PREVIEW_MS);
    return () => {
      clearTimeout(timer);
      stop.abort();
    };
  }, [key]);

  return (
    <Card title="Where it would go" about="A dry run with what is known now">
      {input === null ? (
        <Empty icon={<Compass size={20} />} title="Nothing to place yet">
          As soon as the job is complete, this says where it would run and when it would start.
        </Empty>
      ) : problem ? (
        <Problem error={problem} />
      ) : place === null ? (
        <Skeleton lines={5} />
      ) : (
        <div className="stack">
          {place.site ? (
            <div className="placed">
              <div>
                <span className="faint tiny">Site</span>
                <p className="placed-value">{place.site.name}</p>
              </div>
              <div>
                <span className="faint tiny">Start, if no other job is submitted</span>
                <p className="placed-value num">
                  {place.startsAt ? (
                    Date.parse(place.startsAt) - Date.now() < 2_000 ? (
                      'at once'
                    ) : (
                      <time title={instant(place.startsAt)}>{moment(place.startsAt)}</time>
                    )
                  ) : place.earliestStart ? (
                    <time title={instant(place.earliestStart)}>not before {moment(place.earliestStart)}</time>
                  ) : (
                    'unknown'
                  )}
                </p>
              </div>
              {place.priority !== null && (
                <div>
                  <span className="faint tiny">Priority</span>
                  <p className="placed-value num">{place.priority}</p>
                </div>
              )}
            </div>
          ) : (
            <Badge tone="warn">No site can run it</Badge>
          )}
          <p className="small">{place.message}</p>
          {place.allocations.length > 0 && (
            <p className="faint small">
              On{' '}
              {place.allocations
                .slice(0, 6)
                .map(({ machine }) => machine.name)
                .join(', ')}
              {place.allocations.length > 6 && ` and ${place.allocations.length - 6} more`}
            </p>
          )}
          <Candidates candidates={place.candidates} chosen={place.site?.id ?? null} />
          {Object.keys((place.jobTerms ?? {}) as object).length > 0 && <TermList terms={place.jobTerms} />}
        </div>
      )}
    </Card>
  );
}
