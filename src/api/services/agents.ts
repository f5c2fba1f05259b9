/** What an agent does: takes machines, says that it lives, and reports on runs. Its key is good for one site. */
import { parsePolicy } from '../../core/policy.js';
import { schedulerOf } from '../../core/scheduler.js';
import { referenceOf } from '../../platform/images.js';
import { MAX } from '../../platform/limits.js';
import { meantRun } from '../../store/rules.js';
import type {
  AgentBeat,
  AgentRegistration,
  CheckpointReport,
  LocalRun,
  MachineClaim,
  Measurement,
  OutputPiece,
  ReportedImage,
  ReportedLoad,
  RunReport,
  RunStep,
} from '../../store/store.js';
import { tellTerminals } from '../../store/terminals.js';
import { eachUsage, isAmount, type Usage, type UsageAmount, usageAmounts } from '../../store/usage.js';
import type { Viewer } from '../auth.js';
import { atMost, clearable, plainName, text, within } from '../check.js';
import { devicesGiven } from '../devices.js';
import { ApiError, badInput } from '../errors.js';
import type {
  AgentMachineInput,
  CheckpointReportInput,
  ImageReportInput,
  LocalRunInput,
  MeasurementInput,
  OutputPieceInput,
  RegisterAgentInput,
  ReportOutputPayload,
  ReportResult,
  RunOutputInput,
  RunReportInput,
  RunStepInput,
  SiteLicenseInput,
  SiteLoadInput,
} from '../generated/types.js';
import { globalId, localId } from '../ids.js';
import { labelsGiven } from '../labels.js';
import type { RegisterAgentPayloadModel } from '../models.js';
import { guarded, ownSite } from './access.js';
import { type ServiceParts, wakeAfter } from './parts.js';
import { type Remembered, remembered } from './remembered.js';

const SIGNAL = /^SIG[A-Z0-9+]{1,12}$/;

/** How long the policy is remembered where it decides nothing. */
const POLICY_S = 1;

const RESULTS: Readonly<Record<'accepted' | 'repeated' | 'stale-epoch' | 'unknown-run', ReportResult>> = {
  accepted: 'ACCEPTED',
  repeated: 'REPEATED',
  'stale-epoch': 'STALE_EPOCH',
  'unknown-run': 'UNKNOWN_RUN',
};

const superseded = (): ApiError =>
  new ApiError('FORBIDDEN', 'another process has since registered as this agent; this one exits');

