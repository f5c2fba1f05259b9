/** What a site's agent does: says that it lives, and reports on runs. Its key is good for one site. */
import { parsePolicy } from '../../core/policy.js';
import { schedulerOf } from '../../core/scheduler.js';
import { MAX } from '../../platform/limits.js';
import type { OutputPiece, RunReport, RunUsage } from '../../store/store.js';
import type { Viewer } from '../auth.js';
import { atMost } from '../check.js';
import { badInput } from '../errors.js';
import type {
  OutputPieceInput,
  ReportResult,
  RunOutputInput,
  RunReportInput,
} from '../generated/resolvers-types.js';
import { localId } from '../ids.js';
import { guarded, ownSite } from './access.js';
import { type ServiceParts, wakeAfter } from './parts.js';
import { remembered } from './remembered.js';

const SIGNAL = /^SIG[A-Z0-9+]{1,12}$/;

/** A new policy acts from the next cycle; here it may take so long. */
const POLICY_S = 1;

const RESULTS: Readonly<Record<'accepted' | 'repeated' | 'stale-epoch' | 'unknown-run', ReportResult>> = {
  accepted: 'ACCEPTED',
  repeated: 'REPEATED',
  'stale-epoch': 'STALE_EPOCH',
  'unknown-run': 'UNKNOWN_RUN',
};

export function createAgentsService(parts: ServiceParts) {
  const { store, limits, now } = parts;
  const maxAttempts = maxAttemptsOf(parts);
  return guarded({
    async heartbeat(viewer: Viewer, site: string, machines: readonly string[]): Promise<boolean> {
      const siteId = localId('site', site, 'site');
      ownSite(viewer, siteId);
      atMost('machines', machines, MAX.heartbeatMachines);
      const ids = machines.map((machine) => localId('machine', machine, 'machines'));
      const back = await store.heartbeat(siteId, ids, now());
      if (back.length > 0) await wakeAfter(parts, { of: 'MACHINE', siteId });
      return true;
    },

    async reportRuns(
      viewer: Viewer,
      site: string,
      reports: readonly RunReportInput[],
    ): Promise<ReportResult[]> {
      const siteId = localId('site', site, 'site');
      ownSite(viewer, siteId);
      atMost('reports', reports, limits.reportsMax);
      if (reports.length === 0) return [];
      const outcome = await store.reportRuns(
        siteId,
        reports.map(runReport),
        await maxAttempts(),
        limits.userOutputBytes,
      );
      if (outcome.touched.length > 0) parts.wake(outcome.touched.map(schedulerOf));
      return outcome.results.map((result) => RESULTS[result]);
    },

    async reportOutput(
      viewer: Viewer,
      site: string,
      outputs: readonly RunOutputInput[],
    ): Promise<ReportResult[]> {
      const siteId = localId('site', site, 'site');
      ownSite(viewer, siteId);
      atMost('outputs', outputs, limits.reportsMax);
      const pieces = outputs.map((input, index) => ({
        jobId: localId('job', input.job, `outputs[${index}].job`),
        epoch: input.epoch,
        ...outputPiece(input, `outputs[${index}]`),
      }));
      const bounds = { keepBytes: limits.outputBytesMax, userBytes: limits.userOutputBytes };
      return (await store.reportOutput(siteId, pieces, bounds)).map((result) => RESULTS[result]);
    },
  });
}

/** How often a job may run, by the policy in force. */
export const maxAttemptsOf = ({
  queries,
  now,
}: Pick<ServiceParts, 'queries' | 'now'>): (() => Promise<number>) =>
  remembered(POLICY_S, now, async () => {
    const policy = await queries.policy();
    return policy === null ? 1 : parsePolicy(policy.document).maxAttempts;
  });

function runReport(input: RunReportInput, index: number): RunReport {
  const field = (name: string): string => `reports[${index}].${name}`;
  const upTo = (most: number, name: 'cpuS' | 'ioWaitS' | 'peakMemoryMb' | 'readMb' | 'writtenMb') => {
    const value = input[name] ?? null;
    if (value !== null && !(value >= 0 && value <= most)) throw badInput(field(name), value, `0 to ${most}`);
    return value;
  };
  const usage: RunUsage = {
    cpuMethod: input.cpuMethod ?? null,
    peakMemoryMb: upTo(MAX.reportedMb, 'peakMemoryMb'),
    peakMemoryMethod: input.peakMemoryMethod ?? null,
    readMb: upTo(MAX.reportedMb, 'readMb'),
    writtenMb: upTo(MAX.reportedMb, 'writtenMb'),
    bytesMethod: input.bytesMethod ?? null,
    ioWaitMethod: input.ioWaitMethod ?? null,
  };
  if (input.epoch < 1) throw badInput(field('epoch'), input.epoch, '1 or more');
  atMost(field('outputs'), input.outputs ?? [], MAX.reportedPieces);
  const ended = input.phase === 'ENDED';
  if (ended && !input.cause) throw badInput(field('cause'), null, 'a cause, because the phase is ENDED');
  const signal = input.signal ?? null;
  if (signal !== null && !SIGNAL.test(signal))
    throw badInput(field('signal'), signal, 'the name of a signal such as SIGTERM');
  return {
    jobId: localId('job', input.job, field('job')),
    epoch: input.epoch,
    phase: input.phase,
    at: input.at.getTime() / 1000,
    exitCode: ended ? (input.exitCode ?? null) : null,
    signal: ended ? signal : null,
    cause: ended ? (input.cause ?? null) : null,
    // Cut rather than refused: the end of a run must not be lost over the length of its message.
    message: input.message?.slice(0, MAX.messageChars) ?? null,
    cpuS: upTo(MAX.reportedSeconds, 'cpuS'),
    ioWaitS: upTo(MAX.reportedSeconds, 'ioWaitS'),
    usage,
    outputs: (input.outputs ?? []).map((piece, i) => outputPiece(piece, field(`outputs[${i}]`))),
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
    throw badInput(`${field}.bytes`, bytes, 'as many as there are before the end of the piece, or more');
  return {
    stream,
    start: Math.floor(start),
    body,
    bytes: Math.max(Math.floor(bytes), Math.floor(start) + body.length),
  };
}
