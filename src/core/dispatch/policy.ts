/**
 * The seam for dispatch policies. A policy looks at the grid once (when its pass is begun) and then decides on the jobs that wait,
 * into a plan. The grid is only read: what the pass has decided it keeps in mind for what it decides next.
 *
 * To add one: a folder beside this file that defines a `DispatchKind`, and its name in the list of registry.ts. What it wants to know
 * of the grid from cycle to cycle it keeps in an index (`Grid.index`) in its folder.
 */
import type { z } from 'zod';
import type { TermWords } from '../described.js';
import type { Grid, SiteEntry } from '../grid/grid.js';
import type { KindWords, LocalOrder, RulesSchema } from '../local/policy.js';
import type { DispatchExplanation, Job, Move } from '../model.js';
import { ReasonCode, type WaitingReason } from '../reasons.js';
import type { Eligibility } from '../resources/eligibility.js';
import type { Standings } from '../terms/quota.js';

/** What a policy says of one job. */
export interface Choice {
  /** null: it stays at the root, for the reason. */
  site: SiteEntry | null;
  priority: number;
  reason: ReasonCode;
  explanation: DispatchExplanation;
}

/** Why a job waits. */
export interface Why {
  code: WaitingReason;
  numbers: Record<string, number>;
  /** What else than the reason's own could bring it on, in sentences. */
  changes?: string[];
}

export interface DispatchPass {
  /** Decides on every waiting job, into the plan, as long as the plan has room. */
  decide(plan: PlanBuilder): void;
  /** Where the job would go if it came next: dry runs and explanations. `eligibility` names at least one site. */
  choose(job: Job, eligibility: Eligibility): Choice;
  /** After `decide`: why one that some site can take was not moved. Unless given, `choose` tells. */
  whyWaits?(job: Job): Why;
  /** Of a job in a site's meta-queue: why it is still there. */
  whyInMeta?(job: Job, entry: SiteEntry): Why;
}

/** What a pass is begun with. */
export interface DispatchLook {
  readonly grid: Grid;
  readonly now: number;
  readonly seed: number;
}

/** By scheduler between the root and sites; null: the root. */
export type TreeView = Map<number | null, SchedulerView>;

/** A scheduler as it stands (grid-tree.md). */
export interface SchedulerView {
  /** Jobs that nobody below has been given. */
  holds: number;
  /** Jobs that have not started, here or below. */
  waiting: number;
  channels: ChannelView[];
}

export interface ChannelView {
  port: number;
  power: number;
  /** Its bag: what the machines below can run, and how many jobs of the tree ask for it. */
  classes: {
    os: string | null;
    architecture: string | null;
    licenses: readonly string[];
    tasks: number;
    cpusPerTask: number;
    memoryMbPerTask: number;
    jobs: number;
  }[];
  /** Channels of those below that it is made of, and how many jobs these have been given. */
  branches: {
    siteId: number | null;
    schedulerId: number | null;
    port: number;
    power: number;
    jobs: number;
  }[];
}

/** A kind of dispatch policy: all that there is to say of it. */
export interface DispatchKind<S extends RulesSchema = RulesSchema> extends KindWords<S> {
  /** Of its document, with bounds and words. */
  readonly schema: S;
  begin(look: DispatchLook, rules: z.infer<S>): DispatchPass;
  /** By what a site orders its queue, where its local policy leaves it to the root's. */
  localOrder(rules: z.infer<S>): LocalOrder;
  /**
   * It holds jobs back until sites have room: how many jobs wait in a site's local queue at most. Without it every job is sent on at
   * once.
   */
  queueLimit?(rules: z.infer<S>): number;
  /** Jobs may wait in meta-queues: its cycles serve them. */
  readonly servesMeta?: true;
  /** Sites ask for work: one with free CPUs is the business of the root, whoever has the jobs that wait. */
  readonly sitesAsk?: true;
  /** What one cycle sends to a site is a batch, which its jobs name. */
  readonly inBatches?: true;
  /** It looks at what runs have shown (`JobHistory`). */
  readonly learns?: true;
  /** While jobs wait in meta-queues its answers change with time alone, for so many seconds after the last other change. */
  restlessS?(rules: z.infer<S>): number;
  /** When it calls a site congested, by what came and was served in a window of time. */
  congestion?(rules: z.infer<S>): { windowS: number; threshold: number };
  /**
   * What users' quotas make of the jobs that wait, for each scheduler that holds some back: a site's, or the root (null). Without it,
   * or without any, the policy does not go by quotas.
   */
  standings?(grid: Grid, rules: z.infer<S>): { siteId: number | null; standings: Standings }[];
  /** Where jobs go through schedulers between the root and sites: how these stand. */
  tree?(look: DispatchLook, rules: z.infer<S>): TreeView;
}

/** Words of the limit that several kinds have. */
export const QUEUE_LIMIT = {
  title: "Jobs in a site's queue",
  description:
    'Maximum number of jobs waiting at a site; further jobs are held in front of it and can still go elsewhere.',
  unit: 'jobs',
};
/** Words of terms that several kinds have. */
export const QUEUED: TermWords[string] = {
  ...{ label: 'Queued', about: 'Jobs in its queue', unit: 'JOBS', better: 'LOW' },
};
export const ROOM: TermWords[string] = {
  ...{ label: 'Room', about: 'Jobs that its queue still accepts', unit: 'JOBS', better: 'HIGH' },
};

/** Gives a kind its type. */
export const dispatchKind = <S extends RulesSchema>(kind: DispatchKind<S>): DispatchKind<S> => kind;

/** What a cycle has decided until now. */
export class PlanBuilder {
  readonly moves: Move[] = [];
  readonly waitingByReason: Partial<Record<ReasonCode, number>> = {};
  truncated = false;

  constructor(private readonly maxMoves: number) {}

  /** No more moves: what is left waits for the next cycle (`cut`). */
  get full(): boolean {
    return this.moves.length >= this.maxMoves;
  }

  /** How many more moves the plan takes. */
  get room(): number {
    return this.maxMoves - this.moves.length;
  }

  /** A job that the root holds goes to a site's local queue, or stays. */
  take(job: Job, choice: Choice): void {
    const { site, priority, reason, explanation } = choice;
    if (site === null) this.wait(reason);
    else
      this.move({
        jobId: job.id,
        from: null,
        to: site.site.id,
        queue: 'LOCAL',
        priority,
        reason,
        explanation,
      });
  }

  move(move: Move): void {
    this.moves.push(move);
  }

  wait(reason: ReasonCode, jobs = 1): void {
    if (jobs > 0) this.waitingByReason[reason] = (this.waitingByReason[reason] ?? 0) + jobs;
  }

  /** When these moves are applied there is more to decide: the cycle should run again. */
  goesOn(): void {
    this.truncated = true;
  }

  /** The limit was reached with so many jobs not looked at. */
  cut(jobs: number): void {
    this.wait(ReasonCode.MOVE_LIMIT, jobs);
    this.truncated ||= jobs > 0;
  }
}
