/** Bulk groups: templates, parameters, following and cancelling as one. */
import fc from 'fast-check';
import { beforeEach, describe, expect, test } from 'vitest';
import { filled, filledChars, templateOf } from '../../src/api/services/template.js';
import { DEFAULT_POLICY } from '../../src/core/index.js';
import { cases } from '../support/seed.js';
import { type Json, unique, withApi } from './support/api.js';
import { follow, settled } from './support/follow.js';
import { schedule } from './support/schedule.js';

describe('texts with places', () => {
  const fill = (source: string, values: Record<string, string>): string =>
    filled(templateOf(source), (name) => values[name] as string);

  test('{x} is the parameter, {{x}} the text {x}, every other brace a text', () => {
    expect(fill('a{x}b{y_1}{x}', { x: '1', y_1: '{x}' })).toBe('a1b{x}1');
    expect(fill('{{x}} {{{x}}} {{HOME}}', { x: '1' })).toBe('{x} {{x}} {HOME}');
    for (const text of [
      '',
      '{',
      '}',
      '{}',
      '{ x }',
      '{1}',
      '{"a": [1]}',
      "awk '{print $1}'",
      '{a-b}',
      '{{',
      '{{}}',
      '{ä}',
    ])
      expect([text, fill(text, {})]).toEqual([text, text]);
    expect(templateOf('{a}{{b}}{c}{a}').names).toEqual(['a', 'c', 'a']);
  });

  test('escaping any text gives it back, and its length is known before it is made', () => {
    const escaped = (text: string) => text.replace(/\{([A-Za-z_][A-Za-z0-9_]*)\}/g, '{{$1}}');
    const text = fc
      .array(fc.constantFrom('{', '}', 'a', 'b1', ' ', '"', '$', '_'), { maxLength: 12 })
      .map((all) => all.join(''));
    fc.assert(
      fc.property(text, fc.string(), text, (before, value, after) => {
        // An escaped name within further braces would read otherwise: they are set apart by a blank.
        fc.pre(!/\{\{|\}\}/.test(before + after));
        expect(fill(escaped(before), {})).toBe(before);
        const template = templateOf(`${escaped(before)} {x} ${escaped(after)}`);
        const made = filled(template, () => value);
        expect(made).toBe(`${before} ${value} ${after}`);
        expect(filledChars(template, () => value)).toBe(made.length);
      }),
    );
  });
});

const api = withApi((config) => ({ ...config, limits: { ...config.limits, groupCharsMax: 40_000_000 } }));

beforeEach(() => {
  api.wakes.length = 0;
});

/** Where an operation does not ask for these, a refusal is an error of the answer. */
const ERRORS = /errors \{[^}]*\}/;
const SUBMIT = `mutation ($input: SubmitJobGroupInput!) { submitJobGroup(input: $input) {
  jobGroup { id name size state counts { state jobs } progress } jobIds repeated errors { index field code message } } }`;
interface Submitted {
  jobGroup: {
    id: string;
    name: string | null;
    size: number;
    state: string;
    counts: { state: string; jobs: number }[];
    progress: number;
  } | null;
  jobIds: string[];
  repeated: boolean;
  errors: { index: number; field: string; code: string; message: string }[];
}
const submit = async (input: object, key = api.adminKey) =>
  (await api.must<{ submitJobGroup: Submitted }>(SUBMIT, { input }, key)).submitJobGroup;
async function refused(query: string, variables: object = {}, key = api.adminKey) {
  const { errors } = await api.ask(query.replace(ERRORS, ''), variables, key);
  return { ...errors?.[0]?.extensions, message: errors?.[0]?.message };
}
const group = async (id: string, key = api.adminKey) =>
  (
    await api.must<{ jobGroup: Json | null }>(
      `{ jobGroup(id: "${id}") { state counts { state jobs } progress size } }`,
      {},
      key,
    )
  ).jobGroup;

