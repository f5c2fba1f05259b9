/** An image that lies at a site, or was fetched there, brings jobs there: from the agent that has it to the decisions of the scheduler. */
import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { processAgent } from '../../src/cli/agents.js';
import { loadConfig } from '../../src/platform/config.js';
import type { Logger } from '../../src/platform/log.js';
import { withApi } from '../api/support/api.js';
import { withEngine } from '../api/support/engine.js';
import { run } from '../cli/service.js';
import { quietLog, until } from '../engine/support.js';
import { makeImage, runsImages } from '../support/image.js';
import { hasRegistry, type Registry, startRegistry } from '../support/registry.js';

const mode = (['sandbox', 'user'] as const).find((one) => runsImages(one));
if (!mode) it.skip('an image that lies at a site brings jobs there: it takes bubblewrap');

const api = withApi();
withEngine(api);
let dir = '';
let site = '';
let registry: Registry | null = null;
beforeAll(async () => {
  dir = mkdtempSync(join(tmpdir(), 'switchyard-near-'));
  chmodSync(dir, 0o755);
  makeImage(join(dir, 'images'), 'tools/made:1');
  if (hasRegistry && mode) registry = await startRegistry(false, 'made');
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
afterAll(() => {
  registry?.close();
  rmSync(dir, { recursive: true, force: true, maxRetries: 5 });
});

/** Named otherwise than by its directory. */
const IMAGE = 'docker.io/tools/made:1';
const SPEC = { command: 'cat', arguments: ['/var/lib/made/told'], image: IMAGE, estimateS: 0.1 };

interface Known {
  name: string;
  sizeMb: number | null;
  sites: { name: string }[];
}
interface Done {
  state: string;
  message: string | null;
  runs: { imageDigest: string | null }[];
  decisions: { nodes: { kind: string; image: Known | null }[] };
}
const dryRun = async (spec: object = SPEC) =>
  (
    await api.must<{ placement: { site: { name: string } | null; image: Known | null } }>(
      'query ($spec: JobInput!) { placement(spec: $spec) { site { name } image { name sizeMb sites { name } } } }',
      { spec },
    )
  ).placement;
async function submitted(spec: object): Promise<string> {
  const { submitJobs } = await api.must<{ submitJobs: { jobIds: [string] } }>(
    'mutation ($jobs: [JobInput!]!) { submitJobs(input: { jobs: $jobs }) { jobIds } }',
    { jobs: [spec] },
  );
  return submitJobs.jobIds[0];
}
const jobOf = async (id: string) =>
  (
    await api.must<{ job: Done }>(
      'query ($id: ID!) { job(id: $id) { state message site { name } output { text } runs { imageDigest } decisions { nodes { kind image { name sizeMb sites { name } } } } } }',
      { id },
    )
  ).job;
const there = async () =>
  (
    await api.must<{ images: { nodes: { name: string; sizeMb: number; digests: string[] }[] } }>(
      'query ($site: ID) { images(siteId: $site) { nodes { name sizeMb digests } } }',
      { site },
    )
  ).images.nodes;
/** pino's own methods return nothing; these are called in the same way. */
const log = quietLog as unknown as Logger;

it.runIf(mode)('a job goes where its image lies, or was fetched, and the decision says so', async () => {
  // Nobody has told of it: it counts as nothing, and the faster site is chosen.
  expect(await dryRun()).toEqual({ site: { name: 'far' }, image: { name: IMAGE, sizeMb: null, sites: [] } });
  const { key } = await api.user('AGENT', 'agent', site);
  const config = loadConfig({
    ...{ SWITCHYARD_HOME: join(dir, 'home'), AGENT_STATE_DIR: join(dir, 'agent'), AGENT_MACHINES: 'm-here' },
    ...{ SWITCHYARD_ISOLATION: mode, AGENT_IMAGES: join(dir, 'images'), AGENT_CGROUPS: 'false' },
    ...(registry && { AGENT_IMAGE_REGISTRIES: registry.host, AGENT_IMAGE_TOOLS: 'podman' }),
  });
  const agent = processAgent(config, log, () => ({ url: api.url, key, site: 'here' }));
  await agent.start?.();
  await until('the image is known', async () => (await there()).length === 1);
  const [{ name, sizeMb } = { name: '', sizeMb: 0 }] = await there();
  expect(name).toBe('docker.io/tools/made:1');
  expect(sizeMb).toBeGreaterThan(1);
  const known = { name: IMAGE, sizeMb, sites: [{ name: 'here' }] };
  await until('it counts', async () => (await dryRun()).site?.name === 'here');
  expect((await dryRun()).image).toEqual(known);
  const id = await submitted(SPEC);
  await until('it has run', async () => (await jobOf(id)).state === 'COMPLETED');
  const done = await jobOf(id);
  expect(done).toMatchObject({ site: { name: 'here' }, output: { text: 'of the image\n' } });
  expect(done.decisions.nodes.find(({ kind }) => kind === 'DISPATCH')?.image).toEqual(known);
  // It was read when the run began.
  const digest = done.runs[0]?.imageDigest;
  expect(digest).toMatch(/^sha256:/);
  await until('the digest is known', async () => (await there())[0]?.digests[0] === digest);
  if (registry) await fetchedHere(registry);
  await agent.stop?.();
});

/** The first job of an image can only run here, and has it fetched; the next, which names it otherwise, finds it. */
async function fetchedHere({ host, digest, requests }: Registry): Promise<void> {
  const spec = { command: 'cat', arguments: ['/etc/told'], image: `${host}/made`, estimateS: 0.1 };
  expect((await dryRun(spec)).site?.name).toBe('far');
  const first = await submitted({ ...spec, machineConstraint: 'site = here' });
  await until('the first has run', async () => (await jobOf(first)).state === 'COMPLETED');
  const name = `${host}/made:latest`;
  const fetched = async () => (await there()).find((one) => one.name === name);
  await until('it is reported', async () => (await fetched()) !== undefined);
  expect(await fetched()).toMatchObject({ digests: [digest] });
  await until('it counts', async () => (await dryRun({ ...spec, image: name })).site?.name === 'here');

  const before = requests();
  const second = await submitted({ ...spec, image: name });
  await until('the second has run', async () => (await jobOf(second)).state === 'COMPLETED');
  expect(await jobOf(second)).toMatchObject({
    site: { name: 'here' },
    output: { text: 'of the registry\n' },
  });
  expect(requests()).toBe(before);
  const why = await run(['why', second], { SWITCHYARD_URL: api.url, SWITCHYARD_KEY: api.adminKey });
  expect(why.stdout).toMatch(new RegExp(`^its image ${name}: [\\d.]+ MB, at here$`, 'm'));
}
