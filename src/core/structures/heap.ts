/**
 * A binary heap of whole numbers, which stand for something that the user keeps in columns: the first of them by the order given is
 * on top. One that comes or goes costs the logarithm of what is there, to make one of many costs a step for each.
 */
export class Heap {
  protected items: Int32Array;

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
    this.rise(this.length++, item);
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

  /** Goes down from the top, and on below those for which it is said: what is behind them all is passed over. */
  descend(goesOn: (item: number) => boolean, position = 0): void {
    if (position >= this.length || !goesOn(this.items[position] as number)) return;
    this.descend(goesOn, 2 * position + 1);
    this.descend(goesOn, 2 * position + 2);
  }

  /** Puts the item there. */
  protected put(position: number, item: number): void {
    this.items[position] = item;
  }

  /** From a free position the item goes as far up as it must. */
  protected rise(position: number, item: number): void {
    const { items, isBefore } = this;
    let hole = position;
    while (hole > 0) {
      const parent = (hole - 1) >> 1;
      const above = items[parent] as number;
      if (isBefore(above, item)) break;
      this.put(hole, above);
      hole = parent;
    }
    this.put(hole, item);
  }

  private arrange(): void {
    for (let i = (this.length >> 1) - 1; i >= 0; i--) this.sink(i, this.items[i] as number);
  }

  /** The same, down. */
  protected sink(position: number, item: number): void {
    const { items, isBefore, length } = this;
    let hole = position;
    for (;;) {
      let child = 2 * hole + 1;
      if (child >= length) break;
      if (child + 1 < length && isBefore(items[child + 1] as number, items[child] as number)) child++;
      if (!isBefore(items[child] as number, item)) break;
      this.put(hole, items[child] as number);
      hole = child;
    }
    this.put(hole, item);
  }
}

/** A heap that knows where each item is: any of them can leave, or get another place in the order. */
export class IndexedHeap extends Heap {
  private positions = new Int32Array(16);

  /** Whether it is there. */
  has(item: number): boolean {
    const position = this.positions[item];
    return position !== undefined && position < this.length && this.items[position] === item;
  }

  /** Puts an item in that is not there, or in its place one whose order has changed. */
  place(item: number): void {
    if (this.has(item)) this.settle(this.positions[item] as number, item);
    else this.push(item);
  }

  /** Takes it out, wherever it is. */
  remove(item: number): void {
    if (!this.has(item)) return;
    const position = this.positions[item] as number;
    const last = this.items[--this.length] as number;
    if (position < this.length) this.settle(position, last);
  }

  protected override put(position: number, item: number): void {
    if (item >= this.positions.length) {
      const larger = new Int32Array(Math.max(item + 1, this.positions.length * 2));
      larger.set(this.positions);
      this.positions = larger;
    }
    this.positions[item] = position;
    super.put(position, item);
  }

  private settle(position: number, item: number): void {
    this.rise(position, item);
    if (this.positions[item] === position) this.sink(position, item);
  }
}
