/**
 * Who has which machine when: past, running, reserved and promised, on a canvas. Drag or the arrow keys move through time,
 * the wheel with Ctrl or + and − zoom, the strip below shows the whole and selects a part.
 */
import './gantt.css';
import { Minus, Plus, RotateCcw } from 'lucide-react';
import { type KeyboardEvent, type PointerEvent, useEffect, useMemo, useRef, useState } from 'react';
import { useStore } from '../api/store';
import { colorChanges, colorOf } from './colors';
import { Button, Segments } from './controls';
import { count, duration, moment } from './format';
import { useNow } from './now';

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
  kind: 'past' | 'failed' | 'running' | 'reserved' | 'promised';
}

const KINDS: Record<GanttBar['kind'], { label: string; color: string }> = {
  past: { label: 'Completed', color: '--series-6' },
  failed: { label: 'Failed or cancelled', color: '--failed' },
  running: { label: 'Running', color: '--running' },
  reserved: { label: 'Reserved', color: '--held' },
  promised: { label: 'Promised', color: '--series-1' },
};

const AXIS_PX = 26;
const ROW_PX = 15;
const LANE_GAP_PX = 5;
const ROWS_MAX = 8;
const STRIP_PX = 44;
/** From here on a click is a selection. */
const BRUSH_PX = 6;
const MINUTE = 60_000;
const SPANS = [
  { value: '15', label: '15 min' },
  { value: '60', label: '1 h' },
  { value: '360', label: '6 h' },
  { value: '1440', label: '24 h' },
] as const;

interface Placed extends GanttBar {
  row: number;
}
interface Lane {
  lane: GanttLane;
  y: number;
  rows: number;
  bars: Placed[];
}

/** Bars of a lane that overlap go below one another. */
function lay(lanes: readonly GanttLane[], bars: readonly GanttBar[]): { lanes: Lane[]; height: number } {
  const byLane = new Map<string, GanttBar[]>();
  for (const bar of bars) {
    const of = byLane.get(bar.lane);
    if (of) of.push(bar);
    else byLane.set(bar.lane, [bar]);
  }
  let y = 0;
  const placed = lanes.map((lane) => {
    const ends: number[] = [];
    const own = (byLane.get(lane.id) ?? [])
      .sort((a, b) => a.from - b.from)
      .map((bar): Placed => {
        let row = ends.findIndex((end) => end <= bar.from);
        if (row < 0) row = ends.length;
        ends[row] = bar.to;
        return { ...bar, row };
      });
    const rows = Math.max(1, Math.min(ROWS_MAX, ends.length));
    const at = y;
    y += rows * ROW_PX + LANE_GAP_PX;
    return { lane, y: at, rows, bars: own };
  });
  return { lanes: placed, height: y };
}

const STEPS_MS = [1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720, 1440, 2880, 10_080].map(
  (minutes) => minutes * MINUTE,
);

