import { execFileSync } from 'node:child_process';
import { describe, expect, it } from 'vitest';
import { type Chart, chartSvg, MAX_SERIES, PALETTE } from '../../src/plots/chart.js';
import { box, corners, type Element, marks, parseSvg, texts } from './svg.js';

const chart = (changes: Partial<Chart> = {}): Chart => ({
  title: 'Mean wait <by> load',
  subtitle: ['16 runs'],
  kind: 'line',
  x: { title: 'offered load' },
  y: { title: 'mean wait (s)' },
  series: [
    { name: 'fcfs', points: [{ x: 0, y: 25 }, { x: 1, y: 100, error: 20 }] }, // biome-ignore format: data
    { name: 'easy & co', points: [{ x: 0, y: 0 }, { x: 0.5, y: 50 }, { x: 1, y: 75 }] }, // biome-ignore format: data
  ],
  width: 200,
  height: 100,
  ...changes,
});
const categories = (changes: Partial<Chart> = {}): Chart =>
  chart({
    kind: 'column',
    x: { title: 'site' },
    y: { title: 'jobs missed (%)', from: 0, to: 100 },
    series: [
      { name: 'MS', points: [{ x: 'B', y: 25, error: 10 }, { x: 'A', y: 50 }] }, // biome-ignore format: data
      { name: 'LS', points: [{ x: 'B', y: 75, error: 5 }, { x: 'A', y: 100 }] }, // biome-ignore format: data
    ],
    ...changes,
  });

/** Of an upright line, in pixels. */
const length = ({ attributes }: Element): number => Number(Math.abs(Number(attributes.y2)).toFixed(6));

