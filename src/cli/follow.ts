/** News of jobs, as the commands need them: a stream of updates, and waiting for jobs to end. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Client } from '../client/index.js';
import { type EndCause, isTerminal } from '../core/states.js';
import { MAX } from '../platform/limits.js';
import { note } from './command.js';
import {
  type JobFilter,
  type JobLineFragment,
  JobLinesDocument,
  JobUpdatedDocument,
  JobUpdatedFullDocument,
  type JobUpdatedSubscription,
  LatestCursorDocument,
  NeverFitsDocument,
} from './documents.gql.js';
import { CliError, ExitCode } from './errors.js';

/** What a line about a job needs. */
export type JobLine = JobLineFragment;

export type JobUpdate = JobUpdatedSubscription['jobUpdated'];

/** News of the jobs that match, behind a cursor. */
export function jobUpdates(
  client: Client,
  filter: JobFilter | null,
  { after, signal, full = false }: { after: string; signal: AbortSignal; full?: boolean },
): AsyncGenerator<JobUpdate> {
  return client.updates(
    full ? JobUpdatedFullDocument : JobUpdatedDocument,
    'jobUpdated',
    { filter },
    { after, signal, onRetry: (why) => note(`connection lost (${why}); trying again`) },
  );
}

/** A cursor: what happens from now on is behind it. */
export async function latestCursor(client: Client): Promise<string> {
  return (await client.request(LatestCursorDocument, {})).latestCursor;
}

/** The error for a job that is not there. */
export function noSuchJob(id: string): CliError {
  return new CliError(`there is no job ${id}, or this key may not see it (NOT_FOUND)`, ExitCode.NOT_FOUND);
}

/** Jobs by id, in no particular order; unknown ids are left out. */
export async function jobsById(client: Client, ids: readonly string[]): Promise<JobLine[]> {
  const jobs: JobLine[] = [];
  for (let i = 0; i < ids.length; i += MAX.filterIds) {
    const filter = { ids: ids.slice(i, i + MAX.filterIds) };
    jobs.push(...(await client.all(JobLinesDocument, 'jobs', { filter })));
  }
  return jobs;
}

/** What an update says of a job: `FAILED EXITED_NONZERO 7`, `FAILED RUN_TIME_LIMIT (it ran longer than its limit, --time)`. */
export function stateTold(job: JobLine, update: JobUpdate | null): string {
  // The event's own state: by now the job may be further.
  const state = update?.event?.toState ?? job.state;
  if (update && !update.event?.toState) return `${state} (changed)`;
  if (!isTerminal(state) || !job.cause) return state;
  const limit = LIMITS[job.cause];
  return `${state} ${job.cause}${limit ? ` (${limit})` : job.exitCode ? ` ${job.exitCode}` : ''}`;
}

/** Ends by a limit: the signal that ended the command, as 143 or 137, says less. */
const LIMITS: Readonly<Partial<Record<EndCause, string>>> = {
  RUN_TIME_LIMIT: 'it ran longer than its limit, --time',
  MEMORY_LIMIT: 'it used more memory than it requested, --mem',
  CPU_LIMIT: 'it used more CPU time than its CPUs provide, --cpus',
  DISK_LIMIT: 'it used more disk space than the site allows',
  PROCESS_LIMIT: 'it had more processes than the site allows',
};

/**
 * Waits until these jobs have ended and gives how they did. Ends earlier when `signal` is aborted, with those that had.
 * Throws NOT_FOUND for a job that is not there.
 *
 * @param onUpdate told of every job's state when the wait begins, and of every update
 * @param onEnd told once of each job that has ended
 */
export async function awaitEnds(
  client: Client,
  ids: readonly string[],
  signal: AbortSignal,
  onUpdate: (job: JobLine, update: JobUpdate | null) => void = () => {},
  onEnd: (job: JobLine) => void = () => {},
): Promise<Map<string, JobLine>> {
  const pending = new Set(ids);
  const ended = new Map<string, JobLine>();
  const take = (job: JobLine, update: JobUpdate | null): void => {
    onUpdate(job, update);
    // The job of an update may be ahead of its event: the news of its end is still to come.
    const state = update === null ? job.state : update.event?.toState;
    if (!state || !isTerminal(state) || !pending.delete(job.id)) return;
    ended.set(job.id, job);
    onEnd(job);
  };
  const look = async (): Promise<void> => {
    const asked = [...pending];
    const jobs = await jobsById(client, asked);
    if (jobs.length < asked.length) {
      const there = new Set(jobs.map(({ id }) => id));
      throw noSuchJob(asked.find((id) => !there.has(id))!);
    }
    for (const job of jobs) take(job, null);
  };

  const after = await latestCursor(client);
  await look();
  if (pending.size === 0) return ended;
  const done = new AbortController();
  void tellNeverFits(client, pending, AbortSignal.any([signal, done.signal])).catch(() => {});
  // More ids than a filter takes: all news that the key may see, and the others are passed over.
  const filter = ids.length <= MAX.filterIds ? { ids: [...pending] } : null;
  try {
    for await (const update of jobUpdates(client, filter, { after, signal })) {
      if (update.resyncRequired) await look();
      else if (update.job && pending.has(update.job.id)) take(update.job, update);
      if (pending.size === 0) break;
    }
  } finally {
    done.abort();
  }
  return ended;
}

const NEVER_FITS_EVERY_MS = 60_000;
const NEVER_FITS_LOOKS = 1_000;

/**
 * Tells once of each job that it will never end as the grid now is: of the first that wait, for as long as they are waited for. Only
 * a remark: whoever waits may be about to add the machine.
 */
async function tellNeverFits(
  client: Client,
  pending: ReadonlySet<string>,
  signal: AbortSignal,
): Promise<void> {
  const told = new Set<string>();
  while (!signal.aborted) {
    const ids = [...pending].filter((id) => !told.has(id)).slice(0, NEVER_FITS_LOOKS);
    const { jobs } = await client.request(NeverFitsDocument, { ids }, signal);
    for (const { id, whyWaiting } of jobs.nodes) {
      if (!whyWaiting?.code.startsWith('NEVER_FITS')) continue;
      told.add(id);
      note(
        `${id} cannot start at any site in its current configuration: ${whyWaiting.message} (${whyWaiting.code})`,
      );
    }
    await sleep(NEVER_FITS_EVERY_MS, undefined, { signal, ref: false });
  }
}
