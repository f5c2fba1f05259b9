/** How far memory grows when a job is tried again: no site would have room for all tasks of a run that grew beyond. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { NO_RETRIES, type RetryRule } from '../../src/core/runs/retry.js';
import { decideNext, type RetryFacts, type RetryMachine } from '../../src/store/retries.js';
import { SEED } from '../support/seed.js';

const RULE: RetryRule = {
  ...{ causes: ['MEMORY_LIMIT'], exitCodes: null, signals: null, action: 'RETRY' },
  ...{ memoryFactor: 2, memoryMaxMb: null },
};

const machine = (id: number, site: string, cpus: number, memoryMb: number): RetryMachine => ({
  machine: {
    ...{ id, cpus, memoryMb, resources: {}, maxTasks: null, os: 'linux', architecture: 'x64' },
    labels: {},
  },
  site,
});

const next = (job: Partial<RetryFacts['job']>, machines: readonly RetryMachine[]) => {
  const here = { machines: [1], sites: [] };
  const asks: RetryFacts['job'] = {
    ...{ retries: 0, restartable: true, tasks: 1, cpusPerTask: 1, memoryMbPerTask: 0, resourcesPerTask: {} },
    ...{ os: null, architecture: null, machineConstraint: null, image: null },
    retry: { ...NO_RETRIES, maxRetries: 5, rules: [RULE] },
    ...job,
  };
  const end = { cause: 'MEMORY_LIMIT', exitCode: null, signal: null } as const;
  return decideNext({ job: asks, begun: true, before: [], here, machines }, end, 3);
};

test('three tasks grow as far as two of them fit on the larger of two machines', () => {
  const site = [machine(1, 'a', 4, 1000), machine(2, 'a', 2, 1000), machine(3, 'b', 4, 1000)];
  const job = { tasks: 3, cpusPerTask: 2, memoryMbPerTask: 300 };
  expect(next(job, site)).toMatchObject({ action: 'RETRY', memoryMb: 500 });
  expect(next({ ...job, memoryMbPerTask: 500 }, site)).toMatchObject({
    action: 'FAIL',
    because: 'MEMORY_AT_MOST',
  });
  // While a machine is away no site has room: it comes back.
  expect(next(job, site.slice(0, 1))).toMatchObject({ action: 'RETRY', memoryMb: 600 });
});

test(`a site has room for what has grown, and for not a megabyte more where it could not double (seed ${SEED})`, () => {
  const machines = fc.array(
    fc.record({ site: fc.constantFrom('a', 'b'), cpus: fc.integer({ min: 1, max: 8 }), mb: fc.nat(60) }),
    { minLength: 1, maxLength: 6 },
  );
  fc.assert(
    fc.property(
      machines,
      fc.integer({ min: 1, max: 6 }),
      fc.integer({ min: 1, max: 30 }),
      (all, tasks, mb) => {
        const given = all.map(({ site, cpus, mb: has }, i) => machine(i + 1, site, cpus, has));
        const fits = (each: number): boolean =>
          ['a', 'b'].some(
            (site) =>
              all
                .filter((one) => one.site === site)
                .reduce((sum, one) => sum + Math.min(one.cpus, Math.floor(one.mb / each)), 0) >= tasks,
          );
        fc.pre(fits(mb));
        const { action, memoryMb } = next({ tasks, memoryMbPerTask: mb }, given);
        if (action === 'FAIL') expect(fits(mb + 1)).toBe(false);
        else {
          expect(memoryMb).toBeGreaterThan(mb);
          expect(fits(memoryMb)).toBe(true);
          if (memoryMb < 2 * mb) expect(fits(memoryMb + 1)).toBe(false);
        }
      },
    ),
    { seed: SEED },
  );
});
