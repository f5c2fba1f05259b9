/**
 * The policy document: everything about scheduling that an administrator can set. Versions are kept outside; a cycle is
 * given a document and its version and cites the version in its decisions.
 *
 * What a dispatch or local policy has to be told it says itself, in its folder (dispatch/, local/).
 */
import { z } from 'zod';
import { checked } from './accepted.js';
import { classesSchema, DEFAULT_PREEMPTION, EXEMPT_MAX_S, GRACE_MAX_S, seconds as upTo } from './classes.js';
import {
  anyDispatchPolicySchema,
  DEFAULT_DISPATCH,
  type DispatchPolicy,
  dispatchKindOf,
  dispatchPolicySchema,
} from './dispatch/registry.js';
import type { LocalScheduler } from './local/policy.js';
import {
  anyLocalPolicySchema,
  DEFAULT_LOCAL,
  type LocalPolicy,
  localKindOf,
  localPolicySchema,
} from './local/registry.js';
import { PREEMPTION_CLASS_MAX, type Site } from './model.js';

export { type DispatchPolicy, dispatchPolicySchema, type LocalPolicy, localPolicySchema };

const seconds = (title: string, description: string) =>
  z
    .number()
    .min(1)
    .max(86_400 * 30)
    .meta({ title, description, unit: 's' });

export const policySchema = z.strictObject({
  dispatch: dispatchPolicySchema,
  local: localPolicySchema,
  /** Seed of every draw; a draw depends on it and on the job only. */
  seed: z.int().min(0).max(0xffffffff).meta({
    title: 'Seed',
    description:
      'Seed of every random choice among equals: the same snapshot, seed and policy give the same plan.',
  }),
  /** Power of the machine that run times in the history of job ratios are scaled to. */
  referencePower: z.number().positive().max(1e9).default(1).meta({
    title: 'Reference power',
    description: 'Run times in the history of job ratios are scaled to a machine of this power.',
  }),
  timers: z.strictObject({
    cycleS: seconds(
      'Run at least every',
      'Schedulers with waiting jobs run at least this often, in case a wake-up was lost.',
    ),
    agentSilentS: seconds(
      'A machine is silent after',
      'A machine whose agent has been silent for this long gets no new jobs.',
    ),
    lostAfterS: seconds(
      'Its runs are lost after',
      'When the agent of a machine has been silent for this long, its runs are lost.',
    ),
    onDeadlinePassed: z.enum(['RECORD', 'CANCEL']).meta({
      title: 'A deadline that passes',
      description: 'RECORD notes it, CANCEL ends the job.',
    }),
  }),
  workflows: z.enum(['ARRIVAL', 'RANK']).optional().meta({
    title: 'Workflows',
    description:
      'ARRIVAL: jobs of a workflow are treated like others. RANK: in every queue they are ordered by when the workflow was submitted, and among themselves by the longest path to the end of the workflow. If a policy has its own order, this applies to jobs that are equal in it.',
  }),
  preemption: z
    .strictObject({
      graceS: upTo(GRACE_MAX_S).default(DEFAULT_PREEMPTION.graceS).meta({
        title: 'Grace',
        description: 'Time from SIGTERM to SIGKILL when a run is stopped for another job.',
        unit: 's',
      }),
      exemptS: upTo(EXEMPT_MAX_S).default(DEFAULT_PREEMPTION.exemptS).meta({
        title: 'Young runs stay',
        description: 'A run is not stopped for another job before it has run for this long.',
        unit: 's',
      }),
      cancelBelow: z.int().min(0).max(PREEMPTION_CLASS_MAX).default(DEFAULT_PREEMPTION.cancelBelow).meta({
        title: 'Cancel below rank',
        description: 'Jobs of ranks below this one end when they are preempted; others are queued again.',
      }),
    })
    .optional()
    .meta({
      title: 'Preemption',
      description:
        'Runs of lower ranks may be stopped for jobs of a rank above 0; if omitted, none are stopped, unless there are classes of jobs.',
    }),
  classes: classesSchema.optional().meta({
    title: 'Classes of jobs',
    description:
      'Classes that jobs may name: runs of lower ranks may be stopped for jobs of higher ranks. What a class leaves out, `preemption` says.',
  }),
  maxAttempts: z.int().min(1).max(100).meta({
    title: 'Runs of a job',
    description: 'A restartable job whose run was lost is started again until it has had this many runs.',
    unit: 'runs',
  }),
});
export type Policy = z.infer<typeof policySchema>;

