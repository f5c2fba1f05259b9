import { afterEach, beforeAll, expect, test } from 'vitest';
import { PROTOCOL } from '../../src/agent/agent.js';
import { errorOf } from '../../src/client/errors.js';
import { type Json, unique, withApi } from './support/api.js';
import { schedule } from './support/schedule.js';

const api = withApi();
let site = '';
let siteNumber = 0;
let machine = '';
let agent = '';
let agentId = '';

beforeAll(async () => {
  const { createSite } = await api.must<{ createSite: { site: { id: string } } }>(
    'mutation { createSite(input: { name: "s" }) { site { id } } }',
  );
  site = createSite.site.id;
  siteNumber = Number(site.split('_')[1]);
  const { createMachine } = await api.must<{ createMachine: { machine: { id: string } } }>(
    `mutation { createMachine(input: { siteId: "${site}", name: "m", cpus: 64, memoryMb: 1000 }) { machine { id } } }`,
  );
  machine = createMachine.machine.id;
  agent = (await api.user('AGENT', 'agent', site)).key;
});

const submit = async (jobs: object[]): Promise<string[]> => {
  const query = 'mutation ($input: SubmitJobsInput!) { submitJobs(input: $input) { jobIds } }';
  return (await api.must<{ submitJobs: { jobIds: string[] } }>(query, { input: { jobs } })).submitJobs.jobIds;
};
const report = async (reports: object[], key = agent): Promise<string[]> => {
  const query =
    'mutation ($site: ID!, $agent: ID!, $reports: [RunReportInput!]!) { reportRuns(site: $site, agent: $agent, reports: $reports) { results } }';
  return (
    await api.must<{ reportRuns: { results: string[] } }>(query, { site, agent: agentId, reports }, key)
  ).reportRuns.results;
};
const heartbeat = async () => {
  agentId = await api.serve(site, agent);
};
const now = () => new Date().toISOString();

interface Batch {
  cursor: string;
  complete: boolean;
  part: string | null;
  assignments: ({ job: string; epoch: number; action: string } & Json)[];
}
const ASSIGNMENTS = `subscription ($site: ID!, $agent: ID!, $after: String) { assignments(site: $site, agent: $agent, after: $after) { cursor complete part assignments {
  job epoch action command arguments environment workingDirectory tasks cpusPerTask memoryMbPerTask licenses runTimeLimitS
  arrayIndex application plannedS simulatedS simulatedIoS machines { machine name tasks } } } }`;
const stops: (() => void)[] = [];
// What later tests assign would be sent to each that still listens.
afterEach(() => {
  for (const stop of stops.splice(0)) stop();
});
function assignments(after?: string) {
  const batches: Batch[] = [];
  const stop = api.subscriber(agent).subscribe<{ assignments: Batch }>(
    { query: ASSIGNMENTS, variables: { site, agent: agentId, after } },
    {
      next: ({ data }) => void (data && batches.push(data.assignments)),
      error: () => {},
      complete: () => {},
    },
  );
  stops.push(stop);
  return { batches, all: () => batches.flatMap((batch) => batch.assignments), stop };
}

test('a machine counts from its first heartbeat, and whoever waits for it is woken', async () => {
  const look = `{ node(id: "${machine}") { ... on Machine { silent heartbeatAt site { agentSeenAt } } } }`;
  expect(await api.must(look)).toEqual({
    node: { silent: true, heartbeatAt: null, site: { agentSeenAt: null } },
  });
  api.wakes.length = 0;
  await heartbeat();
  expect(api.wakes.sort()).toEqual([siteNumber, 'root']);
  expect(await api.must(look)).toMatchObject({
    node: { silent: false, heartbeatAt: expect.any(String), site: { agentSeenAt: expect.any(String) } },
  });
  api.wakes.length = 0;
  await heartbeat();
  expect(api.wakes).toEqual([]);
});

