/**
 * Classes of jobs, as a policy declares them: each with its rank, who may use it, and what becomes of its runs when they are stopped for jobs of
 * a higher rank (jobs.md, "Preemption"). A job names a class, or none. Decision: the rank of a named class takes the place of the job's integer
 * (`preemptionClass`), so that it follows the policy; what a class does not say, and what goes for jobs without one, `policy.preemption` says.
 *
 * A scavenger class uses what is idle. Its rank is below all others, its jobs are behind all others in every queue, and any run of it may be
 * stopped at any time.
 */
import { z } from 'zod';
import { type Job, PREEMPTION_CLASS_MAX, plainJob, type UserClass } from './model.js';

/** The rank of scavengers; others have 0 to PREEMPTION_CLASS_MAX. */
export const SCAVENGER_RANK = -1;
/** What jobs without a class are called where something has to be said. */
export const NO_CLASS = 'normal';
const CLASSES_MAX = 100;
const USERS_MAX = 1000;
/** What Slurm accepts of a QOS, what no command takes for an option, and no number: these were classes in the release before. */
const NAME = /^[A-Za-z_][A-Za-z0-9_.-]{0,63}$/;

export const seconds = (most: number) => z.number().min(0).max(most);
/** From SIGTERM to SIGKILL, at most. */
export const GRACE_MAX_S = 86_400;
export const EXEMPT_MAX_S = 31_536_000;
export const DEFAULT_PREEMPTION = { graceS: 30, exemptS: 600, cancelBelow: 0 } as const;

const classSchema = z
  .strictObject({
    rank: z.int().min(0).max(PREEMPTION_CLASS_MAX).default(0).meta({
      title: 'Rank',
      description: 'Runs of lower ranks may be stopped for its jobs. Jobs without a class have rank 0.',
    }),
    scavenger: z.boolean().default(false).meta({
      title: 'Scavenger',
      description:
        'Its jobs use what is idle: they are behind all others in every queue, and their runs may be stopped for any other job at any time. Its rank and `exemptS` must then be 0 or left out.',
    }),
    users: z.array(z.string().min(1).max(200)).max(USERS_MAX).optional().meta({
      title: 'Users',
      description:
        'Names of users who may use it, besides `userClasses`; if both are omitted, everybody may. Operators and administrators always may.',
    }),
    userClasses: z
      .array(z.enum(['GOLD', 'SILVER', 'REGULAR'] satisfies UserClass[]))
      .max(3)
      .optional()
      .meta({ title: 'Classes of users', description: 'Classes of users who may use it, besides `users`.' }),
    exemptS: seconds(EXEMPT_MAX_S).optional().meta({
      title: 'Young runs stay',
      description:
        'Its runs are not stopped for other jobs before they have run for this long; if omitted, `preemption.exemptS`, and 0 for scavengers.',
      unit: 's',
    }),
    graceS: seconds(GRACE_MAX_S).optional().meta({
      title: 'Grace',
      description:
        'Time from SIGTERM to SIGKILL when one of its runs is stopped for another job; if omitted, `preemption.graceS`.',
      unit: 's',
    }),
    onPreemption: z.enum(['REQUEUE', 'CANCEL']).optional().meta({
      title: 'When stopped',
      description:
        'REQUEUE: its jobs are queued again when their runs are stopped for others. CANCEL: they end. If omitted, as `preemption.cancelBelow` says.',
    }),
    charged: z.boolean().default(true).meta({
      title: 'Charged',
      description: 'Whether the work of its jobs counts as charged in the usage of their users.',
    }),
  })
  .superRefine(({ scavenger, rank, exemptS = 0 }, { addIssue }) => {
    if (!scavenger) return;
    const fault = (path: string, input: number) =>
      addIssue({ code: 'custom', path: [path], input, message: '0 in a scavenger class' });
    if (rank !== 0) fault('rank', rank);
    if (exemptS !== 0) fault('exemptS', exemptS);
  });
export type JobClass = z.infer<typeof classSchema>;

export const classesSchema = z
  .record(
    z.string().refine((name) => NAME.test(name) && name !== NO_CLASS, {
      message: `letters, digits and _.-, at most 64, beginning with a letter or _; not ${NO_CLASS}, which jobs without a class are called`,
    }),
    classSchema,
  )
  .refine((classes) => Object.keys(classes).length <= CLASSES_MAX, {
    message: `at most ${CLASSES_MAX} classes`,
  });
export type JobClasses = z.infer<typeof classesSchema>;

