/** What is typed at the terminals of runs: from whoever submitted the job to the agent that runs it. */
import { MAX } from '../../platform/limits.js';
import { hearTerminals, type TerminalNews, tellTerminals } from '../../store/terminals.js';
import type { Viewer } from '../auth.js';
import { atMost, within } from '../check.js';
import { ApiError, badInput, notFound } from '../errors.js';
import type { RunInput, SendInputInput, TakenInput } from '../generated/types.js';
import { globalId, localId } from '../ids.js';
import { told } from '../subscriptions/streams.js';
import { guarded, maySeeJob, ownSite } from './access.js';
import { agentOf } from './agents.js';
import type { ServiceParts } from './parts.js';

/** So long an agent has to say that the terminal has a piece. */
const TAKEN_MS = 5_000;
/** Pieces of one job that wait for their agent, in one process. A client sends one after another. */
const WAITING_MAX = 4;
/** Pieces that wait for an agent whose connection is slow; what is more is dropped, and sent again. */
const QUEUED_MAX = 1_000;

// biome-ignore lint/complexity/noExcessiveLinesPerFunction: a module: it returns short functions that share its parts
export function createTerminalsService({ queries, feed, limits }: ServiceParts) {
  const waiting = new Map<string, Set<(taken: boolean) => void>>();
  hearTerminals(feed.words, (news) => {
    if (news.is === 'TAKEN') for (const done of waiting.get(keyOf(news)) ?? []) done(true);
  });

  /** Whether the terminal has the piece. `tell`: the agent of it. */
  async function taken(key: string, tell: () => Promise<unknown>): Promise<boolean> {
    const all = waiting.get(key) ?? new Set();
    if (all.size >= WAITING_MAX)
      throw new ApiError(
        'LIMIT_EXCEEDED',
        `input: ${all.size} pieces are waiting for the terminal; accepted: at most ${WAITING_MAX}, because a client sends the next piece when the terminal has the last one`,
      );
    waiting.set(key, all);
    let done!: (taken: boolean) => void;
    const answer = new Promise<boolean>((resolve) => {
      done = resolve;
    });
    all.add(done);
    const late = setTimeout(done, TAKEN_MS, false);
    try {
      await tell();
      return await answer;
    } finally {
      clearTimeout(late);
      all.delete(done);
      if (all.size === 0) waiting.delete(key);
    }
  }

  return guarded({
    async sendInput(viewer: Viewer, { jobId, epoch, sequence, base64, size }: SendInputInput) {
      const id = localId('job', jobId, 'jobId');
      if (sequence < 1) throw badInput('sequence', sequence, '1 or more');
      const bytes = Buffer.from(base64, 'base64');
      if (bytes.length > MAX.inputBytes)
        throw new ApiError(
          'LIMIT_EXCEEDED',
          `base64: ${bytes.length} bytes; accepted: at most ${MAX.inputBytes}`,
        );
      const sized = size
        ? {
            rows: within('size.rows', size.rows, 1, MAX.terminalSize),
            columns: within('size.columns', size.columns, 1, MAX.terminalSize),
          }
        : null;
      const run = await queries.terminalRun(id);
      if (!run || !maySeeJob(viewer, run)) throw notFound('job', jobId);
      if (run.userId !== viewer.userId)
        throw new ApiError('FORBIDDEN', 'only the user who submitted a job can type at its terminal');
      const { siteId, agentId } = run;
      if (run.terminal === null)
        throw new ApiError('CONFLICT', `${jobId} has no terminal: it takes no input`);
      if (run.state !== 'RUNNING' || run.epoch !== epoch || siteId === null || agentId === null)
        throw new ApiError('CONFLICT', `run ${epoch} of ${jobId} is not running: it takes no input`);
      // Encoded anew: what is no base64 has been left out.
      const piece = { jobId: id, epoch, sequence, base64: bytes.toString('base64'), size: sized };
      const news: TerminalNews = { is: 'INPUT', siteId, agentId, ...piece };
      return {
        taken: await taken(keyOf({ ...piece, siteId }), () => tellTerminals(feed.words, [news])),
        errors: [],
      };
    },

    async takeInput(viewer: Viewer, site: string, taken: readonly TakenInput[]): Promise<boolean> {
      const siteId = localId('site', site, 'site');
      ownSite(viewer, siteId);
      atMost('taken', taken, limits.reportsMax);
      await tellTerminals(
        feed.words,
        taken.map(({ job, epoch, sequence }, i) => {
          const jobId = localId('job', job, `taken[${i}].job`);
          return { is: 'TAKEN', siteId, jobId, epoch, sequence };
        }),
      );
      return true;
    },

    async runInput(viewer: Viewer, site: string, agent: string) {
      const siteId = localId('site', site, 'site');
      ownSite(viewer, siteId);
      const agentId = agentOf(agent);
      return told<RunInput>(
        (tell) =>
          hearTerminals(feed.words, (news) => {
            if (news.is !== 'INPUT' || news.siteId !== siteId || news.agentId !== agentId) return;
            const { jobId, epoch, sequence, base64, size } = news;
            tell({ job: globalId('job', jobId), epoch, sequence, base64, size });
          }),
        QUEUED_MAX,
        'NEWEST',
      );
    },
  });
}

/** Of a piece. That of another site's agent is none. */
const keyOf = (of: { siteId: number; jobId: number; epoch: number; sequence: number }): string =>
  `${of.siteId} ${of.jobId} ${of.epoch} ${of.sequence}`;
