/** Policy documents as plain objects: reading, changing and comparing them by path. */
export type Document = Record<string, unknown>;

export function at(document: unknown, path: string): unknown {
  let value = document;
  for (const key of path.split('.')) value = (value as Document | null | undefined)?.[key];
  return value;
}

/** A copy with the value at the path; undefined takes it away. */
export function withValue(document: Document, path: string, value: unknown): Document {
  const [key, ...rest] = path.split('.') as [string, ...string[]];
  const copy = { ...document };
  if (rest.length > 0) copy[key] = withValue((copy[key] ?? {}) as Document, rest.join('.'), value);
  else if (value === undefined) delete copy[key];
  else copy[key] = value;
  return copy;
}

export interface Difference {
  path: string;
  before: unknown;
  after: unknown;
}

const isObject = (value: unknown): value is Document =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** What is different, leaf by leaf. */
export function differences(before: unknown, after: unknown, path = ''): Difference[] {
  if (isObject(before) && isObject(after)) {
    return [...new Set([...Object.keys(before), ...Object.keys(after)])].flatMap((key) =>
      differences(before[key], after[key], path ? `${path}.${key}` : key),
    );
  }
  return JSON.stringify(before) === JSON.stringify(after) ? [] : [{ path, before, after }];
}
