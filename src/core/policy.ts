/**
 * The policy document: everything about scheduling that an administrator can set. Versions are kept outside; a cycle is
 * given a document and its version and cites the version in its decisions.
 *
 * A new dispatch or local policy is a new member of the unions below, with its implementation registered in
 * dispatch/cycle.ts or local/policies.ts.
 */
import { z } from 'zod';

/** Level-1 priorities lie in 0..MAX_PRIORITY, so that Load and Ordering stay small arrays. */
export const MAX_PRIORITY = 4096;
/** The widest window of margins that a policy may ask for. */
export const MAX_WINDOW = 1000;

const weight = z.number().min(0).max(1e6);

const localWeights = z.strictObject({
  aging: weight,
  licenses: weight,
  waitMinimization: weight,
  deadlineMin: weight,
  deadlineMax: weight,
  /** By how much a run time is overestimated when the deadline is judged. */
  deadlineK: z.number().min(0).max(1000),
});

const flexible = z
  .strictObject({ kind: z.literal('flexible'), weights: localWeights })
  .refine((local) => local.weights.deadlineMin <= local.weights.deadlineMax, {
    path: ['weights', 'deadlineMin'],
    error: 'must not be above deadlineMax',
  });
const easy = z.strictObject({
  kind: z.literal('easy'),
  /** In which order jobs behind the reservation are tried; by arrival unless said otherwise. */
  backfill: z.enum(['ARRIVAL', 'SHORTEST', 'LONGEST', 'NARROWEST', 'WIDEST']).optional(),
});
const fcfs = z.strictObject({ kind: z.literal('fcfs') });

/** Seconds after which a waiting job is overtaken no more; null: never, and large jobs may starve. */
const ageBoundS = z
  .number()
  .min(1)
  .max(86_400 * 365)
  .nullable()
  .default(86_400);
const sjf = z.strictObject({ kind: z.literal('sjf'), ageBoundS });
const firstFit = z.strictObject({ kind: z.literal('first-fit'), ageBoundS });

/** Conservative backfilling. `depth`: how many jobs of the queue have a promise, at most. */
const conservative = z.strictObject({
  kind: z.literal('conservative'),
  depth: z.int().min(1).max(100_000).default(1000),
});
/** Backfilling beside reservations for the first so many jobs that do not fit. */
const hybrid = z.strictObject({ kind: z.literal('hybrid'), reservations: z.int().min(1).max(1000) });

/** How a site orders its queue and fills its machines. */
export const localPolicySchema = z.discriminatedUnion('kind', [
  flexible,
  easy,
  fcfs,
  sjf,
  firstFit,
  conservative,
  hybrid,
]);
export type LocalPolicy = z.infer<typeof localPolicySchema>;
export type BackfillOrder = NonNullable<z.infer<typeof easy>['backfill']>;
export type LocalWeights = z.infer<typeof localWeights>;

const twoLevel = z
  .strictObject({
    kind: z.literal('two-level'),
    /** MS: sites order by the level-1 priority. LS: by their own. NONE: first come, first served at both levels. */
    mode: z.enum(['MS', 'LS', 'NONE']),
    /** The highest value of each term, `max` in the paper. */
    maxDelta: z.int().min(1).max(64),
    /** How many margins of earlier jobs make up their mean, `N` in the paper. */
    window: z.int().min(1).max(MAX_WINDOW),
    weights: z.strictObject({
      deadline: weight,
      licenses: weight,
      user: weight,
    }),
    /** null: GOLD = max, SILVER = floor(max/2), REGULAR = 0. */
    userClassDelta: z
      .strictObject({
        GOLD: z.int().min(0).max(64),
        SILVER: z.int().min(0).max(64),
        REGULAR: z.int().min(0).max(64),
      })
      .nullable(),
  })
  .superRefine((policy, context) => {
    const { GOLD = 0, SILVER = 0, REGULAR = 0 } = policy.userClassDelta ?? {};
    for (const [name, delta] of Object.entries({ GOLD, SILVER, REGULAR })) {
      if (delta > policy.maxDelta) {
        context.addIssue({
          code: 'custom',
          path: ['userClassDelta', name],
          message: `must not be above maxDelta (${policy.maxDelta})`,
          input: delta,
        });
      }
    }
    if (highestPriority(policy) > MAX_PRIORITY) {
      context.addIssue({
        code: 'custom',
        path: ['weights'],
        message: `maxDelta times the sum of the weights must not be above ${MAX_PRIORITY}`,
        input: policy.weights,
      });
    }
  });

