/** `switchyard whoami`, `users`, `keys`, `sessions`, `quota`: who may do what, and how much. */
import type { Command } from 'commander';
import type { Client } from '../../client/index.js';
import { given, parseDuration, parseId, parseNumber, parseTime, parseWord } from '../../words/values.js';
import { addCommand, findSite, findUser, note, readText, show, showOnce } from '../command.js';
import { connect } from '../connect.js';
import * as documents from '../documents.gql.js';
import { CliError, ExitCode, usage } from '../errors.js';
import { count, duration, table, time } from '../format.js';
import { keysOf } from '../keys.js';
import { addListOptions, type Columns, showList, tableOf } from '../lists.js';

type User = documents.UserFieldsFragment;
type ApiKey = documents.KeyFieldsFragment;
type Session = documents.SessionFieldsFragment;

const CLASSES = ['GOLD', 'SILVER', 'REGULAR'] as const;
const PEOPLE = ['ADMIN', 'OPERATOR', 'USER'] as const;
const ROLES = [...PEOPLE, 'AGENT', 'PEER'] as const;

export function addPeople(program: Command): void {
  addWhoAmI(program);
  addUsers(program);
  addKeys(program);
  addSessions(program);
  addQuota(program);
}

function addUsers(program: Command): void {
  const list = addListOptions(
    addCommand(program, 'users', 'list or change users (ADMIN, OPERATOR)'),
    USER_COLUMNS,
  );
  list.action(() => showList(list, USER_COLUMNS, () => connect().all(documents.UsersDocument, 'users', {})));

  const add = addCommand(list, 'add <name>', 'register a user (ADMIN)')
    .option('--class <class>', CLASSES.join(', '), 'REGULAR')
    .option('--role <role>', ROLES.join(', '), 'USER')
    .option('--share <share>', 'quota: the part of the grid, relative to the quotas of other users', '1')
    .option('--subject <sub>', 'the user at the identity provider: the `sub` claim of its tokens');
  add.action(async (name: string, options: NewUser) => {
    const data = await connect().request(documents.RegisterUserDocument, { input: newUser(name, options) });
    show(add, data.createUser.user, (user) => userTable([user]));
  });
  addImport(list);
  addInvitations(list);

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
        userId: (await findUser(client, nameOrId)).id,
        class: given(options.class, (value) => parseWord('--class', value, CLASSES)),
        role: given(options.role, (value) => parseWord('--role', value, ROLES)),
        active: options.activate ? true : options.deactivate ? false : undefined,
      };
      const data = await client.request(documents.UpdateUserDocument, { input });
      show(set, data.updateUser.user, (user) => userTable([user]));
    },
  );
}

/** Both print a link at which the user sets a password. */
function addInvitations(list: Command): void {
  const expires = [
    '--expires <time>',
    'expiry of the link: ISO 8601, or +DURATION from now, up to 90 days (default: 7 days)',
  ] as const;
  const invite = addCommand(
    list,
    'invite <name>',
    'register a user, and print a one-time link for setting a password (ADMIN)',
  )
    .option('--class <class>', CLASSES.join(', '), 'REGULAR')
    .option('--role <role>', PEOPLE.join(', '), 'USER')
    .option('--share <share>', 'quota: the part of the grid, relative to the quotas of other users', '1')
    .option(...expires);
  invite.action(async (name: string, options: NewUser & { expires?: string }) => {
    // Read before anybody is registered.
    const input = { ...newUser(name, options), role: parseWord('--role', options.role ?? 'USER', PEOPLE) };
    const expiresAt = expiryOf(options);
    const client = connect();
    const { user } = (await client.request(documents.RegisterUserDocument, { input })).createUser;
    await showInvitation(invite, client, { userId: user.id, expiresAt });
  });

  const reset = addCommand(
    list,
    'reset <user>',
    'print a one-time link with which a user replaces their password, which ends their sessions (ADMIN)',
  ).option(...expires);
  reset.action(async (nameOrId: string, options: { expires?: string }) => {
    const expiresAt = expiryOf(options);
    const client = connect();
    await showInvitation(reset, client, { userId: (await findUser(client, nameOrId)).id, expiresAt });
  });
}

