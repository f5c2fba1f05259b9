/** Several agents at one site, each with a directory of its own in the place of a host; through the API, the engine and Postgres. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { beforeAll, expect, it } from 'vitest';
import { Agent, type AgentOptions } from '../../src/agent/agent.js';
import type { ProcessRunner } from '../../src/agent/process/runner.js';
import { DEFAULT_POLICY } from '../../src/core/policy.js';
import { withApi } from '../api/support/api.js';
import { withEngine } from '../api/support/engine.js';
import { openRunner, PATIENCE_MS, temporaryDirectory } from './support.js';

const api = withApi();
withEngine(api);
let site = '';
let key = '';

beforeAll(async () => {
  const timers = { ...DEFAULT_POLICY.timers, agentSilentS: 3, lostAfterS: 86_400, cycleS: 1 };
  const expectedVersion = (await api.must<{ policy: { version: number } }>('{ policy { version } }')).policy
    .version;
  await api.must('mutation ($input: UpdatePolicyInput!) { updatePolicy(input: $input) { version } }', {
    input: { document: { ...DEFAULT_POLICY, timers }, expectedVersion, reason: 'the test' },
  });
  const answer = await api.must<{ registerSite: { id: string } }>(
    'mutation { registerSite(input: { name: "here" }) { id } }',
  );
  site = answer.registerSite.id;
  key = (await api.user('AGENT', 'agent', site)).key;
});

/** What an agent's log says. */
const logs: string[] = [];
const log = {
  info: () => {},
  warn: (_: object, message: string) => logs.push(message),
  error: (_: object, message: string) => logs.push(message),
} as unknown as AgentOptions['log'];

const measured = { cpus: 2, memoryMb: 1000, os: 'linux', architecture: 'x64', benchmark: 100, gpus: [] };

/** An agent for a machine, on a host of its own: a directory. */
async function startAgent(
  machine: string,
  options: Partial<AgentOptions> = {},
  given?: ProcessRunner,
): Promise<Agent> {
  const runner = given ?? (await openRunner());
  const agent = new Agent({
    ...{ url: api.url, key, site: 'here', runner, log, heartbeatMs: 200 },
    identity: runner.id,
    host: `host of ${machine}`,
    machines: [{ name: machine, measured }],
    ...options,
  });
  agent.start();
  return agent;
}

interface MachineAnswer {
  name: string;
  silent: boolean;
  problem: string | null;
  agent: { host: string } | null;
}

interface JobAnswer {
  id: string;
  state: string;
  cause: string | null;
  epoch: number;
  runs: { epoch: number; cause: string | null; allocations: { machine: { name: string } }[] }[];
}

async function when<T>(ask: () => Promise<T>, ready: (answer: T) => boolean): Promise<T> {
  for (const deadline = Date.now() + PATIENCE_MS; ; await sleep(50)) {
    const answer = await ask();
    if (ready(answer)) return answer;
    if (Date.now() > deadline)
      throw new Error(`waited in vain: ${JSON.stringify(answer)}; ${logs.join('; ')}`);
  }
}

const machines = async (): Promise<MachineAnswer[]> => {
  const document =
    'query ($site: ID) { machines(site: $site) { nodes { name silent problem agent { host } } } }';
  return (await api.must<{ machines: { nodes: MachineAnswer[] } }>(document, { site })).machines.nodes;
};
const served =
  (...names: string[]) =>
  (all: MachineAnswer[]): boolean =>
    names.every((name) => all.some((one) => one.name === name && !one.silent && one.problem === null));

const jobsOf = async (ids: string[]): Promise<JobAnswer[]> => {
  const document = `query ($ids: [ID!]!) { jobs(filter: { ids: $ids }, first: 100) { nodes { id state cause epoch
    runs { epoch cause allocations { machine { name } } } } } }`;
  return (await api.must<{ jobs: { nodes: JobAnswer[] } }>(document, { ids })).jobs.nodes;
};
const over = (jobs: JobAnswer[]): boolean =>
  jobs.every(({ state }) => ['COMPLETED', 'FAILED', 'CANCELLED'].includes(state));

