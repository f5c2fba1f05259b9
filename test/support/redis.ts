import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { PATIENCE_MS } from './patience.js';
import { freePort } from './ports.js';

/** Whether `redis-server` can be started on this machine. */
export const redisFound = spawnSync('redis-server', ['--version']).status === 0;

export interface RedisServer {
  readonly url: string;
  readonly pid: number;
  /** Ends it at once (kill -9); the data directory stays. */
  kill(): Promise<void>;
  /** Starts it again on the same port and data; with other settings it may answer that it still loads them. */
  restart(more?: Settings): Promise<void>;
  /** Ends it and removes its data. */
  stop(): Promise<void>;
}

type Settings = Readonly<Record<string, string | number>>;

/** A Redis of our own on a free port, set up as docs/operations/install.md asks: append-only file, no eviction. `password`: what it wants of everybody. */
export async function startRedis(password = '', given: Settings = {}): Promise<RedisServer> {
  const dir = mkdtempSync(join(tmpdir(), 'switchyard-redis-'));
  const port = await freePort();
  // Not on its command line, which everybody may read.
  const secrets = join(dir, 'redis.conf');
  writeFileSync(secrets, password && `requirepass ${password}\n`, { mode: 0o600 });
  let child: ChildProcess;

  async function launch(more: Settings = {}): Promise<void> {
    const settings = {
      port,
      bind: '127.0.0.1',
      dir,
      appendonly: 'yes',
      save: '',
      'maxmemory-policy': 'noeviction',
      ...given,
      ...more,
    };
    const flags = Object.entries(settings).flatMap(([name, value]) => [`--${name}`, String(value)]);
    child = spawn('redis-server', [secrets, ...flags], { stdio: 'ignore' });
    for (const giveUp = Date.now() + PATIENCE_MS; !(await answers(port, 'key-load-delay' in more)); ) {
      if (Date.now() > giveUp || child.exitCode !== null) throw new Error('redis-server does not start');
      await sleep(25);
    }
  }
  async function end(signal: NodeJS.Signals): Promise<void> {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const gone = once(child, 'exit');
    child.kill(signal);
    await gone;
  }

  await launch();
  return {
    url: `redis://${password && `:${password}@`}127.0.0.1:${port}`,
    get pid() {
      return child.pid ?? 0;
    },
    kill: () => end('SIGKILL'),
    restart: async (more) => {
      await end('SIGKILL');
      await launch(more);
    },
    stop: async () => {
      await end('SIGTERM');
      rmSync(dir, { recursive: true, force: true });
    },
  };
}

/** A suite that needs Redis: runs where `redis-server` is found, and says so where it is not. */
export function describeWithRedis(name: string, suite: (redis: () => RedisServer) => void): void {
  describe(name, () => {
    if (!redisFound) {
      test('is not run: redis-server is not installed (apt-get install redis-server)', () => {});
      return;
    }
    let redis: RedisServer | undefined;
    beforeAll(async () => {
      redis = await startRedis();
    });
    afterAll(async () => {
      await redis?.stop();
    });
    suite(() => {
      if (!redis) throw new Error('Redis runs only in hooks and tests');
      return redis;
    });
  });
}

function answers(port: number, isLoading: boolean): Promise<boolean> {
  return new Promise((done) => {
    const socket = connect(port, '127.0.0.1');
    const finish = (answer: boolean) => {
      socket.destroy();
      done(answer);
    };
    socket.once('connect', () => socket.write('PING\r\n'));
    socket.once('data', (reply) =>
      finish((isLoading ? /^(\+PONG|-NOAUTH|-LOADING)/ : /^(\+PONG|-NOAUTH)/).test(reply.toString())),
    );
    socket.once('error', () => finish(false));
    socket.setTimeout(1000, () => finish(false));
  });
}
