import { useSyncExternalStore } from 'react';

/** A value that components can watch. */
export interface Store<T> {
  get(): T;
  set(value: T): void;
  subscribe(listener: () => void): () => void;
}

export function createStore<T>(value: T): Store<T> {
  const listeners = new Set<() => void>();
  return {
    get: () => value,
    set(next) {
      if (Object.is(next, value)) return;
      value = next;
      for (const listener of [...listeners]) listener();
    },
    subscribe(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}

export const useStore = <T>(store: Pick<Store<T>, 'get' | 'subscribe'>): T =>
  useSyncExternalStore(store.subscribe, store.get);

/** The same in local storage, for what a person has chosen in this browser. */
export function createSetting<T extends string>(name: string, byDefault: T): Store<T> {
  const store = createStore<T>((localStorage.getItem(`switchyard.${name}`) as T | null) ?? byDefault);
  return {
    ...store,
    set(value) {
      localStorage.setItem(`switchyard.${name}`, value);
      store.set(value);
    },
  };
}
