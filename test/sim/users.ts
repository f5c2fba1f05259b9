/** Users: what they submit, ordinary and at the bounds of what is accepted and beyond, again and again until they have an answer. */

import type { JobInput, NeedTermInput, RetryRuleInput } from '../../src/api/generated/types.js';
import { globalId } from '../../src/api/ids.js';
import type { ServiceError } from '../../src/client/index.js';
import { RandomStream } from '../../src/core/index.js';
import { MAX } from '../../src/platform/limits.js';
import type { MemoryJob, MemoryStore } from '../store/memory.js';
import type { Api } from './api.js';
import { viewer } from './api.js';
import { FAILING } from './host.js';
import type { Promises } from './promises.js';
import type { Process } from './time.js';

export const USERS = 2;
const OPERATOR = viewer({ userId: 1, role: 'OPERATOR' });
const ACTIONS = ['cancel', 'hold', 'release', 'boost', 'change'] as const;
const GROUPS = ['g', 'h'];
export type Action = (typeof ACTIONS)[number];

interface UsersWorld {
  store: MemoryStore;
  promises: Promises;
  databaseNow(): number;
  process(name: string): Process;
  /** Asks the API for something. */
  call<T>(caller: Process, work: (api: Api) => Promise<T>): Promise<T>;
  /** The same over a network that repeats what it carries. */
  callRepeated<T>(caller: Process, work: (api: Api) => Promise<T>): Promise<T>;
}

/** What may change between drawing a job and submitting it. */
const PASSING = /^deadline$|^inputs\[\d+\]\.dataset$/;

/** No machines here can run so many. */
const UNFIT_TASKS = 100;

/** One value of those. */
const one = <T>(random: RandomStream, ...list: T[]): T => list[random.integer(0, list.length - 1)] as T;

export class Users {
  private keys = 0;

  constructor(private readonly world: UsersWorld) {}

  /**
   * Asks again, with the same key, until there is an answer; and now and then once more behind that, or with other jobs. Without a key
   * nobody asks twice.
   */
  submit(n: number): void {
    const random = new RandomStream(n, 'jobs');
    this.ask(
      random,
      Array.from({ length: random.integer(1, 6) }, () => drawInput(random, this.world)),
    );
  }

  /** Jobs that need one another, others of their user, and groups. */
  submitWorkflow(n: number): void {
    const random = new RandomStream(n, 'workflow');
    const userId = random.integer(1, USERS);
    const drawn = Array.from({ length: random.integer(2, 6) }, () => drawInput(random, this.world));
    const others = [...this.world.store.jobs.values()].filter((job) => job.userId === userId);
    for (const [i, { input }] of drawn.entries()) {
      input.ref = `r${i}`;
      // The first half are in groups, which the second half may need: so nobody needs themselves.
      const isMember = i < drawn.length / 2;
      input.groupName = isMember ? one(random, null, ...GROUPS) : null;
      input.onUnmet = one(random, 'CANCEL', 'CANCEL', 'HOLD', 'RUN');
      input.notBefore = one(random, null, null, new Date((this.world.databaseNow() + 5) * 1000));
      const own = drawn.slice(0, i).flatMap((job) => job.input.groupName ?? []);
      const targets = [
        ...drawn.slice(0, i).map((_, k) => ({ ref: `r${k}` })),
        ...others.slice(-3).map(({ id }) => ({ job: globalId('job', id) })),
        ...(isMember ? [] : own.map((group) => ({ group }))),
      ];
      if (targets.length === 0) continue;
      const term = (): NeedTermInput => ({
        ...one(random, ...targets),
        condition: one(random, 'OK', 'OK', 'ANY', 'START', 'NOT_OK'),
        minDelayS: one(random, 0, 0, 0, 7),
      });
      input.needs = Array.from({ length: random.integer(0, 2) }, () => ({
        expression: one(random, 'ALL', 'ALL', 'ANY'),
        of: Array.from({ length: random.integer(1, 3) }, term),
      }));
    }
    this.ask(random, drawn, userId);
  }

