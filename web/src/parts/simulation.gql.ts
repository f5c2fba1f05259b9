// Generated from web/src/parts/simulation.graphql by scripts/codegen-documents.mjs. Do not edit.
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

export type SimulateInput = {
  candidate: unknown;
  from?: string | null | undefined;
  to?: string | null | undefined;
  trace?: string | null | undefined;
  acceptDistance?: boolean;
  reason?: string | null | undefined;
};

export type SimulationPartsFragment = { id: string, state: SimulationState, progress: number, createdAt: string, endedAt: string | null, policyVersion: number, candidate: unknown, from: string | null, to: string | null, reason: string | null, message: string | null, result: { jobs: number, leftOut: number, happened: { jobs: number, waitMeanS: number, simulatedWaitMeanS: number } | null, all: { baseline: { ended: number, neverStarted: number, waitMeanS: number, waitP95S: number, slowdownMean: number, slowdownP95: number, deadlineMisses: number, utilization: number }, candidate: { ended: number, neverStarted: number, waitMeanS: number, waitP95S: number, slowdownMean: number, slowdownP95: number, deadlineMisses: number, utilization: number }, difference: { ended: number, neverStarted: number, waitMeanS: number, waitP95S: number, slowdownMean: number, slowdownP95: number, deadlineMisses: number, utilization: number } }, userClasses: Array<{ userClass: UserClass, comparison: { baseline: { ended: number, neverStarted: number, waitMeanS: number, waitP95S: number, slowdownMean: number, slowdownP95: number, deadlineMisses: number, utilization: number }, candidate: { ended: number, neverStarted: number, waitMeanS: number, waitP95S: number, slowdownMean: number, slowdownP95: number, deadlineMisses: number, utilization: number }, difference: { ended: number, neverStarted: number, waitMeanS: number, waitP95S: number, slowdownMean: number, slowdownP95: number, deadlineMisses: number, utilization: number } } }>, sites: Array<{ name: string, comparison: { baseline: { ended: number, neverStarted: number, waitMeanS: number, waitP95S: number, slowdownMean: number, slowdownP95: number, deadlineMisses: number, utilization: number }, candidate: { ended: number, neverStarted: number, waitMeanS: number, waitP95S: number, slowdownMean: number, slowdownP95: number, deadlineMisses: number, utilization: number }, difference: { ended: number, neverStarted: number, waitMeanS: number, waitP95S: number, slowdownMean: number, slowdownP95: number, deadlineMisses: number, utilization: number } } }> } | null, user: { id: string, name: string } };

export type ComparisonPartsFragment = { baseline: { ended: number, neverStarted: number, waitMeanS: number, waitP95S: number, slowdownMean: number, slowdownP95: number, deadlineMisses: number, utilization: number }, candidate: { ended: number, neverStarted: number, waitMeanS: number, waitP95S: number, slowdownMean: number, slowdownP95: number, deadlineMisses: number, utilization: number }, difference: { ended: number, neverStarted: number, waitMeanS: number, waitP95S: number, slowdownMean: number, slowdownP95: number, deadlineMisses: number, utilization: number } };

export type FiguresPartsFragment = { ended: number, neverStarted: number, waitMeanS: number, waitP95S: number, slowdownMean: number, slowdownP95: number, deadlineMisses: number, utilization: number };

export type SimulationPageQueryVariables = Exact<{
  id: string;
}>;


