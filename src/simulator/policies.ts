/** Names of local policies on a command line, and the policy documents that they stand for. */
import { DEFAULT_POLICY, type LocalPolicy, type Policy } from '../core/index.js';

const named: Readonly<Record<string, LocalPolicy>> = {
  fcfs: { kind: 'fcfs' },
  easy: { kind: 'easy' },
};

/** What `policyNamed` knows. */
export const policyNames: readonly string[] = Object.keys(named);

/** The default policy document with the local policy of that name. Throws naming what is accepted. */
export function policyNamed(name: string, seed: number): Policy {
  const local = named[name];
  if (local === undefined) throw new Error(`policy: "${name}" is not accepted: ${policyNames.join(', ')}`);
  return { ...DEFAULT_POLICY, seed, local };
}
