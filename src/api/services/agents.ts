/** What a site's agent does: says that it lives, and reports on runs. Its key is good for one site. */
import { parsePolicy } from '../../core/policy.js';
import { schedulerOf } from '../../core/scheduler.js';
import { MAX } from '../../platform/limits.js';
import type { OutputPiece, RunReport } from '../../store/store.js';
import type { Viewer } from '../auth.js';
import { atMost } from '../check.js';
import { badInput } from '../errors.js';
import type { ReportResult, RunReportInput } from '../generated/resolvers-types.js';
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
      const outcome = await store.reportRuns(siteId, reports.map(runReport), await maxAttempts());
      if (outcome.touched.length > 0) parts.wake(outcome.touched.map(schedulerOf));
      return outcome.results.map((result) => RESULTS[result]);
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
  const seconds = (name: 'cpuS' | 'ioWaitS'): number | null => {
    const value = input[name] ?? null;
    if (value !== null && !(value >= 0 && value <= MAX.reportedSeconds))
      throw badInput(field(name), value, `0 to ${MAX.reportedSeconds}`);
    return value;
  };
  if (input.epoch < 1) throw badInput(field('epoch'), input.epoch, '1 or more');
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
    cpuS: seconds('cpuS'),
    ioWaitS: seconds('ioWaitS'),
    stdout: output(input.stdout, field('stdout.bytes')),
    stderr: output(input.stderr, field('stderr.bytes')),
  };
}

function output(piece: RunReportInput['stdout'], field: string): OutputPiece | null {
  if (!piece) return null;
  if (!(piece.bytes >= 0 && piece.bytes <= Number.MAX_SAFE_INTEGER))
    throw badInput(field, piece.bytes, '0 or more');
  return { body: piece.text, bytes: Math.floor(piece.bytes), truncated: piece.truncated };
}
