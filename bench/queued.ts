/**
 * A power cut with very many jobs queued: everything is killed at once, PostgreSQL too, and started again. How long until the first
 * decision, and until the first command runs; how much memory the process takes; how long a page of the list takes meanwhile.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { type Bench, type Measured, median, seconds, sideBySide, sized, spreadOf } from './measure.js';
import { freePort } from './service.js';

const MAIN = fileURLToPath(new URL('../src/cli/main.js', import.meta.url));
const JOBS = Number(process.env.BENCH_QUEUED_JOBS ?? sized(1_000_000, 2_000));
const BATCH = sized(10_000, 1_000);
const ROUNDS = sized(3, 1);
/** Jobs as a submission makes them, for this machine. They run long enough for the queue to stay what it is. */
const FILL = `
INSERT INTO jobs (user_id, submitted_at, state, application, command, arguments, estimate_s, benchmark)
  SELECT (SELECT min(id) FROM users), now(), 'QUEUED', 'app-' || i % 10, 'sleep', '{3}', 60 + i % 1000, 100
    FROM generate_series(1, ${BATCH}) i`;
const LIST =
  '{ jobs(first: 100, filter: { states: [DISPATCHED] }) { nodes { id state name command submittedAt site { id name } } } }';
const RAW_LIST = `SELECT j.id, j.state, j.name, j.command, j.submitted_at, s.name AS site FROM jobs j JOIN sites s ON s.id = j.site_id
  WHERE j.state = 'DISPATCHED' ORDER BY j.submitted_at, j.id LIMIT 100`;

class Installation {
  private readonly home = mkdtempSync(join(tmpdir(), 'switchyard-bench-'));
  private child: ChildProcess | null = null;
  private port = 0;

  async start(): Promise<void> {
    this.port ||= await freePort();
    const env = { ...process.env, SWITCHYARD_HOME: this.home, PORT: String(this.port), LOG_LEVEL: 'warn' };
    this.child = spawn(process.execPath, [MAIN, 'serve'], { env, stdio: ['ignore', 'ignore', 'inherit'] });
  }

  /** All at once. */
  kill(): void {
    const server = this.postgresPid();
    this.child?.kill('SIGKILL');
    for (const pid of [server, ...childrenOf(server)]) {
      try {
        process.kill(pid, 'SIGKILL');
      } catch {
        // Its clients are gone, or the server is: it has ended by itself.
      }
    }
  }

  async stop(): Promise<void> {
    const ended = new Promise((resolve) => this.child?.once('exit', resolve));
    this.child?.kill('SIGTERM');
    await ended;
    rmSync(this.home, { recursive: true, force: true });
  }

  /** The answer of the database, asked again until it can be asked. */
  async rows<T>(sql: string): Promise<T[]> {
    for (;;) {
      const client = new pg.Client({ connectionString: this.databaseUrl(), connectionTimeoutMillis: 5_000 });
      client.on('error', () => {});
      try {
        await client.connect();
        return (await client.query(sql)).rows as T[];
      } catch {
        await sleep(50);
      } finally {
        await client.end().catch(() => {});
      }
    }
  }

  /** When it has become true that there is such a row. */
  async until(condition: string): Promise<void> {
    while ((await this.rows<{ yes: boolean }>(`SELECT EXISTS (${condition}) AS yes`))[0]?.yes !== true)
      await sleep(100);
  }

