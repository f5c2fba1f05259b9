/** What every store promises of jobs that go to peers and come from them: src/store/federation.ts as tests. */
import { beforeEach, describe, expect, it } from 'vitest';
import type { JobClasses } from '../../src/core/classes.js';
import type { JobPart } from '../../src/core/model.js';
import type { DeviceRequest, OwnedDevice } from '../../src/core/resources/devices.js';
import type { PeerSettings } from '../../src/store/directory/peers.js';
import type { Asked, MachineKind, NewCopy, OfferedJob } from '../../src/store/federation.js';
import { offeredFields } from '../../src/store/job-fields.js';
import { meantRun } from '../../src/store/rules.js';
import type { NewJob } from '../../src/store/store.js';
import { withParts } from '../support/plain-job.js';
import {
  assigned,
  byIds,
  context,
  dispatched,
  ended,
  move,
  newJob,
  report,
  start,
  submit,
  T0,
  vouch,
  type World,
} from './world.js';

const MIB = 2 ** 20;
const SHARE = { jobs: 1_000, bytes: 1e9 };
const KIND: MachineKind = {
  ...{ site: 1, os: 'away', architecture: 'x64', cpus: 4, memoryMb: 4_000, maxTasks: null },
  ...{ machines: 2, hops: 1, licenses: ['cad'], devices: [] },
};
const A100 = { kind: 'gpu', model: 'a100', memoryMb: 40_000, shares: 4 };
const H100 = { kind: 'gpu', model: 'h100', memoryMb: 80_000, shares: 7 };
/** Two of the one and one of the other on each of two machines. */
const WITH_GPUS: MachineKind = {
  ...KIND,
  devices: [
    { ...A100, count: 2 },
    { ...H100, count: 1 },
  ],
};
const GPU: DeviceRequest = { kind: 'gpu', count: 1, model: null, minMemoryMb: null, share: null };
const withGpus = (...requests: Partial<DeviceRequest>[]) => ({
  ...{ resourcesPerTask: {}, devicesPerTask: requests.map((one) => ({ ...GPU, ...one })) },
});
const asked = (change: Partial<Asked> = {}): Asked => ({
  ...{ service: 'them', protocol: 3, after: 0, room: 100, kinds: [KIND], places: [], load: null },
  classes: [],
  ...change,
});
const away = (change: Partial<NewJob> = {}): NewJob => newJob({ os: 'away', ...change });

const REQUEST: OfferedJob = {
  ...{ request: 'them/1/1', hops: 3, visited: ['them'], user: 'zoe', bytes: 700, outputs: [] },
  ...{ name: null, application: 'x', arrayIndex: null, tasks: 1, cpusPerTask: 1, memoryMbPerTask: 0 },
  ...{ licenses: [], os: null, architecture: null, estimateS: 10, benchmark: 100, runTimeLimitS: null },
  ...{ deadline: null, sandboxMb: 0, outputMb: 0, computationShare: null, preferences: [], parts: null },
  ...{ devicesPerTask: null, class: null },
  ...{ simulatedRunS: null, simulatedIoS: null, launch: 'EVERY_TASK', onTaskFailure: 'END_ALL' },
};
const copy = (offer: number, change: Partial<OfferedJob> = {}, boost = 0): NewCopy => ({
  ...{ offer, jobId: offer, boost },
  request: { ...REQUEST, request: `them/${offer}/1`, ...change },
});
const GRANT = {
  ...{ epoch: 7, command: '/their', arguments: ['a b'], environment: { X: 'y' }, workingDirectory: '/w' },
  inputs: [],
};

