import './site.css';
import { Link, useNavigate, useParams, useSearch } from '@tanstack/react-router';
import { type ReactNode, useEffect, useMemo, useState } from 'react';
import { useAction, useData, useFollow, useThrottled } from '../../api/data';
import { LIVE_STATES } from '../../api/states.gql';
import { useStore } from '../../api/store';
import { JOB_COLUMN } from '../../parts/job-column';
import { PulseDocument } from '../../parts/pulse.gql';
import { gridChanges } from '../../shell/feed';
import { useViewer } from '../../shell/viewer';
import type { Search } from '../../ui/address';
import { Code } from '../../ui/code';
import { Button, Dialog, MenuButton, TabBar, TextInput } from '../../ui/controls';
import {
  byName,
  count,
  duration,
  figure,
  megabytes,
  moment,
  numberOf,
  percent,
  plural,
} from '../../ui/format';
import { MoreHorizontal, Plus } from '../../ui/icons';
import {
  Ago,
  Badge,
  Bar,
  Card,
  Empty,
  Facts,
  Lasted,
  Loaded,
  Page,
  PlaceBadge,
  Problem,
  Skeleton,
  Table,
} from '../../ui/show';
import { told } from '../../ui/toast';
import { Agents } from './agents';
import { Calendar } from './calendar';
import { OwnScheduler } from './own-scheduler';
import { Priority } from './priority';
import { Schedule } from './schedule';
import {
  DrainMachineDocument,
  DrainSiteDocument,
  type MachinePartsFragment,
  RegisterMachinesDocument,
  RemoveMachineDocument,
  RemoveSiteDocument,
  SitePageDocument,
  type SitePartsFragment,
  SiteQueueDocument,
  UpdateMachineDocument,
  UpdateSiteDocument,
} from './sites.gql';

const TABS = [
  { value: 'schedule', label: 'Schedule' },
  { value: 'queue', label: 'Queue' },
  { value: 'calendar', label: 'Calendar' },
  { value: 'machines', label: 'Machines' },
  { value: 'agents', label: 'Agents' },
  { value: 'scheduler', label: 'Own scheduler' },
  { value: 'settings', label: 'Settings' },
] as const;
type TabName = (typeof TABS)[number]['value'];

export function SitePage() {
  const { id } = useParams({ strict: false }) as { id: string };
  const search = useSearch({ strict: false }) as Search;
  const navigate = useNavigate();
  const viewer = useViewer();
  const page = useData(SitePageDocument, { id }, { everyMs: 10_000 });
  const refresh = useThrottled(page.refresh, 2_000);
  const changes = useStore(gridChanges);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the grid has changed
  useEffect(() => {
    if (changes > 0) refresh();
  }, [changes]);
  useFollow(
    PulseDocument,
    'jobUpdated',
    { filter: { siteId: id } },
    { onUpdates: refresh, onResync: refresh },
  );
  const tab = TABS.find(({ value }) => value === search.tab)?.value ?? 'schedule';

  return (
    <Loaded
      from={page}
      skeleton={
        <Page title="Site">
          <Skeleton height={80} />
          <Skeleton height={420} />
        </Page>
      }
    >
      {({ node, policy }) => {
        if (!node || !('machines' in node))
          return (
            <Page title="No such site">
              <Empty title="No site with this number is in service." />
            </Page>
          );
        const site = node as SitePartsFragment;
        const tabs = TABS.filter(({ value }) => value !== 'scheduler' || site.load !== null);
        const silent = site.machines.length > 0 && site.machines.every((machine) => machine.silent);
        return (
          <Page
            title={
              <>
                {site.name}
                <PlaceBadge state={site.state} silent={silent} />
              </>
            }
            about={
              <>
                {plural(site.machines.length, 'machine')}, agent heard <Ago at={site.agentSeenAt} />
              </>
            }
            actions={viewer.may('OPERATOR') && <SiteActions site={site} />}
          >
            <SiteFigures site={site} />
            <TabBar
              label="Parts of the site"
              tabs={tabs}
              value={tab}
              onChange={(next: TabName) =>
                void navigate({
                  to: '/sites/$id',
                  params: { id },
                  search: next === 'schedule' ? {} : { tab: next },
                  replace: true,
                })
              }
            />
            {tab === 'schedule' && (
              <Card flush>
                {site.machines.length > 0 ? (
                  <Schedule site={site} />
                ) : (
                  <Empty title="No machines yet">Add some under Machines.</Empty>
                )}
              </Card>
            )}
            {tab === 'queue' && <Queue site={site} />}
            {tab === 'scheduler' && site.load && <OwnScheduler load={site.load} />}
            {tab === 'calendar' && <Calendar site={site} />}
            {tab === 'machines' && <Machines site={site} />}
            {tab === 'agents' && <Agents site={site} silentS={silentAfterS(policy?.document)} />}
            {tab === 'settings' && <Settings site={site} policy={policy?.document} />}
          </Page>
        );
      }}
    </Loaded>
  );
}

