/** The newest PostgreSQL that Debian has installed here; null: none. */
export const release: string | null;
/** The folder of its programs. */
export const binaries: string | null;

export interface DebianPostgres {
  /** Of the empty database `switchyard`. */
  readonly url: string;
  stop(): Promise<void>;
}

/** A server of Debian's in a directory of its own, on a free port of 127.0.0.1; all but `settings` is as Debian has it. */
export function startDebianPostgres(settings?: Record<string, string>): Promise<DebianPostgres>;
