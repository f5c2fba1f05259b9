/** Kinds of variables: what may be written in the environment, and what the code gets. */
import { z } from 'zod';

/** One variable of the table. `V` is what the code gets. */
export interface Variable<V> {
  name: string;
  /** As it would be written in the environment; null: no value. */
  default: string | null;
  meaning: string;
  /** What may be written, in words. */
  accepted: string;
  /** Never shown in errors and logs. */
  secret: boolean;
  schema: z.ZodType<V>;
}

export function whole(
  name: string,
  byDefault: number,
  min: number,
  max: number,
  meaning: string,
): Variable<number> {
  const schema = z
    .string()
    .regex(/^\d{1,15}$/)
    .transform(Number)
    .pipe(z.number().min(min).max(max));
  return {
    name,
    default: String(byDefault),
    meaning,
    accepted: `a whole number from ${min} to ${max}`,
    secret: false,
    schema,
  };
}

export function flag(name: string, byDefault: boolean, meaning: string): Variable<boolean> {
  const schema = z.enum(['true', 'false']).transform((text) => text === 'true');
  return { name, default: String(byDefault), meaning, accepted: 'true or false', secret: false, schema };
}

export function choice<const T extends string>(
  name: string,
  values: readonly [T, ...T[]],
  byDefault: T,
  meaning: string,
): Variable<T> {
  const schema = z.enum(values) as unknown as z.ZodType<T>;
  return {
    name,
    default: byDefault,
    meaning,
    accepted: `one of ${values.join(', ')}`,
    secret: false,
    schema,
  };
}

export function text(
  name: string,
  byDefault: string,
  accepted: string,
  pattern: RegExp,
  meaning: string,
): Variable<string> {
  return { name, default: byDefault, meaning, accepted, secret: false, schema: z.string().regex(pattern) };
}

export function optional(
  name: string,
  accepted: string,
  pattern: RegExp,
  secret: boolean,
  meaning: string,
): Variable<string | null> {
  return { name, default: null, meaning, accepted, secret, schema: z.string().regex(pattern).nullable() };
}

/** Values separated by commas; by default none. */
export function list(
  name: string,
  accepted: string,
  isOne: (value: string) => boolean,
  meaning: string,
): Variable<readonly string[]> {
  const schema = z
    .string()
    .nullable()
    .transform((written) =>
      (written ?? '')
        .split(',')
        .map((one) => one.trim())
        .filter(Boolean),
    )
    .refine((values) => values.every(isOne));
  return {
    name,
    default: null,
    meaning,
    accepted: `${accepted}, separated by commas`,
    secret: false,
    schema,
  };
}

/** Variables by the field of the configuration that each fills. */
export type Table = Readonly<Record<string, Variable<unknown>>>;
export type Values<T extends Table> = {
  -readonly [K in keyof T]: T[K] extends Variable<infer V> ? V : never;
};
