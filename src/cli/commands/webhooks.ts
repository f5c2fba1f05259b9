/** `switchyard webhooks`: where the service sends events of one's jobs. */
import type { Command } from 'commander';
import { JOB_STATES } from '../../client/states.gql.js';
import { parseDuration, parseId, parseWord } from '../../words/values.js';
import { addCommand, collect, findUser, show, showOnce } from '../command.js';
import { connect } from '../connect.js';
import * as documents from '../documents.gql.js';
import { CliError, ExitCode } from '../errors.js';
import { duration, time } from '../format.js';
import { addFilterOptions, type FilterOptions, filterFromOptions } from '../job-options.js';
import { addListOptions, type Columns, showList, tableOf } from '../lists.js';

type Webhook = documents.WebhookFieldsFragment;

const KINDS = [...JOB_STATES, 'CHANGED'] as const;

export function addWebhooks(program: Command): void {
  const list = addListOptions(
    addCommand(program, 'webhooks', 'list or change webhooks, to which events of your jobs are sent').option(
      '--user <user>',
      'webhooks of this user (ADMIN; default: your own)',
    ),
    COLUMNS,
  );
  list.action(async ({ user }: { user?: string }) => {
    const client = connect();
    const variables = { user: user && (await findUser(client, user)).id };
    await showList(
      list,
      COLUMNS,
      async () => (await client.request(documents.WebhooksDocument, variables)).webhooks,
    );
  });
  addAdd(list);
  addSet(list);

  const rotate = addCommand(
    list,
    'rotate <id>',
    'give a webhook a new secret; it is shown only this once',
  ).option('--keep-former <duration>', 'how long messages are also signed with the previous secret', '1d');
  rotate.action(async (id: string, options: { keepFormer: string }) => {
    const keepFormerS = Math.ceil(parseDuration('--keep-former', options.keepFormer));
    const variables = { webhook: parseId('webhook', id), keepFormerS };
    const { rotateWebhookSecret } = await connect().request(documents.RotateWebhookDocument, variables);
    showSecret(rotate, rotateWebhookSecret);
  });

  const remove = addCommand(list, 'remove <id>', 'remove a webhook');
  remove.action(async (id: string) => {
    const variables = { webhook: parseId('webhook', id) };
    const data = await connect().request(documents.DeleteWebhookDocument, variables);
    show(remove, data.removeWebhook.webhook, (webhook) => `${webhook.id} (${webhook.name}) is removed`);
  });

  const test = addCommand(list, 'test <id>', 'send a test message to a webhook, and show the response');
  test.action(async (id: string) => {
    const variables = { webhook: parseId('webhook', id) };
    const { test: answer } = (await connect().request(documents.TestWebhookDocument, variables)).testWebhook;
    const how = answer.delivered
      ? `delivered: the response was ${answer.status}`
      : `failed: ${answer.reason}`;
    show(test, answer, () => `${how} (${answer.tookMs} ms)`);
    if (!answer.delivered) process.exitCode = ExitCode.FAILED;
  });
}

function addAdd(list: Command): void {
  const add = addFilterOptions(
    addCommand(list, 'add <name> <url>', 'send events of your jobs to a URL, from now on').option(
      '--on <kinds>',
      `events: ${KINDS.join(', ')} (default: all)`,
      collect,
    ),
  );
  add.action(async (name: string, url: string, options: FilterOptions & { on?: string[] }) => {
    const client = connect();
    const filter = await filterFromOptions(client, options);
    const input = { name, url, filter, kinds: (options.on ?? []).map(kind) };
    const { createWebhook } = await client.request(documents.CreateWebhookDocument, { input });
    showSecret(add, createWebhook);
  });
}

function addSet(list: Command): void {
  const set = addCommand(list, 'set <id>', 'change a webhook')
    .option('--name <name>', 'what it is for')
    .option('--url <url>', 'address of the endpoint')
    .option('--on <kinds>', `events: ${KINDS.join(', ')}; "all"`, collect)
    .option('--enable', 'send events, from the first undelivered one')
    .option('--disable', 'send nothing until enabled again');
  set.action(async (id: string, options: SetOptions) => {
    const { name, url, on, enable, disable } = options;
    if (enable && disable)
      throw new CliError('--enable and --disable cannot be given together', ExitCode.USAGE);
    const input = {
      ...{ webhookId: parseId('webhook', id), name, url },
      kinds: on && (on.join() === 'all' ? [] : on.map(kind)),
      enabled: enable ? true : disable ? false : undefined,
    };
    const data = await connect().request(documents.UpdateWebhookDocument, { input });
    show(set, data.updateWebhook.webhook, (webhook) => tableOf(COLUMNS, [webhook]));
  });
}

interface SetOptions {
  name?: string;
  url?: string;
  on?: string[];
  enable?: boolean;
  disable?: boolean;
}

const kind = (written: string) => parseWord('--on', written.toUpperCase(), KINDS);

const showSecret = (command: Command, made: { webhook: Webhook; secret: string }): void =>
  showOnce(
    command,
    made,
    made.secret,
    `${made.webhook.id}: keep this secret, which signs the messages; it will not be shown again`,
  );

const COLUMNS: Columns<Webhook> = {
  ID: ({ id }) => id,
  NAME: ({ name }) => name,
  URL: ({ url }) => url,
  EVENTS: ({ kinds }) => kinds.join(',') || 'all',
  STATE: ({ enabled, failures }) => (enabled ? (failures > 0 ? 'failing' : 'good') : 'disabled'),
  'DELIVERED (UTC)': ({ deliveredAt }) => time(deliveredAt),
  BEHIND: ({ lagS }) => (lagS > 0 ? duration(lagS) : null),
  'LAST FAILURE': ({ disabledReason, failedReason }) => disabledReason ?? failedReason,
};
