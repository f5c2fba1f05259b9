/** The thread that `simulateAll` starts: one simulation, its progress and its result as messages. */
import { parentPort, workerData } from 'node:worker_threads';
import type { RunOptions, WorkerMessage } from './compare.js';
import { simulate } from './simulate.js';

const post = (message: WorkerMessage): void => parentPort?.postMessage(message);

try {
  const result = await simulate({
    ...(workerData as RunOptions),
    onProgress: (ended, jobs) => post({ kind: 'progress', ended, jobs }),
  });
  post({ kind: 'done', result });
} catch (error) {
  post({ kind: 'failed', message: error instanceof Error ? error.message : String(error) });
}