/** How long a lease lasts from when its agent was last heard. */
const silentAfterS = (policy: unknown): number | null =>
  (policy as { timers?: { agentSilentS?: number } } | undefined)?.timers?.agentSilentS ?? null;

/** What waits in the site's own scheduler: jobs of others, and beside them those that were handed over. */
function OwnQueue({ site, load }: { site: SitePartsFragment; load: NonNullable<SitePartsFragment['load']> }) {
  const { waits } = load;
  const runs = waits.reduce((sum, of) => sum + of.runs, 0);
  return (
    <>
      <div className="figure">
        <span className="figure-label">Others in its scheduler</span>
        <span className="figure-value num">{count(load.waitingJobs)}</span>
        <span className="figure-about">
          {load.waitingJobs > 0 && `wait with ${figure(load.waitingCpuS / 3600)} CPU hours, `}
          {load.stale ? 'outdated: reported ' : 'said '}
          <Ago at={load.at} />
        </span>
      </div>
      {waits.length > 0 && (
        <div className="figure">
          <span className="figure-label">Ours lately waited</span>
          <span className="figure-value num">
            {duration(waits.reduce((sum, of) => sum + of.waitS * of.runs, 0) / runs)}
          </span>
          <span className="figure-about">mean of {plural(runs, 'start')}</span>
        </div>
      )}
      <Link to="/jobs" search={{ site: site.id, states: 'ASSIGNED' }} className="figure">
        <span className="figure-label">Ours in its scheduler</span>
        <span className="figure-value">Show</span>
        <span className="figure-about">with their states there</span>
      </Link>
    </>
  );
}

