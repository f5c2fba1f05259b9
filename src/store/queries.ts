/** Reads for people: pages, and look-ups by ids for loaders. Each is one statement, whatever the number of rows. */
import type { JobState } from '../core/states.js';
import { plainColumn } from './columns.js';
import type { PrismaClient } from './generated/client.js';
import type { JobFilter } from './job-filter.js';
import type {
  ApiKeyRow,
  AuditRow,
  DatasetRow,
  DecisionRow,
  EventRow,
  GroupRow,
  JobRow,
  LicenseRow,
  LinkMeasurementRow,
  LinkRow,
  MachineRow,
  OutputRow,
  PolicyRow,
  RatioPointRow,
  RatioRow,
  ReservationRow,
  RunRow,
  SimulationRow,
  SiteRow,
  SiteStats,
  UserRow,
} from './rows.js';
import { latestCursor } from './sql/grid.js';
import { countJobs, listJobs } from './sql/jobs.js';
import * as ratiosSql from './sql/ratios.js';
import * as rows from './sql/rows.js';
import type { Sql } from './sql.js';
import { read } from './statement.js';
import type { Cursor } from './store.js';

export type { JobFilter };

export interface JobPage {
  /** ENDED lists ended jobs only, DEADLINE those with a deadline; ties by id. */
  order: 'SUBMITTED' | 'ENDED' | 'DEADLINE';
  direction: 'ASC' | 'DESC';
  /** From the end of the list towards its beginning; the rows are in the order of the list all the same. */
  backward: boolean;
  /** Beyond this row in the direction of reading; `at` (epoch seconds) is what the order compares, ignored for SUBMITTED. */
  from: { id: number; at: number } | null;
  limit: number;
}

/** Whether a user may see the event `v`: the parameter is the user's id. */
const visibleTo = (user: string): string =>
  `(v.user_id = ${user}::integer OR v.kind IN ('SITE', 'MACHINE', 'LICENSE', 'POLICY', 'DATA') OR (v.kind = 'USER' AND v.entity_id = ${user}::integer))`;

const allJobColumns = Object.keys(rows.jobColumns) as (keyof JobRow)[];

export class Queries {
  constructor(private readonly prisma: PrismaClient) {}

  // Jobs --------------------------------------------------------------------------------------------------------------

  /** A page of jobs. `columns`: what to read of each, `id` and what the order compares always included; by default all. */
  async jobs<K extends keyof JobRow = keyof JobRow>(
    filter: JobFilter,
    page: JobPage,
    columns: readonly K[] = allJobColumns as K[],
  ): Promise<Pick<JobRow, K>[]> {
    const found = await this.run<unknown[][]>(listJobs(filter, page, columns));
    const list = found.map((values) => rowOf<K>(columns, values));
    return page.backward ? list.reverse() : list;
  }

  /** How many match, counted up to `limit`. */
  jobCount(filter: JobFilter, limit: number): Promise<number> {
    return this.run<number>(countJobs(filter, limit));
  }

  /** Those of the jobs that exist, in the order of ids. */
  jobsByIds(ids: readonly number[]): Promise<JobRow[]> {
    const page: JobPage = {
      order: 'SUBMITTED',
      direction: 'ASC',
      backward: false,
      from: null,
      limit: ids.length,
    };
    return ids.length === 0 ? Promise.resolve([]) : this.jobs({ ids }, page);
  }

  /** Runs of the jobs, by job and epoch. */
  runsOfJobs(jobIds: readonly number[]): Promise<RunRow[]> {
    return this.list(
      rows.runRow,
      'SELECT * FROM runs WHERE job_id = ANY ($1::bigint[]) ORDER BY job_id, epoch',
      plainColumn(jobIds),
    );
  }

  /** What a run wrote; of the latest epoch that wrote anything to the stream when `epoch` is null. */
  async output(jobId: number, epoch: number | null, stream: 'STDOUT' | 'STDERR'): Promise<OutputRow | null> {
    const query = `SELECT * FROM outputs WHERE job_id = $1::bigint AND epoch = coalesce($2::integer, epoch) AND stream = $3::text::output_stream
      ORDER BY epoch DESC LIMIT 1`;
    return (await this.list<OutputRow>(rows.outputRow, query, jobId, epoch, stream))[0] ?? null;
  }

