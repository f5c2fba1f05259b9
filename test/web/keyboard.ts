/** The ten most common acts, by keys alone. */
import type { Locator, Page } from 'playwright-core';
import { expect, test } from 'vitest';
import type { Visits } from './browser.js';
import { type Grid, SIMULATED } from './service.js';

/** Presses of Tab after which somebody would give up. */
const TABS_MAX = 60;

export function byKeyboard(visits: Visits, grid: Grid): void {
  test('signs in, goes anywhere, submits, reads, opens, selects, holds, releases, cancels and signs out', async () => {
    const asked = { command: 'typed', cpusPerTask: 8, estimateS: 900, application: 'typed', ...SIMULATED };
    const jobs = await grid.submit(...Array.from({ length: 8 }, () => asked));
    const { page } = await visits.visit(`${grid.origin}/`);
    const press = (key: string) => page.keyboard.press(key);
    const type = (text: string) => page.keyboard.type(text);
    const button = (name: string | RegExp) => page.getByRole('button', { name, exact: true });
    const titled = (name: string | RegExp) => page.getByRole('heading', { level: 1, name }).waitFor();
    const goTo = async (name: string, title: string | RegExp) => {
      await press('/');
      await page.getByRole('dialog', { name: 'Go to' }).waitFor();
      await type(name);
      // The first of what is found is chosen.
      await page
        .getByRole('menuitem', { name: new RegExp(`^${name}`, 'i') })
        .first()
        .waitFor();
      await press('Enter');
      await titled(title);
    };

    // 1: sign in.
    await reach(page, page.getByLabel('API key'));
    await type(grid.adminKey);
    await press('Enter');
    await titled('Overview');
    // 2: go somewhere by its name; 3: submit a job.
    await goTo('submit a job', /Submit/);
    await reach(page, page.getByLabel('Command', { exact: true }));
    await type('echo typed');
    await reach(page, button('Submit the job'));
    await press('Enter');
    // 4: read its output.
    await titled(/^Job \d+/);
    await page.getByText('typed', { exact: true }).first().waitFor();
    // 5: list jobs, and narrow the list.
    await goTo('jobs', 'Jobs');
    await reach(page, page.getByRole('radiogroup', { name: 'States' }));
    const waiting = page.getByRole('radio', { name: 'Waiting', exact: true });
    for (let i = 0; i < 10 && !(await isIn(waiting)); i++) await press('ArrowRight');
    await press(' ');
    await expect.poll(() => page.url()).toContain('states=');
    // 6: select some, hold them, and 7: release them.
    const act = async (name: string, confirm: RegExp) => {
      await reach(page, button(name));
      await press('Enter');
      await page.getByRole('dialog').waitFor();
      await reach(page, page.getByRole('dialog').getByRole('button', { name: confirm }));
      await press('Enter');
      await page.getByRole('dialog').waitFor({ state: 'detached' });
    };
    const select = async () => {
      await reach(page, page.getByRole('grid', { name: 'Jobs' }));
      await press('Home');
      await press(' ');
      await press('ArrowDown');
      await press(' ');
      await page.getByText('2 jobs selected').waitFor();
    };
    const held = async () => {
      const { jobs: found } = await grid.ask<{ jobs: { nodes: { id: string }[] } }>(
        '{ jobs(first: 10, filter: { states: [HELD], application: "typed" }) { nodes { id } } }',
      );
      return found.nodes.length;
    };
    await page.getByRole('row').nth(2).waitFor();
    await select();
    await act('Hold…', /^Hold 2 jobs$/);
    expect(await held()).toBe(2);
    await page.goto(`${grid.origin}/jobs?states=HELD&application=typed`);
    await page.getByRole('row').nth(2).waitFor();
    await select();
    await act('Release…', /^Release 2 jobs$/);
    expect(await held()).toBe(0);
    // 8: open a job of the list, and 9: cancel it.
    await page.goto(`${grid.origin}/jobs?application=typed&order=oldest`);
    await page.getByRole('row').nth(2).waitFor();
    await reach(page, page.getByRole('grid', { name: 'Jobs' }));
    await press('Enter');
    await expect.poll(() => new URL(page.url()).pathname).toBe(`/jobs/${jobs[0]}`);
    await act('Cancel', /^Cancel 1 job$/);
    await page
      .getByText(/Cancel(l)?(ing|ed|led)/)
      .first()
      .waitFor();
    // 10: sign out.
    await reach(page, button(/Signed in as admin/));
    await press('Enter');
    await page.getByRole('menuitem', { name: 'Sign out' }).waitFor();
    for (let i = 0; i < TABS_MAX && !(await isIn(page.getByRole('menuitem', { name: 'Sign out' }))); i++)
      await press('ArrowDown');
    await press('Enter');
    await page.getByLabel('API key').waitFor();
    await grid.ask('mutation ($ids: [ID!]!) { cancelJobs(input: { selection: { ids: $ids } }) { jobIds } }', {
      ids: jobs,
    });
  });
}

const isIn = async (wanted: Locator): Promise<boolean> => {
  const first = wanted.first();
  const focused = first.and(first.page().locator(':focus'));
  return (await focused.or(first.locator(':focus')).count()) > 0;
};

/** By Tab, as far as it goes; on the way, what has the focus can be seen. */
async function reach(page: Page, wanted: Locator): Promise<void> {
  await wanted.first().waitFor();
  for (let i = 0; i < TABS_MAX; i++) {
    if (await isIn(wanted)) return;
    await page.keyboard.press('Tab');
  }
  throw new Error(`${wanted} cannot be reached by Tab`);
}
