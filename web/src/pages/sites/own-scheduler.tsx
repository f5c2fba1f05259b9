import { count, duration } from '../../ui/format';
import { Card, Empty, Table } from '../../ui/show';
import type { SitePartsFragment } from './sites.gql';

/** The site's own scheduler: its partitions, and others' jobs that wait there, where its agent reports them. */
export function OwnScheduler({ load }: { load: NonNullable<SitePartsFragment['load']> }) {
  return (
    <>
      <Card title="Partitions" about="as its agent reports them" flush>
        <Table
          label="Partitions"
          rows={load.partitions}
          id={({ name }) => name}
          empty={<Empty title="None reported" />}
          columns={[
            {
              key: 'name',
              header: 'Name',
              cell: ({ name, isDefault }) => (
                <>
                  <span className="strong">{name}</span>
                  {isDefault && <span className="faint tiny"> default</span>}
                </>
              ),
            },
            { key: 'state', header: 'State', cell: ({ state }) => state },
            { key: 'used', header: 'Jobs from here', cell: ({ isUsed }) => (isUsed ? 'yes' : 'no') },
            {
              key: 'limit',
              header: 'Longest limit',
              cell: ({ longestS }) => (longestS === null ? 'none' : duration(longestS)),
            },
            { key: 'nodes', header: 'Nodes', cell: ({ nodes, nodeList }) => `${count(nodes)}: ${nodeList}` },
            {
              key: 'cpus',
              header: 'CPUs in use',
              cell: ({ busyCpus, cpus }) => `${count(busyCpus)} of ${count(cpus)}`,
            },
          ]}
        />
      </Card>
      {load.queue !== null && (
        <Card title="Others waiting there" about={`the first of ${count(load.waitingJobs)}`} flush>
          <Table
            label="Others waiting there"
            rows={load.queue.map((one, place) => ({ ...one, place }))}
            id={({ place }) => String(place)}
            empty={<Empty title="Nobody else waits" />}
            columns={[
              { key: 'id', header: 'ID there', cell: ({ id }) => id ?? '–' },
              { key: 'cpus', header: 'CPUs', cell: ({ cpus }) => count(cpus) },
              { key: 'limit', header: 'Limit', cell: ({ limitS }) => duration(limitS) },
              { key: 'reason', header: 'Reason', cell: ({ reason }) => reason ?? '–' },
            ]}
          />
        </Card>
      )}
    </>
  );
}
