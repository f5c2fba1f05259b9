// Generated from web/src/pages/tree/tree.graphql by scripts/codegen-documents.mjs. Do not edit.
import type { TypedDocumentNode } from 'urql';
/** Internal type. DO NOT USE DIRECTLY. */
type Exact<T extends { [key: string]: unknown }> = { [K in keyof T]: T[K] };
/** Internal type. DO NOT USE DIRECTLY. */
export type Incremental<T> = T | { [P in keyof T]?: P extends ' $fragmentName' | '__typename' ? T[P] : never };
export type SiteState =
  | 'UP'
  | 'DRAINING'
  | 'DOWN';

export type JobState =
  | 'QUEUED'
  | 'BLOCKED'
  | 'HELD'
  | 'DISPATCHED'
  | 'ASSIGNED'
  | 'RUNNING'
  | 'CANCELLING'
  | 'COMPLETED'
  | 'FAILED'
  | 'CANCELLED';

export type EventKind =
  | 'JOB_STATE'
  | 'JOB_CHANGED'
  | 'SITE'
  | 'MACHINE'
  | 'AGENT'
  | 'LICENSE'
  | 'SCHEDULER'
  | 'USER'
  | 'POLICY'
  | 'SIMULATION'
  | 'DATA'
  | 'HOLD';

export type Forwarding =
  | 'ALWAYS'
  | 'WHEN_NEEDED'
  | 'WHEN_CHEAPER'
  | 'NEVER';

export type TreeQueryVariables = Exact<{ [key: string]: never; }>;


export type TreeQuery = { atRoot: number, held: number, policy: { id: string, version: number, document: unknown } | null, sites: { nodes: Array<{ id: string, name: string, state: SiteState, queuedJobs: number, metaQueuedJobs: number, runningJobs: number, cpus: number, cpusUsed: number, localPolicy: unknown, scheduler: { id: string } | null }> }, schedulers: Array<{ id: string, name: string, parent: { id: string } | null }>, peers: Array<{ alive: boolean, queued: number, metaQueued: number, arrivalRate: number, serviceRate: number, congested: boolean, powerTotal: number, site: { id: string } }> };

export type ChannelPartsFragment = { port: number, power: number, classes: Array<{ os: string | null, architecture: string | null, licenses: Array<string>, tasks: number, cpusPerTask: number, memoryMbPerTask: number, jobs: number }>, branches: Array<{ port: number, power: number, jobs: number, scheduler: { id: string, name: string } | null, site: { id: string, name: string } | null }> };

export type HoldersQueryVariables = Exact<{ [key: string]: never; }>;


export type HoldersQuery = { tree: { holds: number, waiting: number, channels: Array<{ port: number, power: number, classes: Array<{ os: string | null, architecture: string | null, licenses: Array<string>, tasks: number, cpusPerTask: number, memoryMbPerTask: number, jobs: number }>, branches: Array<{ port: number, power: number, jobs: number, scheduler: { id: string, name: string } | null, site: { id: string, name: string } | null }> }> }, schedulers: Array<{ id: string, name: string, holds: number, waiting: number, channels: Array<{ port: number, power: number, classes: Array<{ os: string | null, architecture: string | null, licenses: Array<string>, tasks: number, cpusPerTask: number, memoryMbPerTask: number, jobs: number }>, branches: Array<{ port: number, power: number, jobs: number, scheduler: { id: string, name: string } | null, site: { id: string, name: string } | null }> }> }> };

export type FlowSubscriptionVariables = Exact<{
  after?: string | null | undefined;
}>;


export type FlowSubscription = { jobUpdated: { cursor: string, resyncRequired: boolean, event: { id: string, kind: EventKind, fromState: JobState | null, toState: JobState | null, site: { id: string } | null } | null } };

export type FederationPeerPartsFragment = { name: string, url: string | null, isolated: boolean, forward: Forwarding, neededAfterS: number, hops: number, foreignMax: number, seenAt: string | null, reachedAt: string | null, failure: string | null, foreignJobs: number, offeredJobs: number, claimedJobs: number, site: { id: string }, user: { id: string, name: string }, users: Array<{ name: string, user: { id: string, name: string } }> };

export type FederationQueryVariables = Exact<{ [key: string]: never; }>;


export type FederationQuery = { federationPeers: Array<{ name: string, url: string | null, isolated: boolean, forward: Forwarding, neededAfterS: number, hops: number, foreignMax: number, seenAt: string | null, reachedAt: string | null, failure: string | null, foreignJobs: number, offeredJobs: number, claimedJobs: number, site: { id: string }, user: { id: string, name: string }, users: Array<{ name: string, user: { id: string, name: string } }> }> };

export type IsolatePeerMutationVariables = Exact<{
  peer: string;
}>;


export type IsolatePeerMutation = { isolatePeer: { isolated: boolean } };

export type RejoinPeerMutationVariables = Exact<{
  peer: string;
}>;


export type RejoinPeerMutation = { rejoinPeer: { isolated: boolean } };


export const TreeDocument =
  "query Tree { policy { id version document } atRoot: jobCount(filter: {states: [QUEUED]}) held: jobCount(filter: {states: [HELD]}) sites(first: 200) { nodes { id name state queuedJobs metaQueuedJobs runningJobs cpus cpusUsed localPolicy scheduler { id } } } schedulers { id name parent { id } } peers(first: 200) { alive queued metaQueued arrivalRate serviceRate congested powerTotal site { id } } }" as unknown as TypedDocumentNode<TreeQuery, TreeQueryVariables>;

export const HoldersDocument =
  "query Holders { tree { holds waiting channels { ...ChannelParts } } schedulers { id name holds waiting channels { ...ChannelParts } } } fragment ChannelParts on Channel { port power classes { os architecture licenses tasks cpusPerTask memoryMbPerTask jobs } branches { port power jobs scheduler { id name } site { id name } } }" as unknown as TypedDocumentNode<HoldersQuery, HoldersQueryVariables>;

export const FlowDocument =
  "subscription Flow($after: String) { jobUpdated(after: $after) { cursor resyncRequired event { id kind fromState toState site { id } } } }" as unknown as TypedDocumentNode<FlowSubscription, FlowSubscriptionVariables>;

export const FederationDocument =
  "query Federation { federationPeers { ...FederationPeerParts } } fragment FederationPeerParts on FederationPeer { site { id } name url isolated forward neededAfterS hops foreignMax seenAt reachedAt failure foreignJobs offeredJobs claimedJobs user { id name } users { name user { id name } } }" as unknown as TypedDocumentNode<FederationQuery, FederationQueryVariables>;

export const IsolatePeerDocument =
  "mutation IsolatePeer($peer: ID!) { isolatePeer(peer: $peer) { isolated } }" as unknown as TypedDocumentNode<IsolatePeerMutation, IsolatePeerMutationVariables>;

export const RejoinPeerDocument =
  "mutation RejoinPeer($peer: ID!) { rejoinPeer(peer: $peer) { isolated } }" as unknown as TypedDocumentNode<RejoinPeerMutation, RejoinPeerMutationVariables>;
