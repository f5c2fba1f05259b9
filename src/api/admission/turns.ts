/**
 * Long computations, one at a time, with a turn of the event loop between any two. Each holder has a queue of its own, and the holders
 * are served in turn: whoever asks for thousands does not keep one who asks for a single one.
 */
export function inTurn(): <T>(holder: string, signal: AbortSignal, work: () => T | Promise<T>) => Promise<T> {
  const queues = new Map<string, (() => Promise<void>)[]>();
  let isRunning = false;

  async function run(): Promise<void> {
    isRunning = true;
    for (let [next] = queues; next; [next] = queues) {
      const [holder, queue] = next;
      const work = queue.shift();
      // Behind the others.
      queues.delete(holder);
      if (queue.length > 0) queues.set(holder, queue);
      await work?.();
      await new Promise((resolve) => setImmediate(resolve));
    }
    isRunning = false;
  }

  return (holder, signal, work) =>
    new Promise((resolve, reject) => {
      const step = async (): Promise<void> => {
        try {
          signal.throwIfAborted();
          resolve(await work());
        } catch (error) {
          reject(error);
        }
      };
      const queue = queues.get(holder);
      if (queue) queue.push(step);
      else queues.set(holder, [step]);
      if (!isRunning) void run();
    });
}
