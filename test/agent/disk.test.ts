/** A full disk, on a small file system of its own. */
import { spawnSync } from 'node:child_process';
import { readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { Journal } from '../../src/agent/process/journal.js';
import { ProcessRunner } from '../../src/agent/process/runner.js';
import { fill, makeRoom, mayMount, smallDisk } from '../support/small-disk.js';
import { assignment, endOf, ends, openRunner, script, until } from './support.js';

const SIZE_MB = 16;

describe.skipIf(!mayMount)('a full disk', () => {
  it('starts nothing; when there is room again everything runs and ends, and no job has failed for it', async () => {
    const dir = smallDisk(SIZE_MB);
    const warnings: string[] = [];
    const runner = await openRunner({
      stateDir: join(dir, 'state'),
      warn: (_, message) => warnings.push(message),
    });
    const early = ['job_1', 'job_2', 'job_3', 'job_4'];
    for (const id of early) runner.start(script(id, `while [ ! -e ${dir}/go ]; do sleep 0.05; done; exit 3`));
    await until(() => runner.reports(100).length === 4, 'the first to be started');
    writeFileSync(join(dir, 'go.new'), '');
    fill(dir);
    const late = Array.from({ length: 30 }, (_, i) => `job_${i + 10}`);
    for (const id of late) runner.start(assignment(id, 'true'));
    await until(
      () => warnings.includes('the disk is almost full: no runs are started'),
      'a look at the disk',
    );
    // What runs may end: room for that was kept back.
    spawnSync('mv', [join(dir, 'go.new'), join(dir, 'go')]);
    await until(() => ends(runner).length === 4, 'the first to end');
    for (const id of early) expect(endOf(runner, id)).toMatchObject({ cause: 'EXITED_NONZERO', exitCode: 3 });
    expect(runner.runs()).toHaveLength(late.length);
    makeRoom(dir);
    await until(() => ends(runner).length === 4 + late.length, 'all to end');
    for (const id of late) expect(endOf(runner, id)).toMatchObject({ cause: 'EXITED_ZERO', exitCode: 0 });
  });

  it('keeps ends for which there is not even the reserve, over a restart of the agent', async () => {
    const dir = smallDisk(SIZE_MB);
    const stateDir = join(dir, 'state');
    const first = await ProcessRunner.open({ stateDir });
    const runs = Array.from({ length: 8 }, (_, i) => `job_${i}`);
    // More output than the reserve takes.
    for (const id of runs)
      first.start(
        script(id, `head -c 200000 /dev/zero | tr '\\0' x; while [ ! -e ${dir}/go ]; do sleep 0.05; done`),
      );
    await until(() => first.reports(100).length === runs.length, 'them to be started');
    writeFileSync(join(dir, 'go.new'), '');
    spawnSync('sleep', ['0.5']);
    rmSync(join(stateDir, 'reserve'));
    fill(dir);
    spawnSync('mv', [join(dir, 'go.new'), join(dir, 'go')]);
    spawnSync('sleep', ['0.5']);
    expect(ends(first).length).toBeLessThan(runs.length);
    first.close();
    const second = await openRunner({ stateDir });
    makeRoom(dir);
    await until(() => ends(second).length === runs.length, 'all to be reported');
    for (const id of runs)
      expect(endOf(second, id)).toMatchObject({ cause: 'EXITED_ZERO', stdout: { bytes: 200000 } });
  });

  it('never leaves a part of a line in the journal', () => {
    const dir = smallDisk(SIZE_MB);
    const reports = join(dir, 'reports');
    const report = { phase: 'STARTED', jobId: 'job_1', epoch: 1, atMs: 0 } as const;
    const journal = new Journal(reports, () => {});
    journal.append(report);
    fill(dir, 8192);
    let taken = 1;
    expect(() => {
      for (; ; taken++) journal.append({ ...report, jobId: `job_${'x'.repeat(1500)}` });
    }).toThrow(/ENOSPC|full/);
    makeRoom(dir);
    journal.append(report);
    journal.close();
    const found: number[] = [];
    const again = new Journal(reports, ({ seq }) => found.push(seq));
    again.close();
    expect(readdirSync(reports)).toHaveLength(2);
    expect(again.spoiled).toBe(0);
    expect(found).toEqual(Array.from({ length: taken + 1 }, (_, i) => i + 1));
  });
});
