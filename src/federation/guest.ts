/**
 * What we do for one peer whose key we have: take in the jobs that it offers, claim those that have got machines, and report what becomes of
 * them. Each step may be done twice, cut off anywhere or done by two processes at once: what is known is in the two databases, and each
 * message says all that its receiver needs.
 */
import { Client, ServiceError } from '../client/index.js';
import type {
  Copies,
  GrantedJob,
  Lender,
  NewCopy,
  OfferedJob,
  OfferState,
  Told,
} from '../store/federation.js';
import { CLAIM, EXCHANGE, REPORT, RETURN } from './documents.js';

/** The protocol's version that we speak (PROTOCOL.md). */
export const PROTOCOL = 1;
const REQUEST_TIMEOUT_MS = 20_000;
/** Bytes of outputs after which a request has no further report. */
const REPORT_BYTES = 4 * 1024 * 1024;
/** Exchanges in one round: another peer is to have its turn. */
const EXCHANGES_MAX = 20;

export interface GuestParts {
  copies: Copies;
  /** Tells our schedulers that there is something to do; null is the root. */
  wake(touched: readonly (number | null)[]): void;
  /** Epoch seconds. */
  now(): number;
}

interface Offer {
  offer: string;
  state: OfferState;
  stop: boolean;
  job: string;
  boost: number;
  request: (Omit<OfferedJob, 'deadline'> & { deadline: string | null }) | null;
}

interface Exchange {
  service: string;
  site: string;
  cursor: string;
  more: boolean;
  offers: Offer[];
}

interface Claimed {
  outcome: 'GRANTED' | 'REFUSED' | 'PENDING';
  epoch: number;
  command: string;
  arguments: string[];
  environment: Record<string, string>;
  workingDirectory: string | null;
}

/** One round with a peer, which moves its cursor on. Answers whether anything was done: then there may be more at once. */
export async function visit(parts: GuestParts, peer: Lender, signal: AbortSignal): Promise<boolean> {
  const { siteId, url, secret } = peer;
  const client = new Client({ url, key: secret, requestTimeoutMs: REQUEST_TIMEOUT_MS });
  const guest = new Guest(parts, siteId, (document, variables) =>
    client.request(document, variables, signal),
  );
  return guest.round(peer);
}

type Ask = <T>(document: string, variables: object) => Promise<T>;

class Guest {
  private busy = false;
  /** The site that stands for us at the peer. */
  private site = '';

  constructor(
    private readonly parts: GuestParts,
    private readonly siteId: number,
    private readonly ask: Ask,
  ) {}

  async round(peer: Lender): Promise<boolean> {
    const { copies } = this.parts;
    // Before anybody is asked: isolation does not wait for the link.
    this.touch(await copies.withdraw(this.siteId, 'ISOLATED', this.parts.now()));
    this.touch(await copies.endUngranted(this.siteId, this.parts.now()));
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
      const ourselves = await copies.ourselves(this.siteId);
      const input = { protocol: PROTOCOL, after: String(peer.cursor), ...ourselves };
      const { exchangeJobs } = await this.ask<{ exchangeJobs: Exchange }>(EXCHANGE, { input });
      this.site = exchangeJobs.site;
      if (exchangeJobs.offers.length > 0) {
        this.busy = true;
        await this.takeIn(exchangeJobs.offers);
        // Only now: whoever dies before hears it all again.
        peer.cursor = wholeNumber(exchangeJobs.cursor);
        await copies.advance(this.siteId, peer.cursor);
      }
      if (!exchangeJobs.more) return;
    }
  }

  private async takeIn(offers: readonly Offer[]): Promise<void> {
    const { copies, now } = this.parts;
    const over = offers
      .filter(({ state, stop }) => state === 'WITHDRAWN' || stop)
      .map(({ offer }) => wholeNumber(offer));
    const open = offers.filter(({ state }) => state === 'OFFERED').map(newCopy);
    if (over.length > 0) this.touch(await copies.withdraw(this.siteId, over, now()));
    if (open.length === 0) return;
    this.touch(await copies.supersede(this.siteId, open, now()));
    this.touch(await copies.endUngranted(this.siteId, now()));
    const refused = await copies.accept(this.siteId, open, now());
    this.touch([null]);
    await this.giveBack(refused, false);
    this.touch(await copies.boost(this.siteId, open));
  }

  private async claim(): Promise<void> {
    const { copies, now } = this.parts;
    const offers = await copies.toClaim(this.siteId);
    if (offers.length === 0) return;
    const { claimJobs } = await this.ask<{ claimJobs: { results: Claimed[] } }>(CLAIM, {
      offers: offers.map(String),
    });
    const of = (outcome: Claimed['outcome']) =>
      offers.flatMap((offer, i) =>
        claimJobs.results[i]?.outcome === outcome ? [{ offer, ...claimJobs.results[i] }] : [],
      );
    const granted: (GrantedJob & { offer: number })[] = of('GRANTED');
    if (granted.length > 0) await copies.granted(this.siteId, granted);
    const refused = of('REFUSED').map(({ offer }) => offer);
    if (refused.length > 0) {
      this.touch(await copies.withdraw(this.siteId, refused, now()));
      this.touch(await copies.endUngranted(this.siteId, now()));
    }
    this.busy ||= granted.length + refused.length > 0;
  }

  private async report(): Promise<void> {
    const { copies } = this.parts;
    const due = await copies.toReport(this.siteId, REPORT_BYTES);
    if (due.length === 0) return;
    const reports = due.flatMap((one) => reportsOf(one).map((report) => ({ one, report })));
    const { reportRuns } = await this.ask<{ reportRuns: { results: string[] } }>(REPORT, {
      site: this.site,
      reports: reports.map(({ report }) => report),
    });
    // What is the owner's no more it has told us, or will; of what has ended there is no more to tell.
    const known = (level: 1 | 2) =>
      due.filter(({ over }) => over === (level === 2)).map(({ offer }) => offer);
    if (reportRuns.results.length !== reports.length)
      throw new ServiceError('reportRuns answered for other reports', 'BAD_ANSWER');
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

  private touch(touched: readonly (number | null)[]): void {
    if (touched.length > 0) this.parts.wake(touched);
  }
}

function newCopy({ offer, job, boost, request }: Offer): NewCopy {
  if (request === null) throw new ServiceError(`offer ${offer} came without a request`, 'BAD_ANSWER');
  const deadline = request.deadline === null ? null : Date.parse(request.deadline) / 1000;
  return {
    offer: wholeNumber(offer),
    jobId: wholeNumber(job.slice('job_'.length)),
    boost,
    request: { ...request, deadline },
  };
}

function wholeNumber(text: string): number {
  const number = Number(text);
  if (Number.isSafeInteger(number) && number >= 0) return number;
  throw new ServiceError(
    `the peer answered ${JSON.stringify(text)} where a whole number is due`,
    'BAD_ANSWER',
  );
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
