/** On a PostgreSQL as Debian installs it, with none of its settings changed. */
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ROOT } from '../../src/core/scheduler.js';
import { SESSION_SETTINGS } from '../../src/store/connection.js';
import { diagnose } from '../../src/store/doctor.js';
import { migrate } from '../../src/store/migrate.js';
import { until } from '../engine/support.js';
import { testPolicy, World } from '../engine/world.js';
import { type DebianPostgres, release, startDebianPostgres } from '../support/debian-postgres.mjs';
import { openTestDatabase } from './world.js';

test.skipIf(release)(
  'is not run: there is no PostgreSQL of the system (apt-get install postgresql)',
  () => {},
);

describe.runIf(release)(`PostgreSQL ${release} of the system`, () => {
  let server: DebianPostgres;
  let url = '';
  beforeAll(async () => {
    server = await startDebianPostgres();
    url = server.url;
    await migrate(url);
  });
  afterAll(() => server?.stop());

  test('sessions have what they need, whatever is set there, and the start says what harms', async () => {
    const admin = new pg.Client({ connectionString: url });
    await admin.connect();
    expect((await admin.query('SHOW jit')).rows).toEqual([{ jit: 'on' }]);
    await admin.query('ALTER SYSTEM SET synchronous_commit = off');
    await admin.query('SELECT pg_reload_conf()');
    const database = openTestDatabase(url);
    const { rows } = await database.pool.query(
      'SELECT name, setting FROM pg_settings WHERE name = ANY ($1)',
      [Object.keys(SESSION_SETTINGS)],
    );
    expect(Object.fromEntries(rows.map(({ name, setting }) => [name, setting]))).toEqual(SESSION_SETTINGS);
    expect(await database.prisma.$queryRaw`SHOW jit`).toEqual([{ jit: 'off' }]);
    await until('the setting is in force', async () =>
      (await diagnose(database.pool)).harm.some((line) =>
        line.startsWith('synchronous_commit is off: accepted jobs'),
      ),
    );
    await admin.query('ALTER SYSTEM RESET synchronous_commit');
    await admin.query('SELECT pg_reload_conf()');
    await until('nothing harms', async () => (await diagnose(database.pool)).harm.length === 0);
    expect((await diagnose(database.pool)).server).toContain(`PostgreSQL ${release}`);
    await database.close();
    await admin.end();
  });

  test('jobs run, with the queue on it too', async () => {
    const world = await World.open(url, {
      sites: [{ name: 'one', machines: [{ cpus: 8 }] }],
      policy: testPolicy(),
    });
    try {
      const { wake } = await world.engine({ kind: 'postgres', url });
      world.agent('one', wake);
      await world.submit(Array.from({ length: 24 }, () => ({})));
      await wake([ROOT]);
      await until('all have ended', async () => (await world.live()) === 0);
      const { rows } = await world.database.pool.query(
        `SELECT count(*)::int AS n FROM jobs WHERE state = 'COMPLETED'`,
      );
      expect(rows).toEqual([{ n: 24 }]);
    } finally {
      await world.close();
    }
  });
});
