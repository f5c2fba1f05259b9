/**
 * Reads for people: pages, and look-ups by ids for loaders. Each is one statement, whatever the number of rows. The directory is read
 * through Prisma; jobs and what happens to them, of which a page may have thousands, by statements.
 */
import { kindsInBatches } from '../core/index.js';
import { isTerminal, type JobState, liveStates } from '../core/states.js';
import { MAX } from '../platform/limits.js';
import { list, table } from './columns.js';
import { TIMES_SHOWN } from './constants.js';
import { type FileRow, filesOfRuns, type KeptFile, keptCheckpoints, keptOutputs } from './files.js';
import type { Prisma } from './generated/client.js';
import * as history from './history.js';
import type { ClosedMachine } from './holds.js';
import { latestCursor } from './images.js';
import { type JobOutput, readField, shownFields } from './job-fields.js';
import { type JobFilter, jobConditions } from './job-filter.js';
import type { JobWait } from './needs.js';
import type { Database } from './pool.js';
import { dependentsOf, type OpenNeeds, openNeeds, waitsOf } from './postgres/needs.js';
import { instant, plain, type Reading, readRows, rowsOf, seconds } from './read-rows.js';
import type {
  AgentRow,
  ApiKeyRow,
  AuditRow,
  DatasetRow,
  DecisionRow,
  EventRow,
  GroupRow,
  HoldRow,
  HoldTimeRow,
  JobRow,
  LicenseRow,
  LinkMeasurementRow,
  LinkRow,
  MachineRow,
  OutputRow,
  Plain,
  PolicyRow,
  RatioPointRow,
  RatioRow,
  ReservationRow,
  ResourceKindRow,
  RunRow,
  RunStepRow,
  SchedulerRow,
  SessionRow,
  SignInRow,
  SimulationRow,
  SiteImageRow,
  SiteRow,
  SiteStats,
  StagingRow,
  StepsPage,
  TaskRow,
  UserRow,
} from './rows.js';
import { and, empty, labels, raw, type Sql, sql } from './sql.js';
import { rows, value } from './statement.js';
import type { Cursor, OutputPiece } from './store.js';
import { type TerminalRun, terminalRun } from './terminals.js';
import { usageColumn } from './usage.js';

/** By what jobs are counted. */
const COUNTED = {
  STATE: sql`j.state`,
  USER: sql`j.user_id`,
  SITE: sql`j.site_id`,
  APPLICATION: sql`j.application`,
  CAUSE: sql`j.cause`,
  CLASS: sql`j.class`,
};
export type JobCountBy = keyof typeof COUNTED;
export interface JobCountRow {
  by: JobCountBy;
  /** An id in digits, a name or a word; null: none. */
  value: string | null;
  count: number;
}

/** That a job `j` has no copy: it has not been run again. */
const notRunAgain = sql`NOT EXISTS (SELECT FROM jobs r WHERE r.rerun_of = j.id)`;

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

const allJobFields = [...Object.keys(shownFields), 'needsOthers'] as (keyof JobRow)[];
/** The edges are looked for of jobs only that can have any: others never wait, nor have a time from which they may start. */
const readJobField = (field: keyof JobRow): string =>
  field === 'needsOthers'
    ? `CASE WHEN eligible_at IS NOT NULL OR state IN ('BLOCKED', 'HELD', 'CANCELLED') THEN EXISTS (SELECT FROM need_edges e WHERE e.job_id = v.id) ELSE false END`
    : readField(field, '');

/** A job of a group. `group`: its name, or the number of the bulk group. */
export interface GroupMember {
  id: number;
  group: string;
  arrayIndex: number | null;
}

export class Queries {
  private readonly pool: Database['pool'];
  private readonly prisma: Database['prisma'];

  constructor({ pool, prisma }: Pick<Database, 'pool' | 'prisma'>) {
    this.pool = pool;
    this.prisma = prisma;
  }

  // Jobs --------------------------------------------------------------------------------------------------------------

  /** A page of jobs. `fields`: what to read of each, `id` and what the order compares always included; by default all. */
  async jobs<K extends keyof JobRow = keyof JobRow>(
    filter: JobFilter,
    page: JobPage,
    fields: readonly K[] = allJobFields as K[],
  ): Promise<Pick<JobRow, K>[]> {
    const reading = Object.fromEntries(fields.map((field) => [field, readJobField(field)]));
    const found = await readRows<Pick<JobRow, K>>(
      this.pool,
      reading as Reading<Pick<JobRow, K>>,
      pageOfJobs(filter, page),
    );
    return page.backward ? found.reverse() : found;
  }

  /**
   * How many match, counted up to `limit`. Of jobs that have not ended, at a site or in all, the counts are kept by triggers, exactly:
   * then nothing is counted, however many there are.
   */
  jobCount(filter: JobFilter, limit: number): Promise<number> {
    const { states, siteId, ...others } = filter;
    if (states?.every((state) => !isTerminal(state)) && Object.keys(others).length === 0) {
      const site = siteId === undefined ? sql`true` : sql`site_id = ${siteId}`;
      return value(
        this.pool,
        sql`SELECT least(coalesce(sum(jobs), 0), ${limit}::integer) AS v FROM job_counts WHERE state = ANY (${list('job_state', states)}) AND ${site}`,
      );
    }
    return value(
      this.pool,
      sql`SELECT count(*) AS v FROM (SELECT 1 FROM jobs j WHERE ${and(jobConditions(filter))} LIMIT ${limit}) v`,
    );
  }

  /** How many of those that match, of up to `limit`, have each value, most first; null: those without one. */
  jobCountsBy(filter: JobFilter, by: JobCountBy, { limit, first }: { limit: number; first: number }) {
    return value<JobCountRow[]>(
      this.pool,
      sql`SELECT coalesce(json_agg(json_build_object('by', ${by}::text, 'value', value, 'count', count)), '[]') AS v FROM
            (SELECT value, count(*) FROM (SELECT ${COUNTED[by]}::text AS value FROM jobs j WHERE ${and(jobConditions(filter))} LIMIT ${limit}) v
              GROUP BY value ORDER BY count DESC, value LIMIT ${first}) v`,
    );
  }

  /** Those of the jobs that exist, in the order of ids. */
  jobsByIds(ids: readonly number[]): Promise<JobRow[]> {
    const page = {
      order: 'SUBMITTED',
      direction: 'ASC',
      backward: false,
      from: null,
      limit: ids.length,
    } as const;
    return ids.length === 0 ? Promise.resolve([]) : this.jobs({ ids }, page);
  }

  /** Whose the jobs are, of those that exist. */
  ownersOf(ids: readonly number[]): Promise<{ id: number; userId: number }[]> {
    return rows(
      this.pool,
      sql`SELECT id, user_id AS "userId" FROM jobs WHERE id = ANY (${list('bigint', ids)})`,
    );
  }

  /** The user's jobs with one of these group names, by id. */
  async membersByName(userId: number, names: readonly string[]): Promise<GroupMember[]> {
    if (names.length === 0) return [];
    return rows(
      this.pool,
      sql`
SELECT id, group_name AS "group", array_index AS "arrayIndex" FROM jobs j
 WHERE group_name = ANY (${list('text', names)}) AND user_id = ${userId} AND ${notRunAgain} ORDER BY id`,
    );
  }

