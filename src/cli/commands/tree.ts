/** `switchyard tree`: the schedulers between the root and sites, what each holds, and its channels. */
import type { Command } from 'commander';
import { addCommand, findScheduler, show } from '../command.js';
import { connect } from '../connect.js';
import {
  type ChannelFieldsFragment,
  CreateSchedulerDocument,
  RemoveSchedulerDocument,
  type SchedulerFieldsFragment,
  TreeChannelsDocument,
  TreeDocument,
  type TreeQuery,
  UpdateSchedulerDocument,
} from '../documents.gql.js';
import { count, short, table } from '../format.js';

type Tree = TreeQuery;
type Standing = Tree['tree'];
type Channel = ChannelFieldsFragment;
type Class = Channel['classes'][number];

export function addTree(program: Command): void {
  const tree = addCommand(
    program,
    'tree',
    'show or change the tree of schedulers: the jobs that each holds, and the power of its channels',
  );
  tree.action(async () => show(tree, await connect().request(TreeDocument, {}), treeTable));

  const channels = addCommand(
    tree,
    'channels [scheduler]',
    'show what the machines below a scheduler can run, by channel; without a name: below the root',
  );
  channels.action(async (nameOrId: string | undefined) => {
    const client = connect();
    const id = nameOrId === undefined ? null : (await findScheduler(client, nameOrId)).id;
    const of = await client.request(TreeChannelsDocument, { id: id ?? '', root: id === null });
    show(channels, (of.tree ?? of.scheduler)?.channels ?? [], describeChannels);
  });

  const changed = ({ name, parent }: SchedulerFieldsFragment): string =>
    `${name} is under ${parent?.name ?? 'the root'}`;
  const add = addCommand(tree, 'add <name>', 'create a scheduler (ADMIN)').option(
    '--under <scheduler>',
    'the scheduler above it (default: the root)',
  );
  add.action(async (name: string, { under }: { under?: string }) => {
    const client = connect();
    const input = { name, parentId: under === undefined ? null : (await findScheduler(client, under)).id };
    const data = await client.request(CreateSchedulerDocument, { input });
    show(add, data.createScheduler.scheduler, changed);
  });

  const change = async (nameOrId: string, fields: { name?: string; under?: string | null }) => {
    const client = connect();
    const { id } = await findScheduler(client, nameOrId);
    const { name, under } = fields;
    const parentId = typeof under === 'string' ? (await findScheduler(client, under)).id : under;
    const input = { schedulerId: id, name, parentId };
    return (await client.request(UpdateSchedulerDocument, { input })).updateScheduler.scheduler;
  };
  const move = addCommand(
    tree,
    'move <scheduler> [under]',
    'move a scheduler, with everything below it, under another; without one: under the root (ADMIN)',
  );
  move.action(async (nameOrId: string, under: string | undefined) =>
    show(move, await change(nameOrId, { under: under ?? null }), changed),
  );
  const rename = addCommand(tree, 'rename <scheduler> <name>', 'rename a scheduler (ADMIN)');
  rename.action(async (nameOrId: string, name: string) =>
    show(rename, await change(nameOrId, { name }), changed),
  );

  const remove = addCommand(
    tree,
    'remove <scheduler>',
    'remove a scheduler: everything below it moves to the one above, and its jobs return to the root (ADMIN)',
  );
  remove.action(async (nameOrId: string) => {
    const client = connect();
    const { id } = await findScheduler(client, nameOrId);
    const data = await client.request(RemoveSchedulerDocument, { scheduler: id });
    show(remove, data.removeScheduler.scheduler, ({ name }) => `${name} is removed`);
  });
}

/** From the root down; sites below the schedulers of their level. */
function treeTable({ tree, schedulers }: Tree): string {
  const byId = new Map(schedulers.map((one) => [one.id, one]));
  const rows: unknown[][] = [];
  const add = (name: string, of: Standing, depth: number): void => {
    const indent = '  '.repeat(depth);
    const power = short(of.channels.reduce((sum, channel) => sum + channel.power, 0));
    rows.push([`${indent}${name}`, of.holds, of.waiting, of.channels.length, power, null, null]);
    for (const { id } of of.children) {
      const child = byId.get(id);
      // One that was added between two looks of the service is missing.
      if (child !== undefined) add(child.name, child, depth + 1);
    }
    for (const { name, state, metaQueuedJobs, queuedJobs, runningJobs } of of.sites) {
      const label = `${indent}  site ${name}${state === 'UP' ? '' : ` (${state})`}`;
      rows.push([label, metaQueuedJobs, metaQueuedJobs, null, null, queuedJobs, runningJobs]);
    }
  };
  add('root', tree, 0);
  return table(['SCHEDULER', 'HOLDS', 'WAITING', 'CHANNELS', 'POWER', 'QUEUED', 'RUNNING'], rows);
}

function describeChannels(channels: readonly Channel[]): string {
  if (channels.length === 0) return 'no channels: no waiting job can run on a machine below';
  return channels
    .map(({ port, power, classes, branches }) =>
      [
        `channel ${port}, power ${short(power)}`,
        ...classes.map((one) => `  runs ${describeClass(one)}`),
        ...branches.map(
          ({ scheduler, site, port: below, power: part, jobs }) =>
            `  branch ${scheduler?.name ?? `site ${site?.name}`}, channel ${below}: power ${short(part)}, holds ${count(jobs, 'job')}`,
        ),
      ].join('\n'),
    )
    .join('\n');
}

function describeClass(one: Class): string {
  const { os, architecture, licenses, tasks, cpusPerTask, memoryMbPerTask, jobs } = one;
  const wants = [
    ...[`${count(tasks, 'task')} × ${count(cpusPerTask, 'CPU')}`, `${memoryMbPerTask} MB`],
    ...[os, architecture, ...licenses].filter((name) => name !== null),
  ];
  return `${count(jobs, 'job')} of ${wants.join(', ')}`;
}
