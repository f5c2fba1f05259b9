/** The graph of a group: drawn, listed, live, and reached by the keyboard. */
import { expect, test } from 'vitest';
import type { ServiceError } from '../../src/client/index.js';
import { until } from '../cli/service.js';
import type { Visits } from './browser.js';
import { type Grid, SIMULATED } from './service.js';

export function graphOfJobs(visits: Visits, grid: Grid): void {
  const need = (ref: string) => [{ of: [{ ref }] }];

  test('shows what each waits for, and changes as jobs do', async () => {
    const groupName = 'drawn';
    const common = { command: 'model', groupName, estimateS: 1, ...SIMULATED };
    const ids = await grid.submit(
      { ...common, ref: 'first', name: 'first', held: true },
      { ...common, ref: 'second', name: 'second', needs: need('first') },
      { ...common, name: 'third', needs: need('second') },
    );
    const { page } = await visits.visit(`${grid.origin}/graph?group=${groupName}`, { key: grid.adminKey });
    await page.locator('canvas[data-laid-out=true]').waitFor();
    await page.locator('.nav-link[aria-current=page]', { hasText: 'Jobs' }).waitFor();
    const row = (name: string) =>
      page.getByRole('region', { name: 'Jobs by level' }).getByRole('row', { name: new RegExp(name) });
    await row('2 second').getByText('Blocked').waitFor();
    expect(await row('2 second').getByRole('cell').nth(4).textContent()).toBe('first');
    await page.locator('.page-about', { hasText: '0 of 3 jobs ended' }).waitFor();
    await grid.ask('mutation ($ids: [ID!]) { releaseJobs(input: { selection: { ids: $ids } }) { jobIds } }', {
      ids: [ids[0]],
    });
    await page.locator('.page-about', { hasText: '3 of 3 jobs ended' }).waitFor();
    await row('3 third').getByText('critical').waitFor();
    await until(
      () => row('Completed critical').count(),
      (marked) => marked === 3,
    );

    const canvas = page.locator('canvas');
    await canvas.focus();
    for (const _ of [1, 2, 3]) await page.keyboard.press('Shift+ArrowRight');
    await page.getByRole('status').filter({ hasText: 'third: completed' }).waitFor();
    await page.keyboard.press('Enter');
    await page.waitForURL(`${grid.origin}/jobs/${ids[2]}`);
  });

  test('runs what failed again', async () => {
    const groupName = 'broken';
    const ids = await grid.submit(
      { command: 'model', groupName, name: 'breaks', estimateS: 1, held: true, ...SIMULATED },
      { command: 'model', groupName, name: 'stays', estimateS: 1, held: true, ...SIMULATED },
    );
    await grid.ask('mutation ($ids: [ID!]) { cancelJobs(input: { selection: { ids: $ids } }) { jobIds } }', {
      ids: [ids[0]],
    });
    const { page } = await visits.visit(`${grid.origin}/graph?group=${groupName}`, { key: grid.adminKey });
    await page.getByRole('button', { name: 'Run failed jobs again' }).click();
    await page.locator('.page-about', { hasText: '2 of 3 jobs ended' }).waitFor();
    await page.getByRole('button', { name: 'Run failed jobs again' }).click();
    await page.getByText('All failed jobs have already been rerun.').waitFor();
    await page.getByRole('link', { name: 'breaks' }).first().click();
    await page.getByText('Run again as').waitFor();
  });

  test('has thousands of jobs', async () => {
    const { submitJobGroup } = await grid.ask<{ submitJobGroup: { jobGroup: { id: string } } }>(
      'mutation ($template: JobInput!) { submitJobGroup(input: { count: 9999, template: $template }) { jobGroup { id } } }',
      { template: { command: 'member', held: true, ...SIMULATED } },
    );
    const { id } = submitJobGroup.jobGroup;
    const { page } = await visits.visit(`${grid.origin}/graph?bulk=${id}`, { key: grid.adminKey });
    await page.locator('canvas[data-laid-out=true]').waitFor();
    await page.locator('.page-about', { hasText: /^0 of 9.999 jobs ended$/ }).waitFor();
    await page.getByRole('button', { name: 'Show 100 more' }).click();
    await page.getByRole('button', { name: 'Larger' }).click();
    // A busy machine may be asked to try again.
    const cancel = 'mutation ($id: ID!) { cancelJobGroup(input: { jobGroupId: $id }) { cancelled } }';
    await expect
      .poll(() =>
        grid.ask(cancel, { id }).then(
          () => null,
          ({ code }: ServiceError) => code,
        ),
      )
      .toBeNull();
    await page.locator('.page-about', { hasText: /^9.999 of 9.999 jobs ended/ }).waitFor();
  });
}
