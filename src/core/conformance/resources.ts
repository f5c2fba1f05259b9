/** The rules of resources.md. */
import { CPUS, ResourceKinds } from '../grid/amounts.js';
import {
  type EligibleMachines,
  type MachineState,
  machineState,
  SiteResources,
} from '../grid/site-resources.js';
import { Profile } from '../resources/profile.js';
import type { Rules } from './rule.js';

type Named = Record<string, number>;

interface HoldInput {
  now: number;
  machines: { id: string; total: Named }[];
  taken: {
    machine: string;
    by: 'RUN' | 'JOB' | 'HOLD';
    /** null: the whole machine. */
    amounts: Named | null;
    from: number;
    /** As expected, and by limit; null: never. */
    to: number | null;
    latest: number | null;
  }[];
  request: {
    tasks: number;
    perTask: Named;
    limitS: number | null;
    p90S: number;
    notBefore: number | null;
  };
}

export const resourceRules: Rules = {
  earliest_hold: ({ now, machines, taken, request }: HoldInput) => {
    const kinds = new ResourceKinds();
    const task = kinds.amounts(request.perTask);
    const totals = machines.map(({ total }) => kinds.vector(total));
    const holds = taken.map(({ machine, amounts, ...hold }) => {
      const at = machines.findIndex(({ id }) => id === machine);
      return { ...hold, at, task: kinds.amounts(amounts ?? totals[at] ?? []) };
    });
    const resources = new SiteResources(1, () => [], kinds.size);
    totals.forEach((offered, id) => {
      resources.addMachine(machineState({ ...ANY_MACHINE, id }, offered));
    });
    const profileFrom = (from: number, end: 'to' | 'latest'): Profile => {
      const profile = new Profile(resources, [], from);
      for (const hold of holds) {
        const each = { task: hold.task, sharedTask: hold.task, sharedTake: hold.task };
        const on = {
          machines: [resources.machines[hold.at] as MachineState],
          tasks: [1],
          each,
          licenses: [],
        };
        const certain = hold.by === 'HOLD';
        profile.take(on, hold.from, hold[certain ? 'to' : end] ?? Infinity, certain);
      }
      return profile;
    };

    const limit = request.limitS ?? Infinity;
    const p90 = Math.min(request.p90S, limit);
    const from = Math.max(now, request.notBefore ?? now);
    const asked = { ...ANY_REQUIREMENT, tasks: request.tasks, task };
    const eligible: EligibleMachines = { shared: false, machines: resources.machines, pools: [], most: [] };
    const expected = profileFrom(from, 'to');
    const startsAt = expected.earliestOpening(asked, eligible, p90, limit)?.at ?? null;
    const shorter =
      startsAt === now || from > now
        ? []
        : holds
            .map((hold) => hold.from - now)
            .filter((length) => length > 0 && length < limit)
            .sort((a, b) => b - a);
    const fits = (length: number): boolean =>
      expected.openingNow(asked, eligible, Math.min(p90, length), length) !== null;
    const roomsAt = (at: number): Room[] =>
      resources.machines.map((state, i) => ({
        id: machines[i]?.id as string,
        most: expected.tasksOn(state, task, at, at + p90, at + limit),
        cpus: expected.least(state, CPUS, at, at + p90, at + limit),
      }));
    return {
      startsAt,
      startsAtLatest: profileFrom(from, 'latest').earliestOpening(asked, eligible, limit, limit)?.at ?? null,
      fitsIfLimitS: shorter.find(fits) ?? null,
      placement:
        startsAt === null ? null : fewest(roomsAt(startsAt), request.tasks, request.perTask.cpus ?? 0),
    };
  },
};

interface Room {
  id: string;
  /** Tasks that it has room for. */
  most: number;
  cpus: number;
}

/** The machines of "Which machines": the fewest, and of those that do equally the one that is left with the fewest free CPUs. */
function fewest(
  rooms: readonly Room[],
  tasks: number,
  cpusPerTask: number,
): { machine: string; tasks: number }[] {
  const largest = rooms.map(({ most }) => most).sort((a, b) => b - a);
  let needed = 0;
  for (let sum = 0; sum < tasks; needed++) sum += largest[needed] as number;
  const placed: { machine: string; tasks: number }[] = [];
  const open = new Set(rooms);
  for (let left = tasks; left > 0; needed--) {
    // Each of the machines still to come gets a task.
    const gets = ({ most }: Room): number => Math.min(most, left - (needed - 1));
    const key = (room: Room): number => room.cpus - gets(room) * cpusPerTask;
    const [best] = [...open].sort(
      (a, b) => Math.min(b.most, left) - Math.min(a.most, left) || key(a) - key(b) || (a.id < b.id ? -1 : 1),
    ) as [Room];
    open.delete(best);
    placed.push({ machine: best.id, tasks: gets(best) });
    left -= gets(best);
  }
  return placed.sort((a, b) => (a.machine < b.machine ? -1 : 1));
}

/** What the rule does not look at. */
const ANY_MACHINE = {
  ...{ id: 0, siteId: 1, cpus: 1, memoryMb: 0, benchmark: 1, os: '', architecture: '' },
  ...{ licenseIds: [], available: true },
};
const ANY_REQUIREMENT = {
  ...{ index: 0, cpusPerTask: 1, jobs: 0, sharedTask: [], sharedTake: [] },
  signature: { key: '', os: null, architecture: null, licenses: [] },
};
