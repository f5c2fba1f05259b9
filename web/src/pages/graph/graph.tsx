/** The jobs of a group and what they need of one another, live: drawn, and as a list. */
import './graph.css';
import { Link, useNavigate, useSearch } from '@tanstack/react-router';
import { type KeyboardEvent, type ReactNode, useEffect, useMemo, useRef, useState } from 'react';
import { ask } from '../../api/client';
import { useData, useFollow, useThrottled } from '../../api/data';
import type { JobState } from '../../api/states.gql';
import { useStore } from '../../api/store';
import type { Search } from '../../ui/address';
import { useDrag, useWheel, useWidth } from '../../ui/canvas';
import { colorChanges } from '../../ui/colors';
import { Button } from '../../ui/controls';
import { count, numberOf, plural, TERMINAL } from '../../ui/format';
import { Maximize2, Minus, Plus, RotateCcw } from '../../ui/icons';
import { At, Badge, Card, Empty, Loaded, Page, Skeleton, StateBadge, Table } from '../../ui/show';
import { told } from '../../ui/toast';
import { beside, drawGraph, labelOf, nodeAt, type View, type Way } from './drawn';
import {
  JobGraphNewsDocument,
  JobGraphPageDocument,
  type JobGraphPageQuery,
  RerunGroupDocument,
  type RerunJobsInput,
} from './graph.gql';
import { type GraphLayout, type GraphNode, layoutOf, NODE_H, NODE_W } from './layout';

type Graph = JobGraphPageQuery['jobGraph'];

const HEIGHT_PX = 460;
/** Room to drag it about when it is enlarged. */
const LEAST_HEIGHT_PX = 220;
const MARGIN_PX = 20;
/** Some of them may be run again. */
const BAD: ReadonlySet<JobState> = new Set(['FAILED', 'CANCELLED']);
/** Ends are expected anew so long after something has happened. */
const ASK_MS = 3_000;
/** Rows of the list that are shown at first, and more each time. */
const ROWS = 100;

export function GraphPage() {
  const { group = '', bulk } = useSearch({ strict: false }) as Search;
  const filter = bulk ? { jobGroupId: bulk } : { groupName: group };
  const asked = useData(JobGraphPageDocument, { filter }, { everyMs: 10 * ASK_MS });
  const [states, setStates] = useState<ReadonlyMap<string, JobState>>(new Map());
  // To ask again gives up the answer on its way, which takes a busy service long for thousands of jobs.
  const again = useThrottled(asked.refresh, ASK_MS + 2 * (asked.data?.jobGraph.nodes.length ?? 0));
  useFollow(
    JobGraphNewsDocument,
    'jobUpdated',
    { filter },
    {
      onUpdates(updates) {
        const news = updates.flatMap(({ job }) => (job ? [[job.id, job.state] as const] : []));
        setStates((before) => new Map([...before, ...news]));
        again();
      },
      onResync: asked.refresh,
    },
  );
  const title = bulk ? `Graph of group ${numberOf(bulk)}` : `Graph of ${group}`;
  return (
    <Loaded
      from={asked}
      skeleton={
        <Page title={title}>
          <Skeleton height={HEIGHT_PX} />
        </Page>
      }
    >
      {({ jobGraph }) => (
        <Shown
          title={title}
          graph={jobGraph}
          states={states}
          group={bulk ? { jobGroupId: bulk } : { groupName: group }}
          onRerun={asked.refresh}
        />
      )}
    </Loaded>
  );
}

function Shown({
  title,
  graph,
  states,
  group,
  onRerun,
}: {
  title: string;
  graph: Graph;
  states: ReadonlyMap<string, JobState>;
  group: Omit<RerunJobsInput, 'only'>;
  onRerun(): void;
}) {
  const { isWhole, criticalPath, expectedEnd } = graph;
  const nodes = useMemo(
    () => graph.nodes.map((node) => ({ ...node, state: states.get(node.id) ?? node.state })),
    [graph.nodes, states],
  );
  const way: Way = useMemo(
    () => new Map(criticalPath.map((i, at) => [i, criticalPath[at + 1] ?? null])),
    [criticalPath],
  );
  const ended = nodes.filter(({ state }) => TERMINAL.has(state)).length;
  if (nodes.length === 0)
    return (
      <Page title={title}>
        <Empty title="There are no such jobs, or you may not see them." />
      </Page>
    );
  return (
    <Page
      title={title}
      actions={nodes.some(({ state }) => BAD.has(state)) && <RerunButton group={group} onDone={onRerun} />}
      about={
        <>
          {count(ended)} of {plural(nodes.length, 'job')} ended
          {expectedEnd && (
            <>
              , the last one no earlier than <At at={expectedEnd} />
            </>
          )}
          {!isWhole && '; not all are shown'}
        </>
      }
    >
      <Card flush title="Graph" about="Marked: the jobs that determine when the last one ends">
        <Drawing nodes={nodes} way={way} />
      </Card>
      <List nodes={nodes} way={way} />
    </Page>
  );
}