describe('submitJobGroup', () => {
  test('takes for how long it may be idle, and says of jobs that they were canceled for it', async () => {
    const job = { template: { command: 'true', held: true }, count: 2 };
    for (const idleTimeoutS of [0, 59, 1e10])
      expect((await refused(SUBMIT, { input: { ...job, idleTimeoutS } })).message).toBe(
        `idleTimeoutS: ${idleTimeoutS} is not accepted; accepted: from 60 to 1000000000 seconds`,
      );
    const { jobGroup, jobIds } = await submit({ ...job, idleTimeoutS: 60 });
    const { timers, maxAttempts } = DEFAULT_POLICY;
    const { agentSilentS: silentAfterS, lostAfterS, onDeadlinePassed } = timers;
    const rules = { silentAfterS, lostAfterS, onDeadlinePassed, maxAttempts, runTimeGraceS: 60, limit: 100 };
    await api.parts.store.sweep({ ...rules, now: Date.now() / 1000 + 61 });
    expect(
      await api.must(
        `{ jobGroup(id: "${jobGroup?.id}") { idleTimeoutS state } job(id: "${jobIds[1]}") { state cause } }`,
      ),
    ).toEqual({
      jobGroup: { idleTimeoutS: 60, state: 'DONE' },
      job: { state: 'CANCELLED', cause: 'IDLE_TIMEOUT' },
    });
  });

  test('makes a job of each object of parameters, in order, with its place', async () => {
    const template = {
      command: '/bin/sh',
      name: 'run {seed}',
      arguments: ['-c', 'echo "{seed}" {{HOME}} {"a": 1}', '{index}'],
      environment: [{ name: 'SEED', value: '{seed}/{other}' }],
      workingDirectory: '/data/{other}',
      groupName: 'sweep',
      cpusPerTask: 2,
    };
    const parameters = [
      { seed: '17', other: 'a' },
      { seed: '{index} \\ "', other: '' },
    ];
    const { jobGroup, jobIds, errors, repeated } = await submit({
      name: 'sweep of seeds',
      template,
      parameters,
    });
    expect({ errors, repeated }).toEqual({ errors: [], repeated: false });
    expect(jobGroup).toEqual({
      id: expect.stringMatching(/^group_\d+$/),
      name: 'sweep of seeds',
      size: 2,
      state: 'OPEN',
      counts: [{ state: 'QUEUED', jobs: 2 }],
      progress: 0,
    });
    expect(api.wakes).toEqual(['root']);
    const id = jobGroup?.id as string;
    const found = await api.must<{ jobGroup: { jobs: { nodes: Json[] } } }>(
      `{ jobGroup(id: "${id}") { template user { name } submittedAt jobs { nodes {
           id name arguments environment { name value } workingDirectory groupName arrayIndex cpusPerTask group { id } } } } }`,
    );
    const same = { groupName: 'sweep', cpusPerTask: 2, group: { id } };
    expect(found.jobGroup).toMatchObject({
      template: { ...template, tasks: 1 },
      user: { name: 'admin' },
      jobs: {
        nodes: [
          {
            id: jobIds[0],
            name: 'run 17',
            arguments: ['-c', 'echo "17" {HOME} {"a": 1}', '0'],
            environment: [{ name: 'SEED', value: '17/a' }],
            workingDirectory: '/data/a',
            arrayIndex: 0,
            ...same,
          },
          {
            id: jobIds[1],
            name: 'run {index} \\ "',
            arguments: ['-c', 'echo "{index} \\ "" {HOME} {"a": 1}', '1'],
            environment: [{ name: 'SEED', value: '{index} \\ "/' }],
            workingDirectory: '/data/',
            arrayIndex: 1,
            ...same,
          },
        ],
      },
    });
    expect(
      await api.must(
        `{ node(id: "${id}") { __typename ... on JobGroup { size } } job(id: "${jobIds[0]}") { group { size } } }`,
      ),
    ).toEqual({
      node: { __typename: 'JobGroup', size: 2 },
      job: { group: { size: 2 } },
    });
  });

  test('or so many that differ in their place only', async () => {
    const { jobGroup, jobIds } = await submit({
      template: { command: 'x', arguments: ['{index}'] },
      count: 3,
    });
    expect(jobGroup).toMatchObject({ size: 3, name: null });
    const { jobs } = await api.must<{ jobs: { nodes: { arguments: string[] }[] } }>(
      `{ jobs(filter: { jobGroupId: "${jobGroup?.id}" }) { nodes { id arguments } } }`,
    );
    expect(jobs.nodes).toEqual(jobIds.map((id, i) => ({ id, arguments: [String(i)] })));
    expect(await api.must(`{ jobCount(filter: { jobGroupId: "${jobGroup?.id}" }) }`)).toEqual({
      jobCount: 3,
    });
    // Jobs of an ordinary submission are in no bulk group.
    const { submitJobs } = await api.must<{ submitJobs: { jobs: object[] } }>(
      'mutation { submitJobs(input: { jobs: [{ command: "x" }, { command: "y" }] }) { jobs { group { id } } } }',
    );
    expect(submitJobs.jobs).toEqual([{ group: null }, { group: null }]);
  });

  test('all or none: what is wrong is told with its job, field, value and what is accepted', async () => {
    const before = await api.must('{ jobCount jobGroups { nodes { id } } }');
    const faults = async (input: object) => {
      const { jobGroup, jobIds, errors } = await submit(input);
      expect({ jobGroup, jobIds }).toEqual({ jobGroup: null, jobIds: [] });
      expect(errors.every(({ code }) => code === 'BAD_USER_INPUT')).toBe(true);
      return errors.map(({ index, message }) => `${index} ${message}`);
    };
    const template = { command: 'x', arguments: ['{a}'], name: '{b}' };
    expect(
      await faults({
        template,
        parameters: [
          { a: '1', b: '2' },
          { a: '1' },
          { a: 1, b: '\0' },
          { a: '1', b: '2', c: 'unused', index: '4' },
          'text',
          null,
          ['a'],
        ].filter((one) => one !== null),
      }),
    ).toEqual([
      '1 parameters[1].b: missing; accepted: a text, because the template uses {b}',
      '2 parameters[2].b: "\\u0000" is not accepted; accepted: text without NUL and without unpaired surrogates',
      '2 parameters[2].a: 1 is not accepted; accepted: a text, because the template uses {a}',
      '3 parameters[3].c: "unused" is not accepted; accepted: only parameters that the template uses: {b}, {a}',
      '3 parameters[3].index: "4" is not accepted; accepted: no value for `index`, which is the index in the group',
      '4 parameters[4]: "text" is not accepted; accepted: an object with texts as values',
      '5 parameters[5]: ["a"] is not accepted; accepted: an object with texts as values',
    ]);
    expect(await faults({ template, count: 2 })).toEqual([
      '0 template: "{b}" is not accepted; accepted: only {index}, because `count` is given',
      '0 template: "{a}" is not accepted; accepted: only {index}, because `count` is given',
    ]);
    // What is wrong with the template is told once, what a parameter makes wrong for each job.
    expect(
      await faults({ template: { command: 'x', tasks: 0, arrayIndex: 1, estimateS: -1 }, count: 1 }),
    ).toEqual([
      '0 template.arrayIndex: 1 is not accepted; accepted: no value, because it is always the index in the group',
    ]);
    expect(await faults({ template: { command: 'x', tasks: 0, estimateS: -1 }, count: 5 })).toEqual([
      '0 template.tasks: 0 is not accepted; accepted: 1 to 100000',
      '0 template.estimateS: -1 is not accepted; accepted: 0.001 to 1000000000',
    ]);
    const places = { command: 'x', workingDirectory: '{d}' };
    expect(await faults({ template: places, parameters: [{ d: '/a' }, { d: 'b' }, { d: 'c' }] })).toEqual([
      '1 template.workingDirectory: "b" is not accepted; accepted: an absolute path',
      '2 template.workingDirectory: "c" is not accepted; accepted: an absolute path',
    ]);
    expect(
      await faults({ template: { command: 'x', inputs: [{ dataset: 'dataset_9999' }] }, count: 1 }),
    ).toEqual([
      '0 template.inputs[0].dataset: "dataset_9999" is not accepted; accepted: the id of a dataset',
    ]);
    const many = Array.from({ length: 2_000 }, () => ({}));
    expect(await faults({ template, parameters: many })).toHaveLength(1_000);
    expect(await api.must('{ jobCount jobGroups { nodes { id } } }')).toEqual(before);
    expect(api.wakes).toEqual([]);
  });

  test('sizes are bounded: jobs, and the texts that they make', async () => {
    const template = { command: 'x' };
    for (const input of [
      { template },
      { template, parameters: [], count: 1 },
      { template, parameters: [] },
      { template, count: 0 },
      { template, count: -1 },
      { template, count: 1, name: '' },
      { template, count: 1, idempotencyKey: '' },
    ])
      expect([input, await refused(SUBMIT, { input })]).toMatchObject([input, { code: 'BAD_USER_INPUT' }]);
    expect(await refused(SUBMIT, { input: { template, count: 100_001 } })).toMatchObject({
      code: 'LIMIT_EXCEEDED',
      field: 'count',
    });
    const many = Array.from({ length: 100_001 }, () => ({}));
    expect(await refused(SUBMIT, { input: { template, parameters: many } })).toMatchObject({
      code: 'LIMIT_EXCEEDED',
      field: 'parameters',
    });
    // A short body may stand for long texts: nothing of the size is made.
    const wide = { command: 'x', arguments: Array.from({ length: 500 }, () => '{x}'.repeat(100)) };
    expect(
      await refused(SUBMIT, { input: { template: wide, parameters: [{ x: 'x'.repeat(100_000) }] } }),
    ).toMatchObject({
      code: 'LIMIT_EXCEEDED',
      field: 'template',
      message: expect.stringContaining('40000000 characters'),
    });
  });

  test('an idempotency key gives the same group again, and an error with another payload', async () => {
    const { key } = await api.user('USER', unique('u'));
    const input = {
      name: 'n',
      template: { command: 'x', arguments: ['{a}'] },
      parameters: [{ a: '1' }, { a: '2' }],
      idempotencyKey: 'k',
    };
    const first = await submit(input, key);
    api.wakes.length = 0;
    expect(await submit(input, key)).toEqual({ ...first, repeated: true });
    expect(api.wakes).toEqual([]);
    for (const other of [
      { ...input, name: 'm' },
      { ...input, parameters: [{ a: '2' }, { a: '1' }] },
      { ...input, template: { ...input.template, tasks: 2 } },
    ])
      expect(await refused(SUBMIT, { input: other }, key)).toMatchObject({ code: 'IDEMPOTENCY_KEY_REUSED' });
    const jobs =
      'mutation { submitJobs(input: { idempotencyKey: "k", jobs: [{ command: "x" }] }) { jobIds } }';
    expect(await refused(jobs, {}, key)).toMatchObject({ code: 'IDEMPOTENCY_KEY_REUSED' });
    const together = await Promise.all(
      Array.from({ length: 6 }, () => submit({ ...input, idempotencyKey: 'race' }, key)),
    );
    expect(new Set(together.map(({ jobGroup }) => jobGroup?.id)).size).toBe(1);
    expect(together.filter(({ repeated }) => !repeated)).toHaveLength(1);
  });

  test('a quota counts the whole group, and says when it frees up', async () => {
    const { id, key } = await api.user('USER', unique('u'));
    await api.must('mutation ($input: UpdateQuotaInput!) { updateQuota(input: $input) { user { id } } }', {
      input: { userId: id, submissionLimit: 10, submissionPeriodS: 3600, reason: 'test' },
    });
    const template = { command: 'x' };
    expect((await submit({ template, count: 6 }, key)).jobIds).toHaveLength(6);
    const asked = Date.now();
    const answer = await refused(SUBMIT, { input: { template, count: 5 } }, key);
    expect(answer).toMatchObject({
      code: 'QUOTA_EXCEEDED',
      limit: 10,
      used: 6,
      asked: 5,
      periodS: 3600,
    });
    // When the first six leave the period.
    const freesAt = Date.parse(String((answer as { freesAt?: string }).freesAt));
    expect(freesAt).toBeGreaterThan(asked + 3_500_000);
    expect(freesAt).toBeLessThanOrEqual(Date.now() + 3_600_000);
    expect(await refused(SUBMIT, { input: { template, count: 11 } }, key)).toMatchObject({
      code: 'QUOTA_EXCEEDED',
      freesAt: null,
    });
    expect((await submit({ template, count: 4 }, key)).jobIds).toHaveLength(4);
    expect(await api.must('{ jobCount viewer { submissionQuota { used } } }', {}, key)).toEqual({
      jobCount: 10,
      viewer: { submissionQuota: { used: 10 } },
    });
  });
});

