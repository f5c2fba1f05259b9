/**
 * Three services in a row, a - b - c: whatever is killed, cut off, repeated, late or lost on the way, every job runs exactly once, by its own
 * record on disk, and its owner's subscribers hear every event once. `npm run test:faults -- --minutes N --seed S` goes on for longer.
 */
import { createHash } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { RandomStream } from '../../src/core/index.js';
import { withDatabase } from '../support/database.js';
import { checkPromises } from '../support/promises.js';
import { SEED } from '../support/seed.js';
import { federate, Link, newLedger, ran, Service, Subscriber } from './world.js';

const minutes = Number(process.env.FAULT_MINUTES ?? 0.06);
const seed = Number(process.env.FAULT_SEED ?? SEED);
const TROUBLE_MS = minutes * 60_000;
const SETTLE_MS = 120_000 + 2 * TROUBLE_MS;
/** Of a submission. */
const BATCH = 12;
/** A round of submissions waits while so many jobs have not ended. */
const LIVE_MAX = 200;

const databases = withDatabase();
const ledger = newLedger();
const random = new RandomStream(seed, 'federation');
let services: Service[] = [];
let subscribers: Subscriber[] = [];
const links: Link[] = [];

beforeAll(async () => {
  const urls = [databases.url, (await databases.another()).url, (await databases.another()).url];
  services = await Promise.all(
    ['a', 'b', 'c'].map((name, i) => Service.start(name, urls[i] as string, ledger)),
  );
  const [a, b, c] = services as [Service, Service, Service];
  for (const [one, other] of [
    [a, b],
    [b, c],
  ] as const) {
    const [toOne, toOther] = [await Link.to(one.port, random), await Link.to(other.port, random)];
    links.push(toOne, toOther);
    await federate(one, other, { toA: toOne.url, toB: toOther.url }, { a: { forward: 'ALWAYS' } });
  }
  subscribers = services.map((service) => new Subscriber(service));
}, 240_000);
afterAll(async () => {
  await Promise.allSettled([...subscribers.map((one) => one.stop()), ...services.map((one) => one.close())]);
  for (const link of links) link.close();
});

test(`every job runs once, whatever is killed or cut off (seed ${seed})`, {
  timeout: TROUBLE_MS + 2 * SETTLE_MS,
}, async () => {
  const until = Date.now() + TROUBLE_MS;
  const faults: string[] = [];
  const own = services.map(() => [] as string[]);
  /** By service and job. */
  const numberOf = services.map(() => new Map<string, number>());
  let numbers = 0;
  const submitting = Promise.all(
    services.map(async (service, i) => {
      do {
        const batch = Array.from({ length: BATCH }, () => ++numbers);
        const os = ['a', 'b', 'c', null];
        for (const [k, system] of os.entries()) {
          const some = batch.filter((n) => n % 4 === k);
          const ids = await service.submit(some, { os: system });
          own[i]?.push(...ids);
          for (const [at, id] of ids.entries()) numberOf[i]?.set(id, some[at] as number);
        }
        // As long as links are cut they may all be waiting for a peer.
        await service.until(async () => {
          const live = [...(await service.jobs()).values()].filter(({ state }) => !ENDED.includes(state));
          return live.length < LIVE_MAX || Date.now() > until;
        }, TROUBLE_MS + SETTLE_MS);
        await sleep(300);
      } while (Date.now() < until);
    }),
  );
  for (const link of links) link.trouble = 0.15;
  while (Date.now() < until) {
    await sleep(500 + random.next() * 1_500);
    await fault(faults);
  }
  for (const link of links) {
    link.trouble = 0;
    link.restore();
  }
  await submitting;

  const story = () => `seed ${seed}; ${faults.join(', ')}\n${services.map(({ log }) => log).join('\n')}`;
  try {
    for (const [i, service] of services.entries()) {
      await service.ended(own[i] as string[], SETTLE_MS);
      await service.until(async () => (await service.copies()) === 0, SETTLE_MS);
    }
  } catch (error) {
    const open = await Promise.all(services.map((service) => service.open()));
    throw new Error(`${open.join('\n')}\n${story()}`, { cause: error });
  }
  // Each of them once, in whichever tree.
  expect(
    ran(ledger).sort((x, y) => x - y),
    story(),
  ).toEqual(Array.from({ length: numbers }, (_, i) => i + 1));
  for (const [i, service] of services.entries()) {
    const jobs = await service.jobs();
    expect([...jobs.keys()].sort(), story()).toEqual([...(own[i] as string[])].sort());
    const wrong = [...jobs.values()].filter(
      ({ cause }) => cause !== 'EXITED_ZERO' && cause !== 'EXITED_NONZERO',
    );
    expect(wrong, story()).toEqual([]);
    // What jobs leave is with their owner, wherever they ran.
    const leaves = [...(numberOf[i] as Map<string, number>)].filter(([, number]) => number % 3 === 0);
    const sums = leaves.map(([id, number]): [string, string] => [
      id,
      `kept.txt ${createHash('sha256').update(`kept of ${number}\n`).digest('hex')}`,
    ]);
    expect(await service.keptFiles(), story()).toEqual(new Map(sums));
    expect(await checkPromises(service.pool), story()).toEqual([]);
    const { rows } = await service.pool.query(
      "SELECT id::text AS cursor FROM events WHERE kind IN ('JOB_STATE', 'JOB_CHANGED') ORDER BY events.id",
    );
    const heard = () => subscribers[i]?.cursors() ?? [];
    await expect.poll(() => heard().length).toBeGreaterThanOrEqual(rows.length);
    expect(heard().length, story()).toBe(rows.length);
    expect(new Set(heard()).size, story()).toBe(rows.length);
  }
  expect(faults.length + links.reduce((sum, { repeated, lost }) => sum + repeated + lost, 0)).toBeGreaterThan(
    0,
  );
});

const ENDED = ['COMPLETED', 'FAILED', 'CANCELLED'];

/** Kills a service, or cuts a link for a while. */
async function fault(faults: string[]): Promise<void> {
  if (random.next() < 0.5) {
    const service = services[Math.floor(random.next() * services.length)] as Service;
    // While it starts, too, but not always: on a busy machine that takes longer than it is from one kill to the next.
    if (!service.hasAnswered && random.next() < 0.8) return;
    faults.push(`${service.name} killed`);
    service.kill();
    return;
  }
  const at = Math.floor(random.next() * links.length);
  const forMs = 500 + random.next() * Math.min(120_000, TROUBLE_MS / 3);
  faults.push(`link ${at} cut for ${Math.round(forMs)} ms`);
  links[at]?.cut();
  setTimeout(() => links[at]?.restore(), forMs);
}
