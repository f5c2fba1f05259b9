/** Use over time, how long lists are, and when jobs will start: what a page shows that no row says. */
import { beforeAll, describe, expect, test } from 'vitest';
import { withApi } from './support/api.js';
import { schedule } from './support/schedule.js';

const api = withApi();
let site = '';
let ann: { id: string; key: string };
let bob: { id: string; key: string };
/** Ann's: runs; Bob's: waits behind it. */
let jobs: string[];

const submit = async (key: string, ...given: object[]): Promise<string[]> =>
  (
    await api.must<{ submitJobs: { jobIds: string[] } }>(
      'mutation ($jobs: [JobInput!]!) { submitJobs(input: { jobs: $jobs }) { jobIds } }',
      { jobs: given },
      key,
    )
  ).submitJobs.jobIds;

beforeAll(async () => {
  const { createSite } = await api.must<{ createSite: { site: { id: string } } }>(
    'mutation { createSite(input: { name: "lab" }) { site { id } } }',
  );
  site = createSite.site.id;
  await api.must(
    `mutation { createMachine(input: { siteId: "${site}", name: "m", cpus: 4, memoryMb: 1, benchmark: 100 }) { machine { id } }
      small: createMachine(input: { siteId: "${site}", name: "g", cpus: 1, memoryMb: 1, benchmark: 100, resources: [{ kind: "gpu", amount: 4 }] }) { machine { id } }
      createLicense(input: { kind: "gpu", copies: 2 }) { license { id } } }`,
  );
  const agent = await api.user('AGENT', 'agent', site);
  await api.serve(site, agent.key);
  [ann, bob] = [await api.user('USER', 'ann'), await api.user('USER', 'bob')];
  const wide = { command: 'x', application: 'model', cpusPerTask: 4, estimateS: 600 };
  const [first] = await submit(ann.key, wide);
  await schedule(api.parts);
  const [second] = await submit(bob.key, wide);
  const [held] = await submit(bob.key, { ...wide, held: true });
  await schedule(api.parts);
  jobs = [first!, second!, held!];
});

describe('usage', () => {
  const USAGE = `query ($by: UsageBy!, $from: DateTime!, $to: DateTime, $first: Int) { usage(by: $by, from: $from, to: $to, first: $first) {
    user { id } site { id } application runs cpuS endedJobs failedJobs meanWaitS resources { kind countedOn amountS } } }`;
  const anHourAgo = () => new Date(Date.now() - 3_600_000).toISOString();

  test('says who used how much, and to users what they used themselves', async () => {
    const of = async (key: string, by: string) =>
      (await api.must<{ usage: object[] }>(USAGE, { by, from: anHourAgo() }, key)).usage;
    const row = {
      runs: 1,
      cpuS: expect.any(Number),
      endedJobs: 0,
      failedJobs: 0,
      meanWaitS: null,
      resources: [],
    };
    const nothing = { user: null, site: null, application: null };
    expect(await of(api.adminKey, 'USER')).toEqual([{ ...row, ...nothing, user: { id: ann.id } }]);
    expect(await of(ann.key, 'SITE')).toEqual([{ ...row, ...nothing, site: { id: site } }]);
    expect(await of(ann.key, 'APPLICATION')).toEqual([{ ...row, ...nothing, application: 'model' }]);
    for (const by of ['USER', 'SITE', 'APPLICATION']) expect(await of(bob.key, by)).toEqual([]);
  });

  test('and histories refuse what is no window', async () => {
    const refused = async (query: string, variables: object) =>
      (await api.ask(query, variables)).errors?.[0]?.extensions;
    const backward = { by: 'USER', from: '2026-01-02T00:00:00Z', to: '2026-01-01T00:00:00Z' };
    expect(await refused(USAGE, backward)).toMatchObject({ code: 'BAD_USER_INPUT', field: 'from' });
    const long = { by: 'USER', from: '2024-01-01T00:00:00Z', to: '2026-01-01T00:00:00Z' };
    expect(await refused(USAGE, long)).toMatchObject({ code: 'BAD_USER_INPUT', field: 'from' });
    const later = { by: 'USER', from: new Date(Date.now() + 60_000).toISOString() };
    expect(await refused(USAGE, later)).toMatchObject({ code: 'BAD_USER_INPUT', field: 'from' });
    const LOAD =
      'query ($from: DateTime!, $points: Int!) { loadHistory(from: $from, points: $points) { at } }';
    for (const points of [0, 501])
      expect(await refused(LOAD, { from: anHourAgo(), points })).toMatchObject({
        code: 'BAD_USER_INPUT',
        field: 'points',
      });
    for (const history of ['licenseHistory', 'resourceHistory'])
      expect(
        await refused(`{ ${history}(kind: "", from: "2026-01-01T00:00:00Z") { at } }`, {}),
      ).toMatchObject({
        code: 'BAD_USER_INPUT',
      });
  });

  test('histories have as many points as they were asked for, up to now', async () => {
    const { loadHistory } = await api.must<{
      loadHistory: { at: string; cpus: number; running: number; waiting: number }[];
    }>(
      'query ($from: DateTime!) { loadHistory(from: $from, points: 4) { at cpus running waiting } }',
      { from: new Date(Date.now() - 4_000_000).toISOString() },
      bob.key,
    );
    expect(loadHistory).toHaveLength(4);
    expect(loadHistory.slice(0, 3).every(({ running }) => running === 0)).toBe(true);
    const last = loadHistory[3]!;
    expect(last.running).toBeGreaterThan(0);
    expect(last.cpus / last.running).toBeCloseTo(4, 1);
    expect(last.waiting).toBeGreaterThan(0);
  });
});

