/** Somebody who has the README and the pages that it links to, a terminal in an empty directory, and the commands of the package: nothing else. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { packagePath } from '../../src/platform/paths.js';
import { endAll, type Service, serve } from '../cli/service.js';
import type { Shown } from '../docs/markdown.js';

/** What a page says is seen: on standard output, or how else the command ends. */
export type Seen =
  | RegExp
  | {
      /** By default 0. */
      code?: number;
      out?: RegExp;
      err?: RegExp;
      /** It goes on until Ctrl-C, which is pressed once it has printed this. */
      until?: RegExp;
      /** What names in the command stand for here, besides those that always do. */
      with?: Record<string, string>;
      /** What is done, or waited for, before. */
      first?: () => Promise<unknown>;
    };

export interface Newcomer {
  /** The directory in which the terminal is. */
  here: string;
  /** Names of pages that stand for something of this service, such as `JOB`, wherever a command has them from now on. */
  names: Record<string, string>;
  /** Types a line. */
  types(line: string, until?: RegExp): Promise<{ code: number | null; stdout: string; stderr: string }>;
  /**
   * Follows commands of a page, one after the other. The table has one entry for each, which tells by how the command begins which it is: where the
   * page and the table differ, or the page promises what is not seen, the error names page and line.
   */
  follows(shown: readonly Shown[], table: readonly (readonly [begins: string, seen: Seen])[]): Promise<void>;
  writes(file: string, text: string, mode?: number): void;
  leaves(): Promise<void>;
}

/** With a service of their own, which keeps its data in the directory: the administrator's key, too. */
export async function newcomerWithService(who: string): Promise<Newcomer & { service: Service }> {
  const env: Record<string, string> = {};
  const person = newcomer(who, env);
  const service = await serve(join(person.here, '.switchyard'));
  env.SWITCHYARD_URL = service.url;
  return { ...person, service };
}

/** `env`: what the terminal has besides. */
export function newcomer(who: string, env: Readonly<Record<string, string>> = {}): Newcomer {
  const here = mkdtempSync(join(tmpdir(), `switchyard-${who}-`));
  const bin = join(here, '.bin');
  const writes = (file: string, text: string, mode = 0o644) =>
    writeFileSync(join(here, file), text, { mode });
  mkdirSync(bin);
  symlinkSync(packagePath('bin', 'switchyard.js'), join(bin, 'switchyard'));
  // In a checkout, npx runs what is in it: here, what is in PATH.
  writes('.bin/npx', '#!/bin/sh\nexec "$@"\n', 0o755);
  const names: Record<string, string> = {};

  const types: Newcomer['types'] = async (line, until) => {
    const child = spawn('bash', ['-c', line], {
      cwd: here,
      env: { PATH: `${bin}:${process.env.PATH}`, HOME: here, USER: 'ada', ...env },
      // It is what the keyboard's signals go to.
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const said = { stdout: '', stderr: '' };
    for (const stream of ['stdout', 'stderr'] as const)
      child[stream].setEncoding('utf8').on('data', (text: string) => {
        said[stream] += text;
        if (until?.test(said.stdout)) process.kill(-child.pid!, 'SIGINT');
      });
    const [code] = (await once(child, 'close')) as [number | null];
    return { code, ...said };
  };

  return {
    here,
    names,
    types,
    writes,
    async follows(shown, table) {
      for (const [i, { text, at }] of shown.entries()) {
        const [begins, how] = table[i] ?? [];
        if (begins === undefined || !text.replace(/^npx /, '').startsWith(begins))
          throw new Error(`${at}: \`${text}\` is not what the walk knows here: ${begins ?? 'nothing more'}`);
        const { code = 0, out, err, until, first, with: own } = how instanceof RegExp ? { out: how } : how!;
        await first?.();
        const line = Object.entries({ ...names, ...own }).reduce(
          (typed, [name, stands]) => typed.replace(wholeWord(name), () => stands),
          text,
        );
        const ended = await types(line, until);
        const wrong =
          (until ? !until.test(ended.stdout) : ended.code !== code) ||
          (out && !out.test(ended.stdout)) ||
          (err && !err.test(ended.stderr));
        if (wrong) {
          const promised = [until ? '' : `code ${code}`, until, out, err].filter(Boolean).join(', ');
          throw new Error(
            `${at}: \`${line}\` shows something else than ${promised}:\ncode ${ended.code}\n${ended.stdout}${ended.stderr}`,
          );
        }
      }
      const missing = table.slice(shown.length).map(([begins]) => begins);
      if (missing.length > 0)
        throw new Error(`behind ${shown.at(-1)?.at}: the page no longer has ${missing.join('; ')}`);
    },
    async leaves() {
      await endAll();
      rmSync(here, { recursive: true, force: true });
    },
  };
}

/** A name where it is not a part of another: `12` in `job 12` and `afterok:12`, and not in `1-12:00`. */
const wholeWord = (name: string): RegExp =>
  new RegExp(`(?<![\\w-])${name.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')}(?![\\w:-])`, 'g');
