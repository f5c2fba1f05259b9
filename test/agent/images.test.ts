/** Runs in images: by bubblewrap, in every isolation that this machine offers, in an image that is made here. */
import { execFileSync } from 'node:child_process';
import { chmodSync, closeSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { Isolation, type IsolationMode, type IsolationOptions } from '../../src/agent/process/isolation.js';
import type { ProcessRunner, ProcessRunnerOptions } from '../../src/agent/process/runner.js';
import { runScript, startInput } from '../../src/agent/process/script.js';
import type { Assignment, RunReport } from '../../src/agent/runner.js';
import { makeImage, runsImages } from '../support/image.js';
import { assignment, complete, endOf, openRunner, script, temporaryDirectory, until } from './support.js';

let images: string;
beforeAll(() => {
  images = mkdtempSync(join(tmpdir(), 'switchyard-images-'));
  chmodSync(images, 0o755);
  makeImage(images, 'made:1');
});
afterAll(() => rmSync(images, { recursive: true, force: true }));

const isRoot = process.getuid?.() === 0;
const modes = (['none', 'user', 'sandbox'] as const).filter((mode) => runsImages(mode));

async function open(
  mode: IsolationMode,
  more: Partial<IsolationOptions> = {},
  options: Partial<ProcessRunnerOptions> = {},
): Promise<ProcessRunner> {
  const stateDir = temporaryDirectory();
  chmodSync(stateDir, 0o755);
  return openRunner({
    stateDir,
    isolation: (dir, id) => Isolation.open({ mode, images: [images], ...more }, dir, id),
    ...options,
  });
}

const inImage = (run: Assignment, image = 'made:1'): Assignment => ({ ...run, image });

const digestIn = (reports: readonly RunReport[], jobId: string): string | null | undefined =>
  reports.find((report) => report.jobId === jobId && report.phase === 'STARTED')?.local?.imageDigest;

it.runIf(modes.length > 0)('a job has no descriptor that the agent inherited from who started it', () => {
  const dir = temporaryDirectory();
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
    ...{ launchers: [], prologue: [], inside: ['/usr/bin/bwrap', '--ro-bind', '/', '/', '--proc', '/proc'] },
  };
  writeFileSync(join(dir, 'start'), startInput(run) as string);
  writeFileSync(join(dir, 'script'), runScript(':', 'key', dir, dir, join(dir, 'start'), run));
  execFileSync('sh', ['-c', `. "${dir}/script"`], {
    stdio: ['ignore', 'inherit', 'inherit', 'ignore', 'ignore', 'ignore', 'ignore', inherited],
  });
  // 3: the directory that is listed; 9: how the lane sees that the job is alive.
  expect(readFileSync(join(dir, 'out'), 'utf8').trim().split('\n')).toEqual(['0', '1', '2', '3', '9']);
});

it.runIf(isRoot)(
  'nobody is root in an image: an agent that is root runs none without isolation',
  async () => {
    const isolation = Isolation.open({ mode: 'none', images: [images] }, temporaryDirectory(), 'test');
    expect(isolation.images).toBeNull();
    expect(isolation.lacking).toContain('images: without isolation, jobs would be root in them');
    const runner = await open('none');
    expect(runner.runsImages).toBe(false);
    expect(await complete(runner, inImage(script('job_1', 'true')))).toMatchObject({
      cause: 'LAUNCH_FAILED',
      message: 'image made:1: this machine does not run images (AGENT_IMAGES of its agent)',
    });
  },
);

