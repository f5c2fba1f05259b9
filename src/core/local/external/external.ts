/**
 * The site schedules itself (Slurm, PBS, …): its scheduler decides when and on which machines a job runs. Jobs are handed over in the order
 * of the queue, as long as so many of ours do not wait there: what is not handed over can still go to another site. A job that could run
 * into a maintenance window of the whole site waits here until that is over. What
 * waits there for long is asked back where another site can start it (recalls.ts).
 */
import { z } from 'zod';
import { byArrival, byPriority } from '../heads.js';
import { localKind } from '../policy.js';

export const external = localKind({
  schema: z.strictObject({
    kind: z.literal('external'),
    queueLimit: z.int().min(1).max(100_000).default(100).meta({
      title: 'Jobs waiting there',
      description:
        "Maximum number of Switchyard's jobs waiting in the site's own scheduler. Others wait here and can still go to another site.",
      unit: 'jobs',
    }),
    takeBackAfterS: z.number().min(0).max(31_536_000).nullable().default(60).meta({
      title: 'Take back after',
      description:
        "A job that has waited in the site's own scheduler for this long is taken back when another site can start it immediately; null: never.",
      unit: 's',
    }),
  }),
  label: "The site's own scheduler",
  about:
    "The site's own scheduler (such as Slurm) decides when and where jobs run; the agent submits them to it.",
  handsOver: ({ queueLimit }) => queueLimit,
  recallsAfterS: ({ takeBackAfterS }) => takeBackAfterS,
  scheduler: ({ queueLimit }, order) => ({
    walk: order === 'PRIORITY' ? byPriority : byArrival,
    decide: (pass, walk) => {
      pass.handOvers = queueLimit - pass.entry.handedOver.jobs;
      while (pass.handOvers > 0 && !pass.full) {
        const slot = walk.next();
        if (slot === -1) return;
        pass.handOver(slot);
      }
    },
  }),
});
