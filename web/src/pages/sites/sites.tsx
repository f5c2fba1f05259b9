import { Link, useNavigate } from '@tanstack/react-router';
import { useEffect, useState } from 'react';
import { useAction, useData } from '../../api/data';
import { useStore } from '../../api/store';
import { gridChanges } from '../../shell/feed';
import { useViewer } from '../../shell/viewer';
import { Button, Dialog, TextInput } from '../../ui/controls';
import { count } from '../../ui/format';
import { Plus, Server } from '../../ui/icons';
import { Ago, Bar, Card, Empty, Loaded, Page, PlaceBadge, Skeleton, Table } from '../../ui/show';
import { told } from '../../ui/toast';
import { RegisterSiteDocument, SitesDocument } from './sites.gql';

// biome-ignore lint/complexity/noExcessiveLinesPerFunction: a table, with its columns
export function Sites() {
  const viewer = useViewer();
  const sites = useData(SitesDocument, {}, { everyMs: 4_000 });
  const changes = useStore(gridChanges);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the grid has changed
  useEffect(() => {
    if (changes > 0) sites.refresh();
  }, [changes]);
  const [adding, setAdding] = useState(false);
  return (
    <Page
      title="Sites"
      about="Groups of machines, each with its own queue and scheduler."
      actions={
        viewer.may('OPERATOR') && (
          <Button icon={<Plus size={14} />} onPress={() => setAdding(true)}>
            Add a site
          </Button>
        )
      }
    >
      <Card flush>
        <Loaded
          from={sites}
          skeleton={
            <div className="card-body">
              <Skeleton lines={5} />
            </div>
          }
        >
          {({ sites }) => (
            <Table
              label="Sites"
              rows={sites.nodes}
              id={({ id }) => id}
              empty={
                <Empty icon={<Server size={20} />} title="No sites">
                  Jobs wait until there is a site with machines and an agent.
                </Empty>
              }
              columns={[
                {
                  key: 'name',
                  header: 'Site',
                  cell: ({ id, name }) => (
                    <Link to="/sites/$id" params={{ id }} className="strong">
                      {name}
                    </Link>
                  ),
                },
                {
                  key: 'state',
                  header: 'State',
                  cell: ({ state, machines }) => (
                    <PlaceBadge
                      state={state}
                      silent={machines.length > 0 && machines.every(({ silent }) => silent)}
                    />
                  ),
                },
                {
                  key: 'cpus',
                  header: 'CPUs in use',
                  width: '24%',
                  cell: ({ cpus, cpusUsed }) => (
                    <div className="row">
                      <div className="grow">
                        <Bar
                          value={cpusUsed}
                          max={cpus}
                          label={`${count(cpusUsed)} of ${count(cpus)} CPUs in use`}
                        />
                      </div>
                      <span className="num small" style={{ minWidth: 92, textAlign: 'right' }}>
                        {count(cpusUsed)} <span className="faint">/ {count(cpus)}</span>
                      </span>
                    </div>
                  ),
                },
                {
                  key: 'running',
                  header: 'Running',
                  right: true,
                  cell: ({ runningJobs, maxRunningJobs }) => (
                    <>
                      {count(runningJobs)}
                      {maxRunningJobs !== null && <span className="faint"> / {count(maxRunningJobs)}</span>}
                    </>
                  ),
                },
                { key: 'queued', header: 'Queued', right: true, cell: ({ queuedJobs }) => count(queuedJobs) },
                ...(sites.nodes.some(({ metaQueuedJobs }) => metaQueuedJobs > 0)
                  ? [
                      {
                        key: 'meta',
                        header: 'Meta-queue',
                        right: true,
                        cell: ({ metaQueuedJobs }: { metaQueuedJobs: number }) => count(metaQueuedJobs),
                      },
                    ]
                  : []),
                {
                  key: 'machines',
                  header: 'Machines up',
                  right: true,
                  cell: ({ machines }) => (
                    <>
                      {count(machines.filter(({ state, silent }) => state === 'UP' && !silent).length)}
                      <span className="faint"> / {count(machines.length)}</span>
                    </>
                  ),
                },
                {
                  key: 'policy',
                  header: 'Local policy',
                  minor: true,
                  cell: ({ localPolicy }) =>
                    (localPolicy as { kind?: string } | null)?.kind ?? (
                      <span className="faint">as in the current policy</span>
                    ),
                },
                {
                  key: 'agent',
                  header: 'Agent heard',
                  right: true,
                  minor: true,
                  cell: ({ agentSeenAt }) => <Ago at={agentSeenAt} />,
                },
              ]}
            />
          )}
        </Loaded>
      </Card>
      {adding && <AddSite onClose={() => setAdding(false)} />}
    </Page>
  );
}

const coordinate = (text: string): number | null => (text.trim() === '' ? null : Number(text));

function AddSite({ onClose }: { onClose(): void }) {
  const navigate = useNavigate();
  const register = useAction(RegisterSiteDocument);
  const [name, setName] = useState('');
  const [latitude, setLatitude] = useState('');
  const [longitude, setLongitude] = useState('');
  return (
    <Dialog
      title="Add a site"
      open
      onClose={onClose}
      footer={
        <Button
          variant="primary"
          isDisabled={name.trim() === '' || register.busy}
          onPress={async () => {
            const input = {
              name: name.trim(),
              latitude: coordinate(latitude),
              longitude: coordinate(longitude),
            };
            const done = await told(register.run({ input }), `The site ${name.trim()} is registered.`);
            if (done) void navigate({ to: '/sites/$id', params: { id: done.createSite.site.id } });
          }}
        >
          Add it
        </Button>
      }
    >
      <TextInput
        label="Name"
        value={name}
        onChange={setName}
        autoFocus
        help="Letters, digits, “.”, “_” and “-”, up to 64"
      />
      <div className="columns" style={{ '--column': '160px' } as React.CSSProperties}>
        <TextInput
          label="Latitude"
          type="number"
          step="any"
          unit="° north"
          value={latitude}
          onChange={setLatitude}
        />
        <TextInput
          label="Longitude"
          type="number"
          step="any"
          unit="° east"
          value={longitude}
          onChange={setLongitude}
        />
      </div>
      <p className="muted small">
        It starts jobs once it has machines and a running agent with a key for it.
      </p>
    </Dialog>
  );
}
