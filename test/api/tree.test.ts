/** The tree of schedulers through the API: who may change it, what it takes, and what it shows of jobs on their way. */
import { beforeAll, describe, expect, test } from 'vitest';
import { DEFAULT_POLICY } from '../../src/core/index.js';
import { MAX } from '../../src/platform/limits.js';
import { type Json, withApi } from './support/api.js';
import { schedule } from './support/schedule.js';

const api = withApi();

type Change = 'createScheduler' | 'updateScheduler';
async function change(name: Change, type: string, input: object, key?: string): Promise<Json> {
  const { data, errors } = await api.ask<Record<Change, { scheduler: Json }>>(
    `mutation ($input: ${type}!) { ${name}(input: $input) { scheduler { id name parent { id } children { name } sites { name } removedAt } } }`,
    { input },
    key,
  );
  const [error] = errors ?? [];
  return error ? { code: error.extensions.code, message: error.message } : data[name].scheduler;
}
const create = (name: string, parent: unknown = null) =>
  change('createScheduler', 'CreateSchedulerInput', { name, parentId: parent });
const update = (input: object) => change('updateScheduler', 'UpdateSchedulerInput', input);
async function remove(scheduler: unknown): Promise<Json> {
  const { data, errors } = await api.ask<Record<string, Json>>(
    'mutation ($id: ID!) { removeScheduler(input: { schedulerId: $id }) { scheduler { id removedAt } } }',
    { id: scheduler },
  );
  return errors?.[0] ? { code: errors[0].extensions.code } : (data.removeScheduler?.scheduler as Json);
}

describe('schedulers', () => {
  test('are created, renamed, moved and removed: each step wakes the root and is in the audit log', async () => {
    const north = await create('north');
    const below = await create('below', north.id);
    expect(below).toMatchObject({ name: 'below', parent: { id: north.id } });
    const {
      createSite: { site },
    } = await api.must<{ createSite: { site: Json } }>(
      'mutation ($input: CreateSiteInput!) { createSite(input: $input) { site { id scheduler { name } } } }',
      { input: { name: 'oslo', schedulerId: below.id } },
    );
    expect(site.scheduler).toEqual({ name: 'below' });
    api.wakes.length = 0;
    expect(await update({ schedulerId: below.id, name: 'lower' })).toMatchObject({
      name: 'lower',
      parent: { id: north.id },
      sites: [{ name: 'oslo' }],
    });
    expect(await update({ schedulerId: below.id, parentId: null })).toMatchObject({ parent: null });
    expect(await update({ schedulerId: below.id, parentId: north.id })).toMatchObject({
      parent: { id: north.id },
    });
    const top = await create('top');
    expect(await update({ schedulerId: north.id, parentId: top.id })).toMatchObject({
      children: [{ name: 'lower' }],
    });
    expect(await remove(below.id)).toEqual({ id: below.id, removedAt: expect.any(String) });
    expect(new Set(api.wakes)).toEqual(new Set(['root']));
    const { audit, schedulers, tree } = await api.must<Record<string, { nodes: Json[] } & Json[] & Json>>(
      `{ audit(first: 6) { nodes { action target before after } } schedulers { name sites { name } }
         tree { children { name } sites { name } holds waiting channels { port } } }`,
    );
    expect(audit?.nodes.map(({ action }) => action)).toEqual([
      'removeScheduler',
      'updateScheduler',
      'createScheduler',
      'updateScheduler',
      'updateScheduler',
      'updateScheduler',
    ]);
    expect(audit?.nodes[0]).toMatchObject({ target: below.id, before: { name: 'lower' } });
    // What was below goes to the one above.
    expect(schedulers).toEqual([
      { name: 'north', sites: [{ name: 'oslo' }] },
      { name: 'top', sites: [] },
    ]);
    expect(tree).toEqual({ children: [{ name: 'top' }], sites: [], holds: 0, waiting: 0, channels: [] });
    for (const id of [north.id, top.id]) await remove(id);
  });

  test('take no circle, no second of a name, no name that is none, nothing below one that is gone, and so many levels', async () => {
    const path = [await create('level-1')];
    while (path.length < MAX.treeDepth) path.push(await create(`level-${path.length + 1}`, path.at(-1)?.id));
    const [first, second] = path as [Json, Json];
    const last = path.at(-1) as Json;
    expect(await create('too-deep', last.id)).toMatchObject({ code: 'LIMIT_EXCEEDED' });
    const other = await create('other');
    expect(await update({ schedulerId: first.id, parentId: other.id })).toMatchObject({
      code: 'LIMIT_EXCEEDED',
    });
    for (const parent of [first.id, second.id, last.id])
      expect(await update({ schedulerId: first.id, parentId: parent })).toMatchObject({ code: 'CONFLICT' });
    expect(await create('other')).toMatchObject({ code: 'CONFLICT' });
    expect(await create('no name')).toMatchObject({
      code: 'BAD_USER_INPUT',
      message: expect.stringContaining('no name'),
    });
    await remove(other.id);
    expect(await create('orphan', other.id)).toMatchObject({ code: 'NOT_FOUND' });
    expect(await update({ schedulerId: other.id, name: 'x' })).toMatchObject({ code: 'NOT_FOUND' });
    expect(await remove('scheduler_99999')).toEqual({ code: 'NOT_FOUND' });
    for (const { id } of path.reverse()) await remove(id);
  });

  test('are changed by administrators, and seen by users', async () => {
    for (const role of ['USER', 'OPERATOR'] as const) {
      const { key } = await api.user(role, role.toLowerCase());
      expect(await change('createScheduler', 'CreateSchedulerInput', { name: 'mine' }, key)).toMatchObject({
        code: 'FORBIDDEN',
      });
      expect(await api.must('{ schedulers { id } tree { holds } }', {}, key)).toMatchObject({
        schedulers: [],
      });
    }
  });
});

