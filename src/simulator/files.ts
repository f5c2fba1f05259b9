/** What a simulation writes: files in parts, so that a long run needs no more memory than a short one. */
import { closeSync, openSync, writeSync } from 'node:fs';
import type { Run } from '../core/index.js';
import type { World } from './engine.js';
import { intervalSet, Processors, type Taken } from './processors.js';
import type { ResultSink, RunEnd, Sink } from './sink.js';
import type { SimJob } from './workload.js';

const BUFFER_CHARS = 1 << 18;

/** A text file that is written in large parts. */
export class TextFile {
  private readonly file: number;
  private text = '';

  /** Opens the file; throws what opening it throws. */
  constructor(path: string) {
    this.file = openSync(path, 'w');
  }

  line(line: string): void {
    this.text += `${line}\n`;
    if (this.text.length >= BUFFER_CHARS) this.flush();
  }

  close(): void {
    try {
      this.flush();
    } finally {
      closeSync(this.file);
    }
  }

  private flush(): void {
    const bytes = Buffer.from(this.text);
    this.text = '';
    for (let at = 0; at < bytes.length; ) at += writeSync(this.file, bytes, at);
  }
}

const COLUMNS =
  'job_id,workload_name,profile,submission_time,requested_number_of_resources,requested_time,success,final_state,' +
  'starting_time,execution_time,finish_time,waiting_time,turnaround_time,stretch,allocated_resources,' +
  'consumed_energy,metadata,site';

/** Of a run that has ended. */
const NONE: Taken = [];

const FINAL_STATES: Record<RunEnd, string> = {
  COMPLETED: 'COMPLETED_SUCCESSFULLY',
  KILLED_AT_LIMIT: 'COMPLETED_WALLTIME_REACHED',
  LOST: 'COMPLETED_KILLED',
};

/**
 * Writes a row for each run when it ends, in the columns of Batsim's `_jobs.csv`, which evalys and other tools read, and behind
 * them the name of the site. A run that was lost has its row too. Energy is not simulated: -1.
 */
export class BatsimCsv implements Sink {
  private readonly file: TextFile;
  private readonly processors: Processors;
  private readonly taken: Taken[] = [];
  private readonly workloadName: string;
  /** By id. */
  private readonly sites: ReadonlyMap<number, string>;

  /** Opens the file; throws what opening it throws. */
  constructor(path: string, workloadName: string, world: World) {
    this.workloadName = quoted(workloadName);
    this.sites = new Map(world.sites.map(({ id, name }) => [id, quoted(name)]));
    this.processors = new Processors(world);
    this.file = new TextFile(path);
    this.file.line(COLUMNS);
  }

  started({ job }: SimJob, index: number, run: Run): void {
    this.taken[index] = this.processors.take(run, job.cpusPerTask);
  }

  ended({ job, sourceId, limitS }: SimJob, index: number, run: Run, at: number, how: RunEnd): void {
    const taken = this.taken[index] as Taken;
    this.processors.give(run, taken);
    this.taken[index] = NONE;
    const { start } = run;
    const { submittedAt } = job;
    const turnaround = at - submittedAt;
    const stretch = at > start ? turnaround / (at - start) : 1;
    this.file.line(
      `${sourceId},${this.workloadName},run-${sourceId},${submittedAt},${job.tasks * job.cpusPerTask},` +
        `${limitS ?? job.estimateS},${how === 'COMPLETED' ? 1 : 0},${FINAL_STATES[how]},${start},${at - start},${at},` +
        `${start - submittedAt},${turnaround},${stretch},${intervalSet(taken)},-1,,${this.sites.get(run.siteId)}`,
    );
  }

  close(): void {
    this.file.close();
  }
}

const quoted = (value: string): string =>
  /[",\r\n]/.test(value) ? `"${value.replaceAll('"', '""')}"` : value;

/** Writes a JSON object a line for each start and each end, as they happen. */
export class JsonLines implements Sink {
  private readonly file: TextFile;

  /** Opens the file; throws what opening it throws. */
  constructor(path: string) {
    this.file = new TextFile(path);
  }

  started({ sourceId }: SimJob, _index: number, run: Run): void {
    const { siteId, allocations, licenseIds, start, plannedEnd } = run;
    this.file.line(
      JSON.stringify({
        event: 'START',
        at: start,
        job: sourceId,
        site: siteId,
        allocations,
        licenseIds,
        plannedEnd,
      }),
    );
  }

  ended({ sourceId }: SimJob, _index: number, run: Run, at: number, how: RunEnd): void {
    this.file.line(JSON.stringify({ event: 'END', at, job: sourceId, site: run.siteId, how }));
  }

  close(): void {
    this.file.close();
  }
}

/**
 * Writes jobs in the Standard Workload Format, by submission, with what the schedule made of them: wait, run, processors,
 * status (1 completed, 0 killed at its limit) and, as the partition, the site. What the trace said of user, group, executable,
 * queue, memory and dependency stays. A job that never ran has -1 for the wait and the run, and status 5.
 */
export function writeSwf(
  path: string,
  header: Readonly<Record<string, string | number>>,
  jobs: readonly SimJob[],
  results: ResultSink | null,
): void {
  const file = new TextFile(path);
  try {
    for (const [key, value] of Object.entries(header)) file.line(`; ${key}: ${value}`);
    for (let i = 0; i < jobs.length; i++) file.line(swfLine(jobs[i] as SimJob, results, i));
  } finally {
    file.close();
  }
}

function swfLine(
  { job, sourceId, runS, limitS, siteId, recorded }: SimJob,
  results: ResultSink | null,
  index: number,
): string {
  const cpus = job.tasks * job.cpusPerTask;
  const start = results?.starts[index] ?? Number.NaN;
  const end = results?.ends[index] ?? Number.NaN;
  const ran = !Number.isNaN(end);
  const before =
    results === null ? `-1 ${runS}` : ran ? `${start - job.submittedAt} ${end - start}` : '-1 -1';
  const status = results === null ? -1 : ran ? 1 - (results.killed[index] as number) : 5;
  const site = results?.siteIds[index] || siteId || -1;
  const {
    averageCpu = -1,
    usedMemoryKb = -1,
    requestedMemoryKb = -1,
    group = -1,
    executable = -1,
  } = recorded ?? {};
  const { queue = -1, precedingJob = -1, thinkTime = -1 } = recorded ?? {};
  return (
    `${sourceId} ${job.submittedAt} ${before} ${ran || results === null ? cpus : -1} ${averageCpu} ${usedMemoryKb} ${cpus} ` +
    `${limitS ?? job.estimateS} ${requestedMemoryKb} ${status} ${job.userId} ${group} ${executable} ${queue} ${site} ` +
    `${precedingJob} ${thinkTime}`
  );
}
