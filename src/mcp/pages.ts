/** Finds sections of the documentation by words. The build puts them into one file (scripts/build.mjs). */
import { readFileSync } from 'node:fs';
import { packagePath } from '../platform/paths.js';

interface Section {
  page: string;
  heading: string;
  text: string;
}

const FOUND_MAX = 4;
const SHOWN_CHARS = 700;
/** Words of a heading say more than those below it. */
const HEADING_WEIGHT = 3;
const QUERY_WORDS_MAX = 20;

const wordsOf = (text: string): string[] => text.toLowerCase().match(/[\p{L}\p{N}_]+/gu) ?? [];

interface Indexed extends Section {
  words: readonly string[];
  headingWords: readonly string[];
}
let index: readonly Indexed[] | undefined;

const read = (): readonly Indexed[] =>
  (JSON.parse(readFileSync(packagePath('dist', 'docs.json'), 'utf8')) as Section[]).map((section) => ({
    ...section,
    words: wordsOf(section.text),
    headingWords: wordsOf(section.heading),
  }));

/** The best first: rare words count more, and long sections do not win by their length. */
export function searchPages(query: string): Section[] {
  index ??= read();
  const all = index;
  const asked = [...new Set(wordsOf(query))].slice(0, QUERY_WORDS_MAX).map((word) => {
    const having = all.filter(({ words }) => words.includes(word)).length;
    return { word, rarity: having === 0 ? 0 : Math.log(1 + all.length / having) };
  });
  const scoreOf = ({ words, headingWords }: Indexed): number =>
    asked.reduce((sum, { word, rarity }) => {
      const times = words.filter((one) => one === word).length;
      const inHeading = headingWords.includes(word) ? HEADING_WEIGHT : 0;
      return sum + rarity * (times / (times + 1 + words.length / 300) + inHeading);
    }, 0);
  return all
    .map((section) => ({ section, score: scoreOf(section) }))
    .filter(({ score }) => score > 0)
    .sort((a, b) => b.score - a.score)
    .slice(0, FOUND_MAX)
    .map(({ section: { page, heading, text } }) => ({ page, heading, text: around(text, asked) }));
}

/** The part of a text where the rarest word is. */
function around(text: string, asked: readonly { word: string; rarity: number }[]): string {
  if (text.length <= SHOWN_CHARS) return text;
  const there = asked
    .filter(({ word }) => text.toLowerCase().includes(word))
    .sort((a, b) => b.rarity - a.rarity);
  const at = there[0] ? text.toLowerCase().indexOf(there[0].word) : 0;
  const from = Math.max(0, Math.min(at - SHOWN_CHARS / 2, text.length - SHOWN_CHARS));
  return `${from > 0 ? '…' : ''}${text.slice(from, from + SHOWN_CHARS)}…`;
}
