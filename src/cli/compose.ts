/** Puts the rooms together: the parts of an api process, of a worker, and of both in one. */
import { createApi } from '../api/server.js';
import { mailFollowing, readToken, Sender, webhookFollowing, webhookTester } from '../callbacks/index.js';
import { schedulerOf } from '../core/scheduler.js';
import { createEngine, createSimulationWorker, openWaker, type QueueConnection } from '../engine/index.js';
import { Federation } from '../federation/index.js';
import type { Config } from '../platform/config.js';
import { REAL_ENV } from '../platform/env.js';
import type { Part } from '../platform/lifecycle.js';
import type { Logger } from '../platform/log.js';
import { type Metrics, watchPool } from '../platform/metrics.js';
import { whatIfInThread } from '../simulator/what-if.js';
import { EventBell } from '../store/bell.js';
import { type Blobs, BucketBlobs, DirectoryBlobs } from '../store/blobs.js';
import { ServerClock } from '../store/clock.js';
import { type Directory, openDirectory } from '../store/directory.js';
import { diagnose } from '../store/doctor.js';
import { type Exports, openExports } from '../store/federation/index.js';
import { EventFeed } from '../store/feed.js';
import { FileSweep } from '../store/file-sweep.js';
import { openFiles } from '../store/files.js';
import { Lifeline } from '../store/lifeline.js';
import { Mails } from '../store/mails.js';
import { pendingMigrations } from '../store/migrate.js';
import { Mirror } from '../store/mirror.js';
import { type Database, openDatabase } from '../store/pool.js';
import { PostgresStore } from '../store/postgres.js';
import { Queries } from '../store/queries.js';
import { Simulations } from '../store/simulations.js';
import { Watchdog } from '../store/watchdog.js';
import { Webhooks } from '../store/webhooks.js';
import { apiConfig } from './api-config.js';
import { healthPart } from './health.js';
import { patiently } from './patiently.js';
import { Readiness } from './readiness.js';
import { openSecrets, sealAnew } from './secrets.js';

/** What every process has. */
export interface ProcessContext {
  config: Config;
  log: Logger;
  metrics: Metrics;
}

/** What a process does. */
export interface Roles {
  api: boolean;
  worker: boolean;
}

/** The truth, as one process reaches it. */
export interface Stores {
  url: string;
  database: Database;
  store: PostgresStore;
  directory: Directory;
  queries: Queries;
  exports: Exports;
}

/** Opens no connection yet. `name` is shown in PostgreSQL's list of connections. */
export function openStores({ config, log, metrics }: ProcessContext, url: string, name: string): Stores {
  const database = openDatabase({
    url,
    poolSize: config.poolSize,
    connectTimeoutMs: config.connectTimeoutS * 1000,
    statementTimeoutMs: config.statementTimeoutS * 1000,
    applicationName: `switchyard ${name}`,
    onIdleError: (error) => log.warn({ error: error.message }, 'an idle database connection failed'),
  });
  watchPool(metrics, 'postgres', database.pool);
  return {
    url,
    database,
    store: new PostgresStore(database, {
      reach: { dataHosts: config.peerDataHosts, publicUrl: config.publicUrl },
    }),
    directory: openDirectory(database),
    queries: new Queries(database),
    exports: openExports(database),
  };
}

/**
 * The parts of a process with these roles, in the order in which they start.
 *
 * @param onListening told the address of the GraphQL endpoint
 */
