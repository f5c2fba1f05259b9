/** The file system that the nodes share with the agent, which may hang: it is asked by a thread, so that the agent never does. */
import { MessageChannel, type MessagePort, receiveMessageOnPort, Worker } from 'node:worker_threads';
import { packagePath } from '../../platform/paths.js';
import { upMs } from '../process/run.js';
import { CALLS, type Call, type Calls, type Done } from './calls.js';

/** A call may take so long before the file system is taken to hang. */
const HANG_MS = 2_000;
/** And the thread so long to start, on a busy host. */
const START_MS = 30_000;

/** The call may be done yet, or may have been. */
export class HangError extends Error {
  /** As of a network's file system that gives up by itself. */
  readonly code = 'ETIMEDOUT';
}

/** Calls that are noted down, and made later as one. */
export class Notes {
  readonly noted: Call[] = [];
  readonly calls: Calls;

  constructor() {
    this.calls = callsBy((call) => void this.noted.push(call));
  }
}

/**
 * Calls are made in the order in which they are asked for. One that takes longer than a moment is given up, as those are that follow it, until
 * it is over: it may be done nevertheless, before anything that is asked for later. So whatever is given up has to be one that can be repeated.
 */
export class SharedFiles {
  readonly calls: Calls;
  private readonly port: MessagePort;
  private readonly thread: Worker;
  /** How many calls are done. */
  private readonly passed = new Int32Array(new SharedArrayBuffer(4));
  private seen = 0;
  private seenAt = upMs();
  /** Of those that have not answered: who is told; null: nobody any more. */
  private readonly asked = new Map<number, ((done: Done[]) => void) | null>();
  private ids = 0;

  constructor() {
    const { port1, port2 } = new MessageChannel();
    this.port = port1;
    // The built one, also where the rest runs from its sources: Node loads no TypeScript.
    this.thread = new Worker(packagePath('dist/agent/external/shared-thread.js'), {
      workerData: { port: port2, passed: this.passed },
      transferList: [port2],
    });
    this.thread.unref();
    port1.on('message', (answer) => this.take(answer));
    port1.unref();
    this.calls = callsBy((call) => this.now(call));
  }

  /** A call is not answered for long. */
  get hangs(): boolean {
    this.receive();
    return this.asked.size > 0 && this.leftMs <= 0;
  }

  /**
   * Makes groups of calls one after another while the agent goes on; of each, after one that fails, no further ones.
   *
   * @returns of each what went wrong; null: nothing
   * @throws HangError
   */
  async later(groups: readonly (readonly Call[])[]): Promise<(string | null)[]> {
    let timer: NodeJS.Timeout | undefined;
    try {
      const done = await new Promise<Done[]>((resolve, reject) => {
        const id = this.ask(groups, resolve);
        timer = setInterval(() => {
          if (!this.hangs || !this.asked.has(id)) return;
          this.asked.set(id, null);
          reject(new HangError(HANGS));
        }, HANG_MS / 10);
      });
      return done.map((one) => ('message' in one ? one.message : null));
    } finally {
      clearInterval(timer);
    }
  }

  /** The thread ends with the process at the latest: where it hangs, that could not end by itself. */
  close(): void {
    if (this.hangs) process.once('exit', () => this.hangs && process.kill(process.pid, 'SIGKILL'));
    else void this.thread.terminate();
  }

  private now(call: Call): unknown {
    if (this.hangs) throw new HangError(HANGS);
    let done: Done | undefined;
    const sent = call[0] === 'readSync' ? withoutBuffer(call) : call;
    const id = this.ask([[sent]], (all) => {
      done = all[0];
    });
    for (;;) {
      const passed = Atomics.load(this.passed, 0);
      this.receive();
      if (done !== undefined) break;
      const { leftMs } = this;
      if (leftMs <= 0) {
        // A file that is opened for nobody is closed.
        this.asked.set(id, call[0] === 'openSync' ? (late) => this.drop(late[0]) : null);
        throw new HangError(HANGS);
      }
      Atomics.wait(this.passed, 0, passed, leftMs);
    }
    if ('message' in done) throw Object.assign(new Error(done.message), { code: done.code });
    if (call[0] !== 'readSync') return done.value;
    const bytes = done.value as Uint8Array;
    call[2].set(bytes, call[3]);
    return bytes.length;
  }

  private drop(done: Done | undefined): void {
    if (done !== undefined && 'value' in done) this.ask([[['closeSync', done.value as number]]], null);
  }

  private ask(groups: readonly (readonly Call[])[], told: ((done: Done[]) => void) | null): number {
    if (this.asked.size === 0) this.seenAt = upMs();
    const id = ++this.ids;
    this.asked.set(id, told);
    this.port.postMessage({ id, groups });
    return id;
  }

  /** Until what was asked for hangs: since a call was done last, or was asked for where none was. */
  private get leftMs(): number {
    const passed = Atomics.load(this.passed, 0);
    if (passed !== this.seen) {
      this.seen = passed;
      this.seenAt = upMs();
    }
    return (passed === 0 ? START_MS : HANG_MS) - (upMs() - this.seenAt);
  }

  private receive(): void {
    for (let got = receiveMessageOnPort(this.port); got; got = receiveMessageOnPort(this.port))
      this.take(got.message);
  }

  private take({ id, done }: { id: number; done: Done[] }): void {
    const told = this.asked.get(id);
    this.asked.delete(id);
    told?.(done);
  }
}

const HANGS = 'the shared file system does not respond';

const NOTHING = new Uint8Array();
const withoutBuffer = ([name, fd, , , length, position]: Extract<Call, ['readSync', ...unknown[]]>): Call => [
  ...([name, fd, NOTHING, 0, length, position] as const),
];

/** All calls, carried out by one function. */
const callsBy = (call: (call: Call) => unknown): Calls =>
  Object.fromEntries(
    Object.keys(CALLS).map((name) => [name, (...words: unknown[]) => call([name, ...words] as Call)]),
  ) as Calls;
