/**
 * Jobs that keep their machines for their user (`exclusive: USER`), and others of the same user beside them.
 *
 * Decision: in every plan such a run takes the whole of its machines, so that no scheduler, and no profile of the future, has to know users.
 * Only whoever starts now may join: a job finds the machines of its user's runs as these leave them by what their tasks ask for. Nothing that
 * is planned waits for that, and nothing that is planned is delayed by it. (Rejected: profiles by user. Each question about later would have
 * a user in it, and jobs that ask for the same would no longer be of one class.)
 */
import { amountOf, type Room, type TaskAmounts } from '../grid/amounts.js';
import type { Requirement } from '../grid/requirements.js';
import {
  alikeIn,
  askedOn,
  type EligibleMachines,
  keepsMachines,
  type MachineState,
  type Placement,
  type RunState,
  takenOn,
  takings,
  timesTaken,
} from '../grid/site-resources.js';
import type { DeviceHolds } from './device-holds.js';
import { ANY_SPREAD, atMost, Filling, ofOneJob, placeSpread, someInSpace } from './placement.js';

/** So much of a kind counts as free besides what is, until a run ends. */
export interface Besides {
  readonly end: number;
  readonly amount: number;
}

/** The least that is free of a kind on the machine while the job may run, with this besides. */
export type LeastFree = (state: MachineState, kind: number, besides: readonly Besides[]) => number;

interface OwnRun {
  readonly each: TaskAmounts;
  readonly tasks: number;
  readonly end: number;
  /** Of the room of the machine; false: another part of the run has taken all of it. */
  readonly takes: boolean;
}

const NONE: readonly OwnRun[] = [];

/** The runs of one user at a site, as other jobs of the user find them. */
export class OwnRuns {
  /** Some of them keep their machines. */
  readonly keeping: boolean;
  /** Classes that find no room beside them now, until something is given back. */
  readonly refused = new Set<Requirement>();
  private readonly byMachine = new Map<MachineState, OwnRun[]>();

  constructor(runs: readonly RunState[]) {
    this.keeping = runs.some(({ each }) => keepsMachines(each));
    for (const run of runs) {
      const taking = takings(run);
      for (const [part, { machines, tasks, each }] of alikeIn(run).entries())
        for (let i = 0; i < machines.length; i++) {
          const state = machines[i] as MachineState;
          const here = this.byMachine.get(state);
          const takes = taking[part]?.machines.includes(state) ?? false;
          const own = { each, tasks: tasks[i] as number, end: run.end, takes };
          if (here === undefined) this.byMachine.set(state, [own]);
          else here.push(own);
        }
    }
  }

  /** What those that keep the machine take of it and do not use. */
  unused(state: MachineState, kind: number): Besides[] {
    return this.besides(state, ({ each, tasks, takes }) => {
      if (each.onlyUser === null && takes) return 0;
      const all = takes ? amountOf(state.whole, kind) : 0;
      return all - tasks * amountOf(takenOn({ ...each, whole: false }, state), kind);
    });
  }

  /** All that they take: what is free with it others have left. */
  all(state: MachineState, kind: number): Besides[] {
    return this.besides(state, ({ each, tasks, takes }) =>
      takes ? timesTaken(each, tasks) * amountOf(takenOn(each, state), kind) : 0,
    );
  }

  private besides(state: MachineState, amountOfRun: (own: OwnRun) => number): Besides[] {
    return (this.byMachine.get(state) ?? NONE)
      .map((own) => ({ end: own.end, amount: amountOfRun(own) }))
      .filter(({ amount }) => amount !== 0);
  }
}

/** Where the tasks of a job go that may be beside the runs of its user; null: there is no room for all. */
export function placeBeside(
  own: OwnRuns,
  requirement: Requirement,
  { machines, shared }: EligibleMachines,
  least: LeastFree,
  devices: DeviceHolds | null = null,
): Placement | null {
  const most = (state: MachineState): number => ofOneJob(state, tasksBeside(own, requirement, state, least));
  const { spread, further } = requirement;
  const isSpread = spread !== null && (!shared || spread.allAlike.length > 0 || someInSpace(machines));
  if (isSpread || requirement.devices !== null || (devices !== null && further !== null))
    return placeSpread(
      requirement,
      spread ?? ANY_SPREAD,
      machines,
      most,
      (state, kind) => least(state, kind, own.unused(state, kind)),
      devices,
    );
  const filling = new Filling(requirement.tasks);
  for (let i = 0; i < machines.length && filling.left > 0; i++) {
    const state = machines[i] as MachineState;
    filling.put(state, most(state));
  }
  return filling.placement;
}

/** How many tasks fit on the machine beside the runs of their user. */
export function tasksBeside(
  own: OwnRuns,
  requirement: Requirement,
  state: MachineState,
  least: LeastFree,
): number {
  if (requirement.whole && (requirement.onlyUser === null || !isLeftBy(own, state, least))) return 0;
  const asked = askedOn(requirement, state);
  let tasks = Infinity;
  for (let i = 0; i < asked.length && tasks > 0; i += 2) {
    const kind = asked[i] as number;
    const free = Math.max(0, least(state, kind, own.unused(state, kind)));
    tasks = Math.min(tasks, Math.floor(free / (asked[i + 1] as number)));
  }
  return atMost(requirement, state, tasks);
}

/** What is free now is the least: to be asked with what is. */
export const presently =
  (room: Room): LeastFree =>
  ({ offset }, kind, besides) =>
    besides.reduce((sum, { amount }) => sum + amount, room[offset + kind] as number);

/** Whether nobody else has anything of the machine. */
function isLeftBy(own: OwnRuns, state: MachineState, least: LeastFree): boolean {
  if (state.isPart) return false;
  const { whole } = state;
  for (let i = 0; i < whole.length; i += 2) {
    const kind = whole[i] as number;
    if (least(state, kind, own.all(state, kind)) < (whole[i + 1] as number)) return false;
  }
  return true;
}
