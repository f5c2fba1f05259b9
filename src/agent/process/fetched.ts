/** Images that the agent has fetched from registries: unpacked, bounded, each fetched once however many runs want it, none taken from a run. */
import { execFile, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  chownSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { hostEnvironment } from '../../platform/environment.js';
import { roomOf } from './disk.js';
import { atRegistry, type Image, type ImageTool, isHere, TAME } from './image-tools.js';
import { processesOfRun } from './processes.js';

export interface FetchOptions {
  tool: ImageTool;
  /** Registries from which images are fetched; `*`: all. */
  registries: readonly string[];
  /** Of all fetched images together. */
  maxBytes: number;
}

/** Another account than the agent's. */
export interface Dropped {
  uid: number;
  /** The words that make a process one of it. */
  words: readonly string[];
  /** Ends what is left of it, and gives it back. */
  done: () => Promise<void>;
}

/** What is known of an image here, in its file `info`, which is touched whenever a run uses it. */
interface Info {
  name: string;
  digest: string | null;
  bytes: number;
}

const FETCH_MS = 3_600_000;
const LOOK_MS = 2_000;
/** Before the same is tried again. */
const FAILED_MS = 60_000;
const FAILED_MAX = 1_000;
const SAID_CHARS = 500;

export class FetchedImages {
  /** By key. */
  private readonly images = new Map<string, Info>();
  private readonly fetching = new Set<string>();
  private readonly failed = new Map<string, { message: string; untilMs: number }>();
  /** One is fetched at a time. */
  private turn: Promise<void> = Promise.resolve();
  private stop: (() => void) | null = null;
  private closed = false;
  /** Roots in use by runs. */
  inUse: () => ReadonlySet<string> = () => new Set();

  /**
   * @param dir of nobody else
   * @param drop null: the agent has no other account to fetch as
   */
  constructor(
    readonly dir: string,
    private readonly options: FetchOptions,
    private readonly drop: (() => Dropped) | null,
    private readonly onFetched: () => void,
  ) {
    mkdirSync(dir, { recursive: true, mode: 0o711 });
    for (const key of readdirSync(dir)) {
      const info = key.startsWith('.') ? null : infoIn(join(dir, key));
      if (info !== null) this.images.set(key, info);
      else {
        // An agent that was killed while it fetched.
        endAll(join(dir, key, 'work'));
        void rm(join(dir, key), { recursive: true, force: true }).catch(() => {});
      }
    }
  }

  get said(): string {
    return `images fetched by ${this.options.tool.name} from ${this.options.registries.join(', ')}`;
  }

  /** What is here of this name, which is about to be used; null: nothing. */
  use(name: string): Image | null {
    const key = keyOf(name);
    const info = this.images.get(key);
    if (info === undefined) return null;
    utimesSync(join(this.dir, key, 'info'), new Date(), new Date());
    return { root: join(this.dir, key, 'root'), digest: info.digest };
  }

  /** Whether it is here, or will not come, or has just not. Otherwise it is being fetched. */
  isKnown(name: string): boolean {
    const key = keyOf(name);
    const { registries } = this.options;
    if (this.images.has(key) || this.problemOf(name) !== null) return true;
    if (!registries.includes('*') && !registries.includes(atRegistry(name).registry)) return true;
    if (!this.fetching.has(key)) {
      this.fetching.add(key);
      this.turn = this.turn.then(() => this.tryToFetch(name, key));
    }
    return false;
  }

  /** Why it could not be fetched; null: that has not been tried lately. */
  problemOf(name: string): string | null {
    const failed = this.failed.get(keyOf(name));
    return failed !== undefined && Date.now() < failed.untilMs ? failed.message : null;
  }

  close(): void {
    this.closed = true;
    this.stop?.();
  }

  private async tryToFetch(name: string, key: string): Promise<void> {
    try {
      if (!this.closed) await this.fetch(name, key);
    } catch (error) {
      if (this.failed.size >= FAILED_MAX) this.failed.clear();
      this.failed.set(key, { message: (error as Error).message, untilMs: Date.now() + FAILED_MS });
    }
    this.fetching.delete(key);
    if (!this.closed) this.onFetched();
  }

  private async fetch(name: string, key: string): Promise<void> {
    const { registry, reference } = atRegistry(name);
    const { tool } = this.options;
    const part = join(this.dir, `.part-${key}`);
    const [root, work] = [join(part, 'root'), join(part, 'work')];
    rmSync(part, { recursive: true, force: true });
    const dropped = tool.byDaemon || this.drop === null ? null : this.drop();
    try {
      for (const each of [part, root, work]) mkdirSync(each, { mode: each === part ? 0o711 : 0o700 });
      if (dropped) for (const each of [root, work]) chownSync(each, dropped.uid, dropped.uid);
      const variables = {
        ...{ HOME: work, XDG_RUNTIME_DIR: work, TMPDIR: work, WORK: work, ROOT: root, IMAGE: reference },
        PLAIN: isHere(registry) ? 'yes' : '',
      };
      const environment = { ...hostEnvironment(), ...variables };
      const said = await this.run(
        [...(dropped?.words ?? []), '/bin/sh', '-ec', tool.fetch],
        environment,
        part,
      );
      endAll(work);
      await dropped?.done();
      rmSync(work, { recursive: true, force: true });
      if (process.getuid?.() === 0) await done('/bin/chown', '-hR', '0:0', root);
      await done('/bin/sh', '-c', TAME, 'sh', root);
      await done('/bin/chmod', '755', root);
      if (!(await stat(join(root, 'usr')).catch(() => null))?.isDirectory())
        throw new Error('it has no directory /usr');
      const bytes = await roomOf([root], FETCH_MS);
      this.makeRoom(bytes);
      const digest = /^sha256:[0-9a-f]{64}$/m.exec(said)?.[0] ?? null;
      const info: Info = { name, digest, bytes };
      writeFileSync(join(part, 'info'), JSON.stringify(info), { mode: 0o600 });
      renameSync(part, join(this.dir, key));
      this.images.set(key, info);
    } catch (error) {
      endAll(work);
      await dropped?.done();
      throw new Error(`${tool.name}: ${(error as Error).message.trim().slice(-SAID_CHARS)}`);
    } finally {
      rmSync(part, { recursive: true, force: true });
    }
  }

  /** Answers what it has written. Ended with all that it has started when it takes too long or too much room. */
  private run([command, ...args]: string[], env: Record<string, string>, part: string): Promise<string> {
    return new Promise((resolve, reject) => {
      const child = spawn(command!, args, {
        env,
        cwd: '/',
        detached: true,
        stdio: ['ignore', 'pipe', 'pipe'],
      });
      let [out, err] = ['', ''];
      let why: string | null = null;
      const end = (reason: string): void => {
        why ??= reason;
        kill(-child.pid!);
      };
      child.stdout.on('data', (data) => {
        out = `${out}${data}`.slice(-SAID_CHARS);
      });
      child.stderr.on('data', (data) => {
        err = `${err}${data}`.slice(-SAID_CHARS);
      });
      const limit = setTimeout(() => end(`not fetched within ${FETCH_MS / 60_000} min`), FETCH_MS);
      const look = setInterval(() => {
        void roomOf([part], FETCH_MS).then((bytes) => {
          if (bytes > LEAVES * this.options.maxBytes) end(this.tooLarge);
        });
      }, LOOK_MS);
      this.stop = () => end('the agent stops');
      const over = (error: Error | null): void => {
        clearTimeout(limit);
        clearInterval(look);
        this.stop = null;
        if (error === null) resolve(out);
        else reject(why === null ? error : new Error(why));
      };
      child.on('error', over);
      child.on('close', (code) => over(code === 0 ? null : new Error(err || `it ended with ${code}`)));
    });
  }

  private get tooLarge(): string {
    return `it does not fit in the agent's ${this.options.maxBytes / 1e6} MB for images (AGENT_IMAGES_MB)`;
  }

  /** Of what was not used for the longest time. */
  private makeRoom(bytes: number): void {
    const inUse = this.inUse();
    const free = [...this.images.keys()]
      .filter((key) => !inUse.has(join(this.dir, key, 'root')))
      .map((key) => ({ key, usedMs: usedMs(join(this.dir, key)) }))
      .sort((a, b) => a.usedMs - b.usedMs);
    let all = bytes;
    for (const info of this.images.values()) all += info.bytes;
    while (all > this.options.maxBytes) {
      const oldest = free.shift();
      if (oldest === undefined)
        throw new Error(
          bytes > this.options.maxBytes ? this.tooLarge : `${this.tooLarge}: runs use the others`,
        );
      all -= this.images.get(oldest.key)!.bytes;
      this.remove(oldest.key);
    }
  }

  private remove(key: string): void {
    const trash = join(this.dir, `.trash-${key}-${Date.now()}`);
    this.images.delete(key);
    renameSync(join(this.dir, key), trash);
    void rm(trash, { recursive: true, force: true }).catch(() => {});
  }
}

/** A tool has the layers, their files and all of them in one at the same time. */
const LEAVES = 4;

const keyOf = (name: string): string => createHash('sha256').update(atRegistry(name).reference).digest('hex');

/** Ends what a tool has left running that has this directory for its files. */
function endAll(work: string): void {
  for (const { pid } of processesOfRun(0, false, `WORK=${work}`)) kill(pid);
}

/** `pid`: negative for a group. */
function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It has just ended.
  }
}

function infoIn(dir: string): Info | null {
  try {
    return JSON.parse(readFileSync(join(dir, 'info'), 'utf8')) as Info;
  } catch {
    return null;
  }
}

function usedMs(dir: string): number {
  try {
    return statSync(join(dir, 'info')).mtimeMs;
  } catch {
    return 0;
  }
}

const done = (command: string, ...args: string[]) =>
  promisify(execFile)(command, args, { env: hostEnvironment(), cwd: '/', timeout: FETCH_MS });
