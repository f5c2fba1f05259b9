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
  /** Of a hold that preempts: its id, by which its times belong together. Left out: no run is stopped for it. */
  stopsFor?: number;
}

type HeldChange = NonNullable<Change['held']>;

/**
 * As in the service, schedulers know of the next `known` of these holds: of each as soon as it is made and those before it have
 * begun, until it is over or canceled.
 */
export function holdsInTurn(holds: readonly KnownHold[], known: number): Change[] {
  const inTurn = [...holds].sort((a, b) => a.held.from - b.held.from || a.held.id - b.held.id);
  type Changing = { holds: Held[]; over: number[]; preempting: HeldChange['preempting'][number][] };
  const bySite = new Map<number, Map<number, Changing>>();
  const changeAt = (siteId: number, at: number) => {
    const changes = bySite.get(siteId) ?? new Map<number, Changing>();
    bySite.set(siteId, changes);
    const change = changes.get(at) ?? { holds: [], over: [], preempting: [] };
    changes.set(at, change);
    return change;
  };
  inTurn.forEach(({ siteId, held, knownFrom, knownUntil, stopsFor }, i) => {
    const from = Math.max(knownFrom, inTurn[i - known]?.held.from ?? Number.NEGATIVE_INFINITY);
    const until = Math.min(held.to, knownUntil);
    if (from >= until) return;
    const change = changeAt(siteId, from);
    change.holds.push(held);
    if (stopsFor !== undefined) change.preempting.push({ holdId: stopsFor, held });
    if (until < Infinity) changeAt(siteId, until).over.push(held.id);
  });
  return [...bySite].flatMap(([siteId, changes]) =>
    [...changes].map(([at, change]) => ({ at, held: { siteId, ...change } })),
  );
}
