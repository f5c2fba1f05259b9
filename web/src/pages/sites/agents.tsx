import { useData } from '../../api/data';
import { byName, count, duration } from '../../ui/format';
import { Ago, At, Badge, Card, Empty, Loaded, Skeleton, Table } from '../../ui/show';
import { SiteAgentsDocument, type SitePartsFragment } from './sites.gql';

/** Who serves the machines: a machine has one agent at a time, which holds a lease on it. */
export function Agents({ site, silentS }: { site: SitePartsFragment; silentS: number | null }) {
  const found = useData(SiteAgentsDocument, { id: site.id }, { everyMs: 5_000 });
  return (
    <Card
      title="Agents"
      about={`They run the jobs, and hold leases on the machines${
        silentS === null ? '' : `: for ${duration(silentS)} after the last contact`
      }`}
      flush
    >
      <Loaded
        from={found}
        skeleton={
          <div className="card-body">
            <Skeleton lines={2} />
          </div>
        }
      >
        {({ node }) => (
          <Table
            label="Agents"
            rows={node && 'agents' in node ? byHost(node.agents) : []}
            id={({ id }) => id}
            empty={<Empty title="No agent has registered here">No machine can run jobs without one.</Empty>}
            columns={[
              {
                key: 'host',
                header: 'Host',
                cell: ({ host, simulated }) => (
                  <>
                    <span className="strong">{host}</span>
                    {simulated && <span className="faint tiny"> simulates its jobs</span>}
                  </>
                ),
              },
              {
                key: 'health',
                header: 'Health',
                cell: ({ machines, problem }) => {
                  const lost = machines.filter(({ silent }) => silent).length;
                  if (problem !== null)
                    return (
                      <>
                        <Badge tone="warn">Refused</Badge>
                        <div className="tiny muted">{problem}</div>
                      </>
                    );
                  if (machines.length === 0) return <Badge>No machines</Badge>;
                  return lost === machines.length ? (
                    <Badge tone="danger">Silent</Badge>
                  ) : (
                    <Badge tone="good">Serves</Badge>
                  );
                },
              },
              {
                key: 'machines',
                header: 'Machines leased',
                right: true,
                cell: ({ machines }) => (
                  <span
                    title={byName(machines)
                      .slice(0, 20)
                      .map(({ name }) => name)
                      .join(', ')}
                  >
                    {count(machines.filter(({ silent }) => !silent).length)}
                    <span className="unit-of"> of {count(machines.length)}</span>
                  </span>
                ),
              },
              { key: 'seen', header: 'Heard', right: true, cell: ({ seenAt }) => <Ago at={seenAt} /> },
              {
                key: 'version',
                header: 'Version',
                right: true,
                minor: true,
                cell: ({ version, protocol }) => (
                  <>
                    {version} <span className="faint">protocol {protocol}</span>
                  </>
                ),
              },
              {
                key: 'since',
                header: 'Registered',
                right: true,
                minor: true,
                cell: ({ registeredAt }) => <At at={registeredAt} seconds={false} />,
              },
            ]}
          />
        )}
      </Loaded>
    </Card>
  );
}

const byHost = <A extends { host: string }>(agents: readonly A[]): A[] =>
  [...agents].sort((a, b) => a.host.localeCompare(b.host, undefined, { numeric: true }));
