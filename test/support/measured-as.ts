/** A module, for `--import`, that has the agent of a process measure another host: so many CPUs, and this operating system. */
export function measuredAs(os: string, cpus = 8): string {
  const module = `
import os from 'node:os';
import { syncBuiltinESMExports } from 'node:module';
const { platform } = process;
const { availableParallelism } = os;
const measured = () => /agent\\/measure\\.[jt]s/.test(new Error().stack);
Object.defineProperty(process, 'platform', { get: () => (measured() ? '${os}' : platform) });
os.availableParallelism = () => (measured() ? ${cpus} : availableParallelism());
syncBuiltinESMExports();
`;
  return `data:text/javascript,${encodeURIComponent(module)}`;
}
