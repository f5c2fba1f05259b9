/** Shortest job first: the first that does not fit stops everyone behind it. Before all others, by arrival, who waited too long. */
import { z } from 'zod';
import { ageBoundS, isAged } from '../age.js';
import { startHeads } from '../heads.js';
import { localKind } from '../policy.js';
import { KeyedWalk } from '../walk.js';

export const sjf = localKind({
  schema: z.strictObject({ kind: z.literal('sjf'), ageBoundS }),
  label: 'Shortest first',
  about: 'The shortest job first.',
  scheduler: (rules) => ({
    walk({ entry: { queue }, now }) {
      const slots = queue.inOrder('ARRIVAL').window().slice();
      const keys = new Float64Array(queue.ids.length);
      for (const slot of slots)
        keys[slot] = isAged(queue, slot, now, rules.ageBoundS) ? -1 : (queue.works[slot] as number);
      return new KeyedWalk(queue, slots, keys);
    },
    decide: startHeads,
  }),
});
