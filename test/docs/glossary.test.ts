import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { endCauses, jobStates, transitions } from '../../src/core/states.js';
import { tableUnder } from './markdown.js';

const glossary = readFileSync(new URL('../../docs/glossary.md', import.meta.url), 'utf8');

describe('docs/glossary.md', () => {
  it('has the states of the core', () => {
    expect(tableUnder(glossary, 'States of a job').map(([state]) => state)).toEqual([...jobStates]);
  });

  it('has the causes of the core', () => {
    expect(tableUnder(glossary, 'Causes of end').map(([cause]) => cause)).toEqual([...endCauses]);
  });

  it('has the transitions of the core', () => {
    const expected = Object.entries(transitions).flatMap(([from, ways]) =>
      Object.entries(ways).map(([to, when]) => [from === 'NONE' ? '(new)' : from, to, when]),
    );
    expect(tableUnder(glossary, 'Transitions')).toEqual(expected);
  });
});
