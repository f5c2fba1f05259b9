/**
 * The simulator: jobs per second of CPU time in a warm thread like those that `switchyard simulate` makes, reading the trace
 * included. The trace is KTH-SP2 where ../shared/data lies beside the checkout, else as many jobs of the model of Lublin and
 * Feitelson.
 */
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isMainThread, parentPort, workerData } from 'node:worker_threads';
import { gzipSync } from 'node:zlib';
import { RandomStream } from '../src/core/index.js';
import { packagePath } from '../src/platform/paths.js';
import { simulationThread } from '../src/simulator/compare.js';
import { runSimulation } from '../src/simulator/engine.js';
import { BatsimCsv, writeSwf } from '../src/simulator/files.js';
import { scaleLoad } from '../src/simulator/load.js';
import { lublinJobs } from '../src/simulator/lublin.js';
import { policyNamed } from '../src/simulator/policies.js';
import { load } from '../src/simulator/simulate.js';
import { MemorySink, ResultSink } from '../src/simulator/sink.js';
import { countedWorld } from '../src/simulator/sites.js';
import { scanTrace } from '../src/simulator/trace.js';
import { type Bench, cpuSeconds, type Measured, megabytesOf, sideBySide, sized } from './measure.js';

const ROUNDS = 5;
const TRACE_JOBS = sized(28_481, 500);
/** Repeats before the first round: the compiler goes on changing its mind for some twenty. */
const WARM_UP = sized(25, 1);
const WRITING_REPEATS = sized(15, 1);
const MILLION = sized(1_000_000, 3_000);
const TENTH = MILLION / 10;
const HUNDREDTH = MILLION / 100;
/** Jobs of the deep queues. */
const SHALLOW = sized(2_000, 100);
const CROWD = sized(25_000, 200);

const CLEANING = {
  processors: null,
  estimate: 'requested',
  missingEstimate: 'drop',
  overrun: 'kill',
} as const;

/** Reads and simulates the trace; how many jobs there were. */
async function simulateTrace(path: string, policy: string): Promise<number> {
  const { world, workload } = await load(path, null, CLEANING);
  const { jobs } = workload;
  const options = { policy: policyNamed(policy, 1), eventOrder: 'batch' } as const;
  runSimulation(world, jobs, options, [new MemorySink(jobs.length)]);
  return jobs.length;
}

/**
 * Jobs per CPU-second of simulating a trace that has been read, and of writing its results as Batsim's CSV beside it and then as SWF.
 * Writing is the difference of two figures, so both are of many, in turn: the collector counts.
 */
async function writingRates(path: string, folder: string): Promise<{ writing: number; simulating: number }> {
  const { world, workload } = await load(path, null, { ...CLEANING, swf: 'kept' });
  const { jobs } = workload;
  const options = { policy: policyNamed('easy', 1), eventOrder: 'batch' } as const;
  const [csvPath, swfPath] = [join(folder, 'jobs.csv'), join(folder, 'schedule.swf')];
  let aloneS = 0;
  let bothS = 0;
  for (let i = 0; i < WRITING_REPEATS; i++) {
    aloneS += await cpuSeconds(() => runSimulation(world, jobs, options, [new ResultSink(jobs.length)]));
    // To empty a file that is there takes as long as to write it.
    for (const file of [csvPath, swfPath]) rmSync(file, { force: true });
    bothS += await cpuSeconds(() => {
      const csv = new BatsimCsv(csvPath, 'bench', world);
      const results = new ResultSink(jobs.length);
      runSimulation(world, jobs, options, [results, csv]);
      csv.close();
      writeSwf(swfPath, { MaxJobs: jobs.length }, jobs, results);
    });
  }
  const written = WRITING_REPEATS * jobs.length;
  return { writing: written / (bothS - aloneS), simulating: written / aloneS };
}

/** Jobs of the trace per CPU-second. */
async function rate(work: () => Promise<number>): Promise<number> {
  let jobs = 0;
  const seconds = await cpuSeconds(async () => {
    jobs = await work();
  });
  return jobs / seconds;
}

