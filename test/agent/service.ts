/**
 * The agent's side of the public API over memory: schema.graphql served by graphql-js over HTTP and graphql-ws, so that
 * the agent meets on purpose what a real service does rarely: absence, refusals, lost answers, a changed mind.
 */
import { readFileSync } from 'node:fs';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import {
  buildSchema,
  type ExecutionResult,
  execute,
  GraphQLError,
  graphql,
  parse,
  subscribe,
  validate,
} from 'graphql';
import { useServer } from 'graphql-ws/use/ws';
import { onTestFinished } from 'vitest';
import { WebSocketServer } from 'ws';
import type { AssignmentsSubscription } from '../../src/agent/documents.gql.js';

const SCHEMA = readFileSync(new URL('../../schema.graphql', import.meta.url), 'utf8');
const schema = buildSchema(SCHEMA);
/** Of a release that knows nothing of steps. */
const schemaBefore = buildSchema(SCHEMA.replace(/\n[^\n]*\n {2}steps: \[RunStepInput!\]/, ''));

export interface WireReport {
  job: string;
  epoch: number;
  token?: string;
  task?: number;
  phase: 'STARTED' | 'ENDED';
  cause?: string;
  exitCode?: number | null;
  outputs?: { stream: string; start: number; text?: string; bytes: number }[];
  steps?: {
    number: number;
    name: string;
    startedAt: string;
    endedAt: string | null;
    exitCode: number | null;
  }[];
}

export interface WireOutput {
  job: string;
  stream: string;
  start: number;
  text?: string;
  bytes: number;
}

export interface WireRun {
  job: string;
  epoch: number;
  token?: string;
  action: 'START' | 'CONTINUE' | 'STOP';
  command: string;
  arguments: string[];
  workingDirectory?: string;
  checkpoint?: { path: string; signal: string; from: null; ofTasks: object[] };
  plannedS?: number;
  runTimeLimitS?: number;
}

const MACHINES = [
  { id: 'machine_1', name: 'a' },
  { id: 'machine_2', name: 'b' },
];

type ReportResult = 'ACCEPTED' | 'REPEATED' | 'STALE_EPOCH' | 'UNKNOWN_RUN';

interface WireCheckpoint {
  job: string;
  epoch: number;
  ageS: number;
}

export interface WireUses {
  question: string;
  uses: { job: string; epoch: number; tasks: number; cpuS: number | null; peakMemoryMb: number | null }[];
}

export class TestService {
  readonly accepted: WireReport[] = [];
  /** Machines of each registration. */
  readonly registered: ({ name: string; problem: string | null }[] | null)[] = [];
  heartbeats = 0;
  /** What heartbeats have told of checkpoints. */
  readonly checkpoints: WireCheckpoint[] = [];
  /** By machine: why its agent may not serve it. */
  readonly refused = new Map<string, string>();
  /** It is of a release that knows nothing of steps. */
  isOld = false;
  /** Requests with variables that it does not know. */
  notUnderstood = 0;
  /** What heartbeats are answered with. */
  known = true;
  /** Output that came before the ends of runs. */
  readonly outputs: WireOutput[] = [];
  subscriptions = 0;
  /** The cursors that subscribers came with. */
  readonly after: (string | undefined)[] = [];
  /** Live runs by job. */
  readonly runs = new Map<string, WireRun>();
  /** Called with each batch before it is taken. */
  onReports: ((reports: WireReport[]) => void) | null = null;
  /** Called after a batch was taken: throwing here is an answer that got lost. */
  afterReports: (() => void) | null = null;
  /** Called before a request is answered. */
  beforeAnswer: (() => Promise<void>) | null = null;
  /** Objects in a page of machines. */
  pageSize = 2;
  port = 0;
  private readonly listeners = new Set<(batch: object | null) => void>();
  private readonly askers = new Set<(question: object | null) => void>();
  /** What was answered to questions for what runs use. */
  readonly uses: WireUses[] = [];
  private close: (() => Promise<void>) | null = null;

  get url(): string {
    return `http://127.0.0.1:${this.port}/graphql`;
  }

