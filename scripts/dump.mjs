// `node scripts/dump.mjs COMMIT`: a database as COMMIT makes it, with rows in every table, into test/cli/upgrade/COMMIT.sql. The tests restore
// it and migrate. Needs git and Debian's PostgreSQL, whose dump every later one can read.
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { hostname, tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { binaries, startDebianPostgres } from '../test/support/debian-postgres.mjs';
import { checkOut } from './checkout.mjs';

const root = dirname(dirname(fileURLToPath(import.meta.url)));

/** What a small service has lived through, as commands. The last ones leave jobs that wait and one that runs. */
const COMMANDS = [
  [
    'submit',
    '--wait',
    '--keep',
    '*.csv',
    '--deadline',
    '+1h',
    '--',
    'sh',
    '-c',
    'echo hello; echo 1,2 > a.csv',
  ],
  ['data', 'add', 'events', '--size-mb', '1', '--replica', 'local'],
  ['submit', '--wait', '--tasks', '2', '--input', 'events', '--application', 'scan', '--', 'true'],
  [
    'submit',
    '--array',
    '1-3',
    '--group',
    'sweep',
    '--idempotency-key',
    'once',
    '--',
    'sh',
    '-c',
    'echo $SWITCHYARD_ARRAY_INDEX',
  ],
  ['groups', 'submit', '--count', '3', '--', 'sh', '-c', 'echo {index}'],
  ['submit', '--wait', '--', 'false'],
  ['submit', '--hold', '--name', 'held', '--', 'echo', 'let go'],
  ['submit', '--name', 'running', '--estimate', '1h', '--', 'sleep', '60'],
];

/** What takes a second service, a scheduler that promises, or days: written as the service writes it. */
const ROWS = `
INSERT INTO sites (name, state) VALUES ('far', 'DOWN'), ('friends', 'DOWN');
INSERT INTO schedulers (name) VALUES ('region');
INSERT INTO licenses (kind, copies) VALUES ('cad', 2);
INSERT INTO links VALUES (1, 2, 100, 0.01, 0, now(), 'ADMIN');
INSERT INTO link_measurements (from_site_id, to_site_id, at, bandwidth_mb_per_s, rtt_s, loss) VALUES (1, 2, now(), 100, 0.01, 0);
INSERT INTO stagings (job_id, epoch, began_at, ended_at, total_mb, moved_mb, predicted_s)
  SELECT job_id, epoch, assigned_at, started_at, 1, 1, 1 FROM runs WHERE ended_at IS NOT NULL LIMIT 1;
INSERT INTO dead_files (id) VALUES (1000);
INSERT INTO reservations SELECT 1, id, now(), now(), '{1}', '{1}', '{}' FROM jobs WHERE name = 'held';
INSERT INTO promises (site_id, revision) VALUES (1, 1);
INSERT INTO peers (site_id, user_id, url, secret) VALUES (3, 1, 'http://127.0.0.1:1/graphql', 'nobody');
INSERT INTO peer_users VALUES (3, 'ada', 1);
INSERT INTO offers (job_id, site_id, offer, version, withdrawn, again_at)
  SELECT id, 3, nextval('offers_number'), nextval('offers_number'), true, now() FROM jobs WHERE name = 'held';
INSERT INTO foreign_jobs (job_id, site_id, offer, owner_job_id, owner_user, request, hops, visited, told)
  SELECT id, 3, 1, 7, 'ada', 'there 7 1', 1, '{}', 2 FROM jobs WHERE state = 'COMPLETED' LIMIT 1;
INSERT INTO simulations (user_id, state, policy_version, candidate, from_at, to_at, created_at, ended_at, message)
  VALUES (1, 'FAILED', 1, '{}', now() - interval '1 hour', now(), now(), now(), 'no jobs');
`;

const commit = process.argv[2];
if (!commit || !binaries) {
  console.error(
    commit
      ? 'Debian has no PostgreSQL here: apt-get install postgresql'
      : 'usage: node scripts/dump.mjs COMMIT',
  );
  process.exit(2);
}
const name = execFileSync('git', ['rev-parse', '--short', commit], { cwd: root, encoding: 'utf8' }).trim();
const dir = mkdtempSync(join(tmpdir(), 'switchyard-dump-'));
const postgres = await startDebianPostgres({ fsync: 'off' });
try {
  build();
  await live(postgres.url);
  await query(postgres.url, ROWS);
  await refuseEmpty(postgres.url);
  const file = join(root, 'test', 'cli', 'upgrade', `${name}.sql`);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, dumped(postgres.url));
  console.log(file);
} finally {
  await postgres.stop();
  rmSync(dir, { recursive: true, force: true });
}

