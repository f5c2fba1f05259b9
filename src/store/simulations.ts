/**
 * What-ifs as the workers that compute them see them. They are rows of Postgres with a lease: a worker says every second or
 * so that it lives, and what a dead one leaves behind is taken up by another. Asking for one, and reading about them, is
 * the directory's and the queries'.
 */
import type { Dataset, License, Link, Machine, RunAverages, Site } from '../core/model.js';
import { type Policy, parsePolicy } from '../core/policy.js';
import type { PrismaClient } from './generated/client.js';
import type { JobArray } from './images.js';
import {
  claimSimulation,
  dueSimulations,
  finishSimulation,
  pruneSimulations,
  releaseSimulation,
  touchSimulation,
  windowOfJobs,
} from './sql/simulations.js';
import { read, write } from './statement.js';

/** Jobs in a window at most: all of them are in memory at once. */
export const SIMULATED_JOBS_MAX = 100_000;

/** What jobs run on and read, and whose they are: as it is now. */
export interface SimulatedWorld {
  sites: Site[];
  /** One counts unless it is drained or down, whether its agent is heard or not. */
  machines: Machine[];
  licenses: License[];
  datasets: Dataset[];
  links: Link[];
  /** Of users whose share of the grid is not 1. */
  quotas: { userId: number; share: number }[];
  /** What runs have shown, those of the window among them. */
  averages: RunAverages[];
}

/** Everything that a simulation is made from. Plain data: it goes to a thread. */
export interface SimulationTask extends SimulatedWorld {
  baseline: Policy;
  candidate: Policy;
  /**
   * The jobs, by id, as JSON texts of `RecordedJob[]`. Texts, because parsing a hundred thousand jobs is the thread's work, not
   * the live cycles'.
   */
  pages: string[];
}

/** A job (see images.ts) and its last run that came to an end of its own; null: none did. */
export type RecordedJob = [JobArray, [seconds: number, plannedS: number, siteId: number] | null];

export interface DueSimulation {
  id: number;
  /** How often it was taken up until now. */
  attempts: number;
}

/** A worker's hold on a simulation. */
export interface Claim extends SimulatedWorld {
  id: number;
  baseline: Policy;
  candidate: Policy;
  /** Epoch seconds. */
  from: number;
  to: number;
}

const PAGE = 5_000;

export class Simulations {
  constructor(
    private readonly prisma: PrismaClient,
    /** A worker silent for longer (s) has died. */
    private readonly leaseS = 10,
    /** How often one simulation is taken up. */
    private readonly attemptsMax = 3,
  ) {}

  /** Those that wait for a worker, oldest first. */
  async due(): Promise<DueSimulation[]> {
    const rows = await read<[number, number][]>(this.prisma, dueSimulations, this.leaseS, this.attemptsMax);
    return rows.map(([id, attempts]) => ({ id, attempts }));
  }

  /** Makes one this worker's; null when it is another's by now, or has ended. */
  async claim(id: number, worker: string): Promise<Claim | null> {
    type Directory = [unknown, Site[], Machine[], License[]];
    type Data = [Dataset[], Link[], SimulatedWorld['quotas'], RunAverages[], ...unknown[]];
    type Row = [baseline: unknown, candidate: unknown, from: number, to: number, Directory, Data];
    const row = await read<Row | null>(
      this.prisma,
      claimSimulation,
      id,
      worker,
      this.leaseS,
      this.attemptsMax,
    );
    if (row === null) return null;
    const [baseline, candidate, from, to, directory, data] = row;
    const [, sites, machines, licenses] = directory;
    const [datasets, links, quotas, averages] = data;
    return {
      id,
      baseline: parsePolicy(baseline),
      candidate: parsePolicy(candidate),
      from,
      to,
      sites,
      machines,
      licenses,
      datasets,
      links,
      quotas,
      averages,
    };
  }

  /** Reads the window. Throws when there are more jobs in it than may be simulated. */
  async task({ id: _, from, to, ...rest }: Claim): Promise<SimulationTask> {
    const pages: string[] = [];
    let count = 0;
    let after = 0;
    for (;;) {
      const [page] = await this.prisma.$queryRawUnsafe<{ v: string; jobs: number; last: number | null }[]>(
        windowOfJobs,
        from,
        to,
        after,
        PAGE,
      );
      if (!page?.last) break;
      pages.push(page.v);
      count += page.jobs;
      if (count > SIMULATED_JOBS_MAX)
        throw new Error(`more than ${SIMULATED_JOBS_MAX} jobs were submitted within the window`);
      if (page.jobs < PAGE) break;
      after = page.last;
    }
    return { ...rest, pages };
  }

  /** Says that the worker lives, and how far it is. False: it is not this worker's any more (cancelled, or given to another). */
  async touch(id: number, worker: string, progress: number): Promise<boolean> {
    return (await write(this.prisma, touchSimulation, id, worker, progress)) > 0;
  }

  /** Ends it as DONE. What has been taken away meanwhile stays as it is. */
  async done(id: number, worker: string, result: unknown): Promise<void> {
    await write(this.prisma, finishSimulation, id, worker, JSON.stringify(result), null);
  }

  /** Ends it as FAILED. */
  async failed(id: number, worker: string, message: string): Promise<void> {
    await write(this.prisma, finishSimulation, id, worker, null, message);
  }

  /** Gives it back: the worker stops. */
  async release(id: number, worker: string): Promise<void> {
    await write(this.prisma, releaseSimulation, id, worker);
  }

  /** Forgets those that ended before (epoch seconds). */
  async prune(before: number): Promise<void> {
    await write(this.prisma, pruneSimulations, before);
  }
}
