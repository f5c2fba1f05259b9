/** Simulations, each in a thread of its own. */
import { availableParallelism } from 'node:os';
import { setFlagsFromString } from 'node:v8';
import { type ResourceLimits, Worker } from 'node:worker_threads';
import type { PolicyModule } from './policy-module.js';
import type { GanttWindow } from './record.js';
import type { Recorded, SimulateOptions } from './simulate.js';

/** Options that can be handed to a thread. */
export type RunOptions = Omit<SimulateOptions, 'onProgress'>;

/** What a thread is given; see `simulateAndRecord`. */
export interface WorkerTask {
  options: RunOptions;
  modules: readonly PolicyModule[];
  window: GanttWindow | null;
}

/** What a thread says: how far it is, or how it ended. */
export type WorkerMessage =
  | { kind: 'progress'; ended: number; jobs: number }
  | { kind: 'done'; result: Recorded }
  | { kind: 'failed'; message: string };

/**
 * Of a thread, MB: in all more than the largest workload that is read (`MAX_JOBS`) needs. Of its young objects: Jobs and runs live for a while, and in the space that there is by default the collector
 * copies them twice before it lets them be.
 */
const THREAD_LIMITS: ResourceLimits = { maxYoungGenerationSizeMb: 384, maxOldGenerationSizeMb: 6144 };

/** A thread for simulations, which take most of the time of a process that makes one. */
export function simulationThread(url: URL, workerData: unknown): Worker {
  // A cycle is many short functions. By default the compiler stops putting them into one before it is through, and a tenth of the time goes
  // into the calls that are left.
  setFlagsFromString('--max-inlined-bytecode-size-cumulative=3000');
  return new Worker(url, { workerData, resourceLimits: THREAD_LIMITS });
}

/**
 * Runs them all, as many at a time as there are processors. Results are in the order of the runs. The first that fails ends the others, and
 * its error is thrown. `modules`: policies of users' that the runs may name. `window`: of the Gantt charts; null: nothing is kept for pictures. `onProgress` is told what has
 * ended of all jobs known so far, `onResult` of each run when it has ended.
 */
export async function simulateAll(
  runs: readonly RunOptions[],
  modules: readonly PolicyModule[],
  window: GanttWindow | null,
  onProgress: (ended: number, jobs: number) => void = () => {},
  onResult: (index: number, result: Recorded) => void = () => {},
): Promise<Recorded[]> {
  const results: Recorded[] = new Array(runs.length);
  const progress = runs.map(() => ({ ended: 0, jobs: 0 }));
  const workers = new Set<Worker>();
  let next = 0;
  const lane = async (): Promise<void> => {
    while (next < runs.length) {
      const index = next++;
      const result = await inThread(
        { options: runs[index] as RunOptions, modules, window },
        workers,
        (ended, jobs) => {
          progress[index] = { ended, jobs };
          onProgress(
            progress.reduce((sum, one) => sum + one.ended, 0),
            progress.reduce((sum, one) => sum + one.jobs, 0),
          );
        },
      );
      results[index] = result;
      onResult(index, result);
    }
  };
  try {
    await Promise.all(Array.from({ length: Math.min(availableParallelism(), runs.length) }, lane));
  } finally {
    await Promise.all([...workers].map((worker) => worker.terminate()));
  }
  return results;
}

function inThread(
  task: WorkerTask,
  workers: Set<Worker>,
  onProgress: (ended: number, jobs: number) => void,
): Promise<Recorded> {
  return new Promise((resolve, reject) => {
    const worker = simulationThread(new URL('./worker.js', import.meta.url), task);
    workers.add(worker);
    worker.on('message', (message: WorkerMessage) => {
      if (message.kind === 'progress') onProgress(message.ended, message.jobs);
      else if (message.kind === 'done') resolve(message.result);
      else reject(new Error(message.message));
    });
    worker.on('error', (error: NodeJS.ErrnoException) => {
      const outOfMemory = error.code === 'ERR_WORKER_OUT_OF_MEMORY';
      const most = `${THREAD_LIMITS.maxOldGenerationSizeMb} MB, the maximum for a simulation`;
      reject(outOfMemory ? new Error(`the workload needs more memory than ${most}`) : error);
    });
    worker.on('exit', (code) => {
      workers.delete(worker);
      reject(new Error(`a simulation thread ended with code ${code}`));
    });
  });
}
