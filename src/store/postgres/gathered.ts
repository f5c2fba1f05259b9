/**
 * Submissions of few jobs that come while others are being committed are committed together. The event lock is held until a commit is
 * flushed to disk, and to a standby: one by one, they would be as many in a second as there are flushes.
 */
import DataLoader from 'dataloader';
import { type Account, turns } from '../../platform/turns.js';
import type { Database } from '../pool.js';
import { shareOf } from '../rules.js';
import type { Submission, SubmitResult } from '../store.js';
import { isUnavailable } from '../unavailable.js';
import { submit } from './submit.js';

/** Submissions in one transaction, the jobs of one that is gathered, and their bytes: nobody waits for much of others. */
const TOGETHER_MAX = 64;
const JOBS_MAX = 16;
const BYTES_MAX = 64 * 1024;

/** Runs one batch at a time: what comes meanwhile is the next one. */
class Gathering {
  private busy = false;
  private readonly next: (() => void)[] = [];
  private readonly loader: DataLoader<Submission, SubmitResult | null>;

  constructor(together: (submissions: readonly Submission[]) => Promise<(SubmitResult | null | Error)[]>) {
    this.loader = new DataLoader((submissions) => together(submissions).finally(() => this.go()), {
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

  load(submission: Submission): Promise<SubmitResult | null> {
    return this.loader.load(submission);
  }

  private go(): void {
    const dispatch = this.next.shift();
    this.busy = dispatch !== undefined;
    dispatch?.();
  }
}

export class Submissions {
  private readonly all = new Gathering((submissions) =>
    turns.as(null, () => this.together(submissions, true)),
  );
  /** Of users whose row was locked by somebody else: who waits for it is nobody else's matter. */
  private readonly ofUsers = new Map<number, Gathering>();

  constructor(
    private readonly database: Pick<Database, 'pool'>,
    private readonly liveJobsMax: number,
  ) {}

  submit(submission: Submission): Promise<SubmitResult> {
    const { current } = turns;
    return turns.continued(
      current,
      isSmall(submission) ? this.gathered(submission, current) : this.alone(submission),
    );
  }

  private async gathered(submission: Submission, account: Account | null): Promise<SubmitResult> {
    return (
      (await this.all.load(submission)) ??
      ((await this.ofUser(submission.userId, account).load(submission)) as SubmitResult)
    );
  }

  private async alone(submission: Submission): Promise<SubmitResult> {
    const [result] = await submit(this.database, [submission], this.liveJobsMax);
    return result as SubmitResult;
  }

  private ofUser(userId: number, account: Account | null): Gathering {
    const known = this.ofUsers.get(userId);
    if (known) return known;
    const made = new Gathering((submissions) =>
      turns
        .as(account, () => this.together(submissions, false))
        // Behind what follows in the gathering itself.
        .finally(() => setImmediate(() => made.isIdle && this.ofUsers.delete(userId))),
    );
    this.ofUsers.set(userId, made);
    return made;
  }

  /** What the database refuses for one of them is said of that one only. */
  private async together(
    submissions: readonly Submission[],
    skipLocked: boolean,
  ): Promise<(SubmitResult | null | Error)[]> {
    try {
      return await submit(this.database, submissions, this.liveJobsMax, skipLocked);
    } catch (error) {
      if (submissions.length === 1 || isUnavailable(error)) throw error;
      const each: (SubmitResult | null | Error)[] = [];
      for (const one of submissions)
        each.push(...(await this.together([one], skipLocked).catch((why: Error) => [why])));
      return each;
    }
  }
}

function isSmall({ jobs, group }: Submission): boolean {
  return (
    !group && jobs.length <= JOBS_MAX && jobs.every(({ wait }) => !wait) && shareOf(jobs).bytes <= BYTES_MAX
  );
}
