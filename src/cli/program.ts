/** All commands of `switchyard`. */
import { Command } from 'commander';
import { addCompare } from './commands/compare.js';
import { addConformance } from './commands/conformance.js';
import { addData } from './commands/data.js';
import { addExperiment } from './commands/experiment.js';
import { addGrid } from './commands/grid.js';
import { addGroups } from './commands/groups.js';
import { addJobs } from './commands/jobs.js';
import { addPeople } from './commands/people.js';
import { addPolicy } from './commands/policy.js';
import { addRatio } from './commands/ratio.js';
import { addReplay } from './commands/replay.js';
import { addServices } from './commands/services.js';
import { addSimulate } from './commands/simulate.js';
import { addSubmit } from './commands/submit.js';
import { addWatch } from './commands/watch.js';
import { addWhatIf } from './commands/whatif.js';
import { addWhy } from './commands/why.js';

const EXIT_CODES = `
Exit codes: 0 done; 1 tried and failed; 2 wrong usage or value; 3 the service does not answer; 4 key refused or role too
low; 5 no such object. \`submit --wait\` ends with the exit code of its job.

The service is found by SWITCHYARD_URL and SWITCHYARD_KEY; without them it is the one that \`npm start\` runs here.`;

/** The whole command line. */
export function buildProgram(): Command {
  const program = new Command('switchyard')
    .description('Scheduling as a service for batch computing on many sites')
    .option('--json', 'print JSON instead of text')
    // Options behind a command's first operand belong to what it runs: `submit sleep --help`.
    .enablePositionalOptions()
    .showSuggestionAfterError()
    // Subcommands take these settings over: errors are thrown, and `main` gives the exit code.
    .exitOverride()
    .addHelpText('after', EXIT_CODES);
  addServices(program);
  addSubmit(program);
  addJobs(program);
  addWatch(program);
  addWhy(program);
  addGrid(program);
  addData(program);
  addRatio(program);
  addGroups(program);
  addPeople(program);
  addPolicy(program);
  addWhatIf(program);
  addReplay(program);
  addConformance(program);
  addSimulate(program);
  addCompare(program);
  addExperiment(program);
  return program;
}
