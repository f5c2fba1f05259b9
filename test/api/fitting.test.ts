/** The nodes of a site with a scheduler of its own that windows leave to a job. */
import { expect, test } from 'vitest';
import { fittingNodes, openNodes } from '../../src/api/services/fitting.js';
import { withParts } from '../support/plain-job.js';

const nodes = ['a', 'b', 'c'].map((name, i) => ({
  id: i + 1,
  name,
  has: { cpus: 4, memoryMb: 100, gpu: i },
}));
const single = {
  ...{ tasks: 1, cpusPerTask: 1, memoryMbPerTask: 0, resourcesPerTask: null, tasksPerMachine: null },
  runTimeLimitS: null as number | null,
};
const leftTo = (run: Parameters<typeof openNodes>[3], ...closed: [machineId: number, from: number][]) =>
  openNodes(
    nodes,
    closed.map(([machineId, from]) => ({ machineId, from })),
    1000,
    run,
  )?.map(({ name }) => name) ?? null;
const left = (runTimeLimitS: number | null, ...closed: [machineId: number, from: number][]) =>
  leftTo({ ...single, runTimeLimitS }, ...closed);

test('nodes are left out whose windows a run could reach by its limit', () => {
  expect(left(60, [1, 1060])).toBeNull();
  expect(left(61, [1, 1060])).toEqual(['b', 'c']);
  expect(left(60, [1, 900], [2, 1059])).toEqual(['c']);
  expect(left(null, [1, 1e9])).toEqual(['b', 'c']);
});

test('all are left where the others have no room for the job, and where no window matters', () => {
  expect(left(60, [1, 1000], [2, 1000], [3, 1000])).toBeNull();
  expect(left(60, [4, 1000])).toBeNull();
  expect(left(null)).toBeNull();
  const closed: [number, number] = [3, 1000];
  expect(leftTo({ ...single, tasks: 8 }, closed)).toEqual(['a', 'b']);
  expect(leftTo({ ...single, tasks: 9 }, closed)).toBeNull();
  expect(leftTo({ ...single, tasks: 3, memoryMbPerTask: 60 }, closed)).toBeNull();
  expect(leftTo({ ...single, resourcesPerTask: { gpu: 1 } }, closed)).toEqual(['a', 'b']);
  expect(leftTo({ ...single, resourcesPerTask: { gpu: 2 } }, closed)).toBeNull();
  expect(leftTo({ ...single, tasks: 3, tasksPerMachine: { min: 1, max: 1 } }, closed)).toBeNull();
});

test('of a job of several parts each has nodes of its own that fit, with what the job asks of all', async () => {
  const machines = nodes.map(({ id, name, has: { gpu, ...has } }) => ({
    ...{ id, name, ...has, resources: { gpu }, os: 'linux', architecture: 'x', devices: [], measured: null },
    labels: { gen: String(id), ...(id > 1 && { fast: '' }) },
  }));
  const queries = {
    machinesOfSites: async () => machines,
    sitesByIds: async () => [{ name: 'alps' }],
    closedMachines: async () => [{ machineId: 3, from: 1000 }],
  } as never;
  const run = (machineConstraint: string | null, ...parts: Parameters<typeof withParts>[0]) => {
    const { parts: jobParts, ...asked } = withParts(parts);
    const common = { state: 'ASSIGNED', machineConstraint, image: null, machines: [], runTimeLimitS: 60 };
    return { ...asked, ...common, jobParts };
  };
  const asks = run('fast', { machineConstraint: 'gen > 2' }, {}, { tasks: 8 });
  const plain = run(null, {}, { tasks: 9 });
  const fitting = await fittingNodes(queries, 1, [asks, plain], 1000);
  // The third has a window: it is left out where the others have room.
  expect(fitting(asks)).toEqual({ nodes: null, partNodes: [['c'], ['b'], ['b', 'c']] });
  expect(fitting(plain)).toEqual({ nodes: null, partNodes: [['a', 'b'], null] });
});
