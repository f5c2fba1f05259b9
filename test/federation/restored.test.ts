/**
 * Yesterday's database is restored at one of two peers while the other lives on: what the other still has of the days that were lost is not taken
 * for the jobs that get the same numbers now, and no job waits for a run that is long over.
 */
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { RandomStream } from '../../src/core/index.js';
import { withDatabase } from '../support/database.js';
import { checkPromises } from '../support/promises.js';
import { SEED } from '../support/seed.js';
import { federate, Link, Service } from './world.js';

const databases = withDatabase();

async function open(folder: string): Promise<[owner: Service, guest: Service]> {
  const ledger = join(folder, 'ledger');
  const random = new RandomStream(SEED, 'restored');
  const urls = [(await databases.another()).url, (await databases.another()).url] as const;
  const [owner, guest] = await Promise.all([
    Service.start('a', urls[0], ledger),
    Service.start('b', urls[1], ledger),
  ]);
  const links = [await Link.to(owner.port, random), await Link.to(guest.port, random)] as const;
  onTestFinished(async () => {
    await Promise.all([owner.close(), guest.close()]);
    for (const link of links) link.close();
    rmSync(folder, { recursive: true, force: true });
  });
  await federate(owner, guest, { toA: links[0].url, toB: links[1].url });
  return [owner, guest];
}

test.each(['owner', 'guest'] as const)('the %s of the jobs is restored', async (which) => {
  const folder = mkdtempSync(join(tmpdir(), 'switchyard-restored-'));
  const [owner, guest] = await open(folder);
  const restored = which === 'owner' ? owner : guest;

  const ledger = (): string[] =>
    existsSync(join(folder, 'ledger')) ? readFileSync(join(folder, 'ledger'), 'utf8').trim().split('\n') : [];
  const times = (line: string): number => ledger().filter((one) => one === line).length;
  const written = (...lines: string[]) => owner.until(async () => lines.every((line) => times(line) > 0));
  const goOn = (...names: string[]): void => {
    for (const name of names) writeFileSync(join(folder, name), '');
  };
  /** Runs at the guest only: says that it begins, waits until it may go on, and says that it ends. */
  const submit = async (name: string, cpusPerTask = 1): Promise<string> => {
    const script = `echo "${name} begins" >> "$FOLDER/ledger"; until [ -e "$FOLDER/${name}" ]; do sleep 0.1; done; echo "${name} ends" >> "$FOLDER/ledger"`;
    const job = {
      ...{ command: 'sh', arguments: ['-c', script], environment: [{ name: 'FOLDER', value: folder }] },
      ...{ os: guest.name, estimateS: 1, cpusPerTask, restartable: true },
    };
    const { submitJobs } = await owner.ask<{ submitJobs: { jobIds: [string] } }>(
      'mutation ($input: SubmitJobsInput!) { submitJobs(input: $input) { jobIds } }',
      { input: { jobs: [job], idempotencyKey: name, allowUnfit: true } },
    );
    return submitJobs.jobIds[0];
  };
  const toldAll = (copies: number) => owner.until(async () => (await guest.copies()) === copies);

  // Of 8 CPUs: the third waits there until the second has ended.
  const before = [await submit('goes on'), await submit('ends', 4), await submit('waits', 5)];
  await written('goes on begins', 'ends begins');
  await toldAll(3);
  await restored.copyDatabase(restored.database, `${restored.database}_backup`);

  // The days that will be lost.
  goOn('ends', 'waits');
  await owner.ended(before.slice(1));
  await toldAll(1);
  const lost = await submit('lost');
  await written('lost begins');
  await restored.copyDatabase(`${restored.database}_backup`, restored.database);
  rmSync(join(folder, 'waits'));

  if (which === 'owner') {
    const now = [await submit('new'), await submit('new too')];
    expect(now[0]).toBe(lost);
    // It ends, or is stopped if the guest hears first that its number is another job's now.
    goOn('lost');
    await written('new begins', 'new too begins');
    goOn('goes on', 'waits');
    // What was given back rests for a minute before it is offered there again.
    await owner.until(async () => {
      await owner.pool.query('UPDATE offers SET again_at = now()');
      return times('waits ends') === 2;
    });
    await owner.ended(before);
    const jobs = await owner.jobs();
    expect(now.map((id) => jobs.get(id)?.state)).toEqual(['RUNNING', 'RUNNING']);
    goOn('new', 'new too');
    await owner.ended(now);
    expect(times('lost begins')).toBe(1);
    expect(times('goes on begins')).toBe(1);
    expect(times('ends ends')).toBe(2);
    for (const name of ['new', 'new too']) expect([name, times(`${name} ends`)]).toEqual([name, 1]);
  } else {
    // Its agent stops what the database does not know; the owner hears of it, and the job runs again.
    goOn('goes on', 'waits');
    await owner.until(async () => {
      await owner.pool.query('UPDATE offers SET again_at = now()');
      return times('lost begins') === 2;
    });
    goOn('lost');
    await owner.ended([...before, lost]);
    expect(times('goes on ends')).toBe(1);
    expect(times('lost ends')).toBe(1);
  }
  for (const { state, cause } of (await owner.jobs()).values())
    expect({ state, cause }).toEqual({ state: 'COMPLETED', cause: 'EXITED_ZERO' });
  await toldAll(0);
  for (const { pool } of [owner, guest]) expect(await checkPromises(pool)).toEqual([]);
});
