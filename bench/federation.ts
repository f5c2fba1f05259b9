/** Jobs that a peer runs: two services, each with a PostgreSQL and a process of its own. */
import { type Bench, sideBySide, sized } from './measure.js';
import { Service } from './service.js';

const JOBS = sized(1_000, 20);
const BATCH = JOBS / 2;

export const federationBench: Bench = {
  names: ['forward-1000'],
  async run() {
    const [home, peer] = [await Service.start(), await Service.start()];
    try {
      await peer.addSite('simulated', 50, 64, ['--simulate', '--speed', '1000000']);
      const federate = async (at: Service, input: object) =>
        at.query<{ setPeer: { secret: string } }>(
          'mutation ($input: SetPeerInput!) { setPeer(input: $input) { secret } }',
          { input },
        );
      const { secret: key } = (await federate(home, { name: 'peer', forward: 'ALWAYS' })).setPeer;
      await federate(peer, { name: 'home', url: home.url, key, foreignMax: 10_000 });
      const job = { command: 'simulated', os: 'simulated', estimateS: 60 };
      for (const service of [peer, home]) await service.lives(JOBS, BATCH, JOBS, job);
      return [
        await sideBySide(
          {
            name: 'forward-1000',
            unit: 'jobs/s',
            aim: null,
            what: 'lives of 1 000 jobs that a peer runs, submitted at their owner until it knows the last end, simulated machines; against the same submitted at the peer itself',
          },
          3,
          () => home.lives(JOBS, BATCH, JOBS, job),
          () => peer.lives(JOBS, BATCH, JOBS, job),
        ),
      ];
    } finally {
      await Promise.all([home.stop(), peer.stop()]);
    }
  },
};