export function Gantt({
  lanes,
  bars,
  whole,
  height = 420,
  onOpen,
  onSpan,
}: {
  lanes: readonly GanttLane[];
  bars: readonly GanttBar[];
  /** What there is, ms since 1970: what the strip shows. */
  whole: { from: number; to: number };
  height?: number;
  onOpen(bar: GanttBar): void;
  onSpan?: (from: number, to: number) => void;
}) {
  const frame = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const strip = useRef<HTMLCanvasElement>(null);
  const [width, setWidth] = useState(0);
  const [top, setTop] = useState(0);
  const [span, setSpan] = useState(60 * MINUTE);
  /** Where the window begins; null: so that now is at four fifths of it, moving. */
  const [start, setStart] = useState<number | null>(null);
  const [over, setOver] = useState<{ bar: Placed; x: number; y: number } | null>(null);
  useStore(colorChanges);
  const now = useNow(1_000);
  const labelPx = width < 600 ? 76 : 118;
  const from = start ?? now - span * 0.8;
  const to = from + span;
  const laid = useMemo(() => lay(lanes, bars), [lanes, bars]);

  useEffect(() => {
    const node = frame.current!;
    const watch = new ResizeObserver(() => setWidth(node.clientWidth));
    watch.observe(node);
    return () => watch.disconnect();
  }, []);
  // biome-ignore lint/correctness/useExhaustiveDependencies: told of spans, not of each second
  useEffect(() => onSpan?.(from, to), [Math.round(from / 30_000), span]);

  const x = (at: number): number => labelPx + ((at - from) / span) * (width - labelPx);

  useEffect(() => {
    const context = prepare(canvas.current, width, height);
    if (!context) return;
    const line = colorOf('--line');
    const text = colorOf('--text-2');
    const faint = colorOf('--text-3');
    context.font = '11px "Inter Variable", system-ui, sans-serif';
    context.textBaseline = 'middle';

    const step = STEPS_MS.find((ms) => ((width - labelPx) * ms) / span > 82) ?? STEPS_MS.at(-1)!;
    const zone = new Date(from).getTimezoneOffset() * MINUTE;
    const first = Math.ceil((from - zone) / step) * step + zone;
    for (let at = first; at < to; at += step) {
      const px = Math.round(x(at)) + 0.5;
      context.strokeStyle = line;
      context.beginPath();
      context.moveTo(px, AXIS_PX - 4);
      context.lineTo(px, height);
      context.stroke();
      context.fillStyle = faint;
      context.fillText(moment(at, { seconds: false, now: new Date(now) }), px + 4, AXIS_PX / 2);
    }

    context.save();
    context.beginPath();
    context.rect(0, AXIS_PX, width, height - AXIS_PX);
    context.clip();
    for (const { lane, y, rows, bars: own } of laid.lanes) {
      const laneY = AXIS_PX + y - top;
      const laneHeight = rows * ROW_PX;
      if (laneY + laneHeight < AXIS_PX || laneY > height) continue;
      context.fillStyle = text;
      context.fillText(cut(context, lane.label, labelPx - 14), 8, laneY + Math.min(laneHeight, 22) / 2 + 1);
      context.fillStyle = line;
      context.fillRect(0, laneY + laneHeight + LANE_GAP_PX / 2, width, 1);
      for (const bar of own) {
        if (bar.to < from || bar.from > to) continue;
        const left = Math.max(labelPx, x(bar.from));
        const right = Math.min(width, Math.max(x(bar.to), x(bar.from) + 2));
        if (right < labelPx) continue;
        const rowY = laneY + Math.min(bar.row, ROWS_MAX - 1) * ROW_PX + 1;
        const color = colorOf(KINDS[bar.kind].color);
        const plannedFrom = bar.kind === 'running' ? Math.max(labelPx, Math.min(right, x(now))) : left;
        context.fillStyle = color;
        if (bar.kind === 'reserved' || bar.kind === 'promised') {
          context.globalAlpha = 0.22;
          round(context, left, rowY, right - left, ROW_PX - 3);
          context.globalAlpha = 1;
          context.strokeStyle = color;
          context.setLineDash([3, 2]);
          context.strokeRect(left + 0.5, rowY + 0.5, Math.max(1, right - left - 1), ROW_PX - 4);
          context.setLineDash([]);
        } else {
          context.globalAlpha = bar.kind === 'past' ? 0.55 : 0.9;
          round(context, left, rowY, (bar.kind === 'running' ? plannedFrom : right) - left, ROW_PX - 3);
          if (bar.kind === 'running' && right > plannedFrom) {
            // What is still to come by its estimate.
            context.globalAlpha = 0.3;
            context.fillRect(plannedFrom, rowY, right - plannedFrom, ROW_PX - 3);
          }
          context.globalAlpha = 1;
        }
        if (right - left > 44) {
          context.fillStyle =
            bar.kind === 'reserved' || bar.kind === 'promised' ? color : colorOf('--surface');
          const room = (bar.kind === 'running' ? Math.max(plannedFrom - left, 0) : right - left) - 8;
          if (room > 24)
            context.fillText(cut(context, bar.label, room), left + 4, rowY + (ROW_PX - 3) / 2 + 0.5);
        }
      }
    }
    context.restore();
    if (now >= from && now <= to) {
      const px = Math.round(x(now)) + 0.5;
      context.strokeStyle = colorOf('--danger');
      context.beginPath();
      context.moveTo(px, AXIS_PX - 6);
      context.lineTo(px, height);
      context.stroke();
      context.fillStyle = colorOf('--danger');
      context.beginPath();
      context.arc(px, AXIS_PX - 6, 3, 0, 7);
      context.fill();
    }
  });

  // The whole, as how much of all machines is in use.
  const usage = useMemo(
    () => usageOver(bars, lanes, whole.from, whole.to),
    [bars, lanes, whole.from, whole.to],
  );
  const wholeSpan = Math.max(1, whole.to - whole.from);
  const stripX = (at: number): number => labelPx + ((at - whole.from) / wholeSpan) * (width - labelPx);
  useEffect(() => {
    const context = prepare(strip.current, width, STRIP_PX);
    if (!context) return;
    context.font = '11px "Inter Variable", system-ui, sans-serif';
    context.textBaseline = 'middle';
    context.fillStyle = colorOf('--text-3');
    context.fillText('In use', 8, STRIP_PX / 2);
    context.fillStyle = colorOf('--running');
    context.globalAlpha = 0.4;
    const wide = (width - labelPx) / usage.length;
    usage.forEach((share, i) => {
      const tall = share * (STRIP_PX - 6);
      context.fillRect(labelPx + i * wide, STRIP_PX - tall, wide + 0.5, tall);
    });
    context.globalAlpha = 1;
    const left = Math.max(labelPx, stripX(from));
    const right = Math.min(width - 1, stripX(to));
    context.fillStyle = colorOf('--accent');
    context.globalAlpha = 0.14;
    context.fillRect(left, 0, Math.max(2, right - left), STRIP_PX);
    context.globalAlpha = 1;
    context.strokeStyle = colorOf('--accent');
    context.strokeRect(left + 0.5, 0.5, Math.max(2, right - left - 1), STRIP_PX - 1);
  });

  function zoom(factor: number, around = 0.8): void {
    const next = Math.min(7 * 1440 * MINUTE, Math.max(MINUTE, span * factor));
    if (start !== null) setStart(start + (span - next) * around);
    setSpan(next);
  }

  const wheelState = useRef({ zoom, labelPx, width, top, max: 0 });
  wheelState.current = { zoom, labelPx, width, top, max: Math.max(0, laid.height - (height - AXIS_PX)) };
  useEffect(() => {
    const node = canvas.current!;
    // Not by React: it listens passively, and the page would zoom too.
    const onWheel = (event: WheelEvent): void => {
      const { zoom, labelPx, width, top, max } = wheelState.current;
      if (event.ctrlKey || event.metaKey) {
        event.preventDefault();
        zoom(event.deltaY > 0 ? 1.25 : 0.8, (event.offsetX - labelPx) / Math.max(1, width - labelPx));
      } else if (max > 0) {
        const next = Math.max(0, Math.min(max, top + event.deltaY));
        if (next !== top) event.preventDefault();
        setTop(next);
      }
    };
    node.addEventListener('wheel', onWheel, { passive: false });
    return () => node.removeEventListener('wheel', onWheel);
  }, []);

  function barAt(px: number, py: number): Placed | null {
    const y = py - AXIS_PX + top;
    const lane = laid.lanes.find((each) => y >= each.y && y < each.y + each.rows * ROW_PX);
    if (!lane || px < labelPx || py < AXIS_PX) return null;
    const row = Math.floor((y - lane.y) / ROW_PX);
    const at = from + ((px - labelPx) / (width - labelPx)) * span;
    const near = (span / (width - labelPx)) * 2;
    return (
      lane.bars.findLast(
        (bar) => Math.min(bar.row, ROWS_MAX - 1) === row && at >= bar.from - near && at <= bar.to + near,
      ) ?? null
    );
  }

  const drag = useRef<{ x: number; y: number; start: number; top: number; moved: boolean } | null>(null);
  function onDown(event: PointerEvent<HTMLCanvasElement>): void {
    drag.current = { x: event.clientX, y: event.clientY, start: from, top, moved: false };
    event.currentTarget.setPointerCapture(event.pointerId);
  }
  function onMove(event: PointerEvent<HTMLCanvasElement>): void {
    const { offsetX, offsetY } = event.nativeEvent;
    const held = drag.current;
    if (!held) {
      const bar = barAt(offsetX, offsetY);
      setOver(bar ? { bar, x: offsetX, y: offsetY } : null);
      return;
    }
    const dx = event.clientX - held.x;
    const dy = event.clientY - held.y;
    if (Math.abs(dx) + Math.abs(dy) > 4) held.moved = true;
    if (!held.moved) return;
    setOver(null);
    if (Math.abs(dx) > 4) setStart(held.start - (dx / Math.max(1, width - labelPx)) * span);
    setTop(Math.max(0, Math.min(wheelState.current.max, held.top - dy)));
  }
  function onUp(event: PointerEvent<HTMLCanvasElement>): void {
    const held = drag.current;
    drag.current = null;
    if (held?.moved) return;
    const bar = barAt(event.nativeEvent.offsetX, event.nativeEvent.offsetY);
    if (bar) onOpen(bar);
  }
  function onKeyDown(event: KeyboardEvent): void {
    const moves: Record<string, () => void> = {
      ArrowLeft: () => setStart(from - span / 8),
      ArrowRight: () => setStart(from + span / 8),
      ArrowDown: () => setTop(Math.min(wheelState.current.max, top + 40)),
      ArrowUp: () => setTop(Math.max(0, top - 40)),
      '+': () => zoom(0.8),
      '-': () => zoom(1.25),
      Home: () => setStart(null),
    };
    const move = moves[event.key];
    if (!move) return;
    event.preventDefault();
    move();
  }
  const brushed = useRef<number | null>(null);
  const stripAt = (event: PointerEvent<HTMLCanvasElement>): number =>
    whole.from + ((event.nativeEvent.offsetX - labelPx) / Math.max(1, width - labelPx)) * wholeSpan;
  function brush(event: PointerEvent<HTMLCanvasElement>): void {
    if (event.buttons === 0) brushed.current = null;
    if (brushed.current === null) return;
    const [left, right] = [brushed.current, stripAt(event)].sort((a, b) => a - b) as [number, number];
    if (stripX(right) - stripX(left) < BRUSH_PX) return;
    setSpan(Math.max(MINUTE, right - left));
    setStart(left);
  }

  const shown = [...new Set(bars.map(({ kind }) => kind))];
  const chosen = SPANS.find(({ value }) => Number(value) * MINUTE === Math.round(span));
  return (
    <div className="gantt">
      <div className="row wrap gantt-tools">
        <ul className="row wrap">
          {(Object.keys(KINDS) as GanttBar['kind'][])
            .filter((kind) => shown.includes(kind))
            .map((kind) => (
              <li key={kind} className="row tiny muted">
                <i className={`swatch ${kind}`} style={{ background: `var(${KINDS[kind].color})` }} />
                {KINDS[kind].label}
              </li>
            ))}
        </ul>
        <span className="grow" />
        <Segments
          label="Time shown"
          value={chosen?.value ?? 'other'}
          onChange={(value) => {
            if (value === 'other') return;
            setSpan(Number(value) * MINUTE);
            setStart(null);
          }}
          options={chosen ? SPANS : [...SPANS, { value: 'other', label: duration(span / 1000) }]}
        />
        <Button
          className="small"
          variant="quiet"
          icon={<Minus size={14} />}
          hint="Show more time"
          onPress={() => zoom(1.5)}
        />
        <Button
          className="small"
          variant="quiet"
          icon={<Plus size={14} />}
          hint="Show less time"
          onPress={() => zoom(1 / 1.5)}
        />
        <Button
          className="small"
          icon={<RotateCcw size={13} />}
          isDisabled={start === null}
          onPress={() => setStart(null)}
        >
          Now
        </Button>
      </div>
      <div ref={frame} className="gantt-frame">
        <canvas
          ref={canvas}
          tabIndex={0}
          role="img"
          aria-label={`Schedule of ${count(lanes.length)} machines from ${moment(from)} to ${moment(to)}. Arrow keys move, plus and minus zoom. The list of jobs says the same.`}
          onPointerDown={onDown}
          onPointerMove={onMove}
          onPointerUp={onUp}
          onPointerLeave={() => setOver(null)}
          onKeyDown={onKeyDown}
          className={over ? 'over' : ''}
        />
        {over && (
          <div
            className="gantt-tip"
            style={{
              left: Math.min(over.x + 12, Math.max(0, width - 250)),
              top: Math.min(over.y + 14, height - 66),
            }}
          >
            <strong>{over.bar.label}</strong>
            <span>{over.bar.about}</span>
            <span className="num">
              {moment(over.bar.from)} – {moment(over.bar.to)} (
              {duration((over.bar.to - over.bar.from) / 1000)})
            </span>
          </div>
        )}
        <canvas
          ref={strip}
          className="gantt-strip"
          aria-hidden
          title="Drag to select a part; click to go there"
          onPointerDown={(event) => {
            brushed.current = stripAt(event);
            setStart(brushed.current - span / 2);
            event.currentTarget.setPointerCapture(event.pointerId);
          }}
          onPointerMove={brush}
          onPointerUp={() => {
            brushed.current = null;
          }}
        />
      </div>
    </div>
  );
}

