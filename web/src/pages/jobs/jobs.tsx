import './jobs.css';
import { useNavigate, useSearch } from '@tanstack/react-router';
import { memo, useCallback, useEffect, useMemo, useRef, useState, useSyncExternalStore } from 'react';
import { Button as AriaButton, Dialog as AriaDialog, DialogTrigger, Popover } from 'react-aria-components';
import { useData } from '../../api/data';
import { JOB_STATES } from '../../api/states.gql';
import { createSetting, useStore } from '../../api/store';
import { ACTIONS, type BulkAction, BulkDialog, type Target } from '../../parts/bulk';
import { useViewer } from '../../shell/viewer';
import type { Search } from '../../ui/address';
import { Button, Check, Choice, Dialog, MenuButton, Segments, TextInput } from '../../ui/controls';
import { COUNT_MAX, causeOf, count, moment, plural, words } from '../../ui/format';
import { Bookmark, Columns3, Download, Filter, ListChecks, MoreHorizontal, X } from '../../ui/icons';
import { Empty, Page, Problem, Skeleton } from '../../ui/show';
import { toast } from '../../ui/toast';
import { columnsOf, DEFAULT_COLUMNS, JOB_COLUMNS } from './columns';
import { COUNTED, Counts } from './counts';
import type { JobCountBy } from './counts.gql';
import { EXPORT_MAX, exportJobs } from './export';
import { FILTER_FIELDS, filterOf, instantOf, ORDERS, orderOf, STATE_SETS } from './filters';
import { JobGrid } from './grid';
import { Groups } from './groups';
import { JobList, type Row } from './job-list';
import { JobsFacetsDocument, JobsUsersDocument } from './jobs.gql';

export function Jobs() {
  const search = useSearch({ strict: false }) as Search;
  const navigate = useNavigate();
  const tab = search.tab === 'groups' ? 'groups' : 'jobs';
  return (
    <Page
      title={useViewer().may('OPERATOR') ? 'Jobs' : 'My jobs'}
      fill={tab === 'jobs'}
      actions={
        <Segments
          label="Jobs or groups"
          value={tab}
          onChange={(value) => void navigate({ to: '/jobs', search: value === 'jobs' ? {} : { tab: value } })}
          options={[
            { value: 'jobs', label: 'Jobs' },
            { value: 'groups', label: 'Groups' },
          ]}
        />
      }
    >
      {tab === 'jobs' ? <List search={search} /> : <Groups />}
    </Page>
  );
}

function SelectionBar({ count, act, none }: { count: number; act(action: BulkAction): void; none(): void }) {
  return (
    <div className="selection-bar" role="toolbar" aria-label="Selected jobs">
      <span className="strong num">{plural(count, 'job')} selected</span>
      {(Object.keys(ACTIONS) as BulkAction[]).map((action) => (
        <Button
          key={action}
          className="small"
          variant={ACTIONS[action].danger ? 'danger' : 'normal'}
          onPress={() => act(action)}
        >
          {words(action)}…
        </Button>
      ))}
      <span className="grow" />
      <Button className="small" variant="quiet" onPress={none}>
        Select none
      </Button>
    </div>
  );
}

