/** Inputs and outputs of tasks by http(s): a whole service whose agent fetches and sends them, and a server of the test that they are on. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { endAll, type Service, serve } from '../cli/service.js';
import { tesClient } from './client.js';

const home = mkdtempSync(join(tmpdir(), 'switchyard-tes-urls-'));
/** By method and path with query: how often each was asked for. */
const asked = new Map<string, number>();
/** What was sent, by path with query. */
const sent = new Map<string, string>();
const LARGE = Buffer.alloc(1_000_001, 'x');
let files: Server;
let base: string;
let service: Service;
let tes: Awaited<ReturnType<typeof tesClient>>;

beforeAll(async () => {
  const answer: Parameters<typeof createServer>[1] = (req, res) => {
    const { method, url = '' } = req as { method: string; url: string };
    const place = `${method} ${url}`;
    const before = asked.get(place) ?? 0;
    asked.set(place, before + 1);
    const [path] = url.split('?') as [string];
    if (path.startsWith('/once/') && before === 0) res.writeHead(500).end();
    else if (path === '/cut' && before === 0) {
      res.writeHead(200, { 'content-length': '100' });
      res.write('half', () => res.destroy());
    } else if (path === '/inside') res.writeHead(302, { location: 'http://127.0.0.2:1/?key=hidden' }).end();
    else if (path === '/large') res.end(LARGE);
    else if (path === '/refused' || path === '/missing') res.writeHead(404).end();
    else if (method === 'GET') res.end(`content of ${path}`);
    else {
      if (req.headers.expect !== undefined) res.writeContinue();
      void text(req).then((body) => {
        sent.set(url, body);
        res.writeHead(200).end();
      });
    }
  };
  files = createServer(answer).on('checkContinue', answer).listen(0, '127.0.0.1');
  await new Promise((resolve) => files.once('listening', resolve));
  base = `http://127.0.0.1:${(files.address() as AddressInfo).port}`;
  service = await serve(home, [], '0', { AGENT_URL_ADDRESSES: '127.0.0.1', AGENT_URL_MB: '1' });
  tes = await tesClient(new URL(service.url).origin, readFileSync(join(home, 'admin.key'), 'utf8').trim());
});
afterAll(async () => {
  await endAll();
  files.closeAllConnections();
  files.close();
  rmSync(home, { recursive: true, force: true });
});

const at = (name: string): string => join(home, 'work', name);
const task = (command: string, more: object = {}) => ({
  executors: [{ image: '', command: ['sh', '-c', command], workdir: at('.') }],
  ...more,
});
/** As stores sign URLs. */
const signed = (path: string): string => `${base}${path}?signature=hidden`;

/** What there is of a job but its URLs: for whoever asks, and in what processes have written. */
async function everythingOf(id: string): Promise<string> {
  const job = await service.json<Record<string, unknown>>('job', id);
  const { downloads: _downloads, uploads: _uploads, ...rest } = job;
  const { stdout } = await service.cli('events', '--job', id);
  const { output } = service.process;
  return [JSON.stringify(rest), stdout, output.stdout, output.stderr].join('\n');
}

it('inputs are fetched and outputs sent, by an agent that tries again, and only the owner sees what is secret in URLs', async () => {
  const inputs = [
    { path: at('in/first'), url: signed('/once/first'), type: 'FILE' },
    { path: at('in/said'), content: 'as said', type: 'FILE' },
    { path: at('in/second'), url: `${base}/cut`, type: 'FILE' },
  ];
  const outputs = [
    { path: at('out/one'), url: signed('/once/one'), type: 'FILE' },
    { path: at('out/*.txt'), path_prefix: at('out'), url: signed('/texts/'), type: 'DIRECTORY' },
    { path: at('out/tree'), url: signed('/tree'), type: 'DIRECTORY' },
    { path: at('out/none*'), path_prefix: at('out'), url: signed('/none/'), type: 'DIRECTORY' },
    { path: at('out/one'), url: `file://${at('kept')}`, type: 'FILE' },
  ];
  const command = `mkdir -p out/tree/deep; cat in/first in/said in/second >out/one; echo add >>in/first
    echo a >'out/a b.txt'; echo cc >out/c.txt; echo d >out/tree/deep/leaf`;
  const id = await tes.create(task(command, { inputs, outputs }));
  const ended = await tes.ended(id);
  expect([ended.state, ended.logs.at(-1)?.system_logs]).toEqual(['COMPLETE', ['EXITED_ZERO']]);
  const whole = 'content of /once/firstas saidcontent of /cut';
  expect([...sent].sort()).toEqual([
    ['/once/one?signature=hidden', whole],
    ['/texts/a%20b.txt?signature=hidden', 'a\n'],
    ['/texts/c.txt?signature=hidden', 'cc\n'],
    ['/tree/deep/leaf?signature=hidden', 'd\n'],
  ]);
  expect(readFileSync(at('kept'), 'utf8')).toBe(whole);
  // The owner's own view; what was stored is told without secrets in any.
  expect([ended.inputs, (ended as { outputs?: object }).outputs]).toEqual([inputs, outputs]);
  const stored = [
    { url: `file://${at('kept')}`, path: at('out/one'), size_bytes: String(whole.length) },
    { url: `${base}/once/one`, path: at('out/one'), size_bytes: String(whole.length) },
    { url: `${base}/texts/a%20b.txt`, path: at('out/a b.txt'), size_bytes: '2' },
    { url: `${base}/texts/c.txt`, path: at('out/c.txt'), size_bytes: '3' },
    { url: `${base}/tree/deep/leaf`, path: at('out/tree/deep/leaf'), size_bytes: '2' },
  ];
  const byUrl = (a: { url: string }, b: { url: string }) => (a.url < b.url ? 1 : -1);
  expect([...ended.logs[0]!.outputs].sort(byUrl)).toEqual([...stored].sort(byUrl));
  const basic = await tes.get(id, 'BASIC');
  expect(basic.inputs?.map(({ url }) => url)).toEqual([`${base}/once/first`, undefined, `${base}/cut`]);
  expect(JSON.stringify([basic, await tes.list('view=BASIC')])).not.toContain('hidden');
  expect(await everythingOf(id)).not.toContain('hidden');

  // Of another user's task operators see everything but that.
  await service.json('users', 'add', 'grace');
  const { secret } = await service.json<{ secret: string }>('keys', 'add', 'tes', '--user', 'grace');
  const own = await tesClient(new URL(service.url).origin, secret);
  const theirs = await own.create(task('true', { inputs: [inputs[0]] }));
  expect((await own.ended(theirs)).inputs?.[0]?.url).toBe(signed('/once/first'));
  expect((await tes.get(theirs, 'FULL')).inputs?.[0]?.url).toBe(`${base}/once/first`);
  expect(await service.json('job', theirs)).toMatchObject({ downloads: [{ url: `${base}/once/first` }] });
});

