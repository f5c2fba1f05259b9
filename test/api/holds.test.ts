/** Maintenance windows and reservations through the API, with the engine that plans around them. */
import { beforeAll, expect, it } from 'vitest';
import { PATIENCE_MS } from '../support/patience.js';
import { type Json, withApi } from './support/api.js';
import { withEngine } from './support/engine.js';

const api = withApi();
withEngine(api);
let site = '';
let machine = '';
let ann = '';
const number = (id: string): number => Number(id.split('_')[1]);
const inS = (seconds: number): string => new Date(Date.now() + seconds * 1000).toISOString();

beforeAll(async () => {
  const { createSite } = await api.must<{ createSite: { site: { id: string } } }>(
    'mutation { createSite(input: { name: "here" }) { site { id } } }',
  );
  site = createSite.site.id;
  const input = { siteId: site, name: 'm', cpus: 8, memoryMb: 1000 };
  const { createMachine } = await api.must<{ createMachine: { machine: { id: string } } }>(
    'mutation ($input: CreateMachineInput!) { createMachine(input: $input) { machine { id } } }',
    { input },
  );
  machine = createMachine.machine.id;
  ann = (await api.user('USER', 'ann')).key;
  const agent = { siteId: number(site), identity: 'a', instance: '1', host: 'h', version: '1', protocol: 3 };
  const machines = [{ name: 'm', measured: null, problem: null, waits: null }];
  await api.parts.store.registerAgent({ ...agent, simulated: true, machines }, Date.now() / 1000, 1);
});

async function reserve(
  input: object,
  key?: string,
  dryRun = false,
): Promise<Json & { code?: string; message?: string }> {
  const { data, errors } = await api.ask<{ createHold: Json }>(
    `mutation ($input: CreateHoldInput!) { createHold(input: $input) {
      hold { id kind name wholeSite times { from to } user { name } } machines { machine { id } whole cpus } holds { id } runsInTheWay jobs { id } moved { job { id } before after } } }`,
    { input: { siteId: site, dryRun, ...input } },
    key,
  );
  const [error] = errors ?? [];
  return error ? { code: error.extensions.code as string, message: error.message } : data.createHold;
}
const cancel = async (hold: string, key?: string): Promise<string> => {
  const { data, errors } = await api.ask<{ cancelHold: { hold: { endedAt: string } } }>(
    'mutation ($hold: ID!) { cancelHold(input: { holdId: $hold }) { hold { endedAt } } }',
    { hold },
    key,
  );
  return errors ? (errors[0]?.extensions.code as string) : data.cancelHold.hold.endedAt && 'ended';
};
async function submit(more: object, key = ann): Promise<string> {
  const job = { command: 'true', estimateS: 10, benchmark: 100, ...more };
  const { submitJobs } = await api.must<{ submitJobs: { jobIds: string[]; errors: unknown[] } }>(
    // A machine that has only just been registered may not be known there.
    'mutation ($jobs: [JobInput!]!) { submitJobs(input: { jobs: $jobs, allowUnfit: true }) { jobIds errors { message } } }',
    { jobs: [job] },
    key,
  );
  expect(submitJobs.errors).toEqual([]);
  return submitJobs.jobIds[0] as string;
}
const stateOf = async (id: string): Promise<string> =>
  (await api.must<{ job: { state: string } }>('query ($id: ID!) { job(id: $id) { state } }', { id })).job
    .state;
const assigned = (id: string): Promise<void> =>
  expect.poll(() => stateOf(id), { timeout: PATIENCE_MS }).toBe('ASSIGNED');

