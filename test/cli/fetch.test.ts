/** `switchyard job ID --fetch`: into one directory and nowhere else, whatever the service says and however it breaks. */
import { createHash, randomBytes } from 'node:crypto';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished, vi } from 'vitest';
import { fetchFiles } from '../../src/cli/fetch.js';
import { Client } from '../../src/client/index.js';

const sha256 = (body: Buffer): string => createHash('sha256').update(body).digest('hex');

interface Served {
  path: string;
  body: Buffer;
  task?: number;
  sha256?: string;
  keptAt?: string | null;
}

/** Of what has arrived of a file there. */
const partSize = (dir: string): number => {
  const part = existsSync(dir) ? readdirSync(dir).find((name) => name.endsWith('.part')) : undefined;
  return part === undefined ? 0 : statSync(join(dir, part)).size;
};

/** A service with these files. `answer` may break the answer to a request. */
async function serving(
  files: Served[],
  answer: (range: string | undefined, response: ServerResponse) => boolean = () => false,
) {
  vi.spyOn(process.stderr, 'write').mockReturnValue(true);
  const base = mkdtempSync(join(tmpdir(), 'switchyard-fetch-'));
  const asked: (string | undefined)[] = [];
  const server = createServer((request, response) => {
    const url = new URL(request.url!, 'http://x');
    if (url.pathname === '/graphql') {
      const told = files.map(({ body, task = 0, keptAt = 'now', ...file }) => ({
        ...{ task, keptAt, bytes: body.length, sha256: sha256(body) },
        ...file,
        body: undefined,
      }));
      return response.end(JSON.stringify({ data: { job: { epoch: 1, files: told } } }));
    }
    asked.push(request.headers.range);
    if (answer(request.headers.range, response)) return;
    const path = decodeURIComponent(url.pathname.split('/files/')[1]!);
    const file = files.find(
      (one) => one.path === path && String(one.task ?? 0) === url.searchParams.get('task'),
    )!;
    const from = Number(/bytes=(\d+)-/.exec(request.headers.range ?? '')?.[1] ?? 0);
    response.writeHead(from > 0 ? 206 : 200);
    return response.end(file.body.subarray(from));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
    rmSync(base, { recursive: true, force: true });
    vi.restoreAllMocks();
  });
  const client = new Client({
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/graphql`,
    key: 'k',
  });
  const dir = join(base, 'fetched');
  return { base, dir, asked, fetch: () => fetchFiles(client, 'job_1', dir, undefined) };
}

it('fetches what is kept, goes on where it was cut off, and leaves what is there already', async () => {
  const body = randomBytes(300_000);
  let cuts = 2;
  const { dir, asked, fetch } = await serving(
    [
      { path: 'sub/ä b.bin', body },
      { path: 'empty', body: Buffer.alloc(0) },
      { path: 'late', body, keptAt: null },
    ],
    (range, response) => {
      if (cuts-- <= 0) return false;
      const from = Number(/bytes=(\d+)-/.exec(range ?? '')?.[1] ?? 0);
      response.writeHead(from > 0 ? 206 : 200, { 'content-length': body.length - from });
      response.write(body.subarray(from, from + 100_000));
      // Cut when some has arrived: what a client has not taken up by then is lost with the connection.
      const cut = setInterval(() => {
        if (partSize(join(dir, 'sub')) <= from) return;
        clearInterval(cut);
        response.destroy();
      }, 10);
      return true;
    },
  );
  const [file, empty, late] = await fetch();
  expect(file).toMatchObject({ file: join(dir, 'sub', 'ä b.bin'), problem: null });
  expect(empty).toMatchObject({ problem: null });
  expect(late).toMatchObject({ file: null, problem: 'the service has not received all of it yet' });
  expect(sha256(readFileSync(join(dir, 'sub', 'ä b.bin')))).toBe(sha256(body));
  expect(asked[0]).toBeUndefined();
  expect(asked[2]).toMatch(/^bytes=[1-9]\d*-$/);
  expect(readdirSync(join(dir, 'sub'))).toEqual(['ä b.bin']);
  const before = asked.length;
  await fetch();
  expect(asked.length).toBe(before);
});

it('writes nowhere else: not by paths, not by links, not over what is there', async () => {
  const body = Buffer.from('evil');
  const paths = [
    '../up',
    '/tmp/switchyard-absolute',
    'a/../../up',
    'link/file',
    'there',
    'file/below',
    '.',
    'x\u0000y',
  ];
  const { base, dir, fetch } = await serving(paths.map((path) => ({ path, body })));
  mkdirSync(join(base, 'elsewhere'));
  mkdirSync(dir);
  symlinkSync(join(base, 'elsewhere'), join(dir, 'link'));
  writeFileSync(join(dir, 'there'), 'mine');
  writeFileSync(join(dir, 'file'), 'mine');
  for (const { file, problem } of await fetch()) {
    expect(file).toBeNull();
    expect(problem).toMatch(/accepted|is not a directory|with different content/);
  }
  expect(readdirSync(base).sort()).toEqual(['elsewhere', 'fetched']);
  expect(readdirSync(join(base, 'elsewhere'))).toEqual([]);
  expect(readdirSync(dir).sort()).toEqual(['file', 'link', 'there']);
  expect(existsSync('/tmp/switchyard-absolute')).toBe(false);
  expect(readFileSync(join(dir, 'there'), 'utf8')).toBe('mine');
});

it('keeps nothing whose checksum is another, and files of several tasks apart', async () => {
  const body = Buffer.from('b');
  const { dir, fetch } = await serving([
    { path: 'a', body },
    { path: 'a', body: Buffer.from('c'), task: 1 },
    { path: 'spoiled', body, sha256: 'f'.repeat(64) },
  ]);
  const [, , spoiled] = await fetch();
  expect(spoiled).toMatchObject({ file: null, problem: expect.stringMatching(/checksum does not match/) });
  expect(readdirSync(dir, { recursive: true }).map(String).sort()).toEqual([
    'task-0',
    'task-0/a',
    'task-1',
    'task-1/a',
  ]);
  expect(readFileSync(join(dir, 'task-1', 'a'), 'utf8')).toBe('c');
});
