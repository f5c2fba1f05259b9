/**
 * Fetches a trace from the Parallel Workloads Archive (Feitelson et al.). The archive keeps a list of the addresses of all
 * its logs; a name is looked up there, so that no list of ours grows old.
 */
import { createWriteStream } from 'node:fs';
import { access, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';

export const ARCHIVE = 'https://www.cs.huji.ac.il/labs/parallel/workload/';
const LIST_MAX_CHARS = 1 << 20;

/** Names of the archive's logs and where each is. Throws when the archive does not answer as expected. */
export async function listTraces(archive = ARCHIVE): Promise<Map<string, string>> {
  const response = await get(new URL('logs-list', archive));
  const text = (await response.text()).slice(0, LIST_MAX_CHARS);
  const found = new Map<string, string>();
  for (const word of text.split(/\s+/)) {
    const file = /([^/\s]+)\.swf\.gz$/.exec(word)?.[1];
    if (file !== undefined) found.set(file, new URL(word, archive).href);
  }
  if (found.size === 0) throw new Error(`${archive}logs-list names no traces`);
  return found;
}

/**
 * Downloads the trace whose name begins so, in any case, into a folder. Returns its path. Throws when there is none or
 * several, when the file is there already, or when the archive cannot be reached.
 */
export async function fetchTrace(name: string, folder: string, archive = ARCHIVE): Promise<string> {
  const traces = await listTraces(archive);
  const exact = [...traces.keys()].filter((one) => one.toLowerCase() === name.toLowerCase());
  const begins = [...traces.keys()].filter((one) => one.toLowerCase().startsWith(name.toLowerCase()));
  const [only, ...others] = exact.length > 0 ? exact : begins;
  if (only === undefined || others.length > 0) {
    const choice = only === undefined ? [...traces.keys()] : [only, ...others];
    throw new Error(
      `trace: "${name}" is ${only === undefined ? 'not in the archive' : 'an ambiguous prefix'}; accepted: one of ${choice.join(', ')}`,
    );
  }
  const path = join(folder, `${only}.swf.gz`);
  const exists = await access(path).then(
    () => true,
    () => false,
  );
  if (exists) throw new Error(`${path} already exists`);
  const response = await get(new URL(traces.get(only) as string));
  const part = `${path}.part`;
  try {
    await pipeline(
      Readable.fromWeb(response.body as Parameters<typeof Readable.fromWeb>[0]),
      createWriteStream(part),
    );
    await rename(part, path);
  } catch (error) {
    await rm(part, { force: true });
    throw error;
  }
  return path;
}

async function get(url: URL): Promise<Response> {
  let response: Response;
  try {
    response = await fetch(url, { signal: AbortSignal.timeout(600_000) });
  } catch (error) {
    const cause = (error as Error).cause;
    const why = cause instanceof Error ? cause.message : (error as Error).message;
    throw new Error(`${url.host} cannot be reached (${why}): fetching a trace needs internet access`);
  }
  if (!response.ok) throw new Error(`${url.href} returned ${response.status} ${response.statusText}`);
  return response;
}
