/**
 * Which account of the host the jobs of a user run as, where the operator has said so (`AGENT_ACCOUNTS`), and how an agent that is not root
 * becomes it (`AGENT_LAUNCHER`: sudo, say).
 *
 * Such an account is somebody's: they have other processes on the host, and other runs. So nothing is ever done to an account as a whole.
 */
import { execFile, spawnSync } from 'node:child_process';
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
/** How long it is believed that an account is what it was. */
const BELIEVED_MS = 60_000;
const TIMEOUT_MS = 10_000;

export class Accounts {
  private list: ReadonlyMap<string, string>;
  private version: string;
  private readonly found = new Map<string, { account: Account; untilMs: number }>();

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
   * The account of a user; null: one of the pool.
   *
   * @throws LaunchError where there is none, or none that may be used
   */
  of(user: string): Account | null {
    this.refresh();
    const name = this.list.get(user) ?? this.list.get('*');
    if (name === undefined)
      throw new LaunchError(`the user ${user} has no account at this site (AGENT_ACCOUNTS)`);
    return name === POOL ? null : this.named(name);
  }

  /** The words before a command that make it one of an account. */
  become(account: Account): string[] {
    return this.launcher!.map((word) => word.replaceAll('{account}', account.name));
  }

  /** Has an account carry out a shell text on what is its own. Answers what went wrong; null: nothing. */
  async do(account: Account, text: string, ...args: string[]): Promise<string | null> {
    const [program, ...words] = [...this.become(account), '/bin/sh', '-c', text, 'sh', ...args];
    return new Promise((resolve) => {
      execFile(program!, words, { env: {}, cwd: '/', timeout: 6 * TIMEOUT_MS }, (error, _, stderr) =>
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
      warn({ err, file }, 'the list of accounts is not accepted; the one before stays in force');
    }
  }

  private named(name: string): Account {
    const known = this.found.get(name);
    if (known && performance.now() < known.untilMs) return known.account;
    const account = lookUp(name);
    const problem = this.problemOf(account);
    if (problem !== null)
      throw new LaunchError(`the account ${name} cannot be used at this site: ${problem}`);
    this.found.set(name, { account, untilMs: performance.now() + BELIEVED_MS });
    return account;
  }

  private problemOf(account: Account): string | null {
    const { uid, gid, name } = account;
    if (uid < LEAST_UID || gid < LEAST_UID) return `ids below ${LEAST_UID} are the system's`;
    if (uid === process.getuid?.()) return 'it is the one of the agent';
    if (this.launcher === null) return null;
    // Agent and account share the run's directory by the account's group: nobody else may be in it.
    const [, , , members = ''] = ask('getent', 'group', String(gid)).split(':');
    const own = ask('id', '-un').trim();
    const others = members
      .trim()
      .split(',')
      .filter((one) => one !== '' && one !== name && one !== own);
    if (others.length > 0) return `its group has other members (${others.join(', ')})`;
    for (const other of new Set(this.list.values()))
      if (other !== name && other !== POOL && gidOf(other) === gid) return `${other} has the same group`;
    if (!process.getgroups!().includes(gid))
      return `the agent is not in its group (usermod --append --groups ${gid} ${own}, and a restart of the agent)`;
    const [program, ...words] = [...this.become(account), '/bin/sh', '-c', 'id -u'];
    const tried = spawnSync(program!, words, { encoding: 'utf8', env: {}, cwd: '/', timeout: TIMEOUT_MS });
    if (tried.status !== 0) return (tried.error?.message ?? tried.stderr.trim()) || 'the launcher failed';
    return Number(tried.stdout) === uid ? null : `the launcher made it ${tried.stdout.trim()}, not ${uid}`;
  }
}

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
    if (list.has(user)) throw new Error(`${where}: ${user} is there twice`);
    list.set(user, account);
  }
  return list;
}

function versionOf(file: string): string {
  const { mtimeMs, ino, size } = statSync(file);
  return `${mtimeMs} ${ino} ${size}`;
}

function lookUp(name: string): Account {
  const [, , uid, gid, , home] = ask('getent', 'passwd', name).trim().split(':');
  if (!uid || !gid) throw new LaunchError(`the account ${name} does not exist on this host`);
  const groups = ask('id', '-G', name).trim().split(' ').map(Number);
  return { name, uid: Number(uid), gid: Number(gid), groups, home: home || '/' };
}

const gidOf = (name: string): number => Number(ask('getent', 'passwd', name).split(':')[3]);

/** What the host's own directory of accounts says; empty: nothing. */
function ask(program: string, ...args: string[]): string {
  const done = spawnSync(program, args, { encoding: 'utf8', cwd: '/', timeout: TIMEOUT_MS });
  return done.status === 0 ? done.stdout : '';
}
