/** Jobs: submitting them, acting on them, reading them. Users see and touch their own only. */
import { createHash } from 'node:crypto';
import { schedulerOf } from '../../core/scheduler.js';
import { MAX } from '../../platform/limits.js';
import { turns } from '../../platform/turns.js';
import type { JobCountRow, JobPage } from '../../store/queries.js';
import type { DecisionRow, EventRow, JobRow, RunRow, RunStepRow } from '../../store/rows.js';
import type { NewJob, SelectionOutcome, JobSelection as StoreSelection } from '../../store/store.js';
import { hasTasks, type ShownTask, shownTasks } from '../../store/tasks.js';
import type { Viewer } from '../auth.js';
import { atMost, within } from '../check.js';
import {
  type Connection,
  connection,
  decodeCursor,
  encodeCursor,
  eventCursor,
  type ForwardArguments,
  pageSize,
} from '../connections.js';
import { ApiError, badInput, notFound } from '../errors.js';
import type {
  JobFilter,
  JobSelection,
  QueryJobCountsArgs,
  QueryJobsArgs,
  SignalJobsInput,
  SubmitJobsInput,
  UpdateJobsInput,
} from '../generated/types.js';
import { globalId, localId } from '../ids.js';
import type { Loaders } from '../loaders.js';
import type { JobsPayloadModel, SubmitJobsPayloadModel } from '../models.js';
import { guarded, handlesAll, maySeeJob, ownerOnly, submitterOf } from './access.js';
import { changesOf } from './changes.js';
import { jobFilter, visibleFilter } from './job-filter.js';
import { checkDatasets, type Fault, newJob, placesOf, poolsApart, storedJobs } from './job-input.js';
import { askedWait, waitsOfSubmission } from './needs.js';
import type { ServiceParts } from './parts.js';
import { runAgain } from './rerun.js';
import { checkedKey, isKnown, submitted } from './submissions.js';

/** Jobs that are checked in a turn of the event loop. */
const JOBS_OF_A_TURN = 250;

/** Jobs that need another one, in one answer. */
const NEEDED_BY_MAX = 100;