const expiryOf = ({ expires }: { expires?: string }): string | undefined =>
  expires && parseTime('--expires', expires, Date.now(), note);

async function showInvitation(
  command: Command,
  client: Client,
  input: documents.InviteUserInput,
): Promise<void> {
  const { inviteUser } = await client.request(documents.InviteUserDocument, { input });
  const { user, invitation, expiresAt } = inviteUser;
  const link = `${new URL(client.options.url).origin}/#invitation=${invitation}`;
  const said = `send this link to ${user.name}; it can be used once, until ${expiresAt}, and will not be shown again`;
  showOnce(command, { ...inviteUser, link }, link, said);
}

interface NewUser {
  class?: string;
  role?: string;
  share?: string;
  subject?: string;
}

const newUser = (name: string, { class: of, role, share, subject }: NewUser): documents.CreateUserInput => ({
  name,
  class: parseWord('--class', of ?? 'REGULAR', CLASSES),
  role: parseWord('--role', role ?? 'USER', ROLES),
  quotaShare: parseNumber('--share', share ?? '1', { min: 0 }),
  subject,
});

function addImport(list: Command): void {
  const load = addCommand(
    list,
    'import <file>',
    'register users from a file (- for standard input), one per line: NAME[,CLASS[,ROLE[,SHARE[,SUBJECT]]]]; existing users are not changed (ADMIN)',
  );
  load.action(async (path: string) => {
    const lines = (await readText('file', path)).split(/\r?\n/);
    // All of them are read before the first is registered.
    const wanted = lines.flatMap((line, i) => {
      const [name, of, role, share, subject, ...more] = line
        .split(',')
        .map((cell) => cell.trim() || undefined);
      if (name === undefined || name.startsWith('#')) return [];
      if (more.length > 0) throw usage(`line ${i + 1}`, line, 'at most NAME,CLASS,ROLE,SHARE,SUBJECT');
      return [newUser(name, { class: of?.toUpperCase(), role: role?.toUpperCase(), share, subject })];
    });
    const client = connect();
    const known = new Set((await client.all(documents.UsersDocument, 'users', {})).map(({ name }) => name));
    const registered: User[] = [];
    for (const input of wanted) {
      if (known.has(input.name)) continue;
      registered.push((await client.request(documents.RegisterUserDocument, { input })).createUser.user);
      known.add(input.name);
    }
    const there = wanted.length - registered.length;
    show(load, registered, () => `${count(registered.length, 'user')} registered, ${there} existed already`);
  });
}

function addWhoAmI(program: Command): void {
  const whoami = addCommand(program, 'whoami', 'show the user of the current key, and its limits');
  whoami.action(async () => {
    const client = connect();
    const { viewer } = await client.request(documents.ViewerDocument, {});
    show(whoami, viewer, ({ limits, submissionQuota, ...user }) =>
      [
        `${user.name} (${user.id}), role ${user.role}, class ${user.class}, at ${client.options.url}`,
        `quota: ${user.quotaShare}, relative to the quotas of other users`,
        `submission quota: ${submissionQuota ? quotaText(submissionQuota) : 'none'}`,
        ...(limits
          ? [
              '',
              table(
                ['LIMIT', 'USED', 'ALLOWED'],
                limits.map(({ name, used, allowed }) => [name, used, allowed]),
              ),
            ]
          : []),
      ].join('\n'),
    );
  });
}