it('a window keeps out jobs that may reach into it, lets short ones go, and the others when it is canceled', async () => {
  const made = await reserve({
    kind: 'MAINTENANCE',
    name: 'disks',
    from: inS(600),
    to: inS(1200),
    reason: 'disks',
  });
  expect(made).toMatchObject({
    hold: { kind: 'MAINTENANCE', name: 'disks', wholeSite: true },
    runsInTheWay: 0,
  });
  const hold = (made.hold as { id: string }).id;
  const long = await submit({ runTimeLimitS: 3600 });
  const unlimited = await submit({});
  const short = await submit({ runTimeLimitS: 300 });
  await assigned(short);
  expect([await stateOf(long), await stateOf(unlimited)]).toEqual(['DISPATCHED', 'DISPATCHED']);
  const { job } = await api.must<{
    job: { whyWaiting: { code: string; fitsIfLimitS: number; startsAtLatest: string } };
  }>(
    'query ($id: ID!) { job(id: $id) { whyWaiting { code fitsIfLimitS startsAtLatest } } }',
    { id: long },
    ann,
  );
  const begins = (made.hold as { times: { from: string; to: string }[] }).times[0];
  // The short one may take its limit, and there is room beside it.
  expect(job.whyWaiting.code).toBe('RESERVED');
  // Instants are kept to the millisecond.
  expect(Math.abs(Date.parse(job.whyWaiting.startsAtLatest) - Date.parse(begins?.to ?? ''))).toBeLessThan(10);
  expect(job.whyWaiting.fitsIfLimitS).toBeLessThanOrEqual(600);
  // So does the dry run, of this job and of one that is not submitted yet.
  const dryRun = 'placement(%) { startsAtLatest fitsIfLimitS }';
  const spec = '{ command: "true", estimateS: 10, runTimeLimitS: 3600 }';
  type Bounds = { startsAtLatest: string; fitsIfLimitS: number };
  const { queued, fresh } = await api.must<{ queued: Bounds; fresh: Bounds }>(
    `{ queued: ${dryRun.replace('%', `jobId: "${long}"`)} fresh: ${dryRun.replace('%', `spec: ${spec}`)} }`,
    {},
    ann,
  );
  for (const { startsAtLatest, fitsIfLimitS } of [queued, fresh]) {
    expect(Math.abs(Date.parse(startsAtLatest) - Date.parse(begins?.to ?? ''))).toBeLessThan(10);
    expect(fitsIfLimitS).toBeGreaterThan(0);
    expect(fitsIfLimitS).toBeLessThanOrEqual(600);
  }
  expect(await cancel(hold, ann)).toBe('FORBIDDEN');
  expect(await cancel(hold)).toBe('ended');
  expect(await cancel(hold)).toBe('CONFLICT');
  await assigned(long);
  await assigned(unlimited);

  // Now runs are in the way of the next one.
  const next = { kind: 'MAINTENANCE', from: inS(600), to: inS(1200) };
  expect(await reserve(next)).toMatchObject({ code: 'CONFLICT', message: expect.stringContaining(long) });
  const dry = await reserve(next, undefined, true);
  expect(dry).toMatchObject({ hold: null, runsInTheWay: 2, jobs: [{ id: long }, { id: unlimited }] });
  const later = await reserve({ ...next, onConflict: 'AFTER_JOBS' });
  expect(later).toMatchObject({ runsInTheWay: 2, hold: { kind: 'MAINTENANCE' } });
  expect(await reserve(next)).toMatchObject({ code: 'CONFLICT', message: expect.stringContaining('hold_') });
  await cancel((later.hold as { id: string }).id);
});

it('users reserve within what the site allows, and nobody but them and operators cancels that', async () => {
  const from = inS(7200);
  // To the millisecond, or the two that are let through are more than what is reservable.
  const to = new Date(Date.parse(from) + 3_600_000).toISOString();
  const asked = { machineIds: [machine], cpus: 2, from, to };
  expect(await reserve(asked, ann)).toMatchObject({ code: 'LIMIT_EXCEEDED' });
  await api.must(
    'mutation ($input: UpdateSiteInput!) { updateSite(input: $input) { site { reservableCpuHours } } }',
    {
      input: { siteId: site, reservableCpuHours: 3 },
    },
  );
  const made = await reserve({ ...asked, onConflict: 'AFTER_JOBS' }, ann);
  expect(made).toMatchObject({
    hold: { kind: 'USER', user: { name: expect.stringContaining('ann') } },
    machines: [{ whole: false, cpus: 2 }],
  });
  expect(await reserve({ ...asked, onConflict: 'AFTER_JOBS' }, ann)).toMatchObject({
    code: 'LIMIT_EXCEEDED',
  });
  expect(
    await reserve({ ...asked, tasks: 1, machineIds: undefined, cpus: 1, onConflict: 'AFTER_JOBS' }, ann),
  ).toMatchObject({ machines: [{ machine: { id: machine }, cpus: 1 }] });
  const { id } = made.hold as { id: string };
  const bob = (await api.user('USER', 'bob')).key;
  expect(await cancel(id, bob)).toBe('FORBIDDEN');
  expect(await cancel(id, ann)).toBe('ended');
  const { holds } = await api.must<{ holds: { nodes: Json[] } }>(
    'query ($site: ID) { holds(siteId: $site) { nodes { id user { id } } } }',
    { site },
    bob,
  );
  expect(holds.nodes).toMatchObject([{ user: null }]);
});

