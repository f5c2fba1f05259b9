/** The grid tree's protocol (grid-tree.md): examples, and properties on networks that lose, repeat and reorder. */
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type Address, preference, type Requirement, requirement } from '../../src/core/grid-tree/index.js';
import { type Network, TreeWorld } from './support/tree-world.js';

const KINDS = ['LINUX', 'UNIX', 'WINDOWS'].flatMap((os) =>
  [2, 8].map((cpus) => ({ os, architecture: 'X', licenses: [], cpus, memoryMb: 1000 })),
);
const CLASSES: Requirement[] = [
  requirement({}),
  requirement({ cpusPerTask: 4 }),
  requirement({ os: ['LINUX'] }),
  requirement({ os: ['UNIX'], cpusPerTask: 8 }),
  requirement({ os: ['LINUX', 'WINDOWS'], cpusPerTask: 2 }),
  requirement({ os: ['WINDOWS'] }),
];
const AT_ONCE: Network = { delayS: 0, lost: 0, repeated: 0 };

type Shape = { sites: number; below: readonly Shape[] };
const shape: fc.Arbitrary<Shape> = fc.letrec<{ shape: Shape }>((tie) => ({
  shape: fc.record({
    sites: fc.integer({ min: 1, max: 3 }),
    below: fc.oneof({ maxDepth: 3 }, fc.constant([]), fc.array(tie('shape'), { maxLength: 2 })),
  }),
})).shape;

const natural = fc.nat({ max: 1000 });
const event = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({ kind: fc.constant('SUBMIT' as const), a: natural, b: natural, c: natural }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constant('MACHINES' as const), a: natural, b: natural, c: natural }),
  },
  {
    weight: 3,
    arbitrary: fc.record({ kind: fc.constant('WAIT' as const), a: natural, b: natural, c: natural }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant('MOVE' as const), a: natural, b: natural, c: natural }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant('CANCEL' as const), a: natural, b: natural, c: natural }),
  },
);
const given = fc.record({
  shape,
  seed: natural,
  network: fc.record({
    delayS: fc.constantFrom(0, 1, 20),
    lost: fc.constantFrom(0, 0.2),
    repeated: fc.constantFrom(0, 0.3),
  }),
  rules: fc.record({ butterfly: fc.boolean(), loadBalance: fc.boolean(), movesMax: fc.constantFrom(2, 16) }),
  events: fc.array(event, { minLength: 5, maxLength: 60 }),
});
type Given = typeof given extends fc.Arbitrary<infer G> ? G : never;

const pick = <T>(list: readonly T[], n: number): T => list[n % list.length] as T;
const place = (n: number) => ({ latitude: (n * 37) % 90, longitude: (n * 53) % 180 });

function build(world: TreeWorld, { sites, below }: Shape, id: Address): void {
  for (let i = 0; i < sites; i++) {
    const site = `${id}.s${i}`;
    world.addSite(site, id, place(world.sites.size));
    world.setMachines(site, pick(KINDS, world.sites.size), 1 + (i % 2));
  }
  below.forEach((child, i) => {
    world.addScheduler(`${id}.${i}`, id);
    build(world, child, `${id}.${i}`);
  });
}