describe('a group', () => {
  test('is followed as a whole: counts, progress and state', async () => {
    const {
      createSite: { site },
    } = await api.must<{ createSite: { site: { id: string } } }>(
      `mutation { createSite(input: { name: "${unique('site')}" }) { site { id } } }`,
    );
    await api.must(
      `mutation { createMachine(input: { siteId: "${site.id}", name: "m", cpus: 2, memoryMb: 100 }) { machine { id } } }`,
    );
    const agent = await api.user('AGENT', unique('agent'), site.id);
    const agentId = await api.serve(site.id, agent.key);
    const { jobGroup, jobIds } = await submit({ template: { command: 'x', boost: 1000 }, count: 4 });
    const id = jobGroup?.id as string;
    const whole = follow<{ state: string; counts: { state: string; jobs: number }[]; progress: number }>(
      api.subscriber(),
      'subscription ($id: ID!) { jobGroupUpdated(jobGroupId: $id) { state counts { state jobs } progress } }',
      { id },
    );
    await expect
      .poll(() => whole.got)
      .toEqual([{ state: 'OPEN', counts: [{ state: 'QUEUED', jobs: 4 }], progress: 0 }]);
    const { latestCursor: after } = await api.must<{ latestCursor: string }>('{ latestCursor }');
    const news = follow<{ job: { id: string; group: { id: string } }; event: { toState: string } }>(
      api.subscriber(),
      `subscription ($filter: JobFilter, $after: String) { jobUpdated(filter: $filter, after: $after) {
        event { toState } job { id group { id } } } }`,
      { filter: { group: id, states: ['DISPATCHED', 'ASSIGNED'] }, after },
    );
    await schedule(api.parts);
    await expect
      .poll(() => news.got.map(({ event }) => event.toState).sort())
      .toEqual(['ASSIGNED', 'ASSIGNED', ...Array(4).fill('DISPATCHED')]);
    expect(new Set(news.got.map(({ job }) => job.group.id))).toEqual(new Set([id]));
    expect(new Set(news.got.map(({ job }) => job.id))).toEqual(new Set(jobIds));
    expect(await group(id)).toEqual({
      state: 'OPEN',
      counts: [
        { state: 'DISPATCHED', jobs: 2 },
        { state: 'ASSIGNED', jobs: 2 },
      ],
      progress: 0,
      size: 4,
    });
    const end = async (job: string | undefined, exitCode: number) =>
      api.must(
        'mutation ($site: ID!, $agent: ID!, $reports: [RunReportInput!]!) { reportRuns(site: $site, agent: $agent, reports: $reports) { results } }',
        {
          site: site.id,
          agent: agentId,
          reports: [
            {
              job,
              epoch: 1,
              phase: 'ENDED',
              at: new Date().toISOString(),
              exitCode,
              cause: exitCode === 0 ? 'EXITED_ZERO' : 'EXITED_NONZERO',
            },
          ],
        },
        agent.key,
      );
    await end(jobIds[0], 0);
    await end(jobIds[1], 1);
    expect(await group(id)).toEqual({
      state: 'OPEN',
      counts: [
        { state: 'DISPATCHED', jobs: 2 },
        { state: 'COMPLETED', jobs: 1 },
        { state: 'FAILED', jobs: 1 },
      ],
      progress: 0.5,
      size: 4,
    });
    await schedule(api.parts);
    const { cancelJobGroup } = await api.must<{ cancelJobGroup: Json }>(
      `mutation { cancelJobGroup(input: { jobGroupId: "${id}" }) { cancelled jobGroup { id counts { state jobs } } } }`,
    );
    expect(cancelJobGroup).toEqual({
      cancelled: 2,
      jobGroup: {
        id,
        counts: [
          { state: 'CANCELLING', jobs: 2 },
          { state: 'COMPLETED', jobs: 1 },
          { state: 'FAILED', jobs: 1 },
        ],
      },
    });
    expect(api.wakes).toContain(Number(site.id.split('_')[1]));
    expect(await api.must('{ audit(first: 1) { nodes { action target after } } }')).toEqual({
      audit: { nodes: [{ action: 'cancelJobGroup', target: id, after: { jobs: 2 } }] },
    });
    await end(jobIds[2], 0);
    await end(jobIds[3], 1);
    expect(await group(id)).toMatchObject({ state: 'DONE', progress: 1 });
    // The latest says everything, however many changes there were before it, and nothing is said twice.
    const last = {
      state: 'DONE',
      counts: [
        { state: 'COMPLETED', jobs: 2 },
        { state: 'FAILED', jobs: 1 },
        { state: 'CANCELLED', jobs: 1 },
      ],
      progress: 1,
    };
    await expect.poll(() => whole.got.at(-1)).toEqual(last);
    expect(new Set(whole.got.map((one) => JSON.stringify(one))).size).toBe(whole.got.length);
    whole.stop();
    expect(
      await api.must(`mutation { cancelJobGroup(input: { jobGroupId: "${id}" }) { cancelled } }`),
    ).toEqual({
      cancelJobGroup: { cancelled: 0 },
    });
  });

  test("is its owner's, operators' and administrators'", async () => {
    const [one, other] = [await api.user('USER', unique('u')), await api.user('USER', unique('u'))];
    const operator = await api.user('OPERATOR', unique('o'));
    const ids: string[] = [];
    for (let i = 0; i < 3; i++)
      ids.unshift((await submit({ template: { command: 'x' }, count: 2 }, one.key)).jobGroup?.id as string);
    const [id] = ids as [string];
    const stranger = follow(
      api.subscriber(other.key),
      'subscription ($id: ID!) { jobGroupUpdated(jobGroupId: $id) { id } }',
      { id },
    );
    await settled(stranger);
    expect([stranger.got, JSON.stringify(stranger.end)]).toEqual([[], expect.stringContaining('NOT_FOUND')]);
    const cancel = `mutation { cancelJobGroup(input: { jobGroupId: "${id}" }) { cancelled } }`;
    expect(await group(id, one.key)).toMatchObject({ size: 2 });
    expect(await group(id, operator.key)).toMatchObject({ size: 2 });
    expect(await group(id, other.key)).toBeNull();
    expect(
      await api.must(
        `{ node(id: "${id}") { id } jobGroups { nodes { id } } jobs(filter: { jobGroupId: "${id}" }) { nodes { id } } }`,
        {},
        other.key,
      ),
    ).toEqual({
      node: null,
      jobGroups: { nodes: [] },
      jobs: { nodes: [] },
    });
    expect(await refused(cancel, {}, other.key)).toMatchObject({ code: 'NOT_FOUND' });
    expect(await refused(cancel.replace(id, 'job_1'), {}, one.key)).toMatchObject({
      code: 'BAD_USER_INPUT',
      field: 'jobGroupId',
    });

    const query =
      'query ($after: String) { jobGroups(first: 2, after: $after) { nodes { id } pageInfo { hasNextPage endCursor } } }';
    interface Groups {
      jobGroups: { nodes: { id: string }[]; pageInfo: { hasNextPage: boolean; endCursor: string } };
    }
    const { jobGroups } = await api.must<Groups>(query, {}, one.key);
    expect(jobGroups).toMatchObject({
      nodes: [{ id: ids[0] }, { id: ids[1] }],
      pageInfo: { hasNextPage: true },
    });
    expect(await api.must(query, { after: jobGroups.pageInfo.endCursor }, one.key)).toMatchObject({
      jobGroups: { nodes: [{ id: ids[2] }], pageInfo: { hasNextPage: false } },
    });
    const jobs = `query ($after: String) { jobGroup(id: "${id}") { jobs(first: 1, after: $after) { nodes { id } pageInfo { hasNextPage endCursor } } } }`;
    const page = await api.must<{
      jobGroup: { jobs: { nodes: { id: string }[]; pageInfo: { endCursor: string } } };
    }>(jobs, {}, one.key);
    expect(await api.must(jobs, { after: page.jobGroup.jobs.pageInfo.endCursor }, one.key)).toMatchObject({
      jobGroup: {
        jobs: {
          nodes: [{ id: expect.not.stringContaining(page.jobGroup.jobs.nodes[0]?.id as string) }],
          pageInfo: { hasNextPage: false },
        },
      },
    });

    // Actions on a part of it.
    const hold = `mutation { holdJobs(input: { selection: { filter: { jobGroupId: "${id}" } } }) { jobIds } }`;
    expect((await api.must<{ holdJobs: { jobIds: string[] } }>(hold, {}, other.key)).holdJobs.jobIds).toEqual(
      [],
    );
    expect(
      (await api.must<{ holdJobs: { jobIds: string[] } }>(hold, {}, one.key)).holdJobs.jobIds,
    ).toHaveLength(2);
    expect(await api.must(cancel, {}, one.key)).toEqual({ cancelJobGroup: { cancelled: 2 } });
    expect(await api.must(`{ jobs(filter: { jobGroupId: "${id}" }) { nodes { cause } } }`)).toEqual({
      jobs: { nodes: [{ cause: 'CANCELLED_BY_USER' }, { cause: 'CANCELLED_BY_USER' }] },
    });
  });
});

