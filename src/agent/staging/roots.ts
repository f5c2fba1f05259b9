/**
 * Which files of the host can be data of jobs. Operators of the service say where datasets are; the agent may be root and hands what they say to jobs,
 * so what is the host's or Switchyard's own is no data, whatever the catalog says.
 */
import { realpath } from '../files/share.js';
import { UnfitSource } from './source.js';

export interface DataRoots {
  /** Data are below these only; null: anywhere. */
  allowed: readonly string[] | null;
  /** What is below these, or has one of them below it, is no data. */
  closed: readonly string[];
  /** Of the closed ones, what is data all the same. */
  open: readonly string[];
}

/** Of the host: accounts, secrets, devices, what the kernel and running services show. */
export const CLOSED = [
  '/etc',
  '/root',
  '/proc',
  '/sys',
  '/dev',
  '/run',
  '/boot',
  '/var/run',
  '/var/lib/private',
];

/**
 * Where a path leads, links followed.
 *
 * @throws UnfitSource where there is nothing that may be data
 */
export async function dataPath(path: string, { allowed, closed, open }: DataRoots): Promise<string> {
  const real = await resolved(path);
  const [ours, theirs, free] = await Promise.all([allowed ?? [], closed, open].map(realPaths));
  if (free!.some((root) => isBelow(real, root))) return real;
  if (allowed !== null && !ours!.some((root) => isBelow(real, root)))
    throw new UnfitSource(
      `${path}: data at this site must be below ${allowed.join(', ')} (AGENT_DATA_DIRECTORIES)`,
    );
  if (allowed === null && theirs!.some((root) => isBelow(real, root) || isBelow(root, real)))
    throw new UnfitSource(`${path}: it belongs to the host or the agent, and is not data`);
  return real;
}

async function resolved(path: string): Promise<string> {
  try {
    return await realpath(path);
  } catch (error) {
    throw new UnfitSource((error as Error).message);
  }
}

/** As far as they are there. */
const realPaths = (paths: readonly string[]): Promise<string[]> =>
  Promise.all(paths.map((path) => realpath(path).catch(() => path)));

const isBelow = (path: string, root: string): boolean =>
  path === root || root === '/' || path.startsWith(`${root}/`);
