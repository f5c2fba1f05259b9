/**
 * Workloads like a recorded one, after Zakay and Feitelson (Concurrency and Computation 26, 2014): the trace is taken apart into what each
 * user submitted, and users are drawn from it again. What a user submits stays as it was, shifted by whole weeks, so bursts of a user, hours of the
 * day and days of the week are kept, while who is active together changes with the seed.
 *
 * As many users are active in each week, on average, as in the trace. Long-term users follow one another without a gap, in a constant
 * number of places; the others begin in each week as many as began in a week of the trace. How long a user must stay to be a long-term one is
 * our choice.
 */
import { RandomStream } from '../core/index.js';
import { type SimJob, submittedAgain } from './workload.js';

export interface Resample {
  seed: number;
  /** How long the workload is; null: as long as the trace. */
  weeks: number | null;
}

const WEEK_S = 7 * 86_400;
const LONG_TERM_WEEKS = 12;
/** As many as are read of a file. */
const MAX_JOBS = 6_000_000;

interface User {
  jobs: SimJob[];
  /** The weeks of the trace from its first job to its last one. */
  firstWeek: number;
  weeks: number;
}

const weekOf = ({ job }: SimJob): number => Math.floor(job.submittedAt / WEEK_S);

/** The jobs of a trace, in order of submission, drawn again: the same seed draws the same. Throws if they have one user, and on more than
 * six million. */
export function resampled(jobs: readonly SimJob[], { seed, weeks }: Resample): SimJob[] {
  const users = usersOf(jobs);
  if (users.length < 2) throw new Error('resample: the jobs of the trace name no users to draw from');
  const traceWeeks = weekOf(jobs.at(-1) as SimJob) - weekOf(jobs[0] as SimJob) + 1;
  const length = weeks ?? traceWeeks;
  const longTerm = Math.min(LONG_TERM_WEEKS, traceWeeks / 2);
  const drawn: { one: SimJob; at: number }[] = [];
  /** What the user submitted from `from` on, in weeks of its own, as of the week `begin`. */
  const submit = (user: User, begin: number, from: number): void => {
    const shiftS = (begin - from - user.firstWeek) * WEEK_S;
    for (const one of user.jobs) {
      const at = one.job.submittedAt + shiftS;
      if (at < Math.max(0, begin) * WEEK_S || at >= length * WEEK_S) continue;
      if (drawn.push({ one, at }) > MAX_JOBS)
        throw new Error(`resample: more than ${MAX_JOBS} jobs in ${length} weeks, the maximum`);
    }
  };
  const staying = users.filter((user) => user.weeks >= longTerm);
  const places = staying.reduce((sum, user) => sum + user.weeks, 0) / traceWeeks;
  const stays = new RandomStream(seed, 'resample-long-term');
  const taken = Math.floor(places + stays.next());
  for (let place = 0; place < taken; place++) {
    // In the midst of its stay: a longer one is met more often.
    let user = byWeeks(staying, stays);
    let from = stays.integer(0, user.weeks - 1);
    for (let week = 0; week < length; ) {
      submit(user, week, from);
      week += user.weeks - from;
      user = staying[stays.integer(0, staying.length - 1)] as User;
      from = 0;
    }
  }
  const passing = users.filter((user) => user.weeks < longTerm);
  const passes = new RandomStream(seed, 'resample-temporary');
  const longest = passing.reduce((most, user) => Math.max(most, user.weeks), 1);
  for (let week = 1 - longest; week < length; week++) {
    const begin = Math.floor(passing.length / traceWeeks + passes.next());
    for (let i = 0; i < begin; i++) submit(passing[passes.integer(0, passing.length - 1)] as User, week, 0);
  }
  if (drawn.length === 0) throw new Error('resample: no job is drawn; use more weeks or another seed');
  drawn.sort((a, b) => a.at - b.at);
  return drawn.map(({ one, at }, i) => submittedAgain(one, at, i + 1));
}

function usersOf(jobs: readonly SimJob[]): User[] {
  const users = new Map<number, User>();
  for (const one of jobs) {
    const week = weekOf(one);
    const user = users.get(one.job.userId);
    if (user === undefined) users.set(one.job.userId, { jobs: [one], firstWeek: week, weeks: 1 });
    else {
      user.jobs.push(one);
      user.weeks = week - user.firstWeek + 1;
    }
  }
  return [...users.values()];
}

function byWeeks(users: readonly User[], random: RandomStream): User {
  let left = random.next() * users.reduce((sum, { weeks }) => sum + weeks, 0);
  for (const user of users) {
    left -= user.weeks;
    if (left < 0) return user;
  }
  return users.at(-1) as User;
}
