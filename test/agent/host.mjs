// An agent's process without the service: does what it reads from its input, one JSON assignment or `{"cancel":RUN,"graceMs":N}` or `{"signal":RUN,"signals":[…]}` a line, and
// prints reports. `node host.mjs STATE_DIR [ISOLATION]`, as JSON; with FIND_DEVICES its runs have those of the host. Needs dist/ (npm run build).
import { createInterface } from 'node:readline';
import { findDevices } from '../../dist/agent/devices.js';
import { findFiles, openInside } from '../../dist/agent/files/find.js';
import { Accounts } from '../../dist/agent/process/accounts.js';
import { Isolation } from '../../dist/agent/process/isolation.js';
import { ProcessRunner } from '../../dist/agent/process/runner.js';

const [stateDir, isolation] = process.argv.slice(2);
const warn = (_, message) => process.stderr.write(`${message}\n`);
const openIsolation = (dir, id) => {
  const { accounts, ...options } = JSON.parse(isolation);
  const environment = { PATH: process.env.PATH };
  return Isolation.open(
    { ...options, accounts: accounts ? new Accounts({ ...accounts, environment, warn }) : null },
    dir,
    id,
  );
};
// Instead of handing outputs over, prints them.
const keep = async (run) => {
  for (const { path } of run.outputs) {
    const { files, problems } = await findFiles(run, path, true);
    if (problems.length > 0) return problems.join('; ');
    for (const file of files) {
      const opened = await openInside(run, file);
      process.stdout.write(`${JSON.stringify({ kept: file, text: await opened.readFile('utf8') })}\n`);
      await opened.close();
    }
  }
  return null;
};
const runner = await ProcessRunner.open({
  ...{ stateDir, warn, keep },
  ...(process.env.FIND_DEVICES && { devices: await findDevices(null, stateDir) }),
  ...(isolation && { isolation: openIsolation }),
});
let printed = 0;
const print = () => {
  for (const report of runner.reports(100_000)) {
    if (report.seq > printed) process.stdout.write(`${JSON.stringify(report)}\n`);
    printed = Math.max(printed, report.seq);
  }
};
runner.onReports = print;
print();
process.stdout.write('{"ready":true}\n');
for await (const line of createInterface({ input: process.stdin })) {
  const { cancel, graceMs, signal, signals, ...run } = JSON.parse(line);
  if (cancel) runner.cancel(cancel, graceMs);
  else if (signal) runner.signal(signal, signals);
  else runner.start(run);
}