// biome-ignore lint/complexity/noExcessiveLinesPerFunction: a module: it returns short functions that share its parts
export function createAgentsService(parts: ServiceParts) {
  const { store, queries, feed, limits, now } = parts;
  const maxAttempts = maxAttemptsOf(parts);
  /** Beats that come while others are being written go together. */
  const beat = gathered(async (beats: readonly AgentBeat[]) => {
    const { answers, touched } = await store.heartbeat(beats, now());
    for (const siteId of touched) await wakeAfter(parts, { of: 'MACHINE', siteId });
    return answers;
  });
  return guarded({
    async registerAgent(
      viewer: Viewer,
      input: RegisterAgentInput,
      requestId: string,
    ): Promise<RegisterAgentPayloadModel> {
      const registration = agentRegistration(input);
      const { siteId, identity, host } = registration;
      ownSite(viewer, siteId);
      const outcome = await store.registerAgent(
        {
          ...registration,
          audit: {
            ...{
              userId: viewer.userId,
              requestId,
              action: 'registerAgent',
              target: globalId('site', siteId),
            },
            reason: 'first registration by their agent',
          },
        },
        now(),
        await maxAttempts.afresh(),
      );
      if (outcome.agentId === 'superseded') throw superseded();
      if (outcome.agentId === 'too-many')
        throw new ApiError('LIMIT_EXCEEDED', `the site has ${MAX.siteAgents} agents, which is the limit`);
      const own = new Set(registration.machines?.flatMap((one) => (one.problem === null ? [] : one.name)));
      for (const { name, refused, problem } of outcome.machines) {
        const of = { site: input.site, agent: identity, host, machine: name };
        if (refused !== null) parts.agentRefused({ ...of, refused });
        else if (problem !== null && !own.has(name)) parts.machineUnfit({ ...of, problem });
      }
      if (outcome.touched.length > 0) parts.wake(outcome.touched.map(schedulerOf));
      if (outcome.changed) await wakeAfter(parts, { of: 'MACHINE', siteId });
      return { agentId: outcome.agentId, machines: outcome.machines };
    },

    async heartbeat(
      viewer: Viewer,
      site: string,
      agent: string | null,
      instance: string | null,
      checkpoints: readonly CheckpointReportInput[] = [],
    ): Promise<boolean> {
      const siteId = localId('site', site, 'site');
      ownSite(viewer, siteId);
      const agentId = agentOf(agent);
      atMost('checkpoints', checkpoints, limits.reportsMax);
      const reports = checkpoints.map(checkpointReport);
      const answer = await beat({ siteId, agentId, instance: instance ?? '' });
      if (answer === 'superseded') throw superseded();
      if (answer === 'known' && reports.length > 0) await store.noteCheckpoints(siteId, agentId, reports);
      return answer === 'known';
    },

    async reportRuns(
      viewer: Viewer,
      site: string,
      agent: string | null,
      reports: readonly RunReportInput[],
      sentAt: Date | null,
    ): Promise<ReportResult[]> {
      const siteId = localId('site', site, 'site');
      ownSite(viewer, siteId);
      // A peer reports for the site that it is here.
      const isPeer = viewer.role === 'PEER';
      const agentId = isPeer ? null : agentOf(agent);
      atMost('reports', reports, limits.reportsMax);
      if (reports.length === 0) return [];
      // By the policy in force it is decided whether a run that has ended badly is the job's last.
      const endedBadly = reports.some(({ phase, cause }) => phase === 'ENDED' && cause !== 'EXITED_ZERO');
      const outcome = await store.reportRuns(
        siteId,
        reports.map((report, index) => ({
          ...runReport(report, index, isPeer),
          sentAt: sentAt && sentAt.getTime() / 1000,
        })),
        await (endedBadly ? maxAttempts.afresh() : maxAttempts()),
        agentId,
        limits.userOutputBytes,
      );
      if (outcome.touched.length > 0) parts.wake(outcome.touched.map(schedulerOf));
      return outcome.results.map((result) => RESULTS[result]);
    },

    async reportLoad(viewer: Viewer, site: string, agent: string, load: SiteLoadInput): Promise<boolean> {
      const siteId = localId('site', site, 'site');
      ownSite(viewer, siteId);
      const reported = reportedLoad(load);
      const taken = await store.reportLoad(siteId, agentOf(agent), reported, now());
      if (!taken) return false;
      const [row] = await queries.sitesByIds([siteId]);
      if (row !== undefined) parts.siteReported(row.name, reported);
      // Its licenses are the site's own: whoever looks after the site has changed looks at them.
      await wakeAfter(parts, { of: 'SITE', siteId });
      return true;
    },

    async reportImages(
      viewer: Viewer,
      site: string,
      agent: string,
      images: readonly ImageReportInput[],
    ): Promise<boolean> {
      const siteId = localId('site', site, 'site');
      ownSite(viewer, siteId);
      atMost('images', images, MAX.agentImages);
      const names = new Set<string>();
      const reported = new Map<string, ReportedImage>();
      for (const [index, { name, sizeMb, digest = null }] of images.entries()) {
        const field = (part: string): string => `images[${index}].${part}`;
        text(field('name'), name, MAX.nameChars, 1);
        if (names.has(name)) throw badInput(field('name'), name, 'each name once');
        names.add(name);
        // Of an image that lies there twice, the larger counts.
        const one = {
          name: referenceOf(name),
          sizeMb: within(field('sizeMb'), sizeMb, 0, MAX.sizeMb),
          digest: clearable(field('digest'), digest, text, MAX.nameChars, 1) ?? null,
        };
        if (one.sizeMb >= (reported.get(one.name)?.sizeMb ?? 0)) reported.set(one.name, one);
      }
      const { serves, changed } = await store.reportImages(siteId, agentOf(agent), [...reported.values()]);
      if (changed) await wakeAfter(parts, { of: 'DATA' });
      return serves;
    },

    async reportOutput(
      viewer: Viewer,
      site: string,
      agent: string | null,
      outputs: readonly RunOutputInput[],
    ): Promise<ReportOutputPayload> {
      const siteId = localId('site', site, 'site');
      ownSite(viewer, siteId);
      const agentId = agentOf(agent);
      atMost('outputs', outputs, limits.reportsMax);
      const pieces = outputs.map((input, index) => ({
        jobId: localId('job', input.job, `outputs[${index}].job`),
        epoch: input.epoch,
        token: input.token ?? null,
        task: input.task,
        ...outputPiece(input, `outputs[${index}]`),
      }));
      const bounds = { keepBytes: limits.outputBytesMax, userBytes: limits.userOutputBytes };
      const outcomes = await store.reportOutput(siteId, pieces, bounds, agentId);
      const wrote = outputs.flatMap(({ terminal }, i) =>
        terminal && outcomes[i]?.result === 'accepted' ? [pieces[i]!.jobId] : [],
      );
      if (wrote.length > 0)
        await tellTerminals(
          feed.words,
          [...new Set(wrote)].map((jobId) => ({ is: 'WROTE', jobId })),
        );
      return {
        results: outcomes.map(({ result }) => RESULTS[result]),
        receivedBytes: outcomes.map(({ received }) => received),
      };
    },
  });
}

