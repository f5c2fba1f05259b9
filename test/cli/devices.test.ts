/** Devices from the command line to processes, while the service and its agent are killed. */
import { chmodSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { withDatabase } from '../support/database.js';
import { checkPromises } from '../support/promises.js';
import { apart, endAll, type Service, service, until } from './service.js';

const home = mkdtempSync(join(tmpdir(), 'switchyard-devices-'));
const database = withDatabase();
afterAll(async () => {
  await endAll();
  rmSync(home, { recursive: true, force: true });
});

interface Run {
  allocations: { devices: string[] }[];
}

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
  const { json }: Service = service(url, { SWITCHYARD_HOME: home }, all.api);
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

  // Whoever has a device says so where others would see it, for as long as it has it.
  const body = `for d in $(echo $SWITCHYARD_DEVICES | tr , ' '); do mkdir ${locks}/$d || echo $d >> ${locks}/clash; done
    sleep 1; for d in $(echo $SWITCHYARD_DEVICES | tr , ' '); do rmdir ${locks}/$d; done; echo $SWITCHYARD_DEVICES $CUDA_VISIBLE_DEVICES`;
  const submit = (...options: string[]) =>
    json<{ id: string }[]>('submit', '--cpus', '1', '--estimate', '5', ...options, '--', 'sh', '-c', body);
  const jobs = [
    ...(await submit('--gpus', 'card:1', '--array', '1-8')),
    ...(await submit('--gres', 'gpu:2', '--constraint', 'rack < 8', '--array', '1-3')),
  ];
  const isDone = (state: string) => ['COMPLETED', 'FAILED', 'CANCELLED'].includes(state);
  const ids = jobs.map(({ id }) => id);
  const states = async (): Promise<string[]> =>
    (
      await ask<{ jobs: { nodes: { state: string }[] } }>(
        'query ($ids: [ID!]!) { jobs(filter: { ids: $ids }, first: 50) { nodes { state } } }',
        { ids },
      )
    )?.jobs.nodes.map(({ state }) => state) ?? [];
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
    ...{ countedOn: 'MACHINES', total: 2, inUse: 0, free: 2, largest: 2 },
    ...{ models: ['card'], sites: [{ name: 'here' }] },
  });
});
