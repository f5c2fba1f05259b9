/**
 * Users who want to harm the service, against the service as it is started: random operations over the whole schema and random values,
 * many at a time, with a small heap. Another user's jobs must go on meanwhile. `npm run test:abuse -- --minutes N [--seed S]`.
 */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { buildSchema } from 'graphql';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { RandomStream } from '../../src/core/index.js';
import { packagePath } from '../../src/platform/paths.js';
import { endAll, launch, type Running } from '../cli/service.js';
import { Adversary } from '../support/adversary.js';
import { SEED } from '../support/seed.js';

const minutes = Number(process.env.ABUSE_MINUTES ?? 0.35);
const seed = Number(process.env.ABUSE_SEED ?? SEED);
/** Megabytes: what the service needs at rest is about a third. */
const HEAP_MB = 256;
/** How long a job of the other user may take, from its submission to its end, while the attack goes on. */
const WITHIN_MS = 30_000;
const AT_A_TIME = 12;

const schema = buildSchema(readFileSync(packagePath('schema.graphql'), 'utf8'));
const home = mkdtempSync(join(tmpdir(), 'switchyard-abuse-'));
let service: Running;
let url = '';
let admin = '';

beforeAll(async () => {
  service = launch(['serve'], {
    SWITCHYARD_HOME: home,
    PORT: '0',
    NODE_OPTIONS: `--max-old-space-size=${HEAP_MB}`,
    LOG_LEVEL: 'error',
  });
  const [, told] = await service.printed(/runs at (\S+)\n[\s\S]*restart keeps everything/);
  url = told!;
  admin = readFileSync(join(home, 'admin.key'), 'utf8').trim();
});
afterAll(async () => {
  await endAll();
  rmSync(home, { recursive: true, force: true });
});

interface Answer {
  data?: unknown;
  errors?: { message: string; extensions?: { code?: string; requestId?: string } }[];
}

async function ask(key: string, body: unknown): Promise<Answer> {
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${key}` },
    body: JSON.stringify(body),
    signal: AbortSignal.timeout(90_000),
  });
  return (await response.json()) as Answer;
}

async function must<T>(key: string, query: string, variables: object = {}): Promise<T> {
  const { data, errors } = await ask(key, { query, variables });
  if (errors) throw new Error(JSON.stringify(errors));
  return data as T;
}

async function user(name: string, role: string, userClass = 'REGULAR'): Promise<string> {
  const { createUser } = await must<{ createUser: { user: { id: string } } }>(
    admin,
    'mutation ($input: CreateUserInput!) { createUser(input: $input) { user { id } } }',
    { input: { name, role, class: userClass } },
  );
  const { createApiKey } = await must<{ createApiKey: { secret: string } }>(
    admin,
    'mutation ($user: ID!) { createApiKey(input: { userId: $user, name: "test" }) { secret } }',
    { user: createUser.user.id },
  );
  return createApiKey.secret;
}

const JOB =
  'mutation { submitJobs(input: { jobs: [{ command: "/bin/true", name: "of the other user" }] }) { ids: jobs { id } errors { message } } }';

test(`nothing that users send stops the service (seed ${seed})`, {
  timeout: minutes * 60_000 + 240_000,
}, async () => {
  const good = await user('good', 'USER', 'GOLD');
  const bad = [await user('mallory', 'USER'), await user('trudy', 'USER')];
  const until = Date.now() + minutes * 60_000;
  const unexpected: unknown[] = [];
  const codes = new Map<string, number>();
  const count = (code: string) => codes.set(code, (codes.get(code) ?? 0) + 1);

  const { sites } = await must<{ sites: { nodes: { id: string; machines: { id: string }[] }[] } }>(
    admin,
    '{ sites { nodes { id machines { id } } } }',
  );
  const ids = sites.nodes.flatMap(({ id, machines }) => [id, ...machines.map((one) => one.id)]);
  for (let i = 1; i <= 30; i++) ids.push(`job_${i * 7}`, `user_${i % 5}`, `apikey_${i % 5}`);

  async function attack(worker: number): Promise<void> {
    const random = new RandomStream(seed, `attacker ${worker}`);
    const adversary = new Adversary(schema, random, ids);
    const key = bad[worker % bad.length]!;
    while (Date.now() < until) {
      const operation = random.next() < 0.6 ? adversary.query() : adversary.mutation();
      try {
        const { errors } = await ask(key, operation);
        for (const { message, extensions } of errors ?? [{ message: '', extensions: { code: 'OK' } }]) {
          const code = extensions?.code ?? 'NONE';
          count(code);
          if (code === 'INTERNAL_SERVER_ERROR' || code === 'NONE')
            unexpected.push({ message, operation: JSON.stringify(operation).slice(0, 2_000) });
          // Whoever is told to wait and does not is told again; that is not what is tried here.
          if (code === 'RATE_LIMITED' || code === 'UNAVAILABLE') await sleep(100);
        }
      } catch (error) {
        // A connection may be closed on it, but not for good.
        count((error as Error).name);
        await sleep(200);
      }
    }
  }

  let slowest = 0;
  let ran = 0;
  async function goOn(): Promise<void> {
    while (Date.now() < until) {
      const begun = Date.now();
      const { submitJobs } = await must<{ submitJobs: { ids: { id: string }[] } }>(good, JOB);
      for (;;) {
        const { job } = await must<{ job: { state: string } }>(
          good,
          `{ job(id: "${submitJobs.ids[0]!.id}") { state } }`,
        );
        if (job.state === 'COMPLETED') break;
        if (Date.now() - begun > WITHIN_MS)
          throw new Error(
            `a job of the other user is ${job.state} after ${WITHIN_MS / 1000} s (seed ${seed})`,
          );
        await sleep(200);
      }
      slowest = Math.max(slowest, Date.now() - begun);
      ran++;
      await sleep(500);
    }
  }

  await Promise.all([goOn(), ...Array.from({ length: AT_A_TIME }, (_, i) => attack(i))]);
  const told = [...codes].map(([code, n]) => `${code} ${n}`).join(', ');
  console.log(`abuse, seed ${seed}: ${told}; ${ran} jobs of the other user, the slowest in ${slowest} ms`);
  expect(unexpected.slice(0, 5)).toEqual([]);
  expect(service.output.stderr).not.toMatch(/heap out of memory/);
  expect(await (await fetch(new URL('/readyz', url))).text()).toBe('ready\n');
  // It was an attack: much got through, much was refused.
  expect(codes.get('OK') ?? 0).toBeGreaterThan(20);
  expect(codes.get('BAD_USER_INPUT') ?? 0).toBeGreaterThan(20);
  expect(ran).toBeGreaterThan(0);
});
