/** What happens to jobs, sites and what-ifs, behind a cursor; and what agents have to do. */
import { LRUCache } from 'lru-cache';
import { poolsAskedBy } from '../../core/model.js';
import { MAX } from '../../platform/limits.js';
import type { FeedBatch } from '../../store/feed.js';
import { eventPredicate, jobPredicate } from '../../store/job-filter.js';
import type { EventRow, JobRow } from '../../store/rows.js';
import { isGivenUp, isNews } from '../../store/rules.js';
import type { Cursor, ListPlace, Assignment as StoredAssignment } from '../../store/store.js';
import { hasTasks, partsOf } from '../../store/tasks.js';
import { accountOf } from '../admission/shares.js';
import type { Viewer } from '../auth.js';
import { eventCursor } from '../connections.js';
import { ApiError, badInput } from '../errors.js';
import type {
  Assignment,
  AssignmentAction,
  AssignmentBatch,
  AssignmentsPart,
  JobFilter,
} from '../generated/types.js';
import { globalId, localId } from '../ids.js';
import { createLoaders, type Loaders } from '../loaders.js';
import type { JobUpdateModel, SimulationUpdateModel, SiteUpdateModel } from '../models.js';
import { amountsShown, partsShown, requestsShown } from '../resources.js';
import { subscription } from '../subscriptions/loop.js';
import { guarded, maySeeJob, ownerOnly, ownSite } from './access.js';
import { agentOf } from './agents.js';
import { AssignmentNews } from './assignments.js';
import { fittingNodes } from './fitting.js';
import { jobFilter } from './job-filter.js';
import type { ServiceParts } from './parts.js';
import { assignedCheckpoints, assignedInputs } from './staging.js';

/** Users whose names are known. */
const NAMES_KEPT = 10_000;

