import './job.css';
import { Link, useNavigate, useParams, useSearch } from '@tanstack/react-router';
import { type ReactNode, useEffect, useMemo, useState } from 'react';
import {
  commandLine,
  exclusiveText,
  licensesWritten,
  partText,
  requestWritten,
  sameSwitchText,
  tasksPerMachineText,
} from '../../../../src/words/index';
import { useData, useFollow, useThrottled } from '../../api/data';
import { appliesTo, type BulkAction, BulkDialog } from '../../parts/bulk';
import { titleOf } from '../../parts/job-column';
import { JobRowsDocument } from '../../parts/job-rows.gql';
import { Candidates, TermList } from '../../parts/terms';
import { termText, useTerms } from '../../parts/vocabulary';
import { useViewer } from '../../shell/viewer';
import type { Search } from '../../ui/address';
import { Code } from '../../ui/code';
import { Button } from '../../ui/controls';
import {
  bytes,
  causeOf,
  count,
  duration,
  instant,
  lower,
  megabytes,
  moment,
  numberOf,
  PENDING,
  percent,
  plural,
  TERMINAL,
  WAITING,
  words,
} from '../../ui/format';
import { Copy, Pause, Pencil, Play, RotateCcw, SquareX, TrendingUp } from '../../ui/icons';
import {
  At,
  Badge,
  Card,
  Empty,
  Facts,
  Lasted,
  Loaded,
  Page,
  Skeleton,
  StateBadge,
  Table,
} from '../../ui/show';
import { useAskAfterEnd } from './after-end';
import { EditDialog } from './edit';
import { FilesCard } from './files';
import { JobPageDocument, JobPlacementDocument, JobWaitsDocument, type MeasurementMethod } from './job.gql';
import { type LiveUse, useLiveUse } from './live-use';
import { MissingNeeds, NeedsCard } from './needs';
import { OutputCard } from './output';
import { PeersCard } from './peers';
import { type Job, METHODS, SILENT } from './shown';
import { hasTasks, TasksCard } from './tasks';
import { Timeline } from './timeline';

/** Why it waits depends on others too: it is asked for again and again. */
const WAITS_MS = 4_000;

/** What happens between the first answer and the beginning of the subscription is told by neither. */
const ASK_MS = 5_000;

export function JobPage() {
  const { id } = useParams({ strict: false }) as { id: string };
  const [ended, setEnded] = useState(false);
  const afterEnd = useAskAfterEnd(ended);
  const page = useData(JobPageDocument, { id }, ended ? afterEnd : { everyMs: ASK_MS });
  const state = page.data?.job?.state;
  useEffect(() => setEnded(state !== undefined && TERMINAL.has(state)), [state]);
  const refresh = useThrottled(page.refresh, 300);
  useFollow(
    JobRowsDocument,
    'jobUpdated',
    { filter: { ids: [id] } },
    { onUpdates: refresh, onResync: refresh },
  );
  return (
    <Loaded
      from={page}
      skeleton={
        <Page title={`Job ${numberOf(id)}`}>
          <Skeleton height={110} />
          <Skeleton height={260} />
        </Page>
      }
    >
      {({ job }) =>
        job ? (
          <Shown key={job.id} job={job} refresh={page.refresh} />
        ) : (
          <Page title="No such job">
            <Empty title={`Job ${numberOf(id)} does not exist, or you may not see it.`}>
              Jobs that ended long ago have been removed.
            </Empty>
          </Page>
        )
      }
    </Loaded>
  );
}

