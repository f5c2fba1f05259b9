/**
 * The same random histories with the root and the owner of a simulated tree, and with a service on PostgreSQL: after each step the same peers
 * may claim the same jobs, and claims are answered alike.
 */
import * as fc from 'fast-check';
import { beforeAll, expect, test } from 'vitest';
import {
  type Address,
  DEFAULT_ROOT_RULES,
  DEFAULT_TREE_RULES,
  type Effects,
  type Forward,
  isCheaper,
  Leaf,
  type Message,
  Owner,
  Pump,
  Root,
  request,
  requirement,
} from '../../src/core/grid-tree/index.js';
import type { OfferedJob, ToldLoad } from '../../src/store/federation.js';
import { withApi } from '../api/support/api.js';
import { cases } from '../support/seed.js';

const api = withApi();
const PEERS = ['q', 'r'] as const;
type PeerName = (typeof PEERS)[number];
const NEEDED_AFTER_S = 100;
const HOPS = 3;
/** A root looks so often at what may be needed elsewhere. */
const LOOKS_S = 1;
/** Our machine, of 4 CPUs. */
const HOME = { power: 400, benchmark: 100 };
const sites = new Map<PeerName, number>();

const step = fc.oneof(
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('SUBMIT' as const), away: fc.boolean() }) },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('FOREIGN' as const),
      away: fc.boolean(),
      hops: fc.integer({ min: 1, max: 3 }),
      seen: fc.boolean(),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant('CLAIM' as const),
      by: fc.constantFrom(...PEERS),
      n: fc.nat(20),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('CANCEL' as const), n: fc.nat(20) }) },
  {
    weight: 2,
    arbitrary: fc.record({ kind: fc.constant('WAIT' as const), s: fc.integer({ min: 1, max: 90 }) }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constantFrom('ISOLATE' as const, 'REJOIN' as const) }) },
);
const history = fc.record({
  forward: fc.constantFrom<Forward>('ALWAYS', 'WHEN_NEEDED', 'WHEN_CHEAPER', 'NEVER'),
  steps: fc.array(step, { minLength: 8, maxLength: 25 }),
});

/** What peers hold, by name: numbers of jobs, sorted. */
type Held = Record<PeerName, number[]>;
const sorted = (held: Record<PeerName, Set<number>>): Held => ({
  q: [...held.q].sort((x, y) => x - y),
  r: [...held.r].sort((x, y) => x - y),
});

/** A tree whose site takes nothing, its owner, and what it says to its peers. */
class Simulated {
  readonly held: Record<PeerName, Set<number>> = { q: new Set(), r: new Set() };
  private readonly pump = new Pump();
  private readonly owner: Owner;
  private readonly root: Root;
  private answer = '';

  constructor(forward: Forward) {
    const effects = (id: Address): Effects => ({ send: (to, message) => this.pump.send(id, to, message) });
    const rules = { ...DEFAULT_ROOT_RULES, forward, neededAfterS: NEEDED_AFTER_S, hops: HOPS };
    // Answers to a discovery need a moment, or what a site here can run would be taken for what none can.
    const answerS = LOOKS_S / 2;
    this.root = new Root('p', effects('p'), DEFAULT_TREE_RULES, { ...rules, rawWaitS: 0, answerS });
    this.owner = new Owner('o', effects('o'), 'p');
    const home = new Leaf('home', effects('home'));
    home.setMachines({ os: 'home', architecture: 'x64', licenses: [], cpus: 4, memoryMb: 4_000 }, 1);
    this.pump.add('p', this.root);
    this.pump.add('o', this.owner);
    this.pump.add('home', home);
    for (const peer of PEERS) {
      this.root.neighbors.add(peer);
      this.pump.add(peer, { receive: (_, message) => this.hear(peer, message) });
    }
    home.setParent('p');
    this.root.attach('home');
  }

  submit(number: number, os: string): void {
    this.owner.submit(String(number), { requirement: requirement({ os: [os] }) });
  }

  foreign(number: number, os: string, hops: number, visited: string[]): void {
    const made = request({ id: `x/${number}/1`, owner: 'x', requirement: requirement({ os: [os] }) });
    this.pump.send('q', 'p', { kind: 'FORWARD', request: made, origin: 'q', hops, visited });
  }

  claim(by: PeerName, number: number): string {
    this.answer = '';
    this.pump.send(by, 'o', { kind: 'CLAIM', id: `o/${number}/1` });
    this.pump.run();
    return this.answer;
  }

  end(number: number): void {
    this.owner.end(String(number));
  }

  isolate(isolated: boolean): void {
    if (isolated) this.root.isolate();
    else this.root.rejoin();
  }

  settle(now: number): void {
    this.root.at(now);
    this.pump.touch('p');
    this.pump.run();
    // What has come only now it looks at then.
    this.root.at(now + LOOKS_S);
    this.pump.touch('p');
    this.pump.run();
  }

  private hear(peer: PeerName, message: Message): void {
    const numberOf = (id: string): number => Number(id.split('/')[1]);
    if (message.kind === 'FORWARD') this.held[peer].add(numberOf(message.request.id));
    if (message.kind === 'TAKEN') this.held[peer].delete(numberOf(message.id));
    if (message.kind === 'GRANTED' || message.kind === 'REFUSED') this.answer = message.kind;
  }
}

