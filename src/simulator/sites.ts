/** The machines of a simulation: one of counted processors, or a site for each line of a file. */
import { readFile } from 'node:fs/promises';
import type { Machine, Site } from '../core/index.js';
import type { World } from './engine.js';
import { unpacked } from './swf.js';

/** More processors at a site than this are a mistake in the file. */
const MAX_PROCESSORS = 1e7;
const MAX_MACHINES = 1e5;

/** A site as a file declares it. */
export interface SiteShape {
  id: number;
  name: string;
  processors: number;
  /** On which they are, equally many on each; 1 unless said. */
  machines?: number;
  /** Tasks that share a machine at most; null or left out: each has processors of its own. */
  maxTasks?: number | null;
  /** Jobs that run there at once at most; null or left out: as many as fit. */
  maxRunningJobs?: number | null;
}

/** Sites of so many CPUs. On one machine, processors are counted, not placed. */
export function countedWorld(shapes: readonly SiteShape[]): World {
  const single = shapes.every(({ machines = 1 }) => machines === 1);
  let lastMachine = 0;
  return {
    sites: shapes.map(
      ({ id, name, maxRunningJobs = null }): Site => ({
        id,
        name,
        state: 'UP',
        localPolicy: null,
        maxRunningJobs,
      }),
    ),
    machines: shapes.flatMap(({ id: siteId, processors, machines = 1, maxTasks = null }) =>
      Array.from(
        { length: machines },
        (): Machine => ({
          id: single ? siteId : ++lastMachine,
          siteId,
          cpus: processors / machines,
          memoryMb: 0,
          benchmark: 1,
          os: '',
          architecture: '',
          licenseIds: [],
          available: true,
          maxTasks,
        }),
      ),
    ),
    licenses: [],
    changes: [],
  };
}

/** Processors of the widest job that the site can run: on time-shared machines, a task on each. */
export const widestAt = ({ processors, machines = 1, maxTasks = null }: SiteShape): number =>
  maxTasks === null ? processors : machines;

/**
 * Reads a file of sites: CSV, gzipped or not, whose first line names the columns. `site` (the number that the trace has as
 * the partition) and `capacity` (processors) are needed; `name`, `machines`, `maxTasks` and `maxRunningJobs` (see
 * {@link SiteShape}) are taken where they say something, others are left alone. Throws naming line, column and what is
 * accepted.
 */
export async function readSites(path: string): Promise<SiteShape[]> {
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
    const textOf = (column: string): string => cells[columns.indexOf(column)] ?? '';
    const whole = (column: string, max: number): number => {
      const text = textOf(column);
      const value = Number(text);
      if (Number.isInteger(value) && value >= 1 && value <= max) return value;
      throw new Error(
        `${path}, line ${i + 2}: ${column} is "${text}"; accepted is a whole number from 1 to ${max}`,
      );
    };
    const id = whole('site', 2 ** 31 - 1);
    if (seen.has(id)) throw new Error(`${path}, line ${i + 2}: site ${id} was there before`);
    seen.add(id);
    const optional = (column: string, max: number): number | null =>
      textOf(column) === '' ? null : whole(column, max);
    const processors = whole('capacity', MAX_PROCESSORS);
    const machines = optional('machines', MAX_MACHINES) ?? 1;
    if (processors % machines !== 0)
      throw new Error(
        `${path}, line ${i + 2}: machines is ${machines}; accepted is what divides the capacity, ${processors}`,
      );
    return [
      {
        id,
        name: textOf('name') || `site-${id}`,
        processors,
        machines,
        maxTasks: optional('maxTasks', MAX_PROCESSORS),
        maxRunningJobs: optional('maxRunningJobs', MAX_PROCESSORS),
      },
    ];
  });
}
