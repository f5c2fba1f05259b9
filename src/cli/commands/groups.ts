/** `switchyard groups`: many jobs from one template. */
import type { Command } from 'commander';
import type { Client } from '../../client/index.js';
import { DEFAULT_LIMITS } from '../../platform/limits.js';
import { parseDuration, parseId, parseNumber } from '../../words/values.js';
import { addCommand, note, readJson, show } from '../command.js';
import { connect } from '../connect.js';
import {
  CancelGroupDocument,
  GroupDocument,
  type GroupFieldsFragment,
  GroupsDocument,
  type JobInput,
  SubmitGroupDocument,
  type SubmitJobGroupInput,
} from '../documents.gql.js';
import { CliError, ExitCode, exitCodeOf } from '../errors.js';
import { count, time } from '../format.js';
import { addJobOptions, type JobOptions, jobFromOptions, placesFromOptions } from '../job-options.js';
import { addListOptions, type Columns, showList, tableOf } from '../lists.js';
import { saidOfFile, saidOfOptions } from '../spoken.js';

type Group = GroupFieldsFragment;

interface SubmitOptions extends JobOptions {
  groupName?: string;
  parameters?: string;
  count?: string;
  idleTimeout?: string;
  template?: string;
  allowUnfit?: boolean;
  idempotencyKey?: string;
}

export function addGroups(program: Command): void {
  const list = addListOptions(
    addCommand(program, 'groups', 'list bulk groups (jobs submitted from one template), newest first').option(
      '--first <n>',
      'how many',
      '50',
    ),
    COLUMNS,
  );
  list.action(async (options: { first: string }) => {
    const first = parseNumber('--first', options.first, { min: 1, integer: true });
    const client = connect();
    await showList(
      list,
      COLUMNS,
      async () => (await client.request(GroupsDocument, { first })).jobGroups.nodes,
    );
  });

  addSubmit(list);
  const one = addCommand(list, 'show <id>', 'show a bulk group');
  one.action(async (id: string) => {
    const groupId = parseId('group', id);
    const { jobGroup } = await connect().request(GroupDocument, { id: groupId });
    if (jobGroup === null)
      throw new CliError(
        `there is no group ${groupId}, or this key may not see it (NOT_FOUND)`,
        ExitCode.NOT_FOUND,
      );
    show(one, jobGroup, (group) => tableOf(COLUMNS, [group]));
  });

  const cancel = addCommand(list, 'cancel <id>', 'cancel all jobs of a bulk group that have not ended');
  cancel.action(async (id: string) => {
    const variables = { jobGroup: parseId('group', id) };
    const data = await connect().request(CancelGroupDocument, variables);
    show(
      cancel,
      data.cancelJobGroup,
      ({ cancelled }) => `${count(cancelled, 'job')} canceled, or being stopped`,
    );
  });
}

function addSubmit(list: Command): void {
  const submit = addJobOptions(
    addCommand(
      list,
      'submit [command] [arguments...]',
      `submit up to ${DEFAULT_LIMITS.groupJobsMax} jobs from one template: {name} in it stands for the job's parameter of that name, {index} for the job's index`,
    ),
  )
    .option('--group-name <text>', 'name of the bulk group')
    .option('--parameters <file>', 'a JSON list with one object of strings per job; - for standard input')
    .option('--count <n>', 'instead of --parameters: the number of jobs, which differ only in {index}')
    .option(
      '--template <file>',
      'a JSON file with the template (fields of JobInput); options set fields that it omits',
    )
    .option(
      '--allow-unfit',
      'accept jobs that no registered machines could ever run; they wait for such machines',
    )
    .option(
      '--idle-timeout <time>',
      'cancel unfinished jobs if no job of the group runs or changes for this long (at least 1m)',
    )
    .option('--idempotency-key <key>', 'a retry with the same key and payload returns the same group')
    .passThroughOptions()
    .addHelpText('after', "\nExample: switchyard groups submit --count 1000 -- sh -c 'echo {index}'");
  submit.action(async (command: string | undefined, args: string[], options: SubmitOptions) => {
    const client = connect();
    const input = await inputOf(client, options, command === undefined ? [] : [command, ...args]);
    const data = await client.request(SubmitGroupDocument, { input });
    const { jobGroup, repeated, errors } = data.submitJobGroup;
    const [first, ...others] = errors;
    if (first !== undefined || jobGroup === null) {
      const said = options.template === undefined ? saidOfOptions : saidOfFile;
      const more = others.length > 0 ? ` (and ${others.length} more)` : '';
      const which = first?.index == null ? '' : `job ${first.index}: `;
      throw new CliError(
        `${which}${first && said(first)} (${first?.code})${more}`,
        exitCodeOf(first?.code ?? ''),
      );
    }
    if (repeated) note('the idempotency key has been used before: this group was already submitted');
    show(submit, jobGroup, ({ id, size }) => `${id} (${count(size, 'job')})`);
  });
}

async function inputOf(
  client: Client,
  options: SubmitOptions,
  commandLine: string[],
): Promise<SubmitJobGroupInput> {
  if ((options.parameters === undefined) === (options.count === undefined))
    throw new CliError('no jobs given: give either --parameters FILE or --count N', ExitCode.USAGE);
  const fromFile = options.template === undefined ? {} : await readJson('--template', options.template);
  const template = {
    ...jobFromOptions(options, commandLine),
    ...(await placesFromOptions(client, options)),
    ...(fromFile as object),
    // What is in files is the service's to judge, which names the field.
  } as JobInput;
  return {
    name: options.groupName,
    template,
    parameters:
      options.parameters === undefined
        ? undefined
        : ((await readJson('--parameters', options.parameters)) as SubmitJobGroupInput['parameters']),
    count:
      options.count === undefined
        ? undefined
        : parseNumber('--count', options.count, { min: 1, max: DEFAULT_LIMITS.groupJobsMax, integer: true }),
    idleTimeoutS:
      options.idleTimeout === undefined ? undefined : parseDuration('--idle-timeout', options.idleTimeout),
    allowUnfit: options.allowUnfit === true,
    idempotencyKey: options.idempotencyKey,
  };
}

const COLUMNS: Columns<Group> = {
  ID: ({ id }) => id,
  NAME: ({ name }) => name,
  USER: ({ user }) => user.name,
  JOBS: ({ size }) => size,
  STATE: ({ state }) => state,
  'ENDED %': ({ progress }) => Number((100 * progress).toFixed(1)),
  'BY STATE': ({ counts }) => counts.map(({ state, jobs }) => `${state} ${jobs}`).join(', '),
  'SUBMITTED (UTC)': ({ submittedAt }) => time(submittedAt),
};
