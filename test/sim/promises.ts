/**
 * What is promised (docs/ARCHITECTURE.md, "The truth"), asked of the model of the store from outside: from its tables, and from what users
 * and agents were told. Every second of virtual time; the numbers are those of test/support/promises.ts.
 */

import { runKey } from '../../src/agent/runner.js';
import { poolsAskedBy } from '../../src/core/model.js';
import { canTransition, isLive, isTerminal, type JobState } from '../../src/core/states.js';
import { Mirror } from '../../src/store/mirror.js';
import type { EventRow } from '../../src/store/rows.js';
import { tokenOf } from '../../src/store/rules.js';
import type { MemoryJob, MemoryRun, MemoryStore } from '../store/memory.js';
import { placedParts } from '../support/plain-job.js';
import { FAILING, type Host } from './host.js';
import { NeedsJudge } from './needs.js';

interface Report {
  job: string;
  epoch: number;
  token?: string;
  task?: number;
  phase: 'STARTED' | 'ENDED';
  at: string;
  cause?: string;
}

/** Jobs and their last events as a subscriber has them. */
interface Told {
  seq: number;
  state: JobState;
  ends: number;
}

export class Promises {
  /** The first promise that was found broken, and how. */
  broken: string | null = null;
  /** Submissions without an answer, by key. */
  readonly unanswered = new Set<string>();
  private accepted = new Map<string, readonly number[]>();
  private owner = new Map<number, string>();
  private told = new Map<number, Told>();
  private cursor = 0;
  /** How often the database was set back. */
  restores = 0;
  /** Runs that an agent has said to have ended, and those of which it was told that this is stored. */
  private readonly saidEnds = new Set<string>();
  private readonly starts = new WeakMap<object, Map<string, string>>();
  /** Runs that agents have said to have started, by job. */
  private startsByJob = new Map<number, Set<string>>();
  private storedEnds = new Set<string>();
  /** Those that agents need not know any more, also before the database was set back. */
  private readonly forgotten = new Set<string>();

  readonly needs: NeedsJudge;

  constructor(
    private readonly store: MemoryStore,
    /** Runs that a job may have. */
    private readonly maxAttempts: number,
  ) {
    this.needs = new NeedsJudge(store);
  }

  fail(what: string): void {
    this.broken ??= what;
  }

  /**
   * The database is as it was: what was accepted since is gone, and nobody was promised otherwise. `over`: runs that had ended before it was set
   * back, also those that the service gave up. Their agents were told to drop them.
   */
  restored(over: readonly MemoryRun[]): void {
    const { store } = this;
    this.restores++;
    for (const { jobId, epoch, assignedAt } of over)
      this.forgotten.add(`${jobId}/${epoch}+${tokenOf(assignedAt)}`);
    this.needs.restored();
    this.accepted = new Map();
    this.owner = new Map([...this.owner].filter(([id]) => store.jobs.has(id)));
    this.told = new Map();
    this.storedEnds = new Set();
    this.startsByJob = new Map();
    this.cursor = store.events.at(-1)?.id ?? 0;
    for (const { id, seq, state } of store.jobs.values())
      this.told.set(id, { seq, state, ends: isTerminal(state) ? 1 : 0 });
  }

  isAccepted(key: string | null): boolean {
    return key !== null && this.accepted.has(key);
  }

  /** How many runs of it agents have said to have started. */
  startsOf(jobId: number): number {
    return this.startsByJob.get(jobId)?.size ?? 0;
  }

  asked(key: string): void {
    this.unanswered.add(key);
  }

  /** A submission was accepted; `key` null: one that nobody repeats. */
  submitted(key: string | null, count: number, ids: readonly number[]): void {
    if (ids.length !== count) this.fail(`1: ${key}: not all of its jobs were accepted`);
    if (key !== null) {
      this.unanswered.delete(key);
      const before = this.accepted.get(key);
      if (before !== undefined) {
        if (String(before) !== String(ids)) this.fail(`8: ${key}: ${before}, then ${ids}`);
        return;
      }
      this.accepted.set(key, ids);
    }
    for (const id of ids) {
      if (this.owner.has(id) && (key === null || this.owner.get(id) !== key))
        this.fail(`1: job ${id} is of ${this.owner.get(id)} and of ${key}`);
      this.owner.set(id, key ?? 'nobody');
    }
  }

  /** A submission was refused. */
  refused(key: string | null): void {
    if (key === null) return;
    this.unanswered.delete(key);
    if (this.accepted.has(key)) this.fail(`8: ${key} was accepted, and is refused now`);
  }

