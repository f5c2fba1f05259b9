import type { Change } from '../../src/store/directory.js';

/** On whose behalf the test changes the directory. */
export const SERVICE = { userId: null, requestId: null };

export async function accepted<T>(change: Promise<Change<T>>): Promise<T> {
  const made = await change;
  if (made.kind === 'refused') throw new Error(made.message);
  return made.value;
}
