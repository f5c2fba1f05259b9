/** Mail about jobs: a real mail server, which refuses, dies and comes back; notices and digests on a real database. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { readToken } from '../../src/callbacks/index.js';
import { mailFollowing } from '../../src/callbacks/mail.js';
import { tokenFor } from '../../src/callbacks/mail-text.js';
import { Follower } from '../../src/engine/follower.js';
import { ALWAYS_REACHED } from '../../src/engine/ports.js';
import { type Env, REAL_ENV } from '../../src/platform/env.js';
import { createMetrics } from '../../src/platform/metrics.js';
import { EventBell } from '../../src/store/bell.js';
import { type Directory, openDirectory } from '../../src/store/directory.js';
import type { NewHold } from '../../src/store/holds.js';
import type { MailKind } from '../../src/store/job-fields.js';
import { Mails } from '../../src/store/mails.js';
import type { Database } from '../../src/store/pool.js';
import { PostgresStore } from '../../src/store/postgres.js';
import { quietLog, until } from '../engine/support.js';
import {
  assigned,
  byIds,
  ended,
  newJob,
  openTestDatabase,
  postgresWorld,
  report,
  submit,
  vouch,
  type World,
} from '../store/world.js';
import { withDatabase } from '../support/database.js';
import { type Mail, MailServer } from './mail-server.js';

const test = withDatabase();
let database: Database;
let directory: Directory;
let world: World;
let server: MailServer;
let ann: number;
let site: number;
let machine: number;
const open: { stop(): Promise<void> }[] = [];
const actor = { userId: null, requestId: null };

beforeAll(() => {
  database = openTestDatabase(test.url);
  directory = openDirectory(database);
});
afterAll(() => database.close());
beforeEach(async () => {
  await test.pool.query('TRUNCATE mails, mail_settings, followers');
  world = await postgresWorld(database, test.pool);
  ann = await world.addUser('ann');
  site = await world.addSite('geneva');
  machine = await world.addMachine(site, 'm', 1000, 100_000);
  await vouch(world.store, site, [machine]);
  server = await new MailServer().open();
});
afterEach(async () => {
  for (const one of open.splice(0)) await one.stop();
  await server.close();
});

/** Where mail goes, and about what. */
async function choose(kinds: MailKind[], userId = ann, address = 'ann@example.org'): Promise<void> {
  await directory.setMailAddress(userId, address, actor);
  await directory.setMail(userId, kinds, actor);
}

/** A process that sends. `skipS`: its clock is ahead. */
async function mailer(publicUrl: string | null = 'https://switchyard.example.org', everyS = 300) {
  const clock = { skipS: 0 };
  const metrics = createMetrics();
  const now = () => Date.now() / 1000 + clock.skipS;
  const env: Env = { ...REAL_ENV, after: (ms, run) => REAL_ENV.after(Math.min(ms, 20), run) };
  const common = { log: quietLog, metrics, env, now };
  const mails = new Mails(database);
  const following = mailFollowing({
    ...{
      mails,
      smtpUrl: server.url,
      from: 'jobs@switchyard.example.org',
      everyS,
      waitedS: 86_400,
      ...common,
    },
    links: { publicUrl, secret: () => mails.secret() },
  });
  const store = new PostgresStore(database);
  const bell = new EventBell({ url: test.url });
  await bell.start();
  const follower = new Follower(following, {
    store: { follow: (turn) => store.follow({ ...turn, leaseS: 1 }) },
    ...{ ...common, holder: `mailer ${Math.random()}`, reach: ALWAYS_REACHED, news: bell.listen },
    pace: { batch: 50, gapMs: 5, pollMs: 20 },
  });
  follower.start();
  // A new follower begins behind what has happened.
  await until(
    'it follows',
    async () =>
      (await test.pool.query("SELECT FROM followers WHERE name = 'mail' AND cursor >= 0")).rowCount === 1,
  );
  const self = {
    clock,
    metrics,
    stop: async () => {
      await follower.stop();
      await bell.stop();
    },
  };
  open.push(self);
  return self;
}

async function runJob(change = {}, end: Parameters<typeof ended>[2] = {}, userId = ann): Promise<number> {
  const [id] = (await assigned(world, userId, site, machine, [newJob(change)])) as [number];
  await world.store.reportRuns(site, [report(id, 1)], 3);
  await world.store.reportRuns(site, [ended(id, 1, end)], 3);
  return id;
}
const FAILED = { exitCode: 3, cause: 'EXITED_NONZERO' as const };
const noted = async (): Promise<string[]> =>
  (await test.pool.query('SELECT kind, job_id FROM mails ORDER BY id')).rows.map(
    ({ kind, job_id }) => `${kind} ${job_id}`,
  );