const seconds = z
  .number()
  .min(1)
  .max(86_400 * 30);

/** Jobs that a site's queue holds at most, as far as the root is concerned. */
const queueLimit = z.int().min(1).max(1_000_000);

/**
 * The root holds jobs until a site has room (hierarchical-clusters.md). `queueLimit` 0: a job leaves only when it can
 * start. S-SJF and L-SJF: a queue for each number of tasks, SJF inside, served from the fewest tasks up or from the most down.
 */
const queues = z.strictObject({
  kind: z.literal('queues'),
  order: z.enum(['FCFS', 'SJF', 'FF', 'S-SJF', 'L-SJF']),
  queueLimit: z.int().min(0).max(1_000_000),
  ageBoundS,
});

/** JBMS (job-ratio.md): batches to the best-ranked sites while their queues have room. */
const jobRatio = z.strictObject({
  kind: z.literal('job-ratio'),
  queueLimit: queueLimit.default(100),
});

const share = z.number().min(0).max(1);
const costWeights = z.strictObject({ network: weight, computation: weight, data: weight });

/** DIANA (diana.md): cost, quota priorities in four queues, migration out of congested sites. */
const diana = z
  .strictObject({
    kind: z.literal('diana'),
    /** `(α, β, γ)` for each kind of job. */
    weights: z
      .strictObject({ computational: costWeights, dataIntensive: costWeights, both: costWeights })
      .default({
        computational: { network: 1, computation: 1, data: 1 },
        dataIntensive: { network: 1, computation: 1, data: 1 },
        both: { network: 1, computation: 1, data: 1 },
      }),
    /** A job whose share of computation is at least so much is computational, at most so much data intensive. */
    computationalFrom: share.default(0.75),
    dataIntensiveTo: share.default(0.25),
    /** Seconds that a fully busy site costs more than an idle one. */
    loadPenaltyS: z.number().min(0).max(86_400).default(60),
    /** Jobs in a site's local queue at most; what goes beyond stays in its meta-queue and can be exported. */
    queueLimit: queueLimit.default(10),
    /** A site is congested when `(arrival − service)/arrival`, rates over the window, is above the threshold. */
    congestionThreshold: z.number().min(-1e6).max(1).default(0.5),
    congestionWindowS: z.number().min(10).max(3600).default(600),
    /** A migrated job stays where it is for so long. */
    holdOffS: seconds.default(300),
  })
  .refine((policy) => policy.dataIntensiveTo < policy.computationalFrom, {
    path: ['dataIntensiveTo'],
    error: 'must be below computationalFrom',
  });

/** Baselines: each eligible site in turn, a drawn one, the one with the most power. */
const roundRobin = z.strictObject({ kind: z.literal('round-robin') });
const random = z.strictObject({ kind: z.literal('random') });
const mostFlops = z.strictObject({ kind: z.literal('most-flops') });

/** How a scheduler with sites below it chooses among them. */
export const dispatchPolicySchema = z.discriminatedUnion('kind', [
  twoLevel,
  queues,
  jobRatio,
  diana,
  roundRobin,
  random,
  mostFlops,
]);
type OfKind<K extends Policy['dispatch']['kind']> = Extract<Policy['dispatch'], { kind: K }>;
export type TwoLevelPolicy = OfKind<'two-level'>;
export type QueuesPolicy = OfKind<'queues'>;
export type JobRatioPolicy = OfKind<'job-ratio'>;
export type DianaPolicy = OfKind<'diana'>;