function SiteFigures({ site }: { site: SitePartsFragment }) {
  // Where the site's own scheduler has machines, nobody else knows what is taken.
  const used = site.load?.busyCpus ?? site.cpusUsed;
  return (
    <div className="figures site-figures">
      <div className="figure">
        <span className="figure-label">CPUs in use</span>
        <span className="figure-value num">
          {count(used)} <span className="unit-of">of {count(site.cpus)}</span>
        </span>
        <span className="figure-extra">
          <Bar
            value={used}
            max={site.cpus}
            label={`${percent(site.cpus > 0 ? used / site.cpus : 0)} in use`}
          />
        </span>
      </div>
      {site.load && <OwnQueue site={site} load={site.load} />}
      <Link to="/jobs" search={{ site: site.id, states: LIVE_STATES.join(',') }} className="figure">
        <span className="figure-label">Running</span>
        <span className="figure-value num">{count(site.runningJobs)}</span>
        <span className="figure-about">
          {site.maxRunningJobs === null ? 'jobs' : `of ${count(site.maxRunningJobs)} at once`}
        </span>
      </Link>
      <Link to="/jobs" search={{ site: site.id, states: 'DISPATCHED' }} className="figure">
        <span className="figure-label">Queued</span>
        <span className="figure-value num">{count(site.queuedJobs)}</span>
        <span className="figure-about">
          {site.metaQueuedJobs > 0 ? `and ${count(site.metaQueuedJobs)} in the meta-queue` : 'jobs'}
        </span>
      </Link>
      <div className="figure">
        <span className="figure-label">Reservation</span>
        <span className="figure-value num">{site.reservation ? moment(site.reservation.at) : '–'}</span>
        <span className="figure-about">
          {site.reservation?.job ? (
            <Link to="/jobs/$id" params={{ id: site.reservation.job.id }}>
              Job {numberOf(site.reservation.job.id)}
            </Link>
          ) : site.reservation ? (
            'for another user’s job'
          ) : (
            'none'
          )}
        </span>
      </div>
      {site.licenses.length > 0 && (
        <div className="figure">
          <span className="figure-label">Licenses and pools</span>
          <ul className="license-list">
            {site.licenses.map(({ id, kind, copies, inUse, unit }) => (
              <li key={id} className="row tiny">
                <span className="cut grow">{kind}</span>
                <span className="num">
                  {inUse}{' '}
                  <span className="faint">
                    / {copies} {unit}
                  </span>
                </span>
              </li>
            ))}
          </ul>
        </div>
      )}
    </div>
  );
}

function SiteActions({ site }: { site: SitePartsFragment }) {
  const [draining, setDraining] = useState(false);
  const update = useAction(UpdateSiteDocument);
  const remove = useAction(RemoveSiteDocument);
  const navigate = useNavigate();
  const set = (state: 'UP' | 'DOWN', text: string): void =>
    void told(update.run({ input: { siteId: site.id, state } }), text);
  return (
    <>
      {site.state === 'UP' ? (
        <Button onPress={() => setDraining(true)}>Drain…</Button>
      ) : (
        <Button variant="primary" onPress={() => set('UP', `${site.name} accepts jobs again.`)}>
          Return to service
        </Button>
      )}
      <MenuButton
        hint="More"
        icon={<MoreHorizontal size={16} />}
        entries={[
          {
            id: 'down',
            label: 'Mark as down',
            disabled: site.state === 'DOWN',
            onAction: () => set('DOWN', `${site.name} is marked as down.`),
          },
          {
            id: 'remove',
            label: 'Remove the site',
            danger: true,
            disabled: site.state === 'UP' || site.runningJobs > 0,
            onAction: () =>
              void told(remove.run({ site: site.id }), `${site.name} is removed.`).then(
                (done) => done && navigate({ to: '/sites' }),
              ),
          },
        ]}
      />
      {draining && <DrainDialog site={site} onClose={() => setDraining(false)} />}
    </>
  );
}

/** What a drain will do, before it is done. */
function DrainDialog({ site, onClose }: { site: SitePartsFragment; onClose(): void }) {
  const drain = useAction(DrainSiteDocument);
  const back = site.queuedJobs + site.metaQueuedJobs;
  return (
    <Dialog
      title={`Drain ${site.name}`}
      open
      onClose={onClose}
      footer={
        <>
          <Button onPress={onClose}>Leave it in service</Button>
          <Button
            variant="primary"
            isDisabled={drain.busy}
            onPress={() =>
              void told(drain.run({ site: site.id }), `${site.name} is draining.`).then(
                (done) => done && onClose(),
              )
            }
          >
            Drain the site
          </Button>
        </>
      }
    >
      <p>The site will start no more jobs. As of now:</p>
      <ul className="effects">
        <li>
          <strong className="num">{plural(site.runningJobs, 'running job')}</strong> will run to the end
          {site.runningJobs > 0 && '; nothing is stopped'}.
        </li>
        <li>
          <strong className="num">{plural(back, 'queued job')}</strong>{' '}
          {back === 0
            ? 'have to move.'
            : 'will return to the root, and from there go to other sites that can run them.'}
        </li>
        <li>
          <strong className="num">{plural(site.cpus, 'CPU')}</strong> on{' '}
          {plural(site.machines.length, 'machine')} will be unused until the site is returned to service.
        </li>
      </ul>
    </Dialog>
  );
}

