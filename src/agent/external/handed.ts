/** A run that is being handed over, or has been. */
import { join } from 'node:path';
import type { Followed } from '../process/follow.js';
import type { End } from '../process/reports.js';
import { type Assignment, runKey } from '../runner.js';
import type { Calls } from './calls.js';
import { type LocalJob, type LocalName, NO_TERMS, type Terms } from './scheduler.js';
import { HangError } from './shared.js';

/** An account of the site. */
export interface Owner {
  name: string;
  uid: number;
  gid: number;
}

/** What the next agent has to know: written before the scheduler is asked. */
export interface RunRecord {
  assignment: Assignment;
  /** On which it is handed over, however often. */
  terms: Terms;
  /** Whose it is; null: the agent's; absent: not known yet, and nothing was submitted. */
  owner?: Owner | null;
  handedOverMs: number;
  /** What it may be known by there: more than one, where what became of a submission was never known. */
  names: LocalName[];
}

export interface Handed extends RunRecord {
  key: string;
  /** The scheduler's name for it; null: not known. */
  localId: string | null;
  /** When its last submission began, as far as this agent knows. */
  submittedMs: number;
  /** A submission is under way. */
  busy: boolean;
  /** It may have been submitted: it is looked for first. */
  unsure: boolean;
  /** What has to be equal in an array; null: nobody has asked yet. */
  needs: string | null;
  /** Not as a part of an array: one with it was refused. */
  alone: boolean;
  /** Neither looked for nor submitted before (by the clock of durations). */
  notBefore: number;
  /** When it was not in the list for the first time; null: it is there. */
  missingSince: number | null;
  /** The least that was listed of it while it ran (`LocalJob.startedAfterS`). */
  startedAfterS: number;
  /** As the scheduler listed it last. */
  listed: LocalJob | null;
  /** When it began; null: it has not, as far as is known. */
  beganMs: number | null;
  /** What its node's clock lacks, ms. */
  clockMs: number;
  /** The scheduler says that it is over, and nothing was written; since when. */
  silentSince: number | null;
  /** Since when its word is known that it was killed; -Infinity: it was not. */
  killedSince: number | null;
  asked: 'CANCEL' | 'FORGET' | null;
  /** Another site can start it, if it has not begun. */
  recalled: boolean;
  askedAt: number;
  words: string | null;
  wordsAt: number;
  /** Its output while it runs. */
  followed: Followed | null;
  /** How it ended, as far as it is decided; then its outputs are kept, and it is reported. */
  end: { end: End; atMs: number } | null;
  keeping: AbortController | null;
  /** Until when the scheduler may tell what it has measured of it (by the clock of durations); null: nobody waits for that. */
  measuredBy: number | null;
}

/** Built field by field: spread, so many would take longer than all else of a hand-over. */
export function handed({ assignment, terms, owner, handedOverMs, names }: RunRecord): Handed {
  const run: Handed = {
    assignment,
    terms,
    handedOverMs,
    names,
    key: runKey(assignment),
    localId: null,
    submittedMs: handedOverMs,
    busy: false,
    unsure: false,
    needs: null,
    alone: false,
    notBefore: 0,
    missingSince: null,
    startedAfterS: Infinity,
    listed: null,
    beganMs: null,
    clockMs: 0,
    silentSince: null,
    killedSince: null,
    asked: null,
    recalled: false,
    askedAt: Number.NEGATIVE_INFINITY,
    words: null,
    wordsAt: Number.NEGATIVE_INFINITY,
    followed: null,
    end: null,
    keeping: null,
    measuredBy: null,
  };
  if (owner !== undefined) run.owner = owner;
  return run;
}

/** The first time it may be torn: nothing is submitted before it is there. Later it is replaced. */
export function writeRecord(
  files: Calls,
  directory: string,
  { assignment, terms, owner, handedOverMs, names }: RunRecord,
): void {
  const path = join(directory, RECORD);
  const first = names.length === 1;
  const text = JSON.stringify({ assignment, terms, owner, handedOverMs, names });
  files.writeFileSync(first ? path : `${path}.tmp`, text, { mode: 0o600 });
  if (!first) files.renameSync(`${path}.tmp`, path);
}

const RECORD = 'run';

/** The record in the directory of a run; null: it has none that can be read. */
export function recordOf(files: Calls, directory: string): RunRecord | null {
  try {
    const written = JSON.parse(files.readFileSync(join(directory, RECORD), 'utf8'));
    // Those of the release before have neither.
    return { terms: NO_TERMS, owner: null, ...written };
  } catch (error) {
    if (error instanceof HangError) throw error;
    return null;
  }
}
