/**
 * A site with Slurm is set up as its page says (docs/operations/slurm.md), by an ordinary user of the cluster; and its agent, which is not root,
 * runs jobs as the accounts of their users through a real sudo. Users, groups and sudoers are real to the cluster and the agent in a mount
 * namespace of the test's own. Skipped where Slurm with accounting, root, sudo, or the right to mount is missing.
 */
import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { packagePath } from '../../src/platform/paths.js';
import { Installation } from '../crash/installation.js';
import { PATIENCE_MS } from '../support/patience.js';
import { accountsLack, slurmCluster } from '../support/slurm.js';

const mayMount = spawnSync('unshare', ['--mount', 'true']).status === 0;
const lacks =
  accountsLack() ??
  (mayMount ? null : 'the right to mount is missing') ??
  (existsSync('/usr/bin/sudo') ? null : 'no sudo');
if (lacks !== null) console.warn(`test/slurm/setup is skipped: ${lacks}`);

const AGENT = 61_011;
const ADA = 61_012;
const MORE = {
  passwd: `switchy:x:${AGENT}:${AGENT}::/nonexistent:/bin/sh\nada:x:${ADA}:${ADA}::/nonexistent:/bin/sh\n`,
  group: `switchy:x:${AGENT}:\nada:x:${ADA}:switchy\n`,
  shadow: 'switchy:*:19000:0:99999:7:::\nada:*:19000:0:99999:7:::\n',
  sudoers: 'root ALL=(ALL) ALL\nswitchy ALL=(ada) NOPASSWD: ALL\n',
};

