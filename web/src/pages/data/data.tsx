/** Datasets and where their copies lie; the network between the sites, as it was measured. */
import './data.css';
import { useNavigate, useSearch } from '@tanstack/react-router';
import { useEffect, useState } from 'react';
import { useAction, useData } from '../../api/data';
import { useStore } from '../../api/store';
import { JOB_COLUMN } from '../../parts/job-column';
import { gridChanges } from '../../shell/feed';
import { useViewer } from '../../shell/viewer';
import type { Search } from '../../ui/address';
import { changeColumn } from '../../ui/change-column';
import { Chart } from '../../ui/chart';
import { Button, Check, Dialog, TabBar, TextInput } from '../../ui/controls';
import { figure, megabytes, percent } from '../../ui/format';
import { ArrowRightLeft, Database, Plus, Waypoints } from '../../ui/icons';
import { useNow } from '../../ui/now';
import {
  Ago,
  At,
  Badge,
  Bar,
  Card,
  type Column,
  Empty,
  Facts,
  Loaded,
  Page,
  Skeleton,
  Table,
} from '../../ui/show';
import { told } from '../../ui/toast';
import {
  CreateDatasetDocument,
  DataSitesDocument,
  type DatasetPartsFragment,
  DatasetsDocument,
  LinkHistoryDocument,
  type LinkPartsFragment,
  LinksDocument,
  RemoveDatasetDocument,
  SetLinksDocument,
  SetReplicasDocument,
  TransfersDocument,
  UpdateDatasetDocument,
} from './data.gql';

type Site = { id: string; name: string };

const TABS = [
  { value: 'datasets', label: 'Datasets' },
  { value: 'links', label: 'Links between sites' },
  { value: 'transfers', label: 'Transfers' },
] as const;

export function DataPage() {
  const search = useSearch({ strict: false }) as Search;
  const navigate = useNavigate();
  const tab = TABS.find(({ value }) => value === search.tab)?.value ?? 'datasets';
  const { data } = useData(DataSitesDocument, {});
  const sites = data?.sites.nodes ?? [];
  return (
    <Page
      title="Data"
      about="Datasets that jobs read, and the sites that have them: schedulers prefer sites close to the data."
    >
      <TabBar
        label="Datasets, links or transfers"
        value={tab}
        onChange={(value) =>
          void navigate({ to: '/data', search: value === 'datasets' ? {} : { tab: value }, replace: true })
        }
        tabs={TABS}
      />
      {tab === 'datasets' ? (
        <Datasets sites={sites} />
      ) : tab === 'links' ? (
        <Links sites={sites} />
      ) : (
        <Transfers />
      )}
    </Page>
  );
}

const COLUMNS: readonly Column<DatasetPartsFragment>[] = [
  {
    key: 'name',
    header: 'Dataset',
    cell: (dataset) => <span className="strong">{dataset.name}</span>,
  },
  { key: 'size', header: 'Size', right: true, cell: ({ sizeMb }) => megabytes(sizeMb) },
  {
    key: 'replicas',
    header: 'Copies at',
    cell: ({ replicas }) =>
      replicas.length > 0 ? (
        <span className="row wrap" style={{ gap: 4 }}>
          {replicas.map((site) => (
            <Badge key={site.id}>{site.name}</Badge>
          ))}
        </span>
      ) : (
        <Badge tone="warn">nowhere</Badge>
      ),
  },
  {
    key: 'known',
    header: 'Registered',
    right: true,
    minor: true,
    cell: ({ createdAt }) => <At at={createdAt} />,
  },
];

