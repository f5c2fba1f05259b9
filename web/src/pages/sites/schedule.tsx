/** The schedule of a site: who had, has and will have which machine. */
import { useNavigate } from '@tanstack/react-router';
import { useEffect, useMemo, useRef, useState } from 'react';
import { cpusOnMachines } from '../../../../src/words/index';
import { ask } from '../../api/client';
import { useData, useFollow, useThrottled } from '../../api/data';
import { LIVE_STATES } from '../../api/states.gql';
import { PulseDocument } from '../../parts/pulse.gql';
import { useViewer } from '../../shell/viewer';
import { byName, numberOf, plural } from '../../ui/format';
import { Gantt } from '../../ui/gantt';
import type { GanttBar, GanttLane } from '../../ui/gantt-layout';
import { Problem, Skeleton } from '../../ui/show';
import {
  type JobFilter,
  type SitePartsFragment,
  SitePromisesDocument,
  SiteRunsDocument,
  type SiteRunsQuery,
  type StartPartsFragment,
} from './sites.gql';

/** As many as one query may cost, with all their runs and machines. */
const PAGE = 180;
const PAGES_MAX = 8;
const BACK_MS = 6 * 3_600_000;
const REFRESH_MS = 3_000;
const PROMISES_MS = 5_000;
/** As long as the bar of a job that is not shown. */
const UNKNOWN_MS = 10 * 60_000;

/** Runs of other causes failed. */
const ENDED: Record<string, GanttBar['kind']> = { EXITED_ZERO: 'past', PREEMPTED: 'preempted' };

type JobOfSite = SiteRunsQuery['jobs']['nodes'][number];

async function jobsOf(
  site: string,
  from: Date,
  signal: AbortSignal,
): Promise<{ jobs: JobOfSite[]; all: boolean }> {
  const found = new Map<string, JobOfSite>();
  let all = true;
  const filters: JobFilter[] = [
    { siteId: site, states: [...LIVE_STATES] },
    { siteId: site, endedAfter: from.toISOString() },
  ];
  for (const filter of filters) {
    let after: string | null = null;
    for (let page = 0; ; page++) {
      if (page === PAGES_MAX) {
        all = false;
        break;
      }
      const { jobs }: SiteRunsQuery = await ask(SiteRunsDocument, { filter, first: PAGE, after }, signal);
      for (const job of jobs.nodes) found.set(job.id, job);
      after = jobs.pageInfo.endCursor;
      if (!jobs.pageInfo.hasNextPage) break;
    }
  }
  return { jobs: [...found.values()], all };
}

