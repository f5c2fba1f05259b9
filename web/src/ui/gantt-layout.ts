/** Where the bars of a schedule are: rows, times, and which bar is beside which. Pure: pixels in, pixels out. */
import { type ScaleTime, scaleTime } from 'd3-scale';

export interface GanttLane {
  id: string;
  label: string;
  /** How much it can hold at once, in the unit of the bars' `amount`. */
  capacity: number;
}

export interface GanttBar {
  key: string;
  lane: string;
  label: string;
  about: string;
  /** ms since 1970. */
  from: number;
  to: number;
  amount: number;
  kind: 'past' | 'failed' | 'preempted' | 'running' | 'reserved' | 'promised';
}

/** A bar and where its row is, below the axis. */
export interface Placed extends GanttBar {
  y: number;
}

export interface PlacedLane {
  lane: GanttLane;
  /** Below the axis. */
  y: number;
  rows: number;
  /** By their beginnings. */
  bars: Placed[];
}

export interface Layout {
  lanes: PlacedLane[];
  height: number;
}

export type TimeScale = ScaleTime<number, number>;

export const AXIS_PX = 26;
export const ROW_PX = 15;
export const LANE_GAP_PX = 5;
const ROWS_MAX = 8;
const TICK_PX = 82;
/** A bar is found so far beside it. */
const NEAR_PX = 2;
const BINS = 240;
/** Below it is a phone. */
export const NARROW_PX = 600;
/** As far as browsers make a canvas of that width. */
const TALL_PX = 4_000;

/** How tall the schedule is drawn: the lanes scroll within `usual`; on a phone the page scrolls, and all of them are in it. */
export const heightIn = (layout: Layout, width: number, usual: number): number =>
  width < NARROW_PX ? Math.max(usual, Math.min(TALL_PX, AXIS_PX + layout.height)) : usual;

export const isPlanned = ({ kind }: GanttBar): boolean => kind === 'reserved' || kind === 'promised';

/** Bars of a lane that overlap go below one another; those without a row of their own share the last. */
export function lay(lanes: readonly GanttLane[], bars: readonly GanttBar[]): Layout {
  const byLane = new Map(lanes.map(({ id }): [string, GanttBar[]] => [id, []]));
  for (const bar of bars) byLane.get(bar.lane)?.push(bar);
  let height = 0;
  const placed = lanes.map((lane): PlacedLane => {
    const ends: number[] = [];
    const y = height;
    const own = (byLane.get(lane.id) ?? [])
      .sort((a, b) => a.from - b.from)
      .map((bar): Placed => {
        const free = ends.findIndex((end) => end <= bar.from);
        const row = free < 0 ? ends.length : free;
        ends[row] = bar.to;
        return { ...bar, y: y + Math.min(row, ROWS_MAX - 1) * ROW_PX };
      });
    const rows = Math.max(1, Math.min(ROWS_MAX, ends.length));
    height += rows * ROW_PX + LANE_GAP_PX;
    return { lane, y, rows, bars: own };
  });
  return { lanes: placed, height };
}

/** From times to pixels, and back. */
export const timesOf = (from: number, to: number, left: number, right: number): TimeScale =>
  scaleTime()
    .domain([from, to])
    .range([left, Math.max(left + 1, right)]);

/** Round times for the axis, ms since 1970, with room for a text at each: the scale makes about as many as it is asked for, also more. */
export function ticksOf(times: TimeScale): number[] {
  const [left = 0, right = 0] = times.range();
  for (let wanted = Math.floor((right - left) / TICK_PX); wanted > 0; wanted--) {
    const ticks = times.ticks(wanted).map(Number);
    if (ticks.length < 2 || times(ticks[1]!) - times(ticks[0]!) >= TICK_PX) return ticks;
  }
  return [];
}

/** The bar at a point of the lanes, `y` from the first lane's top; of several the one drawn last. */
export function barAt({ lanes }: Layout, times: TimeScale, x: number, y: number): Placed | null {
  const lane = lanes.find((each) => y >= each.y && y < each.y + each.rows * ROW_PX);
  const [first, last] = [Number(times.invert(x - NEAR_PX)), Number(times.invert(x + NEAR_PX))];
  const isThere = (bar: Placed): boolean =>
    y >= bar.y && y < bar.y + ROW_PX && last >= bar.from && first <= bar.to;
  return lane?.bars.findLast(isThere) ?? null;
}

/** The bar that an arrow key leads to: of the same lane, or the nearest in time of another. From none: the one nearest to `at`. */
export function barBeside(
  { lanes }: Layout,
  key: string | null,
  arrow: 'ArrowLeft' | 'ArrowRight' | 'ArrowUp' | 'ArrowDown',
  at: number,
): Placed | null {
  const filled = lanes.filter(({ bars }) => bars.length > 0);
  const line = filled.findIndex(({ bars }) => bars.some((bar) => bar.key === key));
  if (line < 0) return nearest(filled[0]?.bars ?? [], at);
  const { bars } = filled[line]!;
  const place = bars.findIndex((bar) => bar.key === key);
  if (arrow === 'ArrowLeft') return bars[place - 1] ?? bars[place]!;
  if (arrow === 'ArrowRight') return bars[place + 1] ?? bars[place]!;
  const other = filled[arrow === 'ArrowUp' ? line - 1 : line + 1];
  return other ? nearest(other.bars, bars[place]!.from) : bars[place]!;
}

function nearest(bars: readonly Placed[], at: number): Placed | null {
  const away = (bar: Placed): number => Math.max(bar.from - at, at - bar.to, 0);
  return bars.reduce<Placed | null>((best, bar) => (best && away(best) <= away(bar) ? best : bar), null);
}

/** The share of all lanes' capacity in use, over equal parts of the time. */
export function usageOver(
  bars: readonly GanttBar[],
  lanes: readonly GanttLane[],
  from: number,
  to: number,
): number[] {
  const capacity = lanes.reduce((sum, lane) => sum + lane.capacity, 0);
  const bins = new Array<number>(BINS).fill(0);
  const width = (to - from) / BINS;
  for (const bar of bars) {
    if (isPlanned(bar)) continue;
    const first = Math.max(0, Math.floor((bar.from - from) / width));
    const last = Math.min(BINS - 1, Math.floor((bar.to - from) / width));
    for (let i = first; i <= last; i++) {
      const begin = from + i * width;
      const share = (Math.min(bar.to, begin + width) - Math.max(bar.from, begin)) / width;
      bins[i]! += Math.max(0, share) * bar.amount;
    }
  }
  return bins.map((used) => Math.min(1, used / Math.max(1, capacity)));
}
