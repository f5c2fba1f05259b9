/** Devices, other resources, reservations and parts: as they are asked for, and as the pages of sites and machines show them. */
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openSimulatedSite, type SimulatedSite } from '../../src/cli/simulated-site.js';
import { Client } from '../../src/client/index.js';
import { until } from '../cli/service.js';
import type { Visits } from './browser.js';
import { type Grid, SIMULATED } from './service.js';

export function devicesShown(visits: Visits, grid: Grid): void {
  let cards: SimulatedSite;
  beforeAll(async () => {
    const card = (id: string, link: string) => ({ id, model: 'a100', memoryMb: 40_000, link });
    cards = await openSimulatedSite(
      new Client({ url: grid.service.url, key: grid.adminKey }),
      'cards',
      () => [
        {
          ...{ name: 'card-1', cpus: 8, memoryMb: 32_000, benchmark: 100, ...SIMULATED },
          devices: [
            card('gpu0', 'left'),
            card('gpu1', 'left'),
            { id: 'gpu2', model: 'a100', memoryMb: 40_000 },
          ],
        },
      ],
      { speed: 1 },
    );
  });
  afterAll(async () => cards?.close());

  const go = (path: string) => visits.visit(grid.origin + path, { key: grid.adminKey });
  const cancel = (id: string) =>
    grid.ask('mutation ($ids: [ID!]!) { cancelJobs(input: { selection: { ids: $ids } }) { jobIds } }', {
      ids: [id],
    });
  /** Submits what the form says, and gives the job's id. */
  const submitted = async (page: Page): Promise<string> => {
    await page.getByRole('button', { name: 'Submit the job' }).click();
    await page.waitForURL(/\/jobs\/job_/);
    return page.url().split('/').at(-1) as string;
  };

  test('devices are asked for by kind, number, model and memory; pages of the machine’s site show whose they are', async () => {
    const { page } = await go('/submit');
    await page.getByLabel('Command', { exact: true }).fill('train');
    await page.getByText('Advanced placement').click();
    await page.getByLabel('Least memory of a device').waitFor({ state: 'detached' });
    await page.getByLabel('Kind of devices').fill('gpu');
    await page.getByLabel('Devices per task').fill('2');
    await page.getByLabel('Model').fill('a100');
    await page.getByLabel('Least memory of a device').fill('40G');
    const others = page.getByLabel('Other resources per task');
    await others.fill('gpu=1');
    await page.getByRole('button', { name: 'Submit the job' }).click();
    await page.getByText('Each kind of resource once.').first().waitFor();
    await others.fill('');
    await page.getByLabel('Operating system').fill(SIMULATED.os);
    const id = await submitted(page);
    interface Told {
      job: {
        state: string;
        machineConstraint: string;
        resourcesPerTask: object[];
        runs: { allocations: { devices: string[] }[] }[];
      };
    }
    const { job } = await until(
      () =>
        grid.ask<Told>(
          'query ($id: ID!) { job(id: $id) { state machineConstraint resourcesPerTask { kind amount } runs { allocations { devices } } } }',
          { id },
        ),
      ({ job: { state } }) => state === 'RUNNING',
    );
    expect(job).toMatchObject({
      machineConstraint: 'gpu = "a100" and gpu.memory-mb >= 40000',
      resourcesPerTask: [{ kind: 'gpu', amount: 2 }],
      // Those that are joined.
      runs: [{ allocations: [{ devices: ['gpu0', 'gpu1'] }] }],
    });
    await page.getByText('card-1: gpu0, gpu1').first().waitFor();

    await page.goto(`${grid.origin}/sites/${cards.id}?tab=machines`);
    const row = page.getByRole('row', { name: /card-1/ });
    await row.getByText('2 of 3 gpu in use').waitFor();
    await row.getByText('3 devices').click();
    await row.getByText('gpu0: gpu a100, 40 GB, left, in use').waitFor();
    await row.getByText('gpu2: gpu a100, 40 GB, idle').waitFor();
    await cancel(id);
    await row.getByText('gpu0: gpu a100, 40 GB, left, idle').waitFor();

    // What it had counts by kind as CPUs do: in the curve, and in the sum.
    await page.goto(`${grid.origin}/usage`);
    await page.getByRole('img', { name: 'gpu in use over time' }).locator('canvas').waitFor();
    await page.getByRole('radio', { name: 'Sites' }).click();
    await page
      .getByRole('row', { name: /^cards/ })
      .getByText('gpu')
      .waitFor();
    const { resourceHistory: points } = await grid.ask<{ resourceHistory: { inUse: number }[] }>(
      'query ($site: ID!, $from: DateTime!) { resourceHistory(kind: "gpu", siteId: $site, from: $from) { inUse } }',
      { site: cards.id, from: new Date(Date.now() - 3_600_000).toISOString() },
    );
    expect(Math.max(...points.map(({ inUse }) => inUse))).toBeGreaterThan(0);
  });

  test('devices are asked for by what they are, and changed while the job waits', async () => {
    const { page } = await go('/submit');
    await page.getByLabel('Command', { exact: true }).fill('train');
    await page.getByText('Advanced placement').click();
    const asked = page.getByLabel('Devices by what they are');
    await asked.fill('gpu:a100:two=2');
    await page.getByRole('button', { name: 'Submit the job' }).click();
    await page
      .getByText(/^Accepted: a kind, then a model, a number, mem= and share=/)
      .first()
      .waitFor();
    await asked.fill('gpu:a100:2:mem=40G, gpu');
    await page.getByText('Name, data, environment and more').click();
    await page.getByText('Hold it until released').click();
    const id = await submitted(page);
    const requests = async (): Promise<object[]> =>
      (
        await grid.ask<{ job: { devicesPerTask: object[] } }>(
          'query ($id: ID!) { job(id: $id) { devicesPerTask { kind count model minMemoryMb } } }',
          { id },
        )
      ).job.devicesPerTask;
    expect(await requests()).toEqual([
      { kind: 'gpu', count: 2, model: 'a100', minMemoryMb: 40_000 },
      { kind: 'gpu', count: 1, model: null, minMemoryMb: null },
    ]);
    await page.getByRole('button', { name: 'Edit' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByText('Advanced placement').click();
    const written = dialog.getByLabel('Devices by what they are');
    expect(await written.inputValue()).toBe('gpu:a100:2:mem=40000, gpu:1');
    // More than there are.
    await written.fill('gpu:4');
    await dialog.getByRole('button', { name: 'Change it' }).click();
    await dialog
      .getByText(/4 gpu can never run/)
      .first()
      .waitFor();
    await written.fill('gpu:3');
    await dialog.getByRole('button', { name: 'Change it' }).click();
    await dialog.waitFor({ state: 'detached' });
    expect(await requests()).toEqual([{ kind: 'gpu', count: 3, model: null, minMemoryMb: null }]);
    await cancel(id);
  });

  test('parts are written a line each, and a reservation is chosen of those that one may use', async () => {
    const from = new Date(Date.now() + 3_600_000).toISOString();
    const to = new Date(Date.now() + 3 * 3_600_000).toISOString();
    const stranger = await grid.user('stranger', 'USER');
    const { site } = await grid.ask<{ site: { machines: { id: string }[] } }>(
      'query ($id: ID!) { site: node(id: $id) { ... on Site { machines { id } } } }',
      { id: cards.id },
    );
    const machines = site.machines.map(({ id }) => id);
    await grid.ask('mutation ($input: CreateHoldInput!) { createHold(input: $input) { hold { id } } }', {
      input: {
        site: cards.id,
        name: 'for-training',
        from,
        to,
        kind: 'USER',
        machines,
      },
    });
    const other = await visits.visit(`${grid.origin}/submit`, { key: stranger.key });
    await other.page.getByText('Advanced placement').click();
    await other.page.getByRole('button', { name: 'Reservation' }).click();
    expect(await other.page.getByRole('option').allTextContents()).toEqual(['none']);

    const { page } = await go('/submit');
    await page.getByLabel('Command', { exact: true }).fill('parted');
    await page.getByLabel('Stop it after').fill('1h');
    await page.getByText('Advanced placement').click();
    await page.getByRole('button', { name: 'Reservation' }).click();
    await page.getByRole('option', { name: /^for-training/ }).click();
    const parts = page.getByLabel('Parts', { exact: true });
    await parts.fill('tasks=2,cpus=2,gpus=1\ncpus=three');
    await page.getByRole('button', { name: 'Submit the job' }).click();
    await page
      .getByText(/^Accepted: /)
      .first()
      .waitFor();
    await parts.fill('tasks=2,cpus=2,gpus=1\nmem=2G,constraint=gpu');
    await page.getByLabel('CPUs per task').fill('4');
    await page.getByRole('button', { name: 'Submit the job' }).click();
    await page.getByText('Each part has its own: leave it as it was.').first().waitFor();
    await page.getByLabel('CPUs per task').fill('1');
    const id = await submitted(page);
    const { job } = await grid.ask<{ job: object }>(
      'query ($id: ID!) { job(id: $id) { tasks reservation { name } parts { tasks cpusPerTask memoryMbPerTask resourcesPerTask { kind amount } machineConstraint } } }',
      { id },
    );
    expect(job).toEqual({
      ...{ tasks: 3, reservation: { name: 'for-training' } },
      parts: [
        {
          ...{ tasks: 2, cpusPerTask: 2, memoryMbPerTask: 0, machineConstraint: null },
          resourcesPerTask: [{ kind: 'gpu', amount: 1 }],
        },
        { tasks: 1, cpusPerTask: 1, memoryMbPerTask: 2000, machineConstraint: 'gpu', resourcesPerTask: [] },
      ],
    });
    await cancel(id);
  });
}
