/** The thread that `simulateAll` starts: one simulation, its progress and its result as messages. */
import { parentPort, workerData } from 'node:worker_threads';
import type { WorkerMessage, WorkerTask } from './compare.js';
import { simulateAndRecord } from './simulate.js';

const post = (message: WorkerMessage): void => parentPort?.postMessage(message);

try {
  const { options, window } = workerData as WorkerTask;
  const onProgress = (ended: number, jobs: number) => post({ kind: 'progress', ended, jobs });
  const result = await simulateAndRecord({ ...options, onProgress }, window);
  post({ kind: 'done', result });
} catch (error) {
  post({ kind: 'failed', message: error instanceof Error ? error.message : String(error) });
}
