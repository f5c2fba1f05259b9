/**
 * What applications spend their run time on, as it was learned from their runs: now, its history, and news of it.
 *
 * A point of the history is written in the transaction that ends its run, and points are numbered in the order of commits. So nothing is
 * kept for a subscriber: the event feed says when runs have ended, and what is behind its cursor is looked up then. Who is slow finds more at
 * once.
 */
import { JobHistory, type JobRatio } from '../../core/index.js';
import { MAX } from '../../platform/limits.js';
import type { RatioPointRow } from '../../store/rows.js';
import { accountOf } from '../admission/shares.js';
import type { Viewer } from '../auth.js';
import { text } from '../check.js';
import { type Connection, connection, eventCursor, pageSize } from '../connections.js';
import { badInput } from '../errors.js';
import type { JobRatioHistoryArgs } from '../generated/types.js';
import { createLoaders } from '../loaders.js';
import type { JobRatioModel, JobRatioUpdateModel } from '../models.js';
import { subscription } from '../subscriptions/loop.js';
import { type Behind, POINTS_MAX, RecentPoints } from '../subscriptions/recent-points.js';
import { guarded, ownerOnly } from './access.js';
import type { ServiceParts } from './parts.js';

/** What a look behind a cursor finds. */
interface Look extends Behind {
  /** There may be more behind it. */
  more: boolean;
  /** Retention has passed the cursor: points were left out. */
  tooOld: boolean;
}

// biome-ignore lint/complexity/noExcessiveLinesPerFunction: a module: it returns short functions that share its parts
export function createRatiosService(parts: ServiceParts) {
  const { feed, queries, mirror, limits } = parts;
  const newLoaders = () => createLoaders(queries, parts.now);
  const recent = new RecentPoints(feed, queries, newLoaders);

  /** The ratio that a job of the viewer's would get which needs nothing in particular. */
  async function ofSimilar(viewer: Viewer, application: string): Promise<JobRatio> {
    await mirror.sync();
    const nothing = { licenses: [], os: null, architecture: null, data: null };
    return mirror.grid.index(JobHistory).ratioOf({ application, userId: viewer.userId, ...nothing });
  }

  async function jobRatio(viewer: Viewer, application: string): Promise<JobRatioModel> {
    text('application', application, MAX.nameChars, 1);
    const { cursor, ratio } = await queries.ratio(application);
    if (ratio === null) {
      return {
        application,
        ...(await ofSimilar(viewer, application)),
        averages: null,
        cursor: String(cursor),
      };
    }
    const { runs, computation, turnaroundS, executionS, ioS } = ratio;
    return {
      application,
      computation,
      dataIntensive: turnaroundS > 0 ? Math.min(1, ioS / turnaroundS) : 0,
      source: 'APPLICATION',
      runs,
      averages: { turnaroundS, executionS, ioS },
      cursor: String(cursor),
    };
  }

  /** Points behind one, from the database. */
  async function look(application: string | null, after: number): Promise<Look> {
    const loaders = newLoaders();
    const latest = await queries.latestRatioPoint();
    const points = await queries.ratioPointsSince(application, after, POINTS_MAX);
    if (points === 'too-old') return { points: [], upTo: latest, more: false, tooOld: true, loaders };
    const more = points.length === POINTS_MAX;
    const last = points.at(-1)?.id ?? after;
    return { points, upTo: more ? last : Math.max(last, latest), more, tooOld: false, loaders };
  }

  /** The same for a subscriber that was up to date: what is new has mostly been read for all of them. */
  async function lookNear(application: string | null, after: number): Promise<Look> {
    const near = await recent.behind(after);
    if (near === null) return look(application, after);
    const { points, upTo, loaders } = near;
    const own = application === null ? points : points.filter((point) => point.application === application);
    return { points: own, upTo, more: false, tooOld: false, loaders };
  }

  /** Where a subscriber begins: behind its cursor, or now. */
  async function begin(after: string | null): Promise<number> {
    const latest = await queries.latestRatioPoint();
    const cursor = eventCursor('after', after);
    if (cursor === null) return latest;
    if (Number(cursor) > latest)
      throw badInput('after', cursor, 'a cursor from `jobRatio`, its history or `jobRatioUpdated`');
    return Number(cursor);
  }

  return {
    ...guarded({
      jobRatio,

      async jobRatioUpdated(viewer: Viewer, application: string | null, after: string | null) {
        if (application !== null) text('application', application, MAX.nameChars, 1);
        // When and where a run ended is its owner's to know.
        const owner = ownerOnly(viewer);
        let at = await begin(after);
        let upToDate = false;

        async function visible({ points, loaders }: Look): Promise<readonly RatioPointRow[]> {
          if (owner === null) return points;
          const jobs = await loaders.jobs(points.map((point) => point.jobId));
          const own = new Set(jobs.filter((job) => job.userId === owner).map((job) => job.id));
          return points.filter((point) => own.has(point.jobId));
        }

        return subscription<JobRatioUpdateModel>(accountOf(viewer), feed, limits.subscriberBuffer, {
          async read() {
            const found = await (upToDate ? lookNear : look)(application, at);
            const { upTo, more, tooOld, loaders } = found;
            at = upTo;
            upToDate ||= !more;
            if (tooOld) return { updates: [{ cursor: String(at), point: null, loaders: null }], more };
            const points = await visible(found);
            return { updates: points.map((point) => ({ cursor: String(point.id), point, loaders })), more };
          },
          concerns: (batch) => batch.events.some((event) => event.toState === 'COMPLETED'),
        });
      },
    }),

    /** Of an application that the viewer has been shown. */
    async historyOf(
      viewer: Viewer,
      application: string,
      { first, after, last, before }: JobRatioHistoryArgs,
    ): Promise<Connection<RatioPointRow>> {
      const backward = (last ?? null) !== null || (before ?? null) !== null;
      if (backward && ((first ?? null) !== null || (after ?? null) !== null))
        throw badInput('last', last ?? before, 'either `first` with `after`, or `last` with `before`');
      const size = backward ? pageSize('last', last, limits) : pageSize('first', first, limits);
      const cursor = backward ? eventCursor('before', before) : eventCursor('after', after);
      const from = cursor === null ? null : Number(cursor);
      const rows = await queries.ratioPoints(application, ownerOnly(viewer), from, size + 1, backward);
      return connection(rows, size, (point) => String(point.id), { backward, continued: from !== null });
    },
  };
}
