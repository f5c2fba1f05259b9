import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { lostWork, type PreemptibleRun, preemptionFor } from '../../src/core/runs/preemption.js';

const times = { now: 1000, graceS: 30, exemptS: 100 };
const run = (id: string, cpus: number, given: Partial<PreemptibleRun> = {}): PreemptibleRun => ({
  ...{ id, class: 0, restartable: true, startedAt: 0, limitEndsAt: null, checkpointAt: null },
  holds: [{ machine: 'm', amounts: { cpus } }],
  ...given,
});
const job = (tasks: number, cpus: number, startsAt: number | null = null) => {
  return { class: 1, startsAt, tasks, perTask: { cpus } };
};
const free = (cpus: number) => [{ id: 'm', free: { cpus } }];

describe('preemptionFor', () => {
  it('stops one that loses less, where greed would stop two', () => {
    const runs = [run('a', 2), run('b', 2), run('c', 4, { startedAt: 500 })];
    expect(preemptionFor(job(1, 4), free(0), runs, times)).toMatchObject({
      victims: ['c'],
      lostWork: 2000,
      startsAt: 1030,
    });
  });

  it('stops nobody where it fits, where little is gained, and where all would not do', () => {
    expect(preemptionFor(job(1, 4), free(4), [run('a', 4)], times)).toMatchObject({
      because: 'FITS',
      startsAt: 1000,
    });
    expect(preemptionFor(job(1, 4, 1060), free(0), [run('a', 4)], times)).toMatchObject({
      because: 'NO_GAIN',
      startsAt: null,
    });
    expect(preemptionFor(job(1, 4, 1061), free(0), [run('a', 4)], times)).toMatchObject({ victims: ['a'] });
    expect(preemptionFor(job(2, 4), free(0), [run('a', 4)], times)).toMatchObject({ because: 'NOT_ENOUGH' });
  });

  it('never stops in vain, and one of a class only with all lower ones', () => {
    const anyRun = fc.record({
      class: fc.integer({ min: 0, max: 2 }),
      restartable: fc.boolean(),
      startedAt: fc.integer({ min: 0, max: 950 }),
      cpus: fc.integer({ min: 1, max: 8 }),
    });
    fc.assert(
      fc.property(
        fc.array(anyRun, { maxLength: 20 }),
        fc.integer({ min: 1, max: 4 }),
        fc.integer({ min: 1, max: 8 }),
        fc.integer({ min: -3, max: 4 }),
        (made, tasks, cpus, room) => {
          const runs = made.map((one, i) => run(`r${i}`, one.cpus, one));
          const asking = { ...job(tasks, cpus), class: 3 };
          const { victims, lostWork: lost, exempt } = preemptionFor(asking, free(room), runs, times);
          const stopped = runs.filter(({ id }) => victims.includes(id));
          const fits = (gone: readonly PreemptibleRun[]): boolean =>
            Math.floor(gone.reduce((sum, { holds }) => sum + (holds[0]?.amounts.cpus ?? 0), room) / cpus) >=
            tasks;
          expect(stopped.filter(({ id }) => exempt.some((one) => one.id === id))).toEqual([]);
          expect(lost).toBe(stopped.reduce((sum, one) => sum + lostWork(one, times.now), 0));
          if (victims.length === 0) return;
          expect(fits(stopped)).toBe(true);
          // Without any of them that loses something there would be no room.
          for (const one of stopped)
            if (lostWork(one, times.now) > 0)
              expect(fits(stopped.filter((other) => other !== one))).toBe(false);
          const highest = Math.max(...stopped.map((one) => one.class));
          const below = runs.filter((one) => one.class < highest && !exempt.some(({ id }) => id === one.id));
          expect(fits(below)).toBe(false);
        },
      ),
    );
  });
});
