/** Runs of the grid tree's model side by side, each in a thread: what they give does not depend on how many there are. */
import { availableParallelism } from 'node:os';
import { isMainThread, parentPort, Worker } from 'node:worker_threads';
import { type Outcome, type Setting, simulateModel } from './grid-tree-model.js';

interface Task {
  setting: Setting;
  seed: number;
  run: number;
}

/** A simulation that waits for its turn, or has a thread. */
interface Pending extends Task {
  resolve: (outcome: Outcome) => void;
}

/** `use` gets a function like `simulateModel`, and a thread for each CPU works for it until `use` has ended. */
export async function withThreads<T>(
  use: (simulate: (setting: Setting, seed: number, run: number) => Promise<Outcome>) => Promise<T>,
): Promise<T> {
  const waiting: Pending[] = [];
  const idle: (() => void)[] = [];
  const workers: Worker[] = [];
  const failed = new Promise<never>((_, reject) => {
    for (let i = 0; i < availableParallelism(); i++) {
      const worker = new Worker(new URL(import.meta.url));
      let current: Pending | undefined;
      const next = (): void => {
        current = waiting.shift();
        if (current === undefined) return void idle.push(next);
        const { setting, seed, run } = current;
        worker.postMessage({ setting, seed, run } satisfies Task);
      };
      worker.on('message', (outcome: Outcome) => {
        current?.resolve(outcome);
        next();
      });
      worker.on('error', reject);
      workers.push(worker);
      idle.push(next);
    }
  });
  const simulate = (setting: Setting, seed: number, run: number): Promise<Outcome> =>
    new Promise((resolve) => {
      waiting.push({ setting, seed, run, resolve });
      idle.shift()?.();
    });
  try {
    return await Promise.race([use(simulate), failed]);
  } finally {
    await Promise.all(workers.map((worker) => worker.terminate()));
  }
}

if (!isMainThread) {
  parentPort?.on('message', ({ setting, seed, run }: Task) =>
    parentPort?.postMessage(simulateModel(setting, seed, run)),
  );
}
