/** What people do in the portal, in a real Chromium on a service that works: one of each for all that follows, since both take seconds to start. */
import { describe } from 'vitest';
import { attacks } from './attacks.js';
import { firstPage } from './begin.js';
import { describeWithChromium } from './browser.js';
import { calendarPages } from './calendar.js';
import { byKeyboard } from './keyboard.js';
import { ownPages } from './own.js';
import { withGrid } from './service.js';
import { ways } from './ways.js';

describeWithChromium('the portal', (visits) => {
  const grid = withGrid();
  describe('the first page', () => firstPage(visits, grid));
  ways(visits, grid);
  describe('of users', () => ownPages(visits, grid));
  describe('of calendars', () => calendarPages(visits, grid));
  describe('under attack', () => attacks(visits, grid));
  describe('by the keyboard', () => byKeyboard(visits, grid));
});
