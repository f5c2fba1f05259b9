/** `switchyard mcp` as a process, asked by the SDK's client, over standard input and output and over HTTP. */
import { mkdtempSync, rmSync } from 'node:fs';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { packagePath } from '../../src/platform/paths.js';
import { endAll, launch, run, type Service, serve } from '../cli/service.js';
import { type Data, dataOf, INJECTIONS, type Result } from './answers.js';
import { QUESTIONS } from './questions.js';

const PROGRAM = packagePath('bin', 'switchyard.js');
const home = mkdtempSync(join(tmpdir(), 'switchyard-mcp-'));
const clients: Client[] = [];
let service: Service;
/** Of a user who may submit, and of another one. */
const keys = { ada: '', bob: '' };

const newClient = (): Client => {
  const client = new Client({ name: 'test', version: '1' });
  clients.push(client);
  return client;
};

async function stdio(args: string[], env: Record<string, string> = {}): Promise<Client> {
  const client = newClient();
  await client.connect(
    new StdioClientTransport({
      command: process.execPath,
      args: [PROGRAM, 'mcp', ...args],
      env: { PATH: process.env.PATH ?? '', SWITCHYARD_HOME: home, SWITCHYARD_URL: service.url, ...env },
      stderr: 'inherit',
    }),
  );
  return client;
}

const call = async (client: Client, name: string, input: Record<string, unknown> = {}): Promise<Result> =>
  // `dataOf` finds whether it is so.
  (await client.callTool({ name, arguments: input })) as unknown as Result;
/** The data of an answer that is no error. */
const ask = async (client: Client, name: string, input: Record<string, unknown> = {}): Promise<Data> => {
  const result = await call(client, name, input);
  expect(result.isError, JSON.stringify(result.content)).toBeFalsy();
  return dataOf(result);
};
const errorOf = async (
  client: Client,
  name: string,
  input: Record<string, unknown> = {},
): Promise<string> => {
  const result = await call(client, name, input);
  expect(result.isError).toBe(true);
  return dataOf(result).error;
};
const names = async (client: Client): Promise<string[]> =>
  (await client.listTools()).tools.map(({ name }) => name);
const jobsThere = async (): Promise<unknown[]> => service.json('jobs');

const READING = [
  ...['find_sites', 'estimate_start', 'find_jobs', 'read_output', 'explain_wait', 'explain_decision'],
  ...['usage', 'wait_for_job', 'search_docs'],
];
const ALL = [...READING, 'submit_jobs', 'cancel_jobs'];
const OPERATORS = [...ALL, 'what_if'];

beforeAll(async () => {
  service = await serve(home);
  for (const name of ['ada', 'bob'] as const) {
    await service.cli('users', 'add', name);
    keys[name] = (await service.cli('keys', 'add', 'mcp', '--user', name)).stdout.trim();
    expect(keys[name]).toMatch(/^\S{20,}$/);
  }
});
afterAll(async () => {
  await Promise.all(clients.map((client) => client.close()));
  await endAll();
  rmSync(home, { recursive: true, force: true });
});

