/**
 * Two clusters with a real Slurm each (test/support/slurm.sh) and a site of our own under one service: jobs flow by DIANA while an agent, the
 * service, slurmctld, its state, slurmd and slurmdbd are lost one after another. Each run runs once, each job ends for its true cause, and what it
 * wrote is whole. `npm run test:slurm -- --jobs 5000 test/slurm/federation`. Skipped where Slurm or root is missing.
 */
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Installation } from '../crash/installation.js';
import { PATIENCE_MS } from '../support/patience.js';
import { checkPromises } from '../support/promises.js';
import { accountsLack, slurmCluster, slurmLacks } from '../support/slurm.js';

const lacks = slurmLacks();
if (lacks !== null) console.warn(`test/slurm/federation is skipped: ${lacks}`);
const hasAccounts = accountsLack() === null;
if (!hasAccounts) console.warn(`test/slurm/federation kills no slurmdbd: ${accountsLack()}`);

const CLUSTERS = ['alps', 'jura'];
const JOBS = Number(process.env.SLURM_JOBS ?? 90);
/** Submitted at once. */
const BATCH = 500;
/** That wait at a cluster: with many jobs, enough for arrays. */
const QUEUED = Math.max(20, Math.ceil(JOBS / 25));
const LINES = 20_000;

interface Kind {
  text: string;
  cause: string;
  exitCode?: number;
  out: string;
  limitS?: number;
}
const numbers = Array.from({ length: LINES }, (_, i) => `${i + 1}\n`).join('');
/** What jobs do, in turn, and how they end, whatever is lost meanwhile. */
const KINDS: readonly Kind[] = [
  { text: 'sleep 1; echo well', cause: 'EXITED_ZERO', exitCode: 0, out: 'well\n' },
  { text: `seq 1 ${LINES}; sleep 2`, cause: 'EXITED_ZERO', exitCode: 0, out: numbers },
  { text: 'echo before; exit 3', cause: 'EXITED_NONZERO', exitCode: 3, out: 'before\n' },
  { text: 'sleep 2; exit 75', cause: 'EXITED_NONZERO', exitCode: 75, out: '' },
  { text: 'sleep 1; exit 255', cause: 'EXITED_NONZERO', exitCode: 255, out: '' },
  { text: 'echo late; exec sleep 100', cause: 'RUN_TIME_LIMIT', out: 'late\n', limitS: 3 },
  { text: 'sleep 3; echo "$SWITCHYARD_JOB_ID"', cause: 'EXITED_ZERO', exitCode: 0, out: 'ID\n' },
];
const kindOf = (index: number): Kind => KINDS[index % KINDS.length] as Kind;

