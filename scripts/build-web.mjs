// The portal into dist/web: types checked if asked for, bundled, compressed once for all requests, and weighed.
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { dirname, extname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { brotliCompress, constants, gzip, gzipSync } from 'node:zlib';
import { compile } from './compile.mjs';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const source = join(root, 'web');
const output = join(root, 'dist', 'web');
const stamp = join(output, '.stamp');

/** What a browser loads before the overview can be used, bytes after gzip. */
const FIRST_PAGE_MAX = 300_000;
const TEXTS = new Set(['.js', '.css', '.svg', '.json', '.ttf']);
/** Beyond, the best compression takes longer than it saves. */
const LARGE_BYTES = 400_000;

/** Builds the portal if something that it is made of has changed since the last time. */
export async function buildWeb(checked) {
  const unchecked = fingerprint();
  const wanted = checked ? `${unchecked} checked` : unchecked;
  if (existsSync(stamp) && readFileSync(stamp, 'utf8').startsWith(wanted)) return;
  const types = checked ? compile(source) : 0;
  const { build } = await import('vite');
  // Whatever the environment is for: the development's React would make the page too heavy.
  const { NODE_ENV: before } = process.env;
  process.env.NODE_ENV = 'production';
  await build({ configFile: join(source, 'vite.config.ts'), logLevel: 'warn' });
  if (before === undefined) delete process.env.NODE_ENV;
  else process.env.NODE_ENV = before;
  if (checked) weigh();
  await Promise.all(files(output).map((path) => compress(path, checked)));
  if ((await types) !== 0) throw new Error('the types of web/ do not fit');
  writeFileSync(stamp, wanted);
}

const files = (folder) =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));

function fingerprint() {
  const hash = createHash('sha256');
  const others = ['schema.graphql', 'package-lock.json', 'tsconfig.json', 'scripts/build-web.mjs'];
  const used = [source, ...['words', 'client', 'platform'].map((room) => join(root, 'src', room))];
  for (const path of [...used.flatMap(files).sort(), ...others.map((name) => join(root, name))]) {
    hash.update(relative(root, path)).update('\0').update(readFileSync(path)).update('\0');
  }
  return hash.digest('hex');
}

/** Fails when the first page has become too heavy: the entry and the overview with all that they import, and the font. */
function weigh() {
  const manifest = JSON.parse(readFileSync(join(output, '.vite', 'manifest.json'), 'utf8'));
  const needed = new Set();
  const visit = (name) => {
    const chunk = manifest[name];
    if (needed.has(chunk.file)) return;
    needed.add(chunk.file);
    for (const file of [...(chunk.css ?? []), ...(chunk.assets ?? [])]) needed.add(file);
    for (const other of chunk.imports ?? []) visit(other);
  };
  visit('index.html');
  visit('src/pages/overview/overview.tsx');
  let bytes = gzipSync(readFileSync(join(output, 'index.html'))).length;
  for (const file of needed) {
    const content = readFileSync(join(output, file));
    bytes += extname(file) === '.woff2' ? content.length : gzipSync(content).length;
  }
  const words = `the first page of the portal is ${Math.round(bytes / 1000)} kB after gzip`;
  if (bytes > FIRST_PAGE_MAX) throw new Error(`${words}; accepted: up to ${FIRST_PAGE_MAX / 1000} kB`);
  console.log(words);
}

async function compress(path, well) {
  if (!TEXTS.has(extname(path)) || statSync(path).size < 1000) return;
  const content = await readFile(path);
  await writeFile(`${path}.gz`, await promisify(gzip)(content, { level: well ? 9 : 6 }));
  if (!well) return;
  const quality = content.length <= LARGE_BYTES ? 11 : 9;
  const params = { [constants.BROTLI_PARAM_QUALITY]: quality };
  await writeFile(`${path}.br`, await promisify(brotliCompress)(content, { params }));
}
