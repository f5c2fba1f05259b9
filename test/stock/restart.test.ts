/** A stock graphql-ws client with its own ways of trying again, over a restart of the service. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createClient } from 'graphql-ws';
import { afterAll, expect, test } from 'vitest';
import WebSocket from 'ws';
import { endAll, serve } from '../cli/service.js';

const home = mkdtempSync(join(tmpdir(), 'switchyard-stock-'));
afterAll(async () => {
  await endAll();
  rmSync(home, { recursive: true, force: true });
});

test('graphql-ws goes on after the service was killed and started again: nothing is missed, and nothing new comes out of order', async () => {
  let service = await serve(home);
  const { port } = new URL(service.url);
  const authorization = `Bearer ${readFileSync(join(home, 'admin.key'), 'utf8').trim()}`;
  const answer = await fetch(service.url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization },
    body: JSON.stringify({ query: '{ latestCursor }' }),
  });
  const { data } = (await answer.json()) as { data: { latestCursor: string } };
  const client = createClient({
    url: service.url.replace('http', 'ws'),
    webSocketImpl: WebSocket,
    connectionParams: { authorization },
    retryAttempts: 1_000,
    retryWait: () => new Promise((resolve) => setTimeout(resolve, 200)),
    shouldRetry: () => true,
  });
  interface Heard {
    jobUpdated: { cursor: string; event: { toState: string | null } | null; job: { id: string } | null };
  }
  const heard = new Map<number, string>();
  let connections = 0;
  client.on('connected', () => void connections++);
  client.subscribe<Heard>(
    {
      query:
        'subscription ($after: String) { jobUpdated(after: $after) { cursor event { toState } job { id } } }',
      variables: { after: data.latestCursor },
    },
    {
      // It asks again from where it began: an update that comes again has the same cursor.
      next: ({ data }) => {
        const { cursor, event, job } = data!.jobUpdated;
        heard.set(Number(cursor), `${job?.id} ${event?.toState}`);
      },
      error: () => {},
      complete: () => {},
    },
  );
  const submit = async (): Promise<string> =>
    (await service.json<{ id: string }[]>('submit', '--', 'true'))[0]!.id;
  const first = await submit();
  await expect.poll(() => [...heard.values()]).toContain(`${first} COMPLETED`);
  await service.process.end('SIGKILL');
  service = await serve(home, [], port);
  const last = await submit();
  await expect.poll(() => [...heard.values()]).toContain(`${last} COMPLETED`);
  await client.dispose();
  expect(connections).toBeGreaterThan(1);
  const inOrder = [...heard].sort(([a], [b]) => a - b).map(([, told]) => told);
  const states = ['QUEUED', 'DISPATCHED', 'ASSIGNED', 'RUNNING', 'COMPLETED'];
  for (const id of [first, last])
    expect(inOrder.filter((told) => told.startsWith(`${id} `))).toEqual(
      states.map((state) => `${id} ${state}`),
    );
});