function addKeys(program: Command): void {
  const list = addListOptions(
    addCommand(program, 'keys', 'list or change API keys').option(
      '--user <user>',
      'keys of this user (ADMIN; default: your own)',
    ),
    KEY_COLUMNS,
  );
  list.action(async (options: { user?: string }) => {
    const client = connect();
    const { id } =
      options.user === undefined
        ? (await client.request(documents.ViewerDocument, {})).viewer
        : await findUser(client, options.user);
    await showList(list, KEY_COLUMNS, () => keysOf(client, id));
  });

  const add = addCommand(list, 'add <name>', 'create an API key; it is shown only this once')
    .option('--user <user>', 'user that the key is for (ADMIN; default: you)')
    .option('--site <site>', 'site of the key of an AGENT or PEER')
    .option('--expires <time>', 'when the key expires: ISO 8601, or +DURATION from now (default: never)');
  add.action(async (name: string, options: { user?: string; site?: string; expires?: string }) => {
    const client = connect();
    // --user may also stand before `add`: the list has it too.
    const whose = options.user ?? list.opts<{ user?: string }>().user;
    const input = {
      name,
      userId: whose && (await findUser(client, whose)).id,
      siteId: options.site && (await findSite(client, options.site)).id,
      expiresAt: options.expires && parseTime('--expires', options.expires, Date.now(), note),
    };
    const { createApiKey } = await client.request(documents.CreateKeyDocument, { input });
    showSecret(add, createApiKey);
  });

  const rotate = addCommand(
    list,
    'rotate <id>',
    'replace an API key with a new one with the same rights; the old one is revoked at once',
  ).option('--name <name>', 'name of the new key (default: that of the old one)');
  rotate.action(async (id: string, options: { name?: string }) => {
    const client = connect();
    const apiKey = parseId('apikey', id);
    const name = options.name ?? (await nameOfKey(client, apiKey));
    const { rotateApiKey } = await client.request(documents.RotateKeyDocument, { apiKey, name });
    showSecret(rotate, rotateApiKey);
  });

  const revoke = addCommand(list, 'revoke <id>', 'revoke an API key and close its subscriptions');
  revoke.action(async (id: string) => {
    const variables = { apiKey: parseId('apikey', id) };
    const data = await connect().request(documents.RevokeKeyDocument, variables);
    show(revoke, data.revokeApiKey.apiKey, (key) => `${key.id} (${key.name}) is revoked`);
  });
}

function addSessions(program: Command): void {
  const list = addListOptions(
    addCommand(program, 'sessions', 'list or end sessions of users who signed in by password').option(
      '--user <user>',
      'sessions of this user (ADMIN; default: your own)',
    ),
    SESSION_COLUMNS,
  );
  list.action(async (options: { user?: string }) => {
    const client = connect();
    const id = options.user === undefined ? null : (await findUser(client, options.user)).id;
    await showList(list, SESSION_COLUMNS, async () => {
      if (id === null) return (await client.request(documents.OwnSessionsDocument, {})).viewer.sessions ?? [];
      const { node } = await client.request(documents.UserSessionsDocument, { id });
      return (node && 'sessions' in node && node.sessions) || [];
    });
  });

  const end = addCommand(list, 'end [ids...]', 'end these sessions, or all sessions of a user').option(
    '--user <user>',
    'sessions of this user (ADMIN; default: your own)',
  );
  end.action(async (ids: string[], options: { user?: string }) => {
    const client = connect();
    // --user may also stand before `end`: the list has it too.
    const whose = options.user ?? list.opts<{ user?: string }>().user;
    const input = {
      userId: whose && (await findUser(client, whose)).id,
      sessionIds: ids.length > 0 ? ids.map((id) => parseId('session', id)) : undefined,
    };
    const { endSessions } = await client.request(documents.EndSessionsDocument, { input });
    show(
      end,
      endSessions,
      ({ endedSessionIds, user }) => `${count(endedSessionIds.length, 'session')} of ${user.name} ended`,
    );
  });
}

/** Of one's own, or for administrators of anybody's. */
async function nameOfKey(client: Client, id: string): Promise<string> {
  const { node } = await client.request(documents.KeyNameDocument, { id });
  if (!node || !('name' in node))
    throw new CliError(`there is no API key ${id} (NOT_FOUND)`, ExitCode.NOT_FOUND);
  return node.name;
}

