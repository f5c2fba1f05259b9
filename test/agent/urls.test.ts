/** Files that jobs have from URLs and send to URLs, with real HTTP servers: whole or not at all, within bounds, and to nobody who is out of reach. */
import { randomBytes } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { expect, it, onTestFinished } from 'vitest';
import type { EndedRun } from '../../src/agent/files/handover.js';
import { OutputKeeper } from '../../src/agent/files/keeper.js';
import { ProcessRunner } from '../../src/agent/process/runner.js';
import { StagingRunner } from '../../src/agent/staging/runner.js';
import { Downloads, type UrlOptions } from '../../src/agent/staging/urls.js';
import { complete, endOf, script, temporaryDirectory, until } from './support.js';

const options: UrlOptions = { addresses: ['127.0.0.1'], retryMs: 1, maxBytes: 1e6 };

/** The address of a server that does, for the n-th request from 0, the n-th of these, and the last one from then on. */
async function serve(...answers: ((req: IncomingMessage, res: ServerResponse) => void)[]): Promise<string> {
  let asked = 0;
  const listener: RequestListener = (req, res) => answers[Math.min(asked++, answers.length - 1)]!(req, res);
  const server = createServer(listener).on('checkContinue', listener).listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const status =
  (code: number, headers: Record<string, string> = {}) =>
  (_: IncomingMessage, res: ServerResponse): void =>
    void res.writeHead(code, headers).end();
const content = (body: Buffer) => (_: IncomingMessage, res: ServerResponse) => void res.end(body);

/** What is fetched from a path of a server; or why nothing is, in words that have no secret in them. */
async function fetched(url: string, more: UrlOptions = {}): Promise<Buffer | string> {
  const dir = temporaryDirectory();
  const downloads = new Downloads(dir, { ...options, ...more });
  const given = url.replace('//', '//user:secret@');
  try {
    const [path] = await downloads.fetch(
      'run',
      [`${given}/a/b?signature=secret#secret`],
      { bytes: 0 },
      new AbortController().signal,
    );
    return readFileSync(path!);
  } catch (error) {
    const { message } = error as Error;
    expect(message).not.toContain('secret');
    expect(message).toContain(`${url}/a/b: cannot be downloaded: `);
    await until(() => readdirSync(dir).length === 0, 'what was fetched to be removed');
    return message.slice(message.indexOf('downloaded: ') + 'downloaded: '.length);
  }
}

it('fetches a file as it is, through redirects, a server that fails for a while, and one that cuts it off', async () => {
  const body = randomBytes(300_000);
  const same = (got: Buffer | string): boolean => typeof got !== 'string' && got.equals(body);
  expect(same(await fetched(await serve(content(body))))).toBe(true);
  const target = await serve(content(body));
  expect(same(await fetched(await serve(status(302, { location: `${target}/x?y` }))))).toBe(true);
  expect(same(await fetched(await serve(status(500), status(429), content(body))))).toBe(true);
  const cut = (_: IncomingMessage, res: ServerResponse): void => {
    res.writeHead(200, { 'content-length': String(body.length) });
    res.write(body.subarray(0, 1000), () => res.destroy());
  };
  expect(same(await fetched(await serve(cut, content(body))))).toBe(true);
  expect(await fetched(await serve(cut))).toMatch(/aborted|terminated|socket|received/);
});

it('fetches nothing that is refused, too large, or too slow', async () => {
  expect(await fetched(await serve(status(403)))).toBe('status 403');
  expect(await fetched(await serve(status(500)))).toBe('status 500');
  const large = randomBytes(1e6 + 1);
  const tooLarge = /^larger than 1 MB, .*AGENT_URL_MB/;
  expect(await fetched(await serve(content(large)))).toMatch(tooLarge);
  // Nobody has said how large it is.
  const growing = (_: IncomingMessage, res: ServerResponse): void => {
    res.write(large.subarray(0, 600_000));
    res.end(large.subarray(600_000));
  };
  expect(await fetched(await serve(growing))).toMatch(tooLarge);
  expect(await fetched(await serve(content(large)), { maxBytes: 2e6 })).toHaveLength(large.length);
  const slow = (_: IncomingMessage, res: ServerResponse): void => void res.write('a');
  expect(await fetched(await serve(slow), { limitMs: 300 })).toMatch(/^it took longer than .*AGENT_URL_S/);
  expect(await fetched(await serve(status(500)), { limitMs: 300, retryMs: 10_000 })).toMatch(
    /^it took longer/,
  );
});

it('asks no address of its host or of private networks that the operator has not allowed, after redirects either', async () => {
  const body = Buffer.from('ours');
  const open = await serve(content(body));
  expect(await fetched(open, { addresses: [] })).toMatch(/^127\.0\.0\.1 is .*AGENT_URL_ADDRESSES/);
  expect(await fetched(open, { addresses: ['10.0.0.0/8'] })).toMatch(/AGENT_URL_ADDRESSES/);
  for (const closed of ['127.0.0.2', '169.254.169.254', '10.1.2.3', '192.168.0.1', '[::1]', '[fd00::1]'])
    for (const code of [301, 302, 303, 307, 308])
      expect(await fetched(await serve(status(code, { location: `http://${closed}:1/` })))).toMatch(
        /AGENT_URL_ADDRESSES/,
      );
  expect(await fetched(await serve(status(302, { location: 'file:///etc/passwd' })))).toMatch(/to file:/);
  expect(await fetched(await serve(status(302, { location: '/again' })))).toBe('more than 5 redirects');
});

/** Runs with their inputs from URLs, as an agent has them. */
async function openStaging(stateDir: string, more: UrlOptions = {}): Promise<StagingRunner> {
  const inner = await ProcessRunner.open({ stateDir });
  const data = { site: 'here', maxBytes: 1e9, command: null, rateMbPerS: null };
  const runner = new StagingRunner(inner, join(stateDir, 'data'), data, { ...options, ...more });
  onTestFinished(async () => {
    for (const run of runner.runs()) runner.cancel(run, 0);
    await until(() => runner.runs().length === 0, 'the runs to end');
    runner.close();
  });
  return runner;
}

it('a run finds what was downloaded by variable and by name, nobody keeps it, and what cannot be had is its end', async () => {
  const stateDir = temporaryDirectory();
  const runner = await openStaging(stateDir);
  const [first, second] = [
    await serve(content(Buffer.from('one'))),
    await serve(content(Buffer.from('two'))),
  ];
  const urls = [`${first}/data%20set?signature=secret`, `${second}/data%20set`, `${second}/`];
  const downloads = urls.map((url) => ({ url }));
  const text =
    'cat "data set" "$SWITCHYARD_DOWNLOAD_2" download-3; [ "$(basename "$SWITCHYARD_DOWNLOAD_2")" = download-2 ]';
  const end = await complete(runner, { ...script('job_1', text), downloads });
  expect([end.cause, end.message, end.stdout?.text]).toEqual(['EXITED_ZERO', null, 'onetwotwo']);
  const [report] = runner.stagings();
  expect(report).toMatchObject({ totalMb: 9e-6, movedMb: 9e-6, error: null, moved: [] });
  runner.stagingDelivered([report!]);
  const kept = () => readdirSync(join(stateDir, 'data', 'downloads'));
  await until(() => kept().length === 0, 'the downloads to be removed');

  const refused = await serve(status(404));
  const failed = { ...script('job_2', 'true'), downloads: [{ url: `${refused}/x?signature=secret` }] };
  expect(await complete(runner, failed)).toMatchObject({
    ...{ cause: 'STAGING_FAILED', message: `${refused}/x: cannot be downloaded: status 404` },
  });
  // Cancelled while it waits.
  const slow = await serve((_, res) => void res.write('a'));
  runner.start({ ...script('job_3', 'true'), downloads: [{ url: slow }] });
  await until(() => kept().length === 1, 'the download to begin');
  runner.cancel({ jobId: 'job_3', epoch: 1 });
  expect(endOf(runner, 'job_3')).toMatchObject({ cause: 'CANCELLED_BY_USER' });
  await until(() => kept().length === 0, 'what has come of it to be removed');
});

it('what an agent had downloaded for runs that it did not start, the next one removes', async () => {
  const stateDir = temporaryDirectory();
  mkdirSync(join(stateDir, 'data', 'downloads', 'left'), { recursive: true });
  await openStaging(stateDir);
  await until(() => readdirSync(join(stateDir, 'data', 'downloads')).length === 0, 'it to be removed');
});

/** A run that has left `out` (a file) and `tree` (a directory), and the keeper of its outputs, with what it hands to the service. */
function leaving(more: UrlOptions = {}) {
  const directory = temporaryDirectory();
  writeFileSync(join(directory, 'out'), 'what it found');
  mkdirSync(join(directory, 'tree', 'deep'), { recursive: true });
  writeFileSync(join(directory, 'tree', 'a b#?'), 'first');
  writeFileSync(join(directory, 'tree', 'deep', 'leaf'), 'second');
  const files: string[] = [];
  let isFull = false;
  const client = {
    request: async (_: string, { files: told }: { files: { path: string; bytes: number }[] }) => {
      if (isFull) throw new Error('no room');
      files.push(...told.map(({ path }) => path));
      return { keepFiles: told.map(({ path, bytes }) => ({ id: path, path, receivedBytes: bytes })) };
    },
    put: async () => ({ receivedBytes: 0, kept: true }),
  };
  const urls = { ...options, ...more };
  const keeper = new OutputKeeper({
    ...{ client: client as never, datasetsDir: temporaryDirectory(), datasetsBytes: null, urls },
  });
  keeper.serve({ site: 'site_1', agent: () => 'agent_1' });
  const keep = async (path: string, url: string, well = true): Promise<string | null> => {
    const outputs = [{ path, dataset: null, url }];
    const run: EndedRun = { jobId: 'job_1', epoch: 1, task: 0, directory, uid: null, outputs, well };
    const problem = await keeper.keep(run, new AbortController().signal);
    expect(problem ?? '').not.toContain('secret');
    return problem;
  };
  return { files, keep, fill: () => (isFull = true) };
}

/** A server that takes files, and tells which it has. */
async function store(...before: Parameters<typeof serve>) {
  const has = new Map<string, string>();
  const url = await serve(...before, (req, res) => {
    if (req.headers.expect !== undefined) res.writeContinue();
    void text(req).then((body) => {
      has.set(`${req.method} ${req.url}`, body);
      res.writeHead(201).end();
    });
  });
  return { has, url };
}

it('sends a file to its URL, and what is in a directory below it; the service keeps nothing of it', async () => {
  const { files, keep } = leaving();
  const { has, url } = await store(status(500));
  expect(await keep('out', `${url}/x?signature=secret`)).toBe(null);
  expect(await keep('tree/', `${url}/d/?signature=secret`)).toBe(null);
  expect([...has].sort()).toEqual([
    ['PUT /d/a%20b%23%3F?signature=secret', 'first'],
    ['PUT /d/deep/leaf?signature=secret', 'second'],
    ['PUT /x?signature=secret', 'what it found'],
  ]);
  // A run that has failed sends nothing.
  expect(await keep('out', `${url}/y`, false)).toBe(null);
  expect([has.size, files]).toEqual([3, []]);
});

it('follows redirects that keep the method, to servers within reach only', async () => {
  const { keep } = leaving();
  const { has, url } = await store();
  expect(await keep('out', await serve(status(307, { location: `${url}/moved` })))).toBe(null);
  expect([...has]).toEqual([['PUT /moved', 'what it found']]);
  for (const closed of ['http://127.0.0.2:1/', 'http://10.0.0.1/', 'http://[::1]/'])
    expect(await keep('out', await serve(status(308, { location: closed })))).toMatch(
      /cannot be uploaded: .*AGENT_URL_ADDRESSES\); the service keeps out$/,
    );
  expect(await keep('out', await serve(status(302, { location: url })))).toMatch(/status 302/);
  expect(has.size).toBe(1);
});