/** Jobs that match what the address says. */
// biome-ignore lint/complexity/noExcessiveLinesPerFunction: the list, its selection and the bars above share their state
function List({ search }: { search: Search }) {
  const navigate = useNavigate();
  const filterKey = JSON.stringify(FILTER_FIELDS.map((field) => search[field] ?? null));
  // biome-ignore lint/correctness/useExhaustiveDependencies: the key stands for the fields
  const filter = useMemo(() => filterOf(search), [filterKey]);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the order alone
  const orderBy = useMemo(() => orderOf(search), [search.order]);
  const columns = useMemo(() => columnsOf(search.columns), [search.columns]);
  const list = useMemo(() => new JobList(filter, orderBy), [filter, orderBy]);
  useEffect(() => list.start(), [list]);
  const { total, changes, error } = useSyncExternalStore(list.subscribe, list.getState);

  const [selected, setSelected] = useState<ReadonlyMap<string, Row>>(new Map());
  const [atTop, setAtTop] = useState(true);
  const [bulk, setBulk] = useState<{ action: BulkAction; target: Target } | null>(null);
  // biome-ignore lint/correctness/useExhaustiveDependencies: another list, another selection
  useEffect(() => setSelected(new Map()), [list]);
  useEffect(() => list.follow(atTop && selected.size === 0), [list, atTop, selected]);

  const change = useCallback(
    (changes: Search) =>
      void navigate({ to: '/jobs', search: (before: Search) => ({ ...before, ...changes }), replace: true }),
    [navigate],
  );
  const toggle = useCallback(
    (row: Row, on: boolean) =>
      setSelected((before) => {
        const next = new Map(before);
        if (on) next.set(row.id, row);
        else next.delete(row.id);
        return next;
      }),
    [],
  );
  const filtered = FILTER_FIELDS.some((field) => search[field]);
  const by = search.by && search.by in COUNTED ? (search.by as JobCountBy) : null;

  return (
    <>
      <Toolbar search={search} change={change} list={list} total={total} />
      <Chips search={search} change={change} />
      {selected.size > 0 ? (
        <SelectionBar
          count={selected.size}
          act={(action) =>
            setBulk({
              action,
              target: {
                // As they are now, not as they were when they were selected.
                jobs: [...selected.values()].map(({ id, state }) => ({
                  id,
                  state: list.row(id)?.state ?? state,
                })),
              },
            })
          }
          none={() => setSelected(new Map())}
        />
      ) : (
        <div className="toolbar">
          <span className="muted small num" role="status">
            {total === null
              ? 'Loading…'
              : `${total >= COUNT_MAX ? 'more than ' : ''}${plural(total, 'job')}${filtered ? ' match' : ''}`}
          </span>
          <span className="grow" />
          <MenuButton
            icon={<MoreHorizontal size={15} />}
            variant="quiet"
            entries={(Object.keys(ACTIONS) as BulkAction[]).map((action) => ({
              id: action,
              label: `${words(action)} all that match…`,
              danger: ACTIONS[action].danger ?? false,
              onAction: () => setBulk({ action, target: { filter } }),
            }))}
          >
            All that match
          </MenuButton>
        </div>
      )}
      <div className="list-frame">
        {error && (
          <div style={{ padding: 12 }}>
            <Problem error={error} retry={list.retry} />
          </div>
        )}
        {changes > 0 && !(atTop && selected.size === 0) && (
          <Button variant="primary" className="news-pill small" onPress={list.refresh}>
            {plural(changes, 'change')} to this list · show
          </Button>
        )}
        {total === null ? (
          !error && (
            <div style={{ padding: 16 }}>
              <Skeleton lines={12} />
            </div>
          )
        ) : by ? (
          <Counts by={by} filter={filter} search={search} />
        ) : total === 0 ? (
          <Empty
            icon={<ListChecks size={20} />}
            title={filtered ? 'No jobs match' : 'No jobs yet'}
            action={
              filtered ? (
                <Button onPress={() => void navigate({ to: '/jobs', search: {} })}>Show all jobs</Button>
              ) : (
                <Button variant="primary" onPress={() => void navigate({ to: '/submit' })}>
                  Submit the first one
                </Button>
              )
            }
          >
            {filtered ? 'Remove a filter, or wait: new matching jobs appear automatically.' : undefined}
          </Empty>
        ) : (
          <JobGrid
            list={list}
            total={total}
            columns={columns}
            selected={selected}
            onSelect={toggle}
            onTop={setAtTop}
          />
        )}
      </div>
      {bulk && (
        <BulkDialog
          {...bulk}
          onClose={() => setBulk(null)}
          onDone={() => {
            setSelected(new Map());
            list.refresh();
          }}
        />
      )}
    </>
  );
}

