/** The machines of a simulation: one of counted processors, or the sites and outages of files. */
import { z } from 'zod';
import {
  checked,
  cpusOf,
  type Held,
  type Machine,
  RandomStream,
  type Site,
  sayFault,
  type TreeScheduler,
} from '../core/index.js';
import { MAX } from '../platform/limits.js';
import type { Change, World } from './engine.js';
import { holdsInTurn, type KnownHold } from './holds.js';
import { nameOf, textOf } from './input.js';
import type { SimJob } from './workload.js';

/** More processors at a site than this are a mistake in the file. */
export const MAX_PROCESSORS = 1e7;
const MAX_MACHINES = 1e5;
const MAX_SITES = 1e5;
const MAX_FILE_BYTES = 16 * 1024 ** 2;

const whole = (max: number) => {
  const error = `a whole number from 1 to ${max}`;
  return z.int({ error }).min(1, { error }).max(max, { error });
};
const number = (min: number, max: number) => {
  const error = `a number from ${min} to ${max}`;
  return z.number({ error }).min(min, { error }).max(max, { error });
};

const speed = number(1e-3, 1e3).describe(
  'Speed: how many seconds of the trace a processor computes per second; by default 1.',
);
const memoryMb = whole(1e9).describe(
  'Memory of each machine. If it is given, a job needs the memory per processor that it requested in the trace.',
);
const maxTasks = whole(MAX_PROCESSORS)
  .nullable()
  .describe('How many tasks may share the processors of a machine; null or omitted: not time-shared.');

/** Of schedulers, from the root down. */
const isPath = (names: readonly string[]): boolean =>
  names.length <= MAX.treeDepth &&
  names.every((name) => name.trim() === name && name !== '' && name.length <= 200);
const PATH = `1 to ${MAX.treeDepth} names with / between, each of 1 to 200 characters`;

const groupSchema = z.strictObject({
  count: whole(MAX_MACHINES).describe('Machines of this kind.'),
  cpus: whole(MAX_PROCESSORS).describe('Processors of each.'),
  speed: speed.optional(),
  memoryMb: memoryMb.optional(),
  maxTasks: maxTasks.optional(),
});
export type MachineGroup = z.infer<typeof groupSchema>;

const siteSchema = z
  .strictObject({
    site: whole(2 ** 31 - 1).describe('The partition number that jobs of the trace have.'),
    name: z
      .string({ error: 'a text' })
      .min(1, { error: 'a text of 1 to 200 characters' })
      .max(200, { error: 'a text of 1 to 200 characters' })
      .optional()
      .describe('In a trace in the Grid Workload Format, the site of submission that jobs name.'),
    capacity: whole(MAX_PROCESSORS).optional().describe('Processors, spread evenly over the machines.'),
    machines: z
      .union([whole(MAX_MACHINES), z.array(groupSchema).min(1).max(1000)], {
        error: `a whole number from 1 to ${MAX_MACHINES}, or a list of kinds of machine`,
      })
      .optional()
      .describe(
        'The number of machines, together with capacity; or the kinds of machines, without it. By default 1.',
      ),
    speed: speed.optional(),
    memoryMb: memoryMb.optional(),
    maxTasks: maxTasks.optional(),
    maxRunningJobs: whole(MAX_PROCESSORS)
      .nullable()
      .optional()
      .describe('How many jobs may run at the site at the same time; null or omitted: as many as fit.'),
    scheduler: z
      .string({ error: PATH })
      .refine((path) => isPath(path.split('/')), { error: PATH })
      .optional()
      .describe(
        'The schedulers between the root and the site under grid-tree, from the top down, as names separated by /: west/north. If omitted, the site is directly under the root.',
      ),
  })
  .describe('A site.');
type SiteEntry = z.infer<typeof siteSchema>;

/** A file of sites in JSON; `switchyard schema sites` shows it. */
export const sitesSchema = z
  .strictObject({
    sites: z
      .array(siteSchema, { error: 'a list of sites' })
      .min(1, { error: 'at least one site' })
      .max(MAX_SITES, { error: `at most ${MAX_SITES} sites` }),
  })
  .describe('Sites to simulate.');

