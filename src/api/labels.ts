/** Labels of machines: as they are given, and as they are shown. */
import type { Labels } from '../core/resources/constraint.js';
import { MAX } from '../platform/limits.js';
import { atMost, text } from './check.js';
import { badInput } from './errors.js';

/** A word of the expressions that can stand for a label, and is not one of theirs. */
export const LABEL_NAME = new RegExp(
  `^(?!(and|or|not|in)$)[A-Za-z_][A-Za-z0-9_.\\-/]{0,${MAX.plainNameChars - 1}}$`,
);
/** Every machine has them: they follow from its registration. */
const OWN = ['os', 'architecture', 'site'];

/** Text by name, in order of name. */
export function labelsGiven(
  field: string,
  given: readonly { name: string; value: string }[],
): Record<string, string> {
  atMost(field, given, MAX.machineLabels);
  const labels = new Map<string, string>();
  for (const [i, { name, value }] of given.entries()) {
    if (!LABEL_NAME.test(name) || OWN.includes(name))
      throw badInput(
        `${field}[${i}].name`,
        name,
        `a letter or \`_\`, then letters, digits, \`_\`, \`.\`, \`-\` or \`/\`, at most ${MAX.plainNameChars}; not and, or, not, in, ${OWN.join(', ')}`,
      );
    if (labels.has(name)) throw badInput(`${field}[${i}].name`, name, 'each name once');
    labels.set(name, text(`${field}[${i}].value`, value, MAX.labelChars));
  }
  return Object.fromEntries([...labels].sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** In order of name. */
export const labelsShown = (labels: Labels): { name: string; value: string }[] =>
  Object.entries(labels)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, value]) => ({ name, value }));
