/** Where the jobs of a large graph stand. */
import { expect, test } from 'vitest';
import { byLevel, type GraphNode, NODE_H, NODE_W } from '../src/pages/graph/layout';

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

test('jobs stand right of those that they need, beside them, and none on another', () => {
  const wide = 1_000;
  const nodes = Array.from({ length: 10_000 }, (_, i) => {
    const level = Math.floor(i / wide);
    // Each needs the one that is as far from the other end.
    return node(i, level, level === 0 ? [] : [level * wide - 1 - (i % wide)]);
  });
  const { x, y, width, height } = byLevel(nodes);
  const taken = new Set<string>();
  for (const [i, { needs }] of nodes.entries()) {
    const [left, top] = [x[i] as number, y[i] as number];
    for (const on of needs) {
      expect(left).toBeGreaterThanOrEqual((x[on] as number) + NODE_W);
      expect(top).toBe(y[on]);
    }
    taken.add(`${left} ${Math.floor(top / NODE_H)}`);
    expect(left + NODE_W <= width && top + NODE_H <= height).toBe(true);
  }
  expect(taken.size).toBe(nodes.length);
});
