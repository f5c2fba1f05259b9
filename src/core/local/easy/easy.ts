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
      description: 'In which order jobs behind the reservation are tried; by arrival if it is left out.',
    }),
  }),
  label: 'EASY backfilling',
  about:
    'In the order of arrival; the first job that does not fit gets a reservation, and later ones fill in where they do not delay it.',
  scheduler: ({ backfill }) => ({
    walk: byArrival,
    decide: (pass, walk) => backfilling(pass, walk, backfill),
  }),
});
