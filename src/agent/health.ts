/** A command of the operator's that says whether this host is fit to run jobs. */
import type { Env } from '../platform/env.js';
import { pause, REAL_ENV } from '../platform/env.js';
import { spawnGroup } from './group.js';

export interface HealthOptions {
  /** For a shell. It is healthy when it ends with 0; what it says otherwise is the reason. */
  command: string;
  periodMs: number;
  /** A command that takes longer is ended, with all that it started, and counts as failed. */
  timeoutMs: number;
  env?: Env;
}

/** Of what the command says; more would be no reason but a log. */
const TEXT_CHARS = 500;

/** Asks the command again and again, one at a time. */
export class HealthCheck {
  /** Why the host is not fit; null: it is. Until the first answer it is not. */
  problem: string | null = 'its health command has not finished yet';
  private readonly stopping = new AbortController();
  private done: Promise<void> | null = null;

  constructor(private readonly options: HealthOptions) {}

  start(): void {
    this.done ??= this.run();
  }

  async stop(): Promise<void> {
    this.stopping.abort();
    await this.done;
  }

  private async run(): Promise<void> {
    const { signal } = this.stopping;
    while (!signal.aborted) {
      const problem = await ask(this.options, signal);
      if (signal.aborted) return;
      this.problem = problem;
      await pause(this.options.env ?? REAL_ENV, this.options.periodMs, signal);
    }
  }
}

/** What is wrong; null: nothing. */
function ask({ command, timeoutMs }: HealthOptions, signal: AbortSignal): Promise<string | null> {
  return new Promise((resolve) => {
    let said = '';
    let late = false;
    const { child, end: kill } = spawnGroup('/bin/sh', ['-c', command], ['ignore', 'pipe', 'pipe']);
    const timer = setTimeout(() => {
      late = true;
      kill();
    }, timeoutMs);
    signal.addEventListener('abort', kill, { once: true });
    const listen = (chunk: Buffer): void => {
      if (said.length < TEXT_CHARS) said += chunk.toString();
    };
    child.stdout?.on('data', listen);
    child.stderr?.on('data', listen);
    const end = (problem: string | null): void => {
      clearTimeout(timer);
      signal.removeEventListener('abort', kill);
      resolve(problem);
    };
    child.on('error', (error) => end(`the health command cannot be started: ${error.message}`));
    // Not `close`: what it has left behind may hold its output open.
    child.on('exit', (code, name) => {
      // Its last words may still be on their way.
      setImmediate(() => {
        kill();
        if (late) return end(`the health command took longer than ${timeoutMs / 1000} s`);
        if (code === 0) return end(null);
        const text = said.replaceAll('\0', '').trim().slice(0, TEXT_CHARS);
        end(text || `the health command ended with ${code ?? name}`);
      });
    });
  });
}
