/** Jobs that go back to the root because nobody serves them where they wait. */
import type { Return } from '../core/index.js';
import type { Cycle, CycleTools } from './cycle.js';

/** Has the store return them, which looks again at what each is by now. How many came back. */
export async function takeBack(
  cycle: Cycle,
  { store, mirror, now }: CycleTools,
  returns: readonly Return[],
): Promise<number> {
  const { grid, policy } = mirror;
  const context = cycle.context(policy.version, now());
  let taken = 0;
  for (const { siteId, reason, jobIds } of returns) {
    const up = grid.siteEntry(siteId).site.state === 'UP';
    const back = await cycle.phase('take-back', () =>
      up ? store.returnJobs(siteId, jobIds, reason, context) : store.takeBack(siteId, context, jobIds.length),
    );
    taken += back.length;
  }
  cycle.add('takenBack', taken);
  return taken;
}

/** Has sites' own schedulers asked for jobs of theirs; each comes back when its agent reports that it will not begin there. */
export async function recall(
  cycle: Cycle,
  { store, mirror, now }: CycleTools,
  returns: readonly Return[],
): Promise<void> {
  const context = cycle.context(mirror.policy.version, now());
  for (const { siteId, reason, jobIds } of returns) {
    const asked = await cycle.phase('recall', () => store.recallRuns(siteId, jobIds, reason, context));
    cycle.add('recalled', asked.length);
  }
}
