/** What machines can run: static requirements against kinds of machines, each pair once. */
import { furtherIn } from '../grid/amounts.js';
import type { Position, Preference, Request, Requirement } from './messages.js';

/** Machines that no requirement can tell apart. */
export interface MachineKind {
  os: string;
  architecture: string;
  /** Kinds of licenses that it can use, sorted. */
  licenses: readonly string[];
  cpus: number;
  memoryMb: number;
  /** What it has besides, by kind of resource; left out: nothing. */
  resources?: Readonly<Record<string, number>>;
  /** So many tasks of one job at most; left out: as many as there is room for. */
  tasksOfJob?: number;
  /** What a CPU of it counts in the power of channels; left out: 1. */
  cpuPower?: number;
}

export const kindKey = (kind: MachineKind): string =>
  JSON.stringify([
    ...[kind.os, kind.architecture, kind.licenses, kind.cpus, kind.memoryMb],
    ...[kind.tasksOfJob ?? null, kind.cpuPower ?? 1],
    ...furtherIn(kind.resources ?? null),
  ]);

/** A class; what is not given is not asked for. */
export function requirement(given: Partial<Omit<Requirement, 'key'>>): Requirement {
  const {
    architecture = null,
    tasks = 1,
    cpusPerTask = 1,
    memoryMbPerTask = 0,
    resourcesPerTask = {},
  } = given;
  const os = [...new Set(given.os)].sort();
  const licenses = [...new Set(given.licenses)].sort();
  const amounts = [tasks, cpusPerTask, memoryMbPerTask, ...furtherIn(resourcesPerTask)];
  const key = JSON.stringify([os, architecture, licenses, ...amounts]);
  return { key, os, architecture, licenses, tasks, cpusPerTask, memoryMbPerTask, resourcesPerTask };
}

/** A soft condition. */
export function preference(given: Partial<Omit<Preference, 'key'>>): Preference {
  const { leaf = null, requirement = null } = given;
  return { key: JSON.stringify([leaf, requirement?.key ?? null]), leaf, requirement };
}

export function request(
  given: Pick<Request, 'id' | 'owner' | 'requirement'> & Partial<Pick<Request, 'preferences' | 'origin'>>,
): Request {
  const { id, owner, requirement, preferences = [], origin = null } = given;
  const liked = preferences.map(({ key }) => key).sort();
  const group = JSON.stringify([requirement.key, liked, origin && [origin.latitude, origin.longitude]]);
  return { id, owner, requirement, preferences, origin, group };
}

/** How many tasks of the class a machine of the kind, idle, has room for. */
export function tasksOn(requirement: Requirement, kind: MachineKind): number {
  const able =
    (requirement.os.length === 0 || requirement.os.includes(kind.os)) &&
    (requirement.architecture === null || requirement.architecture === kind.architecture) &&
    requirement.licenses.every((license) => kind.licenses.includes(license));
  if (!able) return 0;
  const byMemory = requirement.memoryMbPerTask > 0 ? kind.memoryMb / requirement.memoryMbPerTask : Infinity;
  let byResources = Infinity;
  for (const [name, amount] of Object.entries(requirement.resourcesPerTask))
    byResources = Math.min(byResources, (kind.resources?.[name] ?? 0) / amount);
  return Math.min(
    Math.floor(Math.min(kind.cpus / requirement.cpusPerTask, byMemory, byResources)),
    kind.tasksOfJob ?? Infinity,
  );
}

const EARTH_KM = 6371;
const radians = (degrees: number): number => (degrees * Math.PI) / 180;

/** Great-circle distance (haversine), kilometers. */
export function distanceKm(a: Position, b: Position): number {
  const north = Math.sin(radians(b.latitude - a.latitude) / 2);
  const east = Math.sin(radians(b.longitude - a.longitude) / 2);
  const chord = north ** 2 + Math.cos(radians(a.latitude)) * Math.cos(radians(b.latitude)) * east ** 2;
  return 2 * EARTH_KM * Math.asin(Math.min(1, Math.sqrt(chord)));
}
