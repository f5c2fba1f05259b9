// Debian's PostgreSQL, for what must work with a database that is not the embedded one.
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chownSync, existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';

const ROOT = '/usr/lib/postgresql';
const PASSWORD = 'switchyard';
const START_MS = 60_000;

const found = existsSync(ROOT)
  ? readdirSync(ROOT)
      .filter((version) => existsSync(join(ROOT, version, 'bin', 'initdb')))
      .sort((a, b) => Number(b) - Number(a))
  : [];
export const release = found[0] ?? null;
export const binaries = release ? join(ROOT, release, 'bin') : null;

/** PostgreSQL refuses to run as root; the package has made an account for it. */
function account() {
  if (process.getuid() !== 0) return {};
  const id = (flag) => Number(spawnSync('id', [flag, 'postgres'], { encoding: 'utf8' }).stdout);
  return { uid: id('-u'), gid: id('-g') };
}

async function freePort() {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  server.close();
  await once(server, 'close');
  return port;
}

export async function startDebianPostgres(settings = {}) {
  const dir = mkdtempSync(join(tmpdir(), 'switchyard-debian-'));
  const as = { cwd: '/', env: { PATH: process.env.PATH, LC_ALL: 'C' }, ...account() };
  const passwordFile = join(dir, 'password');
  writeFileSync(passwordFile, PASSWORD);
  if (as.uid !== undefined) for (const path of [dir, passwordFile]) chownSync(path, as.uid, as.gid);
  const data = join(dir, 'data');
  const made = spawnSync(
    join(binaries, 'initdb'),
    [
      '-D',
      data,
      '-U',
      'switchyard',
      '-A',
      'scram-sha-256',
      `--pwfile=${passwordFile}`,
      '-E',
      'UTF8',
      '--no-locale',
    ],
    { ...as, encoding: 'utf8' },
  );
  if (made.status !== 0) throw new Error(`initdb: ${made.error?.message ?? made.stderr}`);
  const port = await freePort();
  const where = { port, listen_addresses: '127.0.0.1', unix_socket_directories: '' };
  const flags = Object.entries({ ...where, ...settings }).flatMap(([name, value]) => [
    '-c',
    `${name}=${value}`,
  ]);
  const child = spawn(join(binaries, 'postgres'), ['-D', data, ...flags], { ...as, stdio: 'ignore' });
  const url = (database) => `postgresql://switchyard:${PASSWORD}@127.0.0.1:${port}/${database}`;
  const stop = async () => {
    if (child.exitCode === null && child.signalCode === null) {
      const gone = once(child, 'exit');
      child.kill('SIGINT');
      await gone;
    }
    rmSync(dir, { recursive: true, force: true });
  };
  try {
    await createDatabase(url('postgres'), child);
  } catch (error) {
    await stop();
    throw error;
  }
  return { url: url('switchyard'), stop };
}

/** As soon as the server answers. */
async function createDatabase(url, child) {
  for (const deadline = Date.now() + START_MS; ; ) {
    const client = new pg.Client({ connectionString: url });
    client.on('error', () => {});
    try {
      await client.connect();
      await client.query('CREATE DATABASE switchyard');
      return;
    } catch (error) {
      if (child.exitCode !== null || Date.now() > deadline)
        throw new Error(`Debian's PostgreSQL does not start: ${error.message}`, { cause: error });
      await sleep(50);
    } finally {
      await client.end().catch(() => {});
    }
  }
}
