/** Every page, light and dark: whether people who cannot see or point well can use it. */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { Page } from 'playwright-core';
import { beforeAll, expect, onTestFinished, test } from 'vitest';
import { until } from '../cli/service.js';
import type { Visits } from './browser.js';
import { type Grid, SIMULATED } from './service.js';

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** A change of colors is over by then, however busy the machine is. */
const LASTING_MS = 20_000;

const CONTRAST = { runOnly: ['color-contrast'] };

interface Finding {
  id: string;
  help: string;
  nodes: string[];
}

export function everyPage(visits: Visits, grid: Grid): void {
  let paths: Record<string, string> = {};

  beforeAll(async () => {
    const [ended, , waiting, , tasks] = await grid.submit(
      {
        command: 'sh',
        arguments: ['-c', 'echo out; echo err >&2; exit 3'],
        application: 'failing',
        os: process.platform,
      },
      {
        command: 'model',
        application: 'model',
        cpusPerTask: 4,
        estimateS: 1,
        simulatedIoS: 0.3,
        ...SIMULATED,
      },
      { command: 'wide', tasks: 5, cpusPerTask: 8, estimateS: 60, ...SIMULATED },
      { command: 'model', application: 'model', cpusPerTask: 8, estimateS: 900, ...SIMULATED },
      { command: 'pair', tasks: 2, cpusPerTask: 4, estimateS: 900, ...SIMULATED },
    );
    const { submitJobGroup } = await grid.ask<{ submitJobGroup: { jobGroup: { id: string } } }>(
      'mutation ($template: JobInput!) { submitJobGroup(input: { name: "group", count: 3, template: $template }) { jobGroup { id } } }',
      { template: { command: 'member', cpusPerTask: 2, estimateS: 2, ...SIMULATED } },
    );
    const { sites, users } = await grid.ask<{
      sites: { nodes: { id: string }[] };
      users: { nodes: { id: string }[] };
    }>('{ sites { nodes { id } } users { nodes { id } } }');
    const elsewhere = sites.nodes.find(({ id }) => id !== grid.north)!.id;
    // What it reads is on its way for a long time.
    await grid.submit({ command: 'reader', inputs: [{ sizeMb: 1e6, site: elsewhere }], ...SIMULATED });
    await grid.ask('mutation ($input: DatasetInput!) { createDataset(input: $input) { dataset { id } } }', {
      input: { name: 'looked-at', sizeMb: 100, replicas: [grid.north] },
    });
    await grid.ask(
      'mutation ($links: [LinkInput!]!) { setLinkValues(input: { links: $links }) { links { bandwidthMbPerS } } }',
      {
        links: [{ from: sites.nodes[0]!.id, to: sites.nodes[1]!.id, bandwidthMbPerS: 120, rttS: 0.01 }],
      },
    );
    await grid.ask(
      'mutation ($input: CreateLicenseInput!) { createLicense(input: $input) { license { id } } }',
      {
        input: { kind: 'viewer', copies: 2 },
      },
    );
    await grid.ask('mutation ($input: CreateHoldInput!) { createHold(input: $input) { hold { id } } }', {
      input: {
        kind: 'MAINTENANCE',
        siteId: grid.north,
        name: 'license-server',
        reason: 'a new version',
        shared: [{ kind: 'viewer', amount: 1 }],
        from: '2037-01-01T00:00:00Z',
        to: '2037-01-02T12:00:00Z',
      },
    });
    const { policy } = await grid.ask<{ policy: { document: object } }>('{ policy { document } }');
    const { createSimulation } = await grid.ask<{ createSimulation: { simulation: { id: string } } }>(
      'mutation ($input: CreateSimulationInput!) { createSimulation(input: $input) { simulation { id } } }',
      {
        input: {
          candidate: { ...policy.document, dispatch: { kind: 'round-robin' } },
          from: new Date(Date.now() - 3_600_000).toISOString(),
          to: new Date(Date.now() + 1_000).toISOString(),
          acceptDistance: true,
        },
      },
    );
    await until(
      () =>
        grid.ask<{ simulation: { state: string } }>('query ($id: ID!) { simulation(id: $id) { state } }', {
          id: createSimulation.simulation.id,
        }),
      ({ simulation }) => simulation.state === 'DONE',
    );
    paths = {
      overview: '/',
      jobs: '/jobs',
      groups: '/jobs?tab=groups',
      group: `/groups/${submitJobGroup.jobGroup.id}`,
      graph: `/graph?bulk=${submitJobGroup.jobGroup.id}`,
      'a job that ended': `/jobs/${ended}`,
      'a job that waits': `/jobs/${waiting}`,
      'a job of tasks': `/jobs/${tasks}`,
      submit: '/submit',
      sites: '/sites',
      schedule: `/sites/${grid.north}`,
      queue: `/sites/${grid.north}?tab=queue`,
      calendar: `/sites/${grid.north}?tab=calendar`,
      machines: `/sites/${grid.north}?tab=machines`,
      agents: `/sites/${grid.north}?tab=agents`,
      settings: `/sites/${grid.north}?tab=settings`,
      tree: '/tree',
      data: '/data',
      links: '/data?tab=links',
      transfers: '/data?tab=transfers',
      licenses: '/licenses',
      usage: '/usage',
      ratios: '/ratios?application=model',
      policy: '/policy',
      history: '/policy?tab=history',
      simulator: '/simulator',
      simulation: `/simulator/${createSimulation.simulation.id}`,
      users: '/users',
      user: `/users/${users.nodes[0]!.id}`,
      audit: '/audit',
      'no such page': '/nowhere',
    };
  });

  /** What was found is picked out there: all that axe has to say of a page takes longer to hand over than to find. */
  const findingsOf = async (
    page: Page,
    name: string,
    place: 'html' | 'main',
    options: object = {},
  ): Promise<string[]> => {
    const findings = (await page.evaluate(
      `axe.run('${place}', ${JSON.stringify({ resultTypes: ['violations'], ...options })}).then(({ violations }) =>
        violations.map(({ id, help, nodes }) => ({ id, help, nodes: nodes.map(({ html }) => html.slice(0, 120)) })))`,
    )) as Finding[];
    return findings.map(({ id, help, nodes }) => `${name}: ${id} (${help}): ${nodes.join(' | ')}`);
  };

  const tooWide = async (page: Page, name: string, pixels: number): Promise<string[]> => {
    const width = (await page.evaluate('document.documentElement.scrollWidth')) as number;
    const hidden = (await page.evaluate(`[...document.querySelectorAll('.table-frame .button')]
      .filter((button) => button.getBoundingClientRect().right > button.closest('.table-frame').getBoundingClientRect().right + 1)
      .map((button) => button.textContent)`)) as string[];
    // What can be done with a row stays in sight, over the columns for which there is no room.
    const covered =
      (await page.evaluate(`[...document.querySelectorAll('.table-frame:has(td:last-child .button)')]
      .filter((frame) => frame.scrollWidth > frame.clientWidth + 1)
      .map((frame) => frame.ariaLabel + ' by ' + (frame.scrollWidth - frame.clientWidth))`)) as string[];
    return [
      ...(width > pixels ? [`${name}: ${width} pixels wide`] : []),
      ...hidden.map((button) => `${name}: ${button} cannot be seen without scrolling`),
      ...covered.map((table) => `${name}: buttons cover columns of ${table} pixels`),
    ];
  };

  /** A page that is changing its colors or its size is nobody's: what is wrong has to stay so. */
  async function lasting(page: Page, look: () => Promise<string[]>): Promise<string[]> {
    let found = await look();
    for (const until = Date.now() + LASTING_MS; found.length > 0 && Date.now() < until; ) {
      await page.waitForTimeout(100);
      found = await look();
    }
    return found;
  }

  /** As a link would, without loading anew. */
  async function goTo(page: Page, path: string): Promise<void> {
    await page.evaluate(
      `history.pushState({}, '', ${JSON.stringify(path)}); dispatchEvent(new PopStateEvent('popstate'))`,
    );
    await page.locator(`main[data-shows=${JSON.stringify(path)}]`).waitFor();
    await page.locator('main .skeleton').first().waitFor({ state: 'detached' });
    await page.getByRole('heading', { level: 1 }).waitFor();
  }

  test('has no finding of axe, light or dark', async () => {
    const findings: string[] = [];
    const { page } = await visits.visit(`${grid.origin}/`, { key: grid.adminKey });
    await page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor();
    await page.evaluate(axe);
    for (const [name, path] of Object.entries(paths)) {
      // What stands around all pages is the same around each.
      const place = name === 'overview' ? 'html' : 'main';
      await goTo(page, path);
      const title = await page.title();
      if (!/^\S.* · Switchyard$/.test(title)) findings.push(`${name}: its title is ${title}`);
      findings.push(...(await lasting(page, () => findingsOf(page, name, place))));
      await page.emulateMedia({ colorScheme: 'dark' });
      findings.push(...(await lasting(page, () => findingsOf(page, `${name}, dark`, place, CONTRAST))));
      await page.emulateMedia({ colorScheme: 'light' });
    }
    expect(findings, findings.join('; ')).toEqual([]);
  });

  test.each(['ADMIN', 'OPERATOR', 'USER'])(
    'for the role %s is no wider than a phone, where buttons of tables are in sight and cover nothing',
    async (role) => {
      const { key } = await grid.user(`narrow-${role.toLowerCase()}`, role);
      const { page } = await visits.visit(`${grid.origin}/sites`, { key });
      await page.getByRole('heading', { level: 1, name: 'Sites' }).waitFor();
      await page.setViewportSize({ width: 360, height: 740 });
      onTestFinished(() => page.setViewportSize({ width: 1280, height: 800 }));
      const findings: string[] = [];
      for (const [name, path] of Object.entries(paths)) {
        // Of another user: to follow it is a fault.
        if (role === 'USER' && name === 'group') continue;
        await goTo(page, path);
        findings.push(...(await lasting(page, () => tooWide(page, name, 360))));
      }
      expect(findings, findings.join('; ')).toEqual([]);
    },
  );

  /** What nothing has to be asked for; and tabs say it as their pages do. */
  const isStill = (name: string, path: string): boolean =>
    ['submit', 'no such page'].includes(name) || path.includes('?tab=');

  test('says that it is loading, what has gone wrong, and goes on when it is asked to', async () => {
    const { page } = await visits.visit(`${grid.origin}/nowhere`, { key: grid.adminKey });
    let answers: 'later' | 'never' | 'now' = 'later';
    let held: (() => void)[] = [];
    await page.route('**/graphql', async (route) => {
      if (route.request().postData()?.includes('query Viewer')) return route.fallback();
      if (answers === 'later') await new Promise<void>((resolve) => held.push(resolve));
      await (answers === 'now' ? route.fallback() : route.abort()).catch(() => {});
    });
    const findings: string[] = [];
    for (const [name, path] of Object.entries(paths)) {
      if (isStill(name, path)) continue;
      const misses = (selector: string): Promise<boolean> =>
        page
          .locator(`main ${selector}`)
          .first()
          .waitFor()
          .then(
            () => false,
            () => true,
          );
      answers = 'later';
      held = [];
      await page.goto(grid.origin + path);
      if (await misses('.skeleton')) findings.push(`${name}: does not say that it is loading`);
      answers = 'never';
      for (const release of held) release();
      if (await misses('[role=alert]')) findings.push(`${name}: does not say what has gone wrong`);
      answers = 'now';
      const goesOn = async (): Promise<number> => {
        const again = page.getByRole('button', { name: 'Try again' });
        if ((await again.count()) > 0) await again.first().click({ timeout: 1_000 });
        return page.locator('main [role=alert]').count();
      };
      await until(
        () => goesOn().catch(() => 1),
        (alerts) => alerts === 0,
      );
    }
    expect(findings, findings.join('; ')).toEqual([]);
  });
}
