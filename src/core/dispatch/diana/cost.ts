/**
 * What it costs to run a job at a site (Anjum et al., section 5; exact rules: diana.md, "Where a new job goes"). All in
 * seconds, so that network, computation and data add up.
 *
 * Decisions. Work queued is counted over all processors of a job, so that divided by a site's power (Σ CPUs·benchmark) it
 * is the time that the site needs for it. Power and benchmark are those of the machines that are available and able to
 * run the job; a site's benchmark is the mean of its CPUs'. The job's kind weighs the terms in the total only.
 */
import type { Grid } from '../../grid/grid.js';
import type { Requirement } from '../../grid/requirements.js';
import type { DispatchExplanation, Job } from '../../model.js';
import { busyShare, SitePowers } from '../../terms/power.js';
import { Transfers } from '../../terms/transfers.js';
import type { Rules } from './rules.js';

/** Aligned with the sites that were asked for. */
export interface CostTerms {
  total: readonly number[];
  network: readonly number[];
  computation: readonly number[];
  data: readonly number[];
}

/** Which of the policy's weights `(α, β, γ)` hold for a job with this share of computation. */
export function weightsFor(computation: number, rules: Rules): Rules['weights']['both'] {
  if (computation >= rules.computationalFrom) return rules.weights.computational;
  return computation <= rules.dataIntensiveTo ? rules.weights.dataIntensive : rules.weights.both;
}

export class SiteCosts {
  private readonly powers: SitePowers;
  private readonly transfers: Transfers;
  /** Seconds that a site's busy CPUs cost, by position of the site. */
  private readonly loadS: number[];
  private nothing: readonly number[] = [];

  constructor(
    grid: Grid,
    private readonly rules: Rules,
    now: number,
  ) {
    const { sites } = grid;
    this.powers = new SitePowers(sites);
    this.transfers = new Transfers(grid, now);
    this.loadS = sites.map(({ resources }) => rules.loadPenaltyS * busyShare(resources));
  }

  /**
   * What the job costs at the sites of these positions. `computation`: its share of it; `workAhead`: the work queued before
   * it at each of them.
   */
  of(
    job: Job,
    requirement: Requirement,
    computation: number,
    indices: readonly number[],
    workAhead: readonly number[],
  ): CostTerms {
    const weights = weightsFor(computation, this.rules);
    const { total: power, benchmark } = this.powers.of(requirement.signature);
    const work = job.estimateS * job.benchmark;
    const { length } = indices;
    const total: number[] = new Array(length);
    const compute: number[] = new Array(length);
    for (let i = 0; i < length; i++) {
      const site = indices[i] as number;
      const seconds =
        (workAhead[i] as number) / (power[site] as number) +
        work / (benchmark[site] as number) +
        (this.loadS[site] as number);
      compute[i] = seconds;
      total[i] = weights.computation * seconds;
    }
    if (job.data === null && job.image === null) {
      const nothing = this.nothingFor(length);
      return { total, network: nothing, computation: compute, data: nothing };
    }
    const network: number[] = new Array(length);
    const data: number[] = new Array(length);
    const sandbox = this.transfers.sandboxS(job);
    const access = this.transfers.accessS(job);
    const output = this.transfers.returnS(job);
    const queued = this.transfers.queuedS(job);
    for (let i = 0; i < length; i++) {
      const site = indices[i] as number;
      const send = sandbox[site] as number;
      const move = (queued[site] as number) + (access[site] as number) + (output[site] as number);
      network[i] = send;
      data[i] = move;
      (total[i] as number) += weights.network * send + weights.data * move;
    }
    return { total, network, computation: compute, data };
  }

  /** As `Transfers.imageOf`. */
  imageOf(job: Job): Pick<DispatchExplanation, 'image'> {
    return this.transfers.imageOf(job);
  }

  /** The job waits at the site of this position from now on, in the pass. */
  queued(job: Job, site: number): void {
    this.transfers.queue(job, site, 1);
  }

  /** It waits there no more. */
  unqueued(job: Job, site: number): void {
    this.transfers.queue(job, site, -1);
  }

  /** Shared by all jobs that move nothing. */
  private nothingFor(sites: number): readonly number[] {
    if (this.nothing.length !== sites) this.nothing = new Array(sites).fill(0);
    return this.nothing;
  }
}
