/** The thread that asks the shared file system, and hangs where that does (shared.ts). */
import type { MessagePort } from 'node:worker_threads';
import { workerData } from 'node:worker_threads';
import { type Call, type Done, doAll } from './calls.js';

const { port, passed } = workerData as { port: MessagePort; passed: Int32Array<SharedArrayBuffer> };

const pass = (): void => void Atomics.add(passed, 0, 1);

port.on('message', ({ id, groups }: { id: number; groups: Call[][] }) => {
  port.postMessage({ id, done: groups.map((calls) => read(calls) ?? doAll(calls, pass)) });
  // Whoever waits looks for the answer now.
  pass();
  Atomics.notify(passed, 0);
});
// From now on a call that takes long hangs.
pass();
Atomics.notify(passed, 0);

/** Into a buffer of another thread nothing can be read: what was read is sent. */
function read([first]: Call[]): Done | null {
  if (first?.[0] !== 'readSync') return null;
  const [, fd, , , length, position] = first;
  const bytes = new Uint8Array(length);
  const done = doAll([['readSync', fd, bytes, 0, length, position]], pass);
  return 'value' in done ? { value: bytes.subarray(0, done.value as number) } : done;
}
