/** What a host is, as an agent tells it: measured, not configured. */
import { execFile } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { availableParallelism, cpus as cpuList, hostname, loadavg, totalmem } from 'node:os';
import { setImmediate as turn } from 'node:timers/promises';
import { type Env, pause, REAL_ENV } from '../platform/env.js';
import { MAX } from '../platform/limits.js';
import type { HostDevice } from './devices.js';

/** `MeasurementInput` of schema.graphql. */
export interface Measurement {
  cpus: number;
  memoryMb: number;
  os: string;
  architecture: string;
  /** Of its CPUs; null: the system does not say. */
  model: string | null;
  /** About 100 on an ordinary machine of 2020. */
  benchmark: number;
  gpus: { name: string; memoryMb: number }[];
  /** What is said of the machine by name. */
  labels: { name: string; value: string }[];
  devices: readonly Pick<HostDevice, 'id' | 'kind' | 'model' | 'memoryMb' | 'shares' | 'link' | 'oneUser'>[];
}

/** What needs no measuring. Inside a container that limits memory: as much as it may have. */
export function hostShape(): Pick<Measurement, 'cpus' | 'memoryMb' | 'os' | 'architecture'> & {
  name: string;
} {
  const memory = Math.min(totalmem(), process.constrainedMemory() || Number.POSITIVE_INFINITY);
  return {
    name: hostname().slice(0, MAX.plainNameChars),
    cpus: availableParallelism(),
    memoryMb: Math.floor(memory / 1e6),
    os: process.platform,
    architecture: process.arch,
  };
}

/**
 * What this host has for each of so many machines that it is divided into: equal parts.
 *
 * @param given labels as `gen=3,fast`
 */
export async function measureHost(parts = 1, given: string | null = null): Promise<Measurement> {
  const { cpus, memoryMb, os, architecture } = hostShape();
  const divided = { cpus: Math.max(1, Math.floor(cpus / parts)), memoryMb: Math.floor(memoryMb / parts) };
  const model = cpuList()[0]?.model.trim().slice(0, MAX.nameChars) || null;
  const gpus = await findGpus();
  return {
    ...divided,
    os,
    architecture,
    model,
    benchmark: await benchmark(),
    gpus,
    labels: labelsOf(model, given),
    devices: [],
  };
}

/** The model of the CPUs is one; of a name that is given twice the last counts. */
export function labelsOf(model: string | null, given: string | null): Measurement['labels'] {
  const labels = new Map(model === null ? [] : [['cpu', model]]);
  for (const one of given?.split(',') ?? []) {
    const [name = '', ...text] = one.split('=');
    labels.set(name, text.join('='));
  }
  return [...labels].map(([name, value]) => ({ name, value }));
}

/** The standard run on a machine of power 100, ms. */
const STANDARD_MS = 2;
const RUNS = 30;

/** The best of a few short runs, so that other work of the machine counts little. */
async function benchmark(): Promise<number> {
  let bestMs = Number.POSITIVE_INFINITY;
  for (let i = 0; i < RUNS; i++) {
    const begunMs = performance.now();
    standardRun();
    bestMs = Math.min(bestMs, performance.now() - begunMs);
    // Nobody waits for all of them.
    await turn();
  }
  const power = (100 * STANDARD_MS) / bestMs;
  // Two digits: more would be noise.
  return Math.min(MAX.benchmark, Math.max(MAX.leastBenchmark, Number(power.toPrecision(2))));
}

/** How often it is looked whether the host is idle, and how often its power is measured then. */
const LOOK_MS = 60_000;
const MEASURED_TIMES = 30;

export interface PowerOptions {
  /** Where the best is kept over restarts. */
  file: string;
  /** Whether nothing is run here by the agent. */
  idle: () => boolean;
  /** Load of the host, in processes that compute. */
  load?: () => number;
  measure?: () => Promise<number>;
  env?: Env;
}

/**
 * The power of a host: the best of what was measured while it was idle. What is measured under load, as at the start perhaps, says that it
 * has so much at the least.
 */
export class Power {
  private readonly stopping = new AbortController();
  private done: Promise<void> | null = null;
  private best: number;

  constructor(
    private readonly first: Measurement,
    private readonly options: PowerOptions,
  ) {
    this.best = Math.max(first.benchmark, this.kept());
  }

  /** What the host is, as far as it is known by now. */
  get measured(): Measurement {
    return { ...this.first, benchmark: this.best };
  }

  start(): void {
    this.done ??= this.run();
  }

  async stop(): Promise<void> {
    this.stopping.abort();
    await this.done;
  }

  private async run(): Promise<void> {
    const { idle, load = () => loadavg()[0] as number, measure = benchmark, env = REAL_ENV } = this.options;
    const { signal } = this.stopping;
    for (let times = 0; times < MEASURED_TIMES && !signal.aborted; ) {
      // One CPU is enough, and the least load that a system of many parts has.
      if (idle() && load() < availableParallelism() / 2) {
        this.take(await measure());
        times++;
      }
      await pause(env, LOOK_MS, signal);
    }
  }

  private take(power: number): void {
    if (power <= this.best) return;
    this.best = power;
    try {
      writeFileSync(this.options.file, JSON.stringify({ model: this.first.model, power }), { mode: 0o600 });
    } catch {
      // The next agent measures again.
    }
  }

  /** What an earlier agent has found of the same model. */
  private kept(): number {
    try {
      const { model, power } = JSON.parse(readFileSync(this.options.file, 'utf8'));
      return model === this.first.model && power <= MAX.benchmark ? Number(power) : 0;
    } catch {
      return 0;
    }
  }
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
