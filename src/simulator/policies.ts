/** Names of policies on a command line, and the policy documents that they stand for. */
import {
  addedDispatchKinds,
  addedLocalKinds,
  DEFAULT_POLICY,
  dispatchKinds,
  type LocalPolicy,
  type Policy,
  parsePolicy,
  type QueuesPolicy,
  type RulesSchema,
} from '../core/index.js';

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

const orders: Readonly<Record<string, QueuesPolicy['order']>> = {
  fcfs: 'FCFS',
  sjf: 'SJF',
  ff: 'FF',
  's-sjf': 'S-SJF',
  'l-sjf': 'L-SJF',
};

/** Dispatch policies with nothing to set, or with their defaults. */
const plain = dispatchKinds
  .map(({ schema }) => ({ schema, kind: schema.shape.kind.value }))
  .filter(({ schema, kind }) => kind === DEFAULT_POLICY.dispatch.kind || schema.safeParse({ kind }).success)
  .map(({ kind }): string => kind);

/**
 * What `policyNamed` knows of local policies; `hybrid-N` has reservations for the first N jobs. Before one, with a `+`, the
 * root's may stand (`dispatchNames`).
 */
export const policyNames: readonly string[] = [...Object.keys(named), 'hybrid-N'];

/** `queues-ORDER-N`: the root holds jobs until a site can start them or fewer than N wait there, without an age bound. */
export const dispatchNames: readonly string[] = [
  ...Object.keys(orders).map((order) => `queues-${order}-N`),
  ...plain,
];

/** Whether the name is one of a dispatch policy too: then jobs are meant to enter at the root. */
export const namesDispatch = (name: string): boolean => name.includes('+');

/** The names that `policyNamed` takes, those of modules too. */
export function acceptedNames(): string {
  const [sites, roots] = [addedLocalKinds, addedDispatchKinds].map((kinds) =>
    kinds.map(({ schema }) => schema.shape.kind.value),
  ) as [string[], string[]];
  return `${[...policyNames, ...sites].join(', ')}; before it, with a +, ${[...dispatchNames, ...roots].join(', ')}`;
}

/** The default policy document with the policies of that name. Throws naming what is accepted. */
export function policyNamed(name: string, seed: number): Policy {
  const parts = name.split('+');
  const local = localNamed(parts.pop() as string);
  const dispatch = parts.length === 0 ? DEFAULT_POLICY.dispatch : dispatchNamed(parts.join('+'));
  if (local === null || dispatch === null) {
    throw new Error(`policy: "${name}" is not accepted; accepted: ${acceptedNames()}`);
  }
  return { ...DEFAULT_POLICY, seed, dispatch, local };
}

function localNamed(name: string): LocalPolicy | null {
  const reservations = Number(/^hybrid-([1-9]\d{0,2})$/.exec(name)?.[1]);
  return reservations
    ? { kind: 'hybrid', reservations }
    : (named[name] ?? (addedOf(addedLocalKinds, name) as LocalPolicy | null));
}

/** The document of a module's kind with nothing to set, or with its defaults. */
function addedOf(kinds: readonly { schema: RulesSchema }[], name: string): { kind: string } | null {
  const kind = kinds.find(({ schema }) => schema.shape.kind.value === name);
  return kind?.schema.safeParse({ kind: name }).data ?? null;
}

function dispatchNamed(name: string): Policy['dispatch'] | null {
  if (name === DEFAULT_POLICY.dispatch.kind) return DEFAULT_POLICY.dispatch;
  if (plain.includes(name)) return parsePolicy({ ...DEFAULT_POLICY, dispatch: { kind: name } }).dispatch;
  const [, order, limit] = /^queues-([a-z-]+)-(\d{1,6})$/.exec(name) ?? [];
  const known = order === undefined ? undefined : orders[order];
  return known === undefined
    ? (addedOf(addedDispatchKinds, name) as Policy['dispatch'] | null)
    : { kind: 'queues', order: known, queueLimit: Number(limit), ageBoundS: null };
}
