/**
 * What stands between a job and everybody else on its host: an account of its own, a sandbox, a control group.
 *
 *   none     the account of the agent: a job can do what the agent can
 *   user     another account than the agent's, without any privilege: one that no other run has, below the account `root` of the agent;
 *            or the one that the operator gives the user of the job (accounts.ts)
 *   sandbox  the same behind bubblewrap: no other processes, and of the files only the system's (read-only), the run's own, and what the
 *            operator shows. An agent that is not root can do this too, where the kernel lets ordinary accounts make namespaces; then
 *            what is not shown is out of reach although the account is the agent's
 *
 * Each may have a control group for every run besides (cgroup.ts).
 */
import { execFile, spawnSync } from 'node:child_process';
import {
  accessSync,
  chownSync,
  constants,
  existsSync,
  lstatSync,
  mkdtempSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { type Account, type Accounts, LEAST_UID } from './accounts.js';
import { Cgroups } from './cgroup.js';
import { type Dropped, FetchedImages, type FetchOptions, type Requester } from './fetched.js';
import { allOf, type IdRange, type Share, shareOf } from './ids.js';
import {
  BWRAP,
  bind,
  bubblewrapNamespaces,
  bubblewrapWords,
  type Entrance,
  directory as emptyDirectory,
  findImageRuntime,
  IMAGE_RUNTIMES,
  type ImageRuntime,
  type ImageRuntimeName,
  type Mount,
  OWN_DIRECTORIES,
} from './image-runtimes.js';
import type { Image } from './image-tools.js';
import { Images, imageMounts, resolverFiles } from './images.js';
import { LaunchError, lastStepLacks, lastWords, startInput } from './script.js';
import { leftInShared, REMOVE } from './shared.js';

export type IsolationMode = 'none' | 'user' | 'sandbox';

/** A directory that jobs in a sandbox see besides the system's and their own. */
export interface ShownDirectory {
  path: string;
  readOnly: boolean;
}

export interface IsolationOptions {
  /** `strongest`: the strongest that this host offers to this account. */
  mode: IsolationMode | 'strongest';
  /** Whether runs have control groups where they can be made. */
  cgroups?: boolean;
  /** User and group ids that runs get, one each: nobody else on the host may have them. */
  uids?: IdRange;
  /** Accounts that users have at this site; null: none, runs have ids of `uids`. */
  accounts?: Accounts | null;
  shown?: readonly ShownDirectory[];
  /** false: a sandbox has no network. */
  network?: boolean;
  /** Processes and threads that a run may have. */
  processes?: number;
  /** Directories in which images of runs are looked for, in this order; none: nothing runs in images. */
  images?: readonly string[];
  /** What runs images, the first that works here; left out: all, in the usual order. */
  runtimes?: readonly ImageRuntimeName[];
  /** How images are fetched that are in none of them; null: not at all. */
  fetch?: FetchOptions | null;
}

/** Where a run takes place and what it may have. */
export interface Place {
  /** null: the agent's. */
  uid: number | null;
  /** The account of its user; null: they have none, and `uid` is the run's own. */
  account?: Account | null;
  /** What only this run has: `uid` itself, or a group besides those of its account; null: nothing. */
  ownId?: number | null;
  /** The directory in which it begins. */
  directory: string;
  /** Directories that are the run's alone: for its files, and for temporary ones. */
  work: string;
  tmp: string;
  /** What it reads and may not change: files and directories. */
  inputs?: readonly string[];
  /** Devices that it may open, besides those that every program may. */
  devices?: readonly string[];
  /** What it runs in; null: the system of the host. */
  image?: Image | null;
}

const SETPRIV = '/usr/bin/setpriv';
const SYSTEM = [
  '/usr',
  '/bin',
  '/sbin',
  '/lib',
  '/lib32',
  '/lib64',
  '/libx32',
  '/etc',
  '/opt',
  '/nix',
  '/gnu',
];
const TOPOLOGY = '/sys/devices/system';
const KERNEL: readonly Mount[] = [
  { kind: 'proc', path: '/proc' },
  { kind: 'dev', path: '/dev' },
];
const DEFAULT_UIDS = { first: 2_000_000_000, last: 2_000_999_999 };
const DEFAULT_PROCESSES = 4096;

/** Between two looks at what accounts have left. */
const SWEEP_MS = 60_000;
const KILL_MS = 10_000;

/** Where runners of CWL put files in images, which have the directories above. */
const OF_CWL: readonly string[] = ['/var/lib/cwl', '/var/spool/cwl'];

/** Who asks for which image; null: the system of the host. */
type ImageRun = Requester & { image: string | null };

export class Isolation {
  /** What the operator is to know at the start, in one line. */
  readonly said: string;
  private readonly free: number[] = [];
  /** Accounts of runs that are over, which may have left files: not given out before `sweep` has looked. */
  private readonly used = new Set<number>();
  /** Accounts whose processes are being ended. */
  private readonly killing = new Map<number, Promise<void>>();
  private sweeping: Promise<void> | null = null;
  private nextSweepMs = 0;

  private constructor(
    readonly mode: IsolationMode,
    readonly cgroups: Cgroups | null,
    /** Why nothing stronger, and no control groups. */
    readonly lacking: readonly string[],
    private readonly uids: Share,
    private readonly shown: readonly ShownDirectory[],
    private readonly network: boolean,
    readonly processes: number,
    private readonly ulimit: string | null,
    /** Accounts that users have here; null: none. */
    readonly accounts: Accounts | null,
    /** What runs can take place in; null: nothing but the system of the host. */
    readonly images: Images | null,
    /** What runs images; null: nothing. */
    readonly runtime: ImageRuntime | null,
  ) {
    this.said = [
      `isolation of jobs: ${mode}`,
      ...(accounts ? ['accounts of users'] : []),
      cgroups === null
        ? 'no control groups'
        : `a control group for each run (${[...cgroups.controllers].join(', ') || 'without controllers'})`,
      ...(mode === 'sandbox' && !network ? ['no network'] : []),
      ...(images?.directories.length ? [`images in ${images.directories.join(', ')}`] : []),
      ...(images?.fetched ? [images.fetched.said] : []),
      ...(runtime ? [`run by ${runtime.name}`] : []),
    ].join(', ');
  }

  /** Every run as the agent's account, and nothing around it. */
  static none(): Isolation {
    return new Isolation(
      'none',
      null,
      [],
      allOf(DEFAULT_UIDS),
      [],
      true,
      DEFAULT_PROCESSES,
      null,
      null,
      null,
      null,
    );
  }

  /**
   * @param stateDir where runs take place; it must be there
   * @param name tells this agent's control groups and accounts from others'
   * @throws Error when the mode asked for is not to be had here
   */
  static open(options: IsolationOptions, stateDir: string, name: string): Isolation {
    const range = options.uids ?? DEFAULT_UIDS;
    // Only root gives accounts.
    const uids = process.getuid?.() === 0 ? shareOf(range, name, stateDir) : allOf(range);
    const lacking: string[] = [];
    const { accounts = null } = options;
    const modes: IsolationMode[] =
      options.mode === 'strongest'
        ? ['sandbox', 'user', ...(accounts ? [] : ['none' as const])]
        : [options.mode];
    const mode = modes.find((one) => {
      const problem = missing(one, uids, accounts, stateDir);
      if (problem !== null) lacking.push(`${one}: ${problem}`);
      return problem === null;
    });
    if (mode === undefined)
      throw new Error(`the requested isolation is not available on this host: ${lacking.join('; ')}`);
    const cgroups = options.cgroups === false ? 'switched off' : Cgroups.open(name);
    if (typeof cgroups === 'string') lacking.push(`control groups: ${cgroups}`);
    const { images: directories = [], fetch = null } = options;
    const wantsImages = directories.length > 0 || fetch !== null;
    const found = wantsImages
      ? (missingForImages(mode, accounts, stateDir, directories) ??
        findImageRuntime(options.runtimes ?? IMAGE_RUNTIMES, (one) =>
          failsToRun(one, uids, options.network ?? true),
        ))
      : null;
    if (typeof found === 'string') lacking.push(`images: ${found}`);
    const runtime = typeof found === 'string' ? null : found;
    const hasIds = ownsUids(mode);
    const dir = join(stateDir, 'images');
    const fetched = (onFetched: () => void): FetchedImages =>
      // What was fetched for one user is hidden from jobs of others by their sandbox.
      new FetchedImages(
        dir,
        mode === 'sandbox' ? fetch! : { ...fetch!, login: null },
        hasIds ? () => made.fetcher() : null,
        onFetched,
      );
    const made: Isolation = new Isolation(
      mode,
      typeof cgroups === 'string' ? null : cgroups,
      lacking,
      uids,
      options.shown ?? [],
      options.network ?? true,
      options.processes ?? DEFAULT_PROCESSES,
      hasIds ? limitOfProcesses() : null,
      accounts,
      runtime && new Images(directories, fetch && fetched),
      runtime,
    );
    return made;
  }

  /** What runs goes on. */
  close(): void {
    this.images?.fetched?.close();
    this.cgroups?.close();
    this.uids.close();
  }

  /** How an agent that is not root becomes an account of a user; null: it needs nobody, or there are none. */
  get launcher(): readonly string[] | null {
    return this.accounts?.launcher ?? null;
  }

  /** Whether runs have other accounts than the agent's. */
  get hasAccounts(): boolean {
    return ownsUids(this.mode) || this.accounts !== null;
  }

  /** Whether a program of a run can outlive it unseen: nothing that it could not drop tells whose it is. */
  get canHide(): boolean {
    if (this.cgroups !== null || this.mode === 'sandbox') return false;
    return !ownsUids(this.mode) || this.launcher !== null;
  }

  /**
   * A number that no other run has: its account, or, under the account of a user, a group besides theirs. What the run starts has it too,
   * and cannot get rid of it. null: the run has none, or needs none. Throws where all are in use: then the run waits.
   */
  takeId(account: Account | null): number | null {
    if (!ownsUids(this.mode)) return null;
    // A control group, or the process namespace of a sandbox, holds together what is another's too.
    if (account !== null && (this.cgroups !== null || this.mode === 'sandbox')) return null;
    // By a launcher it gets the groups of the account and no others.
    if (account !== null && this.launcher !== null) return null;
    const id = this.free.pop();
    if (id === undefined)
      throw Object.assign(new Error('all accounts for runs are in use'), { code: 'EAGAIN' });
    return id;
  }

  /** An account that an agent which is root fetches an image as. Throws where all are in use. */
  private fetcher(): Dropped {
    const uid = this.takeId(null)!;
    let isDone: Promise<void> | null = null;
    const end = async (): Promise<void> => {
      this.killAll(uid);
      await this.killing.get(uid);
      this.putBackId(uid, true);
    };
    return {
      ...{ uid, words: dropTo(uid) },
      done: () => {
        isDone ??= end();
        return isDone;
      },
    };
  }

  /** No process of its run is left. `isAccount`: it was an account, and has files perhaps. */
  putBackId(id: number, isAccount: boolean): void {
    const killing = this.killing.get(id);
    if (killing) {
      // It would meet whoever has the account next.
      void killing.then(() => this.putBackId(id, isAccount));
      return;
    }
    // A sandbox has directories and objects of its own.
    if (isAccount && this.mode === 'user') this.used.add(id);
    else this.free.push(id);
  }

  /** Ends all processes of an account that is a run's own at one stroke: nothing forks away under it. Soon: that needs a process. */
  killAll(id: number): void {
    if (this.killing.has(id)) return;
    const killed = doAs(id, KILL_MS, 'kill -9 -1').finally(() => this.killing.delete(id));
    this.killing.set(id, killed);
  }

  /** Removes from time to time what accounts have left where everybody may write, before they are given out again. */
  async sweep(nowMs: number): Promise<void> {
    const many = (this.uids.last - this.uids.first + 1) / 4;
    if (this.used.size === 0 || (nowMs < this.nextSweepMs && this.used.size < many)) return;
    this.nextSweepMs = nowMs + SWEEP_MS;
    this.sweeping ??= this.sweepUsed().finally(() => {
      this.sweeping = null;
    });
    await this.sweeping;
  }

  private async sweepUsed(): Promise<void> {
    const ids = new Set(this.used);
    for (const [id, words] of await leftInShared((uid) => ids.has(uid)))
      await doAs(id, SWEEP_MS, REMOVE, ...words);
    const resists = await leftInShared((uid) => ids.has(uid));
    for (const id of ids) {
      if (resists.has(id)) continue; // Looked at again, and nobody's until then.
      this.used.delete(id);
      this.free.push(id);
    }
  }

  /**
   * Says which numbers an earlier agent gave to runs that go on. All others can be given out when `sweep` has looked at what that agent's runs have
   * left.
   */
  reserveIds(inUse: ReadonlySet<number>): void {
    if (!ownsUids(this.mode)) return;
    for (let id = this.uids.last; id >= this.uids.first; id--) if (!inUse.has(id)) this.putBackId(id, true);
  }

  isOurs(id: number): boolean {
    return id >= this.uids.first && id <= this.uids.last;
  }

  /** Whether `accountOf` can tell at once; otherwise the host is being asked. */
  knowsAccountOf(user: string): boolean {
    return this.accounts?.isKnown(user) ?? true;
  }

  /** Whether `imageOf` can tell at once; otherwise the image is being read or fetched. */
  knowsImage(run: ImageRun): boolean {
    return run.image === null || (this.images?.isKnown(run.image, run) ?? true);
  }

  /** What a run takes place in; null: the system of the host. Throws LaunchError where this machine lacks the image. */
  imageOf(run: ImageRun): Image | null {
    if (run.image === null) return null;
    if (this.images !== null) return this.images.of(run.image, run);
    throw new LaunchError(`image ${run.image}: this machine does not run images (AGENT_IMAGES of its agent)`);
  }

  /** The account that the user of a run has here; null: they have none of their own. Throws LaunchError where their jobs may not run. */
  accountOf(user: string): Account | null {
    const account = this.accounts?.of(user) ?? null;
    if (account !== null && [account.uid, ...account.groups].some((id) => this.isOurs(id)))
      throw new LaunchError(
        `the account ${account.name} is in the range for runs without an account (AGENT_UIDS)`,
      );
    return account;
  }

  /** Shell text that a run's shell executes before anything else. */
  prologue(account: Account | null): string[] {
    // When memory runs out on the host, runs go first.
    const lines = ['echo 1000 >/proc/self/oom_score_adj'];
    // What counts for an account would count for all that its owner does.
    if (this.ulimit !== null && account === null) lines.push(`ulimit ${this.ulimit} ${this.processes}`);
    return this.mode === 'none' ? [] : lines;
  }

  /**
   * The programs that lead from the agent's account and surroundings to those of a run, as the words before its last step. What the job asked
   * for is none of their business: they start in the agent's environment.
   *
   * @throws LaunchError for a directory that the run may not see
   */
  launchers(place: Place): string[] {
    const { directory, work, inputs = [], account = null, ownId = null, image = null } = place;
    const launched = account !== null && this.launcher !== null;
    const drop = place.uid === null ? [] : launched ? NO_NEW_PRIVILEGES : dropTo(account ?? place.uid, ownId);
    // A launcher tells what it launches of itself (SUDO_COMMAND, say).
    const become = launched ? [...this.accounts!.become(account), '/usr/bin/env', '-i'] : [];
    // The sandbox of an image comes last, as it has no setpriv.
    if (this.mode === 'sandbox' && image === null) {
      this.checkSeen(directory, work);
      const inNamespace = place.uid === null || launched;
      return [...become, ...this.sandbox(place, inNamespace), ...(inNamespace ? [] : drop)];
    }
    const closed = place.uid === null ? undefined : inputs.find((path) => !canEnter(dirname(path)));
    if (closed !== undefined)
      throw new LaunchError(
        `input ${closed}: jobs have their own accounts at this site, which cannot access its directory`,
      );
    return [...become, ...drop];
  }

  /**
   * How a program gets into an image, as the account that it is started by: as `sandbox`, but that the system is the image's. What is new in `/`
   * is on the disk, in the directory for temporary files.
   *
   * @throws LaunchError for a directory that the run may not see
   */
  inside(place: Place, { root }: Image): Entrance {
    const { directory, work, tmp, inputs = [], devices = [], account = null, uid } = place;
    const shown = this.shown.map(({ path }) => path);
    // Of the host's directories the job's own is seen wherever its account may go by itself.
    const own =
      this.mode === 'sandbox' || directory === work || OWN_DIRECTORIES.includes(directory) ? [] : [directory];
    if (this.mode === 'sandbox') this.checkSeen(directory, work, []);
    if (own.some((path) => [...SYSTEM, '/proc', '/dev', '/sys'].some((dir) => isBelow(path, dir))))
      throw new LaunchError(`${directory}: in an image, this directory belongs to the image`);
    const seen = [...shown, ...inputs, work, ...own];
    return this.runtime!.enter({
      ...{ tmp, network: this.network, ...idsOf(uid, account) },
      nameless: uid !== null && account === null,
      mounts: [
        ...imageMounts(root, ['/proc', '/dev', '/sys', '/tmp', '/var/tmp', '/run', ...OF_CWL, ...seen]),
        ...(this.network ? resolverFiles(root) : []).map((path) => bind(path, 'read', true)),
        ...this.kernelMounts(devices),
        ...['/run', '/tmp', '/var', '/var/tmp'].map(emptyDirectory),
        ...this.ownMounts(seen, inputs, work),
        ...own.map((path) => bind(path, 'write')),
      ],
    });
  }

  /** `system`: directories that are the system's. */
  private checkSeen(directory: string, work: string, system: readonly string[] = SYSTEM): void {
    const seen = [...system, ...this.shown.map(({ path }) => path)];
    if (
      directory === work ||
      OWN_DIRECTORIES.includes(directory) ||
      seen.some((path) => isBelow(directory, path))
    )
      return;
    const names = this.shown.map(({ path }) => path).join(', ') || 'nothing else';
    throw new LaunchError(
      `${directory}: jobs at this site see only the system's directories, their own, and ${names} (AGENT_DIRECTORIES)`,
    );
  }

  /** `inNamespace`: as the account that it is started by, which has no privileges but in a namespace of its own. */
  private sandbox({ work, tmp, inputs = [], devices = [] }: Place, inNamespace: boolean): string[] {
    const shown = this.shown.map(({ path }) => path);
    return [
      ...[BWRAP, '--die-with-parent'],
      ...bubblewrapNamespaces(this.network),
      ...(inNamespace ? ['--unshare-user', '--cap-drop', 'ALL'] : []),
      ...bubblewrapWords([
        ...systemMounts(),
        ...(this.network ? resolverMounts() : []),
        ...this.kernelMounts(devices),
        emptyDirectory('/var'),
        ...['/tmp', '/var/tmp'].map((path) => bind(tmp, 'write', false, path)),
        ...this.ownMounts([...shown, ...inputs, work], inputs, work),
      ]),
      ...['--chdir', work],
      '--',
    ];
  }

  /** What the kernel shows to a run, and the devices that it has. */
  private kernelMounts(devices: readonly string[]): Mount[] {
    return [
      // How CPUs and memory lie: launchers of MPI place tasks by it.
      ...['/sys', '/sys/devices'].map(emptyDirectory),
      bind(TOPOLOGY, 'read', true),
      ...KERNEL,
      ...devices.map((path) => bind(path, 'device', true)),
      // What lies there is memory: of the run's own account, and little of it without a control group that counts it.
      {
        ...{ kind: 'memory', path: '/dev/shm' },
        bytes: this.cgroups?.controllers.has('memory') ? null : 64 << 20,
      },
    ];
  }

  /** What the operator shows, the run's inputs and its own directory. `seen`: these. */
  private ownMounts(seen: readonly string[], inputs: readonly string[], work: string): Mount[] {
    return [
      // Otherwise bubblewrap makes what is above them for its own account alone: then nobody gets there by path.
      ...[...new Set(seen.flatMap(above))].map(emptyDirectory),
      ...this.shown.map(({ path, readOnly }) => bind(path, readOnly ? 'read' : 'write', true)),
      ...inputs.map((path) => bind(path, 'read')),
      bind(work, 'write'),
    ];
  }

  /** Whether a run sees this directory of the host. */
  shows(path: string, inImage: boolean): boolean {
    return (this.mode !== 'sandbox' && !inImage) || this.shown.some((one) => isBelow(path, one.path));
  }

  /** Those of these secret files that a job can read, as far as it is given by account and sandbox. */
  exposed(secrets: readonly string[]): string[] {
    return secrets.filter((path) => {
      if (!existsSync(path)) return false;
      if (
        this.mode === 'sandbox' &&
        ![...SYSTEM, ...this.shown.map((one) => one.path)].some((dir) => isBelow(path, dir))
      )
        return false;
      if (!this.hasAccounts) return isReadable(path);
      return (statSync(path).mode & 0o004) !== 0 && canEnter(dirname(path));
    });
  }
}

/** Whether runs get ids of the range for runs. */
const ownsUids = (mode: IsolationMode): boolean => mode !== 'none' && process.getuid?.() === 0;

const isBelow = (path: string, dir: string): boolean =>
  path === dir || path.startsWith(`${dir.replace(/\/$/, '')}/`);

/** The words that make a process one of this account, and take everything else from it. `group`: one besides those of a user's account. */
const dropTo = (to: number | Account, group: number | null = null): string[] => [
  SETPRIV,
  ...(typeof to === 'number'
    ? [`--reuid=${to}`, `--regid=${to}`, '--clear-groups']
    : [
        ...[`--reuid=${to.uid}`, `--regid=${to.gid}`],
        `--groups=${[...to.groups, ...(group === null ? [] : [group])].join()}`,
      ]),
  '--no-new-privs',
  '--inh-caps=-all',
  '--bounding-set=-all',
  '--',
];
const NO_NEW_PRIVILEGES = [SETPRIV, '--no-new-privs', '--'];

/** The directories above one, from the top. */
const above = (path: string): string[] => {
  const up = dirname(path);
  return up === '/' ? [] : [...above(up), up];
};

/** What the host lacks for a mode; null: nothing. */
function missing(
  mode: IsolationMode,
  uids: IdRange,
  accounts: Accounts | null,
  stateDir: string,
): string | null {
  if (mode === 'none') return accounts && 'AGENT_ACCOUNTS requires separate accounts';
  if (process.platform !== 'linux') return 'only on Linux';
  const root = process.getuid?.() === 0;
  if (!root && accounts && accounts.launcher === null)
    return 'AGENT_ACCOUNTS needs an agent that is root, or AGENT_LAUNCHER';
  if (mode === 'user' && !root && !accounts) return 'the agent is not root';
  const lacks = lastStepLacks();
  if (lacks !== null) return lacks;
  if ((root || accounts) && !existsSync(SETPRIV)) return `${SETPRIV} is missing (util-linux)`;
  if (root) {
    if (!(uids.first >= LEAST_UID && uids.last >= uids.first))
      return `AGENT_UIDS: ${uids.first} to ${uids.last} is not a range of IDs from ${LEAST_UID}`;
    if (!areMapped(uids)) return `the IDs ${uids.first} to ${uids.last} do not exist in this container`;
    const problem = fails([...dropTo(uids.first), '/bin/sh', '-c', 'exit 0']);
    if (problem !== null) return `cannot change the account: ${problem}`;
  }
  // The directory itself is opened, for passing through, by whoever runs jobs in it.
  if ((mode === 'user' || accounts) && !canEnter(dirname(stateDir)))
    return `other accounts may not enter a directory above ${stateDir}`;
  if (mode === 'user') return null;
  if (!existsSync(BWRAP)) return `${BWRAP} is missing (bubblewrap)`;
  const problem = fails([
    ...[BWRAP, '--unshare-pid', '--unshare-ipc', '--unshare-uts', ...(root ? [] : ['--unshare-user'])],
    ...[...bubblewrapWords([...systemMounts(), ...KERNEL]), '--', ...(root ? dropTo(uids.first) : [])],
    ...['/bin/sh', '-c', 'exit 0'],
  ]);
  return problem === null ? null : `bubblewrap does not work here: ${problem}`;
}

/** What the host lacks for images in these directories; null: nothing. */
function missingForImages(
  mode: IsolationMode,
  accounts: Accounts | null,
  stateDir: string,
  directories: readonly string[],
): string | null {
  if (process.platform !== 'linux') return 'only on Linux';
  const root = process.getuid?.() === 0;
  if (root && mode === 'none') return 'without isolation, jobs would be root in them';
  const lacks = lastStepLacks();
  if (lacks !== null) return lacks;
  for (const directory of directories) {
    if (!existsSync(directory)) return `${directory} does not exist`;
    if ((root || accounts) && !canEnter(directory)) return `other accounts may not enter ${directory}`;
  }
  if ((root || accounts) && !canEnter(dirname(stateDir)))
    return `other accounts may not enter a directory above ${stateDir}`;
  return null;
}

/** Has a runtime run something as an ordinary account; answers what it says if that fails. */
function failsToRun(runtime: ImageRuntime, uids: IdRange, network: boolean): string | null {
  const uid = process.getuid?.() === 0 ? uids.first : null;
  const tmp = mkdtempSync(join(tmpdir(), 'switchyard-trial-'));
  try {
    if (uid !== null) chownSync(tmp, uid, uid);
    const [program, ...args] = runtime.trial.command(network);
    const run = {
      ...{ program: program!, arguments: args, environment: new Map<string, string>(), directory: '/' },
      ...{ launchers: [], prologue: [], terminal: null, umask: null },
      inside: runtime.enter({
        ...{ tmp, network, ...idsOf(uid, null), nameless: uid !== null },
        mounts: [...runtime.trial.mounts(systemMounts()), ...KERNEL],
      }),
    };
    return fails([...(uid === null ? [] : dropTo(uid)), ...lastWords(run)], startInput(run) ?? '');
  } finally {
    rmSync(tmp, { recursive: true, force: true });
  }
}

/** What an account's processes are of; null: the agent's. */
const idsOf = (uid: number | null, account: Account | null): { uid: number; gid: number } =>
  uid === null
    ? { uid: process.getuid?.() ?? 0, gid: process.getgid?.() ?? 0 }
    : { uid, gid: account?.gid ?? uid };

/** `input`: for the last step before a program in an image, which has one more descriptor. */
function fails([command, ...args]: string[], input?: string): string | null {
  const done = spawnSync(command!, args, {
    ...{ encoding: 'utf8', env: {}, cwd: '/', timeout: 10_000 },
    ...(input !== undefined && {
      input,
      stdio: [...Array(3).fill('pipe'), ...Array(6).fill('ignore'), 'pipe'],
    }),
  });
  if (done.status === 0) return null;
  return (done.error?.message ?? done.stderr.trim()) || `it ended with ${done.status ?? done.signal}`;
}

/** Whether these ids are those of the host, or some of a container's (user_namespaces(7)). */
function areMapped({ first, last }: IdRange): boolean {
  return readFileSync('/proc/self/uid_map', 'utf8')
    .trim()
    .split('\n')
    .some((line) => {
      const [from, , count] = line.trim().split(/\s+/).map(Number) as [number, number, number];
      return first >= from && last < from + count;
    });
}

/** Whether other accounts may pass through a directory and all those above it. */
function canEnter(path: string): boolean {
  for (let dir = path; ; dir = dirname(dir)) {
    if ((statSync(dir).mode & 0o001) === 0) return false;
    if (dir === dirname(dir)) return true;
  }
}

function isReadable(path: string): boolean {
  try {
    accessSync(path, constants.R_OK);
    return true;
  } catch {
    return false;
  }
}

/** The system's directories, read-only; those that are links to others stay such. */
function systemMounts(): Mount[] {
  return SYSTEM.flatMap((path): Mount[] => {
    const found = lstatSync(path, { throwIfNoEntry: false });
    if (found === undefined) return [];
    return [found.isSymbolicLink() ? { kind: 'link', path, to: readlinkSync(path) } : bind(path, 'read')];
  });
}

/** What /etc/resolv.conf points to, often below /run. */
function resolverMounts(): Mount[] {
  try {
    const target = readlinkSync('/etc/resolv.conf');
    const path = join('/etc', target);
    const absolute = target.startsWith('/') ? target : path;
    return existsSync(absolute) && !isBelow(absolute, '/etc') ? [bind(absolute, 'read')] : [];
  } catch {
    return [];
  }
}

/** How this shell's `ulimit` names the number of processes. */
function limitOfProcesses(): string | null {
  return ['-u', '-p'].find((option) => fails(['/bin/sh', '-c', `ulimit ${option} 100000`]) === null) ?? null;
}

/** Has an account carry out a shell text. Whether that went well is seen by what is left. */
function doAs(uid: number, timeout: number, text: string, ...words: string[]): Promise<void> {
  if (!(uid >= LEAST_UID)) throw new RangeError(`account ${uid} is a system account`);
  const [command, ...args] = [...dropTo(uid), '/bin/sh', '-c', text, 'sh', ...words];
  return new Promise((resolve) => {
    execFile(command!, args, { env: {}, cwd: '/', timeout }, () => resolve());
  });
}
