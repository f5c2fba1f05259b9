/**
 * Pasquali et al., section 5: a grid of four sites under the two-level scheduler in its three modes, at four rates of
 * arrival. The draws are the paper's (two-level.md, "The paper's experiment").
 *
 * Each run draws machines of its own ("randomly generated a list of jobs and machines", "for each simulation"), and so are jobs.
 * Decisions, where the paper is silent: Ta is in the simulator's own time unit, of which `UNIT_S` seconds, the same in all figures, were
 * chosen by the paper's own figures (`unitStudy`, on runs of another seed); four kinds of license, which every machine of a site can run (section 3); copies
 * are of the site; a job that needs a license needs one, any kind equally likely; user classes are equally likely; the
 * first machine of the first site is the largest, so that every job can run somewhere. Weights are the default policy's. That of aging
 * was chosen by `agingStudy`, on runs of another seed.
 */
import { DEFAULT_POLICY, type Policy, plainJob, RandomStream, type UserClass } from '../src/core/index.js';
import { runSimulation, type World } from '../src/simulator/engine.js';
import type { Sink } from '../src/simulator/sink.js';
import type { SimJob } from '../src/simulator/workload.js';
import { markdownTable, type Plot, plotLink, type Report } from './report.js';
import { meanAndError } from './santoso.js';

export const MODES = ['MS', 'LS', 'NONE'] as const;
export type Mode = (typeof MODES)[number];
export const INTER_ARRIVALS = [0, 5, 10, 15] as const;
/** Seconds in the paper's unit of Ta. */
export const UNIT_S = 14;
/** Units that are compared, and on which runs. */
export const UNITS = [8.5, 11, 12.5, 14, 15.5, 17] as const;
const UNIT_SEED = 202;
const UNIT_RUNS = 6;
/** Weights of aging that are compared, and on which runs. */
export const AGINGS = [0, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2] as const;
const AGING_SEED = 101;
const AGING_RUNS = 5;
/** Machines of the four sites. */
export const SITES = [120, 60, 30, 15] as const;
const KINDS = ['A', 'B', 'C', 'D'];
const CLASSES: readonly UserClass[] = ['GOLD', 'SILVER', 'REGULAR'];
const RUNS = 20;
const JOBS = 5000;
const CPUS = { least: 4, most: 32 };

/** Of one run, by site and over all; shares and usages are parts of 1. */
export interface Figures {
  /** Work of the jobs that the site got, over all work. */
  share: number[];
  /** Jobs that ended after their deadline, over those with one. */
  missed: number[];
  /** Mean of (wait + run) / run over the jobs without a deadline. */
  slowdown: number[];
  /** CPUs in use over the lesser of those there are and those asked for, over time. */
  processors: number[];
  /** The same of license copies. */
  licenses: number[];
  missedOverall: number;
  slowdownOverall: number;
}

export interface Cell {
  interArrival: number;
  mode: Mode;
  runs: Figures[];
  /** CPU time of the simulation, nearly all of it the schedulers', in ms for a job: measured, so never the same again. */
  costMs: number[];
}

/** How many of the paper's statements hold with a unit of Ta, and the load that it makes at Ta = 5. */
export interface UnitCell {
  unitS: number;
  load: number;
  holds: number;
  of: number;
}

/** What LS misses at Ta = 5 with a weight of aging. */
export interface AgingCell {
  aging: number;
  /** Of each run: jobs that missed their deadline, over those with one. */
  missed: number[];
}

/** All modes at all rates. `onProgress` is told how many of the runs are done. */
export function twoLevel(
  seed: number,
  onProgress: (done: number, all: number) => void = () => {},
  runs = RUNS,
  jobs = JOBS,
  unitS: number = UNIT_S,
): Cell[] {
  const all = INTER_ARRIVALS.length * MODES.length * runs;
  let done = 0;
  return INTER_ARRIVALS.flatMap((interArrival) => {
    const cells = MODES.map((mode): Cell => ({ interArrival, mode, runs: [], costMs: [] }));
    for (let run = 0; run < runs; run++) {
      const world = paperWorld(seed, run);
      const drawn = paperJobs(seed, run, interArrival, jobs, unitS);
      // In turns, so that costs are measured side by side.
      for (const cell of cells) {
        const before = process.cpuUsage();
        cell.runs.push(simulateMode(world, drawn, cell.mode, seed));
        const { user, system } = process.cpuUsage(before);
        cell.costMs.push((user + system) / 1000 / jobs);
        onProgress(++done, all);
      }
    }
    return cells;
  });
}

