/** The services that this one exchanges jobs with: what each may take and give, and whether it does. */
import { Link } from '@tanstack/react-router';
import { useState } from 'react';
import { useAction, useData } from '../../api/data';
import { useViewer } from '../../shell/viewer';
import { Button, Dialog } from '../../ui/controls';
import { count, duration, plural } from '../../ui/format';
import { Ago, Badge, Card, type Column, Table } from '../../ui/show';
import { told } from '../../ui/toast';
import {
  FederationDocument,
  type FederationPeerPartsFragment,
  IsolatePeerDocument,
  RejoinPeerDocument,
} from './tree.gql';

type Peer = FederationPeerPartsFragment;

/** Nothing where the service has no such peers, or the viewer may not see them. */
export function Federation() {
  const viewer = useViewer();
  const federation = useData(FederationDocument, {}, { everyMs: 3_000, pause: !viewer.may('OPERATOR') });
  const rejoin = useAction(RejoinPeerDocument);
  const [isolating, setIsolating] = useState<Peer | null>(null);
  const peers = federation.data?.federationPeers ?? [];
  if (peers.length === 0) return null;

  const action: Column<Peer> = {
    key: 'action',
    header: <span className="hidden-visually">Change</span>,
    right: true,
    cell: (peer) =>
      peer.isolated ? (
        <Button
          className="small"
          isDisabled={rejoin.busy}
          onPress={() =>
            void told(
              rejoin.run({ peer: peer.site.id }),
              `Jobs are exchanged with “${peer.name}” again.`,
            ).then(federation.refresh)
          }
        >
          Rejoin
        </Button>
      ) : (
        <Button className="small" variant="quiet" onPress={() => setIsolating(peer)}>
          Isolate…
        </Button>
      ),
  };
  return (
    <>
      <Card
        title="Federation"
        about="Services with their own administrators that exchange jobs with this one"
        flush
      >
        <Table
          label="Federation"
          rows={peers}
          id={({ site }) => site.id}
          columns={[...COLUMNS, ...(viewer.may('ADMIN') ? [action] : [])]}
        />
        {isolating && (
          <IsolateDialog
            peer={isolating}
            onClose={() => {
              setIsolating(null);
              federation.refresh();
            }}
          />
        )}
      </Card>
      <Accepted peers={peers} />
      <ForeignUsers peers={peers} />
    </>
  );
}

/** What keeps jobs from each peer whatever its rule: the protocol that it speaks, and the classes that it knows. */
function Accepted({ peers }: { peers: readonly Peer[] }) {
  return (
    <Card
      title="Accepted by peers"
      about="Classes and devices are sent from version 3 of the peer protocol on"
      flush
    >
      <Table
        label="Accepted by peers"
        rows={peers}
        id={({ site }) => site.id}
        columns={[
          { key: 'service', header: 'Service', cell: ({ name }) => name },
          {
            key: 'protocol',
            header: 'Protocol',
            right: true,
            cell: ({ protocol }) => protocol ?? <span className="faint">not known</span>,
          },
          {
            key: 'classes',
            header: 'Classes',
            cell: ({ classes }) => classes.join(', ') || <span className="faint">none</span>,
          },
          {
            key: 'not-offered',
            header: 'Not offered',
            cell: ({ notOffered }) => notOffered.map((why) => <div key={why}>{why}</div>),
          },
        ]}
      />
    </Card>
  );
}

/** Whose jobs the peers' jobs are here. */
function ForeignUsers({ peers }: { peers: readonly Peer[] }) {
  const rows = peers.flatMap(({ site, name: service, user, users }) =>
    [...users, { name: null, user }].map(({ name, user: here }) => {
      return { id: `${site.id} ${name === null ? '' : `=${name}`}`, service, name, here };
    }),
  );
  return (
    <Card
      title="Users of peers"
      about="The local users to whom their jobs belong, which determine quota and share"
      flush
    >
      <Table
        label="Users of peers"
        rows={rows}
        id={({ id }) => id}
        columns={[
          { key: 'service', header: 'Service', cell: ({ service }) => service },
          {
            key: 'there',
            header: 'User there',
            cell: ({ name }) => name ?? <span className="faint">all others</span>,
          },
          {
            key: 'here',
            header: 'Local user',
            cell: ({ here }) => (
              <Link to="/users/$id" params={{ id: here.id }}>
                {here.name}
              </Link>
            ),
          },
        ]}
      />
    </Card>
  );
}

const COLUMNS: readonly Column<Peer>[] = [
  {
    key: 'name',
    header: 'Service',
    cell: ({ site, name }) => (
      <Link to="/sites/$id" params={{ id: site.id }}>
        {name}
      </Link>
    ),
  },
  { key: 'state', header: 'State', cell: (peer) => <State peer={peer} /> },
  {
    key: 'heard',
    header: 'Heard',
    right: true,
    minor: true,
    cell: ({ seenAt }) => <Ago at={seenAt} />,
  },
  { key: 'offered', header: 'Offered our jobs', cell: offersOf },
  { key: 'hops', header: 'Hops', right: true, minor: true, cell: ({ hops }) => count(hops) },
  {
    key: 'foreign',
    header: 'Its jobs here',
    right: true,
    cell: ({ foreignJobs, foreignMax }) => (
      <>
        {count(foreignJobs)} <span className="unit-of">of {count(foreignMax)}</span>
      </>
    ),
  },
  {
    key: 'claimable',
    header: 'Our jobs offered',
    right: true,
    cell: ({ offeredJobs }) => count(offeredJobs),
  },
  { key: 'there', header: 'Our jobs there', right: true, cell: ({ claimedJobs }) => count(claimedJobs) },
];

function State({ peer }: { peer: Peer }) {
  if (peer.isolated) return <Badge tone="warn">Isolated</Badge>;
  if (peer.failure)
    return (
      <>
        <Badge tone="danger">No answer</Badge> <span className="faint">{peer.failure}</span>
      </>
    );
  if (peer.url === null) return <Badge>No address</Badge>;
  return peer.reachedAt === null ? <Badge>Not contacted yet</Badge> : <Badge tone="good">Answers</Badge>;
}

function offersOf({ forward, neededAfterS }: Peer): string {
  if (forward === 'WHEN_CHEAPER') return 'when they would run there sooner';
  if (forward === 'WHEN_NEEDED') return `when they would wait ${duration(neededAfterS)}`;
  return forward === 'ALWAYS' ? 'always' : 'never';
}

function IsolateDialog({ peer, onClose }: { peer: Peer; onClose(): void }) {
  const isolate = useAction(IsolatePeerDocument);
  return (
    <Dialog
      title={`Isolate ${peer.name}`}
      open
      onClose={onClose}
      footer={
        <>
          <Button onPress={onClose}>Keep exchanging</Button>
          <Button
            variant="danger"
            className="solid"
            isDisabled={isolate.busy}
            onPress={() =>
              void told(
                isolate.run({ peer: peer.site.id }),
                `Nothing new is exchanged with “${peer.name}”.`,
              ).then(onClose)
            }
          >
            Isolate
          </Button>
        </>
      }
    >
      <p>
        No new jobs are exchanged from now on. Of its {plural(peer.foreignJobs, 'job')} here, those that wait
        return to it. Of our {plural(peer.offeredJobs, 'offer')} and {plural(peer.claimedJobs, 'job')} there,
        those that wait are taken back and wait here. Granted runs continue to their end.
      </p>
    </Dialog>
  );
}
