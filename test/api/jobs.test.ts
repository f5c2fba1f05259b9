import fc from 'fast-check';
import { beforeEach, describe, expect, test } from 'vitest';
import { cases } from '../support/seed.js';
import { unique, withApi } from './support/api.js';
import { schedule } from './support/schedule.js';

const api = withApi();

/** Where an operation does not ask for these, a refusal is an error of the answer. */
const ERRORS = /errors \{[^}]*\}/;
const SUBMIT = `mutation ($input: SubmitJobsInput!) { submitJobs(input: $input) {
  jobIds repeated errors { index field code message } jobs { id state } } }`;
interface Submitted {
  submitJobs: {
    jobIds: string[];
    repeated: boolean;
    errors: { index: number; field: string; code: string; message: string }[];
    jobs: { id: string; state: string }[];
  };
}
const submit = async (jobs: object[], more: object = {}, key = api.adminKey) =>
  (await api.must<Submitted>(SUBMIT, { input: { jobs, ...more } }, key)).submitJobs;
const refused = async (query: string, variables: object = {}, key = api.adminKey) => {
  const { errors } = await api.ask(query.replace(ERRORS, ''), variables, key);
  return {
    code: errors?.[0]?.extensions.code,
    message: errors?.[0]?.message,
    extensions: errors?.[0]?.extensions,
  };
};

beforeEach(() => {
  api.wakes.length = 0;
});