function prepare(
  canvas: HTMLCanvasElement | null,
  width: number,
  height: number,
): CanvasRenderingContext2D | null {
  if (!canvas || width === 0) return null;
  const ratio = devicePixelRatio || 1;
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
  }
  const context = canvas.getContext('2d')!;
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  return context;
}

function round(context: CanvasRenderingContext2D, x: number, y: number, w: number, h: number): void {
  context.beginPath();
  context.roundRect(x, y, Math.max(1, w), h, Math.min(2.5, Math.max(0, w / 2)));
  context.fill();
}

function cut(context: CanvasRenderingContext2D, text: string, px: number): string {
  if (context.measureText(text).width <= px) return text;
  let short = text;
  while (short.length > 1 && context.measureText(`${short}…`).width > px) short = short.slice(0, -1);
  return `${short}…`;
}

const BINS = 240;

/** The share of all lanes' capacity in use, over equal parts of the time. */
function usageOver(
  bars: readonly GanttBar[],
  lanes: readonly GanttLane[],
  from: number,
  to: number,
): number[] {
  const capacity = lanes.reduce((sum, lane) => sum + lane.capacity, 0);
  const bins = new Array<number>(BINS).fill(0);
  const width = (to - from) / BINS;
  for (const bar of bars) {
    if (bar.kind === 'reserved' || bar.kind === 'promised') continue;
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
