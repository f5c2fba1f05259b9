/** What is installed without the packages for development: it serves, and says plainly what it cannot do. */
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { packagePath } from '../../src/platform/paths.js';
import { endAll, launch, type Outcome, run } from './service.js';

const installed = mkdtempSync(join(tmpdir(), 'switchyard-production-'));
const program = join(installed, 'bin', 'switchyard.js');
const trace = join(installed, 'trace.swf');

beforeAll(() => {
  for (const name of ['package.json', 'schema.graphql', 'bin', 'dist', 'prisma'])
    cpSync(packagePath(name), join(installed, name), { recursive: true });
  const { packages } = JSON.parse(readFileSync(packagePath('package-lock.json'), 'utf8')) as {
    packages: Record<string, { dev?: boolean }>;
  };
  for (const [path, { dev }] of Object.entries(packages)) {
    // Packages within packages come with these.
    const isTop = path.lastIndexOf('node_modules/') === 0;
    if (!isTop || dev || !existsSync(packagePath(path))) continue;
    mkdirSync(dirname(join(installed, path)), { recursive: true });
    symlinkSync(packagePath(path), join(installed, path));
  }
  const job = (id: number): string =>
    [id, id, -1, 10, 1, -1, -1, -1, 20, -1, 1, 1, 1, -1, 1, 1, -1, -1].join(' ');
  writeFileSync(trace, ['; MaxProcs: 2', job(1), job(2), job(3)].join('\n'));
});
afterAll(async () => {
  await endAll();
  rmSync(installed, { recursive: true, force: true });
});

const switchyard = (...args: string[]): Promise<Outcome> => run(args, {}, '', program);

it('simulates; for plots it names the packages that it lacks, before it begins', async () => {
  expect(await switchyard('simulate', '--trace', trace)).toMatchObject({ code: 0, stderr: '' });
  const plots = join(installed, 'plots');
  const refused = await switchyard('simulate', '--trace', trace, '--plots', plots);
  expect(refused).toMatchObject({ code: 1, stdout: '' });
  expect(refused.stderr).toMatch(
    /^error: the packages vega and vega-lite, .* are not installed: run `npm ci`/,
  );
  expect(existsSync(plots)).toBe(false);
});

it('has no experiments, and says where they are; nor has a checkout without the packages for development', async () => {
  const refused = {
    code: 1,
    stdout: '',
    stderr:
      'error: the experiments are not part of an installed Switchyard: run `npm ci` and then this command in a checkout of its repository\n',
  };
  expect(await switchyard('experiment', 'queues')).toEqual(refused);
  mkdirSync(join(installed, 'experiments'));
  expect(await switchyard('experiment')).toEqual(refused);
});

it('serves', async () => {
  const home = mkdtempSync(join(tmpdir(), 'switchyard-home-'));
  try {
    const service = launch(['serve'], { SWITCHYARD_HOME: home, PORT: '0' }, program);
    const [, url] = await service.printed(/runs at (\S+)\n[\s\S]*restart keeps everything/);
    const env = { SWITCHYARD_URL: url as string, SWITCHYARD_HOME: home };
    const job = await run(['submit', '--wait', '--', 'echo', 'hello'], env, '', program);
    expect(job).toMatchObject({ code: 0 });
    expect((await service.end()).code).toBe(0);
  } finally {
    rmSync(home, { recursive: true, force: true });
  }
});
