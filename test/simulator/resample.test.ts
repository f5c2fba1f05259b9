/** Traces drawn again by their users (`--resample`). */
import { describe, expect, it } from 'vitest';
import { cpusOf, plainJob, RandomStream } from '../../src/core/index.js';
import { resampled } from '../../src/simulator/resample.js';
import { inOrder, type SimJob } from '../../src/simulator/workload.js';
import { seeds } from '../support/seed.js';

const WEEK_S = 7 * 86_400;
const WEEKS = 20;

/** Users who stay for the whole trace, for a part, and for a moment. */
function trace(seed: number): SimJob[] {
  const random = new RandomStream(seed, 'trace');
  const stays = [20, 20, 17, 12, 12, 6, 4, 3, 2, 2, ...Array.from({ length: 15 }, () => 1)];
  const jobs = stays.flatMap((weeks, user) => {
    const first = random.integer(0, WEEKS - weeks);
    return Array.from({ length: weeks }, (_, i) => i).flatMap((i) =>
      Array.from({ length: random.integer(1, 6) }, (): SimJob => {
        const runS = random.integer(60, 36_000);
        const submittedAt = (first + i) * WEEK_S + random.integer(0, WEEK_S - 1);
        const job = plainJob({ id: 1, submittedAt, estimateS: runS, cpusPerTask: random.integer(1, 8) });
        return { job: { ...job, userId: user + 1 }, sourceId: 1, runS, limitS: runS, siteId: 1 };
      }),
    );
  });
  return inOrder(jobs).map((one) => ({ ...one, sourceId: one.job.id }));
}

/** What a job is, whenever it was submitted. */
const what = ({ job, runS }: SimJob): string => `${job.userId} ${runS} ${job.cpusPerTask}`;
const work = (jobs: readonly SimJob[]): number =>
  jobs.reduce((sum, { job, runS }) => sum + runS * cpusOf(job), 0);

describe('a trace drawn again', () => {
  it.each(seeds(20))(
    'has jobs of its users at their hours and days, in order, for so many weeks (seed %i)',
    (seed) => {
      const jobs = trace(seed);
      const times = new Map<string, Set<number>>();
      for (const one of jobs) {
        const known = times.get(what(one)) ?? new Set();
        times.set(what(one), known.add(one.job.submittedAt % WEEK_S));
      }
      for (const weeks of [1, 7, WEEKS, 45]) {
        const drawn = resampled(jobs, { seed, weeks });
        expect(drawn.map(({ job }) => job.id)).toEqual(drawn.map((_, i) => i + 1));
        expect(drawn.map(({ sourceId }) => sourceId)).toEqual(drawn.map((_, i) => i + 1));
        let last = 0;
        for (const one of drawn) {
          expect(times.get(what(one))).toContain(one.job.submittedAt % WEEK_S);
          expect(one.job.submittedAt).toBeGreaterThanOrEqual(last);
          last = one.job.submittedAt;
        }
        expect(last).toBeLessThan(weeks * WEEK_S);
      }
    },
  );

  it('is the same for one seed, another for another, and as long as the trace unless said', () => {
    const jobs = trace(1);
    const drawn = resampled(jobs, { seed: 1, weeks: null });
    expect(resampled(jobs, { seed: 1, weeks: WEEKS })).toEqual(drawn);
    expect(resampled(jobs, { seed: 2, weeks: null })).not.toEqual(drawn);
  });

  it('keeps what a user submits in a week together', () => {
    const jobs = trace(3);
    const weeksOf = (all: readonly SimJob[]): string[] => {
      const found = new Map<string, string[]>();
      for (const one of all) {
        const key = `${one.job.userId} ${Math.floor(one.job.submittedAt / WEEK_S)}`;
        found.set(key, [...(found.get(key) ?? []), `${what(one)} ${one.job.submittedAt % WEEK_S}`]);
      }
      return [...found].map(([key, those]) => `${key.split(' ')[0]}: ${those.sort().join(', ')}`);
    };
    const known = weeksOf(jobs);
    for (const week of weeksOf(resampled(jobs, { seed: 3, weeks: 9 }))) {
      // A user who was drawn twice may have two of its weeks in one.
      const [user = '', those = ''] = week.split(': ');
      const own = known.filter((one) => one.startsWith(`${user}: `)).map((one) => one.slice(user.length + 2));
      const left = own.filter((one) => one.split(', ').every((job) => those.includes(job)));
      expect(new Set(left.flatMap((one) => one.split(', ')))).toEqual(new Set(those.split(', ')));
    }
  });

  it('has the work of the trace on average, and not always', () => {
    const jobs = trace(5);
    const draws = 2_000;
    const works = Array.from({ length: draws }, (_, seed) => work(resampled(jobs, { seed, weeks: WEEKS })));
    const mean = works.reduce((sum, one) => sum + one, 0) / draws;
    const deviation = Math.sqrt(works.reduce((sum, one) => sum + (one - mean) ** 2, 0) / (draws - 1));
    expect(deviation).toBeGreaterThan(0.02 * mean);
    // Four standard errors; the seeds are fixed.
    expect(Math.abs(mean - work(jobs))).toBeLessThan((4 * deviation) / Math.sqrt(draws));
  });

  it('says when there is nothing, or too much', () => {
    const [one] = trace(1) as [SimJob];
    const many = Array.from({ length: 1_000 }, (_, i) => ({
      ...one,
      job: { ...one.job, id: i + 1, userId: i % 2 },
    }));
    expect(() => resampled([one, one], { seed: 1, weeks: 1 })).toThrow('no users to draw from');
    expect(() => resampled(many, { seed: 1, weeks: 6_001 })).toThrow('more than 6000000 jobs in 6001 weeks');
    const few = inOrder([{ ...one }, { ...one, job: { ...one.job, userId: 9, submittedAt: 60 * WEEK_S } }]);
    const empty = Array.from({ length: 100 }, (_, seed) => seed).find((seed) => {
      try {
        resampled(few, { seed, weeks: 1 });
        return false;
      } catch (error) {
        expect((error as Error).message).toBe('resample: no job is drawn; use more weeks or another seed');
        return true;
      }
    });
    expect(empty).toBeDefined();
  });
});
