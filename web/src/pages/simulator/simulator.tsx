/** What-ifs: policies tried on recorded jobs before they are put in force. */
import '../../parts/simulation.css';
import { Link, useNavigate, useParams } from '@tanstack/react-router';
import { useEffect, useState } from 'react';
import { FileTrigger } from 'react-aria-components';
import { useAction, useData, useFollow, useThrottled } from '../../api/data';
import { PolicyKindsDocument, type PolicyKindsQuery } from '../../api/kinds.gql';
import { PolicyInForceDocument } from '../../parts/policy.gql';
import { useWindow } from '../../parts/simulated-window';
import { Delta, METRICS, OwnSchedulers, ResultView } from '../../parts/simulation';
import {
  SimulateDocument,
  SimulationNewsDocument,
  SimulationPageDocument,
  type SimulationPageQuery,
} from '../../parts/simulation.gql';
import { useViewer } from '../../shell/viewer';
import { Code } from '../../ui/code';
import { Button, Check, Choice, Dialog, TextInput } from '../../ui/controls';
import { Differences } from '../../ui/differences';
import { at, type Document, differences } from '../../ui/document';
import { count, duration, numberOf, percent, plural, words } from '../../ui/format';
import { FlaskConical, Plus, Upload } from '../../ui/icons';
import {
  Ago,
  At,
  Badge,
  Bar,
  Card,
  type Column,
  Empty,
  Facts,
  Loaded,
  Page,
  Problem,
  Skeleton,
  Table,
} from '../../ui/show';
import { toast, told } from '../../ui/toast';
import { Curves } from './curves';
import {
  CancelSimulationDocument,
  SimulationBaselineDocument,
  type SimulationPartsFragment,
  SimulationsDocument,
} from './simulator.gql';

type One = SimulationPartsFragment;

function StateOf({ simulation: { state, progress } }: { simulation: Pick<One, 'state' | 'progress'> }) {
  if (state === 'RUNNING')
    return (
      <div className="state-pill">
        <Bar thin value={progress} max={1} label={`Computing, ${percent(progress)}`} />
        <span className="tiny faint num">computing, {percent(progress)}</span>
      </div>
    );
  const tone = { QUEUED: 'plain', DONE: 'good', FAILED: 'danger', CANCELLED: 'warn' } as const;
  return <Badge tone={tone[state]}>{words(state)}</Badge>;
}

/** A candidate in a few words: what it changes. */
function kindsOf(candidate: unknown): string {
  return `${String(at(candidate, 'dispatch.kind') ?? '?')}, ${String(at(candidate, 'local.kind') ?? '?')}`;
}

const COLUMNS: readonly Column<One>[] = [
  {
    key: 'what',
    header: 'What-if',
    cell: (one) => (
      <Link to="/simulator/$id" params={{ id: one.id }}>
        <span className="num strong">{numberOf(one.id)}</span>{' '}
        <span className="muted">{one.reason ?? kindsOf(one.candidate)}</span>
      </Link>
    ),
  },
  { key: 'state', header: 'State', cell: (one) => <StateOf simulation={one} /> },
  {
    key: 'candidate',
    header: 'Candidate',
    minor: true,
    cell: ({ candidate }) => kindsOf(candidate),
  },
  {
    key: 'jobs',
    header: 'Jobs',
    right: true,
    cell: ({ result }) => (result ? count(result.jobs) : <span className="faint">–</span>),
  },
  {
    key: 'wait',
    header: 'Mean wait',
    right: true,
    cell: ({ result }) => {
      const all = result?.all;
      return all ? (
        <Delta value={all.difference.waitMeanS} of={all.baseline.waitMeanS} text={duration} better="low" />
      ) : (
        <span className="faint">–</span>
      );
    },
  },
  { key: 'who', header: 'By', minor: true, cell: ({ user }) => user.name },
  {
    key: 'at',
    header: 'Asked',
    right: true,
    minor: true,
    cell: ({ createdAt }) => <Ago at={createdAt} />,
  },
];