/** The local policy of a site: its own, or the document's. */
export const localPolicyOf = ({ localPolicy }: Site, { local }: Pick<Policy, 'local'>): LocalPolicy =>
  (localPolicy as LocalPolicy | null) ?? local;

/** The scheduler of a site under a policy document. */
export function localSchedulerOf(site: Site, policy: Policy): LocalScheduler {
  if (site.localPolicy !== null) return makeScheduler(localPolicyOf(site, policy), policy);
  if (lastPolicy === policy) return lastScheduler as LocalScheduler;
  let scheduler = schedulers.get(policy);
  if (scheduler === undefined) {
    scheduler = makeScheduler(policy.local, policy);
    schedulers.set(policy, scheduler);
  }
  lastPolicy = policy;
  lastScheduler = scheduler;
  return scheduler;
}

/** Of documents in use: made once, for cycles are many. */
const schedulers = new WeakMap<Policy, LocalScheduler>();
/** The one that was asked for last: mostly it is asked for again. */
let lastPolicy: Policy | null = null;
let lastScheduler: LocalScheduler | null = null;

const makeScheduler = (local: LocalPolicy, { dispatch }: Policy): LocalScheduler =>
  localKindOf(local).scheduler(local, dispatchKindOf(dispatch).localOrder(dispatch));

/**
 * How many jobs wait at a site at most before the root, or the site's meta-queue, holds back what comes next; null under
 * policies that send every job on at once.
 */
export const queueLimitOf = ({ dispatch }: Pick<Policy, 'dispatch'>): number | null =>
  dispatchKindOf(dispatch).queueLimit?.(dispatch) ?? null;

export const DEFAULT_POLICY = {
  dispatch: DEFAULT_DISPATCH,
  local: DEFAULT_LOCAL,
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
      /** Undefined: it is missing. */
      value: unknown;
      accepted: string;
    }[],
  ) {
    super(
      faults
        .map(({ path, value, accepted }) =>
          value === undefined
            ? `${path} is missing; accepted: ${accepted}`
            : `${path}: ${JSON.stringify(value)} is not accepted; accepted: ${accepted}`,
        )
        .join('\n'),
    );
  }
}

/** Checks a policy document. Throws {@link PolicyError} naming each path, its value and what is accepted. */
export function parsePolicy(document: unknown): Policy {
  return parse(
    policySchema.extend({ dispatch: anyDispatchPolicySchema(), local: anyLocalPolicySchema() }),
    upToDate(document),
  );
}

/** Checks a local policy on its own, as a site may have. Throws {@link PolicyError}. */
export function parseLocalPolicy(document: unknown): LocalPolicy {
  return parse(anyLocalPolicySchema(), withoutWorkflows(document));
}

/** `workflows` stood in the dispatch and the local policy for one release: documents with it there are stored, and in files. */
function upToDate(document: unknown): unknown {
  if (!isObject(document)) return document;
  const parts = ['dispatch', 'local'].filter(
    (part) => isObject(document[part]) && 'workflows' in document[part],
  );
  if (parts.length === 0) return document;
  const said = parts.map((part) => (document[part] as Fields).workflows);
  const without = Object.fromEntries(parts.map((part) => [part, withoutWorkflows(document[part])]));
  return { workflows: said.includes('RANK') ? 'RANK' : said[0], ...document, ...without };
}

type Fields = Readonly<Record<string, unknown>>;
const isObject = (value: unknown): value is Fields => typeof value === 'object' && value !== null;

function withoutWorkflows(document: unknown): unknown {
  if (!isObject(document) || !('workflows' in document)) return document;
  const { workflows: _, ...rest } = document;
  return rest;
}

const parse = <S extends z.ZodType>(schema: S, document: unknown): z.output<S> =>
  checked(
    schema,
    document,
    (faults) =>
      new PolicyError(
        faults.map(({ path, value, accepted, of }) => ({
          path: path.join('.') || '(document)',
          value,
          accepted:
            of === 'UNKNOWN' ? `nothing, because the field is unknown; known are ${accepted}` : accepted,
        })),
      ),
  );
