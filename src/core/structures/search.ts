/** How many come first of so many of which those that do are before all that do not. */
export function countFirst(length: number, comesFirst: (i: number) => boolean): number {
  let low = 0;
  let high = length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (comesFirst(middle)) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** How many of the numbers, which ascend, are no more than this: for questions put so often that a call for each step would be what they cost. */
export function countUpTo(numbers: readonly number[], most: number): number {
  let low = 0;
  let high = numbers.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((numbers[middle] as number) <= most) low = middle + 1;
    else high = middle;
  }
  return low;
}
