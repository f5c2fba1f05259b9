/** Puts items into the order of keys that are drawn for them. */
export const shuffler =
  (keys: Iterator<number>) =>
  <T>(items: readonly T[]): T[] =>
    items
      .map((item) => ({ item, key: keys.next().value as number }))
      .sort((a, b) => a.key - b.key)
      .map(({ item }) => item);
