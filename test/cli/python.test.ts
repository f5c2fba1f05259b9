/** The client for Python, by its own tests against a service, and what docs/python.md shows. */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { packagePath } from '../../src/platform/paths.js';
import { endAll, type Service, serve } from './service.js';

const hasPython = spawnSync('python3', ['--version']).status === 0;
if (!hasPython) console.log('the client for Python is not tested: there is no python3');

const home = mkdtempSync(join(tmpdir(), 'switchyard-python-'));

describe.skipIf(!hasPython)('switchyard.py', () => {
  let service: Service;
  beforeAll(async () => {
    service = await serve(home);
  });
  afterAll(async () => {
    await endAll();
    rmSync(home, { recursive: true, force: true });
  });

  /** Alone: without what the user's Python has besides the standard library. */
  const python = (...args: string[]) => {
    const { status, stdout, stderr } = spawnSync('python3', ['-s', ...args], {
      encoding: 'utf8',
      cwd: home,
      env: {
        PATH: process.env.PATH ?? '',
        PYTHONPATH: packagePath('clients', 'python'),
        PYTHONDONTWRITEBYTECODE: '1',
        SWITCHYARD_URL: service.url,
        SWITCHYARD_HOME: home,
      },
    });
    return { status, stdout, stderr };
  };

  it('does what its tests say', () => {
    const { status, stderr } = python(packagePath('clients', 'python', 'test_switchyard.py'), home);
    expect(stderr).toMatch(/Ran [1-9]\d* tests/);
    expect([status, stderr]).toEqual([0, expect.stringMatching(/\nOK\n$/)]);
  });

  it('does what its page shows', () => {
    const page = readFileSync(packagePath('docs', 'python.md'), 'utf8');
    const [, program] = /```python\n([\s\S]*?)```/.exec(page) ?? [];
    expect(python('-c', program!)).toEqual({
      status: 0,
      stdout: expect.stringMatching(/^hello\n(?:[abc] COMPLETED 0 [abc] is done\n){3}$/),
      stderr: '',
    });
  });
});