test("a run's whole life: assigned, told, started, ended, shown with its outputs and decisions", async () => {
  await heartbeat();
  await api.must(`mutation { updateSite(input: { siteId: "${site}", maxLimitS: 900 }) { site { id } } }`);
  const told = assignments();
  await expect.poll(() => told.batches.length).toBe(1);
  expect(told.batches[0]).toMatchObject({ complete: true, assignments: [] });
  const [id] = await submit([
    {
      command: 'sh',
      arguments: ['-c', 'x'],
      environment: [{ name: 'A', value: '1' }],
      estimateS: 60,
      simulatedRunS: 5,
      simulatedIoS: 2,
      arrayIndex: 2,
    },
  ]);
  await schedule(api.parts);
  await expect.poll(() => told.all()).toHaveLength(1);
  expect(told.all()[0]).toMatchObject({
    job: id,
    epoch: 1,
    action: 'START',
    command: 'sh',
    arguments: ['-c', 'x'],
    environment: { A: '1' },
    machines: [{ machine, name: 'm', tasks: 1 }],
    plannedS: 60,
    simulatedS: 5,
    simulatedIoS: 2,
    arrayIndex: 2,
  });
  // It keeps the limit that it was given: the site's then.
  expect(told.all()[0]?.runTimeLimitS).toBe(900);
  await api.must(`mutation { updateSite(input: { siteId: "${site}", maxLimitS: null }) { site { id } } }`);
  const again = assignments();
  await expect.poll(() => again.all().map(({ runTimeLimitS }) => runTimeLimitS)).toEqual([900]);
  again.stop();
  const started = { job: id, epoch: 1, phase: 'STARTED', at: now() };
  expect(await report([started])).toEqual(['ACCEPTED']);
  expect(await report([started])).toEqual(['REPEATED']);
  const sites = `{ sites { nodes { queuedJobs runningJobs cpus cpusUsed } } }`;
  expect(await api.must(sites)).toEqual({
    sites: { nodes: [{ queuedJobs: 0, runningJobs: 1, cpus: 64, cpusUsed: 1 }] },
  });
  const resumed = assignments('0');
  await expect.poll(() => resumed.all()).toMatchObject([{ job: id, action: 'CONTINUE' }]);

  api.wakes.length = 0;
  const ended = {
    ...{
      job: id,
      epoch: 1,
      phase: 'ENDED',
      at: now(),
      exitCode: 0,
      cause: 'EXITED_ZERO',
      cpuS: 1.5,
      ioWaitS: 0,
    },
    outputs: [
      { stream: 'STDOUT', text: 'hello\n', bytes: 6 },
      { stream: 'STDERR', text: 'nul \u0000 here', bytes: 1e10 },
    ],
  };
  expect(await report([ended])).toEqual(['ACCEPTED']);
  expect(api.wakes).toContain(siteNumber);
  expect(await report([ended, { ...ended, epoch: 2 }, { ...started, job: 'job_99999999' }])).toEqual([
    'REPEATED',
    'UNKNOWN_RUN',
    'UNKNOWN_RUN',
  ]);
  const { job } = await api.must<{
    job: Json;
  }>(`{ job(id: "${id}") { state exitCode cause startedAt endedAt epoch
    stdout: output { text bytes truncated } stderr: output(stream: STDERR, epoch: 1) { text bytes truncated } none: output(epoch: 2) { text }
    runs { epoch site { name } allocations { machine { name } tasks } licenses { id } policyVersion exitCode cause cpuS ioWaitS plannedS runTimeLimitS }
    decisions { nodes { kind reason message policyVersion cycle site { name } from { id } candidates { site { name } eligible rank terms { name value } } job { id } } }
    events { nodes { sequence fromState toState } } } }`);
  expect(job).toMatchObject({
    ...{ state: 'COMPLETED', exitCode: 0, cause: 'EXITED_ZERO', epoch: 1, none: null },
    stdout: { text: 'hello\n', bytes: 6, truncated: false },
    stderr: { text: 'nul \ufffd here\n[9999999990 bytes left out]\n', bytes: 1e10, truncated: true },
    runs: [
      {
        epoch: 1,
        site: { name: 's' },
        allocations: [{ machine: { name: 'm' }, tasks: 1 }],
        policyVersion: 1,
        cause: 'EXITED_ZERO',
        cpuS: 1.5,
        ioWaitS: 0,
        runTimeLimitS: 900,
      },
    ],
    decisions: {
      nodes: [
        {
          kind: 'DISPATCH',
          site: { name: 's' },
          from: null,
          candidates: [{ site: { name: 's' }, eligible: true, rank: 1 }],
          job: { id },
        },
        { kind: 'START', reason: 'HEAD', site: { name: 's' }, candidates: [] },
      ],
    },
  });
  const { nodes } = job.events as { nodes: { toState: string }[] };
  expect(nodes.map(({ toState }) => toState)).toEqual([
    'QUEUED',
    'DISPATCHED',
    'ASSIGNED',
    'RUNNING',
    'COMPLETED',
  ]);
});

