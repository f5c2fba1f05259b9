import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { DEFAULT_POLICY } from '../../src/core/index.js';
import { freePort } from '../support/ports.js';
import { endAll, launch, run, type Service, serve, until } from './service.js';

interface Job {
  id: string;
  state: string;
  cause: string | null;
  exitCode: number | null;
  site: { name: string } | null;
  epoch: number;
  [field: string]: unknown;
}

const home = mkdtempSync(join(tmpdir(), 'switchyard-cli-'));
const keyFile = join(home, 'admin.key');
let service: Service;

beforeAll(async () => {
  service = await serve(home);
});
afterAll(async () => {
  await endAll();
  rmSync(home, { recursive: true, force: true });
});

describe('a fresh service', () => {
  it('has an administrator’s key that only its owner can read, and this machine as a site', async () => {
    expect(statSync(keyFile).mode & 0o777).toBe(0o600);
    const sites = await service.json<{ name: string; state: string; cpus: number }[]>('sites');
    expect(sites).toMatchObject([{ name: 'local', state: 'UP' }]);
    const machines = await service.json<{ cpus: number; os: string; architecture: string }[]>('machines');
    expect(machines).toMatchObject([
      { cpus: sites[0]!.cpus, os: process.platform, architecture: process.arch },
    ]);
  });

  it('says nothing but what to do next', () => {
    // But that jobs can read keys, where nothing stands between.
    const lines = service.process.output.stderr.split('\n').filter((line) => !line.includes('SECURITY.md'));
    expect(lines.join('\n')).toBe('');
    expect(service.process.output.stdout).toContain("submit -- sh -c 'echo hello'");
  });

  it('runs what is submitted, and tells of it', async () => {
    const submitted = await service.cli('submit', '--', 'sh', '-c', 'echo hello; echo trouble >&2');
    expect(submitted).toMatchObject({ code: 0, stdout: expect.stringMatching(/^job_\d+\n$/) });
    const id = submitted.stdout.trim();

    const watched = await service.cli('watch', id);
    expect(watched.code).toBe(0);
    expect(watched.stdout).toMatch(new RegExp(`${id} +COMPLETED EXITED_ZERO +at local +sh -c`));

    const job = await service.json<Job>('job', id);
    expect(job).toMatchObject({
      id,
      state: 'COMPLETED',
      cause: 'EXITED_ZERO',
      exitCode: 0,
      site: { name: 'local' },
      epoch: 1,
    });
    expect(await service.cli('job', '--output', id)).toEqual({
      code: 0,
      stdout: 'hello\n',
      stderr: 'trouble\n',
    });

    const report = await service.cli('report', id);
    expect(report.stdout).toMatch(
      /is COMPLETED \(EXITED_ZERO\) after 1 run, with 1 task\n.*\ntime +\S+ +1h00m +0 % +--estimate 1m00s\n/,
    );

    const why = await service.cli('why', id);
    expect(why.stdout).toContain(
      'Dispatched to local: nothing of equal or higher priority is queued there (IDLE_SITE; policy 1, cycle dispatch-',
    );
    expect(why.stdout).toContain('Started: head of the queue, resources free (HEAD; policy 1');
  });

  it('tells people who they are, and lets them see themselves without seeing others', async () => {
    await service.cli('users', 'add', 'eve');
    const key = (await service.cli('keys', 'add', 'k', '--user', 'eve')).stdout.trim();
    const eve = (...args: string[]) =>
      run(args, { SWITCHYARD_URL: service.url, SWITCHYARD_HOME: home, SWITCHYARD_KEY: key });
    expect((await eve('whoami')).stdout).toMatch(/^eve \(user_\d+\), role USER/);
    const id = (await eve('submit', '--', 'true')).stdout.trim();
    for (const whose of [['--me'], ['--user', 'eve']])
      expect((await eve('jobs', ...whose, '--csv', '--columns', 'id')).stdout).toBe(`id\n${id}\n`);
    expect((await eve('quota', '--csv', '--columns', 'name')).stdout).toBe('name\neve\n');
    expect(await eve('jobs', '--user', 'admin')).toMatchObject({ code: 4 });
    const [own] = JSON.parse((await eve('keys', '--json')).stdout);
    const rotated = await eve('keys', 'rotate', own.id);
    expect(rotated.stdout).toMatch(/^swy_/);
    expect(await eve('whoami')).toMatchObject({ code: 4 });
    const audit = await service.cli('audit', '--first', '1', '--csv', '--columns', 'user,action,target');
    expect(audit.stdout).toBe('user,action,target\neve,rotateApiKey,k\n');
  });

  it('adds a site in one command, with the line that serves it', async () => {
    const added = await service.cli('sites', 'add', 'alps', '--simulate', '2x8');
    const [, key = ''] =
      /SWITCHYARD_KEY=(\S+) switchyard agent --site alps --simulate\n$/.exec(added.stdout) ?? [];
    const agent = launch(['agent', '--site', 'alps', '--simulate'], {
      SWITCHYARD_URL: service.url,
      SWITCHYARD_HOME: join(home, 'alps'),
      SWITCHYARD_KEY: key,
    });
    const ended = await service.cli(
      'submit',
      '--wait',
      '--prefer',
      'site=alps',
      '--cpus',
      '8',
      '--estimate',
      '1',
      '--',
      'x',
    );
    expect(ended.code).toBe(0);
    await service.cli('drain', 'sim-1');
    const machines = await service.cli('machines', '--site', 'alps', '--csv', '--columns', 'name,state,cpus');
    expect(machines.stdout).toBe('name,state,cpus\nsim-1,DRAINING,8\nsim-2,UP,8\n');
    // What follows is of one site.
    for (const args of [
      ['drain', 'alps'],
      ['sites', 'remove', 'alps'],
    ])
      expect((await service.cli(...args)).code).toBe(0);
    await agent.end();
  });

  it('submits every field that a job has', async () => {
    const [job] = await service.json<Job[]>(
      'submit',
      '--name',
      'n',
      '--application',
      'a',
      '--project',
      'p',
      '--group',
      'g',
      '--tasks',
      '1',
      '--cpus',
      '1',
      '--memory-mb',
      '1',
      '--os',
      process.platform,
      '--arch',
      process.arch,
      '--estimate',
      '10m',
      '--benchmark',
      '50',
      '--deadline',
      '2999-01-01T00:00:00Z',
      '--limit',
      '1h',
      '--sandbox-mb',
      '2',
      '--output-mb',
      '3',
      '--env',
      'GREETING=good day',
      '--dir',
      '/',
      '--no-restart',
      '--boost',
      '5',
      '--hold',
      '--',
      'sh',
      '-c',
      'echo $GREETING; pwd',
    );
    expect(job).toMatchObject({
      state: 'HELD',
      name: 'n',
      application: 'a',
      project: 'p',
      groupName: 'g',
      memoryMbPerTask: 1,
      os: process.platform,
      architecture: process.arch,
      estimateS: 600,
      benchmark: 50,
      deadline: '2999-01-01T00:00:00.000Z',
      runTimeLimitS: 3600,
      sandboxMb: 2,
      outputMb: 3,
      environment: [{ name: 'GREETING', value: 'good day' }],
      workingDirectory: '/',
      restartable: false,
      boost: 5,
      command: 'sh',
      arguments: ['-c', 'echo $GREETING; pwd'],
    });
    expect((await service.json<{ whyWaiting: { code: string } }>('why', job!.id)).whyWaiting.code).toBe(
      'HELD',
    );
    expect((await service.cli('release', job!.id)).stdout).toBe('1 job changed\n');
    expect((await service.cli('watch', job!.id)).code).toBe(0);
    expect((await service.cli('job', '--stdout', job!.id)).stdout).toBe('good day\n/\n');
  });

  it('--wait ends with the job’s exit code, --output prints what it wrote', async () => {
    const waited = await service.cli('submit', '--wait', '--', 'sh', '-c', 'exit 7');
    expect(waited.code).toBe(7);
    // Each event as it was, not as the job is by now.
    expect(waited.stderr.match(/FAILED EXITED_NONZERO 7 at local/g)).toHaveLength(1);
    const done = await service.cli('submit', '--output', '--', 'sh', '-c', 'echo out');
    expect(done).toMatchObject({ code: 0, stdout: expect.stringMatching(/^job_\d+\nout\n$/) });
    const missing = await service.cli('submit', '--wait', '--json', '--', 'no-such-program');
    expect(JSON.parse(missing.stdout)).toMatchObject([{ state: 'FAILED', cause: 'LAUNCH_FAILED' }]);
    expect(missing.code).not.toBe(0);
  });

  it('--keep keeps files, --fetch fetches them, and a dataset is made of what --keep-dataset names', async () => {
    const command = ['sh', '-c', 'mkdir out; echo one > out/1.csv; echo model > model'];
    const keep = ['--keep', 'out/*.csv', '--keep-dataset', 'trained=model'];
    const done = await service.cli('submit', '--wait', ...keep, '--', ...command);
    expect(done.code).toBe(0);
    const id = done.stdout.trim();
    const dir = join(home, 'fetched');
    const fetched = await service.cli('job', id, '--fetch', dir);
    expect(fetched).toMatchObject({ code: 0, stdout: `${join(dir, 'out', '1.csv')}  4 bytes\n` });
    expect(readFileSync(join(dir, 'out', '1.csv'), 'utf8')).toBe('one\n');
    expect((await service.cli('job', id)).stdout).toMatch(/0 +out\/1\.csv +4/);
    const reading = ['submit', '--output', '--input', 'trained', '--', 'cat', 'trained'];
    expect((await service.cli(...reading)).stdout).toMatch(/\nmodel\n$/);
    const lacking = await service.cli('submit', '--wait', '--json', '--keep', 'no', '--', 'true');
    expect(JSON.parse(lacking.stdout)).toMatchObject([{ state: 'FAILED', cause: 'OUTPUTS_FAILED' }]);
  });

  it('--wait tells which jobs can never start, and goes on waiting', async () => {
    const env = { SWITCHYARD_URL: service.url, SWITCHYARD_HOME: home };
    const waiting = launch(['submit', '--wait', '--allow-unfit', '--os', 'plan9', '--', 'true'], env);
    const [id] = await waiting.printed(/job_\d+/);
    await expect
      .poll(() => waiting.output.stderr)
      .toMatch(
        new RegExp(`${id} cannot start at any site in its current configuration: .+ \\(NEVER_FITS\\w*\\)`),
      );
    expect(await service.json('cancel', id!)).toBeDefined();
    await expect.poll(() => waiting.output.stderr).toContain('CANCELLED');
    await waiting.end();
  });

  it('arrays, files and standard input', async () => {
    const array = await service.json<Job[]>(
      'submit',
      '--array',
      '1-3',
      '--group',
      'array',
      '--',
      'sh',
      '-c',
      'exit $SWITCHYARD_ARRAY_INDEX',
    );
    expect(array.map((job) => job.arrayIndex)).toEqual([1, 2, 3]);
    expect((await service.cli('watch', ...array.map((job) => job.id))).code).toBe(1);
    const ended = await service.json<Job[]>('jobs', '--group', 'array', '--oldest-first');
    expect(ended.map((job) => [job.state, job.exitCode])).toEqual([
      ['FAILED', 1],
      ['FAILED', 2],
      ['FAILED', 3],
    ]);

    const file = join(home, 'jobs.json');
    writeFileSync(file, JSON.stringify([{ command: 'true', name: 'mine' }, { command: 'true' }]));
    const fromFile = await service.json<Job[]>('submit', '--file', file, '--name', 'by default');
    expect(fromFile.map((job) => job.name)).toEqual(['mine', 'by default']);
    writeFileSync(file, JSON.stringify({ command: 'true', originSite: 'nowhere' }));
    expect((await service.cli('submit', '--file', file)).stderr).toContain('there is no site "nowhere"');
    const [site] = await service.json<{ id: string; name: string }[]>('sites');
    const fields = { originSite: site!.name, preferences: [{ site: site!.name }, { site: site!.id }] };
    writeFileSync(
      file,
      JSON.stringify({ command: 'true', inputs: [{ sizeMb: 0, site: site!.name }], ...fields }),
    );
    const [placed] = await service.json<Job[]>('submit', '--file', file);
    expect(await service.json<Job>('job', placed!.id)).toMatchObject({
      originSite: { id: site!.id },
      preferences: [{ site: { id: site!.id } }, { site: { id: site!.id } }],
    });
    const env = { SWITCHYARD_URL: service.url, SWITCHYARD_HOME: home };
    const piped = await run(['submit', '--json', '--file', '-'], env, '{"command": "true"}');
    expect(JSON.parse(piped.stdout)).toHaveLength(1);
  });

  it('a repeated submission with the same idempotency key gives the same jobs', async () => {
    const [first] = await service.json<Job[]>('submit', '--idempotency-key', 'once', '--', 'true');
    const [again] = await service.json<Job[]>('submit', '--idempotency-key', 'once', '--', 'true');
    expect(again!.id).toBe(first!.id);
    const other = await service.cli('submit', '--idempotency-key', 'once', '--', 'false');
    expect(other.code).toBe(1);
    expect(other.stderr).toContain('(IDEMPOTENCY_KEY_REUSED)');
  });

  it('cancels, also by conditions', async () => {
    const [job] = await service.json<Job[]>('submit', '--group', 'long', '--', 'sleep', '600');
    await until(
      () => service.json<Job>('job', job!.id),
      ({ state }) => state === 'RUNNING',
    );
    expect((await service.cli('cancel', '--group', 'long')).stdout).toBe('1 job changed\n');
    expect((await service.cli('watch', job!.id)).code).toBe(1);
    expect(await service.json<Job>('job', job!.id)).toMatchObject({ state: 'CANCELLED' });
    const twice = await service.cli('cancel', job!.id);
    expect(twice).toMatchObject({ code: 1, stderr: expect.stringContaining('(CONFLICT)') });
  });

  it('a dry run says where a job would go, and what stands in its way', async () => {
    expect((await service.cli('placement', '--', 'x')).stdout).toContain(
      'would be dispatched to local; would start',
    );
    expect((await service.cli('placement', '--cpus', '100000', '--', 'x')).stdout).toContain(
      'no site can run it now: NEVER_FITS_CPUS',
    );
    const refused = await service.cli('submit', '--os', 'plan9', '--', 'x');
    expect(refused).toMatchObject({
      code: 2,
      stderr: expect.stringContaining(`nearest: ${process.platform}`),
    });
    const [waiting] = await service.json<Job[]>('submit', '--allow-unfit', '--os', 'plan9', '--', 'x');
    await until(
      () => service.cli('why', waiting!.id),
      ({ stdout }) => stdout.includes('NEVER_FITS_PLATFORM'),
    );
    await service.cli('cancel', waiting!.id);
  });

  it('weights are changed with a reason, cited by decisions, and reverted', async () => {
    const changed = await service.cli(
      'weights',
      'set',
      'dispatch.deadline=2',
      'aging=0.5',
      '--reason',
      'a test',
    );
    expect(changed.stdout).toMatch(/^policy version 2 .*: a test\n/);
    expect(await service.json('weights')).toMatchObject({
      version: 2,
      dispatch: { deadline: 2 },
      local: { aging: 0.5 },
    });
    const id = (await service.cli('submit', '--wait', '--', 'true')).stdout.trim();
    expect((await service.cli('why', id)).stdout).toContain('policy 2');
    const stale = await service.cli(
      'weights',
      'set',
      'aging=1',
      '--reason',
      'late',
      '--expected-version',
      '1',
    );
    expect(stale).toMatchObject({ code: 1, stderr: expect.stringContaining('(VERSION_CONFLICT)') });
    expect((await service.cli('policy', 'revert', '1', '--reason', 'enough')).stdout).toMatch(
      /^policy version 3 .*restores version 1: enough\n/,
    );
    expect(await service.json<{ version: number }[]>('policy', 'history')).toMatchObject([
      { version: 3 },
      { version: 2 },
      { version: 1 },
    ]);
  });

  it('drains and undrains', async () => {
    expect((await service.cli('drain', 'local')).stdout).toContain('local is DRAINING');
    const [job] = await service.json<Job[]>('submit', '--', 'true');
    await until(
      () => service.cli('why', job!.id),
      ({ stdout }) => stdout.includes('NO_SITE_UP'),
    );
    expect((await service.cli('undrain', 'local')).stdout).toBe('local is UP\n');
    expect((await service.cli('watch', job!.id)).code).toBe(0);
  });

  it('is closed for a time: a job whose limit reaches into it waits, a shorter one runs', async () => {
    const add = ['maintenance', 'add', 'local', '--from', '+10m', '--for', '1h', '--name', 'disks'];
    expect((await service.cli(...add, '--dry-run')).stdout).toBe('the whole site\nno conflicts\n');
    expect((await service.cli('maintenance')).stdout).not.toContain('disks');
    expect((await service.cli(...add, '--reason', 'new ones')).stdout).toMatch(
      /disks +MAINTENANCE +local +the whole site/,
    );
    const [long] = await service.json<Job[]>('submit', '--limit', '1h', '--', 'true');
    expect((await service.cli('submit', '--wait', '--limit', '5m', '--', 'true')).code).toBe(0);
    expect((await service.cli('why', long!.id)).stdout).toMatch(
      /\(RESERVED\)[\s\S]*would help: With a run time limit of at most \d+ s/,
    );
    // Without one it has its site's.
    expect((await service.cli('sites', 'set', 'local', '--max-limit', '5m')).code).toBe(0);
    const [unlimited] = await service.json<Job[]>('submit', '--', 'true');
    expect((await service.cli('watch', unlimited!.id)).code).toBe(0);
    expect((await service.cli('sites', 'set', 'local', '--max-limit', 'none')).code).toBe(0);
    expect((await service.cli('job', unlimited!.id)).stdout).toMatch(/^limit +5m00s \(its site's\),/m);
    const twice = await service.cli(...add.with(-1, 'again'));
    expect(twice).toMatchObject({ code: 1, stderr: expect.stringContaining('(CONFLICT)') });
    const set = ['maintenance', 'set', 'disks'];
    expect(
      (await service.cli(...set, '--from', '+30m', '--for', '2h', '--reason', 'more of them')).stdout,
    ).toMatch(/disks +MAINTENANCE +local +the whole site/);
    const held = async () =>
      service.json<{ reason: string; times: { from: string; to: string }[] }[]>('maintenance');
    const [changed] = await held();
    expect(changed).toMatchObject({ reason: 'more of them' });
    const lasts = ({ from, to }: { from: string; to: string }) => Date.parse(to) - Date.parse(from);
    expect(changed!.times.map(lasts)).toEqual([7_200_000]);
    expect((await service.cli(...set, '--for', '3h')).code).toBe(0);
    expect((await held())[0]!.times).toEqual([{ ...changed!.times[0], to: expect.any(String) }]);
    expect((await held())[0]!.times.map(lasts)).toEqual([10_800_000]);
    expect(await service.cli(...set)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('nothing to change'),
    });
    expect(await service.cli(...set, '--refuse', '--preempt')).toMatchObject({ code: 2 });
    const [running] = await service.json<Job[]>('submit', '--limit', '20m', '--', 'sleep', '300');
    await until(
      () => service.json<Job>('job', running!.id),
      ({ state }) => state === 'RUNNING',
    );
    expect(await service.cli(...set, '--from', '+1m')).toMatchObject({
      ...{ code: 1, stderr: expect.stringMatching(/--after-jobs lets jobs finish, --preempt stops them/) },
    });
    expect((await service.cli('cancel', running!.id)).code).toBe(0);
    expect((await service.cli('maintenance', 'cancel', 'disks')).stdout).toBe('disks is canceled\n');
    expect((await service.cli('watch', long!.id)).code).toBe(0);
    const reserve = ['reserve', 'add', 'local', '--tasks', '1', '--cpus', '1', '--for', '1h'];
    expect((await service.cli(...reserve, '--name', 'course')).stdout).toMatch(
      /course +USER +local +\S+ \(1 CPU\)/,
    );
    expect((await service.cli('reserve', 'cancel', 'course')).code).toBe(0);
    await service.json('resources', 'add', 'seats', '--amount', '9');
    const shared = [...reserve, '--name', 'exam', '--shared', 'seats=4'];
    expect((await service.cli(...shared, '--dry-run')).stdout).toMatch(
      /^\S+ \(1 CPU\), 4 seats\nno conflicts/,
    );
    expect((await service.cli(...shared)).stdout).toMatch(/exam +USER +local +\S+ \(1 CPU\), 4 seats/);
    expect((await service.cli('reserve', 'set', 'exam', '--shared', 'seats=10')).stderr).toContain(
      'the site and the grid have 9 seats',
    );
    expect((await service.cli('reserve', 'set', 'exam', '--shared', 'seats=5')).stdout).toContain('5 seats');
    const none = (group: string, name: string) => service.cli(group, 'set', name, '--shared', 'none');
    expect((await none('reserve', 'exam')).stdout).toMatch(/exam +USER +local +\S+ \(1 CPU\) {2}/);
    const window = ['maintenance', 'add', 'local', '--from', '+1d', '--for', '1h', '--shared', 'seats=2'];
    expect((await service.cli(...window, '--name', 'server')).code).toBe(0);
    expect((await none('maintenance', 'server')).stderr).toContain('it would hold nothing any more');
    expect((await service.cli('maintenance', 'set', 'server', '--whole-site')).stdout).toContain(
      'the whole site, 2 seats',
    );
    expect((await none('maintenance', 'server')).stdout).toMatch(
      /server +MAINTENANCE +local +the whole site {2}/,
    );
    expect((await service.cli('maintenance', 'cancel', 'server')).code).toBe(0);
    expect((await service.cli('reserve', 'cancel', 'exam')).code).toBe(0);
    expect(await service.json<{ endedAt: string }[]>('reserve', '--ended')).toMatchObject([
      { name: 'course' },
      { name: 'exam' },
    ]);
  });

  it('a tree of schedulers is built and taken down, and why tells of the path down it', async () => {
    const file = join(home, 'tree.json');
    writeFileSync(file, JSON.stringify({ ...DEFAULT_POLICY, dispatch: { kind: 'grid-tree' } }));
    await service.json('policy', 'set', file, '--reason', 'a tree');
    expect((await service.cli('tree', 'add', 'west')).stdout).toBe('west is under the root\n');
    await service.json('tree', 'add', 'coast', '--under', 'west');
    await service.json('sites', 'set', 'local', '--scheduler', 'coast');
    const id = (await service.cli('submit', '--wait', '--', 'true')).stdout.trim();
    const why = (await service.cli('why', id)).stdout;
    const path = why.slice(why.indexOf('its path:')).split('\n').slice(1, 5);
    expect(path.map((line) => line.replace(/.* to /, '').replace(/:.*\((\w+)\)/, ' $1'))).toEqual([
      'west BRANCH_SHARE',
      'coast BRANCH_SHARE',
      'site local BRANCH_SHARE',
      'site local CLAIMED',
    ]);
    expect((await service.cli('tree')).stdout).toMatch(/root[\s\S]*west[\s\S]*coast[\s\S]*local/);
    await service.json('tree', 'remove', 'west');
    expect((await service.cli('tree', 'remove', 'coast')).code).toBe(0);
    expect(
      (await service.cli('watch', (await service.json<Job[]>('submit', '--', 'true'))[0]!.id)).code,
    ).toBe(0);
    await service.json('policy', 'revert', '1', '--reason', 'no tree');
  });

  it('users have keys, roles and quotas', async () => {
    await service.json('users', 'add', 'ann', '--class', 'gold');
    const key = (await service.cli('keys', 'add', 'laptop', '--user', 'ann')).stdout.trim();
    const ann = (...args: string[]) => run(args, { SWITCHYARD_URL: service.url, SWITCHYARD_KEY: key });
    expect((await ann('submit', '--', 'true')).code).toBe(0);
    expect(JSON.parse((await ann('jobs', '--json')).stdout)).toHaveLength(1);
    expect(await ann('drain', 'local')).toMatchObject({
      code: 4,
      stderr: expect.stringContaining('(FORBIDDEN)'),
    });
    await service.json('quota', 'ann', '--limit', '2', '--period', '1h', '--reason', 'a test');
    expect((await ann('submit', '--array', '1-2', '--', 'true')).stderr).toContain('(QUOTA_EXCEEDED)');
    const [listed] = await service.json<{ id: string }[]>('keys', '--user', 'ann');
    await service.json('keys', 'revoke', listed!.id);
    await until(
      () => ann('jobs'),
      ({ code }) => code === 4,
    );
  });

  it('users are invited to set a password, and their sessions are ended', async () => {
    const origin = new URL(service.url).origin;
    const post = async (path: string, body: object) =>
      (
        await fetch(`${origin}/sign-in/${path}`, {
          method: 'POST',
          headers: { 'content-type': 'application/json' },
          body: JSON.stringify(body),
        })
      ).json() as Promise<{ secret: string; session: string }>;
    expect(await service.cli('users', 'invite', 'bea', '--role', 'agent')).toMatchObject({ code: 2 });
    const invited = await service.cli('users', 'invite', 'bea', '--role', 'operator', '--expires', '+1h');
    expect(invited.stderr).toContain('send this link to bea; it can be used once');
    const [, invitation] = /^http:\S+\/#invitation=(swi_\S+)\n$/.exec(invited.stdout) ?? [];
    const { secret, session } = await post('invitation', { invitation, password: 'seven quiet harbors' });
    const bea = (...args: string[]) => run(args, { SWITCHYARD_URL: service.url, SWITCHYARD_KEY: secret });
    expect((await bea('whoami')).stdout).toMatch(/^bea \(user_\d+\), role OPERATOR/);
    expect((await bea('sessions', '--csv', '--columns', 'id')).stdout).toBe(`id\n${session}\n`);
    const { link } = await service.json<{ link: string }>('users', 'reset', 'bea');
    const again = await post('invitation', {
      invitation: link.split('=')[1],
      password: 'nine loud foundries',
    });
    await until(
      () => bea('whoami'),
      ({ code }) => code === 4,
    );
    const ended = await service.cli('sessions', 'end', '--user', 'bea');
    expect(ended.stdout).toBe('1 session of bea ended\n');
    expect(await service.json('sessions', '--user', 'bea')).toEqual([]);
    expect(again.secret).toMatch(/^sws_/);
  });

  it('pages through jobs', async () => {
    await service.json('submit', '--array', '1-25', '--group', 'pages', '--hold', '--', 'true');
    const seen: string[] = [];
    for (let after: string[] = []; ; ) {
      const page = await service.cli('jobs', '--json', '--group', 'pages', '--first', '10', ...after);
      seen.push(...JSON.parse(page.stdout).map((job: Job) => job.id));
      const more = /more: --after (\S+)/.exec(page.stderr);
      if (!more) break;
      after = ['--after', more[1]!];
    }
    expect(new Set(seen).size).toBe(25);
    expect(seen).toHaveLength(25);
    expect((await service.cli('jobs', '--group', 'pages', '--count')).stdout).toBe('25\n');
    expect((await service.json<Job[]>('jobs', '--group', 'pages', '--all')).length).toBe(25);
    await service.cli('cancel', '--group', 'pages');
  });

  it('watch tells of all jobs as they come, in JSON a line each, and continues behind a cursor', async () => {
    const watch = launch(['watch', '--json', '--recent', '0'], {
      SWITCHYARD_URL: service.url,
      SWITCHYARD_HOME: home,
    });
    await until(
      async () => {
        await service.cli('submit', '--', 'true');
        return watch.output.stdout;
      },
      (stdout) => stdout.includes('"toState":"COMPLETED"'),
    );
    const updates = (await watch.end('SIGINT')).stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    const [first] = updates;
    const resumed = launch(['watch', '--json', '--after', first.cursor], {
      SWITCHYARD_URL: service.url,
      SWITCHYARD_HOME: home,
    });
    await resumed.printed(new RegExp(`"cursor":"${updates.at(-1).cursor}"`));
    const again = (await resumed.end('SIGINT')).stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    expect(again.slice(0, updates.length - 1).map(({ cursor }) => cursor)).toEqual(
      updates.slice(1).map(({ cursor }) => cursor),
    );
  });
});

describe('errors are one clear line and an exit code', () => {
  it.each([
    [
      2,
      ['submit', '--cpus', '0', '--', 'true'],
      '--cpus: "0" is not accepted; accepted: a whole number from 1',
    ],
    [2, ['submit'], 'no command given'],
    [2, ['submit', '--cpus', '99999', '--', 'true'], 'with --allow-unfit'],
    [5, ['drain', 'locl'], 'there are local; did you mean local?'],
    [2, ['sites', 'ad', 'alps'], "unknown command 'sites ad'"],
    [2, ['submit', '--dir', 'relative', '--', 'true'], '--dir: "relative" is not accepted'],
    [2, ['cancel'], 'no jobs given'],
    [2, ['nonsense'], "unknown command 'nonsense'"],
    [2, ['job', 'x'], 'an id such as job_17'],
    [5, ['job', '999999'], 'there is no job job_999999'],
    [5, ['watch', '999999'], 'there is no job job_999999'],
    [5, ['drain', 'nowhere'], 'there is no site "nowhere"; there are local (NOT_FOUND)'],
    [2, ['conformance', '/nonexistent.json'], 'ENOENT'],
    [2, ['replay', '/nonexistent.swf'], 'ENOENT'],
    [2, ['api'], 'DATABASE_URL'],
  ])('%i: %j', async (code, args, message) => {
    const outcome = await service.cli(...args);
    expect(outcome.stderr).toContain(message);
    expect(outcome.code).toBe(code);
    expect(outcome.stderr.trim().split('\n').length).toBeLessThanOrEqual(2);
    expect(outcome.stderr).not.toMatch(/\n\s+at /);
  });

  it('3: no service; 4: no key, a wrong key', async () => {
    const nobody = await run(['jobs'], {
      SWITCHYARD_URL: `http://127.0.0.1:${await freePort()}/graphql`,
      SWITCHYARD_KEY: 'x',
    });
    expect(nobody).toMatchObject({ code: 3, stderr: expect.stringContaining('no response from') });
    const elsewhere = join(home, 'elsewhere');
    expect(await run(['jobs'], { SWITCHYARD_URL: service.url, SWITCHYARD_HOME: elsewhere })).toMatchObject({
      code: 4,
      stderr: `error: no API key: set SWITCHYARD_KEY (there is none in ${elsewhere}/admin.key) (UNAUTHENTICATED)\n`,
    });
    expect(await run(['jobs'], { SWITCHYARD_URL: service.url, SWITCHYARD_KEY: 'wrong' })).toMatchObject({
      code: 4,
    });
  });

  it('a second service in the same home, or on the same port, says why it does not start', async () => {
    const second = await run(['serve'], { SWITCHYARD_HOME: home, PORT: '0' });
    expect(second.code).toBe(1);
    expect(second.stderr).toContain(`in use by the running process ${service.process.pid}`);
    const { port } = new URL(service.url);
    const other = await run(['serve'], { SWITCHYARD_HOME: join(home, 'other'), PORT: port });
    expect(other).toMatchObject({
      code: 1,
      stderr: `error: port ${port} is already in use; stop the program that uses it, or set PORT\n`,
    });
  });
});
