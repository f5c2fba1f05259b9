/** Job ratios: what is learned from runs, its history in pages, and its news without gap or repeat. */
import { beforeAll, describe, expect, test } from 'vitest';
import { unique, withApi } from './support/api.js';
import { follow, settled } from './support/follow.js';
import { schedule } from './support/schedule.js';

const api = withApi();
let site = '';
let agent = '';
let agentId = '';
/** Power of the only machine; the policy's reference power is 1. */
const POWER = 200;

beforeAll(async () => {
  const { createSite } = await api.must<{ createSite: { site: { id: string } } }>(
    'mutation { createSite(input: { name: "lab" }) { site { id } } }',
  );
  site = createSite.site.id;
  await api.must(
    `mutation { createMachine(input: { siteId: "${site}", name: "m", cpus: 10000, memoryMb: 1, benchmark: ${POWER} }) { machine { id } } }`,
  );
  agent = (await api.user('AGENT', 'agent', site)).key;
  agentId = await api.serve(site, agent);
});

let turn = Promise.resolve();
/** One after another: who has waited for it finds the jobs submitted before started. */
function scheduled(): Promise<void> {
  const mine = turn.then(() => schedule(api.parts));
  turn = mine.catch(() => {});
  return mine;
}

interface Ran {
  application: string;
  wallS?: number;
  ioS?: number;
  exitCode?: number;
}

/** Runs jobs, all of them reported at once; answers with their ids. */
async function run(runs: readonly Ran[], key = api.adminKey): Promise<string[]> {
  const jobs = runs.map(({ application }) => ({ command: 'x', application }));
  const { submitJobs } = await api.must<{ submitJobs: { jobIds: string[] } }>(
    'mutation ($jobs: [JobInput!]!) { submitJobs(input: { jobs: $jobs }) { jobIds } }',
    { jobs },
    key,
  );
  await scheduled();
  const ended = Date.now();
  for (const [i, { wallS = 100 }] of runs.entries()) {
    await api.db.pool.query('UPDATE runs SET assigned_at = to_timestamp($1) WHERE job_id = $2', [
      ended / 1000 - wallS,
      Number(submitJobs.jobIds[i]?.split('_')[1]),
    ]);
  }
  const reports = runs.flatMap(({ wallS = 100, ioS = 25, exitCode = 0 }, i) => {
    const of = { job: submitJobs.jobIds[i], epoch: 1 };
    return [
      { ...of, phase: 'STARTED', at: new Date(ended - wallS * 1000).toISOString() },
      {
        ...of,
        phase: 'ENDED',
        at: new Date(ended).toISOString(),
        exitCode,
        cause: exitCode === 0 ? 'EXITED_ZERO' : 'EXITED_NONZERO',
        cpuS: wallS - ioS,
        ioWaitS: ioS,
      },
    ];
  });
  const { reportRuns } = await api.must<{ reportRuns: { results: string[] } }>(
    'mutation ($site: ID!, $agent: ID!, $reports: [RunReportInput!]!) { reportRuns(site: $site, agent: $agent, reports: $reports) { results } }',
    { site, agent: agentId, reports },
    agent,
  );
  expect(new Set(reportRuns.results)).toEqual(new Set(['ACCEPTED']));
  return submitJobs.jobIds;
}

const POINT = 'cursor application at job { id } site { id } turnaroundS ioS runs computation dataIntensive';
interface Point {
  cursor: string;
  application: string;
  job: { id: string } | null;
  runs: number;
  computation: number;
}
interface Page {
  jobRatio: {
    cursor: string;
    runs: number;
    history: {
      nodes: Point[];
      edges: { cursor: string }[];
      pageInfo: { hasNextPage: boolean; hasPreviousPage: boolean; startCursor: string; endCursor: string };
    };
  };
}
const HISTORY = `query ($application: String!, $first: Int, $after: String, $last: Int, $before: String) { jobRatio(application: $application) {
  cursor runs history(first: $first, after: $after, last: $last, before: $before) {
    nodes { ${POINT} } edges { cursor } pageInfo { hasNextPage hasPreviousPage startCursor endCursor } } } }`;
