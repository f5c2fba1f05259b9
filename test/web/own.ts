/** What users, who see their own jobs only, are offered and what is kept from them. */
import { expect, test } from 'vitest';
import { Client } from '../../src/client/index.js';
import type { Visits } from './browser.js';
import type { Grid } from './service.js';

export function ownPages(visits: Visits, grid: Grid): void {
  test('users who have jobs meet these first, and no page that is not theirs', async () => {
    const { key } = await grid.user('ursula', 'USER');
    await new Client({ url: grid.service.url, key }).request(
      'mutation { submitJobs(input: { jobs: [{ command: "true", name: "hers" }] }) { jobIds } }',
      {},
    );
    const { page } = await visits.visit(grid.origin, { key });
    await page.getByRole('heading', { level: 1, name: 'My jobs' }).waitFor();
    expect(new URL(page.url()).pathname).toBe('/jobs');
    await expect.poll(() => page.title()).toBe('My jobs · Switchyard');
    await page.getByRole('row', { name: 'hers' }).waitFor();

    const pages = page.getByRole('navigation', { name: 'Pages' }).getByRole('link');
    const offered = await pages.allTextContents();
    expect(offered[0]).toBe('My jobs');
    for (const name of ['Audit log', 'Simulator']) expect(offered).not.toContain(name);

    // What is asked for is shown.
    await pages.getByText('Overview').click();
    await page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor();
    await page.getByRole('heading', { name: 'Ended each minute' }).waitFor();

    for (const [path, name, whose] of [
      ['/audit', 'Audit log', 'administrators'],
      ['/simulator', 'Simulator', 'operators and administrators'],
      ['/simulator/simulation_1', 'Simulator', 'operators and administrators'],
    ]) {
      await page.goto(grid.origin + path);
      await page.getByRole('heading', { level: 1, name: name! }).waitFor();
      await page.getByText(`This page is for ${whose}`).waitFor();
      expect(await page.getByRole('button', { name: 'Try again' }).count()).toBe(0);
    }
    // While the next page loads, the one that is not theirs asks for nothing either.
    await page.route('**/*.js', async (route) => {
      await new Promise((resolve) => setTimeout(resolve, 500));
      await route.fallback();
    });
    await page.getByRole('link', { name: 'To your jobs' }).click();
    await page.getByRole('heading', { level: 1, name: 'My jobs' }).waitFor();
  });
}
