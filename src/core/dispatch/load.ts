/**
 * Load[P] and Ordering[P] of one site (Pasquali et al., section 4): the work and the number of its queued jobs with
 * priority ≥ P. A Fenwick tree over priorities: a change and a question each cost the logarithm of the number of levels,
 * whatever the length of the queue.
 *
 * Work comes and goes for months, so sums must not drift, and two sites with the same jobs must have exactly the same
 * load in whatever order the jobs came. Each amount is therefore kept in two parts, multiples of 2^12 and the rest in units of 2^-20:
 * both add up without rounding for 2 million queued jobs of up to 2^44 each.
 */
const WHOLE = 2 ** 12;
const FRACTION = 2 ** 20;

const wholeOf = (work: number): number => Math.floor(work / WHOLE);
/** At least one unit: a site with work is never mistaken for an idle one. */
const fractionOf = (work: number, whole: number): number =>
  Math.max(whole === 0 ? 1 : 0, Math.round((work - whole * WHOLE) * FRACTION));

/** The work of some jobs, in the same exact form. */
export class WorkSum {
  jobs = 0;
  whole = 0;
  fraction = 0;

  add(work: number): void {
    this.change(work, 1);
  }

  /** Takes back exactly what `add` with the same argument gave. */
  remove(work: number): void {
    this.change(work, -1);
  }

  /** What the two parts come to. */
  static workOf(whole: number, fraction: number): number {
    return whole * WHOLE + fraction / FRACTION;
  }

  private change(work: number, sign: 1 | -1): void {
    const whole = wholeOf(work);
    this.jobs += sign;
    this.whole += sign * whole;
    this.fraction += sign * fractionOf(work, whole);
  }
}

export class PriorityLoad {
  private whole = new Float64Array(64);
  private fraction = new Float64Array(64);
  private count = new Float64Array(64);

  /** Adds a job of `work` at `priority` (an integer ≥ 0). */
  add(priority: number, work: number): void {
    const whole = wholeOf(work);
    this.change(priority, whole, fractionOf(work, whole), 1);
  }

  /** Takes back exactly what `add` with the same arguments gave. */
  remove(priority: number, work: number): void {
    const whole = wholeOf(work);
    this.change(priority, -whole, -fractionOf(work, whole), -1);
  }

  /** Work of the jobs with priority ≥ `priority`. */
  loadFrom(priority: number): number {
    let whole = 0;
    let fraction = 0;
    for (let i = priority + 1; i <= this.whole.length; i += i & -i) {
      whole += this.whole[i - 1] as number;
      fraction += this.fraction[i - 1] as number;
    }
    return WorkSum.workOf(whole, fraction);
  }

  /** Number of jobs with priority ≥ `priority`. */
  countFrom(priority: number): number {
    let count = 0;
    for (let i = priority + 1; i <= this.count.length; i += i & -i) count += this.count[i - 1] as number;
    return count;
  }

  private change(priority: number, whole: number, fraction: number, jobs: number): void {
    if (priority >= this.count.length) this.grow(priority + 1);
    for (let i = priority + 1; i > 0; i -= i & -i) {
      this.whole[i - 1] = (this.whole[i - 1] as number) + whole;
      this.fraction[i - 1] = (this.fraction[i - 1] as number) + fraction;
      this.count[i - 1] = (this.count[i - 1] as number) + jobs;
    }
  }

  /** A change touches levels at or below its own only, so new higher levels start as zeros. */
  private grow(levels: number): void {
    let size = this.count.length;
    while (size < levels) size *= 2;
    for (const name of ['whole', 'fraction', 'count'] as const) {
      const larger = new Float64Array(size);
      larger.set(this[name]);
      this[name] = larger;
    }
  }
}
