/**
 * The life of a run in the agent, as data: which states there are, and what each event makes of them. What has to be done about it is
 * data, too (`Effect`), and carried out by the runner. Staging comes before: until its inputs are there a run is unknown here (staging/runner.ts).
 *
 * None of it is on disk. The next agent finds a run that is recorded and not reported as RUNNING, and comes by the same events to the same
 * effects, which therefore do no harm when they are carried out twice.
 */
import {
  type Assignment,
  type EndCause,
  type Measured,
  runKey,
  type SentSignal,
  type WantedOutput,
  type WarnSignal,
} from '../runner.js';
import { type Asked, type Ended, endOf, keptEnd, lostEnd, type Reason } from './ends.js';
import type { End } from './reports.js';
import type { RunRecord } from './run.js';

/** What of a launched run decides about its life. */
type Launched = Pick<RunRecord, 'wanted' | 'privateDirectory'>;

/** That a run was asked to end. */
interface Stop extends Asked {
  /** When it is killed, on the clock of durations. */
  killAtMs: number;
  /** How often it has been. */
  rounds: number;
}

/** A run whose command is over, and how. */
interface Over<R> {
  run: R;
  end: End;
  /** When it was written down that it ended; null: it is over now. */
  atMs: number | null;
  stop: Stop | null;
}

export type Life<R> =
  /** For room on the machine or its disk, or for its account. */
  | { state: 'WAITING'; assignment: Assignment }
  /** It is recorded, and its lane told. */
  | { state: 'RUNNING'; run: R }
  /** It was asked to end. `forgotten`: its end is of no interest to the service. */
  | { state: 'STOPPING'; run: R; stop: Stop; forgotten: boolean }
  /** Its lane is dead: it is over as soon as its processes are gone, for it may be started elsewhere when that is reported. */
  | { state: 'LOST'; run: R; message: string; stop: Stop | null; forgotten: boolean }
  /** What its command has left is being ended. */
  | ({ state: 'CLEARING'; forgotten: boolean } & Over<R>)
  /** Its outputs are being kept. `held`: whether something of it had its slot's files open. */
  | ({ state: 'KEEPING'; held: boolean } & Over<R>)
  /** Its end waits for room on the disk, or for its output to be sent. `leaves`: its directory, with what could not be kept. */
  | { state: 'REPORTING'; run: R; end: End; atMs: number | null; held: boolean; leaves: boolean }
  | { state: 'GONE' };

export type State = Life<unknown>['state'];
type In<R, S extends State> = Extract<Life<R>, { state: S }>;

export type Event<R> =
  /** Its record is on disk. */
  | { is: 'RECORDED'; run: R }
  /** It cannot be started. */
  | { is: 'FAILED'; cause: EndCause; message: string }
  /** The service wants it to end, and hears how it has; or does not want to hear of it. */
  | { is: 'CANCELLED' | 'FORGOTTEN'; nowMs: number; graceMs: number; signal?: WarnSignal }
  /** It takes more than it may. */
  | ({ is: 'EXCEEDED'; nowMs: number; graceMs: number; signal?: WarnSignal } & Reason)
  /** The last signals that somebody has sent it. */
  | { is: 'SIGNALLED'; signals: readonly SentSignal[] }
  /** It has little time left up to its limit. */
  | { is: 'LIMIT_NEARS' }
  /** Its lane has written down how its command ended. */
  | { is: 'ENDED'; ended: Ended }
  /** Its lane is dead, and has not. */
  | { is: 'LANE_DIED'; message: string }
  /** No process of a lost run is left. */
  | { is: 'NONE_LEFT'; measured: Measured }
  | { is: 'CLEARED'; held: boolean }
  /** `problem`: what could not be kept; null: nothing. */
  | { is: 'KEPT'; problem: string | null; seconds: number }
  /** The report of its end is on disk. */
  | { is: 'REPORTED' }
  /** Time has passed. */
  | { is: 'TICK'; nowMs: number };

