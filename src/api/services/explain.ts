/** Dry runs and explanations: what the schedulers would do, asked of the same functions that do it. */
import {
  type Job as CoreJob,
  type ExplainContext,
  type Grid,
  keepsPromises,
  localPolicyOf,
  type Placing,
  type PredictedStart,
  placement,
  predictStart,
  promisesFrom,
  type SiteRanking,
  waitingOnHold,
  whyWaiting,
} from '../../core/index.js';
import { isLive, isTerminal } from '../../core/states.js';
import type { JobRow } from '../../store/rows.js';
import { submittedJob } from '../../store/rules.js';
import type { Viewer } from '../auth.js';
import { ApiError, badInput, notFound } from '../errors.js';
import type { JobInput, WhyWaiting } from '../generated/resolvers-types.js';
import { globalId, localId } from '../ids.js';
import type { CandidateModel, PlacementModel } from '../models.js';
import { guarded, handlesAll, maySeeJob } from './access.js';
import { newJob, placesOf } from './job-input.js';
import type { ServiceParts } from './parts.js';

/** The id of a job that does not exist: draws depend on ids, so a dry run's draw may fall otherwise than the job's will. */
const NO_JOB = 0;

export function createExplainService(parts: ServiceParts) {
  const { store, queries, mirror, now } = parts;

  async function context() {
    await mirror.sync();
    return {
      grid: mirror.grid,
      version: mirror.policy.version,
      explain: { now: now(), policy: mirror.policy.document },
    };
  }

  /** Gives the grid what the site's scheduler has promised, as a cycle of the site would find it. */
  async function takeInPromises(grid: Grid, siteId: number, { policy }: ExplainContext): Promise<void> {
    const local = localPolicyOf(grid.siteEntry(siteId).site, policy);
    const { promises } = keepsPromises(local) ? await store.promises(siteId) : { promises: null };
    grid.keepMemory(siteId, promises && promisesFrom(grid, siteId, local, promises));
  }

  async function startAt(
    grid: Grid,
    siteId: number,
    job: CoreJob,
    explain: ExplainContext,
  ): Promise<PredictedStart | null> {
    await takeInPromises(grid, siteId, explain);
    return predictStart(grid, grid.siteEntry(siteId), job, explain);
  }

  async function userClass(userId: number): Promise<CoreJob['userClass']> {
    const [user] = await queries.usersByIds([userId]);
    if (!user) throw notFound('user', globalId('user', userId));
    return user.class;
  }

  /** The dry run of a job that is not in a site's queue. */
  async function atRoot(job: CoreJob): Promise<PlacementModel> {
    const { grid, version, explain } = await context();
    const placing = placement(grid, job, explain);
    const siteId = placing.start?.siteId ?? null;
    const start = siteId === null ? null : await startAt(grid, siteId, job, explain);
    return {
      ...described(placing),
      policyVersion: version,
      siteId: placing.siteId,
      startsAt: start?.at ?? null,
      allocations: start?.allocations ?? [],
    };
  }

  async function ofJob(row: JobRow): Promise<PlacementModel> {
    if (isTerminal(row.state) || isLive(row.state)) {
      throw new ApiError(
        'CONFLICT',
        `${globalId('job', row.id)} is ${row.state}: it has already been started or has ended`,
      );
    }
    const { grid, version, explain } = await context();
    const known = grid.job(row.id);
    const place = grid.placeOf(row.id);
    if (known === null || place === null || place.at === 'ROOT') {
      return atRoot(
        known ?? submittedJob(row, { ...row, userClass: await userClass(row.userId), groupId: null }),
      );
    }
    if (place.at === 'RUNNING')
      throw new ApiError('CONFLICT', `${globalId('job', row.id)} has just been started`);
    // It is in a queue: its place is decided, the ranking is what it would be today.
    const start = await startAt(grid, place.siteId, known, explain);
    return {
      ...described(placement(grid, known, explain)),
      policyVersion: version,
      siteId: place.siteId,
      startsAt: start?.at ?? null,
      allocations: start?.allocations ?? [],
    };
  }

  return {
    ...guarded({
      async placement(viewer: Viewer, job: string | null, spec: JobInput | null): Promise<PlacementModel> {
        if ((job === null) === (spec === null))
          throw badInput('placement', { job, spec: spec && '…' }, 'either `job` or `spec`');
        if (spec !== null) {
          const places = await placesOf([spec], queries);
          const made = newJob(spec, { mayRaise: handlesAll(viewer), places }, (fault) => {
            throw new ApiError(fault.code, `spec.${fault.message}`, { field: fault.field });
          });
          const { userId } = viewer;
          const of = {
            id: NO_JOB,
            userId,
            userClass: await userClass(userId),
            submittedAt: now(),
            groupId: null,
          };
          return atRoot(submittedJob(made, of));
        }
        const id = job as string;
        const [row] = await queries.jobsByIds([localId('job', id, 'job')]);
        if (!row || !maySeeJob(viewer, row)) throw notFound('job', id);
        return ofJob(row);
      },
    }),

    /** Of a job that the viewer has been shown; null where it does not wait. */
    async whyWaiting(job: Pick<JobRow, 'id' | 'state'>): Promise<WhyWaiting | null> {
      if (job.state === 'HELD') return waitingOnHold();
      if (job.state !== 'QUEUED' && job.state !== 'DISPATCHED') return null;
      const { grid, explain } = await context();
      const place = grid.placeOf(job.id);
      if (place?.at === 'QUEUE') await takeInPromises(grid, place.siteId, explain);
      // It may have moved on since the row was read.
      return grid.placeOf(job.id) === null ? null : whyWaiting(grid, job.id, explain);
    },
  };
}

function described({ priority, reason, message, ranking, explanation }: Placing) {
  return {
    priority,
    jobTerms: explanation?.priorityTerms ?? {},
    reason,
    message,
    candidates: candidates(ranking),
  };
}

/** A ranking of sites as the API shows it. */
export const candidates = (ranking: readonly SiteRanking[]): CandidateModel[] =>
  ranking.map(({ siteId, rank, terms, ineligible }) => ({
    siteId,
    eligible: ineligible === null,
    reason: ineligible,
    rank,
    terms,
  }));