describe('over standard input and output', () => {
  it('reads, and lists no tool that writes unless it was started to write', async () => {
    const client = await stdio([]);
    expect(await names(client)).toEqual(READING);
    const before = await jobsThere();
    for (const name of ['submit_jobs', 'cancel_jobs'])
      expect(await errorOf(client, name, { command: 'true' })).toContain(`there is no tool "${name}"`);
    expect(await jobsThere()).toEqual(before);
  });

  it('lists them for a key that may write, and for no other', async () => {
    expect(await names(await stdio(['--allow-writes'], { SWITCHYARD_KEY: keys.ada }))).toEqual(ALL);
    expect(await names(await stdio(['--allow-writes']))).toEqual(OPERATORS);
    expect(OPERATORS.length).toBeLessThanOrEqual(12);
    expect(await names(await stdio(['--allow-writes'], { SWITCHYARD_KEY: 'swy_unknown' }))).toEqual(READING);
  });

  it('submits what was planned, by its digest, and the same digest gives the same job', async () => {
    const client = await stdio(['--allow-writes'], { SWITCHYARD_KEY: keys.ada });
    const before = (await jobsThere()).length;
    const input = { command: 'echo', arguments: ['hello'], name: 'planned' };
    const result = await call(client, 'submit_jobs', input);
    const { plan } = dataOf(result);
    expect(plan).toMatchObject({ action: 'submit', jobs: 1, job: input, likely: { site: 'local' } });
    expect((await jobsThere()).length).toBe(before);
    const { digest } = result.structuredContent;

    // Another plan, a digest that nobody made, and other arguments do nothing.
    const again = (await call(client, 'submit_jobs', input)).structuredContent;
    expect(again.digest).not.toBe(digest);
    for (const [confirm, changes] of [
      ['0'.repeat(32), {}],
      [digest, { arguments: ['others'] }],
      [digest, { array: '1-2' }],
    ] as const)
      expect(await errorOf(client, 'submit_jobs', { ...input, ...changes, confirm })).toMatch(/^confirm: /);
    expect(await errorOf(client, 'cancel_jobs', { mine: true, confirm: digest })).toMatch(/^confirm: /);
    // Nor does it in another process.
    const other = await stdio(['--allow-writes'], { SWITCHYARD_KEY: keys.ada });
    expect(await errorOf(other, 'submit_jobs', { ...input, confirm: digest })).toMatch(/^confirm: /);
    expect((await jobsThere()).length).toBe(before);

    const first = await ask(client, 'submit_jobs', { ...input, confirm: digest });
    expect(first).toMatchObject({ submitted: 1, repeated: false });
    const second = await ask(client, 'submit_jobs', { ...input, confirm: digest });
    expect(second).toEqual({ ...first, repeated: true });
    expect((await jobsThere()).length).toBe(before + 1);
    const { job } = await ask(client, 'wait_for_job', { id: first.jobIds[0] });
    expect(job).toMatchObject({ state: 'COMPLETED', exitCode: 0 });
    expect(await ask(client, 'read_output', { id: first.jobIds[0] })).toMatchObject({ text: 'hello\n' });
  });

  it('says what jobs cost at most, and plans none that could cost more than is allowed', async () => {
    const client = await stdio(['--allow-writes'], { SWITCHYARD_KEY: keys.ada });
    const job = { command: 'true', tasks: 1, cpusPerTask: 2, runTimeLimitS: 5_400 };
    expect(await ask(client, 'estimate_start', job)).toMatchObject({ cpuHoursAtMost: 3 });
    const array = { ...job, array: '1-4' };
    const { plan } = await ask(client, 'submit_jobs', { ...array, maxCpuHours: 12 });
    expect(plan).toMatchObject({ jobs: 4, cpuHoursAtMost: 12, likely: { cpuHoursAtMost: 3 } });
    expect(await errorOf(client, 'submit_jobs', { ...array, maxCpuHours: 11.9 })).toBe(
      'maxCpuHours: 11.9 is too low; at their limit, 4 jobs with 3 CPU hours each use 12',
    );
    for (const open of [{ runTimeLimitS: undefined }, { exclusive: 'MACHINE' }])
      expect(await errorOf(client, 'submit_jobs', { ...job, ...open, maxCpuHours: 99 })).toMatch(
        /^maxCpuHours: needs runTimeLimitS/,
      );
    const parts = { command: 'true', runTimeLimitS: 3_600, parts: [{ cpusPerTask: 1 }, { tasks: 1 }] };
    expect(await ask(client, 'estimate_start', parts)).toMatchObject({ cpuHoursAtMost: 2 });
  });

  it('tries another policy on past jobs, for operators, and changes none', async () => {
    const client = await stdio(['--allow-writes']);
    await service.cli('submit', '--wait', '--', 'true');
    const before = await ask(client, 'what_if');
    expect(before).toMatchObject({ version: expect.any(Number), document: expect.any(Object) });
    const tried = await ask(client, 'what_if', {
      changes: { local: { kind: 'fcfs' } },
      acceptDistance: true,
    });
    expect(tried).toMatchObject({
      ...{ state: 'DONE', policyVersion: before.version },
      all: { baseline: { ended: tried.jobs }, candidate: { ended: tried.jobs } },
    });
    expect(tried.jobs).toBeGreaterThan(0);
    expect(await ask(client, 'what_if', { simulation: tried.id })).toEqual(tried);
    expect(await ask(client, 'what_if')).toEqual(before);
    expect(await errorOf(client, 'what_if', { changes: { local: { kind: 'esay' } } })).toMatch(/esay/);
    const ada = await stdio(['--allow-writes'], { SWITCHYARD_KEY: keys.ada });
    expect(await errorOf(ada, 'what_if', { changes: {} })).toMatch(/FORBIDDEN|not allowed|OPERATOR/);
  });

  it('cancels the jobs that the plan named, and none that match since', async () => {
    const client = await stdio(['--allow-writes'], { SWITCHYARD_KEY: keys.ada });
    const submit = async (groupName: string, array: string): Promise<Data> => {
      const input = {
        command: 'sleep',
        arguments: ['600'],
        groupName,
        array,
        notBefore: '2100-01-01T00:00:00Z',
      };
      const { digest } = (await call(client, 'submit_jobs', input)).structuredContent;
      return ask(client, 'submit_jobs', { ...input, confirm: digest });
    };
    const { jobIds } = await submit('doomed', '1-3');
    const input = { groupName: 'doomed' };
    const result = await call(client, 'cancel_jobs', input);
    const { plan } = dataOf(result);
    expect([plan.jobs, plan.ids.toSorted()]).toEqual([3, jobIds.toSorted()]);
    const spared = await submit('doomed', '4');
    const { digest } = result.structuredContent;
    const done = await ask(client, 'cancel_jobs', { ...input, confirm: digest });
    expect(done.jobIds.toSorted()).toEqual(jobIds.toSorted());
    expect((await ask(client, 'find_jobs', { id: spared.jobIds[0] })).state).not.toMatch(/^CANCEL/);
    expect(await errorOf(client, 'cancel_jobs')).toMatch(/^ids: is missing/);
  });

  it.each([
    ['find_jobs', { states: ['RUNING'] }, 'states.0: "RUNING" is not accepted; accepted: QUEUED, '],
    [
      'find_jobs',
      { state: ['RUNNING'] },
      'state: unknown field; did you mean states?; accepted: id, states, ',
    ],
    ['find_jobs', { site: 'locl' }, 'site: "locl" is not accepted; accepted: the name or id of a site'],
    [
      'find_jobs',
      { endedAfter: 'yesterday' },
      'endedAfter: "yesterday" is not accepted; accepted: a time with its zone',
    ],
    ['read_output', {}, 'id: is missing'],
    ['find_jobs', { id: 'job_1', mine: true }, 'mine: is not accepted together with id'],
    ['find_jobs', { id: 12 }, 'id: 12 is not accepted; accepted: a text'],
    ['find_jobs', { id: 'job_999999' }, 'id: there is no job job_999999'],
    ['wait_for_job', { id: 'job_1', seconds: 1000 }, 'seconds: 1000 is not accepted; accepted: at most 50'],
    [
      'estimate_start',
      { command: 'true', tasks: 1.5 },
      'tasks: 1.5 is not accepted; accepted: a whole number',
    ],
    ['estimate_start', { command: 'true', estimateS: -1 }, 'estimateS: -1'],
    ['usage', { by: 'MOON' }, 'by: "MOON" is not accepted; accepted: USER, SITE, APPLICATION'],
    ['find_site', {}, 'there is no tool "find_site"; did you mean find_sites?'],
  ])('%s %j: %s', async (name, input, said) => {
    expect(await errorOf(await anyClient(), name, input)).toContain(said);
  });

  it('says of each call that the service does not answer, and goes on', async () => {
    const client = await stdio(['--allow-writes'], { SWITCHYARD_URL: 'http://127.0.0.1:1/graphql' });
    expect(await names(client)).toEqual(READING);
    for (let i = 0; i < 2; i++)
      expect(await errorOf(client, 'find_sites')).toMatch(
        /^no response from http:\/\/127\.0\.0\.1:1\/graphql/,
      );
    expect((await ask(client, 'search_docs', { query: 'backfilling' })).sections.length).toBeGreaterThan(0);
  });

  it('ends when its input is closed', async () => {
    expect(await run(['mcp'], { SWITCHYARD_HOME: home })).toEqual({ code: 0, stdout: '', stderr: '' });
  });
});

