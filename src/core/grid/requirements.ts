/**
 * What jobs ask of machines, in classes: jobs with equal requirements share one `Requirement`, so that questions about
 * machines are asked once per class and not once per job. A class has a *signature* (platform, labels and pools: which
 * machines are eligible at all) and a shape (tasks, and the amounts that each takes: which of them have room).
 */
import {
  ANY_TASKS_PER_MACHINE,
  type Avoids,
  type Job,
  type JobPart,
  ofPart,
  type PoolsAsked,
  poolsAskedBy,
  SWITCH,
  switchUntil,
} from '../model.js';
import { AskedDevices } from '../resources/asked-devices.js';
import type { Spread } from '../resources/choice.js';
import { type Constraint, labelsAskedBy, parseAsked } from '../resources/constraint.js';
import type { DeviceRequest } from '../resources/devices.js';
import { amountOf, furtherIn, MEMORY, type ResourceKinds, type TaskAmounts } from './amounts.js';

export interface Signature {
  readonly key: string;
  readonly os: string | null;
  readonly architecture: string | null;
  /** What is asked of pools, in order of kind. */
  readonly pools: readonly PoolsAsked[];
  /** Over the labels of machines; null: any will do. */
  readonly constraint: { readonly text: string; readonly parsed: Constraint } | null;
  /** Where earlier runs failed, and what the next one needs elsewhere; null: nowhere. */
  readonly avoids:
    | (Avoids & Pick<Requirement, 'tasks' | 'task' | 'devices' | 'spread' | 'whole' | 'parts'>)
    | null;
  /** Of the parts of a job, each with what all have in common; null: it has none. */
  readonly parts: readonly Signature[] | null;
}

/** Tells signatures apart, as long as nothing is avoided; `constraint`: its text. */
export const signatureKey = (
  os: string | null,
  architecture: string | null,
  pools: readonly PoolsAsked[],
  constraint: string | null,
): string => JSON.stringify([os, architecture, pools, constraint]);

export interface Requirement extends TaskAmounts {
  /** No other class of the grid has it: notes of a pass can lie in arrays. A later class may have that of one that is gone. */
  readonly index: number;
  readonly signature: Signature;
  readonly tasks: number;
  /** What is asked of the machines on which the tasks are, beside room for each; null: nothing, and they fill machine after machine. */
  readonly spread: Spread | null;
  /** All tasks are placed in one look: there are several, they are to be spread, or ask for devices by what they are. */
  readonly many: boolean;
  /** Processors are what the papers' rules count. */
  readonly cpusPerTask: number;
  /** Where tasks are not all alike: classes of which no job is, in the order of the tasks. The amounts of the class are then the most of any. */
  readonly parts: readonly Requirement[] | null;
  /** Jobs known to the grid that belong to it. */
  jobs: number;
}

/** Classes without jobs are kept for the next job like them; beyond this many they are dropped. */
const UNUSED_KEPT = 4096;

const PLAIN = '';
const RECENT = 256;

/** It asks for nothing but processors and memory. */
const isPlain = (job: Job): boolean =>
  job.licenses.length === 0 &&
  job.resources === null &&
  job.os === null &&
  job.architecture === null &&
  job.machineConstraint === null &&
  job.image === null &&
  job.avoids === null &&
  job.resourcesPerTask === null &&
  job.devicesPerTask === null &&
  job.tasksPerMachine === null &&
  job.exclusive === null &&
  job.sameSwitch === null &&
  job.allAlike === null &&
  job.parts === null;

/** Such jobs are few: each shape of theirs is a signature. */
const avoidingKey = (job: Job, now: number): string =>
  JSON.stringify([job.avoids, job.tasks, job.cpusPerTask, restKey(job, now)]);

