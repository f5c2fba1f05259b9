/** The user that the agents of a site sign in as. */
import type { Client } from '../client/index.js';
import type { Named } from './command.js';
import * as documents from './documents.gql.js';
import { CliError } from './errors.js';

/** The site's AGENT user, registered if it is missing. */
export async function agentOf(client: Client, site: Named): Promise<Named> {
  const name = `agent-${site.name}`;
  const users = await client.all(documents.UsersDocument, 'users', {});
  const user = users.find((one) => one.name === name);
  if (user && user.role !== 'AGENT') {
    throw new CliError(
      `the user ${name} has the role ${user.role}, but its agents need a user of this name with the role AGENT`,
    );
  }
  if (user) return user;
  const input = { name, role: 'AGENT' } as const;
  return (await client.request(documents.RegisterUserDocument, { input })).createUser.user;
}
