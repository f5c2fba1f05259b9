/** Jobs that wait for others: a submission with very many needs, and the release of very many jobs by the end of one. */
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Bench, type Measured, seconds, sideBySide, sized } from './measure.js';
import { RawPostgres } from './rawPostgres.js';
import { Service } from './service.js';

const JOBS = sized(100_000, 100);
/** Of each job. */
const NEEDS = 10;
const RELEASED = sized(10_000, 100);

/** Nothing that is registered can run them. */
const JOB = { command: 'true', os: 'nowhere', estimateS: 60 };

class Waiting {
  constructor(private readonly service: Service) {}

  /** Jobs that wait for nobody; held. */
  async others(count: number): Promise<string[]> {
    return this.submit(Array.from({ length: count }, () => ({ ...JOB, held: true })));
  }

  async submit(jobs: object[], more: object = {}): Promise<string[]> {
    const { submitJobs } = await this.service.query<{ submitJobs: { jobIds: string[] } }>(
      'mutation ($input: SubmitJobsInput!) { submitJobs(input: $input) { jobIds errors { message } } }',
      { input: { jobs, allowUnfit: true, ...more } },
    );
    if (submitJobs.jobIds.length !== jobs.length) throw new Error('the jobs were not accepted');
    return submitJobs.jobIds;
  }

  /** One submission of jobs that each need the ten before them; answers with the first one, with which all are canceled. */
  async workflow(count: number): Promise<string> {
    const jobs = Array.from({ length: count }, (_, i) => ({
      ...{ ...JOB, ref: `r${i}`, held: i === 0 },
      needs: [
        { of: Array.from({ length: Math.min(i, NEEDS) }, (_, k) => ({ ref: `r${i - k - 1}` })) },
      ].filter(({ of }) => of.length > 0),
    }));
    return (await this.submit(jobs, { idempotencyKey: randomUUID() }))[0] as string;
  }

  cancel = (ids: readonly string[]): Promise<unknown> =>
    this.service.query(
      'mutation ($ids: [ID!]) { cancelJobs(input: { selection: { ids: $ids } }) { jobIds } }',
      {
        ids,
      },
    );

  async untilNoneIsBlocked(): Promise<void> {
    for (;;) {
      const { jobCount } = await this.service.query<{ jobCount: number }>(
        '{ jobCount(filter: { states: [BLOCKED] }) }',
      );
      if (jobCount === 0) return;
      await sleep(20);
    }
  }
}

async function submission(waiting: Waiting, raw: RawPostgres): Promise<Measured> {
  return sideBySide(
    {
      name: 'needs-submit',
      unit: 's',
      aim: { ratio: 3 },
      what: '100 000 jobs of which each needs the ten before it, in one submission; against raw Postgres statements of the same rows',
    },
    3,
    async () => {
      let id = '';
      const elapsed = await seconds(async () => {
        id = await waiting.workflow(JOBS);
      });
      await waiting.cancel([id]);
      await waiting.untilNoneIsBlocked();
      return elapsed;
    },
    () => seconds(() => raw.submitWaiting(JOBS, NEEDS)),
  );
}

async function release(waiting: Waiting, raw: RawPostgres): Promise<Measured> {
  return sideBySide(
    {
      name: 'needs-release',
      unit: 's',
      aim: { value: 1 },
      what: '10 000 jobs that need one: from its end until all are queued; against raw Postgres statements of the same changes',
    },
    5,
    async () => {
      const [first] = await waiting.others(1);
      const needs = [{ of: [{ job: first, condition: 'ANY' }] }];
      const ids = await waiting.submit(Array.from({ length: RELEASED }, () => ({ ...JOB, needs })));
      // What their submission causes is not part of their release.
      while (!(await raw.isFollowed())) await sleep(50);
      const elapsed = await seconds(async () => {
        await waiting.cancel([first as string]);
        await waiting.untilNoneIsBlocked();
      });
      await waiting.cancel(ids);
      return elapsed;
    },
    async () => {
      const ids = await raw.submit(RELEASED);
      return seconds(() => raw.release(ids));
    },
  );
}

export const needsBench: Bench = {
  names: ['needs-submit', 'needs-release'],
  async run(only) {
    const service = await Service.start();
    const raw = await RawPostgres.open(service.postgres.url);
    const waiting = new Waiting(service);
    try {
      const results: Measured[] = [];
      if (only('needs-submit')) results.push(await submission(waiting, raw));
      if (only('needs-release')) results.push(await release(waiting, raw));
      return results;
    } finally {
      await raw.close();
      await service.stop();
    }
  },
};