  /** The jobs of bulk groups, by id; of a job that has been run again, its latest copy. */
  async membersOfGroups(ids: readonly number[]): Promise<GroupMember[]> {
    if (ids.length === 0) return [];
    return rows(
      this.pool,
      sql`
WITH RECURSIVE member (id, "group", "arrayIndex") AS (
  SELECT j.id, g.id::text, j.array_index
    FROM job_groups g JOIN jobs j ON j.id BETWEEN g.first_job_id AND g.last_job_id AND j.group_id = g.id
   WHERE g.id = ANY (${list('bigint', ids)})
  UNION ALL
  SELECT k.id, m."group", k.array_index FROM member m JOIN jobs k ON k.rerun_of = m.id AND k.rerun_of IS NOT NULL
) SELECT * FROM member j WHERE ${notRunAgain} ORDER BY id`,
    );
  }

  /** What jobs keep of their files, of those that exist and keep any. */
  outputsOf(ids: readonly number[]): Promise<{ id: number; outputs: JobOutput[] }[]> {
    return rows(
      this.pool,
      sql`SELECT id, outputs FROM jobs WHERE id = ANY (${list('bigint', ids)}) AND outputs IS NOT NULL`,
    );
  }

  /** The files that jobs have kept under these paths, by `outputKey`. */
  async keptOutputs(outputs: readonly { job: number; path: string }[]): Promise<Map<string, KeptFile>> {
    return outputs.length === 0 ? new Map() : keptOutputs(this.pool, outputs);
  }

  /** Those of the site that maintenance windows of some of its machines hold whole. */
  closedMachines(siteId: number): Promise<ClosedMachine[]> {
    return rows(
      this.pool,
      sql`
SELECT (m ->> 'machineId')::integer AS "machineId", extract(epoch FROM min(t.from_at))::float8 AS "from"
  FROM holds h JOIN hold_times t ON t.hold_id = h.id AND NOT t.over, jsonb_array_elements(h.machines) m
 WHERE h.site_id = ${siteId} AND h.ended_at IS NULL AND h.kind = 'MAINTENANCE' AND m -> 'amounts' = 'null' GROUP BY 1`,
    );
  }

  /** What earlier runs of these jobs have left under the paths of their checkpoints, by job. */
  async keptCheckpoints(
    runs: readonly { jobId: number; epoch: number; path: string }[],
  ): ReturnType<typeof keptCheckpoints> {
    return runs.length === 0 ? new Map() : keptCheckpoints(this.pool, runs);
  }

  /** What jobs wait for, or have waited for, by id. */
  waitsOf(ids: readonly number[]): Promise<Map<number, JobWait>> {
    return waitsOf(this.pool, ids);
  }

  /** The ids of copies that reruns have made of jobs. */
  async copiesOf(ids: readonly number[]): Promise<Map<number, number>> {
    const found = await rows<{ of: number; id: number }>(
      this.pool,
      sql`SELECT rerun_of AS of, id FROM jobs WHERE rerun_of = ANY (${list('bigint', ids)})`,
    );
    return new Map(found.map(({ of, id }) => [of, id]));
  }

  /** What a blocked job still waits for. */
  openNeeds(jobId: number): Promise<OpenNeeds | null> {
    return openNeeds(this.pool, jobId);
  }

  /** Jobs that need a job, or a group that it is in, by id. */
  async neededBy(jobId: number, limit: number): Promise<JobRow[]> {
    return this.jobsByIds(await dependentsOf(this.pool, jobId, limit));
  }

  /** The latest runs of the jobs, up to so many of each, by job and epoch; `before`: of those before this epoch. */
  runsOfJobs(jobIds: readonly number[], before: number | null = null): Promise<RunRow[]> {
    return readRows(
      this.pool,
      runReading,
      sql`
SELECT r.* FROM unnest(${list('bigint', jobIds)}) AS j (id) CROSS JOIN LATERAL (
  SELECT * FROM runs WHERE job_id = j.id AND (${before}::integer IS NULL OR epoch < ${before}::integer)
   ORDER BY epoch DESC LIMIT ${MAX.shownRuns}) r ORDER BY r.job_id, r.epoch`,
    );
  }

  /** Tasks of a run that have been reported one by one, by index; and whether any has. */
  async tasksOfRun(
    { jobId, epoch }: Pick<RunRow, 'jobId' | 'epoch'>,
    from: number,
    first: number,
  ): Promise<{ reported: boolean; tasks: TaskRow[] }> {
    const of = sql`FROM tasks WHERE job_id = ${jobId}::bigint AND epoch = ${epoch}::integer`;
    const [reported, tasks] = await Promise.all([
      value<boolean>(this.pool, sql`SELECT EXISTS (SELECT ${of}) AS v`),
      readRows(
        this.pool,
        taskReading,
        sql`SELECT * ${of} AND index >= ${from}::integer AND index < ${from + first}::integer ORDER BY index`,
      ),
    ]);
    return { reported, tasks };
  }

  /** Steps of runs, for each what is asked of it: at most `limit` behind a step of a task, by task and number. */
  async stepsOfRuns(pages: readonly StepsPage[]): Promise<RunStepRow[][]> {
    const asked = table('t', pages, {
      job_id: ['bigint', ({ jobId }) => jobId],
      epoch: ['integer', ({ epoch }) => epoch],
      task: ['integer', ({ behind }) => behind[0]],
      number: ['integer', ({ behind }) => behind[1]],
      most: ['integer', ({ limit }) => limit],
    });
    const found = await readRows<RunStepRow & { place: number }>(
      this.pool,
      { ...stepReading, place: 'place' },
      sql`
SELECT s.*, t.place FROM ${asked} CROSS JOIN LATERAL (
  SELECT * FROM run_steps s WHERE s.job_id = t.job_id AND s.epoch = t.epoch AND (s.task, s.number) > (t.task, t.number)
   ORDER BY s.task, s.number LIMIT t.most) s
 ORDER BY t.place, s.task, s.number`,
    );
    const rows: RunStepRow[][] = pages.map(() => []);
    for (const { place, ...step } of found) rows[place - 1]!.push(step);
    return rows;
  }

  /**
   * What a task of a run wrote to a stream from byte `from` on, at most so many bytes of it; null: nothing was kept. `epoch` null: the latest run that
   * wrote anything to it. `fromEnd`: the last bytes rather than the first.
   */
  async output(
    jobId: number,
    epoch: number | null,
    task: number,
    stream: OutputPiece['stream'],
    { from = 0, most = Number.MAX_SAFE_INTEGER, fromEnd = false } = {},
  ): Promise<OutputRow | null> {
    const found = await rows<{ epoch: number; start: number; length: number; bytes: number }>(
      this.pool,
      sql`
SELECT epoch, start::float8, length(body) AS length, bytes::float8 FROM outputs
 WHERE job_id = ${jobId}::bigint AND task = ${task}::integer AND stream = ${stream}::output_stream
   AND epoch = coalesce(${epoch}::integer, (SELECT max(epoch) FROM outputs WHERE job_id = ${jobId}::bigint AND task = ${task}::integer AND stream = ${stream}::output_stream))
 ORDER BY start, length(body) DESC`,
    );
    if (found.length === 0) return null;
    const bytes = Math.max(...found.map((piece) => piece.bytes));
    const first = fromEnd ? Math.max(from, bytes - most) : from;
    const wanted: { start: number; skip: number; length: number }[] = [];
    let end = first;
    let room = most;
    let kept = 0;
    let known = 0;
    for (const { start, length } of found) {
      kept += Math.max(0, start + length - Math.max(start, known));
      known = Math.max(known, start + length);
      const skip = Math.max(0, end - start);
      if (skip >= length || room <= 0) continue;
      const taken = Math.min(length - skip, room);
      wanted.push({ start, skip, length: taken });
      end = start + skip + taken;
      room -= taken;
    }
    const pieces = await rows<{ start: number; body: Buffer }>(
      this.pool,
      sql`
SELECT (start + skip)::float8 AS start, substring(body FROM t.skip + 1 FOR t.length) AS body
  FROM ${table('t', wanted, {
    start: ['bigint', (piece) => piece.start],
    skip: ['integer', (piece) => piece.skip],
    length: ['integer', (piece) => piece.length],
  })} JOIN outputs USING (start)
 WHERE job_id = ${jobId}::bigint AND task = ${task}::integer AND stream = ${stream}::output_stream AND epoch = ${found[0]!.epoch}::integer ORDER BY start`,
    );
    return { epoch: found[0]!.epoch, bytes, kept, pieces };
  }

