/**
 * Cases of the rule `place_shape` (resources.md, "Formats of the vectors") as a site with runs, and a job that waits there: what a local
 * policy starts is compared with the rule. A live job says what a shape does of its devices; or, as jobs did before they could, counts of a kind
 * of device and labels of machines, which is less.
 */
import * as fc from 'fast-check';
import { Grid, type Job, type JobPart, type LocalPolicy, type Machine } from '../../../src/core/index.js';
import { bothConstraints } from '../../../src/core/model.js';
import type { Device, DeviceRequest, OwnedDevice } from '../../../src/core/resources/devices.js';
import type { PlacedTasks, ShapeMachine, ShapePart } from '../../../src/core/resources/shape.js';
import {
  chooseUnits,
  countsOf,
  type HeldUnit,
  holdUnits,
  unitsAskedBy,
  unitsOf,
} from '../../../src/core/resources/units.js';
import { placedParts, withParts } from '../../support/plain-job.js';
import { job as anyJob } from './drive.js';
import { plan, policyWith } from './grids.js';

export interface ShapeCase {
  user: string;
  machines: readonly ShapeMachine[];
  /** `where`: as it is written. */
  parts: readonly (Omit<ShapePart, 'where'> & { readonly where: string | null })[];
  licenses: Readonly<Record<string, number>>;
  freeLicenses: Readonly<Record<string, number>>;
}

/** Why a case is none of a live site. */
export const NOT_LIVE = ['tasks that fill machine after machine (two-level.md)'] as const;
export type NotLive = (typeof NOT_LIVE)[number];

/** How a live job asks for devices: by what they are, or by amounts of their kinds. */
export type Asking = 'BY_NAME' | 'BY_AMOUNT';

/** Each kind of local policy that chooses machines. */
export const LOCAL: readonly LocalPolicy[] = [
  ...[policyWith('NONE').local, { kind: 'easy' }, { kind: 'fcfs' }, { kind: 'first-fit', ageBoundS: null }],
  ...[
    { kind: 'sjf', ageBoundS: null },
    { kind: 'conservative', depth: 10 },
    { kind: 'hybrid', reservations: 2 },
  ],
] as LocalPolicy[];

interface LiveMachine {
  readonly of: ShapeMachine;
  readonly id: number;
  readonly devices: readonly OwnedDevice[];
  readonly held: readonly string[];
}

const JOB = 1;

export class LiveSite {
  private readonly machines: readonly LiveMachine[];
  readonly job: Job;
  /** A device is one unit, as nobody asks for a share of one. */
  private readonly whole: boolean;

  /** `given`: one that `whyNotLive` has nothing against, and to ask by amount `isCounted`. */
  constructor(
    private readonly given: ShapeCase,
    private readonly asking: Asking = 'BY_NAME',
  ) {
    this.whole = asking === 'BY_AMOUNT' && asksWhole(given);
    const ids = given.machines.map(({ id }) => id).sort();
    this.machines = given.machines.map((of) => {
      const devices = of.devices.map((device) => owned(device, this.whole));
      return {
        of,
        id: ids.indexOf(of.id) + 1,
        devices,
        held: of.devices.flatMap((one) => this.heldOf(one)),
      };
    });
    const parts = given.parts.map((part) => this.partOf(part));
    const shape = parts.length === 1 ? (parts[0] as JobPart) : withParts(parts);
    this.job = anyJob({ id: JOB, userId: userOf(given.user), ...shape });
  }

  /** Each part as a job of its own, by id from 1. */
  get jobs(): Job[] {
    return this.given.parts.map((part, i) => ({ ...this.job, ...this.partOf(part), parts: null, id: i + 1 }));
  }

  /** The site as it is; each call makes it anew. */
  grid(): Grid {
    const grid = new Grid();
    grid.setSite({ id: 1, name: 'one', state: 'UP', localPolicy: null });
    for (const { of, id, devices } of this.machines) grid.setMachine(this.machineOf(of, id, devices));
    let jobId = 100;
    for (const machine of this.machines) jobId = this.placeRuns(grid, machine, jobId);
    return grid;
  }

