/** Ways between processes that are slow, cut, repeat what they carry, and lose answers after the commit. */
import type { RandomStream } from '../../src/core/index.js';
import type { Store } from '../../src/store/store.js';
import type { Process, Time } from './time.js';

export interface WireFaults {
  /** How likely each is, for one request. */
  cut: number;
  lostAnswer: number;
  repeated: number;
}

export const CALM: WireFaults = { cut: 0, lostAnswer: 0, repeated: 0 };

export class Wire {
  /** Nothing comes through until then, ms. */
  private cutUntil = 0;

  constructor(
    private readonly time: Time,
    private readonly random: RandomStream,
    public faults: WireFaults,
    /** What a caller is told when there is no answer. */
    private readonly failure: (why: string) => Error,
  ) {}

  cutFor(ms: number): void {
    this.cutUntil = Math.max(this.cutUntil, this.time.now + ms);
  }

  mend(): void {
    this.cutUntil = 0;
    this.faults = CALM;
  }

  get isCut(): boolean {
    return this.cutUntil > this.time.now;
  }

  /** Has the other end do something, and brings the answer. The request is on its way even if the caller dies meanwhile. */
  call<T>(caller: Process, work: () => Promise<T>): Promise<T> {
    const { time, random, faults } = this;
    return new Promise((resolve, reject) => {
      const fail = (why: string): void =>
        void caller.after(random.integer(1, 3_000), () => reject(this.failure(why)));
      if (this.isCut || random.next() < faults.cut) return fail('the connection was lost');
      if (random.next() < faults.repeated)
        time.after(random.integer(1, 20_000), () => void work().catch(() => {}));
      time.after(random.integer(1, 5), () => {
        work().then(
          (answer) => {
            if (this.isCut || random.next() < faults.lostAnswer) fail('the answer was lost');
            else caller.after(random.integer(1, 5), () => resolve(answer));
          },
          (error) => caller.after(1, () => reject(error)),
        );
      });
    });
  }
}

/** What a simulated fault looks like to those who ask the database: any other error is a mistake. */
export class DatabaseAway extends Error {}

/** The store, or another one, as a process reaches it. */
export function storeOver<T extends object = Store>(wire: Wire, process: Process, store: T): T {
  return new Proxy(store, {
    get(target, name) {
      const method = target[name as keyof T] as unknown;
      if (typeof method !== 'function') return method;
      return (...args: unknown[]) => wire.call(process, async () => method.apply(target, args.map(sent)));
    },
  });
}

/** What becomes of an argument on its way. Functions, also those asked with a change, such as for its audit entry, are called here as they are. */
function sent(argument: unknown): unknown {
  if (typeof argument === 'function') return argument;
  const asked = Object.entries(argument ?? {}).filter(([, value]) => typeof value === 'function');
  if (asked.length === 0) return structuredClone(argument);
  const without = Object.fromEntries(asked.map(([name]) => [name, undefined]));
  return { ...structuredClone({ ...(argument as object), ...without }), ...Object.fromEntries(asked) };
}
