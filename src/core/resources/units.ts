/**
 * Devices of machines as schedulers count them: each share is one of its kind, so that plans, constraints of the database and explanations
 * know devices as amounts like any other. Which of them a run gets is chosen when it starts (devices.ts). The devices of one kind on one
 * machine have equally many shares; their models and memory may differ, which matters to who asks for them by what they are.
 */
import { furtherIn, type TaskAmounts } from '../grid/amounts.js';
import type { Labels } from './constraint.js';
import {
  type Device,
  type DeviceRequest,
  groupOf,
  inServingOrder,
  keyOfTaken,
  type OwnedDevice,
  serveEach,
  type Taken,
  takenFor,
} from './devices.js';

/** Shares by kind. */
export function countsOf(devices: readonly OwnedDevice[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { kind, shares } of devices) counts[kind] = (counts[kind] ?? 0) + shares;
  return counts;
}

/**
 * What a constraint may ask of a machine because of its devices: by kind the model, and the memory that goes with one. Where they are not
 * alike, no model, and the least memory.
 */
export function deviceLabels(devices: readonly OwnedDevice[]): Labels {
  const labels: Record<string, string> = {};
  for (const { kind, model, memoryMb, shares } of devices) {
    const memory = `${kind}.memory-mb`;
    const own = Math.floor(memoryMb / shares);
    labels[kind] = (labels[kind] ?? model) === model ? (model ?? '') : '';
    labels[memory] = String(Math.min(Number(labels[memory] ?? own), own));
  }
  return labels;
}

/** What is given of a device one by one: itself, or its shares. */
export const unitsOf = ({ id, shares }: Pick<OwnedDevice, 'id' | 'shares'>): string[] =>
  shares === 1 ? [id] : Array.from({ length: shares }, (_, i) => `${id}/${i}`);

/** The first of two devices of one kind on the machine that have not as many shares; null: there is none. */
export function sharedOtherwise(devices: readonly OwnedDevice[]): OwnedDevice | null {
  const first = new Map<string, number>();
  for (const device of devices) {
    const { kind, shares } = device;
    if ((first.get(kind) ?? shares) !== shares) return device;
    first.set(kind, shares);
  }
  return null;
}

/** A unit that a run has, with what it has of the memory of the device. */
export interface HeldUnit {
  readonly memoryMb: number;
  /** null: it was not asked whose it is. */
  readonly user: string | null;
}

/** What runs have of the devices of a machine, by unit. */
export type HeldUnits = ReadonlyMap<string, HeldUnit>;

/** What a task asks for that may be devices. */
export interface AskedUnits {
  /** Amounts by kind; what are no devices does not matter. */
  readonly further: TaskAmounts['further'];
  /** By what they are. */
  readonly devices: { readonly requests: readonly DeviceRequest[]; readonly user: string | null } | null;
}

/** The same of a job. */
export const unitsAskedBy = ({
  userId,
  resourcesPerTask,
  devicesPerTask = null,
}: {
  readonly userId: number;
  readonly resourcesPerTask: TaskAmounts['further'];
  readonly devicesPerTask?: readonly DeviceRequest[] | null;
}): AskedUnits => ({
  further: resourcesPerTask,
  devices: devicesPerTask && { requests: devicesPerTask, user: String(userId) },
});

/**
 * The units that so many tasks get on a machine, those of the first task first, each task's in order of kind and then of what it asks for
 * by what it is; the shares of a task are of one device if they can be, and as many as a device has are whole devices. Empty: no device is
 * asked for. Null: there are not enough.
 */
export function chooseUnits(
  devices: readonly OwnedDevice[],
  held: HeldUnits,
  asked: AskedUnits,
  tasks: number,
): string[] | null {
  const amounts = amountsOf(devices, asked);
  if (amounts.length === 0 && asked.devices === null) return [];
  const served = serve(devices, held, amounts, asked, tasks);
  if (served === null) return null;
  const free = freeUnits(devices, held);
  // Neighbors go to one task.
  const items = served.given.map((given) =>
    [...given].sort(
      (a, b) => compare(groupOf(a.device), groupOf(b.device)) || compare(a.device.id, b.device.id),
    ),
  );
  const units: string[] = [];
  for (let task = 0; task < tasks; task++)
    for (const given of items) {
      const each = given.length / tasks;
      for (const { device, shares } of given.slice(task * each, (task + 1) * each))
        units.push(...(free.get(device.id) as string[]).splice(0, shares));
    }
  return units;
}

/**
 * What it is to have the units that so many tasks have got on a machine (`chooseUnits`). Shares that were asked for with more memory than
 * goes with them have it.
 */
