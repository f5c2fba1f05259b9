/** The service over TLS: what connections bring takes turns as without it (inflow.ts). */
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import type { Socket } from 'node:net';
import { connect, type TLSSocket } from 'node:tls';
import { afterEach, expect, test } from 'vitest';
import { withApi } from './support/api.js';
import { withCertificate } from './support/certificate.js';
import { schedule } from './support/schedule.js';

const tls = withCertificate();
const api = withApi((config) => ({ ...config, tls }));

const open: Socket[] = [];
afterEach(async () => {
  await Promise.all(open.splice(0).map((socket) => socket.destroy().closed || once(socket, 'close')));
});
function kept<T extends Socket>(socket: T): T {
  open.push(socket.on('error', () => {}));
  return socket;
}
const port = () => Number(new URL(api.origin).port);
/** A connection that has shaken hands, and then asks for nothing. */
const shaken = (): TLSSocket => kept(connect({ host: '127.0.0.1', port: port(), rejectUnauthorized: false }));

test('long queries in any portions, one behind the other', async () => {
  const body = JSON.stringify({ query: '{ viewer { name } }', variables: { x: 'é'.repeat(200_000) } });
  const head = `POST /graphql HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\nauthorization: Bearer ${api.adminKey}\r\n\r\n`;
  const one = Buffer.from(head + body);
  for (const portion of [one.length, 8_191, 1_000]) {
    let received = '';
    const socket = shaken().setEncoding('utf8');
    socket.on('data', (text) => {
      received += text;
    });
    for (const answers of [1, 2]) {
      for (let at = 0; at < one.length; at += portion) socket.write(one.subarray(at, at + portion));
      await expect.poll(() => received.split('"data":{"viewer"').length - 1).toBe(answers);
    }
  }
});

test('uploads and downloads of files', async () => {
  const { createSite } = await api.must<{ createSite: { site: { id: string } } }>(
    'mutation { createSite(input: { name: "s" }) { site { id } } }',
  );
  const site = createSite.site.id;
  await api.must(
    `mutation { createMachine(input: { siteId: "${site}", name: "m", cpus: 1, memoryMb: 1000 }) { machine { id } } }`,
  );
  const { key } = await api.user('AGENT', 'agent', site);
  const agent = await api.serve(site, key);
  const { submitJobs } = await api.must<{ submitJobs: { jobIds: [string] } }>(
    'mutation { submitJobs(input: { jobs: [{ command: "true", outputs: [{ path: "out" }] }] }) { jobIds } }',
  );
  await schedule(api.parts);
  const [job] = submitJobs.jobIds;
  const body = randomBytes(3_000_000);
  const sha256 = createHash('sha256').update(body);
  const { keepFiles } = await api.must<{ keepFiles: [{ id: string }] }>(
    'mutation ($site: ID!, $agent: ID!, $job: ID!, $files: [RunFileInput!]!) { keepFiles(site: $site, agent: $agent, job: $job, epoch: 1, files: $files) { id } }',
    { site, agent, job, files: [{ path: 'out', bytes: body.length, sha256: sha256.copy().digest('hex') }] },
    key,
  );
  const sent = await fetch(`${api.origin}/files/${keepFiles[0].id}?agent=${agent}&offset=0`, {
    method: 'PUT',
    headers: { authorization: `Bearer ${key}`, 'content-digest': `sha-256=:${sha256.digest('base64')}:` },
    body: new Uint8Array(body),
  });
  expect(await sent.json()).toMatchObject({ receivedBytes: body.length });
  const report = { job, epoch: 1, phase: 'ENDED', cause: 'EXITED_ZERO', exitCode: 0 };
  await api.must(
    'mutation ($site: ID!, $agent: ID!, $reports: [RunReportInput!]!) { reportRuns(site: $site, agent: $agent, reports: $reports) { results } }',
    { site, agent, reports: [{ ...report, at: new Date().toISOString() }] },
    key,
  );
  const fetched = await fetch(`${api.origin}/jobs/${job}/files/out`, {
    headers: { authorization: `Bearer ${api.adminKey}` },
  });
  expect(Buffer.from(await fetched.arrayBuffer()).equals(body)).toBe(true);
});

test('operations and subscriptions over WebSocket', async () => {
  const client = api.subscriber();
  const x = 'é'.repeat(200_000);
  const one = client.iterate({ query: '{ viewer { name } }', variables: { x } });
  expect((await one.next()).value).toMatchObject({ data: { viewer: { name: 'admin' } } });
  const news = client.iterate({
    query: 'subscription { siteUpdated(after: "0") { site { name } } }',
  });
  await api.must('mutation { createSite(input: { name: "new" }) { site { id } } }');
  for (;;) {
    const { value } = await news.next();
    if (JSON.stringify(value).includes('"new"')) break;
  }
  await client.dispose();
});
