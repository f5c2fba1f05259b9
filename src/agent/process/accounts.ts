/**
 * Which account of the host the jobs of a user run as, where the operator has said so (`AGENT_ACCOUNTS`), and how an agent that is not root
 * becomes it (`AGENT_LAUNCHER`: sudo, say).
 *
 * Such an account is somebody's: they have other processes on the host, and other runs. So nothing is ever done to an account as a whole.
 */
import { execFile } from 'node:child_process';
import { readFileSync, statSync } from 'node:fs';
import { basename } from 'node:path';
import { LaunchError } from './script.js';

/** An account of the host. */
export interface Account {
  name: string;
  uid: number;
  gid: number;
  /** All its groups, `gid` among them. */
  groups: readonly number[];
  home: string;
}

export interface AccountsOptions {
  /** The list: a line `user = account` for each user, `* = account` for all others, `#` before remarks. */
  file: string;
  /** The words before a command that run it as `{account}`; null: the agent is root, and needs nobody. */
  launcher: readonly string[] | null;
  /** What the programs that are asked find in their environment, some of them as somebody else. */
  environment: Readonly<Record<string, string>>;
  /** How long the host's directory of accounts (LDAP, say) may take to answer all that is asked of one account. */
  patienceMs?: number;
  /** Told of a list that is not accepted any more: the one before stays in force. */
  warn: (fields: object, message: string) => void;
}

/**
 * Shell texts for `Accounts.do`. Signals `$1` to the group `$2` (0: none), to all processes of the account that have the environment entry
 * `$3` (empty: to none) and are not in that group, and to the processes behind.
 */
export const SIGNAL = `
sig=$1 group=$2 marker=$3
shift 3
{
[ "$group" = 0 ] || kill -s "$sig" -- "-$group"
for one; do kill -s "$sig" "$one"; done
[ -z "$marker" ] || for one in $(cd /proc && grep -lsxzF -- "$marker" [0-9]*/environ); do
  one=\${one%/*}
  read -r stat <"/proc/$one/stat" || continue
  set -- \${stat##*) }
  [ "$3" = "$group" ] || kill -s "$sig" "$one"
done
} 2>/dev/null
true
`;
/** Makes what is in the directory `$1` readable for the account's group. */
export const OPEN = 'cd "$1" && chmod -R g+rX . 2>/dev/null; true';
/** Removes what is in the directories, whatever their owner has done to it. */
export const EMPTY = `
for dir; do
  (cd "$dir" && find . -xdev -mindepth 1 -type d ! -perm -700 -exec chmod u+rwx {} ';' ; cd "$dir" && find . -xdev -mindepth 1 -delete)
done 2>/dev/null
true
`;

/** Below are the accounts of the system. */
export const LEAST_UID = 1000;
/** Instead of the name of an account: one of those that no other run has. */
const POOL = ':pool';
/** How long it is believed that an account is what it was; where the directory does not answer, it is believed for longer. */
const BELIEVED_MS = 60_000;
const BELIEVED_UNHEARD_MS = 3_600_000;
/** How long it is believed that an account cannot be used. */
const REFUSED_MS = 10_000;
const PATIENCE_MS = 10_000;
/** Accounts that are looked up at a time. */
const MAX_LOOK_UPS = 8;
const DO_TIMEOUT_MS = 60_000;
/** How root becomes an account. */
const AS_ROOT = ['/usr/sbin/runuser', '-u', '{account}', '--'];

/** The directory of accounts has not answered: that says nothing of the account. */
class Unheard extends Error {}

/** What a look-up has come to. */
interface Known {
  account: Account | null;
  /** Why it cannot be used. */
  error: Error | null;
  /** When the directory has said so. */
  sinceMs: number;
  untilMs: number;
}

export class Accounts {
  private list: ReadonlyMap<string, string>;
  private version: string;
  private readonly found = new Map<string, Known>();
  private readonly asked = new Set<string>();
  /** Called when an account has been looked up. */
  onFound: () => void = () => {};

  /** @throws Error for a list that cannot be read, or is not accepted */
  constructor(private readonly options: AccountsOptions) {
    this.version = versionOf(options.file);
    this.list = parse(readFileSync(options.file, 'utf8'), options);
  }

