/** What every store promises: the contract of src/store/store.ts as tests. */
import { beforeEach, describe, expect, it } from 'vitest';
import { averagesOf, JobHistory, noRuns, resourceKinds, totalsWith } from '../../src/core/data/history.js';
import { Margins } from '../../src/core/data/margins.js';
import type { PromisesImage } from '../../src/core/index.js';
import {
  type Job,
  type JobData,
  type JobPart,
  NO_DATASET,
  type RunTotals,
  type Start,
} from '../../src/core/model.js';
import { NO_RETRIES, type Retry, type RetryRule } from '../../src/core/runs/retry.js';
import type { WhenChange } from '../../src/store/hold-changes.js';
import type { NewHold } from '../../src/store/holds.js';
import { Mirror } from '../../src/store/mirror.js';
import type { NewNeedTerm, NewWait, ReadTarget } from '../../src/store/needs.js';
import type { EventRow } from '../../src/store/rows.js';
import { SIGNALS_KEPT } from '../../src/store/rules.js';
import type {
  Assignment,
  AssignmentBatch,
  Cursor,
  Followed,
  GridChanges,
  JobChanges,
  JobSelection,
  NewJob,
  Rerun,
  RunOutput,
  RunReport,
  RunStep,
  SentSignal,
  Submission,
  SweepRules,
  TrafficCount,
} from '../../src/store/store.js';
import { partsOf } from '../../src/store/tasks.js';
import { withParts } from '../support/plain-job.js';
import {
  assigned,
  byIds,
  context,
  dispatched,
  ended,
  metaMove,
  metaQueued,
  move,
  newJob,
  report,
  reservation,
  start,
  submit,
  T0,
  treeMove,
  vouch,
  type World,
} from './world.js';

const MAX_ATTEMPTS = 3;
const MIB = 2 ** 20;

const rules = (now: number, change: Partial<SweepRules> = {}): SweepRules => ({
  now,
  silentAfterS: 60,
  lostAfterS: 300,
  runTimeGraceS: 30,
  onDeadlinePassed: 'RECORD',
  maxAttempts: MAX_ATTEMPTS,
  limit: 1000,
  ...change,
});

