/**
 * The commands called like Slurm's, each by the name of its link: `squeue` is one process with one request, and loads nothing of the other
 * commands of Switchyard.
 */
import { basename } from 'node:path';
import { NotAccepted } from '../words/index.js';
import { SlurmError } from './ask.js';
import { complain, print, type Run, Told } from './command.js';
import { accounts, scancel, scontrol } from './control.js';
import { sacct, seff, sprio, squeue, sstat } from './queue.js';
import { sinfo } from './sinfo.js';
import { salloc, sbatch, srun } from './submit.js';

const COMMANDS: Readonly<Record<string, Run>> = {
  ...{ sacct, salloc, sbatch, scancel, scontrol, seff, sinfo, sprio, squeue, srun, sstat },
  ...{ sacctmgr: accounts, sreport: accounts, sshare: accounts },
};

/** Slurm's exit with 255 if their command line is at fault. */
const SUBMITTING = new Set(['sbatch', 'salloc', 'srun']);

async function main(): Promise<number> {
  const name = basename(process.argv[1] ?? '');
  const words = process.argv.slice(2);
  const run = COMMANDS[name];
  if (!run) {
    complain('slurm', `${name}: no such command; accepted: ${Object.keys(COMMANDS).sort().join(', ')}`);
    return 1;
  }
  try {
    return await run(words, name);
  } catch (error) {
    if (error instanceof Told) {
      print(error.message);
      return 0;
    }
    if (!(error instanceof SlurmError || error instanceof NotAccepted)) throw error;
    const fault = error instanceof NotAccepted ? 'VALUE' : error.fault;
    // As getopt says it.
    if (fault === 'OPTION') process.stderr.write(`${name}: ${error.message}\n`);
    else complain(name, error.message);
    return fault !== null && SUBMITTING.has(name) ? 255 : 1;
  }
}

process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') process.exit(0);
  throw error;
});
process.exitCode = await main();
