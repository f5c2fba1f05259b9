/** Policies that look at data and shares, as people see them: documents, weights, dry runs, reasons, congestion and standings. */
import { afterEach, beforeAll, describe, expect, test } from 'vitest';
import { DEFAULT_POLICY, parsePolicy } from '../../src/core/policy.js';
import { report } from '../store/world.js';
import { type Json, named, unique, withApi } from './support/api.js';
import { schedule } from './support/schedule.js';

const api = withApi();
let near = '';
let far = '';
let dataset = '';

const numberOf = (id: string): number => Number(id.split('_')[1]);

/** Two sites of 4 CPUs; the far one is three times as fast, and the data are at the near one. */
beforeAll(async () => {
  const site = async (name: string, benchmark: number) => {
    const { createSite } = await api.must<{ createSite: { site: { id: string } } }>(
      `mutation { createSite(input: { name: "${name}" }) { site { id } } }`,
    );
    await api.must(
      `mutation { createMachine(input: { siteId: "${createSite.site.id}", name: "m", cpus: 4, memoryMb: 100, benchmark: ${benchmark} }) { machine { id } } }`,
    );
    const { key } = await api.user('AGENT', `agent-${name}`, createSite.site.id);
    await api.serve(createSite.site.id, key);
    return createSite.site.id;
  };
  near = await site('near', 100);
  far = await site('far', 300);
  await api.must(
    'mutation ($links: [LinkInput!]!) { setLinkValues(input: { links: $links }) { links { loss } } }',
    {
      links: [
        { fromSiteId: near, toSiteId: far, bandwidthMbPerS: 10, rttS: 2 },
        { fromSiteId: far, toSiteId: near, bandwidthMbPerS: 20 },
      ],
    },
  );
  const made = await api.must<{ createDataset: { dataset: { id: string } } }>(
    `mutation { createDataset(input: { name: "measurements", sizeMb: 1000, replicaSiteIds: ["${near}"] }) { dataset { id } } }`,
  );
  dataset = made.createDataset.dataset.id;
});

/** Every test begins with empty sites. */
afterEach(async () => {
  const { store } = api.parts;
  await api.must('mutation { cancelJobs(input: { selection: { all: true } }) { jobIds } }');
  for (const siteId of [near, far].map(numberOf)) {
    const { assignments } = await store.assignments(siteId, null, 1_000, 2 ** 30);
    const at = Date.now() / 1000;
    const reports = assignments.map(({ jobId, epoch }) =>
      report(jobId, epoch, { phase: 'ENDED', at, signal: 'SIGTERM', cause: 'SIGNALLED' }),
    );
    await store.reportRuns(siteId, reports, 3);
  }
});

const version = async () =>
  (await api.must<{ policy: { version: number } }>('{ policy { version } }')).policy.version;
const PUT = `mutation ($input: UpdatePolicyInput!) { updatePolicy(input: $input) { policy { version document } } }`;
async function put(dispatch: object): Promise<Json> {
  const input = {
    expectedVersion: await version(),
    reason: 'test',
    document: { ...DEFAULT_POLICY, dispatch },
  };
  return (await api.must<{ updatePolicy: { policy: { document: Json } } }>(PUT, { input })).updatePolicy
    .policy.document;
}
async function refused(query: string, variables: object = {}, key = api.adminKey) {
  const { errors } = await api.ask(query, variables, key);
  return { ...errors?.[0]?.extensions, message: errors?.[0]?.message };
}
async function submit(jobs: object[], key = api.adminKey): Promise<string[]> {
  const query =
    'mutation ($jobs: [JobInput!]!) { submitJobs(input: { jobs: $jobs }) { jobIds errors { message } } }';
  const { submitJobs } = await api.must<{ submitJobs: { jobIds: string[]; errors: object[] } }>(
    query,
    { jobs },
    key,
  );
  expect(submitJobs.errors).toEqual([]);
  return submitJobs.jobIds;
}
interface Candidate {
  site: { id: string };
  eligible: boolean;
  reason: string | null;
  rank: number | null;
  terms: Record<string, number>;
}
interface Placement {
  site: { id: string } | null;
  reason: string;
  message: string;
  startsAt: string | null;
  jobTerms: Record<string, number>;
  candidates: Candidate[];
}
const PLACEMENT = `query ($job: ID, $spec: JobInput) { placement(jobId: $job, spec: $spec) {
  site { id } reason message startsAt jobTerms { name value }
  candidates { site { id } eligible reason rank terms { name value } } } }`;