/** The paper's statements with each unit, on runs of a seed that nothing else uses. Cost, which no unit explains, is not among them. */
export function unitStudy(runs = UNIT_RUNS, jobs = JOBS): UnitCell[] {
  return UNITS.map((unitS) => {
    const told = expectations(twoLevel(UNIT_SEED, () => {}, runs, jobs, unitS)).filter(
      ({ isMeasured }) => !isMeasured,
    );
    const holds = told.filter((one) => one.holds).length;
    return { unitS, load: secondsPerJob(UNIT_SEED, runs) / (5 * unitS), holds, of: told.length };
  });
}

/** LS at Ta = 5 with each weight of aging, on runs of a seed that nothing else uses. */
export function agingStudy(runs = AGING_RUNS, jobs = JOBS): AgingCell[] {
  return AGINGS.map((aging) => ({
    aging,
    missed: Array.from(
      { length: runs },
      (_, run) =>
        simulateMode(
          paperWorld(AGING_SEED, run),
          paperJobs(AGING_SEED, run, 5, jobs),
          'LS',
          AGING_SEED,
          aging,
        ).missedOverall,
    ),
  }));
}

/** The machines and licenses of a run: the same for every mode and rate. */
export function paperWorld(seed: number, run: number): World {
  const random = new RandomStream(seed, `two-level-machines-${run}`);
  const sites = SITES.map((_, i) => ({
    id: i + 1,
    name: `Cluster${i + 1}`,
    state: 'UP' as const,
    localPolicy: null,
  }));
  const licenses = sites.flatMap(({ id: siteId }) =>
    KINDS.map((kind, k) => ({ id: siteId * 10 + k, kind, copies: 0, siteId })),
  );
  const machines = SITES.flatMap((count, i) =>
    Array.from({ length: count }, (_, m) => {
      const siteId = i + 1;
      const largest = i === 0 && m === 0;
      const cpus = random.integer(CPUS.least, CPUS.most);
      return {
        id: siteId * 1000 + m,
        siteId,
        cpus: largest ? CPUS.most : cpus,
        memoryMb: 0,
        benchmark: random.integer(100, 500),
        os: '',
        architecture: '',
        licenseIds: [],
        available: true,
      };
    }),
  );
  for (const license of licenses) {
    const able = machines.filter(({ siteId }) => siteId === license.siteId).length;
    license.copies = Math.round(able * random.uniform(0.5, 0.7));
  }
  return { sites, machines, licenses, changes: [] };
}

/** The jobs of a run: the same for every mode. */
export function paperJobs(
  seed: number,
  run: number,
  interArrival: number,
  count = JOBS,
  unitS: number = UNIT_S,
): SimJob[] {
  const arrivals = new RandomStream(seed, `two-level-arrivals-${run}`);
  const draws = new RandomStream(seed, `two-level-jobs-${run}`);
  let submit = 0;
  return Array.from({ length: count }, (_, i) => {
    if (interArrival > 0) submit += arrivals.exponential(interArrival * unitS);
    const estimate = draws.uniform(8000, 10_000);
    const margin = draws.uniform(1500, 5500);
    const hasDeadline = draws.next() >= 0.3;
    const kind = KINDS[draws.integer(0, KINDS.length - 1)] as string;
    const licenses = draws.next() < 0.3 ? [kind] : [];
    return {
      job: plainJob({
        id: i + 1,
        userClass: CLASSES[draws.integer(0, 2)] as UserClass,
        submittedAt: submit,
        estimateS: estimate,
        benchmark: draws.integer(100, 500),
        deadline: hasDeadline ? submit + estimate + margin : null,
        cpusPerTask: draws.integer(CPUS.least, CPUS.most),
        licenses,
      }),
      sourceId: i + 1,
      runS: estimate,
      limitS: null,
      siteId: null,
    };
  });
}

