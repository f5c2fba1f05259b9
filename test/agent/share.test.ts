/** Inputs and outputs on a file system that hangs: whoever waits for it, the rest of the agent goes on. */
import { execFileSync } from 'node:child_process';
import { lookup } from 'node:dns/promises';
import { closeSync, constants, existsSync, mkdirSync, openSync, writeFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it, onTestFinished } from 'vitest';
import * as share from '../../src/agent/files/share.js';
import { OutputKeeper } from '../../src/agent/index.js';
import { DataCache } from '../../src/agent/staging/cache.js';
import { hang, hangLacks } from '../support/hang.js';
import { PATIENCE_MS } from '../support/patience.js';
import { temporaryDirectory } from './support.js';

const cannotHang = hangLacks();
if (cannotHang !== null) console.warn(`test/agent/share lacks a file system that hangs: ${cannotHang}`);

/** What Node's threads do for the rest of the agent. */
async function works(): Promise<void> {
  await lookup('localhost');
  await readFile('/proc/self/stat');
}

it('waits for many answers that do not come, and leaves threads to everybody else', async () => {
  const pipe = join(temporaryDirectory(), 'pipe');
  execFileSync('mkfifo', [pipe]);
  // Whoever opens it waits until somebody writes.
  const opened = Array.from({ length: 20 }, () => share.open(pipe, 'r'));
  await works();
  const writer = openSync(pipe, constants.O_RDWR | constants.O_NONBLOCK);
  onTestFinished(() => closeSync(writer));
  for (const file of await Promise.all(opened)) await file.close();
});

it.skipIf(cannotHang !== null)(
  'brings inputs and keeps outputs where the directories hang: contact is kept, and all goes on when they answer',
  { timeout: 2 * PATIENCE_MS },
  async () => {
    const dir = temporaryDirectory();
    for (const name of ['source', 'cache', 'runs/work', 'datasets'])
      mkdirSync(join(dir, name), { recursive: true });
    writeFileSync(join(dir, 'source', 'data'), 'x'.repeat(1_000));
    writeFileSync(join(dir, 'runs', 'work', 'result'), 'result');
    const client = {
      request: async () => {
        throw new Error('nobody is asked');
      },
      put: async () => {
        throw new Error('nobody is asked');
      },
    };
    const keeper = new OutputKeeper({ client, datasetsDir: join(dir, 'datasets'), datasetsBytes: null });
    keeper.serve({ site: 'site_1', agent: () => 'agent_1' });
    const cache = new DataCache({
      ...{ dir: join(dir, 'cache'), site: 'alps', maxBytes: 1e9, command: null, rateMbPerS: null },
      ...{ attempts: 1, retryMs: 1 },
    });
    const keep = (epoch: number): Promise<string | null> =>
      keeper.keep(
        {
          ...{ jobId: 'job_1', epoch, task: 0, uid: null, directory: join(dir, 'runs', 'work'), well: true },
          outputs: [{ path: 'missing', dataset: null }],
        },
        new AbortController().signal,
      );
    const stage = (dataset: string): Promise<string> => {
      const source = { site: 'other', location: `file://${join(dir, 'source', 'data')}` };
      const input = { place: 1, dataset, name: dataset, sizeMb: 0.001, sha256: null, sources: [source] };
      return cache.stage(input, 'job_1.1', new AbortController().signal).then(
        ({ path }) => path,
        (error: Error) => error.message,
      );
    };
    const answers = [await hang(join(dir, 'runs')), await hang(join(dir, 'cache'))];
    const all = [
      ...Array.from({ length: 8 }, (_, i) => keep(i + 1)),
      ...Array.from({ length: 8 }, (_, i) => stage(`d${i}`)),
    ];
    let isOver = false;
    void Promise.allSettled(all).then(() => {
      isOver = true;
    });
    for (let looks = 0; looks < 20; looks++) {
      await works();
      await sleep(50);
    }
    expect(isOver).toBe(false);
    for (const answer of answers) await answer();
    // What was asked meanwhile has failed, as on a file system that gives up by itself; what waited for its turn goes on.
    const done = await Promise.all(all);
    expect(done.slice(0, 8).at(-1)).toBe('missing: no such file');
    const last = done.at(-1) as string;
    expect(last.startsWith(join(dir, 'cache')) && existsSync(last)).toBe(true);
  },
);
