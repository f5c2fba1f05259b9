/** Partitions of sites that schedule themselves, in the commands called like Slurm's. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { packagePath } from '../../src/platform/paths.js';
import { endAll, type Service, serve } from './service.js';
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
  const { registerSite } = await ask<{ registerSite: { id: string } }>(
    admin,
    'mutation { registerSite(input: { name: "alps", localPolicy: { kind: "external" } }) { id } }',
  );
  const site = registerSite.id;
  for (const name of ['n1', 'n2'])
    expect(
      (await service.cli('machines', 'add', 'alps', name, '--cpus', '16', '--memory', '1000')).code,
    ).toBe(0);
  const { registerUser } = await ask<{ registerUser: { id: string } }>(
    admin,
    'mutation { registerUser(input: { name: "agent of alps", role: AGENT }) { id } }',
  );
  const { createApiKey } = await ask<{ createApiKey: { secret: string } }>(
    admin,
    'mutation ($input: CreateApiKeyInput!) { createApiKey(input: $input) { secret } }',
    { input: { user: registerUser.id, name: 'alps', site } },
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
  const load = { waitingJobs: 0, waitingS: 0, waitingCpuS: 0, longestS: 604800, partitions };
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
    ...['alps|up|7-00:00:00|1|mixed|n1', 'alps|up|7-00:00:00|1|idle|n2'],
    ...['alps/batch|up|7-00:00:00|1|mixed|n1', 'alps/batch|up|7-00:00:00|1|idle|n2'],
    'alps/debug|up|00:30:00|1|mixed|n1',
    'alps/big|down|infinite|2|unknown|b01,b02',
  ]);
  // What others have there counts.
  expect(await rows('-p alps/batch -o %C')).toBe('10/22/0/32');
  expect(await rows('-p alps/big -o %C')).toBe('0/128/0/128');
  // Where partitions are not told apart, a node counts once.
  expect(await rows('-p alps,alps/batch,alps/debug -o %D')).toBe('2');
  expect(await rows("-p batch,debug -o '%R %l' -S l")).toBe('alps/debug 00:30:00\nalps/batch 7-00:00:00');
  expect(await rows("-p batch,debug -o '%R' -S -R")).toBe('alps/debug\nalps/batch');
  expect(await said('scontrol show partition -o alps/debug')).toMatch(
    /^PartitionName=alps\/debug .* MaxTime=00:30:00 .* Nodes=n1 State=UP TotalCPUs=16 TotalNodes=1 /,
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
  await said(`scancel -p alps/batch`);
  expect(await said(`squeue -h -o %i -p alps`)).toBe(id);
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
