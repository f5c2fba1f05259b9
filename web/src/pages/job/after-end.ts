import { useEffect, useState } from 'react';

const SOON_MS = 2_000;
const SOON_FOR_MS = 30_000;
const LATER_MS = 15_000;

/**
 * How often to ask again about a job that has ended: what its agent tells after the end (transfers, the last of the output,
 * measured values, files) is no news of the job's state. Mostly it comes at once, and late from an agent that was away.
 */
export function useAskAfterEnd(ended: boolean): { everyMs?: number } {
  const [soon, setSoon] = useState(true);
  useEffect(() => {
    if (!ended) return;
    setSoon(true);
    const timer = setTimeout(() => setSoon(false), SOON_FOR_MS);
    return () => clearTimeout(timer);
  }, [ended]);
  return ended ? { everyMs: soon ? SOON_MS : LATER_MS } : {};
}
