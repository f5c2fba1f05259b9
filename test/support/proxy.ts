/** A way to Postgres on which one sees what clients ask for, and whom they keep waiting. */
import { createServer, type Socket, connect as socketTo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { EVENT_LOCK } from '../../src/store/constants.js';

export interface WatchedWay {
  /** The same database by this way. */
  readonly url: string;
  /** The parameters with which each connection began. */
  readonly begun: Readonly<Record<string, string | undefined>>[];
  /** The statements after which a connection held the event lock and the server waited for the client; none is as it should be. */
  readonly keptWaiting: string[];
  close(): Promise<void>;
}

/** For the server to go on with what it has been sent; then the client is what it waits for. */
const ROUNDS = 40;
const PAUSE_MS = 25;

/** Asked after each statement of a transaction: it has to be quick. */
const HELD = `SELECT FROM pg_locks WHERE pid = $1 AND locktype = 'advisory' AND objid = $2 AND granted`;

/**
 * Holds back each answer after which the server, in a transaction, is ready for more: so the client sends nothing more. What the client has
 * sent by then is all it takes to give the event lock back, or the lock stays held and that is noted.
 */
export async function watchedWay(url: string): Promise<WatchedWay> {
  const to = new URL(url);
  const observer = new pg.Pool({ connectionString: url, max: 2 });
  const begun: Record<string, string | undefined>[] = [];
  const keptWaiting: string[] = [];
  const sockets = new Set<Socket>();

  async function look(pid: number): Promise<void> {
    for (let round = 0; ; round++) {
      const { rows } = await observer.query({ name: 'held', text: HELD, values: [pid, EVENT_LOCK] });
      if (rows.length === 0) return;
      if (round === ROUNDS) {
        const asked = await observer.query('SELECT query FROM pg_stat_activity WHERE pid = $1', [pid]);
        keptWaiting.push(String(asked.rows[0]?.query));
        return;
      }
      await sleep(PAUSE_MS);
    }
  }

  const server = createServer((client) => {
    const upstream = socketTo(Number(to.port), to.hostname);
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.setNoDelay(true).on('error', () => {});
    }
    let isFirst = true;
    client.on('data', (data) => {
      // Length, protocol version, then names and values, each ended by NUL.
      const words = isFirst ? data.toString('utf8', 8, data.readInt32BE(0)).split('\0') : [];
      if (isFirst)
        begun.push(Object.fromEntries(words.flatMap((word, i) => (i % 2 ? [] : [[word, words[i + 1]]]))));
      isFirst = false;
      upstream.write(data);
    });
    client.on('close', () => upstream.destroy());
    upstream.on('close', () => client.end());
    let pid = 0;
    let rest = Buffer.alloc(0);
    let told = Promise.resolve();
    upstream.on('data', (data) => {
      rest = Buffer.concat([rest, data]);
      let [from, end] = [0, 0];
      const tell = (before: () => Promise<void> | undefined): void => {
        const messages = rest.subarray(from, end);
        from = end;
        told = told.then(before).then(() => void client.write(messages));
      };
      while (rest.length >= end + 5 && rest.length >= end + 1 + rest.readInt32BE(end + 1)) {
        const at = end;
        end += 1 + rest.readInt32BE(at + 1);
        const type = String.fromCharCode(rest[at] as number);
        if (type === 'K') pid = rest.readInt32BE(at + 5);
        if (type === 'Z' && rest[at + 5] === 'T'.charCodeAt(0)) tell(() => look(pid));
      }
      if (end > from) tell(() => undefined);
      rest = rest.subarray(end);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const way = new URL(url);
  way.hostname = '127.0.0.1';
  way.port = String((server.address() as { port: number }).port);
  return {
    url: way.href,
    begun,
    keptWaiting,
    async close() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await observer.end();
    },
  };
}
