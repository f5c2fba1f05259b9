/** Pools of licenses and of other resources that are counted for a site or the grid: how much is in use, and who waits for some. */
import { Link } from '@tanstack/react-router';
import { useState } from 'react';
import { useAction, useData } from '../../api/data';
import { PENDING_STATES } from '../../api/states.gql';
import { JOB_COLUMN } from '../../parts/job-column';
import { useViewer } from '../../shell/viewer';
import { changeColumn } from '../../ui/change-column';
import { UseChart } from '../../ui/chart';
import { Button, Choice, Dialog, TextInput } from '../../ui/controls';
import { count, counted, percent, plural } from '../../ui/format';
import { KeyRound, Plus } from '../../ui/icons';
import { Bar, Card, Empty, Lasted, Loaded, Page, Skeleton, Table } from '../../ui/show';
import { useSpan } from '../../ui/span';
import { told } from '../../ui/toast';
import {
  LicenseDemandDocument,
  LicenseHistoryDocument,
  type LicensePartsFragment,
  LicenseSitesDocument,
  LicensesDocument,
  LicenseWaitingDocument,
  RegisterLicenseDocument,
  RemoveLicenseDocument,
  UpdateLicenseDocument,
} from './licenses.gql';

// biome-ignore lint/complexity/noExcessiveLinesPerFunction: a table, with its columns
export function Licenses() {
  const operator = useViewer().may('OPERATOR');
  const licenses = useData(LicensesDocument, {}, { everyMs: 5_000 });
  const [editing, setEditing] = useState<LicensePartsFragment | 'new' | null>(null);
  const [chosen, setChosen] = useState<string | null>(null);
  return (
    <Page
      title="Licenses"
      about="Software licenses, and other resources that are counted for a site or the whole grid: jobs hold them while they run."
      actions={
        operator && (
          <Button icon={<Plus size={14} />} onPress={() => setEditing('new')}>
            Add a pool
          </Button>
        )
      }
    >
      <Loaded from={licenses} skeleton={<Skeleton height={280} />}>
        {({ licenses: { nodes: pools } }) => {
          const kinds = [...new Set(pools.map(({ kind }) => kind))].sort();
          const shown = chosen ?? kinds[0] ?? null;
          if (kinds.length === 0)
            return (
              <Card>
                <Empty icon={<KeyRound size={20} />} title="No licenses">
                  For software with a limited number of licenses, a pool sets how many jobs may use it at the
                  same time. A pool of tape drives or of the space of a file system is the same.
                </Empty>
              </Card>
            );
          return (
            <>
              <div className="site-cards">
                {kinds.map((kind) => {
                  const own = pools.filter((pool) => pool.kind === kind);
                  const inUse = own.reduce((sum, pool) => sum + pool.inUse, 0);
                  const copies = own.reduce((sum, pool) => sum + pool.copies, 0);
                  const unit = own.find((pool) => pool.unit)?.unit;
                  return (
                    <button
                      key={kind}
                      type="button"
                      className={`card pick ${kind === shown ? 'picked' : ''}`}
                      aria-pressed={kind === shown}
                      onClick={() => setChosen(kind)}
                    >
                      <span className="row spread">
                        <span className="strong cut">{kind}</span>
                        <span className="num muted small">
                          {count(inUse)}{' '}
                          <span className="faint">
                            of {count(copies)} {unit}
                          </span>
                        </span>
                      </span>
                      <Bar
                        value={inUse}
                        max={copies}
                        tone={copies > 0 && inUse >= copies ? 'warn' : 'accent'}
                        label={`${kind}: ${inUse} of ${copies} in use, ${percent(copies > 0 ? inUse / copies : 0)}`}
                      />
                      <span className="tiny faint">
                        {plural(own.length, 'pool')} · <Demand kind={kind} />
                      </span>
                    </button>
                  );
                })}
              </div>
              {shown && (
                <History
                  kind={shown}
                  copies={pools.reduce((sum, { kind, copies }) => sum + (kind === shown ? copies : 0), 0)}
                />
              )}
              <div className="columns" style={{ '--column': '420px' } as React.CSSProperties}>
                <Card title={`Pools of ${shown}`} flush>
                  <Table
                    label="Pools"
                    rows={pools.filter(({ kind }) => kind === shown)}
                    id={({ id }) => id}
                    empty={
                      <Empty title="No pool of this kind">Jobs that request it cannot run anywhere.</Empty>
                    }
                    columns={[
                      {
                        key: 'site',
                        header: 'Of',
                        cell: ({ site }) =>
                          site ? (
                            <Link to="/sites/$id" params={{ id: site.id }}>
                              {site.name}
                            </Link>
                          ) : (
                            'the whole grid'
                          ),
                      },
                      {
                        key: 'use',
                        header: 'In use',
                        width: '45%',
                        cell: ({ inUse, copies, unit }) => (
                          <div className="row">
                            <div className="grow">
                              <Bar
                                thin
                                value={inUse}
                                max={copies}
                                tone={inUse >= copies ? 'warn' : 'accent'}
                                label={`${inUse} of ${copies} in use`}
                              />
                            </div>
                            <span className="num tiny" style={{ minWidth: 64, textAlign: 'right' }}>
                              {count(inUse)}{' '}
                              <span className="faint">
                                / {count(copies)} {unit}
                              </span>
                            </span>
                          </div>
                        ),
                      },
                      ...(operator ? [changeColumn<LicensePartsFragment>(setEditing)] : []),
                    ]}
                  />
                </Card>
                {shown && <Waiting kind={shown} />}
              </div>
            </>
          );
        }}
      </Loaded>
      {editing && (
        <PoolDialog
          pool={editing === 'new' ? null : editing}
          onClose={() => {
            setEditing(null);
            licenses.refresh();
          }}
        />
      )}
    </Page>
  );
}