/** A site as a file declares it. */
export interface SiteShape {
  id: number;
  name: string;
  processors: number;
  /** On which they are, equally many on each; by default 1. */
  machines?: number;
  /** Tasks that share a machine at most; null or left out: each has processors of its own. */
  maxTasks?: number | null;
  /** Jobs that run there at once at most; null or left out: as many as fit. */
  maxRunningJobs?: number | null;
  /** Of the schedulers above it, from below the root down, with / between; left out: it is directly under the root. */
  scheduler?: string;
  /** Of its machines; by default 1. */
  speed?: number;
  /** Of each machine; 0 unless said: memory does not matter. */
  memoryMb?: number;
  /** Machines of several kinds, instead of `machines`, `maxTasks`, `speed` and `memoryMb`. */
  groups?: readonly MachineGroup[];
}

/** The kinds of machine at a site. */
function groupsOf({
  processors,
  machines = 1,
  maxTasks,
  speed,
  memoryMb,
  groups,
}: SiteShape): readonly MachineGroup[] {
  return groups ?? [{ count: machines, cpus: processors / machines, maxTasks, speed, memoryMb }];
}

const count = (groups: readonly MachineGroup[]): number =>
  groups.reduce((sum, group) => sum + group.count, 0);

/** Whether all sites have one machine: then processors are counted, not placed. */
export const isCounted = (shapes: readonly SiteShape[]): boolean =>
  shapes.every((shape) => {
    const groups = groupsOf(shape);
    return count(groups) === 1 && !groups[0]?.maxTasks;
  });

/** Whether any machine's memory is said: then jobs need some. */
export const hasMemory = (shapes: readonly SiteShape[]): boolean =>
  shapes.some((shape) => groupsOf(shape).some(({ memoryMb }) => memoryMb !== undefined));

/** Sites of so many CPUs. On one machine, processors are counted, not placed. */
export function countedWorld(shapes: readonly SiteShape[]): World {
  const single = shapes.every((shape) => count(groupsOf(shape)) === 1);
  const schedulers = schedulersOf(shapes);
  let lastMachine = 0;
  return {
    sites: shapes.map(
      ({ id, name, maxRunningJobs = null, scheduler }): Site => ({
        id,
        name,
        state: 'UP',
        localPolicy: null,
        maxRunningJobs,
        schedulerId: scheduler === undefined ? null : (schedulers.get(scheduler)?.id ?? null),
      }),
    ),
    schedulers: [...schedulers.values()],
    machines: shapes.flatMap((shape) =>
      groupsOf(shape).flatMap(({ count, cpus, maxTasks = null, speed = 1, memoryMb = 0 }) =>
        Array.from(
          { length: count },
          (): Machine => ({
            id: single ? shape.id : ++lastMachine,
            siteId: shape.id,
            cpus,
            memoryMb,
            benchmark: speed,
            os: '',
            architecture: '',
            licenseIds: [],
            available: true,
            maxTasks,
          }),
        ),
      ),
    ),
    licenses: [],
    changes: [],
  };
}

/** By path, those above before those below. */
function schedulersOf(shapes: readonly SiteShape[]): Map<string, TreeScheduler> {
  const byPath = new Map<string, TreeScheduler>();
  for (const { scheduler } of shapes) {
    let above = '';
    for (const name of scheduler?.split('/') ?? []) {
      const path = above === '' ? name : `${above}/${name}`;
      const parentId = byPath.get(above)?.id ?? null;
      if (!byPath.has(path)) byPath.set(path, { id: byPath.size + 1, name: path, parentId });
      above = path;
    }
  }
  return byPath;
}

/** Processors of the widest job that the site can run: on time-shared machines, a task on each. */
export const widestAt = (shape: SiteShape): number =>
  groupsOf(shape).reduce((sum, { count, cpus, maxTasks }) => sum + (maxTasks ? count : count * cpus), 0);

/**
 * Reads a file of sites, gzipped or not: JSON (`sitesSchema`), or CSV whose first line names the columns, which are the
 * fields of a site in JSON; `site` and `capacity` are needed, an empty cell says nothing. Throws naming the line, or the place in
 * the JSON, the value and what is accepted.
 */
export async function readSites(path: string): Promise<SiteShape[]> {
  const text = await textOf(path, MAX_FILE_BYTES);
  const name = nameOf(path);
  const shapes = /^\s*\{/.test(text)
    ? sitesInJson(text, name)
    : rowsOf(text, name, siteSchema, ['site', 'capacity']).map(({ row, line }) =>
        shapeOf(row, `${name}, line ${line}`, ''),
      );
  const seen = new Set<number>();
  for (const { id } of shapes) {
    if (seen.has(id)) throw new Error(`${name}: site ${id} is given twice`);
    seen.add(id);
  }
  return shapes;
}

function sitesInJson(text: string, name: string): SiteShape[] {
  const { sites } = read(sitesSchema, jsonIn(text, name), name);
  return sites.map((site, i) => shapeOf(site, name, `sites[${i}].`));
}

function jsonIn(text: string, name: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new Error(`${name}: ${(error as Error).message}`);
  }
}

