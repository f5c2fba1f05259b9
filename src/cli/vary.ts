/** `--vary FIELD=VALUES` of `switchyard compare`: the values, and the simulations that they mean. */
import { type Policy, parsePolicy, ROOT } from '../core/index.js';
import type { RunOptions } from '../simulator/compare.js';
import { policyNamed } from '../simulator/policies.js';
import { CliError, ExitCode, usage } from './errors.js';

/** Options that are varied under their own names; all others are fields of the policy. */
export const VARIED_OPTIONS = ['load', 'jobs', 'processors', 'estimate', 'mtbf', 'repair'] as const;
type VariedOption = (typeof VARIED_OPTIONS)[number];

const VALUES_MAX = 1000;

/** What one simulation has of each field that varies, as it was written. */
export type Varied = Readonly<Record<string, string>>;

/** All combinations of the values of all fields, the first field slowest. One that varies nothing where there is none. */
export function combinations(vary: readonly string[] = []): Varied[] {
  let all: Varied[] = [{}];
  for (const written of vary) {
    const [, field, values] = /^([A-Za-z][A-Za-z0-9.]*)=(.+)$/.exec(written) ?? [];
    if (field === undefined || values === undefined || (!isOption(field) && !field.includes('.')))
      throw usage(
        '--vary',
        written,
        `FIELD=VALUES, with a field of the policy (local.kind, dispatch.deadline) or ${VARIED_OPTIONS.join(', ')}, and values such as easy,conservative or 0.7..1.1 or 0.7..1.1:0.2`,
      );
    if (all.some((one) => field in one)) throw usage('--vary', written, 'each field once');
    const each = valuesOf(written, values);
    if (all.length * each.length > VALUES_MAX)
      throw usage('--vary', written, `at most ${VALUES_MAX} combinations in total`);
    all = all.flatMap((one) => each.map((value) => ({ ...one, [field]: value })));
  }
  return all;
}

const isOption = (field: string): field is VariedOption => VARIED_OPTIONS.some((option) => option === field);

function valuesOf(written: string, values: string): string[] {
  const range = /^(-?\d+(?:\.\d+)?)\.\.(-?\d+(?:\.\d+)?)(?::(\d+(?:\.\d+)?))?$/.exec(values);
  if (range === null) return [...new Set(values.split(',').map((one) => one.trim()))].filter(Boolean);
  const [, from = '', to = '', by] = range;
  const digits = Math.max(...[from, to, by ?? ''].map((one) => one.split('.')[1]?.length ?? 0));
  const step = Number(by ?? (10 ** -digits).toFixed(digits));
  const count = Math.floor((Number(to) - Number(from)) / step + 1e-9) + 1;
  if (!(step > 0 && count >= 1 && count <= VALUES_MAX))
    throw usage('--vary', written, `a range from low to high of at most ${VALUES_MAX} values`);
  return Array.from({ length: count }, (_, i) => (Number(from) + i * step).toFixed(digits));
}

/** The options that vary, to be read as if they had been given. */
export const optionsIn = (varied: Varied): Partial<Record<VariedOption, string>> =>
  Object.fromEntries(Object.entries(varied).filter(([field]) => isOption(field)));

/** What is the same for all policies that are compared with one another. */
export const workloadIn = (varied: Varied): string => JSON.stringify(optionsIn(varied));

/** The options with the fields of the policy that vary. */
export function withPolicyFields<O extends Pick<RunOptions, 'policy' | 'enter'>>(
  options: O,
  varied: Varied,
): O {
  let { policy, enter } = options;
  for (const [field, value] of Object.entries(varied)) {
    if (isOption(field)) continue;
    try {
      if (field === 'local.kind') policy = { ...policy, local: policyNamed(value, policy.seed).local };
      else if (field === 'dispatch.kind') {
        policy = { ...policy, dispatch: policyNamed(`${value}+fcfs`, policy.seed).dispatch };
        enter = ROOT;
      } else policy = parsePolicy(replaced(policy, field.split('.'), parsed(value)));
    } catch (error) {
      throw new CliError(`--vary ${field}=${value}: ${(error as Error).message}`, ExitCode.USAGE);
    }
  }
  return { ...options, policy, enter };
}

function replaced(policy: Policy, path: readonly string[], value: unknown): unknown {
  const copy: Record<string, unknown> = structuredClone({ ...policy });
  let at = copy;
  for (const name of path.slice(0, -1)) {
    const next = Object.hasOwn(at, name) ? at[name] : undefined;
    if (typeof next !== 'object' || next === null)
      throw new Error(`the policy has no ${name}; accepted: ${Object.keys(at).join(', ')}`);
    at = next as Record<string, unknown>;
  }
  Object.defineProperty(at, path.at(-1) as string, {
    value,
    enumerable: true,
    writable: true,
    configurable: true,
  });
  return copy;
}

/** A number, true, false or null; else a word. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return text;
  }
}
