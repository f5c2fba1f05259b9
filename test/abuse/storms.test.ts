/**
 * What others notice while a user attacks: how long a query of another user, one of an administrator and a report of an agent take through
 * each of the attacks (attacks.mjs), and the memory of the service. `npm run test:abuse` goes through all of them, and prints a table.
 * A machine that does much else makes everything slower: a second service, which nobody attacks, is asked the same at the same time.
 */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { packagePath } from '../../src/platform/paths.js';
import { endAll, launch, type Running } from '../cli/service.js';

const ATTACKS = packagePath('test', 'abuse', 'attacks.mjs');
const names = execFileSync(process.execPath, [ATTACKS], { encoding: 'utf8' }).trim().split('\n');
/** Without a time only those of which each shows another way to take the service from others. */
const BRIEFLY = ['pings on 40 connections', 'a field 420 times', '800 replays of all events'];
const given = process.env.ABUSE_MINUTES;
const only = process.env.ABUSE_ONLY;
const chosen = names.filter((name) => (only ? name.includes(only) : given || BRIEFLY.includes(name)));
const seconds = given ? Math.max(3, (Number(given) * 60) / names.length) : 2;
/** How long others may wait at the 95th percentile; where even the service that is left alone takes long, so many times that. */
const P95_MS = Number(process.env.ABUSE_P95_MS ?? 500);
const TIMES = 10;
/** Jobs of each attacker, with an event each. */
const JOBS = 5_000;

const homes = mkdtempSync(join(tmpdir(), 'switchyard-storms-'));
let service: Running;
let url = '';
let admin = '';
type Bystander = 'user' | 'administrator' | 'agent' | 'alone';
let bystanders: Record<Bystander, () => Promise<unknown>>;
const table: string[] = [];

beforeAll(async () => {
  const alone = await serve('alone');
  ({ service, url, admin } = await serve('attacked'));
  const { createSite } = await must<{ createSite: { site: { id: string } } }>(
    admin,
    'mutation { createSite(input: { name: "elsewhere" }) { site { id } } }',
  );
  const good = await user('good', 'USER');
  const agent = await user('agent', 'AGENT', createSite.site.id);
  const input = {
    site: createSite.site.id,
    identity: 'i',
    instance: 'i',
    host: 'h',
    version: '1',
    protocol: 3,
  };
  const { registerAgent } = await must<{ registerAgent: { agent: { id: string } } }>(
    agent,
    'mutation ($input: RegisterAgentInput!) { registerAgent(input: $input) { agent { id } } }',
    { input: { ...input, simulated: true } },
  );
  const report =
    'mutation ($site: ID!, $agent: ID!, $at: DateTime!) { reportRuns(site: $site, agent: $agent, reports: [{ job: "job_1", epoch: 1, phase: STARTED, at: $at }]) { __typename } }';
  const from = { site: createSite.site.id, agent: registerAgent.agent.id };
  bystanders = {
    user: () => must(good, '{ jobs(first: 20) { nodes { id state } } }'),
    administrator: () => must(admin, '{ sites { nodes { id name } } }'),
    agent: () => must(agent, report, { ...from, at: new Date().toISOString() }),
    alone: () => must(alone.admin, '{ sites { nodes { id name } } }', {}, alone.url),
  };
});
afterAll(async () => {
  console.log(
    [
      '| attack | another user | an administrator | an agent | a service left alone | memory | answers |',
      '|---|---|---|---|---|---|---|',
      ...table,
    ].join('\n'),
  );
  await endAll();
  rmSync(homes, { recursive: true, force: true });
});

async function serve(name: string) {
  const program = process.env.ABUSE_PROGRAM ?? packagePath('bin', 'switchyard.js');
  const home = join(homes, name);
  const service = launch(['serve'], { SWITCHYARD_HOME: home, PORT: '0', LOG_LEVEL: 'fatal' }, program);
  const [, url] = await service.printed(/runs at (\S+)\n[\s\S]*restart keeps everything/);
  return { service, url: url!, admin: readFileSync(join(home, 'admin.key'), 'utf8').trim() };
}

