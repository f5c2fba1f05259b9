/** Terms that policies share: an operator's boost, and users' quotas. */
import { describe, expect, it } from 'vitest';
import {
  DEFAULT_POLICY,
  dispatchCycle,
  dispatchKindOf,
  dispatchKinds,
  Grid,
  type Job,
  localKinds,
  type Policy,
  parsePolicy,
  Shares,
  siteCycle,
  userStandings,
} from '../../src/core/index.js';
import { job } from './support/drive.js';

/** A site with one machine of one CPU. */
function oneSite(jobs: readonly Job[], place: (grid: Grid, job: Job) => void): Grid {
  const grid = new Grid();
  grid.setSite({ id: 1, name: 'one', state: 'UP', localPolicy: null });
  const machine = { cpus: 1, memoryMb: 1, benchmark: 1, os: '', architecture: '', licenseIds: [] };
  grid.setMachine({ ...machine, id: 1, siteId: 1, available: true });
  for (const one of jobs) place(grid, one);
  return grid;
}

/** A document with the policy of this kind; what must be set is set. */
function documentWith(part: 'dispatch' | 'local', kind: string, rules: object = {}): Policy {
  const needed: Record<string, object> = {
    queues: { order: 'FCFS', queueLimit: 1 },
    hybrid: { reservations: 2 },
    'two-level': DEFAULT_POLICY.dispatch,
    flexible: DEFAULT_POLICY.local,
  };
  return parsePolicy({ ...DEFAULT_POLICY, [part]: { kind, ...needed[kind], ...rules } });
}

const kindsOf = (kinds: readonly { schema: { shape: { kind: { value: string } } } }[]): string[] =>
  kinds.map(({ schema }) => schema.shape.kind.value);

/** How the root's jobs leave it, one after another, under a policy. */
function order(
  jobs: readonly Job[],
  policy: Policy,
  shares: readonly [userId: number, share: number][] = [],
) {
  const grid = oneSite(jobs, (to, one) => to.placeAtRoot(one));
  for (const [userId, share] of shares) grid.index(Shares).set(userId, share);
  const { moves } = dispatchCycle(grid, { now: 9, policy, policyVersion: 1, maxMoves: 100 });
  return { grid, moved: moves.map(({ jobId }) => jobId) };
}

describe('an operator’s boost', () => {
  const jobs = [0, 0, 5, -5].map((boost, i) => job({ id: i + 1, submittedAt: i, boost }));

  it.each(kindsOf(dispatchKinds))('goes first in the global queue under %s', (kind) => {
    const { moved } = order(jobs, documentWith('dispatch', kind));
    expect(moved[0]).toBe(3);
    expect(moved.indexOf(4)).toBe(moved.length === 4 ? 3 : -1);
  });

  it.each(kindsOf(localKinds))('goes first in the local queue under %s', (kind) => {
    const policy = documentWith('local', kind);
    const grid = oneSite(jobs, (to, one) => to.placeAtSite({ ...one, priority: 0 }, 1));
    const started: number[] = [];
    for (let now = 9; started.length < jobs.length; now += 1000) {
      const plan = siteCycle(grid, 1, { now, policy, policyVersion: 1, maxStarts: 10 });
      for (const { jobId, allocations, pools, plannedDuration } of plan.starts) {
        const run = { jobId, siteId: 1, epoch: 1, allocations, pools };
        grid.startRun({ ...run, start: now, plannedEnd: now + plannedDuration });
        grid.endRun(jobId);
        started.push(jobId);
      }
      expect(plan.starts.length).toBeGreaterThan(0);
    }
    expect(started).toEqual([3, 1, 2, 4]);
  });
});

describe('users’ quotas', () => {
  // One user has come first, with many jobs.
  const jobs = [1, 1, 1, 1, 2].map((userId, i) => job({ id: i + 1, userId, submittedAt: i }));
  const equal: [number, number][] = [
    [1, 1],
    [2, 1],
  ];
  const holding = [
    ...(['FCFS', 'SJF', 'FF', 'S-SJF', 'L-SJF'] as const).map((by) => ['queues', { order: by }] as const),
    ['job-ratio', { queueLimit: 1 }] as const,
  ];

  it('are kept by every policy that holds jobs at the root', () => {
    const held = dispatchKinds.filter(
      ({ queueLimit, servesMeta }: { queueLimit?: unknown; servesMeta?: true }) =>
        Boolean(queueLimit && !servesMeta),
    );
    expect(new Set(holding.map(([kind]) => kind))).toEqual(new Set(kindsOf(held)));
  });

  it.each(holding)('%s %o: who has fewer jobs goes first, and everybody is told why', (kind, rules) => {
    const fair = documentWith('dispatch', kind, { ...rules, fairness: 'QUOTA' });
    const { grid, moved } = order(jobs, fair, equal);
    expect(moved[0]).toBe(5);
    const standings = userStandings(grid, fair);
    expect(standings?.map(({ userId }) => userId).sort()).toEqual([1, 2]);

    // Ten times the share, and the one with the many jobs is first again.
    expect(
      order(jobs, fair, [
        [1, 10],
        [2, 0.1],
      ]).moved[0],
    ).toBe(1);

    const unfair = documentWith('dispatch', kind, { ...rules, fairness: 'NONE' });
    expect(order(jobs, unfair, equal).moved[0]).toBe(1);
    expect(dispatchKindOf(unfair.dispatch).standings?.(grid, unfair.dispatch)).toEqual([]);
  });

  it.each(holding)('%s %o: a boost comes before them', (kind, rules) => {
    const fair = documentWith('dispatch', kind, { ...rules, fairness: 'QUOTA' });
    const boosted = jobs.map((one) => (one.id === 3 ? { ...one, boost: 1 } : one));
    expect(order(boosted, fair, equal).moved[0]).toBe(3);
  });
});
