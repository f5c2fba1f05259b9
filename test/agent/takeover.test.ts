/** A machine goes from one agent to another on the same host: whatever became of the state of the first, no job runs twice at once. */
import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { beforeAll, expect, it, onTestFinished } from 'vitest';
import { DEFAULT_POLICY } from '../../src/core/policy.js';
import { withApi } from '../api/support/api.js';
import { withEngine } from '../api/support/engine.js';
import { PATIENCE_MS } from '../support/patience.js';
import { lives, temporaryDirectory } from './support.js';

const api = withApi();
withEngine(api);
let site = '';
let key = '';
/** Another service, whose site and machines are called as those of the first. */
const other = withApi();
withEngine(other);
let otherKey = '';

const REGISTER_SITE = 'mutation { createSite(input: { name: "here" }) { site { id } } }';
const REGISTER_MACHINE =
  'mutation ($input: CreateMachineInput!) { createMachine(input: $input) { machine { id } } }';

beforeAll(async () => {
  const timers = { ...DEFAULT_POLICY.timers, agentSilentS: 3, lostAfterS: 86_400, cycleS: 1 };
  for (const service of [api, other]) {
    const { policy } = await service.must<{ policy: { version: number } }>('{ policy { version } }');
    const document = { ...DEFAULT_POLICY, timers };
    const input = { document, expectedVersion: policy.version, reason: 'the test' };
    await service.must(
      'mutation ($input: UpdatePolicyInput!) { updatePolicy(input: $input) { policy { version } } }',
      {
        input,
      },
    );
  }
  site = (await api.must<{ createSite: { site: { id: string } } }>(REGISTER_SITE)).createSite.site.id;
  key = (await api.user('AGENT', 'agent', site)).key;
  const { createSite } = await other.must<{ createSite: { site: { id: string } } }>(REGISTER_SITE);
  otherKey = (await other.user('AGENT', 'agent', createSite.site.id)).key;
  await other.must(REGISTER_MACHINE, {
    input: { siteId: createSite.site.id, name: 'twin', cpus: 1, memoryMb: 100, maxTasks: 3 },
  });
});

interface Started {
  child: ChildProcess;
  /** What it has logged. */
  said(): string;
  kill(): Promise<void>;
}

/** An agent as a process of its own. */
function startAgent(home: string, machine: string, service = { url: api.url, key }): Started {
  const args = ['bin/switchyard.js', 'agent', '--site', 'here', '--machines', machine];
  const env = {
    ...{
      PATH: process.env.PATH,
      SWITCHYARD_HOME: home,
      SWITCHYARD_ISOLATION: 'none',
      AGENT_HEARTBEAT_S: '1',
    },
    ...{ SWITCHYARD_URL: service.url, SWITCHYARD_KEY: service.key },
  };
  const child = spawn(process.execPath, args, { env, stdio: ['ignore', 'pipe', 'pipe'] });
  const gone = new Promise<void>((resolve) => child.on('close', () => resolve()));
  let said = '';
  for (const stream of [child.stdout, child.stderr])
    stream!.on('data', (chunk: Buffer) => {
      said += chunk.toString();
    });
  const kill = async (): Promise<void> => {
    child.kill('SIGKILL');
    await gone;
  };
  onTestFinished(kill);
  return { child, said: () => said, kill };
}

async function until<T>(ask: () => Promise<T>, ready: (answer: T) => boolean): Promise<T> {
  for (const deadline = Date.now() + PATIENCE_MS; ; await sleep(100)) {
    const answer = await ask();
    if (ready(answer)) return answer;
    if (Date.now() > deadline) throw new Error(`waited in vain: ${JSON.stringify(answer)}`);
  }
}

interface MachineAnswer {
  name: string;
  silent: boolean;
  problem: string | null;
}

/** It is served, and it alone: what is submitted then goes there. */
const serving = (machine: string) =>
  until(
    async () =>
      (
        await api.must<{ machines: { nodes: MachineAnswer[] } }>(
          'query ($site: ID) { machines(siteId: $site) { nodes { name silent problem } } }',
          { site },
        )
      ).machines.nodes,
    (all) =>
      all.every(({ name, silent, problem }) => (name === machine ? !silent && problem === null : silent)),
  );
