/**
 * Cases of the rule `place_shape` (resources.md, "Formats of the vectors") as a site with runs, and a job that waits there: what a local
 * policy starts is compared with the rule. A live job asks for less than a shape can say: counts of a kind of device, and labels of machines.
 */
import * as fc from 'fast-check';
import { Grid, type Job, type JobPart, type LocalPolicy, type Machine } from '../../../src/core/index.js';
import { bothConstraints } from '../../../src/core/model.js';
import type { Device, DeviceRequest, OwnedDevice } from '../../../src/core/resources/devices.js';
import type { PlacedTasks, ShapeMachine, ShapePart } from '../../../src/core/resources/shape.js';
import { chooseUnits, countsOf, unitsOf, unlikeOthers } from '../../../src/core/resources/units.js';
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
export const NOT_LIVE = [
  'machines shared in time beside others',
  'tasks that fill machine after machine (two-level.md)',
  'several requests for one kind',
  'shares that are no whole number, or not the same on all machines',
  'several shares for one task where devices have parts of them left',
  'memory of a device that not all have',
  'a device that only its user may share',
  'users that take no CPU',
] as const;
export type NotLive = (typeof NOT_LIVE)[number];

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
  readonly held: ReadonlySet<string>;
}

const JOB = 1;

export class LiveSite {
  private readonly machines: readonly LiveMachine[];
  readonly job: Job;
  /** A device is one unit, as nobody asks for a share of one. */
  private readonly whole: boolean;

