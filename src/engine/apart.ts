/**
 * Plans that the store cannot carry out because of what one job says. A plan is one transaction: without this the numbers of one
 * job would keep everybody else's from starting, again and again. The ranges of what is accepted (store/bounds.ts) should not let such
 * a job in; this is for the one that nobody has thought of.
 */
import type { Applied } from '../store/store.js';
import type { CycleTools } from './cycle.js';

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
