/** The package @switchyard/client as a program uses it: the example of docs/typescript.md, compiled against its types and run. */
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it, vi } from 'vitest';
import { packagePath } from '../../src/platform/paths.js';
import { withApi } from '../api/support/api.js';
import { PATIENCE_MS } from '../support/patience.js';

const api = withApi();
const home = mkdtempSync(join(tmpdir(), 'switchyard-client-'));
afterAll(() => rmSync(home, { recursive: true, force: true }));

it('does what docs/typescript.md shows, with nothing but what it depends on', async () => {
  const modules = join(home, 'node_modules');
  mkdirSync(join(modules, '@types'), { recursive: true });
  const own = join(modules, '@switchyard', 'client');
  execFileSync(process.execPath, [packagePath('scripts', 'client.mjs'), own]);
  const { dependencies } = JSON.parse(readFileSync(join(own, 'package.json'), 'utf8'));
  for (const name of [...Object.keys(dependencies), '@types/node', '@types/ws', 'undici-types'])
    symlinkSync(packagePath('node_modules', ...name.split('/')), join(modules, name));
  const [, program] = /```ts\n([\s\S]*?)```/.exec(
    readFileSync(packagePath('docs', 'typescript.md'), 'utf8'),
  )!;
  writeFileSync(join(home, 'package.json'), '{"type":"module"}');
  writeFileSync(join(home, 'program.ts'), program!);
  const options = ['--strict', '--target', 'ES2022', '--module', 'NodeNext', '--types', 'node'];
  execFileSync(
    process.execPath,
    [packagePath('node_modules', 'typescript', 'bin', 'tsc'), ...options, 'program.ts'],
    {
      cwd: home,
      stdio: ['ignore', 'inherit', 'inherit'],
    },
  );
  // What is typed is refused by its type.
  writeFileSync(join(home, 'wrong.ts'), program!.replace("command: 'echo'", 'command: 7'));
  expect(() =>
    execFileSync(
      process.execPath,
      [packagePath('node_modules', 'typescript', 'bin', 'tsc'), ...options, 'wrong.ts'],
      {
        cwd: home,
        stdio: 'ignore',
      },
    ),
  ).toThrow();
  const env = { PATH: process.env.PATH ?? '', SWITCHYARD_URL: api.url, SWITCHYARD_KEY: api.adminKey };
  const run = spawn(process.execPath, ['program.js'], {
    cwd: home,
    env,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let said = '';
  run.stdout.setEncoding('utf8').on('data', (text: string) => {
    said += text;
  });
  // No agent is here to run it: its end is a cancellation, which the program sees whenever it comes.
  await vi.waitFor(
    async () => {
      const { cancelJobs } = await api.must<{ cancelJobs: { jobIds: string[] } }>(
        'mutation { cancelJobs(input: { selection: { filter: { application: "echo" } } }) { jobIds } }',
      );
      expect(cancelJobs.jobIds).toHaveLength(1);
    },
    { timeout: PATIENCE_MS, interval: 100 },
  );
  expect((await once(run, 'close'))[0]).toBe(0);
  // The news of a job come with the job as it is by then.
  expect(said).toMatch(/^((QUEUED|CANCELLED)\n)?CANCELLED\n$/);
});
