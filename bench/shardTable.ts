/** `npm run shards`: prints the tables of docs/shards.md, the same each time. */
import { AGREED } from './shardCosts.js';
import { type Outcome, SCENARIO, type Scenario, simulateShards } from './shardModel.js';

const SHARDS = [1, 4, 16, 64, 256];
const QUEUED = 100e6;
const DAY_S = 86_400;
/** A server with more work than that gets no further. */
const FULL = 0.95;

const percent = (share: number): string => `${(share * 100).toFixed(0)} %`;
const time = (s: number): string => (s < 1 ? `${(s * 1000).toFixed(0)} ms` : `${s.toFixed(1)} s`);
const size = (bytes: number): string =>
  bytes < 1e9
    ? `${(bytes / 1e6).toFixed(0)} MB`
    : bytes < 1e12
      ? `${(bytes / 1e9).toFixed(1)} GB`
      : `${(bytes / 1e12).toFixed(1)} TB`;
const row = (cells: readonly (string | number)[]): string => `| ${cells.join(' | ')} |`;

function print(title: string, head: readonly string[], rows: readonly (string | number)[][]): void {
  const lines = [row(head), `|${'---|'.repeat(head.length)}`, ...rows.map(row)];
  process.stdout.write(`${title}\n\n${lines.join('\n')}\n\n`);
}

/** What has more work than it can do. A lock that is always held need not have: what is gathered makes use of all the time that there is. */
function full(
  { fallsBehind, rootLock, rootPlanner, shardLock, shardPlanner }: Outcome,
  shards: number,
): string {
  if (!fallsBehind) return '–';
  const loads: [string, number][] = [
    [shards === 1 ? 'planner' : "root's planner", rootPlanner],
    [shards === 1 ? 'event lock' : "root's event lock", rootLock],
    ["shards' planners", shards === 1 ? 0 : shardPlanner],
    ["shards' event locks", shards === 1 ? 0 : shardLock],
  ];
  return loads.flatMap(([name, load]) => (load >= FULL ? [name] : [])).join(', ');
}

const PIPELINE = [
  'jobs/s started',
  "root's lock",
  "root's planner",
  "shards' locks",
  "shards' planners",
  'p50',
  'p99',
  'full',
];

function pipeline(change: Partial<Scenario>): string[] {
  const outcome = simulateShards(change);
  const { shards } = { ...SCENARIO, ...change };
  const latency = (s: number): string => (outcome.fallsBehind ? 'grows' : time(s));
  return [
    outcome.startedPerS.toFixed(0),
    percent(outcome.rootLock),
    percent(outcome.rootPlanner),
    ...(shards === 1 ? ['–', '–'] : [percent(outcome.shardLock), percent(outcome.shardPlanner)]),
    ...[latency(outcome.p50S), latency(outcome.p99S), full(outcome, shards)],
  ];
}

/** One database, one limit at a time: the most jobs per second. */
function limits(): [string, string][] {
  const { costs } = SCENARIO;
  const { submit, move, start, report, flushS, plan } = costs;
  const steps = [submit, move, start, report, report];
  const inBatches = (jobs: number): number =>
    steps.reduce(
      (sum, { firstS, furtherS }) => sum + (flushS + firstS) / jobs + (furtherS * (jobs - 1)) / jobs,
      0,
    );
  const perSecond = (s: number): string => `${(1 / s).toFixed(0)} jobs/s`;
  return [
    ['event lock, each transaction of 1 job', perSecond(inBatches(1))],
    ['event lock, each transaction of 64 jobs', perSecond(inBatches(64))],
    ['event lock, each transaction of 1000 jobs', perSecond(inBatches(1000))],
    ...[50, 1_000, 10_000].map((sites): [string, string] => [
      `planner of the root above ${sites} sites`,
      perSecond(plan.jobS + plan.jobAndChildS * sites),
    ]),
    ['one Node process, its CPU', perSecond(AGREED.serveCpuS)],
    ['one core of PostgreSQL', perSecond(AGREED.postgresCpuS)],
  ];
}

print('Limits of one database', ['limit', 'at most'], limits());
const STEPS: [string, Partial<Scenario>][] = [
  ['each site commits its starts alone, as before', { gathersStarts: false }],
  ['starts gathered, as today', {}],
  [
    'starts alone, and the planner weighs a tree of 100 schedulers with 100 sites',
    { gathersStarts: false, fanOut: 100 },
  ],
  ['both', { fanOut: 100 }],
];
print(
  'One database above 10 000 sites',
  ['change', ...PIPELINE],
  STEPS.map(([name, change]) => [name, ...pipeline({ shards: 1, ...change })]),
);
for (const gathersStarts of [false, true])
  print(
    gathersStarts
      ? 'Shards, starts gathered, as today'
      : 'Shards, each cycle of a site commits its starts alone, as before',
    ['shards', ...PIPELINE],
    SHARDS.map((shards) => [shards, ...pipeline({ shards, gathersStarts })]),
  );
print(
  'Size of a shard',
  [
    'shards',
    'queued jobs',
    'mirror',
    'read again in',
    'PostgreSQL, cores',
    'Node, cores',
    'queue on disk',
    'a day of events and ended jobs',
  ],
  SHARDS.map((shards) => {
    const queued = QUEUED / shards;
    const jobsPerS = SCENARIO.jobsPerS / shards;
    return [
      ...[
        shards,
        `${(queued / 1e6).toFixed(1)} million`,
        size(queued * AGREED.mirrorBytes),
        time(queued * AGREED.loadS),
      ],
      ...[(jobsPerS * AGREED.postgresCpuS).toFixed(2), (jobsPerS * AGREED.serveCpuS).toFixed(2)],
      ...[size(queued * AGREED.queuedBytes), size(jobsPerS * DAY_S * AGREED.endedBytes)],
    ];
  }),
);
const { costs } = SCENARIO;
const flush = (flushS: number): Partial<Scenario> => ({ costs: { ...costs, flushS } });
const VARIANTS: [string, Partial<Scenario>][] = [
  ['none', {}],
  ['each job in a submission of its own', { jobsPerSubmission: 1 }],
  ['1000 jobs in each submission', { jobsPerSubmission: 1_000 }],
  ['a tenth of the jobs goes through the root', { throughRoot: 0.1 }],
  ['a flush takes 0.2 ms', flush(0.0002)],
  ['a flush takes 5 ms', flush(0.005)],
];
print(
  '16 shards, starts gathered, one thing changed',
  ['change', ...PIPELINE],
  VARIANTS.map(([name, change]) => [name, ...pipeline({ shards: 16, ...change })]),
);