// biome-ignore lint/complexity/noExcessiveLinesPerFunction: a module: it returns short functions that share its parts
export function createJobsService(parts: ServiceParts) {
  const { store, queries, limits, fits, now } = parts;

  async function submitJobs(
    viewer: Viewer,
    input: SubmitJobsInput,
    requestId: string,
  ): Promise<SubmitJobsPayloadModel> {
    if (input.jobs.length === 0) throw badInput('jobs', [], `1 to ${limits.submissionJobsMax} jobs`);
    atMost('jobs', input.jobs, limits.submissionJobsMax);
    const idempotencyKey = checkedKey(input.idempotencyKey);
    const isRetry = await isKnown(parts, viewer.userId, idempotencyKey);
    const context = {
      ...submitterOf(viewer),
      places: await placesOf(input.jobs, queries, submitterOf(viewer), isRetry),
      now: isRetry ? null : now(),
    };
    const errors: SubmitJobsPayloadModel['errors'][number][] = [];
    const jobs: NewJob[] = new Array(input.jobs.length);
    let index = 0;
    const fault = (one: Fault, of = index): void => {
      if (errors.length < MAX.faults) errors.push({ index: of, ...one });
    };
    // A retry was accepted when it came first.
    const judge = input.allowUnfit || isRetry ? null : await fits.remembered();
    for (const job of input.jobs) {
      if (index % JOBS_OF_A_TURN === JOBS_OF_A_TURN - 1) await turns.pause();
      if (errors.length >= MAX.faults) break;
      const faults = errors.length;
      jobs[index] = newJob(job, context, (one) => fault(one));
      const { places } = context;
      const doubt = errors.length === faults ? judge?.(poolsApart(jobs[index] as NewJob, places)) : null;
      const unfit = doubt && (await doubt);
      if (unfit) fault(unfit);
      index++;
    }
    // Only a submission with a key is ever compared with another.
    const payloadHash = errors.length > 0 || idempotencyKey === null ? '' : await hashOf(jobs, input.jobs);
    if (errors.length === 0 && !isRetry) {
      const asked = input.jobs.map((job) => ({ input: job, array: arrayOf(job.arrayIndex) }));
      const waitOf = await waitsOfSubmission(parts, viewer, asked, (of, one) => fault(one, of));
      if (errors.length === 0) {
        for (const [i, job] of jobs.entries()) {
          if (i % JOBS_OF_A_TURN === JOBS_OF_A_TURN - 1) await turns.pause();
          job.wait = waitOf(i, job.arrayIndex);
        }
        await parts.ranks(jobs, now());
      }
    }
    if (errors.length === 0 && !isRetry) await checkDatasets(jobs, queries, (of, one) => fault(one, of));
    if (errors.length > 0) return { ids: [], repeated: false, errors };

    const { jobIds, repeated } = await submitted(parts, viewer, requestId, {
      userId: viewer.userId,
      idempotencyKey,
      payloadHash,
      jobs: storedJobs(jobs, context.places),
      now: now(),
    });
    return { ids: jobIds, repeated, errors: [] };
  }

  /** A selection as the store takes it. */
  function select(viewer: Viewer, { ids, filter, all }: JobSelection): StoreSelection {
    const base = { ownedBy: ownerOnly(viewer), limit: limits.jobsMax };
    const given = Object.entries({ ids, filter, all }).flatMap(([name, value]) => (value ? [name] : []));
    if (given.length !== 1)
      throw badInput('selection', given.join(' and ') || 'nothing', 'one of ids, filter, and all: true');
    if (ids) {
      atMost('selection.ids', ids, limits.jobsMax);
      return { ...base, ids: [...new Set(ids.map((id) => localId('job', id, 'selection.ids')))] };
    }
    return { ...base, filter: filter ? selectionFilter(filter) : {} };
  }

  /** As the store takes it. What operators do to jobs is in the audit log. */
  function audited(
    name: string,
    viewer: Viewer,
    requestId: string,
    selection: JobSelection,
    asked: object = {},
  ): StoreSelection {
    const selected = select(viewer, selection);
    const audit = (changed: readonly number[]) => ({
      ...{ userId: viewer.userId, requestId, action: name, reason: null },
      target: changed.length === 1 ? globalId('job', changed[0] as number) : 'jobs',
      after: { jobs: changed.length, selection, ...asked },
    });
    return handlesAll(viewer) ? { ...selected, audit } : selected;
  }

  /** What was done is told to the schedulers. */
  function done({ tooMany, touched }: Pick<SelectionOutcome, 'tooMany' | 'touched'>): void {
    if (tooMany) {
      throw new ApiError(
        'LIMIT_EXCEEDED',
        `selection.filter: too many jobs match; accepted: up to ${limits.jobsMax}; no job was changed`,
      );
    }
    if (touched.length > 0) parts.wake(touched.map(schedulerOf));
  }

  /** Live runs are stopped; of jobs that have ended, which only ids can name, copies are submitted, each once. */
  async function requeueJobs(
    viewer: Viewer,
    selection: JobSelection,
    requestId: string,
  ): Promise<JobsPayloadModel> {
    const payload = await act('requeueJobs', viewer, requestId, selection, (selected) =>
      store.requeue(selected),
    );
    const left = payload.unchanged.map(({ id }) => localId('job', id, 'selection.ids'));
    const ended = (await queries.jobsByIds(left)).filter(
      (job) => job.endedAt !== null && maySeeJob(viewer, job),
    );
    if (ended.length === 0) return payload;
    const copies: number[] = [];
    for (const userId of new Set(ended.map((job) => job.userId))) {
      const jobs = ended.flatMap((job) => (job.userId === userId ? [job.id] : []));
      const of = jobs.length === 1 ? globalId('job', jobs[0] as number) : 'jobs';
      const asked = { userId, target: { jobs }, only: 'FAILED', action: 'requeueJobs', of } as const;
      copies.push(...(await runAgain(parts, viewer, requestId, asked)).jobIds);
    }
    const made = new Set(copies);
    const copyOf = await queries.copiesOf(ended.map((job) => job.id));
    return {
      ids: [...payload.ids, ...copies],
      unchanged: payload.unchanged.flatMap((one) => {
        const copy = copyOf.get(localId('job', one.id, 'selection.ids'));
        if (copy === undefined) return [one];
        const message = `${one.id} was rerun as ${globalId('job', copy)}, which can be requeued`;
        return made.has(copy) ? [] : [{ ...one, message }];
      }),
    };
  }

  /** Runs an action and turns its outcome into the payload. */
  async function act(
    name: keyof typeof CANNOT,
    viewer: Viewer,
    requestId: string,
    selection: JobSelection,
    action: (selection: StoreSelection) => Promise<SelectionOutcome>,
    asked: object = {},
  ): Promise<JobsPayloadModel> {
    const outcome = await action(audited(name, viewer, requestId, selection, asked));
    done(outcome);
    return {
      ids: outcome.changed,
      unchanged: outcome.unchanged.map(({ jobId, state }) => {
        const id = globalId('job', jobId);
        return state === null
          ? missing(jobId)
          : { id, code: 'CONFLICT', message: `${id} is ${state}: ${CANNOT[name]}`, field: null };
      }),
    };
  }

  async function updateJobs(
    viewer: Viewer,
    input: UpdateJobsInput,
    requestId: string,
  ): Promise<JobsPayloadModel> {
    const { selection, set } = input;
    const selected = audited('changeJobs', viewer, requestId, selection, { set });
    const changes = await changesOf(parts, viewer, input);
    const outcome = await store.revise(selected, changes);
    done(outcome);
    const { gone, bytes } = outcome;
    if (gone.length > 0) throw notFound('set.needs: job', gone.map((id) => globalId('job', id)).join(', '));
    if (bytes !== null)
      throw new ApiError(
        'LIMIT_EXCEEDED',
        `set: jobs of this user that have not ended would total ${bytes} bytes; accepted: up to ${changes.bytesMax} (viewer.limits); no job was changed`,
      );
    return {
      ids: outcome.changed,
      unchanged: [
        ...outcome.missing.map(missing),
        ...outcome.refused.map(({ jobId, fault }) => ({ id: globalId('job', jobId), ...fault })),
      ],
    };
  }

  /** A page of jobs that the viewer may see. `columns`: what the query reads of them. */
  async function jobs(
    viewer: Viewer,
    { filter, orderBy, first, after, last, before }: QueryJobsArgs,
    columns: readonly (keyof JobRow)[],
  ): Promise<Connection<JobRow>> {
    const backward = (last ?? null) !== null || (before ?? null) !== null;
    if (backward && ((first ?? null) !== null || (after ?? null) !== null)) {
      throw badInput('last', last ?? before, 'either `first` with `after`, or `last` with `before`');
    }
    const size = backward ? pageSize('last', last, limits) : pageSize('first', first, limits);
    const order = ORDERS[orderBy?.field ?? 'SUBMITTED_AT'];
    const direction = orderBy?.direction ?? 'ASC';
    const key = KEYS[order];
    const kind = `job ${order} ${direction}`;
    const cursor = backward ? before : after;
    const from = cursor
      ? decodeCursor(backward ? 'before' : 'after', cursor, kind, [
          'bigNumber',
          key === 'id' ? 'bigNumber' : 'time',
        ])
      : null;
    const stored = visibleFilter(viewer, filter ?? null);
    if (stored === null || size === 0) return connection<JobRow>([], size, () => '');
    const page: JobPage = {
      order,
      direction,
      backward,
      from: from && { id: from[0], at: from[1] },
      limit: size + 1,
    };
    const rows = (await queries.jobs(stored, page, withKey(columns, key))) as JobRow[];
    return connection(rows, size, (job) => encodeCursor(kind, [job.id, job[key] ?? 0]), {
      backward,
      continued: from !== null,
    });
  }

  /** A job that the viewer may see. Throws NOT_FOUND. */
  async function visibleJob(viewer: Viewer, id: string): Promise<JobRow> {
    const [found] = await queries.jobsByIds([localId('job', id, 'jobId')]);
    if (!found || !maySeeJob(viewer, found)) throw notFound('job', id);
    return found;
  }

  async function decisionsOf(
    jobId: number,
    { first, after }: ForwardArguments,
  ): Promise<Connection<DecisionRow>> {
    const size = pageSize('first', first, limits);
    const behind = after ? decodeCursor('after', after, 'decision', ['bigNumber'])[0] : 0;
    const rows = await queries.decisionsOfJob(jobId, behind, size + 1);
    return connection(rows, size, decisionCursor, { continued: behind > 0 });
  }

  return {
    ...guarded({
      submitJobs,
      cancelJobs(viewer: Viewer, selection: JobSelection, requestId: string) {
        const cause = handlesAll(viewer) ? 'CANCELLED_BY_OPERATOR' : 'CANCELLED_BY_USER';
        return act('cancelJobs', viewer, requestId, selection, (selected) =>
          store.cancel(selected, now(), cause),
        );
      },
      updateJobs,
      requeueJobs,
      signalJobs(viewer: Viewer, { selection, signal, to }: SignalJobsInput, requestId: string) {
        const asked = { signal, to };
        return act(
          'signalJobs',
          viewer,
          requestId,
          selection,
          (selected) => store.signal(selected, asked),
          asked,
        );
      },
      holdJobs: (viewer: Viewer, selection: JobSelection, requestId: string) =>
        act('holdJobs', viewer, requestId, selection, (selected) => store.hold(selected)),
      releaseJobs: (viewer: Viewer, selection: JobSelection, requestId: string) =>
        act('releaseJobs', viewer, requestId, selection, (selected) => store.release(selected)),
      reprioritizeJobs(viewer: Viewer, selection: JobSelection, boost: number, requestId: string) {
        within('boost', boost, -MAX.boost, MAX.boost);
        if (boost > 0 && !handlesAll(viewer)) {
          throw new ApiError(
            'FORBIDDEN',
            `boost: only operators can set ${boost}; accepted: -${MAX.boost} to 0`,
          );
        }
        return act('reprioritizeJobs', viewer, requestId, selection, (selected) =>
          store.reprioritize(selected, boost),
        );
      },

      jobs,
      async jobCount(viewer: Viewer, filter: JobFilter | null): Promise<number> {
        const stored = visibleFilter(viewer, filter);
        return stored === null ? 0 : queries.jobCount(stored, MAX.jobCount);
      },
      async jobCounts(viewer: Viewer, { by, filter, first }: QueryJobCountsArgs): Promise<JobCountRow[]> {
        const stored = visibleFilter(viewer, filter ?? null);
        const size = pageSize('first', first, limits);
        return stored === null ? [] : queries.jobCountsBy(stored, by, { limit: MAX.jobCount, first: size });
      },
      async job(viewer: Viewer, id: string): Promise<JobRow | null> {
        const [found] = await queries.jobsByIds([localId('job', id, 'id')]);
        return found && maySeeJob(viewer, found) ? found : null;
      },
      async decisions(
        viewer: Viewer,
        job: string | null,
        page: ForwardArguments,
      ): Promise<Connection<DecisionRow>> {
        if (job !== null) return decisionsOf((await visibleJob(viewer, job)).id, page);
        if (!handlesAll(viewer))
          throw new ApiError(
            'FORBIDDEN',
            'decisions: give one of your own jobs; only operators can list decisions about all jobs',
          );
        const size = pageSize('first', page.first, limits);
        const before = page.after ? decodeCursor('after', page.after, 'decision', ['bigNumber'])[0] : null;
        const rows = await queries.latestDecisions(before, size + 1);
        return connection(rows, size, decisionCursor, { continued: before !== null });
      },
    }),

    visibleJob,
    /** Of a job that the viewer has been shown. */
    decisionsOf,

    /** Of a job that the viewer has been shown. */
    async neededBy(viewer: Viewer, jobId: number): Promise<JobRow[]> {
      return (await queries.neededBy(jobId, NEEDED_BY_MAX)).filter((job) => maySeeJob(viewer, job));
    },
    async tasksOf(
      run: RunRow,
      job: JobRow,
      { from, first }: { from: number; first?: number | null },
    ): Promise<ShownTask[]> {
      within('from', from, 0, MAX.tasks);
      const size = pageSize('first', first, limits);
      const { reported, tasks } = hasTasks(job)
        ? await queries.tasksOfRun(run, from, size)
        : { reported: false, tasks: [] };
      return shownTasks(run, job, tasks, reported, from, size);
    },
    async stepsOf(
      { jobId, epoch }: RunRow,
      { first, after }: ForwardArguments,
      { steps }: Pick<Loaders, 'steps'>,
    ): Promise<Connection<RunStepRow>> {
      const size = pageSize('first', first, limits);
      const behind = after ? decodeCursor('after', after, 'step', ['number', 'number']) : null;
      const rows = await steps({ jobId, epoch, behind: behind ?? [0, -1], limit: size + 1 });
      return connection(rows, size, ({ task, number }) => encodeCursor('step', [task, number]), {
        continued: behind !== null,
      });
    },
    async eventsOf(jobId: number, { first, after }: ForwardArguments): Promise<Connection<EventRow>> {
      const size = pageSize('first', first, limits);
      const behind = eventCursor('after', after) ?? '0';
      const rows = await queries.eventsOfJob(jobId, behind, size + 1);
      return connection(rows, size, (event) => String(event.id), { continued: behind !== '0' });
    },
  };
}