/** The service's own functions, as its peers call them. */
class Live {
  readonly held: Record<PeerName, Set<number>> = { q: new Set(), r: new Set() };
  private readonly offers: Record<PeerName, Map<number, number>> = { q: new Map(), r: new Map() };
  private readonly jobs = new Map<number, number>();
  private readonly numbers = new Map<number, number>();
  private readonly cursors: Record<PeerName, number> = { q: 0, r: 0 };

  async submit(number: number, os: string, now: number, estimateS = 1): Promise<void> {
    const job = { command: 'x', estimateS, benchmark: HOME.benchmark, os };
    const { submitJobs } = await api.must<{ submitJobs: { jobIds: string[] } }>(
      'mutation ($input: SubmitJobsInput!) { submitJobs(input: $input) { jobIds } }',
      { input: { jobs: [job], allowUnfit: true } },
    );
    const id = Number(submitJobs.jobIds[0]?.slice('job_'.length));
    // Time is the history's, for all of it at once: no trigger would let a job's past be changed.
    await api.db.pool.query(
      `BEGIN; SET LOCAL session_replication_role = replica; UPDATE jobs SET submitted_at = to_timestamp(${now}) WHERE id = ${id}; COMMIT`,
    );
    this.know(number, id);
  }

  async foreign(number: number, os: string, hops: number, visited: string[], now: number): Promise<void> {
    const asked = { ...JOB, request: `x/${number}/1`, hops, visited, os };
    const copy = { offer: 1_000_000 + number, jobId: number, boost: 0, request: asked };
    const share = { jobs: 1_000_000, bytes: 1e12 };
    const refused = await api.parts.store.copies.accept(sites.get('q') as number, [copy], share, now);
    if (refused.length > 0) return;
    const { rows } = await api.db.pool.query('SELECT job_id FROM foreign_jobs WHERE offer = $1', [
      copy.offer,
    ]);
    this.know(number, Number(rows[0].job_id));
  }

  async claim(by: PeerName, number: number, now: number): Promise<string> {
    const offer = this.offers[by].get(number) as number;
    const {
      results: [result],
    } = await api.parts.store.offers.claim(sites.get(by) as number, [offer], now);
    return result?.kind ?? '';
  }

  async end(number: number): Promise<void> {
    const ids = [`job_${this.jobs.get(number)}`];
    await api.must('mutation ($s: JobSelection!) { cancelJobs(input: { selection: $s }) { jobIds } }', {
      s: { ids },
    });
  }

  async isolate(isolated: boolean): Promise<void> {
    const mutation = isolated ? 'isolatePeer' : 'rejoinPeer';
    for (const site of sites.values())
      await api.must(
        `mutation ($peer: ID!) { ${mutation}(input: { siteId: $peer }) { peer { isolated } } }`,
        {
          peer: `site_${site}`,
        },
      );
  }

  async settle(now: number, load: ToldLoad | null = null): Promise<void> {
    for (const peer of PEERS) {
      const asked = { protocol: 3, service: peer, after: this.cursors[peer], room: 1_000, kinds: KINDS };
      const news = await api.parts.store.offers.exchange(
        sites.get(peer) as number,
        { ...asked, classes: [], places: [], load },
        now,
      );
      for (const { offer, version, state, jobId } of news) {
        this.cursors[peer] = version;
        const number = this.numbers.get(jobId);
        if (number === undefined) continue;
        this.offers[peer].set(number, offer);
        if (state === 'OFFERED') this.held[peer].add(number);
        else this.held[peer].delete(number);
      }
    }
  }

  private know(number: number, id: number): void {
    this.jobs.set(number, id);
    this.numbers.set(id, number);
  }
}

const KINDS = ['home', 'away'].map((os) => {
  const kind = { site: 1, os, architecture: 'x64', cpus: 4, memoryMb: 4_000, maxTasks: null };
  return { ...kind, machines: 1, hops: 1, licenses: [], devices: [] };
});
const JOB: Omit<OfferedJob, 'request' | 'hops' | 'visited' | 'os'> = {
  ...{ user: 'u', bytes: 600, name: null, application: 'x', arrayIndex: null, tasks: 1, cpusPerTask: 1 },
  ...{
    memoryMbPerTask: 0,
    licenses: [],
    architecture: null,
    estimateS: 1,
    benchmark: 100,
    runTimeLimitS: null,
  },
  ...{ deadline: null, sandboxMb: 0, outputMb: 0, computationShare: null, preferences: [], outputs: [] },
  ...{ parts: null, devicesPerTask: null, class: null },
  ...{ simulatedRunS: null, simulatedIoS: null, launch: 'EVERY_TASK', onTaskFailure: 'END_ALL' },
};

