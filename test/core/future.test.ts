import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { eachTakes, pairsOf } from '../../src/core/grid/amounts.js';
import type { Requirement } from '../../src/core/grid/requirements.js';
import type {
  EligibleMachines,
  Hold,
  MachineState,
  PoolState,
  RunState,
} from '../../src/core/grid/site-resources.js';
import type { Grid, Job } from '../../src/core/index.js';
import type { Future, Opening } from '../../src/core/resources/future.js';
import { Profile } from '../../src/core/resources/profile.js';
import { Timeline } from '../../src/core/resources/timeline.js';
import { assertUntil, cases, IN_FULL } from '../support/seed.js';
import { job } from './support/drive.js';
import { gridOf } from './support/grids.js';
import { goOn } from './support/world.js';

/** Beyond this nothing changes any more. */
const END = 80;

/** What there is, second by second. */
class Seconds {
  /** By machine, kind and second: what is free, and what is not held for certain. */
  readonly free: number[][][];
  readonly uncertain: number[][][];
  /** By license. */
  readonly copies: Map<number, [free: number[], uncertain: number[]]>;

  constructor(
    readonly machines: readonly MachineState[],
    kinds: number,
    pools: readonly PoolState[],
  ) {
    const rows = () =>
      machines.map(({ offered }) =>
        Array.from({ length: kinds }, (_, kind) => new Array<number>(END).fill(offered[kind] ?? 0)),
      );
    this.free = rows();
    this.uncertain = rows();
    this.copies = new Map(
      pools.map(({ license: { id, copies } }) => [
        id,
        [new Array<number>(END).fill(copies), new Array<number>(END).fill(copies)],
      ]),
    );
  }

  shift({ machines, tasks, each, licenses }: Hold, from: number, to: number, sign: 1 | -1, certain: boolean) {
    const add = (row: number[], amount: number): void => {
      for (let t = from; t < Math.min(to, END); t++) row[t] = (row[t] as number) + sign * amount;
    };
    machines.forEach(({ position }, i) => {
      const taken = each.whole ? allOf(this.machines[position] as MachineState) : pairsOf(each.task);
      for (const [kind, amount] of taken)
        for (const rows of certain ? [this.free, this.uncertain] : [this.free])
          add(rows[position]?.[kind] as number[], each.whole ? amount : (tasks[i] as number) * amount);
    });
    for (const { pool, copies } of licenses)
      for (const row of this.copies.get(pool.license.id)?.slice(0, certain ? 2 : 1) ?? []) add(row, copies);
  }

  openingAt(
    at: number,
    { tasks, task, signature, whole, spread }: Requirement,
    work: number,
    limit: number,
  ): Pick<Opening, 'at' | 'end'> | null {
    const least = (row: number[] | undefined, to: number): number => {
      let found = row?.[at] as number;
      for (let t = at + 1; t < Math.min(to, END); t++) found = Math.min(found, row?.[t] as number);
      return found;
    };
    const tasksOn = (position: number, end: number): number => {
      let most = Infinity;
      if (whole) {
        const { offered } = this.machines[position] as MachineState;
        for (const [kind, amount] of allOf(this.machines[position] as MachineState)) {
          const rows = [this.free, this.uncertain].map((of) => of[position]?.[kind]);
          if (least(rows[0], end) < amount || least(rows[1], at + limit) < amount) return 0;
        }
        for (const [kind, amount] of pairsOf(task))
          most = Math.min(most, Math.floor((offered[kind] ?? 0) / amount));
        return most;
      }
      for (let k = 0; k < task.length; k += 2) {
        const kind = task[k] as number;
        const free = Math.min(
          least(this.free[position]?.[kind], end),
          least(this.uncertain[position]?.[kind], at + limit),
        );
        most = Math.min(most, Math.max(0, Math.floor(free / (task[k + 1] as number))));
      }
      return most;
    };
    // The copies of a job stay those that they are, of whichever pool.
    const licensed = (end: number): boolean =>
      signature.pools.reduce((sum, { amount }) => sum + amount, 0) <=
      [...this.copies.values()].reduce(
        (sum, [free, uncertain]) =>
          sum + Math.max(0, Math.min(least(free, end), least(uncertain, at + limit))),
        0,
      );
    for (const power of [2, 1]) {
      const end = at + work / power;
      const rooms = this.machines
        .filter(({ machine }) => machine.benchmark >= power)
        .map(({ position }) => tasksOn(position, end));
      if (goOn(rooms, tasks, spread?.tasksPerMachine ?? { min: 1, max: null }))
        return licensed(end) ? { at, end } : null;
    }
    return null;
  }
}

const allOf = ({ offered }: MachineState): [kind: number, amount: number][] =>
  offered.flatMap((amount, kind): [number, number][] => (amount > 0 ? [[kind, amount]] : []));

