/** The rules by which a job is started again: as they are given, and as they are shown. */
import { expect, test } from 'vitest';
import { withApi } from './support/api.js';

const api = withApi();

const submit = async (retry: object | null) => {
  const { submitJobs } = await api.must<{
    submitJobs: { jobs: { retry: object | null; retries: number }[]; errors: { message: string }[] };
  }>(
    `mutation ($job: JobInput!) { submitJobs(input: { jobs: [$job] }) {
      jobs { retries retry { maxRetries backoffS factor maxBackoffS
        rules { causes exitCodes { from to } signals action memoryFactor memoryMaxMb } } } errors { message } } }`,
    { job: { command: 'true', retry } },
  );
  return submitJobs;
};

test('rules of retries are shown as they were given, with what was left out', async () => {
  const given = { action: 'RETRY', exitCodes: [{ from: 75, to: 75 }], signals: ['SIGKILL'] };
  const whole = { causes: null, memoryFactor: 1, memoryMaxMb: null };
  expect((await submit({ maxRetries: 3, rules: [given] })).jobs).toEqual([
    {
      retries: 0,
      retry: {
        ...{ maxRetries: 3, backoffS: 30, factor: 2, maxBackoffS: 3600 },
        rules: [{ ...whole, ...given }],
      },
    },
  ]);
  expect((await submit(null)).jobs).toEqual([{ retries: 0, retry: null }]);
});

test('what is beyond is refused by name', async () => {
  const rule = (change: object) => ({ rules: [{ action: 'HOLD' }, { action: 'RETRY', ...change }] });
  const bad: [object, RegExp][] = [
    [{ maxRetries: 101 }, /retry\.maxRetries.*101.*0 to 100/],
    [{ backoffS: -1 }, /retry\.backoffS.*-1.*0 to/],
    [{ factor: 10.5 }, /retry\.factor.*10\.5.*1 to 10/],
    [{ maxBackoffS: 2e9 }, /retry\.maxBackoffS/],
    [{ rules: Array.from({ length: 21 }, () => ({ action: 'FAIL' })) }, /retry\.rules.*21.*up to 20/],
    [rule({ causes: [] }), /retry\.rules\[1\]\.causes.*0.*1 to/],
    [
      rule({ causes: ['LOST', 'CANCELLED_BY_USER'] }),
      /rules\[1\]\.causes.*CANCELLED_BY_USER.*EXITED_NONZERO/,
    ],
    [rule({ exitCodes: [{ from: 5, to: 4 }] }), /rules\[1\]\.exitCodes\[0\]\.to.*4.*5 to/],
    [rule({ signals: ['KILL'] }), /rules\[1\]\.signals.*KILL.*SIGKILL/],
    [rule({ memoryFactor: 0.5 }), /rules\[1\]\.memoryFactor.*0\.5.*1 to 1000/],
    [rule({ memoryMaxMb: -1 }), /rules\[1\]\.memoryMaxMb.*-1/],
  ];
  for (const [retry, message] of bad) {
    const { errors, jobs } = await submit(retry);
    expect(jobs).toEqual([]);
    expect(errors.map((error) => error.message)).toEqual([expect.stringMatching(message)]);
  }
});
