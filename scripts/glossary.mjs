// `npm run glossary`: writes the table of transitions into docs/glossary.md, from the list in src/core/states.ts.
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const glossary = fileURLToPath(new URL('../docs/glossary.md', import.meta.url));

/** The document with the table as the transitions have it. */
export function withTransitions(document, transitions) {
  const rows = transitions.map(
    ({ from, to, action, when }) => `| ${from ?? '(new)'} | ${to} | ${action} | ${when} |`,
  );
  const table = ['| from | to | action | when |', '|---|---|---|---|', ...rows].join('\n');
  const [before, rest] = document.split('<!-- transitions -->\n');
  const after = rest?.split('<!-- /transitions -->')[1];
  if (after === undefined) throw new Error('docs/glossary.md: the marks around the transitions are missing');
  return `${before}<!-- transitions -->\n${table}\n<!-- /transitions -->${after}`;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { transitions } = await import('../dist/core/states.js');
  writeFileSync(glossary, withTransitions(readFileSync(glossary, 'utf8'), transitions));
}
