/** The way of a job, from its submission to its end: each step with its time, and how long it was between them. */
import { causeOf, duration, instant, megabytes, moment, plural, words } from '../../ui/format';
import { useNow } from '../../ui/now';
import type { Job } from './shown';

/** Of the runs before the last, so many are drawn one by one. */
const EARLIER_SHOWN = 5;

interface Step {
  key: string;
  label: string;
  about?: string | undefined;
  at: number | null;
  /** What it does from here to the next step. */
  doing: string;
  color: string;
  /** It was stopped for another job: drawn hatched. */
  preempted?: boolean;
}

type Run = Job['runs'][number];

const time = (text: string | null | undefined): number | null => (text ? Date.parse(text) : null);

/** What it went through in the order of time; behind that what is to come. */
function stepsOf(job: Job): Step[] {
  const ended = time(job.endedAt);
  const dispatched = time(job.dispatchedAt);
  const last = job.runs.at(-1);
  // Whose last run is over has another to come, unless it is over itself.
  const current = ended === null && last && last.endedAt !== null ? undefined : last;
  const earlier = current ? job.runs.slice(0, -1) : job.runs;
  const hidden = earlier.slice(0, Math.max(0, earlier.length - EARLIER_SHOWN));
  const sent = job.decisions.nodes.filter(({ kind }) => kind === 'DISPATCH');
  const [first] = sent;
  const moved = first !== undefined && sent.length > 1;
  const ran: Step[][] = [
    ...(hidden[0]
      ? [
          [
            {
              ...{ key: 'hidden', label: `${plural(hidden.length, 'run')} before these` },
              ...{ at: time(hidden[0].assignedAt), doing: 'ran and waited', color: 'var(--queued)' },
            },
          ],
        ]
      : []),
    ...earlier.slice(hidden.length).map((run) => [...runSteps(run, true), endOf(run)]),
    runSteps(current, earlier.length > 0),
  ];
  // One that goes back to the root and is sent again has runs before that, and others behind it.
  const behind = ran.findIndex(([{ at } = { at: null }]) => at === null || at >= (dispatched ?? Infinity));
  ran.splice(behind < 0 ? ran.length : behind, 0, [
    {
      key: 'dispatched',
      label: moved ? `Sent again${sent.length > 2 ? `, ${sent.length - 1} times` : ''}` : 'Sent to a site',
      about: dispatched === null ? undefined : job.site?.name,
      ...{ at: dispatched, doing: 'waited in its queue', color: 'var(--dispatched)' },
    },
  ]);
  return [
    {
      ...{ key: 'submitted', label: 'Submitted', about: job.user.name, at: time(job.submittedAt) },
      ...{ doing: 'waited for a site', color: 'var(--queued)' },
    },
    ...(moved
      ? [
          {
            ...{ key: 'sent', label: 'Sent to a site', about: first.site?.name, at: time(first.at) },
            ...{ doing: 'waited elsewhere', color: 'var(--dispatched)' },
          },
        ]
      : []),
    ...ran.flat(),
    {
      key: 'ended',
      label: ended === null ? 'Ended' : words(job.state),
      at: ended,
      doing: '',
      color: `var(--${ended === null ? 'queued' : job.state.toLowerCase()})`,
    },
  ];
}

/** Of a job without a run too: what is to come. */
function runSteps(run: Run | undefined, several: boolean): Step[] {
  const key = `run ${run?.epoch ?? 0}`;
  const preempted = run?.cause === 'PREEMPTED';
  const staging = run?.staging;
  return [
    {
      ...{ key: `${key} assigned`, label: 'Assigned', about: run && plainMachines(run) },
      ...{ at: time(run?.assignedAt), doing: 'was being started', color: 'var(--assigned)' },
    },
    ...(staging
      ? [
          {
            ...{ key: `${key} staging`, label: 'Staging its data' },
            about: `${megabytes(staging.movedMb)} of ${megabytes(staging.totalMb)} moved`,
            ...{ at: time(staging.beganAt), doing: 'brought its data', color: 'var(--series-3)' },
          },
        ]
      : []),
    {
      ...{ key: `${key} running`, label: several && run ? `Running, run ${run.epoch}` : 'Running' },
      at: time(run?.startedAt),
      doing: preempted ? 'ran until it was preempted' : 'ran',
      ...{ color: preempted ? 'var(--series-3)' : 'var(--running)', preempted },
    },
  ];
}

/** Of a run that others followed. */
function endOf(run: Run): Step {
  const preempted = run.cause === 'PREEMPTED';
  return {
    key: `run ${run.epoch} ended`,
    label: preempted ? `Preempted, run ${run.epoch}` : `Ended, run ${run.epoch}`,
    about: run.cause ? causeOf(run.cause) : undefined,
    at: time(run.endedAt),
    doing: 'waited to run again',
    color: preempted ? 'var(--series-3)' : 'var(--failed)',
  };
}

export function Timeline({ job }: { job: Job }) {
  const now = useNow();
  const steps = stepsOf(job);
  const ended = time(job.endedAt);
  const reached = steps.filter(({ at }) => at !== null);
  const last = reached.at(-1)!;
  const spans = reached.map((step, i) => ({
    step,
    from: step.at!,
    to: reached[i + 1]?.at ?? (ended === null ? now : step.at!),
  }));
  const whole = Math.max(
    1,
    spans.reduce((sum, { from, to }) => sum + Math.max(0, to - from), 0),
  );

  return (
    <div className="timeline">
      <ol>
        {steps.map((step) => {
          const span = spans.find((each) => each.step === step);
          const skipped = step.at === null && ended !== null;
          return (
            <li
              key={step.key}
              className={`${step.at === null ? (skipped ? 'skipped' : 'to-come') : ''} ${step === last && ended === null ? 'now' : ''}`}
            >
              <span className="point" style={{ background: step.at === null ? undefined : step.color }} />
              <span className="step">
                <span className="strong">{step.label}</span>
                {step.at === null ? (
                  <span className="faint tiny">{skipped ? 'never' : 'to come'}</span>
                ) : (
                  <time
                    className="num muted tiny"
                    dateTime={new Date(step.at).toISOString()}
                    title={instant(step.at)}
                  >
                    {moment(step.at)}
                  </time>
                )}
                {step.about && <span className="faint tiny cut">{step.about}</span>}
              </span>
              {span && step.doing && (
                <span className="between tiny num">
                  {duration(Math.max(0, span.to - span.from) / 1000)}
                  {step === last && ended === null ? ' so far' : ''}
                </span>
              )}
            </li>
          );
        })}
      </ol>
      <div
        className="bar parts"
        role="img"
        aria-label={spans
          .filter(({ step }) => step.doing)
          .map(({ step, from, to }) => `${step.doing} ${duration(Math.max(0, to - from) / 1000)}`)
          .join(', ')}
      >
        {spans.map(({ step, from, to }) => (
          <span
            key={step.key}
            className={step.preempted ? 'preempted' : undefined}
            title={`${step.doing} ${duration(Math.max(0, to - from) / 1000)}`}
            style={{ width: `${(100 * Math.max(0, to - from)) / whole}%`, backgroundColor: step.color }}
          />
        ))}
      </div>
    </div>
  );
}

const plainMachines = ({ allocations }: Run): string =>
  allocations.length === 1 ? allocations[0]!.machine.name : `${allocations.length} machines`;
