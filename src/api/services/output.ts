/** What runs write: as a text, as a stream that is followed, and as bytes. */
import { setTimeout as sleep } from 'node:timers/promises';
import { LRUCache } from 'lru-cache';
import { isTerminal, type JobState, waitingStates } from '../../core/states.js';
import { MAX } from '../../platform/limits.js';
import { turns } from '../../platform/turns.js';
import type { JobRow, OutputRow } from '../../store/rows.js';
import type { OutputPiece } from '../../store/store.js';
import { hearTerminals } from '../../store/terminals.js';
import { accountOf } from '../admission/shares.js';
import type { Viewer } from '../auth.js';
import { badInput, notFound } from '../errors.js';
import type { OutputPart, SubscriptionJobOutputArgs } from '../generated/types.js';
import { localId } from '../ids.js';
import { pulled } from '../subscriptions/streams.js';
import { guarded, maySeeJob } from './access.js';
import type { ServiceParts } from './parts.js';

type Stream = OutputPiece['stream'];

/** Between two looks for more of a run that goes on: its agent sends about as often. */
const FOLLOW_MS = 500;
/** Of one message. */
const PART_BYTES = 256 * 1024;
/** Looks that are shared by all who follow the same run from the same place. */
const LOOKS_KEPT = 10_000;
const PARTS_KEPT = 100;

// biome-ignore lint/complexity/noExcessiveLinesPerFunction: a module: it returns short functions that share its parts
export function createOutputService({ queries, feed }: ServiceParts) {
  const rowOf = shared(LOOKS_KEPT, (id: number) => queries.jobsByIds([id]).then(([row]) => row ?? null));
  const partAt = shared(PARTS_KEPT, (place: string) => {
    const { run, from } = JSON.parse(place) as Place;
    return queries.output(run.jobId, run.epoch, run.task, run.stream, { from, most: PART_BYTES });
  });

  /** The job as the viewer may see it; what may not be seen is not there. */
  async function seen(viewer: Viewer, job: string): Promise<JobRow> {
    const id = localId('job', job, 'jobId');
    const [row] = await queries.jobsByIds([id]);
    if (!row || !maySeeJob(viewer, row)) throw notFound('job', job);
    return row;
  }

  return {
    ...guarded({
      async jobOutput(viewer: Viewer, { jobId, task, stream, after, ...args }: SubscriptionJobOutputArgs) {
        const epoch = args.epoch ?? null;
        const { id, terminal } = await seen(viewer, jobId);
        const account = accountOf(viewer);
        const stop = new AbortController();
        // Somebody may be typing: what is new is looked for when there is something.
        const news = terminal === null ? null : newsOf(feed, id);
        let { run, at } = placeOf(after ?? null);
        let done = false;
        return pulled<OutputPart>(
          async () => {
            while (!done && !stop.signal.aborted) {
              await turns.turn(account);
              // Asked before the output, so that of a run that has ended then nothing comes any more.
              news?.clear();
              const row = news === null ? await rowOf(id) : ((await queries.jobsByIds([id]))[0] ?? null);
              if (!row) return null;
              const latest = epoch ?? row.epoch;
              if (run !== latest && (run === null || hasEnded(row, run))) {
                // Started again: what it writes now begins anew.
                if (run !== null) at = 0;
                run = latest > 0 ? latest : null;
              }
              const ended = hasEnded(row, run);
              const part =
                run === null
                  ? null
                  : await next({ jobId: id, epoch: run, task, stream }, at, ended, news !== null);
              if (part) {
                // All who shared the look have it now: each tells it in a turn of its own.
                await turns.turn(account);
                at = part.start + part.length;
                return part;
              }
              if (ended && (epoch !== null || isTerminal(row.state))) {
                done = true;
                const of = run ?? row.epoch;
                const nothing = { start: at, text: '', base64: '', length: 0, bytes: at };
                return { cursor: cursorOf(of, at), epoch: of, ...nothing, last: true };
              }
              const soon = sleep(FOLLOW_MS, undefined, { signal: stop.signal }).catch(() => {});
              await (news === null ? soon : Promise.race([soon, news.come()]));
            }
            return null;
          },
          () => {
            stop.abort();
            news?.stop();
          },
        );
      },
    }),

    /** For the download: what is kept from a byte on, up to so many, and how much has been written. null: nothing was kept. */
    async bytes(
      viewer: Viewer,
      job: string,
      epoch: number | null,
      task: number,
      stream: Stream,
      part: { from?: number; most: number },
    ): Promise<OutputRow | null> {
      const { id } = await seen(viewer, job);
      return queries.output(id, epoch, task, stream, part);
    },
  };

  async function next(
    run: Place['run'],
    from: number,
    ended: boolean,
    anew: boolean,
  ): Promise<OutputPart | null> {
    const { epoch } = run;
    // What an ended run has left may have come after a look that others shared.
    const found =
      ended || anew
        ? await queries.output(run.jobId, epoch, run.task, run.stream, { from, most: PART_BYTES })
        : await partAt(JSON.stringify({ run, from } satisfies Place));
    const first = found?.pieces[0];
    if (!found || !first || first.body.length === 0) return null;
    const bodies: Buffer[] = [];
    let end = first.start;
    for (const { start, body } of found.pieces) {
      if (start !== end) break;
      bodies.push(body);
      end += body.length;
    }
    const all = Buffer.concat(bodies);
    const body = ended && end >= found.bytes ? all : wholeCharacters(all);
    if (body.length === 0) return null;
    const { bytes } = found;
    const encoded = { text: plainText(body), base64: body.toString('base64') };
    const cursor = cursorOf(epoch, first.start + body.length);
    return { cursor, epoch, start: first.start, ...encoded, length: body.length, bytes, last: false };
  }
}