function Datasets({ sites }: { sites: readonly Site[] }) {
  const operator = useViewer().may('OPERATOR');
  const [name, setName] = useState('');
  const [after, setAfter] = useState<string | null>(null);
  const [editing, setEditing] = useState<DatasetPartsFragment | 'new' | null>(null);
  const datasets = useData(DatasetsDocument, { name: name.trim() || null, first: 200, after });
  const changes = useStore(gridChanges);
  // biome-ignore lint/correctness/useExhaustiveDependencies: data have changed
  useEffect(() => {
    if (changes > 0) datasets.refresh();
  }, [changes]);
  return (
    <Card
      flush
      title="Datasets"
      actions={
        <div className="row">
          <TextInput
            label="Find a dataset"
            hideLabel
            type="search"
            placeholder="Find"
            value={name}
            onChange={(text) => {
              setName(text);
              setAfter(null);
            }}
          />
          {operator && (
            <Button icon={<Plus size={14} />} onPress={() => setEditing('new')}>
              Add
            </Button>
          )}
        </div>
      }
    >
      <Loaded
        from={datasets}
        skeleton={
          <div className="card-body">
            <Skeleton lines={6} />
          </div>
        }
      >
        {({ datasets: page }) => (
          <>
            <Table
              label="Datasets"
              rows={page.nodes}
              id={({ id }) => id}
              empty={
                <Empty
                  icon={<Database size={20} />}
                  title={name ? 'No dataset with this name' : 'No datasets yet'}
                >
                  Jobs go to sites close to their datasets. An operator registers datasets here, or with{' '}
                  <code>switchyard data</code>.
                </Empty>
              }
              columns={operator ? [...COLUMNS, changeColumn(setEditing)] : COLUMNS}
            />
            {page.pageInfo.hasNextPage && (
              <div className="table-empty">
                <Button onPress={() => setAfter(page.pageInfo.endCursor)}>More datasets</Button>
              </div>
            )}
          </>
        )}
      </Loaded>
      {editing && (
        <DatasetDialog
          dataset={editing === 'new' ? null : editing}
          sites={sites}
          onClose={() => {
            setEditing(null);
            datasets.refresh();
          }}
        />
      )}
    </Card>
  );
}

function DatasetDialog({
  dataset,
  sites,
  onClose,
}: {
  dataset: DatasetPartsFragment | null;
  sites: readonly Site[];
  onClose(): void;
}) {
  const create = useAction(CreateDatasetDocument);
  const update = useAction(UpdateDatasetDocument);
  const replicas = useAction(SetReplicasDocument);
  const remove = useAction(RemoveDatasetDocument);
  const [name, setName] = useState(dataset?.name ?? '');
  const [sizeMb, setSizeMb] = useState(String(dataset?.sizeMb ?? ''));
  const before = new Set(dataset?.replicas.map(({ id }) => id) ?? []);
  const [at, setAt] = useState<ReadonlySet<string>>(before);
  const busy = create.busy || update.busy || replicas.busy || remove.busy;

  async function save(): Promise<void> {
    const input = { name: name.trim(), sizeMb: Number(sizeMb) };
    if (!dataset) await create.run({ input: { ...input, replicaSiteIds: [...at] } });
    else {
      if (input.name !== dataset.name || input.sizeMb !== dataset.sizeMb)
        await update.run({ input: { datasetId: dataset.id, ...input } });
      const add = [...at].filter((id) => !before.has(id));
      const gone = [...before].filter((id) => !at.has(id));
      if (add.length + gone.length > 0) await replicas.run({ dataset: dataset.id, add, remove: gone });
    }
  }
  return (
    <Dialog
      title={dataset ? `Change ${dataset.name}` : 'Add a dataset'}
      open
      onClose={onClose}
      footer={
        <>
          {dataset && (
            <Button
              variant="danger"
              isDisabled={busy}
              onPress={() =>
                void told(remove.run({ dataset: dataset.id }), `${dataset.name} is removed.`).then(
                  (done) => done && onClose(),
                )
              }
            >
              Remove
            </Button>
          )}
          <span className="grow" />
          <Button
            variant="primary"
            isDisabled={busy || name.trim() === '' || sizeMb === ''}
            onPress={() =>
              void told(
                save().then(() => true),
                'Saved.',
              ).then((done) => done && onClose())
            }
          >
            Save
          </Button>
        </>
      }
    >
      <TextInput label="Name" value={name} onChange={setName} autoFocus />
      <TextInput label="Size" type="number" unit="MB" min={0} value={sizeMb} onChange={setSizeMb} />
      <fieldset className="plain-set">
        <legend>Copies at</legend>
        <div className="row wrap" style={{ gap: '8px 18px' }}>
          {sites.map((site) => (
            <Check
              key={site.id}
              checked={at.has(site.id)}
              onChange={(on) => {
                const next = new Set(at);
                if (on) next.add(site.id);
                else next.delete(site.id);
                setAt(next);
              }}
            >
              {site.name}
            </Check>
          ))}
        </div>
      </fieldset>
    </Dialog>
  );
}

