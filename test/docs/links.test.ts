import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, it } from 'vitest';
import { buildProgram } from '../../src/cli/program.js';
import { packagePath } from '../../src/platform/paths.js';

/** Files of the repository below these folders, by their paths from its root. */
const below = (...folders: string[]): string[] =>
  folders.flatMap((folder) =>
    readdirSync(packagePath(folder), { recursive: true, encoding: 'utf8' }).map((name) => join(folder, name)),
  );
const read = (path: string): string => readFileSync(packagePath(path), 'utf8');
const isPage = (path: string): boolean => path.endsWith('.md');
const pages = [...readdirSync(packagePath('.')), ...below('docs', 'src', 'docker')].filter(isPage);
const withoutCode = (markdown: string): string => markdown.replace(/^```[\s\S]*?^```/gm, '');

/** The anchors of a page as GitHub makes them of its headings. */
const anchorsOf = (page: string): string[] =>
  [...withoutCode(read(page)).matchAll(/^#+ (.+)$/gm)].map(([, heading]) =>
    heading!
      .toLowerCase()
      .replace(/[^\p{L}\p{N}\s_-]/gu, '')
      .replace(/\s/g, '-'),
  );

it.each(pages)('%s: every link within the repository leads to a file, and to a heading of it', (page) => {
  for (const [, link] of withoutCode(read(page)).matchAll(/\]\(([^)\s]+)\)/g)) {
    if (/^\w+:/.test(link!)) continue;
    const [file, anchor] = link!.split('#') as [string, string?];
    const target = file === '' ? page : join(dirname(page), file);
    expect(existsSync(packagePath(target)), link).toBe(true);
    if (anchor !== undefined) expect(anchorsOf(target), link).toContain(anchor);
  }
});

it('finds a heading as GitHub does', () => {
  expect(anchorsOf('src/agent/PROTOCOL.md')).toContain('what-a-process-run-finds');
});

it('names only documents that exist, in code, messages and documents', () => {
  // But for those of other repositories, by their address.
  const named = [
    ...pages,
    'schema.graphql',
    ...below('src', 'test', 'scripts', 'bench', 'experiments', 'docker'),
  ]
    .filter((path) => /\.(ts|mjs|md|graphql|yaml)$/.test(path))
    .flatMap((path) =>
      [...read(path).matchAll(/(?<!HEAD\/)\bdocs\/[\w/-]+\.md\b/g)].map(([name]) => ({ path, name })),
    );
  expect(named.length).toBeGreaterThan(20);
  expect(named.filter(({ name }) => !existsSync(packagePath(name)))).toEqual([]);
});

it.each(pages)('%s: every command that it names exists', async (page) => {
  const { commands } = await buildProgram();
  for (const [, name, sub] of read(page).matchAll(/(?:npx |`|^)switchyard ([a-z]+)(?: ([a-z]+))?/gm)) {
    if (name === 'help') continue;
    const command = commands.find((one) => one.name() === name);
    expect(command, name).toBeDefined();
    if (sub === undefined || command!.commands.length === 0) continue;
    expect(command!.commands.map((one) => one.name())).toContain(sub);
  }
});