  /** The same, and where it is longer than `most` bytes the first and the last half of so many. */
  async outputEnds(
    jobId: number,
    epoch: number | null,
    task: number,
    stream: OutputPiece['stream'],
    most: number,
  ): Promise<OutputRow | null> {
    const half = Math.ceil(most / 2);
    const head = await this.output(jobId, epoch, task, stream, { most: half });
    const last = head?.pieces.at(-1);
    if (!head || !last || head.kept <= half) return head;
    const rest = { from: last.start + last.body.length, most: half, fromEnd: true };
    const tail = await this.output(jobId, head.epoch, task, stream, rest);
    return tail && { ...tail, pieces: [...head.pieces, ...tail.pieces] };
  }

  /** What decides about input for a job's latest run; null: there is no such job. */
  terminalRun(jobId: number): Promise<TerminalRun | null> {
    return terminalRun(this.pool, jobId);
  }

  /** Decisions about a job behind a decision, oldest first. */
  decisionsOfJob(jobId: number, afterId: number, limit: number): Promise<DecisionRow[]> {
    return readRows(
      this.pool,
      decisionReading,
      sql`SELECT * FROM decisions WHERE job_id = ${jobId}::bigint AND id > ${afterId}::bigint ORDER BY id LIMIT ${limit}`,
    );
  }

  /** Its newest ones, oldest first. */
  async latestDecisionsOfJob(jobId: number, limit: number): Promise<DecisionRow[]> {
    const newest = await readRows(
      this.pool,
      decisionReading,
      sql`SELECT * FROM decisions WHERE job_id = ${jobId}::bigint ORDER BY id DESC LIMIT ${limit}`,
    );
    return newest.reverse();
  }

  /** All decisions behind a decision, oldest first. */
  decisions(afterId: number, limit: number): Promise<DecisionRow[]> {
    return readRows(
      this.pool,
      decisionReading,
      sql`SELECT * FROM decisions WHERE id > ${afterId}::bigint ORDER BY id LIMIT ${limit}`,
    );
  }

  /** Decisions before a decision (null: from the newest), newest first. */
  latestDecisions(beforeId: number | null, limit: number): Promise<DecisionRow[]> {
    return readRows(
      this.pool,
      decisionReading,
      sql`SELECT * FROM decisions WHERE ${before('id', beforeId)} ORDER BY id DESC LIMIT ${limit}`,
    );
  }

  decisionsByIds(ids: readonly number[]): Promise<DecisionRow[]> {
    return readRows(
      this.pool,
      decisionReading,
      sql`SELECT * FROM decisions WHERE id = ANY (${list('bigint', ids)}) ORDER BY id`,
    );
  }

  /** By which cycle each job was last given to a site, where that was in a batch. */
  batchesOfJobs(jobIds: readonly number[]): Promise<{ jobId: number; batch: string }[]> {
    return rows(
      this.pool,
      sql`
SELECT d.job_id AS "jobId", d.cycle AS batch FROM (
  SELECT DISTINCT ON (job_id) job_id, cycle, policy_version FROM decisions
   WHERE job_id = ANY (${list('bigint', jobIds)}) AND kind = 'DISPATCH' ORDER BY job_id, id DESC) d
  JOIN policies p ON p.version = d.policy_version AND p.document -> 'dispatch' ->> 'kind' = ANY (${list('text', kindsInBatches)})`,
    );
  }

  /** Jobs that have not ended, by the scheduler that holds them (null: the root) and state. */
  jobCounts(): Promise<{ siteId: number | null; state: JobState; jobs: number }[]> {
    return rows(
      this.pool,
      sql`SELECT nullif(site_id, 0) AS "siteId", state, jobs FROM job_counts WHERE jobs <> 0`,
    );
  }

  /** What a user has of what is limited. */
  async sharesOf(
    userId: number,
    now: number,
  ): Promise<{
    jobs: number;
    bytes: number;
    outputBytes: number;
    fileBytes: number;
    keys: number;
    simulations: number;
  }> {
    return value(
      this.pool,
      sql`
SELECT json_build_object(
  'jobs', coalesce((SELECT jobs FROM user_jobs WHERE user_id = ${userId}), 0),
  'bytes', coalesce((SELECT bytes FROM user_jobs WHERE user_id = ${userId}), 0),
  'outputBytes', coalesce((SELECT bytes FROM user_outputs WHERE user_id = ${userId}), 0),
  'fileBytes', coalesce((SELECT bytes FROM user_files WHERE user_id = ${userId}), 0),
  'keys', (SELECT count(*) FROM api_keys
            WHERE user_id = ${userId} AND revoked_at IS NULL AND (expires_at IS NULL OR expires_at > to_timestamp(${now}::float8))),
  'simulations', (SELECT count(*) FROM simulations WHERE user_id = ${userId} AND ended_at IS NULL)) AS v`,
    );
  }

  /** Whether the user has submitted jobs with this idempotency key, as far back as submissions are kept. */
  async idempotencyKeyKnown(userId: number, key: string): Promise<boolean> {
    const where = { userId_idempotencyKey: { userId, idempotencyKey: key } };
    return (await this.prisma.submission.findUnique({ where, select: { id: true } })) !== null;
  }

  // Events ------------------------------------------------------------------------------------------------------------

  /**
   * Events behind a cursor, oldest first; those that `userId` may see (its own jobs' and users', the directory's, policies'), or all.
   * 'too-old': retention has passed the cursor.
   */
  async events(after: Cursor, userId: number | null, limit: number): Promise<EventRow[] | 'too-old'> {
    const found = await value<unknown[][] | null>(
      this.pool,
      sql`
SELECT CASE WHEN ${after}::bigint >= (SELECT id FROM events_horizon) THEN (
  SELECT coalesce(json_agg(json_build_array(${raw(Object.values(eventReading).join(', '))})), '[]') FROM (
    SELECT * FROM events v WHERE id > ${after}::bigint AND ${visibleTo(userId)} ORDER BY id LIMIT ${limit}) v) END AS v`,
    );
    return found === null ? 'too-old' : rowsOf(eventReading, found);
  }

  /** The latest events that `userId` may see (null: of all), oldest first. */
  latestEvents(userId: number | null, limit: number): Promise<EventRow[]> {
    return readRows(
      this.pool,
      eventReading,
      sql`SELECT * FROM (SELECT * FROM events v WHERE ${visibleTo(userId)} ORDER BY id DESC LIMIT ${limit}) v ORDER BY id`,
    );
  }

  /** Events of a job behind a cursor, oldest first, as far back as they are kept. */
  eventsOfJob(jobId: number, after: Cursor, limit: number): Promise<EventRow[]> {
    return readRows(
      this.pool,
      eventReading,
      sql`SELECT * FROM events WHERE entity_id = ${jobId}::bigint AND seq IS NOT NULL AND id > ${after}::bigint ORDER BY seq LIMIT ${limit}`,
    );
  }

  eventsByIds(ids: readonly number[]): Promise<EventRow[]> {
    return readRows(
      this.pool,
      eventReading,
      sql`SELECT * FROM events WHERE id = ANY (${list('bigint', ids)}) ORDER BY id`,
    );
  }

