/** All commands of `switchyard`. */
import { Command } from 'commander';
import { VERSION } from '../platform/version.js';
import { meant } from '../words/nearest.js';

/**
 * The modules of the commands, in the order of the help, each with the commands that it adds. A command loads its own module
 * only: one that asks the service a question needs no simulator.
 */
const MODULES: readonly { commands: readonly string[]; add: () => Promise<(program: Command) => void> }[] = [
  {
    commands: ['serve', 'api', 'worker', 'agent', 'migrate'],
    add: async () => (await import('./commands/services.js')).addServices,
  },
  { commands: ['submit'], add: async () => (await import('./commands/submit.js')).addSubmit },
  { commands: ['run'], add: async () => (await import('./commands/run.js')).addRun },
  { commands: ['shell'], add: async () => (await import('./commands/shell.js')).addShell },
  { commands: ['map'], add: async () => (await import('./commands/map.js')).addMap },
  {
    commands: ['jobs', 'job', 'cancel', 'requeue', 'signal', 'hold', 'release', 'boost', 'change'],
    add: async () => (await import('./commands/jobs.js')).addJobs,
  },
  { commands: ['report'], add: async () => (await import('./commands/report.js')).addReport },
  { commands: ['watch'], add: async () => (await import('./commands/watch.js')).addWatch },
  { commands: ['why', 'placement'], add: async () => (await import('./commands/why.js')).addWhy },
  {
    commands: ['sites', 'machines', 'agents', 'licenses', 'resources', 'drain', 'undrain'],
    add: async () => (await import('./commands/grid.js')).addGrid,
  },
  { commands: ['maintenance', 'reserve'], add: async () => (await import('./commands/holds.js')).addHolds },
  { commands: ['tree'], add: async () => (await import('./commands/tree.js')).addTree },
  { commands: ['data', 'links'], add: async () => (await import('./commands/data.js')).addData },
  {
    commands: ['ratio', 'congestion', 'standings'],
    add: async () => (await import('./commands/ratio.js')).addRatio,
  },
  {
    commands: ['peers', 'federate'],
    add: async () => (await import('./commands/federation.js')).addFederation,
  },
  { commands: ['rerun'], add: async () => (await import('./commands/rerun.js')).addRerun },
  { commands: ['graph'], add: async () => (await import('./commands/graph.js')).addGraph },
  { commands: ['groups'], add: async () => (await import('./commands/groups.js')).addGroups },
  {
    commands: ['whoami', 'users', 'keys', 'sessions', 'quota', 'shares'],
    add: async () => (await import('./commands/people.js')).addPeople,
  },
  {
    commands: ['webhooks'],
    add: async () => (await import('./commands/webhooks.js')).addWebhooks,
  },
  {
    commands: ['registries'],
    add: async () => (await import('./commands/registries.js')).addRegistries,
  },
  {
    commands: ['usage', 'lost', 'classes', 'audit'],
    add: async () => (await import('./commands/records.js')).addRecords,
  },
  { commands: ['mail'], add: async () => (await import('./commands/mail.js')).addMail },
  { commands: ['weights', 'policy'], add: async () => (await import('./commands/policy.js')).addPolicy },
  { commands: ['whatif'], add: async () => (await import('./commands/whatif.js')).addWhatIf },
  { commands: ['replay'], add: async () => (await import('./commands/replay.js')).addReplay },
  { commands: ['conformance'], add: async () => (await import('./commands/conformance.js')).addConformance },
  { commands: ['simulate'], add: async () => (await import('./commands/simulate.js')).addSimulate },
  { commands: ['trace'], add: async () => (await import('./commands/trace.js')).addTrace },
  { commands: ['slurm'], add: async () => (await import('./commands/slurm.js')).addSlurm },
  { commands: ['mcp'], add: async () => (await import('./commands/mcp.js')).addMcp },
  { commands: ['schema'], add: async () => (await import('./commands/schema.js')).addSchema },
  { commands: ['compare'], add: async () => (await import('./commands/compare.js')).addCompare },
  { commands: ['experiment'], add: async () => (await import('./commands/experiment.js')).addExperiment },
];

const EXIT_CODES = `
Exit codes: 0 success; 1 failure; 2 wrong usage or value; 3 the service does not respond; 4 key or role not accepted;
5 object not found. \`submit --wait\` and \`run\` exit with the exit code of their job, \`map\` with the number of failed jobs.

SWITCHYARD_URL and SWITCHYARD_KEY select the service and the key; by default the service started by \`npm start\` in this directory.`;

/** The command line: the whole, or as much as the command of that name needs. */
export async function buildProgram(command?: string): Promise<Command> {
  const program = new Command('switchyard')
    .description('Scheduling as a service for batch computing on many sites')
    .version(VERSION)
    .option('--json', 'print JSON instead of text')
    // Options behind a command's first operand belong to what it runs: `submit sleep --help`.
    .enablePositionalOptions()
    .showSuggestionAfterError()
    // Subcommands take these settings over: errors are thrown, and `main` gives the exit code.
    .exitOverride()
    .addHelpText('after', EXIT_CODES);
  const own = MODULES.filter(({ commands }) => commands.some((name) => name === command));
  const adders = await Promise.all((own.length > 0 ? own : MODULES).map(({ add }) => add()));
  for (const add of adders) add(program);
  refuseUnknown(program);
  return program;
}

/** A list such as `sites` takes no operands: what follows is meant as one of its commands. */
function refuseUnknown({ commands }: Command): void {
  for (const command of commands) {
    refuseUnknown(command);
    if (command.commands.length === 0 || command.registeredArguments.length > 0) continue;
    command.allowExcessArguments().hook('preAction', (_, acting) => {
      const [word] = command.args;
      if (acting !== command || word === undefined) return;
      const names = command.commands.map((one) => one.name());
      command.error(
        `error: unknown command '${command.name()} ${word}'; accepted: ${command.name()} alone, or with ${names.join(', ')}${meant(word, names)}`,
        { code: 'commander.unknownCommand' },
      );
    });
  }
}
