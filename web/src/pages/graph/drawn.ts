/** A graph of jobs on its canvas: only what is in sight. */
import { prepare } from '../../ui/canvas';
import { colorOf } from '../../ui/colors';
import { type GraphLayout, type GraphNode, lineName, NODE_H, NODE_W } from './layout';

export const labelOf = ({ id, name, arrayIndex }: Pick<GraphNode, 'id' | 'name' | 'arrayIndex'>): string =>
  `${name ?? id}${arrayIndex === null ? '' : `[${arrayIndex}]`}`;

/** The part that is shown: a point of the graph is at `(x - left) * scale`. */
export interface View {
  left: number;
  top: number;
  scale: number;
  width: number;
  height: number;
}

/** The jobs that decide when the last one ends, each with the next; the last one with null. */
export type Way = ReadonlyMap<number, number | null>;

/** In smaller boxes nothing can be read. */
const READABLE = 0.45;

export function drawGraph(
  canvas: HTMLCanvasElement | null,
  nodes: readonly GraphNode[],
  { x, y, turns }: GraphLayout,
  view: View,
  { way, chosen }: { way: Way; chosen: number | null },
): void {
  const context = prepare(canvas, view.width, view.height);
  if (!context) return;
  const { left, top, scale, width, height } = view;
  context.clearRect(0, 0, width, height);
  context.save();
  context.scale(scale, scale);
  context.translate(-left, -top);
  const [right, bottom] = [left + width / scale, top + height / scale];
  const at = (i: number): [number, number] => [x[i] as number, y[i] as number];
  const edges = (which: (from: number, to: number) => boolean, color: string, wide: number): void => {
    context.strokeStyle = colorOf(color);
    context.lineWidth = wide / Math.min(1, scale);
    context.beginPath();
    for (const [to, { needs }] of nodes.entries()) {
      const [tx, ty] = at(to);
      for (const from of needs) {
        const [fx, fy] = at(from);
        // A line that turns may leave the rows of its ends.
        const isAside =
          fx > right ||
          tx < left ||
          (turns.size === 0 && (Math.max(fy, ty) + NODE_H < top || Math.min(fy, ty) > bottom));
        if (isAside || !which(from, to)) continue;
        context.moveTo(fx + NODE_W, fy + NODE_H / 2);
        const points = turns.get(lineName(from, to)) ?? [];
        for (let i = 0; i < points.length; i += 2)
          context.lineTo(points[i] as number, points[i + 1] as number);
        context.lineTo(tx, ty + NODE_H / 2);
      }
    }
    context.stroke();
  };
  edges((from, to) => way.get(from) !== to, '--line-strong', 1);
  edges((from, to) => way.get(from) === to, '--accent', 2.5);
  if (chosen !== null) edges((from, to) => from === chosen || to === chosen, '--text', 2);
  context.font = '12px "Inter Variable", system-ui, sans-serif';
  context.textBaseline = 'middle';
  for (const [i, node] of nodes.entries()) {
    const [nx, ny] = at(i);
    if (nx > right || nx + NODE_W < left || ny > bottom || ny + NODE_H < top) continue;
    box(context, node, nx, ny, scale >= READABLE);
    if (!way.has(i) && i !== chosen) continue;
    context.strokeStyle = colorOf(i === chosen ? '--text' : '--accent');
    context.lineWidth = 2.5;
    context.strokeRect(nx, ny, NODE_W, NODE_H);
  }
  context.restore();
}

function box(
  context: CanvasRenderingContext2D,
  node: GraphNode,
  x: number,
  y: number,
  isReadable: boolean,
): void {
  context.fillStyle = colorOf('--surface');
  context.fillRect(x, y, NODE_W, NODE_H);
  // As in show.css, a blocked job has the color of a held one.
  context.fillStyle = colorOf(`--${node.state === 'BLOCKED' ? 'held' : node.state.toLowerCase()}`);
  context.fillRect(x, y, isReadable ? 7 : NODE_W, NODE_H);
  context.strokeStyle = colorOf('--line-strong');
  context.lineWidth = 1;
  context.strokeRect(x, y, NODE_W, NODE_H);
  if (!isReadable) return;
  context.save();
  context.beginPath();
  context.rect(x, y, NODE_W - 4, NODE_H);
  context.clip();
  context.fillStyle = colorOf('--text');
  context.fillText(labelOf(node), x + 14, y + NODE_H / 2 + 1);
  context.restore();
}

/** The job at a point of the canvas; null: none. */
export function nodeAt({ x, y }: GraphLayout, view: View, px: number, py: number): number | null {
  const [gx, gy] = [px / view.scale + view.left, py / view.scale + view.top];
  for (let i = 0; i < x.length; i++) {
    const [nx, ny] = [x[i] as number, y[i] as number];
    if (gx >= nx && gx <= nx + NODE_W && gy >= ny && gy <= ny + NODE_H) return i;
  }
  return null;
}

/** From a job: left to what it needs, right to what needs it, up and down to the nearest of its column. */
export function beside(
  nodes: readonly GraphNode[],
  { x, y }: GraphLayout,
  from: number | null,
  way: 'ArrowLeft' | 'ArrowRight' | 'ArrowUp' | 'ArrowDown',
): number | null {
  if (from === null) return nodes.length === 0 ? null : 0;
  if (way === 'ArrowLeft') return nodes[from]?.needs[0] ?? from;
  if (way === 'ArrowRight') {
    const next = nodes.findIndex(({ needs }) => needs.includes(from));
    return next < 0 ? from : next;
  }
  const sign = way === 'ArrowDown' ? 1 : -1;
  let nearest = from;
  let distance = Number.POSITIVE_INFINITY;
  for (let i = 0; i < nodes.length; i++) {
    const dy = ((y[i] as number) - (y[from] as number)) * sign;
    if (dy <= 0 || Math.abs((x[i] as number) - (x[from] as number)) > NODE_W / 2 || dy >= distance) continue;
    nearest = i;
    distance = dy;
  }
  return nearest;
}
