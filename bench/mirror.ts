/**
 * What a worker keeps in memory of a million jobs that wait at a site, as `million-queued` makes them: the aim of the design. Against the
 * same jobs alone, with all of their fields.
 */
import { QueuedWork } from '../src/core/dispatch/two-level/queued-work.js';
import { DEFAULT_POLICY } from '../src/core/index.js';
import { type Job, plainJob } from '../src/core/model.js';
import { countedWorld } from '../src/simulator/sites.js';
import { Mirror } from '../src/store/mirror.js';
import type { GridImage } from '../src/store/store.js';
import { type Bench, megabytesOf, sideBySide, sized } from './measure.js';

const JOBS = sized(1_000_000, 2_000);
const ROUNDS = 3;
const T0 = 1_790_000_000;

const queuedJob = (i: number): Job =>
  plainJob({
    ...{ id: i + 1, submittedAt: T0 + i / 997, estimateS: 60 + (i % 1000), benchmark: 100 },
    ...{ application: `app-${i % 10}`, groupId: -(i + 1), priority: i % 101, dispatchedAt: T0 + i / 991 },
  });

/** A store with these jobs and one site, and nothing that happens. */
function storeOf(jobs: number): ConstructorParameters<typeof Mirror>[0] {
  const { sites, machines } = countedWorld([{ id: 1, name: 'site', processors: 2 }]);
  const nothing = { licenses: [], schedulers: [], holds: [], margins: [], reservations: [], datasets: [] };
  const known = { ...nothing, links: [], images: [], quotas: [], totals: [], traffic: [] };
  const policy = { version: 1, document: DEFAULT_POLICY };
  return {
    async loadGrid(_, keep = (job) => job): Promise<GridImage> {
      const images = Array.from({ length: jobs }, (_, i) => ({
        ...{ job: keep(queuedJob(i)), state: 'DISPATCHED' as const, siteId: 1, run: null },
      }));
      return { ...known, cursor: '0', policy, sites: [...sites], machines: [...machines], jobs: images };
    },
    changesSince: () => Promise.reject(new Error('nothing happens here')),
    reservations: async () => [],
    checkpointsAt: async () => [],
  };
}

/** With what the policies by default have of its queue. */
async function mirrored(): Promise<Mirror> {
  const mirror = new Mirror(storeOf(JOBS));
  await mirror.sync();
  mirror.grid.index(QueuedWork);
  mirror.grid.siteEntry(1).queue.inOrder('PRIORITY');
  return mirror;
}

export const mirrorBench: Bench = {
  names: ['mirror-million'],
  async run() {
    return [
      await sideBySide(
        {
          name: 'mirror-million',
          unit: 'MB',
          aim: { value: 300 },
          what: `memory of a worker's mirror with ${JOBS} queued jobs; against the jobs alone, as objects with all of their fields`,
        },
        ROUNDS,
        () => megabytesOf(mirrored),
        () => megabytesOf(() => Array.from({ length: JOBS }, (_, i) => queuedJob(i))),
      ),
    ];
  },
};
