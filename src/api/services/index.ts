/** The services that the resolvers call, by what they are about. */
import { createAgentsService } from './agents.js';
import { createDataService } from './data.js';
import { createEventsService } from './events.js';
import { createExplainService } from './explain.js';
import { createExportsService } from './exports.js';
import { createFederationService } from './federation.js';
import { createFilesService } from './files.js';
import { createGraphService } from './graph.js';
import { createGridService } from './grid.js';
import { createGroupsService } from './groups.js';
import { createHistoryService } from './history.js';
import { createHoldsService } from './holds.js';
import { createJobsService } from './jobs.js';
import { createLiveUseService } from './live-use.js';
import { createNodesService } from './nodes.js';
import { createOutputService } from './output.js';
import type { ServiceParts } from './parts.js';
import { createPeopleService } from './people.js';
import { createPolicyService } from './policy.js';
import { createRatiosService } from './ratios.js';
import { createRegistriesService } from './registries.js';
import { createRerunService } from './rerun.js';
import { createSharesService } from './shares.js';
import { createSignInService } from './sign-in.js';
import { createSimulationsService } from './simulations.js';
import { createStagingService } from './staging.js';
import { createSubscriptionsService } from './subscriptions.js';
import { createTerminalsService } from './terminals.js';
import { createTreeService } from './tree.js';
import { createWebhooksService } from './webhooks.js';

export function createServices(parts: ServiceParts) {
  return {
    agents: createAgentsService(parts),
    data: createDataService(parts),
    events: createEventsService(parts),
    explain: createExplainService(parts),
    exports: createExportsService(parts),
    federation: createFederationService(parts),
    files: createFilesService(parts),
    graph: createGraphService(parts),
    grid: createGridService(parts),
    groups: createGroupsService(parts),
    history: createHistoryService(parts),
    holds: createHoldsService(parts),
    jobs: createJobsService(parts),
    nodes: createNodesService(parts),
    output: createOutputService(parts),
    people: createPeopleService(parts),
    policy: createPolicyService(parts),
    ratios: createRatiosService(parts),
    registries: createRegistriesService(parts),
    rerun: createRerunService(parts),
    shares: createSharesService(parts),
    signIn: createSignInService(parts),
    simulations: createSimulationsService(parts),
    staging: createStagingService(parts),
    liveUse: createLiveUseService(parts),
    subscriptions: createSubscriptionsService(parts),
    terminals: createTerminalsService(parts),
    tree: createTreeService(parts),
    webhooks: createWebhooksService(parts),
  };
}

export type Services = ReturnType<typeof createServices>;
