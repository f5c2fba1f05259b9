/**
 * Slices of cards in MIG mode, made and removed by the agent: against a stand-in that prints recorded formats of nvidia-smi. Where the tests do
 * not run as root, the agent divides no card.
 */
import { spawn } from 'node:child_process';
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { it as always, beforeEach, expect, onTestFinished, vi } from 'vitest';
import { findDevices, linkGroups } from '../../src/agent/devices.js';
import { migProfiles, sizesFor } from '../../src/agent/mig.js';
import type { Assignment } from '../../src/agent/runner.js';
import { h100, playNvidia, topology } from '../support/nvidia.js';
import { complete, endOf, lives, openRunner, script, temporaryDirectory, until } from './support.js';

const isRoot = process.getuid?.() === 0;
const it = always.runIf(isRoot);

let nvidia: ReturnType<typeof playNvidia>;
let stateDir: string;
beforeEach(() => {
  nvidia = playNvidia(join(temporaryDirectory(), 'nvidia'), [h100(true), h100(true)], topology(2, []));
  vi.stubEnv('PATH', nvidia.path);
  onTestFinished(() => void vi.unstubAllEnvs());
  stateDir = temporaryDirectory();
});

const open = async () => openRunner({ stateDir, devices: await findDevices(null, stateDir) });
const withUnits = (id: string, text: string, ...devices: string[]): Assignment => ({
  ...script(id, text),
  machines: [{ name: 'here', tasks: 1, devices }],
});
const slices = (card: string, first: number, count: number): string[] =>
  Array.from({ length: count }, (_, i) => `${card}/${first + i}`);
const empty = () => until(() => nvidia.instances().length === 0, 'the instances to be removed');

always('finds groups of cards that NVLinks join, also by way of others', () => {
  expect([
    ...linkGroups(
      topology(6, [
        [0, 2],
        [1, 3],
        [2, 4],
      ]),
    ),
  ]).toEqual([
    ['GPU0', 'nvlink0'],
    ['GPU2', 'nvlink0'],
    ['GPU1', 'nvlink1'],
    ['GPU3', 'nvlink1'],
    ['GPU4', 'nvlink0'],
  ]);
  // Two groups that a third card joins.
  const late = linkGroups(
    topology(4, [
      [0, 3],
      [1, 2],
      [2, 3],
    ]),
  );
  expect(new Set(late.values()).size).toBe(1);
  expect(linkGroups(topology(2, []))).toEqual(new Map());
  expect(linkGroups('No devices were found\n')).toEqual(new Map());
});

always.skipIf(isRoot)('offers no card that it cannot divide', async () => {
  expect(await findDevices(null, stateDir)).toEqual([]);
});

it('knows slices and their memory', async () => {
  const found = await findDevices(null, null);
  expect(found).toMatchObject([
    { id: 'gpu0', kind: 'mig', model: 'NVIDIA H100 80GB HBM3', shares: 7, memoryMb: 7 * 10_468, link: null },
    { id: 'gpu1', kind: 'mig' },
  ]);
  const { mig } = found[0]!;
  const sizes = (count: number) => sizesFor(mig!, count).map(({ slices: one }) => one);
  expect([1, 2, 3, 4, 5, 6, 7].map(sizes)).toEqual([[1], [2], [3], [4], [4, 1], [4, 2], [7]]);
  expect(migProfiles('No MIG-supported devices found.')).toEqual(new Map());
  const mixed = playNvidia(
    join(temporaryDirectory(), 'nvidia'),
    [h100(true), h100(false), h100(false)],
    topology(3, [[1, 2]]),
  );
  vi.stubEnv('PATH', mixed.path);
  expect((await findDevices(null, null)).map(({ kind, link }) => [kind, link])).toEqual([
    ['mig', null],
    ['gpu', 'nvlink1'],
    ['gpu', 'nvlink1'],
  ]);
});

it('gives each run instances of its own, and removes them when it is over', async () => {
  const runner = await open();
  const dir = temporaryDirectory();
  const says = `echo $CUDA_VISIBLE_DEVICES > said; mv said ${dir}/$SWITCHYARD_JOB_ID; while [ ! -e ${dir}/go ]; do sleep 0.02; done`;
  const runs = [
    withUnits('job_1', says, ...slices('gpu0', 0, 3)),
    withUnits('job_2', says, ...slices('gpu0', 3, 1)),
    withUnits('job_3', says, ...slices('gpu1', 0, 5)),
    script('job_4', says),
  ];
  for (const run of runs) runner.start(run);
  const said = (job: string) => readFileSync(join(dir, job), 'utf8').trim().split(',');
  await until(() => runs.every(({ jobId }) => existsSync(join(dir, jobId))), 'the runs');
  const made = nvidia.instances();
  const profileOf = (job: string) => said(job).map((uuid) => made.find((one) => one.uuid === uuid)?.profile);
  expect(profileOf('job_1')).toEqual(['3g.40gb']);
  expect(profileOf('job_2')).toEqual(['1g.10gb']);
  expect(profileOf('job_3')).toEqual(['4g.40gb', '1g.10gb']);
  expect(said('job_4')).toEqual(['']);
  expect(made).toHaveLength(4);
  writeFileSync(join(dir, 'go'), '');
  await empty();
  // The slices can be had in other sizes.
  expect(await complete(runner, withUnits('job_5', 'true', ...slices('gpu0', 0, 7)))).toMatchObject({
    cause: 'EXITED_ZERO',
  });
  await empty();
});