  /** What has failed of a group is run again, by its user. */
  rerun(n: number): void {
    const { world } = this;
    const who = viewer({ userId: 1 + (n % USERS), role: 'USER' });
    const groupName = GROUPS[n % GROUPS.length] as string;
    const only = n % 3 === 0 ? 'FAILED' : 'FAILED_AND_DOWNSTREAM';
    const ask = world.call(world.process('user'), ({ reruns }) =>
      reruns.rerunJobs(who, { groupName, jobGroupId: null, only }, 'request'),
    );
    ask.catch(({ code, message }: ServiceError) => {
      if (!['NETWORK', 'UNAVAILABLE', 'QUOTA_EXCEEDED'].includes(code))
        world.promises.fail(`9: a rerun was answered with ${code}: ${message}`);
    });
  }

  /** Jobs that are one step beyond what is accepted. */
  submitBeyond(n: number): void {
    const random = new RandomStream(n, 'beyond');
    for (let i = 0; i < 5; i++) this.ask(random, [drawInput(random, this.world, true)]);
  }

  private ask(
    random: RandomStream,
    drawn: readonly Drawn[],
    userId: number = random.integer(1, USERS),
  ): void {
    const { world } = this;
    const { promises } = world;
    const caller = world.process('user');
    const wrong = drawn.find((job) => job.wrong !== null)?.wrong ?? null;
    // Operators may have others stopped for their jobs.
    const preemptionClass = wrong === null && random.next() < 0.2 ? random.integer(1, 9) : 0;
    const who = viewer({ userId, role: preemptionClass > 0 ? 'OPERATOR' : 'USER' });
    const jobs = drawn.map(({ input }) => ({ ...input, preemptionClass }));
    const unfit = drawn.some((job) => job.unfit);
    const allowUnfit = unfit && random.next() < 0.5;
    const idempotencyKey = random.next() < 0.1 ? null : `key-${++this.keys}`;
    const attempt = (left: number, asked = jobs): void => {
      const call = idempotencyKey === null ? world.call : world.callRepeated;
      const ask = call(caller, ({ jobs: service }) =>
        service.submitJobs(who, structuredClone({ idempotencyKey, jobs: asked, allowUnfit }), 'request'),
      );
      const again = () => {
        // Twice in one submission, names are taken.
        const others = jobs.some(({ ref }) => ref) ? jobs : [...jobs, ...jobs];
        const next = one(random, jobs, jobs, others);
        if (left > 0) caller.after(random.integer(100, 20_000), () => attempt(left - 1, next));
      };
      const { restores } = promises;
      ask.then(
        ({ ids, errors }) => {
          // Nobody knows what became of it.
          if (promises.restores !== restores) {
            if (idempotencyKey !== null) attempt(left, asked);
            return;
          }
          if (asked !== jobs && promises.isAccepted(idempotencyKey))
            return promises.fail(`8: ${idempotencyKey} is taken with other jobs`);
          const faulty = wrong ?? (unfit && !allowUnfit ? 'tasks' : null);
          const lasting = errors.filter(({ field }) => !PASSING.test(field ?? ''));
          if (faulty === null ? lasting.length > 0 : errors.length === 0)
            promises.fail(`9: ${faulty} is wrong, and is answered with ${JSON.stringify(errors)}`);
          if (errors.length > 0) promises.refused(idempotencyKey);
          else {
            promises.submitted(idempotencyKey, asked.length, ids);
            promises.needs.submitted(asked, ids, userId);
          }
          if (idempotencyKey !== null && errors.length === 0) again();
        },
        (error: ServiceError) => {
          if (['NETWORK', 'UNAVAILABLE'].includes(error.code)) {
            if (idempotencyKey !== null) caller.after(random.integer(100, 3_000), () => attempt(left, asked));
          } else if (error.code === 'IDEMPOTENCY_KEY_REUSED' && asked !== jobs) return;
          else if (error.code === 'QUOTA_EXCEEDED') promises.refused(idempotencyKey);
          else promises.fail(`9: a submission was answered with ${error.code}: ${error.message}`);
        },
      );
    };
    if (idempotencyKey !== null) promises.asked(idempotencyKey);
    attempt(random.integer(0, 1));
  }

