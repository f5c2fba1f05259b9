/**
 * The rules of the papers once more, word by word from the specification and as simply as can be: nothing of the core, nothing kept up,
 * nothing fast, numbers as exact fractions. What they answer is what the core is compared with.
 */
import {
  by,
  ceil,
  compare,
  exact,
  type Fraction,
  floor,
  minus,
  near,
  plus,
  sum,
  times,
  whole,
} from './rational.js';

// Two levels (Pasquali et al.) ------------------------------------------------------------------------------------------

export interface MsPriority {
  max: number;
  licenseKinds: number;
  weights: { deadline: number; licenses: number; user: number };
  window: number[];
  job: {
    submit: number;
    estimate: number;
    userClass: 'GOLD' | 'SILVER' | 'REGULAR';
    deadline: number | null;
    licenses: string[];
  };
}

export function msPriority({ max, licenseKinds, weights, window, job }: MsPriority) {
  const asked = job.licenses.length;
  const licenses =
    asked === 0 || licenseKinds === 0 ? 0 : Math.min(max, Math.ceil((asked * max) / licenseKinds));
  const user = { GOLD: max, SILVER: Math.floor(max / 2), REGULAR: 0 }[job.userClass];
  const deadline = deadlineDelta({ max, window, job });
  const terms = [
    [weights.deadline, deadline],
    [weights.licenses, licenses],
    [weights.user, user],
  ] as const;
  const priority = floor(sum(terms.map(([weight, delta]) => times(exact(weight), whole(delta)))));
  return { deadline, licenses, user, priority };
}

function deadlineDelta({ max, window, job }: Pick<MsPriority, 'max' | 'window' | 'job'>): number {
  if (job.deadline === null) return 0;
  const margin = minus(minus(exact(job.deadline), exact(job.estimate)), exact(job.submit));
  const zero = whole(0);
  const mean = window.length === 0 ? margin : by(sum(window.map(exact)), whole(window.length));
  let delta: number;
  if (compare(mean, zero) <= 0) delta = compare(margin, zero) <= 0 ? max : 0;
  else if (compare(margin, zero) < 0) delta = max;
  else {
    let powers = 0;
    for (let k = 1; k <= max; k++) powers += 2 ** k;
    const unit = by(times(whole(2), mean), whole(powers));
    delta = 0;
    let start = zero;
    for (let k = 0; k < max; k++) {
      const end = plus(start, times(unit, whole(2 ** (k + 1))));
      if (compare(start, margin) <= 0 && compare(margin, end) < 0) delta = max - k;
      start = end;
    }
  }
  const r = by(margin, exact(job.estimate));
  if (compare(r, whole(1)) >= 0) return Math.max(0, delta - floor(r));
  let w = max - 1;
  if (compare(r, zero) > 0) {
    // floor(−log2 r): how often r doubles without passing 1.
    w = 0;
    for (let doubled = times(r, whole(2)); w < max - 1 && compare(doubled, whole(1)) <= 0; w++)
      doubled = times(doubled, whole(2));
  }
  return Math.min(max, delta + w);
}

export interface Dispatch {
  priority: number;
  sites: {
    id: string;
    eligible: boolean;
    queued: { priority: number; estimate: number; benchmark: number }[];
  }[];
}

export function dispatch({ priority, sites }: Dispatch) {
  const told = sites.map(({ id, eligible, queued }) => {
    const counted = queued.filter((job) => job.priority >= priority);
    // The work of a job is a product of numbers as computers have them.
    const load = sum(counted.map(({ estimate, benchmark }) => exact(estimate * benchmark)));
    return { id, eligible, load, count: counted.length };
  });
  const open = told.filter(({ eligible }) => eligible);
  const idle = open.find(({ load }) => compare(load, whole(0)) === 0);
  const least = open.filter(({ load }) => open.every((other) => compare(load, other.load) <= 0));
  const fewest = Math.min(...least.map(({ count }) => count));
  const left = idle === undefined ? least.filter(({ count }) => count === fewest) : [idle];
  return {
    load: Object.fromEntries(told.map(({ id, load }) => [id, near(load)])),
    count: Object.fromEntries(told.map(({ id, count }) => [id, count])),
    candidates: left.map(({ id }) => id),
  };
}

