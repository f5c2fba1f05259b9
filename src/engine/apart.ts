/**
 * Jobs that the schedulers' picture cannot hold, with which no plan can be made, or whose plan the store cannot carry out. A picture is one,
 * and a plan is one transaction: without this the numbers of one job would keep everybody else's from starting, again and again. The
 * ranges of what is accepted (store/bounds.ts) should not let such a job in; this is for the one that nobody has thought of.
 */
import type { Applied } from '../store/store.js';
import { culprit } from './culprit.js';
import type { Cycle, CycleTools } from './cycle.js';
import type { GridMirror } from './ports.js';

/** After a search that found no job: what is wrong is something else, and searching takes long. */
const SEARCH_PAUSE_MS = 60_000;
const searchedInVain = new WeakMap<GridMirror, number>();

type Tools = Pick<CycleTools, 'store' | 'mirror' | 'metrics' | 'log'>;

/** Brings the mirror up to date. Jobs that it cannot take in are set aside; they are not in its grid. */
export async function syncApart(tools: Tools): Promise<void> {
  const { mirror } = tools;
  await mirror.sync();
  for (const [jobId, error] of mirror.takeLeftOut()) await setAside(tools, jobId, error);
}

/**
 * Plans. When that throws, again on a picture that has been loaded anew, and the cause is one of the waiting jobs, that job is set aside.
 * Throws all the same: the next cycle plans without it.
 *
 * @param plan uses the mirror's grid, which is another one at each call
 */
export async function planApart<P>(cycle: Cycle, tools: Tools, plan: () => P): Promise<P> {
  try {
    return cycle.plan(plan);
  } catch (error) {
    const { mirror } = tools;
    if (performance.now() < (searchedInVain.get(mirror) ?? 0)) throw error;
    await mirror.reload();
    const found = culprit(mirror.grid, plan);
    if (found) await setAside(tools, found.jobId, found.error);
    else searchedInVain.set(mirror, performance.now() + SEARCH_PAUSE_MS);
    await mirror.reload();
    throw error;
  }
}

/** Data exceptions and violated constraints, by PostgreSQL's codes; and what has no form in which it could be sent. */
function isOfData(error: unknown): boolean {
  const { code } = (error ?? {}) as { code?: unknown };
  return error instanceof RangeError || (typeof code === 'string' && /^2[23]...$/.test(code));
}

/**
 * Applies the items of a plan. When the store fails by what they contain, they are applied in parts; a job that fails by itself twice is
 * set aside, and counts as refused. `others`: the job of what is applied beside the items, which is set aside when that fails
 * without any. What fails otherwise is thrown.
 */
export async function applyApart<I extends { jobId: number }, O extends Applied>(
  tools: Pick<CycleTools, 'store' | 'metrics' | 'log'>,
  items: readonly I[],
  apply: (items: readonly I[]) => Promise<O>,
  join: (a: O, b: O) => O,
  others: number | null = null,
): Promise<O> {
  try {
    return await apply(items);
  } catch (error) {
    if (!isOfData(error)) throw error;
    if (items.length > 1) {
      const half = items.length >> 1;
      const first = await applyApart(tools, items.slice(0, half), apply, join, others);
      return join(first, await applyApart(tools, items.slice(half), apply, join, others));
    }
    const [item] = items;
    if (item === undefined) {
      if (others === null) throw error;
      await setAside(tools, others, error);
      throw error;
    }
    // Without it, to know that it is the job's doing; and then once more with it.
    const without = await applyApart(tools, [], apply, join, others);
    try {
      return join(without, await apply(items));
    } catch (again) {
      if (!isOfData(again)) throw again;
      await setAside(tools, item.jobId, again);
      const refused = [{ jobId: item.jobId, why: 'it was set aside' }];
      return { ...without, refused: [...without.refused, ...refused] };
    }
  }
}

async function setAside(
  { store, metrics, log }: Pick<CycleTools, 'store' | 'metrics' | 'log'>,
  jobId: number,
  error: unknown,
): Promise<void> {
  const why = error instanceof Error ? error.message : String(error);
  const done = await store.setAside([jobId], `set aside: the schedulers cannot handle this job (${why})`);
  if (done.length === 0) return;
  metrics.setAside.inc();
  log.error({ jobId, err: error }, 'a job was set aside: no plan that contains it can be carried out');
}
