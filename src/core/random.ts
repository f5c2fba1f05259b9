/**
 * Randomness that is the same on every machine. Two kinds:
 *
 * - `draw(seed, key)`: a hash. The value depends on its arguments only, not on what was drawn before, so a decision
 *   can be repeated alone, and another order of other decisions does not change it. The schedulers use it.
 * - `RandomStream`: a generator (sfc32) for workloads; each purpose takes its own named stream, so that one that draws
 *   more does not shift the others.
 */

/** A well-mixed 32-bit hash of two integers (any safe integers; both halves count). */
export function hash(seed: number, key: number): number {
  let h = mix(seed >>> 0, 0x9e3779b9);
  h = mix(h ^ Math.floor(seed / 0x100000000), 0x85ebca6b);
  h = mix(h ^ (key >>> 0), 0xc2b2ae35);
  h = mix(h ^ Math.floor(key / 0x100000000), 0x27d4eb2f);
  return h;
}

/** A number in [0, 1) that depends on `seed` and `key` only. */
export function draw(seed: number, key: number): number {
  return hash(seed, key) / 0x100000000;
}

export class RandomStream {
  private a: number;
  private b: number;
  private c: number;
  private counter = 1;

  /** The same seed and name give the same stream. */
  constructor(seed: number, name: string) {
    let key = 0;
    for (let i = 0; i < name.length; i++) key = mix(key ^ name.charCodeAt(i), 0x9e3779b9);
    this.a = hash(seed, key);
    this.b = hash(seed, this.a);
    this.c = hash(seed, this.b);
    for (let i = 0; i < 12; i++) this.next();
  }

  /** A number in [0, 1), with 32 random bits. */
  next(): number {
    const t = (this.a + this.b + this.counter) | 0;
    this.counter = (this.counter + 1) | 0;
    this.a = this.b ^ (this.b >>> 9);
    this.b = (this.c + (this.c << 3)) | 0;
    this.c = ((this.c << 21) | (this.c >>> 11)) + t;
    this.c |= 0;
    return (t >>> 0) / 0x100000000;
  }

  /** Uniform in [low, high). */
  uniform(low: number, high: number): number {
    return low + (high - low) * this.next();
  }

  /** A whole number, each of low..high equally often. */
  integer(low: number, high: number): number {
    return low + Math.floor((high - low + 1) * this.next());
  }

  /** Exponential with this mean. */
  exponential(mean: number): number {
    return -mean * Math.log(1 - this.next());
  }
}

function mix(value: number, salt: number): number {
  let h = (value ^ salt) | 0;
  h = Math.imul(h ^ (h >>> 16), 0x7feb352d);
  h = Math.imul(h ^ (h >>> 15), 0x846ca68b);
  return (h ^ (h >>> 16)) >>> 0;
}
