/** What a job needs of others, and which others need it. */
import { Link } from '@tanstack/react-router';
import { type ReactNode, useEffect } from 'react';
import { useData } from '../../api/data';
import { duration, WAITING } from '../../ui/format';
import { At, Card, StateBadge } from '../../ui/show';
import { JobNeedsDocument, type JobNeedsQuery, type JobWaitsQuery } from './job.gql';
import type { Job } from './shown';

type Needs = NonNullable<JobNeedsQuery['job']>;
type Term = Needs['needs'][number]['of'][number];
type Other = Needs['neededBy'][number];

const ASK_MS = 4_000;
const CONDITIONS: Record<Term['condition'], string> = {
  START: 'has started',
  OK: 'has completed',
  NOT_OK: 'has ended without completing',
  ANY: 'has ended',
};
const OTHERWISE = { CANCEL: 'canceled', HOLD: 'held', RUN: 'run anyway' };

/** Nothing where it needs nothing and nobody needs it. `acts` counts what was done to the job here: then a copy of it may run. */
export function NeedsCard({ job, acts }: { job: Job; acts: number }) {
  const asked = useData(JobNeedsDocument, { id: job.id }, WAITING.has(job.state) ? { everyMs: ASK_MS } : {});
  // biome-ignore lint/correctness/useExhaustiveDependencies: asked again when the job has moved on
  useEffect(() => asked.refresh(), [job.state, acts]);
  const found = asked.data?.job;
  if (!found) return null;
  const { rerunOf, rerunAs, workflow } = found;
  if (found.needs.length + found.neededBy.length === 0 && !rerunOf && !rerunAs) return null;
  return (
    <Card title="Other jobs" about="Its dependencies and dependents">
      <div className="stack">
        {rerunOf && <p>Run again in place of {linked(rerunOf)}</p>}
        {rerunAs && <p>Run again as {linked(rerunAs)}</p>}
        {found.needs.length > 0 && (
          <div>
            <h3 className="muted">It runs when</h3>
            <ul className="bullets">
              {found.needs.map(({ expression, of }, clause) => (
                // biome-ignore lint/suspicious/noArrayIndexKey: clauses have no name, and do not change
                <li key={clause}>
                  {of.map((term, i) => (
                    // biome-ignore lint/suspicious/noArrayIndexKey: neither have terms
                    <span key={i}>
                      {i > 0 && (expression === 'ANY' ? ' or ' : ' and ')}
                      {condition(term)}
                    </span>
                  ))}
                </li>
              ))}
            </ul>
            {found.onUnmet && <p className="muted small">Otherwise it is {OTHERWISE[found.onUnmet]}.</p>}
          </div>
        )}
        {workflow && (
          <p className="muted small">
            Number {workflow.place} of its workflow by rank: {duration(workflow.rankS)} to the end of the
            longest path from here.
          </p>
        )}
        {found.neededBy.length > 0 && (
          <div>
            <h3 className="muted">Needed by</h3>
            <ul className="bullets">
              {found.neededBy.map((other) => (
                <li key={other.id}>{linked(other)}</li>
              ))}
            </ul>
          </div>
        )}
      </div>
    </Card>
  );
}

type Missing = NonNullable<NonNullable<JobWaitsQuery['job']>['whyWaiting']>['missing'];

/** What a job waits for, each with when it is expected. */
export const MissingNeeds = ({ missing }: { missing: Missing }) => (
  <div>
    <h3 className="muted">It waits until</h3>
    <ul className="bullets">
      {missing.map(({ term, expectedAt, unknown }, i) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: terms have no name
        <li key={i}>
          {condition(term)}
          <span className="muted small">
            {' · '}
            {expectedAt ? (
              <>
                expected <At at={expectedAt} />
              </>
            ) : (
              `expected time unknown: ${unknown}`
            )}
          </span>
        </li>
      ))}
    </ul>
  </div>
);

const condition = (term: Term): ReactNode => (
  <>
    {subject(term)} {CONDITIONS[term.condition]}
    {term.minDelayS > 0 && ` for ${term.minDelayS} s`}
  </>
);

function subject({ job, jobGroup, group }: Term): ReactNode {
  if (job) return linked(job);
  if (jobGroup) return `each job of the group ${jobGroup.name ?? jobGroup.id}`;
  return group === null ? 'a job of another user' : `each job of the group ${group}`;
}

const linked = ({ id, name, state }: Other): ReactNode => (
  <>
    <Link to="/jobs/$id" params={{ id }}>
      {name ?? id}
    </Link>{' '}
    <StateBadge state={state} />
  </>
);
