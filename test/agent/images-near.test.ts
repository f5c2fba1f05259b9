/** An image that lies at a site brings jobs there: from the agent that has it to the decisions of the scheduler. */
import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { Isolation } from '../../src/agent/process/isolation.js';
import { processAgent } from '../../src/cli/agents.js';
import { loadConfig } from '../../src/platform/config.js';
import type { Logger } from '../../src/platform/log.js';
import { withApi } from '../api/support/api.js';
import { withEngine } from '../api/support/engine.js';
import { quietLog, until } from '../engine/support.js';
import { makeImage } from '../support/image.js';

const mode = (['sandbox', 'user'] as const).find((one) => {
  try {
    return Isolation.open({ mode: one, images: [tmpdir()] }, tmpdir(), 'test-probe').images !== null;
  } catch {
    return false;
  }
});
if (!mode) it.skip('an image that lies at a site brings jobs there: it takes bubblewrap');

const api = withApi();
withEngine(api);
let dir = '';
let site = '';
beforeAll(async () => {
  dir = mkdtempSync(join(tmpdir(), 'switchyard-near-'));
  chmodSync(dir, 0o755);
  makeImage(join(dir, 'images'), 'tools/made:1');
  const { policy } = await api.must<{ policy: { version: number; document: { timers: object } } }>(
    '{ policy { version document } }',
  );
  // The far site is served by nobody who lives.
  const timers = { ...policy.document.timers, agentSilentS: 3600 };
  const document = { ...policy.document, dispatch: { kind: 'diana' }, timers };
  await api.must(
    'mutation ($input: UpdatePolicyInput!) { updatePolicy(input: $input) { policy { version } } }',
    { input: { document, expectedVersion: policy.version, reason: 'test' } },
  );
  for (const name of ['here', 'far']) {
    const { createSite } = await api.must<{ createSite: { site: { id: string } } }>(
      'mutation ($name: String!) { createSite(input: { name: $name }) { site { id } } }',
      { name },
    );
    const { id } = createSite.site;
    if (name === 'here') site = id;
    await api.must(
      'mutation ($input: CreateMachineInput!) { createMachine(input: $input) { machine { id } } }',
      {
        input: {
          ...{ siteId: id, name: `m-${name}`, cpus: 1, memoryMb: 500 },
          ...{ benchmark: name === 'far' ? 200 : 100, labels: [{ name: 'containers' }] },
        },
      },
    );
    if (name === 'far') await api.serve(id, (await api.user('AGENT', 'far', id)).key);
  }
});
afterAll(() => rmSync(dir, { recursive: true, force: true, maxRetries: 5 }));

const SPEC = { command: 'cat', arguments: ['/var/lib/made/told'], image: 'tools/made:1', estimateS: 0.1 };

interface Known {
  name: string;
  sizeMb: number | null;
  sites: { name: string }[];
}
interface Done {
  state: string;
  runs: { imageDigest: string | null }[];
  decisions: { nodes: { kind: string; image: Known | null }[] };
}
const dryRun = async () =>
  (
    await api.must<{ placement: { site: { name: string } | null; image: Known | null } }>(
      'query ($spec: JobInput!) { placement(spec: $spec) { site { name } image { name sizeMb sites { name } } } }',
      { spec: SPEC },
    )
  ).placement;

it.runIf(mode)('a job goes where its image lies, and the decision says so', async () => {
  // Nobody has told of it: it counts as nothing, and the faster site is chosen.
  expect(await dryRun()).toEqual({
    site: { name: 'far' },
    image: { name: 'tools/made:1', sizeMb: null, sites: [] },
  });
  const { key } = await api.user('AGENT', 'agent', site);
  const config = loadConfig({
    ...{ SWITCHYARD_HOME: join(dir, 'home'), AGENT_STATE_DIR: join(dir, 'agent'), AGENT_MACHINES: 'm-here' },
    ...{ SWITCHYARD_ISOLATION: mode, AGENT_IMAGES: join(dir, 'images'), AGENT_CGROUPS: 'false' },
  });
  // pino's own methods return nothing; these are called in the same way.
  const agent = processAgent(config, quietLog as unknown as Logger, () => ({
    url: api.url,
    key,
    site: 'here',
  }));
  await agent.start?.();
  const there = async () =>
    (
      await api.must<{ images: { nodes: { name: string; sizeMb: number; digests: string[] }[] } }>(
        'query ($site: ID) { images(siteId: $site) { nodes { name sizeMb digests } } }',
        { site },
      )
    ).images.nodes;
  await until('the image is known', async () => (await there()).length === 1);
  const [{ sizeMb } = { sizeMb: 0 }] = await there();
  expect(sizeMb).toBeGreaterThan(1);
  const known = { name: 'tools/made:1', sizeMb, sites: [{ name: 'here' }] };
  await until('it counts', async () => (await dryRun()).site?.name === 'here');
  expect((await dryRun()).image).toEqual(known);
  const { submitJobs } = await api.must<{ submitJobs: { jobIds: string[] } }>(
    'mutation ($jobs: [JobInput!]!) { submitJobs(input: { jobs: $jobs }) { jobIds } }',
    { jobs: [SPEC] },
  );
  const job = async () =>
    (
      await api.must<{ job: Done }>(
        'query ($id: ID!) { job(id: $id) { state site { name } output { text } runs { imageDigest } decisions { nodes { kind image { name sizeMb sites { name } } } } } }',
        { id: submitJobs.jobIds[0] },
      )
    ).job;
  await until('it has run', async () => (await job()).state === 'COMPLETED');
  const done = await job();
  expect(done).toMatchObject({ site: { name: 'here' }, output: { text: 'of the image\n' } });
  expect(done.decisions.nodes.find(({ kind }) => kind === 'DISPATCH')?.image).toEqual(known);
  // It was read when the run began.
  const digest = done.runs[0]?.imageDigest;
  expect(digest).toMatch(/^sha256:/);
  await until('the digest is known', async () => (await there())[0]?.digests[0] === digest);
  await agent.stop?.();
});
