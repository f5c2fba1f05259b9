/**
 * How much of one thing (the CPUs of a machine, the copies of a license) is free at every later instant: a step function of time
 * that promises take from and give back to, and that tells the earliest opening for one more.
 *
 * Rows, each an instant and what is free from then on, lie in chunks in the order of time. Which openings a chunk has is summed up
 * for amounts that are powers of two: until when the one lasts that reaches in from the left, how long the longest is, and since
 * when the one lasts that reaches out on the right; a tree over the chunks sums up chunks. An opening for any amount is one for the
 * power of two below it, so whole parts of the future that have none of the length are passed over in one step, and the others are
 * looked at row by row. The sums are worked out when they are needed, of the chunks that have changed since.
 *
 * With R rows in chunks of 128:
 *
 *   add       log R, and a step for each chunk that lies in between
 *   earliest  log R, and as much again for each opening for the power of two that is none for the amount
 *
 * The last row holds for ever.
 */

/** Rows of a chunk at most: to move them costs less than to keep the sums of many chunks. */
const CHUNK = 128;

/** Rows that one change makes in a chunk at most. */
const MADE_AT_ONCE = 2;

/** The openings for one power of two: by node, and behind the nodes by chunk. */
interface Sums {
  prefix: Float64Array;
  longest: Float64Array;
  suffix: Float64Array;
}

export class Availability {
  /** Rows, chunk by chunk: those of a chunk are at `chunk·CHUNK` and on. */
  private times = new Float64Array(CHUNK);
  private free = new Float64Array(CHUNK);
  /** By chunk: how many rows it has, and what is to be added to each of them. */
  private counts = new Int32Array(1);
  private bias = new Float64Array(1);
  /** The chunks in order of time, and the instant of each one's first row; behind the last an Infinity. */
  private order = new Int32Array(1);
  private firsts = new Float64Array(2);
  private chunks = 1;
  /** Nodes of the tree over the positions: 1 is the root, 2i and 2i + 1 are below i, position p would be `leaves + p`. */
  private leaves = 1;
  /** By node, and behind the nodes by chunk: the levels whose sums hold, as bits. */
  private known = new Int32Array(2);
  private readonly levels: (Sums | undefined)[] = [];

  constructor(free: number) {
    this.times[0] = Number.NEGATIVE_INFINITY;
    this.free[0] = free;
    this.counts[0] = 1;
    this.firsts[0] = Number.NEGATIVE_INFINITY;
    this.firsts[1] = Infinity;
  }

  /** `amount` more (below 0: less) is free from `from` until `to`. */
  add(from: number, to: number, amount: number): void {
    if (!(from < to) || amount === 0) return;
    let position = this.positionOf(from);
    while (position < this.chunks && (this.firsts[position] as number) < to) {
      const chunk = this.order[position] as number;
      const next = this.firsts[position + 1] as number;
      if (from <= (this.firsts[position] as number) && next <= to)
        this.bias[chunk] = (this.bias[chunk] as number) + amount;
      else if ((this.counts[chunk] as number) + MADE_AT_ONCE > CHUNK) {
        this.halve(position);
        if ((this.firsts[position + 1] as number) <= from) position++;
        continue;
      } else this.addWithin(chunk, from, to, next, amount);
      this.changed(position++);
    }
  }

  /** What is free at the instant. */
  at(time: number): number {
    const chunk = this.order[this.positionOf(time)] as number;
    return (this.free[this.rowOf(chunk, time)] as number) + (this.bias[chunk] as number);
  }

  /** The least that is free at `from` and on until `to`. */
  least(from: number, to: number): number {
    let position = this.positionOf(from);
    let chunk = this.order[position] as number;
    let row = this.rowOf(chunk, from);
    let least = (this.free[row] as number) + (this.bias[chunk] as number);
    for (row++; ; row++) {
      if (row === chunk * CHUNK + (this.counts[chunk] as number)) {
        if ((this.firsts[++position] as number) >= to || position === this.chunks) return least;
        chunk = this.order[position] as number;
        row = chunk * CHUNK;
      }
      if ((this.times[row] as number) >= to) return least;
      least = Math.min(least, (this.free[row] as number) + (this.bias[chunk] as number));
    }
  }