function showSecret(command: Command, created: documents.CreateKeyMutation['createApiKey']): void {
  const { id, expiresAt } = created.apiKey;
  const until = expiresAt ? `; it expires at ${expiresAt}` : '';
  showOnce(command, created, created.secret, `${id}: keep this key; it will not be shown again${until}`);
}

interface QuotaOptions {
  share?: string;
  limit?: string;
  period?: string;
  noLimit?: boolean;
  reason?: string;
}

function addQuota(program: Command): void {
  const quota = addListOptions(
    addCommand(
      program,
      'quota [user]',
      'show quotas: your own, those of all users (ADMIN, OPERATOR), or set those of a user (ADMIN)',
    ),
    USER_COLUMNS,
  )
    .alias('shares')
    .option('--share <share>', 'quota: the part of the grid, relative to the quotas of other users')
    .option('--limit <jobs>', 'how many jobs may be submitted within --period; none: no limit')
    .option('--period <duration>', 'length of the rolling period, such as 1h')
    .option('--reason <text>', 'reason for the audit log');
  quota.action(async (nameOrId: string | undefined, options: QuotaOptions) => {
    const client = connect();
    const changes = quotaChanges(options);
    if (Object.keys(changes).length === 0)
      return showList(quota, USER_COLUMNS, () => usersShown(client, nameOrId));
    if (nameOrId === undefined) throw new CliError('no user given', ExitCode.USAGE);
    if (!options.reason)
      throw new CliError('--reason is required; it goes into the audit log', ExitCode.USAGE);
    const input = { userId: (await findUser(client, nameOrId)).id, ...changes, reason: options.reason };
    const data = await client.request(documents.SetQuotaDocument, { input });
    show(quota, data.updateQuota.user, (user) => userTable([user]));
  });
}

/** Who may see all of them is shown all, others themselves. */
async function usersShown(client: Client, nameOrId: string | undefined): Promise<User[]> {
  if (nameOrId !== undefined) return [await findUser(client, nameOrId)];
  const { viewer } = await client.request(documents.ViewerDocument, {});
  const seesAll = viewer.role === 'ADMIN' || viewer.role === 'OPERATOR';
  return seesAll ? client.all(documents.UsersDocument, 'users', {}) : [viewer];
}

function quotaChanges({
  share,
  limit,
  period,
}: QuotaOptions): Omit<documents.UpdateQuotaInput, 'userId' | 'reason'> {
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

const USER_COLUMNS: Columns<User> = {
  ID: (user) => user.id,
  NAME: (user) => user.name,
  ROLE: (user) => user.role,
  CLASS: (user) => user.class,
  SHARE: (user) => user.quotaShare,
  'SUBMISSION QUOTA': ({ submissionQuota: quota }) => quota && quotaText(quota),
  ACTIVE: (user) => (user.active ? 'yes' : 'no'),
};

const quotaText = ({ used, limit, periodS }: NonNullable<User['submissionQuota']>): string =>
  `${used} of ${limit} in ${duration(periodS)}`;

const userTable = (users: readonly User[]): string => tableOf(USER_COLUMNS, users);

const KEY_COLUMNS: Columns<ApiKey> = {
  ID: (key) => key.id,
  NAME: (key) => key.name,
  'BEGINS WITH': (key) => key.prefix,
  SITE: (key) => key.site?.name,
  'EXPIRES (UTC)': (key) => time(key.expiresAt),
  'REVOKED (UTC)': (key) => time(key.revokedAt),
  'LAST USED (UTC)': (key) => time(key.lastUsedAt),
};

const SESSION_COLUMNS: Columns<Session> = {
  ID: (session) => session.id,
  FROM: (session) => session.address,
  PROGRAM: (session) => session.agent,
  'BEGAN (UTC)': (session) => time(session.createdAt),
  'LAST USED (UTC)': (session) => time(session.lastUsedAt),
  'ENDS (UTC)': (session) => time(session.expiresAt),
};
