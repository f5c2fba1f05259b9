/** Users, what they used, and lists that repeat: the commands against a service, as their users type them. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { endAll, launch, type Outcome, run, type Service, serve } from './service.js';

const home = mkdtempSync(join(tmpdir(), 'switchyard-people-'));
let service: Service;
beforeAll(async () => {
  // Nobody signs in there: users of it are known by its address and their subject.
  const provider = { SWITCHYARD_OIDC_ISSUER: 'http://127.0.0.1:9', SWITCHYARD_OIDC_AUDIENCE: 'switchyard' };
  service = await serve(home, [], '0', provider);
});
afterAll(async () => {
  await endAll();
  rmSync(home, { recursive: true, force: true });
});

const env = () => ({ SWITCHYARD_HOME: home, SWITCHYARD_URL: service.url });
const cli = (...args: string[]): Promise<Outcome> => run(args, env());

it('registers users, of a provider too, and many from a file: all of its lines or none', async () => {
  const options = ['--class', 'GOLD', '--share', '3', '--subject', 'sub|1', '--json'];
  const ada = await cli('users', 'add', 'ada', ...options);
  expect(JSON.parse(ada.stdout)).toMatchObject({ name: 'ada', class: 'GOLD', quotaShare: 3 });
  const again = await cli('users', 'add', 'eve', '--subject', 'sub|1');
  expect([again.code, again.stderr]).toEqual([1, expect.stringContaining('the user ada has this subject')]);
  const list = join(home, 'users.csv');
  writeFileSync(list, '# the group\nada,REGULAR\nbob, silver, operator, 2, sub|2\n\ncleo\n');
  expect(await cli('users', 'import', list)).toMatchObject({
    ...{ code: 0, stdout: '2 users registered, 1 existed already\n' },
  });
  writeFileSync(list, 'dora\nemil,PLATINUM\n');
  const refused = await cli('users', 'import', list);
  expect([refused.code, refused.stderr]).toEqual([
    2,
    expect.stringContaining('accepted: GOLD, SILVER, REGULAR'),
  ]);
  const users = await service.json<{ name: string; role: string }[]>('users');
  expect(users.map(({ name, role }) => [name, role]).sort()).toEqual([
    ['ada', 'USER'],
    ['admin', 'ADMIN'],
    ['agent-local', 'AGENT'],
    ['bob', 'OPERATOR'],
    ['cleo', 'USER'],
  ]);
});

it('names who may run jobs in a reservation, others in their place, and nobody', async () => {
  const add = ['reserve', 'add', 'local', '--tasks', '1', '--cpus', '1', '--for', '1h', '--name', 'course'];
  expect((await cli(...add, '--user', 'ada', '--user', 'cleo')).code).toBe(0);
  const users = async () =>
    (await service.json<{ users: { name: string }[] }[]>('reserve'))[0]?.users.map(({ name }) => name).sort();
  expect(await users()).toEqual(['ada', 'cleo']);
  expect((await cli('reserve', 'set', 'course', '--user', 'bob')).code).toBe(0);
  expect(await users()).toEqual(['bob']);
  expect((await cli('reserve', 'set', 'course', '--user', 'none')).code).toBe(0);
  expect(await users()).toEqual([]);
  expect((await cli('reserve', 'cancel', 'course')).code).toBe(0);
});

it('a user that nobody has is refused with the nearest one', async () => {
  const { code, stderr } = await cli('jobs', '--user', 'cloe');
  expect([code, stderr]).toEqual([5, expect.stringContaining('did you mean cleo?')]);
});

it('says of a job ended by its limit that it was, where it is waited for and in lists', async () => {
  const waited = await cli('submit', '--wait', '--limit', '1', '--kill-grace', '0', '--', 'sleep', '60');
  expect(waited.stderr + waited.stdout).toMatch(/job_\d+ FAILED RUN_TIME_LIMIT/);
  const [job] = await service.json<{ id: string }[]>('jobs');
  const { stdout } = await cli('jobs', '--columns', 'id,exit', '--csv');
  expect(stdout).toContain(`${job?.id},`);
  expect(stdout).not.toMatch(/,1(37|43)$/m);
  expect(stdout).toMatch(/limit/i);
});

it('tells what was used, by whom and of what', async () => {
  const { code, stdout } = await cli('usage', '--csv');
  expect(code).toBe(0);
  expect(stdout.split('\n')[0]).toMatch(/^of,runs,cpu-hours,/);
  expect(stdout).toMatch(/^admin,/m);
  const { stdout: mine } = await cli('whoami');
  expect(mine).toContain('quota: 1, relative to the quotas of other users');
  expect((await cli('quota')).code).toBe(0);
});

it('a list is shown again and again until it is interrupted', async () => {
  const watching = launch(['users', '--csv', '-w', '1s'], env());
  await watching.printed(/(name,[\s\S]*){2}/);
  const { code, stderr } = await watching.end('SIGINT');
  expect(code).toBe(0);
  expect(stderr).toMatch(/^20\d\d-.*Z$/m);
});
