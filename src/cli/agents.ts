/** Agents as parts of a process. */
import { createHash } from 'node:crypto';
import { hostname } from 'node:os';
import { join, resolve } from 'node:path';
import { styleText } from 'node:util';
import {
  Accounts,
  Adapter,
  Agent,
  type AgentMachine,
  type AgentOptions,
  type AskLogin,
  CLOSED,
  DataExporter,
  ExternalRunner,
  type FetchOptions,
  findDevices,
  findImageTool,
  HealthCheck,
  type HostDevice,
  hostShape,
  IMAGE_TOOLS,
  type ImageToolName,
  Isolation,
  type LinkProbe,
  type LocalNode,
  type LocalScheduler,
  labelsOf,
  measureHost,
  OutputKeeper,
  Power,
  ProcessRunner,
  RegistryCredentials,
  type Runner,
  runtimesOf,
  SimulatedRunner,
  Slurm,
  SlurmRest,
  type StageableRunner,
  StagingRunner,
  TermsRules,
  type UrlOptions,
} from '../agent/index.js';
import { Client, type ServiceError } from '../client/index.js';
import { type Config, jobEnvironment } from '../platform/config.js';
import { hostEnvironment } from '../platform/environment.js';
import type { Part } from '../platform/lifecycle.js';
import type { Logger } from '../platform/log.js';
import { note } from './command.js';
import { ADMIN_KEY_FILE, agentKeyFile } from './connect.js';
import { CliError, ExitCode } from './errors.js';
import { SECRETS_KEY_FILE } from './secrets.js';

export interface AgentAccess {
  url: string;
  /** Of role AGENT. */
  key: string;
  site: string;
  /** Names of the machines that it serves; by default the host's, or if it is simulated all of the site. */
  machines?: readonly string[] | undefined;
  /** Told when the service refuses the key. */
  onRefused?: (error: ServiceError) => void;
}

/** What the service is told of devices; by name, because it refuses fields that it does not know. */
const toldOf = (devices: readonly HostDevice[]) =>
  devices.map(({ id, kind, model, memoryMb, shares, link, oneUser }) => {
    return { id, kind, model, memoryMb, shares, link, ...(oneUser && { oneUser }) };
  });

/** What a process agent of this host would tell of its devices now. */
export const devicesHere = async ({ agentDevices, agentStateDir }: Config) =>
  toldOf(await findDevices(agentDevices, agentStateDir));

/** An agent that runs real processes on this host. `access` is asked when it starts. */
export function processAgent(config: Config, log: Logger, access: () => AgentAccess): Part {
  return agentPart(config, log, access, async ({ url, key, site, machines }) => {
    const names = machines ?? config.agentMachines?.split(',') ?? [hostShape().name];
    const client = new Client({ url, key });
    const keeper = new OutputKeeper({
      client,
      datasetsDir: config.agentDatasetsDir,
      datasetsBytes: config.agentDatasetsMb === 0 ? null : config.agentDatasetsMb * 1e6,
      urls: urlsOf(config),
    });
    const credentials = new RegistryCredentials(client);
    const devices = await findDevices(config.agentDevices, config.agentStateDir);
    const runner = await ProcessRunner.open({
      devices,
      stateDir: config.agentStateDir,
      baseEnvironment: jobEnvironment(config.agentEnvironment),
      isolation: (stateDir, id) =>
        isolation(config, log, access().site, stateDir, id, devices.length > 0, credentials.of),
      outputLimitBytes: config.agentOutputBytes,
      diskLimitMb: config.agentRunDiskMb || null,
      cpuExcessS: config.agentCpuExcessS || null,
      keep: (run, signal) => keeper.keep(run, signal),
      leftBehindMs: config.agentLeftBehindH * 3_600_000,
      terminals: config.agentTerminals,
      detachedMs: config.agentDetachedS * 1000,
      warn: (fields, message) => log.warn(fields, message),
      serves: { service: url, site, machines: names },
    });
    const { staging, exporter } = dataOf(config, client, site, runner);
    // Jobs that name an image, or have a terminal, ask for them.
    const labels =
      [
        config.agentLabels,
        runner.imageRuntime && `containers=${runner.imageRuntime}`,
        runner.givesTerminals && 'terminal=yes',
      ]
        .filter(Boolean)
        .join() || null;
    const power = new Power(await measureHost(names.length, labels), {
      file: join(config.agentStateDir, 'power'),
      idle: () => runner.runs().length === 0,
    });
    const shown = toldOf(devices);
    // A directory that was copied to another host is another agent's there.
    const identity = `${runner.id}@${hostname()}`;
    return {
      runner: staging,
      staging,
      keeper,
      credentials,
      exporter,
      power,
      identity,
      // Asked whenever the agent registers.
      machines: names.map((name, part) => ({
        name,
        get measured() {
          return { ...power.measured, devices: shown.filter((_, i) => i % names.length === part) };
        },
      })),
    };
  });
}