describe('chartSvg', () => {
  it('draws a line a series through its points, with axes, legend, title and errors', async () => {
    const svg = await chartSvg(chart({ y: { title: 'mean wait (s)', from: 0, to: 100 } }));
    expect(parseSvg(svg).attributes).toMatchObject({ xmlns: 'http://www.w3.org/2000/svg' });
    expect(texts(svg)).toEqual(
      expect.arrayContaining([
        'Mean wait <by> load',
        '16 runs',
        'offered load',
        'mean wait (s)',
        'fcfs',
        'easy & co',
      ]),
    );
    const lines = marks(svg, 'line');
    expect(lines.map(({ attributes }) => attributes.stroke)).toEqual(PALETTE.slice(0, 2));
    expect(lines.map(corners)).toEqual([
      [[0, 75], [200, 0]], // biome-ignore format: data
      [[0, 100], [100, 50], [200, 25]], // biome-ignore format: data
    ]);
    expect(marks(svg, 'symbol')).toHaveLength(5);
    expect(marks(svg, 'rule').map(length)).toEqual([40]);
  });

  it('holds a step until the next x', async () => {
    const svg = await chartSvg(chart({ kind: 'step', y: { title: 'wait (s)', from: 0, to: 100 } }));
    expect(corners(marks(svg, 'line')[1]!)).toEqual([[0, 100], [100, 100], [100, 50], [200, 50], [200, 25]]); // biome-ignore format: data
    expect(marks(svg, 'symbol')).toHaveLength(0);
  });

  it('draws a column for each category and series, as high as its value, and the error on top', async () => {
    const svg = await chartSvg(categories());
    const columns = marks(svg, 'rect').map((rect) => ({ fill: rect.attributes.fill, ...box(rect) }));
    expect(columns.map(({ height }) => Math.round(height))).toEqual([25, 50, 75, 100]);
    expect(columns.every(({ y, height }) => Math.abs(y + height - 100) < 1e-9)).toBe(true);
    // Categories are in the order of their coming, series side by side in the order that they are given.
    const [msB, msA, lsB, lsA] = columns.map(({ x }) => x) as [number, number, number, number];
    expect([msB < lsB, lsB < msA, msA < lsA]).toEqual([true, true, true]);
    expect(columns.map(({ fill }) => fill)).toEqual([PALETTE[0], PALETTE[0], PALETTE[1], PALETTE[1]]);
    expect(marks(svg, 'rule').map(length)).toEqual([20, 10]);
  });

  it('puts series with one panel name together, with one legend', async () => {
    const one = categories().series;
    const series = ['left', 'right'].flatMap((panel) => one.map((each) => ({ ...each, panel })));
    const svg = await chartSvg(categories({ series }));
    expect(marks(svg, 'rect')).toHaveLength(8);
    for (const heading of ['left', 'right', 'MS', 'LS'])
      expect(texts(svg).filter((text) => text === heading)).toHaveLength(1);
  });

  it('has logarithmic axes and ticks of its own', async () => {
    const series = [{ name: 'a', points: [1, 10, 100].map((x) => ({ x, y: 10 * x, error: 10 })) }];
    const x = { title: 'wait', scale: 'log', from: 1, to: 100, ticks: [{ at: 10, label: 'ten s' }] } as const;
    const svg = await chartSvg(chart({ x, y: { title: 'jobs', scale: 'log', from: 10, to: 1000 }, series }));
    expect(corners(marks(svg, 'line')[0]!)).toEqual([[0, 100], [100, 50], [200, 0]]); // biome-ignore format: data
    expect(texts(svg)).toContain('ten s');
    // The bar of the first reaches down to 0, and ends at the axis: up from 10 to 20 is 15 of 100 pixels.
    expect(length(marks(svg, 'rule')[0]!)).toBeCloseTo(50 * Math.log10(2));
  });

  it('tells every one of many series apart', async () => {
    const series = Array.from({ length: MAX_SERIES }, (_, i) => ({
      name: `s${i}`,
      points: [{ x: 0, y: i }, { x: 1, y: i }], // biome-ignore format: data
    }));
    const looks = marks(await chartSvg(chart({ series })), 'line').map(
      ({ attributes }) => `${attributes.stroke} ${attributes['stroke-dasharray']}`,
    );
    expect(new Set(looks).size).toBe(MAX_SERIES);
    const more = [...series, { name: 'more', points: [] }];
    await expect(chartSvg(chart({ series: more }))).rejects.toThrow(`accepted: at most ${MAX_SERIES}`);
  });

  it('gives the same bytes in any order of drawing and in another process', async () => {
    const first = await chartSvg(chart());
    await chartSvg(categories());
    expect(await chartSvg(chart())).toBe(first);
    const program = `
      const { chartSvg } = await import(${JSON.stringify(new URL('../../dist/plots/chart.js', import.meta.url).href)});
      process.stdout.write(await chartSvg(${JSON.stringify(chart())}));`;
    const second = execFileSync(process.execPath, ['--input-type=module', '-e', program], {
      encoding: 'utf8',
    });
    expect(second).toBe(first);
  });

  it('draws nothing for a series without points', async () => {
    const svg = await chartSvg(chart({ series: [{ name: 'none', points: [] }] }));
    expect(marks(svg, 'line')).toHaveLength(0);
    expect(texts(svg)).toContain('mean wait (s)');
  });

  it.each([
    [
      'y',
      { x: 1, y: Number.NaN },
      'y = NaN of series "a" at x = 1 is not accepted; accepted: a finite number',
    ],
    ['x', { x: 'one', y: 1 }, 'x of series "a" at x = one is not accepted; accepted: a finite number'],
    ['error', { x: 1, y: 1, error: -1 }, 'error = -1 of series "a" at x = 1 is not accepted'],
  ])('refuses a bad %s and says where', async (_, point, message) => {
    await expect(chartSvg(chart({ series: [{ name: 'a', points: [point] }] }))).rejects.toThrow(message);
  });

  it('refuses what a logarithmic axis cannot show', async () => {
    const log = { title: 'wait (s)', scale: 'log' } as const;
    await expect(chartSvg(chart({ y: log }))).rejects.toThrow('y = 0 of series "easy & co" at x = 0');
    await expect(chartSvg(chart({ x: log }))).rejects.toThrow('x of series "fcfs" at x = 0');
    await expect(chartSvg(categories({ y: log }))).rejects.toThrow('not accepted for columns');
  });
});
