/** Small submissions, small reports, and small plans of sites, that come while others are being committed: they share a transaction. */
import pLimit from 'p-limit';
import { type Account, turns } from '../../platform/turns.js';
import { Gathering } from '../gathering.js';
import type { Database } from '../pool.js';
import { shareOf } from '../rules.js';
import type { ReportOutcome, StartOutcome, Submission, SubmitResult } from '../store.js';
import { type Reported, reportRuns, reportTogether } from './reports.js';
import { applyStarts, type SitePlan } from './starts.js';
import { submit } from './submit.js';

/** Of one that is gathered: nobody waits for much of others. */
const JOBS_MAX = 16;
const REPORTS_MAX = 64;
const STARTS_MAX = 16;
const PROMISES_MAX = 256;
const BYTES_MAX = 64 * 1024;
/** Plans of sites that are applied by themselves at a time: however many cycles there are, connections are left for others. */
const ALONE_MAX = 4;

type Db = Pick<Database, 'pool'>;

export class Submissions {
  private readonly all = new Gathering<Submission, SubmitResult | null>((submissions) =>
    turns.as(null, () => submit(this.database, submissions, this.liveJobsMax, true)),
  );
  /** Of users whose row was locked by somebody else: who waits for it is nobody else's matter. */
  private readonly ofUsers = new Map<number, Gathering<Submission, SubmitResult | null>>();

  constructor(
    private readonly database: Db,
    private readonly liveJobsMax: number,
  ) {}

  submit(submission: Submission): Promise<SubmitResult> {
    const { current } = turns;
    return isSmall(submission)
      ? turns.continued(current, this.gathered(submission, current))
      : this.alone(submission);
  }

  private async gathered(submission: Submission, account: Account | null): Promise<SubmitResult> {
    return (
      (await this.all.do(submission)) ??
      ((await this.ofUser(submission.userId, account).do(submission)) as SubmitResult)
    );
  }

  private async alone(submission: Submission): Promise<SubmitResult> {
    const [result] = await submit(this.database, [submission], this.liveJobsMax);
    return result as SubmitResult;
  }

  private ofUser(userId: number, account: Account | null): Gathering<Submission, SubmitResult | null> {
    const known = this.ofUsers.get(userId);
    if (known) return known;
    const made = new Gathering<Submission, SubmitResult | null>((submissions) =>
      turns
        .as(account, () => submit(this.database, submissions, this.liveJobsMax))
        // Behind what follows in the gathering itself.
        .finally(() => setImmediate(() => made.isIdle && this.ofUsers.delete(userId))),
    );
    this.ofUsers.set(userId, made);
    return made;
  }
}

function isSmall({ jobs, group }: Submission): boolean {
  return (
    !group && jobs.length <= JOBS_MAX && jobs.every(({ wait }) => !wait) && shareOf(jobs).bytes <= BYTES_MAX
  );
}

export class RunReports {
  private readonly all = new Gathering<Reported, ReportOutcome | null>((reported) =>
    turns.as(null, () => reportTogether(this.database, reported, true)),
  );

  constructor(private readonly database: Db) {}

  async report(reported: Reported): Promise<ReportOutcome> {
    const { length } = reported.reports;
    const isSmall = length > 0 && length <= REPORTS_MAX && bytesOf(reported) <= BYTES_MAX;
    // Jobs that somebody else has locked are waited for on the agent's own account.
    return (
      (isSmall ? await turns.continued(turns.current, this.all.do(reported)) : null) ??
      reportRuns(this.database, reported)
    );
  }
}

const bytesOf = ({ reports }: Reported): number =>
  reports.reduce(
    (sum, { outputs = [] }) => outputs.reduce((within, { body }) => within + body.length, sum),
    0,
  );

export class Starts {
  private readonly all = new Gathering<SitePlan, StartOutcome | null>((plans) =>
    turns.as(null, () => applyStarts(this.database, plans, true)),
  );
  private readonly alone = pLimit(ALONE_MAX);

  constructor(private readonly database: Db) {}

  async apply(plan: SitePlan): Promise<StartOutcome> {
    const outcome = isSmallPlan(plan) ? await turns.continued(turns.current, this.all.do(plan)) : null;
    if (outcome !== null) return outcome;
    const [own] = await this.alone(() => applyStarts(this.database, [plan]));
    return own as StartOutcome;
  }
}

/** Without starts it writes no events: no lock is held for it. */
const isSmallPlan = (plan: SitePlan): boolean =>
  plan.starts.length > 0 &&
  plan.starts.length <= STARTS_MAX &&
  (plan.promises?.promises?.jobs.length ?? 0) <= PROMISES_MAX &&
  JSON.stringify(plan).length <= BYTES_MAX;
