import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Database, inTransaction, isConflict, openDatabase } from '../../src/store/pool.js';
import { withDatabase } from '../support/database.js';

const db = withDatabase();
let database: Database;

function open(overrides: Partial<Parameters<typeof openDatabase>[0]> = {}): Database {
  return openDatabase({
    url: db.url,
    poolSize: 4,
    connectTimeoutMs: 5_000,
    statementTimeoutMs: 5_000,
    applicationName: 'switchyard-test',
    ...overrides,
  });
}

beforeAll(async () => {
  database = open();
  await db.pool.query('CREATE TABLE account (id int PRIMARY KEY, amount int NOT NULL)');
  await db.pool.query('INSERT INTO account VALUES (1, 0), (2, 0)');
});
afterAll(() => database.close());

/** Lets both callers through once both have arrived; later ones at once. */
function meeting(size: number): () => Promise<void> {
  let here = 0;
  let open = () => {};
  const gate = new Promise<void>((done) => {
    open = done;
  });
  return () => {
    if (++here >= size) open();
    return gate;
  };
}

test.each(['$queryRaw', '$executeRaw'] as const)(
  'serialization failures are tried again (%s)',
  async (kind) => {
    const meet = meeting(2);
    let attempts = 0;
    const add = () =>
      inTransaction(
        database.prisma,
        async (tx) => {
          attempts++;
          const [row] = await tx.$queryRaw<{ amount: number }[]>`SELECT amount FROM account WHERE id = 1`;
          await meet();
          if (kind === '$executeRaw')
            await tx.$executeRaw`UPDATE account SET amount = ${row!.amount + 1} WHERE id = 1`;
          else await tx.$queryRaw`UPDATE account SET amount = ${row!.amount + 1} WHERE id = 1 RETURNING id`;
        },
        { isolationLevel: 'Serializable' },
      );
    await db.pool.query('UPDATE account SET amount = 0');
    await Promise.all([add(), add()]);
    expect((await db.pool.query('SELECT amount FROM account WHERE id = 1')).rows).toEqual([{ amount: 2 }]);
    expect(attempts).toBeGreaterThan(2);
  },
);

test('write skew found only at commit is tried again', async () => {
  await db.pool.query('UPDATE account SET amount = 0');
  const meet = meeting(2);
  const take = (id: number) =>
    inTransaction(
      database.prisma,
      async (tx) => {
        const [row] = await tx.$queryRaw<{ sum: number }[]>`SELECT sum(amount)::int AS sum FROM account`;
        await tx.$executeRaw`UPDATE account SET amount = ${row!.sum + 1} WHERE id = ${id}`;
        await meet();
      },
      { isolationLevel: 'Serializable' },
    );
  await Promise.all([take(1), take(2)]);
  const { rows } = await db.pool.query('SELECT amount FROM account ORDER BY amount');
  expect(rows).toEqual([{ amount: 1 }, { amount: 2 }]);
});

test('deadlocks are tried again', async () => {
  await db.pool.query('UPDATE account SET amount = 0');
  const meet = meeting(2);
  const both = (first: number, second: number) =>
    inTransaction(database.prisma, async (tx) => {
      await tx.$executeRaw`UPDATE account SET amount = amount + 1 WHERE id = ${first}`;
      await meet();
      await tx.$executeRaw`UPDATE account SET amount = amount + 1 WHERE id = ${second}`;
    });
  await Promise.all([both(1, 2), both(2, 1)]);
  expect((await db.pool.query('SELECT amount FROM account')).rows).toEqual([{ amount: 2 }, { amount: 2 }]);
});

test('other errors are thrown at once, and what had been written is undone', async () => {
  await db.pool.query('UPDATE account SET amount = 0');
  let attempts = 0;
  const failing = inTransaction(database.prisma, async (tx) => {
    attempts++;
    await tx.$executeRaw`UPDATE account SET amount = 7`;
    throw new Error('no such luck');
  });
  await expect(failing).rejects.toThrow('no such luck');
  expect(attempts).toBe(1);
  expect((await db.pool.query('SELECT DISTINCT amount FROM account')).rows).toEqual([{ amount: 0 }]);
});

test('conflicts that never end are given up', async () => {
  let attempts = 0;
  const always = inTransaction(
    database.prisma,
    async () => {
      attempts++;
      throw Object.assign(new Error('conflict'), { cause: { kind: 'TransactionWriteConflict' } });
    },
    { retries: 3 },
  );
  await expect(always).rejects.toThrow('conflict');
  expect(attempts).toBe(4);
});

test('what is a conflict', () => {
  expect(isConflict({ code: 'P2034' })).toBe(true);
  expect(
    isConflict({ code: 'P2010', meta: { driverAdapterError: { cause: { originalCode: '40P01' } } } }),
  ).toBe(true);
  expect(isConflict({ code: 'P2002' })).toBe(false);
  expect(isConflict(new Error('40001'))).toBe(false);
  expect(isConflict(null)).toBe(false);
});

test('a statement that takes too long is ended', async () => {
  const hasty = open({ statementTimeoutMs: 100 });
  await expect(hasty.prisma.$queryRaw`SELECT pg_sleep(30)::text`).rejects.toThrow(/statement timeout/);
  await hasty.close();
});

test('waiting for a connection ends with an error', async () => {
  const narrow = open({ poolSize: 1, connectTimeoutMs: 200 });
  const holder = await narrow.pool.connect();
  await expect(narrow.prisma.$queryRaw`SELECT 1`).rejects.toThrow();
  holder.release();
  await expect(narrow.prisma.$queryRaw`SELECT 1 AS one`).resolves.toEqual([{ one: 1 }]);
  await narrow.close();
});

test('connections killed while idle are replaced', async () => {
  const errors: Error[] = [];
  const watched = open({ applicationName: 'switchyard-victim', onIdleError: (error) => errors.push(error) });
  await watched.prisma.$queryRaw`SELECT 1`;
  await db.pool.query(
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'switchyard-victim'",
  );
  await expect.poll(() => errors.length).toBe(1);
  await expect(watched.prisma.$queryRaw`SELECT 2 AS two`).resolves.toEqual([{ two: 2 }]);
  await watched.close();
});
