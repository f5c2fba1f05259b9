// `npm start`: installs what is missing, builds, and then is the service itself. npm passes TERM and INT on to the process that
// it has started; a shell there would die of them and leave the service running. What npm does not pass on (HUP, KILL) ends npm alone: then this
// process sees that its parent has gone, and ends too.
import { installToStart } from './packages.mjs';

const PARENT_CHECK_MS = 250;

const npm = process.ppid;
const say = (step) => console.error(`${step} …`);
const code = (await installToStart(say)) || (await built());
if (code !== 0) process.exit(code);
const orphaned = () => process.ppid !== npm;
// As a shell tells of a process that HUP has ended.
if (orphaned()) process.exit(128 + 1);
const check = setInterval(() => {
  if (!orphaned()) return;
  clearInterval(check);
  process.kill(process.pid, 'SIGHUP');
}, PARENT_CHECK_MS).unref();

say('starting');
process.argv.splice(2, 0, 'serve');
await import('../dist/cli/main.js');

/** Its imports are among what was installed. */
async function built() {
  const { build } = await import('./build.mjs');
  return build('build', { checked: false, say });
}
