/**
 * Two clusters with a real Slurm each (test/support/slurm.sh) and a site of our own under one service: jobs flow by DIANA, and each runs once,
 * though an agent, a slurmctld and a worker are killed. Skipped where Slurm or root is missing.
 */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Installation } from '../crash/installation.js';
import { PATIENCE_MS } from '../support/patience.js';
import { checkPromises } from '../support/promises.js';
import { slurmCluster, slurmLacks } from '../support/slurm.js';

const lacks = slurmLacks();
if (lacks !== null) console.warn(`test/slurm/federation is skipped: ${lacks}`);

const CLUSTERS = ['alps', 'jura'];
const JOBS = Number(process.env.SLURM_JOBS ?? 90);

describe.skipIf(lacks !== null)('two clusters and a site of our own', { timeout: 6 * PATIENCE_MS }, () => {
  const dir = mkdtempSync(join(tmpdir(), 'sy-two-'));
  const ledger = join(dir, 'ledger');
  let service: Installation;

  const slurm = Object.fromEntries(
    CLUSTERS.map((name) => [name, slurmCluster(join(dir, name), { SLURM_CLUSTER: name })]),
  );
  const until = async (what: string, isSo: () => Promise<boolean>): Promise<void> => {
    for (const giveUp = Date.now() + 2 * PATIENCE_MS; !(await isSo()); await sleep(300))
      if (Date.now() > giveUp) throw new Error(`waited in vain for ${what}\n${service.logs}`);
  };
  const count = async (sql: string): Promise<number> => (await service.rows<{ n: number }>(sql))[0]!.n;
  const addSite = async (name: string, localPolicy: string, words: string[], more = {}): Promise<void> => {
    const { key } = await service.addSite(name, localPolicy);
    service.start(`agent-${name}`, ['agent', '--site', name, ...words], {
      ...{ SWITCHYARD_URL: service.url, SWITCHYARD_KEY: key, LOG_LEVEL: 'warn' },
      ...{ AGENT_STATE_DIR: join(dir, `agent-${name}`), ...more },
    });
  };

  beforeAll(async () => {
    writeFileSync(ledger, '');
    for (const cluster of CLUSTERS) slurm[cluster]!('start');
    service = await Installation.open(null, {
      launch: (installation) => {
        for (const kind of ['api', 'worker']) installation.start(kind, [kind], installation.settings);
      },
    });
    await service.dispatchBy({ kind: 'diana' });
    for (const cluster of CLUSTERS)
      await addSite(cluster, '{ kind: "external", queueLimit: 20 }', ['--local', 'slurm'], {
        SLURM_CONF: join(dir, cluster, 'slurm.conf'),
      });
    await addSite('own', 'null', []);
    await until('all machines', async () => {
      return (await count('SELECT count(*)::int AS n FROM machines WHERE agent_id IS NOT NULL')) === 7;
    });
  }, 4 * PATIENCE_MS);
  afterAll(async () => {
    await service?.close();
    for (const cluster of CLUSTERS) slurm[cluster]!('stop');
    rmSync(dir, { recursive: true, force: true });
  });

  it(`share ${JOBS} jobs by DIANA, each of which runs once`, async () => {
    const mark = `echo "$SWITCHYARD_JOB_ID $SWITCHYARD_EPOCH" >>${ledger}; sleep 2`;
    const job = { command: 'sh', arguments: ['-c', mark], os: 'linux', estimateS: 5, memoryMbPerTask: 10 };
    for (let sent = 0; sent < JOBS; sent += 30)
      await service.ask('mutation ($input: SubmitJobsInput!) { submitJobs(input: $input) { jobIds } }', {
        input: { jobs: Array.from({ length: Math.min(30, JOBS - sent) }, () => job) },
      });
    await until('some to have run', async () => readFileSync(ledger, 'utf8').split('\n').length > JOBS / 10);
    service.processes.find(({ name }) => name === 'agent-alps')?.kill();
    slurm.jura!('kill');
    slurm.jura!('start');
    service.processes.find(({ name }) => name === 'worker')?.kill();
    await until('the end of all jobs', async () => {
      // Ids that are given twice drain nodes: the site's administrator has to look.
      for (const cluster of CLUSTERS)
        execFileSync('sh', ['-c', 'scontrol update nodename=n[1-3] state=resume 2>/dev/null || true'], {
          env: { ...process.env, SLURM_CONF: join(dir, cluster, 'slurm.conf') },
        });
      return (await count('SELECT count(*)::int AS n FROM jobs WHERE ended_at IS NULL')) === 0;
    });
    const ran = readFileSync(ledger, 'utf8').trim().split('\n');
    expect(new Set(ran).size).toBe(ran.length);
    expect(new Set(ran.map((line) => line.split(' ')[0])).size).toBe(JOBS);
    const others = await service.rows(
      `SELECT r.job_id, r.epoch, r.site_id, r.cause, r.message, j.cause AS of_job FROM runs r JOIN jobs j ON j.id = r.job_id WHERE j.cause <> 'EXITED_ZERO' ORDER BY 1, 2`,
    );
    expect(others).toEqual([]);
    const ends = await service.rows<{ site: string; n: number }>(
      `SELECT s.name AS site, count(*)::int AS n FROM runs r JOIN sites s ON s.id = r.site_id
        WHERE r.cause = 'EXITED_ZERO' GROUP BY 1 ORDER BY 1`,
    );
    expect(ends.map(({ site }) => site)).toEqual(['alps', 'jura', 'own']);
    expect(ends.reduce((sum, { n }) => sum + n, 0)).toBe(JOBS);
    expect(await checkPromises(service.database.pool)).toEqual([]);
  });
});
