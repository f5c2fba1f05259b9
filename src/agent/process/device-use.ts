/** What runs use of the devices that they have for themselves, as far as the tools of the devices' makers tell. */
import { type DeviceUse, devicesInUse, type HostDevice } from '../devices.js';
import type { Assignment } from '../runner.js';
import { deviceOf, unitsOf } from '../units.js';
import { nextLookMs, type ProcessRun, upMs } from './run.js';

const LOOK_MS = 10_000;

/** The devices that a run has all shares of, and whose use is told; what several share is nobody's. */
export function measuredDevices(assignment: Assignment, host: readonly HostDevice[]): string[] {
  const units = unitsOf(assignment);
  if (units.length === 0) return [];
  return host
    .filter(({ told, id, shares }) => told && units.filter((unit) => deviceOf(unit) === id).length === shares)
    .map(({ id }) => id);
}

export class DeviceLooks {
  private nextMs = 0;

  constructor(private readonly inUse: () => Promise<ReadonlyMap<string, DeviceUse>> = devicesInUse) {}

  /** Looks at the devices of all runs at once, if it is time to; the tools are slow, and never asked twice at a time. */
  look(runs: readonly ProcessRun[], nowMs: number): void {
    if (nowMs < this.nextMs) return;
    const having = runs.filter(({ devices = [] }) => devices.length > 0);
    if (having.length === 0) return;
    this.nextMs = Number.POSITIVE_INFINITY;
    const look = async (): Promise<void> => {
      const use = await this.inUse();
      for (const { meter, devices = [] } of having)
        meter.takeDevices(
          devices.map((id) => use.get(id) ?? null),
          upMs(),
        );
    };
    void look().finally(() => {
      this.nextMs = nextLookMs(nowMs, LOOK_MS);
    });
  }
}
