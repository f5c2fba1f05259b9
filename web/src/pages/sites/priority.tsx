/** A job's priority, and on request the terms that it is made of. */
import { Button as AriaButton, Dialog as AriaDialog, DialogTrigger, Popover } from 'react-aria-components';
import { useData } from '../../api/data';
import { TermList } from '../../parts/terms';
import { numberOf } from '../../ui/format';
import { Loaded, Skeleton } from '../../ui/show';
import { PriorityTermsDocument } from './sites.gql';

interface Prioritized {
  id: string;
  priority: number | null;
  boost: number;
}

export function Priority({ job }: { job: Prioritized }) {
  const { id, priority, boost } = job;
  if (priority === null) return <span className="faint">–</span>;
  return (
    <DialogTrigger>
      <AriaButton className="link num" aria-label={`Priority ${priority} of job ${numberOf(id)}: its terms`}>
        {priority}
        {boost !== 0 && <span className="faint"> {boost > 0 ? `+${boost}` : boost}</span>}
      </AriaButton>
      <Popover className="popover panel" placement="bottom end">
        <AriaDialog aria-label={`Terms of the priority of job ${numberOf(id)}`} className="dialog">
          <Terms job={job} />
        </AriaDialog>
      </Popover>
    </DialogTrigger>
  );
}

function Terms({ job: { id, priority, boost } }: { job: Prioritized }) {
  const decisions = useData(PriorityTermsDocument, { id });
  return (
    <div className="stack" style={{ width: 300 }}>
      <Loaded from={decisions} skeleton={<Skeleton lines={3} />}>
        {({ job }) => {
          const dispatch = job?.decisions.nodes.findLast(({ kind }) => kind === 'DISPATCH');
          return dispatch && dispatch.jobTerms.length > 0 ? (
            <TermList terms={dispatch.jobTerms} />
          ) : (
            <p className="muted small">The policy that sent it here provided no terms.</p>
          );
        }}
      </Loaded>
      <p className="tiny faint">
        Given at dispatch: {priority}
        {boost !== 0 && `, boosted by ${boost}`}
      </p>
    </div>
  );
}
