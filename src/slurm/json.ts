/**
 * `--json` of squeue, sacct and sinfo: the fields that exist here, under the names and in the shapes of data_parser v0.0.40 (Slurm 23.11,
 * src/plugins/data_parser/v0.0.40/parsers.c: JOB_INFO, JOB, STEP, SINFO_DATA).
 */
import { licensesWritten } from '../words/index.js';
import { cpusOf, exitOfRow, gresOf, nodeCount, type Row, tresCounts, tresOf } from './fields.js';
import { elapsedS, nodesOf, numberOf, placeOf, reasonOf, slurmState } from './jobs.js';
import { partitionOfJob } from './partitions.js';
import { rowOfBatch } from './steps.js';

/** The whole answer of a command. `type`: of the plugin that answers in Slurm. */
export const jsonOf = (type: 'slurmctld' | 'slurmdbd', command: string, content: object): string =>
  JSON.stringify(
    {
      ...content,
      meta: {
        plugin: { type: `openapi/${type}`, name: 'Switchyard', data_parser: 'data_parser/v0.0.40' },
        command: [command],
        slurm: {
          ...{ version: { major: '23', micro: '0', minor: '11' }, release: '23.11.0', cluster: 'switchyard' },
        },
      },
      errors: [],
      warnings: [],
    },
    null,
    2,
  );

/** A number that may be missing. */
const number = (value: number | null): object => ({
  set: value !== null,
  infinite: false,
  number: value ?? 0,
});
const UNLIMITED = { set: false, infinite: true, number: 0 };
/** A time, seconds since 1970; 0: none. */
const at = (time: string | null): number => (time === null ? 0 : Math.floor(Date.parse(time) / 1000));
/** Of a limit in seconds; null: there is none. */
const minutes = (limitS: number | null): object =>
  limitS === null ? UNLIMITED : number(Math.ceil(limitS / 60));
const limit = ({ job: { runTimeLimitS } }: Row): object => minutes(runTimeLimitS);
/** Seconds of CPU time. */
const spent = (seconds: number): object => ({
  seconds: Math.floor(seconds),
  microseconds: Math.floor((seconds % 1) * 1e6),
});
/** For each node of Slurm's, which is a task here. */
const memory = ({ job: { memoryMbPerTask } }: Row): object => ({
  memory_per_cpu: number(null),
  memory_per_node: memoryMbPerTask > 0 ? number(memoryMbPerTask) : number(null),
});

function exitCode(row: Row): object {
  const { job } = row;
  const [code, signal] = exitOfRow(row).split(':').map(Number) as [number, number];
  return {
    status: [job.endedAt === null ? 'PENDING' : signal > 0 ? 'SIGNALED' : code > 0 ? 'ERROR' : 'SUCCESS'],
    return_code: number(code),
    signal: { id: signal > 0 ? number(signal) : number(null), name: '' },
  };
}

/** What both kinds of answers have, under the same names. */
function shared(row: Row) {
  const { job } = row;
  return {
    account: job.project ?? 'default',
    cluster: 'switchyard',
    derived_exit_code: exitCode(row),
    exit_code: exitCode(row),
    hold: job.state === 'HELD',
    job_id: numberOf(job.id),
    licenses: licensesWritten(job.licenses, job.resources),
    name: job.name ?? job.application,
    nodes: nodesOf(job).join(','),
    partition: partitionOfJob(job),
    priority: number(Math.max(0, (job.priority ?? 0) + job.boost)),
    qos: job.class ?? 'normal',
    restart_cnt: Math.max(0, job.epoch - 1),
  };
}

/** A job of squeue. */
export function jobInfo(row: Row): object {
  const { job, nowMs } = row;
  const place = placeOf(job);
  const time = (value: string | null): object => number(at(value));
  return {
    ...shared(row),
    array_job_id: number(place?.first ?? 0),
    array_task_id: number(place && job.arrayIndex),
    batch_flag: true,
    batch_host: nodesOf(job)[0] ?? '',
    command: job.command,
    cpus: number(cpusOf(job)),
    cpus_per_task: number(job.cpusPerTask),
    shared: job.exclusive === null ? [] : [job.exclusive === 'USER' ? 'user' : 'none'],
    required_switches: job.sameSwitch === null ? 0 : 1,
    tasks_per_node: number(job.tasksPerMachine?.max ?? null),
    current_working_directory: job.workingDirectory ?? '',
    deadline: time(job.deadline),
    dependency: reasonOf(job, nowMs) === 'Dependency' ? '(unfulfilled)' : '',
    eligible_time: time(job.eligibleAt ?? job.submittedAt),
    end_time: time(job.endedAt),
    features: job.machineConstraint ?? '',
    job_state: [slurmState(job)],
    ...memory(row),
    nice: -job.boost,
    node_count: number(nodeCount(job)),
    requeue: job.restartable,
    start_time: time(job.startedAt),
    state_description: job.message ?? '',
    state_reason: reasonOf(job, nowMs),
    submit_time: time(job.submittedAt),
    tasks: number(job.tasks),
    time_limit: limit(row),
    tres_alloc_str: job.startedAt === null ? '' : tresOf(job),
    tres_per_node: (job.resourcesPerTask ?? []).length > 0 ? gresOf(job) : '',
    tres_req_str: tresOf(job),
    user_name: job.user.name,
  };
}

