/** An operator: what the README says of sites, then a site of their own, its resources, its calendar and its users, page by page. */
import { join } from 'node:path';
import { afterAll, beforeAll, it } from 'vitest';
import { launch, until } from '../cli/service.js';
import { commandsOf, mentionedIn, type Part } from '../docs/markdown.js';
import { newcomerWithService, type Seen } from './newcomer.js';

let olga: Awaited<ReturnType<typeof newcomerWithService>>;
beforeAll(async () => {
  olga = await newcomerWithService('operator');
});
afterAll(() => olga?.leaves());

const accepted = /^job_\d+\n$/;

it('what the README tells of sites and policies', async () => {
  const shown = commandsOf({ page: 'README.md', under: 'More to try' });
  await olga.types('switchyard trace generate poisson --jobs 20 --processors 100 --out trace.swf.gz');
  await olga.follows(shown.slice(shown.findIndex(({ text }) => text.includes('placement'))), [
    ['switchyard placement', /NEVER_FITS_CPUS|^would run at local/m],
    ['switchyard weights set dispatch.deadline=2', /dispatch\.deadline +2\n/],
    ['switchyard drain local', /local is DRAINING/],
    ['switchyard groups submit --count 1000', /^group_\d+ \(1000 jobs\)\n$/],
    // Its site is the only one that takes jobs then: those of the group are not what is replayed.
    [
      'switchyard replay trace.swf.gz',
      { first: () => olga.types('switchyard cancel --state QUEUED'), out: /20 jobs/ },
    ],
  ]);
});

it('a site, and what its machines have', async () => {
  const page = 'docs/operations/sites.md';
  const adding = mentionedIn(
    { page, under: 'Register it and start its agents' },
    /^switchyard (sites|machines) add/,
  );
  olga.names.NAME = 'alps';
  const printed = /^SWITCHYARD_URL=(\S+) SWITCHYARD_KEY=(\S+) switchyard agent --site alps --simulate$/m;
  await olga.follows(adding, [
    ['switchyard sites add NAME --agent', { with: { '--agent': '--agent --simulate 16x8' }, out: printed }],
    ['switchyard machines add NAME MACHINE', { with: { MACHINE: 'spare' }, out: /alps +spare/ }],
  ]);
  const commands = (under: string, table: [string, Seen][]) =>
    olga.follows(commandsOf({ page, under }), table);
  await commands('GPUs, tape drives and other counted resources', [
    ['switchyard machines add alps node7', /node7 .*fpga 0\/1, gpu 0\/4/],
    ['switchyard submit --resource gpu=2', accepted],
    ['switchyard resources', /^gpu +machine +- +4 +/m],
    ['switchyard resources add tape-drive', /tape-drive +alps +0 +4 +drives/],
    ['switchyard resources add scratch-gb', /scratch-gb +alps +0 +5000 +GB/],
    ['switchyard resources add archive-stream', /archive-stream +\(grid\) +0 +20/],
    ['switchyard submit --tasks 8 --resource scratch-gb=500', accepted],
    ['switchyard resources set tape-drive', /tape-drive +alps +0 +6/],
    ['switchyard resources remove archive-stream', /is removed/],
  ]);
  await commands('Devices', [
    ['switchyard machines set alps/node7 --measured-devices', /node7/],
    ['switchyard machines add alps node8', /node8 .*gpu 0\/2/],
    ['switchyard machines add alps node9', /node9 .*gpu 0\/12/],
    ['switchyard submit --gpus a100:2', accepted],
    ['switchyard submit --gres gpu:1 --constraint', accepted],
    ['switchyard submit --devices gpu:a100:2', accepted],
    // No card of this machine is in MIG mode.
    ['switchyard submit --resource mig=3', { code: 2, err: /"mig" is not accepted; accepted: .*fpga, gpu/ }],
  ]);
  await commands('Labels', [
    ['switchyard machines set alps/node7 --label', /node7 .*fast, gen=3, rack=a/],
    ['switchyard submit --constraint', accepted],
  ]);
  await commands('Tasks on machines, and whole machines', [
    ['switchyard submit --tasks 16 --tasks-per-machine 4', accepted],
    ['switchyard submit --exclusive --mem-per-cpu 2G', accepted],
    ['switchyard submit --exclusive=user', accepted],
    ['switchyard submit --tasks 8 --all-alike rack', accepted],
    ['switchyard submit --tasks 8 --same-switch 10m', accepted],
  ]);
  await commands('Jobs of several parts', [['switchyard submit --part', accepted]]);
});

