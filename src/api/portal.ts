/**
 * The portal: pages that were built once (`dist/web`) and speak to the public GraphQL API like any other client. Its files are
 * listed at the start, so no path of another request ever reaches the file system. Files with a hash in their names never change;
 * pages are revalidated each time and bring a fresh nonce for their content security policy.
 */
import { randomBytes } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join, sep } from 'node:path';
import type { Express, NextFunction, Request, RequestHandler, Response } from 'express';
import expressStaticGzip from 'express-static-gzip';
import helmet from 'helmet';
import { packagePath } from '../platform/paths.js';
import type { OidcConfig } from './config.js';

/** Stands in the pages where each gets a nonce of its own. */
const NONCE = '__NONCE__';

/** What a browser has to know before anybody is signed in. */
interface SignInBy {
  /** The provider that signs people in; null: there is none. */
  oidc: { issuer: string; clientId: string; scope: string; audience: string } | null;
  /** Whether users may sign in by name and password. */
  passwords: boolean;
}

/** The headers of pages and files, by helmet. Its other defaults (HSTS above all) are for who terminates TLS to decide. */
const secure = helmet({
  contentSecurityPolicy: false,
  crossOriginResourcePolicy: false,
  originAgentCluster: false,
  strictTransportSecurity: false,
  xDnsPrefetchControl: false,
  xDownloadOptions: false,
  xFrameOptions: { action: 'deny' },
  xPermittedCrossDomainPolicies: false,
  xXssProtection: false,
});

type Directives = Record<string, readonly string[]>;

/** A middleware that sets the policy of a page, with the nonce in `res.locals`. */
const policyOf = (more: Directives): RequestHandler =>
  helmet.contentSecurityPolicy({
    useDefaults: false,
    directives: {
      defaultSrc: ["'none'"],
      scriptSrc: ["'self'"],
      styleSrc: ["'self'", (_req, res) => `'nonce-${(res as Response).locals.nonce}'`],
      // Measures and colors of single elements, which charts and editors set.
      styleSrcAttr: ["'unsafe-inline'"],
      imgSrc: ["'self'", 'data:'],
      fontSrc: ["'self'"],
      connectSrc: ["'self'"],
      workerSrc: ["'self'"],
      baseUri: ["'none'"],
      formAction: ["'none'"],
      frameAncestors: ["'none'"],
      ...more,
    },
  });

interface Page {
  html: string;
  policy: RequestHandler;
}

/** Files that are no answer of their own: pages go out with a nonce, and what is compressed under the name of what it was. */
const NO_FILE = /\.(html|br|gz)$/;

/**
 * Answers browsers: at the GraphQL address with the explorer, elsewhere with the portal. Whatever asks for something else
 * than a page goes on to the next handler.
 *
 * @param config how people may sign in
 * @param folder where it was built; tests may say another
 */
export function mountPortal(
  app: Express,
  graphqlPath: string,
  { oidc, passwords }: { oidc: OidcConfig | null; passwords: boolean },
  folder = packagePath('dist', 'web'),
): void {
  if (!existsSync(join(folder, 'index.html'))) {
    app.get('/', (_req, res) => {
      res.status(404).type('text/plain').send('The portal is not built: npm run build\n');
    });
    return;
  }
  const signInBy: SignInBy = {
    oidc: oidc?.client
      ? {
          issuer: oidc.issuer,
          clientId: oidc.client.id,
          scope: oidc.client.scope,
          audience: oidc.audience[0] as string,
        }
      : null,
    passwords,
  };
  const asked: Directives = signInBy.oidc
    ? { connectSrc: ["'self'", new URL(signInBy.oidc.issuer).origin] }
    : {};
  const page = (name: string, more: Directives = {}): Page => ({
    html: readFileSync(join(folder, name), 'utf8'),
    policy: policyOf({ ...asked, ...more }),
  });
  const portal = page('index.html');
  // Its editor writes styles and brings its fonts in them.
  const explorer = page('explorer.html', {
    styleSrc: ["'self'", "'unsafe-inline'"],
    fontSrc: ["'self'", 'data:'],
  });
  const names = new Set(
    (readdirSync(folder, { recursive: true }) as string[])
      .filter((name) => !NO_FILE.test(name))
      .map((name) => `/${name.split(sep).join('/')}`),
  );
  const files = expressStaticGzip(folder, {
    index: false,
    enableBrotli: true,
    orderPreference: ['br', 'gz'],
    serveStatic: {
      cacheControl: false,
      etag: false,
      lastModified: false,
      redirect: false,
      setHeaders: (res, path) =>
        res.setHeader(
          'cache-control',
          path.startsWith(join(folder, 'assets'))
            ? 'public, max-age=31536000, immutable'
            : 'public, max-age=3600',
        ),
    },
  });

  app.get(graphqlPath, (req, res, next) => {
    if (wantsPage(req) && req.query.query === undefined) sendPage(req, res, next, explorer);
    else next();
  });
  app.get('/portal.json', secure, (_req, res) => {
    res.setHeader('cache-control', 'no-cache');
    res.json(signInBy);
  });
  app.use((req, res, next) => {
    if (req.method !== 'GET' && req.method !== 'HEAD') return next();
    if (names.has(req.path))
      return secure(req, res, (error) => (error ? next(error) : files(req, res, next)));
    // A file of another build is not a page: an old tab has to learn that it is gone.
    if (req.path.startsWith('/assets/') || req.path === graphqlPath || !wantsPage(req)) return next();
    sendPage(req, res, next, portal);
  });
}

const wantsPage = (req: Request): boolean => req.headers.accept?.includes('text/html') ?? false;

function sendPage(req: Request, res: Response, next: NextFunction, { html, policy }: Page): void {
  res.locals.nonce = randomBytes(16).toString('base64url');
  secure(req, res, () =>
    policy(req, res, (error) => {
      if (error) return next(error);
      res.setHeader('cache-control', 'no-cache');
      res.type('html').send(html.replaceAll(NONCE, res.locals.nonce));
    }),
  );
}
