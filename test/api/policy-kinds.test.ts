/** `policyKinds` tells what the mutation does: what it says is accepted is accepted, and all else is refused with the field's name. */
import { beforeAll, expect, it } from 'vitest';
import { type DescribedField, dispatchKinds, localKinds } from '../../src/core/index.js';
import { RandomStream } from '../../src/core/random.js';
import { SEED } from '../support/seed.js';
import { withApi } from './support/api.js';

const api = withApi();

type Field = Omit<DescribedField, 'unit'>;
interface Kind {
  kind: string;
  label: string;
  about: string;
  document: Document;
  fields: Field[];
  terms: { name: string; label: string }[];
}
type Document = Record<string, unknown>;
type Part = 'dispatch' | 'local' | 'general';

const PLAIN = 'path label about type min max isAboveMin isBelowMax options isNullable isOptional initial';
const FIELD = `${PLAIN} fields { ${PLAIN} }`;
const KIND = `kind label about document fields { ${FIELD} } terms { name label }`;
let kinds: { dispatch: Kind[]; local: Kind[]; general: Field[] };
let base: { version: number; document: Document };

beforeAll(async () => {
  const data = await api.must<{ policyKinds: typeof kinds; policy: typeof base }>(
    `{ policyKinds { dispatch { ${KIND} } local { ${KIND} } general { ${FIELD} } } policy { version document } }`,
  );
  kinds = data.policyKinds;
  base = data.policy;
});

/** The faults of a document; null: it was put in force. */
async function faultsOf(document: Document): Promise<{ path: string }[] | null> {
  const input = { document, expectedVersion: base.version, reason: 'tried' };
  const { data, errors } = await api.ask<{ updatePolicy: { policy: { version: number } } }>(
    'mutation ($input: UpdatePolicyInput!) { updatePolicy(input: $input) { policy { version } } }',
    { input },
  );
  if (data) base.version = data.updatePolicy.policy.version;
  const [error] = errors ?? [];
  if (error) expect(error.extensions.code).toBe('BAD_USER_INPUT');
  return error ? (error.extensions as unknown as { faults: { path: string }[] }).faults : null;
}

function put(document: Document, path: string, value: unknown): Document {
  const [key, ...rest] = path.split('.') as [string, ...string[]];
  const inner = rest.length > 0 ? put((document[key] ?? {}) as Document, rest.join('.'), value) : value;
  return { ...document, [key]: inner };
}

const step = ({ type }: Field, value: number) =>
  type === 'NUMBER' ? Math.max(1e-9, Math.abs(value) * 1e-9) : 1;
const least = (field: Field) => (field.min as number) + (field.isAboveMin ? step(field, 0) : 0);
const most = (field: Field) =>
  (field.max as number) - (field.isBelowMax ? step(field, field.max as number) : 0);

/** The policy with this value in a document of the kind, and the others at their ends: fields depend on one another. */
function* documents(part: Part, kind: Kind | null, field: Field, value: unknown): Iterable<Document> {
  const fields = kind ? kind.fields : kinds.general;
  const ends = [(one: Field) => one.initial, least, most];
  for (const weight of ends)
    for (const other of ends) {
      let document: Document = kind ? kind.document : base.document;
      for (const one of fields) {
        if (one.path === field.path || !['NUMBER', 'INTEGER'].includes(one.type)) continue;
        const at = one.path.startsWith('weights') ? weight : other;
        document = put(document, one.path, at(one));
      }
      document = put(document, field.path, value);
      yield kind ? { ...base.document, [part]: document } : document;
    }
}

