/**
 * Sums that are kept: whole numbers of units of 2^-200, which hold the full mantissa of every number from 2^-147 on. They add up without
 * rounding, in any order and on any machine; the database does the same with `numeric` (triggers.units in prisma/functions.sql).
 */
const UNITS = 2 ** 200;

/** A number ≥ 0, exactly; what is below a unit is left out. */
export const unitsOf = (value: number): bigint => BigInt(Math.floor(value * UNITS));

/** The nearest number. */
export const nearest = (units: bigint): number => Number(units) / UNITS;
