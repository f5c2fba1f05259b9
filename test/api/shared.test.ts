/** Answers to subscribers who ask the same: made once, and never for one what another may see. */
import { once } from 'node:events';
import { buildSchema, type ExecutionArgs, parse } from 'graphql';
import { describe, expect, test } from 'vitest';
import WebSocket from 'ws';
import type { Viewer } from '../../src/api/auth.js';
import { type Recipient, SharedAnswers } from '../../src/api/subscriptions/shared.js';
import { unique, withApi } from './support/api.js';
import { follow } from './support/follow.js';

const VIEWER: Viewer = {
  ...{ keyId: 1, sessionId: null, userId: 1, role: 'USER', siteId: null },
  ...{ expiresAtMs: null, actsForUsers: false, onBehalfBy: null },
};
const SCHEMA = buildSchema('type Query { a: Int } type Subscription { jobUpdated(x: Int): String }');
const DOCUMENT = parse('subscription Both($x: Int) { jobUpdated(x: $x) } subscription Other { jobUpdated }');

describe('SharedAnswers', () => {
  /** Tells all of one update, and gives what each was sent and for how many the operation was executed. */
  async function told(
    asked: readonly { viewer?: Partial<Viewer>; args?: Partial<ExecutionArgs>; update?: object }[],
    answer: (viewer: Viewer) => unknown = (viewer) => `for ${viewer.keyId}/${viewer.userId}`,
  ): Promise<{ sent: string[]; executed: number }> {
    let executed = 0;
    const same = {
      jobUpdated: (_: unknown, { viewer }: { viewer: Viewer }) => {
        executed++;
        return answer(viewer);
      },
    };
    const answers = new SharedAnswers();
    const sent: string[] = [];
    const streams = await Promise.all(
      asked.map(async ({ viewer, args, update = same }, i) => {
        const recipient: Recipient = {
          outward: ({ errors, ...rest }) => ({ ...rest, ...(errors && { errors: [String(errors[0])] }) }),
          async send(payload) {
            sent[i] = payload;
          },
        };
        const given: ExecutionArgs = {
          ...{ schema: SCHEMA, document: DOCUMENT, operationName: 'Both', variableValues: {} },
          contextValue: { viewer: { ...VIEWER, ...viewer } },
          async *subscribeFieldResolver() {
            yield update;
          },
          ...args,
        };
        return (await answers.follow('jobUpdated', given, recipient)) as AsyncGenerator<never>;
      }),
    );
    await Promise.all(streams.map((stream) => stream.next()));
    return { sent, executed };
  }

  test('one execution serves all who ask the same', async () => {
    const { sent, executed } = await told([{}, {}, {}]);
    expect(sent).toEqual(Array(3).fill('{"data":{"jobUpdated":"for 1/1"}}'));
    expect(executed).toBe(1);
  });

  test('whoever differs in anything gets an answer of their own', async () => {
    const others: Partial<Viewer>[] = [
      ...[{ keyId: 2 }, { sessionId: 2 }, { userId: 2 }, { role: 'ADMIN' as const }, { siteId: 2 }],
      ...[{ expiresAtMs: 2 }, { actsForUsers: true }, { onBehalfBy: 2 }],
    ];
    // Twice each: what is asked once is never shared.
    const asked = [{}, ...others].flatMap((viewer) => [{ viewer }, { viewer }]);
    const { sent, executed } = await told(asked);
    expect(executed).toBe(1 + others.length);
    expect(sent.slice(2, 8).map((text) => JSON.parse(text).data.jobUpdated)).toEqual(
      ['for 2/1', 'for 1/1', 'for 1/2'].flatMap((text) => [text, text]),
    );
  });

  test('another operation, other variables, another document and another update are something else', async () => {
    const args: Partial<ExecutionArgs>[] = [
      {},
      { operationName: 'Other' },
      { variableValues: { x: 1 } },
      { document: parse('subscription Both { jobUpdated }') },
    ];
    const { executed } = await told(args.flatMap((one) => [{ args: one }, { args: one }]));
    expect(executed).toBe(args.length);
    const { sent } = await told([1, 2].map((jobUpdated) => ({ update: { jobUpdated } })));
    expect(sent).toEqual([1, 2].map((n) => `{"data":{"jobUpdated":"${n}"}}`));
  });

  test('an answer that is waited for is made once; one with errors is made for each', async () => {
    const late = () => new Promise((resolve) => setTimeout(() => resolve('late'), 50));
    expect(await told([{}, {}, {}], late)).toEqual({
      sent: Array(3).fill('{"data":{"jobUpdated":"late"}}'),
      executed: 1,
    });
    let failures = 0;
    const { sent, executed } = await told([{}, {}, {}], () => {
      throw new Error(`failure ${++failures}`);
    });
    expect(executed).toBe(3);
    expect(new Set(sent).size).toBe(3);
  });
});

