/** The local policies, by the kind that a policy document names. */
import { z } from 'zod';
import type { Grid, SiteMemory } from '../grid/grid.js';
import { Kinds } from '../kinds.js';
import { conservative } from './conservative/conservative.js';
import { easy } from './easy/easy.js';
import { external } from './external/external.js';
import { fcfs } from './fcfs/fcfs.js';
import { firstFit } from './first-fit/first-fit.js';
import { DEFAULT_FLEXIBLE, flexible } from './flexible/flexible.js';
import { hybrid } from './hybrid/hybrid.js';
import { type LocalKind, type PromisesImage, PromisingMemory } from './policy.js';
import { sjf } from './sjf/sjf.js';

/** To add one: its name here. Everything else follows from what it defines. */
export const localKinds = [flexible, easy, hybrid, conservative, fcfs, sjf, firstFit, external] as const;

type Schemas<T extends readonly { schema: unknown }[]> = { readonly [K in keyof T]: T[K]['schema'] };

/** How a site orders its queue and fills its machines. */
export const localPolicySchema = z.discriminatedUnion(
  'kind',
  // A tuple's types, which `map` does not keep: each kind has its own schema.
  localKinds.map(({ schema }) => schema) as unknown as Schemas<typeof localKinds>,
);
export type LocalPolicy = z.infer<typeof localPolicySchema>;

export const DEFAULT_LOCAL = DEFAULT_FLEXIBLE satisfies LocalPolicy;

const kinds = new Kinds<LocalKind>('local', localKinds as readonly LocalKind[]);

/** Kinds from outside of the product; see {@link Kinds.add}. */
export const addedLocalKinds = kinds.added;

/** See {@link Kinds.add}. */
export const addLocalKind = (kind: LocalKind): void => kinds.add(kind);

/** Of a document that may name kinds that were added. */
export const anyLocalPolicySchema = (): typeof localPolicySchema => kinds.schema(localPolicySchema);

/** What a local policy's document names. */
export const localKindOf = (policy: { readonly kind: string }): LocalKind => kinds.of(policy);

/** Whether a site with this policy promises starts, which its driver has to keep from cycle to cycle. */
export const keepsPromises = (local: { readonly kind: string }): boolean =>
  localKindOf(local).restore !== undefined;

/** As many of our jobs may wait with a site's own scheduler; null: the site has none, the policy chooses machines. */
export const handOverLimit = (local: { readonly kind: string }): number | null =>
  localKindOf(local).handsOver?.(local) ?? null;

/** Jobs that a site's own scheduler has had for so long may be taken back, seconds; null: they stay. */
export const recallsAfterS = (local: { readonly kind: string }): number | null =>
  localKindOf(local).recallsAfterS?.(local) ?? null;

/** The promises of a plan, or of a site, as plain data; null: none. */
export function imageOf(memory: SiteMemory | null): PromisesImage | null {
  const image = memory instanceof PromisingMemory ? memory.image() : null;
  return image === null || image.jobs.length === 0 ? null : image;
}

/** The promises of a site with such a policy, of the grid as it is `now`. Left out is what is no more. */
export function promisesFrom(
  grid: Grid,
  siteId: number,
  local: { readonly kind: string },
  image: PromisesImage,
  now: number,
): SiteMemory | null {
  // A job that asks for less from now on is to find its promise, not to lose it to the cycle that tells the grid the time.
  grid.advance(now);
  return localKindOf(local).restore?.(grid, siteId, image) ?? null;
}
