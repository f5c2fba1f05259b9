import { randomUUID } from 'node:crypto';
import { Client, type Document, ExitCode, ServiceError, untilDone } from '../client/index.js';
import { type Env, pause, REAL_ENV } from '../platform/env.js';
import { DEFAULT_LIMITS, MAX } from '../platform/limits.js';
import { VERSION } from '../platform/version.js';
import type { RegistryCredentials } from './credentials.js';
import {
  type AssignmentAction,
  AssignmentsDocument,
  type AssignmentsSubscription,
  HeartbeatDocument,
  HeartbeatWithCheckpointsDocument,
  RegisterDocument,
  type RegisterMutation,
  ReportDocument,
  ReportImagesDocument,
  ReportLinksDocument,
  ReportLoadDocument,
  ReportOutputDocument,
  type ReportResult,
  ReportStagingDocument,
  ReportUseDocument,
  RunInputDocument,
  type RunReportInput,
  type RunStepInput,
  type RunUseInput,
  type SiteLoadInput,
  SitesDocument,
  type StagingReportInput,
  TakeInputDocument,
  UseAskedDocument,
} from './documents.gql.js';
import type { DataExporter } from './files/exporter.js';
import type { OutputKeeper } from './files/keeper.js';
import { FETCHED_BYTES_MIN, type LinkProbe, measureLink } from './links.js';
import type { Measurement } from './measure.js';
import {
  type Assignment,
  DEFAULT_GRACE_MS,
  type EndedReport,
  type HeldImage,
  type LiveOutput,
  nameOf,
  type RunName,
  type Runner,
  type RunReport,
  type RunStep,
  type RunUse,
  runKey,
  taskOf,
  type WarnSignal,
} from './runner.js';
import type { StagingReport, StagingSource } from './staging/runner.js';