export interface LsPriorities {
  now: number;
  licenseTotals: Record<string, number>;
  machines: { id: string; benchmark: number }[];
  weights: {
    aging: number;
    licenses: number;
    waitMinimization: number;
    deadlineMin: number;
    deadlineMax: number;
    deadlineK: number;
  };
  queue: {
    id: string;
    submit: number;
    estimate: number;
    benchmark: number;
    deadline: number | null;
    licenses: string[];
  }[];
}

export function lsPriorities({ now, licenseTotals, machines, weights, queue }: LsPriorities) {
  const best = exact(Math.max(...machines.map(({ benchmark }) => benchmark)));
  const ratio = (kind: string): Fraction =>
    by(
      whole(queue.filter(({ licenses }) => licenses.includes(kind)).length),
      whole(licenseTotals[kind] as number),
    );
  const isCritical = (kind: string): boolean => compare(ratio(kind), whole(1)) > 0;
  const asked = new Set(queue.flatMap(({ licenses }) => licenses));
  const d = Math.max(1, [...asked].filter((kind) => !isCritical(kind)).length);
  const shortest = Math.min(...queue.map(({ estimate }) => estimate));
  const deadlineTerm = ({ estimate, benchmark, deadline }: LsPriorities['queue'][number]): Fraction => {
    const min = exact(weights.deadlineMin);
    if (deadline === null) return min;
    const next = by(times(exact(estimate), exact(benchmark)), best);
    const end = plus(exact(now), next);
    const t = minus(exact(deadline), times(exact(weights.deadlineK), next));
    if (compare(end, t) <= 0 || compare(end, exact(deadline)) > 0) return min;
    const slope = by(minus(exact(weights.deadlineMax), min), minus(exact(deadline), t));
    return plus(times(slope, minus(end, t)), min);
  };
  return queue.map((job) => {
    const aging = times(exact(weights.aging), minus(exact(now), exact(job.submit)));
    const deadline = deadlineTerm(job);
    const plain = sum(job.licenses.filter((kind) => !isCritical(kind)).map(ratio));
    const critical = sum(job.licenses.filter(isCritical).map(ratio));
    const licenses = times(exact(weights.licenses), plus(plain, times(whole(d), critical)));
    const waiting = times(exact(weights.waitMinimization), by(exact(shortest), exact(job.estimate)));
    return {
      id: job.id,
      aging: near(aging),
      deadline: near(deadline),
      licenses: near(licenses),
      waitMinimization: near(waiting),
      priority: near(sum([aging, deadline, licenses, waiting])),
    };
  });
}

// DIANA (Anjum et al.) ----------------------------------------------------------------------------------------------------

export interface DianaPriorities {
  quotas: Record<string, number>;
  jobs: { id: string; user: string; processors: number }[];
}

export function dianaPriorities({ quotas, jobs }: DianaPriorities) {
  const processors = whole(jobs.reduce((all, job) => all + job.processors, 0));
  const all = sum([...new Set(jobs.map(({ user }) => user))].map((user) => exact(quotas[user] as number)));
  return jobs.map(({ id, user, processors: own }) => {
    const n = whole(jobs.filter((job) => job.user === user).length);
    const threshold = by(times(exact(quotas[user] as number), processors), times(all, whole(own)));
    const priority = by(minus(threshold, n), compare(n, threshold) <= 0 ? threshold : n);
    const queue = [0.5, 0, -0.5].findIndex((from) => compare(priority, exact(from)) >= 0);
    return { id, threshold: near(threshold), priority: near(priority), queue: queue === -1 ? 4 : queue + 1 };
  });
}

export interface DianaCongested {
  arrivalRate: number;
  serviceRate: number;
  threshold: number;
}

export function dianaCongested({ arrivalRate, serviceRate, threshold }: DianaCongested) {
  if (arrivalRate === 0) return { value: 0, congested: false };
  const value = by(minus(exact(arrivalRate), exact(serviceRate)), exact(arrivalRate));
  return { value: near(value), congested: compare(value, exact(threshold)) > 0 };
}

// Job ratio (AL-Khateeb et al.) -------------------------------------------------------------------------------------------

