import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { imageOf, type Machine, plainJob, type Run, type SitePlan } from '../../src/core/index.js';
import { type EventOrder, runSimulation, type World } from '../../src/simulator/engine.js';
import { EventQueue } from '../../src/simulator/event-queue.js';
import { BatsimCsv, JsonLines } from '../../src/simulator/files.js';
import { policyNamed, policyNames } from '../../src/simulator/policies.js';
import { LastTwo } from '../../src/simulator/prediction.js';
import { joined, Processors, type Taken } from '../../src/simulator/processors.js';
import { prepare } from '../../src/simulator/simulate.js';
import { MemorySink, type Sink } from '../../src/simulator/sink.js';
import { countedWorld } from '../../src/simulator/sites.js';
import { quantile, summarize } from '../../src/simulator/statistics.js';
import { parseTrace } from '../../src/simulator/trace.js';
import type { SimJob } from '../../src/simulator/workload.js';
import { simJobs } from '../simulator/support/jobs.js';
import { cases } from '../support/seed.js';

const one = (processors: number): World => countedWorld([{ id: 1, name: 'one', processors }]);

function run(world: World, jobs: readonly SimJob[], policy = 'easy', eventOrder: EventOrder = 'batch') {
  const times = new MemorySink(jobs.length);
  const outcome = runSimulation(world, jobs, { policy: policyNamed(policy, 1), eventOrder }, [times]);
  return { starts: [...times.starts], ends: [...times.ends], outcome, times };
}

describe('the event queue', () => {
  it('gives events by time, kind, then as they came', () => {
    const event = fc.record({ time: fc.integer({ min: 0, max: 5 }), kind: fc.integer({ min: 0, max: 2 }) });
    fc.assert(
      fc.property(fc.array(event, { maxLength: 200 }), (given) => {
        const queue = new EventQueue();
        given.forEach(({ time, kind }, i) => {
          expect(queue.push(time, kind, i)).toBe(i);
        });
        const expected = given
          .map((one, payload) => ({ ...one, payload }))
          .sort((a, b) => a.time - b.time || a.kind - b.kind || a.payload - b.payload);
        const got: unknown[] = [];
        while (queue.pop()) got.push({ time: queue.time, kind: queue.kind, payload: queue.payload });
        expect(got).toEqual(expected);
      }),
    );
  });

  it('lets a stream of events in order wait beside the heap', () => {
    const times = fc.array(fc.integer({ min: 0, max: 9 }), { maxLength: 50 });
    fc.assert(
      fc.property(times, times, fc.boolean(), (stream, others, streamFirst) => {
        const queue = new EventQueue();
        const kinds = streamFirst ? { stream: 0, other: 1 } : { stream: 1, other: 0 };
        stream.sort((a, b) => a - b);
        const comesNext = (i: number): void => {
          if (i < stream.length) queue.pushNext(stream[i] as number, kinds.stream, i);
        };
        others.forEach((time, i) => {
          queue.push(time, kinds.other, i);
        });
        comesNext(0);
        const expected = [
          ...stream.map((time, payload) => ({ time, kind: kinds.stream, payload })),
          ...others.map((time, payload) => ({ time, kind: kinds.other, payload })),
        ].sort((a, b) => a.time - b.time || a.kind - b.kind || a.payload - b.payload);
        for (const event of expected) {
          expect(queue.nextTime).toBe(event.time);
          expect(queue.pop()).toBe(true);
          expect({ time: queue.time, kind: queue.kind, payload: queue.payload }).toEqual(event);
          if (event.kind === kinds.stream) comesNext(event.payload + 1);
        }
        expect([queue.pop(), queue.length, queue.nextTime]).toEqual([false, 0, Infinity]);
        queue.pushNext(1, 0, 0);
        expect(() => queue.pushNext(2, 0, 1)).toThrow('still to come');
      }),
    );
  });
});

