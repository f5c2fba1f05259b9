/**
 * What is written down of runs that are handed over as an array. To make a file for each run takes longer than all else of a hand-over, so
 * the array has a directory with few files for many:
 *
 *   script     what the scheduler starts, for each element
 *   scripts.N  the batch scripts of some elements, the first of which is N: a line for each, empty where nothing begins
 *   runs.N     the records of the same runs
 *   over       elements whose runs are over: they never begin any more, and the next agent does not take them up; `7.` on a line of its own
 *
 * The directory is removed when all its runs are over.
 */
import { join } from 'node:path';
import { runKey } from '../runner.js';
import type { Calls } from './calls.js';
import { type RunRecord, recordOf } from './handed.js';
import { type LocalName, type LocalScheduler, nameKey } from './scheduler.js';
import { arrayScript, lineOf } from './script.js';

/** Of a directory that is being removed. */
const REMOVED = '.';

export class Arrays {
  private readonly dir: string;

  constructor(
    stateDir: string,
    private readonly files: Calls,
  ) {
    this.dir = join(stateDir, 'arrays');
    files.mkdirSync(this.dir, { recursive: true, mode: 0o700 });
  }

  dirOf(name: string): string {
    return join(this.dir, name);
  }

  /** Before its elements. `calls`: who does it. Answers where its script is. */
  begin(calls: Calls, name: string, tasks: number, scheduler: Pick<LocalScheduler, 'prologue'>): string {
    const directory = this.dirOf(name);
    const script = join(directory, 'script');
    calls.mkdirSync(directory, { recursive: true, mode: 0o700 });
    calls.writeFileSync(script, arrayScript(directory, tasks, scheduler), { mode: 0o700 });
    // Accounts read it, whatever the agent's umask.
    calls.writeFileSync(join(directory, 'over'), '', { mode: 0o644 });
    calls.chmodSync(join(directory, 'over'), 0o644);
    return script;
  }

  /** The elements from `first` on, ELEMENTS_IN_FILE at most; null: nothing begins there. Answers where their scripts are. */
  write(calls: Calls, name: string, first: number, elements: readonly (Element | null)[]): string {
    const scripts = join(this.dirOf(name), `scripts.${first}`);
    const lines = elements.map((element) => (element === null ? '\n' : lineOf(element.script)));
    calls.writeFileSync(scripts, lines.join(''), { mode: 0o600 });
    // Behind the scripts: what has a record can begin.
    const records = elements.flatMap((element) => (element === null ? [] : element.record));
    calls.writeFileSync(join(this.dirOf(name), `runs.${first}`), JSON.stringify(records), { mode: 0o600 });
    return scripts;
  }

  /** The run with these names is over, and reported where it had to be. */
  forget(names: readonly LocalName[]): void {
    for (const { name, element } of names) {
      if (element === null) continue;
      try {
        // Whatever a full disk has left of the line before: what is not whole does not count.
        const line = `\n${element}.\n`;
        this.files.writeFileSync(join(this.dirOf(name), 'over'), line, { flag: 'a', mode: 0o644 });
      } catch (error) {
        // Nothing is left of the array.
        if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error;
      }
    }
  }

  /** Removes what arrays needed whose runs are all over. */
  clean(live: Iterable<Pick<RunRecord, 'names'>>): void {
    const used = new Set([...live].flatMap(({ names }) => names.map(({ name }) => name)));
    for (const name of this.files.readdirSync(this.dir)) if (!used.has(name)) this.remove(name);
  }

  /** Renamed first: with a part of its files it would be another. */
  private remove(name: string): void {
    const removed = name.startsWith(REMOVED) ? name : `${REMOVED}${name}`;
    if (removed !== name) this.files.renameSync(this.dirOf(name), this.dirOf(removed));
    this.files.rmSync(this.dirOf(removed), { recursive: true, force: true });
  }

  /**
   * Runs that an earlier agent has left: those that go on, and those that are over of which there still is a directory. Of what cannot be read
   * nothing was submitted.
   *
   * @param runsDir directories of runs, with a record where it was handed over by itself
   */
  left(runsDir: string): { live: RunRecord[]; over: RunRecord[] } {
    const { files } = this;
    const found = new Map<string, RunRecord>();
    const over = new Set<string>();
    const take = (record: RunRecord): void => {
      const key = runKey(record.assignment);
      const before = found.get(key);
      // More than one, where it was submitted once more.
      found.set(
        key,
        before === undefined ? record : { ...record, names: merged(before.names, record.names) },
      );
    };
    for (const name of files.readdirSync(this.dir)) {
      if (name.startsWith(REMOVED)) continue;
      const ended = this.endedIn(name);
      for (const record of this.recordsIn(name)) {
        take(record);
        const own = record.names.find((one) => one.name === name);
        if (own?.element != null && ended.has(own.element)) over.add(runKey(record.assignment));
      }
    }
    const directories = new Set(files.readdirSync(runsDir));
    for (const key of directories) {
      const record = recordOf(files, join(runsDir, key));
      if (record !== null) take(record);
      else if (!found.has(key)) files.rmSync(join(runsDir, key), { recursive: true, force: true });
    }
    const all = [...found];
    return {
      live: all.flatMap(([key, record]) => (over.has(key) ? [] : record)),
      over: all.flatMap(([key, record]) => (over.has(key) && directories.has(key) ? record : [])),
    };
  }

  private recordsIn(name: string): RunRecord[] {
    const directory = this.dirOf(name);
    const found = this.files.readdirSync(directory).filter((file) => file.startsWith('runs.'));
    return found.flatMap((file): RunRecord[] => {
      const text = this.files.readFileSync(join(directory, file), 'utf8');
      try {
        return JSON.parse(text) as RunRecord[];
      } catch {
        return []; // Cut short.
      }
    });
  }

  private endedIn(name: string): ReadonlySet<number> {
    const text = this.files.textIn(this.dirOf(name), 'over') ?? '';
    return new Set([...text.matchAll(/^(\d+)\.$/gm)].map(([, element]) => Number(element)));
  }
}

const merged = (names: readonly LocalName[], more: readonly LocalName[]): LocalName[] => {
  const known = new Set(names.map(nameKey));
  return [...names, ...more.filter((name) => !known.has(nameKey(name)))];
};

interface Element {
  script: string;
  record: RunRecord;
}
