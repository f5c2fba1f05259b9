/** Machines for jobs that start now, under every local policy, against the rule of shapes (resources.md, "Which machines"). */
import { existsSync, readFileSync } from 'node:fs';
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { SiteEntry } from '../../src/core/grid/grid.js';
import { type Job, whyWaiting } from '../../src/core/index.js';
import { ReasonCode } from '../../src/core/reasons.js';
import type { DeviceRequest, OwnedDevice } from '../../src/core/resources/devices.js';
import { whyNeverFits, whyNowhere } from '../../src/core/resources/eligibility.js';
import { type PlacedTasks, placeShape, type ShapeMachine } from '../../src/core/resources/shape.js';
import { countsOf } from '../../src/core/resources/units.js';
import { assertUntil, cases } from '../support/seed.js';
import { job } from './support/drive.js';
import { gridOf, plan, policyWith } from './support/grids.js';
import {
  anyNamedCase,
  anyShapeCase,
  isCounted,
  LiveSite,
  LOCAL,
  NOT_LIVE,
  type NotLive,
  placedIn,
  type ShapeCase,
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
            got: 'parts' in expected ? placedIn(expected.parts, 'BY_NAME') : null,
          });
      }
      const other: Record<NotLive, number> = {
        'tasks that fill machine after machine (two-level.md)': 1,
      };
      expect({ compared, not }).toEqual({ compared: 24, not: other });
    },
  );

  it.each([
    ['by what they are', 'BY_NAME', anyNamedCase(2)],
    ['by amounts', 'BY_AMOUNT', anyShapeCase(2)],
  ] as const)(
    'goes on the machines of the least key, asking for devices %s, whatever the site and whichever of its devices are taken',
    (_, asking, anyCase) => {
      const seen = { placed: 0, lacking: 0, alone: 0 };
      assertUntil(
        fc.property(anyCase, fc.constantFrom(...LOCAL), (given, local) => {
          if (whyNotLive(given) !== null || (asking === 'BY_AMOUNT' && !isCounted(given))) return;
          const parts = given.parts.map((part) => ({ ...part, where: null }));
          const byRule = placeShape(parts, given.machines, given.user, NONE);
          const expected = 'parts' in byRule ? placedIn(byRule.parts, asking) : null;
          // Places that are promised are found by amounts, and so are those that parts asking by amounts find otherwise.
          const several = given.parts.length > 1;
          if (several && !AT_ONCE.includes(local)) return;
          if (several && expected === null && asking === 'BY_AMOUNT') return;
          // What not even idle machines can serve, because the less picky request is first, is promised nothing.
          if (
            local.kind === 'conservative' &&
            'lacks' in placeShape(parts, idle(given.machines), given.user, NONE)
          )
            return;
          expect(new LiveSite(given, asking).startsUnder(local)).toEqual(expected);
          seen[expected === null ? 'lacking' : 'placed']++;
          const [one, ...others] = given.parts;
          if (expected === null || one?.tasks !== 1 || others.length > 0 || one.devices.length === 0) return;
          seen.alone++;
          const keys = given.machines.flatMap((machine) => {
            const alone = placeShape(parts, [machine], given.user, NONE);
            return 'parts' in alone ? [keyOn(machine, alone.parts[0]?.[0] as PlacedTasks, one.cpus)] : [];
          });
          expect(expected[0]?.[0]?.machine).toBe(keys.sort(byKey)[0]?.at(-1));
        }),
        { numRuns: cases(8000) },
        () => {
          for (const count of Object.values(seen)) expect(count).toBeGreaterThan(20);
        },
      );
    },
  );

  it.each([
    ['by what they are', 'BY_NAME', anyNamedCase(4)],
    ['by amounts', 'BY_AMOUNT', anyShapeCase(4)],
  ] as const)(
    'is placed in one look as one after the other would be, asking for devices %s',
    (_, asking, anyCase) => {
      const seen = { together: 0 };
      assertUntil(
        fc.property(anyCase, fc.constantFrom(...AT_ONCE), (given, local) => {
          if (whyNotLive(given) !== null || (asking === 'BY_AMOUNT' && !isCounted(given))) return;
          const site = new LiveSite(given, asking);
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
              ...{ jobId, siteId: 1, epoch: 1, allocations, pools: [], start: 0, plannedEnd: 100 },
            });
          }
          if (starts.length > 1) seen.together++;
        }),
        { numRuns: cases(6000) },
        () => {
          expect(seen.together).toBeGreaterThan(10);
        },
      );
    },
  );
});