/** The versions of the protocol that are spoken: this release's, and that of the release before. */
const PROTOCOL = 4;
const PROTOCOL_BEFORE = 3;

/** The agent that a request is from. Older versions of the protocol did not say. */
export function agentOf(agent: string | null): number {
  if (agent !== null) return localId('agent', agent, 'agent');
  throw new ApiError(
    'FORBIDDEN',
    `this agent speaks an older version of the protocol than the service (${PROTOCOL}): upgrade the agent`,
  );
}

function agentRegistration(input: RegisterAgentInput): AgentRegistration {
  const { protocol, simulated } = input;
  if (protocol !== PROTOCOL && protocol !== PROTOCOL_BEFORE)
    throw new ApiError(
      'FORBIDDEN',
      `this agent speaks version ${protocol} of the protocol, and the service version ${PROTOCOL}: upgrade ${protocol < PROTOCOL ? 'the agent' : 'the service'}`,
    );
  const machines = input.machines ?? null;
  if (machines === null && !simulated)
    throw badInput(
      'machines',
      null,
      'the machines that the agent serves; null (all machines of the site) only for a simulated agent',
    );
  if (machines !== null) {
    atMost('machines', machines, MAX.agentMachines);
    if (new Set(machines.map(({ name }) => name)).size < machines.length)
      throw badInput('machines', machines.length, 'each name once');
  }
  return {
    siteId: localId('site', input.site, 'site'),
    identity: text('identity', input.identity, 200, 1),
    instance: text('instance', input.instance, 200, 1),
    host: text('host', input.host, 253, 1),
    version: text('version', input.version, 100, 1),
    protocol,
    simulated,
    machines: machines?.map((machine, i) => claim(machine, `machines[${i}]`, simulated)) ?? null,
  };
}

function claim(
  { name, measured, problem, waits }: AgentMachineInput,
  at: string,
  simulated: boolean,
): MachineClaim {
  if (simulated === Boolean(measured))
    throw badInput(
      `${at}.measured`,
      measured,
      simulated ? 'nothing, for a simulated agent' : 'a measurement',
    );
  return {
    name: plainName(`${at}.name`, name),
    measured: measured ? measurement(measured, `${at}.measured`) : null,
    problem: problem ? text(`${at}.problem`, problem, MAX.reasonChars) : null,
    waits: waits ? text(`${at}.waits`, waits, MAX.reasonChars) : null,
  };
}

