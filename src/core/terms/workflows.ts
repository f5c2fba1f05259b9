/** Whether the ready jobs of a workflow go in the order of their ranks (jobs.md, "Ranks of a workflow"). */
import { z } from 'zod';

export const workflows = z.enum(['ARRIVAL', 'RANK']).optional().meta({
  title: 'Workflows',
  description:
    'ARRIVAL: jobs of a workflow go like others. RANK: they count from when the workflow was submitted, and among themselves the one with the longest way to the end of the workflow goes first.',
});
export type Workflows = z.infer<typeof workflows>;

/** Of a queue that is otherwise by arrival. */
export const queueOrderOf = (by: Workflows): 'ARRIVAL' | 'RANK' => by ?? 'ARRIVAL';
