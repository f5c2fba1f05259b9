/**
 * The life of a run as a step function (life.ts), played against a machine that is only data: its disk and its processes outlive the agent,
 * which dies between any two effects. What fails prints its seed and the shortest history.
 */
import * as fc from 'fast-check';
import { expect, it } from 'vitest';
import { KnownRuns } from '../../src/agent/known.js';
import { type Effect, type Event, Lives, NEXT, type State } from '../../src/agent/process/life.js';
import {
  type EndCause,
  type RunName,
  runKey,
  UNMEASURED,
  type WantedOutput,
} from '../../src/agent/runner.js';
import { cases, IN_FULL } from '../support/seed.js';
import { assignment } from './support.js';

const RUNS = 3;
/** Looks after which everything has come to its end. */
const PATIENCE = 200;

class Killed extends Error {}

interface Run extends RunName {
  privateDirectory: boolean;
  wanted?: { directory: string; outputs: readonly WantedOutput[]; checkpoint?: string };
}

/** What is there of a run, whether its agent lives or not. */
interface There {
  run: Run;
  /** Its slot says so. */
  recorded: boolean;
  /** How often its lane has begun it. */
  begun: number;
  lane: boolean;
  /** What its lane has written down. */
  code: number | null;
  /** Processes of its command, and how many rounds of killing they stand. */
  processes: number;
  tough: number;
  /** Only the account of its user may end them. */
  foreign: boolean;
  /** How often its output is too much for a report. */
  unsent: number;
}

/** What the service has asked for, and was told. */
interface Told {
  order: 'START' | 'CANCEL' | 'FORGET' | null;
  forgotten: boolean;
}

const ORDERS = ['START', 'CANCEL', 'FORGET', 'RESUME', 'SIGNAL'] as const;
const HAPPENINGS = [
  ...['COMMAND_ENDS', 'LANE_DIES', 'LIMIT', 'POLL', 'ANSWER', 'DISK_FULL', 'DISK_FREE', 'AGENT_DIES'],
] as const;
type Op = { what: string; run: number; n: number; dies: number };

const seen = new Set<string>();

class Machine {
  nowMs = 0;
  full = false;
  readonly journal: { key: string; phase: 'STARTED' | 'ENDED'; cause?: EndCause }[] = [];
  readonly there = new Map<string, There>();
  readonly service = new Map<string, Told>();
  agent = new Agent(this);

  reported(key: string, phase: 'STARTED' | 'ENDED'): boolean {
    return this.journal.some((one) => one.key === key && one.phase === phase);
  }

  write(key: string, phase: 'STARTED' | 'ENDED', cause?: EndCause): boolean {
    if (this.full) return false;
    if (this.reported(key, phase)) throw new Error(`${key} is reported twice as ${phase}`);
    const { processes = 0, begun = 0 } = this.there.get(key) ?? {};
    if (phase === 'ENDED' && processes > 0) throw new Error(`${key} is reported, and ${processes} are left`);
    if (phase === 'ENDED' && begun > 0 && !this.reported(key, 'STARTED'))
      throw new Error(`${key} has ended and was not started`);
    this.journal.push({ key, phase, ...(cause && { cause }) });
    return true;
  }

  /** The command of a run ends by itself, and leaves something. */
  end(there: There, code: number, leaves: number): void {
    if (!there.lane || there.begun === 0 || there.code !== null) return;
    there.code = code;
    there.processes = leaves;
  }

  /** A round of killing; `foreign`: by the account of its user. Its lane sees the end of what it has begun. */
  kill(there: There, foreign: boolean): void {
    if (there.foreign && !foreign) return;
    if (there.tough-- > 0) return;
    if (there.processes > 0 && there.code === null) this.end(there, 137, 0);
    there.processes = 0;
  }

  play({ what, run, n, dies }: Op): void {
    this.nowMs += 100;
    this.agent.effectsLeft = dies;
    try {
      this.happen(what, run, n);
    } catch (error) {
      if (!(error instanceof Killed)) throw error;
      this.agent = new Agent(this);
    }
    this.agent.effectsLeft = Number.POSITIVE_INFINITY;
  }

