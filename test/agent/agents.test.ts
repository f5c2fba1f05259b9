/** Several agents at one site, each with a directory of its own in the place of a host; through the API, the engine and Postgres. */
import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { Agent, type AgentOptions } from '../../src/agent/agent.js';
import { ProcessRunner } from '../../src/agent/process/runner.js';
import { Client } from '../../src/client/index.js';
import { DEFAULT_POLICY } from '../../src/core/policy.js';
import { withApi } from '../api/support/api.js';
import { withEngine } from '../api/support/engine.js';
import { PATIENCE_MS } from '../support/patience.js';
import { openRunner, temporaryDirectory, until } from './support.js';

const api = withApi();
withEngine(api);
let site = '';
let key = '';

beforeAll(async () => {
  const timers = { ...DEFAULT_POLICY.timers, agentSilentS: 3, lostAfterS: 86_400, cycleS: 1 };
  const expectedVersion = (await api.must<{ policy: { version: number } }>('{ policy { version } }')).policy
    .version;
  await api.must(
    'mutation ($input: UpdatePolicyInput!) { updatePolicy(input: $input) { policy { version } } }',
    {
      input: { document: { ...DEFAULT_POLICY, timers }, expectedVersion, reason: 'the test' },
    },
  );
  const answer = await api.must<{ createSite: { site: { id: string } } }>(
    'mutation { createSite(input: { name: "here" }) { site { id } } }',
  );
  site = answer.createSite.site.id;
  key = (await api.user('AGENT', 'agent', site)).key;
});

/** What an agent's log says; agents call no more of it than this. */
const logs: string[] = [];
const log = {
  info: () => {},
  warn: (_: object, message: string) => logs.push(message),
  error: (_: object, message: string) => logs.push(message),
} as unknown as AgentOptions['log'];

const measured = {
  cpus: 2,
  memoryMb: 1000,
  os: 'linux',
  architecture: 'x64',
  model: null,
  benchmark: 100,
  gpus: [],
  labels: [],
  devices: [],
};

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
    'query ($site: ID) { machines(siteId: $site) { nodes { name silent problem agent { host } } } }';
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

it('a job is warned before its limit, asked to end there, and killed after its grace', async () => {
  const agent = await startAgent('limited');
  await when(machines, (all) => all.every(({ name, silent }) => silent === (name !== 'limited')));
  await when(machines, served('limited'));
  const text = "trap 'echo warned' USR1; trap 'echo asked' TERM; while :; do sleep 0.02; done";
  const limits = { runTimeLimitS: 3, warnS: 1, warnSignal: 'SIGUSR1', killGraceS: 0.5 };
  const [id] = await submit([shell(text, limits)]);
  await when(() => jobsOf([id!]), over);
  const document = `query ($id: ID!) { job(id: $id) { state cause warnS warnSignal killGraceS output { text } runs { signal } } }`;
  expect(await api.must(document, { id })).toEqual({
    job: {
      ...{ state: 'FAILED', cause: 'RUN_TIME_LIMIT', warnS: 1, warnSignal: 'SIGUSR1', killGraceS: 0.5 },
      ...{ output: { text: 'warned\nasked\n' }, runs: [{ signal: 'SIGKILL' }] },
    },
  });
  await agent.stop();
});

