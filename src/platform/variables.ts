/** Kinds of variables: what may be written in the environment, and what the code gets. Every command reads them: no library is loaded for it. */

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
  /** undefined: what is written is not accepted. null comes in only where that is the default. */
  read(written: string | null): V | undefined;
}

export function whole(
  name: string,
  byDefault: number,
  min: number,
  max: number,
  meaning: string,
): Variable<number> {
  const read = (written: string | null): number | undefined => {
    const value = /^\d{1,15}$/.test(written ?? '') ? Number(written) : Number.NaN;
    return value >= min && value <= max ? value : undefined;
  };
  const accepted = `a whole number from ${min} to ${max}`;
  return { name, default: String(byDefault), meaning, accepted, secret: false, read };
}

export function flag(name: string, byDefault: boolean, meaning: string): Variable<boolean> {
  const read = (written: string | null): boolean | undefined =>
    written === 'true' || written === 'false' ? written === 'true' : undefined;
  return { name, default: String(byDefault), meaning, accepted: 'true or false', secret: false, read };
}

export function choice<const T extends string>(
  name: string,
  values: readonly [T, ...T[]],
  byDefault: T,
  meaning: string,
): Variable<T> {
  const read = (written: string | null): T | undefined => values.find((value) => value === written);
  const accepted = `one of ${values.join(', ')}`;
  return { name, default: byDefault, meaning, accepted, secret: false, read };
}

export function text(
  name: string,
  byDefault: string,
  accepted: string,
  pattern: RegExp,
  meaning: string,
): Variable<string> {
  const read = (written: string | null): string | undefined => matching(written, pattern);
  return { name, default: byDefault, meaning, accepted, secret: false, read };
}

export function optional(
  name: string,
  accepted: string,
  pattern: RegExp,
  secret: boolean,
  meaning: string,
): Variable<string | null> {
  const read = (written: string | null): string | null | undefined =>
    written === null ? null : matching(written, pattern);
  return { name, default: null, meaning, accepted, secret, read };
}

/** Values separated by commas; by default none. */
export function list(
  name: string,
  accepted: string,
  isOne: (value: string) => boolean,
  meaning: string,
): Variable<readonly string[]> {
  const read = (written: string | null): readonly string[] | undefined => {
    const values = (written ?? '')
      .split(',')
      .map((one) => one.trim())
      .filter(Boolean);
    return values.every(isOne) ? values : undefined;
  };
  return { name, default: null, meaning, accepted: `${accepted}, separated by commas`, secret: false, read };
}

const matching = (written: string | null, pattern: RegExp): string | undefined =>
  written !== null && pattern.test(written) ? written : undefined;

/** Variables by the field of the configuration that each fills. */
export type Table = Readonly<Record<string, Variable<unknown>>>;
export type Values<T extends Table> = {
  -readonly [K in keyof T]: T[K] extends Variable<infer V> ? V : never;
};

/** One line for each variable with a bad value: its name, the value and what is accepted. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
}

/** Empty counts as not set. `problems` gets a line for each bad value. */
export function readTable<T extends Table>(table: T, env: NodeJS.ProcessEnv, problems: string[]): Values<T> {
  const values: Record<string, unknown> = {};
  for (const [field, variable] of Object.entries(table)) {
    const written = env[variable.name] || variable.default;
    const value = variable.read(written);
    if (value !== undefined) values[field] = value;
    else {
      const shown = variable.secret ? '(not shown: it is a secret)' : JSON.stringify(written);
      problems.push(`${variable.name}: ${shown} is not accepted; accepted: ${variable.accepted}`);
    }
  }
  return values as Values<T>;
}