/** What a task asks for beside CPUs, and how the tasks are spread: a number for most. */
const restKey = (job: Job, now: number): number | string => {
  const { memoryMbPerTask, resourcesPerTask, devicesPerTask, parts } = job;
  if (parts !== null) return JSON.stringify(parts.map((part) => partKey(jobOfPart(job, part), now)));
  const spread = spreadOf(job, now);
  if (resourcesPerTask === null && devicesPerTask === null && spread === null) return memoryMbPerTask;
  const { exclusive, userId } = job;
  const alone = exclusive === 'USER' ? userId : exclusive;
  const devices = devicesPerTask === null ? [] : [devicesPerTask.map(requestKey), sharingUser(job)];
  return JSON.stringify([memoryMbPerTask, furtherIn(resourcesPerTask), spread, alone, ...devices]);
};

const requestKey = ({ kind, count, model, minMemoryMb, share }: DeviceRequest): unknown[] => [
  ...[kind, count, model, minMemoryMb],
  share && [share.parts, share.of],
];

/** Who it matters whose tasks they are: some devices are shared by one user's only. Null: it does not. */
const sharingUser = ({ userId, devicesPerTask }: Pick<Job, 'userId' | 'devicesPerTask'>): string | null =>
  devicesPerTask?.some(({ share }) => share !== null) ? String(userId) : null;

const partKey = (part: Job, now: number): unknown[] => [part.tasks, part.cpusPerTask, restKey(part, now)];

const jobOfPart = (job: Job, part: JobPart): Job => ({ ...ofPart(job, part), avoids: null });

/** Bounds that bind nothing are none. */
function spreadOf(job: Job, now: number): Spread | null {
  const { tasks, tasksPerMachine, exclusive } = job;
  const { min, max } = tasksPerMachine ?? ANY_TASKS_PER_MACHINE;
  const allAlike = alikeAt(job, now);
  // Of their parts each has its own.
  if (job.parts !== null) return null;
  const bound = min > 1 || (max !== null && max < tasks) || exclusive !== null || allAlike.length > 0;
  return bound ? { tasksPerMachine: { min, max }, allAlike } : null;
}

const NO_LABELS: readonly string[] = [];

function alikeAt(job: Job, now: number): readonly string[] {
  const allAlike = job.allAlike ?? NO_LABELS;
  return now >= switchUntil(job) || allAlike.includes(SWITCH) ? allAlike : [...allAlike, SWITCH];
}

interface SignatureGroup {
  readonly signature: Signature;
  readonly byShape: Map<number, Map<number | string, Requirement>>;
}

export class Requirements {
  private readonly bySignature = new Map<string, SignatureGroup>();
  /** As `Grid.advance` was told it last: what jobs ask for until an instant they ask for no more. */
  now = Number.NEGATIVE_INFINITY;
  /** Signatures of jobs that avoid something. */
  avoiding = 0;
  private size = 0;
  private used = 0;
  private indices = 0;
  private readonly freeIndices: number[] = [];
  /** Of plain jobs by their processors, those found last: most jobs are as one of them, and need no look into three maps. */
  private readonly recent: (Requirement | undefined)[] = new Array(RECENT).fill(undefined);

  constructor(private readonly kinds: ResourceKinds) {}

  /** The class of a job; counts the job in. */
  enter(job: Job): Requirement {
    const requirement = this.find(job);
    if (requirement.jobs++ === 0) this.used++;
    if (this.size - this.used > UNUSED_KEPT) this.dropUnused();
    return requirement;
  }

  /** Counts a job out. */
  leave(requirement: Requirement): void {
    if (--requirement.jobs === 0) this.used--;
  }

  /** By kind of pool what all jobs ask for, live ones too. */
  poolsAsked(): Map<string, number> {
    const asked = new Map<string, number>();
    for (const { signature, byShape } of this.bySignature.values()) {
      if (signature.pools.length === 0) continue;
      let jobs = 0;
      for (const byRest of byShape.values())
        for (const requirement of byRest.values()) jobs += requirement.jobs;
      for (const { kind, amount } of signature.pools) asked.set(kind, (asked.get(kind) ?? 0) + jobs * amount);
    }
    return asked;
  }

