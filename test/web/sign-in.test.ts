/** People who sign in to the portal at an OpenID Connect provider. */
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Issuer, PORTAL, SHORT } from '../support/issuer.js';
import { describeWithChromium, live, type Visits } from './browser.js';
import { withGrid } from './service.js';

describeWithChromium('signing in at an identity provider', (visits: Visits) => {
  let issuer: Issuer;
  const grid = withGrid(async () => {
    issuer = await Issuer.start([
      { name: 'alice', groups: ['staff'] },
      { name: 'bob', groups: ['students'] },
    ]);
    return {
      SWITCHYARD_OIDC_ISSUER: issuer.url,
      SWITCHYARD_OIDC_AUDIENCE: SHORT,
      SWITCHYARD_OIDC_ROLES: 'staff=OPERATOR',
      SWITCHYARD_OIDC_CLIENT_ID: PORTAL,
      SWITCHYARD_OIDC_SCOPE: 'openid profile offline_access',
    };
  });
  beforeAll(() => issuer.openFor(`${grid.origin}/sign-in`));
  afterAll(() => issuer.stop());

  const visit = (path: string) => visits.visit(grid.origin + path, { provider: issuer.url });
  async function signIn(page: Page, name: string): Promise<void> {
    await page.getByRole('button', { name: 'Sign in with 127.0.0.1' }).click();
    await page.getByLabel('Name').fill(name);
    await page.getByRole('button', { name: 'Continue' }).click();
  }
  const stored = (page: Page) =>
    page.evaluate('Object.keys(sessionStorage).filter((name) => /key$|provider|oidc/.test(name)).sort()');
  const token = (page: Page) => page.evaluate('sessionStorage.getItem("switchyard.key")') as Promise<string>;

  test('brings a person back to where they were, keeps them signed in, and leaves nothing behind', async () => {
    const { page } = await visit('/jobs?states=FAILED');
    await signIn(page, 'alice');
    await page.getByRole('button', { name: /Signed in as alice/ }).waitFor();
    expect(page.url()).toBe(`${grid.origin}/jobs?states=FAILED`);
    await live(page);
    const first = await token(page);

    // A token that was renewed is the same session: what is being written stays, and news go on.
    await page.goto(`${grid.origin}/submit`);
    await page.getByLabel('Command', { exact: true }).fill('echo kept');
    await expect.poll(() => token(page)).not.toBe(first);
    expect(issuer.renewed).toBeGreaterThan(0);
    await page.getByText('Start, if no other job is submitted').waitFor();
    expect(await page.getByLabel('Command', { exact: true }).inputValue()).toBe('echo kept');
    await page.getByRole('button', { name: 'Submit the job' }).click();
    await page.getByRole('heading', { level: 1, name: /Completed$/ }).waitFor();

    await page.getByRole('button', { name: /Signed in as alice/ }).click();
    await page.getByRole('menuitem', { name: 'Sign out' }).click();
    await page.getByLabel('API key').waitFor();
    await expect.poll(() => stored(page)).toEqual([]);
  });

  test('opens the explorer too', async () => {
    const { page } = await visit('/graphql');
    await signIn(page, 'alice');
    await page.getByRole('heading', { name: 'GraphQL explorer' }).waitFor();
    expect(page.url()).toBe(`${grid.origin}/graphql`);
  });

  test('lets nobody in whose groups have no role, and tells why', async () => {
    const { page } = await visit('/');
    await signIn(page, 'bob');
    await page.getByText('None of your groups has a role here').waitFor();
    const { users } = await grid.ask<{ users: { nodes: { name: string }[] } }>(
      '{ users { nodes { name } } }',
    );
    expect(users.nodes.map(({ name }) => name)).not.toContain('bob');
  });

  test('takes no answer that was not asked for', async () => {
    const { page } = await visit('/sign-in?state=made-up&code=stolen');
    await page.getByText('The identity provider did not sign you in').waitFor();
    expect(page.url()).toBe(`${grid.origin}/`);
    expect(await stored(page)).toEqual([]);
  });

  test('is offered as the service is configured, and the page may ask nobody else', async () => {
    expect(await (await fetch(`${grid.origin}/portal.json`)).json()).toEqual({
      oidc: {
        issuer: issuer.url,
        clientId: PORTAL,
        scope: 'openid profile offline_access',
        audience: SHORT,
      },
    });
    const page = await fetch(grid.origin, { headers: { accept: 'text/html' } });
    expect(page.headers.get('content-security-policy')).toContain(`connect-src 'self' ${issuer.url};`);
  });
});
