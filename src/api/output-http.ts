/** What runs wrote, over HTTP. */
import { Readable } from 'node:stream';
import type { Request, Response } from 'express';
import type { OutputRow } from '../store/rows.js';
import type { Context } from './context.js';
import { badInput } from './errors.js';
import { sendPaced } from './paced.js';

/** Bytes that are read at a time: more only when the client has taken them. */
const PART_BYTES = 256 * 1024;

/** What is read of a stream, from one byte on. */
type Read = (part: { from: number; most: number }) => Promise<OutputRow | null>;

/**
 * `GET /jobs/ID/output?stream=stdout|stderr&epoch=N&task=N`. Ranges count the bytes that were written; those of them that are not kept
 * any more cannot be had (416). Without a range all that is kept, with a note where some are left out.
 */
export async function sendOutput(context: Context, req: Request, res: Response): Promise<void> {
  const { stream = 'stdout' } = req.query;
  if (stream !== 'stdout' && stream !== 'stderr') throw badInput('stream', stream, 'stdout or stderr');
  const given = { epoch: whole(req, 'epoch', 1), task: whole(req, 'task', 0) ?? 0 };
  const name = stream === 'stdout' ? 'STDOUT' : 'STDERR';
  const id = req.params.id as string;
  const { output } = context.services;
  const first = await output.bytes(context.viewer, id, given.epoch, given.task, name, { most: 1 });
  // The same run until the end, whatever begins meanwhile.
  const epoch = first?.epoch ?? given.epoch;
  const read: Read = (part) => output.bytes(context.viewer, id, epoch, given.task, name, part);
  const total = first?.bytes ?? 0;
  res.setHeader('content-type', 'application/octet-stream');
  res.setHeader('content-disposition', `attachment; filename="${id}.${stream === 'stdout' ? 'out' : 'err'}"`);
  res.setHeader('x-content-type-options', 'nosniff');
  res.setHeader('cache-control', 'no-store');
  res.setHeader('accept-ranges', 'bytes');
  const ranges = req.headers.range === undefined ? -2 : req.range(total, { combine: true });
  if (ranges === undefined || ranges === -2 || (typeof ranges === 'object' && ranges.length !== 1))
    return sendPaced(Readable.from(first === null ? [] : withNotes(read)), res);
  const range = typeof ranges === 'object' ? ranges[0] : undefined;
  const end = range && (await keptUpTo(read, range.start, range.end + 1));
  if (!range || !end) {
    res.setHeader('content-range', `bytes */${total}`);
    return void res.status(416).end();
  }
  res.status(206).setHeader('content-range', `bytes ${range.start}-${end - 1}/${total}`);
  res.setHeader('content-length', end - range.start);
  await sendPaced(Readable.from(bytesOf(read, range.start, end)), res);
}

function whole(req: Request, field: 'epoch' | 'task', least: number): number | null {
  const written = req.query[field];
  if (written === undefined) return null;
  const number = Number(written);
  if (!(Number.isInteger(number) && number >= least && number < 2 ** 31))
    throw badInput(field, written, `a whole number, at least ${least}`);
  return number;
}

/** All that is kept, and where something is left out, how much. */
async function* withNotes(read: Read): AsyncGenerator<Buffer> {
  for (let at = 0; ; ) {
    const pieces = (await read({ from: at, most: PART_BYTES }))?.pieces ?? [];
    if (pieces.length === 0) return;
    for (const { start, body } of pieces) {
      if (start > at) yield Buffer.from(`\n[${start - at} bytes left out]\n`);
      yield body;
      at = start + body.length;
    }
  }
}

async function* bytesOf(read: Read, from: number, to: number): AsyncGenerator<Buffer> {
  for (let at = from; at < to; ) {
    const pieces = (await read({ from: at, most: Math.min(PART_BYTES, to - at) }))?.pieces ?? [];
    // Retention has come in between: what is sent is shorter than was said, and so known to be broken.
    if (pieces[0]?.start !== at) throw new Error('the rest of the output has been removed');
    for (const { body } of pieces) {
      yield body;
      at += body.length;
    }
  }
}

/** Up to where the bytes from `from` on are kept without a gap, at most to `to`; null: the first is not. */
async function keptUpTo(read: Read, from: number, to: number): Promise<number | null> {
  let end = from;
  while (end < to) {
    const pieces = (await read({ from: end, most: Math.min(PART_BYTES, to - end) }))?.pieces ?? [];
    const before = end;
    for (const { start, body } of pieces) if (start === end) end += body.length;
    if (end === before) break;
  }
  return end > from ? end : null;
}
