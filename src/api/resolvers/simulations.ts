/** What-ifs, and their news. */
import type {
  ResolversTypes,
  SimulationOfClassResolvers,
  SimulationOfSiteResolvers,
  SimulationResolvers,
  SimulationUpdateResolvers,
} from '../generated/resolvers-types.js';
import { globalId } from '../ids.js';

export const Simulation: SimulationResolvers = {
  id: (simulation) => globalId('simulation', simulation.id),
  user: (simulation, _, { loaders }) => loaders.user(simulation.userId),
  // What its worker wrote has these fields.
  result: ({ result }) => result as ResolversTypes['SimulationResult'] | null,
};

export const SimulationOfClass: SimulationOfClassResolvers = {
  comparison: (comparison) => comparison,
};

export const SimulationOfSite: SimulationOfSiteResolvers = {
  comparison: (comparison) => comparison,
  site: ({ siteId }, _, { loaders }) => loaders.findSite(siteId),
};

export const SimulationUpdate: SimulationUpdateResolvers = {
  resyncRequired: ({ event }) => event === null,
};