const placement = async (variables: { job?: string | undefined; spec?: object }) =>
  named(await api.must<{ placement: Placement }>(PLACEMENT, variables)).placement;
/** Reads 1000 MB that are at the near site, brings 50 MB from there and 200 MB back. */
const withData = (change: object = {}) => ({
  command: 'x',
  estimateS: 100,
  inputs: [{ dataset }],
  originSite: near,
  sandboxMb: 50,
  outputMb: 200,
  ...change,
});

describe('policy documents', () => {
  const KINDS = [
    { kind: 'queues', order: 'S-SJF', queueLimit: 0 },
    { kind: 'job-ratio' },
    { kind: 'job-ratio', queueLimit: 7 },
    { kind: 'diana' },
    {
      kind: 'diana',
      weights: {
        computational: { network: 1, computation: 2, data: 3 },
        dataIntensive: { network: 4, computation: 5, data: 6 },
        both: { network: 7, computation: 8, data: 9 },
      },
      computationalFrom: 0.9,
      dataIntensiveTo: 0.1,
      loadPenaltyS: 0,
      queueLimit: 3,
      congestionThreshold: -2,
      congestionWindowS: 10,
      holdOffS: 60,
    },
    { kind: 'round-robin' },
    { kind: 'random' },
    { kind: 'most-flops' },
  ];

  test('of every kind come back as they were given, with what they left out', async () => {
    for (const dispatch of KINDS) {
      const document = await put(dispatch);
      expect(document).toEqual(parsePolicy({ ...DEFAULT_POLICY, dispatch }));
      expect(document.dispatch).toMatchObject(dispatch);
      expect(await api.must('{ policy { document } }')).toEqual({ policy: { document } });
      // Given back whole, it is the same again.
      const input = { expectedVersion: await version(), reason: 'test', document };
      expect(await api.must(PUT, { input })).toMatchObject({ updatePolicy: { policy: { document } } });
    }
    await put(KINDS[5] as object);
    const back = `mutation ($version: Int!, $now: Int!) { revertPolicy(input: { version: $version, expectedVersion: $now, reason: "test" }) { policy { document } } }`;
    const at = await version();
    expect(await api.must(back, { version: at - 8, now: at })).toMatchObject({
      revertPolicy: { policy: { document: { dispatch: KINDS[4] } } },
    });
  });

  test('what cannot be is refused with its path, value and what is accepted', async () => {
    const bad: [object, RegExp][] = [
      [{ kind: 'diana', queueLimit: 0 }, /^dispatch\.queueLimit: 0 /],
      [
        { kind: 'diana', computationalFrom: 0.2 },
        /^dispatch\.dataIntensiveTo is missing; accepted: a number below computationalFrom/,
      ],
      [{ kind: 'diana', congestionThreshold: 2 }, /^dispatch\.congestionThreshold: 2 /],
      [{ kind: 'diana', migration: { rule: 'ANY' } }, /^dispatch\.migration\.rule: .*BOTH_LOWER/],
      [{ kind: 'diana', placement: 'HOME' }, /^dispatch\.placement: .*ORIGIN_FIRST/],
      [{ kind: 'diana', metaOrder: 'LJF' }, /^dispatch\.metaOrder: .*SJF/],
      [
        { kind: 'diana', weights: { both: { network: 1, computation: 1, data: 1 } } },
        /^dispatch\.weights\.computational is missing; accepted: an object/,
      ],
      [{ kind: 'job-ratio', weights: {} }, /^dispatch\.weights: \{\} /],
      [{ kind: 'nothing' }, /^dispatch\.kind: /],
    ];
    for (const [dispatch, message] of bad) {
      const input = {
        expectedVersion: await version(),
        reason: 'test',
        document: { ...DEFAULT_POLICY, dispatch },
      };
      expect(await refused(PUT, { input })).toMatchObject({
        code: 'BAD_USER_INPUT',
        message: expect.stringMatching(message),
      });
    }
  });

  test('weights of DIANA are set one by one; policies without weights say that they have none', async () => {
    const SET = `mutation ($input: UpdateWeightsInput!) { updateWeights(input: $input) { policy { document } } }`;
    const set = async (dispatch: unknown) => ({
      input: { expectedVersion: await version(), reason: 'test', dispatch },
    });
    await put({ kind: 'diana' });
    // What is not set stays as it is by default.
    const one = { network: 1, computation: 1, data: 4 };
    expect(
      await api.must(SET, await set({ both: { network: 2.5 }, dataIntensive: { data: 0, network: 3 } })),
    ).toMatchObject({
      updateWeights: {
        policy: {
          document: {
            dispatch: {
              kind: 'diana',
              queueLimit: 10,
              weights: {
                computational: one,
                dataIntensive: { network: 3, computation: 1, data: 0 },
                both: { ...one, network: 2.5 },
              },
            },
          },
        },
      },
    });
    for (const [weights, message] of [
      [{ both: { latency: 1 } }, /dispatch\.weights\.both/],
      [{ both: 1 }, /dispatch\.weights\.both/],
      [{ network: 1 }, /dispatch\.weights/],
      [{ both: { network: -1 } }, /dispatch\.weights\.both\.network: -1/],
      [7, /^dispatch: 7 .*an object with numbers by weight name/],
      [[1], /^dispatch: /],
    ] as const)
      expect(await refused(SET, await set(weights))).toMatchObject({
        code: 'BAD_USER_INPUT',
        message: expect.stringMatching(message),
      });
    for (const kind of ['job-ratio', 'round-robin', 'random', 'most-flops']) {
      await put({ kind });
      expect(await refused(SET, await set({ network: 1 }))).toMatchObject({
        code: 'BAD_USER_INPUT',
        field: 'dispatch',
        message: expect.stringContaining(`("${kind}") has none`),
      });
    }
  });
});

