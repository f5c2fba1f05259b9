/** `switchyard sites`, `machines`, `agents`, `licenses`, `resources`, `drain`, `undrain`: what there is to run on. */
import type { Command } from 'commander';
import type { Client } from '../../client/index.js';
import {
  given,
  parseAmount,
  parseDevice,
  parseDuration,
  parseId,
  parseLabel,
  parseNumber,
  parseWord,
} from '../../words/values.js';
import {
  addCommand,
  collect,
  collectWhole,
  findMachine,
  findScheduler,
  findSite,
  listFrom,
  readJson,
  show,
  showOnce,
} from '../command.js';
import { connect } from '../connect.js';
import * as documents from '../documents.gql.js';
import { usage } from '../errors.js';
import { count, time } from '../format.js';
import { remembering } from '../job-options.js';
import { addListOptions, type Columns, showList, tableOf } from '../lists.js';
import { agentOf } from '../site-agent.js';
import { addSiteShow } from './site.js';

type Site = documents.SiteFieldsFragment;
type Machine = documents.MachineFieldsFragment;
type Agent = documents.AgentFieldsFragment;
type License = documents.LicenseFieldsFragment;
type DeviceInput = documents.DeviceInput;

const STATES = ['UP', 'DRAINING', 'DOWN'] as const;
/** The most machines that `createMachines` takes at once. */
const MAX_MACHINES = 1000;

/** Of a site with a scheduler of its own: jobs that wait there at most. */
const QUEUE_LIMIT = 100;
const EXTERNAL = { kind: 'external', queueLimit: QUEUE_LIMIT };

/** A limit, or none. */
const limit =
  (field: string) =>
  (value: string): number | null =>
    value === 'none' ? null : parseNumber(field, value, { min: 1, integer: true });
const whole = (field: string, min: number) => (value: string) =>
  parseNumber(field, value, { min, integer: true });

export function addGrid(program: Command): void {
  addSites(program);
  addMachines(program);
  addAgents(program);
  addLicenses(program);
  addResources(program);
  addDrain(program);
}

