/** `switchyard whatif`: what a policy would have done with the service's own jobs of the past. */
import type { Command } from 'commander';
import type { Client } from '../../client/index.js';
import { parseTime } from '../../words/values.js';
import { addCommand, interruption, note, print, printJson, readJson, wantsJson } from '../command.js';
import { connect } from '../connect.js';
import {
  type ComparisonFragment as Comparison,
  type FiguresFragment as Figures,
  SimulateDocument,
  SimulationDocument,
  type SimulationFieldsFragment,
  SimulationUpdatedDocument,
} from '../documents.gql.js';
import { CliError, ExitCode } from '../errors.js';
import { latestCursor } from '../follow.js';
import { count, duration, table } from '../format.js';
import { progress } from '../progress.js';

type Simulation = SimulationFieldsFragment;
type Result = NonNullable<Simulation['result']>;

interface WhatIfOptions {
  candidate: string;
  from: string;
  to?: string;
  reason?: string;
  acceptDistance?: boolean;
}

export function addWhatIf(program: Command): void {
  const command = addCommand(
    program,
    'whatif',
    'simulate a policy on past jobs and compare it with the current one (OPERATOR)',
  )
    .requiredOption(
      '--candidate <file>',
      'the policy: a JSON file as printed by `policy --json`, - for standard input',
    )
    .requiredOption('--from <time>', 'jobs submitted at this time or later: ISO 8601')
    .option('--to <time>', 'jobs submitted before this time (default: now)')
    .option(
      '--accept-distance',
      'compare even if the simulation of the current policy is far from what actually happened',
    )
    .option('--reason <text>', 'reason for the audit log')
    .addHelpText('after', '\nCtrl-C stops waiting; the simulation continues.');
  command.action(async (options: WhatIfOptions) => {
    const nowMs = Date.now();
    const input = {
      candidate: documentIn(await readJson('--candidate', options.candidate)),
      from: parseTime('--from', options.from, nowMs, note),
      to: parseTime('--to', options.to ?? new Date(nowMs).toISOString(), nowMs, note),
      reason: options.reason,
      acceptDistance: options.acceptDistance ?? false,
    };
    const client = connect();
    const after = await latestCursor(client);
    const { createSimulation } = await client.request(SimulateDocument, { input });
    const ended = await awaitEnd(client, createSimulation.simulation, after);
    if (wantsJson(command)) printJson(ended);
    if (ended.state === 'FAILED')
      throw new CliError(`${ended.id} failed: ${ended.message ?? ''}`, ExitCode.FAILED);
    if (ended.state !== 'DONE' || ended.result === null) {
      note(`${ended.id} is ${ended.state}`);
      process.exitCode = ExitCode.FAILED;
    } else if (!wantsJson(command)) print(describe(ended, ended.result));
  });
}

/** What `switchyard policy --json` prints has the document inside. */
export function documentIn(value: unknown): unknown {
  const isVersion = typeof value === 'object' && value !== null && 'version' in value && 'document' in value;
  return isVersion ? value.document : value;
}

/** Follows it with a bar until it has ended, or until Ctrl-C. */
async function awaitEnd(client: Client, asked: Simulation, after: string): Promise<Simulation> {
  const signal = interruption();
  const bar = progress('simulated %', 100);
  let latest = asked;
  try {
    const updates = client.updates(
      SimulationUpdatedDocument,
      'simulationUpdated',
      { simulation: asked.id },
      { after, signal },
    );
    for await (const { simulation } of updates) {
      if (simulation !== null) latest = simulation;
      else {
        const now = await client.request(SimulationDocument, { id: asked.id });
        latest = now.simulation ?? latest;
      }
      bar.update(Math.round(100 * latest.progress));
      if (latest.state !== 'QUEUED' && latest.state !== 'RUNNING') break;
    }
  } finally {
    bar.stop();
  }
  return latest;
}

function describe({ id, policyVersion }: Simulation, result: Result): string {
  const { jobs, leftOut, happened, all, userClasses, sites } = result;
  const groups: [string, Comparison][] = [
    ['all jobs', all],
    ...userClasses.map((one): [string, Comparison] => [one.userClass, one.comparison]),
    ...sites.map((one): [string, Comparison] => [`at ${one.name}`, one.comparison]),
  ];
  const columns: [string, (figures: Figures) => string | number][] = [
    ['ENDED', (figures) => figures.ended],
    ['MEAN WAIT', (figures) => duration(figures.waitMeanS)],
    ['P95 WAIT', (figures) => duration(figures.waitP95S)],
    ['MEAN SLOWDOWN', (figures) => figures.slowdownMean.toFixed(2)],
    ['DEADLINES MISSED', (figures) => figures.deadlineMisses],
    ['UTILIZATION %', (figures) => (100 * figures.utilization).toFixed(1)],
  ];
  const sides = ['baseline', 'candidate', 'difference'] as const;
  const rows = groups.flatMap(([group, comparison]) =>
    sides.map((side, i) => [
      i === 0 ? group : '',
      side === 'baseline' ? `version ${policyVersion}` : side,
      ...columns.map(([, cell]) => cell(comparison[side])),
    ]),
  );
  const headings = ['JOBS', 'POLICY', ...columns.map(([heading]) => heading)];
  const without = leftOut > 0 ? `, without ${leftOut} that never ran` : '';
  const real = happened
    ? `The ${count(happened.jobs, 'job')} that ran waited ${duration(happened.waitMeanS)} on average; simulated under the same policy, ${duration(happened.simulatedWaitMeanS)}.\n`
    : '';
  const assumed = sites
    .flatMap(({ ownScheduler }) => (ownScheduler ? `${ownScheduler.message}\n` : []))
    .join('');
  return `${id}: ${count(jobs, 'job')}${without}\n${real}${assumed}${table(headings, rows)}`;
}