  /** Makes runs live and tells the agent. */
  assign(...runs: WireRun[]): void {
    for (const run of runs) this.runs.set(run.job, run);
    for (const tell of this.listeners) tell(batchOf(runs, false));
  }

  /** The list of live runs comes in messages of so many. */
  partSize = Number.POSITIVE_INFINITY;

  stop(job: string): void {
    this.assign({ ...this.runs.get(job)!, action: 'STOP' });
  }

  /** Asks its agents what runs use. */
  ask(question: string, ...runs: { job: string; epoch: number }[]): void {
    for (const tell of this.askers) tell({ question, runs });
  }

  /** Ends all subscriptions: the agent comes back for a complete list. */
  dropSubscriptions(): void {
    for (const tell of this.listeners) tell(null);
  }

  ends(): WireReport[] {
    return this.accepted.filter(({ phase }) => phase === 'ENDED');
  }

  async up(): Promise<void> {
    const roots = {
      sites: () => page([{ id: 'site_1', name: 'here' }]),
      machines: ({ after }: { after?: string }) => {
        const begin = Number(after ?? 0);
        const end = begin + this.pageSize;
        return page(MACHINES.slice(begin, end), end < MACHINES.length ? String(end) : null);
      },
      registerAgent: ({
        input,
      }: {
        input: { machines: { name: string; problem: string | null }[] | null };
      }) => {
        this.registered.push(input.machines);
        this.known = true;
        const machines = (input.machines ?? []).map(({ name, problem }) => ({
          ...{ name, problem },
          refused: this.refused.get(name) ?? null,
        }));
        return { agent: { id: 'agent_1' }, machines };
      },
      reportImages: () => true,
      heartbeat: ({ checkpoints = [] }: { checkpoints?: WireCheckpoint[] }) => {
        this.heartbeats++;
        this.checkpoints.push(...checkpoints);
        return this.known;
      },
      reportRuns: ({ reports }: { reports: WireReport[] }) => ({ results: this.take(reports) }),
      reportOutput: ({ outputs }: { outputs: WireOutput[] }) => {
        this.outputs.push(...outputs);
        return {
          results: outputs.map(() => 'ACCEPTED'),
          receivedBytes: outputs.map((one) => (one.text === '' ? this.received(one) : null)),
        };
      },
      useAsked: () => this.questions(),
      reportUse: ({ input }: { input: WireUses }) => {
        this.uses.push(input);
        return { errors: [] };
      },
      assignments: ({ after }: { after?: string }) => {
        this.after.push(after);
        return this.assignments();
      },
    };
    const server = createServer(async (request, response) => {
      const body = JSON.parse(await text(request));
      await this.beforeAnswer?.();
      const allowed = request.headers.authorization === 'Bearer good-key';
      const result = allowed
        ? await this.answered(body, roots)
        : { errors: [new GraphQLError('no such key', { extensions: { code: 'UNAUTHENTICATED' } })] };
      response.setHeader('content-type', 'application/json').end(JSON.stringify(result));
    });
    const sockets = new WebSocketServer({ server, path: '/graphql' });
    const graphqlWs = useServer(
      {
        schema,
        // Given here, because the test runner would load a second copy of graphql for it.
        ...{ execute, parse, subscribe, validate },
        roots: { subscription: roots },
        onConnect: ({ connectionParams }) => connectionParams?.authorization === 'Bearer good-key',
      },
      sockets,
    );
    await new Promise<void>((resolve) => server.listen(this.port, '127.0.0.1', resolve));
    this.port = (server.address() as AddressInfo).port;
    this.close = async () => {
      this.close = null;
      for (const socket of sockets.clients) socket.terminate();
      await graphqlWs.dispose();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    };
  }

  private async answered(
    { query: source, variables: variableValues }: { query: string; variables: Record<string, unknown> },
    rootValue: object,
  ): Promise<ExecutionResult> {
    const known = this.isOld ? schemaBefore : schema;
    const result = await graphql({ schema: known, source, variableValues, rootValue });
    const wrong = result.errors?.find(({ message }) => message.startsWith('Variable "'));
    if (wrong === undefined) return result;
    this.notUnderstood++;
    return { errors: [new GraphQLError(wrong.message, { extensions: { code: 'BAD_USER_INPUT' } })] };
  }

