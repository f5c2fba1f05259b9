/** What is being written on the page: one job in one of three ways, and how many of it. */
import { useEffect, useMemo, useState } from 'react';
import { ask } from '../../api/client';
import { numberOf, plural } from '../../ui/format';
import { againOf, type Draft, EMPTY, fieldsOf, inputOf, Wrong } from './draft';
import { JobAgainDocument, type JobInput } from './submit.gql';

export type Mode = 'form' | 'script' | 'json';

export interface Many {
  how: 'one' | 'count' | 'array' | 'parameters';
  count: string;
  /** `1-10`, `1,3,5-9:2%4` */
  array: string;
  /** Names in the first line, then a line for each job. */
  rows: string;
}

export type Form = ReturnType<typeof useForm>;

/** `again`: the job to begin with. */
export function useForm(again: string | undefined) {
  const [mode, setMode] = useState<Mode>(again ? 'json' : 'form');
  const [draft, setDraft] = useState<Draft>(EMPTY);
  const [json, setJson] = useState('');
  const [many, setMany] = useState<Many>({ how: 'one', count: '10', array: '1-10', rows: 'seed\n1\n2\n3\n' });
  const [error, setError] = useState<string | null>(null);
  const [touched, setTouched] = useState(false);
  const made = useMemo(() => makeInput(mode, draft, json), [mode, draft, json]);

  useEffect(() => {
    if (!again) return;
    const stop = new AbortController();
    ask(JobAgainDocument, { id: again }, stop.signal).then(
      ({ job }) => {
        if (job) setJson(JSON.stringify(againOf(job), null, 2));
        else setError(`Job ${numberOf(again)} does not exist, or you may not see it.`);
      },
      (reason: unknown) => !stop.signal.aborted && setError((reason as Error).message),
    );
    return () => stop.abort();
  }, [again]);

  const put =
    <F extends keyof Draft>(field: F) =>
    (value: Draft[F]) =>
      setDraft((before) => ({ ...before, [field]: value }));
  const change = (changes: Partial<Many>): void => setMany((before) => ({ ...before, ...changes }));
  function setScript(script: string): void {
    const { fields, directives } = fieldsOf(script);
    const { array } = directives.asked;
    setDraft((before) => ({ ...before, ...fields, script }));
    if (array) change({ how: 'array', array: array.written });
    else if (many.how === 'array') change({ how: 'one' });
  }
  return {
    ...{ mode, draft, json, many, error, made, touched, put, setJson, setScript, setError },
    changeMany: change,
    changeMode(next: Mode): void {
      if (next === 'json' && made.input) setJson(JSON.stringify(made.input, null, 2));
      if (next === 'script') setScript(draft.script);
      setMode(next);
      setError(null);
    },
    touch: () => setTouched(true),
    /** What a field of text shows. */
    text: (field: keyof Draft) => ({
      value: draft[field] as string,
      onChange: put(field) as (value: string) => void,
      error: touched && made.wrong?.field === field ? made.wrong.message : null,
    }),
  };
}

function makeInput(
  mode: Mode,
  draft: Draft,
  json: string,
): { input: JobInput | null; wrong: Wrong | null; problem: string | null } {
  try {
    if (mode !== 'json') return { input: inputOf(draft, mode), wrong: null, problem: null };
    const input: unknown = JSON.parse(json);
    if (typeof input !== 'object' || input === null || typeof (input as JobInput).command !== 'string')
      return { input: null, wrong: null, problem: 'An object with at least a “command”.' };
    return { input: input as JobInput, wrong: null, problem: null };
  } catch (error) {
    if (error instanceof Wrong) return { input: null, wrong: error, problem: null };
    return { input: null, wrong: null, problem: `Not JSON: ${(error as Error).message}` };
  }
}

/** How many jobs. Throws on what is no number of jobs. */
export function wholeOf(text: string): number {
  const value = Number(text);
  if (!Number.isInteger(value) || value < 1)
    throw new Error('How many jobs? A whole number from 1 to 100 000.');
  return value;
}

export const rowsOf = (text: string): string[] =>
  text
    .split('\n')
    .slice(1)
    .filter((line) => line.trim() !== '');

/** A job's parameters by name, for each row. Throws on a row that does not match the names. */
export function parametersOf(text: string): Record<string, string>[] {
  const names = (text.split('\n')[0] ?? '').split(',').map((name) => name.trim());
  const rows = rowsOf(text);
  if (rows.length === 0) throw new Error('There are no rows of parameters.');
  return rows.map((line, i) => {
    const values = line.split(',').map((value) => value.trim());
    if (values.length !== names.length)
      throw new Error(
        `Row ${i + 1} has ${plural(values.length, 'value')}; there are ${plural(names.length, 'name')}.`,
      );
    return Object.fromEntries(names.map((name, j) => [name, values[j]!]));
  });
}