function measurement(input: MeasurementInput, at: string): Measurement {
  atMost(`${at}.gpus`, input.gpus, 64);
  return {
    cpus: within(`${at}.cpus`, input.cpus, 1, MAX.machineCpus),
    memoryMb: within(`${at}.memoryMb`, input.memoryMb, 0, MAX.integer),
    os: text(`${at}.os`, input.os, MAX.nameChars, 1),
    architecture: text(`${at}.architecture`, input.architecture, MAX.nameChars, 1),
    model: input.model ? text(`${at}.model`, input.model, MAX.nameChars) : null,
    benchmark: within(`${at}.benchmark`, input.benchmark, MAX.leastBenchmark, MAX.benchmark),
    labels: labelsGiven(`${at}.labels`, input.labels),
    devices: devicesGiven(`${at}.devices`, input.devices),
    gpus: input.gpus.map((gpu) => ({
      name: text(`${at}.gpus.name`, gpu.name, MAX.nameChars, 1),
      memoryMb: within(`${at}.gpus.memoryMb`, gpu.memoryMb, 0, MAX.integer),
    })),
  };
}

/** One at a time: what is asked for meanwhile is asked for together, next. */
function gathered<I, O>(ask: (items: readonly I[]) => Promise<readonly O[]>): (item: I) => Promise<O> {
  let waiting: { item: I; done: (answer: O) => void; failed: (error: unknown) => void }[] = [];
  let busy = false;
  const go = async (): Promise<void> => {
    busy = true;
    while (waiting.length > 0) {
      const now = waiting;
      waiting = [];
      try {
        const answers = await ask(now.map(({ item }) => item));
        for (const [i, { done }] of now.entries()) done(answers[i] as O);
      } catch (error) {
        for (const { failed } of now) failed(error);
      }
    }
    busy = false;
  };
  return (item) =>
    new Promise((done, failed) => {
      waiting.push({ item, done, failed });
      if (!busy) void go();
    });
}

/** How often a job may run, by the policy in force. */
export const maxAttemptsOf = ({ queries, now }: Pick<ServiceParts, 'queries' | 'now'>): Remembered<number> =>
  remembered(POLICY_S, now, async () => {
    const policy = await queries.policy();
    return policy === null ? 1 : parsePolicy(policy.document).maxAttempts;
  });

/** Longer than any run, seconds. */
const LONG_AGO_S = 1e9;

function checkpointReport(input: CheckpointReportInput, index: number): CheckpointReport {
  const field = (name: string): string => `checkpoints[${index}].${name}`;
  if (input.epoch < 1) throw badInput(field('epoch'), input.epoch, '1 or more');
  if (!(input.ageS >= 0)) throw badInput(field('ageS'), input.ageS, '0 or more');
  return {
    jobId: localId('job', input.job, field('job')),
    ...{ epoch: input.epoch, token: input.token ?? null, task: input.task ?? null },
    ageS: Math.min(input.ageS, LONG_AGO_S),
  };
}

