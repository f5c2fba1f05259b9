import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { PALETTE } from '../../src/plots/chart.js';
import { pictures } from '../../src/plots/pictures.js';
import { runSimulation } from '../../src/simulator/engine.js';
import { policyNamed } from '../../src/simulator/policies.js';
import {
  DEFAULT_WINDOW_S,
  GanttSink,
  type GanttWindow,
  MAX_BARS,
  type PlotRecord,
  plotRecord,
} from '../../src/simulator/record.js';
import { MemorySink } from '../../src/simulator/sink.js';
import { countedWorld } from '../../src/simulator/sites.js';
import { summarize } from '../../src/simulator/statistics.js';
import type { SimJob } from '../../src/simulator/workload.js';
import { simJobs } from '../simulator/support/jobs.js';
import { cases } from '../support/seed.js';
import { box, corners, marks, parseSvg, texts } from './svg.js';

const WHOLE: GanttWindow = { fromS: null, toS: null };

function simulated(jobs: SimJob[], capacities: number[], window = WHOLE, policy = 'easy') {
  const world = countedWorld(
    capacities.map((processors, i) => ({ id: i + 1, name: `site ${i + 1}`, processors })),
  );
  const processors = capacities.reduce((sum, each) => sum + each, 0);
  const times = new MemorySink(jobs.length);
  const gantt = new GanttSink(world, window, jobs);
  runSimulation(world, jobs, { policy: policyNamed(policy, 1), eventOrder: 'batch' }, [times, gantt]);
  const record = plotRecord(jobs, times, processors, gantt);
  return { record, times, summary: summarize(jobs, times, processors), processors };
}

/** On 4 processors: A has all until 100, then B has 0 and 1 until 140, C has 2 and 3 until 120. */
const TINY = simJobs([
  { submittedAt: 0, runS: 100, cpusPerTask: 4 },
  { submittedAt: 10, runS: 40, cpusPerTask: 2 },
  { submittedAt: 40, runS: 20, cpusPerTask: 2 },
]);

