/** `switchyard compare`: several policies over the same trace, side by side. */
import type { Command } from 'commander';
import { simulateAll } from '../../simulator/compare.js';
import type { Recorded } from '../../simulator/simulate.js';
import { addCommand, collect, print, printJson, wantsJson } from '../command.js';
import { duration, table } from '../format.js';
import { draw, plotsOf } from '../plots.js';
import { type Progress, progress } from '../progress.js';
import { failure, POLICY_HELP, type WorkloadFlags, workloadOf, workloadOptions } from './simulate.js';

export function addCompare(program: Command): void {
  const command = workloadOptions(
    addCommand(program, 'compare', 'simulate several policies on a trace and compare their results'),
  ).option('--policy <names>', `policies, separated by commas or repeated; each ${POLICY_HELP}`, collect);
  command.addHelpText(
    'after',
    '\nExample: switchyard compare --trace KTH-SP2.swf.gz --processors 100 --policy fcfs,easy,easy-sjbf,conservative',
  );
  command.action(async (flags: WorkloadFlags & { policy?: string[] }) => {
    const policies = flags.policy ?? ['fcfs', 'easy', 'conservative'];
    const runs = await Promise.all(policies.map((policy) => workloadOf(flags, policy)));
    const plots = await plotsOf(flags, policies);
    let bar: Progress | undefined;
    let recorded: Recorded[];
    try {
      recorded = await simulateAll(runs, plots?.window ?? null, (ended, jobs) => {
        bar ??= progress('simulated', jobs * runs.length);
        bar.update(ended);
      });
      if (plots !== null) await draw(plots, policies, recorded);
    } catch (error) {
      throw failure(error);
    } finally {
      bar?.stop();
    }
    const results = recorded.map(({ simulated }) => simulated);
    if (wantsJson(command)) {
      return printJson(results.map((result, i) => ({ policy: policies[i], ...result })));
    }
    print(
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
        results.map(({ jobs, utilization, wait, turnaround, boundedSlowdown }, i) => [
          policies[i],
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
  });
}