export interface JrHistory {
  referencePower: number;
  runs: { turnaround: number; io: number; sitePower: number }[];
}

export function jrHistory({ referencePower, runs }: JrHistory) {
  const scaled = runs.map(({ turnaround, io, sitePower }) => {
    const f = by(exact(sitePower), exact(referencePower));
    const execution = minus(exact(turnaround), exact(io));
    return [turnaround, io].map((value) => times(f, exact(value))).concat(times(f, execution)) as Fraction[];
  });
  const average = (i: number): Fraction =>
    runs.length === 0 ? whole(0) : by(sum(scaled.map((run) => run[i] as Fraction)), whole(runs.length));
  const [turnaround, io, execution] = [average(0), average(1), average(2)];
  return {
    count: runs.length,
    averageTurnaround: near(turnaround),
    averageExecution: near(execution),
    averageIo: near(io),
    computation: near(by(execution, turnaround)),
    dataIntensive: near(by(io, turnaround)),
  };
}

export interface JrRank {
  computation: number;
  dataIntensive: number;
  sites: {
    id: string;
    processPower: number;
    queued: number;
    transfers: { sizeMb: number; bandwidthMbPerS: number }[];
  }[];
}

export function jrRank({ computation, dataIntensive, sites }: JrRank) {
  const costs = sites.map(({ transfers }) =>
    sum(transfers.map(({ sizeMb, bandwidthMbPerS }) => by(exact(sizeMb), exact(bandwidthMbPerS)))),
  );
  const share = (value: Fraction, all: Fraction): Fraction => (all.over === 0n ? whole(0) : by(value, all));
  const power = sum(sites.map(({ processPower }) => exact(processPower)));
  const queued = sum(sites.map((site) => exact(site.queued)));
  const ranked = sites.map((site, i) => {
    const ppr = share(exact(site.processPower), power);
    const dpr = minus(whole(1), share(costs[i] as Fraction, sum(costs)));
    const qr = minus(whole(1), share(exact(site.queued), queued));
    const rank = sum([times(ppr, exact(computation)), times(dpr, exact(dataIntensive)), qr]);
    return { id: site.id, ppr, dpr, qr, dataAccessCost: costs[i] as Fraction, rank };
  });
  return {
    sites: ranked.map(({ id, ...terms }) => ({
      id,
      ...Object.fromEntries(Object.entries(terms).map(([name, value]) => [name, near(value)])),
    })),
    order: [...ranked].sort((a, b) => compare(b.rank, a.rank)).map(({ id }) => id),
  };
}

export interface JrBatches {
  available: Record<string, number>;
  jobs: { id: string; ranked: string[] }[];
}

export function jrBatches({ available, jobs }: JrBatches) {
  const batches = Object.fromEntries(Object.keys(available).map((site) => [site, [] as string[]]));
  const unassigned: string[] = [];
  for (const { id, ranked } of jobs) {
    const site = ranked.find((one) => (batches[one] as string[]).length < (available[one] as number));
    (site === undefined ? unassigned : (batches[site] as string[])).push(id);
  }
  return { batches, unassigned };
}

// Grid tree (AlZoubi and Dandamudi) ---------------------------------------------------------------------------------------

export interface GtShare {
  jobs: number;
  channels: { id: string; branches: { id: string; power: number }[] }[];
}

const shareOf = (power: number, total: number, jobs: number): number =>
  ceil(by(times(whole(power), whole(jobs)), whole(total)));

export function gtShare({ jobs, channels }: GtShare) {
  const branches = channels.flatMap((channel) => channel.branches);
  const total = branches.reduce((all, { power }) => all + power, 0);
  return branches.map(({ id, power }) => ({ branch: id, share: shareOf(power, total, jobs) }));
}

export interface GtTree {
  id: string;
  children?: GtTree[];
  machines?: { os: string; cpus: number }[];
}
export interface GtChannels {
  tree: GtTree;
  jobs: { id: string; os: string[]; cpus: number }[];
}

interface Channel {
  bag: string[];
  power: number;
}

