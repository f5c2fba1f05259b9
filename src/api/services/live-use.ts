/**
 * What runs use while they go on. Agents know it and tell it when somebody looks, so runs at which nobody looks cost nothing: who is asked says so
 * to all API processes, those to which agents of the site listen pass the question on, and what the agents answer comes back the same way.
 */
import { randomUUID } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { MAX } from '../../platform/limits.js';
import { WORD_BYTES_MAX } from '../../store/constants.js';
import type { JobRow, RunRow } from '../../store/rows.js';
import { hasTasks } from '../../store/tasks.js';
import type { Viewer } from '../auth.js';
import { atMost, within } from '../check.js';
import { badInput } from '../errors.js';
import type { LiveUse, ReportUseInput, ReportUsePayload, RunUseInput, UseAsked } from '../generated/types.js';
import { globalId, localId } from '../ids.js';
import { told } from '../subscriptions/streams.js';
import { guarded, ownSite } from './access.js';
import type { ServiceParts } from './parts.js';

/** What has not been answered then is not known. */
const ANSWER_MS = 1_000;
/** Who looks again so soon is told the same. */
const FRESH_MS = 1_000;
/** Runs that are asked for at once; of more it is not known. */
const ASKED_MAX = 1_000;
/** Questions that wait for an agent that does not take them. */
const WAITING_MAX = 100;

type RunKey = readonly [jobId: number, epoch: number];
type Answer = readonly [...RunKey, tasks: number, cpuS: number | null, peakMemoryMb: number | null];

/** What processes say. */
type Word =
  | { ask: string; siteId: number; runs: readonly RunKey[] }
  | { answer: string; siteId: number; agent: string; uses: readonly Answer[] };

/** A run that is asked for. */
interface Asked {
  run: RunKey;
  siteId: number;
  /** That have to be told of. */
  tasks: number;
  /** By agent: each tells of its own tasks. */
  answers: Map<string, Answer>;
  resolve(use: LiveUse | null): void;
}

const keyOf = ([jobId, epoch]: RunKey): string => `${jobId}/${epoch}`;

/** The questions of this process. */
class Questions {
  private readonly fresh = new LRUCache<string, Promise<LiveUse | null>>({ max: ASKED_MAX, ttl: FRESH_MS });
  private unasked: Asked[] = [];
  /** By question, the runs of which something is not known yet, by key. */
  private readonly open = new Map<string, Map<string, Asked>>();
  /** Runs in all of them. */
  private asked = 0;

  constructor(private readonly say: (word: Word) => Promise<unknown>) {}

  of(run: RunKey, siteId: number, tasks: number): Promise<LiveUse | null> {
    const key = keyOf(run);
    const known = this.fresh.get(key);
    if (known !== undefined) return known;
    if (this.asked >= ASKED_MAX) return Promise.resolve(null);
    this.asked++;
    if (this.unasked.length === 0) setImmediate(() => this.askAll());
    const use = new Promise<LiveUse | null>((resolve) => {
      this.unasked.push({ run, siteId, tasks, answers: new Map(), resolve });
    });
    this.fresh.set(key, use);
    return use;
  }

  take({ answer, siteId, agent, uses }: Extract<Word, { answer: string }>): void {
    const runs = this.open.get(answer);
    for (const use of uses) {
      const one = runs?.get(keyOf([use[0], use[1]]));
      if (one === undefined || one.siteId !== siteId) continue;
      one.answers.set(agent, use);
      const all = [...one.answers.values()];
      if (all.reduce((sum, [, , tasks]) => sum + tasks, 0) < one.tasks) continue;
      runs?.delete(keyOf(one.run));
      one.resolve(together(all));
    }
  }

  /** Asks for all that has come up in this turn. */
  private askAll(): void {
    const bySite = new Map<number, Asked[]>();
    for (const one of this.unasked) {
      const ofSite = bySite.get(one.siteId) ?? [];
      ofSite.push(one);
      bySite.set(one.siteId, ofSite);
    }
    this.unasked = [];
    for (const [siteId, runs] of bySite)
      for (let from = 0; from < runs.length; from += MAX.usesAsked)
        this.ask(siteId, runs.slice(from, from + MAX.usesAsked));
  }