// biome-ignore lint/complexity/noExcessiveLinesPerFunction: puts parts together, in the order in which they start
export function serviceParts(
  context: ProcessContext,
  roles: Roles,
  stores: Stores,
  onListening: (url: string) => void = () => {},
): Part[] {
  const { config, log, metrics } = context;
  const { url, database, store, directory, queries } = stores;
  const queueConnection: QueueConnection = config.redisUrl
    ? { kind: 'redis', url: config.redisUrl }
    : { kind: 'postgres', url };
  const lifeline = openLifeline(context, stores);
  const clock = new ServerClock(database.pool);
  // A worker's cycles know the reservations; a process that only explains has to read them.
  const mirror = new Mirror(store, { reservations: !roles.worker });
  const onFeedError = (error: unknown): void =>
    log.warn({ err: error }, 'reading events failed; trying again');
  const bell = roles.worker ? new EventBell({ url, onError: onFeedError }) : null;
  const sender = new Sender({
    addresses: config.webhookAddresses,
    timeoutMs: config.webhookTimeoutS * 1000,
  });
  const callbacks = {
    ...{ webhooks: new Webhooks(database, directory), queries, sender, log, metrics, env: REAL_ENV },
    ...{
      now: clock.now,
      giveUpS: config.webhookGiveUpH * 3600,
      source: once(async () => `urn:switchyard:${await directory.serviceId()}`),
    },
  };
  const mails = new Mails(database);
  const secret = once(() => mails.secret());
  const mailing = {
    ...{ mails, from: config.mailFrom, everyS: config.mailEveryS, waitedS: config.mailWaitedH * 3600 },
    links: { publicUrl: config.publicUrl, secret },
    ...{ log, metrics, env: REAL_ENV, now: clock.now },
  };
  const engine = roles.worker
    ? createEngine({
        followings: [
          webhookFollowing(callbacks),
          ...(config.smtpUrl === null ? [] : [mailFollowing({ ...mailing, smtpUrl: config.smtpUrl })]),
        ],
        ...(bell && { news: bell.listen }),
        store,
        mirror,
        queueConnection,
        log,
        metrics,
        config: {
          concurrency: config.workerConcurrency,
          eventRetentionDays: config.eventRetentionDays,
          jobRetentionDays: config.jobRetentionDays,
          auditRetentionDays: config.auditRetentionDays,
        },
        now: clock.now,
        reach: lifeline,
      })
    : null;
  // The engine does not know the simulator: they meet here.
  const simulations = roles.worker
    ? createSimulationWorker({
        simulations: new Simulations(database),
        simulate: whatIfInThread,
        queueConnection,
        log,
        config: { retentionDays: config.jobRetentionDays },
        now: clock.now,
        reach: lifeline,
      })
    : null;
  const files = openFiles(database);
  const blobs = openBlobs(config);
  const federation = engine
    ? new Federation({
        copies: store.copies,
        filesOfRuns: (runs) => queries.filesOfRuns(runs),
        blobs,
        share: { jobs: config.limits.userJobs, bytes: config.limits.userJobBytes },
        wake: (touched) => void engine.wake(touched.map(schedulerOf)),
        log,
        now: clock.now,
      })
    : null;
  const waker = engine ? null : openWaker({ connection: queueConnection, log, metrics });

  const watchdog = new Watchdog({
    url,
    onEnded: (session) => log.error(session, 'ended a database session that blocked others'),
    onError: (error) => log.debug({ err: error }, 'the watchdog could not query the database'),
  });
  const readiness = openReadiness(stores, lifeline);
  const parts: Part[] = [
    ...(config.metricsPort > 0 ? [healthPart(context, () => readiness.missing())] : []),
    { name: 'lifeline', start: () => lifeline.start(), stop: () => lifeline.stop() },
    {
      name: 'database',
      async start() {
        await readiness.start();
        const { server, harm } = await diagnose(database.pool);
        log.info({ server }, 'the database is reachable');
        for (const sentence of harm) log.warn(`the database: ${sentence}`);
      },
      async stop() {
        readiness.stop();
        await database.close();
      },
    },
    { name: 'clock', start: () => clock.start(), stop: () => clock.stop() },
    { name: 'watchdog', start: () => watchdog.start(), stop: () => watchdog.stop() },
    // Before the API, so that it stops behind it: requests in hand may still wake somebody.
    engine
      ? {
          name: 'engine',
          async start() {
            await bell?.start();
            await engine.start();
          },
          async stop() {
            await engine.stop();
            await bell?.stop();
          },
        }
      : { name: 'queue', stop: () => waker?.close() },
    { name: 'webhooks', stop: () => sender.close() },
    ...(simulations
      ? [{ name: 'simulations', start: () => simulations.start(), stop: () => simulations.stop() }]
      : []),
    ...(federation
      ? [{ name: 'federation', start: () => federation.start(), stop: () => federation.stop() }]
      : []),
  ];
  const waiting = (all: Part[]): Part[] => all.map((part) => patiently(part, log));
  if (!roles.api) return waiting(parts);

  const feed = new EventFeed(queries, { url, onError: onFeedError });
  const sweep = new FileSweep({
    ...{ files, blobs, retentionDays: config.fileRetentionDays, now: clock.now },
    onError: (error) => log.warn({ err: error }, 'the removal of old files failed; trying again'),
  });
  const { wake } = (engine ?? waker)!;
  const secrets = openSecrets(config);
  const api = createApi({
    store,
    directory,
    queries,
    fileStore: { files, blobs, retentionDays: config.fileRetentionDays },
    exports: stores.exports,
    feed,
    mirror,
    wake,
    testWebhook: webhookTester(callbacks),
    secrets,
    unsubscribeToken: async (token) => readToken(await secret(), token),
    config: apiConfig(config),
    log,
    metrics,
    missing: () => readiness.missing(),
    now: clock.now,
  });
  return waiting([
    ...parts,
    ...(secrets ? [{ name: 'secrets', start: () => sealAnew(secrets, directory, log) }] : []),
    { name: 'files', start: () => sweep.start(), stop: () => sweep.stop() },
    {
      name: 'events',
      async start() {
        await feed.start();
        measureEvents(feed, metrics).catch(onFeedError);
      },
      stop: () => feed.stop(),
    },
    { name: 'api', start: async () => onListening(await api.listen()), stop: () => api.close() },
  ]);
}

