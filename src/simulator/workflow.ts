/**
 * Workflows as workloads, submitted at once: jobs that need one another and read what others write. Executions in the JSON of WfCommons
 * (https://wfcommons.org, WfFormat 1.4 and later) are read here.
 */
import { z } from 'zod';
import {
  type Clause,
  checked,
  DataCatalog,
  type DataEdge,
  digraph,
  forecast,
  Grid,
  type NeedTerm,
  type OnUnmet,
  plainJob,
  sayFault,
  topologicalOrder,
  workflowPlaces,
} from '../core/index.js';
import type { World } from './engine.js';
import { nameOf, textOf } from './input.js';
import type { SimJob } from './workload.js';

/** A job of a workflow, with others by position. */
export interface WorkflowTask {
  /** On a machine of power 1, seconds. */
  runS: number;
  estimateS: number;
  cpus: number;
  memoryMb: number;
  needs: readonly Clause<NeedTerm>[];
  onUnmet: OnUnmet;
  /** What it reads of what others, which it needs, have written. Files that nobody writes are there from the beginning. */
  reads: readonly { from: number; sizeMb: number }[];
}

export interface Workflow {
  /** As messages call it. */
  workflow: string;
  /** Each after those that it needs. */
  tasks: readonly WorkflowTask[];
}

const MAX_BYTES = 512 * 1024 ** 2;
export const MAX_TASKS = 1_000_000;
/** Of a task for which no time was recorded, or 0. */
const LEAST_RUN_S = 0.001;

const seconds = z.number().min(0).max(1e9);
const bytes = z.number().min(0).max(1e18);
const names = z.array(z.string()).default([]);
const file = z.object({ id: z.string(), sizeInBytes: bytes });
const run = { runtimeInSeconds: seconds.optional(), memoryInBytes: bytes.nullish() };
const cores = z.number().min(0).max(1e6).nullish();
/** Since WfFormat 1.5. Tasks are named by id. */
const specified = z.object({
  specification: z.object({
    tasks: z
      .array(
        z.object({ id: z.string(), parents: names, children: names, inputFiles: names, outputFiles: names }),
      )
      .min(1)
      .max(MAX_TASKS),
    files: z.array(file).default([]),
  }),
  execution: z.object({ tasks: z.array(z.object({ id: z.string(), coreCount: cores, ...run })) }),
});
/** Until WfFormat 1.4. Tasks are named by name, or by id. */
const flat = z.object({
  tasks: z
    .array(
      z.object({
        ...{ name: z.string(), id: z.string().optional(), parents: names, children: names, cores },
        files: z
          .array(
            z.object({
              name: z.string(),
              path: z.string().default(''),
              sizeInBytes: bytes,
              link: z.string(),
            }),
          )
          .default([]),
        ...run,
      }),
    )
    .min(1)
    .max(MAX_TASKS),
});

/** Reads an execution of WfCommons. Throws what reading the file throws, and on what is none, with the name of the file. */
export async function readExecution(path: string): Promise<Workflow> {
  const text = await textOf(path, MAX_BYTES);
  try {
    return { workflow: nameOf(path), tasks: executionOf(JSON.parse(text)) };
  } catch (error) {
    throw new Error(`${nameOf(path)}: ${(error as Error).message}`);
  }
}

/** Throws on what is no execution of WfCommons. */
export function executionOf(document: unknown): WorkflowTask[] {
  const { workflow } = read(z.object({ workflow: z.looseObject({}) }), document, []);
  const tasks =
    'specification' in workflow
      ? fromSpecification(read(specified, workflow, ['workflow']))
      : fromFlat(read(flat, workflow, ['workflow']));
  return inOrder(tasks);
}

const read = <S extends z.ZodType>(schema: S, value: unknown, at: readonly string[]): z.output<S> =>
  checked(schema, value, ([fault]) => {
    const said = sayFault({ ...fault, path: [...at, ...fault.path] }, 'the file');
    return new Error(`${said}, in an execution of WfCommons (WfFormat 1.4 or later)`);
  });

interface Named {
  id: string;
  /** Other names of it. */
  also: readonly string[];
  run: { runtimeInSeconds?: number | undefined; memoryInBytes?: number | null | undefined };
  cores: number | null | undefined;
  parents: readonly string[];
  children: readonly string[];
  inputs: readonly string[];
  outputs: readonly string[];
}

