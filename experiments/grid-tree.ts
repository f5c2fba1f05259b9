/**
 * AlZoubi and Dandamudi, section 4: peers that flood requests against one grid tree, four and sixteen of them, in the paper's
 * four experiments and three metrics.
 */
import {
  DEADLINES,
  type Deadline,
  type Outcome,
  type Setting,
  SYSTEMS,
  type System,
  simulateModel,
} from './grid-tree-model.js';
import {
  type Claim,
  commandOf,
  markdownTable,
  type Plot,
  plotLink,
  plusMinus,
  type Report,
  verdictOf,
} from './report.js';
import { meanAndError } from './santoso.js';

const RUNS = 20;
const GB = 1000;
const SMALL = GB;
const LARGE = 100 * GB;
const HOUR = 3600;
const RATES = [
  { name: '1 hour', s: HOUR },
  { name: '1 day', s: 24 * HOUR },
  { name: '1 week', s: 168 * HOUR },
] as const;
/** Numbers of jobs (the paper's 10 000 take minutes for each cell of 100 GB under P2P), and the one of experiments 3 and 4. */
export const FULL = { jobs: [520, 1040, 1560, 3000], middle: 1560 } as const;
export type Scale = { jobs: readonly number[]; middle: number };

interface Measure {
  mean: number;
  error: number;
}

export interface Cell {
  experiment: 1 | 2 | 3 | 4;
  setting: Setting;
  trtS: Measure;
  awtS: Measure;
  aetS: Measure;
  /** Share of jobs that ran within their own net. */
  withinNet: number;
}

/** The cells of all experiments. */
export function gridTreeSettings({
  jobs,
  middle,
}: Scale): { experiment: Cell['experiment']; setting: Setting }[] {
  const cells: { experiment: Cell['experiment']; setting: Setting }[] = [];
  const add = (experiment: Cell['experiment'], setting: Setting): void => {
    cells.push({ experiment, setting });
  };
  const systems = SYSTEMS.flatMap((system) =>
    // Trees ask for no deadline.
    DEADLINES.slice(0, system === 'P2P' ? 2 : 1).map((deadline) => ({ system, deadline })),
  );
  for (const { system, deadline } of systems) {
    const plain = { rescheduling: true, changes: false, deadline };
    for (const count of jobs) {
      for (const inputMb of [SMALL, LARGE])
        add(1, { ...plain, system, jobs: count, inputMb, rate: 'ONE_AFTER_ANOTHER' });
      add(2, { ...plain, system, jobs: count, inputMb: LARGE, rate: 'DRAWN' });
      if (system === 'tree')
        add(2, { ...plain, system, jobs: count, inputMb: LARGE, rate: 'DRAWN', rescheduling: false });
    }
    for (const { s } of RATES) add(3, { ...plain, system, jobs: middle, inputMb: LARGE, rate: s });
    add(4, { ...plain, system, jobs: middle, inputMb: LARGE, rate: 'DRAWN' });
    add(4, { ...plain, system, jobs: middle, inputMb: LARGE, rate: 'DRAWN', changes: true });
  }
  return cells;
}

/**
 * Simulates all cells; a setting that two experiments have is simulated once. `simulate` may do what it is asked for side by side.
 */
export async function gridTree(
  seed: number,
  onProgress: (done: number, all: number) => void = () => {},
  runs = RUNS,
  scale: Scale = FULL,
  simulate: (setting: Setting, seed: number, run: number) => Outcome | Promise<Outcome> = simulateModel,
): Promise<Cell[]> {
  const cells = gridTreeSettings(scale);
  const settings = new Map(cells.map(({ setting }) => [JSON.stringify(setting), setting]));
  let done = 0;
  const known = new Map(
    await Promise.all(
      Array.from(settings, async ([key, setting]) => {
        const simulated = Array.from({ length: runs }, async (_, run) => {
          const outcome = await simulate(setting, seed, run);
          onProgress(++done, settings.size * runs);
          return outcome;
        });
        return [key, await Promise.all(simulated)] as const;
      }),
    ),
  );
  return cells.map(({ experiment, setting }) => {
    const outcomes = known.get(JSON.stringify(setting)) as Outcome[];
    const of = (value: (outcome: Outcome) => number): Measure => meanAndError(outcomes.map(value));
    return {
      experiment,
      setting,
      trtS: of(({ trtS }) => trtS),
      awtS: of(({ awtS }) => awtS),
      aetS: of(({ aetS }) => aetS),
      withinNet: of(({ near }) => near[0] + near[1]).mean,
    };
  });
}

