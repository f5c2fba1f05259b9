/** A service with this machine as a site and a site of simulated machines beside it, as processes. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, onTestFinished } from 'vitest';
import { openSimulatedSite, type SimulatedSite } from '../../src/cli/simulated-site.js';
import { Client } from '../../src/client/index.js';
import { endAll, type Service, serve } from '../cli/service.js';

export const SIMULATED = { os: 'simulated', architecture: 'simulated' };

export interface Grid {
  /** `http://host:port`. */
  readonly origin: string;
  readonly adminKey: string;
  readonly home: string;
  readonly service: Service;
  /** Id of the simulated site `north`, 4 machines with 8 CPUs each. */
  readonly north: string;
  ask<T>(query: string, variables?: object): Promise<T>;
  /** A new user with a key. */
  user(name: string, role: string): Promise<{ id: string; key: string; keyId: string }>;
  submit(...jobs: object[]): Promise<string[]>;
  /** Until the test has ended, these parts of the policy are others. */
  decideBy(parts: object): Promise<void>;
}

/** @param environment of the service */
export function withGrid(environment: () => Promise<Record<string, string>> = async () => ({})): Grid {
  const home = mkdtempSync(join(tmpdir(), 'switchyard-web-'));
  let service: Service;
  let client: Client;
  let site: SimulatedSite;
  let adminKey = '';
  beforeAll(async () => {
    service = await serve(home, [], '0', await environment());
    adminKey = readFileSync(join(home, 'admin.key'), 'utf8').trim();
    client = new Client({ url: service.url, key: adminKey });
    site = await openSimulatedSite(
      client,
      'north',
      () =>
        Array.from({ length: 4 }, (_, i) => ({
          name: `node-${i + 1}`,
          cpus: 8,
          memoryMb: 32_000,
          benchmark: 100,
          ...SIMULATED,
        })),
      { speed: 1, latitude: 59.3, longitude: 18.1 },
    );
  });
  afterAll(async () => {
    await site?.close();
    await endAll();
    rmSync(home, { recursive: true, force: true });
  });
  const self: Grid = {
    get origin() {
      return new URL(service.url).origin;
    },
    get adminKey() {
      return adminKey;
    },
    home,
    get service() {
      return service;
    },
    get north() {
      return site.id;
    },
    ask: (query, variables = {}) => client.request(query, variables),
    async user(name, role) {
      const { createUser } = await self.ask<{ createUser: { user: { id: string } } }>(
        'mutation ($input: CreateUserInput!) { createUser(input: $input) { user { id } } }',
        { input: { name, role } },
      );
      const { createApiKey } = await self.ask<{ createApiKey: { secret: string; apiKey: { id: string } } }>(
        'mutation ($input: CreateApiKeyInput!) { createApiKey(input: $input) { secret apiKey { id } } }',
        { input: { userId: createUser.user.id, name: 'test' } },
      );
      return { id: createUser.user.id, key: createApiKey.secret, keyId: createApiKey.apiKey.id };
    },
    async submit(...jobs) {
      const { submitJobs } = await self.ask<{
        submitJobs: { jobIds: string[]; errors: { message: string }[] };
      }>(
        'mutation ($jobs: [JobInput!]!) { submitJobs(input: { jobs: $jobs, allowUnfit: true }) { jobIds errors { message } } }',
        { jobs },
      );
      if (submitJobs.errors[0]) throw new Error(submitJobs.errors[0].message);
      return submitJobs.jobIds;
    },
    async decideBy(parts) {
      const change = async (into: (document: object) => object): Promise<object> => {
        const { policy } = await self.ask<{ policy: { version: number; document: object } }>(
          '{ policy { version document } }',
        );
        await self.ask(
          'mutation ($input: UpdatePolicyInput!) { updatePolicy(input: $input) { policy { version } } }',
          {
            input: { expectedVersion: policy.version, reason: 'a test', document: into(policy.document) },
          },
        );
        return policy.document;
      };
      const before = await change((document) => ({ ...document, ...parts }));
      onTestFinished(async () => {
        await change(() => before);
      });
    },
  };
  return self;
}
