/** The portal in a real Chromium, with 100 000 jobs in the service and a thousand events a second. */
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { getPriority, setPriority } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core';
import { type Bench, type Measured, median, sideBySide, sized, spreadOf } from './measure.js';
import { Service } from './service.js';

const CHROMIUM = '/usr/bin/chromium';
const JOBS = sized(100_000, 500);
/**
 * A thousand events a second that leave the processors to the portal: of each job that comes five are told (submitted, dispatched,
 * assigned, running, completed), of each that is given another boost one. A list is told of both in the same way, with the job as it is
 * then; whole lives alone would cost the service several times as much, and measure it instead.
 */
const LIVES_PER_S = 40;
const CHANGES_PER_S = 800;
const TICK_MS = 250;
const WEIGH_MS = 200;
const MINUTES = Number(process.env.BENCH_PORTAL_MINUTES ?? sized(10, 3));
const MINUTE_MS = sized(60_000, 3_000);

/** Milliseconds from the beginning of the page until the first jobs can be read. */
const FIRST_ROWS = `new Promise((done) => {
  const look = () => document.querySelectorAll('[role=grid] [role=row] a').length > 10 ? done(performance.now()) : requestAnimationFrame(look);
  look();
})`;

/** Frames in a second while the list (or nothing) is scrolled on by a little more than a window each second. */
const frames = (what: string): string => `new Promise((done) => {
  const list = ${what};
  const begin = performance.now();
  let count = 0;
  const step = (now) => {
    count++;
    if (list) list.scrollTop += 16;
    if (now - begin < 8000) requestAnimationFrame(step);
    else done(count / ((now - begin) / 1000));
  };
  requestAnimationFrame(step);
})`;

export const portalBench: Bench = {
  names: ['portal-first-load', 'portal-scroll', 'portal-memory'],
  async run(only) {
    if (!existsSync(CHROMIUM)) {
      process.stderr.write(`portal-*: not measured, ${CHROMIUM} is not there\n`);
      return [];
    }
    const service = await Service.start();
    const browser = await chromium.launch({
      executablePath: CHROMIUM,
      args: [
        '--no-sandbox',
        '--disable-gpu',
        '--disable-background-networking',
        '--disable-renderer-backgrounding',
        '--js-flags=--expose-gc',
      ],
    });
    const weighing = setInterval(() => void weighLikeUs(browser).catch(() => {}), WEIGH_MS);
    try {
      const { submitJobGroup } = await service.query<{
        submitJobGroup: { jobIds: string[]; errors: { message: string }[] };
      }>(
        'mutation ($count: Int!) { submitJobGroup(input: { count: $count, allowUnfit: true, template: { command: "true", held: true, os: "nowhere" } }) { jobIds errors { message } } }',
        { count: JOBS },
      );
      if (submitJobGroup.errors[0]) throw new Error(submitJobGroup.errors[0].message);
      await service.addSite('simulated', 50, 64, ['--simulate', '--speed', '1000000']);
      const stream = streamOf(service, submitJobGroup.jobIds);
      const results: Measured[] = [];
      try {
        if (only('portal-first-load')) results.push(await firstLoad(service, browser, stream));
        if (only('portal-scroll')) results.push(await scroll(service, browser, stream));
        if (only('portal-memory')) results.push(await memory(service, browser, stream));
      } finally {
        await stream.stop();
      }
      return results;
    } finally {
      clearInterval(weighing);
      await browser.close();
      await service.stop();
    }
  },
};

/**
 * Chromium gives itself an ordinary priority, and Playwright starts it in a session of its own, while Linux may share the processors out by
 * session: a benchmark that was given a higher weight would starve its browser. It sets it back for each page that it shows.
 */
async function weighLikeUs(browser: Browser): Promise<void> {
  const own = '/proc/self/autogroup';
  const nice = existsSync(own) ? /nice (-?\d+)/.exec(readFileSync(own, 'utf8'))?.[1] : undefined;
  const session = await browser.newBrowserCDPSession();
  const { processInfo } = await session.send('SystemInfo.getProcessInfo');
  for (const { type, id } of processInfo) {
    try {
      if (getPriority() !== 0)
        for (const thread of readdirSync(`/proc/${id}/task`)) setPriority(Number(thread), getPriority());
      if (type === 'browser' && nice && nice !== '0') writeFileSync(`/proc/${id}/autogroup`, nice);
    } catch {
      // It has ended meanwhile.
    }
  }
  await session.detach();
}

/** A window of somebody who is signed in. */
async function openPage(
  service: Service,
  browser: Browser,
): Promise<{ context: BrowserContext; page: Page }> {
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 } });
  const key = service.authorization.replace('Bearer ', '');
  await context.addInitScript({
    content: `sessionStorage.setItem('switchyard.key', ${JSON.stringify(key)})`,
  });
  const page = await context.newPage();
  return { context, page };
}

