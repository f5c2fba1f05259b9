/** Events, and the updates that carry them. */
import type { EventResolvers, JobUpdateResolvers } from '../generated/resolvers-types.js';
import type { EventKind } from '../generated/types.js';
import { globalId, type IdType } from '../ids.js';

/** Of an event about data: without a site it is about a dataset, with one about the link that ends there and begins at the object. */
const TYPES: Readonly<Record<EventKind, IdType>> = {
  JOB_STATE: 'job',
  JOB_CHANGED: 'job',
  SITE: 'site',
  MACHINE: 'machine',
  AGENT: 'agent',
  LICENSE: 'license',
  SCHEDULER: 'scheduler',
  USER: 'user',
  POLICY: 'policy',
  SIMULATION: 'simulation',
  DATA: 'dataset',
  HOLD: 'hold',
};

export const Event: EventResolvers = {
  id: (event) => globalId('event', event.id),
  cursor: (event) => String(event.id),
  objectId: (event) =>
    globalId(event.kind === 'DATA' && event.siteId !== null ? 'site' : TYPES[event.kind], event.entityId),
  sequence: (event) => event.seq,
  site: (event, _, { loaders }) => (event.siteId === null ? null : loaders.site(event.siteId)),
};

export const JobUpdate: JobUpdateResolvers = {
  resyncRequired: ({ event }) => event === null,
};
