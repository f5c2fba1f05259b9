/** `switchyard trace`: what a trace contains; traces from the archive, and generated ones. */
import type { Command } from 'commander';
import { fetchTrace } from '../../simulator/fetch.js';
import { writeSwf } from '../../simulator/files.js';
import { generatedJobs, models } from '../../simulator/generate.js';
import { scaleLoad } from '../../simulator/load.js';
import type { Distribution } from '../../simulator/statistics.js';
import { scanTrace } from '../../simulator/trace.js';
import { type TraceInfo, TraceSurvey } from '../../simulator/trace-info.js';
import { parseNumber } from '../../words/values.js';
import { addCommand, note, print, printJson, wantsJson } from '../command.js';
import { count, duration, short, table } from '../format.js';
import {
  failure,
  generateOf,
  jobsOption,
  maxEstimateOption,
  parseProcessors,
  parseSeed,
} from '../workloads.js';

export function addTrace(program: Command): void {
  const trace = program
    .command('trace')
    .description('show what a trace contains, download one, or generate one');
  addInfo(trace);
  addFetch(trace);
  addGenerate(trace);
}

function addInfo(trace: Command): void {
  const info = addCommand(
    trace,
    'info <file>',
    'show what a trace contains, in the Standard or the Grid Workload Format; - for standard input',
  );
  info.action(async (file: string) => {
    const survey = new TraceSurvey();
    let found: TraceInfo;
    try {
      const scan = await scanTrace(file, (job) => survey.take(job));
      for (const { line, why } of scan.malformed.slice(0, 10)) note(`${scan.name}, line ${line}: ${why}`);
      found = survey.info(scan);
    } catch (error) {
      throw failure(error);
    }
    if (wantsJson(info)) return printJson(found);
    const { header, processors, run, requestedTime, interArrival, load, ...numbers } = found;
    for (const [key, value] of Object.entries(header)) print(`${key}: ${value.replaceAll('\n', '\n    ')}`);
    print('');
    for (const [name, value] of Object.entries(numbers)) print(`${name}: ${value}`);
    print(`load: ${load === null ? '-' : load.toFixed(4)}`);
    print('');
    print(
      table(
        ['', 'mean', 'median', 'p95', 'max'],
        [
          ['processors', ...cells(processors, short)],
          ['run', ...cells(run, duration)],
          ['requestedTime', ...cells(requestedTime, duration)],
          ['interArrival', ...cells(interArrival, duration)],
        ],
      ),
    );
  });
}

const cells = ({ mean, median, p95, max }: Distribution, text: (value: number) => string): string[] =>
  [mean, median, p95, max].map(text);

function addFetch(trace: Command): void {
  const fetch = addCommand(
    trace,
    'fetch <name>',
    'download a trace from the Parallel Workloads Archive (needs internet access)',
  ).option('--dir <folder>', 'folder to put it in', '.');
  fetch.action(async (name: string, { dir }: { dir: string }) => {
    const path = await fetchTrace(name, dir).catch((error: unknown) => {
      throw failure(error);
    });
    if (wantsJson(fetch)) printJson({ path });
    else print(path);
  });
}

interface GenerateFlags {
  out: string;
  jobs: string;
  processors: string;
  seed: string;
  load?: string;
  maxEstimate?: string;
}

function addGenerate(trace: Command): void {
  const generate = addCommand(
    trace,
    'generate <model>',
    `write a generated workload (${models.join(' or ')}) in the Standard Workload Format`,
  )
    .requiredOption('--out <file>', 'file to write')
    .requiredOption('--processors <n>', 'number of processors of the machine that the jobs are for')
    .option(...jobsOption)
    .option(...maxEstimateOption)
    .option('--load <part>', 'scale the times between submissions to this offered load, such as 0.8')
    .option('--seed <n>', 'random seed', '1');
  generate.action((model: string, flags: GenerateFlags) => {
    const processors = parseProcessors(flags.processors);
    const what = { ...generateOf(model, flags), seed: parseSeed(flags.seed) };
    const load = flags.load === undefined ? null : parseNumber('--load', flags.load, { min: 0.01, max: 100 });
    try {
      const drawn = generatedJobs(what, processors);
      const jobs = load === null ? drawn : scaleLoad(drawn, processors, load);
      const note = `generated: ${model}, seed ${what.seed}`;
      writeSwf(
        flags.out,
        { Version: 2.2, Note: note, MaxJobs: jobs.length, MaxProcs: processors },
        jobs,
        null,
      );
      if (wantsJson(generate)) printJson({ path: flags.out, jobs: jobs.length });
      else print(`${count(jobs.length, 'job')} in ${flags.out}`);
    } catch (error) {
      throw failure(error);
    }
  });
}
