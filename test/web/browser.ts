/** A real Chromium on the real service: what a person sees and does. */
import { existsSync } from 'node:fs';
import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { PATIENCE_MS } from '../support/patience.js';

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

/** Whether a browser can be started on this machine. */
export const chromiumFound = CHROMIUM !== undefined;

export const launchChromium = (): Promise<Browser> =>
  chromium.launch({ executablePath: CHROMIUM, args: ARGS });

export interface Visitor {
  readonly page: Page;
  /** What went wrong in the page, and what it asked of others than the service. */
  readonly faults: readonly string[];
}

export interface VisitOptions {
  /** Signed in already. */
  key?: string;
  /** Address of another service that pages may ask. */
  provider?: string;
}

export interface Visits {
  /** A window to work with, as good as new. */
  visit(url: string, options?: VisitOptions): Promise<Visitor>;
}

/** A suite that needs Chromium: runs where it is found, and says so where it is not. No page of it may have a fault. */
export function describeWithChromium(name: string, suite: (visits: Visits) => void): void {
  describe(name, () => {
    if (!chromiumFound) {
      test('is not run: chromium is not installed (apt-get install chromium)', () => {});
      return;
    }
    let browser: Browser;
    let context: BrowserContext;
    const windows = new Set<Window>();
    beforeAll(async () => {
      browser = await launchChromium();
      context = await browser.newContext({
        viewport: { width: 1280, height: 800 },
        // Half the time of a page that moves is spent on drawing it.
        reducedMotion: 'reduce',
      });
    });
    afterAll(() => browser?.close());
    afterEach(async () => {
      const used = [...windows].filter((window) => window.inUse);
      const faults = used.flatMap((window) => window.faults);
      await Promise.all(used.map((window) => window.leave()));
      await context.clearCookies();
      expect(faults).toEqual([]);
    });

    suite({
      async visit(url, options = {}) {
        const free = [...windows].find((one) => !one.inUse && !one.page.isClosed());
        const window = free ?? new Window(await context.newPage());
        windows.add(window);
        await window.open(url, options);
        return window;
      },
    });
  });
}

/** A small file of the service's: a window that waits there for the next test keeps its process and what it has loaded. */
const PARKED = '/portal.json';

/** A window that tests use one after the other. Nothing of what one has left in it is there for the next. */
class Window implements Visitor {
  faults: string[] = [];
  inUse = false;
  private origin = '';
  private known: string[] = [];

  constructor(readonly page: Page) {
    page.setDefaultTimeout(PATIENCE_MS);
    page.on('pageerror', (error) => this.faults.push(error.message));
    page.on('console', (message) => {
      // What the service refuses, or a service that is away, is told by the browser too.
      if (message.type() === 'error' && !/Failed to load resource|WebSocket connection/.test(message.text()))
        this.faults.push(message.text());
    });
    page.on('request', (request) => {
      const target = new URL(request.url());
      if (/^(http|ws)/.test(target.protocol) && !this.known.includes(target.host))
        this.faults.push(`asked ${request.url()}`);
    });
  }

  async open(url: string, { key, provider }: VisitOptions): Promise<void> {
    this.inUse = true;
    this.faults = [];
    this.known = [url, provider ?? url].map((one) => new URL(one).host);
    const { origin } = new URL(url);
    if (origin !== this.origin) await this.page.goto(origin + PARKED);
    this.origin = origin;
    // Behind another one it would be drawn once a second.
    await this.page.bringToFront();
    if (key) await this.page.evaluate(`sessionStorage.setItem('switchyard.key', ${JSON.stringify(key)})`);
    await this.page.goto(url);
  }

  async leave(): Promise<void> {
    this.inUse = false;
    if (this.page.isClosed()) return;
    await this.page.unrouteAll({ behavior: 'ignoreErrors' });
    // A service that has ended leaves nowhere to wait at.
    const parked = await this.page.goto(this.origin + PARKED).catch(() => null);
    if (!parked) return this.page.close();
    await this.page.evaluate('sessionStorage.clear(); localStorage.clear()');
  }
}

/** Waits until the page has news coming in: what happens from now on is seen. */
export const live = (page: Page): Promise<unknown> =>
  page.locator('[data-connection="open"]').first().waitFor({ state: 'attached' });