export function Simulator() {
  const viewer = useViewer();
  const [after, setAfter] = useState<string | null>(null);
  const simulations = useData(SimulationsDocument, { first: 50, after });
  const refresh = useThrottled(simulations.refresh, 700);
  useFollow(SimulationNewsDocument, 'simulationUpdated', {}, { onUpdates: refresh, onResync: refresh });
  const [asking, setAsking] = useState(false);
  const [compared, setCompared] = useState<ReadonlySet<string>>(new Set());
  return (
    <Page
      title="Simulator"
      about="Try a policy on jobs that the service has recorded: both it and the current policy are simulated on the same jobs, with the code that schedules live."
      actions={
        viewer.may('OPERATOR') && (
          <Button variant="primary" icon={<Plus size={14} />} onPress={() => setAsking(true)}>
            Try policies
          </Button>
        )
      }
    >
      <Loaded from={simulations} skeleton={<Skeleton height={280} />}>
        {({ simulations: page }) => {
          const chosen = page.nodes.filter(({ id, result }) => compared.has(id) && result);
          return (
            <>
              {chosen.length > 1 && <Compared simulations={chosen} />}
              <Card flush>
                <Table
                  label="What-ifs"
                  rows={page.nodes}
                  id={({ id }) => id}
                  empty={
                    <Empty icon={<FlaskConical size={20} />} title="No simulations yet">
                      Choose policies and a period in which jobs were submitted. Live scheduling is not
                      affected.
                    </Empty>
                  }
                  columns={[
                    {
                      key: 'compare',
                      header: <span className="hidden-visually">Compare</span>,
                      width: 40,
                      cell: ({ id, result }) => (
                        <Check
                          label={`Compare what-if ${numberOf(id)}`}
                          checked={compared.has(id)}
                          disabled={!result}
                          onChange={(on) => {
                            const next = new Set(compared);
                            if (on) next.add(id);
                            else next.delete(id);
                            setCompared(next);
                          }}
                        />
                      ),
                    },
                    ...COLUMNS,
                  ]}
                />
                {page.pageInfo.hasNextPage && (
                  <div className="table-empty">
                    <Button onPress={() => setAfter(page.pageInfo.endCursor)}>Older ones</Button>
                  </div>
                )}
              </Card>
            </>
          );
        }}
      </Loaded>
      {asking && <TryDialog onClose={() => setAsking(false)} onAsked={simulations.refresh} />}
    </Page>
  );
}

/** Several candidates beside one another. */
function Compared({ simulations }: { simulations: readonly One[] }) {
  const first = simulations[0]!.result!.all.baseline;
  const same =
    new Set(
      simulations.map(
        ({ from, to, policyVersion, result }) =>
          `${from} ${to} ${policyVersion} ${from === null ? result!.jobs : ''}`,
      ),
    ).size === 1;
  return (
    <Card
      title="Compared"
      about={
        same
          ? 'The same jobs under each policy'
          : 'They were simulated on different jobs, or against different policies: compare with care'
      }
      flush
    >
      {same && (
        <Curves
          tried={simulations.map((one) => ({
            id: one.id,
            label: `${numberOf(one.id)}: ${one.reason ?? kindsOf(one.candidate)}`,
          }))}
        />
      )}
      <Table
        label="Policies compared"
        rows={METRICS}
        id={({ name }) => name}
        columns={[
          {
            key: 'metric',
            header: 'All jobs',
            cell: ({ label, about }) => <span title={about}>{label}</span>,
          },
          ...(same
            ? [
                {
                  key: 'baseline',
                  header: `Current (${simulations[0]!.policyVersion})`,
                  right: true,
                  cell: ({ name, text }: (typeof METRICS)[number]) => {
                    const value = first[name];
                    return typeof value === 'number' ? text(value) : '–';
                  },
                },
              ]
            : []),
          ...simulations.map((one) => ({
            key: one.id,
            header: `${numberOf(one.id)}: ${one.reason ?? kindsOf(one.candidate)}`,
            right: true,
            cell: ({ name, text, better }: (typeof METRICS)[number]) => {
              const { all } = one.result!;
              const value = all.candidate[name];
              return (
                <span className="cell-pair">
                  {typeof value === 'number' ? text(value) : '–'}
                  <span className="tiny">
                    <Delta value={all.difference[name]} text={text} better={better} />
                  </span>
                </span>
              );
            },
          })),
        ]}
      />
    </Card>
  );
}

