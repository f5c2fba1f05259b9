/**
 * Jobs that attack the agent through what they may ask for, from submission to output: through the API of a whole service, its engine, and an
 * agent that is root. With less than root, or without a compiler, what cannot be tried is said by the names of the tests that are left out.
 */
import { spawnSync } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { Isolation } from '../../src/agent/process/isolation.js';
import type { ProcessRunnerOptions } from '../../src/agent/process/runner.js';
import type { Assignment } from '../../src/agent/runner.js';
import { processAgent } from '../../src/cli/agents.js';
import { loadConfig } from '../../src/platform/config.js';
import type { Logger } from '../../src/platform/log.js';
import { unique, withApi } from '../api/support/api.js';
import { withEngine } from '../api/support/engine.js';
import { quietLog } from '../engine/support.js';
import { PATIENCE_MS } from '../support/patience.js';
import { complete, openRunner, script, temporaryDirectory, until } from './support.js';

const api = withApi();
withEngine(api);

const isRoot = process.getuid?.() === 0;
const hasCompiler = spawnSync('cc', ['--version']).status === 0;
const modes = (['user', 'sandbox'] as const).filter(
  (mode) => isRoot && (mode === 'user' || existsSync('/usr/bin/bwrap')),
);
for (const mode of (['user', 'sandbox'] as const).filter((one) => !modes.includes(one)))
  it.skip(`hostile jobs, ${mode}: it takes an agent that is root${isRoot ? ', and bubblewrap' : ''}`);
if (!hasCompiler) it.skip('a library that a job has made: there is no C compiler');

interface Ended {
  state: string;
  cause: string;
  message: string | null;
  out: string;
  err: string;
  bytes: number;
}

/** A site of its own with an agent of this configuration. */
async function site(config: Record<string, string>, around: Record<string, string> = {}) {
  const dir = mkdtempSync(join(tmpdir(), 'switchyard-hostile-'));
  chmodSync(dir, 0o755);
  const name = unique('site');
  const { createSite } = await api.must<{ createSite: { site: { id: string } } }>(
    'mutation ($name: String!) { createSite(input: { name: $name }) { site { id } } }',
    { name },
  );
  const { key } = await api.user('AGENT', unique('agent'), createSite.site.id);
  const loaded = loadConfig({
    ...{ SWITCHYARD_HOME: join(dir, 'home'), AGENT_STATE_DIR: join(dir, 'agent'), AGENT_CGROUPS: 'false' },
    ...config,
  });
  const before = { ...process.env };
  Object.assign(process.env, around);
  // pino's methods that agents call.
  const agent = processAgent(loaded, quietLog as unknown as Logger, () => ({
    url: api.url,
    key,
    site: name,
  }));
  await agent.start?.();
  onTestFinished(async () => {
    process.env = before;
    await agent.stop?.();
    await api.must('mutation ($site: ID!) { drainSite(input: { siteId: $site }) { site { id } } }', {
      site: createSite.site.id,
    });
    rmSync(dir, { recursive: true, force: true, maxRetries: 5 });
  });
  const user = await api.user('USER', unique('user'));
  const submit = async (
    run: string | string[],
    environment: Record<string, string> = {},
    outputs: string[] = [],
  ): Promise<string> => {
    const [command, ...words] = typeof run === 'string' ? ['/bin/sh', '-c', run] : run;
    const job = {
      ...{ command, arguments: words, estimateS: 1, outputs: outputs.map((path) => ({ path })) },
      environment: Object.entries(environment).map(([name, value]) => ({ name, value })),
    };
    const { submitJobs } = await api.must<{ submitJobs: { jobIds: string[]; errors: unknown[] } }>(
      'mutation ($jobs: [JobInput!]!) { submitJobs(input: { jobs: $jobs }) { jobIds errors { message } } }',
      { jobs: [job] },
      user.key,
    );
    expect(submitJobs.errors).toEqual([]);
    return submitJobs.jobIds[0]!;
  };
  return { dir, submit };
}

