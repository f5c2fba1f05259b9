/**
 * For each of several columns (sites), how much there is of at least a given rank: a Fenwick tree over ranks. A change and a question
 * cost the logarithm of the number of ranks, whatever is in it. A question is mostly put for all columns, so these lie side by side.
 */
import { ExactSums } from './exact-sum.js';

export class RankedSums {
  private ranks: number;
  /** By node, and in it by column. */
  private counts: Float64Array;
  private sums: ExactSums;
  /** Of the question that is put. */
  private readonly answer: ExactSums;

  /** `ranks`: how many there are at least; higher ones may come. */
  constructor(
    private readonly columns: number,
    ranks = 64,
  ) {
    this.ranks = ranks;
    this.counts = new Float64Array(ranks * columns);
    this.sums = new ExactSums(ranks * columns);
    this.answer = new ExactSums(columns);
  }

  /** One more of this value (sign −1: takes it back exactly). A rank below 0 is counted by nobody. */
  add(column: number, rank: number, value: number, sign: 1 | -1): void {
    if (rank >= this.ranks) this.grow(rank + 1);
    const { columns, counts, sums } = this;
    for (let node = rank + 1; node > 0; node -= node & -node) {
      const at = (node - 1) * columns + column;
      counts[at] = (counts[at] as number) + sign;
      sums.add(at, value, sign);
    }
  }

  /** By column, how many have at least the rank; `beside`: others, of as many columns, that count, too. */
  countsFrom(rank: number, into: Float64Array, beside: RankedSums | null = null): void {
    into.fill(0);
    this.addCounts(rank, into);
    beside?.addCounts(rank, into);
  }

  /** By column, what those of at least the rank come to. */
  valuesFrom(rank: number, into: Float64Array, beside: RankedSums | null = null): void {
    const { answer, columns } = this;
    answer.clear();
    this.addSums(rank, answer);
    beside?.addSums(rank, answer);
    for (let column = 0; column < columns; column++) into[column] = answer.valueOf(column);
  }

  private addCounts(rank: number, into: Float64Array): void {
    const { columns, counts } = this;
    for (const row of this.rowsFrom(rank))
      for (let column = 0; column < columns; column++)
        into[column] = (into[column] as number) + (counts[row + column] as number);
  }

  private addSums(rank: number, into: ExactSums): void {
    for (const row of this.rowsFrom(rank)) into.addSums(0, this.sums, row, this.columns);
  }

  /** Where the nodes that make up the ranks from this one on begin. */
  private *rowsFrom(rank: number): Generator<number> {
    for (let node = rank + 1; node <= this.ranks; node += node & -node) yield (node - 1) * this.columns;
  }

  /** A change touches nodes at or below its rank only, so those of new, higher ranks begin empty. */
  private grow(ranks: number): void {
    const { columns, counts, sums } = this;
    while (this.ranks < ranks) this.ranks *= 2;
    this.counts = new Float64Array(this.ranks * columns);
    this.counts.set(counts);
    this.sums = new ExactSums(this.ranks * columns);
    this.sums.addSums(0, sums, 0, sums.length);
  }
}
