/** Runs whose inputs are brought to them before they start: around a runner of real processes. */
import { randomUUID } from 'node:crypto';
import { chmodSync, mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { isPacked, unpack } from '../files/archive.js';
import { rm, writeFile } from '../files/share.js';
import {
  type Assignment,
  type EndCause,
  type LiveOutput,
  type LiveRun,
  nameOf,
  type RunName,
  type Runner,
  type RunReport,
  runKey,
  type SentSignal,
  type StagedInput,
  type WarnSignal,
  type WrittenCheckpoint,
} from '../runner.js';
import { type CacheOptions, DataCache, type Moved } from './cache.js';
import { WrongContent } from './source.js';

/** A runner that starts runs with what was staged for them, and can be told that one will not be. */
export interface StageableRunner extends Runner {
  /** Whether its runs have accounts of their own. */
  readonly hasAccounts: boolean;
  /** Whether this run, or a later one of the job, has been seen. */
  knows(run: RunName): boolean;
  /** Reports the end of a run that has never been started and never will be. */
  fail(run: RunName, cause: EndCause, message: string): void;
}

/** What staging a run's inputs has taken, up to now. */
export interface StagingReport extends RunName {
  beganAtMs: number;
  /** null: it goes on. */
  endedAtMs: number | null;
  /** Of all inputs. */
  totalMb: number;
  /** What had to be moved for it; the rest was at hand. */
  movedMb: number;
  /** Why it failed. */
  error: string | null;
  /** By site from which something came. */
  moved: readonly Moved[];
}

/** What the agent tells the service of staging. */
export interface StagingSource {
  /** What has changed since it was delivered, and what goes on. */
  stagings(): StagingReport[];
  stagingDelivered(reports: readonly StagingReport[]): void;
}

interface Staging {
  assignment: Assignment;
  report: StagingReport;
  stop: AbortController;
}

/** What the next agent has to know of a run's data. */
interface Hold extends RunName {
  /** Entries of the cache that it reads. */
  entries: string[];
  /** The directory of its checkpoint, under the name that it has among these; left out: it has none. */
  unpacked?: string;
  report: StagingReport;
  delivered: boolean;
}

/**
 * A run is staged before the runner hears of it: until then nothing of it is recorded, so should the agent die, the service asks for
 * it again and staging continues where it was. From then on a file in `runs` holds its data in the cache for as long as it is live.
 */
export class StagingRunner implements Runner, StagingSource {
  private readonly staging = new Map<string, Staging>();
  private readonly holds = new Map<string, Hold>();
  private readonly cache: DataCache;
  private readonly runsDir: string;
  private readonly unpackedDir: string;

  /** @param dir where copies are kept; one agent at a time */
  constructor(
    private readonly inner: StageableRunner,
    dir: string,
    options: Omit<CacheOptions, 'dir'>,
  ) {
    this.runsDir = join(dir, 'runs');
    mkdirSync(this.runsDir, { recursive: true });
    chmodSync(this.runsDir, 0o700);
    this.unpackedDir = join(dir, 'checkpoints');
    mkdirSync(this.unpackedDir, { recursive: true });
    this.cache = new DataCache({ ...options, dir: join(dir, 'datasets') });
    // Accounts of runs have to get to the copies, whose names they are told.
    if (inner.hasAccounts)
      for (const each of [dir, join(dir, 'datasets'), this.unpackedDir]) chmodSync(each, 0o711);
    for (const name of readdirSync(this.runsDir)) {
      const hold = readHold(join(this.runsDir, name));
      if (hold === null) rmSync(join(this.runsDir, name), { force: true });
      else {
        this.holds.set(runKey(hold), hold);
        this.cache.hold(hold.entries, runKey(hold));
      }
    }
    const inUse = new Set([...this.holds.values()].map(({ unpacked }) => unpacked));
    for (const name of readdirSync(this.unpackedDir)) if (!inUse.has(name)) this.removeUnpacked(name);
    this.letGo();
  }

  get onReports(): (() => void) | null {
    return this.inner.onReports;
  }

  set onReports(told: (() => void) | null) {
    this.inner.onReports = told;
  }

  nowMs(): number {
    return this.inner.nowMs();
  }

  get problem(): string | null {
    return this.inner.problem;
  }

  async takeOver(): Promise<string | null> {
    return (await this.inner.takeOver?.()) ?? null;
  }

  start(assignment: Assignment): void {
    const { inputs } = assignment;
    const key = runKey(assignment);
    if (this.staging.has(key)) return;
    if (!inputs || inputs.length === 0 || this.inner.knows(assignment)) this.inner.start(assignment);
    else void this.stage(key, assignment);
  }

  resume(assignment: Assignment): void {
    this.abandon(assignment);
    this.inner.resume(assignment);
  }

  cancel(run: RunName, graceMs?: number, signal?: WarnSignal): void {
    this.abandon(run);
    this.inner.cancel(run, graceMs, signal);
  }

  signal(run: RunName, signals: readonly SentSignal[]): void {
    this.inner.signal?.(run, signals);
  }

  recall(run: RunName): void {
    if (this.staging.has(runKey(run))) {
      this.abandon(run);
      this.inner.fail(run, 'REQUEUED', 'taken back before it was submitted');
    } else this.inner.recall?.(run);
  }

  forget(run: RunName): void {
    this.abandon(run);
    this.inner.forget(run);
  }

  runs(): LiveRun[] {
    const staging = [...this.staging.values()].map(({ assignment, report }) => ({
      ...nameOf(assignment),
      startedAtMs: report.beganAtMs,
    }));
    return [...this.inner.runs(), ...staging];
  }

  reports(limit: number): RunReport[] {
    return this.inner.reports(limit);
  }

  acknowledge(seq: number): void {
    this.inner.acknowledge(seq);
  }

  freshOutput(): LiveOutput[] | null {
    return this.inner.freshOutput();
  }

  delivered(pieces: readonly LiveOutput[], received?: readonly (number | null)[]): void {
    this.inner.delivered(pieces, received);
  }

  async writtenCheckpoints(): Promise<WrittenCheckpoint[]> {
    return (await this.inner.writtenCheckpoints?.()) ?? [];
  }

  checkpointsTold(written: readonly WrittenCheckpoint[]): void {
    this.inner.checkpointsTold?.(written);
  }

  stagings(): StagingReport[] {
    const going = [...this.staging].map(([key, { report }]) => ({
      ...report,
      movedMb: Math.max(report.movedMb, this.cache.moving(key) / 1e6),
    }));
    return [
      ...going,
      ...this.failed,
      ...[...this.holds.values()].flatMap((hold) => (hold.delivered ? [] : hold.report)),
    ];
  }

  stagingDelivered(reports: readonly StagingReport[]): void {
    for (const report of reports) {
      if (report.endedAtMs === null) continue;
      this.failed.delete(report);
      const hold = this.holds.get(runKey(report));
      if (hold?.report !== report) continue;
      hold.delivered = true;
      // Else it is told once more by the next agent.
      this.write(hold).catch(() => {});
    }
    this.letGo();
  }

  /** Lets go: what is being fetched is continued by the next agent. */
  close(): void {
    for (const { stop } of this.staging.values()) stop.abort(new Error('the agent stops'));
    this.staging.clear();
    void this.cache.close();
    this.inner.close();
  }

  private readonly failed = new Set<StagingReport>();

  private async stage(key: string, assignment: Assignment): Promise<void> {
    const { inputs = [] } = assignment;
    const name = nameOf(assignment);
    const stop = new AbortController();
    const totalMb = inputs.reduce((sum, { sizeMb }) => sum + sizeMb, 0);
    const began = performance.now();
    const report: StagingReport = {
      ...{ ...name, beganAtMs: Date.now(), endedAtMs: null },
      ...{ totalMb, movedMb: 0, error: null, moved: [] },
    };
    this.letGo();
    const staging = { assignment, report, stop };
    this.staging.set(key, staging);
    const ended = (rest: Partial<StagingReport>): StagingReport => ({
      ...report,
      endedAtMs: Math.round(report.beganAtMs + performance.now() - began),
      ...rest,
    });
    try {
      const staged = await Promise.all(inputs.map((input) => this.cache.stage(input, key, stop.signal)));
      if (this.staging.get(key) !== staging) return;
      const checkpoint = inputs.findIndex(({ place }) => place === 0);
      const unpacked = checkpoint === -1 ? null : await this.unpack(staged[checkpoint]!.path);
      if (this.staging.get(key) !== staging) {
        if (unpacked !== null) this.removeUnpacked(unpacked);
        return;
      }
      const moved = staged.flatMap((one) => one.moved ?? []);
      const movedMb = moved.reduce((sum, { bytes }) => sum + bytes, 0) / 1e6;
      const hold = {
        ...{ ...name, entries: this.cache.usedBy(key), delivered: false },
        ...(unpacked !== null && { unpacked }),
      };
      const held = { ...hold, report: ended({ moved, movedMb }) };
      await this.write(held);
      if (this.staging.get(key) !== staging) {
        remove(join(this.runsDir, key));
        if (unpacked !== null) this.removeUnpacked(unpacked);
        return;
      }
      this.holds.set(key, held);
      const paths = inputs.map((input, i): StagedInput => {
        const path =
          i === checkpoint && unpacked !== null ? join(this.unpackedDir, unpacked) : staged[i]!.path;
        return { place: input.place, name: input.name, path };
      });
      this.staging.delete(key);
      this.inner.start({ ...assignment, staged: paths, stagedS: (performance.now() - began) / 1000 });
    } catch (error) {
      // Cancelled, given up, or the agent stops.
      if (this.staging.get(key) !== staging) return;
      stop.abort(error);
      const message = (error as Error).message;
      this.failed.add(ended({ error: message, movedMb: this.cache.moving(key) / 1e6 }));
      this.staging.delete(key);
      this.inner.fail(name, error instanceof WrongContent ? 'INPUT_MISMATCH' : 'STAGING_FAILED', message);
    }
  }

  private abandon(run: RunName): void {
    const key = runKey(run);
    const staging = this.staging.get(key);
    this.staging.delete(key);
    staging?.stop.abort(new Error('the run was canceled'));
  }

  /** The name of the directory that a checkpoint was, for one run; null: it was a file. */
  private async unpack(path: string): Promise<string | null> {
    if (!(await isPacked(path))) return null;
    // Nobody finds it who is not told.
    const name = randomUUID();
    try {
      await unpack(path, join(this.unpackedDir, name));
    } catch (error) {
      this.removeUnpacked(name);
      throw error;
    }
    return name;
  }

  private removeUnpacked(name: string): void {
    remove(join(this.unpackedDir, name));
  }

  private write(hold: Hold): Promise<void> {
    return writeFile(join(this.runsDir, runKey(hold)), JSON.stringify(hold), { mode: 0o600 });
  }

  /** Of runs that are over nothing is kept but what the service has not heard. */
  private letGo(): void {
    const live = new Set(this.runs().map(runKey));
    this.cache.retain(live);
    for (const [key, { delivered, unpacked }] of this.holds) {
      if (live.has(key)) continue;
      if (unpacked !== undefined) this.removeUnpacked(unpacked);
      if (!delivered) continue;
      this.holds.delete(key);
      remove(join(this.runsDir, key));
    }
  }
}

/** What cannot be removed now, the next agent removes. */
const remove = (path: string): void => void rm(path, { recursive: true, force: true }).catch(() => {});

function readHold(path: string): Hold | null {
  try {
    return JSON.parse(readFileSync(path, 'utf8')) as Hold;
  } catch {
    return null; // Cut short: its run was not started.
  }
}