it.each([
  [{ kind: 'STANDING', machineIds: ['machine_1'], to: inS(1000) }, 'BAD_USER_INPUT', 'rrule'],
  [{ kind: 'USER', rrule: 'FREQ=DAILY', machineIds: ['machine_1'], to: inS(1000) }, 'BAD_USER_INPUT', 'kind'],
  [{ kind: 'MAINTENANCE', rrule: 'FREQ=DAILY' }, 'BAD_USER_INPUT', 'to'],
  [{ kind: 'MAINTENANCE', rrule: 'FREQ=MINUTELY', to: inS(1000) }, 'BAD_USER_INPUT', 'DAILY'],
  [{ kind: 'MAINTENANCE', rrule: 'FREQ=HOURLY', to: inS(4000) }, 'BAD_USER_INPUT', 'overlap'],
  [
    { kind: 'MAINTENANCE', rrule: 'FREQ=DAILY;UNTIL=20200101T000000Z', to: inS(1000) },
    ...(['BAD_USER_INPUT', '400 days'] as const),
  ],
  [
    { kind: 'MAINTENANCE', rrule: 'FREQ=DAILY', timeZone: 'Mars/Base', to: inS(1000) },
    ...(['BAD_USER_INPUT', 'timeZone'] as const),
  ],
  [{ kind: 'MAINTENANCE', alsoDates: [inS(100)], to: inS(1000) }, 'BAD_USER_INPUT', 'alsoDates'],
  [{ kind: 'MAINTENANCE', users: ['ann'], to: inS(1000) }, 'BAD_USER_INPUT', 'users'],
  [{ machineIds: ['machine_1'], users: ['nobody'], to: inS(1000) }, 'BAD_USER_INPUT', 'nobody'],
  [{ machineIds: ['machine_1'], releaseIdleS: 1, to: inS(1000) }, 'BAD_USER_INPUT', 'releaseIdleS'],
  [{ kind: 'MAINTENANCE', from: inS(2000), to: inS(1000) }, 'BAD_USER_INPUT', 'to'],
  [{ kind: 'MAINTENANCE', to: inS(-10) }, 'BAD_USER_INPUT', 'to'],
  [{ to: inS(1000) }, 'BAD_USER_INPUT', 'machines'],
  [{ tasks: 2, to: inS(1000) }, 'BAD_USER_INPUT', 'tasks'],
  [{ machineIds: ['machine_1'], cpus: 9, to: inS(1000) }, 'CONFLICT', '9 are requested'],
  [{ machineIds: ['machine_99'], to: inS(1000) }, 'CONFLICT', 'machine 99'],
])('refuses %j', async (input, code, message) => {
  expect(await reserve(input)).toEqual({ code, message: expect.stringContaining(message) });
});

it('leaves windows to operators', async () => {
  expect(await reserve({ kind: 'MAINTENANCE', to: inS(1000) }, ann)).toMatchObject({ code: 'FORBIDDEN' });
  expect(await reserve({ machineIds: [machine] }, ann)).toMatchObject({ code: 'BAD_USER_INPUT' });
  const asked = { machineIds: [machine], to: inS(1000) };
  for (const more of [{ onConflict: 'PREEMPT' }, { user: 'admin' }])
    expect(await reserve({ ...asked, ...more }, ann)).toMatchObject({ code: 'FORBIDDEN' });
});

