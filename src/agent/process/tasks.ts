/** What the tasks of a job are told of one another: PROTOCOL.md says who reads what. */
import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import { type Assignment, type RunName, runKey } from '../runner.js';

/** Ports below those that Linux gives out by itself (32 768 and up). */
const FIRST_PORT = 16_384;
const PORTS = 16_384;

/**
 * Writes the list of hosts of a job with several tasks into the run's own directory: a line for each task, as PBS does, which every
 * launcher reads. Answers the variables that depend on it.
 */
export function placeTask(assignment: Assignment, directory: string): Record<string, string> {
  const { task, tasks, machines } = assignment;
  if (tasks === 1 || machines.length === 0) return {};
  const hosts = machines.map(({ name, host = name }) => host);
  const hostfile = join(directory, '.switchyard-hosts');
  write(hostfile, machines.map((machine, i) => `${hosts[i]}\n`.repeat(machine.tasks)).join(''));
  const own = { SWITCHYARD_HOSTFILE: hostfile };
  if (task === undefined) {
    // For Open MPI a host that is listed once has as many tasks as CPUs, unless that is said; and it takes that once for each host.
    const byHost = new Map<string, number>();
    for (const [i, { tasks }] of machines.entries())
      byHost.set(hosts[i]!, (byHost.get(hosts[i]!) ?? 0) + tasks);
    const slots = join(directory, '.switchyard-slots');
    write(slots, [...byHost].map(([host, count]) => `${host} slots=${count}\n`).join(''));
    return {
      ...own,
      OMPI_MCA_orte_default_hostfile: slots,
      PRTE_MCA_prte_default_hostfile: slots,
      HYDRA_HOST_FILE: hostfile,
      I_MPI_HYDRA_HOST_FILE: hostfile,
    };
  }
  let first = 0;
  const node = machines.findIndex((machine) => {
    if (task < first + machine.tasks) return true;
    first += machine.tasks;
    return false;
  });
  const index = String(task);
  const count = String(tasks);
  const localIndex = String(task - first);
  const localCount = String(machines[node]?.tasks);
  const nodes = { count: String(machines.length), index: String(node) };
  const address = hosts[0] as string;
  const port = masterPort(assignment);
  return {
    ...own,
    ...{ RANK: index, WORLD_SIZE: count, LOCAL_RANK: localIndex, LOCAL_WORLD_SIZE: localCount },
    ...{ NODE_RANK: nodes.index, NNODES: nodes.count, MASTER_ADDR: address, MASTER_PORT: port },
    ...{
      PET_NODE_RANK: nodes.index,
      PET_NNODES: nodes.count,
      PET_MASTER_ADDR: address,
      PET_MASTER_PORT: port,
    },
    ...{ OMPI_COMM_WORLD_RANK: index, OMPI_COMM_WORLD_SIZE: count, OMPI_COMM_WORLD_NODE_RANK: localIndex },
    ...{ OMPI_COMM_WORLD_LOCAL_RANK: localIndex, OMPI_COMM_WORLD_LOCAL_SIZE: localCount },
    ...{ PMI_RANK: index, PMI_SIZE: count, MPI_LOCALRANKID: localIndex, MPI_LOCALNRANKS: localCount },
  };
}

/** Where the tasks of a run meet: the same for all of them, and for no other run on the host, with luck. */
export const masterPort = ({ jobId, epoch }: RunName): string =>
  String(FIRST_PORT + (crc32(runKey({ jobId, epoch })) % PORTS));

/** Whatever the agent's umask: runs may have other accounts. */
function write(path: string, text: string): void {
  writeFileSync(path, text);
  chmodSync(path, 0o644);
}
