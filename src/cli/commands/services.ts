/** `switchyard serve`, `api`, `worker`, `agent`, `migrate`: the processes that make up the service. */
import type { Command } from 'commander';
import { loadConfig } from '../../platform/config.js';
import { addCommand, note, print, printJson, wantsJson } from '../command.js';
import { CliError, ExitCode } from '../errors.js';

export function addServices(program: Command): void {
  const migrate = addCommand(program, 'migrate', 'bring the database of DATABASE_URL up to date');
  migrate.action(async () => {
    const { databaseUrl } = loadConfig();
    if (!databaseUrl)
      throw new CliError(
        'DATABASE_URL is not set: `switchyard serve` migrates the embedded database itself',
        ExitCode.USAGE,
      );
    const store = await import('../../store/migrate.js');
    const applied = await store.migrate(databaseUrl);
    if (wantsJson(migrate)) return printJson(applied);
    for (const name of applied) print(name);
    note(applied.length > 0 ? `${applied.length} migrations applied` : 'the database is up to date');
  });
}
