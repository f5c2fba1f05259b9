import './overview.css';
import { Link, Navigate, useRouterState } from '@tanstack/react-router';
import { lazy, type ReactNode, Suspense, useEffect, useMemo, useState } from 'react';
import { useData, useThrottled } from '../../api/data';
import { LIVE_STATES, PENDING_STATES } from '../../api/states.gql';
import { useStore } from '../../api/store';
import { gridChanges } from '../../shell/feed';
import { useViewer } from '../../shell/viewer';
import { Chart } from '../../ui/chart';
import {
  COUNT_MAX,
  causeOf,
  count,
  counted,
  duration,
  figure,
  numberOf,
  percent,
  plural,
  words,
} from '../../ui/format';
import { AlertTriangle, MapPin, PlugZap, Send } from '../../ui/icons';
import { useNow } from '../../ui/now';
import {
  Ago,
  At,
  Badge,
  Bar,
  Card,
  Empty,
  Loaded,
  Page,
  PlaceBadge,
  Problem,
  Skeleton,
  Spark,
} from '../../ui/show';
import { AnyJobDocument } from './begin.gql';
import { type Ended, useEnded } from './ended';
import type { OverviewSite } from './map';
import {
  ChangesAuditDocument,
  ChangesDocument,
  OverviewDocument,
  OverviewSitesDocument,
} from './overview.gql';

const SiteMap = lazy(() => import('./map'));
const Begin = lazy(() => import('./begin'));

/** Numbers are asked for anew after news, at most so often; without any news, at least so often. */
const REFRESH_MS = 2_000;
const IDLE_MS = 15_000;
const HOUR_MS = 3_600_000;

export function Overview() {
  // An hour ago, to the minute: a variable that changes too often would never be in the cache.
  const minute = Math.floor(useNow(10_000) / 60_000);
  const since = useMemo(() => new Date(minute * 60_000 - HOUR_MS).toISOString(), [minute]);
  const numbers = useData(OverviewDocument, { since }, { everyMs: IDLE_MS });
  const sites = useData(OverviewSitesDocument, {}, { everyMs: IDLE_MS });
  const refresh = useThrottled(() => {
    numbers.refresh();
    sites.refresh();
  }, REFRESH_MS);
  const grid = useStore(gridChanges);
  // biome-ignore lint/correctness/useExhaustiveDependencies: machines and sites have changed
  useEffect(() => {
    if (grid > 0) refresh();
  }, [grid]);
  const ended = useEnded(refresh);
  const all = sites.data?.sites.nodes;
  const shown = numbers.data;
  const none = shown && shown.queued + shown.dispatched + shown.held + shown.running === 0;
  const quiet = none && ended?.minutes.every((each) => each.COMPLETED + each.FAILED + each.CANCELLED === 0);

  const any = useData(AnyJobDocument, {});
  // Its steps are done there: it stays until the page is left.
  const [begins, setBegins] = useState(false);
  if (!begins && any.data?.jobs.nodes.length === 0) setBegins(true);
  // Users who have jobs meet these first; whoever goes to this page from another sees it.
  const hasCome = useRouterState({ select: ({ location }) => location.state.__TSR_index === 0 });
  const isUser = !useViewer().may('OPERATOR');
  const toJobs = hasCome && isUser && (any.data?.jobs.nodes.length ?? 0) > 0 && !begins;

  if (toJobs) return <Navigate to="/jobs" replace />;
  return (
    <Page
      title="Overview"
      {...(isUser && { about: 'Your jobs. CPUs in use, and sites, are those of the whole grid.' })}
    >
      {numbers.error && !shown && <Problem error={numbers.error} retry={numbers.refresh} />}
      {begins ? (
        <Suspense fallback={<Skeleton height={220} />}>
          <Begin />
        </Suspense>
      ) : (
        quiet && any.data && <Welcome />
      )}
      <Figures numbers={shown} sites={all} ended={ended} />
      {all && <Trouble sites={all} />}
      <div className="overview-main">
        <Card title="Ended each minute" about="In the last hour" className="throughput">
          {ended ? <Throughput ended={ended} /> : <Skeleton height={246} />}
        </Card>
        <Card title="Failures by cause" about="In the last hour">
          {ended ? <Causes ended={ended} /> : <Skeleton lines={4} />}
        </Card>
      </div>
      <div className="overview-main">
        <Card title="Sites" flush className="map-card">
          {all?.some(({ latitude }) => latitude !== null) ? (
            <Suspense fallback={<Skeleton height={360} />}>
              <SiteMap sites={all} />
            </Suspense>
          ) : all ? (
            <Empty icon={<MapPin size={20} />} title="No site has a place on the map">
              An operator can set latitude and longitude on each site’s page.
            </Empty>
          ) : (
            <Skeleton height={360} />
          )}
        </Card>
        <Card title="What changed today">
          <Today />
        </Card>
      </div>
      <Loaded from={sites} skeleton={<Skeleton height={180} />}>
        {({ sites }) => (
          <div className="site-cards">
            {sites.nodes.map((site) => (
              <SiteCard key={site.id} site={site} />
            ))}
          </div>
        )}
      </Loaded>
    </Page>
  );
}

