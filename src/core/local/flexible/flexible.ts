/**
 * Flexible Backfilling (Pasquali et al., section 4): EASY in the order of the root's priorities, of the site's own, or of arrival,
 * as the policy of the root says.
 */
import { z } from 'zod';
import { LicenseRequests } from '../../resources/license-requests.js';
import { backfilling } from '../backfilling.js';
import { byArrival, byPriority } from '../heads.js';
import type { SitePass } from '../pass.js';
import { type LocalOrder, type LocalScheduler, localKind } from '../policy.js';
import type { Walk } from '../walk.js';
import { OwnPriorityWalk } from './own-priority-walk.js';

const weight = (title: string, description: string) =>
  z.number().min(0).max(1e6).meta({ title, description });

const weights = z.strictObject({
  aging: weight(
    'Aging',
    'Added for each second of waiting, if the site computes priorities (mode LS), so that no job waits forever.',
  ),
  licenses: weight('Scarce licenses', 'For jobs that request licenses in high demand.'),
  waitMinimization: weight('Short jobs', 'For jobs that are short compared with the shortest in the queue.'),
  deadlineMin: weight('Far deadline', 'For a deadline that is far away or has passed.'),
  deadlineMax: weight('Last moment', 'For a deadline that can just be met.'),
  /** By how much a run time is overestimated when the deadline is judged. */
  deadlineK: z.number().min(0).max(1000).meta({
    title: 'Urgency begins',
    description: 'How many run times before its deadline the urgency of a job begins to grow.',
    unit: 'run times',
  }),
});

export const DEFAULT_FLEXIBLE = {
  kind: 'flexible',
  weights: {
    aging: 0.00001,
    licenses: 1,
    waitMinimization: 1,
    deadlineMin: 0.1,
    deadlineMax: 5,
    deadlineK: 1.5,
  },
} as const;

export const flexible = localKind({
  schema: z
    .strictObject({ kind: z.literal('flexible'), weights })
    .refine((local) => local.weights.deadlineMin <= local.weights.deadlineMax, {
      path: ['weights', 'deadlineMin'],
      error: 'must not be above deadlineMax',
    }),
  label: 'Flexible backfilling',
  about:
    'In priority order; the first job that does not fit gets a reservation, and later ones are backfilled if they do not delay it (Pasquali et al.).',
  initial: DEFAULT_FLEXIBLE,
  terms: {
    aging: { label: 'Aging' },
    licenses: { label: 'Licenses' },
    waitMinimization: { label: 'Shortness' },
    deadline: { label: 'Deadline' },
  },
  scheduler: (rules, order): LocalScheduler => ({ walk: walks(rules.weights)[order], decide: backfilling }),
});

const walks = (of: z.infer<typeof weights>): Record<LocalOrder, (pass: SitePass) => Walk> => ({
  ARRIVAL: byArrival,
  PRIORITY: byPriority,
  OWN_PRIORITY: ({ grid, entry: { queue, resources }, now }) =>
    new OwnPriorityWalk(queue, {
      now,
      weights: of,
      bestBenchmark: resources.bestBenchmark,
      ratios: grid.index(LicenseRequests).ratiosOf(queue),
    }),
});