/** What is on its way, with a bar of how much has come. */
function Transfers() {
  const seesAll = useViewer().may('OPERATOR');
  const transfers = useData(TransfersDocument, {}, { everyMs: 3_000 });
  const now = useNow();
  return (
    <Card
      flush
      title={`Transfers to ${seesAll ? 'running jobs' : 'your running jobs'}`}
      about="Inputs that are not at the site where their job runs; times are estimated from the measured links, as schedulers do"
    >
      <Loaded
        from={transfers}
        skeleton={
          <div className="card-body">
            <Skeleton lines={6} />
          </div>
        }
      >
        {({ inputTransfers: { nodes: underWay } }) => (
          <Table
            label="Transfers"
            rows={underWay.flatMap((one, i) =>
              one.job ? [{ ...one, ...one.job, key: `${one.job.id} ${i}` }] : [],
            )}
            id={({ key }) => key}
            empty={
              <Empty icon={<ArrowRightLeft size={20} />} title="No transfers">
                All inputs of {seesAll ? 'running jobs' : 'your running jobs'} are already at their sites.
              </Empty>
            }
            columns={[
              JOB_COLUMN,
              {
                key: 'what',
                header: 'What',
                cell: ({ dataset }) => dataset?.name ?? <span className="faint">data at a site</span>,
              },
              { key: 'way', header: 'Way', cell: ({ from, to }) => `${from.name} → ${to.name}` },
              { key: 'size', header: 'Size', right: true, cell: ({ sizeMb }) => megabytes(sizeMb) },
              {
                key: 'come',
                header: 'Transferred',
                width: '24%',
                minor: true,
                cell: ({ startsAt, endsAt, dataset, to }) => {
                  const [begin, end] = [Date.parse(startsAt), Date.parse(endsAt)];
                  const share = Math.min(1, Math.max(0, (now - begin) / Math.max(1, end - begin)));
                  return (
                    <Bar
                      thin
                      value={share}
                      max={1}
                      label={`${percent(share)} of ${dataset?.name ?? 'the data'} has been transferred to ${to.name}`}
                    />
                  );
                },
              },
              { key: 'end', header: 'Expected end', right: true, cell: ({ endsAt }) => <At at={endsAt} /> },
            ]}
          />
        )}
      </Loaded>
    </Card>
  );
}

/** Beyond so many sites a table of all pairs cannot be read: they are listed. */
const MATRIX_MAX = 16;
/** What schedulers reckon with where there is no link. */
const UNKNOWN = { bandwidthMbPerS: 10, rttS: 0.1, loss: 0 };

