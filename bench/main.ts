/**
 * `npm run bench -- [--only NAME] [--json FILE] [--write]`
 *
 * Measures what DESIGN.md sets aims for, side by side with a baseline in the same run. `--only` may be given several
 * times; `--json` writes the figures for programs, `--write` puts the table into docs/performance.md.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { cpus } from 'node:os';
import { parseArgs } from 'node:util';
import { agentsBench } from './agents.js';
import { cyclesBench } from './cycles.js';
import { federationBench } from './federation.js';
import { gridTreeBench } from './gridTree.js';
import { historyBench } from './history.js';
import { isolationBench } from './isolation.js';
import { type Bench, type Measured, type Result, table } from './measure.js';
import { policiesBench } from './policies.js';
import { portalBench } from './portal.js';
import { profileBench } from './profile.js';
import { queuedBench } from './queued.js';
import { serviceBench } from './service.js';
import { simulateBench } from './simulate.js';

const { values: options } = parseArgs({
  options: {
    only: { type: 'string', multiple: true },
    json: { type: 'string' },
    write: { type: 'boolean', default: false },
  },
});
const benches: Bench[] = [
  serviceBench,
  agentsBench,
  federationBench,
  cyclesBench,
  policiesBench,
  gridTreeBench,
  profileBench,
  queuedBench,
  simulateBench,
  historyBench,
  isolationBench,
  portalBench,
];
const names = benches.flatMap((bench) => bench.names);
const unknown = (options.only ?? []).filter((name) => !names.includes(name));
if (unknown.length > 0) {
  process.stderr.write(`--only: unknown benchmark ${unknown.join(', ')}; accepted: ${names.join(', ')}\n`);
  process.exit(2);
}

const only = (name: string): boolean => options.only === undefined || options.only.includes(name);
const results: Measured[] = [];
for (const bench of benches) {
  if (bench.names.some(only)) results.push(...(await bench.run(only)));
}

const text = table(results);
process.stdout.write(`${text}\n`);
if (options.json) {
  const plain: Result[] = results.map(({ name, value, unit, baseline, ratio, aim }) => ({
    name,
    value,
    unit,
    baseline,
    ratio,
    aim,
  }));
  writeFileSync(options.json, `${JSON.stringify(plain, null, 2)}\n`);
}
if (options.write) {
  const path = new URL('../../docs/performance.md', import.meta.url);
  const machine = `Measured on ${cpus().length} cores (${cpus()[0]?.model ?? 'unknown'}), Node ${process.versions.node}, everything on one machine.`;
  const marked = /(<!-- bench -->\n)[\s\S]*?(<!-- \/bench -->)/;
  writeFileSync(
    path,
    readFileSync(path, 'utf8').replace(marked, (_, start, end) => `${start}${machine}\n\n${text}\n${end}`),
  );
}
// Servers that a failed round left behind must not keep this process alive.
process.exit(0);
