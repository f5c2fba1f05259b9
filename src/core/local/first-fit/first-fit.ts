/**
 * First Fit: in order of arrival, everything starts that fits. The first job that does not and has waited too long gets a
 * reservation, and the rule of EASY holds behind it.
 */
import { z } from 'zod';
import { ageBoundS, isAged } from '../age.js';
import { byArrival } from '../heads.js';
import { localKind } from '../policy.js';

export const firstFit = localKind({
  schema: z.strictObject({ kind: z.literal('first-fit'), ageBoundS }),
  label: 'First fit',
  about: 'In order of arrival, skipping jobs that do not fit.',
  scheduler: (rules) => ({
    walk: byArrival,
    decide(pass, walk) {
      const { queue } = pass.entry;
      for (let slot = walk.next(); slot !== -1 && !pass.full; slot = walk.next()) {
        if (pass.reservation === null && isAged(queue, slot, pass.now, rules.ageBoundS)) {
          if (pass.start(slot) !== 'BLOCKED') continue;
          if (!pass.canReserve) return;
          pass.reserve(slot);
        } else pass.backfill(slot);
        if (pass.exhausted && rules.ageBoundS === null) return;
      }
    },
  }),
});
