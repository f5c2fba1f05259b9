/** What a job uses while it runs: its agent measures that when somebody looks. */
import { useEffect, useState } from 'react';
import { ask } from '../../api/client';
import { JobUseDocument, type JobUseQuery } from './job.gql';
import type { Job } from './shown';

export type LiveUse = NonNullable<NonNullable<JobUseQuery['job']>['runs'][number]['liveUse']>;

const ASK_MS = 5_000;

/** Of its latest run, asked while that goes on and the page is visible; null: it does not go on, or its agent cannot tell. */
export function useLiveUse({ id, runs }: Job): LiveUse | null {
  const [use, setUse] = useState<LiveUse | null>(null);
  const run = runs.at(-1);
  const epoch = run?.startedAt && run.endedAt === null ? run.epoch : null;
  useEffect(() => {
    if (epoch === null) return;
    const stop = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const look = async (): Promise<void> => {
      if (!document.hidden) {
        // Past the cache: the answer takes a second, and the page may know of another run by then.
        const answer = await ask(JobUseDocument, { id }, stop.signal).catch(() => null);
        if (stop.signal.aborted) return;
        setUse(answer?.job?.runs.find((one) => one.epoch === epoch)?.liveUse ?? null);
      }
      timer = setTimeout(look, ASK_MS);
    };
    void look();
    return () => {
      stop.abort();
      clearTimeout(timer);
      setUse(null);
    };
  }, [id, epoch]);
  return use;
}
