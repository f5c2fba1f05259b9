/** Sinks that write files, in parts, so that a long run needs no more memory than a short one. */
import { closeSync, openSync, writeSync } from 'node:fs';
import type { Run } from '../core/index.js';
import type { World } from './engine.js';
import { type Interval, intervalSet, Processors } from './processors.js';
import type { RunEnd, Sink } from './sink.js';
import type { SimJob } from './workload.js';

const BUFFER_CHARS = 1 << 16;

/** A text file that is written in large parts. */
class TextFile {
  private readonly file: number;
  private text = '';

  constructor(path: string) {
    this.file = openSync(path, 'w');
  }

  line(line: string): void {
    this.text += `${line}\n`;
    if (this.text.length >= BUFFER_CHARS) this.flush();
  }

  close(): void {
    this.flush();
    closeSync(this.file);
  }

  private flush(): void {
    writeSync(this.file, this.text);
    this.text = '';
  }
}

const COLUMNS = [
  'job_id',
  'workload_name',
  'profile',
  'submission_time',
  'requested_number_of_resources',
  'requested_time',
  'success',
  'final_state',
  'starting_time',
  'execution_time',
  'finish_time',
  'waiting_time',
  'turnaround_time',
  'stretch',
  'allocated_resources',
  'consumed_energy',
  'metadata',
] as const;

const FINAL_STATES: Record<RunEnd, string> = {
  COMPLETED: 'COMPLETED_SUCCESSFULLY',
  KILLED_AT_LIMIT: 'COMPLETED_WALLTIME_REACHED',
  LOST: 'COMPLETED_KILLED',
};

/**
 * Writes a row for each run when it ends, in the columns of Batsim's `_jobs.csv`, which evalys and other tools read. A
 * run that was lost has its row too. Energy is not simulated: -1.
 */
export class BatsimCsv implements Sink {
  private readonly file: TextFile;
  private readonly processors: Processors;
  private readonly taken = new Map<number, Interval[][]>();

  /** Opens the file; throws what opening it throws. */
  constructor(
    path: string,
    private readonly workloadName: string,
    world: World,
  ) {
    this.processors = new Processors(world);
    this.file = new TextFile(path);
    this.file.line(COLUMNS.join(','));
  }

  started({ job }: SimJob, index: number, run: Run): void {
    this.taken.set(index, this.processors.take(run, job.cpusPerTask));
  }

  ended({ job, sourceId, limitS }: SimJob, index: number, run: Run, at: number, how: RunEnd): void {
    const taken = this.taken.get(index) as Interval[][];
    this.taken.delete(index);
    this.processors.give(run, taken);
    const turnaround = at - job.submittedAt;
    const row: Record<(typeof COLUMNS)[number], string | number> = {
      job_id: sourceId,
      workload_name: this.workloadName,
      profile: `run-${sourceId}`,
      submission_time: job.submittedAt,
      requested_number_of_resources: job.tasks * job.cpusPerTask,
      requested_time: limitS ?? job.estimateS,
      success: how === 'COMPLETED' ? 1 : 0,
      final_state: FINAL_STATES[how],
      starting_time: run.start,
      execution_time: at - run.start,
      finish_time: at,
      waiting_time: run.start - job.submittedAt,
      turnaround_time: turnaround,
      stretch: at > run.start ? turnaround / (at - run.start) : 1,
      allocated_resources: intervalSet(taken),
      consumed_energy: -1,
      metadata: '',
    };
    this.file.line(COLUMNS.map((column) => quoted(row[column])).join(','));
  }

  close(): void {
    this.file.close();
  }
}

const quoted = (value: string | number): string =>
  typeof value === 'string' && /[",\r\n]/.test(value) ? `"${value.replaceAll('"', '""')}"` : String(value);

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