  /**
   * The earliest instant, from `from` on and ahead of `before`, from which `amount` is free for `length`; Infinity: none. What is
   * behind `until` counts as free: that place is the asker's own.
   */
  earliest(amount: number, length: number, from: number, before = Infinity, until = Infinity): number {
    const { times, free, bias, counts, order, firsts, chunks } = this;
    let position = this.positionOf(from);
    let chunk = order[position] as number;
    let row = this.rowOf(chunk, from);
    let time = from;
    // Since when the opening lasts that the walk is in; Infinity: it is in none.
    let since = Infinity;
    for (;;) {
      const least = amount - (bias[chunk] as number);
      const end = chunk * CHUNK + (counts[chunk] as number);
      for (;;) {
        if (since === Infinity) {
          if (time >= before) return Infinity;
          if (time >= until || (free[row] as number) >= least) since = time;
        } else if (time >= until || since + length <= time) return since;
        else if ((free[row] as number) < least) since = Infinity;
        if (++row === end) break;
        time = times[row] as number;
      }
      if (++position === chunks) return since;
      time = firsts[position] as number;
      if (since !== Infinity && (since + length <= time || time >= until)) return since;
      const next = this.passOver(position, amount, length, since, before, until);
      if (next === Infinity) return Infinity;
      if (next !== time) {
        time = next;
        since = Infinity;
        position = this.positionOf(time);
      }
      chunk = order[position] as number;
      row = this.rowOf(chunk, time);
    }
  }

  /** The first instant behind `time` at which something may change; Infinity: none. */
  nextChange(time: number): number {
    const position = this.positionOf(time);
    const chunk = this.order[position] as number;
    const row = this.rowOf(chunk, time) + 1;
    return row < chunk * CHUNK + (this.counts[chunk] as number)
      ? (this.times[row] as number)
      : (this.firsts[position + 1] as number);
  }

  /** Instants before this one will not be asked for any more: what is asked for mostly is to be near the first row. */
  forget(before: number): void {
    const position = this.positionOf(before);
    if (position > 0) this.dropChunks(position);
    const { times, counts } = this;
    const chunk = this.order[0] as number;
    const begin = chunk * CHUNK;
    const row = this.rowOf(chunk, before);
    if (row === begin) return;
    const end = begin + (counts[chunk] as number);
    this.moveRows(row, end, begin - row);
    times[begin] = Number.NEGATIVE_INFINITY;
    counts[chunk] = end - row;
    this.changed(0);
  }

  /** Drops the first chunks. */
  private dropChunks(dropped: number): void {
    const { order, firsts } = this;
    const kept = this.chunks - dropped;
    const free = order.slice(0, dropped);
    order.copyWithin(0, dropped, this.chunks);
    // Chunks that are not in use stand behind those that are.
    order.set(free, kept);
    firsts.copyWithin(0, dropped, this.chunks + 1);
    firsts[0] = Number.NEGATIVE_INFINITY;
    this.times[(order[0] as number) * CHUNK] = Number.NEGATIVE_INFINITY;
    this.chunks = kept;
    this.known.fill(0, 0, this.leaves);
    this.changed(0);
  }

  // ---- rows ----

  /** The position of the chunk whose rows hold at the instant. */
  private positionOf(time: number): number {
    const { firsts } = this;
    let low = 0;
    let high = this.chunks;
    while (high - low > 1) {
      const middle = (low + high) >>> 1;
      if ((firsts[middle] as number) <= time) low = middle;
      else high = middle;
    }
    return low;
  }

  /** The row of the chunk that holds at the instant. Most ask for what is near, and so it goes in steps that double first. */
  private rowOf(chunk: number, time: number): number {
    const { times } = this;
    let low = chunk * CHUNK;
    const end = low + (this.counts[chunk] as number);
    let high = low + 1;
    for (let step = 1; high < end && (times[high] as number) <= time; step *= 2) {
      low = high;
      high += step;
    }
    if (high > end) high = end;
    while (high - low > 1) {
      const middle = (low + high) >>> 1;
      if ((times[middle] as number) <= time) low = middle;
      else high = middle;
    }
    return low;
  }