/** That commit's code, without the portal. */
function build() {
  checkOut(commit, dir);
  execFileSync(process.execPath, ['scripts/generate.mjs'], { cwd: dir, stdio: 'inherit' });
  execFileSync(process.execPath, ['node_modules/typescript/bin/tsc', '-p', 'tsconfig.build.json'], {
    cwd: dir,
    stdio: 'inherit',
  });
}

/** Starts its service on this database, lets it live, and ends it as a power cut would: what runs is left as running. */
async function live(url) {
  const env = {
    ...process.env,
    SWITCHYARD_HOME: join(dir, 'home'),
    SWITCHYARD_ISOLATION: 'none',
    DATABASE_URL: url,
    PORT: '0',
  };
  const program = join(dir, 'bin', 'switchyard.js');
  const service = spawn(process.execPath, [program, 'serve'], { env, detached: true });
  try {
    env.SWITCHYARD_URL = await address(service);
    for (const command of COMMANDS) {
      // `false` ends with 1, as wanted.
      const run = spawn(process.execPath, [program, ...command], { env, stdio: 'inherit' });
      await once(run, 'close');
    }
    await until(url, `SELECT FROM jobs WHERE name = 'running' AND state = 'RUNNING'`);
    await until(url, `SELECT FROM jobs HAVING count(*) FILTER (WHERE ended_at IS NULL) = 2`);
    // Kept output and files may come after the end.
    await until(url, 'SELECT FROM files WHERE kept_at IS NOT NULL');
  } finally {
    process.kill(-service.pid, 'SIGKILL');
    await once(service, 'close');
    // Its runs are in sessions of their own.
    spawnSync('pkill', ['-KILL', '-f', dir]);
  }
}

async function address(service) {
  let said = '';
  for await (const text of service.stdout.setEncoding('utf8')) {
    said += text;
    const [, url] = /runs at (\S+)\n[\s\S]*restart keeps everything/.exec(said) ?? [];
    if (url) return url;
  }
  throw new Error(`the service ended: ${said}`);
}

async function until(url, sql) {
  while ((await query(url, sql)).length === 0) await new Promise((resolve) => setTimeout(resolve, 200));
}

async function query(url, sql) {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query(sql)).rows;
  } finally {
    await client.end();
  }
}

async function refuseEmpty(url) {
  const tables = await query(url, `SELECT tablename AS name FROM pg_tables WHERE schemaname = 'public'`);
  const empty = [];
  for (const table of tables)
    if ((await query(url, `SELECT FROM "${table.name}" LIMIT 1`)).length === 0) empty.push(table.name);
  if (empty.length > 0) throw new Error(`no rows in ${empty.join(', ')}: add what makes some to this script`);
}

/**
 * As statements that any client can send: without the commands of psql, without the queue, whose owner makes it again, and without the name
 * of this machine.
 */
function dumped(url) {
  const text = execFileSync(
    join(binaries, 'pg_dump'),
    [
      '--inserts',
      '--column-inserts',
      '--no-owner',
      '--no-privileges',
      '--schema=public',
      '--schema=triggers',
      url,
    ],
    { encoding: 'utf8', maxBuffer: 2 ** 30 },
  );
  return text
    .replace(/^(--.*|\\(un)?restrict .*|)\n/gm, '')
    .replaceAll(new RegExp(`\\b${hostname()}\\b`, 'g'), 'host');
}
