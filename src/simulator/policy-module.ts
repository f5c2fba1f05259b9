/**
 * Policies of users': modules in TypeScript or JavaScript, written against the same seams as the product's own. One is bundled once,
 * with what it imports of the user's, and every thread that simulates loads the bundle. `switchyard/policy` and `zod` are the product's, so
 * that a module and the scheduler mean the same classes.
 */
import { existsSync } from 'node:fs';
import { SourceMap } from 'node:module';
import { dirname, join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import type { BuildFailure } from 'esbuild';
import { addDispatchKind, addLocalKind, type DispatchKind, type LocalKind } from '../core/index.js';

/** Plain data that a thread can be handed. */
export interface PolicyModule {
  path: string;
  code: string;
  /** Where in the user's files each place of the code comes from. */
  map: string;
}

/** What the bundle is called; it is never a file. */
const BUNDLE = 'bundle.js';

/** Bundles a module. Throws in one line, `FILE:LINE:COLUMN: what is wrong`. */
export async function bundlePolicyModule(path: string): Promise<PolicyModule> {
  if (!existsSync(path)) throw new Error(`${path}: no such file`);
  // Who has no policy of their own need not wait for it.
  const { build } = await import('esbuild');
  const ours: Record<string, string> = {
    'switchyard/policy': new URL('./policy-api.js', import.meta.url).href,
    zod: import.meta.resolve('zod'),
  };
  const whole = resolve(path);
  try {
    const { outputFiles } = await build({
      entryPoints: [whole],
      absWorkingDir: dirname(whole),
      bundle: true,
      write: false,
      format: 'esm',
      platform: 'node',
      target: 'node20',
      sourcemap: 'external',
      outfile: BUNDLE,
      sourcesContent: false,
      // How the module runs depends on nothing that lies around it.
      tsconfigRaw: {},
      define: { 'import.meta.url': JSON.stringify(pathToFileURL(whole).href) },
      logLevel: 'silent',
      plugins: [
        {
          name: 'product',
          setup({ onResolve }) {
            onResolve({ filter: /^(switchyard\/policy|zod)$/ }, ({ path: name }) => ({
              path: ours[name] as string,
              external: true,
            }));
          },
        },
      ],
    });
    const [map, code] = outputFiles.map(({ text }) => text) as [string, string];
    return { path, code, map };
  } catch (error) {
    const first = (error as BuildFailure).errors?.[0];
    if (first === undefined) throw error;
    const { location, text } = first;
    const place = location === null ? path : placed(path, location.file, location.line, location.column + 1);
    throw new Error(`${place}: ${text}`);
  }
}

/** Loads a module into this thread and makes its policies known by their kinds, which it gives. Throws in one line. */
export async function usePolicyModule(module: PolicyModule): Promise<string[]> {
  const { path } = module;
  let exported: unknown;
  try {
    exported = ((await import(urlOf(module))) as { default?: unknown }).default;
  } catch (error) {
    const { message = String(error) } = error as Partial<Error>;
    throw new Error(`${placeIn([module], error) || `${path}: `}${message}`);
  }
  const kinds = Array.isArray(exported) ? exported : [exported];
  return kinds.map((kind: unknown) => {
    const name = nameOf(kind);
    if (name === null)
      throw new Error(
        `${path}: its default export is not accepted; accepted: the result of localKind or dispatchKind of switchyard/policy, or a list of these`,
      );
    try {
      if ('scheduler' in (kind as object)) addLocalKind(kind as LocalKind);
      else addDispatchKind(kind as DispatchKind);
    } catch (error) {
      throw new Error(`${path}: ${(error as Error).message}`);
    }
    return 'scheduler' in (kind as object) ? name : `${name}+easy`;
  });
}

/** `FILE:LINE:COLUMN: ` of the first place of a module in the error's stack; empty: none of it is there. */
export function placeIn(modules: readonly PolicyModule[], error: unknown): string {
  const lines = error instanceof Error && error.stack !== undefined ? error.stack.split('\n') : [];
  for (const { path, map, url } of modules.map((module) => ({ ...module, url: urlOf(module) }))) {
    const [, line, column] =
      lines
        .map((text) => text.split(url)[1])
        .find(Boolean)
        ?.split(':') ?? [];
    if (line === undefined || column === undefined) continue;
    const entry = new SourceMap(JSON.parse(map)).findEntry(Number(line) - 1, Number.parseInt(column, 10) - 1);
    if ('originalSource' in entry)
      return `${placed(path, entry.originalSource, entry.originalLine + 1, entry.originalColumn + 1)}: `;
  }
  return '';
}

const urlOf = ({ code }: PolicyModule): string =>
  `data:text/javascript;base64,${Buffer.from(code).toString('base64')}`;

/** A place in a file that is named as seen from the module's folder, named as seen from where the module was named. */
const placed = (path: string, file: string, line: number, column: number): string =>
  `${join(dirname(path), file)}:${line}:${column}`;

/** What the policy is called by; null: it is none. */
function nameOf(kind: unknown): string | null {
  if (typeof kind !== 'object' || kind === null) return null;
  const { schema, scheduler, begin, localOrder } = kind as Partial<LocalKind & DispatchKind>;
  const isOne =
    typeof scheduler === 'function' || (typeof begin === 'function' && typeof localOrder === 'function');
  const name = schema?.shape?.kind?.value;
  return isOne && typeof name === 'string' ? name : null;
}