/** A log such as pino's. */
export interface AgentLog {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

export interface AgentOptions {
  /** The GraphQL endpoint. */
  url: string;
  /** A key of role AGENT. */
  key: string;
  /** Name of the site. */
  site: string;
  /** What carries out the assignments. The agent does not close it. */
  runner: Runner;
  log: AgentLog;
  /** Kept with the agent's state: the same after a restart, another where that state was lost. */
  identity: string;
  /** The host that it runs on. */
  host: string;
  /** The machines that it serves; null: all of the site, which is for simulated ones. */
  machines: readonly AgentMachine[] | null;
  /** Why nothing can be run on its machines now; null: it can. */
  problem?: () => string | null;
  /** What the site's own scheduler has, where the agent hands runs over to one. */
  load?: () => SiteLoadInput;
  heartbeatMs?: number;
  /** What brings runs their inputs, where something does: reports on it are sent. */
  staging?: StagingSource;
  /** What keeps outputs of runs, where something does: it is told of the service. */
  keeper?: Pick<OutputKeeper, 'serve' | 'clean'>;
  /** What asks for credentials of users, where something does: it is told of the service. */
  credentials?: Pick<RegistryCredentials, 'serve'>;
  /** What hands over copies of the site's datasets, where something does. */
  exporter?: Pick<DataExporter, 'serve'>;
  /** Between two looks for what is to be handed over. */
  exportsLookMs?: number;
  /** Links to measure; none by default. */
  linkProbes?: readonly LinkProbe[];
  /** Between two rounds of measurements. */
  linkProbeMs?: number;
  /** From SIGTERM to SIGKILL when a run is stopped. */
  graceMs?: number;
  /** Told when the service refuses the key: the agent has stopped, its runs go on. */
  onRefused?: (error: ServiceError) => void;
  /** Another way to the service than over the network. */
  client?: ServiceClient;
  env?: Env;
}

/** A machine that an agent serves. */
export interface AgentMachine {
  name: string;
  /** null: nothing is run there (simulated). */
  measured: Measurement | null;
  /** Why no job can be run on this one now; null or left out: jobs can. */
  problem?: string | null;
}

/** What an agent needs of a client. */
export type ServiceClient = Pick<Client, 'request' | 'all' | 'subscribe'>;

/** Characters of output after which a batch is closed. */
const BATCH_TEXT = 1 << 20;
/** Of a step, about. */
const STEP_TEXT = 250;
/** Between two looks for output of runs that go on. */
const OUTPUT_MS = 250;
/** The same while somebody types at the terminal of one. */
const TERMINAL_MS = 20;
/** Between two reports of how far inputs have come. */
const STAGING_MS = 1_000;
/** Everything is said again with each so many heartbeats. */
const REGISTER_BEATS = 6;
/** The version of PROTOCOL.md. */
export const PROTOCOL = 4;
const REQUEST_TIMEOUT_MS = 30_000;
/** Between two looks at what the site's own scheduler has; it is said again with each so many, changed or not. */
const LOAD_MS = 5_000;
const LOAD_REPEATS = 6;

/**
 * What a batch of reports is refused with because of what is in it, or of its size (413 by a proxy): the same batch would be
 * refused again.
 */
const REFUSED = new Set(['BAD_USER_INPUT', 'LIMIT_EXCEEDED', 'QUERY_TOO_COMPLEX', 'HTTP_413']);

/** Between two looks at which images are here; they are said again with each so many, for a report that was late may have replaced a newer one. */
const IMAGES_MS = 5_000;
const IMAGES_REPEATS = 120;

/** Between two looks for outputs at the site whose datasets were removed. */
const OUTPUTS_LOOK_MS = 600_000;
const EXPORTS_LOOK_MS = 10_000;

type Batch = AssignmentsSubscription['assignments'];
type Lease = RegisterMutation['registerAgent']['machines'][number];

/**
 * A site's agent: PROTOCOL.md as a program. Loops that know nothing of each other: assignments come in and go to the
 * runner, the runner's reports go out, heartbeats go out, links are measured. Each tries for ever, with growing pauses: the service may be away
 * as long as it likes, runs go on meanwhile.
 *
 * Assignments are asked for from the beginning at each connection rather than behind the last cursor. The list of live
 * runs is short, and comparing it with what runs here heals whatever went wrong in between.
 */
export class Agent {
  private readonly client: ServiceClient;
  private readonly env: Env;
  private readonly stopping = new AbortController();
  private readonly runner: Runner;
  private news: (() => void) | null = null;
  private done: Promise<unknown> | null = null;
  /** What the list of live runs has named that is being received. */
  private readonly listed = new Set<string>();
  private readonly instance = randomUUID();
  /** As the service knows it; '' until it has registered. */
  private id = '';
  /** What was said of the leases last. */
  private leases = '';
  private saidProblem: string | null = null;
  /** The service takes them. */
  private tellsCheckpoints = true;
  /** Likewise, steps of runs. */
  private tellsSteps = true;
  /** Why the leases were not asked for last; null: they were. */
  private waits: string | null = null;
  /** Ends the subscription: its machines are others now. */
  private subscription = new AbortController();

  constructor(private readonly options: AgentOptions) {
    const { url, key } = options;
    this.client = options.client ?? new Client({ url, key, requestTimeoutMs: REQUEST_TIMEOUT_MS });
    this.env = options.env ?? REAL_ENV;
    this.runner = options.runner;
  }

  /** Begins to serve. Returns at once: the service need not be there yet. */
  start(): void {
    if (this.done) throw new Error('the agent has been started already');
    this.runner.onReports = () => this.news?.();
    this.done = this.serve();
  }

  /** Stops serving; runs go on. What has not been reported waits for the next start. */
  async stop(): Promise<void> {
    this.stopping.abort();
    this.news?.();
    this.runner.onReports = null;
    await this.done;
  }

