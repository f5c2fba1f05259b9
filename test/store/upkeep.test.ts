/** Which runs a hold that preempts stops: resources.md, "Admission", by the rule of jobs.md, "Preemption". */
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type ClassPolicy, classesSchema } from '../../src/core/classes.js';
import type { HoldablePool } from '../../src/store/holds.js';
import { type KeptHold, type KeptMachine, type KeptRun, upkeepOf } from '../../src/store/upkeep.js';

const NOW = 1000;
const machine = (id: number, cpus: number): KeptMachine => ({
  ...{ id, name: `m${id}`, available: true, lost: false, alike: '' },
  has: { cpus, memoryMb: 1000 },
});
const run = (jobId: number, cpus: number, given: Partial<KeptRun> = {}): KeptRun => ({
  ...{ jobId, epoch: 1, machineIds: [1], machineTasks: [1], amounts: { cpus }, alone: false, taken: null },
  ...{ until: null, reservationId: null, since: 0, checkpointAt: null, restartable: true },
  ...{ class: null, preemptionClass: 0, killGraceS: 30, stopping: false, pools: [], elsewhere: false },
  ...given,
});
/** Of so many CPUs of machine 1; of whole machines. */
const hold = (cpus: number | null, given: Partial<KeptHold> = {}): KeptHold => ({
  ...{ id: 7, kind: 'USER', userId: 1, onConflict: 'PREEMPT', idleS: null, recurrence: null, madeAt: 0 },
  ...{ times: [{ id: 1, from: NOW + 30, to: 5000 }], inUse: false, usedAt: null, shortOf: [], pools: [] },
  machines: [{ machineId: 1, amounts: cpus === null ? null : { cpus } }],
  ...given,
});
const stopped = (
  runs: readonly KeptRun[],
  holds: readonly KeptHold[],
  {
    machines = [machine(1, 10)],
    pools = [],
    now = NOW,
    policy = {},
  }: { machines?: KeptMachine[]; pools?: HoldablePool[]; now?: number; policy?: ClassPolicy } = {},
) => upkeepOf({ policy, machines, pools, elsewhere: [], holds, runs }, now).stopped;
const ids = (...args: Parameters<typeof stopped>): number[] => stopped(...args).map(({ jobId }) => jobId);

describe('for a hold that preempts', () => {
  it('those of the lowest classes go, however much they lose', () => {
    const runs = [run(1, 4, { preemptionClass: 1, since: 990 }), run(2, 4)];
    expect(ids(runs, [hold(6)])).toEqual([2]);
    expect(ids(runs, [hold(7)])).toEqual([1, 2]);
  });

  it('classes have the ranks of the policy, scavengers the lowest', () => {
    const classes = classesSchema.parse({ idle: { scavenger: true }, urgent: { rank: 7 } });
    const runs = [run(1, 4, { class: 'urgent' }), run(2, 4, { class: 'idle' }), run(3, 2, { since: 990 })];
    expect(ids(runs, [hold(4)], { policy: { classes } })).toEqual([2]);
    expect(ids(runs, [hold(6)], { policy: { classes } })).toEqual([2, 3]);
    // Under one that has them no more they are as without.
    expect(ids(runs, [hold(2)])).toEqual([3]);
  });

  it('one goes that suffices, where two that lose less each would go by turns', () => {
    const runs = [run(1, 3, { since: 600 }), run(2, 3, { since: 600 }), run(3, 4, { since: 500 })];
    expect(ids(runs, [hold(4)])).toEqual([3]);
  });

  it('nobody goes who is not needed in the end, of many as well', () => {
    const small = Array.from({ length: 13 }, (_, i) => run(i + 2, 1, { since: 700 }));
    // By lost work the small ones come first; then the large one is needed, and they are not.
    const runs = [run(1, 14), ...small];
    expect(ids(runs, [hold(14, {})], { machines: [machine(1, 27)] })).toEqual([1]);
  });

  it('nobody goes in vain: where one has to stay, the others do', () => {
    const stays = run(1, 6, { restartable: false });
    expect(ids([stays, run(2, 4)], [hold(null)])).toEqual([]);
    expect(ids([stays, run(2, 4)], [hold(4)])).toEqual([2]);
    expect(ids([stays, run(2, 4)], [hold(null, { kind: 'MAINTENANCE' })])).toEqual([1, 2]);
  });

  it('each goes by its own grace before it, and the choice stays as it was', () => {
    // Now the first has lost less; when they would be stopped the second has.
    const runs = [run(1, 10, { killGraceS: 30, since: 940 }), run(2, 10, { killGraceS: 5, since: 945 })];
    const look = (now: number) => stopped(runs, [hold(10)], { machines: [machine(1, 20)], now });
    expect(look(NOW - 1)).toEqual([]);
    expect(look(NOW)).toMatchObject([{ jobId: 1, graceS: 30, lostWork: 600, requeue: true }]);
    const later = [{ ...runs[0], since: 900 } as KeptRun, runs[1] as KeptRun];
    const at = (now: number) => ids(later, [hold(10)], { machines: [machine(1, 20)], now });
    expect([at(NOW), at(NOW + 24), at(NOW + 25)]).toEqual([[], [], [2]]);
  });

  it('what was done before the last checkpoint is not lost', () => {
    const runs = [run(1, 4), run(2, 4, { since: 900 })];
    expect(ids(runs, [hold(6)])).toEqual([2]);
    expect(stopped([run(1, 4, { checkpointAt: 990 }), run(2, 4, { since: 900 })], [hold(6)])).toMatchObject([
      { jobId: 1, lostWork: 40 },
    ]);
  });

  it('those go that have what it holds of a pool, of this site', () => {
    const pools = [{ id: 3, kind: 'cad', copies: 4, shared: true }];
    const has = (amount: number) => ({ pools: [{ id: 3, amount }] });
    const runs = [
      run(1, 1, has(1)),
      run(2, 1, { ...has(1), since: 900 }),
      run(3, 1, { ...has(1), elsewhere: true }),
    ];
    const held = (amount: number) => hold(1, { pools: [{ id: 3, kind: 'cad', amount }] });
    expect(ids(runs, [held(1)], { pools })).toEqual([]);
    expect(ids(runs, [held(2)], { pools })).toEqual([2]);
    expect(ids(runs, [held(3)], { pools })).toEqual([1, 2]);
    // Nobody goes in vain where the other site's would be in the way.
    expect(ids(runs, [held(4)], { pools })).toEqual([]);
  });

  it('one that is being stopped, for another hold too, is gone by then', () => {
    const runs = [run(1, 4, { stopping: true }), run(2, 4), run(3, 2)];
    expect(ids(runs, [hold(4)])).toEqual([]);
    const other = hold(4, { id: 8, machines: [{ machineId: 2, amounts: { cpus: 4 } }] });
    const both = run(2, 4, { machineIds: [1, 2], machineTasks: [1, 1] });
    const machines = [machine(1, 4), machine(2, 4)];
    expect(stopped([both], [hold(4), other], { machines })).toMatchObject([{ jobId: 2, holdId: 7 }]);
  });
});

