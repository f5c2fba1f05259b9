/** A site that schedules itself, as its agent reports it: what people are told of it, with its age, and what was observed there. */
import { beforeAll, expect, test } from 'vitest';
import { type Json, named, withApi } from './support/api.js';
import { schedule } from './support/schedule.js';

const api = withApi();
let site = '';
let key = '';
let agent = '';

beforeAll(async () => {
  const made = await api.must<{ createSite: { site: { id: string } } }>(
    'mutation { createSite(input: { name: "alps", localPolicy: { kind: "external", queueLimit: 3 } }) { site { id } } }',
  );
  site = made.createSite.site.id;
  await api.must(
    `mutation { createMachine(input: { siteId: "${site}", name: "n1", cpus: 8, memoryMb: 1000 }) { machine { id } } }`,
  );
  key = (await api.user('AGENT', 'agent', site)).key;
  agent = await api.serve(site, key);
});

const LOAD = {
  ...{ waitingJobs: 10, waitingS: 36_000, waitingCpuS: 72_000 },
  busy: [{ machine: 'n1', cpus: 5, memoryMb: 100 }],
};
const reportLoad = (load: object = LOAD) =>
  api.must(
    'mutation ($site: ID!, $agent: ID!, $load: SiteLoadInput!) { reportLoad(site: $site, agent: $agent, load: $load) }',
    { site, agent, load },
    key,
  );
const submit = async (jobs: object[]): Promise<string[]> => {
  const query = 'mutation ($input: SubmitJobsInput!) { submitJobs(input: $input) { jobIds } }';
  const { submitJobs } = await api.must<{ submitJobs: { jobIds: string[] } }>(query, { input: { jobs } });
  await schedule(api.parts);
  return submitJobs.jobIds;
};
const start = (job: string) =>
  api.must(
    'mutation ($site: ID!, $agent: ID!, $reports: [RunReportInput!]!) { reportRuns(site: $site, agent: $agent, reports: $reports) { results } }',
    { site, agent, reports: [{ job, epoch: 1, phase: 'STARTED', at: new Date().toISOString() }] },
    key,
  );
const loadOf = async (): Promise<Json> => {
  const { node } = await api.must<{ node: { load: Json } }>(
    `{ node(id: "${site}") { ... on Site { load { stale busyCpus waitingJobs waits { cpusMax limitMaxS runs waitS } } } } }`,
  );
  return node.load;
};
interface Why {
  code: string;
  message: string;
  startsAt: string | null;
  numbers: Record<string, number>;
}
const whyOf = async (id: string): Promise<Why> => {
  const { job } = await api.must<{ job: { whyWaiting: Why } }>(
    `{ job(id: "${id}") { whyWaiting { code message startsAt numbers { name value } } } }`,
  );
  return named(job.whyWaiting);
};
const sql = (text: string) => api.db.pool.query(text);

test('its load, the waits of jobs of ours there, and what is told of both to those who wait', async () => {
  await reportLoad();
  const [began, waits, further] = await submit(
    [{}, {}, {}].map(() => ({ command: 'x', cpusPerTask: 2, runTimeLimitS: 600 })),
  );
  // Given to the site ten minutes ago; it has begun now.
  await sql(`UPDATE runs SET assigned_at = assigned_at - interval '600 s'`);
  await start(began!);
  await sql(`UPDATE runs SET assigned_at = now() WHERE started_at IS NULL`);
  await reportLoad();
  const wait = { cpusMax: 4, limitMaxS: 960, runs: 1, waitS: 600 };
  expect(await loadOf()).toEqual({ stale: false, busyCpus: 5, waitingJobs: 10, waits: [wait] });

  const why = await whyOf(waits!);
  expect(why).toMatchObject({
    code: 'WAITS_AT_SITE',
    numbers: { othersWaiting: 10, oursWaiting: 2, busyCpus: 5, siteCpus: 8, observedWaitS: 600 },
  });
  expect(why.message).toMatch(
    /site alps, as of \d s ago: 10 other jobs waiting \(20 CPU-hours by their limits\), 2 jobs of ours waiting, 5 of 8 CPUs in use\. Jobs of this size lately waited 10 min there \(mean of 1\)\.$/,
  );
  const startsIn = Date.parse(why.startsAt!) - Date.now();
  expect(startsIn).toBeGreaterThan(0);
  expect(startsIn).toBeLessThan(601_000);
  expect((await whyOf(further!)).numbers.observedWaitS).toBe(600);

  // No more of ours than its limit wait there: these wait here, and are told as much.
  const [, queued] = await submit([{}, {}].map(() => ({ command: 'x', cpusPerTask: 2, runTimeLimitS: 600 })));
  expect(await whyOf(queued!)).toMatchObject({
    code: 'SITE_SCHEDULER_FULL',
    message: expect.stringContaining('lately waited 10 min there'),
    numbers: { othersWaiting: 10 },
  });
  const { placement } = await api.must<{
    placement: { startsAt: string | null; earliestStart: string | null };
  }>('{ placement(spec: { command: "x", cpusPerTask: 2, runTimeLimitS: 600 }) { startsAt earliestStart } }');
  expect(placement.startsAt).toBeNull();
  expect(Date.parse(placement.earliestStart!) - Date.now()).toBeGreaterThan(500_000);
});