function shapeOf(
  { site, name = `site-${site}`, capacity, machines = 1, ...rest }: SiteEntry,
  where: string,
  at: string,
): SiteShape {
  const wrong = (field: string, value: unknown, accepted: string): Error =>
    new Error(`${where}: ${at}${field} is ${value}; accepted: ${accepted}`);
  if (typeof machines !== 'number') {
    if (capacity !== undefined)
      throw wrong('capacity', capacity, 'no value together with a list of machines');
    for (const field of ['speed', 'memoryMb', 'maxTasks'] as const)
      if (rest[field] !== undefined)
        throw wrong(field, rest[field], 'no value together with a list of machines');
    const processors = machines.reduce((sum, { count, cpus }) => sum + count * cpus, 0);
    if (count(machines) > MAX_MACHINES)
      throw wrong('machines', count(machines), `at most ${MAX_MACHINES} in all`);
    if (processors > MAX_PROCESSORS)
      throw wrong('machines', processors, `at most ${MAX_PROCESSORS} processors in all`);
    const { maxRunningJobs = null, scheduler } = rest;
    return { id: site, name, processors, groups: machines, maxRunningJobs, scheduler };
  }
  if (capacity === undefined)
    throw wrong('capacity', 'missing', `a whole number from 1 to ${MAX_PROCESSORS}`);
  if (capacity % machines !== 0) throw wrong('machines', machines, `a divisor of the capacity, ${capacity}`);
  return { id: site, name, processors: capacity, machines, ...rest };
}

const outageSchema = z.strictObject({
  site: whole(2 ** 31 - 1),
  machine: whole(MAX_MACHINES).optional(),
  from: number(0, 1e12),
  to: number(0, 1e12),
  runs: z.enum(['lost', 'finish'], { error: 'lost or finish' }).optional(),
});

/** Machines of a site that are away for a while. */
export interface Outage {
  siteId: number;
  /** Among those of the site, from 1; null: all. */
  machine: number | null;
  fromS: number;
  toS: number;
  /** Whether what runs there is lost and starts over, or goes on while nothing new starts. */
  losesRuns: boolean;
}

/**
 * Reads a file of outages, gzipped or not: CSV with the columns `site`, `from` and `to` (seconds of the trace), and optionally
 * `machine` (from 1 within the site; all unless said) and `runs` (`lost`, which it is unless said, or `finish`).
 */
export async function readOutages(path: string): Promise<Outage[]> {
  const name = nameOf(path);
  const rows = rowsOf(await textOf(path, MAX_FILE_BYTES), name, outageSchema, ['site', 'from', 'to']);
  return rows.map(({ row: { site, machine = null, from, to, runs = 'lost' }, line }) => {
    if (to <= from)
      throw new Error(`${name}, line ${line}: to is ${to}; accepted: a time later than ${from}`);
    return { siteId: site, machine, fromS: from, toS: to, losesRuns: runs === 'lost' };
  });
}

/** Of each machine by itself. */
export interface Failures {
  /** Mean seconds from a repair to the next failure, and of a repair; both are exponential. */
  betweenS: number;
  repairS: number;
}

/** Failures go on after the last submission for as long as all work would take on a tenth of the machines. */
const TAIL = 10;

/** Failures of machines, each with a stream of its own: another machine more does not change when the others fail. The same for the same seed. */
export function failuresOf(
  { machines }: World,
  jobs: readonly SimJob[],
  { betweenS, repairS }: Failures,
  seed: number,
): Outage[] {
  const cpus = machines.reduce((sum, machine) => sum + machine.cpus, 0);
  const work = jobs.reduce((sum, { job, runS }) => sum + cpusOf(job) * runS, 0);
  const firstS = jobs[0]?.job.submittedAt ?? 0;
  const untilS = (jobs.at(-1)?.job.submittedAt ?? 0) + (TAIL * work) / cpus;
  const expected = (machines.length * (untilS - firstS)) / (betweenS + repairS);
  if (expected > MAX_CHANGES / 2)
    throw new Error(
      `failures: about ${Math.round(expected)} of machines; accepted: ${MAX_CHANGES / 2}. Make them rarer`,
    );
  const numbers = new Map<number, number>();
  return machines.flatMap(({ siteId }) => {
    const machine = (numbers.get(siteId) ?? 0) + 1;
    numbers.set(siteId, machine);
    const random = new RandomStream(seed, `failures-${siteId}-${machine}`);
    const outages: Outage[] = [];
    for (let at = firstS + random.exponential(betweenS); at < untilS; ) {
      const toS = at + Math.max(1, random.exponential(repairS));
      outages.push({ siteId, machine, fromS: at, toS, losesRuns: true });
      at = toS + random.exponential(betweenS);
    }
    return outages;
  });
}