const GROUPINGS = [
  { value: '', label: 'Not grouped' },
  ...Object.entries(COUNTED).map(([value, { header }]) => ({ value, label: `By ${header.toLowerCase()}` })),
];

const Toolbar = memo(function Toolbar({
  search,
  change,
  list,
  total,
}: {
  search: Search;
  change(changes: Search): void;
  list: JobList;
  total: number | null;
}) {
  const set = STATE_SETS.find(({ value }) => value === (search.states ?? ''));
  return (
    <div className="toolbar jobs-toolbar">
      <Segments
        label="States"
        value={set ? set.value : 'other'}
        onChange={(states) => states !== 'other' && change({ states: states || undefined })}
        options={[...STATE_SETS, ...(set ? [] : [{ value: 'other' as const, label: 'Chosen' }])]}
      />
      <span className="grow" />
      <FilterButton search={search} change={change} />
      <Choice
        label="Order"
        hideLabel
        value={search.order ?? ''}
        onChange={(order) => change({ order: order || undefined })}
        options={ORDERS}
      />
      <Choice
        label="Group by"
        hideLabel
        value={search.by ?? ''}
        onChange={(by) => change({ by: by || undefined })}
        options={GROUPINGS}
      />
      <Views search={search} />
      <DialogTrigger>
        <AriaButton className="button bare" aria-label="Columns">
          <Columns3 size={15} />
        </AriaButton>
        <Popover className="popover panel">
          <AriaDialog aria-label="Columns" className="dialog">
            <Columns search={search} change={change} />
          </AriaDialog>
        </Popover>
      </DialogTrigger>
      <Export search={search} list={list} total={total} />
    </div>
  );
});

function Columns({ search, change }: { search: Search; change(changes: Search): void }) {
  const chosen = search.columns?.split(',') ?? DEFAULT_COLUMNS;
  return (
    <div className="stack">
      <div className="column-list">
        {JOB_COLUMNS.map(({ key, header }) => (
          <Check
            key={key}
            checked={key === 'job' || chosen.includes(key)}
            disabled={key === 'job'}
            onChange={(on) => {
              const next = JOB_COLUMNS.map((column) => column.key).filter((other) =>
                other === key ? on : chosen.includes(other),
              );
              change({ columns: next.join(',') === DEFAULT_COLUMNS.join(',') ? undefined : next.join(',') });
            }}
          >
            {header}
          </Check>
        ))}
      </div>
      <Button className="small" variant="quiet" onPress={() => change({ columns: undefined })}>
        As by default
      </Button>
    </div>
  );
}

function FilterButton({ search, change }: { search: Search; change(changes: Search): void }) {
  return (
    <DialogTrigger>
      <AriaButton className="button">
        <Filter size={14} aria-hidden />
        <span>Filter</span>
      </AriaButton>
      <Popover className="popover panel">
        <AriaDialog aria-label="Filter jobs" className="dialog">
          {({ close }) => <FilterForm search={search} change={change} close={close} />}
        </AriaDialog>
      </Popover>
    </DialogTrigger>
  );
}

const TIMES = ['15m', '1h', '6h', '24h', '7d'];

