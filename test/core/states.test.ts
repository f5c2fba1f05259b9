import { describe, expect, it } from 'vitest';
import {
  assertTransition,
  canTransition,
  isLive,
  isTerminal,
  jobStates,
  transitions,
} from '../../src/core/index.js';

describe('the table of states', () => {
  it('has a row for each state, and nothing leaves a terminal one', () => {
    expect(Object.keys(transitions).sort()).toEqual(['NONE', ...jobStates].sort());
    for (const state of jobStates)
      expect(Object.keys(transitions[state]).length === 0).toBe(isTerminal(state));
  });

  it('reaches an end from every state, and every state from submission', () => {
    const reach = (from: string): Set<string> => {
      const seen = new Set<string>();
      const visit = (state: string): void => {
        for (const next of Object.keys(transitions[state as 'NONE'])) {
          if (seen.has(next)) continue;
          seen.add(next);
          visit(next);
        }
      };
      visit(from);
      return seen;
    };
    expect([...reach('NONE')].sort()).toEqual([...jobStates].sort());
    for (const state of jobStates)
      expect(isTerminal(state) || [...reach(state)].some((s) => isTerminal(s as never))).toBe(true);
  });

  it('a live run begins at ASSIGNED only and is left by an end or a restart', () => {
    for (const from of jobStates) {
      for (const to of jobStates) {
        if (!canTransition(from, to)) continue;
        if (!isLive(from) && isLive(to)) expect([from, to]).toEqual(['DISPATCHED', 'ASSIGNED']);
        if (isLive(from) && !isLive(to)) expect(isTerminal(to) || to === 'QUEUED').toBe(true);
      }
    }
  });

  it('names what is accepted when it refuses', () => {
    expect(() => assertTransition('COMPLETED', 'RUNNING')).toThrow(
      'a job may not go from COMPLETED to RUNNING; accepted: nothing: it has ended',
    );
    expect(() => assertTransition(null, 'RUNNING')).toThrow(
      'a job may not go from nothing to RUNNING; accepted: QUEUED, HELD',
    );
    assertTransition('RUNNING', 'CANCELLING');
  });
});
