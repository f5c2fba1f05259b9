/**
 * The resolvers of the schema. Those of Query, Mutation and Subscription hand over to the services, which check who may;
 * the others turn rows into fields.
 */
import type { Resolvers } from '../generated/resolvers-types.js';
import { DateTime, Json } from '../scalars.js';
import * as events from './events.js';
import * as grid from './grid.js';
import * as jobs from './jobs.js';
import * as people from './people.js';
import { Mutation, Query, Subscription } from './root.js';

export const resolvers: Resolvers = {
  ...events,
  ...grid,
  ...jobs,
  ...people,
  Query,
  Mutation,
  Subscription,
  // The service says with each object what it is.
  Node: { __resolveType: (node) => (node as unknown as { __typename: 'Job' }).__typename },
  DateTime,
  JSON: Json,
};
