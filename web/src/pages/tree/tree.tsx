/** The tree of schedulers: who holds how many jobs, and how they flow from the root to the sites. */
import './tree.css';
import { Link } from '@tanstack/react-router';
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'react';
import { useData, useFollow } from '../../api/data';
import { useViewer } from '../../shell/viewer';
import { COUNT_MAX, count, counted, figure, plural } from '../../ui/format';
import { ArrowDown } from '../../ui/icons';
import { Badge, Bar, Card, Loaded, Page, PlaceBadge, Skeleton, Table } from '../../ui/show';
import { Channels } from './channels';
import { Federation } from './federation';
import { FlowDocument, HoldersDocument, type HoldersQuery, TreeDocument, type TreeQuery } from './tree.gql';

const WINDOW_S = 60;
const ROOT = 'root';

/** Counts by second over the last minute. */
class Recent {
  private readonly seconds = new Map<number, number>();
  add(): void {
    const now = Math.floor(Date.now() / 1000);
    this.seconds.set(now, (this.seconds.get(now) ?? 0) + 1);
  }
  total(): number {
    const since = Math.floor(Date.now() / 1000) - WINDOW_S;
    let sum = 0;
    for (const [second, n] of this.seconds) {
      if (second <= since) this.seconds.delete(second);
      else sum += n;
    }
    return sum;
  }
}

interface Flows {
  submitted: number;
  /** By site: sent there, started and ended there in the last minute. */
  sent: Map<string, number>;
  ended: Map<string, number>;
}

function useFlows(): Flows {
  const counters = useRef({
    submitted: new Recent(),
    sent: new Map<string, Recent>(),
    ended: new Map<string, Recent>(),
  });
  const [flows, setFlows] = useState<Flows>({ submitted: 0, sent: new Map(), ended: new Map() });
  const of = (map: Map<string, Recent>, id: string): Recent => {
    const found = map.get(id) ?? new Recent();
    map.set(id, found);
    return found;
  };
  useFollow(
    FlowDocument,
    'jobUpdated',
    {},
    {
      onUpdates(updates) {
        const { submitted, sent, ended } = counters.current;
        for (const { event } of updates) {
          if (event?.kind !== 'JOB_STATE') continue;
          if (event.fromState === null) submitted.add();
          if (!event.site) continue;
          if (event.toState === 'DISPATCHED' || (event.toState === 'QUEUED' && event.fromState === 'QUEUED'))
            of(sent, event.site.id).add();
          if (event.toState === 'COMPLETED' || event.toState === 'FAILED') of(ended, event.site.id).add();
        }
      },
      onResync() {},
    },
  );
  useEffect(() => {
    const totals = (map: Map<string, Recent>): Map<string, number> =>
      new Map([...map].map(([id, recent]) => [id, recent.total()]));
    const timer = setInterval(() => {
      const { submitted, sent, ended } = counters.current;
      setFlows({ submitted: submitted.total(), sent: totals(sent), ended: totals(ended) });
    }, 1_000);
    return () => clearInterval(timer);
  }, []);
  return flows;
}

export function Tree() {
  const seesAll = useViewer().may('OPERATOR');
  const tree = useData(TreeDocument, {}, { everyMs: 3_000 });
  const flows = useFlows();
  const dispatch = kindOf(tree.data?.policy?.document, 'dispatch');
  // Only under this policy do schedulers between the root and the sites hold jobs.
  const holders = useData(HoldersDocument, {}, { everyMs: 5_000, pause: dispatch !== 'grid-tree' });
  return (
    <Page
      title="Scheduler tree"
      about={`A job is held by one scheduler at a time: the root, perhaps others below it, then a site. Numbers on the lines are ${seesAll ? 'jobs' : 'your jobs'} of the last minute.`}
    >
      <Loaded from={tree} skeleton={<Skeleton height={420} />}>
        {(data) => (
          <>
            <Drawn data={data} flows={flows} holders={holders.data} />
            {holders.data && <Channels holders={holders.data} />}
            <Peers data={data} />
            <Federation />
          </>
        )}
      </Loaded>
    </Page>
  );
}

type Site = TreeQuery['sites']['nodes'][number];
const kindOf = (document: unknown, level: 'dispatch' | 'local'): string =>
  (document as Record<string, { kind?: string }> | undefined)?.[level]?.kind ?? '';

type Scheduler = TreeQuery['schedulers'][number];

/** Schedulers level by level below the root, each level in the order of the one above it. */
function levelsOf(schedulers: readonly Scheduler[]): Scheduler[][] {
  const levels: Scheduler[][] = [];
  let above: (string | undefined)[] = [undefined];
  for (;;) {
    const level = above.flatMap((id) => schedulers.filter(({ parent }) => parent?.id === id));
    if (level.length === 0) return levels;
    levels.push(level);
    above = level.map(({ id }) => id);
  }
}

