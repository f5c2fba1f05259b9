/** A module, for `--import`, that has the agent of a process measure another host: 8 CPUs, and this operating system. */
export function measuredAs(os: string): string {
  const module = `
import os from 'node:os';
import { syncBuiltinESMExports } from 'node:module';
const { platform } = process;
const { availableParallelism } = os;
const measured = () => /agent\\/measure\\.[jt]s/.test(new Error().stack);
Object.defineProperty(process, 'platform', { get: () => (measured() ? '${os}' : platform) });
os.availableParallelism = () => (measured() ? 8 : availableParallelism());
syncBuiltinESMExports();
`;
  return `data:text/javascript,${encodeURIComponent(module)}`;
}
