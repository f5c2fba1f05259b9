/** Files of runs over HTTP: agents send them in parts, people download them. */

import { basename } from 'node:path/posix';
import type { Readable } from 'node:stream';
import type { Request, Response } from 'express';
import { MAX } from '../platform/limits.js';
import type { FileRow } from '../store/files.js';
import type { Context } from './context.js';
import { badInput } from './errors.js';
import { sendPaced } from './paced.js';

/** `PUT /files/ID?agent=…&offset=N`: the next part of a file. Answers how much of it is there, from where the agent goes on, and whether it is kept. */
export async function receiveFile({ services, viewer }: Context, req: Request, res: Response): Promise<void> {
  const { agent = '', offset: written } = req.query;
  const offset = Number(written);
  if (!Number.isSafeInteger(offset) || offset < 0) throw badInput('offset', written, 'a whole number from 0');
  const progress = await services.files.receive(viewer, req.params.id as string, {
    ...{ agent: String(agent), offset },
    body: Buffer.isBuffer(req.body) ? req.body : Buffer.alloc(0),
    digest: req.headers['content-digest']?.toString() ?? '',
  });
  res.json(progress);
}

/** `GET /jobs/ID/files/PATH?epoch=N&task=N`: a file that is kept, or a range of it. Its checksum is its tag, so what was begun can be continued. */
export async function sendFile({ services, viewer }: Context, req: Request, res: Response): Promise<void> {
  const epoch = req.query.epoch === undefined ? null : Number(req.query.epoch);
  if (epoch !== null && !(Number.isInteger(epoch) && epoch >= 1 && epoch < 2 ** 31))
    throw badInput('epoch', req.query.epoch, 'a whole number from 1');
  const task = Number(req.query.task ?? 0);
  if (!(Number.isInteger(task) && task >= 0 && task <= MAX.tasks))
    throw badInput('task', req.query.task, 'a whole number from 0');
  // A wildcard of the route is a list of the path's parts, which the types of Express do not know.
  const path = (req.params.path as unknown as string[]).join('/');
  const { file, read } = await services.files.find(viewer, req.params.id as string, epoch, task, path);
  await send(file, read, basename(path), req, res);
}

/** `GET /files/ID`: a file that another job has kept for a run at the agent's site, or a range of it. */
export async function sendInput({ services, viewer }: Context, req: Request, res: Response): Promise<void> {
  const { file, read } = await services.files.input(viewer, req.params.id as string);
  await send(file, read, basename(file.path), req, res);
}

/** `GET /exports/ID?key=SECRET`: the copy of a dataset for whoever was granted a job that reads it, or a range of it. */
export async function sendExport({ services }: Context, req: Request, res: Response): Promise<void> {
  const { file, read } = await services.exports.find(req.params.id as string, String(req.query.key));
  await send(file, read, 'data', req, res);
}

async function send(
  file: FileRow,
  read: (from: number, to: number) => Promise<Readable>,
  name: string,
  req: Request,
  res: Response,
): Promise<void> {
  const tag = `"${file.sha256}"`;
  res.attachment(name);
  // Never by its name: a page of somebody else's would be one of this service.
  res.setHeader('content-type', 'application/octet-stream');
  res.setHeader('x-content-type-options', 'nosniff');
  res.setHeader('cache-control', 'no-store');
  res.setHeader('accept-ranges', 'bytes');
  res.setHeader('etag', tag);
  const condition = req.headers['if-range'];
  const ranges =
    req.headers.range === undefined || (condition !== undefined && condition !== tag)
      ? -2
      : req.range(file.bytes, { combine: true });
  if (ranges === -1) {
    res.setHeader('content-range', `bytes */${file.bytes}`);
    return void res.status(416).end();
  }
  const range = typeof ranges === 'object' && ranges.length === 1 ? ranges[0] : undefined;
  const [from, to] = range ? [range.start, range.end + 1] : [0, file.bytes];
  if (range) res.status(206).setHeader('content-range', `bytes ${from}-${to - 1}/${file.bytes}`);
  res.setHeader('content-length', to - from);
  if (req.method === 'HEAD') return void res.end();
  await sendPaced(await read(from, to), res);
}
