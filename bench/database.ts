/** The product's databases, as benchmarks make and open them. */
import pg from 'pg';
import { openDirectory } from '../src/store/directory.js';
import type { EmbeddedPostgres } from '../src/store/embedded.js';
import { migrate } from '../src/store/migrate.js';
import { type Database, openDatabase } from '../src/store/pool.js';

interface Options {
  poolSize: number;
  statementTimeoutMs: number;
}

export const openBench = (url: string, options: Options): Database =>
  openDatabase({ url, ...options, connectTimeoutMs: 5_000, applicationName: 'bench' });

/** A new one of the server, with what each has from the beginning. */
export async function newDatabase(
  server: EmbeddedPostgres,
  name: string,
  options: Options,
): Promise<{ url: string; database: Database }> {
  const client = new pg.Client({ connectionString: server.url });
  await client.connect();
  await client.query(`CREATE DATABASE ${pg.escapeIdentifier(name)}`);
  await client.end();
  const url = server.urlOf(name);
  await migrate(url);
  const database = openBench(url, options);
  await openDirectory(database).bootstrap();
  return { url, database };
}
