/**
 * Sums of numbers ≥ 0 that are exact: each number is split into digits of 28 bits, its full mantissa, and digits of one place add up
 * without rounding for 2^25 numbers. So a sum is the same whatever came first, or came and was taken back, and its value is the number
 * nearest to it. Who learned of the same things in another order must decide alike, and sums of floats would make them differ.
 */
const BITS = 28;
const BASE = 2 ** BITS;
/** Of the places; what is below 2^-1064 is left out. */
const LOWEST = -38;
const HIGHEST = 36;
const WEIGHTS = Array.from({ length: HIGHEST - LOWEST + 1 }, (_, i) => 2 ** (BITS * (LOWEST + i)));
/** What a digit of the place counts. */
const weightOf = (place: number): number => WEIGHTS[place - LOWEST] as number;

/** Of one sum, while it is rounded. */
const DIGITS = new Float64Array(WEIGHTS.length + 1);

/** Several sums side by side. They have the places that their numbers need, and those between: whole numbers below 2^28 need one. */
export class ExactSums {
  /** By place, from the lowest up: the digits of all sums. */
  private readonly rows: Float64Array[] = [];
  private lowest = 0;

  constructor(readonly length: number) {}

  /** One more number in the sum at `index` (sign −1: takes it back). */
  add(index: number, value: number, sign: 1 | -1): void {
    let rest = value;
    const highest = Math.min(HIGHEST, Math.floor(Math.log2(value) / BITS));
    for (let place = highest; rest > 0 && place >= LOWEST; place--) {
      const weight = weightOf(place);
      const digit = Math.floor(rest / weight);
      if (digit === 0) continue;
      rest -= digit * weight;
      const row = this.rowOf(place);
      row[index] = (row[index] as number) + sign * digit;
    }
  }

  /** Adds `count` sums of another, from `from` on, to those here from `index` on. */
  addSums(index: number, other: ExactSums, from: number, count: number, sign: 1 | -1 = 1): void {
    for (let i = 0; i < other.rows.length; i++) {
      const theirs = other.rows[i] as Float64Array;
      const row = this.rowOf(other.lowest + i);
      for (let n = 0; n < count; n++)
        row[index + n] = (row[index + n] as number) + sign * (theirs[from + n] as number);
    }
  }

  /** Adds the first sum of another to each of these from `from` to before `to`. */
  addToEach(from: number, to: number, other: ExactSums, sign: 1 | -1): void {
    for (let i = 0; i < other.rows.length; i++) {
      const digits = sign * ((other.rows[i] as Float64Array)[0] as number);
      const row = this.rowOf(other.lowest + i);
      for (let n = from; n < to; n++) row[n] = (row[n] as number) + digits;
    }
  }

  /** As that of arrays. */
  copyWithin(target: number, start: number, end: number): void {
    for (const row of this.rows) row.copyWithin(target, start, end);
  }

  clear(): void {
    for (const row of this.rows) row.fill(0);
  }

  /** The number nearest to the sum at `index`. */
  valueOf(index: number): number {
    const [low, high] = this.rows;
    if (low === undefined) return 0;
    const lower = (low[index] as number) * weightOf(this.lowest);
    if (high === undefined) return lower;
    if (this.rows.length > 2) return this.rounded(index);
    return (high[index] as number) * weightOf(this.lowest + 1) + lower;
  }

  /** Carries, so that all digits are below the base, and makes a number of the first three and a bit for the rest with one rounding. */
  private rounded(index: number): number {
    const { rows } = this;
    let carry = 0;
    for (let i = 0; i < rows.length; i++) {
      const sum = carry + ((rows[i] as Float64Array)[index] as number);
      carry = Math.floor(sum / BASE);
      DIGITS[i] = sum - carry * BASE;
    }
    DIGITS[rows.length] = carry;
    let first = rows.length;
    while (first > 2 && DIGITS[first] === 0) first--;
    const second = DIGITS[first - 1] as number;
    let third = DIGITS[first - 2] as number;
    for (let i = first - 3; i >= 0; i--) if ((DIGITS[i] as number) > 0) third |= 1;
    const high = (DIGITS[first] as number) * 2 ** 24 + (second >>> 4);
    return (high * 2 ** 32 + ((second & 15) * BASE + third)) * weightOf(this.lowest + first - 2);
  }

  private rowOf(place: number): Float64Array {
    const { rows } = this;
    if (rows.length === 0) this.lowest = place;
    for (; place < this.lowest; this.lowest--) rows.unshift(new Float64Array(this.length));
    while (place >= this.lowest + rows.length) rows.push(new Float64Array(this.length));
    return rows[place - this.lowest] as Float64Array;
  }
}

export class ExactSum {
  /** How many numbers are in it. */
  count = 0;
  /** One. */
  readonly sums = new ExactSums(1);

  get value(): number {
    return this.sums.valueOf(0);
  }

  add(value: number): void {
    this.count++;
    this.sums.add(0, value, 1);
  }

  /** Takes back exactly what `add` with the same number gave. */
  remove(value: number): void {
    this.count--;
    this.sums.add(0, value, -1);
  }

  copy(): ExactSum {
    const copy = new ExactSum();
    copy.count = this.count;
    copy.sums.addSums(0, this.sums, 0, 1);
    return copy;
  }
}
