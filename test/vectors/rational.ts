/** Exact fractions: what a rule says, without rounding. */
export interface Fraction {
  readonly over: bigint;
  readonly under: bigint;
}

/** A number as it is: every finite one is a whole number over a power of two. */
export function exact(value: number): Fraction {
  let under = 1n;
  let over = value;
  while (!Number.isInteger(over)) {
    over *= 2;
    under *= 2n;
  }
  return { over: BigInt(over), under };
}

export const plus = (a: Fraction, b: Fraction): Fraction => ({
  over: a.over * b.under + b.over * a.under,
  under: a.under * b.under,
});
export const times = (a: Fraction, b: Fraction): Fraction => ({
  over: a.over * b.over,
  under: a.under * b.under,
});
/** `b` is not 0. */
export const by = (a: Fraction, b: Fraction): Fraction => {
  const sign = b.over < 0n ? -1n : 1n;
  return { over: sign * a.over * b.under, under: sign * a.under * b.over };
};
export const minus = (a: Fraction, b: Fraction): Fraction => plus(a, { over: -b.over, under: b.under });
export const whole = (value: number): Fraction => ({ over: BigInt(value), under: 1n });
/** Below 0, 0 or above, as a is less than b, the same or more. */
export const compare = (a: Fraction, b: Fraction): number => {
  const difference = minus(a, b).over;
  return difference < 0n ? -1 : difference > 0n ? 1 : 0;
};
export const sum = (all: readonly Fraction[]): Fraction => all.reduce(plus, whole(0));

/** Rounded down to a whole number. */
export function floor({ over, under }: Fraction): number {
  const quotient = over / under;
  return Number(over < 0n && quotient * under !== over ? quotient - 1n : quotient);
}
export const ceil = ({ over, under }: Fraction): number => -floor({ over: -over, under });

/** To 60 bits: good for a comparison to a relative 1e-9, and far better. */
export function near({ over, under }: Fraction): number {
  const size = (value: bigint): number => value.toString(2).length;
  if (over === 0n) return 0;
  const shift = 60 - (size(over < 0n ? -over : over) - size(under));
  const scaled = shift >= 0 ? (over << BigInt(shift)) / under : over / (under << BigInt(-shift));
  return Number(scaled) * 2 ** -shift;
}
