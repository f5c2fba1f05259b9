/** `switchyard compare`: several policies over the same workloads, side by side. */
import type { Command } from 'commander';
import { significanceOf } from '../../simulator/significance.js';
import type { Simulated } from '../../simulator/simulate.js';
import { intervalsOf, type Means } from '../../simulator/statistics.js';
import { addCommand, collect, collectWhole, print, printJson, wantsJson } from '../command.js';
import { duration, table } from '../format.js';
import { VARIED_OPTIONS, workloadIn } from '../vary.js';
import {
  cellName,
  POLICY_HELP,
  plusMinus,
  policyModules,
  simulated,
  type WorkloadFlags,
  workloadOptions,
} from '../workloads.js';

export function addCompare(program: Command): void {
  const command = workloadOptions(
    addCommand(program, 'compare', 'simulate several policies on a trace and compare their results'),
  )
    .option('--policy <names>', `policies, separated by commas or repeated; each ${POLICY_HELP}`, collect)
    .option(
      '--vary <field=values>',
      `run each policy with each of these values: of a field of the policy (local.kind=easy,conservative), or of ${VARIED_OPTIONS.join(', ')} (load=0.7..1.1); may be repeated: then all combinations`,
      collectWhole,
    );
  command.addHelpText(
    'after',
    '\nExample: switchyard compare --trace KTH-SP2.swf.gz --processors 100 --policy fcfs,easy,easy-sjbf,conservative\n' +
      '         switchyard compare --generate lublin --processors 128 --seeds 1-20 --vary local.kind=easy,conservative --vary load=0.7..1.1 --table runs.parquet --resume runs/',
  );
  command.action(async (flags: WorkloadFlags & { policy?: string[] }) => {
    const json = wantsJson(command);
    const modules = await policyModules(flags);
    // With --vary its fields are what is compared.
    const usual = flags.vary === undefined ? ['fcfs', 'easy', 'conservative'] : ['easy'];
    const policies = flags.policy ?? [...usual, ...modules.names];
    const compared = (await simulated(flags, policies, modules, json)).map(({ policy, varied, runs }) => ({
      policy: cellName({ policy, varied }),
      workload: workloadIn(varied),
      runs: runs.map((run) => run.simulated),
    }));
    const [first] = compared as [(typeof compared)[number]];
    const several = first.runs.length > 1;
    // The same jobs under both: what they have in common cancels out.
    const firsts = new Map([...compared].reverse().map(({ workload, runs }) => [workload, runs]));
    const baseOf = ({ workload }: { workload: string }) => firsts.get(workload) as Simulated[];
    const odds = significanceOf(compared.map((one) => ({ runs: one.runs, first: baseOf(one) })));
    const results = compared.map((one, i) => ({
      policy: one.policy,
      runs: one.runs,
      means: intervalsOf(one.runs),
      toFirst: intervalsOf(one.runs, baseOf(one)),
      ...(several && odds[i] && { significance: odds[i] }),
    }));
    if (json)
      return printJson(several ? results : results.map(({ policy, runs: [only] }) => ({ policy, ...only })));
    print(several ? ofMeans(results) : ofSingle(compared));
  });
}

interface Compared {
  policy: string;
  runs: readonly Simulated[];
}
interface Repeated extends Compared {
  means: Means;
  toFirst: Means;
  significance?: ReturnType<typeof significanceOf>[number];
}

const ofMeans = (results: readonly Repeated[]): string =>
  table(
    [
      'policy',
      'runs',
      'utilization %',
      'mean wait',
      'mean turnaround',
      'mean bounded slowdown',
      'to the first',
      'p (Holm)',
    ],
    results.map(({ policy, runs, means, toFirst, significance }) => [
      policy,
      runs.length,
      plusMinus(means.utilization, (value) => (100 * value).toFixed(2)),
      plusMinus(means.wait, duration),
      plusMinus(means.turnaround, duration),
      plusMinus(means.boundedSlowdown, (value) => value.toFixed(2)),
      plusMinus(toFirst.boundedSlowdown, (value) => value.toFixed(2)),
      significance?.boundedSlowdown?.pHolm.toFixed(4) ?? '-',
    ]),
  );

const ofSingle = (compared: readonly Compared[]): string =>
  table(
    [
      'policy',
      'jobs',
      'utilization %',
      'mean wait',
      'p95 wait',
      'max wait',
      'mean turnaround',
      'mean bounded slowdown',
    ],
    compared.flatMap(({ policy, runs }) =>
      runs.map(({ jobs, utilization, wait, turnaround, boundedSlowdown }) => [
        policy,
        jobs,
        (100 * utilization).toFixed(2),
        duration(wait.mean),
        duration(wait.p95),
        duration(wait.max),
        duration(turnaround.mean),
        boundedSlowdown.mean.toFixed(2),
      ]),
    ),
  );
