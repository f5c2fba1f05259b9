/** Names of local policies on a command line, and the policy documents that they stand for. */
import { DEFAULT_POLICY, type LocalPolicy, type Policy } from '../core/index.js';

const named: Readonly<Record<string, LocalPolicy>> = {
  fcfs: { kind: 'fcfs' },
  sjf: { kind: 'sjf', ageBoundS: null },
  'first-fit': { kind: 'first-fit', ageBoundS: null },
  easy: { kind: 'easy' },
  'easy-sjbf': { kind: 'easy', backfill: 'SHORTEST' },
  'easy-ljbf': { kind: 'easy', backfill: 'LONGEST' },
  'easy-narrowest': { kind: 'easy', backfill: 'NARROWEST' },
  'easy-widest': { kind: 'easy', backfill: 'WIDEST' },
  conservative: { kind: 'conservative', depth: 100_000 },
  flexible: DEFAULT_POLICY.local,
};

/** What `policyNamed` knows; `hybrid-N` has reservations for the first N jobs. */
export const policyNames: readonly string[] = [...Object.keys(named), 'hybrid-N'];

/** The default policy document with the local policy of that name. Throws naming what is accepted. */
export function policyNamed(name: string, seed: number): Policy {
  const reservations = Number(/^hybrid-([1-9]\d{0,2})$/.exec(name)?.[1]);
  const local: LocalPolicy | undefined = reservations ? { kind: 'hybrid', reservations } : named[name];
  if (local === undefined) throw new Error(`policy: "${name}" is not accepted: ${policyNames.join(', ')}`);
  return { ...DEFAULT_POLICY, seed, local };
}
