/** A real OpenID Connect provider on this machine, whose clients are people with groups. */
import { generateKeyPairSync, type KeyObject } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type RequestListener, type Server } from 'node:http';
import Provider from 'oidc-provider';
import { portOf } from './ports.js';

export const AUDIENCE = 'https://switchyard.example';

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
    this.answer = this.provider(privateKey, `key-${++this.keys}`).callback();
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
    return new Provider(this.url, {
      jwks: { keys: [{ ...key.export({ format: 'jwk' }), kid, alg: 'ES256', use: 'sig' }] },
      clients: this.people.map(({ name }) => ({
        client_id: name,
        client_secret: 'secret',
        id_token_signed_response_alg: 'ES256',
        grant_types: ['client_credentials'],
        redirect_uris: [],
        response_types: [],
      })),
      extraTokenClaims: (_: unknown, { clientId }: { clientId: string }) => ({
        preferred_username: clientId,
        groups: this.people.find(({ name }) => name === clientId)?.groups ?? [],
      }),
      features: {
        devInteractions: { enabled: false },
        clientCredentials: { enabled: true },
        resourceIndicators: {
          enabled: true,
          getResourceServerInfo: (_: unknown, resource: string) => ({
            scope: '',
            audience: resource,
            accessTokenTTL: resource === BRIEF ? 1 : 600,
            accessTokenFormat: 'jwt',
            jwt: { sign: { alg: 'ES256' } },
          }),
        },
      },
    });
  }
}
