/** One field of a policy, as the service describes it (`policyKinds`): what it does not accept is said here. */

import { useState } from 'react';
import type { PlainFieldPartsFragment, PolicyFieldPartsFragment } from '../../api/kinds.gql';
import { Button, Check, Choice, TextInput } from '../../ui/controls';
import { Plus, Trash2 } from '../../ui/icons';

/** Within a table there is no other. */
type Field = PlainFieldPartsFragment & Partial<Pick<PolicyFieldPartsFragment, 'fields'>>;

interface Parts {
  field: Field;
  value: unknown;
  disabled: boolean;
  onChange(value: unknown): void;
}

export function Input(parts: Parts) {
  const { field, value, disabled, onChange } = parts;
  switch (field.type) {
    case 'BOOLEAN':
      return (
        <Check checked={value === true} disabled={disabled} onChange={onChange}>
          {field.label}
        </Check>
      );
    case 'CHOICE':
      return (
        <Choice
          label={field.label}
          value={value === null || value === undefined ? '' : String(value)}
          disabled={disabled}
          onChange={(next) => onChange(next === '' ? emptyOf(field) : next)}
          options={[
            ...(isEmptied(field) ? [{ value: '', label: 'As by default' }] : []),
            ...(field.options ?? []).map((option) => ({ value: option, label: option })),
          ]}
        />
      );
    case 'NUMBERS':
      return field.options === null ? <ByName {...parts} /> : <Named {...parts} names={field.options} />;
    case 'TEXTS':
      return <Texts {...parts} />;
    case 'TABLE':
      return <Table {...parts} fields={field.fields ?? []} />;
    default:
      return <NumberInput {...parts} />;
  }
}

const isEmptied = ({ isNullable, isOptional }: Field): boolean => isNullable || isOptional;
const emptyOf = ({ isNullable }: Field): null | undefined => (isNullable ? null : undefined);

/** What is wrong with a number, as the service would refuse it; null: nothing. */
export function faultOf({ type, min, max, isAboveMin, isBelowMax }: Field, text: string): string | null {
  const number = Number(text);
  const whole = type !== 'NUMBER';
  if (text.trim() === '' || !Number.isFinite(number) || (whole && !Number.isInteger(number)))
    return whole ? 'A whole number.' : 'A number.';
  const low = min !== null && (isAboveMin ? number <= min : number < min);
  const high = max !== null && (isBelowMax ? number >= max : number > max);
  if (!low && !high) return null;
  return `${isAboveMin ? 'Above' : 'From'} ${min} ${isBelowMax ? 'to below' : 'to'} ${max}.`;
}

function NumberInput({ field, value, disabled, onChange }: Parts) {
  const shown = value === null || value === undefined ? '' : String(value);
  const [text, setText] = useState(shown);
  const [last, setLast] = useState(shown);
  if (shown !== last) {
    setLast(shown);
    if (Number(text) !== Number(shown) || text === '') setText(shown);
  }
  const mayBeEmpty = isEmptied(field);
  return (
    <TextInput
      label={field.label}
      type="number"
      step={field.type === 'INTEGER' ? 1 : 'any'}
      value={text}
      disabled={disabled}
      {...(field.unit && { unit: field.unit })}
      {...(mayBeEmpty && { placeholder: 'none' })}
      error={text === '' && mayBeEmpty ? null : faultOf(field, text)}
      onChange={(next) => {
        setText(next);
        if (next === '' && mayBeEmpty) onChange(emptyOf(field));
        else if (next !== '' && Number.isFinite(Number(next))) {
          setLast(String(Number(next)));
          onChange(Number(next));
        }
      }}
    />
  );
}

/** A number for each of some names, or none at all. */
function Named({ field, value, disabled, onChange, names }: Parts & { names: readonly string[] }) {
  const numbers = (value ?? null) as Record<string, number> | null;
  return (
    <div className="stack tight">
      <Choice
        label={field.label}
        value={numbers ? 'own' : ''}
        disabled={disabled}
        onChange={(next) =>
          onChange(next === 'own' ? Object.fromEntries(names.map((name) => [name, field.min ?? 0])) : null)
        }
        options={[
          { value: '', label: 'As by default' },
          { value: 'own', label: 'Own values' },
        ]}
      />
      {numbers && (
        <div className="row">
          {names.map((name) => (
            <TextInput
              key={name}
              label={name.toLowerCase()}
              type="number"
              value={String(numbers[name] ?? '')}
              error={faultOf(field, String(numbers[name] ?? ''))}
              onChange={(next) => onChange({ ...numbers, [name]: Number(next) })}
              disabled={disabled}
            />
          ))}
        </div>
      )}
    </div>
  );
}

