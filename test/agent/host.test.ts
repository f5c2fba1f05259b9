/** What an agent says of its host: how fit it is, and what it is. */
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { HealthCheck } from '../../src/agent/health.js';
import { hostShape, measureHost, Power, parseGpus, standardRun } from '../../src/agent/measure.js';
import { temporaryDirectory, until } from './support.js';

function check(command: string, timeoutMs = 60_000): HealthCheck {
  const health = new HealthCheck({ command, periodMs: 20, timeoutMs });
  onTestFinished(() => health.stop());
  health.start();
  return health;
}

describe('the health command', () => {
  it('says whether the host is fit, again and again; before it has answered the host is not', async () => {
    const dir = temporaryDirectory();
    const health = check(`[ ! -e ${dir}/bad ] || { cat ${dir}/bad; exit 3; }`);
    expect(health.problem).toContain('has not finished yet');
    await until(() => health.problem === null, 'the host to be fit');
    writeFileSync(join(dir, 'bad'), ' the scratch disk is gone\n');
    await until(() => health.problem !== null, 'the host to be unfit');
    expect(health.problem).toBe('the scratch disk is gone');
    writeFileSync(join(dir, 'bad'), '');
    await until(() => health.problem === 'the health command ended with 3', 'a reason without words');
    rmSync(join(dir, 'bad'));
    await until(() => health.problem === null, 'the host to be fit again');
  });

  it('is ended, with all that it has started, when it takes too long or the agent stops', async () => {
    const dir = temporaryDirectory();
    const alive = (file: string): boolean => {
      try {
        const pid = Number(readFileSync(join(dir, file), 'utf8'));
        // The shell makes the file before it writes, and 0 would be this process's own group.
        return pid > 0 && process.kill(pid, 0);
      } catch {
        return false;
      }
    };
    const late = check(`sleep 1000 & echo $! > ${dir}/late; wait`, 300);
    await until(() => late.problem === 'the health command took longer than 0.3 s', 'the end of its time');
    await late.stop();
    await until(() => !alive('late'), 'what it has started to be ended');
    const stopped = check(`sleep 1000 & echo $! > ${dir}/stopped; wait`);
    await until(() => existsSync(join(dir, 'stopped')) && alive('stopped'), 'it to begin');
    await stopped.stop();
    await until(() => !alive('stopped'), 'what it has started to be ended');
  });
});

describe('a host', () => {
  it('is measured: equal parts of it for each of its machines', async () => {
    const { cpus, memoryMb, os, architecture, benchmark } = await measureHost(2);
    const whole = hostShape();
    expect(whole.cpus).toBe(availableParallelism());
    expect({ cpus, memoryMb }).toEqual({
      cpus: Math.max(1, Math.floor(whole.cpus / 2)),
      memoryMb: Math.floor(whole.memoryMb / 2),
    });
    expect([os, architecture]).toEqual([process.platform, process.arch]);
    expect(benchmark).toBeGreaterThan(0);
    // The same work everywhere.
    expect(standardRun()).toBe(standardRun());
  });

  it('has the best power that was measured while it was idle, over restarts', async () => {
    const file = join(temporaryDirectory(), 'power');
    const first = { ...(await measureHost()), benchmark: 33 };
    const powerOf = async (measured: number, idle: boolean, load = 0): Promise<number> => {
      let looked = false;
      const power = new Power(first, {
        ...{ file, idle: () => idle, measure: async () => measured },
        load: () => {
          looked = true;
          return load;
        },
      });
      power.start();
      await until(() => looked || !idle, 'a look');
      await power.stop();
      return power.measured.benchmark;
    };
    expect(await powerOf(100, false)).toBe(33);
    expect(await powerOf(100, true, 1_000)).toBe(33);
    expect(await powerOf(62, true)).toBe(62);
    expect(await powerOf(40, true)).toBe(62);
    // Other CPUs have been put in.
    writeFileSync(file, JSON.stringify({ model: 'another', power: 500 }));
    expect(await powerOf(40, false)).toBe(33);
  });

  it('has the GPUs that nvidia-smi names', () => {
    expect(parseGpus('NVIDIA A100-SXM4, 40GB, 40536\nTesla T4, 15360\n\nno memory\n')).toEqual([
      { name: 'NVIDIA A100-SXM4, 40GB', memoryMb: 42_505 },
      { name: 'Tesla T4', memoryMb: 16_106 },
    ]);
    expect(parseGpus('')).toEqual([]);
  });
});
