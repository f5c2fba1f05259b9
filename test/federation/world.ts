/**
 * Services that are peers: each with a database, a directory and a process of its own, which is started again whenever it is killed; between
 * each two a link of the test's, which can be cut, and which may repeat what it carries.
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, request, type Server, type ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { Client } from '../../src/client/index.js';
import type { RandomStream } from '../../src/core/index.js';
import { Supervised } from '../crash/installation.js';
import { measuredAs } from '../support/measured-as.js';
import { freePort, portOf } from '../support/ports.js';

/** A way to a service. */
export class Link {
  private open = true;
  /** How often a request is sent twice, or its answer is lost, 0 to 1. */
  trouble = 0;
  repeated = 0;
  lost = 0;
  private readonly pending = new Set<ServerResponse>();

  private constructor(
    private readonly server: Server,
    readonly url: string,
  ) {}

  static async to(port: number, random: RandomStream): Promise<Link> {
    const server = createServer((incoming, outgoing) => {
      const pieces: Buffer[] = [];
      incoming.on('error', () => {});
      incoming.on('data', (piece: Buffer) => void pieces.push(piece));
      incoming.on('end', () => link.carry(port, incoming, Buffer.concat(pieces), outgoing, random));
    });
    server.keepAliveTimeout = 0;
    const link: Link = new Link(server, `http://127.0.0.1:${await portOf(server)}/graphql`);
    return link;
  }

  cut(): void {
    this.open = false;
    for (const outgoing of this.pending) outgoing.destroy();
    this.server.closeAllConnections();
  }

  restore(): void {
    this.open = true;
  }

  close(): void {
    this.server.closeAllConnections();
    this.server.close();
  }

  private carry(
    port: number,
    { method, url: path, headers }: IncomingMessage,
    body: Buffer,
    outgoing: ServerResponse,
    random: RandomStream,
  ): void {
    if (!this.open) return void outgoing.destroy();
    this.pending.add(outgoing);
    outgoing.on('close', () => this.pending.delete(outgoing));
    const send = (answer: boolean): void => {
      // Questions, and the parts of files.
      const options = { host: '127.0.0.1', port, path, method, headers };
      const onward = request(options, (incoming) => {
        if (!answer || !this.open)
          return void incoming.resume().on('end', () => !answer || outgoing.destroy());
        outgoing.writeHead(incoming.statusCode ?? 502, incoming.headers);
        incoming.pipe(outgoing);
      });
      onward.on('error', () => answer && outgoing.destroy());
      onward.end(body);
    };
    if (random.next() >= this.trouble) return void send(true);
    const kind = random.next();
    if (kind < 0.4) {
      // At once, and again when all is long over.
      this.repeated++;
      send(true);
      send(false);
      setTimeout(() => this.open && send(false), 50 + random.next() * 3_000).unref();
    } else if (kind < 0.7) {
      // It arrives; nobody hears of it.
      this.lost++;
      send(false);
      setTimeout(() => outgoing.destroy(), 50);
    } else {
      // Late.
      setTimeout(() => send(true), random.next() * 1_000);
    }
  }
}

interface Event {
  kind: string;
  fromState: string | null;
  toState: string | null;
  epoch: number | null;
}

export class Service {
  readonly ledger: string;
  readonly pool: pg.Pool;
  readonly client: Client;
  /** Since it was killed last. */
  hasAnswered = false;
  private process: Supervised;

  private constructor(
    readonly name: string,
    private readonly home: string,
    readonly port: number,
    private readonly databaseUrl: string,
    ledger: string,
  ) {
    this.ledger = ledger;
    this.pool = new pg.Pool({ connectionString: databaseUrl, max: 2 });
    this.pool.on('error', () => {});
    this.process = this.launch();
    this.client = new Client({
      url: `http://127.0.0.1:${port}/graphql`,
      key: null,
      requestTimeoutMs: 20_000,
    });
  }

  /** Its site runs what asks for the operating system of the service's name. */
  static async start(name: string, databaseUrl: string, ledger: string): Promise<Service> {
    const home = mkdtempSync(join(tmpdir(), `switchyard-${name}-`));
    const service = new Service(name, home, await freePort(), databaseUrl, ledger);
    // The databases are copies of one.
    await service.pool.query('UPDATE service SET id = gen_random_uuid()::text');
    await service.until(async () => {
      (service.client.options as { key: string | null }).key = readFileSync(
        join(home, 'admin.key'),
        'utf8',
      ).trim();
      await service.client.request('{ viewer { id } }', {});
      return true;
    });
    const { machines } = await service.client.request<{ machines: { nodes: { id: string }[] } }>(
      '{ machines { nodes { id } } }',
      {},
    );
    await service.client.request(
      'mutation ($input: UpdateMachineInput!) { updateMachine(input: $input) { machine { id } } }',
      { input: { machine: machines.nodes[0]?.id, os: name, cpus: 8 } },
    );
    return service;
  }

