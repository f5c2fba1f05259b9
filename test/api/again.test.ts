/** "Submit again" of the portal: a job as the input that would submit it again. */
import { expect, test } from 'vitest';
import { type Json, withApi } from './support/api.js';

const api = withApi();

// The portal's modules name one another as its bundler resolves them, which this side's compiler does not.
const PAGE: string = '../../web/src/pages/submit';
const { againOf } = (await import(`${PAGE}/draft.ts`)) as { againOf(job: Json): Json };
const { JobAgainDocument } = (await import(`${PAGE}/submit.gql.ts`)) as { JobAgainDocument: string };

const SUBMIT = `mutation ($jobs: [JobInput!]!) { submitJobs(input: { jobs: $jobs, allowUnfit: true }) {
  jobIds errors { field message } } }`;

const submit = async (jobs: object[]): Promise<string[]> => {
  const { submitJobs } = await api.must<{ submitJobs: { jobIds: string[]; errors: Json[] } }>(SUBMIT, {
    jobs,
  });
  expect(submitJobs.errors).toEqual([]);
  return submitJobs.jobIds;
};

const draftOf = async (id: string): Promise<Json> => {
  const { job } = await api.must<{ job: Json }>(JobAgainDocument, { id });
  return JSON.parse(JSON.stringify(againOf(job))) as Json;
};

test('a job is submitted again with all that it was submitted with', async () => {
  const outputs = [{ path: 'out/x', keep: 'SERVICE' }];
  const [needed] = (await submit([{ command: 'make', held: true, outputs }])) as [string];
  const given = {
    ...{ command: 'run', arguments: ['a', 'b c'], environment: [{ name: 'A', value: '1' }], name: 'name' },
    ...{
      application: 'app',
      project: 'project',
      groupName: 'again',
      arrayIndex: 4,
      workingDirectory: '/tmp',
    },
    ...{ tasks: 2, cpusPerTask: 3, memoryMbPerTask: 100 },
    ...{
      licenses: ['matlab'],
      machineConstraint: 'gen >= 2',
      image: 'image',
      os: 'linux',
      architecture: 'arm',
    },
    ...{ siteTerms: { partition: 'long', account: 'acc', qos: 'low' }, estimateS: 50, benchmark: 7 },
    ...{ runTimeLimitS: 70, warnS: 5, warnSignal: 'SIGUSR1', killGraceS: 9 },
    ...{ deadline: '2999-01-02T00:00:00.000Z', notBefore: '2999-01-01T00:00:00.000Z' },
    ...{ sandboxMb: 1, outputMb: 2, outputs, computationShare: 0.5, restartable: false },
    ...{ launch: 'ONCE', onTaskFailure: 'CONTINUE', mail: ['END', 'FAIL'], boost: -3, preemptionClass: 2 },
    needs: [
      {
        expression: 'ANY',
        of: [
          { job: needed, condition: 'ANY', minDelayS: 5 },
          { job: needed, condition: 'START', minDelayS: 0 },
        ],
      },
    ],
    ...{ onUnmet: 'HOLD', inputs: [{ from: needed, output: 'out/x' }] },
    retry: {
      maxRetries: 2,
      rules: [{ causes: ['MEMORY_LIMIT'], action: 'RETRY', memoryFactor: 2, memoryMaxMb: 900 }],
    },
    preferences: [{ os: 'linux', licenses: [], cpusPerTask: 2 }],
  };
  const [id] = (await submit([given])) as [string];
  const draft = await draftOf(id);
  expect(draft).toMatchObject(given);
  // Submitted as it is, it is the same job again.
  const [again] = (await submit([draft])) as [string];
  expect(await draftOf(again)).toEqual(draft);
});

test('what has passed, and what an operator added, are left out', async () => {
  const [id] = (await submit([
    {
      command: 'run',
      notBefore: '2001-01-01T00:00:00Z',
      boost: 5,
      held: true,
    },
  ])) as [string];
  const draft = await draftOf(id);
  for (const field of ['notBefore', 'boost']) expect(draft).not.toHaveProperty(field);
});
