/**
 * What is measured of runs and of their tasks, as one list. The columns of `runs` and `tasks`, what a report may say, what the tasks of a
 * run add up to, and what peers are told follow from it. A test compares it with `schema.graphql`.
 */
import type { RunRow } from './rows.js';

/** `ofTasks`: what a run of several tasks has of them, if all were measured. `max`: the limit that bounds what is reported. */
export const usageAmounts = {
  cpuS: { ofTasks: 'sum', max: 'reportedSeconds' },
  peakMemoryMb: { ofTasks: 'max', max: 'reportedMb' },
  readMb: { ofTasks: 'sum', max: 'reportedMb' },
  writtenMb: { ofTasks: 'sum', max: 'reportedMb' },
  ioWaitS: { ofTasks: 'avg', max: 'reportedSeconds' },
  deviceS: { ofTasks: 'sum', max: 'reportedSeconds' },
  deviceMemoryMb: { ofTasks: 'max', max: 'reportedMb' },
} as const;
/** How they were measured. */
export const usageMethods = ['cpuMethod', 'peakMemoryMethod', 'bytesMethod', 'ioWaitMethod'] as const;

export type UsageAmount = keyof typeof usageAmounts;
export type UsageMethod = (typeof usageMethods)[number];
export type UsageField = UsageAmount | UsageMethod;
export type Usage = Pick<RunRow, UsageField>;

/** Whether it is an amount, not how one was measured. */
export const isAmount = (field: UsageField): field is UsageAmount => field in usageAmounts;

const fields: readonly UsageField[] = [...(Object.keys(usageAmounts) as UsageAmount[]), ...usageMethods];
/** An object with `value` of each field. */
export const eachUsage = <T>(value: (field: UsageField) => T): Record<UsageField, T> =>
  Object.fromEntries(fields.map((field) => [field, value(field)])) as Record<UsageField, T>;

/** The column of each field, in `runs` and in `tasks`. */
export const usageColumn = eachUsage((field) =>
  field.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
);

/** Of a run or task of which nothing was measured. */
export const UNMEASURED: Usage = eachUsage(() => null);
