// `npm run screenshots [-- --only jobs --role user --theme dark --size narrow --url URL --key KEY]`: every page of the portal as a picture in
// screenshots/ (git-ignored), with a grid that works, as each role sees it: what it may not see is pictured as the portal says so. Starts a service
// of its own with the demo, unless a URL is given: then as the user of the key.
// With `--full`: the whole length of each page, not what the window shows. With `--readme`: the pictures of the README anew.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { chromium } from 'playwright-core';
import { fillDemo } from './screenshots-data.mjs';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const { values: options } = parseArgs({
  options: {
    only: { type: 'string', multiple: true },
    role: { type: 'string', multiple: true, default: ['admin', 'operator', 'user'] },
    theme: { type: 'string', multiple: true, default: ['light', 'dark'] },
    size: { type: 'string', multiple: true, default: ['wide', 'narrow'] },
    out: { type: 'string', default: join(root, 'screenshots') },
    url: { type: 'string' },
    key: { type: 'string' },
    chromium: { type: 'string', default: '/usr/bin/chromium' },
    warmup: { type: 'string', default: '120' },
    full: { type: 'boolean', default: false },
    readme: { type: 'boolean', default: false },
  },
});
/** The README's pictures, by the page that each shows. */
const README = { overview: 'overview', 'job-waiting': 'why', 'site-schedule': 'schedule', policy: 'policy' };
if (options.readme) {
  options.only = Object.keys(README);
  options.role = ['admin'];
  options.theme = ['light'];
  options.size = ['wide'];
  options.out = join(root, 'docs/images');
}
const SIZES = {
  wide: { width: 1440, height: 900 },
  narrow: { width: 390, height: 844 },
  wall: { width: 2560, height: 1440 },
};

const service = options.url
  ? { url: options.url, key: options.key, stop: async () => {} }
  : await startService();
try {
  const { keys, ids } = await fillDemo(service.url, service.key, {
    fresh: !options.url,
    warmupS: Number(options.warmup),
  });
  await takeAll(service.url, keys, ids);
} finally {
  await service.stop();
}

