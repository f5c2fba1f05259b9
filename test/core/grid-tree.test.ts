/** The grid tree's protocol (grid-tree.md): examples, and properties on networks that lose, repeat and reorder. */
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  type Address,
  DEFAULT_TREE_RULES,
  type Entry,
  inOrder,
  Link,
  type Message,
  type Packet,
  preference,
  type Requirement,
  type RootRules,
  request,
  requirement,
  Scheduler,
} from '../../src/core/grid-tree/index.js';
import { collect, Place, shareOf, type Taker } from '../../src/core/grid-tree/selection.js';
import { assertUntil, cases, IN_FULL } from '../support/seed.js';
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
  rules: fc.record({
    butterfly: fc.boolean(),
    fallback: fc.boolean(),
    loadBalance: fc.boolean(),
    movesMax: fc.constantFrom(2, 16),
    shares: fc.constant('DOWN_FIRST'),
  }),
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
function play(
  given: Given,
  trees: readonly string[],
  tears: boolean,
  rules: Partial<RootRules> = {},
): TreeWorld {
  const world = new TreeWorld(given.network, given.seed, given.rules, (job) => 5 + (job.length % 7) * 10);
  for (const tree of trees) {
    const root = world.addRoot(tree, { forward: trees.length > 1 ? 'ALWAYS' : 'NEVER', ...rules });
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
    if (given.network === AT_ONCE) world.run(world.now);
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

/** A site is torn off with a job that runs there, comes back, and is given the job once more. */
const cameAgain: Given = {
  shape: { sites: 1, below: [] },
  seed: 0,
  network: { delayS: 0, lost: 0, repeated: 0 },
  rules: { butterfly: false, fallback: true, loadBalance: false, movesMax: 2, shares: 'DOWN_FIRST' },
  events: [
    { kind: 'SUBMIT', a: 0, b: 0, c: 0 },
    { kind: 'SUBMIT', a: 367, b: 0, c: 431 },
    { kind: 'WAIT', a: 396, b: 0, c: 0 },
    { kind: 'WAIT', a: 159, b: 0, c: 0 },
    { kind: 'SUBMIT', a: 0, b: 0, c: 0 },
    { kind: 'MACHINES', a: 0, b: 63, c: 953 },
    { kind: 'SUBMIT', a: 0, b: 0, c: 0 },
    { kind: 'MOVE', a: 0, b: 0, c: 0 },
    { kind: 'SUBMIT', a: 0, b: 0, c: 0 },
  ],
};

/** A branch moves below another; what it gives back takes the place of a later job. Drawn histories seldom come to this. */
const displaced: Given = {
  shape: { sites: 3, below: [{ sites: 1, below: [] }] },
  seed: 834,
  network: { delayS: 0, lost: 0, repeated: 0.3 },
  rules: { butterfly: false, fallback: true, loadBalance: true, movesMax: 2, shares: 'DOWN_FIRST' },
  events: [
    { kind: 'SUBMIT', a: 312, b: 182, c: 495 },
    { kind: 'SUBMIT', a: 438, b: 637, c: 584 },
    { kind: 'SUBMIT', a: 306, b: 31, c: 423 },
    { kind: 'SUBMIT', a: 61, b: 881, c: 159 },
    { kind: 'SUBMIT', a: 225, b: 457, c: 26 },
    { kind: 'SUBMIT', a: 247, b: 867, c: 505 },
    { kind: 'WAIT', a: 490, b: 97, c: 976 },
    { kind: 'SUBMIT', a: 289, b: 596, c: 648 },
    { kind: 'SUBMIT', a: 709, b: 222, c: 367 },
    { kind: 'MOVE', a: 681, b: 507, c: 653 },
  ],
};

/** A part that has lost its machines moves: a request comes back to whom it can no longer be moved on. */
const fellBack: Given = {
  shape: { sites: 2, below: [{ sites: 1, below: [] }] },
  seed: 0,
  network: { delayS: 0, lost: 0, repeated: 0 },
  rules: { butterfly: false, fallback: false, loadBalance: false, movesMax: 2, shares: 'DOWN_FIRST' },
  events: [
    { kind: 'SUBMIT', a: 438, b: 0, c: 37 },
    { kind: 'WAIT', a: 0, b: 0, c: 0 },
    { kind: 'MACHINES', a: 0, b: 0, c: 0 },
    { kind: 'SUBMIT', a: 0, b: 0, c: 1 },
    { kind: 'MACHINES', a: 0, b: 0, c: 0 },
    { kind: 'MOVE', a: 507, b: 0, c: 0 },
    { kind: 'CANCEL', a: 0, b: 0, c: 0 },
  ],
};

describe('whatever becomes of messages', () => {
  it('each request is held by exactly one scheduler, starts once, and none is lost or starved', () => {
    // Holders and starts are checked by the world at every packet.
    const reasons = new Set<string>();
    assertUntil(
      fc.property(given, (one) => {
        const world = play(one, ['r'], false);
        for (const { reason } of world.moves) reasons.add(reason);
      }),
      { numRuns: cases(80), examples: [[displaced], [fellBack]] },
      () => {
        if (IN_FULL)
          expect([...reasons].sort()).toEqual([
            ...['BUTTERFLY', 'DISPLACED', 'FALLBACK', 'LOAD_BALANCE', 'REMOVED', 'UNASSIGNED'],
          ]);
      },
    );
  });

  it('the same among peers that forward everything', () => {
    fc.assert(
      fc.property(given, (one) => {
        play(one, ['p', 'q', 'r'], false);
      }),
      { numRuns: cases(30) },
    );
  });

  it('parts of the tree that are torn off and come back elsewhere start nothing twice and lose nothing', () => {
    fc.assert(
      fc.property(given, (one) => {
        play(one, ['q', 'r'], true);
      }),
      { numRuns: cases(60), examples: [[cameAgain]] },
    );
  });

  it('channels kept incrementally equal those built from scratch', () => {
    let most = 0;
    assertUntil(
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
      { numRuns: cases(50) },
      () => {
        if (IN_FULL) expect(most).toBeGreaterThan(2);
      },
    );
  });
});

describe('each way that a request takes is told with its own reason', () => {
  /** Nothing is under way for long, so what is there when a move is told is what it was decided on. */
  const deep = { sites: 1, below: [0, 1].map(() => ({ sites: 2, below: [{ sites: 2, below: [] }] })) };
  const quick = fc.record({
    shape: fc.oneof(shape, fc.constant(deep)),
    seed: natural,
    network: fc.constant(AT_ONCE as Given['network']),
    rules: fc.constant(DEFAULT_TREE_RULES as Given['rules']),
    events: fc.array(event, { minLength: 20, maxLength: 60 }),
  });
  const DOWN_AHEAD = ['FALLBACK', 'REMOVED', 'AHEAD'];
  const seen = new Map<string, number>();

  /** What went up: by the ways that go on from where the one before ended, at the same time. */
  function climbs(world: TreeWorld): (typeof world.moves)[] {
    const found: (typeof world.moves)[] = [];
    for (const move of world.moves) {
      if (!move.up) continue;
      const before = found.findLast(([first]) => first?.job === move.job)?.at(-1);
      if (before?.to === move.from && before.at === move.at)
        found.findLast(([first]) => first?.job === move.job)?.push(move);
      else found.push([move]);
    }
    return found;
  }

  it('by histories: fallback of what can no longer run there, butterfly also where a grandparent asks for it', () => {
    assertUntil(
      fc.property(quick, (one) => {
        const world = play(one, ['r'], false, { classKeptS: 1e9 });
        for (const climb of climbs(world)) {
          for (const [i, { job, at, reason, runsThere }] of climb.entries()) {
            const way = climb.map(({ reason, from, to }) => `${from} ${reason} ${to}`).join(', ');
            const name = i === 0 ? reason : `${reason} above ${climb[0]?.reason}`;
            seen.set(name, (seen.get(name) ?? 0) + 1);
            // Up, all of a way has one reason, but that a scheduler may be left with nobody who can run what it got back, and that one above may ask at
            // the same instant for what has just come to one below.
            const isNew = reason === 'FALLBACK' || reason === 'BUTTERFLY';
            if (!isNew) expect(climb[0]?.reason, way).toBe(reason);
            else if (reason === 'FALLBACK' && i === 0)
              expect(runsThere && !world.adoptedAt.has(at), `${job}: ${way}`).toBe(false);
            if (reason === 'DISPLACED' && i === 0) {
              // Whoever took it back sent another down the way that it came up; that one may have gone on to another site.
              const left = climb.map((each) => each.from);
              const placed = world.moves.filter(
                (other) => left.includes(other.to) && other.at === at && DOWN_AHEAD.includes(other.reason),
              );
              expect(placed.length, `${job}: ${way}`).toBeGreaterThan(0);
            }
          }
        }
      }),
      { numRuns: cases(60), examples: [[displaced]] },
      () => {
        const met = [
          'BUTTERFLY above BUTTERFLY',
          'LOAD_BALANCE above LOAD_BALANCE',
          'FALLBACK',
          'REMOVED',
          'DISPLACED',
        ];
        if (IN_FULL) expect([...seen.keys()]).toEqual(expect.arrayContaining(met));
      },
    );
  });

  it('where no machine is lost and no scheduler goes, nothing falls back', () => {
    fc.assert(
      fc.property(quick, (one) => {
        const events = one.events.filter(({ kind }) => kind !== 'MACHINES' && kind !== 'MOVE');
        const { moves } = play({ ...one, events }, ['r'], false, { classKeptS: 1e9 });
        for (const { reason } of moves) expect(['UNASSIGNED', 'BUTTERFLY', 'LOAD_BALANCE']).toContain(reason);
      }),
      { numRuns: cases(10) },
    );
  });
});

const LINUX = requirement({ os: ['LINUX'] });
const machine = (os: string) => ({ os, architecture: 'X', licenses: [], cpus: 1, memoryMb: 1000 });
const OSLO = { latitude: 59.9, longitude: 10.7 };
const ROME = { latitude: 41.9, longitude: 12.5 };

/** A tree with two sites; jobs named l… run long, others short. */
function twoSites(rules: Partial<RootRules> = {}): TreeWorld {
  const world = new TreeWorld(AT_ONCE, 1, DEFAULT_TREE_RULES, (job) => (job.includes('/l') ? 1000 : 10));
  world.addRoot('r', rules);
  world.addScheduler('g', 'r');
  world.addSite('oslo', 'g', OSLO);
  world.addSite('rome', 'g', ROME);
  return world;
}

const movesOf = (world: TreeWorld, job: string): string[] =>
  world.moves.filter((move) => move.job === job).map(({ from, to, reason }) => `${from} ${to} ${reason}`);

describe('a tree', () => {
  it('is discovered when the first job of a class comes, and forgets classes without jobs', () => {
    const world = twoSites();
    world.setMachines('oslo', machine('LINUX'), 2);
    world.setMachines('rome', machine('UNIX'), 3);
    world.submit('r', 'lone', { requirement: requirement({}) });
    world.submit('r', 'never', { requirement: requirement({ cpusPerTask: 2 }) });
    world.submit('r', 'l2', { requirement: LINUX });
    world.run(5);
    // All three are with their machines, or with nobody: one class is left.
    expect(world.channels().kept).toEqual({ r: [], g: [], oslo: [], rome: [] });
    world.submit('r', 'l3', { requirement: LINUX });
    world.submit('r', 'l4', { requirement: LINUX });
    world.run(6);
    expect(world.channels().kept).toMatchObject({
      r: [{ bag: [LINUX.key], power: 2 }],
      rome: [],
    });
  });

  it('moves a waiting job to a nearer site when that has room', () => {
    const world = twoSites();
    world.setMachines('oslo', machine('LINUX'), 1);
    world.submit('r', 's1', { requirement: LINUX });
    world.run(2);
    world.setMachines('rome', machine('LINUX'), 1);
    world.submit('r', 'l1', { requirement: LINUX });
    world.run(4);
    // Rome has a machine that is free and asks; what it is given must wait there.
    world.setMachines('rome', machine('UNIX'), 1);
    world.submit('r', 's2', { requirement: LINUX, origin: OSLO });
    world.run(6);
    expect(movesOf(world, 'r-owner/s2')).toEqual(['r g UNASSIGNED', 'g rome UNASSIGNED']);
    world.run(100);
    expect(movesOf(world, 'r-owner/s2').slice(2)).toEqual(['rome g BUTTERFLY', 'g oslo BUTTERFLY']);
    expect(world.moves.at(-1)?.times).toBe(1);
    expect(world.runs.get('r-owner/s2')).toMatchObject({ leaf: 'oslo', ended: true });
  });

  it('gives conditions that a user would like more weight than distance', () => {
    const world = twoSites();
    world.setMachines('oslo', machine('LINUX'), 1);
    world.setMachines('rome', machine('LINUX'), 1);
    world.submit('r', 'l1', { requirement: LINUX });
    world.submit('r', 's1', { requirement: LINUX });
    world.run(4);
    const busy = world.runs.get('r-owner/l1')?.leaf as string;
    const other = busy === 'oslo' ? 'rome' : 'oslo';
    world.setMachines(busy, machine('UNIX'), 1);
    const origin = busy === 'oslo' ? OSLO : ROME;
    world.submit('r', 's2', { requirement: LINUX, origin, preferences: [preference({ leaf: other })] });
    world.run(100);
    expect(world.runs.get('r-owner/s2')).toMatchObject({ leaf: other });
    expect(movesOf(world, 'r-owner/s2').join()).toContain('BUTTERFLY');
  });

  it('gives a job whose machine is lost a place elsewhere, ahead of later arrivals', () => {
    const world = twoSites();
    for (const site of ['oslo', 'rome']) {
      world.setMachines(site, machine('LINUX'), 1);
      // It asks for work all the time.
      world.setMachines(site, machine('UNIX'), 1);
    }
    for (const leaf of ['oslo', 'rome']) {
      world.submit('r', `l-${leaf}`, { requirement: LINUX, preferences: [preference({ leaf })] });
      world.run(world.now + 2);
    }
    expect(world.runs.size).toBe(2);
    for (const job of ['s1', 's2', 's3', 's4']) world.submit('r', job, { requirement: LINUX });
    world.run(5);
    const waitsAt = (site: string): string[] =>
      (world.sites.get(site)?.leaf.queue ?? []).map(({ id }) => id.split('/')[1] as string);
    const first = waitsAt('oslo').includes('s1') ? 'oslo' : 'rome';
    const other = first === 'oslo' ? 'rome' : 'oslo';
    const lost = waitsAt(first);
    const kept = waitsAt(other);
    expect([...lost, ...kept].sort()).toEqual(['s1', 's2', 's3', 's4']);
    world.setMachines(first, machine('LINUX'), 0);
    world.run(6);
    expect(waitsAt(first)).toEqual([]);
    const { kept: channels, fresh } = world.channels();
    expect(channels).toEqual(fresh);
    expect(channels.r).toEqual([{ bag: [LINUX.key], power: 1 }]);
    const fallen = world.moves.filter(({ reason }) => reason === 'FALLBACK').map(({ job }) => job);
    expect(fallen).toContain('r-owner/s1');
    // The first of those that fell takes the place of a later one there, and does not wait to be asked for.
    const swapped = lost.filter((job) => movesOf(world, `r-owner/${job}`).includes(`g ${other} FALLBACK`));
    expect(swapped).toEqual(lost.filter((job) => kept.some((later) => later > job)));
    world.run(3000);
    const startedAt = (job: string): number => world.runs.get(`r-owner/${job}`)?.startedAt as number;
    const order = ['s1', 's2', 's3', 's4'].map(startedAt);
    expect(order).toEqual([...order].sort((a, b) => a - b));
  });

  it('does not take what a child says of a former tree for what it says of this one', () => {
    const sent: { to: Address; message: Message }[] = [];
    const effects = { send: (to: Address, message: Message) => void sent.push({ to, message }) };
    const scheduler = new Scheduler('g', effects, DEFAULT_TREE_RULES);
    const made = request({ id: 'job', owner: 'o', requirement: LINUX });
    const entry: Entry = { ...made, key: 1, rank: 0, sequence: 1, turn: 0, moves: 0 };
    const give = (parent: Address): void => {
      scheduler.setParent(parent);
      scheduler.receive(parent, { kind: 'DISCOVER', requirements: [LINUX], preferences: [], gone: [] });
      scheduler.receive(parent, { kind: 'BLOCK', port: 1, entries: [entry], answer: false, ahead: null });
      scheduler.receive('leaf', { kind: 'RFC', port: 1 });
      scheduler.settle();
    };
    scheduler.attach('leaf');
    scheduler.receive('leaf', { kind: 'CHANNEL', port: 1, bag: [LINUX.key], power: 1, leaves: [] });
    give('p');
    give('q');
    expect([...scheduler.requests()].map(({ at }) => at)).toEqual(['leaf']);
    scheduler.receive('leaf', { kind: 'RETURNED', keys: [1] });
    scheduler.receive('leaf', { kind: 'RESET_DONE' });
    expect([...scheduler.requests()].map(({ at }) => at)).toEqual(['leaf']);
    scheduler.receive('leaf', { kind: 'RESET_DONE' });
    scheduler.receive('leaf', { kind: 'RETURNED', keys: [1] });
    expect([...scheduler.requests()].map(({ at }) => at)).toEqual(['g']);
  });

  it('tells equal requirements and preferences from others', () => {
    expect(preference({ leaf: 'oslo' }).key).not.toBe(preference({ leaf: 'rome' }).key);
    expect(requirement({ os: ['B', 'A', 'B'] }).key).toBe(requirement({ os: ['A', 'B'] }).key);
  });
});

describe('peers', () => {
  function peers(rules: Partial<RootRules>): TreeWorld {
    const world = new TreeWorld(AT_ONCE, 1, DEFAULT_TREE_RULES, () => 50);
    for (const tree of ['p', 'q']) world.addRoot(tree, rules).neighbors.add(tree === 'p' ? 'q' : 'p');
    world.addSite('here', 'p');
    world.addSite('there', 'q');
    world.setMachines('there', machine('LINUX'), 3);
    return world;
  }

  it('help out with what nobody here can run, and only then', () => {
    for (const [forward, helped] of [
      ['ALWAYS', true],
      ['WHEN_NEEDED', true],
      ['NEVER', false],
    ] as const) {
      const world = peers({ forward });
      world.submit('p', 'job', { requirement: LINUX });
      world.run(100);
      expect(world.runs.get('p-owner/job')?.ended ?? false, forward).toBe(helped);
    }
    const world = peers({ forward: 'WHEN_NEEDED', neededAfterS: 60 });
    world.setMachines('here', machine('LINUX'), 1);
    for (const job of ['a', 'b', 'c', 'd']) world.submit('p', job, { requirement: LINUX });
    world.run(300);
    const leaves = ['a', 'b', 'c', 'd'].map((job) => world.runs.get(`p-owner/${job}`)?.leaf);
    expect(leaves.slice(0, 2)).toEqual(['here', 'here']);
    expect(leaves.slice(2)).toContain('there');
  });

  it('take no more foreign requests than they want to, and serve them in their rank', () => {
    const world = peers({ forward: 'ALWAYS', foreignMax: 2, foreignRank: 1 });
    world.setMachines('there', machine('LINUX'), 0);
    for (let i = 0; i < 5; i++) world.submit('p', `foreign${i}`, { requirement: LINUX });
    world.run(10);
    expect(world.roots.get('q')?.foreign).toBe(2);
    world.submit('q', 'home', { requirement: LINUX });
    world.run(20);
    world.setMachines('there', machine('LINUX'), 1);
    world.run(300);
    const at = (job: string): number => world.runs.get(job)?.startedAt as number;
    expect(at('q-owner/home')).toBeLessThan(at('p-owner/foreign0'));
  });

  it('isolate themselves at once: all requests are their owners’ again', () => {
    const world = peers({ forward: 'ALWAYS' });
    world.setMachines('there', machine('LINUX'), 0);
    world.submit('p', 'foreign', { requirement: LINUX });
    world.submit('q', 'home', { requirement: LINUX });
    world.run(10);
    expect([world.roots.get('p')?.foreign, world.roots.get('q')?.foreign]).toEqual([1, 1]);
    world.roots.get('q')?.isolate();
    world.run(20);
    expect([world.roots.get('p')?.foreign, world.roots.get('q')?.foreign]).toEqual([0, 0]);
    expect([world.roots.get('p')?.waiting, world.roots.get('q')?.waiting]).toEqual([1, 1]);
    world.setMachines('there', machine('LINUX'), 2);
    world.run(200);
    expect([...world.runs.keys()]).toEqual(['q-owner/home']);
    world.roots.get('q')?.rejoin();
    world.submit('p', 'later', { requirement: LINUX });
    world.run(400);
    expect([...world.runs.keys()]).toEqual(['q-owner/home', 'p-owner/later']);
  });
});

describe('selection', () => {
  const branch = fc.record({ power: fc.integer({ min: 1, max: 50 }) });
  it('shares are within the rounding of what is due, and blocks within what is missing', () => {
    fc.assert(
      fc.property(
        fc.array(branch, { minLength: 1, maxLength: 6 }),
        fc.array(
          fc.record({ at: fc.integer({ min: -1, max: 5 }), fits: fc.nat({ max: 63 }), gain: natural }),
          {
            maxLength: 60,
          },
        ),
        fc.record({ butterfly: fc.boolean(), loadBalance: fc.boolean() }),
        (branches, jobs, switches) => {
          const total = branches.reduce((sum, { power }) => sum + power, 0);
          const takers = branches.map(
            ({ power }, i): Taker => ({
              power,
              place: new Place(),
              coming: 0,
              fits: (requirementKey) => ((jobs[Number(requirementKey)]?.fits as number) >> i) % 2 === 1,
              gain: (sample) => ({
                conditions: ((jobs[sample.key]?.gain as number) >> i) % 4,
                distanceKm: 0,
              }),
            }),
          );
          const unassigned = new Place();
          const entries = jobs.map(({ at }, key): Entry => {
            const origin = { latitude: 0, longitude: 0 };
            const made = request({
              id: `${key}`,
              owner: '',
              requirement: { ...LINUX, key: `${key}` },
              origin,
            });
            const entry = { ...made, key, rank: key % 2, sequence: key, turn: 0, moves: key % 17 };
            (takers[at]?.place ?? unassigned).add(entry);
            return entry;
          });
          const shares = takers.map(({ power }) => shareOf(power, total, jobs.length));
          for (const [i, share] of shares.entries()) {
            const due = ((branches[i] as { power: number }).power / total) * jobs.length;
            expect(share).toBeGreaterThan(due - 1e-9);
            expect(share).toBeLessThan(due + 1 + 1e-9);
          }
          for (const [i, asked] of takers.entries()) {
            const block = collect(asked, takers, unassigned, entries.length, {
              ...switches,
              fallback: true,
              movesMax: 16,
            });
            expect(block.length).toBeLessThanOrEqual(Math.max(0, (shares[i] as number) - asked.place.size));
            expect(new Set(block.map(({ entry }) => entry)).size).toBe(block.length);
            expect(block.map(({ entry }) => entry)).toEqual(block.map(({ entry }) => entry).sort(inOrder));
            for (const { entry, from, how } of block) {
              expect(asked.fits(entry.requirement.key)).toBe(true);
              expect(from).not.toBe(asked);
              if (from !== null) expect(entry.moves).toBeLessThan(16);
              if (how === 'BUTTERFLY')
                expect(asked.gain(entry).conditions).toBeGreaterThan(from?.gain(entry).conditions as number);
            }
            for (const [j, other] of takers.entries()) {
              const balanced = block.filter(
                ({ from, how }) => from === other && how === 'LOAD_BALANCE',
              ).length;
              if (balanced > 0) {
                const left = other.place.size - block.filter(({ from }) => from === other).length;
                expect(left).toBeGreaterThanOrEqual(shares[j] as number);
              }
            }
          }
        },
      ),
      { numRuns: cases(300) },
    );
  });
});

describe('branches that ask in the same turn', () => {
  /** Three leaves with a CPU each have asked, in this order, when these requests come; what each is sent. */
  function given(...origins: (typeof OSLO | null)[]): Record<string, number[]> {
    const blocks: Record<string, number[]> = { rome: [], oslo: [], bern: [] };
    const others: string[] = [];
    const send = (to: Address, message: Message): void => {
      if (message.kind === 'BLOCK') blocks[to]?.push(...message.entries.map(({ key }) => key));
      else if (to in blocks) others.push(message.kind);
    };
    const scheduler = new Scheduler('s', { send }, DEFAULT_TREE_RULES);
    scheduler.setParent('r');
    for (const [leaf, position] of [
      ['rome', ROME] as const,
      ['oslo', OSLO] as const,
      ['bern', null] as const,
    ]) {
      scheduler.attach(leaf);
      const leaves = [{ leaf, position, holds: [] }];
      scheduler.receive(leaf, { kind: 'CHANNEL', port: 1, bag: [LINUX.key], power: 1, leaves });
      scheduler.receive(leaf, { kind: 'RFC', port: 1 });
    }
    scheduler.settle();
    const entries = origins.map((origin, key): Entry => {
      const made = request({ id: `${key}`, owner: 'o', requirement: LINUX, origin });
      return { ...made, key, rank: 0, sequence: key, turn: 0, moves: 0 };
    });
    scheduler.receive('r', { kind: 'BLOCK', port: 1, entries, answer: true, ahead: null });
    scheduler.settle();
    expect(others.filter((kind) => kind === 'TAKE_BACK')).toEqual([]);
    return blocks;
  }

  it('all get what is due to them before what is left over goes to the first', () => {
    expect(given(null, null, null, null)).toEqual({ rome: [0, 3], oslo: [1], bern: [2] });
    expect(given(null, null)).toEqual({ rome: [0], oslo: [1], bern: [] });
  });

  it('what one is given is at once a nearer one’s', () => {
    expect(given(OSLO)).toEqual({ rome: [], oslo: [0], bern: [] });
    expect(given(OSLO, ROME, null)).toEqual({ rome: [1], oslo: [0], bern: [2] });
  });
});

describe('Link', () => {
  it('hands over each message once and in order, whatever becomes of packets', () => {
    const step = fc.constantFrom('SEND', 'PACKET', 'LOSE', 'FIRST', 'LAST', 'REPEAT');
    fc.assert(
      fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
        const a = new Link('1');
        const b = new Link('1');
        const under: Packet[] = [];
        const got: number[] = [];
        let sent = 0;
        const arrive = (packet: Packet | undefined): void => {
          if (packet === undefined) return;
          for (const message of b.accept(packet)) got.push((message as { port: number }).port);
          a.accept(b.packet());
        };
        for (const one of steps) {
          if (one === 'SEND') a.send({ kind: 'RFC', port: sent++ });
          if (one === 'PACKET') under.push(a.packet());
          if (one === 'LOSE') under.shift();
          if (one === 'FIRST') arrive(under.shift());
          if (one === 'LAST') arrive(under.pop());
          if (one === 'REPEAT') arrive(under[0]);
          expect(got).toEqual(Array.from({ length: got.length }, (_, i) => i));
        }
        arrive(a.packet());
        expect(got).toHaveLength(sent);
        expect(a.pending).toEqual([]);
        // Of another connection.
        expect(b.accept({ ...a.packet(), session: '2', messages: [{ kind: 'RFJM' }] })).toEqual([]);
      }),
      { numRuns: cases(300) },
    );
  });
});
