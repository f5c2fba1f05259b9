/** What jobs name as their outputs: found in a directory that nobody trusts, kept before the end of the run is told, handed over whatever breaks. */
import { execFileSync, spawn } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import {
  chownSync,
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { findFiles, openInside } from '../../src/agent/files/find.js';
import type { EndedRun } from '../../src/agent/files/handover.js';
import { OutputKeeper } from '../../src/agent/files/keeper.js';
import { ProcessRunner } from '../../src/agent/process/runner.js';
import { ServiceError } from '../../src/client/index.js';
import { MAX } from '../../src/platform/limits.js';
import { assignment, complete, endOf, openRunner, script, temporaryDirectory, until } from './support.js';

const sha256 = (body: Buffer): string => createHash('sha256').update(body).digest('hex');
const never = new AbortController().signal;
const asRoot = it.runIf(process.getuid?.() === 0);

/** A directory as a hostile job would leave it. */
function hostile(): { directory: string; secret: string } {
  const base = temporaryDirectory();
  const [directory, secret] = [join(base, 'work'), join(base, 'secret')];
  mkdirSync(join(directory, 'sub', 'deep'), { recursive: true });
  mkdirSync(join(base, 'elsewhere'));
  writeFileSync(secret, 'secret');
  writeFileSync(join(base, 'elsewhere', 'f'), 'secret');
  for (const name of ['a.csv', 'b.csv', 'plain', 'sub/c.csv', 'sub/deep/d'])
    writeFileSync(join(directory, name), name);
  writeFileSync(join(directory, 'sub', 'line\nfeed'), 'x');
  symlinkSync(secret, join(directory, 'out'));
  symlinkSync(secret, join(directory, 'sub', 'out'));
  symlinkSync(join(base, 'elsewhere'), join(directory, 'away'));
  symlinkSync('plain', join(directory, 'within'));
  symlinkSync('.', join(directory, 'sub', 'circle'));
  symlinkSync('nowhere', join(directory, 'dangling'));
  execFileSync('mkfifo', [join(directory, 'sub', 'pipe')]);
  return { directory, secret };
}

it.each<[path: string, files: string[], problems: RegExp[]]>([
  ['plain', ['plain'], []],
  ['*.csv', ['a.csv', 'b.csv'], []],
  ['sub/?.csv', ['sub/c.csv'], []],
  ['*/deep/*', ['sub/deep/d'], []],
  ['none*', [], []],
  // Below what is named: only what is a file of its own, under a name that can be kept.
  ['sub/', ['sub/c.csv', 'sub/deep/d'], [/line\\nfeed.*without control characters/]],
  ['within', ['within'], []],
  ['missing', [], [/^missing: no such file$/]],
  ['out', [], [/^out: it points outside the directory of the run$/]],
  ['away/f', [], [/points outside/]],
  ['away', [], [/points outside/]],
  ['sub/pipe', [], [/neither a file nor a directory/]],
  ['sub/circle', [], [/neither a file nor a directory/]],
  ['dangling', [], [/no such file/]],
  ['ou*', [], []],
])('finds %s', async (path, files, problems) => {
  const found = await findFiles({ directory: hostile().directory, uid: null }, path, true);
  expect(found.files).toEqual(files);
  expect(found.problems).toEqual(problems.map((one) => expect.stringMatching(one)));
});

it.runIf(process.platform === 'linux')('opens nothing but files: not even to see what it is', async () => {
  const base = temporaryDirectory();
  const directory = join(base, 'work');
  const pipe = join(base, 'pipe');
  mkdirSync(directory);
  execFileSync('mkfifo', [pipe]);
  symlinkSync(pipe, join(directory, 'link'));
  // It waits for somebody to open the other end.
  const writer = spawn('/bin/sh', ['-c', `echo x >'${pipe}'`]);
  onTestFinished(() => void writer.kill('SIGKILL'));
  await new Promise((resolve) => setTimeout(resolve, 100));
  await expect(openInside({ directory, uid: null }, 'link')).rejects.toThrow(/points outside the directory/);
  await new Promise((resolve) => setTimeout(resolve, 100));
  expect(writer.exitCode).toBe(null);
});

it('what is not required may be missing; patterns are matched in no time; many files are refused', async () => {
  const { directory } = hostile();
  const place = { directory, uid: null };
  expect(await findFiles(place, 'missing', false)).toEqual({ files: [], problems: [] });
  writeFileSync(join(directory, 'a'.repeat(250)), '');
  expect((await findFiles(place, `${'a*'.repeat(100)}b`, true)).files).toEqual([]);
  mkdirSync(join(directory, 'many'));
  for (let i = 0; i <= MAX.jobFiles; i++) writeFileSync(join(directory, 'many', String(i)), '');
  expect((await findFiles(place, 'many', true)).problems).toEqual(['many: more than 1000 files']);
});

it('opens nothing outside of the directory, whatever a name has become since it was found', async () => {
  const { directory } = hostile();
  const place = { directory, uid: null };
  for (const path of ['out', 'away/f', '../secret', 'sub/deep'])
    await expect(openInside(place, path)).rejects.toThrow();
  // Nobody writes into it: it must not be waited for.
  await expect(openInside(place, 'sub/pipe')).rejects.toThrow(/neither a file/);
  const file = await openInside(place, 'within');
  expect(readFileSync(file.fd, 'utf8')).toBe('plain');
  await file.close();
});

it('takes nothing from elsewhere when a link has taken the place of the directory itself', async () => {
  const { directory, secret } = hostile();
  renameSync(directory, `${directory}-before`);
  symlinkSync(dirname(secret), directory);
  const place = { directory, uid: null };
  await expect(findFiles(place, 'secret', true)).rejects.toThrow(/has been replaced/);
  await expect(openInside(place, 'secret')).rejects.toThrow(/has been replaced/);
});

it('finds what a run has left in its /tmp under names of its own, and nothing beside it', async () => {
  const { directory } = hostile();
  const tmp = temporaryDirectory();
  writeFileSync(join(tmp, 'a.csv'), '1,2');
  const place = { directory, tmp, uid: null };
  expect(await findFiles(place, '/tmp/*.csv', true)).toEqual({ files: ['/tmp/a.csv'], problems: [] });
  expect((await findFiles(place, '/tmp/b', true)).problems).toEqual(['/tmp/b: no such file']);
  const file = await openInside(place, '/tmp/a.csv');
  expect(readFileSync(file.fd, 'utf8')).toBe('1,2');
  await file.close();
  await expect(openInside(place, '/tmp/../secret')).rejects.toThrow();
  await expect(findFiles({ directory, uid: null }, '/tmp/a.csv', true)).rejects.toThrow(/is not accessible/);
});

it('says which names are no UTF-8', async () => {
  const { directory } = hostile();
  writeFileSync(Buffer.concat([Buffer.from(join(directory, 'sub', 'deep', 'x')), Buffer.from([0xff])]), 'x');
  const found = await findFiles({ directory, uid: null }, 'sub/deep', true);
  expect(found.problems).toEqual([expect.stringMatching(/x\ufffd: invalid name; accepted: UTF-8/)]);
});

asRoot('takes no file of another account, even under a name that the run gave it', async () => {
  const { directory, secret } = hostile();
  linkSync(secret, join(directory, 'hard'));
  chownSync(join(directory, 'plain'), 60_000, 60_000);
  await expect(openInside({ directory, uid: 60_000 }, 'hard')).rejects.toThrow(/not owned/);
  await (await openInside({ directory, uid: 60_000 }, 'plain')).close();
});

/** A service in memory that breaks where it is told to. */
function service(files = new Map<string, { sha256: string; body: Buffer; bytes: number; kept?: boolean }>()) {
  const datasets: Record<string, unknown>[] = [];
  const broken: (() => void)[] = [];
  const fail = () => broken.shift()?.();
  const client = {
    async request(
      document: string,
      variables: { files?: { path: string; bytes: number; sha256: string }[] },
    ) {
      fail();
      if (!variables.files) {
        datasets.push(variables);
        return { keepDataset: { id: 'dataset_1' } };
      }
      expect(document).toMatch(/keepFiles/);
      const keepFiles = variables.files.map(({ path, bytes, sha256: sum }) => {
        if (files.get(path)?.sha256 !== sum) files.set(path, { sha256: sum, bytes, body: Buffer.alloc(0) });
        return { id: path, path, receivedBytes: files.get(path)!.body.length };
      });
      return { keepFiles };
    },
    async put(address: string, body: Buffer) {
      fail();
      const url = new URL(address, 'http://x');
      const file = files.get(decodeURIComponent(url.pathname.slice('/files/'.length)));
      if (!file) throw new ServiceError('no such file', 'NOT_FOUND');
      const isNext = Number(url.searchParams.get('offset')) === file.body.length;
      if (isNext) file.body = Buffer.concat([file.body, body]);
      const isWhole = file.body.length === file.bytes;
      // The process that took the last part died over it: what is left to do is done when it is asked again.
      file.kept = isWhole && (body.length === 0 || !isNext);
      return { receivedBytes: file.body.length, kept: file.kept };
    },
  };
  const datasetsDir = temporaryDirectory();
  const keeper = (datasetsBytes: number | null = null) => {
    const made = new OutputKeeper({ client: client as never, datasetsDir, datasetsBytes });
    made.serve({ site: 'site_1', agent: () => 'agent_1' });
    return made;
  };
  return { files, datasets, broken, keeper, datasetsDir };
}
function ended(outputs: { path: string; dataset?: string }[], directory: string, well = true): EndedRun {
  const wanted = outputs.map(({ path, dataset = null }) => ({ path, dataset }));
  return { jobId: 'job_1', epoch: 1, task: 0, directory, uid: null, outputs: wanted, well };
}

it('hands files over in parts, through a service that is away, cut off, and forgetful', async () => {
  const { files, broken, keeper } = service();
  const directory = temporaryDirectory();
  const body = randomBytes(2 * MAX.filePartBytes + 17);
  writeFileSync(join(directory, 'large'), body);
  writeFileSync(join(directory, 'empty'), '');
  const network = () => {
    throw new ServiceError('nothing answers', 'NETWORK');
  };
  // Before the announcement is answered; in the first part; the second is forgotten with all before it.
  broken.push(
    network,
    () => {},
    () => {},
    network,
    () => {
      files.clear();
      throw new ServiceError('gone', 'NOT_FOUND');
    },
  );
  expect(await keeper().keep(ended([{ path: 'large' }, { path: 'empty' }], directory), never)).toBeNull();
  expect([...files].map(([path, file]) => [path, sha256(file.body), file.kept])).toEqual([
    ['large', sha256(body), true],
    ['empty', sha256(Buffer.alloc(0)), true],
  ]);
});

it('goes on where an earlier agent was, and says what the service refuses for good', async () => {
  const directory = temporaryDirectory();
  const body = randomBytes(MAX.filePartBytes + 1);
  writeFileSync(join(directory, 'a'), body);
  const { files, broken, keeper } = service();
  const stop = new AbortController();
  broken.push(
    () => {},
    () => {},
    () => {
      stop.abort(new Error('the agent stops'));
      throw new ServiceError('nothing answers', 'NETWORK');
    },
  );
  await expect(keeper().keep(ended([{ path: 'a' }], directory), stop.signal)).rejects.toThrow(
    'the agent stops',
  );
  expect(files.get('a')?.body.length).toBe(MAX.filePartBytes);
  expect(await keeper().keep(ended([{ path: 'a' }], directory), never)).toBeNull();
  expect(sha256(files.get('a')!.body)).toBe(sha256(body));
  broken.push(() => {
    throw new ServiceError('files: 12 in total; accepted: up to 10 bytes of a run', 'LIMIT_EXCEEDED');
  });
  expect(await keeper().keep(ended([{ path: 'a' }], directory), never)).toMatch(/^files: 12 in total/);
  // Of a command that failed what there is is kept, and no dataset is made.
  const failed = ended([{ path: 'missing' }, { path: 'a' }, { path: 'a', dataset: 'd' }], directory, false);
  expect(await keeper().keep(failed, never)).toBeNull();
});

it('makes datasets of files and directories, within the room for them', async () => {
  const { directory } = hostile();
  const { datasets, keeper, datasetsDir } = service();
  const run = ended(
    [
      { path: 'plain', dataset: 'one' },
      { path: 'sub/deep', dataset: 'two' },
    ],
    directory,
  );
  for (const _ of [1, 2]) expect(await keeper().keep(run, never)).toBeNull();
  expect(datasets).toHaveLength(4);
  expect(datasets[0]).toMatchObject({ dataset: 'one', sha256: sha256(Buffer.from('plain')), sizeMb: 5e-6 });
  const [one, two] = datasets.map(({ location }) => location as string) as [string, string];
  expect(readFileSync(one, 'utf8')).toBe('plain');
  expect(statSync(one).mode & 0o777).toBe(0o444);
  expect(readdirSync(two)).toEqual(['d']);
  expect(datasets[1]).toMatchObject({ dataset: 'two', sha256: null });
  writeFileSync(join(directory, 'plain'), Buffer.alloc(1000));
  expect(await keeper(900).keep({ ...run, jobId: 'job_2', outputs: run.outputs.slice(0, 1) }, never)).toMatch(
    /^plain: datasets of outputs .*AGENT_DATASETS_MB/,
  );
  expect(readdirSync(datasetsDir)).toEqual(['job_1.1']);
  expect(readFileSync(one, 'utf8')).toBe('plain');
});

it('a run has ended when its outputs are kept, for this agent or the next', async () => {
  const stateDir = temporaryDirectory();
  const seen: EndedRun[] = [];
  let done = (_: string | null): void => {};
  const keep = (run: EndedRun, signal: AbortSignal) => {
    seen.push(run);
    return new Promise<string | null>((resolve, reject) => {
      done = resolve;
      signal.addEventListener('abort', () => reject(signal.reason));
    });
  };
  const first = await ProcessRunner.open({ stateDir, keep });
  const job = { ...script('kept', 'echo result > a'), outputs: [{ path: 'a', dataset: null }] };
  first.start(job);
  await until(() => seen.length === 1, 'the outputs to be kept');
  expect(seen[0]).toMatchObject({ jobId: 'kept', epoch: 1, task: 0, outputs: job.outputs, well: true });
  expect(readFileSync(join(seen[0]!.directory, 'a'), 'utf8')).toBe('result\n');
  expect(endOf(first, 'kept')).toBeUndefined();
  first.close();
  const second = await openRunner({ stateDir, keep });
  await until(() => seen.length === 2, 'the next agent to keep them');
  expect(seen[1]).toEqual(seen[0]);
  expect(readFileSync(join(seen[1]!.directory, 'a'), 'utf8')).toBe('result\n');
  done(null);
  await until(() => endOf(second, 'kept') !== undefined, 'the end');
  expect(endOf(second, 'kept')).toMatchObject({ cause: 'EXITED_ZERO', exitCode: 0, message: null });
  await until(() => !existsSync(join(seen[1]!.directory, 'a')), 'the directory to be cleared');
});

it('what could not be kept is the cause of the end, and stays for a while', async () => {
  const stateDir = temporaryDirectory();
  const problem = async (): Promise<string> => 'a: no such file';
  const runner = await openRunner({ stateDir, keep: problem, leftBehindMs: 60_000 });
  const outputs = [{ path: 'a', dataset: null }];
  expect(await complete(runner, { ...script('well', 'echo x > b'), outputs })).toMatchObject({
    ...{ cause: 'OUTPUTS_FAILED', exitCode: 0 },
    message: 'outputs not saved: a: no such file; its directory stays at the site for a while',
  });
  expect(readFileSync(join(stateDir, 'left', 'well.1', 'b'), 'utf8')).toBe('x\n');
  expect(statSync(join(stateDir, 'left')).mode & 0o077).toBe(0);
  expect(await complete(runner, { ...script('badly', 'exit 3'), outputs })).toMatchObject({
    ...{ cause: 'EXITED_NONZERO', exitCode: 3, message: expect.stringMatching(/^outputs not saved/) },
  });
  // The directory that the job was given is its user's.
  const workingDirectory = temporaryDirectory();
  const given = await complete(runner, { ...script('given', 'echo x > b'), outputs, workingDirectory });
  expect(given.message).toBe('outputs not saved: a: no such file');
  expect(existsSync(join(workingDirectory, 'b'))).toBe(true);
});

it('nothing is kept of a run that is cancelled, before or meanwhile, or that never began', async () => {
  const asked: string[] = [];
  const keep = ({ jobId }: EndedRun, signal: AbortSignal) => {
    asked.push(jobId);
    return new Promise<null>((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
  };
  const runner = await openRunner({ keep });
  const outputs = [{ path: 'a', dataset: null }];
  runner.start({ ...script('meanwhile', 'true'), outputs });
  await until(() => asked.length === 1, 'the outputs to be kept');
  runner.cancel({ jobId: 'meanwhile', epoch: 1 });
  runner.start({ ...script('before', 'sleep 1000'), outputs });
  runner.cancel({ jobId: 'before', epoch: 1 }, 0);
  runner.start({ ...assignment('never', 'no-such-command'), outputs });
  await until(() => ['meanwhile', 'before', 'never'].every((id) => endOf(runner, id)), 'the ends');
  expect(endOf(runner, 'meanwhile')).toMatchObject({
    cause: 'CANCELLED_BY_USER',
    message: 'canceled while its outputs were being saved',
  });
  expect(endOf(runner, 'before')).toMatchObject({ cause: 'CANCELLED_BY_USER' });
  expect(endOf(runner, 'never')).toMatchObject({ cause: 'LAUNCH_FAILED' });
  expect(asked).toEqual(['meanwhile']);
});