/** The parts of a policy that say what classes of jobs are. */
export interface ClassPolicy {
  readonly classes?: JobClasses | undefined;
  readonly preemption?: { graceS: number; exemptS: number; cancelBelow: number } | undefined;
}

/** What goes for the jobs of a class. */
export interface ClassRules {
  /** SCAVENGER_RANK, or 0 to PREEMPTION_CLASS_MAX. */
  readonly rank: number;
  /** Its runs are not stopped before they have run for so long. */
  readonly exemptS: number;
  /** From SIGTERM to SIGKILL when they are. */
  readonly graceS: number;
  /** Its jobs are queued again then. */
  readonly requeue: boolean;
  readonly charged: boolean;
}

/** What a job says of its class. */
export type Classed = Pick<Job, 'class' | 'preemptionClass'>;

/** What a policy's classes come to. */
export class ClassTable {
  /** Of jobs without a class, by their integer. */
  private readonly plain: readonly ClassRules[];
  private readonly named = new Map<string, ClassRules>();
  /** The shortest time for which any run is left alone. */
  readonly leastExemptS: number;

  constructor({ classes = {}, preemption = DEFAULT_PREEMPTION }: ClassPolicy) {
    const { graceS, exemptS, cancelBelow } = preemption;
    this.plain = Array.from({ length: PREEMPTION_CLASS_MAX + 1 }, (_, rank) => ({
      ...{ rank, exemptS, graceS, requeue: rank >= cancelBelow, charged: true },
    }));
    for (const [name, one] of Object.entries(classes)) {
      const rank = rankOf(one);
      this.named.set(name, {
        rank,
        exemptS: one.exemptS ?? (one.scavenger ? 0 : exemptS),
        graceS: one.graceS ?? graceS,
        requeue:
          one.onPreemption === undefined ? Math.max(0, rank) >= cancelBelow : one.onPreemption === 'REQUEUE',
        charged: one.charged,
      });
    }
    this.leastExemptS = Math.min(exemptS, ...[...this.named.values()].map((one) => one.exemptS));
  }

  /** Of a class that the policy has no more: as of none. */
  of({ class: name, preemptionClass }: Classed): ClassRules {
    const known = name === null ? undefined : this.named.get(name);
    return known ?? (this.plain[preemptionClass] as ClassRules);
  }
}

const rankOf = ({ rank, scavenger }: JobClass): number => (scavenger ? SCAVENGER_RANK : rank);

/** Of policies in use: made once, for cycles are many. */
const tables = new WeakMap<ClassPolicy, ClassTable>();

export function classTableOf(policy: ClassPolicy): ClassTable {
  let table = tables.get(policy);
  if (table === undefined) {
    table = new ClassTable(policy);
    tables.set(policy, table);
  }
  return table;
}

/** What goes when runs are stopped for others; null: under this policy none are. */
export const preemptionUnder = (policy: ClassPolicy): ClassTable | null =>
  policy.preemption === undefined && policy.classes === undefined ? null : classTableOf(policy);

/** Who uses it: a user's name, class, and whether an operator or administrator. */
export interface ClassUser {
  readonly name: string;
  readonly userClass: UserClass;
  readonly isOperator: boolean;
}

export const mayUse = (
  { users, userClasses }: JobClass,
  { name, userClass, isOperator }: ClassUser,
): boolean =>
  isOperator ||
  (users === undefined && userClasses === undefined) ||
  users?.includes(name) === true ||
  userClasses?.includes(userClass) === true;

/** Ranks by the names of classes: all that queues have to know. */
export type ClassRanks = Readonly<Record<string, number>>;
export const NO_RANKS: ClassRanks = Object.freeze({});
export const ranksOf = ({ classes }: ClassPolicy): ClassRanks =>
  classes === undefined
    ? NO_RANKS
    : Object.fromEntries(Object.entries(classes).map(([name, one]) => [name, rankOf(one)]));

/** More than any boost that an operator may give. */
const YIELDS = 1e9;

/** Whether a job with this boost is a scavenger's: behind all others in every order. */
export const yieldsBy = (boost: number): boolean => boost < -YIELDS / 2;

/**
 * The job as queues have it: a scavenger's boost puts it behind all others, under every policy, since all of them go by boosts. What is there
 * already stays as it is.
 */
export function inItsPlace(job: Job, ranks: ClassRanks): Job {
  if (job.class === null || (ranks[job.class] ?? 0) >= 0 || yieldsBy(job.boost)) return job;
  const behind = plainJob(job);
  behind.boost = job.boost - YIELDS;
  return behind;
}
