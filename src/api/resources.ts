/** Amounts by kind of resource, beside CPUs and memory: as they are given, and as they are shown. */
import { furtherIn } from '../core/grid/amounts.js';
import type { JobPart } from '../core/model.js';
import type { DeviceRequest } from '../core/resources/devices.js';
import { MAX } from '../platform/limits.js';

const KIND = new RegExp(`^[A-Za-z][A-Za-z0-9._:-]{0,${MAX.plainNameChars - 1}}$`);
/** What every machine has, counted by fields of their own. */
const OWN_KINDS: readonly string[] = ['cpus', 'memoryMb', 'places'];

/** Amounts by kind of resource, in order of kind; `refuse` is told of what is not accepted. */
export function amountsGiven(
  field: string,
  given: readonly { kind: string; amount: number }[],
  most: number,
  refuse: (field: string, value: unknown, accepted: string) => void,
): Record<string, number> {
  if (given.length > most) refuse(field, given.length, `up to ${most} kinds`);
  const byKind = new Map<string, number>();
  for (const [i, { kind, amount }] of given.entries()) {
    if (!KIND.test(kind) || OWN_KINDS.includes(kind))
      refuse(
        `${field}[${i}].kind`,
        kind,
        `a letter, then letters, digits, \`.\`, \`_\`, \`:\` or \`-\`, at most ${MAX.plainNameChars}; not ${OWN_KINDS.join(', ')}`,
      );
    if (byKind.has(kind)) refuse(`${field}[${i}].kind`, kind, 'each kind once');
    if (!(amount >= 1 && amount <= MAX.integer))
      refuse(`${field}[${i}].amount`, amount, `1 to ${MAX.integer}`);
    byKind.set(kind, amount);
  }
  return Object.fromEntries([...byKind].sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** Parts of a job as they are shown. */
export const partsShown = (parts: readonly JobPart[] | null) =>
  (parts ?? []).map(({ resourcesPerTask, devicesPerTask, allAlike, ...part }) => ({
    ...part,
    resourcesPerTask: amountsShown(resourcesPerTask),
    devicesPerTask: requestsShown(devicesPerTask ?? null),
    allAlike: allAlike && [...allAlike],
  }));

/** In order of kind. */
export const amountsShown = (
  amounts: Readonly<Record<string, number>> | null,
): { kind: string; amount: number }[] => furtherIn(amounts).map(([kind, amount]) => ({ kind, amount }));

/** In the order given; null: none. */
export const requestsShown = (requests: readonly DeviceRequest[] | null): DeviceRequest[] => [
  ...(requests ?? []),
];
