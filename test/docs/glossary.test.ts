import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { endCauses, jobStates, transitions } from '../../src/core/states.js';
import { tableUnder } from './markdown.js';

const script: {
  withPart(document: string, mark: string, text: string): string;
  transitionTable(list: typeof transitions): string;
  roomsDrawing(): string;
} = await import(new URL('../../scripts/docs.mjs', import.meta.url).href);
const read = (name: string): string => readFileSync(new URL(`../../docs/${name}`, import.meta.url), 'utf8');
const glossary = read('glossary.md');

describe('docs/glossary.md', () => {
  it('has the states of the core', () => {
    expect(tableUnder(glossary, 'States of a job').map(([state]) => state)).toEqual([...jobStates]);
  });

  it('has the causes of the core', () => {
    expect(tableUnder(glossary, 'Causes of end').map(([cause]) => cause)).toEqual([...endCauses]);
  });

  it('has the transitions of the core, as `npm run docs` writes them', () => {
    expect(script.withPart(glossary, 'transitions', script.transitionTable(transitions))).toBe(glossary);
    expect(tableUnder(glossary, 'Transitions')).toHaveLength(transitions.length);
  });
});

describe('docs/ARCHITECTURE.md', () => {
  it('draws the rooms as `npm run docs` does', () => {
    const architecture = read('ARCHITECTURE.md');
    expect(script.withPart(architecture, 'rooms', script.roomsDrawing())).toBe(architecture);
    expect(architecture).toContain('store --> core');
  });
});
