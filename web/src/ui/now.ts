import { useSyncExternalStore } from 'react';

interface Beat {
  subscribe(listener: () => void): () => void;
  get(): number;
}

const beats = new Map<number, Beat>();

function beatOf(stepMs: number): Beat {
  let beat = beats.get(stepMs);
  if (!beat) {
    const listeners = new Set<() => void>();
    let now = Date.now();
    let timer: ReturnType<typeof setInterval> | undefined;
    const tick = (): void => {
      if (document.hidden) return;
      now = Date.now();
      for (const each of [...listeners]) each();
    };
    beat = {
      subscribe(listener) {
        timer ??= setInterval(tick, stepMs);
        listeners.add(listener);
        return () => {
          listeners.delete(listener);
          if (listeners.size > 0) return;
          clearInterval(timer);
          timer = undefined;
        };
      },
      get() {
        // Nobody has listened for a while: it is later now.
        if (timer === undefined && Date.now() - now > stepMs) now = Date.now();
        return now;
      },
    };
    beats.set(stepMs, beat);
  }
  return beat;
}

/** The time, ms since 1970, anew every `stepMs`: one timer for all that show the passing of time. */
export function useNow(stepMs = 1_000): number {
  const { subscribe, get } = beatOf(stepMs);
  return useSyncExternalStore(subscribe, get);
}
