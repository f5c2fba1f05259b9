import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it, onTestFinished } from 'vitest';
import {
  Client,
  type Document,
  ExitCode,
  exitCodeOf,
  ServiceError,
  untilDone,
} from '../../src/client/index.js';
import { startService, type TestService } from '../agent/service.js';

const ASSIGNMENTS = `subscription Assignments($site: ID!, $after: String) {
  assignments(site: $site, after: $after) { cursor assignments { job } }
}`;

interface Update {
  cursor: string;
  assignments: { job: string }[];
}

const clientOf = (service: TestService, key: string | null = 'good-key'): Client =>
  new Client({ url: service.url, key });

const run = (job: string) => ({
  ...{ job, epoch: 1, action: 'START' as const, command: 'true' },
  arguments: [],
});

function follow(client: Client) {
  const stop = new AbortController();
  onTestFinished(() => stop.abort());
  const retries: string[] = [];
  const updates = client.updates<{ assignments: Update }>(
    ASSIGNMENTS,
    'assignments',
    { site: 'site_1' },
    { after: '0', signal: stop.signal, onRetry: (why) => retries.push(why) },
  );
  return { updates, retries, stop };
}

it('updates go on over a lost connection, and end when they are stopped', async () => {
  const service = await startService();
  service.assign(run('job_1'));
  const { updates, retries, stop } = follow(clientOf(service));
  expect((await updates.next()).value?.assignments).toEqual([{ job: 'job_1' }]);
  expect(service.after).toEqual(['0']);
  const next = updates.next();
  await service.down();
  await expect.poll(() => retries.length).toBeGreaterThan(0);
  await service.up();
  expect((await next).value?.assignments).toEqual([{ job: 'job_1' }]);
  expect(service.after).toEqual(['0', '1']);
  const last = updates.next();
  stop.abort();
  expect(await last).toMatchObject({ done: true });
});

it('updates end when the service completes them', async () => {
  const service = await startService();
  const { updates } = follow(clientOf(service));
  await updates.next();
  service.dropSubscriptions();
  expect(await updates.next()).toMatchObject({ done: true });
});

it('who is refused does not try again', async () => {
  const service = await startService();
  const { updates, retries } = follow(clientOf(service, 'bad-key'));
  await expect(updates.next()).rejects.toMatchObject({ name: 'ServiceError', code: 'FORBIDDEN' });
  expect(retries).toEqual([]);
});

it('a request is refused with the code of its first fault, and with NETWORK when nothing answers', async () => {
  const service = await startService();
  const query = '{ sites { nodes { id } } }';
  await expect(clientOf(service, null).request(query, {})).rejects.toMatchObject({
    message: 'no such key',
    code: 'UNAUTHENTICATED',
    exitCode: ExitCode.REFUSED,
    mayPass: false,
  });
  await service.down();
  await expect(clientOf(service).request(query, {})).rejects.toMatchObject({
    message: `no response from ${service.url} (ECONNREFUSED)`,
    code: 'NETWORK',
    exitCode: ExitCode.UNREACHABLE,
    mayPass: true,
  });
});

it('a request that is not answered is given up in time, or when it is stopped', async () => {
  const service = await startService();
  service.beforeAnswer = () => sleep(300);
  const client = new Client({ url: service.url, key: 'good-key', requestTimeoutMs: 20 });
  await expect(client.request('{ viewer { id } }', {})).rejects.toThrow('no response within 0.02 s');
  const stop = new AbortController();
  const asked = clientOf(service).request('{ viewer { id } }', {}, stop.signal);
  stop.abort();
  await expect(asked).rejects.toMatchObject({ code: 'NETWORK' });
});

it('lists are read to their last page', async () => {
  const service = await startService();
  service.pageSize = 1;
  const query: Document<
    { machines: { nodes: { name: string }[]; pageInfo: { hasNextPage: boolean; endCursor: string | null } } },
    { first: number; after: string | null }
  > =
    'query ($first: Int!, $after: String) { machines(first: $first, after: $after) { nodes { name } pageInfo { hasNextPage endCursor } } }';
  expect(await clientOf(service).all(query, 'machines', {})).toEqual([{ name: 'a' }, { name: 'b' }]);
});

it.each([
  ['UNAUTHENTICATED', ExitCode.REFUSED, false],
  ['FORBIDDEN', ExitCode.REFUSED, false],
  ['NOT_FOUND', ExitCode.NOT_FOUND, false],
  ['BAD_USER_INPUT', ExitCode.USAGE, false],
  ['LIMIT_EXCEEDED', ExitCode.USAGE, false],
  ['GRAPHQL_VALIDATION_FAILED', ExitCode.USAGE, false],
  ['CONFLICT', ExitCode.FAILED, false],
  ['INTERNAL_SERVER_ERROR', ExitCode.FAILED, false],
  ['HTTP_413', ExitCode.FAILED, false],
  ['RATE_LIMITED', ExitCode.FAILED, true],
  ['UNAVAILABLE', ExitCode.UNREACHABLE, true],
  ['HTTP_502', ExitCode.UNREACHABLE, true],
  ['NETWORK', ExitCode.UNREACHABLE, true],
])('%s: exit code %i, may pass: %s', (code, exitCode, mayPass) => {
  expect(exitCodeOf(code)).toBe(exitCode);
  expect(new ServiceError('', code).mayPass).toBe(mayPass);
});

it('pauses grow, are counted anew after progress, and are never shorter than the service asks', async () => {
  const failures: number[] = [];
  const waits: number[] = [];
  let attempt = 0;
  const result = await untilDone(
    async (progress) => {
      attempt++;
      if (attempt === 3) progress();
      if (attempt <= 3) throw new ServiceError('busy', 'RATE_LIMITED', attempt === 2 ? 250 : null);
      return attempt;
    },
    new AbortController().signal,
    (_, count, waitMs) => {
      failures.push(count);
      waits.push(waitMs);
    },
  );
  expect(result).toBe(4);
  expect(failures).toEqual([1, 2, 1]);
  expect(waits[0]).toBeGreaterThanOrEqual(50);
  expect(waits[0]).toBeLessThanOrEqual(100);
  expect(waits[1]).toBe(250);
  expect(waits[2]).toBeLessThanOrEqual(100);
});

it('trying again ends with the signal, or with what the watcher throws', async () => {
  const stop = new AbortController();
  const fail = async (): Promise<never> => {
    throw new Error('no');
  };
  expect(await untilDone(fail, stop.signal, () => stop.abort())).toBeUndefined();
  const giveUp = untilDone(fail, new AbortController().signal, (error) => {
    throw error;
  });
  await expect(giveUp).rejects.toThrow('no');
});
