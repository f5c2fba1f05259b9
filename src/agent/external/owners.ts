/**
 * Whose runs are: the agent's own, or those of its users' accounts (AGENT_ACCOUNTS). Such an account gets what it needs of a run and no more: what
 * the agent reads, writes and removes there is in directories of the agent's, in which the account can replace nothing.
 */
import { join } from 'node:path';
import { type Accounts, EMPTY, OPEN } from '../process/accounts.js';
import type { Calls } from './calls.js';
import type { Handed, Owner } from './handed.js';
import { Marks } from './marks.js';

/** In one command. */
const PATHS_MAX = 500;
/** Of the directory of a run: those of its account. */
const DIRECTORIES = ['work', 'desk'] as const;
/** Written by the run, but not made by it. */
const STREAMS = ['out', 'err', 'scheduler'] as const;

export class Owners {
  private readonly marks = new Map<string | null, Marks>();
  /** The agent is not root: what accounts need it shares with their groups. */
  private readonly byGroup: boolean;
  /** Accounts that have been given their marks. */
  private readonly given = new Set<string>();

  /** `accounts`: null, all runs are the agent's. */
  constructor(
    private readonly stateDir: string,
    private readonly accounts: Accounts | null,
    private readonly files: Calls,
  ) {
    this.byGroup = accounts !== null && process.getuid?.() !== 0;
    this.marks.set(null, new Marks(stateDir, stateDir, files));
    files.mkdirSync(join(stateDir, 'as'), { recursive: true, mode: 0o700 });
    for (const name of files.readdirSync(join(stateDir, 'as')))
      this.marks.set(name, new Marks(stateDir, join(stateDir, 'as', name), files));
    if (accounts === null) return;
    // Accounts have to get to what is theirs, whose names they are told.
    for (const name of ['', 'runs', 'arrays', 'as']) {
      files.mkdirSync(join(stateDir, name), { recursive: true });
      files.chmodSync(join(stateDir, name), 0o711);
    }
  }

  get hasAccounts(): boolean {
    return this.accounts !== null;
  }

  /** Calls back when it is known whose a run is that it was not known of. */
  onFound(told: () => void): void {
    if (this.accounts !== null) this.accounts.onFound = told;
  }

  /**
   * Finds out whose the run is. False: the host is being asked.
   *
   * @throws LaunchError where its user has no account
   */
  isFound(run: Handed): boolean {
    if (run.owner !== undefined) return true;
    const { user } = run.assignment;
    if (this.accounts === null) run.owner = null;
    else if (!this.accounts.isKnown(user)) return false;
    else {
      const account = this.accounts.of(user);
      if (account === null) throw new Error(`:pool: accepted for ${user} only if the agent runs jobs itself`);
      const { name, uid, gid } = account;
      run.owner = { name, uid, gid };
    }
    return true;
  }

  marksOf({ owner = null }: Pick<Handed, 'owner'>): Marks {
    const name = owner?.name ?? null;
    let marks = this.marks.get(name);
    if (name === null || (marks !== undefined && this.given.has(name))) return marks as Marks;
    const dir = join(this.stateDir, 'as', name);
    this.files.mkdirSync(dir, { recursive: true });
    this.files.chmodSync(dir, 0o711);
    marks ??= new Marks(this.stateDir, dir, this.files);
    for (const path of marks.directories) this.lend(this.files, path, owner as Owner, 0o2770);
    this.marks.set(name, marks);
    this.given.add(name);
    return marks;
  }

  all(): Iterable<Marks> {
    return this.marks.values();
  }

  /** Removes marks of runs that have long been over. */
  async forgetSpent(): Promise<void> {
    for (const [name, marks] of this.marks) {
      const paths = marks.forgetSpent();
      if (name === null) for (const path of paths) this.files.rmSync(path, { recursive: true, force: true });
      else await this.as(name, 'rm -rf -- "$@"', paths);
    }
  }

  /** Gives the account what it needs of a directory of the agent's that a script runs in, but for that. `files`: who does it. */
  give(files: Calls, { owner }: Pick<Handed, 'owner'>, directory: string): void {
    if (!owner) return;
    for (const name of STREAMS) {
      files.writeFileSync(join(directory, name), '', { flag: 'a', mode: 0o600 });
      this.lend(files, join(directory, name), owner, 0o660);
    }
    files.chmodSync(directory, 0o711);
  }

  giveScript(files: Calls, { owner }: Pick<Handed, 'owner'>, script: string): void {
    if (owner) this.lend(files, script, owner, 0o750);
  }

  /** After `give`, and the last of all: what is in them is the account's from then on. */
  giveDirectories(files: Calls, { owner }: Pick<Handed, 'owner'>, directory: string): void {
    if (owner) for (const name of DIRECTORIES) this.lend(files, join(directory, name), owner, 0o2770);
  }

  /** Makes what is in a directory of the account's readable to the agent, where it is not already. */
  async open({ owner }: Pick<Handed, 'owner'>, directory: string): Promise<void> {
    if (owner && this.byGroup) await this.as(owner.name, OPEN, [directory]);
  }

  /** Gives the account a path. An agent that is not root cannot: it shares it by the account's group, in which only the two are. */
  private lend(files: Calls, path: string, { uid, gid }: Owner, mode: number): void {
    files.chownSync(path, this.byGroup ? -1 : uid, gid);
    if (this.byGroup) files.chmodSync(path, mode);
  }

  /** Removes the directory of a run that is over. What the account has there it removes itself: it could lead the agent elsewhere. */
  async remove({ owner }: Pick<Handed, 'owner'>, directory: string): Promise<void> {
    const { files } = this;
    if (!owner) return files.rmSync(directory, { recursive: true, force: true });
    await this.as(
      owner.name,
      EMPTY,
      DIRECTORIES.map((name) => join(directory, name)),
    );
    for (const name of ['script', 'run', ...STREAMS]) files.rmSync(join(directory, name), { force: true });
    for (const name of DIRECTORIES) files.rmdirSync(join(directory, name));
    files.rmdirSync(directory);
  }

  private async as(name: string, text: string, paths: readonly string[]): Promise<void> {
    for (let at = 0; at < paths.length; at += PATHS_MAX) {
      const problem = await this.accounts?.do({ name }, text, ...paths.slice(at, at + PATHS_MAX));
      if (problem) throw new Error(problem);
    }
  }
}