test('of a job that was started very often the latest runs are shown, and those before on request', async () => {
  await heartbeat();
  const [job] = await submit([{ command: 'x' }]);
  await schedule(api.parts);
  expect(await report([{ job, epoch: 1, phase: 'STARTED', at: now() }])).toEqual(['ACCEPTED']);
  expect(
    await report([{ job, epoch: 1, phase: 'ENDED', at: now(), exitCode: 0, cause: 'EXITED_ZERO' }]),
  ).toEqual(['ACCEPTED']);
  const id = Number(job?.split('_')[1]);
  await api.db.pool.query(
    `INSERT INTO runs SELECT (jsonb_populate_record(r, jsonb_build_object('epoch', g))).*
       FROM runs r, generate_series(2, 250) g WHERE r.job_id = $1`,
    [id],
  );
  const epochs = async (before: number | null): Promise<number[]> => {
    const found = await api.must<{ job: { runs: { epoch: number }[] } }>(
      'query ($id: ID!, $before: Int) { job(id: $id) { runs(beforeEpoch: $before) { epoch } } }',
      { id: job, before },
    );
    return found.job.runs.map(({ epoch }) => epoch);
  };
  const span = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, i) => from + i);
  expect(await epochs(null)).toEqual(span(151, 250));
  expect(await epochs(151)).toEqual(span(51, 150));
  expect(await epochs(51)).toEqual(span(1, 50));
  expect(await epochs(1)).toEqual([]);
});

test('whether a run that ends badly is the last is decided by the policy in force, however new', async () => {
  await heartbeat();
  const attempts = async (maxAttempts: number) => {
    const { policy } = await api.must<{ policy: { version: number; document: object } }>(
      '{ policy { version document } }',
    );
    await api.must(
      'mutation ($input: UpdatePolicyInput!) { updatePolicy(input: $input) { policy { version } } }',
      {
        input: {
          ...{ expectedVersion: policy.version, reason: 'attempts' },
          document: { ...policy.document, maxAttempts },
        },
      },
    );
  };
  const ends = async (change: () => Promise<void>): Promise<unknown> => {
    const [job] = await submit([{ command: 'x' }]);
    await schedule(api.parts);
    const run = { job, epoch: 1 };
    // With this report the policy is remembered.
    expect(await report([{ ...run, phase: 'STARTED', at: now() }])).toEqual(['ACCEPTED']);
    await change();
    expect(await report([{ ...run, phase: 'ENDED', at: now(), cause: 'LOST' }])).toEqual(['ACCEPTED']);
    return (await api.must<{ job: { state: string } }>(`{ job(id: "${job}") { state } }`)).job.state;
  };
  expect(await ends(() => attempts(1))).toBe('FAILED');
  expect(await ends(() => attempts(3))).toBe('QUEUED');
  await api.must('mutation { cancelJobs(input: { selection: { all: true } }) { jobs { id } } }');
});

test('a cancelled run is told to stop, and ends as cancelled', async () => {
  await heartbeat();
  const told = assignments();
  const [id] = (await submit([{ command: 'sleep' }])) as [string];
  await schedule(api.parts);
  await expect.poll(() => told.all()).toMatchObject([{ job: id, action: 'START' }]);
  await report([{ job: id, epoch: 1, phase: 'STARTED', at: now() }]);
  await api.must(`mutation { cancelJobs(input: { selection: { ids: ["${id}"] } }) { jobIds } }`);
  await expect.poll(() => told.all().at(-1)).toMatchObject({ job: id, epoch: 1, action: 'STOP' });
  await report([{ job: id, epoch: 1, phase: 'ENDED', at: now(), signal: 'SIGTERM', cause: 'SIGNALLED' }]);
  expect(await api.must(`{ job(id: "${id}") { state runs { signal cause } } }`)).toMatchObject({
    job: { state: 'CANCELLED', runs: [{ signal: 'SIGTERM' }] },
  });
});

