/** The portal of docs/sample-portal.md, as somebody who has written it meets it: from an origin of its own. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { packagePath } from '../../src/platform/paths.js';
import { endAll, type Service, serve } from '../cli/service.js';
import { describeWithChromium } from './browser.js';

const source = readFileSync(packagePath('docs', 'sample-portal.html'), 'utf8');

test('it is short enough to be read', () => {
  expect(source.split('\n').length).toBeLessThan(200);
});

describeWithChromium('the sample portal', (visits) => {
  const home = mkdtempSync(join(tmpdir(), 'switchyard-sample-'));
  let own: Server;
  let origin = '';
  let service: Service;
  beforeAll(async () => {
    // What a window that waits is parked at comes from here, too.
    own = createServer((request, response) => {
      const isPage = request.url === '/';
      response.setHeader('content-type', isPage ? 'text/html' : 'application/json');
      response.end(isPage ? source : '{}');
    });
    await new Promise<void>((resolve) => own.listen(0, '127.0.0.1', resolve));
    origin = `http://127.0.0.1:${(own.address() as AddressInfo).port}`;
    service = await serve(home, [], '0', { SWITCHYARD_CORS_ORIGINS: origin });
  });
  afterAll(async () => {
    own?.close();
    await endAll();
    rmSync(home, { recursive: true, force: true });
  });

  test('lists, submits, and follows jobs live', async () => {
    const before = await service.cli('submit', '--wait', '--', 'echo', 'from a terminal');
    expect(before.code).toBe(0);
    const { page } = await visits.visit(origin, { provider: service.url });
    await page.getByLabel('Service').fill(service.url);
    await page.getByLabel('API key').fill('swy_nobody');
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByText('the API key is unknown, expired or revoked').waitFor();
    await page.getByLabel('API key').fill(readFileSync(join(home, 'admin.key'), 'utf8').trim());
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.getByRole('row', { name: 'job_1 COMPLETED local echo from a terminal' }).waitFor();

    await page.getByLabel('Command').fill('sleep 1; echo "<b>live</b>"; exit 3');
    await page.getByRole('button', { name: 'Submit' }).click();
    await page.getByText('job_2 is submitted.').waitFor();
    const row = page.getByRole('row', { name: /^job_2 / });
    await row.getByText('FAILED (EXITED_NONZERO)').waitFor();
    await row.getByRole('cell', { name: '<b>live</b>', exact: true }).waitFor();

    // News of jobs that others submit arrive, too.
    await service.cli('submit', '--', 'echo', 'again');
    await page.getByRole('row', { name: /^job_3 COMPLETED/ }).waitFor();
    expect(await page.locator('tbody tr').count()).toBe(3);
  });
});
