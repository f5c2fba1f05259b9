/** `switchyard users`, `keys`, `quota`: who may do what, and how much. */
import type { Command } from 'commander';
import { given, parseDuration, parseId, parseNumber, parseTime, parseWord } from '../../words/values.js';
import { addCommand, findSite, findUser, note, print, printJson, show, wantsJson } from '../command.js';
import { connect } from '../connect.js';
import * as documents from '../documents.gql.js';
import { CliError, ExitCode } from '../errors.js';
import { duration, table, time } from '../format.js';

type User = documents.UserFieldsFragment;
type ApiKey = documents.KeyFieldsFragment;

const CLASSES = ['GOLD', 'SILVER', 'REGULAR'] as const;
const ROLES = ['ADMIN', 'OPERATOR', 'USER', 'AGENT', 'PEER'] as const;

export function addPeople(program: Command): void {
  addUsers(program);
  addKeys(program);
  addQuota(program);
}

function addUsers(program: Command): void {
  const list = addCommand(program, 'users', 'list or change users (ADMIN, OPERATOR)');
  list.action(async () => {
    const users = await connect().all(documents.UsersDocument, 'users', {});
    show(list, users, userTable);
  });

  const add = addCommand(list, 'add <name>', 'register a user (ADMIN)')
    .option('--class <class>', CLASSES.join(', '), 'REGULAR')
    .option('--role <role>', ROLES.join(', '), 'USER')
    .option('--share <share>', 'share of the grid, relative to the shares of other users', '1');
  add.action(async (name: string, options: { class: string; role: string; share: string }) => {
    const input = {
      name,
      class: parseWord('--class', options.class, CLASSES),
      role: parseWord('--role', options.role, ROLES),
      quotaShare: parseNumber('--share', options.share, { min: 0 }),
    };
    const data = await connect().request(documents.RegisterUserDocument, { input });
    show(add, data.registerUser, (user) => userTable([user]));
  });

  const set = addCommand(list, 'set <user>', 'change a user (ADMIN)')
    .option('--class <class>', CLASSES.join(', '))
    .option('--role <role>', ROLES.join(', '))
    .option('--activate', "accept the user's keys")
    .option('--deactivate', "refuse the user's keys");
  set.action(
    async (
      nameOrId: string,
      options: { class?: string; role?: string; activate?: boolean; deactivate?: boolean },
    ) => {
      const client = connect();
      const input = {
        user: (await findUser(client, nameOrId)).id,
        class: given(options.class, (value) => parseWord('--class', value, CLASSES)),
        role: given(options.role, (value) => parseWord('--role', value, ROLES)),
        active: options.activate ? true : options.deactivate ? false : undefined,
      };
      const data = await client.request(documents.UpdateUserDocument, { input });
      show(set, data.updateUser, (user) => userTable([user]));
    },
  );
}

function addKeys(program: Command): void {
  const list = addCommand(program, 'keys', 'list or change API keys').option(
    '--user <user>',
    'keys of this user (ADMIN; default: your own)',
  );
  list.action(async (options: { user?: string }) => {
    const client = connect();
    if (options.user === undefined) {
      const { viewer } = await client.request(documents.OwnKeysDocument, {});
      return show(list, viewer.apiKeys, keyTable);
    }
    const { id } = await findUser(client, options.user);
    const { node } = await client.request(documents.UserKeysDocument, { id });
    show(list, node && 'apiKeys' in node ? node.apiKeys : [], keyTable);
  });

  const add = addCommand(list, 'add <name>', 'create an API key; it is shown only this once')
    .option('--user <user>', 'user that the key is for (ADMIN; default: you)')
    .option('--site <site>', 'site that the key of an AGENT or PEER is for')
    .option('--expires <time>', 'when the key expires: ISO 8601, or +DURATION from now (default: never)');
  add.action(async (name: string, options: { user?: string; site?: string; expires?: string }) => {
    const client = connect();
    // --user may also stand before `add`: the list has it too.
    const whose = options.user ?? list.opts<{ user?: string }>().user;
    const input = {
      name,
      user: whose && (await findUser(client, whose)).id,
      site: options.site && (await findSite(client, options.site)).id,
      expiresAt: options.expires && parseTime('--expires', options.expires, Date.now(), note),
    };
    const { createApiKey } = await client.request(documents.CreateKeyDocument, { input });
    if (wantsJson(add)) return printJson(createApiKey);
    const { id, expiresAt } = createApiKey.apiKey;
    note(
      `${id}: keep this key; it will not be shown again${expiresAt ? `; it expires at ${expiresAt}` : ''}`,
    );
    print(createApiKey.secret);
  });

  const revoke = addCommand(list, 'revoke <id>', 'revoke an API key and close its subscriptions');
  revoke.action(async (id: string) => {
    const variables = { apiKey: parseId('apikey', id) };
    const data = await connect().request(documents.RevokeKeyDocument, variables);
    show(revoke, data.revokeApiKey, (key) => `${key.id} (${key.name}) is revoked`);
  });
}

