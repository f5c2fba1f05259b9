/** The database's disk is full: who asks is told to try again, nothing is lost, and all goes on by itself as soon as there is room. */
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, expect, test } from 'vitest';
import { PATIENCE_MS } from '../support/patience.js';
import { checkPromises } from '../support/promises.js';
import { fill, makeRoom, mayMount, smallDisk } from '../support/small-disk.js';
import { Installation } from './installation.js';

/** The server with its databases takes some 100 MB of it. */
const DISK_MB = 400;
const JOBS = 100;
/** Submissions that have to be refused before there is room again. */
const REFUSED = 5;

let installation: Installation | null = null;
afterEach(async () => {
  await installation?.close();
  installation = null;
});

interface Answer {
  data?: { submitJobs: { jobIds: string[] } } | null;
  errors?: { message: string; extensions: { code: string } }[];
}

// Only root may mount a file system; to fill the one that everybody uses would be an attack on everybody.
test.skipIf(!mayMount)(
  "Postgres's disk is full, then there is room again",
  { timeout: 4 * PATIENCE_MS },
  async () => {
    const disk = smallDisk(DISK_MB);
    const service = await Installation.open(null, { home: join(disk, 'postgres') });
    installation = service;
    const ask = async (query: string, variables: object): Promise<Answer> => {
      const response = await fetch(service.url, {
        method: 'POST',
        headers: { 'content-type': 'application/json', authorization: `Bearer ${service.key}` },
        body: JSON.stringify({ query, variables }),
        signal: AbortSignal.timeout(PATIENCE_MS),
      });
      return (await response.json()) as Answer;
    };
    const submission = (number: number) => ({
      idempotencyKey: `submission ${number}`,
      jobs: Array.from({ length: JOBS }, () => ({ command: 'pass', os: 'simulated', estimateS: 1 })),
    });
    const submit = (number: number): Promise<Answer> =>
      ask('mutation ($input: SubmitJobsInput!) { submitJobs(input: $input) { jobIds } }', {
        input: submission(number),
      });
    const accepted = new Map<number, string[]>();
    const codes = new Map<string, number>();
    /** Whether it was accepted. */
    const note = (number: number, { data, errors }: Answer): boolean => {
      for (const { message, extensions } of errors ?? []) {
        const told = extensions.code === 'UNAVAILABLE' ? extensions.code : `${extensions.code}: ${message}`;
        codes.set(told, (codes.get(told) ?? 0) + 1);
      }
      if (data?.submitJobs) accepted.set(number, data.submitJobs.jobIds);
      return Boolean(data?.submitJobs);
    };
    const until = async (what: string, done: () => Promise<boolean>): Promise<void> => {
      for (const end = Date.now() + PATIENCE_MS; !(await done()); await sleep(50))
        if (Date.now() > end) throw new Error(`${what}\n${service.logs}`);
    };
    await until('the service is not there', () =>
      submit(0).then(
        (answer) => note(0, answer),
        () => false,
      ),
    );
    codes.clear();

    fill(disk);
    let number = 1;
    let refused = 0;
    await until('the disk does not fill up', async () => {
      if (!note(number, await submit(number))) refused++;
      const read = await ask('{ jobs(first: 10) { nodes { id state } } }', {});
      note(-1, { errors: read.errors ?? [] });
      number++;
      return refused >= REFUSED;
    });
    makeRoom(disk);

    // The same submissions again: what was accepted is not made twice, what was refused is made now.
    const starts = new Map(service.starts);
    for (let i = 0; i < number; i++) {
      const before = accepted.get(i);
      await until(`submission ${i} is not taken`, async () => note(i, await submit(i)));
      if (before) expect(accepted.get(i)).toEqual(before);
    }
    expect([...codes.keys()]).toEqual(['UNAVAILABLE']);
    const count = async (where: string) =>
      Number((await service.rows<{ n: string }>(`SELECT count(*) AS n FROM jobs WHERE ${where}`))[0]?.n);
    await until('jobs do not end', async () => (await count('ended_at IS NULL')) === 0);
    expect(await count('true')).toBe(number * JOBS);
    expect(await count("state = 'COMPLETED'")).toBe(number * JOBS);
    expect(await checkPromises(service.database.pool)).toEqual([]);
    // No process had to be started anew.
    expect(new Map(service.starts)).toEqual(starts);
    expect([...service.starts.values()]).toEqual([...service.starts.values()].map(() => 1));
  },
);
