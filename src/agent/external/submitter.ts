import { join } from 'node:path';
import { placeInputs } from '../process/inputs.js';
import { upMs } from '../process/run.js';
import { masterPort } from '../process/tasks.js';
import type { Assignment } from '../runner.js';
import type { Call } from './calls.js';
import { type Handed, record } from './handed.js';
import type { Owners } from './owners.js';
import {
  type LocalJob,
  type LocalName,
  type LocalScheduler,
  nameKey,
  RefusedError,
  type Submission,
} from './scheduler.js';
import { arrayScript, batchScript } from './script.js';
import { HangError, Notes, type SharedFiles } from './shared.js';

export interface Accepted {
  run: Handed;
  id: string;
  job: LocalJob | null;
}

export interface SubmitterOptions {
  stateDir: string;
  files: SharedFiles;
  scheduler: LocalScheduler;
  owners: Owners;
  /** Of all names that are given here. */
  prefix: string;
  baseEnvironment: Readonly<Record<string, string>>;
  /** Calls of the scheduler in a second, at most. */
  ratePerS: number;
  warn: (fields: object, message: string) => void;
  /** All that one submission was. `job`: as it was found. */
  accepted: (all: readonly Accepted[]) => void;
  /** It cannot be handed over here, through no fault of its own. */
  failed: (run: Handed, message: string) => void;
  /** The scheduler never takes it, in its words. */
  refused: (run: Handed, message: string) => void;
  /** The state directory answers: nothing is written down before. */
  isReached: () => boolean;
  /** A submission is over, whatever became of it. */
  settled: (run: Handed) => void;
}

/** Submissions under way at once. */
const AT_ONCE = 2;
/** Fewer go one by one, under names that say which job it is. */
const ARRAY_MIN = 8;
/** Runs that are written down at a time. */
const IN_A_ROW = 100;
/** After a submission of which nobody knows what became of it: longer than the scheduler may take to show it. */
export const UNSURE_MS = 10_000;
/** The scheduler's own bound is behind the script's, which ends the command in time. */
const LIMIT_MARGIN_S = 20;

/**
 * Hands runs over, many that need the same as one array. Each is written down with its name before the scheduler is asked; what is not known
 * then is looked for by that name, and submitted again if it is not found.
 */
export class Submitter {
  private readonly waiting = new Set<Handed>();
  private underWay = 0;
  private nextAt = 0;
  private timer: NodeJS.Timeout | undefined;
  private arrays = 0;
  private closed = false;
  private readonly arraysDir: string;
  /** Elements that an array may have. */
  elementsMax = 1;
  /** What the scheduler said when it did not take the last submission; null: it took it. */
  problem: string | null = null;

  constructor(private readonly options: SubmitterOptions) {
    this.arraysDir = join(options.stateDir, 'arrays');
    options.files.calls.mkdirSync(this.arraysDir, { recursive: true, mode: 0o700 });
  }

  add(run: Handed): void {
    this.waiting.add(run);
    // Others that need the same come with it.
    this.later(0);
  }

  remove(run: Handed): void {
    this.waiting.delete(run);
  }

  close(): void {
    this.closed = true;
    clearTimeout(this.timer);
  }

  /** Looks for runs that may have been submitted: those that are not found are. */
  async findUnsure(): Promise<void> {
    const now = upMs();
    const unsure = [...this.waiting].filter(({ unsure, notBefore }) => unsure && notBefore <= now);
    if (unsure.length === 0) return;
    const jobs = await this.lookFor(unsure);
    if (this.closed) return;
    const found: Accepted[] = [];
    for (const run of unsure) {
      if (!this.waiting.has(run)) continue;
      run.unsure = false;
      const job = jobs.get(run);
      if (job !== undefined) found.push({ run, id: job.id, job });
    }
    this.accept(found);
    this.pump();
  }

  /** What the scheduler knows of runs, of several jobs for one the one that is not over. */
  async lookFor(runs: readonly Handed[]): Promise<Map<Handed, LocalJob>> {
    const names = new Set(runs.flatMap((run) => run.names.map(({ name }) => name)));
    const sinceMs = Math.min(...runs.map(({ handedOverMs }) => handedOverMs));
    const jobs = names.size === 0 ? [] : await this.options.scheduler.find([...names], sinceMs);
    return jobsOf(jobs, namedBy(runs));
  }

