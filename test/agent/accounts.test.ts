/**
 * Jobs under the accounts of their users: of an agent that is root, and of one that is not, through a real sudo. The accounts, groups and
 * sudoers are real to everybody in a mount namespace of the test's own, and the host's stay as they are.
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmdirSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { describe, expect, it, onTestFinished } from 'vitest';
import { Accounts } from '../../src/agent/process/accounts.js';
import type { Assignment, EndedReport } from '../../src/agent/runner.js';
import { lives, SIGNALLED, script, temporaryDirectory, until } from './support.js';

const host = fileURLToPath(new URL('./host.mjs', import.meta.url));
const AGENT = 61_001;
const ADA = 61_002;
const BOB = 61_003;
const TEAM = 61_004;
const USERS = `switchy:x:${AGENT}:${AGENT}::/nonexistent:/bin/sh
ada:x:${ADA}:${ADA}::HOME/ada:/bin/sh
bob:x:${BOB}:${BOB}::HOME/bob:/bin/sh
eve:x:61005:${TEAM}::/nonexistent:/bin/sh
`;
const GROUPS = `switchy:x:${AGENT}:
ada:x:${ADA}:switchy
bob:x:${BOB}:switchy
team:x:${TEAM}:switchy,bob
lab:x:61006:ada
`;
const SUDOERS = `root ALL=(ALL) ALL
switchy ALL=(ada,eve) NOPASSWD: ALL
`;
const SUDO = ['/usr/bin/sudo', '-n', '-u', '{account}', '--'];
const RUNUSER = ['/usr/sbin/runuser', '-u', '{account}', '--'];
const SYSTEMD_RUN = ['/usr/bin/systemd-run', '--scope', '--uid={account}', '--quiet', '--collect'];

const isRoot = process.getuid?.() === 0;
const mayMount = isRoot && spawnSync('unshare', ['--mount', 'true']).status === 0;
const hasSudo = existsSync(SUDO[0]!);
const why = mayMount ? '' : ' (not tried: it takes root, and the right to mount)';
const whySudo = mayMount && !hasSudo ? ' (not tried: there is no sudo)' : why;

interface Host {
  child: ChildProcess;
  said: string[];
  send(message: object): void;
  /** The end of a run. */
  end(jobId: string): EndedReport | undefined;
  kept(file: string): string | undefined;
  complete(run: Assignment): Promise<EndedReport & { out: string; err: string }>;
}

interface HostOptions {
  cgroup?: string;
  /** Before the directories in which programs are looked for. */
  path?: string;
  patienceMs?: number;
  launcher?: string[] | null;
}

