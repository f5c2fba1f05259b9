/** Partitions of sites that schedule themselves, in the commands called like Slurm's. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { packagePath } from '../../src/platform/paths.js';
import { endAll, type Service, serve, until } from './service.js';
import { commandsOf } from './slurm-commands.js';

const home = mkdtempSync(join(tmpdir(), 'switchyard-slurm-sites-'));
const [here, bin] = [join(home, 'here'), join(home, 'bin')];
let service: Service;
const { shell, said } = commandsOf({ bin, here, home, url: () => service.url });

const ask = async <T>(key: string, query: string, variables: object = {}): Promise<T> => {
  const response = await fetch(new URL('/graphql', service.url), {
    method: 'POST',
    headers: { 'content-type': 'application/json', authorization: `Bearer ${key}` },
    body: JSON.stringify({ query, variables }),
  });
  const { data, errors } = (await response.json()) as { data: T; errors?: { message: string }[] };
  if (errors) throw new Error(errors[0]!.message);
  return data;
};
beforeAll(async () => {
  mkdirSync(here);
  service = await serve(home);
  execFileSync(process.execPath, [packagePath('bin', 'switchyard.js'), 'slurm', 'install', bin]);
  const admin = readFileSync(join(home, 'admin.key'), 'utf8').trim();
  const { createSite } = await ask<{ createSite: { site: { id: string } } }>(
    admin,
    'mutation { createSite(input: { name: "alps", localPolicy: { kind: "external" } }) { site { id } } }',
  );
  const site = createSite.site.id;
  const machines = ['n1', 'n2'].map(
    (name) => `{ site: "${site}", name: "${name}", cpus: 16, memoryMb: 1000 }`,
  );
  await ask(
    admin,
    `mutation { createMachines(input: { machines: [${machines.join()}] }) { machines { id } } }`,
  );
  const { createUser } = await ask<{ createUser: { user: { id: string } } }>(
    admin,
    'mutation { createUser(input: { name: "agent-of-alps", role: AGENT }) { user { id } } }',
  );
  const { createApiKey } = await ask<{ createApiKey: { secret: string } }>(
    admin,
    'mutation ($input: CreateApiKeyInput!) { createApiKey(input: $input) { secret } }',
    { input: { userId: createUser.user.id, name: 'alps', siteId: site } },
  );
  const input = { site, identity: 'i', instance: '1', host: 'login', version: '1', protocol: 3 };
  const { registerAgent } = await ask<{ registerAgent: { agent: { id: string } } }>(
    createApiKey.secret,
    'mutation ($input: RegisterAgentInput!) { registerAgent(input: $input) { agent { id } } }',
    { input: { ...input, simulated: true } },
  );
  const partition = { isDefault: false, isUsed: true, state: 'up', busyCpus: 10 };
  const partitions = [
    {
      ...partition,
      name: 'batch',
      isDefault: true,
      nodes: 2,
      nodeList: 'n[1-2]',
      cpus: 32,
      longestS: 604800,
    },
    { ...partition, name: 'debug', nodes: 1, nodeList: 'n1', cpus: 16, longestS: 1800 },
    {
      ...{ ...partition, name: 'big', nodes: 2, nodeList: 'b[01-02]', cpus: 128, busyCpus: 0 },
      ...{ isUsed: false, state: 'down', longestS: null },
    },
  ];
  const load = {
    ...{ waitingJobs: 2, waitingS: 7200, waitingCpuS: 57_600, longestS: 604800, partitions },
    queue: [{ id: '41', cpus: 8, limitS: 7200, reason: 'Priority' }],
    calls: { made: 40, failed: 1, listS: 0.2, jobs: 3 },
  };
  await ask(
    createApiKey.secret,
    'mutation ($site: ID!, $agent: ID!, $load: SiteLoadInput!) { reportLoad(site: $site, agent: $agent, load: $load) }',
    {
      ...{ site, agent: registerAgent.agent.id },
      load: { ...load, busy: [{ machine: 'n1', cpus: 10, memoryMb: 100 }] },
    },
  );
});

afterAll(async () => {
  await endAll();
  rmSync(home, { recursive: true, force: true });
});

it('has its partitions in sinfo and scontrol, with nodes, states and time limits', async () => {
  const rows = (words: string) => said(`sinfo -h ${words}`);
  expect((await rows("-p alps,alps/batch,debug,alps/big -o '%P|%a|%l|%D|%T|%N'")).split('\n')).toEqual([
    ...['alps*|up|7-00:00:00|1|mixed|n1', 'alps*|up|7-00:00:00|1|idle|n2'],
    ...['alps/batch|up|7-00:00:00|1|mixed|n1', 'alps/batch|up|7-00:00:00|1|idle|n2'],
    'alps/debug|up|30:00|1|mixed|n1',
    'alps/big|down|infinite|2|unknown|b01,b02',
  ]);
  // What others have there counts.
  expect(await rows('-p alps/batch -o %C')).toBe('10/22/0/32');
  expect(await rows('-p alps/big -o %C')).toBe('0/128/0/128');
  // Where partitions are not told apart, a node counts once.
  expect(await rows('-p alps,alps/batch,alps/debug -o %D')).toBe('2');
  expect(await rows("-p batch,debug -o '%R %l' -S l")).toBe('alps/debug 30:00\nalps/batch 7-00:00:00');
  expect(await rows("-p batch,debug -o '%R' -S -R")).toBe('alps/debug\nalps/batch');
  expect(await said('scontrol show partition -o alps/debug')).toMatch(
    /^PartitionName=alps\/debug .* MaxTime=30:00 .* Nodes=n1 State=UP TotalCPUs=16 TotalNodes=1 /,
  );
  expect(await said('scontrol show partition debug')).toMatch(/^PartitionName=alps\/debug\n/);
  expect(JSON.parse(await said('sinfo --json -p alps/debug')).sinfo[0].partition).toMatchObject({
    ...{ name: 'alps/debug', maximums: { time: { set: true, number: 30 } } },
  });
});

it('takes a job into the partition that sbatch names, and nowhere else', async () => {
  const id = await said(
    `sbatch --parsable -p alps/debug -t 10 -C 'architecture = "any" or site' --wrap true`,
  );
  const job = await service.json<{ siteTerms: object; machineConstraint: string }>('job', id);
  expect(job.siteTerms).toMatchObject({ partition: 'debug' });
  expect(job.machineConstraint).toBe('site = "alps" and (architecture = "any" or site)');
  expect(await said(`squeue -h -o %P -j ${id}`)).toBe('alps/debug');
  for (const name of ['alps/debug', 'debug', 'alps'])
    expect(await said(`squeue -h -o %i -p ${name}`)).toBe(id);
  for (const name of ['alps/batch', 'batch', 'local'])
    expect(await said(`squeue -h -o %i -p ${name}`)).toBe('');
  expect(JSON.parse(await said(`squeue --json -j ${id}`)).jobs[0].partition).toBe('alps/debug');
  // By its own name, as scripts for that cluster have it.
  const other = await said('sbatch --parsable -p debug,batch -t 10 --wrap true');
  expect(await said(`squeue -h -o %P -j ${other}`)).toBe('alps/debug,alps/batch');
  expect((await service.cli('drain', 'n2')).code).toBe(0);
  const shown = (await service.cli('sites', 'show', 'alps')).stdout;
  for (const line of [
    /^its own scheduler, as of [\d.]+\w+ ago \(.* UTC\)/m,
    /^ {2}10 of 32 CPUs in use, 100 MB of memory in use, by jobs of any user$/m,
    /^ {2}2 jobs of others waiting, with limits of 2h00m in all, 16h00m of CPU time$/m,
    /^ {2}40 requests of the agent since it started, 1 not answered;.* 3 jobs of agents there$/m,
    /^batch\* +up +yes +7d00h +2 +10\/32 +n\[1-2\]$/m,
    /^debug +up +yes +30m00s +1 +10\/16 +n1$/m,
    /^big +down +no +none +2 +0\/128 +b\[01-02\]$/m,
    /^1 node without new jobs:\nNODE +STATE +REASON\nn2 +DRAINING$/m,
    new RegExp(
      `^ID +JOB +CPUS +LIMIT +STATE +WAITS FOR\n- +job_${id} +1 +10m00s +not reported yet +\\S+$`,
      'm',
    ),
    /^others waiting there, the first:\nID +CPUS +LIMIT +REASON\n41 +8 +2h00m +Priority$/m,
    /^ {2}no job of this service has started there in the last 24 h$/m,
  ])
    expect(shown).toMatch(line);
  await said(`scancel -p alps/batch`);
  expect(await said('squeue -h -t PD,CF -o %i -p alps')).toBe(id);
  await said(`scancel ${id}`);
});

it('refuses in words what there is not, with what is accepted', async () => {
  const refused = async (words: string) => {
    const { code, stderr } = await shell(`sbatch ${words} --wrap true`);
    expect(code).toBe(1);
    return stderr;
  };
  expect(await refused('-p alps/nope')).toBe(
    'sbatch: error: invalid partition specified: alps/nope\nsbatch: error: accepted: alps, local, alps/batch, alps/debug, alps/big\nsbatch: error: Batch job submission failed: Invalid partition name specified\n',
  );
  expect(await refused('-p local,alps/debug')).toMatch(
    /\nsbatch: error: accepted: sites, or partitions of one site\n/,
  );
  expect(await refused('-t 2:00:00 -p debug')).toMatch(
    /--time: 7200 s is not accepted; accepted in debug: up to 1800 s\n.*Requested time limit is invalid/,
  );
});

it('has its peers as clusters, with the jobs that they run', async () => {
  const keyFile = join(home, 'bern.key');
  expect(await service.cli('peers', 'add', 'bern', '--key-out', keyFile)).toMatchObject({ code: 0 });
  const key = readFileSync(keyFile, 'utf8').trim();
  const kind = { site: 0, os: 'bernese', architecture: 'x86_64', cpus: 8, memoryMb: 16_000, machines: 1 };
  const input = {
    ...{ protocol: 3, service: 'of-bern', after: '0', room: 10, classes: [] },
    kinds: [{ ...kind, hops: 1, licenses: [], devices: [] }],
  };
  const exchange = async () => {
    const { exchangeJobs } = await ask<{ exchangeJobs: { offers: { offer: string; state: string }[] } }>(
      key,
      'mutation ($input: ExchangeInput!) { exchangeJobs(input: $input) { offers { offer state } } }',
      { input },
    );
    return exchangeJobs.offers.filter(({ state }) => state === 'OFFERED').map(({ offer }) => offer);
  };
  await exchange();
  const submitted = await service.cli('submit', '--os', 'bernese', '--name', 'there', '--', 'true');
  const there = /job_(\d+)/.exec(submitted.stdout)![1]!;
  const own = await said('sbatch --parsable -H -J own --wrap true');
  const offers = await until(exchange, (all) => all.length > 0);
  await ask(key, 'mutation ($offers: [ID!]!) { claimJobs(offers: $offers) { results { outcome } } }', {
    offers,
  });
  const listed = (words: string) => said(`squeue -n own,there -o '%i' ${words}`);
  expect(await listed('-h -M bern')).toBe(there);
  expect(await listed('-h -M switchyard')).toBe(own);
  expect(await listed('-M bern,switchyard')).toBe(
    ['CLUSTER: bern', 'JOBID', there, '', 'CLUSTER: switchyard', 'JOBID', own].join('\n'),
  );
  expect(await listed('--clusters=all')).toBe(
    ['CLUSTER: switchyard', 'JOBID', own, '', 'CLUSTER: bern', 'JOBID', there].join('\n'),
  );
  expect(
    JSON.parse(await said('squeue --json -M bern')).jobs.map((job: { name: string }) => job.name),
  ).toEqual(['there']);
  expect(await said('sacct -a -n -X -P -M bern -o jobid')).toBe(there);
  expect(await said('sinfo -h -M bern -o %R')).toBe('bern');
  expect(await said('sinfo -M switchyard,bern -o %R')).toMatch(
    /^CLUSTER: switchyard\nPARTITION\n(local|alps)[\s\S]*\n\nCLUSTER: bern\nPARTITION\nbern$/,
  );
  expect(await said('sacctmgr -nP list clusters format=cluster')).toBe('switchyard\nbern');
  for (const command of ['squeue', 'sinfo', 'sacct', 'scancel -u ada'])
    expect(await shell(`${command} -M nowhere`)).toMatchObject({
      ...{ code: 1, stdout: '' },
      stderr: expect.stringMatching(
        /'nowhere' can't be reached now, [\s\S]*accepted: all, switchyard, bern\n/,
      ),
    });
  const sent = await shell('sbatch --parsable -H -M bern --wrap true');
  expect(sent).toMatchObject({
    code: 0,
    stderr: 'sbatch: warning: --clusters: a preference only; the policy of the service chooses the site\n',
  });
  const preferred = (id: string) =>
    ask(
      readFileSync(join(home, 'admin.key'), 'utf8').trim(),
      'query ($id: ID!) { job(id: $id) { preferences { site { name } } } }',
      { id: `job_${id.trim()}` },
    );
  expect(await preferred(sent.stdout)).toEqual({ job: { preferences: [{ site: { name: 'bern' } }] } });
  expect(await preferred(await said('sbatch --parsable -H -M all --wrap true'))).toEqual({
    job: { preferences: [] },
  });
  expect((await shell('srun -M bern true')).stderr).toBe(
    'srun: error: --clusters: srun does not reach jobs of peers; accepted: switchyard, or `sbatch -M bern`\n',
  );
  expect((await shell('salloc -M nowhere true')).stderr).toContain("'nowhere' can't be reached now");
  await said('scancel -u ada -M switchyard');
  expect(await listed('-h -M all')).toBe(there);
  await said('scancel -u ada -M bern');
  await until(
    () => said(`squeue -h -t all -o %T -j ${there}`),
    (state) => state !== 'PENDING' && state !== 'CONFIGURING',
  );
});
