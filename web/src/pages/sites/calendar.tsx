import { useState } from 'react';
import { useAction, useData } from '../../api/data';
import { useViewer } from '../../shell/viewer';
import { Button, Choice, Dialog, TextInput } from '../../ui/controls';
import { count, duration, megabytes, moment, plural } from '../../ui/format';
import { Plus } from '../../ui/icons';
import { useNow } from '../../ui/now';
import { At, Badge, Card, Empty, Loaded, Skeleton, Table } from '../../ui/show';
import { told } from '../../ui/toast';
import { EditHold } from './edit-hold';
import { Amounts, LengthAndName, Listed, ReasonAndConflict } from './hold-fields';
import { type Conflict, HOUR_MS, localTime, sharedIn, tasksIn, understood, wordsOf } from './hold-form';
import {
  CancelHoldDocument,
  type HoldPartsFragment,
  ReserveSiteDocument,
  SiteHoldsDocument,
  type SitePartsFragment,
} from './sites.gql';

type Time = HoldPartsFragment['times'][number];

const DAY_MS = 86_400_000;
const DAYS = 14;

/** What is held of the machines, beside jobs: maintenance windows and reservations. */
// biome-ignore lint/complexity/noExcessiveLinesPerFunction: a table, with its columns
export function Calendar({ site }: { site: SitePartsFragment }) {
  const viewer = useViewer();
  const operator = viewer.may('OPERATOR');
  const [drafted, setDrafted] = useState<{ from: string; hours: string } | null>(null);
  const [edited, setEdited] = useState<HoldPartsFragment | null>(null);
  const found = useData(SiteHoldsDocument, { site: site.id }, { everyMs: 10_000 });
  const cancel = useAction(CancelHoldDocument);
  return (
    <Card
      flush
      title="Calendar"
      about={`The next ${DAYS} days. No job starts whose time limit ends after one of these begins`}
      actions={
        <Button icon={<Plus size={14} />} onPress={() => setDrafted({ from: '', hours: '4' })}>
          {operator ? 'Close or reserve' : 'Reserve'}
        </Button>
      }
    >
      <Pick onPick={setDrafted} />
      <Loaded
        from={found}
        skeleton={
          <div className="card-body">
            <Skeleton lines={3} />
          </div>
        }
      >
        {({ holds }) => (
          <Table
            label="Maintenance windows and reservations"
            rows={[...holds.nodes].sort((a, b) => beginOf(a) - beginOf(b))}
            id={({ id }) => id}
            empty={
              <Empty title="No maintenance or reservations">
                Jobs may use all machines, whatever their time limits.
              </Empty>
            }
            columns={[
              {
                key: 'name',
                header: 'Name',
                cell: ({ id, name, kind, user, reason, recurrence, lacking }) => (
                  <>
                    <span className="row wrap">
                      <span className="strong">{name ?? id}</span>
                      {kind === 'MAINTENANCE' ? (
                        <Badge tone="warn">Maintenance</Badge>
                      ) : (
                        <Badge tone="accent">{user === null ? 'Reserved' : `Reserved: ${user.name}`}</Badge>
                      )}
                    </span>
                    {recurrence !== null && (
                      <div className="tiny muted">
                        {recurrence.rrule} ({recurrence.timeZone})
                      </div>
                    )}
                    {lacking.length > 0 && (
                      <div className="tiny">no machine for {lacking.map(({ name }) => name).join(', ')}</div>
                    )}
                    {reason !== null && <div className="tiny muted">{reason}</div>}
                  </>
                ),
              },
              { key: 'holds', header: 'Holds', minor: true, cell: heldText },
              {
                key: 'from',
                header: 'From',
                right: true,
                cell: ({ times }) => <At at={times[0]?.from} seconds={false} />,
              },
              {
                key: 'lasts',
                header: 'Lasts',
                right: true,
                minor: true,
                cell: ({ times: [time] }) =>
                  time?.to ? (
                    <span className="num">
                      {duration((Date.parse(time.to) - Date.parse(time.from)) / 1000)}
                    </span>
                  ) : (
                    'until canceled'
                  ),
              },
              {
                key: 'days',
                header: `${DAYS} days`,
                minor: true,
                cell: ({ kind, times }) => <Days kind={kind} times={times} />,
              },
              {
                key: 'actions',
                header: <span className="hidden-visually">Edit or cancel</span>,
                right: true,
                cell: (hold) => {
                  const { id, name, kind, user } = hold;
                  if (!operator && (kind === 'MAINTENANCE' || user?.id !== viewer.id)) return null;
                  const hidden = <span className="hidden-visually"> {name ?? id}</span>;
                  return (
                    <span className="row">
                      <Button onPress={() => setEdited(hold)}>Edit{hidden}</Button>
                      <Button
                        isDisabled={cancel.busy}
                        onPress={() =>
                          void told(cancel.run({ hold: id }), `${name ?? id} is canceled.`).then(
                            found.refresh,
                          )
                        }
                      >
                        Cancel{hidden}
                      </Button>
                    </span>
                  );
                },
              },
            ]}
          />
        )}
      </Loaded>
      {edited !== null && (
        <EditHold
          site={site}
          hold={edited}
          onClose={() => {
            setEdited(null);
            found.refresh();
          }}
        />
      )}
      {drafted !== null && (
        <NewHold
          site={site}
          at={drafted}
          onClose={() => {
            setDrafted(null);
            found.refresh();
          }}
        />
      )}
    </Card>
  );
}

