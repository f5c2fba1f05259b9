/** What the rules of the papers have in common. */

/** By the name of a rule: the expected form of the answer, from the input. */
export type Rules = Record<string, (input: never) => unknown>;

/** What the vectors leave out because the rule does not look at it. */
export const anyJob = {
  userId: 0,
  userClass: 'REGULAR',
  tasks: 1,
  cpusPerTask: 1,
  memoryMbPerTask: 0,
  licences: [],
  os: null,
  arch: null,
  boost: 0,
  priority: null,
  runTimeLimit: null,
  application: '',
  groupId: 0,
  migratedAt: null,
  data: null,
} as const;