it('holds again and again by a rule in a time zone, and says what else it was told', async () => {
  const made = await reserve({
    ...{ kind: 'STANDING', name: 'weekly', machineIds: [machine], cpus: 1, releaseIdleS: 900 },
    ...{ rrule: 'FREQ=WEEKLY;BYDAY=TU,TH;COUNT=6', timeZone: 'Europe/Stockholm', users: ['ann', 'ann'] },
    ...{ from: '2037-03-20T08:00:00Z', to: '2037-03-20T10:30:00Z', onConflict: 'AFTER_JOBS' },
  });
  // Too far ahead.
  expect(made).toMatchObject({ code: 'BAD_USER_INPUT' });
  const monday = new Date(Date.now() + 7 * 86_400_000);
  monday.setUTCDate(monday.getUTCDate() + ((8 - monday.getUTCDay()) % 7));
  const day = monday.toISOString().slice(0, 10);
  const good = await reserve({
    ...{ kind: 'STANDING', name: 'weekly', machineIds: [machine], cpus: 1, releaseIdleS: 900 },
    ...{ rrule: 'FREQ=WEEKLY;BYDAY=TU,TH;COUNT=6', timeZone: 'UTC', users: ['ann', 'ann'] },
    ...{ from: `${day}T08:00:00Z`, to: `${day}T10:30:00Z`, onConflict: 'AFTER_JOBS' },
    exceptDates: [new Date(Date.parse(`${day}T08:00:00Z`) + 86_400_000).toISOString()],
  });
  const { id, times } = good.hold as { id: string; times: { from: string; to: string }[] };
  expect(times).toHaveLength(5);
  expect(Date.parse(times[0]?.from ?? '')).toBe(Date.parse(`${day}T08:00:00Z`) + 3 * 86_400_000);
  const { holds } = await api.must<{ holds: { nodes: Json[] } }>(
    `query ($site: ID) { holds(siteId: $site) { nodes {
      id kind releaseIdleS users { name } lacking { id } recurrence { rrule timeZone exceptDates alsoDates } } } }`,
    { site },
  );
  expect(holds.nodes.find((one) => one.id === id)).toMatchObject({
    ...{ kind: 'STANDING', releaseIdleS: 900, users: [{ name: 'ann' }] },
    recurrence: { rrule: 'FREQ=WEEKLY;BYDAY=TU,TH;COUNT=6', timeZone: 'UTC', alsoDates: [] },
  });
  // Who was named may run jobs in it.
  expect(await submit({ reservation: 'weekly', runTimeLimitS: 60 })).toMatch(/^job_/);
  const own = await reserve({ machineIds: [machine], cpus: 1, user: 'ann', ...nextYear() });
  expect(own).toMatchObject({ hold: { user: { name: 'ann' } } });
  expect(await cancel((own.hold as { id: string }).id, ann)).toBe('ended');
  expect(await cancel(id)).toBe('ended');
});

const nextYear = () => ({ from: inS(390 * 86_400), to: inS(390 * 86_400 + 60) });

