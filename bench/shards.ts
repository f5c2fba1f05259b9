/**
 * What docs/shards.md needs to know: how long each kind of transaction holds the event lock, what it costs to move jobs to another
 * database, and what two event locks give on one machine. On real servers, everything durable.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { EmbeddedPostgres } from '../src/store/embedded.js';
import { dispatchGrid, planDispatch, policyOf, timeSiteCycle } from './core.js';
import { type Bench, cpuSeconds, type Measured, median, seconds, sized, spreadOf } from './measure.js';
import { Driver, prepareDatabase, startServer } from './shardDatabase.js';
import { type Moved, Way } from './shardMoves.js';

const MOVES = [1, 100, 10_000] as const;
const LIVES = [1, 100] as const;
const ROUNDS = sized(5, 1);
/** Sites that do as `shards-lives-N` says at a time. */
const DRIVERS = 8;
const STEPS = ['submit', 'move', 'start', 'started', 'ended'] as const;
/** Jobs of a dispatch cycle, and sites among which it chooses. */
const PLANNED = sized(5_000, 50);
const FEW_SITES = 50;
const MANY_SITES = 400;
const MANY = sized(1_000, 10);
const FEW = sized(60, 2);

const us = (s: number): string => `${(s * 1e6).toFixed(1)} µs`;
const ms = (s: number): string => `${(s * 1000).toFixed(2)} ms`;

/** How long each step of lives holds the event lock, by jobs in its transaction, in the order of `STEPS`. */
async function heldByStep(driver: Driver, count: number, rounds: number): Promise<number[]> {
  const held: number[][] = STEPS.map(() => []);
  for (let round = 0; round < rounds; round++) {
    let jobIds: number[] = [];
    const steps = [
      async () => {
        jobIds = await driver.submit(count);
      },
      () => driver.move(jobIds),
      () => driver.start(jobIds),
      () => driver.report(jobIds, 'STARTED'),
      () => driver.report(jobIds, 'ENDED'),
    ];
    for (const [i, step] of steps.entries()) held[i]?.push(await driver.heldS(step));
  }
  return held.map(median);
}

/** Bytes of the database for each job that waits at its site, and for each that has ended. */
async function bytesOf(driver: Driver): Promise<[waiting: number, ended: number]> {
  const size = () => driver.value('SELECT pg_database_size(current_database())::float8 AS v');
  const jobIds: number[][] = [];
  const before = await size();
  for (let batch = 0; batch < 10; batch++) {
    const ids = await driver.submit(MANY);
    await driver.move(ids);
    jobIds.push(ids);
  }
  const waiting = await size();
  for (const ids of jobIds) {
    await driver.start(ids);
    await driver.report(ids, 'STARTED');
    await driver.report(ids, 'ENDED');
  }
  return [waiting, await size()].map((bytes) => (bytes - before) / (10 * MANY)) as [number, number];
}

async function lockBench(servers: readonly EmbeddedPostgres[]): Promise<Measured> {
  const url = await prepareDatabase(servers[0] as EmbeddedPostgres, 'held', 1);
  const driver = new Driver(url, 1);
  await driver.live(MANY);
  const one: number[][] = [];
  const many: number[][] = [];
  const unflushed: number[][] = [];
  for (let round = 0; round < sized(5, 1); round++) {
    many.push(await heldByStep(driver, MANY, 1));
    await driver.value(`SELECT set_config('synchronous_commit', 'on', false), 1 AS v`);
    one.push(await heldByStep(driver, 1, FEW));
    await driver.value(`SELECT set_config('synchronous_commit', 'off', false), 1 AS v`);
    unflushed.push(await heldByStep(driver, 1, FEW));
    await driver.value(`SELECT set_config('synchronous_commit', 'on', false), 1 AS v`);
  }
  const [waiting, ended] = await bytesOf(driver);
  await driver.close();
  const typical = (rounds: readonly number[][], step: number): number =>
    median(rounds.map((round) => round[step] as number));
  const parts = STEPS.map((name, step) => {
    const [single, batch, without] = [one, many, unflushed].map((rounds) => typical(rounds, step)) as [
      number,
      number,
      number,
    ];
    return { name, single, without, perJob: (batch - single) / (MANY - 1) };
  });
  const lives = many.map((steps) => steps.reduce((sum, held) => sum + held, 0) / MANY);
  const singles = one.map((steps) => steps.reduce((sum, held) => sum + held, 0));
  return {
    ...{ name: 'shards-lock', unit: 's', aim: null, value: median(lives), spread: spreadOf(lives) },
    ...{ baseline: median(singles), ratio: median(lives) / median(singles) },
    what: `how long a life holds the event lock, in its five transactions, each of ${MANY} jobs; against each of one`,
    note: `for one job, for one without its flush, and for each further job: ${parts
      .map(({ name, single, without, perJob }) => `${name} ${ms(single)}, ${ms(without)}, ${us(perJob)}`)
      .join('; ')}; on disk a waiting job has ${waiting.toFixed(0)} bytes, an ended one ${ended.toFixed(0)}`,
  };
}

