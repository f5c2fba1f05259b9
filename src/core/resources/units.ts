/**
 * Devices of machines as schedulers count them: each share is one of its kind, so that plans, constraints of the database and explanations
 * know devices as amounts like any other. Which of them a run gets is chosen when it starts (devices.ts): by then it is known that there
 * are enough, because the devices of one kind on one machine are alike.
 */
import { furtherIn } from '../grid/amounts.js';
import type { Labels } from './constraint.js';
import {
  type Device,
  type DeviceRequest,
  groupOf,
  keyOfTaken,
  type OwnedDevice,
  serveDevices,
  type Taken,
} from './devices.js';

/** Shares by kind. */
export function countsOf(devices: readonly OwnedDevice[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { kind, shares } of devices) counts[kind] = (counts[kind] ?? 0) + shares;
  return counts;
}

/** What a constraint may ask of a machine because of its devices: by kind the model, and the memory that goes with one. */
export function deviceLabels(devices: readonly OwnedDevice[]): Labels {
  const labels: Record<string, string> = {};
  for (const { kind, model, memoryMb, shares } of devices) {
    labels[kind] = model ?? '';
    labels[`${kind}.memory-mb`] = String(Math.floor(memoryMb / shares));
  }
  return labels;
}

/** What is given of a device one by one: itself, or its shares. */
export const unitsOf = ({ id, shares }: Pick<OwnedDevice, 'id' | 'shares'>): string[] =>
  shares === 1 ? [id] : Array.from({ length: shares }, (_, i) => `${id}/${i}`);

/** The first of two devices of one kind on the machine that are not alike; null: there is none. */
export function unlikeOthers(devices: readonly OwnedDevice[]): OwnedDevice | null {
  const first = new Map<string, string>();
  for (const device of devices) {
    const { kind, model, memoryMb, shares } = device;
    const like = JSON.stringify([model, memoryMb, shares]);
    if (!first.has(kind)) first.set(kind, like);
    else if (first.get(kind) !== like) return device;
  }
  return null;
}

/**
 * The units that so many tasks get on a machine, those of the first task first, each task's in order of kind; the shares of a task are of one device if they can
 * be, and as many as a device has are whole devices. Empty: no device is asked for. Null: there are not enough.
 *
 * @param held units that live runs have
 * @param perTask amounts by kind; what are no devices does not matter
 */
export function chooseUnits(
  devices: readonly OwnedDevice[],
  held: ReadonlySet<string>,
  perTask: Readonly<Record<string, number>> | null,
  tasks: number,
): string[] | null {
  const asked = askedOf(devices, perTask);
  if (asked.length === 0) return [];
  const free = freeUnits(devices, held);
  const taken = serve(devices, free, asked, tasks)?.taken;
  if (taken === undefined) return null;
  // Neighbors go to one task.
  const order = [...taken].sort(
    (a, b) => compare(groupOf(a.device), groupOf(b.device)) || compare(a.device.id, b.device.id),
  );
  const byKind = new Map(
    asked.map(([kind]) => [
      kind,
      order.flatMap(({ device, shares }) =>
        device.kind === kind ? (free.get(device.id) as string[]).slice(0, shares) : [],
      ),
    ]),
  );
  return Array.from({ length: tasks }, (_, task) =>
    asked.flatMap(([kind, amount]) =>
      (byKind.get(kind) as string[]).slice(task * amount, (task + 1) * amount),
    ),
  ).flat();
}

/**
 * What is compared among machines on which so many tasks get their devices, least first (resources.md, "Which machines"): link groups of
 * the devices given, and idle devices left of all kinds. Before them, what the rule does not allow and counts do: 1 where a task would get
 * its shares of several devices though one has as many. Null: there are not enough.
 */
export function deviceKey(
  devices: readonly OwnedDevice[],
  held: ReadonlySet<string>,
  perTask: Readonly<Record<string, number>> | null,
  tasks: number,
): readonly number[] | null {
  const free = freeUnits(devices, held);
  const asked = askedOf(devices, perTask);
  const served = serve(devices, free, asked, tasks);
  return served && [served.split ? 1 : 0, ...keyOfTaken(served.devices, served.taken)];
}

type Asked = [kind: string, amount: number][];
/** By device, its units that nobody has. */
type FreeUnits = ReadonlyMap<string, string[]>;

const askedOf = (devices: readonly OwnedDevice[], perTask: Parameters<typeof furtherIn>[0]): Asked =>
  furtherIn(perTask).filter(([kind]) => devices.some((device) => device.kind === kind));

const freeUnits = (devices: readonly OwnedDevice[], held: ReadonlySet<string>): FreeUnits =>
  new Map(devices.map((one) => [one.id, unitsOf(one).filter((unit) => !held.has(unit))]));

/** `devices`: as they were before. `split`: shares of a task are of several devices. */
function serve(
  devices: readonly OwnedDevice[],
  free: FreeUnits,
  asked: Asked,
  tasks: number,
): { devices: Device[]; taken: Taken[]; split: boolean } | null {
  const used = asUsed(devices, free);
  const requests = (split: boolean): DeviceRequest[] =>
    asked.map(([kind, amount]) => {
      const { shares } = devices.find((device) => device.kind === kind) as OwnedDevice;
      const any = { kind, model: null, minMemoryMb: null };
      if (shares === 1 || (!split && amount % shares === 0))
        return { ...any, count: amount / shares, share: null };
      const parts = !split && amount < shares ? amount : 1;
      return { ...any, count: amount / parts, share: { parts, of: shares } };
    });
  for (const split of [false, true]) {
    const taken = serveDevices(used, requests(split), tasks, '');
    if (taken !== null) return { devices: used, taken, split };
  }
  return null;
}

/** As the rules see them: a run has its shares with their part of the memory. */
const asUsed = (devices: readonly OwnedDevice[], free: FreeUnits): Device[] =>
  devices.map((device) => usedBut(device, free.get(device.id)?.length ?? 0));

function usedBut(device: OwnedDevice, free: number): Device {
  const { shares, memoryMb } = device;
  const used = shares - free;
  return {
    ...device,
    oneUser: false,
    used: { shares: used, memoryMb: Math.floor(memoryMb / shares) * used, user: null },
  };
}

const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);
