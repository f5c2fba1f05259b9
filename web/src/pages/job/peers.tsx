/** What other services have to do with a job: who may have it, who runs it, and why it is not offered to the others. */
import { Link } from '@tanstack/react-router';
import { useEffect } from 'react';
import { useData } from '../../api/data';
import { WAITING } from '../../ui/format';
import { Badge, Card, Table } from '../../ui/show';
import { JobPeersDocument, type JobPeersQuery } from './job.gql';
import type { Job } from './shown';

type AtPeer = NonNullable<JobPeersQuery['job']>['peers'][number];

const ASK_MS = 2_000;

/** Nothing where there are no peers, or none has to do with it. */
export function PeersCard({ job }: { job: Job }) {
  const asked = useData(JobPeersDocument, { id: job.id }, WAITING.has(job.state) ? { everyMs: ASK_MS } : {});
  // biome-ignore lint/correctness/useExhaustiveDependencies: asked again when the job has moved on
  useEffect(() => asked.refresh(), [job.state]);
  const peers = asked.data?.job?.peers ?? [];
  if (peers.length === 0) return null;
  return (
    <Card title="Peers" about="Other services that run jobs for this one" flush>
      <Table
        label="Peers"
        rows={peers}
        id={({ peer }) => peer.id}
        columns={[
          {
            key: 'service',
            header: 'Service',
            cell: ({ peer }) => (
              <Link to="/sites/$id" params={{ id: peer.id }}>
                {peer.name}
              </Link>
            ),
          },
          { key: 'state', header: 'The job', cell: stateOf },
          {
            key: 'why',
            header: 'Reason, or location there',
            cell: ({ reason, path }) => reason ?? path?.join(' › ') ?? '',
          },
        ]}
      />
    </Card>
  );
}

function stateOf({ state }: AtPeer) {
  if (state === 'CLAIMED') return <Badge tone="good">Runs there</Badge>;
  return state === 'OFFERED' ? <Badge tone="accent">Offered</Badge> : <Badge>Not offered</Badge>;
}
