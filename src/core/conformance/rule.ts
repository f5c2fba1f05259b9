/** What the rules of the papers have in common. */
import { plainJob } from '../model.js';

/** By the name of a rule: the expected form of the answer, from the input. */
export type Rules = Record<string, (input: never) => unknown>;

/** What the vectors leave out because the rule does not look at it. */
export const anyJob = plainJob({ id: 0, userId: 0, submittedAt: 0, estimateS: 1 });
