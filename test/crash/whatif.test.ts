/**
 * What-ifs of a large past, computed by the processes of a service: live jobs are not held up, the queue may lose everything, and
 * so may a worker.
 */
import { existsSync, readFileSync } from 'node:fs';
import { createClient } from 'graphql-ws';
import { Redis } from 'ioredis';
import { afterEach, describe, expect, test } from 'vitest';
import WebSocket from 'ws';
import { DEFAULT_POLICY, type Policy } from '../../src/core/index.js';
import type { WhatIfResult } from '../../src/simulator/what-if.js';
import { until } from '../engine/support.js';
import { PATIENCE_MS } from '../support/patience.js';
import { describeWithRedis, type RedisServer, redisFound } from '../support/redis.js';
import { Installation } from './installation.js';

/** A policy whose cost grows with the queue, so that simulating it takes some seconds. */
const CANDIDATE: Policy = {
  ...DEFAULT_POLICY,
  dispatch: { ...DEFAULT_POLICY.dispatch, mode: 'LS' } as Policy['dispatch'],
};
/** The past, well within what is kept. */
const daysAgo = (days: number): string => new Date(Date.now() - days * 86_400_000).toISOString();
const FROM = daysAgo(20);
const EARLIER = daysAgo(18);
const TO = daysAgo(1);
/** Of a process, MB: what a hundred thousand jobs may take, two times simulated. */
const MEMORY_MAX_MB = 1_024;

interface Simulation {
  id: string;
  state: string;
  progress: number;
  result: WhatIfResult | null;
  message: string | null;
}

let service: Installation;
afterEach(() => service?.close());

/**
 * Jobs that have ended, in the past: a bit more than the site `simulated` can do, in an order that looks like chance and is the
 * same each time. Without triggers, which are for jobs that live.
 */
async function record(jobs: number): Promise<void> {
  await service.rows(`
    BEGIN;
    SET LOCAL session_replication_role = replica;
    INSERT INTO jobs (user_id, application, command, os, cpus_per_task, estimate_s, benchmark, simulated_run_s, state, cause, seq,
        submitted_at, ended_at, deadline)
      SELECT u.id, 'past', 'true', 'simulated', 1 + i * 7919 % 4, 10 + i * 104729 % 590, 100, NULL, 'COMPLETED', 'EXITED_ZERO', 2,
             timestamptz '${FROM}' + make_interval(secs => 24.0 * i), timestamptz '${TO}',
             CASE WHEN i % 3 = 0 THEN timestamptz '${FROM}' + make_interval(secs => 24.0 * i + 1000) END
        FROM generate_series(1, ${jobs}::bigint) i, (SELECT min(id) AS id FROM users) u;
    INSERT INTO runs (job_id, epoch, site_id, machine_ids, machine_tasks, cpus_per_task, memory_mb_per_task, policy_version, assigned_at,
        planned_s, started_at, ended_at, cause)
      SELECT id, 1, 1, '{}', '{}', cpus_per_task, 0, 1, submitted_at, estimate_s, submitted_at, submitted_at + make_interval(secs => estimate_s),
             'EXITED_ZERO'
        FROM jobs WHERE application = 'past';
    COMMIT;`);
}

/** Asks for one; answers with its id. */
async function simulate(to: string): Promise<string> {
  // Nothing waited, since nobody ran it.
  const input = { candidate: CANDIDATE, from: FROM, to, acceptDistance: true };
  const {
    createSimulation: { simulation: simulate },
  } = await service.ask<{ createSimulation: { simulation: { id: string } } }>(
    'mutation ($input: CreateSimulationInput!) { createSimulation(input: $input) { simulation { id } } }',
    { input },
  );
  return simulate.id;
}

/** Its news, until it has ended; `seen` is told of each. */
async function follow(id: string, seen: (news: Simulation) => void = () => {}): Promise<Simulation> {
  const client = createClient({
    url: service.url.replace('http', 'ws'),
    webSocketImpl: WebSocket,
    connectionParams: { authorization: `Bearer ${service.key}` },
    retryAttempts: 10,
  });
  try {
    const news = client.iterate<{ simulationUpdated: { simulation: Simulation } }>({
      query: `subscription ($id: ID!) { simulationUpdated(simulationId: $id, after: "0") {
        simulation { id state progress message result { jobs all { baseline { ended waitMeanS } candidate { ended waitMeanS } } } } } }`,
      variables: { id },
    });
    for await (const { data, errors } of news) {
      if (!data) throw new Error(JSON.stringify(errors));
      const { simulation } = data.simulationUpdated;
      seen(simulation);
      if (!['QUEUED', 'RUNNING'].includes(simulation.state)) return simulation;
    }
    throw new Error(`the news of ${id} ended`);
  } finally {
    await client.dispose();
  }
}

