/** What is typed at terminals, from the user to the agent: who may, how much, how often, and what becomes of what is lost. */
import { beforeAll, beforeEach, expect, test } from 'vitest';
import { unique, withApi } from './support/api.js';
import { type Followed, follow } from './support/follow.js';
import { schedule } from './support/schedule.js';

const api = withApi();
let site = '';
let agent = '';
let agentId = '';
let ada: { key: string };
let job = '';

interface Piece {
  job: string;
  epoch: number;
  sequence: number;
  base64: string;
  size: object | null;
}

beforeAll(async () => {
  const { createSite } = await api.must<{ createSite: { site: { id: string } } }>(
    'mutation { createSite(input: { name: "s" }) { site { id } } }',
  );
  site = createSite.site.id;
  await api.must(
    `mutation { createMachine(input: { siteId: "${site}", name: "m", cpus: 64, memoryMb: 1000, labels: [{ name: "terminal", value: "yes" }] }) { machine { id } } }`,
  );
  agent = (await api.user('AGENT', 'agent', site)).key;
  ada = await api.user('USER', unique('ada'));
});

const submit = (terminal: object | null, more: object = {}, key = ada.key) =>
  api.ask<{ submitJobs: { jobIds: string[] } | null }>(
    'mutation ($input: SubmitJobsInput!) { submitJobs(input: $input) { jobIds } }',
    { input: { jobs: [{ command: 'bash', terminal, ...more }] } },
    key,
  );
const SIZE = { rows: 24, columns: 80 };
const base64 = (text: string | Buffer): string => Buffer.from(text).toString('base64');
const send = async (input: object, key = ada.key) => {
  const answer = await api.ask<{ sendInput: { taken: boolean } | null }>(
    'mutation ($input: SendInputInput!) { sendInput(input: $input) { taken } }',
    { input: { jobId: job, epoch: 1, ...input } },
    key,
  );
  return answer.errors?.[0]?.extensions.code ?? answer.data.sendInput?.taken;
};
const listen = (key = agent, id = agentId): Followed<Piece> =>
  follow<Piece>(
    api.subscriber(key),
    'subscription ($site: ID!, $agent: ID!) { runInput(site: $site, agent: $agent) { job epoch sequence base64 size { rows columns } } }',
    { site, agent: id },
  );
const take = (taken: object[], key = agent) =>
  api.ask(
    'mutation ($site: ID!, $taken: [TakenInput!]!) { takeInput(site: $site, taken: $taken) }',
    { site, taken },
    key,
  );

/** A job with a terminal that runs. */
beforeEach(async () => {
  agentId = await api.serve(site, agent);
  job = (await submit(SIZE)).data.submitJobs!.jobIds[0]!;
  await schedule(api.parts);
  const started = { job, epoch: 1, phase: 'STARTED', at: new Date().toISOString() };
  await api.must(
    'mutation ($site: ID!, $agent: ID!, $reports: [RunReportInput!]!) { reportRuns(site: $site, agent: $agent, reports: $reports) { results } }',
    { site, agent: agentId, reports: [started] },
    agent,
  );
});

test('what is typed reaches the agent, and is taken when it says so; then the next', async () => {
  const heard = listen();
  // From when it is listened to.
  await expect
    .poll(async () => {
      void send({ sequence: 1, base64: base64('ls\n'), size: { rows: 50, columns: 100 } });
      return heard.got.length;
    })
    .toBeGreaterThan(0);
  expect(heard.got[0]).toEqual({
    ...{ job, epoch: 1, sequence: 1, base64: base64('ls\n'), size: { rows: 50, columns: 100 } },
  });
  // As a client and an agent do: again, until it is taken.
  for (let taken: unknown = false; taken !== true; ) {
    const answered = send({ sequence: 2 });
    await expect.poll(() => heard.got).toContainEqual({ job, epoch: 1, sequence: 2, base64: '', size: null });
    await take([{ job, epoch: 1, sequence: 2 }]);
    taken = await answered;
  }
  heard.stop();
  // Nobody has kept it, nor anything that was typed.
  const kept = await api.db.pool.query<{ text: string }>(
    `SELECT jobs::text || runs::text AS text FROM jobs JOIN runs ON job_id = id`,
  );
  for (const { text } of kept.rows) expect(text).not.toContain(base64('ls\n'));
  expect(api.log.join()).not.toContain(base64('ls\n'));
});

test('only who submitted the job types there, while it runs', async () => {
  const stranger = await api.user('USER', unique('eve'));
  const operator = await api.user('OPERATOR', unique('op'));
  expect(await send({ sequence: 1 }, stranger.key)).toBe('NOT_FOUND');
  for (const key of [operator.key, api.adminKey]) expect(await send({ sequence: 1 }, key)).toBe('FORBIDDEN');
  expect(await send({ sequence: 1 }, agent)).toBe('FORBIDDEN');
  expect(await send({ sequence: 1, epoch: 2 })).toBe('CONFLICT');
  expect(
    await send({ sequence: 1, jobId: (await submit(SIZE, { held: true })).data.submitJobs!.jobIds[0]! }),
  ).toBe('CONFLICT');
  expect(await send({ sequence: 1, jobId: (await submit(null)).data.submitJobs!.jobIds[0]! })).toBe(
    'CONFLICT',
  );
});

test('a piece is bounded, and so is what waits', async () => {
  expect(await send({ sequence: 1, base64: base64(Buffer.alloc(4_001)) })).toBe('LIMIT_EXCEEDED');
  expect(await send({ sequence: 0 })).toBe('BAD_USER_INPUT');
  for (const size of [
    { rows: 0, columns: 80 },
    { rows: 24, columns: 1_001 },
  ])
    expect(await send({ sequence: 1, size })).toBe('BAD_USER_INPUT');
  const largest = base64(Buffer.alloc(4_000, 0xff));
  const all = Promise.all(Array.from({ length: 12 }, () => send({ sequence: 7, base64: largest })));
  // Of pieces that are the same, four wait; the others are refused at once. No agent takes them.
  const answers = await all;
  expect(answers.filter((answer) => answer === 'LIMIT_EXCEEDED')).toHaveLength(8);
  expect(answers.filter((answer) => answer === false)).toHaveLength(4);
});

test('agents of other sites hear nothing, and answer for nobody', async () => {
  const { createSite } = await api.must<{ createSite: { site: { id: string } } }>(
    `mutation { createSite(input: { name: "${unique('other')}" }) { site { id } } }`,
  );
  const other = (await api.user('AGENT', unique('agent'), createSite.site.id)).key;
  const heard = listen(other);
  await expect.poll(() => heard.end).toMatchObject({ error: [{ extensions: { code: 'FORBIDDEN' } }] });
  expect((await take([{ job, epoch: 1, sequence: 1 }], other)).errors?.[0]?.extensions.code).toBe(
    'FORBIDDEN',
  );
});

test('a job asks for machines with terminals, and for one terminal', async () => {
  const { job: shown } = await api.must<{ job: object }>(
    `{ job(id: "${job}") { machineConstraint terminal { rows columns } } }`,
  );
  expect(shown).toEqual({ machineConstraint: 'terminal', terminal: SIZE });
  const refused = async (terminal: object, more: object = {}) =>
    (await submit(terminal, more)).errors?.[0]?.message;
  expect(await refused({ rows: 0, columns: 80 })).toMatch(/terminal\.rows/);
  expect(await refused(SIZE, { tasks: 2 })).toMatch(/terminal.*launch ONCE/);
  expect((await submit(SIZE, { tasks: 2, launch: 'ONCE' })).errors).toBeUndefined();
});
