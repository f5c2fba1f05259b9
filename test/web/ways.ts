/** The main ways through the portal, as a person goes them. */
import { writeFileSync } from 'node:fs';
import type { Locator, Page } from 'playwright-core';
import { describe, expect, onTestFinished, test } from 'vitest';
import { Client } from '../../src/client/index.js';
import { live, type Visits } from './browser.js';
import { type Grid, SIMULATED } from './service.js';

export function ways(visits: Visits, grid: Grid): void {
  const go = (path: string, options: Parameters<Visits['visit']>[1] = {}) =>
    visits.visit(grid.origin + path, { key: grid.adminKey, ...options });

  /** By the list of pages, as people go. */
  const goOn = (page: Page, name: string) =>
    page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name, exact: true }).click();
  const title = (page: Page, text: string | RegExp) => page.getByRole('heading', { level: 1, name: text });

  describe('a session', () => {
    test('begins with a key that the service knows, and ends when its user says so', async () => {
      const { page } = await visits.visit(`${grid.origin}/jobs?states=FAILED`);
      await page.getByLabel('API key').fill('swy_nobody');
      await page.getByRole('button', { name: 'Sign in with a key' }).click();
      await page.getByText('The API key is unknown, expired or revoked.').waitFor();
      await page.getByLabel('API key').fill(grid.adminKey);
      await page.keyboard.press('Enter');
      await title(page, 'Jobs').waitFor();
      expect(new URL(page.url()).search).toBe('?states=FAILED');

      // Also while news are just being asked for: the connection fails, and nobody is told of it.
      let isOut = (): void => {};
      const out = new Promise<void>((resolve) => {
        isOut = resolve;
      });
      let failed: Promise<void> | undefined;
      await page.routeWebSocket('**/graphql', (socket) => {
        failed ??= out.then(() => socket.close({ code: 1011 }));
      });
      await page.reload();
      await expect.poll(() => failed !== undefined).toBe(true);
      await page.getByRole('button', { name: /Signed in as admin/ }).click();
      await page.getByRole('menuitem', { name: 'Sign out' }).click();
      await page.getByLabel('API key').waitFor();
      expect(await page.evaluate('sessionStorage.getItem("switchyard.key")')).toBeNull();
      isOut();
      await failed;
      await page.close();
    });

    test('begins once by the link that the service prints, and takes its key with it when it ends', async () => {
      const link = /(http\S+#sign-in=\S+)/.exec(grid.service.process.output.stdout)?.[1] ?? '';
      const { page } = await visits.visit(link);
      await page.getByRole('button', { name: /Signed in as admin/ }).waitFor();
      expect(page.url()).toBe(`${grid.origin}/`);
      await page.reload();
      await page.getByRole('button', { name: /Signed in as admin/ }).waitFor();
      const keys = async () =>
        (
          await grid.ask<{ viewer: { keys: { nodes: { name: string; revokedAt: string | null }[] } } }>(
            '{ viewer { keys { nodes { name revokedAt } } } }',
          )
        ).viewer.keys.nodes
          .filter(({ name }) => name === 'sign-in link' || name === 'portal')
          .map(({ name, revokedAt }) => `${name}${revokedAt === null ? '' : ' revoked'}`)
          .sort();
      expect(await keys()).toEqual(['portal', 'sign-in link revoked']);
      const { viewer } = await grid.ask<{
        viewer: { keys: { nodes: { name: string; expiresAt: string }[] } };
      }>('{ viewer { keys { nodes { name expiresAt } } } }');
      const hoursOf = (wanted: string): number =>
        (Date.parse(viewer.keys.nodes.find(({ name }) => name === wanted)!.expiresAt) - Date.now()) /
        3_600_000;
      expect(hoursOf('sign-in link')).toBeLessThan(0.5);
      expect(hoursOf('portal')).toBeGreaterThan(11);

      // Opened where somebody is signed in, it asks.
      await page.goto(link);
      await page.getByRole('button', { name: 'Stay signed in' }).click();
      await page.getByRole('button', { name: /Signed in as admin/ }).waitFor();
      expect(page.url()).toBe(`${grid.origin}/`);

      const other = await visits.visit(link);
      await other.page.getByText('This link has already been used or has expired.').waitFor();
      expect(other.page.url()).toBe(`${grid.origin}/`);

      await page.bringToFront();
      await page.getByRole('button', { name: /Signed in as admin/ }).click();
      await page.getByRole('menuitem', { name: 'Sign out' }).click();
      await page.getByLabel('API key').waitFor();
      await expect.poll(keys).toEqual(['portal revoked', 'sign-in link revoked']);
    });

    test('that is revoked is told so at once', async () => {
      const { key, keyId } = await grid.user('leaver', 'USER');
      const { page } = await go('/jobs', { key });
      await title(page, 'Jobs').waitFor();
      await live(page);
      await grid.ask('mutation ($key: ID!) { revokeApiKey(input: { apiKeyId: $key }) { apiKey { id } } }', {
        key: keyId,
      });
      await page.getByText('Your session has ended').waitFor();
    });

    test('of an agent is refused: the portal is for people', async () => {
      const { createUser } = await grid.ask<{ createUser: { user: { id: string } } }>(
        'mutation { createUser(input: { name: "agent-portal", role: AGENT }) { user { id } } }',
      );
      const { createApiKey } = await grid.ask<{ createApiKey: { secret: string } }>(
        'mutation ($user: ID!, $site: ID!) { createApiKey(input: { userId: $user, name: "test", siteId: $site }) { secret } }',
        { user: createUser.user.id, site: grid.north },
      );
      const { page } = await visits.visit(grid.origin);
      await page.getByLabel('API key').fill(createApiKey.secret);
      await page.getByRole('button', { name: 'Sign in with a key' }).click();
      await page.getByText('The portal is for people.').waitFor();
    });
  });

  describe('what a newcomer does first, in no more than two clicks each', () => {
    /** From the overview on. A page that is loaded anew would have lost the count. */
    async function begin(): Promise<{ page: Page; inTwoClicks(): Promise<void> }> {
      const { page } = await go('/');
      await page.evaluate('clicks = 0; addEventListener("click", () => clicks++, true)');
      return {
        page,
        async inTwoClicks() {
          const clicks = await page.evaluate('(([count]) => count)([clicks, (clicks = 0)])');
          expect([0, 1, 2]).toContain(clicks);
        },
      };
    }

    test('submits a job, sees it run to its end and reads its output, without reloading', async () => {
      const end = `${grid.home}/end`;
      const { page, inTwoClicks } = await begin();
      await page.getByRole('link', { name: 'Submit', exact: true }).click();
      await page
        .getByLabel('Command', { exact: true })
        .fill(`echo begun; while [ ! -e '${end}' ]; do sleep 0.2; done; echo "the answer is $((6 * 7))"`);
      // Where it would go is told while it is being written.
      await page.getByText('Start, if no other job is submitted').waitFor();
      await page.getByRole('button', { name: 'Submit the job' }).click();

      await title(page, /^Job \d+ Running$/).waitFor();
      await inTwoClicks();
      const used = page.locator('.facts > div', {
        hasText: /^(CPU time|Peak memory) so far(< )?[\d.]+ (s|[kM]?B)$/,
      });
      await expect.poll(() => used.count()).toBe(2);
      writeFileSync(end, '');
      await title(page, /^Job \d+ Completed$/).waitFor();
      await expect.poll(() => used.count()).toBe(0);
      await page.getByText('the answer is 42').waitFor();
      await inTwoClicks();
      await page.getByRole('heading', { name: 'Why it went there' }).waitFor();
      // And how it was measured.
      const cpuTime = page.getByRole('row', { name: /^CPU time/ });
      await cpuTime.getByText(/^by (its control group|process accounting|samples)$/).waitFor();
    });

    test('sees why another waits, and stops it', async () => {
      const [id] = await grid.submit({
        command: 'wide',
        tasks: 5,
        cpusPerTask: 8,
        estimateS: 60,
        ...SIMULATED,
      });
      const { page, inTwoClicks } = await begin();
      await page.getByRole('link', { name: 'Jobs', exact: true }).click();
      await page.getByRole('row', { name: `wide` }).getByText('wide').first().click();
      await page.getByRole('heading', { name: 'Why it waits' }).waitFor();
      await page.getByText('No site has machines for 5 tasks with 8 CPUs each.').waitFor();
      await inTwoClicks();

      await page.getByRole('button', { name: 'Cancel', exact: true }).click();
      await page.getByRole('dialog').getByText('1 job will be canceled').waitFor();
      await page.getByRole('button', { name: 'Cancel 1 job' }).click();
      await title(page, /Canceled$/).waitFor();
      await inTwoClicks();
      expect(page.url()).toContain(id);
    });
  });

  test('a list of jobs follows what happens, and many are cancelled as counted', async () => {
    const { page } = await go('/jobs?application=sweep');
    await page.getByText('No jobs match').waitFor();
    await live(page);
    await grid.submit(
      ...Array.from({ length: 12 }, (_, i) => ({
        command: 'sweep',
        name: `sweep-${i}`,
        cpusPerTask: 8,
        estimateS: 600,
        ...SIMULATED,
      })),
    );
    await page.getByText('12 jobs match').waitFor();
    await page.getByRole('row').getByText('Running').first().waitFor();

    // The list is queried again for a new job, and the answer is late: of the others it says what was before.
    let release: (() => void) | undefined;
    await page.route('**/graphql', async (route) => {
      if (release || !route.request().postData()?.includes('query JobsPage')) return route.fallback();
      const released = new Promise<void>((resolve) => {
        release = resolve;
      });
      const response = await route.fetch();
      await released;
      await route.fulfill({ response });
    });
    await grid.submit({ command: 'sweep', held: true, ...SIMULATED });
    await expect.poll(() => release !== undefined).toBe(true);

    await page.getByRole('button', { name: 'All that match' }).click();
    await page.getByRole('menuitem', { name: 'Cancel all that match…' }).click();
    await page.getByRole('dialog').getByText('13 jobs will be canceled').waitFor();
    await page.getByRole('button', { name: 'Cancel 13 jobs' }).click();
    await page.getByText('13 jobs canceled.').waitFor();
    const cancelled = page.getByRole('row', { name: /Canceled/ });
    await cancelled.nth(11).waitFor();
    release?.();
    await cancelled.nth(12).waitFor();
    const { jobCount } = await grid.ask<{ jobCount: number }>(
      '{ jobCount(filter: { application: "sweep", states: [CANCELLED] }) }',
    );
    expect(jobCount).toBe(13);
  });

  test('a list of thousands is gone through from one end to the other', async () => {
    const { submitJobGroup } = await grid.ask<{ submitJobGroup: { jobIds: string[] } }>(
      'mutation { submitJobGroup(input: { count: 12000, template: { command: "many", held: true } }) { jobIds } }',
    );
    const ids = submitJobGroup.jobIds;
    const { page } = await go('/jobs?application=many');
    const shown = (id: string | undefined) =>
      page
        .getByRole('grid')
        .getByRole('link', { name: id?.replace('job_', ''), exact: true })
        .waitFor();
    await shown(ids.at(-1));
    let busy = 0;
    // A busy service is asked again.
    await page.route('**/graphql', (route) =>
      route.request().postData()?.includes('JobsStep') && busy++ === 0
        ? route.fulfill({
            status: 503,
            json: {
              errors: [{ message: 'busy', extensions: { code: 'UNAVAILABLE', retryAfterS: 0.1 } }],
            },
          })
        : route.fallback(),
    );
    await page.getByRole('grid').focus();
    await page.keyboard.press('End');
    await shown(ids[0]);
    expect(busy).toBeGreaterThan(1);
    await page.keyboard.press('PageUp');
    await shown(ids[25]);
    // Somewhere in between, as with the scroll bar: nothing before it has been loaded.
    await page.evaluate(
      "{ const grid = document.querySelector('[role=grid]'); grid.scrollTop = grid.scrollHeight / 2; }",
    );
    await shown(ids[5_990]);
    await page.keyboard.press('Home');
    await shown(ids.at(-1));
    await grid
      .ask(
        'mutation { cancelJobs(input: { selection: { filter: { application: "many" } } }) { unchanged { id } } }',
      )
      .catch(() => {});
  });

  test('selected jobs are held, boosted and released', async () => {
    const ids = await grid.submit(
      ...Array.from({ length: 3 }, () => ({
        command: 'idle',
        tasks: 4,
        cpusPerTask: 8,
        estimateS: 300,
        ...SIMULATED,
      })),
    );
    onTestFinished(async () => {
      await grid.ask(
        'mutation ($ids: [ID!]) { cancelJobs(input: { selection: { ids: $ids } }) { jobIds } }',
        { ids },
      );
    });
    const { page } = await go('/jobs?application=idle&order=oldest');
    const boxes = page.getByRole('checkbox', { name: /^Select Job/ });
    const select = async () => {
      // What was done to those that were selected before has let go of them.
      await page.getByText('2 jobs selected').waitFor({ state: 'detached' });
      await page.getByRole('dialog').waitFor({ state: 'detached' });
      // The bar of what can be done with them, which comes with the first, moves the list.
      for (const [i, told] of [
        [1, '1 job selected'],
        [2, '2 jobs selected'],
      ] as const) {
        await boxes.nth(i).click({ force: true });
        await page.getByText(told).waitFor();
      }
    };
    await boxes.nth(2).waitFor();
    const states = async (): Promise<string[]> =>
      (
        await grid.ask<{ jobs: { nodes: { id: string; state: string; boost: number }[] } }>(
          'query ($ids: [ID!]) { jobs(filter: { ids: $ids }) { nodes { id state boost } } }',
          { ids },
        )
      ).jobs.nodes.map(({ state, boost }) => `${state} ${boost}`);

    await select();
    await page.getByRole('button', { name: 'Hold…' }).click();
    await page.getByRole('button', { name: 'Hold 2 jobs' }).click();
    await page.getByText('2 jobs held.').waitFor();
    expect((await states()).slice(1)).toEqual(['HELD 0', 'HELD 0']);

    await select();
    await page.getByRole('button', { name: 'Boost…' }).click();
    await page.getByLabel('Boost', { exact: true }).fill('25');
    await page.getByRole('button', { name: 'Set the boost of 2 jobs' }).click();
    await page.getByText('2 jobs changed.').waitFor();
    await select();
    await page.getByRole('button', { name: 'Release…' }).click();
    await page.getByRole('button', { name: 'Release 2 jobs' }).click();
    await page.getByText('2 jobs released.').waitFor();
    expect(
      (await states()).slice(1).every((state) => state.endsWith(' 25') && !state.startsWith('HELD')),
    ).toBe(true);
  });

  test('a job that waits is edited: what is wrong is told at the field, what was changed by its events', async () => {
    const [first = ''] = await grid.submit({ command: 'first', held: true, ...SIMULATED });
    const [id] = await grid.submit({ command: 'edited', held: true, estimateS: 300, ...SIMULATED });
    const { page } = await go(`/jobs/${id}`);
    await page.getByRole('button', { name: 'Edit' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('Name').fill('new name');
    await dialog.getByLabel('Stop it after').fill('soon');
    await dialog.getByRole('button', { name: 'Change it' }).click();
    await dialog.getByText(/Accepted: .*15m/).waitFor();
    await dialog.getByLabel('Stop it after').fill('2h');
    await dialog.getByLabel('After other jobs').fill(`whenever:${first.split('_')[1]}`);
    await dialog.getByRole('button', { name: 'Change it' }).click();
    await dialog.getByText(/Accepted: .*afterok/).waitFor();
    await dialog.getByLabel('After other jobs').fill(`afterany:${first.split('_')[1]}+5`);
    await dialog.getByLabel('Memory per task').fill('999999999');
    await dialog.getByRole('button', { name: 'Change it' }).click();
    await dialog.getByText(/can never run on the registered machines/).waitFor();
    await dialog.getByLabel('Memory per task').fill('100');
    await dialog.getByRole('button', { name: 'Change it' }).click();
    await dialog.waitFor({ state: 'detached' });
    await page.getByText('name none → "new name"; ').waitFor();
    const { job } = await grid.ask<{ job: object }>(
      `query ($id: ID!) { job(id: $id) { state name runTimeLimitS memoryMbPerTask estimateS needs {
        of { job { id } condition minDelayS } } } }`,
      { id },
    );
    expect(job).toEqual({
      ...{ state: 'HELD', name: 'new name', runTimeLimitS: 7200, memoryMbPerTask: 100, estimateS: 300 },
      needs: [{ of: [{ job: { id: first }, condition: 'ANY', minDelayS: 300 }] }],
    });
    await page.getByRole('button', { name: 'Edit' }).click();
    expect(await dialog.getByLabel('After other jobs').inputValue()).toBe(
      `afterany:${first.split('_')[1]}+5`,
    );
  });

  test('the machines of a job are chosen under Advanced placement, and again while it waits', async () => {
    const { page } = await go('/submit');
    await page.getByLabel('Command', { exact: true }).fill('placed');
    await page.getByText('Name, data, environment and more').click();
    await page.getByRole('checkbox', { name: 'Hold it until released' }).click({ force: true });
    await page.getByText('Advanced placement').click();
    const constraint = page.getByLabel('Constraint on labels');
    await constraint.fill('os != plan9 and');
    await page.getByText(/^At character 16 accepted: a label/).waitFor();
    await constraint.fill('os != plan9');
    await page.getByText(/^At character/).waitFor({ state: 'detached' });
    const choose = async (within: Page | Locator, label: string, option: string) => {
      await within.getByRole('button', { name: label }).click();
      await page.getByRole('option', { name: option }).click();
    };
    await choose(page, 'Beside it on its machines', 'no other job');
    await choose(page, 'Switch of its machines', 'is the same, if possible');
    await page.getByLabel('Longest wait for one switch').fill('5m');
    await page.getByRole('button', { name: 'Submit the job' }).click();
    await title(page, /Held$/).waitFor();
    const job = async () => {
      const { job } = await grid.ask<{ job: object }>(
        'query ($id: ID!) { job(id: $id) { machineConstraint exclusive sameSwitch { maxWaitS } allAlike } }',
        { id: page.url().split('/').at(-1) },
      );
      return job;
    };
    expect(await job()).toEqual({
      ...{ machineConstraint: 'os != plan9', exclusive: 'MACHINE', sameSwitch: { maxWaitS: 300 } },
      allAlike: null,
    });

    await page.getByRole('button', { name: 'Edit' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByText('Advanced placement').click();
    await dialog.getByLabel('Constraint on labels').fill('os !=');
    await dialog.getByRole('button', { name: 'Change it' }).click();
    await dialog.getByText(/^At character 6 accepted: a value/).waitFor();
    await dialog.getByLabel('Constraint on labels').fill('');
    await choose(dialog, 'Beside it on its machines', 'jobs of the same user');
    await choose(dialog, 'Switch of its machines', 'does not matter');
    await dialog.getByLabel('The same on all machines').fill('os');
    await dialog.getByRole('button', { name: 'Change it' }).click();
    await dialog.waitFor({ state: 'detached' });
    expect(await job()).toEqual({
      ...{ machineConstraint: null, exclusive: 'USER', sameSwitch: null, allAlike: ['os'] },
    });
    await page.close();
  });

  test('the parts of a job are shown, and submitted again with it', async () => {
    const parts = [
      { tasks: 2, cpusPerTask: 3 },
      { memoryMbPerTask: 50, machineConstraint: 'os != plan9' },
    ];
    const [id] = await grid.submit({ command: 'true', application: 'parted', held: true, parts });
    const { page } = await go(`/jobs/${id}`);
    await page.getByText('3 tasks, 7 CPUs').waitFor();
    await page.getByText('2 tasks of 3 CPUs', { exact: true }).waitFor();
    await page.getByText('1 task of 1 CPU, 50 MB, machines with os != plan9').waitFor();
    await page.getByRole('button', { name: 'Submit again' }).click();
    await page.locator('.cm-content', { hasText: 'true' }).waitFor();
    await page.getByRole('button', { name: 'Submit the job' }).click();
    await page.waitForURL((url) => url.pathname.startsWith('/jobs/') && !url.pathname.endsWith(id as string));
    const again = page.url().split('/').at(-1);
    expect(again).not.toBe(id);
    const { job } = await grid.ask<{ job: { parts: object[] } }>(
      'query ($id: ID!) { job(id: $id) { tasks cpus parts { tasks cpusPerTask memoryMbPerTask machineConstraint } } }',
      { id: again },
    );
    expect(job).toEqual({
      ...{ tasks: 3, cpus: 7 },
      parts: [
        { tasks: 2, cpusPerTask: 3, memoryMbPerTask: 0, machineConstraint: null },
        { tasks: 1, cpusPerTask: 1, memoryMbPerTask: 50, machineConstraint: 'os != plan9' },
      ],
    });
    // It would keep its machines from the jobs of other walks.
    await grid.ask('mutation ($ids: [ID!]) { cancelJobs(input: { selection: { ids: $ids } }) { jobIds } }', {
      ids: [id, again],
    });
    await page.close();
  });

  test('jobs are written to a CSV file as the list shows them', async () => {
    await grid.submit({
      command: 'true',
      name: '=1+1, "quoted"',
      application: 'table',
      os: process.platform,
    });
    const { page } = await go('/jobs?application=table&columns=job,state,application');
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('button', { name: 'CSV' }).click(),
    ]);
    const stream = await download.createReadStream();
    let text = '';
    for await (const part of stream) text += part;
    expect(text).toMatch(/^Job,State,Application\r\njob_\d+,[A-Z]+,table\r\n$/);
  });

  test('filters, columns and order are in the address; a view of them is kept by name', async () => {
    const { page } = await go('/jobs');
    await page.getByRole('button', { name: 'Filter' }).click();
    await page.getByRole('textbox', { name: 'Application' }).fill('nothing-like-it');
    await page.getByRole('button', { name: 'Show', exact: true }).click();
    await page.getByText('No jobs match').waitFor();
    expect(new URL(page.url()).searchParams.get('application')).toBe('nothing-like-it');
    await page.getByRole('button', { name: 'Views' }).click();
    await page.getByRole('menuitem', { name: 'Save this view…' }).click();
    await page.getByLabel('Name', { exact: true }).fill('Mine');
    await page.getByRole('button', { name: 'Save', exact: true }).click();
    await page.getByRole('button', { name: 'Remove the filter Application nothing-like-it' }).click();
    expect(new URL(page.url()).search).toBe('');
    await page.getByRole('button', { name: 'Views' }).click();
    await page.getByRole('menuitem', { name: 'Mine', exact: true }).click();
    await page.getByText('No jobs match').waitFor();
  });

  test('jobs are counted by a column, and each count leads to its jobs', async () => {
    const job = { command: 'true', application: 'counted', os: process.platform, held: true };
    await grid.submit(job, job, { ...job, held: false, estimateS: 1 });
    const { page } = await go('/jobs?application=counted');
    await page.getByRole('button', { name: 'Group by' }).click();
    await page.getByRole('option', { name: 'By state' }).click();
    const table = page.getByRole('table', { name: 'Jobs by state' });
    await table.getByRole('row', { name: /^Held .*2$/ }).waitFor();
    await table.getByRole('link', { name: 'Held' }).click();
    await page.getByText('2 jobs match').waitFor();
    expect(new URL(page.url()).search).toBe('?application=counted&states=HELD');
  });

  test('a group is submitted from one template, and its progress is followed', async () => {
    const { page } = await go('/submit');
    await page.getByLabel('Command', { exact: true }).fill('true # {index}');
    await page.getByLabel('Estimated run time').fill('1');
    await page.getByRole('radio', { name: 'Many jobs' }).click();
    await page.getByLabel('Jobs', { exact: true }).fill('3');
    await page.getByRole('button', { name: 'Submit 3 jobs' }).click();
    await page.getByRole('heading', { name: /100.% have ended/ }).waitFor();
    await page.getByText('Done', { exact: true }).waitFor();
  });

  test('a script fills in the fields, and what it does not understand is said', async () => {
    const { page } = await go('/submit');
    await page.getByRole('radio', { name: 'Script' }).click();
    const editor = page.locator('.cm-content');
    await editor.waitFor();
    await editor.fill(
      '#!/bin/sh\n#SBATCH --time=00:02:00\n#SBATCH -J scripted\n#SBATCH --profile=all\n#SWITCHYARD --checkpoint state\n#SWITCHYARD --download https://files.example/mesh --upload out=https://files.example/out\necho from a script\n',
    );
    await page.getByText('Ignored: --profile: the site’s agent determines how usage is measured').waitFor();
    expect(await page.getByLabel('Estimated run time').inputValue()).toBe('120');
    const urls = [page.getByLabel('Download from URLs'), page.getByLabel('Upload to URLs')];
    expect(await Promise.all(urls.map((field) => field.inputValue()))).toEqual([
      'https://files.example/mesh',
      'out=https://files.example/out',
    ]);
    await page.getByText('Name, data, environment and more').click();
    for (const field of urls) await field.fill('');
    await page.getByRole('button', { name: 'Submit the job' }).click();
    await title(page, /Completed$/).waitFor();
    await page.locator('.terminal', { hasText: 'from a script' }).waitFor();
    await page.getByText('scripted by').waitFor();
    // What has no field in the form is not lost.
    const { job } = await grid.ask<{ job: object }>(
      'query ($id: ID!) { job(id: $id) { checkpoint { path } } }',
      {
        id: new URL(page.url()).pathname.split('/').at(-1),
      },
    );
    expect(job).toEqual({ checkpoint: { path: 'state' } });
  });

  test('a job says in the form what is done when it fails, and what mail is about it', async () => {
    const { page } = await go('/submit');
    await page.getByLabel('Command', { exact: true }).fill('exit 9');
    // Simulated sites run what they are told as long as it estimates.
    await page.getByText('Advanced placement').click();
    await page.getByLabel('Operating system').fill(process.platform);
    await page.getByText('Name, data, environment and more').click();
    await page.getByLabel('Mail about it').fill('end,someday');
    await page.getByLabel('Run again if it fails').fill('2');
    await page.getByLabel('Wait before that').fill('0');
    await page.getByLabel('Retry rules').fill('exit=9,do=FAIL');
    await page.getByRole('button', { name: 'Submit the job' }).click();
    await page
      .getByText(/Accepted: BEGIN, END, FAIL/)
      .first()
      .waitFor();
    await page.getByLabel('Mail about it').fill('none');
    await page.getByRole('button', { name: 'Submit the job' }).click();
    await title(page, /Failed/).waitFor();
    // And so does the one that is made of it.
    await page.getByRole('button', { name: 'Submit again' }).click();
    await page.locator('.cm-content', { hasText: '"maxRetries": 2' }).waitFor();
    await page.locator('.cm-content', { hasText: '"mail": []' }).waitFor();
  });

  test('a job is submitted again as it was', async () => {
    const [id] = await grid.submit({
      command: 'echo',
      arguments: ['once more'],
      estimateS: 5,
      os: process.platform,
    });
    const { page } = await go(`/jobs/${id}`);
    // Until then buttons beside it go, and it moves.
    await title(page, /Completed$/).waitFor();
    await page.getByRole('button', { name: 'Submit again' }).click();
    await page.locator('.cm-content', { hasText: 'once more' }).waitFor();
    await page.getByRole('button', { name: 'Submit the job' }).click();
    await page.waitForURL((url) => url.pathname.startsWith('/jobs/') && !url.pathname.includes(id!));
    await title(page, /Completed$/).waitFor();
    await page.locator('.terminal', { hasText: 'once more' }).waitFor();
  });

  test('a site is drained after it was said what that will do, and comes back', async () => {
    const ids = await grid.submit(
      ...Array.from({ length: 6 }, () => ({
        command: 'drained',
        cpusPerTask: 8,
        estimateS: 600,
        ...SIMULATED,
      })),
    );
    const { page } = await go(`/sites/${grid.north}`);
    await title(page, /^north Up$/).waitFor();
    await page.locator('.figure', { hasText: 'Queued' }).getByText('2', { exact: true }).waitFor();
    // Who is in front, and of which terms the priority is made.
    await page.getByRole('button', { name: 'Queue', exact: true }).click();
    await page
      .getByRole('button', { name: /^Priority \d+ of job \d+: its terms$/ })
      .first()
      .click();
    await page.getByRole('dialog').getByText('User class').waitFor();
    await page.keyboard.press('Escape');
    await page.getByRole('button', { name: 'Drain…' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByText('4 running jobs').waitFor();
    await dialog.getByText('2 queued jobs').waitFor();
    await dialog.getByText('32 CPUs').waitFor();
    await page.getByRole('button', { name: 'Drain the site' }).click();
    await title(page, /^north Draining$/).waitFor();
    await page.getByRole('button', { name: 'Return to service' }).click();
    await title(page, /^north Up$/).waitFor();
    // Who waited there went back to the root, and was sent again.
    await page.goto(`${grid.origin}/jobs/${ids.at(-1)}`);
    await page.locator('.timeline').getByText('Sent again').waitFor();
    await grid.ask('mutation ($ids: [ID!]) { cancelJobs(input: { selection: { ids: $ids } }) { jobIds } }', {
      ids,
    });
  });

  test('a service of the federation is listed with what it may take, isolated, and rejoins', async () => {
    const { setPeer } = await grid.ask<{ setPeer: { peer: { site: { id: string } } } }>(
      'mutation ($input: SetPeerInput!) { setPeer(input: $input) { peer { site { id } } } }',
      { input: { name: 'east', forward: 'ALWAYS', foreignMax: 7 } },
    );
    const peer = setPeer.peer.site.id;
    const isolated = async () =>
      (
        await grid.ask<{ federationPeers: { isolated: boolean }[] }>('{ federationPeers { isolated } }')
      ).federationPeers.map((one) => one.isolated);
    const { page } = await go('/tree');
    const row = page.getByRole('region', { name: 'Federation' }).getByRole('row', { name: /east/ });
    for (const text of ['No address', 'never', 'always', '0 of 7'])
      await row.getByRole('cell', { name: text, exact: true }).waitFor();
    await row.getByRole('button', { name: 'Isolate…' }).click();
    await page.getByRole('dialog').getByText('No new jobs are exchanged from now on.').waitFor();
    expect(await isolated()).toEqual([false]);
    await page.getByRole('dialog').getByRole('button', { name: 'Isolate', exact: true }).click();
    await row.getByRole('cell', { name: 'Isolated', exact: true }).waitFor();
    expect(await isolated()).toEqual([true]);

    const operator = await grid.user('watch', 'OPERATOR');
    const watching = await go('/tree', { key: operator.key });
    const seen = watching.page.getByRole('region', { name: 'Federation' });
    await seen.getByRole('cell', { name: 'Isolated', exact: true }).waitFor();
    expect(await seen.getByRole('button').count()).toBe(0);

    await page.bringToFront();
    await row.getByRole('button', { name: 'Rejoin' }).click();
    await row.getByRole('cell', { name: 'No address', exact: true }).waitFor();
    expect(await isolated()).toEqual([false]);
    await grid.ask('mutation ($peer: ID!) { isolatePeer(input: { siteId: $peer }) { peer { isolated } } }', {
      peer,
    });
    await grid.ask('mutation ($peer: ID!) { removePeer(input: { siteId: $peer }) { peer { isolated } } }', {
      peer,
    });
  });

  test('who the users of a peer are here, and what a peer has to do with a job, are told', async () => {
    const { id: guest } = await grid.user('guest-a', 'USER');
    const { setPeer } = await grid.ask<{ setPeer: { secret: string; peer: { site: { id: string } } } }>(
      'mutation ($input: SetPeerInput!) { setPeer(input: $input) { secret peer { site { id } } } }',
      { input: { name: 'west', forward: 'ALWAYS', users: [{ name: 'alice', user: guest }] } },
    );
    const tree = await go('/tree');
    const users = tree.page.getByRole('region', { name: 'Users of peers' });
    await users.getByRole('row', { name: 'west alice guest-a' }).waitFor();
    await users.getByRole('row', { name: 'west all others peer-west' }).waitFor();

    const accepted = tree.page.getByRole('region', { name: 'Accepted by peers' });
    await accepted.getByRole('row', { name: 'west not known none It has not asked for jobs yet.' }).waitFor();

    const [job] = await grid.submit({ command: 'abroad', os: 'elsewhere', estimateS: 60 });
    const { page } = await go(`/jobs/${job}`);
    const row = page.getByRole('region', { name: 'Peers' }).getByRole('row', { name: /west/ });
    await row.getByText('Not offered').waitFor();
    await row.getByText('It has not asked for jobs yet.').waitFor();

    const west = new Client({ url: grid.service.url, key: setPeer.secret });
    const kind = {
      site: 0,
      os: 'elsewhere',
      architecture: 'any',
      cpus: 4,
      memoryMb: 1000,
      machines: 1,
      hops: 1,
    };
    const exchange = async (places: object[]) =>
      (
        await west.request<{ exchangeJobs: { offers: { offer: string }[] } }>(
          'mutation ($input: ExchangeInput!) { exchangeJobs(input: $input) { offers { offer } } }',
          {
            input: {
              ...{
                protocol: 1,
                service: 'west-id',
                after: '0',
                room: 10,
                kinds: [{ ...kind, licenses: [] }],
              },
              places,
            },
          },
        )
      ).exchangeJobs.offers;
    const offer = (await exchange([]))[0]?.offer;
    await row.getByText('Offered', { exact: true }).waitFor();
    await exchange([{ offer, path: ['root', 'cluster'] }]);
    await row.getByText('root › cluster').waitFor();
    await accepted.getByRole('row', { name: /west 1 none .*version 1.*a class, or with devices/ }).waitFor();
    await west.request('mutation ($offers: [ID!]!) { claimJobs(offers: $offers) { results { outcome } } }', {
      offers: [offer],
    });
    await row.getByText('Runs there').waitFor();
    await grid.ask('mutation ($ids: [ID!]) { cancelJobs(input: { selection: { ids: $ids } }) { jobIds } }', {
      ids: [job],
    });
    await west.request('mutation ($offers: [ID!]!) { returnJobs(offers: $offers) }', { offers: [offer] });
    const peer = setPeer.peer.site.id;
    await grid.ask('mutation ($peer: ID!) { isolatePeer(input: { siteId: $peer }) { peer { isolated } } }', {
      peer,
    });
    await grid.ask('mutation ($peer: ID!) { removePeer(input: { siteId: $peer }) { peer { isolated } } }', {
      peer,
    });
  });

  test('a weight is changed after its effect was computed, with a reason, and reverted', async () => {
    await grid.submit({ command: 'recorded', cpusPerTask: 2, estimateS: 1, ...SIMULATED });
    const { createSite } = await grid.ask<{ createSite: { site: { id: string } } }>(
      'mutation { createSite(input: { name: "alps", localPolicy: { kind: "external" } }) { site { id } } }',
    );
    const { page } = await go('/policy');
    const put = page.getByRole('button', { name: /Put version \d+ into effect/ });
    await page.getByLabel('Weight of a near deadline').fill('3');
    await page.getByText('dispatch.weights.deadline').waitFor();
    // What the other tests have done by hand, no simulation knows.
    await page.getByText('Compare even if').click();
    await page.getByRole('button', { name: 'Preview' }).click();
    await page.getByRole('region', { name: 'Both policies' }).getByText('Mean wait').waitFor();
    const assumed = page.getByText('The agent of alps has never reported how busy it is');
    await assumed.waitFor();
    await page.getByRole('link', { name: 'By class of user and site' }).click();
    await assumed.waitFor();
    await page.goBack();
    await page.getByLabel('Weight of a near deadline').fill('3');
    await grid.ask(
      'mutation ($site: ID!) { drainSite(input: { siteId: $site }) { site { id } } removeSite(input: { siteId: $site }) { site { id } } }',
      {
        site: createSite.site.id,
      },
    );

    expect(await put.isDisabled()).toBe(true);
    await page.getByLabel('Reason').fill('deadlines matter more');
    await put.click();
    await page.getByText('Policy 2 is in effect.').waitFor();
    const weight = async (): Promise<unknown> =>
      (
        await grid.ask<{ policy: { document: { dispatch: { weights: { deadline: number } } } } }>(
          '{ policy { document } }',
        )
      ).policy.document.dispatch.weights.deadline;
    expect(await weight()).toBe(3);

    await page.getByRole('button', { name: 'History' }).click();
    await page.getByText('deadlines matter more').first().waitFor();
    await page.getByRole('button', { name: 'Revert to this…' }).click();
    await page.getByRole('dialog').getByText('dispatch.weights.deadline').waitFor();
    await page.getByLabel('Reason').fill('it did not help');
    await page.getByRole('button', { name: 'Put it into effect again' }).click();
    await page.getByText('Restored version 1').waitFor();
    expect(await weight()).toBe(1);
    // Who has changed what, and why.
    const changed = page.locator('.versions li', { hasText: 'Version 2' }).first();
    for (const text of ['by admin', 'deadlines matter more', 'dispatch.weights.deadline'])
      await changed.getByText(text).first().waitFor();

    await goOn(page, 'Audit log');
    const entries = page.getByRole('table', { name: 'Audit log' });
    await entries.getByRole('row', { name: /Revert policy Policy version 3 it did not help/ }).waitFor();
    await page.getByLabel('Find').fill('north');
    await entries
      .getByRole('row', { name: /Register site/ })
      .getByRole('link', { name: 'Site north' })
      .click();
    await title(page, /^north/).waitFor();
  });

  test('a class of jobs is declared in the form of the policy, and offered where jobs are submitted', async () => {
    const { page } = await go('/policy');
    const classes = page.getByRole('group', { name: 'Classes of jobs' });
    await classes.getByLabel('New name').fill('spare');
    await classes.getByRole('button', { name: 'Add' }).click();
    await classes.getByText('spare', { exact: true }).click();
    await classes.getByText('Scavenger', { exact: true }).click();
    await page.getByLabel('Reason').fill('scavengers');
    await page.getByRole('button', { name: /Put version \d+ into effect/ }).click();
    await page.getByText(/Policy \d+ is in effect/).waitFor();
    const { jobClasses } = await grid.ask<{ jobClasses: object[] }>('{ jobClasses { name isScavenger } }');
    expect(jobClasses).toEqual([{ name: 'spare', isScavenger: true }]);
    await page.goto(new URL('/submit', page.url()).href);
    await page.getByLabel('Command', { exact: true }).fill('true');
    await page.getByLabel('Estimated run time').fill('1');
    await page.getByText('Name, data, environment and more').click();
    await page.getByRole('button', { name: /Class/ }).click();
    await page.getByRole('option', { name: /^spare/ }).click();
    await page.getByRole('button', { name: 'Submit the job' }).click();
    await page.getByText('spare', { exact: true }).waitFor();

    const [id] = await grid.submit({ command: 'reclassed', held: true, ...SIMULATED });
    await page.goto(new URL(`/jobs/${id}`, page.url()).href);
    const dialog = page.getByRole('dialog');
    for (const [option, name] of [
      [/^spare/, 'spare'],
      ['None', null],
    ] as const) {
      await page.getByRole('button', { name: 'Edit' }).click();
      await dialog.getByRole('button', { name: /Class/ }).click();
      await page.getByRole('option', { name: option }).click();
      await dialog.getByRole('button', { name: 'Change it' }).click();
      await dialog.waitFor({ state: 'detached' });
      const { job } = await grid.ask<{ job: object }>('query ($id: ID!) { job(id: $id) { class } }', { id });
      expect(job).toEqual({ class: name });
      // What the next change begins with.
      await page.getByText(name === null ? /class "spare" → none/ : /class none → "spare"/).waitFor();
    }
  });

  test('a user is offered what a user may do, and told whose the rest is', async () => {
    const { id, key } = await grid.user('reader', 'USER');
    const { page } = await go('/', { key });
    const pages = page.getByRole('navigation', { name: 'Pages' });
    await pages.getByRole('link', { name: 'Policy' }).waitFor();
    expect(await pages.getByRole('link', { name: 'Audit log' }).count()).toBe(0);
    expect(await pages.getByRole('link', { name: 'Simulator' }).count()).toBe(0);

    await page.goto(`${grid.origin}/audit`);
    await page.getByText('This page is for administrators').waitFor();
    await goOn(page, 'Policy');
    await page.getByText('Only administrators can change it.').waitFor();
    expect(await page.getByLabel('Weight of a near deadline').isDisabled()).toBe(true);
    expect(await page.getByText('Your changes are listed here.').count()).toBe(0);
    await page.goto(`${grid.origin}/sites/${grid.north}`);
    await title(page, /north/).waitFor();
    expect(await page.getByRole('button', { name: 'Drain…' }).count()).toBe(0);
    // Others' jobs are not shown.
    await goOn(page, 'My jobs');
    await page.getByText('No jobs yet').waitFor();

    // An operator sees whose a job is, but not by which keys.
    const operator = await grid.user('looker', 'OPERATOR');
    const looking = await go(`/users/${id}`, { key: operator.key });
    await title(looking.page, /^reader/).waitFor();
    expect(await looking.page.getByText('API keys').count()).toBe(0);
  });

  test('users, keys, datasets, licenses and sites are made and changed', async () => {
    const { page } = await go('/users');
    await page.getByRole('button', { name: 'Add a user' }).click();
    await page.getByLabel('Name', { exact: true }).fill('newcomer');
    await page.getByRole('button', { name: 'Add', exact: true }).click();
    await title(page, /^newcomer/).waitFor();
    await page.getByRole('button', { name: 'Create a key' }).click();
    await page.getByLabel('What it is for').fill('laptop');
    await page.getByRole('button', { name: 'Make it' }).click();
    const secret = (await page.locator('.secret').textContent()) ?? '';
    await page.getByRole('button', { name: 'I have saved it' }).click();
    const other = await visits.visit(`${grid.origin}/jobs`, { key: secret });
    await other.page.getByRole('button', { name: /Signed in as newcomer/ }).waitFor();
    await page.bringToFront();

    await goOn(page, 'Data');
    await page.getByRole('button', { name: 'Add', exact: true }).click();
    await page.getByLabel('Name', { exact: true }).fill('survey');
    await page.getByLabel('Size').fill('2500');
    await page.getByRole('checkbox', { name: 'north' }).click({ force: true });
    await page.getByRole('button', { name: 'Save' }).click();
    const row = page.getByRole('row', { name: /survey/ });
    await row.getByText('2.5 GB').waitFor();
    await row.getByText('north').waitFor();

    await grid.submit({ command: 'licensed', licenses: ['solver'], os: 'nowhere' });
    await goOn(page, 'Licenses');
    await page.getByRole('button', { name: 'Add a pool' }).click();
    await page.getByLabel('Kind').fill('solver');
    await page.getByLabel('Amount').fill('7');
    await page.getByRole('button', { name: 'Save' }).click();
    await page
      .getByRole('button', { name: /solver/ })
      .getByText('of 7')
      .waitFor();
    await page.getByText('1 waiting job requests it').waitFor();
    await page
      .getByRole('region', { name: 'Waiting jobs' })
      .getByRole('row', { name: /licensed/ })
      .waitFor();

    await goOn(page, 'Sites');
    await page.getByRole('button', { name: 'Add a site' }).click();
    await page.getByLabel('Name', { exact: true }).fill('south');
    await page.getByRole('button', { name: 'Add it' }).click();
    await title(page, /^south/).waitFor();
    await page.getByRole('button', { name: 'Machines' }).click();
    await page.getByRole('button', { name: 'Add', exact: true }).click();
    await page.getByLabel('How many').fill('3');
    await page.getByRole('button', { name: 'Add 3 machines' }).click();
    await page.getByRole('row', { name: /node-3/ }).waitFor();
  });

  test('webhooks are added, tried, disabled and removed on the page of their user', async () => {
    const caller = await grid.user('caller', 'USER');
    const { page } = await go(`/users/${caller.id}`, { key: caller.key });
    const card = page
      .getByRole('grid', { name: 'Webhooks' })
      .or(page.getByRole('table', { name: 'Webhooks' }));
    await page.getByText('No webhooks').waitFor();
    await page.getByRole('button', { name: 'Add a webhook' }).click();
    await page.getByLabel('What it is for').fill('pipeline');
    await page.getByLabel('Address').fill('https://127.0.0.1:9/jobs');
    await page.getByRole('button', { name: 'Add it' }).click();
    expect(await page.locator('.secret').textContent()).toMatch(/^whsec_/);
    await page.getByRole('button', { name: 'I have saved it' }).click();
    const row = card.getByRole('row', { name: /pipeline/ });
    await row.getByText('completed, failed').waitFor();
    await row.getByRole('button', { name: 'Test' }).click();
    await page.getByText(/It failed: 127.0.0.1 is a local/).waitFor();
    await row.getByRole('button', { name: 'Disable' }).click();
    await row.getByText('Disabled').waitFor();
    await row.getByRole('button', { name: 'Enable' }).click();
    await row.getByText('Enabled').waitFor();
    await row.getByRole('button', { name: 'Remove' }).click();
    await page.getByRole('button', { name: 'Remove it' }).click();
    await page.getByText('No webhooks').waitFor();
  });

  test('what was used is added up by user, site and application, and written to a file', async () => {
    const [id] = await grid.submit({
      command: 'used',
      application: '=used',
      cpusPerTask: 8,
      estimateS: 1,
      ...SIMULATED,
    });
    await expect
      .poll(
        async () =>
          (await grid.ask<{ job: { state: string } }>('query ($id: ID!) { job(id: $id) { state } }', { id }))
            .job.state,
      )
      .toBe('COMPLETED');
    const { page } = await go('/usage');
    await page.getByRole('img', { name: 'CPUs in use over time' }).locator('canvas').waitFor();
    await page
      .getByRole('row', { name: /^admin/ })
      .getByText('CPU h')
      .waitFor();
    await page.getByRole('radio', { name: 'Sites' }).click();
    await page
      .getByRole('row', { name: /^north/ })
      .getByText('CPU h')
      .waitFor();
    await page.getByRole('radio', { name: 'Applications' }).click();
    await page
      .getByRole('row', { name: /^=used/ })
      .getByText('CPU h')
      .waitFor();
    const [file] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('button', { name: 'CSV' }).click(),
    ]);
    let text = '';
    for await (const part of await file.createReadStream()) text += part;
    expect(text).toMatch(/^Application,CPU hours,Runs,Ended jobs,Failed jobs,Mean wait \(s\)\r\n/);
    // What a spreadsheet would run is a text.
    expect(text).toMatch(/^'=used,0\.00\d+,1,1,0,[\d.]+\r$/m);
  });

  test('the explorer at the service’s own address runs queries and subscriptions with the key of the session', async () => {
    const { page } = await go('/graphql');
    await page.getByRole('heading', { name: 'GraphQL explorer' }).waitFor();
    const run = page.getByRole('button', { name: 'Execute query (Ctrl-Enter)' });
    // GraphiQL takes a moment until its panes are there, and to learn which operation a tab has: until then its button does nothing.
    const answersWith = (text: string) =>
      expect
        .poll(
          async () => {
            if (await run.isVisible()) await run.click();
            await grid.submit({ command: 'true', os: process.platform });
            return page.locator('.graphiql-response').textContent();
          },
          { interval: 1_000 },
        )
        .toContain(text);
    await answersWith('"jobs"');
    await page.getByRole('tab', { name: 'News' }).click();
    await answersWith('jobUpdated');
  });
}
