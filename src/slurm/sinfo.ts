/** sinfo: partitions, and machines of them that are alike. */
import { byCluster, clustersAsked } from './clusters.js';
import { given, print, type Run } from './command.js';
import { type Column, columnsOf, line, sortedBy } from './fields.js';
import { clock } from './jobs.js';
import { jsonOf, type SinfoLine, sinfoData } from './json.js';
import { OPTIONS } from './options.js';
import {
  allSites,
  cpusTaken,
  expanded,
  isCalled,
  type Machine,
  memoryTaken,
  type Partition,
  partitionsOf,
} from './partitions.js';

export const upOrDown = ({ isUp }: Partition): string => (isUp ? 'UP' : 'DOWN');
export const maxTime = ({ longestS }: Partition, unlimited: string): string =>
  longestS === null ? unlimited : clock(longestS, true);

export function nodeState(machine: Machine): string {
  const { state, silent, cpus, unknown, problem } = machine;
  const used = cpusTaken(machine);
  if (state === 'DOWN' || silent) return 'down';
  if (state === 'DRAINING') return used > 0 ? 'draining' : 'drained';
  if (unknown && used === 0) return 'unknown';
  if (problem !== null && used === 0) return 'drained';
  return used === 0 ? 'idle' : used < cpus ? 'mixed' : 'allocated';
}

const STATE_LETTERS: Readonly<Record<string, string>> = {
  draining: 'drng',
  drained: 'drain',
  mixed: 'mix',
  allocated: 'alloc',
  unknown: 'unk',
};
const compact = (state: string): string => STATE_LETTERS[state] ?? state;

/** Of each machine, each kind with a number; those that are alike once. */
const gresWith = (
  machines: readonly Machine[],
  of: (resource: Machine['resources'][number]) => number,
): string =>
  [...new Set(machines.flatMap(({ resources }) => resources.map((one) => `${one.kind}:${of(one)}`)))].join(
    ',',
  ) || '(null)';
export const gresOf = (machines: readonly Machine[]): string => gresWith(machines, ({ amount }) => amount);
/** What runs hold. */
export const gresUsedOf = (machines: readonly Machine[]): string => gresWith(machines, ({ used }) => used);

/** A line of sinfo: machines that are alike, of a partition, or of several where these are not told apart. */
interface Group {
  partition: Partition;
  machines: readonly Machine[];
}
const sum = (machines: readonly Machine[], of: (machine: Machine) => number): number =>
  machines.reduce((all, one) => all + of(one), 0);
const least = (machines: readonly Machine[], of: (machine: Machine) => number): string => {
  const values = machines.map(of);
  if (values.length === 0) return '0';
  const min = Math.min(...values);
  return Math.max(...values) > min ? `${min}+` : String(min);
};
const isOut = (machine: Machine): boolean => /down|drain/.test(nodeState(machine));
const counts = (
  machines: readonly Machine[],
  of: (machine: Machine) => readonly [used: number, all: number],
): string => {
  const used = sum(machines, (one) => of(one)[0]);
  const other = sum(machines.filter(isOut), (one) => of(one)[1] - of(one)[0]);
  const all = sum(machines, (one) => of(one)[1]);
  return `${used}/${all - used - other}/${other}/${all}`;
};
const nodesInUse = (machines: readonly Machine[]): string =>
  counts(machines, (one) => [cpusTaken(one) > 0 ? 1 : 0, 1]);
const reasonOf = ({ reason, problem }: Machine): string =>
  (reason ?? problem ?? 'none').replaceAll(/\s+/g, ' ');
const stateOfGroup = ({ machines }: Group): string => (machines[0] ? nodeState(machines[0]) : 'n/a');
const lineOf = (group: Group): SinfoLine => ({
  partition: { name: group.partition.name, isUp: group.partition.isUp, longestS: group.partition.longestS },
  state: stateOfGroup(group),
  gres: gresOf(group.machines).replace('(null)', ''),
  gresUsed: gresUsedOf(group.machines).replace('(null)', ''),
  machines: group.machines.map((machine) => ({
    ...{ name: machine.name, cpus: machine.cpus, cpusUsed: cpusTaken(machine) },
    ...{ memoryMb: machine.memoryMb, memoryUsedMb: memoryTaken(machine) },
  })),
});

