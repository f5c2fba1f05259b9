/** Which machines a job may have, beside how much of them: fields of the pages that submit and change jobs. */
import { NotAccepted, parseDelay, type SameSwitch } from '../../../src/words/index';
import { Choice, type Option, TextInput } from '../ui/controls';

export const EXCLUSIVE: readonly Option<'' | 'USER' | 'MACHINE'>[] = [
  { value: '', label: 'any jobs' },
  { value: 'USER', label: 'jobs of the same user' },
  { value: 'MACHINE', label: 'no other job' },
];

type Switch = '' | 'require' | 'within';
const SWITCH: readonly Option<Switch>[] = [
  { value: '', label: 'does not matter' },
  { value: 'require', label: 'is the same' },
  { value: 'within', label: 'is the same, if possible', hint: 'Waits for such machines, and then takes any' },
];
const WAIT = '10m';

/** How a form keeps it: empty, `require`, or `within 10m`, the longest wait. */
export const sameSwitchWritten = (sameSwitch: { maxWaitS?: number | null } | null): string =>
  sameSwitch === null ? '' : sameSwitch.maxWaitS == null ? 'require' : `within ${sameSwitch.maxWaitS}`;

/** Throws NotAccepted. */
export function sameSwitchOf(written: string): SameSwitch | null {
  const [how, wait = ''] = written.split(' ');
  if (how === '') return null;
  return how === 'require' ? {} : { maxWaitS: parseDelay('', wait) };
}

export function SwitchFields({
  value,
  onChange,
  error,
}: {
  value: string;
  onChange(value: string): void;
  error: string | null;
}) {
  const [how, wait = ''] = value.split(' ') as [Switch, string?];
  return (
    <>
      <Choice
        label="Switch of its machines"
        value={how}
        onChange={(next) => onChange(next === 'within' ? `within ${WAIT}` : next)}
        options={SWITCH}
      />
      {how === 'within' && (
        <TextInput
          label="Longest wait for one switch"
          value={wait}
          onChange={(next) => onChange(`within ${next.replaceAll(' ', '')}`)}
          error={error}
          help="90, 10m or 2h"
        />
      )}
    </>
  );
}

/** What the service says of a constraint that is not one, and where it is wrong. */
export function constraintFault(message: string): { at: number; accepted: string } | null {
  const [, at, accepted] = /.*: [A-Z_]+ at position (\d+); accepted: (.+?)\.?$/s.exec(message) ?? [];
  return at === undefined || accepted === undefined ? null : { at: Number(at), accepted };
}

/** `error`: as the service says it. `before`: characters that were put before the text. */
export function ConstraintInput({
  value,
  onChange,
  error,
  before = 0,
}: {
  value: string;
  onChange(value: string): void;
  error: string | null;
  before?: number;
}) {
  const fault = error === null ? null : constraintFault(error);
  const at = Math.min(Math.max(0, (fault?.at ?? 0) - before), value.length);
  return (
    <div>
      <TextInput
        label="Constraint on labels"
        mono
        value={value}
        onChange={onChange}
        placeholder="any"
        help="gen >= 3 and not (slow or site = cern)"
        error={fault === null ? error : `At character ${at + 1} accepted: ${fault.accepted}.`}
      />
      {fault !== null && (
        <p className="mono small constraint-fault" aria-hidden="true">
          {value.slice(0, at)}
          <mark>{value.slice(at) || '\u00a0'}</mark>
        </p>
      )}
    </div>
  );
}

/** What is wrong with a field, in words for people. */
export const faultText = (error: unknown): string =>
  error instanceof NotAccepted ? `Accepted: ${error.accepted}.` : (error as Error).message;
