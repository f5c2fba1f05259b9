/** Where the jobs of a graph stand, by the same ELK as in the browser. */
import ELK from 'elkjs/lib/elk.bundled.js';
import { expect, test } from 'vitest';
import { type GraphNode, layoutBy, lineName, NODE_H, NODE_W } from '../src/pages/graph/layout';

const node = (i: number, level: number, needs: number[] = []): GraphNode => ({
  ...{ id: `job_${i}`, name: null, arrayIndex: null, state: 'BLOCKED', level, needs },
  ...{
    startedAt: null,
    endedAt: null,
    expectedStart: null,
    expectedEnd: null,
    conditions: needs.map(() => 'OK'),
  },
});
const nodes = (count: number, of: (i: number) => GraphNode) => Array.from({ length: count }, (_, i) => of(i));

test.each([
  ['a few', [node(0, 0), node(1, 1, [0]), node(2, 1, [0]), node(3, 2, [1, 2]), node(4, 0)]],
  ['one after another', nodes(10_000, (i) => node(i, i, i === 0 ? [] : [i - 1]))],
  ['none needs another', nodes(3_000, (i) => node(i, 0))],
  [
    'all need one, and one needs all',
    nodes(3_000, (i) =>
      i === 0
        ? node(0, 0)
        : i < 2_999
          ? node(i, 1, [0])
          : node(
              i,
              2,
              Array.from({ length: 2_998 }, (_, on) => on + 1),
            ),
    ),
  ],
  [
    'levels of a hundred',
    nodes(3_000, (i) => node(i, Math.floor(i / 100), i < 100 ? [] : [i - 100 - (i % 100 ? 1 : 0)])),
  ],
])('%s: jobs stand right of those that they need, and none on another', async (_, all) => {
  const { x, y, width, height } = await layoutBy(new ELK(), all);
  const corners = all.map((_, i) => [x[i] as number, y[i] as number] as const);
  for (const [i, { needs }] of all.entries()) {
    const [left, top] = corners[i]!;
    for (const on of needs) expect(left).toBeGreaterThanOrEqual(corners[on]![0] + NODE_W);
    expect(left >= 0 && top >= 0 && left + NODE_W <= width && top + NODE_H <= height).toBe(true);
  }
  // Boxes of one size that overlap are next to one another in a grid of cells of that size.
  const cells = new Map<string, (readonly [number, number])[]>();
  for (const [left, top] of corners) {
    const [column, row] = [Math.floor(left / NODE_W), Math.floor(top / NODE_H)];
    for (const [dc, dr] of [0, 1, -1].flatMap((c) => [0, 1, -1].map((r) => [c, r] as const)))
      for (const [otherLeft, otherTop] of cells.get(`${column + dc} ${row + dr}`) ?? [])
        expect(Math.abs(left - otherLeft) < NODE_W && Math.abs(top - otherTop) < NODE_H).toBe(false);
    const cell = `${column} ${row}`;
    cells.set(cell, [...(cells.get(cell) ?? []), [left, top]]);
  }
});

test('of many that wait for the same one the picture is no column without an end', async () => {
  const { width, height } = await layoutBy(
    new ELK(),
    nodes(10_000, (i) => (i === 0 ? node(0, 0) : node(i, 1, [0]))),
  );
  expect(Math.max(width, height) / Math.min(width, height)).toBeLessThan(3);
});

test('a line that would lead through a job leads around it', async () => {
  const chain = nodes(5, (i) => node(i, i, i === 0 ? [] : [i - 1]));
  const all = [...chain, node(5, 5, [4, 0])];
  const { x, y, turns } = await layoutBy(new ELK(), all);
  const points = turns.get(lineName(0, 5)) ?? [];
  const between = [1, 2, 3, 4].map((i) => [x[i] as number, y[i] as number] as const);
  expect(points.length).toBeGreaterThan(4);
  for (let p = 0; p < points.length; p += 2)
    for (const [left, top] of between) {
      const isIn = points[p]! > left && points[p]! < left + NODE_W;
      expect(isIn && points[p + 1]! > top && points[p + 1]! < top + NODE_H).toBe(false);
    }
});