function Links({ sites }: { sites: readonly Site[] }) {
  const links = useData(LinksDocument, {}, { everyMs: 15_000 });
  const [chosen, setChosen] = useState<{ from: Site; to: Site } | null>(null);
  return (
    <>
      <Card
        flush
        title="Bandwidth"
        about={`MB/s from the site on the left to the site above. Where no link is known, schedulers assume ${UNKNOWN.bandwidthMbPerS} MB/s.`}
      >
        <Loaded
          from={links}
          skeleton={
            <div className="card-body">
              <Skeleton height={200} />
            </div>
          }
        >
          {({ links: page }) =>
            sites.length < 2 ? (
              <Empty icon={<Waypoints size={20} />} title="Links are between two sites">
                There {sites.length === 1 ? 'is only one' : 'are none'} yet.
              </Empty>
            ) : sites.length <= MATRIX_MAX ? (
              <Matrix sites={sites} links={page.nodes} chosen={chosen} onChoose={setChosen} />
            ) : (
              <Table
                label="Links"
                rows={page.nodes}
                id={({ from, to }) => `${from.id} ${to.id}`}
                columns={[
                  { key: 'from', header: 'From', cell: ({ from }) => from.name },
                  { key: 'to', header: 'To', cell: ({ to }) => to.name },
                  {
                    key: 'bandwidth',
                    header: 'Bandwidth',
                    right: true,
                    cell: (link) => (
                      <button type="button" className="link" onClick={() => setChosen(link)}>
                        {figure(link.bandwidthMbPerS)} MB/s
                      </button>
                    ),
                  },
                  {
                    key: 'rtt',
                    header: 'Round trip',
                    right: true,
                    cell: ({ rttS }) => `${figure(rttS * 1000)} ms`,
                  },
                  {
                    key: 'at',
                    header: 'Measured',
                    right: true,
                    cell: ({ measuredAt }) => <Ago at={measuredAt} />,
                  },
                ]}
              />
            )
          }
        </Loaded>
      </Card>
      {chosen && <LinkCard key={`${chosen.from.id} ${chosen.to.id}`} {...chosen} onChanged={links.refresh} />}
    </>
  );
}