beforeAll(async () => {
  const { createSite } = await api.must<{ createSite: { site: { id: string } } }>(
    'mutation { createSite(input: { name: "home" }) { site { id } } }',
  );
  await api.must(
    'mutation ($input: CreateMachineInput!) { createMachine(input: $input) { machine { id } } }',
    {
      input: {
        siteId: createSite.site.id,
        name: 'm',
        cpus: 4,
        memoryMb: 4_000,
        benchmark: 100,
        os: 'home',
        architecture: 'x64',
      },
    },
  );
});

async function federate(forward: Forward): Promise<void> {
  for (const name of PEERS) {
    const { setPeer: federate } = await api.must<{ setPeer: { peer: { site: { id: string } } } }>(
      'mutation ($input: SetPeerInput!) { setPeer(input: $input) { peer { site { id } } } }',
      { input: { name, forward, hops: HOPS, neededAfterS: NEEDED_AFTER_S } },
    );
    sites.set(name, Number(federate.peer.site.id.slice('site_'.length)));
  }
}

let numbers = 0;

async function play({
  forward,
  steps,
}: {
  forward: Forward;
  steps: readonly (typeof step extends fc.Arbitrary<infer S> ? S : never)[];
}): Promise<void> {
  await federate(forward);
  const simulated = new Simulated(forward);
  const live = new Live();
  await live.isolate(false);
  const base = Date.now() / 1000;
  const own: number[] = [];
  const granted = new Map<number, PeerName>();
  let now = 0;
  let isIsolated = false;
  await live.settle(base);
  for (const one of steps) {
    now += 2;
    const os = 'away' in one && one.away ? 'away' : 'home';
    if (one.kind === 'SUBMIT') {
      own.push(++numbers);
      simulated.submit(numbers, os);
      await live.submit(numbers, os, base + now);
    } else if (one.kind === 'FOREIGN') {
      const visited = one.seen ? ['q', 'r'] : ['q'];
      simulated.foreign(++numbers, os, one.hops, visited);
      await live.foreign(numbers, os, one.hops, visited, base + now);
    } else if (one.kind === 'CLAIM') {
      // Of those that it may have, or somebody has.
      const open = own.filter((number) => live.held[one.by].has(number) || granted.has(number));
      const number = open[one.n % Math.max(1, open.length)];
      const knows = number !== undefined && (live.held[one.by].has(number) || granted.get(number) === one.by);
      if (!knows) continue;
      const answer = await live.claim(one.by, number, base + now);
      expect(answer, `claim of ${number} by ${one.by}`).toBe(simulated.claim(one.by, number));
      if (answer === 'GRANTED') granted.set(number, one.by);
    } else if (one.kind === 'CANCEL') {
      const number = own.filter((each) => !granted.has(each))[one.n];
      if (number === undefined) continue;
      own.splice(own.indexOf(number), 1);
      simulated.end(number);
      await live.end(number);
    } else if (one.kind === 'WAIT') now += one.s;
    else if ((one.kind === 'ISOLATE') !== isIsolated) {
      isIsolated = !isIsolated;
      simulated.isolate(isIsolated);
      await live.isolate(isIsolated);
    }
    simulated.settle(now);
    await live.settle(base + now + LOOKS_S);
    expect(sorted(live.held), `after ${JSON.stringify(one)}`).toEqual(sorted(simulated.held));
  }
  await live.isolate(true);
  for (const number of own) if (!granted.has(number)) await live.end(number);
}

test('a service forwards, and grants, as the tree of the experiment does', async () => {
  await fc.assert(fc.asyncProperty(history, play), { numRuns: cases(6), endOnFailure: true });
});

/** Own jobs, by their estimate, and what a peer tells of its queue: about as long as ours. */
const queues = fc.record({
  jobs: fc.array(fc.integer({ min: 1, max: 1_000 }), { minLength: 8, maxLength: 12 }),
  there: fc.record({
    ahead: fc.nat(3),
    work: fc.integer({ min: 0, max: 300_000 }),
    power: fc.constantFrom(100, 400, 1_600),
    benchmark: fc.constantFrom(50, 100, 200),
  }),
});

test('a service compares the costs of its jobs at a peer and here by the rule of the core', async () => {
  const compare = async ({ jobs, there: told }: typeof queues extends fc.Arbitrary<infer Q> ? Q : never) => {
    await federate('WHEN_CHEAPER');
    const live = new Live();
    await live.isolate(false);
    const base = Date.now() / 1000;
    await live.settle(base);
    const here = { ahead: 0, work: 0, ...HOME };
    const there = { ...told };
    const expected: number[] = [];
    for (const [i, estimateS] of jobs.entries()) {
      await live.submit(i, 'home', base, estimateS);
      const work = estimateS * HOME.benchmark;
      if (isCheaper(there, here, work)) {
        expected.push(i);
        there.ahead++;
        there.work += work;
      }
      here.ahead++;
      here.work += work;
    }
    await live.settle(base + LOOKS_S, { ...told, ageS: 0 });
    // To each as if it were the only one.
    expect(sorted(live.held)).toEqual({ q: expected, r: expected });
    await live.isolate(true);
    for (const i of jobs.keys()) await live.end(i);
  };
  await fc.assert(fc.asyncProperty(queues, compare), {
    numRuns: cases(20),
    unbiased: true,
    endOnFailure: true,
  });
});
