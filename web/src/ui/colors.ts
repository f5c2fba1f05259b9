/** The design's colors for canvases, which cannot read variables. */

import { createStore } from '../api/store';
import { theme } from './theme';

/** Counts changes of the colors: whatever is drawn is drawn again. */
export const colorChanges = createStore(0);
const changed = (): void => {
  known.clear();
  colorChanges.set(colorChanges.get() + 1);
};
const known = new Map<string, string>();
let probe: HTMLElement | null = null;

/** The computed color of a variable, such as `--accent`. */
export function colorOf(variable: string): string {
  let color = known.get(variable);
  if (color === undefined) {
    if (!probe) {
      probe = document.createElement('span');
      probe.hidden = true;
      document.body.append(probe);
    }
    probe.style.color = `var(${variable})`;
    color = getComputedStyle(probe).color;
    known.set(variable, color);
  }
  return color;
}

theme.subscribe(() => queueMicrotask(changed));
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', changed);
