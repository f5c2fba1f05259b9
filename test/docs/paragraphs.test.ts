/** Long paragraphs hide what an operator looks for: at most 90 words in each paragraph and list item of these pages. */
import { readdirSync, readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { packagePath } from '../../src/platform/paths.js';

const MAX_WORDS = 90;
const pages = [
  ...['docs/ARCHITECTURE.md', 'docs/attacks.md', 'docs/performance.md', 'docs/simulator.md'],
  ...['CONTRIBUTING.md', 'src/agent/PROTOCOL.md', 'src/federation/PROTOCOL.md'],
  ...['docs/operations', 'docs/experiments'].flatMap((folder) =>
    readdirSync(packagePath(folder)).flatMap((name) => (name.endsWith('.md') ? [`${folder}/${name}`] : [])),
  ),
];

it.each(pages)('%s', (page) => {
  const prose = readFileSync(packagePath(page), 'utf8')
    .replace(/^```[\s\S]*?^```/gm, '')
    .replace(/^(\||#|<!--).*$/gm, '')
    .replace(/^( *)(\*|\d+\.) /gm, '\n');
  const long = prose
    .split(/\n\s*\n/)
    .map((paragraph) => paragraph.trim().split(/\s+/))
    .filter((words) => words.length > MAX_WORDS)
    .map((words) => `${words.length} words: ${words.slice(0, 10).join(' ')} …`);
  expect(long).toEqual([]);
});
