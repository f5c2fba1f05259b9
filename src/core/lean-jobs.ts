/**
 * Jobs in little memory, for those who hold a million of them. Most jobs are alike in most of what schedulers know, so that is kept once for
 * all that are: a job has its times and numbers, and shares the rest. Beside 44 fields of its own that is a third.
 *
 * Shared fields are not the object's own: who makes another job of one spreads `fieldsOf(job)`, never the job.
 */
import { type Job, plainJob } from './model.js';

/** Fields in which few jobs are like another. */
const own = ['id', 'submittedAt', 'estimateS', 'priority', 'groupId', 'dispatchedAt'] as const;
type Own = (typeof own)[number];
/** The same, and most jobs have none of these. */
const rare = ['deadline', 'migratedAt', 'eligibleAt'] as const;
type Rare = (typeof rare)[number];
/** What no job shares with another. */
export const unsharedFields = [...own, ...rare] as const;
export type Unshared = Pick<Job, Own | Rare>;
/** Jobs that have any of these are like no other: they stay as they are. */
type Unlike = 'data' | 'parts' | 'avoids' | 'promised' | 'workflow';
type Alike = Omit<Job, Own | Rare | Unlike>;

abstract class LeanJob implements Job {
  readonly id: number;
  readonly submittedAt: Job['submittedAt'];
  readonly estimateS: Job['estimateS'];
  readonly priority: Job['priority'];
  readonly groupId: Job['groupId'];
  readonly dispatchedAt: Job['dispatchedAt'];
  abstract readonly deadline: Job['deadline'];
  abstract readonly migratedAt: Job['migratedAt'];
  abstract readonly eligibleAt: Job['eligibleAt'];

  constructor(
    job: Unshared,
    readonly of: Alike,
  ) {
    this.id = job.id;
    this.submittedAt = job.submittedAt;
    this.estimateS = job.estimateS;
    this.priority = job.priority;
    this.groupId = job.groupId;
    this.dispatchedAt = job.dispatchedAt;
  }

  get userId(): Job['userId'] {
    return this.of.userId;
  }

  get userClass(): Job['userClass'] {
    return this.of.userClass;
  }

  get benchmark(): Job['benchmark'] {
    return this.of.benchmark;
  }

  get tasks(): Job['tasks'] {
    return this.of.tasks;
  }

  get cpusPerTask(): Job['cpusPerTask'] {
    return this.of.cpusPerTask;
  }

  get memoryMbPerTask(): Job['memoryMbPerTask'] {
    return this.of.memoryMbPerTask;
  }

  get resourcesPerTask(): Job['resourcesPerTask'] {
    return this.of.resourcesPerTask;
  }

  get devicesPerTask(): Job['devicesPerTask'] {
    return this.of.devicesPerTask;
  }

  get tasksPerMachine(): Job['tasksPerMachine'] {
    return this.of.tasksPerMachine;
  }

  get exclusive(): Job['exclusive'] {
    return this.of.exclusive;
  }

  get allAlike(): Job['allAlike'] {
    return this.of.allAlike;
  }

  get sameSwitch(): Job['sameSwitch'] {
    return this.of.sameSwitch;
  }

  get licenses(): Job['licenses'] {
    return this.of.licenses;
  }

  get resources(): Job['resources'] {
    return this.of.resources;
  }

  get os(): Job['os'] {
    return this.of.os;
  }

  get architecture(): Job['architecture'] {
    return this.of.architecture;
  }

  get machineConstraint(): Job['machineConstraint'] {
    return this.of.machineConstraint;
  }

  get image(): Job['image'] {
    return this.of.image;
  }

  get boost(): Job['boost'] {
    return this.of.boost;
  }

  get runTimeLimitS(): Job['runTimeLimitS'] {
    return this.of.runTimeLimitS;
  }

  get killGraceS(): Job['killGraceS'] {
    return this.of.killGraceS;
  }

  get application(): Job['application'] {
    return this.of.application;
  }

  get project(): Job['project'] {
    return this.of.project;
  }

  get preferences(): Job['preferences'] {
    return this.of.preferences;
  }

  get schedulerId(): Job['schedulerId'] {
    return this.of.schedulerId;
  }

  get treeMoves(): Job['treeMoves'] {
    return this.of.treeMoves;
  }

  get reservationId(): Job['reservationId'] {
    return this.of.reservationId;
  }

  get class(): Job['class'] {
    return this.of.class;
  }

