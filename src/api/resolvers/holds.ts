/** Maintenance windows and reservations. */
import { MAX } from '../../platform/limits.js';
import type { HeldMachines, HeldPools, OnConflict } from '../../store/holds.js';
import type { Recurrence as Rule } from '../../store/recurrence.js';
import type {
  HeldMachineResolvers,
  HoldConflictErrorResolvers,
  HoldResolvers,
  HoldTimeResolvers,
  MovedStartResolvers,
  RecurrenceResolvers,
  ReservePayloadResolvers,
} from '../generated/resolvers-types.js';
import { globalId, localId } from '../ids.js';
import type { HoldModel } from '../models.js';
import { amountsShown } from '../resources.js';
import { maySeeUser, visibleJob } from '../services/access.js';

/** As the directory has written them. */
const machinesOf = ({ machines }: Pick<HoldModel, 'machines'>): HeldMachines =>
  machines as object as HeldMachines;

const poolsOf = ({ pools }: Pick<HoldModel, 'pools'>): HeldPools => pools as object as HeldPools;

/** By kind: of one it may have some of the site's and some of the grid's. */
function byKind(pools: HeldPools): { kind: string; amount: number }[] {
  const sums = new Map<string, number>();
  for (const { kind, amount } of pools) sums.set(kind, (sums.get(kind) ?? 0) + amount);
  return amountsShown(Object.fromEntries(sums));
}

export const Hold: HoldResolvers = {
  id: ({ id }) => globalId('hold', id),
  site: ({ siteId }, _, { loaders }) => loaders.site(siteId),
  user: ({ userId }, _, { loaders, viewer }) => (maySeeUser(viewer, userId) ? loaders.user(userId) : null),
  onConflict: ({ onConflict }) => onConflict as OnConflict,
  wholeSite: ({ machines }) => machines === null,
  machines: (hold) => [...(machinesOf(hold) ?? [])],
  shared: (hold) => byKind(poolsOf(hold)),
  // As the directory has written it.
  recurrence: ({ recurrence }) => recurrence as object as Rule | null,
  releaseIdleS: ({ idleS }) => idleS,
  users: ({ userIds }, _, { loaders, viewer }) =>
    Promise.all(userIds.filter((id) => maySeeUser(viewer, id)).map((id) => loaders.user(id))),
  lacking: async ({ kind, endedAt, ...hold }, _, { loaders }) => {
    if (kind === 'MAINTENANCE' || endedAt !== null) return [];
    const held = machinesOf(hold) ?? [];
    const machines = await Promise.all(held.map(({ machineId }) => loaders.machine(machineId)));
    return machines.filter(
      ({ state, silent, problem, removedAt }) =>
        removedAt !== null || state !== 'UP' || silent || problem !== null,
    );
  },
  times: async ({ id, endedAt }, _, { loaders }) =>
    endedAt === null
      ? (await loaders.timesOfHold(id)).map(({ fromAt, toAt }) => ({ from: fromAt, to: toAt }))
      : [],
};

const dates = (instants: readonly number[]): Date[] => instants.map((at) => new Date(at * 1000));

export const Recurrence: RecurrenceResolvers = {
  from: ({ from }) => new Date(from * 1000),
  exceptDates: ({ except }) => dates(except),
  alsoDates: ({ also }) => dates(also),
};

export const HeldMachine: HeldMachineResolvers = {
  machine: ({ machineId }, _, { loaders }) => loaders.machine(machineId),
  whole: ({ amounts }) => amounts === null,
  cpus: ({ amounts }) => (amounts === null ? null : (amounts.cpus ?? 0)),
  memoryMb: ({ amounts }) => (amounts === null ? null : (amounts.memoryMb ?? 0)),
  resources: ({ amounts }) => {
    const { cpus: _, memoryMb: __, ...further } = amounts ?? {};
    return amountsShown(further);
  },
};

export const HoldTime: HoldTimeResolvers = {};

export const MovedStart: MovedStartResolvers = {
  job: ({ jobId }, _, context) => visibleJob(jobId, context),
};

export const HoldConflictError: HoldConflictErrorResolvers = {
  holds: async ({ holds }, _, { loaders }) => {
    const found = await Promise.all(holds.map((id) => loaders.hold(localId('hold', id, 'holds'))));
    return found.filter((hold) => hold !== null);
  },
  jobs: async ({ jobs }, _, context) => {
    const found = await Promise.all(jobs.map((id) => visibleJob(localId('job', id, 'jobs'), context)));
    return found.filter((job) => job !== null);
  },
};

export const ReservePayload: ReservePayloadResolvers = {
  machines: ({ machines }) => [...(machines ?? [])],
  shared: ({ pools }) => byKind(pools),
  holds: async ({ holds }, _, { loaders }) => {
    const found = await Promise.all(holds.map((id) => loaders.hold(id)));
    return found.filter((hold) => hold !== null);
  },
  runsInTheWay: ({ runs }) => runs.length,
  jobs: async ({ runs }, _, context) => {
    const found = await Promise.all(runs.slice(0, MAX.heldShown).map((id) => visibleJob(id, context)));
    return found.filter((job) => job !== null);
  },
  moved: ({ moved }) => [...moved],
};