type Metric = 'trtS' | 'awtS' | 'aetS';

const find = (cells: readonly Cell[], experiment: number, match: Partial<Setting>): Cell | undefined =>
  cells.find(
    (cell) =>
      cell.experiment === experiment &&
      Object.entries(match).every(([name, value]) => cell.setting[name as keyof Setting] === value),
  );

/** What the paper leads one to expect, of peers that meet this deadline. "Far below": by a fifth at least. */
export function gridTreeClaims(cells: readonly Cell[], deadline: Deadline): Claim[] {
  const FAR = 0.8;
  const trees = cells.filter(({ setting }) => setting.system !== 'P2P' && setting.rescheduling);
  const peersOf = ({ experiment, setting }: Cell): Cell =>
    find(cells, experiment, { ...setting, system: 'P2P', deadline }) as Cell;
  const claim = (text: string, of: readonly Cell[], holds: (cell: Cell) => boolean): Claim => ({
    claim: text,
    holds: of.filter(holds).length,
    of: of.length,
  });
  const is = (system: System) => trees.filter(({ setting }) => setting.system === system);
  const ofSize = (inputMb: number) =>
    trees.filter(({ experiment, setting }) => experiment === 1 && setting.inputMb === inputMb);
  const isFarBelow = (metric: Metric) => (cell: Cell) => cell[metric].mean < FAR * peersOf(cell)[metric].mean;
  const isBelow = (metric: Metric) => (cell: Cell) => cell[metric].mean < peersOf(cell)[metric].mean;
  const off = cells.filter(({ setting }) => !setting.rescheduling);
  const worse = (cell: Cell): number =>
    cell.awtS.mean / (find(cells, 2, { ...cell.setting, rescheduling: true }) as Cell).awtS.mean;
  const awtAt = (cell: Cell, rate: number): number =>
    (find(cells, 3, { ...cell.setting, changes: false, rate }) as Cell).awtS.mean;
  const slope = (cell: Cell): number => awtAt(cell, RATES[2].s) / awtAt(cell, RATES[0].s);
  const few = (experiment: number) =>
    trees.filter((cell) => cell.experiment === experiment && cell.setting.changes);
  return [
    claim('AWT of tree systems is far below P2P’s', trees, isFarBelow('awtS')),
    claim('AWT of tree systems is below P2P’s', trees, isBelow('awtS')),
    claim('TRT of tree systems is far below P2P’s', trees, isFarBelow('trtS')),
    claim('TRT of tree systems is below P2P’s', trees, isBelow('trtS')),
    claim('AWT of hybrid-16T is above hybrid-4T’s', is('hybrid-16T'), (cell) => {
      const four = find(cells, cell.experiment, { ...cell.setting, system: 'hybrid-4T' }) as Cell;
      return cell.awtS.mean > four.awtS.mean;
    }),
    claim('AET for 1 GB is within a fifth of P2P’s', ofSize(SMALL), (cell) => {
      const ratio = cell.aetS.mean / peersOf(cell).aetS.mean;
      return ratio > FAR && ratio < 1 / FAR;
    }),
    claim('AET for 100 GB is below P2P’s', ofSize(LARGE), isBelow('aetS')),
    claim('without butterfly and load-balance AWT is higher', off, (cell) => worse(cell) > 1),
    claim(
      'the more so the more jobs',
      off.slice(1),
      (cell) => worse(cell) > worse(off[off.indexOf(cell) - 1] as Cell),
    ),
    claim(
      'AWT falls more with slower arrivals in trees than in P2P',
      few(4),
      (cell) => slope(cell) < slope(peersOf(cell)),
    ),
    claim('AWT with changing resources is within a fifth of AWT without', few(4), (cell) => {
      const ratio = cell.awtS.mean / (find(cells, 4, { ...cell.setting, changes: false }) as Cell).awtS.mean;
      return ratio > FAR && ratio < 1 / FAR;
    }),
  ];
}

