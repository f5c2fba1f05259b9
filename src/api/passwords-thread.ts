/** The thread that `createPasswords` starts: argon2id takes a tenth of a second, in which the service does much else. */
import { randomBytes } from 'node:crypto';
import { parentPort } from 'node:worker_threads';
import { argon2id, argon2Verify } from 'hash-wasm';

/** What to do: make a hash of a password, or compare the password with one; null: with that of nobody, which takes as long. */
export type PasswordTask = { password: string } & ({ is: 'new' } | { is: 'tried'; hash: string | null });

/** OWASP Password Storage Cheat Sheet: 19 MiB, two passes, one lane. */
const hashed = (password: string): Promise<string> =>
  argon2id({
    password,
    salt: randomBytes(16),
    memorySize: 19_456,
    iterations: 2,
    parallelism: 1,
    hashLength: 32,
    outputType: 'encoded',
  });

const ofNobody = hashed(randomBytes(16).toString('hex'));

parentPort?.on('message', async (task: PasswordTask) => {
  const { password } = task;
  const answer =
    task.is === 'new'
      ? await hashed(password)
      : (await argon2Verify({ password, hash: task.hash ?? (await ofNobody) })) && task.hash !== null;
  parentPort?.postMessage(answer);
});