function addSites(program: Command): void {
  const list = addListOptions(addCommand(program, 'sites', 'list or change sites'), SITE_COLUMNS);
  list.action(() => showList(list, SITE_COLUMNS, () => connect().all(documents.SitesDocument, 'sites', {})));

  const add = addCommand(list, 'add <name>', 'register a site (OPERATOR)')
    .option(
      '--agent',
      'also create a key for its agents, and print the command that starts an agent, to be run on each of its hosts (ADMIN)',
    )
    .option(
      '--simulate <machines>',
      'also register simulated machines, such as 16x8: 16 machines with 8 CPUs; and print the command that simulates them (ADMIN)',
    )
    .option(
      '--local <scheduler>',
      `the site has a scheduler of its own: \`slurm\`, or an adapter as for \`switchyard agent --local\`. Its local policy is \`external\`, with ${QUEUE_LIMIT} jobs at most waiting there; with --agent, the printed command names the scheduler`,
    );
  siteOptions(add).action(
    async (name: string, options: SiteOptions & { agent?: boolean; simulate?: string; local?: string }) => {
      const client = connect();
      const machines = given(options.simulate, simulatedMachines);
      const { local } = options;
      if (local !== undefined && machines !== undefined)
        throw usage('--local', local, 'a scheduler only without --simulate');
      const fields = await siteFields(client, options);
      const input = { name, ...fields, localPolicy: fields.localPolicy ?? (local && EXTERNAL) };
      const { site } = (await client.request(documents.RegisterSiteDocument, { input })).createSite;
      if (machines !== undefined)
        await client.request(documents.RegisterMachinesDocument, {
          inputs: machines.map((machine) => ({ ...machine, siteId: site.id })),
        });
      if (!options.agent && machines === undefined)
        return show(add, site, (one) => tableOf(SITE_COLUMNS, [one]));
      const { id: userId } = await agentOf(client, site);
      const { createApiKey } = await client.request(documents.CreateKeyDocument, {
        input: { userId, name: `agents of ${name}`, siteId: site.id },
      });
      const kind = machines === undefined ? (local === undefined ? '' : ` --local ${local}`) : ' --simulate';
      const line = `SWITCHYARD_URL=${client.options.url} SWITCHYARD_KEY=${createApiKey.secret} switchyard agent --site ${name}${kind}`;
      const where =
        machines !== undefined
          ? `${site.id} has ${count(machines.length, 'simulated machine')}; run this anywhere`
          : local === undefined
            ? `${site.id}: run this on each host of ${name}`
            : `${site.id}: run this on a login node of ${name}, with AGENT_STATE_DIR in a directory that its nodes share`;
      const said = `${where}; the key in it will not be shown again`;
      showOnce(add, { ...site, agent: line }, line, said);
    },
  );

  const set = addCommand(list, 'set <site>', 'change a site (OPERATOR)');
  siteOptions(set)
    .option('--name <name>', 'new name')
    .option('--state <state>', 'UP or DOWN')
    .action(async (nameOrId: string, options: SiteOptions & { name?: string; state?: string }) => {
      const client = connect();
      const state = given(options.state, (value) => parseWord('--state', value, STATES));
      const { id } = await findSite(client, nameOrId);
      const input = { siteId: id, name: options.name, state, ...(await siteFields(client, options)) };
      const data = await client.request(documents.UpdateSiteDocument, { input });
      show(set, data.updateSite.site, (site) => tableOf(SITE_COLUMNS, [site]));
    });

  addSiteShow(list);
  const remove = addCommand(list, 'remove <site>', 'remove a drained site with no runs left (OPERATOR)');
  remove.action(async (nameOrId: string) => {
    const client = connect();
    const { id } = await findSite(client, nameOrId);
    const data = await client.request(documents.RemoveSiteDocument, { site: id });
    show(remove, data.removeSite.site, (site) => `${site.name} is removed`);
  });
}

const SIMULATED_MB_PER_CPU = 4096;

/** `16x8`: 16 machines with 8 CPUs each. */
function simulatedMachines(written: string): { name: string; cpus: number; memoryMb: number }[] {
  const [, number, cpus] = /^(\d+)x(\d+)$/.exec(written) ?? [];
  if (number === undefined || cpus === undefined)
    throw usage('--simulate', written, 'how many machines and CPUs of each, such as 16x8');
  const whole = (value: string, max: number) =>
    parseNumber('--simulate', value, { min: 1, max, integer: true });
  const each = { cpus: whole(cpus, 65_536), memoryMb: whole(cpus, 65_536) * SIMULATED_MB_PER_CPU };
  return Array.from({ length: whole(number, MAX_MACHINES) }, (_, i) => ({ name: `sim-${i + 1}`, ...each }));
}

interface SiteOptions {
  latitude?: string;
  longitude?: string;
  localPolicy?: string;
  maxRunningJobs?: string;
  maxLimit?: string;
  reservableCpuHours?: string;
  scheduler?: string;
}

function siteOptions(command: Command): Command {
  return command
    .option('--latitude <degrees>', 'latitude, degrees north')
    .option('--longitude <degrees>', 'longitude, degrees east')
    .option('--local-policy <file>', 'JSON file with its local policy; none: the one in the current policy')
    .option(
      '--max-running-jobs <n>',
      'how many jobs may run there at the same time; none: limited by its resources only',
    )
    .option(
      '--max-limit <duration>',
      'longest run time limit of a job there, such as 24h, which jobs without a limit get; none: any',
    )
    .option('--reservable-cpu-hours <n>', 'CPU-hours that a user may have reserved there at a time; 0: none')
    .option('--scheduler <scheduler>', 'the scheduler directly above it in the tree; none: the root');
}

