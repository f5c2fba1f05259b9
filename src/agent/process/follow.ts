/** What the service is told of the output of runs: while they go on, and with their ends. */
import { type LiveOutput, nameOf, type OutputPiece, type RunName } from '../runner.js';
import { written } from './output.js';
import { type ProcessRun, upMs } from './run.js';

/** Output in a report; more goes before it. */
const REPORT_OUTPUT_BYTES = 64 << 10;
/** Of one stream in one piece, and of all streams at a time. */
const PIECE_BYTES = 256 << 10;
const PIECES_BYTES = 512 << 10;
/** Between two pieces of a run that goes on: it takes so long until somebody who follows it sees them. */
const FOLLOW_MS = 500;

const STREAMS = [
  ['STDOUT', 'out'],
  ['STDERR', 'err'],
] as const;

/** Of a run, what is needed to follow what it writes. */
export type Followed = RunName & Pick<ProcessRun, 'outputs' | 'told' | 'startedUpMs' | 'terminal'>;

interface Piece {
  told: OutputPiece;
  length: number;
}

/**
 * Pieces that the service does not have, a few hundred kilobytes in all.
 *
 * @param runs those that it wants to hear of; `isOver`: the command has ended
 */
export function freshOutput(runs: Iterable<{ run: Followed; isOver: boolean }>): LiveOutput[] {
  const now = upMs();
  const pieces: LiveOutput[] = [];
  let bytes = 0;
  for (const { run, isOver } of runs) {
    const { atMs, asks } = run.told;
    const { terminal } = run;
    if (!isOver && !terminal && now - Math.max(run.startedUpMs, atMs) < FOLLOW_MS) continue;
    const questions = (): Piece[] =>
      STREAMS.map(([stream]) => ({ told: { stream, start: 0, text: '', bytes: 0 }, length: 0 }));
    for (const { told, length } of asks ? questions() : unsent(run, PIECE_BYTES)) {
      pieces.push({ ...nameOf(run), ...told, ...(terminal && { terminal }) });
      bytes += length;
    }
    if (bytes >= PIECES_BYTES) break;
  }
  return pieces;
}

/** The service has a piece, or will never take it. `received`: up to which byte it has the stream. */
export function delivered(
  { told }: Pick<Followed, 'told'>,
  { stream, start, text, base64 }: LiveOutput,
  received: number,
): void {
  const length = text === undefined ? Buffer.byteLength(base64!, 'base64') : Buffer.byteLength(text);
  told.bytes[stream] = Math.max(told.bytes[stream], start + length, received);
  told.atMs = told.asks ? 0 : upMs();
  told.asks = false;
}

/** What is left to be told of a run's output; null: it is too much for a report, and goes before. */
export function lastOutputs(run: Followed): OutputPiece[] | null {
  const sent = { ...run.told.bytes };
  const last: OutputPiece[] = [];
  let room = REPORT_OUTPUT_BYTES;
  for (;;) {
    const pieces = unsent(run, room + 1, sent);
    if (pieces.length === 0) break;
    for (const { told, length } of pieces) {
      room -= length;
      if (room < 0) return null;
      last.push(told);
      sent[told.stream] = told.start + length;
    }
  }
  // That it wrote nothing is worth telling too.
  for (const [stream] of STREAMS) if (sent[stream] === 0) last.push({ stream, start: 0, text: '', bytes: 0 });
  return last;
}

/** The next piece of each stream that the service does not have. */
function unsent({ outputs, told }: Followed, most: number, sent = told.bytes): Piece[] {
  return STREAMS.flatMap(([stream, file]) => {
    const found = outputs[file].next(sent[stream], most);
    if (!found) return [];
    const { start, body } = found;
    return [{ told: { stream, start, ...written(body), bytes: outputs[file].size }, length: body.length }];
  });
}
