import { serverAudits } from 'graphql-http';
import { describe, expect, test } from 'vitest';
import { withApi } from './support/api.js';

const api = withApi();

/** A fetch that says who asks: the audits do not know of keys. */
const fetchFn = (input: string, init: RequestInit = {}): Promise<Response> => {
  const headers = new Headers(init.headers);
  headers.set('authorization', `Bearer ${api.adminKey}`);
  return fetch(input, { ...init, headers });
};

describe('GraphQL over HTTP: every audit of graphql-http, required and recommended', () => {
  const audits = serverAudits({ url: () => api.url, fetchFn });
  for (const audit of audits) {
    test(`${audit.id} ${audit.name}`, async () => {
      const result = await audit.fn();
      expect(result.status === 'ok' ? 'ok' : `${result.status}: ${result.reason}`).toBe('ok');
    });
  }
});
