/**
 * Line, step, column and point charts as SVG text, drawn by Vega-Lite without a browser. The library is loaded with the
 * first chart, so that whoever draws none does not wait for it. The same chart always gives the same bytes.
 */
import type { TopLevelSpec } from 'vega-lite';

export interface Chart {
  title: string;
  /** Lines under the title: what the values are, how many runs, what was left out. */
  subtitle?: readonly string[];
  /**
   * `line`: straight lines between the points, which are marked; `step`: each value holds until the next x; `column`: a
   * column for each category and series, from 0; `point`: a mark for each category and series, for scales without a 0.
   */
  kind: 'line' | 'step' | 'column' | 'point';
  x: Axis;
  y: Axis;
  /** At most `MAX_SERIES` names. Series of one name have one color and one entry in the legend, in all panels. */
  series: readonly Series[];
  /** Of the area that is drawn in, of each panel, in pixels. Default 640 × 320. */
  width?: number;
  height?: number;
  /** Panels side by side. Default 2. */
  columns?: number;
}

export interface Axis {
  /** With the unit: `mean wait (s)`. */
  title: string;
  /** Default `linear`. Categories, which are strings, have none. */
  scale?: 'linear' | 'log';
  /** The ends of the axis; default: what the values need, and 0 when linear. */
  from?: number;
  to?: number;
  /** Where the ticks are and what they say; default: chosen by the library. */
  ticks?: readonly { at: number; label: string }[];
}

export interface Series {
  name: string;
  points: readonly Point[];
  /** Series of the same panel are drawn together, under this heading; panels share their axes. */
  panel?: string;
}

export interface Point {
  /** A number for `line` and `step`, a category (in the order of their coming) for `column` and `point`. */
  x: number | string;
  y: number;
  /** Drawn as a bar from y − error to y + error. */
  error?: number;
}

/** Okabe and Ito's colors, which people with any kind of color vision can tell apart; yellow, the faintest, last. */
export const PALETTE = [
  '#0072b2',
  '#d55e00',
  '#009e73',
  '#cc79a7',
  '#e69f00',
  '#56b4e9',
  '#000000',
  '#f0e442',
] as const;
const DASHES = [
  [1, 0],
  [6, 3],
  [2, 2],
] as const;
/** The colors, solid, dashed and dotted. */
export const MAX_SERIES = PALETTE.length * DASHES.length;

/**
 * A chart as the text of an SVG file, with a newline at its end:
 *
 *     await chartSvg({
 *       title: 'Mean wait by load',
 *       kind: 'line',
 *       x: { title: 'offered load' },
 *       y: { title: 'mean wait (s)' },
 *       series: [{ name: 'fcfs', points: [{ x: 0.5, y: 12, error: 2 }, { x: 0.9, y: 80, error: 9 }] }],
 *     })
 *
 * Throws an error that names series and x of a value that cannot be drawn.
 */
export async function chartSvg(chart: Chart): Promise<string> {
  return specificationSvg(specification(chart));
}

/** The libraries that draw: nothing but pictures needs them, so they are loaded for these, and may be absent. */
export async function drawingLibraries(): Promise<{
  vega: typeof import('vega');
  compile: typeof import('vega-lite').compile;
}> {
  try {
    const [vega, { compile }] = await Promise.all([import('vega'), import('vega-lite')]);
    return { vega, compile };
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ERR_MODULE_NOT_FOUND') throw error;
    throw new Error(
      'the packages vega and vega-lite, which draw the plots, are not installed: run `npm ci` without --omit=dev, or `npm install --no-save vega@6 vega-lite@6`',
    );
  }
}

/** Draws a specification of Vega-Lite in the style of all our pictures. */
export async function specificationSvg(spec: TopLevelSpec): Promise<string> {
  const { vega, compile } = await drawingLibraries();
  // Ids are counted for the whole process, and would depend on what was drawn before.
  vega.resetSVGDefIds();
  const view = new vega.View(vega.parse(compile({ ...spec, config: STYLE }).spec), { renderer: 'none' });
  try {
    return `${await view.toSVG()}\n`;
  } finally {
    view.finalize();
  }
}

