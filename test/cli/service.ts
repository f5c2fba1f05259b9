/** The built `switchyard` as processes: what a user types, and what comes back. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { packagePath } from '../../src/platform/paths.js';
import { PATIENCE_MS } from '../support/patience.js';
import { freePort } from '../support/ports.js';

const PROGRAM = packagePath('bin', 'switchyard.js');

export interface Outcome {
  code: number | null;
  stdout: string;
  stderr: string;
}

type Environment = Record<string, string>;

/** Only what is given reaches the process, and what it needs to run at all. Jobs of these tests may write to files of the test. */
function start(
  args: readonly string[],
  env: Environment,
  program: string,
): ChildProcess & { output: { stdout: string; stderr: string } } {
  const base = { PATH: process.env.PATH ?? '', HOME: process.env.HOME ?? '', SWITCHYARD_ISOLATION: 'none' };
  const child = spawn(process.execPath, [program, ...args], { env: { ...base, ...env }, stdio: 'pipe' });
  const output = { stdout: '', stderr: '' };
  for (const stream of ['stdout', 'stderr'] as const) {
    child[stream]!.setEncoding('utf8').on('data', (text: string) => {
      output[stream] += text;
    });
  }
  return Object.assign(child, { output });
}

/** Runs a command to its end. */
export async function run(
  args: readonly string[],
  env: Environment,
  stdin = '',
  program = PROGRAM,
): Promise<Outcome> {
  const child = start(args, env, program);
  child.stdin!.end(stdin);
  const [code] = (await once(child, 'close')) as [number | null];
  return { code, ...child.output };
}

export interface Running {
  readonly pid: number;
  readonly output: { stdout: string; stderr: string };
  /** Resolves when it has printed a match on standard output. Rejects when it ends before. */
  printed(pattern: RegExp): Promise<RegExpExecArray>;
  /** Sends the signal and waits for the end. */
  end(signal?: NodeJS.Signals): Promise<Outcome>;
}

const running = new Set<Running>();

/** Starts a command that goes on. */
export function launch(args: readonly string[], env: Environment, program = PROGRAM): Running {
  const child = start(args, env, program);
  const closed = once(child, 'close') as Promise<[number | null]>;
  const process: Running = {
    pid: child.pid!,
    output: child.output,
    async printed(pattern) {
      for (;;) {
        const match = pattern.exec(child.output.stdout);
        if (match) return match;
        const ended = await Promise.race([closed, once(child.stdout!, 'data').then(() => null)]);
        if (ended && !pattern.test(child.output.stdout)) {
          throw new Error(
            `${args.join(' ')} ended with ${ended[0]}: ${child.output.stdout}${child.output.stderr}`,
          );
        }
      }
    },
    async end(signal = 'SIGTERM') {
      child.kill(signal);
      const [code] = await closed;
      running.delete(process);
      return { code, ...child.output };
    },
  };
  running.add(process);
  return process;
}

/** Ends everything that a test left running. */
export async function endAll(): Promise<void> {
  await Promise.all([...running].reverse().map((process) => process.end('SIGINT')));
}

export interface Service {
  readonly url: string;
  readonly process: Running;
  /** Runs a client's command against it. */
  cli(...args: string[]): Promise<Outcome>;
  /** The same with `--json`: its value. Throws when it fails. */
  json<T = never>(...args: string[]): Promise<T>;
}

/** A `serve` in this home, on a free port unless told otherwise. */
export async function serve(
  home: string,
  args: string[] = [],
  port = '0',
  env: Environment = {},
): Promise<Service> {
  const process = launch(['serve', ...args], { SWITCHYARD_HOME: home, PORT: port, ...env });
  const [, url] = await process.printed(/runs at (\S+)\n[\s\S]*restart keeps everything/);
  return service(url!, { SWITCHYARD_HOME: home }, process);
}

/** A running service at this address. */
export function service(url: string, env: Environment, process: Running): Service {
  const cli = (...args: string[]): Promise<Outcome> => run(args, { SWITCHYARD_URL: url, ...env });
  return {
    url,
    process,
    cli,
    async json(...args) {
      // Before `--`: what is behind it belongs to the job.
      const [name, ...rest] = args;
      const { code, stdout, stderr } = await cli(name!, '--json', ...rest);
      if (code !== 0) throw new Error(`${args.join(' ')} ended with ${code}: ${stderr}`);
      return JSON.parse(stdout);
    },
  };
}

/** Asks until the answer is as wanted. Throws the last one when that takes too long. */
export async function until<T>(ask: () => Promise<T>, wanted: (answer: T) => boolean): Promise<T> {
  const since = performance.now();
  for (;;) {
    const begun = performance.now();
    const answer = await ask();
    if (wanted(answer)) return answer;
    if (begun - since > PATIENCE_MS)
      throw new Error(`not as wanted after ${PATIENCE_MS} ms: ${JSON.stringify(answer)?.slice(0, 4_000)}`);
    // Whoever asks starts a process: what is waited for needs the processors, too.
    const rest = Math.max(400, 2 * (performance.now() - begun));
    await new Promise((resolve) => setTimeout(resolve, rest));
  }
}

/** The processes of a service with the site `here`, each a process of its own, to be started (again) one by one. */
export async function apart(home: string, databaseUrl: string, ofAgent: Environment = {}) {
  const env = { SWITCHYARD_HOME: home, DATABASE_URL: databaseUrl, LOG_LEVEL: 'warn' };
  await run(['migrate', '--site', 'here'], env);
  const port = String(await freePort());
  const url = `http://127.0.0.1:${port}/graphql`;
  return {
    url,
    start: {
      api: () => launch(['api'], { ...env, PORT: port }),
      worker: () => launch(['worker'], env),
      agent: () =>
        launch(['agent', '--site', 'here'], {
          ...{ SWITCHYARD_HOME: home, SWITCHYARD_URL: url, LOG_LEVEL: 'warn' },
          ...ofAgent,
        }),
    },
    /** Undefined while the service is away. */
    async ask<T>(query: string, variables: object = {}): Promise<T | undefined> {
      try {
        const key = readFileSync(join(home, 'admin.key'), 'utf8').trim();
        const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
        const body = JSON.stringify({ query, variables });
        const answer = await fetch(url, { method: 'POST', headers, body });
        return ((await answer.json()) as { data?: T }).data;
      } catch {
        return undefined;
      }
    },
  };
}