/** Brings runs their inputs, and hands over copies of the site's datasets. */
function dataOf(config: Config, client: Client, site: string, runner: StageableRunner) {
  const roots = {
    allowed: config.agentDataDirectories.length > 0 ? config.agentDataDirectories : null,
    closed: [...CLOSED, config.home, config.agentStateDir],
    open: [config.agentDatasetsDir],
  };
  const data = {
    ...{ site, roots, service: client, addresses: config.agentDataAddresses },
    ...{ maxBytes: config.agentCacheMb * 1e6, command: words(config.agentTransferCommand) },
    rateMbPerS: rateOf(config),
  };
  const dir = config.agentCacheDir ?? join(config.agentStateDir, 'data');
  const staging = new StagingRunner(runner, dir, data, urlsOf(config));
  return { staging, exporter: new DataExporter({ client, roots }) };
}

/** Accepted of a transfer, MB/s; null: any. */
const rateOf = ({ agentTransferMbPerS: rate }: Config): number | null => (rate === 0 ? null : rate);

/** How jobs have files from URLs, and send them there. */
const urlsOf = (config: Config): UrlOptions => ({
  ...{ addresses: config.agentUrlAddresses, maxBytes: config.agentUrlMb * 1e6 },
  ...{ limitMs: config.agentUrlS * 1000, rateMbPerS: rateOf(config) },
});

/** What stands between jobs and everybody else; what it leaves open is said loudly. */
function isolation(
  config: Config,
  log: Logger,
  site: string,
  stateDir: string,
  id: string,
  hasDevices: boolean,
  login: AskLogin,
): Isolation {
  const [first, last] = config.agentUids.split('-').map(Number) as [number, number];
  const open = Isolation.open(
    {
      mode: config.isolation,
      cgroups: config.cgroups,
      uids: { first, last },
      accounts: accountsOf(config, log),
      shown: config.agentDirectories.map((written) => ({
        path: written.replace(/:ro$/, ''),
        readOnly: written.endsWith(':ro'),
      })),
      network: config.agentNetwork,
      processes: config.agentRunProcesses,
      images: config.agentImages,
      runtimes: runtimesOf(config.agentImageRuntimes),
      fetch: fetching(config, log, login),
    },
    stateDir,
    id,
  );
  log.info({ isolation: open.mode, lacking: open.lacking }, open.said);
  const files = [ADMIN_KEY_FILE, SECRETS_KEY_FILE, 'postgres.password'].map((name) =>
    join(config.home, name),
  );
  const exposed = open.exposed([
    ...files,
    agentKeyFile(config.home, site),
    ...(config.tlsKey ? [config.tlsKey] : []),
  ]);
  // What asks nobody who they are is read by whoever reaches it.
  const reaches = open.mode !== 'sandbox' || config.agentNetwork;
  for (const [name, url] of [
    ['DATABASE_URL', config.databaseUrl],
    ['REDIS_URL', config.redisUrl],
  ] as const)
    if (reaches && url && new URL(url).password === '')
      exposed.push(`the server at ${name}, which has no password`);
  // Nothing keeps a job from the memory and environment of its own account's processes.
  if (open.mode === 'none') exposed.push('the memory, environment and files of the agent');
  const faults = [
    ...(exposed.length > 0 ? [`can read ${exposed.join(', ')}`] : []),
    ...(hasDevices && open.mode !== 'sandbox' ? ['can open devices that are not assigned to them'] : []),
    ...(open.canHide ? ['can leave processes running that the agent cannot find'] : []),
  ];
  if (faults.length > 0) {
    const why =
      open.lacking.length > 0 ? ` Stronger isolation is not available: ${open.lacking.join('; ')}.` : '';
    const text = `Jobs run with isolation \`${open.mode}\` and ${faults.join('; and ')}.${why} See SECURITY.md.`;
    if (process.stderr.isTTY) note(styleText('red', text));
    else log.error({ isolation: open.mode, exposed, lacking: open.lacking }, text);
  }
  return open;
}