export type Effect<R> =
  /** Have the lane begin what is recorded. */
  | { do: 'TELL_LANE'; run: R }
  | { do: 'REPORT_START'; run: R }
  /** Report the end of a run that was never started. */
  | { do: 'REPORT_UNSTARTED'; assignment: Assignment; end: End }
  | { do: 'WARN'; run: R }
  /** Send those of them that have not been sent. */
  | { do: 'SIGNAL'; run: R; signals: readonly SentSignal[] }
  | { do: 'TERMINATE'; run: R; signal: WarnSignal }
  | { do: 'KILL'; run: R; round: number }
  /** Kill what its command has left. */
  | { do: 'KILL_LEFT'; run: R }
  /** Kill the processes of a run without a lane; answered by NONE_LEFT when there are none. */
  | { do: 'KILL_LOST'; run: R }
  /** Kill what its command has left, if need be as the account of its user; answered by CLEARED. `quiet`: nobody is told of anything. */
  | { do: 'CLEAR'; run: R; quiet: boolean }
  /** Answered by KEPT. */
  | { do: 'KEEP'; run: R; cause: EndCause; outputs: readonly WantedOutput[] }
  | { do: 'STOP_KEEPING'; run: R }
  /** Answered by REPORTED if there is room for it. */
  | { do: 'REPORT'; run: R; end: End; atMs: number | null }
  /** Let its slot, and all that it had, be used again. */
  | { do: 'FREE'; run: R; held: boolean; leaves: boolean };

export interface Step<R> {
  life: Life<R>;
  /** In this order. */
  effects: readonly Effect<R>[];
}

/** Which state may follow which. */
export const NEXT: Readonly<Record<State, readonly State[]>> = {
  WAITING: ['RUNNING', 'GONE'],
  RUNNING: ['STOPPING', 'LOST', 'CLEARING'],
  STOPPING: ['LOST', 'CLEARING'],
  LOST: ['CLEARING'],
  CLEARING: ['KEEPING', 'REPORTING', 'GONE'],
  KEEPING: ['REPORTING', 'GONE'],
  REPORTING: ['GONE'],
  GONE: [],
};

/** Ends after which nothing is kept: there is nothing, or nobody knows what it is. */
const NOTHING_KEPT: ReadonlySet<EndCause> = new Set(['LAUNCH_FAILED', 'MACHINE_FAILED', 'LOST']);

/** What of its files a run that has ended is to leave. Who stops it wants no outputs; but the job may go on from its checkpoint. */
function wantedAfter({ wanted }: Launched, cause: EndCause): readonly WantedOutput[] {
  if (wanted === undefined || NOTHING_KEPT.has(cause)) return [];
  const { outputs, checkpoint } = wanted;
  const kept = cause === 'CANCELLED_BY_USER' ? [] : outputs;
  const isNeeded = checkpoint !== undefined && cause !== 'EXITED_ZERO';
  return isNeeded ? [...kept, { path: checkpoint, dataset: null, checkpoint: true }] : kept;
}

const GONE = { state: 'GONE' } as const;
const CANCELLED = { cause: 'CANCELLED_BY_USER', message: null } as const;

/** What an event makes of a run. One that does not concern its state, because it comes late, makes nothing. */
export function step<R extends Launched>(life: Life<R>, event: Event<R>): Step<R> {
  switch (life.state) {
    case 'WAITING':
      return waiting(life, event);
    case 'RUNNING':
    case 'STOPPING':
      return running(life, event);
    case 'LOST':
      return lost(life, event);
    case 'CLEARING':
      return clearing(life, event);
    case 'KEEPING':
      return keeping(life, event);
    case 'REPORTING':
      return reporting(life, event);
    case 'GONE':
      return { life, effects: [] };
  }
}

function waiting<R>(life: In<R, 'WAITING'>, event: Event<R>): Step<R> {
  const { assignment } = life;
  const unstarted = (end: End): Step<R> => ({
    life: GONE,
    effects: [{ do: 'REPORT_UNSTARTED', assignment, end }],
  });
  switch (event.is) {
    case 'RECORDED': {
      const { run } = event;
      // Told first, so that a run of which the journal speaks has begun, if its lane lives.
      const effects = [{ do: 'TELL_LANE', run } as const, { do: 'REPORT_START', run } as const];
      return { life: { state: 'RUNNING', run }, effects };
    }
    case 'FAILED':
      return unstarted({ cause: event.cause, message: event.message });
    case 'CANCELLED':
      return unstarted({ ...CANCELLED, message: 'canceled before it was started' });
    case 'FORGOTTEN':
      return { life: GONE, effects: [] };
    // It begins after them.
    case 'SIGNALLED':
      return {
        life: { state: 'WAITING', assignment: { ...assignment, signals: event.signals } },
        effects: [],
      };
    default:
      return { life, effects: [] };
  }
}