  /** `given`: one that `whyNotLive` has nothing against. */
  constructor(private readonly given: ShapeCase) {
    this.whole = asksWhole(given);
    const ids = given.machines.map(({ id }) => id).sort();
    this.machines = given.machines.map((of) => {
      const devices = of.devices.map((device) => owned(device, this.whole));
      return {
        of,
        id: ids.indexOf(of.id) + 1,
        devices,
        held: new Set(of.devices.flatMap((one) => this.heldOf(one))),
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
    for (const { of, id, devices } of this.machines) grid.setMachine(liveMachine(of, id, devices));
    let jobId = 100;
    for (const machine of this.machines) jobId = this.placeRuns(grid, machine, jobId);
    return grid;
  }

  /** What starts now under the policy, as the rule shows it, shares only of devices; null: nothing. */
  startsUnder(local: LocalPolicy) {
    const grid = this.grid();
    grid.placeAtSite(this.job, 1);
    const start = plan(grid, 0, { ...policyWith('NONE'), local }).starts.find(({ jobId }) => jobId === JOB);
    if (start === undefined) return null;
    const held = new Map(this.machines.map(({ id, held: before }) => [id, new Set(before)]));
    const placed = placedParts(this.job, start.allocations).map(({ at, machineId, tasks, part }) => {
      const machine = this.machines.find(({ id }) => id === machineId) as LiveMachine;
      const here = held.get(machineId) as Set<string>;
      const units = chooseUnits(machine.devices, here, part.resourcesPerTask, tasks) as string[];
      for (const unit of units) here.add(unit);
      return { at, machine: machine.of.id, tasks, devices: this.shown(machine.of, units) };
    });
    return this.given.parts.map((_, i) =>
      placed
        .filter(({ at }) => at === i)
        .map(({ machine, tasks, devices }) => ({ machine, tasks, devices }))
        .sort((a, b) => (a.machine < b.machine ? -1 : 1)),
    );
  }

  private shown({ devices }: ShapeMachine, units: readonly string[]) {
    const given = [...devices].sort((a, b) => (a.id < b.id ? -1 : 1));
    return given.flatMap((device) => {
      const count = units.filter((unit) => unit === device.id || unit.startsWith(`${device.id}/`)).length;
      return count === 0 ? [] : [{ device: device.id, shares: this.whole ? device.shares : count }];
    });
  }

  private heldOf(device: Device): string[] {
    const units = unitsOf(owned(device, this.whole));
    return this.whole ? units.slice(0, device.used.shares > 0 ? 1 : 0) : units.slice(0, device.used.shares);
  }

  private partOf({ devices, where, exclusive, ...part }: ShapeCase['parts'][number]): JobPart {
    const resourcesPerTask: Record<string, number> = {};
    let machineConstraint = where;
    for (const request of devices) {
      const { kind, model, minMemoryMb } = request;
      resourcesPerTask[kind] = this.unitsOf(request);
      if (model !== null) machineConstraint = bothConstraints(machineConstraint, `${kind} = "${model}"`);
      if (minMemoryMb !== null && this.whole)
        machineConstraint = bothConstraints(machineConstraint, `${kind}.memory-mb >= ${minMemoryMb}`);
    }
    return {
      tasks: part.tasks,
      cpusPerTask: part.cpus,
      memoryMbPerTask: Math.max(part.memoryMb, part.memoryMbPerCpu * part.cpus),
      resourcesPerTask: devices.length === 0 ? null : resourcesPerTask,
      tasksPerMachine: part.tasksPerMachine,
      exclusive: exclusive === 'NONE' ? null : exclusive,
      allAlike: part.allAlike.length === 0 ? null : part.allAlike,
      machineConstraint,
    };
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
      const cpus = of.total.cpus - of.free.cpus - (users.length - 1);
      const job = anyJob({
        ...{ id: jobId, userId: userOf(user), cpusPerTask: i === 0 ? cpus : 1 },
        memoryMbPerTask: i === 0 ? of.total.memoryMb - of.free.memoryMb : 0,
        resourcesPerTask: own.length === 0 ? null : taken,
        exclusive: of.onlyUser === null ? null : 'USER',
      });
      grid.restoreRun(
        {
          ...{ jobId, siteId: 1, epoch: 1, allocations: [{ machineId: id, tasks: 1 }], licenseIds: [] },
          ...{ devices: [own.filter((unit) => held.has(unit))], start: -1, plannedEnd: 1000 },
        },
        job,
      );
      jobId++;
    }
    return jobId;
  }
}

/** Null: a live job says all of it. */
export function whyNotLive(given: ShapeCase): NotLive | null {
  const { machines, parts, user } = given;
  const requests = parts.flatMap(({ devices }) => devices);
  if (machines.some(({ total }) => total.places !== null)) return 'machines shared in time beside others';
  if (parts.length === 1 && parts.every(isPlain))
    return 'tasks that fill machine after machine (two-level.md)';
  if (parts.some(({ devices }) => new Set(devices.map(({ kind }) => kind)).size < devices.length))
    return 'several requests for one kind';
  if (machines.some(({ devices }) => unlikeOthers(devices) !== null))
    return 'memory of a device that not all have';
  if (machines.some((one) => usersOn(one, given).size > one.total.cpus - one.free.cpus))
    return 'users that take no CPU';
  if (asksWhole(given)) return null;
  for (const { kind, count, share, minMemoryMb } of requests) {
    const [shares, ...others] = sharesOf(given, kind);
    const units = share === null ? (shares ?? 1) * count : ((shares ?? 1) * share.parts) / share.of;
    if (others.length > 0 || !Number.isInteger(units))
      return 'shares that are no whole number, or not the same on all machines';
    const ofKind = machines.flatMap(({ devices }) => devices).filter((device) => device.kind === kind);
    if (
      minMemoryMb !== null &&
      ofKind.some(({ memoryMb }) => memoryMb * (share ? share.parts / share.of : 1) < minMemoryMb)
    )
      return 'memory of a device that not all have';
    const isOthers = ({ oneUser, shares: all, used }: Device): boolean =>
      oneUser && used.shares > 0 && used.shares < all && used.user !== user;
    if (ofKind.some(isOthers)) return 'a device that only its user may share';
    const left = ofKind.some(
      ({ shares: all, used }) => (all - used.shares) % units !== 0 || all % units !== 0,
    );
    const same = requests.every(
      (one) => one.kind !== kind || JSON.stringify(one) === JSON.stringify({ ...one, share, count }),
    );
    if (units > 1 && (count > 1 || left || !same))
      return 'several shares for one task where devices have parts of them left';
  }
  return null;
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

const owned = ({ id, kind, model, memoryMb, shares, link }: Device, whole: boolean): OwnedDevice => ({
  ...{ id, kind, model, memoryMb, link },
  shares: whole ? 1 : shares,
});

const liveMachine = (
  { total, labels }: ShapeMachine,
  id: number,
  devices: readonly OwnedDevice[],
): Machine => ({
  ...{ id, siteId: 1, cpus: total.cpus, memoryMb: total.memoryMb, benchmark: 1, os: '', architecture: '' },
  ...{ licenseIds: [], available: true, labels, devices, resources: countsOf(devices) },
});

/** As the rule shows it, without memory, which follows from shares. */
export const sharesIn = (parts: readonly (readonly PlacedTasks[])[]) =>
  parts.map((part) =>
    part.map(({ machine, tasks, devices }) => ({
      ...{ machine, tasks },
      devices: devices.map(({ device, shares }) => ({
        device: typeof device === 'string' ? device : device.id,
        shares,
      })),
    })),
  );

/** Sites of machines with devices, some of them in use, and jobs that ask for some: mostly what a live job can say. */
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
          users: usedCpus > 0 ? ['u2'] : [],
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
