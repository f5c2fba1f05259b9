/** The machines of a simulation: one of counted processors, or a site for each line of a file. */
import { readFile } from 'node:fs/promises';
import type { Machine, Site } from '../core/index.js';
import type { World } from './engine.js';
import { unpacked } from './swf.js';

/** More processors at a site than this are a mistake in the file. */
const MAX_PROCESSORS = 1e7;

/** A site with one machine of `processors` CPUs: processors are counted, not placed. */
export function countedWorld(sites: readonly { id: number; name: string; processors: number }[]): World {
  return {
    sites: sites.map(({ id, name }): Site => ({ id, name, state: 'UP', localPolicy: null })),
    machines: sites.map(
      ({ id, processors }): Machine => ({
        id,
        siteId: id,
        cpus: processors,
        memoryMb: 0,
        benchmark: 1,
        os: '',
        arch: '',
        licences: [],
        available: true,
      }),
    ),
    licences: [],
    changes: [],
  };
}

/**
 * Reads a file of sites: CSV, gzipped or not, whose first line names the columns. `site` (the number that the trace has as
 * the partition) and `capacity` (processors) are needed, `name` is taken, others are left alone. Throws naming line,
 * column and what is accepted.
 */
export async function readSites(path: string): Promise<{ id: number; name: string; processors: number }[]> {
  const lines = unpacked(await readFile(path))
    .toString('utf8')
    .split(/\r?\n/);
  const columns = (lines[0] ?? '').split(',').map((column) => column.trim());
  for (const column of ['site', 'capacity']) {
    if (!columns.includes(column))
      throw new Error(`${path}: column ${column} is missing in line 1; there are ${columns.join(', ')}`);
  }
  const seen = new Set<number>();
  return lines.slice(1).flatMap((line, i) => {
    if (line.trim() === '') return [];
    const cells = line.split(',').map((cell) => cell.trim());
    const whole = (column: string, max: number): number => {
      const text = cells[columns.indexOf(column)] ?? '';
      const value = Number(text);
      if (Number.isInteger(value) && value >= 1 && value <= max) return value;
      throw new Error(
        `${path}, line ${i + 2}: ${column} is "${text}"; accepted is a whole number from 1 to ${max}`,
      );
    };
    const id = whole('site', 2 ** 31 - 1);
    if (seen.has(id)) throw new Error(`${path}, line ${i + 2}: site ${id} was there before`);
    seen.add(id);
    const name = cells[columns.indexOf('name')] || `site-${id}`;
    return [{ id, name, processors: whole('capacity', MAX_PROCESSORS) }];
  });
}