export type SimulationPageQuery = { simulation: { id: string, state: SimulationState, progress: number, createdAt: string, endedAt: string | null, policyVersion: number, candidate: unknown, from: string | null, to: string | null, reason: string | null, message: string | null, result: { jobs: number, leftOut: number, happened: { jobs: number, waitMeanS: number, simulatedWaitMeanS: number } | null, all: { baseline: { ended: number, neverStarted: number, waitMeanS: number, waitP95S: number, slowdownMean: number, slowdownP95: number, deadlineMisses: number, utilization: number }, candidate: { ended: number, neverStarted: number, waitMeanS: number, waitP95S: number, slowdownMean: number, slowdownP95: number, deadlineMisses: number, utilization: number }, difference: { ended: number, neverStarted: number, waitMeanS: number, waitP95S: number, slowdownMean: number, slowdownP95: number, deadlineMisses: number, utilization: number } }, userClasses: Array<{ userClass: UserClass, comparison: { baseline: { ended: number, neverStarted: number, waitMeanS: number, waitP95S: number, slowdownMean: number, slowdownP95: number, deadlineMisses: number, utilization: number }, candidate: { ended: number, neverStarted: number, waitMeanS: number, waitP95S: number, slowdownMean: number, slowdownP95: number, deadlineMisses: number, utilization: number }, difference: { ended: number, neverStarted: number, waitMeanS: number, waitP95S: number, slowdownMean: number, slowdownP95: number, deadlineMisses: number, utilization: number } } }>, sites: Array<{ name: string, comparison: { baseline: { ended: number, neverStarted: number, waitMeanS: number, waitP95S: number, slowdownMean: number, slowdownP95: number, deadlineMisses: number, utilization: number }, candidate: { ended: number, neverStarted: number, waitMeanS: number, waitP95S: number, slowdownMean: number, slowdownP95: number, deadlineMisses: number, utilization: number }, difference: { ended: number, neverStarted: number, waitMeanS: number, waitP95S: number, slowdownMean: number, slowdownP95: number, deadlineMisses: number, utilization: number } } }> } | null, user: { id: string, name: string } } | null };

export type JobsInWindowQueryVariables = Exact<{
  from: string;
  to: string;
}>;


export type JobsInWindowQuery = { jobCount: number };

export type SimulateMutationVariables = Exact<{
  input: SimulateInput;
}>;


export type SimulateMutation = { simulate: { id: string, state: SimulationState, progress: number, createdAt: string, endedAt: string | null, policyVersion: number, candidate: unknown, from: string | null, to: string | null, reason: string | null, message: string | null, result: { jobs: number, leftOut: number, happened: { jobs: number, waitMeanS: number, simulatedWaitMeanS: number } | null, all: { baseline: { ended: number, neverStarted: number, waitMeanS: number, waitP95S: number, slowdownMean: number, slowdownP95: number, deadlineMisses: number, utilization: number }, candidate: { ended: number, neverStarted: number, waitMeanS: number, waitP95S: number, slowdownMean: number, slowdownP95: number, deadlineMisses: number, utilization: number }, difference: { ended: number, neverStarted: number, waitMeanS: number, waitP95S: number, slowdownMean: number, slowdownP95: number, deadlineMisses: number, utilization: number } }, userClasses: Array<{ userClass: UserClass, comparison: { baseline: { ended: number, neverStarted: number, waitMeanS: number, waitP95S: number, slowdownMean: number, slowdownP95: number, deadlineMisses: number, utilization: number }, candidate: { ended: number, neverStarted: number, waitMeanS: number, waitP95S: number, slowdownMean: number, slowdownP95: number, deadlineMisses: number, utilization: number }, difference: { ended: number, neverStarted: number, waitMeanS: number, waitP95S: number, slowdownMean: number, slowdownP95: number, deadlineMisses: number, utilization: number } } }>, sites: Array<{ name: string, comparison: { baseline: { ended: number, neverStarted: number, waitMeanS: number, waitP95S: number, slowdownMean: number, slowdownP95: number, deadlineMisses: number, utilization: number }, candidate: { ended: number, neverStarted: number, waitMeanS: number, waitP95S: number, slowdownMean: number, slowdownP95: number, deadlineMisses: number, utilization: number }, difference: { ended: number, neverStarted: number, waitMeanS: number, waitP95S: number, slowdownMean: number, slowdownP95: number, deadlineMisses: number, utilization: number } } }> } | null, user: { id: string, name: string } } };

export type SimulationNewsSubscriptionVariables = Exact<{
  simulation?: string | null | undefined;
  after?: string | null | undefined;
}>;


