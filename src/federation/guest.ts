/**
 * What we do for one peer whose key we have: take in the jobs that it offers, claim those that have got machines, and report what becomes of
 * them. Each step may be done twice, cut off anywhere or done by two processes at once: what is known is in the two databases, and each
 * message says all that its receiver needs.
 */
import { Client, type Document, ServiceError } from '../client/index.js';
import { MAX } from '../platform/limits.js';
import type { Blobs } from '../store/blobs.js';
import type { Copies, Lender, NewCopy, QueueLoad, Told } from '../store/federation.js';
import type { FileRow } from '../store/files.js';
import type { Share } from '../store/store.js';
import { type Ask, checkResults, newsOf, outcomesOf } from './answers.js';
import {
  ClaimDocument,
  Exchange1Document,
  Exchange2Document,
  ExchangeDocument,
  type ExchangeInput,
  ReportDocument,
  ReturnDocument,
  type RunReportInput,
} from './documents.gql.js';
import { RunOutputs } from './outputs.js';

/** The protocol's version that we speak (PROTOCOL.md); with a peer of an earlier release, its own. */
const PROTOCOL = 3;
type Ourselves = Omit<ExchangeInput, 'protocol' | 'load'>;
type TellLoad = () => Promise<ExchangeInput['load']>;
const REQUEST_TIMEOUT_MS = 20_000;
/** Of an answer; a whole page of offers has far fewer. */
const ANSWER_BYTES = 64 * 1024 * 1024;
/** Bytes of outputs after which a request has no further report. */
const REPORT_BYTES = 4 * 1024 * 1024;
/** Exchanges in one round: another peer is to have its turn. */
const EXCHANGES_MAX = 20;
/** After so long without a grant machines are taken away from a copy, and without any answer all that waits is given up. */
const PATIENCE_S = 60;
/** What an owner has not taken of a run's files so long after its end, it is not handed. */
const FILES_WITHIN_S = 6 * 3600;
/** Our queue is looked at so often, to tell of it. */
const LOAD_EVERY_S = 5;

export interface GuestParts {
  copies: Copies;
  /** What is kept here of runs, and where. */
  filesOfRuns(runs: readonly { jobId: number; epoch: number }[]): Promise<FileRow[]>;
  blobs: Pick<Blobs, 'read'>;
  /** What one user may have here: peers' jobs are within it. */
  share: Share;
  /** Tells our schedulers that there is something to do; null is the root. */
  wake(touched: readonly (number | null)[]): void;
  /** Epoch seconds. */
  now(): number;
  patienceS?: number;
  /** How a peer is reached; left out: by its address. */
  connect?(peer: Lender): PeerLink;
}

/** What is used of a client. */
export type PeerLink = Pick<Client, 'request' | 'put'>;

const clientOf = ({ url, secret }: Lender): PeerLink =>
  new Client({ url, key: secret, requestTimeoutMs: REQUEST_TIMEOUT_MS, answerBytesMax: ANSWER_BYTES });

/**
 * One round with a peer, which moves its cursor on. Answers whether anything was done: then there may be more at once.
 *
 * @param silentS how long it has not answered
 * @param known what is kept from round to round
 * @throws ServiceError when it does not answer, or not as it should
 */
export async function visit(
  parts: GuestParts,
  peer: Lender,
  silentS: number,
  known: KnownPeer,
  signal: AbortSignal,
): Promise<boolean> {
  const { siteId } = peer;
  const client = (parts.connect ?? clientOf)(peer);
  const ask: Ask = (document, variables) => client.request(document, variables, signal);
  const put: Put = (path, body, headers) => client.put(path, body, headers, signal);
  return new Guest(parts, siteId, ask, put, known).round(peer, silentS);
}

/** What a service answers that does not know the version. */
const UNKNOWN: ReadonlySet<string> = new Set(['BAD_USER_INPUT', 'GRAPHQL_VALIDATION_FAILED']);

type Put = (path: string, body: Buffer, headers: Record<string, string>) => Promise<unknown>;

/** What a process knows of a peer. */
export interface KnownPeer {
  /** The version that it speaks; null: not known yet. */
  protocol: number | null;
  /** What it was told of our queue last, and when that was so, epoch seconds. */
  load: { of: QueueLoad; at: number } | null;
}

