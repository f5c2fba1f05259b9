/** Connects the terminal of this process with that of a job: `switchyard shell`, `srun --pty` and `salloc`. */
import { Client } from './client.js';
import { ServiceError } from './errors.js';
import { pauseMs, sleep } from './retry.js';
import { ENDED_STATES } from './states.gql.js';
import { SendInputDocument, TerminalJobDocument, TerminalOutputDocument } from './terminal.gql.js';

export { Client };

/** Between two looks whether a job has started. */
const LOOK_MS = 200;
const LOOK_MAX_MS = 2_000;
/** The agent hears at least so often that somebody is there. */
const ALIVE_MS = 5_000;
/** Without an answer for so long, the terminal is given up: then the agent ends the run, too. */
const LOST_MS = 60_000;
/** Of one piece (`SendInputInput.base64`). */
const PIECE_BYTES = 4_000;

export interface TerminalSize {
  rows: number;
  columns: number;
}

/** The size of this process's terminal; null: it has none, on standard input or on standard output. */
export function terminalSize(): TerminalSize | null {
  const { stdin, stdout } = process;
  if (!stdin.isTTY || !stdout.isTTY) return null;
  const bounded = (n: number, unknown: number): number => Math.min(1_000, n > 0 ? n : unknown);
  return { rows: bounded(stdout.rows, 24), columns: bounded(stdout.columns, 80) };
}

/** The environment variables by which programs know what the terminal can do. */
export const TERMINAL_VARIABLES = ['TERM', 'COLORTERM', 'LANG', 'LC_ALL'] as const;

/** A shell: the one that the environment names, bash, or sh, as far as the machine has it. */
export const SHELL_COMMAND = {
  command: '/bin/sh',
  arguments: [
    '-c',
    'for shell in "$SHELL" bash; do command -v "$shell" >/dev/null && exec "$shell"; done; exec /bin/sh',
  ],
};

/**
 * Waits until a job runs; gives the number of its run, null if it has ended without.
 *
 * @throws ServiceError if there is no such job
 */
export async function untilRunning(client: Client, id: string, signal?: AbortSignal): Promise<number | null> {
  for (let waitMs = LOOK_MS; ; waitMs = Math.min(LOOK_MAX_MS, waitMs * 1.2)) {
    const job = await client.request(TerminalJobDocument, { id }).then(
      (answer) => answer.job,
      (error: unknown) => {
        if (error instanceof ServiceError && error.mayPass) return undefined;
        throw error;
      },
    );
    if (job === null) throw new ServiceError(`there is no job ${id}`, 'NOT_FOUND');
    if (job?.state === 'RUNNING') return job.epoch;
    if (job && (ENDED_STATES as readonly string[]).includes(job.state)) return null;
    await sleep(waitMs, signal);
  }
}

/** What is typed at this process's terminal, which passes every key on, until it is given back. */
class Keyboard {
  private readonly typed: Buffer[] = [];
  private resized = true;
  private news = (): void => {};
  /** Of what is typed nothing more is passed on; aborted also when the terminal is gone. */
  readonly closed = new AbortController();
  private readonly onData = (bytes: Buffer): void => {
    this.typed.push(bytes);
    // Nothing is read that cannot be passed on.
    process.stdin.pause();
    this.news();
  };
  private readonly onResize = (): void => {
    this.resized = true;
    this.news();
  };
  readonly close = (): void => {
    this.closed.abort();
    this.news();
  };
  private readonly restore = (): void => void process.stdin.setRawMode(false);

  constructor() {
    const { stdin, stdout } = process;
    stdin.on('data', this.onData).on('end', this.close).on('error', this.close);
    stdout.on('resize', this.onResize);
    process.on('exit', this.restore);
    stdin.setRawMode(true);
    stdin.resume();
  }

  giveBack(): void {
    const { stdin, stdout } = process;
    this.close();
    stdin.off('data', this.onData).off('end', this.close).off('error', this.close);
    stdout.off('resize', this.onResize);
    process.off('exit', this.restore);
    this.restore();
    stdin.pause();
  }

  /** The next piece, once there is something to say: at the latest that somebody is here. */
  async next(): Promise<{ base64: string; size: TerminalSize | null }> {
    if (this.typed.length === 0 && !this.resized && !this.closed.signal.aborted) {
      const timer = new AbortController();
      await new Promise<void>((resolve) => {
        this.news = resolve;
        void sleep(ALIVE_MS, timer.signal).then(resolve);
      });
      timer.abort();
    }
    const size = this.resized ? terminalSize() : null;
    this.resized = false;
    const all = Buffer.concat(this.typed.splice(0));
    if (all.length > PIECE_BYTES) this.typed.push(all.subarray(PIECE_BYTES));
    else if (!this.closed.signal.aborted) process.stdin.resume();
    return { base64: all.subarray(0, PIECE_BYTES).toString('base64'), size };
  }
}

interface RunAt {
  /** Of the job. */
  id: string;
  /** Number of the run. */
  epoch: number;
}

/**
 * Passes on what is typed here, and shows what the run writes, until the run has ended. Ctrl-C and all other keys are the run's. The terminal is put
 * back as it was, however this ends.
 *
 * @param abort ends it before
 * @returns whether the run has ended; false: the service could not be reached for a minute, or this terminal is gone
 */
export async function useTerminal(client: Client, run: RunAt, abort?: AbortSignal): Promise<boolean> {
  const keyboard = new Keyboard();
  const { signal } = keyboard.closed;
  abort?.addEventListener('abort', keyboard.close);
  try {
    const shown = show(client, run, signal);
    const sent = send(client, run, keyboard).then(async (well) => {
      if (well) await shown;
      return well;
    });
    const ended = await Promise.race([shown.then(() => true), sent]);
    return ended && !signal.aborted;
  } finally {
    abort?.removeEventListener('abort', keyboard.close);
    keyboard.giveBack();
  }
}

async function show(client: Client, run: RunAt, signal: AbortSignal): Promise<void> {
  const from = { after: null, signal };
  for await (const part of client.updates(TerminalOutputDocument, 'jobOutput', run, from)) {
    process.stdout.write(Buffer.from(part.base64, 'base64'));
    if (part.last) break;
  }
}

/** Sends what is typed, piece by piece, each until the terminal has it. False: it could not for too long. */
async function send(client: Client, { id: jobId, epoch }: RunAt, keyboard: Keyboard): Promise<boolean> {
  const { signal } = keyboard.closed;
  for (let sequence = 1; !signal.aborted; sequence++) {
    const piece = await keyboard.next();
    const since = Date.now();
    for (let failures = 0; !signal.aborted; ) {
      try {
        const input = { jobId, epoch, sequence, ...piece };
        if ((await client.request(SendInputDocument, { input }, signal)).sendInput.taken) break;
      } catch (error) {
        // The run is over: what it has written is still to come.
        if (signal.aborted || (error instanceof ServiceError && error.code === 'CONFLICT')) return true;
        if (!(error instanceof ServiceError && error.mayPass)) throw error;
        await sleep(pauseMs(++failures, error), signal);
      }
      if (Date.now() - since > LOST_MS) return false;
    }
  }
  return true;
}
