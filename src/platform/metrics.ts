import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';

/** Buckets of durations, seconds: from a cycle with nothing to do to one that is far too slow. */
const DURATION_BUCKETS_S = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.5, 1, 2.5, 5, 10];

/** What each number is and where it comes from; labels have few values, so that the list cannot grow without bound. */
export interface Metrics {
  /** The text that Prometheus reads, and its content type. */
  expose(): Promise<{ body: string; contentType: string }>;
  /** Seconds of scheduling cycles. scheduler: root, site or sweep; phase: sync, plan, apply or total. */
  cycleSeconds: Histogram<'scheduler' | 'phase'>;
  /** Cycles ended. outcome: changed, idle or failed. */
  cycles: Counter<'scheduler' | 'outcome'>;
  /** Seconds from asking for a cycle to its beginning. */
  wakeSeconds: Histogram<'scheduler'>;
  /** Wake-ups that could not be queued; the slow timer makes up for them. */
  wakeFailures: Counter;
  /** Jobs that have not ended. state: QUEUED (in the global queue or a meta-queue), DISPATCHED (in a local queue), LIVE (with a live run). */
  jobs: Gauge<'state'>;
  /** state: total (of machines that accept jobs) or used (by runs there). */
  resources: Gauge<'site' | 'resource' | 'state'>;
  /** Pools of sites, and of the grid (site: empty). state: total or used. */
  pools: Gauge<'site' | 'kind' | 'state'>;
  /** What waiting jobs ask of pools. */
  poolWaiting: Gauge<'kind'>;
  /** Live runs that are in the way of a window or reservation that has begun. */
  lateRuns: Gauge<'site'>;
  /** Runs stopped by this process. class: of the stopped job, in the current policy; for: job (of a higher rank) or hold. */
  preemptedRuns: Counter<'class' | 'for'>;
  /** Core-seconds of work that they lost, as it was when they were chosen. */
  lostCoreSeconds: Counter<'class' | 'for'>;
  /** Wake-ups in the queue. state: waiting, active or delayed. */
  queueDepth: Gauge<'queue' | 'state'>;
  /** Decisions carried out. kind: move or start; reason: a reason code. */
  decisions: Counter<'kind' | 'reason'>;
  /** Items of plans that were refused because the state had changed. */
  refusals: Counter<'kind'>;
  /** Jobs put on hold because no plan that contains them can be carried out. */
  setAside: Counter;
  /** Seconds from an event's time to its reading by this process. */
  eventLagSeconds: Histogram;
  /** Events read by this process. */
  events: Counter;
  /** Seconds from the oldest event that a follower has not dealt with, at its last look. Only where this process holds it. */
  followerLagSeconds: Gauge<'follower'>;
  /** Events that a follower of this process has dealt with. */
  followerEvents: Counter<'follower'>;
  /** Batches of a follower that failed; they are tried again. */
  followerFailures: Counter<'follower'>;
  /** Webhooks. state: current, failing (the endpoint does not take what it is sent), disabled. Only where this process delivers. */
  webhooks: Gauge<'state'>;
  /** Seconds since the oldest event that an endpoint has failed to take, of all webhooks. Only where this process delivers. */
  webhookLagSeconds: Gauge;
  /** Requests to endpoints. outcome: delivered or failed. */
  webhookDeliveries: Counter<'outcome'>;
  /** Seconds of these requests. */
  webhookSeconds: Histogram;
  /** Mails about jobs. outcome: sent, failed (tried again), or refused by the mail server for their address. */
  mails: Counter<'outcome'>;
  /** Machines refused to agents, because another holds the lease. */
  agentRefusals: Counter;
  /** Of a site's own scheduler, as its agent has last reported to this process; when that was is one of them. */
  siteScheduler: {
    requests: Gauge<'site'>;
    unanswered: Gauge<'site'>;
    listSeconds: Gauge<'site'>;
    jobs: Gauge<'site'>;
    othersWaiting: Gauge<'site'>;
    reportedAt: Gauge<'site'>;
  };
  /** Open subscriptions. */
  subscriptions: Gauge<'field'>;
  /** Connections of the database pool. state: total, idle or waiting. */
  pool: Gauge<'pool' | 'state'>;
  /** GraphQL operations. type: query, mutation or subscription; code: OK or an error code. */
  operations: Counter<'type' | 'code'>;
  /** Seconds of GraphQL operations. */
  operationSeconds: Histogram<'type'>;
}

/** What is looked at only when somebody reads the metrics. */
export interface PoolLike {
  totalCount: number;
  idleCount: number;
  waitingCount: number;
}