async function movesBench(servers: readonly EmbeddedPostgres[], size: number): Promise<Measured[]> {
  const count = sized(size, Math.min(size, 100));
  const urls = await Promise.all(servers.map((server) => prepareDatabase(server, `moves_${size}`, 1)));
  const drivers = [...urls, ...urls].map((url) => new Driver(url, 1));
  const [source, , from, to] = drivers as [Driver, Driver, Driver, Driver];
  const way = await Way.between(from, to);
  const took = {
    within: [] as Moved[],
    twoPhase: [] as Moved[],
    handOver: [] as (Moved & { confirmS: number })[],
  };
  try {
    const rounds = ROUNDS * (size === 1 ? sized(20, 1) : 1);
    for (let round = 0; round < rounds; round++) {
      took.within.push(await way.within(await source.submit(count)));
      took.twoPhase.push(await way.twoPhase(await source.submit(count)));
      took.handOver.push(await way.handOver(await source.submit(count)));
    }
  } finally {
    way.close();
    for (const driver of drivers) await driver.close();
  }
  const locks = (moved: readonly Moved[]): string =>
    `event locks held ${ms(median(moved.map((one) => one.fromHeldS)))} and ${ms(median(moved.map((one) => one.toHeldS)))}`;
  const within = median(took.within.map((one) => one.tookS));
  const heldWithin = ms(median(took.within.map((one) => one.fromHeldS)));
  const resultOf = (
    kind: 'two-phase' | 'hand-over',
    how: string,
    moved: readonly Moved[],
    note: string,
  ): Measured => {
    const values = moved.map((one) => one.tookS);
    return {
      ...{
        name: `shards-${kind}-${size}`,
        unit: 's',
        aim: null,
        value: median(values),
        spread: spreadOf(values),
      },
      ...{ baseline: within, ratio: median(values) / within },
      what: `${size} queued jobs to another database, ${how}; against the same move within one`,
      note: `${locks(moved)}; within one database ${heldWithin}${note}`,
    };
  };
  const confirm = ms(median(took.handOver.map((one) => one.confirmS)));
  return [
    resultOf('two-phase', 'both or none (PREPARE TRANSACTION)', took.twoPhase, ''),
    resultOf(
      'hand-over',
      'here and then there, repeatable',
      took.handOver,
      `; the note is removed in ${confirm} more`,
    ),
  ];
}

/** Lives in a second, and the seconds that each waits for an event lock, with half of the sites on each of these databases. */
async function livesOver(
  urls: readonly string[],
  batch: number,
  batches: number,
): Promise<[perSecond: number, waitedS: number]> {
  const drivers = Array.from({ length: DRIVERS }, (_, i) => {
    const site = Math.floor(i / urls.length) + 1;
    return new Driver(urls[i % urls.length] as string, site);
  });
  const elapsed = await seconds(() =>
    Promise.all(
      drivers.map(async (driver) => {
        for (let done = 0; done < batches; done++) await driver.live(batch);
      }),
    ),
  );
  const waited = await Promise.all(drivers.map((driver) => driver.waitedS()));
  for (const driver of drivers) await driver.close();
  const lives = DRIVERS * batch * batches;
  return [lives / elapsed, waited.reduce((sum, one) => sum + one, 0) / lives];
}

