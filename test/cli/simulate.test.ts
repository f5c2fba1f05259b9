import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { buildProgram } from '../../src/cli/program.js';

let folder: string;
let trace: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'cli-simulate-'));
  trace = join(folder, 'a.swf');
  writeFileSync(
    trace,
    '; MaxProcs: 2\n1 0 -1 10 2 -1 -1 2 10 -1 1 1 1 1 1 1 -1 -1\n2 0 -1 10 1 -1 -1 1 10 -1 1 1 1 1 1 1 -1 -1\n',
  );
});
afterAll(() => rmSync(folder, { recursive: true }));
afterEach(() => vi.restoreAllMocks());

async function switchyard(...args: string[]): Promise<string> {
  let text = '';
  vi.spyOn(process.stdout, 'write').mockImplementation((chunk) => {
    text += chunk;
    return true;
  });
  await buildProgram().parseAsync(args, { from: 'user' });
  return text;
}

describe('switchyard simulate', () => {
  it('prints the summary, as text or JSON', async () => {
    expect(JSON.parse(await switchyard('simulate', '--json', '--trace', trace))).toMatchObject({
      jobs: 2,
      makespan: 20,
      utilisation: 0.75,
      wait: { mean: 5, max: 10 },
    });
    const text = await switchyard('simulate', '--trace', trace, '--processors', '1', '--policy', 'fcfs');
    expect(text).toContain('1 job of a.swf on 1 processor at 1 site, policy fcfs');
    expect(text).toContain('left out: 1 tooWide');
  });

  it('names option, value and what is accepted', async () => {
    const wrong = (...args: string[]) => expect(switchyard('simulate', '--trace', trace, ...args)).rejects;
    await wrong('--policy', 'best').toThrow('--policy: "best" is not accepted: fcfs, ');
    await wrong('--estimate', 'x').toThrow('--estimate: "x" is not accepted: requested, actual, predicted');
    await wrong('--processors', '0').toThrow('--processors: "0" is not accepted: a whole number from 1');
    await wrong('--processors', '2', '--sites', 'f').toThrow(
      '--processors: "2" is not accepted: nothing together',
    );
  });
});

describe('switchyard trace', () => {
  it('looks through a trace', async () => {
    expect(JSON.parse(await switchyard('trace', 'info', '--json', trace))).toMatchObject({
      jobs: 2,
      users: 1,
    });
    expect(await switchyard('trace', 'info', trace)).toContain('MaxProcs: 2');
    await expect(switchyard('trace', 'info', join(folder, 'absent'))).rejects.toThrow('ENOENT');
  });
});