  /** By the owner, an operator, or somebody who may not. */
  act(action: Action, n: number): void {
    const { world } = this;
    const { store, promises } = world;
    if (store.jobs.size === 0) return;
    // Mostly one that lives.
    const live = [...store.jobs.values()].filter(({ endedAt }) => endedAt === null);
    const some = n % 5 === 0 || live.length === 0 ? [...store.jobs.values()] : live;
    const jobId = some[(n >> 3) % some.length]?.id as number;
    const owner = store.jobs.get(jobId)?.userId as number;
    const boost = n % 2 === 0 ? MAX.boost : -MAX.boost;
    const sets = [
      { name: `n${n % 7}` },
      { atOnce: n % 4 },
      { memoryMbPerTask: n % 200, estimateS: 1 + (n % 60) },
    ];
    const set = sets[n % 3]!;
    const who = n % 4 === 0 ? OPERATOR : viewer({ userId: n % 4 === 1 ? 1 + (owner % USERS) : owner });
    // Sometimes all that its owner has.
    const all = (n >> 5) % 3 === 0 ? live.filter(({ userId }) => userId === owner) : [];
    const selection = { ids: [jobId, ...all.map(({ id }) => id)].map((id) => globalId('job', id)) };
    const asked = world.call(world.process('user'), async ({ jobs }) => {
      const acts = {
        cancel: () => jobs.cancelJobs(who, selection, 'request'),
        hold: () => jobs.holdJobs(who, selection, 'request'),
        release: () => jobs.releaseJobs(who, selection, 'request'),
        boost: () => jobs.reprioritizeJobs(who, selection, boost, 'request'),
        change: () => jobs.updateJobs(who, { selection, set, allowUnfit: false }, 'request'),
      };
      return acts[action]();
    });
    asked.then(
      ({ ids }) => {
        if (ids.length > 0 && who.role === 'USER' && who.userId !== owner)
          promises.fail(`1: user ${who.userId} has changed job ${jobId} of user ${owner}`);
        if (ids.length > 0 && action === 'boost' && boost > 0 && who.role === 'USER')
          promises.fail(`1: user ${who.userId} has raised job ${jobId}`);
      },
      ({ code, message }: ServiceError) => {
        if (!['NETWORK', 'UNAVAILABLE', 'FORBIDDEN'].includes(code))
          promises.fail(`9: ${action} was answered with ${code}: ${message}`);
      },
    );
  }

  /** Nobody wants for ever what can never run, or what somebody holds. */
  giveUp(): void {
    this.cancelLive(({ tasks }) => tasks >= UNFIT_TASKS, true);
  }

  /** Somebody empties a site. */
  cancelAt(siteId: number): void {
    this.cancelLive((job) => job.siteId === siteId, false);
  }

  /** By an operator, of live jobs. */
  private cancelLive(of: (job: MemoryJob) => boolean, release: boolean): void {
    const { world } = this;
    const ids = [...world.store.jobs.values()]
      .filter((job) => job.endedAt === null && of(job))
      .map(({ id }) => globalId('job', id));
    const ask = world.call(world.process('operator'), async ({ jobs }) => {
      if (ids.length > 0) await jobs.cancelJobs(OPERATOR, { ids }, 'request');
      if (release) await jobs.releaseJobs(OPERATOR, { filter: { states: ['HELD'] } }, 'request');
    });
    ask.catch(({ code, message }: ServiceError) => {
      if (!['NETWORK', 'UNAVAILABLE'].includes(code)) world.promises.fail(`9: ${code}: ${message}`);
    });
  }
}

interface Drawn {
  input: JobInput;
  /** What is not acceptable; null: all is. */
  wrong: keyof JobInput | null;
  unfit: boolean;
}

const takes = (memoryMbPerTask: number): Pick<JobInput, 'memoryMbPerTask' | 'resourcesPerTask'> => ({
  memoryMbPerTask,
  resourcesPerTask: memoryMbPerTask === 300 ? [{ kind: 'disk', amount: 1 }] : [],
});

