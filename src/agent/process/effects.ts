/** Carries out what the lives of runs ask for (life.ts). */
import { existsSync, realpathSync } from 'node:fs';
import { basename, join } from 'node:path';
import { pathInTmp } from '../../platform/file-paths.js';
import type { EndedRun } from '../files/handover.js';
import { notedSteps, STEPS } from '../files/steps.js';
import type { KnownRuns } from '../known.js';
import { nameOf, type RunName, type RunStep, runKey, type SentSignal } from '../runner.js';
import { measuredOf } from './ends.js';
import { lastOutputs } from './follow.js';
import type { Isolation } from './isolation.js';
import type { LeftBehind } from './left.js';
import type { Effect, Lives } from './life.js';
import type { OutputPool } from './outputs.js';
import type { Remains } from './remains.js';
import { type End, endReport, type Reports } from './reports.js';
import { type ProcessRun, upMs } from './run.js';
import type { Signals } from './signals.js';
import type { Slots } from './slots.js';

export interface EffectsOptions {
  lives: Lives<ProcessRun>;
  signals: Signals;
  isolation: Isolation;
  slots: Slots;
  outputs: OutputPool;
  remains: Remains;
  leftBehind: LeftBehind;
  reports: Reports;
  known: KnownRuns;
  keep: (run: EndedRun, signal: AbortSignal) => Promise<string | null>;
  reportEnd: (run: RunName, end: End) => void;
  /** Told when there is room for one more run. */
  freed: () => void;
  warn: (fields: object, message: string) => void;
}

/** Names of files that are removed, of those that a job is told. */
const TOLD_NAMES = 5;

export class Effects {
  /** What is under way for runs whose outputs are being kept. */
  private readonly keeping = new Map<ProcessRun, AbortController>();

  constructor(private readonly options: EffectsOptions) {}

  carryOut(key: string, effect: Effect<ProcessRun>): void {
    const { signals, lives } = this.options;
    switch (effect.do) {
      case 'TELL_LANE':
        effect.run.slot.launch(key);
        break;
      case 'REPORT_START':
        this.reportStart(effect.run);
        break;
      case 'REPORT_UNSTARTED':
        this.options.reportEnd(effect.assignment, effect.end);
        break;
      case 'WARN':
        this.warn(key, effect.run);
        break;
      case 'SIGNAL':
        this.signal(key, effect.run, effect.signals);
        break;
      case 'TERMINATE':
        signals.terminate(effect.run, effect.signal);
        break;
      case 'KILL':
        signals.kill(effect.run, effect.round);
        break;
      case 'KILL_LEFT':
        signals.killLeft(effect.run);
        break;
      case 'KILL_LOST':
        if (signals.killLost(effect.run) === 0)
          lives.tell(key, { is: 'NONE_LEFT', measured: measuredOf(effect.run, null) });
        break;
      case 'CLEAR':
        this.clear(key, effect.run, effect.quiet);
        break;
      case 'KEEP':
        this.keep(key, effect.run, effect);
        break;
      case 'STOP_KEEPING':
        this.keeping.get(effect.run)?.abort(new Error('the run was canceled'));
        break;
      case 'REPORT':
        if (this.isReported(effect.run, effect.end, effect.atMs)) lives.tell(key, { is: 'REPORTED' });
        break;
      case 'FREE':
        this.free(effect.run, effect.held, effect.leaves);
        break;
    }
  }

  reportStart(run: ProcessRun): void {
    const { startedAtMs: atMs, image } = run;
    const told = image?.digest ? { local: { imageDigest: image.digest } } : {};
    this.options.reports.add({ phase: 'STARTED', ...nameOf(run), atMs, ...told });
  }

  /** What goes on is stopped: the agent ends. */
  stop(): void {
    for (const stop of this.keeping.values()) stop.abort(new Error('the agent stops'));
  }

  /** Noted first: a program may take a second warning for something else, and does without one if it has to. */
  private warn(key: string, run: ProcessRun): void {
    if (run.warned) return;
    run.warned = true;
    try {
      run.slot.noteWarned(key);
    } catch {
      // No room on the disk: better warned twice than not at all.
    }
    this.options.signals.ask(run, run.warnSignal);
  }

  /** Noted first, for the same reason. Of a run whose command is not there yet they wait for the next look. */
  private signal(key: string, run: ProcessRun, all: readonly SentSignal[]): void {
    const { signals } = this.options;
    run.unsent = all.filter(({ number }) => number > run.signalled);
    for (const { number, signal, to } of run.unsent) {
      const processes = signals.receivers(run, to);
      if (processes === null) return;
      run.signalled = number;
      try {
        run.slot.noteSignalled(key, number);
      } catch {
        // No room on the disk.
      }
      signals.send(run, signal, processes);
    }
    run.unsent = [];
  }