/** The process that computes it, and how often it was taken up. */
async function worker(id: string): Promise<{ pid: number; attempts: number }> {
  const [row] = await service.rows<{ worker: string; attempts: number }>(
    'SELECT worker, attempts FROM simulations WHERE id = $1',
    Number(id.split('_')[1]),
  );
  return { pid: Number(row?.worker.split('/')[1]), attempts: row?.attempts ?? 0 };
}

/** Jobs for both sites. */
async function submitLive(count: number): Promise<number[]> {
  const jobs = Array.from({ length: count }, (_, i) => ({
    command: 'true',
    os: i % 2 === 0 ? 'real' : 'simulated',
    estimateS: 1,
  }));
  const { submitJobs } = await service.ask<{ submitJobs: { jobIds: string[] } }>(
    'mutation ($input: SubmitJobsInput!) { submitJobs(input: $input) { jobIds } }',
    { input: { jobs } },
  );
  return submitJobs.jobIds.map((id) => Number(id.split('_')[1]));
}

const isUnderWay = ({ state, progress }: Simulation): boolean => state === 'RUNNING' && progress > 0;

describeWithRedis('with the queue on Redis', (redis) => suite(redis));
// The same once more where there is time, and where there is no Redis.
if (!redisFound || process.env.FAULT_MINUTES) describe('with the queue on Postgres', () => suite(() => null));

function suite(redis: () => RedisServer | null): void {
  const jobs = process.env.FAULT_MINUTES ? 50_000 : 20_000;
  const live = 40;

  test('a large past is simulated beside live jobs, and whatever is killed or emptied, each what-if has its one result', {
    timeout: 5 * PATIENCE_MS,
  }, async () => {
    const server = redis();
    service = await Installation.open(server);
    await record(jobs);

    const progress: number[] = [];
    const first = await simulate(TO);
    const submitted = submitLive(live);
    const undisturbed = await follow(first, (news) => void progress.push(news.progress));
    expect(peakMemoryMb((await worker(first)).pid)).toBeLessThan(MEMORY_MAX_MB);
    expect(undisturbed, service.logs).toMatchObject({ state: 'DONE', message: null, result: { jobs } });
    const { baseline, candidate } = undisturbed.result?.all ?? {};
    expect([baseline?.ended, candidate?.ended]).toEqual([jobs, jobs]);
    expect(candidate?.waitMeanS).not.toBe(baseline?.waitMeanS);
    // It was told how far it is, more than once.
    expect(progress).toEqual([...progress].sort((a, b) => a - b));
    expect(new Set(progress.filter((part) => part > 0 && part < 1)).size).toBeGreaterThan(1);
    // Jobs that came meanwhile do not wait for its end.
    const ids = await submitted;
    const states = () =>
      service.rows<{ state: string; meanwhile: boolean }>(
        'SELECT j.state, j.ended_at < s.ended_at AS meanwhile FROM jobs j, simulations s WHERE j.id = ANY ($1)',
        ids,
      );
    await until('live jobs end', async () => (await states()).every(({ state }) => state === 'COMPLETED'));
    expect((await states()).filter(({ meanwhile }) => meanwhile).length).toBeGreaterThan(0);

    // One is computed by each worker, another waits: the queue is emptied, then the worker of the long one is killed.
    const long = await simulate(TO);
    const short = [await simulate(EARLIER), await simulate(EARLIER)];
    let emptied: Promise<void> | null = null;
    let killed: Promise<number> | null = null;
    const all = await Promise.all([
      follow(long, (news) => {
        if (news.state === 'RUNNING' && server) emptied ??= empty(server);
        if (isUnderWay(news)) killed ??= kill(long);
      }),
      ...short.map((id) => follow(id)),
    ]);
    await emptied;
    expect(
      all.map(({ state }) => state),
      service.logs,
    ).toEqual(['DONE', 'DONE', 'DONE']);
    expect(all[0]?.result).toEqual(undisturbed.result);
    expect(all[1]?.result).toEqual(all[2]?.result);
    const after = await worker(long);
    expect(after.attempts).toBe(2);
    expect(after.pid).not.toBe(await killed);
    for (const id of short) expect((await worker(id)).attempts).toBe(1);
  });
}

async function kill(id: string): Promise<number> {
  const { pid } = await worker(id);
  process.kill(pid, 'SIGKILL');
  return pid;
}

async function empty({ url }: RedisServer): Promise<void> {
  const client = new Redis(url);
  await client.flushall();
  client.disconnect();
}

/** The most memory that a process has had, where the system tells. */
function peakMemoryMb(pid: number): number {
  const file = `/proc/${pid}/status`;
  const peak = existsSync(file) && /VmHWM:\s+(\d+) kB/.exec(readFileSync(file, 'utf8'));
  return peak ? Number(peak[1]) / 1024 : 0;
}
