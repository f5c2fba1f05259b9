/** Rows of the model of the store. */
import type { Machine, Run, UserClass } from '../../src/core/model.js';
import type { EndCause, JobAction, jobActions } from '../../src/core/states.js';
import type { StoredJob } from '../../src/store/job-fields.js';
import type { Retried } from '../../src/store/retries.js';
import type { WholeMachines } from '../../src/store/rules.js';
import type { TakenStep } from '../../src/store/run-reports.js';
import type { LocalRun, Measurement, RunReport, SentSignal } from '../../src/store/store.js';

export interface MemoryUser {
  id: number;
  name: string;
  role: 'USER' | 'PEER';
  class: UserClass;
  share: number;
  quota: { limit: number; periodS: number } | null;
}

export interface MemoryMachine extends Omit<Machine, 'available'> {
  name: string;
  state: 'UP' | 'DRAINING' | 'DOWN';
  silent: boolean;
  agentId: number | null;
  measured: Measurement | null;
  problem: string | null;
  launchFailures: number;
  powerMeasured: boolean;
  cpusUsed: number;
  memoryUsedMb: number;
  resourcesUsed: Record<string, number>;
  tasksUsed: number;
  removed: boolean;
}

export type MemoryJob = StoredJob;

export interface MemoryRun {
  jobId: number;
  epoch: number;
  siteId: number;
  allocations: { machineId: number; tasks: number }[];
  pools: Run['pools'];
  devices: string[][] | null;
  whole: WholeMachines | null;
  assignedAt: number;
  plannedS: number;
  limitS: number | null;
  startedAt: number | null;
  endedAt: number | null;
  checkpointAt: number | null;
  cause: EndCause | null;
  /** By index: those that have been reported by themselves. */
  tasks: Map<number, MemoryTask>;
  failedTask: number | null;
  ending: boolean;
  recalled: boolean;
  signals: SentSignal[];
  retry: Retried | null;
  local: LocalRun;
  steps: TakenStep[];
  /** Who chose where it runs. */
  placedBy: 'SERVICE' | 'SITE' | 'PEER';
  /** Of its end. */
  report: RunReport | null;
}

/** A task as it was reported. */
export interface MemoryTask {
  startedAt: number | null;
  checkpointAt?: number;
  end: RunReport | null;
}

/** What an action gives a value to. */
export type ValuesOf<A extends JobAction> = (typeof jobActions)[A] extends {
  readonly sets: readonly (infer F)[];
}
  ? Pick<MemoryJob, Extract<F, keyof MemoryJob>>
  : Record<never, never>;
