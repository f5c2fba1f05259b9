/**
 * What other agents run on this host. It is found by what does not lie in a state directory, which somebody may remove: lanes say on their
 * command line whose they are and which machines they serve, runs carry a mark in their environment, and have control groups and accounts
 * that are named after their agent.
 */
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Cgroup } from './cgroup.js';
import type { ClaimedIds } from './ids.js';
import { MARKER, type ProcessRow, processesWithIds, processTable } from './processes.js';
import { LANE_NAME } from './script.js';

/** Whom an agent's lanes work for. */
export interface Serves {
  /** The address of its service: others have sites and machines of the same names on this host, which are none of our business. */
  service: string;
  site: string;
  machines: readonly string[];
}

/** A lane, as its command line tells. */
export interface Lane {
  pid: number;
  /** Of its slot. */
  dir: string;
  /** Id of the agent that started it; null: nobody knows. Those of earlier releases do not say, and their state may be gone. */
  agent: string | null;
  serves: Serves | null;
}

/** Where else than in processes agents leave their names. */
export interface Traces {
  /** Control groups of agents, by id. */
  cgroups: ReadonlyMap<string, string>;
  /** Ranges of accounts that agents have taken, by id. */
  uids: ReadonlyMap<string, ClaimedIds>;
}

/** Words of a lane's command line behind its slot. */
export const laneMark = (agent: string, serves: Serves | null): string[] =>
  serves === null ? [agent] : [agent, serves.service, serves.site, serves.machines.join()];

export function lanesHere(): Lane[] {
  return pidsHere().flatMap((pid) => {
    const [, , , name, dir, agent, service, site, machines] = wordsOf(pid, 'cmdline');
    if (name !== LANE_NAME || !dir) return [];
    const serves = service && site && machines ? { service, site, machines: machines.split(',') } : null;
    return [{ pid, dir, agent: agent || idOf(dir), serves }];
  });
}

/** Of the agent in whose state directory a slot is. */
function idOf(slot: string): string | null {
  try {
    return readFileSync(join(slot, '../../id'), 'utf8') || null;
  } catch {
    return null;
  }
}

export interface Claimant extends Serves {
  id: string;
  stateDir: string;
  /** Whether the agent watches this lane itself. */
  watches(lane: number): boolean;
  /** Whether a run of this name is the agent's, and goes on. */
  runs(key: string): boolean;
  traces(): Traces;
}

/** Looks before what cannot be ended is left to people, and between two of them. */
const ROUNDS = 100;
const ROUND_MS = 50;

/**
 * Ends what agents that are dead have left running for the machines of this one: before it asks for their leases, whereupon those runs are
 * lost and may begin elsewhere.
 *
 * @returns why that cannot be done, or not yet; null: nothing is left
 */
export async function endOthers(us: Claimant): Promise<string | null> {
  // Elsewhere nothing tells whose a process is.
  if (process.platform !== 'linux') return null;
  for (let round = 0; ; round++) {
    const { left, watched } = look(us);
    if (watched) {
      const { lane, watcher } = watched;
      return `another agent (process ${watcher}, slot ${lane.dir}) runs jobs of the same machine on this host: stop that agent first`;
    }
    if (left.length === 0) return null;
    if (round === ROUNDS) {
      const some = left.slice(0, 10).join(', ');
      return `processes of runs of an earlier agent on this host cannot be ended: ${some}`;
    }
    for (const pid of left) signal(pid);
    await sleep(ROUND_MS);
  }
}