describe('submitting', () => {
  test('everything that a job can be asked for comes back as it was given', async () => {
    const given = {
      name: 'näme "quoted" \\ {}',
      application: 'app',
      project: 'p',
      groupName: 'g',
      arrayIndex: 3,
      command: '/bin/sh',
      arguments: ['-c', 'echo "a,b" \\ {x} \n', ''],
      environment: [
        { name: 'A', value: '1,"2"' },
        { name: '__proto__', value: 'p' },
      ],
      workingDirectory: '/tmp',
      tasks: 2,
      cpusPerTask: 3,
      memoryMbPerTask: 4,
      licenses: ['z', 'a'],
      os: 'linux',
      architecture: 'x64',
      estimateS: 1.5,
      benchmark: 2.5,
      runTimeLimitS: 60.25,
      deadline: '2031-02-03T04:05:06.789+01:00',
      sandboxMb: 0.5,
      outputMb: 7,
      restartable: false,
      launch: 'ONCE',
      onTaskFailure: 'CONTINUE',
      boost: 5,
      held: true,
    };
    const { jobIds, errors } = await submit([given]);
    expect(errors).toEqual([]);
    const { job } = await api.must<{ job: object }>(
      `query ($id: ID!) { job(id: $id) { name application project groupName arrayIndex command arguments environment { name value } workingDirectory
        tasks cpusPerTask memoryMbPerTask licenses os architecture estimateS benchmark runTimeLimitS
        deadline sandboxMb outputMb restartable launch onTaskFailure boost state user { name } site { id } runs { epoch } whyWaiting { code } } }`,
      { id: jobIds[0] },
    );
    const { held: _, ...same } = given;
    expect(job).toEqual({
      ...same,
      licenses: ['a', 'z'],
      deadline: '2031-02-03T03:05:06.789Z',
      state: 'HELD',
      user: { name: 'admin' },
      site: null,
      runs: [],
      whyWaiting: { code: 'HELD' },
    });
  });

  test('what a job reads and where it comes from is shown with it; a removed dataset still is, and is no longer accepted', async () => {
    const {
      createSite: { site },
      createDataset: { dataset },
    } = await api.must<{ createSite: { site: { id: string } }; createDataset: { dataset: { id: string } } }>(
      `mutation { createSite(input: { name: "home" }) { site { id } } createDataset(input: { name: "d", sizeMb: 7.5 }) { dataset { id } } }`,
    );
    const job = {
      command: 'x',
      inputs: [{ dataset: dataset.id }, { sizeMb: 0.25, site: site.id }],
      originSite: site.id,
      computationShare: 0.3,
      sandboxMb: 1,
      outputMb: 2,
    };
    const { jobIds } = await submit([job, { command: 'y' }]);
    const query = `query ($ids: [ID!]) { jobs(filter: { ids: $ids }) { nodes { inputs { dataset { id name } sizeMb site { name } }
      originSite { name } computationShare sandboxMb outputMb migratedAt batch group { id } } } }`;
    const none = { migratedAt: null, batch: null, group: null };
    const shown = {
      jobs: {
        nodes: [
          {
            inputs: [
              { dataset: { id: dataset.id, name: 'd' }, sizeMb: 7.5, site: null },
              { dataset: null, sizeMb: 0.25, site: { name: 'home' } },
            ],
            originSite: { name: 'home' },
            computationShare: 0.3,
            sandboxMb: 1,
            outputMb: 2,
            ...none,
          },
          { inputs: [], originSite: null, computationShare: null, sandboxMb: 0, outputMb: 0, ...none },
        ],
      },
    };
    expect(await api.must(query, { ids: jobIds })).toEqual(shown);
    await api.must(
      'mutation ($dataset: ID!, $site: ID!) { removeDataset(input: { datasetId: $dataset }) { dataset { id } } drainSite(input: { siteId: $site }) { site { id } } removeSite(input: { siteId: $site }) { site { id } } }',
      { dataset: dataset.id, site: site.id },
    );
    expect(await api.must(query, { ids: jobIds })).toEqual(shown);

    const { errors } = await submit([
      job,
      {
        command: 'x',
        inputs: [
          {},
          { dataset: dataset.id, sizeMb: 1 },
          { sizeMb: 1 },
          { site: site.id },
          { dataset: 'site_1' },
          { sizeMb: -1, site: site.id },
        ],
        originSite: 'home',
        computationShare: 1.5,
        simulatedIoS: -1,
      },
      { command: 'x', inputs: Array.from({ length: 101 }, () => ({ sizeMb: 1, site: 'x' })) },
    ]);
    expect(errors.slice(0, 12).map(({ index, message }) => `${index} ${message}`)).toEqual([
      `0 inputs[0].dataset: "${dataset.id}" is not accepted; accepted: the id of a dataset`,
      `0 inputs[1].site: "${site.id}" is not accepted; accepted: the id of a site`,
      `0 originSite: "${site.id}" is not accepted; accepted: the id of a site`,
      '1 inputs[0]: {} is not accepted; accepted: either `dataset`, or `sizeMb` and `site`, or `from` and `output`',
      `1 inputs[1]: {"dataset":"${dataset.id}","sizeMb":1} is not accepted; accepted: either \`dataset\`, or \`sizeMb\` and \`site\`, or \`from\` and \`output\``,
      '1 inputs[2]: {"sizeMb":1} is not accepted; accepted: either `dataset`, or `sizeMb` and `site`, or `from` and `output`',
      `1 inputs[3]: {"site":"${site.id}"} is not accepted; accepted: either \`dataset\`, or \`sizeMb\` and \`site\`, or \`from\` and \`output\``,
      '1 inputs[4].dataset: "site_1" is not accepted; accepted: the id of a dataset',
      '1 inputs[5].sizeMb: -1 is not accepted; accepted: 0 to 1000000000000',
      `1 inputs[5].site: "${site.id}" is not accepted; accepted: the id of a site`,
      '1 originSite: "home" is not accepted; accepted: the id of a site',
      '1 computationShare: 1.5 is not accepted; accepted: 0 to 1',
    ]);
    expect(errors.slice(12, 14).map(({ index, message }) => `${index} ${message}`)).toEqual([
      '1 simulatedIoS: -1 is not accepted; accepted: 0 to 1000000000',
      '2 inputs: 101 is not accepted; accepted: up to 100 inputs',
    ]);
  });

  test('defaults, and the application from the command', async () => {
    const { jobs } = await submit([{ command: '/usr/bin/python3' }, { command: 'true' }]);
    const query =
      'query ($ids: [ID!]) { jobs(filter: { ids: $ids }) { nodes { application estimateS tasks restartable name } } }';
    const same = { estimateS: 3600, tasks: 1, restartable: true, name: null };
    expect(await api.must(query, { ids: jobs.map((job) => job.id) })).toEqual({
      jobs: {
        nodes: [
          { application: 'python3', ...same },
          { application: 'true', ...same },
        ],
      },
    });
    expect(api.wakes).toEqual(['root']);
  });

  test('all or none: each fault names its job, field, value and what is accepted', async () => {
    const before = await api.must<{ jobCount: number }>('{ jobCount }');
    const { jobIds, jobs, errors } = await submit([
      { command: 'true' },
      {
        command: '',
        tasks: 0,
        cpusPerTask: 100_001,
        memoryMbPerTask: -1,
        estimateS: 0,
        benchmark: -2,
      },
      { command: 'a\0b', workingDirectory: 'relative', boost: 1001, sandboxMb: -1, runTimeLimitS: 0 },
      {
        command: 'x',
        environment: [
          { name: '1A', value: '' },
          { name: 'B', value: '\0' },
          { name: 'B', value: '' },
        ],
      },
      {
        command: 'x',
        licenses: new Array<string>(257).fill('a'),
        name: 'n'.repeat(201),
        arguments: ['\ud800'],
      },
    ]);
    expect({ jobIds, jobs }).toEqual({ jobIds: [], jobs: [] });
    const fields = errors.map(({ index, field }) => `${index} ${field}`);
    expect(fields.sort()).toEqual(
      [
        ...['1 command', '1 cpusPerTask', '1 estimateS', '1 memoryMbPerTask', '1 benchmark', '1 tasks'],
        ...['2 boost', '2 command', '2 sandboxMb', '2 runTimeLimitS', '2 workingDirectory'],
        ...['3 environment.name', '3 environment.name', '3 environment.value'],
        ...['4 arguments', '4 licenses', '4 name'],
      ].sort(),
    );
    expect(errors.find(({ field }) => field === 'cpusPerTask')).toEqual({
      index: 1,
      field: 'cpusPerTask',
      code: 'BAD_USER_INPUT',
      message: 'cpusPerTask: 100001 is not accepted; accepted: 1 to 100000',
    });
    expect(await api.must('{ jobCount }')).toEqual(before);
    expect(api.wakes).toEqual([]);
  });

  test('a USER may lower but not raise their own priority', async () => {
    const { key } = await api.user('USER', unique('u'));
    expect((await submit([{ command: 'x', boost: 1 }], {}, key)).errors).toMatchObject([
      { field: 'boost', code: 'FORBIDDEN' },
    ]);
    expect((await submit([{ command: 'x', preemptionClass: 1 }], {}, key)).errors).toMatchObject([
      {
        ...{ field: 'preemptionClass', code: 'FORBIDDEN' },
        message: 'preemptionClass: 1 is not accepted; accepted: 0; above 0 for operators only',
      },
    ]);
    expect((await submit([{ command: 'x', preemptionClass: 10 }])).errors).toMatchObject([
      { field: 'preemptionClass', code: 'BAD_USER_INPUT' },
    ]);
    const { jobIds } = await submit([{ command: 'x', boost: -1 }], {}, key);
    const raise = `mutation ($ids: [ID!]) { reprioritizeJobs(input: { selection: { ids: $ids }, boost: 1 }) { jobIds } }`;
    expect(await refused(raise, { ids: jobIds }, key)).toMatchObject({ code: 'FORBIDDEN' });
    expect(await api.must(raise, { ids: jobIds })).toEqual({ reprioritizeJobs: { jobIds } });
  });

  test('values of the wrong type are refused with their place', async () => {
    const { code, message } = await refused(SUBMIT, {
      input: { jobs: [{ command: 'x' }, { command: 'x', tasks: 'two' }] },
    });
    expect(code).toBe('BAD_USER_INPUT');
    expect(message).toContain('input.jobs[1].tasks');
    for (const deadline of ['tomorrow', '2026-02-31T00:00:00Z', '2026-01-01', 5]) {
      const answer = await refused(SUBMIT, { input: { jobs: [{ command: 'x', deadline }] } });
      expect(answer.code).toBe('BAD_USER_INPUT');
      expect(answer.message).toContain('input.jobs[0].deadline');
    }
  });

  test('numbers of jobs are bounded', async () => {
    expect(await refused(SUBMIT, { input: { jobs: [] } })).toMatchObject({ code: 'BAD_USER_INPUT' });
    const many = Array.from({ length: 100_001 }, () => ({ command: 'x' }));
    const submitOnly = 'mutation ($input: SubmitJobsInput!) { submitJobs(input: $input) { jobIds } }';
    expect(await refused(submitOnly, { input: { jobs: many } })).toMatchObject({ code: 'LIMIT_EXCEEDED' });
    const most = await submit(many.slice(0, 10_000));
    expect(most.jobIds).toHaveLength(10_000);
    expect(most.jobs.map((job) => job.id)).toEqual(most.jobIds);
    await api.must('mutation ($ids: [ID!]) { cancelJobs(input: { selection: { ids: $ids } }) { jobIds } }', {
      ids: most.jobIds,
    });
  });

  test('an idempotency key gives the same jobs again, and an error with another payload', async () => {
    const [one, other] = [await api.user('USER', unique('u')), await api.user('USER', unique('u'))];
    const jobs = [
      { command: 'x', name: 'same' },
      { command: 'y', environment: [{ name: 'A', value: 'b' }] },
    ];
    const first = await submit(jobs, { idempotencyKey: 'k' }, one.key);
    expect(first).toMatchObject({ repeated: false, errors: [] });
    api.wakes.length = 0;
    expect(await submit(jobs, { idempotencyKey: 'k' }, one.key)).toEqual({ ...first, repeated: true });
    expect(api.wakes).toEqual([]);
    expect(await refused(SUBMIT, { input: { jobs: [jobs[0]], idempotencyKey: 'k' } }, one.key)).toMatchObject(
      {
        code: 'IDEMPOTENCY_KEY_REUSED',
      },
    );
    const theirs = await submit(jobs, { idempotencyKey: 'k' }, other.key);
    expect(theirs.repeated).toBe(false);
    const together = await Promise.all(
      Array.from({ length: 8 }, () => submit(jobs, { idempotencyKey: 'race' }, one.key)),
    );
    expect(new Set(together.map(({ jobIds }) => jobIds.join())).size).toBe(1);
    expect(together.filter(({ repeated }) => !repeated)).toHaveLength(1);
    // A retry is one also when what it names has been removed meanwhile.
    const made = await api.must<{ createDataset: { dataset: { id: string } } }>(
      'mutation ($name: String!) { createDataset(input: { name: $name, sizeMb: 1 }) { dataset { id } } }',
      { name: unique('dataset') },
    );
    const reads = [{ command: 'x', held: true, inputs: [{ dataset: made.createDataset.dataset.id }] }];
    const before = await submit(reads, { idempotencyKey: 'data' }, one.key);
    await api.must('mutation ($id: ID!) { removeDataset(input: { datasetId: $id }) { dataset { id } } }', {
      id: made.createDataset.dataset.id,
    });
    expect((await submit(reads, { idempotencyKey: 'data' }, one.key)).jobIds).toEqual(before.jobIds);
    expect((await submit(reads, { idempotencyKey: 'anew' }, one.key)).errors).toMatchObject([
      { field: 'inputs[0].dataset' },
    ]);
    for (const idempotencyKey of ['', 'x'.repeat(201), '\0']) {
      expect(await refused(SUBMIT, { input: { jobs, idempotencyKey } }, one.key)).toMatchObject({
        code: 'BAD_USER_INPUT',
      });
    }
  });

  test('a submission quota says when it frees up', async () => {
    const { id, key } = await api.user('USER', unique('u'));
    const set = `mutation ($input: UpdateQuotaInput!) { updateQuota(input: $input) { user { submissionQuota { limit periodS used } } } }`;
    await api.must(set, {
      input: { userId: id, submissionLimit: 3, submissionPeriodS: 3600, reason: 'test' },
    });
    await submit([{ command: 'a' }, { command: 'b' }], {}, key);
    const { code, extensions } = await refused(
      SUBMIT,
      { input: { jobs: [{ command: 'c' }, { command: 'd' }] } },
      key,
    );
    expect(code).toBe('QUOTA_EXCEEDED');
    expect(extensions).toMatchObject({ limit: 3, used: 2, asked: 2, periodS: 3600 });
    expect(Date.parse(String(extensions?.freesAt))).toBeGreaterThan(Date.now());
    const quota = await api.must('{ viewer { submissionQuota { limit periodS used } } }', {}, key);
    expect(quota).toEqual({ viewer: { submissionQuota: { limit: 3, periodS: 3600, used: 2 } } });
    const never = Array.from({ length: 4 }, () => ({ command: 'x' }));
    expect((await refused(SUBMIT, { input: { jobs: never } }, key)).extensions).toMatchObject({
      freesAt: null,
    });
    await api.must(set, { input: { userId: id, submissionLimit: null, reason: 'test' } });
    expect((await submit(never, {}, key)).jobIds).toHaveLength(4);
  });
});