function FilterForm({
  search,
  change,
  close,
}: {
  search: Search;
  change(changes: Search): void;
  close(): void;
}) {
  const viewer = useViewer();
  const operator = viewer.may('OPERATOR');
  const { data } = useData(JobsFacetsDocument, {});
  const { data: people } = useData(JobsUsersDocument, {}, { pause: !operator });
  const [draft, setDraft] = useState<Search>({ ...search });
  const put = (field: string) => (value: string) =>
    setDraft((before) => ({ ...before, [field]: value || undefined }));
  const time = (field: string, label: string) => (
    <TextInput
      label={label}
      value={draft[field] ?? ''}
      onChange={put(field)}
      list={TIMES}
      placeholder="7d or 2026-03-01"
      error={draft[field] && instantOf(draft[field]) === null ? 'Not a time.' : null}
    />
  );
  return (
    <form
      className="stack"
      onSubmit={(event) => {
        event.preventDefault();
        change(Object.fromEntries(FILTER_FIELDS.map((field) => [field, draft[field]])));
        close();
      }}
    >
      <div className="filter-form">
        <Choice
          label="Site"
          value={draft.site ?? ''}
          onChange={put('site')}
          options={[
            { value: '', label: 'Any' },
            ...(data?.sites.nodes ?? []).map(({ id, name }) => ({ value: id, label: name })),
          ]}
        />
        {operator && (
          <Choice
            label="User"
            value={draft.user ?? ''}
            onChange={put('user')}
            options={[
              { value: '', label: 'Anybody' },
              ...(people?.users.nodes ?? []).map(({ id, name }) => ({ value: id, label: name })),
            ]}
          />
        )}
        <TextInput label="Application" value={draft.application ?? ''} onChange={put('application')} />
        <TextInput label="Project" value={draft.project ?? ''} onChange={put('project')} />
        <TextInput label="Group name" value={draft.groupName ?? ''} onChange={put('groupName')} />
        <TextInput
          label="Class"
          value={draft.class ?? ''}
          onChange={put('class')}
          help="normal: jobs without a class"
        />
        <TextInput label="License" value={draft.license ?? ''} onChange={put('license')} />
        {time('submittedAfter', 'Submitted since')}
        {time('submittedBefore', 'Submitted before')}
        {time('endedAfter', 'Ended since')}
        {time('endedBefore', 'Ended before')}
      </div>
      <fieldset className="plain-set">
        <legend>States</legend>
        <div className="filter-states">
          {JOB_STATES.map((state) => {
            const chosen = (draft.states ?? '').split(',').filter(Boolean);
            return (
              <Check
                key={state}
                checked={chosen.includes(state)}
                onChange={(on) =>
                  put('states')(
                    JOB_STATES.filter((other) => (other === state ? on : chosen.includes(other))).join(','),
                  )
                }
              >
                {words(state)}
              </Check>
            );
          })}
        </div>
      </fieldset>
      <div className="row spread">
        <Button variant="quiet" onPress={() => setDraft({})}>
          Clear
        </Button>
        <Button type="submit" variant="primary">
          Show
        </Button>
      </div>
    </form>
  );
}

/** The filters in force, each with a way to take it off. */
function Chips({ search, change }: { search: Search; change(changes: Search): void }) {
  const { data } = useData(JobsFacetsDocument, {}, { pause: !search.site });
  const { data: people } = useData(JobsUsersDocument, {}, { pause: !search.user });
  const shown: Record<string, (value: string) => string> = {
    site: (id) => `Site ${data?.sites.nodes.find((site) => site.id === id)?.name ?? id}`,
    user: (id) => `User ${people?.users.nodes.find((user) => user.id === id)?.name ?? id}`,
    application: (name) => `Application ${name}`,
    project: (name) => `Project ${name}`,
    groupName: (name) => `Group ${name}`,
    class: (name) => `Class ${name}`,
    license: (kind) => `License ${kind}`,
    cause: (cause) => `Ended: ${causeOf(cause)}`,
    group: (id) => `Bulk group ${id}`,
    submittedAfter: (at) => `Submitted since ${timeText(at)}`,
    submittedBefore: (at) => `Submitted before ${timeText(at)}`,
    endedAfter: (at) => `Ended since ${timeText(at)}`,
    endedBefore: (at) => `Ended before ${timeText(at)}`,
  };
  const custom = search.states && !STATE_SETS.some(({ value }) => value === search.states);
  const chips = Object.entries(shown).filter(([field]) => search[field]);
  if (chips.length === 0 && !custom) return null;
  return (
    <div className="row wrap">
      {custom && (
        <span className="chip">
          {search.states!.split(',').map(words).join(', ')}
          <AriaButton aria-label="Any state" onPress={() => change({ states: undefined })}>
            <X size={13} />
          </AriaButton>
        </span>
      )}
      {chips.map(([field, text]) => (
        <span key={field} className="chip">
          {text(search[field]!)}
          <AriaButton
            aria-label={`Remove the filter ${text(search[field]!)}`}
            onPress={() => change({ [field]: undefined })}
          >
            <X size={13} />
          </AriaButton>
        </span>
      ))}
    </div>
  );
}

