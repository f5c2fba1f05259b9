/** Runs in images: by every runtime and in every isolation that this machine offers, in an image that is made here. */
import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  closeSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { openInside } from '../../src/agent/files/find.js';
import {
  findImageRuntime,
  IMAGE_RUNTIMES,
  runtimesOf,
  saidByRuntime,
} from '../../src/agent/process/image-runtimes.js';
import { imageMounts } from '../../src/agent/process/images.js';
import { Isolation, type IsolationMode, type IsolationOptions } from '../../src/agent/process/isolation.js';
import { commandLine, isNamed, processTable } from '../../src/agent/process/processes.js';
import type { ProcessRunner, ProcessRunnerOptions } from '../../src/agent/process/runner.js';
import { runScript, startInput } from '../../src/agent/process/script.js';
import type { Assignment, RunReport } from '../../src/agent/runner.js';
import { lacksForImages, makeImage } from '../support/image.js';
import {
  assignment,
  complete,
  endOf,
  openRunner,
  SIGNALLED,
  script,
  temporaryDirectory,
  until,
  withWords,
} from './support.js';

let images: string;
beforeAll(() => {
  images = mkdtempSync(join(tmpdir(), 'switchyard-images-'));
  chmodSync(images, 0o755);
  const own = join(makeImage(images, 'made:1'), '.singularity.d/env');
  mkdirSync(own, { recursive: true });
  writeFileSync(join(own, '90-environment.sh'), 'export OF_THE_IMAGE=1\n');
});
afterAll(() => rmSync(images, { recursive: true, force: true }));

const isRoot = process.getuid?.() === 0;
const kinds = IMAGE_RUNTIMES.flatMap((runtime) =>
  (['none', 'user', 'sandbox'] as const).map((mode) => ({
    runtime,
    mode,
    lacks: lacksForImages(mode, [runtime]),
  })),
);
const here = kinds.filter(({ lacks }) => lacks === null);
for (const { runtime, mode, lacks } of kinds)
  if (lacks !== null) it.skip(`in images by ${runtime}, isolation ${mode}: ${lacks}`);
const working = [...new Set(here.map(({ runtime }) => runtime))];

async function openWith(
  mode: IsolationMode,
  more: Partial<IsolationOptions> = {},
  options: Partial<ProcessRunnerOptions> = {},
): Promise<ProcessRunner> {
  const stateDir = options.stateDir ?? temporaryDirectory();
  chmodSync(stateDir, 0o755);
  return openRunner({
    isolation: (dir, id) => Isolation.open({ mode, images: [images], ...more }, dir, id),
    ...options,
    stateDir,
  });
}

const inImage = (run: Assignment, image = 'made:1'): Assignment => ({ ...run, image });

const digestIn = (reports: readonly RunReport[], jobId: string): string | null | undefined =>
  reports.find((report) => report.jobId === jobId && report.phase === 'STARTED')?.local?.imageDigest;

it.each(working)('by %s, a job has no descriptor that the agent inherited from who started it', (name) => {
  const dir = temporaryDirectory();
  const root = join(images, 'made:1');
  const runtime = findImageRuntime([name], () => null);
  if (typeof runtime === 'string') throw new Error(runtime);
  const inherited = openSync('/etc/hostname', 'r');
  onTestFinished(() => closeSync(inherited));
  execFileSync('mkfifo', [join(dir, 'alive')]);
  const run = {
    ...{
      program: '/bin/ls',
      arguments: ['/proc/self/fd'],
      environment: new Map(),
      directory: '/',
      umask: null,
      terminal: null,
    },
    ...{ launchers: [], prologue: [] },
    inside: runtime.enter({
      ...{ tmp: dir, network: true, uid: process.getuid!(), gid: process.getgid!(), nameless: false },
      mounts: [
        ...imageMounts(root, ['/proc', '/dev']),
        { kind: 'proc', path: '/proc' },
        { kind: 'dev', path: '/dev' },
      ],
    }),
  };
  writeFileSync(join(dir, 'start'), startInput(run) as string);
  writeFileSync(join(dir, 'script'), runScript(':', 'key', dir, dir, join(dir, 'start'), run));
  execFileSync('sh', ['-c', `. "${dir}/script"`], {
    stdio: ['ignore', 'inherit', 'inherit', 'ignore', 'ignore', 'ignore', 'ignore', inherited],
  });
  // The directory that is listed, and how the lane sees that the job is alive: twice where all is handed on.
  const others = { bubblewrap: ['3', '9'], apptainer: ['3', '4', '9'] }[name as string] ?? ['3', '4'];
  expect(readFileSync(join(dir, 'out'), 'utf8').trim().split('\n')).toEqual(['0', '1', '2', ...others]);
});