function Matrix({
  sites,
  links,
  chosen,
  onChoose,
}: {
  sites: readonly Site[];
  links: readonly LinkPartsFragment[];
  chosen: { from: Site; to: Site } | null;
  onChoose(pair: { from: Site; to: Site }): void;
}) {
  const byPair = new Map(links.map((link) => [`${link.from.id} ${link.to.id}`, link]));
  const best = Math.max(...links.map(({ bandwidthMbPerS }) => bandwidthMbPerS), 1);
  return (
    <div className="matrix-frame" role="region" aria-label="Bandwidth between sites" tabIndex={0}>
      <table className="matrix">
        <thead>
          <tr>
            <th scope="col">
              <span className="hidden-visually">From</span>
            </th>
            {sites.map((site) => (
              <th key={site.id} scope="col">
                {site.name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {sites.map((from) => (
            <tr key={from.id}>
              <th scope="row">{from.name}</th>
              {sites.map((to) => {
                const link = byPair.get(`${from.id} ${to.id}`);
                if (from.id === to.id)
                  return (
                    <td key={to.id} className="self">
                      <span className="hidden-visually">the same site</span>
                    </td>
                  );
                const share = link ? Math.sqrt(link.bandwidthMbPerS / best) : 0;
                const is = chosen?.from.id === from.id && chosen.to.id === to.id;
                return (
                  <td key={to.id}>
                    <button
                      type="button"
                      className={`matrix-cell num ${is ? 'chosen' : ''} ${link ? '' : 'unknown'}`}
                      style={{ '--share': `${Math.round(8 + share * 42)}%` } as React.CSSProperties}
                      aria-label={`From ${from.name} to ${to.name}: ${link ? `${figure(link.bandwidthMbPerS)} megabytes a second` : 'not known'}`}
                      aria-pressed={is}
                      onClick={() => onChoose({ from, to })}
                    >
                      {link ? figure(link.bandwidthMbPerS) : '–'}
                    </button>
                  </td>
                );
              })}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function LinkCard({ from, to, onChanged }: { from: Site; to: Site; onChanged(): void }) {
  const operator = useViewer().may('OPERATOR');
  const link = useData(LinkHistoryDocument, { from: from.id, to: to.id });
  const [editing, setEditing] = useState(false);
  const found = link.data?.links.nodes[0];
  const history = [...(found?.history ?? [])].reverse();
  return (
    <Card
      title={
        <>
          {from.name} → {to.name}
        </>
      }
      actions={operator && <Button onPress={() => setEditing(true)}>Set…</Button>}
    >
      <Loaded from={link} skeleton={<Skeleton height={240} />}>
        {() => (
          <div className="stack">
            {found ? (
              <Facts
                facts={[
                  ['Bandwidth', `${figure(found.bandwidthMbPerS)} MB/s`],
                  ['Round trip', `${figure(found.rttS * 1000)} ms`],
                  ['Loss', percent(found.loss, 2)],
                  [
                    found.source === 'AGENT' ? 'Measured by an agent' : 'Set by an operator',
                    <Ago key="at" at={found.measuredAt} />,
                  ],
                ]}
              />
            ) : (
              <p className="muted">Nothing is known about this link.</p>
            )}
            {history.length > 1 ? (
              <div className="columns">
                <Chart
                  label={`Measured bandwidth from ${from.name} to ${to.name}`}
                  x={history.map(({ measuredAt }) => Date.parse(measuredAt) / 1000)}
                  series={[
                    {
                      label: 'Bandwidth, MB/s',
                      color: '--series-1',
                      kind: 'area',
                      values: history.map(({ bandwidthMbPerS }) => bandwidthMbPerS),
                    },
                  ]}
                  height={180}
                />
                <Chart
                  label={`Measured round-trip time from ${from.name} to ${to.name}`}
                  x={history.map(({ measuredAt }) => Date.parse(measuredAt) / 1000)}
                  series={[
                    {
                      label: 'Round trip, ms',
                      color: '--series-3',
                      kind: 'line',
                      values: history.map(({ rttS }) => rttS * 1000),
                    },
                  ]}
                  height={180}
                />
              </div>
            ) : (
              <p className="faint small">
                A history appears here when agents measure this link (AGENT_LINKS).
              </p>
            )}
          </div>
        )}
      </Loaded>
      {editing && (
        <SetLink
          {...{ from, to }}
          known={found ?? UNKNOWN}
          onClose={() => setEditing(false)}
          onSet={() => {
            link.refresh();
            onChanged();
          }}
        />
      )}
    </Card>
  );
}

function SetLink({
  from,
  to,
  known,
  onClose,
  onSet,
}: {
  from: Site;
  to: Site;
  known: { bandwidthMbPerS: number; rttS: number; loss: number };
  onClose(): void;
  onSet(): void;
}) {
  const set = useAction(SetLinksDocument);
  const [draft, setDraft] = useState({
    bandwidth: String(known.bandwidthMbPerS),
    rtt: String(known.rttS * 1000),
    loss: String(known.loss * 100),
  });
  return (
    <Dialog
      title={`Set the link ${from.name} → ${to.name}`}
      open
      onClose={onClose}
      footer={
        <Button
          variant="primary"
          isDisabled={set.busy}
          onPress={() =>
            void told(
              set.run({
                links: [
                  {
                    fromSiteId: from.id,
                    toSiteId: to.id,
                    bandwidthMbPerS: Number(draft.bandwidth),
                    rttS: Number(draft.rtt) / 1000,
                    loss: Number(draft.loss) / 100,
                  },
                ],
              }),
              'The link has been set.',
            ).then((done) => {
              if (!done) return;
              onClose();
              onSet();
            })
          }
        >
          Set it
        </Button>
      }
    >
      <p className="muted small">Later measurements by agents replace these values.</p>
      <TextInput
        label="Bandwidth"
        type="number"
        unit="MB/s"
        value={draft.bandwidth}
        onChange={(bandwidth) => setDraft({ ...draft, bandwidth })}
      />
      <TextInput
        label="Round trip"
        type="number"
        unit="ms"
        value={draft.rtt}
        onChange={(rtt) => setDraft({ ...draft, rtt })}
      />
      <TextInput
        label="Loss"
        type="number"
        unit="%"
        value={draft.loss}
        onChange={(loss) => setDraft({ ...draft, loss })}
      />
    </Dialog>
  );
}
