/** `switchyard maintenance` and `switchyard reserve`: what is held of machines for a time. */
import type { Command } from 'commander';
import { type Client, ServiceError } from '../../client/index.js';
import {
  given,
  parseAmount,
  parseDuration,
  parseMemory,
  parseNumber,
  parseTime,
} from '../../words/values.js';
import { addCommand, collect, findMachine, findSite, listFrom, note, show } from '../command.js';
import { connect } from '../connect.js';
import {
  CancelHoldDocument,
  type CreateHoldInput,
  type HoldConflict,
  type HoldFieldsFragment,
  type HoldKind,
  HoldsDocument,
  ReserveDocument,
  type ReserveMutation,
  UpdateHoldDocument,
  type UpdateHoldInput,
} from '../documents.gql.js';
import { CliError, ExitCode, usage } from '../errors.js';
import { count, time } from '../format.js';
import { addListOptions, type Columns, showList, tableOf } from '../lists.js';

type Held = ReserveMutation['createHold']['machines'][number];

interface HoldOptions {
  name?: string;
  machine?: string[];
  tasks?: string;
  cpus?: string;
  mem?: string;
  resource?: string[];
  shared?: string[];
  from?: string;
  to?: string;
  for?: string;
  rrule?: string;
  timeZone?: string;
  except?: string[];
  also?: string[];
  afterJobs?: boolean;
  preempt?: boolean;
  refuse?: boolean;
  wholeSite?: boolean;
  releaseAfter?: string;
  keep?: boolean;
  forUser?: string;
  user?: string[];
  reason?: string;
  dryRun?: boolean;
}

const SHARED = 'an amount of a license or another resource of the site or the grid; may be repeated';

export function addHolds(program: Command): void {
  const maintenance = addGroup(program, {
    name: 'maintenance',
    about:
      'list or change maintenance windows, before which no job starts that could still be running when they begin',
    kinds: ['MAINTENANCE'],
  });
  holdOptions(
    addCommand(maintenance, 'add <site>', 'close a site, or machines of it, for a time (OPERATOR)')
      .option('--machine <name>', 'only this machine; may be repeated', collect)
      .option('--shared <kind=amount>', `${SHARED}; without --machine, only these`, collect),
  ).action(async function (this: Command, site: string, options: HoldOptions) {
    await add(this, 'MAINTENANCE', site, options);
  });
  changeOptions(addCommand(maintenance, 'set <name-or-id>', 'change a maintenance window (OPERATOR)'))
    .option('--machine <name>', 'these machines, in place of what it closes; may be repeated', collect)
    .option(
      '--shared <kind=amount>',
      `${SHARED}; in place of those that it closes; none: closes none of them any more`,
      collect,
    )
    .option('--whole-site', 'the whole site')
    .action(change);

  const reserve = addGroup(program, {
    name: 'reserve',
    about: 'list or change reservations of machines, or parts of them',
    kinds: ['USER', 'STANDING'],
  });
  holdOptions(
    addCommand(
      reserve,
      'add <site>',
      'reserve machines, or room for tasks anywhere at the site (OPERATOR, or USER within the limit of the site)',
    )
      .option('--machine <name>', 'this machine; may be repeated', collect)
      .option('-n, --tasks <number>', 'room for this many tasks')
      .option('-c, --cpus <number>', 'CPUs of each task or machine; by default whole machines')
      .option('--mem <memory>', 'memory of each task or machine, such as 4G')
      .option('--resource <kind=amount>', 'other resources of each task or machine; may be repeated', collect)
      .option('--shared <kind=amount>', SHARED, collect)
      .option('--user <name>', 'another user who may run jobs in it; may be repeated', collect)
      .option('--for-user <name>', 'its owner, if not you (OPERATOR)')
      .option(
        '--release-after <duration>',
        'release the rest of an occurrence when none of its jobs has run for this long (default: 10m)',
      )
      .option('--keep', 'never release it'),
  ).action(async function (this: Command, site: string, options: HoldOptions) {
    await add(this, options.rrule === undefined ? 'USER' : 'STANDING', site, options);
  });
  changeOptions(addCommand(reserve, 'set <name-or-id>', 'change a reservation (its owner, OPERATOR)'))
    .option('--machine <name>', 'these machines, in place of what it holds; may be repeated', collect)
    .option('-n, --tasks <number>', 'room for this many tasks, in place of what it holds')
    .option('-c, --cpus <number>', 'CPUs of each of these tasks or machines; without amounts, whole machines')
    .option('--mem <memory>', 'memory of each task or machine, such as 4G')
    .option('--resource <kind=amount>', 'other resources of each task or machine; may be repeated', collect)
    .option(
      '--shared <kind=amount>',
      `${SHARED}; in place of those that it holds; none: holds none of them any more`,
      collect,
    )
    .option(
      '--user <name>',
      'all other users who may run jobs in it, in place of those it has; may be repeated; none: only its owner',
      collect,
    )
    .option(
      '--release-after <duration>',
      'release the rest of an occurrence when none of its jobs has run for this long',
    )
    .option('--keep', 'never release it')
    .action(change);
}

