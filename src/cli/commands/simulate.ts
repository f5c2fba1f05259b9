/** `switchyard simulate`: a scheduling policy over workloads, without a service. */
import type { Command } from 'commander';
import type { Simulated } from '../../simulator/simulate.js';
import { type Distribution, intervalsOf } from '../../simulator/statistics.js';
import { addCommand, print, printJson, wantsJson } from '../command.js';
import { count, duration, short, table } from '../format.js';
import {
  POLICY_HELP,
  type PolicyRuns,
  plusMinus,
  policyModules,
  simulated,
  type WorkloadFlags,
  workloadOptions,
} from '../workloads.js';

export function addSimulate(program: Command): void {
  const command = workloadOptions(
    addCommand(program, 'simulate', 'simulate a scheduling policy on a trace, without a service'),
  ).option('--policy <name>', `${POLICY_HELP} (default: that of --policy-module, else easy)`);
  command.addHelpText(
    'after',
    '\nExamples: switchyard simulate --trace KTH-SP2.swf.gz --processors 100 --policy easy --out jobs.csv --summary kth.json\n' +
      '          switchyard simulate --generate lublin --processors 128 --load 0.8 --seeds 1-10 --warm-up 10%',
  );
  command.action(async (flags: WorkloadFlags & { policy?: string }) => {
    const json = wantsJson(command);
    const modules = await policyModules(flags);
    const policy = flags.policy ?? modules.names[0] ?? 'easy';
    const [{ runs }] = (await simulated(flags, [policy], modules, json)) as [PolicyRuns];
    const results = runs.map((one) => one.simulated);
    const [only, ...others] = results as [Simulated, ...Simulated[]];
    if (json) return printJson(others.length === 0 ? only : { runs: results, means: intervalsOf(results) });
    print(others.length === 0 ? describe(only) : describeAll(results));
  });
}

const MEASURES = ['wait', 'turnaround', 'slowdown', 'boundedSlowdown'] as const;

function describe(result: Simulated): string {
  const { dropped, malformed, estimateError } = result;
  const rows = MEASURES.map((name) => [
    name,
    ...cells(result[name], name.toLowerCase().includes('slowdown')),
  ]);
  const left = Object.entries(dropped).filter(([, jobs]) => jobs > 0);
  return [
    `${count(result.jobs, 'job')} of ${result.trace} on ${count(result.processors, 'processor')} at ${count(result.sites, 'site')}, policy ${result.dispatch === null ? '' : `${result.dispatch.kind}+`}${result.local.kind}`,
    `makespan ${duration(result.makespan)}${result.criticalPath === undefined ? '' : `, critical path ${duration(result.criticalPath)}`}, utilization ${(100 * result.utilization).toFixed(2)} %`,
    table(['', 'mean', 'median', 'p95', 'max'], rows),
    `estimates (${result.estimate}): mean error ${duration(estimateError.meanAbsoluteS)}, accuracy ${estimateError.accuracy.toFixed(2)}, ${(100 * estimateError.underestimated).toFixed(1)} % too short`,
    ...(result.warmUpJobs > 0 ? [`${count(result.warmUpJobs, 'job')} in the warm-up, not counted`] : []),
    ...(result.killed > 0 ? [`${count(result.killed, 'job')} killed at the requested time`] : []),
    ...(result.lost > 0 ? [`${count(result.lost, 'run')} lost in outages and started over`] : []),
    ...(result.preempted > 0 ? [`${count(result.preempted, 'run')} stopped for jobs of higher classes`] : []),
    ...(result.lostCpuHours > 0 ? [`${short(result.lostCpuHours)} CPU-hours had to be repeated`] : []),
    ...(result.dependencies === undefined
      ? []
      : [
          `${count(result.dependencies.jobs, 'job')} submitted after the job before${result.dependencies.unknown > 0 ? `; ${result.dependencies.unknown} whose job before is not in the workload, when the trace says` : ''}`,
        ]),
    ...(result.cancelled > 0
      ? [`${count(result.cancelled, 'job')} canceled because of failed dependencies`]
      : []),
    ...(result.waiting > 0 ? [`${count(result.waiting, 'job')} that no machines could run`] : []),
    ...(left.length > 0 ? [`skipped: ${left.map(([why, jobs]) => `${jobs} ${why}`).join(', ')}`] : []),
    ...(malformed.count > 0
      ? [
          `${count(malformed.count, 'malformed line')} in ${result.trace}, the first is line ${malformed.first[0]?.line}: ${malformed.first[0]?.why}`,
        ]
      : []),
  ].join('\n');
}

function cells({ mean, median, p95, max }: Distribution, plain: boolean): string[] {
  return [mean, median, p95, max].map((value) => (plain ? short(value) : duration(value)));
}

function describeAll(results: readonly Simulated[]): string {
  const means = intervalsOf(results);
  const percent = (value: number): string => (100 * value).toFixed(2);
  const number = (value: number): string => value.toFixed(2);
  return table(
    ['trace', 'seed', 'jobs', 'utilization %', 'mean wait', 'mean turnaround', 'mean bounded slowdown'],
    [
      ...results.map((one) => [
        one.trace,
        one.seed,
        one.jobs,
        percent(one.utilization),
        duration(one.wait.mean),
        duration(one.turnaround.mean),
        number(one.boundedSlowdown.mean),
      ]),
      [
        'mean ± 95 %',
        '',
        '',
        plusMinus(means.utilization, percent),
        plusMinus(means.wait, duration),
        plusMinus(means.turnaround, duration),
        plusMinus(means.boundedSlowdown, number),
      ],
    ],
  );
}
