/**
 * What we do for one peer whose key we have: take in the jobs that it offers, claim those that have got machines, and report what becomes of
 * them. Each step may be done twice, cut off anywhere or done by two processes at once: what is known is in the two databases, and each
 * message says all that its receiver needs.
 */
import { Client } from '../client/index.js';
import type { Copies, Lender, NewCopy, Told } from '../store/federation.js';
import type { Share } from '../store/store.js';
import { checkResults, newsOf, outcomesOf } from './answers.js';
import { CLAIM, EXCHANGE, REPORT, RETURN } from './documents.js';

/** The protocol's version that we speak (PROTOCOL.md). */
export const PROTOCOL = 1;
const REQUEST_TIMEOUT_MS = 20_000;
/** Of an answer; a whole page of offers has far fewer. */
const ANSWER_BYTES = 64 * 1024 * 1024;
/** Bytes of outputs after which a request has no further report. */
const REPORT_BYTES = 4 * 1024 * 1024;
/** Exchanges in one round: another peer is to have its turn. */
const EXCHANGES_MAX = 20;
/** After so long without a grant machines are taken away from a copy, and without any answer all that waits is given up. */
const PATIENCE_S = 60;

export interface GuestParts {
  copies: Copies;
  /** What one user may have here: peers' jobs are within it. */
  share: Share;
  /** Tells our schedulers that there is something to do; null is the root. */
  wake(touched: readonly (number | null)[]): void;
  /** Epoch seconds. */
  now(): number;
  patienceS?: number;
}

/**
 * One round with a peer, which moves its cursor on. Answers whether anything was done: then there may be more at once.
 *
 * @param silentS how long it has not answered
 * @throws ServiceError when it does not answer, or not as it should
 */
export async function visit(
  parts: GuestParts,
  peer: Lender,
  silentS: number,
  signal: AbortSignal,
): Promise<boolean> {
  const { siteId, url, secret } = peer;
  const client = new Client({
    ...{ url, key: secret, requestTimeoutMs: REQUEST_TIMEOUT_MS, answerBytesMax: ANSWER_BYTES },
  });
  const guest = new Guest(parts, siteId, (document, variables) =>
    client.request(document, variables, signal),
  );
  return guest.round(peer, silentS);
}

type Ask = (document: string, variables: object) => Promise<unknown>;

class Guest {
  private busy = false;
  /** The site that stands for us at the peer. */
  private site = '';

  constructor(
    private readonly parts: GuestParts,
    private readonly siteId: number,
    private readonly ask: Ask,
  ) {}

  async round(peer: Lender, silentS: number): Promise<boolean> {
    const { copies, now, patienceS = PATIENCE_S } = this.parts;
    // Before anybody is asked: neither isolation nor whoever else needs the machines waits for the link.
    const hopeless = silentS > patienceS ? 'UNGRANTED' : 'ISOLATED';
    this.touch(await copies.withdraw(this.siteId, hopeless, now()));
    await this.giveUp(await copies.unanswered(this.siteId, patienceS));
    await this.exchange(peer);
    await copies.reached(this.siteId, null);
    await this.claim();
    await this.report();
    await this.giveBack(await copies.toReturn(this.siteId));
    return this.busy;
  }

  private async exchange(peer: Lender): Promise<void> {
    const { copies } = this.parts;
    for (let i = 0; i < EXCHANGES_MAX; i++) {
      const places = await copies.places(this.siteId);
      const ourselves = await copies.ourselves(this.siteId);
      const input = { protocol: PROTOCOL, after: String(peer.cursor), ...ourselves };
      const told = places.map(({ offer, path }) => ({ offer: String(offer), path }));
      const answer = await this.ask(EXCHANGE, { input: { ...input, places: told } });
      const { site, cursor, more, over, open, bad } = newsOf(answer, peer.cursor);
      this.site = site;
      if (places.length > 0) await copies.placed(this.siteId, places);
      if (cursor > peer.cursor) {
        this.busy = true;
        await this.giveUp(over);
        await this.takeIn(open);
        await this.giveBack(bad, false);
        // Only now: whoever dies before hears it all again.
        peer.cursor = cursor;
        await copies.advance(this.siteId, cursor);
      }
      if (!more) return;
    }
  }

  private async takeIn(open: readonly NewCopy[]): Promise<void> {
    if (open.length === 0) return;
    const { copies, share, now } = this.parts;
    this.touch(await copies.supersede(this.siteId, open, now()));
    this.touch(await copies.endUngranted(this.siteId, now()));
    const refused = await copies.accept(this.siteId, open, share, now());
    this.touch([null]);
    await this.giveBack(refused, false);
    this.touch(await copies.boost(this.siteId, open));
  }

  private async claim(): Promise<void> {
    const { copies } = this.parts;
    const claimed = await copies.toClaim(this.siteId);
    if (claimed.length === 0) return;
    const answer = await this.ask(CLAIM, { offers: claimed.map(({ offer }) => String(offer)) });
    const { granted, refused } = outcomesOf(answer, claimed);
    if (granted.length > 0) await copies.granted(this.siteId, granted);
    await this.giveUp(refused);
    this.busy ||= granted.length + refused.length > 0;
  }

  private async report(): Promise<void> {
    const { copies } = this.parts;
    const due = await copies.toReport(this.siteId, REPORT_BYTES);
    if (due.length === 0) return;
    const reports = due.flatMap(reportsOf);
    checkResults(await this.ask(REPORT, { site: this.site, reports }), reports.length);
    // What is the owner's no more it has told us, or will; of what has ended there is no more to tell.
    const known = (level: 1 | 2) =>
      due.filter(({ over }) => over === (level === 2)).map(({ offer }) => offer);
    for (const level of [1, 2] as const) await copies.told(this.siteId, known(level), level);
    this.busy = true;
  }

  /** Copies that are over, and offers that we never took. */
  private async giveBack(offers: readonly number[], known = true): Promise<void> {
    if (offers.length === 0) return;
    await this.ask(RETURN, { offers: offers.map(String) });
    if (known) await this.parts.copies.told(this.siteId, offers, 2);
    this.busy = true;
  }

  /** Copies that are not to be run: those that run are stopped. */
  private async giveUp(offers: readonly number[]): Promise<void> {
    const { copies, now } = this.parts;
    this.touch(await copies.withdraw(this.siteId, offers, now()));
    this.touch(await copies.endUngranted(this.siteId, now()));
  }

  private touch(touched: readonly (number | null)[]): void {
    if (touched.length > 0) this.parts.wake(touched);
  }
}

/** Its start, unless the owner knows, and its end. */
function reportsOf({ offer: _, jobId, epoch, told, over, startedAt, at, ...end }: Told): object[] {
  const of = { job: `job_${jobId}`, epoch };
  const time = (seconds: number): string => new Date(seconds * 1000).toISOString();
  return [
    ...(told === 0 && startedAt !== null ? [{ ...of, phase: 'STARTED', at: time(startedAt) }] : []),
    ...(over ? [{ ...of, phase: 'ENDED', at: time(at), ...end }] : []),
  ];
}