  /** The cursor behind the latest event. */
  latestCursor(): Promise<Cursor> {
    return value(this.pool, sql`SELECT ${raw(latestCursor)}::text AS v`);
  }

  /** Whether machines, sites or licenses have changed since, or may have, because retention has passed the cursor. */
  isRegisteredAnew(since: Cursor): Promise<boolean> {
    return value(
      this.pool,
      sql`
SELECT ${since}::bigint < (SELECT id FROM events_horizon)
    OR EXISTS (SELECT FROM events WHERE id > ${since}::bigint AND kind IN ('SITE', 'MACHINE', 'LICENSE')) AS v`,
    );
  }

  // Directory ---------------------------------------------------------------------------------------------------------

  /** Sites in service behind a name, by name. */
  async sites(afterName: string, limit: number): Promise<SiteRow[]> {
    const where = { removedAt: null, name: { gt: afterName } };
    return all(await this.prisma.site.findMany({ where, orderBy: { name: 'asc' }, take: limit }));
  }

  /** Those that exist, removed ones too, by id. So all the look-ups below. */
  async sitesByIds(ids: readonly number[]): Promise<SiteRow[]> {
    return all(await this.prisma.site.findMany({ where: among(ids), orderBy: { id: 'asc' } }));
  }

  /** In service, by name: at most a thousand. */
  async schedulers(): Promise<SchedulerRow[]> {
    return all(
      await this.prisma.scheduler.findMany({ where: { removedAt: null }, orderBy: { name: 'asc' } }),
    );
  }

  async schedulersByIds(ids: readonly number[]): Promise<SchedulerRow[]> {
    return all(await this.prisma.scheduler.findMany({ where: among(ids), orderBy: { id: 'asc' } }));
  }

  /** Those in service below these; 0 stands for the root. */
  async schedulersBelow(ids: readonly number[]): Promise<SchedulerRow[]> {
    const where = { removedAt: null, ...below('parentId', ids) };
    return all(await this.prisma.scheduler.findMany({ where, orderBy: { name: 'asc' } }));
  }

  async sitesBelow(ids: readonly number[]): Promise<SiteRow[]> {
    const where = { removedAt: null, ...below('schedulerId', ids) };
    return all(await this.prisma.site.findMany({ where, orderBy: { name: 'asc' } }));
  }

  /** In service; null when there is none. */
  async siteByName(name: string): Promise<SiteRow | null> {
    const found = await this.prisma.site.findFirst({ where: { removedAt: null, name } });
    return found && plain(found);
  }

  /** Machines in service behind (site, name), in that order; of one site or of all. */
  async machines(
    siteId: number | null,
    after: { siteId: number; name: string } | null,
    limit: number,
  ): Promise<MachineRow[]> {
    const where: Prisma.MachineWhereInput = {
      removedAt: null,
      ...(siteId !== null && { siteId }),
      ...(after !== null && {
        OR: [{ siteId: { gt: after.siteId } }, { siteId: after.siteId, name: { gt: after.name } }],
      }),
    };
    const orderBy = [{ siteId: 'asc' }, { name: 'asc' }] as const;
    return all(await this.prisma.machine.findMany({ where, orderBy: [...orderBy], take: limit }));
  }

  /** Images at sites behind (site, name), in that order; of one site or of all. */
  images(
    siteId: number | null,
    after: { siteId: number; name: string } | null,
    limit: number,
  ): Promise<SiteImageRow[]> {
    const { siteId: afterSite, name: afterName } = after ?? { siteId: 0, name: '' };
    return rows(
      this.pool,
      sql`
SELECT site_id AS "siteId", name, max(size_mb) AS "sizeMb", count(*)::integer AS agents,
       coalesce(array_agg(DISTINCT digest ORDER BY digest) FILTER (WHERE digest IS NOT NULL), '{}') AS digests
  FROM agent_images
 WHERE (${siteId}::integer IS NULL OR site_id = ${siteId}::integer) AND (site_id, name) > (${afterSite}::integer, ${afterName}::text)
 GROUP BY site_id, name ORDER BY site_id, name LIMIT ${limit}::integer`,
    );
  }

  async machinesByIds(ids: readonly number[]): Promise<MachineRow[]> {
    return all(await this.prisma.machine.findMany({ where: among(ids), orderBy: { id: 'asc' } }));
  }

  async agentsByIds(ids: readonly number[]): Promise<AgentRow[]> {
    return all(await this.prisma.agent.findMany({ where: among(ids), orderBy: { id: 'asc' } }));
  }

  /** By site and host. */
  async agentsOfSites(siteIds: readonly number[]): Promise<AgentRow[]> {
    const where = { siteId: { in: [...siteIds] } };
    return all(
      await this.prisma.agent.findMany({
        where,
        orderBy: [{ siteId: 'asc' }, { host: 'asc' }, { id: 'asc' }],
      }),
    );
  }

  /** Machines in service that agents hold, or held last, by agent and name. */
  async machinesOfAgents(agentIds: readonly number[]): Promise<MachineRow[]> {
    const where = { removedAt: null, agentId: { in: [...agentIds] } };
    return all(await this.prisma.machine.findMany({ where, orderBy: [{ agentId: 'asc' }, { name: 'asc' }] }));
  }

  /** Machines in service of the sites, by site and name. */
  async machinesOfSites(siteIds: readonly number[]): Promise<MachineRow[]> {
    const where = { removedAt: null, siteId: { in: [...siteIds] } };
    return all(await this.prisma.machine.findMany({ where, orderBy: [{ siteId: 'asc' }, { name: 'asc' }] }));
  }

  /** License pools in service behind (kind, id), in that order. */
  async licenses(after: { kind: string; id: number } | null, limit: number): Promise<LicenseRow[]> {
    const where: Prisma.LicenseWhereInput = {
      removedAt: null,
      ...(after !== null && {
        OR: [{ kind: { gt: after.kind } }, { kind: after.kind, id: { gt: after.id } }],
      }),
    };
    return all(
      await this.prisma.license.findMany({ where, orderBy: [{ kind: 'asc' }, { id: 'asc' }], take: limit }),
    );
  }

  /** Holds behind an id, by id; `ended`: also those that have ended. */
  async holds(siteId: number | null, ended: boolean, afterId: number, limit: number): Promise<HoldRow[]> {
    const where = {
      id: { gt: afterId },
      ...(siteId !== null && { siteId }),
      ...(!ended && { endedAt: null }),
    };
    return all(await this.prisma.hold.findMany({ where, orderBy: { id: 'asc' }, take: limit }));
  }

  async holdsByIds(ids: readonly number[]): Promise<HoldRow[]> {
    return all(await this.prisma.hold.findMany({ where: among(ids), orderBy: { id: 'asc' } }));
  }

  /** Those with these ids or names: what has ended first, then by id. */
  async holdsNamed(ids: readonly number[], names: readonly string[]): Promise<HoldRow[]> {
    const found = all(
      await this.prisma.hold.findMany({
        where: { OR: [{ id: { in: [...ids] } }, { name: { in: [...names] } }] },
        orderBy: { id: 'asc' },
      }),
    );
    return [
      ...found.filter(({ endedAt }) => endedAt !== null),
      ...found.filter(({ endedAt }) => endedAt === null),
    ];
  }

