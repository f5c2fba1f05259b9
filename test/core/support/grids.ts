/** Small grids, written briefly. */
import {
  DEFAULT_POLICY,
  dispatchCycle,
  Grid,
  type License,
  type LocalPolicy,
  type Machine,
  type Policy,
  siteCycle,
} from '../../../src/core/index.js';

export const machine = (given: Partial<Machine> & { id: number }): Machine => ({
  siteId: 1,
  cpus: 4,
  memoryMb: 1000,
  benchmark: 1,
  os: 'linux',
  architecture: 'x86_64',
  licenseIds: [],
  available: true,
  ...given,
});

/** Sites for all machines and licenses that are named. */
export function gridOf(machines: (Partial<Machine> & { id: number })[], licenses: License[] = []): Grid {
  const grid = new Grid();
  for (const id of new Set(machines.map((m) => m.siteId ?? 1))) {
    grid.setSite({ id, name: `site ${id}`, state: 'UP', localPolicy: null });
  }
  for (const license of licenses) grid.setLicense(license);
  for (const given of machines) grid.setMachine(machine(given));
  return grid;
}

export const policyWith = (
  mode: 'MS' | 'LS' | 'NONE',
  local: LocalPolicy = DEFAULT_POLICY.local,
): Policy => ({
  ...DEFAULT_POLICY,
  local,
  dispatch: { ...DEFAULT_POLICY.dispatch, mode },
});

export const EASY = policyWith('NONE', { kind: 'easy' });

export const plan = (grid: Grid, now = 0, policy = EASY, siteId = 1, maxStarts = 100) =>
  siteCycle(grid, siteId, { now, policy, policyVersion: 1, maxStarts });

export const dispatch = (grid: Grid, policy = policyWith('MS'), now = 0, maxMoves = 100) =>
  dispatchCycle(grid, { now, policy, policyVersion: 7, maxMoves });

/** Runs the site's cycle and applies all of it. */
export function apply(grid: Grid, now = 0, policy = EASY, siteId = 1): ReturnType<typeof plan> {
  const made = plan(grid, now, policy, siteId);
  for (const { jobId, allocations, pools, plannedDuration } of made.starts) {
    const plannedEnd = now + plannedDuration;
    grid.startRun({ jobId, siteId, epoch: 1, allocations, pools, start: now, plannedEnd });
  }
  grid.setReservation(siteId, made.reservation);
  return made;
}
