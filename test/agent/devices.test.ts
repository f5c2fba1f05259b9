/** What the agent finds on a host, and what a run is given of it. */
import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import {
  amdDevices,
  amdUse,
  declaredDevices,
  devicesOf,
  findDevices,
  type HostDevice,
  nvidiaDevices,
  nvidiaUse,
  sysDevices,
  sysUse,
} from '../../src/agent/devices.js';
import { measuredDevices } from '../../src/agent/process/device-use.js';
import { h100, playNvidia, topology } from '../support/nvidia.js';
import { complete, openRunner, script } from './support.js';

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

  it('of AMD are of one group where Infinity Fabric joins them, also by way of others', () => {
    const cards = Object.fromEntries(
      [0, 1, 2, 3, 4].map((i) => [
        `card${i}`,
        { 'Card Series': 'MI250', 'VRAM Total Memory (B)': '1000000' },
      ]),
    );
    const links = (types: Record<string, string>) =>
      JSON.stringify({
        system: Object.fromEntries(
          Object.entries(types).map(([pair, type]) => [
            `(Topology) Link type between DRM devices ${pair}`,
            type,
          ]),
        ),
      });
    const groups = (text?: string) => amdDevices(JSON.stringify(cards), text).map(({ link }) => link);
    const joined = links({ '0 and 1': 'XGMI', '0 and 2': 'PCIE', '1 and 3': 'XGMI', '2 and 4': 'XGMI' });
    expect(groups(joined)).toEqual(['xgmi0', 'xgmi0', 'xgmi2', 'xgmi0', 'xgmi2']);
    // Two groups that a later pair joins are one.
    const late = links({ '0 and 1': 'XGMI', '2 and 3': 'XGMI', '1 and 2': 'XGMI', '3 and 4': 'PCIE' });
    expect(new Set(groups(late).slice(0, 4)).size).toBe(1);
    expect(groups(late)[4]).toBeNull();
    for (const text of [undefined, '', 'not supported', '{}', links({ '0 and 0': 'XGMI' })])
      expect(groups(text)).toEqual([null, null, null, null, null]);
  });

  it('of AMD are looked for with all that rocm-smi tells', async () => {
    const bin = folder();
    const told = Object.fromEntries(
      ['card0', 'card1'].map((name) => [
        name,
        { 'Card Series': 'MI300X', 'VRAM Total Memory (B)': '2000000' },
      ]),
    );
    const topology = { system: { '(Topology) Link type between DRM devices 0 and 1': 'XGMI' } };
    const program = join(bin, 'rocm-smi');
    writeFileSync(
      program,
      `#!/bin/sh\ncase "$*" in *--showtopotype*) echo '${JSON.stringify(topology)}';; *--showmeminfo*) echo '${JSON.stringify(told)}';; esac\n`,
      { mode: 0o755 },
    );
    vi.stubEnv('PATH', `${bin}:${process.env.PATH}`);
    onTestFinished(() => {
      vi.unstubAllEnvs();
    });
    expect(await findDevices(null, null)).toMatchObject([
      { id: 'gpu0', model: 'MI300X', link: 'xgmi0' },
      { id: 'gpu1', model: 'MI300X', link: 'xgmi0' },
    ]);
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
    // Of one hive; a card without links has none, or 0.
    expect(sysDevices(root).map(({ link }) => link)).toEqual([null, null]);
    for (const [name, hive] of [
      ['card2', '0'],
      ['card10', '9734217390'],
    ] as const) {
      const info = join(root, 'class', 'drm', name, 'device', 'xgmi_hive_info');
      mkdirSync(info);
      writeFileSync(join(info, 'xgmi_hive_id'), `${hive}\n`);
    }
    expect(sysDevices(root).map(({ link }) => link)).toEqual([null, 'hive9734217390']);
    const second = join(root, 'class', 'drm', 'card10', 'device');
    writeFileSync(join(second, 'gpu_busy_percent'), '40\n');
    writeFileSync(join(second, 'mem_info_vram_used'), '2000000\n');
    expect(sysDevices(root).map(({ told }) => told)).toEqual([false, true]);
    expect(sysUse(root)).toEqual([['gpu1', { busy: 0.4, memoryMb: 2 }]]);
  });

  it('tell what is used of them, or nothing', () => {
    const lines = '0, 37, 1024\n1, [N/A], 3\n2, 0, [Not Supported]\n3, 101, 0\nNo devices\n';
    expect(nvidiaUse(lines)).toEqual([
      ['gpu0', { busy: 0.37, memoryMb: 1_073.741824 }],
      ['gpu3', { busy: 1, memoryMb: 0 }],
    ]);
    const cards = {
      card0: { 'GPU use (%)': '25', 'VRAM Total Used Memory (B)': '3000000' },
      card1: { 'VRAM Total Used Memory (B)': '3000000' },
      system: {},
    };
    expect(amdUse(JSON.stringify(cards))).toEqual([['gpu0', { busy: 0.25, memoryMb: 3 }]]);
    expect(amdUse('ROCm is not there')).toEqual([]);
  });

  it('are measured for the run that has all of one', () => {
    const device = (id: string, shares: number, told: boolean): HostDevice => ({
      ...{ id, kind: 'gpu', model: null, memoryMb: 0, shares, link: null, files: [], environment: {}, told },
    });
    const host = [
      device('gpu0', 1, true),
      device('gpu1', 2, true),
      device('gpu10', 2, true),
      device('tape', 1, false),
    ];
    const measured = (...devices: string[]) =>
      measuredDevices({ ...script('job_1', ''), machines: [{ name: 'here', tasks: 1, devices }] }, host);
    expect(measured('gpu0', 'tape')).toEqual(['gpu0']);
    expect(measured('gpu1/0', 'gpu10/0', 'gpu10/1')).toEqual(['gpu10']);
    expect(measured()).toEqual([]);
  });

  it('are looked at while a run has one, and its end tells what it used', async () => {
    const nvidia = playNvidia(join(folder(), 'nvidia'), [h100(false)], topology(1, []));
    vi.stubEnv('PATH', nvidia.path);
    onTestFinished(() => void vi.unstubAllEnvs());
    const runner = await openRunner({ devices: await findDevices(null, null) });
    // Its card has been looked at, and what was told has come to the agent.
    const text = `until [ -e '${join(nvidia.directory, 'used')}' ]; do sleep 0.1; done; sleep 2`;
    const run = { ...script('job_1', text), machines: [{ name: 'here', tasks: 1, devices: ['gpu0'] }] };
    const { deviceS, deviceMemoryMb } = await complete(runner, run);
    expect(deviceS).toBeGreaterThan(1);
    expect(deviceMemoryMb).toBeCloseTo(1_048.576);
    expect(await complete(runner, script('job_2', 'sleep 0.3'))).toMatchObject({
      deviceS: null,
      deviceMemoryMb: null,
    });
  });

  it('are declared in a directory, and a mistake there is said', async () => {
    const directory = folder();
    writeFileSync(join(directory, 'tape0.json'), JSON.stringify({ kind: 'tape', files: ['/dev/st0'] }));
    writeFileSync(join(directory, 'README'), 'not one');
    expect(await findDevices(directory, null)).toContainEqual({
      ...{ id: 'tape0', kind: 'tape', model: null, memoryMb: 0, shares: 1, link: null },
      ...{ files: ['/dev/st0'], environment: {} },
    });
    writeFileSync(join(directory, 'card.json'), JSON.stringify({ kind: 'x', shares: 4, oneUser: true }));
    expect(declaredDevices(directory)).toContainEqual(expect.objectContaining({ id: 'card', oneUser: true }));
    for (const [given, message] of [
      [{ kind: 'x', oneUser: 'yes' }, /bad.json: oneUser is "yes"/],
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