/** One run of one mode. */
export function simulateMode(
  world: World,
  jobs: readonly SimJob[],
  mode: Mode,
  seed: number,
  aging: number = DEFAULT_POLICY.local.weights.aging,
): Figures {
  const { dispatch, local } = DEFAULT_POLICY;
  const policy: Policy = {
    ...DEFAULT_POLICY,
    seed,
    dispatch: { ...dispatch, mode },
    local: { ...local, weights: { ...local.weights, aging } },
  };
  const start = new Float64Array(jobs.length);
  const end = new Float64Array(jobs.length);
  const siteOf = new Int32Array(jobs.length);
  const sink: Sink = {
    started(_job, index, run) {
      start[index] = run.start;
      siteOf[index] = run.siteId;
    },
    ended(_job, index, _run, at) {
      end[index] = at;
    },
  };
  const { waiting } = runSimulation(world, jobs, { policy, eventOrder: 'batch' }, [sink]);
  if (waiting > 0) throw new Error(`${waiting} jobs could not run`);
  const work = (which: readonly number[]): number =>
    which.reduce((sum, i) => sum + (jobs[i] as SimJob).job.estimateS * (jobs[i] as SimJob).job.benchmark, 0);
  const everyone = jobs.map((_, i) => i);
  const bySite = world.sites.map(({ id }) => everyone.filter((i) => siteOf[i] === id));
  const missed = (which: readonly number[]): number => {
    const dated = which.filter((i) => (jobs[i] as SimJob).job.deadline !== null);
    return ratio(
      dated.filter((i) => (end[i] as number) > ((jobs[i] as SimJob).job.deadline as number)).length,
      dated.length,
    );
  };
  const slowdown = (which: readonly number[]): number => {
    const undated = which.filter((i) => (jobs[i] as SimJob).job.deadline === null);
    const sum = undated.reduce((total, i) => {
      const run = (end[i] as number) - (start[i] as number);
      return total + ((end[i] as number) - (jobs[i] as SimJob).job.submittedAt) / run;
    }, 0);
    return ratio(sum, undated.length);
  };
  const usage = (site: number, available: number, needs: (index: number) => number): number => {
    const which = bySite[site] as number[];
    return usageOver(
      which.map((i) => ({
        submit: (jobs[i] as SimJob).job.submittedAt,
        start: start[i] as number,
        end: end[i] as number,
        needs: needs(i),
      })),
      available,
    );
  };
  const siteSum = <T extends { siteId: number | null }>(
    all: readonly T[],
    site: number,
    of: (one: T) => number,
  ): number =>
    all.filter(({ siteId }) => siteId === world.sites[site]?.id).reduce((sum, one) => sum + of(one), 0);
  const total = work(everyone);
  const indices = world.sites.map((_, i) => i);
  return {
    share: bySite.map((which) => work(which) / total),
    missed: bySite.map(missed),
    slowdown: bySite.map(slowdown),
    processors: indices.map((i) =>
      usage(
        i,
        siteSum(world.machines, i, ({ cpus }) => cpus),
        (index) => (jobs[index] as SimJob).job.cpusPerTask,
      ),
    ),
    licenses: indices.map((i) =>
      usage(
        i,
        siteSum(world.licenses, i, ({ copies }) => copies),
        (index) => (jobs[index] as SimJob).job.licenses.length,
      ),
    ),
    missedOverall: missed(everyone),
    slowdownOverall: slowdown(everyone),
  };
}

const ratio = (part: number, whole: number): number => (whole === 0 ? 0 : part / whole);

/** In use over the lesser of available and asked for (queued and running), both summed over time. */
export function usageOver(
  jobs: readonly { submit: number; start: number; end: number; needs: number }[],
  available: number,
): number {
  const changes = jobs.flatMap(({ submit, start, end, needs }) => [
    { at: submit, asked: needs, active: 0 },
    { at: start, asked: 0, active: needs },
    { at: end, asked: -needs, active: -needs },
  ]);
  changes.sort((a, b) => a.at - b.at);
  let [before, asked, active, used, usable] = [0, 0, 0, 0, 0];
  for (const change of changes) {
    used += active * (change.at - before);
    usable += Math.min(available, asked) * (change.at - before);
    before = change.at;
    asked += change.asked;
    active += change.active;
  }
  return ratio(used, usable);
}