  /** What an agent says, from one start of it to the next, of runs on this machine. */
  says(agent: object, reports: readonly Report[], host: Pick<Host, 'lane'> | null): void {
    const starts = this.starts.get(agent) ?? new Map<string, string>();
    this.starts.set(agent, starts);
    for (const { job, epoch, token, task, phase, at, cause } of reports) {
      const whole = `${job.slice('job_'.length)}/${epoch}`;
      const run = task === undefined ? whole : `${whole}/${task}`;
      const lane = host?.lane(runKey({ jobId: job, epoch, token, task })) ?? null;
      if (phase === 'ENDED' && lane !== null && lane.end === null)
        this.fail(`2: run ${run} is said to have ended, and goes on`);
      const isForgotten = [run, whole].some((one) => this.forgotten.has(`${one}+${token}`));
      if (cause === 'LOST' && lane !== null && !isForgotten)
        this.fail(`1: run ${run} is called lost, and its machine knows how it ended`);
      if (phase === 'ENDED') this.saidEnds.add(whole);
      else if ((starts.get(`${run}+${token}`) ?? at) !== at)
        this.fail(`2: an agent has started run ${run} twice`);
      else {
        starts.set(`${run}+${token}`, at);
        const id = Number(job.slice('job_'.length));
        this.startsByJob.set(id, (this.startsByJob.get(id) ?? new Set()).add(`${epoch}+${token}`));
      }
    }
  }

  /** What it was answered. */
  reported(siteId: number, reports: readonly Report[], results: readonly string[]): void {
    for (const [i, { job, epoch, token, task, phase, cause }] of reports.entries()) {
      const id = Number(job.slice('job_'.length));
      const run = this.store.runs.get(`${id}/${epoch}`);
      const key = task === undefined ? `${id}/${epoch}` : `${id}/${epoch}/${task}`;
      if (results[i] !== 'ACCEPTED') continue;
      if (run === undefined || run.siteId !== siteId)
        this.fail(`2: a report of run ${key} was taken from site ${siteId}`);
      if (phase === 'STARTED') continue;
      if (this.storedEnds.has(key)) this.fail(`1: the end of run ${key} was accepted twice`);
      this.storedEnds.add(key);
      this.forgotten.add(`${key}+${token}`);
      if (task !== undefined) {
        const end = run?.tasks.get(task)?.end;
        if (!end || (end.cause !== cause && end.cause !== 'OTHER_TASK_FAILED'))
          this.fail(`2: the end of task ${key} was accepted and not stored`);
        continue;
      }
      // Whose job is stopped for another ends so, whatever its program did then.
      if (run?.endedAt == null || (run.cause !== cause && run.cause !== 'PREEMPTED'))
        this.fail(`2: the end of run ${key} was accepted and not stored`);
    }
  }

  /** All that can be asked of this moment. */
  look(): void {
    if (this.broken !== null) return;
    this.ofJobs();
    this.ofResources();
    this.ofEvents();
  }

