/** `switchyard usage`, `lost`, `classes`, `audit`: what was used, what of it was lost, by which classes, and who changed what. */
import type { Command } from 'commander';
import { given, parseNumber, parseSince, parseWord, resourceWritten } from '../../words/values.js';
import { addCommand, note } from '../command.js';
import { connect } from '../connect.js';
import {
  AuditDocument,
  type AuditQuery,
  JobClassesDocument,
  type JobClassesQuery,
  LostWorkDocument,
  type LostWorkQuery,
  UsageDocument,
  type UsageQuery,
} from '../documents.gql.js';
import { duration, time } from '../format.js';
import { addListOptions, type Columns, showList } from '../lists.js';

type Used = UsageQuery['usage'][number];
type Lost = LostWorkQuery['lostWork'][number];
type JobClass = JobClassesQuery['jobClasses'][number];
type Entry = AuditQuery['audit']['nodes'][number];

const USAGE_COLUMNS: Columns<Used> = {
  OF: (one) => one.user?.name ?? one.site?.name ?? one.application,
  RUNS: (one) => one.runs,
  'CPU HOURS': (one) => Number((one.cpuS / 3600).toFixed(2)),
  CHARGED: (one) => Number((one.chargedCpuS / 3600).toFixed(2)),
  ENDED: (one) => one.endedJobs,
  FAILED: (one) => one.failedJobs,
  'MEAN WAIT': (one) => duration(one.meanWaitS),
  // Of each in hours.
  'RESOURCE HOURS': (one) =>
    one.resources.map((of) => `${resourceWritten(of)}=${Number((of.amountS / 3600).toFixed(2))}`).join(' '),
};

const LOST_COLUMNS: Columns<Lost> = {
  SITE: (one) => one.site.name,
  CLASS: (one) => one.class ?? one.preemptionClass,
  'RUNS STOPPED': (one) => one.runs,
  'CPU HOURS LOST': (one) => Number((one.cpuS / 3600).toFixed(2)),
};

const CLASS_COLUMNS: Columns<JobClass> = {
  CLASS: (one) => one.name,
  RANK: (one) => (one.isScavenger ? 'scavenger' : one.rank),
  'YOU MAY': (one) => (one.mayUse ? 'yes' : 'no'),
  FOR: (one) => [...(one.userClasses ?? []), ...(one.users ?? [])].join(' ') || null,
  EXEMPT: (one) => duration(one.exemptS),
  GRACE: (one) => duration(one.graceS),
  'WHEN STOPPED': (one) => one.onPreemption,
  CHARGED: (one) => (one.charged ? 'yes' : 'no'),
  WAITING: (one) => one.waitingJobs,
  RUNNING: (one) => one.runningJobs,
};

const AUDIT_COLUMNS: Columns<Entry> = {
  'AT (UTC)': (entry) => time(entry.at),
  USER: (entry) => entry.user?.name,
  ACTION: (entry) => entry.action,
  TARGET: (entry) => entry.targetName ?? entry.target,
  REASON: (entry) => entry.reason,
};

interface WindowOptions {
  since: string;
  until?: string;
}

const withWindow = (command: Command): Command =>
  command
    .option('--since <time>', 'beginning: ISO 8601, or a duration before now such as 7d', '7d')
    .option('--until <time>', 'end (default: now)');

const windowOf = ({ since, until }: WindowOptions) => ({
  from: parseSince('--since', since, Date.now(), note),
  to: given(until, (value) => parseSince('--until', value, Date.now(), note)),
});

const BY = ['USER', 'SITE', 'APPLICATION'] as const;

export function addRecords(program: Command): void {
  const usage = addListOptions(
    withWindow(
      addCommand(
        program,
        'usage',
        'show CPU time, other resources and jobs by user, site or application; users see their own jobs',
      ).option('--by <what>', 'user, site or application', 'user'),
    ).option('--first <n>', 'how many, most CPU time first', '100'),
    USAGE_COLUMNS,
  );
  usage.action(async (options: WindowOptions & { by: string; first: string }) => {
    const variables = {
      by: parseWord('--by', options.by, BY),
      ...windowOf(options),
      first: parseNumber('--first', options.first, { min: 1, max: 5000, integer: true }),
    };
    const client = connect();
    await showList(usage, USAGE_COLUMNS, async () => (await client.request(UsageDocument, variables)).usage);
  });

  const lost = addListOptions(
    withWindow(
      addCommand(
        program,
        'lost',
        'show work lost by runs that were stopped for other jobs or for holds, by site and class; users see their own jobs',
      ),
    ),
    LOST_COLUMNS,
  );
  lost.action(async (options: WindowOptions) => {
    const variables = windowOf(options);
    const client = connect();
    await showList(
      lost,
      LOST_COLUMNS,
      async () => (await client.request(LostWorkDocument, variables)).lostWork,
    );
  });

  const classes = addListOptions(
    addCommand(
      program,
      'classes',
      'show the classes of jobs of the policy: who may use them, what they mean for preemption, and how many of their jobs wait and run',
    ),
    CLASS_COLUMNS,
  );
  classes.action(async () => {
    const client = connect();
    await showList(
      classes,
      CLASS_COLUMNS,
      async () => (await client.request(JobClassesDocument, {})).jobClasses,
    );
  });

  const audit = addListOptions(
    addCommand(program, 'audit', 'show the audit log, newest first (ADMIN)')
      .option('--first <n>', 'how many', '50')
      .option('--after <cursor>', 'continue after this cursor of an earlier page'),
    AUDIT_COLUMNS,
  );
  audit.action(async (options: { first: string; after?: string }) => {
    const first = parseNumber('--first', options.first, { min: 1, max: 5000, integer: true });
    const client = connect();
    let next: string | null = null;
    const ask = async (): Promise<readonly Entry[]> => {
      const page = (await client.request(AuditDocument, { first, after: options.after })).audit;
      next = page.pageInfo.hasNextPage ? (page.pageInfo.endCursor ?? null) : null;
      return page.nodes;
    };
    await showList(audit, AUDIT_COLUMNS, ask, () => {
      if (next !== null) note(`more: --after ${next}`);
    });
  });
}
