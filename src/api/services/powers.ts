/**
 * What a measurement tells an operator. Machines of one model compare: the same CPUs do the same work, unless one was measured under
 * load or something is wrong with it. Devices that were built in after a machine was registered serve no jobs until they are registered too.
 */
import type { OwnedDevice } from '../../core/resources/devices.js';
import type { MachineRow } from '../../store/rows.js';
import type { Measurement } from '../../store/store.js';

interface Power {
  name: string;
  power: number;
}

/** The most and the least powerful machine of each model. */
export type Powers = ReadonlyMap<string, { most: Power; least: Power }>;

/** Powers that differ by more are told. */
const TOLERANCE = 0.2;

export function powersOf(machines: readonly Pick<MachineRow, 'name' | 'measured'>[]): Powers {
  const found = new Map<string, { most: Power; least: Power }>();
  for (const { name, measured } of machines) {
    const { model, benchmark: power } = (measured ?? {}) as Partial<Measurement>;
    if (!model || power === undefined) continue;
    const own = { name, power };
    const { most, least } = found.get(model) ?? { most: own, least: own };
    found.set(model, { most: power > most.power ? own : most, least: power < least.power ? own : least });
  }
  return found;
}

/** More devices than this are counted, not named. */
const NAMED_MAX = 8;

/** Null: there is nothing to tell. */
export function measuredWarning(
  measured: Measurement,
  registered: readonly Pick<OwnedDevice, 'id'>[],
  powers: Powers,
): string | null {
  const told = [powerWarning(measured, powers), deviceWarning(measured, registered)].filter(
    (one) => one !== null,
  );
  return told.length === 0 ? null : told.join('; ');
}

/** The devices that its agent found and that jobs do not get. */
function deviceWarning(
  { devices = [] }: Measurement,
  registered: readonly Pick<OwnedDevice, 'id'>[],
): string | null {
  const known = new Set(registered.map(({ id }) => id));
  const left = devices.filter(({ id }) => !known.has(id)).map(({ id }) => id);
  if (left.length === 0) return null;
  const more = left.length > NAMED_MAX ? ` and ${left.length - NAMED_MAX} more` : '';
  return `not registered: ${left.slice(0, NAMED_MAX).join(', ')}${more}, which its agent found`;
}

/** How the power of a machine differs from that of others of its model; null: it does not, or nobody knows. */
function powerWarning({ model, benchmark }: Measurement, powers: Powers): string | null {
  const alike = powers.get(model ?? '');
  if (!alike) return null;
  const other = alike.most.power > benchmark ? alike.most : alike.least;
  const [less, more] = [Math.min(other.power, benchmark), Math.max(other.power, benchmark)];
  if (less >= more * (1 - TOLERANCE)) return null;
  return `power ${benchmark}; machine ${other.name}, with the same CPUs (${model}), has power ${other.power}`;
}
