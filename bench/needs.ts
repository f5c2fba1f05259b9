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

  async submit(jobs: object[]): Promise<string[]> {
    const { submitJobs } = await this.service.query<{ submitJobs: { jobIds: string[] } }>(
      'mutation ($input: SubmitJobsInput!) { submitJobs(input: $input) { jobIds errors { message } } }',
      { input: { jobs, allowUnfit: true } },
    );
    if (submitJobs.jobIds.length !== jobs.length) throw new Error('the jobs were not accepted');
    return submitJobs.jobIds;
  }

  /** One submission of jobs that each need all of these. */
  async group(count: number, on: readonly string[]): Promise<string> {
    const needs = [{ of: on.map((job) => ({ job })) }];
    const { submitJobGroup } = await this.service.query<{ submitJobGroup: { jobGroup: { id: string } } }>(
      'mutation ($input: SubmitJobGroupInput!) { submitJobGroup(input: $input) { jobGroup { id } errors { message } } }',
      { input: { count, template: { ...JOB, needs }, idempotencyKey: randomUUID(), allowUnfit: true } },
    );
    return submitJobGroup.jobGroup.id;
  }

  cancelGroup = (id: string): Promise<unknown> =>
    this.service.query('mutation ($id: ID!) { cancelJobGroup(jobGroup: $id) { cancelled } }', { id });

  cancel = (ids: readonly string[]): Promise<unknown> =>
    this.service.query('mutation ($ids: [ID!]) { cancelJobs(selection: { ids: $ids }) { jobIds } }', { ids });

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
  const on = await waiting.others(NEEDS);
  const needed = on.map((id) => Number(id.split('_')[1]));
  return sideBySide(
    {
      name: 'needs-submit',
      unit: 's',
      aim: { ratio: 3 },
      what: '100 000 jobs with 1 000 000 needs in one submission; against raw Postgres statements of the same rows',
    },
    3,
    async () => {
      let id = '';
      const elapsed = await seconds(async () => {
        id = await waiting.group(JOBS, on);
      });
      await waiting.cancelGroup(id);
      return elapsed;
    },
    () => seconds(() => raw.submitWaiting(JOBS, needed)),
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
