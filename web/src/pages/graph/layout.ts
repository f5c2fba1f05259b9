/** Where the jobs of a graph stand. */
import type { ElkNode } from 'elkjs/lib/elk-api';
import type { JobGraphPageQuery } from './graph.gql';

export type GraphNode = JobGraphPageQuery['jobGraph']['nodes'][number];

export const NODE_W = 150;
export const NODE_H = 30;
const GAP_X = 70;
const GAP_Y = 14;

export interface GraphLayout {
  /** By position of the job: its left upper corner. */
  x: Float64Array;
  y: Float64Array;
  width: number;
  height: number;
}

/** ELK takes half a minute for 10 000 jobs, and a second for these. */
const ELK_MAX = 200;

/** Small graphs by ELK, in a worker; larger ones by level. */
export async function layoutOf(nodes: readonly GraphNode[]): Promise<GraphLayout> {
  return nodes.length > ELK_MAX ? byLevel(nodes) : byElk(nodes);
}

/** Its library and its worker come when they are first needed. */
async function byElk(nodes: readonly GraphNode[]): Promise<GraphLayout> {
  const [{ default: ELK }, { default: ElkWorker }] = await Promise.all([
    import('elkjs/lib/elk-api'),
    import('elkjs/lib/elk-worker.min.js?worker'),
  ]);
  const elk = new ELK({ workerFactory: () => new ElkWorker() });
  const graph: ElkNode = {
    id: 'graph',
    layoutOptions: {
      'elk.algorithm': 'layered',
      'elk.direction': 'RIGHT',
      'elk.edgeRouting': 'POLYLINE',
      'elk.layered.spacing.nodeNodeBetweenLayers': String(GAP_X),
      'elk.spacing.nodeNode': String(GAP_Y),
    },
    children: nodes.map((_, i) => ({ id: String(i), width: NODE_W, height: NODE_H })),
    edges: nodes.flatMap(({ needs }, i) =>
      needs.map((on) => ({ id: `${on} ${i}`, sources: [String(on)], targets: [String(i)] })),
    ),
  };
  try {
    const { children = [], width = 0, height = 0 } = await elk.layout(graph);
    return {
      x: Float64Array.from(children, ({ x = 0 }) => x),
      y: Float64Array.from(children, ({ y = 0 }) => y),
      ...{ width, height },
    };
  } finally {
    elk.terminateWorker();
  }
}

/** A column for each level; in it, each job stands where those that it needs do on average. */
export function byLevel(nodes: readonly GraphNode[]): GraphLayout {
  const levels: number[][] = [];
  for (const [i, { level }] of nodes.entries()) {
    levels[level] ??= [];
    levels[level].push(i);
  }
  const tallest = Math.max(...levels.map((level) => level?.length ?? 0));
  const place = new Float64Array(nodes.length);
  const [x, y] = [new Float64Array(nodes.length), new Float64Array(nodes.length)];
  for (const [column, level] of levels.entries()) {
    if (level === undefined) continue;
    const wanted = new Map(
      level.map((i, row) => {
        const { needs } = nodes[i] as GraphNode;
        const sum = needs.reduce((total, on) => total + (place[on] as number), 0);
        return [i, needs.length === 0 ? row / level.length : sum / needs.length];
      }),
    );
    level.sort((a, b) => (wanted.get(a) as number) - (wanted.get(b) as number) || a - b);
    for (const [row, i] of level.entries()) {
      place[i] = (row + 0.5) / level.length;
      x[i] = column * (NODE_W + GAP_X);
      y[i] = (place[i] as number) * tallest * (NODE_H + GAP_Y);
    }
  }
  return { x, y, width: levels.length * (NODE_W + GAP_X), height: (tallest + 1) * (NODE_H + GAP_Y) };
}
