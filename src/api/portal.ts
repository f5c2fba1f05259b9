/**
 * The portal: pages that were built once (`dist/web`) and speak to the public GraphQL API like any other client. What is
 * served is listed at the start, so no path of a request ever reaches the file system. Files with a hash in their names
 * never change; the pages themselves are asked for anew each time, and bring a fresh nonce for their content security
 * policy.
 */
import { randomBytes } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { extname, join, relative, sep } from 'node:path';
import type { Express, Request, RequestHandler, Response } from 'express';
import { packagePath } from '../platform/paths.js';
import type { OidcConfig } from './config.js';

const TYPES: Readonly<Record<string, string>> = {
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.json': 'application/json',
  '.svg': 'image/svg+xml',
  '.ttf': 'font/ttf',
  '.woff2': 'font/woff2',
};
/** In files and headers alike. */
const NONCE = '__NONCE__';

/** What a browser has to know before anybody is signed in. */
interface SignInBy {
  /** The provider that signs people in; null: there is none. */
  oidc: { issuer: string; clientId: string; scope: string; audience: string } | null;
}

const policyOf = (more: Record<string, string>): string =>
  Object.entries({
    'default-src': "'none'",
    'script-src': "'self'",
    'style-src': `'self' 'nonce-${NONCE}'`,
    // Measures and colors of single elements, which charts and editors set.
    'style-src-attr': "'unsafe-inline'",
    'img-src': "'self' data:",
    'font-src': "'self'",
    'connect-src': "'self'",
    'worker-src': "'self'",
    'base-uri': "'none'",
    'form-action': "'none'",
    'frame-ancestors': "'none'",
    ...more,
  })
    .map(([name, value]) => `${name} ${value}`)
    .join('; ');

interface Page {
  html: string;
  policy: string;
}

interface Asset {
  path: string;
  type: string;
  encodings: readonly ('br' | 'gzip')[];
}

const SUFFIX = { br: '.br', gzip: '.gz' } as const;

/**
 * Answers browsers: at the GraphQL address with the explorer, elsewhere with the portal. Whatever asks for something else
 * than a page goes on to the next handler.
 *
 * @param oidc at which people may sign in
 * @param folder where it was built; tests may say another
 */
export function mountPortal(
  app: Express,
  graphqlPath: string,
  oidc: OidcConfig | null,
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
  };
  const asked: Record<string, string> = signInBy.oidc
    ? { 'connect-src': `'self' ${new URL(signInBy.oidc.issuer).origin}` }
    : {};
  const page = (name: string, more: Record<string, string> = {}): Page => ({
    html: readFileSync(join(folder, name), 'utf8'),
    policy: policyOf({ ...asked, ...more }),
  });
  const portal = page('index.html');
  // Its editor writes styles and brings its fonts in them.
  const explorer = page('explorer.html', {
    'style-src': "'self' 'unsafe-inline'",
    'font-src': "'self' data:",
  });
  const assets = assetsOf(folder);

  app.get(graphqlPath, (req, res, next) => {
    if (wantsPage(req) && req.query.query === undefined) sendPage(res, explorer);
    else next();
  });
  app.get('/portal.json', (_req, res) => {
    secure(res);
    res.setHeader('cache-control', 'no-cache');
    res.json(signInBy);
  });
  const serve: RequestHandler = (req, res, next) => {
    if (req.method !== 'GET' && req.method !== 'HEAD') return next();
    const asset = assets.get(req.path);
    if (asset) return sendAsset(req, res, asset);
    // A file of another build is not a page: an old tab has to learn that it is gone.
    if (req.path.startsWith('/assets/') || req.path === graphqlPath || !wantsPage(req)) return next();
    sendPage(res, portal);
  };
  app.use(serve);
}

const wantsPage = (req: Request): boolean => req.headers.accept?.includes('text/html') ?? false;

function assetsOf(folder: string): Map<string, Asset> {
  const names = readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(folder, join(entry.parentPath, entry.name)).split(sep).join('/'));
  const all = new Set(names);
  const found = new Map<string, Asset>();
  for (const name of names) {
    const type = TYPES[extname(name)];
    if (type === undefined || name.startsWith('.')) continue;
    const encodings = (['br', 'gzip'] as const).filter((encoding) => all.has(name + SUFFIX[encoding]));
    found.set(`/${name}`, { path: join(folder, name), type, encodings });
  }
  return found;
}

function sendPage(res: Response, { html, policy }: Page): void {
  const nonce = randomBytes(16).toString('base64url');
  secure(res);
  res.setHeader('content-security-policy', policy.replaceAll(NONCE, nonce));
  res.setHeader('cache-control', 'no-cache');
  res.type('html').send(html.replaceAll(NONCE, nonce));
}

function sendAsset(req: Request, res: Response, { path, type, encodings }: Asset): void {
  secure(res);
  res.setHeader('content-type', type);
  res.setHeader(
    'cache-control',
    req.path.startsWith('/assets/') ? 'public, max-age=31536000, immutable' : 'public, max-age=3600',
  );
  if (encodings.length > 0) res.setHeader('vary', 'accept-encoding');
  const encoding = encodings.find((one) => req.acceptsEncodings(one) === one);
  if (encoding) res.setHeader('content-encoding', encoding);
  res.sendFile(encoding ? path + SUFFIX[encoding] : path, {
    cacheControl: false,
    etag: false,
    lastModified: false,
    // The folder of an installation may lie below one whose name begins with a dot.
    dotfiles: 'allow',
  });
}

function secure(res: Response): void {
  res.setHeader('x-content-type-options', 'nosniff');
  res.setHeader('x-frame-options', 'DENY');
  res.setHeader('referrer-policy', 'no-referrer');
  res.setHeader('cross-origin-opener-policy', 'same-origin');
}
