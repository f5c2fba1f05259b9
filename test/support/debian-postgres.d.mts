/** The newest PostgreSQL that Debian has installed here, its programs' folder; null: none. */
export const binaries: string | null;

export interface DebianPostgres {
  /** Of the empty database `switchyard`. */
  readonly url: string;
  stop(): Promise<void>;
}

/** A server of Debian's in a directory of its own, on a free port of 127.0.0.1. */
export function startDebianPostgres(): Promise<DebianPostgres>;
