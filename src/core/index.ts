/** What the other rooms use of the core. */

export { checked, type Fault, placeOf, sayFault, shownValue } from './accepted.js';
export {
  Agenda,
  concernedBy,
  given,
  type Return,
  returnsFrom,
  rootHasJobs,
  type SiteLook,
  sameToOthers,
  stranded,
  type WorldChange,
  waiting,
} from './agenda.js';
export {
  type ClassTable,
  type ClassUser,
  classTableOf,
  type JobClass,
  type JobClasses,
  mayUse,
  NO_CLASS,
  preemptionUnder,
  ranksOf,
  SCAVENGER_RANK,
} from './classes.js';
export * from './conformance.js';
export { DataCatalog, UNKNOWN_LINK } from './data/catalog.js';
export {
  averagesOf,
  computationOf,
  JobHistory,
  type JobRatio,
  noRuns,
  type ObservedRun,
  resourceKinds,
  totalsWith,
} from './data/history.js';
export { MAX_WINDOW, Margins, marginOf } from './data/margins.js';
export { Shares } from './data/shares.js';
export { Traffic } from './data/traffic.js';
export { SchedulerTree } from './data/tree.js';
export type { DescribedField, DescribedTerm, FieldType, TermUnit } from './described.js';
export {
  applyMove,
  type DispatchContext,
  type DispatchPlan,
  dispatchCycle,
} from './dispatch/cycle.js';
export type { ChannelView, DispatchKind, SchedulerView, TreeView } from './dispatch/policy.js';
export type { QueuesPolicy } from './dispatch/queues/queues.js';
export {
  addDispatchKind,
  addedDispatchKinds,
  dispatchKindOf,
  dispatchKinds,
  kindsInBatches,
} from './dispatch/registry.js';
export {
  earliestAnywhere,
  type MovedStart,
  movedStarts,
  type PredictedStart,
} from './explain/ahead.js';
export { describeDispatch, describeStart } from './explain/describe.js';
export { externalSites, figuresOf, type SimulatedWaits, simulatedWaits } from './explain/external.js';
export {
  type ExplainContext,
  type Placing,
  placement,
  predictStart,
  ranking,
  type SiteRanking,
} from './explain/placement.js';
export { startBounds } from './explain/reserved.js';
export { type CongestionStatus, congestion, type UserStanding, userStandings } from './explain/standings.js';
export { type TransferStatus, transfers } from './explain/transfers.js';
export {
  type Waiting,
  waitingAtSite,
  waitingOnAgent,
  waitingOnHold,
  waitingOnOthers,
  whyWaiting,
} from './explain/waiting.js';
export {
  Grid,
  type GridListener,
  type JobPlace,
  type SiteEntry,
  SiteMemory,
} from './grid/grid.js';
export { namedAmounts, type PoolState, type RunState } from './grid/site-resources.js';
export { fieldsOf } from './lean-jobs.js';
export { type SiteContext, type SitePlan, siteCycle } from './local/cycle.js';
export { beginning } from './local/external/begin.js';
export { mayMakeRoom } from './local/make-room.js';
export { SitePasses } from './local/pass.js';
export type { FreeAtPromise, LocalKind, PromisesImage, RulesSchema } from './local/policy.js';
export {
  addedLocalKinds,
  addLocalKind,
  handOverLimit,
  imageOf,
  keepsPromises,
  localKinds,
  promisesFrom,
  recallsAfterS,
} from './local/registry.js';
export * from './model.js';
export { forecast } from './needs/forecast.js';
export { type NeedsChange, NeedsGraph, type NeedTerm } from './needs/graph.js';
export type { Clause, OnUnmet } from './needs/model.js';
export { workflowPlaces } from './needs/places.js';
export type { DataEdge } from './needs/ranks.js';
export * from './policy.js';
export { type DescribedKind, type PolicyKinds, policyKinds } from './policy-kinds.js';
export { draw, hash, RandomStream } from './random.js';
export * from './reasons.js';
export { recalls } from './recalls.js';
export { longestAt } from './resources/eligibility.js';
export { lateRuns } from './resources/late-runs.js';
export { allocationsOf } from './resources/placement.js';
export { ROOT, type Scheduler, schedulerOf } from './scheduler.js';
export * from './states.js';
export { digraph, topologicalOrder } from './structures/digraph.js';
export { observedFor, observedWaits, type WaitOfRun } from './terms/observed-waits.js';