function fromSpecification({ specification, execution }: z.infer<typeof specified>): WorkflowTask[] {
  const ran = new Map(execution.tasks.map((task) => [task.id, task]));
  const tasks = specification.tasks.map(({ id, parents, children, inputFiles, outputFiles }): Named => {
    const run = ran.get(id);
    if (run === undefined) throw new Error(`workflow.execution.tasks: the run of task ${id} is missing`);
    return {
      ...{ id, also: [], run, cores: run.coreCount, parents, children },
      ...{ inputs: inputFiles, outputs: outputFiles },
    };
  });
  return linked(tasks, new Map(specification.files.map((one) => [one.id, one.sizeInBytes])));
}

function fromFlat({ tasks }: z.infer<typeof flat>): WorkflowTask[] {
  const sizes = new Map<string, number>();
  const named = tasks.map(({ name, id, files, parents, children, cores, ...run }): Named => {
    const of = (link: string): string[] =>
      files.flatMap((one) => (one.link.toLowerCase() === link ? [one.path + one.name] : []));
    for (const one of files) sizes.set(one.path + one.name, one.sizeInBytes);
    return {
      ...{ id: id ?? name, also: [name], run, cores, parents, children },
      ...{ inputs: of('input'), outputs: of('output') },
    };
  });
  return linked(named, sizes);
}

/** From names to positions. A need may be told at either end, or by a file alone. */
function linked(tasks: readonly Named[], sizes: ReadonlyMap<string, number>): WorkflowTask[] {
  const positions = new Map<string, number>();
  for (const [i, { id }] of tasks.entries()) {
    if (positions.has(id)) throw new Error(`workflow: there are two tasks ${id}`);
    positions.set(id, i);
  }
  for (const [i, { also }] of tasks.entries())
    for (const name of also) if (!positions.has(name)) positions.set(name, i);
  const writers = new Map(tasks.flatMap(({ outputs }, i) => outputs.map((name) => [name, i] as const)));
  const parents = tasks.map(() => new Set<number>());
  const positionOf = (name: string, of: string): number => {
    const found = positions.get(name);
    if (found === undefined)
      throw new Error(`workflow: task ${of} names ${name}, which is not one of its tasks`);
    return found;
  };
  for (const [i, task] of tasks.entries()) {
    for (const name of task.parents) parents[i]?.add(positionOf(name, task.id));
    for (const name of task.children) parents[positionOf(name, task.id)]?.add(i);
  }
  return tasks.map(({ run, cores, inputs }, i) => {
    const reads = inputs.flatMap((name) => {
      const from = writers.get(name);
      if (from === undefined || from === i) return [];
      parents[i]?.add(from);
      return [{ from, sizeMb: (sizes.get(name) ?? 0) / 1e6 }];
    });
    const runS = Math.max(LEAST_RUN_S, run.runtimeInSeconds ?? 0);
    const of = [...(parents[i] as Set<number>)].map(
      (parent) => ({ members: [parent], condition: 'OK', minDelayS: 0 }) as const,
    );
    return {
      ...{ runS, estimateS: runS, onUnmet: 'CANCEL', reads },
      cpus: Math.max(1, Math.ceil(cores ?? 1)),
      memoryMb: Math.ceil((run.memoryInBytes ?? 0) / 1e6),
      needs: of.length === 0 ? [] : [{ expression: 'ALL', of }],
    };
  });
}

/** Each after those that it needs, all others as they are. Throws for a circle. */
export function inOrder(tasks: readonly WorkflowTask[]): WorkflowTask[] {
  const [from, to]: [number[], number[]] = [[], []];
  for (const [i, { needs }] of tasks.entries())
    for (const { of } of needs)
      for (const { members } of of)
        for (const member of members) {
          from.push(member);
          to.push(i);
        }
  const order = [...topologicalOrder(digraph(tasks.length, from, to))];
  if (order.length < tasks.length) throw new Error('workflow: its tasks depend on one another in a cycle');
  const places = new Int32Array(tasks.length);
  for (const [place, task] of order.entries()) places[task] = place;
  const lists = new Map<readonly number[], readonly number[]>();
  const moved = (members: readonly number[]): readonly number[] => {
    const list = lists.get(members) ?? members.map((member) => places[member] as number);
    lists.set(members, list);
    return list;
  };
  return order.map((old) => {
    const task = tasks[old] as WorkflowTask;
    return {
      ...task,
      needs: task.needs.map(({ expression, of }) => ({
        expression,
        of: of.map((term) => ({ ...term, members: moved(term.members) })),
      })),
      reads: task.reads.map(({ from, sizeMb }) => ({ from: places[from] as number, sizeMb })),
    };
  });
}