  async list(): Promise<void> {
    const key = readFileSync(join(this.home, 'admin.key'), 'utf8').trim();
    const response = await fetch(`http://127.0.0.1:${this.port}/graphql`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: `Bearer ${key}` },
      body: JSON.stringify({ query: LIST }),
    });
    const answer = (await response.json()) as { data?: { jobs: { nodes: unknown[] } } };
    if (answer.data?.jobs.nodes.length !== 100)
      throw new Error(`the list is not what was asked for: ${JSON.stringify(answer)}`);
  }

  /** The most that the service's process has taken, MB. */
  peakMb(): number {
    const status = readFileSync(`/proc/${this.child?.pid}/status`, 'utf8');
    return Number(/^VmHWM:\s+(\d+) kB/m.exec(status)?.[1]) / 1024;
  }

  private databaseUrl(): string {
    try {
      const password = readFileSync(join(this.home, 'postgres.password'), 'utf8').trim();
      const port = readFileSync(join(this.home, 'postgres', 'port'), 'utf8').trim();
      return `postgresql://switchyard:${password}@127.0.0.1:${port}/switchyard`;
    } catch {
      return 'postgresql://127.0.0.1:1/none';
    }
  }

  private postgresPid(): number {
    return Number(readFileSync(join(this.home, 'postgres', 'data', 'postmaster.pid'), 'utf8').split('\n')[0]);
  }
}

function childrenOf(parent: number): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => {
      try {
        const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
        return Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]) === parent;
      } catch {
        return false;
      }
    })
    .map(Number);
}

/** What a restart has to do at the least: the server's own recovery, and every job that waits read once. */
async function bareRestart(installation: Installation): Promise<number> {
  return seconds(() =>
    installation.rows(
      `SELECT count(json_build_array(id, user_id, state, site_id, estimate_s, benchmark, tasks, cpus_per_task)::text) FROM jobs WHERE ended_at IS NULL`,
    ),
  );
}

export const queuedBench: Bench = {
  names: ['million-queued'],
  async run() {
    const installation = new Installation();
    await installation.start();
    await installation.until('SELECT FROM machines WHERE NOT silent');
    for (let jobs = 0; jobs < JOBS; jobs += BATCH) await installation.rows(FILL);
    await installation.until(
      `SELECT FROM job_counts WHERE state = 'DISPATCHED' HAVING sum(jobs) > ${JOBS - 1_000}`,
    );

    const decisions: number[] = [];
    const commands: number[] = [];
    const bare: number[] = [];
    const servers: number[] = [];
    for (let round = 0; round < ROUNDS; round++) {
      const [last] = await installation.rows<{ decision: string; event: string }>(
        'SELECT (SELECT max(id) FROM decisions) AS decision, (SELECT max(id) FROM events) AS event',
      );
      installation.kill();
      // What is left of runs must be over, or the machine has no room for the first decision.
      await sleep(4_000);
      // What was under way when it was killed may have been committed since.
      const now = `at > to_timestamp(${Date.now() / 1000})`;
      await installation.start();
      const started = performance.now();
      await installation.rows('SELECT');
      servers.push((performance.now() - started) / 1000);
      await installation.until(
        `SELECT FROM decisions WHERE id > ${last?.decision} AND kind = 'START' AND ${now}`,
      );
      decisions.push((performance.now() - started) / 1000);
      await installation.until(
        `SELECT FROM events WHERE id > ${last?.event} AND to_state = 'RUNNING' AND ${now}`,
      );
      commands.push((performance.now() - started) / 1000);
      bare.push(await bareRestart(installation));
    }
    const about = `${JOBS} jobs queued, ${availableParallelism()} CPUs to run them`;
    const value = median(decisions);
    const baseline = median(bare);
    const results: Measured[] = [
      {
        name: 'million-queued',
        unit: 's',
        aim: { value: 8 },
        what: `${about}: from the start after a power cut to the first decision to start one; against one raw SELECT of the queue`,
        value,
        baseline,
        ratio: value / baseline,
        spread: spreadOf(decisions),
        note:
          `PostgreSQL answers after ${median(servers).toFixed(1)} s, the first command runs after ${median(commands).toFixed(1)} s; ` +
          `the process, everything in one, took ${installation.peakMb().toFixed(0)} MB at most`,
      },
      await sideBySide(
        {
          name: 'million-queued-list',
          unit: 's',
          aim: null,
          what: `a page of 100 of them over GraphQL; against the raw SELECT`,
        },
        9,
        () => seconds(() => installation.list()),
        () => seconds(() => installation.rows(RAW_LIST)),
      ),
    ];
    await installation.stop();
    return results;
  },
};
