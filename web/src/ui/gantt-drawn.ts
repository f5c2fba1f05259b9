/** A schedule on its canvases. */
import { prepare } from './canvas';
import { colorOf } from './colors';
import { moment } from './format';
import {
  AXIS_PX,
  type GanttBar,
  isPlanned,
  LANE_GAP_PX,
  type Layout,
  type Placed,
  type PlacedLane,
  ROW_PX,
  type TimeScale,
  ticksOf,
} from './gantt-layout';

interface Kind {
  label: string;
  color: string;
  /** How much of its color a bar has, over what is behind it. */
  opacity: number;
  /** The color of what is written on it (web/test/contrast.test.ts: readable in both themes). */
  text: string;
}

export const KINDS: Record<GanttBar['kind'], Kind> = {
  past: { label: 'Completed', color: '--series-6', opacity: 0.45, text: '--text' },
  failed: { label: 'Failed or canceled', color: '--failed', opacity: 0.9, text: '--surface' },
  preempted: { label: 'Preempted', color: '--series-3', opacity: 0.45, text: '--text' },
  running: { label: 'Running', color: '--running', opacity: 0.9, text: '--surface' },
  reserved: { label: 'Reserved', color: '--held', opacity: 0.22, text: '--text' },
  promised: { label: 'Promised', color: '--series-1', opacity: 0.22, text: '--text' },
};

const STRIP_PX = 44;
const BAR_PX = ROW_PX - 3;
/** In a narrower bar nothing can be read. */
const LABELED_PX = 44;
/** In a narrower bar stripes would leave nothing of it. */
const HATCHED_PX = 8;

/** What is drawn. */
export interface View {
  times: TimeScale;
  width: number;
  height: number;
  /** Where the bars begin: names of lanes are left of it. */
  labelPx: number;
  /** How far the lanes are scrolled. */
  top: number;
  now: number;
  /** Key of the bar that the keyboard has reached. */
  chosen: string | null;
}

export function drawSchedule(canvas: HTMLCanvasElement | null, { lanes, height }: Layout, view: View): void {
  const context = prepare(canvas, view.width, view.height);
  if (!context) return;
  drawAxis(context, view);
  context.save();
  context.beginPath();
  context.rect(0, AXIS_PX, view.width, view.height - AXIS_PX);
  context.clip();
  for (const lane of lanes) drawLane(context, lane, view);
  drawScrolled(context, height, view);
  context.restore();
  drawNow(context, view);
}

/** That there is more above or below, and how much. */
function drawScrolled(context: CanvasRenderingContext2D, height: number, view: View): void {
  const shown = view.height - AXIS_PX;
  if (height <= shown) return;
  context.fillStyle = colorOf('--line-strong');
  const thumb = Math.max(24, (shown * shown) / height);
  context.fillRect(view.width - 5, AXIS_PX + (view.top / (height - shown)) * (shown - thumb), 4, thumb);
}

function drawAxis(context: CanvasRenderingContext2D, { times, height, now }: View): void {
  for (const at of ticksOf(times)) {
    const px = Math.round(times(at)) + 0.5;
    stroke(context, '--line', px, AXIS_PX - 4, height);
    context.fillStyle = colorOf('--text-3');
    context.fillText(moment(at, { seconds: false, now: new Date(now) }), px + 4, AXIS_PX / 2);
  }
}

function drawLane(context: CanvasRenderingContext2D, { lane, y, rows, bars }: PlacedLane, view: View): void {
  const laneY = AXIS_PX + y - view.top;
  const tall = rows * ROW_PX;
  if (laneY + tall < AXIS_PX || laneY > view.height) return;
  context.fillStyle = colorOf('--text-2');
  context.fillText(cut(context, lane.label, view.labelPx - 14), 8, laneY + Math.min(tall, 22) / 2 + 1);
  context.fillStyle = colorOf('--line');
  context.fillRect(0, laneY + tall + LANE_GAP_PX / 2, view.width, 1);
  for (const bar of bars) drawBar(context, bar, AXIS_PX + bar.y - view.top + 1, view);
}