  private happen(what: string, run: number, n: number): void {
    const job = {
      ...assignment(`job_${run}`, 'true'),
      ...(n % 2 === 0 && { outputs: [{ path: 'x', dataset: null }] }),
      ...(n % 3 === 0 && { checkpoint: 'state' }),
    };
    const key = runKey(job);
    const there = this.there.get(key);
    const told = this.service.get(key) ?? { order: null, forgotten: false };
    if ((ORDERS as readonly string[]).includes(what)) this.service.set(key, told);
    switch (what) {
      case 'START':
        // The service takes no order back.
        if (told.order === null) told.order = 'START';
        if (told.order === 'START') this.agent.start(job, n);
        break;
      case 'CANCEL':
        told.order = told.order === 'FORGET' ? 'FORGET' : 'CANCEL';
        this.agent.cancel(job, n % 3 === 0 ? 0 : 500);
        break;
      case 'FORGET':
        told.order = 'FORGET';
        told.forgotten = true;
        this.agent.forget(job);
        break;
      case 'RESUME':
        // It says so of runs whose start was reported.
        if (this.reported(key, 'STARTED')) this.agent.resume(job);
        break;
      case 'SIGNAL':
        this.agent.signal(job, n);
        break;
      case 'COMMAND_ENDS':
        if (there) this.end(there, n % 3, n % 4);
        break;
      case 'LANE_DIES':
        if (there) there.lane = false;
        break;
      case 'LIMIT':
        this.agent.exceeded(key, n);
        break;
      case 'POLL':
        this.agent.poll(n);
        break;
      case 'ANSWER':
        this.agent.answer(n);
        break;
      case 'DISK_FULL':
        this.full = true;
        break;
      case 'DISK_FREE':
        this.full = false;
        break;
      case 'AGENT_DIES':
        throw new Killed();
    }
  }
}

/** What the runner does with events and effects, in few words. */
class Agent {
  effectsLeft = Number.POSITIVE_INFINITY;
  private readonly known = new KnownRuns();
  private readonly lives = new Lives<Run>((key, effect) => {
    if (this.effectsLeft-- <= 0) throw new Killed();
    this.carryOut(key, effect);
  });
  /** What the account of a user, or who keeps outputs, has not answered. */
  private answers: { key: string; does: () => void; event: Event<Run> }[] = [];
  private owed: (() => boolean)[] = [];

  /** Takes up what an earlier agent left, as recover.ts does. */
  constructor(private readonly machine: Machine) {
    for (const { key } of machine.journal) this.known.add(nameIn(key));
    for (const [key, there] of machine.there) {
      if (!there.recorded) continue;
      if (machine.reported(key, 'ENDED')) there.recorded = false;
      // Not told: its lane has found its input closed.
      else if (there.begun === 0) machine.there.delete(key);
      else {
        this.known.add(there.run);
        this.lives.takeUp(key, there.run);
        if (!machine.reported(key, 'STARTED')) this.add(() => machine.write(key, 'STARTED'));
      }
    }
  }

  get size(): number {
    return [...this.lives].length;
  }

  start(job: ReturnType<typeof assignment>, n: number): void {
    if (this.standing(job) !== 'new') return;
    this.lives.add(job);
    if (n % 5 !== 0) this.launch(runKey(job), n);
  }

  resume(job: RunName): void {
    const key = runKey(job);
    if (this.standing(job) === 'new') this.add(() => this.machine.write(key, 'ENDED', 'LOST'));
  }

  cancel(job: RunName, graceMs: number): void {
    const key = runKey(job);
    if (this.lives.get(key)) this.tell(key, { is: 'CANCELLED', nowMs: this.machine.nowMs, graceMs });
    else if (this.standing(job) === 'new')
      this.add(() => this.machine.write(key, 'ENDED', 'CANCELLED_BY_USER'));
  }

  forget(job: RunName): void {
    this.known.add(job);
    this.tell(runKey(job), { is: 'FORGOTTEN', nowMs: this.machine.nowMs, graceMs: 500 });
  }

  signal(job: RunName, number: number): void {
    this.tell(runKey(job), { is: 'SIGNALLED', signals: [{ number, signal: 'SIGUSR1', to: 'ALL' }] });
  }

  exceeded(key: string, n: number): void {
    const { nowMs } = this.machine;
    const limit = n % 2 ? { graceMs: 0, message: 'too much' } : { graceMs: 500, message: null };
    this.tell(key, { is: 'LIMIT_NEARS' });
    this.tell(key, { is: 'EXCEEDED', cause: 'MEMORY_LIMIT', nowMs, ...limit });
  }

