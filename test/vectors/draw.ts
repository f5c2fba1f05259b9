/** Cases for every rule, drawn from a seed: the inputs here and in batch-draw.ts and resource-draw.ts, what is expected by their rules. */
import { BATCH_INPUTS } from './batch-draw.js';
import { BATCH_RULES } from './batch-rules.js';
import { Draws } from './draws.js';
import { RESOURCE_INPUTS } from './resource-draw.js';
import { RESOURCE_RULES } from './resource-rules.js';
import {
  type Dispatch,
  type GtChannels,
  type GtCollect,
  type GtTree,
  type JrHistory,
  type LsPriorities,
  type MsPriority,
  RULES,
} from './rules.js';

export interface Case {
  rule: string;
  input: unknown;
  expected: unknown;
}

const INPUTS: Record<string, (draw: Draws) => unknown> = {
  ms_priority: (draw): MsPriority => {
    const [submit, estimate] = [draw.between(0, 1e5), draw.sized(0.01, 20_000)];
    const margin = draw.chance(0.1) ? -draw.between(0, 5000) : draw.sized(0.01, 20_000);
    return {
      max: draw.of([1, 2, 3, 5, 8, 10, 30]),
      licenseKinds: draw.integer(0, 20),
      weights: {
        deadline: draw.of([0, 0.5, 1, 2]),
        licenses: draw.of([0, 0.5, 1]),
        user: draw.of([0, 0.25, 1, 3]),
      },
      window: draw.list(8, () => draw.between(draw.chance(0.2) ? -8000 : 0, 9000)),
      job: {
        submit,
        estimate,
        userClass: draw.of(['GOLD', 'SILVER', 'REGULAR'] as const),
        deadline: draw.chance(0.2) ? null : submit + estimate + margin,
        licenses: draw.list(5, (i) => `l${i}`),
      },
    };
  },

  dispatch: (draw): Dispatch => {
    // Equal works, so that sites tie, or works of any size.
    const works = draw.chance(0.4)
      ? () => ({ estimate: draw.of([10, 20, 30]), benchmark: draw.of([100, 200]) })
      : () => ({ estimate: draw.sized(0.001, 1e6), benchmark: draw.sized(0.001, 1000) });
    const job = () => ({ priority: draw.integer(0, 6), ...works() });
    const site = (i: number) => ({ id: `s${i}`, eligible: draw.chance(0.8), queued: draw.list(8, job) });
    return { priority: draw.integer(0, 6), sites: draw.list(6, site, 1) };
  },

  ls_priorities: (draw): LsPriorities => {
    const now = draw.between(2000, 5000);
    const kinds = ['l0', 'l1', 'l2', 'l3'];
    const job = (i: number) => {
      const estimate = draw.sized(0.1, 1000);
      const until = draw.chance(0.2) ? -draw.between(0, 500) : estimate * draw.between(0.5, 4);
      return {
        id: `j${i}`,
        submit: draw.between(0, now),
        estimate,
        benchmark: draw.between(100, 500),
        deadline: draw.chance(0.3) ? null : now + until,
        licenses: draw.some(kinds, 0.3),
      };
    };
    return {
      now,
      licenseTotals: Object.fromEntries(kinds.map((kind) => [kind, draw.integer(1, 5)])),
      machines: draw.list(4, (i) => ({ id: `m${i}`, benchmark: draw.between(100, 500) }), 1),
      weights: {
        aging: draw.of([0, 0.01, 0.7]),
        licenses: draw.of([0, 1, 3.3]),
        waitMinimization: draw.of([0, 1, 10]),
        deadlineMin: draw.of([0, 0.1]),
        deadlineMax: draw.of([1, 5]),
        deadlineK: draw.of([1, 1.1, 1.5, 2]),
      },
      queue: draw.list(9, job, 1),
    };
  },

  diana_priorities: (draw) => {
    const users = ['u0', 'u1', 'u2', 'u3'];
    return {
      quotas: Object.fromEntries(
        users.map((user) => [user, draw.chance(0.5) ? draw.of([10, 100, 1700]) : draw.sized(0.1, 5000)]),
      ),
      jobs: draw.list(
        12,
        (i) => ({ id: `j${i}`, user: draw.of(users), processors: draw.of([1, 2, 5, 16, 35]) }),
        1,
      ),
    };
  },

  diana_congested: (draw) => ({
    arrivalRate: draw.chance(0.15) ? 0 : draw.sized(0.001, 10),
    serviceRate: draw.sized(0.001, 10),
    threshold: draw.between(-1, 1),
  }),

  jr_history: (draw): JrHistory => {
    // Hours on a strong machine, or parts of a second against a strong reference.
    const [low, high] = draw.of([
      [10, 1e5],
      [1e-5, 1],
    ] as const);
    const run = () => {
      const turnaround = draw.sized(low, high);
      const part = draw.of([draw.next(), draw.next() * 1e-6, 1 - draw.next() * 1e-4]);
      return { turnaround, io: turnaround * part, sitePower: draw.sized(0.1, 500) };
    };
    return { referencePower: draw.of([1, 40, draw.sized(0.1, 5000)]), runs: draw.list(9, run, 1) };
  },

  jr_rank: (draw) => {
    const computation = draw.next();
    const none = draw.chance(0.1);
    const transfer = () => ({ sizeMb: draw.sized(0.01, 10_000), bandwidthMbPerS: draw.sized(0.1, 1000) });
    const site = (i: number) => ({
      id: `s${i}`,
      processPower: draw.between(1, 500),
      queued: none ? 0 : draw.integer(0, 30),
      transfers: none ? [] : draw.list(3, transfer),
    });
    return { computation, dataIntensive: 1 - computation, sites: draw.list(6, site, 1) };
  },

  jr_batches: (draw) => {
    const sites = draw.list(6, (i) => `s${i}`, 1);
    return {
      available: Object.fromEntries(sites.map((site) => [site, draw.integer(0, 4)])),
      jobs: draw.list(14, (i) => ({ id: `j${i}`, ranked: draw.shuffled(sites) })),
    };
  },

  gt_share: (draw) => ({
    jobs: draw.integer(0, 200),
    channels: draw.list(
      4,
      (c) => ({
        id: `c${c}`,
        branches: draw.list(4, (b) => ({ id: `c${c}b${b}`, power: draw.integer(1, 60) }), 1),
      }),
      1,
    ),
  }),

  gt_channels: (draw): GtChannels => {
    const systems = ['LINUX', 'UNIX', 'WINDOWS'];
    const machine = () => ({ os: draw.of(systems), cpus: draw.of([2, 4, 8]) });
    const node = (id: string, depth: number): GtTree =>
      depth === 0
        ? { id, machines: draw.list(4, machine, 1) }
        : { id, children: draw.list(3, (i) => node(`${id}.${i}`, draw.chance(0.3) ? 0 : depth - 1), 1) };
    const job = (i: number) => {
      const os = draw.some(systems, 0.5);
      return { id: `j${i}`, os: os.length === 0 ? [draw.of(systems)] : os, cpus: draw.of([1, 2, 4, 8, 16]) };
    };
    return { tree: node('root', draw.integer(1, 3)), jobs: draw.list(6, job, 1) };
  },

  gt_collect: (draw): GtCollect => {
    const branches = draw.list(5, (i) => ({ id: `b${i}`, power: draw.integer(1, 40) }), 1);
    const ids = branches.map(({ id }) => id);
    const job = (i: number) => {
      const at = draw.chance(0.4) ? null : draw.of(ids);
      const fits = ids.filter((id) => id === at || draw.chance(0.7));
      return {
        id: `j${i}`,
        seq: i,
        at,
        fits,
        gain: Object.fromEntries(fits.map((id) => [id, draw.integer(0, 3)])),
      };
    };
    return {
      branches,
      asked: draw.of(ids),
      jobs: draw.shuffled(draw.list(16, job)),
      butterfly: draw.chance(0.5),
      loadBalance: draw.chance(0.5),
    };
  },

  gt_forward: (draw) => {
    const peers = ['p0', 'p1', 'p2', 'p3', 'p4', 'p5', 'p6'];
    return {
      self: draw.of(peers),
      origin: draw.of(peers),
      hops: draw.of([0, 1, 2, 3, 1000]),
      neighbours: draw.shuffled(draw.some(peers, 0.5)),
      visited: draw.some(peers, 0.3),
    };
  },
};

const ALL_INPUTS = { ...INPUTS, ...BATCH_INPUTS, ...RESOURCE_INPUTS };
export const ALL_RULES: Record<string, (input: never) => unknown> = {
  ...RULES,
  ...BATCH_RULES,
  ...RESOURCE_RULES,
};

/** As many cases of each rule, the same again for the same seed. */
export function casesOf(seed: number, ofEach: number): Case[] {
  const draw = new Draws(seed);
  return Object.entries(ALL_RULES).flatMap(([rule, answer]) =>
    Array.from({ length: ofEach }, () => {
      const input = (ALL_INPUTS[rule] as (draw: Draws) => unknown)(draw);
      return { rule, input, expected: answer(input as never) };
    }),
  );
}
