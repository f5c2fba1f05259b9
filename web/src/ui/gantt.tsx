/**
 * Who has which machine when: past, running, reserved and promised, on a canvas. Drag or the arrow keys move through time, the wheel with
 * Ctrl or + and − zoom, the strip below shows the whole and selects a part. Shift with the arrow keys goes from bar to bar, Enter opens one.
 */
import './gantt.css';
import { type KeyboardEvent, type PointerEvent, useEffect, useMemo, useRef, useState } from 'react';
import { useStore } from '../api/store';
import { DRAG_PX, type Point, useDrag, useWheel, useWidth } from './canvas';
import { colorChanges } from './colors';
import { Button, Segments } from './controls';
import { count, duration, moment } from './format';
import { drawSchedule, drawStrip, KINDS } from './gantt-drawn';
import {
  AXIS_PX,
  barAt,
  barBeside,
  type GanttBar,
  type GanttLane,
  heightIn,
  lay,
  NARROW_PX,
  type Placed,
  ROW_PX,
  timesOf,
  usageOver,
} from './gantt-layout';
import { Minus, Plus, RotateCcw } from './icons';
import { useNow } from './now';

/** From here on a click on the strip is a selection. */
const BRUSH_PX = 6;
const SCROLL_PX = 40;
const MINUTE = 60_000;
const SPAN_MAX = 7 * 1440 * MINUTE;
const SPANS = [
  { value: '15', label: '15 min' },
  { value: '60', label: '1 h' },
  { value: '360', label: '6 h' },
  { value: '1440', label: '24 h' },
] as const;

/** The part of time that is shown, and how it is moved. */
interface Shown {
  from: number;
  to: number;
  /** It moves: now is at four fifths of it. */
  follows: boolean;
  show(from: number, span?: number): void;
  follow(span?: number): void;
  /** `around`: the share of the width that stays where it is. */
  zoom(factor: number, around?: number): void;
}

function useShown(now: number): Shown {
  const [span, setSpan] = useState(60 * MINUTE);
  const [start, setStart] = useState<number | null>(null);
  const from = start ?? now - span * 0.8;
  return {
    from,
    to: from + span,
    follows: start === null,
    show(at, wide = span) {
      setStart(at);
      setSpan(Math.max(MINUTE, wide));
    },
    follow(wide = span) {
      setStart(null);
      setSpan(wide);
    },
    zoom(factor, around = 0.8) {
      const next = Math.min(SPAN_MAX, Math.max(MINUTE, span * factor));
      if (start !== null) setStart(start + (span - next) * around);
      setSpan(next);
    },
  };
}

interface GanttProps {
  lanes: readonly GanttLane[];
  bars: readonly GanttBar[];
  /** What there is, ms since 1970: what the strip shows. */
  whole: { from: number; to: number };
  height?: number;
  onOpen(bar: GanttBar): void;
}

export function Gantt(props: GanttProps) {
  const frame = useRef<HTMLDivElement>(null);
  const width = useWidth(frame);
  const now = useNow(1_000);
  const shown = useShown(now);
  const place = { width, labelPx: width < NARROW_PX ? 76 : 118 };
  useStore(colorChanges);
  return (
    <div className="gantt">
      <Tools bars={props.bars} shown={shown} />
      <div ref={frame} className="gantt-frame">
        <Bars {...props} {...place} now={now} shown={shown} />
        <Strip {...props} {...place} shown={shown} />
      </div>
    </div>
  );
}