  private clear(key: string, run: ProcessRun, quiet: boolean): void {
    const { signals, lives } = this.options;
    const held = signals.killLeft(run);
    if (!quiet) this.tellOfTmp(run);
    const cleared = (): void => lives.tell(key, { is: 'CLEARED', held });
    const clearing = signals.clearAs(run);
    const last = hasSteps(run) ? Promise.resolve(clearing).then(() => lookAtSteps(run)) : clearing;
    if (last) void last.finally(cleared);
    else cleared();
  }

  /** A job in a sandbox or image has written to a /tmp that nobody else sees: without a word its owner would look for the files there. */
  private tellOfTmp({ slot, outputs, image, wanted }: ProcessRun): void {
    if (this.options.isolation.mode !== 'sandbox' && !image) return;
    // Who names something there knows.
    if (wanted?.outputs.some(({ path }) => pathInTmp(path) !== null)) return;
    const names = slot.leftInTmp(TOLD_NAMES, image ? (image.tmp ?? 'tmp') : '.');
    if (names.length === 0) return;
    const some = names.map((name) => JSON.stringify(name)).join(', ');
    try {
      outputs.err.append(
        `switchyard: /tmp was private to this job and is removed with the files left in it, such as ${some}. ` +
          'To keep files, name them as outputs (--keep /tmp/NAME).\n',
      );
    } catch {
      // No room on the disk: its end matters more.
    }
  }

  private keep(
    key: string,
    run: ProcessRun,
    { cause, outputs }: Extract<Effect<ProcessRun>, { do: 'KEEP' }>,
  ): void {
    const { wanted, task = 0, uid } = run;
    const stop = new AbortController();
    const beganMs = upMs();
    this.keeping.set(run, stop);
    const over = (problem: string | null): void => {
      this.keeping.delete(run);
      this.options.lives.tell(key, { is: 'KEPT', problem, seconds: (upMs() - beganMs) / 1000 });
    };
    const ended = { ...nameOf(run), task, uid, ...wanted!, outputs, well: cause === 'EXITED_ZERO' };
    this.options.keep(ended, stop.signal).then(over, (error: Error) => over(error.message));
  }

  /** Reports the end of a run; false: its output goes before, or there is no room. */
  private isReported(run: ProcessRun, end: End, atMs: number | null): boolean {
    const { reports, known } = this.options;
    const outputs = lastOutputs(run);
    if (outputs === null) {
      reports.announce();
      return false;
    }
    // As long after the start as has passed, whatever was done to the clock meanwhile.
    const now = run.startedAtMs + upMs() - run.startedUpMs;
    const endedAtMs = Math.min(Math.max(atMs ?? now, run.startedAtMs), now);
    const told = Math.round(endedAtMs);
    const steps = run.steps && { steps: run.steps.map((step) => within(step, run.startedAtMs, told)) };
    if (!reports.tryAdd(endReport(run, { ...end, outputs, ...steps }, told))) return false;
    known.reported(run);
    return true;
  }

  private free(run: ProcessRun, held: boolean, leaves: boolean): void {
    const { isolation, outputs, slots, remains, freed } = this.options;
    const { account, ownId, group, privateDirectory, hasHosts, wanted } = run;
    const hasNotes = hasHosts || wanted?.checkpoint !== undefined || hasSteps(run);
    outputs.rest(run.outputs);
    if (leaves) this.leave(run);
    const trash = slots.release(run, held, privateDirectory || hasNotes || isolation.mode !== 'none');
    remains.add({ ownId, account, group, trash });
    freed();
  }

  /** Puts the directory of a run aside, for whoever wants to look what could not be kept. */
  private leave(run: ProcessRun): void {
    const { leftBehind, warn } = this.options;
    const { slot, jobId: job, epoch, task } = run;
    try {
      const path = leftBehind.take(slot.workDirectory, runKey(run));
      warn(
        { job, epoch, task, path },
        'outputs of a run could not be saved; its files stay in this directory',
      );
    } catch (err) {
      warn({ job, epoch, task, err }, 'neither the outputs of a run nor its directory could be saved');
    }
  }
}

const hasSteps = ({ slot }: ProcessRun): boolean => existsSync(join(slot.workDirectory, STEPS));

/** What `srun` in a run that is over has noted. */
async function lookAtSteps(run: ProcessRun): Promise<void> {
  const { slot, uid } = run;
  const steps = await notedSteps({
    directory: join(realpathSync(slot.dir), basename(slot.workDirectory)),
    uid,
  });
  if (steps.length > 0) run.steps = steps;
}

/** A step with times that its run can have had: the job may have noted any. */
function within(step: RunStep, fromMs: number, toMs: number): RunStep {
  const startedAtMs = Math.min(Math.max(step.startedAtMs, fromMs), toMs);
  const endedAtMs = step.endedAtMs && Math.min(Math.max(step.endedAtMs, startedAtMs), toMs);
  return { ...step, startedAtMs, endedAtMs };
}
