import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import {
  type Database,
  isGivenUp,
  openDatabase,
  prismaTransaction,
  type TransactionOptions,
  transaction,
} from '../../src/store/pool.js';
import { isUnavailable } from '../../src/store/unavailable.js';
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

/** Runs a statement in the transaction; numbers are its parameters. */
type Run = (text: string, ...values: number[]) => Promise<Record<string, number>[]>;
type Kind = (work: (run: Run) => Promise<void>, options?: TransactionOptions) => Promise<void>;

/** Every way to have a transaction, each with every way to run a statement in it. */
const kinds: [string, Kind][] = [
  [
    'on a connection',
    (work, options) =>
      transaction(
        database,
        (tx) => work(async (text, ...values) => (await tx.query(text, values)).rows),
        options,
      ),
  ],
  [
    'through Prisma, $queryRaw',
    (work, options) =>
      prismaTransaction(
        database,
        (tx) =>
          work((text, ...values) =>
            tx.$queryRawUnsafe(text.replace(/^UPDATE.*/, '$& RETURNING id'), ...values),
          ),
        options,
      ),
  ],
  [
    'through Prisma, $executeRaw',
    (work, options) =>
      prismaTransaction(
        database,
        (tx) =>
          work(async (text, ...values) => {
            if (text.startsWith('SELECT')) return tx.$queryRawUnsafe(text, ...values);
            await tx.$executeRawUnsafe(text, ...values);
            return [];
          }),
        options,
      ),
  ],
];

describe.each(kinds)('a transaction %s', (_, inTransaction) => {
  const amounts = async () => (await db.pool.query('SELECT amount FROM account ORDER BY amount')).rows;
  beforeEach(async () => {
    await db.pool.query('UPDATE account SET amount = 0');
  });

  test('that fails to be serialized is tried again', async () => {
    const meet = meeting(2);
    let attempts = 0;
    const add = () =>
      inTransaction(
        async (run) => {
          attempts++;
          const [row] = await run('SELECT amount FROM account WHERE id = 1');
          await meet();
          await run('UPDATE account SET amount = $1 WHERE id = 1', row!.amount! + 1);
        },
        { isolationLevel: 'Serializable' },
      );
    await Promise.all([add(), add()]);
    expect(await amounts()).toEqual([{ amount: 0 }, { amount: 2 }]);
    expect(attempts).toBeGreaterThan(2);
  });

  test('whose write skew is found only at commit is tried again', async () => {
    const meet = meeting(2);
    const take = (id: number) =>
      inTransaction(
        async (run) => {
          const [row] = await run('SELECT sum(amount)::int AS sum FROM account');
          await run('UPDATE account SET amount = $1 WHERE id = $2', row!.sum! + 1, id);
          await meet();
        },
        { isolationLevel: 'Serializable' },
      );
    await Promise.all([take(1), take(2)]);
    expect(await amounts()).toEqual([{ amount: 1 }, { amount: 2 }]);
  });

  test('that runs into a deadlock is tried again', async () => {
    const meet = meeting(2);
    const both = (first: number, second: number) =>
      inTransaction(async (run) => {
        await run('UPDATE account SET amount = amount + 1 WHERE id = $1', first);
        await meet();
        await run('UPDATE account SET amount = amount + 1 WHERE id = $1', second);
      });
    await Promise.all([both(1, 2), both(2, 1)]);
    expect(await amounts()).toEqual([{ amount: 2 }, { amount: 2 }]);
  });

  test('that this process was too busy to go on with is tried again', async () => {
    let attempts = 0;
    await inTransaction(async (run) => {
      if (++attempts === 1) await run('SET LOCAL idle_in_transaction_session_timeout = 50');
      await run('UPDATE account SET amount = amount + 1 WHERE id = 1');
      if (attempts === 1) await sleep(500);
      await run('UPDATE account SET amount = amount + 1 WHERE id = 2');
    });
    expect(attempts).toBe(2);
    expect(await amounts()).toEqual([{ amount: 1 }, { amount: 1 }]);
  });

  test('throws other errors at once, and what had been written is undone', async () => {
    let attempts = 0;
    const failing = inTransaction(async (run) => {
      attempts++;
      await run('UPDATE account SET amount = 7');
      throw new Error('no such luck');
    });
    await expect(failing).rejects.toThrow('no such luck');
    expect(attempts).toBe(1);
    expect(await amounts()).toEqual([{ amount: 0 }, { amount: 0 }]);
  });

  test('whose conflicts never end is given up', async () => {
    let attempts = 0;
    const always = inTransaction(
      async () => {
        attempts++;
        throw Object.assign(new Error('conflict'), { cause: { kind: 'TransactionWriteConflict' } });
      },
      { retries: 3 },
    );
    await expect(always).rejects.toThrow('conflict');
    expect(attempts).toBe(4);
  });

  test('that takes too long is undone, and its connection is free', async () => {
    const slow = inTransaction(
      async (run) => {
        await run('UPDATE account SET amount = 7 WHERE id = 1');
        await sleep(400);
        await run('UPDATE account SET amount = 7 WHERE id = 2');
      },
      { timeoutMs: 100 },
    );
    await expect(slow).rejects.toSatisfy(isUnavailable);
    expect(await amounts()).toEqual([{ amount: 0 }, { amount: 0 }]);
    await inTransaction(async (run) => void (await run('UPDATE account SET amount = 1 WHERE id = 1')));
    expect(await amounts()).toEqual([{ amount: 0 }, { amount: 1 }]);
  });

  test('whose connection is killed meanwhile fails, and the next has another one', async () => {
    const victim = open({ applicationName: 'switchyard-victim' });
    const meanwhile = async () => {
      await db.pool.query(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'switchyard-victim @%'",
      );
      await sleep(50);
    };
    const kept = database;
    database = victim;
    try {
      const failing = inTransaction(async (run) => {
        await run('UPDATE account SET amount = 7');
        await meanwhile();
        await run('UPDATE account SET amount = 8');
      });
      await expect(failing).rejects.toSatisfy(isUnavailable);
      await inTransaction(async (run) => void (await run('UPDATE account SET amount = 1 WHERE id = 1')));
      expect(await amounts()).toEqual([{ amount: 0 }, { amount: 1 }]);
    } finally {
      database = kept;
      await victim.close();
    }
  });
});

