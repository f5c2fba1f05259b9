// `npm run docs`: writes what documents say of the code, from the code: the transitions of a job into docs/glossary.md, and the
// drawing of the rooms into docs/ARCHITECTURE.md.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, relative, sep } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../', import.meta.url));

/** The list in src/core/states.ts as a table. */
export function transitionTable(transitions) {
  const rows = transitions.map(
    ({ from, to, action, when }) => `| ${from ?? '(new)'} | ${to} | ${action} | ${when} |`,
  );
  return ['| from | to | action | when |', '|---|---|---|---|', ...rows].join('\n');
}

/** The rooms of src/ and the imports between them, without those that go a longer way too, for Mermaid. */
export function roomsDrawing() {
  const source = join(root, 'src');
  const arrows = new Map();
  for (const path of readdirSync(source, { recursive: true, encoding: 'utf8' }).sort()) {
    if (!path.endsWith('.ts')) continue;
    const [room] = path.split(sep);
    if (!arrows.has(room)) arrows.set(room, new Set());
    for (const [, target] of readFileSync(join(source, path), 'utf8').matchAll(/\bfrom '(\.[^']+)'/g)) {
      const [other] = relative(source, join(source, dirname(path), target)).split(sep);
      if (other !== room) arrows.get(room).add(other);
    }
  }
  const reached = (room) =>
    new Set([...(arrows.get(room) ?? [])].flatMap((other) => [other, ...reached(other)]));
  const lines = [...arrows].flatMap(([room, others]) => {
    const farther = new Set([...others].flatMap((other) => [...reached(other)]));
    const direct = [...others].filter((other) => !farther.has(other)).sort();
    return direct.map((other) => `  ${room} --> ${other}`);
  });
  return ['```mermaid', 'flowchart TD', ...lines, '```'].join('\n');
}

/** The document with the text between its marks `<!-- mark -->` and `<!-- /mark -->`. */
export function withPart(document, mark, text) {
  const [before, rest] = document.split(`<!-- ${mark} -->\n`);
  const after = rest?.split(`<!-- /${mark} -->`)[1];
  if (after === undefined) throw new Error(`the marks <!-- ${mark} --> are missing`);
  return `${before}<!-- ${mark} -->\n${text}\n<!-- /${mark} -->${after}`;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { transitions } = await import('../dist/core/states.js');
  const write = (name, mark, text) => {
    const path = join(root, 'docs', name);
    writeFileSync(path, withPart(readFileSync(path, 'utf8'), mark, text));
  };
  write('glossary.md', 'transitions', transitionTable(transitions));
  write('ARCHITECTURE.md', 'rooms', roomsDrawing());
}
