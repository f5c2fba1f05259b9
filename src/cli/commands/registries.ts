/** `switchyard registries`: credentials with which agents fetch images of one's jobs. */
import { createInterface } from 'node:readline/promises';
import { Writable } from 'node:stream';
import type { Command } from 'commander';
import { addCommand, readText, show } from '../command.js';
import { connect } from '../connect.js';
import * as documents from '../documents.gql.js';
import { time } from '../format.js';
import { addListOptions, type Columns, showList, tableOf } from '../lists.js';

type Credential = documents.RegistryCredentialFieldsFragment;

export function addRegistries(program: Command): void {
  const list = addListOptions(
    addCommand(
      program,
      'registries',
      'list or change your credentials for registries of container images, with which private images of your jobs are fetched',
    ),
    COLUMNS,
  );
  list.action(() =>
    showList(
      list,
      COLUMNS,
      async () => (await connect().request(documents.RegistryCredentialsDocument, {})).registryCredentials,
    ),
  );

  const add = addCommand(
    list,
    'add <host>',
    'store a credential, or replace it; the password is read from standard input, and not shown again',
  ).requiredOption('--username <username>', 'user name at the registry');
  add.action(async (registry: string, { username }: { username: string }) => {
    const client = connect();
    const password = await readPassword(`Password of ${username} at ${registry}: `);
    const input = { registry, username, password };
    const { setRegistryCredential } = await client.request(documents.SetRegistryCredentialDocument, {
      input,
    });
    show(add, setRegistryCredential.credential, (one) => tableOf(COLUMNS, [one]));
  });

  const remove = addCommand(list, 'remove <host>', 'remove a credential');
  remove.action(async (registry: string) => {
    const data = await connect().request(documents.RemoveRegistryCredentialDocument, { registry });
    show(
      remove,
      data.removeRegistryCredential.credential,
      (one) => `the credential for ${one.registry} is removed`,
    );
  });
}

/** What is typed is not shown. */
async function readPassword(prompt: string): Promise<string> {
  if (!process.stdin.isTTY) return (await readText('password', '-')).replace(/\r?\n$/, '');
  process.stderr.write(prompt);
  const output = new Writable({ write: (_, __, done) => done() });
  const lines = createInterface({ input: process.stdin, output, terminal: true });
  lines.once('SIGINT', () => process.kill(process.pid, 'SIGINT'));
  try {
    return await lines.question('');
  } finally {
    lines.close();
    process.stderr.write('\n');
  }
}

const COLUMNS: Columns<Credential> = {
  REGISTRY: ({ registry }) => registry,
  USERNAME: ({ username }) => username,
  'SET (UTC)': ({ setAt }) => time(setAt),
  'LAST USED (UTC)': ({ lastUsedAt }) => time(lastUsedAt),
};
