// An agent's process without the service: runs what it reads from its input, one JSON assignment a line, and prints reports.
// `node host.mjs STATE_DIR`; needs dist/ (npm run build).
import { createInterface } from 'node:readline';
import { ProcessRunner } from '../../dist/agent/process/runner.js';

const runner = await ProcessRunner.open({ stateDir: process.argv[2] });
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
for await (const line of createInterface({ input: process.stdin })) runner.start(JSON.parse(line));