async function must<T>(key: string, query: string, variables: object = {}, at = url): Promise<T> {
  const response = await fetch(at, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${key}` },
    body: JSON.stringify({ query, variables }),
    signal: AbortSignal.timeout(60_000),
  });
  const { data, errors } = (await response.json()) as { data: T; errors?: unknown };
  if (errors) throw new Error(JSON.stringify(errors));
  return data;
}

async function user(name: string, role: string, site?: string): Promise<string> {
  const { createUser } = await must<{ createUser: { user: { id: string } } }>(
    admin,
    'mutation ($input: CreateUserInput!) { createUser(input: $input) { user { id } } }',
    { input: { name, role } },
  );
  const { createApiKey } = await must<{ createApiKey: { secret: string } }>(
    admin,
    'mutation ($user: ID!, $site: ID) { createApiKey(input: { userId: $user, siteId: $site, name: "test" }) { secret } }',
    { user: createUser.user.id, site },
  );
  return createApiKey.secret;
}

/** One whom nobody has refused anything yet, with jobs that wait. */
async function attacker(name: string): Promise<{ key: string; job: string }> {
  const key = await user(name.replaceAll(/[^a-z0-9]+/gi, '-'), 'USER');
  const { submitJobGroup } = await must<{ submitJobGroup: { jobIds: string[] } }>(
    key,
    'mutation ($count: Int!) { submitJobGroup(input: { count: $count, allowUnfit: true, template: { command: "true", held: true, os: "nowhere" } }) { jobIds } }',
    { count: JOBS },
  );
  return { key, job: submitJobGroup.jobIds[0]! };
}

/** How long it takes again and again while the attack goes on, and how often it failed. */
async function measured(ask: () => Promise<unknown>, goesOn: () => boolean) {
  const tookMs: number[] = [];
  const failures: string[] = [];
  while (goesOn()) {
    const begun = performance.now();
    await ask().catch((error: Error) => void failures.push(error.message));
    tookMs.push(performance.now() - begun);
    await sleep(50);
  }
  tookMs.sort((a, b) => a - b);
  return { p95: tookMs[Math.ceil(tookMs.length * 0.95) - 1] ?? Number.NaN, failures };
}

const residentMib = (): number =>
  Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${service.pid}/status`, 'utf8'))![1]) / 1024;

/** Somebody who waits too long is asked for once more: it is a finding when it is seen again. Both are in the table. */
async function through(attack: string) {
  const first = await storming(attack);
  const tooLong = first.length > 0 ? await storming(attack, ' (again)') : [];
  expect(tooLong).toEqual([]);
}

/** Who waited too long. */
async function storming(attack: string, again = ''): Promise<string[]> {
  let storm: ChildProcess | null = null;
  if (attack) {
    const { key, job } = await attacker(`${attack}${again}`);
    const env = { ...process.env, ATTACK_URL: url, ATTACK_KEY: key, ATTACK_JOB: job };
    storm = spawn(process.execPath, [ATTACKS, attack, String(seconds)], {
      env,
      stdio: ['ignore', 'pipe', 'inherit'],
    });
  }
  let printed = '';
  storm?.stdout?.on('data', (piece) => {
    printed += piece;
  });
  const ended = storm ? once(storm, 'close') : sleep(2_000);
  let is = true;
  void ended.then(() => {
    is = false;
  });
  let most = 0;
  const weighing = setInterval(() => {
    most = Math.max(most, residentMib());
  }, 200);
  const rows = await Promise.all(
    Object.entries(bystanders).map(async ([who, ask]) => ({ who, ...(await measured(ask, () => is)) })),
  );
  clearInterval(weighing);
  const cells = [
    `${attack || 'none'}${again}`,
    ...rows.map(({ p95 }) => `${p95.toFixed(0)} ms`),
    `${most.toFixed(0)} MiB`,
    printed.trim().replaceAll('\n', '; '),
  ];
  table.push(`| ${cells.join(' | ')} |`);
  console.log(table.at(-1));
  expect(rows.flatMap(({ failures }) => failures)).toEqual([]);
  expect(storm?.exitCode ?? 0, `the attack came to what it is about: ${printed}`).toBe(0);
  const others = rows.filter(({ who }) => who !== 'alone');
  const most95 = Math.max(P95_MS, TIMES * rows.find(({ who }) => who === 'alone')!.p95);
  return others.flatMap(({ who, p95 }) => (p95 < most95 ? [] : [`${who}: ${p95.toFixed(0)} ms`]));
}

test('in peace', { timeout: 60_000 }, () => through(''));

test.each(chosen)('others go on through: %s', { timeout: seconds * 1000 + 180_000 }, through);