  /** What starts now under the policy, as the rule shows it, of who asks by amount without memory of devices; null: nothing. */
  startsUnder(local: LocalPolicy) {
    const grid = this.grid();
    grid.placeAtSite(this.job, 1);
    const start = plan(grid, 0, { ...policyWith('NONE'), local }).starts.find(({ jobId }) => jobId === JOB);
    if (start === undefined) return null;
    const held = new Map(this.machines.map((machine) => [machine.id, this.heldOn(machine)]));
    const placed = placedParts(this.job, start.allocations).map(({ at, machineId, tasks, part }) => {
      const machine = this.machines.find(({ id }) => id === machineId) as LiveMachine;
      const here = held.get(machineId) as Map<string, HeldUnit>;
      const asked = unitsAskedBy({ ...part, userId: this.job.userId });
      const units = chooseUnits(machine.devices, here, asked, tasks) as string[];
      const holds = holdUnits(machine.devices, units, asked, tasks);
      for (const [unit, hold] of holds) here.set(unit, hold);
      return { at, machine: machine.of.id, tasks, devices: this.shown(machine.of, holds) };
    });
    return this.given.parts.map((_, i) =>
      placed
        .filter(({ at }) => at === i)
        .map(({ machine, tasks, devices }) => ({ machine, tasks, devices }))
        .sort((a, b) => (a.machine < b.machine ? -1 : 1)),
    );
  }

  private shown({ devices }: ShapeMachine, holds: readonly [string, HeldUnit][]) {
    const given = [...devices].sort((a, b) => (a.id < b.id ? -1 : 1));
    return given.flatMap((device) => {
      const own = holds.filter(([unit]) => isOf(unit, device));
      if (own.length === 0) return [];
      const shown = { device: device.id, shares: this.whole ? device.shares : own.length };
      const memoryMb = own.reduce((sum, [, hold]) => sum + hold.memoryMb, 0);
      return [this.asking === 'BY_NAME' ? { ...shown, memoryMb } : shown];
    });
  }

  /** As the runs of `placeRuns` have them. */
  private heldOn({ of, devices, held }: LiveMachine): Map<string, HeldUnit> {
    const userOfUnit = (unit: string): string | null =>
      of.devices.find((one) => isOf(unit, one))?.used.user ?? null;
    return new Map(
      held.map((unit) => {
        const { memoryMb, shares } = devices.find((one) => isOf(unit, one)) as OwnedDevice;
        const user = userOfUnit(unit);
        const share = { memoryMb: Math.floor(memoryMb / shares), user: user && String(userOf(user)) };
        return [unit, share];
      }),
    );
  }

  private heldOf(device: Device): string[] {
    const units = unitsOf(owned(device, this.whole));
    return this.whole ? units.slice(0, device.used.shares > 0 ? 1 : 0) : units.slice(0, device.used.shares);
  }

  private partOf({ devices, where, exclusive, ...part }: ShapeCase['parts'][number]): JobPart {
    const shape = {
      tasks: part.tasks,
      cpusPerTask: part.cpus,
      memoryMbPerTask: Math.max(part.memoryMb, part.memoryMbPerCpu * part.cpus),
      resourcesPerTask: null,
      tasksPerMachine: part.tasksPerMachine,
      exclusive: exclusive === 'NONE' ? null : exclusive,
      allAlike: part.allAlike.length === 0 ? null : part.allAlike,
      machineConstraint: where,
    };
    if (devices.length === 0) return shape;
    if (this.asking === 'BY_NAME') return { ...shape, devicesPerTask: devices };
    const resourcesPerTask: Record<string, number> = {};
    let machineConstraint = where;
    for (const request of devices) {
      const { kind, model, minMemoryMb } = request;
      resourcesPerTask[kind] = this.unitsOf(request);
      if (model !== null) machineConstraint = bothConstraints(machineConstraint, `${kind} = "${model}"`);
      if (minMemoryMb !== null && this.whole)
        machineConstraint = bothConstraints(machineConstraint, `${kind}.memory-mb >= ${minMemoryMb}`);
    }
    return { ...shape, resourcesPerTask, machineConstraint };
  }

  private unitsOf({ kind, count, share }: DeviceRequest): number {
    if (this.whole) return count;
    const shares = sharesOf(this.given, kind)[0] ?? 1;
    return share === null ? count * shares : (shares * share.parts) / share.of;
  }