it('what a server does not take the service keeps, and says so', async () => {
  const { files, keep, fill } = leaving();
  const refused = await serve(status(403));
  expect(await keep('out', `${refused}/x?signature=secret`)).toBe(
    `${refused}/x: cannot be uploaded: status 403; the service keeps out`,
  );
  expect(files.splice(0)).toEqual(['out']);
  expect(await keep('out', await serve(status(503)))).toMatch(/status 503; the service keeps out$/);
  expect(files.splice(0)).toEqual(['out']);
  // What came before is there.
  const take = (req: IncomingMessage, res: ServerResponse): void => {
    res.writeContinue();
    req.resume().on('end', () => res.end());
  };
  expect(await keep('tree', await serve(take, status(403)))).toMatch(
    /403; the service keeps tree\/deep\/leaf$/,
  );
  expect(files.splice(0)).toEqual(['tree/deep/leaf']);
  expect(await keep('tree', refused)).toMatch(/the service keeps 2 files of tree$/);
  files.length = 0;
  const slow = leaving({ limitMs: 200 });
  expect(await slow.keep('out', await serve(() => {}))).toMatch(/took longer .*; the service keeps out$/);
  expect(slow.files).toEqual(['out']);
  expect(await keep('missing', refused)).toBe('missing: no such file');
  fill();
  expect(await keep('out', refused)).toMatch(/403; and the service does not keep out: no room$/);
});
