/**
 * Run times predicted from the user's own history: the mean of the last two of the user's runs that have ended, never more
 * than what the job asks for (Tsafrir, Etsion, Feitelson, IEEE TPDS 18(6), 2007). A user without history is believed.
 *
 * A run that outlasts its prediction gets a longer one, by steps (the idea is theirs, which step is ours). Without that it would count as ending now at every look,
 * jobs would be backfilled on processors that do not come free, and the first of the queue would starve.
 */
export class RunTimePrediction {
  private readonly lastByUser = new Map<number, { last: number; before: number | null }>();

  /** Seconds that a job of the user is expected to run. */
  estimate(userId: number, requestedS: number): number {
    const known = this.lastByUser.get(userId);
    if (known === undefined) return requestedS;
    return Math.min(requestedS, (known.last + (known.before ?? known.last)) / 2);
  }

  /**
   * Seconds in all that a run is expected to take which has outlasted `ranS`: longer by at least as much as it was wrong,
   * from a minute to hours. Null: it has had what it asked for, and nothing is known any more.
   */
  corrected(ranS: number, requestedS: number): number | null {
    if (ranS >= requestedS) return null;
    const step = STEPS_S.find((seconds) => seconds >= ranS) ?? LONGEST_STEP_S;
    return Math.min(requestedS, ranS + step);
  }

  /** A job of the user has ended after so many seconds, > 0. */
  ended(userId: number, runS: number): void {
    this.lastByUser.set(userId, { last: runS, before: this.lastByUser.get(userId)?.last ?? null });
  }
}

const MINUTE = 60;
const HOUR = 3600;
const LONGEST_STEP_S = 100 * HOUR;
/** A step is the first of these that is as long as the run has been. */
const STEPS_S = [
  MINUTE,
  5 * MINUTE,
  15 * MINUTE,
  30 * MINUTE,
  HOUR,
  2 * HOUR,
  5 * HOUR,
  10 * HOUR,
  20 * HOUR,
  50 * HOUR,
];