function Shown({ job, refresh }: { job: Job; refresh(): void }) {
  const navigate = useNavigate();
  const [action, setAction] = useState<BulkAction | null>(null);
  const [editing, setEditing] = useState(false);
  const [acts, setActs] = useState(0);
  const acted = (): void => {
    setActs(acts + 1);
    refresh();
  };
  const target = useMemo(() => ({ jobs: [{ id: job.id, state: job.state }] }), [job.id, job.state]);
  const ended = TERMINAL.has(job.state);
  const waits = WAITING.has(job.state);
  const run = job.runs.at(-1);
  const [wasOver] = useState(ended);
  const seen = seenOf(job, useSearch({ strict: false }) as Search, wasOver);
  const see = (epoch: number, task?: number): void => {
    const usual = seenOf(job, { run: String(epoch) }, wasOver);
    const search = {
      run: epoch === run?.epoch ? undefined : String(epoch),
      task: task === undefined || task === usual?.task ? undefined : String(task),
    };
    void navigate({ to: '/jobs/$id', params: { id: job.id }, search, replace: true, resetScroll: false });
  };

  return (
    <Page
      title={
        <>
          <span className="num">Job {numberOf(job.id)}</span>
          <StateBadge state={job.state} cause={job.cause} />
        </>
      }
      about={<About job={job} />}
      actions={<Actions job={job} act={setAction} edit={() => setEditing(true)} />}
    >
      <Card title="Its path">
        <Timeline job={job} />
      </Card>
      {waits && <Waits id={job.id} state={job.state} />}
      <NeedsCard job={job} acts={acts} />
      {!ended && <PeersCard job={job} />}
      <div className="job-columns">
        <div className="stack">
          {seen && <OutputCard key={job.id} job={job} {...seen} onSee={see} />}
          {seen && hasTasks(job) && (
            <TasksCard
              key={`${job.id} ${seen.run.epoch}`}
              job={job}
              run={seen.run}
              shown={seen.task}
              onShow={(task) => see(seen.run.epoch, task)}
            />
          )}
          {job.epoch > 0 && job.outputs.length + job.uploads.length > 0 && <FilesCard job={job} />}
          <Decisions job={job} />
          <History job={job} />
        </div>
        <div className="stack">
          {ended && <Outcome job={job} />}
          <WhatItIs job={job} />
          <Requirements job={job} />
          {run && <Runs job={job} />}
        </div>
      </div>
      {editing && <EditDialog job={job} onClose={() => setEditing(false)} onDone={acted} />}
      {action && (
        <BulkDialog action={action} target={target} onClose={() => setAction(null)} onDone={acted} />
      )}
    </Page>
  );
}

function About({ job }: { job: Job }) {
  const viewer = useViewer();
  const waits = WAITING.has(job.state);
  return (
    <>
      {titleOf(job)} by{' '}
      {viewer.may('OPERATOR') ? (
        <Link to="/users/$id" params={{ id: job.user.id }}>
          {job.user.name}
        </Link>
      ) : (
        job.user.name
      )}
      {job.site && (
        <>
          , {!waits ? 'at' : 'waits at'}{' '}
          <Link to="/sites/$id" params={{ id: job.site.id }}>
            {job.site.name}
          </Link>
        </>
      )}
      {job.group && (
        <>
          , of the group{' '}
          <Link to="/groups/$id" params={{ id: job.group.id }}>
            {job.group.name ?? numberOf(job.group.id)}
          </Link>
        </>
      )}
    </>
  );
}

function Actions({ job, act, edit }: { job: Job; act(action: BulkAction): void; edit(): void }) {
  const navigate = useNavigate();
  return (
    <>
      <Button
        icon={<Copy size={14} />}
        onPress={() => void navigate({ to: '/submit', search: { again: job.id } })}
      >
        Submit again
      </Button>
      {WAITING.has(job.state) && (
        <Button icon={<Pencil size={14} />} onPress={edit}>
          Edit
        </Button>
      )}
      {(PENDING.has(job.state) || job.state === 'BLOCKED') && (
        <Button icon={<Pause size={14} />} onPress={() => act('hold')}>
          Hold
        </Button>
      )}
      {job.state === 'HELD' && (
        <Button variant="primary" icon={<Play size={14} />} onPress={() => act('release')}>
          Release
        </Button>
      )}
      {WAITING.has(job.state) && (
        <Button icon={<TrendingUp size={14} />} onPress={() => act('boost')}>
          Boost
        </Button>
      )}
      {appliesTo('requeue', job.state) && (
        <Button icon={<RotateCcw size={14} />} onPress={() => act('requeue')}>
          Requeue
        </Button>
      )}
      {!TERMINAL.has(job.state) && job.state !== 'CANCELLING' && (
        <Button variant="danger" icon={<SquareX size={14} />} onPress={() => act('cancel')}>
          Cancel
        </Button>
      )}
    </>
  );
}