  /** Up to where a stream has come. */
  private received({ job, stream }: WireOutput): number {
    const own = this.outputs.filter((one) => one.job === job && one.stream === stream);
    return Math.max(0, ...own.map(({ start, text = '' }) => start + Buffer.byteLength(text)));
  }

  async down(): Promise<void> {
    await this.close?.();
  }

  private take(reports: WireReport[]): ReportResult[] {
    this.onReports?.(reports);
    const results = reports.map((report): ReportResult => {
      const repeated = this.accepted.some(
        ({ job, epoch, phase }) => job === report.job && epoch === report.epoch && phase === report.phase,
      );
      if (repeated) return 'REPEATED';
      const run = this.runs.get(report.job);
      if (!run) return 'UNKNOWN_RUN';
      if (run.epoch !== report.epoch) return 'STALE_EPOCH';
      this.accepted.push(report);
      if (report.phase === 'ENDED') this.runs.delete(report.job);
      else if (run.action === 'START') run.action = 'CONTINUE';
      return 'ACCEPTED';
    });
    this.afterReports?.();
    return results;
  }

  private list(): object[] {
    const runs = [...this.runs.values()];
    if (runs.length <= this.partSize) return [batchOf(runs, true)];
    const parts: object[] = [];
    for (let i = 0; i < runs.length; i += this.partSize) {
      const part = i === 0 ? 'FIRST' : i + this.partSize < runs.length ? 'NEXT' : 'LAST';
      parts.push({ ...batchOf(runs.slice(i, i + this.partSize), false), part });
    }
    return parts;
  }

  private questions(): AsyncGenerator<object> {
    return this.told([], this.askers, (useAsked) => ({ useAsked }));
  }

  private assignments(): AsyncGenerator<object> {
    this.subscriptions++;
    return this.told(this.list(), this.listeners, (assignments) => ({ assignments }));
  }

  private async *told(
    before: object[],
    listeners: Set<(one: object | null) => void>,
    as: (one: object) => object,
  ): AsyncGenerator<object> {
    const queue: (object | null)[] = before;
    let wake = (): void => {};
    const tell = (batch: object | null): void => {
      queue.push(batch);
      wake();
    };
    listeners.add(tell);
    try {
      for (;;) {
        const batch = queue.shift();
        if (batch === null) return;
        if (batch) yield as(batch);
        else
          await new Promise<void>((resolve) => {
            wake = resolve;
          });
      }
    } finally {
      listeners.delete(tell);
    }
  }
}

export async function startService(): Promise<TestService> {
  const service = new TestService();
  await service.up();
  onTestFinished(() => service.down());
  return service;
}

type Told = AssignmentsSubscription['assignments']['assignments'][number];
/** What agents ask of every run, but for what `WireRun` tells and what may be null: a field that is missing here would fail each subscription. */
type Neutral = Omit<
  { [Field in keyof Told as null extends Told[Field] ? never : Field]: Told[Field] },
  'jobId' | Exclude<keyof WireRun, 'token' | 'plannedS'>
>;

function batchOf(runs: WireRun[], complete: boolean): object {
  return {
    cursor: '1',
    complete,
    assignments: runs.map((run) => ({
      ...NEUTRAL,
      environment: {},
      application: 'test',
      machines: [{ machine: 'machine_1', name: 'a', host: 'host-a', tasks: 1, devices: [] }],
      ...run,
    })),
  };
}

const NEUTRAL: Neutral = {
  user: 'ada',
  token: 'now',
  recalled: false,
  signals: [],
  tasks: 1,
  cpusPerTask: 1,
  memoryMbPerTask: 0,
  launch: 'EVERY_TASK',
  resourcesPerTask: [],
  devicesPerTask: [],
  licenses: [],
  resources: [],
  pools: [],
  warnSignal: 'SIGTERM',
  killGraceS: 30,
  machines: [],
  parts: [],
  jobParts: [],
  partNodes: [],
  inputs: [],
  outputs: [],
  downloads: [],
  uploads: [],
  plannedS: 1,
};

function page(nodes: object[], endCursor: string | null = null): object {
  return { nodes, pageInfo: { hasNextPage: endCursor !== null, endCursor } };
}

async function text(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString();
}