  private async serve(): Promise<void> {
    const site = await this.untilDone('find the site', () => this.findSite());
    if (site === undefined) return;
    const { identity, host } = this.options;
    this.options.log.info({ site: this.options.site, id: site, identity, host }, 'agent is running');
    await this.untilDone('register', () => this.register(site));
    if (this.stopping.signal.aborted) return;
    const us = { site, agent: () => this.id };
    this.options.keeper?.serve(us);
    this.options.credentials?.serve(us);
    await Promise.all([
      this.followAssignments(site),
      this.followInput(site),
      this.sendReports(site),
      this.sendOutput(site),
      this.sendHeartbeats(site),
      this.measureLinks(site),
      this.sendLoad(site),
      this.sendImages(site),
      this.sendStaging(site),
      this.removeOutputs(site),
      this.exportData(site),
      this.answerUse(site),
    ]);
  }

  private async findSite(): Promise<string> {
    const sites = await this.client.all(SitesDocument, 'sites', {}, this.stopping.signal);
    const site = sites.find(({ name }) => name === this.options.site);
    if (site) return site.id;
    throw new ServiceError(
      `site "${this.options.site}": it does not exist, or the key is for another site`,
      'NOT_FOUND',
    );
  }

  // --- Assignments

  private async followAssignments(site: string): Promise<void> {
    const { signal } = this.stopping;
    await this.untilDone('follow assignments', async (progress) => {
      const { subscription } = this;
      const ending = AbortSignal.any([signal, subscription.signal]);
      for await (const { assignments } of this.client.subscribe(
        AssignmentsDocument,
        { site, agent: this.id },
        ending,
      )) {
        progress();
        this.take(assignments);
      }
      // Completed by the service: it is going down, or the key has expired. Or our machines are others now.
      if (!signal.aborted) throw new ServiceError('the subscription has ended', 'NETWORK');
    });
  }

  private take(batch: Batch): void {
    const { runner } = this;
    const { graceMs = DEFAULT_GRACE_MS } = this.options;
    const { complete, part } = batch;
    if (complete || part === 'FIRST') this.listed.clear();
    const tokenless = new Set(runner.runs().flatMap((run) => (run.token === undefined ? runKey(run) : [])));
    const take = (told: Assignment, action: AssignmentAction, signal?: WarnSignal): void => {
      // Begun by the release before, it is known without a token.
      const { token: _, ...before } = told;
      const run = tokenless.has(runKey(before)) ? before : told;
      if (action === 'START') {
        runner.start(run);
        if (told.recalled) runner.recall?.(run);
      } else if (action === 'CONTINUE') {
        runner.resume(run);
        if (told.signals && told.signals.length > 0) runner.signal?.(run, told.signals);
      } else if (told.stopGraceS === null) runner.cancel(run, graceMs);
      else runner.cancel(run, told.stopGraceS * 1000, signal);
      if (complete || part) this.listed.add(runKey(run));
    };
    for (const { action, parts, jobParts, partNodes, checkpoint, uploads, ...told } of batch.assignments) {
      // To GraphQL it is any JSON; the schema says that these are variables and their values.
      const run: Assignment = { ...told, environment: told.environment as Assignment['environment'] };
      if (jobParts.length > 0) Object.assign(run, { jobParts, partNodes });
      if (uploads.length > 0)
        run.outputs = [...told.outputs, ...uploads.map((one) => ({ ...one, dataset: null }))];
      if (checkpoint !== null) run.checkpoint = checkpoint.path;
      if (checkpoint?.from) run.inputs = [...told.inputs, checkpoint.from];
      const here = parts.reduce((sum, { tasks }) => sum + tasks, 0);
      if (here === 0 || (runner.simulates && here === run.tasks)) take(run, action, checkpoint?.signal);
      else
        for (const { firstTask, tasks, action } of parts)
          for (let task = firstTask; task < firstTask + tasks; task++) {
            const own = checkpoint?.ofTasks.find((left) => left.task === task)?.from;
            const withOwn = own ? { ...run, inputs: [...told.inputs, own] } : run;
            take(taskOf(withOwn, task), action, checkpoint?.signal);
          }
    }
    if (!complete && part !== 'LAST') return;
    for (const run of runner.runs()) {
      if (this.listed.has(runKey(run))) continue;
      this.options.log.warn(
        { job: run.jobId, epoch: run.epoch, task: run.task },
        'the service has given up this run; stopping it',
      );
      runner.forget(run);
    }
    this.listed.clear();
  }

