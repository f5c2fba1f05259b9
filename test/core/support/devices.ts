/** Devices of runs, as the store chooses them when they start. */
import type { Allocation, Job, JobPart, Run } from '../../../src/core/index.js';
import type { OwnedDevice } from '../../../src/core/resources/devices.js';
import { chooseUnits, type HeldUnit, holdUnits, unitsAskedBy } from '../../../src/core/resources/units.js';
import { placedParts } from '../../support/plain-job.js';

/** What each allocation of a job that starts has of its machine's devices, beside all that runs there. Throws where there are too few. */
export function chosenDevices(
  devicesOf: (machineId: number) => readonly OwnedDevice[],
  running: Iterable<{ job: Job; run: Pick<Run, 'allocations' | 'devices'> }>,
  { job, allocations }: { job: Job; allocations: readonly Allocation[] },
): string[][] {
  const held = new Map<number, Map<string, HeldUnit>>();
  /** `units`: null: they are to be chosen. */
  const hold = (
    of: Job,
    part: JobPart,
    { machineId, tasks }: Allocation,
    units: readonly string[] | null,
  ) => {
    const devices = devicesOf(machineId);
    const here = held.get(machineId) ?? new Map<string, HeldUnit>();
    held.set(machineId, here);
    const asked = unitsAskedBy({ ...part, userId: of.userId });
    const chosen = units ?? chooseUnits(devices, here, asked, tasks);
    if (chosen === null) throw new Error(`job ${of.id} has no devices on machine ${machineId}`);
    for (const [unit, one] of holdUnits(devices, chosen, asked, tasks)) here.set(unit, one);
    return [...chosen];
  };
  for (const { run, job: of } of running)
    placedParts(of, run.allocations).forEach(({ part, ...on }, i) => {
      hold(of, part, on, run.devices?.[i] ?? []);
    });
  return placedParts(job, allocations).map(({ part, ...on }) => hold(job, part, on, null));
}
