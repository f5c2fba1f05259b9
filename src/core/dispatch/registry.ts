/** The dispatch policies, by the kind that a policy document names. */
import { z } from 'zod';
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
  dispatchKinds.map(({ schema }) => schema) as unknown as Schemas<typeof dispatchKinds>,
);
export type DispatchPolicy = z.infer<typeof dispatchPolicySchema>;

export const DEFAULT_DISPATCH = DEFAULT_TWO_LEVEL satisfies DispatchPolicy;

const byKind = new Map<string, DispatchKind>(
  dispatchKinds.map((kind) => [kind.schema.shape.kind.value, kind as DispatchKind]),
);

const added: DispatchKind[] = [];
/** Kinds from outside of the product; see {@link addDispatchKind}. */
export const addedDispatchKinds: readonly DispatchKind[] = added;

/** Lets documents that are read from now on name a kind that the product does not have. Throws if there is one of its name. */
export function addDispatchKind(kind: DispatchKind): void {
  const name = kind.schema.shape.kind.value;
  if (byKind.has(name)) throw new Error(`there is a dispatch policy "${name}" already`);
  byKind.set(name, kind);
  added.push(kind);
}

/** Of a document that may name kinds that were added. */
export const anyDispatchPolicySchema = (): typeof dispatchPolicySchema =>
  added.length === 0
    ? dispatchPolicySchema
    : (z.discriminatedUnion(
        'kind',
        [...byKind.values()].map(({ schema }) => schema) as never,
      ) as unknown as typeof dispatchPolicySchema);

/** What the document of a dispatch policy names. */
export const dispatchKindOf = ({ kind }: DispatchPolicy): DispatchKind => byKind.get(kind) as DispatchKind;

/** The kinds that send jobs in batches. */
export const kindsInBatches: readonly string[] = dispatchKinds
  .filter((kind: DispatchKind) => kind.inBatches)
  .map(({ schema }) => schema.shape.kind.value);
