/** How generic resources and licenses of a job are written for Slurm. */
import { expect, test } from 'vitest';
import type { AskedTasks } from '../../src/agent/external/scheduler.js';
import { devicesByNode, gresOf, licensesOf, spreadOf } from '../../src/agent/external/slurm-words.js';

const asked = (given: Partial<AskedTasks>): AskedTasks => ({
  ...{ tasks: 1, cpusPerTask: 1, memoryMbPerTask: 0, resourcesPerTask: [], tasksPerMachine: null },
  ...{ exclusive: null, sameSwitch: null, nodes: null },
  ...given,
});
const a100 = { kind: 'gpu', count: 2, model: 'a100' };
const any = { kind: 'gpu', count: 1, model: null };

test('devices by kind and model are asked for beside amounts, and added up', () => {
  const gres = (given: Partial<AskedTasks>) =>
    gresOf(asked(given)).map(({ kind, model, amount }) => [kind, ...model, amount].join(':'));
  expect(gres({})).toEqual([]);
  expect(gres({ devicesPerTask: [a100] })).toEqual(['gpu:a100:2']);
  expect(gres({ devicesPerTask: [a100, any, { ...a100, count: 1 }] })).toEqual(['gpu:a100:3', 'gpu:1']);
  expect(gres({ resourcesPerTask: [{ kind: 'gpu', amount: 4 }], devicesPerTask: [any] })).toEqual(['gpu:5']);
  expect(gres({ resourcesPerTask: [{ kind: 'tape', amount: 1 }], devicesPerTask: [a100] })).toEqual([
    ...['tape:1', 'gpu:a100:2'],
  ]);
});

test('only GPUs, of any model or each of one, can be asked for by task; else each task has a node of its own', () => {
  expect(devicesByNode(asked({}))).toBe(false);
  expect(devicesByNode(asked({ devicesPerTask: [a100] }))).toBe(false);
  expect(devicesByNode(asked({ devicesPerTask: [a100, { ...any, model: 'v100' }] }))).toBe(false);
  expect(devicesByNode(asked({ devicesPerTask: [a100, any] }))).toBe(true);
  expect(devicesByNode(asked({ devicesPerTask: [{ ...any, kind: 'fpga' }] }))).toBe(true);
  expect(spreadOf(asked({ tasks: 3, devicesPerTask: [a100] })).nodes).toBeNull();
  expect(spreadOf(asked({ tasks: 3, devicesPerTask: [a100, any] })).nodes).toEqual([3, 3]);
});

test('of what a job has of pools Slurm is asked for what it counts itself', () => {
  const pools = [
    { kind: 'cad', amount: 1 },
    { kind: 'matlab', amount: 3 },
  ];
  expect(licensesOf({ pools }, new Set(['matlab', 'other']))).toBe('matlab:3');
  expect(licensesOf({ pools }, undefined)).toBe('');
});