/** An agent in a world where these accounts exist. */
async function startHost(
  isolation: object,
  list: string | null,
  as: number | null,
  { cgroup, path = '', patienceMs, launcher = as === null ? null : SUDO }: HostOptions = {},
): Promise<Host & { stateDir: string; homes: string }> {
  const world = temporaryDirectory();
  const stateDir = join(world, 'state');
  const homes = join(world, 'home');
  chmodSync(world, 0o755);
  mkdirSync(stateDir);
  if (as !== null) chownSync(stateDir, as, as);
  mkdirSync(homes);
  chmodSync(homes, 0o755);
  for (const [name, uid] of [
    ['ada', ADA],
    ['bob', BOB],
  ] as const) {
    mkdirSync(join(homes, name), { mode: 0o700 });
    chownSync(join(homes, name), uid, uid);
  }
  const file = join(world, 'accounts');
  writeFileSync(file, list ?? '');
  const lines = (path: string): string => readFileSync(path, 'utf8');
  const shadow = USERS.replaceAll(/^(\w+):.*$/gm, '$1:*:19000:0:99999:7:::');
  const bound = {
    '/etc/passwd': lines('/etc/passwd') + USERS.replaceAll('HOME', homes),
    '/etc/group': lines('/etc/group') + GROUPS,
    '/etc/shadow': lines('/etc/shadow') + shadow,
    ...(hasSudo && { '/etc/sudoers': SUDOERS }),
  };
  const mounts = Object.entries(bound).map(([path, text], i) => {
    writeFileSync(join(world, `${i}`), text, { mode: path === '/etc/sudoers' ? 0o440 : 0o644 });
    return `mount --bind ${world}/${i} ${path}`;
  });
  const drop = as === null ? '' : `setpriv --reuid=${as} --regid=${as} --init-groups`;
  const enter = cgroup === undefined ? [] : [`echo $$ > ${cgroup}/cgroup.procs`];
  const setup = [...mounts, ...enter, `exec ${drop} "$@"`].join(' && ');
  const accounts = list === null ? null : { file, launcher, patienceMs };
  const given = JSON.stringify({ cgroups: cgroup !== undefined, ...isolation, accounts });
  const args = ['--mount', '/bin/sh', '-c', setup, 'sh', process.execPath, host, stateDir, given];
  const child = spawn('unshare', args, {
    stdio: ['pipe', 'pipe', 'pipe'],
    env: { ...process.env, PATH: `${path}${process.env.PATH}` },
  });
  const gone = new Promise((resolve) => child.on('close', resolve));
  onTestFinished(async () => {
    child.kill('SIGKILL');
    await gone;
  });
  const said: string[] = [];
  const ends = new Map<string, EndedReport>();
  const kept = new Map<string, string>();
  let ready = false;
  createInterface({ input: child.stdout! }).on('line', (line) => {
    const message = JSON.parse(line);
    if (message.ready) ready = true;
    else if (message.kept) kept.set(message.kept, message.text);
    else if (message.phase === 'ENDED') ends.set(message.jobId, message);
  });
  createInterface({ input: child.stderr! }).on('line', (line) => said.push(line));
  await until(() => ready || child.exitCode !== null, 'the agent (is dist/ built?)');
  if (!ready) throw new Error(`the agent did not start: ${said.join('\n')}`);
  const send = (message: object): void => void child.stdin!.write(`${JSON.stringify(message)}\n`);
  const end = (jobId: string): EndedReport | undefined => ends.get(jobId);
  const complete = async (run: Assignment) => {
    send(run);
    await until(() => end(run.jobId) !== undefined, `the end of ${run.jobId}`);
    const report = end(run.jobId)!;
    const text = (stream: string): string =>
      report.outputs
        .filter((one) => one.stream === stream)
        .map((one) => one.text)
        .join('');
    return { ...report, out: text('STDOUT'), err: text('STDERR') };
  };
  return { child, said, send, end, kept: (name) => kept.get(name), complete, stateDir, homes };
}

const of = (user: string, run: Assignment): Assignment => ({ ...run, user });

/** Processes of the host with these words on their command line. */
function withWords(words: string): number[] {
  return readdirSync('/proc').flatMap((name) => {
    try {
      const found = /^\d+$/.test(name) && readFileSync(`/proc/${name}/cmdline`, 'latin1').includes(words);
      return found && lives(Number(name)) ? [Number(name)] : [];
    } catch {
      return [];
    }
  });
}

const kinds = (['user', 'sandbox'] as const).flatMap((mode) => [
  { name: `${mode}, an agent that is root${why}`, mode, as: null, runs: mayMount },
  { name: `${mode}, an ordinary agent with sudo${whySudo}`, mode, as: AGENT, runs: mayMount && hasSudo },
]);
const runnable = kinds.filter(({ mode, runs }) => runs && (mode === 'user' || existsSync('/usr/bin/bwrap')));
for (const { name } of kinds.filter((kind) => !runnable.includes(kind)))
  it.skip(`accounts of users: ${name}`);