describe('the engine', () => {
  it('kills a job at its limit, and lets one without a limit outrun its estimate', () => {
    const jobs = simJobs([
      { runS: 100, estimateS: 60, limitS: 60 },
      { runS: 100, estimateS: 60 },
    ]);
    expect(run(one(2), jobs).ends).toEqual([60, 100]);
  });

  it("predicts from the user's last two runs, never above the request, and is right again when it was wrong", () => {
    const jobs = simJobs([
      { runS: 10, estimateS: 100, limitS: 100 },
      { runS: 30, estimateS: 100, limitS: 100, submittedAt: 10 },
      { runS: 50, estimateS: 100, limitS: 100, submittedAt: 40 },
      { runS: 5, estimateS: 15, limitS: 15, submittedAt: 90 },
      { runS: 10, estimateS: 100, limitS: 100, submittedAt: 95, userId: 2 },
    ]);
    const planned: number[] = [];
    const ends: number[] = [];
    const sink: Sink = {
      started: (_job, _index, { start, plannedEnd }) => planned.push(plannedEnd - start),
      ended: (_job, _index, _run, at) => ends.push(at),
    };
    const options = {
      policy: policyNamed('easy', 1),
      eventOrder: 'batch',
      predictor: new LastTwo(),
    } as const;
    runSimulation(one(1), jobs, options, [sink]);
    expect(planned).toEqual([100, 10, 20, 15, 100]);
    expect(ends).toEqual([10, 40, 90, 95, 105]);
  });

  it('corrects a prediction that is outlasted, so that nothing is backfilled on what does not come free', () => {
    const jobs = simJobs([
      { runS: 10, estimateS: 1000, limitS: 1000 },
      // Predicted 10, runs 200; then a wide one waits, and a long narrow one of a user without history comes.
      { runS: 200, estimateS: 1000, limitS: 1000, submittedAt: 10, cpusPerTask: 3 },
      { runS: 50, estimateS: 50, limitS: 50, submittedAt: 11, cpusPerTask: 4, userId: 2 },
      { runS: 900, estimateS: 900, limitS: 900, submittedAt: 100, userId: 3 },
    ]);
    const seen: number[] = [];
    const planned = ({ reservation }: SitePlan, now: number) => {
      if (reservation?.jobId === 3) seen.push(now, reservation.at);
    };
    const times = new MemorySink(jobs.length);
    const options = {
      policy: policyNamed('easy', 1),
      eventOrder: 'batch',
      predictor: new LastTwo(),
    } as const;
    runSimulation(one(4), jobs, options, [times, { planned }]);
    // Outlasted at 20, 80 and so on: each look has a reservation that lies ahead.
    expect(seen.slice(0, 4)).toEqual([11, 20, 20, 80]);
    for (let i = 0; i < seen.length; i += 2) expect(seen[i + 1]).toBeGreaterThan(seen[i]!);
    expect(times.starts[2]).toBe(210);
    expect(times.starts[3]).toBe(260);
  });

  it('stretches runs by the power of the machine', () => {
    const world = one(1);
    const [machine] = world.machines;
    const fast: World = { ...world, machines: [{ ...(machine as Machine), benchmark: 4 }] };
    expect(run(fast, simJobs([{ runS: 100, estimateS: 200, benchmark: 2 }])).ends).toEqual([50]);
  });

  it('takes machines away and brings them back', () => {
    const world = one(2);
    const [machine] = world.machines as [Machine];
    const changes = [
      { at: 10, machine: { ...machine, available: false } },
      { at: 500, machine },
    ];
    const jobs = simJobs([{ runS: 100 }, { runS: 100, submittedAt: 20 }]);
    // The one that runs goes on, the other waits for the machine.
    expect(run({ ...world, changes }, jobs).starts).toEqual([0, 500]);
  });

  it('starts lost runs over', () => {
    const world = one(1);
    const [machine] = world.machines as [Machine];
    const changes = [
      { at: 10, machine: { ...machine, available: false }, losesRuns: true },
      { at: 50, machine },
    ];
    const { starts, ends, outcome } = run({ ...world, changes }, simJobs([{ runS: 100 }]));
    expect({ starts, ends, ended: outcome.ended }).toEqual({ starts: [50], ends: [150], ended: 1 });
  });

  it('says what nothing could run', () => {
    expect(run(one(2), simJobs([{ runS: 1, cpusPerTask: 3 }, { runS: 1 }])).outcome).toMatchObject({
      ended: 1,
      waiting: 1,
    });
  });

  it('wakes other sites when a copy of a grid-wide license comes free', () => {
    const world = countedWorld([
      { id: 1, name: 'a', processors: 1 },
      { id: 2, name: 'b', processors: 1 },
    ]);
    const licenses = [{ id: 7, kind: 'cad', copies: 1, siteId: null }];
    const machines = world.machines.map((machine) => ({ ...machine, licenseIds: [7] }));
    const jobs = simJobs([
      { runS: 10, licenses: ['cad'], siteId: 1 },
      { runS: 10, licenses: ['cad'], siteId: 2 },
    ]);
    expect(run({ ...world, machines, licenses }, jobs).starts).toEqual([0, 10]);
  });

  it('dispatches what comes to the root', () => {
    const world = countedWorld([
      { id: 1, name: 'a', processors: 1 },
      { id: 2, name: 'b', processors: 1 },
    ]);
    const sites: number[] = [];
    const sink: Sink = { started: (_job, _index, { siteId }) => sites.push(siteId) };
    const jobs = simJobs([
      { runS: 10, siteId: null },
      { runS: 10, siteId: null },
    ]);
    runSimulation(world, jobs, { policy: policyNamed('easy', 1), eventOrder: 'batch' }, [sink]);
    expect(sites.sort()).toEqual([1, 2]);
  });
});