// --- Queue

/** The API lists jobs by submission: so many are read to find those in front. */
const QUEUE_READ = 1_000;
const QUEUE_SHOWN = 200;

function Queue({ site }: { site: SitePartsFragment }) {
  const filter = useMemo(() => ({ siteId: site.id, states: ['DISPATCHED' as const] }), [site.id]);
  const seesAll = useViewer().may('OPERATOR');
  const queue = useData(SiteQueueDocument, { filter, first: QUEUE_READ }, { everyMs: 5_000 });
  return (
    <Card
      title={seesAll ? 'The local queue' : 'Your jobs in the local queue'}
      about="Ordered by priority at dispatch, then by arrival; a site with its own priorities may start others first"
      flush
    >
      <Loaded
        from={queue}
        skeleton={
          <div className="card-body">
            <Skeleton lines={6} />
          </div>
        }
      >
        {({ jobs }) => {
          const rows = [...jobs.nodes]
            .sort(
              (a, b) =>
                (b.priority ?? 0) + b.boost - ((a.priority ?? 0) + a.boost) ||
                a.submittedAt.localeCompare(b.submittedAt),
            )
            .slice(0, QUEUE_SHOWN);
          return (
            <>
              {jobs.nodes.length > QUEUE_SHOWN && (
                <p className="card-body muted small">
                  The first {QUEUE_SHOWN} of{' '}
                  {jobs.pageInfo.hasNextPage
                    ? `the ${count(QUEUE_READ)} submitted first`
                    : count(jobs.nodes.length)}
                  .
                </p>
              )}
              <Table
                label="Queue"
                rows={rows}
                id={({ id }) => id}
                empty={<Empty title={seesAll ? 'No jobs wait here' : 'None of your jobs wait here'} />}
                columns={[
                  JOB_COLUMN,
                  { key: 'user', header: 'User', cell: ({ user }) => user.name },
                  {
                    key: 'cpus',
                    header: 'CPUs',
                    right: true,
                    cell: ({ cpus }) => count(cpus),
                  },
                  {
                    key: 'licenses',
                    header: 'Licenses',
                    minor: true,
                    cell: ({ licenses }) => licenses.join(', ') || <span className="faint">none</span>,
                  },
                  {
                    key: 'priority',
                    header: 'Priority',
                    right: true,
                    cell: (job) => <Priority job={job} />,
                  },
                  {
                    key: 'waits',
                    header: 'Waits here',
                    right: true,
                    cell: ({ dispatchedAt }) => <Lasted from={dispatchedAt} />,
                  },
                  {
                    key: 'all',
                    header: 'Total wait',
                    right: true,
                    minor: true,
                    cell: ({ submittedAt }) => <Lasted from={submittedAt} />,
                  },
                ]}
              />
            </>
          );
        }}
      </Loaded>
    </Card>
  );
}

// --- Machines