const history = async (application: string, page: object = {}, key = api.adminKey) =>
  (await api.must<Page>(HISTORY, { application, ...page }, key)).jobRatio;
const ratio = async (application: string, key = api.adminKey) =>
  (
    await api.must<{ jobRatio: { computation: number; source: string; cursor: string } }>(
      `query ($application: String!) { jobRatio(application: $application) { application computation dataIntensive source runs cursor
         averages { turnaroundS executionS ioS } } }`,
      { application },
      key,
    )
  ).jobRatio;

describe('jobRatio', () => {
  test('of what never ran: nothing is known, then the runs of everybody, then those of the user', async () => {
    const [one, other] = [await api.user('USER', unique('u')), await api.user('USER', unique('u'))];
    const never = unique('never');
    expect(await ratio(never)).toMatchObject({
      application: never,
      computation: 0.5,
      dataIntensive: 0.5,
      source: 'UNKNOWN',
      runs: 0,
      averages: null,
    });
    await run([{ application: unique('a'), wallS: 100, ioS: 75 }], one.key);
    expect(await ratio(never, one.key)).toMatchObject({
      computation: 0.25,
      dataIntensive: 0.75,
      source: 'USER',
      runs: 1,
      averages: null,
    });
    expect(await ratio(never, other.key)).toMatchObject({ computation: 0.25, source: 'EVERYBODY', runs: 1 });
    await run([{ application: unique('a'), wallS: 100, ioS: 0 }], other.key);
    expect(await ratio(never, one.key)).toMatchObject({ computation: 0.25, source: 'USER' });
    expect(await ratio(never, other.key)).toMatchObject({ computation: 1, source: 'USER' });
    expect(await ratio(never)).toMatchObject({ computation: 0.625, source: 'EVERYBODY', runs: 2 });
  });

  test('is that of the averages over all runs of the application, scaled to the reference power; a failed run does not count', async () => {
    const application = unique('app');
    const { key } = await api.user('USER', unique('u'));
    const [first] = await run([{ application, wallS: 100, ioS: 25 }]);
    const [second] = await run([{ application, wallS: 300, ioS: 15 }], key);
    await run([{ application, wallS: 1000, ioS: 1000, exitCode: 1 }]);
    const found = await ratio(application);
    expect(found).toMatchObject({ source: 'APPLICATION', runs: 2 });
    expect(found.computation).toBeCloseTo(0.9);
    // Asked for by the query above; the shared type of the answer leaves them out.
    const { averages } = found as unknown as { averages: Record<string, number> };
    expect(averages.turnaroundS).toBeCloseTo(200 * POWER);
    expect(averages.executionS).toBeCloseTo(180 * POWER);
    expect(averages.ioS).toBeCloseTo(20 * POWER);

    const { nodes } = (await history(application)).history;
    expect(nodes).toMatchObject([
      {
        application,
        job: { id: first },
        site: { id: site },
        turnaroundS: 100,
        ioS: 25,
        runs: 1,
        computation: 0.75,
        dataIntensive: 0.25,
      },
      { application, job: { id: second }, turnaroundS: 300, ioS: 15, runs: 2 },
    ]);
    expect(nodes[1]?.computation).toBeCloseTo(0.9);
    // Everybody's runs make up the ratio; when and where they ended is not everybody's to know.
    const own = await history(application, {}, key);
    expect(own.runs).toBe(2);
    expect(own.history.nodes).toMatchObject([{ job: { id: second }, runs: 2 }]);
  });

  test('its history, forward and backward, in pages of any size; cursors of both directions are the same', async () => {
    const application = unique('paged');
    await run(Array.from({ length: 7 }, (_, i) => ({ application, wallS: 100 + i })));
    const all = (await history(application)).history.nodes.map(({ cursor }) => cursor);
    expect(all).toHaveLength(7);
    expect(all).toEqual([...all].sort((a, b) => Number(a) - Number(b)));
    for (const size of [1, 3, 7]) {
      const forward: string[] = [];
      const backward: string[] = [];
      for (let after: string | null = null, more = true; more; ) {
        const { history: page } = await history(application, { first: size, after });
        forward.push(...page.nodes.map(({ cursor }) => cursor));
        expect(page.edges.map(({ cursor }) => cursor)).toEqual(page.nodes.map(({ cursor }) => cursor));
        expect(page.pageInfo.hasPreviousPage).toBe(after !== null);
        after = page.pageInfo.endCursor;
        more = page.pageInfo.hasNextPage;
      }
      for (let before: string | null = null, more = true; more; ) {
        const { history: page } = await history(application, { last: size, before });
        backward.unshift(...page.nodes.map(({ cursor }) => cursor));
        expect(page.pageInfo.hasNextPage).toBe(before !== null);
        before = page.pageInfo.startCursor;
        more = page.pageInfo.hasPreviousPage;
      }
      expect([forward, backward]).toEqual([all, all]);
    }
    expect((await history(application, { last: 2 })).history.nodes.map(({ cursor }) => cursor)).toEqual(
      all.slice(-2),
    );
    expect((await history(application)).cursor).toBe(all.at(-1));
  });

  test('what cannot be asked is refused', async () => {
    const bad = async (query: string, variables: object = {}) =>
      (await api.ask(query, variables)).errors?.[0]?.extensions;
    for (const application of ['', 'x'.repeat(201), '\0'])
      expect(await bad(HISTORY, { application })).toMatchObject({
        code: 'BAD_USER_INPUT',
        field: 'application',
      });
    const page = (options: object) => bad(HISTORY, { application: 'x', ...options });
    expect(await page({ first: 1, last: 1 })).toMatchObject({ code: 'BAD_USER_INPUT', field: 'last' });
    expect(await page({ first: 1, before: '1' })).toMatchObject({ code: 'BAD_USER_INPUT', field: 'last' });
    expect(await page({ after: 'x' })).toMatchObject({ code: 'BAD_USER_INPUT', field: 'after' });
    expect(await page({ before: '-1' })).toMatchObject({ code: 'BAD_USER_INPUT', field: 'before' });
    expect(await page({ first: -1 })).toMatchObject({ code: 'BAD_USER_INPUT', field: 'first' });
    expect(await page({ last: 5_001 })).toMatchObject({ code: 'LIMIT_EXCEEDED', field: 'last' });
    // 5 000 points of 3 objects each fit the cost of a query, what they would lead to does not.
    expect(await page({ first: 5_000 })).toBeUndefined();
    expect(
      await bad(
        '{ jobRatio(application: "x") { history(last: 5000) { nodes { job { runs { allocations { machine { id } } } } } } } }',
      ),
    ).toMatchObject({ code: 'QUERY_TOO_COMPLEX' });
  });
});

