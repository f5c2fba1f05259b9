import { existsSync, readFileSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { GraphQLError } from 'graphql';
import { expect, it, onTestFinished } from 'vitest';
import { Agent, type AgentOptions } from '../../src/agent/agent.js';
import { ProcessRunner } from '../../src/agent/process/runner.js';
import type { Runner } from '../../src/agent/runner.js';
import { SimulatedRunner } from '../../src/agent/simulated.js';
import { startService, type TestService, type WireReport, type WireRun } from './service.js';
import { openRunner, script, temporaryDirectory, until } from './support.js';

const silent = { info: () => {}, warn: () => {}, error: () => {} };

function startAgent(service: TestService, runner: Runner, options: Partial<AgentOptions> = {}): Agent {
  const agent = new Agent({
    url: service.url,
    key: 'good-key',
    site: 'here',
    runner,
    identity: 'agent-1',
    host: 'host-1',
    machines: [{ name: 'a', measured: null }],
    log: silent,
    ...options,
  });
  onTestFinished(() => agent.stop());
  agent.start();
  return agent;
}

function shell(job: string, text: string, more: Partial<WireRun> = {}): WireRun {
  return { job, epoch: 1, action: 'START', command: 'sh', arguments: ['-c', text], ...more };
}

const describeEnd = (service: TestService, job: string) =>
  service.ends().find((report) => report.job === job);

it('runs what is assigned, before and after it has come, and reports it once', async () => {
  const service = await startService();
  service.assign(shell('job_1', 'echo one'));
  startAgent(service, await openRunner(), { heartbeatMs: 20 });
  await until(() => service.ends().length === 1, 'the first end');
  service.assign(shell('job_2', 'echo two; exit 2'), shell('job_3', 'echo three'));
  await until(() => service.ends().length === 3, 'the ends');
  expect(describeEnd(service, 'job_2')).toMatchObject({
    cause: 'EXITED_NONZERO',
    exitCode: 2,
    outputs: expect.arrayContaining([{ stream: 'STDOUT', start: 0, text: 'two\n', bytes: 4 }]),
  });
  expect(service.accepted).toHaveLength(6);
  await until(() => service.heartbeats > 8, 'heartbeats');
});

it('tells what its runs use when it is asked, and nothing of others', async () => {
  const service = await startService();
  const text = 'x=$(head -c 30000000 /dev/zero | tr "\\0" x); while :; do :; done';
  service.assign(shell('job_1', text), shell('job_2', 'sleep 600'));
  startAgent(service, await openRunner());
  const run = (job: string, epoch = 1) => ({ job, epoch });
  await until(() => {
    service.ask('which', run('job_1'), run('job_2', 2), run('job_3'));
    const { cpuS, peakMemoryMb } = service.uses.at(-1)?.uses[0] ?? {};
    return (cpuS ?? 0) > 0.5 && (peakMemoryMb ?? 0) > 30;
  }, 'the use of the run to be told');
  for (const { question, uses } of service.uses) {
    expect(question).toBe('which');
    expect(uses).toEqual([expect.objectContaining({ job: 'job_1', epoch: 1, tasks: 1 })]);
  }
  const before = service.uses.length;
  service.ask('nobody', run('job_3'));
  service.ask('both', run('job_1'), run('job_2'));
  await until(() => service.uses.at(-1)!.question === 'both', 'the last answer');
  expect(service.uses.slice(before).flatMap(({ question }) => question)).not.toContain('nobody');
  expect(service.uses.at(-1)!.uses.map(({ job }) => job)).toEqual(['job_1', 'job_2']);
});

it('tells when runs have written their checkpoints, each once in a minute, and of others nothing', async () => {
  const service = await startService();
  const directory = temporaryDirectory();
  const waiting = 'until test -e go; do sleep 0.02; done';
  const checkpoint = { path: 'state', signal: 'SIGTERM', from: null, ofTasks: [] };
  const more = { workingDirectory: directory, checkpoint };
  // What was there before is no checkpoint of these runs.
  writeFileSync(join(directory, 'old'), 'x');
  utimesSync(join(directory, 'old'), 1, 1);
  service.assign(
    shell('job_1', `echo 1 > state; touch -d '1 day' later; ${waiting}`, more),
    shell('job_2', waiting, { ...more, checkpoint: { ...checkpoint, path: 'old' } }),
    shell('job_3', waiting, { ...more, checkpoint: { ...checkpoint, path: 'none' } }),
    shell('job_4', waiting, { ...more, checkpoint: { ...checkpoint, path: 'later' } }),
    shell('job_5', waiting, { workingDirectory: directory }),
  );
  startAgent(service, await openRunner(), { heartbeatMs: 20 });
  await until(() => service.checkpoints.length >= 2, 'the checkpoints');
  expect(service.checkpoints.map(({ job }) => job).sort()).toEqual(['job_1', 'job_4']);
  expect(service.checkpoints[0]).toMatchObject({ epoch: 1, token: 'now', ageS: expect.any(Number) });
  for (const { ageS } of service.checkpoints) expect(ageS).toBeGreaterThanOrEqual(0);
  // Written again at once, it is not told again with the next heartbeats.
  writeFileSync(join(directory, 'state'), '2');
  const { heartbeats } = service;
  await until(() => service.heartbeats > heartbeats + 10, 'further heartbeats');
  writeFileSync(join(directory, 'go'), '');
  await until(() => service.ends().length === 5, 'the ends');
  expect(service.checkpoints).toHaveLength(2);
});

it('tells the steps of runs with their ends, and a service that does not know them the ends alone', async () => {
  const service = await startService();
  const noted = (step: object) => `echo '${JSON.stringify(step)}' >>"$SWITCHYARD_STEPS/records"`;
  const step = { number: 0, name: 'a', tasks: 1, machines: 1, cpus: 1, startedAtMs: Date.now() };
  const text = `mkdir "$SWITCHYARD_STEPS"; ${noted({ ...step, endedAtMs: null, exitCode: null, signal: null })}`;
  startAgent(service, await openRunner(), { heartbeatMs: 600_000 });
  service.assign(shell('job_1', text));
  await until(() => service.ends().length === 1, 'the first end');
  service.isOld = true;
  service.assign(shell('job_2', `${text}; exit 3`));
  await until(() => service.ends().length === 2, 'the second end');
  service.assign(shell('job_3', text));
  await until(() => service.ends().length === 3, 'the third end');
  const [first, second, third] = service.ends();
  expect(first!.steps).toEqual([
    expect.objectContaining({ number: 0, name: 'a', startedAt: expect.any(String), endedAt: null }),
  ]);
  expect(second).toMatchObject({ job: 'job_2', exitCode: 3 });
  expect([second!.steps, third!.steps]).toEqual([undefined, undefined]);
  // It was told once.
  expect(service.notUnderstood).toBe(1);
});

it('registers again when the service has forgotten it, and when something is wrong with its host', async () => {
  const service = await startService();
  let problem: string | null = null;
  startAgent(service, new SimulatedRunner({ speed: 1 }), { heartbeatMs: 20, problem: () => problem });
  await until(() => service.heartbeats > 0, 'a heartbeat');
  const before = service.registered.length;
  service.known = false;
  await until(() => service.known && service.registered.length > before, 'the registration');
  problem = 'the fan is broken';
  await until(() => service.registered.at(-1)?.[0]?.problem === problem, 'its problem');
});

it('says loudly which machines it may not serve, and asks anew for what is to be run when it may', async () => {
  const service = await startService();
  const errors: object[] = [];
  const log = { ...silent, error: (fields: object) => errors.push(fields) };
  service.refused.set('a', 'machine a is served by another agent');
  startAgent(service, new SimulatedRunner({ speed: 1 }), { heartbeatMs: 10, log });
  await until(() => errors.length > 0, 'the refusal');
  expect(errors[0]).toEqual({ machine: 'a', refused: 'machine a is served by another agent' });
  await until(() => service.subscriptions === 1, 'the subscription');
  service.refused.clear();
  await until(() => service.subscriptions === 2, 'another subscription');
});

it('stops a run on request', async () => {
  const service = await startService();
  const dir = temporaryDirectory();
  startAgent(service, await openRunner(), { graceMs: 50 });
  service.assign(shell('job_1', `trap '' TERM; touch ${dir}/up; while :; do sleep 0.1; done`));
  await until(() => existsSync(join(dir, 'up')), 'the run');
  service.stop('job_1');
  await until(() => service.ends().length === 1, 'the end');
  expect(describeEnd(service, 'job_1')).toMatchObject({ cause: 'CANCELLED_BY_USER' });
});

it('lets runs go on while the service is away, and reports them afterwards', async () => {
  const service = await startService();
  const dir = temporaryDirectory();
  startAgent(service, await openRunner());
  service.assign(
    shell('job_1', `touch ${dir}/up; while [ ! -e ${dir}/go ]; do sleep 0.02; done; touch ${dir}/done`),
  );
  await until(() => existsSync(join(dir, 'up')), 'the run');
  await service.down();
  await (await import('node:fs/promises')).writeFile(join(dir, 'go'), '');
  await until(() => existsSync(join(dir, 'done')), 'the end of the run');
  service.runs.set('job_2', shell('job_2', 'echo two'));
  await service.up();
  await until(() => service.ends().length === 2, 'the reports');
  expect(service.subscriptions).toBeGreaterThanOrEqual(2);
});

it('starts before the service', async () => {
  const service = await startService();
  await service.down();
  service.runs.set('job_1', shell('job_1', 'true'));
  startAgent(service, await openRunner());
  await service.up();
  await until(() => service.ends().length === 1, 'the end');
});

it('an answer that got lost leads to the same reports again, and to no second run', async () => {
  const service = await startService();
  const dir = temporaryDirectory();
  let losses = 3;
  service.afterReports = () => {
    if (losses-- > 0) throw new Error('the answer got lost');
    service.afterReports = null;
  };
  startAgent(service, await openRunner());
  const run = shell('job_1', `echo x >> ${dir}/runs`);
  service.assign(run);
  await until(() => service.ends().length === 1 && losses < 0, 'the end');
  service.assign({ ...run, action: 'START' });
  service.dropSubscriptions();
  service.assign(shell('job_2', 'true'));
  await until(() => service.ends().some(({ job }) => job === 'job_2'), 'another end');
  expect(readFileSync(join(dir, 'runs'), 'utf8')).toBe('x\n');
});

it('takes the list of its runs in parts, and gives up only what is in none of them', async () => {
  const service = await startService();
  const dir = temporaryDirectory();
  const runner = await openRunner();
  startAgent(service, runner, { graceMs: 50 });
  const waiting = (job: string) =>
    shell(job, `touch ${dir}/${job}; while [ ! -e ${dir}/go ]; do sleep 0.02; done`);
  const jobs = ['job_1', 'job_2', 'job_3', 'job_4', 'job_5'];
  service.assign(...jobs.map(waiting), shell('job_6', `touch ${dir}/job_6; sleep 1000`));
  await until(() => [...jobs, 'job_6'].every((job) => existsSync(join(dir, job))), 'the runs');
  service.runs.delete('job_6');
  service.partSize = 2;
  service.dropSubscriptions();
  await until(() => runner.runs().length === jobs.length, 'the end of the run that was given up');
  await (await import('node:fs/promises')).writeFile(join(dir, 'go'), '');
  await until(() => service.ends().length === jobs.length, 'the ends');
  expect(service.ends().map(({ cause }) => cause)).toEqual(jobs.map(() => 'EXITED_ZERO'));
});

it('one report that the service does not take holds up no other', async () => {
  const service = await startService();
  const refused = new Set<string>();
  service.onReports = (reports) => {
    const bad = reports.find(
      ({ job, phase, outputs }) => phase === 'ENDED' && job === 'job_7' && outputs?.length,
    );
    if (!bad) return;
    refused.add(bad.job);
    throw new GraphQLError('no such text, please', { extensions: { code: 'BAD_USER_INPUT' } });
  };
  startAgent(service, await openRunner());
  service.assign(...Array.from({ length: 20 }, (_, i) => shell(`job_${i}`, 'echo out')));
  await until(() => service.ends().length === 20, 'the ends');
  expect([...refused]).toEqual(['job_7']);
  expect(describeEnd(service, 'job_7')?.outputs).toEqual([]);
  expect(describeEnd(service, 'job_8')?.outputs?.[0]?.text).toBe('out\n');
});

it('stops what the service has given up, and what got a later epoch', async () => {
  const service = await startService();
  const dir = temporaryDirectory();
  const runner = await openRunner();
  startAgent(service, runner, { graceMs: 50 });
  service.assign(shell('job_1', `touch ${dir}/a; sleep 1000`), shell('job_2', `touch ${dir}/b; sleep 1000`));
  await until(() => existsSync(join(dir, 'a')) && existsSync(join(dir, 'b')), 'the runs');
  await until(() => service.accepted.length === 2, 'the starts');
  service.runs.delete('job_1');
  service.runs.set('job_2', shell('job_2', 'echo again', { epoch: 2 }));
  service.dropSubscriptions();
  await until(() => describeEnd(service, 'job_2') !== undefined, 'the second run');
  expect(describeEnd(service, 'job_2')).toMatchObject({
    epoch: 2,
    outputs: [{ text: 'again\n' }, { text: '' }],
  });
  await until(() => runner.runs().length === 0, 'the first runs to be stopped');
  expect(service.ends()).toHaveLength(1);
});

it('a restored service gives out the same numbers: the run before is stopped, and the new one is another', async () => {
  const service = await startService();
  const dir = temporaryDirectory();
  const runner = await openRunner();
  startAgent(service, runner, { graceMs: 50 });
  service.assign(shell('job_1', `touch ${dir}/a; sleep 1000`, { epoch: 2 }));
  await until(() => existsSync(join(dir, 'a')), 'the first run');
  await until(() => service.accepted.length === 1, 'its start');
  const said: WireReport[] = [];
  service.onReports = (reports) => void said.push(...reports.filter(({ phase }) => phase === 'ENDED'));
  const again = shell('job_1', 'echo again', { token: 'restored' });
  service.runs.set('job_1', again);
  service.dropSubscriptions();
  await until(() => runner.runs().length === 0 && service.ends().length === 1, 'the end of both');
  // It is known from now on.
  service.runs.set('job_1', again);
  service.dropSubscriptions();
  await until(() => said.length === 2, 'its end once more');
  expect(said).toMatchObject([
    { epoch: 1, token: 'restored', cause: 'EXITED_ZERO', outputs: [{ text: 'again\n' }, {}] },
    { epoch: 1, token: 'restored', cause: 'LOST' },
  ]);
});

it('a run that the release before recorded without a token goes on, and is reported as it was', async () => {
  const service = await startService();
  const dir = temporaryDirectory();
  const runner = await openRunner();
  const run = script('job_1', `touch ${dir}/a; until [ -e ${dir}/go ]; do sleep 0.02; done`);
  runner.start(run);
  await until(() => existsSync(join(dir, 'a')), 'the run');
  service.runs.set('job_1', shell('job_1', 'false', { action: 'CONTINUE' }));
  startAgent(service, runner);
  await until(() => service.subscriptions === 1, 'the list of runs');
  writeFileSync(join(dir, 'go'), '');
  await until(() => service.ends().length === 1, 'the end');
  expect(service.ends()).toMatchObject([{ cause: 'EXITED_ZERO' }]);
  expect(service.ends()[0]).not.toHaveProperty('token');
});

it('tells the service that a run it believes in is lost', async () => {
  const service = await startService();
  service.runs.set('job_1', shell('job_1', 'true', { action: 'CONTINUE' }));
  startAgent(service, await openRunner());
  await until(() => service.ends().length === 1, 'the end');
  expect(describeEnd(service, 'job_1')).toMatchObject({ cause: 'LOST' });
});

it('a refused key ends it; its runs go on', async () => {
  const service = await startService();
  const refusals: { code: string }[] = [];
  const runner = new SimulatedRunner({ speed: 1 });
  const agent = startAgent(service, runner, { key: 'bad-key', onRefused: (error) => refusals.push(error) });
  await until(() => refusals.length > 0, 'the refusal');
  expect(refusals).toMatchObject([{ code: 'UNAUTHENTICATED' }]);
  await agent.stop();
});

it('simulated runs: thousands in one stream, each started and ended once', async () => {
  const service = await startService();
  startAgent(service, new SimulatedRunner({ speed: 1000 }));
  const total = 3000;
  service.assign(...Array.from({ length: total }, (_, i) => shell(`job_${i}`, '', { plannedS: i % 100 })));
  await until(() => service.runs.size === 0, 'the ends');
  expect(service.accepted).toHaveLength(2 * total);
});

it('what a run writes is sent while it goes on, and before its end when it is much', async () => {
  const service = await startService();
  const dir = temporaryDirectory();
  const stateDir = temporaryDirectory();
  const runner = await ProcessRunner.open({ stateDir, outputLimitBytes: 1 << 20 });
  const agent = startAgent(service, runner);
  service.assign(shell('job_1', `echo first; until [ -e ${dir}/go ]; do sleep 0.05; done; seq 1 40000`));
  await until(() => service.outputs.length > 0, 'the first line');
  expect(service.outputs[0]).toMatchObject({
    job: 'job_1',
    stream: 'STDOUT',
    start: 0,
    text: 'first\n',
    bytes: 6,
  });
  expect(service.ends()).toEqual([]);
  // Its successor asks what has come, and does not send it again.
  await agent.stop();
  runner.close();
  startAgent(service, await openRunner({ stateDir, outputLimitBytes: 1 << 20 }));
  writeFileSync(join(dir, 'go'), '');
  await until(() => service.ends().length === 1, 'the end');
  const pieces = [...service.outputs, ...(service.ends()[0]!.outputs ?? [])].filter(
    ({ stream }) => stream === 'STDOUT',
  );
  const lines = Array.from({ length: 40_000 }, (_, i) => `${i + 1}\n`).join('');
  expect(pieces.map(({ text }) => text).join('')).toBe(`first\n${lines}`);
});