/** Processes that are left of dead agents; or a lane of the same machines that a living agent watches. */
function look(us: Claimant): { left: number[]; watched: { lane: Lane; watcher: number } | null } {
  // Marks before lanes: who has just begun a run has a lane when they are looked for.
  const table = processTable();
  const marked = marksOf(table);
  const traces = us.traces();
  // Its own, unless it found them in slots of an identity that it has no more.
  const lanes = lanesHere().filter(({ pid, agent }) => agent !== us.id || !us.watches(pid));
  const concerned = lanes.filter((lane) => concerns(lane, us));
  const watchers = watchersOf(concerned);
  const [busy] = watchers;
  if (busy) return { left: [], watched: { lane: busy[0], watcher: busy[1] } };
  // What else bears the name of an agent that has lanes for other machines is theirs. Without a lane no run goes on.
  const others = new Set(lanes.filter((one) => !concerned.includes(one)).map(({ agent }) => agent));
  const isTheirs = (agent: string): boolean => agent === us.id || others.has(agent) || others.has(null);
  const isLeft = ([agent, key]: Mark): boolean => (agent === us.id ? !us.runs(key) : !isTheirs(agent));
  const left = new Set<number>();
  const sessions = new Set(concerned.map(({ pid }) => pid));
  for (const { pid, session, group } of table)
    if (sessions.has(session) || sessions.has(group)) left.add(pid);
  for (const [pid, mark] of marked) if (isLeft(mark)) left.add(pid);
  for (const [agent, dir] of traces.cgroups)
    if (!isTheirs(agent)) for (const pid of membersOf(dir)) left.add(pid);
  for (const pid of leftIn([...traces.uids].filter(([agent]) => !isTheirs(agent)).map(([, ids]) => ids)))
    left.add(pid);
  for (let before = -1; before !== left.size; ) {
    before = left.size;
    for (const { pid, parent } of table) if (left.has(parent)) left.add(pid);
  }
  left.delete(process.pid);
  // Without those that are dead and wait to be collected.
  const living = table.filter(({ pid }) => left.has(pid)).map(({ pid }) => pid);
  return { left: living, watched: null };
}

/** Processes with ids of agents that are no more: one that lives has processes without a lane too, as of what fetches an image. */
function leftIn(claimed: readonly ClaimedIds[]): number[] {
  const of = (id: number) => claimed.find(({ first, last }) => id >= first && id <= last);
  const found = [...processesWithIds((id) => of(id) !== undefined)];
  if (found.length === 0) return [];
  const open = new Set(pidsHere().flatMap(openFiles));
  return found.flatMap(([id, pids]) => (open.has(of(id)!.claim) ? [] : pids));
}

/** Whether a lane works for machines of this agent. Of an earlier release's only the directory tells. */
const concerns = ({ agent, serves, dir }: Lane, us: Claimant): boolean =>
  agent === us.id ||
  (serves === null
    ? dir.startsWith(`${us.stateDir}/`)
    : serves.service === us.service &&
      serves.site === us.site &&
      serves.machines.some((name) => us.machines.includes(name)));

/** Who watches a lane: an agent has the record of its end open for as long, whatever becomes of the directory. */
function watchersOf(lanes: readonly Lane[]): [Lane, number][] {
  const byPath = new Map(
    lanes.flatMap((lane) => ['', ' (deleted)'].map((gone) => [`${lane.dir}/end${gone}`, lane])),
  );
  const found: [Lane, number][] = [];
  if (lanes.length === 0) return found;
  for (const pid of pidsHere()) {
    const lane = openFiles(pid).flatMap((path) => byPath.get(path) ?? [])[0];
    if (lane && lane.pid !== pid && pid !== process.pid) found.push([lane, pid]);
  }
  return found;
}

/** The id of an agent, and the name of one of its runs. */
type Mark = [agent: string, key: string];

/** By pid, of processes that carry the mark of a run. */
function marksOf(table: readonly ProcessRow[]): Map<number, Mark> {
  const beginning = `${MARKER}=`;
  return new Map(
    table.flatMap(({ pid }) => {
      const entry = wordsOf(pid, 'environ').find((one) => one.startsWith(beginning));
      const [agent, key] = entry?.slice(beginning.length).split('/') ?? [];
      return agent && key ? [[pid, [agent, key] satisfies Mark] as const] : [];
    }),
  );
}

/** Of a control group and those below it, which are ended at one stroke. */
function membersOf(dir: string): number[] {
  return listOf(dir, true).flatMap((name) => {
    const group = new Cgroup(join(dir, name));
    const pids = group.processes();
    if (pids.length > 0) group.kill();
    return pids;
  });
}

const pidsHere = (): number[] =>
  listOf('/proc', false)
    .filter((name) => /^\d+$/.test(name))
    .map(Number);

function listOf(dir: string, directories: boolean): string[] {
  try {
    return readdirSync(dir, { withFileTypes: true })
      .filter((entry) => !directories || entry.isDirectory())
      .map(({ name }) => name);
  } catch {
    return []; // There is none, or it has gone.
  }
}

function wordsOf(pid: number, file: 'cmdline' | 'environ'): string[] {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'utf8').split('\0');
  } catch {
    return []; // It has gone, or is another's.
  }
}

function openFiles(pid: number): string[] {
  const fds = `/proc/${pid}/fd`;
  return listOf(fds, false).flatMap((fd) => {
    try {
      return [readlinkSync(join(fds, fd))];
    } catch {
      return [];
    }
  });
}

function signal(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It has gone by itself, or may not be ended by us: that is seen at the next look.
  }
}
