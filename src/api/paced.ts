/** Answers that are as long as somebody wants to take them: no faster than they are read, and no slower than so much. */

import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { Response } from 'express';

/** A client that has not taken the next part of an answer after this time is gone. */
const STALLED_MS = 30_000;

/** Sends a stream. Nothing more of it is read than what the client takes; one that takes nothing is cut off. */
export async function sendPaced(source: Readable, res: Response, stalledMs = STALLED_MS): Promise<void> {
  const timer = setTimeout(() => res.destroy(), stalledMs);
  async function* noted(chunks: AsyncIterable<unknown>): AsyncGenerator<unknown> {
    for await (const chunk of chunks) {
      timer.refresh();
      yield chunk;
    }
  }
  try {
    await pipeline(source, noted, res);
  } catch (error) {
    // A client that goes away is no failure of ours.
    if (!res.destroyed) throw error;
  } finally {
    clearTimeout(timer);
  }
}
