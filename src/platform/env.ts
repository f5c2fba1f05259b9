/**
 * Time, chance and the disk as a process finds them. Whoever takes an `Env` asks neither for a clock nor for a random number or a file
 * elsewhere, so that a simulation can let time pass, stop a process, set its clock and fill its disk.
 */
import * as fs from 'node:fs';
import { performance } from 'node:perf_hooks';
import { REAL_TIMING, type Timing } from './timing.js';

export { pause } from './timing.js';

/** What is used of `node:fs`. */
export interface Files {
  openSync(path: string, flags: string | number, mode?: number): number;
  closeSync(fd: number): void;
  /** Answers with how many bytes were taken, which may be fewer. `position` null: at the end of the file, or behind the last write. */
  writeSync(fd: number, bytes: Buffer, offset: number, length: number, position: number | null): number;
  ftruncateSync(fd: number, bytes: number): void;
  readFileSync(path: string, encoding: 'utf8'): string;
  readdirSync(path: string): string[];
  mkdirSync(path: string, options: { recursive: true; mode: number }): unknown;
  rmSync(path: string, options: { force: true }): void;
  statSync(path: string, options: { throwIfNoEntry: false }): { size: number } | undefined;
  /** Of the file system that holds the path: blocks in all, and free ones. */
  statfsSync(path: string): { bsize: number; blocks: number; bavail: number };
}

export interface Env extends Timing {
  /** The time of day by this machine, ms since 1970: it may be wrong, and may jump. */
  nowMs(): number;
  /** A clock that goes on evenly, whoever sets that of the machine, ms. */
  upMs(): number;
  /** Runs something when what runs now has ended. */
  soon(run: () => void): void;
  readonly files: Files;
}

export const REAL_ENV: Env = {
  ...REAL_TIMING,
  nowMs: () => Date.now(),
  upMs: () => performance.now(),
  soon: (run) => void setImmediate(run),
  files: fs,
};