it('a run whose slices do not lie together does not begin, and the machine is fit; without rights it is not', async () => {
  const runner = await open();
  const dir = temporaryDirectory();
  const waits = (id: string) => `touch ${dir}/${id}; while [ ! -e ${dir}/go ]; do sleep 0.02; done`;
  runner.start(withUnits('job_1', waits('job_1'), 'gpu0/0'));
  await until(() => existsSync(join(dir, 'job_1')), 'job_1');
  // The smaller one lies where the larger would have to begin.
  const end = await complete(runner, withUnits('job_2', 'true', ...slices('gpu0', 1, 4)));
  expect(end).toMatchObject({ cause: 'MACHINE_FAILED' });
  expect(end.message).toMatch(/^no MIG instance could be made: nvidia-smi mig .*Insufficient Resources$/);
  expect(runner.problem).toBeNull();
  nvidia.set('broken');
  const refused = await complete(runner, withUnits('job_3', 'true', 'gpu1/0'));
  expect(refused.message).toMatch(/Insufficient Permissions$/);
  expect(runner.problem).toMatch(/Insufficient Permissions$/);
  writeFileSync(join(dir, 'go'), '');
  await empty();
});

it('what cannot be removed yet is in nobody’s way for ever', async () => {
  const runner = await open();
  nvidia.set('busy');
  await complete(runner, withUnits('job_1', 'true', ...slices('gpu0', 0, 7)));
  // Its slices are given again while the old instance is still there.
  runner.start(withUnits('job_2', 'echo $CUDA_VISIBLE_DEVICES', ...slices('gpu0', 0, 7)));
  const old = nvidia.instances()[0]!.uuid;
  rmSync(join(nvidia.directory, 'busy'));
  await until(() => endOf(runner, 'job_2') !== undefined, 'job_2');
  const end = endOf(runner, 'job_2')!;
  expect(end.cause).toBe('EXITED_ZERO');
  expect(end.stdout?.text).not.toContain(old);
  await empty();
});

it('what a killed agent has left is removed, but for what goes on, and for what others have made', async () => {
  const dir = temporaryDirectory();
  const host = fileURLToPath(new URL('./host.mjs', import.meta.url));
  const start = async () => {
    const child = spawn(process.execPath, [host, stateDir], {
      stdio: ['pipe', 'pipe', 'inherit'],
      env: { ...process.env, FIND_DEVICES: '1' },
    });
    const gone = new Promise<void>((resolve) => child.on('close', () => resolve()));
    const kill = async (): Promise<void> => {
      child.kill('SIGKILL');
      await gone;
    };
    onTestFinished(kill);
    let ready = false;
    createInterface({ input: child.stdout! }).on('line', (line) => {
      ready ||= JSON.parse(line).ready === true;
    });
    await until(() => ready || child.exitCode !== null, 'the agent (is dist/ built?)');
    return { start: (run: Assignment) => child.stdin!.write(`${JSON.stringify(run)}\n`), kill };
  };
  const waits = (id: string) =>
    `echo $CUDA_VISIBLE_DEVICES $$ > said; mv said ${dir}/${id}; while [ ! -e ${dir}/go-${id} ]; do sleep 0.02; done`;
  const first = await start();
  first.start(withUnits('job_1', waits('job_1'), 'gpu0/0'));
  first.start(withUnits('job_2', waits('job_2'), ...slices('gpu1', 0, 2)));
  await until(() => ['job_1', 'job_2'].every((id) => existsSync(join(dir, id))), 'the runs');
  // Killed while an instance is being made: nvidia-smi goes on, and nobody hears of what it has made.
  nvidia.set('slow', '2');
  const making = join(nvidia.directory, 'making');
  rmSync(making);
  first.start(withUnits('job_3', 'true', ...slices('gpu0', 1, 2)));
  await until(() => existsSync(making), 'it to be made');
  await first.kill();
  // One goes on, one is over before there is an agent again.
  writeFileSync(join(dir, 'go-job_2'), '');

  const [uuid, pid] = readFileSync(join(dir, 'job_1'), 'utf8').trim().split(' ');
  const second = await open();
  const isLate = () => nvidia.instances().some(({ card, profile }) => card === 0 && profile === '2g.20gb');
  await until(isLate, 'the instance that is made late');
  await until(() => nvidia.instances().length === 1, 'the others to be removed');
  expect(nvidia.instances()[0]?.uuid).toBe(uuid);
  expect(lives(Number(pid))).toBe(true);
  await until(() => endOf(second, 'job_2') !== undefined, 'the end of job_2');
  writeFileSync(join(dir, 'go-job_1'), '');
  await until(() => endOf(second, 'job_1') !== undefined, 'the end of job_1');
  await empty();
  // Another agent knows nothing of what it finds.
  await complete(second, withUnits('job_4', `cp ${nvidia.directory}/instances.json ${dir}/there`, 'gpu0/0'));
  await empty();
  writeFileSync(join(nvidia.directory, 'instances.json'), readFileSync(join(dir, 'there')));
  expect((await findDevices(null, temporaryDirectory())).map(({ id }) => id)).toEqual(['gpu1']);
});
