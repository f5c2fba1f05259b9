/**
 * Rings when events were committed, and passes on what other processes say (WORD_CHANNEL): LISTEN on a connection of its own, which is opened again when it is lost. A ring may be lost with it, so whoever waits for one also looks now and then; of
 * what is said nothing is said again.
 */
import { EventEmitter } from 'node:events';
import type pg from 'pg';
import { Connection, limitsOfConnection } from './connection.js';
import { EVENT_CHANNEL, WORD_CHANNEL } from './constants.js';

const RECONNECT_MS = 1_000;
const CONNECT_MS = 10_000;

export class EventBell {
  private readonly rings = new EventEmitter().setMaxListeners(0);
  private client: pg.Client | null = null;
  private reconnect: NodeJS.Timeout | null = null;
  private life: 'new' | 'running' | 'stopped' = 'new';

  constructor(private readonly options: { url: string; onError?: ((error: unknown) => void) | undefined }) {}

  /** Answers with what ends it. */
  readonly listen = (listener: () => void): (() => void) => {
    this.rings.on('ring', listener);
    return () => void this.rings.off('ring', listener);
  };

  /** Told of what processes say, this one included. Answers with what ends it. */
  readonly hear = (listener: (word: object) => void): (() => void) => {
    this.rings.on('word', listener);
    return () => void this.rings.off('word', listener);
  };

  /** Says something to all processes that hear, of WORD_BYTES_MAX at most as JSON. False: there is no connection now. */
  async say(word: object): Promise<boolean> {
    try {
      await this.client?.query('SELECT pg_notify($1, $2)', [WORD_CHANNEL, JSON.stringify(word)]);
      return this.client !== null;
    } catch {
      return false;
    }
  }

  /** Failing to listen is no failure: it is tried again. */
  async start(): Promise<void> {
    this.life = 'running';
    await this.open();
  }

  async stop(): Promise<void> {
    this.life = 'stopped';
    if (this.reconnect) clearTimeout(this.reconnect);
    const { client } = this;
    this.client = null;
    await client?.end().catch(() => {});
  }

  private async open(): Promise<void> {
    const { url, onError } = this.options;
    const client = new Connection({
      connectionString: url,
      application_name: 'switchyard-feed',
      connectionTimeoutMillis: CONNECT_MS,
      ...limitsOfConnection({ statementTimeoutMs: CONNECT_MS }),
    });
    const lost = (error?: unknown) => {
      if (error) onError?.(error);
      if (this.client === client) this.client = null;
      client.removeAllListeners('notification');
      client.end().catch(() => {});
      if (this.life !== 'running' || this.reconnect) return;
      this.reconnect = setTimeout(() => {
        this.reconnect = null;
        if (this.life === 'running') void this.open();
      }, RECONNECT_MS);
    };
    client.on('error', lost);
    client.on('end', () => {
      if (this.client === client) lost();
    });
    client.on('notification', ({ channel, payload = '' }) =>
      channel === WORD_CHANNEL ? this.rings.emit('word', JSON.parse(payload)) : this.rings.emit('ring'),
    );
    try {
      await client.connect();
      await client.query(`LISTEN ${EVENT_CHANNEL}; LISTEN ${WORD_CHANNEL}`);
      this.client = client;
      this.rings.emit('ring');
      // Stopped meanwhile: nobody else knows of this connection.
      if (this.life === 'stopped') await client.end();
    } catch (error) {
      lost(error);
    }
  }
}
