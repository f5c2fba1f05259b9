/**
 * Trusted documents: an installation may accept only the queries that its clients were built with. A client sends the text, or only its
 * SHA-256, as `documentId` (`sha256:…`) or in the way of Apollo's persisted queries.
 */
import { createHash } from 'node:crypto';
import { ApiError } from './errors.js';

/** What a request says of its query. */
export interface GivenDocument {
  query?: unknown;
  documentId?: unknown;
  extensions?: unknown;
}

/**
 * The text of the query that a request means. Throws FORBIDDEN for one that is not trusted, and BAD_USER_INPUT for an id where none is known.
 *
 * @param trusted by the SHA-256 of the text, hexadecimal; null: any text will do
 */
export function documentOf(given: GivenDocument, trusted: ReadonlyMap<string, string> | null): unknown {
  if (trusted === null && typeof given.query === 'string') return given.query;
  const id = idOf(given);
  if (trusted === null) {
    if (id === null) return given.query;
    throw new ApiError(
      'BAD_USER_INPUT',
      'documentId: this service does not store documents by ID; send the text as `query`',
    );
  }
  const hash = typeof given.query === 'string' ? sha256(given.query) : id;
  const text = hash === null ? undefined : trusted.get(hash);
  if (text === undefined) {
    throw new ApiError(
      'FORBIDDEN',
      `this service accepts only trusted documents, and ${hash === null ? 'the request has no document' : `sha256:${hash} is not one of them`}`,
    );
  }
  return text;
}

export const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');

function idOf({ documentId, extensions }: GivenDocument): string | null {
  const persisted = (extensions as { persistedQuery?: { sha256Hash?: unknown } } | null | undefined)
    ?.persistedQuery?.sha256Hash;
  const id = documentId ?? persisted;
  const match = typeof id === 'string' ? /^(?:sha256:)?([0-9a-f]{64})$/.exec(id) : null;
  return match?.[1] ?? null;
}