it.runIf(isRoot)(
  'nobody is root in an image: an agent that is root runs none without isolation',
  async () => {
    const isolation = Isolation.open({ mode: 'none', images: [images] }, temporaryDirectory(), 'test');
    expect(isolation.images).toBeNull();
    expect(isolation.lacking).toContain('images: without isolation, jobs would be root in them');
    const runner = await openWith('none');
    expect(runner.imageRuntime).toBeNull();
    expect(await complete(runner, inImage(script('job_1', 'true')))).toMatchObject({
      cause: 'LAUNCH_FAILED',
      message: 'image made:1: this machine does not run images (AGENT_IMAGES of its agent)',
    });
  },
);

it('runtimes are tried in the order of the operator, who may name what brings them', () => {
  expect(runtimesOf([])).toEqual(['bubblewrap', 'crun', 'runc', 'apptainer']);
  expect(runtimesOf(['docker', 'bubblewrap'])).toEqual(['runc', 'bubblewrap']);
  expect(runtimesOf(['podman', 'docker'])).toEqual(['crun', 'runc']);
  expect(runtimesOf(['singularity', 'apptainer'])).toEqual(['apptainer']);
  const tried: string[] = [];
  const found = findImageRuntime(['runc', 'bubblewrap', 'crun'], ({ name }) => {
    tried.push(name);
    return 'it says no';
  });
  expect(tried).toEqual(['runc', 'bubblewrap', 'crun'].filter((name) => tried.includes(name)));
  for (const name of ['runc', 'bubblewrap', 'crun']) expect(found).toContain(`${name}: `);
});

it('what runtimes say of a program that they cannot start is told in plain words', () => {
  const warned = 'time="2026-01-01T00:00:00Z" level=warning msg="unable to get oom kill count"\n';
  const byRunc = `${warned}time="2026-01-01T00:00:00Z" level=error msg="runc run failed: mounting \\"/x\\": no such file"\n`;
  expect(saidByRuntime(byRunc, 'a')).toBe('mounting "/x": no such file');
  expect(saidByRuntime('{"msg":"stat `/x`: No such file","level":"error","time":"x"}\n', 'a')).toBe(
    'stat `/x`: No such file',
  );
  expect(saidByRuntime('[FATAL tini (7)] exec a failed: No such file or directory\n', 'a')).toBe(
    'a: No such file or directory',
  );
  expect(saidByRuntime('FATAL:   container creation failed: mount /x: no such file\n', 'a')).toBe(
    'container creation failed: mount /x: no such file',
  );
  expect(saidByRuntime('FATAL:   "a": executable file not found in $PATH\r\n', 'a')).toBe(
    'a: executable file not found in $PATH',
  );
  // A program's own.
  for (const text of [
    'FATAL:   failed to open x\n',
    'FATAL:   permission denied\nand more\n',
    '{"level":"error","msg":"x","time":1}',
    `it: ${byRunc}`,
    'time="x" level=error msg="bad"',
    warned,
  ])
    expect(saidByRuntime(text, 'a')).toBeNull();
});

