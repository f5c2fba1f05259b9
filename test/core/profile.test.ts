import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { holdingOf, Profile } from '../../src/core/resources/profile.js';
import { Requirements } from '../../src/core/resources/requirements.js';
import type { Able, MachineState } from '../../src/core/resources/site-resources.js';
import { job } from './support/drive.js';

const machineOf = (cpus: number, i: number): MachineState => ({
  machine: {
    id: i + 1,
    siteId: 1,
    cpus,
    memoryMb: 0,
    benchmark: 1,
    os: '',
    architecture: '',
    licenseIds: [],
    available: true,
  },
  maxTasks: null,
  runs: 0,
  usedCpus: 0,
  usedMemoryMb: 0,
  freeCpus: cpus,
  freeMemoryMb: 0,
  futureCpus: 0,
  futureMemoryMb: 0,
  leftCpus: 0,
  leftMemoryMb: 0,
  alone: null,
});

describe('the profile with promises', () => {
  it('finds the earliest opening that counting second by second finds, as promises come and go', () => {
    const step = fc.record({
      tasks: fc.constantFrom(1, 1, 2),
      cpus: fc.integer({ min: 1, max: 5 }),
      work: fc.integer({ min: 1, max: 9 }),
      drop: fc.option(fc.nat(20)),
      from: fc.nat(30),
    });
    const given = fc.record({
      machines: fc.array(fc.integer({ min: 3, max: 6 }), { minLength: 1, maxLength: 3 }),
      steps: fc.array(step, { maxLength: 25 }),
    });
    fc.assert(
      fc.property(given, ({ machines, steps }) => {
        const states = machines.map(machineOf);
        const able: Able = { shared: false, machines: states, pools: [], mostCpus: 6, mostMemoryMb: 0 };
        const profile = new Profile(states, [], [], 0);
        const seconds = 25 * 9 + 10;
        const free = states.map(({ freeCpus }) => new Array<number>(seconds).fill(freeCpus));
        const promised: (() => void)[] = [];
        for (const { tasks, cpus, work, drop, from } of steps) {
          const requirement = new Requirements().enter(job({ id: 1, tasks, cpusPerTask: cpus }));
          const room = (at: number): number[] =>
            free.map((row) => Math.floor(Math.max(0, Math.min(...row.slice(at, at + work))) / cpus));
          let at = 0;
          const enough = () => room(at).reduce((sum, count) => sum + count, 0) >= tasks;
          while (at < seconds - 9 && !enough()) at++;
          const found = profile.earliest(requirement, able, work);
          expect(found?.at ?? null).toBe(enough() ? at : null);
          if (found === null) continue;
          const holding = holdingOf(requirement, found.placement, found.pools);
          // The same machines later: the first second from which all of them have the room.
          const taken = (i: number): number => cpus * (found.placement.tasks[i] as number);
          const fits = (second: number): boolean =>
            found.placement.machines.every((state, i) => {
              const row = free[states.indexOf(state)] as number[];
              return row.slice(second, second + work).every((left) => left >= taken(i));
            });
          let later = from;
          while (!fits(later)) later++;
          expect(profile.earliestFor(holding, from, work)).toBe(later);
          const shift = (sign: number): void => {
            found.placement.machines.forEach((state, i) => {
              const row = free[states.indexOf(state)] as number[];
              const count = found.placement.tasks[i] as number;
              for (let t = found.at; t < found.end; t++) row[t] = (row[t] as number) + sign * count * cpus;
            });
          };
          profile.take(holding, found.at, found.end);
          shift(-1);
          promised.push(() => {
            profile.give(holding, found.at, found.end);
            shift(1);
          });
          if (drop !== null) promised.splice(drop % promised.length, 1)[0]?.();
        }
      }),
      { numRuns: 300 },
    );
  });
});