  /** Of each of these holds the next TIMES_SHOWN times that are not over, in order. */
  openTimesOf(holdIds: readonly number[]): Promise<HoldTimeRow[]> {
    return rows(
      this.pool,
      sql`
SELECT t.id, t.hold_id AS "holdId", ${raw(seconds('t.from_at'))} AS "fromAt", ${raw(seconds('t.to_at'))} AS "toAt", t.over
  FROM unnest(${list('integer', holdIds)}) AS h (id) CROSS JOIN LATERAL (
    SELECT * FROM hold_times WHERE hold_id = h.id AND NOT over ORDER BY from_at LIMIT ${TIMES_SHOWN}) t ORDER BY t.hold_id, t.from_at`,
    );
  }

  async licensesByIds(ids: readonly number[]): Promise<LicenseRow[]> {
    return all(await this.prisma.license.findMany({ where: among(ids), orderBy: { id: 'asc' } }));
  }

  /** Devices of these machines, and shares of devices, that live runs have. */
  heldUnits(machineIds: readonly number[]): Promise<{ machineId: number; unit: string }[]> {
    return this.prisma.deviceHold.findMany({
      where: { machineId: { in: [...machineIds] } },
      select: { machineId: true, unit: true },
    });
  }

  /** Pools in service that belong to the sites, by kind. */
  async licensesOfSites(siteIds: readonly number[]): Promise<LicenseRow[]> {
    const where = { removedAt: null, siteId: { in: [...siteIds] } };
    return all(await this.prisma.license.findMany({ where, orderBy: [{ kind: 'asc' }, { id: 'asc' }] }));
  }

  /** Users behind a name, by name. */
  async users(afterName: string, limit: number): Promise<UserRow[]> {
    const where = { name: { gt: afterName } };
    return all(await this.prisma.user.findMany({ where, orderBy: { name: 'asc' }, take: limit }));
  }

  async usersByIds(ids: readonly number[]): Promise<UserRow[]> {
    return all(await this.prisma.user.findMany({ where: among(ids), orderBy: { id: 'asc' } }));
  }

  async usersNamed(ids: readonly number[], names: readonly string[]): Promise<UserRow[]> {
    const where = { OR: [{ id: { in: [...ids] } }, { name: { in: [...names] } }] };
    return all(await this.prisma.user.findMany({ where, orderBy: { id: 'asc' } }));
  }

  async userByName(name: string): Promise<UserRow | null> {
    const found = await this.prisma.user.findUnique({ where: { name } });
    return found && plain(found);
  }

  async apiKeysByIds(ids: readonly number[]): Promise<ApiKeyRow[]> {
    return all(
      await this.prisma.apiKey.findMany({ where: among(ids), omit: { hash: true }, orderBy: { id: 'asc' } }),
    );
  }

  /** Keys of a user before an id (null: from the last), the latest first; good or not. */
  async apiKeysOfUser(userId: number, before: number | null, limit: number): Promise<ApiKeyRow[]> {
    const where = { userId, ...(before !== null && { id: { lt: before } }) };
    const orderBy = { id: 'desc' } as const;
    return all(await this.prisma.apiKey.findMany({ where, omit: { hash: true }, orderBy, take: limit }));
  }

  /** Keys of a user by this name that have not been revoked: as many as a user may have. */
  unrevokedKeysNamed(userId: number, name: string): Promise<{ id: number }[]> {
    return this.prisma.apiKey.findMany({ where: { userId, name, revokedAt: null }, select: { id: true } });
  }

  /** The good ones, those used last first. */
  async sessionsOfUsers(userIds: readonly number[], now: number): Promise<SessionRow[]> {
    return this.sessions({ userId: { in: [...userIds] }, expiresAt: { gt: instant(now) } });
  }

  async sessionsByIds(ids: readonly number[], now: number): Promise<SessionRow[]> {
    return this.sessions({ ...among(ids), expiresAt: { gt: instant(now) } });
  }

  private async sessions(where: Prisma.SessionWhereInput): Promise<SessionRow[]> {
    const orderBy = [{ lastUsedAt: 'desc' }, { id: 'desc' }] as const;
    const omit = { hash: true, prefix: true } as const;
    return all(await this.prisma.session.findMany({ where, omit, orderBy: [...orderBy] }));
  }

  /** Of each user who has a password or a good invitation. */
  signInsOfUsers(userIds: readonly number[], now: number): Promise<SignInRow[]> {
    return rows(
      this.pool,
      sql`
SELECT u.id AS "userId", extract(epoch FROM p.set_at)::float8 AS "passwordSetAt", extract(epoch FROM i.expires_at)::float8 AS "invitedUntil"
  FROM users u
  LEFT JOIN passwords p ON p.user_id = u.id
  LEFT JOIN invitations i ON i.user_id = u.id AND i.expires_at > to_timestamp(${now}::float8)
 WHERE u.id = ANY (${list('integer', userIds)})`,
    );
  }

  /** Jobs that each user submitted within the user's own period; users without a quota are left out. */
  async quotaUsed(userIds: readonly number[], now: number): Promise<Map<number, number>> {
    const used = await rows<{ id: number; jobs: number }>(
      this.pool,
      sql`
SELECT u.id, coalesce(s.jobs, 0) AS jobs FROM users u
  LEFT JOIN LATERAL (
    SELECT sum(job_count) AS jobs FROM submissions s
     WHERE s.user_id = u.id AND s.at > to_timestamp(${now}::float8) - make_interval(secs => u.submission_period_s)) s ON true
 WHERE u.id = ANY (${list('integer', userIds)}) AND u.submission_limit IS NOT NULL`,
    );
    return new Map(used.map(({ id, jobs }) => [id, jobs]));
  }

  /** Queue depths come from job_counts, which the triggers keep: nothing is counted. */
  siteStats(siteIds: readonly number[]): Promise<SiteStats[]> {
    return rows(
      this.pool,
      sql`
SELECT s.id AS "siteId", c.*, m.* FROM unnest(${list('integer', siteIds)}) AS s (id),
  LATERAL (SELECT coalesce(sum(jobs) FILTER (WHERE state = 'QUEUED'), 0) AS "metaQueued",
                  coalesce(sum(jobs) FILTER (WHERE state = 'DISPATCHED'), 0) AS queued,
                  coalesce(sum(jobs) FILTER (WHERE state IN ${labels(liveStates)}), 0) AS running
             FROM job_counts WHERE site_id = s.id) c,
  LATERAL (SELECT coalesce(sum(cpus), 0) AS cpus, coalesce(sum(cpus_used), 0) AS "cpusUsed"
             FROM machines WHERE site_id = s.id AND removed_at IS NULL) m
 ORDER BY s.id`,
    );
  }

