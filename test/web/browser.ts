/** A real Chromium on the real service: what a person sees and does. */
import { existsSync } from 'node:fs';
import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';

const CHROMIUM = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].find((path) =>
  existsSync(path),
);

/** Without these its own connections would be refused, many at a time, where there is no internet. */
const ARGS = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];

export interface Visitor {
  page: Page;
  context: BrowserContext;
  /** What went wrong in the page, and what it asked of others than the service. */
  faults: string[];
}

export interface Visits {
  /** A new window. `key`: signed in already. */
  visit(
    url: string,
    options?: {
      key?: string;
      theme?: 'light' | 'dark';
      width?: number;
      height?: number;
      /** Address of another service that pages may ask. */
      provider?: string;
    },
  ): Promise<Visitor>;
}

/** A suite that needs Chromium: runs where it is found, and says so where it is not. No page of it may have a fault. */
export function describeWithChromium(name: string, suite: (visits: Visits) => void): void {
  describe(name, () => {
    if (!CHROMIUM) {
      test('is not run: chromium is not installed (apt-get install chromium)', () => {});
      return;
    }
    let browser: Browser;
    let open: Visitor[] = [];
    beforeAll(async () => {
      browser = await chromium.launch({ executablePath: CHROMIUM, args: ARGS });
    });
    afterAll(() => browser?.close());
    afterEach(async () => {
      const faults = open.flatMap((visitor) => visitor.faults);
      await Promise.all(open.map(({ context }) => context.close()));
      open = [];
      expect(faults).toEqual([]);
    });

    suite({
      async visit(url, { key, theme = 'light', width = 1280, height = 800, provider } = {}) {
        const context = await browser.newContext({ viewport: { width, height }, colorScheme: theme });
        if (key) {
          // Once: a later sign-out must hold.
          await context.addInitScript({
            content: `if (!sessionStorage.getItem('test.signed-in')) {
              sessionStorage.setItem('switchyard.key', ${JSON.stringify(key)});
              sessionStorage.setItem('test.signed-in', 'yes');
            }`,
          });
        }
        const page = await context.newPage();
        page.setDefaultTimeout(20_000);
        const faults: string[] = [];
        const known = [url, provider ?? url].map((one) => new URL(one).host);
        page.on('pageerror', (error) => faults.push(error.message));
        page.on('console', (message) => {
          // What the service refuses, or a service that is away, is told by the browser too.
          if (
            message.type() === 'error' &&
            !/Failed to load resource|WebSocket connection/.test(message.text())
          )
            faults.push(message.text());
        });
        page.on('request', (request) => {
          const target = new URL(request.url());
          if (/^(http|ws)/.test(target.protocol) && !known.includes(target.host))
            faults.push(`asked ${request.url()}`);
        });
        const visitor = { page, context, faults };
        open.push(visitor);
        await page.goto(url);
        return visitor;
      },
    });
  });
}

/** Waits until the page has news coming in: what happens from now on is seen. */
export const live = (page: Page): Promise<unknown> =>
  page.locator('[data-connection="open"]').first().waitFor({ state: 'attached' });
