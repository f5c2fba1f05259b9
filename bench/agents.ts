/** A thousand agents with ten machines each, all in the process of the load, at one service: against one agent for as many machines. */
import { Agent, SimulatedRunner } from '../src/agent/index.js';
import { type Bench, sideBySide, sized } from './measure.js';
import { Service } from './service.js';

const AGENTS = sized(1_000, 3);
const MACHINES = 10;
const JOBS = sized(10_000, 500);

const quiet = { info() {}, warn() {}, error() {} };

interface Runs {
  jobs: { nodes: { runs: { assignedAt: string; startedAt: string }[] }[] };
}

/** From the assignment to the start, as the service was told of it, ms: the median and the 99th percentile of some of a round's runs. */
async function lagMs(service: Service, group: string): Promise<[number, number]> {
  const { jobs } = await service.query<Runs>(
    'query ($group: String!) { jobs(filter: { groupName: $group }, first: 2000) { nodes { runs { assignedAt startedAt } } } }',
    { group },
  );
  const all = jobs.nodes
    .flatMap(({ runs }) => runs.map((run) => Date.parse(run.startedAt) - Date.parse(run.assignedAt)))
    .sort((a, b) => a - b);
  return [all[all.length >> 1] ?? 0, all[Math.floor(all.length * 0.99)] ?? 0];
}

export const agentsBench: Bench = {
  names: ['agents-1000'],
  async run() {
    const service = await Service.start();
    const agents: Agent[] = [];
    try {
      await service.addSite('one', AGENTS * MACHINES, 4, ['--simulate', '--speed', '1000000']);
      const key = await service.registerSite('many', AGENTS * MACHINES, 4);
      let registered = 0;
      const log = {
        ...quiet,
        info: (_: object, said: string) => void (said.includes('agent registered') && registered++),
      };
      const begun = performance.now();
      for (let i = 0; i < AGENTS; i++) {
        const names = Array.from({ length: MACHINES }, (_, j) => `m${i * MACHINES + j}`);
        const agent = new Agent({
          ...{ url: service.url, key, site: 'many', log, identity: `agent ${i}`, host: `host-${i}` },
          runner: new SimulatedRunner({ speed: 1_000_000 }),
          machines: names.map((name) => ({ name, measured: null })),
        });
        agents.push(agent);
        agent.start();
      }
      while (registered < AGENTS) await new Promise((resolve) => setTimeout(resolve, 50));
      const upS = (performance.now() - begun) / 1000;
      const job = (os: string, groupName = os) => ({ command: 'simulated', os, groupName, estimateS: 60 });
      for (const os of ['many', 'one']) await service.lives(1_000, 500, 1_000, job(os));
      const lags: string[] = [];
      const result = await sideBySide(
        {
          name: 'agents-1000',
          unit: 'jobs/s',
          aim: null,
          what: `lives of jobs at ${AGENTS} simulated agents with ${MACHINES} machines each, with their heartbeats; against one agent for all of as many`,
        },
        2,
        async (round) => {
          const group = `round ${round}`;
          const rate = await service.lives(JOBS, 500, 5_000, job('many', group));
          const [median, p99] = await lagMs(service, group);
          lags.push(`${median} ms (99 %: ${p99} ms)`);
          return rate;
        },
        () => service.lives(JOBS, 500, 5_000, job('one')),
      );
      const note = `all had registered after ${upS.toFixed(1)} s; from assignment to start ${lags.join(', ')}`;
      return [{ ...result, note }];
    } finally {
      await Promise.all(agents.map((agent) => agent.stop()));
      await service.stop();
    }
  },
};
