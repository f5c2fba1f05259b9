/**
 * Talks to all peers that we have a key of, each in a loop of its own: at once again while there is something to do, then every
 * `idleMs`, and with growing pauses while it does not answer. Peers are shared out among the processes by a lease in the database.
 */
import { randomBytes } from 'node:crypto';
import { pauseMs, ServiceError } from '../client/index.js';
import { type Env, pause, REAL_ENV } from '../platform/env.js';
import type { Lender } from '../store/federation.js';
import { type GuestParts, type KnownPeer, visit } from './guest.js';

export interface FederationLog {
  info(details: object, message: string): void;
  warn(details: object, message: string): void;
}

export interface FederationOptions extends GuestParts {
  log: FederationLog;
  /** Between two rounds with a peer in which nothing was done. */
  idleMs?: number;
  env?: Env;
}

/** A process that has not looked for its peers for so long has died. */
const LEASE_S = 10;
const LOOK_MS = 2_000;
const IDLE_MS = 500;

export class Federation {
  private readonly worker = randomBytes(9).toString('base64url');
  private readonly stopping = new AbortController();
  private readonly loops = new Map<number, { peer: Lender; stop: AbortController; done: Promise<void> }>();
  private looking: Promise<void> | null = null;

  constructor(private readonly options: FederationOptions) {}

  start(): void {
    this.looking = this.look();
  }

  async stop(): Promise<void> {
    this.stopping.abort();
    await this.looking;
    await Promise.all([...this.loops.values()].map(({ done }) => done));
    await this.options.copies.leave(this.worker).catch(() => {});
  }

  /** Which peers are ours, again and again. */
  private async look(): Promise<void> {
    const { env = REAL_ENV } = this.options;
    const { signal } = this.stopping;
    for (let failures = 0; !signal.aborted; ) {
      try {
        this.keep(await this.options.copies.lenders(this.worker, LEASE_S));
        failures = 0;
      } catch (error) {
        failures++;
        this.options.log.warn({ err: error }, 'peers could not be looked up; trying again');
      }
      await pause(env, failures > 0 ? pauseMs(failures, null, env) : LOOK_MS, signal);
    }
    for (const { stop } of this.loops.values()) stop.abort();
  }

  private keep(peers: readonly Lender[]): void {
    const ours = new Map(peers.map((peer) => [peer.siteId, peer]));
    for (const [siteId, loop] of this.loops) {
      if (!ours.has(siteId)) loop.stop.abort();
    }
    for (const peer of peers) {
      const loop = this.loops.get(peer.siteId);
      // Its address and its key may have changed; the loop may be ahead with the cursor.
      if (loop !== undefined) loop.peer = { ...peer, cursor: Math.max(peer.cursor, loop.peer.cursor) };
      else this.begin(peer);
    }
  }

  private begin(peer: Lender): void {
    const stop = new AbortController();
    const loop = { peer, stop, done: Promise.resolve() };
    this.loops.set(peer.siteId, loop);
    loop.done = this.follow(loop).finally(() => this.loops.delete(peer.siteId));
  }

  private async follow(loop: { peer: Lender; stop: AbortController }): Promise<void> {
    const { log, copies, idleMs = IDLE_MS, env = REAL_ENV } = this.options;
    const { signal } = loop.stop;
    let heardAt = env.upMs();
    const known: KnownPeer = { protocol: null, load: null };
    for (let failures = 0; !signal.aborted; ) {
      const { siteId, name } = loop.peer;
      try {
        const silentS = (env.upMs() - heardAt) / 1000;
        const busy = await visit(this.options, loop.peer, silentS, known, signal);
        heardAt = env.upMs();
        if (failures > 0) log.info({ peer: name }, 'the peer responds again');
        failures = 0;
        if (!busy) await pause(env, idleMs, signal);
      } catch (error) {
        if (signal.aborted) return;
        failures++;
        // It may be of another release when it answers again.
        known.protocol = null;
        const why = error instanceof Error ? error.message : String(error);
        if (failures === 1) log.warn({ peer: name, why }, 'an exchange with the peer failed; trying again');
        if (error instanceof ServiceError) await copies.reached(siteId, why).catch(() => {});
        await pause(env, pauseMs(failures, error, env), signal);
      }
    }
  }
}