export type SimulationNewsSubscription = { simulationUpdated: { cursor: string, resyncRequired: boolean, event: { id: string } | null, simulation: { id: string, state: SimulationState, progress: number, createdAt: string, endedAt: string | null, policyVersion: number, candidate: unknown, from: string | null, to: string | null, reason: string | null, message: string | null, result: { jobs: number, leftOut: number, happened: { jobs: number, waitMeanS: number, simulatedWaitMeanS: number } | null, all: { baseline: { ended: number, neverStarted: number, waitMeanS: number, waitP95S: number, slowdownMean: number, slowdownP95: number, deadlineMisses: number, utilization: number }, candidate: { ended: number, neverStarted: number, waitMeanS: number, waitP95S: number, slowdownMean: number, slowdownP95: number, deadlineMisses: number, utilization: number }, difference: { ended: number, neverStarted: number, waitMeanS: number, waitP95S: number, slowdownMean: number, slowdownP95: number, deadlineMisses: number, utilization: number } }, userClasses: Array<{ userClass: UserClass, comparison: { baseline: { ended: number, neverStarted: number, waitMeanS: number, waitP95S: number, slowdownMean: number, slowdownP95: number, deadlineMisses: number, utilization: number }, candidate: { ended: number, neverStarted: number, waitMeanS: number, waitP95S: number, slowdownMean: number, slowdownP95: number, deadlineMisses: number, utilization: number }, difference: { ended: number, neverStarted: number, waitMeanS: number, waitP95S: number, slowdownMean: number, slowdownP95: number, deadlineMisses: number, utilization: number } } }>, sites: Array<{ name: string, comparison: { baseline: { ended: number, neverStarted: number, waitMeanS: number, waitP95S: number, slowdownMean: number, slowdownP95: number, deadlineMisses: number, utilization: number }, candidate: { ended: number, neverStarted: number, waitMeanS: number, waitP95S: number, slowdownMean: number, slowdownP95: number, deadlineMisses: number, utilization: number }, difference: { ended: number, neverStarted: number, waitMeanS: number, waitP95S: number, slowdownMean: number, slowdownP95: number, deadlineMisses: number, utilization: number } } }> } | null, user: { id: string, name: string } } | null } };


export const SimulationPageDocument =
  "query SimulationPage($id: ID!) { simulation(id: $id) { ...SimulationParts } } fragment SimulationParts on Simulation { id state progress createdAt endedAt policyVersion candidate from to reason result { jobs leftOut happened { jobs waitMeanS simulatedWaitMeanS } all { ...ComparisonParts } userClasses { userClass comparison { ...ComparisonParts } } sites { name comparison { ...ComparisonParts } } } message user { id name } } fragment ComparisonParts on SimulationComparison { baseline { ...FiguresParts } candidate { ...FiguresParts } difference { ...FiguresParts } } fragment FiguresParts on SimulationFigures { ended neverStarted waitMeanS waitP95S slowdownMean slowdownP95 deadlineMisses utilization }" as unknown as TypedDocumentNode<SimulationPageQuery, SimulationPageQueryVariables>;

export const JobsInWindowDocument =
  "query JobsInWindow($from: DateTime!, $to: DateTime!) { jobCount(filter: {submittedAfter: $from, submittedBefore: $to}) }" as unknown as TypedDocumentNode<JobsInWindowQuery, JobsInWindowQueryVariables>;

export const SimulateDocument =
  "mutation Simulate($input: SimulateInput!) { simulate(input: $input) { ...SimulationParts } } fragment SimulationParts on Simulation { id state progress createdAt endedAt policyVersion candidate from to reason result { jobs leftOut happened { jobs waitMeanS simulatedWaitMeanS } all { ...ComparisonParts } userClasses { userClass comparison { ...ComparisonParts } } sites { name comparison { ...ComparisonParts } } } message user { id name } } fragment ComparisonParts on SimulationComparison { baseline { ...FiguresParts } candidate { ...FiguresParts } difference { ...FiguresParts } } fragment FiguresParts on SimulationFigures { ended neverStarted waitMeanS waitP95S slowdownMean slowdownP95 deadlineMisses utilization }" as unknown as TypedDocumentNode<SimulateMutation, SimulateMutationVariables>;

export const SimulationNewsDocument =
  "subscription SimulationNews($simulation: ID, $after: String) { simulationUpdated(simulation: $simulation, after: $after) { cursor resyncRequired event { id } simulation { ...SimulationParts } } } fragment SimulationParts on Simulation { id state progress createdAt endedAt policyVersion candidate from to reason result { jobs leftOut happened { jobs waitMeanS simulatedWaitMeanS } all { ...ComparisonParts } userClasses { userClass comparison { ...ComparisonParts } } sites { name comparison { ...ComparisonParts } } } message user { id name } } fragment ComparisonParts on SimulationComparison { baseline { ...FiguresParts } candidate { ...FiguresParts } difference { ...FiguresParts } } fragment FiguresParts on SimulationFigures { ended neverStarted waitMeanS waitP95S slowdownMean slowdownP95 deadlineMisses utilization }" as unknown as TypedDocumentNode<SimulationNewsSubscription, SimulationNewsSubscriptionVariables>;
