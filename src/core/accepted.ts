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
      return `${issue.inclusive ? 'at least' : 'more than'} ${issue.minimum}${unitOf(issue.origin, issue.minimum)}`;
    case 'too_big':
      return `${issue.inclusive ? 'at most' : 'less than'} ${issue.maximum}${unitOf(issue.origin, issue.maximum)}`;
    case 'invalid_value':
      return (issue.values as unknown[]).map(String).join(', ');
    case 'invalid_union':
      return Array.isArray(issue.options)
        ? issue.options.map(String).join(', ')
        : [...new Set(issue.errors.flat().map(({ message }) => message))].join(' or ');
    default:
      return undefined;
  }
}

/** What is counted of a value that is no number. */
function unitOf(origin: string, count: number | bigint): string {
  if (origin === 'string') return count === 1 ? ' character' : ' characters';
  if (origin !== 'array' && origin !== 'record') return '';
  return count === 1 ? ' entry' : ' entries';
}