const beginOf = ({ times }: HoldPartsFragment): number => Date.parse(times[0]?.from ?? '');

function heldText({ wholeSite, machines, shared }: HoldPartsFragment): string {
  const amounts = shared.map(({ kind, amount }) => `${count(amount)} ${kind}`);
  const places = wholeSite ? ['the whole site'] : machines.length > 0 ? [machinesText(machines)] : [];
  return [...places, ...amounts].join(', ');
}

function machinesText(machines: HoldPartsFragment['machines']): string {
  const parts = machines.slice(0, 3).map(({ machine, whole, cpus, memoryMb, resources }) => {
    const amounts = [
      ...(cpus ? [plural(cpus, 'CPU')] : []),
      ...(memoryMb ? [megabytes(memoryMb)] : []),
      ...resources.map(({ kind, amount }) => `${amount} ${kind}`),
    ];
    return whole ? machine.name : `${machine.name} (${amounts.join(', ')})`;
  });
  const more = machines.length > parts.length ? ` and ${machines.length - parts.length} more` : '';
  return `${parts.join(', ')}${more}`;
}

/** Its times within the next days. The columns beside it say the same of the next one. */
function Days({ kind, times }: { kind: HoldPartsFragment['kind']; times: readonly Time[] }) {
  const now = useNow(60_000);
  const shareOf = (at: number): number => Math.min(1, Math.max(0, (at - now) / (DAYS * DAY_MS)));
  return (
    <span className="calendar-days" aria-hidden>
      {times.map(({ from, to }) => {
        const left = shareOf(Date.parse(from));
        const right = to === null ? 1 : shareOf(Date.parse(to));
        if (right <= left) return null;
        const style = { left: `${left * 100}%`, width: `max(3px, ${(right - left) * 100}%)` };
        const text = `${moment(from, { seconds: false })} to ${to === null ? 'when it is canceled' : moment(to, { seconds: false })}`;
        return (
          <span key={from} className={kind === 'MAINTENANCE' ? 'closed' : ''} style={style} title={text} />
        );
      })}
    </span>
  );
}

/** The next days: dragging over some hours opens the form for them. With the keyboard one enters them in the form itself. */
function Pick({ onPick }: { onPick(draft: { from: string; hours: string }): void }) {
  const now = useNow(60_000);
  const [range, setRange] = useState<{ from: number; to: number } | null>(null);
  const share = (event: React.PointerEvent<HTMLDivElement>): number => {
    const { left, width } = event.currentTarget.getBoundingClientRect();
    return Math.min(1, Math.max(0, (event.clientX - left) / width));
  };
  const hourAt = (part: number): number => Math.round((now + part * DAYS * DAY_MS) / HOUR_MS) * HOUR_MS;
  const [from, to] =
    range === null ? [0, 0] : [Math.min(range.from, range.to), Math.max(range.from, range.to)];
  return (
    <>
      <div
        className="calendar-days calendar-pick"
        aria-hidden
        title="Drag across the hours to hold"
        onPointerDown={(event) => {
          event.currentTarget.setPointerCapture(event.pointerId);
          setRange({ from: share(event), to: share(event) });
        }}
        onPointerMove={(event) => range !== null && setRange({ ...range, to: share(event) })}
        onPointerCancel={() => setRange(null)}
        onPointerUp={() => {
          setRange(null);
          const begin = hourAt(from);
          const hours = Math.max(1, (hourAt(to) - begin) / HOUR_MS);
          if (range !== null) onPick({ from: localTime(begin), hours: String(hours) });
        }}
      >
        {range !== null && <span style={{ left: `${from * 100}%`, width: `${(to - from) * 100}%` }} />}
      </div>
      <div className="row spread tiny faint calendar-dates" aria-hidden>
        {[0, 0.5, 1].map((part) => (
          <span key={part}>{moment(new Date(hourAt(part)).toISOString(), { seconds: false })}</span>
        ))}
      </div>
    </>
  );
}

