/**
 * For each of several columns (sites), how much there is of at least a given rank: a Fenwick tree over ranks. A change and a question
 * cost the logarithm of the number of ranks, whatever is in it. A question is mostly put for all columns, so these lie side by side.
 */
import { fractionOf, totalOf, wholeOf } from './exact-sum.js';

export class RankedSums {
  private ranks: number;
  /** By node, and in it by column: see `ExactSum`. */
  private counts: Float64Array;
  private wholes: Float64Array;
  private fractions: Float64Array;
  private readonly rest: Float64Array;

  /** `ranks`: how many there are at least; higher ones may come. */
  constructor(
    private readonly columns: number,
    ranks = 64,
  ) {
    this.ranks = ranks;
    this.counts = new Float64Array(ranks * columns);
    this.wholes = new Float64Array(ranks * columns);
    this.fractions = new Float64Array(ranks * columns);
    this.rest = new Float64Array(columns);
  }

  /** One more of this value (sign −1: takes it back exactly). A rank below 0 is counted by nobody. */
  add(column: number, rank: number, value: number, sign: 1 | -1): void {
    const whole = wholeOf(value);
    this.addSum(column, rank, { count: 1, whole, fraction: fractionOf(value, whole) }, sign);
  }

  /** The same for all that make up a sum. */
  addSum(
    column: number,
    rank: number,
    { count, whole, fraction }: { count: number; whole: number; fraction: number },
    sign: 1 | -1,
  ): void {
    if (rank >= this.ranks) this.grow(rank + 1);
    const { columns, counts, wholes, fractions } = this;
    for (let node = rank + 1; node > 0; node -= node & -node) {
      const at = (node - 1) * columns + column;
      counts[at] = (counts[at] as number) + sign * count;
      wholes[at] = (wholes[at] as number) + sign * whole;
      fractions[at] = (fractions[at] as number) + sign * fraction;
    }
  }

  /** By column, how many have at least the rank; `beside`: others, of as many columns, that count, too. */
  countsFrom(rank: number, into: Float64Array, beside: RankedSums | null = null): void {
    into.fill(0);
    this.addFrom(rank, this.counts, into);
    beside?.addFrom(rank, beside.counts, into);
  }

  /** By column, what those of at least the rank come to. */
  valuesFrom(rank: number, into: Float64Array, beside: RankedSums | null = null): void {
    const { rest } = this;
    into.fill(0);
    rest.fill(0);
    this.addFrom(rank, this.wholes, into);
    this.addFrom(rank, this.fractions, rest);
    beside?.addFrom(rank, beside.wholes, into);
    beside?.addFrom(rank, beside.fractions, rest);
    for (let column = 0; column < this.columns; column++)
      into[column] = totalOf(into[column] as number, rest[column] as number);
  }

  private addFrom(rank: number, values: Float64Array, into: Float64Array): void {
    const { columns, ranks } = this;
    for (let node = rank + 1; node <= ranks; node += node & -node) {
      const row = (node - 1) * columns;
      for (let column = 0; column < columns; column++)
        into[column] = (into[column] as number) + (values[row + column] as number);
    }
  }

  /** A change touches nodes at or below its rank only, so those of new, higher ranks begin empty. */
  private grow(ranks: number): void {
    while (this.ranks < ranks) this.ranks *= 2;
    for (const name of ['counts', 'wholes', 'fractions'] as const) {
      const larger = new Float64Array(this.ranks * this.columns);
      larger.set(this[name]);
      this[name] = larger;
    }
  }
}
