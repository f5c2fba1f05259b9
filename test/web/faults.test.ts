/** The service dies while somebody looks. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { endAll, serve } from '../cli/service.js';
import { freePort } from '../support/ports.js';
import { describeWithChromium, live } from './browser.js';

describeWithChromium('a service that is killed and comes back', (visits) => {
  const home = mkdtempSync(join(tmpdir(), 'switchyard-web-'));
  afterAll(async () => {
    await endAll();
    rmSync(home, { recursive: true, force: true });
  });

  test('is missed and found again by the pages that are open, and nothing is left out', async () => {
    // The job ends when it is told to, however slowly everything goes.
    const go = join(home, 'go');
    const port = String(await freePort());
    const first = await serve(home, [], port);
    const { origin } = new URL(first.url);
    const key = readFileSync(join(home, 'admin.key'), 'utf8').trim();
    const submitted = await first.json<{ id: string }[]>(
      'submit',
      '--',
      'sh',
      '-c',
      `while [ ! -e '${go}' ]; do sleep 0.1; done; echo survived`,
    );
    const { page } = await visits.visit(`${origin}/jobs/${submitted[0]!.id}`, { key });
    await page.getByRole('heading', { level: 1, name: /Running$/ }).waitFor();
    const other = await visits.visit(`${origin}/jobs`, { key });
    await other.page.getByText('1 job', { exact: true }).waitFor();
    await live(page);
    await live(other.page);

    await first.process.end('SIGKILL');
    const lost = 'Connection lost. Trying again; updates will continue from where they stopped.';
    await page.getByText(lost).waitFor();
    await other.page.getByText(lost).waitFor();
    // What was shown stays.
    expect(await page.getByRole('heading', { level: 1 }).textContent()).toContain('Running');

    writeFileSync(go, '');
    // It is told for a moment only, perhaps before the service says that it is ready.
    const again = page.getByText('Connected again. Updates continue from where they stopped.').waitFor();
    const second = await serve(home, [], port);
    expect(new URL(second.url).origin).toBe(origin);
    await again;
    await page.getByRole('heading', { level: 1, name: /Completed$/ }).waitFor();
    await page.getByText('survived').first().waitFor();
    await other.page.getByRole('row', { name: /Completed/ }).waitFor();
    await second.json('submit', '--', 'true');
    await other.page.getByText('2 jobs', { exact: true }).waitFor();
  });
});
