/**
 * Attacks by users with a good key, each by its name: `node attacks.mjs NAME SECONDS`, with the address, the key and what it is aimed at in
 * the environment (ATTACK_URL, ATTACK_KEY, ATTACK_JOB). A process of its own, so that nobody else waits for its work.
 * Without a name it lists them. It prints what the service answered, and fails where that is not what the attack is about (`SERVED`): one
 * that an unrelated limit stops shows nothing. docs/attacks.md says what each showed.
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
/** So long it goes on at least, and until it is served as it is meant to be; a busy machine gets so much more time for that. */
const until = Date.now() + Number(seconds) * 1000;
const LATE_MS = 60_000;
const answers = new Map();
const told = (code, times = 1) => answers.set(String(code), (answers.get(String(code)) ?? 0) + times);
const isServed = () => served().some((code) => code === 'held' || answers.get(code) > 0);
const goesOn = () => Date.now() < until || (!isServed() && Date.now() < until + LATE_MS);
const authorization = `Bearer ${key}`;
const agent = new Agent({ keepAlive: true, maxSockets: Infinity });
async function resting() {
  while (goesOn()) await sleep(50);
}
const text = (n, make) => Array.from({ length: n }, (_, i) => make(i)).join(' ');

/** How many connections are still there at the end. */
async function holding(sockets) {
  await resting();
  told('held', sockets.filter((socket) => !socket.destroyed).length);
}

