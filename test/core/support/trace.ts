/** Reads the archive's traces and reference schedules from ../shared/data, where they are there. */
import { existsSync, readFileSync } from 'node:fs';
import { gunzipSync } from 'node:zlib';

const data = new URL('../../../../shared/data/', import.meta.url);

/** True when the shared data lies beside the checkout. */
export const haveTraces = existsSync(new URL('traces/', data));

export interface TraceJob {
  id: number;
  submit: number;
  run: number;
  requested: number;
  cpus: number;
}

const lines = (path: string): string[] =>
  gunzipSync(readFileSync(new URL(path, data)))
    .toString('latin1')
    .split('\n');

/** A trace, cleaned in the order that the data's README gives; jobs without a requested time are dropped. */
export function readTrace(name: string, processors: number): TraceJob[] {
  const jobs: TraceJob[] = [];
  for (const line of lines(`traces/${name}.swf.gz`)) {
    if (line.startsWith(';') || line.trim() === '') continue;
    const field = line.trim().split(/\s+/).map(Number);
    const [id, submit, , run, allocated, , , wanted, requested] = field as number[];
    const cpus = (wanted as number) > 0 ? (wanted as number) : (allocated as number);
    if (cpus > processors || cpus <= 0 || (run as number) <= 0) continue;
    if ((requested as number) <= 0 || (submit as number) < 0) continue;
    jobs.push({
      id: id as number,
      submit: submit as number,
      run: Math.min(run as number, requested as number),
      requested: requested as number,
      cpus,
    });
  }
  return jobs;
}

/** By job id: start time in a reference schedule. */
export function readStarts(name: string): Map<number, number> {
  const rows = lines(`reference/${name}.csv.gz`)
    .slice(1)
    .filter((line) => line !== '');
  return new Map(
    rows.map((row) => {
      const [id, , start] = row.split(',').map(Number) as [number, number, number];
      return [id, start];
    }),
  );
}
