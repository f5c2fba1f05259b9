/**
 * Whatever is killed, whenever: every accepted job ends, once, and every promise is kept.
 *
 * While jobs are submitted in a stream, the processes of the service (api, two workers, two agents), Postgres and Redis are
 * killed with SIGKILL, one after the other, in an order that the seed decides. `npm run test:faults -- --minutes N --seed S`
 * runs it for longer.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, test } from 'vitest';
import { RandomStream } from '../../src/core/index.js';
import { PATIENCE_MS } from '../support/patience.js';
import { checkPromises } from '../support/promises.js';
import { describeWithRedis, type RedisServer } from '../support/redis.js';
import { SEED } from '../support/seed.js';
import { ANSWER_MS, Installation } from './installation.js';

const minutes = Number(process.env.FAULT_MINUTES ?? 0.15);
const seed = Number(process.env.FAULT_SEED ?? SEED);
const TROUBLE_MS = minutes * 60_000;
/** From the last fault until every job must have ended. */
const SETTLE_MS = PATIENCE_MS + TROUBLE_MS;
const BATCH = 10;
/** Bounds the work of a long run: submissions wait while so many jobs have not ended. */
const LIVE_MAX = 500;

let installation: Installation | null = null;
afterEach(async () => {
  await installation?.close();
  installation = null;
});

describe('with the queue on Postgres', () => suite(() => null));
// The same once more where there is time; that Redis loses everything is tried with what-ifs, too.
if (process.env.FAULT_MINUTES) describeWithRedis('with the queue on Redis', (redis) => suite(redis));

function suite(redis: () => RedisServer | null): void {
  test(`every accepted job ends once, whatever is killed (seed ${seed})`, {
    timeout: TROUBLE_MS + SETTLE_MS + 3 * PATIENCE_MS,
  }, async () => {
    const service = await Installation.open(redis());
    installation = service;
    const random = new RandomStream(seed, 'faults');
    const first = await submit(service, 0);
    const until = Date.now() + TROUBLE_MS;
    const faults: string[] = [];
    const [more] = await Promise.all([submitUntil(service, until), trouble(service, random, until, faults)]);

    const settled = Date.now() + SETTLE_MS;
    const live = await repeat(
      () => service.rows<{ state: string; site: string | null; n: number }>(LIVE),
      (rows) => rows.length === 0 || Date.now() > settled,
    );
    const story = `seed ${seed}; killed: ${faults.join(', ')}\n${service.logs}`;
    expect(live, story).toEqual([]);

    // Exactly the accepted jobs are there: a submission without an answer was repeated with its key until it had one.
    const jobs = await service.rows<{ id: string; state: string; cause: string; epoch: number; os: string }>(
      'SELECT id, state, cause, epoch, os FROM jobs ORDER BY id',
    );
    expect(jobs.map(({ id }) => `job_${id}`)).toEqual([...first, ...more].sort(byNumber));
    expect(
      jobs.filter(({ state }) => state !== 'COMPLETED'),
      story,
    ).toEqual([]);
    // Exactly one end each.
    const ends = await service.rows(
      `SELECT entity_id FROM events WHERE kind = 'JOB_STATE' AND to_state IN ('COMPLETED', 'FAILED', 'CANCELLED') GROUP BY 1 HAVING count(*) <> 1`,
    );
    expect(ends, story).toEqual([]);
    expect(await checkPromises(service.database.pool), story).toEqual([]);

    // No run was launched twice, and the one that completed the job was launched.
    const launches = service.launches();
    expect(new Set(launches).size, story).toBe(launches.length);
    const launched = new Set(launches);
    const missing = jobs.filter(({ id, epoch, os }) => os === 'real' && !launched.has(`job_${id} ${epoch}`));
    expect(missing, story).toEqual([]);
    expect(faults.length).toBeGreaterThan(0);
  });
}

const LIVE = `
  SELECT j.state::text, s.name AS site, count(*)::int AS n FROM jobs j LEFT JOIN sites s ON s.id = j.site_id
   WHERE j.ended_at IS NULL GROUP BY 1, 2`;

/** Submits until the time is over, half of it for each site. Answers with the ids of all accepted jobs. */
async function submitUntil(service: Installation, until: number): Promise<string[]> {
  const accepted: string[] = [];
  for (let i = 1; Date.now() < until; i++) {
    accepted.push(...(await submit(service, i)));
    await repeat(
      () => service.rows<{ n: number }>('SELECT count(*)::int AS n FROM jobs WHERE ended_at IS NULL'),
      ([row]) => (row?.n ?? 0) < LIVE_MAX || Date.now() > until,
    );
    await sleep(100);
  }
  return accepted;
}

/** One submission, repeated with the same key until it is answered. */
async function submit(service: Installation, number: number): Promise<string[]> {
  const jobs = Array.from({ length: BATCH }, (_, i) =>
    i % 2 === 0
      ? {
          command: 'sh',
          arguments: [
            '-c',
            `echo "$SWITCHYARD_JOB_ID $SWITCHYARD_EPOCH" >> "$LEDGER"; sleep 0.0${(number + i) % 10}`,
          ],
          environment: [{ name: 'LEDGER', value: service.ledger }],
          os: 'real',
          estimateS: 1,
        }
      : {
          command: 'pass',
          os: 'simulated',
          cpusPerTask: 1 + (i % 4),
          estimateS: 5 + ((number + i) % 20),
        },
  );
  const input = { idempotencyKey: `submission ${number}`, jobs };
  for (const giveUp = Date.now() + PATIENCE_MS; ; ) {
    try {
      const { submitJobs } = await service.ask<{
        submitJobs: { jobIds: string[]; errors: { message: string }[] };
      }>(
        'mutation ($input: SubmitJobsInput!) { submitJobs(input: $input) { jobIds errors { message } } }',
        { input },
        ANSWER_MS,
      );
      expect(submitJobs.errors).toEqual([]);
      return submitJobs.jobIds;
    } catch (error) {
      if (Date.now() > giveUp) throw error;
      await sleep(200);
    }
  }
}

/** Kills one thing after the other until the time is over. */
async function trouble(
  service: Installation,
  random: RandomStream,
  until: number,
  faults: string[],
): Promise<void> {
  const { victims } = service;
  const names = [...victims.keys()];
  // Everything at least once, if there is time; then by chance.
  const order = shuffle(names, random);
  for (let i = 0; Date.now() < until; i++) {
    await sleep(500 + random.next() * 2_000);
    const name = order[i] ?? (names[Math.floor(random.next() * names.length)] as string);
    faults.push(name);
    await victims.get(name)?.();
  }
}

function shuffle<T>(items: readonly T[], random: RandomStream): T[] {
  const keyed = items.map((item) => ({ item, key: random.next() }));
  return keyed.sort((a, b) => a.key - b.key).map(({ item }) => item);
}

async function repeat<T>(ask: () => Promise<T>, wanted: (answer: T) => boolean): Promise<T> {
  for (;;) {
    const answer = await ask();
    if (wanted(answer)) return answer;
    await sleep(200);
  }
}

const byNumber = (a: string, b: string): number => Number(a.slice(4)) - Number(b.slice(4));
