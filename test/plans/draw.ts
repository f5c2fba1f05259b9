/**
 * Random grids with a workload and a policy, in the words that every commit since the first simulator knows: machines of different size
 * and speed, shared in space or time, licenses of sites and of the grid, schedulers above sites, data and links, outages. All that has
 * a default is said, so that a changed default is no other plan.
 */
import * as fc from 'fast-check';
import type { World } from '../../src/simulator/engine.js';
import { eventOrders } from '../../src/simulator/engine.js';

const SITES = 4;
const KINDS = ['a', 'b'];

const dispatch = fc.oneof(
  fc.record({
    kind: fc.constant('two-level'),
    mode: fc.constantFrom('MS', 'LS', 'NONE'),
    maxDelta: fc.integer({ min: 1, max: 8 }),
    window: fc.integer({ min: 1, max: 8 }),
    weights: fc.record({ deadline: fc.nat(3), licenses: fc.nat(3), user: fc.nat(3) }),
    userClassDelta: fc.constantFrom(null, { GOLD: 1, SILVER: 1, REGULAR: 0 }),
  }),
  fc.record({
    kind: fc.constant('queues'),
    order: fc.constantFrom('FCFS', 'SJF', 'FF', 'S-SJF', 'L-SJF'),
    queueLimit: fc.nat(3),
    ageBoundS: fc.constantFrom(null, 100),
    fairness: fc.constantFrom('NONE', 'QUOTA'),
  }),
  fc.record({
    kind: fc.constant('job-ratio'),
    queueLimit: fc.integer({ min: 1, max: 4 }),
    fairness: fc.constantFrom('NONE', 'QUOTA'),
  }),
  fc.record({
    kind: fc.constant('diana'),
    weights: fc.record({ computational: costs(), dataIntensive: costs(), both: costs() }),
    computationalFrom: fc.constant(0.75),
    dataIntensiveTo: fc.constantFrom(0, 0.25),
    loadPenaltyS: fc.constantFrom(0, 60),
    placement: fc.constantFrom('LEAST_COST', 'ORIGIN_FIRST'),
    metaOrder: fc.constantFrom('QUOTA', 'SJF'),
    queueLimit: fc.integer({ min: 1, max: 4 }),
    congestionThreshold: fc.constantFrom(-10, 0, 0.5),
    congestionWindowS: fc.constantFrom(10, 60),
    migration: fc.record({ rule: fc.constantFrom('BOTH_LOWER', 'NOT_BOTH_HIGHER') }),
    holdOffS: fc.constantFrom(5, 30),
  }),
  fc.record({
    kind: fc.constant('grid-tree'),
    butterfly: fc.boolean(),
    fallback: fc.boolean(),
    loadBalance: fc.boolean(),
    movesMax: fc.nat(3),
    power: fc.constantFrom('CPUS', 'BENCHMARK'),
    queueLimit: fc.nat(2),
  }),
  fc.constant({ kind: 'round-robin' }),
  fc.constant({ kind: 'random' }),
  fc.constant({ kind: 'most-flops' }),
);

function costs() {
  return fc.record({ network: fc.nat(2), computation: fc.nat(2), data: fc.nat(8) });
}

const ageBoundS = fc.constantFrom(null, 100);
const local = fc.oneof(
  fc.record({
    kind: fc.constant('flexible'),
    weights: fc.record({
      aging: fc.constantFrom(0, 0.01, 1),
      licenses: fc.nat(3),
      waitMinimization: fc.nat(3),
      deadlineMin: fc.nat(2),
      deadlineMax: fc.integer({ min: 2, max: 20 }),
      deadlineK: fc.constantFrom(1, 1.5),
    }),
  }),
  fc.record({
    kind: fc.constant('easy'),
    backfill: fc.constantFrom('ARRIVAL', 'SHORTEST', 'LONGEST', 'NARROWEST', 'WIDEST'),
  }),
  fc.record({ kind: fc.constant('hybrid'), reservations: fc.integer({ min: 1, max: 4 }) }),
  fc.record({ kind: fc.constant('conservative'), depth: fc.constantFrom(2, 1000) }),
  fc.constant({ kind: 'fcfs' }),
  fc.record({ kind: fc.constant('sjf'), ageBoundS }),
  fc.record({ kind: fc.constant('first-fit'), ageBoundS }),
);

