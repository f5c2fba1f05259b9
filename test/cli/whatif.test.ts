import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { DEFAULT_POLICY } from '../../src/core/policy.js';
import { endAll, type Service, serve } from './service.js';

const home = mkdtempSync(join(tmpdir(), 'switchyard-whatif-'));
const file = join(home, 'fcfs.json');
let service: Service;

beforeAll(async () => {
  writeFileSync(file, JSON.stringify({ ...DEFAULT_POLICY, local: { kind: 'fcfs' } }));
  service = await serve(home);
  for (const seconds of ['0.3', '0.1', '0.2']) {
    const done = await service.cli('submit', '--wait', '--', 'sleep', seconds);
    expect(done.code).toBe(0);
  }
});
afterAll(async () => {
  await endAll();
  rmSync(home, { recursive: true, force: true });
});

describe('switchyard whatif', () => {
  it('simulates recorded jobs in a thread of the service, and puts both policies side by side', async () => {
    const args = ['whatif', '--candidate', file, '--from', '2020-01-01T00:00Z'];
    const { code, stdout, stderr } = await service.cli(...args, '--reason', 'curious');
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toMatch(/^simulation_1: 3 jobs\n/);
    expect(stdout).toMatch(/all jobs +version 1 +3 /);
    expect(stdout).toMatch(/REGULAR +version 1 +3 /);
    expect(stdout).toMatch(/at local +version 1 +3 /);

    type Result = { jobs: number; all: { baseline: { ended: number; waitMeanS: number } } };
    const { state, result } = await service.json<{ state: string; result: Result }>(...args);
    expect(state).toBe('DONE');
    expect(result).toMatchObject({ jobs: 3, all: { baseline: { ended: 3, waitMeanS: 0 } } });
  });

  it('says what it assumes of a site that schedules itself', async () => {
    expect((await service.cli('sites', 'add', 'alps', '--agent', '--local', 'slurm')).code).toBe(0);
    const { code, stdout } = await service.cli('whatif', '--candidate', file, '--from', '2020-01-01T00:00Z');
    expect(code).toBe(0);
    expect(stdout).toContain(
      '\nThe agent of alps has never reported how busy it is: jobs are assumed to start there as soon as its machines have room.\n',
    );
  });

  it('says what is wrong with a candidate or a window', async () => {
    writeFileSync(join(home, 'bad.json'), JSON.stringify({ ...DEFAULT_POLICY, seed: -1 }));
    const bad = await service.cli(
      'whatif',
      '--candidate',
      join(home, 'bad.json'),
      '--from',
      '2020-01-01T00:00Z',
    );
    expect(bad.code).not.toBe(0);
    expect(bad.stderr).toMatch(/seed/);
    const empty = await service.cli(
      'whatif',
      '--candidate',
      file,
      '--from',
      '2020-01-01T00:00Z',
      '--to',
      '2020-01-02T00:00Z',
    );
    expect(empty.code).not.toBe(0);
    expect(empty.stderr).toMatch(/^error: from: .*a time window with submitted jobs/);
  });
});