  /** Decisions about a job behind a decision, oldest first. */
  decisionsOfJob(jobId: number, afterId: number, limit: number): Promise<DecisionRow[]> {
    const query =
      'SELECT * FROM decisions WHERE job_id = $1::bigint AND id > $2::bigint ORDER BY id LIMIT $3';
    return this.list(rows.decisionRow, query, jobId, afterId, limit);
  }

  /** All decisions behind a decision, oldest first. */
  decisions(afterId: number, limit: number): Promise<DecisionRow[]> {
    return this.list(
      rows.decisionRow,
      'SELECT * FROM decisions WHERE id > $1::bigint ORDER BY id LIMIT $2',
      afterId,
      limit,
    );
  }

  /** Decisions before a decision (null: from the newest), newest first. */
  latestDecisions(beforeId: number | null, limit: number): Promise<DecisionRow[]> {
    const query =
      'SELECT * FROM decisions WHERE $1::bigint IS NULL OR id < $1::bigint ORDER BY id DESC LIMIT $2';
    return this.list(rows.decisionRow, query, beforeId, limit);
  }

  /** By which cycle each job was last given to a site, where that was in a batch (policy `job-ratio`). */
  batchesOfJobs(jobIds: readonly number[]): Promise<{ jobId: number; batch: string }[]> {
    const text = `SELECT coalesce(json_agg(json_build_object('jobId', d.job_id, 'batch', d.cycle)), '[]')::text AS v FROM (
      SELECT DISTINCT ON (job_id) job_id, cycle, policy_version FROM decisions WHERE job_id = ANY ($1::bigint[]) AND kind = 'DISPATCH'
       ORDER BY job_id, id DESC) d
      JOIN policies p ON p.version = d.policy_version AND p.document -> 'dispatch' ->> 'kind' = 'job-ratio'`;
    return read(this.prisma, text, plainColumn(jobIds));
  }

  decisionsByIds(ids: readonly number[]): Promise<DecisionRow[]> {
    return this.list(
      rows.decisionRow,
      'SELECT * FROM decisions WHERE id = ANY ($1::bigint[]) ORDER BY id',
      plainColumn(ids),
    );
  }

  // Events ------------------------------------------------------------------------------------------------------------

  /**
   * Events behind a cursor, oldest first; those that `userId` may see (its own jobs' and users', the directory's, policies'), or all.
   * 'too-old': retention has passed the cursor.
   */
  async events(after: Cursor, userId: number | null, limit: number): Promise<EventRow[] | 'too-old'> {
    const text = `SELECT CASE WHEN $1::bigint >= (SELECT id FROM events_horizon) THEN (
      SELECT coalesce(json_agg(${rows.eventRow}), '[]') FROM (
        SELECT * FROM events v WHERE id > $1::bigint AND ($2::integer IS NULL OR ${visibleTo('$2')}) ORDER BY id LIMIT $3) v) END::text AS v`;
    return (await read<EventRow[] | null>(this.prisma, text, after, userId, limit)) ?? 'too-old';
  }

  /** The latest events that `userId` may see (null: of all), oldest first. */
  latestEvents(userId: number | null, limit: number): Promise<EventRow[]> {
    const query = `SELECT * FROM (SELECT * FROM events v WHERE $1::integer IS NULL OR ${visibleTo('$1')} ORDER BY id DESC LIMIT $2) v ORDER BY id`;
    return this.list(rows.eventRow, query, userId, limit);
  }

  /** Events of a job behind a cursor, oldest first, as far back as they are kept. */
  eventsOfJob(jobId: number, after: Cursor, limit: number): Promise<EventRow[]> {
    const query = `SELECT * FROM events WHERE entity_id = $1::bigint AND seq IS NOT NULL AND id > $2::bigint ORDER BY seq LIMIT $3`;
    return this.list(rows.eventRow, query, jobId, after, limit);
  }

  eventsByIds(ids: readonly number[]): Promise<EventRow[]> {
    return this.list(
      rows.eventRow,
      'SELECT * FROM events WHERE id = ANY ($1::bigint[]) ORDER BY id',
      plainColumn(ids),
    );
  }