const anyAsk = fc.record({
  tasks: fc.constantFrom(1, 1, 2, 3),
  cpus: fc.integer({ min: 1, max: 4 }),
  memoryMb: fc.constantFrom(0, 0, 1, 3),
  gpus: fc.constantFrom(0, 0, 0, 1, 2),
  copies: fc.constantFrom(0, 0, 0, 1, 2, 3),
  work: fc.integer({ min: 1, max: 6 }).map((half) => 2 * half),
  limit: fc.constantFrom(null, null, 2, 7, 15),
  perMachine: fc.constantFrom(
    ...[null, null, null],
    ...[
      { min: 1, max: 1 },
      { min: 1, max: 2 },
      { min: 2, max: null },
    ],
  ),
  exclusive: fc.constantFrom(null, null, 'MACHINE' as const),
});
const anyHeld = fc.record({
  machine: fc.nat(2),
  cpus: fc.nat(4),
  gpus: fc.constantFrom(0, 0, 1),
  copies: fc.constantFrom(0, 0, 1, 2),
  from: fc.nat(30),
  length: fc.constantFrom(3, 8, 20, Infinity),
  certain: fc.boolean(),
});
const anyStep = fc.oneof(
  { weight: 4, arbitrary: fc.record({ kind: fc.constant('ask' as const), ask: anyAsk, at: fc.nat(60) }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('take' as const), held: anyHeld }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('takeOpening' as const), ask: anyAsk }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('give' as const), pick: fc.nat(9), by: fc.nat(5) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('stop' as const), pick: fc.nat(9) }) },
);
const given = fc.record({
  machines: fc.array(fc.record({ cpus: fc.integer({ min: 2, max: 5 }), benchmark: fc.constantFrom(1, 2) }), {
    minLength: 1,
    maxLength: 3,
  }),
  runs: fc.array(
    fc.record({
      machine: fc.nat(2),
      cpus: fc.integer({ min: 1, max: 3 }),
      end: fc.integer({ min: 1, max: 25 }),
    }),
    { maxLength: 4 },
  ),
  held: fc.array(anyHeld, { maxLength: 2 }),
  steps: fc.array(anyStep, { minLength: 1, maxLength: 14 }),
});
type Given = typeof given extends fc.Arbitrary<infer G> ? G : never;

/** A site of which some is held by runs and by what the grid was told. */
function siteOf({ machines, runs, held }: Given): Grid {
  const shapes = machines.map((shape, i) => ({
    ...{ ...shape, id: i + 1, memoryMb: 4, licenseIds: [1] },
    ...(i < 2 ? { resources: { gpu: 2 } } : {}),
  }));
  const grid = gridOf(shapes, [
    { id: 1, kind: 'cad', copies: 2, siteId: 1 },
    { id: 2, kind: 'cad', copies: 1, siteId: null },
  ]);
  const { resources } = grid.siteEntry(1);
  runs.forEach(({ machine, cpus, end }, i) => {
    const state = resources.machines[machine % machines.length] as MachineState;
    if ((resources.free.room[state.offset] as number) < cpus) return;
    const run = { jobId: 1000 + i, siteId: 1, epoch: 1, pools: [], start: 0, plannedEnd: end };
    const allocations = [{ machineId: state.machine.id, tasks: 1 }];
    grid.restoreRun({ ...run, allocations }, job({ id: run.jobId, cpusPerTask: cpus }));
  });
  held.forEach((one, id) => {
    const { from, length, copies } = one;
    const machineId = (one.machine % machines.length) + 1;
    // Every other holds its machine whole.
    const amounts = id % 2 === 0 ? null : { cpus: one.cpus, gpu: one.gpus };
    grid.setHeld({
      ...{ id, by: 'WINDOW', from, to: from + length, ends: one.certain ? 'LIMIT' : 'EXPECTATION' },
      ...{
        machines: [{ machineId, amounts }],
        pools: copies > 0 ? [{ id: 1 + (id % 2), amount: copies }] : [],
      },
    });
  });
  return grid;
}

