/** What is held at sites, as schedulers of a simulation come to know of it. */
import type { Held } from '../core/index.js';
import type { Change } from './engine.js';

export interface KnownHold {
  siteId: number;
  held: Held;
  /** When it is made. */
  knownFrom: number;
  /** When it is canceled; Infinity: never. */
  knownUntil: number;
}

/**
 * As in the service, schedulers know of the next `known` of these holds: of each as soon as it is made and those before it have
 * begun, until it is over or canceled.
 */
export function holdsInTurn(holds: readonly KnownHold[], known: number): Change[] {
  const inTurn = [...holds].sort((a, b) => a.held.from - b.held.from || a.held.id - b.held.id);
  const bySite = new Map<number, Map<number, { holds: Held[]; over: number[] }>>();
  const changeAt = (siteId: number, at: number) => {
    const changes = bySite.get(siteId) ?? new Map<number, { holds: Held[]; over: number[] }>();
    bySite.set(siteId, changes);
    const change = changes.get(at) ?? { holds: [], over: [] };
    changes.set(at, change);
    return change;
  };
  inTurn.forEach(({ siteId, held, knownFrom, knownUntil }, i) => {
    const from = Math.max(knownFrom, inTurn[i - known]?.held.from ?? Number.NEGATIVE_INFINITY);
    const until = Math.min(held.to, knownUntil);
    if (from >= until) return;
    changeAt(siteId, from).holds.push(held);
    if (until < Infinity) changeAt(siteId, until).over.push(held.id);
  });
  return [...bySite].flatMap(([siteId, changes]) =>
    [...changes].map(([at, change]) => ({ at, held: { siteId, ...change } })),
  );
}