  private ask(siteId: number, all: readonly Asked[]): void {
    const ask = randomUUID();
    const runs = new Map(all.map((one) => [keyOf(one.run), one]));
    this.open.set(ask, runs);
    const late = (): void => {
      this.open.delete(ask);
      this.asked -= all.length;
      for (const one of runs.values()) one.resolve(null);
    };
    setTimeout(late, ANSWER_MS).unref();
    void this.say({ ask, siteId, runs: all.map(({ run }) => run) });
  }
}

/** What the tasks of a run use together: as when it has ended (store/usage.ts). */
function together(answers: readonly Answer[]): LiveUse {
  const joined = (values: (number | null)[], join: (values: number[]) => number): number | null =>
    values.includes(null) ? null : join(values as number[]);
  return {
    cpuS: joined(
      answers.map(([, , , cpuS]) => cpuS),
      (values) => values.reduce((sum, value) => sum + value, 0),
    ),
    peakMemoryMb: joined(
      answers.map(([, , , , peak]) => peak),
      (values) => Math.max(...values),
    ),
  };
}

/** Those who pass questions on to the agents of sites. */
class Listeners {
  private readonly all = new Set<{ siteId: number; take(question: UseAsked): void }>();

  tell({ ask, siteId, runs }: Extract<Word, { ask: string }>): void {
    const named = runs.map(([jobId, epoch]) => ({ job: globalId('job', jobId), epoch }));
    for (const one of this.all) if (one.siteId === siteId) one.take({ question: ask, runs: named });
  }

  follow(siteId: number): AsyncGenerator<UseAsked, void, void> {
    return told(
      (take) => {
        const listener = { siteId, take };
        this.all.add(listener);
        return () => void this.all.delete(listener);
      },
      WAITING_MAX,
      // Who asked it has been told by now that it is not known.
      'OLDEST',
    );
  }
}

export function createLiveUseService({ feed }: ServiceParts) {
  const say = (word: Word): Promise<boolean> => feed.words.say(word);
  const questions = new Questions(say);
  const listeners = new Listeners();
  feed.words.hear((word: Word | object) => {
    if ('ask' in word) listeners.tell(word as Extract<Word, { ask: string }>);
    // Of a later release there may be more.
    else if ('answer' in word) questions.take(word as Extract<Word, { answer: string }>);
  });

  return {
    /** What a run uses, as its agents tell it within a second; null: that is not known, or it does not go on. */
    liveUseOf(run: RunRow, job: JobRow): Promise<LiveUse | null> {
      if (run.startedAt === null || run.endedAt !== null || run.placedBy !== 'SERVICE')
        return Promise.resolve(null);
      return questions.of([run.jobId, run.epoch], run.siteId, hasTasks(job) ? job.tasks : 1);
    },

    ...guarded({
      useAsked(viewer: Viewer, site: string): AsyncGenerator<UseAsked, void, void> {
        const siteId = localId('site', site, 'siteId');
        ownSite(viewer, siteId);
        return listeners.follow(siteId);
      },

      async reportUse(viewer: Viewer, input: ReportUseInput): Promise<ReportUsePayload> {
        const siteId = localId('site', input.siteId, 'siteId');
        ownSite(viewer, siteId);
        const { question: answer, uses } = input;
        atMost('uses', uses, MAX.usesAsked);
        if (answer.length > 36) throw badInput('question', answer.slice(0, 36), 'that of useAsked');
        const agent = String(localId('agent', input.agentId, 'agentId'));
        const word: Word = { answer, siteId, agent, uses: uses.map(answerOf) };
        if (Buffer.byteLength(JSON.stringify(word)) <= WORD_BYTES_MAX) await say(word);
        return {};
      },
    }),
  };
}

function answerOf({ job, epoch, tasks, cpuS, peakMemoryMb }: RunUseInput, i: number): Answer {
  const field = (name: string): string => `uses[${i}].${name}`;
  const amount = (name: string, value: number | null | undefined, max: number): number | null =>
    value === null || value === undefined ? null : hundredths(within(field(name), value, 0, max));
  return [
    localId('job', job, field('job')),
    within(field('epoch'), epoch, 1, MAX.integer),
    within(field('tasks'), tasks, 1, MAX.tasks),
    amount('cpuS', cpuS, MAX.reportedSeconds),
    amount('peakMemoryMb', peakMemoryMb, MAX.reportedMb),
  ];
}

/** Fewer digits: what is said at once is bounded. */
const hundredths = (value: number): number => Math.round(value * 100) / 100;
