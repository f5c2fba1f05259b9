/** The tasks of a run. There may be thousands: only those in sight are asked for, and are in the page. */
import { useVirtualizer } from '@tanstack/react-virtual';
import { useEffect, useRef, useState } from 'react';
import { ask } from '../../api/client';
import { reconnections } from '../../api/service';
import { useStore } from '../../api/store';
import { bytes, causeOf, count, duration, lower, plural, TERMINAL } from '../../ui/format';
import { At, Card, Lasted, Problem } from '../../ui/show';
import { useAskAfterEnd } from './after-end';
import { JobTasksDocument, type JobTasksQuery } from './job.gql';
import { type Job, METHODS } from './shown';

type Run = Job['runs'][number];
type Task = NonNullable<JobTasksQuery['job']>['runs'][number]['tasks'][number];

const ROW_PX = 37;
/** What is asked for begins at a multiple of it, and is twice as long. */
const PAGE = 100;
const FOLLOW_MS = 2_000;
/** Who drags the scroll bar past thousands does not ask for them. */
const SETTLE_MS = 80;

/** Whether the tasks of a job are started, and end, one by one. */
export const hasTasks = ({ tasks, launch }: Pick<Job, 'tasks' | 'launch'>): boolean =>
  tasks > 1 && launch === 'EVERY_TASK';

export function TasksCard({
  job,
  run,
  shown,
  onShow,
}: {
  job: Job;
  run: Run;
  /** The task whose output is shown. */
  shown: number;
  onShow(task: number): void;
}) {
  const frame = useRef<HTMLDivElement>(null);
  const virtual = useVirtualizer({
    count: job.tasks,
    getScrollElement: () => frame.current,
    estimateSize: () => ROW_PX,
    overscan: 10,
  });
  const items = virtual.getVirtualItems();
  const above = items[0]?.start ?? 0;
  const below = virtual.getTotalSize() - (items.at(-1)?.end ?? 0);
  const { tasks, error, retry } = useTasks(job, run.epoch, items[0]?.index ?? 0);
  return (
    <Card
      title="Tasks"
      about={`${plural(job.tasks, 'task')} on ${plural(run.allocations.length, 'machine')}${job.runs.length > 1 ? `, run ${run.epoch}` : ''}`}
      flush
    >
      {error && <Problem error={error} retry={retry} />}
      <section ref={frame} className="table-frame tasks" aria-label="Tasks" tabIndex={0}>
        <table className="table" aria-rowcount={job.tasks + 1}>
          <caption className="hidden-visually">Tasks</caption>
          <thead>
            <tr aria-rowindex={1}>
              <th scope="col" className="right">
                Task
              </th>
              <th scope="col">Machine</th>
              <th scope="col">State</th>
              <th scope="col" className="right minor">
                Exit
              </th>
              <th scope="col" className="right minor">
                Started
              </th>
              <th scope="col" className="right minor">
                Ran
              </th>
              <th scope="col" className="right minor">
                CPU time
              </th>
              <th scope="col" className="right minor">
                Peak memory
              </th>
              <th scope="col" className="right">
                <span className="hidden-visually">Output</span>
              </th>
            </tr>
          </thead>
          <tbody>
            <Gap height={above} />
            {items.map(({ index }) => (
              <TaskRow
                key={index}
                index={index}
                task={tasks.get(index)}
                selected={index === shown}
                onShow={onShow}
              />
            ))}
            <Gap height={below} />
          </tbody>
        </table>
      </section>
    </Card>
  );
}

/** As high as the rows that are not there. */
const Gap = ({ height }: { height: number }) =>
  height > 0 && (
    <tr aria-hidden>
      <td colSpan={9} style={{ height, padding: 0, border: 0 }} />
    </tr>
  );

