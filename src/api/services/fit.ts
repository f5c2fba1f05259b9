/** Whether anything that is registered could ever run a job: what cannot is told to whoever submits it, with the nearest that can. */

import { numbersOf } from '../../core/explain/placement.js';
import type { Requirement } from '../../core/grid/requirements.js';
import { Grid, type Job } from '../../core/index.js';
import {
  ANY_TASKS_PER_MACHINE,
  type JobPart,
  ofPart,
  poolsAskedBy,
  type SiteLoad,
} from '../../core/model.js';
import { perMachine, reasonSentence, WaitingReason } from '../../core/reasons.js';
import { CONTAINERS, TERMINAL } from '../../core/resources/constraint.js';
import { type DeviceRequest, shownRequest } from '../../core/resources/devices.js';
import {
  isTooLong,
  longestAt,
  unsatisfied,
  whyNeverFits,
  whyNowhere,
  whyPartsNowhere,
} from '../../core/resources/eligibility.js';
import { deviceLabels } from '../../core/resources/units.js';
import type { PeerRow } from '../../store/directory/peers.js';
import { firstVersionOf, fitsKinds, mayLeave, VERSION_UNKNOWN } from '../../store/federation.js';
import type { Queries } from '../../store/queries.js';
import type { LicenseRow, MachineRow } from '../../store/rows.js';
import { amountsIn, devicesIn, labelsIn, submittedJob } from '../../store/rules.js';
import type { NewJob } from '../../store/store.js';
import type { Fault } from './job-input.js';
import { type Remembered, remembered } from './remembered.js';

/** How long the machines are remembered. */
const FRESH_S = 2;
/** More than anybody has; with more nothing is refused. */
const MOST = 10_000;
const SHOWN = 10;

/** What is registered, as far as it decides who could ever run a job. */
export interface Resources {
  grid: Grid;
  machines: readonly MachineRow[];
  licenses: readonly LicenseRow[];
  /** That may be offered jobs of ours. */
  peers: readonly PeerRow[];
}

/** What tells of a job why nothing could run it; null: something can, or nothing is registered yet. */
export type Judge = (job: NewJob) => Fault | null;

/** The same of jobs that are submitted: what fits is known at once, and before one is refused, what is registered is looked at again. */
export type Fit = (job: NewJob) => null | Promise<Fault | null>;

export interface Fits {
  /** By what is remembered, as far as nothing is refused. */
  remembered(): Promise<Fit>;
  /** By what is registered now. */
  afresh(): Promise<Judge>;
}

type Reads = Pick<Queries, 'sites' | 'machines' | 'licenses' | 'latestCursor' | 'isRegisteredAnew'>;

/**
 * What is registered is remembered for a while, here and in every other process of the API. `afresh` reads it again only if the events say
 * that it has changed; peers, of which there are few and which have no events, always.
 */
export function createResources(
  queries: Reads,
  directory: { peers(): Promise<PeerRow[]> },
  now: () => number,
): Remembered<Resources> {
  async function readGrid() {
    // First: what changes while it is read is read again.
    const cursor = await queries.latestCursor();
    const [sites, machines, licenses] = await Promise.all([
      queries.sites('', MOST),
      queries.machines(null, null, MOST),
      queries.licenses(null, MOST),
    ]);
    const grid = new Grid();
    for (const { id, name, state, load, maxLimitS } of sites)
      grid.setSite({
        ...{ id, name, state, maxLimitS, localPolicy: null },
        load: load === null ? null : ownLoad(load),
      });
    for (const { id, kind, copies, siteId } of licenses) grid.setLicense({ id, kind, copies, siteId });
    for (const machine of machines)
      grid.setMachine({
        ...machine,
        ...{ resources: amountsIn(machine.resources), labels: labelsIn(machine) },
        ...{ devices: devicesIn(machine.devices), available: true },
      });
    return { cursor, grid, machines, licenses };
  }

  const ofGrid = remembered(
    FRESH_S,
    now,
    readGrid,
    async ({ cursor }) => !(await queries.isRegisteredAnew(cursor)),
  );
  const peers = remembered(FRESH_S, now, async () =>
    (await directory.peers()).filter(({ isolated, forward }) => !isolated && forward !== 'NEVER'),
  );
  const both = async (
    grid: ReturnType<typeof ofGrid>,
    asked: ReturnType<typeof peers>,
  ): Promise<Resources> => ({ ...(await grid), peers: await asked });
  return Object.assign(() => both(ofGrid(), peers()), {
    afresh: () => both(ofGrid.afresh(), peers.afresh()),
  });
}

