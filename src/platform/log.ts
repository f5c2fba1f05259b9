import { type DestinationStream, type Logger, pino } from 'pino';
import { Repeats } from './repeats.js';

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
  /** Warnings and errors that come again within it are counted, milliseconds. */
  repeatsWithinMs?: number;
}

/**
 * A logger of JSON lines. Secrets are taken out twice: by the name of the field, and by their look in the finished line. Repeated warnings
 * and errors are counted.
 */
export function createLogger(options: LogOptions): Logger {
  const repeats = new Repeats(options.repeatsWithinMs);
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
      hooks: {
        streamWrite: hideSecrets,
        logMethod(given, method, level) {
          const [first, second] = given as [unknown, unknown];
          const fields = typeof first === 'object' && first !== null ? first : {};
          const message = String(typeof first === 'string' ? first : (second ?? ''));
          const write = (more: object, text: string): void => method.apply(this, [more, text]);
          const named = fields instanceof Error ? { err: fields } : fields;
          if (repeats.isNew(level, named, message, write)) method.apply(this, given);
        },
      },
    },
    options.destination ?? pino.destination({ dest: 2, sync: true }),
  );
}
