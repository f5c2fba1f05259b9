/** What the other rooms use of the core. */
export * from './conformance.js';
export { DataCatalog, UNKNOWN_LINK } from './data/catalog.js';
export { averagesWith, JobHistory, type JobRatio, type ObservedRun, resourceKinds } from './data/history.js';
export {
  type DispatchContext,
  type DispatchPlan,
  dispatchCycle,
  rootHasMoreFor,
} from './dispatch/cycle.js';
export { describeDispatch, describeStart } from './explain/describe.js';
export { type PeerStatus, peers, type UserStanding, userStandings } from './explain/meta.js';
export {
  type ExplainContext,
  type Placing,
  type PredictedStart,
  placement,
  predictStart,
  ranking,
  type SiteRanking,
} from './explain/placement.js';
export { type Waiting, waitingOnHold, whyWaiting } from './explain/waiting.js';
export {
  effectivePriority,
  Grid,
  type JobPlace,
  type SiteEntry,
} from './grid.js';
export {
  imageOf,
  keepsPromises,
  type PromisesImage,
  promisesFrom,
} from './local/conservative.js';
export { type SiteContext, type SitePlan, siteCycle } from './local/cycle.js';
export { type SharedLicenseHolders, sameToOthers, sitesToWake } from './local/shared-licenses.js';
export * from './model.js';
export * from './policy.js';
export { marginOf, msPriority } from './priority/ms-priority.js';
export { draw, hash, RandomStream } from './random.js';
export * from './reasons.js';
export * from './states.js';
