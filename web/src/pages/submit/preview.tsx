/** Where a job would go, while it is being written. */

import { type ReactNode, useEffect, useState } from 'react';
import { ask, Refused } from '../../api/client';
import { Candidates, TermList } from '../../parts/terms';
import type { PlacementPartsFragment } from '../../parts/terms.gql';
import { duration, instant, moment } from '../../ui/format';
import { Compass } from '../../ui/icons';
import { Badge, Card, Empty, Problem, Skeleton } from '../../ui/show';
import { type JobInput, PreviewDocument } from './submit.gql';

const PREVIEW_MS = 400;

export interface Placed {
  place: PlacementPartsFragment | null;
  /** Why there is no answer. */
  problem: string | null;
  /** Which field of the job as it is now is not accepted. */
  refused: Refused | null;
}

/** What a dry run answers to the job, or why it has not. */
export function usePlacement(input: JobInput | null): Placed {
  const [place, setPlace] = useState<PlacementPartsFragment | null>(null);
  const [problem, setProblem] = useState<{ error: Error; key: string } | null>(null);
  const key = input && JSON.stringify({ ...input, held: false });
  useEffect(() => {
    if (key === null) return;
    const stop = new AbortController();
    const timer = setTimeout(() => {
      ask(PreviewDocument, { spec: JSON.parse(key) as JobInput }, stop.signal).then(
        ({ placement }) => {
          setPlace(placement);
          setProblem(null);
        },
        (error: unknown) => {
          if (!stop.signal.aborted) setProblem({ error: error as Error, key });
        },
      );
    }, PREVIEW_MS);
    return () => {
      clearTimeout(timer);
      stop.abort();
    };
  }, [key]);
  const isRefused = problem?.error instanceof Refused && problem.key === key;
  return {
    place,
    problem: problem?.error.message ?? null,
    refused: isRefused ? (problem.error as Refused) : null,
  };
}

export function Preview({
  input,
  placed: { place, problem },
}: {
  input: JobInput | null;
  placed: Placed;
}): ReactNode {
  return (
    <Card title="Where it would go" about="A dry run with current information">
      {input === null ? (
        <Empty icon={<Compass size={20} />} title="Nothing to place yet">
          Once the job is complete, this shows where it would run and when it would start.
        </Empty>
      ) : problem ? (
        <Problem error={problem} />
      ) : place === null ? (
        <Skeleton lines={5} />
      ) : (
        <Placement place={place} />
      )}
    </Card>
  );
}

function Placement({ place }: { place: PlacementPartsFragment }) {
  return (
    <div className="stack">
      {place.site ? (
        <div className="placed">
          <div>
            <span className="faint tiny">Site</span>
            <p className="placed-value">{place.site.name}</p>
          </div>
          <div>
            <span className="faint tiny">Start, if no other job is submitted</span>
            <p className="placed-value num">
              {place.startsAt ? (
                Date.parse(place.startsAt) - Date.now() < 2_000 ? (
                  'at once'
                ) : (
                  <time title={instant(place.startsAt)}>{moment(place.startsAt)}</time>
                )
              ) : place.earliestStart ? (
                <time title={instant(place.earliestStart)}>not before {moment(place.earliestStart)}</time>
              ) : (
                'unknown'
              )}
            </p>
          </div>
          {place.priority !== null && (
            <div>
              <span className="faint tiny">Priority</span>
              <p className="placed-value num">{place.priority}</p>
            </div>
          )}
        </div>
      ) : (
        <Badge tone="warn">No site can run it</Badge>
      )}
      <p className="small">{place.message}</p>
      {place.fitsIfLimitS !== null && (
        <p className="small">With a run time limit of {duration(place.fitsIfLimitS)} it would start now.</p>
      )}
      {place.startsAtLatest && (
        <p className="small">
          It starts no later than{' '}
          <time title={instant(place.startsAtLatest)}>{moment(place.startsAtLatest)}</time>, if no new job
          goes ahead of it.
        </p>
      )}
      {place.allocations.length > 0 && (
        <p className="faint small">
          On{' '}
          {place.allocations
            .slice(0, 6)
            .map(({ machine }) => machine.name)
            .join(', ')}
          {place.allocations.length > 6 && ` and ${place.allocations.length - 6} more`}
        </p>
      )}
      <Candidates candidates={place.candidates} chosen={place.site?.id ?? null} />
      {Object.keys((place.jobTerms ?? {}) as object).length > 0 && <TermList terms={place.jobTerms} />}
    </div>
  );
}