describe.skipIf(lacks !== null)('two clusters and a site of our own', () => {
  const dir = mkdtempSync(join(tmpdir(), 'sy-two-'));
  const ledger = join(dir, 'ledger');
  const patienceMs = 2 * PATIENCE_MS + JOBS * 500;
  let service: Installation;

  const slurm = Object.fromEntries(
    CLUSTERS.map((name) => [
      name,
      slurmCluster(join(dir, name), {
        SLURM_CLUSTER: name,
        ...(name === 'alps' && hasAccounts && { SLURM_WITH: 'accounts' }),
      }),
    ]),
  );
  const until = async (what: string, isSo: () => Promise<boolean>): Promise<void> => {
    for (const giveUp = Date.now() + patienceMs; !(await isSo()); await sleep(300))
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
  const kill = (name: string): void => service.processes.find((process) => process.name === name)?.kill();
  const ended = (): Promise<number> =>
    count('SELECT count(*)::int AS n FROM jobs WHERE ended_at IS NOT NULL');
  /** Ids that are given twice drain nodes: the site's administrator has to look. */
  const resume = (): void => {
    for (const cluster of CLUSTERS)
      spawnSync('scontrol', ['update', 'nodename=n[1-3]', 'state=resume'], {
        env: { ...process.env, SLURM_CONF: join(dir, cluster, 'slurm.conf') },
      });
  };

  /** What is lost, each when a further part of the jobs has ended. */
  const losses: (() => void)[] = [
    () => kill('agent-alps'),
    () => {
      slurm.jura!('kill');
      slurm.jura!('start');
    },
    () => slurm.alps!('kill', 'n1'),
    () => slurm.alps!('start'),
    () => kill('api'),
    ...(hasAccounts ? [() => slurm.alps!('kill', 'slurmdbd')] : []),
    () => kill('worker'),
    () => {
      slurm.jura!('kill');
      rmSync(join(dir, 'jura', 'state'), { recursive: true });
      mkdirSync(join(dir, 'jura', 'state'), { mode: 0o700 });
      slurm.jura!('start');
    },
    () => kill('agent-jura'),
    () => {
      slurm.alps!('kill');
      slurm.alps!('start');
    },
  ];

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
      await addSite(cluster, `{ kind: "external", queueLimit: ${QUEUED} }`, ['--local', 'slurm'], {
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

  it(`share ${JOBS} jobs by DIANA, each of which runs once, whatever is lost`, {
    timeout: 3 * patienceMs,
  }, async () => {
    const jobOf = (index: number): object => {
      const { text, limitS } = kindOf(index);
      const mark = `echo "$SWITCHYARD_JOB_ID $SWITCHYARD_EPOCH" >>${ledger}; ${text}`;
      return {
        ...{ command: 'sh', arguments: ['-c', mark], os: 'linux', estimateS: 5, memoryMbPerTask: 10 },
        ...(limitS !== undefined && { runTimeLimitS: limitS }),
      };
    };
    const ids: string[] = [];
    for (let sent = 0; sent < JOBS; sent += BATCH) {
      const jobs = Array.from({ length: Math.min(BATCH, JOBS - sent) }, (_, i) => jobOf(sent + i));
      const { submitJobs } = await service.ask<{ submitJobs: { jobIds: string[] } }>(
        'mutation ($input: SubmitJobsInput!) { submitJobs(input: $input) { jobIds } }',
        { input: { jobs } },
      );
      ids.push(...submitJobs.jobIds);
    }
    for (const [i, lose] of losses.entries()) {
      await until(`part ${i + 1} of the jobs to have ended`, async () => {
        resume();
        return (await ended()) >= ((i + 1) * JOBS) / (losses.length + 2);
      });
      lose();
    }
    await until('the end of all jobs', async () => {
      resume();
      return (await ended()) === JOBS;
    });

    const ran = readFileSync(ledger, 'utf8').trim().split('\n');
    // A run is a job and an epoch: one that was lost with its site began again as another.
    expect(ran.filter((run, i) => ran.indexOf(run) !== i)).toEqual([]);
    expect(new Set(ran.map((line) => line.split(' ')[0])).size).toBe(JOBS);

    const digest = (text: string): string =>
      text.length < 50 ? text : createHash('sha256').update(text).digest('hex');
    const wrong: object[] = [];
    for (let at = 0; at < JOBS; at += 20) {
      const some = ids.slice(at, at + 20);
      const fields = some.map(
        (id, i) => `j${i}: job(id: "${id}") { cause exitCode message output(stream: STDOUT) { text } }`,
      );
      type Answer = { cause: string; exitCode: number | null; output: { text: string } | null };
      const answers = await service.ask<Record<string, Answer>>(`query { ${fields.join(' ')} }`, {});
      for (const [i, id] of some.entries()) {
        const { cause, exitCode, out } = kindOf(at + i);
        const { output, ...told } = answers[`j${i}`] as Answer;
        const found = { cause: told.cause, exitCode: told.exitCode, out: digest(output?.text ?? '') };
        const due = { cause, exitCode: exitCode ?? found.exitCode, out: digest(out.replace('ID', id)) };
        if (JSON.stringify(found) !== JSON.stringify(due)) wrong.push({ id, ...told, ...found, due });
      }
    }
    expect(wrong).toEqual([]);

    const ends = await service.rows<{ site: string; n: number }>(
      `SELECT s.name AS site, count(*)::int AS n FROM runs r JOIN sites s ON s.id = r.site_id
        WHERE r.cause = 'EXITED_ZERO' GROUP BY 1 ORDER BY 1`,
    );
    expect(ends.map(({ site }) => site)).toEqual(['alps', 'jura', 'own']);
    expect(await checkPromises(service.database.pool)).toEqual([]);
  });
});
