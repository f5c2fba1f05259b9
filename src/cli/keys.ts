import type { Client } from '../client/index.js';
import { type KeyFieldsFragment, KeysDocument, type KeysQuery } from './documents.gql.js';

/** All keys of the user, the newest first. */
export async function keysOf(client: Client, user: string): Promise<KeyFieldsFragment[]> {
  const keys: KeyFieldsFragment[] = [];
  let after: string | null = null;
  do {
    const { node }: KeysQuery = await client.request(KeysDocument, { user, after });
    if (!node || !('keys' in node)) break;
    keys.push(...node.keys.nodes);
    after = node.keys.pageInfo.hasNextPage ? node.keys.pageInfo.endCursor : null;
  } while (after !== null);
  return keys;
}