/** What the description accepts and what it does not, at its bounds. */
function valuesOf(field: Field): { good: unknown[]; bad: unknown[] } {
  const { type, min, max, options, isAboveMin, isBelowMax, isNullable } = field;
  const none = isNullable ? { good: [null], bad: [] } : { good: [], bad: [null] };
  const values = (good: unknown[], bad: unknown[]) => ({
    good: [...good, ...none.good],
    bad: [...bad, ...none.bad, 'text'],
  });
  if (type === 'BOOLEAN') return values([true, false], [1]);
  if (type === 'CHOICE') return values(options as string[], ['OTHER', 1]);
  if (type === 'TEXTS') return values([[], options ?? ['any']], [['', 'any'], [1], 'text']);
  const [low, high] = [min as number, max as number];
  const good = [
    least(field),
    most(field),
    type === 'NUMBER'
      ? low + (high - low) * new RandomStream(SEED, field.path).next()
      : low + Math.floor((high - low) / 3),
  ];
  const bad = [
    isAboveMin ? low : low - step(field, low),
    isBelowMax ? high : high + step(field, high),
    ...(type === 'NUMBER' ? [] : [low + 0.5]),
  ];
  if (type !== 'NUMBERS') return values(good, bad);
  const numbers = (value: unknown) => Object.fromEntries((options ?? ['any']).map((name) => [name, value]));
  return values(good.map(numbers), [...bad.map(numbers), ...(options ? [{ OTHER: low }] : [])]);
}

async function check(part: Part, kind: Kind | null, field: Field): Promise<void> {
  if (field.type === 'TABLE') {
    for (const inner of field.fields as Field[])
      await check(part, kind, { ...inner, path: `${field.path}.any.${inner.path}` });
    return;
  }
  const whole = kind ? `${part}.${field.path}` : field.path;
  const { good, bad } = valuesOf(field);
  for (const value of good) {
    let accepted = false;
    for (const document of documents(part, kind, field, value))
      if ((await faultsOf(document)) === null) {
        accepted = true;
        break;
      }
    expect([kind?.kind, whole, value, accepted]).toEqual([kind?.kind, whole, value, true]);
  }
  for (const value of bad)
    for (const document of documents(part, kind, field, value)) {
      const faults = await faultsOf(document);
      const named = faults?.some(({ path }) => path === whole || path.startsWith(`${whole}.`));
      expect([kind?.kind, whole, value, named]).toEqual([kind?.kind, whole, value, true]);
      break;
    }
}

it('describes every kind, its terms and its fields in words', () => {
  const names = (all: readonly { schema: { shape: { kind: { value: string } } } }[]) =>
    all.map(({ schema }) => schema.shape.kind.value);
  expect(kinds.dispatch.map(({ kind }) => kind)).toEqual(names(dispatchKinds));
  expect(kinds.local.map(({ kind }) => kind)).toEqual(names(localKinds));
  const all = [...kinds.dispatch, ...kinds.local];
  const words = [...all, ...all.flatMap(({ fields }) => fields), ...kinds.general].filter(
    ({ label, about }) => !/^[A-Z]/.test(label) || about.length < 10,
  );
  expect(words).toEqual([]);
  expect(all.flatMap(({ terms }) => terms).filter(({ label }) => label === '')).toEqual([]);
});

it.each([...dispatchKinds].map(({ schema }) => schema.shape.kind.value))(
  'bounds of dispatch policies are those of the mutation: %s',
  async (name) => {
    const kind = kinds.dispatch.find((one) => one.kind === name) as Kind;
    expect(await faultsOf({ ...base.document, dispatch: kind.document })).toBeNull();
    for (const field of kind.fields) await check('dispatch', kind, field);
  },
);

it.each([...localKinds].map(({ schema }) => schema.shape.kind.value))(
  'bounds of local policies are those of the mutation: %s',
  async (name) => {
    const kind = kinds.local.find((one) => one.kind === name) as Kind;
    expect(await faultsOf({ ...base.document, local: kind.document })).toBeNull();
    for (const field of kind.fields) await check('local', kind, field);
  },
);

it('bounds of the other fields are those of the mutation', async () => {
  for (const field of kinds.general) await check('general', null, field);
});
