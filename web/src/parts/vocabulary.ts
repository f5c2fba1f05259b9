/** Terms and numbers of decisions and explanations in words, with their units: as the service describes them. */
import { useCallback } from 'react';
import { useData } from '../api/data';
import { PolicyKindsDocument, type PolicyKindsQuery, type PolicyTermPartsFragment } from '../api/kinds.gql';
import { count, duration, figure, megabytes, moment, named } from '../ui/format';

export type Term = Pick<PolicyTermPartsFragment, 'label' | 'about' | 'unit' | 'better'>;

type Kinds = PolicyKindsQuery['policyKinds'];

/** What the service says of terms and numbers; until it has, they are called by their names. */
export function useTerms(): (names: readonly string[]) => (name: string) => Term {
  const { data } = useData(PolicyKindsDocument, {});
  return useCallback((names) => termsAmong(data?.policyKinds, names), [data]);
}

/** Kinds have terms of the same name: those count of the kind that has most of the names. */
function termsAmong(kinds: Kinds | undefined, names: readonly string[]): (name: string) => Term {
  const all = kinds ? [...kinds.dispatch, ...kinds.local].map(({ terms }) => terms) : [];
  const shared = (terms: Kinds['numbers']): number => terms.filter(({ name }) => names.includes(name)).length;
  const known = [...all.sort((a, b) => shared(b) - shared(a)), kinds?.numbers ?? []].flat();
  return (name) => known.find((term) => term.name === name) ?? unknownTerm(name);
}

function unknownTerm(name: string): Term {
  const { label, unit } = named(name);
  const known = /At$|Until$/.test(name) ? 'AT' : unit === 's' ? 'S' : unit === 'MB' ? 'MB' : null;
  return { label, about: null, unit: known, better: null };
}

export function termText({ unit }: Term, value: number): string {
  switch (unit) {
    case 'S':
      return duration(value);
    case 'AT':
      return moment(value * 1000);
    case 'SHARE':
      return `${Math.round(value * 100)} %`;
    case 'JOB':
      return `job ${value}`;
    case 'MB':
      return megabytes(value);
    case 'JOBS':
    case 'CPUS':
      return count(value);
    default:
      return figure(value);
  }
}