class Guest {
  private busy = false;
  /** The site that stands for us at the peer. */
  private site = '';

  constructor(
    private readonly parts: GuestParts,
    private readonly siteId: number,
    private readonly ask: Ask,
    private readonly put: Put,
    private readonly known: KnownPeer,
  ) {}

  async round(peer: Lender, silentS: number): Promise<boolean> {
    const { copies, now, patienceS = PATIENCE_S } = this.parts;
    // Before anybody is asked: neither isolation nor whoever else needs the machines waits for the link.
    const hopeless = silentS > patienceS ? 'UNGRANTED' : 'ISOLATED';
    this.touch(await copies.withdraw(this.siteId, hopeless, now()));
    await this.giveUp(await copies.unanswered(this.siteId, patienceS));
    // Nothing runs without the class in which it was taken.
    await this.giveUp(await copies.unclassed(this.siteId));
    await this.exchange(peer);
    await copies.reached(this.siteId, null);
    await this.claim();
    const refused = await this.report();
    await this.giveBack(await copies.toReturn(this.siteId));
    if (refused !== null) await copies.reached(this.siteId, refused);
    return this.busy;
  }

  private async exchange(peer: Lender): Promise<void> {
    const { copies } = this.parts;
    for (let i = 0; i < EXCHANGES_MAX; i++) {
      const places = await copies.places(this.siteId);
      const ourselves = await copies.ourselves(this.siteId);
      const told = places.map(({ offer, path }) => ({ offer: String(offer), path }));
      const answer = await this.tell({ after: String(peer.cursor), ...ourselves, places: told });
      const { site, cursor, more, over, open, claimed, bad } = newsOf(answer, peer.cursor);
      this.site = site;
      if (places.length > 0) await copies.placed(this.siteId, places);
      if (cursor > peer.cursor) {
        this.busy = true;
        await this.giveUp(over);
        await this.takeIn(open);
        const offered = open.map(({ offer }) => offer);
        await this.giveBack([...bad, ...(await copies.notHere(this.siteId, offered, claimed))], false);
        // Only now: whoever dies before hears it all again.
        peer.cursor = cursor;
        await copies.advance(this.siteId, cursor);
      }
      if (!more) return;
    }
  }

  /** In our version; in an earlier one with a peer that knows no other. */
  private async tell(ourselves: Ourselves): Promise<unknown> {
    const { known } = this;
    for (let protocol = known.protocol ?? PROTOCOL; ; protocol--) {
      try {
        const answer = await this.ask(...(await inVersion(protocol, ourselves, () => this.load())));
        known.protocol = protocol;
        return answer;
      } catch (error) {
        const isOlder = error instanceof ServiceError && UNKNOWN.has(error.code);
        if (known.protocol !== null || !isOlder || protocol === 1) throw error;
      }
    }
  }

  private async load(): Promise<QueueLoad & { ageS: number }> {
    const { copies, now } = this.parts;
    const { known } = this;
    if (known.load === null || now() - known.load.at >= LOAD_EVERY_S)
      known.load = { of: await copies.load(this.siteId), at: now() };
    return { ...known.load.of, ageS: Math.max(0, now() - known.load.at) };
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
    const answer = await this.ask(ClaimDocument, { offers: claimed.map(({ offer }) => String(offer)) });
    const { granted, refused } = outcomesOf(answer, claimed);
    if (granted.length > 0) await copies.granted(this.siteId, granted);
    await this.giveUp(refused);
    this.busy ||= granted.length + refused.length > 0;
  }

  /** Answers with why the owner does not accept what it is told of a run; null: it accepts all. */
  private async report(): Promise<string | null> {
    const { copies } = this.parts;
    const due = await copies.toReport(this.siteId, REPORT_BYTES);
    if (due.length === 0) return null;
    const outputs = new RunOutputs({ blobs: this.parts.blobs, ask: this.ask, put: this.put });
    const ready: Told[] = [];
    for (const one of due) ready.push(await this.withFiles(one, outputs));
    const refused = await this.reportOn(ready);
    const told = ready.filter((one) => !refused.has(one));
    // What is the owner's no more it has told us, or will; of what has ended there is no more to tell.
    const toldOf = (level: 1 | 2) =>
      told.filter(({ over }) => over === (level === 2)).map(({ offer }) => offer);
    for (const level of [1, 2] as const) await copies.told(this.siteId, toldOf(level), level);
    return refused.values().next().value ?? null;
  }

