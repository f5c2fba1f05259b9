/**
 * The events to come, a binary heap in columns ordered by (time, rank of the kind, sequence). The sequence counts pushes,
 * so that events of one time and kind come out as they went in. Getting in and out costs the logarithm of what is there,
 * and no object. The next event of a stream that comes in order may wait beside the heap, for next to nothing.
 */
export class EventQueue {
  /** Of the event taken out last. */
  time = Number.NEGATIVE_INFINITY;
  kind = 0;
  payload = 0;
  sequence = 0;
  private size = 0;
  private pushed = 0;
  private times = new Float64Array(64);
  /** rank·2^45 + sequence: the order within a time as one number. */
  private orders = new Float64Array(64);
  private payloads = new Int32Array(64);
  /** The event beside the heap; its time is Infinity when there is none. */
  private streamTime = Infinity;
  private streamOrder = 0;
  private streamPayload = 0;

  get length(): number {
    return this.size + (this.streamTime === Infinity ? 0 : 1);
  }

  /** Time of the next event, Infinity when there is none. */
  get nextTime(): number {
    const { streamTime } = this;
    if (this.size === 0) return streamTime;
    const first = this.times[0] as number;
    return first < streamTime ? first : streamTime;
  }

  /** Adds the next event of the stream, at a finite time, when the one before has been taken out. */
  pushNext(time: number, kind: number, payload: number): void {
    if (this.streamTime !== Infinity)
      throw new Error('the event of the stream before this one is still to come');
    this.streamTime = time;
    this.streamOrder = kind * KIND + this.pushed++;
    this.streamPayload = payload;
  }

  /** Adds an event; `kind` is its rank among events of the same time. Returns its sequence. */
  push(time: number, kind: number, payload: number): number {
    if (this.size === this.times.length) this.grow();
    const sequence = this.pushed++;
    const order = kind * KIND + sequence;
    const { times, orders, payloads } = this;
    let hole = this.size++;
    while (hole > 0) {
      const parent = (hole - 1) >> 1;
      const above = times[parent] as number;
      if (above < time || (above === time && (orders[parent] as number) < order)) break;
      times[hole] = above;
      orders[hole] = orders[parent] as number;
      payloads[hole] = payloads[parent] as number;
      hole = parent;
    }
    times[hole] = time;
    orders[hole] = order;
    payloads[hole] = payload;
    return sequence;
  }

  /** Takes the first event out, into the fields; false when there is none. */
  pop(): boolean {
    const { times, orders, payloads, streamTime } = this;
    if (streamTime !== Infinity && this.streamIsFirst()) {
      this.streamTime = Infinity;
      this.show(streamTime, this.streamOrder, this.streamPayload);
      return true;
    }
    if (this.size === 0) return false;
    this.show(times[0] as number, orders[0] as number, payloads[0] as number);
    const last = --this.size;
    const time = times[last] as number;
    const order = orders[last] as number;
    const payload = payloads[last] as number;
    let hole = 0;
    for (;;) {
      let child = 2 * hole + 1;
      if (child >= last) break;
      if (child + 1 < last && this.isBefore(child + 1, child)) child++;
      const below = times[child] as number;
      if (below > time || (below === time && (orders[child] as number) > order)) break;
      times[hole] = below;
      orders[hole] = orders[child] as number;
      payloads[hole] = payloads[child] as number;
      hole = child;
    }
    times[hole] = time;
    orders[hole] = order;
    payloads[hole] = payload;
    return true;
  }

  private streamIsFirst(): boolean {
    if (this.size === 0) return true;
    const difference = this.streamTime - (this.times[0] as number);
    return difference < 0 || (difference === 0 && this.streamOrder < (this.orders[0] as number));
  }

  private show(time: number, order: number, payload: number): void {
    this.time = time;
    // By truncation: to round down takes longer.
    const kind = (order / KIND) | 0;
    this.kind = kind;
    this.sequence = order - kind * KIND;
    this.payload = payload;
  }

  private isBefore(a: number, b: number): boolean {
    const difference = (this.times[a] as number) - (this.times[b] as number);
    return difference < 0 || (difference === 0 && (this.orders[a] as number) < (this.orders[b] as number));
  }

  private grow(): void {
    const size = this.times.length * 2;
    const times = new Float64Array(size);
    const orders = new Float64Array(size);
    const payloads = new Int32Array(size);
    times.set(this.times);
    orders.set(this.orders);
    payloads.set(this.payloads);
    this.times = times;
    this.orders = orders;
    this.payloads = payloads;
  }
}

const KIND = 2 ** 45;
