/** Where the jobs of a graph stand. */
import type { ELK, ElkNode } from 'elkjs/lib/elk-api';
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
  /** Where the line from one job (first) to another that needs it (second) turns: x, y, x, y; absent where it is straight. */
  turns: ReadonlyMap<string, readonly number[]>;
  width: number;
  height: number;
}

export const lineName = (from: number, to: number): string => `${from} ${to}`;

/** Jobs and needs together. Their crossings ELK makes few in a second; of ten times as many it takes half a minute. */
const LAYERED_MAX = 1_000;

/** By ELK, in a worker: nothing waits for it. Its library and the worker come when they are first needed. */
export async function layoutOf(nodes: readonly GraphNode[]): Promise<GraphLayout> {
  const [{ default: ELK }, { default: worker }] = await Promise.all([
    import('elkjs/lib/elk-api'),
    // As it is: to bundle what is bundled takes as long as the rest of the portal.
    import('elkjs/lib/elk-worker.min.js?url'),
  ]);
  const elk = new ELK({ workerFactory: () => new Worker(worker) });
  try {
    return await layoutBy(elk, nodes);
  } finally {
    elk.terminateWorker();
  }
}

/** Wherever ELK runs. */
export async function layoutBy(elk: Pick<ELK, 'layout'>, nodes: readonly GraphNode[]): Promise<GraphLayout> {
  const lines = nodes.reduce((sum, { needs }) => sum + needs.length, 0);
  const isSmall = nodes.length + lines <= LAYERED_MAX;
  return placed(await elk.layout(isSmall ? inLayers(nodes) : inBlocks(nodes)), nodes.length);
}

const box = (i: number): ElkNode => ({ id: String(i), width: NODE_W, height: NODE_H });

function inLayers(nodes: readonly GraphNode[]): ElkNode {
  return {
    id: 'graph',
    layoutOptions: {
      'elk.algorithm': 'layered',
      'elk.direction': 'RIGHT',
      'elk.edgeRouting': 'POLYLINE',
      'elk.layered.spacing.nodeNodeBetweenLayers': String(GAP_X),
      'elk.spacing.nodeNode': String(GAP_Y),
    },
    children: [...nodes.keys()].map(box),
    edges: nodes.flatMap(({ needs }, i) =>
      needs.map((on) => ({ id: lineName(on, i), sources: [String(on)], targets: [String(i)] })),
    ),
  };
}

/**
 * A block for each level, from left to right, in which the jobs stand in rows: ten thousand that wait for the same one are a square, and no
 * column without an end.
 */
function inBlocks(nodes: readonly GraphNode[]): ElkNode {
  const levels = byLevel(nodes);
  return {
    id: 'graph',
    layoutOptions: {
      'elk.algorithm': 'box',
      // One row.
      'elk.aspectRatio': '1e9',
      'elk.spacing.nodeNode': String(GAP_X),
    },
    children: levels.map((level, at) => ({
      id: `level ${at}`,
      layoutOptions: {
        'elk.algorithm': 'box',
        'elk.aspectRatio': '1',
        'elk.padding': '[top=0,left=0,bottom=0,right=0]',
        'elk.spacing.nodeNode': String(GAP_Y),
        // Where it has a choice, ELK begins with the largest.
        'elk.priority': String(levels.length - at),
      },
      children: level.map(box),
    })),
  };
}

/** The jobs of each level, each where those that it needs are on average. */
function byLevel(nodes: readonly GraphNode[]): number[][] {
  const levels: number[][] = [];
  for (const [i, { level }] of nodes.entries()) {
    levels[level] ??= [];
    levels[level].push(i);
  }
  const place = new Float64Array(nodes.length);
  // A level whose jobs all stand elsewhere has none here.
  const filled = levels.filter((level) => level !== undefined);
  for (const level of filled) {
    const wanted = new Map(
      level.map((i, row) => {
        const { needs } = nodes[i] as GraphNode;
        const sum = needs.reduce((total, on) => total + (place[on] as number), 0);
        return [i, needs.length === 0 ? row / level.length : sum / needs.length];
      }),
    );
    level.sort((a, b) => (wanted.get(a) as number) - (wanted.get(b) as number) || a - b);
    for (const [row, i] of level.entries()) place[i] = (row + 0.5) / level.length;
  }
  return filled;
}

function placed({ children = [], edges = [], width = 0, height = 0 }: ElkNode, count: number): GraphLayout {
  const [x, y] = [new Float64Array(count), new Float64Array(count)];
  const place = (node: ElkNode, left: number, top: number): void => {
    const [nx, ny] = [left + (node.x ?? 0), top + (node.y ?? 0)];
    if (!node.children) [x[Number(node.id)], y[Number(node.id)]] = [nx, ny];
    // Blocks stand on a line through their middles.
    else for (const one of node.children) place(one, nx, (height - (node.height ?? 0)) / 2);
  };
  for (const node of children) place(node, 0, 0);
  const turns = new Map(
    edges.flatMap(({ id, sections = [] }) => {
      const points = sections.flatMap(({ startPoint, bendPoints = [], endPoint }) => [
        startPoint,
        ...bendPoints,
        endPoint,
      ]);
      return points.length <= 2 ? [] : [[id, points.flatMap((point) => [point.x, point.y])] as const];
    }),
  );
  return { x, y, turns, width, height };
}