  /** Of each user one, the first of whom has what is taken of CPUs and memory beside. */
  private placeRuns(grid: Grid, { of, id, devices, held }: LiveMachine, firstId: number): number {
    const users = [...usersOn(of, this.given)];
    let jobId = firstId;
    for (const [i, user] of users.entries()) {
      const own = of.devices.filter(({ used }) => used.user === user).flatMap((one) => this.heldOf(one));
      const taken = countsOf(
        devices.flatMap((one) => own.filter((unit) => isOf(unit, one)).map(() => ({ ...one, shares: 1 }))),
      );
      // Of a machine that is shared in time none are taken.
      const cpus = of.total.places === null ? this.cpusOf(of) - of.free.cpus - (users.length - 1) : 1;
      const job = anyJob({
        ...{ id: jobId, userId: userOf(user), cpusPerTask: i === 0 ? cpus : 1 },
        memoryMbPerTask: i === 0 ? of.total.memoryMb - of.free.memoryMb : 0,
        ...(this.asking === 'BY_AMOUNT'
          ? { resourcesPerTask: own.length === 0 ? null : taken }
          : { devicesPerTask: this.askedByRun(devices, own) }),
        exclusive: of.onlyUser === null ? null : 'USER',
      });
      grid.restoreRun(
        {
          ...{ jobId, siteId: 1, epoch: 1, allocations: [{ machineId: id, tasks: 1 }], pools: [] },
          ...{ devices: [own.filter((unit) => held.includes(unit))], start: -1, plannedEnd: 1000 },
        },
        job,
      );
      jobId++;
    }
    return jobId;
  }

  private machineOf(of: ShapeMachine, id: number, devices: readonly OwnedDevice[]): Machine {
    const { total, free, labels } = of;
    const runs = usersOn(of, this.given).size;
    return {
      ...{ id, siteId: 1, cpus: this.cpusOf(of), benchmark: 1 },
      // What is said to be taken where nobody runs is not there.
      memoryMb: runs === 0 ? free.memoryMb : total.memoryMb,
      ...{ os: '', architecture: '', licenseIds: [], available: true, labels, devices },
      resources: countsOf(devices),
      maxTasks: free.places === null ? null : free.places + runs,
    };
  }

  /** Each run takes one: where others are said to take none there are more. */
  private cpusOf(of: ShapeMachine): number {
    if (of.total.places !== null) return of.total.cpus;
    return Math.max(of.total.cpus, of.free.cpus + usersOn(of, this.given).size);
  }

  /** Its units one by one, in their order. */
  private askedByRun(devices: readonly OwnedDevice[], own: readonly string[]): DeviceRequest[] | null {
    const asked = own.map((unit): DeviceRequest => {
      const { kind, shares } = devices.find((one) => isOf(unit, one)) as OwnedDevice;
      const share = shares === 1 ? null : { parts: 1, of: shares };
      return { kind, count: 1, model: null, minMemoryMb: null, share };
    });
    return asked.length === 0 ? null : asked;
  }
}

/** Null: a live job says all of it. */
export function whyNotLive({ machines, parts }: ShapeCase): NotLive | null {
  if (machines.every(({ total }) => total.places === null) && parts.length === 1 && parts.every(isPlain))
    return 'tasks that fill machine after machine (two-level.md)';
  return null;
}

/** Whether counts of the kinds of devices say what the case does: shares are whole numbers of units, and alike on all machines. */
export function isCounted({ machines, parts, ...given }: ShapeCase): boolean {
  const requests = parts.flatMap(({ devices }) => devices);
  if (parts.some(({ devices }) => new Set(devices.map(({ kind }) => kind)).size < devices.length))
    return false;
  if (asksWhole({ machines, parts, ...given })) return true;
  for (const { kind, count, share, minMemoryMb } of requests) {
    const [shares, ...others] = sharesOf({ machines, parts, ...given }, kind);
    const units = share === null ? (shares ?? 1) * count : ((shares ?? 1) * share.parts) / share.of;
    if (others.length > 0 || !Number.isInteger(units) || minMemoryMb !== null) return false;
    const ofKind = machines.flatMap(({ devices }) => devices).filter((device) => device.kind === kind);
    if (ofKind.some(({ oneUser }) => oneUser)) return false;
    const left = ofKind.some(
      ({ shares: all, used }) => (all - used.shares) % units !== 0 || all % units !== 0,
    );
    const same = requests.every(
      (one) => one.kind !== kind || JSON.stringify(one) === JSON.stringify({ ...one, share, count }),
    );
    if (units > 1 && (count > 1 || left || !same)) return false;
  }
  return true;
}