  // --- Input for terminals

  private async followInput(site: string): Promise<void> {
    const { runner } = this;
    if (!runner.givesTerminals) return;
    const inputs = () => {
      const ending = AbortSignal.any([this.stopping.signal, this.subscription.signal]);
      return this.client.subscribe(RunInputDocument, { site, agent: this.id }, ending);
    };
    await this.followIfKnown('follow input for terminals', inputs, ({ runInput }) => {
      const { job, epoch, sequence, base64, size } = runInput;
      const piece = { jobId: job, epoch, sequence, body: Buffer.from(base64, 'base64'), size };
      // What was not taken, or of which nobody hears, is sent again.
      if (runner.input?.(piece))
        void this.request(TakeInputDocument, { site, taken: [{ job, epoch, sequence }] }).catch(() => {});
    });
  }

  /** Takes all that a subscription says, from then on; a service of the release before, which does not have it, is left alone. */
  private async followIfKnown<T>(
    action: string,
    subscribe: () => AsyncIterable<T>,
    take: (said: T) => void,
  ): Promise<void> {
    const { signal } = this.stopping;
    await this.untilDone(action, async (progress) => {
      try {
        for await (const said of subscribe()) {
          progress();
          take(said);
        }
      } catch (error) {
        if (error instanceof ServiceError && error.isUnknownThere) return;
        throw error;
      }
      if (!signal.aborted) throw new ServiceError('the subscription has ended', 'NETWORK');
    });
  }

  // --- Reports

  private async sendReports(site: string): Promise<void> {
    while (!this.stopping.signal.aborted) {
      const batch = nextBatch(this.runner.reports(DEFAULT_LIMITS.reportsMax));
      if (batch.length === 0) {
        await new Promise<void>((resolve) => {
          this.news = resolve;
        });
        this.news = null;
      } else await this.untilDone('send reports', () => this.send(site, batch));
    }
  }

  /** Sends reports, and in parts what is refused as a whole: one that cannot be taken must not hold up the others. */
  private async send(site: string, reports: RunReport[]): Promise<void> {
    try {
      const sentAt = new Date(this.runner.nowMs()).toISOString();
      const inputs = reports.map((report) => reportInput(report, this.tellsSteps));
      const variables = { site, agent: this.id, sentAt, reports: inputs };
      const { reportRuns } = await this.request(ReportDocument, variables);
      this.forgetGivenUp(reports, reportRuns.results);
    } catch (error) {
      if (!(error instanceof ServiceError) || !REFUSED.has(error.code)) throw error;
      if (this.tellsSteps && error.lacksField('steps')) {
        // Until it is another release.
        this.tellsSteps = false;
        return this.send(site, reports);
      }
      if (reports.length > 1) {
        const half = reports.length >> 1;
        await this.send(site, reports.slice(0, half));
        await this.send(site, reports.slice(half));
        return;
      }
      const [report] = reports;
      if (report?.phase === 'ENDED' && report.outputs.length > 0) {
        this.options.log.warn(
          { job: report.jobId, error: error.message },
          'report rejected; trying without its output',
        );
        await this.send(site, [{ ...report, outputs: [] }]);
        return;
      }
      this.options.log.error({ job: report?.jobId, error: error.message }, 'report rejected; dropped');
    }
    this.runner.acknowledge(reports.at(-1)!.seq);
  }

  // --- Output

  /** Sends what runs write while they go on, and what is too much for a report. */
  private async sendOutput(site: string): Promise<void> {
    const { signal } = this.stopping;
    while (!signal.aborted) {
      const pieces = this.runner.freshOutput();
      if (pieces === null) return;
      if (pieces.length === 0)
        await pause(this.env, this.runner.hasTerminals ? TERMINAL_MS : OUTPUT_MS, signal);
      else await this.untilDone('send output', () => this.deliver(site, pieces));
    }
  }