const WIDTH = 640;
const HEIGHT = 320;
const COLUMNS = 2;
/** Pixels of a character of a label, on average. */
const LABEL_CHARACTER = 6;

const STYLE: TopLevelSpec['config'] = {
  aria: false,
  background: '#ffffff',
  padding: 12,
  font: 'Helvetica, Arial, sans-serif',
  view: { stroke: null },
  title: { anchor: 'start', fontSize: 16, subtitleFontSize: 12, subtitleColor: '#555555', offset: 12 },
  axis: {
    labelFontSize: 11,
    titleFontSize: 12,
    titleFontWeight: 'normal',
    titlePadding: 10,
    gridColor: '#e6e6e6',
    domainColor: '#888888',
    tickColor: '#888888',
  },
  // Pictures of the same width have their time axes at the same place.
  axisY: { minExtent: 52 },
  header: { labelFontSize: 12, labelFontWeight: 'bold', labelAnchor: 'start', title: null },
  legend: {
    orient: 'bottom',
    title: null,
    labelFontSize: 12,
    labelLimit: 0,
    columns: 6,
    symbolStrokeWidth: 3,
    symbolSize: 100,
    offset: 16,
  },
};

function specification(chart: Chart): TopLevelSpec {
  const { title, subtitle, series, width = WIDTH, height = HEIGHT, columns = COLUMNS } = chart;
  const names = [...new Set(series.map(({ name }) => name))];
  if (names.length > MAX_SERIES)
    throw new Error(`series: ${names.length} are too many; accepted: at most ${MAX_SERIES}`);
  if (chart.kind === 'column' && chart.y.scale === 'log')
    throw new Error('y.scale: "log" is not accepted for columns, which begin at 0; use points');
  const values = series.flatMap((one) => one.points.map((point) => value(chart, one, point)));
  const panels = [...new Set(series.map(({ panel }) => panel ?? ''))];
  const layers = {
    layer: layersOf(
      chart,
      names,
      values.some(({ low }) => low !== undefined),
    ),
    width,
    height,
  };
  return {
    title: { text: title, ...(subtitle ? { subtitle: [...subtitle] } : {}) },
    data: { values: cutAtAxis(chart, values) },
    ...(panels.length > 1
      ? { facet: { field: 'panel', type: 'nominal', sort: panels }, columns, spec: layers }
      : layers),
  } as TopLevelSpec;
}

interface Value {
  series: string;
  panel: string;
  x: number | string;
  y: number;
  low?: number;
  high?: number;
}

function value(
  { kind, x: xAxis, y: yAxis }: Chart,
  { name, panel = '' }: Series,
  { x, y, error }: Point,
): Value {
  const refuse = (what: string, accepted: string): never => {
    throw new Error(`${what} of series "${name}" at x = ${x} is not accepted; accepted: ${accepted}`);
  };
  const categories = kind === 'column' || kind === 'point';
  if (typeof x !== (categories ? 'string' : 'number') || (typeof x === 'number' && !Number.isFinite(x)))
    refuse('x', categories ? 'a category, which is a string' : 'a finite number');
  if (xAxis.scale === 'log' && !(Number(x) > 0)) refuse('x', 'above 0 on a logarithmic axis');
  if (!Number.isFinite(y)) refuse(`y = ${y}`, 'a finite number');
  if (yAxis.scale === 'log' && !(y > 0)) refuse(`y = ${y}`, 'above 0 on a logarithmic axis');
  if (error === undefined) return { series: name, panel, x, y };
  if (!(error >= 0 && Number.isFinite(error))) refuse(`error = ${error}`, 'a finite number from 0');
  return { series: name, panel, x, y, low: y - error, high: y + error };
}