describe('the future of a site', () => {
  it('is the same for one who walks, one who keeps a profile, and one who counts second by second', () => {
    const seen = { openings: 0, none: 0, later: 0, given: 0, keptOut: 0 };
    assertUntil(
      fc.property(given, (world) => {
        const grid = siteOf(world);
        const entry = grid.siteEntry(1);
        const { resources } = entry;
        const pools = grid.licensePools('cad');
        const seconds = new Seconds(resources.machines, grid.kinds.size, pools);
        for (const { from, to, certain, ...hold } of pools.flatMap(({ holds }) => holds)) {
          seconds.shift(hold, from, to, -1, certain);
        }
        const timeline = new Timeline(grid, entry, 0);
        const profile = Profile.of(resources, 0);
        for (const one of pools) profile.addPool(one, timeline.claims.planned(one));
        for (const { from, to, certain, ...hold } of resources.holds)
          seconds.shift(hold, from, to, -1, certain);
        for (const run of resources.runs) seconds.shift(run, 0, run.end, -1, false);
        const futures: Future[] = [timeline, profile];
        const runs: RunState[] = [...resources.runs];
        const taken: { hold: Hold; from: number; to: number; certain: boolean }[] = [];
        const take = (hold: Hold, from: number, to: number, certain: boolean): void => {
          for (const future of futures) future.take(hold, from, to, certain);
          seconds.shift(hold, from, to, -1, certain);
          taken.push({ hold, from, to, certain });
        };
        const requirementOf = ({
          tasks,
          cpus,
          memoryMb,
          gpus,
          copies,
          perMachine,
          exclusive,
        }: typeof anyAsk extends fc.Arbitrary<infer A> ? A : never) =>
          grid.requirementOf(
            job({
              ...{ id: 0, tasks, cpusPerTask: cpus, memoryMbPerTask: memoryMb, exclusive },
              tasksPerMachine: perMachine && { ...perMachine, min: Math.min(perMachine.min, tasks) },
              ...{
                licenses: new Array(copies).fill('cad'),
                resourcesPerTask: gpus > 0 ? { gpu: gpus } : null,
              },
            }),
          );
        for (const step of world.steps) {
          if (step.kind === 'take') {
            const { from, length, certain, copies, ...held } = step.held;
            const task = grid.kinds.amounts({ cpus: held.cpus, gpu: held.gpus });
            const state = resources.machines[held.machine % resources.machines.length] as MachineState;
            const hold = {
              machines: [state],
              tasks: [1],
              each: eachTakes(task),
              licenses: copies > 0 ? [{ pool: pools[copies - 1] as PoolState, copies }] : [],
            };
            take(hold, from, from + length, certain);
          } else if (step.kind === 'give') {
            const [gone] = taken.splice(step.pick % Math.max(1, taken.length), 1);
            if (gone === undefined) continue;
            // All of it, or what is left of its time.
            const from = Math.min(gone.from + step.by, gone.to - 1);
            for (const future of futures) future.give(gone.hold, from, gone.to, gone.certain);
            seconds.shift(gone.hold, from, gone.to, 1, gone.certain);
            seen.given++;
          } else if (step.kind === 'stop') {
            const [run] = runs.splice(step.pick % Math.max(1, runs.length), 1);
            if (run === undefined) continue;
            timeline.stop(run);
            profile.give(run, 0, run.end);
            seconds.shift(run, 0, run.end, 1, false);
          } else {
            const { work } = step.ask;
            const limit = step.ask.limit ?? Infinity;
            const requirement = requirementOf(step.ask);
            const eligible: EligibleMachines = resources.eligible(requirement.signature);
            let expected = null;
            for (let at = 0; at < END && expected === null; at++)
              expected = seconds.openingAt(at, requirement, work, limit);
            const [walked, kept] = futures.map((future) =>
              future.earliestOpening(requirement, eligible, work, limit),
            );
            expect(walked).toEqual(kept);
            expect(walked === null ? null : { at: walked?.at, end: walked?.end }).toEqual(expected);
            if (expected === null) seen.none++;
            else if (expected.at > 0) seen.later++;
            else seen.openings++;
            const now = seconds.openingAt(0, requirement, work, limit);
            for (const future of futures) {
              const opening = future.openingNow(requirement, eligible, work, limit);
              expect(opening === null ? null : { at: opening.at, end: opening.end }).toEqual(now);
            }
            if (now === null && seconds.openingAt(0, requirement, work, 0) !== null) seen.keptOut++;
            if (step.kind === 'takeOpening' && walked != null)
              take(
                { ...walked.placement, each: requirement, licenses: walked.pools },
                walked.at,
                walked.end,
                false,
              );
            if (step.kind === 'ask') {
              const rows = seconds.free.flatMap((kinds) => kinds.map((row) => row[step.at] as number));
              for (const future of futures) expect(future.freeAt(step.at)).toEqual(rows);
            }
          }
        }
      }),
      { numRuns: cases(3000) },
      () => {
        if (IN_FULL) for (const count of Object.values(seen)) expect(count).toBeGreaterThan(300);
      },
    );
  });

  it('does not remember the end of a walk that found nothing as the opening of the one before', () => {
    const idle = { cpus: 0, gpus: 0 as const, copies: 0 as const };
    const grid = siteOf({
      machines: [4, 4, 4].map((cpus) => ({ cpus, benchmark: 1 })),
      runs: [{ machine: 0, cpus: 1, end: 1 }],
      held: [{ ...idle, machine: 0, from: 3, length: Infinity, certain: false }],
      steps: [],
    });
    const entry = grid.siteEntry(1);
    const timeline = new Timeline(grid, entry, 0);
    const ask = (shape: Partial<Job>): Opening | null => {
      const requirement = grid.requirementOf(job({ id: 0, ...shape }));
      return timeline.earliestOpening(requirement, entry.resources.eligible(requirement.signature), 2);
    };
    expect(ask({ tasks: 3, cpusPerTask: 4 })?.at).toBe(1);
    expect(ask({ tasks: 3, resourcesPerTask: { gpu: 2 } })).toBeNull();
    timeline.stop(entry.resources.runs[0] as RunState);
    expect(ask({})?.placement.machines[0]?.machine.id).toBe(1);
  });
});