  /**
   * The same within a chunk, whose rows hold until `next`. Edges mostly slide: a row goes where an amount was given back, and one comes
   * nearby. So what is behind both is moved once, if at all.
   */
  private addWithin(chunk: number, from: number, to: number, next: number, amount: number): void {
    const { times, free } = this;
    const begin = chunk * CHUNK;
    const end = begin + (this.counts[chunk] as number);
    let after = this.rowOf(chunk, to);
    if ((times[after] as number) < to) after++;
    const last = free[after - 1] as number;
    // Behind the row of `from` there are as many as get the amount: it is found no later than they are gone through.
    let first = after;
    while (first > begin && (times[first - 1] as number) >= from) {
      first--;
      free[first] = (free[first] as number) + amount;
    }
    const before = free[first - 1] as number;
    // Rows that come (1) or go (-1): not the first of the chunk, and none at which nothing changes.
    let atFrom = 0;
    if (first > begin) {
      if (first === after || (times[first] as number) !== from) atFrom = 1;
      else if (free[first] === before) atFrom = -1;
    }
    let atTo = 0;
    if (after === end || (times[after] as number) !== to) atTo = to < next ? 1 : 0;
    else if (free[after] === last + amount) atTo = -1;
    const behind = atFrom + atTo;
    const tail = atTo < 0 ? after + 1 : after;
    if (behind > 0) this.moveRows(tail, end, behind);
    this.moveRows(atFrom < 0 ? first + 1 : first, after, atFrom);
    if (behind < 0) this.moveRows(tail, end, behind);
    if (atFrom > 0) this.putRow(first, from, before + amount);
    if (atTo > 0) this.putRow(after + atFrom, to, last);
    this.counts[chunk] = end - begin + behind;
  }

  private putRow(row: number, time: number, free: number): void {
    this.times[row] = time;
    this.free[row] = free;
  }

  /** By hand: for so few, `copyWithin` would cost more than the moves. */
  private moveRows(begin: number, end: number, by: number): void {
    const { times, free } = this;
    if (by > 0)
      for (let row = end - 1; row >= begin; row--) {
        times[row + by] = times[row] as number;
        free[row + by] = free[row] as number;
      }
    else if (by < 0)
      for (let row = begin; row < end; row++) {
        times[row + by] = times[row] as number;
        free[row + by] = free[row] as number;
      }
  }

  /** The later half of a full chunk becomes a chunk of its own. */
  private halve(position: number): void {
    if (this.chunks === this.order.length) this.grow();
    const { order, firsts, times, free, counts } = this;
    const half = CHUNK / 2;
    const chunk = order[position] as number;
    const fresh = order[this.chunks] as number;
    times.copyWithin(fresh * CHUNK, chunk * CHUNK + half, (chunk + 1) * CHUNK);
    free.copyWithin(fresh * CHUNK, chunk * CHUNK + half, (chunk + 1) * CHUNK);
    counts[fresh] = (counts[chunk] as number) - half;
    counts[chunk] = half;
    this.bias[fresh] = this.bias[chunk] as number;
    this.known[this.leaves + chunk] = 0;
    this.known[this.leaves + fresh] = 0;
    order.copyWithin(position + 2, position + 1, this.chunks);
    order[position + 1] = fresh;
    firsts.copyWithin(position + 2, position + 1, this.chunks + 1);
    firsts[position + 1] = times[fresh * CHUNK] as number;
    this.chunks++;
    this.known.fill(0, 0, this.leaves);
  }

  private grow(): void {
    const size = this.order.length * 2;
    this.times = larger(this.times, size * CHUNK);
    this.free = larger(this.free, size * CHUNK);
    this.bias = larger(this.bias, size);
    this.firsts = larger(this.firsts, size + 1);
    const counts = new Int32Array(size);
    counts.set(this.counts);
    this.counts = counts;
    const order = Int32Array.from({ length: size }, (_, chunk) => chunk);
    order.set(this.order);
    this.order = order;
    this.leaves = size;
    this.known = new Int32Array(2 * size);
    this.levels.length = 0;
  }

  // ---- openings ----