test('what was measured is kept of runs and tasks; of a run with tasks the sum, the most or the mean', async () => {
  await heartbeat();
  const [one, two] = (await submit([{ command: 'one' }, { command: 'two', tasks: 2 }])) as [string, string];
  await schedule(api.parts);
  const methods = {
    cpuMethod: 'PROC',
    peakMemoryMethod: 'SAMPLES',
    bytesMethod: 'PROC',
    ioWaitMethod: 'SAMPLES',
  };
  const used = (times: number) => ({
    ...{
      cpuS: times,
      peakMemoryMb: 10 * times,
      readMb: 20 * times,
      writtenMb: 30 * times,
      ioWaitS: 4 * times,
      deviceS: 5 * times,
      deviceMemoryMb: 50 * times,
    },
    ...methods,
  });
  const end = (job: string, times: number) => ({
    ...{ job, epoch: 1, phase: 'ENDED', at: now(), cause: 'EXITED_ZERO', exitCode: 0, ...used(times) },
  });
  expect(await report([end(one, 1), { ...end(two, 1), task: 0 }, { ...end(two, 3), task: 1 }])).toEqual([
    ...['ACCEPTED', 'ACCEPTED', 'ACCEPTED'],
  ]);
  const fields = Object.keys(used(1)).join(' ');
  const kept = await api.must(
    `{ one: job(id: "${one}") { runs { ${fields} } } two: job(id: "${two}") { runs { ${fields} tasks(first: 2) { cpuS peakMemoryMb } } } }`,
  );
  expect(kept).toMatchObject({
    one: { runs: [used(1)] },
    two: {
      runs: [
        {
          ...{ ...used(1), cpuS: 4, peakMemoryMb: 30, readMb: 80, writtenMb: 120, ioWaitS: 8 },
          ...{ deviceS: 20, deviceMemoryMb: 150 },
        },
      ],
    },
  });
});

test('nothing is missed between two subscriptions, and a cursor that is too old gets the whole list', async () => {
  await heartbeat();
  const first = assignments();
  await expect.poll(() => first.batches.length).toBe(1);
  first.stop();
  const ids = await submit(Array.from({ length: 5 }, () => ({ command: 'x' })));
  await schedule(api.parts);
  const second = assignments(first.batches[0]?.cursor);
  await expect
    .poll(() =>
      second
        .all()
        .map(({ job }) => job)
        .sort(),
    )
    .toEqual([...ids].sort());
  expect(second.batches.some((batch) => batch.complete)).toBe(false);
  const latest = await api.must<{ latestCursor: string }>('{ latestCursor }');
  await api.db.pool.query('UPDATE events_horizon SET id = $1', [latest.latestCursor]);
  const third = assignments('1');
  await expect.poll(() => third.batches.length).toBe(1);
  expect(third.batches[0]?.complete).toBe(true);
  expect(
    third
      .all()
      .map(({ job }) => job)
      .sort(),
  ).toEqual([...ids].sort());
  await report(
    ids.map((job) => ({ job, epoch: 1, phase: 'ENDED', at: now(), exitCode: 1, cause: 'EXITED_NONZERO' })),
  );
});