it.runIf(mayMount)(
  'a root agent writes through no link that a user put where their next job will run',
  async () => {
    const agent = await startHost({ mode: 'user' }, 'ada = ada\n', null);
    const victim = join(agent.stateDir, 'victim');
    writeFileSync(victim, 'precious', { mode: 0o600 });
    const work = join(agent.stateDir, 'slots', '2', 'work');
    const plant = `while :; do ln -s ${victim} ${work}/.switchyard-hosts; sleep 0.02; done 2>/dev/null`;
    agent.send({ ...of('ada', script('job_plants', plant)) });
    await agent.complete(of('ada', script('job_1', 'sleep 0.1')));
    for (let i = 0; i < 20 && !readdirSync(work).length; i++) await new Promise((go) => setTimeout(go, 20));
    expect(
      await agent.complete({ ...of('ada', script('job_2', 'cat "$SWITCHYARD_HOSTFILE"')), tasks: 2 }),
    ).toMatchObject({
      out: 'here\n',
    });
    expect(readFileSync(victim, 'utf8')).toBe('precious');
    agent.send({ cancel: { jobId: 'job_plants', epoch: 1 }, graceMs: 0 });
    await until(() => agent.end('job_plants') !== undefined, 'the other job to end');
  },
);

describe.each(runnable.map((kind) => [kind.name, kind] as const))(
  'accounts of users: %s',
  (_name, { mode, as }) => {
    const open = (list: string, more = {}) => startHost({ mode, ...more }, list, as);

    it('a job is its user’s: account, groups, home, environment, output, exit code, signals, files', async () => {
      const agent = await open('ada = ada\n');
      const show = { shown: [{ path: agent.homes, readOnly: false }] };
      const look =
        'id -un; id -gn; echo "$HOME $USER $GREETING"; env | grep -c SUDO; cat "$SWITCHYARD_HOSTFILE"; umask; exit 3';
      const run = { ...of('ada', script('job_1', look)), environment: { GREETING: "it's" }, tasks: 2 };
      const end = await agent.complete(run);
      expect(end.err).toBe('');
      const [user, group, place, sudo, one, umask] = end.out.split('\n');
      expect([user, group, sudo, one]).toEqual(['ada', 'ada', '0', 'here']);
      expect(place).toMatch(mode === 'user' ? /^\S+\/home\/ada ada it's$/ : /^\S+\/work ada it's$/);
      if (as !== null) expect(umask).toBe('0007');
      expect(end).toMatchObject({ cause: 'EXITED_NONZERO', exitCode: 3 });
      expect(await agent.complete(of('ada', script('job_2', 'kill -SEGV $$')))).toMatchObject({
        ...{ cause: 'SIGNALLED', signal: 'SIGSEGV' },
      });
      // Outputs that only their owner may read, and a directory that resists removal.
      const files =
        'umask 077; mkdir -p out/deep; echo kept > out/deep/file; mkdir stuck; touch stuck/x; chmod 0 stuck';
      const wanted = { ...of('ada', script('job_3', files)), outputs: [{ path: 'out', dataset: null }] };
      expect(await agent.complete(wanted)).toMatchObject({ cause: 'EXITED_ZERO', message: null });
      expect(agent.kept('out/deep/file')).toBe('kept\n');
      const empty = await agent.complete(of('ada', script('job_4', 'ls -A; find "$TMPDIR" -type f')));
      expect(empty.out).toBe('');
      await until(
        () => !readdirSync(agent.stateDir).some((name) => name.startsWith('trash')),
        'nothing to be left',
      );
      // A directory and a program that the agent may not see.
      const shown = await open('* = ada\n', show.shown && mode === 'user' ? {} : { shown: [] });
      const own = {
        ...of('anyone', script('job_5', 'pwd; touch here')),
        workingDirectory: join(shown.homes, 'ada'),
      };
      if (mode === 'user') expect(await shown.complete(own)).toMatchObject({ cause: 'EXITED_ZERO', err: '' });
      const lost = { ...of('anyone', script('job_6', 'true')), workingDirectory: join(shown.homes, 'bob') };
      expect(await shown.complete(lost)).toMatchObject({ cause: 'LAUNCH_FAILED' });
    });

    it('cannot read keys, nor what another user’s job has, nor become more', async () => {
      const agent = await open(as === null ? 'ada = ada\nbob = bob\n' : 'ada = ada\neve = eve\n');
      const key = join(agent.stateDir, 'admin.key');
      writeFileSync(key, 'the-secret', { mode: 0o600 });
      if (as !== null) chownSync(key, as, as);
      const other = as === null ? 'bob' : 'ada';
      const words = `victim ${process.pid} ${mode} ${as}`;
      const victim = of(
        other,
        script('job_victim', `umask 0; echo private > secret.txt; sleep 100; true # ${words}`),
      );
      agent.send({ ...victim, environment: { TOKEN: 'their-token' } });
      await until(() => withWords(words).length > 0, 'the other job');
      if (as !== null) {
        // Not one of another group: nobody else’s group is the run’s.
        expect(await agent.complete(of('eve', script('job_eve', 'true')))).toMatchObject({
          ...{
            cause: 'LAUNCH_FAILED',
            message: expect.stringContaining('its group has other members (bob)'),
          },
        });
        agent.send({ cancel: { jobId: 'job_victim', epoch: 1 }, graceMs: 0 });
        await until(() => agent.end('job_victim') !== undefined, 'the other job to end');
        return;
      }
      const slots = join(agent.stateDir, 'slots', '*');
      const attack = `cat ${key} ${join(slots, 'work', '*')} ${join(slots, 'run')} ${join(slots, 'start')}
      cat /proc/[0-9]*/environ | tr '\\0' '\\n'
      for p in ${agent.child.pid} $PPID ${withWords(words).join(' ')}; do [ $p = 1 ] || kill -9 $p && echo killed $p; done
      sudo -n -u bob id -un; setpriv --reuid=0 id -u; true`;
      const { out } = await agent.complete(of('ada', script('job_attack', attack)));
      expect(out).not.toMatch(/the-secret|private|their-token|killed [^1]|^bob$|^0$/m);
      expect(withWords(words).length).toBeGreaterThan(0);
      agent.send({ cancel: { jobId: 'job_victim', epoch: 1 }, graceMs: 0 });
      await until(() => agent.end('job_victim') !== undefined, 'the other job to end');
    });

    it('is ended with all that it has left, and its user’s other processes stay', async () => {
      const agent = await open('* = ada\n');
      const mine = `mine ${process.pid} ${mode} ${as}`;
      const own = spawn(
        'setpriv',
        [`--reuid=${ADA}`, `--regid=${ADA}`, '--clear-groups', 'sh', '-c', `sleep 1000; true # ${mine}`],
        { stdio: 'ignore', detached: true },
      );
      onTestFinished(() => void process.kill(-own.pid!, 'SIGKILL'));
      await until(() => withWords(mine).length > 0, 'a process of the user');
      const words = `flight ${process.pid} ${mode} ${as}`;
      onTestFinished(() => {
        for (const pid of withWords(words)) process.kill(pid, 'SIGKILL');
      });
      const loop = `sh -c "trap '' TERM; while :; do sleep 0.1; done # ${words}"`;
      const away = `setsid ${loop}`;
      // Without session, parent, environment and descriptors, an agent that is not root cannot tell it from its user's own.
      const hidden = `env -i /usr/bin/setsid ${loop} 9>&- 8>&- <&- >&- 2>&-`;
      const hides = as === null || mode === 'sandbox' ? `${hidden} & ${hidden} & ${hidden} &` : '';
      await agent.complete(script('job_1', `(${away} & ${hides}) ; sleep 0.3`));
      await until(() => withWords(words).length === 0, 'what it has left to be gone');
      if (hides) {
        // Nor while it runs does it get what it did not ask for by hiding.
        const eat = '(head -c 120000000 /dev/zero; sleep 60) | tail -n 1 | wc -c';
        const job = `(env -i /usr/bin/setsid sh -c "${eat}" 9>&- 8>&- <&- >&- 2>&- &) ; sleep 60`;
        expect(await agent.complete({ ...script('job_hidden', job), memoryMbPerTask: 50 })).toMatchObject({
          cause: 'MEMORY_LIMIT',
        });
      }
      const listens = `listens ${process.pid} ${mode} ${as}`;
      // Its words are put together when it listens.
      const waits = `w=listens; sh -c "while :; do sleep 0.1; done # $w ${process.pid} ${mode} ${as}"`;
      const tidy = `(${away} &) ; trap 'echo tidied; exit 7' TERM; echo up; ${waits}`;
      agent.send(script('job_2', tidy));
      await until(() => withWords(words).length > 1 && withWords(listens).length > 0, 'it to run');
      agent.send({ cancel: { jobId: 'job_2', epoch: 1 }, graceMs: 30_000 });
      await until(() => agent.end('job_2') !== undefined, 'it to end');
      expect(agent.end('job_2')).toMatchObject({ cause: 'CANCELLED_BY_USER', exitCode: 7 });
      const stubborn = `stubborn ${process.pid} ${mode} ${as}`;
      // As are these, when it does not any more.
      const deaf = `trap '' TERM; ${away} & w=stubborn; sh -c "while :; do sleep 0.1; done # $w ${process.pid} ${mode} ${as}"`;
      agent.send(script('job_3', deaf));
      await until(() => withWords(stubborn).length > 0, 'it to run');
      agent.send({ cancel: { jobId: 'job_3', epoch: 1 }, graceMs: 100 });
      await until(() => agent.end('job_3') !== undefined, 'it to end');
      expect(agent.end('job_3')).toMatchObject({ cause: 'CANCELLED_BY_USER', exitCode: 137 });
      await until(() => withWords(words).length + withWords(stubborn).length === 0, 'all of it to be gone');
      expect(withWords(mine).length).toBeGreaterThan(0);
    });

    it('gets signals: its command, or what this has started', async () => {
      const agent = await open('* = ada\n');
      for (const { name, run, words, signals, exitCode } of SIGNALLED) {
        agent.send(run);
        await until(() => withWords(words).length > 0, 'it to run');
        agent.send({ signal: name, signals });
        await until(() => agent.end(name.jobId) !== undefined, 'it to end');
        expect(agent.end(name.jobId)).toMatchObject({ cause: 'EXITED_NONZERO', exitCode });
      }
    });

    it('is ended for more memory and processes than it may have', async () => {
      const agent = await open('* = ada\n', { processes: 30 });
      const eat = script('job_1', '(head -c 120000000 /dev/zero; sleep 60) | tail -n 1 | wc -c');
      expect(await agent.complete({ ...eat, memoryMbPerTask: 50 })).toMatchObject({ cause: 'MEMORY_LIMIT' });
      const words = `fork ${process.pid} ${mode} ${as}`;
      const bomb = `f() { sleep 0.1; [ $1 = 6 ] && sleep 60; f $(($1 + 1)) & f $(($1 + 1)) & wait; }; f 0 # ${words}`;
      expect(await agent.complete(script('job_2', bomb))).toMatchObject({ cause: 'PROCESS_LIMIT' });
      await until(() => withWords(words).length === 0, 'all of it to be gone');
      expect(await agent.complete(script('job_3', 'echo on'))).toMatchObject({ out: 'on\n' });
    });

    it('without an account it does not run, and says why', async () => {
      const agent = await open(
        `ada = ada\nzoe = nobody-here\nmallory = daemon${as === null ? '\nguest = :pool' : '\nbob = bob'}\n`,
      );
      const refused = async (user: string, problem: string): Promise<void> => {
        const end = await agent.complete(of(user, script(`job_${user}`, 'id')));
        expect(end).toMatchObject({
          cause: 'LAUNCH_FAILED',
          message: expect.stringContaining(problem),
          out: '',
        });
      };
      await refused('unknown', 'the user unknown has no account at this site');
      await refused('zoe', 'nobody-here does not exist');
      await refused('mallory', 'IDs below 1000');
      if (as === null) {
        const { out } = await agent.complete(of('guest', script('job_guest', 'id -u')));
        expect(Number(out)).toBeGreaterThan(1_000_000);
      } else await refused('bob', 'sudo: a password is required');
    });
  },
);

