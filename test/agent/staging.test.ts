/** Inputs are brought to runs: whole or not at all, once, within the bound; from files, by HTTP, by a command. */
import { createHash, randomBytes } from 'node:crypto';
import dns from 'node:dns';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect, it, onTestFinished } from 'vitest';
import { ProcessRunner } from '../../src/agent/process/runner.js';
import { type CacheOptions, DataCache, type Input } from '../../src/agent/staging/cache.js';
import { CLOSED } from '../../src/agent/staging/roots.js';
import { StagingRunner } from '../../src/agent/staging/runner.js';
import { assignment, complete, endOf, script, temporaryDirectory, until } from './support.js';

const MB = 1e6;
const never = new AbortController().signal;
const sha256 = (bytes: Buffer): string => createHash('sha256').update(bytes).digest('hex');

/** A dataset of random bytes at site `far`, and how an agent is told of it. */
function dataset(bytes = 3 * MB, name = 'data'): { content: Buffer; path: string; input: Input } {
  const content = randomBytes(bytes);
  const path = join(temporaryDirectory(), name);
  writeFileSync(path, content);
  const sources = [{ site: 'far', location: pathToFileURL(path).href }];
  const input = {
    place: 1,
    dataset: `dataset_${path}`,
    name,
    sizeMb: bytes / MB,
    sha256: sha256(content),
    sources,
  };
  return { content, path, input };
}

const options = (more: Partial<CacheOptions> = {}): Omit<CacheOptions, 'dir'> => ({
  ...{ site: 'here', maxBytes: 100 * MB, command: null, rateMbPerS: null, retryMs: 1 },
  addresses: ['127.0.0.1'],
  ...more,
});

const cacheIn = (dir: string, more: Partial<CacheOptions> = {}): DataCache =>
  new DataCache({ ...options(more), dir });

/** All that is in a directory by the name that runs are given. */
const visible = (dir: string): string[] =>
  readdirSync(dir).filter((key) => existsSync(join(dir, key, 'data')));

