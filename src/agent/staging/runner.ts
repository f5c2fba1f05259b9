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
  type TerminalPiece,
  type WarnSignal,
  type WrittenCheckpoint,
} from '../runner.js';
import { type CacheOptions, DataCache, type Moved } from './cache.js';
import { WrongContent } from './source.js';
import type { TransferProgress } from './transfer.js';
import { Downloads, type UrlOptions } from './urls.js';

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
  /** What has come from URLs. */
  downloaded: TransferProgress;
  stop: AbortController;
}

/** The directories that are of one run, each under the name that it has among its kind; left out: it has none. */
interface Own {
  /** Of its checkpoint. */
  unpacked?: string;
  /** Of what it has from URLs. */
  downloads?: string;
}

/** What the next agent has to know of a run's data. */
interface Hold extends RunName, Own {
  /** Entries of the cache that it reads. */
  entries: string[];
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
  private readonly downloads: Downloads;

  /** @param dir where copies are kept; one agent at a time */
  constructor(
    private readonly inner: StageableRunner,
    dir: string,
    options: Omit<CacheOptions, 'dir'>,
    urls: UrlOptions = {},
  ) {
    this.runsDir = join(dir, 'runs');
    mkdirSync(this.runsDir, { recursive: true });
    chmodSync(this.runsDir, 0o700);
    this.unpackedDir = join(dir, 'checkpoints');
    mkdirSync(this.unpackedDir, { recursive: true });
    this.downloads = new Downloads(join(dir, 'downloads'), urls);
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
    for (const name of readdirSync(this.unpackedDir))
      if (!inUse.has(name)) remove(join(this.unpackedDir, name));
    this.downloads.sweep(new Set([...this.holds.values()].map(({ downloads }) => downloads)));
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
    const { inputs = [], downloads = [] } = assignment;
    const key = runKey(assignment);
    if (this.staging.has(key)) return;
    if (inputs.length + downloads.length === 0 || this.inner.knows(assignment)) this.inner.start(assignment);
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

  get givesTerminals(): boolean {
    return this.inner.givesTerminals ?? false;
  }

  input(piece: TerminalPiece): boolean {
    return this.inner.input?.(piece) ?? false;
  }

  get hasTerminals(): boolean {
    return this.inner.hasTerminals ?? false;
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

  get uses(): Runner['uses'] {
    return this.inner.uses?.bind(this.inner);
  }

  get images(): StageableRunner['images'] {
    return this.inner.images?.bind(this.inner);
  }

  async writtenCheckpoints(): Promise<WrittenCheckpoint[]> {
    return (await this.inner.writtenCheckpoints?.()) ?? [];
  }

  checkpointsTold(written: readonly WrittenCheckpoint[]): void {
    this.inner.checkpointsTold?.(written);
  }

  stagings(): StagingReport[] {
    const going = [...this.staging].map(([key, { report, downloaded }]) => ({
      ...report,
      ...sizes(report, downloaded.bytes, Math.max(report.movedMb, this.cache.moving(key) / 1e6)),
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
    const { inputs = [], downloads = [] } = assignment;
    const name = nameOf(assignment);
    const stop = new AbortController();
    const totalMb = inputs.reduce((sum, { sizeMb }) => sum + sizeMb, 0);
    const began = performance.now();
    const report: StagingReport = {
      ...{ ...name, beganAtMs: Date.now(), endedAtMs: null },
      ...{ totalMb, movedMb: 0, error: null, moved: [] },
    };
    this.letGo();
    const staging: Staging = { assignment, report, downloaded: { bytes: 0 }, stop };
    this.staging.set(key, staging);
    const ended = (rest: Partial<StagingReport> & Pick<StagingReport, 'movedMb'>): StagingReport => ({
      ...report,
      endedAtMs: Math.round(report.beganAtMs + performance.now() - began),
      ...rest,
      ...sizes(report, staging.downloaded.bytes, rest.movedMb),
    });
    const own: Own = {};
    try {
      const [staged, fetched] = await Promise.all([
        Promise.all(inputs.map((input) => this.cache.stage(input, key, stop.signal))),
        this.download(downloads, own, staging),
      ]);
      if (this.staging.get(key) !== staging) return this.removeOwn(own);
      const checkpoint = inputs.findIndex(({ place }) => place === 0);
      if (checkpoint !== -1) await this.unpack(staged[checkpoint]!.path, own);
      if (this.staging.get(key) !== staging) return this.removeOwn(own);
      const moved = staged.flatMap((one) => one.moved ?? []);
      const movedMb = moved.reduce((sum, { bytes }) => sum + bytes, 0) / 1e6;
      const held: Hold = {
        ...{ ...name, entries: this.cache.usedBy(key), delivered: false },
        ...own,
        report: ended({ moved, movedMb }),
      };
      await this.write(held);
      if (this.staging.get(key) !== staging) {
        remove(join(this.runsDir, key));
        return this.removeOwn(own);
      }
      this.holds.set(key, held);
      const paths = inputs.map((input, i): StagedInput => {
        const path =
          i === checkpoint && own.unpacked !== undefined
            ? join(this.unpackedDir, own.unpacked)
            : staged[i]!.path;
        return { place: input.place, name: input.name, path };
      });
      this.staging.delete(key);
      this.inner.start({
        ...assignment,
        staged: [...paths, ...fetched],
        stagedS: (performance.now() - began) / 1000,
      });
    } catch (error) {
      this.removeOwn(own);
      // Cancelled, given up, or the agent stops.
      if (this.staging.get(key) !== staging) return;
      stop.abort(error);
      const message = (error as Error).message;
      this.failed.add(ended({ error: message, movedMb: this.cache.moving(key) / 1e6 }));
      this.staging.delete(key);
      this.inner.fail(name, error instanceof WrongContent ? 'INPUT_MISMATCH' : 'STAGING_FAILED', message);
    }
  }

  /** Fetches what a run has from URLs into a directory of its own. */
  private async download(
    downloads: readonly { url: string }[],
    own: Own,
    { downloaded, stop }: Staging,
  ): Promise<StagedInput[]> {
    if (downloads.length === 0) return [];
    own.downloads = randomUUID();
    const urls = downloads.map(({ url }) => url);
    const paths = await this.downloads.fetch(own.downloads, urls, downloaded, stop.signal);
    return paths.map((path, i) => ({ place: i + 1, name: fileNameOf(urls[i]!), path, downloaded: true }));
  }

  private abandon(run: RunName): void {
    const key = runKey(run);
    const staging = this.staging.get(key);
    this.staging.delete(key);
    staging?.stop.abort(new Error('the run was canceled'));
  }

  /** Of a checkpoint that was a directory, a directory for one run. */
  private async unpack(path: string, own: Own): Promise<void> {
    if (!(await isPacked(path))) return;
    // Nobody finds it who is not told.
    own.unpacked = randomUUID();
    await unpack(path, join(this.unpackedDir, own.unpacked));
  }

  private removeOwn({ unpacked, downloads }: Own): void {
    if (unpacked !== undefined) remove(join(this.unpackedDir, unpacked));
    if (downloads !== undefined) this.downloads.remove(downloads);
  }

  private write(hold: Hold): Promise<void> {
    return writeFile(join(this.runsDir, runKey(hold)), JSON.stringify(hold), { mode: 0o600 });
  }

  /** Of runs that are over nothing is kept but what the service has not heard. */
  private letGo(): void {
    const live = new Set(this.runs().map(runKey));
    this.cache.retain(live);
    for (const [key, hold] of this.holds) {
      if (live.has(key)) continue;
      this.removeOwn(hold);
      if (!hold.delivered) continue;
      this.holds.delete(key);
      remove(join(this.runsDir, key));
    }
  }
}

/** Nobody knows how large downloads are before they are there. */
const sizes = (
  { totalMb }: StagingReport,
  downloaded: number,
  movedMb: number,
): Pick<StagingReport, 'totalMb' | 'movedMb'> => ({
  totalMb: totalMb + downloaded / 1e6,
  movedMb: movedMb + downloaded / 1e6,
});

/** The last name in the path of a URL: what its file is called. */
function fileNameOf(url: string): string {
  const last = new URL(url).pathname.split('/').at(-1)!;
  try {
    return decodeURIComponent(last);
  } catch {
    return last;
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
