/** What is there for the reservations of a site: they have parts of its machines and of pools, which runs that began before them may still have. */
import type { Room } from '../grid/amounts.js';
import type { Grid, ReservedEntry, ReservedPart } from '../grid/grid.js';
import {
  giveTo,
  type Hold,
  holdsIn,
  type MachineState,
  type PoolCopies,
  type PoolState,
  type SiteResources,
} from '../grid/site-resources.js';

/** What is free of the site's own machines beside all runs, those inside reservations among them. */
export function roomBeneath(resources: SiteResources, inside: readonly ReservedEntry[]): Room {
  const room = [...resources.free.room];
  for (const { part, resources: own } of inside)
    for (const run of own.runs) giveTo(room, beneath(part, run), -1);
  return room;
}

/** Takes it of the site's own machines; false: they have no room for all of it, and nothing is taken. */
export function takeBeneath(part: ReservedPart, run: OnMachines, room: Room): boolean {
  const there = beneath(part, run);
  const fits = holdsIn(there, room);
  if (fits) giveTo(room, there, -1);
  return fits;
}

/** What is free of the pools of which reservations hold something, by id, beside all runs. */
export function copiesBeneath(grid: Grid): Map<number, number> {
  const left = new Map<number, number>();
  for (const { inside } of grid.sites)
    for (const { part } of inside)
      for (const [id, { inUse }] of part.pools) {
        const pool = grid.pool(id) as PoolState;
        left.set(id, (left.get(id) ?? pool.license.copies - pool.inUse) - inUse);
      }
  return left;
}

/** Takes the copies that are of reservations; false: there are too few, and none is taken. */
export function takeCopiesBeneath({ licenses }: Pick<Hold, 'licenses'>, left: Map<number, number>): boolean {
  const reserved = licenses.filter(({ pool }) => pool.isPart);
  const leftOf = ({ pool }: PoolCopies): number => left.get(pool.license.id) as number;
  if (reserved.some((one) => leftOf(one) < one.copies)) return false;
  for (const one of reserved) left.set(one.pool.license.id, leftOf(one) - one.copies);
  return true;
}

type OnMachines = Pick<Hold, 'machines' | 'tasks' | 'each'>;

/** The same on the site's own machines. */
export const beneath = (part: ReservedPart, { machines, tasks, each }: OnMachines): OnMachines => ({
  ...{ tasks, each },
  machines: machines.map(({ machine }) => part.beneath.get(machine.id) as MachineState),
});
