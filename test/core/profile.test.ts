import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { pairsOf } from '../../src/core/grid/amounts.js';
import type { Requirement } from '../../src/core/grid/requirements.js';
import { columnOf } from '../../src/core/resources/column.js';
import type { Opening } from '../../src/core/resources/future.js';
import { holdOf } from '../../src/core/resources/placement.js';
import { type OwnPlace, Profile } from '../../src/core/resources/profile.js';
import { assertUntil, cases, IN_FULL } from '../support/seed.js';
import { job } from './support/drive.js';
import { gridOf } from './support/grids.js';

interface Promised extends OwnPlace {
  opening: Opening;
  requirement: Requirement;
  work: number;
}

const step = fc.record({
  tasks: fc.constantFrom(1, 1, 2),
  cpus: fc.integer({ min: 1, max: 5 }),
  memoryMb: fc.constantFrom(0, 0, 1, 3),
  gpus: fc.constantFrom(0, 0, 0, 1, 2),
  licensed: fc.constantFrom(false, false, false, true),
  work: fc.integer({ min: 1, max: 9 }),
  drop: fc.option(fc.nat(20)),
  from: fc.nat(30),
  round: fc.boolean(),
});
const given = fc.record({
  machines: fc.array(fc.integer({ min: 3, max: 6 }), { minLength: 1, maxLength: 3 }),
  steps: fc.array(step, { maxLength: 25 }),
  licensed: fc.boolean(),
});

describe('the profile with promises', () => {
  it('finds the earliest opening that counting second by second finds, as promises come, move up and go', () => {
    let moved = 0;
    let passedOver = 0;
    assertUntil(
      fc.property(given, ({ machines, steps, licensed }) => {
        const shapes = machines.map((cpus, i) => ({
          ...{ id: i + 1, cpus, memoryMb: 4, licenseIds: [1] },
          // The last machine has none.
          ...(i < 2 ? { resources: { gpu: 2 } } : {}),
        }));
        const grid = gridOf(shapes, [{ id: 1, kind: 'cad', copies: 2, siteId: 1 }]);
        const { resources } = grid.siteEntry(1);
        const pools = resources.eligible({
          key: 'cad',
          os: null,
          architecture: null,
          constraint: null,
          pools: [{ kind: 'cad', amount: 1 }],
          avoids: null,
          parts: null,
        }).pools[0];
        const profile = new Profile(resources, 0);
        for (const pool of pools?.of ?? []) profile.addPool(pool, columnOf(pool.license.copies));
        const seconds = 25 * 9 + 10;
        const rows = (amounts: readonly number[]): number[][] =>
          amounts.map((amount) => new Array<number>(seconds).fill(amount));
        const copies = rows([2]);
        /** By kind of resource and machine. */
        const free = Array.from({ length: grid.kinds.size }, (_, kind) =>
          rows(resources.machines.map(({ offered }) => offered[kind] ?? 0)),
        );
        const least = (row: number[] | undefined, at: number, length: number): number =>
          Math.min(...(row as number[]).slice(at, at + length));
        const shift = ({ hold, at, end }: OwnPlace, sign: 1 | -1): void => {
          const add = (row: number[] | undefined, amount: number): void => {
            for (let t = at; t < end; t++) (row as number[])[t] = ((row as number[])[t] as number) + amount;
          };
          hold.machines.forEach(({ position }, i) => {
            for (const [kind, amount] of pairsOf(hold.each.task))
              add(free[kind]?.[position], sign * (hold.tasks[i] as number) * amount);
          });
          for (const _ of hold.licenses) add(copies[0], sign);
        };
        const counted = ({ tasks, task, signature }: Requirement, work: number): number => {
          const roomAt = (at: number): number =>
            machines.reduce((sum, _, i) => {
              const byKind = pairsOf(task).map(([kind, amount]) => least(free[kind]?.[i], at, work) / amount);
              return sum + Math.floor(Math.max(0, Math.min(...byKind)));
            }, 0);
          const enough = (at: number): boolean =>
            roomAt(at) >= tasks && (signature.pools.length === 0 || least(copies[0], at, work) >= 1);
          let at = 0;
          while (at < seconds - 9 && !enough(at)) at++;
          return enough(at) ? at : Infinity;
        };
        const promised: Promised[] = [];
        steps.forEach(({ tasks, cpus, memoryMb, gpus, work, drop, from, round, ...one }, i) => {
          const licenses = licensed && one.licensed ? ['cad'] : [];
          const asked = job({
            ...{ id: i, tasks, cpusPerTask: cpus, memoryMbPerTask: memoryMb, licenses },
            resourcesPerTask: gpus > 0 ? { gpu: gpus } : null,
          });
          const requirement = grid.requirementOf(asked);
          const eligible = resources.eligible(requirement.signature);
          const opening = profile.earliestOpening(requirement, eligible, work);
          expect(opening?.at ?? Infinity).toBe(counted(requirement, work));
          expect(profile.openingNow(requirement, eligible, work)?.at ?? null).toBe(
            opening?.at === 0 ? 0 : null,
          );
          if (opening === null) return;
          const { at, end } = opening;
          const hold = holdOf(requirement, opening.placement, opening.pools);
          // The same machines later: the first second from which all of them have the room.
          const fits = (second: number): boolean =>
            hold.machines.every(({ position }, m) =>
              pairsOf(hold.each.task).every(
                ([kind, amount]) =>
                  least(free[kind]?.[position], second, work) >= (hold.tasks[m] as number) * amount,
              ),
            ) &&
            (hold.licenses.length === 0 || least(copies[0], second, work) >= 1);
          let later = from;
          while (!fits(later)) later++;
          expect(profile.earliestFor(hold, from, work)).toBe(later);
          const place = { hold, at, end };
          profile.take(hold, at, end);
          shift(place, -1);
          promised.push({ ...place, opening, requirement, work });
          if (drop !== null) {
            const [gone] = promised.splice(drop % promised.length, 1) as [Promised];
            profile.give(gone.hold, gone.at, gone.end);
            shift(gone, 1);
          }
          if (!round) return;
          // In a round all are looked at, and what room was given back until then and in it is remembered for the next.
          profile.advance(0);
          profile.beginRound();
          promised.forEach((old, j) => {
            const able = resources.eligible(old.requirement.signature);
            shift(old, 1);
            const expected = counted(old.requirement, old.work);
            shift(old, -1);
            const mayMove = able.pools.length > 0 || profile.mayHaveOpened(able, old.work, old);
            const better = mayMove ? profile.earlier(old.requirement, able, old.work, Infinity, old) : null;
            if (!mayMove) passedOver++;
            expect(better?.at ?? old.at).toBe(expected);
            if (better === null) return;
            moved++;
            const place = {
              hold: holdOf(old.requirement, better.placement, better.pools),
              at: better.at,
              end: better.end,
            };
            profile.move(old, place);
            shift(old, 1);
            shift(place, -1);
            promised[j] = { ...old, ...place, opening: better };
          });
          profile.endRound();
        });
      }),
      { numRuns: cases(500) },
      () => {
        if (IN_FULL) expect(moved).toBeGreaterThan(20);
        if (IN_FULL) expect(passedOver).toBeGreaterThan(100);
      },
    );
  });
});