// biome-ignore lint/complexity/noExcessiveLinesPerFunction: a module: it returns short functions that share its parts
export function createSubscriptionsService(parts: ServiceParts) {
  const { store, feed, queries, limits } = parts;
  const news = new AssignmentNews(store, () => feed.cursor);

  // What the updates of a batch refer to is looked up once for all subscribers, and never earlier than the batch was read:
  // an update may not show a site as it was before its own event. The batch of the ring is known by its `jobs`.
  const looked = new WeakMap<FeedBatch['jobs'], Looked>();
  function lookedOf(batch: FeedBatch): Looked {
    let known = looked.get(batch.jobs);
    if (!known) {
      known = { loaders: createLoaders(queries, parts.now), jobs: null, updates: new Map() };
      looked.set(batch.jobs, known);
    }
    return known;
  }

  /** Names of users, which never change. */
  const names = new LRUCache<number, string>({ max: NAMES_KEPT });
  async function namesOf(runs: readonly StoredAssignment[]): Promise<ReadonlyMap<number, string>> {
    const ids = [...new Set(runs.map(({ userId }) => userId))];
    const found = new Map(ids.map((id) => [id, names.get(id)]));
    const unknown = ids.filter((id) => found.get(id) === undefined);
    if (unknown.length > 0)
      for (const { id, name } of await queries.usersByIds(unknown)) {
        found.set(id, name);
        names.set(id, name);
      }
    return found as ReadonlyMap<number, string>;
  }

  /** Where a subscriber begins: behind its cursor, or now. */
  async function begin(after: string | null): Promise<string> {
    const cursor = eventCursor('after', after);
    if (cursor === null) return feed.cursor;
    // The feed may be a moment behind what the client has seen; beyond what the database has there is nothing to wait for.
    if (Number(cursor) > Number(feed.cursor) && Number(cursor) > Number(await queries.latestCursor())) {
      throw badInput('after', cursor, 'a cursor from this service');
    }
    return cursor;
  }

  return guarded({
    async jobUpdated(viewer: Viewer, filter: JobFilter | null, after: string | null) {
      const wanted = jobFilter('filter', filter);
      const owner = ownerOnly(viewer);
      const ofJob = jobPredicate(wanted);
      const ofEvent = eventPredicate(wanted);
      return subscription<JobUpdateModel>(accountOf(viewer), feed, limits.subscriberBuffer, {
        from: await begin(after),
        updates(batch) {
          // Most events are refused by what they say themselves: then nobody needs to read the jobs.
          const events = batch.events.filter(
            (event) => event.seq !== null && (owner === null || event.userId === owner) && ofEvent(event),
          );
          if (events.length === 0) return [];
          const known = lookedOf(batch);
          const seen = (jobs: ReadonlyMap<number, JobRow>): JobUpdateModel[] =>
            events.flatMap((event) => {
              const job = jobs.get(event.entityId);
              return job && maySeeJob(viewer, job) && ofJob(job, event)
                ? [
                    updateOf(known, event, ({ loaders }) => ({
                      cursor: String(event.id),
                      event,
                      job,
                      loaders,
                    })),
                  ]
                : [];
            });
          if (known.jobs) return seen(known.jobs);
          return batch.jobs().then((jobs) => {
            known.jobs = jobs;
            return seen(jobs);
          });
        },
        resync: (cursor) => ({ cursor, event: null, job: null, loaders: null }),
      });
    },

    async siteUpdated(viewer: Viewer, site: string | null, after: string | null) {
      const asked = site === null ? null : localId('site', site, 'siteId');
      const only = viewer.role === 'AGENT' ? viewer.siteId : asked;
      if (viewer.role === 'AGENT' && (only === null || (asked !== null && asked !== only))) {
        throw new ApiError('FORBIDDEN', 'this key is for another site');
      }
      return subscription<SiteUpdateModel>(accountOf(viewer), feed, limits.subscriberBuffer, {
        from: await begin(after),
        updates(batch) {
          const known = lookedOf(batch);
          return batch.events.flatMap((event) => {
            const { seq, siteId } = event;
            return seq === null && siteId !== null && (only === null || siteId === only)
              ? [
                  updateOf(known, event, ({ loaders }) => ({
                    cursor: String(event.id),
                    event,
                    siteId,
                    loaders,
                  })),
                ]
              : [];
          });
        },
        resync: (cursor) => ({ cursor, event: null, siteId: null, loaders: null }),
      });
    },

    async simulationUpdated(viewer: Viewer, simulation: string | null, after: string | null) {
      const only = simulation === null ? null : localId('simulation', simulation, 'simulationId');
      return subscription<SimulationUpdateModel>(accountOf(viewer), feed, limits.subscriberBuffer, {
        from: await begin(after),
        async updates(batch) {
          const events = batch.events.filter(
            ({ kind, entityId }) => kind === 'SIMULATION' && (only === null || entityId === only),
          );
          if (events.length === 0) return [];
          const { loaders } = lookedOf(batch);
          const found = await queries.simulationsByIds([...new Set(events.map((event) => event.entityId))]);
          const byId = new Map(found.map((row) => [row.id, row]));
          return events.flatMap((event) => {
            const row = byId.get(event.entityId);
            return row ? [{ cursor: String(event.id), event, simulation: row, loaders }] : [];
          });
        },
        resync: (cursor) => ({ cursor, event: null, simulation: null, loaders: null }),
      });
    },

    async assignments(viewer: Viewer, site: string, agent: string | null, after: string | null) {
      const siteId = localId('site', site, 'site');
      ownSite(viewer, siteId);
      const agentId = agentOf(agent);
      let at: Cursor | ListPlace | null = eventCursor('after', after);
      const joined = news.join(siteId, agentId);
      const inFull = async (runs: readonly StoredAssignment[]) => {
        const inputs = await assignedInputs(queries, siteId, runs);
        const checkpoints = await assignedCheckpoints(queries, runs);
        const names = await namesOf(runs);
        const nodes = await fittingNodes(queries, siteId, runs, parts.now());
        return (run: StoredAssignment): Assignment[] => {
          const parts = partsOf(run, agentId);
          // Of a run whose tasks on the agent's machines have all ended, there is nothing to do.
          if (parts.length === 0 && hasTasks(run) && run.siteAgentId === null) return [];
          return [
            assignment(run, {
              ...{ user: names.get(run.userId) as string, parts },
              ...{ inputs: inputs(run.jobId), checkpoint: checkpoints(run, parts), ...nodes(run) },
            }),
          ];
        };
      };
      /** What is new, each with its cursor: what they need is read once for all. */
      const newsOf = async (
        told: readonly { cursor: Cursor; assignments: readonly StoredAssignment[] }[],
      ): Promise<AssignmentBatch[]> => {
        const of = await inFull(told.flatMap(({ assignments }) => assignments));
        return told.map(({ cursor, assignments }) => ({
          cursor,
          complete: false,
          part: null,
          assignments: assignments.flatMap(of),
        }));
      };
      /** What was live has been told; what is new follows. */
      let upToDate = false;
      return subscription<AssignmentBatch>(accountOf(viewer), feed, limits.subscriberBuffer, {
        async read() {
          if (upToDate) {
            await joined.upTo(feed.cursor);
            const told = joined.take(at as Cursor);
            if (told !== null) return { updates: await newsOf(told), more: false };
            upToDate = false;
            at = null;
          }
          const before: typeof at = at;
          const { next, list, assignments } = await store.assignments(
            siteId,
            before,
            MAX.assignments,
            MAX.assignmentBytes,
            agentId,
          );
          at = next;
          upToDate = typeof next === 'string' && (list !== null || next === before);
          // A window or a list that was cut short goes on; and behind a list, what happened while it was read.
          const more = !upToDate;
          if (list === null) {
            const updates =
              assignments.length === 0 ? [] : await newsOf([{ cursor: next as Cursor, assignments }]);
            return { updates, more };
          }
          return {
            updates: [
              {
                cursor: typeof next === 'string' ? next : BEFORE_ALL,
                complete: list.first && list.last,
                part: partOf(list),
                assignments: assignments.flatMap(await inFull(assignments)),
              },
            ],
            more,
          };
        },
        concerns: (batch, upTo) =>
          batch.events.some((event) => concernsAgents(event, siteId)) && joined.upTo(upTo),
        stop: joined.leave,
      });
    },
  });
}