interface QuotaOptions {
  share?: string;
  limit?: string;
  period?: string;
  noLimit?: boolean;
  reason?: string;
}

function addQuota(program: Command): void {
  const quota = addCommand(
    program,
    'quota [user]',
    'show the quotas of users, or set those of a user (ADMIN)',
  )
    .option('--share <share>', 'share of the grid, relative to the shares of other users')
    .option('--limit <jobs>', 'how many jobs may be submitted within --period; none: no limit')
    .option('--period <duration>', 'length of the rolling period, such as 1h')
    .option('--reason <text>', 'reason for the audit log');
  quota.action(async (nameOrId: string | undefined, options: QuotaOptions) => {
    const client = connect();
    const changes = quotaChanges(options);
    if (Object.keys(changes).length === 0) {
      const users = await client.all(documents.UsersDocument, 'users', {});
      const id = nameOrId === undefined ? null : (await findUser(client, nameOrId)).id;
      return show(quota, id ? users.filter((user) => user.id === id) : users, userTable);
    }
    if (nameOrId === undefined) throw new CliError('no user given', ExitCode.USAGE);
    if (!options.reason)
      throw new CliError('--reason is required; it goes into the audit log', ExitCode.USAGE);
    const input = { user: (await findUser(client, nameOrId)).id, ...changes, reason: options.reason };
    const data = await client.request(documents.SetQuotaDocument, { input });
    show(quota, data.setQuota, (user) => userTable([user]));
  });
}

function quotaChanges({
  share,
  limit,
  period,
}: QuotaOptions): Omit<documents.SetQuotaInput, 'user' | 'reason'> {
  if (limit === undefined ? period !== undefined : limit !== 'none' && period === undefined) {
    throw new CliError('--limit and --period must be given together', ExitCode.USAGE);
  }
  return {
    ...(share !== undefined && { quotaShare: parseNumber('--share', share, { min: 0 }) }),
    ...(limit !== undefined && {
      submissionLimit: limit === 'none' ? null : parseNumber('--limit', limit, { min: 0, integer: true }),
    }),
    ...(limit !== 'none' &&
      period !== undefined && { submissionPeriodS: Math.ceil(parseDuration('--period', period)) }),
  };
}

function userTable(users: readonly User[]): string {
  return table(
    ['ID', 'NAME', 'ROLE', 'CLASS', 'SHARE', 'SUBMISSION QUOTA', 'ACTIVE'],
    users.map(({ submissionQuota: quota, ...user }) => [
      user.id,
      user.name,
      user.role,
      user.class,
      user.quotaShare,
      quota && `${quota.used} of ${quota.limit} in ${duration(quota.periodS)}`,
      user.active ? 'yes' : 'no',
    ]),
  );
}

function keyTable(keys: readonly ApiKey[]): string {
  return table(
    ['ID', 'NAME', 'BEGINS WITH', 'SITE', 'EXPIRES (UTC)', 'REVOKED (UTC)', 'LAST USED (UTC)'],
    keys.map((key) => [
      key.id,
      key.name,
      key.prefix,
      key.site?.name,
      time(key.expiresAt),
      time(key.revokedAt),
      time(key.lastUsedAt),
    ]),
  );
}
