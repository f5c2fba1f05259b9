import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, it } from 'vitest';
import { buildProgram } from '../../src/cli/program.js';
import { packagePath } from '../../src/platform/paths.js';

const pages = [
  'README.md',
  'CONTRIBUTING.md',
  'src/agent/PROTOCOL.md',
  ...readdirSync(packagePath('docs'))
    .filter((name) => name.endsWith('.md'))
    .map((name) => `docs/${name}`),
];

it.each(pages)('%s: every link within the repository leads somewhere', (page) => {
  const links = [...readFileSync(packagePath(page), 'utf8').matchAll(/\]\(([^)#]+)(?:#[^)]*)?\)/g)].map(
    ([, link]) => link!,
  );
  for (const link of links.filter((each) => !/^https?:/.test(each))) {
    expect(existsSync(packagePath(join(dirname(page), link))), link).toBe(true);
  }
});

it.each(pages)('%s: every command that it names is there', async (page) => {
  const known = (await buildProgram()).commands.map((command) => command.name());
  const named = [...readFileSync(packagePath(page), 'utf8').matchAll(/(?:npx |`)switchyard ([a-z]+)/g)].map(
    ([, name]) => name!,
  );
  expect([...known, 'help']).toEqual(expect.arrayContaining(named));
});