describe('where a job with data would go', () => {
  test('DIANA: the costs of network, computation and data in seconds, the least total first', async () => {
    const even = { network: 1, computation: 1, data: 1 };
    await put({ kind: 'diana', weights: { computational: even, dataIntensive: even, both: even } });
    const found = await placement({ spec: withData() });
    expect(found).toMatchObject({ site: { id: near }, reason: 'LEAST_COST' });
    expect(found.candidates).toMatchObject([
      {
        site: { id: near },
        eligible: true,
        rank: 1,
        terms: { network: 0, computation: 100, data: 0, total: 100 },
      },
      // 2 s + 50/10; 100·100/300; 1000/10 + 200/20.
      { site: { id: far }, eligible: true, rank: 2, terms: { network: 7, data: 110 } },
    ]);
    expect(found.candidates[1]?.terms.computation).toBeCloseTo(100 / 3);
    expect(found.candidates[1]?.terms.total).toBeCloseTo(100 / 3 + 117);
    expect(found.jobTerms).toMatchObject({
      computation: 0.5,
      dataIntensive: 0.5,
      runs: 0,
      userJobs: 1,
      processors: 1,
      priority: 0,
    });
    expect(found.startsAt).not.toBeNull();
    // The declared share makes it computational, and then data weigh nothing here.
    const cheap = { network: 0, computation: 1, data: 0 };
    await put({ kind: 'diana', weights: { computational: cheap, dataIntensive: even, both: even } });
    expect(await placement({ spec: withData({ computationShare: 0.75 }) })).toMatchObject({
      site: { id: far },
    });
    expect(await placement({ spec: withData({ computationShare: 0.74 }) })).toMatchObject({
      site: { id: near },
    });
    // So much at a place is as good as a dataset there.
    await put({ kind: 'diana' });
    const atFar = await placement({ spec: withData({ inputs: [{ dataset }, { sizeMb: 40, site: far }] }) });
    expect(atFar.candidates).toMatchObject([{ terms: { data: 2 } }, { terms: { data: 110 } }]);
  });

  test('job ratio: power, data and queues, the highest rank first', async () => {
    await put({ kind: 'job-ratio' });
    const reading = await placement({ spec: withData({ computationShare: 0.2 }) });
    expect(reading).toMatchObject({
      site: { id: near },
      reason: 'BEST_RANK',
      jobTerms: { computation: 0.2, dataIntensive: 0.8, runs: 0 },
    });
    expect(reading.candidates).toMatchObject([
      { site: { id: near }, rank: 1, terms: { ppr: 0.25, dpr: 1, qr: 1, dataAccessCost: 0, room: 100 } },
      { site: { id: far }, rank: 2, terms: { ppr: 0.75, dpr: 0, qr: 1, dataAccessCost: 100 } },
    ]);
    expect(reading.candidates.map(({ terms }) => Number(terms.rank?.toFixed(9)))).toEqual([1.85, 1.15]);
    const computing = await placement({ spec: withData({ computationShare: 0.9 }) });
    expect(computing).toMatchObject({ site: { id: far }, reason: 'BEST_RANK' });
    expect(computing.candidates.map(({ terms }) => Number(terms.rank?.toFixed(9)))).toEqual([1.675, 1.325]);
  });

  test('what is wrong with the data of a spec is said', async () => {
    expect(
      await refused(PLACEMENT, { spec: { command: 'x', inputs: [{ dataset: 'dataset_999' }] } }),
    ).toMatchObject({
      code: 'BAD_USER_INPUT',
      message: 'spec.inputs[0].dataset: "dataset_999" is not accepted; accepted: the id of a dataset',
    });
  });
});

