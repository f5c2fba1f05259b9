/**
 * Sums of numbers ≥ 0 that do not drift: the same whatever came first, or came and was taken back. Each number is kept as a multiple of
 * 2^12 and the rest in units of 2^-20, rounded once; both add up without rounding for 2 million numbers of up to 2^44 each.
 *
 * Who learned of the same things in another order must decide alike, and sums of floats would make them differ.
 */
const WHOLE = 2 ** 12;
const UNITS = 2 ** 20;

export const wholeOf = (value: number): number => Math.floor(value / WHOLE);

/** The fraction of a number in units: of one above 0 at least one, so that something is never mistaken for nothing. */
export const fractionOf = (value: number, whole: number): number => {
  const units = Math.round((value - whole * WHOLE) * UNITS);
  return units === 0 && whole === 0 && value > 0 ? 1 : units;
};

/** What the two parts of a sum come to. */
export const totalOf = (whole: number, fraction: number): number => whole * WHOLE + fraction / UNITS;

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

  copy(): ExactSum {
    return Object.assign(new ExactSum(), this);
  }

  private change(value: number, sign: 1 | -1): void {
    const whole = wholeOf(value);
    this.count += sign;
    this.whole += sign * whole;
    this.fraction += sign * fractionOf(value, whole);
  }
}
