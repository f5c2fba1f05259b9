/** The quota groups of a meta-queue in order of what they demand, and what the first so many of them add up to. */
import { type ExactSum, ExactSums } from '../../structures/exact-sum.js';
import { countUpTo } from '../../structures/search.js';

/** A group that is ranked. It changes only while it is taken out. */
export interface Demanding {
  /** Of its jobs, and how many they are. */
  readonly work: ExactSum;
  /** See `QueueOrder`. */
  demand: number;
}

export class Ranking<G extends Demanding> {
  /** Of the groups. */
  private readonly demands: number[];
  /** Jobs and work of the first so many groups, that of none at 0. */
  private readonly jobs = [0];
  private work: ExactSums;

  /** `ranked`: the first groups, in any order. */
  constructor(private readonly ranked: G[]) {
    ranked.sort((a, b) => a.demand - b.demand);
    this.demands = ranked.map(({ demand }) => demand);
    this.work = new ExactSums(2 * ranked.length + 2);
    for (const [i, { work }] of ranked.entries()) {
      this.jobs.push((this.jobs[i] as number) + work.count);
      this.work.addSums(i + 1, this.work, i, 1);
      this.work.addSums(i + 1, work.sums, 0, 1);
    }
  }

  get groups(): readonly G[] {
    return this.ranked;
  }

  add(group: G): void {
    const { ranked, demands, jobs } = this;
    const at = this.firstTo(group.demand);
    ranked.splice(at, 0, group);
    demands.splice(at, 0, group.demand);
    jobs.splice(at, 0, jobs[at] as number);
    const { length } = jobs;
    if (length > this.work.length) this.grow();
    this.work.copyWithin(at + 1, at, length - 1);
    this.change(group, at, 1);
  }

  remove(group: G): void {
    const { ranked, demands, jobs } = this;
    let at = this.firstTo(group.demand) - 1;
    while (ranked[at] !== group) at--;
    this.change(group, at, -1);
    this.work.copyWithin(at, at + 1, jobs.length);
    ranked.splice(at, 1);
    demands.splice(at, 1);
    jobs.splice(at, 1);
  }

  /** How many groups demand no more than this. */
  firstTo(demand: number): number {
    return countUpTo(this.demands, demand);
  }

  /** Jobs of the first so many groups. */
  jobsOf(groups: number): number {
    return this.jobs[groups] as number;
  }

  /** Work of the first so many groups and, if any, of others, to which it is added. */
  workOf(groups: number, others: ExactSums | null): number {
    if (others === null) return this.work.valueOf(groups);
    others.addSums(0, this.work, groups, 1);
    return others.valueOf(0);
  }

  /** The group counts in all sums that go beyond it. */
  private change({ work }: G, at: number, sign: 1 | -1): void {
    const { jobs } = this;
    for (let i = at + 1; i < jobs.length; i++) jobs[i] = (jobs[i] as number) + sign * work.count;
    this.work.addToEach(at + 1, jobs.length, work.sums, sign);
  }

  private grow(): void {
    const { work } = this;
    this.work = new ExactSums(2 * work.length);
    this.work.addSums(0, work, 0, work.length);
  }
}