/** A job, once its state is one of these. */
async function jobIn(id: string, ...states: string[]): Promise<Ended> {
  for (const deadline = Date.now() + PATIENCE_MS; ; ) {
    const { job } = await api.must<{
      job: Ended & Record<'output' | 'errors', { text: string; bytes: number }>;
    }>(
      'query ($id: ID!) { job(id: $id) { state cause message output { text bytes } errors: output(stream: STDERR) { text } } }',
      { id },
    );
    if (states.includes(job.state))
      return {
        ...job,
        out: job.output?.text ?? '',
        err: job.errors?.text ?? '',
        bytes: job.output?.bytes ?? 0,
      };
    if (Date.now() > deadline) throw new Error(`waited in vain; the job is ${JSON.stringify(job)}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}
const end = (id: string): Promise<Ended> => jobIn(id, 'COMPLETED', 'FAILED', 'CANCELLED');

/** Says as whom it is loaded, and whether there is more of the host than a job may see. */
const LIBRARY = `
#include <stdio.h>
#include <unistd.h>
unsigned la_version(unsigned v) { return v; }
__attribute__((constructor)) static void loaded(void) {
  dprintf(1, "loaded as %d, %s\\n", geteuid(), access("CANARY", F_OK) == 0 ? "outside" : "inside");
}
`;

function compile(dir: string): string {
  const canary = join(dir, 'canary');
  writeFileSync(canary, '');
  writeFileSync(join(dir, 'library.c'), LIBRARY.replace('CANARY', canary));
  const made = spawnSync('cc', [
    '-shared',
    '-fPIC',
    '-s',
    '-o',
    join(dir, 'library.so'),
    join(dir, 'library.c'),
  ]);
  expect(made.stderr.toString()).toBe('');
  return readFileSync(join(dir, 'library.so')).toString('base64');
}

describe.each(modes)('with isolation %s, an agent that is root', (mode) => {
  const isolation = { SWITCHYARD_ISOLATION: mode };

  it.runIf(hasCompiler)(
    'runs nothing of a job before it is the job: a library that another one made',
    async () => {
      const { dir, submit } = await site(isolation);
      const made = 'echo "$LIBRARY" | base64 -d >evil.so; chmod 755 . evil.so; pwd; sleep 1000';
      const first = await submit(made, { LIBRARY: compile(dir) });
      await jobIn(first, 'RUNNING');
      const library = join(dir, 'agent', 'slots', '1', 'work', 'evil.so');
      for (const deadline = Date.now() + PATIENCE_MS; !existsSync(library) && Date.now() < deadline; )
        await new Promise((resolve) => setTimeout(resolve, 20));
      const names = ['LD_PRELOAD', 'LD_AUDIT'];
      const hostile = await submit('echo ran; env', Object.fromEntries(names.map((name) => [name, library])));
      const { out, state } = await end(hostile);
      expect(state).toBe('COMPLETED');
      // It is the job's to load what it likes, as itself and where it is.
      expect(out).not.toMatch(/loaded as 0,/);
      if (mode === 'sandbox') expect(out).not.toContain('outside');
      for (const name of names) expect(out).toContain(`${name}=${library}\n`);
      const own = await submit(`echo "$LIBRARY" | base64 -d >own.so; LD_PRELOAD=./own.so env true`, {
        LIBRARY: readFileSync(join(dir, 'library.so')).toString('base64'),
      });
      expect((await end(own)).out).toMatch(
        mode === 'user' ? /^loaded as 2\d{9}, outside/ : /^loaded as 2\d{9}, inside/,
      );
      await api.must('mutation ($id: ID!) { cancelJobs(input: { selection: { ids: [$id] } }) { jobIds } }', {
        id: first,
      });
    },
  );

  it('gives a job the variables that it asks for, and nobody else', async () => {
    const { dir, submit } = await site(isolation);
    const touch = `$(touch ${dir}/touched)`;
    const hostile = {
      ...{
        BASH_ENV: touch,
        ENV: touch,
        SHELLOPTS: 'xtrace',
        PS4: touch,
        IFS: '/',
        NODE_OPTIONS: '--require=/no.js',
      },
      ...{ PERL5OPT: '-Mnowhere', PERL5LIB: '.', GCONV_PATH: '.', LD_LIBRARY_PATH: '.', PATH: '.:/usr/bin' },
      ...{
        UID: '0',
        RANDOM: 'x',
        OPTIND: 'x',
        PWD: '/',
        SUDO_UID: '0',
        LINES: `a\nb'c"d\\\n\n`,
        LONG: 'ü'.repeat(50_000),
      },
    };
    const { out, err, state } = await end(await submit(['env', '-0'], hostile));
    expect([state, err]).toEqual(['COMPLETED', '']);
    const found = new Set(out.split(/[\0\ufffd]/));
    const lacking = Object.keys(hostile).filter((name) => !found.has(`${name}=${hostile[name as 'ENV']}`));
    expect(lacking).toEqual([]);
    expect(existsSync(join(dir, 'touched'))).toBe(false);
  });

  it('is told plainly that its output and its files are too much, and nothing waits for them', async () => {
    const { submit } = await site({ ...isolation, AGENT_OUTPUT_BYTES: '1024' });
    const huge = `truncate(STDOUT, 10e9); open F, ">", "big"; truncate(F, 9e12) or die $!`;
    const { cause, message, bytes } = await end(await submit(['/usr/bin/perl', '-e', huge], {}, ['big']));
    expect([cause, bytes]).toEqual(['OUTPUTS_FAILED', 10e9]);
    expect(message).toMatch(/big: .*it is a sparse file of 9000000000000 bytes, larger than its disk \(\d+/);
  });

  it('starts jobs in a clean environment, whoever has started the agent', async () => {
    const around = {
      PATH: `/somebody/.pyenv/shims:${process.env.PATH}`,
      LD_PRELOAD: '',
      LC_ALL: 'tlh',
      TZ: 'Asia/Tokyo',
    };
    const { submit } = await site(isolation, { ...around, VIRTUAL_ENV: '/somebody/venv' });
    const { out } = await end(await submit('env'));
    const names = out
      .trim()
      .split('\n')
      .map((line) => line.split('=')[0]);
    expect(names.filter((name) => !name!.startsWith('SWITCHYARD_')).sort()).toEqual([
      'HOME',
      'LANG',
      'LOGNAME',
      'PATH',
      'PWD',
      'SHELL',
      'TMPDIR',
      'USER',
    ]);
    expect(out).toContain('\nPATH=/usr/local/bin:/usr/bin:/bin\n');
  });

  const open = async (options: Partial<ProcessRunnerOptions> = {}) => {
    const stateDir = temporaryDirectory();
    chmodSync(stateDir, 0o755);
    const isolation: ProcessRunnerOptions['isolation'] = (dir, id) =>
      Isolation.open({ mode, cgroups: false }, dir, id);
    return { stateDir, runner: await openRunner({ stateDir, isolation, ...options }) };
  };

  it('looks for nothing with the agent’s rights: what only root sees is as if it were not there', async () => {
    const { runner } = await open();
    const hidden = temporaryDirectory();
    writeFileSync(join(hidden, 'there'), '', { mode: 0o755 });
    const said = async (id: string, run: Partial<Assignment>): Promise<string | null> => {
      const end = await complete(runner, { ...script(id, 'true'), ...run });
      expect(end.cause).toBe('LAUNCH_FAILED');
      return end.message!.replaceAll(/not-there|there/g, 'X');
    };
    for (const field of ['command', 'workingDirectory'] as const) {
      const [there, not] = ['there', 'not-there'].map((name) => ({ [field]: join(hidden, name) }));
      expect(await said(`job_1${field}`, there!)).toBe(await said(`job_2${field}`, not!));
    }
  });

  it('cannot leave anything behind by a namespace of its own, nor find it by what it inherits', async () => {
    const { runner } = await open();
    const words = `namespaced ${process.pid} ${mode}`;
    const flight = `unshare -Urpf setsid sh -c "sleep 1000; true # ${words}" <&- >&- 2>&- 9>&- &`;
    const run = `${flight} ls -l /proc/$$/fd | sed -n 's/.* \\([0-9]*\\) -> .*\\//\\1 /p'; sleep 0.2`;
    const { stdout } = await complete(runner, script('job_1', run));
    expect(stdout!.text).toBe('0 null\n1 out\n2 err\n9 alive\n');
    await until(() => spawnSync('pgrep', ['-f', words]).stdout.length === 0, 'all of it to be gone');
  });

  it('is not hidden from the limit of its disk by depth or number, and all of it is removed', async () => {
    const { runner, stateDir } = await open({ diskLimitMb: 20 });
    const deep = `perl -e 'for (1..900) { mkdir "ddddd"; chdir "ddddd" } open F, ">big"; print F "x" x 30e6; close F; sleep 100'`;
    const end = await complete(runner, script('job_1', deep));
    expect(end).toMatchObject({ cause: 'DISK_LIMIT' });
    const left = () => readdirSync(stateDir).filter((name) => name.startsWith('trash'));
    for (const deadline = Date.now() + PATIENCE_MS; left().length > 0 && Date.now() < deadline; )
      await new Promise((resolve) => setTimeout(resolve, 50));
    expect(left()).toEqual([]);
  });
});
