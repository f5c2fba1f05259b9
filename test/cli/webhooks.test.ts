/** `switchyard webhooks` and what docs/webhooks.md shows, with real processes; workers are killed in the middle of a delivery. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { packagePath } from '../../src/platform/paths.js';
import { Endpoint } from '../callbacks/support.js';
import { withDatabase } from '../support/database.js';
import { freePort } from '../support/ports.js';
import { endAll, launch, type Running, run, type Service, service, until } from './service.js';

const home = mkdtempSync(join(tmpdir(), 'switchyard-webhooks-'));
const database = withDatabase();
let api: Service;
let env: Record<string, string>;
const endpoint = new Endpoint();
const examples: ChildProcess[] = [];

beforeAll(async () => {
  await endpoint.open();
  env = {
    ...{ SWITCHYARD_HOME: home, DATABASE_URL: database.url, LOG_LEVEL: 'error' },
    SWITCHYARD_WEBHOOK_ADDRESSES: '127.0.0.0/8',
  };
  await run(['migrate'], env);
  const port = String(await freePort());
  const process = launch(['api'], { ...env, PORT: port });
  api = service(`http://127.0.0.1:${port}/graphql`, { SWITCHYARD_HOME: home }, process);
  const ready = () =>
    fetch(new URL('/readyz', api.url)).then(
      ({ status }) => status,
      () => 0,
    );
  await until(ready, (status) => status === 200);
});
afterAll(async () => {
  for (const child of examples) child.kill('SIGKILL');
  await endAll();
  await endpoint.close();
  rmSync(home, { recursive: true, force: true });
});

interface Shown {
  id: string;
  kinds: string[];
  conditions: object;
  enabled: boolean;
  failures: number;
}

it('workers that are killed between a delivery and its record repeat it, lose nothing, and keep the order', async () => {
  const added = await api.cli('webhooks', 'add', 'all', endpoint.url);
  expect(added).toMatchObject({ code: 0, stdout: expect.stringMatching(/^whsec_[\w+/]{43}=\n$/) });
  expect((await api.cli('webhooks', 'test', 'webhook_1')).stdout).toMatch(/^delivered: the response was 204/);
  const [tested] = endpoint.received.splice(0);
  expect(JSON.parse(tested!.body).type).toBe('switchyard.webhook.test');

  let worker: Running | null = null;
  const killed: unknown[] = [];
  endpoint.behave = async ({ headers }, number) => {
    // It has the message, and the worker never learns so.
    if (killed.length === 3 || number % 4 !== 3) return 204;
    killed.push(headers['webhook-id']);
    await worker?.end('SIGKILL');
    worker = launch(['worker'], env);
    return 'CLOSE';
  };
  worker = launch(['worker'], env);
  for (let i = 0; i < 6; i++) await api.json('submit', '--', 'true');
  await api.json('cancel', '--all');
  const { rows } = await database.pool.query(
    'SELECT id::integer AS id FROM events WHERE seq IS NOT NULL ORDER BY id',
  );
  await until(
    async () => endpoint.events.length,
    (taken) => taken === rows.length,
  );
  expect(endpoint.events).toEqual(rows.map(({ id }) => id));
  expect(killed.length).toBe(3);
  for (const id of killed)
    expect(endpoint.received.filter(({ headers }) => headers['webhook-id'] === id).length).toBeGreaterThan(1);
  endpoint.behave = () => 204;
});

it('are listed, changed and removed', async () => {
  const { webhook } = await api.json<{ webhook: Shown }>(
    ...['webhooks', 'add', 'some', endpoint.url, '--on', 'completed,FAILED', '--application', 'blast'],
  );
  expect(webhook).toMatchObject({ kinds: ['COMPLETED', 'FAILED'], conditions: { application: 'blast' } });
  expect((await api.cli('webhooks')).stdout).toMatch(/webhook_2 +some +\S+ +COMPLETED,FAILED +good/);
  const changed = await api.json<Shown>('webhooks', 'set', webhook.id, '--disable', '--on', 'all');
  expect(changed).toMatchObject({ enabled: false, kinds: [], conditions: { application: 'blast' } });
  endpoint.behave = () => 503;
  expect(await api.cli('webhooks', 'test', webhook.id)).toMatchObject({
    code: 1,
    stdout: expect.stringContaining('failed: responded with 503'),
  });
  endpoint.behave = () => 204;
  expect((await api.cli('webhooks', 'remove', webhook.id)).code).toBe(0);
  expect((await api.json<Shown[]>('webhooks')).map(({ id }) => id)).toEqual(['webhook_1']);
  expect((await api.cli('webhooks', 'set', webhook.id, '--enable')).code).toBe(5);
  expect((await api.cli('webhooks', 'add', 'x', 'ftp://x')).stderr).toContain('an https: URL');
});

it('the examples of the page accept what is signed, and nothing else', async () => {
  const page = readFileSync(packagePath('docs', 'webhooks.md'), 'utf8');
  const example = (language: string): string =>
    new RegExp(`\`\`\`${language}\n([\\s\\S]*?)\`\`\``).exec(page)![1]!;
  const port = await freePort();
  // Where the library is found.
  const program = join(packagePath('node_modules'), `.webhook-example-${port}.mjs`);
  const python = join(home, 'example.py');
  writeFileSync(program, example('js').replace('8080', String(port)));
  writeFileSync(
    python,
    `${example('python')}\nheaders, body = json.load(open(0))\nprint(verify(headers, body.encode())["type"])`,
  );
  try {
    const { stdout } = await api.cli('webhooks', 'rotate', 'webhook_1', '--keep-former', '1h');
    const secret = { WEBHOOK_SECRET: stdout.trim() };
    const child = spawn(process.execPath, [program], { env: { ...process.env, ...secret } });
    examples.push(child);
    await api.json('webhooks', 'set', 'webhook_1', '--url', `http://127.0.0.1:${port}/`);
    await until(
      () => api.cli('webhooks', 'test', 'webhook_1'),
      ({ code }) => code === 0,
    );
    expect((await fetch(`http://127.0.0.1:${port}/`, { method: 'POST', body: '{}' })).status).toBe(401);

    await api.json('webhooks', 'set', 'webhook_1', '--url', endpoint.url);
    await api.cli('webhooks', 'test', 'webhook_1');
    const { headers, body } = endpoint.received.at(-1)!;
    const verified = (given: object, text: string) =>
      spawnSync('python3', [python], {
        input: JSON.stringify([given, text]),
        env: { ...process.env, ...secret },
      });
    expect(verified(headers, body).stdout.toString()).toBe('switchyard.webhook.test\n');
    expect(verified(headers, `${body} `).stderr.toString()).toContain('not signed with this secret');
    expect(verified({ ...headers, 'webhook-timestamp': '1' }, body).stderr.toString()).toContain('too old');
  } finally {
    rmSync(program, { force: true });
  }
});