/** Machines of a site that are closed for a while, as everybody knows before. */
export interface MaintenanceWindow extends Omit<Outage, 'losesRuns'> {
  /** Since when; unless said, from the beginning. */
  knownS?: number;
  /** Runs that would reach into it are stopped ahead of it by their grace; unless said, they go on. */
  stopsRuns?: boolean;
}

const windowSchema = outageSchema.extend({
  known: number(0, 1e12).optional(),
  runs: z.enum(['finish', 'stop'], { error: 'finish or stop' }).optional(),
});

/**
 * Reads a file of maintenance windows, gzipped or not: CSV with the columns `site`, `from` and `to` (seconds of the trace), and optionally
 * `machine`, `known` (the second from which schedulers know of it; from the beginning unless said) and `runs` (`finish`, which it is unless
 * said, or `stop`).
 */
export async function readWindows(path: string): Promise<MaintenanceWindow[]> {
  const name = nameOf(path);
  const rows = rowsOf(await textOf(path, MAX_FILE_BYTES), name, windowSchema, ['site', 'from', 'to']);
  return rows.map(({ row: { site, machine = null, from, to, known = 0, runs = 'finish' }, line }) => {
    if (to <= from)
      throw new Error(`${name}, line ${line}: to is ${to}; accepted: a time later than ${from}`);
    return { siteId: site, machine, fromS: from, toS: to, knownS: known, stopsRuns: runs === 'stop' };
  });
}

/**
 * The world with maintenance windows: as in the service, schedulers know the next ones of each site (WINDOWS_KNOWN), and no job starts that
 * could still run, by its limit, when one begins. What began before one was known goes on, or is stopped as the service stops it.
 */
export function withWindows(world: World, windows: readonly MaintenanceWindow[]): World {
  const bySite = new Map<number, KnownHold[]>();
  windows.forEach(({ siteId, machine, fromS, toS, knownS = 0, stopsRuns = false }, i) => {
    const there = world.machines.filter((one) => one.siteId === siteId);
    if (there.length === 0) throw new Error(`windows: there is no site ${siteId}`);
    const closed = machine === null ? undefined : there[machine - 1];
    if (machine !== null && closed === undefined)
      throw new Error(`windows: machine ${machine} of site ${siteId}; accepted: 1 to ${there.length}`);
    const held: Held = {
      ...{ id: i + 1, by: 'WINDOW', from: fromS, to: toS, ends: 'LIMIT', pools: [] },
      ...(closed === undefined
        ? { machines: [], siteId }
        : { machines: [{ machineId: closed.id, amounts: null }] }),
    };
    const known: KnownHold = {
      ...{ siteId, held, knownFrom: knownS, knownUntil: Infinity },
      ...(stopsRuns && { stopsFor: held.id }),
    };
    bySite.set(siteId, [...(bySite.get(siteId) ?? []), known]);
  });
  const changes = [...bySite.values()].flatMap((holds) => holdsInTurn(holds, WINDOWS_KNOWN));
  return { ...world, changes: [...world.changes, ...changes] };
}

/** Of each site: `TIMES_KNOWN` of the service, for as many holds as a site is likely to have. */
const WINDOWS_KNOWN = 64;

/** Changes that outages may make of the machines in all. */
const MAX_CHANGES = 1e6;

