/** The environment of a login, of shells that say more, hang or fail. */
import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { LoginEnvironment } from '../../src/agent/external/login.js';
import { temporaryDirectory } from './support.js';

/** An account with the profile, whose shell may be another one. */
function loginOf(profile: string, shellText?: string): LoginEnvironment {
  const homedir = temporaryDirectory();
  writeFileSync(join(homedir, '.profile'), profile);
  const shell = join(homedir, 'shell');
  writeFileSync(shell, `#!/bin/sh\n${shellText ?? 'exec sh "$@"'}\n`);
  chmodSync(shell, 0o755);
  return new LoginEnvironment({ username: 'ada', homedir, shell });
}

it('is that of a login, whatever else its profile says, and nothing of the agent or of Slurm', async () => {
  process.env.OF_THE_AGENT = 'secret';
  const profile = `echo welcome; export PATH=/opt/tools:$PATH LINES_2='one
two=2'; export SBATCH_PARTITION=other SLURM_CONF=/other`;
  const environment = await loginOf(profile).get();
  delete process.env.OF_THE_AGENT;
  expect(environment).toMatchObject({ USER: 'ada', LOGNAME: 'ada', LINES_2: 'one\ntwo=2' });
  expect(environment?.PATH).toMatch(/^\/opt\/tools:/);
  expect(Object.keys(environment ?? {}).filter((name) => /AGENT|SLURM|SBATCH|^_$|SHLVL/.test(name))).toEqual(
    [],
  );
});

it('is asked for once for many, and again after it was not found', async () => {
  const login = loginOf('echo asked >>"$HOME/asked"; export TIMES=$(wc -l <"$HOME/asked")');
  const all = await Promise.all(Array.from({ length: 20 }, () => login.get()));
  expect(new Set(all.map((one) => one?.TIMES?.trim()))).toEqual(new Set(['1']));
});

it.each([
  ['cannot log in', 'echo "This account is not available."; exit 1'],
  ['fails behind its answer', 'sh "$@"; exit 3'],
  ['says too much', 'yes | head -c 1000000; exec sh "$@"'],
  ['takes no command', 'cat'],
])('is null of a shell that %s', async (_, text) => {
  expect(await loginOf('', text).get()).toBeNull();
});
