import { labelsOf } from '../../core/grid/site-resources.js';
import { type JobPart, ofPart } from '../../core/model.js';
import { narrowToSpread } from '../../core/resources/choice.js';
import { labelsAskedBy, parseAsked, satisfies } from '../../core/resources/constraint.js';
import type { DeviceRequest } from '../../core/resources/devices.js';
import type { ClosedMachine } from '../../store/holds.js';
import type { Queries } from '../../store/queries.js';
import { devicesIn, labelsIn } from '../../store/rules.js';

/** What one wants to know of a run to find nodes that have room for all of its tasks. */
interface Tasks {
  tasks: number;
  cpusPerTask: number;
  memoryMbPerTask: number;
  resourcesPerTask: Readonly<Record<string, number>> | null;
  devicesPerTask?: readonly DeviceRequest[] | null;
  tasksPerMachine: { min: number; max: number | null } | null;
  /** null: none. */
  runTimeLimitS: number | null;
}

interface Asking extends Tasks {
  state: string;
  machineConstraint: string | null;
  image: string | null;
  machines: readonly unknown[];
  jobParts: readonly JobPart[] | null;
}

/** Names of machines; null: any. Where a job has parts, by part. */
interface Fitting {
  nodes: string[] | null;
  partNodes: (string[] | null)[];
}

interface Node {
  id: number;
  name: string;
  /** In all, CPUs and memory among it. */
  has: Readonly<Record<string, number>>;
}

/**
 * Where the own scheduler of a site may run what is handed over to it: names of the machines whose labels are as the job asks, without those
 * with a maintenance window into which it could reach, by its limit, if it began now; null: on any. That scheduler does not know the labels
 * of our machines, nor our windows, and the agent does not read constraints.
 */
export async function fittingNodes(
  queries: Pick<Queries, 'machinesOfSites' | 'sitesByIds' | 'closedMachines'>,
  siteId: number,
  runs: readonly Asking[],
  now: number,
): Promise<(run: Asking) => Fitting> {
  const isHandedOver = (run: Asking): boolean => run.machines.length === 0 && run.state === 'ASSIGNED';
  const asks = (run: Asking): boolean => labelsAskedBy(run) !== null && run.machines.length === 0;
  const closed = runs.some(isHandedOver) ? await queries.closedMachines(siteId) : [];
  if (closed.length === 0 && !runs.some((run) => [run, ...ofParts(run)].some(asks)))
    return (run) => ({ nodes: null, partNodes: ofParts(run).map(() => null) });
  const [machines, [site]] = await Promise.all([
    queries.machinesOfSites([siteId]),
    queries.sitesByIds([siteId]),
  ]);
  const labelled = machines.map((machine) => {
    const { id, name, os, architecture, devices, cpus, memoryMb, resources } = machine;
    const said = { labels: labelsIn(machine), devices: devicesIn(devices), os, architecture };
    const has = { ...(resources as Record<string, number>), cpus, memoryMb };
    return { id, name, has, labels: labelsOf(said, site?.name ?? '') };
  });
  // Many runs ask the same.
  const found = new Map<string, readonly Node[]>();
  const fitting = (text: string): readonly Node[] => {
    let nodes = found.get(text);
    if (nodes === undefined) {
      const constraint = parseAsked(text);
      nodes = labelled.filter(({ labels }) => satisfies(labels, constraint));
      found.set(text, nodes);
    }
    return nodes;
  };
  const nodesOf = (run: Asking): string[] | null => {
    const text = run.machines.length === 0 ? labelsAskedBy(run) : null;
    const nodes = text === null ? null : fitting(text);
    const open = isHandedOver(run) ? openNodes(nodes ?? labelled, closed, now, run) : null;
    return (open ?? nodes)?.map(({ name }) => name) ?? null;
  };
  return (run) => {
    const parts = ofParts(run);
    return { nodes: parts.length === 0 ? nodesOf(run) : null, partNodes: parts.map(nodesOf) };
  };
}

/** Each part as a run of its own. */
const ofParts = (run: Asking): Asking[] => (run.jobParts ?? []).map((part) => ofPart(run, part));

/**
 * The nodes without a window that a run could reach into, by its limit, if it began now. Null: no window matters, or the others have not room
 * for its tasks, even idle: that scheduler would refuse the job.
 */
export function openNodes(
  nodes: readonly Node[],
  closed: readonly ClosedMachine[],
  now: number,
  run: Tasks,
): readonly Node[] | null {
  const until = now + (run.runTimeLimitS ?? Infinity);
  const reached = new Set(closed.filter(({ from }) => from < until).map(({ machineId }) => machineId));
  const open = nodes.filter(({ id }) => !reached.has(id));
  return open.length === nodes.length || !haveRoom(open, run) ? null : open;
}

function haveRoom(nodes: readonly Node[], run: Tasks): boolean {
  const asked: Record<string, number> = {
    ...run.resourcesPerTask,
    cpus: run.cpusPerTask,
    memoryMb: run.memoryMbPerTask,
  };
  for (const { kind, count } of run.devicesPerTask ?? []) asked[kind] = (asked[kind] ?? 0) + count;
  const wanted = Object.entries(asked).filter(([, amount]) => amount > 0);
  const candidates = nodes.map(({ name, has }) => ({
    ...{ id: name, labels: {}, key: () => [] },
    most: Math.min(run.tasks, ...wanted.map(([kind, amount]) => Math.floor((has[kind] ?? 0) / amount))),
  }));
  const tasksPerMachine = run.tasksPerMachine ?? { min: 1, max: null };
  return narrowToSpread(candidates, run.tasks, { tasksPerMachine, allAlike: [] }) === null;
}