const METRICS: readonly { metric: Metric; name: string }[] = [
  { metric: 'awtS', name: 'AWT' },
  { metric: 'trtS', name: 'TRT' },
  { metric: 'aetS', name: 'AET' },
];

/** What the numbers of the published page show. */
const findings = ([byJob]: readonly Claim[], [, byServer]: readonly Claim[]): string[] => [
  `**The deadline matters most.** Under the job’s own deadline AWT of trees is far below P2P’s in ${byJob?.holds} of ${byJob?.of} cells: no server of the two slowest`,
  'of the seven kinds can meet it, so peers never use two sevenths of the servers, and jobs queue on the fast ones. The deadline of the',
  `offered server is met by any idle server, so it excludes none, and AWT of trees is below P2P’s in only ${byServer?.holds} of ${byServer?.of} cells.`,
  '',
  'These expectations fail under both readings:',
  '',
  '* At one job a week from each workstation no job waits under P2P, so AWT cannot fall more in trees. In one tree some jobs wait even then:',
  '  a leaf has one bag for all its servers, so a job may be sent to a near site that asks for work although its servers of the required kind are busy.',
  '* Without butterfly and load-balance, AWT rises by more seconds the more jobs there are, but not by a larger factor, because AWT with them',
  '  rises as well.',
  '* AWT is about the same in 4 and in 16 trees: a request that waits in several trees is claimed by the first one with a free server. But few of their',
  '  jobs run near their origin: trees that are peers do not sort requests that wait in several of them by closeness, as butterfly does within one tree.',
  '* With many jobs one tree lowers AET for 1 GB as well, because input, output and computation all grow with size.',
];

/** The page. */
export function gridTreeReport(seed: number, cells: readonly Cell[], runs = RUNS): Report {
  const [byJob, byServer] = DEADLINES.map((deadline) => gridTreeClaims(cells, deadline)) as [
    Claim[],
    Claim[],
  ];
  const verdict = `a deadline of the job: ${verdictOf(byJob)}; of the server: ${verdictOf(byServer)}`;
  const plots = gridTreePlots(cells, runs);
  const text = [
    '# The grid tree against peers',
    '',
    `${commandOf('grid-tree', seed, runs, RUNS)} made this page: AlZoubi and Dandamudi's model of section 4, means and standard`,
    `errors of ${runs} ${runs === 1 ? 'run' : 'runs'} (theirs: 20), seconds. The schedulers of the trees are the core's own, on the model's network. TRT is the`,
    'time from the first request to the last output, AWT from request to start of transfer, AET from there to the output received.',
    '',
    'Decisions where the paper leaves the model open:',
    '',
    '* A server is occupied until the output has reached the workstation. Transfers do not slow one another down.',
    '* Sizes are Poisson in units of 100 MB; wall times deviate by a tenth.',
    '* A peer offers the server that will be free first, and queues jobs on it as long as the deadline allows; this counts as execution.',
    "* Peers form rings of a net, of a backbone's nets, and of the backbones.",
    "* In experiment 2 a site's weight, drawn from 0 to 1, scales its workstations' rates.",
    '',
    '## What was expected',
    '',
    'Peers must meet a deadline of “three times the estimated execution time for that job”, trees only the operating system. The words',
    'can be read in two ways, and both were simulated: three times the run time on a server with the mean CPUs of Table 1, which a request can state',
    'before a server is offered (P2P); or three times that on the offered server itself (P2P*), which any idle server meets.',
    '',
    markdownTable(
      ['expectation', 'holds against P2P', 'against P2P*'],
      byJob.map(({ claim, holds, of }, i) => [claim, `${holds} of ${of}`, `${byServer[i]?.holds} of ${of}`]),
    ),
    '',
    ...findings(byJob, byServer),
    '',
    'An [experiment of its own](grid-tree-live.md) compares the live policy with the paper’s where the two differ.',
    '',
    '## All cells',
    '',
    markdownTable(
      [
        'exp.',
        'system',
        'jobs',
        'input (GB)',
        'submission',
        'rescheduling',
        'AWT',
        'TRT',
        'AET',
        'in own net',
      ],
      cells.map(({ experiment, setting, awtS, trtS, aetS, withinNet }) => [
        `${experiment}`,
        nameOf(setting),
        `${setting.jobs}`,
        `${setting.inputMb / GB}`,
        submission(setting),
        setting.rescheduling ? 'on' : 'off',
        plusMinus(awtS),
        plusMinus(trtS),
        plusMinus(aetS),
        `${(100 * withinNet).toFixed(0)} %`,
      ]),
    ),
    '',
    ...plots.flatMap((plot) => [plotLink(plot), '']),
    verdict,
    '',
  ].join('\n');
  return { name: 'grid-tree', text, data: { seed, runs, cells }, verdict, plots };
}