  /** Kinds of resources in service, by name. A pool of the grid is at every site. */
  resourceKinds(limit: number): Promise<ResourceKindRow[]> {
    return rows(
      this.pool,
      sql`
WITH machine AS (
  SELECT m.*, m.state = 'UP' AND NOT m.silent AND m.problem IS NULL AND s.state = 'UP' AS accepts
    FROM machines m JOIN sites s ON s.id = m.site_id WHERE m.removed_at IS NULL),
amount AS (
  SELECT m.site_id, m.accepts, a.* FROM machine m, LATERAL (
    VALUES ('cpus', m.cpus::bigint, m.cpus_used::bigint), ('memoryMb', m.memory_mb::bigint, m.memory_used_mb),
           ('places', m.max_tasks::bigint, m.tasks_used::bigint)
    UNION ALL
    SELECT r.key, r.value::bigint, coalesce((m.resources_used ->> r.key)::bigint, 0) FROM jsonb_each_text(m.resources) r
  ) AS a (name, total, in_use) WHERE a.total IS NOT NULL),
model AS (
  SELECT d ->> 'kind' AS name, array_agg(DISTINCT d ->> 'model' ORDER BY d ->> 'model') AS models
    FROM machine m, jsonb_array_elements(m.devices) d WHERE d ->> 'model' IS NOT NULL GROUP BY 1),
pool AS (
  SELECT kind, site_id, min(unit) AS unit, sum(copies)::bigint AS copies, sum(in_use)::bigint AS in_use, sum(greatest(copies - in_use, 0))::bigint AS free
    FROM licenses WHERE removed_at IS NULL GROUP BY kind, site_id)
SELECT * FROM (
SELECT a.name, 'MACHINE' AS "countedOn", CASE a.name WHEN 'memoryMb' THEN 'MB' WHEN 'cpus' THEN 'CPUs' WHEN 'places' THEN 'tasks' END AS unit, sum(total)::float8 AS total, sum(in_use)::float8 AS "inUse",
       coalesce(sum(greatest(total - in_use, 0)) FILTER (WHERE accepts), 0)::float8 AS free, max(total)::float8 AS largest,
       coalesce((SELECT models FROM model WHERE model.name = a.name), '{}') AS models, array_agg(DISTINCT a.site_id) AS "siteIds"
  FROM amount a GROUP BY a.name
UNION ALL
SELECT kind, CASE WHEN bool_or(site_id IS NULL) THEN 'GRID' ELSE 'SITE' END, min(unit), sum(copies)::float8, sum(in_use)::float8, sum(free)::float8,
       (coalesce(max(copies) FILTER (WHERE site_id IS NOT NULL), 0) + coalesce(sum(copies) FILTER (WHERE site_id IS NULL), 0))::float8, '{}',
       CASE WHEN bool_or(site_id IS NULL) THEN (SELECT coalesce(array_agg(id), '{}') FROM sites WHERE removed_at IS NULL) ELSE array_agg(site_id) END
  FROM pool GROUP BY kind
) k ORDER BY name, "countedOn" <> 'MACHINE' LIMIT ${limit}::integer`,
    );
  }

  /** Reservations in force of the sites. */
  async reservationsOfSites(siteIds: readonly number[]): Promise<ReservationRow[]> {
    return readRows(
      this.pool,
      reservationReading,
      sql`
SELECT r.* FROM reservations r JOIN jobs j ON j.id = r.job_id AND j.state = 'DISPATCHED' AND j.site_id = r.site_id
 WHERE r.site_id = ANY (${list('integer', siteIds)})`,
    );
  }

  /** What the site has promised to jobs that still wait there, by time. */
  async promisesOfSite(siteId: number, limit: number): Promise<ReservationRow[]> {
    return readRows(
      this.pool,
      reservationReading,
      sql`
SELECT r.* FROM (
  SELECT p.site_id, (e->>0)::bigint AS job_id, to_timestamp((e->>1)::float8) AS at,
         ARRAY(SELECT json_array_elements_text(e->2)::integer) AS machine_ids,
         ARRAY(SELECT json_array_elements_text(e->3)::integer) AS machine_tasks
    FROM promises p, json_array_elements(p.body->1) e WHERE p.site_id = ${siteId}::integer
   ORDER BY (e->>1)::float8 LIMIT ${limit}::integer) r
  JOIN jobs j ON j.id = r.job_id AND j.state = 'DISPATCHED' AND j.site_id = r.site_id
 ORDER BY r.at, r.job_id`,
    );
  }

  // Data --------------------------------------------------------------------------------------------------------------

  /** Datasets in service behind a name, by name; of those whose names contain a text, where one is given. */
  async datasets(containing: string | null, afterName: string, limit: number): Promise<DatasetRow[]> {
    // Prisma's `contains` would take % and _ for wildcards.
    const ids = await rows<{ id: number }>(
      this.pool,
      sql`
SELECT id FROM datasets WHERE removed_at IS NULL AND name > ${afterName} AND (${containing}::text IS NULL OR strpos(name, ${containing}) > 0)
 ORDER BY name LIMIT ${limit}`,
    );
    const where = among(ids.map(({ id }) => id));
    return (await this.prisma.dataset.findMany({ where, orderBy: { name: 'asc' }, ...withSites })).map(
      datasetRow,
    );
  }

  /** Kinds of resources that machines in service have besides CPUs and memory, in order. */
  async declaredKinds(): Promise<string[]> {
    const found = await rows<{ kind: string }>(
      this.pool,
      sql`SELECT DISTINCT kind FROM machines, jsonb_object_keys(resources) AS kind WHERE removed_at IS NULL ORDER BY 1`,
    );
    return found.map(({ kind }) => kind);
  }

  /** Kinds that are counted in pools of sites or of the grid, licenses among them, in order. */
  async poolKinds(): Promise<string[]> {
    const found = await rows<{ kind: string }>(
      this.pool,
      sql`SELECT DISTINCT kind FROM licenses WHERE removed_at IS NULL ORDER BY 1`,
    );
    return found.map(({ kind }) => kind);
  }

  /** Of them, those of which the whole grid has a pool. */
  async gridPoolKinds(): Promise<string[]> {
    const found = await rows<{ kind: string }>(
      this.pool,
      sql`SELECT DISTINCT kind FROM licenses WHERE removed_at IS NULL AND site_id IS NULL`,
    );
    return found.map(({ kind }) => kind);
  }

  /** Those of these names that datasets have. */
  async datasetNames(names: readonly string[]): Promise<string[]> {
    if (names.length === 0) return [];
    const where = { name: { in: [...names] }, removedAt: null };
    const found = await this.prisma.dataset.findMany({
      where,
      select: { name: true },
      orderBy: { name: 'asc' },
    });
    return found.map(({ name }) => name);
  }

  /** Those of these jobs whose outputs at a site were datasets, and are none any more. */
  async removedOutputs(siteId: number, jobIds: readonly number[]): Promise<number[]> {
    const found = await this.prisma.dataset.findMany({
      where: { jobId: { in: jobIds.map(BigInt) } },
      select: { jobId: true, removedAt: true, replicas: { where: { siteId }, select: { siteId: true } } },
    });
    const there = new Set(
      found
        .filter(({ removedAt, replicas }) => removedAt === null && replicas.length > 0)
        .map(({ jobId }) => jobId),
    );
    const gone = found.map(({ jobId }) => jobId).filter((jobId) => !there.has(jobId));
    return [...new Set(gone)].map(Number);
  }

  async datasetsByIds(ids: readonly number[]): Promise<DatasetRow[]> {
    const found = await this.prisma.dataset.findMany({
      where: among(ids),
      orderBy: { id: 'asc' },
      ...withSites,
    });
    return found.map(datasetRow);
  }

  /** Of these runs, in no order. */
  async stagings(runs: readonly { jobId: number; epoch: number }[]): Promise<StagingRow[]> {
    const OR = runs.map(({ jobId, epoch }) => ({ jobId: BigInt(jobId), epoch }));
    return all(await this.prisma.staging.findMany({ where: { OR } }));
  }

  /** Of these runs, by task and path. */
  filesOfRuns(runs: readonly { jobId: number; epoch: number }[]): Promise<FileRow[]> {
    return filesOfRuns(this.pool, runs);
  }

  /** In service; null when there is none. */
  async datasetByName(name: string): Promise<DatasetRow | null> {
    const found = await this.prisma.dataset.findFirst({ where: { removedAt: null, name }, ...withSites });
    return found && datasetRow(found);
  }