/** How many jobs wait that ask for it. Users are shown their own. */
function Demand({ kind }: { kind: string }) {
  const seesAll = useViewer().may('OPERATOR');
  const { data } = useData(LicenseDemandDocument, { kind }, { everyMs: 5_000 });
  if (!data) return '…';
  const jobs = data.jobCount;
  if (!seesAll)
    return `${jobs === 0 ? 'none' : counted(jobs)} of your waiting jobs ${jobs > 1 ? 'request' : 'requests'} it`;
  if (jobs === 0) return 'no waiting job requests it';
  return `${counted(jobs)} waiting ${jobs === 1 ? 'job requests' : 'jobs request'} it`;
}

function Waiting({ kind }: { kind: string }) {
  const seesAll = useViewer().may('OPERATOR');
  const jobs = useData(LicenseWaitingDocument, { kind }, { everyMs: 5_000 });
  return (
    <Card
      title={`${seesAll ? 'Waiting jobs' : 'Your waiting jobs'} that request ${kind}`}
      flush
      actions={
        jobs.data?.jobs.pageInfo.hasNextPage && (
          <Link
            to="/jobs"
            search={{ license: kind, states: PENDING_STATES.join(',') }}
            className="button quiet"
          >
            All of them
          </Link>
        )
      }
    >
      <Loaded
        from={jobs}
        skeleton={
          <div className="card-body">
            <Skeleton lines={4} />
          </div>
        }
      >
        {({ jobs: { nodes } }) => (
          <Table
            label="Waiting jobs"
            rows={nodes}
            id={({ id }) => id}
            empty={<Empty title={seesAll ? 'No jobs wait for it' : 'None of your jobs waits for it'} />}
            columns={[
              JOB_COLUMN,
              { key: 'user', header: 'User', cell: ({ user }) => user.name },
              {
                key: 'site',
                header: 'At',
                cell: ({ site }) => site?.name ?? <span className="faint">root</span>,
              },
              {
                key: 'waits',
                header: 'Waits',
                right: true,
                cell: ({ submittedAt }) => <Lasted from={submittedAt} />,
              },
            ]}
          />
        )}
      </Loaded>
    </Card>
  );
}

function History({ kind, copies }: { kind: string; copies: number }) {
  const { span, chooser, everyMs } = useSpan();
  const history = useData(LicenseHistoryDocument, { kind, ...span }, { everyMs });
  return (
    <Card
      title={`${kind} in use over time`}
      about="Means per interval, with the current total"
      actions={chooser}
    >
      <Loaded from={history} skeleton={<Skeleton height={186} />}>
        {({ licenseHistory }) => <UseChart of={kind} points={licenseHistory} total={copies} />}
      </Loaded>
    </Card>
  );
}

function PoolDialog({ pool, onClose }: { pool: LicensePartsFragment | null; onClose(): void }) {
  const { data } = useData(LicenseSitesDocument, {}, { pause: pool !== null });
  const register = useAction(RegisterLicenseDocument);
  const update = useAction(UpdateLicenseDocument);
  const remove = useAction(RemoveLicenseDocument);
  const [kind, setKind] = useState(pool?.kind ?? '');
  const [copies, setCopies] = useState(String(pool?.copies ?? '1'));
  const [site, setSite] = useState(pool?.site?.id ?? '');
  const [unit, setUnit] = useState(pool?.unit ?? '');
  const busy = register.busy || update.busy || remove.busy;
  const written = { copies: Number(copies), unit: unit.trim() || null };
  const save = (): Promise<unknown> =>
    pool
      ? update.run({ input: { licenseId: pool.id, ...written } })
      : register.run({ input: { kind: kind.trim(), siteId: site || null, ...written } });
  return (
    <Dialog
      title={pool ? `Change the pool of ${pool.kind}` : 'Add a pool'}
      open
      onClose={onClose}
      footer={
        <>
          {pool && (
            <Button
              variant="danger"
              isDisabled={busy || pool.inUse > 0}
              onPress={() =>
                void told(remove.run({ license: pool.id }), 'The pool is removed.').then(
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
            isDisabled={busy || kind.trim() === ''}
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
      {!pool && (
        <>
          <TextInput
            label="Kind"
            value={kind}
            onChange={setKind}
            autoFocus
            help="The kind that jobs request, for example matlab or tape-drive"
          />
          <Choice
            label="Of"
            value={site}
            onChange={setSite}
            options={[
              { value: '', label: 'The whole grid' },
              ...(data?.sites.nodes ?? []).map(({ id, name }) => ({ value: id, label: name })),
            ]}
          />
        </>
      )}
      <TextInput
        label="Amount"
        type="number"
        min={0}
        value={copies}
        onChange={setCopies}
        help={pool ? `Not below the ${count(pool.inUse)} in use` : 'How much of it there is'}
      />
      <TextInput
        label="Unit"
        value={unit}
        onChange={setUnit}
        placeholder="pieces"
        help="What the amount is counted in, for example drives or GB"
      />
    </Dialog>
  );
}