it('is changed by its owner and by operators, is audited, and lets go what waited for it', async () => {
  const change = async (input: object, key?: string): Promise<Json> => {
    const { data, errors } = await api.ask<{ updateHold: { hold: Json } }>(
      `mutation ($input: UpdateHoldInput!) { updateHold(input: $input) {
        hold { name reason onConflict wholeSite machines { machine { id } cpus } times { from to } users { name } releaseIdleS recurrence { rrule timeZone } } } }`,
      { input },
      key,
    );
    const [error] = errors ?? [];
    return error ? { code: error.extensions.code as string, message: error.message } : data.updateHold.hold;
  };
  const {
    createSite: { site: own },
  } = await api.must<{ createSite: { site: { id: string } } }>(
    'mutation { createSite(input: { name: "edited", reservableCpuHours: 8 }) { site { id } } }',
  );
  const {
    createMachine: { machine: big },
  } = await api.must<{ createMachine: { machine: { id: string } } }>(
    'mutation ($input: CreateMachineInput!) { createMachine(input: $input) { machine { id } } }',
    { input: { siteId: own.id, name: 'big', cpus: 64, memoryMb: 1000 } },
  );
  const agent = {
    siteId: number(own.id),
    identity: 'e',
    instance: '1',
    host: 'h',
    version: '1',
    protocol: 3,
  };
  const machines = [{ name: 'big', measured: null, problem: null, waits: null }];
  await api.parts.store.registerAgent({ ...agent, simulated: true, machines }, Date.now() / 1000, 1);
  const made = await reserve({ siteId: own.id, kind: 'MAINTENANCE', from: inS(600), to: inS(1200) });
  const { id: hold } = made.hold as { id: string };
  const long = await submit({ cpusPerTask: 40, runTimeLimitS: 3600 });
  await expect.poll(() => stateOf(long), { timeout: PATIENCE_MS }).toBe('DISPATCHED');

  const from = inS(7200);
  const to = new Date(Date.parse(from) + 3_600_000).toISOString();
  expect(await change({ holdId: hold, from, to, reason: 'disks' }, ann)).toMatchObject({ code: 'FORBIDDEN' });
  expect(await change({ holdId: hold, from, to, reason: 'disks' })).toMatchObject({
    ...{ reason: 'disks', wholeSite: true, times: [{ from, to }], onConflict: 'REFUSE' },
  });
  await assigned(long);
  expect(await change({ holdId: hold, from: inS(600) })).toEqual({
    ...{ code: 'CONFLICT', message: expect.stringMatching(`^${long} may still be running`) },
  });
  expect(
    await change({ holdId: hold, machineIds: [big.id], from: inS(600), onConflict: 'AFTER_JOBS' }),
  ).toMatchObject({
    ...{ wholeSite: false, machines: [{ machine: { id: big.id }, cpus: null }], onConflict: 'AFTER_JOBS' },
  });
  expect(await change({ holdId: hold, machineIds: null, name: 'e', reason: null })).toMatchObject({
    ...{ wholeSite: true, name: 'e', reason: null },
  });
  const { audit } = await api.must<{ audit: { nodes: Json[] } }>(
    '{ audit(first: 1) { nodes { action target before after } } }',
  );
  expect(audit.nodes).toMatchObject([
    {
      ...{ action: 'updateHold', target: hold },
      ...{ before: { name: null, reason: 'disks' }, after: { name: 'e', reason: null } },
    },
  ]);
  for (const [input, code, message] of [
    [{}, 'BAD_USER_INPUT', 'at least one field'],
    [{ to: inS(-10) }, 'BAD_USER_INPUT', 'to: '],
    [{ from: null }, 'BAD_USER_INPUT', 'from: '],
    [{ onConflict: null }, 'BAD_USER_INPUT', 'onConflict: '],
    [{ rrule: 'FREQ=DAILY' }, 'BAD_USER_INPUT', 'it does not recur'],
    [{ releaseIdleS: 60 }, 'BAD_USER_INPUT', 'releaseIdleS'],
    [{ users: ['ann'] }, 'BAD_USER_INPUT', 'users'],
    [{ machineIds: [machine] }, 'CONFLICT', 'is not in service at the site'],
    [{ holdId: 'hold_999' }, 'NOT_FOUND', 'hold_999'],
  ] as const)
    expect(await change({ holdId: hold, ...input })).toEqual({
      code,
      message: expect.stringContaining(message),
    });
  expect(await cancel(hold)).toBe('ended');
  expect(await change({ holdId: hold, name: 'x' })).toMatchObject({ code: 'CONFLICT' });

  // Users within what the site allows.
  const wanted = { siteId: own.id, machineIds: [big.id], cpus: 4, onConflict: 'AFTER_JOBS', from, to };
  const { id: reserved } = (await reserve(wanted, ann)).hold as { id: string };
  const bob = (await api.user('USER', 'bert')).key;
  expect(await change({ holdId: reserved, name: 'mine' }, bob)).toMatchObject({ code: 'FORBIDDEN' });
  expect(await change({ holdId: reserved, machineIds: [big.id], cpus: 9 }, ann)).toMatchObject({
    code: 'LIMIT_EXCEEDED',
  });
  expect(await change({ holdId: reserved, onConflict: 'PREEMPT' }, ann)).toMatchObject({ code: 'FORBIDDEN' });
  expect(await change({ holdId: reserved, to: null }, ann)).toMatchObject({ code: 'BAD_USER_INPUT' });
  const good = { machineIds: [big.id], cpus: 8, users: ['admin'], releaseIdleS: null };
  expect(await change({ holdId: reserved, ...good }, ann)).toMatchObject({
    ...{ machines: [{ cpus: 8 }], releaseIdleS: null, times: [{ from, to }] },
  });
  expect(await cancel(reserved, ann)).toBe('ended');
  const daily = await reserve({
    ...{ siteId: own.id, kind: 'MAINTENANCE', rrule: 'FREQ=DAILY', onConflict: 'AFTER_JOBS' },
    ...{ from: `${to.slice(0, 10)}T00:00:00Z`, to: `${to.slice(0, 10)}T01:00:00Z` },
  });
  const { id: recurring } = daily.hold as { id: string };
  const weekly = await change({ holdId: recurring, rrule: 'FREQ=WEEKLY', timeZone: 'Europe/Stockholm' });
  expect(weekly.recurrence).toEqual({ rrule: 'FREQ=WEEKLY', timeZone: 'Europe/Stockholm' });
  expect((weekly.times as Json[]).length).toBeLessThan((daily.hold as { times: Json[] }).times.length);
  expect(await change({ holdId: recurring, rrule: 'FREQ=MINUTELY' })).toMatchObject({
    code: 'BAD_USER_INPUT',
  });
  await cancel(recurring);
});