/** One request; what it was answered is counted, and its connection goes on. */
function post(body, headers = {}, more = {}) {
  return new Promise((resolve) => {
    const sent = request(
      url,
      {
        agent,
        method: 'POST',
        headers: {
          ...(key && { authorization }),
          'content-type': 'application/json',
          'content-length': Buffer.byteLength(body),
          ...headers,
        },
        ...more,
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
  socket.on('pong', () => told('pong'));
  socket.on('message', (data) => {
    const begin = data.subarray(0, 3_000).toString();
    told(/"code":"(\w+)"/.exec(begin)?.[1] ?? /"type":"(\w+)"/.exec(begin)?.[1]);
  });
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
/** So many times on each of 20 connections, one behind the other, until the connection is closed; then again. */
const pipelining = (bytes, times) =>
  Promise.all(
    Array.from({ length: 20 }, async () => {
      while (goesOn()) {
        const socket = await plain();
        socket.once('data', (piece) => told(/^HTTP.1.1 (\d+)/.exec(piece)?.[1]));
        socket.resume();
        while (goesOn() && !socket.destroyed) if (!socket.write(bytes.repeat(times))) await drained(socket);
        told('closed');
      }
    }),
  );
const SUBMIT = 'mutation ($jobs: [JobInput!]!) { submitJobs(input: { jobs: $jobs }) { errors { message } } }';
const jobs = (make) => Array.from({ length: JOBS }, (_, i) => make(i));
const CHANGES =
  'subscription ($after: String) { jobUpdated(after: $after) { cursor event { at } job { id name command site { name } } } }';
const OUTPUT = `subscription { jobOutput(jobId: "${job}") { text } }`;

const ATTACKS = {
  // The service's own time and memory.
  async 'bodies announced and never sent'() {
    // Down to the last of the memory there may be.
    const sockets = [];
    for (const bytes of [...Array(8).fill(32 * MIB), ...Array(8).fill(MIB), ...Array(16).fill(64 * 1024)]) {
      const socket = await plain();
      socket.write(`${head(`content-length: ${bytes}`)}{`);
      sockets.push(socket);
    }
    await holding(sockets);
  },
  'pings on 40 connections': () => flooding(40, frame(0x89)),
  async '1800 followers of an output'() {
    const sockets = await opened(9);
    for (const socket of sockets) for (let i = 0; i < 200; i++) subscribe(socket, i, OUTPUT);
    await holding(sockets.map((socket) => socket._socket));
  },
  async '800 replays of all events'() {
    for (const socket of await opened(4))
      for (let i = 0; i < 200; i++) subscribe(socket, i, CHANGES, { after: '0' });
    await resting();
  },
  'a field 420 times': () => posting(20, query(`{ ${'viewer { id } '.repeat(420)} }`)),
  'a field 90 times': () =>
    posting(20, (i, n) => query(`query Q${n}x${i} { ${'viewer { id } '.repeat(90)} }`)),
  'bad jobs, 32 MB': () =>
    posting(
      4,
      query(SUBMIT, { jobs: jobs(() => ({ command: 'x'.repeat(3_000), tasks: 0, estimateS: -1 })) }),
    ),
  'refused jobs under 45 aliases': () =>
    posting(
      2,
      query(
        `mutation ($jobs: [JobInput!]!) { ${text(45, (i) => `a${i}: submitJobs(input: { jobs: $jobs }) { errors { message } }`)} }`,
        { jobs: jobs(() => ({ command: '' })) },
      ),
    ),

  // API.
  'pipelined requests': () => {
    const body = query('{ viewer { id } }');
    return pipelining(head(`content-length: ${body.length}`) + body, 200);
  },
  'requests beyond the rate': () => posting(200, query('{ viewer { id } }')),
  'arrays within arrays': () =>
    posting(8, `{"query":"{ viewer { id } }","variables":{"x":${'['.repeat(2e6)}${']'.repeat(2e6)}}}`),
  'a query of 32 MB': () => posting(8, query(`{ viewer { id } } #${'x'.repeat(31 * MIB)}`)),
  'a text of 32 MB': () => posting(4, query('{ viewer { id } }', { x: '\n'.repeat(15 * MIB) })),
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
      query(`{ ${text(60, (i) => `a${i}: job(id: "${job}") { whyWaiting { message } expectedStart }`)} }`),
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
    const sockets = [];
    while (goesOn()) {
      const socket = await plain();
      socket.pause();
      socket.write(head(`content-length: ${body.length}`) + body);
      sockets.push(socket);
      await sleep(20);
    }
    await holding(sockets);
  },
  'uploads that trickle': async () => {
    const sockets = await Promise.all(Array.from({ length: 90 }, plain));
    for (const socket of sockets)
      socket.write(
        head(`content-length: ${8 * MIB}`).replace(`POST ${pathname}`, 'PUT /files/1?agent=agent_1&offset=0'),
      );
    for (const socket of sockets) socket.write('x'.repeat(7 * MIB));
    while (goesOn()) {
      for (const socket of sockets)
        if (!socket.destroyed) socket.write('x'.repeat(1 + 999 * (Math.random() < 0.5)));
      await sleep(10);
    }
    await holding(sockets);
  },
  'filters with 1000 ids': () =>
    posting(
      40,
      query(`query ($ids: [ID!]) { ${text(90, (i) => `a${i}: jobCount(filter: { ids: $ids })`)} }`, {
        ids: jobs((i) => `job_${i + 1}`).slice(0, 1_000),
      }),
    ),

  // Without a key.
  'pipelined requests without a key': () => pipelining(`GET / HTTP/1.1\r\nhost: ${host}\r\n\r\n`, 5_000),
  'requests without a key': () => posting(100, query('{ viewer { id } }'), { authorization: '' }),
  // Each is from an address, and for a name, that nobody has tried before: only then is it compared with a hash at all.
  'wrong passwords from many addresses': () =>
    Promise.all(
      Array.from({ length: 200 }, async (_, i) => {
        const from = { path: '/sign-in/password', agent: undefined, localAddress: `127.7.7.${i + 1}` };
        for (let n = 0; goesOn(); n++)
          await post(JSON.stringify({ user: `user-${i}-${n}`, password: 'made up each time' }), {}, from);
      }),
    ),
  'keys that are made up': () =>
    posting(100, query('{ viewer { id } }'), { authorization: `Bearer ${'x'.repeat(40)}` }),
  'pages that are not there': () =>
    Promise.all(
      Array.from({ length: 100 }, async () => {
        while (goesOn())
          await new Promise((resolve) => {
            request(new URL('/nothing', url), { agent }, (response) => {
              told(response.statusCode);
              response.resume().on('close', resolve);
            })
              .on('error', () => setTimeout(resolve, 50))
              .end();
          });
      }),
    ),
  'connections that ask for nothing': async () => {
    const sockets = [];
    // Some may wait for the service to take them until the end.
    const opening = async () => {
      for (; goesOn(); await sleep(5))
        if (sockets.length < 4_000) sockets.push(...(await plain().then(Array.of, () => [])));
    };
    for (let i = 0; i < 20; i++) void opening();
    await holding(sockets);
  },

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
          subscribe(socket, n, `query Q${n} { ${text(90, (i) => `b${i}x${n}: viewer { id name role }`)} }`);
      await sleep(1);
    }
  },
  'operations that are not valid': () => {
    const invalid = query(`{ ${text(300, (i) => `nothing${i}`)} }`);
    return flooding(
      20,
      Buffer.concat(
        Array.from({ length: 300 }, (_, id) =>
          message({ id: String(id), type: 'subscribe', payload: JSON.parse(invalid) }),
        ),
      ),
    );
  },
  'messages that never end': async () => {
    const begun = Buffer.from([0x81, 0xff, 0, 0, 0, 0, 0, 0x3f, 0xff, 0xff, 0, 0, 0, 0]);
    const sockets = await opened(200);
    for (const socket of sockets) {
      socket._socket.write(begun);
      socket._socket.write(Buffer.alloc(3 * MIB, 'x'));
    }
    await holding(sockets.map((socket) => socket._socket));
  },
  'subscribers that never read': async () => {
    const sockets = await opened(40);
    for (const socket of sockets) {
      for (let i = 0; i < 20; i++) subscribe(socket, i, CHANGES, { after: '0' });
      socket._socket.pause();
    }
    await holding(sockets.map((socket) => socket._socket));
  },
  'every event to 2000 subscriptions': async () => {
    for (const socket of await opened(10)) for (let i = 0; i < 200; i++) subscribe(socket, i, CHANGES);
    const change =
      'mutation ($n: Int!) { reprioritizeJobs(input: { selection: { ids: ["' +
      job +
      '"] }, boost: $n }) { unchanged { message } } }';
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

/** Of what may be answered, one that shows that the attack came where it was to come; 200 where nothing is said. `held` is told at the end. */
const SERVED = {
  'bodies announced and never sent': ['held'],
  'pings on 40 connections': ['pong'],
  '1800 followers of an output': ['held'],
  '800 replays of all events': ['next'],
  'a field 420 times': ['QUERY_TOO_COMPLEX'],
  'pipelined requests': ['closed'],
  'requests beyond the rate': ['RATE_LIMITED'],
  'arrays within arrays': ['BAD_REQUEST'],
  'a query of 32 MB': ['QUERY_TOO_COMPLEX'],
  'misspelled names': ['GRAPHQL_VALIDATION_FAILED'],
  'operations and fragments without end': ['QUERY_TOO_COMPLEX'],
  'answers that nobody reads': ['held'],
  'uploads that trickle': ['held'],
  'pipelined requests without a key': ['closed'],
  'requests without a key': ['UNAUTHENTICATED'],
  'wrong passwords from many addresses': ['UNAUTHENTICATED'],
  'keys that are made up': ['UNAUTHENTICATED'],
  'pages that are not there': ['404'],
  'connections that ask for nothing': ['held'],
  'messages that ask for a pong': ['pong'],
  'frames without content': ['pong'],
  'subscriptions begun and ended': ['RATE_LIMITED'],
  'documents that nobody knows': ['next'],
  'operations that are not valid': ['GRAPHQL_VALIDATION_FAILED'],
  'messages that never end': ['held'],
  'subscribers that never read': ['held'],
  'every event to 2000 subscriptions': ['next'],
  'a byte at a time': ['next'],
  'connections opened and closed': ['connection_ack'],
};

function served() {
  return SERVED[name] ?? ['200'];
}

if (name === undefined) console.log(Object.keys(ATTACKS).join('\n'));
else {
  // Whatever waits for an answer that does not come.
  setInterval(() => goesOn() || setTimeout(done, 500), 500).unref();
  ATTACKS[name]().then(done, (error) => {
    console.log(`failed: ${error.stack}`);
    process.exit(1);
  });
}
function done() {
  console.log([...answers].map(([code, n]) => `${code} ${n}`).join(', ') || 'no answer');
  if (served().some((code) => answers.get(code) > 0)) process.exit(0);
  console.log(`none of ${served()}`);
  process.exit(1);
}