function WhatItIs({ job }: { job: Job }) {
  const { line, script } = commandLine(job);
  return (
    <Card title="What it is">
      <Facts
        facts={[
          ['Command', <code key="c">{line}</code>],
          job.workingDirectory !== null && ['Working directory', <code key="d">{job.workingDirectory}</code>],
          ['Application', job.application],
          job.project !== null && [
            'Project',
            <Link key="p" to="/jobs" search={{ project: job.project }}>
              {job.project}
            </Link>,
          ],
          job.groupName !== null && [
            'Group name',
            <>
              <Link to="/jobs" search={{ groupName: job.groupName }}>
                {job.groupName}
              </Link>
              {' · '}
              <Link to="/graph" search={{ group: job.groupName }}>
                Graph
              </Link>
            </>,
          ],
          job.arrayIndex !== null && ['Place in the array', String(job.arrayIndex)],
        ]}
      />
      {script !== null && (
        <Code
          label="Script"
          language={/python/.test(line) ? 'python' : 'shell'}
          value={script}
          minLines={1}
        />
      )}
    </Card>
  );
}

/** What each task asks for, or what those of each part do. */
function requirementsOfTasks(job: Job): [string, string][] {
  if (job.parts.length > 0)
    return [
      ['CPUs', `${count(job.tasks)} tasks, ${plural(job.cpus, 'CPU')}`],
      ...job.parts.map((part, i): [string, string] => [`Part ${i}`, partText(part)]),
    ];
  const cpus = count(job.cpusPerTask);
  const { resourcesPerTask, devicesPerTask } = job;
  const resources = [
    ...resourcesPerTask.map(({ kind, amount }) => `${amount} ${kind}`),
    ...devicesPerTask.map(requestWritten),
  ].join(', ');
  return [
    ['CPUs', job.tasks === 1 ? cpus : `${count(job.tasks)} tasks × ${cpus} = ${count(job.cpus)}`],
    ['Memory per task', job.memoryMbPerTask ? megabytes(job.memoryMbPerTask) : 'none requested'],
    ...(resources ? [['Resources per task', resources] as [string, string]] : []),
  ];
}

function Requirements({ job }: { job: Job }) {
  // Without a limit of its own, what its latest run was given.
  const limitS = job.runTimeLimitS ?? job.runs.at(-1)?.runTimeLimitS ?? null;
  return (
    <Card title="Requirements">
      <Facts
        facts={[
          ...requirementsOfTasks(job),
          job.tasks > 1 && [
            'Tasks are started',
            job.launch === 'ONCE' ? 'by the command' : 'separately, by the agents',
          ],
          hasTasks(job) && [
            'When a task fails',
            job.onTaskFailure === 'CONTINUE' ? 'the others continue' : 'the others are ended',
          ],
          job.tasksPerMachine !== null && ['Tasks per machine', tasksPerMachineText(job.tasksPerMachine)],
          job.exclusive !== null && ['Machines', exclusiveText(job.exclusive)],
          job.allAlike !== null && ['The same on all machines', job.allAlike.join(', ')],
          job.sameSwitch !== null && ['Network', sameSwitchText(job.sameSwitch)],
          job.machineConstraint !== null && ['Labels of its machines', job.machineConstraint],
          job.terminal !== null && ['Terminal', 'Yes: its user types at a command line'],
          job.licenses.length > 0 && ['Licenses', licensesWritten(job.licenses)],
          job.resources.length > 0 && [
            'For the whole job',
            job.resources.map(({ kind, amount }) => `${count(amount)} ${kind}`).join(', '),
          ],
          (job.os ?? job.architecture) !== null && [
            'Platform',
            [job.os, job.architecture].filter(Boolean).join(', '),
          ],
          ['Estimated run time', `${duration(job.estimateS)} at power ${job.benchmark}`],
          limitS !== null && ['Stopped after', duration(limitS)],
          job.checkpoint !== null && ['Checkpoint', job.checkpoint.path],
          job.deadline !== null && [
            'Deadline',
            <span key="d" className={job.deadlineMissed ? 'late' : ''}>
              <At at={job.deadline} /> {job.deadlineMissed && '(missed)'}
            </span>,
          ],
          job.inputs.length > 0 && [
            'Reads',
            job.inputs
              .map(
                (input) =>
                  `${input.output ?? input.dataset?.name ?? 'data'}${input.from ? ` of ${input.from.name ?? input.from.id}` : ''} (${megabytes(input.sizeMb)}${input.site ? ` at ${input.site.name}` : ''})`,
              )
              .join(', '),
          ],
          job.downloads.length > 0 && [
            'Downloads',
            <code key="d">{job.downloads.map(({ url }) => url).join(', ')}</code>,
          ],
          job.uploads.length > 0 && [
            'Uploads',
            <code key="u">{job.uploads.map(({ path, url }) => `${path} to ${url}`).join(', ')}</code>,
          ],
          job.outputMb > 0 && ['Expected output', megabytes(job.outputMb)],
          job.sandboxMb > 0 && [
            'Sandbox',
            `${megabytes(job.sandboxMb)}${job.originSite ? ` from ${job.originSite.name}` : ''}`,
          ],
          ['Restarts when lost', job.restartable ? 'yes' : 'no'],
          job.class !== null && ['Class', job.charged ? job.class : `${job.class}, not charged`],
          job.preemptionClass > 0 && ['Rank', String(job.preemptionClass)],
          job.retry !== null && ['Retries', retriesOf(job)],
          ...job.runs.flatMap(({ epoch, retry }): [string, string][] =>
            retry?.note ? [[`After run ${epoch}`, retry.note]] : [],
          ),
          ['Priority', `${job.priority ?? 'none yet'}${job.boost ? `, boost ${job.boost}` : ''}`],
        ]}
      />
    </Card>
  );
}