/** The control groups of version 2, where somebody can be given a part of them. */
const unified = ['/sys/fs/cgroup', '/sys/fs/cgroup/unified'].find((dir) =>
  existsSync(join(dir, 'cgroup.subtree_control')),
);

describe.runIf(mayMount)('an ordinary agent, without accounts', () => {
  it.runIf(existsSync('/usr/bin/bwrap'))(
    'has the sandbox: a job reads no key, and leaves nothing behind',
    async () => {
      const agent = await startHost({ mode: 'strongest' }, null, AGENT);
      const key = join(agent.stateDir, 'admin.key');
      writeFileSync(key, 'the-secret', { mode: 0o600 });
      chownSync(key, AGENT, AGENT);
      const words = `daemon ${process.pid} ordinary`;
      const daemon = `(env -i /usr/bin/setsid sh -c "sleep 1000 # ${words}; true" 9>&- 8>&- <&- >&- 2>&- &)`;
      const text = `id -u; cat ${key} /proc/${agent.child.pid}/environ; kill -9 ${agent.child.pid}; ${daemon}; sleep 0.3`;
      const { out } = await agent.complete(script('job_1', text));
      expect(out).toBe(`${AGENT}\n`);
      await until(() => withWords(words).length === 0, 'the daemon to be gone');
      expect((await agent.complete(script('job_2', 'echo on'))).out).toBe('on\n');
    },
  );

  it.runIf(unified !== undefined)(
    'with control groups that were handed to it, nothing is left of a job even with `none`',
    async () => {
      const group = join(unified!, `switchyard-test-${process.pid}`);
      mkdirSync(group);
      onTestFinished(async () => {
        const remove = (dir: string): void => {
          for (const entry of readdirSync(dir, { withFileTypes: true }))
            if (entry.isDirectory()) remove(join(dir, entry.name));
          rmdirSync(dir);
        };
        await until(
          () => readFileSync(join(group, 'cgroup.events'), 'utf8').includes('populated 0'),
          'the group to be empty',
        );
        remove(group);
      });
      for (const name of ['', 'cgroup.procs', 'cgroup.subtree_control', 'cgroup.threads'])
        chownSync(join(group, name), AGENT, AGENT);
      const agent = await startHost({ mode: 'none' }, null, AGENT, { cgroup: group });
      const words = `daemon ${process.pid} handed`;
      const daemon = `(env -i /usr/bin/setsid sh -c "sleep 1000 # ${words}; true" 9>&- 8>&- <&- >&- 2>&- &)`;
      const { out } = await agent.complete(
        script('job_1', `grep ^0:: /proc/self/cgroup; ${daemon}; sleep 0.3`),
      );
      expect(out).toMatch(/switchyard-[\w-]+\/job_1\.1\n$/);
      await until(() => withWords(words).length === 0, 'the daemon to be gone');
    },
  );
});