describe.skipIf(lacks !== null)('a new site with Slurm', { timeout: 4 * PATIENCE_MS }, () => {
  const dir = mkdtempSync(join(tmpdir(), 'sy-setup-'));
  const [cluster, shared, bin] = [join(dir, 'cluster'), join(dir, 'shared'), join(dir, 'bin')];
  const agents: ChildProcess[] = [];
  let service: Installation;
  let world: ChildProcess;
  let inside: string[] = [];
  let slurm: ReturnType<typeof slurmCluster>;
  let started = '';

  const asAgent = (): string[] => [
    ...inside,
    ...['setpriv', `--reuid=${AGENT}`, `--regid=${AGENT}`, '--init-groups', 'bash', '-c'],
  ];
  const environment = (): Record<string, string> => ({
    PATH: `${bin}:${process.env.PATH}`,
    SLURM_CONF: join(cluster, 'slurm.conf'),
    SWITCHYARD_HOME: join(shared, 'home'),
    HOME: shared,
    LOG_LEVEL: 'warn',
  });
  const cli = (...words: string[]): string => {
    const [program, ...more] = [...inside, ...words];
    return execFileSync(program as string, more, { env: environment(), encoding: 'utf8' });
  };
  const asUser = (line: string) => {
    const [program, ...words] = [...asAgent(), line];
    return spawnSync(program as string, words, { env: environment(), encoding: 'utf8' });
  };
  const start = (line: string, more: Record<string, string> = {}): ChildProcess => {
    const [program, ...words] = [...asAgent(), `exec env ${line}`];
    const child = spawn(program as string, words, { env: { ...environment(), ...more }, stdio: 'pipe' });
    for (const stream of [child.stdout, child.stderr])
      stream?.on('data', (text) => {
        said += text;
      });
    agents.push(child);
    return child;
  };
  let said = '';
  const until = async (what: string, isSo: () => Promise<boolean>): Promise<void> => {
    for (const giveUp = Date.now() + PATIENCE_MS; !(await isSo()); await sleep(300))
      if (Date.now() > giveUp) throw new Error(`waited in vain for ${what}\n${said}\n${cli('squeue')}`);
  };
  const count = async (sql: string): Promise<number> => (await service.rows<{ n: number }>(sql))[0]!.n;
  const machines = async (): Promise<boolean> =>
    (await count('SELECT count(*)::int AS n FROM machines WHERE agent_id IS NOT NULL')) === 3;
  const submit = async (...texts: string[]): Promise<string[]> => {
    const jobs = texts.map((text) => ({
      ...{ command: 'sh', arguments: ['-c', text], os: 'linux', estimateS: 5, memoryMbPerTask: 10 },
    }));
    const { submitJobs } = await service.ask<{ submitJobs: { jobIds: string[] } }>(
      'mutation ($input: SubmitJobsInput!) { submitJobs(input: $input) { jobIds } }',
      { input: { jobs } },
    );
    return submitJobs.jobIds;
  };
  const job = async (id: string) =>
    (
      await service.ask<{
        job: {
          state: string;
          cause: string | null;
          exitCode: number | null;
          output: { text: string } | null;
        };
      }>('query ($id: ID!) { job(id: $id) { state cause exitCode output(stream: STDOUT) { text } } }', { id })
    ).job;
  const ended = async (id: string) => {
    await until(`the end of ${id}`, async () => (await job(id)).cause !== null);
    return job(id);
  };

  beforeAll(async () => {
    chmodSync(dir, 0o755);
    for (const [path, uid] of [
      [shared, AGENT],
      [bin, 0],
    ] as const) {
      mkdirSync(path, { mode: 0o755 });
      chownSync(path, uid, uid);
    }
    const program = packagePath('bin', 'switchyard.js');
    writeFileSync(join(bin, 'switchyard'), `#!/bin/sh\nexec ${process.execPath} ${program} "$@"\n`, {
      mode: 0o755,
    });
    const mounts = Object.entries(MORE).map(([name, text]) => {
      const all = name === 'sudoers' ? text : readFileSync(`/etc/${name}`, 'utf8') + text;
      writeFileSync(join(dir, name), all, { mode: name === 'sudoers' ? 0o440 : 0o644 });
      return `mount --bind ${dir}/${name} /etc/${name}`;
    });
    const text = [...mounts, 'echo ready', 'exec sleep infinity'].join(' && ');
    world = spawn('unshare', ['--mount', 'sh', '-c', text], { stdio: ['ignore', 'pipe', 'inherit'] });
    await new Promise((resolve) => world.stdout?.once('data', resolve));
    inside = ['nsenter', `--mount=/proc/${world.pid}/ns/mnt`, '--'];
    slurm = slurmCluster(cluster, { SLURM_WITH: 'accounts' }, inside);
    slurm('start');
    chmodSync(cluster, 0o755);
    service = await Installation.open(null, {
      launch: (installation) => {
        for (const kind of ['api', 'worker']) installation.start(kind, [kind], installation.settings);
      },
    });
  }, 4 * PATIENCE_MS);
  afterAll(async () => {
    for (const agent of agents) agent.kill('SIGKILL');
    await service?.close();
    slurm?.('stop');
    world?.kill('SIGKILL');
    rmSync(dir, { recursive: true, force: true });
  });

  it('is set up by the three commands of its page, as an ordinary user', async () => {
    const page = readFileSync(packagePath('docs', 'operations', 'slurm.md'), 'utf8');
    const section = /^## Set it up\n([\s\S]*?)^## /m.exec(page)?.[1] ?? '';
    const commands = [...section.matchAll(/^ *```sh\n([\s\S]*?)^ *```/gm)].map(
      ([, line]) => line?.trim() as string,
    );
    expect(commands).toHaveLength(3);
    const [add, check, agent] = commands.map((line) => line.replaceAll('DIRECTORY', join(shared, 'agent')));
    const printed = execFileSync('bash', ['-c', add as string], {
      env: { ...environment(), SWITCHYARD_URL: service.url, SWITCHYARD_KEY: service.key },
      ...{ encoding: 'utf8', stdio: 'pipe' },
    });
    const line = /^SWITCHYARD_URL=.*$/m.exec(printed)?.[0] as string;
    // What the page shows is what is printed.
    expect(`AGENT_STATE_DIR=${join(shared, 'agent')} ${line.replaceAll(/(?<=URL=|KEY=)\S+/g, '…')}`).toBe(
      agent,
    );

    // Accounting is enforced: an administrator has to know the user first.
    const unknown = asUser(check as string);
    expect([unknown.status, unknown.stdout]).toEqual([
      1,
      expect.stringMatching(
        /^FAILED {3}associations of switchy: .*none, and Slurm rejects jobs without one/m,
      ),
    ]);
    for (const name of ['switchy', 'ada']) cli('sacctmgr', '-i', 'add', 'user', name, 'account=science');
    const known = asUser(check as string);
    expect(known.status, known.stdout + known.stderr).toBe(0);
    for (const found of [
      /^ok {7}associations of switchy: science \(QOS .*normal.*\)$/m,
      /^ok {7}a job in batch: .* on n[123]$/m,
      /^ok {7}a job in short: .* on n3$/m,
    ])
      expect(known.stdout).toMatch(found);

    started = `AGENT_STATE_DIR=${join(shared, 'agent')} ${line}`;
    const process = start(started);
    await until('the nodes', machines);
    const [own] = await submit('id -un; echo "$SLURM_JOB_ACCOUNT"');
    expect(await ended(own as string)).toMatchObject({
      cause: 'EXITED_ZERO',
      output: { text: 'switchy\nscience\n' },
    });
    process.kill('SIGTERM');
    await new Promise((resolve) => process.once('exit', resolve));
  });

  it('runs jobs as the accounts of their users, which the agent becomes through sudo', async () => {
    const accounts = join(dir, 'accounts');
    writeFileSync(accounts, '* = ada\n');
    start(started, {
      AGENT_ACCOUNTS: accounts,
      AGENT_LAUNCHER: JSON.stringify(['/usr/bin/sudo', '-n', '-u', '{account}', '--']),
    });
    const [own, private_, long, ...many] = await submit(
      'id -un; pwd',
      // What it leaves nobody else reads, but its output and its end are told.
      `umask 077; mkdir -p deep/er; echo x >deep/er/file; rmdir ../desk && exit 3; cat ../run && exit 4; ls ${shared}/agent/runs && exit 5; exit 6`,
      'sleep 600',
      ...Array.from({ length: 10 }, (_, i) => `echo ${i}`),
    );
    expect(await ended(own as string)).toMatchObject({
      cause: 'EXITED_ZERO',
      output: { text: expect.stringMatching(/^ada\n.*\/work\n$/) },
    });
    expect((await ended(private_ as string)).exitCode).toBe(6);
    await until('its start', async () => (await job(long as string)).state === 'RUNNING');
    expect(cli('squeue', '-h', '-t', 'r', '-o', '%u')).toContain('ada');
    await service.ask(
      'mutation ($ids: [ID!]!) { cancelJobs(input: { selection: { ids: $ids } }) { jobIds } }',
      {
        ids: [long],
      },
    );
    expect((await ended(long as string)).cause).toBe('CANCELLED_BY_OPERATOR');
    for (const [i, id] of many.entries())
      expect(await ended(id)).toMatchObject({ cause: 'EXITED_ZERO', output: { text: `${i}\n` } });
    await until('an empty queue', async () => cli('squeue', '-h', '-t', 'pd,r') === '');
    await until('no directories of runs', async () => cli('ls', join(shared, 'agent', 'runs')) === '');
  });
});