function runReport(input: RunReportInput, index: number, isPeer: boolean): RunReport {
  const field = (name: string): string => `reports[${index}].${name}`;
  const amount = (name: UsageAmount): number | null => {
    const [value, most] = [input[name] ?? null, MAX[usageAmounts[name].max]];
    if (value !== null && !(value >= 0 && value <= most)) throw badInput(field(name), value, `0 to ${most}`);
    return value;
  };
  const { cpuS, ioWaitS, ...usage } = eachUsage((name) =>
    isAmount(name) ? amount(name) : (input[name] ?? null),
  ) as Usage;
  if (input.epoch < 1) throw badInput(field('epoch'), input.epoch, '1 or more');
  atMost(field('outputs'), input.outputs ?? [], MAX.reportedPieces);
  const ended = input.phase === 'ENDED';
  if (ended && !input.cause) throw badInput(field('cause'), null, 'a cause, because the phase is ENDED');
  const signal = input.signal ?? null;
  if (signal !== null && !SIGNAL.test(signal))
    throw badInput(field('signal'), signal, 'the name of a signal such as SIGTERM');
  return {
    jobId: localId('job', input.job, field('job')),
    ...(isPeer ? meantRun(input.epoch) : { epoch: input.epoch, token: input.token ?? null }),
    task: input.task ?? null,
    phase: input.phase,
    at: input.at.getTime() / 1000,
    exitCode: ended ? (input.exitCode ?? null) : null,
    signal: ended ? signal : null,
    cause: ended ? (input.cause ?? null) : null,
    // Cut rather than refused: the end of a run must not be lost over the length of its message.
    message: input.message?.slice(0, MAX.messageChars) ?? null,
    cpuS,
    ioWaitS,
    usage,
    outputs: (input.outputs ?? []).map((piece, i) => outputPiece(piece, field(`outputs[${i}]`))),
    local: input.local ? localRun(input.local, `reports[${index}].local`) : null,
    ...(ended && input.steps?.length && { steps: runSteps(input.steps, field('steps')) }),
  };
}

function runSteps(steps: readonly RunStepInput[], at: string): RunStep[] {
  atMost(at, steps, MAX.runSteps);
  const numbers = new Set<number>();
  return steps.map(({ name, signal = null, exitCode = null, startedAt, endedAt, ...counts }, i) => {
    const count = (field: 'number' | 'tasks' | 'machines' | 'cpus', least: number): number =>
      within(`${at}[${i}].${field}`, counts[field], least, MAX.integer);
    const number = count('number', 0);
    if (numbers.has(number)) throw badInput(`${at}[${i}].number`, number, 'each number once');
    numbers.add(number);
    if (signal !== null && !SIGNAL.test(signal))
      throw badInput(`${at}[${i}].signal`, signal, 'the name of a signal such as SIGTERM');
    return {
      ...{ number, tasks: count('tasks', 1), machines: count('machines', 1), cpus: count('cpus', 1) },
      ...{ name: name.slice(0, MAX.nameChars), exitCode, signal },
      startedAt: startedAt.getTime() / 1000,
      endedAt: endedAt ? endedAt.getTime() / 1000 : null,
    };
  });
}

function localRun(local: LocalRunInput, at: string): LocalRun {
  atMost(`${at}.nodes`, local.nodes ?? [], MAX.agentMachines);
  return {
    id: local.id?.slice(0, MAX.nameChars) ?? null,
    state: local.state?.slice(0, MAX.reasonChars) ?? null,
    nodes: local.nodes?.map((node) => node.slice(0, MAX.nameChars)) ?? null,
    imageDigest: local.imageDigest?.slice(0, MAX.nameChars) ?? null,
    directory: local.directory?.slice(0, MAX.reasonChars) ?? null,
  };
}

function reportedLoad({
  waitingJobs,
  waitingS,
  waitingCpuS,
  takesParts,
  takesDevices,
  longestS,
  busy,
  licenses,
  ...details
}: SiteLoadInput): ReportedLoad {
  atMost('load.busy', busy, MAX.agentMachines);
  return {
    licenses: licenses ? siteLicenses(licenses) : null,
    waitingJobs: within('load.waitingJobs', waitingJobs, 0, MAX.integer),
    waitingS: within('load.waitingS', waitingS, 0, MAX.reportedSeconds),
    waitingCpuS: within('load.waitingCpuS', waitingCpuS, 0, MAX.reportedSeconds),
    takesParts,
    takesDevices,
    longestS: longestS == null ? null : within('load.longestS', longestS, 0, MAX.reportedSeconds),
    busy: busy.map(({ machine, cpus, memoryMb }, i) => ({
      machine: plainName(`load.busy[${i}].machine`, machine),
      cpus: within(`load.busy[${i}].cpus`, cpus, 0, MAX.machineCpus),
      memoryMb: within(`load.busy[${i}].memoryMb`, memoryMb, 0, MAX.integer),
    })),
    details: detailsOf(details),
  };
}

