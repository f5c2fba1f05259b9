/**
 * What is known of the members of something that is needed (a job, an array, a group), and what follows for a condition on
 * them. A few numbers for however many members, which are the same in whatever order the starts and ends are learned.
 */
import type { NeedCondition } from './model.js';

/** An instant and the member whose event it was. */
export interface Happening {
  readonly at: number;
  readonly by: number;
}

/** From when a condition holds, or cannot hold any more; null: open. */
export type Verdict = (Happening & { readonly holds: boolean }) | null;

export class Outcome {
  private started = 0;
  private ended = 0;
  private lastStart: Happening | null = null;
  private lastEnd: Happening | null = null;
  private firstNotOk: Happening | null = null;
  private firstUnstarted: Happening | null = null;

  /** `members`: how many there are; they are told apart by number, and of several at one instant the lowest counts. */
  constructor(readonly members: number) {}

  /** The member's processes have started for the first time. */
  start(by: number, at: number): void {
    this.started++;
    this.lastStart = later(this.lastStart, { at, by });
  }

  /** The member has ended and no retry follows. `started`: its processes had ever started. */
  end(by: number, at: number, ok: boolean, started: boolean): void {
    this.ended++;
    this.lastEnd = later(this.lastEnd, { at, by });
    if (!ok) this.firstNotOk = earlier(this.firstNotOk, { at, by });
    if (!started) this.firstUnstarted = earlier(this.firstUnstarted, { at, by });
  }

  verdict(condition: NeedCondition): Verdict {
    switch (condition) {
      case 'START':
        if (this.firstUnstarted !== null) return { holds: false, ...this.firstUnstarted };
        return this.started < this.members ? null : verdictAt(this.lastStart, true);
      case 'OK':
        if (this.firstNotOk !== null) return { holds: false, ...this.firstNotOk };
        return this.atEnd(true);
      case 'NOT_OK':
        return this.atEnd(this.firstNotOk !== null);
      case 'ANY':
        return this.atEnd(true);
    }
  }

  private atEnd(holds: boolean): Verdict {
    return this.ended < this.members ? null : verdictAt(this.lastEnd, holds);
  }
}

const verdictAt = (last: Happening | null, holds: boolean): Verdict =>
  last === null ? null : { holds, ...last };

const earlier = (known: Happening | null, one: Happening): Happening =>
  known === null || one.at < known.at || (one.at === known.at && one.by < known.by) ? one : known;

const later = (known: Happening | null, one: Happening): Happening =>
  known === null || one.at > known.at || (one.at === known.at && one.by < known.by) ? one : known;