  /** Removes what arrays needed whose runs are all over. */
  clean(live: Iterable<Handed>): void {
    const used = new Set([...live].flatMap(({ names }) => names.map(({ name }) => name)));
    const { calls } = this.options.files;
    for (const name of calls.readdirSync(this.arraysDir))
      if (!used.has(name)) calls.rmSync(join(this.arraysDir, name), { recursive: true, force: true });
  }

  private later(ms: number): void {
    if (this.closed || this.timer !== undefined) return;
    this.timer = setTimeout(() => {
      this.timer = undefined;
      this.pump();
    }, ms);
  }

  pump(): void {
    while (this.underWay < AT_ONCE && !this.closed && this.options.isReached()) {
      const now = upMs();
      if (now < this.nextAt) {
        this.later(this.nextAt - now);
        return;
      }
      const batch = this.nextBatch();
      if (batch.length === 0) return;
      this.nextAt = now + 1000 / this.options.ratePerS;
      this.underWay++;
      for (const run of batch) {
        this.waiting.delete(run);
        run.busy = true;
      }
      void this.submit(batch).finally(() => {
        this.underWay--;
        for (const run of batch) {
          run.busy = false;
          this.options.settled(run);
        }
        this.pump();
      });
    }
  }

  /** The run that has waited for longest, with those that need the same. */
  private nextBatch(): Handed[] {
    const batch: Handed[] = [];
    let needs: string | null = null;
    const now = upMs();
    for (const run of this.waiting) {
      if (run.unsure || run.notBefore > now || !this.isOwned(run)) continue;
      const alone = run.alone || partsOf(run.assignment) !== null;
      if (alone && batch.length === 0) return [run];
      if (alone) continue;
      needs ??= needsOf(run);
      if (needsOf(run) === needs) batch.push(run);
      if (batch.length === this.elementsMax) break;
    }
    return batch.length < Math.max(2, Math.min(ARRAY_MIN, this.elementsMax)) ? batch.slice(0, 1) : batch;
  }

  private isOwned(run: Handed): boolean {
    try {
      return this.options.owners.isFound(run);
    } catch (error) {
      this.options.failed(run, (error as Error).message);
      return false;
    }
  }

  /** Once; what is not known then is looked for before another attempt. */
  private async submit(batch: readonly Handed[]): Promise<void> {
    const { scheduler, warn, refused } = this.options;
    try {
      const { runs, submission } = await this.writeDown(batch);
      batch = runs.filter((run) => run !== null);
      if (this.closed || batch.length === 0) return;
      for (const run of batch) run.submittedMs = Date.now();
      const ids = await scheduler.submit(submission);
      this.problem = null;
      if (this.closed) return;
      this.accept(runs.flatMap((run, i) => (run === null ? [] : [{ run, id: ids[i] as string, job: null }])));
    } catch (error) {
      if (this.closed) return;
      // Nothing was submitted.
      if (error instanceof HangError) {
        for (const run of batch) if (run.end === null) this.waiting.add(run);
        return;
      }
      const { message } = error as Error;
      const isRefused = error instanceof RefusedError;
      // Of an array nobody knows which of them it was: each is asked for by itself.
      if (isRefused && batch.length === 1) return refused(batch[0] as Handed, message);
      const { jobId: job, epoch } = (batch[0] as Handed).assignment;
      const fields = { job, epoch, runs: batch.length, error: message };
      if (isRefused) warn(fields, `${scheduler.label} rejected an array; its runs are submitted one by one`);
      else {
        this.problem = `${scheduler.label} does not accept jobs: ${message}`.slice(0, 500);
        warn(fields, `${scheduler.label} did not confirm a run; looking for it`);
      }
      for (const run of batch) {
        run.alone ||= isRefused;
        run.unsure = !isRefused;
        run.notBefore = isRefused ? 0 : upMs() + UNSURE_MS;
        if (run.end === null) this.waiting.add(run);
      }
    }
  }

