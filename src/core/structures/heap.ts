/**
 * A binary heap of whole numbers, which stand for something that the user keeps in columns: the first of them by the order given is
 * on top. One that comes or goes costs the logarithm of what is there, to make one of many costs a step for each.
 */
export class Heap {
  private items: Int32Array;

  /** `isBefore` must tell any two apart. `items`: what is in it to begin with; the array becomes the heap's own. */
  constructor(
    private readonly isBefore: (a: number, b: number) => boolean,
    items = new Int32Array(16),
    public length = 0,
  ) {
    this.items = items;
    this.arrange();
  }

  /** The first; -1 when there is none. */
  get top(): number {
    return this.length === 0 ? -1 : (this.items[0] as number);
  }

  push(item: number): void {
    if (this.length === this.items.length) {
      const larger = new Int32Array(Math.max(16, this.items.length * 2));
      larger.set(this.items);
      this.items = larger;
    }
    const { items, isBefore } = this;
    let hole = this.length++;
    while (hole > 0) {
      const parent = (hole - 1) >> 1;
      const above = items[parent] as number;
      if (isBefore(above, item)) break;
      items[hole] = above;
      hole = parent;
    }
    items[hole] = item;
  }

  /** Takes the first out; -1 when there is none. */
  pop(): number {
    if (this.length === 0) return -1;
    const first = this.items[0] as number;
    const last = this.items[--this.length] as number;
    if (this.length > 0) this.sink(0, last);
    return first;
  }

  /** Leaves only those that pass the test. */
  keep(test: (item: number) => boolean): void {
    let kept = 0;
    for (let i = 0; i < this.length; i++) {
      const item = this.items[i] as number;
      if (test(item)) this.items[kept++] = item;
    }
    this.length = kept;
    this.arrange();
  }

  private arrange(): void {
    for (let i = (this.length >> 1) - 1; i >= 0; i--) this.sink(i, this.items[i] as number);
  }

  private sink(position: number, item: number): void {
    const { items, isBefore, length } = this;
    let hole = position;
    for (;;) {
      let child = 2 * hole + 1;
      if (child >= length) break;
      if (child + 1 < length && isBefore(items[child + 1] as number, items[child] as number)) child++;
      if (!isBefore(items[child] as number, item)) break;
      items[hole] = items[child] as number;
      hole = child;
    }
    items[hole] = item;
  }
}