/** The list, and the command that ends one. */
function addGroup(
  program: Command,
  { name, about, kinds }: { name: string; about: string; kinds: readonly HoldKind[] },
): Command {
  const group = addListOptions(addCommand(program, name, about), HOLD_COLUMNS)
    .option('--site <site>', 'only of this site')
    .option('--ended', 'also those that have ended');
  group.action(async ({ site, ended = false }: { site?: string; ended?: boolean }) =>
    showList(group, HOLD_COLUMNS, async () => {
      const client = connect();
      const id = site === undefined ? null : (await findSite(client, site)).id;
      const holds = await client.all(HoldsDocument, 'holds', { site: id, ended });
      return holds.filter(({ kind }) => kinds.includes(kind));
    }),
  );
  const cancel = addCommand(group, 'cancel <name-or-id>', 'end it now, including all later occurrences');
  cancel.action(async (nameOrId: string) => {
    const client = connect();
    const { id } = await findHold(client, nameOrId);
    const { cancelHold } = await client.request(CancelHoldDocument, { hold: id });
    show(cancel, cancelHold.hold, (hold) => `${hold.name ?? hold.id} is canceled`);
  });
  return group;
}

/** What both kinds let change. */
const changeOptions = (command: Command): Command =>
  command
    .option('--name <name>', 'a new name')
    .option('--from <time>', 'when it begins, unless it has begun; of one that recurs, the first occurrence')
    .option('--to <time>', 'when it ends')
    .option('--for <duration>', 'instead of --to: how long it lasts, such as 4h')
    .option('--rrule <rule>', 'recurrence rule of one that recurs')
    .option('--time-zone <name>', 'time zone of its rule')
    .option('--except <time>', 'all occurrences of the rule to exclude; may be repeated', collect)
    .option('--also <time>', 'all additional occurrences; may be repeated', collect)
    .option('--after-jobs', 'let jobs finish that may still be running when it begins')
    .option('--preempt', 'stop jobs in time that would still be running when it begins (OPERATOR)')
    .option('--refuse', 'reject the change if jobs may still be running when it begins')
    .option('--reason <text>', 'reason, visible to everyone');

const holdOptions = (command: Command): Command =>
  command
    .option('--name <name>', 'a name, unique among those that have not ended')
    .option('--from <time>', 'when it begins (default: now)')
    .option('--to <time>', 'when it ends; without it and --for: when it is canceled (OPERATOR)')
    .option('--for <duration>', 'instead of --to: how long it lasts, such as 4h')
    .option(
      '--rrule <rule>',
      'recurrence rule (RFC 5545), such as FREQ=WEEKLY;BYDAY=TU or FREQ=MONTHLY;BYDAY=2TU',
    )
    .option('--time-zone <name>', 'time zone of --rrule, such as Europe/Stockholm (default: UTC)')
    .option(
      '--except <time>',
      'exclude the occurrence of --rrule that begins at this time; may be repeated',
      collect,
    )
    .option('--also <time>', 'an additional occurrence besides those of --rrule; may be repeated', collect)
    .option(
      '--after-jobs',
      'let jobs finish that may still be running when it begins; by default it is rejected',
    )
    .option('--preempt', 'stop jobs in time that would still be running when it begins (OPERATOR)')
    .option('--reason <text>', 'reason, visible to everyone')
    .option('--dry-run', 'change nothing: report conflicts, and the promised starts that it would move');