  /** When all has ended. */
  async atEnd(): Promise<void> {
    const { store } = this;
    for (const job of store.jobs.values()) {
      const { id, state, cause, epoch } = job;
      const run = store.runs.get(`${id}/${epoch}`);
      if (!isTerminal(state)) this.fail(`liveness: job ${id} is ${state}`);
      if (run?.cause === 'EXITED_ZERO')
        for (const [task, { end }] of run.tasks)
          if (end?.cause !== 'EXITED_ZERO')
            this.fail(`1: job ${id} ended well, its task ${task} by ${end?.cause}`);
      const isSaid = run?.placedBy === 'PEER' || this.saidEnds.has(`${id}/${epoch}`);
      if (state === 'COMPLETED' && (cause !== 'EXITED_ZERO' || !isSaid))
        this.fail(`1: job ${id} is COMPLETED by ${cause}, and no agent has said so`);
      const causes = ['LOST', 'RUN_TIME_LIMIT', ...(job.command === FAILING ? ['EXITED_NONZERO'] : [])];
      // Peers say what becomes of a run there, and copies are given up.
      if (run?.placedBy === 'PEER' || store.federation.foreign.has(id))
        causes.push('REFUSED', 'MACHINE_FAILED', 'OUTPUTS_FAILED');
      if (state === 'FAILED' && !causes.includes(cause as string))
        this.fail(`1: job ${id} FAILED by ${cause}, which happens to no run here`);
      this.ofRetries(job);
      if (cause === 'RUN_TIME_LIMIT' && job.runTimeLimitS === null) this.fail(`1: job ${id} has no limit`);
      if (state === 'FAILED' && cause === 'LOST' && !job.retry && job.restartable && epoch < this.maxAttempts)
        this.fail(`1: job ${id} was given up after ${epoch} runs`);
    }
    const unmet = this.needs.atEnd();
    if (unmet !== null) this.fail(`1: ${unmet}`);
    this.ofTimes();
    const starts = store.decisions.filter(({ kind }) => kind === 'START').length;
    if (store.runs.size !== starts) this.fail(`7: ${store.runs.size} runs, ${starts} decisions to start`);
    this.ofQuotas();
    const dispatched = store.events.filter(
      ({ fromState, toState, kind, siteId }) =>
        fromState === 'QUEUED' &&
        (toState === 'DISPATCHED' || (kind === 'JOB_STATE' && toState === 'QUEUED' && siteId !== null)),
    ).length;
    const decided = store.decisions.filter(({ kind }) => kind === 'DISPATCH').length;
    if (dispatched !== decided) this.fail(`7: ${dispatched} dispatches, ${decided} decisions`);
    // A mirror that is loaded now has nothing left to schedule.
    const mirror = new Mirror(store);
    await mirror.sync();
    const { root, sites } = mirror.grid;
    if (
      root.length +
      sites.reduce(
        (n, { queue, meta, resources }) => n + queue.length + meta.length + resources.runs.length,
        0,
      )
    )
      this.fail('6: a mirror that is loaded now holds jobs that have ended');
  }

  /** A run follows another only where that was decided, not before its time, and not too often. */
  private ofRetries({ id, epoch, retry, retries }: MemoryJob): void {
    let counted = 0;
    const events = this.store.events.filter(({ kind, entityId }) => kind === 'JOB_STATE' && entityId === id);
    for (let n = 1; n <= epoch; n++) {
      const run = this.store.runs.get(`${id}/${n}`) as MemoryRun;
      const next = this.store.runs.get(`${id}/${n + 1}`);
      if (run.cause === 'EXITED_ZERO' && next)
        this.fail(`2: job ${id} ran again after run ${n} had ended well`);
      if (next && (run.retry === null || run.retry.action === 'FAIL'))
        this.fail(`2: job ${id} ran again after run ${n}, and nobody had decided that`);
      // How long it waited depends on a clock that jumps here.
      const waited = events.some(({ epoch, toState }) => epoch === n && toState === 'BLOCKED');
      if (next && (run.retry?.delayS ?? 0) > 0 && !waited)
        this.fail(`2: run ${n + 1} of job ${id} came at once`);
      if (run.retry?.counted && run.retry.action !== 'FAIL') counted++;
    }
    if (counted !== retries) this.fail(`9: job ${id} counts ${retries} retries of ${counted}`);
    if (counted > Math.max(retry?.maxRetries ?? 0, this.maxAttempts - 1))
      this.fail(`9: job ${id} was tried again ${counted} times`);
  }

  /** Each job was submitted, dispatched, assigned, started and ended in this order, its runs one after the other. */
  private ofTimes(): void {
    const { jobs, runs, events } = this.store;
    // In which epoch each was dispatched last: the run that followed, if one did, is of the next.
    const dispatchedIn = new Map<number, number | null>();
    for (const { entityId, fromState, toState, epoch } of events)
      if (fromState === 'QUEUED' && toState === 'DISPATCHED') dispatchedIn.set(entityId, epoch);
    for (const { id, epoch: latest, submittedAt, dispatchedAt, endedAt } of jobs.values()) {
      const times: (number | null)[] = [submittedAt];
      for (let epoch = 0; epoch <= latest; epoch++) {
        const run = runs.get(`${id}/${epoch}`);
        if (run) times.push(run.assignedAt, run.startedAt, run.endedAt);
        if (dispatchedIn.get(id) === epoch) times.push(dispatchedAt);
      }
      const known = [...times, endedAt].filter((at) => at !== null);
      if (known.some((at, i) => at < (known[i - 1] ?? at)))
        this.fail(`2: the times of job ${id} are not in order: ${known}`);
    }
  }