test('a decision with a reason that only an earlier release gave is shown as such', async () => {
  const [id] = await submit([{ command: 'x', estimateS: 1000 }]);
  for (let i = 0; i < 3; i++) await schedule(api.parts);
  const decided = async () => {
    const { job } = await api.must<{ job: { decisions: { nodes: Json[] } } }>(
      'query ($id: ID!) { job(id: $id) { decisions { nodes { kind reason message } } } }',
      { id },
    );
    return job.decisions.nodes;
  };
  expect(await decided()).toContainEqual(expect.objectContaining({ kind: 'START', reason: 'HEAD' }));
  await api.db.pool.query("UPDATE decisions SET reason = 'LICENCES_BUSY' WHERE job_id = $1", [
    Number(id?.slice('job_'.length)),
  ]);
  expect(await decided()).toContainEqual({
    ...{ kind: 'START', reason: 'EARLIER_RELEASE' },
    message: 'Started: a reason that only an earlier release gave',
  });
  await api.must('mutation ($ids: [ID!]) { cancelJobs(input: { selection: { ids: $ids } }) { jobIds } }', {
    ids: [id],
  });
});

const WHY = `query ($id: ID!) { job(id: $id) { state site { id } batch whyWaiting { code message numbers { name value } wouldChange }
  decisions { nodes { kind reason from { id } site { id } message candidates { site { id } rank terms { name value } }
    jobTerms { name value } level queued order orderValue respected { at } } } } }`;
interface Why {
  state: string;
  site: { id: string } | null;
  batch: string | null;
  whyWaiting: {
    code: string;
    message: string;
    numbers: Record<string, number>;
    wouldChange: string[];
  } | null;
  decisions: {
    nodes: {
      kind: string;
      reason: string;
      candidates: Candidate[];
      jobTerms: Record<string, number>;
      from: Json | null;
      site: Json | null;
    }[];
  };
}
const why = async (id: string | undefined) => named(await api.must<{ job: Why }>(WHY, { id })).job;
const wide = { command: 'x', cpusPerTask: 4, estimateS: 1000 };

