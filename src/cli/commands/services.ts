/** `switchyard serve`, `api`, `worker`, `agent`, `migrate`: the processes that make up the service. */
import { existsSync } from 'node:fs';
import type { Command } from 'commander';
import type { Check } from '../../agent/index.js';
import type { ServiceError } from '../../client/index.js';
import { type Config, loadConfig } from '../../platform/config.js';
import { Lifecycle, type Part, runUntilSignal } from '../../platform/lifecycle.js';
import { parseNumber } from '../../words/values.js';
import { addCommand, note, print, printJson, wantsJson } from '../command.js';
import type { ProcessContext } from '../compose.js';
import { agentKeyFile, readKey } from '../connect.js';
import { CliError, ExitCode, usage } from '../errors.js';

export function addServices(program: Command): void {
  program
    .command('serve')
    .description('run everything in one process, with a built-in PostgreSQL unless DATABASE_URL is set')
    .option('--demo', 'also create four sites with simulated machines, and submit jobs to them')
    .option('--demo-speed <factor>', 'how many times faster than real time the demo runs', '100')
    .action(async (options: { demo?: boolean; demoSpeed: string }) => {
      const demoSpeed = options.demo
        ? parseNumber('--demo-speed', options.demoSpeed, { min: 0.001, max: 1e6 })
        : null;
      const { serveParts } = await import('../serve.js');
      await run('serve', (context) => serveParts(context, { demoSpeed }));
    });
  program
    .command('api')
    .description('run an API process (uses DATABASE_URL, REDIS_URL)')
    .action(() => runService('api', { api: true, worker: false }));
  program
    .command('worker')
    .description('run a worker process, which does the scheduling (uses DATABASE_URL, REDIS_URL)')
    .action(() => runService('worker', { api: false, worker: true }));
  addAgent(program);
  addMigrate(program);
}

async function runService(name: string, roles: { api: boolean; worker: boolean }): Promise<void> {
  const { openStores, serviceParts } = await import('../compose.js');
  await run(name, (context) => {
    const stores = openStores(context, databaseUrl(context.config, name), name);
    return serviceParts(context, roles, stores);
  });
}

interface AgentCommandOptions {
  site?: string;
  machines?: string;
  healthCommand?: string;
  healthPeriod?: string;
  healthTimeout?: string;
  simulate?: boolean;
  local?: string;
  check?: boolean;
  patience: string;
  speed: string;
}

/** What the command line says takes precedence over the variables. */
function withHealth(
  config: Config,
  { healthCommand, healthPeriod, healthTimeout }: AgentCommandOptions,
): Config {
  const seconds = (field: string, value: string | undefined, otherwise: number, max: number): number =>
    value === undefined ? otherwise : parseNumber(field, value, { min: 1, max, integer: true });
  return {
    ...config,
    agentHealthCommand: healthCommand ?? config.agentHealthCommand,
    agentHealthS: seconds('--health-period', healthPeriod, config.agentHealthS, 86_400),
    agentHealthTimeoutS: seconds('--health-timeout', healthTimeout, config.agentHealthTimeoutS, 3_600),
  };
}

/** @throws CliError for what is neither a scheduler that is known here nor an adapter */
function checkLocal(option: string, local: string): void {
  if (local !== 'slurm' && !(local.includes('/') && existsSync(local)))
    throw usage(option, local, 'slurm, or the path of an adapter (with a /)');
}

