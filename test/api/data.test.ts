/** Datasets, replicas and links: an operator's changes, bulk import, and what agents measure. */
import { beforeEach, describe, expect, test } from 'vitest';
import { type Json, unique, withApi } from './support/api.js';

const api = withApi();

beforeEach(() => {
  api.wakes.length = 0;
});

/** The first error's code, field and message. */
async function refused(query: string, variables: object = {}, key = api.adminKey) {
  const { errors } = await api.ask(query, variables, key);
  return { ...errors?.[0]?.extensions, message: errors?.[0]?.message };
}

async function site(name = unique('site')): Promise<{ id: string; name: string }> {
  return (
    await api.must<{ createSite: { site: { id: string; name: string } } }>(
      'mutation ($name: String!) { createSite(input: { name: $name }) { site { id name } } }',
      { name },
    )
  ).createSite.site;
}

interface Dataset {
  id: string;
  name: string;
  sizeMb: number;
  replicas: { name: string }[];
}
const FIELDS = 'id name sizeMb replicas { name }';
const create = async (input: object) =>
  (
    await api.must<{ createDataset: { dataset: Dataset } }>(
      `mutation ($input: DatasetInput!) { createDataset(input: $input) { dataset { ${FIELDS} } } }`,
      { input },
    )
  ).createDataset.dataset;
const audit = async () =>
  (
    await api.must<{ audit: { nodes: { action: string; target: string; before: Json; after: Json }[] } }>(
      '{ audit(first: 1) { nodes { action target before after } } }',
    )
  ).audit.nodes[0];
const latestCursor = async () => (await api.must<{ latestCursor: string }>('{ latestCursor }')).latestCursor;

