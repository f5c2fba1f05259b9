// Generated from web/src/parts/terms.graphql by scripts/codegen-documents.mjs. Do not edit.
/** Internal type. DO NOT USE DIRECTLY. */
export type Incremental<T> = T | { [P in keyof T]?: P extends ' $fragmentName' | '__typename' ? T[P] : never };
export type TermPartsFragment = { name: string, value: number };

export type CandidatePartsFragment = { eligible: boolean, reason: string | null, rank: number | null, terms: Array<{ name: string, value: number }>, site: { id: string, name: string } };

export type PlacementPartsFragment = { policyVersion: number, priority: number | null, startsAt: string | null, earliestStart: string | null, reason: string, message: string, jobTerms: Array<{ name: string, value: number }>, site: { id: string, name: string } | null, allocations: Array<{ tasks: number, machine: { id: string, name: string } }>, candidates: Array<{ eligible: boolean, reason: string | null, rank: number | null, terms: Array<{ name: string, value: number }>, site: { id: string, name: string } }> };

