/** Where the bars of a schedule are. */
import { describe, expect, test } from 'vitest';
import {
  AXIS_PX,
  barAt,
  barBeside,
  type GanttBar,
  heightIn,
  lay,
  ROW_PX,
  ticksOf,
  timesOf,
  usageOver,
} from '../src/ui/gantt-layout';

const MINUTE = 60_000;
const lanes = ['a', 'b', 'c'].map((id) => ({ id, label: id, capacity: 4 }));
const bar = (
  key: string,
  lane: string,
  from: number,
  to: number,
  kind: GanttBar['kind'] = 'past',
): GanttBar => ({
  ...{ key, lane, label: key, about: '', amount: 2, kind },
  ...{ from: from * MINUTE, to: to * MINUTE },
});
const bars = [
  bar('late', 'a', 30, 40),
  bar('early', 'a', 0, 20),
  bar('beside', 'a', 10, 30),
  bar('other', 'c', 12, 50, 'running'),
  bar('promise', 'c', 50, 60, 'promised'),
  bar('gone', 'nowhere', 0, 60),
];
const layout = lay(lanes, bars);
const of = (key: string) => layout.lanes.flatMap((lane) => lane.bars).find((one) => one.key === key)!;

describe('rows', () => {
  test('scroll within the usual height; on a phone all are drawn, up to what a canvas can be', () => {
    expect([heightIn(layout, 390, 420), heightIn(layout, 1280, 420)]).toEqual([420, 420]);
    const many = (count: number) =>
      lay(
        Array.from({ length: count }, (_, i) => ({ ...lanes[0]!, id: `${i}` })),
        [],
      );
    expect(heightIn(many(50), 1280, 420)).toBe(420);
    expect(heightIn(many(50), 390, 420)).toBe(AXIS_PX + many(50).height);
    expect(heightIn(many(1000), 390, 420)).toBe(4_000);
  });

  test('bars that overlap are below one another, and a row that is free again is used again', () => {
    expect(layout.lanes.map((lane) => lane.rows)).toEqual([2, 1, 1]);
    expect(['early', 'beside', 'late'].map((key) => of(key).y)).toEqual([0, ROW_PX, 0]);
    expect(of('other').y).toBe(layout.lanes[2]!.y);
    expect(layout.height).toBeGreaterThan(4 * ROW_PX);
  });

  test('a lane has at most eight rows: what has none of its own shares the last', () => {
    const many = lay(
      lanes,
      Array.from({ length: 20 }, (_, i) => bar(`${i}`, 'a', 0, 10)),
    );
    const [first] = many.lanes;
    expect(first!.rows).toBe(8);
    expect(Math.max(...first!.bars.map(({ y }) => y))).toBe(7 * ROW_PX);
  });
});

describe('times', () => {
  const times = timesOf(0, 60 * MINUTE, 100, 700);

  test('go from pixel to pixel and back', () => {
    expect(times(30 * MINUTE)).toBe(400);
    expect(Number(times.invert(400))).toBe(30 * MINUTE);
  });

  test('the axis has round ones, with room for their texts', () => {
    const ticks = ticksOf(times);
    expect(ticks.length).toBeGreaterThan(2);
    expect(ticks.every((at) => at % (5 * MINUTE) === 0)).toBe(true);
    expect(times(ticks[1]!) - times(ticks[0]!)).toBeGreaterThanOrEqual(80);
  });

  test('a point is in the bar of its row, or just beside it', () => {
    const find = (x: number, y: number) => barAt(layout, times, x, y)?.key ?? null;
    expect(find(times(15 * MINUTE), 1)).toBe('early');
    expect(find(times(15 * MINUTE), ROW_PX + 1)).toBe('beside');
    expect(find(times(40 * MINUTE) + 1, 1)).toBe('late');
    expect(find(times(40 * MINUTE) + 5, 1)).toBe(null);
    expect(find(times(15 * MINUTE), layout.lanes[1]!.y + 1)).toBe(null);
  });
});

test('arrow keys reach every bar', () => {
  const go = (from: string | null, arrow: Parameters<typeof barBeside>[2]) =>
    barBeside(layout, from, arrow, 35 * MINUTE)?.key;
  expect(go(null, 'ArrowRight')).toBe('late');
  expect(['early', 'beside', 'late'].map((key) => go(key, 'ArrowRight'))).toEqual(['beside', 'late', 'late']);
  expect(['early', 'beside', 'late'].map((key) => go(key, 'ArrowLeft'))).toEqual([
    'early',
    'early',
    'beside',
  ]);
  expect(go('late', 'ArrowDown')).toBe('other');
  expect(go('promise', 'ArrowUp')).toBe('late');
  expect(go('early', 'ArrowUp')).toBe('early');
  expect(barBeside(lay(lanes, []), null, 'ArrowRight', 0)).toBe(null);
});

test('what is in use is the share of all capacity, without what is only planned', () => {
  const usage = usageOver(
    [bar('half', 'a', 0, 30), bar('plan', 'b', 0, 60, 'reserved')],
    lanes,
    0,
    60 * MINUTE,
  );
  expect(usage[0]).toBeCloseTo(2 / 12);
  expect(usage.at(-1)).toBe(0);
});