const missing = (jobId: number): JobsPayloadModel['unchanged'][number] => {
  const id = globalId('job', jobId);
  return { id, code: 'NOT_FOUND', message: notFound('job', id).message, field: null };
};

/** Why jobs that were named stayed as they were. */
const CANNOT = {
  cancelJobs: 'it has ended or is already being canceled',
  requeueJobs:
    'only jobs with a live run can be requeued; waiting jobs are already queued, and ended jobs can be submitted again',
  signalJobs:
    "signals are sent only to jobs that run on machines of this service, not to those of peers and of sites' own schedulers",
  holdJobs: 'only pending jobs can be held',
  releaseJobs: 'only held jobs can be released',
  reprioritizeJobs: 'it has ended',
} as const;

const ORDERS = { SUBMITTED_AT: 'SUBMITTED', ENDED_AT: 'ENDED', DEADLINE: 'DEADLINE' } as const;
/** What each order compares beside the id. */
const KEYS = { SUBMITTED: 'id', ENDED: 'endedAt', DEADLINE: 'deadline' } as const;

const decisionCursor = (decision: DecisionRow): string => encodeCursor('decision', [decision.id]);

/** What authorization, the cursor and the resolvers' shortcuts need is always read. */
function withKey(columns: readonly (keyof JobRow)[], key: keyof JobRow): (keyof JobRow)[] {
  return [...new Set<keyof JobRow>(['id', 'userId', 'epoch', 'state', key, ...columns])];
}

