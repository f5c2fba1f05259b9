/** The devices of one machine that its tasks get (resources.md, "Devices on one machine for n tasks"). */

/** As its machine is registered with it. Not an interface: those are no JSON for Prisma. */
export type OwnedDevice = {
  /** On its machine. */
  readonly id: string;
  readonly kind: string;
  readonly model: string | null;
  readonly memoryMb: number;
  /** Parts that can be given one by one, at least 1. */
  readonly shares: number;
  /** The group of devices that are joined fast; null: one of its own. */
  readonly link: string | null;
  /** All who share it are of one user; left out: they may be of any. */
  readonly oneUser?: boolean;
};

/** Devices of one machine that are alike, as peers are told of them. Not an interface: those are no JSON for Prisma. */
export type AlikeDevices = Pick<OwnedDevice, 'kind' | 'model' | 'memoryMb' | 'shares'> & {
  readonly count: number;
};

export interface Device extends OwnedDevice {
  readonly oneUser: boolean;
  readonly used: DeviceUse;
}

export interface DeviceUse {
  readonly shares: number;
  readonly memoryMb: number;
  readonly user: string | null;
}

/** For each task. */
export interface DeviceRequest {
  readonly kind: string;
  readonly count: number;
  /** null: any. */
  readonly model: string | null;
  readonly minMemoryMb: number | null;
  /** null: whole devices. */
  readonly share: { readonly parts: number; readonly of: number } | null;
}

/** The same device in the order given: whole devices first, then shares. */
export const inServingOrder = <R extends Pick<DeviceRequest, 'share'>>(requests: readonly R[]): R[] => [
  ...requests.filter(({ share }) => share === null),
  ...requests.filter(({ share }) => share !== null),
];

/** As it is said in sentences: "gpu a100 (1/4, 20000 MB)". */
export function shownRequest({ kind, model, minMemoryMb, share }: Omit<DeviceRequest, 'count'>): string {
  const more = [
    ...(share === null ? [] : [`${share.parts}/${share.of}`]),
    ...(minMemoryMb === null ? [] : [`${minMemoryMb} MB`]),
  ];
  return [
    kind,
    ...(model === null ? [] : [model]),
    ...(more.length === 0 ? [] : [`(${more.join(', ')})`]),
  ].join(' ');
}

/** What is taken of a device. */
export interface Taken {
  readonly device: Device;
  readonly shares: number;
  readonly memoryMb: number;
}

export const isIdle = ({ used }: Pick<Device, 'used'>): boolean => used.shares <= 0 && used.memoryMb <= 0;

/** The name of its link group, which tells groups apart. */
export const groupOf = ({ link, id }: Device): string => (link === null ? `device ${id}` : `link ${link}`);

/**
 * What so many tasks get, device by device; null: they cannot all be served. Greedily in the order of the requests, which is that of
 * `inServingOrder`: whoever writes the pickier one first gets more.
 */
export const serveDevices = (
  devices: readonly Device[],
  requests: readonly DeviceRequest[],
  tasks: number,
  user: string | null,
): Taken[] | null => serveEach(devices, requests, tasks, user)?.taken ?? null;

/** The same, and what each request has got, one by one. `user` null: nobody knows; a device that only its user may share is then not shared. */
export function serveEach(
  devices: readonly Device[],
  requests: readonly DeviceRequest[],
  tasks: number,
  user: string | null,
): { readonly taken: Taken[]; readonly given: readonly (readonly Taken[])[] } | null {
  const serving = new Serving(devices, user);
  const given: Taken[][] = [];
  for (const request of requests) {
    const count = tasks * request.count;
    serving.given = [];
    if (request.share === null ? !serving.whole(request, count) : !serving.shares(request, count))
      return null;
    given.push(serving.given);
  }
  return { taken: serving.taken(), given };
}

/** Link groups among the devices given, and idle devices of all kinds that are left beside them. */
export function keyOfTaken(
  devices: readonly Device[],
  taken: readonly Taken[],
): [groups: number, idle: number] {
  const given = new Set(taken.map(({ device }) => device));
  return [
    new Set(taken.map(({ device }) => groupOf(device))).size,
    devices.filter((device) => isIdle(device) && !given.has(device)).length,
  ];
}

/** At most so many tasks can be served, whatever goes to whom: a bound that costs little. */
export function mostServed(devices: readonly Device[], requests: readonly DeviceRequest[]): number {
  let most = Infinity;
  for (const request of requests) {
    let items = 0;
    for (const device of devices) {
      const taken = takenFor(device, request);
      if (taken === null) continue;
      if (request.share === null) items += isIdle(device) ? 1 : 0;
      else items += Math.max(0, Math.floor((device.shares - device.used.shares) / taken.shares));
    }
    most = Math.min(most, Math.floor(items / request.count));
  }
  return most;
}

/** The same of a machine on which nothing runs, by what alike devices it has. */
export const mostServedBy = (alike: readonly AlikeDevices[], requests: readonly DeviceRequest[]): number =>
  mostServed(
    alike.flatMap(({ count, ...device }, i) =>
      Array.from({ length: count }, (_, j): Device => {
        return { ...device, id: `${i}/${j}`, link: null, oneUser: false, used: NOT_USED };
      }),
    ),
    requests,
  );