it('stops what is in the way of a window that preempts', async () => {
  const going = await submit({ name: 'going' });
  await assigned(going);
  const input = { kind: 'MAINTENANCE', from: inS(1), to: inS(3600) };
  expect(await reserve(input)).toMatchObject({ code: 'CONFLICT' });
  const made = await reserve({ ...input, onConflict: 'PREEMPT' });
  expect(made.jobs).toContainEqual({ id: going });
  await expect.poll(() => stateOf(going), { timeout: PATIENCE_MS }).toBe('CANCELLING');
  await cancel((made.hold as { id: string }).id);
});

it('whose reservation it is runs in it, on its machine and in its time, past what waits outside', async () => {
  const bob = (await api.user('USER', 'carl')).key;
  const input = { siteId: site, name: 'own', cpus: 16, memoryMb: 1000 };
  const { createMachine } = await api.must<{ createMachine: { machine: { id: string } } }>(
    'mutation ($input: CreateMachineInput!) { createMachine(input: $input) { machine { id } } }',
    { input },
  );
  const machines = ['m', 'own'].map((name) => ({ name, measured: null, problem: null, waits: null }));
  const agent = { siteId: number(site), identity: 'a', instance: '1', host: 'h', version: '1', protocol: 3 };
  await api.parts.store.registerAgent({ ...agent, simulated: true, machines }, Date.now() / 1000, 1);
  const made = await reserve({
    ...{ kind: 'USER', name: 'course', machineIds: [createMachine.machine.id], to: inS(3600) },
  });
  const hold = (made.hold as Json).id as string;
  const faults = async (more: object, key: string): Promise<string[]> => {
    const job = { command: 'true', estimateS: 10, benchmark: 100, runTimeLimitS: 60, ...more };
    const { submitJobs } = await api.must<{ submitJobs: { errors: { field: string }[] } }>(
      'mutation ($jobs: [JobInput!]!) { submitJobs(input: { jobs: $jobs }) { errors { field } } }',
      { jobs: [job] },
      key,
    );
    return submitJobs.errors.map(({ field }) => field);
  };
  // An operator has made it: nobody else's jobs run there.
  expect(await faults({ reservation: 'course' }, bob)).toEqual(['reservation']);
  for (const reservation of ['nowhere', '\0', 'x'.repeat(10_000)])
    expect(await faults({ reservation }, api.adminKey)).toEqual(['reservation']);
  expect(await faults({ reservation: hold, runTimeLimitS: 3601 }, api.adminKey)).toEqual(['runTimeLimitS']);
  expect(await faults({ reservation: hold, runTimeLimitS: null }, api.adminKey)).toEqual(['runTimeLimitS']);
  const outside = await submit({ cpusPerTask: 16 });
  const inside = await submit({ cpusPerTask: 16, runTimeLimitS: 60, reservation: 'course' }, api.adminKey);
  await assigned(inside);
  const { job } = await api.must<{ job: Json }>(
    'query ($id: ID!) { job(id: $id) { reservation { id name } runs { allocations { machine { name } } } decisions(first: 5) { nodes { reason } } } }',
    { id: inside },
    api.adminKey,
  );
  expect(job).toMatchObject({
    reservation: { id: hold, name: 'course' },
    runs: [{ allocations: [{ machine: { name: 'own' } }] }],
    decisions: { nodes: expect.arrayContaining([{ reason: 'HAS_RESERVATION' }]) },
  });
  expect(await stateOf(outside)).not.toBe('ASSIGNED');
  // It is over: what waits for it waits like any other job.
  const second = await submit({ cpusPerTask: 16, runTimeLimitS: 60, reservation: 'course' }, api.adminKey);
  expect(await cancel(hold)).toBe('ended');
  expect(await faults({ reservation: 'course' }, api.adminKey)).toEqual(['reservation']);
  expect(await stateOf(second)).not.toBe('ASSIGNED');
});

