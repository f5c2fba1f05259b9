/** What a policy saw, as a table: a line for each site, and of each term its number and a bar. */
import './terms.css';
import { words } from '../ui/format';
import { Table } from '../ui/show';
import type { CandidatePartsFragment, TermPartsFragment } from './terms.gql';
import { type Term, termText, useTerms } from './vocabulary';

type Terms = readonly TermPartsFragment[];

const numberIn = (terms: Terms, name: string): number | undefined =>
  terms.find((term) => term.name === name)?.value;

export function Candidates({
  candidates,
  chosen,
}: {
  candidates: readonly CandidatePartsFragment[];
  /** Id of the site that was taken. */
  chosen: string | null;
}) {
  const names = [...new Set(candidates.flatMap(({ terms }) => terms.map(({ name }) => name)))];
  const termOf = useTerms()(names);
  const most = new Map(
    names.map((name) => [
      name,
      Math.max(...candidates.map(({ terms }) => Math.abs(numberIn(terms, name) ?? 0)), 1e-12),
    ]),
  );
  return (
    <Table
      label="Sites that were considered"
      rows={candidates}
      id={({ site }) => site.id}
      selected={({ site }) => site.id === chosen}
      columns={[
        {
          key: 'rank',
          header: 'Rank',
          width: 48,
          right: true,
          cell: ({ rank }) => rank ?? '–',
        },
        {
          key: 'site',
          header: 'Site',
          cell: ({ site }) => (
            <span className={site.id === chosen ? 'strong' : ''}>
              {site.name}
              {site.id === chosen && <span className="hidden-visually"> (chosen)</span>}
            </span>
          ),
        },
        ...names.map((name) => {
          const term = termOf(name);
          return {
            key: name,
            header: <TermHead term={term} />,
            right: true,
            cell: (candidate: CandidatePartsFragment) => {
              const value = numberIn(candidate.terms, name);
              if (value === undefined) return <span className="faint">–</span>;
              return (
                <span className="term-cell">
                  <span>{termText(term, value)}</span>
                  <span className="bar thin" aria-hidden>
                    <span style={{ width: `${(100 * Math.abs(value)) / most.get(name)!}%` }} />
                  </span>
                </span>
              );
            },
          };
        }),
        {
          key: 'why',
          header: <span className="hidden-visually">Why not</span>,
          cell: ({ eligible, reason }) =>
            !eligible && <span className="faint">{reason ? words(reason) : 'Not eligible'}</span>,
        },
      ]}
    />
  );
}

function TermHead({ term }: { term: Term }) {
  return (
    <span title={term.about ?? undefined} className="term-head">
      {term.label}
      {term.better && <small>{term.better === 'LOW' ? '↓ better' : '↑ better'}</small>}
    </span>
  );
}

/** Numbers by name, each with a bar: what a priority is made of. */
export function TermList({ terms }: { terms: Terms }) {
  const termOf = useTerms()(terms.map(({ name }) => name));
  const max = Math.max(...terms.map(({ value }) => Math.abs(value)), 1e-12);
  return (
    <dl className="term-list">
      {terms.map(({ name, value }) => {
        const term = termOf(name);
        return (
          <div key={name}>
            <dt title={term.about ?? undefined}>{term.label}</dt>
            <dd className="num right">{termText(term, value)}</dd>
            <span className="bar thin" aria-hidden>
              <span style={{ width: `${(100 * Math.abs(value)) / max}%` }} />
            </span>
          </div>
        );
      })}
    </dl>
  );
}
