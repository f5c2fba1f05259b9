/** Plays histories: what the tests, `npm run test:sim` and `npm run test:mutants` (scripts/sim.mjs) have in common. */
import { deepStrictEqual } from 'node:assert';
import * as fc from 'fast-check';
import type { Forward } from '../../src/core/grid-tree/index.js';
import { DEEDS, type Deed, DISPATCH_KINDS, type History, LOCAL_KINDS } from './history.js';
import { Simulation } from './simulation.js';

const chance = fc.constantFrom(0, 0, 0.05, 0.3);
const duration = fc.oneof(fc.nat(2_000), fc.nat(20_000), fc.nat(90_000)).map((ms) => ms + 1);

/**
 * Each history has deeds of some places only (swarm testing: Groce et al., ISSTA 2012): what needs the same few again and again is met
 * more often in this way than where all are drawn. Every third is a submission.
 */
export const historiesOf = (peers: boolean): fc.Arbitrary<History> =>
  fc
    .record({
      seed: fc.nat(1_000_000),
      services: peers ? fc.constantFrom(1, 1, 1, 2, 2, 3) : fc.constant(1),
      forward: fc.constantFrom<Forward>('ALWAYS', 'WHEN_NEEDED', 'WHEN_CHEAPER'),
      dispatch: fc.constantFrom(...DISPATCH_KINDS),
      local: fc.constantFrom(...LOCAL_KINDS),
      queue: fc.record({ lost: chance, doubled: chance, delayed: chance }),
      wires: fc.record({
        cut: fc.constantFrom(0, 0, 0.02, 0.2),
        lostAnswer: fc.constantFrom(0, 0, 0.02, 0.2),
        repeated: fc.constantFrom(0, 0.05, 0.5),
      }),
      disks: fc.constantFrom([1], [0, 1, 2, 3]),
      places: fc.subarray(
        Object.entries(DEEDS).flatMap(([place, kinds]) => (peers || place !== 'peers' ? [kinds] : [])),
        { minLength: 1 },
      ),
      deeds: fc.array(
        fc.record({
          afterMs: fc.nat(15_000),
          kind: fc.nat(1_000_000),
          n: fc.nat(1_000_000),
          ms: duration,
        }),
        { minLength: 1, maxLength: 45, size: 'max' },
      ),
      lastMs: fc.constantFrom(0, 60_000),
    })
    .map(({ places, deeds, ...rest }) => {
      const kinds = places.flat();
      const kindOf = (n: number): Deed['kind'] =>
        n % 3 === 0 ? 'submit' : (kinds[Math.floor(n / 3) % kinds.length] as Deed['kind']);
      return { ...rest, deeds: deeds.map((deed) => ({ ...deed, kind: kindOf(deed.kind) })) };
    });

/** Of one service, or of several that are peers. */
export const histories = historiesOf(true);

/** What shrinks further takes too long, ms. */
const SHRINK_MS = 120_000;

/** What of the promises a history breaks; null: nothing. */
export const broken = (history: History): Promise<string | null> => new Simulation(history).run();

/** A history breaks a promise. */
export class Broken extends Error {
  constructor(
    readonly what: string,
    /** Which one it was of those that were played, from 1. */
    readonly history: number,
    shortest: string,
  ) {
    super(`${what}\n${shortest}`);
  }
}

/**
 * Plays so many histories.
 *
 * @throws Broken when one of them breaks something; `shrink`: with the shortest history that breaks the same
 */
export async function play({
  seed,
  seeds,
  shrink,
  peers = true,
}: {
  seed: number;
  seeds: number;
  shrink: boolean;
  /** Whether services have peers. */
  peers?: boolean;
}): Promise<void> {
  const holds = (promise: string) =>
    fc.asyncProperty(historiesOf(peers), async (history) => {
      const what = await broken(history);
      if (what?.startsWith(promise)) throw new Error(what);
    });
  const first = await fc.check(holds(''), { seed, numRuns: seeds, endOnFailure: true });
  if (!first.failed) return;
  const what = (first.errorInstance as Error).message;
  const again = { seed, path: first.counterexamplePath ?? '', numRuns: 1 };
  const limits = { interruptAfterTimeLimit: SHRINK_MS, markInterruptAsFailure: true };
  const shortest = shrink
    ? await fc.check(holds(what.split(':')[0] as string), { ...again, ...limits })
    : first;
  throw new Broken(what, first.numRuns, fc.defaultReportMessage(shortest) ?? '');
}

/**
 * Plays some histories twice.
 *
 * @throws Broken when that makes a difference
 */
export async function playTwice(seed: number, times: number): Promise<void> {
  for (const [i, history] of fc.sample(histories, { seed, numRuns: times }).entries()) {
    const [one, other] = [new Simulation(history), new Simulation(history)];
    await one.run();
    await other.run();
    try {
      const happened = ({ time, services }: Simulation) => [
        time.now,
        services.map(({ store }) => store.events),
      ];
      deepStrictEqual(happened(other), happened(one));
    } catch (error) {
      throw new Broken('5: the same history makes something else', i + 1, (error as Error).message);
    }
  }
}
