/** What all commands share: `--json`, the client, printing, and names for ids. */
import { readFile } from 'node:fs/promises';
import { text } from 'node:stream/consumers';
import type { Command } from 'commander';
import type { Client } from '../client/index.js';
import { meant } from '../words/nearest.js';
import {
  type DatasetFieldsFragment,
  DatasetsDocument,
  MachinesDocument,
  SchedulersDocument,
  type SiteFieldsFragment,
  SitesDocument,
  type UserFieldsFragment,
  UsersDocument,
  ViewerDocument,
} from './documents.gql.js';
import { CliError, ExitCode, usage } from './errors.js';
import { printableJson, printableLines } from './format.js';

/** Adds a command with `--json`. */
export function addCommand(parent: Command, nameAndArguments: string, description: string): Command {
  return parent
    .command(nameAndArguments)
    .description(description)
    .option('--json', 'print JSON instead of text');
}

/** Whether `--json` was given, before or after the command's name. */
export function wantsJson(command: Command): boolean {
  return command.optsWithGlobals().json === true;
}

/** A repeatable option's values so far, and one more. */
export function collect(value: string, before: string[] | undefined): string[] {
  return [...(before ?? []), ...value.split(',').filter(Boolean)];
}

/** As {@link collect}, for values in which a comma is a comma. */
export function collectWhole(value: string, before: string[] | undefined): string[] {
  return [...(before ?? []), value];
}

/** What is meant by a repeatable option that replaces a list: `none` alone for no value at all. */
export const listFrom = <T>(given: readonly string[], parse: (one: string) => T): T[] =>
  given.length === 1 && given[0] === 'none' ? [] : given.map(parse);

/** Prints a line, or several, on standard output. Whatever is in them cannot harm a terminal. */
export function print(text: string): void {
  process.stdout.write(`${printableLines(text)}\n`);
}

/** Prints a value as JSON. `compact`: on one line, for streams of values. */
export function printJson(value: unknown, { compact = false } = {}): void {
  process.stdout.write(`${printableJson(JSON.stringify(value, null, compact ? undefined : 2))}\n`);
}

/** Prints a result as JSON or as text. */
export function show<T>(command: Command, value: T, describe: (value: T) => string): void {
  if (wantsJson(command)) printJson(value);
  else print(describe(value));
}

/** Prints what is shown only this once alone on standard output, and beside it what is to be done with it. */
export function showOnce(command: Command, made: object, secret: string, said: string): void {
  if (wantsJson(command)) {
    printJson(made);
    return;
  }
  note(said);
  print(secret);
}

/** The JSON value of a file, or of standard input for `-`. */
export async function readJson(field: string, path: string): Promise<unknown> {
  const text = await readText(field, path);
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new CliError(`${field} ${path}: ${(error as Error).message}`, ExitCode.USAGE);
  }
}

/** The text of a file, or of standard input for `-`. */
export async function readText(field: string, path: string): Promise<string> {
  try {
    // Not by /dev/stdin, which cannot be opened where it is a socket.
    return path === '-' ? await text(process.stdin) : await readFile(path, 'utf8');
  } catch (error) {
    throw new CliError(`${field} ${path}: ${(error as Error).message}`, ExitCode.USAGE);
  }
}

/** Says something beside the result, on standard error. */
export function note(text: string): void {
  process.stderr.write(`${printableLines(text)}\n`);
}

/** Aborted by Ctrl-C or SIGTERM, with the signal as the reason; a second one ends the process at once. */
export function interruption(signals: readonly NodeJS.Signals[] = ['SIGINT', 'SIGTERM']): AbortSignal {
  const controller = new AbortController();
  for (const signal of signals) process.once(signal, () => controller.abort(signal));
  return controller.signal;
}

/** Something with an id and a name. */
export interface Named {
  id: string;
  name: string;
}

/** The site of a name or an id such as `site_2`. Throws NOT_FOUND naming the sites that there are. */
export async function findSite(client: Pick<Client, 'all'>, nameOrId: string): Promise<SiteFieldsFragment> {
  const sites = await client.all(SitesDocument, 'sites', {});
  return found('site', nameOrId, sites, (site) => [site.name]);
}

/** The machine of `SITE/NAME`, of a name that only one has, or of an id such as `machine_2`. */
export async function findMachine(client: Pick<Client, 'all'>, nameOrId: string): Promise<Named> {
  const machines = await client.all(MachinesDocument, 'machines', {});
  const path = (machine: (typeof machines)[number]): string => `${machine.site.name}/${machine.name}`;
  const namesakes = machines.filter(({ name }) => name === nameOrId);
  if (namesakes.length > 1)
    throw usage('machine', nameOrId, `one of ${namesakes.slice(0, 10).map(path).join(', ')}`);
  return namesakes[0] ?? found('machine', nameOrId, machines, (machine) => [path(machine)]);
}

/** The user of a name or an id such as `user_2`. Only operators and administrators are told of others than themselves. */
export async function findUser(client: Client, nameOrId: string): Promise<UserFieldsFragment> {
  const { viewer } = await client.request(ViewerDocument, {});
  if (viewer.name === nameOrId || viewer.id === nameOrId) return viewer;
  const users = await client.all(UsersDocument, 'users', {});
  return found('user', nameOrId, users, (user) => [user.name]);
}

/** The dataset of a name or an id such as `dataset_2`. */
export async function findDataset(
  client: Pick<Client, 'all'>,
  nameOrId: string,
): Promise<DatasetFieldsFragment> {
  // Datasets may be many: the service looks for those whose names contain it.
  const isId = /^dataset_\d+$/.test(nameOrId);
  const datasets = await client.all(DatasetsDocument, 'datasets', { name: isId ? null : nameOrId });
  return found('dataset', nameOrId, datasets, (dataset) => [dataset.name]);
}

/** The scheduler of the tree of a name or an id such as `scheduler_2`. */
export async function findScheduler(client: Client, nameOrId: string): Promise<Named> {
  const { schedulers } = await client.request(SchedulersDocument, {});
  return found('scheduler', nameOrId, schedulers, (scheduler) => [scheduler.name]);
}

function found<T extends Named>(
  what: string,
  wanted: string,
  all: readonly T[],
  names: (one: T) => string[],
): T {
  const one =
    all.find((candidate) => names(candidate).includes(wanted)) ?? all.find(({ id }) => id === wanted);
  if (one) return one;
  const known = all.slice(0, 10).flatMap(names).join(', ');
  const there = known ? `; there are ${known}${all.length > 10 ? ', …' : ''}` : '';
  throw new CliError(
    `there is no ${what} "${wanted}"${there}${meant(wanted, all.flatMap(names))} (NOT_FOUND)`,
    ExitCode.NOT_FOUND,
  );
}