export function gtChannels({ tree, jobs }: GtChannels): Record<string, Channel[]> {
  const found: Record<string, Channel[]> = {};
  const look = ({ id, children = [], machines }: GtTree): Channel[] => {
    const heard = machines === undefined ? children.flatMap(look) : [ownChannel(machines, jobs)];
    const channels = new Map<string, Channel>();
    for (const { bag, power } of heard) {
      if (bag.length === 0) continue;
      const key = bag.join('\n');
      channels.set(key, { bag, power: (channels.get(key)?.power ?? 0) + power });
    }
    found[id] = [...channels].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, channel]) => channel);
    return found[id];
  };
  look(tree);
  return found;
}

function ownChannel(machines: { os: string; cpus: number }[], jobs: GtChannels['jobs']): Channel {
  const runs = (machine: { os: string; cpus: number }, job: GtChannels['jobs'][number]): boolean =>
    job.os.includes(machine.os) && machine.cpus >= job.cpus;
  const used = machines.filter((machine) => jobs.some((job) => runs(machine, job)));
  return {
    bag: jobs
      .filter((job) => machines.some((machine) => runs(machine, job)))
      .map(({ id }) => id)
      .sort(),
    power: used.reduce((all, { cpus }) => all + cpus, 0),
  };
}

export interface GtCollect {
  branches: { id: string; power: number }[];
  asked: string;
  jobs: { id: string; seq: number; at: string | null; fits: string[]; gain: Record<string, number> }[];
  butterfly: boolean;
  loadBalance: boolean;
}

export function gtCollect({ branches, asked, jobs, butterfly, loadBalance }: GtCollect) {
  const total = branches.reduce((all, { power }) => all + power, 0);
  const fairShare = (id: string): number =>
    shareOf(branches.find((branch) => branch.id === id)?.power as number, total, jobs.length);
  const block: { id: string; from: string | null; how: string; seq: number }[] = [];
  const isTaken = (job: GtCollect['jobs'][number]): boolean => block.some(({ id }) => id === job.id);
  const held = (id: string) => jobs.filter((job) => job.at === id && !isTaken(job));
  const room = fairShare(asked) - held(asked).length;
  const bag = jobs.filter(({ fits }) => fits.includes(asked)).sort((a, b) => a.seq - b.seq);
  const take = (job: GtCollect['jobs'][number], how: string): void => {
    if (block.length < room) block.push({ id: job.id, from: job.at, how, seq: job.seq });
  };
  if (butterfly)
    for (const job of bag)
      if (job.at !== null && job.at !== asked && (job.gain[asked] ?? 0) > (job.gain[job.at] ?? 0))
        take(job, 'BUTTERFLY');
  for (const job of bag) if (job.at === null) take(job, 'UNASSIGNED');
  const others = new Set(branches.map(({ id }) => id).filter((id) => id !== asked));
  while (loadBalance && block.length < room) {
    const surplus = (id: string): number => held(id).length - fairShare(id);
    const most = Math.max(0, ...[...others].map(surplus));
    const from = [...others].find((id) => surplus(id) === most);
    if (most === 0 || from === undefined) break;
    const last = held(from)
      .filter(({ fits }) => fits.includes(asked))
      .sort((a, b) => b.seq - a.seq)[0];
    if (last === undefined) others.delete(from);
    else take(last, 'LOAD_BALANCE');
  }
  return block.sort((a, b) => a.seq - b.seq).map(({ id, from, how }) => ({ id, from, how }));
}

export interface GtForward {
  self: string;
  origin: string;
  hops: number;
  neighbours: string[];
  visited: string[];
}

export function gtForward({ self, origin, hops, neighbours, visited }: GtForward) {
  const left = hops <= 1 ? 0 : hops - 1;
  const knows = (peer: string): boolean => peer === self || peer === origin || visited.includes(peer);
  return { hops: left, to: left === 0 ? [] : neighbours.filter((peer) => !knows(peer)).sort() };
}

/** By the names that vectors have. */
export const RULES: Record<string, (input: never) => unknown> = {
  ms_priority: msPriority,
  dispatch,
  ls_priorities: lsPriorities,
  diana_priorities: dianaPriorities,
  diana_congested: dianaCongested,
  jr_history: jrHistory,
  jr_rank: jrRank,
  jr_batches: jrBatches,
  gt_share: gtShare,
  gt_channels: gtChannels,
  gt_collect: gtCollect,
  gt_forward: gtForward,
};
