/** What the agent finds on a host, and what a run is given of it. */
import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import {
  amdDevices,
  declaredDevices,
  devicesOf,
  findDevices,
  type HostDevice,
  nvidiaDevices,
  sysDevices,
} from '../../src/agent/devices.js';

const folder = (): string => mkdtempSync(join(tmpdir(), 'switchyard-devices-'));

describe('devices of a host', () => {
  it('are those of nvidia-smi', () => {
    expect(
      nvidiaDevices(
        '0, NVIDIA A100-SXM4-40GB, 40960, GPU-1a\n1, NVIDIA A100-SXM4-40GB, 40960, GPU-2b\nNo devices\n',
      ),
    ).toMatchObject([
      {
        id: 'gpu0',
        kind: 'gpu',
        model: 'NVIDIA A100-SXM4-40GB',
        memoryMb: 42_950,
        environment: { CUDA_VISIBLE_DEVICES: 'GPU-1a' },
      },
      { id: 'gpu1', files: ['/dev/nvidia1', '/dev/nvidiactl', '/dev/nvidia-uvm', '/dev/nvidia-uvm-tools'] },
    ]);
  });

  it('are those of rocm-smi', () => {
    const told = {
      card0: { 'Card Series': 'MI250', 'VRAM Total Memory (B)': '68702699520' },
      system: { 'Driver version': '6' },
    };
    expect(amdDevices(JSON.stringify(told))).toMatchObject([
      {
        id: 'gpu0',
        model: 'MI250',
        memoryMb: 68_703,
        files: ['/dev/kfd', '/dev/dri/renderD128'],
        environment: { ROCR_VISIBLE_DEVICES: '0' },
      },
    ]);
    expect(amdDevices('ROCm is not there')).toEqual([]);
  });

  it('are those whose driver tells their memory in /sys', () => {
    const root = folder();
    for (const [name, bytes] of [
      ['card0', null],
      ['card10', '34342961152'],
      ['card2', '34342961152'],
    ] as const) {
      const device = join(root, 'class', 'drm', name, 'device');
      mkdirSync(device, { recursive: true });
      writeFileSync(join(device, 'vendor'), '0x1002\n');
      writeFileSync(join(device, 'device'), '0x738c\n');
      if (bytes !== null) writeFileSync(join(device, 'mem_info_vram_total'), `${bytes}\n`);
    }
    expect(sysDevices(root).map(({ id, model, memoryMb }) => [id, model, memoryMb])).toEqual([
      ['gpu0', '0x1002:0x738c', 34_343],
      ['gpu1', '0x1002:0x738c', 34_343],
    ]);
    expect(sysDevices(join(root, 'nowhere'))).toEqual([]);
  });

  it('are declared in a directory, and a mistake there is said', async () => {
    const directory = folder();
    writeFileSync(join(directory, 'tape0.json'), JSON.stringify({ kind: 'tape', files: ['/dev/st0'] }));
    writeFileSync(join(directory, 'README'), 'not one');
    expect(await findDevices(directory, null)).toContainEqual({
      ...{ id: 'tape0', kind: 'tape', model: null, memoryMb: 0, shares: 1, link: null },
      ...{ files: ['/dev/st0'], environment: {} },
    });
    for (const [given, message] of [
      [{ kind: '' }, /bad.json: kind/],
      [{ kind: 'x', files: ['/etc/passwd'] }, /bad.json: files.*below \/dev/],
      [{ kind: 'x', files: ['/dev/../etc/passwd'] }, /bad.json: files/],
      [{ kind: 'x', shares: 0 }, /bad.json: shares is 0/],
      [{ kind: 'x', environment: { 'A B': '1' } }, /bad.json: environment/],
    ] as const) {
      writeFileSync(join(directory, 'bad.json'), JSON.stringify(given));
      expect(() => declaredDevices(directory)).toThrow(message);
    }
    writeFileSync(join(directory, 'bad.json'), '{');
    expect(() => declaredDevices(directory)).toThrow(/bad.json: .*; accepted: a JSON object/);
  });
});

describe('a run', () => {
  const host = ['a', 'b', 'c', 'd'].map(
    (id, i): HostDevice => ({
      ...{ id, kind: 'gpu', model: null, memoryMb: 0, shares: 1, link: null },
      files: [`/dev/${id}`, '/dev/all'],
      environment: { CUDA_VISIBLE_DEVICES: String(i) },
    }),
  );
  const machines = [
    { tasks: 1, devices: ['a'] },
    { tasks: 2, devices: ['c', 'd/1'] },
  ];

  it('has what its task has, and nothing of other tasks', () => {
    expect(devicesOf({ machines, tasks: 3, task: 2 }, host)).toEqual({
      units: ['d/1'],
      files: ['/dev/d', '/dev/all'],
      environment: { CUDA_VISIBLE_DEVICES: '3', SWITCHYARD_DEVICES: 'd/1' },
    });
    expect(devicesOf({ machines, tasks: 3, task: 0 }, host).units).toEqual(['a']);
    expect(devicesOf({ machines: machines.slice(1), tasks: 2 }, host)).toEqual({
      units: ['c', 'd/1'],
      files: ['/dev/c', '/dev/all', '/dev/d'],
      environment: { CUDA_VISIBLE_DEVICES: '2,3', SWITCHYARD_DEVICES: 'c,d/1' },
    });
  });

  it('without any is told of none, and one with what is not there does not begin', () => {
    expect(devicesOf({ machines: [{ tasks: 1 }], tasks: 1 }, host)).toEqual({
      units: [],
      files: [],
      environment: {},
    });
    expect(() => devicesOf({ machines: [{ tasks: 1, devices: ['z'] }], tasks: 1 }, host)).toThrow(
      'device z is not on this host',
    );
  });
});
