/**
 * Scheduling by data and by users' shares as a whole: the service as a process, simulated agents as processes, everything
 * through the command line.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { DEFAULT_POLICY } from '../../src/core/policy.js';
import { endAll, launch, type Service, serve, until } from './service.js';

const home = mkdtempSync(join(tmpdir(), 'switchyard-data-'));
let service: Service;

interface Job {
  id: string;
  state: string;
  name: string | null;
  migratedAt: string | null;
  site: { name: string } | null;
  user: { name: string };
}

/** A site with one simulated machine, and its agent. */
async function site(name: string, cpus: number, benchmark: number): Promise<void> {
  const ran = async (...args: string[]): Promise<string> => {
    const { code, stdout, stderr } = await service.cli(...args);
    expect({ args, code, stderr: code === 0 ? '' : stderr }).toEqual({ args, code: 0, stderr: '' });
    return stdout;
  };
  await ran('sites', 'add', name);
  await ran(
    'machines',
    'add',
    name,
    'm',
    '--cpus',
    String(cpus),
    '--memory-mb',
    '1000',
    '--benchmark',
    String(benchmark),
  );
  await ran('users', 'add', `agent-${name}`, '--role', 'AGENT');
  const { secret } = await service.json<{ secret: string }>(
    'keys',
    'add',
    'k',
    '--user',
    `agent-${name}`,
    '--site',
    name,
  );
  launch(['agent', '--simulate', '--site', name], { SWITCHYARD_URL: service.url, SWITCHYARD_KEY: secret });
  type Machine = { silent: boolean; site: { name: string } };
  await until(
    () => service.json<Machine[]>('machines'),
    (machines) => machines.some((one) => one.site.name === name && !one.silent),
  );
}

async function policy(document: object): Promise<void> {
  const file = join(home, 'policy.json');
  writeFileSync(file, JSON.stringify({ ...DEFAULT_POLICY, local: { kind: 'fcfs' }, ...document }));
  const { code, stderr } = await service.cli('policy', 'set', file, '--reason', 'the test');
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
}

beforeAll(async () => {
  service = await serve(home);
});
afterAll(async () => {
  await endAll();
  rmSync(home, { recursive: true, force: true });
});

describe('job ratio', () => {
  /** Runs a job that reads the dataset, to its end; answers with the site that it ran at. */
  async function ranAt(application: string, runS: number, ioS: number): Promise<string> {
    const [job] = await service.json<Job[]>(
      ...['submit', '--wait', '--application', application, '--input', 'events', '--estimate', String(runS)],
      ...['--simulated-run', String(runS), '--simulated-io', String(ioS), '--', 'none'],
    );
    expect(job!.state).toBe('COMPLETED');
    return job!.site!.name;
  }

  it('data-intensive jobs follow the data and compute jobs the power, as history is learned', async () => {
    // This machine's own site is not part of it.
    expect((await service.cli('drain', 'local')).code).toBe(0);
    await site('near', 2, 100);
    await site('fast', 2, 400);
    for (const args of [
      ['data', 'add', 'events', '--size-mb', '10000', '--replica', 'near'],
      ['links', 'set', 'near', 'fast', '--bandwidth', '10', '--rtt', '0.05'],
    ])
      expect((await service.cli(...args)).code).toBe(0);
    await policy({ dispatch: { kind: 'job-ratio', queueLimit: 10 } });

    const watched = launch(['ratio', 'solve', '--watch', '--json'], {
      SWITCHYARD_URL: service.url,
      SWITCHYARD_HOME: home,
    });
    // Nothing is known of either: half and half, and the data weigh more than the power.
    expect((await service.json<{ source: string }>('ratio', 'solve')).source).toBe('UNKNOWN');
    expect(await ranAt('scan', 1, 0.95)).toBe('near');
    // Nor of this one but that similar jobs wait for data.
    expect((await service.json<{ source: string }>('ratio', 'solve')).source).toBe('USER');
    expect(await ranAt('solve', 1, 0.01)).toBe('near');

    // What was learned is told, and moves the next jobs.
    const [line] = await watched.printed(/.*"application":"solve".*\n/);
    const { point } = JSON.parse(line) as {
      point: { runs: number; computation: number; site: { name: string } };
    };
    expect(point).toMatchObject({ runs: 1, site: { name: 'near' } });
    expect(point.computation).toBeGreaterThan(0.9);
    expect(await ranAt('solve', 1, 0.01)).toBe('fast');
    expect(await ranAt('scan', 1, 0.95)).toBe('near');

    const scan = await service.json<{ runs: number; computation: number; source: string }>('ratio', 'scan');
    expect(scan).toMatchObject({ runs: 2, source: 'APPLICATION' });
    // 0.05, and what a busy machine was late.
    expect(scan.computation).toBeLessThan(0.5);
    const [last] = await service.json<Job[]>('jobs', '--application', 'solve', '--first', '1');
    const why = await service.cli('why', last!.id);
    expect(why.stdout).toMatch(/RANK +SITE +RANK +PPR +DPR +QR +DATAACCESSCOST/);
    expect(why.stdout).toMatch(/the job: computation = 0\.9\d+, dataIntensive = /);
    const placed = await service.cli('placement', '--input', 'events', '--application', 'scan', '--', 'none');
    expect(placed.stdout).toMatch(/^would be dispatched to near;/);
  });
});

