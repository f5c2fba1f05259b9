/** `switchyard slurm`: the commands called like Slurm's, as links. */
import { lstatSync, mkdirSync, readlinkSync, rmSync, symlinkSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { Command } from 'commander';
import { packagePath } from '../../platform/paths.js';
import { addCommand, print, printJson, wantsJson } from '../command.js';
import { CliError } from '../errors.js';

const NAMES =
  'sacct sacctmgr salloc sbatch scancel scontrol seff sinfo sprio squeue sreport srun sshare sstat'.split(
    ' ',
  );

export function addSlurm(program: Command): void {
  const slurm = program
    .command('slurm')
    .description('commands with Slurm names and options, for Slurm scripts and clients');
  const install = addCommand(slurm, 'install <dir>', `install them in a directory: ${NAMES.join(', ')}`);
  install.action((dir: string) => {
    const [target, folder] = [packagePath('dist', 'slurm.mjs'), resolve(dir)];
    mkdirSync(folder, { recursive: true });
    for (const name of NAMES) link(target, join(folder, name));
    if (wantsJson(install)) return printJson(NAMES.map((name) => join(folder, name)));
    print(`${NAMES.length} commands are in ${folder}; use them with: PATH=${folder}:$PATH`);
  });
}

/** Again, where there is such a link already; what somebody else put there stays. */
function link(target: string, path: string): void {
  const there = lstatSync(path, { throwIfNoEntry: false });
  if (there?.isSymbolicLink() && /[/\\]dist[/\\]slurm\.mjs$/.test(readlinkSync(path))) rmSync(path);
  else if (there)
    throw new CliError(`${path} already exists and is not one of these commands: choose another directory`);
  symlinkSync(target, path);
}
