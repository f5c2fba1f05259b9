/** The rules of resources.md. */
import { CPUS, eachTakes, ResourceKinds } from '../grid/amounts.js';
import {
  type EligibleMachines,
  type MachineState,
  machineState,
  SiteResources,
} from '../grid/site-resources.js';
import { type Candidate, chooseMachines } from '../resources/choice.js';
import { ConstraintError, type Labels, parseConstraint, satisfies } from '../resources/constraint.js';
import { Profile } from '../resources/profile.js';
import { type PlacedTasks, placeShape, type ShapeMachine, type ShapePart } from '../resources/shape.js';
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

interface ShapeInput {
  user: string;
  machines: ShapeMachine[];
  parts: (Omit<ShapePart, 'where'> & { where: string | null })[];
  licenses: Named;
  freeLicenses: Named;
}

interface ConstraintInput {
  expression: string;
  machines: { id: string; labels: Labels }[];
}

export const resourceRules: Rules = {
  constraint: ({ expression, machines }: ConstraintInput) => {
    try {
      const constraint = parseConstraint(expression);
      return { machines: machines.filter(({ labels }) => satisfies(labels, constraint)).map(({ id }) => id) };
    } catch (error) {
      if (!(error instanceof ConstraintError)) throw error;
      return { error: { code: error.code, at: error.at } };
    }
  },

  place_shape: ({ user, machines, parts, licenses, freeLicenses }: ShapeInput) => {
    const shape = parts.map(({ where, ...part }) => {
      return { ...part, where: where === null ? null : parseConstraint(where) };
    });
    const placement = placeShape(shape, machines, user, { asked: licenses, free: freeLicenses });
    if ('lacks' in placement) return placement;
    const shown = ({ devices, ...one }: PlacedTasks) => ({
      ...one,
      devices: devices.map(({ device, ...taken }) => ({ device: device.id, ...taken })),
    });
    return { parts: placement.parts.map((part) => part.map(shown)) };
  },

  earliest_hold: ({ now, machines, taken, request }: HoldInput) => {
    const kinds = new ResourceKinds();
    const task = kinds.amounts(request.perTask);
    const totals = machines.map(({ total }) => kinds.vector(total));
    const holds = taken.map(({ machine, amounts, ...hold }) => {
      const at = machines.findIndex(({ id }) => id === machine);
      return { ...hold, at, task: kinds.amounts(amounts ?? totals[at] ?? []) };
    });
    const resources = new SiteResources(
      1,
      () => [],
      kinds.size,
      () => null,
    );
    totals.forEach((offered, id) => {
      resources.addMachine(machineState({ ...ANY_MACHINE, id }, offered));
    });
    const profileFrom = (from: number, end: 'to' | 'latest'): Profile => {
      const profile = new Profile(resources, from);
      for (const hold of holds) {
        const on = {
          machines: [resources.machines[hold.at] as MachineState],
          tasks: [1],
          each: eachTakes(hold.task),
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
    const asked = { ...ANY_REQUIREMENT, tasks: request.tasks, many: request.tasks > 1, task };
    const eligible: EligibleMachines = {
      shared: false,
      ownScheduler: false,
      takesParts: true,
      takesDevices: true,
      machines: resources.machines,
      parts: null,
      pools: [],
      most: [],
    };
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
    const cpusPerTask = request.perTask.cpus ?? 0;
    const roomsAt = (at: number): Candidate[] =>
      resources.machines.map((state, i) => ({
        id: machines[i]?.id as string,
        most: expected.tasksOn(state, task, at, at + p90, at + limit),
        key: (tasks) => [expected.least(state, CPUS, at, at + p90, at + limit) - tasks * cpusPerTask],
      }));
    const placedAt = (at: number) =>
      (chooseMachines(roomsAt(at), request.tasks, 1) ?? [])
        .map(({ candidate, tasks }) => ({ machine: candidate.id, tasks }))
        .sort((a, b) => (a.machine < b.machine ? -1 : 1));
    return {
      startsAt,
      startsAtLatest: profileFrom(from, 'latest').earliestOpening(asked, eligible, limit, limit)?.at ?? null,
      fitsIfLimitS: shorter.find(fits) ?? null,
      placement: startsAt === null ? null : placedAt(startsAt),
    };
  },
};

/** What the rule does not look at. */
const ANY_MACHINE = {
  ...{ id: 0, siteId: 1, cpus: 1, memoryMb: 0, benchmark: 1, os: '', architecture: '' },
  ...{ licenseIds: [], available: true },
};
const ANY_REQUIREMENT = {
  ...{
    index: 0,
    cpusPerTask: 1,
    jobs: 0,
    sharedTask: [],
    sharedTake: [],
    devices: null,
    further: null,
    whole: false,
    onlyUser: null,
    spread: null,
    parts: null,
  },
  signature: {
    ...{ key: '', os: null, architecture: null, pools: [], constraint: null, avoids: null },
    parts: null,
  },
};
