/** What a run has used, by each method that this machine has: a job that knows what it does is measured as that. */
import { execFileSync, spawn } from 'node:child_process';
import { chmodSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { Isolation } from '../../src/agent/process/isolation.js';
import { accountsIoWait } from '../../src/agent/process/measure.js';
import { assignment, complete, openRunner, script, temporaryDirectory } from './support.js';

const devices = accountsIoWait() ? 'DELAY_ACCOUNTING' : 'SAMPLES';
const groups = Isolation.open({ mode: 'none' }, '/tmp', 'test-probe').cgroups;

/** Each with the method of `ioWaitS` that goes with it. */
const ways: [string, boolean, string][] = [
  ['samples of processes', false, devices],
  ...(groups ? [['its control group', true, 'CGROUP'] as [string, boolean, string]] : []),
];

/** Computes, reads from a pipe that is filled slowly from outside, sleeps: two seconds each, and tells how long each took. */
const KNOWN = `
  const { readSync, openSync } = require('node:fs');
  const took = {};
  const timed = (name, act) => { const from = performance.now(); act(); took[name] = (performance.now() - from) / 1000; };
  timed('computed', () => { while (process.cpuUsage().user + process.cpuUsage().system < 2e6); });
  const fd = openSync(process.argv[1], 'r');
  timed('read', () => { const buffer = Buffer.alloc(65536); while (readSync(fd, buffer) > 0); });
  timed('slept', () => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 2000));
  took.cpu = (process.cpuUsage().user + process.cpuUsage().system) / 1e6;
  console.log(JSON.stringify(took));
`;

describe.runIf(process.platform === 'linux')('a run is measured as what it is', () => {
  it.each(ways)('by %s', async (_name, cgroups, ioWaitMethod) => {
    const dir = temporaryDirectory();
    chmodSync(dir, 0o755);
    const runner = await openRunner({
      isolation: (at, id) => Isolation.open({ mode: 'none', cgroups }, at, id),
    });
    const pipe = join(dir, 'pipe');
    execFileSync('mkfifo', [pipe]);
    // A little ten times a second, for two seconds from when somebody reads.
    const feeder = spawn('/bin/sh', [
      '-c',
      `exec >"$0"; i=0; while [ $i -lt 20 ]; do sleep 0.1; echo some; i=$((i+1)); done`,
      pipe,
    ]);
    onTestFinished(() => void feeder.kill());
    const end = await complete(runner, assignment('job_1', process.execPath, '-e', KNOWN, pipe));
    const took = JSON.parse(end.stdout!.text) as {
      computed: number;
      read: number;
      slept: number;
      cpu: number;
    };
    expect(end).toMatchObject({ cause: 'EXITED_ZERO', ioWaitMethod, cpuMethod: cgroups ? 'CGROUP' : 'PROC' });
    // The shares of the job itself: neither how fast this machine is nor what else it does changes them.
    expect(
      Math.abs(end.cpuS! / took.cpu - 1),
      `${end.cpuS} s of CPU time, ${JSON.stringify(took)}`,
    ).toBeLessThan(0.15);
    expect(
      Math.abs(end.ioWaitS! / took.read - 1),
      `${end.ioWaitS} s of waiting, ${JSON.stringify(took)}`,
    ).toBeLessThan(0.15);
    expect(end.peakMemoryMb).toBeGreaterThan(3);
  });

  it.each(ways)(
    'and sleeping, or waiting for one another, is neither computing nor input and output: by %s',
    async (_name, cgroups) => {
      const runner = await openRunner({
        isolation: (at, id) => Isolation.open({ mode: 'none', cgroups }, at, id),
      });
      // A shell that reads what its child will say, and one that reads from a pipe of the run's own.
      const idle = await complete(runner, script('job_1', 'x=$(sleep 0.8; echo done); sleep 0.8 | cat'));
      expect(idle.cpuS).toBeLessThan(0.4);
      expect(idle.ioWaitS).toBeLessThan(0.1);
    },
  );
});
