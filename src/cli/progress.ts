/** A progress bar on standard error for long work; nothing at all where nobody sees it move. */
import { SingleBar } from 'cli-progress';

export interface Progress {
  update(done: number): void;
  stop(): void;
}

/** Starts a bar of `total` steps. */
export function progress(title: string, total: number): Progress {
  if (!process.stderr.isTTY || total === 0) return { update() {}, stop() {} };
  const bar = new SingleBar({
    format: `${title} {bar} {value}/{total} {percentage}% ETA {eta_formatted}`,
    stream: process.stderr,
    hideCursor: true,
    clearOnComplete: true,
  });
  bar.start(total, 0);
  return { update: (done) => bar.update(done), stop: () => bar.stop() };
}
