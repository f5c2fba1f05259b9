/**
 * Keeps a fault that comes again and again from filling a disk: of warnings and errors with the same message, of the same kind and about
 * the same thing, the first is written at once, and at the end of the window how many more there were.
 */
const WINDOW_MS = 10_000;
/** Kinds that are counted at a time; beyond, lines are told apart by their message alone. */
const KINDS_MAX = 1_000;
/** pino's number of `warn`. */
const WARN = 40;
const ERROR = 50;
/** What a line is about. */
const ABOUT = ['job', 'jobId', 'simulation', 'machine', 'peer', 'siteId'] as const;

/** Writes a line with these fields. */
type Write = (fields: object, message: string) => void;

interface Counted {
  repeated: number;
  fields: object;
}

export class Repeats {
  private readonly counted = new Map<string, Counted>();

  constructor(private readonly windowMs = WINDOW_MS) {}

  /** Whether the line is to be written now. Otherwise it is counted. */
  isNew(level: number, fields: object, message: string, write: Write): boolean {
    // Who was told no more than the id of a request finds it in the log.
    if (level < WARN || (level >= ERROR && 'requestId' in fields)) return true;
    const key = this.keyOf(level, fields, message);
    const known = this.counted.get(key);
    if (known !== undefined) {
      known.repeated++;
      known.fields = fields;
      return false;
    }
    this.counted.set(key, { repeated: 0, fields });
    setTimeout(() => {
      const { repeated, fields: last } = this.counted.get(key) as Counted;
      this.counted.delete(key);
      if (repeated > 0) write({ ...last, repeated, withinS: this.windowMs / 1000 }, message);
    }, this.windowMs).unref();
    return true;
  }

  private keyOf(level: number, fields: object, message: string): string {
    const plain = `${level} ${message}`;
    if (this.counted.size >= KINDS_MAX) return plain;
    const values = fields as Record<string, unknown>;
    return [plain, kindOf(values.err ?? values.error), ...ABOUT.map((name) => values[name] ?? '')].join('\0');
  }
}

/** Of an error: its code, or what it says without its numbers. */
function kindOf(error: unknown): string {
  const { code, message = error } = (error ?? {}) as { code?: unknown; message?: unknown };
  return String(code ?? message ?? '')
    .replace(/\d+/g, '#')
    .slice(0, 200);
}