// biome-ignore lint/complexity/noExcessiveLinesPerFunction: a table, with its columns
function Machines({ site }: { site: SitePartsFragment }) {
  const viewer = useViewer();
  const operator = viewer.may('OPERATOR');
  const [adding, setAdding] = useState(false);
  const [text, setText] = useState('');
  const wanted = text.trim().toLowerCase();
  const rows = byName(site.machines).filter(({ name }) => name.toLowerCase().includes(wanted));
  const shared = site.machines.some(({ maxTasks }) => maxTasks !== null);
  return (
    <Card
      flush
      title="Machines"
      actions={
        <div className="row">
          <TextInput
            label="Find a machine"
            hideLabel
            type="search"
            placeholder="Find"
            value={text}
            onChange={setText}
          />
          {operator && (
            <Button icon={<Plus size={14} />} onPress={() => setAdding(true)}>
              Add
            </Button>
          )}
        </div>
      }
    >
      <Table
        label="Machines"
        rows={rows}
        id={({ id }) => id}
        empty={<Empty title={wanted ? 'No machine of this name' : 'No machines yet'} />}
        columns={[
          { key: 'name', header: 'Machine', cell: ({ name }) => <span className="strong">{name}</span> },
          {
            key: 'state',
            header: 'State',
            cell: ({ state, silent, reason, problem }) => (
              <>
                <PlaceBadge state={state} silent={silent} unfit={problem !== null} />
                {(reason ?? problem) !== null && <div className="tiny muted">{reason ?? problem}</div>}
              </>
            ),
          },
          {
            key: 'cpus',
            header: 'CPUs in use',
            width: '18%',
            cell: (machine) =>
              machine.maxTasks === null ? (
                <Used used={machine.cpusUsed} all={machine.cpus} unit="CPUs" />
              ) : (
                <Used used={machine.tasksUsed} all={machine.maxTasks} unit="tasks" />
              ),
          },
          {
            key: 'memory',
            header: 'Memory in use',
            width: '18%',
            minor: true,
            cell: ({ memoryUsedMb, memoryMb }) => (
              <div className="row">
                <div className="grow">
                  <Bar
                    thin
                    value={memoryUsedMb}
                    max={memoryMb}
                    label={`${megabytes(memoryUsedMb)} of ${megabytes(memoryMb)} in use`}
                  />
                </div>
                <span className="num tiny" style={{ minWidth: 108, textAlign: 'right' }}>
                  {megabytes(memoryUsedMb)} <span className="faint">/ {megabytes(memoryMb)}</span>
                </span>
              </div>
            ),
          },
          {
            key: 'power',
            header: 'Power',
            right: true,
            cell: ({ benchmark, measured }) => (
              <>
                {figure(benchmark)}
                {measured && (
                  <div className="tiny muted">
                    measured {figure(measured.benchmark)}
                    {measured.gpus.length > 0 && `, ${plural(measured.gpus.length, 'GPU')}`}
                  </div>
                )}
                {measured && measured.warning !== null && (
                  <>
                    <Badge tone="warn">Differs</Badge>
                    <div className="tiny muted">{measured.warning}</div>
                  </>
                )}
              </>
            ),
          },
          {
            key: 'platform',
            header: 'Platform',
            minor: true,
            cell: ({ os, architecture, resources, labels, devices }) => (
              <span className="muted">
                {os}, {architecture}
                {resources.length > 0 && (
                  <div className="tiny">
                    {resources.map(({ kind, amount, used }) => `${used} of ${amount} ${kind}`).join(', ')} in
                    use
                  </div>
                )}
                {devices.length > 0 && (
                  <details className="tiny">
                    <summary>{plural(devices.length, 'device')}</summary>
                    {devices.map((device) => (
                      <div key={device.id}>{deviceText(device)}</div>
                    ))}
                  </details>
                )}
                {labels.length > 0 && (
                  <div className="tiny">
                    {labels.map(({ name, value }) => (value === '' ? name : `${name}=${value}`)).join(', ')}
                  </div>
                )}
              </span>
            ),
          },
          ...(shared
            ? [
                {
                  key: 'shared',
                  header: 'Shared',
                  minor: true,
                  cell: ({ maxTasks, cpus }: MachinePartsFragment) =>
                    maxTasks === null ? 'in space' : `in time, ${plural(cpus, 'CPU')}`,
                },
              ]
            : []),
          {
            key: 'agent',
            header: 'Agent on',
            minor: true,
            cell: ({ agent }) => <span className="muted">{agent?.host ?? 'none'}</span>,
          },
          {
            key: 'heard',
            header: 'Heard',
            right: true,
            minor: true,
            cell: ({ heartbeatAt }) => <Ago at={heartbeatAt} />,
          },
          ...(operator
            ? [
                {
                  key: 'actions',
                  header: <span className="hidden-visually">Actions</span>,
                  right: true,
                  cell: (machine: MachinePartsFragment) => <MachineActions machine={machine} />,
                },
              ]
            : []),
        ]}
      />
      {adding && <AddMachines site={site} onClose={() => setAdding(false)} />}
    </Card>
  );
}

