/** Stock clients, as their own documentation sets them up. */
import { Client, cacheExchange, fetchExchange, gql, subscriptionExchange } from '@urql/core';
import { createClient } from 'graphql-ws';
import { expect, test } from 'vitest';
import WebSocket from 'ws';
import { withApi } from './support/api.js';

const api = withApi();

function urql(): Client {
  const authorization = `Bearer ${api.adminKey}`;
  const wsClient = createClient({
    url: api.url.replace('http', 'ws'),
    webSocketImpl: WebSocket,
    connectionParams: { authorization },
  });
  return new Client({
    url: api.url,
    fetchOptions: { headers: { authorization } },
    preferGetMethod: false,
    exchanges: [
      cacheExchange,
      fetchExchange,
      subscriptionExchange({
        forwardSubscription: (operation) => ({
          subscribe: (sink) => ({
            unsubscribe: wsClient.subscribe({ ...operation, query: operation.query ?? '' }, sink),
          }),
        }),
      }),
    ],
  });
}

test('urql: query, mutation, subscription, and an error with its code', async () => {
  const client = urql();
  const viewer = await client.query(gql`query { viewer { id name } }`, {}).toPromise();
  expect(viewer.error).toBeUndefined();
  expect(viewer.data).toMatchObject({ viewer: { name: 'admin' } });

  const got: unknown[] = [];
  const { data } = await client.query(gql`query { latestCursor }`, {}).toPromise();
  const { unsubscribe } = client
    .subscription(
      gql`subscription ($after: String) { jobUpdated(after: $after) { cursor job { id state } } }`,
      { after: data.latestCursor },
    )
    .subscribe((result) => void got.push(result.data?.jobUpdated.job));
  const submitted = await client
    .mutation(gql`mutation ($input: SubmitJobsInput!) { submitJobs(input: $input) { jobIds } }`, {
      input: { jobs: [{ command: 'true' }] },
    })
    .toPromise();
  const [id] = submitted.data.submitJobs.jobIds;
  await expect.poll(() => got).toEqual([expect.objectContaining({ id, state: 'QUEUED' })]);
  unsubscribe();

  const failed = await client.query(gql`query { job(id: "nonsense") { id } }`, {}).toPromise();
  expect(failed.error?.graphQLErrors[0]?.extensions.code).toBe('BAD_USER_INPUT');
});

test('urql: queries by GET', async () => {
  const client = new Client({
    url: api.url,
    fetchOptions: { headers: { authorization: `Bearer ${api.adminKey}` } },
    preferGetMethod: 'force',
    exchanges: [fetchExchange],
  });
  const { data, error } = await client
    .query(gql`query ($first: Int) { sites(first: $first) { nodes { id } } }`, { first: 1 })
    .toPromise();
  expect(error).toBeUndefined();
  expect(data).toMatchObject({ sites: { nodes: [] } });
});

test('graphql-ws: queries and mutations over the same connection as subscriptions, many at once', async () => {
  const client = api.subscriber();
  const one = async (query: string): Promise<unknown> => {
    for await (const { data } of client.iterate({ query })) return data;
    return null;
  };
  const answers = await Promise.all([
    ...Array.from({ length: 20 }, () => one('{ viewer { name } }')),
    one('mutation { submitJobs(input: { jobs: [{ command: "true" }] }) { errors { message } } }'),
  ]);
  expect(answers.slice(0, 20)).toEqual(Array.from({ length: 20 }, () => ({ viewer: { name: 'admin' } })));
  expect(answers[20]).toEqual({ submitJobs: { errors: [] } });
});