/** The world with outages. Where several overlap on a machine, it is away until the last has ended. */
export function withOutages(world: World, outages: readonly Outage[]): World {
  const machinesOf = new Map<number, Machine[]>();
  for (const machine of world.machines) {
    const there = machinesOf.get(machine.siteId);
    if (there === undefined) machinesOf.set(machine.siteId, [machine]);
    else there.push(machine);
  }
  const byMachine = new Map<Machine, Outage[]>();
  let parts = 0;
  for (const outage of outages) {
    const there = machinesOf.get(outage.siteId);
    if (there === undefined) throw new Error(`outages: there is no site ${outage.siteId}`);
    const concerned = outage.machine === null ? there : there.slice(outage.machine - 1, outage.machine);
    if (concerned.length === 0) {
      const accepted = `1 to ${there.length}`;
      throw new Error(`outages: machine ${outage.machine} of site ${outage.siteId}; accepted: ${accepted}`);
    }
    parts += concerned.length;
    if (parts > MAX_CHANGES) throw new Error(`outages: more than ${MAX_CHANGES} of single machines`);
    for (const machine of concerned) {
      const own = byMachine.get(machine);
      if (own === undefined) byMachine.set(machine, [outage]);
      else own.push(outage);
    }
  }
  const changes = [...byMachine].flatMap(([machine, own]) => changesOf(machine, own));
  return { ...world, changes: [...world.changes, ...changes] };
}

/** A machine with all that it ran is gone for a while. */
export interface Away {
  siteId: number;
  cpus: number;
  fromS: number;
  toS: number;
}

/** When machines are gone. One whose runs may finish still computes, and is not. */
export function awayIn({ changes }: World): Away[] {
  const away: Away[] = [];
  const since = new Map<number, number>();
  for (const { at, machine, losesRuns } of [...changes].sort((a, b) => a.at - b.at)) {
    if (machine === undefined) continue;
    const { id, siteId, cpus, available } = machine;
    const fromS = since.get(id);
    if (!available && losesRuns) since.set(id, fromS ?? at);
    if (!available || fromS === undefined) continue;
    away.push({ siteId, cpus, fromS, toS: at });
    since.delete(id);
  }
  return away;
}

function changesOf(machine: Machine, outages: readonly Outage[]): Change[] {
  const changes: Change[] = [];
  let backS = Number.NEGATIVE_INFINITY;
  for (const { fromS, toS, losesRuns } of [...outages].sort((a, b) => a.fromS - b.fromS)) {
    if (fromS > backS && changes.length > 0) changes.push({ at: backS, machine });
    changes.push({ at: fromS, machine: { ...machine, available: false }, losesRuns });
    backS = Math.max(backS, toS);
  }
  changes.push({ at: backS, machine });
  return changes;
}

/** The rows of a CSV text as objects of the schema. Cells are split at commas; an empty one says nothing. */
function rowsOf<S extends z.ZodObject>(
  text: string,
  name: string,
  schema: S,
  needed: readonly string[],
): { row: z.infer<S>; line: number }[] {
  const [heading = '', ...lines] = text.split(/\r?\n/);
  const columns = heading.split(',').map((column) => column.trim());
  const known = Object.keys(schema.shape);
  const missing = needed.find((column) => !columns.includes(column));
  if (missing !== undefined)
    throw new Error(
      `${name}, line 1: column ${missing} is missing; there are ${columns.join(', ').slice(0, 200)}`,
    );
  const unknown = columns.find((column, i) => !known.includes(column) || columns.indexOf(column) !== i);
  if (unknown !== undefined)
    throw new Error(
      `${name}, line 1: column "${unknown}" is not accepted; accepted: each once of ${known.join(', ')}`,
    );
  const rows = lines.flatMap((content, i) => {
    if (content.trim() === '') return [];
    const line = i + 2;
    const cells = content.split(',').map((cell) => cell.trim());
    if (cells.length > columns.length)
      throw new Error(
        `${name}, line ${line}: ${cells.length} cells; accepted: ${columns.length}, one for each column`,
      );
    // A name may look like a number.
    const filled = columns.flatMap((column, at) => {
      const cell = cells[at];
      return cell ? [[column, TEXTS.includes(column) ? cell : numberOrText(cell)] as const] : [];
    });
    const absent = needed.find((column) => !filled.some(([one]) => one === column));
    if (absent !== undefined) throw new Error(`${name}, line ${line}: ${absent} is missing`);
    const row = Object.fromEntries(filled);
    return [{ row: read(schema, row, `${name}, line ${line}`), line }];
  });
  if (rows.length === 0) throw new Error(`${name}: nothing below its first line`);
  return rows;
}

const TEXTS = ['name', 'scheduler'];
const numberOrText = (cell: string): string | number =>
  /^[+-]?\d+(\.\d+)?$/.test(cell) ? Number(cell) : cell;

/** Throws naming the place, the value and what is accepted, of the first thing that is wrong. */
const read = <S extends z.ZodType>(schema: S, value: unknown, where: string): z.output<S> =>
  checked(schema, value, ([fault]) => new Error(`${where}: ${sayFault(fault, 'the whole')}`));