const pool = fc.record({ kind: fc.constantFrom(...KINDS), copies: fc.integer({ min: 1, max: 2 }) });
const site = fc.record({
  machines: fc.array(
    fc.record({
      cpus: fc.integer({ min: 1, max: 8 }),
      memoryMb: fc.integer({ min: 4, max: 16 }),
      benchmark: fc.constantFrom(1, 1, 1.5, 3),
      os: fc.constantFrom('linux', 'linux', 'linux', 'bsd'),
      // To the first of the site's pools; else it can use all.
      restricted: fc.constantFrom(false, false, true),
    }),
    { minLength: 1, maxLength: 4, size: 'max' },
  ),
  pools: fc.array(pool, { maxLength: 2, size: 'max' }),
  maxTasks: fc.constantFrom(null, null, null, 2),
  maxRunningJobs: fc.constantFrom(null, null, null, 3),
  own: fc.option(local, { freq: 4 }),
  scheduler: fc.constantFrom(null, 1, 2, 3),
});

const anySite = fc.integer({ min: 1, max: SITES });
const time = fc.nat(400);
const change = fc.record({
  what: fc.constantFrom('MACHINE', 'MACHINE', 'DOWN', 'DRAINING', 'LICENSE'),
  pick: fc.nat(99),
  at: time,
  lasts: fc.integer({ min: 1, max: 120 }),
  losesRuns: fc.boolean(),
});

const input = fc.oneof(
  fc.record({ datasetId: fc.constantFrom(1, 2) }),
  fc.record({ sizeMb: fc.integer({ min: 1, max: 500 }), siteId: anySite }),
);
const data = fc.record({
  originSiteId: fc.option(anySite),
  sandboxMb: fc.nat(50),
  inputs: fc.array(input, { maxLength: 2 }),
  outputMb: fc.nat(200),
  computationShare: fc.constantFrom(null, 0.1, 0.5, 0.9),
});
const preference = fc.oneof(
  fc.record({ siteId: anySite }),
  fc.constantFrom({ os: 'bsd' }, { licenses: ['a'] }, { cpusPerTask: 4 }),
);

const job = fc.record({
  gapS: fc.constantFrom(0, 0, 1, 3, 10, 40),
  estimateS: fc.integer({ min: 1, max: 60 }),
  // Of the estimate: jobs end early, on time, late.
  ran: fc.constantFrom(1, 1, 0.2, 0.7, 1.3, 2),
  killed: fc.boolean(),
  benchmark: fc.constantFrom(1, 1, 2),
  slackS: fc.option(fc.integer({ min: 0, max: 200 })),
  tasks: fc.constantFrom(1, 1, 1, 2, 3, 6),
  cpusPerTask: fc.integer({ min: 1, max: 4 }),
  memoryMbPerTask: fc.nat(5),
  licenses: fc.constantFrom([], [], [], ['a'], ['b'], KINDS),
  os: fc.constantFrom(null, null, null, 'linux', 'bsd'),
  userId: fc.integer({ min: 1, max: 3 }),
  userClass: fc.constantFrom('GOLD' as const, 'SILVER' as const, 'REGULAR' as const),
  boost: fc.constantFrom(0, 0, 0, 5, -5),
  application: fc.constantFrom('', 'scan', 'fit'),
  groupId: fc.nat(4),
  data: fc.option(data, { freq: 2 }),
  preferences: fc.array(preference, { maxLength: 1 }),
  ioS: fc.constantFrom(0, 0, 5),
  sectionS: fc.constantFrom(null, null, 4),
  /** Beside the root, a site's own queue. */
  at: fc.constantFrom(null, null, null, null, null, 1, 2, 3, 4),
});

const shape = fc.record({
  sites: fc.array(site, { minLength: 1, maxLength: SITES, size: 'max' }),
  pools: fc.array(pool, { maxLength: 2, size: 'max' }),
  links: fc.array(
    fc.record({
      fromSiteId: anySite,
      toSiteId: anySite,
      bandwidthMbPerS: fc.constantFrom(1, 10, 100),
      rttS: fc.constantFrom(0.001, 0.1),
      loss: fc.constantFrom(0, 0.01),
    }),
    { maxLength: 6 },
  ),
  replicas: fc.tuple(anySite, anySite),
  quotas: fc.array(fc.integer({ min: 1, max: 5 }), { minLength: 3, maxLength: 3 }),
  changes: fc.array(change, { maxLength: 4 }),
  jobs: fc.array(job, { minLength: 1, maxLength: 100, size: 'max' }),
  dispatch,
  local,
  seed: fc.nat(1000),
  eventOrder: fc.constantFrom(...eventOrders),
  movesAtOnce: fc.constantFrom(undefined, undefined, 1),
});
type Shape = typeof shape extends fc.Arbitrary<infer S> ? S : never;