function running<R>(life: In<R, 'RUNNING' | 'STOPPING'>, event: Event<R>): Step<R> {
  const { run } = life;
  const { stop, forgotten } = life.state === 'STOPPING' ? life : { stop: null, forgotten: false };
  switch (event.is) {
    case 'CANCELLED':
    case 'FORGOTTEN':
      return stopped(life, CANCELLED, event.nowMs + event.graceMs, event);
    case 'EXCEEDED':
      return stopped(life, event, event.nowMs + event.graceMs, event);
    case 'SIGNALLED':
      return { life, effects: stop ? [] : [{ do: 'SIGNAL', run, signals: event.signals }] };
    case 'LIMIT_NEARS':
      return { life, effects: stop ? [] : [{ do: 'WARN', run }] };
    case 'ENDED': {
      const over = { run, end: endOf(event.ended, stop), atMs: event.ended.atMs, stop };
      return clear({ state: 'CLEARING', ...over, forgotten });
    }
    case 'LANE_DIED': {
      const { message } = event;
      return { life: { state: 'LOST', run, message, stop, forgotten }, effects: [{ do: 'KILL_LOST', run }] };
    }
    case 'TICK': {
      if (!stop || event.nowMs < stop.killAtMs) return { life, effects: [] };
      const again = { ...stop, rounds: stop.rounds + 1 };
      return {
        life: { state: 'STOPPING', run, stop: again, forgotten },
        effects: [{ do: 'KILL', run, round: stop.rounds }],
      };
    }
    default:
      return { life, effects: [] };
  }
}

/** Asks a run to end, or kills it at once where there is no grace; one that was asked before is killed earlier, perhaps. */
function stopped<R>(
  life: In<R, 'RUNNING' | 'STOPPING'>,
  { cause, message }: Reason,
  killAtMs: number,
  { is, nowMs, signal = 'SIGTERM' }: { is: string; nowMs: number; signal?: WarnSignal },
): Step<R> {
  const { run } = life;
  const forgotten = is === 'FORGOTTEN' || (life.state === 'STOPPING' && life.forgotten);
  if (life.state === 'STOPPING') {
    const stop = { ...life.stop, killAtMs: Math.min(life.stop.killAtMs, killAtMs) };
    return { life: { state: 'STOPPING', run, stop, forgotten }, effects: [] };
  }
  const kills = killAtMs <= nowMs;
  const begun = { cause, message, askedAtMs: nowMs, killAtMs, rounds: kills ? 1 : 0 };
  return {
    life: { state: 'STOPPING', run, stop: begun, forgotten },
    effects: [kills ? { do: 'KILL', run, round: 0 } : { do: 'TERMINATE', run, signal }],
  };
}

/** Of a run that is over: nothing but how its end is told depends on it. */
const asked = (stop: Stop | null, nowMs: number): Stop =>
  stop ?? { ...CANCELLED, askedAtMs: nowMs, killAtMs: nowMs, rounds: 0 };

function lost<R>(life: In<R, 'LOST'>, event: Event<R>): Step<R> {
  const { run, stop, message, forgotten } = life;
  switch (event.is) {
    case 'CANCELLED':
      return { life: { ...life, stop: asked(stop, event.nowMs) }, effects: [] };
    case 'FORGOTTEN':
      return { life: { ...life, forgotten: true }, effects: [] };
    case 'NONE_LEFT': {
      const end = lostEnd(message, stop, event.measured);
      return clear({ state: 'CLEARING', run, end, atMs: null, stop, forgotten });
    }
    case 'TICK':
      return { life, effects: [{ do: 'KILL_LOST', run }] };
    default:
      return { life, effects: [] };
  }
}

function clear<R>(life: In<R, 'CLEARING'>): Step<R> {
  return { life, effects: [{ do: 'CLEAR', run: life.run, quiet: life.forgotten }] };
}

function clearing<R extends Launched>(life: In<R, 'CLEARING'>, event: Event<R>): Step<R> {
  const { forgotten, state: _, ...over } = life;
  const { run, end, atMs, stop } = over;
  switch (event.is) {
    case 'CANCELLED':
      return { life: { ...life, stop: asked(stop, event.nowMs) }, effects: [] };
    case 'FORGOTTEN':
      return { life: { ...life, forgotten: true }, effects: [] };
    case 'CLEARED': {
      const { held } = event;
      if (forgotten) return free(run, held);
      const outputs = wantedAfter(run, end.cause);
      if (outputs.length > 0) {
        const effects = [{ do: 'KEEP', run, cause: end.cause, outputs } as const];
        return { life: { state: 'KEEPING', ...over, held }, effects };
      }
      return report({ state: 'REPORTING', run, end, atMs, held, leaves: false });
    }
    case 'TICK':
      return { life, effects: [{ do: 'KILL_LEFT', run }] };
    default:
      return { life, effects: [] };
  }
}