it.runIf(mayMount && existsSync(RUNUSER[0]!))(
  'whatever runs a command as an account can be the launcher',
  async () => {
    const agent = await startHost({ mode: 'user' }, '* = nobody\n', null, { launcher: RUNUSER });
    const say = `id -un; echo "$GREETING"; exit 3`;
    const end = await agent.complete({ ...script('job_1', say), environment: { GREETING: "it's" } });
    expect(end).toMatchObject({ cause: 'EXITED_NONZERO', exitCode: 3, err: '', out: "nobody\nit's\n" });
    const words = `flight ${process.pid} launched`;
    const away = `setsid sh -c "trap '' TERM; while :; do sleep 0.1; done # ${words}"`;
    agent.send(script('job_2', `(${away} &) ; while :; do sleep 0.1; done`));
    await until(() => withWords(words).length > 0, 'it to run');
    agent.send({ cancel: { jobId: 'job_2', epoch: 1 }, graceMs: 30_000 });
    await until(() => agent.end('job_2') !== undefined, 'it to end');
    // runuser goes with the signal, and its exit code is not the job's then.
    expect(agent.end('job_2')).toMatchObject({ cause: 'CANCELLED_BY_USER' });
    await until(() => withWords(words).length === 0, 'all of it to be gone');
  },
);

