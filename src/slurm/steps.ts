/** Steps of jobs that have ended, as sacct shows them. */
import { ask } from './ask.js';
import { SlurmStepsDocument, type SlurmStepsQuery } from './documents.gql.js';
import type { Row } from './fields.js';
import { exitOf, hasEnded, type Job, slurmState } from './jobs.js';

type Page = SlurmStepsQuery['jobs']['nodes'][number]['runs'][number]['steps'];
export type Step = Page['nodes'][number];

/** Jobs in one question, and the first steps of each: as many as one request may cost. Of few jobs there are more. */
export const STEPS_PAGES = [
  { first: 300, steps: 50 },
  { first: 1, steps: 1000 },
] as const;
const [OF_MANY, OF_ONE] = STEPS_PAGES;

/** By job, those of its latest run, in order. */
export async function stepsOf(jobs: readonly Job[]): Promise<ReadonlyMap<string, readonly Step[]>> {
  const ids = jobs.filter((job) => hasEnded(job) && job.startedAt !== null).map(({ id }) => id);
  const found = new Map<string, readonly Step[]>();
  for (let from = 0; from < ids.length; from += OF_MANY.first) {
    const some = ids.slice(from, from + OF_MANY.first);
    const { jobs } = await ask(SlurmStepsDocument, { ids: some, ...OF_MANY });
    for (const { id, runs } of jobs.nodes) {
      const all: Step[] = [];
      for (let page = runs.at(-1)?.steps; page; page = await behind(id, page)) all.push(...page.nodes);
      // Tasks that are started separately each count their own; Slurm has no such jobs.
      found.set(
        id,
        all.filter(({ task }) => task === 0),
      );
    }
  }
  return found;
}

async function behind(id: string, { pageInfo }: Page): Promise<Page | undefined> {
  if (!pageInfo.hasNextPage) return undefined;
  const variables = { ids: [id], ...OF_ONE, after: pageInfo.endCursor };
  return (await ask(SlurmStepsDocument, variables)).jobs.nodes[0]?.runs.at(-1)?.steps;
}

/** At its time limit, or canceled: Slurm ends its steps by SIGTERM first. Those that a script leaves behind it kills. */
const wasStopped = (job: Job): boolean => hasEnded(job) && ['TIMEOUT', 'CANCELLED'].includes(slurmState(job));

/** The step `batch` of a job, which is its script. One that a signal has ended is canceled for Slurm. */
export function rowOfBatch(own: Row): Row {
  const row = { ...own, step: 'batch' };
  const isStopped = wasStopped(own.job);
  if (!isStopped && own.job.cause !== 'SIGNALLED') return row;
  const job: Job = { ...own.job, state: 'CANCELLED', cause: null };
  return { ...row, job, ended: { name: 'batch', exit: isStopped ? '0:15' : exitOf(own.job) } };
}

/** `CODE:SIGNAL`. */
function exitOfStep(job: Job, { exitCode, signal }: Step): [code: number, signal: number] {
  if (exitCode === null) return [0, wasStopped(job) ? 15 : 9];
  return signal === null ? [exitCode, 0] : [0, exitCode > 128 ? exitCode - 128 : 9];
}

/** A step as a row: what a job would be that had only done this. */
export function rowOfStep(job: Job, step: Step, nowMs: number): Row {
  const { startedAt, machines, name, cpus, tasks } = step;
  const [code, signal] = exitOfStep(job, step);
  const state = signal > 0 ? 'CANCELLED' : code > 0 ? 'FAILED' : 'COMPLETED';
  const runs = job.runs?.map((run) => ({
    ...{ ...run, cpuS: null, peakMemoryMb: null },
    ...{ allocations: run.allocations.slice(0, machines), nodes: run.nodes.slice(0, machines) },
  }));
  const times = {
    startedAt,
    submittedAt: startedAt,
    eligibleAt: startedAt,
    endedAt: step.endedAt ?? job.endedAt,
  };
  return {
    job: { ...job, ...times, ...{ state, cause: null, cpus, tasks }, ...(runs && { runs }) },
    nowMs,
    step: String(step.number),
    ended: { name, exit: `${code}:${signal}` },
  };
}

/** The exit code of a job that stands for those of its steps: the highest. Steps that were stopped with the job have none. */
export function derivedExit(job: Job, steps: readonly Step[]): string {
  const [code, signal] = steps
    .filter(({ exitCode }) => exitCode !== null || !wasStopped(job))
    .map((step) => exitOfStep(job, step))
    .reduce(
      (most, one) => (one[0] > most[0] || (one[0] === most[0] && one[1] > most[1]) ? one : most),
      [0, 0],
    );
  return `${code}:${signal}`;
}