/** What the paper says must come out, and whether it does. */
export interface Expectation {
  claim: string;
  holds: boolean;
  /** Of CPU time, which is never the same again. */
  isMeasured?: boolean;
  /** The numbers that say so. */
  numbers: string;
}

const OPTIMUM = SITES.map((machines) => machines / SITES.reduce((sum, count) => sum + count, 0));
const percent = (part: number): string => (100 * part).toFixed(1);

/** Checks the expectations of two-level.md against the cells. */
export function expectations(cells: readonly Cell[]): Expectation[] {
  const at = (mode: Mode, interArrival: number): Cell =>
    cells.find((cell) => cell.mode === mode && cell.interArrival === interArrival) as Cell;
  const mean = (cell: Cell, of: (figures: Figures) => number): number => meanAndError(cell.runs.map(of)).mean;
  const shares = (cell: Cell): number[] => SITES.map((_, i) => mean(cell, ({ share }) => share[i] as number));
  const off = (cell: Cell): number =>
    shares(cell).reduce((sum, share, i) => sum + Math.abs(share - (OPTIMUM[i] as number)), 0);
  const text = (parts: readonly number[]): string => `${parts.map(percent).join(', ')} %`;
  const missed = MODES.map((mode) => mean(at(mode, 5), ({ missedOverall }) => missedOverall)) as [
    number,
    number,
    number,
  ];
  const cost = (mode: Mode): number => meanAndError(at(mode, 5).costMs).mean;
  const slow = MODES.map((mode) =>
    SITES.map((_, i) => mean(at(mode, 5), ({ slowdown }) => slowdown[i] as number)),
  );
  return [
    ...MODES.map((mode) => ({
      claim: `${mode}: at Ta = 0 the sites get equal work (each between 23 and 27 %)`,
      holds: shares(at(mode, 0)).every((share) => share > 0.23 && share < 0.27),
      numbers: text(shares(at(mode, 0))),
    })),
    ...MODES.map((mode) => ({
      claim: `${mode}: Ta = 5 comes nearest to the optimum (${text(OPTIMUM)})`,
      holds: INTER_ARRIVALS.every((interArrival) => off(at(mode, 5)) <= off(at(mode, interArrival))),
      numbers: `${text(shares(at(mode, 5)))}; sum of differences at ${INTER_ARRIVALS.map((interArrival) => `Ta = ${interArrival}: ${percent(off(at(mode, interArrival)))}`).join(', ')}`,
    })),
    {
      claim: 'MS and LS miss fewer deadlines than NONE (Ta = 5)',
      holds: missed[0] < missed[2] && missed[1] < missed[2],
      numbers: MODES.map((mode, i) => `${mode} ${percent(missed[i] as number)} %`).join(', '),
    },
    {
      claim: 'MS misses about as few as LS (within 5 % of the jobs, Ta = 5)',
      holds: missed[0] - missed[1] < 0.05,
      numbers: `${percent(missed[0])} and ${percent(missed[1])} %`,
    },
    {
      claim: 'MS costs less than LS (CPU time, Ta = 5)',
      holds: cost('MS') < cost('LS'),
      isMeasured: true,
      numbers: MODES.map((mode) => `${mode} ${cost(mode).toFixed(3)} ms a job`).join(', '),
    },
    ...MODES.map((mode, m) => ({
      claim: `${mode}: slowdown is above 1 and grows as the site shrinks (Ta = 5)`,
      holds: (slow[m] as number[]).every(
        (value, i, all) => value > 1 && (i === 0 || value >= (all[i - 1] as number)),
      ),
      numbers: (slow[m] as number[]).map((value) => value.toFixed(2)).join(', '),
    })),
    ...(['processors', 'licenses'] as const).flatMap((what) =>
      MODES.map((mode) => {
        const used = SITES.map((_, i) => mean(at(mode, 5), (figures) => figures[what][i] as number));
        return {
          claim: `${mode}: use of ${what} falls as the site shrinks (Ta = 5)`,
          holds: used.every((value, i) => i === 0 || value <= (used[i - 1] as number)),
          numbers: text(used),
        };
      }),
    ),
  ];
}

