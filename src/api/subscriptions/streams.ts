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

/**
 * What a listener is told, one after another.
 *
 * @param listen begins to listen, and gives what ends that
 * @param most wait to be pulled
 * @param drops what is dropped when there are more
 */
export function told<T extends object>(
  listen: (tell: (one: T) => void) => () => void,
  most: number,
  drops: 'OLDEST' | 'NEWEST',
): AsyncGenerator<T, void, void> {
  const waiting: T[] = [];
  let ended = false;
  let wake = (): void => {};
  const off = listen((one) => {
    waiting.push(one);
    if (waiting.length > most) waiting.splice(drops === 'OLDEST' ? 0 : most, 1);
    wake();
  });
  return pulled(
    async () => {
      while (waiting.length === 0 && !ended)
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      return waiting.shift() ?? null;
    },
    () => {
      ended = true;
      off();
      wake();
    },
  );
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
