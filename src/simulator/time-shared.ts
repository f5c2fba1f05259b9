/**
 * When runs on time-shared machines end (Santoso et al., section 3; exact rules: hierarchical-clusters.md). A machine shares
 * its CPUs equally among the tasks on it that can run; none uses more than it asks for. The tasks of a parallel job compute
 * in sections of CPU time: a task that has ended its section uses no CPU until all have. Places are held until the job ends.
 *
 * Who runs where is the schedulers' decision; here is only how fast.
 */
import { cpusByAllocation, type Job, type Machine, type Run } from '../core/index.js';
import type { EventQueue } from './event-queue.js';

interface Node {
  machine: Machine;
  readonly index: number;
  /** Tasks there, those that wait for their job's others among them. */
  readonly tasks: Task[];
  /** Tasks that compute, and the time up to which their `remaining` is true. */
  computing: number;
  updated: number;
  /** Sequence of the event at which the next of them ends its section. */
  sequence: number;
}

interface Task {
  readonly running: Running;
  readonly node: Node;
  readonly cpus: number;
  computes: boolean;
  /** Work of this section, in seconds on a machine of power 1. */
  remaining: number;
}

interface Running {
  readonly index: number;
  readonly tasks: Task[];
  readonly section: number;
  /** Work that each task still has after this section. */
  left: number;
  /** Tasks that have not ended this section. */
  computing: number;
}

/** Work below which a section counts as ended: rounding of sums of shares. */
const NEGLIGIBLE = 1e-9;

export class TimeSharing {
  private readonly nodes: Node[] = [];
  private readonly nodeOf = new Map<number, Node>();
  private readonly runs = new Map<number, Running>();

  /** Notes in `events`, as events of this kind, when something is to be advanced. */
  constructor(
    private readonly events: EventQueue,
    private readonly kind: number,
  ) {}

  /** Adds a machine, or replaces what is known of it. */
  setMachine(machine: Machine, now: number): void {
    const known = this.nodeOf.get(machine.id);
    if (known !== undefined) {
      pass(known, now);
      known.machine = machine;
      this.expect(known, now);
      return;
    }
    const index = this.nodes.length;
    const node: Node = { machine, index, tasks: [], computing: 0, updated: now, sequence: -1 };
    this.nodes.push(node);
    this.nodeOf.set(machine.id, node);
  }

  /**
   * The run starts to compute. `index`: of its job. `work`: of each task, and `section`: after which its tasks wait for each
   * other, both in seconds on a machine of power 1.
   */
  start(index: number, run: Run, job: Job, work: number, section: number, now: number): void {
    const tasks = run.allocations.reduce((sum, allocation) => sum + allocation.tasks, 0);
    const first = tasks === 1 ? work : Math.min(section, work);
    const running: Running = { index, tasks: [], section, left: work - first, computing: tasks };
    this.runs.set(index, running);
    const cpus = job.parts === null ? null : cpusByAllocation(job.parts, run.allocations);
    for (const [k, allocation] of run.allocations.entries()) {
      const node = this.nodeOf.get(allocation.machineId) as Node;
      for (let i = 0; i < allocation.tasks; i++) {
        const cpusOfTask = cpus === null ? job.cpusPerTask : (cpus[k] as number) / allocation.tasks;
        const task: Task = { running, node, cpus: cpusOfTask, computes: false, remaining: 0 };
        node.tasks.push(task);
        running.tasks.push(task);
        this.compute(task, first, now);
      }
    }
  }

  /** An event of this kind has come: ends the sections that end now. `ended` is told of each job that has computed all. */
  advance(index: number, sequence: number, now: number, ended: (index: number) => void): void {
    const node = this.nodes[index] as Node;
    if (node.sequence !== sequence) return;
    pass(node, now);
    // Not the array itself: jobs that end leave it.
    for (const task of [...node.tasks]) {
      if (!task.computes || !isOver(task, now)) continue;
      const { running } = task;
      task.computes = false;
      node.computing--;
      if (--running.computing > 0) continue;
      if (running.left <= NEGLIGIBLE) {
        this.stop(running.index, now);
        ended(running.index);
        continue;
      }
      const work = Math.min(running.section, running.left);
      running.left -= work;
      running.computing = running.tasks.length;
      for (const other of running.tasks) this.compute(other, work, now);
    }
    this.expect(node, now);
  }

  /** The job computes no more; nothing happens to one that does not. */
  stop(index: number, now: number): void {
    const running = this.runs.get(index);
    if (running === undefined) return;
    this.runs.delete(index);
    for (const task of running.tasks) {
      const { node } = task;
      if (task.computes) pass(node, now);
      node.tasks.splice(node.tasks.indexOf(task), 1);
      if (!task.computes) continue;
      node.computing--;
      this.expect(node, now);
    }
  }

  private compute(task: Task, work: number, now: number): void {
    const { node } = task;
    pass(node, now);
    task.computes = true;
    task.remaining = work;
    node.computing++;
    this.expect(node, now);
  }

  /** Notes when the next section on the machine ends. */
  private expect(node: Node, now: number): void {
    let least = Infinity;
    for (const task of node.tasks) {
      if (task.computes) least = Math.min(least, Math.max(0, task.remaining) * slowness(task));
    }
    node.sequence = least === Infinity ? -1 : this.events.push(now + least, this.kind, node.index);
  }
}

/** Seconds that a unit of the task's work takes now. */
function slowness({ node, cpus }: Task): number {
  const { machine, computing } = node;
  const sharers = machine.maxTasks ? (computing * cpus) / machine.cpus : 1;
  return Math.max(1, sharers) / machine.benchmark;
}

/** Gives the tasks on a machine what it has done until now. */
function pass(node: Node, now: number): void {
  const elapsed = now - node.updated;
  node.updated = now;
  if (elapsed === 0) return;
  for (const task of node.tasks) if (task.computes) task.remaining -= elapsed / slowness(task);
}

/** What is left is nothing, or less than the clock can tell. */
const isOver = (task: Task, now: number): boolean =>
  task.remaining <= NEGLIGIBLE || now + task.remaining * slowness(task) <= now;
