/** Jobs that wait for others in the simulator: by fields of traces, by executions of WfCommons, and at random. */
import { expect, it } from 'vitest';
import { DEFAULT_TWO_LEVEL } from '../../src/core/dispatch/two-level/two-level.js';
import { type Policy, plainJob, RandomStream } from '../../src/core/index.js';
import { runSimulation, type World } from '../../src/simulator/engine.js';
import { policyNamed } from '../../src/simulator/policies.js';
import { prepare } from '../../src/simulator/simulate.js';
import { ResultSink } from '../../src/simulator/sink.js';
import { countedWorld } from '../../src/simulator/sites.js';
import { parseTrace } from '../../src/simulator/trace.js';
import {
  criticalPathS,
  executionOf,
  jobsOf,
  placeInWorkflow,
  type WorkflowTask,
} from '../../src/simulator/workflow.js';
import type { SimJob, SimWait } from '../../src/simulator/workload.js';
import { seeds } from '../support/seed.js';

const oneSite = (processors: number): World => countedWorld([{ id: 1, name: 'machine', processors }]);

function run(world: World, jobs: readonly SimJob[]) {
  const sink = new ResultSink(jobs.length);
  const outcome = runSimulation(world, jobs, { policy: policyNamed('easy', 1), eventOrder: 'batch' }, [sink]);
  return { outcome, starts: [...sink.starts], ends: [...sink.ends] };
}

const CLEAN = {
  processors: 1,
  estimate: 'requested',
  missingEstimate: 'drop',
  overrun: 'kill',
  dependencies: true,
} as const;

it('a job of a trace comes when the one before it has ended and its user has thought, however long that took', () => {
  const line = (id: number, submit: number, runS: number, before: number, thinkS: number) =>
    `${id} ${submit} -1 ${runS} 1 -1 -1 1 ${runS} -1 1 1 1 1 1 1 ${before} ${thinkS}`;
  const trace = parseTrace(
    [
      line(1, 0, 100, -1, -1),
      line(2, 10, 50, -1, -1),
      line(3, 20, 10, 1, 5),
      // Recorded long after the end of the job before it.
      line(4, 9000, 10, 3, 30),
      // Not in the workload, and itself.
      line(5, 9100, 10, 77, 5),
      line(6, 9200, 10, 6, 5),
    ].join('\n'),
  );
  const { world, workload } = prepare(trace, null, CLEAN);
  expect(workload.dependencies).toEqual({ jobs: 2, unknown: 2 });
  const { outcome, starts } = run(world, workload.jobs);
  expect(outcome.jobs.map(({ job }) => job.submittedAt)).toEqual([0, 10, 105, 190, 9100, 9200]);
  expect(starts).toEqual([0, 100, 150, 190, 9100, 9200]);
  // Not asked for, they come as the trace says.
  const { workload: plain } = prepare(trace, null, { ...CLEAN, dependencies: false });
  expect(plain.dependencies).toBe(null);
  expect(run(world, plain.jobs).starts).toEqual([0, 100, 150, 9000, 9100, 9200]);
});

/** a, then b and c, then d; b reads 20 MB of a. */
const recent = {
  name: 'diamond',
  schemaVersion: '1.5',
  workflow: {
    specification: {
      tasks: [
        // Told at one end only, and not in order.
        { name: 'd', id: 'd', parents: ['b', 'c'], children: [] },
        { name: 'a', id: 'a', parents: [], children: ['c'], outputFiles: ['a.out'] },
        { name: 'b', id: 'b', parents: [], children: ['d'], inputFiles: ['a.out', 'given'] },
        { name: 'c', id: 'c', parents: ['a'], children: ['d'] },
      ],
      files: [
        { id: 'a.out', sizeInBytes: 20_000_000 },
        { id: 'given', sizeInBytes: 5 },
      ],
    },
    execution: {
      makespanInSeconds: 1,
      tasks: ['a', 'b', 'c', 'd'].map((id, i) => ({ id, runtimeInSeconds: 10 * (i + 1), coreCount: 1 })),
    },
  },
};
const former = {
  name: 'diamond',
  schemaVersion: '1.4',
  workflow: {
    makespanInSeconds: 1,
    tasks: [
      {
        name: 'a',
        id: 'ID1',
        runtimeInSeconds: 10,
        files: [{ link: 'output', name: 'a.out', sizeInBytes: 2e7 }],
      },
      {
        ...{ name: 'b', id: 'ID2', runtimeInSeconds: 20, parents: ['a'], cores: 1 },
        files: [{ link: 'input', name: 'a.out', sizeInBytes: 2e7 }],
      },
      { name: 'c', id: 'ID3', runtimeInSeconds: 30, parents: ['a'] },
      { name: 'd', id: 'ID4', runtimeInSeconds: 40, parents: ['b', 'c'] },
    ],
  },
};