interface Line {
  id: string;
  path: string;
}

// biome-ignore lint/complexity/noExcessiveLinesPerFunction: one drawing: its lines follow its boxes
function Drawn({
  data,
  flows,
  holders,
}: {
  data: TreeQuery;
  flows: Flows;
  holders: HoldersQuery | undefined;
}) {
  const frame = useRef<HTMLDivElement>(null);
  const nodes = useRef(new Map<string, HTMLElement>());
  const [lines, setLines] = useState<readonly Line[]>([]);
  const { schedulers } = data;
  const levels = useMemo(() => levelsOf(schedulers), [schedulers]);
  // Sites stand in the order of the schedulers above them.
  const places = new Map(levels.flat().map(({ id }, i) => [id, i + 1]));
  const placeOf = (site: Site): number => (site.scheduler ? (places.get(site.scheduler.id) ?? 0) : 0);
  const sites = [...data.sites.nodes].sort((a, b) => placeOf(a) - placeOf(b));
  const parents = new Map<string, string>([
    ...schedulers.map(({ id, parent }) => [id, parent?.id ?? ROOT] as const),
    ...sites.map(({ id, scheduler }) => [id, scheduler?.id ?? ROOT] as const),
  ]);
  // What went to a site passed all schedulers above it.
  const sent = new Map<string, number>();
  for (const [site, jobs] of flows.sent)
    for (let id: string | undefined = site; id; id = parents.get(id))
      sent.set(id, (sent.get(id) ?? 0) + jobs);
  const most = Math.max(1, ...sites.map(({ id }) => sent.get(id) ?? 0));
  const held = new Map(holders?.schedulers.map((one) => [one.id, one]));
  const nameOf = (id: string | undefined): string | undefined =>
    schedulers.find((scheduler) => scheduler.id === id)?.name;
  const document = data.policy?.document;

  const shape = [...parents].join();
  // biome-ignore lint/correctness/useExhaustiveDependencies: another tree, other lines
  useLayoutEffect(() => {
    const draw = (): void => {
      const box = frame.current!.getBoundingClientRect();
      setLines(
        [...parents].flatMap(([id, above]) => {
          const [to, from] = [nodes.current.get(id), nodes.current.get(above)].map((node) =>
            node?.getBoundingClientRect(),
          );
          if (!to || !from) return [];
          const [x1, y1] = [from.left + from.width / 2 - box.left, from.bottom - box.top];
          const [x2, y2] = [to.left + to.width / 2 - box.left, to.top - box.top];
          return [{ id, path: `M${x1},${y1} V${y2 - 50} H${x2} V${y2}` }];
        }),
      );
    };
    const watch = new ResizeObserver(draw);
    watch.observe(frame.current!);
    return () => watch.disconnect();
  }, [shape]);
  const mark = (id: string) => (node: HTMLElement | null) => {
    if (node) nodes.current.set(id, node);
    else nodes.current.delete(id);
  };

  return (
    <div ref={frame} className="tree">
      <svg aria-hidden="true">
        {lines.map(({ id, path }) => {
          const jobs = sent.get(id) ?? 0;
          return (
            <g key={id}>
              <path
                d={path}
                className="tree-line"
                style={{ strokeWidth: 1.5 + 4 * Math.min(1, Math.sqrt(jobs / most)) }}
              />
              {jobs > 0 && <path d={path} className="tree-flow" />}
            </g>
          );
        })}
      </svg>
      <div ref={mark(ROOT)} className="tree-node root">
        <div className="row spread">
          <h2>Root</h2>
          <Badge tone="accent">{kindOf(document, 'dispatch')}</Badge>
        </div>
        <dl className="site-numbers">
          <div>
            <dt>Queued here</dt>
            <dd className="num">
              <Link to="/jobs" search={{ states: 'QUEUED' }}>
                {holders
                  ? count(holders.tree.holds)
                  : data.atRoot < COUNT_MAX
                    ? count(data.atRoot - sites.reduce((sum, site) => sum + site.metaQueuedJobs, 0))
                    : counted(data.atRoot)}
              </Link>
            </dd>
          </div>
          <div>
            <dt>Held</dt>
            <dd className="num">
              <Link to="/jobs" search={{ states: 'HELD' }}>
                {counted(data.held)}
              </Link>
            </dd>
          </div>
          <div>
            <dt>Submitted</dt>
            <dd className="num">
              {count(flows.submitted)} <span className="unit-of">/min</span>
            </dd>
          </div>
        </dl>
      </div>
      {levels.map((level) => (
        <div key={level[0]!.id} className="tree-level">
          {level.map(({ id, name }) => (
            <div key={id} ref={mark(id)} className="tree-node">
              <Sent jobs={sent.get(id) ?? 0} />
              <div>
                <h3 className="cut">{name}</h3>
                <Under name={nameOf(parents.get(id))} />
              </div>
              <dl className="tree-numbers">
                <Figure name="Queued here" value={held.get(id)?.holds ?? 0} />
                <Figure name="Waiting below" value={held.get(id)?.waiting ?? 0} />
              </dl>
            </div>
          ))}
        </div>
      ))}
      <div className="tree-leaves">
        {sites.map((site) => (
          <Leaf
            key={site.id}
            site={site}
            policy={(site.localPolicy as { kind?: string } | null)?.kind ?? kindOf(document, 'local')}
            sent={flows.sent.get(site.id) ?? 0}
            ended={flows.ended.get(site.id) ?? 0}
            under={nameOf(site.scheduler?.id)}
            mark={mark(site.id)}
          />
        ))}
      </div>
    </div>
  );
}

