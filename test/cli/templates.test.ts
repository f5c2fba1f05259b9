/** Command lines of `switchyard map`, run by the shell that jobs are run by. */
import { execFileSync } from 'node:child_process';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { commandTemplate } from '../../src/cli/templates.js';

/** What the command of an input prints. */
function printed(words: readonly string[], input: string, number = 7): string {
  const { command, arguments: args } = commandTemplate(words)(input, number);
  return execFileSync(command, args, { encoding: 'utf8' });
}

/** Texts as hostile as an argument can be. */
const anyInput = fc
  .oneof(fc.string({ unit: 'binary' }), fc.stringMatching(/^[\s'"\\$`(){};|&<>*?~#!a{}./-]{0,12}$/))
  .filter((text) => !text.includes('\0') && !/[\ud800-\udfff]/.test(text));

describe('a line for the shell', () => {
  it('gets each input as it is, whatever is in it, between quotes of either kind and without', () => {
    fc.assert(
      fc.property(anyInput, (input) => {
        const line = `printf '<%s>' {} "{}" '{}' "a{}b"'c{}d' x{}y`;
        expect(printed([line], input)).toBe(
          `<${input}><${input}><${input}><a${input}bc${input}d><x${input}y>`,
        );
      }),
      { numRuns: 60 },
    );
  });

  it.each([
    ['printf %s', 'a b', 'a b'],
    [
      'echo {#}: {/} in {//}, {.} or {/.}',
      'dir.d/a b.tar.gz',
      '7: a b.tar.gz in dir.d, dir.d/a b.tar or a b.tar\n',
    ],
    ['echo {.} {/.} {//}', '.profile', '.profile .profile .\n'],
    ['echo \\{} {1} $# {}', 'x', '{} {1} 6 x\n'],
    ["echo 'it is \\' {}", 'x', 'it is \\ x\n'],
    ['echo "a \\" {}"', '$(id)', 'a " $(id)\n'],
    ['for i in 1 2; do echo "$i {}"; done', '`id`', '1 `id`\n2 `id`\n'],
  ])('%s', (line, input, output) => {
    expect(printed([line], input)).toBe(output);
  });
});

describe('a program and its arguments', () => {
  it('are given each input as it is, without a shell', () => {
    fc.assert(
      fc.property(anyInput, (input) => {
        expect(printed(['printf', '<%s>', '{}', '-{}-'], input)).toBe(`<${input}><-${input}->`);
        expect(printed(['printf', '<%s>'], input)).toBe(`<${input}>`);
      }),
      { numRuns: 60 },
    );
  });
});
