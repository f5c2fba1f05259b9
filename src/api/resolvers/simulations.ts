/** What-ifs, and their news. */
import type { SimulationResolvers, SimulationUpdateResolvers } from '../generated/resolvers-types.js';
import { globalId } from '../ids.js';

export const Simulation: SimulationResolvers = {
  id: (simulation) => globalId('simulation', simulation.id),
  user: (simulation, _, { loaders }) => loaders.user(simulation.userId),
};

export const SimulationUpdate: SimulationUpdateResolvers = {
  resyncRequired: ({ event }) => event === null,
};
