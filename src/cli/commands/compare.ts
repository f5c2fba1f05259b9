/** `switchyard compare`: several policies over the same workloads, side by side. */
import type { Command } from 'commander';
import { intervalsOf } from '../../simulator/statistics.js';
import { addCommand, collect, print, printJson, wantsJson } from '../command.js';
import { duration, table } from '../format.js';
import {
  POLICY_HELP,
  plusMinus,
  policyModules,
  simulated,
  type WorkloadFlags,
  workloadOptions,
} from '../workloads.js';

// biome-ignore lint/complexity/noExcessiveLinesPerFunction: commands and their options, a line each
export function addCompare(program: Command): void {
  const command = workloadOptions(
    addCommand(program, 'compare', 'simulate several policies on a trace and compare their results'),
  ).option('--policy <names>', `policies, separated by commas or repeated; each ${POLICY_HELP}`, collect);
  command.addHelpText(
    'after',
    '\nExample: switchyard compare --trace KTH-SP2.swf.gz --processors 100 --policy fcfs,easy,easy-sjbf,conservative',
  );
  command.action(async (flags: WorkloadFlags & { policy?: string[] }) => {
    const json = wantsJson(command);
    const modules = await policyModules(flags);
    const policies = flags.policy ?? ['fcfs', 'easy', 'conservative', ...modules.names];
    const compared = (await simulated(flags, policies, modules, json)).map(({ policy, runs }) => ({
      policy,
      runs: runs.map((run) => run.simulated),
    }));
    const [first] = compared as [(typeof compared)[number]];
    const several = first.runs.length > 1;
    const results = compared.map(({ policy, runs }) => ({
      policy,
      runs,
      means: intervalsOf(runs),
      // The same jobs under both: what they have in common cancels out.
      toFirst: intervalsOf(runs, first.runs),
    }));
    if (json)
      return printJson(several ? results : results.map(({ policy, runs: [only] }) => ({ policy, ...only })));
    print(
      several
        ? table(
            [
              'policy',
              'runs',
              'utilization %',
              'mean wait',
              'mean turnaround',
              'mean bounded slowdown',
              'to the first',
            ],
            results.map(({ policy, runs, means, toFirst }) => [
              policy,
              runs.length,
              plusMinus(means.utilization, (value) => (100 * value).toFixed(2)),
              plusMinus(means.wait, duration),
              plusMinus(means.turnaround, duration),
              plusMinus(means.boundedSlowdown, (value) => value.toFixed(2)),
              plusMinus(toFirst.boundedSlowdown, (value) => value.toFixed(2)),
            ]),
          )
        : table(
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
          ),
    );
  });
}
