/** `switchyard watch`: news of jobs as they happen. */
import type { Command } from 'commander';
import { isTerminal, jobStates } from '../../core/states.js';
import { parseId, parseNumber } from '../../words/values.js';
import { addCommand, interruption, note, print, printJson, wantsJson } from '../command.js';
import { connect } from '../connect.js';
import { JobLinesDocument, JobsDocument } from '../documents.gql.js';
import { CliError, ExitCode } from '../errors.js';
import { awaitEnds, type JobLine, type JobUpdate, jobUpdates, latestCursor, stateTold } from '../follow.js';
import { printable } from '../format.js';
import { addFilterOptions, type FilterOptions, filterFromOptions } from '../job-options.js';
import { whatRuns } from './jobs.js';

interface WatchOptions extends FilterOptions {
  after?: string;
  recent: string;
  once?: boolean;
  untilEnded?: boolean;
}

export function addWatch(program: Command): void {
  const command = addFilterOptions(
    addCommand(
      program,
      'watch [ids...]',
      'follow these jobs until they have ended, or all jobs until Ctrl-C',
    ),
  )
    .option('--recent <n>', 'first show this many of the latest jobs', '10')
    .option('--once', 'show the current state and exit')
    .option('--until-ended', 'exit when all matching jobs have ended')
    .option('--after <cursor>', 'continue after this update (the JSON output has cursors)')
    .addHelpText(
      'after',
      '\nWith --json: one update per line. The jobs shown first have no event and no cursor.',
    );
  command.action((ids: string[], options: WatchOptions) =>
    ids.length > 0 ? watchThese(ids, options, wantsJson(command)) : watchAll(options, wantsJson(command)),
  );
}

/** Until they have ended; a job that did not complete makes the command fail. */
async function watchThese(ids: readonly string[], options: WatchOptions, json: boolean): Promise<void> {
  const client = connect();
  const wanted = ids.map((id) => parseId('job', id));
  const signal = options.once ? AbortSignal.abort() : interruption();
  const ended = await awaitEnds(client, wanted, signal, (job, update) => tell(job, update, json));
  if ([...ended.values()].some(({ state }) => state !== 'COMPLETED')) process.exitCode = ExitCode.FAILED;
}

async function watchAll(options: WatchOptions, json: boolean): Promise<void> {
  const client = connect();
  const signal = interruption();
  const filter = await filterFromOptions(client, options);
  const after = options.after ?? (await latestCursor(client));
  const recent = parseNumber('--recent', options.recent, { min: 0, max: 1000, integer: true });
  const live = new Set<string>();
  const look = async (): Promise<void> => {
    const notEnded = { ...filter, states: jobStates.filter((state) => !isTerminal(state)) };
    for await (const page of client.pages(JobLinesDocument, 'jobs', { filter: notEnded })) {
      for (const job of page) live.add(job.id);
    }
  };

  if (!options.after && recent > 0) {
    const orderBy = { field: 'SUBMITTED_AT', direction: 'DESC' } as const;
    const data = await client.request(json ? JobsDocument : JobLinesDocument, {
      filter,
      orderBy,
      first: recent,
    });
    for (const job of data.jobs.nodes.toReversed()) tell(job, null, json);
  }
  if (options.once) return;
  if (options.untilEnded) {
    await look();
    if (live.size === 0) return;
  } else if (!json && process.stderr.isTTY) {
    note('(waiting for updates; Ctrl-C stops watching, not the jobs)');
  }

  for await (const update of jobUpdates(client, filter, { after, signal, full: json })) {
    if (update.resyncRequired) {
      note('some updates were skipped, because this client fell too far behind');
      live.clear();
      await look();
    } else if (update.job) {
      tell(update.job, update, json);
      if (isTerminal(update.job.state)) live.delete(update.job.id);
      else live.add(update.job.id);
    }
    if (options.untilEnded && live.size === 0) return;
  }
  if (!signal.aborted) throw new CliError('the service ended the subscription', ExitCode.UNREACHABLE);
}

function tell(job: JobLine, update: JobUpdate | null, json: boolean): void {
  if (json) {
    printJson(update ?? { job }, { compact: true });
    return;
  }
  const at = update?.event?.at ?? job.endedAt ?? job.startedAt ?? job.submittedAt;
  const site = job.site ? `at ${printable(job.site.name)}` : '';
  print(
    `${at.slice(11, 19)}  ${job.id.padEnd(10)} ${stateTold(job, update).padEnd(24)} ${site.padEnd(14)} ${printable(whatRuns(job))}`,
  );
}