async function siteFields(client: Client, options: SiteOptions) {
  const degrees = (field: string, limit: number) => (value: string) =>
    parseNumber(field, value, { min: -limit, max: limit });
  return {
    latitude: given(options.latitude, degrees('--latitude', 90)),
    longitude: given(options.longitude, degrees('--longitude', 180)),
    localPolicy:
      options.localPolicy === undefined
        ? undefined
        : options.localPolicy === 'none'
          ? null
          : await readJson('--local-policy', options.localPolicy),
    maxRunningJobs: given(options.maxRunningJobs, limit('--max-running-jobs')),
    maxLimitS: given(options.maxLimit, (value) =>
      value === 'none' ? null : parseDuration('--max-limit', value),
    ),
    reservableCpuHours: given(options.reservableCpuHours, whole('--reservable-cpu-hours', 0)),
    schedulerId:
      options.scheduler === undefined
        ? undefined
        : options.scheduler === 'none'
          ? null
          : (await findScheduler(client, options.scheduler)).id,
  };
}

function addMachines(program: Command): void {
  const list = addListOptions(
    addCommand(program, 'machines', 'list or change machines').option('--site <site>', 'only of this site'),
    MACHINE_COLUMNS,
  );
  list.action(async (options: { site?: string }) => {
    const client = connect();
    const site = options.site === undefined ? null : (await findSite(client, options.site)).id;
    await showList(list, MACHINE_COLUMNS, () => client.all(documents.MachinesDocument, 'machines', { site }));
  });

  const add = addCommand(list, 'add <site> <name>', 'register one or more machines (OPERATOR)')
    .requiredOption('--cpus <n>', 'CPUs')
    .requiredOption('--memory-mb <mb>', 'memory, MB')
    .option('--count <n>', `this many machines, named NAME-1, NAME-2, …; up to ${MAX_MACHINES}`);
  machineOptions(add).action(async (siteName: string, name: string, options: NewMachineOptions) => {
    const client = connect();
    const fields = {
      ...machineFields(options),
      cpus: whole('--cpus', 1)(options.cpus),
      memoryMb: whole('--memory-mb', 0)(options.memoryMb),
    };
    const { id: siteId } = await findSite(client, siteName);
    const number =
      options.count && parseNumber('--count', options.count, { min: 1, max: MAX_MACHINES, integer: true });
    const names = number ? Array.from({ length: number }, (_, i) => `${name}-${i + 1}`) : [name];
    const inputs = names.map((each) => ({ siteId, name: each, ...fields }));
    const data = await client.request(documents.RegisterMachinesDocument, { inputs });
    show(add, data.createMachines.machines, (all) => tableOf(MACHINE_COLUMNS, all));
  });

  const set = addCommand(list, 'set <machine>', 'change a machine, given as SITE/NAME or by ID (OPERATOR)')
    .option('--name <name>', 'new name')
    .option('--state <state>', 'UP, DRAINING or DOWN')
    .option('--cpus <n>', 'CPUs')
    .option('--memory-mb <mb>', 'memory, MB')
    .option('--measured-devices', 'use the devices found by its agent');
  machineOptions(set).action(
    async (nameOrId: string, options: MachineOptions & { name?: string; state?: string }) => {
      const client = connect();
      const state = given(options.state, (value) => parseWord('--state', value, STATES));
      const { id: machineId } = await findMachine(client, nameOrId);
      const found = options.measuredDevices ? await measuredDevices(client, machineId) : undefined;
      const input = { machineId, name: options.name, state, ...machineFields(options), ...found };
      const data = await client.request(documents.UpdateMachineDocument, { input });
      show(set, data.updateMachine.machine, (one) => tableOf(MACHINE_COLUMNS, [one]));
    },
  );

  const remove = addCommand(list, 'remove <machine>', 'remove a machine on which no job runs (OPERATOR)');
  remove.action(async (nameOrId: string) => {
    const client = connect();
    const { id: machine } = await findMachine(client, nameOrId);
    const data = await client.request(documents.RemoveMachineDocument, { machine });
    show(remove, data.removeMachine.machine, (one) => `${one.site.name}/${one.name} is removed`);
  });
}

