/** The schedulers between the root and the sites (grid-tree.md), as administrators have arranged them. */
import type { TreeScheduler } from '../model.js';

export class SchedulerTree {
  private readonly byId = new Map<number, TreeScheduler>();
  private known = '[]';
  /** Changes whenever the schedulers do. */
  version = 0;

  /** All there are. */
  set(schedulers: readonly TreeScheduler[]): void {
    const news = JSON.stringify(schedulers);
    if (news === this.known) return;
    this.known = news;
    this.version++;
    this.byId.clear();
    for (const one of [...schedulers].sort((a, b) => a.id - b.id)) this.byId.set(one.id, one);
  }

  /** By id. */
  get all(): Iterable<TreeScheduler> {
    return this.byId.values();
  }

  find(id: number | null): TreeScheduler | null {
    return id === null ? null : (this.byId.get(id) ?? null);
  }

  /**
   * From below the root down to the scheduler itself; empty: the root, or one that is not there any more, and whose jobs and sites are the
   * root's until they are said to be somebody else's.
   */
  pathTo(id: number | null): TreeScheduler[] {
    const path: TreeScheduler[] = [];
    for (let one = this.find(id); one !== null && !path.includes(one); one = this.find(one.parentId))
      path.unshift(one);
    return path;
  }
}