const GROUP_FIELDS: Readonly<Record<string, (group: Group) => string | number>> = {
  available: ({ partition }) => upOrDown(partition).toLowerCase(),
  cpus: ({ machines }) => least(machines, (one) => one.cpus),
  cpusstate: ({ machines }) => counts(machines, (one) => [cpusTaken(one), one.cpus]),
  allocmem: ({ machines }) => sum(machines, memoryTaken),
  disk: () => 0,
  features: () => '(null)',
  gres: ({ machines }) => gresOf(machines),
  gresused: ({ machines }) => gresUsedOf(machines),
  groups: () => 'all',
  memory: ({ machines }) => least(machines, (one) => one.memoryMb),
  nodeai: ({ machines }) => nodesInUse(machines).split('/').slice(0, 2).join('/'),
  nodeaiot: ({ machines }) => nodesInUse(machines),
  nodehost: ({ machines }) => machines.map(({ name }) => name).join(','),
  nodelist: ({ machines }) => machines.map(({ name }) => name).join(','),
  nodes: ({ machines }) => machines.length,
  oversubscribe: () => 'NO',
  partition: ({ partition }) => partition.name + (partition.isDefault ? '*' : ''),
  partitionname: ({ partition }) => partition.name,
  reason: ({ machines }) => (machines[0] ? reasonOf(machines[0]) : 'none'),
  root: () => 'no',
  size: () => '1-infinite',
  statecompact: (group) => compact(stateOfGroup(group)),
  statelong: stateOfGroup,
  time: ({ partition }) => maxTime(partition, 'infinite'),
  timestamp: () => 'Unknown',
  user: () => 'Unknown',
  weight: () => 1,
};
const SINFO_LETTERS = {
  a: ['available', 'AVAIL'],
  A: ['nodeai', 'NODES(A/I)'],
  b: ['features', 'ACTIVE_FEATURES'],
  c: ['cpus', 'CPUS'],
  C: ['cpusstate', 'CPUS(A/I/O/T)'],
  d: ['disk', 'TMP_DISK'],
  D: ['nodes', 'NODES'],
  E: ['reason', 'REASON'],
  f: ['features', 'AVAIL_FEATURES'],
  F: ['nodeaiot', 'NODES(A/I/O/T)'],
  g: ['groups', 'GROUPS'],
  G: ['gres', 'GRES'],
  h: ['oversubscribe', 'OVERSUBSCRIBE'],
  H: ['timestamp', 'TIMESTAMP'],
  l: ['time', 'TIMELIMIT'],
  m: ['memory', 'MEMORY'],
  n: ['nodehost', 'HOSTNAMES'],
  N: ['nodelist', 'NODELIST'],
  P: ['partition', 'PARTITION'],
  r: ['root', 'ROOT'],
  R: ['partitionname', 'PARTITION'],
  s: ['size', 'JOB_SIZE'],
  t: ['statecompact', 'STATE'],
  T: ['statelong', 'STATE'],
  u: ['user', 'USER'],
  w: ['weight', 'WEIGHT'],
} as const;

/** What tells lines apart, where it is shown: of partitions, and of machines. */
const OF_PARTITION: readonly string[] = ['partition', 'partitionname', 'available', 'time'];
const OF_MACHINE: Readonly<Record<string, (machine: Machine) => string>> = {
  statecompact: nodeState,
  statelong: nodeState,
  cpus: ({ cpus }) => String(cpus),
  nodehost: ({ name }) => name,
  gres: (machine) => gresOf([machine]),
  gresused: (machine) => gresUsedOf([machine]),
  reason: reasonOf,
};
/** With --exact, no least values are shown either. */
const EXACT: typeof OF_MACHINE = { memory: ({ memoryMb }) => String(memoryMb) };

const LINES = {
  default: '%9P %.5a %.10l %.6D %.6t %N',
  long: '%9P %.5a %.10l %.10s %.4r %.8h %.10g %.6D %.11T %N',
  nodes: '%N %.6D %9P %T',
  longNodes: '%N %.6D %9P %.11T %.4c %.8m %.8d %.6w %.8f %20E',
  summary: '%9P %.5a %.10l %.16F %N',
  reasons: '%20E %9u %19H %N',
};

type Options = ReturnType<typeof given>;

