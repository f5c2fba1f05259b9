/** What the portal shows, on a service and in a Chromium of its own: it runs beside what people do there (portal.test.ts). */
import { describe } from 'vitest';
import { describeWithChromium } from './browser.js';
import { devicesShown } from './devices.js';
import { graphOfJobs } from './graph.js';
import { pageOfJob } from './job.js';
import { shownLive } from './live.js';
import { everyPage } from './pages.js';
import { withGrid } from './service.js';

describeWithChromium('the portal', (visits) => {
  // Where jobs fetch files from, and send them to.
  const grid = withGrid(async () => ({ AGENT_URL_ADDRESSES: '127.0.0.1' }));
  describe('the page of a job', () => pageOfJob(visits, grid));
  describe('the graph of a group', () => graphOfJobs(visits, grid));
  describe('shows', () => shownLive(visits, grid));
  describe('of devices', () => devicesShown(visits, grid));
  describe('every page', () => everyPage(visits, grid));
});
