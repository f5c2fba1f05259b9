import { Plus } from 'lucide-react';
import { useState } from 'react';
import { useAction, useData } from '../../api/data';
import { useViewer } from '../../shell/viewer';
import { Button, Check, Dialog, TextInput } from '../../ui/controls';
import { duration, megabytes, moment, plural } from '../../ui/format';
import { useNow } from '../../ui/now';
import { At, Badge, Card, Empty, Loaded, Skeleton, Table } from '../../ui/show';
import { told } from '../../ui/toast';
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
  const [closing, setClosing] = useState(false);
  const found = useData(SiteHoldsDocument, { site: site.id }, { everyMs: 10_000 });
  const cancel = useAction(CancelHoldDocument);
  return (
    <Card
      flush
      title="Calendar"
      about={`The next ${DAYS} days. No job starts that could still run, by its time limit, when one of these begins`}
      actions={
        operator && (
          <Button icon={<Plus size={14} />} onPress={() => setClosing(true)}>
            Maintenance
          </Button>
        )
      }
    >
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
              <Empty title="Nothing is held here">Jobs may take all machines, whatever their limits.</Empty>
            }
            columns={[
              {
                key: 'name',
                header: 'Name',
                cell: ({ id, name, reason }) => (
                  <>
                    <span className="strong">{name ?? id}</span>
                    {reason !== null && <div className="tiny muted">{reason}</div>}
                  </>
                ),
              },
              {
                key: 'kind',
                header: 'Kind',
                cell: ({ kind, user }) =>
                  kind === 'MAINTENANCE' ? (
                    <Badge tone="warn">Maintenance</Badge>
                  ) : (
                    <Badge tone="accent">{user === null ? 'Reserved' : `Reserved: ${user.name}`}</Badge>
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
                key: 'cancel',
                header: <span className="hidden-visually">Cancel</span>,
                right: true,
                cell: ({ id, name, kind, user }) =>
                  (operator || (kind !== 'MAINTENANCE' && user?.id === viewer.id)) && (
                    <Button
                      isDisabled={cancel.busy}
                      onPress={() =>
                        void told(cancel.run({ hold: id }), `${name ?? id} is canceled.`).then(found.refresh)
                      }
                    >
                      Cancel<span className="hidden-visually"> {name ?? id}</span>
                    </Button>
                  ),
              },
            ]}
          />
        )}
      </Loaded>
      {closing && (
        <Maintenance
          site={site}
          onClose={() => {
            setClosing(false);
            found.refresh();
          }}
        />
      )}
    </Card>
  );
}

const beginOf = ({ times }: HoldPartsFragment): number => Date.parse(times[0]?.from ?? '');

function heldText({ wholeSite, machines }: HoldPartsFragment): string {
  if (wholeSite) return 'the whole site';
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

/** Closes the site for some hours. */
function Maintenance({ site, onClose }: { site: SitePartsFragment; onClose(): void }) {
  const reserve = useAction(ReserveSiteDocument);
  const [draft, setDraft] = useState({ from: '', hours: '4', name: '', reason: '' });
  const [afterJobs, setAfterJobs] = useState(false);
  const put = (field: keyof typeof draft) => (value: string) =>
    setDraft((before) => ({ ...before, [field]: value }));
  const hours = Number(draft.hours);
  const close = (): void => {
    const from = draft.from === '' ? Date.now() : new Date(draft.from).getTime();
    const input = {
      ...{ kind: 'MAINTENANCE' as const, site: site.id, resources: [] },
      name: draft.name.trim() || null,
      reason: draft.reason.trim() || null,
      from: new Date(from).toISOString(),
      to: new Date(from + hours * 3_600_000).toISOString(),
      onConflict: afterJobs ? ('AFTER_JOBS' as const) : ('REFUSE' as const),
    };
    void told(reserve.run({ input }), ({ reserve: { runsInTheWay } }) =>
      runsInTheWay === 0
        ? `${site.name} is closed then.`
        : `${site.name} is closed then; ${plural(runsInTheWay, 'job')} may still run when it begins.`,
    ).then((done) => done && onClose());
  };
  return (
    <Dialog
      title={`Close ${site.name} for maintenance`}
      open
      onClose={onClose}
      footer={
        <Button variant="primary" isDisabled={!(hours > 0) || reserve.busy} onPress={close}>
          Close it
        </Button>
      }
    >
      <div className="stack">
        <div className="columns" style={{ '--column': '180px' } as React.CSSProperties}>
          <TextInput
            label="From"
            type="datetime-local"
            value={draft.from}
            onChange={put('from')}
            help="Empty: now"
          />
          <TextInput
            label="Lasts"
            type="number"
            min={0}
            step="any"
            unit="hours"
            value={draft.hours}
            onChange={put('hours')}
          />
          <TextInput label="Name" value={draft.name} onChange={put('name')} placeholder="none" />
        </div>
        <TextInput
          label="Reason"
          value={draft.reason}
          onChange={put('reason')}
          help="Everybody can read it"
        />
        <Check checked={afterJobs} onChange={setAfterJobs}>
          Let jobs end that may still run then; otherwise they are in the way
        </Check>
      </div>
    </Dialog>
  );
}