/** What the lines say, for those who do not see them, or too many of them. */
function Under({ name }: { name: string | undefined }) {
  return name === undefined ? null : <p className="faint tiny">under {name}</p>;
}

/** Jobs of the last minute, on the line from above. */
function Sent({ jobs }: { jobs: number }) {
  return (
    <span
      className="tree-count num tiny"
      role="note"
      aria-label={`${plural(jobs, 'job')} sent there in the last minute`}
    >
      <ArrowDown size={11} aria-hidden />
      {count(jobs)}
    </span>
  );
}

function Figure({ name, value, unit }: { name: string; value: number; unit?: string }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd className="num">
        {count(value)}
        {unit && <span className="unit-of"> {unit}</span>}
      </dd>
    </div>
  );
}

function Leaf({
  site,
  policy,
  sent,
  ended,
  under,
  mark,
}: {
  site: Site;
  policy: string;
  sent: number;
  ended: number;
  /** The scheduler that it is under; undefined: the root. */
  under: string | undefined;
  mark(node: HTMLElement | null): void;
}) {
  return (
    <div ref={mark} className="tree-node">
      <Sent jobs={sent} />
      <div className="row spread">
        <h3 className="cut">
          <Link to="/sites/$id" params={{ id: site.id }}>
            {site.name}
          </Link>
        </h3>
        {site.state === 'UP' ? <Badge>{policy}</Badge> : <PlaceBadge state={site.state} />}
      </div>
      <Under name={under} />
      <dl className="tree-numbers">
        {site.metaQueuedJobs > 0 && <Figure name="Meta-queue" value={site.metaQueuedJobs} />}
        <Figure name="Queue" value={site.queuedJobs} />
        <Figure name="Running" value={site.runningJobs} />
        <Figure name="Ended" value={ended} unit="/min" />
      </dl>
      <Bar
        thin
        value={site.cpusUsed}
        max={site.cpus}
        label={`${count(site.cpusUsed)} of ${count(site.cpus)} CPUs in use`}
      />
    </div>
  );
}

/** The sites as their schedulers see one another. */
function Peers({ data }: { data: TreeQuery }) {
  const nameOf = new Map(data.sites.nodes.map(({ id, name }) => [id, name]));
  return (
    <Card
      title="Peers"
      about="Sites as seen by one another: arrivals, services, and sites where arrivals exceed services"
      flush
    >
      <Table
        label="Peers"
        rows={data.congestion.nodes}
        id={({ site }) => site.id}
        columns={[
          {
            key: 'site',
            header: 'Site',
            cell: ({ site }) => (
              <Link to="/sites/$id" params={{ id: site.id }}>
                {nameOf.get(site.id) ?? site.id}
              </Link>
            ),
          },
          {
            key: 'alive',
            header: 'Heard',
            cell: ({ alive }) => (
              <Badge tone={alive ? 'good' : 'danger'}>{alive ? 'Alive' : 'Not heard'}</Badge>
            ),
          },
          { key: 'queued', header: 'Queue', right: true, cell: ({ queued }) => count(queued) },
          { key: 'meta', header: 'Meta-queue', right: true, cell: ({ metaQueued }) => count(metaQueued) },
          {
            key: 'in',
            header: 'Arrivals',
            right: true,
            cell: ({ arrivalRate }) => (
              <>
                {figure(arrivalRate * 60)} <span className="unit-of">/min</span>
              </>
            ),
          },
          {
            key: 'out',
            header: 'Served',
            right: true,
            cell: ({ serviceRate }) => (
              <>
                {figure(serviceRate * 60)} <span className="unit-of">/min</span>
              </>
            ),
          },
          {
            key: 'congested',
            header: 'Congestion',
            cell: ({ congested }) =>
              congested ? <Badge tone="warn">Congested</Badge> : <span className="faint">none</span>,
          },
          {
            key: 'power',
            header: 'Power',
            right: true,
            minor: true,
            cell: ({ powerTotal }) => count(powerTotal),
          },
        ]}
      />
    </Card>
  );
}