function timeText(text: string): string {
  const at = instantOf(text);
  return /^\d+[mhd]$/.test(text) ? `${text} ago` : at ? moment(at) : text;
}

// --- Saved views

const views = createSetting<string>('views', '[]');
interface View {
  name: string;
  search: Search;
}

function savedViews(text: string): View[] {
  try {
    return JSON.parse(text) as View[];
  } catch {
    return [];
  }
}
const VIEWS_MAX = 30;

function Views({ search }: { search: Search }) {
  const saved = savedViews(useStore(views));
  const navigate = useNavigate();
  const [naming, setNaming] = useState(false);
  const [name, setName] = useState('');
  const save = (next: View[]): void => views.set(JSON.stringify(next.slice(-VIEWS_MAX)));
  return (
    <>
      <MenuButton
        icon={<Bookmark size={14} />}
        entries={[
          ...saved.map((view) => ({
            id: `view ${view.name}`,
            label: view.name,
            onAction: () => void navigate({ to: '/jobs', search: view.search }),
          })),
          { id: 'save', label: 'Save this view…', onAction: () => setNaming(true) },
          ...saved.map((view) => ({
            id: `forget ${view.name}`,
            label: `Forget “${view.name}”`,
            danger: true,
            onAction: () => save(saved.filter((other) => other.name !== view.name)),
          })),
        ]}
      >
        Views
      </MenuButton>
      <Dialog
        title="Save this view"
        open={naming}
        onClose={() => setNaming(false)}
        footer={
          <Button
            variant="primary"
            isDisabled={name.trim() === ''}
            onPress={() => {
              save([...saved.filter((view) => view.name !== name.trim()), { name: name.trim(), search }]);
              setNaming(false);
              toast(`The view “${name.trim()}” is saved in this browser.`);
            }}
          >
            Save
          </Button>
        }
      >
        <p className="muted small">
          Saves the current filters, order and columns. The address of this page contains them too.
        </p>
        <TextInput label="Name" value={name} onChange={setName} autoFocus />
      </Dialog>
    </>
  );
}

function Export({ search, list, total }: { search: Search; list: JobList; total: number | null }) {
  const [rows, setRows] = useState<number | null>(null);
  const stop = useRef<AbortController | null>(null);
  // biome-ignore lint/correctness/useExhaustiveDependencies: an export of another list is given up
  useEffect(() => () => stop.current?.abort(), [list]);
  async function run(): Promise<void> {
    stop.current = new AbortController();
    const { signal } = stop.current;
    setRows(0);
    try {
      const done = await exportJobs(
        filterOf(search),
        orderOf(search),
        columnsOf(search.columns),
        signal,
        setRows,
      );
      toast(
        `${plural(done, 'job')} written to jobs.csv${done >= EXPORT_MAX ? ', the limit of one export' : ''}.`,
      );
    } catch (error) {
      if (!signal.aborted) toast((error as Error).message, true);
    } finally {
      setRows(null);
    }
  }
  return (
    <Button icon={<Download size={14} />} isDisabled={rows !== null || !total} onPress={() => void run()}>
      {rows === null ? 'CSV' : count(rows)}
    </Button>
  );
}
