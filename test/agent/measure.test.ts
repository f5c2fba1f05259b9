/** What a run has used, by each method that this machine has: a job that knows what it does is measured as that. */
import { execFileSync, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { mkdirSync, rmdirSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { Isolation } from '../../src/agent/process/isolation.js';
import { accountsIoWait, Meter, type Sample } from '../../src/agent/process/measure.js';
import { assignment, complete, openRunner, script, temporaryDirectory } from './support.js';

const devices = accountsIoWait() ? 'DELAY_ACCOUNTING' : 'SAMPLES';
const groups = Isolation.open({ mode: 'none' }, '/tmp', 'test-probe').cgroups;

/** Each with the method of `ioWaitS` that goes with it. */
const ways: [string, boolean, string][] = [
  ['samples of processes', false, devices],
  ...(groups ? [['its control group', true, 'CGROUP'] as [string, boolean, string]] : []),
];

/**
 * Computes, reads until the end of what is slow, sleeps: two seconds each, and tells how long each took. With a third argument, the control
 * group that makes its reading slow.
 */
const KNOWN = `
  const { readSync, openSync, writeFileSync } = require('node:fs');
  const [path, group] = process.argv.slice(1);
  const took = {};
  const timed = (name, act) => { const from = performance.now(); act(); took[name] = (performance.now() - from) / 1000; };
  timed('computed', () => { while (process.cpuUsage().user + process.cpuUsage().system < 2e6); });
  if (group) writeFileSync(group, String(process.pid));
  const fd = openSync(path, 'r');
  timed('read', () => { const buffer = Buffer.alloc(65536); while (readSync(fd, buffer) > 0); });
  timed('slept', () => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2000));
  took.cpu = (process.cpuUsage().user + process.cpuUsage().system) / 1e6;
  console.log(JSON.stringify(took));
`;

/** A little ten times a second, for two seconds from when somebody reads. */
function slowPipe(dir: string): string[] {
  const pipe = join(dir, 'pipe');
  execFileSync('mkfifo', [pipe]);
  const text = `exec >"$0"; i=0; while [ $i -lt 20 ]; do sleep 0.1; echo some; i=$((i+1)); done`;
  const feeder = spawn('/bin/sh', ['-c', text, pipe]);
  onTestFinished(() => void feeder.kill());
  return [pipe];
}

/** A file that is not in memory, and a group of version 1 whose members get it at such a rate that it takes two seconds. */
function slowDisk(dir: string): string[] {
  const file = join(dir, 'file');
  writeFileSync(file, Buffer.alloc(20e6, 1), { flush: true });
  execFileSync('dd', [`of=${file}`, 'oflag=nocache', 'conv=notrunc', 'count=0', 'status=none']);
  const group = throttle(dir, 10_000_000);
  onTestFinished(() => rmdirSync(group));
  return [file, join(group, 'cgroup.procs')];
}

/** @throws where there are no such groups, they are not ours, or the directory is on no disk of its own */
function throttle(dir: string, bytesPerS: number): string {
  const { dev } = statSync(dir);
  const disk = `${(dev >> 8) & 0xfff}:${(dev & 0xff) | ((dev >> 12) & 0xfff00)}`;
  const group = `/sys/fs/cgroup/blkio/switchyard-test-${randomUUID()}`;
  mkdirSync(group);
  try {
    writeFileSync(join(group, 'blkio.throttle.read_bps_device'), `${disk} ${bytesPerS}`);
  } catch (error) {
    rmdirSync(group);
    throw error;
  }
  return group;
}

const slow: [string, (dir: string) => string[]][] = [['a pipe', slowPipe]];
try {
  rmdirSync(throttle(tmpdir(), 1e9));
  slow.push(['a disk', slowDisk]);
} catch (error) {
  it.skip(`reading from a throttled disk: none can be had here (${(error as Error).message})`);
}

describe.runIf(process.platform === 'linux')('a run is measured as what it is', () => {
  it.each(ways)('by %s', async (_name, cgroups, method) => {
    const runner = await openRunner({
      isolation: (at, id) => Isolation.open({ mode: 'none', cgroups }, at, id),
    });
    const measure = async ([what, prepare]: (typeof slow)[number]): Promise<void> => {
      const dir = temporaryDirectory();
      const given = prepare(dir);
      const end = await complete(
        runner,
        assignment(`job_${what.slice(2)}`, process.execPath, '-e', KNOWN, ...given),
      );
      const took = JSON.parse(end.stdout!.text) as {
        computed: number;
        read: number;
        slept: number;
        cpu: number;
      };
      expect(end).toMatchObject({ cause: 'EXITED_ZERO', cpuMethod: cgroups ? 'CGROUP' : 'PROC' });
      // Where the kernel accounts for delays wrongly, samples are taken instead.
      expect(method === 'DELAY_ACCOUNTING' ? [method, 'SAMPLES'] : [method]).toContain(end.ioWaitMethod);
      // The shares of the job itself: neither how fast this machine is nor what else it does changes them.
      const said = `${what}: ${end.cpuS} s of CPU time, ${end.ioWaitS} s of waiting, ${JSON.stringify(took)}`;
      expect(Math.abs(end.cpuS! / took.cpu - 1), said).toBeLessThan(0.15);
      expect(Math.abs(end.ioWaitS! / took.read - 1), said).toBeLessThan(0.15);
      expect(end.peakMemoryMb).toBeGreaterThan(3);
    };
    // A shell that reads what its child will say, and one that reads from a pipe of the run's own: neither computing nor input and output.
    const rest = async (): Promise<void> => {
      const idle = await complete(runner, script('job_idle', 'x=$(sleep 0.8; echo done); sleep 0.8 | cat'));
      expect(idle.cpuS).toBeLessThan(0.4);
      // Programs are read from a disk that others use; what it waits for in vain would be 0.8 s each.
      expect(idle.ioWaitS).toBeLessThan(0.4);
    };
    await Promise.all([...slow.map(measure), rest()]);
  });
});

it('delay accounting is believed as long as it can be true, and threads that wait together are one wait', () => {
  const sample = (pid: number, state: string, ioWaitTicks: number, cpuTicks = 0): Sample => ({
    ...{ pid, state, ioWaitTicks, cpuTicks, threads: 1, anonymousBytes: 0, sharedBytes: 0 },
  });
  const measure = (...looks: Sample[][]) => {
    const meter = new Meter(0, true, true);
    for (const [i, samples] of looks.entries()) meter.take(samples, 100 * (i + 1));
    const { ioWaitS, ioWaitMethod } = meter.result(null, { cpuS: null, bytes: null }, 0);
    return [ioWaitMethod, Math.round(ioWaitS! * 1000)];
  };
  // A wait of 0.3 s is told when it is over.
  const long = [[sample(1, 'D', 0)], [sample(1, 'D', 0)], [sample(1, 'D', 0)], [sample(1, 'R', 30)]];
  expect(measure(...long)).toEqual(['DELAY_ACCOUNTING', 300]);
  const two = [1, 2].map((pid) => sample(pid, 'R', 10));
  expect(measure(two)).toEqual(['DELAY_ACCOUNTING', 100]);
  // All the time since the machine was booted: what was seen counts instead.
  expect(measure([sample(1, 'D', 0)], [sample(1, 'R', 220_028)], [sample(1, 'D', 220_030)])).toEqual([
    'SAMPLES',
    200,
  ]);
});

it('devices are busy as they were last seen, until the next look or the end; one that tells nothing ends nothing', () => {
  const used = (meter: Meter) => {
    const { deviceS, deviceMemoryMb } = meter.result(null, { cpuS: null, bytes: null }, 30_000);
    return [deviceS, deviceMemoryMb];
  };
  const looked = (meter: Meter): Meter => {
    meter.takeDevices(
      [
        { busy: 0.5, memoryMb: 100 },
        { busy: 1, memoryMb: 200 },
      ],
      10_000,
    );
    meter.takeDevices([{ busy: 1, memoryMb: 500 }, null], 15_000);
    meter.takeDevices(
      [
        { busy: 0, memoryMb: 50 },
        { busy: 0.5, memoryMb: 50 },
      ],
      20_000,
    );
    return meter;
  };
  // 10 s with 1.5, 10 s with 0.5 and the last 10 s the same.
  expect(used(looked(new Meter(0, true, false)))).toEqual([25, 300]);
  expect(used(new Meter(0, true, false))).toEqual([null, null]);
  // An earlier agent has not told what it saw.
  expect(used(looked(new Meter(0, false, false)))).toEqual([null, null]);
});
