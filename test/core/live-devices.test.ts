/** Machines for jobs that start now, under every local policy, against the rule of shapes (resources.md, "Which machines"). */
import { existsSync, readFileSync } from 'node:fs';
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Job } from '../../src/core/index.js';
import { type PlacedTasks, placeShape, type ShapeMachine } from '../../src/core/resources/shape.js';
import { cases } from '../support/seed.js';
import { plan, policyWith } from './support/grids.js';
import {
  anyShapeCase,
  LiveSite,
  LOCAL,
  NOT_LIVE,
  type NotLive,
  type ShapeCase,
  sharesIn,
  whyNotLive,
} from './support/live-shape.js';

const batch = new URL('../../../shared/spec/vectors-batch.json', import.meta.url);

interface Vector {
  rule: string;
  input: ShapeCase;
  expected: { parts: PlacedTasks[][] } | { lacks: string };
}

describe('what starts now', () => {
  it.runIf(existsSync(batch))(
    'is placed as the vectors of the rule say, wherever a live job can say what they do',
    () => {
      const { cases: all } = JSON.parse(readFileSync(batch, 'utf8')) as { cases: Vector[] };
      const vectors = all.filter(({ rule }) => rule === 'place_shape');
      const not = Object.fromEntries(NOT_LIVE.map((why) => [why, 0]));
      let compared = 0;
      for (const [i, { input, expected }] of vectors.entries()) {
        const why = whyNotLive(input);
        if (why !== null) {
          not[why] = (not[why] as number) + 1;
          continue;
        }
        compared++;
        const site = new LiveSite(input);
        for (const local of LOCAL)
          expect({ i, local: local.kind, got: site.startsUnder(local) }).toEqual({
            ...{ i, local: local.kind },
            got: 'parts' in expected ? sharesIn(expected.parts) : null,
          });
      }
      const other: Record<NotLive, number> = {
        'machines shared in time beside others': 7,
        'several requests for one kind': 4,
        'memory of a device that not all have': 1,
        'shares that are no whole number, or not the same on all machines': 1,
        'tasks that fill machine after machine (two-level.md)': 1,
        'users that take no CPU': 1,
        'a device that only its user may share': 0,
        'several shares for one task where devices have parts of them left': 0,
      };
      expect({ compared, not }).toEqual({ compared: 10, not: other });
    },
  );

  it('goes on the machines of the least key, whatever the site and whichever of its devices are taken', () => {
    const seen = { placed: 0, lacking: 0, alone: 0 };
    fc.assert(
      fc.property(anyShapeCase(2), fc.constantFrom(...LOCAL), (given, local) => {
        if (whyNotLive(given) !== null) return;
        const parts = given.parts.map((part) => ({ ...part, where: null }));
        const byRule = placeShape(parts, given.machines, given.user, { asked: {}, free: {} });
        const expected = 'parts' in byRule ? sharesIn(byRule.parts) : null;
        // Places that are promised, and those that parts find otherwise, are found by amounts.
        if (given.parts.length > 1 && (expected === null || !AT_ONCE.includes(local))) return;
        expect(new LiveSite(given).startsUnder(local)).toEqual(expected);
        seen[expected === null ? 'lacking' : 'placed']++;
        const [one, ...others] = given.parts;
        if (expected === null || one?.tasks !== 1 || others.length > 0 || one.devices.length === 0) return;
        seen.alone++;
        const keys = given.machines.flatMap((machine) => {
          const alone = placeShape(parts, [machine], given.user, { asked: {}, free: {} });
          return 'parts' in alone ? [keyOn(machine, alone.parts[0]?.[0] as PlacedTasks, one.cpus)] : [];
        });
        expect(expected[0]?.[0]?.machine).toBe(keys.sort(byKey)[0]?.at(-1));
      }),
      { numRuns: cases(8000) },
    );
    for (const count of Object.values(seen)) expect(count).toBeGreaterThan(20);
  });

  it('is placed in one look as one after the other would be', () => {
    const seen = { together: 0 };
    fc.assert(
      fc.property(anyShapeCase(4), fc.constantFrom(...AT_ONCE), (given, local) => {
        if (whyNotLive(given) !== null) return;
        const site = new LiveSite(given);
        const { jobs } = site;
        const policy = { ...policyWith('NONE'), local };
        const grid = site.grid();
        for (const one of jobs) grid.placeAtSite(one, 1);
        const { starts } = plan(grid, 0, policy);
        const shown = starts.map(({ jobId, allocations }) => ({ jobId, allocations }));
        const single = site.grid();
        for (const { jobId, allocations } of shown) {
          single.placeAtSite(jobs[jobId - 1] as Job, 1);
          expect(plan(single, 0, policy).starts).toMatchObject([{ jobId, allocations }]);
          single.startRun({
            ...{ jobId, siteId: 1, epoch: 1, allocations, licenseIds: [], start: 0, plannedEnd: 100 },
          });
        }
        if (starts.length > 1) seen.together++;
      }),
      { numRuns: cases(6000) },
    );
    expect(seen.together).toBeGreaterThan(30);
  });
});

/** Others have places for all jobs before the first starts. */
const AT_ONCE = LOCAL.filter(({ kind }) => kind !== 'conservative' && kind !== 'hybrid');

type Key = [groups: number, idle: number, cpus: number, id: string];

/** Counted by hand: what is compared of a machine that gives the task these devices. */
function keyOn({ id, devices, free }: ShapeMachine, { devices: given }: PlacedTasks, cpus: number): Key {
  const taken = new Set(given.map(({ device }) => device.id));
  const groups = new Set(given.map(({ device: { id: name, link } }) => link ?? `alone ${name}`));
  const idle = devices.filter(({ id: name, used }) => used.shares === 0 && !taken.has(name)).length;
  return [groups.size, idle, free.cpus - cpus, id];
}

function byKey(a: Key, b: Key): number {
  const i = a.findIndex((value, place) => value !== b[place]);
  return i === -1 ? 0 : (a[i] as number) < (b[i] as number) ? -1 : 1;
}