/** A browser that has never been here opens the list of jobs; against the list's queries alone, by the same browser. */
async function firstLoad(service: Service, browser: Browser, stream: Stream): Promise<Measured> {
  const origin = new URL(service.url).origin;
  const query = `{
    latestCursor jobCount
    jobs(orderBy: { field: SUBMITTED_AT, direction: DESC }, first: 100) {
      nodes { id state name application command user { id name } site { id name } submittedAt startedAt endedAt }
    }
  }`;
  await sleep(3_000);
  await stream.rate();
  const result = await sideBySide(
    {
      name: 'portal-first-load',
      unit: 's',
      aim: { value: 2 },
      what: 'a browser without a cache opens the list of 100 000 jobs while a thousand events a second come in, until they can be read; against the queries of the list alone, from the same browser',
    },
    5,
    async () => {
      const { context, page } = await openPage(service, browser);
      await page.goto(`${origin}/jobs`, { waitUntil: 'commit' });
      const ms = (await page.evaluate(FIRST_ROWS)) as number;
      await context.close();
      return ms / 1000;
    },
    async () => {
      const { context, page } = await openPage(service, browser);
      await page.goto(`${origin}/healthz`);
      const ms = (await page.evaluate(`(async () => {
        const begin = performance.now();
        const answer = await fetch('/graphql', {
          method: 'POST',
          headers: { 'content-type': 'application/json', authorization: 'Bearer ' + sessionStorage.getItem('switchyard.key') },
          body: JSON.stringify({ query: ${JSON.stringify(query)} }),
        });
        await answer.json();
        return performance.now() - begin;
      })()`)) as number;
      await context.close();
      return ms / 1000;
    },
  );
  return { ...result, note: `${Math.round(await stream.rate())} events a second` };
}

interface Stream {
  /** Events of the service in a second, since it was last asked. */
  rate(): Promise<number>;
  stop(): Promise<void>;
}

/** Jobs that come and go all the time, and others that are changed. */
function streamOf(service: Service, held: readonly string[]): Stream {
  let going = true;
  const everyTick = async (work: (tick: number) => Promise<unknown>): Promise<void> => {
    let next = Date.now();
    for (let tick = 0; going; tick++) {
      await work(tick).catch(() => {});
      next = Math.max(next + TICK_MS, Date.now() - 1_000);
      await sleep(Math.max(0, next - Date.now()));
    }
  };
  const perTick = (perS: number): number => (perS * TICK_MS) / 1_000;
  const running = Promise.all([
    everyTick(() =>
      service.submit(perTick(LIVES_PER_S), { command: 'simulated', os: 'simulated', estimateS: 60 }),
    ),
    everyTick((tick) => {
      // One slice after another, the newest first: of these a list shows some.
      const size = perTick(CHANGES_PER_S);
      const behind = (tick * size) % held.length;
      return service.query(
        'mutation ($ids: [ID!]!, $boost: Int!) { reprioritizeJobs(input: { selection: { ids: $ids }, boost: $boost }) { unchanged { id } } }',
        {
          ids: held.slice(held.length - behind - size, held.length - behind),
          boost: 1 + (Math.floor((tick * size) / held.length) % 100),
        },
      );
    }),
  ]);
  let last: { at: number; cursor: number } | null = null;
  return {
    async rate() {
      const { latestCursor } = await service.query<{ latestCursor: string }>('{ latestCursor }');
      const now = { at: Date.now(), cursor: Number(latestCursor) };
      const rate = last ? ((now.cursor - last.cursor) * 1000) / (now.at - last.at) : 0;
      last = now;
      return rate;
    },
    async stop() {
      going = false;
      await running;
    },
  };
}

async function openList(
  service: Service,
  browser: Browser,
): Promise<{ context: BrowserContext; page: Page }> {
  const { context, page } = await openPage(service, browser);
  await page.goto(`${new URL(service.url).origin}/jobs`);
  await page.evaluate(FIRST_ROWS);
  return { context, page };
}

/** The list is scrolled while its jobs change; against the frames of an empty page. */
async function scroll(service: Service, browser: Browser, stream: Stream): Promise<Measured> {
  const { context, page } = await openList(service, browser);
  const empty = await context.newPage();
  await sleep(3_000);
  await stream.rate();
  const result = await sideBySide(
    {
      name: 'portal-scroll',
      unit: 'frames/s',
      aim: { value: 50 },
      what: 'frames while the list of 100 000 jobs is scrolled and a thousand events a second come in; against an empty page',
    },
    3,
    async () => {
      await page.bringToFront();
      return (await page.evaluate(frames("document.querySelector('[role=grid]')"))) as number;
    },
    async () => {
      await empty.bringToFront();
      return (await empty.evaluate(frames('null'))) as number;
    },
  );
  const rate = await stream.rate();
  await context.close();
  return { ...result, note: `${Math.round(rate)} events a second` };
}

/** The heap of a page that is left open; against the same page in its first minute. */
async function memory(service: Service, browser: Browser, stream: Stream): Promise<Measured> {
  const { context, page } = await openList(service, browser);
  const heapMb = async (): Promise<number> => {
    const bytes = (await page.evaluate('gc(), gc(), performance.memory.usedJSHeapSize')) as number;
    return bytes / 1e6;
  };
  await stream.rate();
  const heap: number[] = [];
  for (let minute = 0; minute < MINUTES; minute++) {
    await sleep(MINUTE_MS);
    heap.push(await heapMb());
  }
  const rate = await stream.rate();
  await context.close();
  const [baseline = 0, ...later] = heap;
  const value = median(later.slice(-3));
  return {
    name: 'portal-memory',
    unit: 'MB',
    value,
    baseline,
    ratio: value / baseline,
    aim: { ratio: 1.5 },
    what: `the heap of the list of jobs after ${MINUTES} minutes at a thousand events a second; against the same page after one`,
    spread: spreadOf(heap),
    note: `${Math.round(rate)} events a second`,
  };
}