function Used({ used, all, unit }: { used: number; all: number; unit: string }) {
  return (
    <div className="row">
      <div className="grow">
        <Bar thin value={used} max={all} label={`${count(used)} of ${count(all)} ${unit} in use`} />
      </div>
      <span className="num tiny" style={{ minWidth: 56, textAlign: 'right' }}>
        {count(used)} <span className="faint">/ {count(all)}</span>
      </span>
    </div>
  );
}

function MachineActions({ machine }: { machine: MachinePartsFragment }) {
  const drain = useAction(DrainMachineDocument);
  const update = useAction(UpdateMachineDocument);
  const remove = useAction(RemoveMachineDocument);
  const [asking, setAsking] = useState(false);
  const held = machine.maxTasks === null ? machine.cpusUsed : machine.tasksUsed;
  return (
    <>
      <MenuButton
        variant="quiet"
        label={`Actions on ${machine.name}`}
        icon={<MoreHorizontal size={15} />}
        entries={[
          ...(machine.state === 'UP'
            ? [{ id: 'drain', label: 'Drain…', onAction: () => setAsking(true) }]
            : [
                {
                  id: 'up',
                  label: 'Return to service',
                  onAction: () =>
                    void told(
                      update.run({ input: { machineId: machine.id, state: 'UP' } }),
                      `${machine.name} accepts jobs again.`,
                    ),
                },
              ]),
          {
            id: 'down',
            label: 'Mark as down',
            disabled: machine.state === 'DOWN',
            onAction: () =>
              void told(
                update.run({ input: { machineId: machine.id, state: 'DOWN' } }),
                `${machine.name} is marked as down.`,
              ),
          },
          {
            id: 'remove',
            label: 'Remove',
            danger: true,
            disabled: held > 0,
            onAction: () => void told(remove.run({ machine: machine.id }), `${machine.name} is removed.`),
          },
        ]}
      />
      {asking && (
        <Dialog
          title={`Drain ${machine.name}`}
          open
          onClose={() => setAsking(false)}
          footer={
            <>
              <Button onPress={() => setAsking(false)}>Leave it in service</Button>
              <Button
                variant="primary"
                isDisabled={drain.busy}
                onPress={() =>
                  void told(drain.run({ machine: machine.id }), `${machine.name} is draining.`).then(
                    (done) => done && setAsking(false),
                  )
                }
              >
                Drain the machine
              </Button>
            </>
          }
        >
          <p>
            It accepts no more jobs. What is running on it now
            {held > 0
              ? ` (${machine.maxTasks === null ? plural(held, 'CPU') : plural(held, 'task')})`
              : ', nothing,'}{' '}
            will finish. Jobs that only this machine can run wait until it returns.
          </p>
        </Dialog>
      )}
    </>
  );
}

