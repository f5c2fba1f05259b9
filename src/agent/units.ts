/** Devices, and shares of devices, as runs are given them by name: `gpu0`, or `gpu0/2` of one that is shared. */

/** What a run is told of where it takes place. */
export interface Placed {
  machines: readonly { tasks: number; devices?: readonly string[] }[];
  task?: number;
  tasks: number;
}

/** The device that it is, or is a share of. */
export const deviceOf = (unit: string): string => unit.replace(/\/\d+$/, '');

/** Each task of a machine has equally many. Of a command that starts all tasks itself: those of the first machine, where it runs. */
export function unitsOf({ machines, task, tasks: all }: Placed): readonly string[] {
  if (task === undefined || all === 1) return machines[0]?.devices ?? [];
  let first = 0;
  for (const { tasks, devices = [] } of machines) {
    if (task < first + tasks) {
      const each = devices.length / tasks;
      return devices.slice((task - first) * each, (task - first + 1) * each);
    }
    first += tasks;
  }
  return [];
}