it.each([
  ['/missing', 'status 404'],
  ['/inside', '127.0.0.2 is a local, link-local or private address (AGENT_URL_ADDRESSES)'],
  ['/large', 'larger than 1 MB'],
])('a task whose input %s cannot be had is an error of the system that says why', async (path, why) => {
  const id = await tes.create(task('true', { inputs: [{ path: at('in/x'), url: signed(path) }] }));
  const ended = await tes.ended(id);
  expect(ended.state).toBe('SYSTEM_ERROR');
  expect(ended.logs.at(-1)).toMatchObject({
    logs: [],
    system_logs: ['STAGING_FAILED', expect.stringContaining(`${base}${path}: cannot be downloaded: ${why}`)],
  });
  expect(await everythingOf(id)).not.toContain('hidden');
});

it('an output that is refused is an error of the system, and the service keeps the file', async () => {
  const outputs = [
    { path: at('out/result'), url: signed('/refused'), type: 'FILE' },
    { path: at('out/result'), url: signed('/taken'), type: 'FILE' },
  ];
  const id = await tes.create(task('mkdir -p out; echo precious >out/result', { outputs }));
  const ended = await tes.ended(id);
  const message = `${base}/refused: cannot be uploaded: status 404; the service keeps task-outputs/1`;
  expect([ended.state, ended.logs[0]!.outputs, ended.logs[0]!.system_logs]).toEqual([
    'SYSTEM_ERROR',
    [],
    ['OUTPUTS_FAILED', expect.stringContaining(message)],
  ]);
  expect(sent.get('/taken?signature=hidden')).toBe('precious\n');
  const to = join(home, 'fetched');
  expect((await service.cli('job', id, '--fetch', to)).stderr).toBe('');
  expect(readFileSync(join(to, 'task-outputs/1'), 'utf8')).toBe('precious\n');
  expect(await everythingOf(id)).not.toContain('hidden');
  // What a failed executor leaves is sent nowhere.
  sent.clear();
  const failed = await tes.ended(
    await tes.create(task('mkdir -p out; echo x >out/result; exit 3', { outputs })),
  );
  expect([failed.state, sent.size]).toEqual(['EXECUTOR_ERROR', 0]);
});

it('URLs that no agent can use are refused, without what is secret in them', async () => {
  const input = (url: string, more = {}) => task('true', { inputs: [{ path: at('x'), url, ...more }] });
  for (const [bad, message] of [
    [input('s3://bucket/key?hidden'), /^inputs\[0\]\.url: "s3:\/\/bucket\/key" .*presigned/],
    [input('ftp://user:hidden@host/key'), /^inputs\[0\]\.url: "ftp:\/\/host\/key"/],
    [input('http://?hidden'), /^inputs\[0\]\.url: /],
    [input(`http://host/${'x'.repeat(4_000)}`), /^inputs\[0\]\.url: .*4000 characters/],
    [input('http://host/tree', { type: 'DIRECTORY' }), /^inputs\[0\]\.type: "DIRECTORY" .*no directories/],
    [
      task('true', { inputs: Array.from({ length: 101 }, () => ({ path: at('x'), url: `${base}/x` })) }),
      /^inputs: 101 .*up to 100/,
    ],
  ] as const) {
    const [status, said] = await tes.refused(bad);
    expect([status, said]).toEqual([400, expect.stringMatching(message)]);
    expect(said).not.toContain('hidden');
  }
});

it('a job by the command line has the same', async () => {
  const { code, stdout } = await service.cli(
    ...['submit', '--wait', '--download', signed('/plain'), '--upload', `copy=${signed('/copied')}`],
    ...['--', 'sh', '-c', 'cp "$SWITCHYARD_DOWNLOAD_1" copy; cat plain'],
  );
  expect([code, sent.get('/copied?signature=hidden')]).toEqual([0, 'content of /plain']);
  expect(stdout).not.toContain('hidden');
  const refused = await service.cli('submit', '--download', 's3://bucket/key', '--', 'true');
  expect(refused.stderr).toContain('presigned');
  expect((await service.cli('submit', '--upload', 'copy', '--', 'true')).stderr).toMatch(
    /--upload.*PATH=URL/s,
  );
});