  /**
   * Everything that the runs and the next agent need. Runs for which that fails are over; in an array, nothing begins in their places (null).
   *
   * @throws HangError when nothing is known of it, and everything is to be written down once more
   */
  private async writeDown(
    batch: readonly Handed[],
  ): Promise<{ runs: (Handed | null)[]; submission: Submission }> {
    const { scheduler, prefix, failed, files, owners } = this.options;
    const { assignment, terms, owner } = batch[0] as Handed;
    const { jobId, epoch, runTimeLimitS, killGraceS } = assignment;
    const { tasks, cpusPerTask, memoryMbPerTask, resourcesPerTask, licenses, resources, nodes } = assignment;
    const { tasksPerMachine, exclusive, sameSwitch } = assignment;
    const array = batch.length > 1;
    const name = array
      ? `${prefix}a${Date.now().toString(36)}.${++this.arrays}`
      : `${prefix}${(batch[0] as Handed).key.replaceAll(/[^\w.+-]/g, '_')}`;
    const runs: (Handed | null)[] = batch.filter(({ end }) => end === null);
    for (let at = 0; at < runs.length; at += IN_A_ROW) {
      const some = runs.slice(at, at + IN_A_ROW) as Handed[];
      const named = some.map((run, i) => withName(run, { name, element: array ? at + i : null }));
      const problems = await files.later(some.map((run, i) => this.notes(run, named[i] as LocalName[])));
      for (const [i, run] of some.entries()) {
        const problem = problems[i] ?? null;
        if (problem !== null) failed(run, `${this.options.stateDir}: ${problem}`);
        // It may have ended meanwhile.
        if (run.end === null && problem === null) run.names = named[i] as LocalName[];
        else runs[at + i] = null;
      }
    }
    const directory = array ? join(this.arraysDir, name) : this.dirOf(batch[0] as Handed);
    if (array) {
      const { noted, calls } = new Notes();
      calls.mkdirSync(directory, { recursive: true, mode: 0o700 });
      const elements = join(directory, 'elements');
      const lines = runs.map((run) => (run === null ? '\n' : `${this.dirOf(run)}/script\n`));
      calls.writeFileSync(elements, lines.join(''), { mode: 0o644 });
      calls.writeFileSync(join(directory, 'script'), arrayScript(elements, scheduler), { mode: 0o700 });
      owners.give(calls, batch[0] as Handed, directory);
      const [problem] = await files.later([noted]);
      if (problem !== null) throw new Error(problem);
    }
    const submission = {
      ...{ name, directory, script: join(directory, 'script'), elements: array ? runs.length : null },
      comment: array ? `switchyard:${runs.length} jobs` : `switchyard:${jobId}:${epoch}`,
      ...{ tasks, cpusPerTask, memoryMbPerTask, resourcesPerTask, licenses, resources, nodes },
      ...{ tasksPerMachine, exclusive, sameSwitch, parts: partsOf(assignment) },
      ...{ user: owner?.name ?? null, ...terms },
      timeLimitS: runTimeLimitS === null ? null : runTimeLimitS + killGraceS + LIMIT_MARGIN_S,
    };
    return { runs, submission };
  }

  /** What is written down of a run; of one that has ended meanwhile nothing. */
  private notes(run: Handed, names: LocalName[]): readonly Call[] {
    if (run.end !== null) return [];
    const { scheduler, baseEnvironment, owners } = this.options;
    const { assignment, key } = run;
    const { noted, calls } = new Notes();
    const directory = this.dirOf(run);
    // A second submission is of what the first one was.
    if (run.names.length === 0) {
      const work = join(directory, 'work');
      const owned = run.owner !== null;
      const desk = owned ? join(directory, 'desk') : directory;
      calls.mkdirSync(directory, { recursive: true, mode: 0o700 });
      // Else the run makes it: the agent has many to hand over.
      if (owned || assignment.staged?.length) calls.mkdirSync(work, { recursive: true, mode: 0o700 });
      if (owned) calls.mkdirSync(desk, { recursive: true, mode: 0o700 });
      const marks = owners.marksOf(run).of(key);
      const places = { directory, desk, work: assignment.workingDirectory ?? work, ...marks };
      const inputs = placeInputs(assignment, work, calls);
      const variables = { ...baseEnvironment, ...variablesOf(assignment), ...inputs };
      const script = batchScript(assignment, variables, places, scheduler);
      calls.writeFileSync(join(directory, 'script'), script, { mode: 0o700 });
      owners.give(calls, run, directory);
      owners.giveDirectories(calls, run, directory);
    }
    record(calls, directory, { ...run, names });
    return noted;
  }

