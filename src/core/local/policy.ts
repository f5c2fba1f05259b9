/**
 * The seam for local policies: each is an order of the queue and a rule for what may start out of turn. To add one: a folder beside
 * this file that defines a `LocalKind`, and its name in the list of registry.ts.
 *
 * Where it is not known when runs end (time-shared machines, a limit of runs) nothing can be reserved. There, policies that
 * start jobs out of turn only beside a reservation start none out of turn: the first that does not fit stops all behind it.
 */
import type { z } from 'zod';
import type { TermWords } from '../described.js';
import { type Grid, SiteMemory } from '../grid/grid.js';
import type { Allocation, Job, PoolAmount } from '../model.js';
import type { Opening } from '../resources/future.js';
import type { Timeline } from '../resources/timeline.js';
import type { SitePass } from './pass.js';
import type { Walk } from './walk.js';

/** By what a site orders its queue where its policy leaves it to the root's: see `DispatchKind.localOrder`. */
export type LocalOrder = 'PRIORITY' | 'OWN_PRIORITY' | 'ARRIVAL';

export interface LocalScheduler {
  /** The order in which jobs are tried. */
  walk(pass: SitePass): Walk;
  /** Decides the starts and the reservation, into the pass. */
  decide(pass: SitePass, walk: Walk): void;
}

/** The document of a policy of some kind. */
export type RulesSchema = z.ZodType<{ kind: string }> & { shape: { kind: z.ZodLiteral<string> } };

/** What is said of a kind to people: in docs/operations/policies.md, and by the query `policyKinds`. */
export interface KindWords<S extends RulesSchema> {
  /** A name, such as `EASY backfilling`. */
  readonly label: string;
  /** What it does, in a sentence. */
  readonly about: string;
  /** The document to begin with; absent: what the schema makes of the kind alone. */
  readonly initial?: z.infer<S>;
  /** Terms of its decisions. */
  readonly terms?: TermWords;
}

/** A kind of local policy. */
export interface LocalKind<S extends RulesSchema = RulesSchema> extends KindWords<S> {
  /** Of its document, with bounds and words. */
  readonly schema: S;
  scheduler(rules: z.infer<S>, order: LocalOrder): LocalScheduler;
  /** The site schedules itself: as many of our jobs may wait with its scheduler. Without it the policy chooses machines. */
  handsOver?(rules: z.infer<S>): number;
  /** The same: those that its scheduler has had for so many seconds are taken back where another site can start them; null: none is. */
  recallsAfterS?(rules: z.infer<S>): number | null;
  /** A policy that promises starts: makes of promises as they were stored what its next cycle goes on from. */
  restore?(grid: Grid, siteId: number, image: PromisesImage): PromisingMemory;
  /**
   * The same: when a job of the site's queue, or one that would join it now, starts by what the site has promised. Null: it has
   * promised nothing, others wait without a promise, or its available machines cannot run the job.
   */
  startOf?(grid: Grid, view: Timeline, job: Job): Opening | null;
}

/** Gives a kind its type. */
export const localKind = <S extends RulesSchema>(kind: LocalKind<S>): LocalKind<S> => kind;

/** A memory that has to outlive the process. */
export abstract class PromisingMemory extends SiteMemory {
  abstract image(): PromisesImage;
}

/** What was free behind the starts of the cycle that promised. When there is more, promises may move up. */
export interface FreeAtPromise {
  /** Live runs of the site. Only its own cycles make more of them. */
  runs: number;
  /** What is free on available machines in all, by name of the kind of resource. */
  amounts: Readonly<Record<string, number>>;
  /** Copies of each pool (by id) that a promised job could use, free and claimed by no other site. */
  copies: [licenseId: number, free: number][];
  /** A hash of what was held, by windows, reservations and for jobs: promises may move up when another one is. */
  held?: number;
}

/** Promised starts as plain data, for a store. */
export interface PromisesImage {
  room: FreeAtPromise;
  /** In the order of the queue. */
  jobs: PromiseImage[];
}

export interface PromiseImage {
  jobId: number;
  /** Seconds, as all times. */
  at: number;
  allocations: Allocation[];
  pools: readonly PoolAmount[];
  /** estimate·benchmark of the job. */
  work: number;
  madeAt: number;
}
