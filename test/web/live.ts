/** What the pages show of what happens, while it happens. */
import type { Page } from 'playwright-core';
import { afterEach, beforeAll, expect, onTestFinished, test } from 'vitest';
import { Client } from '../../src/client/index.js';
import { until } from '../cli/service.js';
import { live, type Visits } from './browser.js';
import { type Grid, SIMULATED } from './service.js';

export function shownLive(visits: Visits, grid: Grid): void {
  const go = (path: string) => visits.visit(grid.origin + path, { key: grid.adminKey });
  const cancel = (ids: readonly string[]) =>
    grid.ask('mutation ($ids: [ID!]!) { cancelJobs(input: { selection: { ids: $ids } }) { jobIds } }', {
      ids,
    });
  /** A job that takes a whole machine of the simulated site, and does not end. */
  const long = { command: 'long', cpusPerTask: 8, estimateS: 600, ...SIMULATED };
  const seen = {
    command: 'seen',
    application: 'seen',
    estimateS: 2,
    simulatedRunS: 2,
    simulatedIoS: 0.5,
    ...SIMULATED,
  };

  const cancelAll = () =>
    grid.ask(
      'mutation { cancelJobs(input: { selection: { filter: { states: [QUEUED, DISPATCHED, ASSIGNED, RUNNING] } } }) { jobIds } }',
    );

  beforeAll(async () => {
    await cancelAll();
    await grid.submit(seen, seen);
    await until(
      () =>
        grid.ask<{ jobCount: number }>('{ jobCount(filter: { application: "seen", states: [COMPLETED] }) }'),
      ({ jobCount }) => jobCount === 2,
    );
  });

  afterEach(cancelAll);

  test('how many run, wait and fail on the overview, as it changes', async () => {
    await grid.ask('mutation { createLicense(input: { kind: "told", copies: 1 }) { license { id } } }');
    const { page } = await go('/');
    await live(page);
    const shows = (label: string, value: string) =>
      expect
        .poll(() =>
          page
            .locator('.figure', { has: page.getByText(label, { exact: true }) })
            .locator('.figure-value')
            .textContent(),
        )
        .toBe(value);
    await shows('Running', '0');
    const { jobCount: failed } = await grid.ask<{ jobCount: number }>(
      '{ jobCount(filter: { states: [FAILED] }) }',
    );
    await shows('Failed in the last hour', String(failed));
    const jobs = await grid.submit(...Array.from({ length: 6 }, () => long));
    await shows('Running', '4');
    await shows('Waiting', '2');
    await page.getByRole('img', { name: 'of all CPUs in use' }).waitFor();
    const oldest = page.getByRole('link', { name: /^Oldest wait/ });
    await oldest.getByText(`Job ${jobs[4]!.replace('job_', '')}`).waitFor();
    // The site on the map, as a card, and what has changed.
    await page
      .getByRole('group', { name: 'Map of the sites' })
      .getByRole('link', { name: /^north 100\s%.* 2 queued, 4 running, 32 of 32 CPUs in use$/ })
      .waitFor();
    const card = page.locator('.site-card', { hasText: 'north' });
    await card.getByRole('img', { name: '32 of 32 CPUs in use' }).waitFor();
    await card.getByText('4/4').waitFor();
    await page.locator('.changes').getByText('License told registered').waitFor();
    await grid.submit({ command: 'sh', arguments: ['-c', 'exit 3'], os: process.platform });
    await shows('Failed in the last hour', String(failed + 1));
    await page.getByRole('img', { name: /^Nonzero exit code: \d+ jobs?$/ }).waitFor();
    await cancel(jobs);
    await shows('Running', '0');
    await shows('Waiting', '0');
  });

  /** How many pixels of the schedule have the color of this token; bars let more or less of what is behind them through. */
  const painted = (page: Page, token: string) =>
    page.evaluate(`(() => {
      const probe = document.createElement('i');
      probe.style.color = 'var(${token})';
      document.body.append(probe);
      const one = document.createElement('canvas').getContext('2d');
      one.fillStyle = getComputedStyle(probe).color;
      one.fillRect(0, 0, 1, 1);
      const wanted = one.getImageData(0, 0, 1, 1).data;
      probe.remove();
      const canvas = document.querySelector('.gantt-frame canvas');
      const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
      let n = 0;
      for (let i = 0; i < data.length; i += 4) if (data[i + 3] > 100 && [0, 1, 2].every((c) => Math.abs(data[i + c] - wanted[c]) < 4)) n++;
      return n;
    })()`) as Promise<number>;

  test('a bar in the schedule of a site where a run is', async () => {
    const { page } = await go(`/sites/${grid.north}`);
    await page.getByRole('img', { name: /Schedule of 4 machines/ }).waitFor();
    await live(page);
    await expect.poll(() => painted(page, '--running')).toBe(0);
    const jobs = await grid.submit(long);
    await expect.poll(() => painted(page, '--running')).toBeGreaterThan(10);

    // The strip selects a part of the whole: here one before anything ran.
    const hour = page.getByRole('radio', { name: '1 h', exact: true });
    const strip = (await page.locator('.gantt-strip').boundingBox())!;
    const y = strip.y + strip.height / 2;
    await page.mouse.move(strip.x + 0.3 * strip.width, y);
    await page.mouse.down();
    await page.mouse.move(strip.x + 0.4 * strip.width, y, { steps: 3 });
    await page.mouse.up();
    await expect.poll(() => hour.isChecked()).toBe(false);
    await expect.poll(() => painted(page, '--running')).toBe(0);
    await page.getByRole('button', { name: 'Now', exact: true }).click();
    await expect.poll(() => painted(page, '--running')).toBeGreaterThan(10);
    await hour.click({ force: true });
    await page.getByRole('img', { name: /Schedule of 4 machines/ }).focus();
    await page.keyboard.press('-');
    await expect.poll(() => hour.isChecked()).toBe(false);
    // From bar to bar, without a pointer.
    await page.keyboard.press('Shift+ArrowRight');
    await page.getByRole('status').getByText('CPU').waitFor();
    await page.keyboard.press('Enter');
    await page.waitForURL(/\/jobs\/job_/);
    await page.goBack();
    await page.getByRole('img', { name: /Schedule of 4 machines/ }).waitFor();

    await cancel(jobs);
    await expect.poll(() => painted(page, '--running')).toBe(0);
  });

  test('a run that was stopped for another job, on the way of its job and in the schedule of its site', async () => {
    // Young runs are left alone: what is drawn of one that is stopped is wide enough to be seen.
    await grid.decideBy({ preemption: { graceS: 1, exemptS: 15, cancelBelow: 0 } });
    const ids = await grid.submit(...Array.from({ length: 4 }, () => long));
    const running = (jobs: readonly string[]) =>
      until(
        () =>
          grid.ask<{ jobs: { nodes: { state: string }[] } }>(
            'query ($ids: [ID!]) { jobs(filter: { ids: $ids }) { nodes { state } } }',
            { ids: jobs },
          ),
        ({ jobs: { nodes } }) => nodes.every(({ state }) => state === 'RUNNING'),
      );
    await running(ids);
    const [urgent] = await grid.submit({ ...long, preemptionClass: 5, estimateS: 300 });
    await running([urgent as string]);
    interface Runs {
      jobs: { nodes: { id: string; runs: { cause: string | null }[] }[] };
    }
    const { jobs } = await until(
      () =>
        grid.ask<Runs>(
          'query ($ids: [ID!]) { jobs(filter: { ids: $ids }) { nodes { id runs { cause } } } }',
          { ids },
        ),
      ({ jobs: { nodes } }) => nodes.some(({ runs }) => runs[0]?.cause === 'PREEMPTED'),
    );
    const stopped = jobs.nodes.find(({ runs }) => runs[0]?.cause === 'PREEMPTED')?.id as string;
    const { page } = await go(`/jobs/${stopped}`);
    const steps = page.locator('.timeline li');
    await steps
      .filter({ hasText: 'Preempted, run 1' })
      .getByText('Stopped for a job of a higher class')
      .waitFor();
    const labels = () => steps.locator('.strong').allTextContents();
    const ran = [
      ...['Submitted', 'Sent to a site', 'Assigned', 'Running, run 1', 'Preempted, run 1', 'Sent again'],
      'Assigned',
    ];
    await expect.poll(labels).toEqual([...ran, 'Running', 'Ended']);
    await grid.ask('mutation ($ids: [ID!]!) { cancelJobs(input: { selection: { ids: $ids } }) { jobIds } }', {
      ids: [urgent],
    });
    await expect.poll(labels).toEqual([...ran, 'Running, run 2', 'Ended']);
    expect(await page.locator('.timeline .bar .preempted').count()).toBe(1);
    await page.goto(`${grid.origin}/sites/${grid.north}`);
    await page.locator('.gantt-tools').getByText('Preempted', { exact: true }).waitFor();
    await page.getByRole('radio', { name: '15 min' }).click({ force: true });
    await expect.poll(() => painted(page, '--series-3')).toBeGreaterThan(2);
  });

  test('when each queued job will start, where the site has promised it', async () => {
    const local = (kind: string | null) =>
      grid.ask('mutation ($input: UpdateSiteInput!) { updateSite(input: $input) { site { id } } }', {
        input: { site: grid.north, localPolicy: kind && { kind } },
      });
    await local('conservative');
    const { page } = await go(`/sites/${grid.north}`);
    await page.getByRole('img', { name: /Schedule of 4 machines/ }).waitFor();
    expect(await painted(page, '--series-1')).toBe(0);
    await grid.submit(...Array.from({ length: 6 }, () => long));
    await page.locator('.gantt-tools').getByText('Promised').waitFor();
    // By the strip's end: what is promised lies beyond the hour that is shown first.
    await page.getByRole('radio', { name: '6 h' }).click();
    await expect.poll(() => painted(page, '--series-1')).toBeGreaterThan(10);
    await local(null);
  });

  test('who holds how many jobs in the tree, and what flows', async () => {
    const { page } = await go('/tree');
    await live(page);
    const leaf = page.locator('.tree-leaves .tree-node', {
      has: page.getByRole('link', { name: 'north' }),
    });
    const runs = (n: string) =>
      expect
        .poll(() =>
          leaf
            .locator('dl > div', { has: page.getByText('Running', { exact: true }) })
            .locator('dd')
            .textContent(),
        )
        .toBe(n);
    await runs('0');
    const jobs = await grid.submit(...Array.from({ length: 5 }, () => long));
    await runs('4');
    await leaf.getByRole('img', { name: '32 of 32 CPUs in use' }).waitFor();
    await leaf.getByRole('note', { name: /^[1-9]\d* jobs sent there in the last minute/ }).waitFor();
    await cancel(jobs);
    await runs('0');
  });

  test('a quota as it is used, and whose jobs come first', async () => {
    const { id, key } = await grid.user('quota-user', 'USER');
    await grid.ask('mutation ($input: UpdateQuotaInput!) { updateQuota(input: $input) { user { id } } }', {
      input: { user: id, submissionLimit: 9, submissionPeriodS: 3600, reason: 'a quota' },
    });
    await grid.decideBy({ dispatch: { kind: 'diana', queueLimit: 1 } });
    const { page } = await go('/users');
    await page.getByText('No jobs wait in a meta-queue').waitFor();
    const { submitJobs } = await new Client({ url: grid.service.url, key }).request<{
      submitJobs: { jobIds: string[] };
    }>('mutation ($jobs: [JobInput!]!) { submitJobs(input: { jobs: $jobs }) { jobIds } }', {
      jobs: Array.from({ length: 7 }, () => long),
    });
    await page
      .getByRole('region', { name: 'Standings' })
      .getByRole('row', { name: /quota-user/ })
      .getByRole('img', { name: /^Priority/ })
      .waitFor();
    await page.getByRole('img', { name: /^7 of 9 jobs within/ }).waitFor();
    await cancel(submitJobs.jobIds);
  });

  test('a job ratio that grows with each run', async () => {
    const { page } = await go('/ratios?application=seen');
    await page.getByRole('img', { name: /Fraction of run time spent computing by seen/ }).waitFor();
    await live(page);
    const rows = page.getByRole('region', { name: 'Runs' }).locator('tbody tr');
    await expect.poll(() => rows.count()).toBe(2);
    const picture = () =>
      page.evaluate(`document.querySelector('.chart canvas').toDataURL()`) as Promise<string>;
    const before = await picture();
    const [job] = await grid.submit({ ...seen, simulatedIoS: 1.5 });
    await expect.poll(() => rows.count()).toBe(3);
    expect(await rows.first().textContent()).toContain(job!.replace(/\D+/, ''));
    expect(await picture()).not.toBe(before);
    const { jobRatio } = await grid.ask<{ jobRatio: { computation: number } }>(
      '{ jobRatio(application: "seen") { computation } }',
    );
    expect(await page.locator('.figure-value').first().textContent()).toMatch(
      new RegExp(`^${Math.round(jobRatio.computation * 100)}\\s?%$`),
    );
  });

  test('what other policies would have done, side by side', async () => {
    const { page } = await go('/simulator');
    await page.getByRole('button', { name: 'Try policies' }).click();
    const done = page.getByRole('region', { name: 'What-ifs' }).getByRole('row', { name: /Done/ });
    const { simulations } = await grid.ask<{ simulations: { nodes: { state: string }[] } }>(
      '{ simulations(first: 50) { nodes { state } } }',
    );
    const before = simulations.nodes.filter(({ state }) => state === 'DONE').length;
    const dialog = page.getByRole('dialog');
    for (const n of [0, 1])
      await dialog.getByRole('group', { name: 'How the root chooses sites' }).locator('label').nth(n).click();
    // Jobs that others of these tests hold waited for them.
    await dialog.getByText('Compare even if').click();
    await dialog.getByRole('button', { name: 'Try 2 policies' }).click();
    await page.getByText('2 policies to be tried.').waitFor();
    await done.nth(before + 1).waitFor();
    for (const n of [0, 1]) await done.nth(n).locator('label').click();
    await page.getByRole('heading', { name: 'Compared' }).waitFor();
    await page.getByText('The same jobs under each policy').waitFor();
    const waiting = page.getByRole('img', { name: 'Waiting jobs over time' });
    // The time, the policy in force, and each that was tried.
    await expect.poll(() => waiting.locator('.u-series').count()).toBe(4);
    await page.getByRole('img', { name: 'Fraction of CPUs in use over time' }).waitFor();
    await done.first().getByRole('link').click();
    await page.getByRole('heading', { name: 'Result', exact: true }).waitFor();
  });

  test('what would become of the jobs of an uploaded trace', async () => {
    const { page } = await go('/simulator');
    await page.getByRole('button', { name: 'Try policies' }).click();
    const dialog = page.getByRole('dialog');
    const line = (id: number, width: number) =>
      `${id} ${id} 0 50 ${width} -1 -1 ${width} 100 -1 1 1 1 -1 1 -1 -1 -1`;
    await dialog.locator('input[type=file]').setInputFiles({
      name: 'small.swf',
      mimeType: 'text/plain',
      buffer: Buffer.from([line(1, 1), line(2, 32), line(3, 100_000)].join('\n')),
    });
    await dialog.getByText('small.swf').waitFor();
    await dialog.getByRole('group', { name: 'How the root chooses sites' }).locator('label').first().click();
    await dialog.getByRole('button', { name: 'Try 1 policy' }).click();
    await page.getByRole('link', { name: /small\.swf/ }).click();
    await page.getByRole('heading', { name: 'Result', exact: true }).waitFor();
    await page.getByText('an uploaded trace').waitFor();
    await page.getByText('Skipped: too wide for any site, or never run').waitFor();
    // The narrow one begins at once, the other waits for it.
    const waiting = page.getByRole('img', { name: 'Waiting jobs over time' });
    await waiting.getByText('Candidate').waitFor();
    await waiting.getByText('Current', { exact: true }).waitFor();
  });

  test('a machine on which nothing can be run, why, and that it is fit again', async () => {
    const { createSite, createUser } = await grid.ask<{
      createSite: { site: { id: string } };
      createUser: { user: { id: string } };
    }>(
      'mutation { createSite(input: { name: "shaky" }) { site { id } } createUser(input: { name: "agent-shaky", role: AGENT }) { user { id } } }',
    );
    const { createApiKey } = await grid.ask<{ createApiKey: { secret: string } }>(
      'mutation ($user: ID!, $site: ID!) { createApiKey(input: { userId: $user, name: "agent", siteId: $site }) { secret } }',
      { user: createUser.user.id, site: createSite.site.id },
    );
    const agent = new Client({ url: grid.service.url, key: createApiKey.secret });
    const measured = { cpus: 2, memoryMb: 100, os: 'shaky', architecture: 'shaky', benchmark: 100 };
    const reports = (problem: string | null) =>
      agent.request(
        'mutation ($input: RegisterAgentInput!) { registerAgent(input: $input) { agent { id } } }',
        {
          input: {
            ...{ site: createSite.site.id, identity: 'shaky', instance: '1', host: 'shaky' },
            ...{ version: '1', protocol: 3, machines: [{ name: 'm-1', measured, problem }] },
          },
        },
      );
    await reports('no room on its disk');
    const { page } = await go('/');
    const trouble = page.getByRole('region', { name: 'Needs attention' });
    await trouble.getByText('1 machine unfit: m-1: no room on its disk').waitFor();
    await trouble.getByRole('link', { name: 'shaky' }).click();
    await page.getByRole('button', { name: 'Machines', exact: true }).click();
    const row = page.getByRole('row', { name: /^m-1/ });
    await row.getByText('Unfit').waitFor();
    await row.getByText('no room on its disk').waitFor();
    await reports(null);
    await row.getByText('Up', { exact: true }).waitFor();
  });

  test('what is on its way to jobs, and how fast the links are', async () => {
    const { sites } = await grid.ask<{ sites: { nodes: { id: string; name: string }[] } }>(
      '{ sites { nodes { id name } } }',
    );
    const from = sites.nodes.find(({ name }) => name === 'local')!.id;
    const link = (bandwidthMbPerS: number) =>
      grid.ask(
        'mutation ($links: [LinkInput!]!) { setLinkValues(input: { links: $links }) { links { bandwidthMbPerS } } }',
        {
          links: [{ from, to: grid.north, bandwidthMbPerS, rttS: 0.02 }],
        },
      );
    await link(120);
    const [job] = await grid.submit({
      command: 'reader',
      inputs: [{ sizeMb: 1e6, site: from }],
      ...SIMULATED,
    });
    const { page } = await go('/data?tab=transfers');
    const row = page.getByRole('table', { name: 'Transfers' }).getByRole('row', { name: /local → north/ });
    await row.getByRole('link', { name: `${job!.replace('job_', '')} reader` }).waitFor();
    await row.getByText('1 TB').waitFor();
    await row.getByRole('img', { name: /of the data has been transferred to north$/ }).waitFor();

    await page.getByRole('button', { name: 'Links between sites' }).click();
    await page.getByRole('button', { name: 'From local to north: 120 megabytes a second' }).click();
    await page.getByText('Set by an operator').waitFor();
    await page.getByRole('button', { name: 'Set…' }).click();
    await page.getByLabel('Bandwidth', { exact: true }).fill('60');
    await page.getByRole('dialog').getByRole('button', { name: 'Set it' }).click();
    await page.getByRole('button', { name: 'From local to north: 60 megabytes a second' }).waitFor();
  });

  test('what a scheduler above the sites holds, what the machines below it can run, and who serves them', async () => {
    const { createScheduler } = await grid.ask<{ createScheduler: { scheduler: { id: string } } }>(
      'mutation { createScheduler(input: { name: "region" }) { scheduler { id } } }',
    );
    await grid.ask('mutation ($input: UpdateSiteInput!) { updateSite(input: $input) { site { id } } }', {
      input: { site: grid.north, scheduler: createScheduler.scheduler.id },
    });
    onTestFinished(async () => {
      await grid.ask('mutation ($input: UpdateSiteInput!) { updateSite(input: $input) { site { id } } }', {
        input: { site: grid.north, scheduler: null },
      });
    });
    await grid.decideBy({ dispatch: { kind: 'grid-tree' } });
    const { page } = await go('/tree');
    const region = page.locator('.tree-node', {
      has: page.getByRole('heading', { name: 'region', exact: true }),
    });
    const waiting = (n: RegExp) =>
      expect
        .poll(() =>
          region
            .locator('dl > div', { has: page.getByText('Waiting below', { exact: true }) })
            .locator('dd')
            .textContent(),
        )
        .toMatch(n);
    await waiting(/^0$/);
    await page.getByText('No jobs wait').waitFor();
    await page.locator('.tree-leaves').getByText('under region', { exact: true }).waitFor();
    await grid.submit(...Array.from({ length: 6 }, () => long));
    // One of them may be on its way into the queue of the site.
    await waiting(/^[12]$/);
    const channels = page.getByRole('table', { name: 'Channels' });
    await channels
      .getByRole('row', { name: /^region/ })
      .getByText('8 CPUs, simulated, simulated')
      .waitFor();

    await page.locator('.tree-leaves').getByRole('link', { name: 'north' }).click();
    await page.getByRole('button', { name: 'Agents' }).click();
    const agents = page.getByRole('table', { name: 'Agents' });
    await agents.getByRole('cell', { name: '4 of 4' }).waitFor();
    await agents.getByText('Serves', { exact: true }).waitFor();
  });
}