const isPlain = ({
  devices,
  tasks,
  tasksPerMachine: { min, max },
  exclusive,
  allAlike,
}: ShapeCase['parts'][number]) =>
  devices.length === 0 &&
  min === 1 &&
  (max === null || max >= tasks) &&
  exclusive === 'NONE' &&
  allAlike.length === 0;

const asksWhole = ({ parts }: ShapeCase): boolean =>
  parts.every(({ devices }) => devices.every(({ share }) => share === null));

/** The numbers of shares that devices of the kind have. */
const sharesOf = ({ machines }: ShapeCase, kind: string): number[] => [
  ...new Set(
    machines.flatMap(({ devices }) => devices.filter((one) => one.kind === kind).map(({ shares }) => shares)),
  ),
];

/** Whose runs there are: of those who have nothing there, only where somebody asks who is. */
function usersOn({ users, devices, total, free }: ShapeMachine, { parts }: ShapeCase): Set<string> {
  const there = devices.flatMap(({ used }) => (used.user === null ? [] : [used.user]));
  if (parts.some(({ exclusive }) => exclusive !== 'NONE')) return new Set([...users, ...there]);
  const isBusy = free.cpus < total.cpus || free.memoryMb < total.memoryMb;
  return new Set(there.length === 0 && isBusy ? users.slice(0, 1) : there);
}

const userOf = (name: string): number => Number(name.slice(1));

const isOf = (unit: string, { id }: OwnedDevice): boolean => unit === id || unit.startsWith(`${id}/`);

const owned = (
  { id, kind, model, memoryMb, shares, link, oneUser }: Device,
  whole: boolean,
): OwnedDevice => ({
  ...{ id, kind, model, memoryMb, link, oneUser },
  shares: whole ? 1 : shares,
});

/** As the rule shows it, of who asks by amount without memory of devices. */
export const placedIn = (parts: readonly (readonly PlacedTasks[])[], asking: Asking) =>
  parts.map((part) =>
    part.map(({ machine, tasks, devices }) => ({
      ...{ machine, tasks },
      devices: devices.map(({ device, shares, memoryMb }) => ({
        device: typeof device === 'string' ? device : device.id,
        ...(asking === 'BY_NAME' ? { shares, memoryMb } : { shares }),
      })),
    })),
  );

/** Of those who have devices; CPUs are taken by the second. */
const usersOf = (takesCpus: boolean, devices: readonly { used: number; user: string }[]): string[] => [
  ...new Set([
    ...(takesCpus ? ['u2'] : []),
    ...devices.flatMap(({ used, user }) => (used > 0 ? [user] : [])),
  ]),
];

