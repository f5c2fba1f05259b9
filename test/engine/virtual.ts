/**
 * The live service in virtual time, over any store: the engine's own cycles, each as soon as somebody has woken its scheduler, and
 * agents that pass time. The slow timer, which only makes up for what is lost, is off.
 *
 * It may be several processes, each with a mirror of its own that is lost now and then: which of them runs a cycle is drawn.
 */

import { Agenda, type RandomStream } from '../../src/core/index.js';
import { ROOT, type Scheduler, schedulerOf } from '../../src/core/scheduler.js';
import { Cycle, type CycleTools, DEFAULT_CYCLE_LIMITS } from '../../src/engine/cycle.js';
import { runDispatch } from '../../src/engine/dispatch.js';
import { runSite } from '../../src/engine/site.js';
import { createMetrics } from '../../src/platform/metrics.js';
import { idsOf } from '../../src/store/images.js';
import { Mirror } from '../../src/store/mirror.js';
import type { Cursor, NewJob, RunReport, Store } from '../../src/store/store.js';
import { ended, report, T0 } from '../store/world.js';
import { quietLog } from './support.js';

/** A start as the service and the simulator tell it. `machines`: id and tasks of each. */
export interface Started {
  jobId: number;
  siteId: number;
  at: number;
  machines: [id: number, tasks: number][];
  licenseIds: number[];
}

/** Into a site's meta-queue or to a scheduler above the sites, from the root or such a scheduler (null) or a site's meta-queue. */
export interface MetaMove {
  jobId: number;
  from: number | null;
  to: number | null;
  at: number;
  queue: 'META' | 'SCHEDULER';
}

/** Something that the world does; answers with the schedulers that it wakes. */
export interface Happening {
  /** Epoch seconds. */
  at: number;
  happens(store: Store, now: number): Promise<readonly Scheduler[]>;
}

export const submission =
  (userId: number, ...jobs: NewJob[]): Happening['happens'] =>
  async (store, now) => {
    await store.submit({ userId, idempotencyKey: null, payloadHash: '', jobs, now });
    return [ROOT];
  };

/** Processes that share a store. */
export interface Processes {
  count: number;
  /** How likely it is that a process loses its mirror before a cycle. */
  forgets: number;
  /** How likely it is that starts are not carried out, or that nobody hears of it; 0 unless said. */
  fails?: number;
  random: RandomStream;
}

/** What lies outside of the service. */
export interface Surroundings {
  /** How long agents move a job's data, beside its run time, and report it as input and output; not at all unless said. */
  movingS?: (jobId: number, siteId: number) => number;
  /** Where jobs need others, which is decided on as soon as anything has happened. */
  needs?: {
    /** Which jobs end badly. */
    fails(jobId: number): boolean;
    /** When the first of those that wait for a time is due; Infinity: none does. */
    dueAt(): number;
  };
  /** Told the time before anything happens at it: the clock that a store reads may be set by it. */
  onTime?: (now: number) => void;
}

const LOST = new Error('the connection was lost');

export class VirtualService {
  /** What was decided, in the order of the decisions: into local queues, into meta-queues, and starts. */
  readonly moves: [jobId: number, siteId: number][] = [];
  readonly metaMoves: MetaMove[] = [];
  readonly starts: Started[] = [];
  private now = T0;
  private readonly woken = new Set<Scheduler>();
  /** By process and site: when it wakes the site. */
  private readonly alarms = new Map<string, { siteId: number; at: number }>();
  private readonly cursors = new Map<number, string | null>();
  private ends: { at: number; siteId: number; report: RunReport }[] = [];
  private readonly tools: { tools: CycleTools; agenda: Agenda }[];

  constructor(
    private readonly store: Store,
    private readonly processes: Processes | null = null,
    private readonly around: Surroundings = {},
  ) {
    this.tools = Array.from({ length: processes?.count ?? 1 }, (_, i) => this.process(i));
  }

  /** Until nothing happens any more. The list is in the order of time. `seen` is told each time that all is settled. */
  async run(list: readonly Happening[], seen?: (now: number) => Promise<void>): Promise<void> {
    let next = 0;
    for (;;) {
      this.now = Math.min(
        list[next]?.at ?? Infinity,
        ...this.ends.map(({ at }) => at),
        ...[...this.alarms.values()].map(({ at }) => at),
        this.around.needs?.dueAt() ?? Infinity,
      );
      if (this.now === Infinity) return;
      this.around.onTime?.(this.now);
      // Sites that look at one instant have no order among them: here they look in the simulator's, that of the starts.
      const due = this.ends.filter(({ at }) => at === this.now);
      for (const siteId of new Set(due.map((end) => end.siteId))) {
        const there = due.filter((end) => end.siteId === siteId);
        await this.report(
          siteId,
          there.map((end) => end.report),
        );
      }
      this.ends = this.ends.filter(({ at }) => at > this.now);
      for (; list[next]?.at === this.now; next++) {
        const { happens } = list[next] as Happening;
        for (const scheduler of await happens(this.store, this.now)) this.woken.add(scheduler);
      }
      for (const [key, { siteId, at }] of this.alarms) {
        if (at > this.now) continue;
        this.alarms.delete(key);
        this.woken.add(siteId);
      }
      // A start may be what jobs wait for.
      do {
        await this.settleNeeds();
        await this.settle();
      } while (await this.settleNeeds());
      await seen?.(this.now);
    }
  }

