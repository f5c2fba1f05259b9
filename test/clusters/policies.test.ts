/**
 * Dispatch policies over two clusters of unequal size with a real Slurm each (test/support/slurm.sh): the same jobs arrive at the same times under each
 * policy. `npm run test:clusters -- --jobs N --seed S` prints the table of
 * docs/experiments/clusters.md. Skipped where Slurm or root is missing.
 */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { DEFAULT_POLICY, RandomStream } from '../../src/core/index.js';
import { Installation } from '../crash/installation.js';
import { PATIENCE_MS } from '../support/patience.js';
import { checkPromises } from '../support/promises.js';
import { SEED } from '../support/seed.js';
import { slurmCluster, slurmLacks } from '../support/slurm.js';

const lacks = slurmLacks();
if (lacks !== null) console.warn(`test/clusters is skipped: ${lacks}`);

const JOBS = Number(process.env.CLUSTERS_JOBS ?? 160);
const seed = Number(process.env.CLUSTERS_SEED ?? SEED);
/** Nodes of 8 CPUs. */
const NODES = { alps: 3, jura: 1 };
const CPUS = 8 * (NODES.alps + NODES.jura);
const LOAD = 0.85;
const POLICIES = [{ kind: 'round-robin' }, DEFAULT_POLICY.dispatch, { kind: 'job-ratio' }, { kind: 'diana' }];

interface Arrival {
  atS: number;
  cpus: number;
  runS: number;
  limitS: number;
}

/** Poisson arrivals of jobs that sleep, with limits up to three times as long. */
function arrivals(): Arrival[] {
  const random = new RandomStream(seed, 'clusters');
  const uniform = (): number => random.next();
  const jobs = Array.from({ length: JOBS }, () => {
    const cpus = [1, 1, 2, 4, 8][Math.floor(5 * uniform())] as number;
    const runS = 2 + Math.min(40, -10 * Math.log(1 - uniform()));
    return { cpus, runS, limitS: Math.ceil(runS * (1 + 2 * uniform())), gap: -Math.log(1 - uniform()) };
  });
  const work = jobs.reduce((sum, { cpus, runS }) => sum + cpus * runS, 0) / JOBS;
  const meanGapS = work / (LOAD * CPUS);
  let atS = 0;
  return jobs.map(({ gap, ...job }) => {
    atS += gap * meanGapS;
    return { atS, ...job };
  });
}

describe.skipIf(lacks !== null)('two clusters of unequal size', () => {
  const dir = mkdtempSync(join(tmpdir(), 'sy-clusters-'));
  let service: Installation;
  const names = Object.keys(NODES) as (keyof typeof NODES)[];
  const slurm = Object.fromEntries(
    names.map((name) => [name, slurmCluster(join(dir, name), { SLURM_CLUSTER: name })]),
  );
  const confOf = (name: string): string => join(dir, name, 'slurm.conf');
  const count = async (sql: string): Promise<number> => (await service.rows<{ n: number }>(sql))[0]!.n;
  const until = async (what: string, ms: number, isSo: () => Promise<boolean>): Promise<void> => {
    for (const giveUp = Date.now() + ms; !(await isSo()); await sleep(300))
      if (Date.now() > giveUp) throw new Error(`waited in vain for ${what}\n${service.logs}`);
  };

  beforeAll(async () => {
    service = await Installation.open(null, {
      launch: (installation) => {
        for (const kind of ['api', 'worker']) installation.start(kind, [kind], installation.settings);
      },
    });
    for (const name of names) {
      slurm[name]!('start');
      for (let node = NODES[name] + 1; node <= 3; node++)
        execFileSync('scontrol', ['update', `nodename=n${node}`, 'state=drain', 'reason=smaller'], {
          env: { ...process.env, SLURM_CONF: confOf(name) },
        });
      const { key } = await service.addSite(name, '{ kind: "external", queueLimit: 100 }');
      service.start(`agent-${name}`, ['agent', '--site', name, '--local', 'slurm'], {
        ...{ SWITCHYARD_URL: service.url, SWITCHYARD_KEY: key, LOG_LEVEL: 'warn' },
        ...{ AGENT_STATE_DIR: join(dir, `agent-${name}`), SLURM_CONF: confOf(name) },
      });
    }
    await until('all machines', 2 * PATIENCE_MS, async () => {
      return (await count('SELECT count(*)::int AS n FROM machines WHERE agent_id IS NOT NULL')) === 6;
    });
  }, 4 * PATIENCE_MS);
  afterAll(async () => {
    await service?.close();
    for (const name of names) slurm[name]!('stop');
    rmSync(dir, { recursive: true, force: true });
  });

  it(`${JOBS} jobs under each policy (seed ${seed})`, { timeout: 24 * 3_600_000 }, async () => {
    const jobs = arrivals();
    const table = [
      '| policy | turnaround, s | 95th percentile | wait, s | 95th percentile | jobs at alps | at jura | taken back |',
    ];
    table.push('| --- | --- | --- | --- | --- | --- | --- | --- |');
    for (const dispatch of POLICIES) {
      await service.dispatchBy(dispatch);
      const { kind } = dispatch;
      const beganMs = Date.now();
      for (const { atS, cpus, runS, limitS } of jobs) {
        await sleep(Math.max(0, beganMs + 1000 * atS - Date.now()));
        const job = {
          ...{ command: 'sleep', arguments: [runS.toFixed(2)], os: 'linux', memoryMbPerTask: 10 },
          ...{ cpusPerTask: cpus, estimateS: limitS, runTimeLimitS: limitS + 5 },
          // Histories of one policy are not another's.
          ...{ application: kind, groupName: kind },
        };
        await service.ask('mutation ($input: SubmitJobsInput!) { submitJobs(input: $input) { jobIds } }', {
          input: { jobs: [job] },
        });
      }
      const alive = 'SELECT count(*)::int AS n FROM jobs WHERE ended_at IS NULL';
      await until('the end of all jobs', 600_000, async () => (await count(alive)) === 0);
      const ended = await service.rows<{ name: string; turnaround: number; wait: number; cause: string }>(
        `SELECT s.name, j.cause, extract(epoch FROM j.ended_at - j.submitted_at)::float8 AS turnaround,
                extract(epoch FROM j.started_at - j.submitted_at)::float8 AS wait
           FROM jobs j JOIN sites s ON s.id = j.site_id WHERE j.application = $1`,
        kind,
      );
      expect(ended.length).toBe(JOBS);
      expect([...new Set(ended.map(({ cause }) => cause))]).toEqual(['EXITED_ZERO']);
      const [{ back } = { back: 0 }] = await service.rows<{ back: number }>(
        `SELECT count(*)::int AS back FROM runs r JOIN jobs j ON j.id = r.job_id
          WHERE j.application = $1 AND r.cause = 'REQUEUED'`,
        kind,
      );
      const cells = [
        ...(['turnaround', 'wait'] as const).flatMap((what) => {
          const sorted = ended.map((one) => one[what]).sort((a, b) => a - b);
          const mean = sorted.reduce((sum, one) => sum + one, 0) / JOBS;
          return [mean, sorted[Math.ceil(0.95 * JOBS) - 1] as number].map((one) => one.toFixed(1));
        }),
        ...names.map((site) => String(ended.filter(({ name }) => name === site).length)),
        String(back),
      ];
      table.push(`| ${[kind, ...cells].join(' | ')} |`);
      console.log(table.at(-1));
    }
    console.log(table.join('\n'));
    expect(await checkPromises(service.database.pool)).toEqual([]);
  });
});
