/**
 * The contract of adapters (docs/operations/adapters.md): the checks hold for the template, and find what is broken on purpose. Those against
 * a real Slurm are in test/slurm. Skipped where there is no Python.
 */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { Adapter, type Check, conformance } from '../../src/agent/index.js';
import { hostEnvironment } from '../../src/platform/environment.js';
import { packagePath } from '../../src/platform/paths.js';

const template = packagePath('docs', 'adapters', 'processes.py');
const lacks = spawnSync('python3', ['--version'], { env: hostEnvironment() }).status !== 0;
if (lacks) console.warn('test/agent/adapter is skipped: no python3');

/** What of a program was changed, and the check that finds it. */
const BREAKAGES = [
  ['"busyCpus": 0', '"busyCpus": CPUS + 1', 'capacity tells'],
  ['return path.name', 'return path.name + "0"', 'its script records its ID'],
  ['nodes={HOST}', 'nodes=elsewhere', 'its script records its ID'],
  [
    '"LOCAL_ID": path.name,',
    '"LOCAL_ID": path.name, "AGENT_STATE_DIR": "/",',
    'environment of the agent does not reach',
  ],
  ['job["name"] in asked["names"]', 'False', 'found by its name'],
  ['job["name"] in asked["names"]', 'asked["names"].index(job["name"]) >= 0', 'unknown names are not found'],
  [
    'for job in known() if job["name"].startswith',
    'for job in known()[::2] if job["name"].startswith',
    'all jobs',
  ],
  ['"phase": "RUNNING" if runs else "ENDED"', '"phase": "RUNNING"', 'leaves the list'],
  ['> CPUS:', '> 10**9:', 'a job that can never run'],
  ['else signal.SIGTERM', 'else 0', 'canceling a running job ends'],
  ['in wanted and job["phase"] != "ENDED"', 'in wanted and not 1 / 0', 'ending twice'],
  ['if (job["name"], job["element"]) in wanted and', 'if', 'only the named job'],
  ['"" if element is None else str(element)', '"0"', 'each element'],
  ['(job["name"], job["element"]) in wanted', 'job["name"] in {name for name, _ in wanted}', 'ended alone'],
] as const;

describe.skipIf(lacks)('an adapter', () => {
  const dir = mkdtempSync(join(tmpdir(), 'sy-adapter-'));
  afterAll(() => rmSync(dir, { recursive: true, force: true }));

  const adapter = (program: string): Promise<Adapter> =>
    Adapter.open({ program, environment: { ...hostEnvironment(), PROCESSES_DIR: join(dir, 'jobs') } });
  const changed = (from: string, to: string): string => {
    const text = readFileSync(template, 'utf8');
    expect(text).toContain(from);
    const program = join(dir, 'changed.py');
    writeFileSync(program, text.replace(from, to), { mode: 0o700 });
    return program;
  };
  const checks = async (scheduler: Adapter, only = '', patienceMs = 60_000): Promise<Check[]> => {
    const found: Check[] = [];
    await conformance(scheduler, { directory: dir, patienceMs, only }, (check) => found.push(check));
    return found;
  };

  it('as the template is one, does what the contract says', async () => {
    const found = await checks(await adapter(template));
    expect(found.filter(({ problem }) => problem !== null)).toEqual([]);
    expect(found.filter(({ skipped }) => skipped !== null).map(({ name }) => name)).toEqual([
      'each task of a job is started',
      'a job of several parts runs once, and each task knows its part',
      'a job of several parts is listed as one job, and canceled as a whole',
    ]);
  });

  it.each(BREAKAGES)('with %j changed to %j is found out', async (from, to, only) => {
    const [found, ...more] = await checks(await adapter(changed(from, to)), only, 4_000);
    expect(more).toEqual([]);
    expect(found?.problem).not.toBe(null);
  });

  it('whose answers have another form is told what is accepted', async () => {
    const answers = [
      [
        '"contract": 1',
        '"contract": 2',
        'describe: contract: the output has 2; accepted: 1, the contract version',
      ],
      [
        '"tasks": None',
        '"tasks": None, "parts": {"launcher": ["srun"], "prologue": ""}',
        'describe: parts: the output has {"launcher":["srun"],"prologue":""}; accepted: {"launcher"',
      ],
      ['"tasks": None', '"tasks": "srun"', 'describe: tasks: the output has "srun"; accepted: {"launcher"'],
      [
        'json.dump(',
        'print("a warning"); json.dump(',
        'changed.py describe: the output is not JSON: a warning',
      ],
    ] as const;
    for (const [from, to, message] of answers)
      await expect(adapter(changed(from, to))).rejects.toThrow(message);
    const odd = await adapter(changed('"elementsMax": 1000', '"elementsMax": 0'));
    await expect(odd.capacity()).rejects.toThrow(
      'capacity: elementsMax: the output has 0; accepted: 1 to 100000; 1: there are no arrays',
    );
    const counted = (licenses: string) =>
      adapter(changed('"elementsMax": 1000', `"elementsMax": 1000, "licenses": ${licenses}`));
    const licenses = [{ name: 'matlab', total: 3 }];
    expect(await (await counted(JSON.stringify(licenses))).capacity()).toMatchObject({ licenses });
    await expect((await counted(JSON.stringify([...licenses, ...licenses]))).capacity()).rejects.toThrow(
      'accepted: nothing, or up to 1000 of {"name", "total"}, each name once, of whole numbers',
    );
    const failing = await adapter(
      changed('def capacity(_):', 'def capacity(_):\n    sys.exit("no scheduler")\n'),
    );
    await expect(failing.capacity()).rejects.toThrow('changed.py capacity: no scheduler');
  });
});