export function Schedule({ site }: { site: SitePartsFragment }) {
  const seesAll = useViewer().may('OPERATOR');
  const navigate = useNavigate();
  const [jobs, setJobs] = useState<JobOfSite[] | null>(null);
  const [all, setAll] = useState(true);
  const [error, setError] = useState<string | null>(null);
  const stop = useRef<AbortController>(null);
  const { id } = site;

  const starts = useData(SitePromisesDocument, { id }, { everyMs: PROMISES_MS });

  const load = useThrottled(() => {
    stop.current ??= new AbortController();
    const { signal } = stop.current;
    jobsOf(id, new Date(Date.now() - BACK_MS), signal).then(
      (found) => {
        setJobs(found.jobs);
        setAll(found.all);
        setError(null);
      },
      (reason: unknown) => !signal.aborted && setError((reason as Error).message),
    );
  }, REFRESH_MS);
  // biome-ignore lint/correctness/useExhaustiveDependencies: once for each site
  useEffect(() => {
    load();
    return () => {
      stop.current?.abort();
      stop.current = null;
    };
  }, [id]);
  useFollow(
    PulseDocument,
    'jobUpdated',
    { filter: { siteId: id } },
    {
      onUpdates: load,
      onResync: load,
    },
  );

  const lanes = useMemo<GanttLane[]>(
    () =>
      byName(site.machines).map((machine) => ({
        id: machine.id,
        label: machine.name,
        capacity: machine.cpus,
      })),
    [site.machines],
  );
  const promises = useMemo(() => starts.data?.node?.promises ?? [], [starts.data]);
  const bars = useMemo(() => barsOf(jobs ?? [], site, promises), [jobs, site, promises]);
  const whole = useMemo(() => {
    const now = Date.now();
    const from = Math.min(now - 60 * 60_000, ...bars.map((bar) => bar.from));
    const to = Math.max(now + 15 * 60_000, ...bars.map((bar) => bar.to));
    const begin = Math.max(from, now - BACK_MS);
    // What is to come takes no more than a third of the strip, however long an estimate is.
    return { from: begin, to: Math.min(to, now + (now - begin) / 2) };
  }, [bars]);

  if (error && !jobs) return <Problem error={error} retry={load} />;
  if (!jobs) return <Skeleton height={500} />;
  return (
    <>
      <Gantt
        lanes={lanes}
        bars={bars}
        whole={whole}
        onOpen={({ key }) => {
          const [job] = key.split(' ');
          if (job) void navigate({ to: '/jobs/$id', params: { id: job } });
        }}
      />
      {!seesAll && <p className="table-empty">Jobs of other users are not drawn.</p>}
      {!all && (
        <p className="table-empty">
          More jobs ran here than are drawn: the {plural(jobs.length, 'job')} submitted last are.
        </p>
      )}
    </>
  );
}

function barsOf(
  jobs: readonly JobOfSite[],
  site: SitePartsFragment,
  promises: readonly StartPartsFragment[],
): GanttBar[] {
  const bars: GanttBar[] = [];
  const now = Date.now();
  for (const job of jobs) {
    for (const run of job.runs) {
      if (run.site.id !== site.id) continue;
      const from = Date.parse(run.startedAt ?? run.assignedAt);
      const live = run.endedAt === null;
      const to = live ? Math.max(now, from + run.plannedS * 1000) : Date.parse(run.endedAt!);
      const cpus = cpusOnMachines(job, run.allocations);
      for (const [i, { machine }] of run.allocations.entries()) {
        bars.push({
          key: `${job.id} ${run.epoch} ${i}`,
          lane: machine.id,
          label: `${numberOf(job.id)} ${job.name ?? job.application}`,
          about: `${job.user.name} · ${plural(cpus[i] ?? 0, 'CPU')}`,
          from,
          to,
          amount: cpus[i] ?? 0,
          kind: live ? 'running' : (ENDED[run.cause ?? ''] ?? 'failed'),
        });
      }
    }
  }
  const { reservation } = site;
  const benchmarks = new Map(site.machines.map(({ id, benchmark }) => [id, benchmark]));
  for (const { start, kind } of [
    ...(reservation ? [{ start: reservation, kind: 'reserved' as const }] : []),
    ...promises.map((start) => ({ start, kind: 'promised' as const })),
  ]) {
    const { job, at, machines } = start;
    // What is another user's is told by its machines and its time alone.
    const slowest = Math.min(...machines.map(({ machine }) => benchmarks.get(machine.id) ?? 1));
    const from = Math.max(now, Date.parse(at));
    const lastsMs = job ? ((job.estimateS * job.benchmark) / slowest) * 1000 : UNKNOWN_MS;
    const cpus = job ? cpusOnMachines(job, machines) : [];
    for (const [i, { machine }] of machines.entries()) {
      bars.push({
        key: `${job?.id ?? ''} ${kind} ${at} ${i} ${machine.id}`,
        lane: machine.id,
        label: job ? `${numberOf(job.id)} ${kind}` : kind,
        about: job ? `${job.name ?? job.application} · ${plural(cpus[i] ?? 0, 'CPU')}` : 'Another user’s job',
        from,
        to: from + lastsMs,
        amount: 0,
        kind,
      });
    }
  }
  return bars;
}