const hasSystemd = existsSync('/run/systemd/system');
it.runIf(mayMount && existsSync(SYSTEMD_RUN[0]!))(
  `systemd-run is a launcher${hasSystemd ? '' : ', which says why it cannot be used: systemd does not run here'}`,
  async () => {
    const agent = await startHost({ mode: 'user' }, '* = nobody\n', null, { launcher: SYSTEMD_RUN });
    const { cause, message, out } = await agent.complete(script('job_1', 'id -un'));
    if (hasSystemd) expect({ cause, out }).toEqual({ cause: 'EXITED_ZERO', out: 'nobody\n' });
    else {
      expect(cause).toBe('LAUNCH_FAILED');
      expect(message).toMatch(/^the account nobody cannot be used at this site: .*systemd/);
    }
  },
);

it.runIf(mayMount)(
  'a directory of accounts that does not answer holds up only whom it is asked for',
  async () => {
    const bin = temporaryDirectory();
    const hangs = join(bin, 'hangs');
    const getent = `#!/bin/sh\n[ ! -e ${hangs} ] || exec sleep 1000\nPATH=/usr/bin:/bin exec getent "$@"\n`;
    writeFileSync(join(bin, 'getent'), getent, { mode: 0o755 });
    const list = 'ada = ada\nbob = bob\nguest = :pool\n';
    const agent = await startHost({ mode: 'user' }, list, null, { path: `${bin}:`, patienceMs: 700 });
    expect(await agent.complete(of('ada', script('job_1', 'id -un')))).toMatchObject({ out: 'ada\n' });
    writeFileSync(hangs, '');
    agent.send(of('bob', script('job_bob', 'true')));
    // What it knows, and what it need not know, goes on meanwhile.
    expect(await agent.complete(of('ada', script('job_2', 'id -un')))).toMatchObject({ out: 'ada\n' });
    await agent.complete(of('guest', script('job_3', 'true')));
    expect(agent.end('job_bob')).toBe(undefined);
    await until(() => agent.end('job_bob') !== undefined, 'patience to end');
    // Not the job's fault: it is tried elsewhere.
    expect(agent.end('job_bob')).toMatchObject({
      ...{ cause: 'MACHINE_FAILED', message: expect.stringContaining('does not respond: getent passwd bob') },
    });
  },
);