function columnsAsked(options: Options): { before: string; columns: Column[] } {
  if (options.has('--Format')) {
    const columns = options.list('--Format').map((part): Column => {
      const [, field = '', width] = /^(\w+)(?::\.?(\d+))?/.exec(part) ?? [];
      const title = field.toUpperCase();
      return { field: field.toLowerCase(), title, width: Number(width ?? 20), right: false, after: '' };
    });
    return { before: '', columns };
  }
  const [isLong, isNodes] = [options.has('--long'), options.has('--Node')];
  const format =
    options.get('--format') ??
    (options.has('--list-reasons')
      ? LINES.reasons
      : options.has('--summarize')
        ? LINES.summary
        : isNodes
          ? LINES[isLong ? 'longNodes' : 'nodes']
          : LINES[isLong ? 'long' : 'default']);
  return columnsOf(format, SINFO_LETTERS);
}

/** Those that options leave. */
function machinesAsked(options: Options): (machine: Machine) => boolean {
  const nodes = options.list('--nodes').flatMap(expanded);
  const states = options.list('--states').map((state) => state.toLowerCase());
  return (machine) => {
    const state = nodeState(machine);
    return (
      (nodes.length === 0 || nodes.includes(machine.name)) &&
      (states.length === 0 || states.some((one) => [state, compact(state)].includes(one))) &&
      (!options.has('--dead') || machine.silent) &&
      (!options.has('--responding') || !machine.silent) &&
      (!options.has('--list-reasons') || isOut(machine))
    );
  };
}

/** Machines in lines, in the order of partitions. */
function grouped(partitions: readonly Partition[], options: Options, columns: readonly Column[]): Group[] {
  const isNodes = options.has('--Node');
  const wanted = machinesAsked(options);
  const isLimited = ['--nodes', '--states', '--dead', '--responding', '--list-reasons'].some(options.has);
  const fields = columns.map(({ field }) => field);
  const splits = [OF_MACHINE, ...(options.has('--exact') ? [EXACT] : [])].flatMap((of) =>
    fields.flatMap((field) => of[field] ?? []),
  );
  const shown = fields.filter((field) => OF_PARTITION.includes(field));
  const groups = new Map<string, { partition: Partition; machines: Set<Machine> }>();
  for (const partition of partitions) {
    const add = (key: string, machines: readonly Machine[]): void => {
      const whole = JSON.stringify([
        key,
        shown.map((field) => GROUP_FIELDS[field]?.({ partition, machines })),
      ]);
      const group = groups.get(whole) ?? { partition, machines: new Set<Machine>() };
      for (const machine of machines) group.machines.add(machine);
      groups.set(whole, group);
    };
    const machines = partition.machines.filter(wanted);
    for (const machine of machines)
      add(isNodes ? machine.name : splits.map((of) => of(machine)).join('|'), [machine]);
    if (machines.length === 0 && !isLimited && !isNodes) add('', []);
  }
  return [...groups.values()].map(({ partition, machines }) => ({ partition, machines: [...machines] }));
}

export const sinfo: Run = async (words, name) => {
  const options = given(name, words, OPTIONS.sinfo);
  const { before, columns } = columnsAsked(options);
  const names = options.list('--partition');
  const partitions = partitionsOf(await allSites()).filter(
    (partition) => names.length === 0 || names.some((text) => isCalled(partition, text)),
  );
  const shownOf = (group: Group, field: string): string => String(GROUP_FIELDS[field]?.(group) ?? 'N/A');
  const clusters = await clustersAsked(options.list('--clusters'));
  // A peer is a partition of its name.
  const clusterOf = ({ name: of }: Partition): string | undefined => clusters?.of({ site: { name: of } });
  const groupsIn = (some: readonly Partition[]): Group[] =>
    sortedBy(grouped(some, options, columns), options.get('--sort') ?? '', SINFO_LETTERS, shownOf);
  if (options.has('--json')) {
    const wanted = partitions.filter((one) => clusters === null || clusters.names.includes(clusterOf(one)!));
    print(jsonOf('slurmctld', name, { sinfo: groupsIn(wanted).map((group) => sinfoData(lineOf(group))) }));
    return 0;
  }
  const isHeaded = !options.has('--noheader');
  const lines = byCluster(clusters, isHeaded, (cluster) => [
    ...(isHeaded ? [before + line(columns, ({ title }) => title)] : []),
    ...groupsIn(partitions.filter((one) => cluster === null || clusterOf(one) === cluster)).map(
      (group) => before + line(columns, ({ field }) => shownOf(group, field)),
    ),
  ]);
  if (lines.length > 0) print(lines.join('\n'));
  return 0;
};
