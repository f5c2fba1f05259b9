/** docs/tutorial.md, command by command, as somebody who reads it would type them. */
import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, expect, it } from 'vitest';
import { packagePath } from '../../src/platform/paths.js';
import { endAll, launch, serve, until } from './service.js';

const home = mkdtempSync(join(tmpdir(), 'switchyard-tutorial-'));
afterAll(async () => {
  await endAll();
  rmSync(home, { recursive: true, force: true });
});

const page = readFileSync(packagePath('docs', 'tutorial.md'), 'utf8');
const blocks = (language: string): string[] =>
  [...page.matchAll(new RegExp(`\`\`\`${language}\n([\\s\\S]*?)\`\`\``, 'g'))].map(
    ([, text]) => text as string,
  );

it('the tutorial leads to the picture', async () => {
  const service = await serve(home);
  const [workflow] = blocks('yaml');
  writeFileSync(join(home, 'walks.yaml'), workflow as string);
  mkdirSync(join(home, 'bin'));
  symlinkSync(packagePath('bin', 'switchyard.js'), join(home, 'bin', 'switchyard'));
  const shell = (line: string) =>
    promisify(execFile)('bash', ['-c', line.replace(/^npx switchyard/, 'switchyard')], {
      cwd: home,
      env: {
        PATH: `${join(home, 'bin')}:${process.env.PATH}`,
        SWITCHYARD_URL: service.url,
        SWITCHYARD_HOME: home,
      },
    });
  const said: string[] = [];
  for (const line of blocks('sh').flatMap((text) => text.trim().split('\n'))) {
    const { stdout } = await shell(line);
    said.push(stdout);
    if (!line.includes('sites add')) continue;
    const [, url, key] =
      /^SWITCHYARD_URL=(\S+) SWITCHYARD_KEY=(\S+) switchyard agent --site cluster$/m.exec(stdout) ?? [];
    launch(['agent', '--site', 'cluster'], {
      SWITCHYARD_HOME: join(home, '.cluster'),
      SWITCHYARD_URL: url as string,
      SWITCHYARD_KEY: key as string,
    });
    await until(
      () => service.json<{ site: { name: string } }[]>('machines'),
      (machines) => machines.some(({ site }) => site.name === 'cluster'),
    );
  }
  const jobs = await service.json<{ name: string; state: string; site: { name: string } }[]>('jobs');
  expect(jobs.map(({ name, state }) => `${name} ${state}`).sort()).toEqual([
    ...['check', 'draw', 'join'].map((name) => `${name} COMPLETED`),
    ...Array(4).fill('sample COMPLETED'),
    ...Array(4).fill('smooth COMPLETED'),
  ]);
  for (const { name, site } of jobs) {
    if (name === 'sample') expect(site.name).toBe('local');
    if (name === 'smooth' || name === 'check') expect(site.name).toBe('cluster');
  }
  expect(readFileSync(join(home, 'job_10', 'walks.svg'), 'utf8').match(/<polyline/g)).toHaveLength(4);
  expect(said.join('')).toContain('sample → smooth → join → draw → check');
  expect(said.at(-1)).toMatch(/nothing|no job/i);
});
