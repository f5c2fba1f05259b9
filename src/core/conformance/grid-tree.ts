/** The rules of grid-tree.md in the form of the vectors. */

import { Pump } from '../grid-tree/carriers.js';
import { forwardTo } from '../grid-tree/hybrid.js';
import { Leaf } from '../grid-tree/leaf.js';
import { request, requirement } from '../grid-tree/machines.js';
import {
  type Address,
  DEFAULT_TREE_RULES,
  type Effects,
  type Entry,
  type MoveReason,
} from '../grid-tree/messages.js';
import { DEFAULT_ROOT_RULES, Root } from '../grid-tree/root.js';
import { Scheduler } from '../grid-tree/scheduler.js';
import { collect, Place, shareOf, type Taker } from '../grid-tree/selection.js';
import type { Rules } from './rule.js';

interface TreeInput {
  id: string;
  children?: readonly TreeInput[];
  machines?: readonly { os: string; cpus: number }[];
}

interface ChannelsInput {
  tree: TreeInput;
  jobs: readonly { id: string; os: readonly string[]; cpus: number }[];
}

/** Builds the tree, submits the jobs, lets the schedulers talk, and looks at their channels. */
function channels({ tree, jobs }: ChannelsInput): Record<string, { bag: string[]; power: number }[]> {
  const pump = new Pump();
  const effects = (id: Address): Effects => ({ send: (to, message) => pump.send(id, to, message) });
  const schedulers: Scheduler[] = [];
  const leaves: Leaf[] = [];
  const build = (node: TreeInput, scheduler: Scheduler): void => {
    pump.add(node.id, scheduler);
    schedulers.push(scheduler);
    for (const below of node.children ?? []) {
      if (below.machines === undefined) {
        const child = new Scheduler(below.id, effects(below.id), DEFAULT_TREE_RULES);
        child.setParent(node.id);
        build(below, child);
      } else {
        const leaf = new Leaf(below.id, effects(below.id));
        for (const machine of countedMachines(below.machines)) leaf.setMachines(machine.kind, machine.count);
        leaf.setParent(node.id);
        leaves.push(leaf);
        pump.add(below.id, leaf);
      }
      scheduler.attach(below.id);
    }
  };
  const root = new Root(tree.id, effects(tree.id), DEFAULT_TREE_RULES, DEFAULT_ROOT_RULES);
  build(tree, root);
  const classes = new Map<string, string[]>();
  for (const { id, os, cpus } of jobs) {
    const asked = requirement({ os, cpusPerTask: cpus });
    classes.set(asked.key, [...(classes.get(asked.key) ?? []), id]);
    const made = request({ id, owner: 'owner', requirement: asked });
    root.receive('owner', { kind: 'SUBMIT', request: made, sequence: null });
  }
  pump.touch(tree.id);
  pump.run();
  const idsOf = (bag: Iterable<string>): string[] => [...bag].flatMap((key) => classes.get(key) ?? []).sort();
  const shown = (all: readonly { bag: Iterable<string>; power: number }[]) =>
    all
      .map(({ bag, power }) => ({ bag: idsOf(bag), power }))
      .sort((a, b) => (a.bag.join('\n') < b.bag.join('\n') ? -1 : 1));
  return Object.fromEntries([
    ...schedulers.map((one) => [one.id, shown([...one.channels.byPort.values()])] as const),
    ...leaves.map((one) => [one.id, shown(one.channel === null ? [] : [one.channel])] as const),
  ]);
}

function countedMachines(machines: readonly { os: string; cpus: number }[]) {
  const counted = new Map<
    string,
    {
      kind: { os: string; architecture: string; licenses: string[]; cpus: number; memoryMb: number };
      count: number;
    }
  >();
  for (const { os, cpus } of machines) {
    const key = `${os} ${cpus}`;
    const known = counted.get(key);
    if (known === undefined)
      counted.set(key, { kind: { os, architecture: '', licenses: [], cpus, memoryMb: 0 }, count: 1 });
    else known.count++;
  }
  return [...counted.values()];
}

interface ShareInput {
  jobs: number;
  channels: readonly { branches: readonly { id: string; power: number }[] }[];
}

function shares({ jobs, channels }: ShareInput): { branch: string; share: number }[] {
  const branches = channels.flatMap(({ branches }) => branches);
  const total = branches.reduce((sum, { power }) => sum + power, 0);
  return branches.map(({ id, power }) => ({ branch: id, share: shareOf(power, total, jobs) }));
}

interface CollectInput {
  branches: readonly { id: string; power: number }[];
  asked: string;
  jobs: readonly {
    id: string;
    seq: number;
    at: string | null;
    fits: readonly string[];
    gain: Readonly<Record<string, number>>;
  }[];
  butterfly: boolean;
  loadBalance: boolean;
}

function collected(input: CollectInput): { id: string; from: string | null; how: MoveReason }[] {
  const byId = new Map(input.jobs.map((job) => [job.id, job]));
  const takers = input.branches.map(({ id, power }) => {
    const taker: Taker & { id: string } = {
      id,
      power,
      place: new Place(),
      coming: 0,
      fits: (requirementKey) => byId.get(requirementKey)?.fits.includes(id) ?? false,
      gain: (sample) => ({ conditions: byId.get(sample.id)?.gain[id] ?? 0, distanceKm: 0 }),
    };
    return taker;
  });
  const unassigned = new Place();
  input.jobs.forEach(({ id, seq, at }, i) => {
    // A class of its own: what fits, and how well, is given for each.
    const origin = { latitude: 0, longitude: 0 };
    const made = request({ id, owner: '', requirement: { ...requirement({}), key: id }, origin });
    const entry: Entry = { ...made, key: i, rank: 0, sequence: seq, turn: 0, moves: 0 };
    (takers.find((taker) => taker.id === at)?.place ?? unassigned).add(entry);
  });
  const asked = takers.find(({ id }) => id === input.asked);
  if (asked === undefined) throw new Error(`asked is ${input.asked}; accepted: the id of a branch`);
  const { butterfly, loadBalance } = input;
  const block = collect(asked, takers, unassigned, input.jobs.length, {
    butterfly,
    fallback: true,
    loadBalance,
    movesMax: Infinity,
  });
  return block.map(({ entry, from, how }) => ({ id: entry.id, from: from?.id ?? null, how }));
}

interface ForwardInput {
  self: string;
  origin: string;
  hops: number;
  neighbours: readonly string[];
  visited: readonly string[];
}

export const gridTreeRules: Rules = {
  gt_channels: channels,
  gt_share: shares,
  gt_collect: collected,
  gt_forward: ({ neighbours, ...input }: ForwardInput) => forwardTo({ ...input, neighbors: neighbours }),
};