/** Nobody in this process waits for a database that does not answer. */
function openLifeline({ log }: ProcessContext, { url, database }: Stores): Lifeline {
  return new Lifeline({
    url,
    onAway(why) {
      log.error(
        { why },
        'the database cannot be reached: requests are rejected and no cycles run until it responds',
      );
      database.cut(why);
    },
    onBack(awayS) {
      log.warn({ awayS: Math.round(awayS) }, 'the database is reachable again');
      database.restore();
    },
  });
}

function openReadiness({ database, queries }: Stores, lifeline: Lifeline): Readiness {
  return new Readiness({
    lifeline,
    async unmigrated() {
      const missing = await pendingMigrations(async (sql) => (await database.pool.query(sql)).rows);
      return missing.length === 0 ? null : unmigrated(missing);
    },
    isSetUp: async () => (await queries.policy()) !== null,
  });
}

/** Asks until there is an answer, which stays. */
function once<T>(ask: () => Promise<T>): () => Promise<T> {
  let answer: T | undefined;
  return async () => {
    answer ??= await ask();
    return answer;
  };
}

/** Where files of runs are kept. */
function openBlobs(config: Config): Blobs {
  const { filesDir, filesBucket: endpoint, filesBucketKeyId, filesBucketSecret } = config;
  if (endpoint === null || filesBucketKeyId === null || filesBucketSecret === null)
    return new DirectoryBlobs(filesDir);
  const access = { accessKeyId: filesBucketKeyId, secretAccessKey: filesBucketSecret };
  return new BucketBlobs({
    endpoint,
    region: config.filesBucketRegion,
    prefix: config.filesBucketPrefix,
    ...access,
  });
}

/** Counts what the feed reads, and how late the oldest event of each batch was. Ends with the feed. */
async function measureEvents(feed: EventFeed, metrics: Metrics): Promise<void> {
  for await (const { events } of feed.follow(null)) {
    metrics.events.inc(events.length);
    if (events[0]) metrics.eventLagSeconds.observe(Math.max(0, Date.now() / 1000 - events[0].at));
  }
}

const unmigrated = (missing: readonly string[]): string =>
  `the database is not at the version that this release needs (missing: ${missing.join(', ')}): run \`switchyard migrate\``;
