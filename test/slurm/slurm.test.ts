/**
 * A site that schedules itself, by a real Slurm (test/support/slurm.sh): jobs through the public API, a worker, an agent and slurmctld, each of
 * which may be killed. `npm run test:slurm -- --minutes N --seed S` runs it for longer. Skipped where Slurm or root is missing.
 */
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { RandomStream } from '../../src/core/index.js';
import { packagePath } from '../../src/platform/paths.js';
import { Installation } from '../crash/installation.js';
import { PATIENCE_MS } from '../support/patience.js';
import { checkPromises } from '../support/promises.js';
import { SEED } from '../support/seed.js';
import { slurmCluster, slurmLacks } from '../support/slurm.js';

const minutes = Number(process.env.SLURM_MINUTES ?? 0.5);
const seed = Number(process.env.SLURM_SEED ?? SEED);
const TROUBLE_MS = minutes * 60_000;
const JOBS = 60;
const VICTIMS = ['agent', 'slurmctld', 'api', 'worker', 'agent', 'slurmctld'];

/** Of the operator: short is a partition of Slurm, nowhere is not. */
const RULES = [
  { projects: ['atlas'], account: 'physics' },
  { limitSMax: 5, partition: 'short' },
  { partition: 'batch', choices: { partition: ['short', 'nowhere'] } },
];

const lacks = slurmLacks();
if (lacks !== null) console.warn(`test/slurm is skipped: ${lacks}`);

interface JobAnswer {
  id: string;
  state: string;
  cause: string | null;
  exitCode: number | null;
  epoch: number;
  message: string | null;
  whyWaiting: { code: string; message: string } | null;
  runs: {
    message: string | null;
    placedBy: string;
    localId: string | null;
    localState: string | null;
    nodes: string[];
  }[];
  output: { text: string } | null;
}
const FIELDS =
  'id state cause exitCode epoch message whyWaiting { code message } runs { message placedBy localId localState nodes } output(stream: STDOUT) { text }';