function Welcome() {
  return (
    <section className="welcome">
      <div className="grow">
        <h2>No running or waiting jobs</h2>
        <p className="muted">
          Submit a job and watch it here: where it goes, why, and when it ends. From a terminal it is{' '}
          <code>npx switchyard submit -- sh -c 'echo hello'</code>.
        </p>
      </div>
      <Link to="/submit" className="button primary">
        <Send size={14} aria-hidden />
        <span>Submit a job</span>
      </Link>
    </section>
  );
}

interface Numbers {
  queued: number;
  dispatched: number;
  held: number;
  running: number;
  failed: number;
  oldestAtRoot: { nodes: { id: string; submittedAt: string }[] };
  oldestAtSites: { nodes: { id: string; submittedAt: string }[] };
}

// biome-ignore lint/complexity/noExcessiveLinesPerFunction: a few lines for each figure
function Figures({
  numbers,
  sites,
  ended,
}: {
  numbers: Numbers | undefined;
  sites: readonly OverviewSite[] | undefined;
  ended: Ended | null;
}) {
  const cpus = sites?.reduce((sum, site) => sum + site.cpus, 0);
  const used = sites?.reduce((sum, site) => sum + site.cpusUsed, 0);
  const oldest =
    numbers &&
    [...numbers.oldestAtRoot.nodes, ...numbers.oldestAtSites.nodes].sort((a, b) =>
      a.submittedAt.localeCompare(b.submittedAt),
    )[0];
  const total = ended?.minutes.map((each) => each.COMPLETED + each.FAILED + each.CANCELLED);
  const rate = ended ? rateOf(ended) : 0;
  const endedAll = total?.reduce((sum, n) => sum + n, 0) ?? 0;
  return (
    <div className="figures">
      <Figure
        label="Running"
        to={{ states: LIVE_STATES.join(',') }}
        value={numbers && counted(numbers.running)}
        about={
          cpus !== undefined && used !== undefined ? (
            <>
              {count(used)} of {count(cpus)} CPUs in use
            </>
          ) : undefined
        }
        extra={
          cpus !== undefined &&
          used !== undefined && (
            <Bar
              value={used}
              max={cpus}
              label={`${percent(cpus > 0 ? used / cpus : 0)} of all CPUs in use`}
            />
          )
        }
      />
      <Figure
        label="Waiting"
        to={{ states: PENDING_STATES.join(',') }}
        value={
          numbers && (
            <>
              {count(numbers.queued + numbers.dispatched)}
              {Math.max(numbers.queued, numbers.dispatched) >= COUNT_MAX && '+'}
            </>
          )
        }
        about={
          numbers && (
            <>
              {counted(numbers.queued)} at the root, {counted(numbers.dispatched)} at sites
              {numbers.held > 0 && `, ${counted(numbers.held)} held`}
            </>
          )
        }
      />
      <Figure
        label="Oldest wait"
        to={oldest ? `/jobs/${oldest.id}` : undefined}
        value={numbers && (oldest ? <Waited since={oldest.submittedAt} /> : '–')}
        about={numbers && (oldest ? `Job ${numberOf(oldest.id)}` : 'Nothing waits')}
      />
      <Figure
        label="Throughput"
        to={{ order: 'ended', endedAfter: '1h' }}
        value={
          ended && (
            <>
              {figure(rate)} <span className="unit-of">jobs/min</span>
            </>
          )
        }
        about={ended && `${count(endedAll)}${ended.whole ? '' : '+'} ended in the last hour`}
        extra={
          total && <Spark values={total.slice(0, -1)} label="Jobs that ended, by minute, in the last hour" />
        }
      />
      <Figure
        label="Failed in the last hour"
        to={{ states: 'FAILED', order: 'ended', endedAfter: '1h' }}
        value={numbers && counted(numbers.failed)}
        tone={numbers && numbers.failed > 0 ? 'danger' : undefined}
        about={
          endedAll > 0 && numbers
            ? `${percent(numbers.failed / Math.max(endedAll, numbers.failed), 1)} of those that ended`
            : 'None ended'
        }
        extra={
          ended && (
            <Spark
              values={ended.minutes.slice(0, -1).map(({ FAILED }) => FAILED)}
              color="var(--failed)"
              label="Jobs that failed, by minute, in the last hour"
            />
          )
        }
      />
    </div>
  );
}