export const policySchema = z.strictObject({
  dispatch: dispatchPolicySchema,
  local: localPolicySchema,
  /** Seed of every draw; a draw depends on it and on the job only. */
  seed: z.int().min(0).max(0xffffffff),
  /** Power of the machine that run times in the history of job ratios are scaled to. */
  referencePower: z.number().positive().max(1e9).default(1),
  timers: z.strictObject({
    /** Every cycle runs at least this often, in case a wake-up was lost. */
    cycleS: seconds,
    /** An agent not heard of for so long makes its site's state doubtful. */
    agentSilentS: seconds,
    /** After so long without a sign of its machine a run has ended as LOST. */
    lostAfterS: seconds,
    onDeadlinePassed: z.enum(['RECORD', 'CANCEL']),
  }),
  /** Runs that a restartable job may have in all. */
  maxAttempts: z.int().min(1).max(100),
});
export type Policy = z.infer<typeof policySchema>;

/**
 * By what a flexible site orders its queue under a dispatch policy: the root's priorities where it gives any (MS), else
 * the site's own.
 */
export function orderMode({ dispatch }: Pick<Policy, 'dispatch'>): TwoLevelPolicy['mode'] {
  if (dispatch.kind === 'two-level') return dispatch.mode;
  return dispatch.kind === 'diana' ? 'MS' : 'LS';
}

/**
 * How many jobs wait at a site at most before the root, or the site's meta-queue, holds back what comes next; null under
 * policies that send every job on at once.
 */
export const queueLimitOf = ({ dispatch }: Pick<Policy, 'dispatch'>): number | null =>
  'queueLimit' in dispatch ? dispatch.queueLimit : null;

/** The highest level-1 priority that the weights can give, boost apart. */
export function highestPriority(policy: Pick<TwoLevelPolicy, 'weights' | 'maxDelta'>): number {
  const { deadline, licenses, user } = policy.weights;
  return Math.floor(deadline * policy.maxDelta + licenses * policy.maxDelta + user * policy.maxDelta);
}

export const DEFAULT_POLICY = {
  dispatch: {
    kind: 'two-level',
    mode: 'MS',
    maxDelta: 10,
    window: 100,
    weights: { deadline: 1, licenses: 1, user: 1 },
    userClassDelta: null,
  },
  local: {
    kind: 'flexible',
    weights: {
      aging: 0.01,
      licenses: 1,
      waitMinimization: 1,
      deadlineMin: 0.1,
      deadlineMax: 5,
      deadlineK: 1.5,
    },
  },
  seed: 1,
  referencePower: 1,
  timers: {
    cycleS: 10,
    agentSilentS: 60,
    lostAfterS: 300,
    onDeadlinePassed: 'RECORD',
  },
  maxAttempts: 3,
} as const satisfies Policy;

/** A policy document that is not acceptable; the message has a line `path: value is not accepted; accepted: …` for each fault. */
export class PolicyError extends Error {
  override readonly name = 'PolicyError';
  constructor(
    readonly faults: readonly {
      path: string;
      value: unknown;
      accepted: string;
    }[],
  ) {
    super(
      faults
        .map((f) => `${f.path}: ${JSON.stringify(f.value)} is not accepted; accepted: ${f.accepted}`)
        .join('\n'),
    );
  }
}

/** Checks a policy document. Throws {@link PolicyError} naming each path, its value and what is accepted. */
export function parsePolicy(document: unknown): Policy {
  return parse(policySchema, document);
}

/** Checks a local policy on its own, as a site may have. Throws {@link PolicyError}. */
export function parseLocalPolicy(document: unknown): LocalPolicy {
  return parse(localPolicySchema, document);
}

function parse<T>(schema: z.ZodType<T>, document: unknown): T {
  const result = schema.safeParse(document);
  if (result.success) return result.data;
  throw new PolicyError(
    result.error.issues.map((issue) => ({
      path: issue.path.join('.') || '(document)',
      value: valueAt(document, issue.path),
      accepted: issue.message,
    })),
  );
}

function valueAt(document: unknown, path: readonly PropertyKey[]): unknown {
  let value = document;
  for (const key of path) value = (value as Record<PropertyKey, unknown> | null | undefined)?.[key];
  return value ?? null;
}