  poll(n: number): void {
    while (this.owed[0]?.()) this.owed.shift();
    for (const [key, life] of this.lives) {
      if (life.state === 'WAITING') this.launch(key, n);
      else this.look(key);
      this.tell(key, { is: 'TICK', nowMs: this.machine.nowMs });
    }
  }

  answer(n: number): void {
    const [one] = this.answers.splice(n % Math.max(1, this.answers.length), 1);
    if (!one) return;
    one.does();
    this.tell(one.key, one.event);
  }

  private standing(job: RunName): string {
    const standing = this.known.standing(job, this.lives.get(runKey(job)) !== undefined);
    this.known.add(job);
    // Reports stay here for ever: nothing is acknowledged.
    return standing === 'new' ? 'new' : 'past';
  }

  private launch(key: string, n: number): void {
    const life = this.lives.get(key);
    if (life?.state !== 'WAITING' || this.machine.full || this.owed.length > 0) return;
    if (n % 7 === 0) {
      this.tell(key, { is: 'FAILED', cause: 'LAUNCH_FAILED', message: 'no such file' });
      return;
    }
    const run: Run = { ...nameIn(key), privateDirectory: n % 3 === 0 };
    const { outputs = [], checkpoint } = life.assignment;
    if (outputs.length > 0 || checkpoint)
      run.wanted = { directory: '', outputs, ...(checkpoint && { checkpoint }) };
    if (this.machine.there.has(key)) throw new Error(`${key} is launched twice`);
    this.machine.there.set(key, {
      ...{ run, recorded: true, begun: 0, lane: true, code: null, processes: 0 },
      ...{ tough: n % 6, foreign: n % 2 === 1, unsent: n % 5 },
    });
    // The agent may die with nothing but the record.
    if (this.effectsLeft-- <= 0) throw new Killed();
    this.tell(key, { is: 'RECORDED', run });
  }

  private look(key: string): void {
    const { code, lane } = this.machine.there.get(key)!;
    const facts = {
      atMs: 0,
      atUpMs: this.machine.nowMs,
      unstarted: null,
      outOfMemoryMb: null,
      outlasted: false,
      measured: UNMEASURED,
    };
    if (code !== null) this.tell(key, { is: 'ENDED', ended: { code, ...facts } });
    else if (!lane) this.tell(key, { is: 'LANE_DIED', message: 'its lane died' });
  }

  private tell(key: string, event: Event<Run>): void {
    const before = this.lives.get(key)?.state;
    this.lives.tell(key, event);
    if (before) seen.add(`${before} ${event.is}`);
  }

  private add(write: () => boolean): void {
    if (this.owed.length > 0 || !write()) this.owed.push(write);
  }