/** P2P*: under the deadline of the server that is offered. */
const nameOf = ({ system, deadline }: Pick<Setting, 'system' | 'deadline'>): string =>
  deadline === 'SERVER' ? `${system}*` : system;

function submission({ rate, changes }: Setting): string {
  const how =
    rate === 'ONE_AFTER_ANOTHER'
      ? 'one after another'
      : rate === 'DRAWN'
        ? 'drawn'
        : (RATES.find(({ s }) => s === rate)?.name as string);
  return changes ? `${how}, servers change` : how;
}

function gridTreePlots(cells: readonly Cell[], runs: number): Plot[] {
  const subtitle = [
    `Mean and standard error of ${runs} ${runs === 1 ? 'run' : 'runs'}; 100 GB of input. P2P*: the deadline of the server that is offered.`,
  ];
  const names = [...new Set(cells.map(({ setting }) => nameOf(setting)))];
  const named = names.map((name) => [name, cells.filter(({ setting }) => nameOf(setting) === name)] as const);
  const point = (cell: Cell, metric: Metric) => ({ y: cell[metric].mean, error: cell[metric].error });
  const byJobs = (experiment: number, title: string): Plot => ({
    name: `grid-tree-${experiment}`,
    chart: {
      title,
      subtitle,
      kind: 'line',
      x: { title: 'jobs', scale: 'log' },
      y: { title: 'seconds', scale: 'log' },
      columns: 3,
      width: 260,
      height: 260,
      series: METRICS.flatMap(({ metric, name }) =>
        [true, false].flatMap((rescheduling) =>
          named.flatMap(([system, ofSystem]) => {
            const points = ofSystem
              .filter(
                ({ experiment: one, setting }) =>
                  one === experiment && setting.inputMb === LARGE && setting.rescheduling === rescheduling,
              )
              .map((cell) => ({ x: cell.setting.jobs, ...point(cell, metric) }));
            const label = rescheduling ? system : `${system}, no rescheduling`;
            return points.length === 0 ? [] : [{ name: label, panel: name, points }];
          }),
        ),
      ),
    },
  });
  const byCase = (experiment: number, title: string): Plot => ({
    name: `grid-tree-${experiment}`,
    chart: {
      title,
      subtitle,
      kind: 'column',
      x: { title: 'submission' },
      y: { title: 'AWT (s)' },
      series: named.map(([system, ofSystem]) => ({
        name: system,
        points: ofSystem
          .filter((cell) => cell.experiment === experiment)
          .map((cell) => ({ x: submission(cell.setting), ...point(cell, 'awtS') })),
      })),
    },
  });
  return [
    byJobs(1, 'Experiment 1: one job after another'),
    byJobs(2, 'Experiment 2: workstations at drawn rates'),
    byCase(3, 'Experiment 3: all workstations at one rate'),
    byCase(4, 'Experiment 4: servers that change'),
  ];
}