describe('what is kept for pictures', () => {
  it('is what a small workload comes to by hand', () => {
    const { record } = simulated(TINY, [4]);
    expect(record.waits).toEqual([
      { waitS: 0, percent: 100 / 3 },
      { waitS: 60, percent: 200 / 3 },
      { waitS: 90, percent: 100 },
    ]);
    const { bins, ...usage } = record.usage;
    expect({ ...usage, bins: bins.length }).toEqual({ fromS: 0, toS: 140, binS: 1, bins: 140 });
    const at = (second: number) => Object.values(bins[second]!);
    expect([at(0), at(10), at(39), at(40), at(99), at(100), at(119), at(120), at(139)]).toEqual([
      [100, 0, 0],
      [100, 1, 2],
      [100, 1, 2],
      [100, 2, 4],
      [100, 2, 4],
      [100, 0, 0],
      [100, 0, 0],
      [50, 0, 0],
      [50, 0, 0],
    ]);
    expect(record.gantt).toEqual({
      fromS: 0,
      toS: 140,
      sites: [{ name: 'site 1', processors: 4 }],
      bars: [
        { site: 0, job: 1, first: 0, last: 3, startS: 0, endS: 100 },
        { site: 0, job: 2, first: 0, last: 1, startS: 100, endS: 140 },
        { site: 0, job: 3, first: 2, last: 3, startS: 100, endS: 120 },
      ],
      leftOut: 0,
    });
  });

  it('cuts bars at the window, and leaves out what ends before or starts after it', () => {
    const bars = (window: GanttWindow) =>
      simulated(TINY, [4], window).record.gantt.bars.map(({ job, startS, endS }) => [job, startS, endS]);
    expect(bars({ fromS: 50, toS: 110 })).toEqual([[1, 50, 100], [2, 100, 110], [3, 100, 110]]); // biome-ignore format: data
    expect(bars({ fromS: 100, toS: 500 })).toEqual([[2, 100, 140], [3, 100, 120]]); // biome-ignore format: data
    expect(bars({ fromS: 20, toS: 100 })).toEqual([[1, 20, 100]]);
    expect(bars({ fromS: null, toS: 100 })).toEqual([[1, 0, 100]]);
    expect(bars({ fromS: 1e6, toS: null })).toEqual([]);
  });

  it('by default looks at the day after the job in the middle of a long trace', () => {
    const days = simJobs([0, 1, 2, 3, 4].map((day) => ({ submittedAt: day * 86_400, runS: 1000 })));
    const { fromS, toS, bars } = simulated(days, [1]).record.gantt;
    expect([fromS, toS]).toEqual([2 * 86_400, 2 * 86_400 + DEFAULT_WINDOW_S]);
    expect(bars.map(({ job }) => job)).toEqual([3]);
  });

  it('counts jobs that nothing can run as waiting to the end, and not among the waits', () => {
    const jobs = simJobs([
      { submittedAt: 0, runS: 10, cpusPerTask: 1 },
      { submittedAt: 4, runS: 10, cpusPerTask: 9 },
    ]);
    const { waits, usage } = simulated(jobs, [1]).record;
    expect(waits).toEqual([{ waitS: 0, percent: 100 }]);
    expect(usage.bins.map(({ queuedJobs }) => queuedJobs)).toEqual([0, 0, 0, 0, 1, 1, 1, 1, 1, 1]);
  });

  it('agrees with the summary and with the jobs, whatever the workload', () => {
    const job = fc.record({
      submittedAt: fc.nat(140_000).map((sevenths) => sevenths / 7),
      runS: fc.integer({ min: 1, max: 3000 }),
      cpusPerTask: fc.integer({ min: 1, max: 5 }),
      siteId: fc.constantFrom(1, 2),
    });
    const window = fc.record({ fromS: fc.nat(10_000), toS: fc.integer({ min: 10_001, max: 30_000 }) });
    fc.assert(
      fc.property(fc.array(job, { minLength: 1, maxLength: 60 }), window, (given, asked) => {
        const jobs = simJobs(given.sort((a, b) => a.submittedAt - b.submittedAt));
        const { record, times, summary, processors } = simulated(jobs, [5, 7], asked);
        const { fromS, toS, binS, bins } = record.usage;
        const lengths = bins.map((_, i) => Math.min(binS, toS - fromS - i * binS));
        const over = (of: (bin: (typeof bins)[number]) => number) =>
          bins.reduce((sum, bin, i) => sum + of(bin) * (lengths[i] as number), 0);
        expect(bins.length).toBeLessThanOrEqual(500);
        expect(over((bin) => bin.utilizationPercent) / summary.makespan).toBeCloseTo(
          100 * summary.utilization,
          6,
        );
        const waits = jobs.map(({ job: { submittedAt: submit } }, i) => (times.starts[i] as number) - submit);
        expect(over((bin) => bin.queuedJobs)).toBeCloseTo(
          waits.reduce((sum, wait) => sum + wait, 0),
          4,
        );
        for (const { waitS, percent } of record.waits)
          expect(percent).toBeCloseTo((100 * waits.filter((wait) => wait <= waitS).length) / jobs.length, 9);
        expect(record.waits.at(-1)).toEqual({ waitS: summary.wait.max, percent: 100 });
        const { bars, sites } = record.gantt;
        expect(sites.reduce((sum, site) => sum + site.processors, 0)).toBe(processors);
        const inside = (index: number) =>
          Math.max(0, Math.min(times.ends[index]!, asked.toS) - Math.max(times.starts[index]!, asked.fromS));
        const areas = new Map<number, number>();
        for (const { job, first, last, startS, endS } of bars)
          areas.set(job, (areas.get(job) ?? 0) + (last + 1 - first) * (endS - startS));
        jobs.forEach(({ job, sourceId }, i) => {
          expect(areas.get(sourceId) ?? 0).toBeCloseTo(inside(i) * job.cpusPerTask, 6);
        });
        bars.forEach((a, i) => {
          expect(a.last).toBeLessThan(sites[a.site]!.processors);
          for (const b of bars.slice(i + 1))
            expect(
              a.site === b.site &&
                a.first <= b.last &&
                b.first <= a.last &&
                a.startS < b.endS &&
                b.startS < a.endS,
            ).toBe(false);
        });
      }),
      { numRuns: cases(50) },
    );
  });

  it('is small whatever the trace is, and says how much of the window is left out', async () => {
    const many = simJobs(
      Array.from({ length: 30_000 }, (_, i) => ({ submittedAt: 7 * i, runS: 500 + ((i * 7919) % 900) })),
    );
    const { record, times } = simulated(many, [120], { fromS: 1000, toS: 100_000 });
    const { waits, usage, gantt } = record;
    expect(waits.length).toBeLessThanOrEqual(501);
    expect(usage.bins.length).toBeLessThanOrEqual(500);
    expect(gantt.bars.length).toBeLessThanOrEqual(MAX_BARS);
    expect(gantt.toS).toBeLessThan(100_000);
    expect(Math.max(...gantt.bars.map(({ endS }) => endS))).toBeLessThanOrEqual(gantt.toS);
    const whole = { fromS: 1000, toS: gantt.toS };
    expect(simulated(many, [120], whole).record.gantt.bars).toEqual(gantt.bars);
    const ran = many.filter((_, i) => times.starts[i]! < 100_000 && times.ends[i]! > 1000).length;
    expect(gantt.leftOut).toBe(ran - gantt.bars.length);
    const drawn = await pictures('many', [{ label: 'easy', record }]);
    for (const { name, svg } of drawn) expect(svg.length, name).toBeLessThan(600_000);
    const svg = drawn.find(({ name }) => name === 'gantt')?.svg as string;
    expect(marks(svg, 'rect')).toHaveLength(gantt.bars.length);
    expect(
      texts(svg).some((text) =>
        text.includes(`Cut after ${gantt.bars.length} rectangles: ${gantt.leftOut} jobs`),
      ),
    ).toBe(true);
  });

  it('keeps a picture when more runs are in the window from its beginning than it can show', () => {
    const wide = simJobs(Array.from({ length: MAX_BARS + 500 }, () => ({ submittedAt: 0, runS: 100 })));
    const { gantt } = simulated(wide, [5000], { fromS: 10, toS: 50 }).record;
    expect(gantt.bars).toHaveLength(MAX_BARS);
    expect(gantt).toMatchObject({ fromS: 10, toS: 50, leftOut: 500 });
  });

  it('cuts before all that start at one instant, not between them', () => {
    const instants = [...Array(MAX_BARS - 100).fill(0), ...Array(500).fill(20)];
    const jobs = simJobs(instants.map((submittedAt) => ({ submittedAt, runS: 100 })));
    const { gantt } = simulated(jobs, [5000], { fromS: 10, toS: 50 }).record;
    expect(gantt.bars).toHaveLength(MAX_BARS - 100);
    expect(gantt).toMatchObject({ fromS: 10, toS: 20, leftOut: 500 });
  });
});