/**
 * The run and task that are looked at, by the address; otherwise the latest run, and of one that was over when the page was opened the
 * task that made it fail. What fails while somebody looks takes nothing away from them.
 */
function seenOf(
  job: Job,
  search: Search,
  wasOver: boolean,
): { run: Job['runs'][number]; task: number } | null {
  const last = job.runs.at(-1);
  const run = job.runs.find(({ epoch }) => String(epoch) === search.run) ?? last;
  if (!run) return null;
  const usual = wasOver || run !== last ? run.failedTask : null;
  const task = /^\d+$/.test(search.task ?? '') ? Number(search.task) : (usual ?? 0);
  return { run, task: hasTasks(job) && task < job.tasks ? task : 0 };
}

/** Why it waits, and what a dry run says of it. */
function Waits({ id, state }: { id: string; state: Job['state'] }) {
  const waits = useData(JobWaitsDocument, { id }, { everyMs: WAITS_MS });
  const terms = useTerms();
  const placement = useData(
    JobPlacementDocument,
    { id },
    { everyMs: WAITS_MS * 2, pause: !PENDING.has(state) },
  );
  const seen = useMemo(() => state, [state]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: another state has another reason
  useEffect(() => {
    waits.refresh();
    if (PENDING.has(state)) placement.refresh();
  }, [seen]);
  const place = placement.data?.placement;
  const earliest = place?.earliestStart ?? waits.data?.job?.whyWaiting?.earliestStart;
  const start = place?.startsAt ?? earliest;
  return (
    <Card
      title="Why it waits"
      actions={
        (place ?? start) && (
          <span className="small start">
            {earliest ? 'Will not start before' : 'Expected start'}{' '}
            {start ? (
              <strong title={instant(start)} className="num">
                {moment(start)}
              </strong>
            ) : (
              <span className="faint">unknown</span>
            )}
          </span>
        )
      }
    >
      <Loaded from={waits} skeleton={<Skeleton lines={3} />}>
        {({ job }) => {
          const why = job?.whyWaiting;
          if (!why) return <p className="muted">Nothing is holding it back now.</p>;
          const numbers = why.numbers.filter(
            ({ name, value }) => !SILENT.has(name) && !(value === 0 && name.endsWith('MemoryMb')),
          );
          const termOf = terms(numbers.map(({ name }) => name));
          return (
            <div className="stack">
              <p className="lead">{why.message}</p>
              {why.missing.length > 0 && <MissingNeeds missing={why.missing} />}
              {why.wouldChange.length > 0 && (
                <div>
                  <h3 className="muted">Changes that would let it start</h3>
                  <ul className="bullets">
                    {why.wouldChange.map((change) => (
                      <li key={change}>{change}</li>
                    ))}
                  </ul>
                </div>
              )}
              {numbers.length > 0 && (
                <dl className="numbers">
                  {numbers.map(({ name, value }) => {
                    const term = termOf(name);
                    return (
                      <div key={name}>
                        <dt>{term.label}</dt>
                        <dd className="num">{termText(term, value)}</dd>
                      </div>
                    );
                  })}
                </dl>
              )}
            </div>
          );
        }}
      </Loaded>
      {place && place.candidates.length > 0 && (
        <details className="fold">
          <summary>
            Current ranking of sites
            {place.site && <span className="faint"> · {place.site.name} first</span>}
          </summary>
          <Candidates candidates={place.candidates} chosen={place.site?.id ?? null} />
          {place.jobTerms.length > 0 && <TermList terms={place.jobTerms} />}
        </details>
      )}
    </Card>
  );
}

type Decision = Job['decisions']['nodes'][number];
const KINDS: Record<Decision['kind'], string> = {
  DISPATCH: 'Sent to',
  START: 'Started at',
  TAKE_BACK: 'Taken back from',
  PREEMPT: 'Room made at',
};

function Decisions({ job }: { job: Job }) {
  const { nodes } = job.decisions;
  if (nodes.length === 0) return null;
  return (
    <Card
      title="Why it went there"
      about={`${plural(nodes.length, 'decision')}${job.decisions.pageInfo.hasNextPage ? ' (the first ones)' : ''}, newest first`}
    >
      <ol className="decisions">
        {[...nodes].reverse().map((decision, i) => (
          <li key={decision.id}>
            <div className="row wrap">
              <Badge tone={decision.kind === 'START' ? 'good' : 'accent'}>
                {KINDS[decision.kind]}{' '}
                {(decision.kind === 'TAKE_BACK' ? decision.from : decision.site)?.name ?? 'the root'}
              </Badge>
              <span className="faint tiny">
                <At at={decision.at} /> · policy {decision.policyVersion} · {decision.reason}
              </span>
            </div>
            <p>{decision.message}</p>
            {decision.candidates.length > 0 && (
              <details className="fold" open={i === 0 || (i === 1 && nodes.length === 2)}>
                <summary>{plural(decision.candidates.length, 'site')} considered</summary>
                <Candidates candidates={decision.candidates} chosen={decision.site?.id ?? null} />
              </details>
            )}
            <Detail decision={decision} />
          </li>
        ))}
      </ol>
    </Card>
  );
}

const ORDERS: Record<NonNullable<Decision['order']>, string> = {
  PRIORITY: 'the priority given at dispatch',
  OWN_PRIORITY: 'the site’s own priorities',
  ARRIVAL: 'arrival',
  RANK: 'the ranks of workflows',
};

/** What else went into a decision: what its priority is made of, what the start had to respect. */
function Detail({ decision }: { decision: Decision }): ReactNode {
  const { kind, jobTerms, level, queued, order, respected } = decision;
  if (kind === 'DISPATCH') {
    return (
      jobTerms.length > 0 && (
        <details className="fold">
          <summary>The job itself{level !== null && `: priority ${level}`}</summary>
          <TermList terms={jobTerms} />
        </details>
      )
    );
  }
  if (kind !== 'START') return null;
  return (
    <>
      <p className="faint small">
        {queued !== null && `${plural(queued, 'job')} in the queue`}
        {order && `, ordered by ${ORDERS[order]}`}
        {respected &&
          `; ${respected.job ? `job ${numberOf(respected.job.id)}` : 'another job'} has a reservation at ${moment(respected.at)}`}
      </p>
      {jobTerms.length > 0 && <TermList terms={jobTerms} />}
    </>
  );
}

const retriesOf = ({ retry, retries }: Job): string => {
  const rules = retry?.rules.length ?? 0;
  return `${retries} of ${retry?.maxRetries ?? 0}, ${rules} ${rules === 1 ? 'rule' : 'rules'}`;
};

/** Causes that a message names, as they are called everywhere else. */
const inWords = (message: string): string =>
  message.replace(/\b[A-Z]+(?:_[A-Z]+)+$/, (cause) => lower(causeOf(cause)));

/** How it ended, measured beside predicted. */
function Outcome({ job }: { job: Job }) {
  const run = job.runs.at(-1);
  const ran =
    run?.startedAt && run.endedAt ? (Date.parse(run.endedAt) - Date.parse(run.startedAt)) / 1000 : null;
  const { cpus } = job;
  return (
    <Card title="How it ended">
      <div className="stack">
        {(job.message ?? run?.message) && <p>{inWords(job.message ?? run?.message ?? '')}</p>}
        <Facts
          facts={[
            // The exit code says it already.
            job.cause !== null && job.cause !== 'EXITED_ZERO' && ['Cause', causeOf(job.cause)],
            job.exitCode !== null && ['Exit code', String(job.exitCode)],
            (run?.signal ?? null) !== null && ['Signal', run!.signal],
            ['Ended', <At key="e" at={job.endedAt} />],
          ]}
        />
        {run && ran !== null && (
          <table className="table compare">
            <caption className="hidden-visually">Measured and predicted</caption>
            <thead>
              <tr>
                <th scope="col">Measure</th>
                <th scope="col" className="right">
                  Predicted
                </th>
                <th scope="col" className="right">
                  Measured
                </th>
              </tr>
            </thead>
            <tbody>
              <tr>
                <th scope="row">Run time</th>
                <td className="right num">{duration(run.plannedS)}</td>
                <td className="right num">{duration(ran)}</td>
              </tr>
              {run.staging && (
                <tr>
                  <th scope="row">Staging its data</th>
                  <td className="right num">{duration(run.staging.predictedS)}</td>
                  <td className="right num">
                    {run.staging.measuredS === null ? '–' : duration(run.staging.measuredS)}
                  </td>
                </tr>
              )}
              {run.cpuS !== null && (
                <MeasuredRow what="CPU time" method={run.cpuMethod}>
                  {duration(run.cpuS)}
                  {ran > 0 && (
                    <span className="faint"> ({percent(run.cpuS / (ran * cpus))} of its CPUs)</span>
                  )}
                </MeasuredRow>
              )}
              {run.ioWaitS !== null && (
                <MeasuredRow
                  what="Waiting for I/O"
                  method={run.ioWaitMethod}
                  predicted={
                    job.computationShare === null ? null : duration((1 - job.computationShare) * run.plannedS)
                  }
                >
                  {duration(run.ioWaitS)}
                </MeasuredRow>
              )}
              {run.peakMemoryMb !== null && (
                <MeasuredRow
                  what="Peak memory"
                  method={run.peakMemoryMethod}
                  predicted={job.memoryMb > 0 ? megabytes(job.memoryMb) : null}
                >
                  {bytes(run.peakMemoryMb * 1e6)}
                </MeasuredRow>
              )}
              {run.readMb !== null && (
                <MeasuredRow what="Read" method={run.bytesMethod}>
                  {bytes(run.readMb * 1e6)}
                </MeasuredRow>
              )}
              {run.writtenMb !== null && (
                <MeasuredRow what="Written" method={run.bytesMethod}>
                  {bytes(run.writtenMb * 1e6)}
                </MeasuredRow>
              )}
              {run.deviceS !== null && (
                <MeasuredRow what="Devices busy" method="SAMPLES">
                  {duration(run.deviceS)}
                </MeasuredRow>
              )}
              {run.deviceMemoryMb !== null && (
                <MeasuredRow what="Peak memory on devices" method="SAMPLES">
                  {bytes(run.deviceMemoryMb * 1e6)}
                </MeasuredRow>
              )}
            </tbody>
          </table>
        )}
      </div>
    </Card>
  );
}

/** What an agent has measured, and how. */
function MeasuredRow({
  what,
  method,
  predicted = null,
  children,
}: {
  what: string;
  method: MeasurementMethod | null;
  predicted?: string | null;
  children: ReactNode;
}) {
  return (
    <tr>
      <th scope="row">{what}</th>
      <td className={`right num ${predicted === null ? 'faint' : ''}`}>{predicted ?? '–'}</td>
      <td className="right num">
        {children}
        {method && <div className="faint tiny">{METHODS[method]}</div>}
      </td>
    </tr>
  );
}

const usedSoFar = ({ cpuS, peakMemoryMb }: LiveUse): ([string, string] | false)[] => [
  cpuS !== null && ['CPU time so far', duration(cpuS)],
  peakMemoryMb !== null && ['Peak memory so far', bytes(peakMemoryMb * 1e6)],
];

function Runs({ job }: { job: Job }) {
  const use = useLiveUse(job);
  return (
    <Card title={job.runs.length === 1 ? 'Run' : `${count(job.runs.length)} runs`}>
      <ol className="stack">
        {[...job.runs].reverse().map((run, i) => (
          <li key={run.epoch} className="stack tight">
            {job.runs.length > 1 && (
              <p className="strong small">
                Run {run.epoch}{' '}
                {run.cause && (
                  <Badge tone={run.cause === 'EXITED_ZERO' ? 'good' : 'danger'}>{causeOf(run.cause)}</Badge>
                )}
              </p>
            )}
            <Facts
              facts={[
                ['Site', run.site.name],
                run.localId !== null && ['ID there', run.localId],
                run.localState !== null && ['State there', run.localState],
                run.localDirectory !== null && run.endedAt === null && ['Output there', run.localDirectory],
                [
                  'Machines',
                  run.placedBy === 'SITE'
                    ? run.nodes.join(', ') || 'chosen by its scheduler'
                    : run.allocations
                        .map(
                          ({ machine, tasks, devices }) =>
                            `${machine.name}${tasks > 1 ? ` (${plural(tasks, 'task')})` : ''}${devices.length > 0 ? `: ${devices.join(', ')}` : ''}`,
                        )
                        .join(', '),
                ],
                run.pools.length > 0 && [
                  'Licenses and pools',
                  run.pools
                    .map(
                      ({ amount, pool: { kind, unit } }) =>
                        `${kind}: ${count(amount)}${unit ? ` ${unit}` : ''}`,
                    )
                    .join(', '),
                ],
                ['Assigned', <At key="a" at={run.assignedAt} />],
                ['Started', <At key="s" at={run.startedAt} />],
                ['Ran', <Lasted key="r" from={run.startedAt} to={run.endedAt} />],
                ...(use && i === 0 ? usedSoFar(use) : []),
                run.checkpointAt !== null && ['Checkpoint', <At key="c" at={run.checkpointAt} />],
                ['Planned', duration(run.plannedS)],
                ['Policy', `version ${run.policyVersion}`],
              ]}
            />
          </li>
        ))}
      </ol>
    </Card>
  );
}

function History({ job }: { job: Job }) {
  const { nodes, pageInfo } = job.events;
  return (
    <Card title="What happened" flush>
      <Table
        label="Events"
        rows={[...nodes].reverse()}
        id={({ id }) => id}
        columns={[
          { key: 'at', header: 'When', width: 110, cell: ({ at }) => <At at={at} /> },
          {
            key: 'what',
            header: 'What',
            cell: ({ kind, fromState, toState, cause, note }) => (
              <>
                {kind === 'JOB_STATE' && toState && (
                  <span className="row wrap">
                    {fromState && <span className="faint">{words(fromState)} →</span>}
                    <StateBadge state={toState} cause={cause} />
                  </span>
                )}
                {note ?? (kind === 'JOB_CHANGED' && 'Boost or deadline changed')}
              </>
            ),
          },
          {
            key: 'site',
            header: 'Site',
            cell: ({ site }) => site?.name ?? <span className="faint">root</span>,
          },
          { key: 'run', header: 'Run', right: true, minor: true, cell: ({ epoch }) => epoch || '' },
        ]}
      />
      {pageInfo.hasNextPage && <p className="table-empty">Only the first 200 events are shown.</p>}
    </Card>
  );
}