  private ofQuotas(): void {
    const jobs = [...this.store.jobs.values()];
    for (const { id, quota } of this.store.users.values()) {
      if (quota === null) continue;
      const times = jobs.filter(({ userId }) => userId === id).map(({ submittedAt }) => submittedAt);
      for (const at of times) {
        const within = times.filter((other) => other <= at && other > at - quota.periodS).length;
        if (within > quota.limit)
          this.fail(`3: user ${id} has submitted ${within} jobs within ${quota.periodS} s`);
      }
    }
  }

  private ofJobs(): void {
    const { store } = this;
    for (const id of this.owner.keys())
      if (!store.jobs.has(id)) this.fail(`1: job ${id} was accepted and is lost`);
    const live = new Map<number, number[]>();
    const epochs = new Map<number, number>();
    for (const { jobId, epoch, endedAt, siteId } of store.runs.values()) {
      epochs.set(jobId, (epochs.get(jobId) ?? 0) + 1);
      if (endedAt !== null) continue;
      live.set(jobId, [...(live.get(jobId) ?? []), epoch]);
      if (store.jobs.get(jobId)?.siteId !== siteId)
        this.fail(`2: run ${jobId}/${epoch} is at another site than its job`);
    }
    for (const { id, state, endedAt, cause, siteId, epoch } of store.jobs.values()) {
      if (isTerminal(state) !== (endedAt !== null) || (endedAt !== null) !== (cause !== null))
        this.fail(`1: job ${id} is ${state}, ended at ${endedAt} by ${cause}`);
      if ((state === 'DISPATCHED' || isLive(state)) && siteId === null)
        this.fail(`1: job ${id} is ${state} nowhere`);
      const runs = live.get(id) ?? [];
      if (String(runs) !== (isLive(state) ? String(epoch) : ''))
        this.fail(`2: job ${id} is ${state} in epoch ${epoch}, its live runs are [${runs}]`);
      if ((epochs.get(id) ?? 0) !== epoch)
        this.fail(`2: job ${id} has had ${epochs.get(id)} runs in ${epoch} epochs`);
    }
  }

