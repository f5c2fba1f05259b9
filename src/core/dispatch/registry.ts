/** The dispatch policies, by the kind that a policy document names. */
import { z } from 'zod';
import { Kinds } from '../kinds.js';
import { mostFlops, random, roundRobin } from './baselines/baselines.js';
import { diana } from './diana/diana.js';
import { gridTree } from './grid-tree/grid-tree.js';
import { jobRatio } from './job-ratio/job-ratio.js';
import type { DispatchKind } from './policy.js';
import { queues } from './queues/queues.js';
import { DEFAULT_TWO_LEVEL, twoLevel } from './two-level/two-level.js';

/** To add one: its name here. Everything else follows from what it defines. */
export const dispatchKinds = [
  twoLevel,
  queues,
  jobRatio,
  diana,
  gridTree,
  roundRobin,
  random,
  mostFlops,
] as const;

type Schemas<T extends readonly { schema: unknown }[]> = { readonly [K in keyof T]: T[K]['schema'] };

/** How a scheduler with sites below it chooses among them. */
export const dispatchPolicySchema = z.discriminatedUnion(
  'kind',
  // A tuple's types, which `map` does not keep: each kind has its own schema.
  dispatchKinds.map(({ schema }) => schema) as unknown as Schemas<typeof dispatchKinds>,
);
export type DispatchPolicy = z.infer<typeof dispatchPolicySchema>;

export const DEFAULT_DISPATCH = DEFAULT_TWO_LEVEL satisfies DispatchPolicy;

const kinds = new Kinds<DispatchKind>('dispatch', dispatchKinds as readonly DispatchKind[]);

/** Kinds from outside of the product; see {@link Kinds.add}. */
export const addedDispatchKinds = kinds.added;

/** See {@link Kinds.add}. */
export const addDispatchKind = (kind: DispatchKind): void => kinds.add(kind);

/** Of a document that may name kinds that were added. */
export const anyDispatchPolicySchema = (): typeof dispatchPolicySchema => kinds.schema(dispatchPolicySchema);

/** What a dispatch policy's document names. */
export const dispatchKindOf = (policy: { readonly kind: string }): DispatchKind => kinds.of(policy);

/** The kinds that send jobs in batches. */
export const kindsInBatches: readonly string[] = dispatchKinds
  .filter((kind: DispatchKind) => kind.inBatches)
  .map(({ schema }) => schema.shape.kind.value);