/** One that reads. */
let reading: Promise<Client> | undefined;
const anyClient = (): Promise<Client> => (reading ??= stdio([]));

describe('over HTTP', () => {
  let url: URL;
  beforeAll(async () => {
    const process = launch(['mcp', '--http', '--port', '0', '--allow-writes'], {
      SWITCHYARD_HOME: home,
      SWITCHYARD_URL: service.url,
    });
    url = new URL((await process.printed(/served at (\S+)\n/))[1]!);
  });

  async function http(key: string): Promise<Client> {
    const client = newClient();
    await client.connect(
      new StreamableHTTPClientTransport(url, {
        requestInit: { headers: { authorization: `Bearer ${key}` } },
      }),
    );
    return client;
  }

  const post = (headers: Record<string, string>, body: unknown): Promise<number> =>
    new Promise((resolve, reject) => {
      const accept = 'application/json, text/event-stream';
      const sent = request(url, {
        method: 'POST',
        headers: { 'content-type': 'application/json', accept, ...headers },
      });
      sent.on('response', (response) => resolve(response.resume().statusCode!)).on('error', reject);
      sent.end(JSON.stringify(body));
    });
  const LIST = { jsonrpc: '2.0', id: 1, method: 'tools/list' };

  it('asks the API with the key of each caller, and has none of its own', async () => {
    const [ada, bob, nobody] = [await http(keys.ada), await http(keys.bob), await http('swy_unknown')];
    expect(await names(ada)).toEqual(ALL);
    expect(await names(nobody)).toEqual(READING);
    expect(await errorOf(nobody, 'find_jobs')).toContain('UNAUTHENTICATED');
    expect(await post({}, LIST)).toBe(401);

    const input = { command: 'true', name: 'of ada' };
    const { digest } = (await call(ada, 'submit_jobs', input)).structuredContent;
    // A plan is its maker's.
    expect(await errorOf(bob, 'submit_jobs', { ...input, confirm: digest })).toMatch(/^confirm: /);
    const { jobIds } = await ask(ada, 'submit_jobs', { ...input, confirm: digest });
    expect(await errorOf(bob, 'find_jobs', { id: jobIds[0] })).toContain('there is no job');
    expect((await ask(ada, 'find_jobs', { id: jobIds[0] })).user).toBe('ada');
  });

  it('refuses what pages of other servers could send, lists of messages, and other methods', async () => {
    const authorization = `Bearer ${keys.ada}`;
    expect(await post({ authorization }, LIST)).toBe(200);
    expect(await post({ authorization, host: 'evil.example' }, LIST)).toBe(403);
    expect(await post({ authorization, origin: 'http://evil.example' }, LIST)).toBe(403);
    expect(await post({ authorization, origin: 'http://localhost:3000' }, LIST)).toBe(200);
    expect(await post({ authorization }, [LIST, LIST])).toBe(400);
    expect((await fetch(url, { headers: { authorization } })).status).toBe(405);
  });

  it('listens beyond the loopback only with the names of the server', async () => {
    const { code, stderr } = await run(['mcp', '--http', '--port', '0', '--host', '0.0.0.0'], {
      SWITCHYARD_HOME: home,
    });
    expect([code, stderr]).toEqual([2, expect.stringContaining('--allowed-host')]);
  });
});

