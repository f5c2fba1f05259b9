/** The class of a job, of those of the policy that the user may use. */
import { Choice } from '../ui/controls';

export function ClassChoice({
  classes,
  value,
  onChange,
}: {
  /** Those that the user may use. */
  classes: readonly { name: string; isScavenger: boolean }[];
  /** Empty: none. What a script has named, or a job has, need not be among them. */
  value: string;
  onChange(value: string): void;
}) {
  if (classes.length === 0 && value === '') return null;
  const isKnown = value === '' || classes.some(({ name }) => name === value);
  return (
    <Choice
      label="Class"
      value={value}
      onChange={onChange}
      options={[
        { value: '', label: 'None' },
        ...classes.map(({ name, isScavenger }) => ({
          value: name,
          label: isScavenger ? `${name} (uses what is idle)` : name,
        })),
        ...(isKnown ? [] : [{ value, label: value }]),
      ]}
    />
  );
}
