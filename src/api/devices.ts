/** Devices of machines: as they are given, and as they are shown. */
import type { OwnedDevice } from '../core/resources/devices.js';
import { sharedOtherwise, unitsOf } from '../core/resources/units.js';
import { MAX } from '../platform/limits.js';
import { atMost, clearable, text, within } from './check.js';
import { badInput } from './errors.js';
import { LABEL_NAME } from './labels.js';

const ID = new RegExp(`^[A-Za-z0-9][A-Za-z0-9._:-]{0,${MAX.plainNameChars - 1}}$`);
const OWN_KINDS = ['cpus', 'memoryMb', 'places'];

interface GivenDevice {
  id: string;
  kind: string;
  model?: string | null | undefined;
  memoryMb: number;
  shares: number;
  link?: string | null | undefined;
  oneUser: boolean;
}

/** In the order given. */
export function devicesGiven(field: string, given: readonly GivenDevice[]): OwnedDevice[] {
  atMost(field, given, MAX.machineDevices);
  const ids = new Set<string>();
  const devices = given.map(({ id, kind, model, memoryMb, shares, link, oneUser }, i): OwnedDevice => {
    const at = `${field}[${i}]`;
    if (!ID.test(id))
      throw badInput(
        `${at}.id`,
        id,
        `a letter or digit, then letters, digits, \`.\`, \`_\`, \`:\` or \`-\`, at most ${MAX.plainNameChars}`,
      );
    if (ids.has(id)) throw badInput(`${at}.id`, id, 'each device once');
    ids.add(id);
    // Constraints ask for its model by the name of its kind.
    if (!LABEL_NAME.test(kind) || OWN_KINDS.includes(kind))
      throw badInput(`${at}.kind`, kind, `a name like that of a label, not ${OWN_KINDS.join(', ')}`);
    return {
      ...{ id, kind },
      model: clearable(`${at}.model`, model, text, MAX.labelChars, 1) ?? null,
      memoryMb: within(`${at}.memoryMb`, memoryMb, 0, MAX.integer),
      shares: within(`${at}.shares`, shares, 1, MAX.deviceShares),
      link: clearable(`${at}.link`, link, text, MAX.labelChars, 1) ?? null,
      ...(oneUser ? { oneUser } : {}),
    };
  });
  const other = sharedOtherwise(devices);
  if (other !== null)
    throw badInput(
      field,
      other.id,
      `devices of one kind (${other.kind}) with the same number of shares; use another kind for devices that are shared otherwise`,
    );
  return devices;
}

/** `held`: units that jobs have. */
export const devicesShown = (devices: readonly OwnedDevice[], held: readonly string[]) => {
  const taken = new Set(held);
  return devices.map((device) => ({
    ...device,
    oneUser: device.oneUser ?? false,
    used: unitsOf(device).filter((unit) => taken.has(unit)).length,
  }));
};