/** Of a site that schedules itself: all that decides what it could ever run. As `reportLoad` has stored it. */
const ownLoad = (load: unknown): SiteLoad => ({
  ...{ waitingJobs: 0, waitingS: 0, waitingCpuS: 0, busy: [] },
  takesParts: (load as SiteLoad).takesParts ?? false,
  takesDevices: (load as SiteLoad).takesDevices ?? false,
});

/** Nothing is registered yet, or more than is looked at. */
export const isUnknown = ({ machines }: Resources): boolean =>
  machines.length === 0 || machines.length === MOST;

/** What a job asks of machines and licenses: by this it is judged. */
export const NEEDS = [
  ...([
    'os',
    'architecture',
    'machineConstraint',
    'image',
    'licenses',
    'resources',
    'tasks',
    'cpusPerTask',
  ] as const),
  ...(['memoryMbPerTask', 'resourcesPerTask', 'tasksPerMachine', 'exclusive', 'allAlike'] as const),
  ...(['sameSwitch', 'devicesPerTask', 'parts', 'runTimeLimitS'] as const),
] as const;

export const createFits = (known: Remembered<Resources>): Fits => ({
  async remembered() {
    const judge = judgeBy(await known());
    let latest: Promise<Judge> | null = null;
    const again = async (job: NewJob): Promise<Fault | null> => {
      latest ??= known.afresh().then(judgeBy);
      return (await latest)(job);
    };
    return (job) => (judge(job) === null ? null : again(job));
  },
  afresh: async () => judgeBy(await known.afresh()),
});

function judgeBy(resources: Resources): Judge {
  if (isUnknown(resources)) return () => null;
  // Jobs of a submission are mostly alike.
  const judged = new Map<string, Fault | null>();
  return (job) => {
    const key = JSON.stringify([
      ...NEEDS.map((field) => job[field]),
      ...[job.class, firstVersionOf(job), mayLeave(job)],
    ]);
    let fault = judged.get(key);
    if (fault === undefined) {
      fault =
        mayLeave(job) && resources.peers.some((peer) => couldRun(job, peer)) ? null : faultOf(job, resources);
      judged.set(key, fault);
    }
    return fault;
  };
}

/** In the version of the protocol that the peer speaks, and in the job's class. */
const couldRun = (job: NewJob, { kinds, classes, hops, protocol }: PeerRow): boolean =>
  fitsKinds(job, kinds, hops) &&
  (protocol ?? VERSION_UNKNOWN) >= firstVersionOf(job) &&
  (job.class === null || classes.includes(job.class));

const never = (field: string, value: string, nearest: string): Fault => ({
  field,
  code: 'NEVER_FITS',
  message: `${field}: ${value} can never run on the registered machines; nearest: ${nearest}`,
});

const ANYBODYS = { id: 0, userId: 0, userClass: 'REGULAR', submittedAt: 0, groupId: null } as const;

/** As schedulers see it, whoever's it is. */
export const anybodys = (job: NewJob): Job => submittedJob(job, ANYBODYS);

