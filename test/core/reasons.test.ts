import { describe, expect, it } from 'vitest';
import { changeFor } from '../../src/core/explain/waiting.js';
import { ReasonCode, reasonSentence, WaitingReason, waitingOnHold } from '../../src/core/index.js';

describe('reason codes', () => {
  it('each has a sentence of its own', () => {
    const sentences = Object.values(ReasonCode).map((code) => reasonSentence(code));
    for (const sentence of sentences) expect(sentence).toMatch(/^[A-Z].*\.$/);
    expect(new Set(sentences).size).toBe(sentences.length);
  });

  it('each for waiting says what would change it', () => {
    for (const code of Object.values(WaitingReason)) expect(changeFor(code)).toMatch(/^[A-Z].*\.$/);
    expect(waitingOnHold().wouldChange).toEqual(['Release the job.']);
  });

  it('names itself', () => {
    for (const [name, code] of Object.entries(ReasonCode)) expect(name).toBe(code);
  });
});