const NOT_USED: DeviceUse = { shares: 0, memoryMb: 0, user: null };

const suits = ({ kind, model }: OwnedDevice, request: DeviceRequest): boolean =>
  kind === request.kind && (request.model === null || model === request.model);

/** What is taken of a device for one of what is asked for; null: it is not such a device. */
export function takenFor(
  device: OwnedDevice,
  request: DeviceRequest,
): { readonly shares: number; readonly memoryMb: number } | null {
  if (!suits(device, request)) return null;
  const { shares, memoryMb } = device;
  const taken = request.share === null ? { shares, memoryMb } : needed(device, request);
  const isThere = memoryMb >= Math.max(taken.memoryMb, request.minMemoryMb ?? 0);
  return isThere && Number.isInteger(taken.shares) ? taken : null;
}

class Serving {
  /** One by one. */
  given: Taken[] = [];
  private readonly uses: Map<Device, DeviceUse>;

  constructor(
    private readonly devices: readonly Device[],
    private readonly user: string | null,
  ) {
    this.uses = new Map(devices.map((device) => [device, device.used]));
  }

  /** From the group with the fewest that has enough; if none has, all of the one with the most, and again. */
  whole(request: DeviceRequest, count: number): boolean {
    for (let left = count; left > 0; ) {
      const groups = this.idleGroups(
        (device) => suits(device, request) && device.memoryMb >= (request.minMemoryMb ?? 0),
      );
      const enough = groups.find(({ length }) => length >= left);
      const most = Math.max(0, ...groups.map(({ length }) => length));
      const group = enough ?? groups.find(({ length }) => length === most);
      if (group === undefined) return false;
      for (const device of group.slice(0, left)) this.take(device, device.shares, device.memoryMb);
      left -= Math.min(left, group.length);
    }
    return true;
  }

  /** One after another: of a device that is shared already, the one with the fewest free shares; else of an idle one. */
  shares(request: DeviceRequest, count: number): boolean {
    for (let i = 0; i < count; i++) {
      const device = this.sharedFor(request) ?? this.idleGroups((one) => this.gives(one, request))[0]?.[0];
      if (device === undefined) return false;
      const { shares, memoryMb } = needed(device, request);
      this.take(device, shares, memoryMb);
    }
    return true;
  }

  taken(): Taken[] {
    return this.devices
      .map((device) => {
        const { shares, memoryMb } = this.useOf(device);
        return { device, shares: shares - device.used.shares, memoryMb: memoryMb - device.used.memoryMb };
      })
      .filter(({ shares, memoryMb }) => shares > 0 || memoryMb > 0);
  }

  private sharedFor(request: DeviceRequest): Device | null {
    let best: Device | null = null;
    for (const device of this.devices) {
      if (this.idle(device) || !this.gives(device, request)) continue;
      const order = best === null ? -1 : this.freeShares(device) - this.freeShares(best);
      if (order < 0 || (order === 0 && best !== null && device.id < best.id)) best = device;
    }
    return best;
  }

  /** Whether a share of it can be given. */
  private gives(device: Device, request: DeviceRequest): boolean {
    if (!suits(device, request)) return false;
    const { shares, memoryMb } = needed(device, request);
    const { user, memoryMb: usedMb } = this.useOf(device);
    if (!Number.isInteger(shares) || shares > this.freeShares(device)) return false;
    if (memoryMb > device.memoryMb - usedMb) return false;
    return !device.oneUser || this.idle(device) || (user !== null && user === this.user);
  }

  /** By group, the idle ones that pass, by id; groups with fewer first, ties by name. */
  private idleGroups(passes: (device: Device) => boolean): Device[][] {
    const groups = new Map<string, Device[]>();
    for (const device of this.devices) {
      if (!this.idle(device) || !passes(device)) continue;
      const name = groupOf(device);
      const known = groups.get(name);
      if (known === undefined) groups.set(name, [device]);
      else known.push(device);
    }
    const byId = (a: Device, b: Device): number => (a.id < b.id ? -1 : 1);
    return [...groups]
      .sort(([a, of], [b, others]) => of.length - others.length || (a < b ? -1 : 1))
      .map(([, of]) => of.sort(byId));
  }

  private take(device: Device, shares: number, memoryMb: number): void {
    const used = this.useOf(device);
    this.given.push({ device, shares, memoryMb });
    this.uses.set(device, {
      shares: used.shares + shares,
      memoryMb: used.memoryMb + memoryMb,
      user: used.user ?? this.user,
    });
  }

  private useOf(device: Device): DeviceUse {
    return this.uses.get(device) as DeviceUse;
  }

  private idle(device: Device): boolean {
    return isIdle({ used: this.useOf(device) });
  }

  private freeShares(device: Device): number {
    return device.shares - this.useOf(device).shares;
  }
}

/** Of a device, for one share. */
function needed(
  device: OwnedDevice,
  { share, minMemoryMb }: DeviceRequest,
): { shares: number; memoryMb: number } {
  const { parts, of } = share as NonNullable<DeviceRequest['share']>;
  return {
    shares: (device.shares * parts) / of,
    memoryMb: Math.max(minMemoryMb ?? 0, Math.floor((device.memoryMb * parts) / of)),
  };
}
