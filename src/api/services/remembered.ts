export interface Remembered<T> {
  /** As it was at most a while ago. Calls that come together share the answer. One that failed is not kept. */
  (): Promise<T>;
  /**
   * As it is after the call: for what is refused by it, or final. Calls that come while it is asked share the next answer, so there is one
   * question at a time, however many are refused.
   */
  afresh(): Promise<T>;
}

/**
 * @param forS how old an answer may be
 * @param now epoch seconds; should the clock be set back, it is asked again
 * @param isStill whether an answer is right still: asked first by `afresh`, where this is cheaper than the question itself
 */
export function remembered<T>(
  forS: number,
  now: () => number,
  ask: () => Promise<T>,
  isStill: ((answer: T) => Promise<boolean>) | null = null,
): Remembered<T> {
  let answer: Promise<T> | null = null;
  let askedAt = 0;
  /** The question before, which may have been asked too early to answer the next one. Never fails. */
  let before: Promise<unknown> = Promise.resolve();
  let next: Promise<T> | null = null;

  function asked(): Promise<T> {
    const mine = ask();
    askedAt = now();
    answer = mine;
    mine.catch(() => {
      if (answer === mine) answer = null;
    });
    return mine;
  }

  /** null: there is none that is young enough. */
  function recent(): Promise<T> | null {
    const age = now() - askedAt;
    return age >= forS || age < 0 ? null : answer;
  }

  async function look(): Promise<T> {
    next = null;
    const known = isStill && recent();
    return known && (await known.then(isStill, () => false)) ? known : asked();
  }

  return Object.assign(() => recent() ?? asked(), {
    afresh(): Promise<T> {
      if (next === null) {
        next = before.then(look);
        before = next.catch(() => {});
      }
      return next;
    },
  });
}
