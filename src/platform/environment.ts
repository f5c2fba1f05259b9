/** The environments that programs begin with, built up from nothing: neither depends on who has started the process. */
import { userInfo } from 'node:os';

/** Where jobs find their programs, unless they or the operator (AGENT_ENVIRONMENT) say otherwise. */
export const JOB_PATH = '/usr/local/bin:/usr/bin:/bin';
const HOST_PATH = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

/** The account of this process. */
function own(): Record<string, string> {
  const { username, homedir } = account();
  return { HOME: homedir, USER: username, LOGNAME: username, SHELL: '/bin/sh', LANG: 'C.UTF-8' };
}

function account(): { username: string; homedir: string } {
  try {
    return userInfo();
  } catch {
    // In a container an account may have a number and no name.
    return { username: String(process.getuid?.()), homedir: '/' };
  }
}

/** For what the agent starts for itself: launchers, commands of its operator. None of it is a job's to say. */
export const hostEnvironment = (): Record<string, string> => ({ PATH: HOST_PATH, ...own() });

/** For jobs, with the account of the agent. */
export const plainJobEnvironment = (): Record<string, string> => ({ PATH: JOB_PATH, ...own() });