/** Of pools: the first kind of which no site can have as much as the job asks for, or all of them, which are nowhere together. */
function neverPooled(job: NewJob, { grid, licenses }: Pick<Resources, 'grid' | 'licenses'>): Fault {
  const asked = poolsAskedBy(job);
  for (const { kind, amount } of asked) {
    const pools = licenses.filter((pool) => pool.kind === kind);
    const atSite = (siteId: number): number =>
      pools.reduce((sum, pool) => sum + ((pool.siteId ?? siteId) === siteId ? pool.copies : 0), 0);
    const most = Math.max(0, ...grid.sites.map(({ site }) => atSite(site.id)));
    if (most >= amount) continue;
    const unit = pools.find((pool) => pool.unit !== null)?.unit;
    const counted = (n: number): string => (unit ? `${n} ${unit}` : String(n));
    const site = grid.sites.find(({ site }) => atSite(site.id) === most)?.site.name;
    return never(
      kind in (job.resources ?? {}) ? 'resources' : 'licenses',
      `${kind}: ${counted(amount)}`,
      most === 0 ? 'none at any site' : `${counted(most)} at site ${site}`,
    );
  }
  return never(
    job.licenses.length > 0 ? 'licenses' : 'resources',
    asked.map(({ kind, amount }) => `${kind}:${amount}`).join(', '),
    `${poolsThere(licenses)}, but nowhere all of them together with a machine that can use them`,
  );
}

/** `matlab:2, cad:1`: what there is of each kind. */
function poolsThere(licenses: readonly LicenseRow[]): string {
  const there = new Map<string, number>();
  for (const { kind, copies } of licenses) there.set(kind, (there.get(kind) ?? 0) + copies);
  return (
    [...there]
      .slice(0, SHOWN)
      .map((each) => each.join(':'))
      .join(', ') || 'none'
  );
}

/** What it prefers it can do without. */
const required = (job: NewJob): NewJob => ({
  ...withoutPreference(job),
  parts: job.parts?.map(withoutPreference) ?? null,
});
const withoutPreference = <T extends Pick<JobPart, 'sameSwitch'>>(of: T): T =>
  of.sameSwitch?.maxWaitS == null ? of : { ...of, sameSwitch: null };

function faultOf(job: NewJob, resources: Resources): Fault | null {
  return job.parts === null ? faultOfTasks(job, resources) : faultOfParts(job, job.parts, resources);
}

/** What of a job of several parts no site could run: a part by itself, or beside those before it. */
function faultOfParts(job: NewJob, parts: readonly JobPart[], resources: Resources): Fault | null {
  const { grid } = resources;
  const requirement = grid.requirementOf(anybodys(required(job)));
  if (requirement.parts === null) return null;
  const nowhere = whyPartsNowhere(requirement, requirement.parts, grid.sites);
  if (nowhere === null) return null;
  if (nowhere.part === null)
    return never(
      'parts',
      `a job of ${parts.length} parts`,
      'a job without parts: all sites schedule themselves, and none of them takes parts',
    );
  const { at, of, besideOthers } = nowhere.part;
  const field = `parts[${at}]`;
  if (!besideOthers) {
    const part = parts[at] as JobPart;
    const alone = faultOfTasks(ofPart(job, part), resources);
    if (alone === null) return never(field, `${part.tasks} tasks`, 'nothing known');
    const named = `${field}.${alone.field}`;
    return { ...alone, field: named, message: alone.message.replace(alone.field, () => named) };
  }
  return never(
    `${field}.tasks`,
    `${of.tasks} next to the parts before it`,
    `the parts before it alone. ${reasonSentence(nowhere.why, numbersOf(requirement, grid))}`,
  );
}

