/** Where a dataset can be had. */
import { fileURLToPath } from 'node:url';

/** Why a copy cannot be had from there, and trying again would not help. */
export class UnfitSource extends Error {
  override readonly name = 'UnfitSource';
}

/** What is there is not what the catalog says. */
export class WrongContent extends UnfitSource {}

/** The path at the service of a file that it keeps, such as /files/17; null: it is somewhere else. */
export const pathAtService = (location: string): string | null =>
  /^switchyard:(\/files\/\d+)$/.exec(location)?.[1] ?? null;

/** Without what may be secret in it: user, query, fragment. */
export function shown(location: string): string {
  if (!/^[a-z][a-z0-9+.-]*:\/\//i.test(location)) return location;
  try {
    const url = new URL(location);
    return `${url.protocol}//${url.host}${url.pathname}`;
  } catch {
    return location.replace(/[?#].*$/s, '').replace(/\/\/[^/@]*@/, '//');
  }
}

/** The path of a location that is a file or directory within reach; null: it is fetched otherwise. */
export function pathOf(location: string): string | null {
  if (location.startsWith('/')) return location;
  if (!/^file:/i.test(location)) return null;
  try {
    return fileURLToPath(location);
  } catch (error) {
    throw new UnfitSource(`${shown(location)}: ${(error as Error).message}`);
  }
}