interface MachineOptions {
  cpus?: string;
  memoryMb?: string;
  benchmark?: string;
  os?: string;
  arch?: string;
  license?: string[];
  resource?: string[];
  label?: string[];
  device?: string[];
  maxTasks?: string;
  measuredDevices?: boolean;
}

interface NewMachineOptions extends MachineOptions {
  cpus: string;
  memoryMb: string;
  count?: string;
}

function machineOptions(command: Command): Command {
  return command
    .option('--benchmark <power>', 'relative power (default: 100)')
    .option('--os <name>', 'operating system (default: linux)')
    .option('--arch <name>', 'architecture (default: x64)')
    .option('--license <id>', 'a license pool that it is restricted to, by ID; may be repeated', collect)
    .option(
      '--resource <kind=amount>',
      'a resource besides CPUs and memory, such as gpu=4 or tape-drive=1; may be repeated',
      collect,
    )
    .option(
      '--label <name=text>',
      'a label for use in job constraints, such as gen=3 or fast; may be repeated; none: no labels',
      collect,
    )
    .option(
      '--device <id,…>',
      'a device by name, such as gpu0,kind=gpu,model=a100,memory-mb=80000,shares=1,link=left,one-user=no; may be repeated; none: no devices',
      collectWhole,
    )
    .option('--max-tasks <n>', 'how many tasks may share it; none: not time-shared');
}

function machineFields(options: MachineOptions) {
  return {
    cpus: given(options.cpus, whole('--cpus', 1)),
    memoryMb: given(options.memoryMb, whole('--memory-mb', 0)),
    benchmark: given(options.benchmark, (value) => parseNumber('--benchmark', value, { min: 0 })),
    os: options.os,
    architecture: options.arch,
    licenseIds: options.license?.map((id) => parseId('license', id)),
    maxTasks: given(options.maxTasks, limit('--max-tasks')),
    resources: options.resource?.map((one) => parseAmount('--resource', one)),
    labels: options.label && listFrom(options.label, (one) => parseLabel('--label', one)),
    devices: options.device && listFrom(options.device, (one) => parseDevice('--device', one)),
  };
}

async function measuredDevices(client: Client, machine: string): Promise<{ devices: DeviceInput[] }> {
  const { node } = await client.request(documents.MeasuredDevicesDocument, { machine });
  return { devices: [...((node && 'measured' in node && node.measured?.devices) || [])] };
}

function addAgents(program: Command): void {
  const list = addListOptions(
    addCommand(program, 'agents', 'list the agents of sites and the machines that they serve').option(
      '--site <site>',
      'only of this site',
    ),
    AGENT_COLUMNS,
  );
  list.action(async (options: { site?: string }) => {
    const client = connect();
    const only = options.site === undefined ? null : (await findSite(client, options.site)).name;
    await showList(list, AGENT_COLUMNS, async () => {
      const sites = await client.all(documents.AgentsDocument, 'sites', {});
      return sites
        .filter(({ name }) => only === null || name === only)
        .flatMap((site) => site.agents.map((agent) => ({ ...agent, site: site.name })));
    });
  });
}

