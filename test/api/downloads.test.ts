/** Downloads that nobody reads: what they hold, and for how long. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import { connect, type Socket } from 'node:net';
import { Readable } from 'node:stream';
import type { Response } from 'express';
import { afterEach, expect, test } from 'vitest';
import { sendPaced } from '../../src/api/paced.js';
import { portOf } from '../support/ports.js';
import { unique, withApi } from './support/api.js';

const api = withApi();
const MIB = 1024 * 1024;
const open: Socket[] = [];
afterEach(() => {
  for (const socket of open.splice(0)) socket.destroy();
});

/** A job that has written 8 MiB in pieces of 512 KiB, without the third. */
async function written(): Promise<string> {
  const { submitJobs } = await api.must<{ submitJobs: { jobIds: [string] } }>(
    'mutation { submitJobs(input: { jobs: [{ command: "true" }], allowUnfit: true }) { jobIds } }',
  );
  const [job] = submitJobs.jobIds;
  const client = await api.db.pool.connect();
  // There is no run: nobody has to have run it.
  await client.query('SET session_replication_role = replica');
  await client.query(
    `INSERT INTO outputs (job_id, epoch, task, stream, start, body, bytes)
     SELECT $1, 1, 0, 'STDOUT', i * 524288, decode(repeat(lpad(to_hex(i), 2, '0'), 524288), 'hex'), 8388608 FROM generate_series(0, 15) i WHERE i <> 2`,
    [Number(job.slice('job_'.length))],
  );
  client.release(true);
  return job;
}

test('hold a part of what they send, however many there are and however long that is', async () => {
  const job = await written();
  const { key } = await api.user('ADMIN', unique('reader'));
  const { port } = new URL(api.origin);
  const held = () => process.memoryUsage().arrayBuffers;
  const before = held();
  let answered = 0;
  for (let i = 0; i < 24; i++) {
    const socket = connect(Number(port), '127.0.0.1');
    open.push(socket);
    socket.write(`GET /jobs/${job}/output HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${key}\r\n\r\n`);
    // The head comes, and then nothing more is read.
    socket.once('readable', () => answered++);
  }
  await expect.poll(() => answered).toBe(24);
  expect(held() - before).toBeLessThan(60 * MIB);

  const all = await fetch(`${api.origin}/jobs/${job}/output`, {
    headers: { authorization: `Bearer ${key}` },
  });
  const body = Buffer.from(await all.arrayBuffer());
  const note = Buffer.from('\n[524288 bytes left out]\n');
  expect(body.length).toBe(15 * 524288 + note.length);
  expect(body.indexOf(note)).toBe(2 * 524288);
  const part = await fetch(`${api.origin}/jobs/${job}/output`, {
    headers: { authorization: `Bearer ${key}`, range: 'bytes=524287-9999999' },
  });
  expect(part.headers.get('content-range')).toBe('bytes 524287-1048575/8388608');
  expect((await part.arrayBuffer()).byteLength).toBe(524289);
});

test('are cut off when nothing is taken any more', async () => {
  const server = createServer((_, res) => {
    void sendPaced(
      Readable.from(
        (function* () {
          for (;;) yield Buffer.alloc(MIB);
        })(),
      ),
      res as Response,
      50,
    );
  });
  const port = await portOf(server);
  const socket = connect(port, '127.0.0.1');
  open.push(socket);
  socket.write('GET / HTTP/1.1\r\nhost: x\r\n\r\n');
  const [connection] = (await once(server, 'connection')) as [Socket];
  await once(connection, 'close');
  server.close();
});