/** Whether a run has written since that was last cleared; `come`: when it has. */
function newsOf(feed: ServiceParts['feed'], id: number) {
  let fresh = false;
  let heard = (): void => {};
  const stop = hearTerminals(feed.words, (news) => {
    if (news.is !== 'WROTE' || news.jobId !== id) return;
    fresh = true;
    heard();
  });
  return {
    clear() {
      fresh = false;
    },
    come: () =>
      new Promise<void>((resolve) => {
        heard = resolve;
        if (fresh) resolve();
      }),
    stop,
  };
}

/** Where somebody follows a stream of a run. */
interface Place {
  run: { jobId: number; epoch: number; task: number; stream: Stream };
  from: number;
}

/** A look for all who come within the time between two looks of each of them. */
function shared<K extends string | number, V>(
  max: number,
  look: (of: K) => Promise<V>,
): (of: K) => Promise<V> {
  const looks = new LRUCache<K, Promise<V>>({ max, ttl: FOLLOW_MS / 2 });
  return (of) => {
    const known = looks.get(of);
    if (known) return known;
    const looking = look(of);
    looks.set(of, looking);
    looking.catch(() => looks.delete(of));
    return looking;
  };
}

/** Which run, and how many bytes of it. */
const cursorOf = (epoch: number, bytes: number): string => `${epoch}-${bytes}`;

function placeOf(cursor: string | null): { run: number | null; at: number } {
  if (cursor === null) return { run: null, at: 0 };
  const [, epoch, bytes] = /^(\d{1,9})-(\d{1,15})$/.exec(cursor) ?? [];
  if (epoch === undefined) throw badInput('after', cursor, 'a cursor of this subscription');
  return { run: Number(epoch), at: Number(bytes) };
}

const waiting: ReadonlySet<JobState> = new Set(waitingStates);

/** Whether a run is over; null: the one to come. */
function hasEnded({ state, epoch }: JobRow, run: number | null): boolean {
  if (isTerminal(state)) return true;
  return run !== null && (run < epoch || (run === epoch && waiting.has(state)));
}

/** What was kept as a text of at most so many bytes; where something is left out, it says how much. */
export function outputText({ bytes, pieces }: OutputRow, most: number): string {
  if (!(most >= 1 && most <= MAX.outputTextBytes))
    throw badInput('maxBytes', most, `1 to ${MAX.outputTextBytes}`);
  const kept = pieces.reduce((sum, { body }) => sum + body.length, 0);
  const halves = kept > most ? [Math.ceil(most / 2), Math.floor(most / 2)] : [kept, 0];
  const chosen = kept > most ? [...firstOf(pieces, halves[0]!), ...lastOf(pieces, halves[1]!)] : pieces;
  const texts: Buffer[] = [];
  let end = 0;
  const gapTo = (start: number): void => {
    if (start > end) texts.push(Buffer.from(`\n[${start - end} bytes left out]\n`));
  };
  for (const { start, body } of chosen) {
    gapTo(start);
    texts.push(body);
    end = start + body.length;
  }
  gapTo(bytes);
  return plainText(Buffer.concat(texts));
}

function firstOf(pieces: OutputRow['pieces'], most: number): OutputRow['pieces'] {
  let room = most;
  return pieces.flatMap(({ start, body }) => {
    const taken = body.subarray(0, room);
    room -= taken.length;
    return taken.length > 0 ? [{ start, body: taken }] : [];
  });
}

function lastOf(pieces: OutputRow['pieces'], most: number): OutputRow['pieces'] {
  let room = most;
  return pieces
    .toReversed()
    .flatMap(({ start, body }) => {
      const taken = body.subarray(Math.max(0, body.length - room));
      room -= taken.length;
      return taken.length > 0 ? [{ start: start + body.length - taken.length, body: taken }] : [];
    })
    .toReversed();
}

/** No NUL, and what is no UTF-8 replaced. */
const plainText = (bytes: Buffer): string => bytes.toString('utf8').replaceAll('\0', '\uFFFD');

/** Without the beginning of a UTF-8 character at the end. */
function wholeCharacters(bytes: Buffer): Buffer {
  for (let back = 1; back <= Math.min(3, bytes.length); back++) {
    const byte = bytes[bytes.length - back]!;
    if ((byte & 0xc0) === 0x80) continue;
    const needed = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1;
    return needed > back ? bytes.subarray(0, bytes.length - back) : bytes;
  }
  return bytes;
}
