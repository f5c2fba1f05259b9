/** What has ended in the last hour: what is known at the start, and from then on by the news. */
import { useEffect, useRef, useState } from 'react';
import { ask } from '../../api/client';
import { useFollow } from '../../api/data';
import type { JobState } from '../../api/states.gql';
import { ENDED_STATES } from '../../api/states.gql';
import { PulseDocument } from '../../parts/pulse.gql';
import { EndedDocument } from './overview.gql';

const MINUTES = 60;
const MINUTE_MS = 60_000;
/** Jobs that are read at the start at most; of more, only the newest are shown. */
const READ_MAX = 5_000;

interface Minute {
  at: number;
  COMPLETED: number;
  FAILED: number;
  CANCELLED: number;
}

export interface Ended {
  /** Oldest first, without gaps; the last one is the present minute. */
  minutes: Minute[];
  /** Failures by cause. */
  causes: Map<string, number>;
  /** Whether it reaches back a whole hour. */
  whole: boolean;
  /** From when on all are known, ms since 1970. */
  since: number;
}

type End = { id: string; state: JobState; cause: string | null; at: number };

const ENDS: ReadonlySet<string> = new Set(ENDED_STATES);

/**
 * @param onNews called when any job has news
 */
// biome-ignore lint/complexity/noExcessiveLinesPerFunction: a module: its short functions share its state
export function useEnded(onNews: () => void): Ended | null {
  const [shown, setShown] = useState<Ended | null>(null);
  // Counted by minute, so that memory does not grow with the number of jobs.
  const counted = useRef<{
    minutes: Map<number, Minute>;
    causes: Map<number, Map<string, number>>;
    whole: boolean;
    since: number;
  }>(null);

  function add(end: End): void {
    const all = counted.current;
    if (!all) return;
    const at = Math.floor(end.at / MINUTE_MS) * MINUTE_MS;
    const minute = all.minutes.get(at) ?? { at, COMPLETED: 0, FAILED: 0, CANCELLED: 0 };
    minute[end.state as 'FAILED']++;
    all.minutes.set(at, minute);
    if (end.state !== 'FAILED') return;
    const causes = all.causes.get(at) ?? new Map<string, number>();
    causes.set(end.cause ?? 'UNKNOWN', (causes.get(end.cause ?? 'UNKNOWN') ?? 0) + 1);
    all.causes.set(at, causes);
  }

  function show(): void {
    const all = counted.current;
    if (!all) return;
    const last = Math.floor(Date.now() / MINUTE_MS) * MINUTE_MS;
    const first = last - (MINUTES - 1) * MINUTE_MS;
    for (const at of all.minutes.keys()) if (at < first) all.minutes.delete(at);
    for (const at of all.causes.keys()) if (at < first) all.causes.delete(at);
    const minutes: Minute[] = [];
    for (let at = first; at <= last; at += MINUTE_MS)
      minutes.push(all.minutes.get(at) ?? { at, COMPLETED: 0, FAILED: 0, CANCELLED: 0 });
    const causes = new Map<string, number>();
    for (const part of all.causes.values())
      for (const [cause, n] of part) causes.set(cause, (causes.get(cause) ?? 0) + n);
    setShown({ minutes, causes, whole: all.whole || all.since <= first, since: all.since });
  }

  const early = useRef<End[]>([]);
  async function load(): Promise<void> {
    counted.current = null;
    const from = Date.now() - MINUTES * MINUTE_MS;
    const { jobs } = await ask(EndedDocument, { since: new Date(from).toISOString(), first: READ_MAX });
    const whole = !jobs.pageInfo.hasNextPage;
    const oldest = jobs.nodes.at(-1)?.endedAt;
    const since = whole || !oldest ? from : Date.parse(oldest);
    counted.current = { minutes: new Map(), causes: new Map(), whole, since };
    const seen = new Set<string>();
    for (const { id, state, cause, endedAt } of jobs.nodes) {
      seen.add(id);
      add({ id, state, cause, at: Date.parse(endedAt!) });
    }
    // News that came while this was read, and are not in it.
    for (const end of early.current) if (!seen.has(end.id)) add(end);
    early.current = [];
    show();
  }
  // biome-ignore lint/correctness/useExhaustiveDependencies: once
  useEffect(() => {
    const again = (): void => void load().catch(() => undefined);
    again();
    const timer = setInterval(show, 5_000);
    return () => clearInterval(timer);
  }, []);

  useFollow(
    PulseDocument,
    'jobUpdated',
    {},
    {
      onUpdates(updates) {
        for (const { event } of updates) {
          if (!event?.toState || !ENDS.has(event.toState)) continue;
          const end = {
            id: event.objectId,
            state: event.toState,
            cause: event.cause,
            at: Date.parse(event.at),
          };
          if (counted.current) add(end);
          else early.current.push(end);
        }
        onNews();
      },
      onResync() {
        void load().catch(() => undefined);
        onNews();
      },
    },
  );
  return shown;
}