  private async deliver(site: string, pieces: readonly LiveOutput[]): Promise<void> {
    try {
      const outputs = pieces.map(({ jobId: job, ...piece }) => ({ job, ...piece }));
      const { reportOutput } = await this.request(ReportOutputDocument, { site, agent: this.id, outputs });
      this.forgetGivenUp(pieces, reportOutput.results);
      this.runner.delivered(pieces, reportOutput.receivedBytes);
    } catch (error) {
      if (!(error instanceof ServiceError) || !REFUSED.has(error.code)) throw error;
      // It is lost to those who look at it; the run and its end are not.
      const [first] = pieces;
      this.options.log.error({ job: first?.jobId, error: error.message }, 'output rejected; dropped');
      this.runner.delivered(pieces);
    }
  }

  /** What the service does not want to hear of any more is stopped. */
  private forgetGivenUp(told: readonly RunName[], results: readonly ReportResult[]): void {
    for (const [i, run] of told.entries()) {
      const result = results[i];
      if (result === 'STALE_EPOCH' || result === 'UNKNOWN_RUN') this.runner.forget(nameOf(run));
    }
  }

  // --- Use

  /** Tells what runs use when somebody asks. An answer that does not arrive in time is of no interest to anybody. */
  private async answerUse(site: string): Promise<void> {
    if (this.runner.uses === undefined) return;
    const questions = () => this.client.subscribe(UseAskedDocument, { siteId: site }, this.stopping.signal);
    await this.followIfKnown('follow questions', questions, ({ useAsked }) => {
      const uses = usesOf(this.runner, useAsked.runs);
      if (uses.length === 0) return;
      const input = { siteId: site, agentId: this.id, question: useAsked.question, uses };
      this.request(ReportUseDocument, { input }).catch(() => {});
    });
  }

  // --- Machines

  private async sendHeartbeats(site: string): Promise<void> {
    const { signal } = this.stopping;
    for (let beat = 1; !signal.aborted; beat++) {
      await pause(this.env, this.options.heartbeatMs ?? 5000, signal);
      if (signal.aborted) return;
      await this.untilDone('send a heartbeat', async () => {
        const due =
          beat % REGISTER_BEATS === 0 ||
          this.problem() !== this.saidProblem ||
          (this.waits !== null && (await this.takeOver()) !== this.waits);
        if (due || !(await this.beat(site))) await this.register(site);
      });
    }
  }

  /** With the checkpoints that runs have written, where they have. False: the service does not know us. */
  private async beat(site: string): Promise<boolean> {
    const variables = { site, agent: this.id, instance: this.instance };
    const all = this.tellsCheckpoints ? ((await this.runner.writtenCheckpoints?.()) ?? []) : [];
    const written = all.slice(0, DEFAULT_LIMITS.reportsMax);
    if (written.length === 0) return (await this.request(HeartbeatDocument, variables)).heartbeat;
    const nowMs = this.runner.nowMs();
    const checkpoints = written.map(({ jobId: job, atMs, ...of }) => {
      return { ...of, job, ageS: Math.max(0, nowMs - atMs) / 1000 };
    });
    try {
      const answer = await this.request(HeartbeatWithCheckpointsDocument, { ...variables, checkpoints });
      this.runner.checkpointsTold?.(written);
      return answer.heartbeat;
    } catch (error) {
      // One of the release before does not ask for them.
      if (!(error instanceof ServiceError && error.isUnknownThere)) throw error;
      this.tellsCheckpoints = false;
      return this.beat(site);
    }
  }

  private problem(): string | null {
    return this.options.problem?.() ?? this.runner.problem ?? null;
  }

  private async takeOver(): Promise<string | null> {
    return (await this.runner.takeOver?.()) ?? null;
  }

  /** Says everything: who we are, which machines we serve, what they are and how they are. */
  private async register(site: string): Promise<void> {
    const { identity, host, machines } = this.options;
    const problem = this.problem();
    // Before the leases: what is lost with their former holders may begin elsewhere at once.
    const waits = await this.takeOver();
    const input = {
      ...{ site, identity, instance: this.instance, host, version: VERSION, protocol: PROTOCOL },
      simulated: machines?.every(({ measured }) => measured === null) ?? true,
      machines:
        machines?.map(({ name, measured, problem: own = null }) => ({
          ...{ name, measured, problem: problem ?? own, waits },
        })) ?? null,
    };
    const { registerAgent } = await this.request(RegisterDocument, { input });
    this.saidProblem = problem;
    this.waits = waits;
    this.tellsSteps = true;
    this.heed(registerAgent.agent.id, registerAgent.machines);
  }