describe('the files', () => {
  it('has Batsim columns, with processors that no two jobs share at a time', () => {
    const folder = mkdtempSync(join(tmpdir(), 'simulator-'));
    try {
      const world = one(4);
      const jobs = simJobs([
        { runS: 10, cpusPerTask: 2 },
        { runS: 4 },
        { runS: 10, cpusPerTask: 1 },
        { runS: 5, estimateS: 3, limitS: 3, cpusPerTask: 2, submittedAt: 5 },
      ]);
      const csv = new BatsimCsv(join(folder, 'jobs.csv'), 'a, "b"', world);
      const lines = new JsonLines(join(folder, 'events.jsonl'));
      runSimulation(world, jobs, { policy: policyNamed('easy', 1), eventOrder: 'batch' }, [csv, lines]);
      csv.close();
      lines.close();
      const [heading, ...rows] = readFileSync(join(folder, 'jobs.csv'), 'utf8').trimEnd().split('\n');
      expect(heading).toBe(
        'job_id,workload_name,profile,submission_time,requested_number_of_resources,requested_time,success,final_state,' +
          'starting_time,execution_time,finish_time,waiting_time,turnaround_time,stretch,allocated_resources,' +
          'consumed_energy,metadata,site',
      );
      expect(rows).toEqual([
        '2,"a, ""b""",run-2,0,1,4,1,COMPLETED_SUCCESSFULLY,0,4,4,0,4,1,2,-1,,one',
        '1,"a, ""b""",run-1,0,2,10,1,COMPLETED_SUCCESSFULLY,0,10,10,0,10,1,0-1,-1,,one',
        '3,"a, ""b""",run-3,0,1,10,1,COMPLETED_SUCCESSFULLY,0,10,10,0,10,1,3,-1,,one',
        '4,"a, ""b""",run-4,5,2,3,0,COMPLETED_WALLTIME_REACHED,10,3,13,5,8,2.666667,0-1,-1,,one',
      ]);
      const events = readFileSync(join(folder, 'events.jsonl'), 'utf8')
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line));
      expect(events.map(({ at, event, job }) => [at, event, job])).toEqual([
        [0, 'START', 1],
        [0, 'START', 2],
        [0, 'START', 3],
        [4, 'END', 2],
        [10, 'END', 1],
        [10, 'END', 3],
        [10, 'START', 4],
        [13, 'END', 4],
      ]);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  it('gives processors out and takes them back, lowest first', () => {
    const world = { ...one(0), machines: [one(12), one(20)].flatMap(({ machines }) => machines) };
    world.machines = world.machines.map((machine, i) => ({ ...machine, id: i + 1 }));
    const runOf = (jobId: number, tasks: readonly number[]): Run => ({
      ...{ jobId, siteId: 1, epoch: 1, pools: [], start: 0, plannedEnd: 1 },
      allocations: tasks.map((count, i) => ({ machineId: i + 1, tasks: count })),
    });
    const wish = fc.record({ tasks: fc.tuple(fc.nat(6), fc.nat(9)), gives: fc.nat(9) });
    fc.assert(
      fc.property(fc.array(wish, { maxLength: 60 }), (wishes) => {
        const processors = new Processors(world);
        const free = [Array.from({ length: 12 }, (_, i) => i), Array.from({ length: 20 }, (_, i) => 12 + i)];
        const live: { run: Run; taken: Taken; numbers: number[][] }[] = [];
        wishes.forEach(({ tasks, gives }, i) => {
          const back = live.splice(gives, 1)[0];
          if (back !== undefined) {
            processors.give(back.run, back.taken);
            back.numbers.forEach((numbers, m) => {
              (free[m] as number[]).push(...numbers);
              (free[m] as number[]).sort((x, y) => x - y);
            });
          }
          const run = runOf(i + 1, tasks);
          if (tasks.some((count, m) => count > (free[m] as number[]).length)) return;
          const taken = processors.take(run, ONE_CPU);
          const numbers = tasks.map((count, m) => (free[m] as number[]).splice(0, count));
          expect(joined(taken)).toEqual(intervalsOf(numbers.flat()));
          live.push({ run, taken, numbers });
        });
      }),
    );
    expect(() => new Processors(world).take(runOf(1, [13]), ONE_CPU)).toThrow('no processor left for job 1');
  });
});

const ONE_CPU = plainJob({ id: 1, submittedAt: 0, estimateS: 1 });

/** First and last of each interval. */
const intervalsOf = (numbers: readonly number[]): number[] =>
  numbers.flatMap((n) => [...(numbers.includes(n - 1) ? [] : [n]), ...(numbers.includes(n + 1) ? [] : [n])]);

describe('the figures', () => {
  it('bounds the slowdown of short jobs, and leaves out jobs that did not end', () => {
    const jobs = simJobs([{ runS: 1 }, { runS: 1 }, { runS: 1, cpusPerTask: 2 }]);
    const { times } = run(one(1), jobs, 'fcfs');
    const summary = summarize(jobs, times, 1);
    expect(summary).toMatchObject({ jobs: 2, makespan: 2, utilization: 1 });
    expect(summary.wait).toEqual({ mean: 0.5, median: 0.5, p95: 0.95, max: 1 });
    expect(summary.slowdown.max).toBe(2);
    expect(summary.boundedSlowdown.max).toBe(1);
  });

  it('interpolates quantiles', () => {
    expect(quantile(new Float64Array([1, 2, 3, 4]), 0.5)).toBe(2.5);
    expect(quantile(new Float64Array([5]), 0.95)).toBe(5);
  });
});

describe('properties', () => {
  const anyJobs = fc.array(
    fc.record({
      submittedAt: fc.integer({ min: 0, max: 50 }),
      runS: fc.integer({ min: 1, max: 30 }),
      more: fc.integer({ min: 0, max: 20 }),
      cpusPerTask: fc.integer({ min: 1, max: 8 }),
    }),
    { minLength: 1, maxLength: 40 },
  );
  const jobsOf = (
    given: { submittedAt: number; runS: number; more: number; cpusPerTask: number }[],
  ): SimJob[] =>
    simJobs(
      [...given]
        .sort((a, b) => a.submittedAt - b.submittedAt)
        .map(({ more, ...job }) => ({ ...job, estimateS: job.runS + more, limitS: job.runS + more })),
    );

  const orders = fc.constantFrom<EventOrder>('batch', 'per-event');
  const everyPolicy = policyNames.map((name) => name.replace('-N', '-3'));

  it.each(everyPolicy)('%s: never over-commits, and everything ends', (policy) => {
    fc.assert(
      fc.property(anyJobs, orders, (given, order) => {
        const jobs = jobsOf(given);
        const { starts, ends } = run(one(8), jobs, policy, order);
        jobs.forEach(({ job, runS }, i) => {
          expect(starts[i]).toBeGreaterThanOrEqual(job.submittedAt);
          expect((ends[i] as number) - (starts[i] as number)).toBe(runS);
          expect(usedAt(jobs, starts, ends, starts[i] as number)).toBeLessThanOrEqual(8);
        });
      }),
    );
  });

  it.each(everyPolicy)('%s: leaves nothing idle that the first of the queue could use', (policy) => {
    fc.assert(
      fc.property(anyJobs, (given) => {
        const jobs = jobsOf(given.map((job) => ({ ...job, more: 0 })));
        const { starts, ends } = run(one(8), jobs, policy);
        // Work is conserved with exact estimates: at every end something starts if all that wait would fit.
        for (const at of ends as number[]) {
          const waiting = jobs.filter(({ job }, i) => job.submittedAt <= at && (starts[i] as number) > at);
          const free = 8 - usedAt(jobs, starts, ends, at);
          const least = Math.max(0, ...waiting.map(({ job }) => job.cpusPerTask));
          if (waiting.length > 0) expect(free).toBeLessThan(least);
        }
      }),
    );
  });

  it('easy never delays the first of the queue beyond what the estimates promised it', () => {
    fc.assert(
      fc.property(anyJobs, (given) => {
        const jobs = jobsOf(given);
        const promised = new Map<number, number>();
        const late: number[] = [];
        observe(one(8), jobs, 'easy', (plan, now) => {
          for (const { jobId } of plan.starts) if (now > (promised.get(jobId) ?? Infinity)) late.push(jobId);
          const { reservation } = plan;
          if (reservation && !promised.has(reservation.jobId))
            promised.set(reservation.jobId, reservation.at);
        });
        expect(late).toEqual([]);
      }),
    );
  });

  it('conservative starts no job later than first promised', () => {
    fc.assert(
      fc.property(anyJobs, orders, (given, order) => {
        const jobs = jobsOf(given);
        const promised = new Map<number, number>();
        const late: number[] = [];
        observe(
          one(8),
          jobs,
          'conservative',
          (plan, now) => {
            for (const { jobId } of plan.starts)
              if (now > (promised.get(jobId) ?? Infinity)) late.push(jobId);
            for (const { jobId, at } of imageOf(plan.memory)?.jobs ?? [])
              if (!promised.has(jobId)) promised.set(jobId, at);
          },
          order,
        );
        expect(late).toEqual([]);
      }),
    );
  });

  it.each(['easy', 'conservative', 'hybrid-2', 'easy-sjbf', 'first-fit', 'sjf'])(
    '%s: on machines and licenses of any kind, everything that can run ends',
    (policy) => {
      const machine = fc.record({
        cpus: fc.integer({ min: 4, max: 6 }),
        memoryMb: fc.integer({ min: 8, max: 12 }),
        benchmark: fc.constantFrom(1, 2),
        down: fc.option(fc.integer({ min: 1, max: 60 })),
      });
      const shape = fc.record({
        submittedAt: fc.integer({ min: 0, max: 40 }),
        runS: fc.integer({ min: 1, max: 20 }),
        outruns: fc.boolean(),
        tasks: fc.constantFrom(1, 1, 2, 3),
        cpusPerTask: fc.integer({ min: 1, max: 2 }),
        memoryMbPerTask: fc.integer({ min: 0, max: 4 }),
        licenses: fc.constantFrom([], [], ['a'], ['b'], ['a', 'b']),
        siteId: fc.constantFrom(1, 2, null),
      });
      const given = fc.record({
        machines: fc.array(machine, { minLength: 4, maxLength: 6 }),
        shapes: fc.array(shape, { maxLength: 30 }),
      });
      fc.assert(
        fc.property(given, orders, ({ machines, shapes }, order) => {
          const base = countedWorld([
            { id: 1, name: 'a', processors: 1 },
            { id: 2, name: 'b', processors: 1 },
          ]);
          const all = machines.map(({ down: _, ...some }, i): Machine => {
            const siteId = 1 + (i % 2);
            return { ...(base.machines[0] as Machine), id: i + 1, siteId, licenseIds: [1, 2], ...some };
          });
          const changes = machines.flatMap(({ down }, i) => {
            if (down === null) return [];
            const machine = all[i] as Machine;
            return [
              { at: down, machine: { ...machine, available: false }, losesRuns: i % 3 === 0 },
              { at: down + 15, machine },
            ];
          });
          const licenses = [
            { id: 1, kind: 'a', copies: 1, siteId: null },
            { id: 2, kind: 'b', copies: 2, siteId: null },
          ];
          const jobs = simJobs(
            [...shapes]
              .sort((a, b) => a.submittedAt - b.submittedAt)
              .map(({ outruns, runS, ...job }) => ({
                ...job,
                runS,
                estimateS: outruns ? runS / 2 : runS * 2,
              })),
          );
          // The grid throws where a run would over-commit.
          const { outcome } = run({ ...base, machines: all, licenses, changes }, jobs, policy, order);
          expect(outcome.waiting).toBe(0);
        }),
      );
    },
  );

  it('one reservation is EASY', () => {
    fc.assert(
      fc.property(anyJobs, orders, (given, order) => {
        const jobs = jobsOf(given);
        expect(run(one(8), jobs, 'hybrid-1', order).starts).toEqual(run(one(8), jobs, 'easy', order).starts);
      }),
    );
  });

  it.each(everyPolicy)('%s: the order of lines of different submission times does not matter', (policy) => {
    fc.assert(
      fc.property(anyJobs, fc.infiniteStream(fc.double({ min: 0, max: 1, noNaN: true })), (given, keys) => {
        const distinct = given.map((job, i) => ({ ...job, submittedAt: 2 * i }));
        const lines = distinct.map(({ submittedAt: submit, runS, more, cpusPerTask }, i) => {
          return `${i + 1} ${submit} -1 ${runS} ${cpusPerTask} -1 -1 ${cpusPerTask} ${runS + more} -1 1 1 1 1 1 1 -1 -1`;
        });
        const shuffled = lines
          .map((line) => ({ line, key: keys.next().value as number }))
          .sort((a, b) => a.key - b.key)
          .map(({ line }) => line);
        const startsOf = (text: string[]) => {
          const { world, workload } = prepare(parseTrace(text.join('\n')), null, {
            processors: 8,
            estimate: 'requested',
            missingEstimate: 'drop',
            overrun: 'kill',
          });
          return run(world, workload.jobs, policy).starts;
        };
        expect(startsOf(shuffled)).toEqual(startsOf(lines));
      }),
      { numRuns: cases(30) },
    );
  });
});

/** CPUs in use just after an instant. */
function usedAt(
  jobs: readonly SimJob[],
  starts: readonly number[],
  ends: readonly number[],
  at: number,
): number {
  return jobs.reduce((sum, { job }, i) => {
    const runs = (starts[i] as number) <= at && (ends[i] as number) > at;
    return sum + (runs ? job.cpusPerTask : 0);
  }, 0);
}

/** Runs the jobs and shows each plan. */
function observe(
  world: World,
  jobs: readonly SimJob[],
  policy: string,
  planned: (plan: SitePlan, now: number) => void,
  eventOrder: EventOrder = 'batch',
): void {
  runSimulation(world, jobs, { policy: policyNamed(policy, 1), eventOrder }, [{ planned }]);
}