/** Jobs that ended a minute: over the ten minutes before the present one, or as many of them as are known. */
function rateOf({ minutes, since }: Ended): number {
  const of = (known: Ended['minutes']) =>
    known.reduce((sum, each) => sum + each.COMPLETED + each.FAILED + each.CANCELLED, 0);
  const recent = minutes.slice(-11, -1).filter(({ at }) => at >= since);
  if (recent.length > 0) return of(recent) / recent.length;
  return (of(minutes) * 60_000) / Math.max(1_000, Date.now() - since);
}

function Waited({ since }: { since: string }) {
  const now = useNow();
  return <>{duration(Math.max(0, (now - Date.parse(since)) / 1000))}</>;
}

function Figure({
  label,
  value,
  about,
  extra,
  to,
  tone,
}: {
  label: string;
  value: ReactNode;
  about?: ReactNode;
  extra?: ReactNode;
  to?: string | Record<string, string> | undefined;
  tone?: 'danger' | undefined;
}) {
  const inside = (
    <>
      <span className="figure-label">{label}</span>
      {value === undefined || value === null ? (
        <Skeleton height={34} />
      ) : (
        <span className={`figure-value num ${tone ?? ''}`}>{value}</span>
      )}
      <span className="figure-about">{about ?? '\u00a0'}</span>
      {extra && <span className="figure-extra">{extra}</span>}
    </>
  );
  if (typeof to === 'string')
    return (
      <Link to={to} className="figure">
        {inside}
      </Link>
    );
  return to ? (
    <Link to="/jobs" search={to} className="figure">
      {inside}
    </Link>
  ) : (
    <div className="figure">{inside}</div>
  );
}

function Throughput({ ended }: { ended: Ended }) {
  const parts = [
    { state: 'COMPLETED', label: 'Completed', color: '--completed' },
    { state: 'FAILED', label: 'Failed', color: '--failed' },
    { state: 'CANCELLED', label: 'Cancelled', color: '--cancelled' },
  ] as const;
  return (
    <Chart
      label="Jobs that ended in each minute of the last hour, by how they ended"
      x={ended.minutes.map(({ at }) => at / 1000)}
      stacked
      height={220}
      yText={(value) => (Number.isInteger(value) ? count(value) : '')}
      series={parts.map(({ state, label, color }) => ({
        label,
        color,
        kind: 'bars',
        values: ended.minutes.map((minute) => minute[state]),
      }))}
    />
  );
}

