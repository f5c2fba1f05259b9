/** Devices from the command line to processes, while the service and its agent are killed. */
import { execFile } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, expect, it } from 'vitest';
import { withDatabase } from '../support/database.js';
import { h100, playNvidia, topology } from '../support/nvidia.js';
import { checkPromises } from '../support/promises.js';
import { apart, endAll, type Service, serve, service, until } from './service.js';

const home = mkdtempSync(join(tmpdir(), 'switchyard-devices-'));
const database = withDatabase();
const slicesDatabase = withDatabase();
const unlikeDatabase = withDatabase();
afterAll(async () => {
  await endAll();
  rmSync(home, { recursive: true, force: true });
});

interface Run {
  allocations: { devices: string[] }[];
}

/** Whoever has a device says so where others would see it, for as long as it has it. */
const bodyOf = (
  locks: string,
): string => `for d in $(echo $SWITCHYARD_DEVICES | tr , ' '); do mkdir ${locks}/$d || echo $d >> ${locks}/clash; done
    sleep 1; for d in $(echo $SWITCHYARD_DEVICES | tr , ' '); do rmdir ${locks}/$d; done; echo $SWITCHYARD_DEVICES $CUDA_VISIBLE_DEVICES`;

const isDone = (state: string): boolean => ['COMPLETED', 'FAILED', 'CANCELLED'].includes(state);

async function statesOf(
  ask: Awaited<ReturnType<typeof apart>>['ask'],
  ids: readonly string[],
): Promise<string[]> {
  const found = await ask<{ jobs: { nodes: { state: string }[] } }>(
    'query ($ids: [ID!]!) { jobs(filter: { ids: $ids }, first: 50) { nodes { state } } }',
    { ids },
  );
  return found?.jobs.nodes.map(({ state }) => state) ?? [];
}

it('a service that runs this machine offers its devices from the first start', async () => {
  const [own, declared] = [join(home, 'alone'), join(home, 'alone-devices')];
  for (const dir of [own, declared]) mkdirSync(dir);
  for (const id of ['f0', 'f1'])
    writeFileSync(join(declared, `${id}.json`), JSON.stringify({ kind: 'fpga', environment: { UNIT: id } }));
  const alone = await serve(own, [], '0', { AGENT_DEVICES: declared });
  expect(await alone.json('resources')).toContainEqual(
    expect.objectContaining({ name: 'fpga', countedOn: 'MACHINE', total: 2 }),
  );
  const run = await alone.cli('run', '--resource', 'fpga=2', '--', 'sh', '-c', 'echo $SWITCHYARD_DEVICES');
  expect(run).toMatchObject({ code: 0, stdout: 'f0,f1\n' });
});

