/**
 * Level-1 priority of a job (Pasquali et al., section 4, "Meta-Scheduler"; the exact rules and decisions: two-level.md):
 * `P = floor(W_D·Δ_deadline + W_L·Δ_licenses + W_U·Δ_user)`, each Δ an integer in 0..maxDelta.
 *
 * The paper lets the value of a user depend on "user importance, kind of resources/services requested, kind of project", and gives no rule
 * for the latter two. Here they are terms of their own, `W_P·Δ_project + W_S·Δ_service`, so that a decision tells what each has added;
 * what an administrator has not listed has 0, and the sum is the paper's. The service that a job requests is its application.
 */
import { marginOf } from '../../data/margins.js';
import { type Job, type MsTerms, poolsAskedBy, type UserClass } from '../../model.js';

/** What an administrator sets of it. */
export interface PriorityRules {
  /** The highest value of each term, `max` in the paper. */
  maxDelta: number;
  weights: MsTerms;
  /** null: GOLD = max, SILVER = floor(max/2), REGULAR = 0. */
  userClassDelta: Record<UserClass, number> | null;
  /** By name; what is not listed has 0. */
  projectDelta: Readonly<Record<string, number>>;
  serviceDelta: Readonly<Record<string, number>>;
}

export interface MsPriority extends MsTerms {
  priority: number;
}

type MsJob = Pick<
  Job,
  | 'submittedAt'
  | 'estimateS'
  | 'deadline'
  | 'userClass'
  | 'licenses'
  | 'resources'
  | 'project'
  | 'application'
>;

/**
 * The terms and their weighted sum, without the operator's boost.
 * `meanMargin` is the mean margin of the window (null: the window is empty, the job's own margin stands for it);
 * `licenseKinds` the number of kinds of license that exist.
 */
export function msPriority(
  job: MsJob,
  meanMargin: number | null,
  licenseKinds: number,
  policy: PriorityRules,
): MsPriority {
  const max = policy.maxDelta;
  const margin = marginOf(job);
  const deadline = margin === null ? 0 : deadlineDelta(margin, meanMargin ?? margin, job.estimateS, max);
  const licenses = licensesDelta(poolsAskedBy(job).length, licenseKinds, max);
  const user = userDelta(job.userClass, policy);
  const project = job.project === null ? 0 : listed(policy.projectDelta, job.project);
  const terms = { deadline, licenses, user, project, service: listed(policy.serviceDelta, job.application) };
  return { ...terms, priority: weighted(policy.weights, terms) };
}

const listed = (values: Readonly<Record<string, number>>, name: string): number =>
  // Names are users': `constructor` is one that nobody has listed.
  Object.hasOwn(values, name) ? (values[name] as number) : 0;

const weighted = (weights: MsTerms, of: MsTerms): number =>
  Math.floor(
    weights.deadline * of.deadline +
      weights.licenses * of.licenses +
      weights.user * of.user +
      weights.project * of.project +
      weights.service * of.service,
  );

/** The mean of the margins, oldest first; null for none. */
export function meanOf(margins: readonly number[]): number | null {
  if (margins.length === 0) return null;
  let sum = 0;
  for (const margin of margins) sum += margin;
  return sum / margins.length;
}

function deadlineDelta(margin: number, mean: number, estimate: number, max: number): number {
  const delta = proximity(margin, mean, max);
  // The refinement by the job's own length: a large margin is small for a very long job.
  const ratio = margin / estimate;
  if (ratio >= 1) return Math.max(0, delta - Math.floor(ratio));
  const step = ratio > 0 ? Math.min(max - 1, Math.floor(-Math.log2(ratio))) : max - 1;
  return Math.min(max, delta + step);
}

/** In which of the `max` intervals of [0, 2·mean], each twice as wide as the one before, the margin lies. */
function proximity(margin: number, mean: number, max: number): number {
  if (margin < 0) return max;
  if (mean <= 0) return margin <= 0 ? max : 0;
  if (margin >= 2 * mean) return 0;
  // The widths are unit·2^k for k = 1..max and fill [0, 2·mean]; their sum is unit·(2^(max+1) − 2).
  const unit = (2 * mean) / (2 ** (max + 1) - 2);
  let end = 0;
  for (let k = 0; k < max; k++) {
    end += unit * 2 ** (k + 1);
    if (margin < end) return max - k;
  }
  return 0;
}

function licensesDelta(asked: number, kinds: number, max: number): number {
  if (asked === 0 || kinds === 0) return 0;
  return Math.min(max, Math.ceil((asked * max) / kinds));
}

function userDelta(userClass: UserClass, policy: Pick<PriorityRules, 'maxDelta' | 'userClassDelta'>): number {
  if (policy.userClassDelta !== null) return policy.userClassDelta[userClass];
  return {
    GOLD: policy.maxDelta,
    SILVER: Math.floor(policy.maxDelta / 2),
    REGULAR: 0,
  }[userClass];
}

/** The highest priority that the rules can give, boost apart. */
export function highestPriority({ weights, maxDelta, projectDelta, serviceDelta }: PriorityRules): number {
  const highest = (values: Readonly<Record<string, number>>) => Math.max(0, ...Object.values(values));
  const paper = { deadline: maxDelta, licenses: maxDelta, user: maxDelta };
  return weighted(weights, { ...paper, project: highest(projectDelta), service: highest(serviceDelta) });
}
