// Generated from web/src/pages/data/data.graphql by scripts/codegen-documents.mjs. Do not edit.
import type { TypedDocumentNode } from 'urql';
/** Internal type. DO NOT USE DIRECTLY. */
type Exact<T extends { [key: string]: unknown }> = { [K in keyof T]: T[K] };
/** Internal type. DO NOT USE DIRECTLY. */
export type Incremental<T> = T | { [P in keyof T]?: P extends ' $fragmentName' | '__typename' ? T[P] : never };
export type LinkSource =
  | 'ADMIN'
  | 'AGENT';

export type DatasetInput = {
  name: string;
  sizeMb: number;
  sha256?: string | null | undefined;
  replicas?: Array<string>;
  locations?: Array<DatasetLocationInput>;
};

export type DatasetLocationInput = {
  site: string;
  location: string;
};

export type UpdateDatasetInput = {
  dataset: string;
  name?: string | null | undefined;
  sizeMb?: number | null | undefined;
  sha256?: string | null | undefined;
};

export type LinkInput = {
  from: string;
  to: string;
  bandwidthMbPerS: number;
  rttS?: number;
  loss?: number;
};

export type DatasetsQueryVariables = Exact<{
  name?: string | null | undefined;
  first: number;
  after?: string | null | undefined;
}>;


export type DatasetsQuery = { datasets: { nodes: Array<{ id: string, name: string, sizeMb: number, createdAt: string, replicas: Array<{ id: string, name: string }> }>, pageInfo: { hasNextPage: boolean, endCursor: string | null } } };

export type DatasetPartsFragment = { id: string, name: string, sizeMb: number, createdAt: string, replicas: Array<{ id: string, name: string }> };

export type DataSitesQueryVariables = Exact<{ [key: string]: never; }>;


export type DataSitesQuery = { sites: { nodes: Array<{ id: string, name: string }> } };

export type LinksQueryVariables = Exact<{ [key: string]: never; }>;


export type LinksQuery = { links: { nodes: Array<{ bandwidthMbPerS: number, rttS: number, loss: number, measuredAt: string, source: LinkSource, from: { id: string, name: string }, to: { id: string, name: string } }> } };

export type LinkPartsFragment = { bandwidthMbPerS: number, rttS: number, loss: number, measuredAt: string, source: LinkSource, from: { id: string, name: string }, to: { id: string, name: string } };

export type TransfersQueryVariables = Exact<{ [key: string]: never; }>;


export type TransfersQuery = { transfers: Array<{ sizeMb: number, startsAt: string, endsAt: string, dataset: { id: string, name: string } | null, from: { id: string, name: string }, to: { id: string, name: string }, job: { id: string, name: string | null, application: string, arrayIndex: number | null } | null }> };

export type LinkHistoryQueryVariables = Exact<{
  from: string;
  to: string;
}>;


export type LinkHistoryQuery = { links: { nodes: Array<{ bandwidthMbPerS: number, rttS: number, loss: number, measuredAt: string, source: LinkSource, history: Array<{ measuredAt: string, bandwidthMbPerS: number, rttS: number, loss: number }>, from: { id: string, name: string }, to: { id: string, name: string } }> } };

export type CreateDatasetMutationVariables = Exact<{
  input: DatasetInput;
}>;


export type CreateDatasetMutation = { createDataset: { id: string, name: string, sizeMb: number, createdAt: string, replicas: Array<{ id: string, name: string }> } };

export type UpdateDatasetMutationVariables = Exact<{
  input: UpdateDatasetInput;
}>;


export type UpdateDatasetMutation = { updateDataset: { id: string, name: string, sizeMb: number, createdAt: string, replicas: Array<{ id: string, name: string }> } };

export type RemoveDatasetMutationVariables = Exact<{
  dataset: string;
}>;


export type RemoveDatasetMutation = { removeDataset: { id: string } };

export type SetReplicasMutationVariables = Exact<{
  dataset: string;
  add: Array<string> | string;
  remove: Array<string> | string;
}>;


