/**
 * The demo: the grid and the jobs of Pasquali et al., section 5, live. 225 machines at four sites, each run by a simulated
 * agent, and a stream of jobs by three users, one of each class. Times of the paper are divided by the speed.
 */
import { Client, sleep } from '../client/index.js';
import { RandomStream } from '../core/random.js';
import { isTerminal, jobStates } from '../core/states.js';
import type { Part } from '../platform/lifecycle.js';
import type { Logger } from '../platform/log.js';
import type { Named } from './command.js';
import { submit } from './commands/submit.js';
import * as documents from './documents.gql.js';
import { makeKey, openSimulatedSite, type SimulatedMachine, type SimulatedSite } from './simulated-site.js';

/** The paper's sites; the places are ours. */
const SITES = [
  { name: 'cluster-1', machines: 120, latitude: 43.72, longitude: 10.4 },
  { name: 'cluster-2', machines: 60, latitude: 45.46, longitude: 9.19 },
  { name: 'cluster-3', machines: 30, latitude: 41.9, longitude: 12.5 },
  { name: 'cluster-4', machines: 15, latitude: 40.85, longitude: 14.27 },
];
const LICENSES = ['simulation', 'statistics', 'chemistry', 'rendering'];
const CLASSES = ['GOLD', 'SILVER', 'REGULAR'] as const;
const GROUP = 'demo';
/** Jobs that run nothing go nowhere else than to machines that run nothing. */
const PLATFORM = { os: 'simulated', architecture: 'simulated' };
const SEED = 1;
/** Mean time between two jobs, seconds of the paper: the one of its experiments that came nearest to the optimum. */
const INTERARRIVAL_S = 5;
/** The paper's jobs come faster than they can be run: no more are added while so many have not ended. */
const WAITING_MAX = 2000;
/** The stream ends for good after so many. */
const JOBS_MAX = 20_000;
const TICK_MS = 500;
/** Jobs of one tick. */
const BATCH_MAX = 200;

export interface DemoOptions {
  log: Logger;
  /** How many times as fast as in the paper. */
  speed: number;
  /** An administrator's client of the running service. */
  client: () => Client;
}

/** The demo as a part of the service's process. */
export function demoPart({ log, speed, client: connect }: DemoOptions): Part {
  const stopping = new AbortController();
  const sites: SimulatedSite[] = [];
  let users: DemoUser[] = [];
  let stream: Promise<void> | null = null;
  return {
    name: 'demo',
    async start() {
      const client = connect();
      for (const { name, machines, ...place } of SITES) {
        const drawn = (site: Named): Promise<SimulatedMachine[]> => drawMachines(client, site, machines);
        sites.push(await openSimulatedSite(client, name, drawn, { speed: 1, log, ...place }));
      }
      users = await openUsers(client);
      stream = submitStream(
        client,
        users.map((user) => user.client),
        speed,
        stopping.signal,
        log,
      );
    },
    async stop() {
      stopping.abort();
      await stream;
      for (const site of sites) await site.close();
      for (const user of users) await user.close();
    },
  };
}

/** Machines of a new site, and its pools of licenses: copies for 50 to 70 % of the machines, all of which can run them. */
async function drawMachines(client: Client, site: Named, count: number): Promise<SimulatedMachine[]> {
  const random = new RandomStream(SEED, site.name);
  const licenses: string[] = [];
  for (const kind of LICENSES) {
    const input = {
      kind,
      siteId: site.id,
      copies: Math.max(1, Math.round(count * random.uniform(0.5, 0.7))),
    };
    const data = await client.request(documents.RegisterLicenseDocument, {
      input,
    });
    licenses.push(data.createLicense.license.id);
  }
  return Array.from({ length: count }, (_, i) => {
    const cpus = random.integer(4, 32);
    return {
      name: `node-${i + 1}`,
      cpus,
      memoryMb: cpus * 4000,
      benchmark: random.integer(100, 500),
      ...PLATFORM,
      licenses,
    };
  });
}

interface DemoUser {
  client: Client;
  close(): Promise<void>;
}

/** A client for each of three users, one of each class. */
async function openUsers(client: Client): Promise<DemoUser[]> {
  const users = await client.all(documents.UsersDocument, 'users', {});
  const opened: DemoUser[] = [];
  for (const userClass of CLASSES) {
    const name = `demo-${userClass.toLowerCase()}`;
    const user =
      users.find((one) => one.name === name) ??
      (
        await client.request(documents.RegisterUserDocument, {
          input: { name, class: userClass },
        })
      ).createUser.user;
    const key = await makeKey(client, user.id, { name: 'demo' });
    opened.push({ client: new Client({ ...client.options, key: key.secret }), close: key.revoke });
  }
  return opened;
}

/** Submits what has come since the last tick, until the bound or the end. */
async function submitStream(
  client: Client,
  users: Client[],
  speed: number,
  signal: AbortSignal,
  log: Logger,
): Promise<void> {
  const random = new RandomStream(SEED, 'jobs');
  const count = async (filter: documents.JobFilter): Promise<number> =>
    (
      await client.request(documents.JobCountDocument, {
        filter: { groupName: GROUP, ...filter },
      })
    ).jobCount;
  const live = jobStates.filter((state) => !isTerminal(state));
  let nextMs = Date.now();
  while (!signal.aborted) {
    try {
      if ((await count({})) >= JOBS_MAX) {
        log.info({ jobs: JOBS_MAX }, 'the demo has submitted all its jobs');
        return;
      }
      const room = WAITING_MAX - (await count({ states: live }));
      const jobs: documents.JobInput[] = [];
      for (
        ;
        nextMs <= Date.now() && jobs.length < BATCH_MAX;
        nextMs += (random.exponential(INTERARRIVAL_S) * 1000) / speed
      ) {
        jobs.push(drawJob(random, speed));
      }
      if (jobs.length === BATCH_MAX) nextMs = Date.now();
      const user = users[random.integer(0, users.length - 1)]!;
      if (room >= jobs.length && jobs.length > 0) await submit(user, jobs, null);
    } catch (error) {
      log.warn({ error: (error as Error).message }, 'the demo could not submit jobs; trying again');
    }
    await sleep(TICK_MS, signal);
  }
}

/** A job as section 5 draws them. */
function drawJob(random: RandomStream, speed: number): documents.JobInput {
  const estimateS = random.uniform(8000, 10_000) / speed;
  const marginS = random.uniform(1500, 5500) / speed;
  const license = random.next() < 0.3 ? LICENSES[random.integer(0, LICENSES.length - 1)] : null;
  const hasDeadline = random.next() >= 0.3;
  return {
    command: 'simulated',
    application: license ?? 'plain',
    groupName: GROUP,
    cpusPerTask: random.integer(4, 32),
    licenses: license ? [license] : [],
    estimateS,
    benchmark: random.integer(100, 500),
    ...(hasDeadline && { deadline: new Date(Date.now() + (estimateS + marginS) * 1000).toISOString() }),
    ...PLATFORM,
  };
}