function faultOfTasks(job: NewJob, { grid, machines, licenses }: Resources): Fault | null {
  const requirement = grid.requirementOf(anybodys(required(job)));
  const why = whyNowhere(requirement, grid.sites);
  if (why === null) return neverSoLong(job, requirement, grid);
  const able = machines.filter(
    ({ os, architecture }) => (job.os ?? os) === os && (job.architecture ?? architecture) === architecture,
  );
  const most = (of: (machine: MachineRow) => number): number => Math.max(0, ...able.map(of));
  const { tasks, cpusPerTask, memoryMbPerTask } = job;
  switch (why) {
    case WaitingReason.NEVER_FITS_PLATFORM: {
      const platforms = [...new Set(machines.map(({ os, architecture }) => `${os} ${architecture}`))];
      return never(
        job.os === null ? 'architecture' : 'os',
        `${job.os ?? 'any'} ${job.architecture ?? 'any'}`,
        platforms.slice(0, SHOWN).join(', '),
      );
    }
    case WaitingReason.NEVER_FITS_CONSTRAINT: {
      // Each part of it may be satisfied by some machine, if not all by one of the platform.
      const part = unsatisfied(requirement, grid.sites) ?? (job.machineConstraint as string);
      if (part === CONTAINERS && job.image !== null)
        return never('image', job.image, 'no machine has an agent that runs images (AGENT_IMAGES)');
      if (part === TERMINAL && job.terminal !== null) {
        const { rows, columns } = job.terminal;
        return never(
          'terminal',
          `${columns} × ${rows}`,
          'no machine has an agent that allows terminals (AGENT_TERMINALS)',
        );
      }
      return never(
        'machineConstraint',
        part,
        labelsThere(machines).slice(0, SHOWN).join(', ') || 'no machine has labels',
      );
    }
    case WaitingReason.NEVER_FITS_LICENSES:
      return neverPooled(job, { grid, licenses });
    case WaitingReason.NEVER_FITS_CPUS:
      return cpusPerTask > most(({ cpus }) => cpus)
        ? never('cpusPerTask', String(cpusPerTask), `${most(({ cpus }) => cpus)} CPUs on one machine`)
        : never(
            'tasks',
            `${tasks} with ${cpusPerTask} CPUs each`,
            `${tasksAt(able, job, 'cpus')} at one site`,
          );
    case WaitingReason.NEVER_FITS_MEMORY:
      return memoryMbPerTask > most(({ memoryMb }) => memoryMb)
        ? never(
            'memoryMbPerTask',
            `${memoryMbPerTask} MB`,
            `${most(({ memoryMb }) => memoryMb)} MB on one machine`,
          )
        : never(
            'tasks',
            `${tasks} with ${memoryMbPerTask} MB each`,
            `${tasksAt(able, job, 'memoryMb')} at one site`,
          );
    case WaitingReason.SITE_TAKES_NO_DEVICES:
    case WaitingReason.NEVER_FITS_RESOURCES:
      return neverOnMachines(job, able, why);
    case WaitingReason.NEVER_FITS_TASKS_PER_MACHINE:
      return never(
        'tasksPerMachine',
        `${tasks} tasks with ${perMachine(job.tasksPerMachine ?? ANY_TASKS_PER_MACHINE)} on each machine`,
        tasksOnMachines(able, job).slice(0, SHOWN).join(', '),
      );
    case WaitingReason.NEVER_FITS_ALL_ALIKE:
      return neverAlike(job, tasksAt(able, job, 'both'));
    default: {
      const most = `${tasksAt(able, job, 'both')} at one site`;
      return never('tasks', `${tasks} with all their requirements`, most);
    }
  }
}

/** No site that could run it takes a job with such a limit. */
function neverSoLong({ runTimeLimitS }: NewJob, requirement: Requirement, { sites }: Grid): Fault | null {
  if (runTimeLimitS === null || !sites.some(({ site }) => isTooLong(site, runTimeLimitS))) return null;
  const able = sites.filter(
    ({ resources }) => whyNeverFits(requirement, resources.everEligible(requirement.signature)) === null,
  );
  if (able.some(({ site }) => !isTooLong(site, runTimeLimitS))) return null;
  const longest = Math.max(...able.map(({ site }) => longestAt(site)));
  const where = able.find(({ site }) => longestAt(site) === longest)?.site.name;
  return never('runTimeLimitS', `${runTimeLimitS} s`, `${longest} s at site ${where}`);
}

/** Of devices and other resources of machines. */
function neverOnMachines(job: NewJob, able: readonly MachineRow[], why: WaitingReason): Fault {
  const requests = job.devicesPerTask ?? [];
  if (why === WaitingReason.SITE_TAKES_NO_DEVICES)
    return never(
      'devicesPerTask',
      shownRequests(requests),
      'whole devices by kind and model: all sites schedule themselves, and can be asked for nothing else',
    );
  if (requests.length > 0) return neverServed(requests, able);
  const asked = Object.entries(job.resourcesPerTask ?? {});
  const most = (kind: string): number =>
    Math.max(0, ...able.map(({ resources }) => amountsIn(resources)[kind] ?? 0));
  const named = (of: [string, number][]): string => of.map((one) => one.join('=')).join(', ');
  return never(
    'resourcesPerTask',
    named(asked),
    `${named(asked.map(([kind]) => [kind, most(kind)]))} on one machine`,
  );
}