function addAgent(program: Command): void {
  const agent = program
    .command('agent')
    .description('run the agent of a site (uses SWITCHYARD_URL, SWITCHYARD_KEY)')
    .option('--site <name>', 'the site (default: AGENT_SITE)')
    .option(
      '--machines <names>',
      'the machines that it serves, separated by commas (default: AGENT_MACHINES, or one named after this host; with --simulate, all machines of the site)',
    )
    .option(
      '--health-command <command>',
      'a command that exits with 0 while the host is healthy (default: AGENT_HEALTH_COMMAND)',
    )
    .option('--health-period <seconds>', 'time between runs of the health command (default: AGENT_HEALTH_S)')
    .option(
      '--health-timeout <seconds>',
      'time limit of the health command (default: AGENT_HEALTH_TIMEOUT_S)',
    )
    .option(
      '--local <scheduler>',
      "submit jobs to the site's own scheduler: slurm, or the path of an adapter for another one. Its nodes are the machines (the site's local policy must be of kind external)",
    )
    .option(
      '--check',
      'with --local: report what is found there, run a short job in each partition, report what will not work, and exit (exit code 1 if anything will not work)',
    )
    .option('--patience <seconds>', 'with --check: how long a short job may wait and run', '120')
    .option('--simulate', 'do not run commands, only simulate their run times')
    .option('--speed <factor>', 'with --simulate: how many times faster than real time', '1')
    .action(async (options: AgentCommandOptions) => {
      const speed = parseNumber('--speed', options.speed, { min: 1e-6, max: 1e9 });
      if (options.local !== undefined) checkLocal('--local', options.local);
      if (options.local !== undefined && (options.simulate || options.machines !== undefined))
        throw usage('--local', options.local, 'not together with --simulate or --machines');
      if (options.check) return checkAgent(options);
      const { processAgent, simulatedAgent, externalAgent } = await import('../agents.js');
      let refusal: ServiceError | null = null;
      let refused: (reason: string) => void = () => {};
      const until = new Promise<string>((resolve) => {
        refused = resolve;
      });
      const onRefused = (error: ServiceError): void => {
        refusal = error;
        refused('the key was rejected');
      };
      const parts = ({ config: given, log }: ProcessContext): Part[] => {
        const config = withHealth(given, options);
        const site = options.site ?? config.agentSite;
        const key = config.key ?? readKey(agentKeyFile(config.home, site));
        if (!key)
          throw new CliError(
            `no key for the agent: set SWITCHYARD_KEY (there is none in ${agentKeyFile(config.home, site)})`,
            ExitCode.REFUSED,
          );
        const machines = options.machines?.split(',');
        const access = () => ({ url: config.url, key, site, machines, onRefused });
        if (options.local !== undefined) return [externalAgent(config, log, access, options.local)];
        return [
          options.simulate ? simulatedAgent(config, log, access, speed) : processAgent(config, log, access),
        ];
      };
      await run('agent', parts, until);
      // Runs go on; whoever starts the agent again has to give it a good key first.
      if (refusal) throw refusal;
    });
  addConformance(agent);
}

async function checkAgent({ local, patience }: AgentCommandOptions): Promise<void> {
  if (local === undefined) throw usage('--check', '', 'only together with --local');
  const patienceMs = parseNumber('--patience', patience, { min: 1, max: 86_400 }) * 1000;
  const [{ checkSite }, { localScheduler }] = await Promise.all([
    import('../../agent/index.js'),
    import('../agents.js'),
  ]);
  const config = loadConfig();
  let failed = 0;
  await checkSite(
    await localScheduler(config, local),
    { directory: config.agentStateDir, patienceMs },
    ({ name, found, problem }) => {
      if (problem !== null) failed++;
      print(
        `${problem === null ? 'ok      ' : 'FAILED  '} ${name}: ${[found, problem].filter(Boolean).join(': ')}`,
      );
    },
  );
  if (failed > 0) throw new CliError(`${failed} of these will not work`);
}