/** Plays the events, then heals the network, gives every root a site that can run everything, and waits. */
function play(given: Given, trees: readonly string[], tears: boolean): TreeWorld {
  const world = new TreeWorld(given.network, given.seed, given.rules, (job) => 5 + (job.length % 7) * 10);
  for (const tree of trees) {
    const root = world.addRoot(tree, { forward: trees.length > 1 ? 'ALWAYS' : 'NEVER' });
    for (const other of trees) if (other !== tree) root.neighbors.add(other);
    build(world, given.shape, tree);
  }
  const jobs: { tree: string; job: string }[] = [];
  let submitted = 0;
  for (const { kind, a, b, c } of given.events) {
    const tree = pick(trees, c);
    const sites = [...world.sites.keys()];
    if (kind === 'SUBMIT') {
      for (let i = 0; i <= c % 4; i++) {
        const job = `${submitted++}`;
        jobs.push({ tree, job });
        const preferences =
          b % 3 === 0
            ? [preference({ leaf: pick(sites, b) }), preference({ requirement: pick(CLASSES, b) })]
            : [];
        world.submit(tree, job, {
          requirement: pick(CLASSES, a),
          preferences,
          origin: b % 2 === 0 ? place(b) : null,
        });
      }
    } else if (kind === 'MACHINES') world.setMachines(pick(sites, a), pick(KINDS, b), c % 3);
    else if (kind === 'WAIT') world.run(world.now + (a % 60));
    else if (kind === 'CANCEL') {
      const one = jobs[a % Math.max(1, jobs.length)];
      if (one !== undefined && b % 4 === 0) {
        world.owners.get(one.tree)?.end(one.job);
        jobs.splice(jobs.indexOf(one), 1);
      }
    } else {
      const child = pick([...world.parents.keys()], a);
      const within = [...world.schedulers.keys()].filter(
        (id) => tears || world.rootOf(id) === world.rootOf(child),
      );
      if (tears) world.tear(child, pick(within, b));
      else world.move(child, pick(within, b));
    }
  }
  world.network = AT_ONCE;
  for (const tree of trees) {
    world.addSite(`${tree}.all`, tree);
    for (const kind of KINDS) world.setMachines(`${tree}.all`, kind, 1);
  }
  world.run(world.now + 20_000);
  for (const { tree, job } of jobs) {
    const run = world.runs.get(`${tree}-owner/${job}`);
    expect(run, `the run of job ${job} of ${tree}`).toMatchObject({ starts: 1, ended: true });
  }
  return world;
}

describe('whatever becomes of messages', () => {
  it('each request is held by exactly one scheduler, starts once, and none is lost or starved', () => {
    // Holders and starts are checked by the world at every packet.
    const reasons = new Set<string>();
    fc.assert(
      fc.property(given, (one) => {
        const world = play(one, ['r'], false);
        for (const { reason } of world.moves) reasons.add(reason);
      }),
      { numRuns: 150 },
    );
    expect([...reasons].sort()).toEqual(['BUTTERFLY', 'FALLBACK', 'LOAD_BALANCE', 'UNASSIGNED']);
  });

  it('the same among peers that forward everything', () => {
    fc.assert(
      fc.property(given, (one) => {
        play(one, ['p', 'q', 'r'], false);
      }),
      { numRuns: 50 },
    );
  });

  it('parts of the tree that are torn off and come back elsewhere start nothing twice and lose nothing', () => {
    fc.assert(
      fc.property(given, (one) => {
        play(one, ['q', 'r'], true);
      }),
      { numRuns: 80 },
    );
  });

  it('channels kept incrementally equal those built from scratch', () => {
    let most = 0;
    fc.assert(
      fc.property(given, (one) => {
        const world = play(one, ['r'], false);
        // What nobody can run stays, and with it the classes.
        for (const [i, asked] of CLASSES.entries()) world.submit('r', `last${i}`, { requirement: asked });
        for (const site of world.sites.keys()) {
          for (const [i, kind] of KINDS.entries())
            world.setMachines(site, kind, (i + site.length) % 5 === 0 ? 1 : 0);
        }
        world.submit('r', 'never', { requirement: requirement({ cpusPerTask: 99 }) });
        for (let i = 0; i < 40; i++) {
          world.submit('r', `more${i}`, { requirement: pick(CLASSES, i) });
        }
        world.run(world.now + 3.5);
        const { kept, fresh } = world.channels();
        expect(kept).toEqual(fresh);
        most = Math.max(most, ...Object.values(kept).map((bags) => bags.length));
      }),
      { numRuns: 100 },
    );
    expect(most).toBeGreaterThan(2);
  });
});
