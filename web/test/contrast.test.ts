/** What is written on canvases can be read, in both themes: measured as the drawing paints it, against all that is under each text. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import axe from 'axe-core';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { drawGraph } from '../src/pages/graph/drawn';
import { drawSchedule, drawStrip, KINDS } from '../src/ui/gantt-drawn';
import { type GanttBar, lay, timesOf } from '../src/ui/gantt-layout';

const tokens = readFileSync(join(import.meta.dirname, '../src/ui/tokens.css'), 'utf8');
const themes = ['light', 'dark'] as const;
let theme: (typeof themes)[number] = 'light';
/** Of a token in the theme. */
function colorOf(variable: string): string {
  const [, light, dark] = new RegExp(`\\${variable}: light-dark\\((#\\w+), (#\\w+)\\);`).exec(tokens) ?? [];
  if (!light || !dark) throw new Error(`${variable} is not a color of tokens.css`);
  return theme === 'light' ? light : dark;
}
vi.mock('../src/ui/colors', () => ({ colorOf: (variable: string) => colorOf(variable) }));
beforeAll(() => vi.stubGlobal('devicePixelRatio', 1));
afterAll(() => vi.unstubAllGlobals());

/** WCAG 2, for text of less than 24 px. */
const READABLE = 4.5;
/** Of a letter of 11 or 12 px: half its height, and its width. */
const [HALF_PX, LETTER_PX] = [4, 6];

interface Ink {
  alpha: number;
  parseString(color: string): void;
}
/** What the tests of pages measure contrast by; axe's types leave it out. */
const { Color, flattenColors, getContrast } = (
  axe.commons as typeof axe.commons & {
    color: {
      Color: new () => Ink;
      flattenColors(over: Ink, under: Ink): Ink;
      getContrast(one: Ink, other: Ink): number;
    };
  }
).color;
function ink(color: string, alpha: number): Ink {
  const made = new Color();
  made.parseString(color);
  made.alpha = alpha;
  return made;
}

interface Written {
  text: string;
  /** With the worst of what is under it. */
  contrast: number;
}

/** A canvas that keeps what is painted where, and finds out for each text what is under it. */
function canvasThatReads(written: Written[]): HTMLCanvasElement {
  const layers: { covers: (x: number, y: number) => boolean; ink: Ink }[] = [];
  let path: [x: number, y: number][] = [];
  const paint = (color: string, covers: (x: number, y: number) => boolean) =>
    layers.push({ covers, ink: ink(color, context.globalAlpha) });
  const rectangle = (left: number, top: number, wide: number, tall: number) => (x: number, y: number) =>
    x >= left && x <= left + wide && y >= top && y <= top + tall;
  const at = (x: number, y: number): Ink =>
    layers.reduce(
      (under, layer) => (layer.covers(x, y) ? flattenColors(layer.ink, under) : under),
      ink(colorOf('--surface'), 1),
    );
  const nothing = () => undefined;
  let shape: [number, number, number, number] | null = null;
  const context = {
    ...{ globalAlpha: 1, fillStyle: '', strokeStyle: '', lineWidth: 1, font: '', textBaseline: '' },
    ...{ setTransform: nothing, clearRect: nothing, save: nothing, restore: nothing, clip: nothing },
    ...{ scale: nothing, translate: nothing, setLineDash: nothing, arc: nothing, rect: nothing },
    measureText: (text: string) => ({ width: text.length * LETTER_PX }),
    beginPath() {
      path = [];
      shape = null;
    },
    roundRect: (...corners: [number, number, number, number]) => {
      shape = corners;
    },
    fill() {
      if (shape) paint(context.fillStyle, rectangle(...shape));
    },
    fillRect: (...corners: [number, number, number, number]) => {
      paint(context.fillStyle, rectangle(...corners));
    },
    moveTo: (x: number, y: number) => path.push([x, y]),
    lineTo: (x: number, y: number) => path.push([x, y]),
    stroke() {
      const points = path;
      paint(context.strokeStyle, (x, y) =>
        points.some((from, i) => i % 2 === 0 && isOnLine([x, y], from, points[i + 1]!)),
      );
    },
    strokeRect: (left: number, top: number, wide: number, tall: number) => {
      const inside = rectangle(left + 1, top + 1, wide - 2, tall - 2);
      const outside = rectangle(left, top, wide, tall);
      paint(context.strokeStyle, (x, y) => outside(x, y) && !inside(x, y));
    },
    fillText(text: string, x: number, y: number) {
      let contrast = Number.POSITIVE_INFINITY;
      for (let px = x; px < x + text.length * LETTER_PX; px++)
        for (let py = y - HALF_PX; py <= y + HALF_PX; py += 2) {
          const under = at(px, py);
          const letter = flattenColors(ink(context.fillStyle, context.globalAlpha), under);
          contrast = Math.min(contrast, getContrast(under, letter));
        }
      written.push({ text, contrast });
    },
  };
  // The parts of a canvas that drawing uses.
  return { style: {}, getContext: () => context } as unknown as HTMLCanvasElement;
}