describe('twenty questions', () => {
  it.each(QUESTIONS)('$question', async ({ prepare, steps, expected }) => {
    const client = await anyClient();
    const prepared = await prepare?.(service);
    let answered: Data | undefined;
    expect(steps.length).toBeLessThanOrEqual(3);
    for (const step of steps) {
      const { name, input } = step(prepared, answered!);
      answered = await ask(client, name, input);
    }
    expect(answered).toMatchObject(expected);
  });
  it('are twenty', () => expect(QUESTIONS).toHaveLength(20));
});

describe('fifty injections', () => {
  it('arrive as data only, and cause no write', async () => {
    expect(INJECTIONS).toHaveLength(50);
    const client = await stdio(['--allow-writes'], { SWITCHYARD_KEY: keys.ada });
    const said = INJECTIONS.map((text) => text.slice(0, 190));
    const ids: string[] = [];
    for (let at = 0; at < said.length; at += 5) {
      const [name, group, application, project, output] = said.slice(at, at + 5) as [
        string,
        string,
        string,
        string,
        string,
      ];
      const options = ['--name', name, '--group', group, '--application', application, '--project', project];
      const { code, stdout, stderr } = await run(
        [
          'submit',
          ...options,
          '--wait',
          '--',
          'sh',
          '-c',
          'printf %s "$1"; printf %s "$1" >&2; exit 1',
          'sh',
          output,
        ],
        { SWITCHYARD_HOME: home, SWITCHYARD_URL: service.url, SWITCHYARD_KEY: keys.ada },
      );
      expect([code, stderr]).toEqual([1, expect.any(String)]);
      ids.push(stdout.trim());
    }
    const before = await jobsThere();
    const results: Result[] = [];
    for (const id of ids)
      for (const [name, input] of [
        ...[
          ['find_jobs', {}],
          ['read_output', {}],
          ['read_output', { stream: 'STDERR' }],
          ['explain_wait', {}],
        ],
        ...[
          ['explain_decision', {}],
          ['wait_for_job', {}],
        ],
      ] as const)
        results.push(await call(client, name as string, { id, ...(input as object) }));
    results.push(
      await call(client, 'find_jobs', { mine: true }),
      await call(client, 'usage', { by: 'APPLICATION' }),
    );
    for (const text of said) {
      // In arguments and in errors too; as a digest, it confirms nothing.
      results.push(await call(client, 'search_docs', { query: text }));
      results.push(await call(client, 'find_jobs', { site: text }));
      results.push(await call(client, 'cancel_jobs', { mine: true, confirm: text.slice(0, 64) }));
    }
    const data = JSON.stringify(results.map(dataOf));
    // Each was there to be told.
    for (const text of said) expect(data).toContain(/[A-Za-z]{5,}/.exec(text)![0]);
    expect(await jobsThere()).toEqual(before);
  });
});
