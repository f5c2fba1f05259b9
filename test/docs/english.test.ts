/** Phrases that were thought in another language do not come back into what people read. */
import { readdirSync, readFileSync } from 'node:fs';
import type { Command } from 'commander';
import { expect, it } from 'vitest';
import { buildProgram } from '../../src/cli/program.js';
import { packagePath } from '../../src/platform/paths.js';

const REFUSED =
  /\b(to be had|anew|reckon(s|ed)?|(has|have) come|of ours|goes on|whoever|in the mean|at the soonest|all the same|what (becomes|became) of|ends? badly|on which terms|of one's own|it lacks|in its way)\b/gi;

const help = (command: Command): string =>
  [command.helpInformation(), ...command.commands.map(help)].join('\n');

const texts: [string, () => string | Promise<string>][] = [
  ...[
    'schema.graphql',
    ...['README.md', 'CONTRIBUTING.md', 'SECURITY.md', 'src/agent/PROTOCOL.md', 'src/federation/PROTOCOL.md'],
    ...['docs', 'docs/operations', 'docs/experiments'].flatMap((folder) =>
      readdirSync(packagePath(folder)).flatMap((name) => (name.endsWith('.md') ? [`${folder}/${name}`] : [])),
    ),
  ].map((page): [string, () => string] => [page, () => readFileSync(packagePath(page), 'utf8')]),
  ['the help of all commands', async () => help(await buildProgram())],
  [
    'the portal',
    () =>
      readdirSync(packagePath('web/src'), { recursive: true, encoding: 'utf8' })
        .filter((name) => name.endsWith('.tsx'))
        .map((name) =>
          readFileSync(packagePath('web/src', name), 'utf8').replace(/\/\*.*?\*\/|\/\/ [^\n]*/gs, ''),
        )
        .join('\n'),
  ],
];

it.each(texts)('%s', async (_, read) => {
  const text = (await read()).replace(/\s+/g, ' ');
  const found = [...text.matchAll(REFUSED)].map(({ index }) =>
    text.slice(Math.max(0, index - 40), index + 40),
  );
  expect(found).toEqual([]);
});
