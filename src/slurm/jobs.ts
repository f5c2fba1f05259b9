/** Jobs in Slurm's terms: their numbers, states, times, and the jobs that a list of numbers names. */
import { arrayOf, type Indices, parseArray } from '../words/index.js';
import { ask, SlurmError } from './ask.js';
import {
  type BriefJobFragment,
  SlurmJobsDocument,
  type SlurmJobsQueryVariables,
  SlurmRunsDocument,
  type SlurmRunsQuery,
  SlurmStartsDocument,
} from './documents.gql.js';

type Filter = SlurmJobsQueryVariables['filter'];
type FullJob = SlurmRunsQuery['jobs']['nodes'][number];
/** What only the dearer query asks for is absent otherwise. */
export type Job = BriefJobFragment &
  Partial<Pick<FullJob, 'runs' | 'resourcesPerTask' | 'devicesPerTask' | 'resources'>> & {
    /** Of one that waits, where it was asked for (`withStarts`). */
    readonly expectedStart?: string | null;
  };

/** Objects in a page: as many as one request may cost. */
const [BRIEF_PAGE, FULL_PAGE] = [5000, 300];

export const numberOf = (id: string): number => Number(id.replace(/^job_/, ''));

/** All jobs that match, and whose key asks. */
export async function findJobs(
  filter: Filter,
  { full = false } = {},
): Promise<{ jobs: Job[]; user: string }> {
  const jobs: Job[] = [];
  let after: string | null = null;
  for (;;) {
    const asked: SlurmJobsQueryVariables = { filter, first: full ? FULL_PAGE : BRIEF_PAGE, after };
    const answer: {
      viewer: { name: string };
      jobs: { nodes: readonly Job[]; pageInfo: { hasNextPage: boolean; endCursor: string | null } };
    } = full ? await ask(SlurmRunsDocument, asked) : await ask(SlurmJobsDocument, asked);
    jobs.push(...answer.jobs.nodes);
    if (!answer.jobs.pageInfo.hasNextPage) return { jobs, user: answer.viewer.name };
    after = answer.jobs.pageInfo.endCursor;
  }
}

/** Each start is computed: as many in a page as one request may cost, and no more are asked for than Slurm plans. */
export const STARTS_PAGE = 100;
const STARTS_MAX = 500;

/** The jobs, the first ones of those that wait with their expected starts. */
export async function withStarts(jobs: readonly Job[]): Promise<Job[]> {
  const ids = jobs.filter((job) => slurmState(job) === 'PENDING').map(({ id }) => id);
  const starts = new Map<string, string | null>();
  for (let at = 0; at < Math.min(ids.length, STARTS_MAX); at += STARTS_PAGE) {
    const some = ids.slice(at, at + STARTS_PAGE);
    const { jobs: found } = await ask(SlurmStartsDocument, { ids: some, first: some.length });
    for (const { id, expectedStart } of found.nodes) starts.set(id, expectedStart);
  }
  return jobs.map((job) => ({ ...job, expectedStart: starts.get(job.id) ?? null }));
}

/** The array that a job is an element of; null: it is none. Its elements follow one another. */
export interface ArrayPlace {
  /** The number of its first element, which is that of the array. */
  first: number;
  indices: readonly number[];
  /** How many run at once, at most; null: as many as can. */
  atOnce: number | null;
  groupName: string;
}

/** Arrays as they were written, with the place of each index: all their elements have the same, and may be many. */
const arrays = new Map<string, WrittenArray | null>();
type WrittenArray = Indices & { places: ReadonlyMap<number, number> };

function writtenArray(written: string): WrittenArray | null {
  const known = arrays.get(written);
  if (known !== undefined) return known;
  let array: WrittenArray | null = null;
  try {
    const parsed = parseArray('array', written);
    array = { ...parsed, places: new Map(parsed.indices.map((index, place) => [index, place])) };
  } catch {
    // A name of somebody else's that only looks like ours.
  }
  arrays.set(written, array);
  return array;
}

export function placeOf(job: Pick<Job, 'id' | 'groupName' | 'arrayIndex' | 'atOnce'>): ArrayPlace | null {
  const written = arrayOf(job.groupName);
  const array = written === null ? null : writtenArray(written);
  const place = job.arrayIndex === null ? undefined : array?.places.get(job.arrayIndex);
  if (array === null || place === undefined) return null;
  const { indices } = array;
  // As it was submitted, unless it was changed.
  const atOnce = job.atOnce === null ? array.atOnce : job.atOnce || null;
  return { first: numberOf(job.id) - place, indices, atOnce, groupName: job.groupName! };
}