function addLicenses(program: Command): void {
  const list = addListOptions(
    addCommand(program, 'licenses', 'list or change license pools'),
    LICENSE_COLUMNS,
  );
  list.action(() =>
    showList(list, LICENSE_COLUMNS, () => connect().all(documents.LicensesDocument, 'licenses', {})),
  );

  const add = addCommand(list, 'add <kind>', 'register a license pool (OPERATOR)')
    .requiredOption('--copies <n>', 'number of licenses')
    .option('--site <site>', 'site that the pool belongs to (default: the whole grid)');
  add.action(async (kind: string, options: { copies: string; site?: string }) => {
    const client = connect();
    const site = options.site === undefined ? undefined : (await findSite(client, options.site)).id;
    const input = { kind, copies: parseNumber('--copies', options.copies, { min: 0, integer: true }), site };
    const data = await client.request(documents.RegisterLicenseDocument, { input });
    show(add, data.createLicense.license, (one) => tableOf(LICENSE_COLUMNS, [one]));
  });

  const set = addCommand(list, 'set <id>', 'change a license pool (OPERATOR)').requiredOption(
    '--copies <n>',
    'how many',
  );
  set.action(async (id: string, options: { copies: string }) => {
    const input = {
      licenseId: parseId('license', id),
      copies: parseNumber('--copies', options.copies, { min: 0, integer: true }),
    };
    const data = await connect().request(documents.UpdateLicenseDocument, { input });
    show(set, data.updateLicense.license, (one) => tableOf(LICENSE_COLUMNS, [one]));
  });

  const remove = addCommand(list, 'remove <id>', 'remove a license pool that is not in use (OPERATOR)');
  remove.action(async (id: string) => {
    const variables = { license: parseId('license', id) };
    const data = await connect().request(documents.RemoveLicenseDocument, variables);
    show(remove, data.removeLicense.license, (one) => `${one.id} (${one.kind}) is removed`);
  });
}

function addResources(program: Command): void {
  const list = addListOptions(
    addCommand(
      program,
      'resources',
      'list what jobs can request, and how much of it is free; or declare what is counted for a site or the grid',
    ),
    RESOURCE_COLUMNS,
  );
  list.action(() =>
    showList(
      list,
      RESOURCE_COLUMNS,
      async () => (await connect().request(documents.ResourceKindsDocument, {})).resourceKinds,
    ),
  );

  const add = addCommand(
    list,
    'add <kind>',
    'declare what is counted for a site or the whole grid (OPERATOR)',
  )
    .requiredOption('--amount <n>', 'how much there is')
    .option('--unit <unit>', 'what the amount is counted in, such as drives or GB (default: pieces)')
    .option('--site <site>', 'site that it belongs to (default: the whole grid)');
  add.action(async (kind: string, options: { amount: string; unit?: string; site?: string }) => {
    const client = connect();
    const { unit } = options;
    const site = options.site === undefined ? undefined : (await findSite(client, options.site)).id;
    const input = { kind, copies: amountOf(options.amount), unit, site };
    const data = await client.request(documents.RegisterLicenseDocument, { input });
    show(add, data.createLicense.license, (one) => tableOf(POOL_COLUMNS, [one]));
  });

  const set = addCommand(list, 'set <kind>', 'change what is counted for a site or the whole grid (OPERATOR)')
    .option('--amount <n>', 'how much there is')
    .option('--unit <unit>', 'what the amount is counted in; none: pieces')
    .option('--site <site>', 'site that it belongs to (default: the whole grid)');
  set.action(async (kind: string, options: { amount?: string; unit?: string; site?: string }) => {
    const client = connect();
    const { amount, unit, site } = options;
    const { id: licenseId } = await poolOf(client, kind, site);
    const input = {
      ...{ licenseId, copies: given(amount, amountOf) },
      unit: unit === 'none' ? null : unit,
    };
    const data = await client.request(documents.UpdateLicenseDocument, { input });
    show(set, data.updateLicense.license, (one) => tableOf(POOL_COLUMNS, [one]));
  });

  const remove = addCommand(
    list,
    'remove <kind>',
    'remove what is counted for a site or the whole grid and not in use (OPERATOR)',
  ).option('--site <site>', 'site that it belongs to (default: the whole grid)');
  remove.action(async (kind: string, { site }: { site?: string }) => {
    const client = connect();
    const { id: license } = await poolOf(client, kind, site);
    const data = await client.request(documents.RemoveLicenseDocument, { license });
    show(
      remove,
      data.removeLicense.license,
      (one) => `${one.kind} of ${one.site?.name ?? 'the grid'} is removed`,
    );
  });
}

