/** The thread that `whatIfInThread` starts: one what-if, its progress and its result as messages. */
import { parentPort, workerData } from 'node:worker_threads';
import type { SimulationTask } from '../store/simulations.js';
import { type WhatIfMessage, whatIf } from './what-if.js';

const post = (message: WhatIfMessage): void => parentPort?.postMessage(message);

try {
  const result = whatIf(workerData as SimulationTask, (progress) => post({ kind: 'progress', progress }));
  post({ kind: 'done', result });
} catch (error) {
  post({ kind: 'failed', message: error instanceof Error ? error.message : String(error) });
}