/** What the subscribers to the events of a batch share. */
interface Looked {
  readonly loaders: Loaders;
  /** null: not read yet. */
  jobs: ReadonlyMap<number, JobRow> | null;
  /** By event. One of a job is none of a site. */
  readonly updates: Map<number, JobUpdateModel | SiteUpdateModel>;
}

/** The update that an event makes, the same object for all who hear of it: what they may see of it is decided before, and as it is answered. */
function updateOf<T extends JobUpdateModel | SiteUpdateModel>(
  known: Looked,
  { id }: EventRow,
  make: (known: Looked) => T,
): T {
  let update = known.updates.get(id) as T | undefined;
  if (update === undefined) {
    update = make(known);
    known.updates.set(id, update);
  }
  return update;
}

/** Something that an agent of the site may have to be told. */
const concernsAgents = (event: EventRow, siteId: number): boolean =>
  isNews(event, siteId) || isGivenUp(event, siteId, 'LOST');

/** What a part of a list has for a cursor: who goes on from there begins anew. */
const BEFORE_ALL = '0';

function partOf({ first, last }: { first: boolean; last: boolean }): AssignmentsPart | null {
  if (first) return last ? null : 'FIRST';
  return last ? 'LAST' : 'NEXT';
}

const ACTIONS: Readonly<Record<StoredAssignment['state'], AssignmentAction>> = {
  ASSIGNED: 'START',
  RUNNING: 'CONTINUE',
  CANCELLING: 'STOP',
};

/**
 * Of the fields that are not named here the agent is told as they are (store/job-fields.ts). Assigned rather than spread: a tenth of the
 * time, of so many fields.
 */
const assignment = (
  run: StoredAssignment,
  looked: Pick<Assignment, 'user' | 'inputs' | 'checkpoint' | 'parts' | 'nodes' | 'partNodes'>,
): Assignment =>
  Object.assign({}, run, {
    job: globalId('job', run.jobId),
    action: run.ending ? 'STOP' : ACTIONS[run.state],
    resourcesPerTask: amountsShown(run.resourcesPerTask),
    devicesPerTask: requestsShown(run.devicesPerTask),
    resources: amountsShown(run.resources),
    pools: poolsAskedBy(run),
    jobParts: partsShown(run.jobParts),
    outputs: run.outputs.map(({ path, dataset }) => ({
      ...{
        path,
        keep: dataset === undefined ? ('SERVICE' as const) : ('DATASET' as const),
        dataset: dataset ?? null,
      },
    })),
    downloads: [...(run.downloads ?? [])],
    uploads: [...(run.uploads ?? [])],
    machines: run.machines.map(({ machineId, name, host, tasks, devices }) => ({
      ...{ machine: globalId('machine', machineId), name, host, tasks, devices: [...devices] },
    })),
    ...looked,
  });
