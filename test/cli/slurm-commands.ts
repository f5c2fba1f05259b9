/** The commands called like Slurm's in a shell, as a user of a service has them. */
import { execFile } from 'node:child_process';
import { expect } from 'vitest';

interface Outcome {
  code: number;
  stdout: string;
  stderr: string;
}

export interface Place {
  /** Where the commands are, and where the shell is. */
  bin: string;
  here: string;
  /** Of the service, whose administrator asks. */
  home: string;
  url: () => string;
}

export function commandsOf({ bin, here, home, url }: Place) {
  function shell(line: string, stdin = ''): Promise<Outcome> {
    const env = {
      PATH: `${bin}:${process.env.PATH}`,
      HOME: home,
      USER: 'ada',
      SWITCHYARD_HOME: home,
      SWITCHYARD_URL: url(),
      SECRET_OF_MINE: 'shown',
    };
    return new Promise((resolve) => {
      const child = execFile('bash', ['-c', line], { cwd: here, env }, (error, stdout, stderr) =>
        resolve({ code: typeof error?.code === 'number' ? error.code : 0, stdout, stderr }),
      );
      child.stdin!.end(stdin);
    });
  }
  /** What a line prints, which must succeed and say nothing else. */
  async function said(line: string, stdin = ''): Promise<string> {
    const { code, stdout, stderr } = await shell(line, stdin);
    expect([code, stderr]).toEqual([0, '']);
    return stdout.trimEnd();
  }
  return { shell, said };
}
