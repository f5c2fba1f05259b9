/** `switchyard slurm`: the commands called like Slurm's, as links. */
import { lstatSync, mkdirSync, readlinkSync, rmSync, symlinkSync } from 'node:fs';
import { basename, join, resolve } from 'node:path';
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
    const folder = resolve(dir);
    mkdirSync(folder, { recursive: true });
    const paths = NAMES.map((name) => join(folder, name));
    const others = paths.find((path) => lstatSync(path, { throwIfNoEntry: false }) && !isOurs(path));
    if (others !== undefined)
      throw new CliError(
        `${others} already exists and is not one of these commands: choose another directory`,
      );
    for (const path of paths) {
      rmSync(path, { force: true });
      symlinkSync(packagePath('dist', 'slurm', `${basename(path)}.cjs`), path);
    }
    if (wantsJson(install)) return printJson(paths);
    print(`${NAMES.length} commands are in ${folder}; use them with: PATH=${folder}:$PATH`);
  });
}

/** A link that was put there before, by an earlier release perhaps. */
const isOurs = (path: string): boolean =>
  lstatSync(path).isSymbolicLink() && /[/\\]dist[/\\]slurm(\.mjs|[/\\]\w+\.cjs)$/.test(readlinkSync(path));
