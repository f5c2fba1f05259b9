/** Maintenance windows and reservations. */
import { MAX } from '../../platform/limits.js';
import type { HeldMachines } from '../../store/holds.js';
import type {
  HeldMachineResolvers,
  HoldResolvers,
  HoldTimeResolvers,
  MovedStartResolvers,
  ReservePayloadResolvers,
} from '../generated/resolvers-types.js';
import { globalId } from '../ids.js';
import type { HoldModel } from '../models.js';
import { amountsShown } from '../resources.js';
import { maySeeUser, visibleJob } from '../services/access.js';

/** As the directory has written them. */
const machinesOf = ({ machines }: Pick<HoldModel, 'machines'>): HeldMachines =>
  machines as object as HeldMachines;

export const Hold: HoldResolvers = {
  id: ({ id }) => globalId('hold', id),
  site: ({ siteId }, _, { loaders }) => loaders.site(siteId),
  user: ({ userId }, _, { loaders, viewer }) => (maySeeUser(viewer, userId) ? loaders.user(userId) : null),
  onConflict: ({ onConflict }) => onConflict as 'REFUSE' | 'AFTER_JOBS',
  wholeSite: ({ machines }) => machines === null,
  machines: (hold) => [...(machinesOf(hold) ?? [])],
  times: async ({ id, endedAt }, _, { loaders }) =>
    endedAt === null
      ? (await loaders.timesOfHold(id)).map(({ fromAt, toAt }) => ({ from: fromAt, to: toAt }))
      : [],
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

export const ReservePayload: ReservePayloadResolvers = {
  machines: ({ machines }) => [...(machines ?? [])],
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