function Tools({ bars, shown }: { bars: readonly GanttBar[]; shown: Shown }) {
  const span = shown.to - shown.from;
  const kinds = new Set(bars.map(({ kind }) => kind));
  const chosen = SPANS.find(({ value }) => Number(value) * MINUTE === Math.round(span));
  return (
    <div className="row wrap gantt-tools">
      <ul className="row wrap">
        {(Object.keys(KINDS) as GanttBar['kind'][])
          .filter((kind) => kinds.has(kind))
          .map((kind) => (
            <li key={kind} className="row tiny muted">
              <i className={`swatch ${kind}`} style={{ backgroundColor: `var(${KINDS[kind].color})` }} />
              {KINDS[kind].label}
            </li>
          ))}
      </ul>
      <span className="grow" />
      <Segments
        label="Time shown"
        value={chosen?.value ?? 'other'}
        onChange={(value) => {
          if (value !== 'other') shown.follow(Number(value) * MINUTE);
        }}
        options={chosen ? SPANS : [...SPANS, { value: 'other', label: duration(span / 1000) }]}
      />
      <Button
        className="small"
        variant="quiet"
        icon={<Minus size={14} />}
        hint="Show more time"
        onPress={() => shown.zoom(1.5)}
      />
      <Button
        className="small"
        variant="quiet"
        icon={<Plus size={14} />}
        hint="Show less time"
        onPress={() => shown.zoom(1 / 1.5)}
      />
      <Button
        className="small"
        icon={<RotateCcw size={13} />}
        isDisabled={shown.follows}
        onPress={() => shown.follow()}
      >
        Now
      </Button>
    </div>
  );
}

interface Drawn extends GanttProps {
  width: number;
  labelPx: number;
  shown: Shown;
}

function Bars({
  lanes,
  bars,
  height: usual = 420,
  onOpen,
  width,
  labelPx,
  now,
  shown,
}: Drawn & { now: number }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const [scrolled, setScrolled] = useState(0);
  const [chosen, setChosen] = useState<Placed | null>(null);
  const [over, setOver] = useState<{ bar: Placed; x: number; y: number } | null>(null);
  const layout = useMemo(() => lay(lanes, bars), [lanes, bars]);
  const times = timesOf(shown.from, shown.to, labelPx, width);
  const span = shown.to - shown.from;
  const height = heightIn(layout, width, usual);
  const below = height - AXIS_PX;
  const most = Math.max(0, layout.height - below);
  const top = Math.min(scrolled, most);
  const scroll = (to: number): void => setScrolled(Math.max(0, Math.min(most, to)));
  const key = chosen?.key ?? null;
  useEffect(() =>
    drawSchedule(canvas.current, layout, { times, width, height, labelPx, top, now, chosen: key }),
  );
  useWheel(canvas, (event) => {
    if (event.ctrlKey || event.metaKey)
      shown.zoom(event.deltaY > 0 ? 1.25 : 0.8, (event.offsetX - labelPx) / Math.max(1, width - labelPx));
    else if (event.deltaY < 0 ? top === 0 : top === most) return;
    else scroll(top + event.deltaY);
    event.preventDefault();
  });
  const under = ({ offsetX: x, offsetY: y }: Point): Placed | null =>
    x < labelPx || y < AXIS_PX ? null : barAt(layout, times, x, y - AXIS_PX + top);
  const pointer = useDrag({
    hold: () => ({ from: shown.from, top }),
    drag(dx, dy, held) {
      setOver(null);
      if (Math.abs(dx) > DRAG_PX) shown.show(held.from - (dx / Math.max(1, width - labelPx)) * span);
      scroll(held.top - dy);
    },
    press(event) {
      const bar = under(event);
      if (bar) onOpen(bar);
    },
    pass(event) {
      const bar = under(event);
      setOver(bar && { bar, x: event.offsetX, y: event.offsetY });
    },
  });
  function choose(arrow: Arrow): void {
    const bar = barBeside(layout, key, arrow, now);
    setChosen(bar);
    setOver(null);
    if (!bar) return;
    if (bar.to < shown.from || bar.from > shown.to) shown.show(bar.from - span / 8);
    scroll(Math.min(bar.y, Math.max(top, bar.y + ROW_PX - below)));
  }
  const tip = over ?? (chosen && { bar: chosen, x: times(chosen.from), y: AXIS_PX + chosen.y - top });
  return (
    <>
      <canvas
        ref={canvas}
        tabIndex={0}
        role="img"
        aria-label={`Schedule of ${count(lanes.length)} machines from ${moment(shown.from)} to ${moment(shown.to)}. Arrow keys move, with Shift from bar to bar, Enter opens one, plus and minus zoom. The list of jobs has the same information.`}
        {...pointer}
        onPointerLeave={() => setOver(null)}
        onBlur={() => setChosen(null)}
        onKeyDown={onKey({
          choose,
          open: () => chosen && onOpen(chosen),
          move: (part) => shown.show(shown.from + part * span),
          scroll: (px) => scroll(top + px),
          shown,
        })}
        className={over ? 'over' : ''}
      />
      <div role="status">{tip && <Tip {...tip} width={width} height={height} />}</div>
    </>
  );
}

