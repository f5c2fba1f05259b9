import * as fc from 'fast-check';
import { expect, it } from 'vitest';
import {
  DEFAULT_POLICY,
  dispatchKindOf,
  Grid,
  type Job,
  type Policy,
  type SitePlan,
  siteCycle,
  whyWaiting,
} from '../../src/core/index.js';
import { BackfillMemory } from '../../src/core/local/backfilling.js';
import type { SitePass } from '../../src/core/local/pass.js';
import { assertUntil, cases, IN_FULL } from '../support/seed.js';
import { job } from './support/drive.js';
import { anyEvents, anyPolicy, anySites, World } from './support/world.js';

const given = fc.record({
  sites: anySites,
  policy: anyPolicy,
  events: anyEvents,
  licensed: fc.boolean(),
  /** How plans are carried out: while the cycle runs, after it, or by a driver from which every other plan is lost. */
  carriedOut: fc.constantFrom('AT_ONCE', 'LATER', 'HALF'),
});

it('a cycle that passes over what an earlier one has examined plans as one that looks at everything', () => {
  let passedOver = 0;
  let reservationStood = 0;
  assertUntil(
    fc.property(given, ({ sites, policy, events, licensed, carriedOut }) => {
      const localOrder = dispatchKindOf(policy.dispatch).localOrder(policy.dispatch);
      const asPlanned: SitePlan[] = [];
      const world = new World(sites, policy, (_, plan) => asPlanned.push(plan), carriedOut === 'AT_ONCE');
      const { grid } = world;
      const cycle = (siteId: number): void => {
        const entry = grid.siteEntry(siteId);
        const { memory, queue } = entry;
        const pass = { entry, now: world.now } as SitePass;
        const walked = policy.local.kind === 'flexible' && localOrder === 'PRIORITY' ? 'PRIORITY' : 'ARRIVAL';
        const sorted = localOrder === 'OWN_PRIORITY' ? null : queue.inOrder(walked);
        if (memory instanceof BackfillMemory && memory.holds(pass, sorted) && memory.jobs < queue.length) {
          if (memory.jobs > 0) passedOver++;
          else reservationStood++;
        }
        const afresh = world.plan(
          siteId,
          world.rebuilt((items) => items),
        );
        if (carriedOut !== 'HALF' || queue.length % 2 === 0) world.cycle(siteId);
        else {
          const plan = world.plan(siteId);
          asPlanned.push(plan);
          world.reserve(siteId, plan.reservation);
          // Promises are kept with the starts or not at all.
          if (plan.memory instanceof BackfillMemory) grid.keepMemory(siteId, plan.memory);
        }
        expect({ ...asPlanned.pop(), memory: null }).toEqual({ ...afresh, memory: null });
      };
      for (const event of events) {
        if (event.kind === 'submit') {
          world.play(licensed ? event : { ...event, shape: { ...event.shape, licenses: [] } });
        } else if (event.kind === 'wait' && event.seconds === 1) {
          // A clock may be set back.
          world.now = Math.max(0, world.now - 5);
        } else if (event.kind !== 'cycle') world.play(event);
        world.dispatch();
        for (const { id } of world.sites) cycle(id);
      }
    }),
    { numRuns: cases(400) },
    () => {
      // That the shortcuts were taken at all: behind new jobs, and behind runs that ended early.
      if (IN_FULL) {
        expect(passedOver).toBeGreaterThan(0);
        expect(reservationStood).toBeGreaterThan(0);
      }
    },
  );
});

it('what somebody asks in between, as if another policy were in force, does not change what is settled', () => {
  const grid = new Grid();
  grid.setSite({ id: 1, name: 'one', state: 'UP', localPolicy: null });
  const machine = { memoryMb: 0, benchmark: 1, os: '', architecture: '', licenseIds: [], available: true };
  grid.setMachine({ ...machine, id: 1, siteId: 1, cpus: 10 });
  const submit = (given: Partial<Job> & { id: number }) => grid.placeAtSite(job(given), 1);
  const policy: Policy = { ...DEFAULT_POLICY, local: { kind: 'easy' } };
  const cycle = () => {
    const plan = siteCycle(grid, 1, { now: 0, policy, policyVersion: 1, maxStarts: 10 });
    grid.setReservation(1, plan.reservation);
    grid.keepMemory(1, plan.memory);
    for (const { jobId, siteId, allocations, pools, plannedDuration: plannedEnd } of plan.starts)
      grid.startRun({ jobId, siteId, epoch: 1, allocations, pools, start: 0, plannedEnd });
    return plan;
  };
  submit({ id: 1, cpusPerTask: 5, estimateS: 100 });
  submit({ id: 2, cpusPerTask: 3, estimateS: 50 });
  submit({ id: 3, cpusPerTask: 10, estimateS: 100 });
  cycle();
  expect(cycle().reservation).toMatchObject({ jobId: 3, at: 100 });
  submit({ id: 4, cpusPerTask: 4, estimateS: 10 });
  cycle();
  // By the site's own priority the shortest goes first: beside its reservation a CPU is free for ever.
  const other: Policy = { ...DEFAULT_POLICY, dispatch: { ...DEFAULT_POLICY.dispatch, mode: 'LS' } };
  expect(whyWaiting(grid, 3, { now: 0, policy: other })?.numbers.reservedJob).toBe(4);
  submit({ id: 5, cpusPerTask: 1, estimateS: 1000 });
  expect(cycle().starts).toEqual([]);
});