const shownRequests = (requests: readonly DeviceRequest[]): string =>
  requests.map((request) => `${request.count} ${shownRequest(request)}`).join(', ');

/** Of the devices of the machines, what there is of each kind and model that is asked for. */
function neverServed(
  requests: readonly DeviceRequest[],
  able: readonly Pick<MachineRow, 'devices'>[],
): Fault {
  const kinds = new Set(requests.map(({ kind }) => kind));
  const there = new Set(
    able.flatMap((machine) => {
      const counts = new Map<string, number>();
      for (const { kind, model, memoryMb, shares } of devicesIn(machine.devices)) {
        if (!kinds.has(kind)) continue;
        const parts = shares === 1 ? '' : ` in ${shares} shares`;
        const shown = `${shownRequest({ kind, model, minMemoryMb: memoryMb, share: null })}${parts}`;
        counts.set(shown, (counts.get(shown) ?? 0) + 1);
      }
      return [...counts].map(([shown, count]) => `${count} ${shown}`);
    }),
  );
  const most =
    there.size === 0
      ? 'no machine has such devices by name'
      : [...there].slice(0, SHOWN).join('; on others ');
  return never('devicesPerTask', shownRequests(requests), most);
}

/** `most`: tasks at one site, on machines that differ. */
function neverAlike({ tasks, allAlike, sameSwitch }: NewJob, most: number): Fault {
  const asked = [...(allAlike ?? []), ...(sameSwitch?.maxWaitS === null ? ['switch'] : [])].join(', ');
  return never(
    allAlike === null ? 'sameSwitch' : 'allAlike',
    `${tasks} tasks on machines with the same ${asked}`,
    `${most} at one site, on machines that differ in it or lack it`,
  );
}

/** Of all machines, those with a text as `name=text`. */
const labelsThere = (machines: readonly MachineRow[]): string[] => {
  const shown = machines.flatMap((machine) =>
    Object.entries({ ...labelsIn(machine), ...deviceLabels(devicesIn(machine.devices)) }).map(
      ([name, text]) => (text === '' ? name : `${name}=${text}`),
    ),
  );
  return [...new Set(shown)].sort();
};

type By = 'cpus' | 'memoryMb' | 'both';

/** The most tasks of the job that fit the idle machine. */
function tasksOn({ cpus, memoryMb, maxTasks }: MachineRow, job: NewJob, by: By): number {
  const ofCpus = by === 'memoryMb' ? Infinity : Math.floor(cpus / job.cpusPerTask);
  const ofMemory = by === 'cpus' ? Infinity : Math.floor(memoryMb / job.memoryMbPerTask);
  const room = Math.min(ofCpus, ofMemory, maxTasks === null ? Infinity : 1);
  return Number.isFinite(room) ? room : job.tasks;
}

/** The same of all machines of a site. */
function tasksAt(machines: readonly MachineRow[], job: NewJob, by: By): number {
  const bySite = new Map<number, number>();
  for (const machine of machines)
    bySite.set(machine.siteId, (bySite.get(machine.siteId) ?? 0) + tasksOn(machine, job, by));
  return Math.max(0, ...bySite.values());
}

/** How many machines have room for how many of its tasks, the largest first. */
function tasksOnMachines(machines: readonly MachineRow[], job: NewJob): string[] {
  const counts = new Map<number, number>();
  for (const machine of machines) {
    const room = Math.min(job.tasks, tasksOn(machine, job, 'both'));
    if (room > 0) counts.set(room, (counts.get(room) ?? 0) + 1);
  }
  return [...counts]
    .sort(([a], [b]) => b - a)
    .map(([room, count]) => `up to ${room} on ${count === 1 ? '1 machine' : `${count} machines`}`);
}