/** Numbers by names that are not known before: `climate=8, physics=3`. */
function ByName({ field, value, disabled, onChange }: Parts) {
  const shown = written((value ?? {}) as Record<string, number>);
  const [text, setText] = useState(shown);
  const [last, setLast] = useState(shown);
  if (shown !== last) {
    setLast(shown);
    setText(shown);
  }
  const range = `${field.min} to ${field.max}`;
  return (
    <TextInput
      label={field.label}
      value={text}
      disabled={disabled}
      placeholder="name=1, other=2"
      error={
        numbersOf(field, text) === null ? `NAME=NUMBER with commas between; numbers from ${range}.` : null
      }
      onChange={(next) => {
        setText(next);
        const numbers = numbersOf(field, next);
        if (numbers === null) return;
        setLast(written(numbers));
        onChange(numbers);
      }}
    />
  );
}

/** Texts with commas between; left empty, the list is left out. */
function Texts({ field, value, disabled, onChange }: Parts) {
  const shown = ((value ?? []) as string[]).join(', ');
  const [text, setText] = useState(shown);
  const [last, setLast] = useState(shown);
  if (shown !== last) {
    setLast(shown);
    setText(shown);
  }
  const { options } = field;
  const texts = text.split(',').flatMap((one) => one.trim() || []);
  const wrong = texts.find((one) => options !== null && !options.includes(one));
  return (
    <TextInput
      label={field.label}
      value={text}
      disabled={disabled}
      placeholder={options === null ? 'one, other' : options.join(', ')}
      error={wrong === undefined ? null : `${wrong}: one of ${options?.join(', ')}.`}
      onChange={(next) => {
        setText(next);
        const given = next.split(',').flatMap((one) => one.trim() || []);
        setLast(given.join(', '));
        onChange(given.length === 0 ? emptyOf(field) : given);
      }}
    />
  );
}

/** Objects by name. The last one that goes takes the table with it. */
function Table({ field, value, disabled, onChange, fields }: Parts & { fields: readonly Field[] }) {
  const rows = (value ?? {}) as Record<string, Record<string, unknown>>;
  const [name, setName] = useState('');
  const isFree = name.trim() !== '' && !Object.hasOwn(rows, name.trim());
  const without = (gone: string) => Object.fromEntries(Object.entries(rows).filter(([of]) => of !== gone));
  return (
    <fieldset className="stack tight policy-table">
      <legend>{field.label}</legend>
      {Object.entries(rows).map(([of, row]) => (
        <details key={of} className="fold">
          <summary>{of}</summary>
          {fields.map((inner) => (
            <div key={inner.path} className="stack tight">
              <Input
                field={inner}
                value={row[inner.path] ?? inner.initial}
                disabled={disabled}
                onChange={(next) => {
                  const { [inner.path]: _, ...others } = row;
                  onChange({
                    ...rows,
                    [of]: next === undefined ? others : { ...others, [inner.path]: next },
                  });
                }}
              />
              <p className="muted small">{inner.about}</p>
            </div>
          ))}
          {!disabled && (
            <Button
              variant="quiet"
              className="small"
              icon={<Trash2 size={13} />}
              onPress={() => {
                const left = without(of);
                onChange(Object.keys(left).length === 0 ? emptyOf(field) : left);
              }}
            >
              Remove {of}
            </Button>
          )}
        </details>
      ))}
      {!disabled && (
        <div className="row">
          <TextInput label="New name" value={name} onChange={setName} />
          <Button
            className="small"
            icon={<Plus size={13} />}
            isDisabled={!isFree}
            onPress={() => {
              onChange({ ...rows, [name.trim()]: {} });
              setName('');
            }}
          >
            Add
          </Button>
        </div>
      )}
    </fieldset>
  );
}

const written = (numbers: Record<string, number>): string =>
  Object.entries(numbers)
    .map(([name, number]) => `${name}=${number}`)
    .join(', ');

/** Null: something in it is wrong. */
function numbersOf(field: Field, text: string): Record<string, number> | null {
  const pairs = text
    .split(',')
    .filter((one) => one.trim() !== '')
    .map((one) => [
      one.slice(0, Math.max(0, one.lastIndexOf('='))).trim(),
      one.slice(one.lastIndexOf('=') + 1),
    ]);
  if (pairs.some(([name, number]) => name === '' || faultOf(field, number as string) !== null)) return null;
  return Object.fromEntries(pairs.map(([name, number]) => [name, Number(number)]));
}