/** Some programs fail, some jobs say what is then done. What is held is released again: only what a fault has ended may be held. */
function drawRetry(random: RandomStream): Partial<JobInput> {
  const pick = <T>(...list: T[]): T => one(random, ...list);
  const rule = (): RetryRuleInput => ({
    ...pick<Pick<RetryRuleInput, 'action' | 'causes' | 'exitCodes'>>(
      { action: pick('RETRY', 'RETRY_ELSEWHERE'), causes: ['EXITED_NONZERO', 'RUN_TIME_LIMIT', 'LOST'] },
      { action: pick('RETRY', 'RETRY_ELSEWHERE', 'FAIL'), exitCodes: [{ from: 1, to: 9 }] },
      { action: pick('RETRY', 'RETRY_ELSEWHERE', 'HOLD'), causes: ['LOST', 'MACHINE_FAILED'] },
      { action: pick('RETRY', 'RETRY_ELSEWHERE') },
    ),
    memoryFactor: pick(1, 1, 2),
  });
  const retry = (): JobInput['retry'] => ({
    ...{ maxRetries: random.integer(0, 3), factor: pick(1, 2.5), maxBackoffS: pick(20, 1e9) },
    ...{ backoffS: pick(0, 0.5, 15), rules: Array.from({ length: random.integer(0, 2) }, rule) },
  });
  return { ...(random.next() < 0.15 && { command: FAILING }), retry: random.next() < 0.4 ? retry() : null };
}

/** Some jobs of several tasks have them in two parts: where the same of them all has room, these have. */
function inParts(input: JobInput): JobInput {
  const { tasks, cpusPerTask, memoryMbPerTask, resourcesPerTask, retry, exclusive } = input;
  const grows = (retry?.rules ?? []).some(({ memoryFactor }) => memoryFactor !== 1);
  const seed = tasks * 7 + input.estimateS + (input.simulatedRunS ?? 0);
  if (tasks < 2 || grows || exclusive || new RandomStream(Math.round(seed * 1000), 'parts').next() < 0.5)
    return input;
  const each = { memoryMbPerTask, resourcesPerTask, devicesPerTask: [] };
  return {
    ...input,
    ...{ tasks: 1, cpusPerTask: 1, memoryMbPerTask: 0, resourcesPerTask: [] },
    parts: [
      { ...each, tasks: 1, cpusPerTask },
      { ...each, tasks: tasks - 1, cpusPerTask: 1 },
    ],
  };
}