/** A maintenance window, or a reservation of room for tasks. */
// biome-ignore lint/complexity/noExcessiveLinesPerFunction: a form, with its fields
function NewHold({
  site,
  at,
  onClose,
}: {
  site: SitePartsFragment;
  at: { from: string; hours: string };
  onClose(): void;
}) {
  const operator = useViewer().may('OPERATOR');
  const reserve = useAction(ReserveSiteDocument);
  const [draft, setDraft] = useState({
    ...at,
    name: '',
    reason: '',
    tasks: '1',
    cpus: '1',
    memoryMb: '',
    resources: '',
    shared: '',
    rrule: '',
    users: '',
  });
  const [closes, setCloses] = useState(operator);
  const [onConflict, setOnConflict] = useState<Conflict>('REFUSE');
  const put = (field: keyof typeof draft) => (value: string) =>
    setDraft((before) => ({ ...before, [field]: value }));
  const hours = Number(draft.hours);
  const held = understood(() => ({
    shared: sharedIn(draft.shared),
    ...(!closes && tasksIn(draft)),
  }));
  // Then nothing else is closed.
  const closesShared = closes && draft.shared.trim() !== '';
  const save = (): void => {
    if (typeof held === 'string') return;
    const from = draft.from === '' ? Date.now() : new Date(draft.from).getTime();
    const rrule = draft.rrule.trim() || null;
    const input = {
      ...{ siteId: site.id, onConflict, ...held },
      kind: closes ? ('MAINTENANCE' as const) : rrule === null ? ('USER' as const) : ('STANDING' as const),
      name: draft.name.trim() || null,
      reason: draft.reason.trim() || null,
      from: new Date(from).toISOString(),
      to: new Date(from + hours * HOUR_MS).toISOString(),
      ...(rrule !== null && { rrule, timeZone: Intl.DateTimeFormat().resolvedOptions().timeZone }),
      ...(!closes && { users: wordsOf(draft.users) }),
    };
    const saved = closes ? `${closesShared ? draft.shared.trim() : site.name} will be closed` : 'Reserved';
    void told(reserve.run({ input }), ({ createHold: { runsInTheWay } }) =>
      runsInTheWay === 0
        ? `${saved}.`
        : `${saved}; ${plural(runsInTheWay, 'job')} may still be running when it begins.`,
    ).then((done) => done && onClose());
  };
  return (
    <Dialog
      title={
        closesShared
          ? `Close shared resources at ${site.name}`
          : closes
            ? `Close ${site.name} for maintenance`
            : `Reserve at ${site.name}`
      }
      open
      onClose={onClose}
      footer={
        <Button
          variant="primary"
          isDisabled={!(hours > 0) || typeof held === 'string' || reserve.busy}
          onPress={save}
        >
          {closes ? 'Close it' : 'Reserve'}
        </Button>
      }
    >
      <div className="stack">
        {operator && (
          <Choice
            label="What"
            value={closes ? 'CLOSE' : 'RESERVE'}
            onChange={(what) => setCloses(what === 'CLOSE')}
            options={[
              { value: 'CLOSE', label: 'Maintenance' },
              { value: 'RESERVE', label: 'Reservation of room for tasks' },
            ]}
          />
        )}
        <div className="columns" style={{ '--column': '180px' } as React.CSSProperties}>
          <TextInput
            label="From"
            type="datetime-local"
            value={draft.from}
            onChange={put('from')}
            help="Empty: now"
          />
          <LengthAndName {...{ draft, put }} />
          {!closes && (
            <>
              <Amounts {...{ draft, put }} />
              <Listed field="users" value={draft.users} onChange={put('users')} />
            </>
          )}
          <Listed
            field="shared"
            value={draft.shared}
            onChange={put('shared')}
            help={closes ? 'Only these are closed; empty: the whole site' : undefined}
          />
        </div>
        <TextInput
          label="Again"
          value={draft.rrule}
          onChange={put('rrule')}
          placeholder="once"
          help="A rule of RFC 5545, such as FREQ=WEEKLY;BYDAY=TU, in the time zone of this browser"
        />
        <ReasonAndConflict {...{ draft, put, onConflict, setOnConflict }} />
        {typeof held === 'string' && (
          <p className="note warn" role="alert">
            {held}
          </p>
        )}
      </div>
    </Dialog>
  );
}