export function SimulationPage() {
  const { id } = useParams({ strict: false }) as { id: string };
  const page = useData(SimulationPageDocument, { id });
  const refresh = useThrottled(page.refresh, 400);
  useFollow(
    SimulationNewsDocument,
    'simulationUpdated',
    { simulation: id },
    { onUpdates: refresh, onResync: refresh },
  );
  const cancel = useAction(CancelSimulationDocument);
  const navigate = useNavigate();
  const simulation = page.data?.simulation;
  const baseline = useData(
    SimulationBaselineDocument,
    { version: simulation?.policyVersion ?? 1 },
    { pause: !simulation },
  );
  return (
    <Loaded
      from={page}
      skeleton={
        <Page title="What-if">
          <Skeleton height={320} />
        </Page>
      }
    >
      {({ simulation: one }) =>
        one ? (
          <Page
            title={
              <>
                What-if {numberOf(one.id)} <StateOf simulation={one} />
              </>
            }
            about={one.reason ?? undefined}
            actions={
              one.state === 'QUEUED' || one.state === 'RUNNING' ? (
                <Button
                  variant="danger"
                  isDisabled={cancel.busy}
                  onPress={() => void told(cancel.run({ id: one.id }), 'It has been canceled.')}
                >
                  Cancel
                </Button>
              ) : (
                <Button
                  onPress={() => {
                    sessionStorage.setItem('switchyard.candidate', JSON.stringify(one.candidate));
                    void navigate({ to: '/policy', search: { draft: 'candidate' } });
                  }}
                >
                  Open it on the policy page
                </Button>
              )
            }
          >
            {one.message && <Problem error={one.message} />}
            <div className="columns">
              <Tried one={one} />
              <Card title="What the candidate changes">
                <Differences
                  of={differences(baseline.data?.policy?.document, one.candidate)}
                  none="Nothing: it equals the policy in effect."
                />
              </Card>
            </div>
            {one.result ? (
              <Card title="Result" flush>
                <Curves tried={[{ id: one.id, label: 'Candidate' }]} />
                <ResultView result={one.result} />
                <OwnSchedulers sites={one.result.sites} />
              </Card>
            ) : (
              (one.state === 'QUEUED' || one.state === 'RUNNING') && (
                <Card title="Computing">
                  <div className="stack">
                    <Bar value={one.progress} max={1} label={`${percent(one.progress)} done`} />
                    <p className="muted small">
                      {one.state === 'QUEUED' ? 'It waits for a worker.' : `${percent(one.progress)} done.`}{' '}
                      It continues when this page is closed.
                    </p>
                  </div>
                </Card>
              )
            )}
          </Page>
        ) : (
          <Page title="No such what-if">
            <Empty title="No what-if simulation has this number." />
          </Page>
        )
      }
    </Loaded>
  );
}

function Tried({ one }: { one: NonNullable<SimulationPageQuery['simulation']> }) {
  return (
    <Card title="What was tried">
      <Facts
        facts={[
          one.from === null && ['Jobs of', 'an uploaded trace'],
          one.from !== null && ['Jobs submitted from', <At key="f" at={one.from} />],
          one.to !== null && ['to', <At key="t" at={one.to} />],
          one.result !== null && ['Jobs', count(one.result.jobs)],
          one.result !== null &&
            one.result.leftOut > 0 && [
              'Skipped: too wide for any site, or never run',
              count(one.result.leftOut),
            ],
          one.result?.happened ? ['Actual mean wait', duration(one.result.happened.waitMeanS)] : null,
          one.result?.happened
            ? ['The same jobs, simulated', duration(one.result.happened.simulatedWaitMeanS)]
            : null,
          ['Compared with', `policy ${one.policyVersion}`],
          ['Requested by', one.user.name],
          ['Asked', <Ago key="a" at={one.createdAt} />],
        ]}
      />
    </Card>
  );
}

const TRACE_CHARS_MAX = 16 * 1024 ** 2;

/** The text of a trace, unpacked. Throws when it is more than the service takes. */
async function textOf(file: File): Promise<string> {
  const pieces = (
    file.name.endsWith('.gz') ? file.stream().pipeThrough(new DecompressionStream('gzip')) : file.stream()
  ).pipeThrough(new TextDecoderStream());
  let text = '';
  const reader = pieces.getReader();
  for (let next = await reader.read(); !next.done; next = await reader.read()) {
    text += next.value;
    if (text.length > TRACE_CHARS_MAX) {
      await reader.cancel();
      throw new Error(`${file.name} has more than 16 million characters: use a part of it.`);
    }
  }
  return text;
}

/** Each chosen kind of dispatch in the place of that in force, under the chosen local policy; and a document of one's own. */
function candidatesOf(
  inForce: Document | undefined,
  kinds: PolicyKindsQuery['policyKinds'] | undefined,
  dispatch: ReadonlySet<string>,
  localKind: PolicyKindsQuery['policyKinds']['local'][number] | undefined,
  own: string,
): { candidates: { name: string; document: unknown }[]; problem: string | null } {
  if (!inForce) return { candidates: [], problem: null };
  const base = { ...inForce, ...(localKind && { local: localKind.document }) };
  const candidates: { name: string; document: unknown }[] = (kinds?.dispatch ?? [])
    .filter(({ kind }) => dispatch.has(kind))
    .map(({ label, document }) => ({ name: label, document: { ...base, dispatch: document } }));
  if (dispatch.size === 0 && localKind) candidates.push({ name: localKind.label, document: base });
  if (own.trim() === '') return { candidates, problem: null };
  try {
    candidates.push({ name: 'A document', document: JSON.parse(own) });
    return { candidates, problem: null };
  } catch (reason) {
    return { candidates, problem: `Not JSON: ${(reason as Error).message}` };
  }
}

