/**
 * The resolvers of the schema. Those of Query, Mutation and Subscription hand over to the services, which check who may;
 * the others turn rows into fields.
 */
import type { GraphQLFieldResolver } from 'graphql';
import type { Context } from '../context.js';
import type { Resolvers } from '../generated/resolvers-types.js';
import { DateTime, Json } from '../scalars.js';
import { typeOfError } from '../user-errors.js';
import * as data from './data.js';
import * as events from './events.js';
import * as federation from './federation.js';
import * as grid from './grid.js';
import * as groups from './groups.js';
import * as history from './history.js';
import * as holds from './holds.js';
import * as jobs from './jobs.js';
import * as people from './people.js';
import * as ratios from './ratios.js';
import { Mutation, Query, Subscription } from './root.js';
import * as shares from './shares.js';
import * as simulations from './simulations.js';
import * as tree from './tree.js';

export const resolvers: Resolvers = {
  ...data,
  ...events,
  ...federation,
  ...grid,
  ...groups,
  ...history,
  ...holds,
  ...jobs,
  ...people,
  ...ratios,
  ...shares,
  ...simulations,
  ...tree,
  Query,
  Mutation: startingAfresh(Mutation),
  Subscription,
  // The service says with each object what it is, in a field that the types of the objects do not have.
  Node: { __resolveType: (node) => (node as unknown as { __typename: 'Job' }).__typename },
  UserError: { __resolveType: typeOfError },
  DateTime,
  JSON: Json,
};

/** The mutations of one request run one after another: what was looked up for the answer of one may not serve the next. */
function startingAfresh<T extends object>(mutations: T): T {
  const resolvers = Object.entries(mutations as Record<string, GraphQLFieldResolver<unknown, Context>>);
  return Object.fromEntries(
    resolvers.map(([name, resolve]): [string, GraphQLFieldResolver<unknown, Context>] => [
      name,
      (source, values, context, info) => {
        context.loaders.clear();
        return resolve(source, values, context, info);
      },
    ]),
  ) as T;
}
