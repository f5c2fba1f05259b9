/** EASY: backfilling in the order of arrival. */
import { z } from 'zod';
import { backfilling } from '../backfilling.js';
import { byArrival } from '../heads.js';
import { localKind } from '../policy.js';

export const easy = localKind({
  schema: z.strictObject({
    kind: z.literal('easy'),
    backfill: z.enum(['ARRIVAL', 'SHORTEST', 'LONGEST', 'NARROWEST', 'WIDEST']).optional().meta({
      title: 'Fill in by',
      description: 'Order in which jobs behind the reservation are tried; by default, by arrival.',
    }),
  }),
  label: 'EASY backfilling',
  about:
    'In order of arrival; the first job that does not fit gets a reservation, and later ones are backfilled if they do not delay it.',
  scheduler: ({ backfill }) => ({
    walk: byArrival,
    decide: (pass, walk) => backfilling(pass, walk, backfill),
  }),
});