  /** The cursor behind the latest event. */
  latestCursor(): Promise<Cursor> {
    return read<number>(this.prisma, `SELECT ${latestCursor}::text AS v`).then(String);
  }

  // Directory ---------------------------------------------------------------------------------------------------------

  /** Sites in service behind a name, by name. */
  sites(afterName: string, limit: number): Promise<SiteRow[]> {
    const query = `SELECT * FROM sites WHERE removed_at IS NULL AND name COLLATE "C" > $1 ORDER BY name COLLATE "C" LIMIT $2`;
    return this.list(rows.siteRow, query, afterName, limit);
  }

  /** Those that exist, removed ones too, by id. So all the look-ups below. */
  sitesByIds(ids: readonly number[]): Promise<SiteRow[]> {
    return this.list(
      rows.siteRow,
      'SELECT * FROM sites WHERE id = ANY ($1::integer[]) ORDER BY id',
      plainColumn(ids),
    );
  }

  /** In service; null when there is none. */
  async siteByName(name: string): Promise<SiteRow | null> {
    const found = await this.list<SiteRow>(
      rows.siteRow,
      'SELECT * FROM sites WHERE removed_at IS NULL AND name = $1',
      name,
    );
    return found[0] ?? null;
  }

  /** Machines in service behind (site, name), in that order; of one site or of all. */
  machines(
    siteId: number | null,
    after: { siteId: number; name: string } | null,
    limit: number,
  ): Promise<MachineRow[]> {
    const query = `SELECT * FROM machines WHERE removed_at IS NULL AND ($1::integer IS NULL OR site_id = $1)
      AND (site_id, name COLLATE "C") > ($2::integer, $3::text) ORDER BY site_id, name COLLATE "C" LIMIT $4`;
    return this.list(rows.machineRow, query, siteId, after?.siteId ?? 0, after?.name ?? '', limit);
  }

  machinesByIds(ids: readonly number[]): Promise<MachineRow[]> {
    return this.list(
      rows.machineRow,
      'SELECT * FROM machines WHERE id = ANY ($1::integer[]) ORDER BY id',
      plainColumn(ids),
    );
  }

  /** Machines in service of the sites, by site and name. */
  machinesOfSites(siteIds: readonly number[]): Promise<MachineRow[]> {
    const query = `SELECT * FROM machines WHERE removed_at IS NULL AND site_id = ANY ($1::integer[]) ORDER BY site_id, name COLLATE "C"`;
    return this.list(rows.machineRow, query, plainColumn(siteIds));
  }

  /** License pools in service behind (kind, id), in that order. */
  licenses(after: { kind: string; id: number } | null, limit: number): Promise<LicenseRow[]> {
    const query = `SELECT * FROM licenses WHERE removed_at IS NULL AND (kind COLLATE "C", id) > ($1::text, $2::integer)
      ORDER BY kind COLLATE "C", id LIMIT $3`;
    return this.list(rows.licenseRow, query, after?.kind ?? '', after?.id ?? 0, limit);
  }

  licensesByIds(ids: readonly number[]): Promise<LicenseRow[]> {
    return this.list(
      rows.licenseRow,
      'SELECT * FROM licenses WHERE id = ANY ($1::integer[]) ORDER BY id',
      plainColumn(ids),
    );
  }

  /** Pools in service that belong to the sites, by kind. */
  licensesOfSites(siteIds: readonly number[]): Promise<LicenseRow[]> {
    const query = `SELECT * FROM licenses WHERE removed_at IS NULL AND site_id = ANY ($1::integer[]) ORDER BY kind COLLATE "C", id`;
    return this.list(rows.licenseRow, query, plainColumn(siteIds));
  }

  /** Users behind a name, by name. */
  users(afterName: string, limit: number): Promise<UserRow[]> {
    const query = `SELECT * FROM users WHERE name COLLATE "C" > $1 ORDER BY name COLLATE "C" LIMIT $2`;
    return this.list(rows.userRow, query, afterName, limit);
  }

