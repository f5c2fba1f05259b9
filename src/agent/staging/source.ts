/** Where a dataset can be had. */
import { fileURLToPath } from 'node:url';
import pRetry from 'p-retry';
import { shownUrl } from '../../platform/urls.js';

/** Why a copy cannot be had from there, and trying again would not help. */
export class UnfitSource extends Error {
  override readonly name = 'UnfitSource';
}

/** What is there is not what the catalog says. */
export class WrongContent extends UnfitSource {}

/** The path at the service of a file that it keeps, such as /files/17; null: it is somewhere else. */
export const pathAtService = (location: string): string | null =>
  /^switchyard:(\/files\/\d+)$/.exec(location)?.[1] ?? null;

/** The path of a location that is a file or directory within reach; null: it is fetched otherwise. */
export function pathOf(location: string): string | null {
  if (location.startsWith('/')) return location;
  if (!/^file:/i.test(location)) return null;
  try {
    return fileURLToPath(location);
  } catch (error) {
    throw new UnfitSource(`${shownUrl(location)}: ${(error as Error).message}`);
  }
}

/** How often something is tried that others have a part in, and the pause before the second time, which doubles with each. */
export interface Retries {
  attempts: number;
  retryMs: number;
}

export const RETRIES: Retries = { attempts: 4, retryMs: 1_000 };

/** Tries until it succeeds, or nothing is gained by trying again (UnfitSource). */
export const retried = <T>(
  attempt: () => Promise<T>,
  { attempts, retryMs }: Retries,
  signal: AbortSignal,
): Promise<T> =>
  pRetry(attempt, {
    retries: attempts - 1,
    minTimeout: retryMs,
    maxTimeout: 60 * retryMs,
    randomize: true,
    signal,
    shouldRetry: ({ error }) => !(error instanceof UnfitSource),
  });
