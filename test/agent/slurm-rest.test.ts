/**
 * Which version of slurmrestd's API is spoken, found in its OpenAPI document. The documents here have the paths and names of schemas that Slurm's
 * have, as far as the client looks at them: v0.0.38 and v0.0.39 name the body of a submission `job_submission`, later ones `job_submit_req`.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, expect, it } from 'vitest';
import type { Capacity, Submission } from '../../src/agent/external/scheduler.js';
import { SlurmRest } from '../../src/agent/external/slurm-rest.js';

const home = mkdtempSync(join(tmpdir(), 'switchyard-slurm-rest-'));
const tokenFile = join(home, 'token');
writeFileSync(tokenFile, 'SLURM_JWT=secret\n');
const servers: Server[] = [];
afterEach(() => {
  for (const server of servers.splice(0)) server.close();
});
afterAll(() => rmSync(home, { recursive: true, force: true }));

const bodyOf = (version: number): string =>
  `v0.0.${version}_${version < 40 ? 'job_submission' : 'job_submit_req'}`;
/** Of a slurmrestd with these plugins. From 0.0.40 on collections end in a slash, and there are paths for accounting too. */
function documentOf(versions: readonly number[], { severalJobs = true } = {}): object {
  const content = (version: number) => ({
    'application/json': { schema: { $ref: `#/components/schemas/${bodyOf(version)}` } },
  });
  const paths = versions.flatMap((version) => [
    [`/slurm/v0.0.${version}/jobs${version < 40 ? '' : '/'}`, { get: {} }],
    [`/slurm/v0.0.${version}/job/submit`, { post: { requestBody: { content: content(version) } } }],
    [`/slurmdb/v0.0.${version}/jobs`, { get: {} }],
  ]);
  const job = { $ref: '#/components/schemas/job' };
  const schemas = versions.map((version) => [
    bodyOf(version),
    {
      type: 'object',
      properties: { script: {}, job, ...(severalJobs && { jobs: { type: 'array', items: job } }) },
    },
  ]);
  return {
    ...{ openapi: '3.0.3', info: { version: 'Slurm' } },
    paths: { ...Object.fromEntries(paths), '/openapi/v3': { get: {} } },
    components: { schemas: Object.fromEntries(schemas) },
  };
}

/** Answers with the document, and to a submission with an id; writes down what it was asked. */
async function slurmrestd(document: () => object, answers: Readonly<Record<string, object>> = {}) {
  const asked: { path: string; body: unknown; token: unknown }[] = [];
  const server = createServer((request, response) => {
    let text = '';
    request.on('data', (piece) => (text += piece));
    request.on('end', () => {
      const path = request.url ?? '';
      asked.push({
        path,
        body: text === '' ? null : JSON.parse(text),
        token: request.headers['x-slurm-user-token'],
      });
      const has = document() as { paths: object };
      if (path !== '/openapi/v3' && !(path in has.paths)) response.statusCode = 404;
      const answered = answers[path.split('/').at(-1) ?? ''] ?? { job_id: 7, errors: [] };
      const answer = path === '/openapi/v3' ? has : response.statusCode === 404 ? {} : answered;
      response.end(JSON.stringify(answer));
    });
  });
  servers.push(server);
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  const address = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const client = new SlurmRest({ address, tokenFile, partition: null, account: null });
  return { client, asked };
}

const JOB: Submission = {
  ...{ name: 'sy-1', comment: 'c', user: null, directory: '/d', script: '/d/script', elements: null },
  ...{
    tasks: 1,
    cpusPerTask: 2,
    memoryMbPerTask: 100,
    resourcesPerTask: [],
    pools: [],
    licenses: [],
    resources: [],
  },
  ...{ tasksPerMachine: null, exclusive: null, sameSwitch: null, nodes: null, timeLimitS: 600 },
  ...{ partition: null, account: null, qos: null, parts: null },
};

it.each([
  ['Slurm 22.05', [36, 37, 38], 38],
  ['Slurm 23.02', [37, 38, 39], 39],
  ['Slurm 23.11', [38, 39, 40], 40],
  ['Slurm 24.05', [39, 40, 41], 41],
  ['Slurm 24.11', [40, 41, 42], 42],
  ['Slurm 25.05', [41, 42, 43], 43],
  ['one that is newer than what is spoken', [43, 44, 45], 43],
])('of %s the newest that is spoken', async (_, versions, spoken) => {
  const { client, asked } = await slurmrestd(() => documentOf(versions));
  expect(await client.submit(JOB)).toEqual(['7']);
  expect(asked.map(({ path }) => path)).toEqual(['/openapi/v3', `/slurm/v0.0.${spoken}/job/submit`]);
  expect(asked.every(({ token }) => token === 'secret')).toBe(true);
  const { job } = asked[1]!.body as { job: Record<string, unknown> };
  // Slurm 22.05 has other names for some options, and an environment that is no list.
  expect('no_requeue' in job).toBe(spoken === 38);
  expect(Array.isArray(job.environment)).toBe(spoken !== 38);
});

it('is asked for again when the site has another Slurm', async () => {
  let versions = [39, 40];
  const { client, asked } = await slurmrestd(() => documentOf(versions));
  await client.submit(JOB);
  versions = [42, 43];
  // Nothing says that it was not submitted: the agent looks for it before it tries again.
  await expect(client.submit(JOB)).rejects.toThrow(/HTTP 404/);
  await client.submit(JOB);
  expect(asked.map(({ path }) => path)).toEqual([
    ...['/openapi/v3', '/slurm/v0.0.40/job/submit', '/slurm/v0.0.40/job/submit'],
    ...['/openapi/v3', '/slurm/v0.0.43/job/submit'],
  ]);
});

it('that nobody speaks here is refused, with what is there and what would do', async () => {
  const { client } = await slurmrestd(() => documentOf([35, 36]));
  await expect(client.submit(JOB)).rejects.toThrow(
    'slurmrestd: it has v0.0.35, v0.0.36; supported: v0.0.43, v0.0.42, v0.0.41, v0.0.40, v0.0.39, v0.0.38',
  );
  const empty = await slurmrestd(() => ({ paths: {} }));
  await expect(empty.client.submit(JOB)).rejects.toThrow('slurmrestd: it has no API (HTTP 200); supported:');
});

it('finds the default partition where it is told, or is the only one, and else asks for its name', async () => {
  const capacityOf = async (...partitions: object[]) => {
    const has = { ...documentOf([42]), paths: { '/openapi/v3': {} } as Record<string, object> };
    for (const one of ['partitions', 'licenses', 'nodes', 'jobs']) has.paths[`/slurm/v0.0.42/${one}`] = {};
    return (await slurmrestd(() => has, { partitions: { partitions } })).client.capacity();
  };
  const [batch, short] = [{ name: 'batch' }, { name: 'short' }];
  const used = ({ partitions = [] }: Capacity) =>
    partitions.filter(({ isUsed }) => isUsed).map(({ name }) => name);
  expect(used(await capacityOf(batch, { ...short, partition: { flags: ['DEFAULT'] } }))).toEqual(['short']);
  expect(used(await capacityOf(batch))).toEqual(['batch']);
  await expect(capacityOf(batch, short)).rejects.toThrow('AGENT_SLURM_PARTITION');
});