describe('acting on jobs', () => {
  test('hold, release, reprioritize, cancel; what cannot be done is told for each job', async () => {
    const { key } = await api.user('USER', unique('u'));
    const { jobIds } = await submit([{ command: 'a' }, { command: 'b' }], {}, key);
    const act = async (field: string, rest = '') => {
      const query = `mutation ($ids: [ID!]) { ${field}(input: { selection: { ids: $ids }${rest} }) { jobIds jobs { id state boost } unchanged { id code message } } }`;
      return (
        await api.must<Record<string, { jobIds: string[]; jobs: object[]; unchanged: object[] }>>(
          query,
          { ids: jobIds },
          key,
        )
      )[field];
    };
    expect(await act('holdJobs')).toMatchObject({
      jobIds,
      jobs: [{ state: 'HELD' }, { state: 'HELD' }],
      unchanged: [],
    });
    expect(await act('holdJobs')).toMatchObject({
      jobIds: [],
      unchanged: [{ code: 'CONFLICT' }, { code: 'CONFLICT' }],
    });
    expect(await act('reprioritizeJobs', ', boost: -7')).toMatchObject({
      jobs: [{ boost: -7 }, { boost: -7 }],
    });
    expect(await act('releaseJobs')).toMatchObject({ jobs: [{ state: 'QUEUED' }, { state: 'QUEUED' }] });
    api.wakes.length = 0;
    expect(await act('cancelJobs')).toMatchObject({ jobs: [{ state: 'CANCELLED' }, { state: 'CANCELLED' }] });
    expect(api.wakes).toContain('root');
    const again = await act('cancelJobs');
    expect(again?.unchanged).toMatchObject([
      { id: jobIds[0], code: 'CONFLICT' },
      { id: jobIds[1], code: 'CONFLICT' },
    ]);
  });

  test('a selection is ids or a filter, by what can be acted on', async () => {
    const cancel =
      'mutation ($s: JobSelection!) { cancelJobs(input: { selection: $s }) { jobIds unchanged { id code } } }';
    const bad = [
      {},
      { filter: {} },
      { filter: { userId: null } },
      { all: false },
      { ids: ['job_1'], filter: { states: ['QUEUED'] } },
      { ids: ['job_1'], all: true },
      { ids: ['site_1'] },
      { ids: ['job_0'] },
      { ids: ['job_1e1'] },
      { filter: { ids: ['job_1'] } },
      { filter: { endedAfter: '2026-01-01T00:00:00Z' } },
    ];
    for (const s of bad) expect(await refused(cancel, { s })).toMatchObject({ code: 'BAD_USER_INPUT' });
    const tooMany = Array.from({ length: 10_001 }, (_, i) => `job_${i + 1}`);
    expect(await refused(cancel, { s: { ids: tooMany } })).toMatchObject({ code: 'LIMIT_EXCEEDED' });
    expect(await api.must(cancel, { s: { ids: ['job_99999999'] } })).toEqual({
      cancelJobs: { jobIds: [], unchanged: [{ id: 'job_99999999', code: 'NOT_FOUND' }] },
    });
    const group = unique('group');
    const { jobIds } = await submit([
      { command: 'a', groupName: group, held: true },
      { command: 'b', groupName: group },
      { command: 'c' },
    ]);
    expect(await api.must(cancel, { s: { filter: { groupName: group, states: ['HELD'] } } })).toMatchObject({
      cancelJobs: { jobIds: [jobIds[0]] },
    });
    expect(await api.must(cancel, { s: { filter: { groupName: group } } })).toMatchObject({
      cancelJobs: { jobIds: [jobIds[1]] },
    });
  });
});