test('figures of an agent that is silent are said to be outdated, with their age', async () => {
  await reportLoad();
  expect(await loadOf()).toMatchObject({ stale: false });
  await sql(
    `UPDATE sites SET agent_seen_at = now() - interval '2 h', load_at = now() - interval '2 h' WHERE name = 'alps'`,
  );
  expect(await loadOf()).toMatchObject({ stale: true, waitingJobs: 10 });
  const { nodes } = (
    await api.must<{ jobs: { nodes: { id: string }[] } }>(
      '{ jobs(filter: { states: [ASSIGNED] }) { nodes { id } } }',
    )
  ).jobs;
  const why = await whyOf(nodes[0]!.id);
  expect(why.numbers.loadAgeS).toBeGreaterThanOrEqual(7_200);
  expect(why.message).toMatch(
    /as of 2 h ago: .* These figures are outdated: the agent of the site is silent\.$/,
  );
});

test('what was observed is forgotten after a day, and what waits for longer than all others is counted', async () => {
  agent = await api.serve(site, key);
  await sql(
    `UPDATE runs SET started_at = now() - interval '25 h', assigned_at = now() - interval '26 h' WHERE started_at IS NOT NULL`,
  );
  await sql(`UPDATE runs SET assigned_at = now() - interval '2 h' WHERE started_at IS NULL`);
  await reportLoad();
  const { waits } = (await loadOf()) as { waits: Json[] };
  expect(waits).toMatchObject([{ cpusMax: 4, limitMaxS: 960, waitS: 7200 }]);
});

test('licenses that its scheduler counts are pools of the site, whose amounts only the agent changes', async () => {
  const pools = async () => {
    const { licenses } = await api.must<{ licenses: { nodes: Json[] } }>(
      '{ licenses(first: 10) { nodes { id kind copies reported site { name } } } }',
    );
    return licenses.nodes;
  };
  const spec = { command: 'x', cpusPerTask: 2, runTimeLimitS: 600 };
  const faults = async (job: object) => {
    const query =
      'mutation ($input: SubmitJobsInput!) { submitJobs(input: $input) { errors { field message } } }';
    const input = { jobs: [{ ...spec, ...job }] };
    return (await api.must<{ submitJobs: { errors: Json[] } }>(query, { input })).submitJobs.errors;
  };
  expect(await faults({ licenses: ['matlab'] })).toMatchObject([
    { field: 'licenses', message: expect.stringContaining('matlab') },
  ]);
  await reportLoad({ ...LOAD, licenses: [{ name: 'matlab', total: 4 }] });
  const [pool] = await pools();
  expect(pool).toMatchObject({ kind: 'matlab', copies: 4, reported: true, site: { name: 'alps' } });
  // What could run is remembered for a moment.
  await expect.poll(() => faults({ licenses: ['matlab', 'matlab'] }), { timeout: 20_000 }).toEqual([]);
  expect(await faults({ licenses: ['ansys'] })).toMatchObject([
    { field: 'licenses', message: expect.stringContaining('ansys') },
  ]);
  const { errors } = await api.ask(
    `mutation { updateLicense(input: { licenseId: "${pool!.id}", copies: 9 }) { license { id } } }`,
  );
  expect(errors?.[0]?.message).toMatch(/own scheduler counts matlab: its agent reports how many there are/);
  for (const [licenses, fault] of [
    [[1, 2].map((total) => ({ name: 'cad', total })), /load\.licenses.*each name once/],
    [[{ name: 'cad', total: -1 }], /load\.licenses\[0\]\.total/],
    [[{ name: '', total: 1 }], /load\.licenses\[0\]\.name/],
  ] as const)
    await expect(reportLoad({ ...LOAD, licenses })).rejects.toThrow(fault);
  await reportLoad({ ...LOAD, licenses: [] });
  expect(await pools()).toMatchObject([{ kind: 'matlab', copies: 0 }]);
});