  /** Links from a site, to a site, or all, behind (from, to), in that order. */
  async links(
    { fromSiteId, toSiteId }: { fromSiteId?: number; toSiteId?: number },
    after: { fromSiteId: number; toSiteId: number } | null,
    limit: number,
  ): Promise<LinkRow[]> {
    const where: Prisma.LinkWhereInput = {
      ...(fromSiteId !== undefined && { fromSiteId }),
      ...(toSiteId !== undefined && { toSiteId }),
      ...(after !== null && {
        OR: [
          { fromSiteId: { gt: after.fromSiteId } },
          { fromSiteId: after.fromSiteId, toSiteId: { gt: after.toSiteId } },
        ],
      }),
    };
    const orderBy = [{ fromSiteId: 'asc' }, { toSiteId: 'asc' }] as const;
    return all(await this.prisma.link.findMany({ where, orderBy: [...orderBy], take: limit }));
  }

  /** The last measurements of a link, newest first. */
  async linkHistory(fromSiteId: number, toSiteId: number, limit: number): Promise<LinkMeasurementRow[]> {
    const where = { fromSiteId, toSiteId };
    return all(await this.prisma.linkMeasurement.findMany({ where, orderBy: { id: 'desc' }, take: limit }));
  }

  // What runs have shown ------------------------------------------------------------------------------------------------

  /** What the runs of an application have shown (null: none has ended well), and the latest point of any series by then. */
  async ratio(application: string): Promise<{ cursor: number; ratio: RatioRow | null }> {
    const [cursor, ratio] = await value<[number, RatioRow | null]>(
      this.pool,
      // `CJR = JET/JTT` of sums; runs that took no time are taken for computation (as the core's JobHistory).
      sql`
SELECT json_build_array(${raw(latestPoint)}, (
  SELECT json_build_object('application', ${application}::text, 'runs', runs, 'turnaroundS', turnaround * 2::float8 ^ -200 / runs,
    'executionS', execution * 2::float8 ^ -200 / runs, 'ioS', io * 2::float8 ^ -200 / runs, 'updatedAt', ${raw(seconds('updated_at'))},
    'computation', CASE WHEN turnaround > 0 THEN least(1, execution / turnaround) ELSE 1 END)
  FROM (SELECT sum(count)::float8 AS runs, sum(turnaround)::float8 AS turnaround, sum(execution)::float8 AS execution,
               sum(io)::float8 AS io, max(updated_at) AS updated_at FROM run_totals WHERE application = ${application}) t
 WHERE runs > 0)) AS v`,
    );
    return { cursor, ratio };
  }

  /** Points of an application's series, of a user's runs (null: of all), beyond a point (null: from the beginning, or backward from the end), oldest first. */
  async ratioPoints(
    application: string,
    userId: number | null,
    from: number | null,
    limit: number,
    backward: boolean,
  ): Promise<RatioPointRow[]> {
    const whose =
      userId === null
        ? sql`true`
        : sql`EXISTS (SELECT 1 FROM jobs j WHERE j.id = job_ratios.job_id AND j.user_id = ${userId})`;
    const beyond = from === null ? sql`true` : backward ? sql`id < ${from}` : sql`id > ${from}`;
    const found = await readRows(
      this.pool,
      ratioPointReading,
      sql`SELECT * FROM job_ratios WHERE application = ${application} AND ${whose} AND ${beyond} ORDER BY id ${raw(backward ? 'DESC' : 'ASC')} LIMIT ${limit}`,
    );
    return backward ? found.reverse() : found;
  }

  /** The id of the latest point of any series: a cursor behind all there are. */
  latestRatioPoint(): Promise<number> {
    return value(this.pool, sql`SELECT ${raw(latestPoint)} AS v`);
  }

  /** Points behind a point, of one application or of all, oldest first. 'too-old': retention has passed it. */
  async ratioPointsSince(
    application: string | null,
    after: number,
    limit: number,
  ): Promise<RatioPointRow[] | 'too-old'> {
    const which = application === null ? sql`true` : sql`application = ${application}`;
    const found = await value<unknown[][] | null>(
      this.pool,
      sql`
SELECT CASE WHEN ${after}::bigint >= (SELECT id FROM job_ratios_horizon) THEN (
  SELECT coalesce(json_agg(json_build_array(${raw(Object.values(ratioPointReading).join(', '))}) ORDER BY id), '[]') FROM (
    SELECT * FROM job_ratios WHERE id > ${after}::bigint AND ${which} ORDER BY id LIMIT ${limit}) v) END AS v`,
    );
    return found === null ? 'too-old' : rowsOf(ratioPointReading, found);
  }

  // Groups ------------------------------------------------------------------------------------------------------------

  async group(id: number): Promise<GroupRow | null> {
    return (await this.groupsByIds([id]))[0] ?? null;
  }

  async groupsByIds(ids: readonly number[]): Promise<GroupRow[]> {
    return all(
      await this.prisma.jobGroup.findMany({ where: among(ids), omit: rangeOfGroup, orderBy: { id: 'asc' } }),
    );
  }

  /** Groups before a group (null: from the newest), newest first; of one user or of all. */
  async groups(userId: number | null, beforeId: number | null, limit: number): Promise<GroupRow[]> {
    const where = { ...(userId !== null && { userId }), ...(beforeId !== null && { id: { lt: beforeId } }) };
    return all(
      await this.prisma.jobGroup.findMany({
        where,
        omit: rangeOfGroup,
        orderBy: { id: 'desc' },
        take: limit,
      }),
    );
  }

  /** How many jobs of each group are in which state. Jobs that retention has deleted are not counted. */
  groupCounts(ids: readonly number[]): Promise<{ groupId: number; state: JobState; jobs: number }[]> {
    return rows(
      this.pool,
      sql`
SELECT g.id AS "groupId", j.state, count(*) AS jobs
  FROM job_groups g JOIN jobs j ON j.id BETWEEN g.first_job_id AND g.last_job_id AND j.group_id = g.id
 WHERE g.id = ANY (${list('bigint', ids)}) GROUP BY 1, 2`,
    );
  }

  // What was used -------------------------------------------------------------------------------------------------------

  loadHistory(window: history.Window, siteId: number | null): Promise<history.LoadRow[]> {
    return history.loadHistory(this.pool, window, siteId);
  }

  licenseHistory(window: history.Window, kind: string): Promise<history.InUseRow[]> {
    return history.licenseHistory(this.pool, window, kind);
  }

  resourceHistory(window: history.Window, kind: string, siteId: number | null): Promise<history.InUseRow[]> {
    return history.resourceHistory(this.pool, window, kind, siteId);
  }

  usage(
    window: Parameters<typeof history.usage>[1],
    options: Parameters<typeof history.usage>[2],
  ): Promise<history.UsageRow[]> {
    return history.usage(this.pool, window, options);
  }

  lostWork(
    window: Parameters<typeof history.lostWork>[1],
    owner: number | null,
  ): Promise<history.LostWorkRow[]> {
    return history.lostWork(this.pool, window, owner);
  }

  /**
   * How many jobs of each class wait and run.
   *
   * @param owner only this user's jobs; null: everybody's
   */
  jobsByClass(owner: number | null): Promise<{ class: string; waiting: number; running: number }[]> {
    return rows(
      this.pool,
      sql`
SELECT class, count(*) FILTER (WHERE NOT triggers.live(state))::float8 AS waiting,
       count(*) FILTER (WHERE triggers.live(state))::float8 AS running
  FROM jobs WHERE class IS NOT NULL AND ended_at IS NULL${owner === null ? empty : sql` AND user_id = ${owner}`}
 GROUP BY class ORDER BY class`,
    );
  }

  // Policies, simulations, audit ----------------------------------------------------------------------------------------

  /** The policy in force, or a version of it; null when there is none. */
  async policy(version: number | null = null): Promise<PolicyRow | null> {
    const where = version === null ? {} : { version };
    const found = await this.prisma.policy.findFirst({ where, orderBy: { version: 'desc' } });
    return found && plain(found);
  }

