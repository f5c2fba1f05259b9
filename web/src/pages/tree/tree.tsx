/** The tree of schedulers: who holds how many jobs, and how they flow from the root to the sites. */
import './tree.css';
import { Link } from '@tanstack/react-router';
import { ArrowDown } from 'lucide-react';
import { useEffect, useLayoutEffect, useRef, useState } from 'react';
import { useData, useFollow } from '../../api/data';
import { count, figure, plural } from '../../ui/format';
import { Badge, Bar, Card, Loaded, Page, PlaceBadge, Skeleton, Table } from '../../ui/show';
import { Federation } from './federation';
import { FlowDocument, TreeDocument, type TreeQuery } from './tree.gql';

const WINDOW_S = 60;

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
  const tree = useData(TreeDocument, {}, { everyMs: 3_000 });
  const flows = useFlows();
  return (
    <Page
      title="Scheduler tree"
      about="A job is held by one scheduler at a time: the root, then a site. Numbers on the lines are jobs of the last minute."
    >
      <Loaded from={tree} skeleton={<Skeleton height={420} />}>
        {(data) => (
          <>
            <Drawn data={data} flows={flows} />
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

function Drawn({ data, flows }: { data: TreeQuery; flows: Flows }) {
  const frame = useRef<HTMLDivElement>(null);
  const root = useRef<HTMLDivElement>(null);
  const leaves = useRef(new Map<string, HTMLElement>());
  const [lines, setLines] = useState<{ id: string; path: string; x: number; y: number }[]>([]);
  const sites = data.sites.nodes;
  const document = data.policy?.document;
  const most = Math.max(1, ...flows.sent.values());

  const ids = sites.map(({ id }) => id).join();
  // biome-ignore lint/correctness/useExhaustiveDependencies: other sites, other lines
  useLayoutEffect(() => {
    const draw = (): void => {
      const box = frame.current!.getBoundingClientRect();
      const from = root.current!.getBoundingClientRect();
      const x1 = from.left + from.width / 2 - box.left;
      const y1 = from.bottom - box.top;
      setLines(
        [...leaves.current].map(([id, node]) => {
          const to = node.getBoundingClientRect();
          const x2 = to.left + to.width / 2 - box.left;
          const y2 = to.top - box.top;
          const middle = y1 + 34;
          return { id, path: `M${x1},${y1} V${middle} H${x2} V${y2}`, x: x2, y: y2 - 13 };
        }),
      );
    };
    const watch = new ResizeObserver(draw);
    watch.observe(frame.current!);
    return () => watch.disconnect();
  }, [ids]);

  return (
    <div ref={frame} className="tree">
      <svg aria-hidden="true">
        {lines.map(({ id, path }) => {
          const sent = flows.sent.get(id) ?? 0;
          return (
            <g key={id}>
              <path
                d={path}
                className="tree-line"
                style={{ strokeWidth: 1.5 + 4 * Math.sqrt(sent / most) }}
              />
              {sent > 0 && <path d={path} className="tree-flow" />}
            </g>
          );
        })}
      </svg>
      <div ref={root} className="tree-node root">
        <div className="row spread">
          <h2>Root</h2>
          <Badge tone="accent">{kindOf(document, 'dispatch')}</Badge>
        </div>
        <dl className="site-numbers">
          <div>
            <dt>Held here</dt>
            <dd className="num">
              <Link to="/jobs" search={{ states: 'QUEUED' }}>
                {count(data.atRoot - sites.reduce((sum, site) => sum + site.metaQueuedJobs, 0))}
              </Link>
            </dd>
          </div>
          <div>
            <dt>Set aside</dt>
            <dd className="num">
              <Link to="/jobs" search={{ states: 'HELD' }}>
                {count(data.held)}
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
      <div className="tree-leaves">
        {sites.map((site) => (
          <Leaf
            key={site.id}
            site={site}
            policy={(site.localPolicy as { kind?: string } | null)?.kind ?? kindOf(document, 'local')}
            sent={flows.sent.get(site.id) ?? 0}
            ended={flows.ended.get(site.id) ?? 0}
            mark={(node) => {
              if (node) leaves.current.set(site.id, node);
              else leaves.current.delete(site.id);
            }}
          />
        ))}
      </div>
    </div>
  );
}

function Leaf({
  site,
  policy,
  sent,
  ended,
  mark,
}: {
  site: Site;
  policy: string;
  sent: number;
  ended: number;
  mark(node: HTMLElement | null): void;
}) {
  return (
    <div ref={mark} className="tree-node">
      <span
        className="tree-count num tiny"
        role="note"
        aria-label={`${plural(sent, 'job')} sent there in the last minute`}
      >
        <ArrowDown size={11} aria-hidden />
        {count(sent)}
      </span>
      <div className="row spread">
        <h3 className="cut">
          <Link to="/sites/$id" params={{ id: site.id }}>
            {site.name}
          </Link>
        </h3>
        {site.state === 'UP' ? <Badge>{policy}</Badge> : <PlaceBadge state={site.state} />}
      </div>
      <dl className="tree-numbers">
        {site.metaQueuedJobs > 0 && (
          <div>
            <dt>Meta-queue</dt>
            <dd className="num">{count(site.metaQueuedJobs)}</dd>
          </div>
        )}
        <div>
          <dt>Queue</dt>
          <dd className="num">{count(site.queuedJobs)}</dd>
        </div>
        <div>
          <dt>Running</dt>
          <dd className="num">{count(site.runningJobs)}</dd>
        </div>
        <div>
          <dt>Ended</dt>
          <dd className="num">
            {count(ended)} <span className="unit-of">/min</span>
          </dd>
        </div>
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
      about="How the sites see one another: what comes, what is served, and who has more coming than going"
      flush
    >
      <Table
        label="Peers"
        rows={data.peers}
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