test('inputs on their way to running jobs: over a link one after the other; each sees only their own jobs’', async () => {
  const fast = { network: 0, computation: 1, data: 0 };
  await put({ kind: 'diana', weights: { computational: fast, dataIntensive: fast, both: fast } });
  const ids = await submit([withData(), withData({ inputs: [{ sizeMb: 40, site: near }] })]);
  for (let i = 0; i < 3; i++) await schedule(api.parts);
  const TRANSFERS = `query ($from: ID, $to: ID, $first: Int) { inputTransfers(fromSiteId: $from, toSiteId: $to, first: $first) { nodes {
    job { id } dataset { id } sizeMb from { id } to { id } startsAt endsAt } } }`;
  interface Found {
    inputTransfers: { nodes: (Json & { startsAt: string; endsAt: string })[] };
  }
  const found = async (variables: object, as?: string) =>
    (await api.must<Found>(TRANSFERS, variables, as)).inputTransfers.nodes;
  const transfers = await found({});
  const way = { from: { id: near }, to: { id: far } };
  expect(transfers).toMatchObject([
    { job: { id: ids[0] }, dataset: { id: dataset }, sizeMb: 1000, ...way },
    { job: { id: ids[1] }, dataset: null, sizeMb: 40, ...way },
  ]);
  // 10 MB/s.
  const s = (time: string): number => Date.parse(time) / 1000;
  expect(transfers.map(({ startsAt, endsAt }) => s(endsAt) - s(startsAt))).toEqual([100, 4]);
  expect(transfers[1]?.startsAt).toBe(transfers[0]?.endsAt);
  expect(await found({ first: 1 })).toEqual(transfers.slice(0, 1));
  expect(await found({ to: far })).toEqual(transfers);
  expect(await found({ from: far })).toEqual([]);
  // From page to page each once, whatever ends at the same time; and under the old name as it was.
  interface Sizes {
    inputTransfers: {
      nodes: { sizeMb: number }[];
      pageInfo: { hasNextPage: boolean; endCursor: string };
    };
  }
  const sizes: number[] = [];
  for (let after: string | null = null, next = true; next; ) {
    const { inputTransfers }: Sizes = await api.must<Sizes>(
      'query ($after: String) { inputTransfers(first: 1, after: $after) { nodes { sizeMb } pageInfo { hasNextPage endCursor } } }',
      { after },
    );
    sizes.push(...inputTransfers.nodes.map(({ sizeMb }) => sizeMb));
    ({ hasNextPage: next, endCursor: after } = inputTransfers.pageInfo);
  }
  expect(sizes).toEqual([1000, 40]);
  const { key } = await api.user('USER', unique('other'));
  expect(await found({}, key)).toEqual([]);
  await api.must('mutation ($ids: [ID!]) { cancelJobs(input: { selection: { ids: $ids } }) { jobIds } }', {
    ids,
  });
});

describe('jobs that the root holds back', () => {
  test('job ratio: in batches while there is room; who finds none waits at the root, with all terms', async () => {
    await put({ kind: 'job-ratio', queueLimit: 1 });
    const ids = await submit(Array.from({ length: 6 }, () => wide));
    // One at each site starts, one in each queue waits.
    for (let i = 0; i < 3; i++) await schedule(api.parts);
    const jobs = await Promise.all(ids.map(why));
    expect(jobs.map(({ state }) => state)).toEqual([
      'ASSIGNED',
      'ASSIGNED',
      'DISPATCHED',
      'DISPATCHED',
      'QUEUED',
      'QUEUED',
    ]);
    expect(jobs.map(({ batch }) => batch)).toEqual(['test', 'test', 'test', 'test', null, null]);
    expect(jobs[0]?.site).toEqual({ id: far });
    expect(jobs[0]?.decisions.nodes[0]).toMatchObject({
      kind: 'DISPATCH',
      reason: 'BEST_RANK',
      from: null,
      site: { id: far },
      candidates: [
        { site: { id: far }, rank: 1, terms: { ppr: 0.75 } },
        { site: { id: near }, rank: 2, terms: { ppr: 0.25 } },
      ],
      jobTerms: { computation: 0.5 },
      level: null,
      queued: null,
      order: null,
    });
    expect(jobs[0]?.decisions.nodes[1]).toMatchObject({
      kind: 'START',
      candidates: [],
      jobTerms: { aging: expect.any(Number), licenses: expect.any(Number) },
      queued: 1,
      order: 'OWN_PRIORITY',
      orderValue: expect.any(Number),
      respected: null,
    });
    // Sent where there was room, though the other ranked higher.
    expect(jobs[1]?.decisions.nodes[0]).toMatchObject({
      reason: 'BEST_RANK_WITH_ROOM',
      candidates: [
        { site: { id: near }, rank: 1 },
        { site: { id: far }, rank: 2 },
      ],
    });
    const last = jobs[5]?.whyWaiting;
    expect(last).toMatchObject({
      code: 'QUEUES_FULL',
      numbers: { cpusPerTask: 4, sites: 2, computation: 0.5, room: 0 },
    });
    expect(last?.wouldChange.length).toBeGreaterThan(0);
    const dry = await placement({ job: ids[5] });
    expect(dry).toMatchObject({ site: null, reason: 'QUEUES_FULL', startsAt: null });
    expect(dry.candidates.map(({ terms }) => terms.room)).toEqual([0, 0]);
    // Of a page, batches are read together.
    const page = await api.must<{ jobs: { nodes: { batch: string | null }[] } }>(
      'query ($ids: [ID!]) { jobs(filter: { ids: $ids }) { nodes { batch } } }',
      { ids },
    );
    expect(page.jobs.nodes.map(({ batch }) => batch)).toEqual(jobs.map(({ batch }) => batch));
  });
});