describe.skipIf(lacks !== null)('a site with Slurm', () => {
  const dir = mkdtempSync(join(tmpdir(), 'sy-slurm-'));
  const cluster = join(dir, 'cluster');
  const conf = join(cluster, 'slurm.conf');
  const ledger = join(dir, 'ledger');
  let service: Installation;
  let site = '';

  const slurm = slurmCluster(cluster);
  const squeue = (): string =>
    execFileSync('squeue', ['-h', '-o', '%j %T'], {
      env: { ...process.env, SLURM_CONF: conf },
      encoding: 'utf8',
    });

  const submit = async (jobs: object[], key: string | null = null): Promise<string[]> => {
    const { submitJobs } = await service.ask<{
      submitJobs: { jobIds: string[]; errors: { message: string }[] };
    }>('mutation ($input: SubmitJobsInput!) { submitJobs(input: $input) { jobIds errors { message } } }', {
      input: { idempotencyKey: key, jobs: jobs.map((job) => ({ os: 'linux', estimateS: 5, ...job })) },
    });
    expect(submitJobs.errors).toEqual([]);
    return submitJobs.jobIds;
  };
  const machines = async (): Promise<string[][]> => {
    const { sites } = await service.ask<{
      sites: { nodes: { name: string; machines: { name: string }[] }[] };
    }>('query { sites(first: 10) { nodes { name machines { name } } } }', {});
    return sites.nodes.flatMap(({ name, machines }) =>
      name === 'alps' ? machines.map((one) => [one.name]) : [],
    );
  };
  const job = async (id: string): Promise<JobAnswer> =>
    (await service.ask<{ job: JobAnswer }>(`query ($id: ID!) { job(id: $id) { ${FIELDS} } }`, { id })).job;
  const when = async (id: string, ready: (job: JobAnswer) => boolean): Promise<JobAnswer> => {
    for (const deadline = Date.now() + PATIENCE_MS; ; await sleep(200)) {
      const now = await job(id);
      if (ready(now)) return now;
      if (Date.now() > deadline)
        throw new Error(`waited in vain: ${JSON.stringify(now)}\n${squeue()}\n${service.logs}`);
    }
  };
  const cancel = (...ids: (string | undefined)[]): Promise<unknown> =>
    service.ask('mutation ($ids: [ID!]!) { cancelJobs(input: { selection: { ids: $ids } }) { jobIds } }', {
      ids,
    });
  const ended = ({ state }: JobAnswer): boolean => ['COMPLETED', 'FAILED', 'CANCELLED'].includes(state);
  const shell = (text: string, more: object = {}): object => ({
    command: 'sh',
    arguments: ['-c', text],
    ...more,
  });

  beforeAll(async () => {
    writeFileSync(ledger, '');
    slurm('start');
    service = await Installation.open(null, {
      launch: (installation) => {
        installation.start('api', ['api'], installation.settings);
        installation.start('worker', ['worker'], installation.settings);
      },
    });
    const { id, key } = await service.addSite('alps', '{ kind: "external", queueLimit: 30 }');
    site = id;
    const rules = join(dir, 'rules');
    writeFileSync(rules, JSON.stringify(RULES));
    service.start('agent', ['agent', '--site', 'alps', '--local', 'slurm'], {
      SWITCHYARD_URL: service.url,
      SWITCHYARD_KEY: key,
      AGENT_STATE_DIR: join(dir, 'agent'),
      AGENT_LOCAL_RULES: rules,
      SLURM_CONF: conf,
      LOG_LEVEL: 'warn',
    });
    for (const giveUp = Date.now() + PATIENCE_MS; (await machines()).length < 3; await sleep(200))
      if (Date.now() > giveUp) throw new Error(`no machines are registered\n${service.logs}`);
  });
  afterAll(async () => {
    await service?.close();
    slurm('stop');
    rmSync(dir, { recursive: true, force: true });
  });

  it('has the nodes of Slurm as its machines, and what they have to do', async () => {
    const [one] = await submit([shell('echo "$SLURM_JOB_ID"; echo $SWITCHYARD_JOB_ID; exit 3')]);
    const end = await when(one as string, ended);
    expect(end).toMatchObject({ state: 'FAILED', cause: 'EXITED_NONZERO', exitCode: 3 });
    expect(end.runs).toMatchObject([{ placedBy: 'SITE', nodes: [expect.stringMatching(/^n[123]$/)] }]);
    expect(end.output?.text).toBe(`${end.runs[0]?.localId}\n${one}\n`);
    const shown = spawnSync(process.execPath, [packagePath('bin', 'switchyard.js'), 'job', one as string], {
      env: { ...process.env, SWITCHYARD_URL: service.url, SWITCHYARD_KEY: service.key },
      encoding: 'utf8',
    });
    expect(shown.stdout).toContain(`run 1: ${end.runs[0]?.localId} of the site's scheduler, `);
    type Sites = {
      sites: {
        nodes: {
          name: string;
          machines: { name: string; cpus: number }[];
          load: { stale: boolean } | null;
        }[];
      };
    };
    const { sites } = await service.ask<Sites>(
      'query { sites(first: 10) { nodes { name machines { name cpus } load { stale waitingJobs busyCpus } } } }',
      {},
    );
    const alps = sites.nodes.find(({ name }) => name === 'alps');
    expect(alps?.machines.map(({ name, cpus }) => [name, cpus])).toEqual([
      ['n1', 8],
      ['n2', 8],
      ['n3', 8],
    ]);
    expect(alps?.load).toMatchObject({ stale: false, waitingJobs: 0 });
  });

  it('runs several tasks, ends at the limit, keeps files, and says what it waits for', async () => {
    const [tasks, limited, kept] = await submit([
      shell(
        'echo "task $RANK of $WORLD_SIZE: $LOCAL_RANK of $LOCAL_WORLD_SIZE on $NODE_RANK of $NNODES, $MASTER_ADDR $SWITCHYARD_MACHINES $(wc -l <"$SWITCHYARD_HOSTFILE")"',
        { tasks: 3, cpusPerTask: 6 },
      ),
      { command: 'sleep', arguments: ['100'], runTimeLimitS: 2 },
      shell('echo 42 >result', { outputs: [{ path: 'result' }] }),
    ]);
    const all = await when(tasks as string, ended);
    expect(all.cause).toBe('EXITED_ZERO');
    expect(all.output?.text.trim().split('\n').sort()).toEqual(
      [0, 1, 2].map((rank) => `task ${rank} of 3: 0 of 1 on ${rank} of 3, n1 n1:1,n2:1,n3:1 3`),
    );
    expect(all.runs[0]?.nodes).toEqual(['n1', 'n2', 'n3']);
    expect((await when(limited as string, ended)).cause).toBe('RUN_TIME_LIMIT');
    expect((await when(kept as string, ended)).cause).toBe('EXITED_ZERO');

    const [long, waits] = await submit([
      shell('sleep 300', { tasks: 3, cpusPerTask: 8 }),
      shell(`echo "$SWITCHYARD_JOB_ID" >>${ledger}`, { tasks: 3, cpusPerTask: 8, estimateS: 6 }),
    ]);
    await when(long as string, ({ state }) => state === 'RUNNING');
    const waiting = await when(waits as string, ({ whyWaiting }) => whyWaiting?.code === 'WAITS_AT_SITE');
    expect(waiting.state).toBe('ASSIGNED');
    // One after the other: the nodes of the first are never free for the second.
    for (const id of [waits, long]) {
      await cancel(id);
      expect(await when(id as string, ended)).toMatchObject({
        state: 'CANCELLED',
        cause: 'CANCELLED_BY_OPERATOR',
      });
    }
    expect(readFileSync(ledger, 'utf8')).toBe('');
  });

  it('shows what a job has written while it runs, and all of it at the end', async () => {
    const flag = join(dir, 'flag');
    const [id] = await submit([
      shell(`echo early; until [ -e ${flag} ]; do sleep 0.2; done; seq 1 20000; echo late`),
    ]);
    const early = await when(id as string, ({ output }) => (output?.text ?? '') !== '');
    expect(early).toMatchObject({ state: 'RUNNING', output: { text: 'early\n' } });
    writeFileSync(flag, '');
    const { output } = await when(id as string, ended);
    const numbers = Array.from({ length: 20_000 }, (_, i) => `${i + 1}\n`).join('');
    expect(output?.text).toBe(`early\n${numbers}late\n`);
  });

  it('tells what the command of a run has used, without what its script reads', async () => {
    const [id] = await submit([shell('head -c 20000000 /dev/zero | md5sum >/dev/null')]);
    await when(id as string, ended);
    const { job: used } = await service.ask<{
      job: { runs: { cpuS: number; readMb: number; writtenMb: number; bytesMethod: string }[] };
    }>('query ($id: ID!) { job(id: $id) { runs { cpuS readMb writtenMb bytesMethod } } }', { id });
    const [run] = used.runs;
    // Read from the device and again from the pipe, and written to the pipe.
    expect(run?.readMb).toBeGreaterThan(40);
    expect(run?.readMb).toBeLessThan(40.5);
    expect(run?.writtenMb).toBeGreaterThan(20);
    expect(run?.writtenMb).toBeLessThan(20.5);
    expect(run?.bytesMethod).toBe('PROC');
    expect(run?.cpuS).toBeGreaterThan(0);
  });

  it('runs a job of several parts as one job of Slurm, each part on nodes of its own', async () => {
    const said =
      'echo "$SWITCHYARD_PART.$SWITCHYARD_PART_TASK_INDEX $SWITCHYARD_TASK_INDEX $SWITCHYARD_CPUS_PER_TASK $SLURM_HET_SIZE"';
    const [one, large] = await submit([
      shell(said, { parts: [{ cpusPerTask: 2 }, { tasks: 2 }] }),
      shell('echo "$SWITCHYARD_JOB_ID"', { parts: [{}, {}, { cpusPerTask: 8 }] }),
    ]);
    const end = await when(one as string, ended);
    expect(end.cause).toBe('EXITED_ZERO');
    expect(end.output?.text.trim().split('\n').sort()).toEqual(['0.0 0 2 2', '1.0 1 1 2', '1.1 2 1 2']);
    expect(new Set(end.runs[0]?.nodes).size).toBe(2);
    const largest = await when(large as string, ended);
    expect(largest.cause).toBe('EXITED_ZERO');
    expect(largest.output?.text).toBe(`${large}\n`.repeat(3));
    // A fourth part would have no node.
    type Refused = { submitJobs: { errors: { code: string; message: string }[] } };
    const { submitJobs } = await service.ask<Refused>(
      'mutation ($job: JobInput!) { submitJobs(input: { jobs: [$job] }) { errors { code message } } }',
      { job: { command: 'true', os: 'linux', parts: [{}, {}, {}, {}] } },
    );
    expect(submitJobs.errors).toMatchObject([
      { code: 'NEVER_FITS', message: expect.stringMatching(/parts\[3\]/) },
    ]);
  });

  it('hands jobs over on the terms of the operator, or of the job within these, and refuses others in words', async () => {
    const where = 'echo "$SLURM_JOB_PARTITION $SLURM_JOB_ACCOUNT"';
    const [plain, short, asked, forbidden, unknown] = await submit([
      shell(where, { project: 'atlas' }),
      shell(where, { runTimeLimitS: 5 }),
      shell(where, { siteTerms: { partition: 'short', account: 'chemistry' } }),
      shell(where, { siteTerms: { partition: 'batch,gpu' } }),
      shell(where, { siteTerms: { partition: 'nowhere' } }),
    ]);
    const said = async (id: string | undefined) => (await when(id as string, ended)).output?.text.trim();
    expect(await said(plain)).toBe('batch physics');
    expect(await said(short)).toBe('short');
    expect(await said(asked)).toBe('short chemistry');
    const refused = async (id: string | undefined) => {
      const end = await when(id as string, ended);
      expect(end).toMatchObject({ state: 'FAILED', cause: 'LAUNCH_FAILED', epoch: 1 });
      return end.message;
    };
    expect(await refused(forbidden)).toBe(
      'partition: "gpu" was requested; accepted at this site: batch, short, nowhere',
    );
    expect(await refused(unknown)).toContain('invalid partition specified: nowhere');
  });

  it('has the devices of Slurm, and asks it for them', async () => {
    const [gpus] = await submit([
      shell('echo "$SLURM_JOB_NODELIST"; scontrol show job "$SLURM_JOB_ID" | grep TresPerNode', {
        resourcesPerTask: [{ kind: 'gpu', amount: 2 }],
      }),
    ]);
    const end = await when(gpus as string, ended);
    expect(end.output?.text).toMatch(/^n3\n.*gres[:/]gpu[:=]2\n/s);
    // By what they are, on one node and by task.
    const a100 = { kind: 'gpu', count: 1, model: 'a100' };
    const script = 'scontrol show job "$SLURM_JOB_ID" | grep -o "TresPer.*"';
    const [two, each] = await submit([
      shell(script, { devicesPerTask: [{ ...a100, count: 2 }] }),
      shell(script, { devicesPerTask: [a100], tasks: 2, launch: 'ONCE' }),
    ]);
    expect((await when(two as string, ended)).output?.text).toMatch(/^TresPerNode=gres[:/]gpu:a100[:=]2$/m);
    expect((await when(each as string, ended)).output?.text).toMatch(
      /^TresPerTask=.*gres[:/]gpu:a100[:=]1$/m,
    );
  });

  it('has the licenses that Slurm counts, is asked for them, and refuses others by name', async () => {
    const { licenses } = await service.ask<{ licenses: { nodes: object[] } }>(
      '{ licenses(first: 10) { nodes { kind copies reported site { name } } } }',
      {},
    );
    expect(licenses.nodes).toEqual([{ kind: 'matlab', copies: 1, reported: true, site: { name: 'alps' } }]);
    const script = 'scontrol show job "$SLURM_JOB_ID" | grep -o "Licenses=[^ ]*"';
    const [one] = await submit([shell(script, { licenses: ['matlab'] })]);
    expect((await when(one as string, ended)).output?.text).toMatch(/^Licenses=matlab(:1)?$/m);
    const refused = async (...kinds: string[]) => {
      const { submitJobs } = await service.ask<{ submitJobs: { errors: { message: string }[] } }>(
        'mutation ($job: JobInput!) { submitJobs(input: { jobs: [$job] }) { errors { message } } }',
        { job: shell('true', { os: 'linux', licenses: kinds }) },
      );
      return submitJobs.errors[0]?.message;
    };
    expect(await refused('fluent')).toContain('fluent');
    expect(await refused('matlab', 'matlab')).toContain('matlab');
  });

  it('is asked for nodes without a window that the job could reach', async () => {
    const machines = await service.ask<{ machines: { nodes: { id: string; name: string }[] } }>(
      '{ machines(first: 10) { nodes { id name } } }',
      {},
    );
    const ids = ['n1', 'n2'].map((name) => machines.machines.nodes.find((one) => one.name === name)?.id);
    const at = (seconds: number) => new Date(Date.now() + 1000 * seconds).toISOString();
    const { createHold } = await service.ask<{ createHold: { hold: { id: string } } }>(
      'mutation ($input: CreateHoldInput!) { createHold(input: $input) { hold { id } } }',
      {
        input: {
          ...{ kind: 'MAINTENANCE', site, machines: ids, onConflict: 'AFTER_JOBS' },
          ...{ from: at(600), to: at(900) },
        },
      },
    );
    const where = 'echo "$SLURM_JOB_NODELIST"; scontrol show job "$SLURM_JOB_ID" | grep -o "ExcNodeList=.*"';
    const [long, short] = await submit([
      shell(where, { runTimeLimitS: 1200 }),
      shell(where, { runTimeLimitS: 60 }),
    ]);
    expect((await when(long as string, ended)).output?.text).toMatch(/^n3\nExcNodeList=n\[1-2\]\n/);
    expect((await when(short as string, ended)).output?.text).toMatch(/^n[123]\nExcNodeList=\(null\)\n/);
    await service.ask('mutation ($hold: ID!) { cancelHold(input: { holdId: $hold }) { hold { id } } }', {
      hold: createHold.hold.id,
    });
  });

  it('is asked for so many tasks on each node, and for nodes without other jobs', async () => {
    const [alone] = await submit([
      shell(
        'echo "$SLURM_TASKS_PER_NODE"; scontrol show job "$SLURM_JOB_ID" | grep -o "OverSubscribe=[A-Z]*"',
        {
          ...{ tasks: 4, launch: 'ONCE', tasksPerMachine: { min: 2, max: 2 }, exclusive: 'MACHINE' },
        },
      ),
    ]);
    const end = await when(alone as string, ended);
    expect(end.output?.text.trim()).toBe('2(x2)\nOverSubscribe=NO');
  });

  it('brings a job its inputs', async () => {
    const path = join(dir, 'numbers');
    writeFileSync(path, '42\n');
    const { createDataset } = await service.ask<{ createDataset: { dataset: { id: string } } }>(
      'mutation ($input: DatasetInput!) { createDataset(input: $input) { dataset { id } } }',
      { input: { name: 'numbers', sizeMb: 0.000003, locations: [{ site, location: path }] } },
    );
    const [one] = await submit([
      shell('cat numbers "$SWITCHYARD_INPUT_1"', { inputs: [{ dataset: createDataset.dataset.id }] }),
    ]);
    const end = await when(one as string, ended);
    expect([end.cause, end.output?.text]).toEqual(['EXITED_ZERO', '42\n42\n']);
  });

  /** Jobs that slurmctld forgot, and ids that it then gives twice, may drain nodes: the site's administrator has to look. */
  const resume = () =>
    spawnSync('scontrol', ['update', 'nodename=n[1-3]', 'state=resume'], {
      env: { ...process.env, SLURM_CONF: conf },
    });

  it('does not answer: its machines say so in its words to whoever asks for the site, and nothing ends', async () => {
    const said = async (): Promise<(string | null)[]> => {
      const { sites } = await service.ask<{
        sites: { nodes: { name: string; machines: { problem: string | null }[] }[] };
      }>('query { sites(first: 10) { nodes { name machines { problem } } } }', {});
      return sites.nodes.flatMap(({ name, machines }) =>
        name === 'alps' ? machines.map(({ problem }) => problem) : [],
      );
    };
    const untilSaid = async (what: RegExp | null): Promise<void> => {
      for (const deadline = Date.now() + PATIENCE_MS; ; await sleep(300)) {
        resume();
        const problems = await said();
        if (problems.every((one) => (what === null ? one === null : what.test(one ?? '')))) return;
        if (Date.now() > deadline)
          throw new Error(`waited in vain: ${JSON.stringify(problems)}\n${service.logs}`);
      }
    };
    const [one] = await submit([shell('sleep 2; echo whole; exit 5')]);
    await when(one as string, ({ state }) => state === 'RUNNING');
    slurm('kill');
    await untilSaid(/^Slurm does not respond: .*Unable to contact slurm controller/);
    // The ids that it has forgotten are not given again: a node would refuse them, and jobs of the next tests would never run.
    slurm('start', '1000');
    await untilSaid(null);
    expect(await when(one as string, ended)).toMatchObject({ exitCode: 5, output: { text: 'whole\n' } });
  });

  it('does what adapters have to do', () => {
    resume();
    const words = ['agent', 'conformance', '--adapter', 'slurm', '--directory', dir];
    const { stdout, status } = spawnSync(process.execPath, [packagePath('bin', 'switchyard.js'), ...words], {
      env: { ...process.env, SLURM_CONF: conf },
      encoding: 'utf8',
    });
    expect(status, stdout).toBe(0);
    expect(
      stdout
        .trim()
        .split('\n')
        .filter((line) => !line.startsWith('holds')),
    ).toEqual([]);
  });

  it('is looked at before it is set up: what there is, a job in each partition, and what will not work', () => {
    const check = (variables: object, ...more: string[]) => {
      const words = ['agent', '--site', 'alps', '--local', 'slurm', '--check', ...more];
      const { stdout, stderr, status } = spawnSync(
        process.execPath,
        [packagePath('bin', 'switchyard.js'), ...words],
        {
          env: { ...process.env, SLURM_CONF: conf, AGENT_STATE_DIR: join(dir, 'checked'), ...variables },
          encoding: 'utf8',
        },
      );
      return { stdout, stderr, status };
    };
    const well = check({});
    expect(well.status, well.stdout).toBe(0);
    for (const said of [
      /^ok {7}machines: 3 nodes, 24 CPUs, 2 gpu, 1 tape$/m,
      /^ok {7}partition short: up, 1 nodes, 8 CPUs, limit 1:00$/m,
      /^ok {7}associations of root: Slurm has no accounting$/m,
      /^ok {7}a job in batch: .* on n[123]$/m,
      /^ok {7}a job in short: .* on n3$/m,
    ])
      expect(well.stdout).toMatch(said);
    const none = check({ AGENT_SLURM_PARTITION: 'batch,nowhere' });
    expect(none.status).toBe(1);
    expect(none.stdout).toContain(
      'FAILED   Slurm: AGENT_SLURM_PARTITION: nowhere: Slurm does not have this partition',
    );
    execFileSync('scontrol', ['update', 'partitionname=short', 'state=down'], {
      env: { ...process.env, SLURM_CONF: conf },
    });
    const down = check({ AGENT_SLURM_PARTITION: 'short' }, '--patience', '5');
    execFileSync('scontrol', ['update', 'partitionname=short', 'state=up'], {
      env: { ...process.env, SLURM_CONF: conf },
    });
    expect(down.status).toBe(1);
    expect(down.stdout).toMatch(
      /^FAILED {3}a job in short: its end: not within 5 s; Slurm reports PENDING \(PartitionDown\)/m,
    );
    expect(down.stderr).toContain('1 of these will not work');
  });

  it(`runs each job once, whatever is killed (seed ${seed})`, {
    timeout: TROUBLE_MS + 3 * PATIENCE_MS,
  }, async () => {
    const random = new RandomStream(seed, 'slurm');
    const mark = shell(
      `echo "$SWITCHYARD_JOB_ID $SWITCHYARD_EPOCH" >>${ledger}; sleep 0.$((SLURM_JOB_ID % 10))`,
    );
    const ids: string[] = [];
    const faults: string[] = [];
    const until = Date.now() + TROUBLE_MS;
    const submitting = async (): Promise<void> => {
      for (let batch = 0; ids.length < JOBS; batch++) {
        for (;;) {
          try {
            ids.push(
              ...(await submit(
                Array.from({ length: 20 }, () => mark),
                `batch ${batch}`,
              )),
            );
            break;
          } catch (error) {
            if (Date.now() > until + PATIENCE_MS) throw error;
            await sleep(300);
          }
        }
        await sleep(TROUBLE_MS / 15);
      }
    };
    const kill = async (): Promise<void> => {
      for (const name of VICTIMS) {
        await sleep((0.5 + random.next()) * (TROUBLE_MS / VICTIMS.length));
        faults.push(name);
        if (name === 'slurmctld') {
          slurm('kill');
          await sleep(500);
          slurm('start');
        } else service.processes.find((process) => process.name === name)?.kill();
      }
    };
    await Promise.all([submitting(), kill()]);
    const story = () => `seed ${seed}; killed: ${faults.join(', ')}\n${squeue()}\n${service.logs}`;
    const live = 'SELECT state::text, count(*)::int AS n FROM jobs WHERE ended_at IS NULL GROUP BY 1';
    for (const giveUp = Date.now() + PATIENCE_MS; ; await sleep(500)) {
      resume();
      const left = await service.rows<object>(live);
      if (left.length === 0) break;
      if (Date.now() > giveUp) throw new Error(`waited in vain: ${JSON.stringify(left)}\n${story()}`);
    }
    const runs = await service.rows<{ run: string; cause: string }>(
      "SELECT 'job_' || job_id || ' ' || epoch AS run, cause::text FROM runs WHERE job_id = ANY ($1::bigint[])",
      ids.map((id) => id.slice(4)),
    );
    const ran = readFileSync(ledger, 'utf8').trim().split('\n');
    const told = `${story()}${JSON.stringify(runs.filter(({ cause }) => cause !== 'EXITED_ZERO'))}`;
    // No run begins twice, and what has ended well has run. Slurm ends runs that it has forgotten: they are lost, and their jobs run again.
    expect(new Set(ran).size, told).toBe(ran.length);
    const well = runs.filter(({ cause }) => cause === 'EXITED_ZERO').map(({ run }) => run);
    expect(
      well.filter((run) => !ran.includes(run)),
      told,
    ).toEqual([]);
    expect(well.map((run) => run.split(' ')[0]).sort(), told).toEqual([...ids].sort());
    const ends = await service.rows<{ cause: string; n: number }>(
      'SELECT cause::text, count(*)::int AS n FROM jobs WHERE id = ANY ($1::bigint[]) GROUP BY 1',
      ids.map((id) => id.slice(4)),
    );
    expect(ends, story()).toEqual([{ cause: 'EXITED_ZERO', n: JOBS }]);
    expect(await checkPromises(service.database.pool), story()).toEqual([]);
  });
});
