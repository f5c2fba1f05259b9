/**
 * Starts one of the commands called like Slurm's. Each is one file and one process, with one request as a rule, and loads nothing of the
 * others: scripts start them often.
 */

import { ConfigError } from '../platform/variables.js';
import { NotAccepted } from '../words/index.js';
import { SlurmError } from './ask.js';
import { complain, print, type Run, Told } from './command.js';

/** Slurm's exit with 255 if their command line is at fault. */
const SUBMITTING = new Set(['sbatch', 'salloc', 'srun']);

async function exitCode(name: string, run: Run): Promise<number> {
  try {
    return await run(process.argv.slice(2), name);
  } catch (error) {
    if (error instanceof Told) {
      print(error.message);
      return 0;
    }
    if (error instanceof ConfigError) {
      for (const line of error.message.split('\n')) complain(name, line);
      return 1;
    }
    if (!(error instanceof SlurmError || error instanceof NotAccepted)) throw error;
    const fault = error instanceof NotAccepted ? 'VALUE' : error.fault;
    // As getopt says it.
    if (fault === 'OPTION') process.stderr.write(`${name}: ${error.message}\n`);
    else complain(name, error.message);
    return fault !== null && SUBMITTING.has(name) ? 255 : 1;
  }
}

/** @param name by which it is called */
export async function start(name: string, run: Run): Promise<void> {
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'EPIPE') process.exit(0);
    throw error;
  });
  process.exitCode = await exitCode(name, run);
}