  private process(number: number): { tools: CycleTools; agenda: Agenda } {
    const wake = (schedulers: readonly Scheduler[]) => {
      for (const scheduler of schedulers) this.woken.add(scheduler);
    };
    let cycles = 0;
    const tools: CycleTools = {
      store: this.recording(),
      mirror: new Mirror(this.store),
      wake: async (schedulers) => wake(schedulers),
      wakeLater: wake,
      wakeAt: (siteId, at) => {
        const key = `${number}/${siteId}`;
        if (this.alarms.get(key)?.at === at) return;
        this.alarms.delete(key);
        if (at !== Infinity) this.alarms.set(key, { siteId, at });
      },
      log: quietLog,
      metrics: createMetrics(),
      limits: DEFAULT_CYCLE_LIMITS,
      now: () => this.now,
      nameCycle: (kind) => `${kind}-${number}-${++cycles}`,
    };
    return { tools, agenda: new Agenda() };
  }

  /** The store, with an ear for what is decided. */
  private recording(): Store {
    const { store } = this;
    const recorded: Pick<Store, 'applyMoves' | 'applyStarts'> = {
      applyMoves: async (moves, context) => {
        const outcome = await store.applyMoves(moves, context);
        const accepted = new Set(outcome.accepted);
        for (const { jobId, from, to, queue } of moves) {
          if (!accepted.has(jobId)) continue;
          if (queue === 'LOCAL') this.moves.push([jobId, to]);
          else this.metaMoves.push({ jobId, from, to, at: this.now, queue });
        }
        return outcome;
      },
      applyStarts: async (siteId, starts, ...rest) => {
        this.mayFail();
        const outcome = await store.applyStarts(siteId, starts, ...rest);
        const accepted = new Set(outcome.accepted);
        for (const { jobId, allocations, pools } of starts) {
          if (!accepted.has(jobId)) continue;
          const machines = allocations.map(({ machineId, tasks }): [number, number] => [machineId, tasks]);
          this.starts.push({ jobId, siteId, at: this.now, machines, licenseIds: idsOf(pools, false) });
        }
        this.mayFail();
        return outcome;
      },
    };
    return new Proxy(store, {
      get(target, name: keyof Store) {
        const method = (recorded as Partial<Store>)[name] ?? target[name];
        return typeof method === 'function' ? method.bind(target) : method;
      },
    });
  }

  private mayFail(): void {
    const { fails = 0, random } = this.processes ?? {};
    if (fails > 0 && random !== undefined && random.next() < fails) throw LOST;
  }

  /** Round by round, as the simulator does: the root if it is woken, then the sites, until nobody is. */
  private async settle(): Promise<void> {
    for (let turn: typeof ROOT | 'sites' = ROOT; ; ) {
      const site = [...this.woken].find((one) => one !== ROOT);
      const scheduler = this.woken.has(ROOT) && (turn === ROOT || site === undefined) ? ROOT : site;
      if (scheduler === undefined) return;
      turn = 'sites';
      this.woken.delete(scheduler);
      const { tools, agenda } = this.anyProcess();
      if (scheduler === ROOT) await runDispatch(new Cycle('dispatch', tools), tools, agenda);
      else {
        await runSite(new Cycle('site', tools), tools, scheduler, agenda).catch((error) => {
          if (error !== LOST) throw error;
          // As the engine does, some time later.
          this.woken.add(scheduler);
        });
        await this.agent(scheduler);
      }
    }
  }

  private anyProcess(): { tools: CycleTools; agenda: Agenda } {
    const { processes, tools } = this;
    if (processes === null) return tools[0] as (typeof tools)[number];
    const { count, forgets, random } = processes;
    const number = random.integer(0, count - 1);
    if (random.next() < forgets) tools[number] = this.process(number);
    return tools[number] as (typeof tools)[number];
  }

  /** The site's agent: starts what it is assigned, and knows when it will end. */
  private async agent(siteId: number): Promise<void> {
    const batch = await this.store.assignments(siteId, this.cursors.get(siteId) ?? null, 10_000, 2 ** 40);
    this.cursors.set(siteId, batch.next as Cursor);
    for (const { jobId, epoch, state, stopGraceS } of batch.assignments)
      if (state === 'CANCELLING' && stopGraceS !== null) this.stop(jobId, epoch, this.now + stopGraceS);
    const fresh = batch.assignments.filter(({ state }) => state === 'ASSIGNED');
    for (const { jobId, epoch, simulatedS } of fresh) {
      const ioWaitS = this.around.movingS?.(jobId, siteId) ?? 0;
      const at = this.now + (simulatedS as number) + ioWaitS;
      const badly = this.around.needs?.fails(jobId)
        ? ({ cause: 'EXITED_NONZERO', exitCode: 1 } as const)
        : {};
      this.ends.push({ at, siteId, report: ended(jobId, epoch, { at, ioWaitS, ...badly }) });
    }
    if (fresh.length > 0)
      await this.report(
        siteId,
        fresh.map(({ jobId, epoch }) => report(jobId, epoch, { at: this.now })),
      );
  }

  /** A run that would go on is killed at the end of its grace. */
  private stop(jobId: number, epoch: number, at: number): void {
    const end = this.ends.find(({ report }) => report.jobId === jobId && report.epoch === epoch);
    if (end === undefined || end.at <= at) return;
    end.at = at;
    end.report = ended(jobId, epoch, { at, cause: 'SIGNALLED', signal: 'SIGKILL', exitCode: null });
  }

  /** Whether jobs wait no longer. */
  private async settleNeeds(): Promise<boolean> {
    if (this.around.needs === undefined) return false;
    const { queued } = await this.store.settleNeeds('ALL', this.now);
    if (queued > 0) this.woken.add(ROOT);
    return queued > 0;
  }

  private async report(siteId: number, reports: RunReport[]): Promise<void> {
    const { touched } = await this.store.reportRuns(siteId, reports, 3);
    for (const scheduler of touched) this.woken.add(schedulerOf(scheduler));
  }
}