it.each([
  ['1.5', recent],
  ['1.4', former],
])(
  'an execution of WfCommons (WfFormat %s) takes its critical path, or longer where room is short',
  (_, document) => {
    const tasks = executionOf(document);
    expect(criticalPathS(tasks)).toBe(80);
    const jobs = jobsOf(tasks, { siteId: 1, memory: false, tasksOfCpus: false });
    expect(Math.max(...run(oneSite(2), jobs).ends)).toBe(80);
    expect(Math.max(...run(oneSite(1), jobs).ends)).toBe(100);
    const reads = tasks.flatMap((task) => task.reads);
    expect(reads).toEqual([{ from: 0, sizeMb: 20 }]);
  },
);

it('says what is wrong with an execution, and where', () => {
  const { specification, execution } = recent.workflow;
  const with_ = (workflow: object) => () => executionOf({ workflow });
  expect(() => executionOf([])).toThrow(
    'the file: [] is not accepted; accepted: an object, in an execution of WfCommons (WfFormat 1.4 or later)',
  );
  expect(with_({ specification })).toThrow('workflow.execution: missing; accepted: an object, in an');
  expect(with_({ tasks: [{ name: 'a', runtimeInSeconds: 'long' }] })).toThrow(
    'workflow.tasks[0].runtimeInSeconds: "long" is not accepted; accepted: a number, in an',
  );
  expect(with_({ specification, execution: { tasks: execution.tasks.slice(1) } })).toThrow(
    /the run of task a is missing/,
  );
  const tasks = [{ id: 'a', name: 'a', parents: ['b'], children: [] }];
  expect(with_({ specification: { tasks }, execution })).toThrow(/task a names b, which is not one/);
  const circle = [...tasks, { id: 'b', name: 'b', parents: ['a'], children: [] }];
  expect(with_({ specification: { tasks: circle }, execution })).toThrow(/in a cycle/);
});

it('where the policy goes by ranks, the longest way to the end of a workflow goes first', () => {
  const after = (...of: number[]) =>
    of.map((member) => ({ members: [member], condition: 'OK', minDelayS: 0 }) as const);
  const task = (runS: number, ...of: number[]): WorkflowTask => ({
    ...{ runS, estimateS: runS, cpus: 1, memoryMb: 0, onUnmet: 'CANCEL', reads: [] },
    needs: of.length === 0 ? [] : [{ expression: 'ALL', of: after(...of) }],
  });
  // Four short jobs were submitted before the one that a long one waits for.
  const tasks = [task(10), ...[1, 2, 3, 4].map(() => task(10, 0)), task(10, 0), task(100, 5)];
  const world = oneSite(2);
  const jobs = (siteId: number | null = null) => {
    const made = jobsOf(tasks, { siteId, memory: false, tasksOfCpus: false });
    placeInWorkflow(made, tasks, world);
    return made;
  };
  expect(jobs().map(({ job }) => job.workflow?.rankS)).toEqual([120, 10, 10, 10, 10, 110, 100]);
  expect(jobs().map(({ job }) => job.workflow?.place)).toEqual([1, 4, 5, 6, 7, 2, 3]);
  const endOf = (name: string, { workflows, dispatch }: Partial<Policy> = {}) => {
    const sink = new ResultSink(tasks.length);
    const named = policyNamed(name, 1);
    const policy = { ...named, dispatch: dispatch ?? named.dispatch, ...(workflows && { workflows }) };
    runSimulation(world, jobs(), { policy, eventOrder: 'batch' }, [sink]);
    return Math.max(...sink.ends);
  };
  expect(endOf('easy')).toBe(140);
  const locals = ['fcfs', 'easy', 'first-fit', 'conservative', 'hybrid-2', 'sjf', 'flexible'];
  const dispatches = [
    'two-level',
    'queues-fcfs-0',
    'queues-sjf-0',
    'job-ratio',
    'diana',
    'grid-tree',
    'round-robin',
  ];
  for (const dispatch of dispatches)
    for (const local of locals) {
      const end = endOf(`${dispatch}+${local}`, { workflows: 'RANK' });
      // Where the shortest goes first, or a start was promised before the long one was ready, that goes before ranks.
      const later =
        local === 'conservative' || local === 'sjf' || local === 'flexible' || dispatch === 'queues-sjf-0';
      expect([dispatch, local, endOf(`${dispatch}+${local}`)]).toEqual([dispatch, local, 140]);
      expect([dispatch, local, later ? Math.max(end, 130) : end]).toEqual([
        dispatch,
        local,
        later ? 130 : 120,
      ]);
    }
  // Sites give priorities of their own, in which the shortest goes first.
  const ownPriorities = { ...DEFAULT_TWO_LEVEL, mode: 'LS' } as const;
  expect(endOf('flexible', { workflows: 'RANK', dispatch: ownPriorities })).toBe(130);
});