/** Whether a point is on a line of 1 px. */
function isOnLine([x, y]: [number, number], [ax, ay]: [number, number], [bx, by]: [number, number]): boolean {
  const [dx, dy] = [bx - ax, by - ay];
  const along = Math.max(0, Math.min(1, ((x - ax) * dx + (y - ay) * dy) / (dx * dx + dy * dy || 1)));
  return Math.hypot(x - ax - along * dx, y - ay - along * dy) <= 0.5;
}

describe.each(themes)('in the %s theme', (which) => {
  const read = (draw: (canvas: HTMLCanvasElement) => void): Written[] => {
    theme = which;
    const written: Written[] = [];
    draw(canvasThatReads(written));
    return written;
  };

  test('labels on bars of each kind, names of lanes and times', () => {
    const MINUTE = 60_000;
    const kinds = Object.keys(KINDS) as GanttBar['kind'][];
    const lanes = kinds.map((id) => ({ id, label: `lane ${id}`, capacity: 1 }));
    const bars = kinds.map(
      (kind): GanttBar => ({
        ...{ key: kind, lane: kind, label: `a job that is ${kind}`, about: '', amount: 1, kind },
        ...{ from: MINUTE, to: 50 * MINUTE },
      }),
    );
    const view = {
      times: timesOf(0, 60 * MINUTE, 120, 1200),
      width: 1200,
      height: 400,
      labelPx: 120,
      top: 0,
    };
    for (const chosen of [null, 'past']) {
      const written = read((canvas) =>
        drawSchedule(canvas, lay(lanes, bars), { ...view, now: 40 * MINUTE, chosen }),
      );
      for (const { label } of [...bars, ...lanes]) expect(written.map(({ text }) => text)).toContain(label);
      expect(written.length).toBeGreaterThan(bars.length + lanes.length);
      expect(written.filter(({ contrast }) => contrast < READABLE)).toEqual([]);
    }
  });

  test('the strip below the schedule', () => {
    const written = read((canvas) => drawStrip(canvas, [0.2, 1], { width: 800, labelPx: 120 }, [0, 800]));
    expect(written.map(({ text }) => text)).toEqual(['In use']);
    expect(written.filter(({ contrast }) => contrast < READABLE)).toEqual([]);
  });

  test('names of jobs in their graph, whatever their state', () => {
    const states = ['QUEUED', 'BLOCKED', 'HELD', 'DISPATCHED', 'ASSIGNED', 'RUNNING'] as const;
    const ended = ['CANCELLING', 'COMPLETED', 'FAILED', 'CANCELLED'] as const;
    const nodes = [...states, ...ended].map((state, i) => ({
      ...{
        id: `job_${i}`,
        name: `job ${state}`,
        arrayIndex: null,
        state,
        level: i,
        needs: i > 0 ? [i - 1] : [],
      },
    }));
    const places = nodes.map((_, i) => i * 200);
    const layout = { x: places, y: nodes.map(() => 10), turns: new Map(), width: 2200, height: 100 };
    for (const chosen of [null, 2]) {
      const written = read((canvas) =>
        drawGraph(
          canvas,
          nodes as never,
          layout as never,
          { left: 0, top: 0, scale: 1, width: 2200, height: 100 },
          { way: new Map(nodes.map((_, i) => [i, i + 1])), chosen },
        ),
      );
      expect(written.map(({ text }) => text)).toEqual(nodes.map(({ name }) => name));
      expect(written.filter(({ contrast }) => contrast < READABLE)).toEqual([]);
    }
  });
});
