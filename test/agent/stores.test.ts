/**
 * A job that reaches for the database and the queues of a service on its own host, in every isolation that keeps secrets and that this machine
 * offers: with `none` a job is who the agent is, and SECURITY.md says so.
 */
import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { chmodSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Isolation } from '../../src/agent/process/isolation.js';
import { startEmbeddedPostgres } from '../../src/store/embedded.js';
import { redisFound, startRedis } from '../support/redis.js';
import { complete, openRunner, script, temporaryDirectory } from './support.js';

const modes = (['user', 'sandbox'] as const).filter((mode) => {
  try {
    return Isolation.open({ mode, cgroups: false }, tmpdir(), 'test-probe').mode === mode;
  } catch {
    return false;
  }
});
for (const mode of ['user', 'sandbox'] as const)
  if (!modes.includes(mode)) it.skip(`jobs and stores, isolation ${mode}: this machine does not offer it`);

/** Says what a server answers to one who comes without a password, as a job would ask it. */
const ASK = `
const [host, port, what] = process.argv.slice(1);
const socket = require('node:net').connect(host.startsWith('/') ? { path: host } : { host, port });
const fields = Buffer.from('user\\0switchyard\\0database\\0switchyard\\0\\0');
const startup = Buffer.alloc(8);
startup.writeUInt32BE(8 + fields.length, 0);
startup.writeUInt32BE(196608, 4);
socket.on('connect', () => socket.write(what === 'redis' ? 'KEYS *\\r\\n' : Buffer.concat([startup, fields])));
socket.on('data', (data) => {
  const answer = what === 'redis' ? data.toString().trim() : data[0] === 82 ? 'auth ' + data.readUInt32BE(5) : data.toString('latin1');
  console.log(what, answer);
  socket.destroy();
});
socket.on('error', (error) => console.log(what, error.code));
`;

describe.each(modes)('jobs and stores, isolation %s', (mode) => {
  let home = '';
  let postgres: Awaited<ReturnType<typeof startEmbeddedPostgres>>;
  let redis: Awaited<ReturnType<typeof startRedis>> | null = null;
  let service: ReturnType<typeof spawn>;
  const redisPassword = randomUUID();

  beforeAll(async () => {
    home = mkdtempSync(join(tmpdir(), 'switchyard-home-'));
    chmodSync(home, 0o755);
    postgres = await startEmbeddedPostgres({ home });
    if (redisFound) redis = await startRedis(redisPassword);
    // What a service has in its environment.
    const env = { ...process.env, DATABASE_URL: postgres.url, REDIS_URL: redis?.url ?? '' };
    service = spawn('sleep', ['1000'], { env, stdio: 'ignore' });
  });
  afterAll(async () => {
    service.kill('SIGKILL');
    await redis?.stop();
    await postgres.stop();
    rmSync(home, { recursive: true, force: true });
  });

  it('finds no password, in files, environments or command lines, and no socket that asks for none', async () => {
    const secrets = [readFileSync(join(home, 'postgres.password'), 'utf8').trim(), redisPassword];
    expect(decodeURIComponent(new URL(postgres.url).password)).toBe(secrets[0]);
    // Were a command line to show them, here they would be seen too.
    const stateDir = temporaryDirectory();
    chmodSync(stateDir, 0o755);
    const runner = await openRunner({
      stateDir,
      isolation: (dir, id) => Isolation.open({ mode, cgroups: false }, dir, id),
    });
    const look = `
      cat ${home}/* ${home}/postgres/* ${home}/postgres/data/* ${home}/postgres/data/global/*
      cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline | tr '\\0' '\\n'
      cat /proc/net/unix | grep -i pgsql
      find /tmp /run /var/run ${home} -name '.s.PGSQL*' -o -name 'redis*.sock'
      true`;
    const { stdout } = await complete(runner, script('job_look', look));
    for (const secret of secrets) expect(stdout!.text).not.toContain(secret);
    expect(stdout!.text).not.toContain(`.s.PGSQL.${new URL(postgres.url).port}`);

    const stores = [['postgres', postgres.url], ...(redis ? [['redis', redis.url]] : [])].map(
      ([what, url]) => [what, new URL(url!).port] as const,
    );
    const text = stores
      .map(([what, port]) => `${process.execPath} -e "$ASK" 127.0.0.1 ${port} ${what}`)
      .join('\n');
    const asked = await complete(runner, { ...script('job_ask', text), environment: { ASK } });
    expect(asked.stderr!.text).toBe('');
    // 10: PostgreSQL wants SCRAM; 0 would be that it wants nothing.
    expect(asked.stdout!.text).toBe(
      `postgres auth 10\n${redis ? 'redis -NOAUTH Authentication required.\n' : ''}`,
    );
  });
});
