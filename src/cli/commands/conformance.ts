/** `switchyard conformance`: runs cases `{rule, input, expected}` through the core. */
import type { Command } from 'commander';
import { runVectors } from '../../core/conformance.js';
import { addCommand, print, printJson, readJson, wantsJson } from '../command.js';
import { CliError, ExitCode } from '../errors.js';

export function addConformance(program: Command): void {
  const command = addCommand(
    program,
    'conformance <file>',
    'check the schedulers against a JSON file of cases {rule, input, expected}',
  );
  command.action(async (file: string) => {
    const vectors = await readJson('conformance', file);
    let result: ReturnType<typeof runVectors>;
    try {
      result = runVectors(vectors);
    } catch (error) {
      throw new CliError(`conformance ${file}: ${(error as Error).message}`, ExitCode.USAGE);
    }
    if (result.failed > 0) process.exitCode = ExitCode.FAILED;
    if (wantsJson(command)) return printJson(result);
    for (const line of result.lines) print(line);
    if (result.notBuilt > 0) print(`${result.notBuilt} not built`);
    print(`${result.passed} passed, ${result.failed} failed`);
  });
}