function drawBar(context: CanvasRenderingContext2D, bar: Placed, y: number, view: View): void {
  const { times, labelPx, width } = view;
  const left = Math.max(labelPx, times(bar.from));
  const right = Math.min(width, Math.max(times(bar.to), times(bar.from) + 2));
  if (right < labelPx || left > width) return;
  const planned = isPlanned(bar);
  // What is left of a run is still to come by its estimate.
  const solid = bar.kind === 'running' ? Math.max(labelPx, Math.min(right, times(view.now))) : right;
  const kind = KINDS[bar.kind];
  const color = colorOf(kind.color);
  context.fillStyle = color;
  context.globalAlpha = kind.opacity;
  round(context, left, y, solid - left);
  context.globalAlpha = 0.3;
  if (right > solid) context.fillRect(solid, y, right - solid, BAR_PX);
  context.globalAlpha = 1;
  if (bar.kind === 'preempted' && right - left >= HATCHED_PX) hatch(context, left, y, right - left);
  if (planned || bar.key === view.chosen) {
    context.strokeStyle = bar.key === view.chosen ? colorOf('--text') : color;
    context.setLineDash(bar.key === view.chosen ? [] : [3, 2]);
    context.strokeRect(left + 0.5, y + 0.5, Math.max(1, right - left - 1), BAR_PX - 1);
    context.setLineDash([]);
  }
  const room = Math.max(solid - left, 0) - 8;
  if (right - left <= LABELED_PX || room <= 24) return;
  context.fillStyle = colorOf(kind.text);
  context.fillText(cut(context, bar.label, room), left + 4, y + BAR_PX / 2 + 0.5);
}

function drawNow(context: CanvasRenderingContext2D, { times, labelPx, width, height, now }: View): void {
  if (times(now) < labelPx || times(now) > width) return;
  const px = Math.round(times(now)) + 0.5;
  stroke(context, '--danger', px, AXIS_PX - 6, height);
  context.fillStyle = colorOf('--danger');
  context.beginPath();
  context.arc(px, AXIS_PX - 6, 3, 0, 7);
  context.fill();
}

/** The whole, as how much of all machines is in use, and which part of it is shown. */
export function drawStrip(
  canvas: HTMLCanvasElement | null,
  usage: readonly number[],
  { width, labelPx }: Pick<View, 'width' | 'labelPx'>,
  [from, to]: readonly [number, number],
): void {
  const context = prepare(canvas, width, STRIP_PX);
  if (!context) return;
  context.fillStyle = colorOf('--text-3');
  context.fillText('In use', 8, STRIP_PX / 2);
  context.fillStyle = colorOf('--running');
  context.globalAlpha = 0.4;
  const wide = (width - labelPx) / usage.length;
  usage.forEach((share, i) => {
    const tall = share * (STRIP_PX - 6);
    context.fillRect(labelPx + i * wide, STRIP_PX - tall, wide + 0.5, tall);
  });
  const left = Math.max(labelPx, from);
  const right = Math.min(width - 1, to);
  context.fillStyle = colorOf('--accent');
  context.globalAlpha = 0.14;
  context.fillRect(left, 0, Math.max(2, right - left), STRIP_PX);
  context.globalAlpha = 1;
  context.strokeStyle = colorOf('--accent');
  context.strokeRect(left + 0.5, 0.5, Math.max(2, right - left - 1), STRIP_PX - 1);
}

/** Stripes over a bar, so that it is told from others without its color. */
function hatch(context: CanvasRenderingContext2D, x: number, y: number, width: number): void {
  context.save();
  context.beginPath();
  context.rect(x, y, width, BAR_PX);
  context.clip();
  context.strokeStyle = colorOf('--surface');
  context.beginPath();
  for (let at = x - BAR_PX; at < x + width; at += 6) {
    context.moveTo(at, y + BAR_PX);
    context.lineTo(at + BAR_PX, y);
  }
  context.stroke();
  context.restore();
}

function stroke(context: CanvasRenderingContext2D, color: string, x: number, y: number, to: number): void {
  context.strokeStyle = colorOf(color);
  context.beginPath();
  context.moveTo(x, y);
  context.lineTo(x, to);
  context.stroke();
}

function round(context: CanvasRenderingContext2D, x: number, y: number, wide: number): void {
  context.beginPath();
  context.roundRect(x, y, Math.max(1, wide), BAR_PX, Math.min(2.5, Math.max(0, wide / 2)));
  context.fill();
}

function cut(context: CanvasRenderingContext2D, text: string, px: number): string {
  if (context.measureText(text).width <= px) return text;
  let short = text;
  while (short.length > 1 && context.measureText(`${short}…`).width > px) short = short.slice(0, -1);
  return `${short}…`;
}