/** Numbers by which Slurm's database knows them. */
const TRES_IDS: Readonly<Record<string, number>> = { cpu: 1, mem: 2, node: 4, billing: 5 };
const tresList = (counts: readonly (readonly [string, number])[]): object[] =>
  counts.map(([tres, count]) => {
    const [type = '', name = ''] = tres.split('/');
    return { type, name, id: TRES_IDS[type] ?? 1001, count };
  });

const times = ({ job, nowMs }: Row): object => ({
  elapsed: elapsedS(job, nowMs),
  suspended: 0,
  // Of the system and the user together, as it is measured here.
  total: spent(job.runs?.at(-1)?.cpuS ?? 0),
});

/** A job of sacct, with its steps. `state`: as sacct knows it. `recorded`: those besides `batch`. */
export function accountedJob(row: Row, state: string, recorded: readonly Row[]): object {
  const { job } = row;
  const place = placeOf(job);
  const started = job.startedAt !== null;
  const batch = rowOfBatch(row);
  const tres = tresCounts(job);
  return {
    ...shared(row),
    allocation_nodes: nodesOf(job).length,
    array: {
      ...{ job_id: place?.first ?? 0, limits: { max: { running: { tasks: 0 } } } },
      ...{ task_id: number(place && job.arrayIndex), task: '' },
    },
    association: {
      ...{ account: job.project ?? 'default', cluster: 'switchyard', partition: '', user: job.user.name },
    },
    comment: { administrator: '', job: '', system: '' },
    constraints: job.machineConstraint ?? '',
    required: { CPUs: cpusOf(job), ...memory(row) },
    state: { current: [state], reason: reasonOf(job, row.nowMs) },
    steps: started
      ? [
          stepShown(batch, batch.ended ? slurmState(batch.job) : state),
          ...recorded.map((one) => stepShown(one, slurmState(one.job))),
        ]
      : [],
    time: {
      ...times(row),
      eligible: at(job.eligibleAt ?? job.submittedAt),
      end: at(job.endedAt),
      limit: limit(row),
      start: at(job.startedAt),
      submission: at(job.submittedAt),
    },
    tres: { allocated: started ? tresList(tres) : [], requested: tresList(tres) },
    user: job.user.name,
    working_directory: job.workingDirectory ?? '',
  };
}

function stepShown(row: Row, state: string): object {
  const { job, step, ended } = row;
  const nodes = nodesOf(job);
  const peakMb = job.runs?.at(-1)?.peakMemoryMb;
  // Bytes, as Slurm has it.
  const used = peakMb == null ? [] : tresList([['mem', Math.round(peakMb * 1e6)]]);
  return {
    exit_code: exitCode(row),
    nodes: { count: nodes.length, range: nodes.join(','), list: nodes },
    state: [state],
    step: { id: `${numberOf(job.id)}.${step}`, name: ended?.name ?? step },
    tasks: { count: job.tasks },
    time: { ...times(row), start: number(at(job.startedAt)), end: number(at(job.endedAt)) },
    tres: { allocated: tresList(tresCounts(job)), requested: { max: used, total: used } },
  };
}

/** Machines of a partition that are alike, as a line of sinfo. */
export interface SinfoLine {
  /** `longestS`: of a job, seconds; null: any. */
  partition: { name: string; isUp: boolean; longestS: number | null };
  /** In small letters. */
  state: string;
  gres: string;
  gresUsed: string;
  machines: readonly {
    name: string;
    cpus: number;
    cpusUsed: number;
    memoryMb: number;
    memoryUsedMb: number;
  }[];
}

export function sinfoData({ partition, state, gres, gresUsed, machines }: SinfoLine): object {
  const total = (of: (machine: SinfoLine['machines'][number]) => number): number =>
    machines.reduce((sum, machine) => sum + of(machine), 0);
  const range = (of: (machine: SinfoLine['machines'][number]) => number): object => {
    const all = machines.length > 0 ? machines.map(of) : [0];
    return { minimum: Math.min(...all), maximum: Math.max(...all) };
  };
  const names = machines.map(({ name }) => name);
  const [cpus, used] = [total((one) => one.cpus), total((one) => one.cpusUsed)];
  const isOut = /down|drain/.test(state);
  const allocated = machines.filter((one) => one.cpusUsed > 0).length;
  const idle = isOut ? 0 : machines.length - allocated;
  return {
    cluster: 'switchyard',
    cpus: {
      ...{ allocated: used, idle: isOut ? 0 : cpus - used, other: isOut ? cpus - used : 0, total: cpus },
      ...range((one) => one.cpus),
    },
    gres: { total: gres, used: gresUsed },
    memory: { ...range((one) => one.memoryMb), allocated: total((one) => one.memoryUsedMb) },
    node: { state: machines.length > 0 ? [state.toUpperCase()] : [] },
    nodes: {
      ...{ allocated, idle, other: machines.length - allocated - idle, total: machines.length },
      ...{ hostnames: names, addresses: names, nodes: names },
    },
    partition: {
      name: partition.name,
      cluster: 'switchyard',
      maximums: { time: minutes(partition.longestS) },
      nodes: { configured: names.join(','), total: machines.length },
      partition: { state: [partition.isUp ? 'UP' : 'DOWN'] },
      cpus: { total: cpus },
    },
    weight: { minimum: 1, maximum: 1 },
  };
}