const agentProblems = async (): Promise<string> => {
  const { sites } = await api.must<{ sites: { nodes: { agents: { problem: string | null }[] }[] } }>(
    '{ sites { nodes { agents { problem } } } }',
  );
  return sites.nodes.flatMap(({ agents }) => agents.map(({ problem }) => problem ?? '')).join('\n');
};

interface Work {
  dir: string;
  ids: string[];
  pids(): number[];
}

/** Jobs that note who they are, and whether a process of an earlier attempt lives when they begin. The first attempt does not end by itself. */
async function jobsAt(machine: string): Promise<Work> {
  const dir = temporaryDirectory();
  onTestFinished(() => {
    for (const pid of pids()) if (lives(pid)) process.kill(pid, 'SIGKILL');
  });
  const begin = `me=${dir}/$SWITCHYARD_JOB_ID
    for one in $me.*; do
      # One that is dead may still wait to be collected.
      [ -e $one ] && grep -qs '^State:.[^ZX]' /proc/$(cat $one)/status && echo $one >> ${dir}/twice
    done
    echo $$ > $me.$SWITCHYARD_EPOCH.shell
    [ $SWITCHYARD_EPOCH = 1 ] || exit 0`;
  const texts = [
    `${begin}; sleep 1000 & wait`,
    // Leaves the session of its run, and lets go of all that it has inherited but its environment.
    `${begin}; setsid sh -c 'echo $$ > '$me'.1.other; exec 9>&- >/dev/null 2>&1; sleep 1000' & sleep 1000`,
    `${begin}; trap '' TERM; env -i sh -c 'echo $$ > '$me'.1.other; sleep 1000'`,
  ];
  const jobs = texts.map((text) => ({
    ...{ command: 'sh', arguments: ['-c', text], estimateS: 1, memoryMbPerTask: 1 },
  }));
  const { submitJobs } = await api.must<{ submitJobs: { jobIds: string[] } }>(
    'mutation ($jobs: [JobInput!]!) { submitJobs(input: { jobs: $jobs }) { jobIds } }',
    { jobs },
  );
  const marks = (): string[] => readdirSync(dir).filter((name) => name !== 'twice');
  const pids = (): number[] =>
    existsSync(dir) ? marks().map((name) => Number(readFileSync(join(dir, name), 'utf8'))) : [];
  await until(
    async () => pids().filter((pid) => pid > 0).length,
    (n) => n === 5,
  );
  expect(
    marks().every((name) => name.includes('.1.')),
    machine,
  ).toBe(true);
  return { dir, ids: submitJobs.jobIds, pids };
}

/** The agent goes on with all that runs, and ends it when it is cancelled. */
async function expectServed(agent: { said(): string }, { ids, pids }: Work): Promise<void> {
  await until(
    async () => agent.said(),
    (said) => said.includes('agent registered'),
  );
  expect(pids().filter(lives)).toHaveLength(5);
  await api.must('mutation ($ids: [ID!]!) { cancelJobs(input: { selection: { ids: $ids } }) { jobIds } }', {
    ids,
  });
  await until(
    async () => pids().filter(lives),
    (left) => left.length === 0,
  );
}

async function expectEachOnce({ dir, ids, pids }: Work): Promise<void> {
  const jobs = await until(
    async () =>
      (
        await api.must<{ jobs: { nodes: { state: string; epoch: number; runs: { cause: string }[] }[] } }>(
          'query ($ids: [ID!]!) { jobs(filter: { ids: $ids }) { nodes { state epoch runs { cause } } } }',
          { ids },
        )
      ).jobs.nodes,
    (all) => all.every(({ state }) => state === 'COMPLETED'),
  );
  for (const { epoch, runs } of jobs) {
    // An agent that has lost its state may have refused it in between.
    expect(epoch).toBeGreaterThanOrEqual(2);
    expect([runs[0]?.cause, runs.at(-1)?.cause].sort()).toEqual(['EXITED_ZERO', 'LOST']);
  }
  expect(existsSync(join(dir, 'twice')) ? readFileSync(join(dir, 'twice'), 'utf8') : '').toBe('');
  expect(pids().filter(lives)).toEqual([]);
}

/** So that the three jobs of each test are at one machine, and nowhere else. */
const home = async (machine: string): Promise<string> => {
  await api.must(REGISTER_MACHINE, {
    input: { siteId: site, name: machine, cpus: 1, memoryMb: 100, maxTasks: 3 },
  });
  return temporaryDirectory();
};

