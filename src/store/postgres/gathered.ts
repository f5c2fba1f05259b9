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

/**
 * Does small tasks together, in one transaction on nobody's account. What is large, or of what null is said, which needs a row that somebody else
 * has locked, is done by itself, on the account of who asked.
 */
function gathered<Task, Result>(
  together: (tasks: readonly Task[]) => Promise<(Result | null)[]>,
  isSmall: (task: Task) => boolean,
  alone: (task: Task) => Promise<Result>,
): (task: Task) => Promise<Result> {
  const all = new Gathering<Task, Result | null>((tasks) => turns.as(null, () => together(tasks)));
  return async (task) =>
    (isSmall(task) ? await turns.continued(turns.current, all.do(task)) : null) ?? alone(task);
}

/** What is gathered on a database: `submit` of users, `report` of agents, `start` of what the cycles of sites plan. */
export const gather = (database: Db, liveJobsMax: number) => ({
  submit: gatherSubmissions(database, liveJobsMax),
  report: gatherReports(database),
  start: gatherStarts(database),
});

function gatherSubmissions(
  database: Db,
  liveJobsMax: number,
): (submission: Submission) => Promise<SubmitResult> {
  /** Of users whose row was locked by somebody else: who waits for it is nobody else's matter. */
  const ofUsers = new Map<number, Gathering<Submission, SubmitResult | null>>();

  function ofUser(userId: number, account: Account | null): Gathering<Submission, SubmitResult | null> {
    const known = ofUsers.get(userId);
    if (known) return known;
    const made = new Gathering<Submission, SubmitResult | null>((submissions) =>
      turns
        .as(account, () => submit(database, submissions, liveJobsMax))
        // Behind what follows in the gathering itself.
        .finally(() => setImmediate(() => made.isIdle && ofUsers.delete(userId))),
    );
    ofUsers.set(userId, made);
    return made;
  }

  async function alone(submission: Submission): Promise<SubmitResult> {
    const { current } = turns;
    const result = isSmallSubmission(submission)
      ? await turns.continued(current, ofUser(submission.userId, current).do(submission))
      : (await submit(database, [submission], liveJobsMax))[0];
    return result as SubmitResult;
  }

  return gathered(
    (submissions) => submit(database, submissions, liveJobsMax, true),
    isSmallSubmission,
    alone,
  );
}

function isSmallSubmission({ jobs, group }: Submission): boolean {
  return (
    !group && jobs.length <= JOBS_MAX && jobs.every(({ wait }) => !wait) && shareOf(jobs).bytes <= BYTES_MAX
  );
}

const gatherReports = (database: Db): ((reported: Reported) => Promise<ReportOutcome>) =>
  gathered(
    (all) => reportTogether(database, all, true),
    (reported) =>
      reported.reports.length > 0 && reported.reports.length <= REPORTS_MAX && bytesOf(reported) <= BYTES_MAX,
    (reported) => reportRuns(database, reported),
  );

const bytesOf = ({ reports }: Reported): number =>
  reports.reduce(
    (sum, { outputs = [] }) => outputs.reduce((within, { body }) => within + body.length, sum),
    0,
  );

function gatherStarts(database: Db): (plan: SitePlan) => Promise<StartOutcome> {
  const atOnce = pLimit(ALONE_MAX);
  return gathered(
    (plans) => applyStarts(database, plans, true),
    isSmallPlan,
    (plan) => atOnce(async () => (await applyStarts(database, [plan]))[0] as StartOutcome),
  );
}

/** Without starts it writes no events: no lock is held for it. */
const isSmallPlan = (plan: SitePlan): boolean =>
  plan.starts.length > 0 &&
  plan.starts.length <= STARTS_MAX &&
  (plan.promises?.promises?.jobs.length ?? 0) <= PROMISES_MAX &&
  JSON.stringify(plan).length <= BYTES_MAX;