/** What every commit is asked. Only what the oldest knows is given; each commit adds its own defaults. */
export type Question = ReturnType<typeof questionOf>;
export const anyQuestion: fc.Arbitrary<Question> = shape.map(questionOf);

function questionOf(given: Shape) {
  const count = given.sites.length;
  const within = (siteId: number): number => ((siteId - 1) % count) + 1;
  const licenses = [
    ...given.sites.flatMap(({ pools }, i) => pools.map((one) => ({ ...one, siteId: i + 1 }))),
    ...given.pools.map((one) => ({ ...one, siteId: null })),
  ].map((one, i) => ({ id: i + 1, ...one }));
  const machines = given.sites
    .flatMap(({ machines, maxTasks }, i) =>
      machines.map(({ restricted, ...one }) => ({
        ...one,
        siteId: i + 1,
        architecture: 'x86',
        licenseIds: restricted
          ? licenses
              .filter(({ siteId }) => siteId === i + 1)
              .slice(0, 1)
              .map(({ id }) => id)
          : [],
        available: true,
        maxTasks,
      })),
    )
    .map((one, i) => ({ id: i + 1, ...one }));
  const sites = given.sites.map(({ maxRunningJobs, own, scheduler }, i) => ({
    id: i + 1,
    name: `site-${i + 1}`,
    state: 'UP' as const,
    localPolicy: own,
    maxRunningJobs,
    schedulerId: scheduler,
  }));
  const world = {
    sites,
    machines,
    licenses,
    // One below the other, and a third beside them.
    schedulers: [
      { id: 1, name: 'west', parentId: null },
      { id: 2, name: 'north', parentId: 1 },
      { id: 3, name: 'east', parentId: null },
    ],
    datasets: given.replicas.map((siteId, i) => ({
      ...{ id: i + 1, sizeMb: 100 * (i + 1), siteIds: [within(siteId)] },
    })),
    links: given.links
      .map((link) => ({ ...link, fromSiteId: within(link.fromSiteId), toSiteId: within(link.toSiteId) }))
      .filter(({ fromSiteId, toSiteId }) => fromSiteId !== toSiteId),
    quotas: given.quotas.map((quota, i) => [i + 1, quota] as const),
    changes: given.changes.flatMap(({ what, pick, at, lasts, losesRuns }) => {
      const there = what === 'MACHINE' ? machines : what === 'LICENSE' ? licenses : sites;
      const one = there[pick % there.length];
      if (one === undefined) return [];
      const [before, after] =
        what === 'MACHINE'
          ? [{ machine: { ...one, available: false }, losesRuns }, { machine: one }]
          : what === 'LICENSE'
            ? [{ license: { ...one, copies: 0 } }, { license: one }]
            : [{ site: { ...one, state: what } }, { site: one }];
      return [
        { at, ...before },
        { at: at + lasts, ...after },
      ];
    }) as World['changes'],
  };
  let submittedAt = 0;
  const jobs = given.jobs.map((one, i) => {
    submittedAt += one.gapS;
    const { ran, killed, slackS, ioS, sectionS, at, gapS: _, data, preferences, ...asked } = one;
    return {
      job: {
        id: i + 1,
        ...asked,
        submittedAt,
        deadline: slackS === null ? null : submittedAt + slackS,
        preferences: preferences.map((wish) => ('siteId' in wish ? { siteId: within(wish.siteId) } : wish)),
        data: data && {
          ...data,
          originSiteId: data.originSiteId && within(data.originSiteId),
          inputs: data.inputs.map((from) =>
            'siteId' in from ? { ...from, siteId: within(from.siteId) } : from,
          ),
        },
      },
      sourceId: i + 1,
      runS: one.estimateS * ran,
      limitS: killed ? one.estimateS : null,
      ...(ioS > 0 && { ioS }),
      ...(sectionS !== null && { sectionS }),
      siteId: at === null ? null : within(at),
    };
  });
  const { dispatch, local, seed, eventOrder, movesAtOnce } = given;
  return { world, jobs, policy: { dispatch, local, seed }, eventOrder, movesAtOnce };
}
