// Generated from web/src/pages/simulator/simulator.graphql by scripts/codegen-documents.mjs. Do not edit.
import type { TypedDocumentNode } from 'urql';
/** Internal type. DO NOT USE DIRECTLY. */
type Exact<T extends { [key: string]: unknown }> = { [K in keyof T]: T[K] };
/** Internal type. DO NOT USE DIRECTLY. */
export type Incremental<T> = T | { [P in keyof T]?: P extends ' $fragmentName' | '__typename' ? T[P] : never };
export type UserClass =
  | 'GOLD'
  | 'SILVER'
  | 'REGULAR';

export type SimulationState =
  | 'QUEUED'
  | 'RUNNING'
  | 'DONE'
  | 'FAILED'
  | 'CANCELLED';

export type SimulationsQueryVariables = Exact<{
  first: number;
  after?: string | null | undefined;
}>;


export type SimulationsQuery = { simulations: { nodes: Array<{ id: string, state: SimulationState, progress: number, createdAt: string, endedAt: string | null, policyVersion: number, candidate: unknown, from: string | null, to: string | null, reason: string | null, message: string | null, result: { jobs: number, leftOut: number, happened: { jobs: number, waitMeanS: number, simulatedWaitMeanS: number } | null, all: { baseline: { ended: number, neverStarted: number, waitMeanS: number, waitP95S: number, slowdownMean: number, slowdownP95: number, deadlineMisses: number, utilization: number }, candidate: { ended: number, neverStarted: number, waitMeanS: number, waitP95S: number, slowdownMean: number, slowdownP95: number, deadlineMisses: number, utilization: number }, difference: { ended: number, neverStarted: number, waitMeanS: number, waitP95S: number, slowdownMean: number, slowdownP95: number, deadlineMisses: number, utilization: number } }, userClasses: Array<{ userClass: UserClass, comparison: { baseline: { ended: number, neverStarted: number, waitMeanS: number, waitP95S: number, slowdownMean: number, slowdownP95: number, deadlineMisses: number, utilization: number }, candidate: { ended: number, neverStarted: number, waitMeanS: number, waitP95S: number, slowdownMean: number, slowdownP95: number, deadlineMisses: number, utilization: number }, difference: { ended: number, neverStarted: number, waitMeanS: number, waitP95S: number, slowdownMean: number, slowdownP95: number, deadlineMisses: number, utilization: number } } }>, sites: Array<{ name: string, comparison: { baseline: { ended: number, neverStarted: number, waitMeanS: number, waitP95S: number, slowdownMean: number, slowdownP95: number, deadlineMisses: number, utilization: number }, candidate: { ended: number, neverStarted: number, waitMeanS: number, waitP95S: number, slowdownMean: number, slowdownP95: number, deadlineMisses: number, utilization: number }, difference: { ended: number, neverStarted: number, waitMeanS: number, waitP95S: number, slowdownMean: number, slowdownP95: number, deadlineMisses: number, utilization: number } } }> } | null, user: { id: string, name: string } }>, pageInfo: { hasNextPage: boolean, endCursor: string | null } } };

export type SimulationBaselineQueryVariables = Exact<{
  version: number;
}>;


export type SimulationBaselineQuery = { policy: { id: string, version: number, document: unknown } | null };

export type CancelSimulationMutationVariables = Exact<{
  id: string;
}>;


export type CancelSimulationMutation = { cancelSimulation: { id: string, state: SimulationState, progress: number, createdAt: string, endedAt: string | null, policyVersion: number, candidate: unknown, from: string | null, to: string | null, reason: string | null, message: string | null, result: { jobs: number, leftOut: number, happened: { jobs: number, waitMeanS: number, simulatedWaitMeanS: number } | null, all: { baseline: { ended: number, neverStarted: number, waitMeanS: number, waitP95S: number, slowdownMean: number, slowdownP95: number, deadlineMisses: number, utilization: number }, candidate: { ended: number, neverStarted: number, waitMeanS: number, waitP95S: number, slowdownMean: number, slowdownP95: number, deadlineMisses: number, utilization: number }, difference: { ended: number, neverStarted: number, waitMeanS: number, waitP95S: number, slowdownMean: number, slowdownP95: number, deadlineMisses: number, utilization: number } }, userClasses: Array<{ userClass: UserClass, comparison: { baseline: { ended: number, neverStarted: number, waitMeanS: number, waitP95S: number, slowdownMean: number, slowdownP95: number, deadlineMisses: number, utilization: number }, candidate: { ended: number, neverStarted: number, waitMeanS: number, waitP95S: number, slowdownMean: number, slowdownP95: number, deadlineMisses: number, utilization: number }, difference: { ended: number, neverStarted: number, waitMeanS: number, waitP95S: number, slowdownMean: number, slowdownP95: number, deadlineMisses: number, utilization: number } } }>, sites: Array<{ name: string, comparison: { baseline: { ended: number, neverStarted: number, waitMeanS: number, waitP95S: number, slowdownMean: number, slowdownP95: number, deadlineMisses: number, utilization: number }, candidate: { ended: number, neverStarted: number, waitMeanS: number, waitP95S: number, slowdownMean: number, slowdownP95: number, deadlineMisses: number, utilization: number }, difference: { ended: number, neverStarted: number, waitMeanS: number, waitP95S: number, slowdownMean: number, slowdownP95: number, deadlineMisses: number, utilization: number } } }> } | null, user: { id: string, name: string } } };

export type SimulationHistoryQueryVariables = Exact<{
  id: string;
}>;


