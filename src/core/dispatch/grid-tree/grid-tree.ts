/**
 * The grid tree (AlZoubi and Dandamudi; exact rules: grid-tree.md): schedulers in a tree, of which the sites are the leaves. Sites with free
 * CPUs ask for work, and it is pushed down to them by shares; butterfly, fallback and load-balance move what waits.
 *
 * A job waits at the root, at a scheduler between it and sites, or at a leaf: in the meta-queue of the site, from which it can still go
 * elsewhere. See live-tree.ts for how a pass comes to its moves.
 */
import type { SiteEntry } from '../../grid/grid.js';
import type { DispatchExplanation, Job, Move } from '../../model.js';
import { ReasonCode } from '../../reasons.js';
import { type Eligibility, whyNotUp } from '../../resources/eligibility.js';
import {
  type Choice,
  type DispatchLook,
  type DispatchPass,
  dispatchKind,
  type PlanBuilder,
  type Why,
} from '../policy.js';
import { LiveTree, type SiteTerms, type TreeJob } from './live-tree.js';
import { type Rules, schema } from './rules.js';
import { viewOf } from './view.js';

export const gridTree = dispatchKind({
  schema,
  label: 'Grid tree',
  about:
    'Down a tree of schedulers to the sites that request work, to each branch in proportion to its power; at a site, to the local queue when they can start (AlZoubi et al.).',
  terms: {
    unmet: { label: 'Preferences not met', better: 'LOW' },
    distanceKm: { label: 'Distance, km', better: 'LOW' },
    power: { label: 'Power', about: 'Of the branch', better: 'HIGH' },
    waiting: { label: 'Waiting', about: 'Jobs in its meta-queue', unit: 'JOBS', better: 'LOW' },
  },
  begin: (look, rules) => new GridTreePass(look, rules),
  localOrder: () => 'ARRIVAL',
  queueLimit: (rules) => rules.queueLimit,
  servesMeta: true,
  sitesAsk: true,
  tree: viewOf,
});

class GridTreePass implements DispatchPass {
  /** Σ by group of like jobs: what they find at the sites. */
  private readonly terms = new Map<string, Pick<DispatchExplanation, 'sites' | 'terms'>>();

  constructor(
    private readonly look: DispatchLook,
    private readonly rules: Rules,
  ) {}

  decide(plan: PlanBuilder): void {
    const tree = this.begin();
    tree.run();
    const moved = tree.moved.filter((one) => one.claimed || isElsewhere(one)).sort(byPlace);
    // Those that can start come first, should the plan be full before its end.
    for (const one of moved) if (one.claimed) this.move(plan, tree, one);
    for (const one of moved) if (!one.claimed) this.move(plan, tree, one);
    const fromMeta = moved.filter(({ from }) => from.siteId !== null).length;
    plan.wait(ReasonCode.META_QUEUE, tree.inMeta - fromMeta);
    plan.wait(ReasonCode.NO_BRANCH_ASKS, tree.jobs.size - tree.inMeta - (moved.length - fromMeta));
    for (const { waiting } of tree.nowhere.values()) plan.wait(waiting as ReasonCode);
    for (const { site, meta } of this.look.grid.sites) {
      const reason = whyNotUp(site.state);
      if (reason !== null) plan.wait(reason, meta.length);
    }
  }

  choose(job: Job, eligibility: Eligibility): Choice {
    const tree = this.begin(job);
    tree.run();
    const one = tree.jobs.get(job.id) as TreeJob;
    const { siteId } = one.at;
    return {
      site: siteId === null ? null : this.look.grid.siteEntry(siteId),
      priority: 0,
      reason:
        siteId === null ? ReasonCode.NO_BRANCH_ASKS : (one.steps.at(-1)?.reason ?? ReasonCode.META_QUEUE),
      explanation: { ...this.explain(tree, one), ineligible: eligibility.ineligible },
    };
  }

