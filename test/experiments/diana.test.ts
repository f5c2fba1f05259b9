import { describe, expect, it } from 'vitest';
import {
  BANDWIDTHS,
  computeWorkload,
  type DianaResult,
  dataWorkload,
  diana,
  GROWTH,
  JOBS,
  KINDS,
  type Kind,
  primeS,
  primeWorkload,
  scaleWorkload,
} from '../../experiments/diana.js';
import { claims, dianaReport } from '../../experiments/diana-report.js';
import { dianaStudy } from '../../experiments/diana-study.js';
import { IN_FULL } from '../support/seed.js';

describe('the draws', () => {
  const nodes = (siteId: number, { machines }: ReturnType<typeof computeWorkload>['world']): number =>
    machines.filter((machine) => machine.siteId === siteId).length;

  it('have the sites of section 8', () => {
    const { world, jobs } = computeWorkload(1, 0, 300);
    expect([1, 2, 3, 4, 5].map((siteId) => nodes(siteId, world))).toEqual([4, 5, 5, 5, 5]);
    for (const { benchmark, cpus } of world.machines) {
      expect(cpus).toBe(1);
      expect(benchmark).toBeGreaterThanOrEqual(1);
      expect(benchmark).toBeLessThanOrEqual(3);
    }
    for (const { runS } of jobs) {
      expect(runS).toBeGreaterThanOrEqual(60);
      expect(runS).toBeLessThanOrEqual(180);
    }
    // Groups of 100, each from one site.
    const origins = new Map<number, Set<number | null>>();
    for (const { job } of jobs) {
      const known = origins.get(job.groupId) ?? new Set();
      origins.set(job.groupId, known.add(job.data?.originSiteId ?? null));
    }
    expect([...origins.values()].map(({ size }) => size)).toEqual([1, 1, 1]);
  });

  it('take megabits for what they are, and count primes as long as that takes', () => {
    const { world, jobs } = dataWorkload(1, 0, 20, 100);
    expect(new Set(world.links?.map(({ bandwidthMbPerS }) => bandwidthMbPerS))).toEqual(new Set([12.5]));
    expect(new Set(world.datasets?.map(({ sizeMb }) => sizeMb))).toEqual(new Set([10_000]));
    expect(jobs.every(({ job }) => job.data?.inputs.length === 1)).toBe(true);
    expect(primeS({ processors: 8, upTo: 19_999 })).toBe(10);
    // (99999/19999)^1.5 · ln 19999/ln 99999 · 8/17 = 11.18 · 0.860 · 0.471
    expect(primeS({ processors: 17, upTo: 99_999 })).toBeCloseTo(45.26, 1);
    expect(new Set(primeWorkload(1, 0, 200).jobs.map(({ job }) => job.tasks))).toEqual(
      new Set([8, 17, 26, 35]),
    );
    expect(nodes(40, scaleWorkload(1, 0, 40, 10).world)).toBe(5);
  });
});

describe.runIf(IN_FULL)('the experiment, in small', () => {
  const seed = 3;
  let result: DianaResult;

  it('is the same again', () => {
    const once = diana(seed, () => {}, 2, 10);
    expect(JSON.stringify(diana(seed, () => {}, 2, 10))).toBe(JSON.stringify(once));
  });

  it(`has what the paper says of data-intensive jobs, of queues and of growth (seed ${seed})`, () => {
    result = diana(seed, () => {}, 3, 2);
    const made = new Map(claims(result).map((claim) => [claim.claim, claim]));
    const all = (claim: string): void => {
      const { holds, of } = made.get(claim) ?? { holds: -1, of: 0 };
      expect(holds, claim).toBe(of);
    };
    all('data-intensive jobs, turnaround: shorter than round robin');
    all('data-intensive jobs, turnaround: shorter than most FLOPS');
    all('compute jobs, time in queues: shorter than most FLOPS');
    all('figure 7: with SJF meta-queues, turnaround: shorter than round robin');
    all('figure 7: with the multilevel queues, turnaround: shorter than round robin');
    all('figure 8: data-intensive jobs, execution: shorter than round robin');
    all('figure 9: more jobs, makespan: shorter than most FLOPS');
    // In small, five sites have one group of 63 jobs, which is too few to tell.
    const broken = made.get('figure 9: more sites, makespan: shorter than most FLOPS')?.broken ?? [];
    expect(broken.filter(({ x }) => x !== GROWTH.sites[0])).toEqual([]);
    all('figure 9: makespan grows with jobs at most as their power 1.1');
  });

  it('exports jobs from congested sites, of all kinds by the rule of the paper, and none where no site is ever congested', () => {
    const of = (scheduler: string, experiment = 'kinds') =>
      result.cells.find((c) => c.experiment === experiment && c.scheduler === scheduler)?.exports ?? [];
    const sum = (kind: Kind, scheduler: string, experiment?: string) =>
      of(scheduler, experiment).reduce((all, run) => all + run[kind], 0);
    for (const kind of Object.keys(KINDS) as Kind[])
      expect(sum(kind, 'diana-paper-rule'), kind).toBeGreaterThan(0);
    expect(sum('computational', 'diana', 'misjudged')).toBeGreaterThan(0);
    expect(of('diana-stay').every((run) => Object.values(run).every((count) => count === 0))).toBe(true);
  });

  it('runs jobs where their data is when networks are slow, and serves users by their quota', () => {
    const of = (experiment: string, x: number) =>
      result.cells.find((c) => c.experiment === experiment && c.x === x && c.scheduler === 'diana');
    const slow = of('data', BANDWIDTHS[0])?.atData ?? [];
    expect(slow).toHaveLength(3);
    for (const part of slow) expect(part).toBeGreaterThan(0.95);
    for (const turnaroundS of of('queues', JOBS)?.byUserS ?? []) {
      expect(turnaroundS).toHaveLength(5);
      expect(turnaroundS[0]).toBeLessThan(turnaroundS[4] ?? 0);
    }
  });

  it('ends its page with what holds', () => {
    const { text, verdict, plots } = dianaReport(result, dianaStudy(2, 10));
    expect(verdict).toMatch(/^\d+ of 40 expectations hold$/);
    expect(text.trimEnd().split('\n').at(-1)).toBe(verdict);
    expect(text).toContain(`--seed ${seed} --runs 3`);
    expect(plots).toHaveLength(5);
  });
});
