/**
 * What goes to and from the terminals of runs, between the processes of the service. It is notified and never stored: passwords are typed.
 * Whoever sends input sends it again until the terminal has it, so nothing is lost with a connection.
 */
import type { JobState } from '../core/states.js';
import type { EventBell } from './bell.js';
import type { TerminalSize } from './job-fields.js';
import { sql } from './sql.js';
import { type Connection, row } from './statement.js';

/** A piece of input for a run. */
export interface TerminalInput {
  jobId: number;
  epoch: number;
  /** The terminal takes those only that are larger than the last. */
  sequence: number;
  base64: string;
  /** null: as it was. */
  size: TerminalSize | null;
}

export type TerminalNews =
  | ({ is: 'INPUT'; siteId: number; agentId: number } & TerminalInput)
  /** The terminal has it. */
  | { is: 'TAKEN'; siteId: number; jobId: number; epoch: number; sequence: number }
  /** There is more of its output. */
  | { is: 'WROTE'; jobId: number };

/** What decides who may type there, and where that goes. */
export interface TerminalRun {
  userId: number;
  state: JobState;
  epoch: number;
  terminal: TerminalSize | null;
  siteId: number | null;
  /** Of the machine that its command is on; null: no agent has it. */
  agentId: number | null;
}

export const terminalRun = (connection: Connection, jobId: number): Promise<TerminalRun | null> =>
  row(
    connection,
    sql`
SELECT j.user_id AS "userId", j.state, j.epoch, j.terminal, r.site_id AS "siteId", m.agent_id AS "agentId"
  FROM jobs j LEFT JOIN runs r ON r.job_id = j.id AND r.epoch = j.epoch AND r.placed_by = 'SERVICE' LEFT JOIN machines m ON m.id = r.machine_ids[1]
 WHERE j.id = ${jobId}::bigint`,
  );

/** What processes say to one another (`EventFeed.words`). */
type Words = Pick<EventBell, 'hear' | 'say'>;

/** Tells all processes, this one included; of no use while there is no connection. A piece of input with its data is shorter than WORD_BYTES_MAX. */
export const tellTerminals = (words: Words, news: readonly TerminalNews[]): Promise<unknown> =>
  Promise.all(news.map((one) => words.say(one)));

/** Answers with what ends it. */
export const hearTerminals = (words: Words, listener: (news: TerminalNews) => void): (() => void) =>
  words.hear((word: TerminalNews | object) => {
    if ('is' in word) listener(word as TerminalNews);
  });
