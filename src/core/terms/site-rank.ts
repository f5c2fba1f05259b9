/**
 * How JBMS ranks the sites for a job (AL-Khateeb et al., "Job Decider", equations 5 to 9; exact rules: job-ratio.md). All
 * arrays are aligned with the eligible sites.
 */
import type { JobRatio } from '../data/history.js';

/** Each value's share of the sum; 0 where the sum is 0. The process power ratio PPR (5). */
export function sharesOf(values: ArrayLike<number>): number[] {
  const sum = sumOf(values);
  const shares: number[] = new Array(values.length);
  for (let i = 0; i < values.length; i++) shares[i] = sum === 0 ? 0 : (values[i] as number) / sum;
  return shares;
}

/**
 * 1 less each value's share: the data power ratio DPR (6) of data access costs, the queue ratio QR (8) of queue lengths. Next to a
 * share of nearly 1 a difference would lose its digits, so where one is above a half, what is left is added up from the others.
 */
export function restsOf(values: ArrayLike<number>): number[] {
  const rests = sharesOf(values);
  for (let i = 0; i < rests.length; i++) {
    const share = rests[i] as number;
    rests[i] = share > 0.5 ? restWithout(values, i) : 1 - share;
  }
  return rests;
}

/** The share of all values but this one. */
function restWithout(values: ArrayLike<number>, index: number): number {
  let others = 0;
  for (let i = 0; i < values.length; i++) if (i !== index) others += values[i] as number;
  return others / (others + (values[index] as number));
}

/** `rank = PPR·CJR + DPR·DIJR + QR` (9), the job ratio as fractions of 1. */
export function ranksOf(
  { computation, dataIntensive }: Pick<JobRatio, 'computation' | 'dataIntensive'>,
  ppr: readonly number[],
  dpr: readonly number[],
  qr: readonly number[],
): number[] {
  const ranks: number[] = new Array(ppr.length);
  for (let i = 0; i < ppr.length; i++)
    ranks[i] = (ppr[i] as number) * computation + (dpr[i] as number) * dataIntensive + (qr[i] as number);
  return ranks;
}

/** The sites by descending rank, ties in site order: one by one, for mostly the first has room. */
export function* inRankOrder(ranks: readonly number[], sites: readonly number[]): Generator<number> {
  const left = [...ranks];
  for (let count = 0; count < sites.length; count++) {
    let best = -1;
    for (let i = 0; i < left.length; i++)
      if (left[i] !== TAKEN && (best === -1 || (left[i] as number) > (left[best] as number))) best = i;
    yield sites[best] as number;
    left[best] = TAKEN;
  }
}

/** Below any rank. */
const TAKEN = -Infinity;

function sumOf(values: ArrayLike<number>): number {
  let sum = 0;
  for (let i = 0; i < values.length; i++) sum += values[i] as number;
  return sum;
}
