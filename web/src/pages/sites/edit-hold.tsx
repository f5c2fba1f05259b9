/** A form for a maintenance window or reservation that is there: only what was written differently is changed. */
import { useState } from 'react';
import { useAction } from '../../api/data';
import { Button, Dialog, TextInput } from '../../ui/controls';
import { told } from '../../ui/toast';
import { Amounts, LengthAndName, Listed, ReasonAndConflict } from './hold-fields';
import { type Conflict, changesOf, type Draft, draftOf, timeOf } from './hold-form';
import { type HoldPartsFragment, type SitePartsFragment, UpdateHoldDocument } from './sites.gql';

export function EditHold({
  site,
  hold,
  onClose,
}: {
  site: SitePartsFragment;
  hold: HoldPartsFragment;
  onClose(): void;
}) {
  const update = useAction(UpdateHoldDocument);
  const [draft, setDraft] = useState(() => draftOf(hold));
  const [onConflict, setOnConflict] = useState<Conflict>(hold.onConflict);
  const put = (field: keyof Draft) => (value: string) =>
    setDraft((before) => ({ ...before, [field]: value }));
  const changes = changesOf(hold, draft, site);
  const save = (): void => {
    if (typeof changes === 'string') return;
    const set = { ...changes, ...(onConflict !== hold.onConflict && { onConflict }) };
    if (Object.keys(set).length === 0) {
      onClose();
      return;
    }
    void told(update.run({ input: { holdId: hold.id, ...set } }), `${hold.name ?? hold.id} is changed.`).then(
      (done) => done && onClose(),
    );
  };
  const begun = hold.recurrence === null && timeOf(hold).from <= Date.now();
  return (
    <Dialog
      title={`Edit ${hold.name ?? hold.id}`}
      open
      onClose={onClose}
      footer={
        <Button variant="primary" isDisabled={typeof changes === 'string' || update.busy} onPress={save}>
          Change it
        </Button>
      }
    >
      <div className="stack">
        <div className="columns" style={{ '--column': '180px' } as React.CSSProperties}>
          <TextInput
            label={hold.recurrence === null ? 'From' : 'First from'}
            type="datetime-local"
            value={draft.from}
            onChange={put('from')}
            disabled={begun}
            help={begun ? 'It has begun' : undefined}
          />
          <LengthAndName {...{ draft, put }} endless />
          <TextInput
            label="Machines"
            value={draft.machines}
            onChange={put('machines')}
            placeholder={placeholderOf(hold)}
          />
          {hold.kind !== 'MAINTENANCE' && <Amounts {...{ draft, put }} ofMachines />}
          <Listed field="shared" value={draft.shared} onChange={put('shared')} />
          {hold.kind !== 'MAINTENANCE' && (
            <>
              <Listed field="users" value={draft.users} onChange={put('users')} />
              <TextInput
                label="Released after"
                type="number"
                min={1}
                step="any"
                unit="minutes"
                value={draft.releaseMin}
                onChange={put('releaseMin')}
                placeholder="never"
                help="Without a running job"
              />
            </>
          )}
        </div>
        {hold.recurrence !== null && (
          <TextInput
            label="Again"
            value={draft.rrule}
            onChange={put('rrule')}
            help={`A rule of RFC 5545, in the time zone ${hold.recurrence.timeZone}. A current occurrence stays as it is.`}
          />
        )}
        <ReasonAndConflict {...{ draft, put, onConflict, setOnConflict }} />
        {typeof changes === 'string' && (
          <p className="note warn" role="alert">
            {changes}
          </p>
        )}
      </div>
    </Dialog>
  );
}

/** What it holds of machines where none is named. */
const placeholderOf = ({ kind, wholeSite, machines }: HoldPartsFragment): string => {
  if (kind !== 'MAINTENANCE') return 'where tasks fit';
  return wholeSite || machines.length > 0 ? 'the whole site' : 'none';
};
