import DataLoader from 'dataloader';
import { isUnavailable } from './unavailable.js';

/** Tasks in one batch. */
const TOGETHER_MAX = 64;

/**
 * Does small tasks that come one by one in batches: what comes while one is under way is the next. A commit holds the event lock until it
 * is flushed to disk, and to a standby: one by one, there would be as many in a second as there are flushes.
 */
export class Gathering<Task, Result> {
  private busy = false;
  private readonly next: (() => void)[] = [];
  private readonly loader: DataLoader<Task, Result>;

  /** `together`: does a batch, in one transaction. */
  constructor(private readonly together: (tasks: readonly Task[]) => Promise<Result[]>) {
    this.loader = new DataLoader((tasks) => this.batch(tasks).finally(() => this.go()), {
      cache: false,
      maxBatchSize: TOGETHER_MAX,
      batchScheduleFn: (dispatch) => {
        this.next.push(dispatch);
        if (this.busy) return;
        this.busy = true;
        // Those that come in the same turn of the event loop are gathered, too.
        setImmediate(() => this.go());
      },
    });
  }

  get isIdle(): boolean {
    return !this.busy;
  }

  do(task: Task): Promise<Result> {
    return this.loader.load(task);
  }

  private go(): void {
    const dispatch = this.next.shift();
    this.busy = dispatch !== undefined;
    dispatch?.();
  }

  /** What the database refuses for one of them is said of that one only. */
  private async batch(tasks: readonly Task[]): Promise<(Result | Error)[]> {
    try {
      return await this.together(tasks);
    } catch (error) {
      if (tasks.length === 1 || isUnavailable(error)) throw error;
      const each: (Result | Error)[] = [];
      for (const one of tasks) each.push(...(await this.batch([one]).catch((why: Error) => [why])));
      return each;
    }
  }
}