  /** Says loudly what we may not serve, and asks anew for what is to be run when our machines are others than before. */
  private heed(id: string, machines: readonly Lease[]): void {
    const { log } = this.options;
    const leases = JSON.stringify([id, machines.map(({ name, refused }) => [name, refused === null])]);
    const changed = leases !== this.leases;
    const first = this.leases === '';
    this.id = id;
    this.leases = leases;
    for (const { name, refused, problem } of machines) {
      if (refused !== null)
        log.error({ machine: name, refused }, `agent: refused machine ${name}; no jobs are started there`);
      else if (problem !== null) {
        // Of our own the operator of the host knows already; that it is registered otherwise, whoever did so does not.
        const say = this.saidProblem === null ? log.error : log.warn;
        say.call(log, { machine: name, problem }, `agent: machine ${name} gets no jobs: ${problem}`);
      }
    }
    if (!changed) return;
    const served = machines.filter(({ refused }) => refused === null).length;
    log.info({ agent: id, machines: served, refused: machines.length - served }, 'agent registered');
    if (first) return;
    const { subscription } = this;
    this.subscription = new AbortController();
    subscription.abort();
  }

  // --- Links

  /** Measures all links, one after another, and reports those that could be measured; what is late is not repeated. */
  private async measureLinks(site: string): Promise<void> {
    const { linkProbes = [], linkProbeMs = 300_000, log } = this.options;
    const { signal } = this.stopping;
    while (linkProbes.length > 0 && !signal.aborted) {
      const measured: { from: string; bandwidthMbPerS: number; rttS: number; loss: number }[] = [];
      for (const { from, url } of linkProbes) {
        try {
          const { bandwidthMbPerS, rttS, loss } = await measureLink(url, signal);
          measured.push({ from, bandwidthMbPerS, rttS, loss });
        } catch (error) {
          if (!signal.aborted)
            log.warn({ from, error: (error as Error).message }, 'agent: cannot measure a link');
        }
      }
      if (measured.length > 0)
        await this.untilDone('report links', () =>
          this.request(ReportLinksDocument, { site, measurements: measured }),
        );
      await pause(this.env, linkProbeMs, signal);
    }
  }

  // --- What the site's own scheduler has

  private async sendLoad(site: string): Promise<void> {
    const { load } = this.options;
    const { signal } = this.stopping;
    let said = '';
    for (let round = 0; load && !signal.aborted; round++) {
      const now = load();
      // Each look is a call itself.
      const news = JSON.stringify({ ...now, calls: null });
      // Unchanged it is said again now and then: its age is shown.
      if (round % LOAD_REPEATS === 0 || news !== said) {
        const taken = await this.untilDone('report the load of the site', () =>
          this.request(ReportLoadDocument, { site, agent: this.id, load: now }),
        );
        said = taken?.reportLoad ? news : '';
      }
      await pause(this.env, LOAD_MS, signal);
    }
  }

  // --- Images

  private async sendImages(site: string): Promise<void> {
    const { runner } = this;
    const { signal } = this.stopping;
    let said = '';
    for (let round = 0; runner.images && !signal.aborted; round++) {
      const images = runner.images(MAX.agentImages);
      const news = JSON.stringify(images);
      if (images !== null && (round % IMAGES_REPEATS === 0 || news !== said)) {
        const taken = await this.untilDone('report images', () => this.tellImages(site, images));
        if (taken === null) return;
        said = taken ? news : '';
      }
      await pause(this.env, IMAGES_MS, signal);
    }
  }

