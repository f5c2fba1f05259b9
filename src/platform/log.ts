import { type DestinationStream, type Logger, pino } from 'pino';

export type { Logger };

const HIDDEN = '[hidden]';

/** Fields that hold secrets wherever they appear near the top of a log line. */
const SECRET_FIELDS = [
  'password',
  'authorization',
  'cookie',
  'key',
  'apiKey',
  'secret',
  'token',
  'databaseUrl',
  'redisUrl',
];

/**
 * Takes secrets out of text: passwords in URLs, bearer tokens, Switchyard's API keys (their
 * public first half, by which they are listed, stays). Also for messages that are shown.
 */
export function hideSecrets(text: string): string {
  return text
    .replace(/([a-z][a-z0-9+.-]*:\/\/[^\s:@/"\\]*):[^\s@/"\\]+@/gi, `$1:${HIDDEN}@`)
    .replace(/\b(bearer)\s+[^\s"\\,]+/gi, `$1 ${HIDDEN}`)
    .replace(/\b(swy_[0-9a-f]+)_[A-Za-z0-9_-]{16,}/g, `$1_${HIDDEN}`);
}

export interface LogOptions {
  /** A level of pino, or `silent`. */
  level: string;
  /** `api`, `worker`, …: in every line. */
  process?: string;
  /** Standard error unless told otherwise: standard output belongs to what commands print. */
  destination?: DestinationStream;
}

/** A logger of JSON lines. Secrets are taken out twice: by the name of the field, and by their look in the finished line. */
export function createLogger(options: LogOptions): Logger {
  return pino(
    {
      level: options.level,
      base: options.process ? { process: options.process } : {},
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      redact: {
        paths: SECRET_FIELDS.flatMap((field) => [field, `*.${field}`, `*.*.${field}`]),
        censor: HIDDEN,
      },
      hooks: { streamWrite: hideSecrets },
    },
    options.destination ?? pino.destination({ dest: 2, sync: true }),
  );
}