  private find(job: Job): Requirement {
    if (!isPlain(job)) return this.lookUp(job);
    const { tasks, cpusPerTask, memoryMbPerTask } = job;
    const place = cpusPerTask % RECENT;
    const last = this.recent[place];
    if (
      last?.cpusPerTask === cpusPerTask &&
      last.tasks === tasks &&
      amountOf(last.task, MEMORY) === memoryMbPerTask
    )
      return last;
    const requirement = this.lookUp(job);
    this.recent[place] = requirement;
    return requirement;
  }

  private lookUp(job: Job): Requirement {
    const group = this.signatureOf(job);
    // A small number for jobs of one task: maps find those faster.
    const shape = (job.tasks - 1) * 2 ** 24 + job.cpusPerTask;
    let byRest = group.byShape.get(shape);
    if (byRest === undefined) {
      byRest = new Map();
      group.byShape.set(shape, byRest);
    }
    const rest = restKey(job, this.now);
    let requirement = byRest.get(rest);
    if (requirement === undefined) {
      const { task, sharedTask, sharedTake, further, devices, whole, onlyUser } = this.askedBy(job);
      const spread = spreadOf(job, this.now);
      const parts = this.partsOf(job);
      requirement = {
        index: this.freeIndices.pop() ?? this.indices++,
        signature: group.signature,
        tasks: job.tasks,
        spread,
        many: job.tasks > 1 || spread !== null || parts !== null || devices !== null,
        cpusPerTask: job.cpusPerTask,
        task,
        sharedTask,
        sharedTake,
        further,
        devices,
        whole,
        onlyUser,
        parts,
        jobs: 0,
      };
      byRest.set(rest, requirement);
      this.size++;
    }
    return requirement;
  }

  private askedBy(job: Job): TaskAmounts {
    const beside = this.kinds.askedBy(job);
    const { devicesPerTask } = job;
    if (devicesPerTask === null || devicesPerTask.length === 0) return beside;
    const kinds = devicesPerTask.map(({ kind }) => this.kinds.index(kind));
    return { ...beside, devices: new AskedDevices(devicesPerTask, sharingUser(job), kinds, beside) };
  }

  private partsOf(job: Job): Requirement[] | null {
    return job.parts?.map((part) => this.lookUp(jobOfPart(job, part))) ?? null;
  }

  private signatureOf(job: Job): SignatureGroup {
    const { os, architecture, avoids } = job;
    const text = labelsAskedBy(job);
    const pools = poolsAskedBy(job);
    const plain = pools.length === 0 && os === null && architecture === null && text === null;
    const common = plain ? PLAIN : signatureKey(os, architecture, pools, text);
    const parts = this.partsOf(job);
    const signatures = parts?.map(({ signature }) => signature) ?? null;
    const anywhere =
      signatures === null ? common : `${common} ${JSON.stringify(signatures.map((one) => one.key))}`;
    const key = avoids === null ? anywhere : `${anywhere} ${avoidingKey(job, this.now)}`;
    let group = this.bySignature.get(key);
    if (group === undefined) {
      const constraint = text === null ? null : { text, parsed: parseAsked(text) };
      const { task, devices, whole } = this.askedBy(job);
      const signature = {
        key,
        os,
        architecture,
        pools,
        constraint,
        avoids: avoids && {
          ...avoids,
          tasks: job.tasks,
          task,
          devices,
          spread: spreadOf(job, this.now),
          whole,
          parts,
        },
        parts: signatures,
      };
      group = { signature, byShape: new Map() };
      this.bySignature.set(key, group);
      if (avoids !== null) this.avoiding++;
    }
    return group;
  }

  private dropUnused(): void {
    for (const [key, group] of this.bySignature) {
      for (const [shape, byRest] of group.byShape) {
        for (const [rest, { jobs, index }] of byRest) {
          if (jobs > 0) continue;
          byRest.delete(rest);
          this.freeIndices.push(index);
        }
        if (byRest.size === 0) group.byShape.delete(shape);
      }
      if (group.byShape.size > 0) continue;
      this.bySignature.delete(key);
      if (group.signature.avoids !== null) this.avoiding--;
    }
    this.size = this.used;
    this.recent.fill(undefined);
  }
}