  kill(): void {
    this.hasAnswered = false;
    this.process.kill();
  }

  private launch(): Supervised {
    return new Supervised(this.name, ['serve'], {
      DATABASE_URL: this.databaseUrl,
      SWITCHYARD_HOME: this.home,
      HOST: '127.0.0.1',
      PORT: String(this.port),
      LOG_LEVEL: 'warn',
      SWITCHYARD_PORTAL: 'false',
      NODE_OPTIONS: `--import=${measuredAs(this.name)}`,
    });
  }

  /** Its database becomes a copy of another one, or another one a copy of it, while it is stopped. */
  async copyDatabase(from: string, to: string): Promise<void> {
    await this.process.stop();
    const admin = new pg.Client({
      connectionString: Object.assign(new URL(this.databaseUrl), { pathname: '/postgres' }).href,
    });
    await admin.connect();
    await this.until(async () => {
      // Nobody may be connected to either.
      await admin.query('SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1', [from]);
      await admin.query(`DROP DATABASE IF EXISTS "${to}" WITH (FORCE)`);
      await admin.query(`CREATE DATABASE "${to}" TEMPLATE "${from}"`);
      return true;
    });
    await admin.end();
    this.process = this.launch();
  }

  get database(): string {
    return new URL(this.databaseUrl).pathname.slice(1);
  }

  get log(): string {
    return `== ${this.name}, started ${this.process.starts} times\n${this.process.log}`;
  }

  async close(): Promise<void> {
    await this.process.stop();
    await this.pool.end();
    rmSync(this.home, { recursive: true, force: true });
  }

  /** Asks again while the service is away. */
  async ask<T>(document: string, variables: object = {}): Promise<T> {
    let answer: T | undefined;
    await this.until(async () => {
      answer = await this.client.request<T>(document, variables);
      return true;
    });
    return answer as T;
  }

  async until(condition: () => Promise<boolean>, withinMs = 120_000): Promise<void> {
    let why: unknown = 'not yet';
    for (const end = Date.now() + withinMs; Date.now() < end; await sleep(100)) {
      try {
        const isMet = await condition();
        this.hasAnswered = true;
        if (isMet) return;
      } catch (error) {
        why = error;
      }
    }
    throw new Error(`${this.name}: given up after ${withinMs} ms (${why})\n${this.log}`);
  }

  /** Jobs that write their numbers down when they run. */
  async submit(
    numbers: readonly number[],
    { os, sleepS = 0.05 }: { os: string | null; sleepS?: number },
    more: object = {},
  ): Promise<string[]> {
    const jobs = numbers.map((number) => ({
      command: 'sh',
      arguments: [
        '-c',
        `echo ${number} >> "$LEDGER"; echo "out of ${number}"; echo "kept of ${number}" > kept.txt; sleep ${sleepS}; exit $((${number} % 7 == 6))`,
      ],
      ...(number % 3 === 0 ? { outputs: [{ path: 'kept.txt' }] } : {}),
      environment: [{ name: 'LEDGER', value: this.ledger }],
      ...(os && { os }),
      estimateS: 1,
      ...more,
    }));
    const input = { jobs, idempotencyKey: `numbers ${numbers.join()}`, allowUnfit: true };
    const { submitJobs } = await this.ask<{
      submitJobs: { jobIds: string[]; errors: { message: string }[] };
    }>('mutation ($input: SubmitJobsInput!) { submitJobs(input: $input) { jobIds errors { message } } }', {
      input,
    });
    if (submitJobs.errors.length > 0) throw new Error(submitJobs.errors[0]?.message);
    return submitJobs.jobIds;
  }

  /** State and cause of each job that is its own, by id. */
  async jobs(): Promise<
    Map<string, { state: string; cause: string | null; site: string | null; epoch: number }>
  > {
    const { rows } = await this.pool.query(
      `SELECT j.id, j.state, j.cause, j.epoch, s.name AS site FROM jobs j LEFT JOIN sites s ON s.id = j.site_id
        WHERE NOT EXISTS (SELECT 1 FROM foreign_jobs f WHERE f.job_id = j.id)`,
    );
    return new Map(rows.map(({ id, ...row }) => [`job_${id}`, row]));
  }

  async ended(ids: readonly string[], withinMs = 120_000): Promise<void> {
    await this.until(async () => {
      const jobs = await this.jobs();
      return ids.every((id) => ['COMPLETED', 'FAILED', 'CANCELLED'].includes(jobs.get(id)?.state ?? ''));
    }, withinMs);
  }

