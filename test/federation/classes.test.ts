/** Two services as peers in version 3 of the protocol: jobs keep their class and the devices that they ask for, or stay. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { checkPromises } from '../support/promises.js';
import { type Launch, type PeerService, until, withService } from './service.js';

const ledger: Launch[] = [];
const a = withService('a', ledger);
const b = withService('b', ledger);
const ran = (number: number): string[] =>
  ledger.filter((one) => one.number === number).map(({ site }) => site);

beforeAll(async () => {
  const key = await a.federate({ name: 'b', forward: 'WHEN_NEEDED' });
  await b.federate({ name: 'a', url: a.api.url, key });
});
afterAll(async () => {
  for (const { api } of [a, b]) expect(await checkPromises(api.db.pool)).toEqual([]);
});

test('a job with a class and a device by its model runs at the peer in its class, makes room there, and runs again', async () => {
  const setClasses = async (at: PeerService, classes: object) => {
    const { policy } = await at.must<{ policy: { version: number; document: object } }>(
      '{ policy { version document } }',
    );
    await at.must(
      'mutation ($input: UpdatePolicyInput!) { updatePolicy(input: $input) { policy { version } } }',
      {
        input: {
          document: { ...policy.document, classes },
          expectedVersion: policy.version,
          reason: 'classes',
        },
      },
    );
  };
  const setDevices = async (at: PeerService, devices: object[]) => {
    const { machines } = await at.must<{ machines: { nodes: { id: string }[] } }>(
      '{ machines { nodes { id } } }',
    );
    await at.must(
      'mutation ($input: UpdateMachineInput!) { updateMachine(input: $input) { machine { id } } }',
      {
        input: { machineId: machines.nodes[0]?.id, devices },
      },
    );
  };
  const spare = { scavenger: true, charged: false };
  await setClasses(a, { spare, urgent: { rank: 5 } });
  // The other knows one of them, and takes jobs of a in it only.
  await setClasses(b, { spare: { ...spare, users: ['peer-a'] }, night: { userClasses: ['GOLD'] } });
  await setDevices(a, [{ id: 'gpu0', kind: 'gpu', model: 'v100', memoryMb: 16_000 }]);
  const h100 = { kind: 'gpu', model: 'h100', memoryMb: 80_000 };
  await setDevices(b, [{ ...h100, id: 'gpu0' }]);
  const wanted = { kind: 'gpu', model: 'h100', minMemoryMb: 60_000 };
  // The device alone is in the way of the next one. Nobody is stopped who would soon be gone anyway.
  const needs = { devicesPerTask: [wanted], simulatedRunS: null, estimateS: 3_600 };

  const [job] = (await a.submit([30], { ...needs, class: 'spare' })) as [string];
  const [urgent] = (await a.submit([31], { ...needs, class: 'urgent' })) as [string];
  await a.until('it runs', [job], 'RUNNING');
  expect(ran(30)).toEqual(['site-b']);
  const atB = async (id: string) => {
    const copies = await b.copiesOf([id]);
    const { job } = await b.must<{ job: object }>(
      `{ job(id: "${copies.at(-1)?.id}") { state cause class charged devicesPerTask { kind count model minMemoryMb share { of } } } }`,
    );
    return job;
  };
  expect(await atB(job)).toEqual({
    ...{ state: 'RUNNING', cause: null, class: 'spare', charged: false },
    devicesPerTask: [{ ...wanted, count: 1, share: null }],
  });
  const refusal =
    'It accepts no jobs of the class urgent from this service: the classes that it accepts are spare.';
  const { federationPeers } = await a.must<{ federationPeers: object[] }>(
    '{ federationPeers { name protocol classes notOffered kinds { os devices { kind model memoryMb shares count } } } }',
  );
  expect(federationPeers).toMatchObject([
    {
      ...{ name: 'b', protocol: 3, classes: ['spare'] },
      notOffered: [refusal],
      kinds: expect.arrayContaining([{ os: 'b', devices: [{ ...h100, shares: 1, count: 1 }] }]),
    },
  ]);
  // It never loses its class: where there is none of that name it waits at home, and says why.
  const why = async (id: string) => {
    const { job } = await a.must<{ job: { peers: { reason: string | null }[] } }>(
      `{ job(id: "${id}") { peers { reason } } }`,
    );
    return job.peers[0]?.reason;
  };
  expect(await why(urgent)).toBe(refusal);
  expect(await a.states([urgent])).toEqual(['QUEUED']);
  expect(await b.copiesOf([urgent])).toEqual([]);
  await a.change('cancelJobs', [urgent]);

  // A job of b's own needs the device: the scavenger's run is stopped, and its owner has it again.
  const [own] = (await b.submit([32], needs)) as [string];
  await b.until('its own runs there', [own], 'RUNNING');
  await a.until('it waits at home', [job], 'QUEUED');
  await until('b has told it', async () => (await b.copiesOf([job]))[0]?.told === 2);
  expect((await b.copiesOf([job]))[0]).toMatchObject({ state: 'CANCELLED', cause: 'PREEMPTED' });
  const { job: known } = await a.must<{ job: object }>(
    `{ job(id: "${job}") { runs { cause retry { action counted } } } }`,
  );
  expect(known).toEqual({ runs: [{ cause: 'PREEMPTED', retry: { action: 'RETRY', counted: false } }] });
  b.runner.finish(32);
  await a.until('it runs again', [job], 'RUNNING');
  b.runner.finish(30);
  await a.until('it has run', [job], 'COMPLETED');
  expect([ran(30), ran(32)]).toEqual([['site-b', 'site-b'], ['site-b']]);
});