test('a job is refused that names a reservation there, in which it would never start', async () => {
  const times = { from: new Date(Date.now() + 60_000), to: new Date(Date.now() + 3_600_000) };
  await api.must('mutation ($input: CreateHoldInput!) { createHold(input: $input) { hold { id } } }', {
    input: { siteId: site, name: 'course', tasks: 1, cpus: 1, ...times },
  });
  const query =
    'mutation ($input: SubmitJobsInput!) { submitJobs(input: $input) { errors { field message } } }';
  const job = { command: 'true', estimateS: 10, runTimeLimitS: 60, reservation: 'course' };
  const { submitJobs } = await api.must<{ submitJobs: { errors: { field: string; message: string }[] } }>(
    query,
    { input: { jobs: [job] } },
  );
  expect(submitJobs.errors).toMatchObject([
    { field: 'reservation', message: expect.stringContaining('without a scheduler of its own') },
  ]);
});

test('its partitions, the queue of others and the requests of the agent are shown; too long a limit is told with the reason', async () => {
  const partition = {
    ...{ name: 'batch', isDefault: true, isUsed: true, state: 'up', nodes: 1, nodeList: 'n1', cpus: 8 },
    ...{ busyCpus: 5, longestS: 3_600 },
  };
  const details = {
    partitions: [partition],
    queue: [{ id: '7', cpus: 2, limitS: 60, reason: 'Priority' }],
    calls: { made: 9, failed: 1, listS: 0.5, jobs: 3 },
  };
  await reportLoad({ ...LOAD, longestS: 3_600, ...details });
  const { node } = await api.must<{ node: { load: Json } }>(
    `{ node(id: "${site}") { ... on Site { load { longestS calls { made failed listS jobs } queue { id cpus limitS reason }
      partitions { name isDefault isUsed state nodes nodeList cpus busyCpus longestS } } } } }`,
  );
  expect(node.load).toEqual({ longestS: 3_600, ...details });
  const { body } = await api.parts.metrics.expose();
  expect(body).toMatch(/switchyard_site_scheduler_requests\{site="alps"\} 9\n/);
  expect(body).toMatch(/switchyard_site_scheduler_unanswered\{site="alps"\} 1\n/);
  expect(body).toMatch(/switchyard_site_scheduler_list_seconds\{site="alps"\} 0\.5\n/);
  expect(body).toMatch(/switchyard_site_scheduler_jobs\{site="alps"\} 3\n/);
  expect(body).toMatch(/switchyard_site_scheduler_others_waiting\{site="alps"\} 10\n/);
  expect(body).toMatch(/switchyard_site_scheduler_reported_timestamp_seconds\{site="alps"\} \d/);
  const [id] = await submit([{ command: 'x', runTimeLimitS: 3_601 }]);
  expect(await whyOf(id!)).toMatchObject({
    code: 'LIMIT_TOO_LONG',
    numbers: { limitS: 3_601, longestS: 3_600 },
  });
  // An agent that tells none of it, as one of the release before.
  await reportLoad();
  expect(await loadOf()).toMatchObject({ stale: false });
  const many = Array.from({ length: 101 }, () => partition);
  await expect(reportLoad({ ...LOAD, partitions: many })).rejects.toThrow(/101 given; accepted: up to 100/);
});

test('where the output of a run lies at the site', async () => {
  const { jobs } = await api.must<{ jobs: { nodes: { id: string }[] } }>(
    '{ jobs(filter: { states: [ASSIGNED] }) { nodes { id } } }',
  );
  const { id } = jobs.nodes[0]!;
  const local = { id: '41', state: 'PENDING', directory: '/shared/runs/41' };
  await api.must(
    'mutation ($site: ID!, $agent: ID!, $reports: [RunReportInput!]!) { reportRuns(site: $site, agent: $agent, reports: $reports) { results } }',
    { site, agent, reports: [{ job: id, epoch: 1, phase: 'ACCEPTED', at: new Date().toISOString(), local }] },
    key,
  );
  const read = await api.must<{ job: { runs: Json[] } }>(
    `{ job(id: "${id}") { runs { localId localDirectory } } }`,
  );
  expect(read.job.runs).toEqual([{ localId: '41', localDirectory: '/shared/runs/41' }]);
});