  /** Null: the service is of the release before, which does not ask for them. */
  private async tellImages(site: string, images: readonly HeldImage[]): Promise<boolean | null> {
    try {
      const variables = { site, agent: this.id, images };
      return (await this.request(ReportImagesDocument, variables)).reportImages;
    } catch (error) {
      if (error instanceof ServiceError && error.isUnknownThere) return null;
      throw error;
    }
  }

  // --- Outputs at the site

  private async removeOutputs(site: string): Promise<void> {
    const { keeper, log } = this.options;
    const { signal } = this.stopping;
    const us = { site, agent: () => this.id };
    while (keeper && !signal.aborted) {
      try {
        for (const path of await keeper.clean(us, signal))
          log.info({ path }, 'agent: removed files of an output whose dataset was removed');
      } catch (error) {
        if (!signal.aborted)
          log.warn(
            { error: (error as Error).message },
            'agent: cannot remove files of outputs whose datasets were removed',
          );
      }
      await pause(this.env, OUTPUTS_LOOK_MS, signal);
    }
  }

  // --- Copies of the site's datasets

  private async exportData(site: string): Promise<void> {
    const { exporter, exportsLookMs = EXPORTS_LOOK_MS, log } = this.options;
    const { signal } = this.stopping;
    const us = { site, agent: () => this.id };
    while (exporter && !signal.aborted) {
      try {
        for (const { name, problem } of await exporter.serve(us, signal))
          log.warn({ dataset: name, problem }, 'agent: cannot send a copy of a dataset');
      } catch (error) {
        if (signal.aborted) return;
        // One of the release before wants none.
        if (error instanceof ServiceError && error.isUnknownThere) return;
        log.warn(
          { error: (error as Error).message },
          'agent: cannot query which copies of datasets are needed',
        );
      }
      await pause(this.env, exportsLookMs, signal);
    }
  }

  // --- Staging

  /** Says how far inputs have come, and what that has shown of the links they came over. */
  private async sendStaging(site: string): Promise<void> {
    const { staging } = this.options;
    const { signal } = this.stopping;
    while (staging && !signal.aborted) {
      const reports = staging.stagings().slice(0, DEFAULT_LIMITS.reportsMax);
      if (reports.length > 0) {
        // Of a run the service keeps one record; all its tasks have the same inputs.
        const told = reports.filter(({ task = 0 }) => task === 0).map(stagingInput);
        if (told.length > 0)
          await this.untilDone('report staging', () =>
            this.request(ReportStagingDocument, { site, reports: told }),
          );
        const measurements = this.linksOf(reports);
        if (measurements.length > 0)
          await this.untilDone('report links', () =>
            this.request(ReportLinksDocument, { site, measurements }),
          );
        if (!signal.aborted) staging.stagingDelivered(reports);
      }
      await pause(this.env, STAGING_MS, signal);
    }
  }

  /** The bandwidth of each link over which enough has come to tell. */
  private linksOf(reports: readonly StagingReport[]): { from: string; bandwidthMbPerS: number }[] {
    const moved = new Map<string, { bytes: number; seconds: number }>();
    for (const one of reports.flatMap((report) => report.moved)) {
      if (one.from === null || one.from === this.options.site || one.bytes < FETCHED_BYTES_MIN) continue;
      const sum = moved.get(one.from) ?? { bytes: 0, seconds: 0 };
      moved.set(one.from, { bytes: sum.bytes + one.bytes, seconds: sum.seconds + one.seconds });
    }
    return [...moved].map(([from, { bytes, seconds }]) => ({
      from,
      bandwidthMbPerS: bytes / 1e6 / Math.max(seconds, 1e-3),
    }));
  }

  // --- Trying again

  private request<Answer, Variables extends object>(
    document: Document<Answer, Variables>,
    variables: NoInfer<Variables>,
  ): Promise<Answer> {
    return this.client.request(document, variables, this.stopping.signal);
  }