describe('datasets', () => {
  test('are made known, changed and removed; each step wakes the root, has its event and is in the audit log', async () => {
    const [b, a] = [await site('b-site'), await site('a-site')];
    const after = await latestCursor();
    api.wakes.length = 0;
    const name = unique('höher "data"');
    const made = await create({ name, sizeMb: 12.5, replicaSiteIds: [b.id, a.id, b.id] });
    expect(made).toEqual({
      id: expect.stringMatching(/^dataset_\d+$/),
      name,
      sizeMb: 12.5,
      replicas: [{ name: 'a-site' }, { name: 'b-site' }],
    });
    expect(api.wakes).toEqual(['root']);
    expect(await audit()).toMatchObject({
      action: 'createDataset',
      target: made.id,
      before: null,
      after: { name },
    });

    const change = `mutation ($input: UpdateDatasetInput!) { updateDataset(input: $input) { dataset { ${FIELDS} } } }`;
    expect(await api.must(change, { input: { datasetId: made.id, sizeMb: 0 } })).toEqual({
      updateDataset: { dataset: { ...made, sizeMb: 0 } },
    });
    const replicas = `mutation ($id: ID!, $add: [ID!]!, $remove: [ID!]!) { updateReplicas(input: { datasetId: $id, addSiteIds: $add, removeSiteIds: $remove }) { dataset { ${FIELDS} } } }`;
    expect(await api.must(replicas, { id: made.id, add: [a.id], remove: [b.id] })).toMatchObject({
      updateReplicas: { dataset: { replicas: [{ name: 'a-site' }] } },
    });
    const look = `query ($id: ID!, $name: String) { dataset(id: $id) { name } node(id: $id) { __typename id } datasets(name: $name) { nodes { id } } }`;
    expect(await api.must(look, { id: made.id, name: 'her "da' })).toEqual({
      dataset: { name },
      node: { __typename: 'Dataset', id: made.id },
      datasets: { nodes: [{ id: made.id }] },
    });
    await api.must('mutation ($id: ID!) { removeDataset(input: { datasetId: $id }) { dataset { id } } }', {
      id: made.id,
    });
    expect(await audit()).toMatchObject({ action: 'removeDataset', target: made.id });
    expect(await api.must(look, { id: made.id })).toMatchObject({ dataset: null, node: null });
    expect(api.wakes).toEqual(['root', 'root', 'root', 'root']);
    expect(
      await api.must(`{ events(after: "${after}", first: 100) { nodes { kind objectId } } }`),
    ).toMatchObject({
      events: { nodes: expect.arrayContaining([{ kind: 'DATA', objectId: made.id }]) },
    });
    // Its name is free again.
    expect((await create({ name, sizeMb: 1 })).id).not.toBe(made.id);
  });

  test('what cannot be is refused with the field, the value and what is accepted', async () => {
    const { id: dataset, name } = await create({ name: unique('d'), sizeMb: 1 });
    const make = 'mutation ($input: DatasetInput!) { createDataset(input: $input) { dataset { id } } }';
    const cases: [object, string, RegExp][] = [
      [{ name: '', sizeMb: 1 }, 'BAD_USER_INPUT', /^name: "" .*1 to 200 characters/],
      [{ name: 'x'.repeat(201), sizeMb: 1 }, 'BAD_USER_INPUT', /^name: .*1 to 200 characters/],
      [{ name: 'a\0', sizeMb: 1 }, 'BAD_USER_INPUT', /^name: /],
      [{ name: 'x', sizeMb: -1 }, 'BAD_USER_INPUT', /^sizeMb: -1 .*0 to/],
      [{ name: 'x', sizeMb: 1, replicaSiteIds: ['job_1'] }, 'BAD_USER_INPUT', /^replicaSiteIds: "job_1"/],
      [{ name: 'x', sizeMb: 1, replicaSiteIds: ['site_999'] }, 'NOT_FOUND', /site 999/],
      [{ name, sizeMb: 1 }, 'CONFLICT', new RegExp(name)],
    ];
    for (const [input, code, message] of cases) {
      expect(await refused(make, { input })).toMatchObject({ code, message: expect.stringMatching(message) });
    }
    const many = Array.from({ length: 1_001 }, (_, i) => `site_${i + 1}`);
    expect(await refused(make, { input: { name: 'x', sizeMb: 1, replicaSiteIds: many } })).toMatchObject({
      code: 'LIMIT_EXCEEDED',
      field: 'replicaSiteIds',
    });
    const change =
      'mutation ($input: UpdateDatasetInput!) { updateDataset(input: $input) { dataset { id } } }';
    expect(await refused(change, { input: { datasetId: dataset, name: null } })).toMatchObject({
      code: 'BAD_USER_INPUT',
      field: 'name',
    });
    expect(await refused(change, { input: { datasetId: 'dataset_999999', sizeMb: 1 } })).toMatchObject({
      code: 'NOT_FOUND',
    });
    const both = `mutation { updateReplicas(input: { datasetId: "${dataset}", addSiteIds: ["site_1"], removeSiteIds: ["site_1"] }) { dataset { id } } }`;
    expect(await refused(both)).toMatchObject({ code: 'CONFLICT' });
    expect(api.wakes.slice(1)).toEqual([]);
  });

  test('are listed by name, in pages', async () => {
    const stem = unique('paged');
    const names = Array.from({ length: 7 }, (_, i) => `${stem}-${i}`);
    for (const name of [...names].reverse()) await create({ name, sizeMb: 1 });
    const query = `query ($name: String, $after: String) { datasets(name: $name, first: 3, after: $after) {
      edges { cursor } nodes { name } pageInfo { hasNextPage endCursor } } }`;
    interface Page {
      datasets: { nodes: Dataset[]; pageInfo: { hasNextPage: boolean; endCursor: string } };
    }
    const found: string[] = [];
    let after: string | null = null;
    for (let more = true; more; ) {
      const { datasets }: Page = await api.must<Page>(query, { name: stem, after });
      found.push(...datasets.nodes.map((one) => one.name));
      after = datasets.pageInfo.endCursor;
      more = datasets.pageInfo.hasNextPage;
    }
    expect(found).toEqual(names);
    expect(await refused('{ datasets(after: "x") { nodes { id } } }')).toMatchObject({
      code: 'BAD_USER_INPUT',
      field: 'after',
    });
    expect(await refused('{ datasets(first: 6000) { nodes { id } } }')).toMatchObject({
      code: 'LIMIT_EXCEEDED',
    });
  });

  test('an import adds and changes by name, all or none; each fault names its dataset, field, value and what is accepted', async () => {
    const here = await site();
    const other = await site();
    const known = await create({ name: unique('known'), sizeMb: 1, replicaSiteIds: [other.id] });
    const query = `mutation ($datasets: [DatasetInput!]!) { importDatasets(input: { datasets: $datasets }) {
      created updated errors { index field message } } }`;
    const stem = unique('imported');
    const datasets = [
      { name: known.name, sizeMb: 7, replicaSiteIds: [here.id] },
      { name: stem, sizeMb: 2, replicaSiteIds: [here.id, other.id] },
      { name: `${stem}-0`, sizeMb: 0 },
    ];
    expect(await api.must(query, { datasets })).toEqual({
      importDatasets: { created: 2, updated: 1, errors: [] },
    });
    expect(await audit()).toMatchObject({ action: 'importDatasets', after: { created: 2, updated: 1 } });
    expect(await api.must(`{ dataset(id: "${known.id}") { sizeMb replicas { name } } }`)).toEqual({
      dataset: { sizeMb: 7, replicas: [{ name: here.name }, { name: other.name }] },
    });

    const before = await api.must('{ datasets(first: 5000) { nodes { id name sizeMb } } }');
    const bad = [
      { name: `${stem}-new`, sizeMb: 1 },
      { name: '', sizeMb: -3, replicaSiteIds: ['site_999', 'here'] },
      { name: `${stem}-new`, sizeMb: 1 },
    ];
    const { importDatasets } = await api.must<{ importDatasets: object }>(query, { datasets: bad });
    expect(importDatasets).toEqual({
      created: 0,
      updated: 0,
      errors: [
        { index: 1, field: 'name', message: 'name: "" is not accepted; accepted: 1 to 200 characters' },
        { index: 1, field: 'sizeMb', message: 'sizeMb: -3 is not accepted; accepted: 0 to 1000000000000' },
        {
          index: 1,
          field: 'replicaSiteIds',
          message: 'replicaSiteIds: "site_999" is not accepted; accepted: the id of a site',
        },
        {
          index: 1,
          field: 'replicaSiteIds',
          message: 'replicaSiteIds: "here" is not accepted; accepted: the id of a site',
        },
        { index: 2, field: 'name', message: `name: "${stem}-new" is not accepted; accepted: each name once` },
      ],
    });
    expect(await api.must('{ datasets(first: 5000) { nodes { id name sizeMb } } }')).toEqual(before);

    const faultsOf = async (given: object[]) =>
      (await api.must<{ importDatasets: { errors: Json[] } }>(query, { datasets: given })).importDatasets
        .errors;
    const none = 'datasets: [] is not accepted; accepted: 1 to 10000 datasets';
    expect(await faultsOf([])).toEqual([{ index: null, field: 'datasets', message: none }]);
    const tooMany = Array.from({ length: 10_001 }, (_, i) => ({ name: `${stem}-${i}`, sizeMb: 1 }));
    expect(await faultsOf(tooMany)).toMatchObject([{ index: null, field: 'datasets' }]);
    expect(await api.must(query, { datasets: tooMany.slice(1) })).toMatchObject({
      importDatasets: { created: 10_000, updated: 0 },
    });
    const faulty = tooMany.slice(1).map((one) => ({ ...one, sizeMb: -1 }));
    expect(await faultsOf(faulty)).toHaveLength(1_000);
  });
});