function drawInput(random: RandomStream, { store, databaseNow }: UsersWorld, goesBeyond = false): Drawn {
  const pick = <T>(...list: T[]): T => one(random, ...list);
  const licenses = pick<string[]>([], [], [], ['cad'], ['grid'], ['cad', 'grid']);
  const many = licenses.length === 0;
  const runS = pick(0, 1, 5, 20, 60, 120, 200);
  const benchmark = pick(100, 100, 100, MAX.leastBenchmark, MAX.benchmark);
  const tasks = many ? pick(1, 1, 2, 3) : 1;
  const cpusPerTask = pick(1, 1, 2);
  // The longest that is accepted, and no longer than the work.
  const longestS = Math.min(MAX.seconds, MAX.work / (benchmark * tasks * cpusPerTask));
  const time = (afterS: number): Date => new Date(Math.ceil((databaseNow() + afterS) * 1000));
  const site = (): string => globalId('site', random.integer(1, store.sites.size));
  const input: JobInput = {
    needs: [],
    devicesPerTask: [],
    onUnmet: 'CANCEL',
    application: pick('a', 'b', 'x'.repeat(MAX.nameChars), '🜁'),
    arrayIndex: pick<number | null>(null, null, 0, MAX.integer),
    command: pick('true', 'true', `/${'x'.repeat(MAX.pathChars - 1)}`),
    arguments: pick<string[]>([], [], [''], ['--', '\n', '$(reboot)', "'"]),
    environment: pick<{ name: string; value: string }[]>(
      [],
      [],
      [
        { name: '__proto__', value: 'a' },
        { name: 'constructor', value: '' },
      ],
    ),
    workingDirectory: pick(null, null, '/tmp'),
    tasks,
    cpusPerTask,
    // Those that take much memory take a disk, too.
    ...takes(pick(0, 100, 300)),
    licenses,
    resources: [],
    estimateS: pick(10, 60, MAX.leastSeconds, longestS),
    benchmark,
    runTimeLimitS: pick(null, null, MAX.leastSeconds, 30, MAX.seconds),
    warnS: pick(null, 0, 10),
    warnSignal: pick('SIGTERM', 'SIGUSR1'),
    killGraceS: pick(0, 30, MAX.killGraceS),
    deadline: pick(null, null, time(5), time(60), time(1e8), new Date(Date.UTC(9999, 11, 31))),
    sandboxMb: pick(0, MAX.sizeMb),
    outputMb: pick(0, MAX.sizeMb),
    inputs: [],
    outputs: [],
    downloads: [],
    uploads: [],
    preferences: [],
    retry: null,
    siteTerms: pick(null, { partition: 'batch', account: null, qos: null }),
    originSite: pick(null, null, site()),
    computationShare: pick(null, null, 0, 1),
    restartable: pick(true, true, false),
    launch: pick('EVERY_TASK', 'EVERY_TASK', 'ONCE'),
    onTaskFailure: pick('END_ALL', 'CONTINUE'),
    boost: pick(0, 0, -MAX.boost),
    preemptionClass: 0,
    held: pick(false, false, false, false, true),
    simulatedRunS: Math.min(MAX.seconds, (runS * 100) / benchmark),
    simulatedIoS: pick(null, 0, 1, MAX.seconds),
  };
  const alone = new RandomStream(store.events.length * 991 + runS * 37 + tasks, 'exclusive').next();
  if (alone < 0.08) input.exclusive = alone < 0.04 ? 'MACHINE' : 'USER';
  // Some ask for a pool by amount, instead of a copy: there is one of each.
  const byAmount = new RandomStream(store.events.length * 983 + runS * 29 + tasks, 'amounts').next();
  if (byAmount < 0.06) {
    const kind = byAmount < 0.03 ? 'cad' : 'grid';
    input.licenses = licenses.filter((one) => one !== kind);
    input.resources = [{ kind, amount: 1 }];
  }
  Object.assign(input, drawRetry(new RandomStream(store.events.length * 997 + runS * 31 + tasks, 'retry')));
  const datasets = [...store.datasets.keys()];
  const count = pick(0, 0, 1, 2, random.next() < 0.02 ? MAX.jobInputs : 3);
  for (let i = 0; i < count; i++) {
    if (datasets.length > 0 && random.next() < 0.7)
      input.inputs.push({ dataset: globalId('dataset', pick(...datasets)) });
    else input.inputs.push({ sizeMb: pick(0, 100, MAX.sizeMb), site: site() });
  }
  input.outputs = pick([], [], ['a'], ['a', 'empty']).map((path) => ({ path, keep: 'SERVICE' }));
  if (!goesBeyond && random.next() < 0.03)
    return {
      input: { ...input, tasks: pick(UNFIT_TASKS, MAX.tasks), cpusPerTask: 1, benchmark: 100, estimateS: 10 },
      wrong: null,
      unfit: true,
    };
  if (!goesBeyond) return { input: inParts(input), wrong: null, unfit: false };
  // One step beyond.
  const beyond: Partial<JobInput>[] = [
    { estimateS: longestS * (1 + 2 ** -50) },
    {
      estimateS: (MAX.work / (MAX.benchmark * tasks * cpusPerTask)) * (1 + 2 ** -50),
      benchmark: MAX.benchmark,
    },
    { estimateS: MAX.leastSeconds / 2 },
    { estimateS: Number.NaN },
    { benchmark: MAX.benchmark * (1 + 2 ** -50), estimateS: 1 },
    { benchmark: MAX.leastBenchmark / 2 },
    { tasks: 0 },
    { tasks: MAX.tasks + 1 },
    { cpusPerTask: 0 },
    { memoryMbPerTask: -1 },
    { runTimeLimitS: 0 },
    { runTimeLimitS: MAX.seconds + 1 },
    { deadline: new Date(databaseNow() * 1000 - 60_000) },
    { sandboxMb: -1 },
    { outputMb: MAX.sizeMb * 2 },
    { boost: 1 },
    { boost: -MAX.boost - 1 },
    { arrayIndex: -1 },
    { computationShare: 1.0000001 },
    { simulatedRunS: -1 },
    { inputs: [{ dataset: globalId('dataset', 1_000_000) }] },
    { inputs: [{ sizeMb: 1 }] },
    { originSite: globalId('dataset', 1) },
    { command: '' },
    { arguments: ['\0'] },
    { application: '\ud800' },
    { environment: [{ name: '1', value: '' }] },
    { licenses: ['cad', 'cad'] },
    { workingDirectory: 'here' },
    { retry: { maxRetries: 1, backoffS: 1, factor: 11, maxBackoffS: 1, rules: [] } },
  ];
  const change = pick(...beyond);
  const [wrong] = Object.keys(change) as [keyof JobInput];
  return { input: { ...input, ...change }, wrong, unfit: false };
}
