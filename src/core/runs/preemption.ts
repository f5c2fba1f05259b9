/**
 * Which running jobs of lower classes make room for one (jobs.md, "Preemption"): those whose stop loses the least work, and none in vain.
 *
 * Decision: where classes have times of their own, a run has those of its class, and rule 3 goes by the longest grace of the victims.
 */

/** By kind of resource. */
export type Amounts = Readonly<Record<string, number>>;

export interface PreemptingJob {
  readonly class: number;
  /** When it would start without preemption; null: nobody knows. */
  readonly startsAt: number | null;
  readonly tasks: number;
  readonly perTask: Amounts;
}

export interface PreemptibleRun {
  readonly id: string;
  readonly class: number;
  /** Those of its class; if omitted, those of all. */
  readonly times?: Omit<PreemptionTimes, 'now'>;
  readonly restartable: boolean;
  readonly startedAt: number;
  /** null: it has no limit. */
  readonly limitEndsAt: number | null;
  /** When it last kept what it had done; null: never. */
  readonly checkpointAt: number | null;
  readonly holds: readonly { readonly machine: string; readonly amounts: Amounts }[];
}

export interface PreemptionTimes {
  readonly now: number;
  /** From SIGTERM to SIGKILL. */
  readonly graceS: number;
  /** Runs that are younger are left alone. */
  readonly exemptS: number;
}

export type Exemption = 'CLASS' | 'NOT_RESTARTABLE' | 'RUNS_SHORT' | 'ENDS_SOON';

export interface Preemption {
  /** In the order in which they would be taken. */
  readonly victims: readonly string[];
  /** Core-seconds. */
  readonly lostWork: number;
  /** When the job is promised the room; null: there is none for it. */
  readonly startsAt: number | null;
  /** Why there are no victims; null: there are. */
  readonly because: 'FITS' | 'NO_GAIN' | 'NOT_ENOUGH' | null;
  /** Runs that may not be stopped, in the order given. */
  readonly exempt: readonly { readonly id: string; readonly why: Exemption }[];
}

/** Ids of jobs and machines as the rule compares them: in their order. */
export const idOf = (id: number): string => String(id).padStart(16, '0');

/** So many candidates are tried in all combinations: exact where that is cheap, as greed alone may stop two where one would do. */
const EXACT_UP_TO = 12;

/**
 * @param machines those that may run the job, with what is free on them
 * @param fitsWithout of a job that asks for more than room for each task: whether it fits when runs (ids) are gone. More of them make it no worse
 */
export function preemptionFor(
  job: PreemptingJob,
  machines: readonly { readonly id: string; readonly free: Amounts }[],
  runs: readonly PreemptibleRun[],
  times: PreemptionTimes,
  fitsWithout: ((gone: readonly string[]) => boolean) | null = null,
): Preemption {
  const { now, graceS } = times;
  const exempt: { id: string; why: Exemption }[] = [];
  const candidates: Candidate[] = [];
  for (const run of runs) {
    const why = exemptionOf(run, job, times);
    if (why === null) candidates.push({ run, lost: lostWork(run, now) });
    else exempt.push({ id: run.id, why });
  }
  const room: Fitting =
    fitsWithout === null
      ? new Room(job, machines)
      : { fits: (gone) => fitsWithout(gone.map(({ run }) => run.id)) };
  const nobody = { victims: [], lostWork: 0, startsAt: null, exempt };
  if (room.fits([])) return { ...nobody, startsAt: now, because: 'FITS' };
  const hasNoGain = (graceS: number): boolean =>
    job.startsAt !== null && job.startsAt - (now + graceS) <= graceS;
  const graces = candidates.map(({ run }) => graceOf(run, times));
  if (hasNoGain(graces.length === 0 ? graceS : Math.min(...graces))) return { ...nobody, because: 'NO_GAIN' };
  const victims = leastLost(candidates, room);
  if (victims === null) return { ...nobody, because: 'NOT_ENOUGH' };
  const longest = Math.max(...victims.map(({ run }) => graceOf(run, times)));
  if (hasNoGain(longest)) return { ...nobody, because: 'NO_GAIN' };
  return {
    victims: victims.map(({ run }) => run.id),
    lostWork: totalLost(victims),
    startsAt: now + longest,
    because: null,
    exempt,
  };
}

/** A run that may be stopped. */
export interface Candidate {
  readonly run: PreemptibleRun;
  /** Core-seconds. */
  readonly lost: number;
}

/** What room is made for. */
export interface Fitting {
  /** Whether it has its room when these are gone. More of them make it no worse. */
  fits(gone: readonly Candidate[]): boolean;
}

/**
 * Rules 4 and 5: of the lowest classes that make room together, those whose stop loses the least work, in the order in which they would be
 * taken. Null: all together do not make room.
 */
export function leastLost(candidates: readonly Candidate[], room: Fitting): readonly Candidate[] | null {
  const admitted = lowestClasses([...candidates].sort(inOrder), room);
  if (admitted === null) return null;
  return admitted.length <= EXACT_UP_TO ? leastOf(admitted, room) : greedy(admitted, room);
}

function exemptionOf(
  { class: of, restartable, startedAt, limitEndsAt, times: own }: PreemptibleRun,
  job: PreemptingJob,
  { now, ...ofAll }: PreemptionTimes,
): Exemption | null {
  const { graceS, exemptS } = own ?? ofAll;
  if (of >= job.class) return 'CLASS';
  if (!restartable) return 'NOT_RESTARTABLE';
  if (now - startedAt < exemptS) return 'RUNS_SHORT';
  return limitEndsAt !== null && limitEndsAt - now <= graceS ? 'ENDS_SOON' : null;
}