  /** Those that the owner refuses, as another release may: they are told once more alone, so that no other run waits behind them. */
  private async reportOn(runs: readonly Told[]): Promise<Map<Told, string>> {
    const refused = new Map<Told, string>();
    const reports = runs.flatMap((one) => reportsOf(one, this.known.protocol ?? PROTOCOL));
    if (reports.length === 0) return refused;
    try {
      checkResults(await this.ask(ReportDocument, { site: this.site, reports }), reports.length);
      this.busy = true;
    } catch (error) {
      if (!(error instanceof ServiceError) || error.code !== 'BAD_USER_INPUT') throw error;
      if (runs.length === 1) return refused.set(runs[0] as Told, error.message);
      const half = runs.length >> 1;
      for (const part of [runs.slice(0, half), runs.slice(half)])
        for (const [one, why] of await this.reportOn(part)) refused.set(one, why);
    }
    return refused;
  }

  /** As it is to be told: what has ended is over when its owner has its files, or does not take them. */
  private async withFiles(one: Told, outputs: RunOutputs): Promise<Told> {
    if (one.files === null) return one;
    const files = await this.parts.filesOfRuns([one.files]);
    if (files.length === 0) return one;
    const run = { site: this.site, job: `job_${one.jobId}`, epoch: one.epoch, files };
    const late = this.parts.now() - one.at > FILES_WITHIN_S;
    const outcome = late
      ? { refused: `the owner did not accept them within ${FILES_WITHIN_S} s` }
      : await outputs.handOver(run);
    if (outcome === 'done') return one;
    if (outcome === 'more' || outcome === 'later') {
      this.busy ||= outcome === 'more';
      return { ...one, over: false };
    }
    const message = `outputs: ${outcome.refused}`.slice(0, MAX.reasonChars);
    return { ...one, message, cause: one.cause === 'EXITED_ZERO' ? 'OUTPUTS_FAILED' : one.cause };
  }

  /** Copies that are over, and offers that we never took. */
  private async giveBack(offers: readonly number[], known = true): Promise<void> {
    if (offers.length === 0) return;
    await this.ask(ReturnDocument, { offers: offers.map(String) });
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

/** What is asked in a version: an earlier one is told nothing that it does not know. */
async function inVersion(
  protocol: number,
  { classes, kinds, ...ourselves }: Ourselves,
  load: TellLoad,
): Promise<[Document<unknown, { input: ExchangeInput }>, { input: ExchangeInput }]> {
  if (protocol > 2)
    return [ExchangeDocument, { input: { ...ourselves, protocol, kinds, classes, load: await load() } }];
  const before = { ...ourselves, protocol, kinds: kinds.map(({ devices: _, ...kind }) => kind) };
  if (protocol === 1) return [Exchange1Document, { input: before }];
  return [Exchange2Document, { input: { ...before, load: await load() } }];
}

/** The cause, by the name that a version has for it: before 3 no run of a peer was stopped for another. */
function causeIn(protocol: number, { cause, startedAt }: Pick<Told, 'cause' | 'startedAt'>): Told['cause'] {
  if (cause === 'INPUT_MISMATCH' && protocol < 2) return 'STAGING_FAILED';
  if (cause === 'PREEMPTED' && protocol < 3) return startedAt === null ? 'MACHINE_FAILED' : 'REFUSED';
  return cause;
}

/** Its start, unless the owner knows, and its end. */
function reportsOf(one: Told, protocol: number): RunReportInput[] {
  const { offer: _, files: __, jobId, epoch, told, over, startedAt, at, cause: ___, ...rest } = one;
  const of = { job: `job_${jobId}`, epoch };
  const { deviceS, deviceMemoryMb, ...before } = rest;
  const end = { ...before, ...(protocol > 1 && { deviceS, deviceMemoryMb }), cause: causeIn(protocol, one) };
  const time = (seconds: number): string => new Date(seconds * 1000).toISOString();
  return [
    ...(told === 0 && startedAt !== null ? [{ ...of, phase: 'STARTED' as const, at: time(startedAt) }] : []),
    ...(over ? [{ ...of, phase: 'ENDED' as const, at: time(at), ...end }] : []),
  ];
}
