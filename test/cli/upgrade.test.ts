/** Databases of earlier states of the code: restored, upgraded, and worked with. `scripts/dump.mjs` makes one of any commit. */
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { hostname, tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, describe, expect, it } from 'vitest';
import { packagePath } from '../../src/platform/paths.js';
import { migrate } from '../../src/store/migrate.js';
import { withDatabase } from '../support/database.js';
import { binaries, startDebianPostgres } from '../support/debian-postgres.mjs';
import { schemaDrift } from '../support/drift.js';
import { endAll, serve, until } from './service.js';

type Rows = Map<string, Record<string, unknown>[]>;

/** Tables that migrations have renamed since. */
const RENAMED: Record<string, string> = { run_averages: 'run_totals' };

const folder = packagePath('test', 'cli', 'upgrade');
const dumps = readdirSync(folder);
const home = mkdtempSync(join(tmpdir(), 'switchyard-upgrade-'));
const database = withDatabase();

afterAll(async () => {
  await endAll();
  rmSync(home, { recursive: true, force: true });
});

async function connected<T>(url: string, use: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return await use(client);
  } finally {
    await client.end();
  }
}

/** The machine is this one; and agents may be silent for seconds only: the one of the dump is never heard again. */
const HERE = `UPDATE machines SET name = '${hostname()}' WHERE name = 'host';
  INSERT INTO policies (version, document, reason)
  SELECT version + 1, document || '{"timers": {"cycleS": 1, "agentSilentS": 8, "lostAfterS": 10, "onDeadlinePassed": "RECORD"}}', 'test'
    FROM policies ORDER BY version DESC LIMIT 1`;

/** All rows of all tables but the migrations' own. */
const everything = (url: string): Promise<Rows> =>
  connected(url, async (client) => {
    const tables = await client.query<{ name: string }>(
      `SELECT tablename AS name FROM pg_tables WHERE schemaname = 'public' AND tablename <> '_prisma_migrations'`,
    );
    const rows: Rows = new Map();
    for (const { name } of tables.rows)
      rows.set(name, (await client.query(`SELECT * FROM public."${name}"`)).rows);
    return rows;
  });

/** Restores a dump, upgrades it, and compares: nothing may be missing, and nothing that is kept may have another value. */
async function upgraded(url: string, dump: string): Promise<void> {
  const script = readFileSync(join(folder, dump), 'utf8');
  await connected(url, async (client) => {
    await client.query('DROP SCHEMA public CASCADE; DROP SCHEMA IF EXISTS triggers CASCADE');
    await client.query(script);
  });
  const before = await everything(url);
  expect([...before].filter(([, rows]) => rows.length === 0).map(([name]) => name)).toEqual([]);
  await migrate(url);
  const after = await everything(url);
  for (const [table, rows] of before) {
    const now = RENAMED[table] ?? table;
    expect([...after.keys()]).toContain(now);
    const kept = after.get(now)!.map((row) => project(row, rows[0]!));
    const columns = kept[0] ?? {};
    expect(kept, table).toEqual(rows.map((row) => project(row, columns)));
  }
  expect(await migrate(url)).toEqual([]);
}

/** The row in the columns of the other. */
const project = (row: Record<string, unknown>, other: Record<string, unknown>): Record<string, unknown> =>
  Object.fromEntries(Object.entries(row).filter(([column]) => column in other));

describe.each(dumps)('a database of %s', (dump) => {
  it('is upgraded with all that is in it, and goes on working', async () => {
    const { url } = await database.another();
    await upgraded(url, dump);
    expect(await schemaDrift(url)).toBe('');

    await connected(url, (client) => client.query(HERE));
    const service = await serve(home, [], '0', { DATABASE_URL: url, AGENT_HEARTBEAT_S: '1' });
    const output = async (id: string) => (await service.cli('job', '--output', id)).stdout;
    const jobs = await service.json<{ id: string; name: string | null; state: string }[]>('jobs');
    const named = (name: string) => jobs.find((job) => job.name === name)!.id;
    expect(await output('job_1')).toBe('hello\n');
    // Weights that its policy did not have yet are there, with their defaults.
    expect((await service.cli('weights', 'set', 'dispatch.project=2', '--reason', 'new')).code).toBe(0);
    // What its agent ran is lost, and is run again; what was held can be let go; and there is room for more.
    await service.json('release', named('held'));
    const [fresh] = await service.json<{ id: string }[]>('submit', '--', 'echo', 'new');
    for (const id of [named('held'), fresh!.id]) expect((await service.cli('watch', id)).code).toBe(0);
    expect(await output(named('held'))).toBe('let go\n');
    await until(
      () => service.json<{ epoch: number }>('job', named('running')),
      ({ epoch }) => epoch > 1,
    );
    await service.json('cancel', named('running'));
  });

  it(`is upgraded by Debian's PostgreSQL alike${binaries ? '' : ' (not tried: it is not installed)'}`, async () => {
    if (!binaries) return;
    const postgres = await startDebianPostgres({ fsync: 'off' });
    try {
      await upgraded(postgres.url, dump);
    } finally {
      await postgres.stop();
    }
  });
});