/** A logarithmic axis has no 0: an error bar that would reach it ends at the lowest value that there is. */
function cutAtAxis({ y }: Chart, values: readonly Value[]): Value[] {
  if (y.scale !== 'log') return [...values];
  const positive = values.flatMap((one) => [one.y, one.low ?? one.y]).filter((one) => one > 0);
  const lowest = y.from ?? positive.reduce((least, one) => Math.min(least, one), Infinity);
  return values.map((one) => (one.low === undefined ? one : { ...one, low: Math.max(one.low, lowest) }));
}

function layersOf(
  { kind, x, y, width = WIDTH, series }: Chart,
  names: readonly string[],
  hasErrors: boolean,
): object[] {
  const labels = [...new Set(series.flatMap(({ points }) => points.map((point) => String(point.x))))];
  const longest = labels.reduce((most, { length }) => Math.max(most, length), 0);
  const wide = longest * LABEL_CHARACTER > width / labels.length;
  const categories = kind === 'column' || kind === 'point';
  const range = names.map((_, i) => PALETTE[i % PALETTE.length] as string);
  const dashes = names.map((_, i) => [...(DASHES[Math.floor(i / PALETTE.length)] as readonly number[])]);
  const many = names.length > 1;
  const legend = many ? {} : { legend: null };
  const position = {
    x: categories
      ? {
          field: 'x',
          type: 'nominal',
          sort: null,
          title: x.title,
          axis: { labelAngle: wide ? -35 : 0, labelOverlap: false, labelLimit: 240, grid: false },
          ...(kind === 'point' ? { scale: { paddingInner: 0.5 } } : {}),
        }
      : { field: 'x', type: 'quantitative', ...axis(x) },
    ...(categories && many ? { xOffset: { field: 'series', type: 'nominal', sort: names } } : {}),
  };
  const encoding = {
    ...position,
    y: { field: 'y', type: 'quantitative', ...axis(y) },
    color: { field: 'series', type: 'nominal', sort: names, scale: { domain: names, range }, ...legend },
    ...(names.length > PALETTE.length
      ? {
          strokeDash: {
            field: 'series',
            type: 'nominal',
            sort: names,
            scale: { domain: names, range: dashes },
            ...legend,
          },
        }
      : {}),
  };
  const mark = {
    line: { type: 'line', point: { size: 36, filled: true }, strokeWidth: 2 },
    step: { type: 'line', interpolate: 'step-after', strokeWidth: 1.5 },
    column: { type: 'bar' },
    point: { type: 'point', filled: true, size: 60, opacity: 1 },
  }[kind];
  const error = {
    mark: { type: 'rule', strokeWidth: 1.2, color: '#333333' },
    transform: [{ filter: 'isValid(datum.low)' }],
    encoding: {
      ...position,
      y: { field: 'low', type: 'quantitative', ...axis(y) },
      y2: { field: 'high' },
      ...(kind === 'column' ? {} : { color: encoding.color }),
    },
  };
  return [{ mark, encoding }, ...(hasErrors ? [error] : [])];
}

function axis({ title, scale = 'linear', from, to, ticks }: Axis): object {
  const labels = Object.fromEntries((ticks ?? []).map(({ at, label }) => [at, label]));
  return {
    title,
    scale: {
      type: scale,
      // On a logarithmic axis, nice ends are whole powers of ten.
      ...(from === undefined && to === undefined && scale === 'log' ? { nice: false, padding: 12 } : {}),
      ...(scale === 'linear'
        ? { nice: from === undefined && to === undefined, zero: from === undefined }
        : {}),
      ...(from === undefined ? {} : { domainMin: from }),
      ...(to === undefined ? {} : { domainMax: to }),
    },
    axis: ticks
      ? { values: ticks.map(({ at }) => at), labelExpr: `${JSON.stringify(labels)}[datum.value]` }
      : {},
  };
}
