import { join } from 'node:path';
import { placeInputs } from '../process/inputs.js';
import { upMs } from '../process/run.js';
import { masterPort } from '../process/tasks.js';
import type { Assignment } from '../runner.js';
import type { Arrays } from './arrays.js';
import type { Calls } from './calls.js';
import { type Handed, type RunRecord, writeRecord } from './handed.js';
import type { Owners } from './owners.js';
import {
  type LocalJob,
  type LocalName,
  type LocalScheduler,
  nameKey,
  RefusedError,
  type Submission,
} from './scheduler.js';
import { batchScript, ELEMENTS_IN_FILE } from './script.js';
import { HangError, Notes, type SharedFiles } from './shared.js';

export interface Accepted {
  run: Handed;
  id: string;
  job: LocalJob | null;
}

export interface SubmitterOptions {
  stateDir: string;
  files: SharedFiles;
  arrays: Arrays;
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
  private submitted = 0;
  private closed = false;
  /** Elements that an array may have. */
  elementsMax = 1;
  /** What the scheduler said when it did not take the last submission; null: it took it. */
  problem: string | null = null;

  constructor(private readonly options: SubmitterOptions) {}

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
      run.needs ??= needsOf(run);
      needs ??= run.needs;
      if (run.needs === needs) batch.push(run);
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
    const { prefix } = this.options;
    const first = batch[0] as Handed;
    const { assignment, terms, owner } = first;
    const { jobId, epoch, runTimeLimitS, killGraceS } = assignment;
    const { tasks, cpusPerTask, memoryMbPerTask, resourcesPerTask, licenses, resources, nodes } = assignment;
    const { devicesPerTask = [], pools = [], tasksPerMachine, exclusive, sameSwitch } = assignment;
    const array = batch.length > 1;
    const name = array
      ? `${prefix}a${Date.now().toString(36)}.${++this.submitted}`
      : `${prefix}${first.key.replaceAll(/[^\w.+-]/g, '_')}`;
    const runs = array ? await this.writeArray(name, batch) : [await this.writeOne(name, first)];
    const directory = array ? this.options.arrays.dirOf(name) : this.dirOf(first);
    const submission = {
      ...{ name, directory, script: join(directory, 'script'), elements: array ? runs.length : null },
      comment: array ? `switchyard:${runs.length} jobs` : `switchyard:${jobId}:${epoch}`,
      ...{ tasks, cpusPerTask, memoryMbPerTask, resourcesPerTask, licenses, resources, nodes },
      ...{ devicesPerTask, pools, tasksPerMachine, exclusive, sameSwitch, parts: partsOf(assignment) },
      ...{ user: owner?.name ?? null, ...terms },
      timeLimitS: runTimeLimitS === null ? null : runTimeLimitS + killGraceS + LIMIT_MARGIN_S,
    };
    return { runs, submission };
  }

  private async writeOne(name: string, run: Handed): Promise<Handed | null> {
    if (run.end !== null) return null;
    const { files, owners, scheduler } = this.options;
    const { noted, calls } = new Notes();
    const directory = this.dirOf(run);
    const names = withName(run, { name, element: null });
    calls.mkdirSync(directory, { recursive: true, mode: 0o700 });
    const script = this.scriptOf(calls, run, scheduler, false);
    // Replaced whole: an earlier submission may be reading it.
    calls.writeFileSync(join(directory, 'script.tmp'), script, { mode: 0o700 });
    calls.renameSync(join(directory, 'script.tmp'), join(directory, 'script'));
    owners.give(calls, run, directory);
    owners.giveScript(calls, run, join(directory, 'script'));
    owners.giveDirectories(calls, run, directory);
    writeRecord(calls, directory, recordOfRun(run, names));
    const [problem = null] = await files.later([noted]);
    return this.written(run, names, problem);
  }

  /** In few files for many runs (arrays.ts). */
  private async writeArray(name: string, batch: readonly Handed[]): Promise<(Handed | null)[]> {
    const { files, owners, scheduler, arrays } = this.options;
    const first = batch[0] as Handed;
    const directory = arrays.dirOf(name);
    const begun = new Notes();
    const script = arrays.begin(begun.calls, name, first.assignment.tasks, scheduler);
    owners.give(begun.calls, first, directory);
    owners.giveScript(begun.calls, first, script);
    const [problem] = await files.later([begun.noted]);
    if (problem !== null) throw new Error(problem);
    // The array has said what they need of the scheduler.
    const element = { prologue: '', tasks: scheduler.tasks, parts: null };
    const runs: (Handed | null)[] = batch.filter(({ end }) => end === null);
    for (let at = 0; at < runs.length; at += ELEMENTS_IN_FILE) {
      const some = runs.slice(at, at + ELEMENTS_IN_FILE) as Handed[];
      const directories = some.map(() => new Notes());
      const scripts = some.map((run, i) =>
        this.scriptOf((directories[i] as Notes).calls, run, element, true),
      );
      const problems = directories.some(({ noted }) => noted.length > 0)
        ? await files.later(directories.map(({ noted }) => noted))
        : [];
      const names = some.map((run, i) => withName(run, { name, element: at + i }));
      const elements = some.map((run, i) =>
        problems[i] == null && run.end === null
          ? { script: scripts[i] as string, record: recordOfRun(run, names[i] as LocalName[]) }
          : null,
      );
      const { noted, calls } = new Notes();
      owners.giveScript(calls, first, arrays.write(calls, name, at, elements));
      const [all = null] = await files.later([noted]);
      for (const [i, run] of some.entries())
        runs[at + i] = this.written(run, names[i] as LocalName[], problems[i] ?? all);
    }
    return runs;
  }

  /** What became of a run that was to be written down under a further name; null: nothing is to begin. */
  private written(run: Handed, names: LocalName[], problem: string | null): Handed | null {
    const { stateDir, failed, arrays } = this.options;
    if (problem !== null) failed(run, `${stateDir}: ${problem}`);
    else if (run.end === null) {
      run.names = names;
      return run;
    }
    // It has ended meanwhile.
    else arrays.forget(names.slice(-1));
    return null;
  }

  /**
   * The batch script of a run. `files`: who makes what has to be there before it begins, and gives it to its account; in an array, if that is
   * nothing, the script makes the directory, too.
   */
  private scriptOf(
    files: Calls,
    run: Handed,
    scheduler: Parameters<typeof batchScript>[3],
    inArray: boolean,
  ): string {
    const { baseEnvironment, owners } = this.options;
    const { assignment, key, owner } = run;
    const directory = this.dirOf(run);
    const work = join(directory, 'work');
    const owned = owner !== null;
    const desk = owned ? join(directory, 'desk') : directory;
    const needsMore = owned || (assignment.staged?.length ?? 0) > 0;
    // What was there for an earlier submission stays as it is: it may be its account's.
    const isFirst = run.names.length === 0;
    if (needsMore && isFirst) {
      files.mkdirSync(work, { recursive: true, mode: 0o700 });
      if (owned) files.mkdirSync(desk, { recursive: true, mode: 0o700 });
    }
    const inputs = placeInputs(assignment, work, isFirst ? files : PLACED);
    if (inArray && needsMore && isFirst) {
      owners.give(files, run, directory);
      owners.giveDirectories(files, run, directory);
    }
    const variables = { ...baseEnvironment, ...variablesOf(assignment), ...inputs };
    const places = {
      ...{ directory, desk, work: assignment.workingDirectory ?? work },
      ...{ isMade: !inArray || needsMore, ...owners.marksOf(run).of(key) },
    };
    return batchScript(assignment, variables, places, scheduler);
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

/** Links that are there. */
const PLACED = { symlinkSync(): void {} };

const recordOfRun = (
  { assignment, terms, owner = null, handedOverMs }: Handed,
  names: LocalName[],
): RunRecord => ({ assignment, terms, owner, handedOverMs, names });

/** Of a job whose tasks are not all alike; null: they are. */
const partsOf = ({ jobParts = [], partNodes = [] }: Assignment): Submission['parts'] =>
  jobParts.length === 0 ? null : jobParts.map((part, i) => ({ ...part, nodes: partNodes[i] ?? null }));

/** What has to be equal in an array. */
const needsOf = ({ assignment, owner, terms }: Handed): string => {
  const { tasks, cpusPerTask, memoryMbPerTask, resourcesPerTask, licenses, resources, nodes } = assignment;
  const { runTimeLimitS, killGraceS, devicesPerTask, tasksPerMachine, exclusive, sameSwitch } = assignment;
  const times = [runTimeLimitS, killGraceS];
  const shape = [tasks, cpusPerTask, memoryMbPerTask, resourcesPerTask, licenses, resources, nodes];
  return JSON.stringify([
    shape,
    devicesPerTask,
    tasksPerMachine,
    exclusive,
    sameSwitch,
    times,
    terms,
    owner?.name,
  ]);
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
