/** The way of a job, from its submission to its end: each step with its time, and how long it was between them. */
import { duration, instant, megabytes, moment } from '../../ui/format';
import { useNow } from '../../ui/now';
import type { Job } from './shown';

interface Step {
  label: string;
  about?: string | undefined;
  at: number | null;
  /** What it does from here to the next step. */
  doing: string;
  color: string;
}

const time = (text: string | null | undefined): number | null => (text ? Date.parse(text) : null);

function stepsOf(job: Job): Step[] {
  const run = job.runs.at(-1);
  const ended = time(job.endedAt);
  const lost = job.runs.length - 1;
  const staging = run?.staging;
  const sent = job.decisions.nodes.filter(({ kind }) => kind === 'DISPATCH');
  const [first] = sent;
  const moved = first !== undefined && sent.length > 1;
  return [
    {
      label: 'Submitted',
      about: job.user.name,
      at: time(job.submittedAt),
      doing: 'waited for a site',
      color: 'var(--queued)',
    },
    ...(moved
      ? [
          {
            label: 'Sent to a site',
            about: first.site?.name,
            at: time(first.at),
            doing: 'waited elsewhere',
            color: 'var(--dispatched)',
          },
        ]
      : []),
    {
      label: moved ? `Sent again${sent.length > 2 ? `, ${sent.length - 1} times` : ''}` : 'Sent to a site',
      about: job.dispatchedAt ? (job.site?.name ?? undefined) : undefined,
      at: time(job.dispatchedAt),
      doing: 'waited in its queue',
      color: 'var(--dispatched)',
    },
    {
      label: 'Assigned',
      about: run && plainMachines(run),
      at: time(run?.assignedAt),
      doing: 'was being started',
      color: 'var(--assigned)',
    },
    ...(staging
      ? [
          {
            label: 'Staging its data',
            about: `${megabytes(staging.movedMb)} of ${megabytes(staging.totalMb)} moved`,
            at: time(staging.beganAt),
            doing: 'brought its data',
            color: 'var(--series-3)',
          },
        ]
      : []),
    {
      label: lost > 0 ? `Running, run ${job.runs.length}` : 'Running',
      at: time(run?.startedAt),
      doing: 'ran',
      color: 'var(--running)',
    },
    {
      label:
        ended === null
          ? 'Ended'
          : { COMPLETED: 'Completed', FAILED: 'Failed', CANCELLED: 'Cancelled' }[job.state as 'FAILED'],
      at: ended,
      doing: '',
      color: `var(--${ended === null ? 'queued' : job.state.toLowerCase()})`,
    },
  ];
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
              key={step.label}
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
            key={step.label}
            title={`${step.doing} ${duration(Math.max(0, to - from) / 1000)}`}
            style={{ width: `${(100 * Math.max(0, to - from)) / whole}%`, background: step.color }}
          />
        ))}
      </div>
    </div>
  );
}

const plainMachines = ({ allocations }: Job['runs'][number]): string =>
  allocations.length === 1 ? allocations[0]!.machine.name : `${allocations.length} machines`;
