/**
 * Unmodified clients of GA4GH TES run whole workflows in images: Toil as Debian has it, and cwl-tes. Both need py-tes, which Debian does not have:
 * give the directory where it is unpacked in PYTHONPATH, and those of cwl-tes, of the cwltool of 2019 that it takes, and of what that needs, in
 * CWL_TES_PYTHONPATH. What cannot be imported is skipped.
 */
import { execFile, execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { endAll, type Service, serve, until } from '../cli/service.js';
import { IMAGES_ISOLATION, makeImage, runsImages } from '../support/image.js';
import { PYTHON, SUMS } from './toil.js';

const MINUTES = 60_000;
const PYTHONPATH = process.env.PYTHONPATH ?? '';
/** Toil takes another cwltool. */
const CWL_TES_PYTHONPATH = `${PYTHONPATH}:${process.env.CWL_TES_PYTHONPATH ?? ''}`;
const imports = (modules: string, path: string): boolean =>
  spawnSync(PYTHON, ['-c', `import ${modules}`], { stdio: 'ignore', env: { PYTHONPATH: path } }).status === 0;
const hasToil = imports('tes, toil.batchSystems.tes', PYTHONPATH);
const hasCwlTes = imports('tes, cwl_tes.main', CWL_TES_PYTHONPATH);

/** The account of the leaders and of the jobs: they share files. */
const account = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {};
const inImages = runsImages();
const home = mkdtempSync(join(tmpdir(), 'switchyard-tes-clients-'));
const files = join(home, 'files');
let service: Service;
let env: Record<string, string>;

beforeAll(async () => {
  if (!hasToil && !hasCwlTes) return;
  chmodSync(home, 0o755);
  mkdirSync(files);
  chmodSync(files, 0o777);
  const accounts = join(home, 'accounts');
  writeFileSync(accounts, 'admin = nobody\n');
  service = await serve(home, [], '0', {
    TES_STORAGE: `file://${files}`,
    ...(inImages
      ? {
          SWITCHYARD_ISOLATION: IMAGES_ISOLATION,
          AGENT_IMAGES: join(home, 'images'),
          AGENT_DIRECTORIES: [files, ...makeImages(join(home, 'images'))].join(),
          ...(IMAGES_ISOLATION === 'user' && { AGENT_ACCOUNTS: accounts }),
        }
      : { TES_IGNORE_IMAGES: 'true' }),
  });
  env = {
    PATH: '/usr/local/bin:/usr/bin:/bin',
    HOME: files,
    PYTHONPATH,
    PYTHONWARNINGS: 'ignore',
    KEY: readFileSync(join(home, 'admin.key'), 'utf8').trim(),
    TOIL_TES_ENDPOINT: new URL(service.url).origin,
  };
}, 5 * MINUTES);
afterAll(async () => {
  await endAll();
  rmSync(home, { recursive: true, force: true });
});

/** The images that the workflows name. Returns what they need of the host besides. */
function makeImages(directory: string): string[] {
  makeImage(directory, 'tools/made:1');
  if (!hasToil) return [];
  const used = `import toil, toil.worker, toil.cwl.cwltoil, sysconfig
print(toil.applianceSelf(), sysconfig.get_path('stdlib'), sep='\\n')
print(*{line.split()[-1] for line in open('/proc/self/maps') if '.so' in line}, sep='\\n')`;
  const [name = '', library = '', ...objects] = execFileSync(PYTHON, ['-c', used], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
  })
    .trim()
    .split('\n');
  const root = makeImage(directory, name, [PYTHON, '/usr/bin/du', ...objects]);
  for (const script of ['/usr/bin/_toil_contained_executor', '/usr/bin/_toil_worker'])
    cpSync(script, join(root, script));
  return ['/usr/lib/python3', library, '/usr/share/zoneinfo'].map((path) => `${path}:ro`);
}

function folder(name: string, contents: Record<string, string>): string {
  const path = join(files, name);
  mkdirSync(path);
  chmodSync(path, 0o777);
  for (const [file, text] of Object.entries(contents)) writeFileSync(join(path, file), text);
  return path;
}

function shell(cwd: string, line: string): Promise<{ code: number; output: string }> {
  return new Promise((resolve) => {
    execFile('bash', ['-c', line], { cwd, env, ...account, maxBuffer: 1e8 }, (error, stdout, stderr) =>
      resolve({ code: typeof error?.code === 'number' ? error.code : 0, output: `${stdout}${stderr}` }),
    );
  });
}

interface Made {
  name: string;
  state: string;
  image: string | null;
}

/** The jobs since the last time, the first one first. */
async function newJobs(): Promise<Made[]> {
  const jobs = await service.json<{ id: string; name: string; state: string }[]>('jobs', '--all');
  const fresh = jobs.filter(({ id }) => !seen.has(id)).reverse();
  for (const { id } of fresh) seen.add(id);
  return Promise.all(
    fresh.map(async ({ id }) => {
      const { name, state, image } = await service.json<Made>('job', id);
      return { name, state, image };
    }),
  );
}
const seen = new Set<string>();