  private ofResources(): void {
    const { store } = this;
    const onMachine = new Map<number, number[]>();
    const cpus = new Map<number, number>();
    const places = new Map<number, number>();
    const memory = new Map<number, number>();
    const licenses = new Map<number, number>();
    const bySite = new Map<number, number>();
    const resources = new Map<string, number>();
    const addResource = (id: number, kind: string, n: number) => {
      const key = `${id}/${kind}`;
      resources.set(key, (resources.get(key) ?? 0) + n);
    };
    const add = (to: Map<number, number>, id: number, n: number) => to.set(id, (to.get(id) ?? 0) + n);
    const holders = new Map<string, number>();
    for (const run of store.runs.values()) {
      const { jobId, siteId, allocations, pools, devices, whole, endedAt, placedBy } = run;
      if (endedAt !== null) continue;
      const job = store.jobs.get(jobId);
      if (job === undefined) continue;
      add(bySite, siteId, 1);
      let tasks = 0;
      for (const [i, { part, ...allocation }] of placedParts(job, allocations).entries()) {
        const units = devices?.[i] ?? [];
        if (units.length !== allocation.tasks * (part.resourcesPerTask?.disk ?? 0))
          this.fail(`3: job ${jobId} has ${units.length} devices on machine ${allocation.machineId}`);
        for (const unit of units) {
          const name = `${allocation.machineId}/${unit}`;
          if (holders.has(name)) this.fail(`3: jobs ${holders.get(name)} and ${jobId} have device ${name}`);
          holders.set(name, jobId);
        }
        tasks += allocation.tasks;
        const beside = onMachine.get(allocation.machineId) ?? [];
        if (!beside.includes(jobId)) onMachine.set(allocation.machineId, [...beside, jobId]);
        const machine = store.machines.get(allocation.machineId);
        if (machine?.maxTasks) add(places, machine.id, whole?.places[i] ?? allocation.tasks);
        else add(cpus, allocation.machineId, whole?.cpus[i] ?? allocation.tasks * part.cpusPerTask);
        add(memory, allocation.machineId, allocation.tasks * part.memoryMbPerTask);
        for (const [kind, amount] of Object.entries(part.resourcesPerTask ?? {}))
          addResource(allocation.machineId, kind, allocation.tasks * amount);
        if (machine?.siteId !== siteId) this.fail(`2: job ${jobId} runs on a machine of another site`);
      }
      // What others hold for it they know.
      if (placedBy !== 'SERVICE') continue;
      if (tasks !== job.tasks) this.fail(`2: job ${jobId} has ${job.tasks} tasks and runs ${tasks}`);
      const has = new Map<string, number>();
      for (const { id, amount } of pools) {
        add(licenses, id, amount);
        const kind = store.licenses.get(id)?.kind ?? '';
        has.set(kind, (has.get(kind) ?? 0) + amount);
      }
      const asked = poolsAskedBy(job);
      if (has.size !== asked.length || asked.some(({ kind, amount }) => has.get(kind) !== amount))
        this.fail(`3: job ${jobId} has of pools ${JSON.stringify([...has])}`);
    }
    for (const machine of store.machines.values()) {
      const here = onMachine.get(machine.id) ?? [];
      if (here.length > 1 && here.some((id) => store.jobs.get(id)?.exclusive === 'MACHINE'))
        this.fail(`3: jobs ${here} are on machine ${machine.id}, which one of them has to itself`);
      const users = new Set(here.map((id) => store.jobs.get(id)?.userId));
      if (users.size > 1 && here.some((id) => store.jobs.get(id)?.exclusive === 'USER'))
        this.fail(
          `3: jobs ${here} of users ${[...users]} are on machine ${machine.id}, which one keeps for its user`,
        );
      const held = cpus.get(machine.id) ?? 0;
      const heldMb = memory.get(machine.id) ?? 0;
      if (machine.cpusUsed !== held || machine.memoryUsedMb !== heldMb)
        this.fail(`3: machine ${machine.id} counts ${machine.cpusUsed} CPUs of ${held}`);
      const tasks = places.get(machine.id) ?? 0;
      if (machine.tasksUsed !== tasks)
        this.fail(`3: machine ${machine.id} counts ${machine.tasksUsed} tasks of ${tasks}`);
      if (held > machine.cpus || heldMb > machine.memoryMb || tasks > (machine.maxTasks ?? Infinity))
        this.fail(`3: machine ${machine.id} is over-committed`);
      for (const kind of new Set([
        ...Object.keys(machine.resourcesUsed),
        ...Object.keys(machine.resources ?? {}),
      ])) {
        const used = resources.get(`${machine.id}/${kind}`) ?? 0;
        if ((machine.resourcesUsed[kind] ?? 0) !== used || used > (machine.resources?.[kind] ?? 0))
          this.fail(
            `3: machine ${machine.id}: ${used} ${kind} held, ${machine.resourcesUsed[kind] ?? 0} counted, ${machine.resources?.[kind] ?? 0} there`,
          );
      }
    }
    for (const { id, copies, inUse } of store.licenses.values()) {
      const held = licenses.get(id) ?? 0;
      if (inUse !== held || held > copies)
        this.fail(`3: license ${id}: ${held} held, ${inUse} counted, ${copies} there`);
    }
    for (const { id, maxRunningJobs } of store.sites.values())
      if ((bySite.get(id) ?? 0) > (maxRunningJobs ?? Infinity)) this.fail(`3: site ${id} runs too many jobs`);
  }

  /** As a subscriber, who goes on behind the last event that it has seen. */
  private ofEvents(): void {
    const { events } = this.store;
    const news: EventRow[] = [];
    for (let i = events.length - 1; i >= 0 && (events[i] as EventRow).id > this.cursor; i--)
      news.unshift(events[i] as EventRow);
    for (const { id, seq, entityId, fromState, toState, kind } of news) {
      if (id !== this.cursor + 1) this.fail(`4: event ${id} follows ${this.cursor}`);
      this.cursor = id;
      if (seq === null) continue;
      const known = this.told.get(entityId);
      if (seq !== (known?.seq ?? 0) + 1) this.fail(`4: job ${entityId}: event ${seq} follows ${known?.seq}`);
      if ((known?.state ?? null) !== fromState)
        this.fail(`4: job ${entityId}: from ${fromState}, was ${known?.state}`);
      const state = toState as JobState;
      if (kind === 'JOB_STATE' && known && !canTransition(fromState, state) && fromState !== state)
        this.fail(`4: job ${entityId}: from ${fromState} to ${state}`);
      const ends = (known?.ends ?? 0) + (kind === 'JOB_STATE' && isTerminal(state) ? 1 : 0);
      if (ends > 1) this.fail(`1: job ${entityId} ends twice`);
      this.told.set(entityId, { seq, state, ends });
    }
    for (const { id, seq, state } of this.store.jobs.values()) {
      const known = this.told.get(id);
      if (known?.seq !== seq || known.state !== state)
        this.fail(`4: job ${id} is ${state}, its events say ${known?.state}`);
    }
  }
}