describe.each(here.map(({ runtime, mode }) => [runtime, mode] as const))(
  'in images by %s, isolation %s',
  (runtime, mode) => {
    const open = (
      more: Partial<IsolationOptions> = {},
      options: Partial<ProcessRunnerOptions> = {},
    ): Promise<ProcessRunner> => openWith(mode, { runtimes: [runtime], ...more }, options);

    it('a job sees the files of its image, its own directory, and nothing else of the host', async () => {
      const secret = temporaryDirectory();
      chmodSync(secret, 0o755);
      writeFileSync(join(secret, 'told'), 'of the host\n');
      const runner = await open();
      const odd = {
        ...{ 'with space;id': "a\nb'", GREETING: 'hi', PATH: '/usr/bin' },
        ...{
          ENDS: "a\r\n$x`\\b'",
          UID: '7',
          EUID: '8',
          GID: '9',
          IFS: 'x',
          APPTAINER_BIND: '/home',
          LD_LIBRARY_PATH: '/none',
        },
      };
      const end = await complete(runner, {
        ...inImage(
          script(
            'job_1',
            `cat /etc/os-release /var/lib/made/told; [ -e ${secret} ] || echo hidden; echo "$GREETING"; echo kept > file; pwd; cat file; id -u; ls /proc | grep -c '^[0-9]'; exit 3`,
          ),
        ),
        environment: odd,
      });
      expect(end).toMatchObject({ cause: 'EXITED_NONZERO', exitCode: 3, stderr: { text: '' } });
      const said = end.stdout!.text.split('\n');
      expect(said.slice(0, 4)).toEqual(['ID=made', 'of the image', 'hidden', 'hi']);
      expect(said[4]).toMatch(/work$/);
      expect(said[5]).toBe('kept');
      // runc starts programs as user 0 of a namespace only.
      expect(Number(said[6]) > 0).toBe(runtime !== 'runc');
      // Its own processes only.
      expect(Number(said[7])).toBeLessThan(6);
      const env = await complete(runner, { ...inImage(assignment('job_2', 'env', '-0')), environment: odd });
      expect(env.stdout!.text.split('\0')).toEqual(
        expect.arrayContaining([
          ...Object.entries(odd).map(([name, value]) => `${name}=${value}`),
          'TMPDIR=/tmp',
        ]),
      );
      // None of the runtime's, but for two that apptainer does not let anybody change; none of the image's.
      const names = env.stdout!.text.split('\0').map((one) => one.split('=')[0]!);
      const others = names.filter((name) => /^(APPTAINER|SINGULARITY|PROMPT|PS1|OF_THE_IMAGE)/.test(name));
      const told = [
        'APPTAINER_BIND',
        ...(runtime === 'apptainer' ? ['APPTAINER_CONTAINER', 'APPTAINER_NAME'] : []),
      ];
      expect(others.sort()).toEqual(told);
    });

    it('a job has a terminal there', async () => {
      const runner = await open({}, { terminals: true });
      runner.start({
        ...inImage(script('job_1', '[ -t 0 ] && [ -t 1 ] && read -r x; echo "<$x>"; : >/dev/tty && exit 3')),
        terminal: { rows: 30, columns: 90 },
      });
      const piece = { jobId: 'job_1', epoch: 1, sequence: 1, body: Buffer.from('typed\n'), size: null };
      await until(() => runner.input(piece), 'it to be typed to');
      await until(() => endOf(runner, 'job_1') !== undefined, 'the end');
      const end = endOf(runner, 'job_1');
      expect(end).toMatchObject({ cause: 'EXITED_NONZERO', exitCode: 3 });
      expect(end?.stdout?.text).toMatch(/<typed>\r\n$/);
    });

    it('nobody has a right that the account lacks, and what is made is the account’s', async () => {
      const made: number[] = [];
      const runner = await open(
        {},
        {
          keep: async ({ directory }) => {
            made.push(statSync(join(directory, 'made')).uid);
            return null;
          },
        },
      );
      const end = await complete(runner, {
        ...inImage(script('job_1', 'id -u; umask; grep -E "^(Cap|NoNew)" /proc/self/status; echo x >made')),
        outputs: [{ path: 'made', dataset: null }],
      });
      expect(end).toMatchObject({ cause: 'EXITED_ZERO', message: null, stderr: { text: '' } });
      const [uid, umask, ...rights] = end.stdout!.text.trim().split('\n');
      expect(made[0]).not.toBe(0);
      // apptainer shows an account without a name as nobody.
      const shown = { runc: 0, apptainer: isRoot ? 65_534 : undefined }[runtime as string];
      expect(Number(uid)).toBe(shown ?? made[0]);
      expect(Number.parseInt(umask!, 8)).toBe(process.umask());
      expect(rights.map((line) => line.replace(/^\w+:\s+/, ''))).toEqual([
        ...Array(5).fill('0'.repeat(16)),
        '1',
      ]);
    });

    it('signals go to its command, or to what this has started', async () => {
      const runner = await open();
      for (const { name, run, words, signals, exitCode } of SIGNALLED) {
        runner.start(inImage(run));
        await until(() => withWords(words).length > 0, 'it to run');
        runner.signal(name, signals);
        await until(() => endOf(runner, name.jobId) !== undefined, 'the end');
        expect(endOf(runner, name.jobId)).toMatchObject({ cause: 'EXITED_NONZERO', exitCode });
      }
      // One that handles none is ended by it.
      const seconds = `1000.${process.pid}1`;
      runner.start(inImage(assignment('job_1', 'sleep', seconds)));
      await until(() => withWords(`sleep\0${seconds}`).length > 0, 'it to run');
      runner.cancel({ jobId: 'job_1', epoch: 1 }, 600_000);
      await until(() => endOf(runner, 'job_1') !== undefined, 'the end');
      expect(endOf(runner, 'job_1')).toMatchObject({ cause: 'CANCELLED_BY_USER', signal: 'SIGTERM' });
    });

    it('nothing is left of one that is killed, or whose runtime is', async () => {
      const stateDir = temporaryDirectory();
      const runner = await open({}, { stateDir });
      const seconds = `1000.${process.pid}2`;
      const words = `sleep\0${seconds}`;
      // Deaf, and no children of the command.
      const run = script(
        'job_1',
        `trap '' TERM HUP; (sleep ${seconds} &); (sleep ${seconds} &); sleep ${seconds}`,
      );
      runner.start(inImage(run));
      await until(() => withWords(words).length === 3, 'it to run');
      runner.cancel({ jobId: 'job_1', epoch: 1 }, 0);
      await until(() => endOf(runner, 'job_1') !== undefined, 'the end');
      await until(() => withWords(words).length === 0, 'all of it to be gone');
      runner.start(inImage({ ...run, jobId: 'job_2' }));
      await until(() => withWords(words).length === 3, 'it to run');
      // The runtime, as its directory tells; apptainer's has other words by then, but has started the init.
      const [first] =
        runtime === 'apptainer'
          ? withWords(seconds)
              .map(parentOf)
              .filter((pid) => isNamed(pid, 'appinit'))
              .map(parentOf)
          : withWords(stateDir).filter((pid) => /bwrap\0|\0run\0/.test(commandLine(pid)));
      expect(first).toBeDefined();
      process.kill(first!, 'SIGKILL');
      await until(() => endOf(runner, 'job_2') !== undefined, 'the end');
      expect(endOf(runner, 'job_2')).toMatchObject({ cause: 'SIGNALLED', signal: 'SIGKILL' });
      await until(() => withWords(words).length === 0, 'all of it to be gone');
    });

    it('the next agent finds it, and how it ends', async () => {
      const stateDir = temporaryDirectory();
      const first = await open({}, { stateDir });
      const seconds = `1000.${process.pid}3`;
      first.start(inImage(script('job_1', `trap 'exit 5' TERM; echo x >/tmp/left; sleep ${seconds} & wait`)));
      await until(() => withWords(`sleep\0${seconds}`).length > 0, 'it to run');
      first.close();
      const second = await open({}, { stateDir });
      expect(second.runs()).toMatchObject([{ jobId: 'job_1' }]);
      second.cancel({ jobId: 'job_1', epoch: 1 }, 600_000);
      await until(() => endOf(second, 'job_1') !== undefined, 'the end');
      expect(endOf(second, 'job_1')).toMatchObject({ cause: 'CANCELLED_BY_USER', exitCode: 5 });
      await until(() => withWords(seconds).length === 0, 'all of it to be gone');
    });

    it('what cannot be started is told in the words of the runtime', async () => {
      const own = mkdtempSync(join(tmpdir(), 'switchyard-images-'));
      onTestFinished(() => rmSync(own, { recursive: true, force: true }));
      chmodSync(own, 0o755);
      makeImage(own, 'made:3');
      const shown = temporaryDirectory();
      chmodSync(shown, 0o777);
      const runner = await open({ images: [own], shown: [{ path: shown, readOnly: false }] });
      const directory = join(shown, 'none');
      const there = await complete(runner, {
        ...inImage(script('job_1', 'true'), 'made:3'),
        workingDirectory: directory,
      });
      expect(there).toMatchObject({ cause: 'LAUNCH_FAILED', message: expect.stringContaining(directory) });
      // It is not made.
      expect(readdirSync(shown)).toEqual([]);
      expect(await complete(runner, inImage(assignment('job_2', '/etc/os-release'), 'made:3'))).toMatchObject(
        {
          cause: 'LAUNCH_FAILED',
          message: expect.stringContaining(
            `os-release: ${runtime === 'apptainer' ? 'p' : 'P'}ermission denied`,
          ),
        },
      );
    });

    it('the image is read-only and the same for the next; what is new beside it is the job’s own', async () => {
      const runner = await open();
      const end = await complete(
        runner,
        inImage(
          script(
            'job_1',
            'for at in /usr/bin/sh /etc/os-release /opt/made/new /var/lib/made/told; do echo x 2>/dev/null >"$at" && echo "wrote $at"; done; mkdir -p /data/in && echo own >/data/in/file && cat /data/in/file; echo t >/tmp/left; echo shared >/dev/shm/file && cat /dev/shm/file; for dev in null zero full random urandom tty; do [ -c /dev/$dev ] || echo "no $dev"; done',
          ),
        ),
      );
      expect(end).toMatchObject({ cause: 'EXITED_ZERO', stdout: { text: 'own\nshared\n' } });
      expect(end.stderr!.text).toMatch(/private to this job.*"left"/);
      const next = await complete(
        runner,
        inImage(script('job_2', 'ls /data /tmp/left /dev/shm/file; cat /etc/os-release')),
      );
      expect(next.stdout!.text).toBe('ID=made\n');
    });

    it('the digest is told, the same for the same files, and another one for others', async () => {
      const own = mkdtempSync(join(tmpdir(), 'switchyard-images-'));
      onTestFinished(() => rmSync(own, { recursive: true, force: true }));
      chmodSync(own, 0o755);
      const [a, b] = ['made:1', 'tools/made:2'].map((name) => makeImage(own, name)) as [string, string];
      // Copies are of one time here.
      for (const root of [a, b]) settle(root);
      const runner = await open({ images: [own] });
      const told = async (jobId: string, image: string) => {
        await complete(runner, inImage(script(jobId, 'true'), image));
        return digestIn(runner.reports(1_000), jobId);
      };
      const first = await told('job_1', 'made:1');
      expect(first).toMatch(/^sha256:[0-9a-f]{64}$/);
      expect(await told('job_2', 'tools/made:2')).toBe(first);
      rmSync(b, { recursive: true });
      writeFileSync(join(makeImage(own, 'tools/made:2'), 'etc/os-release'), 'ID=other\n');
      settle(b);
      expect(await told('job_3', 'tools/made:2')).not.toBe(first);
      // A run in no image tells none.
      await complete(runner, script('job_4', 'true'));
      expect(digestIn(runner.reports(1_000), 'job_4')).toBeUndefined();
    });

    it('an image is found by all of its names, and told of once', async () => {
      const own = mkdtempSync(join(tmpdir(), 'switchyard-images-'));
      onTestFinished(() => rmSync(own, { recursive: true, force: true }));
      chmodSync(own, 0o755);
      for (const name of ['tools/made', 'docker.io/library/made:2']) makeImage(own, name);
      const runner = await open({ images: [own] });
      const names = ['tools/made', 'docker.io/tools/made:latest', 'made:2', 'library/made:2'];
      for (const [i, name] of names.entries())
        expect((await complete(runner, inImage(script(`job_${i}`, 'true'), name))).message).toBeNull();
      await until(() => runner.images!(10) !== null, 'them to be looked for');
      expect(runner.images!(10)?.map(({ name }) => name)).toEqual(['docker.io/library/made:2', 'tools/made']);
    });

    it('an image that is not there, or a path, is refused by name', async () => {
      const runner = await open();
      for (const [i, image] of ['made:2', '../etc', '/usr', 'made:1/../made:1', '.'].entries())
        expect(await complete(runner, inImage(script(`job_${i}`, 'true'), image))).toMatchObject({
          cause: 'LAUNCH_FAILED',
          message: `image ${image}: not available on this machine (AGENT_IMAGES of its agent)`,
        });
      expect(await complete(runner, inImage(assignment('job_9', 'no-such-program')))).toMatchObject({
        cause: 'LAUNCH_FAILED',
        message: expect.stringContaining('no-such-program'),
      });
    });

    it('inputs, directories that the operator shows, and devices are as for other jobs', async () => {
      const shown = temporaryDirectory();
      chmodSync(shown, 0o777);
      const inputs = temporaryDirectory();
      chmodSync(inputs, 0o755);
      const input = join(inputs, 'data');
      writeFileSync(input, 'input\n');
      const zero = { id: 'z0', kind: 'zero', model: null, memoryMb: 0, shares: 1, link: null };
      const device = { ...zero, files: ['/dev/loop-control'], environment: { ZERO: 'z0' } };
      const runner = await open({ shown: [{ path: shown, readOnly: false }] }, { devices: [device] });
      const end = await complete(runner, {
        ...inImage(
          script(
            'job_1',
            `cat data "$SWITCHYARD_INPUT_1"; echo out >${shown}/out; touch data 2>&1 | grep -c .; ls /dev/loop-control; echo $ZERO`,
          ),
        ),
        machines: [{ name: 'here', tasks: 1, devices: ['z0'] }],
        staged: [{ place: 1, name: 'data', path: input }],
      });
      expect(end.stdout!.text).toBe('input\ninput\n1\n/dev/loop-control\nz0\n');
      expect(readFileSync(join(shown, 'out'), 'utf8')).toBe('out\n');
      // Its working directory is one of the host's.
      const there = await complete(runner, {
        ...inImage(script('job_2', 'pwd; cat out')),
        workingDirectory: shown,
      });
      expect(there.stdout!.text).toBe(`${shown}\nout\n`);
      expect(
        await complete(runner, { ...inImage(script('job_3', 'pwd')), workingDirectory: '/usr' }),
      ).toMatchObject({
        cause: 'LAUNCH_FAILED',
        message: expect.stringContaining('/usr: '),
      });
    });

    it.runIf(isRoot)('what is mounted below a directory that is shown read-only is so too', async () => {
      const shown = join(temporaryDirectory(), 'a,"b c');
      const mounted = join(shown, 'below');
      mkdirSync(mounted, { recursive: true });
      for (const path of [dirname(shown), shown]) chmodSync(path, 0o755);
      execFileSync('mount', ['-t', 'tmpfs', '-o', 'mode=777', 'none', mounted]);
      onTestFinished(() => void execFileSync('umount', [mounted]));
      writeFileSync(join(mounted, 'file'), 'there\n');
      const runner = await open({ shown: [{ path: shown, readOnly: true }] });
      const command = 'cat "$1/file"; touch "$1/new" 2>/dev/null || echo read-only';
      const run = { ...script('job_1', ''), arguments: ['-c', command, 'sh', mounted] };
      const end = await complete(runner, inImage(run));
      expect(end.stdout!.text).toBe('there\nread-only\n');
    });

    it('outputs are kept, a limit of the run time and a cancellation end all of it, after a warning', async () => {
      const kept: string[] = [];
      const runner = await open(
        {},
        {
          keep: async (run) => {
            kept.push(readFileSync(join(run.directory, 'result'), 'utf8'));
            const file = await openInside(run, '/tmp/out');
            kept.push(readFileSync(file.fd, 'utf8'));
            await file.close();
            return null;
          },
        },
      );
      const outputs = ['result', '/tmp/out'].map((path) => ({ path, dataset: null }));
      const writes = script('job_1', 'echo result >result; echo temporary >/tmp/out');
      const end = await complete(runner, { ...inImage(writes), outputs });
      expect(end).toMatchObject({ cause: 'EXITED_ZERO' });
      expect(kept).toEqual(['result\n', 'temporary\n']);
      const sleeps = 'trap "echo told; exit 7" TERM; echo up; sleep 1000 & wait';
      const limited = await complete(runner, { ...inImage(script('job_2', sleeps)), runTimeLimitS: 1 });
      expect(limited.cause).toBe('RUN_TIME_LIMIT');
      runner.start(inImage(script('job_3', sleeps)));
      await until(
        () => (runner.freshOutput() ?? []).some(({ jobId, text }) => jobId === 'job_3' && text === 'up\n'),
        'its output',
      );
      runner.cancel({ jobId: 'job_3', epoch: 1 });
      await until(() => endOf(runner, 'job_3') !== undefined, 'its end');
      expect(endOf(runner, 'job_3')).toMatchObject({ cause: 'CANCELLED_BY_USER', exitCode: 7 });
    });

    it('without the network there is none in an image either', async () => {
      const runner = await open({ network: false });
      const end = await complete(
        runner,
        inImage(script('job_1', 'cat /proc/net/dev | grep -c :; grep -c of-the-image /etc/hosts')),
      );
      expect(end.stdout!.text).toBe('1\n1\n');
    });
  },
);

const parentOf = (pid: number): number => processTable().find((one) => one.pid === pid)!.parent;

/** All times of change of a tree are one. */
function settle(root: string): void {
  execFileSync('find', [root, '-exec', 'touch', '-h', '-d', '@1000000000', '{}', '+']);
}
