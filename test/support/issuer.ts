/** A real OpenID Connect provider on this machine, whose clients are people with groups. */
import { generateKeyPairSync, type KeyObject } from 'node:crypto';
import { once } from 'node:events';
import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerResponse,
} from 'node:http';
import { text } from 'node:stream/consumers';
import Provider from 'oidc-provider';
import { portOf } from './ports.js';

export const AUDIENCE = 'https://switchyard.example';

/** The client with which a portal asks for tokens. */
export const PORTAL = 'portal';

/** Tokens for this one are renewed within seconds, and go on for a minute. */
export const SHORT = 'https://short.example';

/** Tokens for this one expire within a second. */
export const BRIEF = 'https://brief.example';

export interface Person {
  name: string;
  groups: readonly string[];
}

export class Issuer {
  private constructor(
    private readonly server: Server,
    readonly url: string,
    private readonly people: readonly Person[],
  ) {}
  private answer: RequestListener = (_, response) => response.writeHead(503).end();
  private keys = 0;
  private returnTo: string | null = null;
  /** How often a token was renewed. */
  renewed = 0;
  /** How often its keys were fetched. */
  fetched = 0;

  static async start(people: readonly Person[]): Promise<Issuer> {
    const server = createServer();
    const issuer = new Issuer(server, `http://127.0.0.1:${await portOf(server)}`, people);
    server.on('request', (request, response) => {
      if (request.url?.startsWith('/jwks')) issuer.fetched++;
      issuer.answer(request, response);
    });
    issuer.rotate();
    return issuer;
  }

  /** Signs with a new key from now on, and knows the old one no more. */
  rotate(): void {
    const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    const provider = this.provider(privateKey, `key-${++this.keys}`);
    const answer = provider.callback();
    this.answer = (request, response) =>
      request.url?.startsWith('/login') ? void login(provider, request, response) : answer(request, response);
  }

  /** Signs people in for a portal too, which they come back to at this address. */
  openFor(returnTo: string): void {
    this.returnTo = returnTo;
    this.rotate();
  }

  /** Answers nothing but errors from now on. */
  break(): void {
    this.answer = (_, response) => response.writeHead(503).end();
  }

  /** A token for a person. */
  async token(name: string, audience = AUDIENCE): Promise<string> {
    const response = await fetch(`${this.url}/token`, {
      method: 'POST',
      headers: { authorization: `Basic ${Buffer.from(`${name}:secret`).toString('base64')}` },
      body: new URLSearchParams({ grant_type: 'client_credentials', resource: audience }),
    });
    const body = (await response.json()) as { access_token?: string };
    if (!body.access_token) throw new Error(JSON.stringify(body));
    return body.access_token;
  }

  async stop(): Promise<void> {
    this.server.closeAllConnections();
    this.server.close();
    await once(this.server, 'close');
  }

  private provider(key: KeyObject, kid: string): Provider {
    const provider = new Provider(this.url, {
      jwks: { keys: [{ ...key.export({ format: 'jwk' }), kid, alg: 'ES256', use: 'sig' }] },
      clients: [
        ...this.people.map(({ name }) => ({
          client_id: name,
          client_secret: 'secret',
          id_token_signed_response_alg: 'ES256',
          grant_types: ['client_credentials'],
          redirect_uris: [],
          response_types: [],
        })),
        ...(this.returnTo === null
          ? []
          : [
              {
                client_id: PORTAL,
                token_endpoint_auth_method: 'none',
                id_token_signed_response_alg: 'ES256',
                grant_types: ['authorization_code', 'refresh_token'],
                redirect_uris: [this.returnTo],
                response_types: ['code'],
              },
            ]),
      ],
      scopes: ['openid', 'profile', 'offline_access'],
      clientBasedCORS: () => true,
      // Its operator has said that the portal may renew tokens.
      issueRefreshToken: (_: unknown, client: { grantTypeAllowed(type: string): boolean }) =>
        client.grantTypeAllowed('refresh_token'),
      pkce: { required: () => true },
      interactions: { url: (_: unknown, { uid }: { uid: string }) => `/login/${uid}` },
      findAccount: (_: unknown, accountId: string) => ({ accountId, claims: () => ({ sub: accountId }) }),
      // Nobody is asked whether the portal may.
      loadExistingGrant: async ({
        oidc: { client, session },
      }: {
        oidc: { client: { clientId: string }; session: { accountId: string } };
      }) => {
        const grant = new provider.Grant({ accountId: session.accountId, clientId: client.clientId });
        grant.addOIDCScope('openid profile offline_access');
        await grant.save();
        return grant;
      },
      extraTokenClaims: (_: unknown, { accountId, clientId }: { accountId?: string; clientId: string }) => {
        const person = accountId ?? clientId;
        return {
          preferred_username: person,
          groups: this.people.find(({ name }) => name === person)?.groups ?? [],
        };
      },
      features: {
        devInteractions: { enabled: false },
        clientCredentials: { enabled: true },
        resourceIndicators: {
          enabled: true,
          getResourceServerInfo: (_: unknown, resource: string) => ({
            scope: '',
            audience: resource,
            accessTokenTTL: resource === BRIEF ? 1 : resource === SHORT ? 65 : 600,
            accessTokenFormat: 'jwt',
            jwt: { sign: { alg: 'ES256' } },
          }),
        },
      },
    });
    provider.on('grant.success', ({ oidc }) => {
      if (oidc.params?.grant_type === 'refresh_token') this.renewed++;
    });
    return provider;
  }
}

/** A form that asks for a name, and believes it. */
async function login(provider: Provider, request: IncomingMessage, response: ServerResponse): Promise<void> {
  if (request.method === 'POST') {
    const login = { accountId: new URLSearchParams(await text(request)).get('name') };
    return provider.interactionFinished(request, response, { login });
  }
  response
    .writeHead(200, { 'content-type': 'text/html' })
    .end(
      '<form method="post"><label>Name <input name="name" autofocus></label><button>Continue</button></form>',
    );
}