function keeping<R extends Launched>(life: In<R, 'KEEPING'>, event: Event<R>): Step<R> {
  const { run, end, stop, held } = life;
  switch (event.is) {
    case 'CANCELLED':
      return { life: { ...life, stop: asked(stop, event.nowMs) }, effects: [{ do: 'STOP_KEEPING', run }] };
    case 'FORGOTTEN':
      return free(run, held, { do: 'STOP_KEEPING', run });
    case 'KEPT': {
      const { problem, seconds } = event;
      const { privateDirectory } = run;
      const told = keptEnd(end, problem, seconds, stop, privateDirectory);
      const leaves = problem !== null && privateDirectory && !stop;
      return report({ state: 'REPORTING', run, end: told, atMs: null, held, leaves });
    }
    case 'TICK':
      return { life, effects: [{ do: 'KILL_LEFT', run }] };
    default:
      return { life, effects: [] };
  }
}

function report<R>(life: In<R, 'REPORTING'>): Step<R> {
  const { run, end, atMs } = life;
  return { life, effects: [{ do: 'REPORT', run, end, atMs }] };
}

function reporting<R>(life: In<R, 'REPORTING'>, event: Event<R>): Step<R> {
  const { run, held, leaves } = life;
  switch (event.is) {
    // Not before it is reported: the slot keeps what is known of the run, for this agent or the next.
    case 'REPORTED':
      return { life: GONE, effects: [{ do: 'FREE', run, held, leaves }] };
    case 'FORGOTTEN':
      return free(run, held);
    case 'TICK': {
      const { life: same, effects } = report(life);
      return { life: same, effects: [{ do: 'KILL_LEFT', run }, ...effects] };
    }
    default:
      return { life, effects: [] };
  }
}

function free<R>(run: R, held: boolean, ...before: Effect<R>[]): Step<R> {
  return { life: GONE, effects: [...before, { do: 'FREE', run, held, leaves: false }] };
}

/** Runs that an agent has, by name, and where their lives have come to. */
export class Lives<R extends Launched> {
  private readonly all = new Map<string, Life<R>>();
  /** Names of those that wait, in order. */
  private readonly queue = new Set<string>();

  /** @param carryOut may tell of more events at once, also of the same run: then it does nothing more with the effect */
  constructor(private readonly carryOut: (key: string, effect: Effect<R>) => void) {}

  /** A run that has been assigned. */
  add(assignment: Assignment): void {
    const key = runKey(assignment);
    this.put(key, { state: 'WAITING', assignment });
    this.queue.add(key);
  }

  /** A run that an earlier agent has launched. */
  takeUp(key: string, run: R): void {
    this.put(key, { state: 'RUNNING', run });
  }

  get(key: string): Life<R> | undefined {
    return this.all.get(key);
  }

  /** What an event makes of a run is carried out. One that is gone is not concerned. */
  tell(key: string, event: Event<R>): void {
    const life = this.all.get(key);
    if (!life) return;
    const { life: next, effects } = step(life, event);
    if (next !== life) this.set(key, life.state, next);
    for (const effect of effects) this.carryOut(key, effect);
  }

  /** How many have been launched. */
  get launched(): number {
    return this.all.size - this.queue.size;
  }

  get waiting(): ReadonlySet<string> {
    return this.queue;
  }

  [Symbol.iterator](): IterableIterator<[string, Life<R>]> {
    return this.all[Symbol.iterator]();
  }

  /** To the end: whoever is served first is not first again. */
  putLast(key: string): void {
    const life = this.all.get(key);
    if (!life) return;
    this.all.delete(key);
    this.all.set(key, life);
  }

  /** Forgets all of them: no event concerns any. */
  letGo(): void {
    this.all.clear();
    this.queue.clear();
  }

  private put(key: string, life: Life<R>): void {
    if (this.all.has(key)) throw new Error(`run ${key} already exists`);
    this.all.set(key, life);
  }

  private set(key: string, from: State, life: Life<R>): void {
    const { state } = life;
    if (state !== from && !NEXT[from].includes(state)) throw new Error(`run ${key}: ${from} → ${state}`);
    if (from === 'WAITING' && state !== from) this.queue.delete(key);
    if (state === 'GONE') this.all.delete(key);
    else this.all.set(key, life);
  }
}