test('a thousand reports in one request', async () => {
  await heartbeat();
  const ids: string[] = [];
  for (let i = 0; i < 8; i++) {
    const some = await submit(Array.from({ length: 64 }, () => ({ command: 'x' })));
    await schedule(api.parts);
    ids.push(...some);
    if (i < 7)
      await report(
        some.map((job) => ({ job, epoch: 1, phase: 'ENDED', at: now(), exitCode: 0, cause: 'EXITED_ZERO' })),
      );
  }
  const last = ids.slice(-64);
  const both = last.flatMap((job) => [
    { job, epoch: 1, phase: 'STARTED', at: now() },
    { job, epoch: 1, phase: 'ENDED', at: now(), exitCode: 0, cause: 'EXITED_ZERO' },
  ]);
  const old = ids
    .slice(0, 448)
    .map((job) => ({ job, epoch: 1, phase: 'ENDED', at: now(), exitCode: 0, cause: 'EXITED_ZERO' }));
  const results = await report([...both, ...old, ...old.slice(0, 1_000 - both.length - old.length)]);
  expect(results).toHaveLength(1_000);
  expect(new Set(results.slice(0, 128))).toEqual(new Set(['ACCEPTED']));
  expect(new Set(results.slice(128))).toEqual(new Set(['REPEATED']));
  const { errors } = await api.ask(
    'mutation ($site: ID!, $agent: ID!, $reports: [RunReportInput!]!) { reportRuns(site: $site, agent: $agent, reports: $reports) { results } }',
    { site, agent: agentId, reports: [...both, ...old, ...old] },
    agent,
  );
  expect(errors?.[0]?.extensions.code).toBe('LIMIT_EXCEEDED');
});

test('reports that say nothing clear are refused, with the field', async () => {
  const codes = async (more: object) => {
    const { errors } = await api.ask(
      'mutation ($site: ID!, $agent: ID!, $reports: [RunReportInput!]!) { reportRuns(site: $site, agent: $agent, reports: $reports) { results } }',
      {
        site,
        agent: agentId,
        reports: [{ job: 'job_1', epoch: 1, phase: 'ENDED', at: now(), cause: 'LOST', ...more }],
      },
      agent,
    );
    return errors?.[0]?.message ?? 'accepted';
  };
  expect(await codes({ cause: null })).toContain('reports[0].cause');
  expect(await codes({ job: 'site_1' })).toContain('reports[0].job');
  expect(await codes({ epoch: 0 })).toContain('reports[0].epoch');
  expect(await codes({ signal: '9' })).toContain('reports[0].signal');
  expect(await codes({ cpuS: -1 })).toContain('reports[0].cpuS');
  const step = { number: 0, name: 'a', tasks: 1, machines: 1, cpus: 1, startedAt: now() };
  expect(await codes({ steps: [step, step] })).toContain('reports[0].steps[1].number');
  expect(await codes({ steps: [{ ...step, number: -1 }] })).toContain('reports[0].steps[0].number');
  expect(await codes({ steps: [{ ...step, tasks: 0 }] })).toContain('reports[0].steps[0].tasks');
  expect(await codes({ steps: [{ ...step, signal: '9' }] })).toContain('reports[0].steps[0].signal');
  const many = Array.from({ length: 1_001 }, (_, number) => ({ ...step, number }));
  expect(await codes({ steps: many })).toContain('reports[0].steps');
  expect(await codes({ outputs: [{ stream: 'STDOUT', text: '', bytes: -1 }] })).toContain(
    'reports[0].outputs[0].bytes',
  );
});

test('a field that a service of an earlier release does not have is told apart from one that is wrong', async () => {
  const refused = async (more: object) => {
    const { errors } = await api.ask(
      'mutation ($site: ID!, $agent: ID!, $reports: [RunReportInput!]!) { reportRuns(site: $site, agent: $agent, reports: $reports) { results } }',
      {
        ...{ site, agent: agentId },
        reports: [{ job: 'job_1', epoch: 1, phase: 'ENDED', at: now(), cause: 'LOST', ...more }],
      },
      agent,
    );
    return errorOf(errors!);
  };
  expect((await refused({ stepsToCome: [{ number: 0 }] })).lacksField('stepsToCome')).toBe(true);
  expect((await refused({ steps: [{ number: 0 }] })).lacksField('steps')).toBe(false);
  expect((await refused({ steps: [{ number: 'Field "steps" is not' }] })).lacksField('steps')).toBe(false);
});

