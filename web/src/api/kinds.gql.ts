// Generated from web/src/api/kinds.graphql by scripts/codegen-documents.mjs. Do not edit.
import type { TypedDocumentNode } from 'urql';
/** Internal type. DO NOT USE DIRECTLY. */
type Exact<T extends { [key: string]: unknown }> = { [K in keyof T]: T[K] };
/** Internal type. DO NOT USE DIRECTLY. */
export type Incremental<T> = T | { [P in keyof T]?: P extends ' $fragmentName' | '__typename' ? T[P] : never };
export type PolicyFieldType =
  | 'NUMBER'
  | 'INTEGER'
  | 'BOOLEAN'
  | 'CHOICE'
  | 'NUMBERS';

export type TermUnit =
  | 'S'
  | 'JOBS'
  | 'CPUS'
  | 'SHARE'
  | 'AT'
  | 'MB'
  | 'JOB';

export type TermOrder =
  | 'LOW'
  | 'HIGH';

export type PolicyFieldPartsFragment = { path: string, label: string, about: string, unit: string | null, type: PolicyFieldType, min: number | null, max: number | null, isAboveMin: boolean, isBelowMax: boolean, options: Array<string> | null, isNullable: boolean, isOptional: boolean };

export type PolicyTermPartsFragment = { name: string, label: string, about: string | null, unit: TermUnit | null, better: TermOrder | null };

export type PolicyKindPartsFragment = { kind: string, label: string, about: string, document: unknown, fields: Array<{ path: string, label: string, about: string, unit: string | null, type: PolicyFieldType, min: number | null, max: number | null, isAboveMin: boolean, isBelowMax: boolean, options: Array<string> | null, isNullable: boolean, isOptional: boolean }>, terms: Array<{ name: string, label: string, about: string | null, unit: TermUnit | null, better: TermOrder | null }> };

export type PolicyKindsQueryVariables = Exact<{ [key: string]: never; }>;


export type PolicyKindsQuery = { policyKinds: { dispatch: Array<{ kind: string, label: string, about: string, document: unknown, fields: Array<{ path: string, label: string, about: string, unit: string | null, type: PolicyFieldType, min: number | null, max: number | null, isAboveMin: boolean, isBelowMax: boolean, options: Array<string> | null, isNullable: boolean, isOptional: boolean }>, terms: Array<{ name: string, label: string, about: string | null, unit: TermUnit | null, better: TermOrder | null }> }>, local: Array<{ kind: string, label: string, about: string, document: unknown, fields: Array<{ path: string, label: string, about: string, unit: string | null, type: PolicyFieldType, min: number | null, max: number | null, isAboveMin: boolean, isBelowMax: boolean, options: Array<string> | null, isNullable: boolean, isOptional: boolean }>, terms: Array<{ name: string, label: string, about: string | null, unit: TermUnit | null, better: TermOrder | null }> }>, general: Array<{ path: string, label: string, about: string, unit: string | null, type: PolicyFieldType, min: number | null, max: number | null, isAboveMin: boolean, isBelowMax: boolean, options: Array<string> | null, isNullable: boolean, isOptional: boolean }>, numbers: Array<{ name: string, label: string, about: string | null, unit: TermUnit | null, better: TermOrder | null }> } };


export const PolicyKindsDocument =
  "query PolicyKinds { policyKinds { dispatch { ...PolicyKindParts } local { ...PolicyKindParts } general { ...PolicyFieldParts } numbers { ...PolicyTermParts } } } fragment PolicyFieldParts on PolicyField { path label about unit type min max isAboveMin isBelowMax options isNullable isOptional } fragment PolicyTermParts on PolicyTerm { name label about unit better } fragment PolicyKindParts on PolicyKind { kind label about document fields { ...PolicyFieldParts } terms { ...PolicyTermParts } }" as unknown as TypedDocumentNode<PolicyKindsQuery, PolicyKindsQueryVariables>;
