/** Schedulers between the root and sites. */
import { MAX } from '../../platform/limits.js';
import { instant, plain } from '../read-rows.js';
import type { SchedulerRow } from '../rows.js';
import { sql } from '../sql.js';
import {
  type Actor,
  type Changes,
  conflict,
  found,
  inService,
  Refusal,
  type Transaction,
  unique,
} from './changes.js';

export interface NewScheduler {
  name: string;
  /** null: the root. */
  parentId: number | null;
}

export const schedulerChanges = (change: Changes) => ({
  createScheduler(scheduler: NewScheduler, actor: Actor) {
    return change(actor, 'createScheduler', async (tx, note): Promise<SchedulerRow> => {
      const tree = await lockTree(tx);
      if (tree.size >= MAX.schedulers)
        throw new Refusal(
          'LIMIT_EXCEEDED',
          `there are ${tree.size} schedulers; accepted: up to ${MAX.schedulers}`,
        );
      checkDepth(tree, scheduler.parentId, 1);
      const after = plain(
        await unique(`there is already a scheduler named ${scheduler.name}`, () =>
          tx.scheduler.create({ data: scheduler }),
        ),
      );
      await note(`scheduler_${after.id}`, null, after);
      return after;
    });
  },

  /** What is absent stays. What is below it comes along; jobs go on from where they are. */
  updateScheduler(id: number, given: Partial<NewScheduler>, actor: Actor) {
    return change(actor, 'updateScheduler', async (tx, note): Promise<SchedulerRow> => {
      const tree = await lockTree(tx);
      const before = ofTree(tree, id);
      if (given.parentId !== undefined) {
        if (pathTo(tree, given.parentId).some((above) => above.id === id))
          throw conflict(`scheduler ${before.name} would be below itself`);
        checkDepth(tree, given.parentId, heightOf(tree, id));
      }
      const after = plain(
        await unique(`there is already a scheduler named ${given.name}`, () =>
          tx.scheduler.update({ where: { id }, data: given }),
        ),
      );
      await note(`scheduler_${id}`, before, after);
      return after;
    });
  },

  /** What is below it goes to its parent. Jobs that it holds are the root's from then on, which gives them out again. */
  removeScheduler(id: number, now: number, actor: Actor) {
    return change(actor, 'removeScheduler', async (tx, note): Promise<SchedulerRow> => {
      // Sites come first in the order of locks; one that is hung below meanwhile finds that the scheduler is gone.
      await tx.$queryRaw(sql`SELECT 1 FROM sites WHERE scheduler_id = ${id} ORDER BY id FOR NO KEY UPDATE`);
      const tree = await lockTree(tx);
      const before = ofTree(tree, id);
      const { parentId } = before;
      const after = plain(await tx.scheduler.update({ where: { id }, data: { removedAt: instant(now) } }));
      await tx.scheduler.updateMany({ where: { parentId: id, removedAt: null }, data: { parentId } });
      await tx.site.updateMany({ where: { schedulerId: id }, data: { schedulerId: parentId } });
      await note(`scheduler_${id}`, before, after);
      return after;
    });
  },
});

/** It must be there, and stay it meanwhile; null: the root. */
export async function shareScheduler(tx: Transaction, id: number | null | undefined): Promise<void> {
  if (id === null || id === undefined) return;
  await tx.$queryRaw(sql`SELECT 1 FROM schedulers WHERE id = ${id} FOR SHARE`);
  inService('scheduler', id, await tx.scheduler.findUnique({ where: { id } }));
}

type Tree = ReadonlyMap<number, SchedulerRow>;

/** Nobody else changes the tree meanwhile: two moves that are good one by one could make a circle. */
async function lockTree(tx: Transaction): Promise<Tree> {
  await tx.$executeRaw(sql`LOCK TABLE schedulers IN SHARE ROW EXCLUSIVE MODE`);
  const rows = await tx.scheduler.findMany({ where: { removedAt: null } });
  return new Map(rows.map((row) => [row.id, plain(row)]));
}

const ofTree = (tree: Tree, id: number): SchedulerRow => found('scheduler', id, tree.get(id) ?? null);

/** From the scheduler up to below the root. */
function pathTo(tree: Tree, id: number | null): SchedulerRow[] {
  const path: SchedulerRow[] = [];
  for (let at = id; at !== null; at = (path.at(-1) as SchedulerRow).parentId) path.push(ofTree(tree, at));
  return path;
}

function heightOf(tree: Tree, id: number): number {
  let below = 0;
  for (const one of tree.values()) if (one.parentId === id) below = Math.max(below, heightOf(tree, one.id));
  return below + 1;
}

/** With so many levels hung under the parent. */
function checkDepth(tree: Tree, parentId: number | null, levels: number): void {
  const depth = pathTo(tree, parentId).length + levels;
  if (depth > MAX.treeDepth)
    throw new Refusal(
      'LIMIT_EXCEEDED',
      `schedulers would be ${depth} levels deep; accepted: up to ${MAX.treeDepth}`,
    );
}