export type SimulationHistoryQuery = { simulation: { id: string, result: { history: { from: string | null, lengthS: number, binS: number, baseline: Array<{ atS: number, queuedJobs: number, utilization: number }>, candidate: Array<{ atS: number, queuedJobs: number, utilization: number }> } | null } | null } | null };

export type BinPartsFragment = { atS: number, queuedJobs: number, utilization: number };

export type SimulationPartsFragment = { id: string, state: SimulationState, progress: number, createdAt: string, endedAt: string | null, policyVersion: number, candidate: unknown, from: string | null, to: string | null, reason: string | null, message: string | null, result: { jobs: number, leftOut: number, happened: { jobs: number, waitMeanS: number, simulatedWaitMeanS: number } | null, all: { baseline: { ended: number, neverStarted: number, waitMeanS: number, waitP95S: number, slowdownMean: number, slowdownP95: number, deadlineMisses: number, utilization: number }, candidate: { ended: number, neverStarted: number, waitMeanS: number, waitP95S: number, slowdownMean: number, slowdownP95: number, deadlineMisses: number, utilization: number }, difference: { ended: number, neverStarted: number, waitMeanS: number, waitP95S: number, slowdownMean: number, slowdownP95: number, deadlineMisses: number, utilization: number } }, userClasses: Array<{ userClass: UserClass, comparison: { baseline: { ended: number, neverStarted: number, waitMeanS: number, waitP95S: number, slowdownMean: number, slowdownP95: number, deadlineMisses: number, utilization: number }, candidate: { ended: number, neverStarted: number, waitMeanS: number, waitP95S: number, slowdownMean: number, slowdownP95: number, deadlineMisses: number, utilization: number }, difference: { ended: number, neverStarted: number, waitMeanS: number, waitP95S: number, slowdownMean: number, slowdownP95: number, deadlineMisses: number, utilization: number } } }>, sites: Array<{ name: string, comparison: { baseline: { ended: number, neverStarted: number, waitMeanS: number, waitP95S: number, slowdownMean: number, slowdownP95: number, deadlineMisses: number, utilization: number }, candidate: { ended: number, neverStarted: number, waitMeanS: number, waitP95S: number, slowdownMean: number, slowdownP95: number, deadlineMisses: number, utilization: number }, difference: { ended: number, neverStarted: number, waitMeanS: number, waitP95S: number, slowdownMean: number, slowdownP95: number, deadlineMisses: number, utilization: number } } }> } | null, user: { id: string, name: string } };

export type ComparisonPartsFragment = { baseline: { ended: number, neverStarted: number, waitMeanS: number, waitP95S: number, slowdownMean: number, slowdownP95: number, deadlineMisses: number, utilization: number }, candidate: { ended: number, neverStarted: number, waitMeanS: number, waitP95S: number, slowdownMean: number, slowdownP95: number, deadlineMisses: number, utilization: number }, difference: { ended: number, neverStarted: number, waitMeanS: number, waitP95S: number, slowdownMean: number, slowdownP95: number, deadlineMisses: number, utilization: number } };

export type FiguresPartsFragment = { ended: number, neverStarted: number, waitMeanS: number, waitP95S: number, slowdownMean: number, slowdownP95: number, deadlineMisses: number, utilization: number };


export const SimulationsDocument =
  "query Simulations($first: Int!, $after: String) { simulations(first: $first, after: $after) { nodes { ...SimulationParts } pageInfo { hasNextPage endCursor } } } fragment SimulationParts on Simulation { id state progress createdAt endedAt policyVersion candidate from to reason result { jobs leftOut happened { jobs waitMeanS simulatedWaitMeanS } all { ...ComparisonParts } userClasses { userClass comparison { ...ComparisonParts } } sites { name comparison { ...ComparisonParts } } } message user { id name } } fragment ComparisonParts on SimulationComparison { baseline { ...FiguresParts } candidate { ...FiguresParts } difference { ...FiguresParts } } fragment FiguresParts on SimulationFigures { ended neverStarted waitMeanS waitP95S slowdownMean slowdownP95 deadlineMisses utilization }" as unknown as TypedDocumentNode<SimulationsQuery, SimulationsQueryVariables>;

export const SimulationBaselineDocument =
  "query SimulationBaseline($version: Int!) { policy(version: $version) { id version document } }" as unknown as TypedDocumentNode<SimulationBaselineQuery, SimulationBaselineQueryVariables>;

export const CancelSimulationDocument =
  "mutation CancelSimulation($id: ID!) { cancelSimulation(simulation: $id) { ...SimulationParts } } fragment SimulationParts on Simulation { id state progress createdAt endedAt policyVersion candidate from to reason result { jobs leftOut happened { jobs waitMeanS simulatedWaitMeanS } all { ...ComparisonParts } userClasses { userClass comparison { ...ComparisonParts } } sites { name comparison { ...ComparisonParts } } } message user { id name } } fragment ComparisonParts on SimulationComparison { baseline { ...FiguresParts } candidate { ...FiguresParts } difference { ...FiguresParts } } fragment FiguresParts on SimulationFigures { ended neverStarted waitMeanS waitP95S slowdownMean slowdownP95 deadlineMisses utilization }" as unknown as TypedDocumentNode<CancelSimulationMutation, CancelSimulationMutationVariables>;

export const SimulationHistoryDocument =
  "query SimulationHistory($id: ID!) { simulation(id: $id) { id result { history { from lengthS binS baseline { ...BinParts } candidate { ...BinParts } } } } } fragment BinParts on SimulationBin { atS queuedJobs utilization }" as unknown as TypedDocumentNode<SimulationHistoryQuery, SimulationHistoryQueryVariables>;
