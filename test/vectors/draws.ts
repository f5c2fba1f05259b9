/** Numbers from a seed: mulberry32, for the core's generator is under test, too. */
export class Draws {
  constructor(private state: number) {}

  next(): number {
    this.state = (this.state + 0x6d2b79f5) | 0;
    let t = Math.imul(this.state ^ (this.state >>> 15), 1 | this.state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  }

  /** With a full mantissa. */
  between(low: number, high: number): number {
    return low + (high - low) * (this.next() + this.next() * 2 ** -32);
  }

  /** Of any size between them. */
  sized(low: number, high: number): number {
    return low * (high / low) ** this.next() * this.between(1, 1.5);
  }

  integer(low: number, high: number): number {
    return low + Math.floor(this.next() * (high - low + 1));
  }

  of<T>(values: readonly T[]): T {
    return values[this.integer(0, values.length - 1)] as T;
  }

  chance(probability: number): boolean {
    return this.next() < probability;
  }

  some<T>(values: readonly T[], probability: number): T[] {
    return values.filter(() => this.chance(probability));
  }

  shuffled<T>(values: readonly T[]): T[] {
    return values
      .map((value) => ({ value, key: this.next() }))
      .sort((a, b) => a.key - b.key)
      .map(({ value }) => value);
  }

  list<T>(most: number, make: (i: number) => T, least = 0): T[] {
    return Array.from({ length: this.integer(least, most) }, (_, i) => make(i));
  }
}
