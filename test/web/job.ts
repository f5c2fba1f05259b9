/** A job of several tasks, and the files that it leaves. */
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { pathToFileURL } from 'node:url';
import type { Page } from 'playwright-core';
import { expect, onTestFinished, test } from 'vitest';
import { openSimulatedSite } from '../../src/cli/simulated-site.js';
import { Client } from '../../src/client/index.js';
import { until } from '../cli/service.js';
import type { Visits } from './browser.js';
import type { Grid } from './service.js';

export function pageOfJob(visits: Visits, grid: Grid): void {
  test('shows its script as one, and finds words in what it wrote', async () => {
    const script = 'for i in 1 2 3; do\n  echo "Line $i $(printf %0300d 0)"\ndone\n';
    const [id] = await grid.submit({ command: 'sh', arguments: ['-c', script], os: process.platform });
    const { page } = await visits.visit(`${grid.origin}/jobs/${id}`, { key: grid.adminKey });
    await page.getByRole('heading', { level: 1, name: /Completed$/ }).waitFor();
    await page.getByText('sh -c …', { exact: true }).waitFor();
    const shown = page.getByRole('textbox', { name: 'Script' });
    await shown.getByText('echo', { exact: true }).waitFor();
    // Words of the language have their own color.
    const isColored = await page.evaluate(
      "(([line]) => getComputedStyle(line.querySelector('span')).color !== getComputedStyle(line).color)(document.querySelectorAll('.cm-line'))",
    );
    expect(isColored).toBe(true);

    const find = page.getByRole('searchbox', { name: 'Find in the output' });
    await find.fill('LINE');
    await page.getByText('1 of 3').waitFor();
    await find.press('Enter');
    await page.getByText('2 of 3').waitFor();
    expect(await page.locator('mark[aria-current]').textContent()).toBe('Line');
    await find.fill('.*');
    await page.getByText('Not found').waitFor();

    const isWide = (): Promise<boolean> =>
      page.evaluate(
        "((box) => box.scrollWidth > box.clientWidth)(document.querySelector('pre.terminal'))",
      ) as Promise<boolean>;
    expect(await isWide()).toBe(false);
    await page.getByText('Wrap lines').click();
    await expect.poll(isWide).toBe(true);
  });

  const go = (path: string) => visits.visit(grid.origin + path, { key: grid.adminKey });
  const rowOf = (page: Page, task: number) =>
    page.getByRole('table', { name: 'Tasks' }).getByRole('row', { name: new RegExp(`^${task} `) });

  test('keeps each run with its output and with what was decided; once ended, the job is run again as a copy', async () => {
    const [id] = await grid.submit({
      command: 'sh',
      arguments: ['-c', 'echo "this is run $SWITCHYARD_EPOCH"; exit $((SWITCHYARD_EPOCH < 2 ? 75 : 3))'],
      name: 'again',
      os: process.platform,
      retry: { maxRetries: 5, backoffS: 0, rules: [{ exitCodes: [{ from: 75, to: 75 }], action: 'RETRY' }] },
    });
    const [next] = await grid.submit({
      command: 'true',
      name: 'next',
      os: process.platform,
      needs: [{ of: [{ job: id }] }],
      onUnmet: 'HOLD',
    });
    const { page } = await go(`/jobs/${id}`);
    await page.getByRole('heading', { level: 1, name: /Failed/ }).waitFor();
    await page.locator('.terminal', { hasText: 'this is run 2' }).waitFor();
    await page
      .locator('.timeline li')
      .filter({ hasText: 'Ended, run 1' })
      .getByText('Nonzero exit code')
      .waitFor();
    await page
      .getByText(/^retry 1.* by retry rule 1$/)
      .first()
      .waitFor();
    await page.getByRole('button', { name: /Run 2/ }).click();
    await page.getByRole('option', { name: 'Run 1' }).click();
    await page.locator('.terminal', { hasText: 'this is run 1' }).waitFor();

    await page.getByRole('button', { name: 'Requeue', exact: true }).click();
    await page.getByRole('dialog').getByText('Ended jobs are rerun as copies').waitFor();
    await page.getByRole('button', { name: 'Requeue 1 job' }).click();
    const copy = page.locator('p', { hasText: 'Run again as' }).getByRole('link', { name: 'again' });
    await copy.click();
    await page.getByText('Run again in place of').waitFor();
    await page.getByRole('heading', { level: 1, name: /Failed/ }).waitFor();
    await page.getByRole('link', { name: 'next' }).click();
    await page.waitForURL(`${grid.origin}/jobs/${next}`);
    await page.locator('.bullets').getByRole('link', { name: 'again' }).first().waitFor();
    await page.getByRole('button', { name: 'Cancel', exact: true }).click();
    await page.getByRole('button', { name: 'Cancel 1 job' }).click();
  });

  test('says when what it waits for is expected, or why that is not known', async () => {
    const [first, held] = await grid.submit(
      { command: 'long', name: 'first', estimateS: 3_600, os: 'nowhere' },
      { command: 'long', name: 'kept back', estimateS: 60, held: true, os: 'nowhere' },
    );
    const [id] = await grid.submit({
      command: 'last',
      needs: [{ of: [{ job: first, condition: 'START' }, { job: held }] }],
    });
    const { page } = await go(`/jobs/${id}`);
    const until = page.locator('.card', { hasText: 'It waits until' }).getByRole('listitem');
    await until.filter({ hasText: 'kept back' }).getByText('expected time unknown: it is held').waitFor();
    await until.filter({ hasText: 'first' }).getByText('has started').waitFor();
    await grid.ask('mutation ($ids: [ID!]) { cancelJobs(input: { selection: { ids: $ids } }) { jobIds } }', {
      ids: [first, held],
    });
    await page.getByRole('heading', { level: 1, name: /Canceled/ }).waitFor();
  });

  test('has its tasks with what became of each, and the output of the one that is looked at', async () => {
    const [id] = await grid.submit({
      command: 'sh',
      arguments: [
        '-c',
        'echo "this is task $SWITCHYARD_TASK_INDEX"; [ "$SWITCHYARD_TASK_INDEX" = 0 ] || { echo "no data" >&2; exit 3; }; sleep 120',
      ],
      tasks: 2,
      estimateS: 120,
      onTaskFailure: 'CONTINUE',
      os: process.platform,
    });
    const { page } = await go(`/jobs/${id}`);
    await page.locator('.terminal', { hasText: 'this is task 0' }).waitFor();
    await rowOf(page, 0).getByText('Running').waitFor();
    await rowOf(page, 1).getByText('Failed· nonzero exit code').waitFor();
    expect(await rowOf(page, 1).getByRole('cell').nth(2).textContent()).toBe('3');

    await page.getByRole('button', { name: 'Output of task 1' }).click();
    await page.locator('.terminal', { hasText: 'this is task 1' }).waitFor();
    expect(new URL(page.url()).searchParams.get('task')).toBe('1');
    await page.getByRole('radio', { name: /^stderr/ }).click();
    await page.locator('.terminal', { hasText: 'no data' }).waitFor();

    await page.getByRole('button', { name: 'Cancel', exact: true }).click();
    await page.getByRole('button', { name: 'Cancel 1 job' }).click();
    await rowOf(page, 0)
      .getByText(/^Ended· canceled/)
      .waitFor();
    // Whoever comes later sees the task first that had failed.
    await page.goto(`${grid.origin}/jobs/${id}`);
    await page.getByRole('heading', { name: 'Output of task 1' }).waitFor();
    await page.getByLabel('Task', { exact: true }).fill('0');
    await page.getByRole('radio', { name: /^stdout/ }).click();
    await page.locator('.terminal', { hasText: 'this is task 0' }).waitFor();
  });

  test('says what the scheduler of its site calls it and says of it, and the page of the site what waits there', async () => {
    const { createSite } = await grid.ask<{ createSite: { site: { id: string } } }>(
      'mutation { createSite(input: { name: "alps", localPolicy: { kind: "external" } }) { site { id } } }',
    );
    const site = createSite.site.id;
    const { createUser } = await grid.ask<{ createUser: { user: { id: string } } }>(
      'mutation { createUser(input: { name: "agent-alps", role: AGENT }) { user { id } } }',
    );
    const { createApiKey } = await grid.ask<{ createApiKey: { secret: string } }>(
      'mutation ($input: CreateApiKeyInput!) { createApiKey(input: $input) { secret } }',
      { input: { userId: createUser.user.id, name: 'alps', siteId: site } },
    );
    const alps = new Client({ url: grid.service.url, key: createApiKey.secret });
    const measured = { cpus: 8, memoryMb: 100, os: 'alps', architecture: 'alps', benchmark: 100 };
    const { registerAgent } = await alps.request<{ registerAgent: { agent: { id: string } } }, object>(
      'mutation ($input: RegisterAgentInput!) { registerAgent(input: $input) { agent { id } } }',
      {
        input: {
          ...{ site, identity: 'alps', instance: '1', host: 'login', version: '1', protocol: 4 },
          machines: [{ name: 'n17', measured }],
        },
      },
    );
    const agent = registerAgent.agent.id;
    const load = { waitingJobs: 3, waitingS: 7200, waitingCpuS: 7200, busy: [] };
    await alps.request(
      'mutation ($site: ID!, $agent: ID!, $load: SiteLoadInput!) { reportLoad(site: $site, agent: $agent, load: $load) }',
      { site, agent, load: { ...load, busy: [{ machine: 'n17', cpus: 5, memoryMb: 0 }] } },
    );
    const [id] = await grid.submit({ command: 'true', os: 'alps', architecture: 'alps' });
    await until(
      () => grid.ask<{ job: { state: string } }>('query ($id: ID!) { job(id: $id) { state } }', { id }),
      ({ job }) => job.state === 'ASSIGNED',
    );
    const tell = (phase: string, local: object, more: object = {}) =>
      alps.request(
        'mutation ($site: ID!, $agent: ID!, $reports: [RunReportInput!]!) { reportRuns(site: $site, agent: $agent, reports: $reports) { results } }',
        {
          site,
          agent,
          reports: [{ job: id, epoch: 1, phase, at: new Date().toISOString(), local, ...more }],
        },
      );
    await tell('ACCEPTED', { id: '4711', state: 'PENDING (Resources)' });
    const { page } = await go(`/jobs/${id}`);
    await page.getByText('4711', { exact: true }).waitFor();
    await page.getByText('PENDING (Resources)', { exact: true }).waitFor();
    await tell('STARTED', { id: '4711', state: 'RUNNING', nodes: ['n17'] });
    await page.getByText('n17', { exact: true }).waitFor();
    await page.goto(`${grid.origin}/sites/${site}`);
    await page
      .locator('.figure', { hasText: 'Others in its scheduler' })
      .getByText('3', { exact: true })
      .waitFor();
    await page.locator('.figure', { hasText: 'CPUs in use' }).getByText(/^5/).waitFor();
    await tell('ENDED', { id: '4711' }, { cause: 'EXITED_ZERO', exitCode: 0 });
    await grid.ask(
      'mutation ($site: ID!) { drainSite(input: { siteId: $site }) { site { id } } removeSite(input: { siteId: $site }) { site { id } } }',
      {
        site,
      },
    );
  });

  test('has thousands of tasks, and only those in sight', async () => {
    const tasks = 3_000;
    const machine = { cpus: 1_000, memoryMb: 1, benchmark: 100, os: 'wide', architecture: 'wide' };
    const site = await openSimulatedSite(
      new Client({ url: grid.service.url, key: grid.adminKey }),
      'wide',
      () => ['a', 'b', 'c'].map((name) => ({ name, ...machine })),
      { speed: 1 },
    );
    const [id] = await grid.submit({ command: 'wide', tasks, estimateS: 600, os: 'wide' });
    const { page } = await go(`/jobs/${id}`);
    await rowOf(page, 0).getByText('Running').waitFor();
    await page.getByText('3 000 tasks on 3 machines').waitFor();
    const rows = () => page.getByRole('table', { name: 'Tasks' }).getByRole('row').count();
    expect(await rows()).toBeLessThan(60);
    await page.getByRole('region', { name: 'Tasks' }).focus();
    await page.keyboard.press('End');
    await rowOf(page, tasks - 1)
      .getByRole('cell', { name: 'c', exact: true })
      .waitFor();
    expect(await rows()).toBeLessThan(60);
    await page.getByLabel('Task', { exact: true }).fill('1234');
    await page.getByRole('heading', { name: 'Output of task 1234' }).waitFor();
    await grid.ask('mutation ($ids: [ID!]) { cancelJobs(input: { selection: { ids: $ids } }) { jobIds } }', {
      ids: [id],
    });
    await page.getByRole('heading', { level: 1, name: /Canceled$/ }).waitFor();
    await site.close();
  });

  test('has each step of its way with its time, bringing its data too', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'switchyard-data-'));
    onTestFinished(() => rmSync(directory, { recursive: true }));
    const location = join(directory, 'table');
    writeFileSync(location, Buffer.alloc(2_000_000));
    const { createDataset } = await grid.ask<{ createDataset: { dataset: { id: string } } }>(
      'mutation ($input: DatasetInput!) { createDataset(input: $input) { dataset { id } } }',
      {
        input: {
          name: 'table',
          sizeMb: 2,
          replicas: [grid.north],
          locations: [{ site: grid.north, location: pathToFileURL(location).href }],
        },
      },
    );
    const [id] = await grid.submit({
      command: 'true',
      inputs: [{ dataset: createDataset.dataset.id }],
      os: process.platform,
    });
    const { page } = await go(`/jobs/${id}`);
    await page.getByRole('heading', { level: 1, name: /Completed$/ }).waitFor();
    const steps = page.locator('.timeline li');
    await steps.filter({ hasText: 'Staging its data' }).getByText('2 MB of 2 MB moved').waitFor();
    expect(await steps.locator('.strong').allTextContents()).toEqual([
      'Submitted',
      'Sent to a site',
      'Assigned',
      'Staging its data',
      'Running',
      'Completed',
    ]);

    // What an agent tells after the end is shown too: nothing of the job's state changes with it. First its own last word, which
    // may come later than the run's end.
    interface Staged {
      job: { runs: { staging: { endedAt: string | null } | null }[] };
    }
    await until(
      () => grid.ask<Staged>('query ($id: ID!) { job(id: $id) { runs { staging { endedAt } } } }', { id }),
      ({ job }) => job.runs.at(-1)?.staging?.endedAt != null,
    );
    const { job } = await grid.ask<{ job: { epoch: number; endedAt: string; site: { id: string } } }>(
      'query ($id: ID!) { job(id: $id) { epoch endedAt site { id } } }',
      { id },
    );
    const key = readFileSync(join(grid.home, 'agent-local.key'), 'utf8').trim();
    await new Client({ url: grid.service.url, key }).request(
      'mutation ($site: ID!, $reports: [StagingReportInput!]!) { reportStaging(site: $site, reports: $reports) }',
      {
        site: job.site.id,
        reports: [
          {
            job: id,
            epoch: job.epoch,
            beganAt: job.endedAt,
            endedAt: job.endedAt,
            totalMb: 2,
            movedMb: 1,
          },
        ],
      },
    );
    await steps.filter({ hasText: 'Staging its data' }).getByText('1 MB of 2 MB moved').waitFor();
  });

  test('has the files that were to be kept, and hands them over as they are; others come from URLs and go to them', async () => {
    const sent = new Map<string, string>();
    const others = createServer(async (request, response) => {
      if (request.method === 'PUT') sent.set(request.url!, await text(request));
      response.end('mesh of 8');
    }).listen(0, '127.0.0.1');
    await once(others, 'listening');
    onTestFinished(() => void others.close());
    const server = `http://127.0.0.1:${(others.address() as AddressInfo).port}`;
    const { page } = await go('/submit');
    await page
      .getByLabel('Command', { exact: true })
      .fill(
        "echo kept; mkdir out; printf 'a,b\\n1,2\\n' > out/table.csv; head -c 2500 /dev/zero > 'out/raw data'; wc -c < mesh.dat > size",
      );
    await page.getByText('Name, data, environment and more').click();
    await page.getByLabel('Download from URLs').fill(`${server}/mesh.dat?sign=a\n`);
    await page.getByLabel('Upload to URLs').fill(`size=${server}/size?sign=b=\nsize`);
    await page.getByRole('button', { name: 'Submit the job' }).click();
    await page
      .getByText(/^Accepted: PATH=URL/)
      .first()
      .waitFor();
    await page.getByLabel('Upload to URLs').fill(`size=${server}/size?sign=b=\n`);
    await page.getByLabel('Files to keep').fill('out/*.csv\nout/raw data\n');
    // Answers that take longer than the page waits before it asks again are shown all the same.
    await page.route('**/graphql', async (route) => {
      if (route.request().postData()?.includes('query JobOutput'))
        await new Promise((resolve) => setTimeout(resolve, 2_200));
      await route.fallback();
    });
    await page.getByRole('button', { name: 'Submit the job' }).click();
    await page.getByRole('heading', { level: 1, name: /Completed$/ }).waitFor();
    const files = page.getByRole('table', { name: 'Files' });
    await files
      .getByRole('row', { name: /out\/raw data/ })
      .getByText('2.5 kB')
      .waitFor();
    const contentOf = async (path: string): Promise<Buffer> => {
      const [download] = await Promise.all([
        page.waitForEvent('download'),
        page.getByRole('button', { name: `Download ${path}` }).click(),
      ]);
      expect(download.suggestedFilename()).toBe(path.split('/').at(-1));
      const parts: Buffer[] = [];
      for await (const part of await download.createReadStream()) parts.push(part as Buffer);
      return Buffer.concat(parts);
    };
    expect(String(await contentOf('out/table.csv'))).toBe('a,b\n1,2\n');
    expect(await contentOf('out/raw data')).toEqual(Buffer.alloc(2500));
    await page.locator('.terminal', { hasText: 'kept' }).waitFor();
    expect([...sent]).toEqual([['/size?sign=b=', '9\n']]);
    await page.getByText(`${server}/mesh.dat?sign=a`, { exact: true }).waitFor();
    await page.getByText(`size to ${server}/size?sign=b=`, { exact: true }).waitFor();

    await page.getByRole('button', { name: 'Submit again' }).click();
    await page.locator('.cm-content', { hasText: '"path": "out/*.csv"' }).waitFor();
  });
}