  /** Does something until it succeeds or the agent stops. A key that is refused ends the agent: no other attempt would help. */
  private untilDone<T>(what: string, action: (progress: () => void) => Promise<T>): Promise<T | undefined> {
    const failed = (error: unknown, _failures: number, waitMs: number): void => {
      if (error instanceof ServiceError && error.exitCode === ExitCode.REFUSED) {
        this.stopping.abort();
        this.news?.();
        this.options.log.error(
          { error: error.message, code: error.code },
          `agent: not allowed to ${what}; exiting`,
        );
        this.options.onRefused?.(error);
        return;
      }
      const { message, code } = error as ServiceError;
      const fields = { error: message, code, waitMs: Math.round(waitMs) };
      this.options.log.warn(fields, `agent: cannot ${what}`);
    };
    return untilDone(action, this.stopping.signal, failed, this.env);
  }
}

/** As many of the reports as go into one request. */
function nextBatch(reports: RunReport[]): RunReport[] {
  let size = 0;
  const end = reports.findIndex((report) => {
    if (report.phase === 'ENDED') {
      for (const { text, base64 } of report.outputs) size += (text ?? base64 ?? '').length;
      size += STEP_TEXT * (report.steps?.length ?? 0);
    }
    return size > BATCH_TEXT;
  });
  // The first goes, however large it is.
  return end < 0 ? reports : reports.slice(0, Math.max(1, end));
}

/** What the tasks here of each run use together: as of the report of an end, memory is the highest of one. */
function usesOf(runner: Runner, asked: readonly { job: string; epoch: number }[]): RunUseInput[] {
  const all = runner.uses?.(asked.map(({ job: jobId, epoch }) => ({ jobId, epoch }))) ?? [];
  const byRun = new Map<string, RunUse[]>();
  for (const use of all) {
    const run = `${use.jobId}.${use.epoch}`;
    byRun.set(run, [...(byRun.get(run) ?? []), use]);
  }
  return [...byRun.values()].map((uses) => {
    const { jobId: job, epoch } = uses[0]!;
    const cpuS = uses.map((use) => use.cpuS);
    const peaks = uses.map((use) => use.peakMemoryMb);
    return {
      ...{ job, epoch, tasks: uses.length },
      cpuS: cpuS.reduce((sum, one) => (sum === null || one === null ? null : sum + one)),
      peakMemoryMb: peaks.reduce((most, one) => (most === null || one === null ? null : Math.max(most, one))),
    };
  });
}

function stagingInput({
  jobId: job,
  epoch,
  token,
  beganAtMs,
  endedAtMs,
  totalMb,
  movedMb,
  error,
}: StagingReport): StagingReportInput {
  const at = (ms: number) => new Date(ms).toISOString();
  const endedAt = endedAtMs === null ? null : at(endedAtMs);
  return { job, epoch, token, beganAt: at(beganAtMs), endedAt, totalMb, movedMb, error };
}

function reportInput(report: RunReport, withSteps: boolean): RunReportInput {
  const { jobId: job, epoch, token, task, phase } = report;
  const at = new Date(report.atMs).toISOString();
  const { local } = report;
  const told = {
    ...{ job, epoch, phase, at },
    ...(token !== undefined && { token }),
    ...(task !== undefined && { task }),
    ...(local && { local: { ...local, nodes: local.nodes ? [...local.nodes] : null } }),
  };
  if (report.phase !== 'ENDED') return told;
  const { steps, ...end } = report;
  return { ...told, ...endInput(end), ...(withSteps && steps && { steps: steps.map(stepInput) }) };
}

/** Without what is null: a report is half as long then. */
function endInput({
  seq: _,
  jobId: _job,
  epoch: _epoch,
  token: _token,
  task: _task,
  phase: _phase,
  atMs: _at,
  local: _local,
  ...fields
}: Omit<EndedReport, 'steps'>): Partial<RunReportInput> {
  const told: Partial<RunReportInput> = fields;
  return Object.fromEntries(Object.entries(told).filter(([, value]) => value !== null));
}

function stepInput({ startedAtMs, endedAtMs, ...step }: RunStep): RunStepInput {
  const at = (ms: number) => new Date(ms).toISOString();
  return { ...step, startedAt: at(startedAtMs), endedAt: endedAtMs === null ? null : at(endedAtMs) };
}