function Causes({ ended }: { ended: Ended }) {
  const causes = [...ended.causes].sort(([, a], [, b]) => b - a);
  if (causes.length === 0) return <Empty title="No failures" />;
  const most = causes[0]![1];
  return (
    <ul className="stack">
      {causes.slice(0, 7).map(([cause, n]) => (
        <li key={cause}>
          <div className="row spread small">
            <span>{causeOf(cause)}</span>
            <span className="num strong">{count(n)}</span>
          </div>
          <Bar value={n} max={most} tone="danger" thin label={`${causeOf(cause)}: ${plural(n, 'job')}`} />
        </li>
      ))}
    </ul>
  );
}

/** What an operator should look at. */
function Trouble({ sites }: { sites: readonly OverviewSite[] }) {
  const lines = sites.flatMap((site) => {
    const silent = site.machines.filter((machine) => machine.silent && machine.state === 'UP').length;
    const unfit = site.machines.filter(({ silent, state, problem }) => problem && !silent && state === 'UP');
    const down = site.machines.filter(({ state }) => state === 'DOWN').length;
    return [
      site.state !== 'UP' && { site, text: `is ${site.state.toLowerCase()}`, tone: 'warn' as const },
      silent > 0 && {
        site,
        text: `${silent === site.machines.length ? 'all' : count(silent)} of ${plural(site.machines.length, 'machine')} ${silent === 1 ? 'is' : 'are'} silent: their agent does not respond`,
        tone: 'danger' as const,
      },
      unfit.length > 0 && {
        site,
        text: `${plural(unfit.length, 'machine')} unfit: ${unfit[0]!.name}: ${unfit[0]!.problem}${unfit.length > 1 ? ', …' : ''}`,
        tone: 'danger' as const,
      },
      down > 0 && { site, text: `${plural(down, 'machine')} down`, tone: 'danger' as const },
    ].filter((line) => line !== false);
  });
  if (lines.length === 0) return null;
  return (
    <section className="trouble" aria-label="Needs attention">
      <AlertTriangle size={16} aria-hidden />
      <ul className="grow">
        {lines.slice(0, 8).map(({ site, text }) => (
          <li key={site.id + text}>
            <Link to="/sites/$id" params={{ id: site.id }}>
              {site.name}
            </Link>{' '}
            {text}
          </li>
        ))}
        {lines.length > 8 && <li>and {lines.length - 8} more</li>}
      </ul>
    </section>
  );
}

const ACTIONS_SHOWN: Record<string, string> = {
  drainSite: 'drained',
  drainMachine: 'drained',
  updateSite: 'changed',
  updateMachine: 'changed',
  registerSite: 'registered',
  registerMachines: 'registered',
  registerMachine: 'registered',
  removeSite: 'removed',
  removeMachine: 'removed',
  registerLicense: 'registered',
  updateLicense: 'changed',
  removeLicense: 'removed',
  setQuota: 'given another quota',
};

