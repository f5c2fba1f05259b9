import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { OwnedDevice } from '../../src/core/resources/devices.js';
import { chooseUnits, countsOf, deviceLabels, unitsOf } from '../../src/core/resources/units.js';
import { cases } from '../support/seed.js';

const device = (id: string, given: Partial<OwnedDevice> = {}): OwnedDevice => ({
  ...{ id, kind: 'gpu', model: 'a100', memoryMb: 80_000, shares: 1, link: null },
  ...given,
});

const choose = (
  devices: readonly OwnedDevice[],
  held: readonly string[],
  further: Record<string, number> | null,
  tasks: number,
) =>
  chooseUnits(
    devices,
    new Map(held.map((unit) => [unit, { memoryMb: 0, user: null }])),
    { further, devices: null },
    tasks,
  );

describe('devices by name', () => {
  it('are counted by shares, and tell constraints their model and memory', () => {
    const devices = [
      device('a', { shares: 4 }),
      device('b', { shares: 4 }),
      device('t', { kind: 'tape', model: null }),
    ];
    expect(countsOf(devices)).toEqual({ gpu: 8, tape: 1 });
    expect(deviceLabels(devices)).toEqual({
      gpu: 'a100',
      'gpu.memory-mb': '20000',
      tape: '',
      'tape.memory-mb': '80000',
    });
  });

  it('are of as few groups as can be, and of shared ones the fullest first', () => {
    const pair = ['a', 'b', 'c', 'd'].map((id) => device(id, { link: id < 'c' ? 'x' : 'y' }));
    expect(choose(pair, ['a'], { gpu: 2 }, 1)).toEqual(['c', 'd']);
    expect(choose(pair, ['a'], { gpu: 1 }, 1)).toEqual(['b']);
    const shared = ['a', 'b'].map((id) => device(id, { shares: 2 }));
    expect(choose(shared, ['b/1'], { gpu: 1 }, 1)).toEqual(['b/0']);
    // Of one device, though one share of the other is taken already; of both where it has to be.
    const cards = ['a', 'b'].map((id) => device(id, { shares: 3 }));
    expect(choose(cards, ['a/0', 'a/1'], { gpu: 2 }, 1)).toEqual(['b/0', 'b/1']);
    expect(choose(cards, ['a/0'], { gpu: 2 }, 2)).toEqual(['a/1', 'a/2', 'b/0', 'b/1']);
    expect(choose(cards, ['a/0', 'a/1', 'b/0', 'b/1'], { gpu: 2 }, 1)).toEqual(['a/2', 'b/2']);
    expect(choose(shared, [], { disk: 1 }, 1)).toEqual([]);
    expect(choose(shared, [], null, 1)).toEqual([]);
  });

  it('are given wherever the counts say that there are enough: each once, none that is held, to each task as many', () => {
    const anyKind = fc.record({
      devices: fc.integer({ min: 1, max: 5 }),
      shares: fc.integer({ min: 1, max: 4 }),
      asked: fc.integer({ min: 0, max: 3 }),
      links: fc.integer({ min: 1, max: 3 }),
    });
    fc.assert(
      fc.property(
        fc.array(anyKind, { minLength: 1, maxLength: 3 }),
        fc.integer({ min: 1, max: 3 }),
        fc.func(fc.boolean()),
        (kinds, tasks, isHeld) => {
          const devices = kinds.flatMap(({ devices: count, shares, links }, k) =>
            Array.from({ length: count }, (_, i) =>
              device(`d${k}-${i}`, { kind: `kind${k}`, shares, link: links === 1 ? null : `l${i % links}` }),
            ),
          );
          const units = devices.flatMap(unitsOf);
          const held = new Set(units.filter((unit) => isHeld(unit)));
          const perTask = Object.fromEntries(kinds.map(({ asked }, k) => [`kind${k}`, asked]));
          const kindOf = (unit: string): string => `kind${unit[1]}`;
          const free = (kind: string): number =>
            units.filter((unit) => kindOf(unit) === kind && !held.has(unit)).length;
          const chosen = choose(devices, [...held], perTask, tasks);
          const enough = Object.entries(perTask).every(([kind, amount]) => free(kind) >= amount * tasks);
          expect(chosen !== null).toBe(enough);
          if (chosen === null) return;
          expect(new Set(chosen).size).toBe(chosen.length);
          for (const unit of chosen) expect(units.includes(unit) && !held.has(unit)).toBe(true);
          const each = chosen.length / tasks;
          for (let task = 0; task < tasks; task++)
            for (const [kind, amount] of Object.entries(perTask))
              expect(
                chosen.slice(task * each, (task + 1) * each).filter((unit) => kindOf(unit) === kind),
              ).toHaveLength(amount);
        },
      ),
      { numRuns: cases(300) },
    );
  });
});
