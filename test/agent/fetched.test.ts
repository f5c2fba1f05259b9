/** Images that an agent fetches: each program that can do it here, from registries on this host. */
import { spawnSync } from 'node:child_process';
import { chmodSync, existsSync, lstatSync, mkdirSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Login } from '../../src/agent/credentials.js';
import type { FetchOptions, Requester } from '../../src/agent/process/fetched.js';
import { findImageTool, IMAGE_TOOLS, type ImageTool } from '../../src/agent/process/image-tools.js';
import { Isolation } from '../../src/agent/process/isolation.js';
import { processesOfRun } from '../../src/agent/process/processes.js';
import type { ProcessRunner } from '../../src/agent/process/runner.js';
import type { RunName } from '../../src/agent/runner.js';
import { runsImages } from '../support/image.js';
import { hasRegistry, type Registry, startRegistry, USER } from '../support/registry.js';
import { complete, endOf, openRunner, script, temporaryDirectory, until } from './support.js';

const mode = (['sandbox', 'user'] as const).find((one) => runsImages(one));
const TOLD = 'of the registry\n';

/** Command lines and environments of all processes. */
const processesNow = (): string[] =>
  readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((pid) =>
      ['cmdline', 'environ'].flatMap((file) => {
        try {
          return readFileSync(`/proc/${pid}/${file}`, 'utf8');
        } catch {
          return [];
        }
      }),
    );
const tools = IMAGE_TOOLS.map((name) => [name, findImageTool([name])] as const);

it('the first program that works is taken; otherwise each says what it lacks', () => {
  const [found] = tools.filter(([, tool]) => typeof tool !== 'string');
  if (found) expect(findImageTool(IMAGE_TOOLS)).toBe(found[1]);
  for (const [name, lacks] of tools)
    if (typeof lacks === 'string') expect(lacks).toMatch(new RegExp(`^${name}: .`));
});