/** How images are fetched; null: they are not, or cannot be. */
function fetching(config: Config, log: Logger, login: AskLogin): FetchOptions | null {
  const { agentImageRegistries: registries, agentImageTools: tools, agentImagesMb } = config;
  if (registries.length === 0) return null;
  const tool = findImageTool(tools.length === 0 ? IMAGE_TOOLS : (tools as ImageToolName[]));
  if (typeof tool === 'string') {
    log.error({}, `images cannot be fetched (AGENT_IMAGE_TOOLS): ${tool}`);
    return null;
  }
  return { tool, registries, maxBytes: agentImagesMb * 1e6, login };
}

function accountsOf(config: Config, log: Logger): Accounts | null {
  const { agentAccounts: file, agentLauncher } = config;
  if (file === null) return null;
  return new Accounts({
    ...{ file, launcher: words(agentLauncher), environment: hostEnvironment() },
    warn: (fields, message) => log.warn(fields, message),
  });
}

/** The site's own scheduler: `slurm`, or by a program that speaks the contract of docs/operations/adapters.md. */
export async function localScheduler(
  config: Config,
  name: string,
  accounts: Accounts | null = null,
): Promise<LocalScheduler> {
  if (name !== 'slurm') return Adapter.open({ program: resolve(name), environment: hostEnvironment() });
  const common = { partition: config.agentSlurmPartition, account: config.agentSlurmAccount };
  const { agentSlurmRest: address, agentSlurmTokenFile: tokenFile } = config;
  if (address !== null) {
    if (tokenFile === null)
      throw new CliError(
        'AGENT_SLURM_TOKEN_FILE: slurmrestd requires a token (scontrol token)',
        ExitCode.USAGE,
      );
    if (config.agentSlurmOptions !== null)
      throw new CliError('AGENT_SLURM_OPTIONS: accepted only without AGENT_SLURM_REST', ExitCode.USAGE);
    return new SlurmRest({ ...common, address, tokenFile, hasAccounts: accounts !== null });
  }
  return new Slurm({
    ...common,
    become: accounts && ((name) => accounts.become({ name })),
    options: words(config.agentSlurmOptions) ?? [],
    environment: {
      ...hostEnvironment(),
      ...(config.slurmConf === null ? {} : { SLURM_CONF: config.slurmConf }),
    },
  });
}

/** Whose accounts runs are handed over as; null: as that of the agent, all. */
function localAccounts(config: Config, log: Logger, local: string): Accounts | null {
  const isRoot = process.getuid?.() === 0;
  const accounts = accountsOf(config, log);
  if (accounts !== null && local !== 'slurm')
    throw new CliError(
      'AGENT_ACCOUNTS: accepted for a scheduler of the site only with --local slurm',
      ExitCode.USAGE,
    );
  if (accounts !== null && !isRoot && accounts.launcher === null)
    throw new CliError(
      'AGENT_ACCOUNTS: requires AGENT_LAUNCHER (sudo, for example), because the agent does not run as root',
      ExitCode.USAGE,
    );
  if (accounts === null && isRoot)
    log.error({}, 'Jobs run as root at this site: run the agent as another account, or set AGENT_ACCOUNTS.');
  return accounts;
}

