import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { endCauses, jobStates, transitions } from '../../src/core/states.js';
import { tableUnder } from './markdown.js';

const script: { withTransitions(document: string, list: typeof transitions): string } = await import(
  new URL('../../scripts/glossary.mjs', import.meta.url).href
);
const glossary = readFileSync(new URL('../../docs/glossary.md', import.meta.url), 'utf8');

describe('docs/glossary.md', () => {
  it('has the states of the core', () => {
    expect(tableUnder(glossary, 'States of a job').map(([state]) => state)).toEqual([...jobStates]);
  });

  it('has the causes of the core', () => {
    expect(tableUnder(glossary, 'Causes of end').map(([cause]) => cause)).toEqual([...endCauses]);
  });

  it('has the transitions of the core, as `npm run glossary` writes them', () => {
    expect(script.withTransitions(glossary, transitions)).toBe(glossary);
    expect(tableUnder(glossary, 'Transitions')).toHaveLength(transitions.length);
  });
});