  get launcher(): readonly string[] | null {
    return this.options.launcher;
  }

  /** What the launcher's own errors begin with. */
  get launcherSays(): string[] {
    return this.launcher ? [`${basename(this.launcher[0]!)}: `] : [];
  }

  /**
   * Whether `of` can tell at once. Otherwise the host is being asked, beside everything else: its directory of accounts may be far away, and
   * may not answer.
   */
  isKnown(user: string): boolean {
    this.refresh();
    const name = this.nameOf(user);
    if (name === undefined || name === POOL) return true;
    const known = this.found.get(name);
    if (known && performance.now() < known.untilMs) return true;
    if (!this.asked.has(name) && this.asked.size < MAX_LOOK_UPS) {
      this.asked.add(name);
      void this.ask(name).finally(() => {
        this.asked.delete(name);
        this.onFound();
      });
    }
    return false;
  }

  /**
   * The account of a user; null: one of the pool.
   *
   * @throws LaunchError where there is none, or none that may be used; another error where the host cannot tell, or not yet
   */
  of(user: string): Account | null {
    if (!this.isKnown(user))
      throw Object.assign(new Error(`looking up the account of ${user}`), { code: 'EAGAIN' });
    const name = this.nameOf(user);
    if (name === undefined)
      throw new LaunchError(`the user ${user} has no account at this site (AGENT_ACCOUNTS)`);
    if (name === POOL) return null;
    const { account, error } = this.found.get(name)!;
    if (error) throw error;
    return account;
  }

  /** The words before a command that make it one of an account. */
  become(account: Pick<Account, 'name'>): string[] {
    return (this.launcher ?? AS_ROOT).map((word) => word.replaceAll('{account}', account.name));
  }

  /** Has an account carry out a shell text on what is its own. Answers what went wrong; null: nothing. */
  async do(account: Pick<Account, 'name'>, text: string, ...args: string[]): Promise<string | null> {
    const [program, ...words] = [...this.become(account), '/bin/sh', '-c', text, 'sh', ...args];
    return new Promise((resolve) => {
      execFile(program!, words, { env: {}, cwd: '/', timeout: DO_TIMEOUT_MS }, (error, _, stderr) =>
        resolve(error ? stderr.trim() || error.message : null),
      );
    });
  }

  private refresh(): void {
    const { file, warn } = this.options;
    try {
      const version = versionOf(file);
      if (version === this.version) return;
      this.version = version;
      this.list = parse(readFileSync(file, 'utf8'), this.options);
      this.found.clear();
    } catch (err) {
      warn({ err, file }, 'the list of accounts is invalid; the previous one stays in use');
    }
  }

  private nameOf(user: string): string | undefined {
    return this.list.get(user) ?? this.list.get('*');
  }

  private async ask(name: string): Promise<void> {
    const list = this.list;
    const before = this.found.get(name);
    const patience = new AbortController();
    const timer = setTimeout(() => patience.abort(), this.options.patienceMs ?? PATIENCE_MS);
    const known = await this.lookUp(name, patience.signal).then(
      (account): Known => ({ account, error: null, ...during(BELIEVED_MS) }),
      (error: Error): Known => {
        const goesOn =
          error instanceof Unheard &&
          before?.account &&
          performance.now() - before.sinceMs < BELIEVED_UNHEARD_MS;
        const { sinceMs, untilMs } = during(REFUSED_MS);
        return goesOn ? { ...before, untilMs } : { account: null, error, sinceMs, untilMs };
      },
    );
    clearTimeout(timer);
    if (this.list === list) this.found.set(name, known);
  }

  private async lookUp(name: string, patience: AbortSignal): Promise<Account> {
    const ask: Ask = (program, ...args) => answerOf(patience, this.options.environment, program, ...args);
    const [, , uid, gid, , home] = (await ask('getent', 'passwd', name)).out.trim().split(':');
    if (!uid || !gid) throw new LaunchError(`the account ${name} does not exist on this host`);
    const all = await ask('id', '-G', name);
    if (!all.well) throw new Error(`the groups of ${name} cannot be read: ${all.err.trim()}`);
    const groups = all.out.trim().split(' ').map(Number);
    const account = { name, uid: Number(uid), gid: Number(gid), groups, home: home || '/' };
    const problem = await this.problemOf(account, ask);
    if (problem !== null)
      throw new LaunchError(`the account ${name} cannot be used at this site: ${problem}`);
    return account;
  }