it('brings what a job reads from where it was written', () => {
  const two = countedWorld([
    { id: 1, name: 'a', processors: 1 },
    { id: 2, name: 'b', processors: 1 },
  ]);
  const at = (id: number, siteId: number, wait?: SimWait): SimJob => ({
    ...{ job: plainJob({ id, submittedAt: 0, estimateS: 10 }), sourceId: id, runS: 10, limitS: null, siteId },
    ...(wait && { wait }),
  });
  const needs = [{ expression: 'ALL', of: [{ members: [1], condition: 'OK', minDelayS: 0 }] }] as const;
  const reads = [{ job: 1, sizeMb: 50 }];
  const wait: SimWait = { needs, onUnmet: 'CANCEL', since: 0, reads };
  // Over a link that nobody has measured: 10 MB/s.
  expect(run(two, [at(1, 1), at(2, 2, wait), at(3, 1, wait)]).ends).toEqual([10, 25, 20]);
});

const CONDITIONS = ['START', 'OK', 'OK', 'NOT_OK', 'ANY'] as const;

it.each(seeds(5))(
  'random graphs of 2 000 jobs (seed %i): none starts before what it needs, none waits for what cannot come',
  (seed) => {
    const random = new RandomStream(seed, 'graphs of needs');
    const pick = (n: number): number => random.integer(0, n - 1);
    const shapes = Array.from({ length: 2_000 }, (_, i) => ({
      since: pick(500),
      runS: 1 + pick(100),
      fails: pick(5) === 0,
      onUnmet: pick(3) === 0 ? ('RUN' as const) : ('CANCEL' as const),
      needs: Array.from({ length: i === 0 ? 0 : pick(3) }, () => ({
        expression: pick(2) === 0 ? ('ANY' as const) : ('ALL' as const),
        of: Array.from({ length: 1 + pick(3) }, () => ({
          members: [Math.max(1, i - pick(30))],
          condition: CONDITIONS[pick(5)] as (typeof CONDITIONS)[number],
          minDelayS: pick(4) === 0 ? pick(50) : 0,
        })),
      })),
    }));
    const jobs = shapes.map(({ since, runS, fails, onUnmet, needs }, i): SimJob => {
      const job = plainJob({ id: i + 1, submittedAt: 0, estimateS: runS, cpusPerTask: 1 + pick(3) });
      const wait = { needs, onUnmet, since };
      return { job, sourceId: i + 1, runS, limitS: null, siteId: 1, fails, wait };
    });
    const { outcome, starts, ends } = run(oneSite(8), jobs);
    expect(outcome.waiting).toBe(0);
    const ran = starts.map((at) => !Number.isNaN(at));
    shapes.forEach(({ since, onUnmet, needs }, i) => {
      const met = needs.map(({ expression, of }) => {
        const holds = of.map(({ members, condition, minDelayS }) => {
          const on = (members[0] as number) - 1;
          const well = ran[on] && !shapes[on]?.fails;
          const so = condition === 'START' ? ran[on] : condition === 'ANY' || well === (condition === 'OK');
          if (!so) return Infinity;
          // One that was canceled ended when it was: not before what it needed could not hold.
          const at = condition === 'START' ? starts[on] : ran[on] ? ends[on] : 0;
          return (at as number) + minDelayS;
        });
        return expression === 'ALL' ? Math.max(...holds) : Math.min(...holds);
      });
      const from = Math.max(since, ...met);
      expect([i, ran[i]]).toEqual([i, from < Infinity || onUnmet === 'RUN']);
      if (ran[i] && from < Infinity) expect(starts[i]).toBeGreaterThanOrEqual(from);
    });
  },
);
