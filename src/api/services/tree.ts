/** Schedulers between the root and sites: how they stand, an administrator's changes of them, and the way of a job through them. */
import { type DispatchExplanation, dispatchKindOf, type SchedulerView } from '../../core/index.js';
import type { SchedulerRow } from '../../store/rows.js';
import type { Viewer } from '../auth.js';
import { clearable, given, patch, plainName } from '../check.js';
import type { CreateSchedulerInput, UpdateSchedulerInput } from '../generated/types.js';
import { localId } from '../ids.js';
import type { PathStepModel, TreeModel } from '../models.js';
import { guarded } from './access.js';
import { type Asker, actor, done, type ServiceParts, wakeAfter } from './parts.js';

/** Under a policy without a tree, and of one that was removed. */
const NOTHING: SchedulerView = { holds: 0, waiting: 0, channels: [] };

/** The way of a job is told by so many of its decisions. */
const PATH_DECISIONS = 100;

export function createTreeService(parts: ServiceParts) {
  const { directory, queries, mirror, shares, now } = parts;
  const idOf = (field: string, id: string): number => localId('scheduler', id, field);

  return {
    ...guarded({
      schedulers: (_viewer: Viewer): Promise<SchedulerRow[]> => queries.schedulers(),
      async scheduler(_viewer: Viewer, id: string): Promise<SchedulerRow | null> {
        const [found] = await queries.schedulersByIds([localId('scheduler', id, 'id')]);
        return found ?? null;
      },
      tree: (_viewer: Viewer): TreeModel => ({}),

      async createScheduler(
        viewer: Viewer,
        input: CreateSchedulerInput,
        requestId: string,
      ): Promise<SchedulerRow> {
        const scheduler = {
          name: plainName('name', input.name),
          parentId: clearable('parentId', input.parentId, idOf) ?? null,
        };
        const made = done(await directory.createScheduler(scheduler, actor(viewer, requestId)));
        await wakeAfter(parts, { of: 'TREE' });
        return made;
      },
      async updateScheduler(
        viewer: Viewer,
        input: UpdateSchedulerInput,
        requestId: string,
      ): Promise<SchedulerRow> {
        const change = patch({
          name: given('name', input.name, plainName),
          parentId: clearable('parentId', input.parentId, idOf),
        });
        const id = localId('scheduler', input.schedulerId, 'schedulerId');
        const made = done(await directory.updateScheduler(id, change, actor(viewer, requestId)));
        await wakeAfter(parts, { of: 'TREE' });
        return made;
      },
      async removeScheduler(viewer: Viewer, scheduler: string, requestId: string): Promise<SchedulerRow> {
        const id = localId('scheduler', scheduler, 'schedulerId');
        const removed = done(await directory.removeScheduler(id, now(), actor(viewer, requestId)));
        await wakeAfter(parts, { of: 'TREE' });
        return removed;
      },
    }),

    /** As the schedulers see it now: once for all that a request asks. null: the root. */
    async standing(id: number | null, asker: Asker): Promise<SchedulerView> {
      const view = await asker.loaders.once('tree', () =>
        shares.explain(asker, async () => {
          await mirror.sync();
          const { dispatch, seed } = mirror.policy.document;
          const look = { grid: mirror.grid, now: now(), seed };
          return dispatchKindOf(dispatch).tree?.(look, dispatch) ?? null;
        }),
      );
      return view?.get(id) ?? NOTHING;
    },

    /** The latest steps of a job that the viewer has been shown. */
    async pathOf(jobId: number): Promise<PathStepModel[]> {
      const decisions = await queries.latestDecisionsOfJob(jobId, PATH_DECISIONS);
      return decisions.flatMap(({ at, kind, siteId, reason, detail }): PathStepModel[] => {
        if (kind === 'START') return [];
        const { path } = JSON.parse(detail) as Partial<DispatchExplanation>;
        const steps = path ?? [
          { ...(siteId === null ? {} : { siteId }), reason: reason as PathStepModel['reason'] },
        ];
        return steps.map((step) => ({ ...step, at }));
      });
    },
  };
}