export function holdUnits(
  devices: readonly OwnedDevice[],
  units: readonly string[],
  asked: AskedUnits,
  tasks: number,
): [unit: string, held: HeldUnit][] {
  const deviceOf = new Map(devices.flatMap((device) => unitsOf(device).map((unit) => [unit, device])));
  const user = asked.devices?.user ?? null;
  const held: [string, HeldUnit][] = [];
  const hold = (count: number, memoryOf: (device: OwnedDevice, i: number) => number): void => {
    for (let i = 0; i < count && held.length < units.length; i++) {
      const unit = units[held.length] as string;
      const device = deviceOf.get(unit);
      held.push([unit, { memoryMb: device === undefined ? 0 : memoryOf(device, i), user }]);
    }
  };
  const byAmount = amountsOf(devices, asked).reduce((sum, [, amount]) => sum + amount, 0);
  for (let task = 0; task < tasks; task++) {
    hold(byAmount, ({ memoryMb, shares }) => Math.floor(memoryMb / shares));
    for (const request of asked.devices?.requests ?? [])
      for (let one = 0; one < request.count; one++) {
        const device = deviceOf.get(units[held.length] ?? '');
        const taken = device === undefined ? null : takenFor(device, request);
        const { shares, memoryMb } = taken ?? { shares: 1, memoryMb: 0 };
        const part = Math.floor(memoryMb / shares);
        hold(shares, (_, i) => (i === 0 ? memoryMb - (shares - 1) * part : part));
      }
  }
  // Of a machine that had other devices then.
  hold(units.length, ({ memoryMb, shares }) => Math.floor(memoryMb / shares));
  return held;
}

/** How many of the units are of each kind. */
export function countUnits(
  devices: readonly OwnedDevice[],
  units: readonly string[],
): Record<string, number> {
  const kindOf = new Map(devices.flatMap((device) => unitsOf(device).map((unit) => [unit, device.kind])));
  const counts: Record<string, number> = {};
  for (const unit of units) {
    const kind = kindOf.get(unit);
    if (kind !== undefined) counts[kind] = (counts[kind] ?? 0) + 1;
  }
  return counts;
}

/**
 * What is compared among machines on which so many tasks get their devices, least first (resources.md, "Which machines"): link groups of
 * the devices given, and idle devices left of all kinds. Before them, what the rule does not allow and counts do: 1 where a task would get
 * its shares of several devices though one has as many. Null: there are not enough.
 */
export function deviceKey(
  devices: readonly OwnedDevice[],
  held: HeldUnits,
  asked: AskedUnits,
  tasks: number,
): readonly number[] | null {
  const served = serve(devices, held, amountsOf(devices, asked), asked, tasks);
  return served && [served.split ? 1 : 0, ...keyOfTaken(served.devices, served.taken)];
}

type Amounts = [kind: string, amount: number][];

const amountsOf = (devices: readonly OwnedDevice[], { further }: AskedUnits): Amounts =>
  furtherIn(further).filter(([kind]) => devices.some((device) => device.kind === kind));

const freeUnits = (devices: readonly OwnedDevice[], held: HeldUnits): Map<string, string[]> =>
  new Map(devices.map((one) => [one.id, unitsOf(one).filter((unit) => !held.has(unit))]));

/**
 * `devices`: as they were before. `given`: for each amount and then each request what it has got, one by one. `split`: shares of a task are
 * of several devices.
 */
function serve(
  devices: readonly OwnedDevice[],
  held: HeldUnits,
  amounts: Amounts,
  asked: AskedUnits,
  tasks: number,
): { devices: Device[]; taken: Taken[]; given: (readonly Taken[])[]; split: boolean } | null {
  const used = devices.map((device) => usedBy(device, held));
  const counted = (split: boolean): DeviceRequest[] =>
    amounts.map(([kind, amount]) => {
      const { shares } = devices.find((device) => device.kind === kind) as OwnedDevice;
      const any = { kind, model: null, minMemoryMb: null };
      if (shares === 1 || (!split && amount % shares === 0))
        return { ...any, count: amount / shares, share: null };
      const parts = !split && amount < shares ? amount : 1;
      return { ...any, count: amount / parts, share: { parts, of: shares } };
    });
  for (const split of [false, true]) {
    if (split && amounts.length === 0) break;
    const requests = [...counted(split), ...(asked.devices?.requests ?? [])];
    const order = inServingOrder(requests.map((request, place) => ({ ...request, place })));
    const served = serveEach(used, order, tasks, asked.devices?.user ?? null);
    if (served === null) continue;
    const given: (readonly Taken[])[] = [];
    order.forEach(({ place }, i) => {
      given[place] = served.given[i] as readonly Taken[];
    });
    return { devices: used, taken: served.taken, given, split };
  }
  return null;
}

/** As the rules see it. */
function usedBy(device: OwnedDevice, held: HeldUnits): Device {
  const used = { shares: 0, memoryMb: 0, user: null as string | null };
  for (const unit of unitsOf(device)) {
    const one = held.get(unit);
    if (one === undefined) continue;
    used.shares++;
    used.memoryMb += one.memoryMb;
    used.user ??= one.user;
  }
  return { ...device, oneUser: device.oneUser ?? false, used };
}

const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);
