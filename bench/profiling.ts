/**
 * `--profile DIR`: where the time of a benchmark of the service goes, by process, by function and by statement. Writes a
 * `.cpuprofile` for each process of ours (flame graphs: the browser's developer tools, speedscope) and `profile.md`.
 */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';

const directory = () => process.env.BENCH_PROFILE;
/** Ticks a second of /proc/PID/stat: the same on every Linux that Node runs on. */
const TICKS = 100;
const ROWS = 40;

/** Of the server under measurement: every statement is counted, those of functions and triggers too. */
export const profiledSettings = (): Record<string, string> =>
  directory()
    ? {
        shared_preload_libraries: 'pg_stat_statements',
        'pg_stat_statements.track': 'all',
        'pg_stat_statements.track_planning': 'on',
      }
    : {};

export const profiledArgs = (process: string): string[] =>
  directory() ? ['--cpu-prof', `--cpu-prof-dir=${directory()}`, `--cpu-prof-name=${process}.cpuprofile`] : [];

/** CPU seconds of a process, of its children, and of those that these have waited for. */
function cpuSeconds(pid: number): number {
  let ticks = 0;
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name)) continue;
    let stat: string;
    try {
      stat = readFileSync(`/proc/${name}/stat`, 'utf8');
    } catch {
      continue; // It has ended.
    }
    const fields = stat
      .slice(stat.lastIndexOf(')') + 2)
      .split(' ')
      .map(Number);
    if (Number(name) === pid || fields[1] === pid)
      ticks += [11, 12, 13, 14].reduce((sum, at) => sum + (fields[at] as number), 0);
  }
  return ticks / TICKS;
}

interface CpuProfile {
  nodes: { id: number; callFrame: { functionName: string; url: string; lineNumber: number } }[];
  samples: number[];
  timeDeltas: number[];
}

const table = (head: readonly string[], rows: readonly (readonly (string | number)[])[]): string =>
  [head, head.map(() => '---'), ...rows].map((row) => `| ${row.join(' | ')} |`).join('\n');

/** The functions of a process by their own time, and the modules that they are of. */
function functionsOf(file: string): string {
  const { nodes, samples, timeDeltas } = JSON.parse(readFileSync(file, 'utf8')) as CpuProfile;
  const frames = new Map(nodes.map(({ id, callFrame }) => [id, callFrame]));
  const functions = new Map<string, number>();
  const modules = new Map<string, number>();
  const add = (sums: Map<string, number>, name: string, ms: number) =>
    sums.set(name, (sums.get(name) ?? 0) + ms);
  for (const [i, id] of samples.entries()) {
    const frame = frames.get(id);
    if (!frame || frame.functionName === '(idle)') continue;
    const ms = (timeDeltas[i] as number) / 1000;
    const path = frame.url.replace(/^.*\/(?:dist-bench\/src|node_modules)\//, '');
    add(functions, `${frame.functionName || '(anonymous)'} ${path}:${frame.lineNumber + 1}`, ms);
    add(
      modules,
      path
        .split('/')
        .slice(0, path.startsWith('@') ? 2 : 1)
        .join('/') || '(runtime)',
      ms,
    );
  }
  const rows = (sums: Map<string, number>) =>
    [...sums]
      .sort((a, b) => b[1] - a[1])
      .slice(0, ROWS)
      .map(([name, ms]) => [ms.toFixed(0), name]);
  return `${table(['ms', 'room or package'], rows(modules))}\n\n${table(['ms', 'function'], rows(functions))}`;
}

/** Measures what is done between its making and {@link write}. */
export class Profiling {
  private readonly before: number[];

  private constructor(
    private readonly client: pg.Client,
    private readonly processes: readonly { name: string; pid: number }[],
  ) {
    this.before = processes.map(({ pid }) => cpuSeconds(pid));
  }

  static async begin(
    url: string,
    processes: readonly { name: string; pid: number }[],
  ): Promise<Profiling | null> {
    if (!directory()) return null;
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    await client.query('CREATE EXTENSION IF NOT EXISTS pg_stat_statements');
    await client.query('SELECT pg_stat_statements_reset()');
    return new Profiling(client, processes);
  }

  /** CPU and statements of so many lives; the answer finishes the page when the processes have ended and left their profiles. */
  async end(lives: number): Promise<() => void> {
    const cpu = this.processes.map(({ name, pid }, i) => [
      name,
      (((cpuSeconds(pid) - (this.before[i] as number)) * 1000) / lives).toFixed(3),
    ]);
    const { rows } = await this.client.query(
      `SELECT toplevel, calls, total_plan_time AS planned, total_exec_time AS ms, rows, shared_blks_dirtied AS dirtied, wal_bytes, query
       FROM pg_stat_statements ORDER BY total_plan_time + total_exec_time DESC LIMIT $1`,
      [2 * ROWS],
    );
    await this.client.end();
    const statements = rows.map((row) => [
      row.toplevel ? '' : 'inner',
      row.calls,
      Number(row.planned).toFixed(0),
      Number(row.ms).toFixed(0),
      row.rows,
      row.dirtied,
      Math.round(Number(row.wal_bytes) / lives),
      `\`${row.query.replace(/\s+/g, ' ').replaceAll('|', '¦').slice(0, 300)}\``,
    ]);
    return () => {
      const into = directory() as string;
      const functions = readdirSync(into)
        .filter((name) => name.endsWith('.cpuprofile'))
        .map((name) => `## ${name}\n\n${functionsOf(join(into, name))}`);
      writeFileSync(
        join(into, 'profile.md'),
        [
          `${lives} lives`,
          table(['process', 'CPU ms a life'], cpu),
          table(
            [
              '',
              'calls',
              'planning ms',
              'executing ms',
              'rows',
              'pages dirtied',
              'WAL bytes a life',
              'statement',
            ],
            statements,
          ),
          ...functions,
        ].join('\n\n'),
      );
    };
  }
}
