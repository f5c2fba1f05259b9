/** A service that is ended or killed, and started again in its home. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { endAll, launch, run, type Service, serve, until } from './service.js';

interface Job {
  id: string;
  state: string;
  arrayIndex: number;
}

const home = mkdtempSync(join(tmpdir(), 'switchyard-restart-'));
const keyFile = join(home, 'admin.key');
let service: Service;

beforeAll(async () => {
  service = await serve(home);
});
afterAll(async () => {
  await endAll();
  rmSync(home, { recursive: true, force: true });
});

describe('a restart', () => {
  it('keeps everything, jobs that run among it', async () => {
    const before = await service.json<Job[]>('jobs', '--all');
    const key = readFileSync(keyFile, 'utf8');
    const [long] = await service.json<Job[]>('submit', '--', 'sh', '-c', 'sleep 3; echo survived');
    await until(
      () => service.json<Job>('job', long!.id),
      ({ state }) => state === 'RUNNING',
    );
    const { code, stderr } = await service.process.end('SIGINT');
    expect(code, stderr).toBe(0);

    service = await serve(home);
    expect(readFileSync(keyFile, 'utf8')).toBe(key);
    const after = await service.json<Job[]>('jobs', '--all');
    expect(after.slice(1).map(({ id, state }) => [id, state])).toEqual(
      before.map(({ id, state }) => [id, state]),
    );
    expect((await service.cli('watch', long!.id)).code).toBe(0);
    expect(await service.json<Job>('job', long!.id)).toMatchObject({ state: 'COMPLETED', epoch: 1 });
    expect((await service.cli('job', '--stdout', long!.id)).stdout).toBe('survived\n');
  });

  it('is bridged by a watch: every update once, in order', async () => {
    const { port } = new URL(service.url);
    const watch = launch(['watch', '--json', '--recent', '0', '--group', 'bridge'], {
      SWITCHYARD_URL: service.url,
      SWITCHYARD_HOME: home,
    });
    const submit = () => service.json<Job[]>('submit', '--group', 'bridge', '--', 'true');
    await until(submit, () => watch.output.stdout.includes('COMPLETED'));
    await service.process.end('SIGKILL');
    service = await serve(home, [], port);
    const [last] = await submit();
    // The event's own state: the job's is what it is by now, which may be ahead of the events.
    await watch.printed(new RegExp(`"toState":"COMPLETED"[^\\n]*"job":{"id":"${last!.id}"`));

    const updates = (await watch.end('SIGINT')).stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    const cursors = updates.map(({ cursor }) => Number(cursor));
    expect(cursors).toEqual([...new Set(cursors)].sort((a, b) => a - b));
    const sequences = new Map<string, number[]>();
    for (const { event, job } of updates)
      sequences.set(job.id, [...(sequences.get(job.id) ?? []), event.sequence]);
    for (const seen of sequences.values()) expect(seen).toEqual(seen.map((_, i) => seen[0]! + i));
    expect(sequences.get(last!.id)).toEqual([1, 2, 3, 4, 5]);
  });

  it('after kill -9 goes on as if nothing had happened', async () => {
    const jobs = await service.json<Job[]>(
      'submit',
      '--array',
      '1-8',
      '--group',
      'killed',
      '--',
      'sh',
      '-c',
      'sleep 0.3; echo $SWITCHYARD_ARRAY_INDEX',
    );
    await until(
      () => service.json<Job[]>('jobs', '--group', 'killed', '--state', 'COMPLETED'),
      (done) => done.length > 2,
    );
    await service.process.end('SIGKILL');

    service = await serve(home);
    expect((await service.cli('watch', ...jobs.map(({ id }) => id))).code).toBe(0);
    for (const job of await service.json<Job[]>('jobs', '--group', 'killed', '--all')) {
      expect(job).toMatchObject({ state: 'COMPLETED', epoch: 1, exitCode: 0 });
      expect((await service.cli('job', '--stdout', job.id)).stdout).toBe(`${job.arrayIndex}\n`);
    }
  });

  it('makes a new key when the old one’s file is lost, and the old one is refused', async () => {
    const lost = readFileSync(keyFile, 'utf8').trim();
    await service.process.end('SIGTERM');
    rmSync(keyFile);
    service = await serve(home);
    expect(readFileSync(keyFile, 'utf8').trim()).not.toBe(lost);
    expect((await service.cli('jobs')).code).toBe(0);
    expect((await run(['jobs'], { SWITCHYARD_URL: service.url, SWITCHYARD_KEY: lost })).code).toBe(4);
  });
});
