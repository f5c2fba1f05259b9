/**
 * Images that the agent has fetched from registries: unpacked, bounded, each fetched once however many runs want it, none taken from a run.
 *
 * What anybody can fetch is for all. Only what cannot be had without a credential is fetched with that of the run's user, and is then for this
 * user alone: another gets it with a credential of their own, or not at all. So nobody is asked whether a copy that is here may still be used,
 * and runs go on while a registry does not answer; a right that ends at the registry ends here when the copy goes.
 */
import { execFile, spawn } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
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
import { atRegistry, HUB, referenceOf } from '../../platform/images.js';
import type { AskLogin, Login } from '../credentials.js';
import { type RunName, runKey } from '../runner.js';
import { roomOf } from './disk.js';
import { type Image, type ImageTool, isHere, TAME } from './image-tools.js';
import { processesOfRun } from './processes.js';

export interface FetchOptions {
  tool: ImageTool;
  /** Registries from which images are fetched; `*`: all. */
  registries: readonly string[];
  /** Of all fetched images together. */
  maxBytes: number;
  /** Asked for what a registry wants that refuses an image to anybody. null: what is one user's alone could not be kept from jobs of others. */
  login: AskLogin | null;
}

/** A run that wants an image, and whose it is. */
export type Requester = RunName & { user: string };

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
  /** Whose it is alone. Left out: everybody's. */
  user?: string;
}

/** Its directory is named by chance where it is not everybody's: others cannot guess it. */
type Kept = Info & { dir: string };

/** `byTool`: the program that fetches has failed, most often because of the answer of the registry. */
class FetchError extends Error {
  constructor(
    message: string,
    readonly byTool: boolean,
  ) {
    super(message);
  }
}

const FETCH_MS = 3_600_000;
const LOOK_MS = 2_000;
/** Before the same is tried again. */
const FAILED_MS = 60_000;
const FAILED_MAX = 1_000;
const UNSAFE = 'it is fetched only where jobs run in a sandbox (SWITCHYARD_ISOLATION of the agent)';
/** After the service has not answered. */
const ASK_MS = 5_000;
const SAID_CHARS = 500;