/** What all CPUs of the machines, used without a gap, need for a job: the mean over the runs. */
function secondsPerJob(seed: number, runs: number): number {
  const each = Array.from({ length: runs }, (_, run) => {
    const jobs = paperJobs(seed, run, 0);
    const power = paperWorld(seed, run).machines.reduce(
      (sum, { cpus, benchmark }) => sum + cpus * benchmark,
      0,
    );
    return (
      jobs.reduce((sum, { job }) => sum + job.cpusPerTask * job.estimateS * job.benchmark, 0) /
      jobs.length /
      power
    );
  });
  return meanAndError(each).mean;
}

/** How loaded the grid is with the unit of Ta, and why it is this one. */
function loads(seed: number, runs: number, units: readonly UnitCell[]): string {
  const seconds = secondsPerJob(seed, runs);
  const of = (interArrival: number): string => (seconds / (interArrival * UNIT_S)).toFixed(2);
  return [
    `All CPUs of the machines drawn here, used without a gap, finish a job in ${seconds.toFixed(1)} s on average. With Ta in seconds the load`,
    `at Ta = 5 would be ${(seconds / 5).toFixed(1)}, which no scheduler can serve; the paper gives Ta in a time unit of its simulator, but neither the unit nor`,
    "the load. So the unit is fitted to the paper's statements about its figures, on other runs than those of the page",
    `(${UNIT_RUNS} runs of seed ${UNIT_SEED}; all statements below except the one about CPU time):`,
    '',
    markdownTable(
      ['unit, s', 'load at Ta = 5', 'statements that hold'],
      units.map(({ unitS, load, holds, of: all }) => [String(unitS), load.toFixed(2), `${holds} of ${all}`]),
    ),
    '',
    `One unit is ${UNIT_S} s, in all tables and figures: loads of ${of(5)}, ${of(10)} and ${of(15)} at Ta = 5, 10 and 15.`,
  ].join('\n');
}

/** The page: shares at every rate, the other figures at Ta = 5, and what was expected. */
export function twoLevelReport(
  seed: number,
  cells: readonly Cell[],
  agings: readonly AgingCell[],
  units: readonly UnitCell[],
): Report {
  const expected = expectations(cells);
  const held = expected.filter(({ holds }) => holds).length;
  const verdict = `${held} of ${expected.length} expectations hold`;
  const runs = cells[0]?.runs.length ?? 0;
  const pair = (cell: Cell, of: (figures: Figures) => number, scale: number): string => {
    const { mean, error } = meanAndError(cell.runs.map(of));
    return `${(scale * mean).toFixed(scale === 1 ? 2 : 1)} ± ${(scale * error).toFixed(scale === 1 ? 2 : 1)}`;
  };
  const heading = SITES.map(siteLabel);
  const bySite = (cell: Cell, of: (figures: Figures) => number[], scale: number): string[] =>
    SITES.map((_, i) => pair(cell, (figures) => of(figures)[i] as number, scale));
  const atFive = cells.filter(({ interArrival }) => interArrival === 5);
  const share = sharePlot(cells);
  const figures = FIGURES.map((figure) => ({ ...figure, plot: figurePlot(atFive, figure) }));
  const text = [
    '# Pasquali et al., section 5: two levels of scheduling over four sites',
    '',
    `\`switchyard experiment two-level --seed ${seed}\` made this page: ${runs} runs for each row, each run with machines and jobs of its own,`,
    'the same for every mode. Values are means over the runs ± the standard error. The paper shows its results as figures only, so the',
    'comparison is with its statements about them. Where it gives no values: four kinds of license, with copies for each site that all',
    'its machines can use; user classes equally likely; the weights of the default policy.',
    '',
    loads(seed, runs, units),
    '',
    '## The weight of aging',
    '',
    `Deadlines that LS misses at Ta = 5, on ${agings[0]?.missed.length} runs of seed ${AGING_SEED}, which is not used elsewhere:`,
    '',
    markdownTable(
      ['weight of aging, a second', 'missed, %'],
      agings.map(({ aging, missed }) => {
        const { mean, error } = meanAndError(missed);
        return [String(aging), `${(100 * mean).toFixed(1)} ± ${(100 * error).toFixed(1)}`];
      }),
    ),
    '',
    `The default policy has ${DEFAULT_POLICY.local.weights.aging}. With a large weight, aging outweighs all other terms, and LS is first come, first served.`,
    '',
    '## Share of the work, %',
    '',
    markdownTable(
      ['Ta', 'mode', ...heading],
      cells.map((cell) => [String(cell.interArrival), cell.mode, ...bySite(cell, ({ share }) => share, 100)]),
    ),
    '',
    plotLink(share),
    '',
    ...figures.flatMap(({ title, of, scale, plot }) => [
      `## ${title}, Ta = 5`,
      '',
      markdownTable(
        ['mode', ...heading],
        atFive.map((cell) => [cell.mode, ...bySite(cell, of, scale)]),
      ),
      '',
      plotLink(plot),
      '',
    ]),
    '## What the paper expects',
    '',
    'Cost is the CPU time of the whole simulation for a job, measured mode after mode on the same jobs; it differs each time',
    'this page is made.',
    '',
    markdownTable(
      ['expectation', 'holds', 'numbers'],
      expected.map(({ claim, holds, numbers }) => [claim, holds ? 'yes' : 'no', numbers]),
    ),
    '',
    verdict,
    '',
  ].join('\n');
  const plots = [share, ...figures.map(({ plot }) => plot)];
  return {
    name: 'two-level',
    text,
    data: { seed, cells, agings, units, expectations: expected },
    verdict,
    plots,
  };
}