  private async problemOf({ uid, gid, name }: Account, ask: Ask): Promise<string | null> {
    if (uid < LEAST_UID || gid < LEAST_UID) return `IDs below ${LEAST_UID} are reserved for the system`;
    if (uid === process.getuid?.()) return "it is the agent's own account";
    if (this.launcher === null) return null;
    // Agent and account share the run's directory by the account's group: nobody else may be in it.
    const [, , , members = ''] = (await ask('getent', 'group', String(gid))).out.split(':');
    const own = (await ask('id', '-un')).out.trim();
    const others = members
      .trim()
      .split(',')
      .filter((one) => one !== '' && one !== name && one !== own);
    if (others.length > 0) return `its group has other members (${others.join(', ')})`;
    const listed = [...new Set(this.list.values())].filter((one) => one !== name && one !== POOL);
    const entries = listed.length === 0 ? null : await ask('getent', 'passwd', ...listed);
    for (const entry of (entries?.out ?? '').split('\n')) {
      const [other, , , group] = entry.split(':');
      if (Number(group) === gid) return `${other} has the same group`;
    }
    if (process.getuid!() !== 0 && !process.getgroups!().includes(gid))
      return `the agent is not in its group (usermod --append --groups ${gid} ${own}, and a restart of the agent)`;
    const [program, ...words] = [...this.become({ name }), '/bin/sh', '-c', 'id -u'];
    const made = await ask(program!, ...words);
    if (!made.well) return made.err.trim() || 'the launcher failed';
    return Number(made.out) === uid ? null : `the launcher runs it with uid ${made.out.trim()}, not ${uid}`;
  }
}

const during = (ms: number): { sinceMs: number; untilMs: number } => ({
  sinceMs: performance.now(),
  untilMs: performance.now() + ms,
});

function parse(text: string, { file, launcher }: AccountsOptions): ReadonlyMap<string, string> {
  const list = new Map<string, string>();
  for (const [i, line] of text.split('\n').entries()) {
    const plain = line.replace(/(^|\s)#.*/, '').trim();
    if (plain === '') continue;
    const at = plain.lastIndexOf('=');
    const [user, account] = [plain.slice(0, Math.max(at, 0)).trim(), plain.slice(at + 1).trim()];
    const where = `${file}, line ${i + 1}: ${plain}`;
    if (at < 0 || user === '') throw new Error(`${where}: accepted: user = account, or * = account`);
    if (account === 'root' || !(account === POOL || /^[A-Za-z_][\w.-]{0,255}$/.test(account)))
      throw new Error(`${where}: accepted: the name of an account other than root, or ${POOL}`);
    if (account === POOL && launcher !== null)
      throw new Error(`${where}: ${POOL} needs an agent that is root, without AGENT_LAUNCHER`);
    if (list.has(user)) throw new Error(`${where}: ${user} is listed twice`);
    list.set(user, account);
  }
  return list;
}

function versionOf(file: string): string {
  const { mtimeMs, ino, size } = statSync(file);
  return `${mtimeMs} ${ino} ${size}`;
}

interface Answer {
  well: boolean;
  out: string;
  err: string;
}
type Ask = (program: string, ...args: string[]) => Promise<Answer>;

/**
 * What a program says.
 *
 * @throws Unheard when patience ends before it does; another error when it cannot be started
 */
function answerOf(
  patience: AbortSignal,
  env: Readonly<Record<string, string>>,
  program: string,
  ...args: string[]
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const options = { encoding: 'utf8', cwd: '/', env } as const;
    const child = execFile(program, args, options, (error, out, err) => {
      if (typeof error?.code === 'string') reject(error);
      else resolve({ well: error === null, out, err });
    });
    const giveUp = (): void => {
      child.kill('SIGKILL');
      // It may hang in the kernel: nobody waits for it.
      child.unref();
      reject(
        new Unheard(`the account directory of this host does not respond: ${[program, ...args].join(' ')}`),
      );
    };
    patience.addEventListener('abort', giveUp, { once: true });
  });
}