/** `12`, or `12_3` of an array's element. */
export function shownId(job: Job): string {
  const place = placeOf(job);
  return place === null ? String(numberOf(job.id)) : `${place.first}_${job.arrayIndex}`;
}

/** A job as people write it: `12`, `job_12`, `12_3`, `12_[1-3]`, `12.batch`. */
interface Written {
  number: number;
  /** null: all, of an array. */
  indices: readonly number[] | null;
  /** `batch`, `0`; null: the job itself. */
  step: string | null;
  text: string;
}

export function writtenJob(text: string): Written {
  const [, number, list, step = null] =
    /^(?:job_)?(\d{1,15})(?:_([\d,:%[\]*-]+))?(?:\.(\w+))?$/.exec(text) ?? [];
  if (number === undefined) throw new SlurmError(`Invalid job id specified: ${text}`);
  const indices = list === undefined || list === '*' ? null : parseArray('job id', list).indices;
  return { number: Number(number), indices, step, text };
}

/**
 * The jobs that are named, with all elements of arrays that are named as a whole; and the texts that name none. `steps`: of those that are named
 * only by steps of them, which.
 */
export async function namedJobs(
  texts: readonly string[],
  how: { full?: boolean } = {},
): Promise<{ jobs: Job[]; unknown: string[]; user: string; steps: Map<number, Set<string>> }> {
  const written = texts
    .flatMap((text) => text.split(/,(?![^[]*\])/))
    .filter(Boolean)
    .map(writtenJob);
  if (written.length === 0) throw new SlurmError('Invalid job id specified');
  const heads = [...new Set(written.map(({ number }) => number))];
  const { jobs: found, user } = await findJobs({ ids: heads.map((number) => `job_${number}`) }, how);
  const byNumber = new Map(found.map((job) => [numberOf(job.id), job]));
  const arrays = found.flatMap((job) => {
    const place = placeOf(job);
    return place?.first === numberOf(job.id) && place.indices.length > 1 ? [place] : [];
  });
  for (const { groupName } of arrays)
    for (const job of (await findJobs({ groupName }, how)).jobs) byNumber.set(numberOf(job.id), job);
  const chosen = new Map<number, Job>();
  const unknown: string[] = [];
  const whole = new Set<number>();
  const steps = new Map<number, Set<string>>();
  for (const { number, indices, step, text } of written) {
    const head = byNumber.get(number);
    const place = head && placeOf(head);
    const numbers =
      place?.first === number
        ? place.indices.flatMap((index, at) =>
            indices === null || indices.includes(index) ? [number + at] : [],
          )
        : indices === null
          ? [number]
          : [];
    const jobs = numbers.flatMap((one) => byNumber.get(one) ?? []);
    if (jobs.length === 0) unknown.push(text);
    for (const job of jobs) {
      const id = numberOf(job.id);
      chosen.set(id, job);
      if (step === null) whole.add(id);
      else steps.set(id, (steps.get(id) ?? new Set<string>()).add(step));
    }
  }
  for (const id of whole) steps.delete(id);
  return { jobs: [...chosen.values()], unknown, user, steps };
}

/** Slurm's words and letters for a state. */
const LETTERS = {
  PENDING: 'PD',
  CONFIGURING: 'CF',
  RUNNING: 'R',
  COMPLETING: 'CG',
  COMPLETED: 'CD',
  CANCELLED: 'CA',
  FAILED: 'F',
  TIMEOUT: 'TO',
  OUT_OF_MEMORY: 'OOM',
  NODE_FAIL: 'NF',
  DEADLINE: 'DL',
} as const;
export type State = keyof typeof LETTERS;
export const STATES = Object.keys(LETTERS) as State[];
export const letters = (state: State): string => LETTERS[state];
/** Of a state as people write it, or null. */
export const stateOf = (text: string): State | null =>
  STATES.find((state) => [state, LETTERS[state] as string].includes(text.toUpperCase())) ?? null;

