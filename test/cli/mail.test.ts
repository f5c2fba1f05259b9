/** `switchyard mail`, and `submit --mail` up to the mail itself, with real processes and a real mail server. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { MailServer } from '../callbacks/mail-server.js';
import { withDatabase } from '../support/database.js';
import { freePort } from '../support/ports.js';
import { endAll, launch, run, type Service, service, until } from './service.js';

const home = mkdtempSync(join(tmpdir(), 'switchyard-mail-'));
const database = withDatabase();
const server = new MailServer();
let api: Service;

beforeAll(async () => {
  await server.open();
  const env = {
    ...{
      SWITCHYARD_HOME: home,
      DATABASE_URL: database.url,
      LOG_LEVEL: 'error',
      SWITCHYARD_SMTP_URL: server.url,
    },
    ...{ SWITCHYARD_MAIL_FROM: 'jobs@example.org', SWITCHYARD_MAIL_EVERY_S: '0' },
  };
  await run(['migrate'], env);
  const port = String(await freePort());
  const url = `http://127.0.0.1:${port}`;
  const all = { ...env, PORT: port, SWITCHYARD_PUBLIC_URL: url };
  api = service(`${url}/graphql`, { SWITCHYARD_HOME: home }, launch(['api'], all));
  launch(['worker'], all);
  const ready = () =>
    fetch(`${url}/readyz`).then(
      ({ status }) => status,
      () => 0,
    );
  await until(ready, (status) => status === 200);
  await until(
    async () =>
      (await database.pool.query("SELECT FROM followers WHERE name = 'mail' AND cursor >= 0")).rowCount,
    (followers) => followers === 1,
  );
});
afterAll(async () => {
  await endAll();
  await server.close();
  rmSync(home, { recursive: true, force: true });
});

it('shows and sets what mail is about, and where it goes', async () => {
  expect((await api.cli('mail')).stdout).toBe(
    'address       none; an administrator can set it\nabout         RESERVATION; jobs only if they say so\n',
  );
  const set = await api.cli('mail', '--user', 'admin', '--address', 'ann@example.org');
  expect(set.stdout).toContain('address       ann@example.org\n');
  expect(await api.json('mail', '--on', 'fail,GROUP_DONE')).toMatchObject({
    mail: { address: 'ann@example.org', kinds: ['FAIL', 'GROUP_DONE'] },
  });
  expect((await api.cli('mail', '--user', 'admin')).stdout).toContain('about         FAIL, GROUP_DONE\n');
  expect((await api.cli('mail', '--on', 'none')).stdout).toContain('about         nothing');
  for (const [wrong, said] of [
    [['--on', 'later'], /--on.*BEGIN.*GROUP_DONE/s],
    [['--address', 'a@example.org'], /--address needs --user/],
    [['--user', 'admin', '--address', 'x'], /ann@example.org/],
  ] as const) {
    const { code, stderr } = await api.cli('mail', ...wrong);
    expect(code).not.toBe(0);
    expect(stderr).toMatch(said);
  }
});

it('a job of `submit --mail end` sends one mail, whose link ends them', async () => {
  await api.json('mail', '--user', 'admin', '--address', 'ann@example.org');
  const { code, stderr } = await api.cli('submit', '--mail', 'sometimes', '--', 'true');
  expect([code !== 0, stderr]).toEqual([true, expect.stringMatching(/--mail.*BEGIN/s)]);
  await api.json('submit', '--mail', 'none', '--', 'true');
  await api.json('submit', '--', 'true');
  await api.json('submit', '--name', 'told', '--mail', 'end,limit_80', '--', 'true');
  const { rows } = await database.pool.query('SELECT mail FROM jobs ORDER BY id');
  expect(rows.map(({ mail }) => mail)).toEqual([[], null, ['END', 'LIMIT_80']]);
  await api.json('cancel', '--all');
  await until(
    async () => server.mails.length,
    (mails) => mails > 0,
  );
  const [mail] = server.mails;
  expect(mail).toMatchObject({
    to: ['ann@example.org'],
    head: { subject: 'job_3 (told): CANCELLED, CANCELLED_BY_OPERATOR' },
  });
  const [link] = /http\S+unsubscribe\?token=\S+/.exec(mail!.text)!;
  expect(await (await fetch(link)).text()).toContain('END');
  expect((await fetch(link, { method: 'POST' })).status).toBe(200);
  expect((await api.cli('mail')).stdout).toContain('unsubscribed  END\n');
  expect(server.mails.length).toBe(1);
});