function siteLicenses(licenses: readonly SiteLicenseInput[]): NonNullable<ReportedLoad['licenses']> {
  atMost('load.licenses', licenses, MAX.siteLicenses);
  const names = licenses.map(({ name }) => name);
  const twice = names.find((name, i) => names.indexOf(name) < i);
  if (twice !== undefined) throw badInput('load.licenses', twice, 'each name once');
  return licenses.map(({ name, total }, i) => ({
    kind: text(`load.licenses[${i}].name`, name, MAX.nameChars, 1),
    copies: within(`load.licenses[${i}].total`, total, 0, MAX.integer),
  }));
}

type Details = Pick<SiteLoadInput, 'partitions' | 'queue' | 'calls'>;

/** Texts are cut rather than refused: the load must not be lost over them. */
function detailsOf({ partitions, queue, calls }: Details): ReportedLoad['details'] {
  atMost('load.partitions', partitions, MAX.sitePartitions);
  atMost('load.queue', queue ?? [], MAX.siteQueue);
  const seconds = (field: string, value: number): number => within(field, value, 0, MAX.reportedSeconds);
  const whole = (field: string, value: number): number => within(field, value, 0, MAX.integer);
  return {
    partitions: partitions.map(({ name, isDefault, isUsed, state, nodeList, longestS, ...counts }, i) => ({
      ...{ name: name.slice(0, MAX.nameChars), isDefault, isUsed, state: state.slice(0, MAX.nameChars) },
      nodes: whole(`load.partitions[${i}].nodes`, counts.nodes),
      nodeList: nodeList.slice(0, MAX.reasonChars),
      cpus: whole(`load.partitions[${i}].cpus`, counts.cpus),
      busyCpus: whole(`load.partitions[${i}].busyCpus`, counts.busyCpus),
      longestS: longestS == null ? null : seconds(`load.partitions[${i}].longestS`, longestS),
    })),
    queue:
      queue?.map(({ id, cpus, limitS, reason }, i) => ({
        id: id?.slice(0, MAX.nameChars) ?? null,
        cpus: whole(`load.queue[${i}].cpus`, cpus),
        limitS: seconds(`load.queue[${i}].limitS`, limitS),
        reason: reason?.slice(0, MAX.nameChars) ?? null,
      })) ?? null,
    calls: calls
      ? {
          made: within('load.calls.made', calls.made, 0, Number.MAX_SAFE_INTEGER),
          failed: within('load.calls.failed', calls.failed, 0, Number.MAX_SAFE_INTEGER),
          listS: seconds('load.calls.listS', calls.listS),
          jobs: whole('load.calls.jobs', calls.jobs),
        }
      : null,
  };
}

const BASE64 = /^[A-Za-z0-9+/]*={0,2}$/;

function outputPiece({ stream, start, text, base64, bytes }: OutputPieceInput, field: string): OutputPiece {
  const given = text ?? base64;
  if (given === null || given === undefined || (text != null && base64 != null))
    throw badInput(`${field}.text`, text ?? null, 'either text or base64');
  if (base64 != null && !BASE64.test(base64))
    throw badInput(`${field}.base64`, base64.slice(0, 80), 'base64');
  const body = Buffer.from(given, text == null ? 'base64' : 'utf8');
  if (!(start >= 0 && start <= Number.MAX_SAFE_INTEGER)) throw badInput(`${field}.start`, start, '0 or more');
  if (!(bytes >= start && bytes <= Number.MAX_SAFE_INTEGER))
    throw badInput(`${field}.bytes`, bytes, 'at least the number of bytes up to the end of the piece');
  return {
    stream,
    start: Math.floor(start),
    body,
    bytes: Math.max(Math.floor(bytes), Math.floor(start) + body.length),
  };
}