  get preemptionClass(): Job['preemptionClass'] {
    return this.of.preemptionClass;
  }

  get restartable(): Job['restartable'] {
    return this.of.restartable;
  }

  get data(): null {
    return null;
  }

  get parts(): null {
    return null;
  }

  get avoids(): null {
    return null;
  }

  get promised(): null {
    return null;
  }

  get workflow(): null {
    return null;
  }
}

class UntimedJob extends LeanJob {
  get deadline(): null {
    return null;
  }

  get migratedAt(): null {
    return null;
  }

  get eligibleAt(): null {
    return null;
  }
}

class TimedJob extends LeanJob {
  readonly deadline: Job['deadline'];
  readonly migratedAt: Job['migratedAt'];
  readonly eligibleAt: Job['eligibleAt'];

  constructor(job: Unshared, of: Alike) {
    super(job, of);
    this.deadline = job.deadline;
    this.migratedAt = job.migratedAt;
    this.eligibleAt = job.eligibleAt;
  }
}

const leanJob = (job: Unshared, of: Alike): LeanJob =>
  job.deadline === null && job.migratedAt === null && job.eligibleAt === null
    ? new UntimedJob(job, of)
    : new TimedJob(job, of);

/** The job of these fields that is like another in all others; null: the other shares nothing. */
export const likeLean = (other: Job, fields: Unshared): Job | null =>
  other instanceof LeanJob ? leanJob(fields, other.of) : null;

/** All fields of a job as an object's own. */
export const fieldsOf = (job: Job): Job => (job instanceof LeanJob ? plainJob(job) : job);

/** Different values that are kept, and of those that differ in little, how many are looked through. */
const KEPT_MAX = 10_000;
const LOOKED_AT = 8;

export class LeanJobs {
  private readonly kept = new Map<string, Alike[]>();
  private size = 0;

  /** The same job, as lean as it can be. */
  of(job: Job): Job {
    const { data, parts, avoids, promised, workflow } = job;
    if (job instanceof LeanJob) return job;
    if (data !== null || parts !== null || avoids !== null || promised !== null || workflow !== null)
      return job;
    return leanJob(job, this.shared(job));
  }

  private shared(job: Job): Alike {
    const key = `${job.userId} ${job.tasks} ${job.cpusPerTask} ${job.memoryMbPerTask} ${job.benchmark} ${job.application}`;
    const known = this.kept.get(key);
    const found = known?.find((one) => areAlike(one, job));
    if (found !== undefined) return found;
    if (this.size++ >= KEPT_MAX) {
      this.kept.clear();
      this.size = 1;
    }
    if (known === undefined || this.size === 1) this.kept.set(key, [job]);
    else {
      known.unshift(job);
      if (known.length > LOOKED_AT) known.pop();
    }
    return job;
  }
}

const areAlike = (a: Alike, b: Alike): boolean =>
  a.userId === b.userId &&
  a.userClass === b.userClass &&
  a.benchmark === b.benchmark &&
  a.tasks === b.tasks &&
  a.cpusPerTask === b.cpusPerTask &&
  a.memoryMbPerTask === b.memoryMbPerTask &&
  isSame(a.resourcesPerTask, b.resourcesPerTask) &&
  isSame(a.devicesPerTask, b.devicesPerTask) &&
  isSame(a.tasksPerMachine, b.tasksPerMachine) &&
  a.exclusive === b.exclusive &&
  isSame(a.allAlike, b.allAlike) &&
  isSame(a.sameSwitch, b.sameSwitch) &&
  isSame(a.licenses, b.licenses) &&
  isSame(a.resources, b.resources) &&
  a.os === b.os &&
  a.architecture === b.architecture &&
  a.machineConstraint === b.machineConstraint &&
  a.image === b.image &&
  a.boost === b.boost &&
  a.runTimeLimitS === b.runTimeLimitS &&
  a.killGraceS === b.killGraceS &&
  a.application === b.application &&
  a.project === b.project &&
  isSame(a.preferences, b.preferences) &&
  a.schedulerId === b.schedulerId &&
  a.treeMoves === b.treeMoves &&
  a.reservationId === b.reservationId &&
  a.class === b.class &&
  a.preemptionClass === b.preemptionClass &&
  a.restartable === b.restartable;

/** Of what is made of JSON. */
const isSame = (a: object | null, b: object | null): boolean =>
  a === b || (a !== null && b !== null && JSON.stringify(a) === JSON.stringify(b));