/** Policies, drains and changes of the grid since midnight. */
function Today() {
  const viewer = useViewer();
  const policies = useData(ChangesDocument, {}, { everyMs: IDLE_MS });
  const audit = useData(ChangesAuditDocument, {}, { everyMs: IDLE_MS, pause: !viewer.may('ADMIN') });
  const day = Math.floor(useNow(10_000) / 600_000);
  const midnight = useMemo(() => {
    const date = new Date(day * 600_000);
    date.setHours(0, 0, 0, 0);
    return date.toISOString();
  }, [day]);
  const [limit, setLimit] = useState(8);
  const entries = [
    ...(policies.data?.policyHistory.nodes ?? [])
      .filter(({ createdAt }) => createdAt >= midnight)
      .map((policy) => ({
        key: policy.id,
        at: policy.createdAt,
        who: policy.author?.name ?? null,
        what: (
          <>
            <Link to="/policy">Policy {policy.version}</Link> took effect: {policy.reason}
          </>
        ) as ReactNode,
      })),
    ...(audit.data?.audit.nodes ?? [])
      .filter(({ at, action }) => at >= midnight && ACTIONS_SHOWN[action])
      .map((entry, i) => ({
        key: `${entry.at} ${i}`,
        at: entry.at,
        who: entry.user?.name ?? null,
        what: (
          <>
            {words(entry.target.split('_')[0]!)} {entry.targetName ?? numberOf(entry.target)}
            {!entry.target.startsWith('site_') && entry.targetSite && ` of ${entry.targetSite.name}`}{' '}
            {ACTIONS_SHOWN[entry.action]}
            {entry.reason && `: ${entry.reason}`}
          </>
        ) as ReactNode,
      })),
  ].sort((a, b) => b.at.localeCompare(a.at));
  return (
    <Loaded from={policies} skeleton={<Skeleton lines={5} />}>
      {() =>
        entries.length === 0 ? (
          <Empty title="Nothing today">New policies, drains and changed machines are listed here.</Empty>
        ) : (
          <ol className="changes">
            {entries.slice(0, limit).map(({ key, at, who, what }) => (
              <li key={key}>
                <span className="faint tiny">
                  <At at={at} seconds={false} />
                  {who && ` · ${who}`}
                </span>
                <p>{what}</p>
              </li>
            ))}
            {entries.length > limit && (
              <li>
                <button type="button" className="link" onClick={() => setLimit(limit + 20)}>
                  {entries.length - limit} more
                </button>
              </li>
            )}
          </ol>
        )
      }
    </Loaded>
  );
}

function SiteCard({ site }: { site: OverviewSite }) {
  const silent = site.machines.filter((machine) => machine.silent).length;
  const up = site.machines.filter((machine) => machine.state === 'UP' && !machine.silent).length;
  return (
    <Link to="/sites/$id" params={{ id: site.id }} className="card site-card">
      <div className="row spread">
        <h3 className="cut">{site.name}</h3>
        <PlaceBadge state={site.state} silent={silent === site.machines.length && silent > 0} />
      </div>
      <div>
        <div className="row spread small">
          <span className="muted">CPUs</span>
          <span className="num">
            {count(site.cpusUsed)} <span className="faint">of {count(site.cpus)}</span>
          </span>
        </div>
        <Bar
          value={site.cpusUsed}
          max={site.cpus}
          label={`${count(site.cpusUsed)} of ${count(site.cpus)} CPUs in use`}
        />
      </div>
      <dl className="site-numbers">
        <div>
          <dt>Running</dt>
          <dd className="num">{count(site.runningJobs)}</dd>
        </div>
        <div>
          <dt>Queued</dt>
          <dd className="num">{count(site.queuedJobs + site.metaQueuedJobs)}</dd>
        </div>
        <div>
          <dt>Machines up</dt>
          <dd className="num">
            {count(up)}
            <span className="faint">/{count(site.machines.length)}</span>
          </dd>
        </div>
      </dl>
      {site.licenses.length > 0 && (
        <ul className="license-bars">
          {site.licenses.slice(0, 4).map((license) => (
            <li key={license.id}>
              <span className="cut tiny muted">{license.kind}</span>
              <Bar
                thin
                value={license.inUse}
                max={license.copies}
                tone={license.inUse >= license.copies ? 'warn' : 'accent'}
                label={`${license.kind}: ${license.inUse} of ${license.copies} in use`}
              />
            </li>
          ))}
        </ul>
      )}
      <p className="faint tiny row">
        <PlugZap size={12} aria-hidden />
        {site.agentSeenAt ? (
          <>
            Agent heard <Ago at={site.agentSeenAt} />
          </>
        ) : (
          <Badge tone="warn">No agent has been heard from</Badge>
        )}
      </p>
    </Link>
  );
}