function TaskRow({
  index,
  task,
  selected,
  onShow,
}: {
  index: number;
  task: Task | undefined;
  selected: boolean;
  onShow(task: number): void;
}) {
  return (
    <tr aria-rowindex={index + 2} aria-busy={!task} className={selected ? 'selected' : ''}>
      <th scope="row" className="right num">
        {index}
      </th>
      {task ? (
        <>
          <td>{task.machine?.name ?? <span className="faint">at a peer</span>}</td>
          <td title={task.message ?? undefined}>
            <TaskBadge task={task} />
          </td>
          <td className="right num minor">
            {task.exitCode ?? task.signal ?? <span className="faint">–</span>}
          </td>
          <td className="right num minor">
            <At at={task.startedAt} />
          </td>
          <td className="right num minor">
            <Lasted from={task.startedAt} to={task.endedAt} />
          </td>
          <td className="right num minor" title={task.cpuMethod ? METHODS[task.cpuMethod] : undefined}>
            {task.cpuS === null ? <span className="faint">–</span> : duration(task.cpuS)}
          </td>
          <td
            className="right num minor"
            title={task.peakMemoryMethod ? METHODS[task.peakMemoryMethod] : undefined}
          >
            {task.peakMemoryMb === null ? <span className="faint">–</span> : bytes(task.peakMemoryMb * 1e6)}
          </td>
        </>
      ) : (
        <td colSpan={7}>
          <span className="skeleton" />
        </td>
      )}
      <td className="right">
        <button
          type="button"
          className="link"
          aria-label={`Output of task ${count(index)}`}
          aria-pressed={selected}
          onClick={() => onShow(index)}
        >
          Output
        </button>
      </td>
    </tr>
  );
}

/** How far it is, in the colors of the states of jobs. */
function TaskBadge({ task: { state, cause } }: { task: Task }) {
  const [look, text] =
    state === 'WAITING'
      ? ['queued', 'Waiting']
      : state === 'RUNNING'
        ? ['running', 'Running']
        : cause === 'EXITED_ZERO'
          ? ['completed', 'Completed']
          : cause === 'OTHER_TASK_FAILED' || cause?.startsWith('CANCELLED')
            ? ['cancelled', 'Ended']
            : ['failed', 'Failed'];
  return (
    <span className={`badge state-${look}`}>
      <i className="dot" aria-hidden />
      {text}
      {cause && cause !== 'EXITED_ZERO' && <span className="faint">· {lower(causeOf(cause))}</span>}
    </span>
  );
}

/** What is known of the tasks from about `first` on, followed. */
function useTasks(
  job: Job,
  epoch: number,
  first: number,
): { tasks: ReadonlyMap<number, Task>; error: Error | null; retry(): void } {
  const [from, setFrom] = useState(0);
  const [tasks, setTasks] = useState<ReadonlyMap<number, Task>>(new Map());
  const [error, setError] = useState<Error | null>(null);
  const [again, setAgain] = useState(0);
  const connections = useStore(reconnections);
  const { everyMs = FOLLOW_MS } = useAskAfterEnd(TERMINAL.has(job.state));
  const wanted = Math.floor(first / PAGE) * PAGE;
  useEffect(() => {
    const timer = setTimeout(() => setFrom(wanted), SETTLE_MS);
    return () => clearTimeout(timer);
  }, [wanted]);

  const { id, state } = job;
  // biome-ignore lint/correctness/useExhaustiveDependencies: asked again when the job has moved on, and after a lost connection
  useEffect(() => {
    const stop = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const load = async (): Promise<void> => {
      try {
        const answer = await ask(JobTasksDocument, { id, from, first: 2 * PAGE }, stop.signal);
        const news = answer.job?.runs.find((run) => run.epoch === epoch)?.tasks ?? [];
        setTasks((before) => {
          const near = [...before].filter(([index]) => Math.abs(index - from) <= 2 * PAGE);
          return new Map([...near, ...news.map((task) => [task.index, task] as const)]);
        });
        setError(null);
      } catch (reason) {
        if (stop.signal.aborted) return;
        setError(reason as Error);
      }
      if (!stop.signal.aborted) timer = setTimeout(load, everyMs);
    };
    void load();
    return () => {
      stop.abort();
      clearTimeout(timer);
    };
  }, [id, state, epoch, from, again, connections, everyMs]);
  return { tasks, error, retry: () => setAgain((before) => before + 1) };
}