export function describeStore(
  name: string,
  makeWorld: (options?: { liveJobsMax?: number }) => Promise<World>,
): void {
  describe(name, () => {
    let world: World;
    let store: World['store'];
    let user: number;
    let site: number;
    let other: number;
    let machine: number;
    let second: number;
    let elsewhere: number;

    beforeEach(async () => {
      world = await makeWorld();
      store = world.store;
      user = await world.addUser('ann');
      site = await world.addSite('here');
      other = await world.addSite('there');
      machine = await world.addMachine(site, 'm1', 4);
      second = await world.addMachine(site, 'm2', 4);
      elsewhere = await world.addMachine(other, 'm1', 4);
      await vouch(store, site, [machine, second], T0);
      await vouch(store, other, [elsewhere], T0);
    });

    const states = async (ids: number[]) => {
      const last = await Promise.all(ids.map((id) => world.events(id)));
      return last.map((events) => events.at(-1)?.toState);
    };
    const path = async (id: number) => (await world.events(id)).map((event) => event.toState);
    const nothingBroken = async () => expect(await world.breaches()).toEqual([]);

    describe('submissions', () => {
      it('gives ids in the order of the jobs, and holds them at the root', async () => {
        const ids = await submit(world, user, [
          newJob({ name: 'a' }),
          newJob({ name: 'b', held: true }),
          newJob(),
        ]);
        expect(ids).toEqual([...ids].sort((a, b) => a - b));
        const { jobs } = await store.loadGrid(10);
        expect(jobs.map(({ job, state, siteId }) => [job.id, state, siteId])).toEqual([
          [ids[0], 'QUEUED', null],
          [ids[1], 'HELD', null],
          [ids[2], 'QUEUED', null],
        ]);
        await nothingBroken();
      });

      it('keeps what the scheduler must know of a job', async () => {
        await submit(world, user, [
          newJob({
            tasks: 3,
            cpusPerTask: 2,
            memoryMbPerTask: 7,
            licenses: ['z', 'a'],
            os: 'linux',
            architecture: 'x64',
            boost: -3,
          }),
          newJob({ estimateS: 0.125, benchmark: 250.5, deadline: T0 + 1000.123, runTimeLimitS: 60 }),
        ]);
        const { jobs } = await store.loadGrid(10);
        expect(jobs[0]!.job).toMatchObject({
          userId: user,
          userClass: 'REGULAR',
          submittedAt: T0,
          tasks: 3,
          cpusPerTask: 2,
          memoryMbPerTask: 7,
          licenses: ['a', 'z'],
          os: 'linux',
          architecture: 'x64',
          boost: -3,
          deadline: null,
          priority: null,
        });
        expect(jobs[1]!.job).toMatchObject({
          estimateS: 0.125,
          benchmark: 250.5,
          deadline: T0 + 1000.123,
          runTimeLimitS: 60,
        });
      });

      it('keeps any text: quotes, backslashes, braces, line ends, emptiness, other scripts', async () => {
        const args = ['', ' ', '"', "'", '\\', '{a,b}', 'NULL', 'null', 'a\nb\tc', 'Ω ☃ 𝕏', '$1', '\\"'];
        const env = { A: '"\\{}', B: '', "Ω'": '\n' };
        const [id] = await dispatched(world, user, site, [
          newJob({ command: '/a "b" \\c', arguments: args, environment: env, workingDirectory: '/x y' }),
        ]);
        await store.applyStarts(site, [start(id!, site, { [machine]: 1 })], null, context());
        const { assignments } = await store.assignments(site, null, 10, MIB);
        expect(assignments[0]).toMatchObject({
          command: '/a "b" \\c',
          arguments: args,
          environment: env,
          workingDirectory: '/x y',
        });
      });

      it('answers a repeated key with the same jobs, and refuses it with another payload', async () => {
        const jobs = [newJob(), newJob()];
        const once = { userId: user, idempotencyKey: 'k', payloadHash: 'h', jobs, now: T0 };
        const first = await store.submit(once);
        expect(first).toMatchObject({ kind: 'accepted', repeated: false });
        expect(await store.submit({ ...once, now: T0 + 9 })).toEqual({ ...first, repeated: true });
        expect(await store.submit({ ...once, payloadHash: 'other' })).toEqual({ kind: 'key-reused' });
        const bob = await world.addUser('bob');
        expect(await store.submit({ ...once, userId: bob })).toMatchObject({
          kind: 'accepted',
          repeated: false,
        });
        expect((await store.loadGrid(0)).jobs).toHaveLength(4);
        await nothingBroken();
      });

      it('admits no more than the quota within a rolling period, and says when it would', async () => {
        const limited = await world.addUser('carl', 'REGULAR', { limit: 5, periodS: 100 });
        const send = (count: number, now: number) =>
          store.submit({
            userId: limited,
            idempotencyKey: null,
            payloadHash: '',
            jobs: Array.from({ length: count }, () => newJob()),
            now,
          });
        expect(await send(3, T0)).toMatchObject({ kind: 'accepted' });
        expect(await send(2, T0 + 10)).toMatchObject({ kind: 'accepted' });
        const quota = { kind: 'quota', limit: 5, periodS: 100, used: 5 };
        expect(await send(1, T0 + 20)).toEqual({ ...quota, asked: 1, freesAt: T0 + 100 });
        expect(await send(4, T0 + 20)).toEqual({ ...quota, asked: 4, freesAt: T0 + 110 });
        expect(await send(6, T0 + 20)).toEqual({ ...quota, asked: 6, freesAt: null });
        expect(await send(3, T0 + 100)).toMatchObject({ kind: 'accepted' });
        await nothingBroken();
      });

      it('holds no more live jobs than it may', async () => {
        world = await makeWorld({ liveJobsMax: 3 });
        const ann = await world.addUser('ann');
        await submit(world, ann, [newJob(), newJob()]);
        const more = {
          userId: ann,
          idempotencyKey: null,
          payloadHash: '',
          jobs: [newJob(), newJob()],
          now: T0,
        };
        expect(await world.store.submit(more)).toEqual({ kind: 'full', limit: 3, live: 2 });
      });
    });

    describe('moves', () => {
      it('gives jobs to sites, with priority and margin', async () => {
        const [a, b] = await submit(world, user, [newJob({ deadline: T0 + 500 }), newJob()]);
        const outcome = await store.applyMoves([move(a!, site, null, 7), move(b!, other)], context(T0 + 1));
        expect(outcome).toEqual({ accepted: [a, b], refused: [] });
        const grid = await store.loadGrid(10);
        expect(grid.jobs.map(({ state, siteId, job }) => [state, siteId, job.priority])).toEqual([
          ['DISPATCHED', site, 7],
          ['DISPATCHED', other, 5],
        ]);
        expect(grid.margins).toEqual([400]);
        await nothingBroken();
      });

      it('refuses, item by item, what does not fit the truth', async () => {
        const [a, b, c] = await submit(world, user, [newJob(), newJob(), newJob({ held: true })]);
        await world.setSiteState(other, 'DRAINING');
        const moves = [move(a!, site), move(a!, site), move(b!, other), move(c!, site), move(999, site)];
        const outcome = await store.applyMoves(moves, context());
        expect(outcome.accepted).toEqual([a]);
        expect(outcome.refused.map(({ jobId }) => jobId)).toEqual([a, b, c, 999]);
        expect((await store.applyMoves([move(a!, site)], context())).refused).toHaveLength(1);
        await nothingBroken();
      });

      it('never moves a job out of a local queue', async () => {
        const [a] = await dispatched(world, user, site, [newJob()]);
        for (const one of [move(a!, other, site), metaMove(a!, other, site), metaMove(a!, site, site)]) {
          expect(await store.applyMoves([one], context())).toMatchObject({ accepted: [] });
        }
        expect((await store.loadGrid(0)).jobs[0]).toMatchObject({ state: 'DISPATCHED', siteId: site });
        await nothingBroken();
      });

      it('takes single jobs back that their site can no longer run', async () => {
        const ids = await dispatched(world, user, site, [newJob(), newJob(), newJob()]);
        await store.cancel(byIds([ids[1]!]), T0, 'CANCELLED_BY_USER');
        expect(await store.returnJobs(other, ids, 'NO_MACHINE_NOW', context())).toEqual([]);
        expect(await store.returnJobs(site, [ids[1]!, ids[0]!], 'NO_MACHINE_NOW', context())).toEqual([
          ids[0],
        ]);
        expect(await states(ids)).toEqual(['QUEUED', 'CANCELLED', 'DISPATCHED']);
        await nothingBroken();
      });

      it("asks for what a site's own scheduler has and has not started, once; given back it counts for nothing, and goes elsewhere", async () => {
        await world.newPolicy({ local: { kind: 'external', queueLimit: 10, takeBackAfterS: 60 } });
        const ids = await dispatched(world, user, site, [newJob(), newJob(), newJob()]);
        const starts = ids.map((id) => start(id, site, {}));
        expect((await store.applyStarts(site, starts, null, context())).accepted).toEqual(ids);
        await store.reportRuns(site, [report(ids[2]!, 1)], MAX_ATTEMPTS);
        const ask = (of: number[], at = site) => store.recallRuns(at, of, 'STARTS_ELSEWHERE', context());
        expect(await ask(ids, other)).toEqual([]);
        expect(await ask([...ids].reverse())).toEqual([ids[0], ids[1]]);
        expect(await ask(ids)).toEqual([]);
        expect(await states(ids)).toEqual(['ASSIGNED', 'ASSIGNED', 'RUNNING']);
        const { assignments } = await store.assignments(site, null, 10, 1e6);
        expect(assignments.map(({ recalled }) => recalled)).toEqual([true, true, false]);
        expect((await world.events(ids[0]!)).at(-1)).toMatchObject({
          ...{ kind: 'JOB_CHANGED', fromState: 'ASSIGNED', toState: 'ASSIGNED', siteId: site },
        });
        // The second has begun meanwhile.
        const back = ended(ids[0]!, 1, { cause: 'REQUEUED', exitCode: null, message: 'taken back' });
        await store.reportRuns(site, [back, report(ids[1]!, 1), ended(ids[1]!, 1)], MAX_ATTEMPTS);
        expect(await states(ids)).toEqual(['QUEUED', 'COMPLETED', 'RUNNING']);
        expect((await store.loadGrid(0)).jobs[0]?.job.avoids).toEqual({
          failed: { machines: [], sites: [site] },
          last: { machines: [], sites: [site] },
        });
        await nothingBroken();
      });

      it('sends signals to jobs that machines of ours run, counted, and tells their agents', async () => {
        const ids = await dispatched(world, user, site, [newJob(), newJob(), newJob()]);
        const [runs, starts, waits] = ids as [number, number, number];
        const both = [runs, starts].map((id) => start(id, site, { [machine]: 1 }));
        await store.applyStarts(site, both, null, context());
        await store.reportRuns(site, [report(runs, 1)], MAX_ATTEMPTS);
        const { next } = await store.assignments(site, null, 10, 1e6);
        const send = (signal: SentSignal['signal'], to: SentSignal['to'] = 'ALL', of = [...ids, 999_999]) =>
          store.signal(byIds(of), { signal, to });
        expect(await send('SIGUSR1')).toMatchObject({
          changed: [runs],
          unchanged: [
            { jobId: starts, state: 'ASSIGNED' },
            { jobId: waits, state: 'DISPATCHED' },
            { jobId: 999_999, state: null },
          ],
        });
        await send('SIGSTOP', 'OTHERS');
        const told = await store.assignments(site, next, 10, 1e6);
        expect(told.list).toBeNull();
        expect(told.assignments.map(({ jobId, signals }) => [jobId, signals])).toEqual([
          [
            runs,
            [
              { number: 1, signal: 'SIGUSR1', to: 'ALL' },
              { number: 2, signal: 'SIGSTOP', to: 'OTHERS' },
            ],
          ],
        ]);
        expect((await world.events(runs)).at(-1)).toMatchObject({
          ...{ kind: 'JOB_CHANGED', fromState: 'RUNNING', toState: 'RUNNING', siteId: site },
        });
        // The last ones are kept.
        for (let more = 0; more < SIGNALS_KEPT; more++) await send('SIGHUP', 'COMMAND', [runs]);
        const [kept] = (await store.assignments(site, null, 10, 1e6)).assignments;
        expect(kept!.signals.map(({ number }) => number)).toEqual(
          Array.from({ length: SIGNALS_KEPT }, (_, i) => i + 3),
        );
        await store.cancel(byIds([runs]), T0, 'CANCELLED_BY_USER');
        expect((await send('SIGUSR1', 'ALL', [runs])).changed).toEqual([]);
        await nothingBroken();
      });

      it('sends no signals to what a site schedules itself', async () => {
        await world.newPolicy({ local: { kind: 'external', queueLimit: 10, takeBackAfterS: 60 } });
        const [id] = (await dispatched(world, user, site, [newJob()])) as [number];
        await store.applyStarts(site, [start(id, site, {})], null, context());
        await store.reportRuns(site, [report(id, 1)], MAX_ATTEMPTS);
        const outcome = await store.signal(byIds([id]), { signal: 'SIGUSR1', to: 'ALL' });
        expect(outcome).toMatchObject({ changed: [], unchanged: [{ jobId: id, state: 'RUNNING' }] });
        await nothingBroken();
      });

      /** The agent of the first machine reports for the site. */
      const reporting = async () => {
        const agent = {
          ...{ siteId: site, identity: `agent of ${machine}`, instance: '1', host: 'a', version: '1' },
          ...{ protocol: 3, simulated: true, machines: [] },
        };
        const { agentId } = await store.registerAgent(agent, T0, MAX_ATTEMPTS);
        const details = { partitions: [], queue: null, calls: null };
        const load = {
          ...{ waitingJobs: 2, waitingS: 20, waitingCpuS: 40, takesParts: false, busy: [], details },
          licenses: null,
        };
        return { agentId: agentId as number, load };
      };

      it('has the images that agents with machines report, and tells schedulers when they change', async () => {
        const { agentId } = await reporting();
        const images = (name: string, sizeMb: number, digest: string | null = null) => ({
          name,
          sizeMb,
          digest,
        });
        const told = async (reported: ReturnType<typeof images>[], by = agentId) => {
          const { cursor } = await store.loadGrid(0);
          const outcome = await store.reportImages(site, by, reported);
          const changes = await store.changesSince(cursor, 100);
          expect(changes).not.toBe('too-old');
          return { ...outcome, news: (changes as GridChanges).images, all: (await store.loadGrid(0)).images };
        };
        const one = { siteId: site, sizesMb: { a: 10 } };
        const two = { siteId: site, sizesMb: { a: 10, b: 2.5 } };
        expect(await told([images('a', 10)])).toEqual({
          serves: true,
          changed: true,
          news: [one],
          all: [one],
        });
        const both = [images('b', 2.5), images('a', 10)];
        expect(await told(both)).toEqual({ serves: true, changed: true, news: [two], all: [two] });
        expect(await told(both)).toEqual({ serves: true, changed: false, news: [], all: [two] });
        // Of the digest schedulers know nothing.
        const named = [images('b', 2.5), images('a', 10, 'sha256:1')];
        expect(await told(named)).toEqual({ serves: true, changed: true, news: [], all: [two] });
        expect(await told([images('c', 1)], agentId + 1000)).toMatchObject({ serves: false, all: [two] });
        const none = { siteId: site, sizesMb: {} };
        expect(await told([])).toEqual({ serves: true, changed: true, news: [none], all: [] });
        await nothingBroken();
      });

      it("keeps with a site's load how long jobs lately waited there, and tells schedulers when that has changed", async () => {
        await world.newPolicy({ local: { kind: 'external', queueLimit: 10, takeBackAfterS: 60 } });
        const { agentId, load } = await reporting();
        const reported = async (at: number) => {
          const { cursor } = await store.loadGrid(0);
          expect(await store.reportLoad(site, agentId, load, at)).toBe(true);
          const image = await store.loadGrid(0);
          const changes = await store.changesSince(cursor, 100);
          const waits = image.sites.find(({ id }) => id === site)?.load?.waits;
          return { waits, told: changes !== 'too-old' && changes.directory !== null };
        };
        expect(await reported(T0)).toEqual({ waits: [], told: true });
        const ids = await dispatched(world, user, site, [
          newJob({ cpusPerTask: 4, runTimeLimitS: 240 }),
          newJob({ cpusPerTask: 2, tasks: 2, runTimeLimitS: 240 }),
          newJob(),
          newJob({ cpusPerTask: 5, runTimeLimitS: 241 }),
        ]);
        const starts = ids.map((id) => start(id, site, {}));
        expect((await store.applyStarts(site, starts, null, context(T0))).accepted).toEqual(ids);
        const began = ids.slice(0, 2).map((id, i) => report(id, 1, { at: T0 + 100 * (i + 1) }));
        await store.reportRuns(site, began, MAX_ATTEMPTS);
        // The last two still wait; of the shape of the first two the later one began after 200 s, the other after 100.
        const one = { runs: 1, waitS: 300 };
        const waits = [
          { cpusMax: 1, limitMaxS: null, ...one },
          { cpusMax: 4, limitMaxS: 240, runs: 2, waitS: 150 },
          { cpusMax: 16, limitMaxS: 960, ...one },
        ];
        expect(await reported(T0 + 300)).toEqual({ waits, told: true });
        expect(await reported(T0 + 301)).toEqual({ waits, told: false });
        // A day later only what waits is remembered.
        expect((await reported(T0 + 90_000)).waits).toMatchObject([{ cpusMax: 1 }, { cpusMax: 16 }]);
        await nothingBroken();
      });

      it("has the licenses that a site's own scheduler counts as pools of the site, as its agent says", async () => {
        await world.newPolicy({ local: { kind: 'external', queueLimit: 10, takeBackAfterS: 60 } });
        await world.addLicense('cad', 5, site);
        const { agentId, load } = await reporting();
        const told = async (licenses: { kind: string; copies: number }[] | null) => {
          const { cursor } = await store.loadGrid(0);
          expect(await store.reportLoad(site, agentId, { ...load, licenses }, T0)).toBe(true);
          const pools = (await store.loadGrid(0)).licenses.filter(({ siteId }) => siteId === site);
          const changes = await store.changesSince(cursor, 100);
          const copies = Object.fromEntries(pools.map((pool) => [pool.kind, pool.copies]));
          return { copies, told: changes !== 'too-old' && changes.directory !== null };
        };
        // An operator's stays as it is.
        const both = [
          { kind: 'cad', copies: 9 },
          { kind: 'matlab', copies: 2 },
        ];
        expect(await told(both)).toEqual({ copies: { cad: 5, matlab: 2 }, told: true });
        expect(await told(both)).toEqual({ copies: { cad: 5, matlab: 2 }, told: false });
        expect(await told(null)).toEqual({ copies: { cad: 5, matlab: 2 }, told: false });
        const pool = (await store.loadGrid(0)).licenses.find(({ kind }) => kind === 'matlab');
        const [job] = await dispatched(world, user, site, [newJob({ licenses: ['matlab'] })]);
        const begin = start(job as number, site, {}, [pool!.id]);
        expect((await store.applyStarts(site, [begin], null, context(T0))).accepted).toEqual([job]);
        // A run holds one: it does not become less than that.
        expect((await told([])).copies).toEqual({ cad: 5, matlab: 1 });
        await store.reportRuns(site, [report(job as number, 1), ended(job as number, 1)], MAX_ATTEMPTS);
        expect((await told([])).copies).toEqual({ cad: 5, matlab: 0 });
        expect((await told([{ kind: 'matlab', copies: 4 }])).copies).toEqual({ cad: 5, matlab: 4 });
        await nothingBroken();
      });

      it("gives a site's own scheduler nothing that could run into a window of the whole site", async () => {
        await world.newPolicy({ local: { kind: 'external', queueLimit: 10, takeBackAfterS: 60 } });
        const limits = [100, 101, null];
        const ids = await dispatched(
          ...([world, user, site] as const),
          limits.map((runTimeLimitS) => newJob({ runTimeLimitS })),
        );
        await world.createHold({
          ...{ kind: 'MAINTENANCE', name: null, siteId: site, userId: user, held: { of: 'SITE' } },
          ...{ onConflict: 'REFUSE', reason: null, times: [{ from: T0 + 100, to: T0 + 200 }] },
          ...{ shared: [], recurrence: null, idleS: null, userIds: [] },
        });
        const starts = ids.map((id) => start(id, site, {}));
        expect(await store.applyStarts(site, starts, null, context())).toMatchObject({
          accepted: [ids[0]],
          refused: [
            { jobId: ids[1], why: 'the site is closed in 100 s, and the job may run for 101 s' },
            { jobId: ids[2], why: 'the site is closed in 100 s, and the job may run for any time' },
          ],
        });
        const later = await store.applyStarts(site, starts.slice(1), null, context(T0 + 200));
        expect(later.accepted).toEqual([ids[1], ids[2]]);
        await nothingBroken();
      });

      it('stops runs for a job of a higher class, all or none; they are queued again or end, with the cause', async () => {
        const [a, b, c, d, winner] = await dispatched(world, user, site, [
          newJob(),
          newJob(),
          newJob(),
          newJob({ restartable: false }),
          newJob({ preemptionClass: 5 }),
        ]);
        const starts = [a!, b!, c!, d!].map((id) => start(id, site, { [machine]: 1 }));
        expect((await store.applyStarts(site, starts, null, context())).accepted).toEqual([a, b, c, d]);
        await store.reportRuns(
          site,
          [a!, b!, c!, d!].map((id) => report(id, 1)),
          MAX_ATTEMPTS,
        );
        const preemption = (victims: [id: number, requeue?: boolean][], jobId = winner!) => ({
          ...{ jobId, siteId: site, class: null, preemptionClass: 5 },
          victims: victims.map(([id, requeue = true]) => ({
            ...{ jobId: id, epoch: 1, lostWork: 36, graceS: 7, requeue },
          })),
          room: { siteId: site, at: T0 + 7, allocations: [{ machineId: machine, tasks: 1 }] },
        });
        const preempt = (...given: Parameters<typeof preemption>[]) =>
          store.preempt(
            site,
            given.map((one) => preemption(...one)),
            context(),
          );
        // What may not be started again, of no lower class, of another run; and for a job that does not wait.
        expect(await preempt([[[a!], [d!]]])).toEqual([]);
        expect(await preempt([[[winner!]]], [[[a!]], b!])).toEqual([]);
        expect(await states([a!, b!, c!, d!, winner!])).toEqual([
          ...['RUNNING', 'RUNNING', 'RUNNING', 'RUNNING', 'DISPATCHED'],
        ]);
        expect(await preempt([[[a!], [b!, false], [c!]]])).toEqual([winner]);
        expect(await preempt([[[a!]]])).toEqual([]);
        expect(await states([a!, b!, c!, winner!])).toEqual([
          ...['CANCELLING', 'CANCELLING', 'CANCELLING', 'DISPATCHED'],
        ]);
        expect((await world.events(winner!)).at(-1)).toMatchObject({
          ...{
            toState: 'DISPATCHED',
            note: `job_${a}, job_${b}, job_${c} stopped for it; lost 0.03 core-hours`,
          },
        });
        expect((await world.events(a!)).at(-1)).toMatchObject({
          ...{ note: `stopped for job_${winner} of class 5; lost 0.01 core-hours` },
        });
        const { assignments } = await store.assignments(site, null, 10, 1e6);
        expect(assignments.map(({ jobId, stopGraceS }) => [jobId, stopGraceS])).toEqual([
          ...[a, b, c].map((id) => [id, 7]),
          [d, null],
        ]);
        const { jobs } = await store.loadGrid(0);
        const of = (id: number) => jobs.find(({ job }) => job.id === id);
        expect(of(winner!)?.job.promised).toEqual(preemption([]).room);
        const { run } = of(a!)!;
        expect(run?.stopsAt).toBeGreaterThan(0);
        expect(run?.plannedEnd).toBeLessThanOrEqual(run?.stopsAt as number);
        expect(of(d!)?.run?.stopsAt).toBeUndefined();
        // The first two were killed, the third had ended by itself.
        const killed = (id: number) =>
          ended(id, 1, { cause: 'CANCELLED_BY_USER', exitCode: null, signal: 'SIGTERM' });
        await store.reportRuns(site, [killed(a!), killed(b!), ended(c!, 1)], MAX_ATTEMPTS);
        expect(await states([a!, b!, c!])).toEqual(['QUEUED', 'CANCELLED', 'COMPLETED']);
        const told = await Promise.all([a!, b!, c!].map(async (id) => (await world.events(id)).at(-1)!));
        expect(told.map(({ cause }) => cause)).toEqual([null, 'PREEMPTED', 'EXITED_ZERO']);
        expect(told[0]!.note).toBe(`stopped for job_${winner} of class 5; lost 0.01 core-hours`);
        const back = (await store.loadGrid(0)).jobs.find(({ job }) => job.id === a)?.job;
        expect(back).toMatchObject({ promised: null, avoids: null });
        // It has its room, and the promise is kept with its start.
        await store.applyStarts(site, [start(winner!, site, { [machine]: 1 })], null, context());
        expect((await store.loadGrid(0)).jobs.find(({ job }) => job.id === winner)?.job.promised).toBeNull();
        await nothingBroken();
      });

      it('stops runs by the ranks of their classes, each with its grace; one that may not start again ends', async () => {
        const [a, b, winner] = await dispatched(world, user, site, [
          newJob({ class: 'scavenger', charged: false }),
          newJob({ class: 'scavenger', restartable: false }),
          newJob({ class: 'urgent' }),
        ]);
        const starts = [a!, b!].map((id) => start(id, site, { [machine]: 1 }));
        await store.applyStarts(site, starts, null, context());
        await store.reportRuns(
          site,
          [a!, b!].map((id) => report(id, 1)),
          MAX_ATTEMPTS,
        );
        const preempt = (...victims: [id: number, graceS: number, requeue: boolean][]) =>
          store.preempt(
            site,
            [
              {
                ...{ jobId: winner!, siteId: site, class: 'urgent', preemptionClass: 0 },
                victims: victims.map(([jobId, graceS, requeue]) => ({
                  ...{ jobId, epoch: 1, lostWork: 36, graceS, requeue },
                })),
                room: { siteId: site, at: T0 + 9, allocations: [{ machineId: machine, tasks: 1 }] },
              },
            ],
            context(),
          );
        expect(await preempt([b!, 7, true])).toEqual([]);
        expect(await preempt([a!, 7, true], [b!, 9, false])).toEqual([winner]);
        const { assignments } = await store.assignments(site, null, 10, 1e6);
        expect(assignments.map(({ jobId, stopGraceS }) => [jobId, stopGraceS])).toEqual([
          [a, 7],
          [b, 9],
        ]);
        const killed = (id: number) =>
          ended(id, 1, { cause: 'CANCELLED_BY_USER', exitCode: null, signal: 'SIGTERM' });
        await store.reportRuns(site, [killed(a!), killed(b!)], MAX_ATTEMPTS);
        expect(await states([a!, b!])).toEqual(['QUEUED', 'CANCELLED']);
        expect((await world.events(a!)).at(-1)!.note).toBe(
          `stopped for job_${winner} of class urgent; lost 0.01 core-hours`,
        );
        expect((await world.events(b!)).at(-1)!.cause).toBe('PREEMPTED');
        const found = (await store.loadGrid(0)).jobs.find(({ job }) => job.id === a)?.job;
        expect(found).toMatchObject({ class: 'scavenger', preemptionClass: 0 });
        await store.applyStarts(site, [start(winner!, site, { [machine]: 1 })], null, context());
        await nothingBroken();
      });

      it('takes the queue of a site back that is not up, in portions', async () => {
        const ids = await dispatched(world, user, site, [newJob(), newJob(), newJob()]);
        await store.hold(byIds([ids[2]!]));
        expect(await store.takeBack(site, context(), 10)).toEqual([]);
        await world.setSiteState(site, 'DRAINING');
        expect(await store.takeBack(site, context(), 1)).toEqual([ids[0]]);
        expect(await store.takeBack(site, context(), 10)).toEqual([ids[1]]);
        expect(await states(ids)).toEqual(['QUEUED', 'QUEUED', 'HELD']);
        expect((await store.loadGrid(0)).jobs[0]).toMatchObject({ siteId: null, job: { priority: null } });
        // Released, it does not go back into a queue that is being emptied.
        await store.release(byIds([ids[2]!]));
        expect(await states([ids[2]!])).toEqual(['QUEUED']);
        await nothingBroken();
      });
    });

    describe('starts', () => {
      it('makes runs with new epochs and takes machines', async () => {
        const [a, b] = await dispatched(world, user, site, [
          newJob({ cpusPerTask: 2 }),
          newJob({ tasks: 4 }),
        ]);
        const starts = [start(a!, site, { [machine]: 1 }), start(b!, site, { [machine]: 1, [second]: 3 })];
        expect(await store.applyStarts(site, starts, null, context(T0 + 1))).toEqual({
          accepted: [a, b],
          epochs: [1, 1],
          refused: [],
          outdated: false,
        });
        const { jobs } = await store.loadGrid(0);
        expect(jobs[1]!.run).toEqual({
          jobId: b,
          siteId: site,
          epoch: 1,
          allocations: [
            { machineId: machine, tasks: 1 },
            { machineId: second, tasks: 3 },
          ],
          pools: [],
          start: T0 + 1,
          plannedEnd: T0 + 101,
          limitS: null,
        });
        await nothingBroken();
      });

      it('never over-commits a machine, within a plan or across plans', async () => {
        const ids = await dispatched(world, user, site, [
          newJob({ cpusPerTask: 3 }),
          newJob({ cpusPerTask: 2 }),
          newJob({ memoryMbPerTask: 999 }),
          newJob({ memoryMbPerTask: 2 }),
        ]);
        const outcome = await store.applyStarts(
          site,
          ids.map((id) => start(id, site, { [machine]: 1 })),
          null,
          context(),
        );
        expect(outcome.accepted).toEqual([ids[0], ids[2]]);
        expect(outcome.refused.map(({ why }) => why)).toEqual([
          `machine ${machine} has 1 free CPUs`,
          `machine ${machine} has 0 free CPUs`,
        ]);
        const again = await store.applyStarts(
          site,
          [start(ids[1]!, site, { [machine]: 1 })],
          null,
          context(),
        );
        expect(again.refused).toHaveLength(1);
        expect(
          (await store.applyStarts(site, [start(ids[3]!, site, { [second]: 1 })], null, context())).refused,
        ).toEqual([]);
        await nothingBroken();
      });

      it('takes of each kind of resource, and no more than there is', async () => {
        const tapes = await world.addMachine(site, 'm4', 8, 1_000, [], null, { tape: 3, 'gpu:a100': 1 });
        await vouch(store, site, [tapes], T0);
        const ids = await dispatched(world, user, site, [
          newJob({ tasks: 2, resourcesPerTask: { tape: 1 } }),
          newJob({ resourcesPerTask: { tape: 1, 'gpu:a100': 1 } }),
          newJob({ resourcesPerTask: { tape: 1 } }),
          newJob({ resourcesPerTask: { 'gpu:a100': 1 } }),
          newJob({ resourcesPerTask: { disk: 1 } }),
          newJob(),
        ]);
        const all = ids.map((id, i) => start(id, site, { [tapes]: i === 0 ? 2 : 1 }));
        const outcome = await store.applyStarts(site, all, null, context());
        expect(outcome.accepted).toEqual([ids[0], ids[1], ids[5]]);
        expect(outcome.refused.map(({ why }) => why)).toEqual([
          `machine ${tapes} has 0 tape free`,
          `machine ${tapes} has 0 gpu:a100 free`,
          `machine ${tapes} has 0 disk free`,
        ]);
        await nothingBroken();
        await store.reportRuns(site, [ended(ids[0]!, 1)], MAX_ATTEMPTS);
        const again = await store.applyStarts(site, all.slice(2, 4), null, context());
        expect(again.accepted).toEqual([ids[2]]);
        await nothingBroken();
        const { machines, jobs } = await store.loadGrid(10);
        expect(machines.find(({ id }) => id === tapes)?.resources).toEqual({ tape: 3, 'gpu:a100': 1 });
        expect(jobs.find(({ job }) => job.id === ids[3])?.job.resourcesPerTask).toEqual({ 'gpu:a100': 1 });
      });

      it('puts nothing beside a job that has its machines to itself, and starts it only where nothing runs', async () => {
        const shared = await world.addMachine(site, 'm6', 4, 100, [], 3);
        await vouch(store, site, [shared], T0);
        const ids = await dispatched(world, user, site, [
          newJob({ exclusive: 'MACHINE' }),
          newJob(),
          newJob({ exclusive: 'MACHINE', tasks: 2 }),
          newJob(),
          newJob({ tasks: 2, tasksPerMachine: { min: 2, max: 2 } }),
        ]);
        const on = (i: number, machines: Record<number, number>) => start(ids[i]!, site, machines);
        const plan = [
          on(0, { [machine]: 1 }),
          on(1, { [machine]: 1 }),
          on(2, { [second]: 1, [shared]: 1 }),
          on(3, { [shared]: 1 }),
          on(4, { [machine]: 1, [second]: 1 }),
        ];
        const outcome = await store.applyStarts(site, plan, null, context());
        expect(outcome.accepted).toEqual([ids[0], ids[2]]);
        expect(outcome.refused.map(({ why }) => why)).toEqual([
          `machine ${machine} has 0 free CPUs`,
          `machine ${shared} accepts no further task`,
          `1 tasks are placed on machine ${machine}; the job has 2 to 2 on each`,
        ]);
        await nothingBroken();
        const later = (...i: number[]) =>
          store.applyStarts(
            site,
            i.map((one) => plan[one]!),
            null,
            context(),
          );
        expect((await later(1, 3)).accepted).toEqual([]);
        await store.reportRuns(site, [ended(ids[0]!, 1), ended(ids[2]!, 1)], MAX_ATTEMPTS);
        await nothingBroken();
        expect((await later(1, 3)).accepted).toEqual([ids[1], ids[3]]);
        const [next] = await dispatched(world, user, site, [newJob({ exclusive: 'MACHINE' })]);
        const beside = await store.applyStarts(site, [start(next!, site, { [machine]: 1 })], null, context());
        expect(beside.refused[0]?.why).toBe(`machine ${machine} is not idle`);
        await nothingBroken();
      });

      it('starts all parts of a job or none, and takes of each machine what the parts there ask for', async () => {
        const gpus = await world.addMachine(site, 'm8', 4, 100, [], null, { gpu: 2 });
        await vouch(store, site, [gpus], T0);
        const all = (...parts: Partial<JobPart>[]) => newJob(withParts(parts));
        const gpu = { resourcesPerTask: { gpu: 1 } };
        const ids = await dispatched(world, user, site, [
          all({ cpusPerTask: 4 }, { tasks: 2, memoryMbPerTask: 30, ...gpu }, { memoryMbPerTask: 40 }),
          all({ cpusPerTask: 2 }, { cpusPerTask: 2 }),
          all({ cpusPerTask: 2 }, { exclusive: 'MACHINE' }),
          newJob({ ...gpu }),
        ]);
        const on = (i: number, ...allocations: [number, number][]) => ({
          ...start(ids[i]!, site, {}),
          allocations: allocations.map(([machineId, tasks]) => ({ machineId, tasks })),
        });
        const apply = (...starts: Start[]) => store.applyStarts(site, starts, null, context());
        const refused = await apply(
          on(0, [machine, 1], [gpus, 2], [gpus, 1], [second, 1]),
          on(1, [second, 1], [second, 2]),
          on(2, [second, 1], [second, 1]),
          on(2, [second, 2]),
        );
        expect(refused.accepted).toEqual([]);
        expect(refused.refused.map(({ why }) => why)).toEqual([
          'more tasks are placed than its parts have',
          'part 1: 2 tasks are placed; the job has 1',
          `part 1: machine ${second} is not idle`,
          'part 0: 2 tasks are placed; the job has 1',
        ]);
        await nothingBroken();
        const first = await apply(on(0, [machine, 1], [gpus, 2], [gpus, 1]), on(3, [gpus, 1]));
        expect(first.accepted).toEqual([ids[0]]);
        expect(first.refused[0]?.why).toBe(`machine ${gpus} has 0 gpu free`);
        await nothingBroken();
        const more = await apply(on(1, [second, 1], [gpus, 1]), on(2, [second, 1], [second, 1]));
        expect(more.refused.map(({ why }) => why)).toEqual([
          `part 1: machine ${gpus} has 1 free CPUs`,
          `part 1: machine ${second} is not idle`,
        ]);
        expect((await apply(on(1, [second, 1], [second, 1]))).accepted).toEqual([ids[1]]);
        await nothingBroken();
        const { jobs } = await store.loadGrid(10);
        const known = jobs.find(({ job }) => job.id === ids[0]);
        expect(known?.run?.allocations).toEqual(on(0, [machine, 1], [gpus, 2], [gpus, 1]).allocations);
        expect(known?.job).toMatchObject({
          tasks: 4,
          cpusPerTask: 4,
          parts: [{}, gpu, { memoryMbPerTask: 40 }],
        });
        await store.reportRuns(site, [ended(ids[0]!, 1), ended(ids[1]!, 1)], MAX_ATTEMPTS);
        await nothingBroken();
        expect((await apply(on(3, [gpus, 1]), on(2, [machine, 1], [second, 1]))).accepted).toEqual([
          ids[3],
          ids[2],
        ]);
        await nothingBroken();
      });

      it('keeps the machines of those parts for the user that ask for it, and no others', async () => {
        const other = await world.addUser('zoe');
        const both = newJob(withParts([{ exclusive: 'USER' }, {}]));
        const mine = await dispatched(world, user, site, [both, newJob(), both]);
        const others = await dispatched(world, other, site, [newJob(), newJob()]);
        const on = (id: number, ...machines: number[]): Start => ({
          ...start(id, site, {}),
          allocations: machines.map((machineId) => ({ machineId, tasks: 1 })),
        });
        const apply = (...starts: Start[]) => store.applyStarts(site, starts, null, context());
        expect((await apply(on(mine[0]!, machine, second))).accepted).toEqual([mine[0]]);
        await nothingBroken();
        const beside = await apply(on(others[0]!, machine), on(others[1]!, second), on(mine[1]!, machine));
        expect(beside.accepted).toEqual([others[1], mine[1]]);
        expect(beside.refused[0]?.why).toBe(`machine ${machine} has runs of another user`);
        const next = await apply(on(mine[2]!, second, machine));
        expect(next.refused[0]?.why).toBe(`part 0: machine ${second} has runs of another user`);
        await nothingBroken();
        await store.reportRuns(site, [ended(mine[0]!, 1), ended(mine[1]!, 1)], MAX_ATTEMPTS);
        expect((await apply(on(others[0]!, machine))).accepted).toEqual([others[0]]);
        await nothingBroken();
        // Both parts on one machine, which only they have.
        await store.reportRuns(site, [ended(others[0]!, 1), ended(others[1]!, 1)], MAX_ATTEMPTS);
        const [last] = await dispatched(world, other, site, [newJob()]);
        expect((await apply(on(mine[2]!, second, second))).accepted).toEqual([mine[2]]);
        expect((await apply(on(last!, second))).refused[0]?.why).toBe(
          `machine ${second} has runs of another user`,
        );
        await nothingBroken();
      });

      it('keeps machines for the user of a job that asks for it: nobody else is put there, and it goes where nobody else is', async () => {
        const shared = await world.addMachine(site, 'm7', 4, 100, [], 3);
        await vouch(store, site, [shared], T0);
        const other = await world.addUser('zoe');
        const mine = await dispatched(world, user, site, [
          newJob({ exclusive: 'USER' }),
          newJob(),
          newJob({ exclusive: 'USER', tasks: 2 }),
          newJob({ exclusive: 'MACHINE' }),
        ]);
        const others = await dispatched(world, other, site, [
          newJob(),
          newJob(),
          newJob({ exclusive: 'USER' }),
        ]);
        const starts = (...pairs: [number, Record<number, number>][]) =>
          store.applyStarts(
            site,
            pairs.map(([id, on]) => start(id, site, on)),
            null,
            context(),
          );
        const first = await starts(
          [mine[0]!, { [machine]: 1 }],
          [others[0]!, { [machine]: 1 }],
          [others[1]!, { [second]: 1 }],
          [mine[2]!, { [second]: 1, [shared]: 1 }],
        );
        expect(first.accepted).toEqual([mine[0], others[1]]);
        expect(first.refused.map(({ why }) => why)).toEqual([
          `machine ${machine} has runs of another user`,
          `machine ${second} has runs of another user`,
        ]);
        await nothingBroken();
        const next = await starts(
          [others[2]!, { [machine]: 1 }],
          [mine[3]!, { [machine]: 1 }],
          [mine[1]!, { [machine]: 1 }],
        );
        expect(next.accepted).toEqual([mine[1]]);
        expect(next.refused.map(({ why }) => why)).toEqual([
          `machine ${machine} has runs of another user`,
          `machine ${machine} is not idle`,
        ]);
        await nothingBroken();
        // As long as one keeps it.
        await store.reportRuns(site, [ended(mine[0]!, 1), ended(others[1]!, 1)], MAX_ATTEMPTS);
        const last = await starts([others[0]!, { [machine]: 1 }], [mine[2]!, { [second]: 1, [shared]: 1 }]);
        expect(last.accepted).toEqual([others[0], mine[2]]);
        await nothingBroken();
      });

      it('gives devices by name: no two runs have one, neighbors go to one task, and what is given back is given again', async () => {
        const of = { kind: 'gpu', model: 'a100', memoryMb: 40_000, shares: 1 };
        const gpus = ['g0', 'g1', 'g2', 'g3'].map((id) => ({
          ...of,
          id,
          link: id < 'g2' ? 'left' : 'right',
        }));
        const shard = { ...of, id: 's0', kind: 'shard', shares: 3, link: null };
        const boxes = await world.addMachine(site, 'm5', 8, 1_000, [], null, { tape: 1 }, [...gpus, shard]);
        await vouch(store, site, [boxes], T0);
        const ids = await dispatched(world, user, site, [
          newJob({ resourcesPerTask: { gpu: 1 } }),
          newJob({ tasks: 2, resourcesPerTask: { gpu: 1, shard: 1 } }),
          newJob({ resourcesPerTask: { gpu: 2 } }),
          newJob({ resourcesPerTask: { shard: 1, gpu: 1 } }),
          newJob({ resourcesPerTask: { shard: 1 } }),
        ]);
        const begin = (i: number, tasks = 1) =>
          store.applyStarts(site, [start(ids[i]!, site, { [boxes]: tasks })], null, context());
        const devicesOf = async (): Promise<Record<string, readonly string[]>> => {
          const { assignments } = await store.assignments(site, null, 100, 1e9);
          return Object.fromEntries(
            assignments.map(({ jobId, machines }) => [ids.indexOf(jobId), machines[0]?.devices ?? []]),
          );
        };
        expect(
          (
            await store.applyStarts(
              site,
              [0, 1].map((i) => start(ids[i]!, site, { [boxes]: i + 1 })),
              null,
              context(),
            )
          ).refused,
        ).toEqual([]);
        expect(await devicesOf()).toEqual({ 0: ['g0'], 1: ['g2', 's0/0', 'g3', 's0/1'] });
        await nothingBroken();
        expect((await begin(2)).refused[0]?.why).toBe(`machine ${boxes} has 1 gpu free`);
        expect((await begin(3)).refused).toEqual([]);
        expect((await begin(4)).refused[0]?.why).toBe(`machine ${boxes} has 0 shard free`);
        await store.reportRuns(site, [ended(ids[1]!, 1)], MAX_ATTEMPTS);
        await nothingBroken();
        expect((await begin(2)).refused).toEqual([]);
        expect((await begin(4)).refused).toEqual([]);
        const had = { 0: ['g0'], 2: ['g2', 'g3'], 3: ['g1', 's0/2'], 4: ['s0/0'] };
        expect(await devicesOf()).toEqual(had);
        await nothingBroken();
        // Schedulers know which are taken.
        const { jobs } = await store.loadGrid(10);
        const known = jobs.flatMap(({ job, run }) => (run ? [[ids.indexOf(job.id), run.devices?.[0]]] : []));
        expect(Object.fromEntries(known)).toEqual(had);
        const machine = (await store.loadGrid(10)).machines.find(({ id }) => id === boxes);
        expect(machine?.resources).toEqual({ tape: 1, gpu: 4, shard: 3 });
        expect(machine?.devices).toEqual([...gpus, shard]);
      });

      it('gives devices by what they are: model, memory and share, of unlike devices of one kind, and to one user where it has to be', async () => {
        const of = { kind: 'gpu', model: 'a100', shares: 4, link: null };
        const gpus = [
          { ...of, id: 'g0', memoryMb: 40_000 },
          { ...of, id: 'g1', memoryMb: 80_000, oneUser: true },
          { ...of, id: 'g2', memoryMb: 80_000, model: 'h100' },
        ];
        const box = await world.addMachine(site, 'm5', 12, 1_000, [], null, { tape: 1 }, gpus);
        await vouch(store, site, [box], T0);
        const any = { kind: 'gpu', count: 1, model: null, minMemoryMb: null, share: null };
        const quarter = { parts: 1, of: 4 };
        const asking = (...requests: object[]) => ({
          resourcesPerTask: {},
          devicesPerTask: requests.map((request) => ({ ...any, ...request })),
        });
        const ids = await dispatched(world, user, site, [
          // The one that is larger and of this model, though others are idle.
          newJob(asking({ model: 'a100', minMemoryMb: 60_000, share: quarter })),
          newJob(asking({ model: 'a100', share: quarter })),
          newJob(asking({ model: 'a100', share: { parts: 3, of: 4 } })),
          newJob(asking({ model: 'v100' })),
          newJob(asking({}, { share: quarter })),
          newJob(withParts([asking({ model: 'h100' }), asking({ share: quarter })])),
        ]);
        const theirs = await dispatched(world, await world.addUser('other'), site, [
          newJob(asking({ model: 'a100', minMemoryMb: 80_000, share: quarter })),
          newJob({ tasks: 2, ...asking({ minMemoryMb: 15_000, share: quarter }) }),
          newJob(asking({ model: 'a100', share: quarter })),
        ]);
        const begin = async (id: number, tasks: number[] = [1]) => {
          const allocations = tasks.map((count) => ({ machineId: box, tasks: count }));
          const all = { ...start(id, site, {}), allocations };
          const { refused } = await store.applyStarts(site, [all], null, context());
          await nothingBroken();
          return refused[0]?.why ?? null;
        };
        const devicesOf = async (id: number) => {
          const { assignments } = await store.assignments(site, null, 100, 1e9);
          return assignments.find(({ jobId }) => jobId === id)?.machines.map((on) => on.devices);
        };
        const few = `machine ${box} has too few free devices of those that are requested`;
        expect(await begin(ids[0]!)).toBe(null);
        expect(await devicesOf(ids[0]!)).toEqual([['g1/0']]);
        // The device is another user's, as long as any of it is.
        expect(await begin(theirs[0]!)).toBe(few);
        expect(await begin(ids[3]!)).toBe(few);
        expect(await begin(theirs[1]!, [2])).toBe(null);
        expect(await devicesOf(theirs[1]!)).toEqual([['g0/0', 'g0/1']]);
        expect(await begin(ids[1]!)).toBe(null);
        expect(await devicesOf(ids[1]!)).toEqual([['g0/2']]);
        // One share is free of the one, and no memory; three are free of the other, and memory for one.
        expect(await begin(theirs[2]!)).toBe(few);
        expect(await begin(ids[2]!)).toBe(few);
        expect(await begin(ids[5]!, [1, 1])).toBe(null);
        expect(await devicesOf(ids[5]!)).toEqual([['g2/0', 'g2/1', 'g2/2', 'g2/3'], ['g1/1']]);
        expect(await begin(ids[4]!)).toBe(few);
        const over = [ids[0]!, ids[1]!, ids[5]!, theirs[1]!].map((id) => ended(id, 1));
        await store.reportRuns(site, over, MAX_ATTEMPTS);
        for (const id of [theirs[0]!, ids[2]!, ids[4]!]) expect(await begin(id)).toBe(null);
      });

      it('takes places and memory of a time-shared machine, no CPUs, and one task of a job', async () => {
        const shared = await world.addMachine(site, 'm3', 2, 100, [], 3);
        await vouch(store, site, [shared], T0);
        const ids = await dispatched(world, user, site, [
          newJob({ cpusPerTask: 2 }),
          newJob({ tasks: 2 }),
          newJob({ cpusPerTask: 3 }),
          newJob({ tasks: 2 }),
          newJob({ memoryMbPerTask: 101 }),
          newJob(),
          newJob(),
        ]);
        const on = (i: number, machines: Record<number, number>) => start(ids[i]!, site, machines);
        const plan = [
          on(0, { [shared]: 1 }),
          on(1, { [shared]: 2 }),
          on(2, { [shared]: 1 }),
          on(3, { [shared]: 1, [machine]: 1 }),
          on(4, { [shared]: 1 }),
          on(5, { [shared]: 1 }),
          on(6, { [shared]: 1 }),
        ];
        const outcome = await store.applyStarts(site, plan, null, context());
        expect(outcome.accepted).toEqual([ids[0], ids[3], ids[5]]);
        expect(outcome.refused.map(({ why }) => why)).toEqual([
          `machine ${shared} accepts one task of a job`,
          `machine ${shared} has 2 free CPUs`,
          `machine ${shared} has 100 MB free`,
          `machine ${shared} accepts no further task`,
        ]);
        await nothingBroken();
        await store.reportRuns(site, [ended(ids[3]!, 1)], 3);
        const again = await store.applyStarts(site, [on(6, { [shared]: 1 })], null, context());
        expect(again.accepted).toEqual([ids[6]]);
        await nothingBroken();
        const { machines } = await store.loadGrid(1);
        expect(machines.map(({ maxTasks }) => maxTasks)).toEqual([null, null, null, 3]);
      });

      it('runs no more jobs at a site than it may', async () => {
        const few = await world.addSite('few', 2);
        const large = await world.addMachine(few, 'm1', 64);
        await vouch(store, few, [large], T0);
        const ids = await dispatched(
          world,
          user,
          few,
          Array.from({ length: 4 }, () => newJob()),
        );
        const plan = (from: number) => ids.slice(from).map((id) => start(id, few, { [large]: 1 }));
        const outcome = await store.applyStarts(few, plan(0), null, context());
        expect(outcome.accepted).toEqual(ids.slice(0, 2));
        expect(outcome.refused.map(({ why }) => why)).toEqual(
          Array(2).fill('the site is at its limit of running jobs'),
        );
        expect((await store.applyStarts(few, plan(2), null, context())).accepted).toEqual([]);
        await store.reportRuns(few, [ended(ids[0]!, 1)], 3);
        expect((await store.applyStarts(few, plan(2), null, context())).accepted).toEqual([ids[2]]);
        await nothingBroken();
        const { sites } = await store.loadGrid(1);
        expect(sites.map(({ maxRunningJobs }) => maxRunningJobs)).toEqual([null, null, 2]);
      });

      it('never over-commits licenses; the grid-wide pool is one for all sites', async () => {
        const pool = await world.addLicense('cad', 2, null);
        const own = await world.addLicense('cad', 1, site);
        const jobs = Array.from({ length: 4 }, () => newJob({ licenses: ['cad'] }));
        const here = await dispatched(world, user, site, jobs);
        const there = await dispatched(world, user, other, jobs);
        const plan = (ids: number[], at: number, on: number, licenses: number[]) =>
          ids.map((id, i) => start(id, at, { [on]: 1 }, [licenses[i]!]));
        const first = await store.applyStarts(
          site,
          plan(here, site, machine, [own, own, pool, pool]),
          null,
          context(),
        );
        expect(first.accepted).toEqual([here[0], here[2], here[3]]);
        const next = await store.applyStarts(
          other,
          plan(there, other, elsewhere, [pool, own, own, own]),
          null,
          context(),
        );
        expect(next.accepted).toEqual([]);
        await store.reportRuns(site, [ended(here[2]!, 1)], MAX_ATTEMPTS);
        const last = await store.applyStarts(
          other,
          plan(there, other, elsewhere, [pool, pool, pool, pool]),
          null,
          context(),
        );
        expect(last.accepted).toEqual([there[0]]);
        // Nor a job with other kinds than it asks for.
        await store.reportRuns(site, [ended(here[0]!, 1)], MAX_ATTEMPTS);
        const none = [
          start(here[1]!, site, { [machine]: 1 }),
          start(here[1]!, site, { [machine]: 1 }, [own, pool]),
        ];
        expect((await store.applyStarts(site, none, null, context())).accepted).toEqual([]);
        await nothingBroken();
      });

      it('takes as many copies of a license as a job asks for, of several pools, and gives all back', async () => {
        const pool = await world.addLicense('cad', 2, null);
        const own = await world.addLicense('cad', 2, site);
        const jobs = Array.from({ length: 3 }, () => newJob({ licenses: ['cad', 'cad', 'cad'] }));
        const [first, second, third] = (await dispatched(world, user, site, jobs)) as [
          number,
          number,
          number,
        ];
        const tried = async (...starts: ReturnType<typeof start>[]) =>
          (await store.applyStarts(site, starts, null, context())).accepted;
        const on = { [machine]: 1 };
        // Too few, too many, more of a pool than it has.
        const short = [
          [own, pool],
          [own, own, pool, pool],
          [own, own, own],
        ];
        for (const ids of short) expect(await tried(start(first, site, on, ids))).toEqual([]);
        expect(await tried(start(first, site, on, [own, own, pool]))).toEqual([first]);
        expect(await tried(start(second, site, on, [own, pool, pool]))).toEqual([]);
        await nothingBroken();
        await store.reportRuns(site, [ended(first, 1)], MAX_ATTEMPTS);
        const both = [start(second, site, on, [own, pool, pool]), start(third, site, on, [own, own, pool])];
        expect(await tried(...both)).toEqual([second]);
        await nothingBroken();
      });

      it('takes amounts of pools, of several, never more than there is, and gives all back', async () => {
        const own = await world.addLicense('scratch', 5_000, site);
        const pool = await world.addLicense('scratch', 2_147_483_647, null);
        const tape = await world.addLicense('tape', 2, site);
        const jobs = [6_000, 2_147_483_647, 1_000].map((scratch) => newJob({ resources: { scratch } }));
        const ids = await dispatched(world, user, site, [
          ...jobs,
          newJob({ licenses: ['tape'], resources: { tape: 1 } }),
        ]);
        const [first, second, third, both] = ids as [number, number, number, number];
        const tried = async (jobId: number, ...pools: [id: number, amount: number][]) => {
          const of = pools.map(([id, amount]) => ({ id, amount }));
          const asked = { ...start(jobId, site, { [machine]: 1 }), pools: of };
          const { accepted, refused } = await store.applyStarts(site, [asked], null, context());
          return accepted.length > 0 ? 'STARTED' : refused[0]?.why;
        };
        // Too little, too much, more of a pool than it has, and another kind.
        const asked = 'not those it requests (scratch:6000)';
        expect(await tried(first, [own, 5_000])).toBe(`its licenses (scratch:5000) are ${asked}`);
        expect(await tried(first, [own, 5_000], [pool, 1_001])).toBe(
          `its licenses (scratch:6001) are ${asked}`,
        );
        expect(await tried(first, [own, 6_000])).toBe(`license ${own} has too few free copies`);
        expect(await tried(first, [tape, 1], [own, 5_000])).toMatch(asked);
        expect(await tried(first)).toBe(`its licenses (none) are ${asked}`);
        const held = [
          { id: own, amount: 5_000 },
          { id: pool, amount: 1_000 },
        ];
        expect(await tried(first, [own, 5_000], [pool, 1_000])).toBe('STARTED');
        const runs = async () => (await store.loadGrid(10)).jobs.flatMap(({ run }) => run ?? []);
        expect(await runs()).toMatchObject([{ jobId: first, pools: held }]);
        expect(await tried(second, [pool, 2_147_483_647])).toBe(`license ${pool} has too few free copies`);
        await nothingBroken();
        // What is reserved and promised is kept with its amounts.
        const kept = reservation(site, third, machine, { pools: [{ id: own, amount: 1_000 }] });
        await store.applyStarts(site, [], kept, context());
        expect(await store.reservations()).toEqual([kept]);
        // A license that is listed, and an amount of the same kind.
        expect(await tried(both, [tape, 1])).toMatch('not those it requests (tape:2)');
        expect(await tried(both, [tape, 2])).toBe('STARTED');
        await store.reportRuns(site, [ended(first, 1)], MAX_ATTEMPTS);
        expect(await tried(second, [pool, 2_147_483_647])).toBe('STARTED');
        expect(await tried(third, [own, 1_000])).toBe('STARTED');
        await nothingBroken();
        for (const id of [second, third, both]) await store.reportRuns(site, [ended(id, 1)], MAX_ATTEMPTS);
        expect(await runs()).toEqual([]);
        await nothingBroken();
      });

      it('refuses jobs that are elsewhere, sites that are not up, machines that are not available', async () => {
        const [a, b, c] = await dispatched(world, user, site, [newJob(), newJob(), newJob()]);
        const silent = await world.addMachine(site, 'm3', 4);
        const one = async (id: number, on: number, at = site) =>
          (await store.applyStarts(at, [start(id, at, { [on]: 1 })], null, context())).refused[0]?.why;
        expect(await one(a!, silent)).toBe(`machine ${silent} is not available`);
        expect(await one(a!, elsewhere)).toBe(`machine ${elsewhere} is not available`);
        expect(await one(a!, 999)).toBe('machine 999 is not available');
        expect(await one(a!, elsewhere, other)).toBeDefined();
        expect(await one(999, machine)).toBeDefined();
        await world.setMachineState(machine, 'DRAINING');
        expect(await one(a!, machine)).toBe(`machine ${machine} is not available`);
        expect(await one(a!, second)).toBeUndefined();
        expect(await one(a!, second)).toBeDefined();
        await store.hold(byIds([b!]));
        expect(await one(b!, second)).toBeDefined();
        await world.setSiteState(site, 'DRAINING');
        expect(await one(c!, second)).toBeDefined();
        await nothingBroken();
      });

      it('refuses a start that does not place all tasks, or names a machine or a job twice', async () => {
        const [a, b] = await dispatched(world, user, site, [newJob({ tasks: 2 }), newJob()]);
        const twice = { ...start(a!, site, { [machine]: 1 }) };
        twice.allocations = [twice.allocations[0]!, twice.allocations[0]!];
        const plan = [
          start(a!, site, { [machine]: 1 }),
          twice,
          start(b!, site, { [machine]: 1 }),
          start(b!, site, { [second]: 1 }),
        ];
        const outcome = await store.applyStarts(site, plan, null, context());
        expect(outcome.accepted).toEqual([b]);
        expect(outcome.refused.map(({ jobId }) => jobId)).toEqual([a, a, b]);
        await nothingBroken();
      });

      it("keeps a site's reservation until it changes or its job does not wait there", async () => {
        const [a, b] = await dispatched(world, user, site, [newJob(), newJob()]);
        const kept = reservation(site, a!, machine);
        await store.applyStarts(site, [], kept, context());
        expect(await store.reservations()).toEqual([kept]);
        await store.applyStarts(site, [], kept, context());
        await store.applyStarts(site, [], { ...kept, at: T0 + 60.5, pools: [] }, context());
        expect(await store.reservations()).toEqual([{ ...kept, at: T0 + 60.5 }]);
        expect((await store.loadGrid(0)).reservations).toHaveLength(1);
        await store.applyStarts(site, [start(a!, site, { [machine]: 1 })], kept, context());
        expect(await store.reservations()).toEqual([]);
        await store.applyStarts(site, [], reservation(site, b!, second), context());
        expect(await store.reservations()).toHaveLength(1);
        await store.applyStarts(site, [], null, context());
        expect(await store.reservations()).toEqual([]);
      });

      it('keeps what a site promises, and refuses a plan as a whole that was made on other promises', async () => {
        const [a, b, c] = await dispatched(world, user, site, [newJob(), newJob(), newJob()]);
        const promised: PromisesImage = {
          room: { runs: 1, amounts: { cpus: 3, memoryMb: 900, gpu: 2 }, copies: [[7, 2]] },
          // Exact, to be compared with planned ends: no rounding to milliseconds.
          jobs: [
            {
              jobId: b!,
              at: T0 + 100 / 3,
              allocations: [{ machineId: machine, tasks: 1 }],
              pools: [{ id: 7, amount: 2 }],
              work: 1e4 / 3,
              madeAt: T0 + 1 / 7,
            },
          ],
        };
        const plan = (jobId: number, revision: number, promises: PromisesImage | null) =>
          store.applyStarts(site, [start(jobId, site, { [machine]: 1 })], null, context(), {
            revision,
            promises,
          });
        expect(await store.promises(site)).toEqual({ revision: 0, promises: null });
        expect(await plan(a!, 0, promised)).toMatchObject({ accepted: [a], outdated: false });
        expect(await store.promises(site)).toEqual({ revision: 1, promises: promised });
        expect(await store.promises(other)).toEqual({ revision: 0, promises: null });

        const before = (await store.loadGrid(0)).cursor;
        for (const revision of [0, 2]) {
          const late = await plan(b!, revision, null);
          expect(late).toMatchObject({ accepted: [], refused: [{ jobId: b }], outdated: true });
        }
        expect((await store.loadGrid(0)).cursor).toBe(before);
        expect(await store.promises(site)).toEqual({ revision: 1, promises: promised });

        // Of several at once one is carried out.
        const outcomes = await Promise.all([b, c, b].map((jobId) => plan(jobId!, 1, promised)));
        expect(outcomes.filter(({ outdated }) => !outdated)).toHaveLength(1);
        expect(await store.promises(site)).toEqual({ revision: 2, promises: promised });

        // A policy that does not promise drops them, once; who still thinks so is refused.
        for (let cycle = 0; cycle < 2; cycle++) {
          await store.applyStarts(site, [], null, context());
          expect(await store.promises(site)).toEqual({ revision: 3, promises: null });
        }
        expect(await plan(c!, 2, null)).toMatchObject({ outdated: true });
        expect(await plan(c!, 3, promised)).toMatchObject({ outdated: false });
        expect(await store.promises(site)).toEqual({ revision: 4, promises: promised });
        await nothingBroken();
      });
    });

    describe('what is held', () => {
      const hold = (change: Partial<NewHold> = {}): NewHold => ({
        ...{ kind: 'MAINTENANCE', name: null, siteId: site, userId: user, held: { of: 'SITE' } },
        ...{ onConflict: 'REFUSE', reason: null, times: [{ from: T0 + 100, to: T0 + 200 }] },
        ...{ shared: [], recurrence: null, idleS: null, userIds: [], ...change },
      });
      const someOf = (machineId: number, cpus: number): NewHold['held'] => ({
        of: 'MACHINES',
        machineIds: [machineId],
        amounts: { cpus },
      });
      const refusals = async (id: number, on: number, now: number) =>
        (await store.applyStarts(site, [start(id, site, { [on]: 1 })], null, context(now))).refused;

      it('is told to schedulers until it is over, or canceled', async () => {
        const window = {
          by: 'WINDOW',
          ends: 'LIMIT',
          siteId: site,
          machines: [],
          pools: [],
          reservation: null,
        };
        const { cursor } = await store.loadGrid(10);
        const { id } = await world.createHold(hold());
        const changes = await store.changesSince(cursor, 100);
        if (changes === 'too-old') throw new Error(changes);
        const known = [{ id: 1, from: T0 + 100, to: T0 + 200, ...window }];
        expect(changes.directory?.holds).toEqual(known);
        expect((await store.loadGrid(10)).holds).toEqual(known);
        const { touched } = await store.sweep(rules(T0 + 200));
        expect(touched.sort()).toEqual([null, site].sort());
        expect((await store.loadGrid(10)).holds).toEqual([]);
        await expect(
          (async () => world.createHold(hold({ name: 'a', times: [{ from: T0, to: null }] })))(),
        ).resolves.toMatchObject({ id: (id as number) + 1 });
        expect((await store.loadGrid(10)).holds).toEqual([{ id: 2, from: T0, to: Infinity, ...window }]);
        await world.cancelHold((id as number) + 1);
        expect((await store.loadGrid(10)).holds).toEqual([]);
      });

      it('cancels what waits of a group of which nothing has run or changed for as long as it allows', async () => {
        const groupOf = async (idleTimeoutS: number | null) => {
          const accepted = await store.submit({
            ...{ userId: user, idempotencyKey: null, payloadHash: '', now: T0 },
            ...{
              group: { name: null, template: {}, idleTimeoutS },
              jobs: [newJob(), newJob({ held: true })],
            },
          });
          if (accepted.kind !== 'accepted') throw new Error(accepted.kind);
          return accepted.jobIds as [number, number];
        };
        const [idle, busy, patient] = [await groupOf(60), await groupOf(60), await groupOf(null)];
        const now = Date.now() / 1000;
        await store.sweep(rules(T0 + 59));
        expect(await states([...idle, ...busy, ...patient])).toEqual(
          [0, 1, 2].flatMap(() => ['QUEUED', 'HELD']),
        );
        // Any change is a sign of life.
        await store.reprioritize(byIds([idle[0]]), -1);
        await store.applyMoves([move(busy[0], site)], context());
        await store.applyStarts(site, [start(busy[0], site, { [machine]: 1 })], null, context());
        await store.sweep(rules(now + 50));
        expect(await states(idle)).toEqual(['QUEUED', 'HELD']);
        const { touched } = await store.sweep(rules(now + 70));
        expect(touched).toContain(null);
        expect(await states([...idle, ...busy, ...patient])).toEqual([
          ...['CANCELLED', 'CANCELLED', 'ASSIGNED', 'HELD', 'QUEUED', 'HELD'],
        ]);
        expect(((await world.events(idle[1])).at(-1) as EventRow).cause).toBe('IDLE_TIMEOUT');
      });

      it('tells the next times of many, and the others when those are over', async () => {
        const times = Array.from({ length: 10 }, (_, i) => ({
          from: T0 + 100 * i + 50,
          to: T0 + 100 * i + 100,
        }));
        await world.createHold(hold({ times }));
        const known = async () => (await store.loadGrid(10)).holds.map(({ from }) => (from - T0 - 50) / 100);
        expect(await known()).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
        await store.sweep(rules(T0 + 100));
        expect(await known()).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
      });

      it('keeps out runs that may reach into it, and lets those go that end in time', async () => {
        const jobs = [{}, { runTimeLimitS: 101 }, { runTimeLimitS: 100 }].map(newJob);
        const [unlimited, long, short] = (await dispatched(world, user, site, jobs)) as [
          number,
          number,
          number,
        ];
        await world.createHold(hold());
        expect(await refusals(unlimited, machine, T0)).toMatchObject([{ jobId: unlimited }]);
        expect(await refusals(long, machine, T0)).toMatchObject([{ jobId: long }]);
        expect(await refusals(short, machine, T0)).toEqual([]);
        expect(await refusals(long, machine, T0 + 199)).toHaveLength(1);
        expect(await refusals(long, machine, T0 + 200)).toEqual([]);
        await nothingBroken();
      });

      it("counts the site's limit for a job without one, as it was when the job started", async () => {
        const [early, own, late, other] = (await dispatched(world, user, site, [
          newJob({ cpusPerTask: 1 }),
          newJob({ cpusPerTask: 1, runTimeLimitS: 50 }),
          newJob({ cpusPerTask: 1 }),
          newJob({ cpusPerTask: 1 }),
        ])) as [number, number, number, number];
        const { id } = await world.createHold(hold());
        expect(await refusals(early, machine, T0)).toHaveLength(1);
        await world.setMaxLimit(site, 101);
        expect(await refusals(early, machine, T0)).toHaveLength(1);
        await world.setMaxLimit(site, 100);
        for (const job of [early, own]) expect(await refusals(job, machine, T0)).toEqual([]);
        await world.cancelHold(id as number);
        await world.setMaxLimit(site, 300);
        expect(await refusals(late, machine, T0)).toEqual([]);
        await world.setMaxLimit(site, null);
        expect(await refusals(other, machine, T0)).toEqual([]);
        await world.setMaxLimit(site, 10);

        const limits = [100, 50, 300, null];
        const { jobs } = await store.loadGrid(10);
        expect(jobs.map(({ run }) => run?.limitS)).toEqual(limits);
        const { assignments } = await store.assignments(site, null, 10, 1e6);
        expect(assignments.map(({ runTimeLimitS }) => runTimeLimitS)).toEqual(limits);
        const inTheWay = async (from: number) =>
          (await world.createHold(hold({ times: [{ from: T0 + from, to: T0 + from + 1 }] }))).runs;
        expect(await inTheWay(49)).toEqual([early, own, late, other]);
        expect(await inTheWay(99)).toEqual([early, late, other]);
        expect(await inTheWay(100)).toEqual([late, other]);
        expect(await inTheWay(300)).toEqual([other]);
        await nothingBroken();
      });

      describe('of pools', () => {
        let [own, shared, elsewhere]: number[] = [];
        beforeEach(async () => {
          own = await world.addLicense('cad', 2, site);
          shared = await world.addLicense('cad', 3, null);
          elsewhere = await world.addSite('elsewhere');
        });
        const someOfPool = (amount: number, change: Partial<NewHold> = {}) =>
          hold({ kind: 'USER', held: someOf(machine, 1), shared: [{ kind: 'cad', amount }], ...change });
        const licensed = (copies: number, change: Partial<NewJob> = {}) =>
          newJob({ licenses: Array.from({ length: copies }, () => 'cad'), cpusPerTask: 1, ...change });
        const using = (pools: Record<number, number>): Partial<Start> => ({
          pools: Object.entries(pools).map(([id, amount]) => ({ id: Number(id), amount })),
        });
        const refused = async (id: number, pools: Record<number, number>, now: number, on = machine) => {
          const asked = { ...start(id, site, { [on]: 1 }), ...using(pools) };
          return (await store.applyStarts(site, [asked], null, context(now))).refused;
        };

        it("takes the site's own first, is told to schedulers, and no others share it", async () => {
          expect(await world.createHold(someOfPool(4))).toMatchObject({
            id: 1,
            pools: [
              { id: own, kind: 'cad', amount: 2 },
              { id: shared, kind: 'cad', amount: 2 },
            ],
          });
          expect((await store.loadGrid(10)).holds).toMatchObject([
            {
              pools: [
                { id: own, amount: 2 },
                { id: shared, amount: 2 },
              ],
            },
          ]);
          // What is left is the grid's: at another site, too.
          const other = {
            siteId: elsewhere,
            held: { of: 'MACHINES', machineIds: [], amounts: null },
          } as const;
          expect(await world.createHold(someOfPool(2, other))).toMatchObject({ id: null, holds: [1] });
          expect(await world.createHold(someOfPool(1, other))).toMatchObject({ holds: [], fault: null });
          expect(await world.createHold(someOfPool(6))).toMatchObject({
            fault: 'the site and the grid have 5 cad; 6 are requested',
          });
          await nothingBroken();
        });

        it('keeps out runs that may reach into it, and has those of its jobs', async () => {
          const { id: reservation } = await world.createHold(someOfPool(2, { held: someOf(machine, 2) }));
          const [long, short, two, inside, more] = (await dispatched(world, user, site, [
            licensed(1, { runTimeLimitS: 101 }),
            licensed(1, { runTimeLimitS: 100 }),
            licensed(2),
            licensed(2, { runTimeLimitS: 50, reservationId: reservation }),
            licensed(1, { runTimeLimitS: 50, reservationId: reservation }),
          ])) as [number, number, number, number, number];
          expect(await refused(long, { [own as number]: 1 }, T0, second)).toHaveLength(1);
          expect(await refused(short, { [own as number]: 1 }, T0, second)).toEqual([]);
          // The grid's are nobody's.
          expect(await refused(two, { [shared as number]: 2 }, T0, second)).toEqual([]);
          // The run from before has one of them.
          expect(await refused(inside, { [own as number]: 2 }, T0 + 110)).toHaveLength(1);
          await store.reportRuns(site, [ended(short, 1, { at: T0 + 110 })], 3);
          expect(await refused(long, { [own as number]: 1 }, T0 + 120, second)).toHaveLength(1);
          expect(await refused(inside, { [own as number]: 2 }, T0 + 120)).toEqual([]);
          expect(await refused(more, { [own as number]: 1 }, T0 + 120)).toHaveLength(1);
          await nothingBroken();
        });

        it('conflicts with runs that may still have it, at any site, and stops those of its own', async () => {
          const now = Date.now() / 1000;
          const times = [{ from: now + 20, to: now + 90 }];
          const [first, second] = (await dispatched(world, user, site, [licensed(2), licensed(2)])) as [
            number,
            number,
          ];
          const both = [
            { ...start(first, site, { [machine]: 1 }), ...using({ [own as number]: 2 }) },
            { ...start(second, site, { [machine]: 1 }), ...using({ [shared as number]: 2 }) },
          ];
          expect((await store.applyStarts(site, both, null, context(now))).refused).toEqual([]);
          const asked = { times, held: { of: 'MACHINES', machineIds: [], amounts: null } } as const;
          // One is free, and it is the grid's.
          const closed = (amount: number, change: Partial<NewHold> = {}) =>
            someOfPool(amount, { kind: 'MAINTENANCE', ...asked, ...change });
          expect(await world.createHold(closed(2), now)).toMatchObject({ id: null, runs: [first] });
          expect(await world.createHold(closed(3, { siteId: elsewhere }), now)).toMatchObject({
            ...{ id: null, runs: [second] },
          });
          expect(await world.createHold(closed(3, { onConflict: 'PREEMPT' }), now)).toMatchObject({
            fault: null,
          });
          await store.sweep(rules(now + 5));
          expect(await states([first, second])).toEqual(['CANCELLING', 'ASSIGNED']);
          await nothingBroken();
        });
      });

      it('leaves what is beside the amounts that it takes', async () => {
        const [narrow, wide] = (await dispatched(world, user, site, [
          newJob({ cpusPerTask: 1 }),
          newJob({ cpusPerTask: 2 }),
        ])) as [number, number];
        const { id } = await world.createHold(hold({ kind: 'USER', held: someOf(machine, 3) }));
        expect(id).not.toBeNull();
        expect(await refusals(wide, machine, T0)).toHaveLength(1);
        expect(await refusals(wide, machine, T0 + 150)).toHaveLength(1);
        expect(await refusals(narrow, machine, T0 + 150)).toEqual([]);
        expect(await refusals(wide, second, T0 + 150)).toEqual([]);
      });

      it('is changed: when it is, of what, and what becomes of runs; other holds and runs may be in the way', async () => {
        const times = async () =>
          (await store.loadGrid(10)).holds.map(({ from, to, machines, siteId }) => [
            from - T0,
            to - T0,
            machines.map(({ machineId }) => machineId),
            siteId,
          ]);
        const { cursor } = await store.loadGrid(10);
        await world.createHold(hold());
        const [long] = (await dispatched(world, user, site, [newJob({ runTimeLimitS: 300 })])) as [number];
        expect(await refusals(long, machine, T0)).toHaveLength(1);
        const good = { holds: [], runs: [], fault: null, refused: false };
        expect(await world.updateHold(1, { when: { from: T0 + 300, to: T0 + 400 } })).toEqual(good);
        expect(await times()).toEqual([[300, 400, [], site]]);
        expect(await refusals(long, machine, T0)).toEqual([]);
        const told = await store.changesSince(cursor, 100);
        if (told === 'too-old') throw new Error(told);
        expect(told.directory?.holds).toMatchObject([{ from: T0 + 300 }]);

        // The run may go on until 300.
        const inTheWay = { holds: [], runs: [long], fault: null, refused: true };
        expect(await world.updateHold(1, { when: { from: T0 + 299 } })).toEqual(inTheWay);
        expect(await times()).toEqual([[300, 400, [], site]]);
        expect(await world.updateHold(1, { reason: 'disks', name: 'disks' })).toEqual(good);
        const onSecond = { of: 'MACHINES', machineIds: [second], amounts: null } as const;
        expect(await world.updateHold(1, { when: { from: T0 + 200 }, held: onSecond })).toEqual(good);
        expect(await times()).toEqual([[200, 400, [second], null]]);
        const after = { when: { from: T0 + 100 }, held: { of: 'SITE' }, onConflict: 'AFTER_JOBS' } as const;
        expect(await world.updateHold(1, after)).toEqual({ ...inTheWay, refused: false });
        expect(await times()).toEqual([[100, 400, [], site]]);
        expect(await world.updateHold(1, { onConflict: 'REFUSE' })).toEqual(inTheWay);

        const next = { when: { from: T0 + 400, to: T0 + 500 } };
        await world.createHold(hold({ onConflict: 'AFTER_JOBS', times: [{ from: T0 + 500, to: null }] }));
        expect(await world.updateHold(2, next)).toEqual(good);
        expect(await world.updateHold(2, { when: { from: T0 + 399 } })).toEqual({
          ...{ holds: [1], runs: [], fault: null, refused: true },
        });
        const missing = { of: 'MACHINES', machineIds: [999], amounts: null } as const;
        expect((await world.updateHold(2, { held: missing })).fault).toContain('machine 999');
        await nothingBroken();
      });

      it('goes on where it has begun, with another end; of its rule the later times are made anew', async () => {
        await world.createHold(hold());
        const edit = (when: WhenChange, now: number, id = 1) => world.updateHold(id, { when }, now);
        await expect(edit({ from: T0 + 120 }, T0 + 110)).rejects.toThrow('from: ');
        await expect(edit({ to: T0 + 110 }, T0 + 110)).rejects.toThrow('to: ');
        await expect(edit({ rrule: 'FREQ=DAILY' }, T0)).rejects.toThrow('rrule: ');
        expect(await edit({ to: T0 + 500 }, T0 + 110)).toMatchObject({ refused: false });
        const known = async () =>
          (await store.loadGrid(10)).holds.map(({ from, to }) => [from - T0, to - T0]);
        expect(await known()).toEqual([[100, 500]]);
        await world.cancelHold(1);

        const recurrence = {
          ...{ rrule: 'FREQ=DAILY;COUNT=3', timeZone: 'UTC', from: T0, lengthS: 3600 },
          ...{ except: [], also: [] },
        };
        const day = 86_400;
        const three = [0, 1, 2].map((i) => ({ from: T0 + i * day, to: T0 + i * day + 3600 }));
        const { id } = await world.createHold(hold({ times: three, recurrence }));
        expect(await edit({ to: T0 + 60 }, T0 + 10, id as number)).toMatchObject({ refused: false });
        expect(await known()).toEqual([
          [0, 3600],
          [day, day + 60],
          [2 * day, 2 * day + 60],
        ]);
        await edit({ except: [T0 + day], rrule: 'FREQ=DAILY;COUNT=4' }, T0 + 10, id as number);
        expect(await known()).toEqual([
          [0, 3600],
          [2 * day, 2 * day + 60],
          [3 * day, 3 * day + 60],
        ]);
        await nothingBroken();
      });

      it('keeps its own runs, which are in the way of no change of it', async () => {
        const { id } = await world.createHold(
          hold({ kind: 'USER', held: { of: 'MACHINES', machineIds: [machine], amounts: null } }),
        );
        const [inside] = (await dispatched(world, user, site, [
          newJob({ runTimeLimitS: 50, reservationId: id }),
        ])) as [number];
        expect(await refusals(inside, machine, T0 + 110)).toEqual([]);
        expect(await world.updateHold(id as number, { when: { to: T0 + 300 } }, T0 + 120)).toEqual({
          ...{ holds: [], runs: [], fault: null, refused: false },
        });
        await nothingBroken();
      });

      it('names the runs that may be in its way, or lets them end', async () => {
        const [long] = (await assigned(world, user, site, machine, [newJob()])) as [number];
        await assigned(world, user, site, machine, [newJob({ runTimeLimitS: 100 })]);
        expect(await world.createHold(hold())).toMatchObject({ id: null, runs: [long], holds: [] });
        const beside = await world.createHold(hold({ kind: 'USER', held: someOf(machine, 3) }));
        expect(beside).toMatchObject({ id: 1, runs: [] });
        await world.cancelHold(1);
        expect(await world.createHold(hold({ onConflict: 'AFTER_JOBS' }))).toMatchObject({
          id: 2,
          runs: [long],
        });
      });

      it('lets in the jobs that name the reservation, for as long as it lasts, and as many as it has room for', async () => {
        const times = [{ from: T0 + 100, to: T0 + 200 }];
        const make = (of: NewHold['held']) => world.createHold(hold({ kind: 'USER', held: of, times }));
        const { id: part } = await make(someOf(machine, 3));
        const { id: whole } = await make({ of: 'MACHINES', machineIds: [second], amounts: null });
        const limited = { runTimeLimitS: 50 };
        const [own, wide, more, twice, long, other, inWhole] = (await dispatched(world, user, site, [
          newJob({ ...limited, reservationId: part, cpusPerTask: 2 }),
          newJob({ ...limited, reservationId: part, cpusPerTask: 4 }),
          newJob({ ...limited, reservationId: part, cpusPerTask: 1 }),
          newJob({ ...limited, reservationId: part, cpusPerTask: 1 }),
          newJob({ runTimeLimitS: 101, reservationId: part }),
          newJob(limited),
          newJob({ ...limited, reservationId: whole }),
        ])) as [number, number, number, number, number, number, number];
        expect((await store.loadGrid(10)).jobs.map(({ job }) => job.reservationId)).toEqual(
          expect.arrayContaining([part, whole, null]),
        );
        expect(await refusals(own, machine, T0 + 99)).toMatchObject([{ jobId: own }]);
        expect(await refusals(own, second, T0 + 100)).toMatchObject([{ jobId: own }]);
        expect(await refusals(long, machine, T0 + 100)).toHaveLength(1);
        expect(await refusals(wide, machine, T0 + 100)).toHaveLength(1);
        expect(await refusals(own, machine, T0 + 151)).toHaveLength(1);
        expect(await refusals(own, machine, T0 + 100)).toEqual([]);
        expect(await refusals(more, machine, T0 + 100)).toEqual([]);
        expect(await refusals(twice, machine, T0 + 100)).toMatchObject([
          { why: expect.stringContaining('no cpus left in the reservation') },
        ]);
        expect(await refusals(other, second, T0 + 100)).toHaveLength(1);
        expect(await refusals(inWhole, second, T0 + 100)).toEqual([]);
        // What runs inside has is not taken from others once more: one of the four CPUs is not held.
        expect(await refusals(other, machine, T0 + 100)).toEqual([]);
        expect(await refusals(long, second, T0 + 201)).toHaveLength(1);
        await world.cancelHold(part as number);
        expect(await refusals(long, second, T0 + 201)).toEqual([]);
        await nothingBroken();
      });

      it('shares amounts with nothing else that is held, but a maintenance lies over reservations', async () => {
        const reserve = (cpus: number, from = T0 + 100, to: number | null = T0 + 200) =>
          world.createHold(hold({ kind: 'USER', held: someOf(machine, cpus), times: [{ from, to }] }));
        expect(await reserve(3)).toMatchObject({ id: 1, holds: [] });
        expect(await reserve(2, T0 + 199)).toMatchObject({ id: null, holds: [1] });
        expect(await reserve(1)).toMatchObject({ id: 2, holds: [] });
        expect(await reserve(1, T0 + 50)).toMatchObject({ id: null, holds: [1, 2] });
        expect(await reserve(4, T0 + 200, T0 + 300)).toMatchObject({ id: 3, holds: [] });
        expect(await reserve(5, T0 + 900, null)).toMatchObject({
          id: null,
          fault: expect.stringContaining('5 are requested'),
        });
        const times = [{ from: T0, to: null }];
        expect(await world.createHold(hold({ times }))).toMatchObject({ id: 4, holds: [] });
        expect(await world.createHold(hold({ times }))).toMatchObject({ id: null, holds: [4] });
        expect(await reserve(1, T0 + 900, null)).toMatchObject({
          id: null,
          holds: expect.arrayContaining([4]),
        });
      });

      const heldNow = async () =>
        (await store.loadGrid(10)).holds.map(({ from, to, machines }) => ({
          ...{ from: from - T0, to: to - T0 },
          machines: machines.map(({ machineId }) => machineId),
        }));

      it('comes again by its rule, a day after another, where nothing else is held by then', async () => {
        const day = 86_400;
        const recurrence = {
          ...{ rrule: 'FREQ=DAILY', timeZone: 'UTC', from: T0 + 100, lengthS: 100, except: [], also: [] },
        };
        const times = [0, 1].map((i) => ({ from: T0 + 100 + i * day, to: T0 + 200 + i * day }));
        const { id } = await world.createHold(
          hold({ kind: 'STANDING', held: someOf(machine, 3), recurrence, times }),
        );
        // Somebody has the machine on the fifth day.
        const fifth = { from: T0 + 4 * day, to: T0 + 5 * day };
        await world.createHold(hold({ kind: 'USER', held: someOf(machine, 2), times: [fifth] }));
        await store.sweep(rules(T0 + day - 1));
        expect((await heldNow()).map(({ from }) => Math.floor(from / day))).toEqual([1, 4]);
        await store.sweep(rules(T0 + day));
        const days = (await heldNow()).map(({ from }) => Math.floor(from / day));
        expect(days.sort((a, b) => a - b)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9]);
        await world.cancelHold(id as number);
        await store.sweep(rules(T0 + 3 * day));
        expect(await heldNow()).toHaveLength(1);
        await nothingBroken();
      });

      it('is given back when nothing of it has been running, for the rest of that time', async () => {
        const times = [
          { from: T0 + 100, to: T0 + 1100 },
          { from: T0 + 2100, to: T0 + 3100 },
        ];
        const idle = { kind: 'USER', times, idleS: 300 } as const;
        const { id } = await world.createHold(hold({ ...idle, held: someOf(machine, 3) }));
        await world.createHold(hold({ ...idle, idleS: null, held: someOf(second, 1) }));
        await world.createHold(hold({ times: [{ from: T0 + 10_000, to: T0 + 11_000 }], idleS: 300 }));
        const [job] = (await dispatched(world, user, site, [
          newJob({ runTimeLimitS: 500, reservationId: id }),
        ])) as [number];
        expect(await refusals(job, machine, T0 + 100)).toEqual([]);
        await store.reportRuns(site, [report(job, 1)], MAX_ATTEMPTS);
        await store.sweep(rules(T0 + 500));
        expect(await heldNow()).toHaveLength(5);
        await store.reportRuns(site, [ended(job, 1, { at: T0 + 600 })], MAX_ATTEMPTS);
        await store.sweep(rules(T0 + 899));
        expect(await heldNow()).toHaveLength(5);
        const { touched } = await store.sweep(rules(T0 + 900));
        expect(touched).toContain(site);
        expect((await heldNow()).filter(({ machines }) => machines[0] === machine)).toMatchObject([
          { from: 2100 },
        ]);
        await store.sweep(rules(T0 + 2399));
        expect((await heldNow()).filter(({ machines }) => machines[0] === machine)).toHaveLength(1);
        await store.sweep(rules(T0 + 2400));
        expect(await heldNow()).toMatchObject([{ from: 2100, machines: [second] }, { from: 10_000 }]);
        await nothingBroken();
      });

      it('gets an equal machine for one that is lost, as soon as one is free', async () => {
        const third = await world.addMachine(site, 'third', 4);
        const fourth = await world.addMachine(site, 'fourth', 5);
        await vouch(store, site, [machine, second, third, fourth], T0);
        const whole = (machineIds: number[], change: Partial<NewHold> = {}) =>
          hold({ kind: 'USER', held: { of: 'MACHINES', machineIds, amounts: null }, ...change });
        const heldMachines = async () => (await heldNow()).map(({ machines }) => machines);
        await world.createHold(whole([machine]));
        await world.createHold(whole([second], { times: [{ from: T0 + 150, to: T0 + 160 }] }));
        await assigned(world, user, site, third, [newJob({ runTimeLimitS: 150 })]);
        await world.setMachineState(machine, 'DOWN');
        await store.sweep(rules(T0));
        // One is held by then, on another a job may still run, and one is not equal.
        expect(await heldMachines()).toEqual([[machine], [second]]);
        await world.cancelHold(2);
        const { touched } = await store.sweep(rules(T0));
        expect(touched).toContain(site);
        expect(await heldMachines()).toEqual([[second]]);
        expect((await store.sweep(rules(T0))).touched).toEqual([]);
      });

      it('stops what is in its way in time, if it preempts: those that lose least, and no more than has to be', async () => {
        const started = async (change: Partial<NewJob>, now: number) => {
          const [id] = (await dispatched(world, user, site, [newJob({ killGraceS: 20, ...change })])) as [
            number,
          ];
          expect(await refusals(id, machine, now)).toEqual([]);
          return id;
        };
        const early = await started({}, T0);
        const late = await started({}, T0 + 10);
        const fixed = await started({ restartable: false }, T0 + 20);
        const short = await started({ runTimeLimitS: 60 }, T0 + 20);
        const { id } = await world.createHold(
          hold({ kind: 'USER', held: someOf(machine, 2), onConflict: 'PREEMPT' }),
        );
        expect(id).not.toBeNull();
        await store.sweep(rules(T0 + 79));
        expect((await world.events(late)).at(-1)).toMatchObject({ toState: 'ASSIGNED' });
        const { stopped } = await store.sweep(rules(T0 + 80));
        expect(stopped).toEqual([{ jobId: late, class: null, lostWork: 70 }]);
        // One CPU comes free by itself.
        for (const staying of [early, fixed, short])
          expect((await world.events(staying)).at(-1)).toMatchObject({ toState: 'ASSIGNED' });
        expect((await world.events(late)).at(-1)).toMatchObject({
          ...{ toState: 'CANCELLING', note: expect.stringContaining(`stopped for hold_${id}`) },
        });
        expect(await store.sweep(rules(T0 + 81))).toMatchObject({ touched: [], stopped: [] });
        const killed = {
          ...ended(late, 1),
          cause: 'EXITED_NONZERO' as const,
          signal: 'SIGTERM',
          exitCode: null,
        };
        await store.reportRuns(site, [killed], MAX_ATTEMPTS);
        expect((await world.events(late)).at(-1)).toMatchObject({ toState: 'QUEUED' });
        // Maintenance stops those, too, that cannot be restarted.
        await world.createHold(hold({ onConflict: 'PREEMPT' }));
        await store.sweep(rules(T0 + 82));
        for (const stopped of [early, fixed])
          expect((await world.events(stopped)).at(-1)).toMatchObject({ toState: 'CANCELLING' });
        expect((await world.events(short)).at(-1)).toMatchObject({ toState: 'ASSIGNED' });
        await nothingBroken();
      });

      it('stops the lowest class for it, however much that loses', async () => {
        const [low, high] = (await dispatched(world, user, site, [
          newJob({ cpusPerTask: 2, killGraceS: 20 }),
          newJob({ cpusPerTask: 2, killGraceS: 20, preemptionClass: 1 }),
        ])) as [number, number];
        expect(await refusals(low, machine, T0)).toEqual([]);
        expect(await refusals(high, machine, T0 + 10)).toEqual([]);
        await world.createHold(hold({ kind: 'USER', held: someOf(machine, 2), onConflict: 'PREEMPT' }));
        await store.sweep(rules(T0 + 80));
        expect((await world.events(low)).at(-1)).toMatchObject({ toState: 'CANCELLING' });
        expect((await world.events(high)).at(-1)).toMatchObject({ toState: 'ASSIGNED' });
        await nothingBroken();
      });

      it('finds the machines of a reservation by itself', async () => {
        await assigned(world, user, site, machine, [newJob()]);
        const tasks = (count: number, cpus: number) =>
          world.createHold(hold({ kind: 'USER', held: { of: 'TASKS', tasks: count, amounts: { cpus } } }));
        expect(await tasks(3, 3)).toMatchObject({ id: null, fault: expect.stringContaining('2 of 3 tasks') });
        expect(await tasks(1, 4)).toMatchObject({ machines: [{ machineId: second, amounts: { cpus: 4 } }] });
        expect(await tasks(3, 1)).toMatchObject({ machines: [{ machineId: machine, amounts: { cpus: 3 } }] });
      });
    });

    describe('reports', () => {
      const send = async (reports: RunReport[], at = site) =>
        (await store.reportRuns(at, reports, MAX_ATTEMPTS)).results;

      it('follows a run from its start to its end', async () => {
        const [a] = await assigned(world, user, site, machine, [newJob()]);
        expect(await send([report(a!, 1)])).toEqual(['accepted']);
        expect((await store.loadGrid(0)).jobs[0]!.run).toMatchObject({
          start: T0 + 10,
          plannedEnd: T0 + 110,
        });
        const outcome = await store.reportRuns(site, [ended(a!, 1)], MAX_ATTEMPTS);
        expect(outcome).toEqual({ results: ['accepted'], touched: [site] });
        expect(await path(a!)).toEqual(['QUEUED', 'DISPATCHED', 'ASSIGNED', 'RUNNING', 'COMPLETED']);
        expect((await store.loadGrid(0)).jobs).toEqual([]);
        await nothingBroken();
      });

      it('tells both transitions when start and end come together, and one when only the end does', async () => {
        const [a, b, c] = await assigned(world, user, site, machine, [newJob(), newJob(), newJob()]);
        const all = [
          report(a!, 1),
          ended(a!, 1),
          ended(b!, 1),
          ended(c!, 1, { exitCode: null, cause: 'LAUNCH_FAILED' }),
        ];
        expect(await send(all)).toEqual(['accepted', 'accepted', 'accepted', 'accepted']);
        expect((await path(a!)).slice(2)).toEqual(['ASSIGNED', 'RUNNING', 'COMPLETED']);
        expect((await path(b!)).slice(2)).toEqual(['ASSIGNED', 'COMPLETED']);
        expect((await path(c!)).slice(2)).toEqual(['ASSIGNED', 'FAILED']);
        await nothingBroken();
      });

      it('makes FAILED of every other end, with its cause', async () => {
        const causes = ['EXITED_NONZERO', 'SIGNALLED', 'RUN_TIME_LIMIT', 'LAUNCH_FAILED'] as const;
        const ids = await assigned(
          world,
          user,
          site,
          machine,
          causes.map(() => newJob()),
        );
        await send(ids.map((id, i) => ended(id, 1, { exitCode: 1, cause: causes[i]! })));
        expect(await states(ids)).toEqual(causes.map(() => 'FAILED'));
        expect(await Promise.all(ids.map(async (id) => (await world.events(id)).at(-1)!.cause))).toEqual([
          ...causes,
        ]);
        await nothingBroken();
      });

      it('keeps the steps of a run that has ended, once, in pages, and as long before its end as they were', async () => {
        const [a, b] = await assigned(world, user, site, machine, [newJob(), newJob()]);
        const step = (number: number, change: Partial<RunStep> = {}): RunStep => ({
          ...{ number, name: `step ${number}`, tasks: 2, machines: 1, cpus: 2, startedAt: T0 + 111 },
          ...{ endedAt: T0 + 112, exitCode: 0, signal: null, ...change },
        });
        const steps = [
          step(1, { endedAt: T0 + 113.25, exitCode: 137, signal: 'SIGKILL' }),
          step(0, { startedAt: T0 + 1, endedAt: T0 + 1e9, name: 'a\u0000 "b"' }),
          step(2, { startedAt: T0 + 500, endedAt: null, exitCode: null }),
          step(3, { startedAt: T0 + 112, endedAt: T0 + 90 }),
        ];
        // The clock of the agent is 100 s fast.
        const sentAt = Date.now() / 1000 + 100;
        const late = sentAt - (T0 + 120);
        const told = steps.map(({ startedAt, endedAt, ...one }) => ({
          ...{ ...one, startedAt: startedAt + late, endedAt: endedAt === null ? null : endedAt + late },
        }));
        const end = ended(a!, 1, { at: sentAt - 5, sentAt, steps: told });
        await send([report(a!, 1, { at: sentAt - 10, sentAt }), end, ended(b!, 1)]);
        await send([end, { ...end, steps: [step(7)] }]);
        const kept = await world.steps({ jobId: a!, epoch: 1 });
        const [begun, over] = [kept[0]!.startedAt, kept[2]!.startedAt];
        expect(over - begun).toBeCloseTo(5, 2);
        const since = (at: number | null) => at && Math.round((at - begun) * 100) / 100;
        expect(
          kept.map(({ startedAt, endedAt, ...one }) => ({ ...one, at: [since(startedAt), since(endedAt)] })),
        ).toEqual([
          {
            ...{ jobId: a, epoch: 1, task: 0, number: 0, name: expect.stringMatching(/^a. "b"$/) },
            ...{ tasks: 2, machines: 1, cpus: 2, exitCode: 0, signal: null, at: [0, 5] },
          },
          expect.objectContaining({ number: 1, exitCode: 137, signal: 'SIGKILL', at: [1, 3.25] }),
          expect.objectContaining({ number: 2, exitCode: null, signal: null, at: [5, null] }),
          expect.objectContaining({ number: 3, at: [2, 2] }),
        ]);
        expect(await world.steps({ jobId: b!, epoch: 1 })).toEqual([]);
        const page = await world.steps({ jobId: a!, epoch: 1 }, 2, [0, 0]);
        expect(page.map(({ number }) => number)).toEqual([1, 2]);
        await nothingBroken();
      });

      it('takes no time that cannot be: before the assignment, an end before the start, or in the future', async () => {
        const [a, b, c] = await assigned(world, user, site, machine, [newJob(), newJob(), newJob()]);
        const far = T0 + 1e11;
        await send([
          report(a!, 1, { at: T0 - 1e6 }),
          report(b!, 1, { at: T0 + 50 }),
          report(c!, 1, { at: far }),
        ]);
        const { jobs } = await store.loadGrid(0);
        const startOf = (id: number) => jobs.find(({ job }) => job.id === id)!.run!.start;
        expect([startOf(a!), startOf(b!)]).toEqual([T0, T0 + 50]);
        expect(startOf(c!)).toBeLessThanOrEqual(Date.now() / 1000 + 60);
        await send([ended(a!, 1, { at: far }), ended(b!, 1, { at: T0 - 5 }), ended(c!, 1, { at: 0 })]);
        // An end before its start is taken as one at its start.
        const points = await world.ratioPoints();
        expect(points.map(({ jobId }) => jobId)).toEqual([a, b, c]);
        expect(points[1]?.turnaroundS).toBe(50);
        for (const { at } of points) expect(at).toBeLessThanOrEqual(Date.now() / 1000 + 60);
        await nothingBroken();
      });

      it('knows repeated, stale and unknown reports', async () => {
        const [a, b] = await assigned(world, user, site, machine, [newJob(), newJob()]);
        expect(await send([report(a!, 1), report(a!, 1)])).toEqual(['accepted', 'repeated']);
        expect(await send([report(a!, 1), ended(a!, 1), ended(a!, 1), report(a!, 1)])).toEqual([
          'repeated',
          'accepted',
          'repeated',
          'repeated',
        ]);
        expect(await send([report(a!, 1), ended(a!, 1)])).toEqual(['repeated', 'repeated']);
        expect(await send([report(b!, 2), ended(999, 1)])).toEqual(['unknown-run', 'unknown-run']);
        expect(await send([report(b!, 1)], other)).toEqual(['unknown-run']);
        expect(await states([a!, b!])).toEqual(['COMPLETED', 'ASSIGNED']);
        await nothingBroken();
      });

      it('knows no run with the token of another', async () => {
        const [id] = (await assigned(world, user, site, machine, [newJob()])) as [number];
        const [{ token }] = (await store.assignments(site, null, 10, MIB)).assignments as [Assignment];
        const piece = {
          jobId: id,
          epoch: 1,
          stream: 'STDOUT',
          start: 0,
          body: Buffer.from('x'),
          bytes: 1,
        } as const;
        for (const other of ['1', `${token}0`]) {
          expect(await send([report(id, 1, { token: other }), ended(id, 1, { token: other })])).toEqual([
            ...['unknown-run', 'unknown-run'],
          ]);
          expect(
            await store.reportOutput(
              site,
              [{ ...piece, token: other }],
              { keepBytes: MIB, userBytes: MIB },
              null,
            ),
          ).toEqual([{ result: 'unknown-run', received: null }]);
        }
        expect(await send([report(id, 1, { token }), ended(id, 1, { token })])).toEqual([
          'accepted',
          'accepted',
        ]);
        await nothingBroken();
      });

      it('queues a lost or refused run again while it may, with a new epoch', async () => {
        const [a, b] = await assigned(world, user, site, machine, [newJob(), newJob({ restartable: false })]);
        const lost = (id: number, epoch: number) =>
          ended(id, epoch, { exitCode: null, cause: epoch === 2 ? 'REFUSED' : 'LOST', message: 'gone' });
        const outcome = await store.reportRuns(site, [report(a!, 1), lost(a!, 1), lost(b!, 1)], MAX_ATTEMPTS);
        expect(outcome).toEqual({ results: ['accepted', 'accepted', 'accepted'], touched: [site, null] });
        expect(await states([a!, b!])).toEqual(['QUEUED', 'FAILED']);
        for (const epoch of [2, 3]) {
          await store.applyMoves([move(a!, site)], context());
          const { epochs } = await store.applyStarts(
            site,
            [start(a!, site, { [machine]: 1 })],
            null,
            context(),
          );
          expect(epochs).toEqual([epoch]);
          expect(await send([report(a!, epoch - 1), ended(a!, epoch - 1)])).toEqual([
            'stale-epoch',
            'stale-epoch',
          ]);
          expect(await send([lost(a!, epoch)])).toEqual(['accepted']);
        }
        // The third was its last attempt.
        expect(await states([a!])).toEqual(['FAILED']);
        await nothingBroken();
      });

      it('ends a run that is to be stopped as CANCELLED, unless it ended well', async () => {
        const [a, b, c] = await assigned(world, user, site, machine, [newJob(), newJob(), newJob()]);
        await send([report(a!, 1)]);
        await store.cancel(byIds([a!, b!, c!]), T0 + 5, 'CANCELLED_BY_OPERATOR');
        expect(await send([report(b!, 1)])).toEqual(['accepted']);
        expect(await states([b!])).toEqual(['CANCELLING']);
        // When a run began does not change with a repeated report, nor go unheard where it is to be stopped.
        expect(await send([report(a!, 1, { at: T0 + 15 }), report(b!, 1, { at: T0 + 15 })])).toEqual([
          'repeated',
          'repeated',
        ]);
        expect((await store.loadGrid(0)).jobs.map(({ run }) => run?.start)).toEqual([T0 + 10, T0 + 10, T0]);
        expect((await world.events(b!)).at(-1)).toMatchObject({ kind: 'JOB_CHANGED', toState: 'CANCELLING' });
        await send([
          ended(a!, 1, { exitCode: null, signal: 'SIGTERM', cause: 'SIGNALLED' }),
          ended(b!, 1),
          ended(c!, 1, { cause: 'LOST' }),
        ]);
        expect(await states([a!, b!, c!])).toEqual(['CANCELLED', 'COMPLETED', 'CANCELLED']);
        expect((await world.events(a!)).at(-1)!.cause).toBe('CANCELLED_BY_OPERATOR');
        await nothingBroken();
      });

      it('notes a deadline that was missed by the end', async () => {
        const [a] = await assigned(world, user, site, machine, [newJob({ deadline: T0 + 15 })]);
        await send([ended(a!, 1)]);
        expect((await store.sweep(rules(T0 + 30))).deadlinesMissed).toBe(0);
      });
    });

    describe('runs of several tasks', () => {
      /** Two tasks on the first machine, one on the second, each with an agent of its own: 1 and 2. */
      const spread = async (change: Partial<NewJob> = {}): Promise<number> => {
        const [id] = await dispatched(world, user, site, [newJob({ tasks: 3, ...change })]);
        const where = start(id!, site, { [machine]: 2, [second]: 1 });
        expect((await store.applyStarts(site, [where], null, context())).refused).toEqual([]);
        return id!;
      };
      const tell = async (agentId: number | null, ...reports: RunReport[]) =>
        (await store.reportRuns(site, reports, MAX_ATTEMPTS, agentId)).results;
      const told = async (id: number, agentId: number) => {
        const { assignments } = await store.assignments(site, null, 10, MIB, agentId);
        const run = assignments.find(({ jobId }) => jobId === id);
        return run && partsOf(run, agentId).map(({ firstTask, tasks, action }) => [firstTask, tasks, action]);
      };
      const last = async (id: number) => (await world.events(id)).at(-1)!;
      const failed = { exitCode: 3, cause: 'EXITED_NONZERO' } as const;
      const stopped = { exitCode: 143, signal: 'SIGTERM', cause: 'CANCELLED_BY_USER' } as const;

      it('start with their first task and end with their last; each agent speaks for its machines only', async () => {
        const id = await spread();
        expect(await told(id, 1)).toEqual([[0, 2, 'START']]);
        expect(await told(id, 2)).toEqual([[2, 1, 'START']]);
        // Neither for others' tasks, nor for the run as a whole, nor for tasks that are not there.
        expect(await tell(1, report(id, 1, { task: 2 }), report(id, 1), report(id, 1, { task: 3 }))).toEqual([
          ...['unknown-run', 'unknown-run', 'unknown-run'],
        ]);
        expect(await tell(2, report(id, 1, { task: 2 }))).toEqual(['accepted']);
        expect((await path(id)).slice(2)).toEqual(['ASSIGNED', 'RUNNING']);
        expect(await told(id, 1)).toEqual([[0, 2, 'START']]);
        expect(await told(id, 2)).toEqual([[2, 1, 'CONTINUE']]);
        const both = [report(id, 1, { task: 0 }), ended(id, 1, { task: 0 })];
        expect(await tell(1, ...both, ...both)).toEqual(['accepted', 'accepted', 'repeated', 'repeated']);
        expect(await told(id, 1)).toEqual([[1, 1, 'START']]);
        const of = { number: 0, name: 'a', tasks: 1, machines: 1, cpus: 1, startedAt: T0, endedAt: T0 };
        const steps = [{ ...of, exitCode: 0, signal: null }];
        expect(await tell(2, ended(id, 1, { task: 2, steps }))).toEqual(['accepted']);
        expect(await world.steps({ jobId: id, epoch: 1 })).toMatchObject([{ task: 2, number: 0 }]);
        expect(await told(id, 2)).toEqual([]);
        expect((await last(id)).toState).toBe('RUNNING');
        expect(await tell(1, ended(id, 1, { task: 1 }), ended(id, 1, { task: 1 }))).toEqual([
          ...['accepted', 'repeated'],
        ]);
        expect(await last(id)).toMatchObject({ toState: 'COMPLETED', cause: 'EXITED_ZERO' });
        expect(await tell(2, report(id, 1, { task: 2 }))).toEqual(['repeated']);
        await nothingBroken();
      });

      it('end with the first failure: the agents of the others are told, at once', async () => {
        const id = await spread();
        await tell(1, report(id, 1, { task: 0 }), report(id, 1, { task: 1 }));
        await tell(2, report(id, 1, { task: 2 }));
        const { next } = await store.assignments(site, null, 10, MIB, 2);
        expect(await tell(1, ended(id, 1, { task: 1, ...failed }))).toEqual(['accepted']);
        expect((await last(id)).toState).toBe('RUNNING');
        expect(await told(id, 1)).toEqual([[0, 1, 'STOP']]);
        const news = await store.assignments(site, next as string, 10, MIB, 2);
        expect(news.assignments.map((run) => partsOf(run, 2))).toMatchObject([
          [{ firstTask: 2, action: 'STOP' }],
        ]);
        // Another failure changes nothing any more.
        await tell(1, ended(id, 1, { task: 0, exitCode: 9, cause: 'EXITED_NONZERO' }));
        expect(await tell(2, ended(id, 1, { task: 2, ...stopped }))).toEqual(['accepted']);
        expect(await last(id)).toMatchObject({ toState: 'FAILED', cause: 'EXITED_NONZERO' });
        await nothingBroken();
      });

      it('go on after a failure where that is asked for, and fail in the end', async () => {
        const id = await spread({ onTaskFailure: 'CONTINUE' });
        await tell(1, ended(id, 1, { task: 0, ...failed }), report(id, 1, { task: 1 }));
        expect(await told(id, 1)).toEqual([[1, 1, 'CONTINUE']]);
        expect(await told(id, 2)).toEqual([[2, 1, 'START']]);
        await tell(1, ended(id, 1, { task: 1 }));
        await tell(2, ended(id, 1, { task: 2 }));
        expect(await last(id)).toMatchObject({ toState: 'FAILED', cause: 'EXITED_NONZERO' });
        await nothingBroken();
      });

      it('are cancelled as one', async () => {
        const a = await spread();
        await store.cancel(byIds([a]), T0, 'CANCELLED_BY_USER');
        expect([await told(a, 1), await told(a, 2)]).toEqual([[[0, 2, 'STOP']], [[2, 1, 'STOP']]]);
        await tell(1, ended(a, 1, { task: 0, ...stopped }), ended(a, 1, { task: 1 }));
        expect((await last(a)).toState).toBe('CANCELLING');
        await tell(2, ended(a, 1, { task: 2, ...stopped }));
        expect(await last(a)).toMatchObject({ toState: 'CANCELLED', cause: 'CANCELLED_BY_USER' });
        await nothingBroken();
      });

      it('are tried elsewhere when a machine could not start a task, as a whole, if nothing has begun or they may be restarted', async () => {
        const broken = { task: 2, exitCode: null, cause: 'MACHINE_FAILED', message: 'no slots' } as const;
        const id = await spread({ restartable: false, onTaskFailure: 'CONTINUE' });
        expect(await tell(2, ended(id, 1, broken))).toEqual(['accepted']);
        // A run that lacks a task is no run, whatever the job says.
        expect(await told(id, 1)).toEqual([[0, 2, 'STOP']]);
        const never = { exitCode: null, cause: 'CANCELLED_BY_USER' } as const;
        await tell(1, ended(id, 1, { task: 0, ...never }), ended(id, 1, { task: 1, ...never }));
        expect((await last(id)).toState).toBe('QUEUED');
        // The machine of the task has to show that it works; the other one has done nothing wrong.
        const { machines } = await store.loadGrid(0);
        const available = (of: number) => machines.find((one) => one.id === of)?.available;
        expect([available(machine), available(second)]).toEqual([true, false]);
        await vouch(store, site, [second], T0);

        const begun = await spread({ restartable: false });
        await tell(1, report(begun, 1, { task: 0 }));
        await tell(2, ended(begun, 1, broken));
        await tell(1, ended(begun, 1, { task: 0, ...stopped }), ended(begun, 1, { task: 1, ...never }));
        expect(await last(begun)).toMatchObject({ toState: 'FAILED', cause: 'MACHINE_FAILED' });
        await nothingBroken();
      });

      it('are lost with one of their agents, but not started again before the tasks elsewhere have ended', async () => {
        const id = await spread();
        await tell(1, report(id, 1, { task: 0 }), report(id, 1, { task: 1 }));
        await tell(2, report(id, 1, { task: 2 }));
        await store.processSeen('api', 'api', T0);
        await vouch(store, site, [machine], T0 + 1000);
        for (let now = T0 + 20; now <= T0 + 1000; now += 20) await store.processSeen('api', 'api', now);
        await store.sweep(rules(T0 + 1000));
        await store.sweep(rules(T0 + 1000));
        expect((await last(id)).toState).toBe('RUNNING');
        expect(await told(id, 1)).toEqual([[0, 2, 'STOP']]);
        expect(await told(id, 2)).toEqual([]);
        // Should the lost one come back: it is too late.
        expect(await tell(2, ended(id, 1, { task: 2 }))).toEqual(['repeated']);
        await tell(1, ended(id, 1, { task: 0, ...stopped }), ended(id, 1, { task: 1, ...stopped }));
        expect((await last(id)).toState).toBe('QUEUED');
        await nothingBroken();
      });

      it('that are launched once are their first agent’s, as one', async () => {
        const id = await spread({ launch: 'ONCE' });
        expect(await told(id, 1)).toEqual([]);
        expect(await told(id, 2)).toBeUndefined();
        expect(await tell(2, report(id, 1))).toEqual(['unknown-run']);
        expect(await tell(1, report(id, 1, { task: 0 }), report(id, 1), ended(id, 1))).toEqual([
          ...['unknown-run', 'accepted', 'accepted'],
        ]);
        expect((await last(id)).toState).toBe('COMPLETED');
        await nothingBroken();
      });

      it('are written about by whoever serves the machine only', async () => {
        const id = await spread();
        const [one] = await assigned(world, user, site, second, [newJob()]);
        const piece = (task: number, jobId = id) =>
          ({ jobId, epoch: 1, task, stream: 'STDOUT', start: 0, body: Buffer.from('x'), bytes: 1 }) as const;
        const told = (agentId: number | null, ...pieces: RunOutput[]) =>
          store.reportOutput(site, pieces, { keepBytes: MIB, userBytes: MIB }, agentId);
        const keep = async (agentId: number | null, ...pieces: RunOutput[]) =>
          (await told(agentId, ...pieces)).map(({ result }) => result);
        expect(await keep(1, piece(0), piece(1), piece(2), piece(3), piece(0, one))).toEqual([
          ...['accepted', 'accepted', 'unknown-run', 'unknown-run', 'unknown-run'],
        ]);
        expect(await keep(2, piece(1), piece(2), piece(0, one))).toEqual([
          'unknown-run',
          'accepted',
          'accepted',
        ]);
        // An empty piece asks what has arrived of its stream.
        const more = { ...piece(0), start: 1, body: Buffer.from('yz'), bytes: 5 };
        const nothing = { ...piece(0), body: Buffer.alloc(0), bytes: 0 };
        expect(
          await told(1, more, nothing, { ...nothing, stream: 'STDERR' }, { ...nothing, task: 2 }),
        ).toEqual([
          { result: 'accepted', received: null },
          { result: 'accepted', received: 3 },
          { result: 'accepted', received: 0 },
          { result: 'unknown-run', received: null },
        ]);
        await nothingBroken();
      });
    });

    describe('assignments', () => {
      it('begins with all live runs, and goes on with what is new', async () => {
        const [a] = await assigned(world, user, site, machine, [
          newJob({ simulatedRunS: 50, simulatedIoS: 20, benchmark: 200, licenses: [] }),
        ]);
        const all = await store.assignments(site, null, 10, MIB);
        expect(all).toMatchObject({
          list: { first: true, last: true },
          assignments: [
            { jobId: a, epoch: 1, state: 'ASSIGNED', plannedS: 100, simulatedS: 100, simulatedIoS: 40 },
          ],
        });
        expect(all.assignments[0]!.machines).toEqual([
          {
            machineId: machine,
            name: 'm1',
            host: 'host-1',
            tasks: 1,
            devices: [],
            benchmark: 100,
            agentId: 1,
          },
        ]);
        const idle = await store.assignments(site, all.next, 10, MIB);
        expect(idle).toEqual({ next: all.next, list: null, assignments: [] });

        const [b, c, d] = await assigned(world, user, site, second, [newJob(), newJob(), newJob()]);
        await assigned(world, user, other, elsewhere, [newJob()]);
        await store.reportRuns(site, [ended(c!, 1)], MAX_ATTEMPTS);
        await store.cancel(byIds([a!]), T0, 'CANCELLED_BY_USER');
        const first = await store.assignments(site, all.next, 3, MIB);
        expect(first.assignments.map(({ jobId, state }) => [jobId, state])).toEqual([
          [b, 'ASSIGNED'],
          [d, 'ASSIGNED'],
        ]);
        const rest = await store.assignments(site, first.next, 3, MIB);
        expect(rest.assignments.map(({ jobId, state }) => [jobId, state])).toEqual([[a, 'CANCELLING']]);
        expect((await store.assignments(site, rest.next, 3, MIB)).assignments).toEqual([]);
      });

      it.each(['running', 'being cancelled'])(
        'gives the full list where a run that was %s has been given up since',
        async (how) => {
          const [a, b] = await assigned(world, user, site, machine, [newJob(), newJob()]);
          if (how === 'being cancelled') await store.cancel(byIds([a!]), T0, 'CANCELLED_BY_USER');
          const { next } = await store.assignments(site, null, 10, MIB);
          await store.reportRuns(site, [ended(a!, 1, { cause: 'LOST', exitCode: null })], MAX_ATTEMPTS);
          expect(await store.assignments(site, next, 10, MIB)).toMatchObject({
            list: { first: true, last: true },
            assignments: [{ jobId: b }],
          });
        },
      );

      it('gives the full list where the cursor is too old', async () => {
        const [a] = await assigned(world, user, site, machine, [newJob()]);
        const { next } = await store.assignments(site, null, 10, MIB);
        await submit(world, user, [newJob()]);
        await store.prune({
          eventsBefore: Date.now() / 1000 + 60,
          unreadBefore: 0,
          jobsEndedBefore: 0,
          processesBefore: 0,
          auditsBefore: 0,
          limit: 1000,
        });
        expect(await store.assignments(site, next, 10, MIB)).toMatchObject({
          list: { first: true, last: true },
          assignments: [{ jobId: a }],
        });
      });

      it('gives the full list where the cursor is of what has not happened: the database was restored', async () => {
        const [a] = await assigned(world, user, site, machine, [newJob()]);
        const { next } = await store.assignments(site, null, 10, MIB);
        expect(await store.assignments(site, String(Number(next) + 1), 10, MIB)).toMatchObject({
          next,
          list: { first: true, last: true },
          assignments: [{ jobId: a }],
        });
      });

      it('gives what is too many or too long for one message in parts', async () => {
        const long = { arguments: ['x'.repeat(1000)] };
        const jobs = await assigned(world, user, site, machine, [newJob(long), newJob(long), newJob(long)]);
        const read = async (from: Cursor | null, limit: number, bytesMax: number) => {
          const batches: AssignmentBatch[] = [];
          let at: AssignmentBatch['next'] | null = from;
          for (;;) {
            const batch = await store.assignments(site, at, limit, bytesMax);
            batches.push(batch);
            if (batch.next === at || (batch.list?.last ?? false)) break;
            at = batch.next;
          }
          return batches;
        };
        const ids = ({ assignments }: AssignmentBatch) => assignments.map(({ jobId }) => jobId);
        const first = { first: true, last: false };
        const next = { first: false, last: false };
        const last = { first: false, last: true };
        for (const [limit, bytesMax] of [
          [1, MIB],
          [10, 1],
        ] as const) {
          const parts = await read(null, limit, bytesMax);
          expect(parts.map(ids)).toEqual(jobs.map((id) => [id]));
          expect(parts.map(({ list }) => list)).toEqual([first, next, last]);
          const news = await read('0', limit, bytesMax);
          expect(news.map(ids).filter((told) => told.length > 0)).toEqual(jobs.map((id) => [id]));
        }
        const two = await read(null, 10, 2000);
        expect(two.map(ids)).toEqual([jobs.slice(0, 2), jobs.slice(2)]);

        // What happens while the list is read is told behind it.
        const begun = await store.assignments(site, null, 1, MIB);
        await store.cancel(byIds([jobs[0]!]), T0, 'CANCELLED_BY_USER');
        const end = await store.assignments(site, begun.next, 10, MIB);
        expect([end.list, ids(end)]).toEqual([last, jobs.slice(1)]);
        expect((await store.assignments(site, end.next, 10, MIB)).assignments).toMatchObject([
          { jobId: jobs[0], state: 'CANCELLING' },
        ]);
      });
    });

    describe('actions', () => {
      it('cancels what waits at once, and asks live runs to stop', async () => {
        const [a] = await submit(world, user, [newJob()]);
        const [b] = await submit(world, user, [newJob({ held: true })]);
        const [c] = await dispatched(world, user, site, [newJob()]);
        const [d] = await assigned(world, user, site, machine, [newJob()]);
        const outcome = await store.cancel(byIds([a!, b!, c!, d!, 999]), T0 + 1, 'CANCELLED_BY_USER');
        expect(outcome).toMatchObject({
          changed: [a, b, c, d],
          unchanged: [{ jobId: 999, state: null }],
          tooMany: false,
        });
        expect(new Set(outcome.touched)).toEqual(new Set([null, site]));
        expect(await states([a!, b!, c!, d!])).toEqual(['CANCELLED', 'CANCELLED', 'CANCELLED', 'CANCELLING']);
        const again = await store.cancel(byIds([a!, d!]), T0 + 2, 'CANCELLED_BY_USER');
        expect(again.unchanged).toEqual([
          { jobId: a, state: 'CANCELLED' },
          { jobId: d, state: 'CANCELLING' },
        ]);
        await nothingBroken();
      });

      it('holds and releases, each job where it was', async () => {
        const [a] = await submit(world, user, [newJob()]);
        const [b] = await dispatched(world, user, site, [newJob()]);
        const [c] = await assigned(world, user, site, machine, [newJob()]);
        expect((await store.hold(byIds([a!, b!, c!]))).changed).toEqual([a, b]);
        expect((await store.loadGrid(0)).jobs.map(({ state, siteId }) => [state, siteId])).toEqual([
          ['HELD', null],
          ['HELD', site],
          ['ASSIGNED', site],
        ]);
        expect((await store.release(byIds([a!, b!, c!]))).changed).toEqual([a, b]);
        const { jobs } = await store.loadGrid(0);
        expect(jobs.map(({ state, siteId, job }) => [state, siteId, job.priority])).toEqual([
          ['QUEUED', null, null],
          ['DISPATCHED', site, 5],
          ['ASSIGNED', site, 5],
        ]);
        await nothingBroken();
      });

      it('sets the boost of jobs that have not ended', async () => {
        const [a, b] = await assigned(world, user, site, machine, [newJob(), newJob()]);
        await store.reportRuns(site, [ended(b!, 1)], MAX_ATTEMPTS);
        expect((await store.reprioritize(byIds([a!, b!]), 50)).changed).toEqual([a]);
        expect((await store.loadGrid(0)).jobs[0]!.job.boost).toBe(50);
        expect((await world.events(a!)).at(-1)).toMatchObject({
          kind: 'JOB_CHANGED',
          fromState: 'ASSIGNED',
          toState: 'ASSIGNED',
        });
        await nothingBroken();
      });

      it('selects by a filter, and touches nobody else', async () => {
        const bob = await world.addUser('bob');
        const mine = await submit(world, user, [
          newJob({ application: 'x' }),
          newJob({ groupName: 'g' }),
          newJob(),
        ]);
        const his = await submit(world, bob, [newJob({ application: 'x' })]);
        const hold = async (filter: JobSelection['filter'], ownedBy: number | null = null, limit = 100) =>
          store.hold({ filter: filter!, ownedBy, limit });
        expect((await hold({ application: 'x' }, user)).changed).toEqual([mine[0]]);
        expect((await hold({ groupName: 'g' })).changed).toEqual([mine[1]]);
        expect(await hold({ states: ['QUEUED'] }, null, 1)).toEqual({
          changed: [],
          unchanged: [],
          tooMany: true,
          touched: [],
        });
        expect((await hold({ userId: bob, states: ['QUEUED'] })).changed).toEqual(his);
        expect((await hold({ siteId: site })).changed).toEqual([]);
        expect((await hold({})).changed).toEqual([mine[2]]);
        expect(await store.release(byIds(his, user))).toMatchObject({
          changed: [],
          unchanged: [{ jobId: his[0], state: null }],
        });
        await nothingBroken();
      });
    });

    describe('time', () => {
      it('uses no machine before its first heartbeat, nor one that has become silent', async () => {
        const fresh = await world.addMachine(site, 'm3', 4);
        const available = async () =>
          (await store.loadGrid(0)).machines.filter((m) => m.available).map((m) => m.id);
        expect(await available()).toEqual([machine, second, elsewhere]);
        expect(await vouch(store, site, [fresh, elsewhere, 999], T0 + 1)).toEqual([fresh]);
        await store.processSeen('api', 'api', T0);
        await store.processSeen('api', 'api', T0 + 25);
        await store.processSeen('api', 'api', T0 + 50);
        await vouch(store, site, [machine], T0 + 50);
        await store.processSeen('api', 'api', T0 + 75);
        const outcome = await store.sweep(rules(T0 + 80));
        expect(outcome.silentMachines).toBe(3);
        expect(new Set(outcome.touched)).toEqual(new Set([site, other, null]));
        expect(await available()).toEqual([machine]);
        expect(await vouch(store, site, [machine, second], T0 + 81)).toEqual([second]);
        await nothingBroken();
      });

      it("ends what a site's own scheduler has as LOST when the site's agent stays silent, and queues it again", async () => {
        await world.newPolicy({ local: { kind: 'external', queueLimit: 10, takeBackAfterS: 60 } });
        const [waits, runs] = await dispatched(world, user, site, [newJob(), newJob()]);
        const starts = [waits!, runs!].map((id) => start(id, site, {}));
        expect((await store.applyStarts(site, starts, null, context())).accepted).toEqual([waits, runs]);
        await store.reportRuns(site, [report(runs!, 1)], MAX_ATTEMPTS);
        for (let t = 0; t <= 400; t += 20) await store.processSeen('api', 'api', T0 + t);
        expect((await store.sweep(rules(T0 + 200))).lostRuns).toBe(0);
        const outcome = await store.sweep(rules(T0 + 400));
        expect(outcome.lostRuns).toBe(2);
        expect(outcome.touched).toContain(null);
        expect(await states([waits!, runs!])).toEqual(['QUEUED', 'QUEUED']);
        expect((await world.events(runs!)).at(-1)).toMatchObject({
          ...{ fromState: 'RUNNING', toState: 'QUEUED' },
        });
        const late = ended(runs!, 1);
        expect((await store.reportRuns(site, [late], MAX_ATTEMPTS)).results).toEqual(['stale-epoch']);
        await nothingBroken();
      });

      it('ends runs on machines that stay silent as LOST, and queues them again', async () => {
        const [a] = await assigned(world, user, site, machine, [newJob()]);
        const [b] = await assigned(world, user, site, second, [newJob()]);
        for (let t = 0; t <= 400; t += 20) {
          await store.processSeen('api', 'api', T0 + t);
          await vouch(store, site, [second], T0 + t);
        }
        await store.sweep(rules(T0 + 200));
        expect(await states([a!])).toEqual(['ASSIGNED']);
        const outcome = await store.sweep(rules(T0 + 400));
        expect(outcome.lostRuns).toBe(1);
        expect(outcome.touched).toContain(null);
        expect(await states([a!, b!])).toEqual(['QUEUED', 'ASSIGNED']);
        expect((await store.reportRuns(site, [report(a!, 1)], MAX_ATTEMPTS)).results).toEqual([
          'stale-epoch',
        ]);
        await nothingBroken();
      });

      describe('leases', () => {
        const measured = {
          cpus: 4,
          memoryMb: 1000,
          os: 'linux',
          architecture: 'x64',
          model: 'x',
          benchmark: 90,
          gpus: [],
        };
        const registered = (
          identity: string,
          name: string,
          now: number,
          change: object = {},
          instance = `${identity}-1`,
        ) =>
          store.registerAgent(
            {
              ...{
                siteId: site,
                identity,
                instance,
                host: identity,
                version: '1',
                protocol: 3,
              },
              ...{ simulated: false, machines: [{ name, measured, problem: null, waits: null, ...change }] },
            },
            now,
            MAX_ATTEMPTS,
          );
        const available = async (name: string) => {
          const id = (await registered('nobody', name, T0)).machines[0]?.machineId;
          return (await store.loadGrid(0)).machines.find((one) => one.id === id)?.available;
        };

        it('a machine has one agent at a time; another gets it when the lease has run out, and then what was live there is lost', async () => {
          const first = await registered('a', 'm9', T0);
          expect(first).toMatchObject({
            changed: true,
            machines: [{ name: 'm9', refused: null, problem: null }],
          });
          const m9 = first.machines[0]?.machineId as number;
          const second = await registered('b', 'm9', T0 + 3);
          expect(second).toMatchObject({ changed: false });
          expect(second.machines[0]?.refused).toMatch(
            /machine m9 is served by another agent on a \(last heard from 3 s ago\); b on b does not start jobs there/,
          );
          const [job, once] = await assigned(world, user, site, m9, [
            newJob(),
            newJob({ restartable: false }),
          ]);
          // What is there is told to the one that holds the lease, and believed of it alone.
          const of = async (agentId: number | null) =>
            (await store.assignments(site, null, 10, MIB, agentId)).assignments.map(({ jobId }) => jobId);
          expect(await of(first.agentId as number)).toEqual([job, once]);
          expect(await of(second.agentId as number)).toEqual([]);
          const report1 = [report(job!, 1)];
          expect((await store.reportRuns(site, report1, 3, second.agentId as number)).results).toEqual([
            'unknown-run',
          ]);
          expect((await store.reportRuns(site, report1, 3, first.agentId as number)).results).toEqual([
            'accepted',
          ]);

          for (let t = 0; t <= 100; t += 20) await store.processSeen('api', 'api', T0 + t);
          await store.sweep({ ...rules(T0 + 100), silentAfterS: 60, lostAfterS: 300 });
          const third = await registered('b', 'm9', T0 + 100);
          expect(third).toMatchObject({ changed: true, machines: [{ refused: null }] });
          expect(new Set(third.touched)).toEqual(new Set([site, null]));
          expect(await states([job!, once!])).toEqual(['QUEUED', 'FAILED']);
          // The former holder returns: it is refused now, and nobody listens to it.
          const beat = { siteId: site, agentId: first.agentId as number, instance: 'a-1' };
          expect((await store.heartbeat([beat], T0 + 101)).answers).toEqual(['known']);
          expect((await registered('a', 'm9', T0 + 101)).machines[0]?.refused).toMatch(
            /served by another agent on b/,
          );
          expect(
            (await store.reportRuns(site, [ended(job!, 1)], 3, first.agentId as number)).results,
          ).not.toEqual(['accepted']);
          await nothingBroken();
        });

        it('keeps when live runs last wrote their checkpoints, of the agent that serves them, and tells schedulers', async () => {
          const mine = await registered('a', 'm9', T0);
          const other = await registered('b', 'm10', T0);
          const [m9, m10] = [mine, other].map(({ machines }) => machines[0]?.machineId as number) as [
            number,
            number,
          ];
          const holder = mine.agentId as number;
          const checkpoint = { path: 'state', signal: 'SIGTERM' } as const;
          const ids = await dispatched(world, user, site, [
            newJob({ checkpoint }),
            newJob({ checkpoint }),
            newJob(),
            newJob({ checkpoint, tasks: 2 }),
          ]);
          const [one, two, without, many] = ids as [number, number, number, number];
          const starts = [one, two, without].map((id) => start(id, site, { [m9]: 1 }));
          const plan = [...starts, start(many, site, { [m9]: 1, [m10]: 1 })];
          expect((await store.applyStarts(site, plan, null, context())).refused).toEqual([]);
          const began = [one, two, without].map((id) => report(id, 1));
          await store.reportRuns(site, began, 3, holder);
          const told = (jobId: number, ageS: number, more: object = {}) => ({
            ...{ jobId, epoch: 1, token: null, task: null, ageS, ...more },
          });
          const known = async () =>
            Object.fromEntries((await store.checkpointsAt(site)).map(({ jobId, at }) => [jobId, at]));
          const note = (...reports: ReturnType<typeof told>[]) =>
            store.noteCheckpoints(site, holder, reports);
          // Not of another run, nor of a job that names none, nor from another agent, nor of another run with its number.
          await note(
            told(one, 0, { epoch: 2 }),
            told(without, 0),
            told(one, 0, { token: 'other' }),
            told(9e9, 0),
          );
          await store.noteCheckpoints(site, other.agentId as number, [told(one, 0)]);
          expect(await known()).toEqual({});
          // No earlier than its start, however long ago it says that was.
          await note(told(one, 1e9), told(two, 0));
          const first = await known();
          const runOf = async (id: number) =>
            (await store.loadGrid(0)).jobs.find(({ job }) => job.id === id)?.run;
          expect(first[one]).toBe((await runOf(one))?.start);
          expect(first[two]).toBeGreaterThanOrEqual(first[one] as number);
          expect((await runOf(two))?.checkpointAt).toBe(first[two]);
          // Twice, and what is older, late.
          await note(told(two, 1e9));
          expect(await known()).toEqual(first);
          // Of several tasks it is what all of them have.
          const begins = (task: number, of: number) =>
            store.reportRuns(site, [{ ...report(many, 1), task }], 3, of);
          await begins(0, holder);
          await note(told(many, 0, { task: 0 }), told(many, 0, { task: 1 }));
          await begins(1, other.agentId as number);
          expect((await known())[many]).toBeUndefined();
          await store.noteCheckpoints(site, other.agentId as number, [told(many, 0, { task: 1 })]);
          expect((await known())[many]).toBeGreaterThanOrEqual((await runOf(many))?.start as number);
          // A mirror that was there before takes them in when it is asked to.
          const mirror = new Mirror(store);
          await mirror.sync();
          await note(told(one, 0));
          await mirror.syncCheckpoints(site);
          const runs = mirror.grid
            .siteEntry(site)
            .resources.runs.map(({ run }) => [run.jobId, run.checkpointAt]);
          expect(Object.fromEntries(runs.filter(([, at]) => at !== undefined))).toEqual(await known());
          // What has ended has no news.
          await store.reportRuns(site, [ended(two, 1)], 3, holder);
          await note(told(two, 0));
          expect(Object.keys(await known()).map(Number)).toEqual([one, many]);
          await nothingBroken();
        });

        it('renews the leases of all that beat together, and tells who has been superseded or forgotten', async () => {
          await registered('a', 'm9', T0, {}, 'a-0');
          const { agentId } = await registered('a', 'm9', T0);
          for (let t = 0; t <= 100; t += 20) await store.processSeen('api', 'api', T0 + t);
          await store.sweep({ ...rules(T0 + 100), silentAfterS: 60, lostAfterS: 300 });
          // The last one registered after a backup that the database was restored from.
          const beats = ['a-1', 'a-0', 'a-2'].map((instance) => ({
            siteId: site,
            agentId: agentId as number,
            instance,
          }));
          const outcome = await store.heartbeat([...beats, { ...beats[0]!, agentId: 77_777 }], T0 + 101);
          expect(outcome).toEqual({
            answers: ['known', 'superseded', 'unknown', 'unknown'],
            touched: [site],
          });
          expect((await store.heartbeat(beats, T0 + 102)).touched).toEqual([]);
        });

        it('a process that was superseded never speaks for the agent again, however late its registration comes', async () => {
          const instances = Array.from({ length: 10 }, (_, i) => `a-${i}`);
          let agentId: unknown;
          for (const instance of instances) {
            const outcome = await registered('a', 'm9', T0, {}, instance);
            agentId ??= outcome.agentId;
            expect(outcome.agentId).toBe(agentId);
          }
          for (const instance of instances.slice(1, 9))
            expect(await registered('a', 'm9', T0 + 1, {}, instance)).toEqual({
              ...{ agentId: 'superseded', machines: [], changed: false, touched: [] },
            });
          expect((await registered('a', 'm9', T0 + 1, {}, 'a-9')).agentId).toBe(agentId);
          const beats = ['a-9', 'a-8'].map((instance) => ({
            ...{ siteId: site, agentId: agentId as number, instance },
          }));
          expect((await store.heartbeat(beats, T0 + 1)).answers).toEqual(['known', 'superseded']);
        });

        it('uses no machine that was registered with more than is there, or that its agent finds unfit', async () => {
          const m10 = await world.addMachine(site, 'm10', 8);
          const outcome = await registered('a', 'm10', T0);
          expect(outcome.machines).toEqual([
            {
              machineId: m10,
              name: 'm10',
              refused: null,
              problem: 'its hardware does not match its registration: cpus 8, measured 4',
            },
          ]);
          expect(await available('m10')).toBe(false);
          await registered('a', 'm9', T0, { problem: 'the disk is full' });
          expect(await available('m9')).toBe(false);
          expect((await registered('a', 'm9', T0 + 1)).changed).toBe(true);
          expect(await available('m9')).toBe(true);
          expect((await registered('a', 'm9', T0 + 2)).changed).toBe(false);
        });
      });

      it('tries elsewhere what a machine could not launch, and drains one where that keeps happening', async () => {
        const m10 = await world.addMachine(site, 'm10', 2);
        const available = async () =>
          (await store.loadGrid(0)).machines.find(({ id }) => id === m10)?.available;
        const [job] = await submit(world, user, [newJob({ restartable: false })]);
        const broken = (id: number, epoch: number) =>
          ended(id, epoch, { exitCode: null, cause: 'MACHINE_FAILED', message: 'no slots' });
        const tried = async (id: number, reports: RunReport[]) => {
          await vouch(store, site, [m10]);
          expect(await available()).toBe(true);
          await store.applyMoves([move(id, site)], context());
          await store.applyStarts(site, [start(id, site, { [m10]: 1 })], null, context());
          return store.reportRuns(site, reports, MAX_ATTEMPTS);
        };
        // It has not begun, so it may begin elsewhere, though it is not to be restarted.
        expect(await tried(job!, [broken(job!, 1)])).toEqual({
          results: ['accepted'],
          touched: [site, null],
        });
        expect(await states([job!])).toEqual(['QUEUED']);
        expect(await available()).toBe(false);
        // One that starts in between shows that the machine is not broken.
        const [good] = await submit(world, user, [newJob()]);
        await tried(good!, [report(good!, 1), ended(good!, 1)]);
        for (const epoch of [2, 3]) await tried(job!, [report(job!, epoch), broken(job!, epoch)]);
        expect(await states([job!])).toEqual(['FAILED']);
        const [other] = await submit(world, user, [newJob()]);
        await tried(other!, [broken(other!, 1)]);
        await vouch(store, site, [m10]);
        expect(await available()).toBe(false);
        await world.setMachineState(m10, 'UP');
        expect(await available()).toBe(true);
        await nothingBroken();
      });

      it("counts nobody's silence while there was no API to talk to", async () => {
        const [a] = await assigned(world, user, site, machine, [newJob()]);
        // Nothing of the service is there.
        expect(await store.sweep(rules(T0 + 1000))).toMatchObject({ silentMachines: 0, lostRuns: 0 });
        // A worker is nobody that an agent talks to.
        await store.processSeen('w', 'worker', T0 + 1000);
        expect(await store.sweep(rules(T0 + 1000))).toMatchObject({ silentMachines: 0, lostRuns: 0 });
        // The same process comes back after a gap: it counts from then on.
        await store.processSeen('api', 'api', T0);
        await store.processSeen('api', 'api', T0 + 1000);
        expect(await store.sweep(rules(T0 + 1001))).toMatchObject({ silentMachines: 0, lostRuns: 0 });
        expect(await states([a!])).toEqual(['ASSIGNED']);
        await nothingBroken();
      });

      it('ends runs that exceed their limit and the grace to SIGKILL, should nobody else', async () => {
        const [a, b, c, d] = await assigned(world, user, site, machine, [
          newJob({ runTimeLimitS: 60, killGraceS: 5 }),
          newJob({ runTimeLimitS: 600 }),
          newJob(),
          newJob({ runTimeLimitS: 60, killGraceS: 100 }),
        ]);
        const started = [a!, b!, c!, d!].map((id) => report(id, 1));
        await store.reportRuns(site, started, MAX_ATTEMPTS);
        expect((await store.sweep(rules(T0 + 94))).overLimit).toBe(0);
        expect((await store.sweep(rules(T0 + 106))).overLimit).toBe(1);
        expect(await states([a!, b!, c!, d!])).toEqual(['FAILED', 'RUNNING', 'RUNNING', 'RUNNING']);
        expect((await store.reportRuns(site, [report(a!, 1), ended(a!, 1)], MAX_ATTEMPTS)).results).toEqual([
          'stale-epoch',
          'repeated',
        ]);
        await nothingBroken();
      });

      it("ends runs of jobs without a limit by the site's, as it was when they started", async () => {
        await world.setMaxLimit(site, 60);
        const [a] = await assigned(world, user, site, machine, [newJob({ killGraceS: 5 })]);
        await world.setMaxLimit(site, 600);
        const [b] = await assigned(world, user, site, machine, [newJob({ killGraceS: 5 })]);
        await world.setMaxLimit(site, null);
        const [c] = await assigned(world, user, site, machine, [newJob()]);
        await world.setMaxLimit(site, 1);
        const all = [a!, b!, c!];
        await store.reportRuns(
          site,
          all.map((id) => report(id, 1)),
          MAX_ATTEMPTS,
        );
        expect((await store.sweep(rules(T0 + 105))).overLimit).toBe(0);
        expect((await store.sweep(rules(T0 + 106))).overLimit).toBe(1);
        expect(await states(all)).toEqual(['FAILED', 'RUNNING', 'RUNNING']);
        expect((await store.sweep(rules(T0 + 646, { lostAfterS: 1e6 }))).overLimit).toBe(1);
        expect(await states(all)).toEqual(['FAILED', 'FAILED', 'RUNNING']);
        await nothingBroken();
      });

      it('records deadlines that pass, or cancels', async () => {
        const deadline = T0 + 50;
        const [a] = await submit(world, user, [newJob({ deadline })]);
        const [b] = await assigned(world, user, site, machine, [newJob({ deadline })]);
        expect((await store.sweep(rules(T0 + 49))).deadlinesMissed).toBe(0);
        expect((await store.sweep(rules(T0 + 51))).deadlinesMissed).toBe(2);
        expect((await store.sweep(rules(T0 + 52))).deadlinesMissed).toBe(0);
        expect(await states([a!, b!])).toEqual(['QUEUED', 'ASSIGNED']);
        const [c] = await submit(world, user, [newJob({ deadline })]);
        const [d] = await assigned(world, user, site, machine, [newJob({ deadline })]);
        expect((await store.sweep(rules(T0 + 60, { onDeadlinePassed: 'CANCEL' }))).deadlinesMissed).toBe(2);
        expect(await states([c!, d!])).toEqual(['CANCELLED', 'CANCELLING']);
        await store.reportRuns(site, [ended(d!, 1, { cause: 'SIGNALLED' })], MAX_ATTEMPTS);
        expect((await world.events(d!)).at(-1)).toMatchObject({
          toState: 'CANCELLED',
          cause: 'DEADLINE_PASSED',
        });
        await nothingBroken();
      });

      it('forgets what is old, in portions, and tells who comes with an old cursor', async () => {
        const [a, b] = await assigned(world, user, site, machine, [newJob(), newJob()]);
        const step = { number: 0, name: 'a', tasks: 1, machines: 1, cpus: 1, startedAt: T0, endedAt: T0 };
        const steps = [{ ...step, exitCode: 0, signal: null }];
        await store.reportRuns(site, [ended(a!, 1, { steps })], MAX_ATTEMPTS);
        expect(await world.steps({ jobId: a!, epoch: 1 })).toHaveLength(1);
        const { cursor } = await store.loadGrid(0);
        const all = {
          ...{ eventsBefore: Date.now() / 1000 + 60, unreadBefore: 0, jobsEndedBefore: T0 + 100 },
          ...{ processesBefore: 0, auditsBefore: 0 },
        };
        const first = await store.prune({ ...all, limit: 5 });
        expect(first).toEqual({ events: 5, jobs: 1, more: true });
        for (let more = true; more; ) more = (await store.prune({ ...all, limit: 5 })).more;
        expect(await store.changesSince('0', 10)).toBe('too-old');
        expect(await store.changesSince(cursor, 10)).toMatchObject({ cursor, jobs: [], more: false });
        const grid = await store.loadGrid(0);
        expect(grid.cursor).toBe(cursor);
        expect(grid.jobs.map(({ job }) => job.id)).toEqual([b]);
        expect(await world.steps({ jobId: a!, epoch: 1 })).toEqual([]);
        expect((await store.reportRuns(site, [ended(a!, 1), ended(b!, 1)], MAX_ATTEMPTS)).results).toEqual([
          'unknown-run',
          'accepted',
        ]);
      });
    });

    describe('followers of the event feed', () => {
      const ids = (given: Followed): number[] =>
        given.kind === 'events' ? given.events.map(({ id }) => id) : [];
      const forget = (unread: boolean) => {
        const now = Date.now() / 1000 + 60;
        const others = { jobsEndedBefore: 0, processesBefore: 0, auditsBefore: 0, limit: 1000 };
        return store.prune({ eventsBefore: now, unreadBefore: unread ? now : 0, ...others });
      };
      /** Has begun behind all that there is. */
      const begun = async (name: string, holder: string): Promise<Cursor> => {
        const first = await store.follow({ name, holder, after: null, limit: 10 });
        expect(first.kind).toBe('start-over');
        return (first as { cursor: Cursor }).cursor;
      };

      it('begin with what there is, then get every event once it is asked for, in order, until it is done', async () => {
        await submit(world, user, [newJob()]);
        const at = await begun('x', 'a');
        expect(await store.follow({ name: 'x', holder: 'a', after: null, limit: 10 })).toEqual({
          kind: 'start-over',
          cursor: at,
        });
        await submit(world, user, [newJob(), newJob(), newJob()]);
        const two = await store.follow({ name: 'x', holder: 'a', after: at, limit: 2 });
        expect(two).toMatchObject({ kind: 'events', more: true, events: [{ toState: 'QUEUED' }, {}] });
        expect(ids(two).every((id) => id > Number(at))).toBe(true);
        // Not done: it is handed out again.
        expect(await store.follow({ name: 'x', holder: 'a', after: null, limit: 2 })).toEqual(two);
        const { cursor } = two as { cursor: Cursor };
        const rest = await store.follow({ name: 'x', holder: 'a', after: cursor, limit: 2 });
        expect(ids(rest)).toHaveLength(1);
        expect(ids(rest)[0]).toBeGreaterThan(ids(two)[1] as number);
        const none = await store.follow({ name: 'x', holder: 'a', after: String(ids(rest)[0]), limit: 2 });
        expect(none).toEqual({ kind: 'events', cursor: String(ids(rest)[0]), events: [], more: false });
        // Another one has a cursor of its own.
        expect((await store.follow({ name: 'y', holder: 'a', after: null, limit: 2 })).kind).toBe(
          'start-over',
        );
      });

      it('get only what they want, and do not come to the rest again', async () => {
        const at = await begun('x', 'a');
        await submit(world, user, [newJob(), newJob({ held: true }), newJob()]);
        const turn = { name: 'x', holder: 'a', after: at, limit: 2 };
        const wanted = await store.follow({ ...turn, only: { states: ['HELD'] } });
        expect(wanted).toMatchObject({ kind: 'events', more: true, events: [{ toState: 'HELD' }] });
        const all = await store.follow({ ...turn, limit: 10 });
        const { cursor } = wanted as { cursor: Cursor };
        expect(cursor).toBe(String(ids(all)[1]));
        expect(await store.follow({ ...turn, only: { kinds: ['JOB_STATE'] }, limit: 10 })).toEqual(all);
        expect(await store.follow({ ...turn, after: cursor, only: { kinds: ['USER'] } })).toEqual({
          kind: 'events',
          cursor: String(ids(all)[2]),
          events: [],
          more: false,
        });
      });

      it('are held by one process; who was replaced moves nothing', async () => {
        const at = await begun('x', 'a');
        await submit(world, user, [newJob(), newJob()]);
        expect(await store.follow({ name: 'x', holder: 'b', after: null, limit: 10 })).toEqual({
          kind: 'held',
        });
        const given = await store.follow({ name: 'x', holder: 'a', after: at, limit: 10, leaseS: 0 });
        // Its lease has run out: the next one gets what it was about to do.
        expect(await store.follow({ name: 'x', holder: 'b', after: null, limit: 10 })).toEqual(given);
        const done = { name: 'x', after: (given as { cursor: Cursor }).cursor, limit: 10 };
        expect(await store.follow({ ...done, holder: 'a' })).toEqual({ kind: 'held' });
        expect(await store.follow({ name: 'x', holder: 'b', after: null, limit: 10 })).toEqual(given);
        // Without a lease, but not replaced: nobody else has begun.
        await store.follow({ ...done, holder: 'b', after: null, leaseS: 0 });
        expect(ids(await store.follow({ ...done, holder: 'b' }))).toEqual([]);
        expect(await store.follow({ ...done, holder: 'a', after: null })).toEqual({ kind: 'held' });
      });

      it('keep events from being forgotten, but not for ever: who is behind starts over', async () => {
        const at = await begun('x', 'a');
        await submit(world, user, [newJob(), newJob()]);
        await forget(false);
        const given = await store.follow({ name: 'x', holder: 'a', after: at, limit: 10 });
        expect(ids(given)).toHaveLength(2);
        const { cursor } = given as { cursor: Cursor };
        await store.follow({ name: 'x', holder: 'a', after: String(ids(given)[0]), limit: 10, leaseS: 900 });
        await forget(true);
        expect(await store.changesSince(String(ids(given)[0]), 10)).toBe('too-old');
        expect(await store.follow({ name: 'x', holder: 'a', after: null, limit: 10 })).toEqual({
          kind: 'start-over',
          cursor,
        });
        // One that nobody has followed for as long is forgotten, and keeps nothing.
        await store.follow({ name: 'x', holder: 'a', after: cursor, limit: 10, leaseS: 0 });
        await forget(true);
        await submit(world, user, [newJob()]);
        await forget(false);
        expect(await store.changesSince(cursor, 10)).toBe('too-old');
      });
    });

    describe('needs', () => {
      const term = (target: object, condition = 'OK', minDelayS = 0): NewNeedTerm =>
        ({ ...target, condition, minDelayS }) as NewNeedTerm;
      const needing = (
        of: NewNeedTerm[],
        more: Partial<NewWait> = {},
        job: Partial<NewJob> = {},
      ): NewJob => ({
        ...newJob(job),
        wait: { needs: [{ expression: 'ALL', of }], onUnmet: 'CANCEL', notBefore: null, ...more },
      });
      const of = async (id: number) => {
        const { toState, cause } = (await world.events(id)).at(-1) as EventRow;
        return cause === null ? toState : `${toState} ${cause}`;
      };
      const all = (ids: readonly number[]) => Promise.all(ids.map(of));
      const run = async (id: number, end: Partial<RunReport> | null = {}) => {
        await store.applyMoves([move(id, site)], context());
        await store.applyStarts(site, [start(id, site, { [machine]: 1 })], null, context());
        const reports = [report(id, 1)];
        if (end !== null) reports.push(ended(id, 1, end));
        await store.reportRuns(site, reports, MAX_ATTEMPTS);
      };
      const bad = { cause: 'EXITED_NONZERO', exitCode: 1 } as const;
      const soon = () => Date.now() / 1000 + 5;

      it('block a job until what it needs has happened; then its age begins', async () => {
        const [a, b, c] = await submit(world, user, [
          newJob(),
          needing([term({ item: 0 })], {}, { deadline: T0 + 300 }),
          needing([term({ item: 0 }, 'START')]),
        ]);
        expect(await all([a!, b!, c!])).toEqual(['QUEUED', 'BLOCKED', 'BLOCKED']);
        expect(await store.applyMoves([move(b!, site)], context())).toMatchObject({ accepted: [] });
        await store.settleNeeds([a!, b!, c!], soon());
        expect(await all([b!, c!])).toEqual(['BLOCKED', 'BLOCKED']);
        await run(a!, null);
        expect(await store.settleNeeds([a!], soon())).toEqual({ queued: 1, cancelled: 0, held: 0 });
        expect(await all([b!, c!])).toEqual(['BLOCKED', 'QUEUED']);
        const before = await store.loadGrid(0);
        await store.reportRuns(site, [ended(a!, 1)], MAX_ATTEMPTS);
        await store.settleNeeds([a!], soon());
        expect(await store.settleNeeds([a!], soon())).toEqual({ queued: 0, cancelled: 0, held: 0 });
        expect(await all([b!, c!])).toEqual(['QUEUED', 'QUEUED']);
        const grid = await store.loadGrid(0);
        const told = (await store.changesSince(before.cursor, 100)) as Exclude<
          Awaited<ReturnType<World['store']['changesSince']>>,
          'too-old'
        >;
        const ages = [...grid.jobs, ...told.jobs].flatMap(({ job }) =>
          job !== null && job.id === b ? [job.submittedAt] : [],
        );
        expect(ages).toEqual([T0 + 20, T0 + 20]);
        // With it the time that is left until its deadline.
        await store.applyMoves([move(b!, site)], context());
        expect((await store.loadGrid(10)).margins).toEqual([180]);
        expect(await store.changesSince(grid.cursor, 100)).toMatchObject({ margins: [180] });
        await nothingBroken();
      });

      it('that cannot hold any more cancel, and so on along the graph; or hold; or do not count', async () => {
        const ids = await submit(world, user, [
          newJob({ name: 'first' }),
          needing([term({ item: 0 })]),
          needing([term({ item: 1 })]),
          needing([term({ item: 2 }, 'NOT_OK')]),
          needing([term({ item: 2 })], { onUnmet: 'HOLD' }),
          needing([term({ item: 4 }, 'ANY')]),
          needing([term({ item: 1 }, 'START')], { onUnmet: 'RUN' }),
        ]);
        await run(ids[0]!, bad);
        expect(await store.settleNeeds([ids[0]!], soon())).toEqual({ queued: 2, cancelled: 2, held: 1 });
        const failed = 'CANCELLED DEPENDENCY_FAILED';
        expect(await all(ids)).toEqual([
          'FAILED EXITED_NONZERO',
          ...[failed, failed, 'QUEUED', 'HELD', 'BLOCKED', 'QUEUED'],
        ]);
        expect((await store.waitsOf(ids)).get(ids[4]!)).toMatchObject({ because: ids[2] });
        // Released, it goes on as if its needs did not count.
        await store.release(byIds([ids[4]!]));
        expect(await of(ids[4]!)).toBe('BLOCKED');
        await store.settleNeeds([ids[4]!], soon());
        expect(await of(ids[4]!)).toBe('QUEUED');
        await nothingBroken();
      });

      it('are decided by what ended before, and by groups as they were at submission', async () => {
        const [a, b] = await submit(world, user, [newJob({ groupName: 'g' }), newJob({ groupName: 'g' })]);
        await run(a!);
        const [c, d] = await submit(world, user, [
          needing([term({ group: 'g' }), term({ job: a! }, 'ANY')]),
          needing([term({ job: a! })]),
        ]);
        await submit(world, user, [newJob({ groupName: 'g' })]);
        await store.settleNeeds([c!, d!], soon());
        expect(await all([c!, d!])).toEqual(['BLOCKED', 'QUEUED']);
        await run(b!);
        await store.settleNeeds([b!], soon());
        expect(await of(c!)).toBe('QUEUED');
        expect(
          await store.submit({
            ...{ userId: user, idempotencyKey: null, payloadHash: 'x', now: T0 },
            jobs: [needing([term({ job: 999_999 })])],
          }),
        ).toEqual({ kind: 'gone', jobs: [999_999] });
      });

      it('of a group are decided by its first bad end, or by its last one', async () => {
        const members = await submit(
          world,
          user,
          [1, 2, 3, 4].map(() => newJob({ groupName: 'ended' })),
        );
        const [ok, any, failing, begun] = await submit(world, user, [
          needing([term({ group: 'ended' })]),
          needing([term({ group: 'ended' }, 'ANY')]),
          needing([term({ group: 'ended' }, 'NOT_OK')]),
          needing([term({ group: 'ended' }, 'START')]),
        ]);
        const waiting = [ok!, any!, failing!, begun!];
        // Later members do not count.
        const [later] = await submit(world, user, [newJob({ groupName: 'ended' })]);
        await store.settleNeeds(waiting, soon());
        const states = async (about: number) => {
          await store.settleNeeds([about], soon());
          return all(waiting);
        };
        await run(members[0]!);
        expect(await states(members[0]!)).toEqual(['BLOCKED', 'BLOCKED', 'BLOCKED', 'BLOCKED']);
        await run(members[2]!, bad);
        const failed = 'CANCELLED DEPENDENCY_FAILED';
        expect(await states(members[2]!)).toEqual([failed, 'BLOCKED', 'BLOCKED', 'BLOCKED']);
        expect((await store.waitsOf([ok!])).get(ok!)?.because).toBe(members[2]);
        await run(members[1]!, bad);
        expect(await states(members[1]!)).toEqual([failed, 'BLOCKED', 'BLOCKED', 'BLOCKED']);
        await run(members[3]!);
        expect(await states(members[3]!)).toEqual([failed, 'QUEUED', 'QUEUED', 'QUEUED']);
        expect(await of(later!)).toBe('QUEUED');
        await nothingBroken();
      });

      it('keep what they name, whatever retention says', async () => {
        const [a] = await submit(world, user, [newJob()]);
        const [g] = await submit(world, user, [newJob({ groupName: 'g' })]);
        for (const id of [a!, g!]) await run(id);
        const [b] = await submit(world, user, [
          needing([term({ job: a! }), term({ group: 'g' })], { notBefore: soon() + 900 }),
        ]);
        const forget = () =>
          store.prune({
            ...{ eventsBefore: 0, unreadBefore: 0, jobsEndedBefore: Date.now() / 1000 + 60 },
            ...{ processesBefore: 0, auditsBefore: 0, limit: 100 },
          });
        expect((await forget()).jobs).toBe(0);
        await store.settleNeeds([b!], soon());
        expect((await forget()).jobs).toBe(0);
        await store.cancel(byIds([b!]), T0, 'CANCELLED_BY_USER');
        let gone = 0;
        for (let i = 0; i < 2; i++) gone += (await forget()).jobs;
        expect(gone).toBe(3);
      });

      it('may be for a time, or want one to have passed; a job that a person holds is left alone', async () => {
        const later = soon() + 100;
        const [a, b, c, past] = await submit(world, user, [
          newJob(),
          needing([], { needs: [], notBefore: later }),
          needing([term({ item: 0 }, 'ANY', 1e9)]),
          needing([], { needs: [], notBefore: T0 - 5 }),
        ]);
        expect(await all([b!, past!])).toEqual(['BLOCKED', 'QUEUED']);
        await run(a!);
        await store.settleNeeds([a!], soon());
        const due = (await store.waitsOf([c!])).get(c!)?.dueAt as number;
        expect(due).toBe(T0 + 20 + 1e9);
        await store.settleNeeds('DUE', later - 1);
        expect(await all([b!, c!])).toEqual(['BLOCKED', 'BLOCKED']);
        await store.hold(byIds([b!]));
        await store.settleNeeds('DUE', later + 1);
        expect(await of(b!)).toBe('HELD');
        await store.release(byIds([b!]));
        expect(await of(b!)).toBe('BLOCKED');
        await store.settleNeeds('DUE', Math.max(later, due) + 1);
        expect(await all([b!, c!])).toEqual(['QUEUED', 'QUEUED']);
        await nothingBroken();
      });

      /** Reads files of these jobs, and needs them. */
      const reading = (from: [of: ReadTarget, path: string][], more: Partial<NewWait> = {}): NewJob =>
        needing(
          from.map(([target]) => term(target)),
          { reads: new Map(from.map(([target], place) => [place, [target]])), ...more },
          {
            inputs: from.map(([, path]) => ({
              datasetId: NO_DATASET,
              from: { job: 0, path, expectedMb: 7 },
            })),
          },
        );
      const inputsOf = async (id: number): Promise<JobData['inputs'] | undefined> =>
        (await store.loadGrid(0)).jobs.find(({ job }) => job.id === id)?.job.data?.inputs;

      it('for what others keep make it an input, at the site where they ended, as large as it is', async () => {
        const [a, b] = await submit(world, user, [
          newJob({ outputs: [{ path: 'out' }, { path: 'set', dataset: 'made' }] }),
          reading([
            [{ item: 0 }, 'out'],
            [{ item: 0 }, 'set'],
          ]),
        ]);
        await run(a!);
        const made = await world.addDataset('made', 5, [site]);
        await world.keep(a!, 'out', { sizeMb: 3 });
        await world.keep(a!, 'set', { datasetId: made });
        await store.settleNeeds([a!], soon());
        expect(await of(b!)).toBe('QUEUED');
        const from = { job: a, expectedMb: 7 };
        expect(await inputsOf(b!)).toEqual([
          { siteId: site, sizeMb: 3, from: { ...from, path: 'out' } },
          { datasetId: made, from: { ...from, path: 'set' } },
        ]);
        await nothingBroken();
      });

      it('for what others have not kept cannot hold; one that runs all the same reads nothing there', async () => {
        const out: [ReadTarget, string][] = [[{ item: 0 }, 'out']];
        const ids = await submit(world, user, [
          newJob({ name: 'first' }),
          reading(out),
          reading(out, { onUnmet: 'HOLD' }),
          reading(out, { onUnmet: 'RUN' }),
          needing([term({ item: 1 })]),
        ]);
        await run(ids[0]!);
        expect(await store.settleNeeds([ids[0]!], soon())).toEqual({ queued: 1, cancelled: 2, held: 1 });
        const failed = 'CANCELLED DEPENDENCY_FAILED';
        expect(await all(ids)).toEqual(['COMPLETED EXITED_ZERO', failed, 'HELD', 'QUEUED', failed]);
        expect((await store.waitsOf(ids)).get(ids[1]!)).toMatchObject({ because: ids[0] });
        expect(await inputsOf(ids[3]!)).toMatchObject([{ datasetId: NO_DATASET }]);
        await nothingBroken();
      });
    });

    describe('reruns', () => {
      const term = (target: object, condition = 'OK'): NewNeedTerm =>
        ({ ...target, condition, minDelayS: 0 }) as NewNeedTerm;
      const needing = (
        of: NewNeedTerm[],
        job: Partial<NewJob> = {},
        more: Partial<NewWait> = {},
      ): NewJob => ({
        ...newJob(job),
        wait: { needs: [{ expression: 'ALL', of }], onUnmet: 'CANCEL', notBefore: null, ...more },
      });
      const of = async (id: number) => {
        const { toState, cause } = (await world.events(id)).at(-1) as EventRow;
        return cause === null ? toState : `${toState} ${cause}`;
      };
      const all = (ids: readonly number[]) => Promise.all(ids.map(of));
      const soon = () => Date.now() / 1000 + 5;
      const ok = { cause: 'EXITED_ZERO', exitCode: 0 } as const;
      const bad = { cause: 'EXITED_NONZERO', exitCode: 1 } as const;
      /** Runs it to this end, and decides what follows. */
      const run = async (id: number, end: Partial<RunReport>) => {
        await store.applyMoves([move(id, site)], context());
        await store.applyStarts(site, [start(id, site, { [machine]: 1 })], null, context());
        await store.reportRuns(site, [report(id, 1), ended(id, 1, end)], MAX_ATTEMPTS);
        await store.settleNeeds([id], soon());
      };
      const again = async (more: Partial<Rerun> = {}) => {
        const outcome = await store.rerun({
          ...{ userId: user, target: { group: 'g' }, only: 'FAILED_AND_DOWNSTREAM', limit: 100, now: T0 },
          ...more,
        });
        if (outcome.kind !== 'accepted') throw new Error(JSON.stringify(outcome));
        return outcome;
      };
      const failed = 'CANCELLED DEPENDENCY_FAILED';

      it('make copies of what failed and of what was canceled for it, once; what completed is not run again', async () => {
        const g = { groupName: 'g' };
        const ids = await submit(world, user, [
          newJob({ ...g, name: 'good' }),
          newJob({ ...g, name: 'bad', deadline: T0 - 1 }),
          needing([term({ item: 0 }), term({ item: 1 })], { ...g, name: 'both' }),
          needing([term({ item: 2 })], { name: 'outside' }),
          needing([term({ item: 0 })], { ...g, name: 'other' }),
        ]);
        const [good, broken, , , other] = ids as [number, number, number, number, number];
        await run(good, ok);
        await run(broken, bad);
        await run(other, ok);
        expect(await all(ids.slice(1, 4))).toEqual(['FAILED EXITED_NONZERO', failed, failed]);
        const { jobIds, repointed } = await again();
        expect(repointed).toEqual([]);
        expect(await all(jobIds)).toEqual(['QUEUED', 'BLOCKED', 'BLOCKED']);
        expect(await Promise.all(jobIds.map(async (id) => (await world.events(id))[0]?.note))).toEqual(
          ids.slice(1, 4).map((id) => `rerun of job_${id}`),
        );
        const [a, b, c] = jobIds as [number, number, number];
        const waits = await store.waitsOf(jobIds);
        expect(waits.get(b)?.needs).toEqual([
          { expression: 'ALL', of: [term({ job: good }), term({ job: a })] },
        ]);
        expect(waits.get(c)?.needs).toEqual([{ expression: 'ALL', of: [term({ job: b })] }]);
        expect(await again()).toEqual({ kind: 'accepted', jobIds: [], repointed: [] });
        await store.settleNeeds(jobIds, soon());
        await run(a, bad);
        expect(await all(jobIds)).toEqual(['FAILED EXITED_NONZERO', failed, failed]);
        // The copies are run again, too; and so is what was left out.
        const { jobIds: next } = await again({ only: 'FAILED' });
        expect(await all(next)).toEqual(['QUEUED']);
        await run(next[0]!, ok);
        const { jobIds: rest } = await again();
        expect((await store.waitsOf(rest)).get(rest[0]!)?.needs[0]?.of[1]).toEqual(term({ job: next[0] }));
        await store.settleNeeds(rest, soon());
        expect(await all(rest)).toEqual(['QUEUED', 'BLOCKED']);
        // Named, a job is run again however it ended, and once.
        const named = { target: { jobs: [...ids, ...rest, 10 ** 9] } };
        expect((await again({ ...named, userId: await world.addUser('bob') })).jobIds).toEqual([]);
        const { jobIds: byName } = await again(named);
        const notes = await Promise.all(byName.map(async (id) => (await world.events(id))[0]?.note));
        expect(notes).toEqual([good, other].map((id) => `rerun of job_${id}`));
        expect(await all(byName)).toEqual(['QUEUED', 'BLOCKED']);
        expect((await again(named)).jobIds).toEqual([]);
        await nothingBroken();
      });

      it('are waited for by what waited for the jobs, and by what was held for them', async () => {
        const ids = await submit(world, user, [
          newJob({ groupName: 'g' }),
          newJob({ groupName: 'late' }),
          needing([term({ item: 0 }), term({ item: 1 })], {}, { onUnmet: 'HOLD' }),
          needing([term({ item: 0 }, 'ANY'), term({ item: 1 })]),
          needing([term({ item: 0 }, 'ANY')]),
          needing([term({ item: 0 }, 'ANY'), term({ item: 1 })]),
        ]);
        const [broken, late, held, waiting, begun, byPerson] = ids as [
          number,
          number,
          number,
          number,
          number,
          number,
        ];
        await store.hold(byIds([byPerson]));
        await run(broken, bad);
        expect(await all([held, waiting, begun, byPerson])).toEqual(['HELD', 'BLOCKED', 'QUEUED', 'HELD']);
        const { jobIds, repointed } = await again();
        expect(repointed).toEqual([held, waiting, byPerson]);
        expect(await all(repointed)).toEqual(['BLOCKED', 'BLOCKED', 'HELD']);
        const { note } = (await world.events(waiting)).at(-1) as EventRow;
        expect(note).toBe(
          `needs ANY of job_${broken} and OK of job_${late} → ANY of job_${jobIds[0]} and OK of job_${late}`,
        );
        await run(late, ok);
        expect(await all([held, waiting])).toEqual(['BLOCKED', 'BLOCKED']);
        await run(jobIds[0]!, ok);
        expect(await all([held, waiting, byPerson])).toEqual(['QUEUED', 'QUEUED', 'HELD']);
        await store.release(byIds([byPerson]));
        await store.settleNeeds([byPerson], soon());
        expect(await of(byPerson)).toBe('QUEUED');
        await nothingBroken();
      });

      it('take the place of members where a whole group is needed, and are kept as they are', async () => {
        const accepted = await store.submit({
          ...{ userId: user, idempotencyKey: null, payloadHash: '', now: T0 },
          group: { name: null, template: {} },
          jobs: [1, 2, 3].map(() => newJob({ groupName: 'g' })),
        });
        if (accepted.kind !== 'accepted') throw new Error(accepted.kind);
        const jobGroup = accepted.groupId as number;
        const members = accepted.jobIds;
        const waiting = await submit(world, user, [
          needing([term({ jobGroup })], {}, { onUnmet: 'HOLD' }),
          needing([term({ group: 'g' })], {}, { onUnmet: 'HOLD' }),
          needing([term({ jobGroup }, 'NOT_OK')]),
          needing([term({ group: 'g' }, 'START')]),
        ]);
        await run(members[0]!, bad);
        expect(await all(waiting)).toEqual(['HELD', 'HELD', 'BLOCKED', 'BLOCKED']);
        const { jobIds, repointed } = await again({ target: { jobGroup } });
        expect(repointed).toEqual(waiting);
        await store.settleNeeds(waiting, soon());
        expect(await all(waiting)).toEqual(['BLOCKED', 'BLOCKED', 'BLOCKED', 'BLOCKED']);
        await run(members[1]!, ok);
        // A copy fails, and is run again in its turn.
        await run(jobIds[0]!, bad);
        expect(await all(waiting)).toEqual(['HELD', 'HELD', 'BLOCKED', 'BLOCKED']);
        const { jobIds: next } = await again({ target: { jobGroup } });
        await run(members[2]!, ok);
        expect(await all(waiting)).toEqual(['BLOCKED', 'BLOCKED', 'BLOCKED', 'BLOCKED']);
        const forget = () =>
          store.prune({
            ...{ eventsBefore: 0, unreadBefore: 0, jobsEndedBefore: Date.now() / 1000 + 60 },
            ...{ processesBefore: 0, auditsBefore: 0, limit: 100 },
          });
        expect((await forget()).jobs).toBe(0);
        await run(next[0]!, ok);
        expect(await all(waiting)).toEqual(['QUEUED', 'QUEUED', failed, 'QUEUED']);
      });

      it('count for who names the group later, in a submission and in a change', async () => {
        const accepted = await store.submit({
          ...{ userId: user, idempotencyKey: null, payloadHash: '', now: T0 },
          group: { name: null, template: {} },
          jobs: [1, 2].map(() => newJob({ groupName: 'g' })),
        });
        if (accepted.kind !== 'accepted') throw new Error(accepted.kind);
        const jobGroup = accepted.groupId as number;
        const [good, broken] = accepted.jobIds as [number, number];
        const [changed] = await submit(world, user, [newJob({ held: true })]);
        await run(good, ok);
        await run(broken, bad);
        const { jobIds } = await again({ target: { jobGroup } });
        await run(jobIds[0]!, bad);
        const { jobIds: last } = await again({ target: { jobGroup } });
        const copies = { asOf: last[0]!, groups: expect.arrayContaining([expect.any(Number)]) };
        const late = await submit(world, user, [
          needing([term({ jobGroup })]),
          needing([term({ group: 'g' })]),
          needing([term({ group: 'g' }, 'NOT_OK')]),
        ]);
        await store.revise(byIds([changed!]), {
          ...{ values: {}, memoryMbPerCpu: null, userId: user, fault: () => null, bytesMax: null, now: T0 },
          wait: { needs: [{ expression: 'ALL', of: [term({ jobGroup })] }] },
        });
        for (const [id, wait] of await store.waitsOf([late[0]!, changed!]))
          expect(wait.needs[0]?.of, `job ${id}`).toEqual([{ ...term({ jobGroup }), again: copies }]);
        await store.release(byIds([changed!]));
        const waiting = [...late, changed!];
        await store.settleNeeds(waiting, soon());
        expect(await all(waiting)).toEqual(['BLOCKED', 'BLOCKED', 'BLOCKED', 'BLOCKED']);
        // The copies are kept for them.
        const { jobs } = await store.prune({
          ...{ eventsBefore: 0, unreadBefore: 0, jobsEndedBefore: Date.now() / 1000 + 60 },
          ...{ processesBefore: 0, auditsBefore: 0, limit: 100 },
        });
        expect(jobs).toBe(0);
        await run(last[0]!, ok);
        expect(await all(waiting)).toEqual(['QUEUED', 'QUEUED', failed, 'QUEUED']);
      });

      it('are refused as a whole beyond the limit, and make no circles', async () => {
        const [first, second] = await submit(world, user, [
          newJob({ groupName: 'g' }),
          newJob({ groupName: 'g' }),
        ]);
        const [waits] = await submit(world, user, [newJob({ held: true })]);
        // It needs a job that came to need it after it had ended.
        const [odd] = await submit(world, user, [needing([term({ job: waits! })], { groupName: 'g' })]);
        await store.cancel(byIds([first!, second!, odd!]), T0, 'CANCELLED_BY_USER');
        await store.revise(byIds([waits!]), {
          ...{ values: {}, memoryMbPerCpu: null, userId: user, fault: () => null, bytesMax: null, now: T0 },
          wait: { needs: [{ expression: 'ALL', of: [term({ job: odd! }, 'ANY')] }] },
        });
        const request = { userId: user, target: { group: 'g' }, only: 'FAILED', now: T0 } as const;
        expect(await store.rerun({ ...request, limit: 2 })).toEqual({ kind: 'too-many', limit: 2 });
        expect(await again({ limit: 3 })).toMatchObject({ repointed: [] });
        expect((await store.waitsOf([waits!])).get(waits!)?.needs[0]?.of).toEqual([
          term({ job: odd! }, 'ANY'),
        ]);
        expect(await again({ userId: await world.addUser('another') })).toMatchObject({ jobIds: [] });
        await nothingBroken();
      });
    });

    describe('changes of what is not yet decided', () => {
      const asked = (values: JobChanges['values'], more: Partial<JobChanges> = {}): JobChanges => ({
        ...{ values, memoryMbPerCpu: null, wait: null, userId: user },
        ...{ fault: () => null, bytesMax: null, now: T0 },
        ...more,
      });
      const waitFor = (of: NewNeedTerm[], more: Partial<NewWait> = {}): Partial<JobChanges> => ({
        wait: { needs: [{ expression: 'ALL', of }], ...more },
      });
      const need = (target: object, condition = 'OK'): NewNeedTerm =>
        ({ ...target, condition, minDelayS: 0 }) as NewNeedTerm;
      const latest = async (id: number) => {
        const { kind, toState, note, siteId } = (await world.events(id)).at(-1) as EventRow;
        return [kind, toState, siteId, note];
      };

      it('give each job memory for as many CPUs as it has', async () => {
        const ids = await submit(world, user, [
          newJob({ cpusPerTask: 1, memoryMbPerTask: 500 }),
          newJob({ cpusPerTask: 3 }),
          newJob({ cpusPerTask: 3, memoryMbPerTask: 300 }),
        ]);
        const memory = async () =>
          (await store.loadGrid(0)).jobs.map(({ job }) => [job.cpusPerTask, job.memoryMbPerTask]);
        await store.revise(byIds(ids), asked({}, { memoryMbPerCpu: 100 }));
        expect(await memory()).toEqual([
          [1, 100],
          [3, 300],
          [3, 300],
        ]);
        expect((await latest(ids[0]!))[3]).toBe('memoryMbPerTask 500 → 100');
        // It already was so.
        expect((await world.events(ids[2]!)).map(({ kind }) => kind)).not.toContain('JOB_CHANGED');
        await store.revise(byIds([ids[0]!]), asked({ memoryMbPerTask: 250 }, { memoryMbPerCpu: 100 }));
        await store.revise(byIds([ids[1]!]), asked({ cpusPerTask: 2 }, { memoryMbPerCpu: 100 }));
        expect((await memory()).slice(0, 2)).toEqual([
          [1, 250],
          [2, 200],
        ]);
        await nothingBroken();
      });

      it('put jobs into lanes, of which so many run at once, and take them out again', async () => {
        const other = (await submit(world, user, [newJob()]))[0]!;
        const ids = await submit(world, user, [
          ...Array.from({ length: 4 }, () => newJob()),
          newJob({
            wait: {
              needs: [{ expression: 'ALL', of: [need({ job: other })] }],
              onUnmet: 'CANCEL',
              notBefore: null,
            },
          }),
        ]);
        const [a, b, c, d, e] = ids as [number, number, number, number, number];
        const needed = async () => {
          const waits = await store.waitsOf(ids);
          return ids.map((id) =>
            (waits.get(id)?.needs ?? []).map(({ of }) =>
              of.map((one) => 'job' in one && [one.job, one.condition]),
            ),
          );
        };
        const queued = async () => {
          const { jobs } = await store.loadGrid(0);
          return ids.filter((id) => jobs.some(({ job, state }) => job.id === id && state === 'QUEUED'));
        };
        const atOnce = (value: number, of = ids) => store.revise(byIds(of), asked({ atOnce: value }));
        const lane = (job: number) => [[job, 'ANY']];
        const own = [[other, 'OK']];
        expect(await atOnce(2)).toMatchObject({ changed: ids, refused: [] });
        expect(await needed()).toEqual([[], [], [lane(a)], [lane(b)], [own, lane(c)]]);
        expect(await queued()).toEqual([a, b]);
        expect((await latest(c))[3]).toBe(`atOnce none → 2; needs none → ANY of job_${a}`);
        await store.applyMoves([move(a, site), move(b, site)], context());
        const taken = { [machine]: 1 };
        await store.applyStarts(site, [start(a, site, taken), start(b, site, taken)], null, context());
        // What runs goes on, and all of it is in the one lane.
        expect(await atOnce(1)).toMatchObject({ changed: ids, refused: [] });
        expect(await needed()).toEqual([[], [], [[...lane(a), ...lane(b)]], [lane(c)], [own, lane(d)]]);
        expect(await atOnce(1)).toMatchObject({ changed: ids, touched: [] });
        expect(await atOnce(3)).toMatchObject({ refused: [] });
        expect(await needed()).toEqual([[], [], [], [lane(a)], [own, lane(b)]]);
        // Of those that need one another there may be no order.
        const cause = { code: 'BAD_USER_INPUT', field: 'atOnce' };
        expect(await atOnce(1, [other, e])).toMatchObject({
          changed: [],
          refused: [{ fault: cause }, { fault: cause }],
        });
        const [foreign] = await submit(world, await world.addUser('third'), [newJob()]);
        expect(await atOnce(1, [c, foreign!])).toMatchObject({
          changed: [c],
          refused: [{ jobId: foreign, fault: cause }],
        });
        expect(await atOnce(0)).toMatchObject({ refused: [] });
        expect(await needed()).toEqual([[], [], [], [], [own]]);
        await nothingBroken();
      });

      it('give a job a class, and with it what it is charged, unless its runs are charged already', async () => {
        const [waits, ran] = (await submit(world, user, [
          newJob({ preemptionClass: 4 }),
          newJob({ class: 'urgent' }),
        ])) as [number, number];
        const spare = { class: 'spare', preemptionClass: 0, charged: false };
        expect(await store.revise(byIds([waits]), asked(spare))).toMatchObject({
          changed: [waits],
          refused: [],
        });
        expect((await latest(waits))[3]).toBe(
          'class none → "spare"; preemptionClass 4 → 0; charged true → false',
        );
        const mirror = new Mirror(store);
        await mirror.sync();
        expect(mirror.grid.job(waits)).toMatchObject({ class: 'spare', preemptionClass: 0 });
        await store.applyMoves([move(ran, site)], context());
        await store.applyStarts(site, [start(ran, site, { [machine]: 1 })], null, context());
        await store.reportRuns(site, [report(ran, 1), ended(ran, 1, { cause: 'LOST' })], MAX_ATTEMPTS);
        expect(await store.revise(byIds([ran]), asked(spare))).toMatchObject({
          changed: [],
          refused: [{ jobId: ran, fault: { code: 'CONFLICT', field: 'class' } }],
        });
        // Another that is charged, and from one that is not to one that is.
        const plain = { class: null, charged: true };
        expect(await store.revise(byIds([ran, waits]), asked(plain))).toMatchObject({ refused: [] });
        await mirror.sync();
        expect(mirror.grid.job(ran)).toMatchObject({ class: null });
        await nothingBroken();
      });

      it('of devices leave a job amounts, if only none, and take that away with them', async () => {
        const request = { kind: 'gpu', count: 2, model: 'a100', minMemoryMb: null, share: null };
        const ids = await submit(world, user, [newJob(), newJob({ resourcesPerTask: { disk: 1 } })]);
        const both = async () =>
          (await store.loadGrid(0)).jobs.map(({ job }) => [job.devicesPerTask, job.resourcesPerTask]);
        expect(await store.revise(byIds(ids), asked({ devicesPerTask: [request] }))).toMatchObject({
          ...{ changed: ids, refused: [] },
        });
        expect(await both()).toEqual([
          [[request], {}],
          [[request], { disk: 1 }],
        ]);
        expect((await latest(ids[0]!))[3]).toBe(`devicesPerTask none → ${JSON.stringify([request])}`);
        await store.revise(byIds(ids), asked({ resourcesPerTask: null }));
        expect(await both()).toEqual([
          [[request], {}],
          [[request], {}],
        ]);
        await store.revise(byIds(ids), asked({ devicesPerTask: null }));
        expect(await both()).toEqual([
          [null, null],
          [null, null],
        ]);
        await nothingBroken();
      });

      it('take waiting jobs back to the root, are told, and reach schedulers', async () => {
        const ids = await submit(world, user, [newJob(), newJob(), newJob(), newJob({ held: true })]);
        const [root, meta, queued, held] = ids as [number, number, number, number];
        await store.applyMoves([metaMove(meta, site), move(queued, site)], context());
        const mirror = new Mirror(store);
        await mirror.sync();
        const values = {
          ...{ estimateS: 7200, memoryMbPerTask: 200, deadline: T0 + 1e9, licenses: ['b'], os: 'plan9' },
          resourcesPerTask: { gpu: 2, disk: 1 },
        };
        expect(await store.revise(byIds(ids), asked(values))).toEqual({
          ...{ changed: ids, refused: [], missing: [], tooMany: false, gone: [], bytes: null },
          touched: expect.toSatisfy((touched: unknown[]) => touched.includes(null) && touched.includes(site)),
        });
        expect(await states(ids)).toEqual(['QUEUED', 'QUEUED', 'QUEUED', 'HELD']);
        const [kind, , at, note] = await latest(root);
        expect([kind, at]).toEqual(['JOB_CHANGED', null]);
        const { estimateS, memoryMbPerTask } = newJob();
        expect(note).toBe(
          `estimateS ${estimateS} → 7200; memoryMbPerTask ${memoryMbPerTask} → 200; deadline none → ${new Date((T0 + 1e9) * 1000).toISOString()}; licenses [] → ["b"]; os none → "plan9"; resourcesPerTask none → {"gpu":2,"disk":1}`,
        );
        expect([await latest(meta), await latest(queued), await latest(held)]).toEqual([
          ['JOB_STATE', 'QUEUED', null, note],
          ['JOB_STATE', 'QUEUED', null, note],
          ['JOB_CHANGED', 'HELD', null, note],
        ]);
        await mirror.sync();
        for (const id of [root, meta, queued]) {
          expect(mirror.grid.job(id)).toMatchObject(values);
          expect(mirror.grid.placeOf(id)).toMatchObject({ at: 'ROOT' });
        }
        // Again it is no change, but done; and the next change says nothing of this one.
        const seq = (await world.events(queued)).length;
        expect(await store.revise(byIds(ids), asked(values))).toMatchObject({ changed: ids, touched: [] });
        expect(await world.events(queued)).toHaveLength(seq);
        await store.reprioritize(byIds([queued]), 3);
        expect(await latest(queued)).toEqual(['JOB_CHANGED', 'QUEUED', null, null]);
        await store.release(byIds([held]));
        await mirror.sync();
        expect(mirror.grid.job(held)).toMatchObject(values);
        await nothingBroken();
      });

      it('take with them what a site has promised the job, as its return does', async () => {
        const ids = await dispatched(world, user, site, [newJob(), newJob()]);
        const room = { runs: 0, amounts: { cpus: 8, memoryMb: 0 }, copies: [] };
        const jobs = ids.map((jobId) => ({
          ...{ jobId, at: T0 + 5, pools: [], work: 100, madeAt: T0 },
          allocations: [{ machineId: machine, tasks: 1 }],
        }));
        await store.applyStarts(site, [], null, context(), { revision: 0, promises: { room, jobs } });
        await store.revise(byIds([ids[0]!]), asked({ name: 'no matter' }));
        expect(await store.promises(site)).toEqual({ revision: 1, promises: { room, jobs } });
        await store.revise(byIds([ids[0]!]), asked({ memoryMbPerTask: 1 }));
        const { revision, promises } = await store.promises(site);
        expect(promises).toEqual({ room, jobs: jobs.slice(1) });
        // A plan that was made on them is too late.
        const plan = await store.applyStarts(site, [], null, context(), { revision: 1, promises });
        expect([plan.outdated, revision]).toEqual([true, 2]);
        // One that has gone back to the root is promised anew, should it come again.
        await store.returnJobs(site, [ids[1]!], 'a test', context());
        expect(await store.promises(site)).toEqual({ revision: 3, promises: { room, jobs: [] } });
      });

      it('of what nobody has been told leave a job where it is, whether it waits or runs', async () => {
        const ids = await submit(world, user, [newJob(), newJob(), newJob()]);
        const [queued, runs, over] = ids as [number, number, number];
        await store.applyMoves(
          ids.map((id) => move(id, site)),
          context(),
        );
        const starts = [runs, over].map((id) => start(id, site, { [machine]: 1 }));
        await store.applyStarts(site, starts, null, context());
        await store.reportRuns(site, [report(over, 1), ended(over, 1)], MAX_ATTEMPTS);
        const retry = { ...NO_RETRIES, maxRetries: 5 };
        const outcome = await store.revise(byIds([...ids, 999_999]), asked({ name: 'new', retry }));
        expect(outcome).toMatchObject({ changed: [queued, runs], missing: [999_999], touched: [] });
        expect(outcome.refused).toMatchObject([{ jobId: over, fault: { field: null, code: 'CONFLICT' } }]);
        expect(await states([queued, runs])).toEqual(['DISPATCHED', 'ASSIGNED']);
        expect((await latest(runs))[3]).toMatch(/^name .* → "new"; retry none → \{.*"maxRetries":5/);
        const both = await store.revise(byIds([runs]), asked({ name: 'x', estimateS: 1 }));
        expect(both).toMatchObject({ changed: [], refused: [{ fault: { field: 'estimateS' } }] });
        expect(both.refused[0]?.fault.message).toMatch(
          /ASSIGNED.*accepted now: name, restartable, retry, mail/,
        );
        await nothingBroken();
      });

      it('are asked about each job as it would be, and are of some jobs only where others are refused', async () => {
        const ids = await submit(world, user, [newJob({ tasks: 2 }), newJob({ tasks: 9 })]);
        const fault = ({ tasks, cpusPerTask }: { tasks: number; cpusPerTask: number }) =>
          tasks * cpusPerTask > 20
            ? { field: 'tasks', code: 'BAD_USER_INPUT' as const, message: 'too many' }
            : null;
        const outcome = await store.revise(byIds(ids), asked({ cpusPerTask: 5 }, { fault }));
        expect(outcome).toMatchObject({
          changed: [ids[0]],
          refused: [{ jobId: ids[1], fault: { field: 'tasks' } }],
        });
        const other = await world.addUser('bob');
        const mine = { ...byIds(ids), ownedBy: other };
        expect(await store.revise(mine, asked({ name: 'x' }))).toMatchObject({ changed: [], missing: ids });
        expect(await store.revise({ ...byIds(ids), limit: 1 }, asked({ name: 'x' }))).toMatchObject({
          tooMany: true,
        });
        const all = { filter: { groupName: 'none' }, ownedBy: null, limit: 10 };
        expect(await store.revise(all, asked({ name: 'x' }))).toMatchObject({ changed: [], missing: [] });
        await nothingBroken();
      });

      it('count towards what jobs of a user may come to', async () => {
        const [a] = await submit(world, user, [newJob()]);
        const own = { ...byIds([a!]), ownedBy: user };
        const long = { machineConstraint: 'x'.repeat(4000) };
        const over = await store.revise(own, asked(long, { bytesMax: 4000 }));
        expect(over).toMatchObject({ changed: [], bytes: expect.any(Number) });
        expect(await store.revise(own, asked(long, { bytesMax: over.bytes }))).toMatchObject({
          changed: [a],
        });
        await nothingBroken();
        expect(await store.revise(own, asked({ machineConstraint: null }))).toMatchObject({ changed: [a] });
        const again = await store.revise(own, asked(long, { bytesMax: (over.bytes as number) - 1 }));
        expect(again.bytes).toBe(over.bytes);
        await store.cancel(byIds([a!]), T0, 'CANCELLED_BY_USER');
        await nothingBroken();
      });

      it('of needs and times block a job, or let it go, as its follower decides', async () => {
        const ids = await submit(world, user, [newJob(), newJob(), newJob({ held: true }), newJob()]);
        const [first, later, held, timed] = ids as [number, number, number, number];
        await store.applyMoves([move(later, site)], context());
        const soon = Date.now() / 1000 + 500;
        await store.revise(byIds([later, held]), asked({}, waitFor([need({ job: first })])));
        await store.revise(byIds([timed]), asked({}, { wait: { notBefore: soon } }));
        expect(await states(ids)).toEqual(['QUEUED', 'BLOCKED', 'HELD', 'BLOCKED']);
        expect((await latest(later))[3]).toBe(`needs none → OK of job_${first}`);
        expect((await latest(timed))[3]).toBe(
          `notBefore none → ${new Date(Math.round(soon * 1000)).toISOString()}`,
        );
        await store.settleNeeds([later, held, timed], T0 + 50);
        await store.release(byIds([held]));
        expect(await states(ids)).toEqual(['QUEUED', 'BLOCKED', 'BLOCKED', 'BLOCKED']);
        // It needs nothing any more, or only that the other has ended.
        await store.revise(byIds([later]), asked({}, { wait: { needs: [] } }));
        await store.revise(byIds([held]), asked({}, waitFor([need({ job: first }, 'ANY')])));
        await store.revise(byIds([timed]), asked({ memoryMbPerTask: 1 }, { wait: { notBefore: null } }));
        expect(await states(ids)).toEqual(['QUEUED', 'BLOCKED', 'BLOCKED', 'BLOCKED']);
        await store.settleNeeds([later, held, timed], Date.now() / 1000 + 5);
        expect(await states(ids)).toEqual(['QUEUED', 'QUEUED', 'BLOCKED', 'QUEUED']);
        await store.cancel(byIds([first]), T0, 'CANCELLED_BY_USER');
        await store.settleNeeds([first], Date.now() / 1000 + 5);
        expect(await states([held])).toEqual(['QUEUED']);
        await nothingBroken();
      });

      it('by an operator leave a job needing the group of its own user', async () => {
        const [member] = await submit(world, user, [newJob({ groupName: 'g' })]);
        const of = [need({ group: 'g' }, 'ANY')];
        const [waits] = await submit(world, user, [
          { ...newJob(), wait: { needs: [{ expression: 'ALL', of }], onUnmet: 'CANCEL', notBefore: null } },
        ]);
        const operator = await world.addUser('operator');
        const changes = { userId: operator, wait: { onUnmet: 'HOLD' } } as const;
        expect(await store.revise(byIds([waits!]), asked({}, changes))).toMatchObject({ changed: [waits] });
        await store.cancel(byIds([member!]), T0, 'CANCELLED_BY_USER');
        await store.settleNeeds([member!], Date.now() / 1000 + 5);
        expect(await states([waits!])).toEqual(['QUEUED']);
        await nothingBroken();
      });

      it('of needs are refused where a job would need itself, and of what is gone', async () => {
        const wait = (of: NewNeedTerm[]): NewWait => ({
          ...{ needs: [{ expression: 'ALL', of }], onUnmet: 'CANCEL', notBefore: null },
        });
        const ids = await submit(world, user, [
          newJob({ groupName: 'g' }),
          { ...newJob(), wait: wait([need({ item: 0 })]) },
          { ...newJob(), wait: wait([need({ item: 1 }), need({ group: 'g' })]) },
          newJob(),
        ]);
        const [a, b, c, d] = ids as [number, number, number, number];
        const revised = (target: object) => store.revise(byIds([a, d]), asked({}, waitFor([need(target)])));
        const circle = [{ jobId: a, fault: { field: 'needs', message: expect.stringContaining('itself') } }];
        expect(await revised({ job: c })).toMatchObject({ changed: [d], refused: circle });
        expect(await revised({ group: 'g' })).toMatchObject({ changed: [d], refused: circle });
        expect(await store.revise(byIds([b]), asked({}, waitFor([need({ job: d })])))).toMatchObject({
          changed: [b],
        });
        expect(await revised({ job: 999_999 })).toMatchObject({ changed: [], gone: [999_999] });
        const other = await world.addUser('bob');
        const theirs = { ...waitFor([need({ group: 'h' })]), userId: other };
        expect(await store.revise(byIds([d]), asked({}, theirs))).toMatchObject({
          refused: [
            { fault: { field: 'needs', message: expect.stringContaining('belongs to another user') } },
          ],
        });
        await nothingBroken();
      });
    });

    describe('retries', () => {
      const rule = (change: Partial<RetryRule> = {}): RetryRule => ({
        ...{ causes: null, exitCodes: null, signals: null, action: 'RETRY' },
        ...{ memoryFactor: 1, memoryMaxMb: null },
        ...change,
      });
      const retrying = (rules: RetryRule[], change: Partial<Retry> = {}, job: Partial<NewJob> = {}): NewJob =>
        newJob({ retry: { ...NO_RETRIES, maxRetries: 2, backoffS: 0, rules, ...change }, ...job });
      const bad = (id: number, epoch: number, change: Partial<RunReport> = {}): RunReport =>
        ended(id, epoch, { cause: 'EXITED_NONZERO', exitCode: 1, ...change });
      /** Runs it on the machine, and reports. */
      const fail = async (id: number, epoch: number, report: RunReport, on = machine): Promise<void> => {
        const moved = await store.applyMoves([move(id, site)], context());
        const started = await store.applyStarts(site, [start(id, site, { [on]: 1 })], null, context());
        expect([moved.refused, started.refused]).toEqual([[], []]);
        await store.reportRuns(site, [{ ...report, phase: 'STARTED' }, report], MAX_ATTEMPTS);
        expect((await latest(id)).epoch).toBe(epoch);
      };
      const latest = async (id: number) => (await world.events(id)).at(-1) as EventRow;
      const told = async (id: number) => {
        const { toState, cause, note } = await latest(id);
        return [toState, cause, note];
      };
      const jobOf = async (id: number) =>
        (await store.loadGrid(0)).jobs.find(({ job }) => job.id === id)?.job as Job;

      it('start a job again by the first rule that matches, until all are used', async () => {
        const [a] = await submit(world, user, [retrying([rule({ exitCodes: [{ from: 1, to: 9 }] })])]);
        await fail(a!, 1, bad(a!, 1));
        expect(await told(a!)).toEqual(['QUEUED', null, 'retry 1 at once, by retry rule 1']);
        await fail(a!, 2, bad(a!, 2, { exitCode: 9 }));
        expect(await told(a!)).toEqual(['QUEUED', null, 'retry 2 at once, by retry rule 1']);
        await fail(a!, 3, bad(a!, 3));
        expect(await told(a!)).toEqual(['FAILED', 'EXITED_NONZERO', 'not retried: all retries are used (2)']);
        const [b] = await submit(world, user, [retrying([rule({ exitCodes: [{ from: 2, to: 9 }] })])]);
        await fail(b!, 1, bad(b!, 1));
        expect(await told(b!)).toEqual(['FAILED', 'EXITED_NONZERO', 'not retried: no retry rule matches']);
        const [c] = await submit(world, user, [newJob()]);
        await fail(c!, 1, bad(c!, 1));
        expect(await told(c!)).toEqual(['FAILED', 'EXITED_NONZERO', null]);
        await nothingBroken();
      });

      it('wait longer each time; meanwhile nobody schedules the job, and it keeps its age', async () => {
        const [a] = await submit(world, user, [retrying([rule()], { backoffS: 40, factor: 3 })]);
        await fail(a!, 1, bad(a!, 1));
        expect(await told(a!)).toEqual(['BLOCKED', null, 'retry 1 after 40 s, by retry rule 1']);
        expect((await store.waitsOf([a!])).get(a!)).toMatchObject({ notBefore: T0 + 60, needs: [] });
        expect(await store.applyMoves([move(a!, site)], context())).toMatchObject({ accepted: [] });
        await store.settleNeeds([a!], T0 + 59);
        expect(await told(a!)).toMatchObject(['BLOCKED', null, expect.anything()]);
        await store.settleNeeds('DUE', T0 + 60);
        expect(await told(a!)).toEqual(['QUEUED', null, null]);
        expect((await jobOf(a!)).submittedAt).toBe(T0);
        await fail(a!, 2, bad(a!, 2));
        expect(await told(a!)).toEqual(['BLOCKED', null, 'retry 2 after 120 s, by retry rule 1']);
        // Who holds and releases it does not shorten that.
        await store.hold(byIds([a!]));
        await store.release(byIds([a!]));
        await store.settleNeeds([a!], T0 + 139);
        expect(await told(a!)).toMatchObject(['BLOCKED', null, null]);
        await store.settleNeeds('DUE', T0 + 140);
        expect(await told(a!)).toEqual(['QUEUED', null, null]);
        await nothingBroken();
      });

      it('hold a job for a person, whatever has been used up, and count that for nothing', async () => {
        const [a] = await submit(world, user, [
          retrying([rule({ exitCodes: [{ from: 3, to: 3 }], action: 'HOLD' }), rule()], { maxRetries: 1 }),
        ]);
        for (const epoch of [1, 2]) {
          await fail(a!, epoch, bad(a!, epoch, { exitCode: 3 }));
          expect(await told(a!)).toEqual(['HELD', null, 'held by retry rule 1']);
          await store.release(byIds([a!]));
          expect(await told(a!)).toEqual(['QUEUED', null, null]);
        }
        await fail(a!, 3, bad(a!, 3));
        expect(await told(a!)).toMatchObject(['QUEUED', null, 'retry 1 at once, by retry rule 2']);
        await nothingBroken();
      });

      it('give it more memory, as far as some machine has more', async () => {
        const most = (await store.loadGrid(0)).machines.reduce(
          (mb, { memoryMb }) => Math.max(mb, memoryMb),
          0,
        );
        const asked = Math.ceil(most / 1.5);
        const [a] = await submit(world, user, [
          retrying([rule({ causes: ['MEMORY_LIMIT'], memoryFactor: 2 })], {}, { memoryMbPerTask: asked }),
        ]);
        const mirror = new Mirror(store);
        await mirror.sync();
        await fail(a!, 1, bad(a!, 1, { cause: 'MEMORY_LIMIT' }));
        expect((await jobOf(a!)).memoryMbPerTask).toBe(most);
        await mirror.sync();
        expect(mirror.grid.job(a!)?.memoryMbPerTask).toBe(most);
        await fail(a!, 2, bad(a!, 2, { cause: 'MEMORY_LIMIT' }));
        expect(await told(a!)).toEqual([
          'FAILED',
          'MEMORY_LIMIT',
          `not retried: its memory cannot grow beyond ${most} MB, as retry rule 1 requires`,
        ]);
        await nothingBroken();
      });

      it('go elsewhere, as long as there is another machine', async () => {
        const [a] = await submit(world, user, [
          retrying([rule({ action: 'RETRY_ELSEWHERE' })], { maxRetries: 5 }),
        ]);
        const at = (...machines: number[]) => ({ machines, sites: [] });
        await fail(a!, 1, bad(a!, 1));
        expect((await jobOf(a!)).avoids).toEqual({ failed: at(machine), last: at(machine) });
        await fail(a!, 2, bad(a!, 2), second);
        expect((await jobOf(a!)).avoids).toEqual({ failed: at(machine, second), last: at(second) });
        const able = async () => {
          const mirror = new Mirror(store);
          await mirror.sync();
          const { signature } = mirror.grid.requirementOf(mirror.grid.job(a!) as Job);
          return mirror.grid.sites.flatMap(({ resources }) =>
            resources.eligible(signature).machines.map((one) => one.machine.id),
          );
        };
        expect(await able()).toEqual([elsewhere]);
        // None is left but those where it failed: any but the last.
        await world.setMachineState(elsewhere, 'DOWN');
        expect(await able()).toEqual([machine]);
        // It is the only one.
        await world.setMachineState(machine, 'DOWN');
        expect(await able()).toEqual([second]);
        await fail(a!, 3, ended(a!, 3), second);
        const [b] = await submit(world, user, [newJob()]);
        await fail(b!, 1, bad(b!, 1, { cause: 'MACHINE_FAILED' }), second);
        expect((await jobOf(b!)).avoids).toEqual({ failed: at(second), last: at(second) });
        // Whoever holds and releases it lets it go anywhere.
        await store.hold(byIds([b!]));
        await store.release(byIds([b!]));
        expect((await jobOf(b!)).avoids).toBeNull();
        await nothingBroken();
      });

      it('a person may have a run stopped and its job started again, which counts for nothing', async () => {
        const ids = await submit(world, user, [retrying([rule()]), newJob(), newJob(), newJob()]);
        const [a, b, c, waiting] = ids as [number, number, number, number];
        const machines = { [a]: machine, [b]: machine, [c]: second };
        await store.applyMoves(
          [a, b, c].map((id) => move(id, site)),
          context(),
        );
        const starts = [a, b, c].map((id) => start(id, site, { [machines[id] as number]: 1 }));
        await store.applyStarts(site, starts, null, context());
        await store.reportRuns(
          site,
          [a, b].map((id) => report(id, 1)),
          MAX_ATTEMPTS,
        );
        expect(await store.requeue(byIds(ids))).toMatchObject({
          changed: [a, b, c],
          unchanged: [{ jobId: waiting, state: 'QUEUED' }],
        });
        expect(await states(ids)).toEqual(['CANCELLING', 'CANCELLING', 'CANCELLING', 'QUEUED']);
        expect((await store.requeue(byIds([a]))).changed).toEqual([]);
        // Whoever then wants it no more cancels it, once.
        expect((await store.cancel(byIds([b]), T0, 'CANCELLED_BY_USER')).changed).toEqual([b]);
        expect((await store.cancel(byIds([b]), T0, 'CANCELLED_BY_USER')).changed).toEqual([]);
        const stopped = { cause: 'CANCELLED_BY_USER', exitCode: null, signal: 'SIGTERM' } as const;
        await store.reportRuns(
          site,
          [ended(a, 1, stopped), ended(b, 1, stopped), report(c, 1), ended(c, 1)],
          MAX_ATTEMPTS,
        );
        expect(await told(a)).toEqual(['QUEUED', null, 'requeued']);
        expect(await told(b)).toEqual(['CANCELLED', 'CANCELLED_BY_USER', null]);
        expect(await told(c)).toEqual(['COMPLETED', 'EXITED_ZERO', null]);
        expect((await jobOf(a)).submittedAt).toBe(T0);
        // All its retries are left.
        for (const epoch of [2, 3]) await fail(a, epoch, bad(a, epoch));
        expect(await told(a)).toEqual(['QUEUED', null, 'retry 2 at once, by retry rule 1']);
        await nothingBroken();
      });

      it('are no end to those who need the job', async () => {
        const needs = [
          { expression: 'ALL' as const, of: [{ item: 0, condition: 'NOT_OK' as const, minDelayS: 0 }] },
        ];
        const [a, b] = await submit(world, user, [
          retrying([rule()], { maxRetries: 1 }),
          { ...newJob(), wait: { needs, onUnmet: 'CANCEL', notBefore: null } },
        ]);
        await fail(a!, 1, bad(a!, 1));
        await store.settleNeeds([a!], T0 + 1000);
        expect((await latest(b!)).toState).toBe('BLOCKED');
        await fail(a!, 2, bad(a!, 2));
        await store.settleNeeds([a!], T0 + 1000);
        expect((await latest(b!)).toState).toBe('QUEUED');
        await nothingBroken();
      });
    });

    describe('meta-queues', () => {
      const place = async (id: number) => {
        const found = (await store.loadGrid(0)).jobs.find(({ job }) => job.id === id);
        return [found?.state, found?.siteId, found?.job.priority, found?.job.migratedAt];
      };

      it('hold jobs that can still go elsewhere: from the root, to another one, to a local queue', async () => {
        const [a] = await submit(world, user, [newJob({ deadline: T0 + 500 })]);
        expect(await store.applyMoves([metaMove(a!, site)], context(T0 + 1))).toMatchObject({
          accepted: [a],
        });
        expect(await place(a!)).toEqual(['QUEUED', site, null, null]);
        expect(await store.applyMoves([metaMove(a!, other, site)], context(T0 + 2.5))).toMatchObject({
          accepted: [a],
        });
        expect(await place(a!)).toEqual(['QUEUED', other, null, T0 + 2.5]);
        expect((await store.loadGrid(10)).margins).toEqual([]);
        expect(await store.applyMoves([move(a!, other, other, 7)], context(T0 + 3))).toMatchObject({
          accepted: [a],
        });
        expect(await place(a!)).toEqual(['DISPATCHED', other, 7, T0 + 2.5]);
        expect((await store.loadGrid(10)).margins).toEqual([400]);
        const events = await world.events(a!);
        expect(
          events.map(({ kind, fromState, toState, fromSiteId, siteId }) => [
            kind,
            fromState,
            toState,
            fromSiteId,
            siteId,
          ]),
        ).toEqual([
          ['JOB_STATE', null, 'QUEUED', null, null],
          ['JOB_STATE', 'QUEUED', 'QUEUED', null, site],
          ['JOB_STATE', 'QUEUED', 'QUEUED', site, other],
          ['JOB_STATE', 'QUEUED', 'DISPATCHED', other, other],
        ]);
        await nothingBroken();
      });

      it('let a job go to the local queue of another site, and mixed plans be carried out in part', async () => {
        const [a, b] = await metaQueued(world, user, site, [newJob(), newJob()]);
        const [c, d] = await submit(world, user, [newJob(), newJob()]);
        const plan = [move(a!, other, site), metaMove(b!, other, site), metaMove(c!, site), move(d!, site)];
        expect(await store.applyMoves(plan, context(T0 + 1))).toEqual({
          accepted: [a, b, c, d],
          refused: [],
        });
        expect(await Promise.all([a!, b!, c!, d!].map(place))).toEqual([
          ['DISPATCHED', other, 5, null],
          ['QUEUED', other, null, T0 + 1],
          ['QUEUED', site, null, null],
          ['DISPATCHED', site, 5, null],
        ]);
        await nothingBroken();
      });

      it('are left and entered only as the truth is', async () => {
        const [a, b, c] = await metaQueued(world, user, site, [newJob(), newJob(), newJob()]);
        const [d] = await submit(world, user, [newJob()]);
        await store.hold(byIds([c!]));
        await world.setSiteState(other, 'DRAINING');
        const refused = [
          metaMove(a!, site), // not at the root
          metaMove(a!, site, site), // there already
          move(a!, site, other), // not in that one
          metaMove(a!, other, site), // not up
          move(b!, other, site),
          metaMove(c!, site, site), // on hold
          metaMove(d!, site, site), // at the root
          metaMove(999, site),
        ];
        const outcome = await store.applyMoves(refused, context());
        expect(outcome.accepted).toEqual([]);
        expect(outcome.refused).toHaveLength(refused.length);
        const twice = await store.applyMoves([metaMove(d!, site), move(d!, site)], context());
        expect(twice.accepted).toEqual([d]);
        expect(twice.refused).toHaveLength(1);
        await nothingBroken();
      });

      it('are emptied when their site is not up, and of single jobs for a reason', async () => {
        const [a, b, c] = await metaQueued(world, user, site, [newJob(), newJob(), newJob()]);
        const [d] = await dispatched(world, user, site, [newJob()]);
        expect(await store.takeBack(site, context(), 10)).toEqual([]);
        expect(await store.returnJobs(other, [a!], 'NO_MACHINE_NOW', context())).toEqual([]);
        expect(await store.returnJobs(site, [b!, a!], 'NO_MACHINE_NOW', context())).toEqual([a, b]);
        await world.setSiteState(site, 'DOWN');
        expect(await store.takeBack(site, context(), 10)).toEqual([c, d]);
        expect(await Promise.all([a!, b!, c!, d!].map(place))).toEqual(
          Array.from({ length: 4 }, () => ['QUEUED', null, null, null]),
        );
        expect((await world.events(c!)).at(-1)).toMatchObject({
          kind: 'JOB_STATE',
          fromState: 'QUEUED',
          toState: 'QUEUED',
          fromSiteId: site,
          siteId: null,
        });
        await nothingBroken();
      });

      it('lose jobs to people: held ones go back to the root, and the root is told', async () => {
        const [a, b, c, d] = await metaQueued(world, user, site, [
          newJob(),
          newJob(),
          newJob(),
          newJob({ deadline: T0 + 5 }),
        ]);
        expect(await store.hold(byIds([a!]))).toMatchObject({ changed: [a], touched: [null] });
        expect(await place(a!)).toEqual(['HELD', null, null, null]);
        expect(await store.release(byIds([a!]))).toMatchObject({ changed: [a], touched: [null] });
        expect(await place(a!)).toEqual(['QUEUED', null, null, null]);
        expect(await store.cancel(byIds([b!]), T0, 'CANCELLED_BY_USER')).toMatchObject({
          changed: [b],
          touched: [null],
        });
        expect(await store.reprioritize(byIds([c!]), 3)).toMatchObject({ changed: [c], touched: [null] });
        expect(await place(c!)).toEqual(['QUEUED', site, null, null]);
        expect((await world.events(c!)).at(-1)).toMatchObject({ kind: 'JOB_CHANGED', siteId: site });
        const swept = await store.sweep(rules(T0 + 10, { onDeadlinePassed: 'CANCEL' }));
        expect(swept).toMatchObject({ deadlinesMissed: 1, touched: [null] });
        expect(await states([b!, d!])).toEqual(['CANCELLED', 'CANCELLED']);
        await nothingBroken();
      });

      it('are where changes tell that jobs are, exactly at their cursor', async () => {
        const { cursor } = await store.loadGrid(0);
        const [a] = await metaQueued(world, user, site, [newJob()]);
        await store.applyMoves([metaMove(a!, other, site)], context());
        await store.applyMoves([move(a!, site, other)], context());
        await store.hold(byIds([a!]));
        const seen: unknown[] = [];
        let at = cursor;
        for (let more = true; more; ) {
          const changes = await store.changesSince(at, 1);
          if (changes === 'too-old') throw new Error('the cursor is not old');
          ({ cursor: at, more } = changes);
          for (const { position } of changes.jobs) seen.push([position?.state, position?.siteId]);
        }
        expect(seen).toEqual([
          ['QUEUED', null],
          ['QUEUED', site],
          ['QUEUED', other],
          ['DISPATCHED', site],
          ['HELD', site],
        ]);
      });
    });

    describe('schedulers between the root and sites', () => {
      const place = async (id: number) => {
        const found = (await store.loadGrid(0)).jobs.find(({ job }) => job.id === id);
        return [found?.state, found?.siteId, found?.job.schedulerId, found?.job.treeMoves];
      };
      let west: number;
      let far: number;

      beforeEach(async () => {
        west = await world.addScheduler('west');
        far = await world.addScheduler('far-west', west);
        await world.moveSite(site, far);
      });

      it('are told with the sites below them', async () => {
        const image = await store.loadGrid(0);
        expect(image.schedulers).toEqual([
          { id: west, name: 'west', parentId: null },
          { id: far, name: 'far-west', parentId: west },
        ]);
        expect(image.sites.map(({ schedulerId }) => schedulerId)).toEqual([far, null]);
        await world.removeScheduler(west);
        const changes = await store.changesSince(image.cursor, 1000);
        if (changes === 'too-old') throw new Error('the cursor is not old');
        expect(changes.directory?.schedulers).toEqual([{ id: far, name: 'far-west', parentId: null }]);
        await world.removeScheduler(far);
        const { sites } = await store.loadGrid(0);
        expect(sites.map(({ schedulerId }) => schedulerId)).toEqual([null, null]);
      });

      it('hold jobs: from the root, to one another, to a meta-queue and back up, each step a transition', async () => {
        const [a] = await submit(world, user, [newJob()]);
        const go = async (one: Parameters<typeof store.applyMoves>[0][number]) =>
          expect(await store.applyMoves([one], context(T0 + 1))).toMatchObject({ accepted: [a] });
        await go(treeMove(a!, west));
        expect(await place(a!)).toEqual(['QUEUED', null, west, 0]);
        await go(treeMove(a!, far, null, 2));
        expect(await place(a!)).toEqual(['QUEUED', null, far, 2]);
        await go({ ...metaMove(a!, site), treeMoves: 3 });
        expect(await place(a!)).toEqual(['QUEUED', site, null, 3]);
        await go(treeMove(a!, far, site));
        expect(await place(a!)).toEqual(['QUEUED', null, far, 3]);
        await go(treeMove(a!, null));
        expect(await place(a!)).toEqual(['QUEUED', null, null, 3]);
        await go(treeMove(a!, west));
        await go(move(a!, site));
        expect(await place(a!)).toEqual(['DISPATCHED', site, null, 3]);
        const events = await world.events(a!);
        expect(events.map(({ kind, seq, fromSiteId, siteId }) => [kind, seq, fromSiteId, siteId])).toEqual([
          ['JOB_STATE', 1, null, null],
          ['JOB_STATE', 2, null, null],
          ['JOB_STATE', 3, null, null],
          ['JOB_STATE', 4, null, site],
          ['JOB_STATE', 5, site, null],
          ['JOB_STATE', 6, null, null],
          ['JOB_STATE', 7, null, null],
          ['JOB_STATE', 8, null, site],
        ]);
        await nothingBroken();
      });

      it('take nothing once they are removed, and nothing that is elsewhere', async () => {
        const [a, b] = await submit(world, user, [newJob(), newJob()]);
        await store.applyMoves([metaMove(b!, site)], context());
        await world.removeScheduler(far);
        const plan = [treeMove(a!, far), treeMove(b!, west)];
        const { accepted, refused } = await store.applyMoves(plan, context());
        expect([accepted, refused.map(({ jobId }) => jobId)]).toEqual([[], [a, b]]);
      });

      it('give jobs to people, and back to the root', async () => {
        const [a, b] = await submit(world, user, [newJob(), newJob()]);
        await store.applyMoves([treeMove(a!, west), treeMove(b!, far)], context());
        expect(await store.hold(byIds([a!]))).toMatchObject({ changed: [a], touched: [null] });
        expect(await store.cancel(byIds([b!]), T0 + 1, 'CANCELLED_BY_USER')).toMatchObject({ changed: [b] });
        expect(await place(a!)).toEqual(['HELD', null, null, 0]);
        await store.release(byIds([a!]));
        expect(await place(a!)).toEqual(['QUEUED', null, null, 0]);
      });

      it('are where changes tell that jobs are; preferences come with the job', async () => {
        const preferences = [{ siteId: site }, { os: 'linux', licenses: ['cad'], memoryMbPerTask: 7 }];
        const [a, b] = await submit(world, user, [newJob({ preferences }), newJob()]);
        const { cursor, jobs } = await store.loadGrid(0);
        expect(jobs.map(({ job }) => job.preferences)).toEqual([preferences, []]);
        await store.applyMoves([treeMove(a!, far, null, 1), treeMove(b!, west)], context());
        const changes = await store.changesSince(cursor, 1000);
        if (changes === 'too-old') throw new Error('the cursor is not old');
        expect(
          changes.jobs.map(({ id, position }) => [id, position?.schedulerId, position?.treeMoves]),
        ).toEqual([
          [a, far, 1],
          [b, west, 0],
        ]);
        const mirror = new Mirror(store);
        await mirror.sync();
        await store.applyMoves([treeMove(a!, west)], context());
        await mirror.sync();
        expect(mirror.grid.job(a!)).toMatchObject({ schedulerId: west, treeMoves: 1, preferences });
        expect(mirror.grid.placeOf(a!)).toEqual({ at: 'ROOT' });
      });
    });

    describe('data', () => {
      it('of a job: what it reads, from where it comes, what it declares; and its group', async () => {
        const set = await world.addDataset('set', 5, [site]);
        const inputs = [{ datasetId: set }, { sizeMb: 1.5, siteId: other }];
        const data = { inputs, originSiteId: other, computationShare: 0.25, sandboxMb: 2, outputMb: 3 };
        const [a, b, c] = await submit(world, user, [
          newJob({ application: 'sim', ...data }),
          newJob({ originSiteId: site }),
          newJob({ sandboxMb: 7 }),
        ]);
        const [d] = await submit(world, user, [newJob()]);
        const { jobs } = await store.loadGrid(0);
        expect(jobs[0]!.job).toMatchObject({
          application: 'sim',
          migratedAt: null,
          data: { originSiteId: other, sandboxMb: 2, inputs, outputMb: 3, computationShare: 0.25 },
        });
        expect(jobs[1]!.job.data).toEqual({
          originSiteId: site,
          sandboxMb: 0,
          inputs: [],
          outputMb: 0,
          computationShare: null,
        });
        expect(jobs[2]!.job).toMatchObject({ application: 'app', data: null });
        const groups = new Map(jobs.map(({ job }) => [job.id, job.groupId]));
        expect(groups.get(b!)).toBe(groups.get(a!));
        expect(groups.get(c!)).toBe(groups.get(a!));
        expect(groups.get(d!)).toBe(-d!);
        const changes = await store.changesSince('0', 1000);
        if (changes === 'too-old') throw new Error('the cursor is not old');
        expect(changes.jobs.map(({ job }) => job)).toEqual(jobs.map(({ job }) => job));
      });

      it('at sites, links and shares are told whole at first, then what changed of them', async () => {
        const [one, two] = [
          await world.addDataset('a', 1, [other, site]),
          await world.addDataset('b', 2, []),
        ];
        const link = { fromSiteId: site, toSiteId: other, bandwidthMbPerS: 20, rttS: 0.01, loss: 0.125 };
        const back = { ...link, fromSiteId: other, toSiteId: site };
        await world.setLink(link);
        await world.setLink(back);
        await world.setShare(user, 2.5);
        const grid = await store.loadGrid(0);
        expect(grid).toMatchObject({
          datasets: [
            { id: one, sizeMb: 1, siteIds: [site, other] },
            { id: two, sizeMb: 2, siteIds: [] },
          ],
          links: [link, back],
          quotas: [{ userId: user, share: 2.5 }],
        });
        await world.setReplicas(two, { add: [site] });
        await world.setReplicas(two, { add: [other], remove: [site] });
        await world.removeDataset(one);
        await world.setLink({ ...link, loss: 0 });
        await world.removeLink(other, site);
        await world.setShare(user, 1);
        const changes = await store.changesSince(grid.cursor, 100);
        if (changes === 'too-old') throw new Error('the cursor is not old');
        expect(changes).toMatchObject({ directory: null, users: [{ userId: user, share: 1 }] });
        expect(changes.datasets.sort((a, b) => a.id - b.id)).toEqual([
          { id: one, dataset: null },
          { id: two, dataset: { id: two, sizeMb: 2, siteIds: [other] } },
        ]);
        expect(changes.links.sort((a, b) => a.fromSiteId - b.fromSiteId)).toEqual([
          { fromSiteId: site, toSiteId: other, link: { ...link, loss: 0 } },
          { fromSiteId: other, toSiteId: site, link: null },
        ]);
        expect((await store.loadGrid(0)).quotas).toEqual([]);
      });
    });

    describe('history', () => {
      /** Runs a job, assigned at T0 and begun at T0 + 10, on its own; a second of it is input and output unless said otherwise. */
      const runs = async (change: Partial<RunReport>, job: Partial<NewJob> = {}, by = user) => {
        const [id] = await assigned(world, by, site, machine, [newJob(job)]);
        await store.reportRuns(
          site,
          [report(id!, 1), ended(id!, 1, { ioWaitS: 1, ...change })],
          MAX_ATTEMPTS,
        );
        return id!;
      };

      it('is a record for each application, user and kinds of resource, and a point for each run that ended well', async () => {
        const a = await runs({ at: T0 + 20, ioWaitS: 2.5 });
        const b = await runs({ at: T0 + 30, ioWaitS: 10 });
        const { totals } = await store.loadGrid(0);
        expect(totals).toHaveLength(1);
        expect(totals[0]).toMatchObject({
          application: 'app',
          userId: user,
          kinds: '[null,null]',
          count: 2,
        });
        // The power of the machines is 100, the reference 1.
        expect(averagesOf(totals[0]!)).toEqual({ turnaroundS: 2500, executionS: 1875, ioS: 625 });
        expect(await world.ratioPoints()).toMatchObject([
          {
            id: 1,
            application: 'app',
            jobId: a,
            epoch: 1,
            siteId: site,
            turnaroundS: 20,
            ioS: 2.5,
            sitePower: 100,
            runs: 1,
            computation: 17.5 / 20,
            at: T0 + 20,
          },
          { id: 2, jobId: b, turnaroundS: 30, ioS: 10, runs: 2, computation: 37.5 / 50 },
        ]);
        await nothingBroken();
      });

      it('takes for input and output what the machine tells; where it tells nothing the point says so, and no average changes', async () => {
        await runs({ at: T0 + 20, cpuS: 1, ioWaitS: 30 }, { application: 'more than there was' });
        // Idle time is neither.
        await runs({ at: T0 + 20, cpuS: 1, ioWaitS: null }, { application: 'x' });
        await runs({ at: T0 + 20, ioWaitS: 5 }, { application: 'x' });
        await runs({ at: T0 + 40, ioWaitS: null }, { application: 'x' });
        expect(
          (await world.ratioPoints()).map(({ ioS, runs: count, computation }) => [ioS, count, computation]),
        ).toEqual([
          [20, 1, 0],
          [null, 0, null],
          [5, 1, 0.75],
          [null, 1, 0.75],
        ]);
        const { totals } = await store.loadGrid(0);
        expect(totals.map(({ application, count }) => [application, count]).sort()).toEqual([
          ['more than there was', 1],
          ['x', 1],
        ]);
        await nothingBroken();
      });

      it('counts each run once, and none that was lost, failed, cancelled, or took no time', async () => {
        const ids = await assigned(world, user, site, machine, [newJob(), newJob(), newJob(), newJob()]);
        const [lost, failed, cancelled, good] = ids as [number, number, number, number];
        const [never] = await assigned(world, user, site, second, [newJob()]);
        const [instant] = await assigned(world, user, site, second, [newJob()]);
        await store.cancel(byIds([cancelled]), T0, 'CANCELLED_BY_USER');
        const all = [
          ...ids.map((id) => report(id, 1)),
          ended(lost, 1, { cause: 'LOST' }),
          ended(failed, 1, { cause: 'EXITED_NONZERO', exitCode: 1 }),
          ended(cancelled, 1, { cause: 'SIGNALLED' }),
          ended(good, 1, { ioWaitS: 1 }),
          ended(never!, 1, { at: T0, ioWaitS: 1 }),
          ended(instant!, 1, { at: T0, ioWaitS: 1 }),
        ];
        await store.reportRuns(site, [...all, ended(good, 1, { ioWaitS: 1 })], MAX_ATTEMPTS);
        await store.reportRuns(site, all, MAX_ATTEMPTS);
        expect((await world.ratioPoints()).map(({ jobId }) => jobId)).toEqual([good]);
        expect((await store.loadGrid(0)).totals).toMatchObject([{ count: 1 }]);
        await nothingBroken();
      });

      it('keeps kinds as the core names them', async () => {
        const odd = 'a"b\\c\n\u0001é☃𝕏,';
        const pools = [await world.addLicense(odd, 9, null), await world.addLicense('cad', 9, null)];
        const job = newJob({ licenses: ['cad', odd], os: odd, architecture: 'x64' });
        const [id] = await dispatched(world, user, site, [job]);
        const byKind = [odd, 'cad'].sort().map((kind) => (kind === 'cad' ? pools[1]! : pools[0]!));
        await store.applyStarts(site, [start(id!, site, { [machine]: 1 }, byKind)], null, context());
        await store.reportRuns(site, [report(id!, 1), ended(id!, 1, { ioWaitS: 1 })], MAX_ATTEMPTS);
        const { totals } = await store.loadGrid(0);
        expect(totals[0]!.kinds).toBe(
          resourceKinds({ licenses: ['cad', odd].sort(), os: odd, architecture: 'x64' }),
        );
      });

      it('goes on across batches exactly as with one run after another', async () => {
        await world.newPolicy({ referencePower: 41 });
        const bob = await world.addUser('bob');
        const expected = new Map<string, RunTotals>();
        const shares: [number, number][] = [];
        let step = 0;
        for (const size of [1, 4, 2, 3]) {
          const jobs = Array.from({ length: size }, (_, i) =>
            newJob({ application: i % 3 === 2 ? 'y' : 'x' }),
          );
          const by = size === 4 ? bob : user;
          const ids = await assigned(world, by, site, machine, jobs);
          const reports = ids.map((id, i) => {
            step += 7;
            const turnaroundS = 11 + (step % 13) + 1 / 8;
            const ioS = turnaroundS / (1 + (step % 5));
            const { application } = jobs[i]!;
            const key = `${application}/${by}`;
            const before = expected.get(key) ?? noRuns({ application, userId: by, kinds: '[null,null]' });
            expected.set(key, totalsWith(before, { turnaroundS, ioS, sitePower: 100 }, 41));
            const history = new JobHistory();
            for (const totals of expected.values()) history.set(totals);
            const ratio = history.ratioOf({ ...newJob({ application }), userId: by, data: null });
            shares.push([ratio.runs, ratio.computation]);
            return ended(id, 1, { at: T0 + turnaroundS, ioWaitS: ioS });
          });
          // Reported in another order than that of the jobs, which is the order of the points.
          await store.reportRuns(
            site,
            [...ids.map((id) => report(id, 1)), ...reports.reverse()],
            MAX_ATTEMPTS,
          );
        }
        // To the last bit.
        const points = await world.ratioPoints();
        expect(points.map(({ runs: count, computation }) => [count, computation])).toEqual(shares);
        const { totals } = await store.loadGrid(0);
        const sorted = (all: Iterable<RunTotals>) =>
          [...all].sort((a, b) => (`${a.application}/${a.userId}` < `${b.application}/${b.userId}` ? -1 : 1));
        expect(sorted(totals)).toEqual(sorted(expected.values()));
        await nothingBroken();
      });

      it('is told to whoever has not read the event of the run, and to nobody twice', async () => {
        const before = (await store.loadGrid(0)).cursor;
        await runs({});
        await runs({}, { application: 'other' });
        const first = await store.changesSince(before, 1000);
        if (first === 'too-old') throw new Error('the cursor is not old');
        expect(first.totals.map(({ application }) => application).sort()).toEqual(['app', 'other']);
        await runs({});
        const second = await store.changesSince(first.cursor, 1000);
        if (second === 'too-old') throw new Error('the cursor is not old');
        expect(second.totals).toMatchObject([{ application: 'app', count: 2 }]);
        expect(await store.changesSince(second.cursor, 1000)).toMatchObject({ totals: [] });
        // Cut short, it may tell more than once, but not too little.
        let at = before;
        const seen = new Map<string, number>();
        for (let more = true; more; ) {
          const changes = await store.changesSince(at, 1);
          if (changes === 'too-old') throw new Error('the cursor is not old');
          for (const { application, count } of changes.totals) seen.set(application, count);
          ({ cursor: at, more } = changes);
        }
        expect([...seen].sort()).toEqual([
          ['app', 2],
          ['other', 1],
        ]);
      });
    });

    describe('traffic', () => {
      const totals = (counts: readonly TrafficCount[]) =>
        [site, other].map((siteId) => {
          const there = counts.filter((count) => count.siteId === siteId);
          const sum = (of: 'arrivals' | 'services') => there.reduce((total, count) => total + count[of], 0);
          return [sum('arrivals'), sum('services')];
        });

      it('counts who comes from elsewhere and whose runs end for good, at loading as in changes', async () => {
        const { cursor } = await store.loadGrid(0);
        const [a, b] = await metaQueued(world, user, site, [newJob(), newJob()]); // 2 arrivals
        await store.applyMoves([move(a!, site, site), metaMove(b!, other, site)], context()); // 0 and 1
        await store.applyMoves([move(b!, site, other)], context()); // 1
        await store.reprioritize(byIds([a!, b!]), 1); // none
        await store.hold(byIds([a!]));
        await store.release(byIds([a!])); // none: it was there
        await store.applyStarts(
          site,
          [start(a!, site, { [machine]: 1 }), start(b!, site, { [machine]: 1 })],
          null,
          context(),
        );
        const [c] = await assigned(world, user, other, elsewhere, [newJob({ restartable: true })]); // 1 at the other
        await store.reportRuns(other, [ended(c!, 1, { cause: 'LOST' })], MAX_ATTEMPTS); // none: it runs again
        await store.reportRuns(site, [ended(a!, 1), ended(b!, 1, { cause: 'SIGNALLED' })], MAX_ATTEMPTS); // 2 services
        await dispatched(world, user, other, [newJob()]); // 1
        const expected = [
          [3, 2],
          [3, 0],
        ];
        expect(totals((await store.loadGrid(0)).traffic)).toEqual(expected);
        for (const batch of [1, 3, 1000]) {
          const told: TrafficCount[] = [];
          let at = cursor;
          for (let more = true; more; ) {
            const changes = await store.changesSince(at, batch);
            if (changes === 'too-old') throw new Error('the cursor is not old');
            told.push(...changes.traffic);
            ({ cursor: at, more } = changes);
          }
          expect(totals(told)).toEqual(expected);
        }
        await nothingBroken();
      });
    });

    describe('groups', () => {
      it('are followed and cancelled as one', async () => {
        const make = (count: number, group: Submission['group'], idempotencyKey: string | null = null) =>
          store.submit({
            userId: user,
            idempotencyKey,
            payloadHash: '',
            jobs: Array.from({ length: count }, () => newJob()),
            group: group ?? null,
            now: T0,
          });
        const group = await make(3, { name: 'scan', template: { command: 'true' } }, 'key');
        const single = await make(1, { name: null, template: null });
        const plain = await make(2, null);
        const alone = await make(1, null);
        if (
          group.kind !== 'accepted' ||
          single.kind !== 'accepted' ||
          plain.kind !== 'accepted' ||
          alone.kind !== 'accepted'
        )
          throw new Error('not accepted');
        expect(new Set([group.groupId, single.groupId, plain.groupId]).size).toBe(3);
        expect(alone.groupId).toBeNull();
        expect(await make(3, { name: 'scan', template: { command: 'true' } }, 'key')).toEqual({
          ...group,
          repeated: true,
        });
        const { jobs } = await store.loadGrid(0);
        expect(jobs.map(({ job }) => job.groupId)).toEqual([
          ...group.jobIds.map(() => group.groupId),
          single.groupId,
          plain.groupId,
          plain.groupId,
          -alone.jobIds[0]!,
        ]);
        const cancel = (groupId: number) =>
          store.cancel({ filter: { groupId }, ownedBy: null, limit: 100 }, T0, 'CANCELLED_BY_USER');
        expect((await cancel(group.groupId!)).changed).toEqual(group.jobIds);
        expect((await cancel(single.groupId!)).changed).toEqual(single.jobIds);
        // Jobs that were only submitted together are no group to people.
        expect((await cancel(plain.groupId!)).changed).toEqual([]);
        expect((await cancel(999)).changed).toEqual([]);
        await nothingBroken();
      });

      // A hundred thousand through the whole service: test/api/groups.test.ts.
      it('may have many jobs', async () => {
        const size = 10_000;
        const result = await store.submit({
          userId: user,
          idempotencyKey: 'once',
          payloadHash: 'h',
          jobs: Array.from({ length: size }, (_, i) => newJob({ arguments: [String(i)] })),
          group: { name: 'sweep', template: { command: 'true' } },
          now: T0,
        });
        if (result.kind !== 'accepted') throw new Error(result.kind);
        expect(result.jobIds).toHaveLength(size);
        const grid = await store.loadGrid(0);
        expect(grid.jobs).toHaveLength(size);
        expect(grid.jobs.every(({ job }) => job.groupId === result.groupId)).toBe(true);
        const all = { filter: { groupId: result.groupId! }, ownedBy: user, limit: size };
        expect((await store.cancel(all, T0, 'CANCELLED_BY_USER')).changed).toHaveLength(size);
        expect((await store.loadGrid(0)).jobs).toEqual([]);
      });
    });

    describe('changes', () => {
      it('tells what happened since a cursor, folded for each job', async () => {
        const { cursor } = await store.loadGrid(0);
        const [a, b] = await submit(world, user, [newJob({ deadline: T0 + 300 }), newJob()]);
        await store.applyMoves([move(a!, site)], context());
        const changes = await store.changesSince(cursor, 100);
        if (changes === 'too-old') throw new Error('the cursor is not old');
        expect(changes).toMatchObject({ margins: [200], users: [], directory: null, more: false });
        expect(
          changes.jobs.map(({ id, position, job }) => [id, position?.state, position?.siteId, job?.id]),
        ).toEqual([
          [b, 'QUEUED', null, b],
          [a, 'DISPATCHED', site, a],
        ]);
        // Later it does not describe them again.
        await store.applyStarts(site, [start(a!, site, { [machine]: 1 })], null, context());
        const next = await store.changesSince(changes.cursor, 100);
        expect(next).toMatchObject({
          jobs: [{ id: a, position: { state: 'ASSIGNED', run: { epoch: 1 } }, job: null }],
        });
        await store.reportRuns(site, [ended(a!, 1)], MAX_ATTEMPTS);
        expect(await store.changesSince(changes.cursor, 100)).toMatchObject({
          jobs: [{ id: a, position: null, job: null }],
        });
      });

      it('is exact at its cursor even when the truth is further', async () => {
        const { cursor } = await store.loadGrid(0);
        const [a] = await submit(world, user, [newJob()]);
        await store.applyMoves([move(a!, site)], context());
        await store.applyStarts(site, [start(a!, site, { [machine]: 1 })], null, context());
        const seen: unknown[] = [];
        let at = cursor;
        for (let more = true; more; ) {
          const changes = await store.changesSince(at, 1);
          if (changes === 'too-old') throw new Error('the cursor is not old');
          ({ cursor: at, more } = changes);
          for (const { position } of changes.jobs)
            seen.push([position?.state, position?.siteId, position?.run?.epoch]);
        }
        expect(seen).toEqual([
          ['QUEUED', null, undefined],
          ['DISPATCHED', site, undefined],
          ['ASSIGNED', site, 1],
        ]);
      });

      it('tells of the directory, the policy and the classes of users', async () => {
        const { cursor } = await store.loadGrid(0);
        await world.newPolicy();
        await world.setUserClass(user, 'GOLD');
        await world.setSiteState(other, 'DOWN');
        await world.setMachineState(second, 'DRAINING');
        const changes = await store.changesSince(cursor, 100);
        expect(changes).toMatchObject({
          jobs: [],
          users: [{ userId: user, userClass: 'GOLD', share: 1 }],
          directory: {
            policy: { version: 2, document: { seed: 2 } },
            sites: [{ state: 'UP' }, { state: 'DOWN' }],
            machines: [{ available: true }, { available: false }, { available: true }],
          },
        });
      });

      it('keeps a mirror in step', async () => {
        const mirror = new Mirror(store, { batch: 3, reservations: true });
        await mirror.sync();
        const [a, b, c] = await dispatched(world, user, site, [
          newJob({ deadline: T0 + 300 }),
          newJob(),
          newJob(),
        ]);
        const [d] = await submit(world, user, [newJob()]);
        await store.applyStarts(
          site,
          [start(a!, site, { [machine]: 1 })],
          reservation(site, b!, machine),
          context(),
        );
        await store.hold(byIds([c!]));
        await world.setUserClass(user, 'GOLD');
        await mirror.sync();
        expect(mirror.grid.placeOf(a!)).toEqual({ at: 'RUNNING', siteId: site, plannedEnd: T0 + 100 });
        expect(mirror.grid.placeOf(b!)).toEqual({ at: 'QUEUE', siteId: site });
        expect(mirror.grid.placeOf(c!)).toBeNull();
        expect(mirror.grid.placeOf(d!)).toEqual({ at: 'ROOT' });
        expect(mirror.grid.job(d!)!.userClass).toBe('GOLD');
        expect(mirror.grid.index(Margins).last(10)).toEqual([200]);
        expect(mirror.grid.siteEntry(site).reservation).toMatchObject({ jobId: b });
        await store.reportRuns(site, [report(a!, 1), ended(a!, 1)], MAX_ATTEMPTS);
        await store.release(byIds([c!]));
        await world.newPolicy();
        await mirror.sync();
        expect(mirror.grid.placeOf(a!)).toBeNull();
        expect(mirror.grid.placeOf(c!)).toEqual({ at: 'QUEUE', siteId: site });
        expect(mirror.policy.version).toBe(2);
        // Behind what is kept it loads again.
        await submit(world, user, [newJob()]);
        await store.prune({
          eventsBefore: Date.now() / 1000 + 60,
          unreadBefore: 0,
          jobsEndedBefore: 0,
          processesBefore: 0,
          auditsBefore: 0,
          limit: 1000,
        });
        await mirror.sync();
        expect(mirror.grid.root.length).toBe(2);
      });
    });
  });
}