  usersByIds(ids: readonly number[]): Promise<UserRow[]> {
    return this.list(
      rows.userRow,
      'SELECT * FROM users WHERE id = ANY ($1::integer[]) ORDER BY id',
      plainColumn(ids),
    );
  }

  async userByName(name: string): Promise<UserRow | null> {
    return (await this.list<UserRow>(rows.userRow, 'SELECT * FROM users WHERE name = $1', name))[0] ?? null;
  }

  apiKeysByIds(ids: readonly number[]): Promise<ApiKeyRow[]> {
    return this.list(
      rows.apiKeyRow,
      'SELECT * FROM api_keys WHERE id = ANY ($1::integer[]) ORDER BY id',
      plainColumn(ids),
    );
  }

  apiKeysOfUsers(userIds: readonly number[]): Promise<ApiKeyRow[]> {
    return this.list(
      rows.apiKeyRow,
      'SELECT * FROM api_keys WHERE user_id = ANY ($1::integer[]) ORDER BY user_id, id',
      plainColumn(userIds),
    );
  }

  /** Jobs that each user submitted within the user's own period; users without a quota are left out. */
  async quotaUsed(userIds: readonly number[], now: number): Promise<Map<number, number>> {
    const text = `SELECT coalesce(json_agg(json_build_array(u.id, coalesce(s.jobs, 0))), '[]')::text AS v FROM users u
      LEFT JOIN LATERAL (SELECT sum(job_count) AS jobs FROM submissions s
        WHERE s.user_id = u.id AND s.at > to_timestamp($2::float8) - make_interval(secs => u.submission_period_s)) s ON true
      WHERE u.id = ANY ($1::integer[]) AND u.submission_limit IS NOT NULL`;
    return new Map(await read<[number, number][]>(this.prisma, text, plainColumn(userIds), now));
  }

  // Data --------------------------------------------------------------------------------------------------------------

  /** Datasets in service behind a name, by name; of those whose names contain a text, where one is given. */
  datasets(containing: string | null, afterName: string, limit: number): Promise<DatasetRow[]> {
    const query = `SELECT * FROM datasets WHERE removed_at IS NULL AND name COLLATE "C" > $2 AND ($1::text IS NULL OR strpos(name, $1) > 0)
      ORDER BY name COLLATE "C" LIMIT $3`;
    return this.list(rows.datasetRow, query, containing, afterName, limit);
  }

  datasetsByIds(ids: readonly number[]): Promise<DatasetRow[]> {
    return this.list(
      rows.datasetRow,
      'SELECT * FROM datasets WHERE id = ANY ($1::integer[]) ORDER BY id',
      plainColumn(ids),
    );
  }

  /** In service; null when there is none. */
  async datasetByName(name: string): Promise<DatasetRow | null> {
    const query = 'SELECT * FROM datasets WHERE removed_at IS NULL AND name COLLATE "C" = $1';
    return (await this.list<DatasetRow>(rows.datasetRow, query, name))[0] ?? null;
  }

  /** Links from a site, to a site, or all, behind (from, to), in that order. */
  links(
    filter: { fromSiteId?: number; toSiteId?: number },
    after: { fromSiteId: number; toSiteId: number } | null,
    limit: number,
  ): Promise<LinkRow[]> {
    const query = `SELECT * FROM links WHERE ($1::integer IS NULL OR from_site_id = $1) AND ($2::integer IS NULL OR to_site_id = $2)
      AND (from_site_id, to_site_id) > ($3::integer, $4::integer) ORDER BY from_site_id, to_site_id LIMIT $5`;
    const { fromSiteId = null, toSiteId = null } = filter;
    return this.list(
      rows.linkRow,
      query,
      fromSiteId,
      toSiteId,
      after?.fromSiteId ?? 0,
      after?.toSiteId ?? 0,
      limit,
    );
  }

  /** The last measurements of a link, newest first. */
  linkHistory(fromSiteId: number, toSiteId: number, limit: number): Promise<LinkMeasurementRow[]> {
    const query =
      'SELECT * FROM link_measurements WHERE from_site_id = $1 AND to_site_id = $2 ORDER BY id DESC LIMIT $3';
    return this.list(rows.linkMeasurementRow, query, fromSiteId, toSiteId, limit);
  }

