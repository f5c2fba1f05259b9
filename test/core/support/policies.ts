/** Local policies as tests try them: all that choose machines themselves. `test/core/holds.test.ts` compares with the list of kinds. */
import { DEFAULT_POLICY, type LocalPolicy } from '../../../src/core/index.js';

export const CHOOSING: readonly LocalPolicy[] = [
  DEFAULT_POLICY.local,
  { kind: 'easy' },
  { kind: 'easy', backfill: 'SHORTEST' },
  { kind: 'hybrid', reservations: 2 },
  { kind: 'conservative', depth: 100 },
  { kind: 'conservative', depth: 2 },
  { kind: 'fcfs' },
  { kind: 'sjf', ageBoundS: 20 },
  { kind: 'first-fit', ageBoundS: 20 },
];
