/**
 * An amount of something that accounts share: memory, connections, statements at a time. Nobody may have more than is left: one that takes
 * all it can gets half, two get a third each, and there is always something left for the next. A part is kept for agents and operators.
 */
import type { Account } from './turns.js';

/** Of the whole, what people leave to agents and operators. */
const RESERVE = 1 / 4;
/** Of the whole, what nobody is refused, whatever others have. */
const EVERYBODYS = 1 / 64;

export class Shared {
  private readonly held = new Map<string, number>();
  private used = 0;

  constructor(private readonly total: number) {}

  /** Takes so much, or nothing. What nobody has anything beside is possible, be it more than there is. */
  take(account: Account, amount: number): boolean {
    const own = (this.held.get(account.name) ?? 0) + amount;
    const left = this.limitOf(account) - this.used;
    if (this.used > 0 && own > left && own > this.total * EVERYBODYS) return false;
    this.held.set(account.name, own);
    this.used += amount;
    return true;
  }

  give(account: Account, amount: number): void {
    const left = (this.held.get(account.name) ?? 0) - amount;
    if (left > 0) this.held.set(account.name, left);
    else this.held.delete(account.name);
    this.used -= amount;
  }

  private limitOf({ rank }: Account): number {
    return rank === 'people' ? this.total - Math.ceil(this.total * RESERVE) : this.total;
  }
}

interface Waiting {
  account: Account;
  begin: (() => void)[];
}

/** So many at a time, shared like that; whoever finds none left waits, and accounts are served in turn. */
export class Places {
  private readonly shared: Shared;
  private readonly waiting = new Map<string, Waiting>();

  constructor(total: number) {
    this.shared = new Shared(total);
  }

  /** Resolves to what gives the place back. Rejects with `late()` when there is none in time; 0: there is no limit. */
  async take(account: Account, withinMs: number, late: () => Error): Promise<() => void> {
    if (this.waiting.has(account.name) || !this.shared.take(account, 1))
      await this.wait(account, withinMs, late);
    let isHeld = true;
    return () => {
      if (!isHeld) return;
      isHeld = false;
      this.shared.give(account, 1);
      this.next();
    };
  }

  private wait(account: Account, withinMs: number, late: () => Error): Promise<void> {
    return new Promise((resolve, reject) => {
      const line = this.waiting.get(account.name) ?? { account, begin: [] };
      this.waiting.set(account.name, line);
      const timer =
        withinMs > 0
          ? setTimeout(() => {
              line.begin.splice(line.begin.indexOf(begin), 1);
              if (line.begin.length === 0) this.waiting.delete(account.name);
              reject(late());
            }, withinMs)
          : undefined;
      const begin = (): void => {
        clearTimeout(timer);
        resolve();
      };
      line.begin.push(begin);
    });
  }

  private next(): void {
    for (const [name, { account, begin }] of [...this.waiting]) {
      if (!this.shared.take(account, 1)) continue;
      const first = begin.shift();
      // Behind the others.
      const line = this.waiting.get(name) as Waiting;
      this.waiting.delete(name);
      if (begin.length > 0) this.waiting.set(name, line);
      first?.();
    }
  }
}