it('what a job writes is followed, and had as bytes, by whoever may see it', async () => {
  const agent = await startAgent('written');
  // Those that have gone get nothing any more.
  await when(machines, (all) => all.every(({ name, silent }) => silent === (name !== 'written')));
  await when(machines, served('written'));
  const end = join(temporaryDirectory(), 'end');
  const [id] = await submit([shell(`printf 'one '; until [ -e ${end} ]; do sleep 0.1; done; printf two`)]);
  const client = new Client({ url: api.url, key: api.adminKey });
  const { signal } = new AbortController();
  const document = `subscription ($id: ID!, $after: String) {
    jobOutput(jobId: $id, after: $after) { cursor start text bytes last } }`;
  const parts: { cursor: string; start: number; text: string; last: boolean }[] = [];
  const cli = spawn(process.execPath, ['bin/switchyard.js', 'job', id!, '--follow', '--stdout'], {
    env: { PATH: process.env.PATH, SWITCHYARD_URL: api.url, SWITCHYARD_KEY: api.adminKey },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let printed = '';
  cli.stdout!.on('data', (chunk: Buffer) => {
    printed += chunk.toString();
  });
  const left = new Promise((done) => cli.on('close', done));
  for await (const { jobOutput } of client.subscribe<{ jobOutput: (typeof parts)[number] }>(
    document,
    { id },
    signal,
  )) {
    parts.push(jobOutput);
    // Both have the first before there is a second.
    if (parts.length === 1)
      await when(
        async () => printed,
        (text) => text === 'one ',
      ).then(() => writeFileSync(end, ''));
  }
  expect(parts.map(({ start, text, last }) => [start, text, last])).toEqual([
    [0, 'one ', false],
    [4, 'two', false],
    [7, '', true],
  ]);
  // Behind a cursor, what follows it.
  const rest: string[] = [];
  const after = { id, after: parts[0]!.cursor };
  for await (const { jobOutput } of client.subscribe<{ jobOutput: { text: string } }>(
    document,
    after,
    signal,
  ))
    rest.push(jobOutput.text);
  expect(rest.join('')).toBe('two');
  expect(await left).toBe(0);
  expect(printed).toBe('one two');

  const get = async (query: string, headers: object = {}, key = api.adminKey) => {
    const url = api.url.replace(/graphql$/, `jobs/${id}/output${query}`);
    const answer = await fetch(url, { headers: { authorization: `Bearer ${key}`, ...headers } });
    return [answer.status, answer.headers.get('content-range'), await answer.text()];
  };
  expect(await get('')).toEqual([200, null, 'one two']);
  expect(await get('?stream=stderr')).toEqual([200, null, '']);
  expect(await get('', { range: 'bytes=2-4' })).toEqual([206, 'bytes 2-4/7', 'e t']);
  expect(await get('', { range: 'bytes=-3' })).toEqual([206, 'bytes 4-6/7', 'two']);
  expect(await get('', { range: 'bytes=5-' })).toEqual([206, 'bytes 5-6/7', 'wo']);
  expect(await get('', { range: 'bytes=7-' })).toEqual([416, 'bytes */7', '']);
  expect((await get('?task=1'))[2]).toBe('');
  for (const wrong of ['?stream=no', '?epoch=0', '?task=-1', '?task=x'])
    expect((await get(wrong))[0]).toBe(400);
  const stranger = await api.user('USER', 'stranger');
  expect((await get('', {}, stranger.key))[0]).toBe(404);
  await agent.stop();
});

describe('jobs of several tasks', () => {
  interface TaskAnswer {
    index: number;
    machine: { name: string };
    state: string;
    exitCode: number | null;
    cause: string | null;
    startedAt: string | null;
    cpuS: number | null;
    output: { text: string } | null;
  }
  const tasksOf = async (id: string): Promise<TaskAnswer[]> => {
    const document = `query ($id: ID!) { job(id: $id) { runs { tasks { index machine { name } state exitCode cause startedAt cpuS
      output { text } } } } }`;
    const { job } = await api.must<{ job: { runs: { tasks: TaskAnswer[] }[] } }>(document, { id });
    return job.runs.at(-1)?.tasks ?? [];
  };
  const one = async (id: string): Promise<JobAnswer> => (await jobsOf([id]))[0]!;
  const ended = (id: string): Promise<JobAnswer> =>
    when(
      () => one(id),
      (job) => over([job]),
    );
  /** Machines of two CPUs: a job of three tasks that need two is on all of them. */
  const NAMES = ['t1', 't2', 't3'];
  const wide = { tasks: 3, cpusPerTask: 2 };
  const graceMs = 100;
  const agents: Agent[] = [];
  const runners: ProcessRunner[] = [];
  const dirs: string[] = [];
  beforeAll(async () => {
    for (const name of NAMES) {
      const stateDir = mkdtempSync(join(tmpdir(), 'switchyard-agent-'));
      const runner = await ProcessRunner.open({ stateDir });
      dirs.push(stateDir);
      runners.push(runner);
      agents.push(await startAgent(name, { graceMs }, runner));
    }
    // Others that have gone get nothing.
    await when(machines, (all) => all.every(({ name, silent }) => silent !== NAMES.includes(name)));
  });
  afterAll(async () => {
    for (const agent of agents) await agent.stop();
    for (const runner of runners) {
      for (const run of runner.runs()) runner.cancel(run, 0);
      await until(() => runner.runs().length === 0, 'the runs to end');
      runner.close();
    }
    for (const dir of dirs) rmSync(dir, { recursive: true, force: true, maxRetries: 5 });
  });
  const allRun = (id: string, count = 3): Promise<TaskAnswer[]> =>
    when(
      () => tasksOf(id),
      (tasks) => tasks.length === count && tasks.every(({ state }) => state === 'RUNNING'),
    );

  it('are one record: each task is on its machine, and finds its index and the hosts', async () => {
    const told = [
      'SWITCHYARD_TASK_INDEX',
      'SWITCHYARD_TASKS',
      'RANK',
      'WORLD_SIZE',
      'LOCAL_RANK',
      'NODE_RANK',
      'MASTER_ADDR',
      'PMI_SIZE',
    ];
    const text = `echo ${told.map((name) => `$${name}`).join(' ')}; paste -sd ' ' $SWITCHYARD_HOSTFILE; echo $MASTER_PORT`;
    const [id] = await submit([shell(text, wide)]);
    expect(await ended(id!)).toMatchObject({ state: 'COMPLETED', cause: 'EXITED_ZERO', epoch: 1 });
    const tasks = await tasksOf(id!);
    const names = tasks.map(({ machine }) => machine.name);
    expect([...names].sort()).toEqual(NAMES);
    const hosts = names.map((name) => `host of ${name}`).join(' ');
    const ports = new Set<string>();
    for (const [i, task] of tasks.entries()) {
      expect(task).toMatchObject({ index: i, state: 'ENDED', exitCode: 0, cause: 'EXITED_ZERO' });
      expect(task.cpuS).not.toBeNull();
      const [variables, list, port] = task.output!.text.split('\n');
      expect(variables).toBe(`${i} 3 ${i} 3 0 ${i} host of ${names[0]} 3`);
      expect(list).toBe(hosts);
      ports.add(port!);
    }
    expect(ports.size).toBe(1);
  });

  it('that are of several parts are each on a machine as its part asks, and find their part', async () => {
    const told = ['PART', 'PARTS', 'PART_TASKS', 'PART_TASK_INDEX', 'TASK_INDEX', 'TASKS', 'CPUS_PER_TASK'];
    const variables = told.map((name) => `$SWITCHYARD_${name}`).join(' ');
    const machinesOf = [0, 1, 2].map((part) => `$SWITCHYARD_PART_MACHINES_${part}`).join(' ');
    const text = `echo ${variables} $RANK $WORLD_SIZE $SWITCHYARD_MEMORY_MB_PER_TASK; echo ${machinesOf}; wc -l < $SWITCHYARD_HOSTFILE`;
    const parts = [{ tasks: 2, cpusPerTask: 2 }, { memoryMbPerTask: 300 }, { memoryMbPerTask: 200 }];
    const [id] = await submit([shell(text, { parts })]);
    expect(await ended(id!)).toMatchObject({ state: 'COMPLETED', cause: 'EXITED_ZERO', epoch: 1 });
    const tasks = await tasksOf(id!);
    const names = tasks.map(({ machine }) => machine.name);
    // The last two, of a CPU each, share the third machine.
    expect([...new Set(names)].sort()).toEqual(NAMES);
    expect(names[3]).toBe(names[2]);
    const shared = names[2];
    expect(tasks.map(({ output }) => output!.text.trim().split('\n'))).toEqual(
      ['0 3 2 0 0 4 2 0 4 0', '0 3 2 1 1 4 2 1 4 0', '1 3 1 0 2 4 1 2 4 300', '2 3 1 0 3 4 1 3 4 200'].map(
        (own) => [own, `${names[0]}:1,${names[1]}:1 ${shared}:1 ${shared}:1`, '4'],
      ),
    );
    const { job } = await api.must<{ job: { runs: { allocations: object[] }[] } }>(
      'query ($id: ID!) { job(id: $id) { runs { allocations { tasks machine { name } } } } }',
      { id },
    );
    expect(job.runs[0]!.allocations).toEqual([...names].map((name) => ({ tasks: 1, machine: { name } })));
  });

  it('are ended when one of their tasks fails, unless they are to go on', async () => {
    const fails = '[ $SWITCHYARD_TASK_INDEX != 1 ] || exit 7';
    const [id] = await submit([shell(`${fails}; echo begun; sleep 1000`, wide)]);
    expect(await ended(id!)).toMatchObject({ state: 'FAILED', cause: 'EXITED_NONZERO' });
    const causes = async (of: string) => (await tasksOf(of)).map(({ cause, exitCode }) => [cause, exitCode]);
    expect((await causes(id!))[1]).toEqual(['EXITED_NONZERO', 7]);
    for (const i of [0, 2]) expect((await tasksOf(id!))[i]!.cause).toBe('OTHER_TASK_FAILED');
    const [other] = await submit([shell(`${fails}; echo on`, { ...wide, onTaskFailure: 'CONTINUE' })]);
    expect(await ended(other!)).toMatchObject({ state: 'FAILED', cause: 'EXITED_NONZERO' });
    expect(await causes(other!)).toEqual([
      ['EXITED_ZERO', 0],
      ['EXITED_NONZERO', 7],
      ['EXITED_ZERO', 0],
    ]);
  });

  it('are cancelled as one', async () => {
    const [id] = await submit([shell('sleep 1000', wide)]);
    await allRun(id!);
    await api.must('mutation ($id: ID!) { cancelJobs(input: { selection: { ids: [$id] } }) { jobIds } }', {
      id,
    });
    expect(await ended(id!)).toMatchObject({ state: 'CANCELLED', epoch: 1 });
    expect((await tasksOf(id!)).map(({ cause }) => cause)).toEqual(NAMES.map(() => 'CANCELLED_BY_USER'));
  });

  it('are tried again as a whole when a machine cannot start a task, after what has begun elsewhere has ended', async () => {
    const stateDir = temporaryDirectory();
    const broken = await openRunner({ stateDir });
    // Nothing can be started there, whatever the job.
    rmSync(join(stateDir, 'slots'), { recursive: true });
    writeFileSync(join(stateDir, 'slots'), '');
    const fourth = await startAgent('t4', { graceMs }, broken);
    await when(machines, served(...NAMES, 't4'));
    const dir = temporaryDirectory();
    // Fails where its predecessor still runs.
    const mine = `${dir}/$SWITCHYARD_TASK_INDEX`;
    const text = `mkdir ${mine} || exit 1; trap 'rmdir ${mine}; exit 1' TERM; [ $SWITCHYARD_EPOCH = 1 ] && { sleep 1000 & wait; }; rmdir ${mine}`;
    const [id] = await submit([shell(text, { ...wide, tasks: 4 })]);
    const job = await when(
      () => one(id!),
      ({ runs }) => runs[0]?.cause === 'MACHINE_FAILED',
    );
    expect(job.runs[0]!.allocations).toHaveLength(4);
    expect((await machines()).find(({ name }) => name === 't4')?.problem).toContain('the last launch failed');
    const fifth = await startAgent('t5', { graceMs });
    expect(await ended(id!)).toMatchObject({ state: 'COMPLETED', epoch: 2 });
    await fourth.stop();
    await fifth.stop();
    await when(machines, (all) => all.every(({ name, silent }) => silent !== NAMES.includes(name)));
  });

  it('outlive one of their agents that is killed; its successor goes on with its tasks', async () => {
    const home = temporaryDirectory();
    const start = (): ChildProcess => {
      const args = ['bin/switchyard.js', 'agent', '--site', 'here', '--machines', 't6'];
      const env = {
        ...{ PATH: process.env.PATH, SWITCHYARD_HOME: home, SWITCHYARD_ISOLATION: 'none' },
        ...{ SWITCHYARD_URL: api.url, SWITCHYARD_KEY: key },
      };
      const child = spawn(process.execPath, args, { env, stdio: 'ignore' });
      onTestFinished(() => void child.kill('SIGKILL'));
      return child;
    };
    const first = start();
    await when(machines, served(...NAMES, 't6'));
    const dir = temporaryDirectory();
    const mine = `${dir}/$SWITCHYARD_TASK_INDEX`;
    const text = `echo x >> ${mine}; until [ -e ${dir}/end ]; do sleep 0.1; done; echo $PPID`;
    const [id] = await submit([shell(text, { ...wide, tasks: 4 })]);
    const tasks = await allRun(id!, 4);
    expect(tasks.map(({ machine }) => machine.name)).toContain('t6');
    first.kill('SIGKILL');
    start();
    writeFileSync(join(dir, 'end'), '');
    expect(await ended(id!)).toMatchObject({ state: 'COMPLETED', epoch: 1 });
    for (const i of tasks.keys()) expect(readFileSync(join(dir, String(i)), 'utf8')).toBe('x\n');
  });

  it('are lost when the host of one is, and run again when the tasks elsewhere are over', async () => {
    await when(machines, (all) => all.every(({ name, silent }) => silent !== NAMES.includes(name)));
    const [id] = await submit([shell('[ $SWITCHYARD_EPOCH != 1 ] || sleep 1000', wide)]);
    const tasks = await allRun(id!);
    const lost = NAMES.indexOf(tasks[2]!.machine.name);
    await agents[lost]!.stop();
    // Its machine is taken over by an agent that knows nothing of it.
    const heir = await startAgent(NAMES[lost]!, { graceMs });
    const job = await ended(id!);
    await heir.stop();
    expect(job).toMatchObject({ state: 'COMPLETED', epoch: 2 });
    expect(job.runs.map(({ cause }) => cause)).toEqual(['LOST', 'EXITED_ZERO']);
  });
});
