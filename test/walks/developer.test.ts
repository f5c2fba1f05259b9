/**
 * A developer of a portal: the requests of the README, the recipes of docs/api/, each as the file that its page says, and the address from which
 * docs/sample-portal.md has a portal served (what that does is in test/web/sample.test.ts).
 */
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createClient } from 'graphql-ws';
import { afterAll, beforeAll, expect, it } from 'vitest';
import WebSocket from 'ws';
import { packagePath } from '../../src/platform/paths.js';
import { endAll, launch, run, type Service, serve } from '../cli/service.js';
import { blocksOf, commandsOf } from '../docs/markdown.js';

const home = mkdtempSync(join(tmpdir(), 'switchyard-recipes-'));
const recipes = new Map<string, string>();
let service: Service;
let portal: string;
const adminKey = () => readFileSync(join(home, 'admin.key'), 'utf8').trim();
const env = (key = adminKey()) => ({ SWITCHYARD_URL: service.url, SWITCHYARD_KEY: key });
const ran = (name: string, key?: string) => run([], env(key), '', join(home, name));

beforeAll(async () => {
  for (const page of readdirSync(packagePath('docs', 'api'))) {
    const text = readFileSync(packagePath('docs', 'api', page), 'utf8');
    for (const [, name, program] of text.matchAll(/^```js (\S+)\n([\s\S]*?)^```/gm)) {
      recipes.set(name!, program!);
      writeFileSync(join(home, name!), program!);
    }
  }
  mkdirSync(join(home, 'node_modules'));
  for (const name of ['graphql', 'graphql-ws', 'ws'])
    symlinkSync(packagePath('node_modules', name), join(home, 'node_modules', name));
  const [start] = commandsOf({ page: 'docs/sample-portal.md' });
  [, portal = ''] = /^SWITCHYARD_CORS_ORIGINS=(\S+) npm start$/.exec(start!.text) ?? [];
  service = await serve(home, [], '0', { SWITCHYARD_CORS_ORIGINS: portal });
});
afterAll(async () => {
  await endAll();
  rmSync(home, { recursive: true, force: true });
});

it('a browser may ask from the address of the sample portal, and from no other', async () => {
  const allowed = async (origin: string) => {
    const headers = { origin, 'access-control-request-method': 'POST' };
    const answer = await fetch(service.url, { method: 'OPTIONS', headers });
    return answer.headers.get('access-control-allow-origin');
  };
  expect(await allowed(portal)).toBe('http://localhost:8080');
  expect(await allowed('http://localhost:8081')).toBeNull();
});

it('submit and follow, then a page of jobs', async () => {
  const followed = await ran('follow.mjs');
  expect(followed).toMatchObject({ code: 0, stderr: '' });
  expect(followed.stdout).toMatch(/^(job_1 \w+\n)*job_1 COMPLETED\nhello\n$/);
  const page = await ran('page.mjs');
  expect(page).toMatchObject({ code: 0, stdout: expect.stringMatching(/^1 jobs\njob_1 echo 20\S+Z\n$/) });
});

it('a live dashboard', async () => {
  const dashboard = launch([], env(), join(home, 'dashboard.mjs'));
  await dashboard.printed(/^0 waiting\nlocal UP: 0 running, 0 of \d+ CPUs\n/);
  const { code } = await service.cli('submit', '--allow-unfit', '--os', 'plan9', '--', 'true');
  expect(code).toBe(0);
  await dashboard.printed(/\n1 waiting\n/);
  await dashboard.end();
});

it('administer; the smallest agent, with the key of that', async () => {
  const { code, stdout } = await ran('administer.mjs');
  const [, user, key] = /^key of ada: (\S+)\nagent of alps: (\S+)\n$/.exec(stdout) ?? [];
  expect([code, user]).toEqual([0, expect.stringMatching(/^swy_/)]);
  const agent = launch([], env(key), join(home, 'agent.mjs'));
  await agent.printed(/^serves alps\n/);
  const waited = await service.cli('submit', '--wait', '--os', 'recipe', '--', 'nothing');
  expect(waited.code).toBe(0);
  await agent.printed(/\njob_\d+ nothing\n/);
  await agent.end();
});

it('an exchange with a peer', async () => {
  const keyFile = join(home, 'peer.key');
  expect(await service.cli('peers', 'add', 'example', '--key-out', keyFile)).toMatchObject({ code: 0 });
  const peer = await ran('peer.mjs', readFileSync(keyFile, 'utf8').trim());
  expect(peer).toMatchObject({ code: 0, stdout: 'true of admin\nGRANTED true\n', stderr: '' });
});

it('the requests of the README: a job, and the news of it', async () => {
  const [submit, follow] = blocksOf({ page: 'README.md', under: 'GraphQL' }, 'graphql');
  const authorization = `Bearer ${adminKey()}`;
  const news = createClient({
    url: service.url.replace(/^http/, 'ws'),
    webSocketImpl: WebSocket,
    connectionParams: { authorization },
  });
  const updates = news.iterate({ query: follow!.text });
  const first = updates.next();
  const answer = await fetch(service.url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization, origin: portal },
    body: JSON.stringify({ query: submit!.text }),
  });
  const { data } = (await answer.json()) as { data: { submitJobs: { jobIds: string[] } } };
  expect(data).toMatchObject({ submitJobs: { jobIds: [expect.stringMatching(/^job_/)], errors: [] } });
  // Its ten seconds end after the subscription began, however slow that is.
  const { value } = await first;
  expect(value).toMatchObject({ data: { jobUpdated: { job: { id: data.submitJobs.jobIds[0] } } } });
  await updates.return?.();
  await news.dispose();
});

it('has run them all', () => {
  expect([...recipes.keys()].sort()).toEqual([
    'administer.mjs',
    'agent.mjs',
    'ask.mjs',
    'dashboard.mjs',
    'follow.mjs',
    'page.mjs',
    'peer.mjs',
  ]);
});
