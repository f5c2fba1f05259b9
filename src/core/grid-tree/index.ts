/** The grid tree's protocol (grid-tree.md), as its carriers use it. */
export { Link, type Node, PACKET_MAX, type Packet, Pump } from './carriers.js';
export {
  costS,
  type Forward,
  isCheaper,
  isForwarded,
  isGranted,
  isTaken,
  mayGo,
  type Need,
  type QueueLoad,
} from './hybrid.js';
export { LEAF_PORT, Leaf } from './leaf.js';
export {
  distanceKm,
  kindKey,
  type MachineKind,
  preference,
  request,
  requirement,
  tasksOn,
} from './machines.js';
export * from './messages.js';
export { Owner, type Wish } from './owner.js';
export { DEFAULT_ROOT_RULES, Root, type RootRules } from './root.js';
export { Scheduler } from './scheduler.js';
