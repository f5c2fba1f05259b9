/**
 * Whether an error only says that the database is away: the client may simply try again. Prisma wraps what the driver
 * said, and the driver what the system said, so the chain of causes is looked through for a code of theirs.
 */

/** Of the system (sockets), of PostgreSQL (class 08, shutting or starting up, too many connections, a transaction out of time), of Prisma (P2028: a transaction that lost its connection, or its time). */
const CODES: ReadonlySet<unknown> = new Set([
  ...['ECONNREFUSED', 'ECONNRESET', 'EPIPE', 'ETIMEDOUT', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH'],
  ...['08000', '08001', '08003', '08004', '08006', '57P01', '57P02', '57P03', '53300', '25P04'],
  ...['P1001', 'P1002', 'P1008', 'P1017', 'P2024', 'P2028', 'P2037'],
]);
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
    if (CODES.has(code) || CODES.has(originalCode) || KINDS.has(kind)) return true;
    if (typeof message === 'string' && MESSAGES.test(message)) return true;
    at = (meta as { driverAdapterError?: unknown } | undefined)?.driverAdapterError ?? cause;
  }
  return false;
}
