/** What a job waits for, in the words of sbatch's `--dependency`: of its options, and of the portal's forms. */
import type { Need } from './asked.js';
import { NotAccepted } from './values.js';

const CONDITIONS: Readonly<Record<string, Need['condition']>> = {
  ...{ after: 'START', afterok: 'OK', afternotok: 'NOT_OK', afterany: 'ANY', aftercorr: 'CORRESPONDING' },
};

/** As `NeedClauseInput` of the schema. */
export interface NeedClause {
  expression: 'ALL' | 'ANY';
  of: Need[];
}

/** `afterok:12:13`, `after:12+5` (minutes), `afterany:group_3`, `afterok:group:NAME`. */
export function termsOf(field: string, written: string, accepted: string): Need[] {
  const [, kind = '', rest = ''] = /^\s*(\w+):(.+)$/.exec(written) ?? [];
  const condition = CONDITIONS[kind.toLowerCase()];
  if (condition === undefined) throw new NotAccepted(field, written, accepted);
  return (rest.match(/group:[^:]*|[^:]+/g) ?? []).map((one) => {
    const [, job, jobGroup, group, minutes] =
      /^(?:(?:job_)?(\d+)(?:_\*)?|(group_\d+)|group:([^+]+?))(?:\+(\d+))?\s*$/.exec(one) ?? [];
    const target = job ? { job: `job_${job}` } : jobGroup ? { jobGroup } : group ? { group } : null;
    if (target === null) throw new NotAccepted(field, written, accepted);
    return { ...target, condition, ...(minutes !== undefined && { minDelayS: Number(minutes) * 60 }) };
  });
}

const ACCEPTED =
  'after, afterok, afternotok, afterany or aftercorr with jobs or groups, such as afterok:12:13,afterany:group:prep; of those with ? between them one is enough';

/** All of what stands between commas; of what stands between question marks one is enough. */
export const parseNeeds = (field: string, written: string): NeedClause[] =>
  written.split(',').map((clause) => {
    const of = clause.split('?').flatMap((terms) => termsOf(field, terms, ACCEPTED));
    return { expression: clause.includes('?') ? 'ANY' : 'ALL', of };
  });

/** As `parseNeeds` reads it; null: it cannot be said so. */
export function needsWritten(clauses: readonly NeedClause[]): string | null {
  const terms = clauses.map(({ expression, of }) => {
    const words = of.map(termWritten);
    return words.includes(null) ? null : words.join(expression === 'ANY' ? '?' : ',');
  });
  return terms.includes(null) ? null : terms.join(',');
}

function termWritten({ job, jobGroup, group, condition, minDelayS = 0 }: Need): string | null {
  const [word] = Object.entries(CONDITIONS).find(([, one]) => one === condition) ?? [];
  const target = job?.replace(/^job_/, '') ?? jobGroup ?? (group && `group:${group}`);
  if (word === undefined || target === undefined || minDelayS % 60 !== 0 || /[,?+:]/.test(group ?? ''))
    return null;
  return `${word}:${target}${minDelayS > 0 ? `+${minDelayS / 60}` : ''}`;
}
