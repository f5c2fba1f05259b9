/**
 * What a task asks for of devices by what they are (resources.md, "A shape"), as amounts on one machine: parts of devices are counted there,
 * and how many a request takes depends on how many parts the devices have. What amounts cannot say, which devices are free, is known of
 * those who start now (device-holds.ts).
 */
import { type Amounts, CPUS, type DevicesAsked, PLACES, type TaskAmounts } from '../grid/amounts.js';
import {
  type Device,
  type DeviceRequest,
  inServingOrder,
  mostServed,
  type OwnedDevice,
  serveDevices,
  takenFor,
} from './devices.js';

/** On machines with the same devices. */
interface OnMachine {
  readonly asked: { readonly task: Amounts; readonly sharedTask: Amounts };
  readonly taken: { readonly task: Amounts; readonly sharedTake: Amounts };
  /** At most so many tasks are served. */
  readonly most: number;
  /** So many are when nobody has any of the devices. */
  readonly idle: number;
}

/** What a task asks for beside devices. */
type BesideDevices = Pick<TaskAmounts, 'task' | 'sharedTask' | 'sharedTake'>;

const NO_DEVICES: readonly OwnedDevice[] = [];
/** No machine has as much. */
const NOWHERE: Amounts = [CPUS, Infinity];

export class AskedDevices implements DevicesAsked {
  private readonly known = new WeakMap<readonly OwnedDevice[], OnMachine>();

  /** `kinds`: of each request, in the table of the grid. */
  constructor(
    readonly requests: readonly DeviceRequest[],
    readonly user: string | null,
    private readonly kinds: readonly number[],
    private readonly beside: BesideDevices,
  ) {}

  besides(task: Amounts): DevicesAsked {
    const sharedTask = [PLACES, 1, ...task];
    return new AskedDevices(this.requests, this.user, this.kinds, {
      ...{ task, sharedTask, sharedTake: sharedTask },
    });
  }

  askedOf(devices: readonly OwnedDevice[] | undefined, shared: boolean): Amounts {
    const { asked } = this.on(devices);
    return shared ? asked.sharedTask : asked.task;
  }

  takenOf(devices: readonly OwnedDevice[] | undefined, shared: boolean): Amounts {
    const { taken } = this.on(devices);
    return shared ? taken.sharedTake : taken.task;
  }

  mostOf(devices: readonly OwnedDevice[] | undefined): number {
    return this.on(devices).most;
  }

  idleOf(devices: readonly OwnedDevice[] | undefined): number {
    return this.on(devices).idle;
  }

  private on(given: readonly OwnedDevice[] | undefined): OnMachine {
    const devices = given ?? NO_DEVICES;
    let known = this.known.get(devices);
    if (known === undefined) {
      known = this.find(devices);
      this.known.set(devices, known);
    }
    return known;
  }

  private find(devices: readonly OwnedDevice[]): OnMachine {
    const requests = inServingOrder(this.requests);
    const idleDevices = devices.map(
      (device): Device => ({ ...device, oneUser: false, used: { shares: 0, memoryMb: 0, user: null } }),
    );
    const most = mostServed(idleDevices, requests);
    let idle = most;
    while (idle > 0 && serveDevices(idleDevices, requests, idle, null) === null) idle--;
    const units = new Map<number, number>();
    this.requests.forEach((request, i) => {
      const kind = this.kinds[i] as number;
      units.set(kind, (units.get(kind) ?? 0) + request.count * unitsEach(devices, request));
    });
    const { task, sharedTask, sharedTake } = this.beside;
    const taken = { task: added(task, units), sharedTake: added(sharedTake, units) };
    const asked =
      most === 0
        ? { task: NOWHERE, sharedTask: NOWHERE }
        : { task: taken.task, sharedTask: added(sharedTask, units) };
    return { asked, taken, most, idle };
  }
}

/** Units of one of what is asked for. Of a run whose machine has other devices by now it has to be some number, too: what it took has to come back. */
function unitsEach(devices: readonly OwnedDevice[], request: DeviceRequest): number {
  let least = Infinity;
  for (const device of devices) least = Math.min(least, takenFor(device, request)?.shares ?? Infinity);
  return least === Infinity ? 1 : least;
}

function added(amounts: Amounts, more: ReadonlyMap<number, number>): Amounts {
  const sum = new Map(more);
  const all: number[] = [];
  for (let i = 0; i < amounts.length; i += 2) {
    const kind = amounts[i] as number;
    all.push(kind, (amounts[i + 1] as number) + (sum.get(kind) ?? 0));
    sum.delete(kind);
  }
  for (const [kind, amount] of sum) all.push(kind, amount);
  return all;
}
