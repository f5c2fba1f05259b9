/**
 * How the defaults of the policy `diana` were chosen: weights of the costs, and who may leave a congested site, over two workloads at once,
 * jobs of three kinds that come over time and figure 9's short jobs that come at once, on runs of a seed that nothing else here uses; and
 * what the choice is worth on runs of another one.
 */
import { runSimulation } from '../src/simulator/engine.js';
import {
  GROWTH,
  JOBS,
  kindsWorkload,
  SCALE,
  SPECIFIED,
  scaleWorkload,
  type Workload,
  weightsOf,
} from './diana.js';
import { documentWith, type Times, TimesSink } from './grids.js';

export const STUDY = { seed: 201, confirmingSeed: 301, runs: 4 };

const STUDY_RULES = ['stay', 'BOTH_LOWER'] as const;
type StudyRule = (typeof STUDY_RULES)[number];

/** By name; the first is section 5's order as the specification gives it. */
const WEIGHTS: Readonly<Record<string, object>> = {
  '1, 1, 0.25; 1, 0.25, 1; 1, 1, 1': SPECIFIED,
  'all 1, 1, 1': weightsOf([1, 1, 1]),
  'all 1, 1, 2': weightsOf([1, 1, 2]),
  'all 1, 1, 4': weightsOf([1, 1, 4]),
  'all 1, 1, 8': weightsOf([1, 1, 8]),
  '1, 1, 8; 1, 0.25, 8; 1, 1, 8': weightsOf([1, 1, 8], [1, 0.25, 8], [1, 1, 8]),
};

/** Weights and a rule, run by run. */
export interface StudyRow {
  seed: number;
  weights: string;
  rule: StudyRule;
  /** Turnaround of jobs of three kinds, seconds. */
  kindsS: number[];
  /** Makespan over round robin's, at each point of figure 9. */
  growth: number[][];
}

const POINTS = [
  ...SCALE.jobs.map((jobs) => ({ sites: SCALE.sites, jobs })),
  ...GROWTH.sites
    .filter((sites) => sites !== SCALE.sites)
    .map((sites) => ({ sites, jobs: GROWTH.jobsPerSite * sites })),
];

export function dianaStudy(runs = STUDY.runs, shrink = 1): StudyRow[] {
  const few = (jobs: number): number => Math.ceil(jobs / shrink);
  return [STUDY.seed, STUDY.confirmingSeed].flatMap((seed) => {
    const each = <T>(draw: (run: number) => T): T[] => Array.from({ length: runs }, (_, run) => draw(run));
    const kinds = each((run) => kindsWorkload(seed, run, few(JOBS)));
    const growing = POINTS.map(({ sites, jobs }) =>
      each((run) => scaleWorkload(seed, run, sites, few(jobs))),
    );
    const robins = growing.map((point) =>
      point.map((one) => timesUnder({ kind: 'round-robin' }, one).makespanS),
    );
    return Object.entries(WEIGHTS).flatMap(([name, weights]) =>
      STUDY_RULES.map((rule): StudyRow => {
        const document = { kind: 'diana', weights, ...(rule === 'stay' ? STAY : { migration: { rule } }) };
        return {
          ...{ seed, weights: name, rule },
          kindsS: kinds.map((one) => timesUnder(document, one).turnaroundS),
          growth: growing.map((point, i) =>
            point.map((one, run) => timesUnder(document, one).makespanS / (robins[i]?.[run] as number)),
          ),
        };
      }),
    );
  });
}

/** (arrival − service)/arrival is never above 1: no site is ever congested. */
const STAY = { congestionThreshold: 1 };

function timesUnder(dispatch: { kind: string; [field: string]: unknown }, { world, jobs }: Workload): Times {
  const times = new TimesSink(jobs);
  const policy = documentWith(dispatch, { kind: 'fcfs' });
  runSimulation(world, jobs, { policy, eventOrder: 'batch' }, [times]);
  return times.times();
}
