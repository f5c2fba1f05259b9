/** The npm package as its user gets it: packed from a fresh checkout, installed by an ordinary user where nothing else is, and used. */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chownSync, existsSync, mkdirSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { packagePath } from '../../src/platform/paths.js';
import { checkout, must, openDirectory } from './build.js';

/** `nobody`, where we are root. */
const account = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {};
const source = checkout();
const user = openDirectory('user');
const prefix = join(user, 'prefix');
const program = join(prefix, 'bin', 'switchyard');
const env = {
  PATH: process.env.PATH,
  HOME: user,
  SWITCHYARD_HOME: join(user, 'home'),
  ...(process.env.NODE_EXTRA_CA_CERTS && { NODE_EXTRA_CA_CERTS: process.env.NODE_EXTRA_CA_CERTS }),
};
const asUser = { cwd: user, env, ...account };
let tarball = '';
let service: ChildProcess | undefined;

beforeAll(() => {
  // Hard links where they are possible: what builds the portal wants real files.
  const modules = [packagePath('node_modules'), source];
  if (spawnSync('cp', ['-al', ...modules]).status !== 0) must('cp', ['-a', ...modules]);
  must('npm', ['pack', '--silent', '--pack-destination', user], { cwd: source });
  tarball = join(user, readdirSync(user).find((name) => name.endsWith('.tgz'))!);
  if (account.uid !== undefined) chownSync(user, account.uid, account.gid);
}, 600_000);

afterAll(async () => {
  if (service?.exitCode === null) {
    service.kill('SIGTERM');
    await once(service, 'close');
  }
  for (const dir of [source, user]) rmSync(dir, { recursive: true, force: true });
});

it('holds what runs, and nothing else', () => {
  const files = must('tar', ['tzf', tarball])
    .trim()
    .split('\n')
    .map((file) => file.replace(/^package\//, ''));
  const expected =
    /^(package\.json|README\.md|LICENSE|schema\.graphql|bin\/switchyard\.js|prisma\/(functions\.sql|migrations\/.*)|dist\/web\/.*|dist\/.*\.js|dist\/slurm(\.mjs|\/\w+\.cjs)|dist\/docs\.json|clients\/python\/switchyard\.py|tes\.yaml|dist\/core\/.*\.d\.ts|dist\/simulator\/policy-api\.d\.ts)$/;
  expect(files.filter((file) => !expected.test(file))).toEqual([]);
  expect(files.filter((file) => /\.map$|\.stamp$|tsbuildinfo|\.vite\//.test(file))).toEqual([]);
  expect(files).toEqual(
    expect.arrayContaining([
      ...[
        'dist/cli/main.js',
        'dist/docs.json',
        'dist/slurm/squeue.cjs',
        'dist/web/index.html',
        'schema.graphql',
      ],
    ]),
  );
  const unpacked = join(source, 'unpacked');
  mkdirSync(unpacked);
  must('tar', ['xzf', tarball, '-C', unpacked]);
  // Nor where it was built.
  expect(must('sh', ['-c', `grep -rlF '${source}' '${unpacked}' || true`])).toBe('');
});

it('is installed by an ordinary user, and runs a job', async () => {
  must('npm', ['install', '--global', '--prefix', prefix, '--no-audit', '--no-fund', tarball], asUser);
  service = spawn(program, ['serve'], { ...asUser, env: { ...env, PORT: '0' } });
  let said = '';
  const url = await new Promise<string>((resolve, reject) => {
    for (const stream of [service!.stdout!, service!.stderr!])
      stream.setEncoding('utf8').on('data', (text: string) => {
        said += text;
        const [, address] = /runs at (\S+)\n[\s\S]*restart keeps everything/.exec(said) ?? [];
        if (address) resolve(address);
      });
    service!.once('close', (code) => reject(new Error(`serve ended with ${code}: ${said}`)));
  });
  const cli = (...args: string[]): string =>
    must(program, args, { ...asUser, env: { ...env, SWITCHYARD_URL: url } });
  const id = cli('submit', '--', 'sh', '-c', 'echo hello from $(id -u)').trim();
  cli('watch', id);
  expect(cli('job', '--output', id)).toBe(`hello from ${account.uid ?? process.getuid?.()}\n`);
  // Slurm's names lead to what was installed.
  const bin = join(user, 'slurm');
  cli('slurm', 'install', bin);
  const shown = must(join(bin, 'sacct'), ['-n', '-X', '-o', 'State', '-j', id.replace('job_', '')], {
    ...asUser,
    env: { ...env, SWITCHYARD_URL: url },
  });
  expect(shown.trim()).toBe('COMPLETED');
  // Language models ask what was installed, its documentation too.
  const mcp = new Client({ name: 'test', version: '1' });
  await mcp.connect(
    new StdioClientTransport({
      ...{ command: program, args: ['mcp'], cwd: user },
      env: { ...(env as Record<string, string>), SWITCHYARD_URL: url },
    }),
  );
  const { structuredContent: asked } = await mcp.callTool({ name: 'find_jobs', arguments: { id } });
  expect(asked).toMatchObject({ data: { id, state: 'COMPLETED' } });
  const { structuredContent: found } = await mcp.callTool({
    name: 'search_docs',
    arguments: { query: 'preemption' },
  });
  expect((found as { data: { sections: unknown[] } }).data.sections.length).toBeGreaterThan(0);
  await mcp.close();
  const portal = await fetch(new URL('/', url), { headers: { accept: 'text/html' } });
  expect(await portal.text()).toContain('<script type="module"');
  service.kill('SIGTERM');
  expect((await once(service, 'close'))[0]).toBe(0);
}, 900_000);

it('gives the types for policies of one’s own, and simulates with one', () => {
  const policy = join(user, 'policy.ts');
  const installed = join(prefix, 'lib', 'node_modules');
  expect(existsSync(join(installed, 'switchyard', 'node_modules', 'typescript'))).toBe(false);
  writeFileSync(
    policy,
    `import { localKind } from 'switchyard/policy';\nexport const kind: typeof localKind = localKind;\n`,
  );
  writeFileSync(join(user, 'package.json'), '{ "type": "module" }');
  symlinkSync(installed, join(user, 'node_modules'));
  const tsc = packagePath('node_modules', 'typescript', 'bin', 'tsc');
  must(
    process.execPath,
    [tsc, '--noEmit', '--strict', '--module', 'nodenext', '--target', 'es2022', '--types', '', policy],
    {
      cwd: user,
    },
  );
});
