import { readdirSync, readFileSync, statSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { buildProgram } from '../../src/cli/program.js';
import { ALL_VARIABLES } from '../../src/platform/config.js';
import { packagePath } from '../../src/platform/paths.js';

interface Service {
  image: string;
  command?: string[];
  environment?: Record<string, string | number>;
  volumes?: string[];
  depends_on?: Record<string, { condition: string }>;
}

const compose = parse(readFileSync(packagePath('docker', 'compose.yaml'), 'utf8'), { merge: true }) as {
  services: Record<string, Service>;
  volumes: Record<string, unknown>;
};
const dockerfile = readFileSync(packagePath('docker', 'Dockerfile'), 'utf8');
const ours = Object.entries(compose.services).filter(([, service]) => service.image === 'switchyard');
const known = new Map(ALL_VARIABLES.map((variable) => [variable.name, variable]));
/** What `${NAME:-value}` and `${NAME:?…}` come to when only the passwords are set. */
const substituted = (value: string): string =>
  value.replace(/\$\{(\w+)(?::([-?])([^}]*))?\}/g, (_, _name, kind, rest) =>
    kind === '-' ? rest : 'secret',
  );

/** The files of a path of the repository. */
const filesOf = (path: string): string[] =>
  statSync(packagePath(path)).isDirectory()
    ? readdirSync(packagePath(path), { recursive: true, encoding: 'utf8' })
        .map((name) => `${path}/${name}`)
        .filter((name) => statSync(packagePath(name)).isFile())
    : [path];

/** The rules of docker/Dockerfile.dockerignore. The last one that matches a file, or a folder above it, decides. */
const rules = readFileSync(packagePath('docker', 'Dockerfile.dockerignore'), 'utf8')
  .split('\n')
  .filter((line) => line && !line.startsWith('#'))
  .map((line) => {
    const pattern = line
      .replace(/^!/, '')
      .replace(/[.+^${}()|[\]\\]/g, '\\$&')
      .replace(/\*\*\/?|\*|\?/g, (wild) => (wild.startsWith('**') ? '.*' : wild === '*' ? '[^/]*' : '[^/]'));
    return { lets: line.startsWith('!'), pattern: new RegExp(`^${pattern}(/.*)?$`) };
  });
const ignored = (path: string): boolean =>
  rules.findLast(({ pattern }) => pattern.test(path))?.lets === false;

describe('docker/compose.yaml', () => {
  it('has the processes of the product', () => {
    expect(ours.map(([name]) => name)).toEqual(['migrate', 'api', 'worker', 'agent']);
    expect(compose.services.redis!.command).toEqual(expect.arrayContaining(['--appendonly', 'noeviction']));
  });

  it.each(ours)('%s sets only variables that the code reads, to values that it accepts', (_, service) => {
    for (const [name, value] of Object.entries(service.environment ?? {})) {
      expect([...known.keys()]).toContain(name);
      expect(known.get(name)!.read(substituted(String(value))), `${name}=${value}`).toBeDefined();
    }
  });

  it.each(ours)('%s runs a command that there is', async (_, service) => {
    expect((await buildProgram()).commands.map((command) => command.name())).toContain(service.command![0]);
  });

  it('depends on services and volumes that there are', () => {
    for (const service of Object.values(compose.services)) {
      for (const name of Object.keys(service.depends_on ?? {})) expect(compose.services).toHaveProperty(name);
      for (const volume of service.volumes ?? [])
        expect(compose.volumes).toHaveProperty(volume.split(':')[0]!);
    }
  });

  it('shows the agent, and what runs beside it, nothing of the service', () => {
    const volumesOf = (name: string) =>
      compose.services[name]!.volumes!.map((volume) => volume.split(':')[0]!);
    const { api, agent } = { api: volumesOf('api'), agent: volumesOf('agent') };
    expect(agent.filter((volume) => [...api, ...volumesOf('worker')].includes(volume))).toEqual([]);
    // Where its key goes is its home.
    const [, given] = compose.services.migrate!.volumes!.map((volume) => volume.split(':'));
    expect(given).toEqual([agent[0], compose.services.migrate!.command!.at(-1)]);
  });

  it('finds PostgreSQL and Redis under the names of their services', () => {
    for (const [name, service] of ours) {
      const { DATABASE_URL: database, REDIS_URL: redis, SWITCHYARD_URL: url } = service.environment ?? {};
      for (const address of [database, redis, url]) {
        if (address !== undefined)
          expect(compose.services, name).toHaveProperty(new URL(substituted(String(address))).hostname);
      }
    }
  });
});

describe('docker/Dockerfile', () => {
  it('sets only variables that the code reads', () => {
    const set = [...dockerfile.matchAll(/^(?:ENV| {4})\s*([A-Z_]+)=/gm)].map(([, name]) => name!);
    expect(set).toContain('SWITCHYARD_HOME');
    for (const name of set.filter((each) => each !== 'NODE_ENV')) expect([...known.keys()]).toContain(name);
  });

  it('copies what there is and what the ignore file lets through, and does not run as root', () => {
    const copied = [...dockerfile.matchAll(/^COPY (?!--from)(.+) \S+$/gm)].flatMap(([, paths]) =>
      paths!.split(' '),
    );
    expect(copied).toContain('web');
    for (const path of copied) {
      const files = filesOf(path);
      expect(files.length, path).toBeGreaterThan(0);
      expect(
        files.filter((file) => ignored(file) && !/^src\/(api|store)\/generated\/|\.gql\.ts$/.test(file)),
        path,
      ).toEqual([]);
    }
    for (const path of [
      'node_modules/pg/package.json',
      'dist/cli/main.js',
      '.git/config',
      'test/sim/sim.test.ts',
      '.env',
    ])
      expect(ignored(path), path).toBe(true);
    expect(dockerfile).toMatch(/^USER node$/m);
  });
});