it('has the licenses that it holds for its own jobs, and keeps them from all others', async () => {
  await api.must('mutation { createLicense(input: { kind: "cad", copies: 3 }) { license { id } } }');
  // What waits from before would start on the new machine at once.
  await api.must('mutation { cancelJobs(input: { selection: { all: true } }) { jobIds } }');
  const { machine: name } = await unusedMachine();
  const asked = { kind: 'USER', name: 'exam', machineIds: [name], to: inS(3600) };
  expect(await reserve({ ...asked, shared: [{ kind: 'cad', amount: 4 }] })).toMatchObject({
    code: 'CONFLICT',
    message: expect.stringContaining('the site and the grid have 3 cad; 4 are requested'),
  });
  for (const shared of [[{ kind: 'cad', amount: 0 }], [{ kind: 'cpus', amount: 1 }]])
    expect(await reserve({ ...asked, shared })).toMatchObject({ code: 'BAD_USER_INPUT' });
  const made = await reserve({ ...asked, shared: [{ kind: 'cad', amount: 2 }] });
  expect(made).not.toHaveProperty('message');
  const hold = (made.hold as Json).id as string;
  const outside = await submit({ licenses: ['cad', 'cad'], runTimeLimitS: 60, estimateS: 60 });
  const inside = await submit(
    { licenses: ['cad', 'cad'], runTimeLimitS: 60, reservation: hold },
    api.adminKey,
  );
  await assigned(inside);
  expect(await stateOf(outside)).not.toBe('ASSIGNED');
  const shared = async (input: object): Promise<unknown> => {
    const { data } = await api.ask<{ updateHold: { hold: Json } }>(
      'mutation ($input: UpdateHoldInput!) { updateHold(input: $input) { hold { shared { kind amount } machines { whole } } } }',
      { input: { holdId: hold, ...input } },
    );
    return data?.updateHold.hold;
  };
  expect(await shared({ reason: 'as it was' })).toEqual({
    shared: [{ kind: 'cad', amount: 2 }],
    machines: [{ whole: true }],
  });
  expect(await shared({ shared: [{ kind: 'cad', amount: 3 }] })).toMatchObject({
    shared: [{ kind: 'cad', amount: 3 }],
  });
  expect(await shared({ shared: [] })).toEqual({ shared: [], machines: [{ whole: true }] });
  expect(await cancel(hold)).toBe('ended');
  const window = await reserve({
    ...{ kind: 'MAINTENANCE', name: 'server', from: inS(86_400), to: inS(90_000) },
    shared: [{ kind: 'cad', amount: 1 }],
  });
  const { id } = window.hold as { id: string };
  const { errors } = await api.ask(
    'mutation ($input: UpdateHoldInput!) { updateHold(input: $input) { hold { id } } }',
    {
      input: { holdId: id, shared: [] },
    },
  );
  expect(errors).toMatchObject([
    { message: expect.stringContaining('it would hold nothing any more'), extensions: { code: 'CONFLICT' } },
  ]);
  expect(await cancel(id)).toBe('ended');
});

