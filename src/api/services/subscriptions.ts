/**
 * News by cursor. Each subscriber walks along the process's one event feed, which has read the events and their jobs once for
 * all; nothing is kept for a slow one. Who was up to date and then falls too far behind is told to query again and goes on
 * from now; so is who comes with a cursor that retention has passed.
 */
import { MAX } from '../../platform/limits.js';
import type { FeedBatch } from '../../store/feed.js';
import type { EventRow, JobRow } from '../../store/rows.js';
import type { Assignment as StoredAssignment } from '../../store/store.js';
import type { Viewer } from '../auth.js';
import { atMost, text } from '../check.js';
import { eventCursor } from '../connections.js';
import { ApiError, badInput } from '../errors.js';
import type {
  Assignment,
  AssignmentAction,
  AssignmentBatch,
  JobFilter,
} from '../generated/resolvers-types.js';
import { globalId, localId } from '../ids.js';
import { createLoaders, type Loaders } from '../loaders.js';
import type { JobUpdateModel, SimulationUpdateModel, SiteUpdateModel } from '../models.js';
import { pulled } from '../subscriptions/streams.js';
import { guarded, maySeeJob, ownerOnly, ownSite } from './access.js';
import type { ServiceParts } from './parts.js';

export function createSubscriptionsService(parts: ServiceParts) {
  const { store, feed, queries, limits } = parts;

  // What the updates of a batch refer to is looked up once for all subscribers, and never earlier than the batch was read:
  // an update may not show a site as it was before its own event. The batch of the ring is known by its `jobs`.
  const looked = new WeakMap<FeedBatch['jobs'], Loaders>();
  function loadersOf(batch: FeedBatch): Loaders {
    let loaders = looked.get(batch.jobs);
    if (!loaders) {
      loaders = createLoaders(queries, parts.now);
      looked.set(batch.jobs, loaders);
    }
    return loaders;
  }

  /** Where a subscriber begins: behind its cursor, or now. */
  async function begin(after: string | null): Promise<string> {
    const cursor = eventCursor('after', after);
    if (cursor === null) return feed.cursor;
    // The feed may be a moment behind what the client has seen; beyond what the database has there is nothing to wait for.
    if (Number(cursor) > Number(feed.cursor) && Number(cursor) > Number(await queries.latestCursor())) {
      throw badInput('after', cursor, 'a cursor that this service gave out');
    }
    return cursor;
  }

  /** What `pick` makes of the batches behind a cursor, one update after another. */
  function updates<T>(
    from: string,
    pick: (batch: FeedBatch) => T[] | Promise<T[]>,
    resync: (cursor: string) => T,
  ): AsyncGenerator<T, void, void> {
    const stop = new AbortController();
    let batches = feed.follow(from, stop.signal);
    let ready: T[] = [];
    let next = 0;
    // A cursor from yesterday is caught up with page by page; only who has caught up once can fall behind.
    let upToDate = false;
    return pulled(
      async () => {
        while (next >= ready.length) {
          const { value: batch, done } = await batches.next();
          if (done || !batch) return null;
          const behind = Number(feed.cursor) - Number(batch.cursor);
          if (batch.resync || (upToDate && behind > limits.subscriberBuffer)) {
            const cursor = batch.resync ? batch.cursor : feed.cursor;
            if (!batch.resync) {
              void batches.return();
              batches = feed.follow(cursor, stop.signal);
            }
            return resync(cursor);
          }
          upToDate ||= behind === 0;
          ready = await pick(batch);
          next = 0;
        }
        const update = ready[next] as T;
        // What was sent need not be remembered.
        ready[next++] = undefined as T;
        return update;
      },
      () => stop.abort(),
    );
  }

  return guarded({
    async jobUpdated(viewer: Viewer, filter: JobFilter | null, after: string | null) {
      const { ofEvent, ofJob } = matcher(filter, ownerOnly(viewer));
      const pick = async (batch: FeedBatch): Promise<JobUpdateModel[]> => {
        // Most events are refused by what they say themselves: then nobody needs to read the jobs.
        const events = batch.events.filter((event) => event.seq !== null && ofEvent(event));
        if (events.length === 0) return [];
        const jobs = await batch.jobs();
        const found: JobUpdateModel[] = [];
        const loaders = loadersOf(batch);
        for (const event of events) {
          const job = jobs.get(event.entityId);
          if (job && maySeeJob(viewer, job) && ofJob(event, job))
            found.push({ cursor: String(event.id), event, job, loaders });
        }
        return found;
      };
      return updates(
        await begin(after),
        pick,
        (cursor): JobUpdateModel => ({ cursor, event: null, job: null, loaders: null }),
      );
    },

    async siteUpdated(viewer: Viewer, site: string | null, after: string | null) {
      const asked = site === null ? null : localId('site', site, 'site');
      const only = viewer.role === 'AGENT' ? viewer.siteId : asked;
      if (viewer.role === 'AGENT' && (only === null || (asked !== null && asked !== only))) {
        throw new ApiError('FORBIDDEN', 'this key is for another site, or for none');
      }
      const pick = (batch: FeedBatch): SiteUpdateModel[] => {
        const found: SiteUpdateModel[] = [];
        const loaders = loadersOf(batch);
        for (const event of batch.events) {
          if (event.seq !== null || event.siteId === null || (only !== null && event.siteId !== only))
            continue;
          found.push({ cursor: String(event.id), event, siteId: event.siteId, loaders });
        }
        return found;
      };
      return updates(
        await begin(after),
        pick,
        (cursor): SiteUpdateModel => ({ cursor, event: null, siteId: null, loaders: null }),
      );
    },

    async simulationUpdated(_viewer: Viewer, simulation: string | null, after: string | null) {
      const only = simulation === null ? null : localId('simulation', simulation, 'simulation');
      const pick = async (batch: FeedBatch): Promise<SimulationUpdateModel[]> => {
        const events = batch.events.filter(
          ({ kind, entityId }) => kind === 'SIMULATION' && (only === null || entityId === only),
        );
        if (events.length === 0) return [];
        const loaders = loadersOf(batch);
        const found = await queries.simulationsByIds([...new Set(events.map((event) => event.entityId))]);
        const byId = new Map(found.map((row) => [row.id, row]));
        return events.flatMap((event) => {
          const row = byId.get(event.entityId);
          return row ? [{ cursor: String(event.id), event, simulation: row, loaders }] : [];
        });
      };
      return updates(
        await begin(after),
        pick,
        (cursor): SimulationUpdateModel => ({ cursor, event: null, simulation: null, loaders: null }),
      );
    },

    async assignments(viewer: Viewer, site: string, after: string | null) {
      const siteId = localId('site', site, 'site');
      ownSite(viewer, siteId);
      let cursor = eventCursor('after', after);
      const stop = new AbortController();
      // Followed from before the first look, so that nothing is missed in between.
      const news = feed.follow(feed.cursor, stop.signal);
      let looked = false;

      return pulled<AssignmentBatch>(
        async () => {
          for (;;) {
            if (!looked) {
              const batch = await store.assignments(siteId, cursor, MAX.assignments);
              // A window that was cut short answers with a cursor before the end: the next look goes on from there.
              looked = batch.complete || batch.cursor === cursor;
              cursor = batch.cursor;
              if (batch.complete || batch.assignments.length > 0) {
                return { cursor, complete: batch.complete, assignments: batch.assignments.map(assignment) };
              }
              continue;
            }
            const { value, done } = await news.next();
            if (done || !value) return null;
            looked = !value.resync && !value.events.some((event) => concernsAgent(event, siteId));
          }
        },
        () => stop.abort(),
      );
    },
  });
}