/** Simulates generated jobs; jobs per CPU-second, the generating left out, and what is kept of the simulation. */
async function generated(count: number): Promise<{ perSecond: number; kept: unknown }> {
  const jobs = scaleLoad(lublinJobs(1, count, 128), 128, 0.7);
  const world = countedWorld([{ id: 1, name: 'machine', processors: 128 }]);
  const options = { policy: policyNamed('easy', 1), eventOrder: 'batch' } as const;
  const sink = new MemorySink(count);
  const perSecond = await rate(async () => runSimulation(world, jobs, options, [sink]).ended);
  return { perSecond, kept: [jobs, sink] };
}

const generatedRate = async (count: number): Promise<number> => (await generated(count)).perSecond;

/** Megabytes of generated jobs and their results. */
const megabytesFor = (count: number): Promise<number> =>
  megabytesOf(async () => (await generated(count)).kept);

async function run(only: (name: string) => boolean): Promise<Measured[]> {
  const folder = mkdtempSync(join(tmpdir(), 'bench-simulate-'));
  try {
    const path = tracePath(folder);
    const easy = (): Promise<number> => rate(() => simulateTrace(path, 'easy'));
    const results: Measured[] = [];
    for (let i = 0; i < WARM_UP; i++) await easy();
    if (only('simulate-easy')) {
      const reading = (): Promise<number> =>
        rate(async () => {
          let jobs = 0;
          await scanTrace(path, () => jobs++);
          return jobs;
        });
      results.push(
        await sideBySide(
          {
            name: 'simulate-easy',
            unit: 'jobs/s',
            aim: null,
            what: 'EASY over KTH-SP2, per CPU-second, reading included; against reading alone',
          },
          ROUNDS,
          easy,
          reading,
        ),
      );
    }
    if (only('simulate-conservative')) {
      const conservative = (): Promise<number> => rate(() => simulateTrace(path, 'conservative'));
      for (let i = 0; i < WARM_UP; i++) await conservative();
      results.push(
        await sideBySide(
          {
            name: 'simulate-conservative',
            unit: 'jobs/s',
            aim: { ratio: 0.6 },
            what: 'conservative backfilling over KTH-SP2, per CPU-second; against EASY',
          },
          ROUNDS,
          conservative,
          easy,
        ),
      );
    }
    if (only('simulate-writing')) {
      await writingRates(path, folder);
      let rates = { writing: 0, simulating: 0 };
      results.push(
        await sideBySide(
          {
            name: 'simulate-writing',
            unit: 'jobs/s',
            aim: null,
            what: 'writing the results of EASY over KTH-SP2 as CSV and as SWF, per CPU-second; against simulating (above 1: writing costs less)',
          },
          ROUNDS,
          () => rates.writing,
          async () => {
            rates = await writingRates(path, folder);
            return rates.simulating;
          },
        ),
      );
    }
    if (only('simulate-easy-sjbf-deep')) results.push(await deepSjbf());
    if (only('simulate-conservative-deep')) results.push(await deep());
    if (only('simulate-million')) results.push(await million());
    return results;
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** Twice as much work as the machine can do: at the end nearly half of all jobs wait, each with a promised start. */
function deepRate(count: number): Promise<number> {
  const jobs = scaleLoad(lublinJobs(1, count, 128), 128, 2);
  const world = countedWorld([{ id: 1, name: 'machine', processors: 128 }]);
  const options = { policy: policyNamed('conservative', 1), eventOrder: 'batch' } as const;
  return rate(async () => runSimulation(world, jobs, options, []).ended);
}

/** Growth with the depth of the queue. */
async function deep(): Promise<Measured> {
  for (let i = 0; i < 3; i++) await deepRate(SHALLOW);
  return sideBySide(
    {
      name: 'simulate-conservative-deep',
      unit: 'jobs/s',
      aim: null,
      what: 'conservative backfilling where up to 8000 jobs wait, per CPU-second; against up to 1000 (ratio 1: no growth)',
    },
    3,
    () => deepRate(8 * SHALLOW),
    () => deepRate(SHALLOW),
  );
}

/**
 * Thirty times as much work as the machine can do, most jobs of one processor and all with estimates up to twenty times too long:
 * thousands of those that wait might start before the reservation at any time.
 */
function crowdedRate(policy: string): Promise<number> {
  const drawn = new RandomStream(1, 'crowded');
  const jobs = scaleLoad(lublinJobs(1, CROWD, 128), 128, 30).map((one) => {
    const estimateS = Math.ceil(one.runS * (1 + 19 * drawn.next()));
    const cpusPerTask = drawn.next() < 0.7 ? 1 : one.job.cpusPerTask;
    return { ...one, limitS: estimateS, job: { ...one.job, estimateS, cpusPerTask } };
  });
  const world = countedWorld([{ id: 1, name: 'machine', processors: 128 }]);
  const options = { policy: policyNamed(policy, 1), eventOrder: 'batch' } as const;
  return rate(async () => runSimulation(world, jobs, options, []).ended);
}

function deepSjbf(): Promise<Measured> {
  return sideBySide(
    {
      name: 'simulate-easy-sjbf-deep',
      unit: 'jobs/s',
      aim: null,
      what: 'EASY-SJBF where thousands of jobs wait, per CPU-second; against EASY (aim of the ratio: above 0.5)',
    },
    3,
    () => crowdedRate('easy-sjbf'),
    () => crowdedRate('easy'),
  );
}

/** Growth: the rate at a million jobs over the rates at ten and a hundred thousand. */
async function million(): Promise<Measured> {
  let smaller = 0;
  const result = await sideBySide(
    {
      name: 'simulate-million',
      unit: 'jobs/s',
      aim: null,
      what: 'EASY over 1 000 000 generated jobs, per CPU-second; against 100 000 of them (ratio 1: linear)',
    },
    3,
    () => generatedRate(MILLION),
    async () => {
      smaller = await generatedRate(HUNDREDTH);
      return generatedRate(TENTH);
    },
  );
  // Afterwards: a full collection throws compiled code away too.
  const megabytes: string[] = [];
  for (const count of [HUNDREDTH, TENTH, MILLION]) megabytes.push((await megabytesFor(count)).toFixed(0));
  const note = `10 000 jobs: ${smaller.toFixed(0)} jobs/s; memory of 10 000, 100 000, 1 000 000 jobs with their results: ${megabytes.join(', ')} MB`;
  return { ...result, note };
}

function tracePath(folder: string): string {
  const shared = packagePath('..', 'shared', 'data', 'traces', 'KTH-SP2.swf.gz');
  if (existsSync(shared) && TRACE_JOBS > 500) return shared;
  const jobs = scaleLoad(lublinJobs(1, TRACE_JOBS, 100), 100, 0.69);
  const lines = jobs.map(({ job: { id, submittedAt: submit, cpusPerTask }, runS }) => {
    return `${id} ${submit} -1 ${runS} ${cpusPerTask} -1 -1 ${cpusPerTask} ${runS} -1 1 1 1 1 1 1 -1 -1`;
  });
  const path = join(folder, 'generated.swf.gz');
  writeFileSync(path, gzipSync(`; MaxProcs: 100\n${lines.join('\n')}\n`));
  return path;
}

const NAMES = [
  'simulate-easy',
  'simulate-conservative',
  'simulate-conservative-deep',
  'simulate-easy-sjbf-deep',
  'simulate-writing',
  'simulate-million',
];

export const simulateBench: Bench = {
  names: NAMES,
  run: (only) =>
    new Promise((resolve, reject) => {
      const wanted = NAMES.filter(only);
      const thread = simulationThread(new URL(import.meta.url), wanted);
      thread.on('message', resolve).on('error', reject);
    }),
};

if (!isMainThread) parentPort?.postMessage(await run((name) => (workerData as string[]).includes(name)));
