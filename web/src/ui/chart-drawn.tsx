import 'uplot/dist/uPlot.min.css';
import './chart.css';
import { useEffect, useRef } from 'react';
import uPlot from 'uplot';
import { useStore } from '../api/store';
import { colorChanges, colorOf } from './colors';
import { figure, moment } from './format';

export interface Series {
  label: string;
  /** A variable of the design, such as `--series-1`. */
  color: string;
  values: readonly (number | null)[];
  kind?: 'line' | 'area' | 'step' | 'bars' | 'points';
  text?: (value: number) => string;
}

export interface ChartProps {
  /** What it shows, for those who cannot see it. */
  label: string;
  /** Seconds since 1970, or plain numbers. */
  x: readonly number[];
  series: readonly Series[];
  height?: number;
  time?: boolean;
  /** Series stand on one another. */
  stacked?: boolean;
  /** The range of the values; by default from 0 to the largest. */
  range?: readonly [number, number];
  xText?: (value: number) => string;
  yText?: (value: number) => string;
}

/** The time of day, and at midnight which day begins. */
function clock(seconds: number): string {
  const at = new Date(seconds * 1000);
  return at.getHours() === 0 && at.getMinutes() === 0
    ? at.toLocaleDateString('en-GB', { day: 'numeric', month: 'short' })
    : at.toLocaleTimeString('en-GB', { hour: '2-digit', minute: '2-digit' });
}

export default function ChartDrawn({
  label,
  x,
  series,
  height = 200,
  time = true,
  stacked = false,
  range,
  xText,
  yText = figure,
}: ChartProps) {
  const place = useRef<HTMLDivElement>(null);
  const chart = useRef<uPlot | null>(null);
  const colors = useStore(colorChanges);
  const plain = series.map(({ values }) => values);
  // uPlot has a tuple of the x values and at least one series.
  const data = [x, ...(stacked ? piled(plain) : plain)] as unknown as uPlot.AlignedData;
  const latest = useRef({ data, plain });
  latest.current = { data, plain };
  const shape = JSON.stringify([series.map(({ label, color, kind }) => [label, color, kind]), height, range]);

  // biome-ignore lint/correctness/useExhaustiveDependencies: made anew when its shape or the colors change; data follow below
  useEffect(() => {
    const node = place.current!;
    const axis = {
      stroke: colorOf('--text-3'),
      font: '11px "Inter Variable", system-ui, sans-serif',
      grid: { stroke: colorOf('--line'), width: 1 },
      ticks: { show: false },
    };
    const bars = uPlot.paths.bars!({ size: [0.86, 24], align: 1 });
    const made = new uPlot(
      {
        width: Math.max(node.clientWidth, 50),
        height,
        // The last mark's text is not cut off.
        padding: [10, time ? 18 : 26, 0, 0],
        cursor: { points: { size: 6 }, drag: { x: false, y: false } },
        legend: {
          live: true,
          markers: { width: 0, fill: (_, i) => colorOf(series[i - 1]?.color ?? '--text-3') },
        },
        scales: {
          x: { time },
          y: { range: range ? [range[0], range[1]] : (_, __, max) => [0, max > 0 ? max * 1.08 : 1] },
        },
        axes: [
          {
            ...axis,
            size: 26,
            values: (_, ticks) => ticks.map((tick) => (xText ?? (time ? clock : figure))(tick)),
          },
          { ...axis, size: 52, values: (_, ticks) => ticks.map((tick) => yText(tick)) },
        ],
        series: [
          {
            label: time ? 'Time' : '',
            value: (_, v) =>
              v === null ? '' : (xText ?? (time ? (s: number) => moment(s * 1000) : figure))(v),
          },
          ...series.map(({ label, color, kind = 'line', text = yText }, i): uPlot.Series => {
            const stroke = colorOf(color);
            return {
              label,
              stroke,
              width: kind === 'bars' ? 0 : 1.6,
              ...((kind === 'area' || kind === 'bars') && { fill: kind === 'bars' ? stroke : faded(stroke) }),
              ...(kind === 'bars' && { paths: bars }),
              ...(kind === 'step' && { paths: uPlot.paths.stepped!({ align: 1 }) }),
              points: { show: kind === 'points', size: 4, fill: stroke },
              // Of a pile each part says what it is itself.
              value: (_, __, ___, at) => {
                const value = at === null ? null : latest.current.plain[i]?.[at];
                return value === null || value === undefined ? '–' : text(value);
              },
            };
          }),
        ],
      },
      latest.current.data,
      node,
    );
    chart.current = made;
    const size = new ResizeObserver(() => made.setSize({ width: Math.max(node.clientWidth, 50), height }));
    size.observe(node);
    return () => {
      size.disconnect();
      made.destroy();
    };
  }, [shape, colors]);

  useEffect(() => {
    chart.current?.setData(latest.current.data);
  });

  return <div ref={place} className="chart" role="img" aria-label={label} />;
}

/** Each series on those before it: drawn from the back, the last one highest. */
function piled(values: readonly (readonly (number | null)[])[]): number[][] {
  const sums: number[][] = [];
  for (let i = values.length - 1; i >= 0; i--) {
    const above = sums[0];
    sums.unshift(values[i]!.map((value, at) => (value ?? 0) + (above?.[at] ?? 0)));
  }
  return sums;
}

const faded = (color: string): string => color.replace(/^rgb\((.+)\)$/, 'rgba($1, 0.14)');