function AddMachines({ site, onClose }: { site: SitePartsFragment; onClose(): void }) {
  const register = useAction(RegisterMachinesDocument);
  const [draft, setDraft] = useState({
    name: 'node',
    number: '1',
    cpus: '8',
    memoryMb: '32000',
    benchmark: '100',
    os: 'linux',
    architecture: 'x64',
    maxTasks: '',
  });
  const put = (field: keyof typeof draft) => (value: string) =>
    setDraft((before) => ({ ...before, [field]: value }));
  const number = Number(draft.number);
  const first = site.machines.length + 1;
  return (
    <Dialog
      title={`Add machines to ${site.name}`}
      open
      onClose={onClose}
      footer={
        <Button
          variant="primary"
          isDisabled={!(number >= 1 && number <= 1000) || register.busy}
          onPress={() =>
            void told(
              register.run({
                inputs: Array.from({ length: number }, (_, i) => ({
                  siteId: site.id,
                  name: number === 1 ? draft.name : `${draft.name}-${first + i}`,
                  cpus: Number(draft.cpus),
                  memoryMb: Number(draft.memoryMb),
                  benchmark: Number(draft.benchmark),
                  os: draft.os,
                  architecture: draft.architecture,
                  licenseIds: site.licenses.map(({ id }) => id),
                  maxTasks: draft.maxTasks ? Number(draft.maxTasks) : null,
                })),
              }),
              `${plural(number, 'machine')} registered.`,
            ).then((done) => done && onClose())
          }
        >
          Add {plural(Number.isFinite(number) ? number : 0, 'machine')}
        </Button>
      }
    >
      <div className="columns" style={{ '--column': '180px' } as React.CSSProperties}>
        <TextInput
          label="Name"
          value={draft.name}
          onChange={put('name')}
          autoFocus
          help={number > 1 ? `${draft.name}-${first} to ${draft.name}-${first + number - 1}` : undefined}
        />
        <TextInput
          label="How many"
          type="number"
          min={1}
          max={1000}
          value={draft.number}
          onChange={put('number')}
        />
        <TextInput label="CPUs" type="number" min={1} value={draft.cpus} onChange={put('cpus')} />
        <TextInput label="Memory" type="number" unit="MB" value={draft.memoryMb} onChange={put('memoryMb')} />
        <TextInput label="Power" type="number" value={draft.benchmark} onChange={put('benchmark')} />
        <TextInput label="Operating system" value={draft.os} onChange={put('os')} />
        <TextInput label="Architecture" value={draft.architecture} onChange={put('architecture')} />
        <TextInput
          label="Tasks that may share it"
          type="number"
          unit="tasks"
          placeholder="not shared"
          value={draft.maxTasks}
          onChange={put('maxTasks')}
        />
      </div>
    </Dialog>
  );
}

// --- Settings

function Settings({ site, policy }: { site: SitePartsFragment; policy: unknown }): ReactNode {
  const operator = useViewer().may('OPERATOR');
  if (!operator) return <SettingsShown site={site} />;
  return (
    <div className="columns">
      <PlaceAndLimits site={site} />
      <LocalPolicy {...{ site, policy }} />
    </div>
  );
}

function SettingsShown({ site }: { site: SitePartsFragment }) {
  return (
    <Card title="Settings">
      <Facts
        facts={[
          [
            'Place',
            site.latitude === null ? 'not given' : `${site.latitude}° north, ${site.longitude}° east`,
          ],
          ['Running at once', site.maxRunningJobs === null ? 'as many as fit' : count(site.maxRunningJobs)],
          ['Longest run time limit', site.maxLimitS === null ? 'none' : duration(site.maxLimitS)],
          [
            'Local policy',
            (site.localPolicy as { kind?: string } | null)?.kind ?? 'as in the current policy',
          ],
        ]}
      />
    </Card>
  );
}