it('the command that a new site is given starts its agent', async () => {
  const { stdout } = await olga.types('switchyard sites add jura --agent --simulate 2x8');
  const [, url, key] = /^SWITCHYARD_URL=(\S+) SWITCHYARD_KEY=(\S+) switchyard agent/m.exec(stdout) ?? [];
  launch(['agent', '--site', 'jura', '--simulate'], {
    ...{ SWITCHYARD_URL: url!, SWITCHYARD_KEY: key!, SWITCHYARD_HOME: join(olga.here, '.jura') },
  });
  await until(
    () => olga.service.json<{ name: string; agentSeenAt: string | null }[]>('sites'),
    (sites) => sites.some(({ name, agentSeenAt }) => name === 'jura' && agentSeenAt !== null),
  );
});

it('maintenance and reservations, and jobs in one', async () => {
  const page = 'docs/operations/calendars.md';
  const windows = commandsOf({ page, under: 'Close machines, and reserve them' });
  // Days of the page are days to come.
  for (const { text } of windows)
    for (const [day] of text.matchAll(/\d{4}-\d\d-\d\dT\S+/g))
      olga.names[day] = day.replace(/^\d+/, String(new Date().getFullYear() + 1));
  const lines = (...[id, holds]: [string, string]) => new RegExp(`^${id} .* ${holds} `, 'm');
  await olga.follows(windows, [
    ['switchyard resources add matlab', /matlab +alps +0 +25/],
    ['switchyard maintenance add alps --from', lines('hold_1', 'the whole site')],
    ['switchyard maintenance add alps --machine node7', lines('hold_2', 'node7')],
    ['switchyard reserve add alps -n 4', lines('hold_3', 'course')],
    ['switchyard reserve add alps --machine node7', lines('hold_4', 'node7, 4 matlab')],
    ['switchyard maintenance add alps --shared matlab=25', lines('hold_5', '25 matlab')],
    ['switchyard maintenance add alps --rrule', lines('hold_6', 'FREQ=MONTHLY;BYDAY=2TU')],
    ['switchyard maintenance', /^hold_1 [\s\S]*^hold_6 /m],
    ['switchyard maintenance set hold_1', /^hold_1 .* 09:00:00 .* 15:00:00 /m],
    ['switchyard maintenance cancel hold_1', /is canceled/],
  ]);
  olga.writes('lab.sh', '#!/bin/sh\ntrue\n', 0o755);
  await olga.types('switchyard slurm install slurm');
  await olga.follows(commandsOf({ page, under: 'Running in a reservation' }), [
    ['switchyard submit --reservation course', accepted],
    ['sbatch --reservation=course', { with: { sbatch: 'slurm/sbatch' }, out: /^Submitted batch job/ }],
  ]);
});

it('users, keys and invitations', async () => {
  const page = 'docs/operations/users.md';
  olga.writes('users.csv', '# a group\nbob,SILVER\ncleo\n');
  Object.assign(olga.names, { NAME: 'ada', USER: 'ada', ROLE: 'OPERATOR', FILE: 'users.csv' });
  const commands = (under: string, words: RegExp, table: [string, Seen][]) =>
    olga.follows(mentionedIn({ page, under } satisfies Part, words), table);
  await commands('Roles', /^switchyard/, [
    ['switchyard users add NAME --role ROLE', /ada .*OPERATOR/],
    ['switchyard users import FILE', /^2 users registered/],
    ['switchyard whoami', /^admin .*role ADMIN/],
  ]);
  const key = async () => {
    const keys = await olga.service.json<{ id: string; revokedAt: string | null }[]>('keys', '--user', 'ada');
    olga.names.ID = keys.find(({ revokedAt }) => revokedAt === null)!.id;
  };
  await commands('Keys', /^switchyard keys/, [
    ['switchyard keys add NAME --user USER', { out: /^swy_\S+\n$/, err: /will not be shown again/ }],
    ['switchyard keys revoke ID', { first: key, out: /is revoked/ }],
    [
      'switchyard keys rotate ID',
      {
        first: async () => {
          await olga.types('switchyard keys add laptop --user ada');
          await key();
        },
        out: /^swy_\S+\n$/,
      },
    ],
  ]);
  olga.names.NAME = 'dora';
  await commands('Passwords', /^switchyard/, [
    ['switchyard users invite NAME', { out: /^http:\/\/\S+#invitation=\S+\n$/, err: /can be used once/ }],
    ['switchyard users reset NAME', /#invitation=/],
    ['switchyard sessions --user NAME', /^ID/],
    ['switchyard sessions end --user NAME', /^0 sessions of dora ended/],
  ]);
  await commands('Limits of a user', /^switchyard/, [['switchyard quota', /ada/]]);
});