it('the state of a dead agent was removed: its successor ends what still runs before it is run again', async () => {
  const dir = await home('dead');
  const first = startAgent(dir, 'dead');
  await serving('dead');
  const jobs = await jobsAt('dead');
  await first.kill();
  rmSync(dir, { recursive: true });
  mkdirSync(dir);
  startAgent(dir, 'dead');
  await expectEachOnce(jobs);
});

it('the state of a living agent was removed: it ends its runs and says so, and the next one goes on', async () => {
  const dir = await home('alive');
  const first = startAgent(dir, 'alive');
  await serving('alive');
  const jobs = await jobsAt('alive');
  rmSync(join(dir, 'agent'), { recursive: true });
  await until(
    async () => first.said(),
    (said) => said.includes('the state directory of the agent was removed'),
  );
  await until(
    async () => jobs.pids().filter(lives),
    (left) => left.length === 0,
  );
  // Another one that begins there meanwhile has another identity, and is refused as long as this one lives.
  const second = startAgent(dir, 'alive');
  await until(
    async () => second.said(),
    (said) => said.includes('refused machine alive'),
  );
  await first.kill();
  await expectEachOnce(jobs);
});

it('another identity takes a machine when nobody watches its runs on this host any more, and waits until then', async () => {
  const dir = await home('hung');
  const first = startAgent(dir, 'hung');
  await serving('hung');
  const jobs = await jobsAt('hung');
  first.child.kill('SIGSTOP');
  const second = startAgent(temporaryDirectory(), 'hung');
  await until(agentProblems, (said) => said.includes('runs jobs of the same machine on this host'));
  expect(second.said()).toContain('stop that agent first');
  expect(jobs.pids().filter(lives)).toHaveLength(5);
  await first.kill();
  await expectEachOnce(jobs);
  // The former one comes back with its state: it knows runs that are over by now, and has no say.
  const back = startAgent(dir, 'hung');
  await until(
    async () => back.said(),
    (said) => said.includes('refused machine hung'),
  );
  await second.kill();
});

it.each([
  ['id', (state: string) => rmSync(join(state, 'id')), 1],
  ['reports', (state: string) => rmSync(join(state, 'reports'), { recursive: true }), 2],
  ['slots', (state: string) => rmSync(join(state, 'slots'), { recursive: true }), 2],
])('only its %s are gone: it knows its runs by what is left, or ends them', async (what, remove, epoch) => {
  const machine = `without-${what}`;
  const dir = await home(machine);
  const first = startAgent(dir, machine);
  await serving(machine);
  const jobs = await jobsAt(machine);
  await first.kill();
  remove(join(dir, 'agent'));
  const second = startAgent(dir, machine);
  if (epoch === 2) await expectEachOnce(jobs);
  else {
    await expectServed(second, jobs);
  }
  writeFileSync(join(dir, 'over'), '');
});

it('two services have sites and machines of the same names: the agent of one neither ends nor adopts what runs for the other', async () => {
  const dir = await home('twin');
  const first = startAgent(dir, 'twin');
  await serving('twin');
  const jobs = await jobsAt('twin');
  const ofOther = { url: other.url, key: otherKey };
  const runsThere = async (): Promise<void> => {
    const job = { command: 'true', estimateS: 1, memoryMbPerTask: 1 };
    const { submitJobs } = await other.must<{ submitJobs: { jobIds: string[] } }>(
      'mutation ($job: JobInput!) { submitJobs(input: { jobs: [$job] }) { jobIds } }',
      { job },
    );
    await until(
      async () =>
        (
          await other.must<{ job: { state: string } }>('query ($id: ID!) { job(id: $id) { state } }', {
            id: submitJobs.jobIds[0],
          })
        ).job.state,
      (state) => state === 'COMPLETED',
    );
  };
  // While the agent of the first lives, and when it is dead: each begins with nothing known, and looks for what is left on the host.
  const second = startAgent(temporaryDirectory(), 'twin', ofOther);
  await runsThere();
  expect(jobs.pids().filter(lives)).toHaveLength(5);
  await second.kill();
  await first.kill();
  const third = startAgent(temporaryDirectory(), 'twin', ofOther);
  await runsThere();
  expect(jobs.pids().filter(lives)).toHaveLength(5);
  expect(second.said() + third.said()).not.toContain('on this host');
  // They are still the first's, and go on under it.
  const again = startAgent(dir, 'twin');
  await expectServed(again, jobs);
  await third.kill();
});