describe('pictures', () => {
  const svgs = async (drawn: { label: string; record: PlotRecord }[]): Promise<Map<string, string>> =>
    new Map((await pictures('tiny.swf & co', drawn)).map(({ name, svg }) => [name, svg]));

  it('show a small workload as it is by hand', async () => {
    const all = await svgs([{ label: 'easy', record: simulated(TINY, [4]).record }]);
    expect([...all.keys()]).toEqual(['wait', 'utilization', 'queued-jobs', 'queued-cpus', 'gantt']);
    for (const svg of all.values()) {
      expect(texts(svg)).toContain('tiny.swf & co');
      expect(svg).not.toMatch(/\bid="/);
    }
    // 720 pixels from 1 s to 90 s, 320 from 0 to 100 %.
    const wait = corners(marks(all.get('wait')!, 'line')[0]!);
    const sixty = (720 * Math.log(60)) / Math.log(90);
    expect(wait[0]).toEqual([0, 213.333]);
    expect(wait[1]![0]).toBeCloseTo(sixty, 2);
    expect(wait.at(-1)).toEqual([720, 0]);
    // 900 pixels from 0 to 140 s, 260 from 0 to 100 %: half of the processors after 120 s.
    const busy = corners(marks(all.get('utilization')!, 'line')[0]!);
    expect(busy[0]).toEqual([0, 0]);
    expect(busy.filter(([, y]) => y === 130)[0]).toEqual([Number(((900 * 120) / 140).toFixed(3)), 130]);
    expect(busy.at(-1)).toEqual([900, 130]);
    // 16 pixels or more for a processor: 4 of them make the least height, 120.
    const bars = marks(all.get('gantt')!, 'rect').map(box);
    const rounded = bars.map(({ x, y, width, height }) => [x, y, width, height].map(Math.round));
    expect(rounded).toEqual([
      [0, 0, 643, 120],
      [643, 60, 257, 60],
      [643, 0, 129, 60],
    ]);
    expect(marks(all.get('gantt')!, 'text').map(({ text }) => text)).toEqual(['1', '2', '3']);
  });

  it('put several policies side by side: a line each, a panel each, a Gantt chart each', async () => {
    const drawn = ['fcfs', 'easy', 'conservative'].map((label) => ({
      label,
      record: simulated(TINY, [4], WHOLE, label).record,
    }));
    const all = await svgs(drawn);
    expect([...all.keys()].slice(4)).toEqual(['gantt-fcfs', 'gantt-easy', 'gantt-conservative']);
    for (const name of ['wait', 'utilization', 'queued-jobs', 'queued-cpus']) {
      const lines = marks(all.get(name)!, 'line');
      expect(lines.map(({ attributes }) => attributes.stroke)).toEqual(PALETTE.slice(0, 3));
    }
    expect(texts(all.get('utilization')!).filter((text) => text === 'in use (%)')).toHaveLength(3);
    for (const { label } of drawn) expect(texts(all.get('wait')!)).toContain(label);
  });

  it('have the same time in all Gantt charts, though one policy is done earlier', async () => {
    const ends = [60, 30].map((runS, i) => {
      const jobs = simJobs([{ submittedAt: 0, runS }]);
      return { label: `p${i}`, record: simulated(jobs, [1]).record };
    });
    const all = await svgs(ends);
    const widths = ['gantt-p0', 'gantt-p1'].map((name) => box(marks(all.get(name)!, 'rect')[0]!).width);
    expect(widths).toEqual([900, 450]);
  });

  it('show sites on top of each other, by name', async () => {
    const jobs = simJobs([
      { submittedAt: 0, runS: 10, cpusPerTask: 2, siteId: 1 },
      { submittedAt: 0, runS: 10, cpusPerTask: 1, siteId: 2 },
    ]);
    const svg = (await svgs([{ label: 'easy', record: simulated(jobs, [2, 6]).record }])).get('gantt')!;
    expect(texts(svg)).toEqual(expect.arrayContaining(['site 1', 'site 2', 'processors, site by site']));
    // 8 processors of 16 pixels, the first at the bottom.
    expect(marks(svg, 'rect').map(box)).toEqual([
      { x: 0, y: 96, width: 900, height: 32 },
      { x: 0, y: 80, width: 900, height: 16 },
    ]);
  });

  it('leave out processors that nobody has when there are too many', async () => {
    const jobs = simJobs([
      { submittedAt: 0, runS: 10, cpusPerTask: 2, siteId: 1 },
      { submittedAt: 0, runS: 10, cpusPerTask: 6, siteId: 2 },
    ]);
    const svg = (await svgs([{ label: 'easy', record: simulated(jobs, [5000, 5000]).record }])).get('gantt')!;
    expect(marks(svg, 'rect').map(box)).toEqual([
      { x: 0, y: 96, width: 900, height: 32 },
      { x: 0, y: 0, width: 900, height: 96 },
    ]);
    expect(texts(svg).join()).toContain('are not shown');
  });

  it('can be drawn of nothing', async () => {
    const all = await svgs([{ label: 'easy', record: simulated([], [4]).record }]);
    for (const svg of all.values()) expect(parseSvg(svg).name).toBe('svg');
    expect(texts(all.get('gantt')!)).toContain('No job ran in this window.');
  });
});
