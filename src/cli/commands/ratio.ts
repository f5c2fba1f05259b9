/** `switchyard ratio`, `congestion`, `standings`: what schedulers that look at data and at users' quotas go by. */
import type { Command } from 'commander';
import { parseNumber } from '../../words/values.js';
import { addCommand, interruption, note, print, printJson, show, wantsJson } from '../command.js';
import { connect } from '../connect.js';
import {
  CongestionDocument,
  type PointFieldsFragment,
  RatioDocument,
  type RatioQuery,
  RatioUpdatedDocument,
  StandingsDocument,
} from '../documents.gql.js';
import { CliError, ExitCode } from '../errors.js';
import { count, duration, table, time } from '../format.js';

type Point = PointFieldsFragment;
type Ratio = RatioQuery['jobRatio'];

// biome-ignore lint/complexity/noExcessiveLinesPerFunction: commands and their options, a line each
export function addRatio(program: Command): void {
  const ratio = addCommand(
    program,
    'ratio <application>',
    'show the job ratio of an application: the fraction of its run time spent computing',
  )
    .option('--last <n>', 'number of latest runs to list', '10')
    .option('--watch', 'then follow runs as they end, until Ctrl-C')
    .option('--after <cursor>', 'with --watch: continue after this update (the JSON output has cursors)');
  ratio.action(async (application: string, options: { last: string; watch?: boolean; after?: string }) => {
    const client = connect();
    const last = parseNumber('--last', options.last, { min: 1, max: 1000, integer: true });
    const { jobRatio } = await client.request(RatioDocument, { application, last });
    if (!options.watch) return show(ratio, jobRatio, describe);
    const json = wantsJson(ratio);
    if (options.after === undefined && !json) print(describe(jobRatio));
    const signal = interruption();
    const updates = client.updates(
      RatioUpdatedDocument,
      'jobRatioUpdated',
      { application },
      { after: options.after ?? jobRatio.cursor, signal },
    );
    for await (const update of updates) {
      if (json) printJson(update, { compact: true });
      else if (update.point === null) note('some runs were skipped, because this client fell too far behind');
      else print(rowsOf([update.point])[0]!.join('  '));
    }
    if (!signal.aborted) throw new CliError('the service ended the subscription', ExitCode.UNREACHABLE);
  });

  const congestion = addCommand(
    program,
    'congestion',
    'show the sites as seen by the schedulers of other sites',
  );
  congestion.action(async () => {
    const sites = await connect().all(CongestionDocument, 'congestion', {});
    show(congestion, sites, (all) =>
      table(
        [
          'SITE',
          'ALIVE',
          'META-QUEUE',
          'QUEUE',
          'ARRIVALS/S',
          'SERVICES/S',
          'CONGESTED',
          'POWER',
          'HEARD (UTC)',
        ],
        all.map((one) => [
          one.site.name,
          one.alive ? 'yes' : 'no',
          one.metaQueued,
          one.queued,
          Number(one.arrivalRate.toPrecision(3)),
          Number(one.serviceRate.toPrecision(3)),
          one.congested ? 'yes' : 'no',
          one.powerTotal,
          time(one.lastHeardAt),
        ]),
      ),
    );
  });

  const standings = addCommand(
    program,
    'standings',
    'show the jobs of users in each meta-queue and their priorities by quota there (the 500 with the most jobs)',
  );
  standings.action(async () => {
    const data = await connect().request(StandingsDocument, {});
    show(standings, data.userStandings, (all) =>
      table(
        ['USER', 'SITE', 'QUOTA', 'ALL JOBS', 'PROCESSORS', 'JOBS', 'THRESHOLD', 'PRIORITY', 'QUEUE'],
        all.flatMap(({ user, site, quotaShare, queuedJobs, groups }) =>
          groups.map((group) => [
            user.name,
            site?.name ?? '(root)',
            quotaShare,
            queuedJobs,
            group.processors,
            group.jobs,
            Number(group.threshold.toPrecision(4)),
            Number(group.priority.toFixed(4)),
            `Q${group.queue}`,
          ]),
        ),
      ),
    );
  });
}

const SOURCES: Record<string, string> = {
  USER: 'it has not run here; from similar runs of the user',
  EVERYBODY: 'it has not run here; from similar runs of all users',
  DECLARED: 'as declared; it has not run here yet',
  UNKNOWN: 'nothing is known about it',
};

function describe({ application, computation, source, runs, history }: Ratio): string {
  const share = (value: number): string => `${(100 * value).toFixed(1)} %`;
  const from = SOURCES[source] ?? `from ${count(runs, 'run')}`;
  const line = `${application}: computation ${share(computation)} of its run time, input and output ${share(1 - computation)} (${from})`;
  if (history.nodes.length === 0) return line;
  const headings = [
    'ENDED (UTC)',
    'JOB',
    'SITE',
    'TOOK',
    'INPUT AND OUTPUT',
    'MEASURED BY',
    'RUNS',
    'COMPUTES %',
  ];
  return `${line}\n${table(headings, rowsOf(history.nodes))}`;
}

const rowsOf = (points: readonly Point[]): unknown[][] =>
  points.map(({ at, job, site, turnaroundS, ioS, ioMethod, runs, computation }) => [
    time(at),
    job?.id ?? '-',
    site.name,
    duration(turnaroundS),
    ioS === null ? 'not measured' : duration(ioS),
    ioMethod,
    runs,
    computation === null ? '' : Number((100 * computation).toFixed(1)),
  ]);