it('two jobs never have one device, whoever is killed meanwhile', async () => {
  const [declared, locks] = [join(home, 'devices'), join(home, 'locks')];
  for (const dir of [declared, locks]) mkdirSync(dir);
  chmodSync(locks, 0o777);
  for (const [i, id] of ['g0', 'g1', 'g2'].entries())
    writeFileSync(
      join(declared, `${id}.json`),
      JSON.stringify({
        kind: 'gpu',
        model: 'card',
        memoryMb: 1000,
        environment: { CUDA_VISIBLE_DEVICES: String(i) },
      }),
    );
  const { url, start, ask } = await apart(home, database.url, {
    ...{ AGENT_DEVICES: declared, AGENT_LABELS: 'rack=7', AGENT_MACHINES: 'box' },
  });
  const startAll = () => ({ api: start.api(), worker: start.worker(), agent: start.agent() });
  let all = startAll();
  const { json, cli }: Service = service(url, { SWITCHYARD_HOME: home }, all.api);
  interface Machine {
    problem: string | null;
    resources: object[];
    labels: object[];
    devices: { id: string }[];
  }
  const machine = async (): Promise<Machine | undefined> =>
    (
      await ask<{ machines: { nodes: Machine[] } }>(
        '{ machines { nodes { problem resources { kind amount used } labels { name value } devices { id } } } }',
      )
    )?.machines.nodes[0];
  const registered = await until(machine, (one) => one?.devices.length === 3);
  expect(registered).toMatchObject({ resources: [{ kind: 'gpu', amount: 3, used: 0 }] });
  expect(registered?.labels).toContainEqual({ name: 'rack', value: '7' });

  const submit = (...options: string[]) =>
    json<{ id: string }[]>(
      'submit',
      '--cpus',
      '1',
      '--estimate',
      '5',
      ...options,
      '--',
      'sh',
      '-c',
      bodyOf(locks),
    );
  const jobs = [
    ...(await submit('--gpus', 'card:1', '--array', '1-8')),
    ...(await submit('--gres', 'gpu:2', '--constraint', 'rack < 8', '--array', '1-3')),
  ];
  const ids = jobs.map(({ id }) => id);
  const states = () => statesOf(ask, ids);
  for (const died of [2, 5]) {
    await until(states, (now) => now.filter(isDone).length >= died);
    for (const process of [all.agent, all.worker, all.api]) await process.end('SIGKILL');
    all = startAll();
  }
  expect(await until(states, (now) => now.filter(isDone).length === jobs.length)).toEqual(
    jobs.map(() => 'COMPLETED'),
  );
  expect(existsSync(join(locks, 'clash'))).toBe(false);
  for (const [i, id] of ids.entries()) {
    const found = await ask<{ job: { runs: Run[]; stdout: { text: string } } }>(
      'query ($id: ID!) { job(id: $id) { runs { allocations { devices } } stdout: output(stream: STDOUT) { text } } }',
      { id },
    );
    const had = found?.job.runs[0]?.allocations[0]?.devices ?? [];
    expect(had).toHaveLength(i < 8 ? 1 : 2);
    expect(found?.job.stdout.text).toBe(
      `${had.join(',')} ${had.map((device) => device.slice(1)).join(',')}\n`,
    );
  }
  expect(await checkPromises(database.pool)).toEqual([]);

  // What the agent does not find any more, the machine does not get jobs for.
  await all.agent.end('SIGKILL');
  rmSync(join(declared, 'g1.json'));
  start.agent();
  expect((await until(machine, (one) => one !== undefined && one.problem !== null))?.problem).toMatch(
    /device g1, not found/,
  );
  await json('machines', 'set', 'here/box', '--measured-devices');
  expect((await until(machine, (one) => one?.problem === null))?.devices.map(({ id }) => id)).toEqual([
    'g0',
    'g2',
  ]);
  const kinds = await json<{ name: string }[]>('resources');
  expect(kinds.find(({ name }) => name === 'gpu')).toMatchObject({
    ...{ countedOn: 'MACHINE', total: 2, inUse: 0, free: 2, largest: 2 },
    ...{ models: ['card'], sites: [{ name: 'here' }] },
  });

  // Clients of Slurm see what runs hold.
  await json('submit', '--cpus', '1', '--gpus', '1', '--', 'sleep', '600');
  await until(machine, (one) => JSON.stringify(one?.resources).includes('"used":1'));
  const bin = join(home, 'bin');
  expect((await cli('slurm', 'install', bin)).code).toBe(0);
  const env = { ...process.env, SWITCHYARD_HOME: home, SWITCHYARD_URL: url };
  const slurm = (name: string, ...words: string[]) =>
    promisify(execFile)(join(bin, name), words, { env }).then(({ stdout }) => stdout);
  expect(await slurm('scontrol', '-o', 'show', 'node', 'box')).toContain(' Gres=gpu:2 GresUsed=gpu:1 ');
  expect(await slurm('sinfo', '-h', '-O', 'gres:10,gresused:10')).toMatch(/^gpu:2 +gpu:1 *$/m);
  const { sinfo } = JSON.parse(await slurm('sinfo', '--json')) as { sinfo: { gres: object }[] };
  expect(sinfo[0]?.gres).toEqual({ total: 'gpu:2', used: 'gpu:1' });
});

it('unlike devices of one kind are had by what they are, each by one job, whoever is killed meanwhile', async () => {
  const own = join(home, 'unlike');
  const [declared, locks] = [join(own, 'devices'), join(own, 'locks')];
  for (const dir of [declared, locks]) mkdirSync(dir, { recursive: true });
  chmodSync(locks, 0o777);
  const cards = [
    ['g0', 'card', 1000],
    ['g1', 'big', 2000],
    ['g2', 'big', 2000],
  ] as const;
  for (const [id, model, memoryMb] of cards)
    writeFileSync(
      join(declared, `${id}.json`),
      JSON.stringify({ kind: 'gpu', model, memoryMb, environment: { CUDA_VISIBLE_DEVICES: id.slice(1) } }),
    );
  const { url, start, ask } = await apart(own, unlikeDatabase.url, {
    ...{ AGENT_DEVICES: declared, AGENT_MACHINES: 'box' },
  });
  const startAll = () => ({ api: start.api(), worker: start.worker(), agent: start.agent() });
  let all = startAll();
  const { json, cli }: Service = service(url, { SWITCHYARD_HOME: own }, all.api);
  await until(
    async () =>
      (
        await ask<{ machines: { nodes: { devices: object[] }[] } }>(
          '{ machines { nodes { devices { id } } } }',
        )
      )?.machines.nodes[0]?.devices.length,
    (devices) => devices === 3,
  );
  const job = ['--cpus', '1', '--estimate', '5'];
  const submit = async (devices: string, count: number) =>
    (
      await json<{ id: string }[]>(
        ...['submit', ...job, '--devices', devices, '--array', `1-${count}`, '--', 'sh', '-c', bodyOf(locks)],
      )
    ).map(({ id }) => ({ id, devices }));
  const jobs = [
    ...(await submit('gpu', 3)),
    ...(await submit('gpu:big:2', 1)),
    ...(await submit('gpu:mem=1500', 3)),
    ...(await submit('gpu:card', 2)),
  ];
  const refused = await cli('submit', ...job, '--devices', 'gpu:v100', '--', 'true');
  expect(refused.stderr).toMatch(/--devices: 1 gpu v100 can never run.*nearest: .*1 gpu card \(1000 MB\)/s);
  const ids = jobs.map(({ id }) => id);
  const states = () => statesOf(ask, ids);
  await until(states, (now) => now.filter(isDone).length >= 3);
  for (const process of [all.agent, all.worker, all.api]) await process.end('SIGKILL');
  all = startAll();
  expect(await until(states, (now) => now.filter(isDone).length === jobs.length)).toEqual(
    jobs.map(() => 'COMPLETED'),
  );
  expect(existsSync(join(locks, 'clash'))).toBe(false);
  for (const { id, devices } of jobs) {
    const found = await ask<{ job: { stdout: { text: string } } }>(
      'query ($id: ID!) { job(id: $id) { stdout: output(stream: STDOUT) { text } } }',
      { id },
    );
    const had = found?.job.stdout.text;
    if (devices === 'gpu:big:2') expect(had).toBe('g1,g2 1,2\n');
    else if (devices === 'gpu:card') expect(had).toBe('g0 0\n');
    else expect(had).toMatch(devices === 'gpu' ? /^g([012]) \1\n$/ : /^g([12]) \1\n$/);
  }
  expect(await checkPromises(unlikeDatabase.pool)).toEqual([]);
});