/** An agent that hands runs over to the site's own scheduler, whose nodes are the machines of the site. */
export function externalAgent(config: Config, log: Logger, access: () => AgentAccess, local: string): Part {
  return agentPart(config, log, access, async ({ url, key, site }) => {
    const client = new Client({ url, key });
    const keeper = new OutputKeeper({
      client,
      datasetsDir: config.agentDatasetsDir,
      datasetsBytes: config.agentDatasetsMb === 0 ? null : config.agentDatasetsMb * 1e6,
      urls: urlsOf(config),
    });
    const accounts = localAccounts(config, log, local);
    const rules = new TermsRules({
      file: config.agentLocalRules,
      otherwise: { partition: config.agentSlurmPartition, account: config.agentSlurmAccount, qos: null },
      warn: (fields, message) => log.warn(fields, message),
    });
    const runner = await ExternalRunner.open({
      stateDir: config.agentStateDir,
      scheduler: await localScheduler(config, local, accounts),
      accounts,
      terms: (run) => rules.of(run),
      serves: { service: url, site },
      submissionsPerS: config.agentSubmissionsPerS,
      tellsQueue: config.agentTellsQueue,
      baseEnvironment: jobEnvironment(config.agentEnvironment),
      outputLimitBytes: config.agentOutputBytes,
      keep: (run, signal) => keeper.keep(run, signal),
      warn: (fields, message) => log.warn(fields, message),
    });
    const { os, architecture } = hostShape();
    const machineOf = ({ name, cpus, memoryMb, devices, labels, problem }: LocalNode): AgentMachine => ({
      name,
      problem,
      measured: {
        ...{ cpus, memoryMb, os, architecture, model: null, benchmark: NODE_POWER, gpus: [] },
        labels: labelsOf(null, [config.agentLabels, ...labels].filter(Boolean).join(',')),
        devices: devices.flatMap(({ kind, model, amount }) =>
          Array.from({ length: amount }, (_, i) => ({
            ...{ id: `${kind}${model === null ? '' : `.${model}`}.${i}`, kind, model },
            ...{ memoryMb: 0, shares: 1, link: null },
          })),
        ),
      },
    });
    const { staging, exporter } = dataOf(config, client, site, runner);
    return {
      runner: staging,
      staging,
      keeper,
      exporter,
      identity: `${runner.id}@${hostname()}`,
      load: () => runner.load,
      // Asked whenever the agent registers.
      get machines() {
        return runner.capacity.nodes.map(machineOf);
      },
    };
  });
}

/** Of an ordinary machine: nobody has measured the nodes. An operator may set another. */
const NODE_POWER = 100;

/** An agent whose runs only pass time, `speed` times as fast. */
export function simulatedAgent(config: Config, log: Logger, access: () => AgentAccess, speed: number): Part {
  return agentPart(config, log, access, async ({ machines }) => ({
    runner: new SimulatedRunner({ speed }),
    // It has no state to lose: after a restart it is the same.
    identity: `simulated ${machines ? createHash('sha256').update(machines.join()).digest('hex').slice(0, 16) : ''}`,
    machines: machines ? machines.map((name) => ({ name, measured: null })) : null,
  }));
}

interface Serving
  extends Pick<
    AgentOptions,
    'identity' | 'machines' | 'staging' | 'keeper' | 'credentials' | 'exporter' | 'load'
  > {
  runner: Runner;
  power?: Power;
}

function agentPart(
  config: Config,
  log: Logger,
  access: () => AgentAccess,
  open: (access: AgentAccess) => Promise<Serving>,
): Part {
  let agent: Agent | null = null;
  let runner: Runner | null = null;
  let health: HealthCheck | null = null;
  let measuring: Power | undefined;
  return {
    name: 'agent',
    async start() {
      const { url, key, site, onRefused, ...rest } = access();
      const opened = await open({ url, key, site, ...rest });
      const { power, runner: own, identity, staging, keeper, credentials, exporter, load } = opened;
      measuring = power;
      measuring?.start();
      runner = own;
      if (config.agentHealthCommand !== null) {
        const [periodMs, timeoutMs] = [config.agentHealthS * 1000, config.agentHealthTimeoutS * 1000];
        health = new HealthCheck({ command: config.agentHealthCommand, periodMs, timeoutMs });
        health.start();
      }
      agent = new Agent({
        ...{ url, key, site, ...(onRefused && { onRefused }) },
        ...{ runner: own, identity },
        ...(staging && { staging }),
        ...(keeper && { keeper }),
        ...(credentials && { credentials }),
        ...(exporter && { exporter }),
        ...(load && { load }),
        get machines() {
          return opened.machines;
        },
        host: hostname(),
        log,
        problem: () => health?.problem ?? null,
        heartbeatMs: config.agentHeartbeatS * 1000,
        linkProbes: linkProbes(config.agentLinks),
        linkProbeMs: config.agentLinksS * 1000,
        graceMs: config.agentGraceS * 1000,
      });
      agent.start();
    },
    async stop() {
      await agent?.stop();
      await health?.stop();
      await measuring?.stop();
      runner?.close();
    },
  };
}

/** A JSON list of words, as the configuration has checked it. */
const words = (written: string | null): string[] | null =>
  written === null ? null : (JSON.parse(written) as string[]);

/** `site=url,…` as the configuration has checked it. */
function linkProbes(written: string | null): LinkProbe[] {
  if (written === null) return [];
  return written.split(',').map((pair) => {
    const at = pair.indexOf('=');
    return { from: pair.slice(0, at), url: pair.slice(at + 1) };
  });
}