/** A registry of its own: several services in one process (as in tests) do not mix their numbers. */
// biome-ignore lint/complexity/noExcessiveLinesPerFunction: a table, a line or a few for each metric
export function createMetrics(): Metrics {
  const registers = [new Registry()];
  const [registry] = registers as [Registry];
  collectDefaultMetrics({ register: registry });
  const histogram = <L extends string>(name: string, help: string, labelNames: L[] = []) =>
    new Histogram<L>({ name, help, labelNames, buckets: DURATION_BUCKETS_S, registers });
  const counter = <L extends string>(name: string, help: string, labelNames: L[] = []) =>
    new Counter<L>({ name, help, labelNames, registers });
  const gauge = <L extends string>(name: string, help: string, labelNames: L[] = []) =>
    new Gauge<L>({ name, help, labelNames, registers });

  return {
    expose: async () => ({ body: await registry.metrics(), contentType: registry.contentType }),
    cycleSeconds: histogram('switchyard_cycle_seconds', 'Duration of scheduling cycles and their phases.', [
      'scheduler',
      'phase',
    ]),
    cycles: counter('switchyard_cycles_total', 'Completed scheduling cycles.', ['scheduler', 'outcome']),
    wakeSeconds: histogram('switchyard_wake_seconds', 'Time from a wake-up to the start of its cycle.', [
      'scheduler',
    ]),
    wakeFailures: counter('switchyard_wake_failures_total', 'Wake-ups that could not be queued.'),
    jobs: gauge(
      'switchyard_jobs',
      'Jobs in the global queue or a meta-queue (QUEUED), in local queues (DISPATCHED) and with live runs (LIVE).',
      ['state'],
    ),
    resources: gauge(
      'switchyard_resources',
      'Amounts of each kind of resource at a site: on machines that accept jobs (total), and in use by runs (used).',
      ['site', 'resource', 'state'],
    ),
    pools: gauge(
      'switchyard_pools',
      'Amounts that are counted for a site, or for the grid (site empty): in all (total), and in use by runs (used).',
      ['site', 'kind', 'state'],
    ),
    poolWaiting: gauge('switchyard_pool_waiting', 'Amounts of pools that waiting jobs request.', ['kind']),
    lateRuns: gauge(
      'switchyard_late_runs',
      'Runs still in the way of a maintenance window or reservation that has begun.',
      ['site'],
    ),
    preemptedRuns: counter(
      'switchyard_preempted_runs_total',
      'Runs stopped for jobs of higher ranks, or for maintenance windows and reservations.',
      ['class', 'for'],
    ),
    lostCoreSeconds: counter('switchyard_lost_core_seconds_total', 'Work lost by these runs, core-seconds.', [
      'class',
      'for',
    ]),
    queueDepth: gauge('switchyard_queue_depth', 'Wake-ups in the queue.', ['queue', 'state']),
    decisions: counter('switchyard_decisions_total', 'Decisions carried out, by reason.', ['kind', 'reason']),
    refusals: counter(
      'switchyard_refusals_total',
      'Items of plans that were rejected because the state had changed.',
      ['kind'],
    ),
    setAside: counter(
      'switchyard_jobs_set_aside_total',
      'Jobs put on hold because no plan that contains them can be carried out.',
    ),
    eventLagSeconds: histogram(
      'switchyard_event_lag_seconds',
      'Time from an event until this process reads it.',
    ),
    events: counter('switchyard_events_total', 'Events read by this process.'),
    followerLagSeconds: gauge(
      'switchyard_follower_lag_seconds',
      'Age of the oldest event that an event follower has not processed.',
      ['follower'],
    ),
    followerEvents: counter('switchyard_follower_events_total', 'Events processed by an event follower.', [
      'follower',
    ]),
    followerFailures: counter(
      'switchyard_follower_failures_total',
      'Batches that an event follower could not process and retries.',
      ['follower'],
    ),
    webhooks: gauge('switchyard_webhooks', 'Webhooks by state: up to date (current), failing, or disabled.', [
      'state',
    ]),
    webhookLagSeconds: gauge(
      'switchyard_webhook_lag_seconds',
      'Age of the oldest event not accepted by a webhook endpoint.',
    ),
    webhookDeliveries: counter(
      'switchyard_webhook_deliveries_total',
      'Requests to webhook endpoints, by outcome.',
      ['outcome'],
    ),
    webhookSeconds: histogram('switchyard_webhook_seconds', 'Duration of requests to webhook endpoints.'),
    mails: counter('switchyard_mails_total', 'Mails about jobs, by outcome.', ['outcome']),
    agentRefusals: counter(
      'switchyard_agent_refusals_total',
      'Requests for machines that agents were refused because another agent holds the lease.',
    ),
    siteScheduler: {
      requests: gauge(
        'switchyard_site_scheduler_requests',
        "Requests of the agent to the site's own scheduler since it started.",
        ['site'],
      ),
      unanswered: gauge(
        'switchyard_site_scheduler_unanswered',
        "Requests that the site's own scheduler did not answer, since the agent started.",
        ['site'],
      ),
      listSeconds: gauge(
        'switchyard_site_scheduler_list_seconds',
        'Duration of the last listing of jobs there.',
        ['site'],
      ),
      jobs: gauge('switchyard_site_scheduler_jobs', "Jobs of agents in the site's own scheduler.", ['site']),
      othersWaiting: gauge(
        'switchyard_site_scheduler_others_waiting',
        "Jobs of others waiting in the site's own scheduler.",
        ['site'],
      ),
      reportedAt: gauge(
        'switchyard_site_scheduler_reported_timestamp_seconds',
        'When the agent last reported this to this process, Unix time.',
        ['site'],
      ),
    },
    subscriptions: gauge('switchyard_subscriptions', 'Open subscriptions.', ['field']),
    pool: gauge('switchyard_pool_connections', 'Connections of the database pool.', ['pool', 'state']),
    operations: counter('switchyard_operations_total', 'GraphQL operations, by outcome.', ['type', 'code']),
    operationSeconds: histogram('switchyard_operation_seconds', 'Duration of GraphQL operations.', ['type']),
  };
}

/** Keeps the pool's numbers true whenever the metrics are read. */
export function watchPool(metrics: Metrics, name: string, pool: PoolLike): void {
  // prom-client calls `collect` of a gauge before reading it; one gauge serves several pools.
  const gauge = metrics.pool as Gauge<'pool' | 'state'> & { collect?: () => void };
  const before = gauge.collect?.bind(gauge);
  gauge.collect = () => {
    before?.();
    gauge.set({ pool: name, state: 'total' }, pool.totalCount);
    gauge.set({ pool: name, state: 'idle' }, pool.idleCount);
    gauge.set({ pool: name, state: 'waiting' }, pool.waitingCount);
  };
}