  private accept(all: readonly Accepted[]): void {
    for (const { run } of all) {
      this.waiting.delete(run);
      run.unsure = false;
    }
    this.options.accepted(all);
  }

  private dirOf({ key }: Handed): string {
    return join(this.options.stateDir, 'runs', key);
  }
}

/** Of a job whose tasks are not all alike; null: they are. */
const partsOf = ({ jobParts = [], partNodes = [] }: Assignment): Submission['parts'] =>
  jobParts.length === 0 ? null : jobParts.map((part, i) => ({ ...part, nodes: partNodes[i] ?? null }));

/** What has to be equal in an array. */
const needsOf = ({ assignment, owner, terms }: Handed): string => {
  const { tasks, cpusPerTask, memoryMbPerTask, resourcesPerTask, licenses, resources, nodes } = assignment;
  const { runTimeLimitS, killGraceS, tasksPerMachine, exclusive, sameSwitch } = assignment;
  const times = [runTimeLimitS, killGraceS];
  const shape = [tasks, cpusPerTask, memoryMbPerTask, resourcesPerTask, licenses, resources, nodes];
  return JSON.stringify([shape, tasksPerMachine, exclusive, sameSwitch, times, terms, owner?.name]);
};

const withName = ({ names }: Handed, own: LocalName): LocalName[] =>
  names.some((name) => nameKey(name) === nameKey(own)) ? names : [...names, own];

/** What runs are known by there. */
export const namedBy = (runs: Iterable<Handed>): Map<string, Handed> =>
  new Map([...runs].flatMap((run) => run.names.map((name) => [nameKey(name), run])));

/** The jobs of runs: of several for one, that in which it began; else one that is not over. */
export function jobsOf(jobs: Iterable<LocalJob>, runs: ReadonlyMap<string, Handed>): Map<Handed, LocalJob> {
  const found = new Map<Handed, LocalJob>();
  for (const job of jobs) {
    const run = runs.get(nameKey(job));
    if (run === undefined || job.user !== (run.owner?.name ?? null)) continue;
    const before = found.get(run);
    if (before === undefined || weight(run, job) > weight(run, before)) found.set(run, job);
  }
  return found;
}

function weight({ beganMs, localId }: Handed, { id, phase }: LocalJob): number {
  if (beganMs !== null && id === localId) return 2;
  return phase === 'ENDED' ? 0 : 1;
}

/** What runs are told. */
function variablesOf(assignment: Assignment) {
  const { jobId, epoch, tasks, cpusPerTask, memoryMbPerTask, jobParts = [], launch, arrayIndex } = assignment;
  // Each task is told those of its part.
  const differs = jobParts.length > 0 && launch === 'EVERY_TASK';
  return {
    SWITCHYARD_JOB_ID: jobId,
    SWITCHYARD_EPOCH: String(epoch),
    SWITCHYARD_RUN: `${jobId}.${epoch}`,
    SWITCHYARD_TASKS: String(tasks),
    ...(!differs && {
      SWITCHYARD_CPUS_PER_TASK: String(cpusPerTask),
      SWITCHYARD_MEMORY_MB_PER_TASK: String(memoryMbPerTask),
    }),
    ...(jobParts.length > 0 && { SWITCHYARD_PARTS: String(jobParts.length) }),
    ...(tasks > 1 && launch === 'EVERY_TASK' && { MASTER_PORT: masterPort(assignment) }),
    ...(arrayIndex === null ? {} : { SWITCHYARD_ARRAY_INDEX: String(arrayIndex) }),
  };
}