function Tip({
  bar,
  x,
  y,
  width,
  height,
}: {
  bar: Placed;
  x: number;
  y: number;
  width: number;
  height: number;
}) {
  return (
    <div
      className="gantt-tip"
      style={{
        left: Math.max(0, Math.min(x + 12, width - 250)),
        top: Math.max(0, Math.min(y + 14, height - 66)),
      }}
    >
      <strong>{bar.label}</strong>
      <span>{bar.about}</span>
      <span className="num">
        {moment(bar.from)} – {moment(bar.to)} ({duration((bar.to - bar.from) / 1000)})
      </span>
    </div>
  );
}

type Arrow = Parameters<typeof barBeside>[2];
const ARROWS: readonly string[] = ['ArrowLeft', 'ArrowRight', 'ArrowUp', 'ArrowDown'] satisfies Arrow[];

/** What keys do. `move` is told a share of the time shown. */
const onKey =
  (does: {
    choose(arrow: Arrow): void;
    open(): void;
    move(part: number): void;
    scroll(px: number): void;
    shown: Shown;
  }) =>
  (event: KeyboardEvent): void => {
    const acts: Record<string, () => void> = {
      ArrowLeft: () => does.move(-1 / 8),
      ArrowRight: () => does.move(1 / 8),
      ArrowDown: () => does.scroll(SCROLL_PX),
      ArrowUp: () => does.scroll(-SCROLL_PX),
      '+': () => does.shown.zoom(0.8),
      '-': () => does.shown.zoom(1.25),
      Home: () => does.shown.follow(),
      Enter: does.open,
    };
    const act =
      event.shiftKey && ARROWS.includes(event.key) ? () => does.choose(event.key as Arrow) : acts[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  };

function Strip({ lanes, bars, whole, width, labelPx, shown }: Drawn) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const begun = useRef<number | null>(null);
  const usage = useMemo(
    () => usageOver(bars, lanes, whole.from, whole.to),
    [bars, lanes, whole.from, whole.to],
  );
  const times = timesOf(whole.from, Math.max(whole.from + 1, whole.to), labelPx, width);
  useEffect(() => drawStrip(canvas.current, usage, { width, labelPx }, [times(shown.from), times(shown.to)]));
  const at = ({ nativeEvent }: PointerEvent): number => Number(times.invert(nativeEvent.offsetX));
  return (
    <canvas
      ref={canvas}
      className="gantt-strip"
      aria-hidden
      title="Drag to select a part; click to go there"
      onPointerDown={(event) => {
        begun.current = at(event);
        shown.show(begun.current - (shown.to - shown.from) / 2);
        event.currentTarget.setPointerCapture(event.pointerId);
      }}
      onPointerMove={(event) => {
        if (event.buttons === 0) begun.current = null;
        if (begun.current === null) return;
        const [left, right] = [begun.current, at(event)].sort((a, b) => a - b) as [number, number];
        if (times(right) - times(left) >= BRUSH_PX) shown.show(left, right - left);
      }}
      onPointerUp={() => {
        begun.current = null;
      }}
    />
  );
}
