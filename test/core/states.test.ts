import { describe, expect, it } from 'vitest';
import {
  assertTransition,
  canTransition,
  endedStates,
  isLive,
  isTerminal,
  type JobAction,
  type JobState,
  jobActions,
  jobStates,
  liveStates,
  pendingStates,
  possible,
  stateAfter,
  transitions,
  waitingStates,
} from '../../src/core/index.js';

describe('the table of states', () => {
  it('knows which states are live, ended and waiting', () => {
    expect(liveStates).toEqual(['ASSIGNED', 'RUNNING', 'CANCELLING']);
    expect(endedStates).toEqual(['COMPLETED', 'FAILED', 'CANCELLED']);
    expect(waitingStates).toEqual(['QUEUED', 'BLOCKED', 'HELD', 'DISPATCHED']);
    // BLOCKED waits for other jobs, not for a scheduler.
    expect(pendingStates).toEqual(['QUEUED', 'DISPATCHED']);
    expect([...waitingStates, ...liveStates, ...endedStates]).toEqual(jobStates);
    for (const state of jobStates) {
      expect(isLive(state)).toBe(liveStates.includes(state));
      expect(isTerminal(state)).toBe(endedStates.includes(state));
    }
  });

  it('reaches an end from every state, and every state from submission', () => {
    const reach = (start: JobState | null): Set<JobState> => {
      const seen = new Set<JobState>();
      const visit = (state: JobState | null): void => {
        for (const { to } of transitions.filter(({ from }) => from === state)) {
          if (seen.has(to)) continue;
          seen.add(to);
          visit(to);
        }
      };
      visit(start);
      return seen;
    };
    expect([...reach(null)].sort()).toEqual([...jobStates].sort());
    for (const state of jobStates)
      expect(isTerminal(state) || [...reach(state)].some((s) => isTerminal(s))).toBe(true);
  });

  it('says in which states an action is possible, and where it leads', () => {
    const statesFor = (action: JobAction) => jobStates.filter((state) => possible(action, state));
    expect(statesFor('cancel')).toEqual(['QUEUED', 'BLOCKED', 'HELD', 'DISPATCHED']);
    expect(statesFor('stop')).toEqual(['ASSIGNED', 'RUNNING']);
    expect(statesFor('hold')).toEqual(['QUEUED', 'BLOCKED', 'DISPATCHED']);
    expect(statesFor('release')).toEqual(['HELD']);
    expect(statesFor('boost')).toEqual([...waitingStates, ...liveStates]);
    expect(statesFor('reportStart')).toEqual(['ASSIGNED', 'CANCELLING']);
    expect(statesFor('submit')).toEqual([]);
    expect(stateAfter('hold')).toBe('HELD');
    expect(stateAfter('release')).toBeNull();
  });

  it('has an end for each run, a cause for each end, and something for each action to do', () => {
    for (const { from, to, action } of transitions) {
      const { run = null, sets = [] } = jobActions[action] as { run?: string; sets?: readonly string[] };
      const was = from !== null && isLive(from);
      expect([action, run === 'BEGINS', run === 'ENDS']).toEqual([
        action,
        !was && isLive(to),
        was && !isLive(to),
      ]);
      expect([action, sets.includes('cause')]).toEqual([action, isTerminal(to)]);
    }
    for (const action of Object.keys(jobActions))
      expect([
        action,
        transitions.some((one) => one.action === action) || 'keeps' in jobActions[action as JobAction],
      ]).toEqual([action, true]);
  });

  it('a live run begins at ASSIGNED only and is left by an end or a restart', () => {
    for (const from of jobStates) {
      for (const to of jobStates) {
        if (!canTransition(from, to)) continue;
        if (!isLive(from) && isLive(to)) expect([from, to]).toEqual(['DISPATCHED', 'ASSIGNED']);
        if (isLive(from) && !isLive(to))
          expect(isTerminal(to) || ['QUEUED', 'BLOCKED', 'HELD'].includes(to)).toBe(true);
      }
    }
  });

  it('names what is accepted when it refuses', () => {
    expect(() => assertTransition('COMPLETED', 'RUNNING')).toThrow(
      'a job that is COMPLETED cannot become RUNNING: it has ended',
    );
    expect(() => assertTransition(null, 'RUNNING')).toThrow(
      'a new job cannot become RUNNING: only to QUEUED or HELD',
    );
    assertTransition('RUNNING', 'CANCELLING');
  });
});
