/** What policy modules of users' import as `switchyard/policy`: the seams for policies, and what the product's own are made of. */
import type { DispatchKind } from '../core/dispatch/policy.js';
import type { KindWords, LocalKind, RulesSchema } from '../core/local/policy.js';

export {
  type Choice,
  type DispatchKind,
  type DispatchLook,
  type DispatchPass,
  PlanBuilder,
} from '../core/dispatch/policy.js';
export type { Grid, SiteEntry } from '../core/grid/grid.js';
export type { JobQueue } from '../core/grid/queue.js';
export { type BackfillOrder, backfilling } from '../core/local/backfilling.js';
export { byArrival, byPriority, startHeads } from '../core/local/heads.js';
export type { HeadOutcome, SitePass } from '../core/local/pass.js';
export {
  type LocalKind,
  type LocalOrder,
  type LocalScheduler,
  PromisingMemory,
  type RulesSchema,
} from '../core/local/policy.js';
export { KeyedWalk, SortedWalk, type Walk } from '../core/local/walk.js';
export type * from '../core/model.js';
export { draw, RandomStream } from '../core/random.js';
export { ReasonCode } from '../core/reasons.js';
export type { Eligibility } from '../core/resources/eligibility.js';
export { forEachAtRoot } from '../core/terms/order.js';

/** A local policy of a module: how a site orders its queue and fills its machines. */
export const localKind = <S extends RulesSchema>(
  kind: Omit<LocalKind<S>, keyof KindWords<S>>,
): Omit<LocalKind<S>, keyof KindWords<S>> => kind;

/** A dispatch policy of a module: how the root chooses among sites. */
export const dispatchKind = <S extends RulesSchema>(
  kind: Omit<DispatchKind<S>, keyof KindWords<S>>,
): Omit<DispatchKind<S>, keyof KindWords<S>> => kind;