  whyWaits(job: Job): Why {
    const tree = this.begin();
    const { requirement } = tree.jobs.get(job.id) as TreeJob;
    let ahead = 0;
    let alike = 0;
    for (const { job: other, requirement: of } of tree.jobs.values()) {
      if (other.id === job.id) continue;
      if (isBefore(other, job)) ahead++;
      if (of === requirement) alike++;
    }
    const numbers = { waiting: tree.jobs.size, ahead, alike, treeMoves: job.treeMoves };
    return { code: ReasonCode.NO_BRANCH_ASKS, numbers };
  }

  whyInMeta(job: Job, { queue, meta }: SiteEntry): Why {
    let ahead = 0;
    for (const slot of meta.slots()) if (isBefore(meta.jobs[slot] as Job, job)) ahead++;
    const numbers = {
      ahead,
      queued: queue.length,
      queueLimit: this.rules.queueLimit,
      metaQueued: meta.length,
      treeMoves: job.treeMoves,
    };
    return {
      code: ReasonCode.META_QUEUE,
      numbers,
      changes: [
        'Another branch of the tree requests work, and the job fits better there, or this branch has more than its portion.',
      ],
    };
  }

  private begin(also: Job | null = null): LiveTree {
    const tree = this.look.grid.index(LiveTree);
    tree.begin(this.look, this.rules, also);
    return tree;
  }

  private move(plan: PlanBuilder, tree: LiveTree, one: TreeJob): void {
    if (plan.full) {
      plan.cut(1);
      return;
    }
    const { job, from, at, claimed, balanced } = one;
    const { siteId, schedulerId } = at;
    const about = {
      jobId: job.id,
      from: from.siteId,
      priority: 0,
      reason: one.steps.at(-1)?.reason as ReasonCode,
      explanation: this.explain(tree, one),
    };
    const move: Move =
      siteId === null
        ? { ...about, to: schedulerId, queue: 'SCHEDULER' }
        : { ...about, to: siteId, queue: claimed ? 'LOCAL' : 'META' };
    if (balanced > 0) move.treeMoves = job.treeMoves + balanced;
    plan.move(move);
  }

  private explain(tree: LiveTree, one: TreeJob): DispatchExplanation {
    const { eligibility, at, block, steps } = one;
    const { sites, terms } = this.termsOf(tree, one);
    return {
      sites,
      terms,
      compared: 2,
      candidates: at.siteId === null ? [] : [at.siteId],
      ineligible: eligibility.ineligible,
      level: null,
      priorityTerms: block,
      path: steps,
    };
  }

  private termsOf(tree: LiveTree, one: TreeJob): Pick<DispatchExplanation, 'sites' | 'terms'> {
    const group = tree.groupOf(one);
    let found = this.terms.get(group);
    if (found === undefined) {
      const sites: number[] = [];
      const terms: Record<keyof SiteTerms, number[]> = { unmet: [], distanceKm: [], power: [], waiting: [] };
      for (const siteId of one.eligibility.siteIds) {
        const there = tree.termsAt(siteId, one);
        if (there === null) continue;
        sites.push(siteId);
        terms.unmet.push(there.unmet);
        terms.distanceKm.push(there.distanceKm);
        terms.power.push(there.power);
        terms.waiting.push(there.waiting);
      }
      found = { sites, terms };
      this.terms.set(group, found);
    }
    return found;
  }
}

/** Whether it is to be told: what came back to where it was has not moved. */
const isElsewhere = ({ job, from, at }: TreeJob): boolean =>
  at.siteId !== from.siteId || at.schedulerId !== (from.siteId === null ? job.schedulerId : null);

/** Those of the root and above sites first, then by site; there in order of service. */
const byPlace = (a: TreeJob, b: TreeJob): number =>
  (a.from.siteId ?? 0) - (b.from.siteId ?? 0) || (isBefore(a.job, b.job) ? -1 : 1);

/** In order of service. */
const isBefore = (a: Job, b: Job): boolean =>
  (b.boost - a.boost || a.submittedAt - b.submittedAt || a.id - b.id) < 0;
