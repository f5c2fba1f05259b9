/** What runs came to, said by their averages. */
import type { RunTotals } from '../../src/core/model.js';
import { unitsOf } from '../../src/core/structures/units.js';

type Averaged = Omit<RunTotals, 'turnaround' | 'execution' | 'io'> &
  Record<'turnaroundS' | 'executionS' | 'ioS', number>;

export const totalsOf = ({ turnaroundS, executionS, ioS, ...of }: Averaged): RunTotals => ({
  ...of,
  turnaround: unitsOf(of.count * turnaroundS),
  execution: unitsOf(of.count * executionS),
  io: unitsOf(of.count * ioS),
});
