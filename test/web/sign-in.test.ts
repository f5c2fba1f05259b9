/** People who sign in to the portal at an OpenID Connect provider, or by user name and password. */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Issuer, PORTAL, SHORT } from '../support/issuer.js';
import { describeWithChromium, live, type Visits } from './browser.js';
import { withGrid } from './service.js';

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

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
    // Exactly: the page that is being left has a user name.
    await page.getByLabel('Name', { exact: true }).fill(name);
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

  test('opens the explorer too, and keeps them signed in there', async () => {
    const { page } = await visit('/graphql');
    await signIn(page, 'alice');
    await page.getByRole('heading', { name: 'GraphQL explorer' }).waitFor();
    expect(page.url()).toBe(`${grid.origin}/graphql`);
    const first = await token(page);
    await expect.poll(() => token(page)).not.toBe(first);
    await page.getByRole('heading', { name: 'GraphQL explorer' }).waitFor();
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
      passwords: true,
    });
    const page = await fetch(grid.origin, { headers: { accept: 'text/html' } });
    expect(page.headers.get('content-security-policy')).toContain(`connect-src 'self' ${issuer.url};`);
  });
});

describeWithChromium('signing in by user name and password', (visits: Visits) => {
  const grid = withGrid();
  const PASSWORD = 'seven quiet harbors';
  const signedIn = (page: Page, name: string) =>
    page.getByRole('button', { name: new RegExp(`Signed in as ${name}`) }).waitFor();
  /** In both themes. */
  async function accessible(page: Page): Promise<void> {
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme });
      await page.evaluate(axe);
      expect(
        await page.evaluate(
          `axe.run({ resultTypes: ['violations'] }).then(({ violations }) => violations.map(({ id, nodes }) => id + ' ' + nodes[0].html))`,
        ),
      ).toEqual([]);
    }
    await page.emulateMedia({ colorScheme: null });
  }
  async function byPassword(page: Page, name: string, password: string): Promise<void> {
    // By the keyboard alone: the user name has the focus.
    await page.getByLabel('User name').waitFor();
    await page.keyboard.type(name);
    await page.keyboard.press('Tab');
    await page.keyboard.type(password);
    await page.keyboard.press('Enter');
  }
  /** The link that an administrator makes on the page of a user. */
  async function link(user: string, button: string): Promise<string> {
    const { page } = await visits.visit(`${grid.origin}/users/${user}`, { key: grid.adminKey });
    await page.getByRole('button', { name: button, exact: true }).click();
    await page.getByRole('button', { name: 'Create the link' }).click();
    const made = (await page.getByText('/#invitation=').textContent()) ?? '';
    await page.getByRole('button', { name: 'I have sent it' }).click();
    await page.close();
    return made;
  }

  test('is invited, sets a password, signs in elsewhere, and ends that session, which is out at once', async () => {
    const ada = await grid.user('ada', 'USER');
    const invitation = await link(ada.id, 'Invite');
    const { page } = await visits.visit(invitation);
    await page.getByRole('heading', { name: 'Welcome, ada' }).waitFor();
    expect(page.url()).toBe(`${grid.origin}/`);
    await accessible(page);
    await page.getByLabel('New password').fill('short');
    await page.keyboard.press('Enter');
    await page.getByText('It has 5 characters; accepted: 12 to 128').waitFor();
    await page.getByLabel('New password').fill(PASSWORD);
    await page.keyboard.press('Enter');
    await signedIn(page, 'ada');

    // It is good once, and a session gives way only when its user says so.
    const { page: late } = await visits.visit(invitation);
    await late.getByText('This invitation has been used').waitFor();
    await late.getByRole('button', { name: 'To the sign-in page' }).click();
    await late.getByLabel('User name').waitFor();
    await accessible(late);
    await byPassword(late, 'ada', 'nine loud foundries');
    await late.getByText('The user name or the password is wrong.').waitFor();
    await late.reload();
    await byPassword(late, 'ada', PASSWORD);
    await signedIn(late, 'ada');
    await late.goto(`${grid.origin}/jobs`);
    await live(late);

    await page.bringToFront();
    await page.goto(`${grid.origin}/users/${ada.id}`);
    const sessions = page.getByRole('table', { name: 'Sessions' });
    await sessions.getByText('This one').waitFor();
    await sessions.getByRole('button', { name: 'End' }).click();
    await late.getByText('Your session has ended').waitFor();
    await expect.poll(() => sessions.getByRole('row').count()).toBe(2);
    await accessible(page);

    // Whoever signs out leaves no session behind.
    await page.getByRole('button', { name: /Signed in as ada/ }).click();
    await page.getByRole('menuitem', { name: 'Sign out' }).click();
    await page.getByLabel('User name').waitFor();
    const left = () =>
      grid.ask<{ node: { sessions: object[] } }>(
        'query ($id: ID!) { node(id: $id) { ... on User { sessions { id } } } }',
        { id: ada.id },
      );
    await expect.poll(async () => (await left()).node.sessions).toEqual([]);
  });

  test('changes the password, which ends other sessions; an administrator resets it', async () => {
    const bea = await grid.user('bea', 'USER');
    const { page } = await visits.visit(await link(bea.id, 'Invite'));
    await page.getByLabel('New password').fill(PASSWORD);
    await page.keyboard.press('Enter');
    await signedIn(page, 'bea');
    const { page: other } = await visits.visit(grid.origin);
    await byPassword(other, 'bea', PASSWORD);
    await signedIn(other, 'bea');
    await page.bringToFront();
    await page.goto(`${grid.origin}/users/${bea.id}`);
    await page.getByRole('button', { name: 'Change the password' }).click();
    await page.getByLabel('Current password').fill(PASSWORD);
    await page.getByLabel('New password').fill('nine loud foundries');
    await page.getByRole('button', { name: 'Change it' }).click();
    await page.getByText('The password has been changed.').waitFor();
    await other.getByText('Your session has ended').waitFor();

    // Opened where somebody is signed in, the link asks first.
    const reset = await link(bea.id, 'Reset the password');
    await page.goto(reset);
    await page.getByRole('button', { name: 'Stay signed in' }).click();
    await signedIn(page, 'bea');
    await other.bringToFront();
    await other.goto(reset);
    await other.getByLabel('New password').fill('a third one of these');
    await other.keyboard.press('Enter');
    await signedIn(other, 'bea');
    await page.getByText('Your session has ended').waitFor();
  });
});
