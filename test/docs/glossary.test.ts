import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { endCauses, jobStates } from '../../src/core/states.js';
import { packagePath } from '../../src/platform/paths.js';
import { tableUnder } from './markdown.js';

const glossary = readFileSync(packagePath('docs', 'glossary.md'), 'utf8');

describe('docs/glossary.md', () => {
  it('has the states of the core', () => {
    expect(tableUnder(glossary, 'States of a job').map(([state]) => state)).toEqual([...jobStates]);
  });

  it('has the causes of the core', () => {
    expect(tableUnder(glossary, 'Causes of end').map(([cause]) => cause)).toEqual([...endCauses]);
  });
});