/** Something that the site's agent has to be told. */
const concernsAgent = (event: EventRow, siteId: number): boolean =>
  event.siteId === siteId && (event.toState === 'ASSIGNED' || event.toState === 'CANCELLING');

interface Matcher {
  /** What the event alone can say. */
  ofEvent(event: EventRow): boolean;
  ofJob(event: EventRow, job: JobRow): boolean;
}

/**
 * Whether an event and its job match a filter. States are those that the event led to: the row is as it is now, and a short
 * job may have ended by the time its start is read. `owner`: only this user's jobs; null: everybody's.
 */
function matcher(filter: JobFilter | null, owner: number | null): Matcher {
  const given = filter ?? {};
  const ids = given.ids
    ? new Set(atMost('filter.ids', given.ids, MAX.filterIds).map((id) => localId('job', id, 'filter.ids')))
    : null;
  const states = given.states ? new Set<string>(given.states) : null;
  const siteId = given.site ? localId('site', given.site, 'filter.site') : null;
  const userId = given.user ? localId('user', given.user, 'filter.user') : null;
  const application = given.application ?? null;
  if (application !== null) text('filter.application', application, MAX.nameChars);
  const groupName = given.groupName ?? null;
  if (groupName !== null) text('filter.groupName', groupName, MAX.nameChars);
  const groupId = given.group ? localId('group', given.group, 'filter.group') : null;
  const submitted = range(given.submittedAfter, given.submittedBefore);
  const ended = range(given.endedAfter, given.endedBefore);
  return {
    ofEvent: (event) =>
      (owner === null || event.userId === owner) &&
      (userId === null || event.userId === userId) &&
      (ids === null || ids.has(event.entityId)) &&
      (states === null || event.toState === null || states.has(event.toState)),
    ofJob: (event, job) =>
      (states === null || states.has(event.toState ?? job.state)) &&
      (siteId === null || (event.siteId ?? job.siteId) === siteId) &&
      (application === null || job.application === application) &&
      (groupName === null || job.groupName === groupName) &&
      (groupId === null || job.groupId === groupId) &&
      (submitted === null || submitted(job.submittedAt)) &&
      (ended === null || (job.endedAt !== null && ended(job.endedAt))),
  };
}

/** Null: any time will do. */
function range(
  after: Date | null | undefined,
  before: Date | null | undefined,
): ((at: number) => boolean) | null {
  if (!after && !before) return null;
  const from = after ? after.getTime() / 1000 : Number.NEGATIVE_INFINITY;
  const to = before ? before.getTime() / 1000 : Number.POSITIVE_INFINITY;
  return (at) => at >= from && at < to;
}

const ACTIONS: Readonly<Record<StoredAssignment['state'], AssignmentAction>> = {
  ASSIGNED: 'START',
  RUNNING: 'CONTINUE',
  CANCELLING: 'STOP',
};

function assignment(run: StoredAssignment): Assignment {
  return {
    job: globalId('job', run.jobId),
    epoch: run.epoch,
    action: ACTIONS[run.state],
    command: run.command,
    arguments: run.arguments,
    environment: run.environment,
    workingDirectory: run.workingDirectory,
    tasks: run.tasks,
    cpusPerTask: run.cpusPerTask,
    memoryMbPerTask: run.memoryMbPerTask,
    licenses: run.licenses,
    runTimeLimitS: run.runTimeLimitS,
    arrayIndex: run.arrayIndex,
    application: run.application,
    machines: run.machines.map(({ machineId, name, tasks }) => ({
      machine: globalId('machine', machineId),
      name,
      tasks,
    })),
    plannedS: run.plannedS,
    simulatedS: run.simulatedS,
    simulatedIoS: run.simulatedIoS,
  };
}
