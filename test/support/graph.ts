/** Jobs that need one another, of random shapes, and what becomes of them. */
import type { RandomStream } from '../../src/core/index.js';

const CONDITIONS = ['START', 'OK', 'OK', 'NOT_OK', 'ANY'] as const;

export interface Term {
  /** Place of a job before it. */
  on: number;
  condition: (typeof CONDITIONS)[number];
}

export interface Shape {
  onUnmet: 'RUN' | 'CANCEL';
  /** Its command, if it runs. */
  fails: boolean;
  clauses: { expression: 'ANY' | 'ALL'; of: Term[] }[];
}

/** The first needs nobody. */
export function drawGraph(random: RandomStream, count: number): Shape[] {
  const draw = (n: number): number => random.integer(0, n - 1);
  const times = <T>(n: number, make: () => T): T[] => Array.from({ length: n }, make);
  return Array.from({ length: count }, (_, i) => ({
    onUnmet: draw(3) === 0 ? 'RUN' : 'CANCEL',
    fails: draw(4) === 0,
    clauses: times(i === 0 ? 0 : draw(3), () => ({
      expression: draw(2) === 0 ? 'ANY' : 'ALL',
      of: times(1 + draw(3), () => ({
        on: Math.max(0, i - 1 - draw(20)),
        condition: CONDITIONS[draw(CONDITIONS.length)] as Term['condition'],
      })),
    })),
  }));
}

/** As they are submitted, each with a `ref`. */
export const asSubmitted = (shapes: readonly Shape[]) =>
  shapes.map(({ onUnmet, clauses }, i) => ({
    ...{ ref: `r${i}`, onUnmet },
    needs: clauses.map(({ expression, of }) => ({
      expression,
      of: of.map(({ on, condition }) => ({ ref: `r${on}`, condition })),
    })),
  }));

export type State = 'COMPLETED' | 'FAILED' | 'CANCELLED';

export interface End {
  state: State;
  /** What it needs has come. */
  met: boolean;
}

/** Each job needs earlier ones only: what becomes of it follows from theirs. */
export function endsOf(shapes: readonly Shape[]): End[] {
  const ends: End[] = [];
  for (const { onUnmet, fails, clauses } of shapes) {
    const holds = (term: Term): boolean => isMet(term, ends);
    const met = clauses.every(({ expression, of }) =>
      expression === 'ALL' ? of.every(holds) : of.some(holds),
    );
    ends.push({ met, state: met || onUnmet === 'RUN' ? (fails ? 'FAILED' : 'COMPLETED') : 'CANCELLED' });
  }
  return ends;
}

function isMet({ on, condition }: Term, ends: readonly End[]): boolean {
  const { state } = ends[on] as End;
  if (condition === 'START') return state !== 'CANCELLED';
  return condition === 'ANY' || (state === 'COMPLETED') === (condition === 'OK');
}

/** From when a job of which all that it needs has come could run: `at` tells when a job began, or ended. */
export const couldRunFrom = (
  { clauses }: Shape,
  ends: readonly End[],
  at: (on: number, what: 'begins' | 'ends') => number,
): number =>
  Math.max(
    Number.NEGATIVE_INFINITY,
    ...clauses.map(({ expression, of }) => {
      const times = of
        .filter((term) => isMet(term, ends))
        .map(({ on, condition }) => at(on, condition === 'START' ? 'begins' : 'ends'));
      return expression === 'ALL' ? Math.max(...times) : Math.min(...times);
    }),
  );