function addConformance(agent: Command): void {
  const command = addCommand(
    agent,
    'conformance',
    'check an adapter for a scheduler: run small jobs there, and report what fails',
  )
    .requiredOption('--adapter <scheduler>', 'slurm, or the path of the adapter')
    .requiredOption('--directory <path>', 'a directory on a file system that the nodes share with this host')
    .option('--patience <seconds>', 'how long a short job may wait and run there', '120')
    .option('--only <words>', 'only checks whose name contains this', '');
  command.action(async (options: { adapter: string; directory: string; patience: string; only: string }) => {
    const { directory, only } = options;
    checkLocal('--adapter', options.adapter);
    const patienceMs = parseNumber('--patience', options.patience, { min: 1, max: 86_400 }) * 1000;
    const [{ conformance }, { localScheduler }] = await Promise.all([
      import('../../agent/index.js'),
      import('../agents.js'),
    ]);
    const scheduler = await localScheduler(loadConfig(), options.adapter);
    const checks: Check[] = [];
    await conformance(scheduler, { directory, patienceMs, only }, (check) => {
      checks.push(check);
      if (wantsJson(command)) return;
      const { name, problem, skipped } = check;
      if (problem !== null) print(`FAILED   ${name}: ${problem}`);
      else print(skipped === null ? `holds    ${name}` : `skipped  ${name}: ${skipped}`);
    });
    if (wantsJson(command)) printJson(checks);
    const failed = checks.filter(({ problem }) => problem !== null).length;
    if (failed > 0) throw new CliError(`${failed} of ${checks.length} checks failed`);
  });
}

function addMigrate(program: Command): void {
  const migrate = addCommand(
    program,
    'migrate',
    "create or upgrade the database (DATABASE_URL), and create the administrator's key",
  )
    .option(
      '--site <name>',
      'also register a site with this name, and create a key for its agents, which register their machines',
    )
    .option(
      '--agent-home <directory>',
      "with --site: the agent's SWITCHYARD_HOME, where its key is written (default: the service's own)",
    );
  migrate.action(async (options: { site?: string; agentHome?: string }) => {
    const context = await processContext('migrate');
    const [database, installation, compose] = await Promise.all([
      import('../../store/migrate.js'),
      import('../installation.js'),
      import('../compose.js'),
    ]);
    const url = databaseUrl(context.config, 'migrate');
    const applied = await database.migrate(url);
    const stores = compose.openStores(context, url, 'migrate');
    try {
      const at = { ...stores, home: context.config.home };
      const { keyFile } = await installation.installAdministrator(at);
      const agent =
        options.site === undefined
          ? null
          : await installation.installSite({ ...at, home: options.agentHome ?? at.home }, options.site, {
              devices: null,
            });
      if (wantsJson(migrate)) return printJson({ applied, keyFile, agentKeyFile: agent?.keyFile ?? null });
      for (const name of applied) print(name);
      note(applied.length > 0 ? 'the database has been upgraded' : 'the database is already up to date');
      note(`the administrator's key is in ${keyFile}`);
      if (agent) note(`the key of the agent of ${options.site} is in ${agent.keyFile}`);
    } finally {
      await stores.database.close();
    }
  });
}

function databaseUrl({ databaseUrl }: Config, command: string): string {
  if (databaseUrl) return databaseUrl;
  throw usage(
    'DATABASE_URL',
    '',
    `the PostgreSQL for \`switchyard ${command}\` to use (\`switchyard serve\` has one built in)`,
  );
}

async function processContext(name: string): Promise<ProcessContext> {
  const [{ createLogger }, { createMetrics }] = await Promise.all([
    import('../../platform/log.js'),
    import('../../platform/metrics.js'),
  ]);
  const config = loadConfig();
  // A person sits in front of `serve` and reads what it prints: of the log, only what is wrong.
  const level = name === 'serve' && config.logLevel === 'info' ? 'warn' : config.logLevel;
  return { config, log: createLogger({ level, process: name }), metrics: createMetrics() };
}

/** Runs the parts until a signal, or until `until` gives another reason to stop, and makes the outcome the exit code. */
async function run(
  name: string,
  parts: (context: ProcessContext) => Part[],
  until?: Promise<string>,
): Promise<void> {
  const context = await processContext(name);
  const { config, log } = context;
  const lifecycle = new Lifecycle(parts(context), config.shutdownTimeoutS * 1000, log);
  try {
    process.exitCode = await runUntilSignal(lifecycle, until);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EADDRINUSE') throw error;
    throw new CliError(`port ${config.port} is already in use; stop the program that uses it, or set PORT`);
  }
}
