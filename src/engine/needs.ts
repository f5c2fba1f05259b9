/** Decides for jobs that wait for others behind the events of those, and for jobs that wait for a time when it comes. */

import { ROOT } from '../core/scheduler.js';
import { endedStates } from '../core/states.js';
import type { EventFilter, NeedsNews, Store } from '../store/store.js';
import type { Following } from './follower.js';
import type { EngineLog, Wake } from './ports.js';

/** Between two looks at what is due, seconds. */
const DUE_EVERY_S = 0.5;

export function needsFollowing(parts: {
  store: Pick<Store, 'settleNeeds'>;
  wake: Wake;
  log: EngineLog;
  /** Epoch seconds. */
  now(): number;
}): Following {
  const { store, wake, log, now } = parts;
  let lookedAt = Number.NEGATIVE_INFINITY;

  async function settle(about: NeedsNews): Promise<void> {
    const outcome = await store.settleNeeds(about, now());
    if (outcome.queued > 0) await wake([ROOT]);
    if (outcome.queued + outcome.cancelled + outcome.held > 0)
      log.debug({ ...outcome }, 'dependencies of waiting jobs were updated');
  }

  return {
    name: 'needs',
    wants: () => DECIDES,
    take: (events) => settle([...new Set(events.map(({ entityId }) => entityId))]),
    startOver: () => settle('ALL'),
    async tick() {
      // A clock that was set back does not stop it.
      if (Math.abs(now() - lookedAt) < DUE_EVERY_S) return;
      lookedAt = now();
      await settle('DUE');
    },
  };
}

/** What can decide what somebody needs: a start, an end, or that somebody begins to need something, or something else. */
const DECIDES: EventFilter = { states: ['BLOCKED', 'RUNNING', ...endedStates] };