/** As many as a submission may have, all of them where all cases are tried. */
const MANY = cases(100_000);

/** Last: the feed takes a while to walk along its events. */
describe(`a group of ${MANY} jobs`, () => {
  test('is submitted in one request, and cancelled in one', async () => {
    // Each of 300 bytes: as many as the default size of a request is said to take.
    const fileOf = (i: number): string => `/data/${'x'.repeat(250)}-${i}.dat`;
    const parameters = Array.from({ length: MANY }, (_, i) => ({ seed: `seed-${i}`, file: fileOf(i) }));
    const template = { command: 'model', arguments: ['--seed', '{seed}', '{file}'], name: 'm{index}' };
    const { errors, jobGroup, jobIds } = await submit({ name: 'large', template, parameters });
    expect(errors).toEqual([]);
    expect(jobGroup).toMatchObject({
      size: MANY,
      counts: [{ state: 'QUEUED', jobs: MANY }],
      progress: 0,
      state: 'OPEN',
    });
    expect(new Set(jobIds).size).toBe(MANY);
    const last = jobIds.at(-1);
    expect(await api.must(`{ job(id: "${last}") { name arrayIndex arguments } }`)).toEqual({
      job: {
        name: `m${MANY - 1}`,
        arrayIndex: MANY - 1,
        arguments: ['--seed', `seed-${MANY - 1}`, fileOf(MANY - 1)],
      },
    });
    const cancel = `mutation { cancelJobGroup(input: { jobGroupId: "${jobGroup?.id}" }) { cancelled jobGroup { state progress counts { state jobs } } } }`;
    expect(await api.must(cancel)).toEqual({
      cancelJobGroup: {
        cancelled: MANY,
        jobGroup: { state: 'DONE', progress: 1, counts: [{ state: 'CANCELLED', jobs: MANY }] },
      },
    });
  });
});
