/** Sites and machines that leave UP and come back, for the live service and the simulator alike. */
import {
  concernedBy,
  type Machine,
  type RandomStream,
  type Site,
  type SiteState,
  type WorldChange,
} from '../../src/core/index.js';
import { ROOT, type Scheduler } from '../../src/core/scheduler.js';
import type { Change } from '../../src/simulator/engine.js';
import type { MemoryStore } from '../store/memory.js';
import type { Happening } from './virtual.js';

export interface Outage {
  at: number;
  siteId: number;
  /** null: the whole site. */
  machineId: number | null;
  state: SiteState;
}

/** Each site in turn leaves UP for a while, and between them machines do; at last all are up. In the order of time. */
export function outagesOf(
  random: RandomStream,
  machines: readonly Machine[],
  from: number,
  until: number,
): Outage[] {
  const siteIds = [...new Set(machines.map(({ siteId }) => siteId))];
  const outages: Outage[] = [];
  const goes = (siteId: number, machineId: number | null, at: number): void => {
    const state = random.next() < 0.5 ? 'DOWN' : 'DRAINING';
    outages.push({ at, siteId, machineId, state });
    outages.push({ at: at + random.integer(20, 200), siteId, machineId, state: 'UP' });
  };
  for (let at = from; at < until; at += random.integer(30, 150)) {
    if (random.next() < 0.5) goes(siteIds[random.integer(0, siteIds.length - 1)] as number, null, at);
    else {
      const machine = machines[random.integer(0, machines.length - 1)] as Machine;
      goes(machine.siteId, machine.id, at);
    }
  }
  return outages.sort((a, b) => a.at - b.at);
}

/** As the API does it: the change is stored, and those whom it concerns are woken. */
export function happeningsOf(
  outages: readonly Outage[],
  siteIds: readonly number[],
  store: (outage: Outage) => Promise<void>,
): Happening[] {
  return outages.map((outage) => ({
    at: outage.at,
    async happens(): Promise<readonly Scheduler[]> {
      await store(outage);
      const { siteId, machineId } = outage;
      const change: WorldChange = { of: machineId === null ? 'SITE' : 'MACHINE', siteId };
      const concerned = concernedBy(change);
      return concerned === 'ALL' ? [ROOT, ...siteIds] : concerned;
    },
  }));
}

/** Stored in memory. */
export const inMemory =
  (store: MemoryStore) =>
  async ({ siteId, machineId, state }: Outage): Promise<void> => {
    if (machineId === null) store.setSiteState(siteId, state);
    else store.setMachineState(machineId, state);
  };

/** The same for the simulator. */
export const changesOf = (
  outages: readonly Outage[],
  { sites, machines }: { sites: readonly Site[]; machines: readonly Machine[] },
): Change[] =>
  outages.map(({ at, siteId, machineId, state }) => {
    if (machineId === null) return { at, site: { ...byId(sites, siteId), state } };
    return { at, machine: { ...byId(machines, machineId), available: state === 'UP' } };
  });

const byId = <T extends { id: number }>(list: readonly T[], id: number): T =>
  list.find((one) => one.id === id) as T;

/** Two lists in the order of time as one; at one instant the first list's come first. */
export const inTime = (first: readonly Happening[], second: readonly Happening[]): Happening[] =>
  [...first, ...second].sort((a, b) => a.at - b.at);