/** Sites of machines with devices, some of them in use, and jobs that ask for some: mostly such as counts can say, too. */
export const anyShapeCase = (partsMax: number): fc.Arbitrary<ShapeCase> =>
  fc
    .record({
      shares: fc.constantFrom(1, 1, 4),
      machines: fc.array(
        fc.record({
          cpus: fc.integer({ min: 2, max: 10 }),
          usedCpus: fc.integer({ min: 0, max: 3 }),
          devices: fc.array(
            fc.record({
              link: fc.constantFrom(null, 'a', 'a', 'b', 'b', 'c'),
              used: fc.constantFrom(0, 0, 0, 1, 2, 4),
              user: fc.constantFrom('u1', 'u2'),
            }),
            { maxLength: 8, size: 'max' },
          ),
          on: fc.constantFrom('s1', 's2'),
        }),
        { minLength: 1, maxLength: 6, size: 'max' },
      ),
      parts: fc.array(
        fc.record({
          tasks: fc.constantFrom(1, 1, 1, 2, 3, 5),
          cpus: fc.integer({ min: 1, max: 3 }),
          count: fc.constantFrom(0, 1, 1, 2, 3, 4),
          share: fc.constantFrom(null, { parts: 1, of: 4 }, { parts: 1, of: 2 }),
          exclusive: fc.constantFrom('NONE' as const, 'NONE' as const, 'NONE' as const, 'MACHINE' as const),
          bounds: fc.constantFrom(
            { min: 1, max: null },
            { min: 1, max: null },
            { min: 2, max: null },
            { min: 1, max: 2 },
          ),
          alike: fc.constantFrom(false, false, false, true),
        }),
        { minLength: 1, maxLength: partsMax, size: 'max' },
      ),
    })
    .map(({ shares, machines, parts }) => ({
      user: 'u1',
      machines: machines.map(({ cpus, usedCpus, devices, on }, i): ShapeMachine => {
        const free = { cpus: cpus - Math.min(usedCpus, cpus), memoryMb: 1000, places: null };
        return {
          ...{ id: `m${i}`, labels: { switch: on }, total: { ...free, cpus }, free, onlyUser: null },
          users: usersOf(usedCpus > 0, devices),
          devices: devices.map(({ link, used, user }, d) => {
            const taken = shares === 1 ? Math.sign(used) : used;
            return {
              ...{ id: `d${d}`, kind: 'gpu', model: null, memoryMb: 400, shares, link, oneUser: false },
              used: {
                ...{ shares: taken, memoryMb: (taken * 400) / shares },
                user: taken === 0 ? null : user,
              },
            };
          }),
        };
      }),
      parts: parts.map(({ tasks, cpus, count, share, exclusive, bounds, alike }) => {
        const asked = shares === 1 ? null : share;
        const request = { kind: 'gpu', count: asked === null ? count : 1, model: null, minMemoryMb: null };
        return {
          ...{ tasks, cpus, memoryMb: 0, memoryMbPerCpu: 0, exclusive, where: null },
          devices: count === 0 ? [] : [{ ...request, share: asked }],
          tasksPerMachine: bounds.min > tasks ? { min: 1, max: bounds.max } : bounds,
          allAlike: alike ? ['switch'] : [],
        };
      }),
      licenses: {},
      freeLicenses: {},
    }));

/** The same of jobs that say what their devices are, on machines with unlike devices of one kind, some of them shared in time. */
export const anyNamedCase = (partsMax: number): fc.Arbitrary<ShapeCase> => {
  const request = fc.record({
    kind: fc.constantFrom('gpu', 'gpu', 'gpu', 'fpga'),
    count: fc.constantFrom(1, 1, 2),
    model: fc.constantFrom(null, null, 'a', 'b'),
    minMemoryMb: fc.constantFrom(null, null, 150, 400, 600),
    share: fc.constantFrom(null, null, { parts: 1, of: 4 }, { parts: 1, of: 2 }, { parts: 2, of: 7 }),
  });
  const machine = fc.record({
    shares: fc.constantFrom(1, 4, 4, 7),
    oneUser: fc.boolean(),
    places: fc.constantFrom(null, null, null, 1, 2),
    devices: fc.array(
      fc.record({
        kind: fc.constantFrom('gpu', 'gpu', 'gpu', 'fpga'),
        model: fc.constantFrom('a', 'b'),
        memoryMb: fc.constantFrom(400, 800),
        link: fc.constantFrom(null, 'x', 'x', 'y'),
        used: fc.constantFrom(0, 0, 0, 1, 2, 4, 7),
        user: fc.constantFrom('u1', 'u2'),
      }),
      { maxLength: 6, size: 'max' },
    ),
  });
  return fc
    .record({
      given: anyShapeCase(partsMax),
      machines: fc.array(machine, { minLength: 6, maxLength: 6 }),
      asked: fc.array(fc.array(request, { minLength: 1, maxLength: 2 }), {
        minLength: partsMax,
        maxLength: partsMax,
      }),
    })
    .map(({ given, machines, asked }) => ({
      ...given,
      machines: given.machines.map((one, i) => {
        const { shares, oneUser, places, devices } = machines[i] as (typeof machines)[number];
        const total = { ...one.total, places };
        return {
          ...{ ...one, total, free: places === null ? one.free : total },
          users: usersOf(one.free.cpus < one.total.cpus, devices),
          devices: devices.map(({ kind, model, memoryMb, link, used, user }, d): Device => {
            const taken = Math.min(used, shares);
            return {
              ...{ id: `d${d}`, kind, model, memoryMb, shares, link, oneUser },
              used: {
                ...{ shares: taken, memoryMb: taken * Math.floor(memoryMb / shares) },
                user: taken === 0 ? null : user,
              },
            };
          }),
        };
      }),
      parts: given.parts.map((part, i) => ({ ...part, devices: asked[i] ?? [] })),
    }));
};