export class FetchedImages {
  /** By place. */
  private readonly images = new Map<string, Kept>();
  /** Keys of runs whose images are being fetched, or are in the line. */
  private readonly waiting = new Set<string>();
  /** By key of the run. */
  private readonly problems = new Map<string, string>();
  /** By what was tried. */
  private readonly failed = new Map<string, { error: FetchError; untilMs: number }>();
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
    for (const name of readdirSync(dir)) {
      const info = name.startsWith('.') ? null : infoIn(join(dir, name));
      const isOurs = info !== null && (info.user === undefined || options.login !== null);
      const place = isOurs ? placeOf(info.name, info.user) : null;
      if (isOurs && place !== null && !this.images.has(place)) this.images.set(place, { ...info, dir: name });
      else {
        // Of an agent that was killed while it fetched, that could keep them apart, or that took two names of an image for two images.
        rmSync(join(dir, name, 'work/login'), { recursive: true, force: true });
        endAll(join(dir, name, 'work'));
        void rm(join(dir, name), { recursive: true, force: true }).catch(() => {});
      }
    }
  }

  get said(): string {
    return `images fetched by ${this.options.tool.name} from ${this.options.registries.join(', ')}`;
  }

  /** Those that are here for everybody; of more than `limit`, those used last. */
  held(limit: number): Info[] {
    const all = [...this.images.values()].filter(({ user }) => user === undefined);
    if (all.length <= limit) return all;
    return all
      .map((kept) => ({ kept, usedMs: usedMs(join(this.dir, kept.dir)) }))
      .sort((a, b) => b.usedMs - a.usedMs)
      .slice(0, limit)
      .map(({ kept }) => kept);
  }

  /** What is here of this name for this user, which is about to be used; null: nothing. */
  use(name: string, user: string): Image | null {
    const kept = this.find(name, user);
    if (kept === undefined) return null;
    utimesSync(join(this.dir, kept.dir, 'info'), new Date(), new Date());
    return { root: join(this.dir, kept.dir, 'root'), digest: kept.digest };
  }

  /** Whether it is here, or will not come, or has just not. Otherwise it is being fetched. */
  isKnown(name: string, by: Requester): boolean {
    const run = runKey(by);
    const { registries } = this.options;
    if (this.find(name, by.user) !== undefined || this.problems.has(run)) return true;
    if (!registries.includes('*') && !registries.includes(atRegistry(name).registry)) return true;
    if (!this.waiting.has(run)) {
      this.waiting.add(run);
      this.turn = this.turn.then(() => this.bring(name, by));
    }
    return false;
  }

  /** Why a run has not got its image, which is told once; null: nobody has tried. */
  problemOf(by: Requester): string | null {
    const problem = this.problems.get(runKey(by)) ?? null;
    this.problems.delete(runKey(by));
    return problem;
  }

  close(): void {
    this.closed = true;
    this.stop?.();
  }

  private find(name: string, user: string): Kept | undefined {
    return this.images.get(placeOf(name)) ?? this.images.get(placeOf(name, user));
  }

  private async bring(name: string, by: Requester): Promise<void> {
    const run = runKey(by);
    try {
      if (!this.closed && this.find(name, by.user) === undefined) await this.fetchFor(name, by);
    } catch (error) {
      if (!(error instanceof FetchError)) {
        // The service has not answered, or no account is free: the run waits.
        setTimeout(() => this.waiting.delete(run), ASK_MS).unref();
        return;
      }
      if (this.problems.size >= FAILED_MAX) this.problems.clear();
      this.problems.set(run, error.message);
    }
    this.waiting.delete(run);
    if (!this.closed) this.onFetched();
  }

  private async fetchFor(name: string, by: Requester): Promise<void> {
    try {
      await this.unlessFailed(placeOf(name), () => this.fetch(name, null));
    } catch (error) {
      if (!(error instanceof FetchError && error.byTool)) throw error;
      const login = this.options.login === null ? UNSAFE : await this.options.login(by);
      if (typeof login === 'string')
        throw new FetchError(`${error.message}. If the image is private: ${login}`, false);
      const tried = hashOf(JSON.stringify([placeOf(name, by.user), login]));
      await this.unlessFailed(tried, () => this.fetch(name, { ...login, user: by.user }));
    }
  }

  /** What has just failed is not tried again. */
  private async unlessFailed(what: string, fetch: () => Promise<void>): Promise<void> {
    const before = this.failed.get(what);
    if (before !== undefined && Date.now() < before.untilMs) throw before.error;
    try {
      await fetch();
    } catch (error) {
      if (error instanceof FetchError) {
        if (this.failed.size >= FAILED_MAX) this.failed.clear();
        this.failed.set(what, { error, untilMs: Date.now() + FAILED_MS });
      }
      throw error;
    }
  }

  /** @param owner with whose credential, and for whom alone; null: without any, for everybody */
  private async fetch(name: string, owner: (Login & { user: string }) | null): Promise<void> {
    const { registry, reference } = atRegistry(name);
    const { tool } = this.options;
    const dir = owner === null ? hashOf(reference) : randomBytes(16).toString('hex');
    const part = join(this.dir, `.part-${dir}`);
    const [root, work] = [join(part, 'root'), join(part, 'work')];
    rmSync(part, { recursive: true, force: true });
    const dropped = tool.byDaemon || this.drop === null ? null : this.drop();
    try {
      for (const each of [part, root, work]) mkdirSync(each, { mode: each === part ? 0o711 : 0o700 });
      const own = [root, work, ...loginFiles(join(work, 'login'), registry, owner)];
      if (dropped) for (const each of own) chownSync(each, dropped.uid, dropped.uid);
      const variables = {
        ...{ HOME: work, XDG_RUNTIME_DIR: work, TMPDIR: work, WORK: work, ROOT: root, IMAGE: reference },
        PLAIN: isHere(registry) ? 'yes' : '',
        LOGIN: owner === null ? '' : 'yes',
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
      const info: Info = { name, digest, bytes, ...(owner && { user: owner.user }) };
      writeFileSync(join(part, 'info'), JSON.stringify(info), { mode: 0o600 });
      renameSync(part, join(this.dir, dir));
      this.images.set(placeOf(name, owner?.user), { ...info, dir });
    } catch (error) {
      endAll(work);
      await dropped?.done();
      const { message } = error as Error;
      const byTool = error instanceof FetchError && error.byTool;
      const how = owner === null ? '' : ` (with the credential of ${owner.user} for ${registry})`;
      throw new FetchError(`${tool.name}: ${message.trim().slice(-SAID_CHARS)}${how}`, byTool);
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
      child.on('close', (code) =>
        over(code === 0 ? null : new FetchError(err || `it ended with ${code}`, true)),
      );
    });
  }

  private get tooLarge(): string {
    return `it does not fit in the agent's ${this.options.maxBytes / 1e6} MB for images (AGENT_IMAGES_MB)`;
  }

  /** Of what was not used for the longest time. */
  private makeRoom(bytes: number): void {
    const inUse = this.inUse();
    const free = [...this.images]
      .filter(([, { dir }]) => !inUse.has(join(this.dir, dir, 'root')))
      .map(([place, kept]) => ({ place, kept, usedMs: usedMs(join(this.dir, kept.dir)) }))
      .sort((a, b) => a.usedMs - b.usedMs);
    let all = bytes;
    for (const info of this.images.values()) all += info.bytes;
    while (all > this.options.maxBytes) {
      const oldest = free.shift();
      if (oldest === undefined)
        throw new Error(
          bytes > this.options.maxBytes ? this.tooLarge : `${this.tooLarge}: runs use the others`,
        );
      all -= oldest.kept.bytes;
      this.remove(oldest.place, oldest.kept);
    }
  }

  private remove(place: string, { dir }: Kept): void {
    const trash = join(this.dir, `.trash-${dir}-${Date.now()}`);
    this.images.delete(place);
    renameSync(join(this.dir, dir), trash);
    void rm(trash, { recursive: true, force: true }).catch(() => {});
  }
}

/** A tool has the layers, their files and all of them in one at the same time. */
const LEAVES = 4;

/** Names what is here: of everybody, or of one user. */
const placeOf = (name: string, user?: string): string =>
  user === undefined ? referenceOf(name) : `${referenceOf(name)} ${user}`;

const hashOf = (text: string): string => createHash('sha256').update(text).digest('hex');

/** Puts a login where `ImageTool.fetch` finds it; answers what there is then. */
function loginFiles(dir: string, registry: string, login: Login | null): string[] {
  mkdirSync(dir, { mode: 0o700 });
  if (login === null) return [dir];
  const auth = Buffer.from(`${login.username}:${login.password}`).toString('base64');
  const at = registry === HUB ? 'https://index.docker.io/v1/' : registry;
  const files = {
    'config.json': JSON.stringify({ auths: { [at]: { auth } } }),
    username: login.username,
    password: login.password,
  };
  return [
    dir,
    ...Object.entries(files).map(([name, text]) => {
      writeFileSync(join(dir, name), text, { mode: 0o600 });
      return join(dir, name);
    }),
  ];
}

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