  // What runs have shown ------------------------------------------------------------------------------------------------

  /** What the runs of an application have shown (null: none has ended well), and the latest point of any series by then. */
  async ratio(application: string): Promise<{ cursor: number; ratio: RatioRow | null }> {
    const [cursor, ratio] = await read<[number, RatioRow | null]>(this.prisma, ratiosSql.ratio, application);
    return { cursor, ratio };
  }

  /** Points of an application's series beyond a point (null: from the beginning, or backward from the end), oldest first. */
  async ratioPoints(
    application: string,
    from: number | null,
    limit: number,
    backward: boolean,
  ): Promise<RatioPointRow[]> {
    const query = `SELECT * FROM job_ratios WHERE application = $1 AND ($2::bigint IS NULL OR id ${backward ? '<' : '>'} $2)
      ORDER BY id ${backward ? 'DESC' : 'ASC'} LIMIT $3`;
    const found = await this.list<RatioPointRow>(rows.ratioPointRow, query, application, from, limit);
    return backward ? found.reverse() : found;
  }

  /** The id of the latest point of any series: a cursor behind all there are. */
  latestRatioPoint(): Promise<number> {
    return read(this.prisma, ratiosSql.latestPoint);
  }

  /** Points behind a point, of one application or of all, oldest first. 'too-old': retention has passed it. */
  async ratioPointsSince(
    application: string | null,
    after: number,
    limit: number,
  ): Promise<RatioPointRow[] | 'too-old'> {
    const found = await read<RatioPointRow[] | null>(
      this.prisma,
      ratiosSql.pointsSince,
      after,
      application,
      limit,
    );
    return found ?? 'too-old';
  }

  // Groups ------------------------------------------------------------------------------------------------------------

  async group(id: number): Promise<GroupRow | null> {
    return (await this.groupsByIds([id]))[0] ?? null;
  }

  groupsByIds(ids: readonly number[]): Promise<GroupRow[]> {
    return this.list(
      rows.groupRow,
      'SELECT * FROM job_groups WHERE id = ANY ($1::bigint[]) ORDER BY id',
      plainColumn(ids),
    );
  }

  /** Groups before a group (null: from the newest), newest first; of one user or of all. */
  groups(userId: number | null, beforeId: number | null, limit: number): Promise<GroupRow[]> {
    const query = `SELECT * FROM job_groups WHERE ($1::integer IS NULL OR user_id = $1) AND ($2::bigint IS NULL OR id < $2)
      ORDER BY id DESC LIMIT $3`;
    return this.list(rows.groupRow, query, userId, beforeId, limit);
  }

  /** How many jobs of each group are in which state. Jobs that retention has deleted are not counted. */
  groupCounts(ids: readonly number[]): Promise<{ groupId: number; state: JobState; jobs: number }[]> {
    const text = `SELECT coalesce(json_agg(json_build_object('groupId', id, 'state', state, 'jobs', jobs)), '[]')::text AS v FROM (
      SELECT g.id, j.state, count(*) AS jobs FROM job_groups g JOIN jobs j ON j.id BETWEEN g.first_job_id AND g.last_job_id AND j.group_id = g.id
       WHERE g.id = ANY ($1::bigint[]) GROUP BY 1, 2) t`;
    return read(this.prisma, text, plainColumn(ids));
  }

  /** The policy in force, or a version of it; null when there is none. */
  async policy(version: number | null = null): Promise<PolicyRow | null> {
    const query =
      'SELECT * FROM policies WHERE version = coalesce($1::integer, version) ORDER BY version DESC LIMIT 1';
    return (await this.list<PolicyRow>(rows.policyRow, query, version))[0] ?? null;
  }

  /** Versions before a version (null: from the newest), newest first. */
  policies(beforeVersion: number | null, limit: number): Promise<PolicyRow[]> {
    const query =
      'SELECT * FROM policies WHERE $1::integer IS NULL OR version < $1 ORDER BY version DESC LIMIT $2';
    return this.list(rows.policyRow, query, beforeVersion, limit);
  }