const CAUSES: Readonly<Record<string, State>> = {
  ...{
    RUN_TIME_LIMIT: 'TIMEOUT',
    MEMORY_LIMIT: 'OUT_OF_MEMORY',
    LOST: 'NODE_FAIL',
    MACHINE_FAILED: 'NODE_FAIL',
    DEADLINE_PASSED: 'DEADLINE',
  },
};

export function slurmState({ state, cause }: Job): State {
  switch (state) {
    case 'ASSIGNED':
      return 'CONFIGURING';
    case 'RUNNING':
      return 'RUNNING';
    case 'CANCELLING':
      return 'COMPLETING';
    case 'COMPLETED':
      return 'COMPLETED';
    case 'CANCELLED':
      return CAUSES[cause ?? ''] ?? 'CANCELLED';
    case 'FAILED':
      return CAUSES[cause ?? ''] ?? 'FAILED';
    default:
      return 'PENDING';
  }
}

export const hasEnded = (job: Job): boolean => job.endedAt !== null;

/** Why it waits, or how it ended, in Slurm's words. */
export function reasonOf(job: Job, nowMs: number): string {
  if (job.state === 'HELD') return 'JobHeldUser';
  if (job.state === 'BLOCKED')
    return job.notBefore !== null && Date.parse(job.notBefore) > nowMs ? 'BeginTime' : 'Dependency';
  if (job.state === 'QUEUED') return 'Priority';
  if (job.state === 'DISPATCHED') return 'Resources';
  if (job.cause === 'EXITED_NONZERO') return 'NonZeroExitCode';
  if (job.cause === 'RUN_TIME_LIMIT') return 'TimeLimit';
  if (job.cause === 'MEMORY_LIMIT') return 'OutOfMemory';
  if (job.cause === 'LOST' || job.cause === 'MACHINE_FAILED') return 'NodeDown';
  if (job.cause === 'LAUNCH_FAILED' || job.cause === 'SIGNALLED') return 'JobLaunchFailure';
  if (job.cause === 'NEVER_FITS') return 'BadConstraints';
  if (job.cause === 'DEPENDENCY_FAILED') return 'DependencyNeverSatisfied';
  return 'None';
}

/** `CODE:SIGNAL`. */
export function exitOf(job: Job): string {
  const code = job.exitCode ?? 0;
  const state = slurmState(job);
  if (state === 'OUT_OF_MEMORY') return '0:125';
  if (state !== 'FAILED' && state !== 'COMPLETED') return '0:0';
  if (job.cause === 'SIGNALLED') return `0:${code > 128 ? code - 128 : 9}`;
  if (job.cause === 'LAUNCH_FAILED' && job.exitCode === null) return '0:53';
  return `${code === 0 && state === 'FAILED' ? 1 : code}:0`;
}

/** Machines of its latest run, in order. */
export function nodesOf({ runs = [] }: Job): string[] {
  const run = runs.at(-1);
  if (!run) return [];
  return [...new Set([...run.allocations.map(({ machine }) => machine.name), ...run.nodes])].sort();
}

/** Local time without a zone, as Slurm writes it; `absent` for null. */
export function localTime(at: string | null, absent: string): string {
  if (at === null) return absent;
  const date = new Date(at);
  const two = (value: number): string => String(value).padStart(2, '0');
  return `${date.getFullYear()}-${two(date.getMonth() + 1)}-${two(date.getDate())}T${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
}

export const elapsedS = (job: Job, nowMs: number): number =>
  job.startedAt === null
    ? 0
    : Math.max(
        0,
        Math.floor(
          ((job.endedAt === null ? nowMs : Date.parse(job.endedAt)) - Date.parse(job.startedAt)) / 1000,
        ),
      );

/** `1-02:03:04`; `short`: `3:04`, as squeue writes it. */
export function clock(seconds: number, short = false): string {
  const whole = Math.floor(seconds);
  const days = Math.floor(whole / 86_400);
  const [hours, minutes, rest] = [Math.floor(whole / 3600) % 24, Math.floor(whole / 60) % 60, whole % 60];
  const two = (value: number): string => String(value).padStart(2, '0');
  if (days > 0) return `${days}-${two(hours)}:${two(minutes)}:${two(rest)}`;
  if (!short) return `${two(hours)}:${two(minutes)}:${two(rest)}`;
  return hours > 0 ? `${hours}:${two(minutes)}:${two(rest)}` : `${minutes}:${two(rest)}`;
}