test('steps of a run come with its end, once, and are read in pages by who may see the job', async () => {
  await heartbeat();
  const [id] = await submit([{ command: 'true' }]);
  await schedule(api.parts);
  const at = now();
  const step = (number: number) => ({
    ...{ number, name: number === 1 ? 'n'.repeat(300) : `step${number}`, tasks: 2, machines: 1, cpus: 4 },
    ...{ startedAt: at, endedAt: number === 2 ? null : at, exitCode: number === 2 ? null : number },
    signal: number === 1 ? 'SIGHUP' : null,
  });
  const end = { job: id, epoch: 1, phase: 'ENDED', at, exitCode: 0, cause: 'EXITED_ZERO' };
  const started = { job: id, epoch: 1, phase: 'STARTED', at, steps: [step(9)] };
  expect(await report([started, { ...end, steps: [step(2), step(0), step(1)] }])).toEqual([
    ...['ACCEPTED', 'ACCEPTED'],
  ]);
  expect(await report([{ ...end, steps: [step(3)] }])).toEqual(['REPEATED']);
  const STEPS = `query ($id: ID!, $first: Int, $after: String) { job(id: $id) { runs { all: steps { nodes { number } }
    steps(first: $first, after: $after) { nodes { number task name tasks machines cpus startedAt endedAt exitCode signal } pageInfo { hasNextPage endCursor } } } } }`;
  interface Steps {
    job: {
      runs: { all: Json; steps: { nodes: Json[]; pageInfo: { hasNextPage: boolean; endCursor: string } } }[];
    };
  }
  const first = (await api.must<Steps>(STEPS, { id, first: 2 })).job.runs[0]!;
  expect(first.all).toEqual({ nodes: [{ number: 0 }, { number: 1 }, { number: 2 }] });
  expect(first.steps.nodes).toEqual([
    {
      ...{ number: 0, task: 0, name: 'step0', tasks: 2, machines: 1, cpus: 4, exitCode: 0, signal: null },
      ...{ startedAt: expect.any(String), endedAt: expect.any(String) },
    },
    expect.objectContaining({ number: 1, name: 'n'.repeat(200), exitCode: 1, signal: 'SIGHUP' }),
  ]);
  expect(first.steps.pageInfo.hasNextPage).toBe(true);
  const after = first.steps.pageInfo.endCursor;
  const rest = (await api.must<Steps>(STEPS, { id, first: 2, after })).job.runs[0]!.steps;
  expect(rest.nodes).toEqual([expect.objectContaining({ number: 2, endedAt: null, exitCode: null })]);
  expect(rest.pageInfo.hasNextPage).toBe(false);
  const { key } = await api.user('USER', unique('stranger'));
  expect(await api.must(STEPS, { id }, key)).toEqual({ job: null });
});

test("an agent's key is for one site, and only an agent's is", async () => {
  const { createUser } = await api.must<{ createUser: { user: { id: string } } }>(
    'mutation ($name: String!) { createUser(input: { name: $name, role: AGENT }) { user { id } } }',
    { name: unique('agent') },
  );
  const make = async (input: object) =>
    (
      await api.ask('mutation ($input: CreateApiKeyInput!) { createApiKey(input: $input) { secret } }', {
        input: { name: 'x', ...input },
      })
    ).errors?.[0]?.extensions;
  expect(await make({ userId: createUser.user.id })).toMatchObject({
    code: 'BAD_USER_INPUT',
    field: 'siteId',
  });
  expect(await make({ siteId: site })).toMatchObject({ code: 'BAD_USER_INPUT', field: 'siteId' });
  expect(await make({ userId: createUser.user.id, siteId: 'site_999' })).toMatchObject({ code: 'NOT_FOUND' });
  expect(await make({ userId: createUser.user.id, siteId: site })).toBeUndefined();
});

