/**
 * Whether an error only says that the database is away: the client may simply try again. Prisma wraps what the driver
 * said, and the driver what the system said, so the chain of causes is looked through for a code of theirs.
 */

/**
 * Of the system (sockets); of PostgreSQL: a server that became a replica (25006), transactions and sessions out of time (25P03,
 * 25P04), conflicts that did not go away (40001, 40P01), locks not had in time (55P03), cancelled statements (57014), input or output that
 * failed (58030); of Prisma (P2028: a transaction that lost its connection, or its time; P2034: conflicts).
 */
const CODES: ReadonlySet<unknown> = new Set([
  ...['ECONNREFUSED', 'ECONNRESET', 'EPIPE', 'ETIMEDOUT', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH'],
  ...['25006', '25P03', '25P04', '40001', '40P01', '55P03', '57014', '58030'],
  ...['P1001', 'P1002', 'P1008', 'P1017', 'P2024', 'P2028', 'P2034', 'P2037'],
]);
/** Classes of PostgreSQL's codes: connections; no room on disk, in memory, among connections; shutting or starting up. */
const CLASS = /^(08|53|57P)[0-9A-Z]{2,3}$/;
const KINDS: ReadonlySet<unknown> = new Set([
  'DatabaseNotReachable',
  'ConnectionClosed',
  'SocketTimeout',
  'TooManyConnections',
]);
/** What `pg` says without a code. */
const MESSAGES =
  /connection terminated|not queryable|timeout exceeded when trying to connect|cannot use a pool after calling end/i;
const DEPTH_MAX = 8;

export function isUnavailable(error: unknown): boolean {
  let at: unknown = error;
  for (let depth = 0; at && typeof at === 'object' && depth < DEPTH_MAX; depth++) {
    const { code, originalCode, kind, message, meta, cause } = at as Record<string, unknown>;
    if (KINDS.has(kind) || [code, originalCode].some(saysSo)) return true;
    if (typeof message === 'string' && MESSAGES.test(message)) return true;
    at = (meta as { driverAdapterError?: unknown } | undefined)?.driverAdapterError ?? cause;
  }
  return false;
}

const saysSo = (code: unknown): boolean => CODES.has(code) || (typeof code === 'string' && CLASS.test(code));