describe('over the API', () => {
  const api = withApi();
  const QUERY = `subscription ($filter: JobFilter) { jobUpdated(filter: $filter) {
    event { toState } job { id user { name } downloads { url } } } }`;
  interface Update {
    event: { toState: string };
    job: { id: string; user: { name: string }; downloads: { url: string }[] };
  }

  /** How many follow jobs. */
  const open = async () =>
    Number(
      /switchyard_subscriptions\{field="jobUpdated"\} (\d+)/.exec(
        (await api.parts.metrics.expose()).body,
      )?.[1] ?? 0,
    );

  async function submit(groupName: string, key: string): Promise<string> {
    const job = {
      command: 'x',
      held: true,
      groupName,
      downloads: [{ url: 'https://s.example/f?signature=secret' }],
    };
    const { submitJobs } = await api.must<{ submitJobs: { jobIds: [string] } }>(
      'mutation ($input: SubmitJobsInput!) { submitJobs(input: $input) { jobIds } }',
      { input: { jobs: [job], allowUnfit: true } },
      key,
    );
    return submitJobs.jobIds[0];
  }

  test('of the same event the owner gets what is secret, an operator what is not, and another user nothing', async () => {
    const [owner, other, operator] = await Promise.all([
      api.user('USER', unique('owner')),
      api.user('USER', unique('other')),
      api.user('OPERATOR', unique('operator')),
    ]);
    const filter = { groupName: unique('shared') };
    const heard = (key: string) =>
      // Three each, so that each of the three has somebody to share with.
      Array.from({ length: 3 }, () => follow<Update>(api.subscriber(key), QUERY, { filter }));
    const [owners, others, operators] = [heard(owner.key), heard(other.key), heard(operator.key)];
    await expect.poll(open).toBe(9);
    const mine = await submit(filter.groupName, owner.key);
    const theirs = await submit(filter.groupName, other.key);
    const seen = (url: string, ...ids: string[]) => ids.map((id) => ({ id, downloads: [{ url }] }));
    const secret = 'https://s.example/f?signature=secret';
    for (const { got } of operators)
      await expect
        .poll(() => got.map(({ job }) => job))
        .toMatchObject(seen('https://s.example/f', mine, theirs));
    for (const { got } of owners)
      await expect.poll(() => got.map(({ job }) => job)).toMatchObject(seen(secret, mine));
    for (const { got } of others)
      await expect.poll(() => got.map(({ job }) => job)).toMatchObject(seen(secret, theirs));
    for (const one of [...owners, ...others, ...operators]) one.stop();
    await expect.poll(open).toBe(0);
  });

  test('the messages of those who ask the same differ in their ids only, and in these as the clients have written them', async () => {
    const ids = ['1', 'a "quoted" \\ id', 'ü'];
    const query = 'subscription { jobUpdated { cursor resyncRequired job { id name state } } }';
    const sockets = await Promise.all(
      ids.map(async (id) => {
        const socket = new WebSocket(api.url.replace('http', 'ws'), 'graphql-transport-ws');
        await once(socket, 'open');
        const acknowledged = once(socket, 'message');
        socket.send(
          JSON.stringify({ type: 'connection_init', payload: { authorization: `Bearer ${api.adminKey}` } }),
        );
        await acknowledged;
        socket.send(JSON.stringify({ id, type: 'subscribe', payload: { query } }));
        return socket;
      }),
    );
    await expect.poll(open).toBe(3);
    const messages = sockets.map((socket) => once(socket, 'message'));
    const job = await submit(unique('messages'), api.adminKey);
    const texts = (await Promise.all(messages)).map(([data]) => String(data));
    const told = texts.map((text) => JSON.parse(text));
    expect(told.map(({ id }) => id)).toEqual(ids);
    for (const { id, ...rest } of told) {
      const { cursor } = rest.payload.data.jobUpdated;
      const jobUpdated = { cursor, resyncRequired: false, job: { id: job, name: null, state: 'HELD' } };
      expect(rest).toEqual({ type: 'next', payload: { data: { jobUpdated } } });
    }
    for (const socket of sockets) socket.terminate();
  });
});