function PlaceAndLimits({ site }: { site: SitePartsFragment }) {
  const update = useAction(UpdateSiteDocument);
  const [draft, setDraft] = useState({
    name: site.name,
    latitude: site.latitude === null ? '' : String(site.latitude),
    longitude: site.longitude === null ? '' : String(site.longitude),
    max: site.maxRunningJobs === null ? '' : String(site.maxRunningJobs),
    maxLimit: site.maxLimitS === null ? '' : String(site.maxLimitS),
  });
  const put = (field: keyof typeof draft) => (value: string) =>
    setDraft((before) => ({ ...before, [field]: value }));
  const number = (text: string): number | null => (text.trim() === '' ? null : Number(text));
  return (
    <Card title="Place and limits">
      <form
        className="stack"
        onSubmit={(event) => {
          event.preventDefault();
          void told(
            update.run({
              input: {
                siteId: site.id,
                name: draft.name.trim(),
                latitude: number(draft.latitude),
                longitude: number(draft.longitude),
                maxRunningJobs: number(draft.max),
                maxLimitS: number(draft.maxLimit),
              },
            }),
            'Saved.',
          );
        }}
      >
        <TextInput label="Name" value={draft.name} onChange={put('name')} />
        <div className="columns" style={{ '--column': '150px' } as React.CSSProperties}>
          <TextInput
            label="Latitude"
            type="number"
            step="any"
            unit="° north"
            value={draft.latitude}
            onChange={put('latitude')}
          />
          <TextInput
            label="Longitude"
            type="number"
            step="any"
            unit="° east"
            value={draft.longitude}
            onChange={put('longitude')}
          />
        </div>
        <TextInput
          label="Running at once"
          type="number"
          min={1}
          unit="jobs"
          placeholder="as many as fit"
          value={draft.max}
          onChange={put('max')}
          help="With a limit, the site makes no reservations."
        />
        <TextInput
          label="Longest run time limit"
          type="number"
          min={1}
          unit="s"
          placeholder="none"
          value={draft.maxLimit}
          onChange={put('maxLimit')}
          help="Jobs with a longer one are not sent here; jobs without one are stopped after it."
        />
        <div>
          <Button type="submit" variant="primary" isDisabled={update.busy}>
            Save
          </Button>
        </div>
      </form>
    </Card>
  );
}

function LocalPolicy({ site, policy }: { site: SitePartsFragment; policy: unknown }) {
  const update = useAction(UpdateSiteDocument);
  const local = (policy as { local?: unknown } | undefined)?.local;
  const [own, setOwn] = useState(site.localPolicy === null ? '' : JSON.stringify(site.localPolicy, null, 2));
  let problem: string | null = null;
  let localPolicy: unknown = null;
  if (own.trim() !== '') {
    try {
      localPolicy = JSON.parse(own);
    } catch (error) {
      problem = `Not JSON: ${(error as Error).message}`;
    }
  }
  return (
    <Card
      title="Local policy"
      actions={
        site.localPolicy === null ? (
          <Badge>As in the current policy</Badge>
        ) : (
          <Badge tone="accent">Its own</Badge>
        )
      }
    >
      <div className="stack">
        <p className="muted small">
          How the site orders its queue and starts jobs. Empty: as in the current policy.
        </p>
        <Code
          label="The site’s own local policy"
          language="json"
          value={own}
          onChange={setOwn}
          error={problem}
          minLines={6}
        />
        {own.trim() === '' && local !== undefined && (
          <details className="fold">
            <summary>The current policy</summary>
            <pre className="code" style={{ padding: 12 }} tabIndex={0} aria-label="The current policy">
              {JSON.stringify(local, null, 2)}
            </pre>
          </details>
        )}
        {problem && <Problem error={problem} />}
        <div className="row">
          <Button
            variant="primary"
            isDisabled={problem !== null || update.busy}
            onPress={() => void told(update.run({ input: { siteId: site.id, localPolicy } }), 'Saved.')}
          >
            Save
          </Button>
          {own.trim() === '' && local !== undefined && (
            <Button onPress={() => setOwn(JSON.stringify(local, null, 2))}>
              Start from the current policy
            </Button>
          )}
        </div>
      </div>
    </Card>
  );
}

/** `gpu0: gpu a100, 80 GB, left, in use`. */
function deviceText({
  id,
  kind,
  model,
  memoryMb,
  shares,
  link,
  used,
}: MachinePartsFragment['devices'][number]): string {
  const use = shares > 1 ? `${used} of ${plural(shares, 'share')} in use` : used > 0 ? 'in use' : 'idle';
  const facts = [model ? `${kind} ${model}` : kind, memoryMb > 0 && megabytes(memoryMb), link, use];
  return `${id}: ${facts.filter(Boolean).join(', ')}`;
}