/**
 * The seconds of the longest chain of tasks that need one another, if all end well: on machines that are no faster the workflow takes no
 * less, however many there are.
 */
export function criticalPathS(tasks: readonly WorkflowTask[]): number {
  const never = { firstStartedAt: null, startedAt: null, endedAt: null, notBefore: null, held: false };
  const { ends, criticalPath } = forecast(
    tasks.map(({ needs, runS }) => ({
      ...{ ...never, runS },
      needs: needs.map(({ expression, of }) => ({
        expression,
        of: of.map(({ members, condition, minDelayS }) => ({ on: members, condition, minDelayS })),
      })),
    })),
    0,
  );
  return ends[criticalPath.at(-1) ?? -1] ?? 0;
}

/** Gives the jobs of a workflow their places in it, by the world as it is at the beginning. Jobs and tasks are aligned. */
export function placeInWorkflow(jobs: readonly SimJob[], tasks: readonly WorkflowTask[], world: World): void {
  const edges: DataEdge[] = [];
  // A list of several stands for itself, so that thousands that need the same thousands cost their sum.
  const lists = new Map<readonly number[], number>();
  for (const [to, { needs, reads }] of tasks.entries()) {
    for (const { of } of needs)
      for (const { members } of of) {
        if (members.length === 1) edges.push({ from: members[0] as number, to, mb: 0 });
        else {
          const known = lists.get(members);
          const list = known ?? tasks.length + lists.size;
          lists.set(members, list);
          if (known === undefined) for (const from of members) edges.push({ from, to: list, mb: 0 });
          edges.push({ from: list, to, mb: 0 });
        }
      }
    for (const { from, sizeMb } of reads) edges.push({ from, to, mb: sizeMb });
  }
  const grid = new Grid();
  for (const site of world.sites) grid.setSite(site);
  for (const license of world.licenses) grid.setLicense(license);
  for (const machine of world.machines) grid.setMachine(machine);
  const catalog = new DataCatalog();
  for (const link of world.links ?? []) catalog.setLink(link);
  const places = workflowPlaces(
    grid,
    { jobs: jobs.map(({ job }) => job), edges, groups: lists.size, since: 0 },
    (from, to) => {
      const { rttS, bandwidthMbPerS } = catalog.link(from, to);
      return { latencyS: rttS, mbPerS: bandwidthMbPerS };
    },
  );
  for (const [i, one] of jobs.entries()) one.job.workflow = places[i] ?? null;
}

/** The tasks as jobs that are submitted together at time 0, to the root (null) or this site. */
export function jobsOf(
  tasks: readonly WorkflowTask[],
  { siteId, memory, tasksOfCpus }: { siteId: number | null; memory: boolean; tasksOfCpus: boolean },
): SimJob[] {
  /** From positions to ids. */
  const ids = new Map<readonly number[], readonly number[]>();
  const idsOf = (members: readonly number[]): readonly number[] => {
    const list = ids.get(members) ?? members.map((member) => member + 1);
    ids.set(members, list);
    return list;
  };
  return tasks.map(({ runS, estimateS, cpus, memoryMb, needs, onUnmet, reads }, i) => {
    const width = tasksOfCpus ? { tasks: cpus, cpusPerTask: 1 } : { tasks: 1, cpusPerTask: cpus };
    const memoryMbPerTask = memory ? Math.ceil(memoryMb / width.tasks) : 0;
    const job = plainJob({ id: i + 1, submittedAt: 0, estimateS, ...width, memoryMbPerTask });
    const one: SimJob = { job, sourceId: i + 1, runS, limitS: null, siteId };
    if (needs.length > 0)
      one.wait = {
        needs: needs.map(({ expression, of }) => ({
          expression,
          of: of.map((term) => ({ ...term, members: idsOf(term.members) })),
        })),
        ...{ onUnmet, since: 0 },
        reads: reads.map(({ from, sizeMb }) => ({ job: from + 1, sizeMb })),
      };
    return one;
  });
}
