/** Short notices of what was done, or could not be. */

import { createStore, useStore } from '../api/store';
import { Button } from './controls';
import { CheckCircle2, X, XCircle } from './icons';

interface Toast {
  id: number;
  text: string;
  bad: boolean;
}

const SHOWN_MS = 6_000;
const SHOWN_MAX = 4;
const toasts = createStore<readonly Toast[]>([]);
let next = 0;

const drop = (id: number): void => toasts.set(toasts.get().filter((toast) => toast.id !== id));

export function toast(text: string, bad = false): void {
  const id = next++;
  toasts.set([...toasts.get(), { id, text, bad }].slice(-SHOWN_MAX));
  setTimeout(() => drop(id), bad ? SHOWN_MS * 2 : SHOWN_MS);
}

/** Tells of an action's failure, and of its success where there is something to tell. */
export async function told<T>(
  work: Promise<T>,
  success?: string | ((value: T) => string),
): Promise<T | null> {
  try {
    const value = await work;
    if (success) toast(typeof success === 'string' ? success : success(value));
    return value;
  } catch (error) {
    toast(error instanceof Error ? error.message : String(error), true);
    return null;
  }
}

export function Toasts() {
  const shown = useStore(toasts);
  return (
    <div className="toasts" role="status" aria-live="polite">
      {shown.map(({ id, text, bad }) => (
        <div key={id} className={`toast ${bad ? 'bad' : ''}`}>
          {bad ? <XCircle size={16} aria-hidden /> : <CheckCircle2 size={16} aria-hidden />}
          <span className="grow">{text}</span>
          <Button
            variant="quiet"
            className="small"
            icon={<X size={14} />}
            aria-label="Dismiss"
            onPress={() => drop(id)}
          />
        </div>
      ))}
    </div>
  );
}