export type SetReplicasMutation = { setReplicas: { id: string, name: string, sizeMb: number, createdAt: string, replicas: Array<{ id: string, name: string }> } };

export type SetLinksMutationVariables = Exact<{
  links: Array<LinkInput> | LinkInput;
}>;


export type SetLinksMutation = { setLinks: Array<{ bandwidthMbPerS: number, rttS: number, loss: number, measuredAt: string, source: LinkSource, from: { id: string, name: string }, to: { id: string, name: string } }> };


export const DatasetsDocument =
  "query Datasets($name: String, $first: Int!, $after: String) { datasets(name: $name, first: $first, after: $after) { nodes { ...DatasetParts } pageInfo { hasNextPage endCursor } } } fragment DatasetParts on Dataset { id name sizeMb createdAt replicas { id name } }" as unknown as TypedDocumentNode<DatasetsQuery, DatasetsQueryVariables>;

export const DataSitesDocument =
  "query DataSites { sites(first: 200) { nodes { id name } } }" as unknown as TypedDocumentNode<DataSitesQuery, DataSitesQueryVariables>;

export const LinksDocument =
  "query Links { links(first: 2000) { nodes { ...LinkParts } } } fragment LinkParts on Link { bandwidthMbPerS rttS loss measuredAt source from { id name } to { id name } }" as unknown as TypedDocumentNode<LinksQuery, LinksQueryVariables>;

export const TransfersDocument =
  "query Transfers { transfers(first: 200) { sizeMb startsAt endsAt dataset { id name } from { id name } to { id name } job { id name application arrayIndex } } }" as unknown as TypedDocumentNode<TransfersQuery, TransfersQueryVariables>;

export const LinkHistoryDocument =
  "query LinkHistory($from: ID!, $to: ID!) { links(from: $from, to: $to, first: 1) { nodes { ...LinkParts history(first: 100) { measuredAt bandwidthMbPerS rttS loss } } } } fragment LinkParts on Link { bandwidthMbPerS rttS loss measuredAt source from { id name } to { id name } }" as unknown as TypedDocumentNode<LinkHistoryQuery, LinkHistoryQueryVariables>;

export const CreateDatasetDocument =
  "mutation CreateDataset($input: DatasetInput!) { createDataset(input: $input) { ...DatasetParts } } fragment DatasetParts on Dataset { id name sizeMb createdAt replicas { id name } }" as unknown as TypedDocumentNode<CreateDatasetMutation, CreateDatasetMutationVariables>;

export const UpdateDatasetDocument =
  "mutation UpdateDataset($input: UpdateDatasetInput!) { updateDataset(input: $input) { ...DatasetParts } } fragment DatasetParts on Dataset { id name sizeMb createdAt replicas { id name } }" as unknown as TypedDocumentNode<UpdateDatasetMutation, UpdateDatasetMutationVariables>;

export const RemoveDatasetDocument =
  "mutation RemoveDataset($dataset: ID!) { removeDataset(dataset: $dataset) { id } }" as unknown as TypedDocumentNode<RemoveDatasetMutation, RemoveDatasetMutationVariables>;

export const SetReplicasDocument =
  "mutation SetReplicas($dataset: ID!, $add: [ID!]!, $remove: [ID!]!) { setReplicas(dataset: $dataset, add: $add, remove: $remove) { ...DatasetParts } } fragment DatasetParts on Dataset { id name sizeMb createdAt replicas { id name } }" as unknown as TypedDocumentNode<SetReplicasMutation, SetReplicasMutationVariables>;

export const SetLinksDocument =
  "mutation SetLinks($links: [LinkInput!]!) { setLinks(links: $links) { ...LinkParts } } fragment LinkParts on Link { bandwidthMbPerS rttS loss measuredAt source from { id name } to { id name } }" as unknown as TypedDocumentNode<SetLinksMutation, SetLinksMutationVariables>;
