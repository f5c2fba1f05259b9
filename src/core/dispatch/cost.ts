/**
 * What it costs to run a job at a site (Anjum et al., section 5; exact rules: diana.md, "Where a new job goes"). All in
 * seconds, so that network, computation and data add up.
 *
 * Decisions. Work queued is counted over all processors of a job, so that divided by a site's power (Σ CPUs·benchmark) it
 * is the time that the site needs for it. Power and benchmark are those of the machines that are available and able to
 * run the job; a site's benchmark is the mean of its CPUs'. The job's kind weighs the terms in the total only.
 */
import { Transfers } from '../data/transfers.js';
import type { Grid } from '../grid.js';
import type { Job } from '../model.js';
import type { DianaPolicy } from '../policy.js';
import type { Requirement } from '../resources/requirements.js';
import { busyShare, SitePowers } from './power.js';

/** Aligned with the sites that were asked for. */
export interface CostTerms {
  total: number[];
  network: number[];
  computation: number[];
  data: number[];
}

export const noCosts = (sites: number): CostTerms => {
  const zeros = (): number[] => new Array(sites).fill(0);
  return { total: zeros(), network: zeros(), computation: zeros(), data: zeros() };
};

/** Which of the policy's weights `(α, β, γ)` hold for a job with this share of computation. */
export function weightsFor(computation: number, rules: DianaPolicy): DianaPolicy['weights']['both'] {
  if (computation >= rules.computationalFrom) return rules.weights.computational;
  return computation <= rules.dataIntensiveTo ? rules.weights.dataIntensive : rules.weights.both;
}

export class SiteCosts {
  private readonly powers: SitePowers;
  private readonly transfers: Transfers;
  /** Seconds that a site's busy CPUs cost, by position of the site. */
  private readonly loadS: number[];

  constructor(
    { sites, data }: Grid,
    private readonly rules: DianaPolicy,
  ) {
    this.powers = new SitePowers(sites);
    this.transfers = new Transfers(
      data,
      sites.map(({ site }) => site.id),
    );
    this.loadS = sites.map(({ resources }) => rules.loadPenaltyS * busyShare(resources));
  }

  /**
   * Adds what the job costs at the sites of these positions, before which so much work is queued, to `terms`.
   * `computation`: the job's share of it.
   */
  add(
    terms: CostTerms,
    job: Job,
    requirement: Requirement,
    computation: number,
    indices: readonly number[],
    workAhead: readonly number[],
  ): void {
    const weights = weightsFor(computation, this.rules);
    const { total, benchmark } = this.powers.of(requirement.signature);
    const work = job.estimate * job.benchmark;
    const moves = job.data !== null;
    const sandbox = this.transfers.sandboxS(job);
    const access = this.transfers.accessS(job);
    const output = this.transfers.returnS(job);
    for (let i = 0; i < indices.length; i++) {
      const site = indices[i] as number;
      const compute =
        (workAhead[i] as number) / (total[site] as number) +
        work / (benchmark[site] as number) +
        (this.loadS[site] as number);
      (terms.computation[i] as number) += compute;
      (terms.total[i] as number) += weights.computation * compute;
      if (!moves) continue;
      const network = sandbox[site] as number;
      const data = (access[site] as number) + (output[site] as number);
      (terms.network[i] as number) += network;
      (terms.data[i] as number) += data;
      (terms.total[i] as number) += weights.network * network + weights.data * data;
    }
  }
}