describe('pages', () => {
  interface Page {
    jobs: {
      nodes: { id: string }[];
      edges: { cursor: string }[];
      pageInfo: { hasNextPage: boolean; hasPreviousPage: boolean; startCursor: string; endCursor: string };
    };
  }
  const PAGE = `query ($filter: JobFilter, $orderBy: JobOrder, $first: Int, $after: String, $last: Int, $before: String) {
    jobs(filter: $filter, orderBy: $orderBy, first: $first, after: $after, last: $last, before: $before) {
      nodes { id } edges { cursor node { id } } pageInfo { hasNextPage hasPreviousPage startCursor endCursor } } }`;

  async function walk(
    filter: object,
    orderBy: object,
    size: number,
    backward: boolean,
    between: () => Promise<void> = async () => {},
  ) {
    const ids: string[] = [];
    let cursor: string | null = null;
    for (let pages = 0; pages < 200; pages++) {
      const where: object = backward ? { last: size, before: cursor } : { first: size, after: cursor };
      const { jobs }: Page = await api.must<Page>(PAGE, { filter, orderBy, ...where });
      const found = jobs.nodes.map((job) => job.id);
      if (backward) ids.unshift(...found);
      else ids.push(...found);
      expect(jobs.edges).toHaveLength(found.length);
      if (!(backward ? jobs.pageInfo.hasPreviousPage : jobs.pageInfo.hasNextPage)) return ids;
      cursor = backward ? jobs.pageInfo.startCursor : jobs.pageInfo.endCursor;
      expect(cursor).toBe(backward ? jobs.edges[0]?.cursor : jobs.edges.at(-1)?.cursor);
      await between();
    }
    throw new Error('the list has no end');
  }

  test('every job exactly once, forward and backward, in each order, whatever the size of the pages', async () => {
    const group = unique('pages');
    // Equal deadlines among them: ties must not be lost between pages.
    const deadlines = [1, 2, 2, 2, 3, 1, 5, 5, 4, 2, 9, 1].map((day) => `2030-01-0${day}T00:00:00Z`);
    const { jobIds } = await submit(
      deadlines.map((deadline) => ({ command: 'x', groupName: group, deadline })),
    );
    for (let i = 0; i < 3; i++) {
      const ids = jobIds.slice(i * 4, i * 4 + 4);
      await api.must(
        'mutation ($ids: [ID!]) { cancelJobs(input: { selection: { ids: $ids } }) { jobIds } }',
        { ids },
      );
    }
    const byDeadline = [...jobIds].sort((a, b) => {
      const [i, j] = [jobIds.indexOf(a), jobIds.indexOf(b)];
      return (deadlines[i] as string).localeCompare(deadlines[j] as string) || i - j;
    });
    await fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 14 }),
        fc.boolean(),
        fc.constantFrom('SUBMITTED_AT', 'DEADLINE', 'ENDED_AT'),
        fc.constantFrom('ASC', 'DESC'),
        async (size, backward, field, direction) => {
          const ids = await walk({ groupName: group }, { field, direction }, size, backward);
          const ascending = field === 'DEADLINE' ? byDeadline : jobIds;
          expect(ids).toEqual(direction === 'ASC' ? ascending : [...ascending].reverse());
        },
      ),
      { numRuns: cases(40) },
    );
  });

  test('jobs that come meanwhile neither repeat nor hide one that was there', async () => {
    const group = unique('pages');
    const { jobIds } = await submit(Array.from({ length: 30 }, () => ({ command: 'x', groupName: group })));
    const more = async () =>
      void (await submit(Array.from({ length: 3 }, () => ({ command: 'x', groupName: group }))));
    const orderBy = { field: 'SUBMITTED_AT', direction: 'ASC' };
    const backward = await walk({ groupName: group }, orderBy, 4, true, more);
    expect(backward.slice(0, 30)).toEqual(jobIds);
    expect(new Set(backward).size).toBe(backward.length);
    const newestFirst = await walk({ groupName: group }, { ...orderBy, direction: 'DESC' }, 7, false, more);
    expect(newestFirst.filter((id) => jobIds.includes(id))).toEqual([...jobIds].reverse());
    expect(new Set(newestFirst).size).toBe(newestFirst.length);
  });

  test('filters', async () => {
    const group = unique('filters');
    const { id: user, key } = await api.user('USER', unique('u'));
    const { jobIds } = await submit(
      [
        { command: 'a', groupName: group },
        { command: 'b', groupName: group, held: true },
      ],
      {},
      key,
    );
    const all = async (filter: object) => {
      const { jobs } = await api.must<Page>(PAGE, { filter: { groupName: group, ...filter }, first: 10 });
      return jobs.nodes.map((job) => job.id);
    };
    expect(await all({})).toEqual(jobIds);
    expect(await all({ states: ['HELD'] })).toEqual([jobIds[1]]);
    expect(await all({ states: [] })).toEqual([]);
    expect(await all({ application: 'a', userId: user })).toEqual([jobIds[0]]);
    expect(await all({ ids: [jobIds[1], 'job_99999999'] })).toEqual([jobIds[1]]);
    expect(
      await all({ submittedAfter: '2020-01-01T00:00:00Z', submittedBefore: '2099-01-01T00:00:00Z' }),
    ).toEqual(jobIds);
    expect(await all({ submittedBefore: '2020-01-01T00:00:00Z' })).toEqual([]);
    expect(await all({ endedAfter: '2020-01-01T00:00:00Z' })).toEqual([]);
    expect(await all({ siteId: 'site_1' })).toEqual([]);
    expect(
      await api.must('query ($filter: JobFilter) { jobCount(filter: $filter) }', {
        filter: { groupName: group },
      }),
    ).toEqual({ jobCount: 2 });
  });

  test('are counted by one of their values, most first', async () => {
    const group = unique('counted');
    const { jobIds } = await submit(
      ['a', 'b', 'b'].map((application) => ({ command: 'x', groupName: group, application, held: true })),
    );
    await api.must('mutation ($ids: [ID!]) { cancelJobs(input: { selection: { ids: $ids } }) { jobIds } }', {
      ids: [jobIds[0]],
    });
    const counts = async (by: string, filter: object = {}, first = 100) => {
      const { jobCounts } = await api.must<{ jobCounts: object[] }>(
        `query ($by: JobCountBy!, $filter: JobFilter, $first: Int!) {
           jobCounts(by: $by, filter: $filter, first: $first) { state cause application user { name } site { name } count }
         }`,
        { by, filter: { groupName: group, ...filter }, first },
      );
      const none = { state: null, cause: null, application: null, user: null, site: null };
      return jobCounts.map((row) =>
        Object.fromEntries(Object.entries(row).filter(([key, value]) => !(key in none) || value !== null)),
      );
    };
    expect(await counts('APPLICATION')).toEqual([
      { application: 'b', count: 2 },
      { application: 'a', count: 1 },
    ]);
    expect(await counts('APPLICATION', {}, 1)).toEqual([{ application: 'b', count: 2 }]);
    expect(await counts('STATE')).toEqual([
      { state: 'HELD', count: 2 },
      { state: 'CANCELLED', count: 1 },
    ]);
    expect(await counts('SITE')).toEqual([{ count: 3 }]);
    expect(await counts('CAUSE')).toEqual([
      { count: 2 },
      { cause: expect.stringMatching(/^CANCELLED_BY_/), count: 1 },
    ]);
    const cause = 'CANCELLED_BY_OPERATOR';
    expect(await counts('USER', { cause })).toEqual([{ user: { name: expect.any(String) }, count: 1 }]);
    expect(await counts('USER', { cause: 'LOST' })).toEqual([]);
  });

  test('a page costs a few statements, however many jobs it has and whatever they refer to', async () => {
    const group = unique('statements');
    await submit(Array.from({ length: 50 }, () => ({ command: 'x', groupName: group })));
    const { queries } = api.parts;
    const names = Object.getOwnPropertyNames(Object.getPrototypeOf(queries)).filter((name) =>
      /^[a-z]/.test(name),
    );
    const asked: string[] = [];
    // All methods alike, by name.
    const own = queries as unknown as Record<string, (...values: unknown[]) => unknown>;
    for (const name of names.filter((one) => one !== 'constructor')) {
      const original = own[name]?.bind(queries);
      own[name] = (...values) => {
        asked.push(name);
        return original?.(...values);
      };
    }
    try {
      const query = `query ($group: String) { jobs(first: 50, filter: { groupName: $group }) { edges { cursor node { id state application
        user { name class submissionQuota { used } keys { nodes { id } } } site { name machines { id } queuedJobs cpus reservation { at } }
        runs { epoch } } } pageInfo { endCursor } } }`;
      await api.must(query, { group });
      // The viewer's key is looked up too, now and then, but not through here; events are read for subscribers all the time.
      expect(asked.filter((name) => name !== 'events').sort()).toEqual([
        'apiKeysOfUser',
        'jobs',
        'usersByIds',
      ]);
    } finally {
      for (const name of names) delete own[name];
    }
  });

  test('sizes and cursors that are not acceptable', async () => {
    const codes = async (variables: object) => (await refused(PAGE, variables)).code;
    expect(await codes({ first: -1 })).toBe('BAD_USER_INPUT');
    expect(await codes({ first: 5_001 })).toBe('LIMIT_EXCEEDED');
    expect(await codes({ first: 1, last: 1 })).toBe('BAD_USER_INPUT');
    expect(await codes({ first: 1, after: 'nonsense' })).toBe('BAD_USER_INPUT');
    expect(await codes({ first: 1, after: 'x'.repeat(10_000) })).toBe('BAD_USER_INPUT');
    expect(await codes({ filter: { application: '\0' } })).toBe('BAD_USER_INPUT');
    expect(await codes({ filter: { ids: Array.from({ length: 1_001 }, () => 'job_1') } })).toBe(
      'LIMIT_EXCEEDED',
    );
    const { jobs } = await api.must<Page>(PAGE, { first: 1 });
    const otherOrder = { first: 1, after: jobs.pageInfo.endCursor, orderBy: { field: 'DEADLINE' } };
    expect(await codes(otherOrder)).toBe('BAD_USER_INPUT');
    expect((await api.must<Page>(PAGE, { first: 0 })).jobs.nodes).toEqual([]);
  });
});