/** One or more candidates: kinds put in the place of those in force, or a whole document. */
// biome-ignore lint/complexity/noExcessiveLinesPerFunction: one form: its fields share their state
function TryDialog({ onClose, onAsked }: { onClose(): void; onAsked(): void }) {
  const { data } = useData(PolicyInForceDocument, {});
  const kinds = useData(PolicyKindsDocument, {}).data?.policyKinds;
  const simulate = useAction(SimulateDocument);
  const { window, jobs, picker } = useWindow();
  const [dispatch, setDispatch] = useState<ReadonlySet<string>>(new Set());
  const [local, setLocal] = useState('');
  const [own, setOwn] = useState('');
  const [reason, setReason] = useState('');
  const [trace, setTrace] = useState<{ name: string; text: string } | null>(null);
  const [error, setError] = useState<string | null>(null);
  const inForce = data?.policy?.document as Document | undefined;
  const localKind = kinds?.local.find(({ kind }) => kind === local);

  const { candidates, problem } = candidatesOf(inForce, kinds, dispatch, localKind, own);
  async function go(): Promise<void> {
    setError(null);
    try {
      for (const { name, document } of candidates) {
        const why = [
          reason.trim() || trace?.name,
          candidates.length > 1 || (reason.trim() === '' && !trace) ? name : '',
        ]
          .filter(Boolean)
          .join(': ');
        await simulate.run({
          input: {
            candidate: document,
            ...(trace ? { trace: trace.text } : window),
            reason: why,
          },
        });
      }
      toast(`${plural(candidates.length, 'policy', 'policies')} to be tried.`);
      onAsked();
      onClose();
    } catch (reason) {
      setError((reason as Error).message);
      onAsked();
    }
  }
  useEffect(() => setError(null), []);

  return (
    <Dialog
      title="Try policies"
      wide
      open
      onClose={onClose}
      footer={
        <Button
          variant="primary"
          isDisabled={candidates.length === 0 || problem !== null || simulate.busy || (!trace && jobs === 0)}
          onPress={() => void go()}
        >
          {candidates.length === 0
            ? 'Choose a policy'
            : `Try ${plural(candidates.length, 'policy', 'policies')}`}
        </Button>
      }
    >
      {error && <Problem error={error} />}
      {!trace && picker}
      <div className="row wrap">
        <FileTrigger
          acceptedFileTypes={['.swf', '.gwf', '.txt', '.gz']}
          onSelect={(files) => {
            const file = files?.[0];
            if (file)
              textOf(file).then(
                (text) => setTrace({ name: file.name, text }),
                (reason: unknown) => setError((reason as Error).message),
              );
          }}
        >
          <Button icon={<Upload size={14} />}>{trace ? 'Another trace…' : 'Or the jobs of a trace…'}</Button>
        </FileTrigger>
        {trace ? (
          <>
            <span className="strong">{trace.name}</span>
            <Button variant="quiet" className="small" onPress={() => setTrace(null)}>
              Recorded jobs instead
            </Button>
          </>
        ) : (
          <span className="faint small">Standard or Grid Workload Format, gzipped or not</span>
        )}
      </div>
      <fieldset className="plain-set">
        <legend>How the root chooses sites</legend>
        <div className="row wrap" style={{ gap: '8px 20px' }}>
          {kinds?.dispatch.map(({ kind, label, about }) => (
            <span key={kind} title={about}>
              <Check
                checked={dispatch.has(kind)}
                onChange={(on) => {
                  const next = new Set(dispatch);
                  if (on) next.add(kind);
                  else next.delete(kind);
                  setDispatch(next);
                }}
              >
                {label}
              </Check>
            </span>
          ))}
        </div>
      </fieldset>
      <Choice
        label="How sites start jobs"
        value={local}
        onChange={setLocal}
        options={[
          { value: '', label: 'As in the current policy' },
          ...(kinds?.local ?? []).map(({ kind, label, about }) => ({
            ...{ value: kind, label, hint: about.slice(0, 48) },
          })),
        ]}
      />
      <details className="fold">
        <summary>Or a whole policy document</summary>
        <div style={{ padding: 12 }}>
          <Code
            label="Policy document"
            language="json"
            value={own}
            onChange={setOwn}
            error={problem}
            minLines={8}
          />
          {inForce && own === '' && (
            <Button className="small" onPress={() => setOwn(JSON.stringify(inForce, null, 2))}>
              Start from the current policy
            </Button>
          )}
        </div>
      </details>
      <TextInput
        label="Why"
        value={reason}
        onChange={setReason}
        placeholder="for the list and the audit log"
      />
    </Dialog>
  );
}