describe('jobs in a tree', () => {
  let west: Json;

  beforeAll(async () => {
    west = await create('west');
    const far = await create('far-west', west.id);
    for (const [name, scheduler, cpus] of [
      ['a', far.id, 4],
      ['b', west.id, 8],
    ] as const) {
      const { createSite } = await api.must<{ createSite: { site: Json } }>(
        'mutation ($input: CreateSiteInput!) { createSite(input: $input) { site { id } } }',
        { input: { name, schedulerId: scheduler } },
      );
      await api.must(
        'mutation ($input: CreateMachineInput!) { createMachine(input: $input) { machine { id } } }',
        {
          input: { siteId: createSite.site.id, name: 'm', cpus, memoryMb: 100 },
        },
      );
      const { key } = await api.user('AGENT', `agent-${name}`, String(createSite.site.id));
      await api.serve(String(createSite.site.id), key);
    }
    await api.must(
      'mutation ($input: UpdatePolicyInput!) { updatePolicy(input: $input) { policy { version } } }',
      {
        input: {
          expectedVersion: 1,
          reason: 'test',
          document: { ...DEFAULT_POLICY, dispatch: { kind: 'grid-tree', queueLimit: 0 } },
        },
      },
    );
  });

  test('tell what they would like, who has them, and their path; schedulers tell what they hold and their channels', async () => {
    const { site } = await api.must<{ site: { nodes: Json[] } }>(
      '{ site: sites(first: 2) { nodes { id name } } }',
    );
    const [a] = site.nodes.filter(({ name }) => name === 'a') as [Json];
    const preferences = [{ site: a.id }, { os: 'linux', licenses: ['cad'], memoryMbPerTask: 50 }];
    const jobs = Array.from({ length: 9 }, () => ({ command: 'x', cpusPerTask: 3, preferences }));
    const { submitJobs } = await api.must<{ submitJobs: { jobIds: string[] } }>(
      'mutation ($input: SubmitJobsInput!) { submitJobs(input: $input) { jobIds } }',
      { input: { jobs } },
    );
    await schedule(api.parts);
    const ids = submitJobs.jobIds;
    const { jobs: seen, schedulers } = await api.must<{ jobs: { nodes: Json[] }; schedulers: Json[] }>(
      `query ($ids: [ID!]!) { jobs(first: 9, filter: { ids: $ids }) { nodes { id state site { name } scheduler { name }
           path { scheduler { name } site { name } reason message at }
           preferences { site { name } os architecture licenses cpusPerTask memoryMbPerTask } } }
         schedulers { name holds waiting channels { port power classes { tasks cpusPerTask os jobs }
           branches { scheduler { name } site { name } port power jobs } } } }`,
      { ids },
    );
    for (const job of seen.nodes) {
      expect(job.preferences).toEqual([
        {
          site: { name: 'a' },
          os: null,
          architecture: null,
          licenses: [],
          cpusPerTask: null,
          memoryMbPerTask: null,
        },
        {
          site: null,
          os: 'linux',
          architecture: null,
          licenses: ['cad'],
          cpusPerTask: null,
          memoryMbPerTask: 50,
        },
      ]);
    }
    // One fits at a, two at b; their path ends there.
    const at = (name: string) =>
      seen.nodes.filter((job) => job.state !== 'QUEUED' && (job.site as Json | null)?.name === name);
    expect([at('a').length, at('b').length]).toEqual([1, 2]);
    for (const job of at('a')) {
      const path = job.path as Json[];
      expect(path.at(-1)).toMatchObject({ site: { name: 'a' }, reason: 'CLAIMED', at: expect.any(String) });
      // They may have been b's before butterfly took them to what they like.
      const through = path.map((step) => (step.scheduler as Json | null)?.name ?? null);
      expect([through[0], ...through.slice(-3)]).toEqual(['west', 'far-west', null, null]);
    }
    expect(schedulers.find(({ name }) => name === 'west')).toEqual({
      name: 'west',
      holds: seen.nodes.filter((job) => (job.scheduler as Json | null)?.name === 'west').length,
      waiting: seen.nodes.filter((job) => job.state === 'QUEUED' && (job.scheduler ?? job.site) !== null)
        .length,
      channels: [
        {
          port: 1,
          power: 12,
          classes: [{ tasks: 1, cpusPerTask: 3, os: null, jobs: 6 }],
          branches: expect.arrayContaining([
            expect.objectContaining({ scheduler: { name: 'far-west' }, site: null, power: 4 }),
            expect.objectContaining({ scheduler: null, site: { name: 'b' }, power: 8 }),
          ]),
        },
      ],
    });
  });

  test('preferences that are none are refused with field, value and what is accepted', async () => {
    const refused = async (preference: object) => {
      const { submitJobs } = await api.must<{ submitJobs: { errors: Json[] } }>(
        'mutation ($input: SubmitJobsInput!) { submitJobs(input: $input) { errors { field code } } }',
        { input: { jobs: [{ command: 'x', preferences: [{ os: 'linux' }, preference] }] } },
      );
      return submitJobs.errors;
    };
    const bad = (field: string, code = 'BAD_USER_INPUT') => [{ field, code }];
    expect(await refused({})).toEqual(bad('preferences[1]'));
    expect(await refused({ cpusPerTask: 0 })).toEqual(bad('preferences[1].cpusPerTask'));
    expect(await refused({ memoryMbPerTask: -1 })).toEqual(bad('preferences[1].memoryMbPerTask'));
    expect(await refused({ licenses: ['cad', 'cad'] })).toEqual(bad('preferences[1].licenses'));
    expect(await refused({ site: 'site_99999' })).toEqual([
      { field: 'preferences[1].site', code: expect.any(String) },
    ]);
  });
});
