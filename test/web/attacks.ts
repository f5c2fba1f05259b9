/** What somebody could try in a person's browser, with what users may name and write, and from pages of others. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { expect, onTestFinished, test } from 'vitest';
import { portOf } from '../support/ports.js';
import type { Visits } from './browser.js';
import type { Grid } from './service.js';

const SCRIPT = '"><img src=x onerror="window.attacked=1"><script>window.attacked=1</script>';
const attacked = 'window.attacked ?? null';

export function attacks(visits: Visits, grid: Grid): void {
  const go = (path: string) => visits.visit(grid.origin + path, { key: grid.adminKey });

  /** Another site, in the same browser. */
  async function elsewhere(html: () => string): Promise<string> {
    const server = createServer((_: IncomingMessage, response: ServerResponse) =>
      response.writeHead(200, { 'content-type': 'text/html' }).end(html()),
    );
    const port = await portOf(server);
    onTestFinished(() => {
      server.closeAllConnections();
      server.close();
    });
    return `http://localhost:${port}/`;
  }

  test('names and outputs of jobs are text', async () => {
    const [id] = await grid.submit({
      command: 'sh',
      arguments: ['-c', `printf '%s\\n' '${SCRIPT}' '\u001b]8;;javascript:attacked=1\u0007x'; sleep 60`],
      environment: [{ name: 'X', value: SCRIPT }],
      application: SCRIPT,
      estimateS: 60,
      os: process.platform,
    });
    const { page } = await go(`/jobs/${id}`);
    await page.locator('.terminal', { hasText: 'window.attacked' }).waitFor();
    expect(await page.evaluate('document.querySelectorAll("img[src=x], a[href^=javascript]").length')).toBe(
      0,
    );
    expect(await page.evaluate(attacked)).toBeNull();
    await page.goto(`${grid.origin}/jobs?application=${encodeURIComponent(SCRIPT)}`);
    await page.getByText('window.attacked').first().waitFor();
    expect(await page.evaluate(attacked)).toBeNull();
    // One that came in all the same would not run.
    const portal = await fetch(grid.origin, { headers: { accept: 'text/html' } });
    expect(portal.headers.get('content-security-policy')).toMatch(/default-src 'none';script-src 'self';/);

    const output = await fetch(`${grid.origin}/jobs/${id}/output`, {
      headers: { authorization: `Bearer ${grid.adminKey}` },
    });
    expect(Object.fromEntries(output.headers)).toMatchObject({
      'content-type': 'application/octet-stream',
      'content-disposition': `attachment; filename="${id}.out"`,
      'x-content-type-options': 'nosniff',
    });
    await grid.ask('mutation ($id: ID!) { cancelJobs(input: { selection: { ids: [$id] } }) { jobIds } }', {
      id,
    });
  });

  test('a page of another site can neither frame it, nor ask, nor send, nor tell it anything', async () => {
    const mutation = JSON.stringify({
      query: 'mutation { drainSite(input: { siteId: "site_1" }) { site { id } } }',
    });
    const { page } = await go('/');
    const home = await elsewhere(
      () => `<iframe src="${grid.origin}/"></iframe>
        <form method="post" enctype="text/plain" action="${grid.origin}/graphql"><input name='${mutation.slice(0, -1)}, "x": "' value='"}'></form>`,
    );
    const other = await page.context().newPage();
    onTestFinished(() => other.close());
    await other.goto(home);
    await expect
      .poll(
        () =>
          other
            .frames()
            .find((frame) => frame !== other.mainFrame())
            ?.url() ?? '',
      )
      .toMatch(/^chrome-error:|^about:blank/);
    const asked = await other.evaluate(
      `Promise.all([
        fetch('${grid.origin}/graphql', { method: 'POST', credentials: 'include', headers: { 'content-type': 'application/json' }, body: '{}' }),
        fetch('${grid.origin}/portal.json'), fetch('${grid.origin}/jobs/job_1/output', { credentials: 'include' }),
      ].map((one) => one.then(() => 'read', () => 'refused')))`,
    );
    expect(asked).toEqual(['refused', 'refused', 'refused']);
    // A form needs no permission to send: it brings no key, and is no JSON.
    const [answer] = await Promise.all([
      other.waitForResponse((response) => response.url().endsWith('/graphql')),
      // Until the answer is shown: what the page is told to open next is not to race with it.
      other.waitForURL(`${grid.origin}/graphql`),
      other.evaluate('document.forms[0].submit()'),
    ]);
    expect(answer.status()).toBe(401);
    const { sites } = await grid.ask<{ sites: { nodes: { state: string }[] } }>(
      '{ sites { nodes { state } } }',
    );
    expect(sites.nodes.map(({ state }) => state)).not.toContain('DRAINING');
    expect(await page.context().cookies()).toEqual([]);

    // Nobody listens to messages; who opens the portal keeps no hold of it.
    await page.evaluate(`postMessage({ type: 'sign-in', key: 'x', __proto__: { key: 'x' } }, '*')`);
    const opened = await elsewhere(() => `<script>w = open('${grid.origin}/')</script>`);
    await other.goto(opened);
    await expect.poll(() => other.evaluate('w === null || w.closed')).toBe(true);
    for (const one of page.context().pages())
      if (one !== page && one !== other && one.url().startsWith(grid.origin)) await one.close();
  });

  test('addresses lead nowhere else, and keys stay in their tab', async () => {
    for (const path of [
      ...[
        '//evil.example/',
        '/\\evil.example',
        '/%2f%2fevil.example',
        '/sign-in?returnTo=https://evil.example/',
      ],
      ...['/jobs/..%2f..%2fetc%2fpasswd', '/assets/..%2findex.html', '/%0d%0aset-cookie:%20a=b'],
    ]) {
      const answer = await fetch(grid.origin + path, {
        headers: { accept: 'text/html' },
        redirect: 'manual',
      });
      expect([path, answer.headers.get('location'), answer.headers.get('set-cookie')]).toEqual([
        path,
        null,
        null,
      ]);
      const policy = answer.headers.get('content-security-policy');
      if (answer.ok) expect(policy).toContain("frame-ancestors 'none'");
    }
    const { page } = await go('/');
    await page.getByRole('button', { name: /Signed in as admin/ }).waitFor();
    expect(await page.evaluate('JSON.stringify(localStorage) + document.cookie')).not.toContain('swy_');
    const other = await page.context().newPage();
    onTestFinished(() => other.close());
    // A link that was made up signs nobody in, and takes nothing from who is.
    await other.goto(`${grid.origin}/#sign-in=apikey_1.${encodeURIComponent(SCRIPT)}`);
    await other.getByLabel('API key').waitFor();
    expect(other.url()).toBe(`${grid.origin}/`);
    expect(await other.evaluate('sessionStorage.getItem("switchyard.key")')).toBeNull();
    expect(await other.evaluate(attacked)).toBeNull();
  });

  test('a document with keys of prototypes is refused, and changes no other', async () => {
    const hostile = JSON.parse(
      '{"__proto__": {"attacked": 1}, "constructor": {"prototype": {"attacked": 1}}, "dispatch": {"__proto__": {"attacked": 1}}}',
    );
    await expect(
      grid.ask(
        'mutation ($candidate: JSON!) { createSimulation(input: { candidate: $candidate, trace: "x" }) { simulation { id } } }',
        {
          candidate: hostile,
        },
      ),
    ).rejects.toThrow();
    const { page } = await go('/policy');
    await page.evaluate(
      `sessionStorage.setItem('switchyard.candidate', ${JSON.stringify(JSON.stringify(hostile))})`,
    );
    await page.goto(`${grid.origin}/policy?draft=candidate`);
    await page.getByRole('heading', { level: 1 }).waitFor();
    expect(await page.evaluate('({}).attacked ?? null')).toBeNull();
  });
}