interface Update {
  cursor: string;
  resyncRequired: boolean;
  point: Point | null;
}
const NEWS = `subscription ($application: String, $after: String) { jobRatioUpdated(application: $application, after: $after) {
  cursor resyncRequired point { ${POINT} } } }`;
const news = (variables: object, key = api.adminKey) =>
  follow<Update>(api.subscriber(key), NEWS, { ...variables });

describe('jobRatioUpdated', () => {
  test('tells of each run that ended well, also between the query and the subscription; again from any cursor without gap or repeat', async () => {
    const application = unique('live');
    await run([{ application }]);
    const { cursor, runs } = await history(application);
    expect(runs).toBe(1);
    await run([{ application }, { application: unique('other') }, { application }]);
    const live = news({ application, after: cursor });
    await expect.poll(() => live.got.length).toBe(2);
    await run([{ application }, { application, exitCode: 1 }, { application }]);
    await expect.poll(() => live.got.length).toBe(4);
    const { nodes } = (await history(application)).history;
    expect(live.got.map(({ point }) => point)).toEqual(nodes.slice(1));
    expect(live.got.map(({ cursor }) => cursor)).toEqual(nodes.slice(1).map((point) => point.cursor));
    expect(live.got.every((update) => !update.resyncRequired)).toBe(true);
    expect(nodes.map((point) => point.runs)).toEqual([1, 2, 3, 4, 5]);

    const resumed = news({ application, after: live.got[1]?.cursor });
    await expect.poll(() => resumed.got.length).toBe(2);
    expect(resumed.got).toEqual(live.got.slice(2));
    const all = news({ after: cursor });
    await expect.poll(() => all.got.length).toBe(5);
    await run([{ application }]);
    for (const one of [live, resumed, all]) await expect.poll(() => one.got.at(-1)?.point?.runs).toBe(6);
  });

  test('without a cursor: from now on', async () => {
    const application = unique('now');
    await run([{ application }, { application }]);
    const fromNow = news({ application });
    // Nobody says when a subscription has begun.
    while (fromNow.got.length < 3) await run([{ application }]);
    const runs = fromNow.got.map(({ point }) => point?.runs ?? 0);
    expect(runs[0]).toBeGreaterThan(2);
    expect(runs).toEqual(runs.map((_, i) => (runs[0] ?? 0) + i));
  });

  test('a subscriber that reconnects again and again, while many report at once, hears of every run once and in order', async () => {
    const applications = [unique('many'), unique('many')] as const;
    const start = (await history(applications[0])).cursor;
    const BATCHES = 24;
    const heard: Update[] = [];
    let reported = false;
    const reading = (async () => {
      let after: string = start;
      for (let i = 0; !reported || heard.length < BATCHES * 5; i++) {
        const one = news({ after });
        const some = 1 + (i % 7);
        await expect
          .poll(() => one.got.length, { interval: 5 })
          .toBeGreaterThanOrEqual(Math.min(some, BATCHES * 5 - heard.length));
        one.stop();
        const taken = one.got.slice(0, some);
        heard.push(...taken);
        after = taken.at(-1)?.cursor ?? after;
      }
    })();
    const reporting = Array.from({ length: 4 }, async (_, lane) => {
      for (let i = 0; i < BATCHES / 4; i++) {
        await run(
          Array.from({ length: 5 }, (_, k) => ({ application: applications[(lane + k) % 2] as string })),
        );
      }
    });
    await Promise.all(reporting);
    reported = true;
    await reading;
    const points = (
      await Promise.all(applications.map((application) => history(application, { first: 1000 })))
    ).flatMap((one) => one.history.nodes);
    const expected = points.map(({ cursor }) => Number(cursor)).sort((a, b) => a - b);
    expect(expected).toHaveLength(BATCHES * 5);
    expect(heard.map(({ cursor }) => Number(cursor))).toEqual(expected);
    for (const application of applications) {
      const runs = heard
        .filter(({ point }) => point?.application === application)
        .map(({ point }) => point?.runs);
      expect(runs).toEqual(runs.map((_, i) => i + 1));
    }
  });

  test('an old cursor is caught up with page by page', async () => {
    const application = unique('old');
    await run([{ application }]);
    const [first] = (await history(application)).history.nodes;
    await api.db.pool.query(
      `INSERT INTO job_ratios (application, at, job_id, epoch, site_id, turnaround_s, io_s, site_power, runs, computation)
       SELECT application, at, job_id, epoch, site_id, turnaround_s, io_s, site_power, i, computation FROM job_ratios, generate_series(2, 3500) i
        WHERE id = $1`,
      [first?.cursor],
    );
    const caught = news({ application, after: first?.cursor });
    await expect.poll(() => caught.got.length).toBe(3_499);
    expect(caught.got.map(({ point }) => point?.runs)).toEqual(
      Array.from({ length: 3_499 }, (_, i) => i + 2),
    );
    await run([{ application }]);
    await expect.poll(() => caught.got.length).toBe(3_500);
    expect(caught.got.at(-1)?.point?.runs).toBe(2);
  });

  test('a cursor that retention has passed gets one resyncRequired, and goes on from there', async () => {
    const application = unique('kept');
    await run([{ application }]);
    const { cursor } = await history(application);
    await run([{ application }]);
    await api.db.pool.query('UPDATE job_ratios_horizon SET id = $1', [Number(cursor)]);
    await api.db.pool.query('DELETE FROM job_ratios WHERE id <= $1', [Number(cursor)]);
    const late = news({ application, after: String(Number(cursor) - 1) });
    await expect.poll(() => late.got.length).toBe(1);
    expect(late.got[0]).toMatchObject({ resyncRequired: true, point: null });
    const inTime = news({ application, after: cursor });
    await expect.poll(() => inTime.got.length).toBe(1);
    expect(inTime.got[0]).toMatchObject({ resyncRequired: false, point: { runs: 2 } });
    expect(late.got[0]?.cursor).toBe(inTime.got[0]?.cursor);
    await run([{ application }]);
    await expect.poll(() => late.got.slice(1)).toMatchObject([{ resyncRequired: false, point: { runs: 3 } }]);
    // The cursor of the resync is as good as any.
    const again = news({ application, after: late.got[0]?.cursor });
    await expect.poll(() => again.got).toMatchObject([{ point: { runs: 3 } }]);
  });

  test('a USER hears of their own runs only, of one application and of all', async () => {
    const application = unique('shared');
    const { key } = await api.user('USER', unique('u'));
    const operator = await api.user('OPERATOR', unique('o'));
    const { cursor: after } = await history(application);
    const own = news({ after }, key);
    const named = news({ after, application }, key);
    const everything = news({ after }, operator.key);
    await run([{ application }]);
    const [mine] = await run([{ application }], key);
    await expect.poll(() => own.got.map(({ point }) => point?.job?.id)).toEqual([mine]);
    await expect.poll(() => named.got.map(({ point }) => point?.job?.id)).toEqual([mine]);
    await expect.poll(() => everything.got.map(({ point }) => point?.runs)).toEqual([1, 2]);
  });

  test('cursors that nobody gave out, texts that are no name, and agents are refused', async () => {
    const codeOf = async (variables: object, key?: string) => {
      const { end } = await settled(news(variables, key));
      return end && 'error' in end
        ? (end.error as { extensions: { code: string } }[])[0]?.extensions.code
        : 'none';
    };
    for (const after of ['x', '-1', '01', '99999999999'])
      expect([after, await codeOf({ after })]).toEqual([after, 'BAD_USER_INPUT']);
    expect(await codeOf({ application: '' })).toBe('BAD_USER_INPUT');
    expect(await codeOf({}, agent)).toBe('FORBIDDEN');
  });

  test('many subscribers hear of the same run, and are forgotten when they go', async () => {
    const application = unique('crowd');
    const clients = Array.from({ length: 10 }, () => api.subscriber());
    const open = async () =>
      Number(
        /switchyard_subscriptions\{field="jobRatioUpdated"\} (\d+)/.exec(
          (await api.parts.metrics.expose()).body,
        )?.[1] ?? 0,
      );
    const before = await open();
    const { cursor: after } = await history(application);
    const crowd = Array.from({ length: 300 }, (_, i) =>
      follow<Update>(clients[i % 10]!, NEWS, i % 2 === 0 ? { application, after } : { after }),
    );
    await expect.poll(open).toBe(before + 300);
    await run([{ application }, { application }]);
    await expect.poll(() => crowd.filter(({ got }) => got.length === 2).length).toBe(300);
    expect(new Set(crowd.map(({ got }) => got.map(({ point }) => point?.runs).join()))).toEqual(
      new Set(['1,2']),
    );
    for (const one of crowd) one.stop();
    await expect.poll(open).toBe(before);
  });
});