describe('links', () => {
  const SET = `mutation ($links: [LinkInput!]!) { setLinkValues(input: { links: $links }) {
    links { from { name } to { name } bandwidthMbPerS rttS loss source } } }`;
  const LINKS = `query ($from: ID, $to: ID, $after: String) { links(fromSiteId: $from, toSiteId: $to, first: 2, after: $after) {
    nodes { from { id } to { id } bandwidthMbPerS source } pageInfo { hasNextPage endCursor } } }`;
  interface Links {
    links: {
      nodes: { from: { id: string }; to: { id: string } }[];
      pageInfo: { hasNextPage: boolean; endCursor: string };
    };
  }

  test('are set, listed by their ends in pages, and removed', async () => {
    const [a, b, c] = [await site(), await site(), await site()];
    const links = [
      { fromSiteId: b.id, toSiteId: a.id, bandwidthMbPerS: 10 },
      { fromSiteId: a.id, toSiteId: b.id, bandwidthMbPerS: 100, rttS: 0.05, loss: 0.01 },
      { fromSiteId: a.id, toSiteId: c.id, bandwidthMbPerS: 1000 },
    ];
    const after = await latestCursor();
    api.wakes.length = 0;
    expect(await api.must(SET, { links })).toEqual({
      setLinkValues: {
        links: [
          {
            from: { name: b.name },
            to: { name: a.name },
            bandwidthMbPerS: 10,
            rttS: 0,
            loss: 0,
            source: 'ADMIN',
          },
          {
            from: { name: a.name },
            to: { name: b.name },
            bandwidthMbPerS: 100,
            rttS: 0.05,
            loss: 0.01,
            source: 'ADMIN',
          },
          {
            from: { name: a.name },
            to: { name: c.name },
            bandwidthMbPerS: 1000,
            rttS: 0,
            loss: 0,
            source: 'ADMIN',
          },
        ],
      },
    });
    expect(api.wakes).toEqual(['root']);
    expect(await audit()).toMatchObject({ action: 'setLinks' });
    const events = `{ events(after: "${after}", first: 100) { nodes { kind objectId site { id } } } }`;
    expect(await api.must(events)).toMatchObject({
      events: { nodes: expect.arrayContaining([{ kind: 'DATA', objectId: a.id, site: { id: b.id } }]) },
    });

    const first = await api.must<Links>(LINKS);
    expect(first.links.nodes.map(({ from, to }) => [from.id, to.id])).toEqual([
      [a.id, b.id],
      [a.id, c.id],
    ]);
    const second = await api.must<Links>(LINKS, { after: first.links.pageInfo.endCursor });
    expect(second.links).toMatchObject({ nodes: [{ from: { id: b.id } }], pageInfo: { hasNextPage: false } });
    const ends = async (variables: object) =>
      (await api.must<Links>(LINKS, variables)).links.nodes.map(({ from, to }) => [from.id, to.id]);
    expect(await ends({ from: b.id })).toEqual([[b.id, a.id]]);
    expect(await ends({ to: c.id })).toEqual([[a.id, c.id]]);
    expect(await ends({ from: c.id })).toEqual([]);

    const remove = `mutation { removeLink(input: { fromSiteId: "${a.id}", toSiteId: "${c.id}" }) { link { bandwidthMbPerS } } }`;
    expect(await api.must(remove)).toEqual({ removeLink: { link: { bandwidthMbPerS: 1000 } } });
    expect(await audit()).toMatchObject({ action: 'removeLink', after: null });
    expect(await refused(remove)).toMatchObject({ code: 'NOT_FOUND' });
    expect(await ends({ to: c.id })).toEqual([]);
  });

  test('one bad link and none is set; the fault has its place', async () => {
    const [a, b] = [await site(), await site()];
    const good = { fromSiteId: a.id, toSiteId: b.id, bandwidthMbPerS: 1 };
    const back = { fromSiteId: b.id, toSiteId: a.id, bandwidthMbPerS: 1 };
    const cases: [object, string][] = [
      [{ ...back, bandwidthMbPerS: 0 }, 'links[1].bandwidthMbPerS'],
      [{ ...back, bandwidthMbPerS: 1e10 }, 'links[1].bandwidthMbPerS'],
      [{ ...back, rttS: -1 }, 'links[1].rttS'],
      [{ ...back, loss: 1 }, 'links[1].loss'],
      [{ ...back, fromSiteId: 'site_99999' }, 'links[1].fromSiteId'],
      [{ ...back, toSiteId: 'machine_1' }, 'links[1].toSiteId'],
      [{ ...back, toSiteId: b.id }, 'links[1].toSiteId'],
      [good, 'links[1]'],
    ];
    for (const [bad, field] of cases) {
      expect(await refused(SET, { links: [good, bad] })).toMatchObject({ code: 'BAD_USER_INPUT', field });
    }
    expect(await refused(SET, { links: [] })).toMatchObject({ code: 'BAD_USER_INPUT' });
    const many = Array.from({ length: 10_001 }, () => good);
    expect(await refused(SET, { links: many })).toMatchObject({ code: 'LIMIT_EXCEEDED', field: 'links' });
    expect(await api.must<Links>(LINKS, { from: a.id })).toMatchObject({ links: { nodes: [] } });
  });

  test('an agent reports the links to its own site, and their values become the mean of the last five; history is newest first', async () => {
    const [own, other] = [await site(), await site()];
    const agent = await api.user('AGENT', unique('agent'), own.id);
    const report = `mutation ($site: ID!, $measurements: [LinkMeasurementInput!]!) {
      reportLinks(site: $site, measurements: $measurements) { measuredAt bandwidthMbPerS rttS loss } }`;
    const measure = (bandwidthMbPerS: number, from = other.name) =>
      api.must<{ reportLinks: ({ bandwidthMbPerS: number } | null)[] }>(
        report,
        { site: own.id, measurements: [{ from, bandwidthMbPerS, rttS: 0.1, loss: 0.25 }] },
        agent.key,
      );
    await api.must(SET, { links: [{ fromSiteId: other.id, toSiteId: own.id, bandwidthMbPerS: 999 }] });
    for (const bandwidth of [100, 10, 20, 30, 40]) await measure(bandwidth);
    api.wakes.length = 0;
    expect((await measure(50)).reportLinks).toMatchObject([{ bandwidthMbPerS: 30, rttS: 0.1, loss: 0.25 }]);
    expect(api.wakes).toEqual(['root']);
    const query = `{ links(fromSiteId: "${other.id}") { nodes { to { id } source bandwidthMbPerS measuredAt
      history { bandwidthMbPerS } latest: history(first: 1) { bandwidthMbPerS measuredAt } } } }`;
    const { links } = await api.must<{
      links: { nodes: { measuredAt: string; latest: { measuredAt: string }[] }[] };
    }>(query);
    expect(links.nodes).toMatchObject([
      {
        to: { id: own.id },
        source: 'AGENT',
        bandwidthMbPerS: 30,
        history: [50, 40, 30, 20, 10, 100].map((bandwidthMbPerS) => ({ bandwidthMbPerS })),
        latest: [{ bandwidthMbPerS: 50 }],
      },
    ]);
    expect(links.nodes[0]?.latest[0]?.measuredAt).toBe(links.nodes[0]?.measuredAt);

    // Names that are no other site's are passed over, and told.
    const none = await api.must<{ reportLinks: unknown[] }>(
      report,
      {
        site: own.id,
        measurements: ['nowhere', other.name, own.name].map((from) => ({
          from,
          bandwidthMbPerS: 1,
          rttS: 0,
        })),
      },
      agent.key,
    );
    expect(none.reportLinks).toEqual([null, expect.objectContaining({ rttS: 0.08 }), null]);

    // Another site's links are not its to tell of.
    const elsewhere = {
      site: other.id,
      measurements: [{ from: own.name, bandwidthMbPerS: 1, rttS: 0 }],
    };
    expect(await refused(report, elsewhere, agent.key)).toMatchObject({ code: 'FORBIDDEN' });
    for (const [change, field] of [
      [{ bandwidthMbPerS: -1 }, 'measurements[0].bandwidthMbPerS'],
      [{ rttS: 1e9 }, 'measurements[0].rttS'],
      [{ loss: 2 }, 'measurements[0].loss'],
      [{ from: '' }, 'measurements[0].from'],
    ] as const) {
      const one = { from: other.name, bandwidthMbPerS: 1, rttS: 0, ...change };
      expect(await refused(report, { site: own.id, measurements: [one] }, agent.key)).toMatchObject({
        code: 'BAD_USER_INPUT',
        field,
      });
    }
    const one = { from: other.name, bandwidthMbPerS: 1, rttS: 0 };
    expect(await refused(report, { site: own.id, measurements: [one, one] }, agent.key)).toMatchObject({
      code: 'BAD_USER_INPUT',
      field: 'measurements[1].from',
    });
    const many = Array.from({ length: 1_001 }, () => one);
    expect(await refused(report, { site: own.id, measurements: many }, agent.key)).toMatchObject({
      code: 'LIMIT_EXCEEDED',
    });
  });

  test('go with their site, and so do its replicas', async () => {
    const [a, b] = [await site(), await site()];
    await api.must(SET, { links: [{ fromSiteId: a.id, toSiteId: b.id, bandwidthMbPerS: 1 }] });
    const { id } = await create({ name: unique('d'), sizeMb: 1, replicaSiteIds: [a.id, b.id] });
    await api.must(
      'mutation ($id: ID!) { drainSite(input: { siteId: $id }) { site { id } } removeSite(input: { siteId: $id }) { site { id } } }',
      {
        id: b.id,
      },
    );
    expect(
      await api.must(
        `{ dataset(id: "${id}") { replicas { name } } links(fromSiteId: "${a.id}") { nodes { source } } }`,
      ),
    ).toEqual({
      dataset: { replicas: [{ name: a.name }] },
      links: { nodes: [] },
    });
  });
});
