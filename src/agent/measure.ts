/** What a host is, as an agent tells it: measured, not configured. */
import { execFile } from 'node:child_process';
import { availableParallelism, hostname, totalmem } from 'node:os';
import { MAX } from '../platform/limits.js';

/** `MeasurementInput` of schema.graphql. */
export interface Measurement {
  cpus: number;
  memoryMb: number;
  os: string;
  architecture: string;
  /** About 100 on an ordinary machine of 2020. */
  benchmark: number;
  gpus: { name: string; memoryMb: number }[];
}

/** What needs no measuring. Inside a container that limits memory: as much as it may have. */
export function hostShape(): Omit<Measurement, 'benchmark' | 'gpus'> & { name: string } {
  const memory = Math.min(totalmem(), process.constrainedMemory() || Number.POSITIVE_INFINITY);
  return {
    name: hostname().slice(0, MAX.plainNameChars),
    cpus: availableParallelism(),
    memoryMb: Math.floor(memory / 1e6),
    os: process.platform,
    architecture: process.arch,
  };
}

/** What this host has for each of so many machines that it is divided into: equal parts. */
export async function measureHost(parts = 1): Promise<Measurement> {
  const { cpus, memoryMb, os, architecture } = hostShape();
  const divided = { cpus: Math.max(1, Math.floor(cpus / parts)), memoryMb: Math.floor(memoryMb / parts) };
  return { ...divided, os, architecture, benchmark: benchmark(), gpus: await findGpus() };
}

/** The standard run on a machine of power 100, ms. */
const STANDARD_MS = 2;
const RUNS = 30;

/** The best of a few short runs, so that other work of the machine counts little. */
function benchmark(): number {
  let bestMs = Number.POSITIVE_INFINITY;
  for (let i = 0; i < RUNS; i++) {
    const begunMs = performance.now();
    standardRun();
    bestMs = Math.min(bestMs, performance.now() - begunMs);
  }
  const power = (100 * STANDARD_MS) / bestMs;
  // Two digits: more would be noise.
  return Math.min(MAX.benchmark, Math.max(MAX.leastBenchmark, Number(power.toPrecision(2))));
}

/** Integer and floating-point work over a table that fits into a cache, the same everywhere. */
export function standardRun(): number {
  const table = new Float64Array(1 << 14);
  let state = 1;
  for (let i = 0; i < 1_000_000; i++) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    const at = state >>> 18;
    table[at] = (table[at] as number) * 0.5 + state * 1e-9;
  }
  return table.reduce((sum, one) => sum + one, 0);
}

/** By nvidia-smi; none where there is none. */
function findGpus(): Promise<Measurement['gpus']> {
  const args = ['--query-gpu=name,memory.total', '--format=csv,noheader,nounits'];
  return new Promise((resolve) => {
    execFile('nvidia-smi', args, { timeout: 10_000 }, (error, stdout) => {
      if (error) return resolve([]);
      resolve(parseGpus(stdout));
    });
  });
}

/** Lines of a name and MiB. What is no such line is left out. */
export function parseGpus(text: string): Measurement['gpus'] {
  return text
    .split('\n')
    .flatMap((line) => {
      const [name, mib] = line.split(/,\s*(?=[^,]*$)/);
      const memoryMb = Math.round((Number(mib) * (1 << 20)) / 1e6);
      return name && memoryMb > 0 ? [{ name: name.trim(), memoryMb }] : [];
    })
    .slice(0, 64);
}
