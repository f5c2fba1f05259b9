/** What the machines below each scheduler can run, and the branches through which sites ask for it. */
import { Link } from '@tanstack/react-router';
import { count, figure, megabytes, plural } from '../../ui/format';
import { Card, Empty, Table } from '../../ui/show';
import type { ChannelPartsFragment, HoldersQuery } from './tree.gql';

type Class = ChannelPartsFragment['classes'][number];

/** What jobs of a class need, in a few words. */
function needsOf({ os, architecture, licenses, tasks, cpusPerTask, memoryMbPerTask }: Class): string {
  const cpus = tasks === 1 ? plural(cpusPerTask, 'CPU') : `${count(tasks)} × ${plural(cpusPerTask, 'CPU')}`;
  const memory = memoryMbPerTask > 0 ? megabytes(memoryMbPerTask) : null;
  return [cpus, memory, os, architecture, ...licenses].filter(Boolean).join(', ');
}

const CLASSES_SHOWN = 4;

export function Channels({ holders }: { holders: HoldersQuery }) {
  const rows = [{ id: 'root', name: 'Root', channels: holders.tree.channels }, ...holders.schedulers].flatMap(
    ({ id, name, channels }) =>
      channels.map((channel) => ({ id: `${id} ${channel.port}`, name, ...channel })),
  );
  return (
    <Card
      title="Channels"
      about="Branches whose machines can run the same waiting jobs: sites that request work are served through them"
      flush
    >
      <Table
        label="Channels"
        rows={rows}
        id={({ id }) => id}
        empty={
          <Empty title="No jobs wait">Channels are derived from the requirements of waiting jobs.</Empty>
        }
        columns={[
          {
            key: 'scheduler',
            header: 'Scheduler',
            cell: ({ name }) => <span className="strong">{name}</span>,
          },
          { key: 'port', header: 'Channel', right: true, cell: ({ port }) => port },
          { key: 'power', header: 'Power', right: true, cell: ({ power }) => figure(power) },
          {
            key: 'classes',
            header: 'Jobs it can run',
            cell: ({ classes }) => (
              <ul>
                {classes.slice(0, CLASSES_SHOWN).map((one) => (
                  <li key={needsOf(one)}>
                    <span className="num">{count(one.jobs)}</span> <span className="faint">of</span>{' '}
                    {needsOf(one)}
                  </li>
                ))}
                {classes.length > CLASSES_SHOWN && (
                  <li className="faint">
                    and {plural(classes.length - CLASSES_SHOWN, 'other class', 'other classes')}
                  </li>
                )}
              </ul>
            ),
          },
          {
            key: 'branches',
            header: 'Through',
            cell: ({ branches }) => (
              <ul>
                {branches.map(({ scheduler, site, port, jobs }) => (
                  <li key={`${scheduler?.id ?? site?.id} ${port}`}>
                    {site ? (
                      <Link to="/sites/$id" params={{ id: site.id }}>
                        {site.name}
                      </Link>
                    ) : (
                      scheduler?.name
                    )}{' '}
                    <span className="faint">
                      {jobs > 0 ? `${plural(jobs, 'job')} given` : 'no jobs given'}
                    </span>
                  </li>
                ))}
              </ul>
            ),
          },
        ]}
      />
    </Card>
  );
}
