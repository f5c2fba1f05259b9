/** EASY: backfilling in the order of arrival. */
import { z } from 'zod';
import { backfilling } from '../backfilling.js';
import { byArrival } from '../heads.js';
import { localKind } from '../policy.js';

export const easy = localKind({
  schema: z.strictObject({
    kind: z.literal('easy'),
    /** In which order jobs behind the reservation are tried; by arrival unless said otherwise. */
    backfill: z.enum(['ARRIVAL', 'SHORTEST', 'LONGEST', 'NARROWEST', 'WIDEST']).optional(),
  }),
  documentation: {
    starts: 'the same, in order of arrival',
    fields:
      '`backfill`: order in which later jobs are tried: `ARRIVAL` (default), `SHORTEST`, `LONGEST`, `NARROWEST`, `WIDEST`',
  },
  scheduler: ({ backfill }) => ({
    walk: byArrival,
    decide: (pass, walk) => backfilling(pass, walk, backfill),
  }),
});
