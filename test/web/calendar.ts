/** The calendar of a site: what is held there, and the form that holds it. */
import { expect, test } from 'vitest';
import type { Visits } from './browser.js';
import type { Grid } from './service.js';

export function calendarPages(visits: Visits, grid: Grid): void {
  test('operators close a site by dragging over its days, or again and again by a rule', async () => {
    const { key } = await grid.user('olga', 'OPERATOR');
    const { page } = await visits.visit(`${grid.origin}/sites/${grid.north}?tab=calendar`, { key });
    const days = page.locator('.calendar-pick');
    await days.waitFor();
    const box = (await days.boundingBox()) as { x: number; y: number; width: number; height: number };
    const hour = box.width / (14 * 24);
    await page.mouse.move(box.x + 240 * hour, box.y + 5);
    await page.mouse.down();
    await page.mouse.move(box.x + 264 * hour, box.y + 5, { steps: 3 });
    await page.mouse.up();
    const form = page.getByRole('dialog');
    await form.waitFor();
    // A day, as far as the pixels go.
    const hours = Number(await form.getByLabel('Lasts').inputValue());
    expect(Math.abs(hours - 24)).toBeLessThanOrEqual(2);
    await form.getByLabel('Name').fill('dragged');
    await form.getByRole('button', { name: 'Close it' }).click();
    await page.getByRole('row', { name: 'dragged' }).waitFor();

    const edit = page.getByRole('button', { name: 'Edit dragged' });
    await edit.click();
    await form.getByLabel('Machines').fill('nowhere');
    await form.getByText('has no machine nowhere').waitFor();
    await form.getByLabel('Machines').fill('');
    await form.getByLabel('Lasts').fill('36');
    await form.getByLabel('Reason').fill('new disks');
    await form.getByRole('button', { name: 'Change it' }).click();
    await form.waitFor({ state: 'detached' });
    await page.getByRole('row', { name: /dragged Maintenance new disks .* 1 d 12 h/ }).waitFor();
    const { holds } = await grid.ask<{
      holds: { nodes: { id: string; reason: string; wholeSite: boolean }[] };
    }>('query ($site: ID!) { holds(siteId: $site) { nodes { reason wholeSite } } }', { site: grid.north });
    expect(holds.nodes).toEqual([{ reason: 'new disks', wholeSite: true }]);

    await page.getByRole('button', { name: 'Close or reserve' }).press('Enter');
    await form.getByLabel('Lasts').fill('1');
    await form.getByLabel('From').fill('2037-01-01T00:00');
    await form.getByLabel('Name').fill('weekly');
    await form.getByLabel('Again').fill('FREQ=WEEKLY;BYDAY=TU');
    await form.getByRole('button', { name: 'Close it' }).press('Enter');
    await page.getByText('a rule with an occurrence in the next 400 days').waitFor();
    const soon = new Date(Date.now() + 20 * 86_400_000).toISOString().slice(0, 10);
    await form.getByLabel('From').fill(`${soon}T03:00`);
    await form.getByRole('button', { name: 'Close it' }).press('Enter');
    await page.getByRole('row', { name: 'FREQ=WEEKLY;BYDAY=TU' }).waitFor();
    for (const name of ['dragged', 'weekly']) {
      await page.getByRole('button', { name: `Cancel ${name}` }).click();
      await page.getByRole('row', { name }).waitFor({ state: 'detached' });
    }
  });

  test('of a reservation, amounts, users and when it is released can be edited', async () => {
    const { key } = await grid.user('otto', 'OPERATOR');
    await grid.user('carl', 'USER');
    const { page } = await visits.visit(`${grid.origin}/sites/${grid.north}?tab=calendar`, { key });
    const form = page.getByRole('dialog');
    await page.getByRole('button', { name: 'Close or reserve' }).press('Enter');
    await form.getByLabel('What').click();
    await page.getByRole('option', { name: 'Reservation of room for tasks' }).click();
    const soon = new Date(Date.now() + 20 * 86_400_000).toISOString().slice(0, 10);
    await form.getByLabel('From').fill(`${soon}T03:00`);
    await form.getByLabel('Lasts').fill('1');
    await form.getByLabel('Name').fill('course');
    const memory = form.getByLabel('Memory of each');
    await memory.fill('100');
    const resources = form.getByLabel('Other resources of each');
    await resources.fill('tape');
    await form.getByText(/^Other resources: "tape" is not accepted/).waitFor();
    await resources.fill('');
    await grid.ask(
      'mutation ($input: CreateLicenseInput!) { createLicense(input: $input) { license { id } } }',
      { input: { kind: 'seats', copies: 9 } },
    );
    const shared = form.getByLabel('Licenses and shared resources');
    await shared.fill('seats');
    await form.getByText(/^Licenses and shared resources: "seats" is not accepted/).waitFor();
    await shared.fill('seats=2');
    await form.getByRole('button', { name: 'Reserve' }).press('Enter');
    await page.getByRole('row', { name: /course .*, 2 seats/ }).waitFor();
    const edit = page.getByRole('button', { name: 'Edit course' });
    await edit.click();
    expect(await memory.inputValue()).toBe('100');
    await form.getByLabel('Tasks').fill('2');
    await form.getByLabel('CPUs of each').fill('3');
    expect(await shared.inputValue()).toBe('seats=2');
    await shared.fill('seats=5');
    await form.getByLabel('Other users').fill('carl');
    await form.getByLabel('Released after').fill('20');
    await form.getByRole('button', { name: 'Change it' }).click();
    await form.waitFor({ state: 'detached' });
    const { holds } = await grid.ask<{
      holds: {
        nodes: { users: object[]; releaseIdleS: number; machines: { cpus: number; memoryMb: number }[] }[];
      };
    }>(
      'query ($site: ID!) { holds(siteId: $site) { nodes { users { name } releaseIdleS machines { cpus memoryMb } shared { kind amount } } } }',
      { site: grid.north },
    );
    expect(holds.nodes).toMatchObject([
      { users: [{ name: 'carl' }], releaseIdleS: 1200, shared: [{ kind: 'seats', amount: 5 }] },
    ]);
    expect(holds.nodes[0]?.machines.reduce((sum, { cpus }) => sum + cpus, 0)).toBe(6);
    expect(holds.nodes[0]?.machines.reduce((sum, { memoryMb }) => sum + memoryMb, 0)).toBe(200);
    await page.getByRole('button', { name: 'Cancel course' }).click();
    await page.getByRole('row', { name: 'course' }).waitFor({ state: 'detached' });

    // A window that closes these alone leaves the machines to jobs.
    await page.getByRole('button', { name: 'Close or reserve' }).press('Enter');
    await shared.fill('seats=9');
    await form.getByRole('heading', { name: /^Close shared resources at / }).waitFor();
    await form.getByLabel('Name').fill('server');
    await form.getByRole('button', { name: 'Close it' }).press('Enter');
    await page.getByText('seats=9 will be closed.').waitFor();
    await page.getByRole('row', { name: /server Maintenance 9 seats / }).waitFor();
    await page.getByRole('button', { name: 'Cancel server' }).click();
    await page.getByRole('row', { name: 'server' }).waitFor({ state: 'detached' });
  });
}
