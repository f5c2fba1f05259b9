/** What a simulation plays: what people and faults do, when. */
import type { Forward } from '../../src/core/grid-tree/index.js';
import type { WireFaults } from './network.js';
import type { QueueFaults } from './queue.js';

/** What people and faults do, by where. */
export const DEEDS = {
  users: ['submit beyond', 'submit workflow', 'rerun', 'cancel', 'hold', 'release', 'boost', 'change'],
  grid: ['site', 'machine', 'policy', 'dataset', 'link'],
  service: [
    ...['kill worker', 'pause worker', 'cut worker', 'kill api', 'pause api'],
    ...['store away', 'queue away', 'empty queue', 'database clock'],
  ],
  peers: ['cut peer', 'isolate', 'forwarding', 'restore'],
  agents: [
    ...['kill agent', 'pause agent', 'cut agent', 'full disk', 'power cut', 'new disk', 'agent clock'],
  ],
} as const;

export const DISK_DEEDS = new Set<string>(['full disk', 'power cut', 'new disk'] satisfies Deed['kind'][]);

/** What promises of starts are made of: where somebody changes it, they are made anew. */
export const CHANGES = new Set<string>([
  'hold',
  'release',
  'boost',
  'change',
  'site',
  'machine',
  'policy',
  'dataset',
  'link',
  'empty queue',
  'database clock',
  'restore',
] satisfies Deed['kind'][]);

export interface Deed {
  afterMs: number;
  kind: 'submit' | (typeof DEEDS)[keyof typeof DEEDS][number];
  /** Whom or what it concerns, and for how long; each deed takes from it what it needs. */
  n: number;
  ms: number;
}

export interface History {
  seed: number;
  /** How many services are peers of one another; left out: one, which has none. */
  services?: number;
  /** When they offer jobs to one another. */
  forward?: Forward;
  dispatch: string;
  local: string;
  queue: QueueFaults;
  wires: WireFaults;
  /** The agents on machines with a disk, whose runs outlive them; the others simulate their runs themselves. */
  disks: readonly number[];
  deeds: readonly Deed[];
  /** How long faults go on after the last deed. */
  lastMs: number;
}

export const DISPATCH_KINDS = [
  'two-level',
  'queues',
  'job-ratio',
  'diana',
  'round-robin',
  'random',
  'most-flops',
];
export const LOCAL_KINDS = ['flexible', 'easy', 'conservative', 'hybrid', 'fcfs', 'sjf', 'first-fit'];
