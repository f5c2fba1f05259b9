/** The reference schedules in ../shared/data, where they are there, and the traces they belong to. */
import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { gunzipSync } from 'node:zlib';
import type { SiteShape } from '../../../src/simulator/sites.js';

const data = new URL('../../../../shared/data/', import.meta.url);

/** True when the shared data lies beside the checkout. */
export const haveTraces = existsSync(new URL('traces/', data));

export const tracePath = (name: string): string => fileURLToPath(new URL(`traces/${name}.swf.gz`, data));

/** Rows of a reference file as objects of numbers. */
export function readReference(name: string): Record<string, number>[] {
  const [heading, ...lines] = gunzipSync(readFileSync(new URL(`reference/${name}.csv.gz`, data)))
    .toString('latin1')
    .trim()
    .split('\n');
  const columns = heading!.trim().split(',');
  return lines.map((line) => {
    const values = line.split(',').map(Number);
    return Object.fromEntries(columns.map((column, i) => [column, values[i]!]));
  });
}

/** The sites of a trace of a grid. */
export const capacitiesOf = (name: string): SiteShape[] =>
  readReference(`${name}.sites`).map(({ site, capacity }) => ({
    id: site as number,
    name: `site-${site}`,
    processors: capacity as number,
  }));
