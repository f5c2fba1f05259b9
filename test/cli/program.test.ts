import { CommanderError } from 'commander';
import { expect, it } from 'vitest';
import manifest from '../../package.json' with { type: 'json' };
import { buildProgram } from '../../src/cli/program.js';

const namesOf = (program: { commands: readonly { name(): string }[] }): string[] =>
  program.commands.map((command) => command.name());

it('each command is in the program that is made for it, which has others of its module only', async () => {
  const all = namesOf(await buildProgram());
  expect(new Set(all).size).toBe(all.length);
  const modules = new Set<string>();
  for (const name of all) {
    const own = namesOf(await buildProgram(name));
    expect(own).toContain(name);
    modules.add(own.join());
  }
  // Each command is in one module.
  expect([...modules].flatMap((names) => names.split(','))).toEqual(all);
});

it('a name that is no command gets the whole program, for its help and its suggestions', async () => {
  const all = namesOf(await buildProgram());
  for (const name of ['help', 'nonsense', '']) expect(namesOf(await buildProgram(name))).toEqual(all);
});

it('--version says which', async () => {
  let said = '';
  const program = (await buildProgram()).configureOutput({ writeOut: (text) => (said += text) });
  const ended = await program.parseAsync(['--version'], { from: 'user' }).catch((error) => error);
  expect(ended).toBeInstanceOf(CommanderError);
  expect([ended.exitCode, said]).toEqual([0, `${manifest.version}\n`]);
});