const unsent = async (): Promise<number> =>
  (await test.pool.query('SELECT FROM mails WHERE sent_at IS NULL')).rowCount as number;

describe('a notice', () => {
  it('is made of what the user, or the job, asks for, once', async () => {
    await choose(['FAIL']);
    const bob = await world.addUser('bob');
    await choose(['END', 'FAIL'], bob, 'bob@example.org');
    const nobody = await world.addUser('nobody');
    await directory.setMail(nobody, ['END'], actor);
    await mailer();
    await runJob();
    const failed = await runJob({}, FAILED);
    const asked = await runJob({ mail: ['BEGIN', 'END'] }, FAILED);
    await runJob({ mail: [] }, FAILED);
    const theirs = await runJob({}, FAILED, bob);
    await runJob({}, FAILED, nobody);
    await until('all are made', async () => (await noted()).length >= 4);
    expect(await noted()).toEqual([`FAIL ${failed}`, `BEGIN ${asked}`, `END ${asked}`, `END ${theirs}`]);
    // The same events once more.
    const { rows } = await test.pool.query('SELECT id::integer AS id FROM events WHERE seq IS NOT NULL');
    await new Mails(database).note(rows.map(({ id }) => id));
    expect((await noted()).length).toBe(4);
  });

  it('of a reservation is made for its owner: short of a machine, whole again, replaced, overlaid, given back', async () => {
    await choose(['RESERVATION']);
    await mailer();
    const bob = await world.addUser('bob');
    await choose(['END'], bob, 'bob@example.org');
    const [one, two] = [
      await world.addMachine(site, 'one', 4, 100),
      await world.addMachine(site, 'two', 4, 100),
    ];
    await vouch(world.store, site, [one, two]);
    const now = Math.round(Date.now() / 1000);
    const reserve = async (name: string, machineId: number, change: Partial<NewHold> = {}) => {
      const { id } = await world.createHold(
        {
          ...{ kind: 'USER', name, siteId: site, userId: ann, onConflict: 'REFUSE', reason: null },
          ...{ held: { of: 'MACHINES', machineIds: [machineId], amounts: null }, shared: [] },
          ...{ times: [{ from: now + 100, to: now + 2000 }], recurrence: null, idleS: 600, userIds: [] },
          ...change,
        },
        now,
      );
      return id as number;
    };
    const lab = await reserve('lab', one);
    const other = await reserve('other', two);
    await reserve('theirs', machine, { userId: bob });
    const sweep = (at: number) =>
      world.store.sweep({
        ...{ now: at, silentAfterS: 1e9, lostAfterS: 1e9, runTimeGraceS: 30, onDeadlinePassed: 'RECORD' },
        ...{ maxAttempts: 3, limit: 1000 },
      });
    const told = async (): Promise<string[]> =>
      (await test.pool.query('SELECT hold_id, note FROM mails ORDER BY id')).rows.map(
        ({ hold_id, note }) => `${hold_id} ${note}`,
      );
    await world.setMachineState(one, 'DOWN');
    for (let i = 0; i < 3; i++) await sweep(now);
    await world.setMachineState(one, 'UP');
    for (let i = 0; i < 3; i++) await sweep(now);
    await world.setMachineState(one, 'DRAINING');
    await sweep(now);
    await world.cancelHold(other);
    for (let i = 0; i < 3; i++) await sweep(now);
    const from = now + 1000;
    await reserve('disks', two, { kind: 'MAINTENANCE', idleS: null, times: [{ from, to: from + 60 }] });
    for (let i = 0; i < 2; i++) await sweep(now + 800);
    const said = [
      'machine one is lost, and no other is free to take its place',
      'machine one is back',
      'machine one is lost, and no other is free to take its place',
      'machine one is lost; two takes its place',
      `maintenance disks closes machines of it from ${new Date(1000 * from).toISOString()} on`,
      'nobody used it, and the rest of this time is given back',
    ];
    expect(await told()).toEqual(said.map((note) => `${lab} ${note}`));
    await until('it is sent', () => server.mails.length > 0);
    const { text, head } = server.mails[0] as Mail;
    for (const note of said) expect(text).toContain(`reservation lab at geneva: ${note}`);
    expect(text).toContain(`https://switchyard.example.org/sites/site_${site}?tab=calendar`);
    expect(head.subject).toBe('Reservations: 6 changes of reservations');
  });

  it('of a group is made when its last job has ended, once for each use of the name', async () => {
    await choose(['GROUP_DONE']);
    await mailer();
    const bulk = await world.store.submit({
      ...{ userId: ann, idempotencyKey: null, payloadHash: '', now: Date.now() / 1000 },
      ...{ jobs: [newJob(), newJob(), newJob()], group: { name: 'sweep', template: {} } },
    });
    if (bulk.kind !== 'accepted') throw new Error(bulk.kind);
    const cancel = (ids: number[]) => world.store.cancel(byIds(ids), Date.now() / 1000, 'CANCELLED_BY_USER');
    await cancel(bulk.jobIds.slice(0, 2));
    const [one, two] = await submit(world, ann, [
      newJob({ groupName: 'night' }),
      newJob({ groupName: 'night' }),
    ]);
    await cancel([one as number]);
    expect(await noted()).toEqual([]);
    await cancel(bulk.jobIds.slice(2));
    await cancel([two as number]);
    await until('both are done', async () => (await noted()).length === 2);
    await runJob({ groupName: 'night' });
    await until('it is done again', async () => (await noted()).length === 3);
    const { rows } = await test.pool.query<{ key: string }>('SELECT key FROM mails');
    const again = rows.map(({ key }) => key).filter((key) => key !== `GROUP_DONE ${two} night`);
    expect(again.sort()).toEqual([
      expect.stringMatching(/^GROUP_DONE \d+ night$/),
      `GROUP_DONE group_${bulk.groupId}`,
    ]);
  });

  it('of a run near its limit, and of a job that has waited for a day, are made by the clock', async () => {
    await choose(['LIMIT_80', 'WAITED']);
    const { clock } = await mailer();
    const now = Date.now() / 1000;
    const [runs] = (await assigned(world, ann, site, machine, [newJob({ runTimeLimitS: 10_000 })])) as [
      number,
    ];
    await world.store.reportRuns(site, [report(runs, 1, { at: now })], 3);
    await submit(world, ann, [newJob({ mail: ['END'] })], now);
    const [waits] = await submit(world, ann, [newJob()], now);
    clock.skipS += 7_900;
    await until('it has looked', async () => true);
    expect(await noted()).toEqual([]);
    clock.skipS += 200;
    await until('the limit is near', async () => (await noted()).length === 1);
    clock.skipS += 86_400;
    await until('the other has waited', async () => (await noted()).length === 2);
    await until('all is sent', async () => {
      clock.skipS += 400;
      return (await unsent()) === 0;
    });
    expect(await noted()).toEqual([`LIMIT_80 ${runs}`, `WAITED ${waits}`]);
  });
});