describe('explanations', () => {
  test('why a job waits, and where it would go', async () => {
    // What other tests have left would go first, and be promised something too.
    await api.must('mutation { cancelJobs(input: { selection: { all: true } }) { jobIds } }');
    const { jobIds } = await submit([{ command: 'x', cpusPerTask: 4 }]);
    const why = `query ($id: ID!) { job(id: $id) { whyWaiting { code message numbers { name value } startsAt wouldChange } } }`;
    expect(await api.must(why, { id: jobIds[0] })).toMatchObject({
      job: { whyWaiting: { code: 'NO_SITE_UP' } },
    });
    const {
      createSite: { site },
    } = await api.must<{ createSite: { site: { id: string } } }>(
      'mutation { createSite(input: { name: "explain" }) { site { id } } }',
    );
    const {
      createMachine: { machine },
    } = await api.must<{ createMachine: { machine: { id: string } } }>(
      'mutation ($site: ID!) { createMachine(input: { siteId: $site, name: "m", cpus: 4, memoryMb: 100 }) { machine { id } } }',
      { site: site.id },
    );
    const { key } = await api.user('AGENT', unique('agent'), site.id);
    await api.serve(site.id, key);
    expect(await api.must(why, { id: jobIds[0] })).toMatchObject({ job: { whyWaiting: { code: 'READY' } } });

    const dry = `query ($job: ID, $spec: JobInput) { placement(jobId: $job, spec: $spec) { policyVersion priority reason startsAt earliestStart
      site { id } allocations { machine { id } tasks } candidates { site { id } eligible reason rank terms { name value } } } }`;
    const here = {
      site: { id: site.id },
      candidates: [{ site: { id: site.id }, eligible: true, rank: 1 }],
      allocations: [{ machine: { id: machine.id }, tasks: 1 }],
    };
    expect(await api.must(dry, { job: jobIds[0] })).toMatchObject({
      placement: { ...here, policyVersion: 1 },
    });
    // The first job has yet to get there, and takes the whole machine: nobody has said that it goes first.
    const { allocations: _, ...there } = here;
    expect(await api.must(dry, { spec: { command: 'x' } })).toMatchObject({
      placement: { ...there, startsAt: null, earliestStart: expect.any(String), allocations: [] },
    });
    expect(await api.must(dry, { spec: { command: 'x', cpusPerTask: 5 } })).toMatchObject({
      placement: {
        site: null,
        startsAt: null,
        priority: null,
        reason: 'NEVER_FITS_CPUS',
        candidates: [{ eligible: false, rank: null }],
      },
    });
    expect(await refused(dry)).toMatchObject({ code: 'BAD_USER_INPUT' });
    expect(await refused(dry, { spec: { command: '' } })).toMatchObject({
      code: 'BAD_USER_INPUT',
      message: expect.stringContaining('spec.command'),
    });
    await api.must('mutation ($ids: [ID!]) { holdJobs(input: { selection: { ids: $ids } }) { jobIds } }', {
      ids: jobIds,
    });
    expect(await api.must(dry, { job: jobIds[0] })).toMatchObject({ placement: here });
    await api.must('mutation ($ids: [ID!]) { cancelJobs(input: { selection: { ids: $ids } }) { jobIds } }', {
      ids: jobIds,
    });
    expect(await refused(dry, { job: jobIds[0] })).toMatchObject({ code: 'CONFLICT' });
    expect(await api.must(why, { id: jobIds[0] })).toEqual({ job: { whyWaiting: null } });

    // Under a policy that promises, the promised start is told; who comes later starts behind all that is promised.
    await api.must(
      `mutation ($site: ID!) { updateSite(input: { siteId: $site, localPolicy: { kind: "conservative", depth: 10 } }) { site { id } } }`,
      { site: site.id },
    );
    const shape = { command: 'x', cpusPerTask: 4, estimateS: 100 };
    const { jobIds: promised } = await submit([shape, shape, shape]);
    await schedule(api.parts);
    const { promises } = await api.parts.store.promises(Number(site.id.split('_')[1]));
    const instants = promises?.jobs.map(({ jobId, at }) => [`job_${jobId}`, at]);
    expect(instants).toEqual([
      [promised[1], expect.any(Number)],
      [promised[2], expect.any(Number)],
    ]);
    const { node } = await api.must<{
      node: { promises: { job: { id: string }; at: string; machines: object[] }[] };
    }>(
      `query ($site: ID!, $first: Int!) { node(id: $site) { ... on Site {
         promises(first: $first) { job { id } at machines { tasks machine { site { id } } } } } } }`,
      { site: site.id, first: 1 },
    );
    expect(node.promises).toEqual([
      {
        job: { id: promised[1] },
        at: new Date(Math.round((promises?.jobs[0]?.at ?? 0) * 1000)).toISOString(),
        machines: [{ tasks: 1, machine: { site: { id: site.id } } }],
      },
    ]);
    const last = promises?.jobs[1]?.at ?? 0;
    const startsAt = async (variables: object) =>
      Date.parse((await api.must<{ placement: { startsAt: string } }>(dry, variables)).placement.startsAt) /
      1000;
    expect(await startsAt({ job: promised[2] })).toBeCloseTo(last, 2);
    expect(await startsAt({ spec: shape })).toBeCloseTo(last + 100, 2);
    type Why = { job: { whyWaiting: { startsAt: string } } };
    const waits = (await api.must<Why>(why, { id: promised[2] })).job.whyWaiting;
    expect(Date.parse(waits.startsAt) / 1000).toBeCloseTo(last, 2);
  });
});
