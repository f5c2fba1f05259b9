/** What a schema accepts, in words for the people who write documents. */
import type { z } from 'zod';

const TYPES: Readonly<Record<string, string>> = {
  object: 'an object',
  record: 'an object',
  array: 'a list',
  string: 'a text',
  number: 'a number',
  int: 'a whole number',
  boolean: 'true or false',
  null: 'null',
};

/** For zod's `error`; undefined where its own words do. */
export function accepted(issue: z.core.$ZodRawIssue): string | undefined {
  switch (issue.code) {
    case 'invalid_type':
      return TYPES[String(issue.expected)];
    case 'too_small':
      return issue.origin === 'number' || issue.origin === 'int'
        ? `${issue.inclusive ? 'at least' : 'more than'} ${issue.minimum}`
        : undefined;
    case 'too_big':
      return issue.origin === 'number' || issue.origin === 'int'
        ? `${issue.inclusive ? 'at most' : 'less than'} ${issue.maximum}`
        : undefined;
    case 'invalid_value':
      return (issue.values as unknown[]).map(String).join(', ');
    case 'invalid_union':
      return Array.isArray(issue.options) ? issue.options.map(String).join(', ') : undefined;
    default:
      return undefined;
  }
}
