import { describe, expect, it } from 'vitest';
import { RandomStream } from '../../src/core/index.js';
import { matching, meanAndError, santoso, santosoReport } from '../../src/simulator/experiments/santoso.js';
import { Hierarchy, type HierarchyPolicy } from '../../src/simulator/hierarchy.js';
import { hyperExponential } from '../../src/simulator/random.js';
import {
  type TimeSharedJob,
  TimeSharedNodes,
  type TimeSharedShape,
} from '../../src/simulator/time-shared.js';

const SHAPE: TimeSharedShape = { sites: 1, nodesPerSite: 2, tasksPerNode: 2, jobsPerSite: 3, section: 1 };
let id = 0;
const job = (tasks: number, cpu: number, arrival = 0): TimeSharedJob => ({ id: id++, arrival, tasks, cpu });

/** Runs what is on the nodes to the end: when each job ended. */
function finish(nodes: TimeSharedNodes): [cpu: number, at: number][] {
  const found: [number, number][] = [];
  for (let node = nodes.next(); nodes.endAt(node) < Infinity; node = nodes.next()) {
    const at = nodes.endAt(node);
    const ended: { job: TimeSharedJob; site: number }[] = [];
    nodes.advance(node, ended);
    for (const { job: one } of ended) found.push([one.cpu, at]);
  }
  return found;
}

describe('time-shared nodes', () => {
  it('share the processor equally among the tasks that run', () => {
    const nodes = new TimeSharedNodes({ ...SHAPE, nodesPerSite: 1 });
    nodes.start(job(1, 3), 0, 0);
    nodes.start(job(1, 1), 0, 0);
    // Both at half speed until the short one ends at 2; then 2 are left at full speed.
    expect(finish(nodes)).toEqual([
      [1, 2],
      [3, 4],
    ]);
  });

  it('hold the tasks of a job together, section by section', () => {
    const nodes = new TimeSharedNodes(SHAPE);
    nodes.start(job(1, 10), 0, 0);
    nodes.start(job(2, 2.5), 0, 0);
    // The task beside the sequential job takes twice as long for each section; the other waits for it.
    expect(finish(nodes)).toEqual([
      [2.5, 5],
      [10, 12.5],
    ]);
  });

  it('put the tasks of a job on different nodes, from the least loaded one on, as long as there is room', () => {
    const nodes = new TimeSharedNodes(SHAPE);
    expect(nodes.fits(0, 3)).toBe(false);
    nodes.start(job(1, 1), 0, 0);
    nodes.start(job(2, 1), 0, 0);
    expect(nodes.fits(0, 2)).toBe(false);
    expect(nodes.fits(0, 1)).toBe(true);
    nodes.start(job(1, 1), 0, 0);
    expect(nodes.fits(0, 1)).toBe(false);
  });
});

describe('the hierarchy', () => {
  const started = (policy: HierarchyPolicy, jobs: [tasks: number, cpu: number][]): number[] => {
    const nodes = new TimeSharedNodes({ ...SHAPE, tasksPerNode: 1 });
    const order: number[] = [];
    const start = nodes.start.bind(nodes);
    nodes.start = (one, site, now) => {
      order.push(one.cpu);
      start(one, site, now);
    };
    const hierarchy = new Hierarchy(nodes, { ...SHAPE, tasksPerNode: 1 }, policy);
    for (const [tasks, cpu] of jobs) hierarchy.arrived(job(tasks, cpu), 0);
    for (let node = nodes.next(); nodes.endAt(node) < Infinity; node = nodes.next()) {
      const now = nodes.endAt(node);
      const ended: { job: TimeSharedJob; site: number }[] = [];
      nodes.advance(node, ended);
      for (const { site } of ended) hierarchy.ended(site, now);
    }
    return order;
  };
  const four: [number, number][] = [
    [1, 5],
    [2, 9],
    [2, 3],
    [1, 4],
  ];

  it('serves in the order of each policy', () => {
    expect(started({ global: 'FCFS', local: 'FCFS', queueMax: 9 }, four)).toEqual([5, 9, 3, 4]);
    expect(started({ global: 'FCFS', local: 'SJF', queueMax: 9 }, four)).toEqual([5, 3, 4, 9]);
    expect(started({ global: 'FCFS', local: 'FF', queueMax: 9 }, four)).toEqual([5, 4, 9, 3]);
    expect(started({ global: 'S-SJF', local: 'FCFS', queueMax: 1 }, four)).toEqual([5, 9, 4, 3]);
    expect(started({ global: 'L-SJF', local: 'FCFS', queueMax: 1 }, four)).toEqual([5, 9, 3, 4]);
  });

  it('without queues at the sites acts at arrivals only', () => {
    expect(started({ global: 'FF', local: 'FCFS', queueMax: 0 }, four)).toEqual([5, 4]);
  });
});

describe('hyper-exponential draws', () => {
  it('have the mean and deviation asked for', () => {
    const random = new RandomStream(1, 'test');
    const values = Array.from({ length: 200_000 }, () => hyperExponential(random, 8, 10));
    const { mean, error } = meanAndError(values);
    expect(Math.abs(mean - 8)).toBeLessThan(4 * error);
    expect(error * Math.sqrt(values.length)).toBeCloseTo(10, 0);
  });
});

describe("Santoso's table", () => {
  it('comes out where the load is moderate', () => {
    const policies: HierarchyPolicy[] = [
      { global: 'FCFS', local: 'FCFS', queueMax: 0 },
      { global: 'S-SJF', local: 'SJF', queueMax: 4 },
    ];
    const rows = policies.map((policy) => ({ ...policy, paper: Array(5).fill([7.9, 0.1]) }));
    for (const { cells } of santoso(1, () => {}, 16, rows)) expect(cells[4]?.distance).toBeLessThan(2);
  });

  it('is the same again, and its page says how many cells agree', () => {
    const few = [{ global: 'SJF', local: 'FCFS', queueMax: 0, paper: Array(5).fill([9, 1e9]) } as const];
    const rows = santoso(3, () => {}, 1, few);
    expect(santoso(3, () => {}, 1, few)).toEqual(rows);
    expect(matching(rows)).toEqual({ within: 5, cells: 5 });
    const { text, verdict } = santosoReport(3, rows, 1);
    expect(verdict).toBe('5 of 5 cells within two standard errors');
    expect(text.trimEnd().split('\n').at(-1)).toBe(verdict);
  });
});
