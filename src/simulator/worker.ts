/** The thread that `simulateAll` starts: one simulation, its progress and its result as messages. */
import { parentPort, workerData } from 'node:worker_threads';
import type { WorkerMessage, WorkerTask } from './compare.js';
import { placeIn, usePolicyModule } from './policy-module.js';
import { simulateAndRecord } from './simulate.js';

const post = (message: WorkerMessage): void => parentPort?.postMessage(message);

const { options, modules, window } = workerData as WorkerTask;
try {
  for (const module of modules) await usePolicyModule(module);
  const onProgress = (ended: number, jobs: number) => post({ kind: 'progress', ended, jobs });
  const result = await simulateAndRecord({ ...options, onProgress }, window);
  post({ kind: 'done', result });
} catch (error) {
  post({
    kind: 'failed',
    message: `${placeIn(modules, error)}${error instanceof Error ? error.message : error}`,
  });
}