describe('of a few runs', () => {
  const anyRun = fc.record({
    on: fc.constantFrom([1], [2], [3], [1, 2], [2, 3]),
    cpus: fc.integer({ min: 1, max: 4 }),
    preemptionClass: fc.integer({ min: 0, max: 2 }),
    since: fc.integer({ min: 0, max: 900 }),
    restartable: fc.constantFrom(true, true, true, false),
    until: fc.constantFrom(null, null, 1010, 2000),
  });

  it('those go that lose least of all that make the room that can be made, and no class before a lower one', () => {
    fc.assert(
      fc.property(
        fc.array(anyRun, { minLength: 1, maxLength: 9 }),
        fc.array(fc.integer({ min: 1, max: 12 }), { minLength: 3, maxLength: 3 }),
        (made, held) => {
          const runs = made.map(({ on, ...one }, i) =>
            run(i + 1, one.cpus, { ...one, machineIds: on, machineTasks: on.map(() => 1) }),
          );
          const machines = [1, 2, 3].map((id) => machine(id, 12));
          const parts = held.map((cpus, i) => ({ machineId: i + 1, amounts: { cpus } }));
          const gone = new Set(ids(runs, [hold(null, { machines: parts })], { machines }));
          const there = runs.filter(({ until }) => (until ?? Infinity) > NOW + 30);
          const overOn = (id: number, without: ReadonlySet<number>): boolean =>
            there
              .filter(({ machineIds, jobId }) => machineIds.includes(id) && !without.has(jobId))
              .reduce((sum, { amounts }) => sum + (amounts.cpus ?? 0), held[id - 1] as number) > 12;
          const mayGo = there.filter(({ restartable }) => restartable);
          const all = new Set(mayGo.map(({ jobId }) => jobId));
          const wanted = [1, 2, 3].filter((id) => overOn(id, new Set()) && !overOn(id, all));
          const fits = (without: ReadonlySet<number>) => wanted.every((id) => !overOn(id, without));
          const lost = (set: Iterable<number>) =>
            [...set].reduce((sum, id) => {
              const { amounts, since, machineIds } = runs[id - 1] as KeptRun;
              return sum + (amounts.cpus ?? 0) * machineIds.length * (NOW - since);
            }, 0);
          expect([...gone].every((id) => all.has(id))).toBe(true);
          expect(fits(gone)).toBe(true);
          const highest = Math.max(-1, ...[...gone].map((id) => (runs[id - 1] as KeptRun).preemptionClass));
          const classOf = (id: number) => (runs[id - 1] as KeptRun).preemptionClass;
          // No class is touched that the lower ones can do without.
          const below = new Set([...all].filter((id) => classOf(id) < highest));
          if (gone.size > 0) expect(fits(below)).toBe(false);
          // Of one class nothing less would do.
          if (new Set([...all].map(classOf)).size > 1) return;
          const ofAll = [...all];
          for (let set = 0; set < 2 ** ofAll.length; set++) {
            const chosen = new Set(ofAll.filter((_, i) => (set >> i) & 1));
            if (fits(chosen)) expect(lost(chosen)).toBeGreaterThanOrEqual(lost(gone));
          }
        },
      ),
      { numRuns: 300 },
    );
  });
});