test('eighteen assignments of 1.5 MiB each arrive in parts', async () => {
  await api.must(
    `mutation { createMachine(input: { siteId: "${site}", name: "large", cpus: 30, memoryMb: 1000 }) { machine { id } } }`,
  );
  await heartbeat();
  // The most that a job may say, of what JSON makes most of.
  const half = '\u0001'.repeat(128 * 1024);
  const job = { command: 'x', arguments: [half, half] };
  const ids: string[] = [];
  for (let i = 0; i < 2; i++) ids.push(...(await submit(Array.from({ length: 9 }, () => job))));
  const behind = (await api.must<{ latestCursor: string }>('{ latestCursor }')).latestCursor;
  await schedule(api.parts);
  for (const after of [undefined, behind]) {
    const told = assignments(after);
    await expect.poll(() => told.all().length).toBe(18);
    expect(told.all().map((run) => run.job)).toEqual(ids);
    const parts = told.batches.map(({ part }) => part);
    if (after) expect(parts.every((part) => part === null)).toBe(true);
    else expect([parts[0], parts.at(-1)]).toEqual(['FIRST', 'LAST']);
    for (const batch of told.batches) {
      expect(batch.complete).toBe(false);
      // 4 MiB of text and what is begun, six times as long in JSON.
      expect(JSON.stringify(batch).length).toBeLessThan(32 * 2 ** 20);
    }
    told.stop();
  }
});

/** The agent of this key has measured the machine. Answers what it is told of its machines. */
async function measuredBy(key: string, name: string, found: object): Promise<Json[]> {
  const measured = {
    cpus: 4,
    memoryMb: 1000,
    os: 'linux',
    architecture: 'x64',
    benchmark: 100,
    gpus: [],
    ...found,
  };
  const agent = { site, identity: name, instance: '1', host: 'host', version: '1', protocol: PROTOCOL };
  const { registerAgent } = await api.must<{ registerAgent: { machines: Json[] } }>(
    'mutation ($input: RegisterAgentInput!) { registerAgent(input: $input) { machines { name refused problem } } }',
    { input: { ...agent, simulated: false, machines: [{ name, measured, problem: null }] } },
    key,
  );
  return registerAgent.machines;
}

test('a machine that is not what it is registered as gets no jobs, which the log of the service says as an error', async () => {
  const { key } = await api.user('AGENT', unique('measuring'), site);
  const name = unique('big');
  await api.must(
    `mutation { createMachine(input: { siteId: "${site}", name: "${name}", cpus: 64, memoryMb: 1000, os: "linux", architecture: "x64" }) { machine { id } } }`,
  );
  const machines = await measuredBy(key, name, {});
  const problem = 'its hardware does not match its registration: cpus 64, measured 4';
  expect(machines).toEqual([{ name, refused: null, problem }]);
  const said = api.log.map((line) => JSON.parse(line) as Json).find((line) => line.machine === name);
  expect(said).toMatchObject({ level: 'error', problem, msg: expect.stringMatching(/gets no jobs/) });
});

test('a machine tells which devices its agent found and it is not registered with', async () => {
  const { key } = await api.user('AGENT', unique('finding'), site);
  const name = unique('built-in');
  const device = (id: string) => ({
    ...{ id, kind: 'gpu', model: 'card', memoryMb: 1000, shares: 1, link: null, oneUser: false },
  });
  const { createMachine } = await api.must<{ createMachine: { machine: { id: string } } }>(
    `mutation ($input: CreateMachineInput!) { createMachine(input: $input) { machine { id } } }`,
    {
      input: {
        ...{
          siteId: site,
          name,
          cpus: 4,
          memoryMb: 1000,
          os: 'linux',
          architecture: 'x64',
          devices: [device('g0')],
        },
      },
    },
  );
  const found = async (ids: readonly string[]): Promise<unknown> => {
    await measuredBy(key, name, { devices: ids.map(device) });
    const { node } = await api.must<{ node: { measured: { warning: string | null } } }>(
      'query ($id: ID!) { node(id: $id) { ... on Machine { measured { warning } } } }',
      { id: createMachine.machine.id },
    );
    return node.measured.warning;
  };
  expect(await found(['g0'])).toBeNull();
  expect(await found(['g0', 'g1', 'g2'])).toBe('not registered: g1, g2, which its agent found');
  const many = Array.from({ length: 10 }, (_, i) => `h${i}`);
  expect(await found(['g0', ...many])).toBe(
    `not registered: ${many.slice(0, 8).join(', ')} and 2 more, which its agent found`,
  );
});