export function describeFederation(name: string, makeWorld: () => Promise<World>): void {
  describe(`${name}, federation`, () => {
    let world: World;
    let store: World['store'];
    let user: number;
    let home: number;
    let machine: number;
    let peer: number;
    let cursor: number;

    beforeEach(async () => {
      world = await makeWorld();
      store = world.store;
      user = await world.addUser('ann');
      home = await world.addSite('home');
      machine = await world.addMachine(home, 'm', 4);
      await vouch(store, home, [machine], T0);
      peer = await world.federate({ name: 'them', forward: 'ALWAYS', url: 'https://x/graphql', secret: 's' });
      cursor = 0;
    });

    const path = async (id: number) => (await world.events(id)).map(({ toState }) => toState);
    const exchange = async (change: Partial<Asked> = {}, now = T0, siteId = peer) => {
      const news = await store.offers.exchange(siteId, asked({ after: cursor, ...change }), now);
      if (siteId === peer) cursor = news.at(-1)?.version ?? cursor;
      return news;
    };
    const offerOf = async (id: number, siteId = peer) =>
      (await exchange({ after: 0 }, T0, siteId)).find(({ jobId }) => jobId === id)?.offer as number;
    const claimed = async (id: number) => {
      const {
        results: [result],
      } = await store.offers.claim(peer, [await offerOf(id)], T0 + 5);
      if (result?.kind !== 'GRANTED') throw new Error(`the claim is ${result?.kind}`);
      return result.job;
    };
    const standing = async (id: number, now = T0, siteId = peer) =>
      (await store.offers.standings(id, now)).find((one) => one.siteId === siteId);
    const settings = (change: Omit<PeerSettings, 'name'>) => world.federate({ name: 'them', ...change });
    const states = async (...ids: number[]) => Promise.all(ids.map(async (id) => (await path(id)).at(-1)));

    describe('offers', () => {
      it('tells a peer what waits and it can run, in order, with what it may know, and no more than it has room for', async () => {
        const [first, , third] = await submit(world, user, [
          away({ name: 'a', outputs: [{ path: 'kept' }], command: '/secret', deadline: T0 + 1000.5 }),
          newJob({ os: 'elsewhere' }),
          away({ licenses: ['cad'], preferences: [{ siteId: home }, { os: 'away' }] as never }),
          away(),
        ]);
        const news = await exchange({ room: 2 });
        expect(news.map(({ jobId, state, stop }) => [jobId, state, stop])).toEqual([
          [first, 'OFFERED', false],
          [third, 'OFFERED', false],
        ]);
        expect(Object.keys(news[0]!.request!).sort()).toEqual(
          [...offeredFields, 'request', 'hops', 'visited', 'user', 'bytes', 'outputs'].sort(),
        );
        expect(news[0]!.request).toMatchObject({
          ...{ request: `service/${first}/1`, hops: 3, visited: ['service'], user: 'ann', name: 'a' },
          ...{ outputs: ['kept'], deadline: T0 + 1000.5 },
        });
        expect(news[1]!.request).toMatchObject({ licenses: ['cad'], preferences: [{ os: 'away' }] });
        expect(await exchange({ room: 0 })).toEqual([]);
        // What it does not know of yet takes its room.
        expect(await store.offers.exchange(peer, asked({ after: 0, room: 2 }), T0)).toHaveLength(2);
      });

      it('goes on behind a cursor: what is withdrawn, to be stopped or boosted is told', async () => {
        const ids = await submit(world, user, [away(), away(), away()]);
        const offers = (await exchange()).map(({ offer }) => offer);
        await store.hold(byIds([ids[0]!]));
        await store.reprioritize(byIds([ids[1]!]), -7);
        await store.offers.claim(peer, [offers[2]!], T0);
        await store.cancel(byIds([ids[2]!]), T0 + 1, 'CANCELLED_BY_USER');
        expect(
          (await exchange()).map(({ offer, state, stop, boost }) => [offer, state, stop, boost]),
        ).toEqual([
          [offers[0], 'WITHDRAWN', false, 0],
          [offers[1], 'OFFERED', false, -7],
          [offers[2], 'CLAIMED', true, 0],
        ]);
        await store.release(byIds([ids[0]!]));
        const [again] = await exchange();
        expect(again).toMatchObject({ jobId: ids[0], state: 'OFFERED' });
        expect(again!.offer).toBeGreaterThan(offers[2]!);
      });

      it('tells all that is open once more after a restore, behind every cursor', async () => {
        const [id] = await submit(world, user, [away()]);
        await exchange();
        const later = Math.floor((Date.now() / 1000 - 60) * 1e6);
        await store.offers.tellAgain();
        expect(await store.offers.exchange(peer, asked({ after: later }), T0)).toMatchObject([{ jobId: id }]);
      });

      it('offers under WHEN_NEEDED what no machine here could run, or waits too long', async () => {
        await settings({ forward: 'WHEN_NEEDED', neededAfterS: 100 });
        const kinds = [KIND, { ...KIND, os: 'linux' }];
        const [here, elsewhere] = await submit(world, user, [newJob(), away()]);
        expect((await exchange({ kinds })).map(({ jobId }) => jobId)).toEqual([elsewhere]);
        expect(await standing(here!)).toMatchObject({ state: null, hindrance: 'NOT_NEEDED' });
        expect((await exchange({ kinds }, T0 + 101)).map(({ jobId }) => jobId)).toEqual([here]);
        expect(await standing(here!)).toMatchObject({ state: 'OFFERED', hindrance: null });
      });

      it('offers under WHEN_CHEAPER what has less before it there, and costs less', async () => {
        await settings({ forward: 'WHEN_CHEAPER' });
        const kinds = [{ ...KIND, os: 'linux' }];
        const [first, second, third] = await submit(
          world,
          user,
          [1, 2, 3].map(() => newJob({ estimateS: 100 })),
        );
        const load = { ahead: 0, work: 0, power: 400, benchmark: 100, ageS: 0 };
        // Too old, and too slow.
        expect(await exchange({ kinds, load: { ...load, ageS: 61 } })).toEqual([]);
        expect(await exchange({ kinds, load: { ...load, benchmark: 0.1 } })).toEqual([]);
        expect(await standing(second!)).toMatchObject({ hindrance: 'NOT_CHEAPER' });
        const there = { ...load, work: 20_000, power: 100, benchmark: 50 };
        expect((await exchange({ kinds, load: there })).map(({ jobId }) => jobId)).toEqual([]);
        expect((await exchange({ kinds, load })).map(({ jobId }) => jobId)).toEqual([second, third]);
        expect(await standing(first!)).toMatchObject({ hindrance: 'NOT_CHEAPER' });
      });

      it.each<[string, string, Partial<NewJob>, Partial<Asked>]>([
        ['kinds of resources', 'STAYS', { resourcesPerTask: { gpu: 1 } }, {}],
        ['a constraint', 'STAYS', { machineConstraint: 'gpu' }, {}],
        ['outputs that become datasets', 'DATASETS', { outputs: [{ path: 'a', dataset: 'd' }] }, {}],
        ['outputs, of which version 1 knows nothing', 'OLDER', { outputs: [{ path: 'a' }] }, { protocol: 1 }],
        ['a class, of which version 2 knows nothing', 'OLDER', { class: 'urgent' }, { protocol: 2 }],
        ['devices, of which version 2 knows nothing', 'OLDER', withGpus({}), { protocol: 2 }],
        ['a class that is not taken there', 'CLASS', { class: 'urgent' }, { classes: ['spare'] }],
        [
          'amounts of resources beside devices',
          'STAYS',
          { ...withGpus({}), resourcesPerTask: { tape: 1 } },
          { kinds: [WITH_GPUS] },
        ],
        ['devices, where there are none', 'UNFIT', withGpus({}), {}],
        ['held', 'HELD', { held: true }, {}],
        ['input of which only the amount is known', 'DATA', { inputs: [{ sizeMb: 1, siteId: 1 }] }, {}],
        ['too wide', 'UNFIT', { tasks: 9 }, {}],
        ['as wide as there is room', 'NO_ROOM', { tasks: 8 }, { room: 0 }],
        ['more memory than fits beside it', 'UNFIT', { tasks: 3, memoryMbPerTask: 4_000 }, {}],
        ['a license that is not there', 'UNFIT', { licenses: ['x'] }, {}],
        ['another architecture', 'UNFIT', { architecture: 'arm64' }, {}],
        ['nobody asked', 'NO_ROOM', {}, { room: 0 }],
        ['machines too far away', 'UNFIT', {}, { kinds: [{ ...KIND, hops: 4 }] }],
        ['machines shared in time', 'UNFIT', { cpusPerTask: 5 }, { kinds: [{ ...KIND, maxTasks: 9 }] }],
      ])('says why a job is not offered: %s', async (_, hindrance, job, ask) => {
        const [id] = await submit(world, user, [away(job)]);
        expect(await exchange(ask)).toEqual([]);
        expect(await standing(id!)).toMatchObject({ state: null, hindrance });
      });

      it('offers jobs of parts whose machines have room for each and for all, unless a part asks for more than CPUs and memory', async () => {
        const parted = (...parts: Partial<JobPart>[]) => away(withParts(parts));
        // Two machines of 4 CPUs.
        const [fits, wide, many, keeps, memory] = await submit(world, user, [
          parted({ cpusPerTask: 4 }, { tasks: 4 }),
          parted({ cpusPerTask: 5 }, {}),
          parted({ cpusPerTask: 4 }, { tasks: 5 }),
          parted({}, { exclusive: 'USER' }),
          parted({}, { memoryMbPerTask: 4_001 }),
        ]);
        const [news, ...more] = await exchange();
        expect(more).toEqual([]);
        expect(news).toMatchObject({
          ...{ jobId: fits, state: 'OFFERED' },
          request: {
            ...{ tasks: 5, cpusPerTask: 4, memoryMbPerTask: 0 },
            parts: [
              { tasks: 1, cpusPerTask: 4 },
              { tasks: 4, cpusPerTask: 1 },
            ],
          },
        });
        for (const id of [wide, many, memory])
          expect(await standing(id!)).toMatchObject({ hindrance: 'UNFIT' });
        expect(await standing(keeps!)).toMatchObject({ hindrance: 'STAYS' });
      });

      it('offers no jobs with parts or outputs to a peer of the release before', async () => {
        const [parts, outputs, plain] = await submit(world, user, [
          away(withParts([{}, {}])),
          away({ outputs: [{ path: 'out' }] }),
          away(),
        ]);
        expect((await exchange({ protocol: 1 })).map(({ jobId }) => jobId)).toEqual([plain]);
        for (const id of [parts, outputs]) expect(await standing(id!)).toMatchObject({ hindrance: 'OLDER' });
        const later = (await exchange()).map(({ jobId }) => jobId);
        expect(later).toEqual(expect.arrayContaining([parts, outputs]));
      });

      it.each<[string, Partial<DeviceRequest>[], tasks: number]>([
        ['whole ones of any model', [{ count: 3 }], 2],
        ['whole ones of a model', [{ model: 'a100' }], 4],
        ['with memory', [{ minMemoryMb: 50_000 }], 2],
        ['shares that are whole shares of one model only', [{ count: 2, share: { parts: 1, of: 2 } }], 4],
        [
          'shares with more memory than is theirs',
          [{ model: 'h100', count: 3, share: { parts: 2, of: 7 } }],
          2,
        ],
        ['two requests', [{ model: 'a100', count: 2 }, { model: 'h100' }], 2],
        ['a model that is not there', [{ model: 'b200' }], 0],
        ['more memory than any has', [{ minMemoryMb: 80_001 }], 0],
        ['a kind that is not there', [{ kind: 'fpga' }], 0],
      ])(
        'offers jobs with devices by what they are: %s, as many tasks as are served',
        async (_, asks, most) => {
          const kinds = [WITH_GPUS];
          const [fits, wide] = await submit(world, user, [
            away({ ...withGpus(...asks), tasks: Math.max(1, most) }),
            away({ ...withGpus(...asks), tasks: most + 1 }),
          ]);
          const [part] = await submit(world, user, [
            away(withParts([{}, { ...withGpus(...asks), tasks: Math.max(1, most) }])),
          ]);
          const news = await exchange({ kinds });
          expect(news.map(({ jobId }) => jobId)).toEqual(most > 0 ? [fits, part] : []);
          expect(await standing(wide!)).toMatchObject({ hindrance: 'UNFIT' });
          if (most === 0) return;
          const { devicesPerTask } = withGpus(...asks);
          expect(news[0]!.request).toMatchObject({ devicesPerTask, parts: null });
          expect(news[1]!.request).toMatchObject({ devicesPerTask: null, parts: [{}, { devicesPerTask }] });
        },
      );

      it('needs a peer for devices that no machine here has, though one has room', async () => {
        await settings({ forward: 'WHEN_NEEDED', neededAfterS: 1e9 });
        await world.addMachine(home, 'a', 4, 1_000, [], null, {}, [{ ...A100, id: 'gpu0', link: null }]);
        const kinds = [{ ...WITH_GPUS, os: 'linux' }];
        const [here, there] = await submit(world, user, [
          newJob(withGpus({ model: 'a100' })),
          newJob(withGpus({ model: 'h100' })),
        ]);
        expect((await exchange({ kinds })).map(({ jobId }) => jobId)).toEqual([there]);
        expect(await standing(here!)).toMatchObject({ hindrance: 'NOT_NEEDED' });
      });

      it('offers a job in its class where that is taken, and takes it back when it no longer is', async () => {
        const [urgent, plain] = await submit(world, user, [away({ class: 'urgent' }), away()]);
        const classes = ['spare', 'urgent'];
        const news = await exchange({ classes });
        expect(news.map(({ jobId, request }) => [jobId, request?.class])).toEqual([
          [urgent, 'urgent'],
          [plain, null],
        ]);
        const offer = news[0]!.offer;
        expect(await exchange({ classes: ['spare'] })).toMatchObject([{ offer, state: 'WITHDRAWN' }]);
        expect(await standing(urgent!)).toMatchObject({ state: null, hindrance: 'CLASS' });
        expect(await states(urgent!)).toEqual(['QUEUED']);
        expect((await exchange({ classes })).map(({ jobId }) => jobId)).toEqual([urgent]);
        // It was upgraded, and goes back.
        expect(await exchange({ protocol: 2 })).toMatchObject([{ jobId: urgent, state: 'WITHDRAWN' }]);
        expect(await standing(urgent!)).toMatchObject({ state: null, hindrance: 'OLDER' });
        expect(await standing(plain!)).toMatchObject({ state: 'OFFERED' });
      });

      it('says why a job is not offered: by what its peer is', async () => {
        const [id] = await submit(world, user, [away()]);
        expect(await standing(id!)).toMatchObject({ hindrance: 'UNSEEN', againAt: null });
        await settings({ forward: 'NEVER' });
        expect(await exchange()).toEqual([]);
        expect(await standing(id!)).toMatchObject({ hindrance: 'NEVER' });
        await settings({ forward: 'ALWAYS', hops: 2 });
        const [{ offer } = { offer: 0 }] = await exchange();
        expect(await standing(id!)).toMatchObject({ state: 'OFFERED' });
        await world.isolate(peer, true);
        expect((await exchange()).map(({ state }) => state)).toEqual(['WITHDRAWN']);
        expect(await standing(id!)).toMatchObject({ state: null, hindrance: 'ISOLATED' });
        expect((await store.offers.claim(peer, [offer], T0)).results).toEqual([{ kind: 'REFUSED' }]);
        await world.isolate(peer, false);
        expect(await exchange()).toMatchObject([{ jobId: id, state: 'OFFERED' }]);
      });

      it('tells with the grant where inputs are that anybody can fetch, and of no other', async () => {
        const dataset = await world.addDataset('d', 12, [home]);
        const [id] = await submit(world, user, [away({ inputs: [{ datasetId: dataset }] })]);
        expect(await exchange()).toEqual([]);
        expect(await standing(id!)).toMatchObject({ hindrance: 'DATA' });
        expect(await store.offers.unfetchable([dataset, 99])).toEqual([dataset]);
        await world.publish(dataset, 'https://example.org/d');
        expect(await store.offers.unfetchable([dataset])).toEqual([]);
        expect((await claimed(id!)).inputs).toEqual([
          {
            ...{ place: 1, dataset: `dataset_${dataset}`, name: 'd', sizeMb: 12, sha256: null },
            urls: ['https://example.org/d'],
          },
        ]);
      });
    });

    describe('claims', () => {
      it('start the job at the peer, once, whoever asks how often', async () => {
        const other = await world.federate({ name: 'others', forward: 'ALWAYS' });
        const [id] = await submit(world, user, [
          away({ command: '/c', arguments: ['x'], environment: { A: 'b' }, workingDirectory: '/w' }),
        ]);
        const offer = await offerOf(id!);
        const theirs = await offerOf(id!, other);
        const granted = await claimed(id!);
        expect(granted).toMatchObject({
          ...{ command: '/c', arguments: ['x'], environment: { A: 'b' }, workingDirectory: '/w', inputs: [] },
        });
        expect(meantRun(granted.epoch).epoch).toBe(1);
        expect(await path(id!)).toEqual(['QUEUED', 'DISPATCHED', 'ASSIGNED']);
        expect((await store.offers.claim(peer, [offer, 0], T0 + 9)).results).toEqual([
          { kind: 'GRANTED', job: granted },
          { kind: 'REFUSED' },
        ]);
        expect((await store.offers.claim(other, [theirs, offer], T0 + 9)).results).toEqual([
          { kind: 'REFUSED' },
          { kind: 'REFUSED' },
        ]);
        expect(await standing(id!)).toMatchObject({ state: 'CLAIMED' });
        const { jobs } = await store.loadGrid(0);
        expect(jobs[0]).toMatchObject({ siteId: peer, run: { siteId: peer, allocations: [], epoch: 1 } });
        // Nobody waits for it at the peer: it is no site that schedules itself.
        expect(jobs[0]!.run?.waits).toBeFalsy();
      });

      it('take a job out of the queue of a site, and none that has gone on', async () => {
        const [waits] = await dispatched(world, user, home, [away()]);
        const [runs] = await assigned(world, user, home, machine, [newJob()]);
        expect(
          (await exchange({ kinds: [KIND, { ...KIND, os: 'linux' }] })).map(({ jobId }) => jobId),
        ).toEqual([waits]);
        // The next one there may start: the site has to be woken.
        expect((await store.offers.claim(peer, [await offerOf(waits!)], T0 + 5)).touched).toEqual([home]);
        expect(await path(waits!)).toEqual(['QUEUED', 'DISPATCHED', 'QUEUED', 'DISPATCHED', 'ASSIGNED']);
        expect(await states(runs!)).toEqual(['ASSIGNED']);
        const [gone] = await submit(world, user, [away()]);
        const offer = await offerOf(gone!);
        await store.cancel(byIds([gone!]), T0 + 1, 'CANCELLED_BY_USER');
        expect((await store.offers.claim(peer, [offer], T0 + 2)).results).toEqual([{ kind: 'REFUSED' }]);
        expect(await world.breaches()).toEqual([]);
      });

      it('are followed by reports, fenced by the epoch that was told', async () => {
        const [id] = await submit(world, user, [away()]);
        const { epoch } = await claimed(id!);
        const told = meantRun(epoch);
        const done = ended(id!, 1, { ...told, at: T0 + 30 });
        expect((await store.reportRuns(peer, [{ ...done, token: 'peer 1' }], 3)).results).toEqual([
          'unknown-run',
        ]);
        expect((await store.reportRuns(home, [done], 3)).results).toEqual(['unknown-run']);
        const outcome = await store.reportRuns(peer, [report(id!, 1, told), done], 3);
        expect(outcome.results).toEqual(['accepted', 'accepted']);
        expect((await path(id!)).slice(2)).toEqual(['ASSIGNED', 'RUNNING', 'COMPLETED']);
        expect((await store.reportRuns(peer, [done], 3)).results).toEqual(['repeated']);
        expect((await exchange()).at(-1)).toMatchObject({ jobId: id, state: 'WITHDRAWN' });
        expect((await store.offers.claim(peer, [1], T0 + 40)).results).toEqual([{ kind: 'REFUSED' }]);
        expect(await world.ratioPoints()).toEqual([]);
      });

      it.each<[string, Partial<NewJob>, boolean, string]>([
        ['one that waits is offered again after a minute', {}, false, 'QUEUED'],
        ['one that ran is lost, and runs again', { restartable: true }, true, 'QUEUED'],
        ['one that may not run twice fails', { restartable: false }, true, 'FAILED'],
      ])('can be given back: %s', async (_, job, runs, state) => {
        const [id, open] = await submit(world, user, [away(job), away()]);
        const offers = (await exchange()).map(({ offer }) => offer);
        await store.offers.claim(peer, [offers[0]!], T0 + 5);
        if (runs) await store.reportRuns(peer, [report(id!, 1)], 3);
        const touched = await store.offers.giveBack(peer, [...offers, 1], 3, T0 + 20);
        expect(touched).toContain(peer);
        expect(await states(id!, open!)).toEqual([state, 'QUEUED']);
        expect(await standing(open!, T0 + 21)).toMatchObject({ hindrance: 'RETURNED', againAt: T0 + 80 });
        const before = (await exchange({}, T0 + 79)).filter((one) => one.state === 'OFFERED');
        expect(before).toEqual([]);
        const after = (await exchange({}, T0 + 81)).filter((one) => one.state === 'OFFERED');
        expect(after.map(({ jobId }) => jobId)).toContain(open);
        expect(await world.breaches()).toEqual([]);
      });

      it.each<[string, Partial<NewJob>, boolean, string]>([
        ['what ran is queued again, which counts for nothing', {}, true, 'QUEUED'],
        ['what may not start again is over', { restartable: false }, true, 'FAILED'],
        ['unless it had not begun', { restartable: false }, false, 'QUEUED'],
      ])('that the peer stopped for another job: %s', async (_, job, runs, state) => {
        const [id] = await submit(world, user, [away(job)]);
        await claimed(id!);
        if (runs) await store.reportRuns(peer, [report(id!, 1)], 1);
        const stopped = ended(id!, 1, { cause: 'PREEMPTED', exitCode: null });
        expect((await store.reportRuns(peer, [stopped], 1)).results).toEqual(['accepted']);
        expect(await states(id!)).toEqual([state]);
        // Twice.
        const repeated = state === 'FAILED' ? 'repeated' : 'stale-epoch';
        expect((await store.reportRuns(peer, [stopped], 1)).results).toEqual([repeated]);
        expect((await world.events(id!)).at(-1)).toMatchObject({
          cause: state === 'FAILED' ? 'PREEMPTED' : null,
          ...(state === 'QUEUED' && { note: 'stopped for another job where it ran' }),
        });
        const [next] = await exchange();
        expect(next).toMatchObject({ jobId: id, state: state === 'QUEUED' ? 'OFFERED' : 'WITHDRAWN' });
        if (state === 'QUEUED') {
          // What is said of the former run when the next has begun is late, and changes nothing.
          const { results } = await store.offers.claim(peer, [next!.offer], T0 + 31);
          expect(results).toMatchObject([{ kind: 'GRANTED' }]);
          expect((await store.reportRuns(peer, [stopped], 1)).results).toEqual(['stale-epoch']);
          expect(await states(id!)).toEqual(['ASSIGNED']);
        }
        expect(await world.breaches()).toEqual([]);
      });

      it('are lost when the peer is silent for too long, and are not ended at their limit here', async () => {
        await settings({ lostAfterS: 100 });
        const [id] = await submit(world, user, [
          away({ restartable: false, runTimeLimitS: 10, killGraceS: 0 }),
        ]);
        await claimed(id!);
        await store.reportRuns(peer, [report(id!, 1)], 3);
        await store.processSeen('api', 'api', T0);
        const rules = {
          silentAfterS: 1e6,
          lostAfterS: 1e6,
          runTimeGraceS: 1,
          onDeadlinePassed: 'RECORD',
        } as const;
        const sweep = async (now: number) => {
          await store.processSeen('api', 'api', now);
          return store.sweep({ ...rules, now, maxAttempts: 3, limit: 100 });
        };
        for (let now = T0 + 20; now <= T0 + 100; now += 20)
          expect(await sweep(now)).toMatchObject({ lostRuns: 0, overLimit: 0 });
        await exchange({}, T0 + 90);
        for (let now = T0 + 120; now <= T0 + 180; now += 20)
          expect(await sweep(now)).toMatchObject({ lostRuns: 0, overLimit: 0 });
        expect(await sweep(T0 + 200)).toMatchObject({ lostRuns: 1 });
        expect(await states(id!)).toEqual(['FAILED']);
      });
    });

    describe('copies', () => {
      const accept = (copies: NewCopy[], share = SHARE, now = T0) =>
        store.copies.accept(peer, copies, share, now);
      const ids = async () => (await store.loadGrid(0)).jobs.map(({ job }) => job.id);
      const placedAt = async (offer: number, change: Partial<OfferedJob> = {}) => {
        expect(await accept([copy(offer, change)])).toEqual([]);
        const id = (await ids()).at(-1) as number;
        await store.applyMoves([move(id, home)], context());
        const outcome = await store.applyStarts(
          home,
          [start(id, home, { [machine]: change.tasks ?? 1 })],
          null,
          context(),
        );
        expect(outcome.refused).toEqual([]);
        return id;
      };
      const shown = async () => (await store.assignments(home, null, 10, MIB)).assignments;

      it('are jobs of the users whom the peer’s are mapped to, each offer once', async () => {
        const zoe = await world.addUser('zoe');
        await settings({ users: [{ name: 'zoe', userId: zoe }], foreignBoost: -3 });
        const passed = { visited: ['first', 'them'] };
        expect(await accept([copy(1, {}, 5), copy(2, { user: 'bob' }), copy(3, passed)])).toEqual([]);
        expect(await accept([copy(1), copy(3)])).toEqual([]);
        const { jobs } = await store.loadGrid(0);
        expect(jobs.map(({ state, job }) => [state, job.boost, job.restartable])).toEqual([
          ['QUEUED', 2, false],
          ['QUEUED', -3, false],
          ['QUEUED', -3, false],
        ]);
        expect(jobs[0]!.job.userId).toBe(zoe);
        expect(jobs[1]!.job.userId).not.toBe(zoe);
        expect(jobs[2]!.job.userId).toBe(jobs[1]!.job.userId);
        expect(await world.breaches()).toEqual([]);
      });

      it('are refused beyond the cap, a share, a quota or what a job may be, twice, and while the peer is isolated', async () => {
        const zoe = await world.addUser('zoe', 'REGULAR', { limit: 2, periodS: 100 });
        await settings({ userId: zoe, foreignMax: 4 });
        expect(await accept([copy(1, { estimateS: 0 }), copy(2)], { jobs: 1, bytes: 1e9 })).toEqual([1]);
        expect(await accept([copy(3)], { jobs: 1, bytes: 1e9 })).toEqual([3]);
        expect(await accept([copy(4)], { jobs: 9, bytes: 1_000 })).toEqual([4]);
        expect(await accept([copy(5, { request: 'them/2/1' })])).toEqual([5]);
        expect(await accept([copy(6), copy(7)])).toEqual([7]);
        expect(await accept([copy(8), copy(9), copy(10)], SHARE, T0 + 101)).toEqual([10]);
        await settings({ foreignMax: 5, userId: user });
        expect(await accept([copy(11), copy(12)])).toEqual([12]);
        await settings({ foreignMax: 9 });
        await world.isolate(peer, true);
        expect(await accept([copy(13)])).toEqual([13]);
      });

      const CLASSES: JobClasses = {
        spare: { rank: 0, scavenger: true, charged: false, users: ['peer-them'] },
        urgent: { rank: 5, scavenger: false, charged: true, users: ['ann'] },
        any: { rank: 1, scavenger: false, charged: true },
      };
      const classOf = async (id: number) =>
        (await store.loadGrid(0)).jobs.find(({ job }) => job.id === id)?.job.class;

      it('are in the classes of our policy that the peer’s user may use, and in no other', async () => {
        expect((await store.copies.ourselves(peer)).classes).toEqual([]);
        expect(await accept([copy(1, { class: 'spare' })])).toEqual([1]);
        await world.newPolicy({ classes: CLASSES });
        expect((await store.copies.ourselves(peer)).classes).toEqual(['any', 'spare']);
        const passed = { visited: ['first', 'them'] };
        expect(
          await accept([
            ...[copy(2, { class: 'spare' }), copy(3, { class: 'urgent' }), copy(4, { class: 'none' })],
            ...[copy(5, { class: 'any', ...passed }), copy(6)],
          ]),
        ).toEqual([3, 4]);
        const [spare, any, plain] = await ids();
        expect([await classOf(spare!), await classOf(any!), await classOf(plain!)]).toEqual([
          ...['spare', 'any', null],
        ]);
        expect(await store.copies.unclassed(peer)).toEqual([]);
        // A class that is gone gives back what waits in it; what runs goes on.
        await store.applyMoves([move(any!, home)], context());
        await store.applyStarts(home, [start(any!, home, { [machine]: 1 })], null, context());
        await store.copies.granted(peer, [{ ...GRANT, offer: 5 }]);
        await world.newPolicy({ classes: { urgent: CLASSES.urgent! } });
        expect(await store.copies.unclassed(peer)).toEqual([2]);
        await store.copies.withdraw(peer, [2], T0 + 1);
        expect(await store.copies.unclassed(peer)).toEqual([]);
        expect(await states(spare!, any!, plain!)).toEqual(['CANCELLED', 'ASSIGNED', 'QUEUED']);
      });

      it('ask for devices of kinds that machines have, here or behind us', async () => {
        const { devicesPerTask } = withGpus({ model: 'a100' });
        expect(await accept([copy(1, { devicesPerTask })])).toEqual([1]);
        const third = await world.federate({ name: 'third', forward: 'ALWAYS' });
        const tape = { ...A100, kind: 'tape', model: null };
        const kinds = [{ ...KIND, devices: [{ ...tape, count: 1 }] }];
        await store.offers.exchange(third, asked({ service: 'third', kinds }), Date.now() / 1000);
        const gpus = [0, 1].map((i): OwnedDevice => ({ ...A100, id: `gpu${i}`, link: null }));
        await world.addMachine(home, 'gpus', 4, 1_000, [], null, {}, [
          ...gpus,
          { ...H100, model: null, id: 'other', link: null },
        ]);
        const fpga = withGpus({ kind: 'fpga' }).devicesPerTask;
        const part = { tasks: 1, cpusPerTask: 1, memoryMbPerTask: 0 };
        const parts = [{ ...part, devicesPerTask: withGpus({ kind: 'tape' }).devicesPerTask }, part];
        expect(
          await accept([
            ...[copy(2, { devicesPerTask }), copy(3, { devicesPerTask: fpga })],
            copy(4, { parts, tasks: 2 }),
          ]),
        ).toEqual([3]);
        const { jobs } = await store.loadGrid(0);
        expect(jobs.map(({ job }) => [job.resourcesPerTask, job.devicesPerTask])).toEqual([
          [{}, devicesPerTask],
          [{}, null],
        ]);
        expect(jobs[1]!.job.parts).toMatchObject([
          { resourcesPerTask: {}, devicesPerTask: [{ kind: 'tape' }] },
          { resourcesPerTask: null },
        ]);
        // Alike ones together, and those of others are passed on.
        const told = (await store.copies.ourselves(peer)).kinds.map(({ devices }) => devices);
        expect(told).toContainEqual([
          { ...H100, model: null, count: 1 },
          { ...A100, count: 2 },
        ]);
        expect(told).toContainEqual([{ ...tape, count: 1 }]);
      });

      it('that are stopped for another job here say so, once, and do not start again', async () => {
        await world.newPolicy({ classes: CLASSES });
        const id = await placedAt(1, { class: 'spare' });
        await store.copies.granted(peer, [{ ...GRANT, offer: 1 }]);
        await store.reportRuns(home, [report(id, 1)], 3);
        const [winner] = await submit(world, user, [newJob({ class: 'urgent' })]);
        await store.applyMoves([move(winner!, home)], context());
        const victim = { jobId: id, epoch: 1, lostWork: 36, graceS: 7, requeue: false };
        const room = { siteId: home, at: T0 + 17, allocations: [{ machineId: machine, tasks: 1 }] };
        const preemption = {
          ...{ jobId: winner!, siteId: home, class: 'urgent', preemptionClass: 0 },
          ...{ victims: [victim], room },
        };
        expect(await store.preempt(home, [preemption], context())).toEqual([winner]);
        expect(await store.copies.toReport(peer, MIB)).toMatchObject([{ over: false }]);
        const end = ended(id, 1, { cause: 'CANCELLED_BY_USER', exitCode: null });
        await store.reportRuns(home, [end], 3);
        await store.reportRuns(home, [end], 3);
        expect(await states(id)).toEqual(['CANCELLED']);
        expect(await store.copies.toReport(peer, MIB)).toMatchObject([
          { offer: 1, over: true, cause: 'PREEMPTED' },
        ]);
        await store.copies.told(peer, [1], 2);
        expect(await store.copies.toReport(peer, MIB)).toEqual([]);
      });

      it('run when their owner has granted it, and not before', async () => {
        const id = await placedAt(1);
        expect(await shown()).toEqual([]);
        expect(await store.copies.toClaim(peer)).toEqual([{ offer: 1, bytes: 700 }]);
        expect(await store.copies.unanswered(peer, 60)).toEqual([1]);
        expect(await store.copies.unanswered(peer, 1e10)).toEqual([]);
        const { next } = await store.assignments(home, null, 10, MIB);
        const input = {
          place: 1,
          dataset: 'dataset_3',
          name: 'd',
          sizeMb: 1,
          sha256: null,
          urls: ['https://e/d'],
        };
        await store.copies.granted(peer, [{ ...GRANT, inputs: [input], offer: 1 }]);
        const { epoch: _, inputs: __, ...told } = GRANT;
        const foreignInputs = { siteId: peer, inputs: [{ ...input, dataset: `site_${peer}/dataset_3` }] };
        expect(await shown()).toMatchObject([{ jobId: id, ...told, foreignInputs }]);
        expect((await store.assignments(home, next, 10, MIB)).assignments).toMatchObject([{ jobId: id }]);
        expect(await store.copies.toClaim(peer)).toEqual([]);
        expect(await store.copies.toReport(peer, MIB)).toEqual([]);
        // A grant is not given twice.
        await store.copies.granted(peer, [{ ...GRANT, epoch: 9, offer: 1 }]);
        await store.reportRuns(home, [report(id, 1)], 3);
        expect(await store.copies.toReport(peer, MIB)).toMatchObject([
          { offer: 1, jobId: 1, epoch: 7, told: 0, over: false, startedAt: T0 + 10, outputs: null },
        ]);
        await store.copies.told(peer, [1], 1);
        expect(await store.copies.toReport(peer, MIB)).toEqual([]);
        const body = Buffer.from('out');
        const outputs = [{ stream: 'STDOUT' as const, start: 0, body, bytes: 3 }];
        await store.reportRuns(home, [ended(id, 1, { outputs, cpuS: 2, message: 'm' })], 3);
        expect(await store.copies.toReport(peer, MIB)).toMatchObject([
          {
            ...{ offer: 1, told: 1, over: true, cause: 'EXITED_ZERO', exitCode: 0, at: T0 + 20, cpuS: 2 },
            ...{ message: 'm', files: null, peakMemoryMb: null },
            outputs: [{ stream: 'STDOUT', start: 0, base64: body.toString('base64'), bytes: 3 }],
          },
        ]);
        await store.copies.told(peer, [1], 2);
        expect(await store.copies.toReport(peer, MIB)).toEqual([]);
        expect(await store.copies.notHere(peer, [1, 5], [1, 6])).toEqual([1, 1, 6]);
      });

      it('of several tasks are reported with what the first has written', async () => {
        const id = await placedAt(1, { tasks: 2 });
        await store.copies.granted(peer, [{ ...GRANT, offer: 1 }]);
        for (const [task, text] of ['first', 'second'].entries()) {
          const body = Buffer.from(text);
          const outputs = [{ stream: 'STDOUT' as const, start: 0, body, bytes: body.length }];
          await store.reportRuns(home, [report(id, 1, { task }), ended(id, 1, { task, outputs })], 3);
        }
        const [{ outputs } = { outputs: null }] = await store.copies.toReport(peer, MIB);
        expect(outputs?.map(({ base64 }) => String(Buffer.from(base64, 'base64')))).toEqual(['first']);
      });

      it('never run a second time: whether the job does its owner decides', async () => {
        const id = await placedAt(1);
        await store.copies.granted(peer, [{ ...GRANT, offer: 1 }]);
        await store.reportRuns(home, [report(id, 1), ended(id, 1, { cause: 'LOST', exitCode: null })], 3);
        expect(await states(id)).toEqual(['FAILED']);
        expect(await store.copies.toReport(peer, MIB)).toMatchObject([{ cause: 'LOST', over: true }]);
      });

      it('end when they are withdrawn: those that wait at once, those with machines when nobody has granted them', async () => {
        const held = await placedAt(1);
        await accept([copy(2), copy(3)]);
        const [, second, third] = await ids();
        expect(await store.copies.withdraw(peer, 'ISOLATED', T0 + 1)).toEqual([]);
        expect(await store.copies.withdraw(peer, [2], T0 + 1)).toEqual([null]);
        expect(await states(held, second!, third!)).toEqual(['ASSIGNED', 'CANCELLED', 'QUEUED']);
        expect(await store.copies.toReturn(peer)).toEqual([2]);
        await store.copies.told(peer, [2], 2);
        expect(await store.copies.toReturn(peer)).toEqual([]);
        await store.copies.withdraw(peer, 'UNGRANTED', T0 + 1);
        expect(await states(held, third!)).toEqual(['CANCELLING', 'CANCELLED']);
        expect(await store.copies.endUngranted(peer, T0 + 2)).toEqual([home]);
        expect((await world.events(held)).at(-1)).toMatchObject({ toState: 'CANCELLED', cause: 'WITHDRAWN' });
        expect(await store.copies.toReturn(peer)).toEqual([1, 3]);
        expect(await world.breaches()).toEqual([]);
      });

      it('that are stopped here are their owner’s to judge: what has not begun may run elsewhere', async () => {
        const [first, second] = [await placedAt(1), await placedAt(2)];
        for (const offer of [1, 2]) await store.copies.granted(peer, [{ ...GRANT, offer }]);
        await store.reportRuns(home, [report(first!, 1)], 3);
        await store.cancel(byIds([first!, second!]), T0 + 11, 'CANCELLED_BY_OPERATOR');
        const end = { exitCode: null, cause: 'CANCELLED_BY_USER' } as const;
        await store.reportRuns(home, [ended(first!, 1, end), ended(second!, 1, end)], 3);
        const told = await store.copies.toReport(peer, MIB);
        expect(told.map(({ offer, cause }) => [offer, cause])).toEqual([
          [1, 'REFUSED'],
          [2, 'MACHINE_FAILED'],
        ]);
      });

      it('that end between the claim and the grant are reported with the epoch of the grant', async () => {
        const id = await placedAt(1);
        await store.copies.withdraw(peer, [1], T0 + 1);
        await store.copies.endUngranted(peer, T0 + 2);
        await store.copies.granted(peer, [{ ...GRANT, offer: 1 }]);
        expect(await states(id)).toEqual(['CANCELLED']);
        expect(await store.copies.toReturn(peer)).toEqual([]);
        expect(await store.copies.toReport(peer, MIB)).toMatchObject([{ epoch: 7, cause: 'MACHINE_FAILED' }]);
      });

      it('give way to the next offer of their job, and follow its boost', async () => {
        await accept([copy(1), copy(2)]);
        const [first, second] = await ids();
        const again = { ...copy(5), jobId: 1 };
        expect(await store.copies.supersede(peer, [again, copy(2)], T0)).toEqual([null]);
        expect(await states(first!, second!)).toEqual(['CANCELLED', 'QUEUED']);
        expect(await accept([{ ...again, request: { ...again.request, request: 'them/1/1' } }])).toEqual([]);
        expect(await store.copies.boost(peer, [{ offer: 2, boost: -5 }])).toEqual([null]);
        expect(await store.copies.boost(peer, [{ offer: 2, boost: -5 }])).toEqual([]);
        expect((await store.loadGrid(0)).jobs[0]!.job.boost).toBe(-5);
      });

      it('cannot be changed here', async () => {
        await accept([copy(1)]);
        const [id] = await ids();
        const outcome = await store.revise(byIds([id!]), {
          ...{ values: { name: 'x' }, memoryMbPerCpu: null, wait: null, userId: user },
          ...{ fault: () => null, bytesMax: null, now: T0 },
        });
        expect(outcome).toMatchObject({ changed: [], refused: [{ jobId: id, fault: { code: 'CONFLICT' } }] });
      });

      it('are passed on while they have hops, to nobody who has seen them, and granted when they are', async () => {
        const third = await world.federate({ name: 'third', forward: 'ALWAYS' });
        await accept([copy(1, { os: 'away', hops: 2 }), copy(2, { os: 'away', hops: 1 })]);
        const [id, last] = await ids();
        expect(await exchange()).toEqual([]);
        const kinds = [KIND];
        const service = 'third';
        const asking = asked({ kinds, service });
        const [news, ...more] = await store.offers.exchange(third, asking, T0);
        expect(more).toEqual([]);
        expect(news).toMatchObject({
          jobId: id,
          request: { request: 'them/1/1', hops: 1, visited: ['them', 'service'], user: 'zoe' },
        });
        expect(await standing(id!)).toMatchObject({ hindrance: 'VISITED' });
        expect(await standing(last!, T0, third)).toMatchObject({ hindrance: 'HOPS' });
        const claim = async () => (await store.offers.claim(third, [news!.offer], T0 + 1)).results;
        expect(await claim()).toEqual([{ kind: 'PENDING' }]);
        // It has machines, as it were: now it is claimed in turn.
        expect(await store.copies.toClaim(peer)).toMatchObject([{ offer: 1 }]);
        await store.copies.granted(peer, [{ ...GRANT, offer: 1 }]);
        expect(await claim()).toMatchObject([{ kind: 'GRANTED', job: { command: '/their' } }]);
        await store.offers.exchange(
          third,
          { ...asking, places: [{ offer: news!.offer, path: ['root', 'x'] }] },
          T0,
        );
        expect(await store.copies.places(peer)).toEqual([
          { offer: 1, path: ['root', 'third', 'root', 'x'] },
          { offer: 2, path: ['root'] },
        ]);
        await store.copies.placed(peer, [{ offer: 2, path: ['root'] }]);
        expect(await store.copies.places(peer)).toHaveLength(1);
      });

      it('come from peers that one process talks to at a time', async () => {
        const mine = { siteId: peer, name: 'them', url: 'https://x/graphql', secret: 's', cursor: 0 };
        await world.federate({ name: 'no key' });
        expect(await store.copies.lenders('one', 60)).toEqual([mine]);
        expect(await store.copies.lenders('two', 60)).toEqual([]);
        await store.copies.advance(peer, 9);
        await store.copies.advance(peer, 5);
        await store.copies.leave('one');
        expect(await store.copies.lenders('two', 60)).toEqual([{ ...mine, cursor: 9 }]);
        expect(await store.copies.lenders('one', -1)).toEqual([{ ...mine, cursor: 9 }]);
      });

      it('are told of what there is for them: room, machines here and behind us, and what waits', async () => {
        const third = await world.federate({ name: 'third', forward: 'ALWAYS', foreignBoost: 1 });
        await store.offers.exchange(third, asked({ service: 'third' }), Date.now() / 1000);
        await world.addLicense('cad', 1, home);
        await accept([copy(1)]);
        await settings({ foreignMax: 3 });
        const own = { site: 1, os: 'linux', architecture: 'x64', cpus: 4, memoryMb: 1000, maxTasks: null };
        expect(await store.copies.ourselves(peer)).toEqual({
          ...{ service: 'service', room: 2, classes: [] },
          kinds: [
            { ...own, machines: 1, hops: 1, licenses: ['cad'], devices: [] },
            { ...KIND, site: 1001, hops: 2 },
          ],
        });
        expect((await store.copies.ourselves(third)).kinds).toHaveLength(1);
        await submit(world, user, [newJob({ estimateS: 5 }), away()]);
        const power = { power: 400, benchmark: 100 };
        expect(await store.copies.load(peer)).toEqual({ ahead: 2, work: 1_500, ...power });
        expect(await store.copies.load(third)).toEqual({ ahead: 0, work: 0, ...power });
        await world.isolate(peer, true);
        expect((await store.copies.ourselves(peer)).room).toBe(0);
      });
    });
  });
}
