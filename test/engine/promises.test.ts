/**
 * What a site has promised outlives the process that promised it: under conservative backfilling no promise is ever moved back, and
 * no job starts later than it was first told, as long as runs end by their estimates. Several processes take turns; their
 * mirrors are lost, their plans fail before they are carried out, or are carried out without an answer.
 */
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { type Policy, RandomStream } from '../../src/core/index.js';
import { schedulerOf } from '../../src/core/scheduler.js';
import type { JobSelection } from '../../src/store/store.js';
import { MemoryStore } from '../store/memory.js';
import { newJob, T0, vouch } from '../store/world.js';
import { cases } from '../support/seed.js';
import { type Happening, submission, VirtualService } from './virtual.js';
import { testPolicy } from './world.js';

const given = fc.record({
  depth: fc.constantFrom(2, 5, 1000),
  seed: fc.nat(),
  jobs: fc.array(
    fc.record({
      afterS: fc.nat(10),
      estimateS: fc.integer({ min: 1, max: 40 }),
      /** Share of the estimate that it takes, in tenths. */
      takes: fc.constantFrom(3, 7, 10, 10),
      tasks: fc.integer({ min: 1, max: 3 }),
      cpusPerTask: fc.integer({ min: 1, max: 2 }),
      copies: fc.constantFrom(0, 0, 0, 1, 2),
      /** What people do with it, so many seconds after it was submitted. */
      deed: fc.option(fc.record({ afterS: fc.nat(60), what: fc.constantFrom('cancel', 'hold', 'release') }), {
        freq: 2,
      }),
    }),
    { minLength: 10, maxLength: 40, size: 'max' },
  ),
});
type Given = typeof given extends fc.Arbitrary<infer G> ? G : never;

function happenings({ jobs }: Given, userId: number): Happening[] {
  let at = T0;
  const list = jobs.flatMap(({ afterS, estimateS, takes, copies, deed, ...shape }, i): Happening[] => {
    at += afterS;
    const job = newJob({
      ...shape,
      // All fit on the machine that has the license.
      tasks: copies > 0 ? 1 : shape.tasks,
      estimateS: estimateS * 10,
      simulatedRunS: estimateS * takes,
      licenses: new Array<string>(copies).fill('cad'),
    });
    const submitted = { at, happens: submission(userId, job) };
    if (deed === null) return [submitted];
    const selection: JobSelection = { ids: [i + 1], ownedBy: null, limit: 1 };
    const happens: Happening['happens'] = async (store, now) => {
      const { touched } =
        deed.what === 'cancel'
          ? await store.cancel(selection, now, 'CANCELLED_BY_USER')
          : await store[deed.what as 'hold' | 'release'](selection);
      return touched.map(schedulerOf);
    };
    return [submitted, { at: at + deed.afterS, happens }];
  });
  return list.sort((a, b) => a.at - b.at);
}

test('no promise is moved back, whoever made it', async () => {
  await fc.assert(
    fc.asyncProperty(given, async (run) => {
      const policy: Policy = testPolicy({ local: { kind: 'conservative', depth: run.depth } });
      const store = new MemoryStore();
      store.setPolicy({ version: 1, document: policy });
      const userId = store.addUser();
      const siteIds = ['a', 'b'].map((name) => store.addSite(name));
      for (const siteId of siteIds) {
        const cad = store.addLicense('cad', 2, siteId);
        const machine = { siteId, memoryMb: 1000, benchmark: 100, os: 'linux', architecture: 'x64' };
        const ids = [
          store.addMachine({ ...machine, name: 'm1', cpus: 4, licenseIds: [cad] }),
          store.addMachine({ ...machine, name: 'm2', cpus: 2, licenseIds: [] }),
        ];
        await vouch(store, siteId, ids, T0);
      }

      /** By job: what it was promised last. */
      const promised = new Map<number, number>();
      const seen = async (now: number): Promise<void> => {
        for (const siteId of siteIds) {
          const { promises } = await store.promises(siteId);
          for (const { jobId, at } of promises?.jobs ?? []) {
            expect(at).toBeLessThanOrEqual(promised.get(jobId) ?? Infinity);
            promised.set(jobId, at);
          }
        }
        for (const [jobId, at] of promised) {
          const job = store.jobs.get(jobId);
          if (job?.state === 'DISPATCHED') expect(now).toBeLessThanOrEqual(at);
          // It started in time, or somebody has held or cancelled it.
          else promised.delete(jobId);
        }
      };
      const random = new RandomStream(run.seed, 'processes');
      const service = new VirtualService(store, { count: 2, forgets: 0.2, fails: 0.1, random });
      await service.run(happenings(run, userId), seen);

      const left = [...store.jobs.values()].filter(
        ({ endedAt, state }) => endedAt === null && state !== 'HELD',
      );
      expect(left).toEqual([]);
      for (const { jobId, at } of service.starts) expect(at).toBeLessThanOrEqual(promised.get(jobId) ?? at);
    }),
    { numRuns: cases(60) },
  );
});