const siteLabel = (machines: number): string => `${machines} machines`;

/** A table of the page but the first, and its plot: by site, at one rate. */
interface SiteFigure {
  /** Of the plot's file. */
  name: string;
  title: string;
  /** Title of the axis. */
  axis: string;
  of: (figures: Figures) => number[];
  scale: 1 | 100;
}

const FIGURES: readonly SiteFigure[] = [
  {
    name: 'missed',
    title: 'Deadlines missed, %',
    axis: 'jobs that missed their deadline (%)',
    of: ({ missed }) => missed,
    scale: 100,
  },
  {
    name: 'slowdown',
    title: 'Slowdown of jobs without deadline',
    axis: 'mean of (wait + run) / run',
    of: ({ slowdown }) => slowdown,
    scale: 1,
  },
  {
    name: 'processors',
    title: 'Processors in use, % of the lesser of available and asked for',
    axis: 'processors in use (%)',
    of: ({ processors }) => processors,
    scale: 100,
  },
  {
    name: 'licenses',
    title: 'Licenses in use, % of the lesser of available and asked for',
    axis: 'license copies in use (%)',
    of: ({ licenses }) => licenses,
    scale: 100,
  },
];

/** Each site's share by rate. */
function sharePlot(cells: readonly Cell[]): Plot {
  return {
    name: 'two-level-share',
    chart: {
      title: 'Share of the work',
      subtitle: [`The sites have ${OPTIMUM.map(percent).join(', ')} % of the machines.`],
      kind: 'line',
      x: { title: `mean time between arrivals Ta (units of ${UNIT_S} s)` },
      y: { title: 'share of the work (%)' },
      series: MODES.flatMap((mode) =>
        SITES.map((machines, i) => ({
          name: siteLabel(machines),
          panel: mode,
          points: cells
            .filter((cell) => cell.mode === mode)
            .map((cell) => ({ x: cell.interArrival, ...siteMean(cell, ({ share }) => share, i, 100) })),
        })),
      ),
      width: 280,
      height: 260,
      columns: MODES.length,
    },
  };
}

function figurePlot(cells: readonly Cell[], { name, title, axis, of, scale }: SiteFigure): Plot {
  return {
    name: `two-level-${name}`,
    chart: {
      title: `${title}, Ta = 5`,
      subtitle: ['Mean and standard error.'],
      kind: 'column',
      x: { title: 'site' },
      y: { title: axis },
      series: cells.map((cell) => ({
        name: cell.mode,
        points: SITES.map((machines, i) => ({ x: siteLabel(machines), ...siteMean(cell, of, i, scale) })),
      })),
    },
  };
}

function siteMean(
  { runs }: Cell,
  of: (figures: Figures) => number[],
  site: number,
  scale: number,
): { y: number; error: number } {
  const { mean, error } = meanAndError(runs.map((figures) => of(figures)[site] as number));
  return { y: scale * mean, error: scale * error };
}