  /**
   * Where a walk that has come to the chunk at `position` must go on: there, or at a later instant, because no opening that it is
   * after ends or begins in between; Infinity: there is none. `since`: an opening reaches in; with a later answer it is too short.
   */
  private passOver(
    position: number,
    amount: number,
    length: number,
    since: number,
    before: number,
    until: number,
  ): number {
    const { firsts, leaves, chunks } = this;
    const first = firsts[position] as number;
    const level = 31 - Math.clz32(amount);
    const sums = this.sumsOf(level);
    // Differences of times are rounded: what is just too short by them may be long enough.
    const least = length - Math.abs(firsts[chunks - 1] as number) * 2 ** -48;
    let start = since;
    for (let node = leaves + position, span = 1; ; ) {
      const begin = firsts[position] as number;
      if (start === Infinity && begin >= before) return Infinity;
      const end = firsts[Math.min(position + span, chunks)] as number;
      const index = this.sum(node, position, span, level, sums);
      const prefix = sums.prefix[index] as number;
      const completes = start !== Infinity && (start + length <= prefix || prefix >= until);
      if (completes || (sums.longest[index] as number) >= least || end > until) {
        if (completes) return start === since ? first : start;
        if (span === 1) return begin;
        node *= 2;
        span >>= 1;
        continue;
      }
      if (prefix === end) start = Math.min(start, begin);
      else {
        const suffix = sums.suffix[index] as number;
        start = suffix === end ? Infinity : suffix;
      }
      position += span;
      if (position >= chunks) return Infinity;
      for (; (node & 1) === 1; node >>= 1) span *= 2;
      node++;
    }
  }

  private sumsOf(level: number): Sums {
    let sums = this.levels[level];
    if (sums === undefined) {
      const size = 2 * this.leaves;
      sums = {
        prefix: new Float64Array(size),
        longest: new Float64Array(size),
        suffix: new Float64Array(size),
      };
      this.levels[level] = sums;
    }
    return sums;
  }

  /** The chunk there has changed: its sums hold no more, nor do those of all that it is part of. */
  private changed(position: number): void {
    const { known, leaves } = this;
    known[leaves + (this.order[position] as number)] = 0;
    for (let node = (leaves + position) >> 1; node > 0 && known[node] !== 0; node >>= 1) known[node] = 0;
  }

  /** Sees to it that the sums of the node over so many positions hold; where they are. */
  private sum(node: number, position: number, span: number, level: number, sums: Sums): number {
    const index = span === 1 ? this.leaves + (this.order[position] as number) : node;
    const known = this.known[index] as number;
    if ((known & (1 << level)) !== 0) return index;
    this.known[index] = known | (1 << level);
    if (span === 1) {
      this.sumChunk(index, position, level, sums);
      return index;
    }
    const { prefix, longest, suffix } = sums;
    const half = span >> 1;
    const middle = position + half;
    const left = this.sum(2 * node, position, half, level, sums);
    prefix[index] = prefix[left] as number;
    longest[index] = longest[left] as number;
    suffix[index] = suffix[left] as number;
    if (middle >= this.chunks) return index;
    const right = this.sum(2 * node + 1, middle, half, level, sums);
    const across = (prefix[right] as number) - (suffix[left] as number);
    longest[index] = Math.max(longest[left] as number, longest[right] as number, across);
    if (prefix[left] === this.firsts[middle]) prefix[index] = prefix[right] as number;
    if (prefix[right] !== this.firsts[Math.min(position + span, this.chunks)])
      suffix[index] = suffix[right] as number;
    return index;
  }

  private sumChunk(index: number, position: number, level: number, { prefix, longest, suffix }: Sums): void {
    const { times, free } = this;
    const chunk = this.order[position] as number;
    const least = 2 ** level - (this.bias[chunk] as number);
    const begin = chunk * CHUNK;
    const end = begin + (this.counts[chunk] as number);
    const next = this.firsts[position + 1] as number;
    let row = begin;
    while (row < end && (free[row] as number) >= least) row++;
    const first = row === end ? next : (times[row] as number);
    let most = first - (times[begin] as number);
    let since = row === end ? (times[begin] as number) : Infinity;
    for (; row < end; row++) {
      if ((free[row] as number) >= least) {
        if (since === Infinity) since = times[row] as number;
      } else if (since !== Infinity) {
        most = Math.max(most, (times[row] as number) - since);
        since = Infinity;
      }
    }
    if (since === Infinity) since = next;
    else most = Math.max(most, next - since);
    prefix[index] = first;
    longest[index] = most;
    suffix[index] = since;
  }
}

function larger(values: Float64Array, size: number): Float64Array<ArrayBuffer> {
  const copy = new Float64Array(size);
  copy.set(values);
  return copy;
}