/**
 * Jobs as coerced have their fields in the order of the schema: equal payloads give equal text. What they need is compared as it was asked
 * for, and is not yet among what they have: its ids are found by what there is at the time.
 */
async function hashOf(jobs: readonly NewJob[], inputs: SubmitJobsInput['jobs']): Promise<string> {
  const hash = createHash('sha256');
  for (const [i, job] of jobs.entries()) {
    if (i % JOBS_OF_A_TURN === JOBS_OF_A_TURN - 1) await turns.pause();
    const asked = askedWait(inputs[i] as SubmitJobsInput['jobs'][number]);
    const text = JSON.stringify(job);
    hash.update(i === 0 ? '[' : ',');
    hash.update(asked === null ? text : `${text.slice(0, -1)},"asked":${JSON.stringify(asked)}}`);
  }
  return hash.update(']').digest('hex');
}

const arrayOf = (index: number | null | undefined): [number, number] | null =>
  index === null || index === undefined ? null : [index, index];

/** Filters of actions: what has ended cannot be acted on, so ranges of ends say nothing. */
function selectionFilter(filter: JobFilter): NonNullable<StoreSelection['filter']> {
  for (const field of ['ids', 'submittedAfter', 'submittedBefore', 'endedAfter', 'endedBefore'] as const) {
    if ((filter[field] ?? null) !== null) {
      throw badInput(
        `selection.filter.${field}`,
        filter[field],
        'only states, siteId, userId, application, project, groupName, class and jobGroupId; or `ids` instead of the filter',
      );
    }
  }
  const conditions = jobFilter('selection.filter', filter) as NonNullable<StoreSelection['filter']>;
  // A variable that was forgotten must not cancel everything.
  if (Object.keys(conditions).length === 0)
    throw badInput('selection.filter', filter, 'at least one condition; use `all: true` for all jobs');
  return conditions;
}