const amountOf = (value: string): number => parseNumber('--amount', value, { min: 0, integer: true });

/** The pool of a kind at a site, or of the whole grid. */
async function poolOf(client: Client, kind: string, site: string | undefined): Promise<License> {
  const at = site === undefined ? null : await findSite(client, site);
  const pools = await client.all(documents.LicensesDocument, 'licenses', {});
  const pool = pools.find((one) => one.kind === kind && (one.site?.id ?? null) === (at?.id ?? null));
  if (pool === undefined)
    throw usage('KIND', kind, `a kind that is counted for ${at === null ? 'the whole grid' : at.name}`);
  return pool;
}

function addDrain(program: Command): void {
  const drain = addCommand(
    program,
    'drain <site-or-machine>',
    'start no more jobs at a site, or on a machine given by name or as SITE/NAME (OPERATOR)',
  );
  drain.action(async (target: string) => {
    const client = connect();
    const { machine, site } = await placeOf(client, target);
    if (machine !== null) {
      const data = await client.request(documents.DrainMachineDocument, { machine });
      return show(
        drain,
        data.drainMachine.machine,
        (one) => `${one.site.name}/${one.name} is ${one.state}; ${stillUsed(one)} still in use`,
      );
    }
    const data = await client.request(documents.DrainSiteDocument, { site });
    show(
      drain,
      data.drainSite.site,
      (one) => `${one.name} is ${one.state}; ${count(one.runningJobs, 'job')} still running`,
    );
  });

  const undrain = addCommand(
    program,
    'undrain <site-or-machine>',
    'put a drained site or machine back in service (OPERATOR)',
  );
  undrain.action(async (target: string) => {
    const client = connect();
    const { machine, site } = await placeOf(client, target);
    if (machine !== null) {
      const input = { machineId: machine, state: 'UP' } as const;
      const data = await client.request(documents.UpdateMachineDocument, { input });
      return show(
        undrain,
        data.updateMachine.machine,
        (one) => `${one.site.name}/${one.name} is ${one.state}`,
      );
    }
    const input = { siteId: site, state: 'UP' } as const;
    const data = await client.request(documents.UpdateSiteDocument, { input });
    show(undrain, data.updateSite.site, (one) => `${one.name} is ${one.state}`);
  });
}

const stillUsed = ({ maxTasks, cpusUsed, tasksUsed }: Machine): string =>
  maxTasks === null ? `${cpusUsed} CPUs` : `${tasksUsed} of ${maxTasks} places`;

/** What is named: without a slash a site, if there is one of this name. Asks for each list once. */
async function placeOf(
  client: Client,
  target: string,
): Promise<{ site: string; machine: null } | { site: null; machine: string }> {
  const lists = remembering(client);
  return (await isMachine(lists, target))
    ? { site: null, machine: (await findMachine(lists, target)).id }
    : { site: (await findSite(lists, target)).id, machine: null };
}

async function isMachine(lists: Pick<Client, 'all'>, target: string): Promise<boolean> {
  if (target === '') throw usage('site-or-machine', target, 'a site, or a machine as SITE/NAME or machine_3');
  if (target.includes('/') || target.startsWith('machine_')) return true;
  const sites = await lists.all(documents.SitesDocument, 'sites', {});
  if (sites.some(({ id, name }) => id === target || name === target)) return false;
  const machines = await lists.all(documents.MachinesDocument, 'machines', {});
  return machines.some(({ name }) => name === target);
}