test('a page says how long its list is, for its filter and its reader', async () => {
  const total = async (key: string, filter: string) =>
    (
      await api.must<{ jobs: { totalCount: number } }>(
        `{ jobs(first: 1, filter: ${filter}) { totalCount } }`,
        {},
        key,
      )
    ).jobs.totalCount;
  expect(await total(api.adminKey, '{ application: "model" }')).toBe(3);
  expect(await total(bob.key, '{ application: "model" }')).toBe(2);
  expect(await total(bob.key, '{ states: [HELD] }')).toBe(1);
  expect(await total(bob.key, '{ application: "other" }')).toBe(0);
});

test('a job that waits says when it will start, and no other does', async () => {
  const { jobs: page } = await api.must<{ jobs: { nodes: { id: string; expectedStart: string | null }[] } }>(
    'query ($ids: [ID!]) { jobs(filter: { ids: $ids }) { nodes { id expectedStart } } }',
    { ids: jobs },
  );
  const at = new Map(page.nodes.map(({ id, expectedStart }) => [id, expectedStart]));
  expect([...at.keys()]).toEqual(jobs);
  expect(at.get(jobs[0]!)).toBeNull();
  expect(at.get(jobs[2]!)).toBeNull();
  const { placement } = await api.must<{ placement: { startsAt: string } }>(
    'query ($job: ID!) { placement(jobId: $job) { startsAt } }',
    { job: jobs[1] },
  );
  expect(at.get(jobs[1]!)).toBe(placement.startsAt);
  expect(Date.parse(placement.startsAt)).toBeGreaterThan(Date.now() + 300_000);
});

test('other resources count as CPU time does, licenses apart from kinds of machines', async () => {
  const resourcesPerTask = [{ kind: 'gpu', amount: 3 }];
  await submit(ann.key, {
    ...{ command: 'x', application: 'learner', estimateS: 600, resourcesPerTask, licenses: ['gpu'] },
  });
  await schedule(api.parts);
  const { usage } = await api.must<{
    usage: {
      application: string;
      cpuS: number;
      resources: { kind: string; countedOn: string; amountS: number }[];
    }[];
  }>(
    'query ($from: DateTime!) { usage(by: APPLICATION, from: $from) { application cpuS resources { kind countedOn amountS } } }',
    { from: new Date(Date.now() - 3_600_000).toISOString() },
    ann.key,
  );
  const learner = usage.find(({ application }) => application === 'learner');
  expect(learner?.resources.map(({ kind, countedOn }) => [kind, countedOn])).toEqual([
    ['gpu', 'MACHINE'],
    ['gpu', 'GRID'],
  ]);
  const [onMachines, ofLicenses] = learner!.resources.map(({ amountS }) => amountS);
  expect(onMachines).toBeCloseTo(3 * learner!.cpuS, 6);
  expect(ofLicenses).toBeCloseTo(learner!.cpuS, 6);
});