async function livesBench(servers: readonly EmbeddedPostgres[], batch: number): Promise<Measured> {
  const [first, second] = servers as [EmbeddedPostgres, EmbeddedPostgres];
  const one = await prepareDatabase(first, `lives_${batch}`, DRIVERS);
  const beside = await prepareDatabase(first, `beside_${batch}`, DRIVERS);
  const other = await prepareDatabase(second, `lives_${batch}`, DRIVERS);
  const layouts = [[one], [one, other], [one, beside]];
  const batches = sized(batch === 1 ? 20 : 5, 2);
  for (const urls of layouts) await livesOver(urls, batch, 2);
  const measured = layouts.map((): [perSecond: number, waitedS: number][] => []);
  for (let round = 0; round < ROUNDS; round++)
    for (const [i, urls] of layouts.entries()) measured[i]?.push(await livesOver(urls, batch, batches));
  const [baseline, value, sameServer] = measured.map((rounds) => median(rounds.map(([rate]) => rate))) as [
    number,
    number,
    number,
  ];
  const waits = measured.map((rounds) => ms(median(rounds.map(([, waitedS]) => waitedS))));
  return {
    ...{ name: `shards-lives-${batch}`, unit: 'jobs/s', aim: null, value, baseline, ratio: value / baseline },
    spread: spreadOf((measured[1] as [number, number][]).map(([rate]) => rate)),
    what: `lives of jobs at ${DRIVERS} sites at a time, ${batch} in a transaction, half of the sites in each of two databases on servers of their own; against all in one`,
    note: `a life waits ${waits[1]} for its event lock; in one database ${waits[0]}; in two databases of one server ${waits[2]}, at ${sameServer.toFixed(0)} jobs/s`,
  };
}

async function planBench(): Promise<Measured> {
  const grids = [FEW_SITES, MANY_SITES].map((sites) => dispatchGrid(PLANNED, sites));
  const policy = policyOf('MS');
  const took = grids.map((): number[] => []);
  for (let round = 0; round < sized(12, 1); round++)
    for (const [i, grid] of grids.entries())
      took[i]?.push((await cpuSeconds(() => planDispatch(grid, policy, PLANNED))) / PLANNED);
  const [few, many] = took.map(median) as [number, number];
  const site = median(timeSiteCycle(sized(100, 1), 100, 'MS'));
  return {
    ...{ name: 'shards-plan', unit: 's', aim: null, value: many, baseline: few, ratio: many / few },
    spread: spreadOf(took[1] as number[]),
    what: `CPU to plan the move of one job among ${MANY_SITES} sites; among ${FEW_SITES}`,
    note: `${us((many - few) / (MANY_SITES - FEW_SITES))} for each site more; a cycle of a site with 100 queued jobs takes ${ms(site)}`,
  };
}

const NAMES = [
  'shards-plan',
  'shards-lock',
  ...MOVES.map((count) => `shards-moves-${count}`),
  ...LIVES.map((batch) => `shards-lives-${batch}`),
];

export const shardsBench: Bench = {
  names: NAMES,
  async run(only) {
    if (only('shards-plan')) return [await planBench()];
    const homes = [1, 2].map(() => mkdtempSync(join(tmpdir(), 'switchyard-bench-')));
    const servers = await Promise.all(homes.map(startServer));
    try {
      const results: Measured[] = [];
      if (only('shards-lock')) results.push(await lockBench(servers));
      for (const count of MOVES)
        if (only(`shards-moves-${count}`)) results.push(...(await movesBench(servers, count)));
      for (const batch of LIVES)
        if (only(`shards-lives-${batch}`)) results.push(await livesBench(servers, batch));
      return results;
    } finally {
      for (const server of servers) await server.stop();
      for (const home of homes) rmSync(home, { recursive: true, force: true });
    }
  },
};