describe('DIANA', () => {
  const STANDINGS = `query ($groups: Int) { userStandings { user { id } site { id } quotaShare queuedJobs groups(first: $groups) { processors jobs threshold priority queue } } }`;
  const PEERS =
    '{ congestion { nodes { site { id name metaQueuedJobs queuedJobs } alive lastHeardAt queued metaQueued arrivalRate serviceRate congested powerTotal } } }';

  test('jobs in meta-queues: their terms, their users’ standings, and the congestion of sites', async () => {
    // Each site runs a job and has its local queue full.
    await put({ kind: 'round-robin' });
    await submit(Array.from({ length: 4 }, () => wide));
    await schedule(api.parts);
    await put({ kind: 'diana', queueLimit: 1, congestionThreshold: 0.5 });
    const [rich, poor] = [await api.user('USER', unique('u')), await api.user('USER', unique('u'))];
    await api.must(
      'mutation ($input: UpdateQuotaInput!) { updateQuota(input: $input) { user { quotaShare } } }',
      {
        input: { userId: rich.id, quotaShare: 3, reason: 'test' },
      },
    );
    const own = await submit([wide, { ...wide, cpusPerTask: 1 }, { ...wide, cpusPerTask: 1 }], rich.key);
    const theirs = await submit(
      Array.from({ length: 3 }, () => wide),
      poor.key,
    );
    await schedule(api.parts);
    const queued = await Promise.all([...own, ...theirs].map(why));
    expect(new Set(queued.map(({ state }) => state))).toEqual(new Set(['QUEUED']));
    expect(queued.every(({ site }) => site !== null)).toBe(true);
    expect(queued[0]?.decisions.nodes[0]).toMatchObject({
      kind: 'DISPATCH',
      reason: 'LEAST_COST',
      from: null,
    });

    // In each site's meta-queue, among the jobs there: N = q·T/(Q·t), Pr = (N − n)/N or (N − n)/n.
    const processors = [4, 1, 1, 4, 4, 4];
    const quotas = { [rich.id]: 3, [poor.id]: 1 };
    const waiting = queued.map(({ site }, i) => ({
      site: site?.id as string,
      user: i < own.length ? rich.id : poor.id,
      processors: processors[i] as number,
    }));
    const standingOf = (job: (typeof waiting)[number]) => {
      const here = waiting.filter(({ site }) => site === job.site);
      const all = here.reduce((sum, other) => sum + other.processors, 0);
      const users = new Set(here.map(({ user }) => user));
      const sum = [...users].reduce((total, user) => total + (quotas[user] as number), 0);
      const n = here.filter(({ user }) => user === job.user).length;
      const threshold = ((quotas[job.user] as number) * all) / (sum * job.processors);
      const priority = n <= threshold ? (threshold - n) / threshold : (threshold - n) / n;
      return { all, sum, n, threshold, priority };
    };
    const { userStandings } = await api.must<{
      userStandings: (Json & {
        site: { id: string };
        user: { id: string };
        queuedJobs: number;
        groups: Json[];
      })[];
    }>(STANDINGS, { groups: 100 });
    expect(userStandings.reduce((sum, { queuedJobs }) => sum + queuedJobs, 0)).toBe(6);
    for (const { site, user, queuedJobs, quotaShare, groups } of userStandings) {
      expect(quotaShare).toBe(quotas[user.id]);
      for (const group of groups) {
        const job = { site: site.id, user: user.id, processors: group.processors as number };
        const { n, threshold, priority } = standingOf(job);
        expect(queuedJobs).toBe(n);
        expect(group).toMatchObject({
          threshold: expect.closeTo(threshold, 9),
          priority: expect.closeTo(priority, 9),
        });
      }
    }
    const mine = await api.must<{ userStandings: { user: { id: string }; groups: object[] }[] }>(
      STANDINGS,
      { groups: 1 },
      rich.key,
    );
    expect(mine.userStandings.every(({ user, groups }) => user.id === rich.id && groups.length === 1)).toBe(
      true,
    );
    const theirsOnly = await api.must<{ userStandings: { user: { id: string } }[] }>(
      STANDINGS,
      { groups: 100 },
      poor.key,
    );
    expect(new Set(theirsOnly.userStandings.map(({ user }) => user.id))).toEqual(new Set([poor.id]));

    const last = queued[5]?.whyWaiting;
    expect(last?.code).toBe('META_QUEUE');
    const expected = standingOf(waiting[5] as (typeof waiting)[number]);
    expect(last?.numbers).toMatchObject({
      threshold: expect.closeTo(expected.threshold, 9),
      priority: expect.closeTo(expected.priority, 9),
      userJobs: expected.n,
      processors: 4,
      allProcessors: expected.all,
      quota: 1,
      quotas: expected.sum,
      queueLimit: 1,
    });
    expect(last?.message).toContain(`${last?.numbers.ahead} jobs ahead`);
    const dry = await placement({ job: theirs[2] });
    expect(dry.site).toEqual(queued[5]?.site);
    expect(dry.candidates.every(({ terms }) => typeof terms.total === 'number')).toBe(true);

    const {
      congestion: { nodes: congestion },
    } = await api.must<{
      congestion: { nodes: (Json & { site: { id: string }; metaQueued: number; arrivalRate: number })[] };
    }>(PEERS);
    expect(congestion.map(({ site }) => site.id)).toEqual([far, near]);
    expect(congestion).toMatchObject([
      { alive: true, queued: 1, congested: true, powerTotal: 1200, site: { name: 'far', queuedJobs: 1 } },
      { alive: true, queued: 1, congested: true, powerTotal: 400, site: { name: 'near', queuedJobs: 1 } },
    ]);
    for (const { site } of congestion) {
      const here = queued.filter((job) => job.site?.id === site.id).length;
      expect(congestion.find((one) => one.site.id === site.id)).toMatchObject({
        metaQueued: here,
        site: { metaQueuedJobs: here },
      });
    }
    // 4 + 6 jobs came to the two of them within the 600 s.
    expect(congestion.reduce((sum, one) => sum + one.arrivalRate, 0)).toBeGreaterThanOrEqual(10 / 600);
    interface Page {
      congestion: { nodes: Json[]; pageInfo: { hasNextPage: boolean; endCursor: string } };
    }
    const page = (after?: string) =>
      api.must<Page>(
        'query ($after: String) { congestion(first: 1, after: $after) { nodes { site { id } } pageInfo { hasNextPage endCursor } } }',
        { after },
      );
    const first = (await page()).congestion;
    expect(first).toMatchObject({ nodes: [{ site: { id: far } }], pageInfo: { hasNextPage: true } });
    expect((await page(first.pageInfo.endCursor)).congestion).toMatchObject({
      ...{ nodes: [{ site: { id: near } }], pageInfo: { hasNextPage: false } },
    });
  });

  test('a job that goes from one meta-queue to another says when, and who listens to jobs hears of it', async () => {
    await put({ kind: 'diana', queueLimit: 1 });
    const [id] = (await submit([wide])) as [string];
    const { latestCursor } = await api.must<{ latestCursor: string }>('{ latestCursor }');
    const [from, to] = [near, far].map(numberOf) as [number, number];
    const explanation = {
      sites: [],
      terms: {},
      candidates: [],
      ineligible: {},
      level: null,
      priorityTerms: null,
    };
    const move = { jobId: numberOf(id), queue: 'META', priority: 0, explanation } as const;
    const now = Date.now() / 1000;
    const context = { policyVersion: await version(), cycle: 'here', now };
    await api.parts.store.applyMoves([{ ...move, from: null, to: from, reason: 'LEAST_COST' }], context);
    const query = `{ job(id: "${id}") { state site { id } migratedAt whyWaiting { code numbers { name value } } decisions { nodes { reason from { id } site { id } } } } }`;
    expect(await api.must(query)).toMatchObject({ job: { site: { id: near }, migratedAt: null } });
    await api.parts.store.applyMoves([{ ...move, from, to, reason: 'EXPORTED' }], context);
    const { job } = await api.must<{ job: Json & { migratedAt: string } }>(query);
    expect(job).toMatchObject({
      state: 'QUEUED',
      site: { id: far },
      decisions: {
        nodes: [
          { reason: 'LEAST_COST', from: null, site: { id: near } },
          { reason: 'EXPORTED', from: { id: near }, site: { id: far } },
        ],
      },
    });
    expect(Math.abs(Date.parse(job.migratedAt) / 1000 - now)).toBeLessThan(60);
    expect(
      await api.must(
        `{ events(after: "${latestCursor}") { nodes { objectId fromState toState site { id } } } }`,
      ),
    ).toMatchObject({
      events: {
        nodes: expect.arrayContaining([
          { objectId: id, fromState: 'QUEUED', toState: 'QUEUED', site: { id: near } },
          { objectId: id, fromState: 'QUEUED', toState: 'QUEUED', site: { id: far } },
        ]),
      },
    });
    // Held, it is the root's again.
    await api.must(
      `mutation { holdJobs(input: { selection: { ids: ["${id}"] } }) { jobIds } releaseJobs(input: { selection: { ids: ["${id}"] } }) { jobIds } }`,
    );
    expect(await api.must(`{ job(id: "${id}") { state site { id } } }`)).toEqual({
      job: { state: 'QUEUED', site: null },
    });
  });
});