test('a failed statement that nobody noticed is no commit', async () => {
  const careless = transaction(database, async (tx) => {
    await tx.query('UPDATE account SET amount = 7');
    await tx.query('SELECT 1 / 0').catch(() => {});
  });
  await expect(careless).rejects.toThrow(/was rolled back/);
});

test('what the database gave up', () => {
  expect(isGivenUp({ code: 'P2034' })).toBe(true);
  expect(
    isGivenUp({ code: 'P2010', meta: { driverAdapterError: { cause: { originalCode: '40P01' } } } }),
  ).toBe(true);
  expect(isGivenUp({ code: '40001' })).toBe(true);
  expect(isGivenUp({ code: 'P2002' })).toBe(false);
  expect(isGivenUp(new Error('40001'))).toBe(false);
  expect(isGivenUp(null)).toBe(false);
});

test('a statement that takes too long is ended', async () => {
  const hasty = open({ statementTimeoutMs: 100 });
  await expect(hasty.prisma.$queryRaw`SELECT pg_sleep(30)::text`).rejects.toThrow(/statement timeout/);
  await hasty.close();
});

test('waiting for a connection ends with an error', async () => {
  const narrow = open({ poolSize: 1, connectTimeoutMs: 1_000 });
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
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'switchyard-victim @%'",
  );
  await expect.poll(() => errors.length).toBe(1);
  await expect(watched.prisma.$queryRaw`SELECT 2 AS two`).resolves.toEqual([{ two: 2 }]);
  await watched.close();
});
