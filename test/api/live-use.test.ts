/** What a live run uses: asked of the agents of its site, whose answers are put together; nobody waits for those that do not answer. */
import { beforeAll, expect, onTestFinished, test } from 'vitest';
import { withApi } from './support/api.js';
import { schedule } from './support/schedule.js';

const api = withApi();
let site = '';
let agent = '';
let agentId = '';
let other = { site: '', key: '' };

beforeAll(async () => {
  const register = async (name: string): Promise<{ site: string; key: string }> => {
    const { createSite } = await api.must<{ createSite: { site: { id: string } } }>(
      `mutation { createSite(input: { name: "${name}" }) { site { id } } }`,
    );
    return {
      site: createSite.site.id,
      key: (await api.user('AGENT', `agent-${name}`, createSite.site.id)).key,
    };
  };
  ({ site, key: agent } = await register('here'));
  other = await register('elsewhere');
  await api.must(
    `mutation { createMachine(input: { siteId: "${site}", name: "m", cpus: 64, memoryMb: 1000 }) { machine { id } } }`,
  );
  agentId = await api.serve(site, agent);
});

/** The id of a job with a run at the site. */
async function running(tasks = 1): Promise<string> {
  const { submitJobs } = await api.must<{ submitJobs: { jobIds: [string] } }>(
    `mutation { submitJobs(input: { jobs: [{ command: "true", tasks: ${tasks} }] }) { jobIds } }`,
  );
  const [job] = submitJobs.jobIds;
  await schedule(api.parts);
  const started = (task: number): object => ({
    ...{ job, epoch: 1, phase: 'STARTED', at: new Date() },
    // A run of one task is reported on as a whole.
    ...(tasks > 1 && { task }),
  });
  const reports = Array.from({ length: tasks }, (_, task) => started(task));
  await api.must(
    'mutation ($site: ID!, $agent: ID!, $reports: [RunReportInput!]!) { reportRuns(site: $site, agent: $agent, reports: $reports) { results } }',
    { site, agent: agentId, reports },
    agent,
  );
  return job;
}

interface Question {
  question: string;
  runs: { job: string; epoch: number }[];
}

/** Listens as an agent, and does that with each question. */
function listen(answer: (question: Question) => unknown, of = { site, key: agent }): Question[] {
  const heard: Question[] = [];
  const stop = api.subscriber(of.key).subscribe<{ useAsked: Question }>(
    {
      query: 'subscription ($siteId: ID!) { useAsked(siteId: $siteId) { question runs { job epoch } } }',
      variables: { siteId: of.site },
    },
    {
      next: ({ data }) => {
        if (!data) return;
        heard.push(data.useAsked);
        void answer(data.useAsked);
      },
      error: () => {},
      complete: () => {},
    },
  );
  onTestFinished(stop);
  return heard;
}

/** Answers a question; what is wrong with the answer, its code and message. */
async function report(
  question: string,
  uses: object[],
  { key = agent, ...of }: { site?: string; key?: string; id?: string } = {},
): Promise<{ code: string; message: string } | undefined> {
  const { reportUse } = await api.must<{ reportUse: { errors: { code: string; message: string }[] } }>(
    'mutation ($input: ReportUseInput!) { reportUse(input: $input) { errors { code message } } }',
    { input: { siteId: of.site ?? site, agentId: of.id ?? agentId, question, uses } },
    key,
  );
  return reportUse.errors[0];
}
const use = async (job: string): Promise<unknown> =>
  (
    await api.must<{ job: { runs: { liveUse: unknown }[] } }>(
      `{ job(id: "${job}") { runs { liveUse { cpuS peakMemoryMb } } } }`,
    )
  ).job.runs[0]?.liveUse;
/** Asks until somebody who listens has been heard: a subscription takes a moment. */
const asked = async (job: string): Promise<unknown> => {
  await expect.poll(() => use(job)).not.toBe(null);
  return use(job);
};

test('the agent is asked when somebody looks, once for all who look at the same time', async () => {
  const job = await running();
  const heard = listen(({ question, runs }) =>
    report(
      question,
      runs.map((run) => ({ ...run, tasks: 1, cpuS: 1.234, peakMemoryMb: 56.789 })),
    ),
  );
  const told = { cpuS: 1.23, peakMemoryMb: 56.79 };
  expect(await asked(job)).toEqual(told);
  const next = await running();
  const before = heard.length;
  expect(await Promise.all([use(next), use(next), use(next)])).toEqual([told, told, told]);
  expect(heard.length).toBe(before + 1);
  expect(heard.at(-1)!.runs).toEqual([{ job: next, epoch: 1 }]);
});

test('agents tell of their own tasks each; until all are told of, it is not known', async () => {
  const job = await running(3);
  const one = { job, epoch: 1, tasks: 1, cpuS: 5, peakMemoryMb: 10 };
  const others = { ...one, tasks: 2, cpuS: 2, peakMemoryMb: 30 };
  listen(async ({ question }) => {
    await report(question, [one]);
    // Told again, it counts once.
    await report(question, [one]);
    await report(question, [others], { id: 'agent_999' });
  });
  expect(await asked(job)).toEqual({ cpuS: 7, peakMemoryMb: 30 });
  const alone = await running(2);
  listen(({ question }) => report(question, [{ ...one, job: alone }]));
  expect(await use(alone)).toBe(null);
});

test('an agent that does not answer, answers late, or for another site, is waited for no longer than a second', async () => {
  const job = await running();
  const questions = listen(() => {});
  await expect.poll(async () => ((await use(job)) === null ? questions.length : 0)).toBeGreaterThan(0);
  const uses = [{ job, epoch: 1, tasks: 1, cpuS: 9, peakMemoryMb: 9 }];
  expect(await report(questions[0]!.question, uses)).toBeUndefined();
  const foreign = listen(() => {}, other);
  listen(({ question }) => report(question, uses, other));
  expect(await use(await running())).toBe(null);
  expect(foreign).toEqual([]);
  for (const [input, code] of [
    [{ site, key: other.key }, 'FORBIDDEN'],
    [{ id: 'job_1' }, 'BAD_USER_INPUT'],
  ] as const)
    expect((await report('q', uses, input))?.code).toBe(code);
  for (const bad of [{ tasks: 0 }, { epoch: 0 }, { cpuS: -1 }, { job: 'site_1' }])
    expect((await report('q', [{ ...uses[0], ...bad }]))?.code).toBe('BAD_USER_INPUT');
  const many = Array.from({ length: 101 }, () => uses[0]!);
  expect((await report('q', many))?.message).toMatch(/uses: .*100/);
});

test('nobody is asked of what does not run', async () => {
  const heard = listen(({ question, runs }) =>
    report(
      question,
      runs.map((run) => ({ ...run, tasks: 1, cpuS: 1, peakMemoryMb: 1 })),
    ),
  );
  const live = await running();
  await asked(live);
  const before = heard.length;
  const ended = await running();
  await api.must(
    'mutation ($site: ID!, $agent: ID!, $reports: [RunReportInput!]!) { reportRuns(site: $site, agent: $agent, reports: $reports) { results } }',
    {
      ...{ site, agent: agentId },
      reports: [{ job: ended, epoch: 1, phase: 'ENDED', at: new Date(), exitCode: 0, cause: 'EXITED_ZERO' }],
    },
    agent,
  );
  expect(await use(ended)).toBe(null);
  expect(heard.length).toBe(before);
});
