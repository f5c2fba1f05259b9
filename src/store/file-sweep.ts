/** Makes whole what a process died over, removes files of runs that are kept for long enough, and the content of those that are gone. */
import { type Blobs, PartsMissing } from './blobs.js';
import type { Files } from './files.js';

export interface FileSweepOptions {
  files: Pick<Files, 'unfinished' | 'keep' | 'prune' | 'pruneExports' | 'dead' | 'buried'>;
  blobs: Pick<Blobs, 'finish' | 'remove'>;
  retentionDays: number;
  /** By the database's clock, epoch seconds. */
  now: () => number;
  /** A sweep that failed; the next one comes. */
  onError: (error: unknown) => void;
  everyMs?: number;
}

const EVERY_MS = 60_000;
/** Files in one statement. */
const PAGE = 500;

export class FileSweep {
  private timer: NodeJS.Timeout | null = null;
  private sweeping: Promise<void> | null = null;
  private stopped = false;

  constructor(private readonly options: FileSweepOptions) {}

  start(): void {
    this.timer = setInterval(() => {
      this.sweeping ??= this.sweep()
        .catch(this.options.onError)
        .finally(() => {
          this.sweeping = null;
        });
    }, this.options.everyMs ?? EVERY_MS);
    this.timer.unref();
  }

  async stop(): Promise<void> {
    this.stopped = true;
    if (this.timer) clearInterval(this.timer);
    await this.sweeping;
  }

  /** Rows first: what nobody is told of any more may go. Several processes may do so at once: what is removed twice is gone. */
  async sweep(): Promise<void> {
    const { files, blobs, retentionDays, now } = this.options;
    // First: what is all there is not removed as something that never came.
    await this.finish();
    await files.pruneExports();
    while (!this.stopped && (await files.prune(now() - retentionDays * 86_400, PAGE)) >= PAGE);
    for (;;) {
      const dead = await files.dead(PAGE);
      for (const { id, upload } of dead) {
        if (this.stopped) return;
        await blobs.remove(id, upload);
      }
      await files.buried(dead.map(({ id }) => id));
      if (dead.length < PAGE) return;
    }
  }
  /** Does what is left to do of files of which every part has come. One whose parts are gone stays until its run has been over for long. */
  private async finish(): Promise<void> {
    const { files, blobs } = this.options;
    for (let after = 0, found = PAGE; found >= PAGE && !this.stopped; ) {
      const page = await files.unfinished(after, PAGE);
      for (const file of page) {
        if (this.stopped) return;
        try {
          await blobs.finish(file);
          await files.keep(file.id);
        } catch (error) {
          if (!(error instanceof PartsMissing)) throw error;
        }
        after = file.id;
      }
      found = page.length;
    }
  }
}
