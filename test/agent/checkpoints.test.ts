/** Checkpoints that runs report, and directories that are kept as one file. */
import { execFileSync } from 'node:child_process';
import {
  appendFileSync,
  mkdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { open, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { isPacked, type Packed, packed, unpack } from '../../src/agent/files/archive.js';
import { REPORT_FILE, reportedCheckpoint } from '../../src/agent/files/checkpoint.js';
import { chunksOf } from '../../src/agent/files/handover.js';
import { OutputKeeper } from '../../src/agent/files/keeper.js';
import { MAX } from '../../src/platform/limits.js';
import { temporaryDirectory } from './support.js';

const never = new AbortController().signal;

/** What is in these files, as one file. */
async function archive(files: Record<string, string>, change: (one: Packed) => Packed = (one) => one) {
  const base = temporaryDirectory();
  const all = Object.entries(files).map(([name, text], i): Packed => {
    const path = join(base, `file${i}`);
    writeFileSync(path, text);
    return change({
      ...{ name, bytes: Buffer.byteLength(text), executable: name.endsWith('.sh'), open: () => open(path) },
    });
  });
  const to = join(base, 'packed');
  const file = packed(all);
  const chunks: Buffer[] = [];
  try {
    for await (const chunk of chunksOf(file, never)) chunks.push(Buffer.from(chunk));
  } finally {
    await file.close();
  }
  await writeFile(to, Buffer.concat(chunks));
  return to;
}

describe('a directory as one file', () => {
  const long = `${'d'.repeat(200)}/${'é'.repeat(100)}/x`;
  const files = {
    'a.txt': 'a',
    empty: '',
    'run.sh': '#!/bin/sh\n',
    [long]: 'deep',
    'sub/block': 'b'.repeat(512),
    'sub/large': 'l'.repeat(3_000_001),
  };

  it('becomes the same directory again', async () => {
    const path = await archive(files);
    expect(await isPacked(path)).toBe(true);
    const directory = join(dirname(path), 'again');
    await unpack(path, directory);
    for (const [name, text] of Object.entries(files))
      expect(readFileSync(join(directory, name), 'utf8') === text).toBe(true);
    expect(statSync(join(directory, 'run.sh')).mode & 0o777).toBe(0o755);
    expect(statSync(join(directory, 'sub/block')).mode & 0o777).toBe(0o644);
  });

  it('is a tar for everybody else, and no tar of a job is taken for one', async () => {
    const path = await archive(files);
    const names = execFileSync('tar', ['-tf', path, '--quoting-style=literal'], { encoding: 'utf8' });
    expect(names.trim().split('\n').sort()).toEqual(Object.keys(files).sort());
    const own = join(dirname(path), 'own.tar');
    execFileSync('tar', ['-cf', own, '-C', dirname(path), 'file0']);
    expect(await isPacked(own)).toBe(false);
    const short = join(dirname(path), 'short');
    writeFileSync(short, 'x');
    expect(await isPacked(short)).toBe(false);
  });

  it('is refused where it is cut short or leads elsewhere', async () => {
    const path = await archive(files);
    const cut = join(dirname(path), 'cut');
    writeFileSync(cut, readFileSync(path).subarray(0, 1_000_000));
    await expect(unpack(cut, join(dirname(path), 'c'))).rejects.toThrow('cut short');
    for (const name of ['../out', '/tmp/out', 'a/../../out']) {
      const hostile = await archive({ x: 'x' }, (one) => ({ ...one, name }));
      await expect(unpack(hostile, join(dirname(hostile), 'c'))).rejects.toThrow('accepted:');
    }
    const many = await archive(
      Object.fromEntries(Array.from({ length: MAX.jobFiles + 1 }, (_, i) => [`f${i}`, ''])),
    );
    await expect(unpack(many, join(dirname(many), 'c'))).rejects.toThrow('more than 1000 files');
  });

  it('is not kept if a file became shorter meanwhile', async () => {
    await expect(archive({ x: 'x' }, (one) => ({ ...one, bytes: 2 }))).rejects.toThrow('became shorter');
  });
});

describe('a report', () => {
  function place() {
    const base = temporaryDirectory();
    const [directory, reports] = [join(base, 'work'), join(base, 'notes')];
    for (const one of [directory, reports]) mkdirSync(one);
    const say = (text: string) => appendFileSync(join(reports, REPORT_FILE), text);
    const last = async () => (await reportedCheckpoint({ directory, uid: null }, reports))?.path ?? null;
    return { directory, reports, say, last };
  }

  it('names the last checkpoint, once its line is complete', async () => {
    const { directory, reports, say, last } = place();
    expect(await last()).toBe(null);
    say('step-1');
    expect(await last()).toBe(null);
    say('\n');
    expect(await last()).toBe('step-1');
    say('./deep/step-2/\nstep');
    expect(await last()).toBe('deep/step-2');
    say(`-3\n${directory}/step-4\n`);
    expect(await last()).toBe('step-4');
    utimesSync(join(reports, REPORT_FILE), 100, 100);
    expect(await reportedCheckpoint({ directory, uid: null }, reports)).toEqual({
      path: 'step-4',
      atMs: 100_000,
    });
  });

  it('that leads elsewhere is none, and the one before it stands', async () => {
    const { say, last } = place();
    say('good\n../out\n/etc/passwd\n\n*\na\u0000b\n');
    expect(await last()).toBe('good');
  });

  it('may be long: its end is read', async () => {
    const { say, last } = place();
    for (let i = 0; i < 2000; i++) say(`step-${i}\n`);
    expect(await last()).toBe('step-1999');
    say(`${'x'.repeat(100_000)}\n`);
    expect(await last()).toBe(null);
  });

  it('is not read through a link, nor of runs of earlier releases', async () => {
    const { directory, reports } = place();
    writeFileSync(join(directory, 'secret'), 'step-1\n');
    symlinkSync(join(directory, 'secret'), join(reports, REPORT_FILE));
    expect(await reportedCheckpoint({ directory, uid: null }, reports)).toBe(null);
    expect(await reportedCheckpoint({ directory, uid: null }, undefined)).toBe(null);
  });
});

describe('of a run that has ended', () => {
  /** What is handed over, by path, as text. */
  async function kept(make: (directory: string, say: (text: string) => void) => void) {
    const base = temporaryDirectory();
    const [directory, reports] = [join(base, 'work'), join(base, 'notes')];
    for (const one of [directory, reports]) mkdirSync(one);
    make(directory, (text) => appendFileSync(join(reports, REPORT_FILE), text));
    const bodies = new Map<string, Buffer>();
    let paths: string[] = [];
    const client = {
      request: async (_: unknown, { files }: { files: { path: string }[] }) => {
        paths = files.map(({ path }) => path);
        return { keepFiles: paths.map((id) => ({ id, receivedBytes: 0 })) };
      },
      put: async (address: string, body: Buffer) => {
        bodies.set(decodeURIComponent(/^\/files\/([^?]*)/.exec(address)?.[1] as string), body);
        return { receivedBytes: body.length, kept: true };
      },
    };
    const keeper = new OutputKeeper({
      ...{ client: client as never, datasetsDir: join(base, 'datasets'), datasetsBytes: null },
    });
    keeper.serve({ site: 's', agent: () => 'a' });
    const problem = await keeper.keep(
      {
        ...{ jobId: 'job_1', epoch: 1, task: 0, uid: null, directory, reports, well: false },
        outputs: [
          { path: '*', dataset: null },
          { path: 'state', dataset: null, checkpoint: true },
        ],
      },
      never,
    );
    return { problem, bodies, base };
  }

  it('the reported file is kept under the name of the checkpoint', async () => {
    const { problem, bodies } = await kept((directory, say) => {
      for (const name of ['state', 'step-1', 'step-2']) writeFileSync(join(directory, name), name);
      say('step-1\n');
    });
    expect(problem).toBe(null);
    expect(String(bodies.get('state'))).toBe('step-1');
    expect(String(bodies.get('step-2'))).toBe('step-2');
  });

  it('the reported directory is, and nothing where it is gone', async () => {
    const { bodies, base } = await kept((directory, say) => {
      mkdirSync(join(directory, 'step-1', 'sub'), { recursive: true });
      writeFileSync(join(directory, 'step-1', 'sub', 'n'), '7');
      say('step-1\n');
    });
    writeFileSync(join(base, 'packed'), bodies.get('state') as Buffer);
    await unpack(join(base, 'packed'), join(base, 'again'));
    expect(readFileSync(join(base, 'again', 'sub', 'n'), 'utf8')).toBe('7');
    const gone = await kept((directory, say) => {
      writeFileSync(join(directory, 'state'), 'half');
      say('step-1\n');
    });
    expect(gone.problem).toContain('checkpoint: step-1: no such file');
    expect(gone.bodies.has('state')).toBe(false);
  });

  it('half a directory is no checkpoint', async () => {
    const { problem, bodies } = await kept((directory) => {
      mkdirSync(join(directory, 'state'));
      for (let i = 0; i <= MAX.jobFiles; i++) writeFileSync(join(directory, 'state', String(i)), '');
    });
    expect(problem).toContain('checkpoint: state: more than 1000 files');
    expect(bodies.has('state')).toBe(false);
  });
});
