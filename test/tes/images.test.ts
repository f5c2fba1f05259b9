/** Jobs in images, by every door: a whole service whose agent runs them. */
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { endAll, type Service, serve } from '../cli/service.js';
import { IMAGES_ISOLATION, makeImage, runsImages } from '../support/image.js';
import { tesClient } from './client.js';

describe.runIf(runsImages())('jobs in images', () => {
  let home: string;
  let service: Service;
  beforeAll(async () => {
    home = mkdtempSync(join(tmpdir(), 'switchyard-images-'));
    chmodSync(home, 0o755);
    mkdirSync(join(home, 'files'));
    chmodSync(join(home, 'files'), 0o777);
    makeImage(join(home, 'images'), 'tools/made:1');
    service = await serve(home, [], '0', {
      ...{ SWITCHYARD_ISOLATION: IMAGES_ISOLATION, AGENT_IMAGES: join(home, 'images') },
      ...{ AGENT_DIRECTORIES: join(home, 'files'), TES_STORAGE: `file://${home}/files` },
    });
  });
  afterAll(async () => {
    await endAll();
    rmSync(home, { recursive: true, force: true });
  });

  it('the machine says that it runs them, and the run records which', async () => {
    const [machine] = await service.json<{ labels: object[] }[]>('machines');
    expect(machine!.labels).toContainEqual({ name: 'containers', value: 'bubblewrap' });
    const command = ['sh', '-c', 'cat /etc/os-release; ls /home'];
    expect(
      await service.cli('run', '--name', 'ours', '--image', 'tools/made:1', '--', ...command),
    ).toMatchObject({
      stdout: 'ID=made\n',
    });
    const [{ id }] = (await service.json<{ id: string }[]>('jobs', '--state', 'FAILED')) as [{ id: string }];
    const job = await service.json<{ image: string; runs: { imageDigest: string }[] }>('job', id);
    expect(job).toMatchObject({
      image: 'tools/made:1',
      runs: [{ imageDigest: expect.stringMatching(/^sha256:[0-9a-f]{64}$/) }],
    });
    expect((await service.cli('job', id)).stdout).toMatch(/image tools\/made:1[\s\S]*run 1: image sha256:/);
  });

  it('a batch script names one as for Slurm, and one that is not there is told', async () => {
    const script = join(home, 'files', 'job.sh');
    writeFileSync(script, '#!/bin/sh\n#SBATCH --container=tools/made:1\ncat /etc/os-release\n');
    expect(await service.cli('run', script)).toEqual({ code: 0, stdout: 'ID=made\n', stderr: '' });
    const none = await service.cli('run', '--no-restart', '--image', 'tools/made:2', '--', 'true');
    expect(none.code).not.toBe(0);
    expect(none.stderr).toContain('image tools/made:2: not available on this machine');
    for (const image of ['../made', '/made', 'a//b', 'a b', `${'x'.repeat(201)}`])
      expect(await service.cli('run', '--image', image, '--', 'true')).toMatchObject({
        code: 2,
        stderr: expect.stringContaining('image'),
      });
  });

  it('a task of TES runs in its image, with inputs and outputs where it wants them', async () => {
    const key = readFileSync(join(home, 'admin.key'), 'utf8').trim();
    const tes = await tesClient(new URL(service.url).origin, key);
    const files = `file://${home}/files`;
    writeFileSync(join(home, 'files', 'in'), 'input\n');
    const executor = {
      image: 'tools/made:1',
      command: ['sh', '-c', 'cat text /etc/os-release'],
      workdir: '/scratch',
    };
    const id = await tes.create({
      inputs: [{ path: '/scratch/text', url: `${files}/in` }],
      outputs: [{ path: '/scratch/out', url: `${files}/out` }],
      executors: [
        { ...executor, stdout: '/scratch/out' },
        { ...executor, image: 'docker.io/tools/made:1', command: ['cat', 'out'] },
      ],
    });
    const ended = await tes.ended(id);
    expect(ended).toMatchObject({ state: 'COMPLETE', executors: [{ image: 'tools/made:1' }, {}] });
    expect(ended.logs[0]!.logs.at(-1)!.stdout).toBe('input\nID=made\n');
    expect(readFileSync(join(home, 'files', 'out'), 'utf8')).toBe('input\nID=made\n');
    // As cwl-tes and other runners of CWL have it, in an image that has /var/lib.
    const staged = { path: '/var/lib/cwl/staged/text', content: 'staged\n' };
    const command = ['cat', staged.path, '/var/lib/made/told'];
    const ofCwl = await tes.create({
      inputs: [staged],
      executors: [{ ...executor, command, workdir: '/var/spool/cwl' }],
    });
    expect((await tes.ended(ofCwl)).logs[0]!.logs[0]!.stdout).toBe('staged\nof the image\n');
    expect(await tes.refused({ executors: [executor, { ...executor, image: 'other' }] })).toEqual([
      400,
      expect.stringMatching(/executors\[1\]\.image: "other".*run in the same image/),
    ]);
  });
});
