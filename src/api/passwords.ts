/** Passwords: which are accepted, and their hashes, which are made one at a time in a thread of their own. */
import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { MAX } from '../platform/limits.js';
import { packagePath } from '../platform/paths.js';
import { type Account, turns } from '../platform/turns.js';
import { busy } from './admission/budget.js';
import { Counter } from './admission/shares.js';
import { inTurn } from './admission/turns.js';
import { ApiError } from './errors.js';
import type { PasswordTask } from './passwords-thread.js';

/** NIST SP 800-63B, section 3.1.1.2: long ones, without rules of what they consist of. */
const CHARS_MIN = 12;
/** What must be left of one without the names of its user and of the service, and of how many different characters. */
const OWN_CHARS_MIN = 8;
const DIFFERENT_MIN = 5;
/** Some that everybody tries first, of those that are long enough. */
const WORN: ReadonlySet<string> = new Set(
  '123456789012 1234567890123 12345678901234 123456789qwerty qwertyuiop123 qwertyuiopasdf qwerty123456 1q2w3e4r5t6y q1w2e3r4t5y6 1qaz2wsx3edc zaq12wsxcde3 password1234 password12345 passwordpassword administrator administrator1 letmeinletmein changeme1234 changemechangeme welcome12345 iloveyou1234 abcdefghijkl abcdefghijklm abc123456789 correcthorsebatterystaple'.split(
    ' ',
  ),
);
/** Waiting for a turn, of one address or user. */
const WAITING_MAX = 20;

export interface Passwords {
  /** What waits goes with its request. Throws UNAVAILABLE where too much waits for the account. */
  inTurn<T>(account: Account, signal: AbortSignal, work: () => Promise<T>): Promise<T>;
  /** In a turn. */
  hash(password: string): Promise<string>;
  /** In a turn: whether it is the one with this hash; null: that of nobody. */
  isRight(password: string, hash: string | null): Promise<boolean>;
}

export function createPasswords(): Passwords {
  const oneAtATime = inTurn();
  const waiting = new Counter();
  let thread: Worker | null = null;

  async function ask(task: PasswordTask): Promise<unknown> {
    if (thread === null) {
      // The built one, also where the rest runs from its sources: Node loads no TypeScript.
      const made = new Worker(packagePath('dist', 'api', 'passwords-thread.js'));
      made.unref();
      made.on('exit', () => {
        if (thread === made) thread = null;
      });
      thread = made;
    }
    const answer = once(thread, 'message');
    thread.postMessage(task);
    return (await answer)[0];
  }

  return {
    async inTurn(account, signal, work) {
      const holder = account.name;
      if (waiting.of(holder) >= WAITING_MAX) throw busy('too many attempts to sign in are waiting');
      waiting.change(holder, 1);
      try {
        return await oneAtATime(holder, signal, async () => {
          await turns.turn(account);
          return work();
        });
      } finally {
        waiting.change(holder, -1);
      }
    },
    hash: async (password) => (await ask({ is: 'new', password: password.normalize('NFKC') })) as string,
    isRight: async (password, hash) =>
      (await ask({ is: 'tried', password: password.normalize('NFKC'), hash })) === true,
  };
}

/** Throws BAD_USER_INPUT for a new password that is not accepted. What was sent is not repeated. */
export function checkPassword(field: string, password: string, userName: string): void {
  const refuse = (why: string): never => {
    throw new ApiError('BAD_USER_INPUT', `${field}: ${why}`, { field });
  };
  const plain = password.normalize('NFKC');
  const length = [...plain].length;
  if (length < CHARS_MIN || length > MAX.passwordChars)
    refuse(`it has ${length} characters; accepted: ${CHARS_MIN} to ${MAX.passwordChars}, of any kind`);
  const lower = plain.toLowerCase();
  const own = lower.replaceAll(userName.toLowerCase(), '').replaceAll('switchyard', '');
  if (own.length < OWN_CHARS_MIN)
    refuse(`accepted: at least ${OWN_CHARS_MIN} characters besides the names of the user and the service`);
  if (WORN.has(lower) || new Set(own).size < DIFFERENT_MIN)
    refuse('it is a common password; accepted: several words, or a password from a password manager');
}