async function add(command: Command, kind: HoldKind, site: string, options: HoldOptions): Promise<void> {
  const client = connect();
  const { id } = await findSite(client, site);
  const dryRun = options.dryRun === true;
  const input: CreateHoldInput = {
    kind,
    siteId: id,
    name: options.name,
    dryRun,
    ...(await amountsOf(client, site, options)),
    ...timesOf(options, Date.now()),
    onConflict: onConflictOf(options),
    reason: options.reason,
    ...(kind !== 'MAINTENANCE' && {
      ...{ user: options.forUser, users: options.user ?? [] },
      ...releaseOf(options),
    }),
  };
  const { createHold } = await client.request(ReserveDocument, { input }).catch(inOptions);
  show(
    command,
    createHold,
    dryRun ? describeDryRun : ({ hold }) => (hold === null ? '' : tableOf(HOLD_COLUMNS, [hold])),
  );
}

/** What is held. Machines are named within the site. */
async function amountsOf(
  client: Client,
  site: string,
  { machine, tasks, cpus, mem, resource, shared }: HoldOptions,
): Promise<
  Pick<UpdateHoldInput, 'machineIds' | 'tasks' | 'cpus' | 'memoryMb'> &
    Pick<CreateHoldInput, 'resources' | 'shared'>
> {
  const whole = (field: string) => (value: string) => parseNumber(field, value, { min: 1, integer: true });
  const names = machine?.map((name) =>
    /^machine_\d+$/.test(name) || name.includes('/') ? name : `${site}/${name}`,
  );
  return {
    machineIds: names && (await Promise.all(names.map(async (name) => (await findMachine(client, name)).id))),
    tasks: given(tasks, whole('--tasks')),
    cpus: given(cpus, whole('--cpus')),
    memoryMb: given(mem, (value) => parseMemory('--mem', value)),
    resources: resource?.map((value) => parseAmount('--resource', value)),
    shared: shared && listFrom(shared, (value) => parseAmount('--shared', value)),
  };
}

async function change(this: Command, nameOrId: string, options: HoldOptions): Promise<void> {
  const client = connect();
  const { id, site, times, recurrence } = await findHold(client, nameOrId);
  const begins = recurrence?.from ?? times[0]?.from;
  const { name, reason, user, machine, wholeSite } = options;
  if (wholeSite && machine !== undefined) throw usage('--whole-site', '', 'either --machine or --whole-site');
  const input: UpdateHoldInput = {
    holdId: id,
    ...{ name, reason, onConflict: onConflictOf(options) },
    ...(await amountsOf(client, site.name, options)),
    ...timesOf(options, begins === undefined ? Date.now() : Date.parse(begins)),
    ...(wholeSite && { machineIds: null }),
    ...(user && { users: listFrom(user, (one) => one) }),
    ...releaseOf(options),
  };
  if (Object.entries(input).every(([field, value]) => field === 'holdId' || value === undefined))
    throw new CliError('nothing to change: give an option such as --to', ExitCode.USAGE);
  const { updateHold } = await client.request(UpdateHoldDocument, { input }).catch(inOptions);
  show(this, updateHold.hold, (hold) => tableOf(HOLD_COLUMNS, [hold]));
}

/** What is in the way, with the options that let jobs finish or stop them. */
function inOptions(error: unknown): never {
  if (!(error instanceof ServiceError) || error.code !== 'CONFLICT') throw error;
  const message = error.message.replace('AFTER_JOBS', '--after-jobs').replace('PREEMPT', '--preempt');
  throw new CliError(`${message} (CONFLICT)`, error.exitCode);
}

/** Undefined: nothing is said of it. */
function onConflictOf({ afterJobs, preempt, refuse }: HoldOptions): HoldConflict | undefined {
  const asked = [
    ...(afterJobs ? (['AFTER_JOBS'] as const) : []),
    ...(preempt ? (['PREEMPT'] as const) : []),
    ...(refuse ? (['REFUSE'] as const) : []),
  ];
  if (asked.length > 1) throw usage('--preempt', '', 'one of --after-jobs, --preempt and --refuse');
  return asked[0];
}

function releaseOf({ releaseAfter, keep }: HoldOptions): { releaseIdleS?: number | null } {
  if (keep && releaseAfter !== undefined) throw usage('--keep', '', 'either --keep or --release-after');
  if (keep) return { releaseIdleS: null };
  const idle = given(releaseAfter, (value) => parseDuration('--release-after', value));
  return idle === undefined ? {} : { releaseIdleS: Math.round(idle) };
}