async function startService() {
  const home = mkdtempSync(join(tmpdir(), 'switchyard-screenshots-'));
  const child = spawn(process.execPath, [join(root, 'bin/switchyard.js'), 'serve', '--demo'], {
    env: { ...process.env, SWITCHYARD_HOME: home, PORT: '0' },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let output = '';
  let url;
  for await (const part of child.stdout) {
    output += part;
    url = /runs at (\S+)\/graphql[\s\S]*restart keeps everything/.exec(output)?.[1];
    if (url) break;
  }
  child.stdout.resume();
  return {
    url,
    key: readFileSync(join(home, 'admin.key'), 'utf8').trim(),
    async stop() {
      child.kill('SIGTERM');
      await once(child, 'close');
      rmSync(home, { recursive: true, force: true });
    },
  };
}

/** Pages by name: their addresses, and what is done there before the picture is taken. */
function pagesOf(ids) {
  return {
    overview: {
      path: '/',
      async before(page) {
        // Users who have jobs come to these first.
        if (!page.url().endsWith('/jobs')) return;
        await page.keyboard.press('Control+k');
        await page.keyboard.type('Overview');
        await page.keyboard.press('Enter');
        await page.getByRole('heading', { name: 'Overview', level: 1 }).waitFor();
        await page.waitForTimeout(700);
      },
    },
    jobs: { path: '/jobs' },
    'jobs-selected': {
      path: '/jobs?states=QUEUED,DISPATCHED',
      async before(page) {
        const boxes = page.getByRole('grid').getByRole('checkbox');
        for (let i = 0; i < 3; i++) await boxes.nth(i).click({ force: true });
      },
    },
    'jobs-cancel': {
      path: '/jobs?states=QUEUED,DISPATCHED',
      async before(page) {
        await page.getByRole('button', { name: 'All that match' }).click();
        await page.getByRole('menuitem', { name: /Cancel all/ }).click();
        await page.getByRole('dialog').getByText('will be canceled').waitFor();
      },
    },
    'jobs-filter': {
      path: '/jobs?user=&application=',
      async before(page) {
        await page.getByRole('button', { name: 'Filter' }).click();
      },
    },
    groups: { path: '/jobs?tab=groups' },
    group: { path: `/groups/${ids.group}` },
    graph: {
      path: '/graph?group=hindcast-1993',
      before: (page) => page.locator('canvas[data-laid-out=true]').waitFor(),
    },
    'job-ended': { path: `/jobs/${ids.ended}` },
    'job-failed': { path: `/jobs/${ids.failed}` },
    'job-waiting': {
      path: async () => `/jobs/${await ids.waiting()}`,
      before: (page) => page.locator('.lead').waitFor(),
    },
    'job-tasks': { path: `/jobs/${ids.tasks}` },
    'job-output': { path: `/jobs/${ids.output}` },
    submit: {
      path: '/submit',
      async before(page) {
        await page.getByLabel('Command', { exact: true }).fill('./climate --members 40 --resolution t255');
        await page.getByLabel('CPUs per task').fill('16');
        await page.getByText('Advanced placement').click();
        await page.getByLabel('Operating system').fill('simulated');
        await page.getByLabel('Architecture').fill('simulated');
        await page.getByText('Start, if no other job is submitted').waitFor();
      },
    },
    'submit-script': {
      path: '/submit',
      async before(page) {
        await page.getByRole('radio', { name: 'Script' }).click();
        await page.locator('.cm-editor').waitFor();
      },
    },
    sites: { path: '/sites' },
    'site-schedule': { path: `/sites/${ids.site}` },
    'site-queue': { path: `/sites/${ids.site}?tab=queue` },
    'site-calendar': { path: `/sites/${ids.calendar}?tab=calendar` },
    'site-machines': { path: `/sites/${ids.site}?tab=machines` },
    'site-agents': { path: `/sites/${ids.site}?tab=agents` },
    'site-settings': { path: `/sites/${ids.site}?tab=settings` },
    'site-drain': {
      path: `/sites/${ids.site}`,
      async before(page) {
        await page.getByRole('button', { name: 'Drain…' }).click();
      },
    },
    tree: { path: '/tree' },
    data: { path: '/data' },
    links: {
      path: '/data?tab=links',
      async before(page) {
        await page.locator('.matrix-cell:not(.unknown)').first().click();
      },
    },
    transfers: { path: '/data?tab=transfers' },
    licenses: { path: '/licenses' },
    usage: { path: '/usage' },
    ratios: { path: '/ratios?application=climate' },
    policy: {
      path: '/policy',
      async before(page) {
        await page.getByLabel('Weight of a near deadline').fill('2');
      },
    },
    'policy-history': { path: '/policy?tab=history' },
    simulator: { path: '/simulator' },
    'simulator-compared': {
      path: '/simulator',
      async before(page) {
        const boxes = page.getByRole('region', { name: 'What-ifs' }).getByRole('checkbox');
        for (let i = 0; i < 3; i++) await boxes.nth(i).click({ force: true });
        await page.locator('.curves canvas').first().waitFor();
      },
    },
    simulation: { path: `/simulator/${ids.simulation}` },
    users: { path: '/users' },
    user: { path: `/users/${ids.user}` },
    audit: { path: '/audit' },
    nowhere: { path: '/nowhere' },
    'quick-open': {
      path: '/',
      async before(page) {
        await page.keyboard.press('Control+k');
        await page.keyboard.type('s');
      },
    },
    explorer: {
      path: '/graphql',
      async before(page) {
        await page.locator('.graphiql-execute-button').click();
        await page.waitForTimeout(2500);
      },
    },
    'sign-in': { path: '/', signedOut: true },
    invitation: { path: `/#invitation=${ids.invitation}`, signedOut: true },
  };
}

async function takeAll(url, keys, ids) {
  mkdirSync(options.out, { recursive: true });
  const browser = await chromium.launch({
    executablePath: options.chromium,
    args: ['--no-sandbox', '--disable-gpu', '--disable-background-networking'],
  });
  const pages = Object.entries(pagesOf(ids)).filter(([name]) => options.only?.includes(name) ?? true);
  // Nobody has a role before signing in.
  const signedOut = pages.filter(([, page]) => page.signedOut);
  const signedIn = pages.filter(([, page]) => !page.signedOut);
  try {
    for (const [name, page] of signedOut) {
      const context = await browser.newContext();
      await take(context, url, page, name, name);
      await context.close();
    }
    for (const [role, key] of Object.entries(keys)) {
      if (!options.url && !options.role.includes(role)) continue;
      const context = await browser.newContext();
      // What a role lacks is not waited for long.
      if (role !== 'admin') context.setDefaultTimeout(5_000);
      await context.addInitScript((secret) => sessionStorage.setItem('switchyard.key', secret), key);
      for (const [name, page] of signedIn)
        await take(
          context,
          url,
          page,
          `${name} as ${role}`,
          options.readme ? README[name] : `${name}-${role}`,
        );
      await context.close();
    }
  } finally {
    await browser.close();
  }
}

/** All its looks of one visit. */
async function take(context, url, { path, before }, what, file) {
  const page = await context.newPage();
  await page.setViewportSize(SIZES[options.size[0]]);
  await page.emulateMedia({ colorScheme: options.theme[0] });
  page.on('pageerror', (error) => console.error(`${what}: ${error.message}`));
  page.on('console', (message) => {
    if (message.type() === 'error') console.error(`${what}: ${message.text()}`);
  });
  const address = typeof path === 'function' ? await path() : path;
  await page.goto(url + address, { waitUntil: 'networkidle', timeout: 15_000 }).catch(() => {});
  // What has come may ask for more.
  for (let i = 0; i < 2; i++) {
    await page
      .waitForFunction(
        () => document.querySelector('h1, .graphiql-container') && !document.querySelector('main .skeleton'),
        null,
        { timeout: 60_000 },
      )
      .catch(() => {});
    await page.waitForTimeout(500);
  }
  try {
    if (!(await page.getByText('This page is for ').isVisible())) await before?.(page);
  } catch (error) {
    console.error(`${what}: ${error.message.split('\n')[0]}`);
  }
  for (const size of options.size) {
    await page.setViewportSize(SIZES[size]);
    for (const theme of options.theme) {
      await page.emulateMedia({ colorScheme: theme });
      await page.waitForTimeout(600);
      const picture = join(options.out, `${options.readme ? file : `${file}-${theme}-${size}`}.png`);
      await page.screenshot({ path: picture, fullPage: options.full, timeout: 60_000 });
      console.log(picture);
    }
  }
  await page.close();
}
