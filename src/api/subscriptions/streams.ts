/**
 * How subscriptions wait. Not with async generator functions: `return()` of one that waits inside is only heard when the
 * wait is over, and a subscriber that has gone away would stay until the next event.
 */

/**
 * Values pulled one after another: `pull` waits for the next one, or answers null when it was stopped. `stop` must end a wait
 * that is going on.
 */
export function pulled<T>(pull: () => Promise<T | null>, stop: () => void): AsyncGenerator<T, void, void> {
  let closed = false;
  const close = (): void => {
    if (closed) return;
    closed = true;
    stop();
  };
  const done = { value: undefined, done: true } as const;
  return {
    async next() {
      if (closed) return done;
      try {
        const value = await pull();
        if (value !== null && !closed) return { value, done: false };
      } catch (error) {
        close();
        throw error;
      }
      close();
      return done;
    },
    async return() {
      close();
      return done;
    },
    async throw(error) {
      close();
      throw error;
    },
    [Symbol.asyncIterator]() {
      return this;
    },
  };
}

/** The same generator, with `ended` called once, however it ends. */
export function watched<T>(
  inner: AsyncGenerator<T, void, void>,
  ended: () => void,
): AsyncGenerator<T, void, void> {
  return pulled(
    async () => {
      const result = await inner.next();
      return result.done ? null : result.value;
    },
    () => {
      void inner.return();
      ended();
    },
  );
}
