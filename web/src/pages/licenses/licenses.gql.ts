// Generated from web/src/pages/licenses/licenses.graphql by scripts/codegen-documents.mjs. Do not edit.
import type { TypedDocumentNode } from 'urql';
/** Internal type. DO NOT USE DIRECTLY. */
type Exact<T extends { [key: string]: unknown }> = { [K in keyof T]: T[K] };
/** Internal type. DO NOT USE DIRECTLY. */
export type Incremental<T> = T | { [P in keyof T]?: P extends ' $fragmentName' | '__typename' ? T[P] : never };
export type RegisterLicenseInput = {
  kind: string;
  copies: number;
  site?: string | null | undefined;
};

export type UpdateLicenseInput = {
  license: string;
  copies: number;
};

export type LicensesQueryVariables = Exact<{ [key: string]: never; }>;


export type LicensesQuery = { licenses: { nodes: Array<{ id: string, kind: string, copies: number, inUse: number, site: { id: string, name: string } | null }> } };

export type LicenseDemandQueryVariables = Exact<{
  kind: string;
}>;


export type LicenseDemandQuery = { jobCount: number };

export type LicenseWaitingQueryVariables = Exact<{
  kind: string;
}>;


export type LicenseWaitingQuery = { jobs: { nodes: Array<{ id: string, name: string | null, application: string, arrayIndex: number | null, submittedAt: string, user: { id: string, name: string }, site: { id: string, name: string } | null }>, pageInfo: { hasNextPage: boolean } } };

export type LicensePartsFragment = { id: string, kind: string, copies: number, inUse: number, site: { id: string, name: string } | null };

export type LicenseSitesQueryVariables = Exact<{ [key: string]: never; }>;


export type LicenseSitesQuery = { sites: { nodes: Array<{ id: string, name: string }> } };

export type RegisterLicenseMutationVariables = Exact<{
  input: RegisterLicenseInput;
}>;


export type RegisterLicenseMutation = { registerLicense: { id: string, kind: string, copies: number, inUse: number, site: { id: string, name: string } | null } };

export type UpdateLicenseMutationVariables = Exact<{
  input: UpdateLicenseInput;
}>;


export type UpdateLicenseMutation = { updateLicense: { id: string, kind: string, copies: number, inUse: number, site: { id: string, name: string } | null } };

export type RemoveLicenseMutationVariables = Exact<{
  license: string;
}>;


export type RemoveLicenseMutation = { removeLicense: { id: string } };

export type LicenseHistoryQueryVariables = Exact<{
  kind: string;
  from: string;
  to: string;
  points: number;
}>;


export type LicenseHistoryQuery = { licenseHistory: Array<{ at: string, inUse: number }> };


export const LicensesDocument =
  "query Licenses { licenses(first: 1000) { nodes { ...LicenseParts } } } fragment LicenseParts on License { id kind copies inUse site { id name } }" as unknown as TypedDocumentNode<LicensesQuery, LicensesQueryVariables>;

export const LicenseDemandDocument =
  "query LicenseDemand($kind: String!) { jobCount(filter: {states: [QUEUED, DISPATCHED], license: $kind}) }" as unknown as TypedDocumentNode<LicenseDemandQuery, LicenseDemandQueryVariables>;

export const LicenseWaitingDocument =
  "query LicenseWaiting($kind: String!) { jobs(filter: {states: [QUEUED, DISPATCHED], license: $kind}, first: 100) { nodes { id name application arrayIndex submittedAt user { id name } site { id name } } pageInfo { hasNextPage } } }" as unknown as TypedDocumentNode<LicenseWaitingQuery, LicenseWaitingQueryVariables>;

export const LicenseSitesDocument =
  "query LicenseSites { sites(first: 200) { nodes { id name } } }" as unknown as TypedDocumentNode<LicenseSitesQuery, LicenseSitesQueryVariables>;

export const RegisterLicenseDocument =
  "mutation RegisterLicense($input: RegisterLicenseInput!) { registerLicense(input: $input) { ...LicenseParts } } fragment LicenseParts on License { id kind copies inUse site { id name } }" as unknown as TypedDocumentNode<RegisterLicenseMutation, RegisterLicenseMutationVariables>;

export const UpdateLicenseDocument =
  "mutation UpdateLicense($input: UpdateLicenseInput!) { updateLicense(input: $input) { ...LicenseParts } } fragment LicenseParts on License { id kind copies inUse site { id name } }" as unknown as TypedDocumentNode<UpdateLicenseMutation, UpdateLicenseMutationVariables>;

export const RemoveLicenseDocument =
  "mutation RemoveLicense($license: ID!) { removeLicense(license: $license) { id } }" as unknown as TypedDocumentNode<RemoveLicenseMutation, RemoveLicenseMutationVariables>;

export const LicenseHistoryDocument =
  "query LicenseHistory($kind: String!, $from: DateTime!, $to: DateTime!, $points: Int!) { licenseHistory(kind: $kind, from: $from, to: $to, points: $points) { at inUse } }" as unknown as TypedDocumentNode<LicenseHistoryQuery, LicenseHistoryQueryVariables>;