  /** What has not ended, for the message of a failure. */
  async open(): Promise<string> {
    const { rows } = await this.pool.query(
      `SELECT j.id, j.state, j.epoch, s.name AS site, j.os, f.owner_job_id, f.epoch AS granted, f.told, j.cause,
              (SELECT json_agg(json_build_array(o.site_id, o.offer, o.epoch, o.withdrawn, o.again_at)) FROM offers o WHERE o.job_id = j.id) AS offers
         FROM jobs j LEFT JOIN sites s ON s.id = j.site_id LEFT JOIN foreign_jobs f ON f.job_id = j.id
        WHERE j.ended_at IS NULL OR f.told < 2 ORDER BY j.id LIMIT 40`,
    );
    const peers = await this.pool.query(
      'SELECT site_id, isolated, failure, seen_at, reached_at, cursor, worker_seen_at FROM peers',
    );
    return [this.name, ...rows, ...peers.rows].map((row) => JSON.stringify(row)).join('\n');
  }

  /** What is kept here of the runs of its jobs that count, by job. */
  async keptFiles(): Promise<Map<string, string>> {
    const { rows } = await this.pool.query(
      `SELECT j.id, f.path, f.sha256 FROM files f JOIN jobs j ON j.id = f.job_id AND j.epoch = f.epoch
        WHERE f.kept_at IS NOT NULL AND NOT EXISTS (SELECT 1 FROM foreign_jobs x WHERE x.job_id = j.id)`,
    );
    return new Map(rows.map(({ id, path, sha256 }) => [`job_${id}`, `${path} ${sha256}`]));
  }

  /** Copies of others' jobs that are not told to be over. */
  async copies(): Promise<number> {
    const { rows } = await this.pool.query('SELECT count(*)::int AS n FROM foreign_jobs WHERE told < 2');
    return rows[0].n;
  }
}

/** Makes them peers of one another, each by the key that the other made. */
export async function federate(
  a: Service,
  b: Service,
  links: { toA: string; toB: string },
  settings: { a?: object; b?: object } = {},
): Promise<void> {
  const register = (at: Service, input: object) =>
    at.ask<{ setPeer: { secret: string | null } }>(
      'mutation ($input: SetPeerInput!) { setPeer(input: $input) { secret } }',
      { input },
    );
  const ofB = (await register(a, { name: b.name, ...settings.a })).setPeer.secret;
  const ofA = (await register(b, { name: a.name, url: links.toA, key: ofB, ...settings.b })).setPeer.secret;
  await register(a, { name: b.name, url: links.toB, key: ofA });
}

/** What a subscriber of the service hears of jobs, over all its deaths. */
export class Subscriber {
  readonly heard: { cursor: string; job: string; event: Event }[] = [];
  private readonly stopping = new AbortController();
  private readonly done: Promise<void>;
  private failure: unknown = null;

  constructor(service: Service) {
    const document = `subscription ($after: String) { jobUpdated(after: $after) {
      cursor resyncRequired event { kind fromState toState epoch } job { id } } }`;
    this.done = (async () => {
      const updates = service.client.updates<{
        jobUpdated: {
          cursor: string;
          resyncRequired: boolean;
          event: Event | null;
          job: { id: string } | null;
        };
      }>(document, 'jobUpdated', {}, { after: '0', signal: this.stopping.signal });
      for await (const { cursor, resyncRequired, event, job } of updates) {
        if (resyncRequired || event === null || job === null) throw new Error('updates were left out');
        this.heard.push({ cursor, job: job.id, event });
      }
    })();
    this.done.catch((error) => {
      this.failure = error;
    });
  }

  /** What was heard of the job, as states. */
  of(job: string): (string | null)[] {
    if (this.failure !== null) throw this.failure;
    return this.heard.filter((one) => one.job === job).map(({ event }) => event.toState);
  }

  /** Of all that was heard, in its order. */
  cursors(): string[] {
    if (this.failure !== null) throw this.failure;
    return this.heard.map(({ cursor }) => cursor);
  }

  async stop(): Promise<void> {
    this.stopping.abort();
    await this.done;
  }
}

/** The numbers that jobs wrote down, in the order in which they ran. */
export const ran = (ledger: string): number[] =>
  readFileSync(ledger, 'utf8').split('\n').filter(Boolean).map(Number);

export function newLedger(): string {
  const ledger = join(mkdtempSync(join(tmpdir(), 'switchyard-ledger-')), 'ledger');
  writeFileSync(ledger, '');
  return ledger;
}