  /** Versions before a version (null: from the newest), newest first. */
  async policies(beforeVersion: number | null, limit: number): Promise<PolicyRow[]> {
    const where = beforeVersion === null ? {} : { version: { lt: beforeVersion } };
    return all(await this.prisma.policy.findMany({ where, orderBy: { version: 'desc' }, take: limit }));
  }

  /** Simulations before a simulation (null: from the newest), newest first. */
  async simulations(beforeId: number | null, limit: number): Promise<SimulationRow[]> {
    const where = beforeId === null ? {} : { id: { lt: beforeId } };
    return all(
      await this.prisma.simulation.findMany({
        where,
        omit: leaseOfSimulation,
        orderBy: { id: 'desc' },
        take: limit,
      }),
    );
  }

  async simulationsByIds(ids: readonly number[]): Promise<SimulationRow[]> {
    return all(
      await this.prisma.simulation.findMany({
        where: among(ids),
        omit: leaseOfSimulation,
        orderBy: { id: 'asc' },
      }),
    );
  }

  /** The audit log before an entry (null: from the newest), newest first. */
  async audits(beforeId: number | null, limit: number): Promise<AuditRow[]> {
    const where = beforeId === null ? {} : { id: { lt: beforeId } };
    return all(await this.prisma.audit.findMany({ where, orderBy: { id: 'desc' }, take: limit }));
  }
}

// Pages of jobs ---------------------------------------------------------------------------------------------------------

function pageOfJobs(filter: JobFilter, page: JobPage): Sql {
  const where = jobConditions(filter);
  const key = { SUBMITTED: null, ENDED: raw('j.ended_at'), DEADLINE: raw('j.deadline') }[page.order];
  if (key !== null) where.push(sql`${key} IS NOT NULL`);
  // A page from the end is the first page of the opposite order, turned round.
  const ascending = (page.direction === 'ASC') !== page.backward;
  if (page.from !== null) {
    const { id, at } = page.from;
    const sign = raw(ascending ? '>' : '<');
    where.push(
      key === null
        ? sql`j.id ${sign} ${id}::bigint`
        : sql`(${key}, j.id) ${sign} (to_timestamp(${at}::float8)::timestamptz(3), ${id}::bigint)`,
    );
  }
  const way = raw(ascending ? 'ASC' : 'DESC');
  const order = key === null ? sql`j.id ${way}` : sql`${key} ${way}, j.id ${way}`;
  return sql`SELECT j.* FROM jobs j WHERE ${and(where)} ORDER BY ${order} LIMIT ${page.limit}`;
}

// Rows ------------------------------------------------------------------------------------------------------------------

/** How runs and their tasks went. */
const courseReading = {
  startedAt: seconds('started_at'),
  endedAt: seconds('ended_at'),
  exitCode: 'exit_code',
  signal: 'signal',
  cause: 'cause',
  message: 'message',
  ...usageColumn,
  checkpointAt: seconds('checkpoint_at'),
} as const;

const runReading: Reading<RunRow> = {
  jobId: 'job_id',
  epoch: 'epoch',
  siteId: 'site_id',
  machineIds: 'machine_ids',
  machineTasks: 'machine_tasks',
  licenseIds: 'license_ids',
  licenseAmounts: "coalesce(license_amounts, '{}')",
  policyVersion: 'policy_version',
  assignedAt: seconds('assigned_at'),
  plannedS: 'planned_s',
  limitS: 'limit_s',
  ...courseReading,
  failedTask: 'failed_task',
  ending: 'ending',
  recalled: 'recalled',
  devices: 'devices',
  placedBy: 'placed_by',
  localId: 'local_id',
  localState: 'local_state',
  localDirectory: 'local_directory',
  retry: 'retry',
  nodes: 'nodes',
  imageDigest: 'image_digest',
};

const taskReading: Reading<TaskRow> = {
  jobId: 'job_id',
  epoch: 'epoch',
  index: 'index',
  ...courseReading,
};

const stepReading: Reading<RunStepRow> = {
  jobId: 'job_id',
  epoch: 'epoch',
  task: 'task',
  number: 'number',
  name: 'name',
  tasks: 'tasks',
  machines: 'machines',
  cpus: 'cpus',
  startedAt: seconds('started_at'),
  endedAt: seconds('ended_at'),
  exitCode: 'exit_code',
  signal: 'signal',
};

const decisionReading: Reading<DecisionRow> = {
  id: 'id',
  jobId: 'job_id',
  at: seconds('at'),
  kind: 'kind',
  reason: 'reason',
  policyVersion: 'policy_version',
  cycle: 'cycle',
  fromSiteId: 'from_site_id',
  siteId: 'site_id',
  detail: 'detail',
};

export const eventReading: Reading<EventRow> = {
  id: 'id',
  at: seconds('at'),
  kind: 'kind',
  entityId: 'entity_id',
  seq: 'seq',
  fromState: 'from_state',
  toState: 'to_state',
  siteId: 'site_id',
  fromSiteId: 'from_site_id',
  userId: 'user_id',
  epoch: 'epoch',
  cause: 'cause',
  note: 'note',
};

const ratioPointReading: Reading<RatioPointRow> = {
  id: 'id',
  application: 'application',
  at: seconds('at'),
  jobId: 'job_id',
  epoch: 'epoch',
  siteId: 'site_id',
  turnaroundS: 'turnaround_s',
  ioS: 'io_s',
  ioMethod: 'io_method',
  sitePower: 'site_power',
  runs: 'runs',
  computation: 'computation',
};

const reservationReading: Reading<ReservationRow> = {
  siteId: 'site_id',
  jobId: 'job_id',
  at: seconds('at'),
  machineIds: 'machine_ids',
  machineTasks: 'machine_tasks',
};

const all = <T extends object>(records: readonly T[]): Plain<T>[] => records.map(plain);
const among = (ids: readonly number[]) => ({ id: { in: [...ids] } });
/** Whose parent is one of these; 0 stands for the root, which has no row. */
const below = (field: 'parentId' | 'schedulerId', ids: readonly number[]) => ({
  OR: [{ [field]: { in: [...ids] } }, ...(ids.includes(0) ? [{ [field]: null }] : [])],
});
const rangeOfGroup = { firstJobId: true, lastJobId: true } as const;
const leaseOfSimulation = { trace: true, worker: true, workerSeenAt: true, attempts: true } as const;
export const withSites = {
  include: { replicas: { select: { siteId: true, location: true }, orderBy: { siteId: 'asc' } } },
} as const;

/** A dataset with its replicas, as it is handed out. */
export function datasetRow({ replicas, ...dataset }: Prisma.DatasetGetPayload<typeof withSites>): DatasetRow {
  return {
    ...plain(dataset),
    siteIds: replicas.map(({ siteId }) => siteId),
    locations: replicas.flatMap(({ siteId, location }) => (location === null ? [] : [{ siteId, location }])),
  };
}

const latestPoint =
  '(SELECT greatest((SELECT max(id) FROM job_ratios), (SELECT id FROM job_ratios_horizon)))';

const before = (column: string, id: number | null): Sql =>
  id === null ? sql`true` : sql`${raw(column)} < ${id}::bigint`;

/** Whether the user (null: everybody) may see the event `v`. */
const visibleTo = (userId: number | null): Sql =>
  userId === null
    ? sql`true`
    : sql`(v.user_id = ${userId}::integer OR v.kind IN ('SITE', 'MACHINE', 'LICENSE', 'POLICY', 'DATA')
        OR (v.kind = 'USER' AND v.entity_id = ${userId}::integer))`;
