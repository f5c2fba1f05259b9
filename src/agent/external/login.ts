/**
 * The environment that a login of an account begins with: jobs have it, and nothing of the agent's. sbatch can have the node find it
 * (`--export=NONE`), for each job anew, which takes slurmd a second. Here it is asked for once for many, and passed on, as by somebody who calls
 * sbatch after a login.
 */
import { execFile } from 'node:child_process';
import { JOB_PATH } from '../../platform/environment.js';

export interface Account {
  readonly username: string;
  readonly homedir: string;
  readonly shell: string | null;
}

export type Environment = Readonly<Record<string, string>>;

const MARK = 'switchyard-environment';
/** A file that a login reads may hang. */
const LOGIN_MS = 10_000;
const BYTES = 256 << 10;
const KEPT_MS = 600_000;
const FAILED_MS = 60_000;
/** What is of the shell that was asked, or would change how sbatch takes its options. */
const NOT_OF_JOBS = /^(_|PWD|OLDPWD|SHLVL|(SLURM|SBATCH|SALLOC|SRUN)_.*)$/;

/** null: its login shell does not say. */
function askFor({ username, homedir, shell }: Account): Promise<Environment | null> {
  const program = shell || '/bin/sh';
  const env = { HOME: homedir, USER: username, LOGNAME: username, SHELL: program, PATH: JOB_PATH };
  return new Promise((resolve) => {
    const options = {
      env,
      cwd: homedir,
      timeout: LOGIN_MS,
      maxBuffer: BYTES,
      killSignal: 'SIGKILL',
    } as const;
    const words = ['-l', '-c', `echo ${MARK}; exec env -0`];
    const child = execFile(program, words, options, (error, out) => {
      const [, told] = out.split(`${MARK}\n`);
      if (error !== null || told === undefined) return resolve(null);
      const found = told.split('\0').flatMap((one) => {
        const [, name, value] = /^([A-Za-z_]\w*)=(.*)$/s.exec(one) ?? [];
        return name === undefined || NOT_OF_JOBS.test(name) ? [] : [[name, value as string]];
      });
      resolve(Object.fromEntries(found));
    });
    child.stdin?.on('error', () => {});
    child.stdin?.end();
  });
}

/** Answers of one account are kept for ten minutes, failures for one. */
export class LoginEnvironment {
  private known: { environment: Promise<Environment | null>; untilMs: number } | null = null;

  constructor(private readonly account: Account) {}

  /** null: not found; `--export=NONE` then has the node try. */
  async get(): Promise<Environment | null> {
    if (this.known === null || this.known.untilMs < performance.now()) {
      const known = { environment: askFor(this.account), untilMs: performance.now() + KEPT_MS };
      this.known = known;
      if ((await known.environment) === null) known.untilMs = performance.now() + FAILED_MS;
    }
    return this.known.environment;
  }
}