const graceOf = ({ times }: PreemptibleRun, ofAll: PreemptionTimes): number => (times ?? ofAll).graceS;

/** Core-seconds since the start or the last checkpoint. */
export function lostWork(
  { holds, startedAt, checkpointAt }: Pick<PreemptibleRun, 'holds' | 'startedAt' | 'checkpointAt'>,
  now: number,
): number {
  const cpus = holds.reduce((sum, { amounts }) => sum + (amounts.cpus ?? 0), 0);
  return cpus * Math.max(0, now - Math.max(startedAt, checkpointAt ?? startedAt));
}

const totalLost = (victims: readonly Candidate[]): number => victims.reduce((sum, { lost }) => sum + lost, 0);

function inOrder(a: Candidate, b: Candidate): number {
  return (
    a.run.class - b.run.class ||
    a.lost - b.lost ||
    b.run.startedAt - a.run.startedAt ||
    (a.run.id < b.run.id ? -1 : 1)
  );
}

/** The candidates of the lowest classes that make room together: classes come before lost work. null: all of them do not. */
function lowestClasses(candidates: readonly Candidate[], room: Fitting): Candidate[] | null {
  for (let end = 1; end <= candidates.length; end++) {
    if (candidates[end]?.run.class === candidates[end - 1]?.run.class) continue;
    const admitted = candidates.slice(0, end);
    if (room.fits(admitted)) return admitted;
  }
  return null;
}

/** Of all sets that make room, the one of least lost work; then of fewest victims; then the first in the order. */
function leastOf(candidates: readonly Candidate[], room: Fitting): Candidate[] {
  const chosen = (set: number): Candidate[] => candidates.filter((_, i) => (set >> i) & 1);
  const all = 2 ** candidates.length - 1;
  const [lost, size] = [new Float64Array(all + 1), new Uint8Array(all + 1)];
  for (let set = 1; set <= all; set++) {
    const others = set & (set - 1);
    const first = Math.log2(set ^ others);
    lost[set] = (lost[others] as number) + (candidates[first] as Candidate).lost;
    size[set] = (size[others] as number) + 1;
  }
  const comesBefore = (a: number, b: number): boolean => {
    const less = (lost[a] as number) - (lost[b] as number) || (size[a] as number) - (size[b] as number);
    const differ = a ^ b;
    return less === 0 ? (differ & -differ & a) !== 0 : less < 0;
  };
  let best = all;
  for (let set = 1; set < all; set++) if (comesBefore(set, best) && room.fits(chosen(set))) best = set;
  return chosen(best);
}

/** In order until there is room; without those that are not needed, the largest first; or the one that suffices alone and loses no more. */
function greedy(candidates: readonly Candidate[], room: Fitting): Candidate[] {
  let taken: Candidate[] = [];
  for (let i = 0; !room.fits(taken); i++) taken.push(candidates[i] as Candidate);
  for (const dropped of [...taken].reverse().sort((a, b) => b.lost - a.lost)) {
    const others = taken.filter((one) => one !== dropped);
    if (room.fits(others)) taken = others;
  }
  let alone: Candidate | null = null;
  for (const one of candidates)
    if ((alone === null || one.lost < alone.lost) && room.fits([one])) alone = one;
  return alone !== null && alone.lost <= totalLost(taken) ? [alone] : taken;
}

/** Whether the job's tasks fit when some runs are gone. */
class Room implements Fitting {
  private readonly asked: readonly [kind: string, amount: number][];
  private readonly free: ReadonlyMap<string, Amounts>;
  /** By machine, tasks that fit now, and their sum. */
  private readonly fitting = new Map<string, number>();
  private readonly total: number;

  constructor(
    private readonly job: PreemptingJob,
    machines: readonly { readonly id: string; readonly free: Amounts }[],
  ) {
    this.asked = Object.entries(job.perTask).filter(([, amount]) => amount > 0);
    this.free = new Map(machines.map(({ id, free }) => [id, free]));
    for (const { id, free } of machines) this.fitting.set(id, this.tasksIn(free, []));
    this.total = [...this.fitting.values()].reduce((sum, tasks) => sum + tasks, 0);
  }

  fits(gone: readonly Candidate[]): boolean {
    const given = new Map<string, Amounts[]>();
    for (const { run } of gone) {
      for (const { machine, amounts } of run.holds) {
        const known = given.get(machine);
        if (known === undefined) given.set(machine, [amounts]);
        else known.push(amounts);
      }
    }
    let tasks = this.total;
    for (const [machine, amounts] of given) {
      const free = this.free.get(machine);
      if (free !== undefined) tasks += this.tasksIn(free, amounts) - (this.fitting.get(machine) as number);
    }
    return tasks >= this.job.tasks;
  }

  /** At most as many as the job has. */
  private tasksIn(free: Amounts, given: readonly Amounts[]): number {
    let tasks = this.job.tasks;
    for (const [kind, amount] of this.asked) {
      const room = given.reduce((sum, more) => sum + (more[kind] ?? 0), free[kind] ?? 0);
      tasks = Math.min(tasks, Math.max(0, Math.floor(room / amount)));
    }
    return tasks;
  }
}