describe('who asks for a device by what it is', () => {
  const device = (id: string, given: Partial<OwnedDevice>): OwnedDevice => ({
    ...{ id, kind: 'gpu', model: 'a100', memoryMb: 400, shares: 1, link: null },
    ...given,
  });
  const any: DeviceRequest = { kind: 'gpu', count: 1, model: null, minMemoryMb: null, share: null };
  const asking = (id: number, given: Partial<DeviceRequest>, more: Partial<Job> = {}): Job =>
    job({ id, devicesPerTask: [{ ...any, ...given }], estimateS: 50, ...more });

  it.each(LOCAL)('under $kind waits for the run that has one, and not for others of the kind', (local) => {
    const devices = [device('small', {}), device('large', { memoryMb: 800 })];
    const grid = gridOf([{ id: 1, cpus: 8, devices, resources: countsOf(devices) }]);
    const policy = policyWith('NONE', local);
    const running = (one: Job, units: string[], plannedEnd: number): void =>
      grid.restoreRun(
        {
          ...{ jobId: one.id, siteId: 1, epoch: 1, allocations: [{ machineId: 1, tasks: 1 }] },
          ...{ pools: [], devices: [units], start: -1, plannedEnd },
        },
        one,
      );
    running(asking(1, {}), ['large'], 100);
    const first = asking(2, { minMemoryMb: 500 });
    grid.placeAtSite(first, 1);
    expect(plan(grid, 0, policy).starts).toEqual([]);
    const reason = whyWaiting(grid, 2, { now: 0, policy });
    expect(reason).toMatchObject({ code: 'RESOURCES_BUSY' });
    expect(reason?.message).toContain('1 gpu (500 MB)');
    const promises = ['flexible', 'easy', 'conservative', 'hybrid'].includes(local.kind);
    const { reservation } = plan(grid, 0, policy);
    expect(reservation && [reservation.jobId, reservation.at]).toEqual(promises ? [2, 100] : null);
    grid.placeAtSite(asking(3, {}), 1);
    const goesPast = promises || local.kind === 'first-fit';
    expect(plan(grid, 0, policy).starts.map(({ jobId }) => jobId)).toEqual(goesPast ? [3] : []);
    grid.endRun(1);
    expect(plan(grid, 10, policy).starts.map(({ jobId }) => jobId)).toEqual([2, 3]);
  });
});

describe('a site with its own scheduler', () => {
  const devices: OwnedDevice[] = [0, 1].map((i) => ({
    ...{ id: `gpu.a100.${i}`, kind: 'gpu', model: 'a100', memoryMb: 0, shares: 1, link: null },
  }));
  const any: DeviceRequest = { kind: 'gpu', count: 1, model: null, minMemoryMb: null, share: null };
  const load = { waitingJobs: 0, waitingS: 0, waitingCpuS: 0, busy: [] };

  it('is asked for whole devices by kind and model, if its agent does that, and for nothing else', () => {
    const grid = gridOf([
      { id: 1, cpus: 8, devices, resources: countsOf(devices) },
      { id: 2, siteId: 2, cpus: 8 },
    ]);
    const own = { id: 1, name: 'own', state: 'UP' as const, localPolicy: null };
    const why = (...requests: Partial<DeviceRequest>[]) => {
      const asking = job({ id: 1, devicesPerTask: requests.map((one) => ({ ...any, ...one })) });
      const requirement = grid.requirementOf(asking);
      const { resources } = grid.sites[0] as SiteEntry;
      return [
        whyNeverFits(requirement, resources.eligible(requirement.signature)),
        whyNowhere(requirement, grid.sites.slice(0, 1)),
      ];
    };
    const never = [ReasonCode.SITE_TAKES_NO_DEVICES, ReasonCode.SITE_TAKES_NO_DEVICES];
    grid.setSite({ ...own, load: { ...load, takesDevices: true } });
    expect(why({ model: 'a100', count: 2 })).toEqual([null, null]);
    expect(why({}, { model: 'a100' })).toEqual([null, null]);
    expect(why({ minMemoryMb: 0 })).toEqual([null, null]);
    expect(why({ count: 3 })).toEqual(['NO_MACHINE_NOW', 'NEVER_FITS_RESOURCES']);
    expect(why({ model: 'v100' })).toEqual(['NO_MACHINE_NOW', 'NEVER_FITS_RESOURCES']);
    expect(why({ minMemoryMb: 1 })).toEqual(never);
    expect(why({}, { share: { parts: 1, of: 2 } })).toEqual(never);
    // An agent of the release before would hand the job over without them.
    grid.setSite({ ...own, load });
    expect(why({ model: 'a100' })).toEqual(never);
    const plain = grid.requirementOf(job({ id: 2 }));
    expect(whyNowhere(plain, grid.sites)).toBeNull();
  });
});

/** Others have places for all jobs before the first starts. */
const AT_ONCE = LOCAL.filter(({ kind }) => kind !== 'conservative' && kind !== 'hybrid');

const NONE = { asked: {}, free: {} };

const idle = (machines: readonly ShapeMachine[]): ShapeMachine[] =>
  machines.map((machine) => ({
    ...{ ...machine, free: machine.total, users: [], onlyUser: null },
    devices: machine.devices.map((device) => ({
      ...device,
      used: { shares: 0, memoryMb: 0, user: null },
    })),
  }));

type Key = [groups: number, idle: number, cpus: number, id: string];

/** Counted by hand: what is compared of a machine that gives the task these devices. */
function keyOn({ id, devices, free }: ShapeMachine, { devices: given }: PlacedTasks, cpus: number): Key {
  const taken = new Set(given.map(({ device }) => device.id));
  const groups = new Set(given.map(({ device: { id: name, link } }) => link ?? `alone ${name}`));
  const idle = devices.filter(({ id: name, used }) => used.shares === 0 && !taken.has(name)).length;
  return [groups.size, idle, free.places === null ? free.cpus - cpus : free.cpus, id];
}

function byKey(a: Key, b: Key): number {
  const i = a.findIndex((value, place) => value !== b[place]);
  return i === -1 ? 0 : (a[i] as number) < (b[i] as number) ? -1 : 1;
}
