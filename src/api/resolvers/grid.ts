/** Sites, machines and licenses. */
import { MAX } from '../../platform/limits.js';
import { amountsIn, devicesIn, labelsIn } from '../../store/rules.js';
import type { Measurement } from '../../store/store.js';
import { devicesShown } from '../devices.js';
import type {
  AgentResolvers,
  LicenseResolvers,
  MachineResolvers,
  RegisterAgentPayloadResolvers,
  ReservationResolvers,
  ResourceKindResolvers,
  SiteImageResolvers,
  SiteResolvers,
  SiteUpdateResolvers,
} from '../generated/resolvers-types.js';
import { globalId } from '../ids.js';
import { labelsShown } from '../labels.js';
import { amountsShown } from '../resources.js';
import { visibleJob } from '../services/access.js';
import { measuredWarning } from '../services/powers.js';
import { busyOf } from '../services/site-load.js';

export const Site: SiteResolvers = {
  id: (site) => globalId('site', site.id),
  agents: (site, _, { loaders }) => loaders.agentsOfSite(site.id),
  scheduler: (site, _, { loaders }) =>
    site.schedulerId === null ? null : loaders.scheduler(site.schedulerId),
  isPeer: async ({ id }, _, { loaders, services }) =>
    (await loaders.once('sites of peers', () => services.federation.siteIds())).has(id),
  machines: async (site, _, { loaders }) =>
    (await loaders.machinesOfSite(site.id)).slice(0, MAX.shownMachines),
  licenses: (site, _, { loaders }) => loaders.licensesOfSite(site.id),
  load: (site, _, { services }) => services.grid.loadOf(site),
  queuedJobs: async (site, _, { loaders }) => (await loaders.siteStatistics(site.id)).queued,
  metaQueuedJobs: async (site, _, { loaders }) => (await loaders.siteStatistics(site.id)).metaQueued,
  runningJobs: async (site, _, { loaders }) => (await loaders.siteStatistics(site.id)).running,
  cpus: async (site, _, { loaders }) => (await loaders.siteStatistics(site.id)).cpus,
  cpusUsed: async (site, _, { loaders }) => (await loaders.siteStatistics(site.id)).cpusUsed,
  reservation: (site, _, { loaders }) => loaders.reservation(site.id),
  promises: (site, { first }, { services }) => services.grid.promisesOf(site.id, first),
};

export const Reservation: ReservationResolvers = {
  job: ({ jobId }, _, context) => visibleJob(jobId, context),
  machines: ({ allocations }) => [...allocations],
};

export const Machine: MachineResolvers = {
  id: (machine) => globalId('machine', machine.id),
  site: (machine, _, { loaders }) => loaders.site(machine.siteId),
  licenses: (machine, _, { loaders }) => loaders.licenses(machine.licenseIds),
  busyCpus: async ({ id, siteId }, _, { loaders }) => busyOf(await loaders.site(siteId), id)?.cpus ?? null,
  busyMemoryMb: async ({ id, siteId }, _, { loaders }) =>
    busyOf(await loaders.site(siteId), id)?.memoryMb ?? null,
  labels: (machine) => labelsShown(labelsIn(machine)),
  devices: async ({ id, devices }, _, { loaders }) => {
    const own = devicesIn(devices);
    return devicesShown(own, own.length === 0 ? [] : await loaders.heldUnits(id));
  },
  resources: ({ resources, resourcesUsed }) =>
    amountsShown(amountsIn(resources)).map((one) => ({
      ...{ ...one, used: amountsIn(resourcesUsed)[one.kind] ?? 0 },
    })),
  agent: ({ agentId }, _, { loaders }) => (agentId === null ? null : loaders.agent(agentId)),
  measured: async ({ siteId, measured, measuredAt, devices }, _, { loaders }) => {
    if (!measured || measuredAt === null) return null;
    // JSON of the database, checked when it was reported.
    const own = measured as unknown as Measurement;
    return {
      ...own,
      devices: devicesShown(own.devices ?? [], []),
      measuredAt,
      warning: measuredWarning(own, devicesIn(devices), await loaders.powers(siteId)),
    };
  },
  heartbeatAt: async ({ agentId }, _, { loaders }) =>
    agentId === null ? null : (await loaders.agent(agentId)).seenAt,
};

export const ResourceKind: ResourceKindResolvers = {
  sites: async ({ siteIds }, _, { loaders }) =>
    (await Promise.all(siteIds.map((id) => loaders.site(id)))).sort((a, b) => (a.name < b.name ? -1 : 1)),
};

export const SiteImage: SiteImageResolvers = {
  site: ({ siteId }, _, { loaders }) => loaders.site(siteId),
};

export const Agent: AgentResolvers = {
  id: (agent) => globalId('agent', agent.id),
  site: (agent, _, { loaders }) => loaders.site(agent.siteId),
  machines: (agent, _, { loaders }) => loaders.machinesOfAgent(agent.id),
};

export const RegisterAgentPayload: RegisterAgentPayloadResolvers = {
  agent: ({ agentId }, _, { loaders }) => loaders.agent(agentId),
  machines: ({ machines }) => [...machines],
};

export const License: LicenseResolvers = {
  id: (license) => globalId('license', license.id),
  site: (license, _, { loaders }) => (license.siteId === null ? null : loaders.site(license.siteId)),
};

export const SiteUpdate: SiteUpdateResolvers = {
  resyncRequired: ({ event }) => event === null,
  site: ({ siteId }, _, { loaders }) => (siteId === null ? null : loaders.site(siteId)),
};
