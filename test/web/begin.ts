/** The first page of a service that has had no job: each step is done there. */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { expect, onTestFinished, test } from 'vitest';
import { launch } from '../cli/service.js';
import type { Visits } from './browser.js';
import type { Grid } from './service.js';

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** Before any job is submitted. What it adds to the grid is gone at its end. */
export function firstPage(visits: Visits, grid: Grid): void {
  test('says what this is; a sample runs, a site is added and a user invited in place', async () => {
    const { page } = await visits.visit(grid.origin, { key: grid.adminKey });
    const steps = page.getByRole('region', { name: 'First steps' });
    await steps.getByRole('heading', { name: 'Welcome to Switchyard' }).waitFor();
    await page.evaluate(axe);
    const findings = await page.evaluate(
      `axe.run('.begin', { resultTypes: ['violations'] }).then(({ violations }) => violations.map(({ id, nodes }) => id + ' ' + nodes[0].html))`,
    );
    expect(findings).toEqual([]);

    await steps.getByRole('button', { name: 'Submit it' }).click();
    await steps.getByText('Completed').waitFor();
    await steps.getByText(/^hello from /).waitFor();

    await steps.getByLabel('Name of the site').fill('jura');
    await page.keyboard.press('Enter');
    const line = (await steps.getByText('npx switchyard agent --site jura').textContent()) ?? '';
    await steps.getByText('Waiting for its first agent…').waitFor();
    const [, url = '', key = ''] = /^SWITCHYARD_URL=(\S+) SWITCHYARD_KEY=(\S+) /.exec(line) ?? [];
    const agent = launch(['agent', '--site', 'jura'], {
      SWITCHYARD_URL: url,
      SWITCHYARD_KEY: key,
      SWITCHYARD_HOME: `${grid.home}/jura`,
    });
    onTestFinished(async () => {
      await agent.end();
      const { sites } = await grid.ask<{ sites: { nodes: { id: string; name: string }[] } }>(
        '{ sites { nodes { id name } } }',
      );
      const site = sites.nodes.find(({ name }) => name === 'jura')!.id;
      await grid.ask('mutation ($site: ID!) { drainSite(input: { siteId: $site }) { site { id } } }', {
        site,
      });
      await grid.ask('mutation ($site: ID!) { removeSite(input: { siteId: $site }) { site { id } } }', {
        site,
      });
    });
    await steps.getByText('Its agent is here, with 1 machine.').waitFor();

    // A site of that name is there by now: what goes wrong is said, and can be mended.
    await steps.getByLabel('Name of the user').fill('admin');
    await steps.getByRole('button', { name: 'Invite' }).click();
    await page.getByText('there is already a user named admin').waitFor();
    await steps.getByLabel('Name of the user').fill('ada-first');
    await steps.getByRole('button', { name: 'Invite' }).click();
    const link = (await steps.getByText('/#invitation=').textContent()) ?? '';

    const { page: other } = await visits.visit(link);
    await other.getByLabel('New password').fill('seven quiet harbors');
    await other.keyboard.press('Enter');
    await other.getByRole('button', { name: /Signed in as ada-first/ }).waitFor();
    // She has no job either, and may submit one; the rest is not hers to do.
    const own = other.getByRole('region', { name: 'First steps' });
    await own.getByRole('button', { name: 'Submit it' }).waitFor();
    expect(await own.getByRole('heading').allTextContents()).toEqual([
      'Welcome to Switchyard',
      'Submit a sample',
    ]);

    // Whoever comes back finds their jobs in its place.
    await page.bringToFront();
    const answered = page.waitForResponse(
      (answer) => answer.request().postData()?.includes('AnyJob') === true,
    );
    await page.reload();
    await answered;
    await page.getByRole('heading', { name: 'Ended each minute' }).waitFor();
    expect(await steps.count()).toBe(0);
  });
}