// Only root may divide cards.
it.runIf(process.getuid?.() === 0)(
  'cards that NVLinks join go together, and slices are made for runs, also when the agent is killed',
  async () => {
    const own = join(home, 'cards');
    const done = join(own, 'done');
    for (const dir of [own, done]) mkdirSync(dir);
    const cards = [h100(true), ...[1, 2, 3, 4].map(() => h100(false))];
    const links = topology(5, [
      [1, 3],
      [2, 4],
    ]);
    const nvidia = playNvidia(join(own, 'nvidia'), cards, links);
    const { url, start, ask } = await apart(own, slicesDatabase.url, {
      ...{ PATH: nvidia.path, AGENT_MACHINES: 'box' },
    });
    const api = start.api();
    start.worker();
    const agent = start.agent();
    const { json }: Service = service(url, { SWITCHYARD_HOME: own }, api);
    interface Found {
      resources: { kind: string; amount: number }[];
      devices: { id: string; link: string | null }[];
    }
    const registered = await until(
      async () =>
        (
          await ask<{ machines: { nodes: Found[] } }>(
            '{ machines { nodes { resources { kind amount } devices { id link } } } }',
          )
        )?.machines.nodes[0],
      (one) => one?.devices.length === 5,
    );
    expect(registered?.resources).toEqual([
      { kind: 'gpu', amount: 4 },
      { kind: 'mig', amount: 7 },
    ]);
    expect(registered?.devices.map(({ link }) => link)).toEqual([
      null,
      'nvlink1',
      'nvlink2',
      'nvlink1',
      'nvlink2',
    ]);

    const submit = async (resource: string, script: string): Promise<string> =>
      (
        await json<{ id: string }[]>(
          ...['submit', '--cpus', '1', '--estimate', '5', '--resource', resource, '--', 'sh', '-c', script],
        )
      )[0]!.id;
    const says = (name: string) =>
      `echo $SWITCHYARD_DEVICES $CUDA_VISIBLE_DEVICES > ${done}/tmp-${name}; mv ${done}/tmp-${name} ${done}/${name}`;
    const waits = (name: string, go: string) =>
      `${says(name)}; while [ ! -e ${done}/${go} ]; do sleep 0.05; done`;
    const said = (names: string[]) =>
      until(
        async () => names.filter((name) => existsSync(join(done, name))).length,
        (there) => there === names.length,
      );
    // One of a pair is taken: two go to the other pair, although the first one left comes before it.
    await submit('gpu=1', waits('one', 'go'));
    await said(['one']);
    await submit('gpu=2', waits('two', 'go'));
    await said(['two']);
    writeFileSync(join(done, 'go'), '');
    await submit('mig=3', waits('three', 'on'));
    await submit('mig=1', waits('slice', 'on'));
    await said(['three', 'slice']);
    const [, two, three, slice] = ['one', 'two', 'three', 'slice'].map((name) =>
      readFileSync(join(done, name), 'utf8').trim(),
    );
    expect(two?.split(' ')[0]).toBe('gpu2,gpu4');
    expect(nvidia.instances().map(({ profile, uuid }) => [profile, uuid])).toEqual([
      ['3g.40gb', three?.split(' ')[1]],
      ['1g.10gb', slice?.split(' ')[1]],
    ]);
    await agent.end('SIGKILL');
    writeFileSync(join(done, 'on'), '');
    start.agent();
    await submit('mig=7', says('all'));
    await said(['all']);
    expect(
      await until(
        async () => nvidia.instances(),
        (left) => left.length === 0,
      ),
    ).toEqual([]);
    expect(readdirSync(done).sort()).toEqual(['all', 'go', 'on', 'one', 'slice', 'three', 'two']);
    expect(await checkPromises(slicesDatabase.pool)).toEqual([]);
  },
);