function RerunButton({ group, onDone }: { group: Omit<RerunJobsInput, 'only'>; onDone(): void }) {
  const [busy, setBusy] = useState(false);
  async function again(): Promise<void> {
    setBusy(true);
    const input = { ...group, only: 'FAILED_AND_DOWNSTREAM' as const };
    await told(ask(RerunGroupDocument, { input }), ({ rerunJobs: { jobIds } }) =>
      jobIds.length === 0
        ? 'All failed jobs have already been rerun.'
        : `${plural(jobIds.length, 'job')} submitted again.`,
    );
    setBusy(false);
    onDone();
  }
  return (
    <Button icon={<RotateCcw size={14} />} isDisabled={busy} onPress={() => void again()}>
      Run failed jobs again
    </Button>
  );
}

/** Anew only when jobs or what they need are others, not with their states. */
function useLayout(nodes: readonly GraphNode[]): GraphLayout | null {
  const [layout, setLayout] = useState<GraphLayout | null>(null);
  const shape = useMemo(() => nodes.map(({ id, needs }) => `${id} ${needs.join()}`).join(';'), [nodes]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the shape stands for the jobs
  useEffect(() => {
    let isCurrent = true;
    void layoutOf(nodes).then((done) => {
      if (isCurrent) setLayout(done);
    });
    return () => {
      isCurrent = false;
    };
  }, [shape]);
  return layout?.x.length === nodes.length ? layout : null;
}

interface Marked {
  nodes: readonly GraphNode[];
  way: Way;
}

function Drawing({ nodes, way }: Marked) {
  const frame = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const width = useWidth(frame);
  const layout = useLayout(nodes);
  const navigate = useNavigate();
  const seen = useView(layout, width);
  const { view, zoom, show } = seen;
  const [chosen, setChosen] = useState<number | null>(null);
  useStore(colorChanges);
  useEffect(() => {
    if (layout) drawGraph(canvas.current, nodes, layout, view, { way, chosen });
  });
  const open = (i: number | null): void => {
    const node = i === null ? undefined : nodes[i];
    if (node) void navigate({ to: '/jobs/$id', params: { id: node.id } });
  };
  useWheel(canvas, (event) => {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    zoom(event.deltaY > 0 ? 0.8 : 1.25, event.offsetX, event.offsetY);
  });
  const pointer = useDrag({
    hold: () => view,
    drag: (dx, dy, { left, top, scale }) => show(left - dx / scale, top - dy / scale),
    press: ({ offsetX, offsetY }) => open(layout && nodeAt(layout, view, offsetX, offsetY)),
    pass: ({ offsetX, offsetY }) => setChosen(layout && nodeAt(layout, view, offsetX, offsetY)),
  });
  function onKeyDown(event: KeyboardEvent): void {
    const way = event.key as Parameters<typeof beside>[3];
    const steps: Record<string, [number, number]> = {
      ...{ ArrowLeft: [-60, 0], ArrowRight: [60, 0], ArrowUp: [0, -60], ArrowDown: [0, 60] },
    };
    const step = steps[event.key];
    if (step && event.shiftKey && layout) {
      const next = beside(nodes, layout, chosen, way);
      setChosen(next);
      if (next !== null)
        show(
          (layout.x[next] as number) + (NODE_W - width / view.scale) / 2,
          (layout.y[next] as number) + (NODE_H - view.height / view.scale) / 2,
        );
    } else if (step) show(view.left + step[0] / view.scale, view.top + step[1] / view.scale);
    else if (event.key === '+') zoom(1.25);
    else if (event.key === '-') zoom(0.8);
    else if (event.key === 'Home') seen.showAll();
    else if (event.key === 'Enter') open(chosen);
    else return;
    event.preventDefault();
  }
  const named = chosen === null ? undefined : nodes[chosen];
  return (
    <>
      <Tools seen={seen}>
        {named ? `${labelOf(named)}: ${named.state.toLowerCase()}` : layout ? '' : 'Computing the layout'}
      </Tools>
      <div ref={frame} className="graph-frame" style={{ height: view.height }}>
        <canvas
          ref={canvas}
          tabIndex={0}
          role="img"
          aria-label={`Graph of ${plural(nodes.length, 'job')}. Arrow keys move, with Shift from job to job, Enter opens one, plus and minus zoom. The list below has the same information.`}
          data-laid-out={layout !== null}
          {...pointer}
          onKeyDown={onKeyDown}
        />
      </div>
    </>
  );
}

interface Seen {
  view: View;
  /** Whether it is not the whole graph. */
  isMoved: boolean;
  zoom(factor: number, px?: number, py?: number): void;
  show(left: number, top: number): void;
  showAll(): void;
}

function useView(layout: GraphLayout | null, width: number): Seen {
  const [moved, setMoved] = useState<Pick<View, 'left' | 'top' | 'scale'> | null>(null);
  const all = whole(layout, width);
  const view: View = { ...all, ...moved };
  return {
    view,
    isMoved: moved !== null,
    zoom(factor, px = width / 2, py = view.height / 2) {
      const scale = Math.min(2, Math.max(0.005, view.scale * factor));
      const [x, y] = [px / view.scale + view.left, py / view.scale + view.top];
      setMoved({ left: x - px / scale, top: y - py / scale, scale });
    },
    show: (left, top) => setMoved({ left, top, scale: view.scale }),
    showAll: () => setMoved(null),
  };
}

function Tools({ seen, children }: { seen: Seen; children: ReactNode }) {
  return (
    <div className="row wrap graph-tools">
      <span className="grow tiny muted" role="status">
        {children}
      </span>
      <Button
        className="small"
        variant="quiet"
        icon={<Minus size={14} />}
        hint="Smaller"
        onPress={() => seen.zoom(0.7)}
      />
      <Button
        className="small"
        variant="quiet"
        icon={<Plus size={14} />}
        hint="Larger"
        onPress={() => seen.zoom(1.4)}
      />
      <Button
        className="small"
        icon={<Maximize2 size={13} />}
        isDisabled={!seen.isMoved}
        onPress={seen.showAll}
      >
        All
      </Button>
    </div>
  );
}

/** All of it, no larger than it is, on no more height than it takes. */
function whole(layout: GraphLayout | null, width: number): View {
  if (!layout || width === 0) return { left: 0, top: 0, scale: 1, width, height: HEIGHT_PX };
  const fits = (have: number, need: number): number => (have - 2 * MARGIN_PX) / Math.max(1, need);
  const scale = Math.min(1, fits(width, layout.width), fits(HEIGHT_PX, layout.height));
  const height = Math.min(HEIGHT_PX, Math.max(LEAST_HEIGHT_PX, layout.height * scale + 2 * MARGIN_PX));
  return {
    left: (layout.width - width / scale) / 2,
    top: (layout.height - height / scale) / 2,
    scale,
    width,
    height,
  };
}

function List({ nodes, way }: Marked) {
  const [shown, setShown] = useState(ROWS);
  const order = useMemo(
    () => [...nodes.keys()].sort((a, b) => (nodes[a]?.level ?? 0) - (nodes[b]?.level ?? 0) || a - b),
    [nodes],
  );
  const waitsFor = ({ state, needs }: GraphNode): string => {
    if (state !== 'BLOCKED') return '';
    const open = needs.flatMap((on) => nodes[on] ?? []).filter((other) => !TERMINAL.has(other.state));
    const names = open.slice(0, 3).map(labelOf).join(', ');
    return open.length > 3 ? `${names} and ${count(open.length - 3)} more` : names;
  };
  return (
    <Card flush title="Jobs by level">
      <Table
        label="Jobs by level"
        rows={order.slice(0, shown).flatMap((i) => (nodes[i] ? [{ i, node: nodes[i] }] : []))}
        id={({ node }) => node.id}
        columns={[
          { key: 'level', header: 'Level', right: true, cell: ({ node }) => node.level + 1 },
          {
            key: 'job',
            header: 'Job',
            cell: ({ node }) => (
              <Link to="/jobs/$id" params={{ id: node.id }}>
                {labelOf(node)}
              </Link>
            ),
          },
          { key: 'state', header: 'State', cell: ({ node }) => <StateBadge state={node.state} /> },
          {
            key: 'path',
            header: 'Path',
            cell: ({ i }) => way.has(i) && <Badge tone="accent">critical</Badge>,
          },
          { key: 'waits', header: 'Waits for', cell: ({ node }) => waitsFor(node) },
          {
            key: 'end',
            header: 'End',
            right: true,
            minor: true,
            cell: ({ node }) => <At at={node.expectedEnd} />,
          },
        ]}
      />
      {shown < nodes.length && (
        <div className="table-empty">
          <Button onPress={() => setShown(shown + ROWS)}>
            Show {count(Math.min(ROWS, nodes.length - shown))} more
          </Button>
        </div>
      )}
    </Card>
  );
}