describe.runIf(hasRegistry && mode).each(tools)('images fetched by %s', (name, tool) => {
  let open: Registry;
  let closed: Registry;
  /** Of an image here. */
  let bytes = 0;
  beforeAll(async () => {
    if (typeof tool === 'string') return;
    open = await startRegistry(false, 'made:1', 'made:2', 'made:3');
    closed = await startRegistry(true, 'tools/own:1');
  }, 300_000);
  afterAll(() => {
    open?.close();
    closed?.close();
  });

  async function agent(options: Partial<FetchOptions> = {}, stateDir = temporaryDirectory()) {
    chmodSync(stateDir, 0o755);
    const fetch: FetchOptions = {
      ...{ tool: tool as ImageTool, registries: ['*'], maxBytes: 1e9, login: async () => 'none is stored' },
      ...options,
    };
    const runner = await openRunner({
      stateDir,
      isolation: (dir, id) => Isolation.open({ mode: mode!, fetch }, dir, id),
    });
    const images = join(stateDir, 'images');
    return {
      runner,
      stateDir,
      images,
      count: () => readdirSync(images).filter((each) => /^\w/.test(each)).length,
    };
  }
  const run = (runner: ProcessRunner, id: string, image: string, text = 'cat /etc/told', user = 'ada') =>
    complete(runner, { ...script(id, text), image, user });
  /** Like `it`, for a program that works here. */
  const test = it.skipIf(typeof tool === 'string');

  test('a job runs in it, tame, with the digest of the registry; the next fetches nothing', async () => {
    const { runner, images, stateDir } = await agent();
    const image = `${open.host}/made:1`;
    const end = await run(runner, 'job_1', image, 'cat /etc/told; ls /etc/odd; id -u');
    expect(end.message).toBeNull();
    expect(end.stdout?.text).toMatch(/^of the registry\n[1-9]\d*\n$/);
    const told = runner.reports(100).find(({ phase }) => phase === 'STARTED')?.local?.imageDigest;
    if (name === 'podman' || name === 'docker') expect(told).toBe(open.digest);
    const [key] = readdirSync(images);
    const root = join(images, key!, 'root');
    expect(lstatSync(join(root, 'usr/bin/cat')).mode & 0o6000).toBe(0);
    expect(existsSync(join(root, 'etc/odd'))).toBe(false);
    // Nobody who may run here owns it, and nothing is left of what has fetched it.
    expect([statSync(root).uid, statSync(join(root, 'etc/told')).uid]).toEqual([0, 0]);
    expect(readdirSync(images)).toEqual([key]);
    expect(processesOfRun(0, false, `WORK=${join(images, `.part-${key}`, 'work')}`)).toEqual([]);
    const before = open.requests();
    expect((await run(runner, 'job_2', image)).stdout?.text).toBe(TOLD);
    runner.close();
    const next = await agent({}, stateDir);
    expect((await run(next.runner, 'job_3', image)).stdout?.text).toBe(TOLD);
    expect(open.requests()).toBe(before);
    bytes = (JSON.parse(readFileSync(join(images, key!, 'info'), 'utf8')) as { bytes: number }).bytes;
  });

  test('a private image is not had, and why is said', async () => {
    const { runner } = await agent();
    const image = `${closed.host}/tools/own:1`;
    expect(await run(runner, 'job_1', image)).toMatchObject({
      cause: 'LAUNCH_FAILED',
      message: expect.stringMatching(
        new RegExp(
          `^image ${image}: cannot be fetched: ${name}: .*(unauthorized|authentication).*If the image is private: none is stored$`,
          's',
        ),
      ),
    });
  });

  it.runIf(mode === 'sandbox' && typeof tool !== 'string')(
    'a private image is had with the credential of its user, which nobody sees, and by this user alone',
    async () => {
      const image = `${closed.host}/tools/own:1`;
      const logins: Record<string, Login | string> = { ada: USER, bob: 'bob has none' };
      const asked: unknown[] = [];
      const login = async (by: RunName): Promise<Login | string> => {
        asked.push(by);
        return logins[(by as Requester).user]!;
      };
      const { runner, images, stateDir, count } = await agent({ login });
      mkdirSync(join(images, '.part-x', 'work', 'login'), { recursive: true });
      const seen = new Set<string>();
      const look = setInterval(() => {
        for (const said of processesNow()) seen.add(said);
      }, 20);
      expect((await run(runner, 'job_1', image)).stdout?.text).toBe(TOLD);
      clearInterval(look);
      expect([...seen].some((said) => said.includes(image))).toBe(true);
      const isEnvironment = name === 'apptainer' || name === 'singularity';
      for (const said of isEnvironment ? [] : seen) expect(said).not.toContain(USER.password);
      expect(asked).toHaveLength(1);
      const auth = Buffer.from(`${USER.username}:${USER.password}`).toString('base64');
      expect(spawnSync('grep', ['-rlE', `${USER.password}|${auth}`, stateDir]).status).toBe(1);

      // Neither another user, nor the same name under the account of another.
      const refused = {
        cause: 'LAUNCH_FAILED',
        message: expect.stringMatching(/If the image is private: bob has none$/),
      };
      expect(await run(runner, 'job_2', image, 'cat /etc/told', 'bob')).toMatchObject(refused);
      const before = closed.requests();
      expect((await run(runner, 'job_3', image)).stdout?.text).toBe(TOLD);
      expect([closed.requests(), asked.length]).toEqual([before, 2]);
      runner.close();

      const next = await agent({ login }, stateDir);
      // What an agent had left that was killed while it fetched.
      expect(existsSync(join(images, '.part-x', 'work', 'login'))).toBe(false);
      expect((await run(next.runner, 'job_4', image)).stdout?.text).toBe(TOLD);
      expect(await run(next.runner, 'job_5', image, 'true', 'bob')).toMatchObject(refused);
      logins.bob = { ...USER, password: 'wrong-7' };
      const wrong = await run(next.runner, 'job_6', image, 'true', 'bob');
      expect(wrong.message).toMatch(/unauthorized.*\(with the credential of bob for /s);
      expect(wrong.message).not.toContain('wrong-7');
      // Stored anew, it is tried at once.
      logins.bob = USER;
      expect((await run(next.runner, 'job_7', image, 'cat /etc/told', 'bob')).stdout?.text).toBe(TOLD);
      expect(count()).toBe(2);
    },
  );

  it.skipIf(typeof tool === 'string')(
    'without a sandbox around jobs no credential is asked for; while the service does not answer, the run waits',
    async () => {
      const image = `${closed.host}/tools/own:1`;
      let asked = 0;
      const login = async () => {
        if (++asked === 1) throw new Error('no answer');
        return 'bob has none';
      };
      const { runner } = await agent({ login });
      const { message } = await run(runner, 'job_1', image);
      expect(message).toMatch(mode === 'sandbox' ? /bob has none$/ : /only where jobs run in a sandbox/);
      expect(asked).toBe(mode === 'sandbox' ? 2 : 0);
      const stateDir = temporaryDirectory();
      chmodSync(stateDir, 0o755);
      const fetch = { tool: tool as ImageTool, registries: ['*'], maxBytes: 1e9, login };
      const open = await openRunner({
        stateDir,
        isolation: (dir, id) => Isolation.open({ mode: 'user', fetch }, dir, id),
      });
      expect((await run(open, 'job_2', image)).message).toMatch(/only where jobs run in a sandbox/);
      expect(asked).toBe(mode === 'sandbox' ? 2 : 0);
    },
  );

  test('the cache is bounded: what was not used for the longest goes first, never what runs use', async () => {
    const { runner, count } = await agent({ maxBytes: bytes * 2.5 });
    expect((await run(runner, 'job_0', `${open.host}/made:1`)).stdout?.text).toBe(TOLD);
    runner.start({ ...script('job_1', 'echo up; sleep 1000'), image: `${open.host}/made:1` });
    const isUp = (): boolean => (runner.freshOutput() ?? []).some(({ text }) => text === 'up\n');
    await until(isUp, 'the first');
    await run(runner, 'job_2', `${open.host}/made:2`);
    await run(runner, 'job_3', `${open.host}/made:3`);
    expect(count()).toBe(2);
    // The second had to go: the first runs, though it was used before.
    const before = open.requests();
    expect((await run(runner, 'job_4', `${open.host}/made:1`)).stdout?.text).toBe(TOLD);
    expect(open.requests()).toBe(before);
    runner.cancel({ jobId: 'job_1', epoch: 1 }, 0);
    await until(() => endOf(runner, 'job_1') !== undefined, 'its end');

    const small = await agent({ maxBytes: bytes / 2 });
    expect((await run(small.runner, 'job_5', `${open.host}/made:1`)).message).toMatch(/AGENT_IMAGES_MB/);
    expect(small.count()).toBe(0);
  });

  test('images of other registries, and what is none, are not fetched', async () => {
    const { runner } = await agent({ registries: [open.host] });
    expect((await run(runner, 'job_1', 'debian:12')).message).toBe(
      'image debian:12: not available on this machine (AGENT_IMAGES of its agent)',
    );
    expect((await run(runner, 'job_2', `${open.host}/none:1`)).message).toMatch(
      new RegExp(`^image ${open.host}/none:1: cannot be fetched: ${name}: .*(unknown|not found)`, 's'),
    );
  });
});