const TOIL = '--batchSystem tes --disableCaching --statePollingWait 1';

it.skipIf(!hasToil)(
  'Toil runs jobs that hand results on; one that has failed is tried again',
  async () => {
    const dir = folder('toil', {
      'workflow.py': SUMS,
    });
    const { code, output } = await shell(
      dir,
      `TOIL_TES_BEARER_TOKEN=$KEY ${PYTHON} workflow.py file:${files}/store ${TOIL} --retryCount 1 --setEnv MARK=${dir}/mark`,
    );
    expect(code, output).toBe(0);
    expect(output).toMatch(/^sum 60$/m);
    expect(output).toContain('the first time it fails');
    const jobs = await newJobs();
    expect(jobs.map(({ state }) => state).sort()).toEqual([...Array(5).fill('COMPLETED'), 'FAILED']);
    if (inImages) for (const { image } of jobs) expect(image).toContain('quay.io/ucsc_cgl/toil');
  },
  9 * MINUTES,
);

it.skipIf(!hasToil)(
  'Toil that is interrupted cancels its jobs',
  async () => {
    const dir = folder('interrupted', {
      'workflow.py': `import time
from toil.common import Toil
from toil.job import Job
def sleep(job):
    time.sleep(3600)
if __name__ == '__main__':
    options = Job.Runner.getDefaultArgumentParser().parse_args()
    with Toil(options) as toil:
        toil.start(Job.wrapJobFn(sleep, memory='600M', cores=1, disk='10M'))
`,
    });
    const args = ['workflow.py', `file:${files}/left`, ...TOIL.split(' ')];
    const toil = spawn(PYTHON, args, {
      cwd: dir,
      env: { ...env, TOIL_TES_USER: 'ada', TOIL_TES_PASSWORD: env.KEY },
      ...account,
      stdio: 'ignore',
    });
    const ended = once(toil, 'close');
    const states = async (): Promise<string[]> =>
      (await service.json<{ name: string; state: string }[]>('jobs', '--all'))
        .filter(({ name }) => name.startsWith("'sleep'"))
        .map(({ state }) => state);
    await until(states, ([state]) => state === 'RUNNING');
    toil.kill('SIGINT');
    await ended;
    await until(states, ([state]) => state === 'CANCELLED');
    await newJobs();
  },
  5 * MINUTES,
);

const WORKFLOW = {
  'in.txt': 'one\ntwo\nthree\n',
  'workflow.cwl': `cwlVersion: v1.0
class: Workflow
inputs: {text: File}
outputs: {size: {type: File, outputSource: size/size}}
steps:
  found: {run: found.cwl, in: {text: text}, out: [found]}
  size: {run: size.cwl, in: {text: found/found}, out: [size]}
`,
  'found.cwl': `cwlVersion: v1.0
class: CommandLineTool
hints: {DockerRequirement: {dockerPull: 'tools/made:1'}}
baseCommand: [grep, t]
inputs: {text: File}
stdin: $(inputs.text.path)
outputs: {found: {type: stdout}}
stdout: found.txt
`,
  'size.cwl': `cwlVersion: v1.0
class: CommandLineTool
hints: {DockerRequirement: {dockerPull: 'tools/made:1'}}
baseCommand: [sh, -c, 'wc -c <"$0"']
inputs: {text: {type: File, inputBinding: {}}}
outputs: {size: {type: stdout}}
stdout: size.txt
`,
};

it.skipIf(!hasToil)(
  'Toil runs CWL, with steps that follow one another in one job',
  async () => {
    const dir = folder('toil-cwl', WORKFLOW);
    const { code, output } = await shell(
      dir,
      `TOIL_TES_BEARER_TOKEN=$KEY toil-cwl-runner ${TOIL} --jobStore file:${files}/cwl-store --no-container --defaultMemory 600M --defaultDisk 10M --outdir out workflow.cwl --text in.txt`,
    );
    expect(code, output).toBe(0);
    expect(readFileSync(join(dir, 'out/size.txt'), 'utf8')).toMatch(/^ *10\n$/);
    expect((await newJobs()).map(({ state }) => state)).toEqual(['COMPLETED']);
  },
  9 * MINUTES,
);

it.skipIf(!hasCwlTes || !inImages)(
  'cwl-tes runs the steps of a workflow in the image that they name',
  async () => {
    const dir = folder('cwl-tes', WORKFLOW);
    const { code, output } = await shell(
      dir,
      `PYTHONPATH=${CWL_TES_PYTHONPATH} ${PYTHON} -c 'import sys, cwl_tes.main; sys.exit(cwl_tes.main.main())' --tes $TOIL_TES_ENDPOINT --user ada --password $KEY --outdir out workflow.cwl --text in.txt`,
    );
    expect(code, output).toBe(0);
    expect(readFileSync(join(dir, 'out/size.txt'), 'utf8')).toMatch(/^ *10\n$/);
    expect(await newJobs()).toMatchObject([
      { name: 'found', state: 'COMPLETED', image: 'tools/made:1' },
      { name: 'size', state: 'COMPLETED' },
    ]);
  },
  9 * MINUTES,
);