async function serve(listener: RequestListener): Promise<string> {
  const server = createServer(listener).listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/data?token=secret`;
}

it('links what is at its own site, and fetches from another once for all who want it at the same time', async () => {
  const { content, path, input } = dataset();
  const cache = cacheIn(temporaryDirectory());
  const local = { ...input, sources: [{ site: 'here', location: path }] };
  expect(await cache.stage(local, 'a', never)).toEqual({ path, moved: null });
  const [one, two] = await Promise.all([cache.stage(input, 'b', never), cache.stage(input, 'c', never)]);
  expect(sha256(readFileSync(one.path))).toBe(sha256(content));
  expect(two).toEqual(one);
  expect(one.moved).toMatchObject({ from: 'far', bytes: content.length });
  expect(statSync(one.path).mode & 0o222).toBe(0);
  expect(await cache.stage(input, 'd', never)).toEqual({ path: one.path, moved: null });
  // A path says nothing of another site's files.
  const elsewhere = { ...input, dataset: 'x', sources: [{ site: 'far', location: path }] };
  await expect(cache.stage(elsewhere, 'e', never)).rejects.toThrow(/no location can be reached/);
});

it('continues by HTTP where it was cut off, and never shows what is not whole', async () => {
  const { content, input } = dataset(4 * MB);
  const asked: (string | undefined)[] = [];
  const dir = temporaryDirectory();
  const url = await serve((request, response) => {
    asked.push(request.headers.range);
    expect(visible(dir)).toEqual([]);
    const from = Number(/bytes=(\d+)-/.exec(request.headers.range ?? '')?.[1] ?? 0);
    const headers = { etag: '"1"', 'content-length': content.length - from };
    if (from > 0)
      response.writeHead(206, { ...headers, 'content-range': `bytes ${from}-${content.length - 1}/*` });
    else response.writeHead(200, headers);
    // Cut off in the middle, twice.
    if (asked.length < 3) response.write(content.subarray(from, from + MB), () => response.destroy());
    else response.end(content.subarray(from));
  });
  const { path } = await cacheIn(dir).stage(
    { ...input, sources: [{ site: 'far', location: url }] },
    'a',
    never,
  );
  expect(sha256(readFileSync(path))).toBe(sha256(content));
  expect(asked[0]).toBeUndefined();
  expect(asked.length).toBe(3);
  expect(asked.slice(1).some((range) => range !== undefined)).toBe(true);
});

it('begins anew where the source has changed, and takes the next source where one is no good', async () => {
  const { content, input } = dataset();
  let requests = 0;
  const url = await serve((_, response) => {
    requests++;
    response.writeHead(200, { etag: `"${requests}"`, 'content-length': content.length });
    if (requests === 1) response.write(Buffer.alloc(MB), () => response.destroy());
    else response.end(content);
  });
  const missing = await serve((_, response) => response.writeHead(404).end());
  const sources = [missing, url].map((location) => ({ site: 'far', location }));
  const { path } = await cacheIn(temporaryDirectory()).stage({ ...input, sources }, 'a', never);
  expect(sha256(readFileSync(path))).toBe(sha256(content));
});

it('refuses other content than the catalog says, says why, and tells nobody what is secret in a URL', async () => {
  const { input, content } = dataset();
  const dir = temporaryDirectory();
  const url = await serve((_, response) => response.end(Buffer.alloc(content.length)));
  const wrong = { ...input, sources: [{ site: 'far', location: url }] };
  const cache = cacheIn(dir);
  const said = await cache.stage(wrong, 'a', never).catch((error: Error) => error.message);
  expect(said).toMatch(/^input data: from far: its SHA-256 is [0-9a-f]{64}; the catalog says/);
  expect(said).not.toContain('secret');
  await expect(cache.stage({ ...input, sizeMb: 9 }, 'a', never)).rejects.toThrow(
    'it has 3 MB; the catalog says 9 MB',
  );
  const dead = await serve((_, response) => response.writeHead(403).end());
  const refused = { ...input, dataset: 'y', sources: [{ site: 'far', location: dead }] };
  await expect(cache.stage(refused, 'a', never)).rejects.toThrow(/\/data: status 403$/);
  expect(visible(dir)).toEqual([]);
});

it('fetches by a command of the operator, without a shell', async () => {
  const { path, content, input } = dataset();
  const dir = temporaryDirectory();
  const command = [
    '/bin/sh',
    '-c',
    'test "$1" = "store:x; touch /tmp/never" && cp "$0" "$2"',
    path,
    '{source}',
    '{target}',
  ];
  const cache = cacheIn(dir, { command });
  const sources = [{ site: 'far', location: 'store:x; touch /tmp/never' }];
  expect(sha256(readFileSync((await cache.stage({ ...input, sources }, 'a', never)).path))).toBe(
    sha256(content),
  );
  const other = { ...input, dataset: 'z', sources: [{ site: 'far', location: 'store:y' }] };
  await expect(cache.stage(other, 'a', never)).rejects.toThrow('/bin/sh: ended with 1');
  await expect(cacheIn(temporaryDirectory()).stage(other, 'a', never)).rejects.toThrow(
    'AGENT_TRANSFER_COMMAND',
  );
});

it('stays within its bound: what was not used for longest goes, nothing that a run uses', async () => {
  const dir = temporaryDirectory();
  const cache = cacheIn(dir, { maxBytes: 7 * MB });
  const [a, b, c] = [dataset(), dataset(), dataset()];
  const first = await cache.stage(a.input, 'a', never);
  await cache.stage(b.input, 'b', never);
  await expect(cache.stage(c.input, 'c', never)).rejects.toThrow('full of data in use by runs');
  cache.retain(new Set(['a']));
  await cache.stage(c.input, 'c', never);
  expect(sha256(readFileSync(first.path))).toBe(sha256(a.content));
  expect(visible(dir).length).toBe(2);
  expect(cache.bytes).toBeLessThanOrEqual(7 * MB);
  await expect(cache.stage(dataset(8 * MB).input, 'd', never)).rejects.toThrow('8 MB do not fit');
  // The next agent finds what is there.
  const next = cacheIn(dir, { maxBytes: 7 * MB });
  expect(next.bytes).toBe(6 * MB);
  expect((await next.stage(c.input, 'c', never)).moved).toBeNull();
});

async function openStaging(stateDir: string, more: Partial<CacheOptions> = {}): Promise<StagingRunner> {
  const runner = new StagingRunner(
    await ProcessRunner.open({ stateDir }),
    join(stateDir, 'data'),
    options(more),
  );
  onTestFinished(() => runner.close());
  return runner;
}

it('a run finds its inputs by name and by variable, and what staging took is told', async () => {
  const { content, input } = dataset(2 * MB, 'a set');
  const runner = await openStaging(temporaryDirectory());
  const run = script('job_1', 'sha256sum <"a set"; cat "$SWITCHYARD_INPUT_1" | wc -c; echo no >>"a set"');
  const end = await complete(runner, { ...run, inputs: [input] });
  expect(end.stdout!.text).toBe(`${sha256(content)}  -\n${2 * MB}\n`);
  const [report] = runner.stagings();
  expect(report).toMatchObject({ jobId: 'job_1', epoch: 1, totalMb: 2, movedMb: 2, error: null });
  expect(report!.endedAtMs).toBeGreaterThanOrEqual(report!.beganAtMs);
  runner.stagingDelivered([report!]);
  expect(runner.stagings()).toEqual([]);
  // Where a directory is given, nothing is put into it. What a job has changed, as it can under the agent's account, is fetched anew.
  const workingDirectory = temporaryDirectory();
  const text = 'ls; sha256sum <"$SWITCHYARD_INPUT_1"';
  const given = { ...script('job_2', text), workingDirectory, inputs: [input] };
  expect((await complete(runner, given)).stdout!.text).toBe(`${sha256(content)}  -\n`);
  expect((await complete(runner, { ...given, jobId: 'job_3' })).cause).toBe('EXITED_ZERO');
  expect(runner.stagings().at(-1)).toMatchObject({ jobId: 'job_3', movedMb: 0, totalMb: 2 });
});

it('the time that staging takes is input and output of the run', async () => {
  const runner = await openStaging(temporaryDirectory(), { rateMbPerS: 2 });
  const { input } = dataset(2 * MB);
  const inputs = [{ ...input, place: 1 }];
  const end = await complete(runner, { ...script('job_1', 'sleep 0.5'), inputs });
  const [report] = runner.stagings();
  const stagedS = (report!.endedAtMs! - report!.beganAtMs) / 1000;
  expect(stagedS).toBeGreaterThan(0.4);
  // Sleeping is neither.
  expect(Math.abs(end.ioWaitS! / stagedS - 1)).toBeLessThan(0.15);
});

it('a run whose inputs cannot be had ends with that cause, one that is cancelled meanwhile as cancelled, and neither starts', async () => {
  const { input } = dataset();
  const runner = await openStaging(temporaryDirectory(), { rateMbPerS: 0.1 });
  const touched = join(temporaryDirectory(), 'touched');
  const run = (jobId: string, more: Partial<Input>) => ({
    ...assignment(jobId, 'touch', touched),
    inputs: [{ ...input, dataset: jobId, ...more }],
  });
  const gone = { site: 'far', location: 'file:///nowhere/at/all' };
  expect(await complete(runner, run('job_1', { sources: [gone] }))).toMatchObject({
    cause: 'STAGING_FAILED',
    message: expect.stringMatching(/^input data: from far: ENOENT/),
  });
  // What is other than the catalog says wherever it is: no other attempt would help, unless a source has not answered.
  const { input: small } = dataset(1_000);
  const wrong = { ...small, sha256: '0'.repeat(64) };
  expect(await complete(runner, run('job_4', wrong))).toMatchObject({
    ...{ cause: 'INPUT_MISMATCH', message: expect.stringMatching(/its SHA-256 is/) },
  });
  expect(await complete(runner, run('job_5', { ...wrong, sources: [...small.sources, gone] }))).toMatchObject(
    { cause: 'STAGING_FAILED' },
  );
  runner.start(run('job_2', {}));
  runner.start(run('job_3', {}));
  expect(runner.runs().map(({ jobId }) => jobId)).toEqual(['job_2', 'job_3']);
  runner.cancel({ jobId: 'job_2', epoch: 1 });
  runner.forget({ jobId: 'job_3', epoch: 1 });
  expect(endOf(runner, 'job_2')).toMatchObject({ cause: 'CANCELLED_BY_USER' });
  runner.start(run('job_2', {}));
  runner.start(run('job_3', {}));
  expect(runner.runs()).toEqual([]);
  expect(endOf(runner, 'job_3')).toMatchObject({ cause: 'LOST' });
  expect(existsSync(touched)).toBe(false);
});

it('an agent that dies while it stages is followed by one that goes on with what has come', async () => {
  const { content, input } = dataset(4 * MB);
  const stateDir = temporaryDirectory();
  const run = { ...script('job_1', 'sha256sum <data'), inputs: [input] };
  const datasets = join(stateDir, 'data', 'datasets');
  const first = await openStaging(stateDir, { rateMbPerS: 2 });
  first.start(run);
  await until(() => first.stagings().some(({ movedMb }) => movedMb > 1), 'a part of the data');
  first.close();
  expect(visible(datasets)).toEqual([]);
  const second = await openStaging(stateDir);
  expect((await complete(second, run)).stdout!.text).toBe(`${sha256(content)}  -\n`);
  const [report] = second.stagings();
  expect(report!.movedMb).toBeLessThan(4);
  expect(report!.movedMb).toBeGreaterThan(0);
  // What the service has not heard, the next agent tells.
  second.close();
  const third = await openStaging(stateDir);
  expect(third.stagings()).toEqual([JSON.parse(JSON.stringify(report))]);
});

it('data that a run reads stays though the agent is another', async () => {
  const stateDir = temporaryDirectory();
  const [a, b] = [dataset(3 * MB, 'a'), dataset(3 * MB, 'b')];
  const gate = join(temporaryDirectory(), 'gate');
  const text = `until [ -e ${gate} ]; do sleep 0.1; done; sha256sum <a`;
  const first = await openStaging(stateDir, { maxBytes: 5 * MB });
  first.start({ ...script('job_1', text), inputs: [a.input] });
  await until(() => first.reports(1).length === 1, 'the start');
  first.close();
  const second = await openStaging(stateDir, { maxBytes: 5 * MB });
  const other = { ...script('job_2', 'true'), inputs: [b.input] };
  expect((await complete(second, other)).cause).toBe('STAGING_FAILED');
  mkdirSync(gate);
  await until(() => endOf(second, 'job_1') !== undefined, 'the end');
  expect(endOf(second, 'job_1')!.stdout!.text).toBe(`${sha256(a.content)}  -\n`);
  expect(await complete(second, { ...other, epoch: 2 })).toBeDefined();
});

it('fetches by HTTP from other hosts, however what is the host’s own or its link’s is written, named or redirected to', async () => {
  const content = randomBytes(1000);
  let asked = 0;
  const inside = new URL(
    await serve((_, response) => {
      asked++;
      response.end(content);
    }),
  );
  const input = { ...dataset(1000).input, sha256: sha256(content) };
  const stage = (location: string, addresses: string[] = [], more: Partial<CacheOptions> = {}) =>
    cacheIn(temporaryDirectory(), { addresses, attempts: 1, ...more }).stage(
      { ...input, dataset: location, sources: [{ site: 'far', location }] },
      'a',
      never,
    );
  const { port } = inside;
  const hosts = [
    ...['127.0.0.1', '127.1', '2130706433', '0x7f.0.0.1', '0177.0.0.1', '0', '0.0.0.0', 'localhost'],
    ...[
      '[::1]',
      '[::]',
      '[::ffff:127.0.0.1]',
      '[::ffff:7f00:1]',
      '[::127.0.0.1]',
      '[64:ff9b::7f00:1]',
      '[2002:7f00:1::]',
    ],
    ...[
      '169.254.169.254',
      '[::ffff:169.254.169.254]',
      '[fe80::1]',
      '[fd00:ec2::254]',
      '100.100.100.200',
      '224.0.0.1',
    ],
  ];
  for (const host of hosts)
    await expect(stage(`http://${host}:${port}/x`), host).rejects.toThrow(/a local or link-local address/);
  expect(asked).toBe(0);
  // Where the first answer comes from an address that the operator allows, and the next would not.
  const redirects = (to: string) => serve((_, response) => response.writeHead(302, { location: to }).end());
  for (const host of ['[::ffff:7f00:2]', '127.0.0.2', '169.254.169.254'])
    await expect(stage(await redirects(`http://${host}:${port}/x`), ['127.0.0.1']), host).rejects.toThrow(
      /a local or link-local address/,
    );
  for (const to of ['file:///etc/passwd', 'ftp://127.0.0.1/x', 'data:,x'])
    await expect(stage(await redirects(to), ['127.0.0.1'])).rejects.toThrow(
      /redirects to (file|ftp|data):, not to http/,
    );
  // A name that means another address each time it is asked.
  const names: string[] = [];
  const { lookup } = dns;
  onTestFinished(() => {
    dns.lookup = lookup;
  });
  const answers = ['127.0.0.1', '127.0.0.3'];
  dns.lookup = ((name: string, _: object, done: (error: null, found: object[]) => void) => {
    names.push(name);
    done(null, [{ address: answers.shift() ?? '127.0.0.3', family: 4 }]);
    // The one of its many forms that is used.
  }) as unknown as typeof lookup;
  asked = 0;
  expect((await stage(`http://rebinds.test:${port}/x`, ['127.0.0.1'])).moved).toMatchObject({ bytes: 1000 });
  expect([names, asked]).toEqual([['rebinds.test'], 1]);
  await expect(stage(`http://rebinds.test:${port}/x`, ['127.0.0.1'])).rejects.toThrow(
    /rebinds.test is 127.0.0.3, which is/,
  );
  expect(asked).toBe(1);
  // A scheme is the same in capitals, and nobody's command gets it.
  const command = {
    command: ['/bin/cp', '{source}', '{target}'],
    roots: { allowed: null, closed: [...CLOSED], open: [] },
  };
  await expect(stage('FILE:///etc/passwd', [], command)).rejects.toThrow(/belongs to the host/);
});

it('copies of a directory dataset what is in it: no link of its owner leads elsewhere', async () => {
  const base = temporaryDirectory();
  const secret = join(base, 'secret');
  const data = join(base, 'data');
  mkdirSync(data);
  for (const path of [secret, join(data, 'real')]) writeFileSync(path, 'x');
  const input = { ...dataset().input, sizeMb: 0, sha256: null };
  const stage = (name: string) =>
    cacheIn(temporaryDirectory()).stage(
      { ...input, dataset: name, sources: [{ site: 'far', location: pathToFileURL(data).href }] },
      'a',
      never,
    );
  symlinkSync('real', join(data, 'same'));
  expect(readdirSync((await stage('good')).path)).toEqual(['real', 'same']);
  symlinkSync(secret, join(data, 'link'));
  await expect(stage('bad')).rejects.toThrow(/link points outside the dataset/);
  rmSync(join(data, 'link'));
  for (const name of ['a', 'b', 'c']) symlinkSync('.', join(data, name));
  await expect(stage('round')).rejects.toThrow(/is a link to a directory/);
});

it('the paths of datasets lead to data only: not to what is the host’s own or the agent’s, not through links, not by file:', async () => {
  const { input, path } = dataset();
  const base = dirname(path);
  const [state, datasets] = [join(base, 'state'), join(base, 'state', 'datasets')];
  mkdirSync(join(state, 'slots'), { recursive: true });
  mkdirSync(datasets);
  for (const file of [join(state, 'slots', 'other'), join(datasets, 'made')])
    writeFileSync(file, readFileSync(path));
  symlinkSync(join(state, 'slots', 'other'), join(base, 'link'));
  const roots = { allowed: null, closed: [...CLOSED, state], open: [datasets] };
  const at = (location: string, name = location, site = 'here') => ({
    ...{ ...input, name, dataset: `${site} ${location}`, sources: [{ site, location }] },
  });
  const cache = cacheIn(temporaryDirectory(), { roots });
  expect((await cache.stage(at(path), 'a', never)).path).toBe(path);
  expect((await cache.stage(at(join(datasets, 'made')), 'b', never)).path).toBe(join(datasets, 'made'));
  for (const location of [join(state, 'slots', 'other'), join(base, 'link'), base])
    await expect(cache.stage(at(location), 'c', never)).rejects.toThrow(/belongs to the host or the agent/);
  for (const location of ['/etc/passwd', '/proc/self/environ', '/']) {
    const stated = { ...at(location), sizeMb: 0 };
    await expect(cache.stage(stated, 'd', never)).rejects.toThrow(/belongs to the host/);
    const fetched = { ...at(pathToFileURL(location).href, 'x', 'far'), sizeMb: 0 };
    await expect(cache.stage(fetched, 'e', never)).rejects.toThrow(/belongs to the host/);
  }
  const narrow = cacheIn(temporaryDirectory(), { roots: { ...roots, allowed: [join(base, 'nowhere')] } });
  await expect(narrow.stage(at(path), 'f', never)).rejects.toThrow(/AGENT_DATA_DIRECTORIES/);
  expect((await narrow.stage(at(join(datasets, 'made')), 'g', never)).path).toBe(join(datasets, 'made'));
});
