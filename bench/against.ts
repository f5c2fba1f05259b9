/**
 * This commit's benchmarks and another commit's, in turns on the same machine. A loss counts when a second, longer run confirms it: a single turn on a
 * machine that others slow down says little.
 */
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { packagePath } from '../src/platform/paths.js';
import { isRate, median, type Result } from './measure.js';

const MEASURING_MS = 600_000;
/** Turns of the run that confirms a loss; their medians are compared. Even: each of the two commits goes first as often as the other. */
const CONFIRMING = 4;
const ROOT = packagePath();

/**
 * Compares; gives an exit code. Where the other commit cannot be built, or one of its benchmarks fails, it says so, and that is no loss; but
 * where it is built and none of them runs, the comparison itself is broken.
 */
export function against(commit: string, names: readonly string[], limit: number): number {
  const folder = mkdtempSync(join(tmpdir(), 'switchyard-against-'));
  const other = join(folder, 'other');
  try {
    mkdirSync(other);
    // Traces lie beside a checkout: both read the same.
    symlinkSync(join(ROOT, '..', 'shared'), join(folder, 'shared'));
    const problem = build(commit, other);
    if (problem) {
      process.stdout.write(`not compared: ${commit} cannot be built here: ${problem}\n`);
      return 0;
    }
    const compared = names.map((name) => ({
      name,
      loses: loses(name, other, limit, 1) && loses(name, other, limit, CONFIRMING),
    }));
    if (compared.every((one) => one.loses === null)) {
      process.stdout.write(`broken: no benchmark runs at ${commit}\n`);
      return 1;
    }
    const lost = compared.filter((one) => one.loses).map(({ name }) => name);
    process.stdout.write(
      lost.length > 0
        ? `slower than ${commit} by more than ${limit * 100} %, twice: ${lost.join(', ')}\n`
        : `nothing is slower than ${commit} by more than ${limit * 100} %\n`,
    );
    return lost.length > 0 ? 1 : 0;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** That commit's benchmarks; what is wrong, or null. */
function build(commit: string, folder: string): string | null {
  try {
    const steps = [
      [join(ROOT, 'scripts', 'checkout.mjs'), commit, folder],
      ['scripts/generate.mjs'],
      ['node_modules/typescript/bin/tsc', '-p', 'tsconfig.bench.json'],
    ];
    for (const step of steps) execFileSync(process.execPath, step, { cwd: folder, stdio: 'pipe' });
    return null;
  } catch (error) {
    const { stdout, stderr, message } = error as Error & { stdout?: Buffer; stderr?: Buffer };
    return `${stderr ?? ''}${stdout ?? ''}`.trim().slice(0, 2000) || message;
  }
}

/** Whether ours is slower, both as it is and beside the baseline that each measures in the same run; null: it fails at the other commit. */
function loses(name: string, other: string, limit: number, turns: number): boolean | null {
  const they: Result[] = [];
  const we: Result[] = [];
  for (let turn = 0; turn < turns; turn++) {
    const order = turn % 2 === 0 ? [ROOT, other] : [other, ROOT];
    const results = new Map(order.map((root) => [root, measured(root, name)]));
    const theirs = results.get(other);
    const ours = results.get(ROOT);
    if (!ours) throw new Error(`${name} fails`);
    if (!theirs) {
      process.stdout.write(`${name}: not compared, it fails at the other commit\n`);
      return null;
    }
    they.push(theirs);
    we.push(ours);
  }
  const { unit } = we[0] as Result;
  const figures = (figure: 'value' | 'ratio') =>
    [we, they].map((results) => median(results.map((result) => result[figure]))) as [number, number];
  const changes = (['value', 'ratio'] as const).map((figure) => {
    const [ours, theirs] = figures(figure);
    return (isRate({ unit }) ? ours / theirs : theirs / ours) - 1;
  });
  const [plain, beside] = changes.map((change) => `${change < 0 ? '' : '+'}${(change * 100).toFixed(1)} %`);
  const values = figures('value').map((value) => `${value.toPrecision(4)} ${unit}`);
  process.stdout.write(`${name}: ${values.join(', there ')}: ${plain} (beside its baseline ${beside})\n`);
  return changes.every((change) => change < -limit);
}

const gitDir = (): string =>
  execFileSync('git', ['rev-parse', '--absolute-git-dir'], { cwd: ROOT, encoding: 'utf8' }).trim();

function measured(root: string, name: string): Result | null {
  const folder = mkdtempSync(join(tmpdir(), 'switchyard-figures-'));
  try {
    const file = join(folder, 'figures.json');
    const main = join(root, 'dist-bench', 'bench', 'main.js');
    const { status } = spawnSync(process.execPath, [main, '--only', name, '--json', file], {
      cwd: root,
      // A benchmark notes its commit, and the other one's files have no repository.
      env: { ...process.env, GIT_DIR: gitDir() },
      stdio: ['ignore', 'ignore', 'inherit'],
      timeout: MEASURING_MS,
    });
    if (status !== 0) return null;
    const results = JSON.parse(readFileSync(file, 'utf8')) as Result[];
    return results.find((result) => result.name === name) ?? null;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
