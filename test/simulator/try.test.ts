import { expect, it } from 'vitest';
import { DEFAULT_POLICY } from '../../src/core/index.js';
import { runSimulation } from '../../src/simulator/engine.js';
import { MemorySink } from '../../src/simulator/sink.js';
import { readSwf } from '../../src/simulator/swf.js';
import { cleanTrace } from '../../src/simulator/workload.js';
import { readReference, tracePath } from './support/reference.js';

it.each([
  ['KTH-SP2', 100, 'KTH-SP2.EASY.batch', 'easy', 'batch', 'drop'],
  ['KTH-SP2', 100, 'KTH-SP2.EASY.event', 'easy', 'per-event', 'drop'],
  ['KTH-SP2', 100, 'KTH-SP2.FCFS', 'fcfs', 'batch', 'drop'],
  ['KTH-SP2', 100, 'KTH-SP2.FCFS', 'fcfs', 'per-event', 'drop'],
  ['SDSC-SP2-first4961', 128, 'SDSC-SP2-5k.EASY.event', 'easy', 'per-event', 'drop'],
  ['SDSC-SP2-first4961', 128, 'SDSC-SP2-5k.FCFS', 'fcfs', 'batch', 'drop'],
  ['NASA-iPSC', 128, 'NASA-iPSC.EASY.event', 'easy', 'per-event', 'run'],
  ['NASA-iPSC', 128, 'NASA-iPSC.FCFS', 'fcfs', 'batch', 'run'],
] as const)('%s %s %s %s %s', async (trace, cpus, reference, kind, eventOrder, missingEstimate) => {
  const t = await readSwf(tracePath(trace));
  const w = cleanTrace(t.jobs, { processors: cpus, estimate: 'requested', missingEstimate, overrun: 'kill' });
  console.log(w.jobs.length, w.killed, w.dropped);
  const sink = new MemorySink(w.jobs.length);
  const t0 = performance.now();
  const out = runSimulation(
    {
      sites: [{ id: 1, name: 'a', state: 'UP', localPolicy: null }],
      machines: [
        {
          id: 1,
          siteId: 1,
          cpus,
          memoryMb: 0,
          benchmark: 1,
          os: '',
          arch: '',
          licences: [],
          available: true,
        },
      ],
      licences: [],
      changes: [],
    },
    w.jobs,
    { policy: { ...DEFAULT_POLICY, local: { kind } }, eventOrder },
    [sink],
  );
  console.log(out, performance.now() - t0);
  const by = new Map(w.jobs.map((j, i) => [j.sourceId, i]));
  const ref = readReference(reference);
  let bad = 0;
  for (const r of ref) {
    const i = by.get(r.job_id!)!;
    if (sink.starts[i] !== r.start || sink.ends[i] !== r.end) bad++;
  }
  expect(ref.length).toBe(w.jobs.length);
  expect(bad).toBe(0);
});