const SITE_COLUMNS: Columns<Site> = {
  ID: (site) => site.id,
  NAME: (site) => site.name,
  STATE: (site) => site.state,
  QUEUED: (site) => site.queuedJobs,
  RUNNING: (site) =>
    site.maxRunningJobs === null ? site.runningJobs : `${site.runningJobs} of ${site.maxRunningJobs}`,
  'CPUS USED': (site) => site.cpusUsed,
  CPUS: (site) => site.cpus,
  'AGENT SEEN (UTC)': (site) => time(site.agentSeenAt),
};

const MACHINE_COLUMNS: Columns<Machine> = {
  ID: (machine) => machine.id,
  SITE: (machine) => machine.site.name,
  NAME: (machine) => machine.name,
  STATE: (machine) => (machine.silent ? `${machine.state}, silent` : machine.state),
  AGENT: (machine) => machine.agent?.host,
  'CPUS USED': (machine) =>
    machine.maxTasks === null ? machine.cpusUsed : `${machine.tasksUsed} of ${machine.maxTasks} tasks`,
  CPUS: (machine) => machine.cpus,
  'MEMORY USED': (machine) => machine.memoryUsedMb,
  'MEMORY MB': (machine) => machine.memoryMb,
  POWER: (machine) => machine.benchmark,
  MEASURED: (machine) => machine.measured?.benchmark,
  RESOURCES: (machine) =>
    machine.resources.map(({ kind, amount, used }) => `${kind} ${used}/${amount}`).join(', ') || null,
  LABELS: (machine) =>
    machine.labels.map(({ name, value }) => (value === '' ? name : `${name}=${value}`)).join(', ') || null,
  PLATFORM: (machine) => `${machine.os}/${machine.architecture}`,
  LICENSES: (machine) => machine.licenses.map(({ kind }) => kind).join(',') || null,
  'WHY NO JOBS': (machine) => machine.reason ?? machine.problem,
  WARNING: (machine) => machine.measured?.warning,
};

const AGENT_COLUMNS: Columns<Agent & { site: string }> = {
  ID: ({ id }) => id,
  SITE: ({ site }) => site,
  HOST: ({ host, simulated }) => (simulated ? `${host} (simulated)` : host),
  VERSION: ({ version }) => version,
  HEARD: ({ seenAt }) => time(seenAt),
  MACHINES: ({ machines }) =>
    shortList(machines.map(({ name, silent }) => (silent ? `${name} (silent)` : name))),
  PROBLEM: ({ problem }) => problem,
};

const NAMES_SHOWN = 5;
const shortList = (names: readonly string[]): string | null =>
  names.length <= NAMES_SHOWN
    ? names.join(', ') || null
    : `${names.slice(0, NAMES_SHOWN).join(', ')} and ${names.length - NAMES_SHOWN} more`;

const RESOURCE_COLUMNS: Columns<documents.ResourceKindsQuery['resourceKinds'][number]> = {
  KIND: (kind) => kind.name,
  'COUNTED ON': (kind) => kind.countedOn.toLowerCase(),
  UNIT: (kind) => kind.unit,
  TOTAL: (kind) => kind.total,
  'IN USE': (kind) => kind.inUse,
  FREE: (kind) => kind.free,
  LARGEST: (kind) => kind.largest,
  MODELS: (kind) => kind.models.join(',') || null,
  SITES: (kind) => kind.sites.map(({ name }) => name).join(',') || null,
};

const POOL_COLUMNS: Columns<License> = {
  KIND: ({ kind }) => kind,
  OF: ({ site }) => site?.name ?? '(grid)',
  'IN USE': ({ inUse }) => inUse,
  AMOUNT: ({ copies }) => copies,
  UNIT: ({ unit }) => unit,
};

const LICENSE_COLUMNS: Columns<License> = {
  ID: (license) => license.id,
  KIND: (license) => license.kind,
  POOL: (license) => license.site?.name ?? '(grid)',
  'IN USE': (license) => license.inUse,
  COPIES: (license) => license.copies,
};
