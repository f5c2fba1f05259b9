import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { endAll, serve, until } from './service.js';

const home = mkdtempSync(join(tmpdir(), 'switchyard-demo-'));
afterAll(async () => {
  await endAll();
  rmSync(home, { recursive: true, force: true });
});

it('serve --demo has the paper’s four sites, and jobs that end', async () => {
  const service = await serve(home, ['--demo', '--demo-speed', '2000']);
  const machines =
    await service.json<{ site: { name: string }; cpus: number; benchmark: number }[]>('machines');
  const bySite = new Map<string, number>();
  for (const { site } of machines) bySite.set(site.name, (bySite.get(site.name) ?? 0) + 1);
  expect(Object.fromEntries(bySite)).toEqual({
    'cluster-1': 120,
    'cluster-2': 60,
    'cluster-3': 30,
    'cluster-4': 15,
    local: 1,
  });
  for (const { site, cpus, benchmark } of machines.filter((machine) => machine.site.name !== 'local')) {
    expect(cpus, site.name).toBeGreaterThanOrEqual(4);
    expect(cpus).toBeLessThanOrEqual(32);
    expect(benchmark).toBeGreaterThanOrEqual(100);
    expect(benchmark).toBeLessThanOrEqual(500);
  }
  // Of three users; whose end first is the policy's choice.
  const jobsOf = (...which: string[]) =>
    service.json<{ os: string }[]>('jobs', '--group', 'demo', '--first', '1', ...which);
  for (const which of [
    ...['gold', 'silver', 'regular'].map((name) => ['--user', `demo-${name}`]),
    ['--state', 'COMPLETED'],
  ]) {
    const jobs = await until(
      () => jobsOf(...which),
      ({ length }) => length > 0,
    );
    expect(jobs[0]!.os).toBe('simulated');
  }
  const { code, stderr } = await service.process.end('SIGINT');
  expect(code, stderr).toBe(0);
});