it("counts the site's limit for a job without one, and for a run the one that it was given", async () => {
  const { createSite } = await api.must<{ createSite: { site: { id: string } } }>(
    'mutation { createSite(input: { name: "limited", maxLimitS: 300 }) { site { id } } }',
  );
  const there = { siteId: createSite.site.id };
  const { createMachine } = await api.must<{ createMachine: { machine: { id: string } } }>(
    'mutation ($input: CreateMachineInput!) { createMachine(input: $input) { machine { id } } }',
    { input: { ...there, name: 'large', cpus: 8, memoryMb: 50_000 } },
  );
  const siteId = number(there.siteId);
  const agent = { siteId, identity: 'b', instance: '1', host: 'i', version: '1', protocol: 3 };
  const machines = [{ name: 'large', measured: null, problem: null, waits: null }];
  await api.parts.store.registerAgent({ ...agent, simulated: true, machines }, Date.now() / 1000, 1);
  const limitTo = (maxLimitS: number | null) =>
    api.must('mutation ($input: UpdateSiteInput!) { updateSite(input: $input) { site { id } } }', {
      input: { ...there, maxLimitS },
    });
  // Only the one machine there has so much memory.
  const large = { memoryMbPerTask: 2000 };
  const made = await reserve({ ...there, kind: 'MAINTENANCE', from: inS(600), to: inS(1200) });
  await assigned(await submit(large));

  await limitTo(3600);
  const second = await submit(large);
  const why = 'query ($id: ID!) { job(id: $id) { whyWaiting { code fitsIfLimitS } } }';
  type Why = { job: { whyWaiting: { code: string; fitsIfLimitS: number | null } } };
  const reason = async () => (await api.must<Why>(why, { id: second })).job.whyWaiting;
  await expect.poll(async () => (await reason()).code, { timeout: PATIENCE_MS }).toBe('RESERVED');
  expect((await reason()).fitsIfLimitS).toBeGreaterThan(300);
  expect(await cancel((made.hold as { id: string }).id)).toBe('ended');
  await assigned(second);

  // What they were given stays, whatever the site's limit is.
  await limitTo(1);
  const inTheWay = async (from: string) =>
    (await reserve({ ...there, kind: 'MAINTENANCE', from, to: inS(9000) }, undefined, true)).runsInTheWay;
  expect(await inTheWay(inS(200))).toBe(2);
  expect(await inTheWay(inS(400))).toBe(1);
  expect(await inTheWay(inS(3700))).toBe(0);

  // And a job of a reservation needs none of its own where the site's is short enough.
  const name = 'brief';
  const asked = { ...there, kind: 'USER', name, machineIds: [createMachine.machine.id], to: inS(1000) };
  expect(await reserve({ ...asked, onConflict: 'AFTER_JOBS' })).not.toHaveProperty('message');
  const faults = async (): Promise<string[]> => {
    const job = { ...large, command: 'true', estimateS: 10, reservation: name };
    const { submitJobs } = await api.must<{ submitJobs: { errors: { field: string }[] } }>(
      'mutation ($jobs: [JobInput!]!) { submitJobs(input: { jobs: $jobs }) { errors { field } } }',
      { jobs: [job] },
    );
    return submitJobs.errors.map(({ field }) => field);
  };
  for (const limit of [null, 2000]) {
    await limitTo(limit);
    expect(await faults()).toEqual(['runTimeLimitS']);
  }
  await limitTo(900);
  // What is registered is remembered for a moment (api/services/fit.ts).
  await expect.poll(faults, { timeout: PATIENCE_MS }).toEqual([]);
});

/** One more, with an agent. */
async function unusedMachine(): Promise<{ machine: string }> {
  const input = { siteId: site, name: 'exam', cpus: 16, memoryMb: 1000 };
  const { createMachine } = await api.must<{ createMachine: { machine: { id: string } } }>(
    'mutation ($input: CreateMachineInput!) { createMachine(input: $input) { machine { id } } }',
    { input },
  );
  const machines = ['m', 'own', 'exam'].map((name) => ({ name, measured: null, problem: null, waits: null }));
  const agent = { siteId: number(site), identity: 'a', instance: '1', host: 'h', version: '1', protocol: 3 };
  await api.parts.store.registerAgent({ ...agent, simulated: true, machines }, Date.now() / 1000, 1);
  return { machine: createMachine.machine.id };
}
