/**
 * Jobs that wait in a real Slurm (test/support/slurm.sh), whose nodes are taken, are taken back when another site can start them, whatever is
 * killed meanwhile: each runs once. Skipped where Slurm or root is missing.
 */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { RandomStream } from '../../src/core/index.js';
import { Installation } from '../crash/installation.js';
import { PATIENCE_MS } from '../support/patience.js';
import { checkPromises } from '../support/promises.js';
import { SEED } from '../support/seed.js';
import { slurmCluster, slurmLacks } from '../support/slurm.js';

const seed = Number(process.env.SLURM_SEED ?? SEED);
const JOBS = 16;

const lacks = slurmLacks();
if (lacks !== null) console.warn(`test/slurm/taken-back is skipped: ${lacks}`);

describe.skipIf(lacks !== null)('jobs that wait in Slurm', { timeout: 3 * PATIENCE_MS }, () => {
  const dir = mkdtempSync(join(tmpdir(), 'sy-back-'));
  const cluster = join(dir, 'cluster');
  const ledger = join(dir, 'ledger');
  const env = { ...process.env, SLURM_CONF: join(cluster, 'slurm.conf') };
  const keys: Record<string, string> = {};
  let service: Installation;

  const cli = (program: string, ...words: string[]): string =>
    execFileSync(program, words, { env, encoding: 'utf8' }).trim();
  const slurm = slurmCluster(cluster);
  const agent = (site: string, words: readonly string[], more: Record<string, string> = {}): void =>
    service.start(`agent-${site}`, ['agent', '--site', site, ...words], {
      ...{ SWITCHYARD_URL: service.url, SWITCHYARD_KEY: keys[site] as string, LOG_LEVEL: 'warn' },
      ...{ AGENT_STATE_DIR: join(dir, `agent-${site}`), ...more },
    });
  const until = async (what: string, isSo: () => Promise<boolean>): Promise<void> => {
    for (const giveUp = Date.now() + PATIENCE_MS; !(await isSo()); await sleep(300))
      if (Date.now() > giveUp)
        throw new Error(`waited in vain for ${what}\n${cli('squeue')}\n${service.logs}`);
  };
  const count = async (sql: string): Promise<number> => (await service.rows<{ n: number }>(sql))[0]!.n;

  beforeAll(async () => {
    writeFileSync(ledger, '');
    slurm('start');
    service = await Installation.open(null, {
      launch: (installation) => {
        for (const kind of ['api', 'worker']) installation.start(kind, [kind], installation.settings);
      },
    });
    const add = async (site: string, localPolicy: string): Promise<void> => {
      keys[site] = (await service.addSite(site, localPolicy)).key;
    };
    await add('alps', '{ kind: "external", queueLimit: 100, takeBackAfterS: 1 }');
    await add('own', 'null');
    agent('alps', ['--local', 'slurm'], { SLURM_CONF: env.SLURM_CONF });
    await until(
      'the nodes',
      async () => (await count('SELECT count(*)::int AS n FROM machines WHERE agent_id IS NOT NULL')) === 3,
    );
  });
  afterAll(async () => {
    await service?.close();
    slurm('stop');
    rmSync(dir, { recursive: true, force: true });
  });

  it(`are taken back for a site that can start them, and run once (seed ${seed})`, async () => {
    const random = new RandomStream(seed, 'taken back');
    // Of others, for longer than the test takes.
    const other = cli(
      'sbatch',
      '--parsable',
      '--exclusive',
      '--nodes=3',
      '--time=30',
      '--output=/dev/null',
      '--wrap=sleep 900',
    );
    await until(
      'all nodes to be taken',
      async () => cli('squeue', '-h', '-o', '%T', '-j', other) === 'RUNNING',
    );
    const mark = `echo "$SWITCHYARD_JOB_ID $SWITCHYARD_EPOCH" >>${ledger}; sleep 1`;
    const job = { command: 'sh', arguments: ['-c', mark], os: 'linux', estimateS: 5 };
    await service.ask('mutation ($input: SubmitJobsInput!) { submitJobs(input: $input) { jobIds } }', {
      input: { jobs: Array.from({ length: JOBS }, () => job) },
    });
    await until(
      'all jobs to wait there',
      async () => cli('squeue', '-h', '-r', '-t', 'pd', '-o', '%i').split('\n').length === JOBS,
    );
    agent('own', []);
    const victims = ['agent-alps', 'worker', 'slurmctld', 'agent-own', 'agent-alps', 'api'];
    const killed: string[] = [];
    for (const name of victims) {
      await sleep(random.next() * 2_500);
      killed.push(name);
      if (name === 'slurmctld') {
        slurm('kill');
        slurm('start');
      } else service.processes.find((process) => process.name === name)?.kill();
    }
    await until(`the end of all jobs (killed: ${killed.join(', ')})`, async () => {
      return (await count('SELECT count(*)::int AS n FROM jobs WHERE ended_at IS NULL')) === 0;
    });
    const ran = readFileSync(ledger, 'utf8').trim().split('\n');
    expect(new Set(ran.map((line) => line.split(' ')[0])).size).toBe(JOBS);
    expect(ran.length).toBe(JOBS);
    const ends = await service.rows<{ site: string; cause: string; n: number }>(
      `SELECT s.name AS site, r.cause::text, count(*)::int AS n FROM runs r JOIN sites s ON s.id = r.site_id
        GROUP BY 1, 2 ORDER BY 1, 2`,
    );
    const of = (at: string, why: string): number =>
      ends.find(({ site, cause }) => site === at && cause === why)?.n ?? 0;
    // Slurm, killed, may forget the job that takes its nodes.
    expect(of('own', 'EXITED_ZERO') + of('alps', 'EXITED_ZERO')).toBe(JOBS);
    expect(of('alps', 'REQUEUED')).toBeGreaterThan(0);
    await until(
      'Slurm to have none of them',
      async () => !/^sy-/m.test(cli('squeue', '-h', '-t', 'pd,r', '-o', '%j')),
    );
    expect(await checkPromises(service.database.pool)).toEqual([]);
  });
});
