/** Any object by its global id, if the viewer may see it. */
import type { Viewer } from '../auth.js';
import { badInput } from '../errors.js';
import { type IdType, parseGlobalId } from '../ids.js';
import { guarded, handlesAll, maySeeJob, maySeeSite, maySeeUser } from './access.js';
import type { ServiceParts } from './parts.js';

export function createNodesService({ queries, directory, now }: ServiceParts) {
  const find: Readonly<Record<IdType, (viewer: Viewer, id: number) => Promise<object | null | undefined>>> = {
    async job(viewer, id) {
      const [job] = await queries.jobsByIds([id]);
      return job && maySeeJob(viewer, job) ? job : null;
    },
    site: async (viewer, id) => (maySeeSite(viewer, id) ? (await queries.sitesByIds([id]))[0] : null),
    scheduler: async (viewer, id) =>
      viewer.role === 'AGENT' ? null : (await queries.schedulersByIds([id]))[0],
    async machine(viewer, id) {
      const [machine] = await queries.machinesByIds([id]);
      return machine && maySeeSite(viewer, machine.siteId) ? machine : null;
    },
    async agent(viewer, id) {
      const [agent] = await queries.agentsByIds([id]);
      return agent && maySeeSite(viewer, agent.siteId) ? agent : null;
    },
    license: async (viewer, id) => (viewer.role === 'AGENT' ? null : (await queries.licensesByIds([id]))[0]),
    user: async (viewer, id) => (maySeeUser(viewer, id) ? (await queries.usersByIds([id]))[0] : null),
    policy: (viewer, version) => (viewer.role === 'AGENT' ? Promise.resolve(null) : queries.policy(version)),
    async decision(viewer, id) {
      const [decision] = await queries.decisionsByIds([id]);
      if (!decision) return null;
      const [job] = await queries.jobsByIds([decision.jobId]);
      return job && maySeeJob(viewer, job) ? decision : null;
    },
    async event(viewer, id) {
      const [event] = await queries.eventsByIds([id]);
      if (!event || viewer.role === 'AGENT') return null;
      const own =
        event.userId === viewer.userId || (event.kind === 'USER' && event.entityId === viewer.userId);
      const ofGrid = event.userId === null && event.kind !== 'USER';
      return handlesAll(viewer) || own || ofGrid ? event : null;
    },
    async apikey(viewer, id) {
      const [key] = await queries.apiKeysByIds([id]);
      return key && (key.userId === viewer.userId || viewer.role === 'ADMIN') ? key : null;
    },
    async session(viewer, id) {
      const [session] = await queries.sessionsByIds([id], now());
      return session && (session.userId === viewer.userId || viewer.role === 'ADMIN') ? session : null;
    },
    async dataset(viewer, id) {
      const [dataset] = viewer.role === 'AGENT' ? [] : await queries.datasetsByIds([id]);
      return dataset?.removedAt === null ? dataset : null;
    },
    async group(viewer, id) {
      const [group] = await queries.groupsByIds([id]);
      return group && maySeeJob(viewer, group) ? group : null;
    },
    async webhook(viewer, id) {
      const [webhook] = await directory.webhooksByIds([id]);
      return webhook && (webhook.userId === viewer.userId || viewer.role === 'ADMIN') ? webhook : null;
    },
    hold: async (viewer, id) => (viewer.role === 'AGENT' ? null : (await queries.holdsByIds([id]))[0]),
    simulation: async (viewer, id) => (handlesAll(viewer) ? (await queries.simulationsByIds([id]))[0] : null),
  };

  return guarded({
    /** With the name of its type, which tells GraphQL what it is. */
    async node(viewer: Viewer, id: string): Promise<object | null> {
      const parsed = parseGlobalId(id);
      if (!parsed) throw badInput('id', id, 'a global id such as job_17');
      const found = await find[parsed.type](viewer, parsed.id);
      return found ? { ...found, __typename: TYPE_NAMES[parsed.type] } : null;
    },
  });
}

const TYPE_NAMES: Readonly<Record<IdType, string>> = {
  job: 'Job',
  site: 'Site',
  scheduler: 'Scheduler',
  machine: 'Machine',
  agent: 'Agent',
  license: 'License',
  user: 'User',
  policy: 'Policy',
  decision: 'Decision',
  event: 'Event',
  apikey: 'ApiKey',
  session: 'Session',
  simulation: 'Simulation',
  dataset: 'Dataset',
  group: 'JobGroup',
  webhook: 'Webhook',
  hold: 'Hold',
};