  private carryOut(key: string, effect: Effect<Run>): void {
    const { machine } = this;
    const there = machine.there.get(key)!;
    switch (effect.do) {
      case 'TELL_LANE':
        there.begun++;
        there.processes = 2;
        if (there.begun > 1) throw new Error(`${key} has begun twice`);
        break;
      case 'REPORT_START':
        this.add(() => machine.write(key, 'STARTED'));
        break;
      case 'REPORT_UNSTARTED':
        this.add(() => machine.write(key, 'ENDED', effect.end.cause));
        break;
      case 'WARN':
        if (this.lives.get(key)?.state !== 'RUNNING')
          throw new Error(`${key} is warned, and is being stopped`);
        break;
      case 'SIGNAL':
        if (this.lives.get(key)?.state !== 'RUNNING')
          throw new Error(`${key} is sent a signal, and does not run`);
        break;
      case 'TERMINATE':
        if (there.tough === 0) machine.kill(there, true);
        break;
      case 'KILL':
        // The account of its user is asked, beside everything else.
        machine.kill(there, effect.round > 2);
        break;
      case 'KILL_LEFT':
        machine.kill(there, false);
        break;
      case 'KILL_LOST': {
        const { processes } = there;
        machine.kill(there, true);
        if (processes === 0) this.tell(key, { is: 'NONE_LEFT', measured: UNMEASURED });
        break;
      }
      case 'CLEAR': {
        const held = there.processes > 0;
        there.tough = 0;
        machine.kill(there, false);
        const event = { is: 'CLEARED', held } as const;
        if (there.foreign) this.answers.push({ key, event, does: () => machine.kill(there, true) });
        else this.tell(key, event);
        break;
      }
      case 'KEEP': {
        // Whoever stops a run wants nothing of it but where to go on.
        const wanted = effect.outputs.map(({ path }) => path);
        if (wanted.length === 0) throw new Error(`${key} keeps nothing`);
        if (effect.cause === 'CANCELLED_BY_USER' && wanted.includes('x'))
          throw new Error(`${key} was cancelled, and its outputs are kept`);
        if (effect.cause === 'EXITED_ZERO' && wanted.includes('state'))
          throw new Error(`${key} ended well, and its checkpoint is kept`);
        const problem = there.run.privateDirectory ? 'too large' : null;
        this.answers.push({ key, event: { is: 'KEPT', problem, seconds: 1 }, does: () => {} });
        break;
      }
      case 'STOP_KEEPING':
        for (const one of this.answers)
          if (one.key === key) one.event = { is: 'KEPT', problem: 'the run was cancelled', seconds: 1 };
        break;
      case 'REPORT':
        if (there.unsent-- > 0) break;
        if (machine.write(key, 'ENDED', effect.end.cause)) this.tell(key, { is: 'REPORTED' });
        break;
      case 'FREE':
        if (!machine.reported(key, 'ENDED') && !machine.service.get(key)?.forgotten)
          throw new Error(`${key} is freed before it is reported`);
        if (!there.recorded) throw new Error(`${key} is freed twice`);
        there.recorded = false;
        break;
    }
  }
}

const nameIn = (key: string): RunName => ({ jobId: key.split('.')[0]!, epoch: 1 });

const history = fc.array(
  fc.record({
    what: fc.constantFrom<string>(...ORDERS, ...HAPPENINGS, 'POLL', 'POLL', 'COMMAND_ENDS', 'LANE_DIES'),
    run: fc.nat(RUNS - 1),
    n: fc.nat(210),
    dies: fc.oneof(
      { weight: 4, arbitrary: fc.constant(Number.POSITIVE_INFINITY) },
      { weight: 1, arbitrary: fc.nat(3) },
    ),
  }),
  { maxLength: 60 },
);

/** Whatever has happened: time goes on, the service says again what it wants, and commands end. */
function comesToItsEnd(machine: Machine): void {
  const op = (what: string, run = 0, n = 1): void =>
    machine.play({ what, run, n, dies: Number.POSITIVE_INFINITY });
  op('DISK_FREE');
  for (let look = 0; look < PATIENCE; look++) {
    for (let run = 0; run < RUNS; run++) {
      const { order = null } = machine.service.get(`job_${run}.1`) ?? {};
      if (order && !machine.reported(`job_${run}.1`, 'ENDED')) op(order, run);
      // What was told to end does not do so by itself.
      if (look > 20 && order === 'START') op('COMMAND_ENDS', run);
    }
    op('POLL');
    op('ANSWER');
  }
}

it('whatever comes in between: each run is started once, ended whole, reported once, and gone', () => {
  fc.assert(
    fc.property(history, (ops) => {
      const machine = new Machine();
      for (let run = 0; run < RUNS; run++)
        machine.play({ what: 'START', run, n: ops.length + run, dies: Infinity });
      for (const one of ops) machine.play(one);
      comesToItsEnd(machine);
      for (const [key, { order, forgotten }] of machine.service)
        if (order !== null && !forgotten)
          expect(machine.reported(key, 'ENDED'), `${key} is reported`).toBe(true);
      expect(machine.agent.size).toBe(0);
      for (const [key, { recorded, processes }] of machine.there)
        expect([recorded, processes], key).toEqual([false, 0]);
    }),
    { numRuns: cases(2_000) },
  );
  if (!IN_FULL) return;
  // Histories that do not come by something prove nothing of it.
  const states = Object.keys(NEXT).filter((state) => state !== 'GONE') as State[];
  for (const state of states)
    for (const event of ['CANCELLED', 'FORGOTTEN', 'SIGNALLED', 'TICK'])
      expect(seen, `${event} in state ${state}`).toContain(`${state} ${event}`);
});