/** Times as ISO 8601. `beginsMs`: when it begins if nothing is said of that. */
function timesOf(
  { from, to, for: length, rrule, timeZone, except, also }: HoldOptions,
  beginsMs: number,
): Partial<Pick<CreateHoldInput, 'from' | 'to' | 'rrule' | 'timeZone' | 'exceptDates' | 'alsoDates'>> {
  if (to !== undefined && length !== undefined) throw usage('--for', length, 'either --to or --for');
  const nowMs = Date.now();
  const times = (field: string, values: readonly string[]) =>
    values.map((value) => parseTime(field, value, nowMs, note));
  const begin = given(from, (value) => parseTime('--from', value, nowMs, note));
  // A rule may have begun in the past.
  const fromMs =
    begin === undefined ? beginsMs : Math.max(rrule === undefined ? nowMs : 0, Date.parse(begin));
  const end =
    length === undefined
      ? given(to, (value) => parseTime('--to', value, nowMs, note))
      : new Date(fromMs + parseDuration('--for', length) * 1000).toISOString();
  return {
    ...{ ...(begin && { from: begin }), ...(end && { to: end }) },
    ...(rrule !== undefined && { rrule }),
    ...(timeZone !== undefined && { timeZone }),
    ...(except && { exceptDates: times('--except', except) }),
    ...(also && { alsoDates: times('--also', also) }),
  };
}

function describeDryRun({
  machines,
  shared,
  holds,
  runsInTheWay,
  jobs,
  moved,
}: ReserveMutation['createHold']): string {
  const lines = [
    allOf(machines.length + shared.length === 0, machines, shared),
    ...holds.map(({ id, name, kind }) => `conflicts with ${kind} ${name ?? id}`),
  ];
  if (runsInTheWay > 0)
    lines.push(
      `${count(runsInTheWay, 'job')} may still be running when it begins${jobs.length > 0 ? `: ${jobs.map(({ id }) => id).join(', ')}` : ''}`,
    );
  for (const { job, before, after } of moved)
    lines.push(
      `${job?.id ?? "another user's job"} was to start at ${time(before)}: ${after === null ? 'now has no promised start' : `now at ${time(after)}`}`,
    );
  if (holds.length + runsInTheWay === 0) lines.push('no conflicts');
  return lines.join('\n');
}

const allOf = (
  wholeSite: boolean,
  machines: readonly Held[],
  shared: ReserveMutation['createHold']['shared'],
): string =>
  [
    ...(wholeSite ? ['the whole site'] : machines.map(heldOf)),
    ...shared.map(({ kind, amount }) => `${amount} ${kind}`),
  ].join(', ');

const heldOf = ({ machine, whole, cpus, memoryMb, resources }: Held): string => {
  if (whole) return machine.name;
  const parts = [
    ...(cpus ? [count(cpus, 'CPU')] : []),
    ...(memoryMb ? [`${memoryMb} MB`] : []),
    ...resources.map(({ kind, amount }) => `${amount} ${kind}`),
  ];
  return `${machine.name} (${parts.join(', ')})`;
};

async function findHold(client: Client, nameOrId: string): Promise<HoldFieldsFragment> {
  const holds = await client.all(HoldsDocument, 'holds', { site: null, ended: false });
  const found = holds.find(({ name }) => name === nameOrId) ?? holds.find(({ id }) => id === nameOrId);
  if (found) return found;
  throw new CliError(
    `there is no maintenance window or reservation "${nameOrId}", or it has ended (NOT_FOUND)`,
    ExitCode.NOT_FOUND,
  );
}

const HOLD_COLUMNS: Columns<HoldFieldsFragment> = {
  ID: ({ id }) => id,
  NAME: ({ name }) => name,
  KIND: ({ kind }) => kind,
  SITE: ({ site }) => site.name,
  HOLDS: ({ wholeSite, machines, shared }) => allOf(wholeSite, machines, shared),
  'FROM (UTC)': ({ times }) => time(times[0]?.from),
  'TO (UTC)': ({ times }) => (times[0] && times[0].to === null ? 'until canceled' : time(times[0]?.to)),
  AGAIN: ({ recurrence }) => recurrence && `${recurrence.rrule} (${recurrence.timeZone})`,
  USER: ({ user }) => user?.name,
  USERS: ({ users }) => users.map(({ name }) => name).join(', '),
  LACKING: ({ lacking }) => lacking.map(({ name }) => name).join(', '),
  REASON: ({ reason }) => reason,
  'ENDED (UTC)': ({ endedAt }) => time(endedAt),
};