test('decisions say in a sentence what was done and why', async () => {
  await put(DEFAULT_POLICY.dispatch);
  const ids = await submit(Array.from({ length: 3 }, () => ({ command: 'x', cpusPerTask: 4 })));
  await schedule(api.parts);
  const { jobs } = await api.must<{
    jobs: { nodes: { id: string; state: string; site: { id: string; name: string } }[] };
  }>('query ($ids: [ID!]) { jobs(filter: { ids: $ids }) { nodes { id state site { id name } } } }', { ids });
  const waiting = jobs.nodes.find(({ state }) => state === 'DISPATCHED')!;
  const started = jobs.nodes.find(({ state }) => state === 'ASSIGNED')!;
  const { id: siteId, name } = waiting.site;
  await api.must('mutation ($siteId: ID!) { drainSite(input: { siteId: $siteId }) { site { id } } }', {
    siteId,
  });
  const context = { policyVersion: await version(), cycle: 'test', now: Date.now() / 1000 };
  await api.parts.store.takeBack(numberOf(siteId), context, 10);
  const messagesOf = async (job: string): Promise<string[]> => {
    const query = 'query ($job: ID!) { job(id: $job) { decisions { nodes { message } } } }';
    const found = await api.must<{ job: { decisions: { nodes: { message: string }[] } } }>(query, { job });
    return found.job.decisions.nodes.map(({ message }) => message);
  };
  expect(await messagesOf(waiting.id)).toEqual([
    expect.stringMatching(`^Dispatched to ${name}: [a-z].*[a-z]$`),
    `Returned to the global queue: ${name} is draining`,
  ]);
  expect(await messagesOf(started.id)).toEqual([
    `Dispatched to ${started.site.name}: nothing of equal or higher priority is queued there`,
    'Started: head of the queue, resources free',
  ]);
  await api.must(
    'mutation ($siteId: ID!) { updateSite(input: { siteId: $siteId, state: UP }) { site { id } } }',
    {
      siteId,
    },
  );
});