async function submit(jobs: object[]): Promise<string[]> {
  const { submitJobs } = await api.must<{ submitJobs: { jobIds: string[] } }>(
    'mutation ($jobs: [JobInput!]!) { submitJobs(input: { jobs: $jobs }) { jobIds } }',
    { jobs },
  );
  return submitJobs.jobIds;
}

const shell = (text: string, rest: object = {}) => ({
  command: 'sh',
  arguments: ['-c', text],
  estimateS: 1,
  ...rest,
});

it('three agents, their machines registered by themselves: each job runs once, on the machine it was given', async () => {
  const agents = await Promise.all(['a', 'b', 'c'].map((name) => startAgent(name)));
  await when(machines, served('a', 'b', 'c'));
  const dir = temporaryDirectory();
  const ids = await submit(Array.from({ length: 24 }, (_, i) => shell(`echo x >> ${dir}/${i}; sleep 0.3`)));
  const jobs = await when(() => jobsOf(ids), over);
  expect(jobs.map(({ state, epoch }) => [state, epoch])).toEqual(ids.map(() => ['COMPLETED', 1]));
  const used = new Set(jobs.flatMap(({ runs }) => runs[0]!.allocations.map(({ machine }) => machine.name)));
  expect([...used].sort()).toEqual(['a', 'b', 'c']);
  for (let i = 0; i < ids.length; i++) expect(readFileSync(join(dir, String(i)), 'utf8')).toBe('x\n');
  for (const agent of agents) await agent.stop();
});

it('a second agent for a machine is refused at both ends and starts nothing; it takes over when the first is gone, and what that had is lost', async () => {
  const runner = await openRunner();
  const first = await startAgent('one', {}, runner);
  await when(machines, served('one'));
  // Nothing goes to the machines of others: their agents have gone.
  await when(machines, (all) => all.every(({ name, silent }) => silent === (name !== 'one')));
  logs.length = 0;
  const second = await startAgent('one', { host: 'elsewhere' });
  await when(
    async () => logs,
    (said) => said.some((line) => line.includes('refused machine one')),
  );
  expect(api.log.join('\n')).toContain('machine one is served by another agent');
  const dir = temporaryDirectory();
  const ids = await submit(Array.from({ length: 6 }, (_, i) => shell(`echo x >> ${dir}/${i}`)));
  await when(() => jobsOf(ids), over);
  for (let i = 0; i < ids.length; i++) expect(readFileSync(join(dir, String(i)), 'utf8')).toBe('x\n');

  // The first is cut off while something runs; the run outlives it.
  const [once, again] = await submit([
    shell(`echo x >> ${dir}/once; sleep 1000`, { restartable: false }),
    shell(`echo x >> ${dir}/again; [ $SWITCHYARD_EPOCH = 2 ] || sleep 1000`),
  ]);
  await when(async () => ['once', 'again'].every((name) => existsSync(join(dir, name))), Boolean);
  await first.stop();
  const jobs = await when(() => jobsOf([once!, again!]), over);
  const byId = new Map(jobs.map((job) => [job.id, job]));
  expect(byId.get(once!)).toMatchObject({ state: 'FAILED', cause: 'LOST', epoch: 1 });
  expect(byId.get(again!)).toMatchObject({ state: 'COMPLETED', epoch: 2 });
  expect(readFileSync(join(dir, 'once'), 'utf8')).toBe('x\n');
  expect((await machines()).find(({ name }) => name === 'one')?.agent?.host).toBe('elsewhere');

  // It comes back after its runs were given up: it is refused, and stops them.
  logs.length = 0;
  expect(runner.runs()).toHaveLength(2);
  const returned = await startAgent('one', {}, runner);
  await when(
    async () => runner.runs(),
    (runs) => runs.length === 0,
  );
  expect(logs.join()).toContain('refused machine one');
  expect(await jobsOf([once!, again!])).toEqual(jobs);
  await returned.stop();
  await second.stop();
});

it('an agent that says that its host is unfit gets no jobs until it is', async () => {
  let problem: string | null = 'the scratch disk is gone';
  const agent = await startAgent('sick', { problem: () => problem });
  const [machine] = await when(
    async () => (await machines()).filter(({ name }) => name === 'sick'),
    (found) => found.length > 0,
  );
  expect(machine).toMatchObject({ problem, silent: false });
  problem = null;
  await when(machines, served('sick'));
  await agent.stop();
});