describe('what agents measure of real processes', () => {
  it('never takes idle time for input and output: a run that sleeps computes, or nothing is said of it', async () => {
    for (const name of ['near', 'fast']) expect((await service.cli('drain', name)).code).toBe(0);
    expect((await service.cli('undrain', 'local')).code).toBe(0);
    const job = await service.cli('submit', '--wait', '--application', 'waits', '--', 'sleep', '0.5');
    expect(job.code).toBe(0);
    type Ratio = {
      source: string;
      runs: number;
      computation: number;
      history: { nodes: { ioS: number | null }[] };
    };
    const { source, runs, computation, history } = await service.json<Ratio>('ratio', 'waits');
    expect(history.nodes).toHaveLength(1);
    const ioS = history.nodes[0]?.ioS ?? null;
    // As the kernel accounts for block I/O or not.
    if (ioS === null) expect(source).not.toBe('APPLICATION');
    else expect([runs, computation > 0.8]).toEqual([1, true]);
  });
});

describe('DIANA', () => {
  it('a congested site exports the groups of its lowest queue, and no others', async () => {
    await site('here', 1, 100);
    await site('there', 1, 100);
    for (const name of ['local', 'there']) expect((await service.cli('drain', name)).code).toBe(0);
    await policy({
      timers: { ...DEFAULT_POLICY.timers, cycleS: 1 },
      dispatch: {
        kind: 'diana',
        queueLimit: 1,
        congestionThreshold: 0.2,
        congestionWindowS: 60,
        holdOffS: 3600,
      },
    });
    // One with nearly all of the quota and few jobs, one with little of it and many.
    for (const [name, share] of [
      ['entitled', '1000'],
      ['greedy', '1'],
    ] as const)
      expect((await service.cli('users', 'add', name, '--share', share)).code).toBe(0);
    const submitAs = async (name: string, jobs: number): Promise<void> => {
      const { secret } = await service.json<{ secret: string }>('keys', 'add', 'k', '--user', name);
      const as = launch(
        ['submit', '--array', `1-${jobs}`, '--name', name, '--estimate', '300', '--', 'none'],
        { SWITCHYARD_URL: service.url, SWITCHYARD_KEY: secret },
      );
      await as.printed(/job_/);
    };
    await submitAs('greedy', 12);
    await submitAs('entitled', 3);
    const jobs = (): Promise<Job[]> => service.json<Job[]>('jobs', '--since', '2020-01-01', '--all');
    const waiting = (all: Job[], name: string): Job[] =>
      all.filter((job) => job.name === name && job.state === 'QUEUED' && job.site?.name === 'here');
    await until(jobs, (all) => waiting(all, 'greedy').length >= 10 && waiting(all, 'entitled').length >= 2);

    type Standing = { user: { name: string }; groups: { priority: number; queue: number }[] };
    const standings = await service.json<Standing[]>('standings');
    const queueOf = (name: string) => standings.find(({ user }) => user.name === name)?.groups[0]?.queue;
    expect(queueOf('entitled')).toBe(1);
    expect(queueOf('greedy')).toBe(4);
    type Peer = { site: { name: string }; congested: boolean };
    const peers = await service.json<Peer[]>('congestion');
    expect(peers.find((peer) => peer.site.name === 'here')?.congested).toBe(true);

    expect((await service.cli('undrain', 'there')).code).toBe(0);
    const after = await until(jobs, (all) => all.some((job) => job.migratedAt !== null));
    const migrated = after.filter((job) => job.migratedAt !== null);
    // With the greedy's gone the others are those of the lowest queue.
    const first = migrated.map(({ migratedAt }) => migratedAt as string).sort()[0];
    const names = migrated.filter(({ migratedAt }) => migratedAt === first).map(({ name }) => name);
    expect(new Set(names)).toEqual(new Set(['greedy']));
    expect(new Set(migrated.map((job) => job.site?.name))).toEqual(new Set(['there']));
    const why = await service.cli('why', migrated.at(-1)!.id);
    expect(why.stdout).toMatch(/Dispatched to there: .* \(from here; /);
  });
});
