/**
 * `npm run bench -- --help`: measures side by side with a baseline in the same run, each benchmark in a process of its own: what has been
 * measured is written at once, and one that fails is named while the others go on.
 */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { InvalidArgumentError, Option, program } from 'commander';
import { against } from './against.js';
import { agentsBench } from './agents.js';
import { cyclesBench } from './cycles.js';
import { federationBench } from './federation.js';
import { gridTreeBench } from './gridTree.js';
import { handOverBench } from './handOver.js';
import { historyBench } from './history.js';
import { isolationBench } from './isolation.js';
import { circumstances, keep } from './kept.js';
import { type Bench, HEAD, type Measured, notesOf, rowOf } from './measure.js';
import { mirrorBench } from './mirror.js';
import { needsBench } from './needs.js';
import { policiesBench } from './policies.js';
import { portalBench } from './portal.js';
import { profileBench } from './profile.js';
import { queuedBench } from './queued.js';
import { serviceBench } from './service.js';
import { shardsBench } from './shards.js';
import { simulateBench } from './simulate.js';
import { slurmCommandsBench } from './slurmCommands.js';

const SELF = fileURLToPath(import.meta.url);
/** The longest takes half an hour. */
const MEASURING_MS = 3_600_000;

const benches: Bench[] = [
  serviceBench,
  agentsBench,
  federationBench,
  cyclesBench,
  policiesBench,
  gridTreeBench,
  profileBench,
  queuedBench,
  mirrorBench,
  simulateBench,
  historyBench,
  needsBench,
  shardsBench,
  isolationBench,
  handOverBench,
  slurmCommandsBench,
  portalBench,
];
const names = benches.flatMap((bench) => bench.names);

function share(value: string): number {
  const number = Number(value);
  if (number > 0 && number < 1) return number;
  throw new InvalidArgumentError('Accepted: a share between 0 and 1.');
}

const options = program
  .name('npm run bench --')
  .description('Measures side by side with a baseline in the same run.')
  .addOption(new Option('--only <name...>', 'these benchmarks').choices(names))
  .option('--json <file>', 'writes the figures for programs')
  .option('--write', 'keeps the results in docs/performance.json and docs/performance.md', false)
  .option('--smallest', 'runs each once at its smallest size, to see that it runs', false)
  .option('--profile <dir>', 'writes there where the time of `lives` or `process-lives` goes (with --only)')
  .option('--against <commit>', 'measures another commit in turns with this one')
  .option('--limit <share>', 'loss against that commit at which it fails', share, 0.15)
  .parse()
  .opts<{
    only?: string[];
    json?: string;
    write: boolean;
    smallest: boolean;
    profile?: string;
    against?: string;
    limit: number;
  }>();
const wanted = options.only ?? names;
if (options.profile) process.env.BENCH_PROFILE = resolve(options.profile);

/** Measures one here. */
async function measureHere(name: string): Promise<Measured[]> {
  const bench = benches.find((one) => one.names.includes(name)) as Bench;
  const results = await bench.run((other) => other === name);
  for (const { value, baseline } of results)
    if (!Number.isFinite(value / baseline)) throw new Error(`${name} gave ${value} against ${baseline}`);
  return results;
}

/** Measures one in a process of its own; null: it failed, and has said why. */
function measureApart(name: string): Measured[] | null {
  const folder = mkdtempSync(join(tmpdir(), 'switchyard-bench-'));
  const file = join(folder, 'figures.json');
  try {
    const env = options.smallest ? { ...process.env, BENCH_SMALLEST: '1' } : process.env;
    const { status } = spawnSync(process.execPath, [SELF, '--only', name, '--json', file], {
      env,
      stdio: ['ignore', 'ignore', 'inherit'],
      timeout: MEASURING_MS,
    });
    if (status !== 0) return null;
    const results = JSON.parse(readFileSync(file, 'utf8')) as Measured[];
    // No aim is for the smallest size.
    return options.smallest ? results.map((result) => ({ ...result, aim: null })) : results;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function measureAll(): Promise<number> {
  const alone = wanted.length === 1 && !options.smallest;
  const results: Measured[] = [];
  const failed: string[] = [];
  process.stdout.write(`${HEAD}\n`);
  for (const name of wanted) {
    const at = circumstances();
    const measured = alone ? await measureHere(name) : measureApart(name);
    if (measured === null) {
      failed.push(name);
      process.stdout.write(`| \`${name}\` | failed |\n`);
      continue;
    }
    // What a machine cannot do (isolation of a kind that it does not have) is measured nowhere.
    if (measured.length === 0) process.stdout.write(`| \`${name}\` | not possible on this machine |\n`);
    for (const result of measured) process.stdout.write(`${rowOf(result)}\n`);
    results.push(...measured);
    if (options.json) writeFileSync(options.json, `${JSON.stringify(results, null, 2)}\n`);
    if (options.write) keep(measured, at);
  }
  process.stdout.write(
    `${notesOf(results)}\n${wanted.length - failed.length} measured, ${failed.length} failed\n`,
  );
  if (failed.length > 0) process.stderr.write(`failed: ${failed.join(', ')}\n`);
  return failed.length > 0 ? 1 : 0;
}

const code = options.against ? against(options.against, wanted, options.limit) : await measureAll();
// Servers that a failed round left behind must not keep this process alive.
process.exit(code);
