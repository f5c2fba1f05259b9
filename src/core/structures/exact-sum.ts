/**
 * Sums of numbers ≥ 0 that do not drift: the same whatever came first, or came and was taken back. Each number is kept as a whole
 * part and a fraction in units of 2^-32, rounded once; both add up without rounding, to 2^53 in all and 2 million numbers.
 *
 * Who learned of the same things in another order must decide alike, and sums of floats would make them differ.
 */
const UNITS = 2 ** 32;

/** The fraction of a number in units: of one above 0 at least one, so that something is never mistaken for nothing. */
export const fractionOf = (value: number, whole: number): number => {
  const units = Math.round((value - whole) * UNITS);
  return units === 0 && whole === 0 && value > 0 ? 1 : units;
};

/** What the two parts of a sum come to. */
export const totalOf = (whole: number, fraction: number): number => whole + fraction / UNITS;

export class ExactSum {
  /** How many numbers are in it. */
  count = 0;
  whole = 0;
  fraction = 0;

  get value(): number {
    return totalOf(this.whole, this.fraction);
  }

  add(value: number): void {
    this.change(value, 1);
  }

  /** Takes back exactly what `add` with the same number gave. */
  remove(value: number): void {
    this.change(value, -1);
  }

  private change(value: number, sign: 1 | -1): void {
    const whole = Math.floor(value);
    this.count += sign;
    this.whole += sign * whole;
    this.fraction += sign * fractionOf(value, whole);
  }
}