  /** Simulations before a simulation (null: from the newest), newest first. */
  simulations(beforeId: number | null, limit: number): Promise<SimulationRow[]> {
    const query = 'SELECT * FROM simulations WHERE $1::integer IS NULL OR id < $1 ORDER BY id DESC LIMIT $2';
    return this.list(rows.simulationRow, query, beforeId, limit);
  }

  simulationsByIds(ids: readonly number[]): Promise<SimulationRow[]> {
    return this.list(
      rows.simulationRow,
      'SELECT * FROM simulations WHERE id = ANY ($1::integer[]) ORDER BY id',
      plainColumn(ids),
    );
  }

  /** The audit log before an entry (null: from the newest), newest first. */
  audits(beforeId: number | null, limit: number): Promise<AuditRow[]> {
    const query =
      'SELECT * FROM audits WHERE $1::bigint IS NULL OR id < $1::bigint ORDER BY id DESC LIMIT $2';
    return this.list(rows.auditRow, query, beforeId, limit);
  }

  /** Reservations in force of the sites. */
  reservationsOfSites(siteIds: readonly number[]): Promise<ReservationRow[]> {
    const query = `SELECT r.* FROM reservations r JOIN jobs j ON j.id = r.job_id AND j.state = 'DISPATCHED' AND j.site_id = r.site_id
      WHERE r.site_id = ANY ($1::integer[])`;
    return this.list(rows.reservationRow, query, plainColumn(siteIds));
  }

  /** Queue depths come from job_counts, which the triggers keep: nothing is counted. */
  siteStats(siteIds: readonly number[]): Promise<SiteStats[]> {
    const text = `SELECT coalesce(json_agg(json_build_object('siteId', s.id, 'metaQueued', c.meta_queued, 'queued', c.queued, 'running', c.running, 'cpus', m.cpus,
        'cpusUsed', m.cpus_used) ORDER BY s.id), '[]')::text AS v
      FROM unnest($1::integer[]) AS s (id),
        LATERAL (SELECT coalesce(sum(jobs) FILTER (WHERE state = 'QUEUED'), 0) AS meta_queued,
                        coalesce(sum(jobs) FILTER (WHERE state = 'DISPATCHED'), 0) AS queued,
                        coalesce(sum(jobs) FILTER (WHERE state IN ('ASSIGNED', 'RUNNING', 'CANCELLING')), 0) AS running
                   FROM job_counts WHERE site_id = s.id) c,
        LATERAL (SELECT coalesce(sum(cpus), 0) AS cpus, coalesce(sum(cpus_used), 0) AS cpus_used
                   FROM machines WHERE site_id = s.id AND removed_at IS NULL) m`;
    return read(this.prisma, text, plainColumn(siteIds));
  }

  /** Whether the user has submitted jobs with this idempotency key, as far back as submissions are kept. */
  idempotencyKeyKnown(userId: number, key: string): Promise<boolean> {
    const text = `SELECT EXISTS (SELECT 1 FROM submissions WHERE user_id = $1::integer AND idempotency_key = $2)::text AS v`;
    return read<boolean>(this.prisma, text, userId, key);
  }

  /** Jobs that have not ended, by the scheduler that holds them (null: the root) and state. */
  jobCounts(): Promise<{ siteId: number | null; state: JobState; jobs: number }[]> {
    const text = `SELECT coalesce(json_agg(json_build_object('siteId', nullif(site_id, 0), 'state', state, 'jobs', jobs)), '[]')::text AS v
      FROM job_counts WHERE jobs <> 0`;
    return read(this.prisma, text);
  }

  private run<T>({ text, values }: Sql): Promise<T> {
    return read(this.prisma, text, ...values);
  }

  private list<T>(row: string, query: string, ...parameters: unknown[]): Promise<T[]> {
    return read<T[]>(this.prisma, rows.listOf(row, query), ...parameters);
  }
}

function rowOf<K extends keyof JobRow>(columns: readonly K[], values: readonly unknown[]): Pick<JobRow, K> {
  const row: Partial<Record<K, unknown>> = {};
  for (let i = 0; i < columns.length; i++) row[columns[i] as K] = values[i];
  return row as Pick<JobRow, K>;
}