describe('a mail', () => {
  it('tells in text and HTML what happened; names in it are neither headers nor markup', async () => {
    await choose(['END']);
    const { clock } = await mailer();
    const name = 'x\r\nBcc: eve@example.org\r\n\r\n<img src=x onerror="alert(1)">\u202e';
    const id = await runJob({ name }, { ...FAILED, message: 'no <b>disk</b>' });
    clock.skipS += 10;
    await until('it came', () => server.mails.length === 1);
    const [mail] = server.mails as [Mail];
    expect(mail.to).toEqual(['ann@example.org']);
    expect(mail.head).toMatchObject({
      to: 'ann@example.org',
      from: 'Switchyard <jobs@switchyard.example.org>',
      'auto-submitted': 'auto-generated',
      'list-unsubscribe-post': 'List-Unsubscribe=One-Click',
      subject: expect.stringContaining(`job_${id} (x Bcc: eve@example.org <img`),
    });
    expect(Object.keys(mail.head)).not.toContain('bcc');
    expect(mail.text).toContain(
      `job_${id} (x Bcc: eve@example.org <img src=x onerror="alert(1)">): FAILED, EXITED_NONZERO, exit code 3, no <b>disk</b>`,
    );
    expect(mail.text).toContain(`https://switchyard.example.org/jobs/job_${id}`);
    expect(mail.html).toContain('no &#60;b&#62;disk&#60;/b&#62;');
    expect(mail.html).not.toMatch(/<img|<b>/);
    expect(mail.head['message-id']).toMatch(/^<switchyard-\d+-\d+@switchyard.example.org>$/);
  });

  it('is one for all that happens within some minutes', async () => {
    await choose(['END']);
    const { clock } = await mailer();
    await runJob();
    clock.skipS += 10;
    await until('the first came', () => server.mails.length === 1);
    const ids = await submit(
      world,
      ann,
      Array.from({ length: 150 }, (_, arrayIndex) => newJob({ name: 'tile', arrayIndex })),
    );
    for (let i = 0; i < ids.length; i += 50)
      await world.store.cancel({ ...byIds(ids.slice(i, i + 50)) }, Date.now() / 1000, 'CANCELLED_BY_USER');
    await until('all are noted', async () => (await noted()).length === 151);
    clock.skipS += 200;
    expect(await unsent()).toBe(150);
    clock.skipS += 100;
    await until('the second came', async () => (await unsent()) === 0);
    expect(server.mails.length).toBe(2);
    const [, digest] = server.mails as [Mail, Mail];
    expect(digest.head.subject).toBe('Jobs: 150 ended');
    expect(digest.text).toContain('and 50 more');
    expect(digest.text.match(/CANCELLED_BY_USER/g)?.length).toBe(100);
    expect(digest.text).toContain(`job_${ids[99]} (tile[99]): CANCELLED`);
  });

  it('waits for a mail server that is away, and ends for an address that it refuses', async () => {
    await choose(['END']);
    const bob = await world.addUser('bob');
    await choose(['END'], bob, 'bob@example.org');
    server.refuses = (address) => (address.startsWith('bob') ? { code: 550, message: 'no such user' } : null);
    await server.close();
    const { clock, metrics } = await mailer();
    await runJob();
    await runJob({}, {}, bob);
    clock.skipS += 10;
    await until('it failed', async () =>
      /mails_total{outcome="failed"} [1-9]/.test((await metrics.expose()).body),
    );
    expect(await unsent()).toBe(2);
    await server.open();
    await until('it came', () => server.mails.length === 1);
    await until('the other is refused', async () => (await directory.mailSettings(bob))?.problem !== null);
    expect((await directory.mailSettings(bob))?.problem).toContain('no such user');
    await runJob({}, {}, bob);
    clock.skipS += 3_600;
    await until('nothing waits', async () => (await unsent()) === 0);
    expect(server.mails.map(({ to }) => to)).toEqual([['ann@example.org']]);
  });

  it('that the server does not take now holds up nobody else', async () => {
    await choose(['END']);
    const bob = await world.addUser('bob');
    await choose(['END'], bob, 'bob@example.org');
    server.refuses = (address) => (address.startsWith('ann') ? { code: 450, message: 'try later' } : null);
    const { clock } = await mailer();
    await runJob();
    await runJob({}, {}, bob);
    clock.skipS += 10;
    await until('the other came', async () => server.mails.length === 1 && (await unsent()) === 1);
    server.refuses = () => null;
    await until('it came, too', () => server.mails.length === 2);
    expect(server.mails.map(({ to }) => to)).toEqual([['bob@example.org'], ['ann@example.org']]);
  });

  it('has a link for each kind that ends it, whatever jobs ask for; choosing the kind begins it again', async () => {
    await choose(['END']);
    const { clock } = await mailer();
    await runJob();
    clock.skipS += 10;
    await until('it came', () => server.mails.length === 1);
    const secret = await new Mails(database).secret();
    const [, token] = /unsubscribe\?token=([\w.-]+)/.exec(server.mails[0]!.text) as RegExpExecArray;
    expect(readToken(secret, token as string)).toEqual({ userId: ann, kinds: ['END'] });
    expect(server.mails[0]!.head['list-unsubscribe']).toContain(token);
    await directory.unsubscribeMail(ann, ['END']);
    const asks = { mail: ['END', 'BEGIN'] };
    const id = await runJob(asks);
    await until('the other kind is noted', async () => (await noted()).length === 2);
    expect((await noted())[1]).toBe(`BEGIN ${id}`);
    await directory.setMail(ann, ['END'], actor);
    const again = await runJob();
    await until('it is noted', async () => (await noted()).at(-1) === `END ${again}`);
  });

  it('that was sent by a process that died is sent again under the same id', async () => {
    await choose(['END']);
    const { clock } = await mailer();
    const id = await runJob();
    clock.skipS += 10;
    await until('it came', async () => server.mails.length === 1 && (await unsent()) === 0);
    // As if it had died before it could say so.
    await test.pool.query('UPDATE mail_settings SET mailed_at = NULL');
    await test.pool.query('UPDATE mails SET sent_at = NULL');
    await until('it came again', () => server.mails.length === 2);
    const [one, two] = server.mails as [Mail, Mail];
    expect(two.head['message-id']).toBe(one.head['message-id']);
    expect(two.text).toContain(`job_${id}`);
  });
});

it('nobody can make a token for another user or kind', () => {
  const token = tokenFor('secret', 7, ['END', 'LIMIT_80']);
  expect(readToken('secret', token)).toEqual({ userId: 7, kinds: ['END', 'LIMIT_80'] });
  for (const forged of [
    token.replace('7.', '8.'),
    token.replace('END', 'FAIL'),
    token.slice(0, -1),
    '',
    '7.END',
    '..',
  ])
    expect(readToken('secret', forged)).toBeNull();
  expect(readToken('other', token)).toBeNull();
});