describe.runIf(process.platform === 'linux').each(modes)('in images, isolation %s', (mode) => {
  it('a job sees the files of its image, its own directory, and nothing else of the host', async () => {
    const secret = temporaryDirectory();
    chmodSync(secret, 0o755);
    writeFileSync(join(secret, 'told'), 'of the host\n');
    const runner = await open(mode);
    const odd = { 'with space;id': "a\nb'", GREETING: 'hi', PATH: '/usr/bin' };
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
    expect(Number(said[6])).toBeGreaterThan(0);
    // Its own processes only.
    expect(Number(said[7])).toBeLessThan(6);
    const env = await complete(runner, { ...inImage(assignment('job_2', 'env', '-0')), environment: odd });
    expect(env.stdout!.text.split('\0')).toEqual(
      expect.arrayContaining([
        ...Object.entries(odd).map(([name, value]) => `${name}=${value}`),
        'TMPDIR=/tmp',
      ]),
    );
  });

  it('a job has a terminal there', async () => {
    const runner = await open(mode, {}, { terminals: true });
    runner.start({
      ...inImage(script('job_1', '[ -t 0 ] && [ -t 1 ] && read -r x; echo "<$x>"; exit 3')),
      terminal: { rows: 30, columns: 90 },
    });
    const piece = { jobId: 'job_1', epoch: 1, sequence: 1, body: Buffer.from('typed\n'), size: null };
    await until(() => runner.input(piece), 'it to be typed to');
    await until(() => endOf(runner, 'job_1') !== undefined, 'the end');
    const end = endOf(runner, 'job_1');
    expect(end).toMatchObject({ cause: 'EXITED_NONZERO', exitCode: 3 });
    expect(end?.stdout?.text).toMatch(/<typed>\r\n$/);
  });

  it('the image is read-only and the same for the next; what is new beside it is the job’s own', async () => {
    const runner = await open(mode);
    const end = await complete(
      runner,
      inImage(
        script(
          'job_1',
          'for at in /usr/bin/sh /etc/os-release /opt/made/new /var/lib/made/told; do echo x 2>/dev/null >"$at" && echo "wrote $at"; done; mkdir -p /data/in && echo own >/data/in/file && cat /data/in/file; echo t >/tmp/left',
        ),
      ),
    );
    expect(end).toMatchObject({ cause: 'EXITED_ZERO', stdout: { text: 'own\n' } });
    expect(end.stderr!.text).toMatch(/private to this job.*"left"/);
    const next = await complete(runner, inImage(script('job_2', 'ls /data /tmp/left; cat /etc/os-release')));
    expect(next.stdout!.text).toBe('ID=made\n');
  });

  it('the digest is told, the same for the same files, and another one for others', async () => {
    const own = mkdtempSync(join(tmpdir(), 'switchyard-images-'));
    onTestFinished(() => rmSync(own, { recursive: true, force: true }));
    chmodSync(own, 0o755);
    const [a, b] = ['made:1', 'tools/made:2'].map((name) => makeImage(own, name)) as [string, string];
    // Copies are of one time here.
    for (const root of [a, b]) settle(root);
    const runner = await open(mode, { images: [own] });
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
    const runner = await open(mode, { images: [own] });
    const names = ['tools/made', 'docker.io/tools/made:latest', 'made:2', 'library/made:2'];
    for (const [i, name] of names.entries())
      expect((await complete(runner, inImage(script(`job_${i}`, 'true'), name))).message).toBeNull();
    await until(() => runner.images!(10) !== null, 'them to be looked for');
    expect(runner.images!(10)?.map(({ name }) => name)).toEqual(['docker.io/library/made:2', 'tools/made']);
  });

  it('an image that is not there, or a path, is refused by name', async () => {
    const runner = await open(mode);
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
    const runner = await open(mode, { shown: [{ path: shown, readOnly: false }] }, { devices: [device] });
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

  it('outputs are kept, a limit of the run time and a cancellation end all of it, after a warning', async () => {
    const kept: string[] = [];
    const runner = await open(
      mode,
      {},
      {
        keep: async ({ directory }) => {
          kept.push(readFileSync(join(directory, 'result'), 'utf8'));
          return null;
        },
      },
    );
    const outputs = [{ path: 'result', dataset: null }];
    await complete(runner, { ...inImage(script('job_1', 'echo result >result')), outputs });
    expect(kept).toEqual(['result\n']);
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
    const runner = await open(mode, { network: false });
    const end = await complete(
      runner,
      inImage(script('job_1', 'cat /proc/net/dev | grep -c :; grep -c of-the-image /etc/hosts')),
    );
    expect(end.stdout!.text).toBe('1\n1\n');
  });
});

/** All times of change of a tree are one. */
function settle(root: string): void {
  execFileSync('find', [root, '-exec', 'touch', '-h', '-d', '@1000000000', '{}', '+']);
}