describe('the list of accounts', () => {
  let dir: string;
  const open = (text: string, launcher: string[] | null = null): Accounts => {
    dir = temporaryDirectory();
    const file = join(dir, 'list');
    writeFileSync(file, text);
    return new Accounts({ file, launcher, environment: {}, warn: () => {} });
  };

  it('is refused with the line, what it says, and what is accepted', () => {
    for (const [text, problem] of [
      ['ada', 'line 1: ada: accepted: user = account'],
      ['# who is who\n\nada = root', 'line 3: ada = root: accepted: the name of an account other than root'],
      ['a=b=c\n = c', 'line 2: = c: accepted: user = account'],
      ['ada = a b', 'line 1: ada = a b: accepted'],
      ['ada = a\nada = b', 'line 2: ada = b: ada is listed twice'],
    ] as const)
      expect(() => open(text)).toThrow(problem);
    expect(() => open('ada = :pool', SUDO)).toThrow('needs an agent that is root');
    expect(() => new Accounts({ file: '/nowhere', launcher: null, environment: {}, warn: () => {} })).toThrow(
      'ENOENT',
    );
  });

  it('is read again when it changes; one that is not accepted changes nothing', () => {
    const accounts = open('ada = :pool # for now\n');
    expect(accounts.of('ada')).toBe(null);
    expect(() => accounts.of('bob')).toThrow('bob has no account');
    writeFileSync(join(dir, 'list'), 'bob = :pool\n# and nobody else\n');
    expect(accounts.of('bob')).toBe(null);
    expect(() => accounts.of('ada')).toThrow('ada has no account');
    writeFileSync(join(dir, 'list'), 'everybody');
    expect(accounts.of('bob')).toBe(null);
  });
});
